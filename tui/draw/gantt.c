// SPDX-License-Identifier: MIT
//
// Lifetimes: a name, a bar, a size to each row. See draw.h.
//
//     -- gantt: 3/12 by size ------------- step 2 (Conv_2): 480.00 KiB live --
//      conv0_out    [====]      |                                   192.00 KiB
//     >relu1_out  Relu_1 [====] |           the selection: a mark and reverse
//     *conv2_out        [=======|======>    a match of the search; goes on behind the window
//      pool  x12    ..::++##++::|..         a group: how many live in each column
//
// A bar [begin, end) covers exactly the columns of the curve in which the item is alive. Its first and last cell tell a
// birth and a death from a bar that goes on outside of the window.
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"
#include "tui/draw/time_axis.h"

// ---- bars ----

static int density_of(uint32_t n) { return n < 2 ? 0 : n < 4 ? 1 : n < 16 ? 2 : 3; }

/// Columns of the bar that column x belongs to.
static int bar_width(const tide_row_span *spans, int x, int w) {
    int from = x, to = x + 1;
    while (from > 0 && spans[from - 1].n > 0) from--;
    while (to < w && spans[to].n > 0) to++;
    return to - from;
}

/// Glyph of one column of the bar of a single item. Ends are drawn where they leave something of the bar between them.
static uint32_t bar_glyph(const tide_tui_glyphs *g, const tide_row_span *spans, int x, int w) {
    enum { NARROW = 3 };
    const uint32_t fill = g->bar[spans[x].fill < TIDE_N_ITEM_FILLS ? spans[x].fill : 0];
    const bool first = x == 0 || spans[x - 1].n == 0, last = x == w - 1 || spans[x + 1].n == 0;
    if (!first && !last) return fill;
    const bool wide = bar_width(spans, x, w) > NARROW;
    if (first && !spans[x].starts && x == 0) return g->before;
    if (last && !spans[x].ends && x == w - 1) return g->after;
    if (first && spans[x].starts && wide) return g->begin;
    if (last && spans[x].ends && wide) return g->end;
    return fill;
}

static void draw_bar(const tide_tui_view *v, tide_tui_rect r, int y, const tide_tui_gantt_row *row) {
    if (row->where != 0) {
        const int x = row->where < 0 ? r.x : r.x + r.w - 1;
        tide_tui_put(v->grid, x, y, row->where < 0 ? v->glyphs->before : v->glyphs->after, TIDE_TUI_ROLE_DIM);
        return;
    }
    if (row->spans == NULL) return;
    for (int x = 0; x < r.w; x++) {
        const tide_row_span *span = &row->spans[x];
        if (span->n == 0) continue;
        const int fill = span->fill < TIDE_N_ITEM_FILLS ? span->fill : 0;
        const uint32_t glyph =
            row->n_members > 1 ? v->glyphs->density[density_of(span->n)] : bar_glyph(v->glyphs, row->spans, x, r.w);
        tide_tui_put(v->grid, r.x + x, y, glyph, (tide_tui_role)(TIDE_TUI_ROLE_BAR + fill));
    }
}

// ---- beside the bar ----

