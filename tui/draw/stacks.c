// SPDX-License-Identifier: MIT
//
// STACKS: the calls that asked for what is alive at the cursor, as a tree: a row for calls without a branch between
// them, heaviest first. See draw.h.
//
//     == STACKS: live at 563.6 ms, peak ============== 880 blocks with a stack, 38.35 GiB of 51.16 GiB ==
//       calls                                                  bytes   share  blocks
//     > v <module> benchmark.py:301 > step adam.py:84     25.62 GiB  50.1 %     588  #####
//         + empty_like                                    12.82 GiB  25.0 %     294  ###
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tui/draw/draw.h"
#include "tui/draw/format.h"

enum { MARGIN = 2, SIZE_W = 11, SHARE_W = 8, BLOCKS_W = 8, OWN_W = 11, INDENT = 2 };

/// Where the columns of a row lie: x from the left edge of the pane, w 0: left out.
typedef struct columns {
    int label_w, size_x, share_x, own_x, own_w, blocks_x, blocks_w, bar_x, bar_w;
} columns;

static columns divide(int w) {
    columns c = {.bar_w = w >= 100  ? 16
                          : w >= 60 ? 8
                                    : 0,
                 .own_w = w >= 100 ? OWN_W : 0,
                 .blocks_w = w >= 72 ? BLOCKS_W : 0};
    const int rest = SIZE_W + SHARE_W + c.own_w + c.blocks_w + (c.bar_w > 0 ? c.bar_w + 1 : 0);
    c.label_w = w - MARGIN - rest > 8 ? w - MARGIN - rest : 8;
    c.size_x = MARGIN + c.label_w;
    c.share_x = c.size_x + SIZE_W;
    c.own_x = c.share_x + SHARE_W;
    c.blocks_x = c.own_x + c.own_w;
    c.bar_x = c.blocks_x + c.blocks_w + 1;
    return c;
}

static void put_right(const tide_tui_view *v, tide_tui_rect r, int x, int w, int y, const char *text,
                      tide_tui_role role) {
    const int need = tide_tui_text_width(v->glyphs, text), skip = need < w ? w - need : 0;
    if (x < r.w && w > 0)
        tide_tui_text(v, r.x + x + skip, y, x + w > r.w ? r.w - x - skip : w - skip, text, TIDE_TUI_CUT_END, role);
}

static void draw_titles(const tide_tui_view *v, tide_tui_rect r, const columns *c) {
    tide_tui_text(v, r.x + MARGIN, r.y, c->label_w, "calls", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);
    put_right(v, r, c->size_x, SIZE_W, r.y, "bytes", TIDE_TUI_ROLE_LABEL);
    put_right(v, r, c->share_x, SHARE_W, r.y, "share", TIDE_TUI_ROLE_LABEL);
    put_right(v, r, c->own_x, c->own_w, r.y, "own", TIDE_TUI_ROLE_LABEL);
    put_right(v, r, c->blocks_x, c->blocks_w, r.y, "blocks", TIDE_TUI_ROLE_LABEL);
}

/// Hot what holds half of all, warm what holds a tenth; the bar says it too.
static tide_tui_role heat_of(uint64_t bytes, uint64_t all) {
    return bytes >= all - all / 2 ? TIDE_TUI_ROLE_PEAK : bytes >= all / 10 ? TIDE_TUI_ROLE_CURVE : TIDE_TUI_ROLE_DIM;
}

static uint32_t fold_glyph(const tide_tui_view *v, const tide_tui_stack_row *row) {
    if (!row->has_callees) return ' ';
    if (v->glyphs->ascii) return row->is_open ? '-' : '+';
    return row->is_open ? 0x25BE : 0x25B8;
}

