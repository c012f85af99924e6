// SPDX-License-Identifier: MIT
//
// The table of actions: which function does what a key or a command means. See actions.h.
#include "tui/actions.h"

#include "core/base/assert.h"
#include "tui/actions_internal.h"

// ---- small actions ----

static void move_row(tide__action *act, int by) { tide__move_rows(act, by); }
/// In the tree of call stacks left and right close and open.
static void move_aside(tide__action *act, int sign) {
    if (act->st->focus == TIDE_TUI_PANE_STACKS)
        tide__step_in_stacks(act, sign);
    else
        tide__move_cursor(act, sign);
}
static void move_to_end(tide__action *act, int sign) { tide__move_rows(act, sign < 0 ? INT64_MIN : INT64_MAX); }
static void zoom_at_cursor(tide__action *act, int in) { tide__zoom(act, in != 0, act->st->cursor); }
static void zoom_space(tide__action *act, int in) { tide__zoom_space(act, in != 0); }
static void show_preset(tide__action *act, int preset) { tide__set_preset(act, (tide_tui_preset)preset); }
static void set_compared(tide__action *act, int is_b) { tide__set_compared(act, is_b != 0); }
static void show_alive(tide__action *act) {
    if (!act->st->is_opening) {
        tide__toggle_filter(act, "alive@cursor");
        return;
    }
    tide__rows_changed(act);
    tide_tui_say(act->st, false, "all rows; again: only what is alive at the cursor");
}
static void jump_to_next(tide__action *act) { tide__jump(act, 0); }
static void repaint(tide__action *act) { act->result.flags |= TIDE_TUI_REPAINT; }

static void show_comparison(tide__action *act) {
    tide__set_preset(act, TIDE_TUI_PRESET_COMPARISON);
    if (act->st->b == NULL)
        tide_tui_say(act->st, false, "no B yet: A and B at two moments, :compare FILE, or an edit (E)");
}

static void switch_filters(tide__action *act) {
    tide_tui_state *st = act->st;
    if (st->n_filters == 0) {
        tide_tui_say(st, false, "there is no filter: \\ adds one");
        return;
    }
    st->filters_off = !st->filters_off;
    tide__rows_changed(act);
}

static void switch_persistent(tide__action *act) {
    act->st->hides_persistent = !act->st->hides_persistent;
    tide__rows_changed(act);
}

static void switch_weights(tide__action *act) {
    const uint64_t bytes = tide_tui_weights_bytes(tide_subject_get_facts(act->st->a));
    char size[32];
    if (bytes == 0) {
        tide_tui_say(act->st, false, "there are no weights: nothing is Persistent");
        return;
    }
    const bool is_opening = act->st->is_opening;
    act->st->folds_weights = !act->st->folds_weights;
    tide__rows_changed(act);
    act->st->is_opening = is_opening;
    tide_tui_say(act->st, false, "%s of weights are %s", tide_format_bytes(bytes, size, sizeof size),
                 act->st->folds_weights ? "folded away in curve, rows and bound" : "shown");
}

static void add_mark(tide__action *act) {
    if (tide__mark(act, 0, "")) tide__open_prompt(act, TIDE_TUI_PROMPT_NOTE, "");
}

/// What only a recording has.
static void switch_live(tide__action *act, bool *flag, const char *on, const char *off) {
    if (!act->st->is_recording) {
        tide_tui_say(act->st, false, "nothing is being recorded");
        return;
    }
    *flag = !*flag;
    tide_tui_say(act->st, false, "%s", *flag ? on : off);
}

static void switch_pause(tide__action *act) {
    switch_live(act, &act->st->is_paused, "held: data goes on, the view stays", "going on");
}

static void switch_follow(tide__action *act) {
    switch_live(act, &act->st->follows, "the newest stays in view", "the view stays where it is");
}

static void switch_mouse(tide__action *act) {
    tide_tui_state *st = act->st;
    st->mouse = !st->mouse;
    tide_tui_say(st, false,
                 st->mouse ? "the mouse is the view's" : "the mouse is the terminal's: text can be selected");
    tide__action_effect(act, TIDE_TUI_EFFECT_MOUSE, "");
}

static void open_overlay(tide__action *act, int overlay) {
    act->st->overlay = (tide_tui_overlay)overlay;
    act->st->overlay_top = 0;
}

// ---- back ----

static bool is_busy(const tide__action *act) {
    for (int i = 0; act->scene != NULL && i < TIDE_TUI_N_PANES; i++) {
        if (act->scene->busy[i][0] != 0) return true;
    }
    return false;
}

