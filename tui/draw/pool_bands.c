// SPDX-License-Identifier: MIT
//
// Pools over time, one band above the other, in the columns of the curve; and what a request would find. See draw.h.
//
//     stream_caching    22 MiB      + :::::::::::::::::::::::  +: it took memory there (-: gave back)
//     Workspace  83 % fragmented   ###::####:::::####::::::::  # used, : cached
//     largest free, 64 MiB fits         ____....____......       _ in all of the column, . in a part of it
//     A pool 0 …, B pool 0 …           where there is a B: the bands of both on one scale, A above B
//     12 tensors +left over   up3.out 2.00M+0, [relu1.out 512K+1.50M], +10 more     of a colouring plan: the largest
//                                                      first; in brackets the one that is there at the cursor
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"
#include "tui/draw/time_axis.h"

enum { MOST_LINES = 4 }; ///< of a band

/// A pool of A or of B with what it is over time.
typedef struct band {
    const tide_pool *pool;      ///< NULL: that side has none
    const tide_pool_history *h; ///< NULL: not known yet
    tide_tui_window window;     ///< of its axis
    const tide_pool *other;     ///< of B: the one of A, NULL: none
    const char *side;           ///< "A ", "B "; "": there is no B
    uint64_t top;               ///< of the scale, which both sides share
} band;

static const tide_trace_pool_column *columns_of(const tide_pool_history *h, const tide_pool *p) {
    return p != NULL && h != NULL && p->number < h->n_pools ? &h->columns[p->number * h->n_columns] : NULL;
}

/// The highest that the band has to show.
static uint64_t top_of(const band *b) {
    const tide_trace_pool_column *c = columns_of(b->h, b->pool);
    uint64_t top = 0;
    for (size_t i = 0; c != NULL && i < b->h->n_columns; i++)
        if (c[i].reserved_bytes > top) top = c[i].reserved_bytes;
    return top;
}

// ---- a band ----

/// In a band of one line what is cached has no place above what is used: it stands beside it, in every other column
/// that shows nothing new.
static bool is_hatch(const tide_trace_pool_column *list, int x, uint64_t top) {
    if (x % 2 == 0) return false;
    const int used = tide_tui_height_of(list[x].active_bytes, top, 1, 8);
    const int held = tide_tui_height_of(list[x].reserved_bytes, top, 1, 8);
    return held > used && used == tide_tui_height_of(list[x - 1].active_bytes, top, 1, 8) &&
           held == tide_tui_height_of(list[x - 1].reserved_bytes, top, 1, 8);
}

static void draw_column(const tide_tui_view *v, tide_tui_rect r, int x, const tide_trace_pool_column *list,
                        uint64_t top) {
    const tide_trace_pool_column *c = &list[x];
    const int used = r.h == 1 && is_hatch(list, x, top) ? 0 : tide_tui_height_of(c->active_bytes, top, r.h, 8);
    const int held = tide_tui_height_of(c->reserved_bytes, top, r.h, 8);
    for (int row = 0; row < r.h; row++) {
        const int in_used = used - 8 * row, in_held = held - 8 * row;
        const int y = r.y + r.h - 1 - row;
        if (in_used > 0) {
            tide_tui_put(v->grid, r.x + x, y, v->glyphs->rise[in_used < 8 ? in_used : 8], TIDE_TUI_ROLE_CURVE);
        } else if (in_held >= 4 || (row == 0 && in_held > 0)) {
            tide_tui_put(v->grid, r.x + x, y, v->glyphs->spike, TIDE_TUI_ROLE_SPIKE);
        }
    }
}

static void draw_marks(const tide_tui_view *v, tide_tui_rect r, const band *b) {
    const tide_pool_history *h = b->h;
    for (size_t i = 0; r.h > 1 && i < h->n_marks; i++) {
        const tide_pool_mark *m = &h->marks[i];
        if (m->pool != b->pool->number) continue;
        const int x = tide_tui_column_of(b->window, r.w, m->t);
        if (x < 0 || x >= r.w) continue;
        const bool both = tide_tui_get(v->grid, r.x + x, r.y).role == TIDE_TUI_ROLE_MARK &&
                          tide_tui_get(v->grid, r.x + x, r.y).glyph != (uint32_t)(m->is_growth ? '+' : '-');
        tide_tui_put(v->grid, r.x + x, r.y, both ? '*' : m->is_growth ? '+' : '-', TIDE_TUI_ROLE_MARK);
    }
}

