// SPDX-License-Identifier: MIT
//
// A result as `tidemark.check`, version 3: docs/schemas/check.json describes it. See outputs.h.
#include "gate/out_json.h"

enum { SHARE_DIGITS = 12 }; // significant ones, of what is no whole number

void tide__gate_add_text(tide_json_out *j, const char *key, const char *text, size_t max_chars) {
    tide_text clean = {0};
    if (text != NULL) tide__gate_clean(&clean, text, max_chars);
    if (clean.failed) j->out->failed = true;
    tide_json_text(j, key, text != NULL ? tide_text_str(&clean) : NULL);
    tide_text_deinit(&clean);
}

void tide__gate_add_plain(tide_json_out *j, const char *key, tide_text *text) {
    if (text->failed) j->out->failed = true;
    tide_json_text(j, key, tide_text_str(text));
    tide_text_deinit(text);
    *text = (tide_text){0};
}

/// Beyond 2^63 - 1, where the integers of many readers end, a number with an exponent: JSON does not tell them apart.
static void add_u64(tide_json_out *j, const char *key, uint64_t value) {
    if (value <= INT64_MAX)
        tide_json_u64(j, key, value);
    else
        tide_json_number(j, key, (double)value, SHARE_DIGITS);
}

static void add_text(tide_json_out *j, const char *key, const char *text) {
    tide__gate_add_text(j, key, text, TIDE__GATE_JSON_CHARS);
}

/// NULL and "" are null: there is none.
static void add_text_or_null(tide_json_out *j, const char *key, const char *text) {
    add_text(j, key, text != NULL && text[0] != '\0' ? text : NULL);
}

static void add_change(tide_json_out *j, const char *key, uint64_t a, uint64_t b) {
    const uint64_t by = b < a ? a - b : b - a;
    if (by > INT64_MAX)
        tide_json_number(j, key, b < a ? -(double)by : (double)by, SHARE_DIGITS);
    else
        tide_json_i64(j, key, b < a ? -(int64_t)by : (int64_t)by);
}

static void add_value(tide_json_out *j, const char *key, tide_gate_unit unit, tide_gate_value v) {
    if (!v.known)
        tide_json_null(j, key);
    else if (unit == TIDE_GATE_SHARE)
        tide_json_number(j, key, v.real, SHARE_DIGITS);
    else
        add_u64(j, key, v.u);
}

static void add_change_of(tide_json_out *j, tide_gate_unit unit, tide_gate_value a, tide_gate_value b) {
    if (!a.known || !b.known)
        tide_json_null(j, "change");
    else if (unit == TIDE_GATE_SHARE)
        tide_json_number(j, "change", b.real - a.real, SHARE_DIGITS);
    else
        add_change(j, "change", a.u, b.u);
}

static void add_row(tide_json_out *j, const tide_gate_row *row) {
    static const char *const units[] = {"bytes", "count", "share", "ns"};
    const tide_gate_metric_def *def = tide_gate_metric_get(row->metric);
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "metric", def->id);
    tide_json_text(j, "kind", row->kind < 0 ? NULL : tide_memory_kind_name((tide_memory_kind)row->kind));
    tide_json_text(j, "unit", units[def->unit]);
    add_value(j, "baseline", def->unit, row->baseline);
    add_value(j, "current", def->unit, row->current);
    add_change_of(j, def->unit, row->baseline, row->current);
    tide_json_text(j, "verdict", tide_gate_verdict_name(row->verdict));
    tide_json_bool(j, "over_budget", row->over_budget);
    tide_json_bool(j, "is_gain", row->is_gain);
    tide_json_bool(j, "other_machine", row->elsewhere);
    add_text_or_null(j, "limit", row->limit);
    tide_json_close(j, '}');
}

static void add_cause(tide_json_out *j, const tide_gate_cause *cause) {
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "kind", tide_gate_cause_name(cause->kind));
    add_text(j, "name", cause->name);
    add_text_or_null(j, "owner", cause->owner);
    add_text_or_null(j, "baseline", cause->a);
    add_text_or_null(j, "current", cause->b);
    add_u64(j, "baseline_bytes", cause->a_bytes);
    add_u64(j, "current_bytes", cause->b_bytes);
    add_u64(j, "n", cause->n);
    add_text(j, "text", cause->text);
    tide_json_close(j, '}');
}

