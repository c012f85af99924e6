// SPDX-License-Identifier: MIT
//
// Combines the rules for one metric of one case: the metric's default, [rules], the rules of the model's entry and
// the overrides that match. A later layer replaces single fields of an earlier one. Contradictions that appear only
// in the combination are refused here.
//
//     default        fail = any growth
//     [rules]        warn = 0, fail = 64 KiB and 2 %     fail of [rules] takes the place of the default's
//     [model.rules]  max = 64 MiB                        the rest stays
//     [[override]]   "off"                               a word inherits nothing
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "gate/config_internal.h"

// ---- resolving ----

static void set_default(const tide_gate_config *c, tide_gate_metric m, tide__gate_resolved *out) {
    *out = (tide__gate_resolved){.gain = c->gain, .gain_place = c->gain_place};
    const tide_gate_level level = tide_gate_metric_get(m)->level;
    if (level == TIDE_GATE_REPORT) return;
    const size_t field = level == TIDE_GATE_FAIL ? TIDE__GATE_FAIL : TIDE__GATE_WARN;
    out->fields[field] = (tide__gate_field){.is_set = true, .limit = {.given = true}};
}

static void apply_rule(const tide_gate_config *c, const tide__gate_rule *rule, tide__gate_resolved *out) {
    if (rule->is_word) {
        *out = (tide__gate_resolved){.gain = c->gain, .gain_place = c->gain_place, .is_off = rule->is_off};
    } else {
        out->is_off = false;
    }
    for (size_t f = 0; f < TIDE__GATE_N_FIELDS; f++) {
        if (!rule->fields[f].is_set) continue;
        out->fields[f] = rule->fields[f];
        if (f == TIDE__GATE_GAIN_WARN || f == TIDE__GATE_GAIN_FAIL) out->has_gain_of_its_own = true;
    }
    if (!rule->has_gain) return;
    out->gain = rule->gain;
    out->gain_place = rule->place;
    out->has_gain_of_its_own = false;
    out->fields[TIDE__GATE_GAIN_WARN] = out->fields[TIDE__GATE_GAIN_FAIL] = (tide__gate_field){0};
}

static void apply_layer(const tide_gate_config *c, const tide__gate_layer *layer, tide_gate_metric m, int kind,
                        tide__gate_resolved *out) {
    for (int pass = 0; pass < 2; pass++) { // all kinds, then the one kind: within a layer the more specific rule wins
        const int wanted = pass == 0 ? -1 : kind;
        if (pass == 1 && kind < 0) return;
        for (size_t i = 0; i < layer->n; i++) {
            const tide__gate_rule *rule = &layer->rules[i];
            if (rule->metric == m && rule->kind == wanted) apply_rule(c, rule, out);
        }
    }
}

bool tide__gate_matches(const char *pattern, const char *key) {
    return strcmp(pattern, key) == 0 || fnmatch(pattern, key, 0) == 0;
}

void tide__gate_resolve(const tide_gate_config *c, const tide__gate_held *held, const char *key, tide_gate_metric m,
                        int kind, tide__gate_resolved *out) {
    set_default(c, m, out);
    apply_layer(c, &c->rules, m, kind, out);
    if (held == NULL) {
        for (size_t i = 0; i < c->n_overrides; i++) {
            if (tide__gate_matches(c->overrides[i].match, key)) apply_layer(c, &c->overrides[i], m, kind, out);
        }
        return;
    }
    if (held->model != NULL) apply_layer(c, held->model, m, kind, out);
    for (size_t i = 0; i < held->n_overrides; i++) apply_layer(c, &c->overrides[held->overrides[i]], m, kind, out);
}

// ---- the combined rule ----

static const char default_place[] = "the default";

static bool is_on(const tide__gate_field *f) { return f->is_set && !f->is_off; }

static void copy_place(char *out, size_t out_bytes, const char *place) {
    snprintf(out, out_bytes, "%s", place != NULL ? place : default_place);
}

