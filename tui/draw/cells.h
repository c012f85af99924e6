// SPDX-License-Identifier: MIT
//
// cells: a grid of glyphs with roles, which drawing functions write and backends read. A role says what a cell means;
// the backend chooses the colour.
#ifndef TIDE_TUI_CELLS_H
#define TIDE_TUI_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/text.h"
#include "tui/draw/glyphs.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_TUI_N_SHADES = 4 }; ///< of each fill in the map, so that neighbours can be told apart

/// What a cell means. Whatever a role says by its colour is also said by a glyph or a word.
typedef enum tide_tui_role {
    TIDE_TUI_ROLE_TEXT,
    TIDE_TUI_ROLE_TITLE,
    TIDE_TUI_ROLE_DIM,
    TIDE_TUI_ROLE_LABEL,
    TIDE_TUI_ROLE_KEY,
    TIDE_TUI_ROLE_CURVE,
    TIDE_TUI_ROLE_SPIKE,
    TIDE_TUI_ROLE_PEAK,
    TIDE_TUI_ROLE_BOUND,
    TIDE_TUI_ROLE_PLAN,
    TIDE_TUI_ROLE_CURSOR,
    TIDE_TUI_ROLE_CAPACITY,  ///< what there is
    TIDE_TUI_ROLE_PREDICTED, ///< the plan's curve beside a trace
    TIDE_TUI_ROLE_OTHER,     ///< B
    TIDE_TUI_ROLE_RESERVED,  ///< what allocators hold
    TIDE_TUI_ROLE_RANGE,     ///< a selected area of time: its edges, and as a ground what lies in it
    TIDE_TUI_ROLE_MARK,      ///< a mark's letter
    TIDE_TUI_ROLE_HOLE,      ///< bytes between items
    TIDE_TUI_ROLE_INK,       ///< text on a ground of the map's colours
    TIDE_TUI_ROLE_GOOD,      ///< fewer bytes, fits
    TIDE_TUI_ROLE_ERROR,     ///< more bytes, does not fit, went wrong
    TIDE_TUI_ROLE_BAR,       ///< first of TIDE_N_ITEM_FILLS roles, one per fill
    TIDE_TUI_ROLE_PLACE = TIDE_TUI_ROLE_BAR + TIDE_N_ITEM_FILLS, ///< in the map: [fill][shade]
    TIDE_TUI_N_ROLES = TIDE_TUI_ROLE_PLACE + TIDE_N_ITEM_FILLS * TIDE_TUI_N_SHADES
} tide_tui_role;

enum {
    TIDE_TUI_MARK_SELECTED = 1, ///< shown in reverse; tide_tui_mark_row makes its role TEXT
    TIDE_TUI_MARK_MATCH = 2,    ///< of the search: underlined
};

/// glyph 0: the right half of a wide glyph to the left; it is never printed by itself.
typedef struct tide_tui_cell {
    uint32_t glyph; ///< Unicode code point
    uint8_t role;   ///< tide_tui_role
    uint8_t ground; ///< role whose colour lies behind the glyph; TEXT: the screen's own
    uint8_t marks;  ///< TIDE_TUI_MARK_… bits
} tide_tui_cell;

typedef struct tide_tui_grid {
    int width, height;
    tide_tui_cell *cells; ///< [height][width], owned
} tide_tui_grid;

/// Blank grid of the given size; an old one in `grid` is released. TIDE_ERR_NOMEM leaves an empty grid.
tide_status tide_tui_grid_resize(tide_tui_grid *grid, int width, int height, tide_error *err) TIDE_NODISCARD;
void tide_tui_grid_deinit(tide_tui_grid *grid);
void tide_tui_grid_clear(tide_tui_grid *grid);
/// Lines of `width` columns, each ending in '\n'.
void tide_tui_grid_to_text(const tide_tui_grid *grid, tide_text *out);

/// All drawing is clipped to the grid. Grounds and marks of a cell stay as they are unless they are set.
void tide_tui_put(tide_tui_grid *grid, int x, int y, uint32_t glyph, tide_tui_role role);
void tide_tui_put_ground(tide_tui_grid *grid, int x, int y, tide_tui_role ground);
tide_tui_cell tide_tui_get(const tide_tui_grid *grid, int x, int y);
void tide_tui_fill_row(tide_tui_grid *grid, int x, int y, int w, uint32_t glyph, tide_tui_role role);
void tide_tui_mark_row(tide_tui_grid *grid, int x, int y, int w, uint8_t marks);

typedef enum tide_tui_cut { TIDE_TUI_CUT_END, TIDE_TUI_CUT_MIDDLE } tide_tui_cut;

/**
 * Write foreign text into at most `w` columns: control characters and bytes that are not UTF-8 show as the replacement
 * glyph, zero-width ones vanish, wide ones take two columns; what does not fit is cut with an ellipsis.
 *
 * @return columns used, at most `w`
 */
int tide_tui_put_text(tide_tui_grid *grid, const tide_tui_glyphs *glyphs, int x, int y, int w, const char *text,
                      tide_tui_cut cut, tide_tui_role role);
/// Columns that `text` needs without being cut.
int tide_tui_text_width(const tide_tui_glyphs *glyphs, const char *text);

/// Widths come from wcwidth() under C.UTF-8, whatever the program's locale: make it the thread's locale while drawing.
typedef struct tide_tui_locale {
    void *own, *before;
} tide_tui_locale;
tide_tui_locale tide_tui_locale_enter(void);
void tide_tui_locale_leave(tide_tui_locale locale);

#ifdef __cplusplus
}
#endif
#endif
