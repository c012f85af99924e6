// SPDX-License-Identifier: MIT
//
// The cursor and the windows: of time, and of addresses in the map; and going to what a person types: a step, a time,
// an event, an address, a name. See actions_internal.h.
//
// Places are half the height of a cell of the map: two to a line, the lowest at the bottom.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/address.h"
#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/nearest.h"
#include "profiler/moments.h"
#include "tui/actions_internal.h"

// ---- time ----

int tide__columns(const tide__action *act) {
    const int n =
        act->scene != NULL && act->scene->layout != NULL ? act->scene->layout->panes[TIDE_TUI_PANE_CURVE].w : 0;
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

static tide_tui_window whole_of(const tide__action *act) { return tide_tui_whole(tide_subject_get_facts(act->st->a)); }

/// A window of `span` within the whole axis that begins as near to `begin` as that allows.
static void place_window(tide__action *act, int64_t begin, uint64_t span) {
    const tide_tui_window whole = whole_of(act);
    if (span < 1) span = 1;
    if (span >= tide_tui_window_span(whole)) {
        act->st->window = whole;
        return;
    }
    const int64_t last = (int64_t)((uint64_t)whole.end - span);
    begin = begin < whole.begin ? whole.begin : begin > last ? last : begin;
    act->st->window = (tide_tui_window){begin, (int64_t)((uint64_t)begin + span)};
    TIDE_ASSERT(act->st->window.begin < act->st->window.end && act->st->window.end <= whole.end);
}

static int64_t signed_of(uint64_t by) { return by > INT64_MAX ? INT64_MAX : (int64_t)by; }

void tide__set_cursor(tide__action *act, int64_t at) {
    const tide_tui_window whole = whole_of(act);
    act->st->cursor = tide_tui_move_time(at, 0, whole.begin, whole.end - 1);
    act->st->cursor_event = 0;
}

void tide__move_cursor(tide__action *act, int sign) {
    tide_tui_state *st = act->st;
    const tide_tui_window w = st->window;
    const int n = tide__columns(act), x = tide_tui_column_of(w, n, st->cursor);
    const uint64_t span = tide_tui_window_span(w);
    int64_t to = tide_tui_move_time(st->cursor, sign, INT64_MIN, INT64_MAX);
    if (span > (uint64_t)n && x + sign >= 0 && x + sign < n) {
        to = tide__time_of_column(w, n, x + sign);
    } else if (span > (uint64_t)n) { // one column beyond the edge
        to =
            tide_tui_move_time(sign < 0 ? w.begin : w.end - 1, sign * tide_tui_column_time(w, n), INT64_MIN, INT64_MAX);
    }
    tide__set_cursor(act, to);
    if (st->cursor < w.begin) place_window(act, st->cursor, span);
    if (st->cursor >= w.end) place_window(act, (int64_t)((uint64_t)st->cursor + 1 - span), span);
}

void tide__zoom(tide__action *act, bool in, int64_t at) {
    tide_tui_state *st = act->st;
    const tide_tui_window w = st->window, whole = whole_of(act);
    const int n = tide__columns(act);
    at = tide_tui_move_time(at, 0, w.begin, w.end - 1);
    const uint64_t span = tide_tui_window_span(w), left = (uint64_t)at - (uint64_t)w.begin;
    const uint64_t new_span = in ? (span + 1) / 2 : span > UINT64_MAX / 2 ? span : span * 2;
    // The part left of `at` is scaled like the whole, but `at` stays in its column.
    const int x = tide_tui_column_of(w, n, at);
    const uint64_t from = start_of_column(new_span, n, x), to = start_of_column(new_span, n, x + 1);
    uint64_t new_left = in ? left / 2 : left > INT64_MAX / 2 ? INT64_MAX : left * 2;
    if (to > from) new_left = new_left < from ? from : new_left >= to ? to - 1 : new_left;
    place_window(act, tide_tui_move_time(at, -signed_of(new_left), whole.begin, whole.end), new_span);
    if (st->cursor < st->window.begin || st->cursor >= st->window.end) tide__set_cursor(act, at);
    st->is_fitted = false;
}

void tide__pan(tide__action *act, int sign, uint64_t by) {
    tide_tui_state *st = act->st;
    const tide_tui_window whole = whole_of(act);
    const int64_t begin = st->window.begin;
    place_window(act, tide_tui_move_time(begin, sign * signed_of(by), whole.begin, whole.end),
                 tide_tui_window_span(st->window));
    if (st->window.begin == begin) return;
    tide__set_cursor(act,
                     tide_tui_move_time(st->cursor, st->window.begin - begin, st->window.begin, st->window.end - 1));
    st->is_fitted = false;
}

void tide__pan_half(tide__action *act, int sign) {
    const uint64_t half = tide_tui_window_span(act->st->window) / 2;
    tide__pan(act, sign, half > 0 ? half : 1);
}

void tide__show_moment(tide__action *act, tide_moment m) {
    tide_tui_state *st = act->st;
    tide__set_cursor(act, m.t);
    if (st->cursor == m.t) st->cursor_event = m.event;
    if (st->cursor >= st->window.begin && st->cursor < st->window.end) return;
    const tide_tui_window whole = whole_of(act);
    const uint64_t span = tide_tui_window_span(st->window);
    place_window(act, tide_tui_move_time(st->cursor, -signed_of(span / 2), whole.begin, whole.end), span);
}

void tide_tui_show_moment(tide_tui_state *st, tide_moment at) {
    tide__action act = {.st = st};
    tide__show_moment(&act, at);
}

void tide__show_whole(tide__action *act) {
    act->st->window = whole_of(act);
    act->st->space_lo = act->st->space_hi = 0;
    act->st->is_fitted = false;
}

/// What is to be fitted: the range, else the selected item.
static bool what_to_fit(const tide__action *act, int64_t *begin, int64_t *end) {
    const tide_tui_state *st = act->st;
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

void tide__fit(tide__action *act) {
    tide_tui_state *st = act->st;
    int64_t begin, end;
    if (!what_to_fit(act, &begin, &end)) {
        tide_tui_say(st, true, "nothing to fit: select a row or a range first");
        return;
    }
    const tide_tui_window whole = whole_of(act), before = st->window;
    const uint64_t life = (uint64_t)end - (uint64_t)begin, margin = life / 8 > 0 ? life / 8 : 1;
    begin = tide_tui_move_time(begin, -signed_of(margin), whole.begin, whole.end - 1);
    end = tide_tui_move_time(end, signed_of(margin), begin + 1, whole.end);
    if (st->is_fitted && before.begin == begin && before.end == end) {
        st->window = st->before_fit;
        st->is_fitted = false;
        if (st->cursor < st->window.begin || st->cursor >= st->window.end) tide__show_moment(act, tide_tui_now(st));
        return;
    }
    if (!st->is_fitted) st->before_fit = before;
    st->is_fitted = true;
    st->window = (tide_tui_window){begin, end};
    if (st->cursor < begin || st->cursor >= end) {
        tide__set_cursor(act, tide_tui_move_time(begin, signed_of(margin), begin, end - 1));
    }
}

// ---- jumps ----

void tide__next_change(tide__action *act, int dir) {
    tide_error err = TIDE_ERROR_INIT;
    tide_moment to;
    const tide_moment from = tide_tui_now(act->st);
    if (tide_subject_next_change(act->st->a, from, dir, &to, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
        return;
    }
    if (to.t == from.t && to.event == from.event) {
        tide_tui_say(act->st, false, "nothing changes %s here", dir > 0 ? "after" : "before");
        return;
    }
    tide__show_moment(act, to);
}

/// The curve as it is drawn.
static tide_curve_key curve_of(const tide__action *act) {
    return (tide_curve_key){.of = TIDE_CURVE_LIVE, .kind = tide_tui_curve_kinds(act->st)};
}

/// Where the curve is highest: the peak of all where it is as high there, for of a planned run that is the moment that
/// says most; else the first.
static tide_status find_highest(const tide__action *act, tide_moment *out, tide_error *err) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    const tide_curve_key key = curve_of(act);
    uint64_t bytes, at_peak;
    *out = f->peak;
    if (key.kind == -1) return TIDE_OK;
    tide_moment first;
    TIDE_TRY(tide_subject_peak_between(act->st->a, key, f->begin, f->end, &bytes, &first, err));
    TIDE_TRY(tide_subject_bytes_at(act->st->a, key, f->peak, &at_peak, err));
    if (at_peak < bytes) *out = first;
    return TIDE_OK;
}

void tide__highest(tide__action *act) {
    tide_error err = TIDE_ERROR_INIT;
    tide_moment to;
    if (find_highest(act, &to, &err) == TIDE_OK)
        tide__show_moment(act, to);
    else
        tide__action_fail(act, &err);
}

/// First within the window, at the resolution on the screen; then from its edge on, at the resolution of the whole
/// axis.
void tide__next_peak(tide__action *act, int dir) {
    const tide_tui_window w = act->st->window, whole = whole_of(act);
    const size_t n = (size_t)tide__columns(act);
    const int64_t from = act->st->cursor;
    const tide_curve_key key = curve_of(act);
    tide_error err = TIDE_ERROR_INIT;
    tide_moment to;
    tide_status st = tide_subject_next_peak(act->st->a, key, from, dir, w.begin, w.end, n, &to, &err);
    if (st == TIDE_ERR_NOT_FOUND && tide_tui_window_span(w) < tide_tui_window_span(whole)) {
        const int64_t t0 = dir > 0 ? w.begin : whole.begin, t1 = dir > 0 ? whole.end : w.end;
        st = tide_subject_next_peak(act->st->a, key, from, dir, t0, t1, n, &to, &err);
    }
    if (st == TIDE_OK) {
        tide__show_moment(act, to);
    } else if (st == TIDE_ERR_NOT_FOUND) {
        tide__highest(act);
        tide_tui_say(act->st, false, "no peak %s here: this is the highest of all", dir > 0 ? "after" : "before");
    } else {
        tide__action_fail(act, &err);
    }
}

// ---- addresses ----

bool tide__space_window(const tide__action *act, tide_tui_window *view, tide_tui_window *whole) {
    const tide_space *space = act->scene != NULL ? act->scene->space : NULL;
    if (space == NULL || space->bytes == 0) return false;
    *whole = (tide_tui_window){0, space->bytes > INT64_MAX ? INT64_MAX : (int64_t)space->bytes};
    *view = (tide_tui_window){act->st->space_lo, act->st->space_hi};
    if (view->begin >= view->end || view->begin < 0 || view->end > whole->end) *view = *whole;
    return true;
}

static int places(const tide__action *act) {
    const int h = act->scene->layout != NULL ? act->scene->layout->map.h : 0;
    return h > 0 ? 2 * h : 1;
}

static void set_view(tide__action *act, int64_t lo, uint64_t span, tide_tui_window whole) {
    if (span >= tide_tui_window_span(whole)) {
        act->st->space_lo = act->st->space_hi = 0;
        return;
    }
    const int64_t last = whole.end - (int64_t)span;
    lo = lo < 0 ? 0 : lo > last ? last : lo;
    act->st->space_lo = lo;
    act->st->space_hi = lo + (int64_t)span;
}

/// Select the item at both cursors, if the picture is that of this window.
static void select_at_cursors(tide__action *act) {
    const tide_tui_scene *scene = act->scene;
    tide_tui_window view, whole;
    if (scene->cells == NULL || scene->layout == NULL || !tide__space_window(act, &view, &whole)) return;
    const int w = scene->cells_w, h = places(act);
    const int x = scene->map_is_moment ? 0 : tide_tui_column_of(act->st->window, w, act->st->cursor);
    const int y = tide_tui_column_of(view, h, act->st->space_cursor);
    if (x < 0 || x >= w || y < 0 || y >= h) return;
    const uint32_t item = scene->cells[(size_t)y * (size_t)w + (size_t)x].item;
    if (item < TIDE_SPACE_HOLE) tide__select_item(act, item);
}

void tide__set_space_cursor(tide__action *act, int64_t at) {
    tide_tui_window view, whole;
    if (!tide__space_window(act, &view, &whole)) return;
    at = tide_tui_move_time(at, 0, 0, whole.end - 1);
    act->st->space_cursor = at;
    if (at >= view.begin && at < view.end) {
        select_at_cursors(act);
        return;
    }
    const uint64_t span = tide_tui_window_span(view);
    const int64_t lo = at < view.begin ? at : at + 1 - (int64_t)span;
    set_view(act, lo, span, whole);
}

void tide__move_space(tide__action *act, int64_t by_places) {
    tide_tui_window view, whole;
    if (!tide__space_window(act, &view, &whole)) {
        tide_tui_say(act->st, false, "there are no addresses to move in");
        return;
    }
    const int n = places(act);
    const int64_t each = tide_tui_column_time(view, n);
    int64_t from = act->st->space_cursor;
    if (from < 0) { // it enters at the edge from which it moves
        from = by_places > 0 ? view.begin : view.end - 1;
        if (by_places == 1 || by_places == -1) {
            tide__set_space_cursor(act, from);
            return;
        }
    }
    const int y = tide_tui_column_of(view, n, from);
    const bool inside = y >= 0 && y < n && by_places >= -y && by_places < n - y && each > 1;
    const int64_t far = by_places > INT64_MAX / each || by_places < -INT64_MAX / each
                            ? (by_places > 0 ? INT64_MAX : -INT64_MAX)
                            : by_places * each;
    tide__set_space_cursor(act, inside ? tide__time_of_column(view, n, y + (int)by_places)
                                       : tide_tui_move_time(from, far, 0, whole.end - 1));
}

void tide__zoom_space(tide__action *act, bool in) {
    tide_tui_window view, whole;
    if (!tide__space_window(act, &view, &whole)) {
        tide_tui_say(act->st, false, "there are no addresses to zoom: the view 'memory' (key 2) shows them");
        return;
    }
    const uint64_t span = tide_tui_window_span(view);
    const uint64_t new_span = in ? (span + 1) / 2 : span > INT64_MAX / 2 ? INT64_MAX : span * 2;
    const int64_t cursor = act->st->space_cursor;
    const int64_t at = cursor >= view.begin && cursor < view.end ? cursor : view.begin + (int64_t)(span / 2);
    const uint64_t below = (uint64_t)(at - view.begin), new_below = in ? below / 2 : below * 2;
    set_view(act, tide_tui_move_time(at, -(int64_t)new_below, 0, whole.end), new_span, whole);
}

/// The region that holds an address at the cursor, else at any time; NULL: none does.
static const tide_region *region_of(const tide__action *act, uint64_t address) {
    const tide_space *space = act->scene->space;
    const tide_region *found = NULL;
    for (size_t i = 0; i < space->n; i++) {
        const tide_region *r = &space->regions[i];
        if (address < r->base || address - r->base >= r->bytes) continue;
        if (r->begin <= act->st->cursor && act->st->cursor < r->end) return r;
        if (found == NULL) found = r;
    }
    return found;
}

// ---- going to what is typed ----

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"min", UINT64_C(60000000000)}};
enum { N_UNITS = sizeof units / sizeof units[0] };

