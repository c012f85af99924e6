// SPDX-License-Identifier: MIT
//
// The curve of live bytes: per column the smallest and the largest value in it, so that no spike is lost at any zoom,
// with lines for plan, lower bound and capacity, the plan's own curve beside a trace, and B's. See draw.h.
//
// Over its columns lie the bands of what it is made of (tui/draw/bands.c).
//
//     capacity 4.00 MiB |~~~~~~~~~~~~~~~~~~~~~~~~|
//         peak 3.20 MiB |         #!             |    ! between min and max of a column
//   lower bound 2.9 MiB |------.-##!---bb--------|    b: B's largest value
//     cursor 1.00 MiB   |  ..#####|##...         |
//                     0 |########.|#########.    |
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"
#include "tui/draw/time_axis.h"

// ---- columns ----

/// Smallest and largest of the values that fall into part `i` of `n`.
typedef struct extent {
    uint64_t min, max;
} extent;

static extent extent_of(const uint64_t *min, const uint64_t *max, size_t n_columns, int i, int n) {
    size_t from = (size_t)i * n_columns / (size_t)n, to = (size_t)(i + 1) * n_columns / (size_t)n;
    if (to <= from) to = from + 1;
    extent e = {min[from], max[from]};
    for (size_t c = from + 1; c < to && c < n_columns; c++) {
        if (min[c] < e.min) e.min = min[c];
        if (max[c] > e.max) e.max = max[c];
    }
    return e;
}

static void draw_blocks(const tide_tui_view *v, tide_tui_rect r, int i, bool at_peak) {
    const tide_tui_scene *s = v->scene;
    const extent e = extent_of(s->min, s->max, s->n_columns, i, r.w);
    const int min_e = tide_tui_height_of(e.min, s->top_bytes, r.h, 8);
    const int max_e = tide_tui_height_of(e.max, s->top_bytes, r.h, 8);
    for (int row = 0; row < r.h; row++) {
        const int in_min = min_e - 8 * row, in_max = max_e - 8 * row;
        if (in_max <= 0) break;
        const tide_tui_role role = at_peak      ? TIDE_TUI_ROLE_PEAK
                                   : in_min > 0 ? TIDE_TUI_ROLE_CURVE
                                                : TIDE_TUI_ROLE_SPIKE;
        const uint32_t glyph = in_max < 8    ? v->glyphs->rise[in_max]
                               : in_min >= 4 ? v->glyphs->rise[8]
                                             : v->glyphs->spike;
        tide_tui_put(v->grid, r.x + i, r.y + r.h - 1 - row, glyph, role);
    }
}

/// Two columns of four dots a cell: each filled up to the largest value of its half.
static void draw_dots(const tide_tui_view *v, tide_tui_rect r, int i, bool at_peak) {
    static const uint8_t dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}; // from below
    const tide_tui_scene *s = v->scene;
    int min_e = 4 * r.h, max_e[2];
    for (int half = 0; half < 2; half++) {
        const extent e = extent_of(s->min, s->max, s->n_columns, 2 * i + half, 2 * r.w);
        const int low = tide_tui_height_of(e.min, s->top_bytes, r.h, 4);
        max_e[half] = tide_tui_height_of(e.max, s->top_bytes, r.h, 4);
        if (low < min_e) min_e = low;
    }
    for (int row = 0; row < r.h; row++) {
        uint32_t bits = 0;
        for (int half = 0; half < 2; half++) {
            for (int dot = 0; dot < 4 && 4 * row + dot < max_e[half]; dot++) bits |= dots[half][dot];
        }
        if (bits == 0) break;
        const tide_tui_role role = at_peak           ? TIDE_TUI_ROLE_PEAK
                                   : min_e > 4 * row ? TIDE_TUI_ROLE_CURVE
                                                     : TIDE_TUI_ROLE_SPIKE;
        tide_tui_put(v->grid, r.x + i, r.y + r.h - 1 - row, 0x2800 + bits, role);
    }
}

// ---- lines ----

static int row_of(const tide_tui_view *v, tide_tui_rect r, uint64_t bytes) {
    const int e = tide_tui_height_of(bytes, v->scene->top_bytes, r.h, 8);
    return r.y + r.h - 1 - (e > 0 ? (e - 1) / 8 : 0);
}

static void draw_level(const tide_tui_view *v, tide_tui_rect r, int y, uint32_t glyph, tide_tui_role role) {
    for (int x = r.x; x < r.x + r.w; x++) {
        if (tide_tui_get(v->grid, x, y).glyph == ' ') tide_tui_put(v->grid, x, y, glyph, role);
    }
}

