// SPDX-License-Identifier: MIT
//
// keys: the one table of what the terminal view understands. The model acts on its actions, the help overlay and the
// footer print it; a key that is not in it does not exist.
#ifndef TIDE_TUI_KEYS_H
#define TIDE_TUI_KEYS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A key is a Unicode code point or one of these, which lie beyond Unicode.
enum {
    TIDE_TUI_KEY_UP = 0x110000,
    TIDE_TUI_KEY_DOWN,
    TIDE_TUI_KEY_LEFT,
    TIDE_TUI_KEY_RIGHT,
    TIDE_TUI_KEY_SHIFT_LEFT,
    TIDE_TUI_KEY_SHIFT_RIGHT,
    TIDE_TUI_KEY_PAGE_UP,
    TIDE_TUI_KEY_PAGE_DOWN,
    TIDE_TUI_KEY_HOME,
    TIDE_TUI_KEY_END,
    TIDE_TUI_KEY_F1,
    TIDE_TUI_KEY_F6,
    TIDE_TUI_KEY_F10,
    TIDE_TUI_KEY_ESC = 0x1B,
    TIDE_TUI_KEY_CTRL_L = 0x0C
};

typedef enum tide_tui_action {
    TIDE_TUI_NOTHING,
    TIDE_TUI_ROW_UP,
    TIDE_TUI_ROW_DOWN,
    TIDE_TUI_TIME_LEFT,
    TIDE_TUI_TIME_RIGHT,
    TIDE_TUI_PAGE_BACK,
    TIDE_TUI_PAGE_ON,
    TIDE_TUI_FIRST,
    TIDE_TUI_LAST,
    TIDE_TUI_ZOOM_IN,
    TIDE_TUI_ZOOM_OUT,
    TIDE_TUI_PAN_LEFT,
    TIDE_TUI_PAN_RIGHT,
    TIDE_TUI_WHOLE,
    TIDE_TUI_FIT,
    TIDE_TUI_PEAK,
    TIDE_TUI_SORT,
    TIDE_TUI_PERSISTENT,
    TIDE_TUI_HELP,
    TIDE_TUI_REDRAW,
    TIDE_TUI_BACK,
    TIDE_TUI_QUIT,
    TIDE_TUI_N_ACTIONS
} tide_tui_action;

typedef struct tide_tui_binding {
    tide_tui_action action;
    uint32_t keys[3];   ///< 0: none
    const char *label;  ///< the keys as the help prints them
    const char *name;   ///< of the action, for configuration and completion
    const char *what;   ///< one phrase
    const char *footer; ///< "key what" in the footer; NULL: not shown there
    int footer_rank;    ///< lower ones keep their place when the footer is narrow
} tide_tui_binding;

/// @return number of bindings; `*out` is static
size_t tide_tui_bindings(const tide_tui_binding **out);
tide_tui_action tide_tui_action_of(uint32_t key);

#ifdef __cplusplus
}
#endif
#endif
