// SPDX-License-Identifier: MIT
//
// What panes with a time axis share: the cursor's line, the selected range, heights of bytes; and the axis under the
// curve: the minimap (all of the axis on one line with the window in it) and the ruler. See time_axis.h.
//
//     .:#######[######:::::..]........     minimap: brackets hold the window
//     +0 ms---+5 ms-a-^-|7.1 ms---+10 ms   ruler: ticks, a mark, the peak, the cursor with its time
#include "tui/draw/time_axis.h"

#include <stdio.h>
#include <string.h>

#include "tui/draw/format.h"

/// Column of the rectangle at `t`; -1: outside of the window.
static int time_column(const tide_tui_view *v, tide_tui_rect r, int64_t t) {
    const int x = tide_tui_column_of(v->scene->state->window, r.w, t);
    return x < 0 || x >= r.w ? -1 : r.x + x;
}

int tide_tui_height_of(uint64_t bytes, uint64_t top, int h, int parts) {
    if (bytes == 0 || top == 0 || h <= 0) return 0;
    const double e = (double)bytes / (double)top * (double)parts * (double)h;
    const int max = parts * h, rounded = e < (double)max ? (int)(e + 0.5) : max;
    return rounded < 1 ? 1 : rounded > max ? max : rounded;
}

static void draw_range(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_state *st = v->scene->state;
    int from, to;
    if (tide_tui_columns_of(st->window, r.w, st->range_begin, st->range_end, &from, &to) != 0) return;
    const bool begins = st->range_begin >= st->window.begin, ends = st->range_end <= st->window.end;
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = from; x < to; x++) {
            const tide_tui_cell cell = tide_tui_get(v->grid, r.x + x, y);
            if (cell.ground == TIDE_TUI_ROLE_TEXT) tide_tui_put_ground(v->grid, r.x + x, y, TIDE_TUI_ROLE_RANGE);
            const bool is_edge = (x == from && begins) || (x == to - 1 && ends);
            if (is_edge && cell.glyph == ' ') tide_tui_put(v->grid, r.x + x, y, v->glyphs->edge, TIDE_TUI_ROLE_RANGE);
        }
    }
}

static void draw_cursor(const tide_tui_view *v, tide_tui_rect r) {
    const int x = time_column(v, r, v->scene->state->cursor);
    if (x < 0) return;
    for (int y = r.y; y < r.y + r.h; y++) {
        const tide_tui_cell cell = tide_tui_get(v->grid, x, y);
        const bool is_dots = v->glyphs->braille && cell.glyph >= 0x2800 && cell.glyph <= 0x28FF;
        if (cell.glyph == v->glyphs->full) {
            if (cell.role == TIDE_TUI_ROLE_TITLE) continue; // the screen's own colour cannot be a ground
            tide_tui_put_ground(v->grid, x, y, (tide_tui_role)cell.role);
        } else if (cell.glyph != ' ' && cell.glyph != v->glyphs->edge && !is_dots) {
            continue;
        }
        tide_tui_put(v->grid, x, y, v->glyphs->cursor, TIDE_TUI_ROLE_CURSOR);
    }
}

void tide_tui_draw_time_lines(const tide_tui_view *v, tide_tui_rect r) {
    if (r.w <= 0 || r.h <= 0) return;
    if (v->scene->state->shows_range) draw_range(v, r);
    draw_cursor(v, r);
}

void tide_tui_say_cursor(const tide_tui_view *v, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = v->scene;
    char when[32], size[TIDE_TUI_WORD], of_what[TIDE_TUI_WORD] = "live", body[64];
    const char *step = s->cursor_step < s->a->n_steps ? s->a->step_names[s->cursor_step] : NULL;
    const int kinds = tide_tui_curve_kinds(s->state);
    tide_subject_body_at(s->a, s->state->cursor, body, sizeof body);
    if (kinds >= 0) snprintf(of_what, sizeof of_what, "of %s", tide_memory_kind_name((tide_memory_kind)kinds));
    if (kinds == TIDE_KINDS_BUT_WEIGHTS) snprintf(of_what, sizeof of_what, "less weights");
    snprintf(buf, buf_bytes, "%s%s%s%.48s%s%s%s: %s %s", s->a->axis == TIDE_AXIS_STEPS ? "step " : "at ",
             tide_tui_format_time(s->a, s->state->cursor, when, sizeof when), step != NULL ? " (" : "",
             step != NULL ? step : "", step != NULL && body[0] != '\0' ? ", " : "", step != NULL ? body : "",
             step != NULL ? ")" : "", tide_tui_bytes(s->cursor_bytes, size, sizeof size), of_what);
}

