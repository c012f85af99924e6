// SPDX-License-Identifier: MIT
//
// leaf: smallest and largest live bytes of one series over an interval of events. A trace of any length has a bounded
// number of them (the oldest are merged), so that peaks and timelines never need the events. Private to profiler/.
//
// Intervals are cut at fixed event numbers: 1 to 1024, 1025 to 2048, ... An interval in which a series did not change
// has no leaf of it: its value is the last_bytes of the leaf before (0 before the first).
#ifndef TIDE_PROFILER_STORE_LEAF_H
#define TIDE_PROFILER_STORE_LEAF_H

#include "profiler/store/replay.h"

enum { TIDE__LEAF_EVENTS = 1024 };

typedef struct tide__leaf {
    int32_t series;                  ///< row of table series; 0: the sum of all
    int64_t first_event, last_event; ///< of the interval
    int64_t begin_ns, end_ns;        ///< of its first and last event, whatever series they belong to
    int64_t min_bytes, max_bytes;    ///< of the values after each event of the series
    int64_t max_event, max_ns;       ///< the first that reached max_bytes
    int64_t max_reserved_bytes;
    int64_t last_bytes, last_reserved_bytes; ///< after its last event
} tide__leaf;

/// Makes leaves while events are replayed. Zero-initialise.
typedef struct tide__leaves {
    tide__leaf *open; ///< [n_open] the current interval, index = series; first_event 0: not yet touched
    size_t n_open, cap_open;
    tide__leaf *done; ///< [n_done] complete, for the store; the caller sets n_done = 0 once they are written
    size_t n_done, cap_done;
    int64_t first_event, begin_ns, last_event, end_ns; ///< of the current interval; first_event 0: none
    int64_t until;                                     ///< the last event that belongs to it
    int64_t plain_until;                               ///< the same while there is an interval, otherwise 0
} tide__leaves;

/// After event `id` changed a series whose leaf is open. `may_rise`, `may_fall`: constants, what the event can have
/// done to the bytes.
__attribute__((always_inline)) static inline void tide__leaf_change(tide__leaf *leaf, const tide__series *s, int64_t id,
                                                                    int64_t t_ns, bool may_rise, bool may_fall) {
    const int64_t bytes = s->live_bytes, reserved = s->live_reserved_bytes;
    if (may_fall && leaf->min_bytes > bytes) leaf->min_bytes = bytes;
    if (may_rise && leaf->max_reserved_bytes < reserved) leaf->max_reserved_bytes = reserved;
    if (may_rise && leaf->max_bytes < bytes) {
        leaf->max_bytes = bytes;
        leaf->max_event = id;
        leaf->max_ns = t_ns;
    }
    leaf->last_bytes = bytes;
    leaf->last_reserved_bytes = reserved;
}

/// The first change of a series in the interval there is.
void tide__leaf_begin(tide__leaves *l, const tide__series *s, size_t series_i, const tide__event *e);
/// After `e` changed the series: its leaf is open.
static inline void tide__leaf_touch(tide__leaves *l, const tide__series *s, size_t series_i, const tide__event *e) {
    if (__builtin_expect(l->open[series_i].first_event == 0, 0)) tide__leaf_begin(l, s, series_i, e);
}

/// tide__leaves_add for any event, also at the begin or end of an interval.
tide_status tide__leaves_add_any(tide__leaves *l, const tide__replay *r, const tide__event *e,
                                 size_t series) TIDE_NODISCARD;
/// After tide__replay_apply of `e`, which changed `series` (0: nothing). An interval that `e` completes moves to done.
TIDE_NODISCARD static inline tide_status tide__leaves_add(tide__leaves *l, const tide__replay *r, const tide__event *e,
                                                          size_t series) {
    // Most events are inside of an interval and change one series that has changed before in it, or none.
    const bool plain = e->id < l->plain_until && r->n_changed <= 1 && r->n_series <= l->n_open;
    if (__builtin_expect(!plain || (series != 0 && l->open[series].first_event == 0), 0))
        return tide__leaves_add_any(l, r, e, series);
    l->last_event = e->id;
    l->end_ns = e->t_ns;
    if (series == 0) return TIDE_OK;
    tide__leaf_change(&l->open[0], &r->series[0], e->id, e->t_ns, true, true);
    tide__leaf_change(&l->open[series], &r->series[series], e->id, e->t_ns, true, true);
    return TIDE_OK;
}
/// End the current interval early: nothing follows.
tide_status tide__leaves_end(tide__leaves *l) TIDE_NODISCARD;
void tide__leaves_deinit(tide__leaves *l);

#endif
