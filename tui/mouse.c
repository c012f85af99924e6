// SPDX-License-Identifier: MIT
//
// What the mouse does. See tide_tui_point in actions.h.
//
//     over            press              drag     wheel              shift + wheel, sideways
//     curve, ruler    cursor             range    zoom at pointer    pan
//     minimap         window there       window   zoom               pan
//     map             cursors, item      range    zoom at pointer    pan
//     gantt bars      row, cursor        range    rows; ctrl: zoom   pan
//     lists           row                         rows
//     help            -                           lines
#include <stdlib.h>

#include "tui/actions_internal.h"
#include "tui/draw/panes.h"

enum { WHEEL_ROWS = 3, WHEEL_PAN = 8 }; // an eighth of the window

/// The column of a cell that lies over a time axis; -1: it does not.
static int time_column(const tide_tui_scene *s, int x, int y) {
    const tide_tui_layout *l = s->layout;
    const tide_tui_rect curve = l->panes[TIDE_TUI_PANE_CURVE];
    const bool over = tide_tui_rect_has(curve, x, y) || tide_tui_rect_has(l->ruler, x, y) ||
                      tide_tui_rect_has(l->bars, x, y) || (!s->map_is_moment && tide_tui_rect_has(l->map, x, y));
    return over ? x - curve.x : -1;
}

static void set_cursor_at(tide__turn *t, int column) {
    const int n = tide__columns(t);
    tide__set_cursor(t, tide__time_of_column(t->st->window, n, column < 0 ? 0 : column >= n ? n - 1 : column));
}

/// The window around the place of the whole axis that is pointed at.
static void show_in_minimap(tide__turn *t, int x) {
    const tide_tui_rect r = t->scene->layout->minimap;
    const tide_tui_window whole = tide_tui_whole(tide_subject_get_facts(t->st->a));
    const int64_t at = tide__time_of_column(whole, r.w, x - r.x < 0 ? 0 : x - r.x >= r.w ? r.w - 1 : x - r.x);
    const uint64_t span = tide_tui_window_span(t->st->window), half = span / 2;
    const int64_t begin =
        tide_tui_move_time(at, -(int64_t)(half > INT64_MAX ? INT64_MAX : half), whole.begin, whole.end);
    const bool is_left = begin < t->st->window.begin;
    tide__pan(t, is_left ? -1 : 1,
              is_left ? (uint64_t)t->st->window.begin - (uint64_t)begin
                      : (uint64_t)begin - (uint64_t)t->st->window.begin);
    tide__set_cursor(t, tide_tui_move_time(at, 0, t->st->window.begin, t->st->window.end - 1));
}

static void press_in_gantt(tide__turn *t, int y) {
    const tide_tui_rect bars = t->scene->layout->bars;
    const tide_rows *rows = t->scene->rows;
    if (rows == NULL || y < bars.y || y >= bars.y + bars.h) return;
    const size_t row = t->st->top + (size_t)(y - bars.y);
    if (row < rows->n) tide__select_row(t, row);
}

static void press_in_map(tide__turn *t, int y) {
    const tide_tui_rect map = t->scene->layout->map;
    tide_tui_window view, whole;
    if (map.h <= 0 || y < map.y || y >= map.y + map.h || !tide__space_window(t, &view, &whole)) return;
    tide__set_space_cursor(t, tide__time_of_column(view, 2 * map.h, 2 * (map.y + map.h - 1 - y)));
}

static bool is_double(const tide__turn *t, const tide_tui_mouse *m) {
    const tide_tui_state *st = t->st;
    if (m->x != st->click_x || m->y != st->click_y) return false;
    return m->t_ms < st->click_ms + TIDE_TUI_DOUBLE_CLICK_MS;
}

static void press(tide__turn *t, const tide_tui_mouse *m) {
    tide_tui_state *st = t->st;
    const tide_tui_layout *l = t->scene->layout;
    const tide_tui_pane pane = tide_tui_layout_pane_at(l, m->x, m->y);
    const bool twice = is_double(t, m);
    st->drags = false;
    st->click_x = twice ? -1 : m->x;
    st->click_y = twice ? -1 : m->y;
    st->click_ms = m->t_ms;
    if (pane == TIDE_TUI_N_PANES) return;
    st->focus = pane;
    if (tide_tui_rect_has(l->minimap, m->x, m->y)) {
        show_in_minimap(t, m->x);
        return;
    }
    const int column = time_column(t->scene, m->x, m->y);
    if (column >= 0) {
        set_cursor_at(t, column);
        st->drags = true;
        st->drag_x = column;
        if (!twice && st->shows_range && pane == TIDE_TUI_PANE_CURVE) st->shows_range = st->range_follows = false;
    }
    if (pane == TIDE_TUI_PANE_GANTT) {
        press_in_gantt(t, m->y);
    } else if (pane == TIDE_TUI_PANE_MAP) {
        press_in_map(t, m->y);
    } else if (pane != TIDE_TUI_PANE_CURVE) {
        const size_t row = tide_tui_pane_row_at(t->scene, pane, m->y);
        if (row != SIZE_MAX) tide__select_in_pane(t, pane, row);
    }
    if (twice || m->button == 1) tide__fit(t);
}

