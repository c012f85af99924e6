// SPDX-License-Identifier: MIT
//
// What the files of holdings share. Private to profiler/.
//
//     a run      | first ................ event .................. last |
//     intervals  [ low ][ low ][ low ][ low ][ low ][ low ][ low ][ low ]   least unused bytes of each pool in each
//     a moment            state: live blocks and segments that are there
//     since when                  ^ the last interval with less than now is walked through
#ifndef TIDE_PROFILER_READ_HOLDINGS_INTERNAL_H
#define TIDE_PROFILER_READ_HOLDINGS_INTERNAL_H

#include "core/base/block_tree.h"
#include "profiler/holdings.h"
#include "profiler/read/moments_internal.h"

/// The segments of a trace up to an event; kept with it.
typedef struct tide__segments {
    int64_t last_event;        ///< looked at
    tide_trace_segment *items; ///< [n], owned, as they were taken
    size_t n, cap;
    size_t *open; ///< [n_open] of items that were not given back yet, owned
    size_t n_open, cap_open;
    tide__event *found; ///< [n_found] events of the last reading, owned
    size_t n_found, cap_found;
} tide__segments;

// ---- holdings_segments.c ----

/// TIDE_ERR_CANCELLED when the reader cancels. `reading` may be NULL.
tide_status tide__holdings_progress(const tide_reading *reading, int64_t done, int64_t all,
                                    tide_error *err) TIDE_NODISCARD;

// ---- holdings_walk.c: what each pool holds, from event to event ----

/// Since when a value never was lower: of all moments so far those that are the lowest up to now.
typedef struct tide__low {
    uint64_t bytes;
    uint64_t since_ns; ///< UINT64_MAX: it was so when the walk began
} tide__low;

typedef struct tide__pool {
    tide_trace_pool facts; ///< names and peaks; the rest is put in by who answers
    uint64_t n_segments, n_blocks, reserved, active, requested;
    uint64_t held_low; ///< of a walk that notes it: least unused bytes while it held anything
    uint64_t any_low;  ///< the same, whether it did or not
    tide__low *lows;   ///< [n_lows] rising, owned: of a walk that notes them
    size_t n_lows, cap_lows;
    bool has_changed;            ///< by the present event
    tide_trace_pool_column seen; ///< of a walk that keeps free blocks: since it began, or who reads it forgot it
    // Of a walk that keeps free blocks: those of all its segments, each of which has addresses of its own here.
    tide_block_tree free;
    uint64_t end;                ///< of these addresses
    bool is_free_lost;           ///< blocks lie in one another, or not whole in their segment: it is looked for again
    uint64_t n_looks, next_look; ///< so often in vain, and at the next one that counts; each waits twice as long
} tide__pool;

/// A segment that is there, in order of process, device and address.
typedef struct tide__place {
    const tide_trace_segment *seg;
    size_t pool;
    uint64_t begin; ///< where it lies in the pool's `free`
} tide__place;

typedef struct tide__pool_walk {
    tide_trace *t;
    const tide_trace_segment *segments; ///< [n_segments], as they were taken
    size_t n_segments, next_segment;
    tide__pool *pools; ///< [n], owned
    size_t n, cap;
    tide__place *places; ///< [n_places], owned
    size_t n_places, cap_places;
    bool has_changed;           ///< by the present event, at least one of the pools
    bool is_free_lost;          ///< of at least one of the pools
    bool overlaps;              ///< a place began inside of another one: look further than at the nearest
    int64_t after;              ///< the event that it began after
    bool keeps_lows;            ///< notes lows, not only the least
    bool keeps_free;            ///< keeps free blocks
    bool has_begun;             ///< changes are those of events
    uint64_t now_event, now_ns; ///< the present event
    tide_status st;             ///< of what a callback without a result could not do
    int64_t interval_end;       ///< the event after which end_interval is called; 0: none
    tide_status (*end_interval)(struct tide__pool_walk *w, int64_t event);
    /// When the walk begins, and when all that an event changes is changed; NULL: not called. The pools say
    /// has_changed: at the begin all of them, with now_event 0.
    tide_status (*on_change)(struct tide__pool_walk *w);
    void *ctx;
} tide__pool_walk;