/// A second curve over the first: its largest value in each column, on the ground of what it covers.
static void draw_second(const tide_tui_view *v, tide_tui_rect r, const uint64_t *max, uint32_t glyph,
                        tide_tui_role role) {
    const tide_tui_scene *s = v->scene;
    for (int i = 0; i < r.w; i++) {
        const extent e = extent_of(max, max, s->n_columns, i, r.w);
        if (e.max == 0) continue;
        const int y = row_of(v, r, e.max);
        const tide_tui_cell below = tide_tui_get(v->grid, r.x + i, y);
        if (below.glyph == v->glyphs->full || below.glyph == v->glyphs->spike)
            tide_tui_put_ground(v->grid, r.x + i, y, (tide_tui_role)below.role);
        tide_tui_put(v->grid, r.x + i, y, glyph, role);
    }
}

// ---- labels ----

/// Columns of row `y` that are free for a label, from the left end; *shares: another one stands behind them.
static int label_room(const tide_tui_view *v, int y, bool *shares) {
    const tide_tui_rect r = v->scene->layout->labels;
    *shares = false;
    for (int x = r.x; x < r.x + r.w; x++) {
        if (tide_tui_get(v->grid, x, y).glyph == ' ') continue;
        *shares = true;
        return x - r.x - 2;
    }
    return r.w - 1;
}

/// A label at the right end of row `y`, or before the one that is there already; none when there is no room for all of
/// it: a number that is cut would be wrong.
static bool label_row(const tide_tui_view *v, int y, const char *text, tide_tui_role role) {
    const tide_tui_rect r = v->scene->layout->labels;
    bool shares;
    const int room = label_room(v, y, &shares), w = tide_tui_text_width(v->glyphs, text);
    if (w > room) return false;
    if (shares) tide_tui_put(v->grid, r.x + room, y, ',', TIDE_TUI_ROLE_DIM);
    tide_tui_text(v, r.x + room - w, y, w, text, TIDE_TUI_CUT_END, role);
    return true;
}

/// The longest form that has room: "lower bound 3.75 MiB + 5.29 MiB", "bound 3.75M+5.29M".
static bool label_number(const tide_tui_view *v, int y, const char *name, const char *short_name, uint64_t bytes,
                         uint64_t below, tide_tui_role role) {
    char text[96], size[TIDE_TUI_WORD], more[TIDE_TUI_WORD];
    for (int form = 0; form < 3; form++) {
        const char *what = form < 2 ? name : short_name;
        if (form == 0) {
            tide_tui_bytes(bytes, size, sizeof size);
            tide_tui_bytes(below, more, sizeof more);
        } else {
            tide_tui_format_short(bytes, size, sizeof size);
            tide_tui_format_short(below, more, sizeof more);
        }
        if (below > 0) {
            snprintf(text, sizeof text, form == 2 ? "%s %s+%s" : "%s %s + %s", what, size, more);
        } else {
            snprintf(text, sizeof text, "%s %s", what, size);
        }
        if (label_row(v, y, text, role)) return true;
    }
    return false;
}

/// The name of a line: beside it with its number, in one of the next rows, or without the number.
static void label_level(const tide_tui_view *v, int y, const char *name, const char *short_name, uint64_t bytes,
                        uint64_t below, tide_tui_role role) {
    static const int8_t steps[] = {0, 1, -1, 2};
    const tide_tui_rect r = v->scene->layout->labels;
    for (int form = 0; form < 2; form++) {
        for (size_t i = 0; i < sizeof steps; i++) {
            const int row = y + steps[i];
            if (i > 0 && (row < r.y || row >= r.y + r.h - 1)) continue;
            if (form == 0 && label_number(v, row, name, short_name, bytes, below, role)) return;
            if (form == 1 && label_row(v, row, short_name, role)) return;
        }
    }
}

/// Of the curve as it is shown.
static uint64_t peak_of(const tide_tui_scene *s) {
    return s->state->folds_weights ? s->highest_bytes : s->a->peak_bytes;
}

/// The cursor has no line: without its number its name would stand at the number of another label.
static void label_cursor(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    const int y = row_of(v, r, s->cursor_bytes);
    char text[64], size[TIDE_TUI_WORD];
    if (s->cursor_bytes == peak_of(s) && label_row(v, y, "cursor", TIDE_TUI_ROLE_CURSOR)) return;
    snprintf(text, sizeof text, "cursor %s", tide_tui_bytes(s->cursor_bytes, size, sizeof size));
    if (label_row(v, y, text, TIDE_TUI_ROLE_CURSOR)) return;
    snprintf(text, sizeof text, "cursor %s", tide_tui_format_short(s->cursor_bytes, size, sizeof size));
    label_row(v, y, text, TIDE_TUI_ROLE_CURSOR);
}

