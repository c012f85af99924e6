// SPDX-License-Identifier: MIT
//
// keys: the one table of what the terminal view understands: actions, their keys, their names behind ':', what they do.
// Help overlay, hints, man page and completion print it; a key or command that is not in it does not exist.
#ifndef TIDE_TUI_KEYS_H
#define TIDE_TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"

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
    TIDE_TUI_KEY_SHIFT_TAB,
    TIDE_TUI_KEY_DELETE,
    TIDE_TUI_KEY_F1, ///< F1 … F12 in a row
    TIDE_TUI_KEY_F12 = TIDE_TUI_KEY_F1 + 11,
    TIDE_TUI_KEY_TAB = 0x09,
    TIDE_TUI_KEY_ENTER = 0x0D,
    TIDE_TUI_KEY_ESC = 0x1B,
    TIDE_TUI_KEY_BACKSPACE = 0x7F,
    TIDE_TUI_KEY_CTRL_B = 0x02,
    TIDE_TUI_KEY_CTRL_F = 0x06,
    TIDE_TUI_KEY_CTRL_L = 0x0C,
    TIDE_TUI_KEY_CTRL_U = 0x15, ///< of a prompt: delete what stands before the cursor
    TIDE_TUI_KEY_CTRL_W = 0x17, ///< of a prompt: delete the word before it
};

typedef enum tide_tui_mouse_kind {
    TIDE_TUI_MOUSE_PRESS,
    TIDE_TUI_MOUSE_DRAG,
    TIDE_TUI_MOUSE_RELEASE,
    TIDE_TUI_MOUSE_WHEEL_UP,
    TIDE_TUI_MOUSE_WHEEL_DOWN,
    TIDE_TUI_MOUSE_WHEEL_LEFT,
    TIDE_TUI_MOUSE_WHEEL_RIGHT
} tide_tui_mouse_kind;
typedef struct tide_tui_mouse {
    tide_tui_mouse_kind kind;
    int button; ///< 0 left, 1 middle, 2 right
    int x, y;   ///< cell, from 0
    bool shift, ctrl, alt;
    uint64_t t_ms; ///< of any clock; two presses within TIDE_TUI_DOUBLE_CLICK_MS on one cell are a double click
} tide_tui_mouse;
enum { TIDE_TUI_DOUBLE_CLICK_MS = 400 };

