// SPDX-License-Identifier: MIT
//
// query cache: what is kept between frames, and how a scene gets its answers. A query has a slot (its sort) and a key,
// which is made of everything that the answer depends on. The same key again costs nothing; another key is a new query
// of the same slot. Only the files that make a scene include this, and the app, for plans, files and SQL.
//
//     tide__query_is_needed -> fill the query -> tide__query_start -> tide__query_result_of
//                                                   |        |
//                                      run at once -+        +- pending: run by the worker thread, and collected when
//                                                               the next scene begins
#ifndef TIDE_TUI_QUERY_CACHE_H
#define TIDE_TUI_QUERY_CACHE_H

#include "tui/scene/scene.h"
#include "tui/scene/worker.h"
#include "tui/tui.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Slots: one for each sort of query.
enum {
    TIDE__QUERY_REFRESH, ///< the worker's A takes in what was recorded since
    TIDE__QUERY_ROWS,
    TIDE__QUERY_LIVE,
    TIDE__QUERY_PARTS, ///< the explanation without what takes plans
    TIDE__QUERY_EXPLAIN,
    TIDE__QUERY_POOLS,
    TIDE__QUERY_POOL_HISTORY,
    TIDE__QUERY_POOL_REQUEST,
    TIDE__QUERY_POOL_TENSORS,
    TIDE__QUERY_B_POOLS,
    TIDE__QUERY_B_POOL_HISTORY,
    TIDE__QUERY_DEVICES,
    TIDE__QUERY_LEAKS,
    TIDE__QUERY_DIFF,
    TIDE__QUERY_SPACE,
    TIDE__QUERY_MOMENT_SPACE, ///< the addresses at the cursor's moment alone
    TIDE__QUERY_ADVICE,
    TIDE__QUERY_OPERATORS,
    TIDE__QUERY_STACKS,
    TIDE__QUERY_RANGE,
    TIDE__QUERY_MARKS,
    TIDE__QUERY_BANDS,
    TIDE__QUERY_RESERVED,
    TIDE__QUERY_PLAN, ///< this one and the next are the app's
    TIDE__QUERY_WORST,
    TIDE__QUERY_OPEN,
    TIDE__QUERY_SQL,
    TIDE__N_QUERIES
};

_Static_assert((int)TIDE__N_QUERIES <= (int)TIDE_TUI_MAX_REQUESTS, "the worker has a slot for each");

/// A subject with up to that many items and events is queried at once, even where there is a worker: it takes some
/// milliseconds.
enum { TIDE__FEW_ITEMS = 50000, TIDE__FEW_EVENTS = 100000 };
/// An explanation of a plan of up to that many tensors is made while a key waits.
enum { TIDE__FEW_PLANNED = 100 };

typedef tide_status (*tide__query_run)(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                                       tide_error *err);

/// The last result of a slot.
typedef struct tide__query_result {
    bool is_there;
    uint64_t key;
    uint64_t a_serial; ///< of the cache when the query was started
    tide_status status;
    char error[256]; ///< when status is not OK
    void *ctx;       ///< what `run` has filled
    void (*release)(void *ctx);
} tide__query_result;

/// A query that the worker was given and has not answered.
typedef struct tide__pending_query {
    bool is_pending;
    uint64_t key;
    uint64_t a_serial; ///< of the cache when the query was started
    uint64_t moment;   ///< key of the cursor's moment that it is about; 0: it is not about a moment
    void (*release)(void *ctx);
    char progress[64]; ///< that the last scene showed
} tide__pending_query;

/// Columns of a curve, with the key of what they show.
typedef struct tide__columns {
    uint64_t key;
    size_t n;
    uint64_t *min, *max; ///< [cap]
    size_t cap;
    bool is_there;
    char error[256];
} tide__columns;

/// Cells of the map, with the key of what they show.
typedef struct tide__map_picture {
    uint64_t key;
    bool is_there;
    tide_space_cell *cells; ///< owned
    size_t cap;
    char error[256];
} tide__map_picture;

typedef struct tide__held_value {
    uint64_t key;
    bool is_there;
    uint64_t value;
} tide__held_value;

/// Rows of a list in the order of a column.
typedef struct tide__sorted_list {
    uint64_t key; ///< of what they are made of; 0: of nothing
    char *rows;   ///< [n]
    size_t n, cap_bytes;
} tide__sorted_list;

struct tide_tui_query_cache {
    tide_tui_worker *worker; ///< borrowed; NULL: every query is run at once
    const tide_tui_session *session;
    bool always_async;      ///< for tests: small queries go to the worker, too
    uint64_t wait_until_ns; ///< until then this frame waits for quick queries
    tide__query_result results[TIDE__N_QUERIES];
    tide__pending_query pending[TIDE__N_QUERIES];

    // ---- what results are about: serials are counted up when another subject is shown, or the same one grew ----
    tide_subject *a, *b;
    uint64_t a_serial, b_serial;
    uint64_t items_serial; ///< counted up with every new table of items
    uint64_t item_id;      ///< of the selected item: finds it in another table
    bool has_item_id;
    bool worker_is_behind; ///< its A has not taken in what ours has: asked for again until it has

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

