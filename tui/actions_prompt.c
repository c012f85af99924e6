// SPDX-License-Identifier: MIT
//
// The line that takes text, and what scrolls over the view. See actions_internal.h.
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tui/actions_internal.h"
#include "tui/draw/draw.h"

void tide__open_prompt(tide__turn *t, tide_tui_prompt prompt, const char *text) {
    tide_tui_state *st = t->st;
    st->prompt = prompt;
    (void)snprintf(st->text, sizeof st->text, "%s", text);
    st->text_at = strlen(st->text);
    st->completions[0] = 0;
    st->history_at = st->n_history;
}

void tide__close_prompt(tide__turn *t) {
    t->st->prompt = TIDE_TUI_PROMPT_NONE;
    t->st->text[0] = 0;
    t->st->text_at = 0;
    t->st->completions[0] = 0;
}

// ---- editing ----

static bool is_inside(char byte) { return ((unsigned char)byte & 0xC0U) == 0x80U; }

/// Begin of the character before `at`, and of the one behind it.
static size_t before(const char *text, size_t at) {
    while (at > 0 && is_inside(text[--at])) {
    }
    return at;
}

static size_t behind(const char *text, size_t at) {
    if (text[at] != 0) at++;
    while (is_inside(text[at])) at++;
    return at;
}

static void erase(tide_tui_state *st, size_t from, size_t to) {
    memmove(st->text + from, st->text + to, strlen(st->text + to) + 1);
    st->text_at = from;
}

static void insert(tide_tui_state *st, uint32_t cp) {
    char bytes[4];
    const size_t n = tide_utf8_encode(cp, bytes), len = strlen(st->text);
    if (len + n >= sizeof st->text) return;
    memmove(st->text + st->text_at + n, st->text + st->text_at, len - st->text_at + 1);
    memcpy(st->text + st->text_at, bytes, n);
    st->text_at += n;
}

static void erase_word(tide_tui_state *st) {
    size_t at = st->text_at;
    while (at > 0 && st->text[at - 1] == ' ') at--;
    while (at > 0 && st->text[at - 1] != ' ') at--;
    erase(st, at, st->text_at);
}

/// Earlier command lines; behind the newest the line is empty.
static void recall(tide_tui_state *st, int dir) {
    if (st->prompt != TIDE_TUI_PROMPT_COMMAND) return;
    if (dir < 0 ? st->history_at == 0 : st->history_at >= st->n_history) return;
    st->history_at = dir < 0 ? st->history_at - 1 : st->history_at + 1;
    const char *line = st->history_at < st->n_history ? st->history[st->history_at] : "";
    (void)snprintf(st->text, sizeof st->text, "%s", line);
    st->text_at = strlen(st->text);
}

static void remember(tide_tui_state *st, const char *line) {
    if (*line == 0 || (st->n_history > 0 && strcmp(st->history[st->n_history - 1], line) == 0)) return;
    if (st->n_history == TIDE_TUI_MAX_HISTORY) {
        memmove(st->history[0], st->history[1], (TIDE_TUI_MAX_HISTORY - 1) * sizeof st->history[0]);
        st->n_history--;
    }
    (void)snprintf(st->history[st->n_history++], sizeof st->history[0], "%s", line);
}

// ---- Enter ----

static void note(tide__turn *t, const char *text) {
    tide_tui_state *st = t->st;
    if (st->n_marks == 0) return;
    tide_tui_mark *mark = &st->marks[st->n_marks - 1];
    size_t n = strlen(text);
    while (n >= sizeof mark->text) n = before(text, n); // whole characters
    memcpy(mark->text, text, n);
    mark->text[n] = 0;
    tide_tui_say(st, false, "mark %c%s%s: ' jumps there", mark->name, n > 0 ? " " : "", mark->text);
}

static void accept(tide__turn *t) {
    char text[TIDE_TUI_MAX_PROMPT];
    (void)snprintf(text, sizeof text, "%s", t->st->text);
    const tide_tui_prompt prompt = t->st->prompt;
    tide__close_prompt(t);
    switch (prompt) {
    case TIDE_TUI_PROMPT_SEARCH:
        tide__search(t, text);
        break;
    case TIDE_TUI_PROMPT_FILTER:
        (void)tide__filter(t, text);
        break;
    case TIDE_TUI_PROMPT_GOTO:
        if (*text != 0) tide__go_to(t, text);
        break;
    case TIDE_TUI_PROMPT_NOTE:
        note(t, text);
        break;
    case TIDE_TUI_PROMPT_COMMAND:
        remember(t->st, text);
        tide__turn_line(t, text);
        break;
    default:
        break;
    }
}

