// SPDX-License-Identifier: MIT
//
// One action while it is performed: what all groups of actions use. See actions_internal.h.
#include <stdio.h>
#include <string.h>

#include "tui/actions_internal.h"

/// The other end of a range that follows the cursor.
static void draw_range(tide_tui_state *st) {
    if (!st->shows_range || !st->range_follows) return;
    st->range_begin = st->cursor < st->range_anchor ? st->cursor : st->range_anchor;
    const int64_t last = st->cursor < st->range_anchor ? st->range_anchor : st->cursor;
    st->range_end = last < INT64_MAX ? last + 1 : last;
}

tide__action tide__action_begin(tide_tui_state *st, const tide_tui_scene *scene) {
    st->message[0] = 0;
    st->message_is_error = false;
    st->seq++;
    return (tide__action){st, scene, {.flags = TIDE_TUI_HANDLED | TIDE_TUI_REDRAWN}};
}

tide_tui_result tide__action_end(tide__action *act) {
    draw_range(act->st);
    tide_tui_state_settle(act->st);
    return act->result;
}

void tide__action_effect(tide__action *act, tide_tui_effect effect, const char *text) {
    act->result.flags |= TIDE_TUI_EFFECT;
    act->result.effect = effect;
    (void)snprintf(act->result.text, sizeof act->result.text, "%s", text);
}

void tide__action_fail(tide__action *act, const tide_error *err) {
    const char *more = err->hint[0] != 0 ? err->hint : err->note;
    tide_tui_say(act->st, true, "%s%s%s%s%s", err->where, err->where[0] != 0 ? ": " : "", err->msg,
                 more[0] != 0 ? "; " : "", more);
}

void tide__rows_changed(tide__action *act) {
    act->st->rows_wanted++;
    act->st->is_opening = false;
}

void tide__select_item(tide__action *act, uint32_t item) { act->st->item = item; }

void tide__open_prompt(tide__action *act, tide_tui_prompt prompt, const char *text) {
    tide_tui_state *st = act->st;
    st->prompt = prompt;
    (void)snprintf(st->text, sizeof st->text, "%s", text);
    st->text_at = strlen(st->text);
    st->completions[0] = 0;
    st->history_at = st->n_history;
}

void tide__close_prompt(tide__action *act) {
    act->st->prompt = TIDE_TUI_PROMPT_NONE;
    act->st->text[0] = 0;
    act->st->text_at = 0;
    act->st->completions[0] = 0;
}

const char *tide__take_word(const char **text, char *buf, size_t buf_bytes) {
    const char *at = *text;
    while (*at == ' ') at++;
    const size_t n = strcspn(at, " "), kept = n < buf_bytes ? n : buf_bytes - 1;
    memcpy(buf, at, kept);
    buf[kept] = 0;
    at += n;
    while (*at == ' ') at++;
    *text = at;
    return buf;
}
