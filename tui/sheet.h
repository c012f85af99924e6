// SPDX-License-Identifier: MIT
//
// sheet: the tables of panes (tui/scene/tables.h) as speech: the linear mode and the clipboard.
#ifndef TIDE_TUI_SHEET_H
#define TIDE_TUI_SHEET_H

#include "tui/scene/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

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
