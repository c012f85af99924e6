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

/// An open trace. For one thread at a time.
typedef struct tide_trace tide_trace;

/// First bytes of a file that tide_trace_recognise wants to see.
enum { TIDE_TRACE_HEAD_BYTES = 100 };
/// Of the trace format that is written and read here (docs/trace-format.md).
enum { TIDE_TRACE_VERSION = 2 };
/// Whether a file that begins with `head` is a trace, of whatever version: by content, not by name.
bool tide_trace_recognise(const void *head, size_t n_bytes);

/**
 * Open read-only and check that all is there: rows of each table and the sums of bytes against what the recorder
 * counted.
 *
 * @return TIDE_ERR_IO; TIDE_ERR_BAD_INPUT for another format, another schema version or a damaged file, with a note
 */
tide_status tide_trace_open(const char *path, tide_trace **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide_trace_close(tide_trace *t);
/// A value of table meta, cut to fit into `buf`. TIDE_ERR_NOT_FOUND.
tide_status tide_trace_meta(tide_trace *t, const char *key, char *buf, size_t buf_bytes,
                            tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_run {
    int64_t id;
    char model[256], source[256], mode[16], strategy[64], device[16];
    uint64_t begin_ns, end_ns; ///< on the clock of the events, CLOCK_MONOTONIC
    bool has_plan;
    uint64_t plan_bytes, plan_naive_bytes, plan_lower_bound_bytes; ///< meaningful with has_plan
} tide_trace_run;
/// Runs in order of id into a fresh array, owned by the caller (tide_host_free; NULL when there are none).
tide_status tide_trace_runs(tide_trace *t, tide_trace_run **out, size_t *n, tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_kind {
    tide_memory_kind kind;
    char device[16];
    uint64_t requested_bytes; ///< sum of all requests made in the run
    uint64_t peak_bytes;      ///< highest live requested bytes: the "measured"
    uint64_t peak_reserved_bytes;
    uint64_t predicted_bytes; ///< by the run's plan; TIDE_UNKNOWN_BYTES without one and on other devices than the run's
    uint64_t n_allocs, n_frees; ///< in the run
    uint64_t live_at_end_bytes;
} tide_trace_kind;
/**
 * Per kind and device for one run, in that order; blocks that were already alive when it began count. run_id 0: the
 * whole trace, without predictions. Kinds that nothing was allocated from and nothing was predicted for are left out.
 *
 * Predicted is tide_memory_plan_predicted of the plan stored with the run; but a naive run has no buffer and frees each
 * tensor at its last use, so that its Workspace peaks at the plan's lower bound.
 *
 * @param out  fresh array, owned by the caller (tide_host_free; NULL when there are none)
 * @return TIDE_ERR_NOT_FOUND for a run that is not there; TIDE_ERR_BAD_INPUT
 */
tide_status tide_trace_kinds(tide_trace *t, int64_t run_id, tide_trace_kind **out, size_t *n,
                             tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_block {
    uint64_t id;
    char *name;          ///< tag of the block, or "" ; owned by the array: free with tide_trace_blocks_free
    char *scope;         ///< innermost scope it was allocated in (operator, run or region), or ""
    int64_t scope_index; ///< step of that operator, number of that run; -1: none
    tide_memory_kind kind;
    char device[16];
    uint64_t stream;
    uint64_t requested_bytes, reserved_bytes, address;
    uint64_t alloc_ns;
    uint64_t free_ns; ///< when the free was complete; UINT64_MAX: never freed in the trace
    uint32_t thread;  ///< that allocated it
    int64_t run_id;   ///< run it was allocated in; 0: outside of all runs
} tide_trace_block;
/// Every block of the trace that lived during the run, by time of allocation. run_id 0: all.
tide_status tide_trace_blocks(tide_trace *t, int64_t run_id, tide_trace_block **out, size_t *n,
                              tide_error *err) TIDE_NODISCARD;
void tide_trace_blocks_free(tide_trace_block *blocks, size_t n);

/// Requested bytes of `kind` (or of all: -1) alive just after time `t_ns`: what happened at `t_ns` has happened.
tide_status tide_trace_live_at(tide_trace *t, int kind, uint64_t t_ns, uint64_t *bytes, tide_error *err) TIDE_NODISCARD;
/// Highest live requested bytes of one run (0: all) and the first moment they were reached; its begin when that was
/// before. `kind` -1: of all kinds together. `t_ns` may be NULL.
tide_status tide_trace_peak(tide_trace *t, int64_t run_id, int kind, uint64_t *bytes, uint64_t *t_ns,
                            tide_error *err) TIDE_NODISCARD;
/// The plan stored with a run, as a memory plan; TIDE_ERR_NOT_FOUND when it has none. One that is marked as verified
/// has passed the verifier again: TIDE_ERR_BAD_INPUT otherwise.
tide_status tide_trace_plan(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;

typedef struct tide_trace_step {
    int64_t index;
    char *name;                ///< owned by the array
    uint64_t begin_ns, end_ns; ///< of its first execution in the run, on the thread that began the run's first operator
                               ///< when it executed the step at all; an operator that was not left ends with the run
} tide_trace_step;
/// Steps that were executed in the run, by index; operators without an index are left out.
tide_status tide_trace_steps(tide_trace *t, int64_t run_id, tide_trace_step **out, size_t *n,
                             tide_error *err) TIDE_NODISCARD;
void tide_trace_steps_free(tide_trace_step *steps, size_t n);

#ifdef __cplusplus
}
#endif
#endif
