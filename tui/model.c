// SPDX-License-Identifier: MIT
//
// State of the view and what keys do to it. See model.h.
#include "tui/model.h"

#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/help.h"

const char *tide_tui_sort_name(tide_tui_sort sort) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_TUI_SORT_MAP(XX)
#undef XX
    };
    return sort < TIDE_TUI_N_SORTS ? names[sort] : "?";
}

// ---- order of rows ----

static uint64_t life_of(const tide_timeline_item *item) {
    return item->end > item->begin ? (uint64_t)item->end - (uint64_t)item->begin : 0;
}

static bool goes_before(const tide_tui_model *m, size_t a, size_t b) {
    const tide_timeline_item *x = &m->tl->items[a], *y = &m->tl->items[b];
    const bool x_persists = tide_timeline_persists(x);
    int by_name;
    if (m->hides_persistent && x_persists != tide_timeline_persists(y)) return !x_persists;
    switch (m->sort) {
    case TIDE_TUI_SORT_SIZE:
        if (x->size_bytes != y->size_bytes) return x->size_bytes > y->size_bytes;
        break;
    case TIDE_TUI_SORT_NAME:
        by_name = strcmp(x->name, y->name);
        if (by_name != 0) return by_name < 0;
        break;
    case TIDE_TUI_SORT_LIFE:
        if (life_of(x) != life_of(y)) return life_of(x) > life_of(y);
        break;
    default:
        if (x_persists != tide_timeline_persists(y)) return !x_persists;
        break;
    }
    return a < b; // the timeline's own order: by begin
}

/// Heap sort: in place, no memory, no worst case; goes_before() is total, so the result is unique.
static void sift_down(tide_tui_model *m, size_t at, size_t n) {
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && goes_before(m, m->order[child], m->order[child + 1])) child++;
        if (!goes_before(m, m->order[at], m->order[child])) return;
        const size_t item = m->order[at];
        m->order[at] = m->order[child];
        m->order[child] = item;
    }
}

static void sort_rows(tide_tui_model *m) {
    const size_t n = m->tl->n_items;
    for (size_t i = n / 2; i > 0; i--) sift_down(m, i - 1, n);
    for (size_t i = n; i > 1; i--) {
        const size_t item = m->order[0];
        m->order[0] = m->order[i - 1];
        m->order[i - 1] = item;
        sift_down(m, 0, i - 1);
    }
}

