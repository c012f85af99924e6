// SPDX-License-Identifier: MIT
//
// timeline: the one model behind the TUI and the reports: things that live from a begin to an end on one axis, and
// the curve of their sum. Made from a memory plan (axis: steps) or from a run of a trace (axis: nanoseconds).
#ifndef TIDE_PROFILER_TIMELINE_H
#define TIDE_PROFILER_TIMELINE_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_axis { TIDE_AXIS_STEPS, TIDE_AXIS_NS } tide_axis;

typedef struct tide_timeline_item {
    char *name;           ///< owned
    char *owner;          ///< operator that made it, or ""; owned
    uint64_t size_bytes;  ///< requested (trace) or aligned (plan)
    uint64_t reserved_bytes;
    int64_t begin, end;   ///< half-open, on the axis; never-freed ones end at the axis' end
    bool open_ended;      ///< never freed (trace)
    tide_memory_kind kind;
    tide_role role;       ///< of a plan; INTERMEDIATE where a trace does not tell
    bool persistent;
    int32_t pool;         ///< TIDE_NO_POOL: none
    uint64_t offset_bytes; ///< place in the planned buffer; TIDE_NO_OFFSET: none
    uint64_t id;          ///< block id or index in the plan
} tide_timeline_item;

/// The curve is right-continuous: `bytes` holds from `t` to the next point.
typedef struct tide_timeline_point { int64_t t; uint64_t bytes; } tide_timeline_point;

typedef struct tide_timeline {
    tide_axis axis;
    int64_t begin, end;         ///< of the axis
    char *title;                ///< "mnist-8: planned, greedy_by_size"; owned
    char *model, *mode, *strategy; ///< owned; "" where unknown
    tide_timeline_item *items;  ///< [n_items], by begin, then by size descending, then by id
    size_t n_items;
    tide_timeline_point *curve; ///< [n_points] sum over items that are drawn (all kinds), exact: one point per change
    size_t n_points;
    uint64_t peak_bytes;        ///< of the curve
    int64_t peak_t;             ///< first moment of it
    char **step_names;          ///< [n_steps] names of the steps; owned
    int64_t *step_begin;        ///< [n_steps] position of each step on the axis
    size_t n_steps;
    bool has_plan;
    uint64_t plan_bytes, naive_bytes, lower_bound_bytes; ///< with has_plan
    tide_trace_kind *kinds;     ///< [n_kinds]; predicted and measured; from a plan alone: measured unknown
    size_t n_kinds;
    tide_memory_plan *plan;     ///< owned; NULL without one: pools and offsets for tables
} tide_timeline;

/// `include_persistent`: also weights, inputs and outputs (they live all the time and lift the curve).
tide_status tide_timeline_from_plan(const tide_memory_plan *plan, bool include_persistent, tide_timeline **out,
                                    tide_error *err) TIDE_NODISCARD;
/// run_id 0: the last run.
tide_status tide_timeline_from_trace(tide_trace *trace, int64_t run_id, tide_timeline **out, tide_error *err)
    TIDE_NODISCARD;
void tide_timeline_destroy(tide_timeline *t);

/// Smallest and largest value of the curve within each of `n` equal columns of [begin, end): no spike is lost.
void tide_timeline_columns(const tide_timeline *t, int64_t begin, int64_t end, size_t n, uint64_t *min_bytes,
                           uint64_t *max_bytes);
/// Value of the curve at `t`.
uint64_t tide_timeline_at(const tide_timeline *t, int64_t at);

#ifdef __cplusplus
}
#endif
#endif
