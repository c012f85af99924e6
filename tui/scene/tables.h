// SPDX-License-Identifier: MIT
//
// tables: what a pane shows as plain tables: rows and columns with names, units and exact values. Documents (JSON,
// CSV), the linear mode and the clipboard are four ways to write one, so that they cannot disagree; lists are sorted by
// their columns.
//
//     pane        tables, the first is the pane's own list
//     curve       rows (a column of the screen each)
//     gantt       rows (all of them, not only those on the screen)
//     map         rows (regions of addresses)
//     table       rows
//     operators   rows
//     pools       rows, leaks, tensors (of a colouring plan), b_rows (of B)
//     explain     parts, by_owner, by_kind, live, without, ways
//     compare     rows, by_owner, by_kind
//     whatif      advice, edits
//     stacks      rows (of the tree, as far as it is open), calls (all of them)
//     details     rows (one: the selection)
#ifndef TIDE_TUI_SCENE_TABLES_H
#define TIDE_TUI_SCENE_TABLES_H

#include "analysis/table.h"
#include "tui/scene/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A table whose columns compute from a tide_tui_scene (its data).
typedef tide_table tide_tui_sheet;
enum { TIDE_TUI_MAX_SHEETS = 6 };

/// Those of a pane, which the scene must show; a sheet whose answer is not there yet has no rows. They borrow the
/// scene.
/// @return their number
size_t tide_tui_sheets_of(const tide_tui_scene *scene, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]);

/// The table of a list, as it is on the screen; without rows where these are not known. @return false: there is none
bool tide_tui_table_of_list(const tide_tui_scene *scene, tide_tui_list list, tide_tui_sheet *out);
/// The column of a table that is called so: by its key ("size_bytes"), its key without "_bytes", or its title;
/// SIZE_MAX: none.
size_t tide_tui_column_named(const tide_tui_sheet *table, const char *name);

#ifdef __cplusplus
}
#endif
#endif