/// The ns of a unit; 0: there is no such unit.
static uint64_t unit_ns(const char *name) {
    for (size_t i = 0; i < N_UNITS; i++) {
        if (strcmp(units[i].name, name) == 0) return units[i].ns;
    }
    return 0;
}

/// "12", "1.5": the part before the point, and the one behind it in billionths. `*rest`: what follows, blanks skipped.
static bool read_decimal(const char *text, uint64_t *whole, uint64_t *billionths, const char **rest) {
    const char *at = text;
    *whole = *billionths = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (!tide_mul_u64(*whole, 10, whole) || !tide_add_u64(*whole, (uint64_t)(*at - '0'), whole)) return false;
    }
    if (at == text) return false;
    if (*at == '.') {
        uint64_t worth = 100000000;
        for (at++; *at >= '0' && *at <= '9'; at++, worth /= 10) *billionths += worth * (uint64_t)(*at - '0');
    }
    while (*at == ' ') at++;
    *rest = at;
    return true;
}

/// "50%": of the axis; false: it is none.
static bool parse_share(const tide_subject_facts *f, const char *text, int64_t *out) {
    uint64_t whole, billionths;
    const char *rest;
    if (!read_decimal(text, &whole, &billionths, &rest) || strcmp(rest, "%") != 0) return false;
    const double share = ((double)whole + (double)billionths / 1e9) / 100;
    if (share > 1) return false;
    *out = share < 1 ? f->begin + (int64_t)(share * (double)(f->end - f->begin)) : f->end - 1;
    return true;
}

