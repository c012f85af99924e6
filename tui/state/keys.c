// SPDX-License-Identifier: MIT
//
// The table of keys and commands, and its text for the terminal and the man page. See keys.h, tui.h.
#include "tui/state/keys.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tui/tui.h"

#define F(n) (TIDE_TUI_KEY_F1 + (n)-1)
// Keys by action. What has none has its name behind ':' alone.
#define KEYS_ROW_UP TIDE_TUI_KEY_UP, 'k'
#define KEYS_ROW_DOWN TIDE_TUI_KEY_DOWN, 'j'
#define KEYS_TIME_LEFT TIDE_TUI_KEY_LEFT, 'h'
#define KEYS_TIME_RIGHT TIDE_TUI_KEY_RIGHT, 'l'
#define KEYS_PAGE_BACK TIDE_TUI_KEY_PAGE_UP, TIDE_TUI_KEY_CTRL_B
#define KEYS_PAGE_ON TIDE_TUI_KEY_PAGE_DOWN, TIDE_TUI_KEY_CTRL_F
#define KEYS_FIRST TIDE_TUI_KEY_HOME, '<'
#define KEYS_LAST TIDE_TUI_KEY_END, 'G', '>'
#define KEYS_PREVIOUS_CHANGE '['
#define KEYS_NEXT_CHANGE ']'
#define KEYS_PREVIOUS_ITEM ','
#define KEYS_NEXT_ITEM '.'
#define KEYS_PEAK 'p'
#define KEYS_PREVIOUS_PEAK 'P'
#define KEYS_HIGHEST '^'
#define KEYS_PREVIOUS_RUN '{'
#define KEYS_NEXT_RUN '}'
#define KEYS_RUN 0
#define KEYS_GOTO 'g'
#define KEYS_ZOOM_IN '+', 'w'
#define KEYS_ZOOM_OUT '-', 's'
#define KEYS_PAN_LEFT TIDE_TUI_KEY_SHIFT_LEFT, 'H', 'a'
#define KEYS_PAN_RIGHT TIDE_TUI_KEY_SHIFT_RIGHT, 'L', 'd'
#define KEYS_WHOLE '0', '='
#define KEYS_FIT 'f'
#define KEYS_SPACE_IN 'Z'
#define KEYS_SPACE_OUT 'z'
#define KEYS_NEXT_PANE TIDE_TUI_KEY_TAB
#define KEYS_PREVIOUS_PANE TIDE_TUI_KEY_SHIFT_TAB
#define KEYS_PANE 0
#define KEYS_VIEW_1 '1'
#define KEYS_VIEW_2 '2'
#define KEYS_VIEW_3 '3', 'e'
#define KEYS_VIEW_4 '4'
#define KEYS_VIEW_5 '5', 'c'
#define KEYS_VIEW_6 '6'
#define KEYS_REQUEST 'r'
#define KEYS_KIND 'K'
#define KEYS_BANDS 'b'
#define KEYS_WEIGHTS 'I'
#define KEYS_SEARCH '/', F(3)
#define KEYS_NEXT_MATCH 'n'
#define KEYS_PREVIOUS_MATCH 'N'
#define KEYS_ALIKE '*'
#define KEYS_FILTER '\\', F(4)
#define KEYS_FILTERS_OFF '|'
#define KEYS_ALIVE '@'
#define KEYS_PERSISTENT 'i'
#define KEYS_SORT 'o', F(6)
#define KEYS_REVERSE 'O'
#define KEYS_GROUP 't'
#define KEYS_OPEN TIDE_TUI_KEY_ENTER
#define KEYS_CLOSE_ALL 'C'
#define KEYS_ROOT 'R'
#define KEYS_RANGE 'v'
#define KEYS_MARK 'm'
#define KEYS_JUMP '\''
#define KEYS_SET_A 'A'
#define KEYS_SET_B 'B'
#define KEYS_EDIT 'E'
#define KEYS_APPLY '!'
#define KEYS_UNDO 'u'
#define KEYS_SAVE_PLAN 'S'
#define KEYS_COPY 'y'
#define KEYS_EXPORT 'x'
#define KEYS_SQL 'Q'
#define KEYS_BATCH 'X'
#define KEYS_PAUSE ' '
#define KEYS_FOLLOW 'F'
#define KEYS_COMMAND ':'
#define KEYS_HELP '?', F(1)
#define KEYS_MOUSE 'M'
#define KEYS_SETUP F(2)
#define KEYS_SET 0
#define KEYS_MESSAGES 0
#define KEYS_RESET 0
#define KEYS_REDRAW TIDE_TUI_KEY_CTRL_L
#define KEYS_BACK TIDE_TUI_KEY_ESC
#define KEYS_QUIT 'q', F(10)

