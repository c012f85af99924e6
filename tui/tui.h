// SPDX-License-Identifier: MIT
//
// tui: the terminal timeline. State -> layout -> cells are pure functions; one backend puts cells on ncursesw, one
// dumps them as text.
#ifndef TIDE_TUI_TUI_H
#define TIDE_TUI_TUI_H

#include "core/base/text.h"
#include "profiler/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_options {
    bool ascii;     ///< ASCII glyphs only; set when the locale is not UTF-8
    bool no_colour; ///< NO_COLOR or asked
} tide_tui_options;

/// Draw one frame of `width` x `height` cells as text (no escapes), lines ending in '\n': `tui --once`.
tide_status tide_tui_once(const tide_timeline *tl, const tide_tui_options *opt, int width, int height, tide_text *out,
                          tide_error *err) TIDE_NODISCARD;
/// Run interactively on the terminal until the user quits. TIDE_ERR_INVALID when there is no usable terminal.
tide_status tide_tui_run(const tide_timeline *tl, const tide_tui_options *opt, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
