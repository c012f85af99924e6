// SPDX-License-Identifier: MIT
//
// frame svg: a frame as a picture, for documents and mails: its cells in their colours on a light ground.
#ifndef TIDE_TUI_FRAME_SVG_H
#define TIDE_TUI_FRAME_SVG_H

#include "tui/draw/cells.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Append a whole SVG document. Blocks and lines are drawn as shapes, so that no font's gaps show; all else is text.
void tide_tui_grid_to_svg(const tide_tui_grid *grid, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
