// SPDX-License-Identifier: MIT
//
// glyphs: the tiers of drawing characters. The block tier keeps to block elements, box lines and characters of width 1
// that common fonts have; the braille tier draws the curve finer, with dots that some fonts place wrongly, and so only
// on request; the ASCII tier uses 7 bits. There are no emoji.
#ifndef TIDE_TUI_GLYPHS_H
#define TIDE_TUI_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/item_fill.h"
#include "tui/tui.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How a bar is filled, for each fill: what a colour says is also said by a glyph.
#define TIDE_TUI_BAR_MAP(XX)                                                                                           \
    XX(INTERMEDIATE, 0x2588, '=')                                                                                      \
    XX(SCRATCH, 0x2592, '~')                                                                                           \
    XX(INOUT, 0x2593, '+')                                                                                             \
    XX(WEIGHT, 0x2591, '-')                                                                                            \
    XX(KV_CACHE, 0x2261, 'k')                                                                                          \
    XX(HOST, 0x259A, 'h')

enum { TIDE_TUI_N_DENSITIES = 4 };

typedef struct tide_tui_glyphs {
    bool ascii;
    bool braille; ///< the curve in dots, 2 x 4 a cell
    bool letters; ///< the map in letters, one for each item, for want of colours; else in half blocks of two colours

    // ---- curve, ruler, minimap ----
    uint32_t rise[9];          ///< a cell filled by 0 to 8 eighths from below
    uint32_t spike;            ///< between the smallest and the largest value of a column
    uint32_t bound;            ///< lower bound
    uint32_t plan;             ///< planned bytes
    uint32_t capacity;         ///< what there is
    uint32_t predicted;        ///< the plan's curve beside a trace
    uint32_t other;            ///< B's curve
    uint32_t reserved;         ///< what allocators hold
    uint32_t unused;           ///< band of what no tensor uses of a plan's buffer
    uint32_t rule;             ///< axis
    uint32_t tick;             ///< axis with a label
    uint32_t tick_left;        ///< where a region begins, on a line that runs upwards
    uint32_t peak;             ///< axis at the peak
    uint32_t cursor;           ///< line of the time cursor
    uint32_t crossing;         ///< axis at the cursor
    uint32_t edge;             ///< line where the range begins and ends
    uint32_t mini_lo, mini_hi; ///< window in the minimap

    // ---- bars ----
    uint32_t bar[TIDE_N_ITEM_FILLS];
    uint32_t begin, end;                    ///< first and last cell of a bar that is born, that dies there
    uint32_t before, after;                 ///< a bar goes on (or lies) outside the window, to the left or right
    uint32_t density[TIDE_TUI_N_DENSITIES]; ///< of a group: how many live in a column, from one to many

    // ---- map ----
    uint32_t upper, lower, full; ///< half of the cell (the other half is the ground), all of it
    uint32_t shared;             ///< several items
    uint32_t hole, vacant;       ///< free, with something above it; free, and nothing above
    uint32_t outside;            ///< no memory there at that time

    // ---- text ----
    uint32_t cut;          ///< text left out
    uint32_t bad;          ///< a character that cannot be shown
    uint32_t separator;    ///< between facts of a line
    uint32_t times;        ///< before or after a count
    uint32_t rises, falls; ///< behind the title of the column that a list is sorted by
} tide_tui_glyphs;

/// `ascii`: the ASCII tier, else blocks on a screen with colours.
const tide_tui_glyphs *tide_tui_glyphs_of(bool ascii);
/// What a frame is drawn with. `mono`: no colours (NO_COLOR, a frame as plain text): two items in one cell cannot be
/// told apart by colour then. AUTO is BLOCK here: the caller, which knows the locale, chooses.
const tide_tui_glyphs *tide_tui_glyphs_for(tide_tui_glyph_tier tier, bool mono);

#ifdef __cplusplus
}
#endif
#endif
