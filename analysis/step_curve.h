// SPDX-License-Identifier: MIT
//
// step curve: a curve that is constant between its points, kept whole in memory: what a plan has alive at its steps,
// what allocators took from the system. Private to analysis/.
//
//     bytes  3 |      +----+           points (t, bytes): (0, 1) (2, 3) (4, 2)
//            1 |------+    +------     right-continuous: the point's value holds from its t on
#ifndef TIDE_ANALYSIS_STEP_CURVE_H
#define TIDE_ANALYSIS_STEP_CURVE_H

#include "core/base/status.h"

#include <stdint.h>

typedef struct tide__step_point {
    int64_t t;
    uint64_t event; ///< of a trace; 0: none
    uint64_t bytes;
} tide__step_point;

typedef struct tide__step_curve {
    tide__step_point *points; ///< [n] by t, owned. Of those that share a t the last one holds; the others are spikes
    size_t n, cap;
} tide__step_curve;

/// A change: `bytes` more from `begin` on and less from `end` on.
typedef struct tide__step_change {
    int64_t begin, end;
    uint64_t begin_event, end_event;
    uint64_t bytes;
} tide__step_change;

/// The sum of changes; `whole_events`: a point for each end, else what shares a t is one point. TIDE_ERR_NOMEM;
/// TIDE_ERR_OVERFLOW when the sum of all passes 2^64.
tide_status tide__step_curve_make(const tide__step_change *changes, size_t n, bool whole_events,
                                  tide__step_curve *out) TIDE_NODISCARD;
tide_status tide__step_curve_add(tide__step_curve *c, int64_t t, uint64_t event, uint64_t bytes) TIDE_NODISCARD;
void tide__step_curve_deinit(tide__step_curve *c);

/// The value at `t`: 0 before the first point. With event > 0: after that event.
uint64_t tide__step_curve_at(const tide__step_curve *c, int64_t t, uint64_t event);
/// As tide_subject_columns.
void tide__step_curve_columns(const tide__step_curve *c, int64_t t0, int64_t t1, size_t n, uint64_t *min_bytes,
                              uint64_t *max_bytes);
/// Highest value within [t0, t1] and where it is first; what holds at t0 counts.
void tide__step_curve_peak(const tide__step_curve *c, int64_t t0, int64_t t1, uint64_t *bytes, int64_t *t,
                           uint64_t *event);

/// begin + part / n of the length, without overflow: where column `part` of [begin, begin + len) begins.
int64_t tide__column_edge(int64_t begin, uint64_t len, size_t part, size_t n);

#endif
