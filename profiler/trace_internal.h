// SPDX-License-Identifier: MIT
//
// The inside of an open trace, shared by the files of the query side. Private to profiler/.
#ifndef TIDE_PROFILER_TRACE_INTERNAL_H
#define TIDE_PROFILER_TRACE_INTERNAL_H

#include "profiler/query.h"
#include "profiler/sql.h"

struct tide_trace {
    tide__sql sql; ///< path as the caller gave it
    char *path;    ///< owned, the same
};

/// The part of a trace that a run covers; run 0 is the whole of it.
typedef struct tide__span {
    int64_t first_event, last_event; ///< last < first: nothing happened
    uint64_t begin_ns, end_ns;
} tide__span;
/// TIDE_ERR_NOT_FOUND for a run that is not there.
tide_status tide__trace_span(const tide_trace *t, int64_t run_id, tide__span *out, tide_error *err) TIDE_NODISCARD;

/// The plan of a run, NULL when it has none.
tide_status tide__trace_plan_or_null(tide_trace *t, int64_t run_id, tide_memory_plan **out,
                                     tide_error *err) TIDE_NODISCARD;

/// TIDE_ERR_BAD_INPUT: a row of `table` that no recorder wrote.
tide_status tide__trace_bad_row(const tide_trace *t, const char *table, int64_t id, tide_error *err);
/// Copy text into a fixed field, cut between two characters when it is too long.
void tide__trace_copy_text(char *out, size_t out_bytes, const char *text);

#endif
