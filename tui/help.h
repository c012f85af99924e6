// SPDX-License-Identifier: MIT
//
// help: the overlay's text, made from the key table and the legends.
#ifndef TIDE_TUI_HELP_H
#define TIDE_TUI_HELP_H

#ifdef __cplusplus
extern "C" {
#endif

/// Lines of the help, whatever the width.
int tide_tui_help_lines(void);

#ifdef __cplusplus
}
#endif
#endif
