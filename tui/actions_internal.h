// SPDX-License-Identifier: MIT
//
// What the files of actions share. Calls go from the last of them to the first:
//
//     actions_base.c  what all of them use     actions_rows.c  rows, panes, search, filters
//     actions_axis.c  time and addresses       actions.c       the table of actions
//     actions_run.c   executions               actions_stacks.c  call stacks
//     actions_mark.c  ranges, marks, edits     commands.c      lines behind ':'      input.c  keys, mouse
#ifndef TIDE_TUI_ACTIONS_INTERNAL_H
#define TIDE_TUI_ACTIONS_INTERNAL_H

#include "tui/actions.h"

/// One action while it is performed: the state that it changes, the scene that the person saw, and the result so far.
typedef struct tide__action {
    tide_tui_state *st;
    const tide_tui_scene *scene; ///< may be NULL: nothing has been drawn yet
    tide_tui_result result;
} tide__action;

// ---- actions_base.c ----

tide__action tide__action_begin(tide_tui_state *st, const tide_tui_scene *scene);
/// Settles the state.
tide_tui_result tide__action_end(tide__action *act);
void tide__action_effect(tide__action *act, tide_tui_effect effect, const char *text);
/// An error in the bottom line, with its hint.
void tide__action_fail(tide__action *act, const tide_error *err);
void tide__open_prompt(tide__action *act, tide_tui_prompt prompt, const char *text);
void tide__close_prompt(tide__action *act);
/// Rows must be made anew.
void tide__rows_changed(tide__action *act);
void tide__select_item(tide__action *act, uint32_t item);

/// First word of `*text` into `buf`; `*text` moves behind it and the blanks after it.
const char *tide__take_word(const char **text, char *buf, size_t buf_bytes);

// ---- actions_axis.c: time ----

/// Columns of the time axis on the screen, at least 1.
int tide__columns(const tide__action *act);
/// First moment of column `x` of the window.
int64_t tide__time_of_column(tide_tui_window w, int n, int x);
void tide__set_cursor(tide__action *act, int64_t at);
void tide__move_cursor(tide__action *act, int sign);
/// `at` keeps its column.
void tide__zoom(tide__action *act, bool in, int64_t at);
void tide__pan(tide__action *act, int sign, uint64_t by);
void tide__pan_half(tide__action *act, int sign);
/// The cursor there, and the window around it when it lies outside.
void tide__show_moment(tide__action *act, tide_moment m);
void tide__show_whole(tide__action *act);
void tide__fit(tide__action *act);
void tide__next_change(tide__action *act, int dir);
void tide__next_peak(tide__action *act, int dir);
void tide__highest(tide__action *act);
/// Step, time, event, address, name: see the help of the prompt.
void tide__go_to(tide__action *act, const char *text);
/// "12", "1.5ms": a moment of the axis. False with err for anything else.
bool tide__parse_time(const tide_subject_facts *f, const char *text, int64_t *out, tide_error *err);

// ---- actions_axis.c: addresses ----

/// The part of the address axis in view, and all of it; false: there is no such axis.
bool tide__space_window(const tide__action *act, tide_tui_window *view, tide_tui_window *whole);
void tide__set_space_cursor(tide__action *act, int64_t at);
void tide__move_space(tide__action *act, int64_t by_places);
void tide__zoom_space(tide__action *act, bool in);

// ---- actions_mark.c: ranges, marks, compared moments, edits of the plan ----

void tide__toggle_range(tide__action *act);
void tide__set_range(tide__action *act, int64_t from, int64_t to);
/// name 0: the next free letter. False: no room.
bool tide__mark(tide__action *act, char name, const char *text);
/// name 0: the next mark behind the cursor, round at the end.
void tide__jump(tide__action *act, char name);
/// These two moments of A are compared.
void tide__compare_moments(tide__action *act, tide_moment a, tide_moment b);
void tide__set_compared(tide__action *act, bool is_b);
void tide__reset(tide__action *act);
void tide__edit(tide__action *act, const char *text);
void tide__apply(tide__action *act);
void tide__undo(tide__action *act);
void tide__copy(tide__action *act);

