// SPDX-License-Identifier: MIT
//
// time axis: what all panes with a time axis share: the cursor's line, the selected range, heights of bytes.
#ifndef TIDE_TUI_DRAW_TIME_AXIS_H
#define TIDE_TUI_DRAW_TIME_AXIS_H

#include "tui/draw/draw.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Range (ground and edges) and cursor in a rectangle whose columns are those of the window; what is drawn there stays,
/// except full blocks and dots, over which the cursor's line is drawn.
void tide_tui_draw_time_lines(const tide_tui_view *v, tide_tui_rect r);
/// `bytes` in `parts` parts of a cell in `h` cells whose top is `top`; more than nothing is at least one part.
int tide_tui_height_of(uint64_t bytes, uint64_t top, int h, int parts);
/// "step 12 (Conv_3): 480 KiB live": what the cursor points at, or "at 1.5 ms: …".
void tide_tui_say_cursor(const tide_tui_view *v, char *buf, size_t buf_bytes);

#ifdef __cplusplus
}
#endif
#endif
