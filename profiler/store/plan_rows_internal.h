// SPDX-License-Identifier: MIT
//
// What the readers of a stored plan share: the plan in the making, and rows that wait for what they belong to. Private
// to plan_rows_read.c and plan_rows_tensors.c.
#ifndef TIDE_PROFILER_PLAN_ROWS_INTERNAL_H
#define TIDE_PROFILER_PLAN_ROWS_INTERNAL_H

#include "profiler/store/plan_rows.h"

/// A gap with its tensor; they come before the tensors, which take them.
typedef struct tide__gap_row {
    uint64_t tensor_i;
    tide_gap gap;
} tide__gap_row;

/// A size at a profile point.
typedef struct tide__size_row {
    uint64_t tensor_i, point;
    uint64_t bytes;
} tide__size_row;

typedef struct tide__alias_row {
    uint32_t tensor_i, of;
    tide_alias_kind kind;
    uint64_t offset_bytes;
} tide__alias_row;

/// Rows that are there: amounts of memory are asked by these and not by what a row claims.
typedef struct tide__plan_counts {
    uint64_t n_tensors, n_pools, n_buffers, n_step_names, n_gaps, n_points, n_sizes, n_recomputed;
} tide__plan_counts;

typedef struct tide__plan_reader {
    const tide__sql *s;
    int64_t run_id;
    tide_memory_plan *p;
    tide__plan_counts n;
    tide__gap_row *gaps; ///< [n.n_gaps], by tensor
    size_t n_gaps, next_gap;
    tide__size_row *sizes; ///< [n.n_sizes], by tensor
    size_t n_sizes, next_size;
    tide__alias_row *aliases; ///< [n_aliases]
    size_t n_aliases, cap_aliases;
    tide_error *err;
} tide__plan_reader;

/// TIDE_ERR_BAD_INPUT: a row of `table` that no recorder wrote.
tide_status tide__plan_bad_row(const tide__plan_reader *r, const char *table, size_t row_i);
tide_status tide__plan_no_memory(const tide__plan_reader *r);

/// Rows of plan_gap and plan_point_size, which come first; of plan_tensor, which takes them; then the aliases.
tide_status tide__plan_take_gap(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) TIDE_NODISCARD;
tide_status tide__plan_take_size(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) TIDE_NODISCARD;
tide_status tide__plan_take_tensor(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) TIDE_NODISCARD;
tide_status tide__plan_make_aliases(tide__plan_reader *r) TIDE_NODISCARD;
/// What the queries for them select, in order.
#define TIDE__PLAN_GAP_COLUMNS "idx, gap, begin_step, end_step, lo_bytes, hi_bytes"
#define TIDE__PLAN_SIZE_COLUMNS "idx, point, size_bytes"
#define TIDE__PLAN_TENSOR_COLUMNS                                                                                      \
    "idx, name, size_bytes, align_bytes, begin_step, end_step, kind, device, role, persistent, node, port, value, "    \
    "aligned_bytes, pool, offset_bytes, unrounded, fixed_offset_bytes, apart_set, alias, alias_of, alias_offset_bytes"

#endif
