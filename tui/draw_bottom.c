// SPDX-License-Identifier: MIT
//
// The last line: a prompt with its cursor and completions, a message, or the keys that matter in the pane that has the
// focus, as many as fit. See draw.h.
//
//     :filter size>1M_    size>1MiB  size>1M  …
//     error: there is no order 'siez'; did you mean 'size'?
//     ? help   q quit   p peak   / search   + zoom-in   Enter open                                 seq=12 idle
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw_words.h"

// ---- prompt ----

static const char *prompt_label(tide_tui_prompt prompt) {
    switch (prompt) {
    case TIDE_TUI_PROMPT_SEARCH:
        return "/";
    case TIDE_TUI_PROMPT_FILTER:
        return "filter: ";
    case TIDE_TUI_PROMPT_COMMAND:
        return ":";
    case TIDE_TUI_PROMPT_GOTO:
        return "go to step, time or address: ";
    case TIDE_TUI_PROMPT_NOTE:
        return "mark: ";
    default:
        return "";
    }
}

/// Columns of the first `n` bytes of the text.
static int width_to(const tide_tui_view *v, const char *text, size_t n) {
    char before[TIDE_TUI_MAX_PROMPT];
    if (n >= sizeof before) n = sizeof before - 1;
    memcpy(before, text, n);
    before[n] = '\0';
    return tide_tui_text_width(v->glyphs, before);
}

static size_t next_character(const char *text, size_t at) {
    at++;
    while (((unsigned char)text[at] & 0xC0U) == 0x80U) at++;
    return at;
}

