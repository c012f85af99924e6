// SPDX-License-Identifier: MIT
//
// desk: what a scene keeps between frames, and how it asks: an answer has a key, which is made of everything that it
// depends on; the same key again costs nothing, another one is a new question for the same slot. Only the files that
// make a scene (and the app, for plans, files and SQL) include this.
//
//     tide__desk_wants -> make what the question needs -> tide__desk_ask -> tide__desk_answer_of
//                                                           |       |
//                                                     at once     worker (collected when the next scene begins)
#ifndef TIDE_TUI_DESK_H
#define TIDE_TUI_DESK_H

#include "tui/scene/scene.h"
#include "tui/scene/worker.h"
#include "tui/tui.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Sorts of questions that may be asked aside.
enum {
    TIDE__ASK_REFRESH, ///< the worker's A takes in what was recorded since
    TIDE__ASK_ROWS,
    TIDE__ASK_LIVE,
    TIDE__ASK_EXPLAIN,
    TIDE__ASK_POOLS,
    TIDE__ASK_LEAKS,
    TIDE__ASK_DIFF,
    TIDE__ASK_SPACE,
    TIDE__ASK_ADVICE,
    TIDE__ASK_OPERATORS,
    TIDE__ASK_RANGE,
    TIDE__ASK_MARKS,
    TIDE__ASK_PLAN, ///< of the app
    TIDE__ASK_OPEN,
    TIDE__ASK_SQL,
    TIDE__N_ASKS
};

/// Up to here a question is answered at once even when there is a worker: some milliseconds.
enum { TIDE__FEW_ITEMS = 50000, TIDE__FEW_EVENTS = 100000 };

typedef tide_status (*tide__desk_run)(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                                      tide_error *err);

typedef struct tide__answer {
    bool is_there;
    uint64_t key;
    uint64_t a_serial; ///< of the desk, when it was asked
    tide_status status;
    char trouble[256]; ///< when status is not OK
    void *ctx;         ///< what run has filled
    void (*release)(void *ctx);
} tide__answer;

typedef struct tide__pending {
    bool is_asked;
    uint64_t key;
    uint64_t a_serial; ///< of the desk, then
    uint64_t moment;   ///< key of the cursor's moment that it is about; 0: about something else
    void (*release)(void *ctx);
    char said[64]; ///< progress that the last scene showed
} tide__pending;

/// Columns of a curve, and what they are of.
typedef struct tide__columns {
    uint64_t key;
    size_t n;
    uint64_t *min, *max; ///< [cap]
    size_t cap;
    bool is_there;
    char trouble[256];
} tide__columns;

typedef struct tide__held_value {
    uint64_t key;
    bool is_there;
    uint64_t value;
} tide__held_value;

struct tide_tui_desk {
    tide_tui_worker *worker; ///< borrowed; NULL: everything at once
    const tide_tui_session *session;
    bool asks_aside;   ///< tests: however small, a question goes to the worker
    uint64_t until_ns; ///< how long this frame waits for what may be quick
    tide__answer answers[TIDE__N_ASKS];
    tide__pending pending[TIDE__N_ASKS];

    // ---- of what: counted up when another subject is looked at, or the same one grew ----
    tide_subject *a, *b;
    uint64_t a_serial, b_serial;
    uint64_t items_serial; ///< another table of items
    uint64_t item_id;      ///< of the selected item: finds it in another table
    bool has_item_id;

    // ---- curve ----
    tide__columns curve, predicted, b_curve, mini;
    tide__held_value top, b_top, cursor_bytes;
    tide_tui_mark *marks;
    size_t marks_cap;

    // ---- rows ----
    uint64_t rows_seen; ///< key of the rows that the selection was settled for
    size_t row, top_row;
    uint32_t item;
    tide_tui_gantt_row *gantt;
    tide_row_span *spans;
    size_t gantt_cap, spans_cap, n_gantt;
    uint64_t gantt_key;
    uint8_t *match_bits;
    uint64_t match_key, match_at_key;
    size_t n_matches, match_at;

    // ---- other panes ----
    tide_space_cell *cells;
    size_t cells_cap;
    uint64_t cells_key;
    bool cells_there;
    char cells_trouble[256];
    uint64_t selection_key;
    bool selection_there;
    tide_item_facts selection;
    bool places_there; ///< `before`, `after` are those of the selection
    uint32_t before, after;
    char *text; ///< of the overlays
};

