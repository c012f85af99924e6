// SPDX-License-Identifier: MIT
//
// lanes: the processes of a trace side by side: ranks of a job, hosts that were merged (docs/merging.md). What each
// had, in columns of time, so that one can be held against the others.
#ifndef TIDE_PROFILER_LANES_H
#define TIDE_PROFILER_LANES_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_LANE_NAME_BYTES = 96 };

/// A process that recorded. Bytes are requested ones of live blocks, of all kinds and devices.
typedef struct tide_trace_lane {
    uint32_t process;                ///< from 0, as events have it
    char name[TIDE_LANE_NAME_BYTES]; ///< its label; else "rank 3", else "4711"
    int64_t pid, rank;               ///< -1: not known, none
    bool is_there;                   ///< it has blocks; else all that follows is 0
    uint64_t n_blocks;               ///< that it allocated
    uint64_t begin_ns, end_ns;       ///< of the events of its blocks
    uint64_t peak_bytes, peak_ns;    ///< highest, and when first
    uint64_t mean_bytes;             ///< from the first to the last of these; of one moment alone what it had then
    uint64_t end_bytes;              ///< after the last of these
    uint64_t *most;    ///< [n columns] highest in each; TIDE_UNKNOWN_BYTES before begin_ns and behind end_ns
    uint64_t *most_ns; ///< [n columns] when it was that high first
} tide_trace_lane;

typedef struct tide_trace_lanes {
    tide_trace_lane *items; ///< [n] in order of the file, owned
    size_t n;
    uint64_t begin_ns, end_ns; ///< of the trace; column i is [begin + i * len / n, begin + (i + 1) * len / n)
    size_t n_columns;
} tide_trace_lanes;

/// All processes of the trace, in `n_columns` (at least 1) equal columns of its time. A replay of it: 0.2 us an event.
/// TIDE_ERR_NOMEM; what reading returns.
tide_status tide_trace_get_lanes(tide_trace *t, size_t n_columns, tide_trace_lanes *out,
                                 tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide_trace_lanes_deinit(tide_trace_lanes *l);
/// What people call the process with this number (from 0): "" for one that the trace does not know. `buf` has
/// TIDE_LANE_NAME_BYTES.
tide_status tide_trace_lane_name(const tide_trace *t, uint32_t process, char *buf, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
