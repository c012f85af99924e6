// SPDX-License-Identifier: MIT
//
// The key table. See keys.h.
#include "tui/keys.h"

static const tide_tui_binding bindings[] = {
    {TIDE_TUI_ROW_UP, {TIDE_TUI_KEY_UP, 'k'}, "Up k", "row-up", "select the row above", NULL, 0},
    {TIDE_TUI_ROW_DOWN, {TIDE_TUI_KEY_DOWN, 'j'}, "Down j", "row-down", "select the row below", NULL, 0},
    {TIDE_TUI_TIME_LEFT, {TIDE_TUI_KEY_LEFT, 'h'}, "Left h", "time-left", "move the time cursor left", NULL, 0},
    {TIDE_TUI_TIME_RIGHT, {TIDE_TUI_KEY_RIGHT, 'l'}, "Right l", "time-right", "move the time cursor right", NULL, 0},
    {TIDE_TUI_PAGE_BACK, {TIDE_TUI_KEY_PAGE_UP}, "PgUp", "page-back", "one page of rows back", NULL, 0},
    {TIDE_TUI_PAGE_ON, {TIDE_TUI_KEY_PAGE_DOWN}, "PgDn", "page-on", "one page of rows on", NULL, 0},
    {TIDE_TUI_FIRST, {'g', TIDE_TUI_KEY_HOME}, "g Home", "first", "select the first row", NULL, 0},
    {TIDE_TUI_LAST, {'G', TIDE_TUI_KEY_END}, "G End", "last", "select the last row", NULL, 0},
    {TIDE_TUI_ZOOM_IN, {'+', '='}, "+ =", "zoom-in", "zoom in around the cursor", "+- zoom", 3},
    {TIDE_TUI_ZOOM_OUT, {'-', '_'}, "- _", "zoom-out", "zoom out around the cursor", NULL, 0},
    {TIDE_TUI_PAN_LEFT,
     {'H', TIDE_TUI_KEY_SHIFT_LEFT},
     "H S-Left",
     "pan-left",
     "pan left by half a window",
     "HL pan",
     9},
    {TIDE_TUI_PAN_RIGHT,
     {'L', TIDE_TUI_KEY_SHIFT_RIGHT},
     "L S-Right",
     "pan-right",
     "pan right by half a window",
     NULL,
     0},
    {TIDE_TUI_WHOLE, {'0'}, "0", "whole", "show the whole axis", "0 whole", 7},
    {TIDE_TUI_FIT, {'f'}, "f", "fit", "fit the selected lifetime", "f fit", 5},
    {TIDE_TUI_PEAK, {'p'}, "p", "peak", "move the cursor to the peak", "p peak", 4},
    {TIDE_TUI_SORT, {'o', TIDE_TUI_KEY_F6}, "o F6", "sort", "sort by begin, size, name, life", "o sort", 8},
    {TIDE_TUI_PERSISTENT, {'w'}, "w", "persistent", "hide or show weights, inputs, outputs", "w weights", 6},
    {TIDE_TUI_HELP, {'?', TIDE_TUI_KEY_F1}, "? F1", "help", "show or leave this help", "? help", 2},
    {TIDE_TUI_REDRAW, {TIDE_TUI_KEY_CTRL_L}, "Ctrl-L", "redraw", "draw the screen anew", NULL, 0},
    {TIDE_TUI_BACK, {TIDE_TUI_KEY_ESC}, "Esc", "back", "leave the help", NULL, 0},
    {TIDE_TUI_QUIT, {'q', TIDE_TUI_KEY_F10}, "q F10", "quit", "leave the help, else quit", "q quit", 1},
};

enum { N_BINDINGS = sizeof bindings / sizeof bindings[0] };

size_t tide_tui_bindings(const tide_tui_binding **out) {
    *out = bindings;
    return N_BINDINGS;
}

tide_tui_action tide_tui_action_of(uint32_t key) {
    if (key == 0) return TIDE_TUI_NOTHING;
    for (size_t i = 0; i < N_BINDINGS; i++) {
        for (size_t k = 0; k < sizeof bindings[i].keys / sizeof bindings[i].keys[0]; k++) {
            if (bindings[i].keys[k] == key) return bindings[i].action;
        }
    }
    return TIDE_TUI_NOTHING;
}
