// SPDX-License-Identifier: MIT
//
// A result as `tidemark.check`, version 3: docs/schemas/check.json describes it. See outputs.h.
#include "gate/out_json.h"

#include <math.h>

/// NULL values mark the document as failed: a key is never left out for want of memory.
void tide__gate_put(tide__gate_doc *d, json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) d->failed = true;
}

void tide__gate_push(tide__gate_doc *d, json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0) d->failed = true;
}

json_t *tide__gate_string(tide__gate_doc *d, const char *text, size_t max_chars) {
    if (text == NULL) return json_null();
    tide_text clean = {0};
    tide__gate_clean(&clean, text, max_chars);
    if (clean.failed) d->failed = true;
    json_t *value = json_string(tide_text_str(&clean));
    tide_text_deinit(&clean);
    return value;
}

json_t *tide__gate_plain(tide__gate_doc *d, tide_text *text) {
    if (text->failed) d->failed = true;
    json_t *value = json_string(tide_text_str(text));
    tide_text_deinit(text);
    *text = (tide_text){0};
    return value;
}

/// jansson's integers end at 2^63 - 1; what is beyond is written as a real, which JSON does not tell apart.
static json_t *whole(uint64_t value) {
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *text_of(tide__gate_doc *d, const char *text) {
    return tide__gate_string(d, text, TIDE__GATE_JSON_CHARS);
}

/// NULL and "" are null: there is none.
static json_t *text_or_null(tide__gate_doc *d, const char *text) {
    return text_of(d, text != NULL && text[0] != '\0' ? text : NULL);
}

static json_t *change(uint64_t a, uint64_t b) {
    const uint64_t by = b < a ? a - b : b - a;
    if (by > INT64_MAX) return json_real(b < a ? -(double)by : (double)by);
    return json_integer(b < a ? -(json_int_t)by : (json_int_t)by);
}

static json_t *value_of(tide_gate_unit unit, tide_gate_value v) {
    if (!v.known) return json_null();
    if (unit != TIDE_GATE_SHARE) return whole(v.u);
    return isfinite(v.real) ? json_real(v.real) : json_null();
}

static json_t *change_of(tide_gate_unit unit, tide_gate_value a, tide_gate_value b) {
    if (!a.known || !b.known) return json_null();
    if (unit != TIDE_GATE_SHARE) return change(a.u, b.u);
    return isfinite(b.real - a.real) ? json_real(b.real - a.real) : json_null();
}

static json_t *row_json(tide__gate_doc *d, const tide_gate_row *row) {
    static const char *const units[] = {"bytes", "count", "share", "ns"};
    const tide_gate_metric_def *def = tide_gate_metric_get(row->metric);
    json_t *o = json_object();
    tide__gate_put(d, o, "metric", json_string(def->id));
    tide__gate_put(d, o, "kind",
                   row->kind < 0 ? json_null() : json_string(tide_memory_kind_name((tide_memory_kind)row->kind)));
    tide__gate_put(d, o, "unit", json_string(units[def->unit]));
    tide__gate_put(d, o, "baseline", value_of(def->unit, row->baseline));
    tide__gate_put(d, o, "current", value_of(def->unit, row->current));
    tide__gate_put(d, o, "change", change_of(def->unit, row->baseline, row->current));
    tide__gate_put(d, o, "verdict", json_string(tide_gate_verdict_name(row->verdict)));
    tide__gate_put(d, o, "over_budget", json_boolean(row->over_budget));
    tide__gate_put(d, o, "is_gain", json_boolean(row->is_gain));
    tide__gate_put(d, o, "other_machine", json_boolean(row->elsewhere));
    tide__gate_put(d, o, "limit", text_or_null(d, row->limit));
    return o;
}

static json_t *cause_json(tide__gate_doc *d, const tide_gate_cause *cause) {
    json_t *o = json_object();
    tide__gate_put(d, o, "kind", json_string(tide_gate_cause_name(cause->kind)));
    tide__gate_put(d, o, "name", text_of(d, cause->name));
    tide__gate_put(d, o, "owner", text_or_null(d, cause->owner));
    tide__gate_put(d, o, "baseline", text_or_null(d, cause->a));
    tide__gate_put(d, o, "current", text_or_null(d, cause->b));
    tide__gate_put(d, o, "baseline_bytes", whole(cause->a_bytes));
    tide__gate_put(d, o, "current_bytes", whole(cause->b_bytes));
    tide__gate_put(d, o, "n", whole(cause->n));
    tide__gate_put(d, o, "text", text_of(d, cause->text));
    return o;
}

static json_t *parts_json(tide__gate_doc *d, const tide_gate_part *parts, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        tide__gate_put(d, o, "key", text_of(d, parts[i].key));
        tide__gate_put(d, o, "baseline_bytes", whole(parts[i].a_bytes));
        tide__gate_put(d, o, "current_bytes", whole(parts[i].b_bytes));
        tide__gate_put(d, o, "change_bytes", change(parts[i].a_bytes, parts[i].b_bytes));
        tide__gate_push(d, list, o);
    }
    return list;
}

