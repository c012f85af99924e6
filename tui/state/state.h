// SPDX-License-Identifier: MIT
//
// state: what the user looks at: subjects, a window of time and a cursor in it, rows, a selection, filters, marks.
// Actions (tui/actions.h) change it. It queries no subject: that is done by tui/scene/scene.h.
//
//     key, mouse, command -> action -> state -> layout -> scene (queries) -> cells -> terminal | text
#ifndef TIDE_TUI_STATE_H
#define TIDE_TUI_STATE_H

#include "analysis/bands.h"
#include "analysis/rows.h"
#include "analysis/whatif.h"
#include "tui/state/axis.h"
#include "tui/state/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_tui_overlay {
    TIDE_TUI_OVERLAY_NONE,
    TIDE_TUI_OVERLAY_HELP,
    TIDE_TUI_OVERLAY_SQL,     ///< the SQL behind the pane that has the focus
    TIDE_TUI_OVERLAY_MESSAGE, ///< several lines: an error in full, the answer of a command
    TIDE_TUI_OVERLAY_SETUP,   ///< settings, saved on leaving
} tide_tui_overlay;

/// The line at the bottom that takes text.
typedef enum tide_tui_prompt {
    TIDE_TUI_PROMPT_NONE,
    TIDE_TUI_PROMPT_SEARCH,  ///< /
    TIDE_TUI_PROMPT_FILTER,  ///< backslash
    TIDE_TUI_PROMPT_COMMAND, ///< :
    TIDE_TUI_PROMPT_GOTO,    ///< g: step, time or address
    TIDE_TUI_PROMPT_NOTE,    ///< text of a mark
} tide_tui_prompt;
enum {
    TIDE_TUI_MAX_PROMPT = 512,
    TIDE_TUI_MAX_FILTERS = 8,
    TIDE_TUI_MAX_MARKS = 64,
    TIDE_TUI_MAX_EDITS = 32,
    TIDE_TUI_MAX_HISTORY = 8
};

/// What ":set NAME VALUE" and the setup know.
#define TIDE_TUI_SETTING_MAP(XX)                                                                                       \
    XX(CAPACITY, "capacity", "a line in the curve: bytes that there are")                                              \
    XX(SORT, "sort", "order of rows")                                                                                  \
    XX(REVERSE, "reverse", "order of rows turned round")                                                               \
    XX(GROUP, "group", "grouping of rows")                                                                             \
    XX(PERSISTENT, "persistent", "weights, inputs and outputs are shown")                                              \
    XX(FILTERS, "filters", "filters apply")                                                                            \
    XX(KIND, "kind", "kind of memory in the curve")                                                                    \
    XX(WEIGHTS, "weights", "weights are shown in curve, rows and bound")                                               \
    XX(BANDS, "bands", "what the curve is made of: kind, operator, pool, tensor, process, off")                        \
    XX(FOLLOW, "follow", "the newest stays in view (of a recording)")                                                  \
    XX(MOUSE, "mouse", "clicks and wheel are for the view")
typedef enum tide_tui_setting {
#define XX(name, text, what) TIDE_TUI_SETTING_##name,
    TIDE_TUI_SETTING_MAP(XX)
#undef XX
        TIDE_TUI_N_SETTINGS
} tide_tui_setting;
const char *tide_tui_setting_name(tide_tui_setting setting);
const char *tide_tui_setting_what(tide_tui_setting setting);

/// Lists whose rows can be put in the order of a column. The rows of GANTT have orders of their own.
#define TIDE_TUI_LIST_MAP(XX)                                                                                          \
    XX(TABLE, "table")                                                                                                 \
    XX(OPERATORS, "operators")                                                                                         \
    XX(POOLS, "pools")                                                                                                 \
    XX(LEAKS, "leaks")                                                                                                 \
    XX(COMPARE, "compare")                                                                                             \
    XX(WHATIF, "whatif")
