// SPDX-License-Identifier: MIT
//
// From a key to what it does. See actions.h.
//
//     key -> prompt: text
//         -> overlay: scrolls, closes
//         -> action -> state, flags, effect
#include "tui/actions.h"

#include <stdio.h>

#include "tui/actions_internal.h"

tide__turn tide__turn_begin(tide_tui_state *st, const tide_tui_scene *scene) {
    st->message[0] = 0;
    st->message_is_error = false;
    st->seq++;
    return (tide__turn){st, scene, {.flags = TIDE_TUI_HANDLED | TIDE_TUI_REDRAWN}};
}

tide_tui_result tide__turn_end(tide__turn *t) {
    tide__draw_range(t);
    tide_tui_state_settle(t->st);
    return t->result;
}

void tide__turn_effect(tide__turn *t, tide_tui_effect effect, const char *text) {
    t->result.flags |= TIDE_TUI_EFFECT;
    t->result.effect = effect;
    (void)snprintf(t->result.text, sizeof t->result.text, "%s", text);
}

void tide__turn_fail(tide__turn *t, const tide_error *err) {
    const char *more = err->hint[0] != 0 ? err->hint : err->note;
    tide_tui_say(t->st, true, "%s%s%s%s%s", err->where, err->where[0] != 0 ? ": " : "", err->msg,
                 more[0] != 0 ? "; " : "", more);
}

// ---- groups of actions; each says whether the action is one of its own ----

static bool do_move(tide__turn *t, tide_tui_action action) {
    switch (action) {
    case TIDE_TUI_ROW_UP:
    case TIDE_TUI_ROW_DOWN:
        tide__move_rows(t, action == TIDE_TUI_ROW_UP ? -1 : 1);
        return true;
    case TIDE_TUI_PAGE_BACK:
    case TIDE_TUI_PAGE_ON:
        tide__move_page(t, action == TIDE_TUI_PAGE_BACK ? -1 : 1);
        return true;
    case TIDE_TUI_FIRST:
    case TIDE_TUI_LAST:
        tide__move_rows(t, action == TIDE_TUI_FIRST ? INT64_MIN : INT64_MAX);
        return true;
    case TIDE_TUI_TIME_LEFT:
    case TIDE_TUI_TIME_RIGHT:
        tide__move_cursor(t, action == TIDE_TUI_TIME_LEFT ? -1 : 1);
        return true;
    case TIDE_TUI_PREVIOUS_CHANGE:
    case TIDE_TUI_NEXT_CHANGE:
        tide__next_change(t, action == TIDE_TUI_PREVIOUS_CHANGE ? -1 : 1);
        return true;
    case TIDE_TUI_PREVIOUS_IN_ROW:
    case TIDE_TUI_NEXT_IN_ROW:
        tide__next_in_row(t, action == TIDE_TUI_PREVIOUS_IN_ROW ? -1 : 1);
        return true;
    case TIDE_TUI_PEAK:
    case TIDE_TUI_PREVIOUS_PEAK:
        tide__next_peak(t, action == TIDE_TUI_PREVIOUS_PEAK ? -1 : 1);
        return true;
    case TIDE_TUI_HIGHEST:
        tide__highest(t);
        return true;
    case TIDE_TUI_GOTO:
        tide__open_prompt(t, TIDE_TUI_PROMPT_GOTO, "");
        return true;
    default:
        return false;
    }
}

static bool do_zoom(tide__turn *t, tide_tui_action action) {
    switch (action) {
    case TIDE_TUI_ZOOM_IN:
    case TIDE_TUI_ZOOM_OUT:
        tide__zoom(t, action == TIDE_TUI_ZOOM_IN, t->st->cursor);
        return true;
    case TIDE_TUI_PAN_LEFT:
    case TIDE_TUI_PAN_RIGHT:
        tide__pan_half(t, action == TIDE_TUI_PAN_LEFT ? -1 : 1);
        return true;
    case TIDE_TUI_WHOLE:
        tide__show_whole(t);
        return true;
    case TIDE_TUI_FIT:
        tide__fit(t);
        return true;
    case TIDE_TUI_SPACE_IN:
    case TIDE_TUI_SPACE_OUT:
        tide__zoom_space(t, action == TIDE_TUI_SPACE_IN);
        return true;
    default:
        return false;
    }
}