bool tide__parse_time(const tide_subject_facts *f, const char *text, int64_t *out, tide_error *err) {
    uint64_t whole, billionths, ns;
    const char *rest;
    if (!read_decimal(text, &whole, &billionths, &rest)) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is neither a number nor a time", text);
        return false;
    }
    if (*rest == 0 && billionths == 0 && f->axis == TIDE_AXIS_STEPS) {
        *out = whole > INT64_MAX ? INT64_MAX : (int64_t)whole;
        return true;
    }
    if (*rest == 0 && billionths == 0 && whole < f->n_steps) {
        *out = f->step_begin[whole];
        return true;
    }
    const uint64_t unit = unit_ns(rest);
    if (f->axis == TIDE_AXIS_STEPS) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no step: a plan counts in steps, from 0", text);
        return false;
    }
    if (unit == 0) {
        (void)TIDE_FAIL(err, TIDE_ERR_INVALID, *rest == 0 ? "'%s' needs a unit" : "'%s' has no unit of time", text);
        tide_error_hint(err, "as 1.5ms; units are ns, us, ms, s, min");
        return false;
    }
    if (!tide_mul_u64(whole, unit, &ns) || !tide_add_u64(ns, billionths / 1000 * unit / 1000000, &ns)) ns = INT64_MAX;
    *out = tide_tui_move_time(f->origin, ns > INT64_MAX ? INT64_MAX : (int64_t)ns, f->origin, INT64_MAX);
    return true;
}

