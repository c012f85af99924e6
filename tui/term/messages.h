// SPDX-License-Identifier: MIT
//
// messages: what the library logs while the screen is the view's. Lines to standard error would stand in the middle of
// it: they are kept, said in the bottom line, listed by ":messages", and handed on when the screen is given back.
#ifndef TIDE_TUI_MESSAGES_H
#define TIDE_TUI_MESSAGES_H

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_TUI_MAX_MESSAGES = 256 }; ///< that are kept; of more the first go

typedef struct tide_tui_messages tide_tui_messages;

/// Takes the place of the sink of log lines that is set (core/base/log.h), and hears what it would, warnings at least.
/// Before other threads begin. NULL: no memory; lines then go where they went.
tide_tui_messages *tide_tui_messages_take(void);
/// The sink before is set again, and hears all lines that are kept; of those that are not it hears how many. When other
/// threads have ended. Takes NULL.
void tide_tui_messages_give_back(tide_tui_messages *m);
/// Lines since it was last asked; the newest of the gravest of them in `buf`. NULL has none.
size_t tide_tui_messages_news(tide_tui_messages *m, char *buf, size_t buf_bytes, bool *is_error);
/// Whether there are any, without taking them.
bool tide_tui_messages_has_news(tide_tui_messages *m);
/// All that are kept, a line each, the oldest first, with what they are ("error: ", "warning: ", "note: ").
void tide_tui_messages_list(tide_tui_messages *m, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