/// Action, name behind ':', argument ("" none), what it does, group in the help. Keys are in keys.c.
#define TIDE_TUI_ACTION_MAP(XX)                                                                                        \
    XX(ROW_UP, "up", "", "row up", MOVE)                                                                               \
    XX(ROW_DOWN, "down", "", "row down", MOVE)                                                                         \
    XX(TIME_LEFT, "left", "", "cursor one column left; in call stacks: close", MOVE)                                   \
    XX(TIME_RIGHT, "right", "", "cursor one column right; in call stacks: open", MOVE)                                 \
    XX(PAGE_BACK, "page-up", "", "a page up", MOVE)                                                                    \
    XX(PAGE_ON, "page-down", "", "a page down", MOVE)                                                                  \
    XX(FIRST, "first", "", "first row", MOVE)                                                                          \
    XX(LAST, "last", "", "last row", MOVE)                                                                             \
    XX(PREVIOUS_CHANGE, "previous-change", "", "to the previous allocation or free", MOVE)                             \
    XX(NEXT_CHANGE, "next-change", "", "to the next allocation or free", MOVE)                                         \
    XX(PREVIOUS_ITEM, "previous-item", "", "previous item of the row (or that had its place)", MOVE)                   \
    XX(NEXT_ITEM, "next-item", "", "next item of the row (or that gets its place)", MOVE)                              \
    XX(PEAK, "peak", "", "next peak; the highest when there is none", MOVE)                                            \
    XX(PREVIOUS_PEAK, "previous-peak", "", "previous peak", MOVE)                                                      \
    XX(HIGHEST, "highest", "", "the highest peak of all", MOVE)                                                        \
    XX(PREVIOUS_RUN, "previous-run", "", "to where the execution before begins", MOVE)                                 \
    XX(NEXT_RUN, "next-run", "", "to where the next execution begins", MOVE)                                           \
    XX(RUN, "run", "NUMBER", "one execution alone: 0, cold, warm, all", MOVE)                                          \
    XX(GOTO, "goto", "STEP|TIME|ADDRESS", "go to a step, time, 50%, address, exec:12:5, fragmented", MOVE)             \
    XX(ZOOM_IN, "zoom-in", "", "zoom in at the cursor", ZOOM)                                                          \
    XX(ZOOM_OUT, "zoom-out", "", "zoom out", ZOOM)                                                                     \
    XX(PAN_LEFT, "pan-left", "", "half a window left", ZOOM)                                                           \
    XX(PAN_RIGHT, "pan-right", "", "half a window right", ZOOM)                                                        \
    XX(WHOLE, "whole", "", "everything", ZOOM)                                                                         \
    XX(FIT, "fit", "[FROM TO]", "fit the selection or the range; again: back", ZOOM)                                   \
    XX(SPACE_IN, "zoom-addresses-in", "", "zoom into the addresses of the map", ZOOM)                                  \
    XX(SPACE_OUT, "zoom-addresses-out", "", "zoom out of the addresses of the map", ZOOM)                              \
    XX(NEXT_PANE, "next-pane", "", "next pane", VIEW)                                                                  \
    XX(PREVIOUS_PANE, "previous-pane", "", "previous pane", VIEW)                                                      \
    XX(PANE, "pane", "NAME", "put the focus on a pane", VIEW)                                                          \
    XX(VIEW_1, "view", "[1-6|NAME]", "lifetimes; :view takes any", VIEW)                                               \
    XX(VIEW_2, "memory", "", "memory: addresses over time", VIEW)                                                      \
    XX(VIEW_3, "explain", "", "peak: why it is so much", VIEW)                                                         \
    XX(VIEW_4, "allocators", "", "allocators and leaks", VIEW)                                                         \
    XX(VIEW_5, "compare", "[FILE|exec:I exec:J]", "A and B; two executions", VIEW)                                     \
    XX(VIEW_6, "stacks", "", "call stacks: who asked for what is alive", VIEW)                                         \
    XX(REQUEST, "request", "SIZE", "would a pool serve SIZE (all: what is free); 0: off", VIEW)                        \
    XX(KIND, "kind", "[KIND]", "curve of one kind of memory; again: the next", VIEW)                                   \
    XX(BANDS, "bands", "[BY]", "curve by kind, operator, pool, tensor, process", VIEW)                                 \
    XX(WEIGHTS, "weights", "", "fold weights away in curve, rows and bound; again: back", VIEW)                        \
    XX(SEARCH, "search", "REGEX", "search names", FIND)                                                                \
    XX(NEXT_MATCH, "next-match", "", "next match", FIND)                                                               \
    XX(PREVIOUS_MATCH, "previous-match", "", "previous match", FIND)                                                   \
    XX(ALIKE, "alike", "", "only items of the same size; again: all", FIND)                                            \
    XX(FILTER, "filter", "CONDITIONS", "add a filter; nothing: take the last one off", FIND)                           \
    XX(FILTERS_OFF, "filters", "", "filters off and on again", FIND)                                                   \
    XX(ALIVE, "alive", "", "only what is alive at the cursor", FIND)                                                   \
    XX(PERSISTENT, "persistent", "", "hide or show weights, inputs and outputs", FIND)                                 \
    XX(SORT, "sort", "[ORDER]", "next order of rows, or of the list that has the focus by a column", FIND)             \
    XX(REVERSE, "reverse", "", "turn the order round", FIND)                                                           \
    XX(GROUP, "group", "[BY]", "next grouping of rows", FIND)                                                          \
    XX(OPEN, "open", "", "open a group; again: close it", FIND)                                                        \
    XX(CLOSE_ALL, "close-all", "", "close all of the call stacks; again: open what is heavy", FIND)                    \
    XX(ROOT, "root", "[REGEX]", "the selected call of the stacks alone; again: all of them", FIND)                     \
    XX(RANGE, "range", "[FROM TO]", "select a range of time from here on; again: drop it", MARK)                       \
    XX(MARK, "mark", "[LETTER] [TEXT]", "mark this moment", MARK)                                                      \
    XX(JUMP, "jump", "[LETTER]", "to a mark", MARK)                                                                    \
    XX(SET_A, "set-a", "", "this moment is A", MARK)                                                                   \
    XX(SET_B, "set-b", "", "this moment is B", MARK)                                                                   \
    XX(EDIT, "edit", "EDIT", "what if: change the plan", WHATIF)                                                       \
    XX(APPLY, "apply", "", "apply the selected advice", WHATIF)                                                        \
    XX(UNDO, "undo", "", "take the last edit back", WHATIF)                                                            \
    XX(SAVE_PLAN, "save-plan", "FILE", "write the changed plan", WHATIF)                                               \
    XX(COPY, "copy", "", "copy the selection", OUT)                                                                    \
    XX(EXPORT, "export", "FILE", "write the frame (.txt .svg), the pane (.csv .json), all (.html)", OUT)               \
    XX(SQL, "sql", "[SELECT]", "the SQL behind this pane, or an answer", OUT)                                          \
    XX(BATCH, "batch", "", "the command line that prints this view", OUT)                                              \
    XX(PAUSE, "pause", "", "hold the view while data goes on", OUT)                                                    \
    XX(FOLLOW, "follow", "", "keep the newest in view", OUT)                                                           \
    XX(COMMAND, "command", "", "command line", OTHER)                                                                  \
    XX(HELP, "help", "", "this help", OTHER)                                                                           \
    XX(MOUSE, "mouse", "", "mouse on or off", OTHER)                                                                   \
    XX(SETUP, "setup", "", "settings", OTHER)                                                                          \
    XX(SET, "set", "NAME [VALUE]", "a setting: capacity, mouse, sort, group, kind, bands, weights", OTHER)             \
    XX(MESSAGES, "messages", "", "what was logged while the view was open", OTHER)                                     \
    XX(RESET, "reset", "", "forget filters, marks and saved state", OTHER)                                             \
    XX(REDRAW, "redraw", "", "draw everything anew", OTHER)                                                            \
    XX(BACK, "back", "", "close, cancel, go back", OTHER)                                                              \
    XX(QUIT, "quit", "", "back, then quit", OTHER)
