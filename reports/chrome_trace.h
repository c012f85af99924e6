// SPDX-License-Identifier: MIT
//
// chrome trace: a recorded trace or a plan in the Trace Event Format, the JSON that Perfetto (ui.perfetto.dev) and
// chrome://tracing open. It is written as it is made: of a trace only what is live is held.
//
//     process 1     "memory": counters of each device and memory kind, of all processes together; marks; runs
//     process 2, …  the recorded processes: their threads with scopes, counters of their allocators, a slice each block
//
// Of a plan, whose time is counted in steps, one step is shown as a microsecond. docs/interchange.md has what goes
// where.
#ifndef TIDE_REPORTS_CHROME_TRACE_H
#define TIDE_REPORTS_CHROME_TRACE_H

#include "core/base/output.h"
#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Write a run of a trace (0: all that is kept), with what was alive when it began; `out` is of tide_output_open, and
/// stays the caller's. Times are microseconds with three decimals since the trace began.
/// @return TIDE_ERR_NOT_FOUND for a run that is not there; TIDE_ERR_WRITE; TIDE_ERR_NOMEM; errors of reading a trace
/// Costs some microseconds an event, nearly 300 bytes of output each, and memory for live blocks, for executions of
/// planned runs, and a megabyte.
tide_status tide_chrome_trace_of_trace(tide_trace *t, int64_t run_id, tide_output *out, tide_error *err) TIDE_NODISCARD;
/// Write a plan: steps, a slice each tensor with its offset, live bytes of each buffer. @return TIDE_ERR_WRITE;
/// TIDE_ERR_NOMEM; TIDE_ERR_OVERFLOW as of tide_lifetimes_occupied. O(n log n).
tide_status tide_chrome_trace_of_plan(const tide_memory_plan *plan, tide_output *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