/// The part of the text that holds the cursor; what does not fit is left out at the left.
static void draw_prompt(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    const char *label = prompt_label(st->prompt);
    int x = r.x + tide_tui_text(v, r.x, r.y, r.w, label, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
    const size_t len = strlen(st->text), at = st->text_at < len ? st->text_at : len;
    const int room = r.x + r.w - x - 1; // one for the cursor behind the text; the last may show that there is more
    size_t from = 0;
    while (from < at && width_to(v, st->text + from, at - from) > room - 2) from = next_character(st->text, from);
    const int used = tide_tui_text(v, x, r.y, room, st->text + from, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
    tide_tui_mark_row(v->grid, x + width_to(v, st->text + from, at - from), r.y, 1, TIDE_TUI_MARK_SELECTED);
    x += used + 3;
    if (st->completions[0] != '\0' && x + 8 < r.x + r.w)
        tide_tui_text(v, x, r.y, r.x + r.w - x, st->completions, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

// ---- hints ----

enum { MAX_HINTS = 14 };

/// What matters most in a pane, first what is hardest to guess; 0 ends a list.
static const tide_tui_action *hints_of(tide_tui_pane pane) {
    static const tide_tui_action lists[TIDE_TUI_N_PANES][MAX_HINTS] = {
        [TIDE_TUI_PANE_CURVE] = {TIDE_TUI_PEAK, TIDE_TUI_ZOOM_IN, TIDE_TUI_ZOOM_OUT, TIDE_TUI_WHOLE,
                                 TIDE_TUI_NEXT_CHANGE, TIDE_TUI_RANGE, TIDE_TUI_KIND, TIDE_TUI_MARK, TIDE_TUI_GOTO},
        [TIDE_TUI_PANE_GANTT] = {TIDE_TUI_PEAK, TIDE_TUI_SEARCH, TIDE_TUI_FILTER, TIDE_TUI_SORT, TIDE_TUI_OPEN,
                                 TIDE_TUI_ZOOM_IN, TIDE_TUI_FIT, TIDE_TUI_GROUP, TIDE_TUI_ALIVE, TIDE_TUI_PERSISTENT},
        [TIDE_TUI_PANE_MAP] = {TIDE_TUI_PEAK, TIDE_TUI_ZOOM_IN, TIDE_TUI_SPACE_IN, TIDE_TUI_SPACE_OUT, TIDE_TUI_FIT,
                               TIDE_TUI_NEXT_IN_ROW, TIDE_TUI_WHOLE},
        [TIDE_TUI_PANE_TABLE] = {TIDE_TUI_PEAK, TIDE_TUI_OPEN, TIDE_TUI_NEXT_CHANGE, TIDE_TUI_VIEW_3, TIDE_TUI_EXPORT},
        [TIDE_TUI_PANE_OPERATORS] = {TIDE_TUI_OPEN, TIDE_TUI_PEAK, TIDE_TUI_GOTO},
        [TIDE_TUI_PANE_POOLS] = {TIDE_TUI_PEAK, TIDE_TUI_OPEN, TIDE_TUI_NEXT_CHANGE, TIDE_TUI_SQL},
        [TIDE_TUI_PANE_EXPLAIN] = {TIDE_TUI_PEAK, TIDE_TUI_PREVIOUS_PEAK, TIDE_TUI_PAGE_ON, TIDE_TUI_SQL},
        [TIDE_TUI_PANE_COMPARE] = {TIDE_TUI_OPEN, TIDE_TUI_SET_A, TIDE_TUI_SET_B, TIDE_TUI_EXPORT},
        [TIDE_TUI_PANE_WHATIF] = {TIDE_TUI_APPLY, TIDE_TUI_UNDO, TIDE_TUI_EDIT, TIDE_TUI_SAVE_PLAN},
        [TIDE_TUI_PANE_DETAILS] = {TIDE_TUI_COPY, TIDE_TUI_FIT, TIDE_TUI_ALIKE, TIDE_TUI_NEXT_IN_ROW, TIDE_TUI_EDIT},
    };
    static const tide_tui_action overlaid[MAX_HINTS] = {TIDE_TUI_PAGE_ON, TIDE_TUI_PAGE_BACK};
    return pane < TIDE_TUI_N_PANES ? lists[pane] : overlaid;
}

/// "p peak" at column x when it fits before `end`. @return the column behind it; x: it does not fit
static int draw_hint(const tide_tui_view *v, int x, int y, int end, tide_tui_action action) {
    const tide_tui_binding *b = tide_tui_binding_of(action);
    char key[TIDE_TUI_WORD];
    if (b == NULL || b->keys[0] == 0) return x;
    tide_tui_key_of(action, key, sizeof key);
    const int key_w = tide_tui_text_width(v->glyphs, key), name_w = tide_tui_text_width(v->glyphs, b->name);
    if (x + key_w + 1 + name_w > end) return x;
    tide_tui_text(v, x, y, key_w, key, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
    tide_tui_text(v, x + key_w + 1, y, name_w, b->name, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    return x + key_w + 1 + name_w + 2;
}

static void draw_hints(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    const bool overlaid = st->overlay != TIDE_TUI_OVERLAY_NONE;
    const tide_tui_action *list = hints_of(overlaid ? TIDE_TUI_N_PANES : st->focus);
    const int end = r.x + r.w;
    int x = r.x + 1;
    // The way out and the help always come first; the views last, where there is room.
    x = draw_hint(v, x, r.y, end, overlaid ? TIDE_TUI_BACK : TIDE_TUI_HELP);
    x = draw_hint(v, x, r.y, end, TIDE_TUI_QUIT);
    for (int i = 0; i < MAX_HINTS && list[i] != TIDE_TUI_NOTHING; i++) x = draw_hint(v, x, r.y, end, list[i]);
    if (overlaid) return;
    static const tide_tui_action rest[] = {TIDE_TUI_NEXT_PANE, TIDE_TUI_VIEW_2, TIDE_TUI_VIEW_3,
                                           TIDE_TUI_VIEW_4,    TIDE_TUI_VIEW_5, TIDE_TUI_COMMAND};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) x = draw_hint(v, x, r.y, end, rest[i]);
}

// ---- the line ----

static void draw_message(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    char text[sizeof st->message + 8];
    const bool told = strncmp(st->message, "error", 5) == 0; // the word is there already
    snprintf(text, sizeof text, "%s%s", st->message_is_error && !told ? "error: " : "", st->message);
    tide_tui_text(v, r.x + 1, r.y, r.w - 2, text, TIDE_TUI_CUT_END,
                  st->message_is_error ? TIDE_TUI_ROLE_ERROR : TIDE_TUI_ROLE_TITLE);
}

void tide_tui_draw_bottom(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    tide_tui_rect r = s->layout->bottom;
    if (r.w <= 0 || r.h <= 0) return;
    r.y += r.h - 1;
    if (s->shows_seq) {
        char seq[TIDE_TUI_WORD];
        snprintf(seq, sizeof seq, "seq=%" PRIu64 " %s", s->state->seq, s->is_busy ? "busy" : "idle");
        const int w = tide_tui_text_width(v->glyphs, seq);
        tide_tui_text(v, r.x + r.w - w, r.y, w, seq, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        r.w -= w + 1;
    }
    if (s->state->prompt != TIDE_TUI_PROMPT_NONE) {
        draw_prompt(v, r);
    } else if (s->state->message[0] != '\0' && s->state->overlay != TIDE_TUI_OVERLAY_MESSAGE) {
        draw_message(v, r);
    } else {
        draw_hints(v, r);
    }
}