// ---- minimap ----

static void draw_minimap(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->minimap;
    if (r.w <= 0 || r.h <= 0 || s->mini_max == NULL) return;
    const tide_tui_window whole = tide_tui_whole(s->a);
    uint64_t top = 0;
    for (int i = 0; i < r.w; i++) {
        if (s->mini_max[i] > top) top = s->mini_max[i];
    }
    int from = 0, to = r.w;
    (void)tide_tui_columns_of(whole, r.w, s->state->window.begin, s->state->window.end, &from, &to);
    for (int i = 0; i < r.w; i++) {
        const int e = tide_tui_height_of(s->mini_max[i], top, 1, 8);
        tide_tui_put(v->grid, r.x + i, r.y, v->glyphs->rise[e],
                     i >= from && i < to ? TIDE_TUI_ROLE_CURVE : TIDE_TUI_ROLE_DIM);
    }
    const int cursor = tide_tui_column_of(whole, r.w, s->state->cursor);
    if (cursor >= 0 && cursor < r.w) tide_tui_put(v->grid, r.x + cursor, r.y, v->glyphs->cursor, TIDE_TUI_ROLE_CURSOR);
    tide_tui_put(v->grid, r.x + from, r.y, v->glyphs->mini_lo, TIDE_TUI_ROLE_KEY);
    if (to - 1 > from) tide_tui_put(v->grid, r.x + to - 1, r.y, v->glyphs->mini_hi, TIDE_TUI_ROLE_KEY);
}

// ---- ruler ----

/// Columns in which something other than a tick stands, so that no time is printed under it: bits by column.
typedef struct taken {
    uint8_t bits[TIDE_TUI_MAX_COLUMNS / 8 + 1];
} taken;

static void take(taken *t, tide_tui_rect r, int x, int w) {
    for (int i = x - r.x; i < x - r.x + w; i++) {
        if (i >= 0 && i < TIDE_TUI_MAX_COLUMNS) t->bits[i / 8] |= (uint8_t)(1u << i % 8);
    }
}

static bool is_free(const taken *t, tide_tui_rect r, int x, int w) {
    for (int i = x - r.x; i < x - r.x + w; i++) {
        if (i < 0 || i >= r.w || (t->bits[i / 8] >> i % 8 & 1) != 0) return false;
    }
    return true;
}

static void put_at(const tide_tui_view *v, tide_tui_rect r, taken *t, int64_t at, uint32_t glyph, tide_tui_role role) {
    const int x = time_column(v, r, at);
    if (x < 0) return;
    tide_tui_put(v->grid, x, r.y, glyph, role);
    take(t, r, x, 1);
}

static void put_range_ends(const tide_tui_view *v, tide_tui_rect r, taken *t) {
    const tide_tui_state *st = v->scene->state;
    int from, to;
    if (tide_tui_columns_of(st->window, r.w, st->range_begin, st->range_end, &from, &to) != 0) return;
    if (st->range_begin >= st->window.begin) tide_tui_put(v->grid, r.x + from, r.y, '[', TIDE_TUI_ROLE_RANGE);
    if (st->range_end <= st->window.end) tide_tui_put(v->grid, r.x + to - 1, r.y, ']', TIDE_TUI_ROLE_RANGE);
    take(t, r, r.x + from, 1);
    take(t, r, r.x + to - 1, 1);
}

/// Range, peak, cursor, marks: the later ones overwrite the earlier ones.
static void put_signs(const tide_tui_view *v, tide_tui_rect r, taken *t) {
    const tide_tui_scene *s = v->scene;
    if (s->state->shows_range) put_range_ends(v, r, t);
    if (s->a->peak_bytes > 0) put_at(v, r, t, s->a->peak.t, v->glyphs->peak, TIDE_TUI_ROLE_PEAK);
    put_at(v, r, t, s->state->cursor, v->glyphs->crossing, TIDE_TUI_ROLE_CURSOR);
    for (size_t i = 0; i < s->n_marks; i++) { // those of the trace have no letter
        const bool named = s->marks[i].name != 0;
        const uint32_t glyph = named ? (uint32_t)(unsigned char)s->marks[i].name : '*';
        put_at(v, r, t, s->marks[i].at.t, glyph, TIDE_TUI_ROLE_MARK);
    }
    if (s->state->has_a_moment) put_at(v, r, t, s->state->a_moment.t, 'A', TIDE_TUI_ROLE_MARK);
    if (s->state->has_b_moment) put_at(v, r, t, s->state->b_moment.t, 'B', TIDE_TUI_ROLE_MARK);
}