// ---- actions_rows.c: rows, panes, search, filters ----

/// Row of the gantt, and its item.
void tide__select_row(tide__action *act, size_t row);
/// Row of another list, with what follows from it.
void tide__select_in_pane(tide__action *act, tide_tui_pane pane, size_t row);
/// By rows, or what moving means in the pane that has the focus.
void tide__move_rows(tide__action *act, int64_t by);
void tide__move_page(tide__action *act, int sign);
void tide__next_item(tide__action *act, int dir);
void tide__open(tide__action *act);
bool tide__close_group(tide__action *act);
void tide__next_group(tide__action *act);
void tide__set_group(tide__action *act, tide_row_group group);
void tide__next_pane(tide__action *act, int dir);
void tide__set_preset(tide__action *act, tide_tui_preset preset);
/// Kind, operator, tensor, off, kind, ...
void tide__next_bands(tide__action *act);
void tide__next_kind(tide__action *act);
void tide__search(tide__action *act, const char *regex);
void tide__next_match(tide__action *act, int dir);
void tide__alike(tide__action *act);
/// "": take the last one off. False: not understood; the error is shown.
bool tide__filter(tide__action *act, const char *text);
void tide__toggle_filter(tide__action *act, const char *text);

// ---- actions_stacks.c: the tree of call stacks ----

void tide__select_stack(tide__action *act, size_t row);
/// Opens the selected row, or closes it.
void tide__open_stack(tide__action *act);
/// dir > 0: opens it, or goes to the first row in it; else closes it, or goes to the row that it is in.
void tide__step_in_stacks(tide__action *act, int dir);
/// Nothing is open; again: what is heavy.
void tide__close_stacks(tide__action *act);
/// The selected call alone, with all that it called; again: all.
void tide__root_stacks(tide__action *act);
/// The heaviest call that matches alone.
void tide__root_stacks_named(tide__action *act, const char *expression);
/// To the next call that matches (dir < 0: the one before), which is opened.
void tide__search_stacks(tide__action *act, const char *expression, int dir);

// ---- actions_order.c: the order of rows, and of the list that has the focus ----

void tide__next_sort(tide__action *act);
void tide__reverse(tide__action *act);
/// "COLUMN" for the list that has the focus, "LIST COLUMN [reversed]" for any. @return false: rows are meant
bool tide__sort_as_told(tide__action *act, const char *text);
/// What may stand there for the list that has the focus. @return their number; 0: none has
size_t tide__sort_words(const tide__action *act, const char **words, size_t max);
/// The column as it is drawn; the same again turns the order round.
void tide__sort_by_column(tide__action *act, tide_tui_list list, int column);

// ---- actions.c ----

/// The action itself, whatever prompts and overlays are open.
void tide__action_do(tide__action *act, tide_tui_action action);

// ---- commands.c ----

/// A line behind ':'.
void tide__action_line(tide__action *act, const char *line);
/// The next value of a setting.
void tide__toggle_setting(tide__action *act, tide_tui_setting setting);

// ---- actions_run.c ----

/// To the begin of the next execution (dir > 0), or of the one before.
void tide__next_run(tide__action *act, int dir);
/// "12", "exec:12", "cold", "warm": that execution fills the window, the cursor is where most lives in it.
void tide__show_run(tide__action *act, const char *text);
/// "exec:12": the same; "exec:12:begin", ":end", ":peak", ":7", ":conv1": that moment of it, in the window as it is.
void tide__go_to_execution(tide__action *act, const char *text);
/// A step, by its index: in the execution that the cursor is in, else in the window, else in the first one.
void tide__show_step(tide__action *act, size_t step);
/// Would the selected pool serve so many bytes; "all": as many as it has free at the cursor.
void tide__request(tide__action *act, const char *text);
/// Where the selected pool is fragmented most within the window.
void tide__go_to_worst(tide__action *act);
/// Whether what is to be compared is two executions; and "exec:1 exec:12", "cold warm".
bool tide__names_runs(const char *text);
void tide__compare_runs(tide__action *act, const char *text);

#endif
