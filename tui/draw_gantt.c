// SPDX-License-Identifier: MIT
//
// The rows: a name, the bar of a lifetime, a size; and the line above them that says how they are sorted and what is
// under the time cursor. See draw.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw.h"

static void draw_header(const tide_tui_view *v) {
    const tide_tui_model *m = v->model;
    const tide_timeline *tl = m->tl;
    const tide_tui_rect r = v->layout->header;
    if (r.h == 0) return;
    char text[128], when[32], size[24];
    const tide_tui_rect names = v->layout->names, bars = v->layout->bars, sizes = v->layout->sizes;
    snprintf(text, sizeof text, "%zu/%zu by %s", m->n_rows > 0 ? m->row + 1 : 0, m->n_rows,
             tide_tui_sort_name(m->sort));
    tide_tui_text(v, names.x + 1, r.y, names.w - 2, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);

    snprintf(text, sizeof text, "%s%s: %s live", tl->axis == TIDE_AXIS_STEPS ? "step " : "at ",
             tide_tui_format_time(tl, m->cursor, when, sizeof when),
             tide_format_bytes(tide_timeline_at(tl, m->cursor), size, sizeof size));
    const int used = tide_tui_text(v, bars.x, r.y, bars.w - 1, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_CURSOR);
    const size_t step_i = tide_tui_step_at(tl, m->cursor);
    if (step_i != SIZE_MAX && tl->step_names[step_i] != NULL && bars.w - used > 8) {
        tide_tui_put(v->grid, bars.x + used, r.y, ',', TIDE_TUI_ROLE_DIM);
        tide_tui_text(v, bars.x + used + 2, r.y, bars.w - used - 3, tl->step_names[step_i], TIDE_TUI_CUT_MIDDLE,
                      TIDE_TUI_ROLE_TEXT);
    }
    tide_tui_text(v, sizes.x + sizes.w - 4, r.y, 4, "size", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_LABEL);
}

static void draw_bar(const tide_tui_view *v, int y, const tide_timeline_item *item) {
    const tide_tui_rect r = v->layout->bars;
    const tide_timeline_fill fill = tide_timeline_fill_of(item);
    int from, to;
    const int side = tide_tui_columns_of(v->model->window, r.w, item->begin, item->end, &from, &to);
    if (side == 0) {
        tide_tui_fill_row(v->grid, r.x + from, y, to - from, v->glyphs->bar[fill],
                          (tide_tui_role)(TIDE_TUI_ROLE_BAR + fill));
        return;
    }
    const int x = side < 0 ? r.x : r.x + r.w - 1;
    tide_tui_put(v->grid, x, y, side < 0 ? v->glyphs->before : v->glyphs->after, TIDE_TUI_ROLE_DIM);
}

static void draw_size(const tide_tui_view *v, int y, uint64_t bytes) {
    const tide_tui_rect r = v->layout->sizes;
    char text[24];
    if (r.w < 12) {
        tide_tui_format_short(bytes, text, sizeof text);
    } else {
        tide_format_bytes(bytes, text, sizeof text);
    }
    const int w = (int)strlen(text);
    tide_tui_text(v, r.x + r.w - w, y, w, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
}

static void draw_row(const tide_tui_view *v, int y, size_t row) {
    const tide_tui_model *m = v->model;
    const tide_timeline_item *item = &m->tl->items[m->order[row]];
    const tide_tui_rect names = v->layout->names, bars = v->layout->bars;
    const bool selected = row == m->row;
    if (selected) tide_tui_put(v->grid, names.x, y, '>', TIDE_TUI_ROLE_KEY);
    const char *name = item->name[0] != '\0' ? item->name : "(unnamed)";
    tide_tui_text(v, names.x + 1, y, names.w - 2, name, TIDE_TUI_CUT_MIDDLE,
                  item->name[0] != '\0' ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_DIM);
    draw_bar(v, y, item);
    const int cursor_x = bars.x + tide_tui_column_of(m->window, bars.w, m->cursor);
    if (tide_tui_get(v->grid, cursor_x, y).glyph == ' ')
        tide_tui_put(v->grid, cursor_x, y, v->glyphs->cursor, TIDE_TUI_ROLE_CURSOR);
    draw_size(v, y, item->size_bytes);
    if (selected) {
        tide_tui_mark_row(v->grid, names.x, y, names.w - 1, TIDE_TUI_MARK_SELECTED);
        tide_tui_mark_row(v->grid, v->layout->sizes.x, y, v->layout->sizes.w, TIDE_TUI_MARK_SELECTED);
    }
}

void tide_tui_draw_gantt(const tide_tui_view *v) {
    draw_header(v);
    const tide_tui_rect r = v->layout->bars;
    for (int i = 0; i < r.h; i++) {
        const size_t row = v->model->top + (size_t)i;
        if (row >= v->model->n_rows) break;
        draw_row(v, r.y + i, row);
    }
    if (v->model->n_rows == 0) {
        const int x = v->layout->names.x + 1;
        tide_tui_text(v, x, r.y, v->layout->names.w + r.w - 1, "All rows are hidden: w shows them.", TIDE_TUI_CUT_END,
                      TIDE_TUI_ROLE_DIM);
    }
}