static bool do_view(tide__turn *t, tide_tui_action action) {
    switch (action) {
    case TIDE_TUI_NEXT_PANE:
    case TIDE_TUI_PREVIOUS_PANE:
        tide__next_pane(t, action == TIDE_TUI_NEXT_PANE ? 1 : -1);
        return true;
    case TIDE_TUI_PANE:
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "pane ");
        return true;
    case TIDE_TUI_VIEW_1:
    case TIDE_TUI_VIEW_2:
    case TIDE_TUI_VIEW_3:
    case TIDE_TUI_VIEW_4:
        tide__set_preset(t, (tide_tui_preset)(action - TIDE_TUI_VIEW_1));
        return true;
    case TIDE_TUI_VIEW_5:
        tide__set_preset(t, TIDE_TUI_PRESET_COMPARISON);
        if (t->st->b == NULL) {
            tide_tui_say(t->st, false, "no B yet: A and B at two moments, :compare FILE, or an edit (E)");
        }
        return true;
    case TIDE_TUI_KIND:
        tide__next_kind(t);
        return true;
    default:
        return false;
    }
}

static bool do_find(tide__turn *t, tide_tui_action action) {
    tide_tui_state *st = t->st;
    switch (action) {
    case TIDE_TUI_SEARCH:
        tide__open_prompt(t, TIDE_TUI_PROMPT_SEARCH, "");
        return true;
    case TIDE_TUI_NEXT_MATCH:
    case TIDE_TUI_PREVIOUS_MATCH:
        tide__next_match(t, action == TIDE_TUI_NEXT_MATCH ? 1 : -1);
        return true;
    case TIDE_TUI_ALIKE:
        tide__alike(t);
        return true;
    case TIDE_TUI_FILTER:
        tide__open_prompt(t, TIDE_TUI_PROMPT_FILTER, "");
        return true;
    case TIDE_TUI_FILTERS_OFF:
        if (st->n_filters == 0) {
            tide_tui_say(st, false, "there is no filter: \\ adds one");
            return true;
        }
        st->filters_off = !st->filters_off;
        tide__rows_changed(t);
        return true;
    case TIDE_TUI_ALIVE:
        tide__toggle_filter(t, "alive@cursor");
        return true;
    case TIDE_TUI_PERSISTENT:
        st->hides_persistent = !st->hides_persistent;
        tide__rows_changed(t);
        return true;
    case TIDE_TUI_SORT:
        tide__next_sort(t);
        return true;
    case TIDE_TUI_REVERSE:
        st->reverse = !st->reverse;
        tide__rows_changed(t);
        return true;
    case TIDE_TUI_GROUP:
        tide__next_group(t);
        return true;
    case TIDE_TUI_OPEN:
        tide__open(t);
        return true;
    default:
        return false;
    }
}

static bool do_mark(tide__turn *t, tide_tui_action action) {
    switch (action) {
    case TIDE_TUI_RANGE:
        tide__toggle_range(t);
        return true;
    case TIDE_TUI_MARK:
        if (tide__mark(t, 0, "")) tide__open_prompt(t, TIDE_TUI_PROMPT_NOTE, "");
        return true;
    case TIDE_TUI_JUMP:
        tide__jump(t, 0);
        return true;
    case TIDE_TUI_SET_A:
    case TIDE_TUI_SET_B:
        tide__set_compared(t, action == TIDE_TUI_SET_B);
        return true;
    case TIDE_TUI_EDIT:
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "edit ");
        return true;
    case TIDE_TUI_APPLY:
        tide__apply(t);
        return true;
    case TIDE_TUI_UNDO:
        tide__undo(t);
        return true;
    case TIDE_TUI_SAVE_PLAN:
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "save-plan ");
        return true;
    default:
        return false;
    }
}

/// What only a recording has.
static void do_live(tide__turn *t, bool *flag, const char *on, const char *off) {
    if (!t->st->is_recording) {
        tide_tui_say(t->st, false, "nothing is being recorded");
        return;
    }
    *flag = !*flag;
    tide_tui_say(t->st, false, "%s", *flag ? on : off);
}

