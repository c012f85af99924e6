// SPDX-License-Identifier: MIT
//
// scene: everything a frame needs, asked for once, so that drawing is pure. What takes long is done by a worker thread
// with subjects of its own (tui/scene/worker.h); until its result is there the pane shows the progress.
//
// Everything here belongs to the scene and is valid until the next tide_tui_scene_make.
#ifndef TIDE_TUI_SCENE_H
#define TIDE_TUI_SCENE_H

#include "analysis/bands.h"
#include "analysis/call_tree.h"
#include "analysis/compare.h"
#include "analysis/device_memory.h"
#include "analysis/pools.h"
#include "analysis/space.h"
#include "tui/state/state.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tide_tui_worker;

/// One line of the gantt.
typedef struct tide_tui_gantt_row {
    uint32_t item;            ///< the row's only or first member
    uint32_t n_members;       ///< 1: an item
    const char *name, *owner; ///< of a group: its key, ""
    uint64_t bytes;
    bool is_most; ///< it is sized while running: `bytes` is the most that it can be
    tide_item_fill fill;
    bool is_match;        ///< of the search
    int where;            ///< -1: all of it before the window, 1: behind it, 0: some inside
    tide_row_span *spans; ///< [bars.w]
} tide_tui_gantt_row;

/// What a step makes and frees.
typedef struct tide_tui_operator {
    const char *name;
    size_t step;
    int64_t begin;                                 ///< on the axis
    uint64_t makes_bytes, frees_bytes, live_bytes; ///< live: highest while it runs
} tide_tui_operator;

/// A row of the call tree: calls that have no branch between them.
typedef struct tide_tui_stack_row {
    uint32_t head, tail; ///< first and last call
    uint32_t level;      ///< rows above it
    uint32_t caller;     ///< the row; UINT32_MAX: none
    bool has_callees, is_open;
} tide_tui_stack_row;

/// What a range of time is made of (v).
typedef struct tide_tui_range_facts {
    uint64_t peak_bytes, begin_bytes, end_bytes, alloc_bytes, free_bytes,
        left_bytes; ///< left: allocated in it, alive after it
    size_t n_allocs, n_frees, n_left;
    bool known; ///< false: the worker is still counting
} tide_tui_range_facts;

