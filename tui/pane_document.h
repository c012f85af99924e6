// SPDX-License-Identifier: MIT
//
// pane document: a pane as JSON and CSV. Private to tui/.
#ifndef TIDE_TUI_PANE_DOCUMENT_H
#define TIDE_TUI_PANE_DOCUMENT_H

#include "tui/sheet.h"

/// What a scene that shows the pane has of it, as one of its tables (`sheet` "": the first) or as a document. `out` is
/// appended to. TIDE_ERR_INVALID for a table that it has not; TIDE_ERR_NOMEM.
tide_status tide__pane_write_csv(const tide_tui_scene *s, tide_tui_pane pane, const char *sheet, tide_text *out,
                                 tide_error *err) TIDE_NODISCARD;
tide_status tide__pane_write_json(const tide_tui_scene *s, tide_tui_pane pane, tide_text *out,
                                  tide_error *err) TIDE_NODISCARD;

#endif
