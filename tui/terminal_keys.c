// SPDX-License-Identifier: MIT
//
// Input: keys of curses to ours, the SGR coding of the mouse (which curses does not decode for tmux, screen and linux,
// and takes a horizontal wheel for a click), pasted text. See terminal.h.
#include <stdlib.h>
#include <string.h>

#include "tui/terminal_internal.h"

enum { MAX_MOUSE_TEXT = 32, REST_MS = 50, N_FUNCTION_KEYS = 12 };

void tide__terminal_define_keys(void) {
    define_key("\033[<", TIDE__MOUSE_CODE);
    define_key("\033[200~", TIDE__PASTE_BEGIN);
    define_key("\033[201~", TIDE__PASTE_END);
}

static uint32_t key_of_code(wint_t code) {
    static const struct {
        wint_t code;
        uint32_t key;
    } known[] = {
        {KEY_UP, TIDE_TUI_KEY_UP},
        {KEY_DOWN, TIDE_TUI_KEY_DOWN},
        {KEY_LEFT, TIDE_TUI_KEY_LEFT},
        {KEY_RIGHT, TIDE_TUI_KEY_RIGHT},
        {KEY_SLEFT, TIDE_TUI_KEY_SHIFT_LEFT},
        {KEY_SRIGHT, TIDE_TUI_KEY_SHIFT_RIGHT},
        {KEY_PPAGE, TIDE_TUI_KEY_PAGE_UP},
        {KEY_NPAGE, TIDE_TUI_KEY_PAGE_DOWN},
        {KEY_HOME, TIDE_TUI_KEY_HOME},
        {KEY_END, TIDE_TUI_KEY_END},
        {KEY_BTAB, TIDE_TUI_KEY_SHIFT_TAB},
        {KEY_DC, TIDE_TUI_KEY_DELETE},
        {KEY_BACKSPACE, TIDE_TUI_KEY_BACKSPACE},
        {KEY_ENTER, TIDE_TUI_KEY_ENTER},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == code) return known[i].key;
    }
    for (int i = 0; i < N_FUNCTION_KEYS; i++) {
        if (code == (wint_t)KEY_F(i + 1)) return TIDE_TUI_KEY_F1 + (uint32_t)i;
    }
    return 0;
}

static uint32_t key_of_character(wint_t c) {
    if (c == '\n') return TIDE_TUI_KEY_ENTER;
    if (c == '\b') return TIDE_TUI_KEY_BACKSPACE;
    return (uint32_t)c;
}

// ---- mouse ----

/// A number, and what follows it in *text; -1: none.
static int take_number(const char **text) {
    if (**text < '0' || **text > '9') return -1;
    char *end;
    const long n = strtol(*text, &end, 10);
    *text = end;
    return n <= 100000 ? (int)n : -1;
}

bool tide_tui_mouse_parse(const char *text, tide_tui_mouse *out) {
    int numbers[3];
    for (int i = 0; i < 3; i++) {
        numbers[i] = take_number(&text);
        if (numbers[i] < 0 || (i < 2 && *text++ != ';')) return false;
    }
    if ((*text != 'M' && *text != 'm') || text[1] != '\0' || numbers[1] < 1 || numbers[2] < 1) return false;
    const int b = numbers[0];
    static const tide_tui_mouse_kind wheels[4] = {TIDE_TUI_MOUSE_WHEEL_UP, TIDE_TUI_MOUSE_WHEEL_DOWN,
                                                  TIDE_TUI_MOUSE_WHEEL_LEFT, TIDE_TUI_MOUSE_WHEEL_RIGHT};
    *out = (tide_tui_mouse){.button = b & 3,
                            .x = numbers[1] - 1,
                            .y = numbers[2] - 1,
                            .shift = (b & 4) != 0,
                            .alt = (b & 8) != 0,
                            .ctrl = (b & 16) != 0};
    if (b & 64)
        out->kind = wheels[b & 3];
    else if (*text == 'm')
        out->kind = TIDE_TUI_MOUSE_RELEASE;
    else
        out->kind = b & 32 ? TIDE_TUI_MOUSE_DRAG : TIDE_TUI_MOUSE_PRESS;
    if (out->kind != TIDE_TUI_MOUSE_PRESS && out->kind != TIDE_TUI_MOUSE_DRAG && out->kind != TIDE_TUI_MOUSE_RELEASE)
        out->button = 0;
    return b < 128 && !((b & 32) != 0 && (b & 3) == 3); // movement without a button says nothing
}

/// The rest of a report; it is on its way already.
static bool read_mouse(const tide_tui_terminal *t, tide_tui_mouse *out) {
    char text[MAX_MOUSE_TEXT];
    size_t n = 0;
    bool ended = false;
    wtimeout(t->keys, REST_MS);
    while (!ended && n + 1 < sizeof text) {
        wint_t c = 0;
        if (wget_wch(t->keys, &c) != OK || c > 0x7E) break;
        text[n++] = (char)c;
        ended = c == 'M' || c == 'm';
    }
    wtimeout(t->keys, 0);
    text[n] = '\0';
    return ended && tide_tui_mouse_parse(text, out);
}

// ---- all of it ----

tide_tui_input tide_tui_terminal_next(tide_tui_terminal *t) {
    for (;;) {
        wint_t code = 0;
        const int got = wget_wch(t->keys, &code);
        tide_tui_input in = {.kind = TIDE_TUI_INPUT_NONE};
        if (got == ERR) return in;
        t->n_empty = 0;
        if (got == KEY_CODE_YES && code == KEY_RESIZE) {
            in.kind = TIDE_TUI_INPUT_RESIZE;
            return in;
        }
        if (got == KEY_CODE_YES && code == TIDE__MOUSE_CODE) {
            if (!read_mouse(t, &in.mouse)) continue;
            in.mouse.t_ms = tide_now_ns() / 1000000; // two presses make a double click when they are near in time
            in.kind = TIDE_TUI_INPUT_MOUSE;
            return in;
        }
        if (got == KEY_CODE_YES && (code == TIDE__PASTE_BEGIN || code == TIDE__PASTE_END)) {
            t->in_paste = code == TIDE__PASTE_BEGIN;
            continue;
        }
        in.key = got == KEY_CODE_YES ? key_of_code(code) : key_of_character(code);
        if (in.key == 0) continue;
        in.kind = t->in_paste ? TIDE_TUI_INPUT_PASTED : TIDE_TUI_INPUT_KEY;
        return in;
    }
}
