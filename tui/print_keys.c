// SPDX-License-Identifier: MIT
//
// The table of keys and commands as text and for the man page. See tui.h.
#include "tui/keys.h"
#include "tui/tui.h"

/// troff takes a hyphen for a soft one and a backslash or a dot at the begin of a line for its own.
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
    const tide_tui_binding *bindings;
    const size_t n = tide_tui_bindings(&bindings);
    for (int g = 0; g < TIDE_TUI_N_KEY_GROUPS; g++) {
        const char *title = tide_tui_key_group_title((tide_tui_key_group)g);
        tide_text_addf(out, troff ? ".SS %s\n" : g > 0 ? "\n%s\n" : "%s\n", title);
        for (size_t i = 0; i < n; i++) {
            if ((int)bindings[i].group != g) continue;
            if (troff) {
                add_troff_line(&bindings[i], out);
            } else {
                add_text_line(&bindings[i], out);
            }
        }
    }
}
