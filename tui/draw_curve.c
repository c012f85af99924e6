// SPDX-License-Identifier: MIT
//
// The curve of live bytes: per column the smallest and the largest value in it, so that no spike is lost at any zoom,
// with lines for the plan and the lower bound, and the ruler under it. See draw.h.
#include <stdio.h>
#include <string.h>

#include "tui/draw.h"

/// `bytes` as eighths of a cell in a pane of `h` rows whose top is `top`; more than nothing is at least one eighth.
static int eighths(uint64_t bytes, uint64_t top, int h) {
    if (bytes == 0 || top == 0) return 0;
    const double e = (double)bytes / (double)top * 8.0 * (double)h;
    const int rounded = (int)(e + 0.5);
    return rounded < 1 ? 1 : rounded > 8 * h ? 8 * h : rounded;
}

static void draw_column(const tide_tui_view *v, int x, int min_e, int max_e, bool at_peak) {
    const tide_tui_rect r = v->layout->curve;
    for (int row = 0; row < r.h; row++) {
        const int from = 8 * row, in_min = min_e - from, in_max = max_e - from;
        if (in_max <= 0) break;
        const int y = r.y + r.h - 1 - row;
        tide_tui_role role = in_min > 0 ? TIDE_TUI_ROLE_CURVE : TIDE_TUI_ROLE_SPIKE;
        if (at_peak) role = TIDE_TUI_ROLE_PEAK;
        if (in_max < 8) {
            tide_tui_put(v->grid, x, y, v->glyphs->rise[in_max], role);
        } else {
            tide_tui_put(v->grid, x, y, in_min >= 4 ? v->glyphs->rise[8] : v->glyphs->spike, role);
        }
    }
}

static int row_of_level(const tide_tui_rect r, uint64_t bytes, uint64_t top) {
    const int e = eighths(bytes, top, r.h);
    return e > 0 ? r.y + r.h - 1 - (e - 1) / 8 : r.y + r.h - 1;
}

static void draw_level(const tide_tui_view *v, int y, uint32_t glyph, tide_tui_role role) {
    const tide_tui_rect r = v->layout->curve;
    for (int x = r.x; x < r.x + r.w; x++) {
        if (tide_tui_get(v->grid, x, y).glyph == ' ') tide_tui_put(v->grid, x, y, glyph, role);
    }
}

static void label_row(const tide_tui_view *v, int y, const char *text, tide_tui_role role) {
    const tide_tui_rect r = v->layout->curve_labels;
    const int w = (int)strlen(text), room = r.w - 1;
    if (tide_tui_get(v->grid, r.x + r.w - 2, y).glyph != ' ') return;
    tide_tui_text(v, w < room ? r.x + room - w : r.x, y, room, text, TIDE_TUI_CUT_END, role);
}

enum { N_FORMS = 3 };

/// Names of a line, longest first.
static const char *const plan_names[N_FORMS] = {"plan", "plan", "plan"};
static const char *const bound_names[N_FORMS] = {"lower bound", "lower bound", "bound"};
static const char *const both_names[N_FORMS] = {"plan = lower bound", "plan=bound", "bound"};
static const char *const peak_names[N_FORMS] = {"peak", "peak", "peak"};

/// A label for the line at `y`: the longest form that has room. On top of `below` bytes it says both parts, for the
/// line stands as high as their sum: "lower bound 3.75M + 5.29M".
static void label_level(const tide_tui_view *v, int y, const char *const names[N_FORMS], uint64_t bytes, uint64_t below,
                        tide_tui_role role) {
    const int room = v->layout->curve_labels.w - 1;
    char text[64], size[16], more[16];
    tide_tui_format_short(bytes, size, sizeof size);
    tide_tui_format_short(below, more, sizeof more);
    for (int i = 0; i < N_FORMS; i++) {
        if (below > 0) {
            snprintf(text, sizeof text, i == 0 ? "%s %s + %s" : "%s %s+%s", names[i], size, more);
        } else {
            snprintf(text, sizeof text, "%s %s", names[i], size);
        }
        if ((int)strlen(text) <= room) break;
    }
    // Never half a sum, which would be another number.
    if ((int)strlen(text) > room) snprintf(text, sizeof text, "%s", names[N_FORMS - 1]);
    label_row(v, y, text, role);
}

