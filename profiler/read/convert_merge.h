// SPDX-License-Identifier: MIT
//
// convert_merge: the two tables of events that versions 1 and 2 had, told as one. Private to profiler/read.
#ifndef TIDE_PROFILER_READ_CONVERT_MERGE_H
#define TIDE_PROFILER_READ_CONVERT_MERGE_H

#include "profiler/read/convert_runs.h"

typedef struct tide__merged {
    int64_t n_events, n_scope_events; ///< told of, as each table counts them
    int64_t last_event, last_scope_event;
} tide__merged;

/// Tell all events of table event and table scope_event, by time, and within one nanosecond so that an event lies in
/// the scope and the run that it says it does. Lenient: what is missing is told of as a gap.
tide_status tide__convert_merge(tide__retell *r, tide__merged *out, tide_error *err) TIDE_NODISCARD;

#endif
