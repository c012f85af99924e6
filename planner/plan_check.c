// SPDX-License-Identifier: MIT
//
// Plan against baseline plan. See plan_check.h.
#include "planner/plan_check.h"

#include <string.h>

#include "core/base/text.h"

const char *tide_check_metric_name(tide_check_metric m) {
    static const char *const names[] = {
#define XX(name, text, what) text,
        TIDE_CHECK_METRIC_MAP(XX)
#undef XX
    };
    return (unsigned)m < TIDE_N_CHECK_METRICS ? names[m] : "?";
}

static uint64_t metric_of(const tide_memory_plan *p, tide_check_metric m) {
    switch (m) {
    case TIDE_CHECK_BUFFER:
        return p->bytes;
    case TIDE_CHECK_LOWER_BOUND:
        return p->lower_bound_bytes;
    case TIDE_CHECK_WEIGHTS:
        return tide_memory_plan_predicted(p, TIDE_KIND_PERSISTENT);
    case TIDE_CHECK_IO:
        return tide_memory_plan_predicted(p, TIDE_KIND_DEFAULT);
    case TIDE_N_CHECK_METRICS:
        break;
    }
    return 0;
}

/// What a tensor takes of its own: an alias takes nothing.
static uint64_t own_bytes(const tide_lifetime *item) {
    return item->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(item) : 0;
}

/// Whether a tensor counts towards the metric.
static bool counts(const tide_lifetime *item, tide_check_metric m) {
    switch (m) {
    case TIDE_CHECK_WEIGHTS:
        return item->persistent && item->kind == TIDE_KIND_PERSISTENT;
    case TIDE_CHECK_IO:
        return item->persistent && item->kind == TIDE_KIND_DEFAULT;
    default:
        return !item->persistent;
    }
}

static uint64_t growth(const tide_check_cause *c) { return c->current_bytes - c->baseline_bytes; }

/// Keep the TIDE_CHECK_MAX_CAUSES largest, largest first; ties stay in order of the plan.
static void add_cause(tide_check_rule *rule, tide_check_cause cause) {
    size_t at = rule->n_causes;
    while (at > 0 && growth(&rule->causes[at - 1]) < growth(&cause)) at--;
    if (at == TIDE_CHECK_MAX_CAUSES) return;
    const size_t last = rule->n_causes < TIDE_CHECK_MAX_CAUSES ? rule->n_causes : TIDE_CHECK_MAX_CAUSES - 1;
    memmove(&rule->causes[at + 1], &rule->causes[at], (last - at) * sizeof cause);
    rule->causes[at] = cause;
    rule->n_causes = last + 1;
}

static void find_causes(const tide_memory_plan *baseline, const tide_strmap *by_name, const tide_memory_plan *current,
                        tide_check_rule *rule) {
    for (size_t i = 0; i < current->lifetimes.n; i++) {
        const tide_lifetime *now = &current->lifetimes.items[i];
        if (!counts(now, rule->metric)) continue;
        uint64_t before_i;
        const tide_lifetime *before =
            tide_strmap_get(by_name, now->name, &before_i) ? &baseline->lifetimes.items[before_i] : NULL;
        const tide_check_cause cause = {.name = now->name,
                                        .baseline_bytes =
                                            before != NULL && counts(before, rule->metric) ? own_bytes(before) : 0,
                                        .current_bytes = own_bytes(now),
                                        .is_new = before == NULL};
        if (cause.current_bytes > cause.baseline_bytes) add_cause(rule, cause);
    }
}

static const char *model_of(const tide_memory_plan *p) { return p->lifetimes.model != NULL ? p->lifetimes.model : ""; }

static tide_status comparable(const tide_memory_plan *a, const tide_memory_plan *b, tide_error *err) {
    if (strcmp(model_of(a), model_of(b)) != 0)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "the baseline is of '%s', this plan of '%s'", model_of(a),
                         model_of(b));
    if (strcmp(a->strategy, b->strategy) != 0)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "the baseline was made by %s, this plan by %s", a->strategy,
                         b->strategy);
    if (a->align_bytes != b->align_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE, "the baseline is aligned to %llu bytes, this plan to %llu",
                         (unsigned long long)a->align_bytes, (unsigned long long)b->align_bytes);
    return TIDE_OK;
}

tide_status tide_plan_check(const tide_memory_plan *baseline, const tide_memory_plan *current, tide_check_result *out,
                            tide_error *err) {
    TIDE_TRY(comparable(baseline, current, err));
    tide_strmap by_name = {0};
    for (size_t i = 0; i < baseline->lifetimes.n; i++) {
        if (tide_strmap_put(&by_name, baseline->lifetimes.items[i].name, i) != TIDE_OK) {
            tide_strmap_deinit(&by_name);
            return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu names", baseline->lifetimes.n);
        }
    }
    tide_check_result result = {.pass = true};
    for (int m = 0; m < TIDE_N_CHECK_METRICS; m++) {
        tide_check_rule *rule = &result.rules[m];
        rule->metric = (tide_check_metric)m;
        rule->baseline = metric_of(baseline, rule->metric);
        rule->current = metric_of(current, rule->metric);
        rule->pass = rule->current <= rule->baseline;
        if (!rule->pass) find_causes(baseline, &by_name, current, rule);
        result.pass = result.pass && rule->pass;
    }
    tide_strmap_deinit(&by_name);
    *out = result;
    return TIDE_OK;
}