/// Over what is cached, too.
static void draw_cursor(const tide_tui_view *v, tide_tui_rect r) {
    const int x = tide_tui_column_of(v->scene->state->window, r.w, v->scene->state->cursor);
    for (int y = r.y; x >= 0 && x < r.w && y < r.y + r.h; y++)
        if (tide_tui_get(v->grid, r.x + x, y).glyph == v->glyphs->spike)
            tide_tui_put(v->grid, r.x + x, y, v->glyphs->cursor, TIDE_TUI_ROLE_CURSOR);
}

/// The second line of a label, at the cursor: the kind and how much of what is cached lies outside of the largest free
/// block, in as many words as have room; of B what it uses more than A.
static void say_second(const tide_tui_view *v, const band *b, int w, char *buf, size_t buf_bytes) {
    const tide_pool *p = b->pool;
    const bool is_known = p->largest_free_bytes != TIDE_UNKNOWN_BYTES && p->cached_bytes > 0;
    const char *kind = tide_memory_kind_name(p->kind);
    char word[TIDE_TUI_WORD];
    if (b->other != NULL) {
        snprintf(buf, buf_bytes, "  B - A %s",
                 tide_tui_change(b->other->active_bytes, p->active_bytes, word, sizeof word));
        return;
    }
    tide_tui_percent(is_known ? p->cached_bytes - p->largest_free_bytes : 0, p->cached_bytes, word, sizeof word);
    for (int form = is_known ? 0 : 4; form < 5; form++) {
        if (form == 0) snprintf(buf, buf_bytes, "  %s, %s fragmented", kind, word);
        if (form == 1) snprintf(buf, buf_bytes, "  %s, %s fragm.", kind, word);
        if (form == 2) snprintf(buf, buf_bytes, "  %s fragmented", word);
        if (form == 3) snprintf(buf, buf_bytes, "  %s fragm.", word);
        if (form == 4) snprintf(buf, buf_bytes, "  %s", kind);
        if (tide_tui_text_width(v->glyphs, buf) <= w) return;
    }
}

