// SPDX-License-Identifier: MIT
//
// draw picture: what the files that draw the map share: the picture in places, two of which make a cell of the screen,
// and the tints (letters or shades) that tell its items apart.
#ifndef TIDE_TUI_DRAW_PICTURE_H
#define TIDE_TUI_DRAW_PICTURE_H

#include "tui/draw.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE__N_LETTERS = 52, TIDE__TINT_SLOTS = 4096, TIDE__NO_TINT = 255 };

/// Tints of the items in the picture; open addressing. When it is full, items have the tint of their number.
typedef struct tide__tints {
    uint32_t item[TIDE__TINT_SLOTS];
    uint8_t tint[TIDE__TINT_SLOTS]; ///< TIDE__NO_TINT: free
    size_t n;
    uint32_t n_tints;
    bool is_used[TIDE__N_LETTERS];
    uint32_t n_used;
} tide__tints;

typedef struct tide__picture {
    const tide_tui_view *v;
    tide_tui_rect r;              ///< on the screen
    const tide_items *items;      ///< NULL: their fills and names are not known
    const tide_space_cell *cells; ///< [h][w], row 0 lowest
    int w, h;                     ///< in places: h is twice that of the rectangle
    uint32_t selected;            ///< TIDE_NO_ITEM
    tide__tints tints;
} tide__picture;

static inline bool tide__is_item(tide_space_cell c) { return c.item < TIDE_SPACE_HOLE; }
static inline tide_space_cell tide__place(const tide__picture *p, int x, int row) {
    return p->cells[(size_t)row * (size_t)p->w + (size_t)x];
}

/// An item keeps its tint while the picture moves; where it would touch another one of the same, the later one in the
/// order of places gets the next.
void tide__tints_make(tide__tints *t, const tide_space_cell *cells, int w, int h, uint32_t n_tints);
uint32_t tide__tint_of(const tide__tints *t, uint32_t item);
/// Slot of an item, for what else is kept by item; TIDE__TINT_SLOTS: there was no room for it.
uint32_t tide__tint_slot(const tide__tints *t, uint32_t item);

/// Names of items inside of what they take, where there is room.
void tide__draw_names(const tide__picture *p);

#ifdef __cplusplus
}
#endif
#endif
