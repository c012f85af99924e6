// SPDX-License-Identifier: MIT
//
// sizes: what came out of tensors that are sized while running. The plan of a run has their bounds and a place with
// room for them (tide_lifetime.bound); each time that one is made the runtime tells how much of it is used.
#ifndef TIDE_PROFILER_SIZES_H
#define TIDE_PROFILER_SIZES_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One tensor, once. Texts are borrowed from the trace.
typedef struct tide_trace_size {
    uint64_t event, t_ns;
    int64_t run_id;      ///< 0: outside of all runs
    uint32_t thread;     ///< of the trace
    uint64_t tensor;     ///< in the plan of the run, as the program says: there may be no such tensor
    uint64_t block_id;   ///< that it lies in; 0: it did not say
    const char *extents; ///< "[12x6]"; "" not told
    uint64_t bytes;      ///< that it takes
} tide_trace_size;
/// All of them in order of events. *out [*n] is owned: tide_host_free; NULL when there are none. Looks at every event:
/// 0.05 us each.
tide_status tide_trace_sizes(tide_trace *t, tide_trace_size **out, size_t *n, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