/// Plan, lower bound and capacity are totals: they are not drawn beside the curve of one kind.
static void draw_levels(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    const tide_levels levels = tide_tui_scene_levels(s), *l = &levels;
    const uint64_t capacity = s->state->capacity_bytes;
    if (capacity > 0 && capacity <= s->top_bytes) {
        const int y = row_of(v, r, capacity);
        draw_level(v, r, y, v->glyphs->capacity, TIDE_TUI_ROLE_CAPACITY);
        label_level(v, y, "capacity", "cap", capacity, 0, TIDE_TUI_ROLE_CAPACITY);
    }
    if (!l->known || s->state->curve_kind >= 0) return;
    const int plan_y = row_of(v, r, l->plan), bound_y = row_of(v, r, l->bound);
    const bool both = l->plan == l->bound;
    draw_level(v, r, bound_y, v->glyphs->bound, TIDE_TUI_ROLE_BOUND);
    char full[64], brief[32];
    label_level(v, bound_y, tide_levels_bound_name(l, false, full, sizeof full),
                tide_levels_bound_name(l, true, brief, sizeof brief), l->bound - l->below, l->below,
                TIDE_TUI_ROLE_BOUND);
    if (both) return;
    if (plan_y != bound_y) draw_level(v, r, plan_y, v->glyphs->plan, TIDE_TUI_ROLE_PLAN);
    label_level(v, plan_y, tide_levels_name(l, false, full, sizeof full),
                tide_levels_name(l, true, brief, sizeof brief), l->plan - l->below, l->below, TIDE_TUI_ROLE_PLAN);
}

/// A height of the axis, where nothing else stands.
static void label_axis(const tide_tui_view *v, int y, uint64_t bytes) {
    char text[TIDE_TUI_WORD];
    bool shares;
    (void)label_room(v, y, &shares);
    if (!shares) label_row(v, y, bytes > 0 ? tide_tui_bytes(bytes, text, sizeof text) : "0", TIDE_TUI_ROLE_DIM);
}

static void draw_labels(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    char text[96];
    if (s->state->curve_kind >= 0) {
        snprintf(text, sizeof text, "%s only", tide_memory_kind_name((tide_memory_kind)s->state->curve_kind));
        label_row(v, r.y, text, TIDE_TUI_ROLE_KEY);
    } else {
        label_level(v, row_of(v, r, peak_of(s)), "peak", "peak", peak_of(s), 0, TIDE_TUI_ROLE_PEAK);
    }
    if (s->peak_reserved > 0) {
        const bool is_above = s->peak_reserved > s->top_bytes;
        label_level(v, row_of(v, r, s->peak_reserved), is_above ? "above: reserved" : "reserved",
                    is_above ? "above: res" : "res", s->peak_reserved, 0, TIDE_TUI_ROLE_RESERVED);
    }
    draw_levels(v, r);
    label_cursor(v, r);
    if (r.h < 2) return;
    label_axis(v, r.y + r.h - 1, 0);
    label_axis(v, r.y, s->top_bytes);
    if (r.h >= 8) label_axis(v, row_of(v, r, s->top_bytes / 2), s->top_bytes / 2);
}

static const char *empty_words(const tide_subject_facts *f) {
    if (!f->is_trace) return "This plan holds no tensor that lives.";
    return f->is_recording ? "No block has lived yet: recording goes on." : "No block lived in this run.";
}

void tide_tui_draw_curve(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->panes[TIDE_TUI_PANE_CURVE];
    if (r.w <= 0 || r.h <= 0) return;
    if (s->n_columns == 0 || s->top_bytes == 0 || s->min == NULL || s->max == NULL) {
        const bool says_nothing = s->error[TIDE_TUI_PANE_CURVE][0] == '\0' && s->busy[TIDE_TUI_PANE_CURVE][0] == '\0';
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_CURVE, r, says_nothing ? empty_words(s->a) : "");
        return;
    }
    const int64_t peak = s->a->peak.t;
    const int peak_x =
        s->state->curve_kind < 0 && s->a->peak_bytes > 0 ? tide_tui_column_of(s->state->window, r.w, peak) : -1;
    for (int i = 0; i < r.w; i++) {
        if (v->glyphs->braille) {
            draw_dots(v, r, i, i == peak_x);
        } else {
            draw_blocks(v, r, i, i == peak_x);
        }
    }
    tide_tui_draw_bands(v);
    if (s->reserved_max != NULL) draw_second(v, r, s->reserved_max, v->glyphs->reserved, TIDE_TUI_ROLE_RESERVED);
    if (s->predicted_max != NULL) draw_second(v, r, s->predicted_max, v->glyphs->predicted, TIDE_TUI_ROLE_PREDICTED);
    if (s->b_max != NULL) draw_second(v, r, s->b_max, v->glyphs->other, TIDE_TUI_ROLE_OTHER);
    draw_labels(v, r);
    tide_tui_draw_time_lines(v, r);
}
