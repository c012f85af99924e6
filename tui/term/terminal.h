// SPDX-License-Identifier: MIT
//
// terminal: the backend of a screen: cells out (paint.h, or curses); keys, mouse and signals in (curses). It knows
// no panes, and only this file uses ncurses. One terminal per process.
#ifndef TIDE_TUI_TERMINAL_H
#define TIDE_TUI_TERMINAL_H

#include "tui/draw/colours.h"
#include "tui/state/keys.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_terminal tide_tui_terminal;

/// Whether there is a terminal that can place its cursor. TIDE_ERR_INVALID with what is missing and a hint.
tide_status tide_tui_terminal_check(tide_error *err) TIDE_NODISCARD;
/// Its size now, without taking it; 80x24 where it does not say.
void tide_tui_terminal_ask_size(int *width, int *height);
/// Takes the screen. TIDE_ERR_INVALID, TIDE_ERR_NOMEM.
tide_status tide_tui_terminal_open(const tide_tui_options *opt, tide_tui_terminal **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Gives it back as it was. Takes NULL.
void tide_tui_terminal_close(tide_tui_terminal *t);

void tide_tui_terminal_size(const tide_tui_terminal *t, int *width, int *height);
/// Never AUTO.
tide_tui_colour_tier tide_tui_terminal_tier(const tide_tui_terminal *t);
/// Put a frame of the terminal's size on the screen; only what differs from the last one is sent, unless `repaint`.
tide_status tide_tui_terminal_show(tide_tui_terminal *t, const tide_tui_grid *grid, bool repaint,
                                   tide_error *err) TIDE_NODISCARD;
/// Clicks and wheel come to the view (true) or stay the terminal's own.
void tide_tui_terminal_set_mouse(tide_tui_terminal *t, bool on);
/// A control string that curses need not know of.
void tide_tui_terminal_write(tide_tui_terminal *t, const char *bytes, size_t n);

typedef enum tide_tui_input_kind {
    TIDE_TUI_INPUT_NONE, ///< nothing has come yet
    TIDE_TUI_INPUT_KEY,
    TIDE_TUI_INPUT_PASTED, ///< a character of pasted text: it means itself, never an action
    TIDE_TUI_INPUT_MOUSE,
    TIDE_TUI_INPUT_RESIZE,
    TIDE_TUI_INPUT_GONE, ///< there is no terminal any more
} tide_tui_input_kind;
typedef struct tide_tui_input {
    tide_tui_input_kind kind;
    uint32_t key;
    tide_tui_mouse mouse;
} tide_tui_input;
/// What has come, without waiting.
tide_tui_input tide_tui_terminal_next(tide_tui_terminal *t);

typedef enum tide_tui_wakes {
    TIDE_TUI_WOKE_INPUT = 1,   ///< the terminal has something
    TIDE_TUI_WOKE_OTHER = 2,   ///< `other_fd` has
    TIDE_TUI_WOKE_SUSPEND = 4, ///< SIGTSTP: tide_tui_terminal_suspend
    TIDE_TUI_WOKE_RESUME = 8,  ///< SIGCONT: the screen has to be sent again
    TIDE_TUI_WOKE_GONE = 16,
} tide_tui_wakes;
/// Wait for input, signals or `other_fd` (-1: none), at most `timeout_ms` (-1: for ever). @return TIDE_TUI_WOKE_… bits
unsigned tide_tui_terminal_wait(tide_tui_terminal *t, int other_fd, int timeout_ms);
/// Screen given back, stopped, and taken again when the process goes on.
void tide_tui_terminal_suspend(tide_tui_terminal *t);

/// "0;12;7M": what follows "\033[<" in the SGR coding of a mouse. False: no such text.
bool tide_tui_mouse_parse(const char *text, tide_tui_mouse *out);

#ifdef __cplusplus
}
#endif
#endif