    // ---- lists in the order of a column ----
    tide__sorted_list sorted[TIDE_TUI_N_LISTS];
    tide_live_items live; ///< as the result's, with sorted rows; pools and the others likewise
    tide_pools pools;
    tide_leaks leaks;
    tide_diff diff;
    tide_pools pools_and_b; ///< its items are pool_rows
    tide_pool *pool_rows;
    const tide_pool **pools_of_b;
    size_t pool_rows_cap, pools_of_b_cap;

    // ---- call stacks: rows that are not folded away ----
    tide_tui_stack_row *stack_rows;
    size_t n_stack_rows, stack_rows_cap;

    // ---- other panes ----
    tide__map_picture pictures[2]; ///< with and without a legend below: a frame of a map of letters makes both
    int last_picture;
    uint64_t selection_key;
    bool selection_there;
    tide_item_facts selection;
    bool places_there; ///< `before`, `after` are those of the selection
    uint32_t before, after;
    char *text; ///< of the overlays
};

/// What the functions that fill a scene pass to each other.
typedef struct tide__frame {
    tide_tui_query_cache *cache;
    tide_tui_state *st;
    const tide_tui_layout *layout;
    tide_tui_scene *out;
    tide_error *err;
} tide__frame;

// ---- keys ----

/// Mixes a number or a text into a key; begin with 0.
uint64_t tide__key(uint64_t key, uint64_t part);
uint64_t tide__key_text(uint64_t key, const char *text);
uint64_t tide__key_moment(uint64_t key, tide_moment at);

// ---- queries ----

/// There is neither a result nor a pending query with this key.
bool tide__query_is_needed(const tide_tui_query_cache *cache, int slot, uint64_t key);
/**
 * Start a query. `ctx` is taken, also on failure; NULL: TIDE_ERR_NOMEM. Without a worker, or with `at_once`, it is run
 * before this returns. An error of the query itself is kept in its result and is no failure here, except
 * TIDE_ERR_NOMEM.
 */
tide_status tide__query_start(tide_tui_query_cache *cache, int slot, uint64_t key, bool at_once, tide__query_run run,
                              void (*release)(void *ctx), void *ctx, tide_error *err) TIDE_NODISCARD;
/// The same for a query about the cursor's moment: it is dropped when the cursor moves, and until its result is there
/// tide__query_previous_result() has the one of the moment before.
tide_status tide__query_start_at_cursor(tide__frame *f, int slot, uint64_t key, bool at_once, tide__query_run run,
                                        void (*release)(void *ctx), void *ctx) TIDE_NODISCARD;
/// The result with this key; NULL: not there. Progress, or the error, goes into the scene for `pane`
/// (TIDE_TUI_N_PANES: nowhere).
void *tide__query_result_of(tide__frame *f, int slot, uint64_t key, tide_tui_pane pane);
/// While a query is pending: the result before it, of the same subject at another moment, so that the screen does not
/// flicker. It must be shown with its own moment. NULL: none.
void *tide__query_previous_result(tide__frame *f, int slot, tide_tui_pane pane);
/// A frame begins: it waits for quick queries once, a few milliseconds; pending queries about another moment are
/// dropped.
void tide__query_begin_frame(tide_tui_query_cache *cache, const tide_tui_state *st);
/// Take the results that the worker has finished.
tide_status tide__query_collect(tide_tui_query_cache *cache, tide_tui_state *st, tide_error *err) TIDE_NODISCARD;
/// Drop the result of a slot.
void tide__query_forget(tide_tui_query_cache *cache, int slot);
/// The worker gets other subjects: pending queries are dropped, and the next scene starts them again.
void tide__query_drop_pending(tide_tui_query_cache *cache);
/// Esc: pending queries are stopped and get the result "cancelled".
void tide__query_cancel_all(tide_tui_query_cache *cache);
bool tide__query_is_pending(const tide_tui_query_cache *cache);

// ---- subjects ----

/// Another table of items for A, from the worker's subject. The selected item is found in it.
void tide__query_share_items(tide_tui_query_cache *cache, tide_tui_state *st, tide_items_hold *hold);
/// A was refreshed. Results from before are not used any more, because texts in them may lie in what the worker's A
/// gives up; the worker's A is refreshed before the next query.
tide_status tide__query_a_grew(tide_tui_query_cache *cache, tide_error *err) TIDE_NODISCARD;
/// Another B, which may have the address of the last one.
void tide__query_b_changed(tide_tui_query_cache *cache);
/// Whether indexes of a result are those of A's table. A result brings its table when A has none; a result of another
/// table is dropped.
bool tide__query_same_table(tide__frame *f, int slot, tide_items_hold *hold);

// ---- helpers of the parts of a scene ----

bool tide__is_shown(const tide__frame *f, tide_tui_pane pane);
/// Why a pane has nothing to show; the first error stays.
void tide__set_pane_error(tide__frame *f, tide_tui_pane pane, const char *text);
void tide__error_text(char *buf, size_t buf_bytes, const tide_error *err);
/// TIDE_ERR_NOMEM with its text, the only error that a part of a scene returns; else TIDE_OK.
tide_status tide__pass_no_memory(tide_status st, const tide_error *why, tide_error *err) TIDE_NODISCARD;
/// Few enough items and events to be queried while a frame is made.
bool tide__is_small(const tide_subject *s);

#ifdef __cplusplus
}
#endif
#endif
