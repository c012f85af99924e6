// SPDX-License-Identifier: MIT
//
// script: keys, mouse and commands as lines of text, done without a terminal. Tests and documents are written in it.
//
//     # a comment                       and empty lines
//     key Down Down Enter               keys by their labels (as the help shows them)
//     keys jjk                          a key for each character
//     type size>1MiB                    text, into a prompt: the rest of the line, blanks too
//     do filter kind=workspace          a command line, as behind ':'
//     mouse press 20 5                  press, drag, release, wheel-up, wheel-down, wheel-left, wheel-right; then
//     column
//                                       and line from 0; then any of: middle right shift ctrl alt, and ms=N (the time)
//     resize 80x24
//     dump                              the frame, as text, into the output
//     say -- after the filter           this text, into the output
//     expect 2 of 12                    the frame has this text in one of its lines
//     refuse error                      it has not
//
// Everything that would be done aside is waited for. The first line that fails ends the script.
#ifndef TIDE_TUI_SCRIPT_H
#define TIDE_TUI_SCRIPT_H

#include "tui/app.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One line, without its end. TIDE_ERR_INVALID for what is no such line; TIDE_ERR_VERIFY for an expectation that does
/// not hold (the frame goes into `out` then). *leave: the view was quitted.
tide_status tide_tui_script_line(tide_tui_app *app, const char *line, tide_text *out, bool *leave,
                                 tide_error *err) TIDE_NODISCARD;
/// All lines on an app that is open; errors say which one.
tide_status tide_tui_script_run(tide_tui_app *app, const char *script, tide_text *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