/// "#123": an event.
static void go_to_event(tide__action *act, const char *digits) {
    uint64_t number, billionths;
    const char *rest;
    tide_trace *trace = tide_subject_trace(act->st->a);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_event event;
    size_t n = 0;
    if (trace == NULL || !read_decimal(digits, &number, &billionths, &rest) || *rest != 0) {
        tide_tui_say(act->st, true, trace == NULL ? "a plan has no events" : "'#%s' is no event", digits);
    } else if (tide_trace_events(trace, number, &event, 1, &n, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
    } else if (n == 0 || event.t_ns > INT64_MAX) {
        tide_tui_say(act->st, true, "there is no event %" PRIu64 ": the last is %" PRIu64, number,
                     tide_subject_get_facts(act->st->a)->n_events);
    } else {
        tide__show_moment(act, (tide_moment){(int64_t)event.t_ns, event.id});
    }
}

/// The map's own cursor goes to the address, if the map is on the screen.
static void point_at(tide__action *act, const tide_address *found, uint64_t address) {
    const tide_items *items = tide_subject_items(act->st->a);
    if (act->scene == NULL || act->scene->space == NULL) return;
    const tide_region *r = region_of(act, address);
    uint64_t lo, hi;
    if (r != NULL)
        tide__set_space_cursor(act, (int64_t)(r->at + (address - r->base)));
    else if (found->item != TIDE_NO_ITEM && tide_space_of_item(act->scene->space, items, found->item, &lo, &hi))
        tide__set_space_cursor(act, (int64_t)lo); // in a buffer, whose places are offsets
}

static void say_found(tide__action *act, const char *text, const tide_address *found) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    const char *step = f->axis == TIDE_AXIS_STEPS ? "step " : "";
    char when[32], size[32];
    tide_tui_format_time(f, act->st->cursor, when, sizeof when);
    tide_format_bytes(found->bytes, size, sizeof size);
    switch (found->is) {
    case TIDE_ADDRESS_HELD:
        tide_tui_say(act->st, false, "%s lies at %s at %s%s%s%s", found->name, text, step, when,
                     found->inside != NULL ? ", in it " : "", found->inside != NULL ? found->inside : "");
        break;
    case TIDE_ADDRESS_UNUSED:
        tide_tui_say(act->st, false, "nothing lies at %s at %s%s: unused in the buffer of %s", text, step, when, size);
        break;
    case TIDE_ADDRESS_FREE:
        tide_tui_say(act->st, false, "nothing lies at %s at %s%s: free bytes of %s, in its segment of %s", text, step,
                     when, found->name, size);
        break;
    default:
        tide_tui_say(act->st, false, "nothing lies at %s at %s%s: no memory that is known has this address", text, step,
                     when);
        break;
    }
}

