// SPDX-License-Identifier: MIT
//
// sheet: what a pane shows as plain tables: rows and columns with names, units and exact values. Documents (JSON, CSV),
// the linear mode and the clipboard are four ways to write one, so that they cannot disagree.
//
//     pane        sheets, the first is the pane's own list
//     curve       rows (a column of the screen each)
//     gantt       rows (all of them, not only those on the screen)
//     map         rows (regions of addresses)
//     table       rows
//     operators   rows
//     pools       rows, leaks
//     explain     parts, by_owner, by_kind, live, without
//     compare     rows, by_owner, by_kind
//     whatif      advice, edits
//     details     rows (one: the selection)
#ifndef TIDE_TUI_SHEET_H
#define TIDE_TUI_SHEET_H

#include "analysis/table.h"
#include "tui/scene/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A table whose columns compute from a tide_tui_scene (its data).
typedef tide_table tide_tui_sheet;
enum { TIDE_TUI_MAX_SHEETS = 5 };

/// Those of a pane, which the scene must show; a sheet whose answer is not there yet has no rows. They borrow the
/// scene.
/// @return their number
size_t tide_tui_sheets_of(const tide_tui_scene *scene, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]);

/// Foreign text without what a terminal would obey: control characters and broken UTF-8 as U+FFFD.
void tide_tui_add_clean(tide_text *out, const char *text);
/// One row as a phrase: "name: conv1_out; size: 24.5 KiB; …". Nothing for a row that is not there.
void tide_tui_speak_row(const tide_tui_sheet *sheet, size_t row, tide_text *out);
/// The row that is selected in a pane; of panes without rows (CURVE, MAP) the selected item.
void tide_tui_speak_selection(const tide_tui_scene *scene, tide_tui_pane pane, tide_text *out);
/// Where the cursor is and what is held there: "step 3 (conv1): 1.25 MiB".
void tide_tui_speak_moment(const tide_tui_scene *scene, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