static const tide_tui_binding bindings[] = {
#define XX(name, command, argument, what, group)                                                                       \
    {TIDE_TUI_##name, {KEYS_##name}, command, argument, what, TIDE_TUI_GROUP_##group},
    TIDE_TUI_ACTION_MAP(XX)
#undef XX
};
enum { N_BINDINGS = sizeof bindings / sizeof bindings[0] };

const char *tide_tui_key_group_title(tide_tui_key_group group) {
    static const char *const titles[] = {
        [TIDE_TUI_GROUP_MOVE] = "Move",          [TIDE_TUI_GROUP_ZOOM] = "Zoom and pan",
        [TIDE_TUI_GROUP_VIEW] = "Views",         [TIDE_TUI_GROUP_FIND] = "Find, filter, sort",
        [TIDE_TUI_GROUP_MARK] = "Ranges, marks", [TIDE_TUI_GROUP_WHATIF] = "What if",
        [TIDE_TUI_GROUP_OUT] = "Copy, export",   [TIDE_TUI_GROUP_OTHER] = "Other",
    };
    return group < TIDE_TUI_N_KEY_GROUPS ? titles[group] : "?";
}

size_t tide_tui_bindings(const tide_tui_binding **out) {
    *out = bindings;
    return N_BINDINGS;
}

tide_tui_action tide_tui_action_of(uint32_t key) {
    if (key == 0) return TIDE_TUI_NOTHING;
    for (size_t i = 0; i < N_BINDINGS; i++) {
        for (size_t k = 0; k < TIDE_TUI_MAX_KEYS; k++) {
            if (bindings[i].keys[k] == key) return bindings[i].action;
        }
    }
    return TIDE_TUI_NOTHING;
}

tide_tui_action tide_tui_action_named(const char *name) {
    for (size_t i = 0; i < N_BINDINGS; i++) {
        if (strcmp(bindings[i].name, name) == 0) return bindings[i].action;
    }
    return TIDE_TUI_NOTHING;
}

const tide_tui_binding *tide_tui_binding_of(tide_tui_action action) {
    return action > TIDE_TUI_NOTHING && action < TIDE_TUI_N_ACTIONS ? &bindings[action - 1] : NULL;
}

// ---- names of keys ----

static const struct {
    uint32_t key;
    const char *label;
} named_keys[] = {
    {TIDE_TUI_KEY_UP, "Up"},
    {TIDE_TUI_KEY_DOWN, "Down"},
    {TIDE_TUI_KEY_LEFT, "Left"},
    {TIDE_TUI_KEY_RIGHT, "Right"},
    {TIDE_TUI_KEY_SHIFT_LEFT, "S-Left"},
    {TIDE_TUI_KEY_SHIFT_RIGHT, "S-Right"},
    {TIDE_TUI_KEY_PAGE_UP, "PgUp"},
    {TIDE_TUI_KEY_PAGE_DOWN, "PgDn"},
    {TIDE_TUI_KEY_HOME, "Home"},
    {TIDE_TUI_KEY_END, "End"},
    {TIDE_TUI_KEY_SHIFT_TAB, "S-Tab"},
    {TIDE_TUI_KEY_DELETE, "Del"},
    {TIDE_TUI_KEY_TAB, "Tab"},
    {TIDE_TUI_KEY_ENTER, "Enter"},
    {TIDE_TUI_KEY_ESC, "Esc"},
    {TIDE_TUI_KEY_BACKSPACE, "Bksp"},
    {' ', "Space"},
};
enum { N_NAMED_KEYS = sizeof named_keys / sizeof named_keys[0] };

char *tide_tui_key_label(uint32_t key, char *buf, size_t buf_bytes) {
    for (size_t i = 0; i < N_NAMED_KEYS; i++) {
        if (named_keys[i].key == key) {
            (void)snprintf(buf, buf_bytes, "%s", named_keys[i].label);
            return buf;
        }
    }
    if (key >= TIDE_TUI_KEY_F1 && key <= TIDE_TUI_KEY_F12) {
        (void)snprintf(buf, buf_bytes, "F%u", (unsigned)(key - TIDE_TUI_KEY_F1 + 1));
    } else if (key < ' ') {
        (void)snprintf(buf, buf_bytes, "^%c", (char)(key + '@'));
    } else {
        char utf8[5] = {0};
        (void)tide_utf8_encode(key, utf8);
        (void)snprintf(buf, buf_bytes, "%s", utf8);
    }
    return buf;
}

uint32_t tide_tui_key_named(const char *label) {
    for (size_t i = 0; i < N_NAMED_KEYS; i++) {
        if (strcmp(named_keys[i].label, label) == 0) return named_keys[i].key;
    }
    char name[8];
    for (uint32_t key = TIDE_TUI_KEY_F1; key <= TIDE_TUI_KEY_F12; key++) {
        if (strcmp(tide_tui_key_label(key, name, sizeof name), label) == 0) return key;
    }
    if (label[0] == '^' && label[1] >= '@' && label[1] <= '_' && label[2] == 0) return (uint32_t)(label[1] - '@');
    uint32_t cp = 0;
    const size_t n = tide_utf8_decode(label, &cp);
    return n > 0 && cp != TIDE_UTF8_BAD && label[n] == 0 ? cp : 0;
}

void tide_tui_keys_label(const tide_tui_binding *b, tide_text *out) {
    for (size_t k = 0; k < TIDE_TUI_MAX_KEYS && b->keys[k] != 0; k++) {
        char label[16];
        if (k > 0) tide_text_add(out, " ");
        tide_text_add(out, tide_tui_key_label(b->keys[k], label, sizeof label));
    }
}

// ---- as text ----

/// In troff a hyphen is a soft one, and a backslash, and a dot at the begin of a line, are commands.
static void add_troff(const char *text, tide_text *out) {
    for (; *text != 0; text++) {
        if (*text == '\\') {
            tide_text_add(out, "\\e");
        } else if (*text == '-') {
            tide_text_add(out, "\\-");
        } else if (*text == '\'') {
            tide_text_add(out, "\\(aq");
        } else if (*text == '^') {
            tide_text_add(out, "\\(ha");
        } else {
            tide_text_add_n(out, text, 1);
        }
    }
}

static void add_text_line(const tide_tui_binding *b, tide_text *out) {
    tide_text keys = {0}, command = {0};
    tide_tui_keys_label(b, &keys);
    tide_text_addf(&command, ":%s%s%s", b->name, b->argument[0] != 0 ? " " : "", b->argument);
    tide_text_addf(out, "  %-14s %-30s %s\n", tide_text_str(&keys), tide_text_str(&command), b->what);
    out->failed |= keys.failed || command.failed;
    tide_text_deinit(&keys);
    tide_text_deinit(&command);
}

static void add_troff_line(const tide_tui_binding *b, tide_text *out) {
    tide_text keys = {0};
    tide_tui_keys_label(b, &keys);
    tide_text_add(out, ".TP\n\\fB");
    if (keys.len > 0) {
        add_troff(tide_text_str(&keys), out);
        tide_text_add(out, "\\fR  \\fB");
    }
    tide_text_add(out, ":");
    add_troff(b->name, out);
    tide_text_add(out, "\\fR");
    if (b->argument[0] != 0) {
        tide_text_add(out, " \\fI");
        add_troff(b->argument, out);
        tide_text_add(out, "\\fR");
    }
    tide_text_add(out, "\n\\&");
    add_troff(b->what, out);
    tide_text_add(out, "\n");
    out->failed |= keys.failed;
    tide_text_deinit(&keys);
}

void tide_tui_print_keys(bool troff, tide_text *out) {
    const tide_tui_binding *list;
    const size_t n = tide_tui_bindings(&list);
    for (int g = 0; g < TIDE_TUI_N_KEY_GROUPS; g++) {
        const char *title = tide_tui_key_group_title((tide_tui_key_group)g);
        tide_text_addf(out, troff ? ".SS %s\n" : g > 0 ? "\n%s\n" : "%s\n", title);
        for (size_t i = 0; i < n; i++) {
            if ((int)list[i].group != g) continue;
            if (troff) {
                add_troff_line(&list[i], out);
            } else {
                add_text_line(&list[i], out);
            }
        }
    }
}
