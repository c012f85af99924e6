// SPDX-License-Identifier: MIT
//
// What the files that draw the map share: map.c (cells and names), map_letters.c (which letter or shade an item has),
// map_labels.c (regions beside the picture), map_legend.c (letters and their names below it).
#ifndef TIDE_TUI_DRAW_MAP_PARTS_H
#define TIDE_TUI_DRAW_MAP_PARTS_H

#include "tui/draw/draw.h"

static inline bool tide_tui_is_item(tide_space_cell c) { return c.item < TIDE_SPACE_HOLE; }

/**
 * Gives every item of a picture a tint. With letters, where there are more items than letters, items of one name have
 * one letter, so that the legend can say what a letter means.
 *
 * @param items  whose names they are; NULL: not known
 * @param cells  [h][w]
 */
void tide_tui_tints_make(tide_tui_tints *t, const tide_items *items, const tide_space_cell *cells, int w, int h,
                         uint32_t n_tints);
uint32_t tide_tui_tint_of(const tide_tui_tints *t, uint32_t item);
/// Where the tint of an item is kept; TIDE_TUI_TINT_SLOTS: there was no room for it.
uint32_t tide_tui_tint_slot(const tide_tui_tints *t, uint32_t item);
/// 'A' to 'Z', 'a' to 'z'.
uint32_t tide_tui_letter(uint32_t tint);

/// Regions beside the picture: brackets, names, sizes, bounds, the place that is pointed at.
void tide_tui_draw_regions(const tide_tui_view *v);
/// The letters of the map with their names, those that take most of it first; nothing where the map has colours.
void tide_tui_draw_map_legend(const tide_tui_view *v);

#endif
