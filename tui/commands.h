// SPDX-License-Identifier: MIT
//
// commands: the words that commands understand, for parsing and for completion. Private to tui/commands*, complete.c.
#ifndef TIDE_TUI_COMMANDS_H
#define TIDE_TUI_COMMANDS_H

#include "tui/actions.h"

#ifdef __cplusplus
extern "C" {
#endif

/// First words that an action understands behind its name, in the order of their numbers (of KIND with "all" as the
/// last). @return their number; 0: it takes none, or any text
size_t tide__words_of(tide_tui_action action, const char **words, size_t max);

#ifdef __cplusplus
}
#endif
#endif
