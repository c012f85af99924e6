// SPDX-License-Identifier: MIT
//
// What goes out (the selection), edits of the plan, settings, and the way back. See actions_internal.h.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/nearest.h"
#include "tui/actions_internal.h"
#include "tui/draw/panes.h"
#include "tui/sheet.h"

// ---- edits of the plan ----

static bool has_plan(tide__turn *t) {
    if (tide_subject_get_facts(t->st->a)->plan != NULL) return true;
    tide_tui_say(t->st, true, "there is no plan to change: what-if needs a model, a plan or a planned run");
    return false;
}

static void add_edit(tide__turn *t, const tide_edit *edit) {
    if (t->st->n_edits == TIDE_TUI_MAX_EDITS) {
        tide_tui_say(t->st, true, "there are %d edits already: u takes the last one back", TIDE_TUI_MAX_EDITS);
        return;
    }
    t->st->edits[t->st->n_edits++] = *edit;
    tide__turn_effect(t, TIDE_TUI_EFFECT_PLAN, "");
}

void tide__edit(tide__turn *t, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_edit edit;
    if (!has_plan(t)) return;
    if (tide_edit_parse(text, &edit, &err) != TIDE_OK) {
        tide__turn_fail(t, &err);
        return;
    }
    add_edit(t, &edit);
}

void tide__apply(tide__turn *t) {
    const tide_tui_scene *s = t->scene;
    if (!has_plan(t)) return;
    if (s == NULL || s->n_advice == 0) {
        tide_tui_say(t->st, false, "there is no advice here: the view 'peak' (key 3) has it");
        return;
    }
    add_edit(t, &s->advice[tide_tui_pane_row(s, TIDE_TUI_PANE_WHATIF)].edit);
}

void tide__undo(tide__turn *t) {
    if (t->st->n_edits == 0) {
        tide_tui_say(t->st, false, "there is no edit to take back");
        return;
    }
    t->st->n_edits--;
    tide__turn_effect(t, TIDE_TUI_EFFECT_PLAN, "");
}

// ---- the selection ----

void tide__copy(tide__turn *t) {
    tide_text text = {0};
    if (t->scene != NULL) tide_tui_speak_selection(t->scene, t->st->focus, &text);
    if (text.len == 0) {
        tide_tui_say(t->st, false, "nothing is selected here");
    } else {
        tide__turn_effect(t, TIDE_TUI_EFFECT_COPY, tide_text_str(&text));
    }
    tide_text_deinit(&text);
}

// ---- settings ----

/// "on", "off", "" (the other of both). False: neither.
static bool read_switch(const char *value, bool now, bool *out) {
    static const char *const words[] = {"off", "on", "no", "yes", "0", "1", "false", "true"};
    *out = !now;
    if (*value == 0) return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(words[i], value) != 0) continue;
        *out = i % 2 == 1;
        return true;
    }
    return false;
}

static void set_switch(tide__turn *t, tide_tui_setting setting, const char *value) {
    tide_tui_state *st = t->st;
    bool now = false, to;
    if (setting == TIDE_TUI_SETTING_REVERSE) now = st->reverse;
    if (setting == TIDE_TUI_SETTING_PERSISTENT) now = !st->hides_persistent;
    if (setting == TIDE_TUI_SETTING_FILTERS) now = !st->filters_off;
    if (setting == TIDE_TUI_SETTING_FOLLOW) now = st->follows;
    if (setting == TIDE_TUI_SETTING_MOUSE) now = st->mouse;
    if (!read_switch(value, now, &to)) {
        tide_tui_say(st, true, "%s is on or off, not '%s'", tide_tui_setting_name(setting), value);
        return;
    }
    if (to == now) return;
    if (setting == TIDE_TUI_SETTING_FOLLOW) {
        tide__turn_do(t, TIDE_TUI_FOLLOW);
    } else if (setting == TIDE_TUI_SETTING_MOUSE) {
        st->mouse = to;
        tide__turn_effect(t, TIDE_TUI_EFFECT_MOUSE, "");
    } else {
        if (setting == TIDE_TUI_SETTING_REVERSE) st->reverse = to;
        if (setting == TIDE_TUI_SETTING_PERSISTENT) st->hides_persistent = !to;
        if (setting == TIDE_TUI_SETTING_FILTERS) st->filters_off = !to;
        tide__rows_changed(t);
    }
}