static void draw_name(const tide_tui_view *v, tide_tui_rect r, int y, const tide_tui_gantt_row *row, bool selected) {
    char count[32] = "";
    if (selected) {
        tide_tui_put(v->grid, r.x, y, '>', TIDE_TUI_ROLE_KEY);
    } else if (row->is_match) {
        tide_tui_put(v->grid, r.x, y, '*', TIDE_TUI_ROLE_KEY);
    }
    int room = r.w - 2;
    if (row->n_members > 1) {
        char n[24];
        tide_tui_exact(row->n_members, n, sizeof n);
        snprintf(count, sizeof count, v->glyphs->ascii ? "x%s" : "\u00d7%s", n);
        const int w = tide_tui_text_width(v->glyphs, count);
        tide_tui_text(v, r.x + r.w - 1 - w, y, w, count, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        room -= w + 1;
    }
    const bool named = row->name != NULL && row->name[0] != '\0';
    const tide_tui_role role = row->is_match ? TIDE_TUI_ROLE_KEY : named ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_DIM;
    const int used = tide_tui_text(v, r.x + 1, y, room, named ? row->name : "(unnamed)", TIDE_TUI_CUT_MIDDLE, role);
    if (row->is_match) tide_tui_mark_row(v->grid, r.x + 1, y, used, TIDE_TUI_MARK_MATCH);
    // The operator that made it, if all of its name has room.
    const int owner_w = row->owner != NULL ? tide_tui_text_width(v->glyphs, row->owner) : 0;
    if (owner_w > 0 && used + 2 + owner_w <= room)
        tide_tui_text(v, r.x + 1 + used + 2, y, owner_w, row->owner, TIDE_TUI_CUT_END,
                      selected ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_DIM);
}

static void draw_size(const tide_tui_view *v, tide_tui_rect r, int y, const tide_tui_gantt_row *row) {
    char size[TIDE_TUI_WORD], text[TIDE_TUI_WORD + 4];
    if (r.w < 12) {
        tide_tui_format_short(row->bytes, size, sizeof size);
    } else {
        tide_tui_bytes(row->bytes, size, sizeof size);
    }
    snprintf(text, sizeof text, "%s%s", row->is_most ? "<=" : "", size);
    if (tide_tui_text_width(v->glyphs, text) > r.w) snprintf(text, sizeof text, "%s", size);
    const int w = tide_tui_text_width(v->glyphs, text);
    if (w <= r.w) tide_tui_text(v, r.x + r.w - w, y, w, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
}

static void draw_row(const tide_tui_view *v, int i) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect names = s->layout->names, bars = s->layout->bars, sizes = s->layout->sizes;
    const tide_tui_gantt_row *row = &s->gantt[i];
    const bool selected = s->state->top + (size_t)i == s->state->row;
    const int y = bars.y + i;
    draw_bar(v, bars, y, row);
    draw_name(v, names, y, row, selected);
    draw_size(v, sizes, y, row);
    if (!selected) return;
    tide_tui_mark_row(v->grid, names.x, y, names.w - 1, TIDE_TUI_MARK_SELECTED);
    tide_tui_mark_row(v->grid, sizes.x + 1, y, sizes.w - 1, TIDE_TUI_MARK_SELECTED);
}

// ---- the pane ----

/// "3/12 by size, reversed, grouped by name, match 2/5".
static void say_rows(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    const tide_tui_state *st = s->state;
    char row[TIDE_TUI_WORD] = "", n[TIDE_TUI_WORD] = "";
    if (s->rows != NULL) {
        tide_tui_exact(s->rows->n > 0 ? st->row + 1 : 0, row, sizeof row);
        tide_tui_exact(s->rows->n, n, sizeof n);
    }
    const bool grouped = st->group != TIDE_ROW_GROUP_NONE;
    snprintf(buf, buf_bytes, "%s%s%s%s%sby %s%s%s%s", row, n[0] != '\0' ? "/" : "", n, n[0] != '\0' ? " " : "",
             st->is_opening ? "alive at the peak " : "", tide_row_sort_name(tide_tui_row_sort(st)),
             st->reverse ? ", reversed" : "", grouped ? ", grouped by " : "",
             grouped ? tide_row_group_name(st->group) : "");
    const size_t len = strlen(buf);
    if (st->search[0] == '\0') return;
    snprintf(buf + len, buf_bytes - len, ", match %zu/%s", s->match_at, tide_tui_exact(s->n_matches, n, sizeof n));
}

/// Why there are no rows; "" when there are.
static void say_empty(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    buf[0] = '\0';
    if (s->n_gantt > 0) return;
    if (s->a->n_items == 0) {
        snprintf(buf, buf_bytes, "%s",
                 s->a->is_trace ? "No block lived in this run." : "This plan holds no tensor that lives.");
    } else if (s->rows != NULL && s->rows->n == 0) {
        char n[TIDE_TUI_WORD];
        snprintf(buf, buf_bytes, "All %s %s are hidden by filters.", tide_tui_exact(s->rows->n_hidden, n, sizeof n),
                 tide_tui_item_word(s->a, s->rows->n_hidden));
    }
}

void tide_tui_draw_gantt(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    char title[160], facts[200], empty[160];
    if (s->layout->panes[TIDE_TUI_PANE_GANTT].w <= 0) return;
    say_rows(s, title, sizeof title);
    tide_tui_say_cursor(v, facts, sizeof facts);
    // Rows of the previous result: the heading says that new ones are being made.
    const char *busy = s->busy[TIDE_TUI_PANE_GANTT];
    if (s->n_gantt > 0 && busy[0] != '\0') snprintf(facts, sizeof facts, "rows: %s", busy);
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_GANTT, title, facts);
    const tide_tui_rect bars = s->layout->bars;
    if (s->n_gantt == 0) {
        say_empty(s, empty, sizeof empty);
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_GANTT, body, empty);
        return;
    }
    for (int i = 0; i < bars.h && (size_t)i < s->n_gantt; i++) draw_row(v, i);
    const int used = s->n_gantt < (size_t)bars.h ? (int)s->n_gantt : bars.h;
    tide_tui_draw_time_lines(v, (tide_tui_rect){bars.x, bars.y, bars.w, used});
}
