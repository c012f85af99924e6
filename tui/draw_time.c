// SPDX-License-Identifier: MIT
//
// Cursor, range and heights. See draw_time.h.
#include "tui/draw_time.h"

#include <stdio.h>

#include "tui/draw_words.h"

int tide_tui_time_column(const tide_tui_view *v, tide_tui_rect r, int64_t t) {
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
    const int x = tide_tui_time_column(v, r, v->scene->state->cursor);
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
    char when[32], size[TIDE_TUI_WORD];
    const char *step = s->cursor_step < s->a->n_steps ? s->a->step_names[s->cursor_step] : NULL;
    snprintf(buf, buf_bytes, "%s%s%s%.48s%s: %s live", s->a->axis == TIDE_AXIS_STEPS ? "step " : "at ",
             tide_tui_format_time(s->a, s->state->cursor, when, sizeof when), step != NULL ? " (" : "",
             step != NULL ? step : "", step != NULL ? ")" : "", tide_tui_bytes(s->cursor_bytes, size, sizeof size));
}
