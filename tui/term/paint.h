// SPDX-License-Identifier: MIT
//
// paint: a frame as bytes for a terminal that follows ECMA-48 (xterm, tmux, screen, linux and compatible ones). Pure:
// it keeps what is on the screen, and returns the bytes that turn it into the new frame.
//
// What costs is switching colours (up to 38 bytes), far more than moving (2 to 8): so cells that differ are written in
// order of their pens, each pen once, wherever on the screen they lie. A cursor line across fifty rows is one switch
// and fifty times two bytes of movement.
#ifndef TIDE_TUI_PAINT_H
#define TIDE_TUI_PAINT_H

#include "tui/draw/colours.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_paint_options {
    tide_tui_colour_tier tier; ///< never AUTO
    tide_tui_ground ground;
    bool ascii;  ///< characters beyond ASCII are written as '?'
    bool erases; ///< knows ECH
} tide_tui_paint_options;

typedef struct tide_tui_paint tide_tui_paint;

/// A painter of a screen of which nothing is known. TIDE_ERR_NOMEM.
tide_status tide_tui_paint_create(const tide_tui_paint_options *opt, tide_tui_paint **out,
                                  tide_error *err) TIDE_NODISCARD;
void tide_tui_paint_destroy(tide_tui_paint *p);
/// Forget what is on the screen, with colours and place of its cursor: the next frame clears it.
void tide_tui_paint_forget(tide_tui_paint *p);
/**
 * Append what makes `grid` of what is on the screen; nothing when it is there already. A grid of another size is
 * painted on a cleared screen. TIDE_ERR_NOMEM: the screen is as unknown as after tide_tui_paint_forget.
 */
tide_status tide_tui_paint_frame(tide_tui_paint *p, const tide_tui_grid *grid, tide_text *out,
                                 tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