/// What was measured, of one side; null where that side has no such case.
static json_t *side_json(tide__gate_doc *d, const tide_gate_case *c) {
    if (c == NULL) return json_null();
    json_t *o = json_object(), *settings = json_array();
    for (size_t i = 0; i < c->n_settings; i++) {
        json_t *s = json_object();
        tide__gate_put(d, s, "key", text_of(d, c->settings[i].key));
        tide__gate_put(d, s, "value", text_of(d, c->settings[i].value));
        tide__gate_push(d, settings, s);
    }
    tide__gate_put(d, o, "model", text_or_null(d, c->model));
    tide__gate_put(d, o, "inputs", text_or_null(d, c->inputs));
    tide__gate_put(d, o, "error", text_or_null(d, c->error));
    tide__gate_put(d, o, "skipped", json_boolean(c->skipped));
    tide__gate_put(d, o, "peak_step", text_or_null(d, c->peak_step));
    tide__gate_put(d, o, "held_bytes", whole(c->held_bytes));
    tide__gate_put(d, o, "holes_bytes", whole(c->holes_bytes));
    tide__gate_put(d, o, "settings", settings);
    return o;
}

static json_t *judged_json(tide__gate_doc *d, const tide_gate_judged *c) {
    json_t *o = json_object(), *rows = json_array(), *causes = json_array();
    for (size_t i = 0; i < c->n_rows; i++) tide__gate_push(d, rows, row_json(d, &c->rows[i]));
    for (size_t i = 0; i < c->n_causes; i++) tide__gate_push(d, causes, cause_json(d, &c->causes[i]));
    tide__gate_put(d, o, "key", text_of(d, c->key));
    tide__gate_put(d, o, "renamed_from", text_or_null(d, c->renamed_from));
    tide__gate_put(d, o, "state", json_string(tide_gate_state_name(c->state)));
    tide__gate_put(d, o, "verdict", json_string(tide_gate_verdict_name(c->verdict)));
    tide__gate_put(d, o, "reason", text_or_null(d, c->reason));
    tide__gate_put(d, o, "baseline", side_json(d, c->baseline));
    tide__gate_put(d, o, "current", side_json(d, c->current));
    tide__gate_put(d, o, "rows", rows);
    tide__gate_put(d, o, "causes", causes);
    tide__gate_put(d, o, "by_operator", parts_json(d, c->by_operator, c->n_by_operator));
    tide__gate_put(d, o, "by_kind", parts_json(d, c->by_kind, c->n_by_kind));
    return o;
}

static json_t *counts_json(tide__gate_doc *d, const tide_gate_result *r) {
    json_t *o = json_object();
    tide__gate_put(d, o, "cases", whole(r->n));
    tide__gate_put(d, o, "pass", whole(r->n_pass));
    tide__gate_put(d, o, "warn", whole(r->n_warn));
    tide__gate_put(d, o, "fail", whole(r->n_fail));
    tide__gate_put(d, o, "not_comparable", whole(r->n_not_comparable));
    tide__gate_put(d, o, "added", whole(r->n_added));
    tide__gate_put(d, o, "removed", whole(r->n_removed));
    tide__gate_put(d, o, "unmeasured", whole(r->n_unmeasured));
    return o;
}

json_t *tide__gate_done(tide__gate_doc *d, json_t *doc) {
    if (!d->failed) return doc;
    json_decref(doc);
    return NULL;
}

json_t *tide_gate_to_json(const tide_gate_result *r) {
    tide__gate_doc d = {0};
    json_t *doc = json_object(), *cases = json_array();
    tide_text command = {0};
    const tide__gate_advice advice = tide__gate_advise(r);
    if (advice.accept || advice.make) tide__gate_say_command(&command, r);
    if (command.failed) d.failed = true;
    for (size_t i = 0; i < r->n; i++) tide__gate_push(&d, cases, judged_json(&d, &r->cases[i]));
    tide__gate_put(&d, doc, "schema", json_string("tidemark.check"));
    tide__gate_put(&d, doc, "version", json_integer(3));
    tide__gate_put(&d, doc, "verdict", json_string(tide_gate_verdict_name(r->verdict)));
    tide__gate_put(&d, doc, "exit_code", json_integer(r->exit_code));
    tide__gate_put(&d, doc, "reason", text_or_null(&d, r->reason));
    tide__gate_put(&d, doc, "config", text_or_null(&d, r->config_path));
    tide__gate_put(&d, doc, "baseline", text_or_null(&d, r->baseline_path));
    tide__gate_put(&d, doc, "last_update", text_or_null(&d, r->last_update));
    tide__gate_put(&d, doc, "other_machine", text_or_null(&d, r->machine));
    tide__gate_put(&d, doc, "accept", command.len > 0 ? tide__gate_plain(&d, &command) : json_null());
    tide__gate_put(&d, doc, "counts", counts_json(&d, r));
    tide__gate_put(&d, doc, "cases", cases);
    tide_text_deinit(&command);
    return tide__gate_done(&d, doc);
}