static void set_capacity(tide__turn *t, const char *value) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes = 0;
    if (*value == 0) {
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "set capacity ");
    } else if (strcasecmp(value, "none") != 0 && tide_parse_bytes(value, &bytes, &err) != TIDE_OK) {
        tide__turn_fail(t, &err);
    } else {
        t->st->capacity_bytes = bytes;
    }
}

static void set_one(tide__turn *t, tide_tui_setting setting, const char *value) {
    if (setting == TIDE_TUI_SETTING_CAPACITY) {
        set_capacity(t, value);
    } else if (setting == TIDE_TUI_SETTING_SORT) {
        tide__turn_command(t, TIDE_TUI_SORT, value);
    } else if (setting == TIDE_TUI_SETTING_GROUP) {
        tide__turn_command(t, TIDE_TUI_GROUP, value);
    } else if (setting == TIDE_TUI_SETTING_KIND) {
        tide__turn_command(t, TIDE_TUI_KIND, value);
    } else {
        set_switch(t, setting, value);
    }
}

void tide__toggle_setting(tide__turn *t, tide_tui_setting setting) { set_one(t, setting, ""); }

void tide__set(tide__turn *t, const char *name, const char *value) {
    const char *names[TIDE_TUI_N_SETTINGS];
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
        names[i] = tide_tui_setting_name((tide_tui_setting)i);
        if (strcasecmp(names[i], name) != 0) continue;
        set_one(t, (tide_tui_setting)i, value);
        return;
    }
    const char *near = tide_nearest_of(name, names, TIDE_TUI_N_SETTINGS);
    tide_tui_say(t->st, true, "there is no setting '%s'%s%s%s", name, near != NULL ? ": did you mean " : "",
                 near != NULL ? near : "", near != NULL ? "?" : "");
}

// ---- back ----

static bool is_busy(const tide__turn *t) {
    for (int i = 0; t->scene != NULL && i < TIDE_TUI_N_PANES; i++) {
        if (t->scene->busy[i][0] != 0) return true;
    }
    return false;
}

/// One step back; false: there is none.
static bool go_back(tide__turn *t) {
    tide_tui_state *st = t->st;
    if (st->prompt != TIDE_TUI_PROMPT_NONE) {
        tide__close_prompt(t);
    } else if (st->overlay != TIDE_TUI_OVERLAY_NONE) {
        const bool was_setup = st->overlay == TIDE_TUI_OVERLAY_SETUP;
        st->overlay = TIDE_TUI_OVERLAY_NONE;
        st->overlay_top = 0;
        if (was_setup && t->result.effect == TIDE_TUI_EFFECT_NONE) {
            tide__turn_effect(t, TIDE_TUI_EFFECT_SAVE_STATE, "");
        }
    } else if (st->shows_range) {
        st->shows_range = st->range_follows = false;
    } else if (!tide__close_group(t)) {
        return false;
    }
    return true;
}

void tide__back(tide__turn *t) {
    tide_tui_state *st = t->st;
    if (go_back(t)) return;
    if (is_busy(t)) {
        tide__turn_effect(t, TIDE_TUI_EFFECT_CANCEL, "");
    } else if (st->has_a_moment || st->has_b_moment) {
        st->has_a_moment = st->has_b_moment = st->compares_moments = false;
        if (st->b == st->a) st->b = NULL;
        tide_tui_say(st, false, "moments A and B are dropped");
    } else if (st->search[0] != 0) {
        st->search[0] = 0;
        tide_tui_say(st, false, "search ended");
    } else {
        tide_tui_say(st, false, "nothing to go back from: q quits");
    }
}

void tide__quit(tide__turn *t) {
    if (!go_back(t)) t->result.flags |= TIDE_TUI_LEAVE;
}
