// SPDX-License-Identifier: MIT
//
// What a pane shows as a JSON document: "tidemark.tui.<pane>", version 1, keys in a fixed order, sizes as integers of
// bytes, null for what is not known. See tui.h.
//
//     schema, version, title, axis, cursor_step|cursor_ns, cursor_event, cursor_bytes, window: [from, to)
//     what the pane says of itself (explain: held_bytes, … compare: a_bytes, b_bytes, … gantt: hidden_items, …)
//     its tables, each an array of objects (tui/sheet.h)
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/memory/allocator.h"
#include "tui/pane_document.h"

// ---- values: jansson steals every reference; a NULL among them makes the whole document fail ----

static json_t *bytes_value(uint64_t bytes) {
    if (bytes == TIDE_UNKNOWN_BYTES) return json_null();
    return bytes <= INT64_MAX ? json_integer((json_int_t)bytes) : json_real((double)bytes);
}

/// The exact name, as far as JSON has it: what is unsafe is escaped when the document is printed.
static json_t *text_value(const char *text) {
    tide_text valid = {0};
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(text, &cp)) > 0; text += n)
        tide_text_add_n(&valid, cp == TIDE_UTF8_BAD ? TIDE_UTF8_REPLACEMENT : text, cp == TIDE_UTF8_BAD ? 3 : n);
    json_t *value = valid.failed ? NULL : json_stringn(tide_text_str(&valid), valid.len);
    tide_text_deinit(&valid);
    return value;
}

static void set(json_t *object, const char *key, json_t *value, bool *ok) {
    if (json_object_set_new(object, key, value) != 0) *ok = false;
}

static void set_time(json_t *object, const char *name, const tide_subject_facts *f, int64_t t, bool *ok) {
    char key[64];
    (void)snprintf(key, sizeof key, "%s_%s", name, f->axis == TIDE_AXIS_STEPS ? "step" : "ns");
    set(object, key, json_integer(t), ok);
}

static json_t *value_of(const tide_tui_sheet *sheet, size_t field, tide_tui_value v) {
    if (!v.known) return json_null();
    switch (sheet->fields[field].unit) {
    case TIDE_UNIT_TEXT:
        return text_value(v.text);
    case TIDE_UNIT_CHANGE:
    case TIDE_UNIT_TIME:
        return json_integer(v.number);
    case TIDE_UNIT_FLAG:
        return json_boolean(v.count != 0);
    default:
        return bytes_value(v.count);
    }
}

static json_t *rows_of(const tide_tui_sheet *sheet, bool *ok) {
    char buf[TIDE_TUI_VALUE_BYTES], key[64];
    json_t *rows = json_array();
    for (size_t row = 0; row < sheet->n_rows && *ok; row++) {
        json_t *object = json_object();
        for (size_t i = 0; i < sheet->n_fields; i++) {
            const tide_tui_value v = sheet->get(sheet->scene, row, i, buf);
            set(object, tide_tui_sheet_key(sheet, i, key, sizeof key), value_of(sheet, i, v), ok);
        }
        if (json_array_append_new(rows, object) != 0) *ok = false;
    }
    return rows;
}

// ---- what a pane says of itself ----

static void set_explain(json_t *doc, const tide_tui_scene *s, bool *ok) {
    const tide_explanation *e = s->explanation;
    if (e == NULL) return;
    set(doc, "held_bytes", bytes_value(e->held_bytes), ok);
    set(doc, "live_bytes", bytes_value(e->live.bytes), ok);
    set(doc, "second_peak_bytes", e->second_peak_bytes > 0 ? bytes_value(e->second_peak_bytes) : json_null(), ok);
    set_time(doc, "second_peak", s->a, e->second_peak.t, ok);
}

static void set_compare(json_t *doc, const tide_tui_scene *s, bool *ok) {
    const tide_diff *d = s->diff;
    if (d == NULL) return;
    set(doc, "b_title", s->b != NULL ? text_value(s->b->title) : json_null(), ok);
    set_time(doc, "a_at", s->a, d->a_at.t, ok);
    set_time(doc, "b_at", s->b != NULL ? s->b : s->a, d->b_at.t, ok);
    set(doc, "a_bytes", bytes_value(d->a_bytes), ok);
    set(doc, "b_bytes", bytes_value(d->b_bytes), ok);
    set(doc, "a_peak_bytes", bytes_value(d->a_peak_bytes), ok);
    set(doc, "b_peak_bytes", bytes_value(d->b_peak_bytes), ok);
    set(doc, "a_plan_bytes", bytes_value(d->a_plan_bytes), ok);
    set(doc, "b_plan_bytes", bytes_value(d->b_plan_bytes), ok);
    for (unsigned i = 0; i < TIDE_DIFF_N_CHANGES; i++)
        set(doc, tide_diff_change_name(i), json_integer((json_int_t)tide_diff_n_changed(d, i)), ok);
    set(doc, "unchanged", json_integer((json_int_t)d->n_unchanged), ok);
}

