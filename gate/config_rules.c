// SPDX-License-Identifier: MIT
//
// Rules as a configuration writes them, one layer at a time, with their limits ("64KiB and 2 %") and budgets ("64MiB").
// See config_internal.h.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "gate/config_internal.h"

enum {
    MAX_DIGITS = 15,       // of a decimal: a double holds them exactly
    MILLIONTHS_OF = 10000, // a percentage point in millionths of the whole
    MAX_PERCENT = 1000 * 1000,
};

bool tide__gate_parse_decimal(const char *text, size_t len, double *out) {
    uint64_t digits = 0;
    double scale = 1;
    size_t n = 0;
    bool has_point = false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.' && !has_point && n > 0 && i + 1 < len) {
            has_point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || ++n > MAX_DIGITS) return false;
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        if (has_point) scale *= 10;
    }
    if (n == 0) return false;
    *out = (double)digits / scale;
    return true;
}

// ---- parts of a text ----

typedef struct part {
    const char *text;
    size_t len;
} part;

static part trimmed(const char *text, size_t len) {
    while (len > 0 && *text == ' ') text++, len--;
    while (len > 0 && text[len - 1] == ' ') len--;
    return (part){text, len};
}

/// The part in front of the last `suffix`, if it ends in it.
static bool without(part p, const char *suffix, part *out) {
    const size_t n = strlen(suffix);
    if (p.len < n || memcmp(p.text + p.len - n, suffix, n) != 0) return false;
    *out = trimmed(p.text, p.len - n);
    return true;
}

/// "A and B": both; else the whole. @return how many
static size_t split(const char *text, part out[2]) {
    static const char word[] = " and ";
    const char *at = strstr(text, word);
    out[0] = trimmed(text, at != NULL ? (size_t)(at - text) : strlen(text));
    if (at == NULL) return 1;
    const char *rest = at + sizeof word - 1;
    out[1] = trimmed(rest, strlen(rest));
    return 2;
}

// ---- amounts ----

static const char *unit_example(tide_gate_unit unit) {
    switch (unit) {
    case TIDE_GATE_BYTES:
        return "\"64KiB\", \"2 %\", \"64KiB and 2 %\", or \"0\" for any change";
    case TIDE_GATE_COUNT:
        return "\"3\", \"2 %\", \"3 and 2 %\", or \"0\" for any change";
    default:
        return "\"2 points\" (of a percentage), \"5 %\" (of the baseline), or \"0\" for any change";
    }
}

static bool parse_count(part p, uint64_t *out) {
    uint64_t n = 0;
    for (size_t i = 0; i < p.len; i++) {
        if (p.text[i] < '0' || p.text[i] > '9') return false;
        if (!tide_mul_u64(n, 10, &n) || !tide_add_u64(n, (uint64_t)(p.text[i] - '0'), &n)) return false;
    }
    *out = n;
    return p.len > 0;
}

static bool parse_bytes(part p, uint64_t *out) {
    char text[64];
    if (p.len == 0 || p.len >= sizeof text) return false;
    memcpy(text, p.text, p.len);
    text[p.len] = '\0';
    return tide_parse_bytes(text, out, NULL) == TIDE_OK;
}

/// "2 points" in millionths; "0" alone needs no unit.
static bool parse_points(part p, uint64_t *out) {
    part number;
    double points;
    if (p.len == 1 && p.text[0] == '0') {
        *out = 0;
        return true;
    }
    if (!without(p, "points", &number) && !without(p, "point", &number)) return false;
    if (!tide__gate_parse_decimal(number.text, number.len, &points) || points > MAX_PERCENT) return false;
    *out = (uint64_t)llround(points * MILLIONTHS_OF);
    return true;
}

static bool parse_amount(tide_gate_unit unit, part p, uint64_t *out) {
    switch (unit) {
    case TIDE_GATE_BYTES:
        return parse_bytes(p, out);
    case TIDE_GATE_SHARE:
        return parse_points(p, out);
    default:
        return parse_count(p, out);
    }
}

