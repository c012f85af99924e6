// SPDX-License-Identifier: MIT
//
// draw help: the help overlay, made from the table of keys and from the glyphs in use.
#ifndef TIDE_TUI_DRAW_HELP_H
#define TIDE_TUI_DRAW_HELP_H

#include "tui/draw_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/// All of it, in as many columns as the paper is wide for.
void tide_tui_help_write(tide_tui_paper *p);

#ifdef __cplusplus
}
#endif
#endif
