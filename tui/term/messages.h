// SPDX-License-Identifier: MIT
//
// messages: keeps what the library logs while the view has the screen. Lines on standard error would appear in the
// middle of it: they are kept, shown in the bottom line, listed by ":messages", and passed on when the view ends.
#ifndef TIDE_TUI_MESSAGES_H
#define TIDE_TUI_MESSAGES_H

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_TUI_MAX_MESSAGES = 256 }; ///< that are kept; of more the first go

typedef struct tide_tui_messages tide_tui_messages;

/// Replaces the log sink (core/base/log.h); gets the lines that it would get, at least warnings. Call it before other
/// threads start. NULL: no memory, and the sink is not replaced.
tide_tui_messages *tide_tui_messages_take(void);
/// Sets the previous sink again, which gets all lines that were kept and the number of those that were not. Call it
/// when other threads have ended. Takes NULL.
void tide_tui_messages_give_back(tide_tui_messages *m);
/// Number of lines since the last call; the newest of the gravest of them is written to `buf`. NULL has none.
size_t tide_tui_messages_news(tide_tui_messages *m, char *buf, size_t buf_bytes, bool *is_error);
/// Whether there are any, without taking them.
bool tide_tui_messages_has_news(tide_tui_messages *m);
/// All that are kept, a line each, the oldest first, with what they are ("error: ", "warning: ", "note: ").
void tide_tui_messages_list(tide_tui_messages *m, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