/// A limit and where it comes from, into `out`'s field of the name.
#define TAKE(out, name, field)                                                                                         \
    do {                                                                                                               \
        (out)->name = (field)->limit;                                                                                  \
        copy_place((out)->name##_origin, sizeof(out)->name##_origin, (field)->place);                                  \
    } while (0)

/// A gain gets the limits of growth, so that the same change is allowed in both directions. Where gains only warn,
/// they get the first limit that is set.
static void mirror_gain(const tide__gate_resolved *s, tide_gate_rule *out) {
    const tide__gate_field *warn = &s->fields[TIDE__GATE_WARN], *fail = &s->fields[TIDE__GATE_FAIL];
    const tide__gate_field *first = is_on(warn) ? warn : fail;
    if (s->gain == TIDE__GATE_GAIN_OFF || !is_on(first)) return;
    tide__gate_field of_warn = *warn, of_fail = *fail; // the word that says what a gain does is where they come from
    if (s->gain_place != NULL) of_warn.place = of_fail.place = s->gain_place;
    if (s->gain == TIDE__GATE_GAIN_FAILS) {
        TAKE(out, gain_fail, is_on(fail) ? &of_fail : &of_warn);
        if (is_on(fail) && is_on(warn)) TAKE(out, gain_warn, &of_warn);
    } else {
        TAKE(out, gain_warn, first == warn ? &of_warn : &of_fail);
    }
}

static void own_gain(const tide__gate_resolved *s, tide_gate_rule *out) {
    const tide__gate_field *warn = &s->fields[TIDE__GATE_GAIN_WARN], *fail = &s->fields[TIDE__GATE_GAIN_FAIL];
    if (is_on(warn)) TAKE(out, gain_warn, warn);
    if (is_on(fail)) TAKE(out, gain_fail, fail);
}

void tide_gate_config_rule(const tide_gate_config *c, const char *key, tide_gate_metric m, int kind,
                           tide_gate_rule *out) {
    *out = (tide_gate_rule){0};
    if (tide_gate_metric_get(m) == NULL) return;
    uint64_t at;
    const tide__gate_held *held = tide_strmap_get(&c->keys, key, &at) ? &c->held[at] : NULL;
    tide__gate_resolved s;
    tide__gate_resolve(c, held, key, m, kind, &s);
    out->off = s.is_off;
    const tide__gate_field *warn = &s.fields[TIDE__GATE_WARN], *fail = &s.fields[TIDE__GATE_FAIL];
    if (is_on(warn)) TAKE(out, warn, warn);
    if (is_on(fail)) TAKE(out, fail, fail);
    out->is_default =
        !s.has_gain_of_its_own && (!is_on(warn) || warn->place == NULL) && (!is_on(fail) || fail->place == NULL);
    if (s.has_gain_of_its_own)
        own_gain(&s, out);
    else
        mirror_gain(&s, out);
    const tide__gate_field *max = &s.fields[TIDE__GATE_BUDGET], *warn_max = &s.fields[TIDE__GATE_WARN_BUDGET];
    out->has_max = is_on(max);
    out->has_warn_max = is_on(warn_max);
    if (is_on(max)) {
        out->max = max->value;
        copy_place(out->max_origin, sizeof out->max_origin, max->place);
    }
    if (is_on(warn_max)) {
        out->warn_max = warn_max->value;
        copy_place(out->warn_max_origin, sizeof out->warn_max_origin, warn_max->place);
    }
}

// ---- contradictions ----

/// Whether every change that exceeds `warn` exceeds `fail` too: then the warning would never appear.
static bool is_never_seen(const tide_gate_limit *warn, const tide_gate_limit *fail) {
    return fail->amount <= warn->amount && fail->percent <= warn->percent;
}

static tide_status name_places(const tide__gate_reader *r, const tide__gate_field *warn, const tide__gate_field *fail,
                               const char *key, const char *metric, const char *what) {
    const tide_gate_node *at = warn->node != NULL ? warn->node : fail->node;
    const tide_status st = tide__gate_bad(r, at, "%s of %s: %s", metric, key, what);
    tide_error_note(r->err, "warn is from %s, fail from %s", warn->place != NULL ? warn->place : default_place,
                    fail->place != NULL ? fail->place : default_place);
    tide_error_hint(r->err, "make fail the larger one, or write %s",
                    fail->place == NULL ? "fail = \"off\"" : "one of them as \"off\"");
    return st;
}

static tide_status check_pair(const tide__gate_reader *r, const tide__gate_resolved *s, tide__gate_field_id warn,
                              tide__gate_field_id fail, const char *key, const char *metric) {
    const tide__gate_field *w = &s->fields[warn], *f = &s->fields[fail];
    if (!is_on(w) || !is_on(f) || !is_never_seen(&w->limit, &f->limit)) return TIDE_OK;
    return name_places(r, w, f, key, metric, "the warn limit is not below the fail limit");
}

static tide_status check_budgets(const tide__gate_reader *r, const tide__gate_resolved *s,
                                 const tide_gate_metric_def *def, const char *key, const char *metric) {
    const tide__gate_field *w = &s->fields[TIDE__GATE_WARN_BUDGET], *f = &s->fields[TIDE__GATE_BUDGET];
    if (!is_on(w) || !is_on(f)) return TIDE_OK;
    if (def->better == TIDE_GATE_MORE) {
        if (w->value.real > f->value.real) return TIDE_OK;
        return name_places(r, w, f, key, metric, "warn_min is not above min");
    }
    const bool is_below = def->unit == TIDE_GATE_SHARE ? w->value.real < f->value.real : w->value.u < f->value.u;
    return is_below ? TIDE_OK : name_places(r, w, f, key, metric, "warn_max is not below max");
}

static tide_status check_metric(const tide__gate_reader *r, const tide_gate_config *c, size_t target,
                                tide_gate_metric m, int kind) {
    char metric[64], shown[96];
    const char *key = c->targets[target].key;
    tide__gate_resolved s;
    tide__gate_resolve(c, &c->held[target], key, m, kind, &s);
    tide_gate_metric_text(m, kind, metric, sizeof metric);
    snprintf(shown, sizeof shown, "%.90s", key);
    TIDE_TRY(check_pair(r, &s, TIDE__GATE_WARN, TIDE__GATE_FAIL, shown, metric));
    TIDE_TRY(check_pair(r, &s, TIDE__GATE_GAIN_WARN, TIDE__GATE_GAIN_FAIL, shown, metric));
    return check_budgets(r, &s, tide_gate_metric_get(m), shown, metric);
}

static bool is_same_layers(const tide__gate_held *a, const tide__gate_held *b) {
    return a->model == b->model && a->n_overrides == b->n_overrides &&
           (a->n_overrides == 0 || memcmp(a->overrides, b->overrides, a->n_overrides * sizeof *a->overrides) == 0);
}

static tide_status check_target(const tide__gate_reader *r, const tide_gate_config *c, size_t target) {
    for (size_t m = 0; m < TIDE_GATE_N_METRICS; m++) {
        TIDE_TRY(check_metric(r, c, target, (tide_gate_metric)m, -1));
        if (!tide_gate_metric_get((tide_gate_metric)m)->per_kind) continue;
        for (int k = 0; k < TIDE_N_KINDS; k++) TIDE_TRY(check_metric(r, c, target, (tide_gate_metric)m, k));
    }
    return TIDE_OK;
}

// ---- rules without effect ----

/// Whether the target can have figures of a run: it is run, or its file may be a trace (known only when it is
/// read).
static bool can_have_run(const tide_gate_target *t) {
    static const char *const planned[] = {".onnx", ".json", ".csv"};
    if (t->settings.run || t->why_empty != NULL) return true;
    const size_t n = strlen(t->path);
    for (size_t i = 0; i < sizeof planned / sizeof planned[0]; i++) {
        const size_t k = strlen(planned[i]);
        if (n > k && strcmp(t->path + n - k, planned[i]) == 0) return false;
    }
    return true;
}

static bool is_held(const tide_gate_config *c, size_t target, const tide__gate_layer *layer) {
    const tide__gate_held *held = &c->held[target];
    if (layer == &c->rules || layer == held->model) return true;
    for (size_t i = 0; i < held->n_overrides; i++) {
        if (&c->overrides[held->overrides[i]] == layer) return true;
    }
    return false;
}

/// The first rule of the layer with a limit on a metric that needs a run; NULL: none.
static const tide__gate_rule *wants_run(const tide__gate_layer *layer) {
    for (size_t i = 0; i < layer->n; i++) {
        const tide__gate_rule *rule = &layer->rules[i];
        bool is_limit = false;
        for (size_t f = 0; f < TIDE__GATE_N_FIELDS; f++) is_limit = is_limit || is_on(&rule->fields[f]);
        if (is_limit && tide_gate_metric_get(rule->metric)->needs_run) return rule;
    }
    return NULL;
}

static tide_status check_is_run(const tide__gate_reader *r, const tide_gate_config *c, const tide__gate_layer *layer) {
    const tide__gate_rule *rule = wants_run(layer);
    if (rule == NULL) return TIDE_OK;
    for (size_t i = 0; i < c->n_targets; i++) {
        if (is_held(c, i, layer) && can_have_run(&c->targets[i])) return TIDE_OK;
    }
    const tide_status st = tide__gate_bad(r, rule->node,
                                          "%s is measured by a run, and nothing that this rule holds "
                                          "for is run",
                                          tide_gate_metric_get(rule->metric)->id);
    tide_error_hint(r->err, "write run = true in [defaults] or in the [[model]]");
    return st;
}

static bool has_budget(const tide__gate_layer *layer) {
    for (size_t i = 0; i < layer->n; i++) {
        const tide__gate_field *f = layer->rules[i].fields;
        if (is_on(&f[TIDE__GATE_BUDGET]) || is_on(&f[TIDE__GATE_WARN_BUDGET])) return true;
    }
    return false;
}

/// Without a baseline only budgets are checked, so there must be one.
static tide_status check_budgets_alone(const tide__gate_reader *r, const tide_gate_config *c) {
    if (c->is_baseline_wanted || has_budget(&c->rules)) return TIDE_OK;
    for (size_t i = 0; i < c->n_models; i++) {
        if (has_budget(c->models[i])) return TIDE_OK;
    }
    for (size_t i = 0; i < c->n_overrides; i++) {
        if (has_budget(&c->overrides[i])) return TIDE_OK;
    }
    const tide_status st =
        tide__gate_bad(r, c->baseline_node, "'baseline' is false and there is no budget: nothing would be judged");
    tide_error_hint(r->err, "name a baseline, or write max_bytes = \"64MiB\" in a [[model]]");
    return st;
}

tide_status tide__gate_check_rules(const tide__gate_reader *r, tide_gate_config *c) {
    for (size_t i = 0; i < c->n_targets; i++) {
        if (i == 0 || !is_same_layers(&c->held[i], &c->held[i - 1])) TIDE_TRY(check_target(r, c, i));
    }
    TIDE_TRY(check_budgets_alone(r, c));
    TIDE_TRY(check_is_run(r, c, &c->rules));
    for (size_t i = 0; i < c->n_models; i++) TIDE_TRY(check_is_run(r, c, c->models[i]));
    for (size_t i = 0; i < c->n_overrides; i++) TIDE_TRY(check_is_run(r, c, &c->overrides[i]));
    return TIDE_OK;
}
