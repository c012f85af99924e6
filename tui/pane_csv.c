// SPDX-License-Identifier: MIT
//
// What a pane shows as CSV: RFC 4180 (header, CRLF, doubled quotes), units in the column names, plain integers, an
// empty cell for what is not known, one sort of rows a file. See tui.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/base/host_alloc.h"
#include "tui/pane_document.h"

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
    return TIDE_NO_MEMORY(err, "for %zu rows of '%s'", sheets[at].n_rows,
                     tide_tui_pane_name(pane));
}
