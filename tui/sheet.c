// SPDX-License-Identifier: MIT
//
// Panes as tables, and tables as speech. See sheet.h.
#include "tui/sheet.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/utf8.h"
#include "tui/draw/panes.h"
#include "tui/sheet_internal.h"

size_t tide_tui_sheets_of(const tide_tui_scene *scene, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]) {
    const size_t n = tide__sheets_of_items(scene, pane, out);
    return n > 0 ? n : tide__sheets_of_answers(scene, pane, out);
}

const char *tide_tui_sheet_key(const tide_tui_sheet *sheet, size_t field, char *buf, size_t buf_bytes) {
    return tide_column_key(&sheet->fields[field], sheet->scene->a->axis, buf, buf_bytes);
}

// ---- speech ----

void tide_tui_add_clean(tide_text *out, const char *text) { tide_utf8_add_clean(out, text); }

static void speak_time(const tide_tui_scene *s, int64_t t, tide_text *out) {
    char buf[32];
    if (s->a->axis == TIDE_AXIS_STEPS) tide_text_add(out, "step ");
    tide_text_add(out, tide_tui_format_time(s->a, t, buf, sizeof buf));
}

void tide_tui_speak_value(const tide_tui_sheet *sheet, size_t field, tide_tui_value v, tide_text *out) {
    char buf[32];
    const int64_t n = v.number;
    switch (sheet->fields[field].unit) {
    case TIDE_UNIT_TEXT:
        tide_tui_add_clean(out, v.text);
        break;
    case TIDE_UNIT_COUNT:
        tide_text_addf(out, "%" PRIu64, v.count);
        break;
    case TIDE_UNIT_BYTES:
        tide_text_add(out, tide_format_bytes(v.count, buf, sizeof buf));
        break;
    case TIDE_UNIT_CHANGE:
        tide_text_add(out, n < 0 ? "minus " : n > 0 ? "plus " : "");
        tide_text_add(out, tide_format_bytes(n < 0 ? -(uint64_t)n : (uint64_t)n, buf, sizeof buf));
        break;
    case TIDE_UNIT_ADDRESS:
        tide_text_addf(out, "0x%" PRIx64, v.count);
        break;
    case TIDE_UNIT_TIME:
        speak_time(sheet->scene, n, out);
        break;
    default:
        tide_text_add(out, v.count != 0 ? "yes" : "no");
        break;
    }
}

void tide_tui_speak_row(const tide_tui_sheet *sheet, size_t row, tide_text *out) {
    char buf[TIDE_TUI_VALUE_BYTES];
    bool first = true;
    if (row >= sheet->n_rows) return;
    for (size_t i = 0; i < sheet->n_fields; i++) {
        const tide_tui_value v = sheet->get(sheet->scene, row, i, buf);
        const bool is_no = sheet->fields[i].unit == TIDE_UNIT_FLAG && v.count == 0;
        if (!v.known || is_no) continue; // only what is there, and what holds
        if (!first) tide_text_add(out, "; ");
        first = false;
        if (sheet->fields[i].unit == TIDE_UNIT_FLAG) {
            tide_text_add(out, sheet->fields[i].title);
            continue;
        }
        tide_text_addf(out, "%s: ", sheet->fields[i].title);
        tide_tui_speak_value(sheet, i, v, out);
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
    speak_time(s, s->state->cursor, out);
    if (step < s->a->n_steps && s->a->step_names[step][0] != 0) {
        tide_text_add(out, " (");
        tide_tui_add_clean(out, s->a->step_names[step]);
        tide_text_add(out, ")");
    }
    tide_text_addf(out, ": %s", tide_format_bytes(s->cursor_bytes, buf, sizeof buf));
    if (s->state->curve_kind >= 0) {
        tide_text_addf(out, " of %s", tide_memory_kind_name((tide_memory_kind)s->state->curve_kind));
    }
}
