// SPDX-License-Identifier: MIT
//
// What a pane shows as CSV: RFC 4180 (header, CRLF, doubled quotes), units in the column names, plain integers, an
// empty cell for what is not known, one sort of rows a file. See tui.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tui/pane_document.h"

/// What is printed may reach a terminal: no line break of a name stays, quoted or not.
static void add_text(tide_text *out, const char *text) {
    tide_text clean = {0};
    if (tide_utf8_is_formula(text)) tide_text_add(&clean, "'");
    tide_tui_add_clean(&clean, text);
    tide_csv_add(out, tide_text_str(&clean));
    out->failed |= clean.failed;
    tide_text_deinit(&clean);
}

static void add_value(const tide_tui_sheet *sheet, size_t field, tide_tui_value v, tide_text *out) {
    if (!v.known) return;
    switch (sheet->fields[field].unit) {
    case TIDE_UNIT_TEXT:
        add_text(out, v.text);
        break;
    case TIDE_UNIT_CHANGE:
    case TIDE_UNIT_TIME:
        tide_text_addf(out, "%" PRId64, v.number);
        break;
    default:
        tide_text_addf(out, "%" PRIu64, v.count);
        break;
    }
}

static void write_sheet(const tide_tui_sheet *sheet, tide_text *out) {
    char buf[TIDE_TUI_VALUE_BYTES];
    for (size_t i = 0; i < sheet->n_fields; i++) {
        if (i > 0) tide_text_add(out, ",");
        tide_text_add(out, tide_tui_sheet_key(sheet, i, buf, sizeof buf));
    }
    tide_text_add(out, "\r\n");
    for (size_t row = 0; row < sheet->n_rows && !out->failed; row++) {
        for (size_t i = 0; i < sheet->n_fields; i++) {
            if (i > 0) tide_text_add(out, ",");
            add_value(sheet, i, sheet->get(sheet->scene, row, i, buf), out);
        }
        tide_text_add(out, "\r\n");
    }
}

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
    write_sheet(&sheets[at], out);
    if (!out->failed) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu rows of '%s'", sheets[at].n_rows,
                     tide_tui_pane_name(pane));
}
