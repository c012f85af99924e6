// SPDX-License-Identifier: MIT
//
// panes: how many rows the lists of a scene have, which one is selected, and which one lies at a cell. Keys, mouse and
// drawing use the same functions.
#ifndef TIDE_TUI_DRAW_PANES_H
#define TIDE_TUI_DRAW_PANES_H

#include "tui/scene/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Rows of a list that state->pane_row counts: TABLE live items, OPERATORS steps, POOLS pools and then leaks, COMPARE
/// changes, WHATIF advice, EXPLAIN lines, which depend on the width. 0 for panes whose rows are not in pane_row.
size_t tide_tui_pane_rows(const tide_tui_scene *s, tide_tui_pane pane);
/// The selected one, inside its list.
size_t tide_tui_pane_row(const tide_tui_scene *s, tide_tui_pane pane);
/// Row of the list at line `y` of the screen, as it is drawn; SIZE_MAX: none there.
size_t tide_tui_pane_row_at(const tide_tui_scene *s, tide_tui_pane pane, int y);
/// Rows that a page is worth in the pane, at least 1.
size_t tide_tui_pane_page(const tide_tui_scene *s, tide_tui_pane pane);

/// The list of a pane, and the column, whose title lies at a cell; TIDE_TUI_N_LISTS: none.
tide_tui_list tide_tui_pane_list_at(const tide_tui_scene *s, tide_tui_pane pane, int x, int y, int *column);
/// Keys of the columns that a list can be sorted by, as they stand from left to right. @return their number
size_t tide_tui_list_columns(const tide_tui_scene *s, tide_tui_list list, const char **keys, size_t max);

/// Puts rows of panes that are shown inside their lists and scrolls them so that the selected ones are on the screen.
void tide_tui_pane_settle(tide_tui_state *st, const tide_tui_scene *s);

/// What in the pane's rectangle belongs to the list: rows of text without titles, and the first row of it.
typedef struct tide_tui_list_place {
    tide_tui_rect r;
    size_t top;
} tide_tui_list_place;
tide_tui_list_place tide_tui_pane_list(const tide_tui_scene *s, tide_tui_pane pane);

#ifdef __cplusplus
}
#endif
#endif
