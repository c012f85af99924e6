// SPDX-License-Identifier: MIT
//
// pane sql: for each pane the SQL that reproduces its numbers from the trace file with plain sqlite3, by the views of
// docs/trace-format.md. What a plan file says is JSON: then the text names the paths in it.
#ifndef TIDE_TUI_PANE_SQL_H
#define TIDE_TUI_PANE_SQL_H

#include "tui/scene/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Remarks ("-- …") and one SELECT that ends in ";": what the pane shows now (cursor, window, run, filters of kind). A
/// pane whose numbers no view has (free space, advice) says so in a remark, with a SELECT of what it is made from.
void tide_tui_pane_sql(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
