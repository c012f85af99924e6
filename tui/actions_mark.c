// SPDX-License-Identifier: MIT
//
// Ranges of time, marks, the two moments that are compared; edits of the plan; the selection as text. See
// actions_internal.h.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/assert.h"
#include "core/base/nearest.h"
#include "tui/actions_internal.h"
#include "tui/draw/panes.h"
#include "tui/sheet.h"

// ---- ranges ----

void tide__set_range(tide__action *act, int64_t from, int64_t to) {
    tide_tui_state *st = act->st;
    st->shows_range = true;
    st->range_follows = false;
    st->range_begin = from < to ? from : to;
    st->range_end = from < to ? to : from;
    if (st->range_end == st->range_begin) st->range_end++;
}

void tide__toggle_range(tide__action *act) {
    tide_tui_state *st = act->st;
    st->shows_range = st->range_follows = !st->shows_range;
    st->range_anchor = st->cursor;
    if (!st->shows_range) st->is_fitted = false;
}

// ---- marks ----

static size_t mark_named(const tide_tui_state *st, char name) {
    for (size_t i = 0; i < st->n_marks; i++) {
        if (st->marks[i].name == name) return i;
    }
    return SIZE_MAX;
}

static char free_name(const tide_tui_state *st) {
    for (int name = 'a'; name <= 'z'; name++) {
        if (mark_named(st, (char)name) == SIZE_MAX) return (char)name;
    }
    return 0;
}

bool tide__mark(tide__action *act, char name, const char *text) {
    tide_tui_state *st = act->st;
    if (name == 0) name = free_name(st);
    if (name == 0) {
        tide_tui_say(st, true, "all letters mark something: :mark LETTER moves one");
        return false;
    }
    const size_t old = mark_named(st, name);
    if (old != SIZE_MAX) {
        memmove(&st->marks[old], &st->marks[old + 1], (st->n_marks - old - 1) * sizeof st->marks[0]);
        st->n_marks--;
    }
    TIDE_ASSERT(st->n_marks < TIDE_TUI_MAX_MARKS); // there are 26 letters
    tide_tui_mark *mark = &st->marks[st->n_marks++];
    *mark = (tide_tui_mark){.name = name, .at = tide_tui_now(st)};
    (void)snprintf(mark->text, sizeof mark->text, "%s", text);
    return true;
}

/// Whether `m` comes before `best` (NULL: none) in the order that begins behind `now` and goes round at the end.
static bool comes_sooner(const tide_tui_mark *m, const tide_tui_mark *best, tide_moment now) {
    const bool behind = m->at.t > now.t || (m->at.t == now.t && m->at.event > now.event);
    if (best == NULL) return true;
    const bool best_behind = best->at.t > now.t || (best->at.t == now.t && best->at.event > now.event);
    if (behind != best_behind) return behind;
    return m->at.t != best->at.t ? m->at.t < best->at.t : m->at.event < best->at.event;
}

void tide__jump(tide__action *act, char name) {
    tide_tui_state *st = act->st;
    const tide_tui_mark *best = NULL;
    const size_t n_seen = act->scene != NULL ? act->scene->n_marks : 0;
    for (size_t i = 0; i < st->n_marks + n_seen; i++) {
        const tide_tui_mark *m = i < st->n_marks ? &st->marks[i] : &act->scene->marks[i - st->n_marks];
        if (name != 0 && m->name != name) continue;
        if (comes_sooner(m, best, tide_tui_now(st))) best = m;
    }
    if (best == NULL) {
        tide_tui_say(st, true, name != 0 ? "there is no mark '%c'" : "there are no marks: m makes one", name);
        return;
    }
    char text[sizeof best->text]; // the scene's marks may be those of the state
    (void)snprintf(text, sizeof text, "%s", best->text);
    const char letter = best->name;
    tide__show_moment(act, best->at);
    if (letter != 0) {
        tide_tui_say(st, false, "mark %c%s%s", letter, text[0] != 0 ? ": " : "", text);
    } else {
        tide_tui_say(st, false, "mark of the trace: %s", text);
    }
}

// ---- compared moments ----

