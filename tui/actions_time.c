// SPDX-License-Identifier: MIT
//
// The cursor and the window of time. See actions_internal.h.
#include "tui/actions_internal.h"

int tide__columns(const tide__turn *t) {
    const int n = t->scene != NULL && t->scene->layout != NULL ? t->scene->layout->panes[TIDE_TUI_PANE_CURVE].w : 0;
    return n > 0 ? n : 1;
}

/// floor(x * span / n) without overflow, for x in [0, n].
static uint64_t start_of_column(uint64_t span, int n, int x) {
    const uint64_t each = span / (uint64_t)n, left = span % (uint64_t)n;
    return each * (uint64_t)x + left * (uint64_t)x / (uint64_t)n;
}

int64_t tide__time_of_column(tide_tui_window w, int n, int x) {
    x = x < 0 ? 0 : x > n ? n : x;
    return (int64_t)((uint64_t)w.begin + start_of_column(tide_tui_window_span(w), n, x));
}

static tide_tui_window whole_of(const tide__turn *t) { return tide_tui_whole(tide_subject_get_facts(t->st->a)); }

/// A window of `span` within the whole axis that begins as near to `begin` as that allows.
static void place_window(tide__turn *t, int64_t begin, uint64_t span) {
    const tide_tui_window whole = whole_of(t);
    if (span < 1) span = 1;
    if (span >= tide_tui_window_span(whole)) {
        t->st->window = whole;
        return;
    }
    const int64_t last = (int64_t)((uint64_t)whole.end - span);
    begin = begin < whole.begin ? whole.begin : begin > last ? last : begin;
    t->st->window = (tide_tui_window){begin, (int64_t)((uint64_t)begin + span)};
}

static int64_t signed_of(uint64_t by) { return by > INT64_MAX ? INT64_MAX : (int64_t)by; }

void tide__set_cursor(tide__turn *t, int64_t at) {
    const tide_tui_window whole = whole_of(t);
    t->st->cursor = tide_tui_move_time(at, 0, whole.begin, whole.end - 1);
    t->st->cursor_event = 0;
}

void tide__move_cursor(tide__turn *t, int sign) {
    tide_tui_state *st = t->st;
    const tide_tui_window w = st->window;
    const int n = tide__columns(t), x = tide_tui_column_of(w, n, st->cursor);
    const uint64_t span = tide_tui_window_span(w);
    int64_t to = tide_tui_move_time(st->cursor, sign, INT64_MIN, INT64_MAX);
    if (span > (uint64_t)n && x + sign >= 0 && x + sign < n) {
        to = tide__time_of_column(w, n, x + sign);
    } else if (span > (uint64_t)n) { // the column beyond the edge, as wide as the others
        to =
            tide_tui_move_time(sign < 0 ? w.begin : w.end - 1, sign * tide_tui_column_time(w, n), INT64_MIN, INT64_MAX);
    }
    tide__set_cursor(t, to);
    if (st->cursor < w.begin) place_window(t, st->cursor, span);
    if (st->cursor >= w.end) place_window(t, (int64_t)((uint64_t)st->cursor + 1 - span), span);
}

void tide__zoom(tide__turn *t, bool in, int64_t at) {
    tide_tui_state *st = t->st;
    const tide_tui_window w = st->window, whole = whole_of(t);
    const int n = tide__columns(t);
    at = tide_tui_move_time(at, 0, w.begin, w.end - 1);
    const uint64_t span = tide_tui_window_span(w), left = (uint64_t)at - (uint64_t)w.begin;
    const uint64_t new_span = in ? (span + 1) / 2 : span > UINT64_MAX / 2 ? span : span * 2;
    // What lies left of `at` shrinks or grows like the whole, but not out of its column.
    const int x = tide_tui_column_of(w, n, at);
    const uint64_t from = start_of_column(new_span, n, x), to = start_of_column(new_span, n, x + 1);
    uint64_t new_left = in ? left / 2 : left > INT64_MAX / 2 ? INT64_MAX : left * 2;
    if (to > from) new_left = new_left < from ? from : new_left >= to ? to - 1 : new_left;
    place_window(t, tide_tui_move_time(at, -signed_of(new_left), whole.begin, whole.end), new_span);
    if (st->cursor < st->window.begin || st->cursor >= st->window.end) tide__set_cursor(t, at);
    st->is_fitted = false;
}

void tide__pan(tide__turn *t, int sign, uint64_t by) {
    tide_tui_state *st = t->st;
    const tide_tui_window whole = whole_of(t);
    const int64_t begin = st->window.begin;
    place_window(t, tide_tui_move_time(begin, sign * signed_of(by), whole.begin, whole.end),
                 tide_tui_window_span(st->window));
    if (st->window.begin == begin) return;
    tide__set_cursor(t, tide_tui_move_time(st->cursor, st->window.begin - begin, st->window.begin, st->window.end - 1));
    st->is_fitted = false;
}

void tide__pan_half(tide__turn *t, int sign) {
    const uint64_t half = tide_tui_window_span(t->st->window) / 2;
    tide__pan(t, sign, half > 0 ? half : 1);
}

