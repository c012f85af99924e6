// SPDX-License-Identifier: MIT
//
// The initial state, and what must hold after every action. See state.h.
#include "tui/state/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"

void tide_tui_state_init(tide_tui_state *st, tide_subject *a, tide_subject *b) {
    memset(st, 0, sizeof *st); // large: no copy of a temporary
    const tide_subject_facts *facts = tide_subject_get_facts(a);
    st->a = a;
    st->b = b;
    st->is_recording = facts->is_recording;
    st->preset = TIDE_TUI_PRESET_LIFETIMES;
    st->focus = TIDE_TUI_PANE_GANTT;
    st->window = (tide_tui_window){facts->begin, facts->end};
    st->cursor = facts->peak.t;
    st->cursor_event = facts->peak.event;
    st->space_cursor = -1;
    st->curve_kind = -1;
    st->bands_by = TIDE_BAND_BY_KIND;
    st->folds_weights = tide_tui_folds_on_opening(facts);
    st->item = st->only_group_of = st->table_item = TIDE_NO_ITEM;
    st->operators_at = st->table_at = INT64_MIN;
    st->mouse = true;
    st->click_x = st->click_y = -1;
    tide_tui_state_settle(st);
}

static int64_t held(int64_t t, int64_t lo, int64_t hi) { return t < lo ? lo : t > hi ? hi : t; }

/// What holds after every action, whatever was typed or read from a file.
static void assert_is_valid(const tide_tui_state *st) {
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    TIDE_ASSERT(f->begin <= st->window.begin && st->window.begin < st->window.end && st->window.end <= f->end);
    TIDE_ASSERT(st->window.begin <= st->cursor && st->cursor < st->window.end);
    TIDE_ASSERT(!st->shows_range || (f->begin <= st->range_begin && st->range_begin < st->range_end));
    TIDE_ASSERT(!st->shows_range || st->range_end <= f->end);
    TIDE_ASSERT(st->preset < TIDE_TUI_N_PRESETS && st->focus < TIDE_TUI_N_PANES);
    TIDE_ASSERT(st->curve_kind >= -1 && st->curve_kind < TIDE_N_KINDS);
    TIDE_ASSERT(st->bands_by >= -1 && st->bands_by < (int)TIDE_N_BAND_BYS);
    TIDE_ASSERT(st->n_filters <= TIDE_TUI_MAX_FILTERS && st->n_edits <= TIDE_TUI_MAX_EDITS);
    TIDE_ASSERT(st->n_folds <= TIDE_TUI_MAX_FOLDS);
    TIDE_ASSERT(st->n_marks <= TIDE_TUI_MAX_MARKS && st->n_history <= TIDE_TUI_MAX_HISTORY);
    TIDE_ASSERT(st->history_at <= st->n_history && st->text_at <= strlen(st->text));
    TIDE_ASSERT(st->overlay_row >= 0 && st->overlay_row < TIDE_TUI_N_SETTINGS && st->overlay_top >= 0);
}

void tide_tui_state_settle(tide_tui_state *st) {
    const tide_subject_facts *facts = tide_subject_get_facts(st->a);
    const int64_t begin = facts->begin, end = facts->end;
    tide_tui_window *w = &st->window;
    if (w->begin >= w->end) *w = (tide_tui_window){begin, end};
    const uint64_t span = tide_tui_window_span(*w), whole = (uint64_t)end - (uint64_t)begin;
    if (span >= whole) {
        *w = (tide_tui_window){begin, end};
    } else if (w->begin < begin) {
        *w = (tide_tui_window){begin, (int64_t)((uint64_t)begin + span)};
    } else if (w->end > end) {
        *w = (tide_tui_window){(int64_t)((uint64_t)end - span), end};
    }
    const int64_t cursor = held(st->cursor, w->begin, w->end - 1);
    if (cursor != st->cursor) st->cursor_event = 0;
    st->cursor = cursor;
    if (st->shows_range) {
        st->range_begin = held(st->range_begin, begin, end - 1);
        st->range_end = held(st->range_end, st->range_begin + 1, end);
    }
    assert_is_valid(st);
}

tide_row_sort tide_tui_row_sort(const tide_tui_state *st) { return st->is_opening ? TIDE_ROW_SORT_SIZE : st->sort; }

uint64_t tide_tui_weights_bytes(const tide_subject_facts *f) {
    uint64_t sum = 0; // no overflow where the peak has none
    for (size_t i = 0; i < f->n_kinds; i++) {
        const tide_trace_kind *k = &f->kinds[i];
        const uint64_t bytes = f->is_trace ? k->peak_bytes : k->predicted_bytes;
        if (k->kind == TIDE_KIND_PERSISTENT && bytes != TIDE_UNKNOWN_BYTES) sum += bytes;
    }
    return sum;
}

bool tide_tui_folds_on_opening(const tide_subject_facts *f) {
    const uint64_t weights = tide_tui_weights_bytes(f);
    return weights > f->peak_bytes / 2 && weights < f->peak_bytes;
}