static bool do_out(tide__turn *t, tide_tui_action action) {
    switch (action) {
    case TIDE_TUI_COPY:
        tide__copy(t);
        return true;
    case TIDE_TUI_EXPORT:
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "export ");
        return true;
    case TIDE_TUI_SQL:
        tide__turn_effect(t, TIDE_TUI_EFFECT_SQL, "");
        return true;
    case TIDE_TUI_BATCH:
        tide__turn_effect(t, TIDE_TUI_EFFECT_BATCH, "");
        return true;
    case TIDE_TUI_PAUSE:
        do_live(t, &t->st->is_paused, "held: data goes on, the view stays", "going on");
        return true;
    case TIDE_TUI_FOLLOW:
        do_live(t, &t->st->follows, "the newest stays in view", "the view stays where it is");
        return true;
    default:
        return false;
    }
}

static void do_other(tide__turn *t, tide_tui_action action) {
    tide_tui_state *st = t->st;
    switch (action) {
    case TIDE_TUI_COMMAND:
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "");
        break;
    case TIDE_TUI_HELP:
    case TIDE_TUI_SETUP:
        st->overlay = action == TIDE_TUI_HELP ? TIDE_TUI_OVERLAY_HELP : TIDE_TUI_OVERLAY_SETUP;
        st->overlay_top = 0;
        break;
    case TIDE_TUI_MOUSE:
        st->mouse = !st->mouse;
        tide_tui_say(st, false,
                     st->mouse ? "the mouse is the view's" : "the mouse is the terminal's: text can be selected");
        tide__turn_effect(t, TIDE_TUI_EFFECT_MOUSE, "");
        break;
    case TIDE_TUI_SET:
        tide__open_prompt(t, TIDE_TUI_PROMPT_COMMAND, "set ");
        break;
    case TIDE_TUI_MESSAGES:
        tide__turn_effect(t, TIDE_TUI_EFFECT_MESSAGES, "");
        break;
    case TIDE_TUI_RESET:
        tide__reset(t);
        break;
    case TIDE_TUI_REDRAW:
        t->result.flags |= TIDE_TUI_REPAINT;
        break;
    case TIDE_TUI_BACK:
        tide__back(t);
        break;
    case TIDE_TUI_QUIT:
        tide__quit(t);
        break;
    default:
        t->result.flags &= ~(unsigned)TIDE_TUI_HANDLED;
        break;
    }
}

void tide__turn_do(tide__turn *t, tide_tui_action action) {
    if (do_move(t, action) || do_zoom(t, action) || do_view(t, action) || do_find(t, action)) return;
    if (do_mark(t, action) || do_out(t, action)) return;
    do_other(t, action);
}

tide_tui_result tide_tui_do(tide_tui_state *st, const tide_tui_scene *scene, tide_tui_action action) {
    tide__turn t = tide__turn_begin(st, scene);
    st->click_x = st->click_y = -1;
    tide__turn_do(&t, action);
    return tide__turn_end(&t);
}

/// While an overlay is open, only what it understands, and what closes it.
static void press_in_overlay(tide__turn *t, tide_tui_action action) {
    if (tide__do_in_overlay(t, action)) return;
    const bool is_known = action == TIDE_TUI_BACK || action == TIDE_TUI_QUIT || action == TIDE_TUI_REDRAW ||
                          action == TIDE_TUI_HELP || action == TIDE_TUI_SETUP || action == TIDE_TUI_COMMAND ||
                          action == TIDE_TUI_MOUSE;
    if (is_known) {
        tide__turn_do(t, action);
    } else {
        t->result.flags &= ~(unsigned)TIDE_TUI_HANDLED;
    }
}

tide_tui_result tide_tui_press(tide_tui_state *st, const tide_tui_scene *scene, uint32_t key) {
    tide__turn t = tide__turn_begin(st, scene);
    st->click_x = st->click_y = -1;
    const tide_tui_action action = tide_tui_action_of(key);
    if (st->prompt != TIDE_TUI_PROMPT_NONE) {
        tide__press_in_prompt(&t, key);
    } else if (st->overlay != TIDE_TUI_OVERLAY_NONE) {
        press_in_overlay(&t, action);
    } else {
        tide__turn_do(&t, action);
    }
    return tide__turn_end(&t);
}
