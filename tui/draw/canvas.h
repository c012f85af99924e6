// SPDX-License-Identifier: MIT
//
// canvas: what all panes draw with: text inside a rectangle, lines of text that scroll, the heading of a pane, a table
// that scrolls. It knows no pane.
#ifndef TIDE_TUI_DRAW_CANVAS_H
#define TIDE_TUI_DRAW_CANVAS_H

#include "tui/draw/cells.h"
#include "tui/scene/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What every pane needs.
typedef struct tide_tui_view {
    const tide_tui_scene *scene;
    const tide_tui_glyphs *glyphs;
    tide_tui_grid *grid;
} tide_tui_view;

/// put_text() with the view's grid and glyphs.
int tide_tui_text(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_cut cut, tide_tui_role role);
/// What is below the heading of a pane.
tide_tui_rect tide_tui_body_of(const tide_tui_scene *s, tide_tui_pane pane);
/// The pane's heading (its first line; the focus shows) with `facts` at the right. Returns what is below it.
tide_tui_rect tide_tui_heading(const tide_tui_view *v, tide_tui_pane pane, const char *title, const char *facts);
/// Instead of rows: the error, the progress, or `empty`. False: there is none of them.
bool tide_tui_draw_state_of(const tide_tui_view *v, tide_tui_pane pane, tide_tui_rect body, const char *empty);

/// A table that scrolls: columns are as wide as they need within the rectangle, the one with stretch takes the rest;
/// those of the highest rank go first when there is no room.
typedef struct tide_tui_column {
    const char *title;
    const char *key; ///< of the column of the pane's table that a list is sorted by; NULL: it is not sorted by this one
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
    tide_tui_list list; ///< whose order the titles show
    /// Glyph in front of a row, 0: none; NULL: rows have none.
    uint32_t (*mark)(const void *ctx, size_t row);
} tide_tui_table;
void tide_tui_draw_table_of(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *table);
/// The column whose title is drawn at `x` in the first line of `body`; -1: none.
int tide_tui_table_column_at(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *table, int x);

// ---- lists: drawing and the mouse use the same tables ----

typedef struct tide_tui_tints tide_tui_tints; ///< draw.h
typedef struct tide_tui_running_sum {
    size_t to; ///< rows before it are summed up
    uint64_t sum;
} tide_tui_running_sum;
/// The table of a list and where it is drawn. It is the context of its cells: it must stay where it is.
typedef struct tide_tui_list_table {
    tide_tui_table t;
    tide_tui_rect r;
    const tide_tui_scene *scene;
    tide_tui_running_sum *so_far, sum; ///< of the column "in all"
    const tide_tui_tints *letters;     ///< of the map; NULL: none
} tide_tui_list_table;
/// The rows of a list, the selected one and the first; columns are the caller's to set. @return false: there are no
/// rows
bool tide_tui_list_begin(const tide_tui_scene *s, tide_tui_list list, tide_tui_rect body, tide_tui_list_table *out);
// ---- lines of text that scroll ----

enum { TIDE_TUI_LINE = 512 }; ///< bytes of one line of wrapped text

/// Lines are written one after the other; the rectangle shows a part of them.
typedef struct tide_tui_lines {
    const tide_tui_view *v;
    tide_tui_rect r; ///< h == 0: lines are counted only
    size_t top;      ///< first line that the screen shows
    size_t n;        ///< lines that were written; without the one that is being written
} tide_tui_lines;

/// Row of the screen of the line being written; -1: not shown.
int tide_tui_lines_y(const tide_tui_lines *p);
/// Text at column x of the line being written. @return columns used
int tide_tui_lines_text(tide_tui_lines *p, int x, int w, const char *text, tide_tui_cut cut, tide_tui_role role);
/// Text whose right end is column x + w.
void tide_tui_lines_right(tide_tui_lines *p, int x, int w, const char *text, tide_tui_role role);
void tide_tui_lines_fill(tide_tui_lines *p, int x, int w, uint32_t glyph, tide_tui_role role);
/// The line is done.
void tide_tui_lines_next(tide_tui_lines *p);
/// A text as one or more lines from column x, broken at blanks; "\n" breaks too.
void tide_tui_lines_wrap(tide_tui_lines *p, int x, const char *text, tide_tui_role role);
/// Bytes of `text` that make a line of at most `w` columns, broken at the last blank that allows it. *skip: blanks or
/// the "\n" behind it.
size_t tide_tui_wrap_line(const tide_tui_view *v, int w, const char *text, size_t *skip);
/// How many lines tide_tui_lines_wrap makes of it.
size_t tide_tui_wrap_count(const tide_tui_view *v, int w, const char *text);

/// First line to show so that line `row` of `n` is on a screen of `h` lines; as near to `top` as possible.
size_t tide_tui_settle_top(size_t n, size_t row, size_t top, int h);

#ifdef __cplusplus
}
#endif
#endif