void tide__set_compared(tide__action *act, bool is_b) {
    tide_tui_state *st = act->st;
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    char when[32];
    (void)tide_tui_format_time(f, st->cursor, when, sizeof when);
    if (is_b) {
        st->b_moment = tide_tui_now(st);
        st->has_b_moment = true;
    } else {
        st->a_moment = tide_tui_now(st);
        st->has_a_moment = true;
    }
    if (!st->has_a_moment || !st->has_b_moment) {
        tide_tui_say(st, false, "%s is %s; key %s at another moment to compare", is_b ? "B" : "A", when,
                     is_b ? "A" : "B");
        return;
    }
    st->compares_moments = true;
    if (st->b == NULL) st->b = st->a;
    char other[32];
    (void)tide_tui_format_time(f, st->a_moment.t, other, sizeof other);
    (void)tide_tui_format_time(f, st->b_moment.t, when, sizeof when);
    tide_tui_say(st, false, "A is %s, B is %s: key 5 compares, key 4 their pools; Esc in 5 drops them", other, when);
}

void tide__compare_moments(tide__action *act, tide_moment a, tide_moment b) {
    tide_tui_state *st = act->st;
    st->a_moment = a;
    st->b_moment = b;
    st->has_a_moment = st->has_b_moment = st->compares_moments = true;
    if (st->b == NULL) st->b = st->a;
}

void tide__reset(tide__action *act) {
    tide_tui_state *st = act->st;
    st->n_filters = st->n_marks = 0;
    st->filters_off = st->hides_persistent = st->reverse = st->opened_by_filter = false;
    st->sort = TIDE_ROW_SORT_BEGIN;
    memset(st->orders, 0, sizeof st->orders);
    st->group = TIDE_ROW_GROUP_NONE;
    st->group_chosen = false;
    st->only_group_of = TIDE_NO_ITEM;
    st->n_folds = 0;
    st->search[0] = 0;
    st->curve_kind = -1;
    st->bands_by = TIDE_BAND_BY_KIND;
    st->folds_weights = tide_tui_folds_on_opening(tide_subject_get_facts(st->a));
    tide__rows_changed(act);
    tide_tui_say(st, false, "filters, marks and saved state are forgotten");
    tide__action_effect(act, TIDE_TUI_EFFECT_FORGET_STATE, "");
}

// ---- edits of the plan ----

static bool has_plan(tide__action *act) {
    if (tide_subject_get_facts(act->st->a)->plan != NULL) return true;
    tide_tui_say(act->st, true, "there is no plan to change: what-if needs a model, a plan or a planned run");
    return false;
}

static void add_edit(tide__action *act, const tide_edit *edit) {
    if (act->st->n_edits == TIDE_TUI_MAX_EDITS) {
        tide_tui_say(act->st, true, "there are %d edits already: u takes the last one back", TIDE_TUI_MAX_EDITS);
        return;
    }
    act->st->edits[act->st->n_edits++] = *edit;
    tide__action_effect(act, TIDE_TUI_EFFECT_PLAN, "");
}

void tide__edit(tide__action *act, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edit;
    if (!has_plan(act)) return;
    if (tide_edit_parse(text, &edit, &err) != TIDE_OK) {
        tide__action_fail(act, &err);
        return;
    }
    add_edit(act, &edit);
}

void tide__apply(tide__action *act) {
    const tide_tui_scene *s = act->scene;
    if (!has_plan(act)) return;
    if (s == NULL || s->n_advice == 0) {
        tide_tui_say(act->st, false, "there is no advice here: the view 'peak' (key 3) has it");
        return;
    }
    add_edit(act, &s->advice[tide_tui_pane_row(s, TIDE_TUI_PANE_WHATIF)].edit);
}

void tide__undo(tide__action *act) {
    if (act->st->n_edits == 0) {
        tide_tui_say(act->st, false, "there is no edit to take back");
        return;
    }
    act->st->n_edits--;
    tide__action_effect(act, TIDE_TUI_EFFECT_PLAN, "");
}

// ---- the selection ----

void tide__copy(tide__action *act) {
    tide_text text = {0};
    if (act->scene != NULL) tide_tui_speak_selection(act->scene, act->st->focus, &text);
    if (text.len == 0) {
        tide_tui_say(act->st, false, "nothing is selected here");
    } else {
        tide__action_effect(act, TIDE_TUI_EFFECT_COPY, tide_text_str(&text));
    }
    tide_text_deinit(&text);
}