typedef enum tide_tui_list {
#define XX(name, text) TIDE_TUI_LIST_##name,
    TIDE_TUI_LIST_MAP(XX)
#undef XX
        TIDE_TUI_N_LISTS
} tide_tui_list;
const char *tide_tui_list_name(tide_tui_list list);
/// The list that belongs to a pane; of POOLS the first of two. TIDE_TUI_N_LISTS: the pane has none.
tide_tui_list tide_tui_list_of(tide_tui_pane pane);
tide_tui_pane tide_tui_pane_of_list(tide_tui_list list);

enum { TIDE_TUI_MAX_COLUMN = 24, TIDE_TUI_MAX_SORTED = 500000 }; ///< longest key; most rows that are sorted
/// By which column a list is ordered: the key of the column, "": in its own order.
typedef struct tide_tui_list_order {
    char column[TIDE_TUI_MAX_COLUMN];
    bool reverse; ///< the other way round than the column begins: sizes with the largest, words with A
} tide_tui_list_order;

typedef struct tide_tui_mark {
    char name; ///< 'a' to 'z'; 0: from the trace
    tide_moment at;
    char text[64];
} tide_tui_mark;

enum { TIDE_TUI_MAX_FOLDS = 256 };
/// A row of the call tree that was opened or closed, by its key (analysis/call_tree.h); without one it is open where it
/// holds a tenth of what has a stack.
typedef struct tide_tui_fold {
    uint64_t key;
    bool is_open;
} tide_tui_fold;

typedef enum tide_tui_side { TIDE_TUI_A, TIDE_TUI_B } tide_tui_side;

typedef struct tide_tui_state {
    // ---- what is looked at ----
    tide_subject *a; ///< borrowed from the session; never NULL
    tide_subject *b; ///< the second input, the plan of a what-if, or a itself with two moments; NULL: none
    bool b_is_whatif;
    bool compares_moments;          ///< of a: a_moment and b_moment
    tide_moment a_moment, b_moment; ///< set by keys A and B
    bool has_a_moment, has_b_moment;
    uint64_t capacity_bytes;               ///< a line in the curve; 0: none
    uint64_t request_bytes;                ///< would a pool serve so many bytes; 0: not asked
    bool is_recording, is_paused, follows; ///< live: the tail stays in view; paused: data is taken in, the view stays

    // ---- view ----
    tide_tui_preset preset;
    tide_tui_pane focus;
    tide_tui_overlay overlay;
    int overlay_top; ///< first line of it on the screen
    int overlay_row; ///< of SETUP: selected setting
    tide_tui_window window;
    int64_t cursor;             ///< inside the window
    uint64_t cursor_event;      ///< 0: by time
    int64_t space_lo, space_hi; ///< part of the address axis in view; equal: all of it
    int64_t space_cursor;       ///< place on the address axis that is pointed at; -1: none
    int curve_kind;             ///< -1: all; else a tide_memory_kind (the others are left out)
    bool folds_weights;         ///< curve, rows and bound are shown without Persistent memory
    int bands_by;               ///< tide_band_by: what the curve is made of; -1: the curve alone
    bool shows_range;           ///< v: an area of time is selected
    int64_t range_begin, range_end;
    int64_t range_anchor; ///< where v was pressed, or the drag began
    bool range_follows;   ///< its other end moves with the cursor
    bool is_fitted;       ///< the window is that of "fit"; `before_fit` is the window before
    tide_tui_window before_fit;

    // ---- rows (gantt and table) ----
    bool opens_alive; ///< as of the options
    bool is_opening;  ///< rows are what is alive at the peak, by size: nothing else was asked for yet
    tide_row_sort sort;
    bool reverse, hides_persistent;
    tide_row_group group;
    bool group_chosen; ///< by the user: it does not change automatically
    char filters[TIDE_TUI_MAX_FILTERS][TIDE_TUI_MAX_PROMPT];
    size_t n_filters;
    bool filters_off;     ///< kept, but not applied
    uint64_t rows_wanted; ///< counted up when rows must be made anew
    size_t row, top; ///< selected, and first on the screen; the scene, which knows the number of rows, settles them
    uint32_t item;   ///< selected item: rows may change, it stays; TIDE_NO_ITEM: none
    uint32_t only_group_of;      ///< an opened group: only the items of this one's site, a row each; TIDE_NO_ITEM: none
    bool opened_by_filter;       ///< a group was opened by the last filter
    tide_row_group group_before; ///< an opened group: the grouping that returns when it is closed
    int64_t operators_at, table_at; ///< cursor, and selected item, that these lists were put to last: when another
    uint32_t table_item;            ///< one is chosen elsewhere they go there too
    tide_tui_list_order orders[TIDE_TUI_N_LISTS];
    size_t pane_row[TIDE_TUI_N_PANES], pane_top[TIDE_TUI_N_PANES]; ///< selection of the other lists:
                                                                   ///< tui/draw/panes.h

    // ---- call stacks ----
    tide_tui_fold folds[TIDE_TUI_MAX_FOLDS]; ///< the newest last; past the limit the oldest is forgotten
    size_t n_folds;
    bool closes_stacks;  ///< no call is open but those in `folds`
    uint64_t stack_root; ///< key of the call that is shown alone, with all that it called; 0: all are
    uint64_t stack_at;   ///< key of the selected row: it stays, where it is there at another moment too; 0: none

    // ---- search, marks, edits ----
    char search[TIDE_TUI_MAX_PROMPT]; ///< "": none
    tide_tui_mark marks[TIDE_TUI_MAX_MARKS];
    size_t n_marks;
    tide_edit edits[TIDE_TUI_MAX_EDITS];
    size_t n_edits;

    // ---- bottom line ----
    tide_tui_prompt prompt;
    char text[TIDE_TUI_MAX_PROMPT]; ///< of the prompt
    size_t text_at;                 ///< cursor in it, in bytes
    char completions[1024];         ///< candidates for the last word, separated by blanks; "": none
    char history[TIDE_TUI_MAX_HISTORY][TIDE_TUI_MAX_PROMPT]; ///< of the command line, the newest last
    size_t n_history, history_at;                            ///< n_history: the line that is being typed
    char message[512];                                       ///< one line, until the next key; "": the hints are shown
    bool message_is_error;

    // ---- settings ----
    bool mouse;
    bool fine_curve;      ///< two columns of the curve in a cell, for glyphs that show them; set by the app
    bool drags;           ///< a button went down over a time axis
    int drag_x;           ///< the column where
    int click_x, click_y; ///< the last press; -1: none, or another event came since
    uint64_t click_ms;
    uint64_t seq; ///< counted up by every action: tests wait for it
} tide_tui_state;