/// The state after event `after`, then events up to `last` with what is noted of their changes: held_low begins with
/// what was unused after `after`, any_low with nothing, the lowest of lows was there before. `reading` may be NULL.
tide_status tide__pool_walk_to(tide__pool_walk *w, int64_t after, int64_t last, const tide_reading *reading,
                               tide_error *err) TIDE_NODISCARD;
/// Forget state, lows and peaks; the pools stay.
void tide__pool_walk_reset(tide__pool_walk *w);
void tide__pool_walk_deinit(tide__pool_walk *w);
/// The place of the segment that a block lies in; SIZE_MAX: in none that was there when it was allocated.
size_t tide__pool_place_of(const tide__pool_walk *w, const tide__live_block *b);
/// Where blocks lie in one another they may hold more than there is.
static inline uint64_t tide__pool_unused(const tide__pool *p) {
    return p->reserved > p->active ? p->reserved - p->active : 0;
}
/// Of a walk that keeps free blocks; TIDE_UNKNOWN_BYTES: of a pool without segments, or that cannot be told.
static inline uint64_t tide__pool_largest_free(const tide__pool *p) {
    return p->facts.tells_segments && !p->is_free_lost ? tide_block_tree_largest(&p->free) : TIDE_UNKNOWN_BYTES;
}

// ---- holdings_pools.c: what is the same for every moment of a run, kept with the trace ----

/// Least unused bytes of a pool in an interval of events; UINT64_MAX: nothing changed in it.
typedef struct tide__interval_low {
    uint64_t any, held; ///< held: while it held anything
} tide__interval_low;

/// It holds what the pool holds now, and nothing else.
void tide__pool_see_now(const tide__pool *p, tide_trace_pool_column *out);
/// It holds nothing, as before it was met.
void tide__pool_see_nothing(const tide_trace_pool *facts, tide_trace_pool_column *out);
typedef struct tide__kept_pool {
    tide_trace_pool facts;    ///< names and peaks
    uint64_t begin_unused;    ///< when the run began
    uint64_t begin_held;      ///< the same; UINT64_MAX: it held nothing
    tide__interval_low *lows; ///< [n_lows] of intervals; behind them nothing changed; owned
    size_t n_lows, cap_lows;
    tide_trace_pool_column *intervals; ///< [n_intervals] from when it was met; owned
    size_t n_intervals, cap_intervals;
    tide_trace_pool_column last; ///< what it holds after last_event
    uint64_t window_low;         ///< of the window that was asked for last
} tide__kept_pool;

typedef struct tide__pool_sums {
    int64_t run_id;
    int64_t first_event, last_event; ///< of the run; last: summed up to there
    int64_t interval_events;
    uint64_t *ends_ns; ///< [n_ends] when the last event of each interval was; owned
    size_t n_ends, cap_ends;
    tide__kept_pool *pools; ///< [n], owned, in the order in which they were met
    size_t n, cap;
    int64_t window_first, window_last; ///< events; -1: none was asked for
} tide__pool_sums;

static inline int64_t tide__interval_of(const tide__pool_sums *s, int64_t event) {
    return (event - s->first_event) / s->interval_events;
}

/// The span of a run and its sums up to the span's end, when its segments are known. Valid until the next question.
tide_status tide__pool_sums_of(tide_trace *t, int64_t run_id, const tide_reading *reading, tide__span *span,
                               tide__pool_sums **out, tide_error *err) TIDE_NODISCARD;
/// The event, or the one before the span, or its last.
int64_t tide__cut_to_span(int64_t event, const tide__span *span);
/// A walk that knows the pools of the sums, in their order.
tide_status tide__pool_walk_init(tide_trace *t, const tide__pool_sums *s, tide__pool_walk *out,
                                 tide_error *err) TIDE_NODISCARD;
/// Numbers of the pools in the order of answers: [s->n], owned by the caller.
tide_status tide__pool_order(const tide__pool_sums *s, size_t **out, tide_error *err) TIDE_NODISCARD;

#endif
