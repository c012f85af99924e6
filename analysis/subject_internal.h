// SPDX-License-Identifier: MIT
//
// The inside of a subject, shared by its files. Private to analysis/.
#ifndef TIDE_ANALYSIS_SUBJECT_INTERNAL_H
#define TIDE_ANALYSIS_SUBJECT_INTERNAL_H

#include "analysis/items_internal.h"
#include "analysis/plan_pools.h"
#include "analysis/run_plan.h"
#include "analysis/step_curve.h"
#include "analysis/subject.h"
#include "analysis/whatif.h"
#include "planner/plan_live.h"

/// A curve that was asked for, made once.
typedef struct tide__kept_curve {
    tide_curve_of of;
    int kind;
    char *device; ///< owned; NULL: all
    tide__step_curve curve;
} tide__kept_curve;

/// An edit of the model that makes the plan smaller, and that plan.
typedef struct tide__common_way {
    tide_edit edit;
    tide_memory_plan *plan; ///< owned
} tide__common_way;
typedef struct tide__common_ways {
    tide__common_way *list; ///< [n] owned
    size_t n, cap;
    bool is_made;
} tide__common_ways;
/// explain_ways.c
void tide__common_ways_deinit(tide__common_ways *c);

struct tide_subject {
    tide_subject_facts facts;
    char *path, *title;
    tide_trace *trace;      ///< NULL: a plan
    tide_trace_info info;   ///< of the trace
    tide__run_plan run;     ///< of a trace's run; its plan is also that of the facts
    tide_memory_plan *plan; ///< of a plan alone, owned
    tide_trace_kind *kinds;
    const char **step_names;
    int64_t *step_begin, *step_number;
    char (*devices)[32]; ///< [n_devices] names of the plan's devices
    size_t n_devices;
    tide__planned_runs planned; ///< executions in plans' buffers; made when they are asked for
    bool has_planned;
    tide_sizes sizes; ///< of what is sized while running; made when they are asked for without items
    bool has_sizes;
    tide_plan_live live; ///< of the plan; made when it is asked for
    bool has_live;
    tide__plan_pools pools; ///< of the plan; made when they are asked for
    bool has_pools;
    tide__kept_curve *curves;
    size_t n_curves, cap_curves;
    tide_whatif model;      ///< what makes its plan again, and with which options; the rest of it is not used
    tide__common_ways ways; ///< made when they are asked for
    tide_items_hold *items; ///< NULL: not loaded
    bool is_stale;          ///< the trace has grown since
};

/// The plan of the facts; NULL.
static inline const tide_memory_plan *tide__subject_plan(const tide_subject *s) {
    return s->trace == NULL ? s->plan : s->run.plan;
}

/// The subject's text for a device of its plan.
const char *tide__subject_device(const tide_subject *s, tide_device device);

/// Executions of the subject's run, or of all runs, that lie in plans' buffers. Of a trace.
tide_status tide__subject_planned(tide_subject *s, const tide__planned_runs **out, tide_error *err) TIDE_NODISCARD;
/// What came out of items that are sized while running.
tide_status tide__subject_sizes(tide_subject *s, const tide_sizes **out, tide_error *err) TIDE_NODISCARD;
/// The plan that the planned tensor with this number is of; NULL: none.
tide_status tide__subject_plan_of(tide_subject *s, uint64_t id, const tide_memory_plan **out,
                                  tide_error *err) TIDE_NODISCARD;

// ---- subject_curve.c ----

void tide__subject_forget_curves(tide_subject *s);
/// Whether the trace's own leaves answer for the key; else *out, made when it is new.
tide_status tide__subject_curve(tide_subject *s, tide_curve_key key, const tide__step_curve **out,
                                tide_error *err) TIDE_NODISCARD;

// ---- subject_plan.c ----

/// What the plan has alive at each step, of a kind (-1: all) and a device (NULL: all).
tide_status tide__plan_curve(const tide_memory_plan *plan, int kind, const char *device, tide__step_curve *out,
                             tide_error *err) TIDE_NODISCARD;
/// Pools of the plan of the subject, which has one; made when it is new.
tide_status tide__subject_plan_pools(tide_subject *s, const tide__plan_pools **out, tide_error *err) TIDE_NODISCARD;
/// What is alive in the plan of the subject, made when it is new.
tide_status tide__subject_plan_live(tide_subject *s, const tide_plan_live **out, tide_error *err) TIDE_NODISCARD;

#endif