typedef enum tide_tui_action {
    TIDE_TUI_NOTHING,
#define XX(name, command, argument, what, group) TIDE_TUI_##name,
    TIDE_TUI_ACTION_MAP(XX)
#undef XX
        TIDE_TUI_N_ACTIONS
} tide_tui_action;

typedef enum tide_tui_key_group {
    TIDE_TUI_GROUP_MOVE,
    TIDE_TUI_GROUP_ZOOM,
    TIDE_TUI_GROUP_VIEW,
    TIDE_TUI_GROUP_FIND,
    TIDE_TUI_GROUP_MARK,
    TIDE_TUI_GROUP_WHATIF,
    TIDE_TUI_GROUP_OUT,
    TIDE_TUI_GROUP_OTHER,
    TIDE_TUI_N_KEY_GROUPS
} tide_tui_key_group;
const char *tide_tui_key_group_title(tide_tui_key_group group);

enum { TIDE_TUI_MAX_KEYS = 4 };
typedef struct tide_tui_binding {
    tide_tui_action action;
    uint32_t keys[TIDE_TUI_MAX_KEYS]; ///< 0: none
    const char *name;                 ///< behind ':', also for completion
    const char *argument;             ///< "" none; [ ] optional
    const char *what;                 ///< one phrase
    tide_tui_key_group group;
} tide_tui_binding;

/// By action, in the order of the map. @return their number; `*out` is static
size_t tide_tui_bindings(const tide_tui_binding **out);
tide_tui_action tide_tui_action_of(uint32_t key);
/// NOTHING when no command has that name. A number is no name.
tide_tui_action tide_tui_action_named(const char *name);
const tide_tui_binding *tide_tui_binding_of(tide_tui_action action);
/// "Left", "h", "^L", "F10".
char *tide_tui_key_label(uint32_t key, char *buf, size_t buf_bytes);
/// The key that a label names ("j", "Left", "S-Tab", "F10", "^L", "Space", "Esc"); 0: none.
uint32_t tide_tui_key_named(const char *label);
/// All keys of an action: "Left h".
void tide_tui_keys_label(const tide_tui_binding *b, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
