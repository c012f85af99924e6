// SPDX-License-Identifier: MIT
//
// script: keys, mouse and commands as lines of text, done without a terminal. Tests and documents are written in it.
//
//     # a comment                       and empty lines
//     key Down Down Enter               keys by their labels (as the help shows them)
//     keys jjk                          a key for each character
//     type size>1MiB                    text, into a prompt: the rest of the line, blanks too
//     do filter kind=workspace          a command line, as behind ':'
//     mouse press 20 5                  press, drag, release, wheel-up, wheel-down, wheel-left, wheel-right; then
//                                       column and line from 0; then any of: middle right shift ctrl alt, and
//                                       ms=N (the time)
//     resize 80x24
//     dump                              the frame, as text, into the output
//     say -- after the filter           this text, into the output
//     expect 2 of 12                    the frame has this text in one of its lines
//     refuse error                      it has not
//
// There is no worker: every query is run at once. The first line that fails ends the script.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/utf8.h"
#include "tui/app.h"

/// The next word of `*text` into `buf`; false: there is none.
static bool take_word(const char **text, char *buf, size_t buf_bytes) {
    const char *at = *text + strspn(*text, " \t");
    const size_t n = strcspn(at, " \t"), kept = n < buf_bytes ? n : buf_bytes - 1;
    memcpy(buf, at, kept);
    buf[kept] = 0;
    *text = at + n;
    return n > 0;
}

static tide_status press(tide_tui_app *app, uint32_t key, bool *leave, tide_error *err) {
    if ((tide_tui_app_key(app, key) & TIDE_TUI_LEAVE) != 0) *leave = true;
    return tide_tui_app_look(app, err);
}