/// Cursor at the peak, the whole axis, preset 1. `b` may be NULL.
void tide_tui_state_init(tide_tui_state *st, tide_subject *a, tide_subject *b);
/// The value of a setting in words: "8.00 GiB", "size", "on".
char *tide_tui_setting_value(const tide_tui_state *st, tide_tui_setting setting, char *buf, size_t buf_bytes);
/// What of Persistent memory the peak holds at most: weights.
uint64_t tide_tui_weights_bytes(const tide_subject_facts *f);
/// Whether weights are folded away on opening: they are more than half of the peak.
bool tide_tui_folds_on_opening(const tide_subject_facts *f);
/// The kinds that the curve is of, as of a tide_curve_key.
int tide_tui_curve_kinds(const tide_tui_state *st);
/// Whether a row of the call tree was opened, or closed; `otherwise`: neither.
bool tide_tui_fold_of(const tide_tui_state *st, uint64_t key, bool otherwise);
void tide_tui_set_fold(tide_tui_state *st, uint64_t key, bool is_open);
/// The order of rows as they are shown.
tide_row_sort tide_tui_row_sort(const tide_tui_state *st);
/// The moment of the cursor.
tide_moment tide_tui_now(const tide_tui_state *st);
/// Window and cursor inside the axis of a, after a refresh or an action.
void tide_tui_state_settle(tide_tui_state *st);
/// Show a message in the bottom line until the next key.
void tide_tui_say(tide_tui_state *st, bool is_error, const char *format, ...) TIDE_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
