// SPDX-License-Identifier: MIT
//
// The cursor and the window of addresses, in the map. See actions_internal.h.
//
// Places are half the height of a cell: two to a line, the lowest at the bottom.
#include "tui/actions_internal.h"

bool tide__space_window(const tide__turn *t, tide_tui_window *view, tide_tui_window *whole) {
    const tide_space *space = t->scene != NULL ? t->scene->space : NULL;
    if (space == NULL || space->bytes == 0) return false;
    *whole = (tide_tui_window){0, space->bytes > INT64_MAX ? INT64_MAX : (int64_t)space->bytes};
    *view = (tide_tui_window){t->st->space_lo, t->st->space_hi};
    if (view->begin >= view->end || view->begin < 0 || view->end > whole->end) *view = *whole;
    return true;
}

static int places(const tide__turn *t) {
    const int h = t->scene->layout != NULL ? t->scene->layout->map.h : 0;
    return h > 0 ? 2 * h : 1;
}

static void set_view(tide__turn *t, int64_t lo, uint64_t span, tide_tui_window whole) {
    if (span >= tide_tui_window_span(whole)) {
        t->st->space_lo = t->st->space_hi = 0;
        return;
    }
    const int64_t last = whole.end - (int64_t)span;
    lo = lo < 0 ? 0 : lo > last ? last : lo;
    t->st->space_lo = lo;
    t->st->space_hi = lo + (int64_t)span;
}

/// What the picture has at both cursors becomes the selection. Only where the picture is that of this window.
static void select_at_cursors(tide__turn *t) {
    const tide_tui_scene *scene = t->scene;
    tide_tui_window view, whole;
    if (scene->cells == NULL || scene->layout == NULL || !tide__space_window(t, &view, &whole)) return;
    const int w = scene->cells_w, h = places(t);
    const int x = scene->map_is_moment ? 0 : tide_tui_column_of(t->st->window, w, t->st->cursor);
    const int y = tide_tui_column_of(view, h, t->st->space_cursor);
    if (x < 0 || x >= w || y < 0 || y >= h) return;
    const uint32_t item = scene->cells[(size_t)y * (size_t)w + (size_t)x].item;
    if (item < TIDE_SPACE_HOLE) tide__select_item(t, item);
}

void tide__set_space_cursor(tide__turn *t, int64_t at) {
    tide_tui_window view, whole;
    if (!tide__space_window(t, &view, &whole)) return;
    at = tide_tui_move_time(at, 0, 0, whole.end - 1);
    t->st->space_cursor = at;
    if (at >= view.begin && at < view.end) {
        select_at_cursors(t);
        return;
    }
    const uint64_t span = tide_tui_window_span(view);
    const int64_t lo = at < view.begin ? at : at + 1 - (int64_t)span;
    set_view(t, lo, span, whole);
}

void tide__move_space(tide__turn *t, int64_t by_places) {
    tide_tui_window view, whole;
    if (!tide__space_window(t, &view, &whole)) {
        tide_tui_say(t->st, false, "there are no addresses to move in");
        return;
    }
    const int n = places(t);
    const int64_t each = tide_tui_column_time(view, n);
    int64_t from = t->st->space_cursor;
    if (from < 0) { // it comes in from the side that it would have left
        from = by_places > 0 ? view.begin : view.end - 1;
        if (by_places == 1 || by_places == -1) {
            tide__set_space_cursor(t, from);
            return;
        }
    }
    const int y = tide_tui_column_of(view, n, from);
    const bool inside = y >= 0 && y < n && by_places >= -y && by_places < n - y && each > 1;
    const int64_t far = by_places > INT64_MAX / each || by_places < -INT64_MAX / each
                            ? (by_places > 0 ? INT64_MAX : -INT64_MAX)
                            : by_places * each;
    tide__set_space_cursor(t, inside ? tide__time_of_column(view, n, y + (int)by_places)
                                     : tide_tui_move_time(from, far, 0, whole.end - 1));
}

void tide__zoom_space(tide__turn *t, bool in) {
    tide_tui_window view, whole;
    if (!tide__space_window(t, &view, &whole)) {
        tide_tui_say(t->st, false, "there are no addresses to zoom: the view 'memory' (key 2) shows them");
        return;
    }
    const uint64_t span = tide_tui_window_span(view);
    const uint64_t new_span = in ? (span + 1) / 2 : span > INT64_MAX / 2 ? INT64_MAX : span * 2;
    const int64_t cursor = t->st->space_cursor;
    const int64_t at = cursor >= view.begin && cursor < view.end ? cursor : view.begin + (int64_t)(span / 2);
    const uint64_t below = (uint64_t)(at - view.begin), new_below = in ? below / 2 : below * 2;
    set_view(t, tide_tui_move_time(at, -(int64_t)new_below, 0, whole.end), new_span, whole);
}

bool tide__space_of_address(const tide__turn *t, uint64_t address, int64_t *at) {
    const tide_space *space = t->scene->space;
    for (size_t i = 0; i < space->n; i++) {
        const tide_region *r = &space->regions[i];
        if (address < r->base || address - r->base >= r->bytes) continue;
        *at = (int64_t)(r->at + (address - r->base));
        return true;
    }
    return false;
}
