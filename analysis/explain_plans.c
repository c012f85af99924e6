// SPDX-License-Identifier: MIT
//
// explain, what a plan takes without a storage that is alive: a plan is made of the rest each time. See explain.h.
//
//     plan of all                                100
//     without a            <= plan of all         80     what is left of the plan of all is a plan as well
//     without b            <= plan of all         90
//     without a, b, c …    <= each of these       70     what is left of the plan without a is a plan as well
//
// So more never saves less, whatever a strategy makes of the smaller problem.
#include "analysis/explain_internal.h"
#include "analysis/whatif.h"
#include "core/base/host_alloc.h"

// ---- which ones ----

static size_t find_storage(const tide_explanation *e, const char *name, uint32_t root) {
    size_t k = 0;
    while (k < e->n_without && (e->without[k].storage != root || e->without[k].name != name)) k++;
    return k;
}

static uint64_t count_inside(const tide_lifetimes *lt, uint32_t root) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < lt->n; i++) n += i != root && tide_lifetimes_root(lt, i, NULL) == root;
    return n;
}

void tide__list_storages(const tide_memory_plan *plan, int64_t run_id, size_t max, tide_explanation *e) {
    const tide_lifetimes *lt = &plan->lifetimes;
    for (uint32_t i = 0; i < e->live.n; i++) {
        const tide_live_item *x = &e->live.items[i];
        if (!tide__is_of_plan(x, run_id)) continue;
        const uint32_t root = tide_lifetimes_root(lt, (uint32_t)tide_planned_tensor(x->id), NULL);
        const size_t k = find_storage(e, lt->items[root].name, root);
        if (k == max) continue;
        if (k == e->n_without) {
            e->without[e->n_without++] = (tide_without){.live = i,
                                                        .name = lt->items[root].name,
                                                        .storage = root,
                                                        .n_inside = count_inside(lt, root),
                                                        .n_alike = 1,
                                                        .n_now = 1};
        }
        e->without[k].bytes += x->counts_bytes;
    }
}

// ---- plans ----

tide_strategy_options tide__options_for_many(const tide_subject *s, const tide_memory_plan *plan) {
    tide_strategy_options out = s->model.options;
    out.time_limit_ns = 0;
    if (out.node_limit == 0 && !plan->proven) out.work_percent = TIDE__EXPLAIN_WORK_PERCENT;
    return out;
}

tide_status tide__rest_begin(tide__rest *r, const tide_subject *s, const tide_memory_plan *plan, tide_error *err) {
    const size_t n = plan->lifetimes.n + 1;
    *r = (tide__rest){.plan = plan,
                      .strategy = tide__strategy_of_plan(plan),
                      .options = tide__options_for_many(s, plan),
                      .root = tide_host_alloc(n * sizeof *r->root),
                      .gone = tide_host_alloc(n * sizeof *r->gone),
                      .roots = tide_host_calloc(n, sizeof *r->roots),
                      .n_left = TIDE__EXPLAIN_PLANNED / n > 0 ? TIDE__EXPLAIN_PLANNED / n : 1};
    if (r->root == NULL || r->gone == NULL || r->roots == NULL) {
        tide__rest_end(r);
        return TIDE_NO_MEMORY(err, "to explain what is held");
    }
    for (uint32_t i = 0; i + 1 < n; i++) r->root[i] = tide_lifetimes_root(&plan->lifetimes, i, NULL);
    return TIDE_OK;
}

void tide__rest_end(tide__rest *r) {
    tide_host_free(r->root);
    tide_host_free(r->gone);
    tide_host_free(r->roots);
    *r = (tide__rest){0};
}

static tide_status plan_of_rest(tide__rest *r, tide_memory_plan **out, tide_error *err) {
    for (uint32_t i = 0; i < r->plan->lifetimes.n; i++) r->gone[i] = r->roots[r->root[i]];
    return tide_plan_without(r->plan, r->gone, r->strategy, &r->options, out, err);
}

tide_status tide__rest_without(tide__rest *r, tide_without *w, tide_memory_plan **out, tide_error *err) {
    *out = NULL;
    if (r->n_left == 0) return TIDE_OK;
    r->n_left--;
    r->roots[w->storage] = true;
    const tide_status st = plan_of_rest(r, out, err);
    r->roots[w->storage] = false;
    TIDE_TRY(st);
    w->plan_bytes = (*out)->bytes;
    w->was_bytes = r->plan->bytes;
    w->has_plan = true;
    return TIDE_OK;
}

tide_status tide__rest_without_all(tide__rest *r, int64_t run_id, const tide_explanation *e, tide_memory_plan **out,
                                   tide_error *err) {
    for (size_t i = 0; i < e->live.n; i++) {
        if (tide__is_of_plan(&e->live.items[i], run_id))
            r->roots[r->root[tide_planned_tensor(e->live.items[i].id)]] = true;
    }
    return plan_of_rest(r, out, err);
}

static tide_status add_all(tide__rest *r, tide_explanation *e, tide_error *err) {
    tide_memory_plan *rest;
    TIDE_TRY(tide__rest_without_all(r, 0, e, &rest, err));
    e->second_plan_bytes = rest->bytes;
    e->has_second_plan = true;
    tide_memory_plan_destroy(rest);
    for (size_t k = 0; k < e->n_without; k++) {
        if (e->without[k].has_plan && e->without[k].plan_bytes < e->second_plan_bytes)
            e->second_plan_bytes = e->without[k].plan_bytes;
    }
    return TIDE_OK;
}

tide_status tide__add_plans(const tide_subject *s, tide__reporter *reporter, tide_explanation *e, tide_error *err) {
    tide__rest r;
    if (e->n_without == 0) return TIDE_OK;
    TIDE_TRY(tide__rest_begin(&r, s, s->plan, err));
    tide_status st = TIDE_OK;
    for (size_t k = 0; st == TIDE_OK && k < e->n_without; k++) {
        tide_memory_plan *rest = NULL;
        st = tide__report_share(reporter, 0.6 + 0.4 * (double)k / (double)e->n_without, err);
        if (st == TIDE_OK) st = tide__rest_without(&r, &e->without[k], &rest, err);
        tide_memory_plan_destroy(rest);
    }
    if (st == TIDE_OK) st = add_all(&r, e, err);
    tide__rest_end(&r);
    return st;
}