void tide__press_in_prompt(tide__turn *t, uint32_t key) {
    tide_tui_state *st = t->st;
    if (key == TIDE_TUI_KEY_TAB) {
        tide_tui_complete(st);
        return;
    }
    st->completions[0] = 0;
    switch (key) {
    case TIDE_TUI_KEY_ENTER:
        accept(t);
        break;
    case TIDE_TUI_KEY_ESC:
        tide__close_prompt(t);
        break;
    case TIDE_TUI_KEY_LEFT:
        st->text_at = before(st->text, st->text_at);
        break;
    case TIDE_TUI_KEY_RIGHT:
        st->text_at = behind(st->text, st->text_at);
        break;
    case TIDE_TUI_KEY_HOME:
        st->text_at = 0;
        break;
    case TIDE_TUI_KEY_END:
        st->text_at = strlen(st->text);
        break;
    case TIDE_TUI_KEY_UP:
    case TIDE_TUI_KEY_DOWN:
        recall(st, key == TIDE_TUI_KEY_UP ? -1 : 1);
        break;
    case TIDE_TUI_KEY_BACKSPACE:
    case '\b':
        erase(st, before(st->text, st->text_at), st->text_at);
        break;
    case TIDE_TUI_KEY_DELETE: {
        const size_t at = st->text_at;
        erase(st, at, behind(st->text, at));
        break;
    }
    case TIDE_TUI_KEY_CTRL_U:
        erase(st, 0, st->text_at);
        break;
    case TIDE_TUI_KEY_CTRL_W:
        erase_word(st);
        break;
    case TIDE_TUI_KEY_CTRL_L:
        t->result.flags |= TIDE_TUI_REPAINT;
        break;
    default:
        if (key >= ' ' && key <= 0x10FFFF && !tide_utf8_is_control(key)) insert(st, key);
        break;
    }
}

// ---- overlays ----

static void scroll(tide__turn *t, int64_t by) {
    tide_tui_state *st = t->st;
    if (st->overlay == TIDE_TUI_OVERLAY_SETUP) {
        st->overlay_row = (int)tide_tui_move_time(st->overlay_row, by, 0, TIDE_TUI_N_SETTINGS - 1);
        return;
    }
    const int last = t->scene != NULL ? tide_tui_overlay_max_top(t->scene, tide_tui_glyphs_of(false)) : 0;
    st->overlay_top = (int)tide_tui_move_time(st->overlay_top, by, 0, last > 0 ? last : 0);
}

bool tide__do_in_overlay(tide__turn *t, tide_tui_action action) {
    tide_tui_state *st = t->st;
    const bool is_setup = st->overlay == TIDE_TUI_OVERLAY_SETUP;
    const int h = t->scene != NULL && t->scene->layout != NULL ? t->scene->layout->overlay.h : 0;
    const int64_t page = h > 3 ? h - 2 : 1;
    switch (action) {
    case TIDE_TUI_ROW_UP:
        scroll(t, -1);
        return true;
    case TIDE_TUI_ROW_DOWN:
        scroll(t, 1);
        return true;
    case TIDE_TUI_PAGE_BACK:
        scroll(t, -page);
        return true;
    case TIDE_TUI_PAGE_ON:
        scroll(t, page);
        return true;
    case TIDE_TUI_FIRST:
        scroll(t, INT64_MIN);
        return true;
    case TIDE_TUI_LAST:
        scroll(t, INT64_MAX);
        return true;
    case TIDE_TUI_OPEN:
    case TIDE_TUI_PAUSE: // the space bar
        if (!is_setup) return false;
        tide__toggle_setting(t, (tide_tui_setting)st->overlay_row);
        return true;
    case TIDE_TUI_HELP:
    case TIDE_TUI_SETUP:
    case TIDE_TUI_SQL:
        if (is_setup != (action == TIDE_TUI_SETUP)) return false; // the other one is opened instead
        tide__back(t);
        return true;
    default:
        return false;
    }
}