/// The error for an amount that cannot be read. Its usual reason is the unit of another metric.
static tide_status bad_amount(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                              const char *text, const char *example) {
    const part whole = trimmed(text, strlen(text));
    uint64_t ignored;
    const char *is = NULL;
    if (def->unit != TIDE_GATE_BYTES && parse_bytes(whole, &ignored) && !parse_count(whole, &ignored)) is = "a size";
    if (def->unit != TIDE_GATE_SHARE && parse_points(whole, &ignored)) is = "an amount of a share";
    static const char *const units[] = {"bytes", "a count", "a share", "a time"};
    tide_status st;
    if (is != NULL)
        st = tide__gate_bad(r, n, "'%.64s' is %s, and %s is %s", text, is, def->id, units[def->unit]);
    else
        st = tide__gate_bad(r, n, "key '%.32s': '%.64s' is no limit of %s", n->key != NULL ? n->key : "?", text,
                            def->id);
    tide_error_hint(r->err, "write %s", example);
    return st;
}

// ---- limits ----

/// Reads one part of a limit; false: it is not a limit.
static bool take_part(tide_gate_unit unit, part p, tide_gate_limit *out) {
    part number;
    if (without(p, "%", &number)) {
        if (out->has_percent || !tide__gate_parse_decimal(number.text, number.len, &out->percent)) return false;
        out->has_percent = true;
        return out->percent <= MAX_PERCENT;
    }
    if (out->has_amount || !parse_amount(unit, p, &out->amount)) return false;
    out->has_amount = true;
    return true;
}

static tide_status read_limit(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                              tide_gate_limit *out) {
    tide_gate_limit limit = {.given = true};
    if (n->type == TIDE_GATE_NODE_INTEGER) {
        TIDE_TRY(tide__gate_count(r, n, 0, INT64_MAX, &limit.amount));
        limit.has_amount = true;
        if (def->unit == TIDE_GATE_SHARE && limit.amount > 0) {
            const tide_status st = tide__gate_bad(r, n, "%s is a share: an amount of it needs its unit", def->id);
            tide_error_hint(r->err, "write %s", unit_example(def->unit));
            return st;
        }
    } else {
        const char *text;
        part parts[2];
        TIDE_TRY(tide__gate_text(r, n, &text));
        const size_t n_parts = split(text, parts);
        bool is_good = true;
        for (size_t i = 0; i < n_parts; i++) is_good = is_good && take_part(def->unit, parts[i], &limit);
        if (!is_good) return bad_amount(r, n, def, text, unit_example(def->unit));
    }
    if (limit.has_amount && limit.amount == 0)
        limit.has_amount = false; // any change exceeds it, as if no amount were given
    if (limit.has_percent && limit.percent == 0) limit.has_percent = false;
    *out = limit;
    return TIDE_OK;
}

static tide_status share_budget(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                                tide_gate_value *out) {
    const char *text;
    part number;
    double percent;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (!without(trimmed(text, strlen(text)), "%", &number) ||
        !tide__gate_parse_decimal(number.text, number.len, &percent) || percent > MAX_PERCENT)
        return bad_amount(r, n, def, text, "a percentage: \"30 %\"");
    if (def->better == TIDE_GATE_MORE && percent > 100)
        return tide__gate_bad(r, n, "key '%s': %s is never above 100 %%", n->key, def->id);
    *out = (tide_gate_value){.known = true, .real = percent / 100};
    return TIDE_OK;
}

static tide_status read_budget(const tide__gate_reader *r, const tide_gate_node *n, const tide_gate_metric_def *def,
                               tide_gate_value *out) {
    if (def->unit == TIDE_GATE_SHARE) return share_budget(r, n, def, out);
    *out = (tide_gate_value){.known = true};
    if (n->type == TIDE_GATE_NODE_INTEGER) return tide__gate_count(r, n, 0, INT64_MAX, &out->u);
    const char *text;
    TIDE_TRY(tide__gate_text(r, n, &text));
    if (strchr(text, '%') != NULL) {
        const tide_status st =
            tide__gate_bad(r, n, "key '%s': a budget of %s is an amount, not a share of a baseline", n->key, def->id);
        tide_error_hint(r->err, "a share of the baseline is what `fail` takes: fail = \"%.64s\"", text);
        return st;
    }
    if (parse_amount(def->unit, trimmed(text, strlen(text)), &out->u)) return TIDE_OK;
    return bad_amount(r, n, def, text, def->unit == TIDE_GATE_BYTES ? "\"64MiB\" or 65536" : "a number: 3");
}