/// Who lies there at the cursor, of the data: whatever the view shows, for a cell of the map can hold several.
static void go_to_address(tide__action *act, const char *text) {
    char *rest;
    errno = 0;
    const unsigned long long address = strtoull(text, &rest, 16);
    tide_address found;
    tide_error err = TIDE_ERROR_INIT;
    if (*rest != 0 || errno == ERANGE) {
        tide_tui_say(act->st, true, "'%s' is no address", text);
    } else if (tide_subject_at_address(act->st->a, tide_tui_now(act->st), address, &found, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
    } else {
        point_at(act, &found, address);
        if (found.item != TIDE_NO_ITEM) tide__select_item(act, found.item);
        say_found(act, text, &found);
    }
}

/// The first item that is called so, or whose operator is, that begins in the window; else the first of all;
/// TIDE_NO_ITEM: none. A run that executes a plan again has each name once for each execution.
static uint32_t item_named(const tide__action *act, const char *name, bool is_owner) {
    const tide_items *items = tide_subject_items(act->st->a);
    const tide_tui_window w = act->st->window;
    uint32_t first = TIDE_NO_ITEM;
    for (size_t i = 0; items != NULL && i < items->n; i++) {
        const tide_item_site *site = tide_items_site(items, i);
        const char *is = is_owner ? site->owner : site->name;
        if (is == NULL || strcmp(is, name) != 0) continue;
        const int64_t begin = tide_items_begin(items, i);
        if (begin >= w.begin && begin < w.end) return (uint32_t)i;
        if (first == TIDE_NO_ITEM) first = (uint32_t)i;
    }
    return first;
}

void tide__show_step(tide__action *act, size_t step) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    const tide_tui_window w = act->st->window;
    int64_t at = f->step_begin[step];
    tide_moment in_execution;
    if (tide_subject_step_in(f, tide_subject_execution_at(f, act->st->cursor), step, &in_execution)) {
        tide__show_moment(act, (tide_moment){in_execution.t, 0});
        return;
    }
    const uint32_t item = at < w.begin || at >= w.end ? item_named(act, f->step_names[step], true) : TIDE_NO_ITEM;
    if (item != TIDE_NO_ITEM) {
        const int64_t begin = tide_items_begin(tide_subject_items(act->st->a), item);
        if (begin >= w.begin && begin < w.end) at = begin;
    }
    tide__show_moment(act, (tide_moment){at, 0});
}

