// SPDX-License-Identifier: MIT
//
// pane document: a pane as JSON and CSV, of a session without a screen or of a scene that is there. Private to tui/.
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
/// What a scene that shows the pane has of it, as one of its tables (`sheet` "": the first) or as a document. `out` is
/// appended to. TIDE_ERR_INVALID for a table that it has not; TIDE_ERR_NOMEM.
tide_status tide__pane_write_csv(const tide_tui_scene *s, tide_tui_pane pane, const char *sheet, tide_text *out,
                                 tide_error *err) TIDE_NODISCARD;
tide_status tide__pane_write_json(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out,
                                  tide_error *err) TIDE_NODISCARD;

#endif
