// SPDX-License-Identifier: MIT
//
// lanes: which process of a trace differs from the others, when, and by what it holds more or less.
//
// Ranks do the same things at nearly the same time: what one allocates a moment before the others is no difference. So
// a lane is held against the others by columns of time, each by the highest that was in it, and a lane has more than
// the others only where it has more than they have in that column and in those beside it:
//
//     others (median)  __--__----__--__
//     this one         __--__--------__      more: here, for longer than a column
//                               ^^
#ifndef TIDE_ANALYSIS_LANES_H
#define TIDE_ANALYSIS_LANES_H

#include "analysis/table.h"
#include "profiler/lanes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_LANES_COLUMNS = 240, TIDE_LANES_CAUSES = 8 };

typedef struct tide_lane_row {
    const tide_trace_lane *lane;
    int64_t differs_bytes;  ///< at most: more than the median of the others, below 0 less; 0: nowhere
    uint64_t differs_ns;    ///< when; UINT64_MAX: nowhere
    uint64_t typical_bytes; ///< that median then
} tide_lane_row;

/// What the lane that differs most holds more of, or less, than the others.
typedef struct tide_lane_cause {
    char *name;                    ///< of the blocks; owned
    uint64_t bytes, typical_bytes; ///< of this lane, and the median of the others
} tide_lane_cause;

typedef struct tide_lanes {
    tide_trace_lanes trace;  ///< owned
    tide_lane_row *rows;     ///< [trace.n], in order of the file; owned
    uint64_t *typical;       ///< [trace.n_columns] median of all lanes that are there; owned
    size_t outlier;          ///< the row that differs most; SIZE_MAX: none differs. Of two it is the one that has more
    tide_lane_cause *causes; ///< [n_causes] at that moment, the largest difference first; owned
    size_t n_causes;
} tide_lanes;

/// Of a trace with one process nothing differs. Costs two replays. TIDE_ERR_NOMEM; what reading returns.
tide_status tide_lanes_make(tide_trace *t, tide_lanes *out, tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide_lanes_deinit(tide_lanes *l);

/// Lanes as a table, and what the outlier holds more of. Moments count from the origin of `facts`; NULL: durations from
/// the begin of the trace. Borrows.
tide_table tide_table_of_lanes(const tide_lanes *l);
tide_table tide_table_of_lane_causes(const tide_lanes *l);
/// "rank 3 has up to 1.5 MiB more than the others, at 12 ms" into `out`; "" where none differs.
void tide_lanes_say(const tide_lanes *l, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
