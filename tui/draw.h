// SPDX-License-Identifier: MIT
//
// draw: a model as cells. Every pane has one function, which writes inside its own rectangles of the layout and nowhere
// else; tide_tui_draw() calls them all.
#ifndef TIDE_TUI_DRAW_H
#define TIDE_TUI_DRAW_H

#include "tui/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What every pane needs.
typedef struct tide_tui_view {
    const tide_tui_model *model;
    const tide_tui_layout *layout;
    const tide_tui_glyphs *glyphs;
    tide_tui_grid *grid;
} tide_tui_view;

/// One whole frame: clears the grid, which has the layout's size, and draws every pane. Cannot fail.
void tide_tui_draw(const tide_tui_view *v);

void tide_tui_draw_title(const tide_tui_view *v);
void tide_tui_draw_summary(const tide_tui_view *v);
void tide_tui_draw_curve(const tide_tui_view *v);
void tide_tui_draw_ruler(const tide_tui_view *v);
void tide_tui_draw_gantt(const tide_tui_view *v);
void tide_tui_draw_details(const tide_tui_view *v);
void tide_tui_draw_footer(const tide_tui_view *v);
void tide_tui_draw_help(const tide_tui_view *v);
void tide_tui_draw_too_small(const tide_tui_view *v);
void tide_tui_draw_empty(const tide_tui_view *v);

/// put_text() with the view's grid and glyphs.
int tide_tui_text(const tide_tui_view *v, int x, int y, int w, const char *text, tide_tui_cut cut, tide_tui_role role);

#ifdef __cplusplus
}
#endif
#endif
