// SPDX-License-Identifier: MIT
//
// nsight_ranges: ranges and marks that a program named with NVTX, of an export of Nsight Systems (table NVTX_EVENTS). A
// range is a scope of the thread that began it, below the one that thread began last and that is open; what a thread
// allocates is in the innermost. Private to profiler/import.
//
//     push "step" .... push "forward" .. cudaMalloc .. pop .... pop        cudaMalloc is in "forward", which is in
//     "step"
#ifndef TIDE_PROFILER_IMPORT_NSIGHT_RANGES_H
#define TIDE_PROFILER_IMPORT_NSIGHT_RANGES_H

#include <sqlite3.h>

#include "core/base/map.h"
#include "profiler/import/import_internal.h"

/// The thread of the trace for a `globalTid` of the file. *out: its id
typedef tide_status (*tide__nsight_thread_fn)(void *ctx, int64_t row, int64_t global_tid, int32_t *out,
                                              tide_error *err);

/// Zero-initialise, and set the first five.
typedef struct tide__nsight_ranges {
    sqlite3 *db;
    const char *path;
    tide__new_trace *out;
    tide__nsight_thread_fn thread;
    void *ctx;
    sqlite3_stmt *rows; ///< NULL: the file has none
    bool has_next;      ///< the statement stands at the next one that begins
    int64_t next_ns;
    struct tide__nsight_range {
        int32_t thread, scope;
        bool is_over;
    } * all; ///< [n] by number, owned
    struct tide__nsight_end {
        int64_t t_ns;
        size_t number;
    } * ends;      ///< [n_ends] of open ones, a heap with the first at 0; owned
    tide_map open; ///< tide__nsight_open: by thread
    size_t n, cap, n_ends, cap_ends;
} tide__nsight_ranges;

tide_status tide__nsight_ranges_open(tide__nsight_ranges *r, tide_error *err) TIDE_NODISCARD;
/// Writes what begins and ends up to `t_ns`, that moment included; INT64_MAX: all. TIDE_ERR_BAD_INPUT with the row
tide_status tide__nsight_ranges_until(tide__nsight_ranges *r, int64_t t_ns, tide_error *err) TIDE_NODISCARD;
/// The innermost range that is open on the thread; 0: none.
int32_t tide__nsight_ranges_scope(tide__nsight_ranges *r, int32_t thread);
void tide__nsight_ranges_deinit(tide__nsight_ranges *r);

#endif
