// SPDX-License-Identifier: MIT
//
// clipboard: text for the terminal's clipboard by OSC 52, which works through ssh, and a file, because a terminal may
// ignore it and cannot be asked.
#ifndef TIDE_TUI_CLIPBOARD_H
#define TIDE_TUI_CLIPBOARD_H

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Terminals take no more than about 100 kB in one control string.
enum { TIDE_TUI_MAX_OSC52 = 74994 };

/**
 * The control string that sets the clipboard to `text`. Inside tmux (`tmux` true) it stands twice: plain, which tmux
 * takes with "set-clipboard on", and passed through to the terminal around it ("allow-passthrough on"); inside screen
 * it is wrapped. Terminals that would print it (`term` "linux", "dumb", "vt…") get nothing.
 *
 * @return false: too long, or not for this terminal; `out` is as it was
 */
bool tide_tui_osc52(const char *text, const char *term, bool tmux, tide_text *out);
/// Where copied text is kept: XDG_STATE_HOME or ~/.local/state, tidemark/copied.txt. TIDE_ERR_NOT_FOUND without a home.
tide_status tide_tui_copy_file(tide_text *path, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
