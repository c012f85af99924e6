// SPDX-License-Identifier: MIT
//
// Rules as a configuration writes them, one layer at a time. See config_internal.h.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "gate/config_internal.h"

// ---- one rule ----

static const char *const field_keys[TIDE__GATE_N_FIELDS] = {"warn",      "fail", "gain_warn",
                                                            "gain_fail", "max",  "warn_max"};

/// Of figures where more is better a budget is the least that may be.
static const char *field_key(const tide_gate_metric_def *def, size_t field) {
    if (def->better == TIDE_GATE_MORE && field == TIDE__GATE_BUDGET) return "min";
    if (def->better == TIDE_GATE_MORE && field == TIDE__GATE_WARN_BUDGET) return "warn_min";
    return field_keys[field];
}

static tide_status no_limit_for_time(const tide__gate_reader *r, const tide_gate_node *n,
                                     const tide_gate_metric_def *def) {
    const tide_status st = tide__gate_bad(
        r, n, "%s is a time, and a time is not the same twice: it is reported and never warns or fails", def->id);
    tide_error_hint(r->err, "%s = \"report\" or \"off\"", def->id);
    return st;
}

/// "off": no level at all, "report": shown; "warn", "fail": what any change for the worse does.
static tide_status read_word(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                             tide__gate_rule *out) {
    static const char *const words[] = {"off", "report", "warn", "fail"};
    size_t word;
    const char *text;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (tide__gate_choice(r, n, words, 4, &word) != TIDE_OK) {
        if (r->err != NULL && strpbrk(text, "0123456789") != NULL)
            tide_error_hint(r->err, "a limit wants its level: %.64s = { fail = \"%.64s\" }", n->key, text);
        return TIDE_ERR_BAD_INPUT;
    }
    if (word >= 2 && def->unit == TIDE_GATE_NS) return no_limit_for_time(r, n, def);
    out->is_word = true;
    out->is_off = word == 0;
    if (word >= 2)
        out->fields[word == 2 ? TIDE__GATE_WARN : TIDE__GATE_FAIL] =
            (tide__gate_field){.is_set = true, .limit = {.given = true}, .node = n, .place = out->place};
    return TIDE_OK;
}

static tide_status read_field(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                              size_t field, tide__gate_rule *out) {
    tide__gate_field f = {.is_set = true, .node = n, .place = tide__gate_keep_place(r, n)};
    if (f.place == NULL) return tide__gate_no_memory(r);
    if (def->unit == TIDE_GATE_NS) return no_limit_for_time(r, n, def);
    f.is_off = n->type == TIDE_GATE_NODE_TEXT && n->text_len == 3 && memcmp(n->text, "off", 3) == 0;
    if (f.is_off) {
        out->fields[field] = f;
        return TIDE_OK;
    }
    if (field == TIDE__GATE_BUDGET || field == TIDE__GATE_WARN_BUDGET)
        TIDE_TRY(tide__gate_budget(r, n, def, &f.value));
    else
        TIDE_TRY(tide__gate_limit(r, n, def, &f.limit));
    out->fields[field] = f;
    return TIDE_OK;
}

static tide_status read_gain(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                             const tide_gate_node *rule, tide__gate_rule *out) {
    static const char *const words[] = {"off", "warn", "fail"};
    size_t word;
    TIDE_TRY(tide__gate_choice(r, n, words, 3, &word));
    if (word > 0 && def->unit == TIDE_GATE_NS) return no_limit_for_time(r, n, def);
    const tide_gate_node *other = tide__gate_find(rule, "gain_warn");
    if (other == NULL) other = tide__gate_find(rule, "gain_fail");
    if (other != NULL)
        return tide__gate_contradiction(r, n, other, "'gain' says what a gain does, '%s' too: keep one of them",
                                        other->key);
    out->has_gain = true;
    out->gain = (tide__gate_gain)word;
    return TIDE_OK;
}

static tide_status read_table(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                              tide__gate_rule *out) {
    const char *known[TIDE__GATE_N_FIELDS + 1 + TIDE_N_KINDS];
    size_t n_known = 0;
    for (size_t f = 0; f < TIDE__GATE_N_FIELDS; f++) known[n_known++] = field_key(def, f);
    known[n_known++] = "gain";
    if (def->per_kind && out->kind < 0) {
        for (int k = 0; k < TIDE_N_KINDS; k++) known[n_known++] = tide_memory_kind_name((tide_memory_kind)k);
    }
    char what[96];
    snprintf(what, sizeof what, "a rule of %s", def->id);
    TIDE_TRY(tide__gate_keys(r, n, what, known, n_known));
    if (n->n == 0) return tide__gate_bad(r, n, "the rule of %s says nothing", def->id);
    for (size_t f = 0; f < TIDE__GATE_N_FIELDS; f++) {
        const tide_gate_node *field = tide__gate_find(n, known[f]);
        if (field != NULL) TIDE_TRY(read_field(r, field, def, f, out));
    }
    const tide_gate_node *gain = tide__gate_find(n, "gain");
    return gain != NULL ? read_gain(r, gain, def, n, out) : TIDE_OK;
}

