// SPDX-License-Identifier: MIT
//
// layout: which rectangle of the screen shows what. Pure: a size in, rectangles out; panes that do not fit are empty.
//
//     | title                                            |
//     | summary                                          |
//     | curve labels | curve                      |      |
//     |              | ruler, ticks               |      |
//     | header                                           |
//     | names        | bars                       | sizes|   gantt
//     | details                                          |
//     | footer                                           |
//
// Curve, ruler and bars share their columns: one time axis.
#ifndef TIDE_TUI_LAYOUT_H
#define TIDE_TUI_LAYOUT_H

#include "tui/cells.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TIDE_TUI_MIN_WIDTH = 40,
    TIDE_TUI_MIN_HEIGHT = 10,
    TIDE_TUI_MAX_COLUMNS = 1024, ///< more columns than these stay blank
};

typedef struct tide_tui_layout {
    int width, height;
    bool too_small; ///< below the minimum: only a message fits
    tide_tui_rect title, summary;
    tide_tui_rect curve_labels, curve, ruler, ticks;
    tide_tui_rect header, names, bars, sizes;
    tide_tui_rect details;
    tide_tui_rect footer;
    tide_tui_rect help; ///< everything between title and footer
} tide_tui_layout;

void tide_tui_layout_make(int width, int height, tide_tui_layout *out);

#ifdef __cplusplus
}
#endif
#endif
