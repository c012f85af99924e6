// SPDX-License-Identifier: MIT
//
// OSC 52. See clipboard.h.
#include "tui/term/clipboard.h"
#include "core/base/host_alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void add_base64(const char *text, size_t n, tide_text *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t a = (unsigned char)text[i], b = left > 1 ? (unsigned char)text[i + 1] : 0;
        const uint32_t c = left > 2 ? (unsigned char)text[i + 2] : 0;
        const uint32_t bits = a << 16 | b << 8 | c;
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], digits[bits >> 6 & 63], digits[bits & 63]};
        if (left < 3) four[3] = '=';
        if (left < 2) four[2] = '=';
        tide_text_add_n(out, four, sizeof four);
    }
}

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

bool tide_tui_osc52(const char *text, const char *term, bool tmux, tide_text *out) {
    static const char *const deaf[] = {"linux", "dumb", "vt", "cons", "ansi"};
    const size_t n = strlen(text);
    if (term == NULL || n > TIDE_TUI_MAX_OSC52 / 4 * 3) return false;
    for (size_t i = 0; i < sizeof deaf / sizeof deaf[0]; i++) {
        if (starts_with(term, deaf[i])) return false;
    }
    const bool screen = !tmux && starts_with(term, "screen");
    if (screen) tide_text_add(out, "\033P");
    tide_text_add(out, "\033]52;c;");
    add_base64(text, n, out);
    tide_text_add(out, "\a");
    if (screen) tide_text_add(out, "\033\\");
    if (!tmux) return true;
    tide_text_add(out, "\033Ptmux;\033\033]52;c;");
    add_base64(text, n, out);
    tide_text_add(out, "\a\033\\");
    return true;
}

tide_status tide_tui_copy_file(tide_text *path, tide_error *err) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state != NULL && state[0] == '/')
        tide_text_addf(path, "%s/tidemark/copied.txt", state);
    else if (home != NULL && home[0] == '/')
        tide_text_addf(path, "%s/.local/state/tidemark/copied.txt", home);
    else
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "neither XDG_STATE_HOME nor HOME says where files of the user go");
    if (path->failed) return TIDE_NO_MEMORY(err, "for a path");
    return TIDE_OK;
}
