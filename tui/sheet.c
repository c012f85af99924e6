// SPDX-License-Identifier: MIT
//
// Tables as speech. See sheet.h.
#include "tui/sheet.h"

#include <inttypes.h>

#include "core/base/utf8.h"
#include "tui/draw/panes.h"

void tide_tui_add_clean(tide_text *out, const char *text) { tide_utf8_add_clean(out, text); }

static void speak_time(const tide_subject_facts *f, int64_t t, tide_text *out) {
    char buf[32];
    if (f->axis == TIDE_AXIS_STEPS) tide_text_add(out, "step ");
    tide_text_add(out, tide_tui_format_time(f, t, buf, sizeof buf));
}

/// A value as people say it: "24.5 KiB", "minus 12 B", "step 3".
static void speak_value(const tide_tui_sheet *sheet, size_t column, const tide_cell *v, tide_text *out) {
    char buf[32];
    switch (sheet->columns[column].unit) {
    case TIDE_UNIT_TEXT:
    case TIDE_UNIT_KIND:
        tide_tui_add_clean(out, v->text);
        break;
    case TIDE_UNIT_CHANGE:
        tide_text_add(out, v->i < 0 ? "minus " : v->i > 0 ? "plus " : "");
        tide_text_add(out, tide_format_bytes(v->i < 0 ? -(uint64_t)v->i : (uint64_t)v->i, buf, sizeof buf));
        break;
    case TIDE_UNIT_ADDRESS:
        tide_text_addf(out, "0x%" PRIx64, v->u);
        break;
    case TIDE_UNIT_TIME:
        speak_time(sheet->facts, v->i, out);
        break;
    default:
        tide_table_say(sheet, column, v, out);
    }
}

void tide_tui_speak_row(const tide_tui_sheet *sheet, size_t row, tide_text *out) {
    tide_row_room room;
    tide_cell v;
    bool first = true;
    if (row >= sheet->n_rows) return;
    const void *at = tide_table_row(sheet, row, &room);
    for (size_t i = 0; i < sheet->n_columns; i++) {
        tide_table_cell(sheet, at, i, &v);
        const bool is_flag = sheet->columns[i].unit == TIDE_UNIT_FLAG;
        if (!v.known || (is_flag && v.u == 0)) continue; // only what is there, and what holds
        tide_text_addf(out, "%s%s", first ? "" : "; ", sheet->columns[i].title);
        first = false;
        if (is_flag) continue;
        tide_text_add(out, ": ");
        speak_value(sheet, i, &v, out);
    }
}

void tide_tui_speak_selection(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out) {
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    const bool has_no_rows = pane == TIDE_TUI_PANE_CURVE || pane == TIDE_TUI_PANE_MAP;
    const size_t n = tide_tui_sheets_of(s, has_no_rows ? TIDE_TUI_PANE_DETAILS : pane, sheets);
    if (n == 0) return;
    if (has_no_rows || pane == TIDE_TUI_PANE_DETAILS) {
        tide_tui_speak_row(&sheets[0], 0, out);
    } else if (pane == TIDE_TUI_PANE_GANTT) {
        tide_tui_speak_row(&sheets[0], s->state->row, out);
    } else if (pane == TIDE_TUI_PANE_EXPLAIN) { // its lines are prose: what is held, in parts
        for (size_t row = 0; row < sheets[0].n_rows; row++) {
            if (row > 0) tide_text_add(out, "; ");
            tide_tui_speak_row(&sheets[0], row, out);
        }
    } else {
        const size_t row = tide_tui_pane_row(s, pane);
        const bool in_second = pane == TIDE_TUI_PANE_POOLS && row >= sheets[0].n_rows;
        tide_tui_speak_row(in_second ? &sheets[1] : &sheets[0], in_second ? row - sheets[0].n_rows : row, out);
    }
}

void tide_tui_speak_moment(const tide_tui_scene *s, tide_text *out) {
    char buf[32];
    const size_t step = s->cursor_step;
    speak_time(s->a, s->state->cursor, out);
    if (step < s->a->n_steps && s->a->step_names[step][0] != 0) {
        tide_text_add(out, " (");
        tide_tui_add_clean(out, s->a->step_names[step]);
        tide_text_add(out, ")");
    }
    tide_text_addf(out, ": %s", tide_format_bytes(s->cursor_bytes, buf, sizeof buf));
    if (s->state->curve_kind >= 0) {
        tide_text_addf(out, " of %s", tide_memory_kind_name((tide_memory_kind)s->state->curve_kind));
    } else if (s->state->folds_weights) {
        tide_text_add(out, " without weights");
    }
}