void tide__show_moment(tide__turn *t, tide_moment m) {
    tide_tui_state *st = t->st;
    tide__set_cursor(t, m.t);
    if (st->cursor == m.t) st->cursor_event = m.event;
    if (st->cursor >= st->window.begin && st->cursor < st->window.end) return;
    const tide_tui_window whole = whole_of(t);
    const uint64_t span = tide_tui_window_span(st->window);
    place_window(t, tide_tui_move_time(st->cursor, -signed_of(span / 2), whole.begin, whole.end), span);
}

void tide__show_whole(tide__turn *t) {
    t->st->window = whole_of(t);
    t->st->space_lo = t->st->space_hi = 0;
    t->st->is_fitted = false;
}

/// What is to be fitted: the range, else the selected item.
static bool what_to_fit(const tide__turn *t, int64_t *begin, int64_t *end) {
    const tide_tui_state *st = t->st;
    if (st->shows_range) {
        *begin = st->range_begin;
        *end = st->range_end;
        return true;
    }
    const tide_items *items = tide_subject_items(st->a);
    if (items == NULL || st->item >= items->n) return false;
    *begin = tide_items_begin(items, st->item);
    *end = tide_items_end(items, st->item) > *begin ? tide_items_end(items, st->item) : *begin + 1;
    return true;
}

void tide__fit(tide__turn *t) {
    tide_tui_state *st = t->st;
    int64_t begin, end;
    if (!what_to_fit(t, &begin, &end)) {
        tide_tui_say(st, true, "nothing to fit: select a row or a range first");
        return;
    }
    const tide_tui_window whole = whole_of(t), before = st->window;
    const uint64_t life = (uint64_t)end - (uint64_t)begin, margin = life / 8 > 0 ? life / 8 : 1;
    begin = tide_tui_move_time(begin, -signed_of(margin), whole.begin, whole.end - 1);
    end = tide_tui_move_time(end, signed_of(margin), begin + 1, whole.end);
    if (st->is_fitted && before.begin == begin && before.end == end) {
        st->window = st->before_fit;
        st->is_fitted = false;
        if (st->cursor < st->window.begin || st->cursor >= st->window.end) tide__show_moment(t, tide_tui_now(st));
        return;
    }
    if (!st->is_fitted) st->before_fit = before;
    st->is_fitted = true;
    st->window = (tide_tui_window){begin, end};
    if (st->cursor < begin || st->cursor >= end) {
        tide__set_cursor(t, tide_tui_move_time(begin, signed_of(margin), begin, end - 1));
    }
}

// ---- jumps ----

void tide__next_change(tide__turn *t, int dir) {
    tide_error err = TIDE_ERROR_INIT;
    tide_moment to;
    const tide_moment from = tide_tui_now(t->st);
    if (tide_subject_next_change(t->st->a, from, dir, &to, &err) != TIDE_OK) {
        tide__turn_fail(t, &err);
        return;
    }
    if (to.t == from.t && to.event == from.event) {
        tide_tui_say(t->st, false, "nothing changes %s here", dir > 0 ? "after" : "before");
        return;
    }
    tide__show_moment(t, to);
}

void tide__highest(tide__turn *t) {
    const tide_subject_facts *f = tide_subject_get_facts(t->st->a);
    tide_moment to = f->peak;
    tide_error err = TIDE_ERROR_INIT;
    if (t->st->curve_kind >= 0) {
        const tide_curve_key key = {.of = TIDE_CURVE_LIVE, .kind = t->st->curve_kind};
        uint64_t bytes;
        if (tide_subject_peak_between(t->st->a, key, f->begin, f->end, &bytes, &to, &err) != TIDE_OK) {
            tide__turn_fail(t, &err);
            return;
        }
    }
    tide__show_moment(t, to);
}

/// Within the window first, as finely as it is drawn; then from its edge on, as finely as the whole is.
void tide__next_peak(tide__turn *t, int dir) {
    const tide_tui_window w = t->st->window, whole = whole_of(t);
    const size_t n = (size_t)tide__columns(t);
    const int64_t from = t->st->cursor;
    tide_error err = TIDE_ERROR_INIT;
    tide_moment to;
    tide_status st = tide_subject_next_peak(t->st->a, from, dir, w.begin, w.end, n, &to, &err);
    if (st == TIDE_ERR_NOT_FOUND && tide_tui_window_span(w) < tide_tui_window_span(whole)) {
        const int64_t t0 = dir > 0 ? w.begin : whole.begin, t1 = dir > 0 ? whole.end : w.end;
        st = tide_subject_next_peak(t->st->a, from, dir, t0, t1, n, &to, &err);
    }
    if (st == TIDE_OK) {
        tide__show_moment(t, to);
    } else if (st == TIDE_ERR_NOT_FOUND) {
        tide__highest(t);
        tide_tui_say(t->st, false, "no peak %s here: this is the highest of all", dir > 0 ? "after" : "before");
    } else {
        tide__turn_fail(t, &err);
    }
}
