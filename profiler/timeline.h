// SPDX-License-Identifier: MIT
//
// timeline: the one model behind the TUI and the reports: things that live from a begin to an end on one axis, and
// the curve of their sum. Made from a memory plan (axis: steps) or from a run of a trace (axis: nanoseconds).
//
// What is drawn for which source:
//
//     source            items                                           curve
//     plan              its tensors                                     what the drawn ones occupy at each step: bytes
//                                                                       that aliases share count once
//     run without plan  blocks that lived during the run                requested bytes of all these blocks
//     run, naive        blocks; roles from the plan if names agree      the same
//     run, planned      blocks, but not the plan's buffer; instead      the same, the buffer included: what the
//                       the tensors planned into it, at the times       allocators gave out, not how much of it
//                       when their first and last step ran first        was in use
#ifndef TIDE_PROFILER_TIMELINE_H
#define TIDE_PROFILER_TIMELINE_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_axis { TIDE_AXIS_STEPS, TIDE_AXIS_NS } tide_axis;

typedef struct tide_timeline_item {
    char *name;          ///< owned
    char *owner;         ///< operator that made it (trace: innermost scope), or ""; owned
    uint64_t size_bytes; ///< requested (trace) or aligned (plan)
    uint64_t reserved_bytes;
    int64_t begin, end; ///< half-open, within the axis; those alive before or after are cut to it; on the axis of a
                        ///< trace begin == end is possible: shorter than the clock can tell
    bool open_ended;    ///< never freed (trace)
    tide_memory_kind kind;
    tide_role role; ///< of a plan; INTERMEDIATE where a trace does not tell
    bool persistent;
    int32_t pool;          ///< TIDE_NO_POOL: none
    uint64_t offset_bytes; ///< place in the planned buffer; TIDE_NO_OFFSET: none
    bool is_planned;       ///< a tensor of the plan; false: a block of the trace
    tide_alias_kind alias; ///< of a planned tensor that lies inside another one
    uint64_t alias_of;     ///< that one's id
    uint64_t id;           ///< index in the plan or block id
} tide_timeline_item;

/// The curve is right-continuous: `bytes` holds from `t` to the next point, and is 0 before the first. `t` never
/// decreases; where several points share one, only the last holds for a time, and the others are spikes without width,
/// which peak_bytes and tide_timeline_columns see all the same.
typedef struct tide_timeline_point {
    int64_t t;
    uint64_t bytes;
} tide_timeline_point;

typedef struct tide_timeline {
    tide_axis axis;
    int64_t begin, end;            ///< of the axis
    char *title;                   ///< "mnist-8: planned, greedy_by_size"; owned
    char *model, *mode, *strategy; ///< owned; "" where unknown; mode of a plan alone: "plan"
    tide_timeline_item *items;     ///< [n_items], by begin, then by size descending, then by id
    size_t n_items;
    tide_timeline_point *curve; ///< [n_points >= 1] exact: the first at `begin`, then one per change
    size_t n_points;
    uint64_t peak_bytes; ///< of the curve
    int64_t peak_t;      ///< first moment of it
    char **step_names;   ///< [n_steps] names of the steps; owned; none for a plan without names
    int64_t *step_begin; ///< [n_steps] position of each step on the axis; in a trace: of those that ran
    size_t n_steps;
    bool has_plan;
    uint64_t plan_bytes, naive_bytes, lower_bound_bytes; ///< with has_plan
    tide_trace_kind *kinds; ///< [n_kinds]; predicted and measured; from a plan alone: all measured fields, counts
                            ///< too, are TIDE_UNKNOWN_BYTES
    size_t n_kinds;
    tide_memory_plan *plan; ///< owned; NULL without one: pools and offsets for tables
} tide_timeline;

/// `include_persistent`: also weights, inputs and outputs (they live all the time and lift the curve).
tide_status tide_timeline_from_plan(const tide_memory_plan *plan, bool include_persistent, tide_timeline **out,
                                    tide_error *err) TIDE_NODISCARD;
/// run_id 0: the last run, or the whole trace when there is none. TIDE_ERR_NOT_FOUND; TIDE_ERR_BAD_INPUT.
tide_status tide_timeline_from_trace(tide_trace *trace, int64_t run_id, tide_timeline **out,
                                     tide_error *err) TIDE_NODISCARD;
void tide_timeline_destroy(tide_timeline *t);

/// Smallest and largest value of the curve within each of `n` equal columns of [begin, end): no spike is lost. Column i
/// is [begin + i * len / n, begin + (i + 1) * len / n), and at least one unit of the axis wide.
void tide_timeline_columns(const tide_timeline *t, int64_t begin, int64_t end, size_t n, uint64_t *min_bytes,
                           uint64_t *max_bytes);
/// Value of the curve at `t`.
uint64_t tide_timeline_at(const tide_timeline *t, int64_t at);
/// The name of what `item` lies inside, borrowed; NULL when it is no alias, or the timeline has no plan.
const char *tide_timeline_inside(const tide_timeline *t, const tide_timeline_item *item);

#ifdef __cplusplus
}
#endif
#endif