static void add_parts(tide_json_out *j, const char *key, const tide_gate_part *parts, size_t n) {
    tide_json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        tide_json_open(j, NULL, '{');
        add_text(j, "key", parts[i].key);
        add_u64(j, "baseline_bytes", parts[i].a_bytes);
        add_u64(j, "current_bytes", parts[i].b_bytes);
        add_change(j, "change_bytes", parts[i].a_bytes, parts[i].b_bytes);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

/// What was measured, of one side; null where that side has no such case.
static void add_side(tide_json_out *j, const char *key, const tide_gate_case *c) {
    if (c == NULL) {
        tide_json_null(j, key);
        return;
    }
    tide_json_open(j, key, '{');
    add_text_or_null(j, "model", c->model);
    add_text_or_null(j, "inputs", c->inputs);
    add_text_or_null(j, "error", c->error);
    tide_json_bool(j, "skipped", c->skipped);
    add_text_or_null(j, "peak_step", c->peak_step);
    add_u64(j, "held_bytes", c->held_bytes);
    add_u64(j, "holes_bytes", c->holes_bytes);
    tide_json_open(j, "settings", '[');
    for (size_t i = 0; i < c->n_settings; i++) {
        tide_json_open(j, NULL, '{');
        add_text(j, "key", c->settings[i].key);
        add_text(j, "value", c->settings[i].value);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

static void add_judged(tide_json_out *j, const tide_gate_judged *c) {
    tide_json_open(j, NULL, '{');
    add_text(j, "key", c->key);
    add_text_or_null(j, "renamed_from", c->renamed_from);
    tide_json_text(j, "state", tide_gate_state_name(c->state));
    tide_json_text(j, "verdict", tide_gate_verdict_name(c->verdict));
    add_text_or_null(j, "reason", c->reason);
    add_side(j, "baseline", c->baseline);
    add_side(j, "current", c->current);
    tide_json_open(j, "rows", '[');
    for (size_t i = 0; i < c->n_rows; i++) add_row(j, &c->rows[i]);
    tide_json_close(j, ']');
    tide_json_open(j, "causes", '[');
    for (size_t i = 0; i < c->n_causes; i++) add_cause(j, &c->causes[i]);
    tide_json_close(j, ']');
    add_parts(j, "by_operator", c->by_operator, c->n_by_operator);
    add_parts(j, "by_kind", c->by_kind, c->n_by_kind);
    tide_json_close(j, '}');
}

static void add_counts(tide_json_out *j, const tide_gate_result *r) {
    tide_json_open(j, "counts", '{');
    add_u64(j, "cases", r->n);
    add_u64(j, "pass", r->n_pass);
    add_u64(j, "warn", r->n_warn);
    add_u64(j, "fail", r->n_fail);
    add_u64(j, "not_comparable", r->n_not_comparable);
    add_u64(j, "added", r->n_added);
    add_u64(j, "removed", r->n_removed);
    add_u64(j, "unmeasured", r->n_unmeasured);
    tide_json_close(j, '}');
}

/// The command that accepts what is measured, or makes the first baseline; null where neither is of use.
static void add_command(tide_json_out *j, const tide_gate_result *r) {
    tide_text command = {0};
    const tide__gate_advice advice = tide__gate_advise(r);
    if (advice.accept || advice.make) tide__gate_say_command(&command, r);
    if (command.failed) j->out->failed = true;
    tide_json_text_or_null(j, "accept", tide_text_str(&command));
    tide_text_deinit(&command);
}

void tide_gate_print_json(const tide_gate_result *r, tide_text *out) {
    tide_json_out doc = {.out = out, .indent = true}, *const j = &doc;
    tide_json_open(j, NULL, '{');
    tide_json_text(j, "schema", "tidemark.check");
    tide_json_i64(j, "version", 3);
    tide_json_text(j, "verdict", tide_gate_verdict_name(r->verdict));
    tide_json_i64(j, "exit_code", r->exit_code);
    add_text_or_null(j, "reason", r->reason);
    add_text_or_null(j, "config", r->config_path);
    add_text_or_null(j, "baseline", r->baseline_path);
    add_text_or_null(j, "last_update", r->last_update);
    add_text_or_null(j, "other_machine", r->machine);
    add_command(j, r);
    add_counts(j, r);
    tide_json_open(j, "cases", '[');
    for (size_t i = 0; i < r->n; i++) add_judged(j, &r->cases[i]);
    tide_json_close(j, ']');
    tide_json_close(j, '}');
    tide_text_add(out, "\n");
}