static void drag(tide__turn *t, const tide_tui_mouse *m) {
    tide_tui_state *st = t->st;
    const tide_tui_layout *l = t->scene->layout;
    if (!st->drags) {
        if (tide_tui_rect_has(l->minimap, m->x, m->y)) show_in_minimap(t, m->x);
        return;
    }
    const int n = tide__columns(t), x = m->x - l->panes[TIDE_TUI_PANE_CURVE].x;
    const int to = x < 0 ? 0 : x >= n ? n - 1 : x;
    if (to == st->drag_x && !st->shows_range) return; // a click with a trembling hand
    st->click_x = st->click_y = -1;                   // what follows is no second click
    const int first = to < st->drag_x ? to : st->drag_x, last = to < st->drag_x ? st->drag_x : to;
    tide__set_range(t, tide__time_of_column(st->window, n, first), tide__time_of_column(st->window, n, last + 1));
    set_cursor_at(t, to);
}

static void scroll_list(tide__turn *t, tide_tui_pane pane, int by) {
    tide_tui_state *st = t->st;
    if (pane == TIDE_TUI_PANE_GANTT) {
        const size_t h = (size_t)(t->scene->layout->bars.h > 0 ? t->scene->layout->bars.h : 1);
        const size_t n = t->scene->rows != NULL ? t->scene->rows->n : 0;
        st->top = (size_t)tide_tui_move_time((int64_t)st->top, by, 0, n > h ? (int64_t)(n - h) : 0);
        return;
    }
    const size_t n = pane < TIDE_TUI_N_PANES ? tide_tui_pane_rows(t->scene, pane) : 0;
    if (n == 0) return;
    const size_t row = tide_tui_pane_row(t->scene, pane);
    st->pane_row[pane] = (size_t)tide_tui_move_time((int64_t)row, by, 0, (int64_t)n - 1);
}

static void wheel(tide__turn *t, const tide_tui_mouse *m) {
    const tide_tui_layout *l = t->scene->layout;
    const tide_tui_pane pane = tide_tui_layout_pane_at(l, m->x, m->y);
    const bool back = m->kind == TIDE_TUI_MOUSE_WHEEL_UP || m->kind == TIDE_TUI_MOUSE_WHEEL_LEFT;
    const bool sideways = m->kind == TIDE_TUI_MOUSE_WHEEL_LEFT || m->kind == TIDE_TUI_MOUSE_WHEEL_RIGHT || m->shift;
    const bool in_gantt = pane == TIDE_TUI_PANE_GANTT, in_minimap = tide_tui_rect_has(l->minimap, m->x, m->y);
    const int column = time_column(t->scene, m->x, m->y);
    if ((column >= 0 || in_minimap) && sideways) {
        const uint64_t by = tide_tui_window_span(t->st->window) / WHEEL_PAN;
        tide__pan(t, back ? -1 : 1, by > 0 ? by : 1);
    } else if (in_minimap) {
        tide__zoom(t, back, t->st->cursor);
    } else if (column >= 0 && (!in_gantt || m->ctrl)) {
        tide__zoom(t, back, tide__time_of_column(t->st->window, tide__columns(t), column));
    } else if (!sideways) {
        scroll_list(t, pane, back ? -WHEEL_ROWS : WHEEL_ROWS);
    }
}

/// Over an overlay the wheel scrolls, and nothing else means anything.
static void point_at_overlay(tide__turn *t, const tide_tui_mouse *m) {
    if (m->kind != TIDE_TUI_MOUSE_WHEEL_UP && m->kind != TIDE_TUI_MOUSE_WHEEL_DOWN) return;
    for (int i = 0; i < WHEEL_ROWS; i++) {
        (void)tide__do_in_overlay(t, m->kind == TIDE_TUI_MOUSE_WHEEL_UP ? TIDE_TUI_ROW_UP : TIDE_TUI_ROW_DOWN);
    }
}

tide_tui_result tide_tui_point(tide_tui_state *st, const tide_tui_scene *scene, const tide_tui_mouse *mouse) {
    const bool is_usable = scene != NULL && scene->layout != NULL && !scene->layout->too_small;
    if (!is_usable || st->prompt != TIDE_TUI_PROMPT_NONE) return (tide_tui_result){0};
    tide__turn t = tide__turn_begin(st, scene);
    if (st->overlay != TIDE_TUI_OVERLAY_NONE) {
        point_at_overlay(&t, mouse);
    } else if (mouse->kind == TIDE_TUI_MOUSE_PRESS && mouse->button < 2) {
        press(&t, mouse);
    } else if (mouse->kind == TIDE_TUI_MOUSE_DRAG) {
        drag(&t, mouse);
    } else if (mouse->kind == TIDE_TUI_MOUSE_RELEASE) {
        st->drags = false;
    } else if (mouse->kind >= TIDE_TUI_MOUSE_WHEEL_UP) {
        wheel(&t, mouse);
    }
    return tide__turn_end(&t);
}