/// What the functions that fill a scene hand around.
typedef struct tide__frame {
    tide_tui_desk *desk;
    tide_tui_state *st;
    const tide_tui_layout *layout;
    tide_tui_scene *out;
    tide_error *err;
} tide__frame;

// ---- keys ----

/// Mixes a number (a text, up to 512 bytes) into a key; begin with 0.
uint64_t tide__key(uint64_t key, uint64_t part);
uint64_t tide__key_text(uint64_t key, const char *text);
uint64_t tide__key_moment(uint64_t key, tide_moment at);

// ---- asking ----

/// Neither answered nor being worked on.
bool tide__desk_wants(const tide_tui_desk *desk, int slot, uint64_t key);
/**
 * Hand over a question. `ctx` is taken, also on failure; NULL: TIDE_ERR_NOMEM. Without a worker, or with `at_once`, it
 * is answered before this returns. What the question itself says is no failure here, but for TIDE_ERR_NOMEM.
 */
tide_status tide__desk_ask(tide_tui_desk *desk, int slot, uint64_t key, bool at_once, tide__desk_run run,
                           void (*release)(void *ctx), void *ctx, tide_error *err) TIDE_NODISCARD;
/// The answer for this key; NULL: not there. What is being done, or what went wrong, is said of `pane` (may be
/// TIDE_TUI_N_PANES: nowhere).
void *tide__desk_answer_of(tide__frame *f, int slot, uint64_t key, tide_tui_pane pane);
/// The same for a question about the cursor's moment: it is dropped when the cursor moves on, and until the answer is
/// there tide__desk_earlier() has the one for the moment before.
tide_status tide__desk_ask_of_moment(tide__frame *f, int slot, uint64_t key, bool at_once, tide__desk_run run,
                                     void (*release)(void *ctx), void *ctx) TIDE_NODISCARD;
/// While an answer is being made: the one before, of the same subject at another moment, so that the screen does not
/// flicker; it must be shown with its own moment. NULL: none.
void *tide__desk_earlier(tide__frame *f, int slot, tide_tui_pane pane);
/// A frame begins: it waits a little, once, and what is still being made for another moment is not wanted any more.
void tide__desk_begin_frame(tide_tui_desk *desk, const tide_tui_state *st);
/// Take in what the worker has finished.
tide_status tide__desk_collect(tide_tui_desk *desk, tide_tui_state *st, tide_error *err) TIDE_NODISCARD;
void tide__desk_forget(tide_tui_desk *desk, int slot);
/// The worker gets other subjects: what it was asked is dropped, and asked anew by the next scene.
void tide__desk_drop_questions(tide_tui_desk *desk);
/// Esc: stop what is being worked on aside; it counts as answered, with "cancelled".
void tide__desk_cancel(tide_tui_desk *desk);
bool tide__desk_is_busy(const tide_tui_desk *desk);
/// Another table for A: from a worker's subject. The selection moves along.
void tide__desk_give_items(tide_tui_desk *desk, tide_tui_state *st, tide_items_hold *hold);
/// Another A or B, or the same one has grown.
void tide__desk_see(tide_tui_desk *desk, const tide_tui_state *st);
/// A was refreshed. Answers from before are not used any more, for texts in them may lie in what the worker's A gives
/// up; it is refreshed before the next question.
tide_status tide__desk_a_grew(tide_tui_desk *desk, tide_error *err) TIDE_NODISCARD;
/// Another B, which may lie where the last one did.
void tide__desk_b_changed(tide_tui_desk *desk);
/// Whether indexes of an answer are those of A's table, which it brings when there is none. An answer of another table
/// is forgotten.
bool tide__same_table(tide__frame *f, int slot, tide_items_hold *hold);

bool tide__is_shown(const tide__frame *f, tide_tui_pane pane);
/// Say of a pane why it has nothing.
void tide__trouble(tide__frame *f, tide_tui_pane pane, const char *text);
void tide__trouble_of(char *buf, size_t buf_bytes, const tide_error *err);
/// Few enough to be asked in the middle of a frame.
bool tide__is_small(const tide_subject *s);
/// Room for `n` in a buffer of the desk.
tide_status tide__room(void *array, size_t *cap, size_t n, size_t elem_bytes, tide_error *err) TIDE_NODISCARD;
tide_moment tide__cursor(const tide_tui_state *st);

#ifdef __cplusplus
}
#endif
#endif
