// SPDX-License-Identifier: MIT
//
// tui_view: the terminal view as `tui` and `run --tui` open it: whether there is a terminal, where its state is kept,
// and the session over the files.
#ifndef TIDE_CLI_TUI_VIEW_H
#define TIDE_CLI_TUI_VIEW_H

#include "cli/view.h"
#include "tui/tui.h"

/// TIDE_ERR_INVALID, with what to use instead, if there is no terminal for the view and its keys.
tide_status cli_tui_need_terminal(tide_error *err) TIDE_NODISCARD;

/// Where the view of these files (`b` may be NULL) is kept: $XDG_STATE_HOME/tidemark or ~/.local/state/tidemark, under
/// a number made of their absolute paths; the folder is made. NULL: there is no such place, or a file has no path.
char *cli_tui_state_path(const char *a, const char *b) TIDE_NODISCARD;

/// `text` as a word of a command line, quoted where a shell would take it for something else.
void cli_shell_word(const char *text, tide_text *out);

/// A session that can open further files as the first one was opened. `view` stays until the session is over.
typedef struct cli_tui_session {
    const cli_view *view;
    cli_subject a, b;
    tide_text prefix; ///< "tidemark tui" and the options that matter; the files are added
    tide_tui_session session;
} cli_tui_session;
/// `b` NULL: one file. What `prefix` holds already stays.
tide_status cli_tui_session_open(const cli_view *view, const char *a, const char *b, uint64_t capacity_bytes,
                                 cli_tui_session *out, tide_error *err) TIDE_NODISCARD;
void cli_tui_session_close(cli_tui_session *s);

#endif
