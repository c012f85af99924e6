// SPDX-License-Identifier: MIT
//
// sizes: of the items that are sized while running, what they were at most (by the plan) and what came out (by the
// trace), for the details, lists, pages and tables.
//
//     the plan    boxes    at most [300x6], 7.03 KiB: so much place it has, and so much every figure counts
//     execution   boxes    came out as [12x6], 288 B
#ifndef TIDE_ANALYSIS_SIZES_H
#define TIDE_ANALYSIS_SIZES_H

#include "analysis/run_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What came out of an item: of a tensor in a plan's buffer in one execution, of a block as long as it lived.
typedef struct tide_size {
    uint64_t id;         ///< of the item
    const char *bound;   ///< at most, as the plan says it; "" or NULL: it is not sized while running
    const char *extents; ///< the last of them; "" none
    uint64_t bytes;      ///< of the last; TIDE_UNKNOWN_BYTES: none came out, as of a plan
    uint64_t least_bytes, most_bytes;
    uint64_t n; ///< so often it was made; 0: never, as far as is known
} tide_size;

/// Whether it is one that is sized while running.
static inline bool tide_size_is_bounded(const tide_size *s) { return s->bound != NULL && s->bound[0] != '\0'; }

/// All of them by id. Texts are borrowed from the plan and the trace.
typedef struct tide_sizes {
    tide_size *items; ///< [n], owned
    size_t n;
} tide_sizes;

/// Of a plan: its bounds, by the index of the tensor.
tide_status tide_sizes_of_plan(const tide_memory_plan *plan, tide_sizes *out, tide_error *err) TIDE_NODISCARD;
/// Of a run (0: of all runs). `planned` has the executions in buffers; `plan` is that of the run, and may be NULL.
/// Reads events only where a plan has bounds.
tide_status tide_sizes_of_trace(tide_trace *t, int64_t run_id, const tide__planned_runs *planned,
                                const tide_memory_plan *plan, tide_sizes *out, tide_error *err) TIDE_NODISCARD;
void tide_sizes_deinit(tide_sizes *s);
/// That of an item; with bound "" and nothing known where it is not sized while running.
tide_size tide_sizes_find(const tide_sizes *s, uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