typedef struct tide_tui_scene {
    const tide_tui_state *state;
    const tide_tui_layout *layout;
    const tide_subject_facts *a, *b; ///< b NULL: none

    // ---- curve: [n_columns], as many as the pane has, or twice that with state->fine_curve ----
    size_t n_columns;
    uint64_t *min, *max;     ///< of A
    uint64_t *predicted_max; ///< NULL: there is no plan beside a trace
    uint64_t *b_min, *b_max; ///< of B; NULL: none
    uint64_t top_bytes;      ///< the height of the curve
    uint64_t highest_bytes;  ///< of the curve, on the whole axis
    const tide_bands *bands; ///< of the curve, a column a cell; NULL: off, or being made
    uint64_t *reserved_max;  ///< of A; NULL: not known, or being made
    uint64_t peak_reserved;  ///< of the whole axis; 0: not known
    uint64_t whole_reserved; ///< the same of all kinds, whatever the curve is of
    uint64_t *mini_max;      ///< [layout->minimap.w] of the whole axis; NULL: no minimap
    uint64_t cursor_bytes;   ///< the curve at the cursor
    tide_tui_mark *marks;    ///< [n_marks] of state and trace that lie in the window
    size_t n_marks;
    size_t cursor_step;         ///< SIZE_MAX: none
    tide_tui_range_facts range; ///< with state->shows_range

    // ---- gantt ----
    const tide_rows *rows;     ///< NULL: being made
    tide_tui_gantt_row *gantt; ///< [n_gantt]
    size_t n_gantt;
    const uint8_t *match_bits;  ///< of the search, by site of the items; NULL: none
    size_t n_matches, match_at; ///< items of the search; which one is selected (1…), 0: none

    // ---- other panes; only those that are shown are filled ----
    tide_space_cell *cells;  ///< [2 * map.h][cells_w], row 0 lowest: two places a cell
    const tide_space *space; ///< NULL: none
    int cells_w;             ///< columns of `cells`: those of the pane, or of a moment's picture
    bool map_is_moment;      ///< too many blocks to keep all their places: the picture is of one moment, map_at
    tide_moment map_at;
    const tide_live_items *live; ///< at the cursor
    const tide_explanation *explanation;
    const tide_pools *pools;
    const tide_pool_history *pool_history; ///< in the columns of the curve's pane; NULL: not known yet
    const tide_pools *b_pools; ///< of B, at the same moment; NULL: there is no B, or not known yet. Then `pools`
                               ///< has those too that B alone has, with the number SIZE_MAX
    const tide_pool *const *pool_of_b;       ///< [pools->n] the one of B that belongs to each; NULL: none
    const tide_pool_history *b_pool_history; ///< in the same columns
    tide_tui_window b_window;                ///< the window on B's axis
    const char *b_pools_error;               ///< why B's are not known; NULL: nothing is wrong
    const tide_pool_request
        *pool_request; ///< of the selected pool at the cursor; NULL: none was asked, or not known yet
    const tide_pool_tensors *pool_tensors;   ///< of a colouring plan; NULL: there is none, or not known yet
    const tide_device_memory *device_memory; ///< NULL: no device but the CPU, or not known yet
    const tide_device_row *devices;          ///< [device_memory->n] at the cursor
    const tide_leaks *leaks;
    const tide_diff *diff;
    const tide_edit_advice *advice; ///< [n_advice]
    size_t n_advice;
    const tide_tui_operator *operators; ///< [n_operators]
    size_t n_operators;
    const tide_call_tree *call_tree;      ///< NULL: not known yet
    const tide_tui_stack_row *stack_rows; ///< [n_stack_rows] those that are not folded away
    size_t n_stack_rows;
    uint32_t stack_root;  ///< call that is shown alone; 0: all are
    uint64_t stack_bytes; ///< of these rows together
    bool has_selection;
    tide_item_facts selection; ///< the selected item
    bool beside_unknown;       ///< the following four are not known: too many blocks to keep all their places
    uint32_t below, above;     ///< its neighbours in address; TIDE_NO_ITEM
    uint64_t gap_below, gap_above;
    uint32_t before, after; ///< the items that have its place before and after it; TIDE_NO_ITEM
    char consumers[256];    ///< operators that read it, "" unknown
    char made_in[128];      ///< the bodies of If, Loop and Scan that it is made in; "" none
    char why[256];          ///< why it is alive at the cursor (or is not): last reader, persistent, leaked, …

    /// By which column a list is sorted, as it is shown; column "": in its own order.
    struct {
        const char *column;
        bool falls; ///< the largest first
    } sorted[TIDE_TUI_N_LISTS];

    const char *overlay_text; ///< of the overlays SQL and MESSAGE: lines, "\n" between; "": none

    // ---- progress of pending queries, and errors: by pane ----
    char busy[TIDE_TUI_N_PANES][64];   ///< "sorting 5,000,000 blocks 43 %"; "": nothing
    char error[TIDE_TUI_N_PANES][256]; ///< why a pane has nothing; "": nothing
    bool is_earlier[TIDE_TUI_N_PANES]; ///< it shows an earlier moment, while the cursor's is being made
    bool shows_seq;                    ///< test mode: the bottom line ends in "seq=N idle" or "busy"; set by the app
    bool is_busy;                      ///< with shows_seq: the worker has pending requests
} tide_tui_scene;

/// What is kept between frames: results of queries.
typedef struct tide_tui_query_cache tide_tui_query_cache;
/// `worker` NULL: every query is run at once, however long it takes (one frame as text, tests).
tide_status tide_tui_query_cache_create(struct tide_tui_worker *worker, tide_tui_query_cache **out,
                                        tide_error *err) TIDE_NODISCARD;
void tide_tui_query_cache_destroy(tide_tui_query_cache *cache);
/// Fill a scene for a frame. Settles the rows and the selection of `st`; lists beside the gantt are settled by
/// tide_tui_pane_settle(). A query that fails is an error of its pane, not of the frame; only TIDE_ERR_NOMEM fails.
tide_status tide_tui_scene_make(tide_tui_query_cache *cache, tide_tui_state *st, const tide_tui_layout *layout,
                                tide_tui_scene *out, tide_error *err) TIDE_NODISCARD;
/// Where plan and bound stand beside the curve as it is shown, with weights or without.
tide_levels tide_tui_scene_levels(const tide_tui_scene *s);
/// Rows of a list that state->pane_row counts: TABLE live items, OPERATORS steps, POOLS pools and then leaks, COMPARE
/// changes, WHATIF advice, STACKS rows of the call tree. 0 for panes whose rows are not in pane_row, and for EXPLAIN,
/// whose lines depend on its width (tui/draw/panes.h).
size_t tide_tui_scene_rows(const tide_tui_scene *s, tide_tui_pane pane);
/// The selected one, inside its list.
size_t tide_tui_scene_row(const tide_tui_scene *s, tide_tui_pane pane);
/// Whether the worker has something that the last scene did not show.
bool tide_tui_query_cache_has_news(tide_tui_query_cache *cache);
/// What the overlays SQL and MESSAGE show from now on; a copy is kept.
tide_status tide_tui_query_cache_set_text(tide_tui_query_cache *cache, const char *text,
                                          tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