/// The names, cut in their middle, and behind them how many calls of the row are not named.
static void draw_label(const tide_tui_view *v, tide_tui_rect r, int y, const columns *c,
                       const tide_tui_stack_row *row) {
    const tide_call_tree *t = v->scene->call_tree;
    const int most = c->label_w / 2, indent = (int)row->level * INDENT < most ? (int)row->level * INDENT : most;
    tide_text text = {0};
    size_t n_hidden = 0;
    char more[TIDE_TUI_WORD] = "";
    tide_call_tree_say(t, row->head, v->glyphs->ascii ? " > " : " › ", &text, &n_hidden);
    if (n_hidden > 0) snprintf(more, sizeof more, " +%zu", n_hidden);
    const int x = r.x + MARGIN + indent, room = c->label_w - indent - 2, more_w = (int)strlen(more);
    tide_tui_put(v->grid, x, y, fold_glyph(v, row), TIDE_TUI_ROLE_KEY);
    const int name_w = room > more_w + 12 ? room - more_w : room;
    const int used = tide_tui_text(v, x + 2, y, name_w, tide_tui_named(tide_text_str(&text)), TIDE_TUI_CUT_MIDDLE,
                                   t->calls.calls[row->tail].is_frame ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_TITLE);
    if (name_w < room) tide_tui_text(v, x + 2 + used, y, room - used, more, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    tide_text_deinit(&text);
}

static void draw_row(const tide_tui_view *v, tide_tui_rect r, int y, const columns *c, const tide_tui_stack_row *row) {
    const tide_call_tree *t = v->scene->call_tree;
    const tide_call *call = &t->calls.calls[row->tail];
    const uint64_t shown = v->scene->stack_root != 0 ? v->scene->stack_bytes : t->bytes;
    const tide_tui_role heat = heat_of(call->bytes, shown);
    char word[TIDE_TUI_WORD];
    draw_label(v, r, y, c, row);
    put_right(v, r, c->size_x, SIZE_W, y, tide_tui_bytes(call->bytes, word, sizeof word), TIDE_TUI_ROLE_TEXT);
    put_right(v, r, c->share_x, SHARE_W, y, tide_tui_percent(call->bytes, t->bytes, word, sizeof word), heat);
    if (call->own_blocks > 0)
        put_right(v, r, c->own_x, c->own_w, y, tide_tui_bytes(call->own_bytes, word, sizeof word), TIDE_TUI_ROLE_TEXT);
    put_right(v, r, c->blocks_x, c->blocks_w, y, tide_tui_exact(call->n_blocks, word, sizeof word), TIDE_TUI_ROLE_TEXT);
    tide_tui_fill_row(v->grid, r.x + c->bar_x, y, tide_tui_share_of(call->bytes, shown, c->bar_w),
                      v->glyphs->bar[TIDE_ITEM_FILL_INTERMEDIATE], heat);
}

static void draw_rows(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    const columns c = divide(r.w);
    const bool has_titles = r.h > 1;
    const int h = r.h - has_titles;
    const size_t row = tide_tui_scene_row(s, TIDE_TUI_PANE_STACKS);
    const size_t top = tide_tui_settle_top(s->n_stack_rows, row, s->state->pane_top[TIDE_TUI_PANE_STACKS], h);
    if (has_titles) draw_titles(v, r, &c);
    for (size_t i = 0; i < (size_t)h && top + i < s->n_stack_rows; i++) {
        const int y = r.y + has_titles + (int)i;
        draw_row(v, r, y, &c, &s->stack_rows[top + i]);
        if (top + i != row) continue;
        tide_tui_put(v->grid, r.x, y, '>', TIDE_TUI_ROLE_CURSOR);
        tide_tui_mark_row(v->grid, r.x, y, r.w, TIDE_TUI_MARK_SELECTED);
    }
}

/// Why there is no tree.
static const char *words_for_none(const tide_tui_scene *s) {
    if (!s->a->is_trace) return "A plan has no call stacks: they are recorded while a program runs.";
    if (s->call_tree == NULL) return "Nothing is known yet.";
    if (s->state->stack_root != 0 && s->stack_root == 0)
        return "The call that is shown alone holds nothing at the cursor. R shows all calls.";
    if (s->call_tree->calls.untold_blocks == 0) return "Nothing is alive at the cursor.";
    return "No block that is alive here tells a call stack. Memory snapshots of PyTorch that were recorded with stacks "
           "and "
           "recordings of heaptrack do (tidemark import).";
}

void tide_tui_draw_stacks(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_call_tree *t = s->call_tree;
    char title[160], facts[160] = "", when[128], some[TIDE_TUI_WORD], all[TIDE_TUI_WORD];
    const int64_t at = t != NULL ? t->at.t : s->state->cursor;
    snprintf(title, sizeof title, "live at %s%s", tide_tui_when(s->a, at, when, sizeof when),
             at == s->a->peak.t ? ", peak" : "");
    if (t != NULL && s->stack_root != 0)
        snprintf(facts, sizeof facts, "%s of %s alone", tide_tui_bytes(s->stack_bytes, some, sizeof some),
                 tide_tui_bytes(t->bytes, all, sizeof all));
    else if (t != NULL && t->calls.untold_blocks > 0 && s->n_stack_rows > 0)
        snprintf(facts, sizeof facts, "%s of %s have a stack",
                 tide_tui_bytes(t->calls.calls[0].bytes, some, sizeof some), tide_tui_bytes(t->bytes, all, sizeof all));
    else if (t != NULL)
        snprintf(facts, sizeof facts, "%s", tide_tui_bytes(t->bytes, all, sizeof all));
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_STACKS, title, facts);
    if (s->n_stack_rows == 0) {
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_STACKS, body, words_for_none(s));
        return;
    }
    draw_rows(v, body);
}