tide_status tide_tui_model_init(tide_tui_model *m, const tide_timeline *tl, tide_error *err) {
    *m = (tide_tui_model){.tl = tl, .window = tide_tui_whole(tl)};
    m->cursor = tide_tui_move_time(tl->peak_t, 0, m->window.begin, m->window.end - 1);
    if (tl->n_items == 0) return TIDE_OK;
    m->order = tide_host_calloc(tl->n_items, sizeof *m->order);
    if (m->order == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu rows", tl->n_items);
    for (size_t i = 0; i < tl->n_items; i++) {
        m->order[i] = i;
        m->n_persistent += tide_timeline_persists(&tl->items[i]);
    }
    m->n_rows = tl->n_items;
    sort_rows(m);
    return TIDE_OK;
}

void tide_tui_model_deinit(tide_tui_model *m) {
    tide_host_free(m->order);
    *m = (tide_tui_model){0};
}

const tide_timeline_item *tide_tui_selected(const tide_tui_model *m) {
    return m->row < m->n_rows ? &m->tl->items[m->order[m->row]] : NULL;
}

size_t tide_tui_n_hidden(const tide_tui_model *m) { return m->tl->n_items - m->n_rows; }

// ---- the window of time ----

/// A window of `span` that keeps inside the whole axis and begins as near to `begin` as that allows.
static tide_tui_window place_window(const tide_tui_model *m, int64_t begin, uint64_t span) {
    const tide_tui_window whole = tide_tui_whole(m->tl);
    if (span >= tide_tui_window_span(whole)) return whole;
    if (span < 1) span = 1;
    const int64_t last = (int64_t)((uint64_t)whole.end - span);
    begin = begin < whole.begin ? whole.begin : begin > last ? last : begin;
    return (tide_tui_window){begin, (int64_t)((uint64_t)begin + span)};
}

static void hold_cursor(tide_tui_model *m) {
    m->cursor = tide_tui_move_time(m->cursor, 0, m->window.begin, m->window.end - 1);
}

/// The cursor keeps its place on the screen: what lies left of it shrinks or grows like the whole.
static void zoom(tide_tui_model *m, bool in) {
    const uint64_t span = tide_tui_window_span(m->window), left = (uint64_t)m->cursor - (uint64_t)m->window.begin;
    const uint64_t new_span = in ? (span + 1) / 2 : span > UINT64_MAX / 2 ? span : span * 2;
    const uint64_t new_left = in ? left / 2 : left > INT64_MAX / 2 ? INT64_MAX : left * 2;
    const tide_tui_window whole = tide_tui_whole(m->tl);
    m->window = place_window(m, tide_tui_move_time(m->cursor, -(int64_t)new_left, whole.begin, whole.end), new_span);
    hold_cursor(m);
}

static void pan(tide_tui_model *m, int sign) {
    const uint64_t span = tide_tui_window_span(m->window), half = span > 1 ? span / 2 : 1;
    const int64_t by = half > INT64_MAX ? INT64_MAX : (int64_t)half;
    const tide_tui_window whole = tide_tui_whole(m->tl);
    const int64_t begin = m->window.begin;
    m->window = place_window(m, tide_tui_move_time(begin, sign * by, whole.begin, whole.end), span);
    m->cursor = tide_tui_move_time(m->cursor, m->window.begin - begin, m->window.begin, m->window.end - 1);
}

static void move_cursor(tide_tui_model *m, const tide_tui_layout *layout, int sign) {
    const tide_tui_window whole = tide_tui_whole(m->tl);
    const int64_t by = tide_tui_column_time(m->window, layout->bars.w);
    m->cursor = tide_tui_move_time(m->cursor, sign * by, whole.begin, whole.end - 1);
    if (m->cursor >= m->window.begin && m->cursor < m->window.end) return;
    const uint64_t span = tide_tui_window_span(m->window);
    const int64_t begin = sign < 0 ? m->cursor : (int64_t)((uint64_t)m->cursor + 1 - span);
    m->window = place_window(m, begin, span);
}

/// The lifetime and an eighth of it on either side.
static void fit(tide_tui_model *m) {
    const tide_timeline_item *item = tide_tui_selected(m);
    if (item == NULL) return;
    const tide_tui_window whole = tide_tui_whole(m->tl);
    const uint64_t life = life_of(item) > 0 ? life_of(item) : 1, margin = life / 8 > 0 ? life / 8 : 1;
    const int64_t by = margin > INT64_MAX ? INT64_MAX : (int64_t)margin;
    const int64_t begin = tide_tui_move_time(item->begin, -by, whole.begin, whole.end - 1);
    const int64_t end = tide_tui_move_time(item->end, by, begin + 1, whole.end);
    m->window = place_window(m, begin, (uint64_t)end - (uint64_t)begin);
    if (!tide_timeline_alive_at(item, m->cursor)) m->cursor = item->begin;
    hold_cursor(m);
}

static void go_to_peak(tide_tui_model *m) {
    const tide_tui_window whole = tide_tui_whole(m->tl);
    m->cursor = tide_tui_move_time(m->tl->peak_t, 0, whole.begin, whole.end - 1);
    if (m->cursor >= m->window.begin && m->cursor < m->window.end) return;
    const uint64_t span = tide_tui_window_span(m->window);
    const int64_t half = (int64_t)(span / 2);
    m->window = place_window(m, tide_tui_move_time(m->cursor, -half, whole.begin, whole.end), span);
}

// ---- rows ----

static void move_row(tide_tui_model *m, int64_t by) {
    const size_t n = m->n_rows;
    if (n == 0) return;
    m->row = (size_t)tide_tui_move_time((int64_t)m->row, by, 0, (int64_t)n - 1);
}

/// Sort anew; the same item stays selected while it is shown.
static void sort_and_follow(tide_tui_model *m) {
    if (m->tl->n_items == 0) return;
    const size_t item = m->order[m->row];
    sort_rows(m);
    for (m->row = 0; m->order[m->row] != item;) m->row++;
}

static void next_sort(tide_tui_model *m) {
    m->sort = (tide_tui_sort)((m->sort + 1) % TIDE_TUI_N_SORTS);
    sort_and_follow(m);
}

/// Where the selected row goes away, the next one that stays is selected, or the last.
static void toggle_persistent(tide_tui_model *m) {
    size_t n_before = 0;
    for (size_t i = 0; i < m->row; i++) n_before += !tide_timeline_persists(&m->tl->items[m->order[i]]);
    m->hides_persistent = !m->hides_persistent;
    m->n_rows = m->tl->n_items - (m->hides_persistent ? m->n_persistent : 0);
    sort_and_follow(m);
    if (m->row >= m->n_rows) m->row = n_before < m->n_rows ? n_before : m->n_rows > 0 ? m->n_rows - 1 : 0;
}

void tide_tui_settle(tide_tui_model *m, const tide_tui_layout *layout) {
    const size_t n = m->n_rows, rows = layout->bars.h > 0 ? (size_t)layout->bars.h : 1;
    if (m->row >= n) m->row = n > 0 ? n - 1 : 0;
    if (m->row < m->top) m->top = m->row;
    if (m->row >= m->top + rows) m->top = m->row + 1 - rows;
    if (n <= rows) {
        m->top = 0;
    } else if (m->top > n - rows) {
        m->top = n - rows;
    }
    const int last = tide_tui_help_lines() - layout->help.h;
    if (m->help_top > last) m->help_top = last;
    if (m->help_top < 0) m->help_top = 0;
}

// ---- keys ----

static unsigned press_in_help(tide_tui_model *m, const tide_tui_layout *layout, tide_tui_action action) {
    const int page = layout->help.h > 1 ? layout->help.h - 1 : 1;
    switch (action) {
    case TIDE_TUI_HELP:
    case TIDE_TUI_BACK:
    case TIDE_TUI_QUIT:
        m->help = false;
        m->help_top = 0;
        break;
    case TIDE_TUI_ROW_UP:
        m->help_top--;
        break;
    case TIDE_TUI_ROW_DOWN:
        m->help_top++;
        break;
    case TIDE_TUI_PAGE_BACK:
        m->help_top -= page;
        break;
    case TIDE_TUI_PAGE_ON:
        m->help_top += page;
        break;
    case TIDE_TUI_FIRST:
        m->help_top = 0;
        break;
    case TIDE_TUI_LAST:
        m->help_top = tide_tui_help_lines();
        break;
    case TIDE_TUI_REDRAW:
        return TIDE_TUI_HANDLED | TIDE_TUI_REDRAWN | TIDE_TUI_REPAINT;
    default:
        return 0;
    }
    return TIDE_TUI_HANDLED | TIDE_TUI_REDRAWN;
}

static unsigned press_in_view(tide_tui_model *m, const tide_tui_layout *layout, tide_tui_action action) {
    const int64_t page = layout->bars.h > 1 ? layout->bars.h - 1 : 1;
    switch (action) {
    case TIDE_TUI_ROW_UP:
        move_row(m, -1);
        break;
    case TIDE_TUI_ROW_DOWN:
        move_row(m, 1);
        break;
    case TIDE_TUI_PAGE_BACK:
        move_row(m, -page);
        break;
    case TIDE_TUI_PAGE_ON:
        move_row(m, page);
        break;
    case TIDE_TUI_FIRST:
        move_row(m, INT64_MIN);
        break;
    case TIDE_TUI_LAST:
        move_row(m, INT64_MAX);
        break;
    case TIDE_TUI_TIME_LEFT:
        move_cursor(m, layout, -1);
        break;
    case TIDE_TUI_TIME_RIGHT:
        move_cursor(m, layout, 1);
        break;
    case TIDE_TUI_ZOOM_IN:
        zoom(m, true);
        break;
    case TIDE_TUI_ZOOM_OUT:
        zoom(m, false);
        break;
    case TIDE_TUI_PAN_LEFT:
        pan(m, -1);
        break;
    case TIDE_TUI_PAN_RIGHT:
        pan(m, 1);
        break;
    case TIDE_TUI_WHOLE:
        m->window = tide_tui_whole(m->tl);
        break;
    case TIDE_TUI_FIT:
        fit(m);
        break;
    case TIDE_TUI_PEAK:
        go_to_peak(m);
        break;
    case TIDE_TUI_SORT:
        next_sort(m);
        break;
    case TIDE_TUI_PERSISTENT:
        toggle_persistent(m);
        break;
    case TIDE_TUI_HELP:
        m->help = true;
        break;
    case TIDE_TUI_REDRAW:
        return TIDE_TUI_HANDLED | TIDE_TUI_REDRAWN | TIDE_TUI_REPAINT;
    case TIDE_TUI_QUIT:
        return TIDE_TUI_HANDLED | TIDE_TUI_LEAVE;
    default:
        return 0;
    }
    return TIDE_TUI_HANDLED | TIDE_TUI_REDRAWN;
}

unsigned tide_tui_press(tide_tui_model *m, const tide_tui_layout *layout, uint32_t key) {
    const tide_tui_action action = tide_tui_action_of(key);
    const unsigned flags = m->help ? press_in_help(m, layout, action) : press_in_view(m, layout, action);
    tide_tui_settle(m, layout);
    return flags;
}