static void set_pools(json_t *doc, const tide_tui_scene *s, bool *ok) {
    if (s->pools == NULL) return;
    set(doc, "reserved_bytes", bytes_value(s->pools->reserved_bytes), ok);
    set(doc, "active_bytes", bytes_value(s->pools->active_bytes), ok);
    set(doc, "requested_bytes", bytes_value(s->pools->requested_bytes), ok);
    set(doc, "cached_bytes", bytes_value(s->pools->cached_bytes), ok);
    set(doc, "leaked_bytes", s->leaks != NULL ? bytes_value(s->leaks->bytes) : json_null(), ok);
}

static void set_facts(json_t *doc, const tide_tui_scene *s, tide_tui_pane pane, bool *ok) {
    if (pane == TIDE_TUI_PANE_EXPLAIN) set_explain(doc, s, ok);
    if (pane == TIDE_TUI_PANE_COMPARE) set_compare(doc, s, ok);
    if (pane == TIDE_TUI_PANE_POOLS) set_pools(doc, s, ok);
    if (pane == TIDE_TUI_PANE_CURVE) {
        set(doc, "peak_bytes", bytes_value(s->a->peak_bytes), ok);
        set_time(doc, "peak", s->a, s->a->peak.t, ok);
        set(doc, "plan_bytes", s->a->has_plan ? bytes_value(s->a->plan_bytes) : json_null(), ok);
        set(doc, "lower_bound_bytes", s->a->has_plan ? bytes_value(s->a->lower_bound_bytes) : json_null(), ok);
        set(doc, "capacity_bytes", s->state->capacity_bytes > 0 ? bytes_value(s->state->capacity_bytes) : json_null(),
            ok);
    }
    if (pane == TIDE_TUI_PANE_GANTT && s->rows != NULL) {
        set(doc, "hidden_items", json_integer((json_int_t)s->rows->n_hidden), ok);
        set(doc, "hidden_bytes", bytes_value(s->rows->hidden_bytes), ok);
    }
    if (pane == TIDE_TUI_PANE_MAP && s->space != NULL) {
        set(doc, "bytes", bytes_value(s->space->bytes), ok);
        set(doc, "has_holes", json_boolean(s->space->has_holes), ok);
    }
    if (pane == TIDE_TUI_PANE_TABLE && s->live != NULL) set(doc, "live_bytes", bytes_value(s->live->bytes), ok);
}

static json_t *document(const tide_tui_scene *s, tide_tui_pane pane, bool *ok) {
    char schema[64];
    json_t *doc = json_object(), *window = json_array();
    (void)snprintf(schema, sizeof schema, "tidemark.tui.%s", tide_tui_pane_name(pane));
    set(doc, "schema", json_string(schema), ok);
    set(doc, "version", json_integer(1), ok);
    set(doc, "title", text_value(s->a->title), ok);
    set(doc, "axis", json_string(s->a->axis == TIDE_AXIS_STEPS ? "steps" : "ns"), ok);
    set_time(doc, "origin", s->a, s->a->origin, ok);
    set_time(doc, "cursor", s->a, s->state->cursor, ok);
    set(doc, "cursor_event", s->state->cursor_event > 0 ? bytes_value(s->state->cursor_event) : json_null(), ok);
    set(doc, "cursor_bytes", bytes_value(s->cursor_bytes), ok);
    if (json_array_append_new(window, json_integer(s->state->window.begin)) != 0) *ok = false;
    if (json_array_append_new(window, json_integer(s->state->window.end)) != 0) *ok = false;
    set(doc, "window", window, ok);
    set_facts(doc, s, pane, ok);
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    const size_t n = tide_tui_sheets_of(s, pane, sheets);
    for (size_t i = 0; i < n; i++) set(doc, sheets[i].name, rows_of(&sheets[i], ok), ok);
    return doc;
}

static int add_chunk(const char *bytes, size_t n, void *text) {
    tide_text_add_n(text, bytes, n);
    return ((tide_text *)text)->failed ? -1 : 0;
}

tide_status tide__pane_write_json(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out, tide_error *err) {
    bool ok = true;
    json_t *doc = document(s, pane, &ok);
    tide_text raw = {0};
    if (ok) ok = json_dump_callback(doc, add_chunk, &raw, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) == 0;
    tide_utf8_add_json_document(out, tide_text_str(&raw), raw.len);
    tide_text_deinit(&raw);
    json_decref(doc);
    tide_text_add(out, "\n");
    if (ok && !out->failed) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the document of the pane '%s'", tide_tui_pane_name(pane));
}
