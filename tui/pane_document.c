// SPDX-License-Identifier: MIT
//
// What a pane shows as a JSON document: "tidemark.tui.<pane>", version 1, keys in a fixed order, sizes as integers of
// bytes, null for what is not known; and one of its tables as CSV. See tui.h.
//
//     schema, version, title, axis, cursor_step|cursor_ns, cursor_event, cursor_bytes, window: [from, to)
//     what the pane says of itself (explain: held_bytes, … compare: a_bytes, b_bytes, … gantt: hidden_items, …)
//     its tables, each an array of objects (tui/sheet.h)
#include "tui/pane_document.h"

#include <stdio.h>
#include <string.h>

#include "analysis/answer_tables.h"
#include "core/base/host_alloc.h"

static void add_time(tide_json_out *j, const char *name, const tide_subject_facts *f, int64_t t) {
    char key[64];
    (void)snprintf(key, sizeof key, "%s_%s", name, f->axis == TIDE_AXIS_STEPS ? "step" : "ns");
    tide_json_i64(j, key, t);
}

// ---- what a pane says of itself ----

static void add_explain(tide_json_out *j, const tide_tui_scene *s) {
    const tide_explanation *e = s->explanation;
    if (e == NULL) return;
    tide_json_bytes(j, "held_bytes", e->held_bytes);
    tide_json_bytes(j, "live_bytes", e->live.bytes);
    tide_json_u64_if(j, "second_peak_bytes", e->second_peak_bytes > 0, e->second_peak_bytes);
    add_time(j, "second_peak", s->a, e->second_peak.t);
    tide_json_u64_if(j, "second_plan_bytes", e->has_second_plan, e->second_plan_bytes);
}

static void add_compare(tide_json_out *j, const tide_tui_scene *s) {
    const tide_diff *d = s->diff;
    if (d == NULL) return;
    tide_json_text(j, "b_title", s->b != NULL ? s->b->title : NULL);
    add_time(j, "a_at", s->a, d->a_at.t);
    add_time(j, "b_at", s->b != NULL ? s->b : s->a, d->b_at.t);
    tide_json_bytes(j, "a_bytes", d->a_bytes);
    tide_json_bytes(j, "b_bytes", d->b_bytes);
    tide_diff_json(d, j);
}

static void add_pools(tide_json_out *j, const tide_tui_scene *s) {
    if (s->pools == NULL) return;
    tide_json_bytes(j, "reserved_bytes", s->pools->reserved_bytes);
    tide_json_bytes(j, "active_bytes", s->pools->active_bytes);
    tide_json_bytes(j, "requested_bytes", s->pools->requested_bytes);
    tide_json_bytes(j, "cached_bytes", s->pools->cached_bytes);
    tide_json_u64_if(j, "leaked_bytes", s->leaks != NULL, s->leaks != NULL ? s->leaks->bytes : 0);
}

static void add_curve(tide_json_out *j, const tide_tui_scene *s) {
    const tide_subject_facts *f = s->a;
    tide_json_bytes(j, "peak_bytes", f->peak_bytes);
    add_time(j, "peak", f, f->peak.t);
    tide_json_u64_if(j, "folded_weights_bytes", s->state->folds_weights, tide_tui_weights_bytes(f));
    tide_json_u64_if(j, "peak_reserved_bytes", s->peak_reserved > 0, s->peak_reserved);
    if (s->bands != NULL) tide_json_text(j, "bands_by", tide_band_by_name(s->bands->by));
    tide_json_u64_if(j, "plan_bytes", f->has_plan, f->plan_bytes);
    tide_json_u64_if(j, "lower_bound_bytes", f->has_plan, f->lower_bound_bytes);
    tide_json_u64_if(j, "capacity_bytes", s->state->capacity_bytes > 0, s->state->capacity_bytes);
}

static void add_facts(tide_json_out *j, const tide_tui_scene *s, tide_tui_pane pane) {
    if (pane == TIDE_TUI_PANE_EXPLAIN) add_explain(j, s);
    if (pane == TIDE_TUI_PANE_COMPARE) add_compare(j, s);
    if (pane == TIDE_TUI_PANE_POOLS) add_pools(j, s);
    if (pane == TIDE_TUI_PANE_CURVE) add_curve(j, s);
    if (pane == TIDE_TUI_PANE_GANTT && s->rows != NULL) {
        tide_json_u64(j, "hidden_items", s->rows->n_hidden);
        tide_json_bytes(j, "hidden_bytes", s->rows->hidden_bytes);
    }
    if (pane == TIDE_TUI_PANE_MAP && s->space != NULL) {
        tide_json_bytes(j, "bytes", s->space->bytes);
        tide_json_bool(j, "has_holes", s->space->has_holes);
    }
    if (pane == TIDE_TUI_PANE_STACKS && s->call_tree != NULL) {
        tide_json_bytes(j, "live_bytes", s->call_tree->bytes);
        tide_json_bytes(j, "untold_bytes", s->call_tree->calls.untold_bytes);
    }
    if (pane == TIDE_TUI_PANE_TABLE && s->live != NULL) tide_json_bytes(j, "live_bytes", s->live->bytes);
}

tide_status tide__pane_write_json(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out, tide_error *err) {
    char schema[64];
    tide_json_out j = {.out = out, .indent = true};
    (void)snprintf(schema, sizeof schema, "tidemark.tui.%s", tide_tui_pane_name(pane));
    tide_json_open(&j, NULL, '{');
    tide_json_text(&j, "schema", schema);
    tide_json_u64(&j, "version", 1);
    tide_json_text(&j, "title", s->a->title);
    tide_json_text(&j, "axis", s->a->axis == TIDE_AXIS_STEPS ? "steps" : "ns");
    add_time(&j, "origin", s->a, s->a->origin);
    add_time(&j, "cursor", s->a, s->state->cursor);
    tide_json_u64_if(&j, "cursor_event", s->state->cursor_event > 0, s->state->cursor_event);
    tide_json_bytes(&j, "cursor_bytes", s->cursor_bytes);
    tide_json_open(&j, "window", '[');
    tide_json_i64(&j, NULL, s->state->window.begin);
    tide_json_i64(&j, NULL, s->state->window.end);
    tide_json_close(&j, ']');
    add_facts(&j, s, pane);
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    const size_t n = tide_tui_sheets_of(s, pane, sheets);
    for (size_t i = 0; i < n; i++) tide_table_json(&sheets[i], false, &j);
    tide_json_close(&j, '}');
    tide_text_add(out, "\n");
    if (!out->failed) return TIDE_OK;
    return TIDE_NO_MEMORY(err, "for the document of the pane '%s'", tide_tui_pane_name(pane));
}

// ---- CSV ----

tide_status tide__pane_write_csv(const tide_tui_scene *s, tide_tui_pane pane, const char *sheet, tide_text *out,
                                 tide_error *err) {
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    const size_t n = tide_tui_sheets_of(s, pane, sheets);
    size_t at = 0;
    while (at < n && sheet[0] != 0 && strcmp(sheets[at].name, sheet) != 0) at++;
    if (at >= n) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "the pane '%s' has no table '%s'", tide_tui_pane_name(pane), sheet);
        tide_error_hint(err, "its first one is '%s'", n > 0 ? sheets[0].name : "");
        return TIDE_ERR_INVALID;
    }
    tide_table_csv(&sheets[at], TIDE_CSV_CLEAN, out); // what is printed may reach a terminal
    if (!out->failed) return TIDE_OK;
    return TIDE_NO_MEMORY(err, "for %zu rows of '%s'", sheets[at].n_rows, tide_tui_pane_name(pane));
}
