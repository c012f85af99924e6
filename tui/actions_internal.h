// SPDX-License-Identifier: MIT
//
// What the files of actions share. Calls go from the last of them to the first:
//
//     actions_turn.c  what all of them use     actions_rows.c  rows, panes, search, filters
//     actions_axis.c  time and addresses       actions.c       the table of actions
//     actions_mark.c  ranges, marks, edits     commands.c      lines behind ':'      input.c  keys, mouse
#ifndef TIDE_TUI_ACTIONS_INTERNAL_H
#define TIDE_TUI_ACTIONS_INTERNAL_H

#include "tui/actions.h"

/// One action while it is performed: the state that it changes, the scene that the person saw, and the result so far.
typedef struct tide__turn {
    tide_tui_state *st;
    const tide_tui_scene *scene; ///< may be NULL: nothing has been drawn yet
    tide_tui_result result;
} tide__turn;

// ---- actions_turn.c ----

tide__turn tide__turn_begin(tide_tui_state *st, const tide_tui_scene *scene);
/// Settles the state.
tide_tui_result tide__turn_end(tide__turn *t);
void tide__turn_effect(tide__turn *t, tide_tui_effect effect, const char *text);
/// An error in the bottom line, with its hint.
void tide__turn_fail(tide__turn *t, const tide_error *err);
void tide__open_prompt(tide__turn *t, tide_tui_prompt prompt, const char *text);
void tide__close_prompt(tide__turn *t);
/// Rows must be made anew.
void tide__rows_changed(tide__turn *t);
void tide__select_item(tide__turn *t, uint32_t item);

// ---- actions_axis.c: time ----

/// Columns of the time axis on the screen, at least 1.
int tide__columns(const tide__turn *t);
/// First moment of column `x` of the window.
int64_t tide__time_of_column(tide_tui_window w, int n, int x);
void tide__set_cursor(tide__turn *t, int64_t at);
void tide__move_cursor(tide__turn *t, int sign);
/// `at` keeps its column.
void tide__zoom(tide__turn *t, bool in, int64_t at);
void tide__pan(tide__turn *t, int sign, uint64_t by);
void tide__pan_half(tide__turn *t, int sign);
/// The cursor there, and the window around it when it lies outside.
void tide__show_moment(tide__turn *t, tide_moment m);
void tide__show_whole(tide__turn *t);
void tide__fit(tide__turn *t);
void tide__next_change(tide__turn *t, int dir);
void tide__next_peak(tide__turn *t, int dir);
void tide__highest(tide__turn *t);
/// Step, time, event, address, name: see the help of the prompt.
void tide__go_to(tide__turn *t, const char *text);
/// "12", "1.5ms": a moment of the axis. False with err for anything else.
bool tide__parse_time(const tide_subject_facts *f, const char *text, int64_t *out, tide_error *err);

// ---- actions_axis.c: addresses ----

/// The part of the address axis in view, and all of it; false: there is no such axis.
bool tide__space_window(const tide__turn *t, tide_tui_window *view, tide_tui_window *whole);
void tide__set_space_cursor(tide__turn *t, int64_t at);
void tide__move_space(tide__turn *t, int64_t by_places);
void tide__zoom_space(tide__turn *t, bool in);

// ---- actions_mark.c: ranges, marks, compared moments, edits of the plan ----

void tide__toggle_range(tide__turn *t);
void tide__set_range(tide__turn *t, int64_t from, int64_t to);
/// name 0: the next free letter. False: no room.
bool tide__mark(tide__turn *t, char name, const char *text);
/// name 0: the next mark behind the cursor, round at the end.
void tide__jump(tide__turn *t, char name);
void tide__set_compared(tide__turn *t, bool is_b);
void tide__reset(tide__turn *t);
void tide__edit(tide__turn *t, const char *text);
void tide__apply(tide__turn *t);
void tide__undo(tide__turn *t);
void tide__copy(tide__turn *t);

// ---- actions_rows.c: rows, panes, search, filters ----

/// Row of the gantt, and its item.
void tide__select_row(tide__turn *t, size_t row);
/// Row of another list, with what follows from it.
void tide__select_in_pane(tide__turn *t, tide_tui_pane pane, size_t row);
/// By rows, or what moving means in the pane that has the focus.
void tide__move_rows(tide__turn *t, int64_t by);
void tide__move_page(tide__turn *t, int sign);
void tide__next_in_row(tide__turn *t, int dir);
void tide__open(tide__turn *t);
bool tide__close_group(tide__turn *t);
void tide__next_sort(tide__turn *t);
void tide__next_group(tide__turn *t);
void tide__set_group(tide__turn *t, tide_row_group group);
void tide__next_pane(tide__turn *t, int dir);
void tide__set_preset(tide__turn *t, tide_tui_preset preset);
void tide__next_kind(tide__turn *t);
void tide__search(tide__turn *t, const char *regex);
void tide__next_match(tide__turn *t, int dir);
void tide__alike(tide__turn *t);
/// "": take the last one off. False: not understood, which is said.
bool tide__filter(tide__turn *t, const char *text);
void tide__toggle_filter(tide__turn *t, const char *text);

// ---- actions.c ----

/// The action itself, whatever prompts and overlays are open.
void tide__turn_do(tide__turn *t, tide_tui_action action);

// ---- commands.c ----

/// A line behind ':'.
void tide__turn_line(tide__turn *t, const char *line);
/// The next value of a setting.
void tide__toggle_setting(tide__turn *t, tide_tui_setting setting);

#endif