/// The time at the cursor, behind it or before it.
static void put_cursor_time(const tide_tui_view *v, tide_tui_rect r, taken *t) {
    const tide_tui_state *st = v->scene->state;
    const int x = time_column(v, r, st->cursor);
    char text[32];
    if (x < 0) return;
    const int len = (int)strlen(tide_tui_format_time(v->scene->a, st->cursor, text, sizeof text));
    const int at = is_free(t, r, x + 1, len + 1) ? x + 1 : x - len;
    if (!is_free(t, r, at, len)) return;
    tide_tui_text(v, at, r.y, len, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_CURSOR);
    take(t, r, at - 1, len + 2);
}

/// Ticks at 1, 2 or 5 times a power of ten; their times behind them, or on a line of their own below.
static void put_ticks(const tide_tui_view *v, tide_tui_rect r, taken *t) {
    const tide_subject_facts *f = v->scene->a;
    const tide_tui_window w = v->scene->state->window;
    const bool below = r.h > 1;
    const int64_t each = tide_tui_tick_time(w, r.w / 12 > 2 ? r.w / 12 : 2);
    const int64_t past = (int64_t)(((uint64_t)w.begin - (uint64_t)tide_tui_zero(f)) % (uint64_t)each);
    int64_t at = past == 0 ? w.begin : tide_tui_move_time(w.begin, each - past, w.begin, INT64_MAX);
    int free_from = r.x;
    for (; at < w.end; at += each) {
        const int x = r.x + tide_tui_column_of(w, r.w, at), label = below ? x : x + 1;
        char text[32];
        const int len = (int)strlen(tide_tui_format_time(f, at, text, sizeof text));
        if (is_free(t, r, x, 1)) tide_tui_put(v->grid, x, r.y, v->glyphs->tick, TIDE_TUI_ROLE_DIM);
        if (x >= free_from && label + len <= r.x + r.w && (below || is_free(t, r, x, len + 1))) {
            tide_tui_text(v, label, below ? r.y + 1 : r.y, len, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
            free_from = label + len + 1;
        }
        if (at > INT64_MAX - each) break;
    }
}

void tide_tui_draw_ruler(const tide_tui_view *v) {
    const tide_tui_rect r = v->scene->layout->ruler;
    taken t = {{0}};
    draw_minimap(v);
    if (r.w <= 0 || r.h <= 0) return;
    tide_tui_fill_row(v->grid, r.x, r.y, r.w, v->glyphs->rule, TIDE_TUI_ROLE_DIM);
    put_signs(v, r, &t);
    put_cursor_time(v, r, &t);
    put_ticks(v, r, &t);
}

// ---- what runs when ----
// On a line under the ruler: operators where they have room, else executions.
//
//     |#0 conv1 |relu1|conv2 ..|pool         |#1 conv1 |relu1         a plan has no executions: conv1 |relu1|...
//     |#0       |#1        |#2        |#3

/// What runs in a column: of the first lane, when the column begins, else what begins first in it.
typedef struct running {
    size_t execution, step; // SIZE_MAX: none; of a plan execution 0
} running;

/// The first execution that begins at `t` or later, in any lane.
static size_t first_from(const tide_executions *x, int64_t t) {
    size_t lo = 0, hi = x->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if ((int64_t)x->items[mid].begin_ns < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/// In [t, end).
static running running_in(const tide_subject_facts *f, int64_t t, int64_t end) {
    running r = {SIZE_MAX, SIZE_MAX};
    const tide_executions *x = f->executions;
    if (!f->is_trace) return (running){0, tide_subject_step_at(f, t)};
    if (x == NULL || x->n_lanes == 0 || t < 0) return r;
    r.execution = tide_executions_at_ns(x, 0, (uint64_t)t);
    for (size_t i = first_from(x, t); r.execution == SIZE_MAX && i < x->n && (int64_t)x->items[i].begin_ns < end; i++)
        if (x->items[i].lane == 0) r.execution = i;
    if (r.execution == SIZE_MAX) return r;
    r.step = tide_execution_step_at_ns(x, &x->items[r.execution], (uint64_t)t);
    return r;
}

static int64_t begin_of(tide_tui_window w, int n, int x) {
    const uint64_t span = tide_tui_window_span(w), part = (uint64_t)x;
    return (int64_t)((uint64_t)w.begin + span / (uint64_t)n * part + span % (uint64_t)n * part / (uint64_t)n);
}

static bool same(running a, running b, bool by_step) {
    return a.execution == b.execution && (!by_step || a.step == b.step);
}

/// "#3 conv1": the execution where it begins, the operator where there is room for operators.
static void words_of(const tide_subject_facts *f, running now, int64_t t, bool is_first, bool by_step, char *buf,
                     size_t buf_bytes) {
    const char *name = by_step && now.step != SIZE_MAX ? tide_subject_step_name_at(f, t) : "";
    buf[0] = '\0';
    if (f->is_trace && is_first) {
        snprintf(buf, buf_bytes, "#%zu%s%.80s", now.execution, name[0] != '\0' ? " " : "", name);
    } else {
        snprintf(buf, buf_bytes, "%.80s", name);
    }
}

/// Executions that begin in the window.
static size_t count_runs(const tide_subject_facts *f, tide_tui_window w) {
    const tide_executions *x = f->executions;
    return x != NULL ? first_from(x, w.end) - first_from(x, w.begin) : 0;
}

static void say_many(const tide_tui_view *v, tide_tui_rect r, size_t n) {
    const size_t first = first_from(v->scene->a->executions, v->scene->state->window.begin);
    char text[96];
    snprintf(text, sizeof text, "executions #%zu to #%zu: zoom in to tell them apart", first, first + n - 1);
    if (tide_tui_text_width(v->glyphs, text) > r.w) snprintf(text, sizeof text, "#%zu to #%zu", first, first + n - 1);
    tide_tui_text(v, r.x, r.y, r.w, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

void tide_tui_draw_runs(const tide_tui_view *v) {
    enum { ROOM = 5, LEAST = 3, NAME = 4 }; // columns of an operator, on the average; of a name that is cut
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->runs;
    const tide_tui_window w = s->state->window;
    running at[TIDE_TUI_MAX_COLUMNS];
    const int n = r.w < TIDE_TUI_MAX_COLUMNS ? r.w : TIDE_TUI_MAX_COLUMNS;
    int n_steps = 0, n_runs = 0;
    if (n <= 0 || r.h <= 0) return;
    for (int x = 0; x < n; x++) {
        at[x] = running_in(s->a, begin_of(w, n, x), begin_of(w, n, x + 1));
        n_steps += x == 0 || !same(at[x], at[x - 1], true);
        n_runs += x == 0 || !same(at[x], at[x - 1], false);
    }
    const bool by_step = n_steps * (n_runs > 1 ? ROOM : LEAST) <= n;
    const size_t n_in_window = count_runs(s->a, w);
    if (!by_step && s->a->is_trace && n_in_window * 2 > (size_t)n) say_many(v, r, n_in_window);
    if (!by_step && (!s->a->is_trace || n_in_window * 2 > (size_t)n)) return; // too many to be told apart
    for (int x = 0; x < n;) {
        int end = x + 1;
        while (end < n && same(at[end], at[x], by_step)) end++;
        if (at[x].execution != SIZE_MAX && (!by_step || at[x].step != SIZE_MAX)) {
            char words[128];
            const bool is_first = x == 0 || at[x].execution != at[x - 1].execution || at[x - 1].step == SIZE_MAX;
            words_of(s->a, at[x], begin_of(w, n, x), is_first, by_step, words, sizeof words);
            tide_tui_put(v->grid, r.x + x, r.y, v->glyphs->separator, TIDE_TUI_ROLE_DIM);
            const bool is_cursor = s->state->cursor >= begin_of(w, n, x) && s->state->cursor < begin_of(w, n, end);
            const int room = end - x - 1;
            char *blank = tide_tui_text_width(v->glyphs, words) > room ? strchr(words, ' ') : NULL;
            if (is_first && s->a->is_trace && blank != NULL) *blank = '\0'; // the number alone
            if (room > 1 && ((by_step && room >= NAME) || tide_tui_text_width(v->glyphs, words) <= room))
                tide_tui_text(v, r.x + x + 1, r.y, room, words, TIDE_TUI_CUT_END,
                              is_cursor ? TIDE_TUI_ROLE_CURSOR : TIDE_TUI_ROLE_TEXT);
        }
        x = end;
    }
}