/// `out` has its metric and kind.
static tide_status read_rule(const tide__gate_reader *r, const tide_gate_node *n, tide__gate_rule *out) {
    const tide_gate_metric_def *def = tide_gate_metric_get(out->metric);
    out->node = n;
    out->place = tide__gate_keep_place(r, n);
    if (out->place == NULL) return tide__gate_no_memory(r);
    if (n->type == TIDE_GATE_NODE_TABLE) return read_table(r, n, def, out);
    if (n->type == TIDE_GATE_NODE_TEXT) return read_word(r, n, def, out);
    const tide_status st = tide__gate_bad(r, n, "the rule of %.64s is neither a table nor a word", n->key);
    tide_error_hint(r->err, "%.64s = { fail = \"0\" }, or one of \"off\", \"report\", \"warn\", \"fail\"", n->key);
    return st;
}

// ---- a layer of them ----

static tide_status append(const tide__gate_reader *r, tide__gate_layer *layer, const tide__gate_rule *rule) {
    for (size_t i = 0; i < layer->n; i++) {
        const tide__gate_rule *other = &layer->rules[i];
        if (other->metric != rule->metric || other->kind != rule->kind) continue;
        char name[64];
        return tide__gate_contradiction(r, rule->node, other->node, "two rules of %s in one table",
                                        tide_gate_metric_text(rule->metric, rule->kind, name, sizeof name));
    }
    if (tide_host_grow(&layer->rules, &layer->cap, layer->n + 1, sizeof *layer->rules) != TIDE_OK)
        return tide__gate_no_memory(r);
    layer->rules[layer->n++] = *rule;
    return TIDE_OK;
}

static tide_status add_rule(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_metric m, int kind,
                            tide__gate_layer *layer) {
    tide__gate_rule rule = {.metric = m, .kind = kind};
    TIDE_TRY(read_rule(r, n, &rule));
    bool says = rule.is_word || rule.has_gain;
    for (size_t f = 0; f < TIDE__GATE_N_FIELDS; f++) says = says || rule.fields[f].is_set;
    return says ? append(r, layer, &rule) : TIDE_OK; // a table that holds only kinds says nothing of all of them
}

/// `[rules.kind_peak_bytes.Workspace]`: a kind as a table in the metric's, beside the key "kind_peak_bytes.Workspace".
static tide_status add_kinds(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_metric m,
                             tide__gate_layer *layer) {
    if (n->type != TIDE_GATE_NODE_TABLE || !tide_gate_metric_get(m)->per_kind) return TIDE_OK;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_gate_node *of_kind = tide__gate_find(n, tide_memory_kind_name((tide_memory_kind)k));
        if (of_kind != NULL) TIDE_TRY(add_rule(r, of_kind, m, k, layer));
    }
    return TIDE_OK;
}

static tide_status add_named(const tide__gate_reader *r, const tide_gate_node *n, tide__gate_layer *layer) {
    tide_gate_metric m;
    int kind;
    tide_error why = TIDE_ERROR_INIT;
    if (tide_gate_metric_parse(n->key, &m, &kind, &why) != TIDE_OK) {
        const tide_status st = tide__gate_bad(r, n, "%s", why.msg);
        tide_error_hint(r->err, "%s", why.hint);
        return st;
    }
    TIDE_TRY(add_rule(r, n, m, kind, layer));
    return kind < 0 ? add_kinds(r, n, m, layer) : TIDE_OK;
}

/// max_bytes is the budget of total_bytes, beside what the rules say of it.
static tide_status add_max_bytes(const tide__gate_reader *r, const tide_gate_node *n, tide__gate_layer *layer) {
    const tide_gate_metric_def *def = tide_gate_metric_get(TIDE_GATE_TOTAL);
    tide__gate_rule *rule = NULL;
    for (size_t i = 0; i < layer->n; i++) {
        if (layer->rules[i].metric == TIDE_GATE_TOTAL) rule = &layer->rules[i];
    }
    const bool is_there = rule != NULL && (rule->is_word || rule->fields[TIDE__GATE_BUDGET].is_set);
    if (is_there)
        return tide__gate_contradiction(r, n, rule->is_word ? rule->node : rule->fields[TIDE__GATE_BUDGET].node,
                                        "'max_bytes' is the budget of total_bytes, whose rule says otherwise");
    if (rule != NULL) return read_field(r, n, def, TIDE__GATE_BUDGET, rule);
    tide__gate_rule own = {.metric = TIDE_GATE_TOTAL, .kind = -1, .node = n, .place = tide__gate_keep_place(r, n)};
    if (own.place == NULL) return tide__gate_no_memory(r);
    TIDE_TRY(read_field(r, n, def, TIDE__GATE_BUDGET, &own));
    return append(r, layer, &own);
}

tide_status tide__gate_layer_read(const tide__gate_reader *r, const tide_gate_node *rules,
                                  const tide_gate_node *max_bytes, tide__gate_layer *out) {
    if (rules != NULL) {
        TIDE_TRY(tide__gate_is(r, rules, TIDE_GATE_NODE_TABLE));
        for (const tide_gate_node *n = rules->first; n != NULL; n = n->next) TIDE_TRY(add_named(r, n, out));
    }
    return max_bytes != NULL ? add_max_bytes(r, max_bytes, out) : TIDE_OK;
}
