// SPDX-License-Identifier: MIT
//
// run_tui: `run --tui`: the run goes on in a process of its own and is looked at while it is recorded.
//
//     run --tui ---- fork ----> the run: its output into files, in a process group of its own: keys of the terminal do
//        |                      not reach it                  | records
//        |                                                    v
//        +-- waits for its first run -- fork --> the view -- trace.db (followed)
//        |
//        +-- view left: waits for the run (Ctrl-C ends it), prints its report, ends with its code
//        +-- view ended by INT, TERM or HUP: the run is ended the same way, then as above; the code is 128 + the number
#ifndef TIDE_CLI_RUN_TUI_H
#define TIDE_CLI_RUN_TUI_H

#include <stdint.h>

#include "core/base/status.h"

/// Where the trace of `run --tui` goes: without -o into a temporary folder.
typedef struct cli_run_tui {
    char folder[512]; ///< "" when the trace is kept
    char path[600];
    uint64_t capacity_bytes; ///< a line in the curve (--limit); 0: none
    bool is_child;
    int ready; ///< in the child: closed by cli_run_tui_ready; -1: none
} cli_run_tui;

/// `path` NULL: a folder for the trace is made. TIDE_ERR_INVALID without a terminal; TIDE_ERR_IO.
tide_status cli_run_tui_prepare(const char *path, cli_run_tui *out, tide_error *err) TIDE_NODISCARD;
/// Starts the run and the view. In the child: is_child, and the caller does the run and ends with its code. In the
/// parent: *code is what the program ends with.
tide_status cli_run_tui_start(cli_run_tui *t, int *code, tide_error *err) TIDE_NODISCARD;
/// Called in the child once the trace is being recorded. The view must not open it before: a trace without a
/// recorder looks like that of a killed program.
void cli_run_tui_ready(cli_run_tui *t);

#endif