int tide_tui_curve_kinds(const tide_tui_state *st) {
    return st->curve_kind < 0 && st->folds_weights ? TIDE_KINDS_BUT_WEIGHTS : st->curve_kind;
}

tide_moment tide_tui_now(const tide_tui_state *st) { return (tide_moment){st->cursor, st->cursor_event}; }

void tide_tui_say(tide_tui_state *st, bool is_error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(st->message, sizeof st->message, format, args);
    va_end(args);
    st->message_is_error = is_error;
}

// ---- call stacks ----

bool tide_tui_fold_of(const tide_tui_state *st, uint64_t key, bool otherwise) {
    for (size_t i = 0; i < st->n_folds; i++)
        if (st->folds[i].key == key) return st->folds[i].is_open;
    return otherwise;
}

void tide_tui_set_fold(tide_tui_state *st, uint64_t key, bool is_open) {
    size_t at = 0;
    while (at < st->n_folds && st->folds[at].key != key) at++;
    if (at == TIDE_TUI_MAX_FOLDS) at = 0;
    if (at < st->n_folds) memmove(&st->folds[at], &st->folds[at + 1], (--st->n_folds - at) * sizeof st->folds[0]);
    TIDE_ASSERT(st->n_folds < TIDE_TUI_MAX_FOLDS);
    st->folds[st->n_folds++] = (tide_tui_fold){key, is_open};
}

// ---- lists ----

static const char *const list_names[] = {
#define XX(name, text) text,
    TIDE_TUI_LIST_MAP(XX)
#undef XX
};
static const tide_tui_pane panes_of_lists[] = {TIDE_TUI_PANE_TABLE, TIDE_TUI_PANE_OPERATORS, TIDE_TUI_PANE_POOLS,
                                               TIDE_TUI_PANE_POOLS, TIDE_TUI_PANE_COMPARE,   TIDE_TUI_PANE_WHATIF};
_Static_assert(sizeof panes_of_lists / sizeof panes_of_lists[0] == TIDE_TUI_N_LISTS, "each list has a pane");

const char *tide_tui_list_name(tide_tui_list list) { return list < TIDE_TUI_N_LISTS ? list_names[list] : "?"; }

tide_tui_list tide_tui_list_of(tide_tui_pane pane) {
    int list = 0;
    while (list < TIDE_TUI_N_LISTS && panes_of_lists[list] != pane) list++;
    return (tide_tui_list)list;
}

tide_tui_pane tide_tui_pane_of_list(tide_tui_list list) {
    return list < TIDE_TUI_N_LISTS ? panes_of_lists[list] : TIDE_TUI_N_PANES;
}

// ---- settings ----

const char *tide_tui_setting_name(tide_tui_setting setting) {
    static const char *const names[] = {
#define XX(name, text, what) text,
        TIDE_TUI_SETTING_MAP(XX)
#undef XX
    };
    return setting < TIDE_TUI_N_SETTINGS ? names[setting] : "?";
}

const char *tide_tui_setting_what(tide_tui_setting setting) {
    static const char *const whats[] = {
#define XX(name, text, what) what,
        TIDE_TUI_SETTING_MAP(XX)
#undef XX
    };
    return setting < TIDE_TUI_N_SETTINGS ? whats[setting] : "?";
}

char *tide_tui_setting_value(const tide_tui_state *st, tide_tui_setting setting, char *buf, size_t buf_bytes) {
    const char *text = "?";
    switch (setting) {
    case TIDE_TUI_SETTING_CAPACITY:
        if (st->capacity_bytes > 0) return tide_format_bytes(st->capacity_bytes, buf, buf_bytes);
        text = "none";
        break;
    case TIDE_TUI_SETTING_SORT:
        text = tide_row_sort_name(st->sort);
        break;
    case TIDE_TUI_SETTING_GROUP:
        text = tide_row_group_name(st->group);
        break;
    case TIDE_TUI_SETTING_KIND:
        text = st->curve_kind < 0 ? "all" : tide_memory_kind_name((tide_memory_kind)st->curve_kind);
        break;
    case TIDE_TUI_SETTING_WEIGHTS:
        text = st->folds_weights ? "off" : "on";
        break;
    case TIDE_TUI_SETTING_BANDS:
        text = st->bands_by < 0 ? "off" : tide_band_by_name((tide_band_by)st->bands_by);
        break;
    case TIDE_TUI_SETTING_REVERSE:
        text = st->reverse ? "on" : "off";
        break;
    case TIDE_TUI_SETTING_PERSISTENT:
        text = st->hides_persistent ? "off" : "on";
        break;
    case TIDE_TUI_SETTING_FILTERS:
        text = st->filters_off ? "off" : "on";
        break;
    case TIDE_TUI_SETTING_FOLLOW:
        text = st->follows ? "on" : "off";
        break;
    case TIDE_TUI_SETTING_MOUSE:
        text = st->mouse ? "on" : "off";
        break;
    default:
        break;
    }
    (void)snprintf(buf, buf_bytes, "%s", text);
    return buf;
}