// ---- one rule ----

static const char *const field_keys[TIDE__GATE_N_FIELDS] = {"warn",      "fail", "gain_warn",
                                                            "gain_fail", "max",  "warn_max"};

/// For figures where more is better a budget is a minimum.
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

/// "off": the metric is ignored; "report": it is only shown; "warn", "fail": what any change for the worse does.
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
    tide__gate_field f = {.is_set = true, .node = n};
    TIDE_TRY(tide__gate_keep_place(r, n, &f.place));
    if (def->unit == TIDE_GATE_NS) return no_limit_for_time(r, n, def);
    f.is_off = n->type == TIDE_GATE_NODE_TEXT && n->text_len == 3 && memcmp(n->text, "off", 3) == 0;
    if (f.is_off) {
        out->fields[field] = f;
        return TIDE_OK;
    }
    if (field == TIDE__GATE_BUDGET || field == TIDE__GATE_WARN_BUDGET)
        TIDE_TRY(read_budget(r, n, def, &f.value));
    else
        TIDE_TRY(read_limit(r, n, def, &f.limit));
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
    TIDE_TRY(tide__gate_keep_place(r, n, &out->place));
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
    TIDE_TRY(TIDE_GROW(&layer->rules, &layer->cap, layer->n + 1, r->err, "to read '%s'", r->name));
    layer->rules[layer->n++] = *rule;
    return TIDE_OK;
}

static tide_status add_rule(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_metric m, int kind,
                            tide__gate_layer *layer) {
    tide__gate_rule rule = {.metric = m, .kind = kind};
    TIDE_TRY(read_rule(r, n, &rule));
    bool has_rule = rule.is_word || rule.has_gain;
    for (size_t f = 0; f < TIDE__GATE_N_FIELDS; f++) has_rule = has_rule || rule.fields[f].is_set;
    return has_rule ? append(r, layer, &rule)
                    : TIDE_OK; // a table that has only rules of kinds gives no rule for all kinds
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

static tide_status add_budget_of(const tide__gate_reader *r, const tide_gate_node *n, tide_gate_metric m,
                                 tide__gate_layer *layer) {
    const tide_gate_metric_def *def = tide_gate_metric_get(m);
    tide__gate_rule *rule = NULL;
    for (size_t i = 0; i < layer->n; i++) {
        if (layer->rules[i].metric == m) rule = &layer->rules[i];
    }
    const bool is_there = rule != NULL && (rule->is_word || rule->fields[TIDE__GATE_BUDGET].is_set);
    if (is_there)
        return tide__gate_contradiction(r, n, rule->is_word ? rule->node : rule->fields[TIDE__GATE_BUDGET].node,
                                        "'max_bytes' is the budget of process_bytes and of total_bytes, and a rule of "
                                        "one of them says otherwise");
    if (rule != NULL) return read_field(r, n, def, TIDE__GATE_BUDGET, rule);
    tide__gate_rule own = {.metric = m, .kind = -1, .node = n};
    TIDE_TRY(tide__gate_keep_place(r, n, &own.place));
    TIDE_TRY(read_field(r, n, def, TIDE__GATE_BUDGET, &own));
    return append(r, layer, &own);
}

/// max_bytes is what there is for the process of a model, and for the tensors of what is none; the rules may set other
/// limits of them.
static tide_status add_max_bytes(const tide__gate_reader *r, const tide_gate_node *n, tide__gate_layer *layer) {
    TIDE_TRY(add_budget_of(r, n, TIDE_GATE_TOTAL, layer));
    return add_budget_of(r, n, TIDE_GATE_PROCESS, layer);
}

tide_status tide__gate_layer_read(const tide__gate_reader *r, const tide_gate_node *rules,
                                  const tide_gate_node *max_bytes, tide__gate_layer *out) {
    if (rules != NULL) {
        TIDE_TRY(tide__gate_is(r, rules, TIDE_GATE_NODE_TABLE));
        for (const tide_gate_node *n = rules->first; n != NULL; n = n->next) TIDE_TRY(add_named(r, n, out));
    }
    return max_bytes != NULL ? add_max_bytes(r, max_bytes, out) : TIDE_OK;
}
