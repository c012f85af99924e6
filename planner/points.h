// SPDX-License-Identifier: MIT
//
// points: one table for a model that runs at several sizes. Every tensor is as large as at the point where it is
// largest, so that one plan serves all points (S27-23); what each point alone would take is kept beside it.
#ifndef TIDE_PLANNER_POINTS_H
#define TIDE_PLANNER_POINTS_H

#include "core/runtime/memory_plan.h"
#include "core/runtime/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a profile point takes when it is planned alone.
typedef struct tide_point_need {
    const char *name;           ///< borrowed
    uint64_t lower_bound_bytes; ///< of the planned buffers
    uint64_t bytes;             ///< that its own plan takes
} tide_point_need;

/**
 * Merge tables of the same program at several sizes, tensors by their names. Steps and lifetimes are those of
 * tables[base]. No tensor is an alias: where one would lie may depend on the size (tide_passes_at_points). Scratch that
 * a size has no use for counts 0 bytes there.
 *
 * @param tables  [n] in the same order of steps
 * @param names   [n] of the points
 * @return TIDE_ERR_INCOMPARABLE naming two points and what one has and the other has not
 */
tide_status tide_lifetimes_merge_points(const tide_lifetimes *tables, const char *const *names, size_t n, size_t base,
                                        tide_lifetimes *out, tide_error *err) TIDE_NODISCARD;

/// Every tensor of a program says its extents as its bound, until the tables of all points are one.
tide_status tide_lifetimes_say_extents(const tide_program *program, tide_lifetimes *lt, tide_error *err) TIDE_NODISCARD;
/// Of the merged table those keep it whose size hangs on the point, or that are sized while running; inputs say it
/// themselves.
void tide_lifetimes_keep_bounds(const tide_program *program, tide_lifetimes *lt);

#ifdef __cplusplus
}
#endif
#endif
