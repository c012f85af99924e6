// SPDX-License-Identifier: MIT
//
// sweep: what a run did to live memory, as a list of changes in order of events. Peaks, kinds and curves are one pass
// over it. Private to profiler/.
//
//     blocks alive at the begin: +a +b | +c  -a  +d  -c ...   each change has the number of its event and its time
#ifndef TIDE_PROFILER_SWEEP_H
#define TIDE_PROFILER_SWEEP_H

#include "profiler/trace_internal.h"

typedef struct tide__change {
    int64_t event;
    uint64_t t_ns;
    uint64_t requested_bytes, reserved_bytes;
    uint64_t block_id;
    uint16_t device; ///< id in table device
    uint8_t kind;
    bool is_alloc;
} tide__change;

typedef struct tide__sweep {
    tide__span span;
    tide__change *changes; ///< [n], by event; owned
    size_t n;
    size_t n_before; ///< the first n_before were alive when the span began
} tide__sweep;

/// Changes of a run (0: of the whole trace). Sums over them cannot overflow and never fall below 0: what would is
/// TIDE_ERR_BAD_INPUT.
tide_status tide__sweep_make(const tide_trace *t, int64_t run_id, tide__sweep *out, tide_error *err) TIDE_NODISCARD;
void tide__sweep_deinit(tide__sweep *s);

#endif