static void label_band(const tide_tui_view *v, tide_tui_rect r, const band *b, bool is_selected) {
    const tide_pool *p = b->pool;
    const int w = v->scene->layout->labels.w - 1;
    char text[96], size[TIDE_TUI_WORD], context[24] = "";
    const char *kind = r.h < 2 ? tide_memory_kind_name(p->kind) : ""; // there is a line for it else
    if (p->context > 0) snprintf(context, sizeof context, " #%" PRIu32, p->context);
    snprintf(text, sizeof text, "%s%s%.40s%s%s%s", is_selected ? "> " : "  ", b->side, tide_tui_named(p->name), context,
             *kind != 0 && !p->is_planned ? " " : "", p->is_planned ? "" : kind);
    const int used =
        tide_tui_text(v, 0, r.y, w, text, TIDE_TUI_CUT_MIDDLE, is_selected ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_DIM);
    tide_tui_bytes(p->reserved_bytes, size, sizeof size);
    const int size_w = tide_tui_text_width(v->glyphs, size);
    if (used + 1 + size_w <= w) tide_tui_text(v, w - size_w, r.y, size_w, size, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    if (r.h < 2) return;
    say_second(v, b, w, text, sizeof text);
    tide_tui_text(v, 0, r.y + 1, w, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

/// Where a request would be served over time.
static void draw_fits(const tide_tui_view *v, tide_tui_rect r, const tide_trace_pool_column *c) {
    const tide_tui_scene *s = v->scene;
    const uint64_t bytes = s->state->request_bytes;
    char text[96], size[TIDE_TUI_WORD];
    snprintf(text, sizeof text, "  %s fits", tide_tui_bytes(bytes, size, sizeof size));
    tide_tui_text(v, 0, r.y, s->layout->labels.w - 1, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_GOOD);
    for (int x = 0; x < r.w && (size_t)x < s->pool_history->n_columns; x++) {
        const tide_trace_pool_column *k = &c[x];
        if (k->most_free_bytes < bytes) continue;
        const bool always = k->least_free_bytes != TIDE_UNKNOWN_BYTES && k->least_free_bytes >= bytes;
        tide_tui_put(v->grid, r.x + x, r.y, always ? v->glyphs->full : '.', TIDE_TUI_ROLE_GOOD);
    }
}

// ---- what passes through a pool ----

static bool is_there(const tide_tui_scene *s, const tide_pool_tensor *t) {
    return s->a->axis == TIDE_AXIS_STEPS && t->begin <= s->state->cursor && s->state->cursor < t->end;
}

/// "relu1.out 512K (1.50M left over)"; where the line is short "relu1.out 512K+1.50M", and its label says what that is.
static void say_tensor(const tide_tui_scene *s, const tide_pool_tensor *t, bool in_full, char *buf, size_t buf_bytes) {
    char size[TIDE_TUI_WORD], left[TIDE_TUI_WORD];
    const bool now = is_there(s, t);
    tide_tui_format_short(t->bytes, size, sizeof size);
    tide_tui_format_short(t->left_over, left, sizeof left);
    snprintf(buf, buf_bytes, in_full ? " %s (%s left over)%s" : " %s+%s%s", size, left, now ? "]" : "");
}

/// "  16 tensors +left over"; fewer words where the label is narrow.
static void label_lane(const tide_tui_view *v, int y, size_t n_tensors, bool in_full) {
    const int w = v->scene->layout->labels.w - 1;
    const char *what = in_full ? "" : " +left over", *word = n_tensors == 1 ? " tensor" : " tensors";
    char text[96], n[TIDE_TUI_WORD];
    tide_tui_exact(n_tensors, n, sizeof n);
    snprintf(text, sizeof text, "  %s%s%s", n, word, what);
    if (tide_tui_text_width(v->glyphs, text) > w) snprintf(text, sizeof text, "  %s%s", n, *what != 0 ? what : word);
    if (tide_tui_text_width(v->glyphs, text) > w) snprintf(text, sizeof text, "  %s", *what != 0 ? "+left" : n);
    tide_tui_text(v, 0, y, w, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

/// A name, cut to `name_w` (the first one further), with its figures. @return columns used; -1: there is no room
static int put_tensor(const tide_tui_view *v, int x, int y, int room, int name_w, bool is_first, bool in_full,
                      const tide_pool_tensor *t) {
    enum { SHORTEST = 5 };
    const bool now = is_there(v->scene, t);
    const tide_tui_role role = now ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_DIM;
    char figures[96];
    const char *name = tide_tui_named(t->name);
    say_tensor(v->scene, t, in_full, figures, sizeof figures);
    int w = tide_tui_text_width(v->glyphs, name);
    if (w > name_w) w = name_w;
    const int left = room - now - tide_tui_text_width(v->glyphs, figures);
    if (is_first && w > left && left >= SHORTEST) w = left;
    if (w > left) return -1;
    int at = x;
    if (now) at += tide_tui_text(v, at, y, 1, "[", TIDE_TUI_CUT_END, role);
    at += tide_tui_text(v, at, y, w, name, TIDE_TUI_CUT_MIDDLE, role);
    at += tide_tui_text(v, at, y, room, figures, TIDE_TUI_CUT_END, role);
    return at - x;
}

/// As many as have room, the largest first, then how many more there are.
static void draw_lane(const tide_tui_view *v, tide_tui_rect r, const tide_pool *p) {
    enum { IN_FULL = 140, SHORT = 45 };
    const tide_pool_tensors *list = v->scene->pool_tensors;
    if (list == NULL || p->colour >= list->n_pools) return;
    const size_t first = list->first[p->colour], end = list->first[p->colour + 1];
    const bool in_full = r.w >= IN_FULL;
    const int name_w = r.w / 4 > 8 ? r.w / 4 : 8;
    char more[TIDE_TUI_WORD + 8], n[TIDE_TUI_WORD];
    label_lane(v, r.y, end - first, in_full);
    int x = r.x;
    for (size_t i = first; i < end; i++) {
        snprintf(more, sizeof more, r.w < SHORT ? "+%s" : "+%s more", tide_tui_exact(end - i - 1, n, sizeof n));
        const int behind = i + 1 < end ? 2 + tide_tui_text_width(v->glyphs, more) : 0;
        const int used = put_tensor(v, x, r.y, r.x + r.w - x - behind, name_w, i == first, in_full, &list->items[i]);
        if (used < 0) {
            snprintf(more, sizeof more, r.w < SHORT ? "+%s" : "+%s more", tide_tui_exact(end - i, n, sizeof n));
            tide_tui_text(v, x, r.y, r.x + r.w - x, more, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
            return;
        }
        x += used;
        if (i + 1 < end) x += tide_tui_text(v, x, r.y, 2, ", ", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
    }
}

// ---- all of them ----

/// The band of a row on one side.
static band band_of(const tide_tui_scene *s, size_t row, bool is_b) {
    const tide_pool *a = tide_tui_pool_of_a(s, row);
    const bool has_b = tide_tui_pools_have_two_axes(s);
    if (!is_b) return (band){a, s->pool_history, s->state->window, NULL, has_b ? "A " : "", 0};
    return (band){has_b ? s->pool_of_b[row] : NULL, s->b_pool_history, s->b_window, a, "B ", 0};
}

static int n_bands_of(const tide_tui_scene *s, size_t row) {
    return (band_of(s, row, false).pool != NULL) + (band_of(s, row, true).pool != NULL);
}

/// How lines are shared: one for each band, then one each for the tensors of the selected pool and of others from the
/// first on, then more for bands.
typedef struct shares {
    size_t first, end; ///< rows that are drawn
    int lanes;         ///< of them have a line for their tensors
    int lines;         ///< of a band
    int n_with_one_more;
} shares;

/// Rows from `first` on for whose bands there is room: [first, end). @return their bands
static int rows_from(const tide_tui_scene *s, size_t first, int room, size_t *end) {
    int n = 0;
    for (*end = first; *end < s->pools->n && n + n_bands_of(s, *end) <= room; ++*end) n += n_bands_of(s, *end);
    return n;
}

/// `room` is 1 at least, and the selected row is drawn if it has room alone.
static shares share_lines(const tide_tui_scene *s, size_t selected, int room) {
    shares out = {.lines = 1};
    const bool has_lanes = s->pool_tensors != NULL && room > n_bands_of(s, selected);
    int n = rows_from(s, 0, room - has_lanes, &out.end);
    while (selected >= out.end && out.first < selected) n = rows_from(s, ++out.first, room - has_lanes, &out.end);
    const int n_rows = (int)(out.end - out.first);
    if (n == 0) return out;
    if (has_lanes) out.lanes = room - n < n_rows ? room - n : n_rows;
    const int left = room - n - out.lanes, each = left / n;
    out.lines += each < MOST_LINES - 1 ? each : MOST_LINES - 1;
    out.n_with_one_more = out.lines < MOST_LINES ? left - each * n : 0;
    return out;
}

static void draw_band(const tide_tui_view *v, tide_tui_rect r, const band *b, bool is_selected) {
    const tide_trace_pool_column *c = columns_of(b->h, b->pool);
    if (c == NULL) return;
    for (int x = 0; x < r.w && (size_t)x < b->h->n_columns; x++) draw_column(v, r, x, c, b->top);
    draw_marks(v, r, b);
    tide_tui_draw_time_lines(v, r);
    draw_cursor(v, r);
    label_band(v, r, b, is_selected);
}

/// The bands of a row, A above B. @return the line behind them
static int draw_row(const tide_tui_view *v, tide_tui_rect r, size_t row, bool is_selected, int *n_with_one_more) {
    band sides[2] = {band_of(v->scene, row, false), band_of(v->scene, row, true)};
    const uint64_t a = top_of(&sides[0]), b = top_of(&sides[1]);
    for (int i = 0; i < 2; i++) {
        if (sides[i].pool == NULL) continue;
        sides[i].top = a > b ? a : b;
        const int h = r.h + (*n_with_one_more > 0);
        *n_with_one_more -= 1;
        draw_band(v, (tide_tui_rect){r.x, r.y, r.w, h}, &sides[i], is_selected);
        r.y += h;
    }
    return r.y;
}

void tide_tui_draw_pool_bands(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect curve = s->layout->panes[TIDE_TUI_PANE_CURVE];
    if (r.h <= 0 || s->pool_history == NULL || s->pools == NULL || s->pools->n == 0) return;
    const size_t row = tide_tui_scene_row(s, TIDE_TUI_PANE_POOLS), selected = row < s->pools->n ? row : 0;
    const int fits = s->state->request_bytes > 0 && r.h > 1 ? 1 : 0;
    const shares sh = share_lines(s, selected, r.h - fits);
    const bool has_own = sh.lanes > 0 && s->pools->items[selected].colour < s->pool_tensors->n_pools;
    const bool is_drawn = selected >= sh.first && selected < sh.end;
    int y = r.y, lanes = sh.lanes - (has_own && is_drawn ? 1 : 0), n_with_one_more = sh.n_with_one_more;
    for (size_t i = sh.first; i < sh.end; i++) {
        const tide_pool *p = &s->pools->items[i];
        const tide_trace_pool_column *c = columns_of(s->pool_history, p);
        const bool is_selected = i == selected;
        y = draw_row(v, (tide_tui_rect){curve.x, y, curve.w, sh.lines}, i, is_selected, &n_with_one_more);
        const bool has_lane = sh.lanes > 0 && p->colour < s->pool_tensors->n_pools;
        if (has_lane && (is_selected || lanes-- > 0)) draw_lane(v, (tide_tui_rect){curve.x, y++, curve.w, 1}, p);
        if (!is_selected || fits == 0 || c == NULL) continue;
        draw_fits(v, (tide_tui_rect){curve.x, y, curve.w, 1}, c);
        y++;
    }
}

// ---- growth ----

/// "; as much is spare since 751 s": when the pool could have shrunk.
static const char *say_spare(const tide_tui_scene *s, const tide_pool_mark *m, char *buf, size_t buf_bytes) {
    char when[TIDE_TUI_WORD];
    buf[0] = 0;
    if (!m->is_growth || m->spare_since == INT64_MIN) return buf;
    if (m->spare_since == INT64_MAX)
        snprintf(buf, buf_bytes, "; it was needed to the end");
    else if (m->t < s->a->begin && m->spare_since <= s->a->begin)
        snprintf(buf, buf_bytes, "; as much is spare since the run began"); // what was before is not looked at
    else
        snprintf(buf, buf_bytes, "; as much is spare since %s",
                 m->spare_since <= m->t ? "then" : tide_tui_when(s->a, m->spare_since, when, sizeof when));
    return buf;
}

void tide_tui_say_growth(const tide_tui_scene *s, size_t told, char *buf, size_t buf_bytes) {
    const tide_pool_history *h = s->pool_history;
    const size_t row = s->pools != NULL ? tide_tui_scene_row(s, TIDE_TUI_PANE_POOLS) : 0;
    buf[0] = 0;
    if (h == NULL || s->pools == NULL || s->pools->n == 0) return;
    const size_t selected = row < s->pools->n ? row : 0;
    char name[TIDE_TUI_WORD] = "It";
    if (selected != told) tide_tui_say_pool(s, selected, name, sizeof name);
    for (size_t i = h->n_marks; i-- > 0;) {
        const tide_pool_mark *m = &h->marks[i];
        char size[TIDE_TUI_WORD], when[TIDE_TUI_WORD], spare[96];
        if (m->pool != s->pools->items[selected].number || m->t > s->state->cursor) continue;
        snprintf(buf, buf_bytes, " %s %s last by %s at %s%s%s%s.", name, m->is_growth ? "grew" : "shrank",
                 tide_tui_bytes(m->bytes, size, sizeof size), tide_tui_when(s->a, m->t, when, sizeof when),
                 m->why[0] != 0 ? ", for " : "", m->why, say_spare(s, m, spare, sizeof spare));
        return;
    }
}

// ---- a request ----

static void add_blockers(const tide_pool_request *r, char *buf, size_t buf_bytes) {
    size_t len = 0;
    buf[0] = 0;
    for (size_t i = 0; i < r->n_blockers && i < 3 && len < buf_bytes; i++) {
        const tide_pool_blocker *b = &r->blockers[i];
        const int n = snprintf(buf + len, buf_bytes - len, "%s%.40s", i > 0 ? ", " : "", tide_tui_named(b->name));
        len += n > 0 ? (size_t)n : 0;
    }
    if (r->n_blockers > 3 && len < buf_bytes) snprintf(buf + len, buf_bytes - len, " and %zu more", r->n_blockers - 3);
}

void tide_tui_say_request(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    const tide_pool_request *r = s->pool_request;
    char bytes[TIDE_TUI_WORD], room[TIDE_TUI_WORD], blocked[TIDE_TUI_WORD], when[TIDE_TUI_WORD], names[192], next[96];
    buf[0] = 0;
    if (r == NULL) return;
    tide_tui_bytes(r->bytes, bytes, sizeof bytes);
    tide_tui_bytes(r->room_bytes, room, sizeof room);
    if (r->has_next)
        snprintf(next, sizeof next, "it would be served first at %s",
                 tide_tui_when(s->a, r->next.t, when, sizeof when));
    else
        snprintf(next, sizeof next, "and it never would be later");
    if (r->fit == TIDE_FIT_FREE) {
        snprintf(buf, buf_bytes, "%s would be served now: free at 0x%" PRIx64 " in %s.", bytes, r->address, room);
    } else if (r->fit == TIDE_FIT_GROW) {
        snprintf(buf, buf_bytes, "%s would not be served now: nothing there is that large, it would have to grow; %s.",
                 bytes, next);
    } else {
        const size_t row = tide_tui_scene_row(s, TIDE_TUI_PANE_POOLS);
        const char *word = s->pools->items[row < s->pools->n ? row : 0].is_planned ? "tensor" : "block";
        add_blockers(r, names, sizeof names);
        snprintf(buf, buf_bytes,
                 "%s would not be served now: %zu %s%s of %s stand%s in the way at 0x%" PRIx64 ": %s; %s.", bytes,
                 r->n_blockers, word, r->n_blockers == 1 ? "" : "s",
                 tide_tui_bytes(r->blocked_bytes, blocked, sizeof blocked), r->n_blockers == 1 ? "s" : "", r->address,
                 names, next);
    }
}