static tide_status do_key(tide_tui_app *app, const char *text, bool *leave, tide_error *err) {
    char label[32];
    while (!*leave && take_word(&text, label, sizeof label)) {
        const uint32_t key = tide_tui_key_named(label);
        if (key == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' names no key", label);
        TIDE_TRY(press(app, key, leave, err));
    }
    return TIDE_OK;
}

static tide_status do_characters(tide_tui_app *app, const char *text, bool *leave, tide_error *err) {
    uint32_t cp;
    for (size_t n; !*leave && (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (cp == TIDE_UTF8_BAD) return TIDE_FAIL(err, TIDE_ERR_INVALID, "this is not UTF-8: '%s'", text);
        TIDE_TRY(press(app, cp, leave, err));
    }
    return TIDE_OK;
}

static tide_status do_line(tide_tui_app *app, const char *text, bool *leave, tide_error *err) {
    if ((tide_tui_app_line(app, text) & TIDE_TUI_LEAVE) != 0) *leave = true;
    return tide_tui_app_look(app, err);
}

static bool read_number(const char *text, int *out) {
    char *end;
    const long v = strtol(text, &end, 10);
    *out = (int)v;
    return end != text && *end == 0 && v >= 0 && v < 100000;
}

/// Words behind the place: a button, shift, ctrl, alt, ms=N.
static bool read_modifier(const char *word, tide_tui_mouse *m) {
    int ms;
    if (strcmp(word, "middle") == 0) {
        m->button = 1;
    } else if (strcmp(word, "right") == 0) {
        m->button = 2;
    } else if (strcmp(word, "shift") == 0) {
        m->shift = true;
    } else if (strcmp(word, "ctrl") == 0) {
        m->ctrl = true;
    } else if (strcmp(word, "alt") == 0) {
        m->alt = true;
    } else if (strncmp(word, "ms=", 3) == 0 && read_number(word + 3, &ms)) {
        m->t_ms = (uint64_t)ms;
    } else {
        return false;
    }
    return true;
}

static tide_status do_mouse(tide_tui_app *app, const char *text, bool *leave, tide_error *err) {
    static const char *const kinds[] = {"press",      "drag",       "release",    "wheel-up",
                                        "wheel-down", "wheel-left", "wheel-right"};
    enum { N_KINDS = sizeof kinds / sizeof kinds[0] };
    char word[32], x[32], y[32];
    tide_tui_mouse m = {0};
    size_t kind = 0;
    (void)take_word(&text, word, sizeof word);
    while (kind < N_KINDS && strcmp(kinds[kind], word) != 0) kind++;
    if (kind == N_KINDS) return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is nothing that a mouse does", word);
    if (!take_word(&text, x, sizeof x) || !take_word(&text, y, sizeof y) || !read_number(x, &m.x) ||
        !read_number(y, &m.y)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the mouse needs a column and a line, as in 'mouse press 20 5'");
    }
    m.kind = (tide_tui_mouse_kind)kind;
    while (take_word(&text, word, sizeof word)) {
        if (!read_modifier(word, &m)) return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' says nothing of a mouse", word);
    }
    if ((tide_tui_app_point(app, &m) & TIDE_TUI_LEAVE) != 0) *leave = true;
    return tide_tui_app_look(app, err);
}

static tide_status do_resize(tide_tui_app *app, const char *text, bool *leave, tide_error *err) {
    int width, height;
    char rest;
    (void)leave;
    if (sscanf(text, "%dx%d%c", &width, &height, &rest) != 2 || width < 1 || height < 1 || width > 1000 ||
        height > 1000) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no size, as in 80x24", text);
    }
    TIDE_TRY(tide_tui_app_resize(app, width, height, err));
    return tide_tui_app_look(app, err);
}

static tide_status dump(tide_tui_app *app, tide_text *out, tide_error *err) {
    TIDE_TRY(tide_tui_app_frame(app, err));
    tide_tui_grid_to_text(&app->grid, out);
    return TIDE_OK;
}

static tide_status check(tide_tui_app *app, const char *text, bool wanted, tide_text *out, tide_error *err) {
    tide_text frame = {0};
    const tide_status st = dump(app, &frame, err);
    const bool has = st == TIDE_OK && strstr(tide_text_str(&frame), text) != NULL;
    if (st == TIDE_OK && has != wanted) tide_text_add(out, tide_text_str(&frame));
    tide_text_deinit(&frame);
    if (st != TIDE_OK || has == wanted) return st;
    return TIDE_FAIL(err, TIDE_ERR_VERIFY, wanted ? "the frame does not say '%s'" : "the frame says '%s'", text);
}

/// One line, without its end. TIDE_ERR_INVALID for what is no such line; TIDE_ERR_VERIFY for an expectation that does
/// not hold (the frame goes into `out` then). *leave: the user has left the view.
static tide_status run_line(tide_tui_app *app, const char *line, tide_text *out, bool *leave, tide_error *err) {
    static const struct {
        const char *name;
        tide_status (*run)(tide_tui_app *app, const char *text, bool *leave, tide_error *err);
    } words[] = {{"key", do_key}, {"keys", do_characters}, {"type", do_characters},
                 {"do", do_line}, {"mouse", do_mouse},     {"resize", do_resize}};
    char word[16];
    const char *text = line;
    if (!take_word(&text, word, sizeof word) || word[0] == '#') return TIDE_OK;
    if (*text != 0) text++; // one blank: what is typed may begin with others
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].name, word) == 0) return words[i].run(app, text, leave, err);
    }
    if (strcmp(word, "dump") == 0) return dump(app, out, err);
    if (strcmp(word, "expect") == 0 || strcmp(word, "refuse") == 0) {
        return check(app, text, word[0] == 'e', out, err);
    }
    if (strcmp(word, "say") != 0) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no line of a script", word);
        tide_error_hint(err, "there are key, keys, type, do, mouse, resize, dump, say, expect, refuse");
        return TIDE_ERR_INVALID;
    }
    tide_text_add(out, text);
    tide_text_add(out, "\n");
    return TIDE_OK;
}

/// All lines; errors say which one.
static tide_status run_script(tide_tui_app *app, const char *script, tide_text *out, tide_error *err) {
    bool leave = false;
    int number = 1;
    TIDE_TRY(tide_tui_app_look(app, err));
    for (const char *at = script; *at != 0 && !leave; number++) {
        size_t n = strcspn(at, "\n");
        const char *next = at[n] == '\n' ? at + n + 1 : at + n;
        if (n > 0 && at[n - 1] == '\r') n--;
        char *line = tide_host_strndup(at, n);
        if (line == NULL) return TIDE_NO_MEMORY(err, "for a line of the script");
        const tide_status st = run_line(app, line, out, &leave, err);
        tide_host_free(line);
        if (st != TIDE_OK) {
            tide_error_where(err, "line %d of the script", number);
            return st;
        }
        at = next;
    }
    if (out->failed) return TIDE_NO_MEMORY(err, "for what the script prints");
    return TIDE_OK;
}

tide_status tide_tui_script(const tide_tui_session *session, const tide_tui_options *opt, int width, int height,
                            const char *script, tide_text *out, tide_error *err) {
    tide_tui_app *app;
    TIDE_TRY(tide_tui_app_open(session, opt, width, height, false, &app, err));
    const tide_status st = run_script(app, script, out, err);
    tide_tui_app_close(app);
    return st;
}