/// One step back; false: there is none.
static bool go_back(tide__action *act) {
    tide_tui_state *st = act->st;
    if (st->prompt != TIDE_TUI_PROMPT_NONE) {
        tide__close_prompt(act);
    } else if (st->overlay != TIDE_TUI_OVERLAY_NONE) {
        const bool was_setup = st->overlay == TIDE_TUI_OVERLAY_SETUP;
        st->overlay = TIDE_TUI_OVERLAY_NONE;
        st->overlay_top = 0;
        if (was_setup && act->result.effect == TIDE_TUI_EFFECT_NONE) {
            tide__action_effect(act, TIDE_TUI_EFFECT_SAVE_STATE, "");
        }
    } else if (st->shows_range) {
        st->shows_range = st->range_follows = false;
    } else if (!tide__close_group(act)) {
        return false;
    }
    return true;
}

static void back(tide__action *act) {
    tide_tui_state *st = act->st;
    if (go_back(act)) return;
    if (is_busy(act)) {
        tide__action_effect(act, TIDE_TUI_EFFECT_CANCEL, "");
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

static void quit(tide__action *act) {
    if (!go_back(act)) act->result.flags |= TIDE_TUI_LEAVE;
}

// ---- the table ----

/// What an action does: one of these.
typedef struct entry {
    void (*run)(tide__action *act);
    void (*run_with)(tide__action *act, int number);
    int number;
    tide_tui_prompt prompt; ///< opens it
    const char *text;       ///< in the prompt; NULL: ""
    tide_tui_effect effect; ///< is left to the caller
} entry;

#define COMMAND(words)                                                                                                 \
    { .prompt = TIDE_TUI_PROMPT_COMMAND, .text = (words) }

static const entry table[TIDE_TUI_N_ACTIONS] = {
    [TIDE_TUI_ROW_UP] = {.run_with = move_row, .number = -1},
    [TIDE_TUI_ROW_DOWN] = {.run_with = move_row, .number = 1},
    [TIDE_TUI_PAGE_BACK] = {.run_with = tide__move_page, .number = -1},
    [TIDE_TUI_PAGE_ON] = {.run_with = tide__move_page, .number = 1},
    [TIDE_TUI_FIRST] = {.run_with = move_to_end, .number = -1},
    [TIDE_TUI_LAST] = {.run_with = move_to_end, .number = 1},
    [TIDE_TUI_TIME_LEFT] = {.run_with = move_aside, .number = -1},
    [TIDE_TUI_TIME_RIGHT] = {.run_with = move_aside, .number = 1},
    [TIDE_TUI_PREVIOUS_CHANGE] = {.run_with = tide__next_change, .number = -1},
    [TIDE_TUI_NEXT_CHANGE] = {.run_with = tide__next_change, .number = 1},
    [TIDE_TUI_PREVIOUS_ITEM] = {.run_with = tide__next_item, .number = -1},
    [TIDE_TUI_NEXT_ITEM] = {.run_with = tide__next_item, .number = 1},
    [TIDE_TUI_PEAK] = {.run_with = tide__next_peak, .number = 1},
    [TIDE_TUI_PREVIOUS_PEAK] = {.run_with = tide__next_peak, .number = -1},
    [TIDE_TUI_HIGHEST] = {.run = tide__highest},
    [TIDE_TUI_PREVIOUS_RUN] = {.run_with = tide__next_run, .number = -1},
    [TIDE_TUI_NEXT_RUN] = {.run_with = tide__next_run, .number = 1},
    [TIDE_TUI_RUN] = COMMAND("run "),
    [TIDE_TUI_GOTO] = {.prompt = TIDE_TUI_PROMPT_GOTO},
    [TIDE_TUI_ZOOM_IN] = {.run_with = zoom_at_cursor, .number = true},
    [TIDE_TUI_ZOOM_OUT] = {.run_with = zoom_at_cursor, .number = false},
    [TIDE_TUI_PAN_LEFT] = {.run_with = tide__pan_half, .number = -1},
    [TIDE_TUI_PAN_RIGHT] = {.run_with = tide__pan_half, .number = 1},
    [TIDE_TUI_WHOLE] = {.run = tide__show_whole},
    [TIDE_TUI_FIT] = {.run = tide__fit},
    [TIDE_TUI_SPACE_IN] = {.run_with = zoom_space, .number = true},
    [TIDE_TUI_SPACE_OUT] = {.run_with = zoom_space, .number = false},
    [TIDE_TUI_NEXT_PANE] = {.run_with = tide__next_pane, .number = 1},
    [TIDE_TUI_PREVIOUS_PANE] = {.run_with = tide__next_pane, .number = -1},
    [TIDE_TUI_PANE] = COMMAND("pane "),
    [TIDE_TUI_VIEW_1] = {.run_with = show_preset, .number = TIDE_TUI_PRESET_LIFETIMES},
    [TIDE_TUI_VIEW_2] = {.run_with = show_preset, .number = TIDE_TUI_PRESET_MEMORY},
    [TIDE_TUI_VIEW_3] = {.run_with = show_preset, .number = TIDE_TUI_PRESET_PEAK},
    [TIDE_TUI_VIEW_4] = {.run_with = show_preset, .number = TIDE_TUI_PRESET_ALLOCATORS},
    [TIDE_TUI_VIEW_5] = {.run = show_comparison},
    [TIDE_TUI_VIEW_6] = {.run_with = show_preset, .number = TIDE_TUI_PRESET_STACKS},
    [TIDE_TUI_REQUEST] = COMMAND("request "),
    [TIDE_TUI_KIND] = {.run = tide__next_kind},
    [TIDE_TUI_BANDS] = {.run = tide__next_bands},
    [TIDE_TUI_WEIGHTS] = {.run = switch_weights},
    [TIDE_TUI_SEARCH] = {.prompt = TIDE_TUI_PROMPT_SEARCH},
    [TIDE_TUI_NEXT_MATCH] = {.run_with = tide__next_match, .number = 1},
    [TIDE_TUI_PREVIOUS_MATCH] = {.run_with = tide__next_match, .number = -1},
    [TIDE_TUI_ALIKE] = {.run = tide__alike},
    [TIDE_TUI_FILTER] = {.prompt = TIDE_TUI_PROMPT_FILTER},
    [TIDE_TUI_FILTERS_OFF] = {.run = switch_filters},
    [TIDE_TUI_ALIVE] = {.run = show_alive},
    [TIDE_TUI_PERSISTENT] = {.run = switch_persistent},
    [TIDE_TUI_SORT] = {.run = tide__next_sort},
    [TIDE_TUI_REVERSE] = {.run = tide__reverse},
    [TIDE_TUI_GROUP] = {.run = tide__next_group},
    [TIDE_TUI_OPEN] = {.run = tide__open},
    [TIDE_TUI_CLOSE_ALL] = {.run = tide__close_stacks},
    [TIDE_TUI_ROOT] = {.run = tide__root_stacks},
    [TIDE_TUI_RANGE] = {.run = tide__toggle_range},
    [TIDE_TUI_MARK] = {.run = add_mark},
    [TIDE_TUI_JUMP] = {.run = jump_to_next},
    [TIDE_TUI_SET_A] = {.run_with = set_compared, .number = false},
    [TIDE_TUI_SET_B] = {.run_with = set_compared, .number = true},
    [TIDE_TUI_EDIT] = COMMAND("edit "),
    [TIDE_TUI_APPLY] = {.run = tide__apply},
    [TIDE_TUI_UNDO] = {.run = tide__undo},
    [TIDE_TUI_SAVE_PLAN] = COMMAND("save-plan "),
    [TIDE_TUI_COPY] = {.run = tide__copy},
    [TIDE_TUI_EXPORT] = COMMAND("export "),
    [TIDE_TUI_SQL] = {.effect = TIDE_TUI_EFFECT_SQL},
    [TIDE_TUI_BATCH] = {.effect = TIDE_TUI_EFFECT_BATCH},
    [TIDE_TUI_PAUSE] = {.run = switch_pause},
    [TIDE_TUI_FOLLOW] = {.run = switch_follow},
    [TIDE_TUI_COMMAND] = COMMAND(""),
    [TIDE_TUI_HELP] = {.run_with = open_overlay, .number = TIDE_TUI_OVERLAY_HELP},
    [TIDE_TUI_MOUSE] = {.run = switch_mouse},
    [TIDE_TUI_SETUP] = {.run_with = open_overlay, .number = TIDE_TUI_OVERLAY_SETUP},
    [TIDE_TUI_SET] = COMMAND("set "),
    [TIDE_TUI_MESSAGES] = {.effect = TIDE_TUI_EFFECT_MESSAGES},
    [TIDE_TUI_RESET] = {.run = tide__reset},
    [TIDE_TUI_REDRAW] = {.run = repaint},
    [TIDE_TUI_BACK] = {.run = back},
    [TIDE_TUI_QUIT] = {.run = quit},
};

#undef COMMAND

void tide__action_do(tide__action *act, tide_tui_action action) {
    TIDE_ASSERT(action >= TIDE_TUI_NOTHING && action < TIDE_TUI_N_ACTIONS);
    const entry *e = &table[action];
    if (e->run != NULL) {
        e->run(act);
    } else if (e->run_with != NULL) {
        e->run_with(act, e->number);
    } else if (e->prompt != TIDE_TUI_PROMPT_NONE) {
        tide__open_prompt(act, e->prompt, e->text != NULL ? e->text : "");
    } else if (e->effect != TIDE_TUI_EFFECT_NONE) {
        tide__action_effect(act, e->effect, "");
    } else {
        act->result.flags &= ~(unsigned)TIDE_TUI_HANDLED;
    }
}

tide_tui_result tide_tui_do(tide_tui_state *st, const tide_tui_scene *scene, tide_tui_action action) {
    tide__action act = tide__action_begin(st, scene);
    st->click_x = st->click_y = -1;
    tide__action_do(&act, action);
    return tide__action_end(&act);
}