/// A step, or an item, by name: that of the window where it is there more than once; else the nearest name of a step.
static void go_to_name(tide__action *act, const char *name) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    for (size_t i = 0; i < f->n_steps; i++) {
        if (strcmp(f->step_names[i], name) != 0) continue;
        tide__show_step(act, i);
        return;
    }
    const uint32_t item = item_named(act, name, false);
    if (item != TIDE_NO_ITEM) {
        tide__select_item(act, item);
        tide__show_moment(act, (tide_moment){tide_items_begin(tide_subject_items(act->st->a), item), 0});
        return;
    }
    const char *near = tide_nearest_of(name, f->step_names, f->n_steps);
    tide_tui_say(act->st, true, "there is no step, time or name '%s'%s%s%s", name,
                 near != NULL ? ": did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

void tide__go_to(tide__action *act, const char *text) {
    const tide_subject_facts *f = tide_subject_get_facts(act->st->a);
    tide_error err = TIDE_ERROR_INIT;
    int64_t at;
    if (*text == 0) {
        tide__open_prompt(act, TIDE_TUI_PROMPT_GOTO, "");
    } else if (strcmp(text, "peak") == 0) {
        tide__highest(act);
    } else if (strcmp(text, "begin") == 0) {
        tide__show_moment(act, (tide_moment){f->begin, 0});
    } else if (strcmp(text, "end") == 0) {
        tide__show_moment(act, (tide_moment){f->end - 1, 0});
    } else if (*text == '#') {
        go_to_event(act, text + 1);
    } else if (strncasecmp(text, "0x", 2) == 0) {
        go_to_address(act, text);
    } else if (*text >= '0' && *text <= '9') {
        if (!parse_share(f, text, &at) && !tide__parse_time(f, text, &at, &err)) {
            tide__action_fail(act, &err);
        } else if (at < f->begin || at >= f->end) {
            char last[32];
            tide_tui_say(act->st, true, "%s lies behind the end, which is at %s", text,
                         tide_tui_format_time(f, f->end - 1, last, sizeof last));
        } else {
            tide__show_moment(act, (tide_moment){at, 0});
        }
    } else {
        go_to_name(act, text);
    }
}
