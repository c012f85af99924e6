// SPDX-License-Identifier: MIT
//
// draw: a scene as cells. Every pane has one function, which writes inside its own rectangle of the layout and nowhere
// else; tide_tui_draw() calls those that are shown. Pure: nothing is asked, nothing can fail.
#ifndef TIDE_TUI_DRAW_H
#define TIDE_TUI_DRAW_H

#include "tui/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What every pane needs.
typedef struct tide_tui_view {
    const tide_tui_scene *scene;
    const tide_tui_glyphs *glyphs;
    tide_tui_grid *grid;
} tide_tui_view;

/// One whole frame: clears the grid, which has the layout's size, and draws every pane.
void tide_tui_draw(const tide_tui_view *v);

void tide_tui_draw_title(const tide_tui_view *v);  ///< title, summary
void tide_tui_draw_bottom(const tide_tui_view *v); ///< prompt with completions, message, or the hints that matter now
void tide_tui_draw_curve(const tide_tui_view *v);  ///< labels, curve, lines of plan, bound, capacity, B; cursor, range
void tide_tui_draw_ruler(const tide_tui_view *v);  ///< ruler with ticks, marks; minimap
void tide_tui_draw_gantt(const tide_tui_view *v);
void tide_tui_draw_map(const tide_tui_view *v);
void tide_tui_draw_table(const tide_tui_view *v);
void tide_tui_draw_operators(const tide_tui_view *v);
void tide_tui_draw_pools(const tide_tui_view *v);
void tide_tui_draw_explain(const tide_tui_view *v);
void tide_tui_draw_compare(const tide_tui_view *v);
void tide_tui_draw_whatif(const tide_tui_view *v);
void tide_tui_draw_details(const tide_tui_view *v);
void tide_tui_draw_overlay(const tide_tui_view *v); ///< help, SQL, message, setup
void tide_tui_draw_too_small(const tide_tui_view *v);

// ---- shared by panes ----

/// put_text() with the view's grid and glyphs.
int tide_tui_text(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_cut cut, tide_tui_role role);
/// The pane's heading (its first line; the focus shows) with `facts` at the right. Returns what is below it.
tide_tui_rect tide_tui_heading(const tide_tui_view *v, tide_tui_pane pane, const char *title, const char *facts);
/// Instead of rows: what is being done, what went wrong, or `empty`. False: there is nothing of that to say.
bool tide_tui_draw_state_of(const tide_tui_view *v, tide_tui_pane pane, tide_tui_rect body, const char *empty);

/// A table that scrolls: columns are as wide as they need within the rectangle, the one with stretch takes the rest;
/// those of the highest rank go first when there is no room.
typedef struct tide_tui_column {
    const char *title;
    int min_w, max_w; ///< 0: no limit. With stretch min_w is how far foreign names may be cut
    bool right;       ///< numbers
    bool stretch;
    int rank; ///< 0 stays always
} tide_tui_column;
typedef struct tide_tui_table {
    const tide_tui_column *columns;
    int n_columns;
    size_t n_rows, row, top;
    bool has_selection;
    /// Text of a cell into `buf`, and its role.
    tide_tui_role (*cell)(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes);
    const void *ctx;
} tide_tui_table;
void tide_tui_draw_table_of(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *table);

#ifdef __cplusplus
}
#endif
#endif
