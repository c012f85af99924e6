// SPDX-License-Identifier: MIT
//
// query: the read side of a trace file. TUI, reports and the gate use only this and never SQL of their own.
#ifndef TIDE_PROFILER_QUERY_H
#define TIDE_PROFILER_QUERY_H

#include "core/base/text.h"
#include "core/memory/observer.h"
#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_trace tide_trace;

/// Open read-only. TIDE_ERR_IO; TIDE_ERR_BAD_INPUT for another format, a newer schema version or a damaged file.
tide_status tide_trace_open(const char *path, tide_trace **out, tide_error *err) TIDE_NODISCARD;
void tide_trace_close(tide_trace *t);

typedef struct tide_trace_run {
    int64_t id;
    char model[256], source[256], mode[16], strategy[64], device[16];
    uint64_t begin_ns, end_ns; ///< of CLOCK_MONOTONIC
    bool has_plan;
    uint64_t plan_bytes, plan_naive_bytes, plan_lower_bound_bytes; ///< meaningful with has_plan
} tide_trace_run;
/// Runs in order of id into a fresh array, owned by the caller (tide_host_free).
tide_status tide_trace_runs(tide_trace *t, tide_trace_run **out, size_t *n, tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_kind {
    tide_memory_kind kind;
    char device[16];
    uint64_t requested_bytes;   ///< sum of all requests
    uint64_t peak_bytes;        ///< highest live requested bytes; TIDE's "measured"
    uint64_t peak_reserved_bytes;
    uint64_t predicted_bytes;   ///< by the run's plan; TIDE_UNKNOWN_BYTES without one
    uint64_t n_allocs, n_frees;
    uint64_t live_at_end_bytes;
} tide_trace_kind;
/// Per kind for one run, blocks that were already alive when it began included. run_id 0: the whole trace.
tide_status tide_trace_kinds(tide_trace *t, int64_t run_id, tide_trace_kind **out, size_t *n, tide_error *err)
    TIDE_NODISCARD;

typedef struct tide_trace_block {
    uint64_t id;
    char *name;              ///< tag of the block, or "" ; owned by the array: free with tide_trace_blocks_free
    char *scope;             ///< operator it was allocated in, or ""
    int64_t scope_index;     ///< step of that operator; -1: none
    tide_memory_kind kind;
    char device[16];
    uint64_t stream;
    uint64_t requested_bytes, reserved_bytes, address;
    uint64_t alloc_ns;
    uint64_t free_ns;        ///< UINT64_MAX: never freed in the trace
    uint32_t thread;
} tide_trace_block;
/// Every block of the trace that lived during the run, by time of allocation. run_id 0: all.
tide_status tide_trace_blocks(tide_trace *t, int64_t run_id, tide_trace_block **out, size_t *n, tide_error *err)
    TIDE_NODISCARD;
void tide_trace_blocks_free(tide_trace_block *blocks, size_t n);

/// Requested bytes of `kind` (or of all: -1) alive just after time `t_ns`.
tide_status tide_trace_live_at(tide_trace *t, int kind, uint64_t t_ns, uint64_t *bytes, tide_error *err) TIDE_NODISCARD;
/// Highest live requested bytes of one run (0: all) and the first moment they were reached.
tide_status tide_trace_peak(tide_trace *t, int64_t run_id, int kind, uint64_t *bytes, uint64_t *t_ns,
                            tide_error *err) TIDE_NODISCARD;
/// The plan stored with a run, as a memory plan; TIDE_ERR_NOT_FOUND when it has none.
tide_status tide_trace_plan(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_step {
    int64_t index;
    char *name; ///< owned by the array
    uint64_t begin_ns, end_ns; ///< of its first execution in the run
} tide_trace_step;
tide_status tide_trace_steps(tide_trace *t, int64_t run_id, tide_trace_step **out, size_t *n, tide_error *err)
    TIDE_NODISCARD;
void tide_trace_steps_free(tide_trace_step *steps, size_t n);

#ifdef __cplusplus
}
#endif
#endif
