// SPDX-License-Identifier: MIT
//
// pane document: a session without a screen that shows one pane, for its JSON and CSV. Private to tui/pane_*.c.
#ifndef TIDE_TUI_PANE_DOCUMENT_H
#define TIDE_TUI_PANE_DOCUMENT_H

#include "tui/app.h"
#include "tui/sheet.h"

/// "table", or "pools.leaks": the pane and the name of one of its sheets, "" when none is named.
typedef struct tide__pane_choice {
    tide_tui_pane pane;
    const char *sheet;
} tide__pane_choice;

/// TIDE_ERR_INVALID with the nearest name.
tide_status tide__pane_choose(const char *text, tide__pane_choice *out, tide_error *err) TIDE_NODISCARD;
/// The app after the options' commands, with the pane in its scene. What is wrong with the pane is the call's failure.
tide_status tide__pane_open(const tide_tui_session *session, const tide_tui_options *opt, tide_tui_pane pane,
                            tide_tui_app **out, tide_error *err) TIDE_NODISCARD;

#endif