static void draw_levels(const tide_tui_view *v, const tide_timeline_levels *l, uint64_t top) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect r = v->layout->curve;
    const int plan_y = row_of_level(r, l->plan, top), bound_y = row_of_level(r, l->bound, top);
    const bool both = l->plan == l->bound;
    draw_level(v, bound_y, v->glyphs->bound, TIDE_TUI_ROLE_BOUND);
    label_level(v, bound_y, both ? both_names : bound_names, tl->lower_bound_bytes, l->below, TIDE_TUI_ROLE_BOUND);
    if (plan_y == bound_y) return;
    draw_level(v, plan_y, v->glyphs->plan, TIDE_TUI_ROLE_PLAN);
    label_level(v, plan_y, plan_names, tl->plan_bytes, l->below, TIDE_TUI_ROLE_PLAN);
}

void tide_tui_draw_curve(const tide_tui_view *v) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect r = v->layout->curve;
    const tide_timeline_levels levels = tide_timeline_levels_of(tl);
    uint64_t top = tl->peak_bytes;
    if (levels.plan > top) top = levels.plan;
    if (levels.bound > top) top = levels.bound;

    uint64_t min[TIDE_TUI_MAX_COLUMNS], max[TIDE_TUI_MAX_COLUMNS];
    tide_timeline_columns(tl, v->model->window.begin, v->model->window.end, (size_t)r.w, min, max);
    const int peak_x = tide_tui_column_of(v->model->window, r.w, tl->peak_t);
    for (int i = 0; i < r.w; i++)
        draw_column(v, r.x + i, eighths(min[i], top, r.h), eighths(max[i], top, r.h),
                    i == peak_x && tl->peak_bytes > 0);

    if (levels.known && top > 0) draw_levels(v, &levels, top);
    label_level(v, row_of_level(r, tl->peak_bytes, top), peak_names, tl->peak_bytes, 0, TIDE_TUI_ROLE_PEAK);
    if (r.h > 1) label_row(v, r.y + r.h - 1, "0", TIDE_TUI_ROLE_DIM);

    const int cursor_x = tide_tui_column_of(v->model->window, r.w, v->model->cursor);
    for (int y = r.y; y < r.y + r.h; y++) {
        const uint32_t glyph = tide_tui_get(v->grid, r.x + cursor_x, y).glyph;
        if (glyph == ' ') tide_tui_put(v->grid, r.x + cursor_x, y, v->glyphs->cursor, TIDE_TUI_ROLE_CURSOR);
    }
}

// ---- ruler ----

static void draw_ticks(const tide_tui_view *v) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect ruler = v->layout->ruler, labels = v->layout->ticks;
    const tide_tui_window w = v->model->window;
    const int64_t each = tide_tui_tick_time(w, ruler.w / 12 > 2 ? ruler.w / 12 : 2);
    const int64_t zero = tl->axis == TIDE_AXIS_NS ? tl->begin : 0;
    const int64_t past = (int64_t)(((uint64_t)w.begin - (uint64_t)zero) % (uint64_t)each);
    int64_t t = past == 0 ? w.begin : tide_tui_move_time(w.begin, each - past, w.begin, INT64_MAX);
    int free_from = labels.x;
    while (t < w.end) {
        const int x = ruler.x + tide_tui_column_of(w, ruler.w, t);
        tide_tui_put(v->grid, x, ruler.y, v->glyphs->tick, TIDE_TUI_ROLE_DIM);
        char text[32];
        const int len = (int)strlen(tide_tui_format_time(tl, t, text, sizeof text));
        if (labels.h > 0 && x >= free_from && x + len <= labels.x + labels.w) {
            free_from = x + tide_tui_text(v, x, labels.y, len, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL) + 1;
        }
        if (t > INT64_MAX - each) break;
        t += each;
    }
}

void tide_tui_draw_ruler(const tide_tui_view *v) {
    const tide_timeline *tl = v->model->tl;
    const tide_tui_rect r = v->layout->ruler;
    const tide_tui_window w = v->model->window;
    tide_tui_fill_row(v->grid, r.x, r.y, r.w, v->glyphs->rule, TIDE_TUI_ROLE_DIM);
    draw_ticks(v);
    const int cursor_x = tide_tui_column_of(w, r.w, v->model->cursor), peak_x = tide_tui_column_of(w, r.w, tl->peak_t);
    if (cursor_x >= 0 && cursor_x < r.w)
        tide_tui_put(v->grid, r.x + cursor_x, r.y, v->glyphs->crossing, TIDE_TUI_ROLE_CURSOR);
    if (peak_x >= 0 && peak_x < r.w) tide_tui_put(v->grid, r.x + peak_x, r.y, v->glyphs->peak, TIDE_TUI_ROLE_PEAK);
}
