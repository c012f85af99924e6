// SPDX-License-Identifier: MIT
//
// glyphs: the two tiers of drawing characters. The Unicode tier keeps to block elements and characters of width 1 that
// common fonts have; braille and emoji are left out on purpose. The ASCII tier says the same with 7 bits.
#ifndef TIDE_TUI_GLYPHS_H
#define TIDE_TUI_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/timeline_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How a bar is filled: the twin of its colour, so that nothing is told by colour alone.
#define TIDE_TUI_BAR_MAP(XX)                                                                                           \
    XX(INTERMEDIATE, 0x2588, '=')                                                                                      \
    XX(SCRATCH, 0x2592, '~')                                                                                           \
    XX(INOUT, 0x2593, '+')                                                                                             \
    XX(WEIGHT, 0x2591, '-')                                                                                            \
    XX(KV_CACHE, 0x2261, 'k')                                                                                          \
    XX(HOST, 0x2584, 'h')

typedef struct tide_tui_glyphs {
    bool ascii;
    uint32_t rise[9];       ///< a cell filled by 0 to 8 eighths from below
    uint32_t spike;         ///< between the smallest and the largest value of a column
    uint32_t bound;         ///< lower bound
    uint32_t plan;          ///< planned bytes
    uint32_t rule;          ///< axis
    uint32_t tick;          ///< axis with a label
    uint32_t peak;          ///< axis at the peak
    uint32_t cursor;        ///< line of the time cursor
    uint32_t crossing;      ///< axis at the cursor
    uint32_t before, after; ///< a bar that lies outside the window, to the left or right
    uint32_t cut;           ///< text left out
    uint32_t bad;           ///< a character that cannot be shown
    uint32_t bar[TIDE_TIMELINE_N_FILLS];
} tide_tui_glyphs;

const tide_tui_glyphs *tide_tui_glyphs_of(bool ascii);

#ifdef __cplusplus
}
#endif
#endif
