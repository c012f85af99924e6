// SPDX-License-Identifier: MIT
//
// leaf: smallest and largest live bytes of one series over a stretch of events. A trace of any length has a bounded
// number of them (the oldest are merged), so that peaks and timelines never need the events. Private to profiler/.
//
// Stretches are cut at fixed event numbers: 1 to 1024, 1025 to 2048, ... A stretch in which a series did not change has
// no leaf of it: its value is the last_bytes of the leaf before (0 before the first).
#ifndef TIDE_PROFILER_STORE_LEAF_H
#define TIDE_PROFILER_STORE_LEAF_H

#include "profiler/drain/replay.h"

enum { TIDE__LEAF_EVENTS = 1024 };

typedef struct tide__leaf {
    int32_t series;                  ///< row of table series; 0: the sum of all
    int64_t first_event, last_event; ///< of the stretch
    int64_t begin_ns, end_ns;        ///< of its first and last event, whatever series they belong to
    int64_t min_bytes, max_bytes;    ///< of the values after each event of the series
    int64_t max_event, max_ns;       ///< the first that reached max_bytes
    int64_t max_reserved_bytes;
    int64_t last_bytes, last_reserved_bytes; ///< after its last event
} tide__leaf;

/// Makes leaves while events are replayed. Zero-initialise.
typedef struct tide__leaves {
    tide__leaf *open; ///< [n_open] the current stretch, index = series; first_event 0: not yet touched
    size_t n_open, cap_open;
    tide__leaf *done; ///< [n_done] complete, for the store; the caller sets n_done = 0 once they are written
    size_t n_done, cap_done;
    int64_t first_event, begin_ns, last_event, end_ns; ///< of the current stretch; first_event 0: none
    int64_t until;                                     ///< the last event that belongs to it
} tide__leaves;

/// After tide__replay_apply of `e`, which changed `series` (0: nothing). A stretch that `e` completes moves to done.
tide_status tide__leaves_add(tide__leaves *l, const tide__replay *r, const tide__event *e,
                             size_t series) TIDE_NODISCARD;
/// End the current stretch early: nothing follows.
tide_status tide__leaves_end(tide__leaves *l) TIDE_NODISCARD;
void tide__leaves_deinit(tide__leaves *l);

#endif
