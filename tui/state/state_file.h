// SPDX-License-Identifier: MIT
//
// state file: where the view is kept between two sessions: a `tidemark.tui-state` document beside the trace or under
// XDG_STATE_HOME, as the program chooses.
//
//     {"schema": "tidemark.tui-state", "version": 1,
//      "axis": {"unit": "steps"|"ns", "begin": …, "end": …},
//      "preset": "memory", "focus": "gantt", "window": {"begin": …, "end": …}, "cursor": {"t": …, "event": …},
//      "kind": "workspace"|null, "bands": "kind"|…|"off", "folds_weights": false,
//      "sort": "size", "reverse": false, "group": "none"|null,
//      "hides_persistent": false, "filters": ["size>=1MiB", …], "filters_off": false,
//      "marks": [{"name": "a", "t": …, "event": …, "text": "…"}, …], "search": "…", "capacity_bytes": …, "mouse": true}
//
// Moments count only for the axis that they were written for: a file that was recorded anew keeps filters and order,
// and loses cursor, window and marks.
#ifndef TIDE_TUI_STATE_FILE_H
#define TIDE_TUI_STATE_FILE_H

#include "tui/state/state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_TUI_STATE_SCHEMA "tidemark.tui-state"
enum { TIDE_TUI_STATE_VERSION = 1 };

/// The file is written beside and renamed; missing folders are made. TIDE_ERR_IO, TIDE_ERR_NOMEM.
tide_status tide_tui_state_save(const tide_tui_state *st, const char *path, tide_error *err) TIDE_NODISCARD;
/**
 * What the file says becomes the state, all of it or nothing. *is_there (may be NULL): there is a file.
 *
 * @return TIDE_OK also when there is none; TIDE_ERR_BAD_INPUT when it is damaged or of another version, with what is
 * wrong: the state is as it was then; TIDE_ERR_IO
 */
tide_status tide_tui_state_load(tide_tui_state *st, const char *path, bool *is_there, tide_error *err) TIDE_NODISCARD;
/// TIDE_OK also when there is none.
tide_status tide_tui_state_forget(const char *path, tide_error *err) TIDE_NODISCARD;
/// Folders above `path`, as far as they are missing, for the user alone. TIDE_ERR_IO.
tide_status tide_tui_make_folders(const char *path, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
