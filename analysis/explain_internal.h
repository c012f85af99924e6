// SPDX-License-Identifier: MIT
//
// The inside of explain, shared by its files. Private to analysis/.
#ifndef TIDE_ANALYSIS_EXPLAIN_INTERNAL_H
#define TIDE_ANALYSIS_EXPLAIN_INTERNAL_H

#include "analysis/explain.h"
#include "analysis/reporter.h"
#include "analysis/subject_internal.h"
#include "planner/without.h"
#include "profiler/lives.h"

/// Whether it can be left out: what persists stays.
static inline bool tide__can_go(const tide_live_item *x) {
    return !x->shape.persistent && !x->is_unused && x->counts_bytes > 0;
}
/// Whether it is a tensor of the plan alone (run_id 0), or in the buffer of that run, and can go.
static inline bool tide__is_of_plan(const tide_live_item *x, int64_t run_id) {
    return tide__can_go(x) && (run_id == 0 || (x->shape.is_planned && tide_planned_run(x->id) == run_id));
}

/// With the device where there is more than one. `buf` is used when the text is not there already.
const char *tide__kind_key(const tide_live_item *x, bool with_device, char *buf, size_t buf_bytes);

// ---- explain_plans.c ----

/// How many lifetimes are planned for one explanation: of a longer table fewer plans are made, one at least. And the
/// share of the usual work for each plan where the plan as it is could not be proved.
enum { TIDE__EXPLAIN_PLANNED = 100000, TIDE__EXPLAIN_WORK_PERCENT = 10 };

/// Append storages of `plan` that have something alive to e->without, largest first, until there are `max`: all but
/// peak and plan. There is room.
void tide__list_storages(const tide_memory_plan *plan, int64_t run_id, size_t max, tide_explanation *e);

/// Plans of what is left.
typedef struct tide__rest {
    const tide_memory_plan *plan; ///< borrowed
    const tide_strategy *strategy;
    tide_strategy_options options;
    uint32_t *root;     ///< [n tensors]
    bool *gone, *roots; ///< [n tensors]
    size_t n_left;      ///< how many plans may be made
} tide__rest;
tide_status tide__rest_begin(tide__rest *r, const tide_subject *s, const tide_memory_plan *plan,
                             tide_error *err) TIDE_NODISCARD;
void tide__rest_end(tide__rest *r);
/// The plan without the storage of `w`, which hears of it; *out NULL: enough plans were made.
tide_status tide__rest_without(tide__rest *r, tide_without *w, tide_memory_plan **out, tide_error *err) TIDE_NODISCARD;
/// The plan without all that are alive of it and can go; run_id as of tide__is_of_plan. The last thing that is asked.
tide_status tide__rest_without_all(tide__rest *r, int64_t run_id, const tide_explanation *e, tide_memory_plan **out,
                                   tide_error *err) TIDE_NODISCARD;
/// Of a plan: a plan without each of e->without, and one without all.
tide_status tide__add_plans(const tide_subject *s, tide__reporter *reporter, tide_explanation *e,
                            tide_error *err) TIDE_NODISCARD;

/// As the plan was made, but for a limit of time; where it could not be proved, each has a share of the usual work.
tide_strategy_options tide__options_for_many(const tide_subject *s, const tide_memory_plan *plan);

// ---- explain_ways.c ----

/// Fill e->ways, once e->without is in order.
tide_status tide__add_ways(tide_subject *s, tide__reporter *reporter, tide_explanation *e,
                           tide_error *err) TIDE_NODISCARD;

// ---- explain_buffers.c ----

/// Buffers of planned runs, held at a moment, and what they would be smaller by.
typedef struct tide__buffer_less {
    tide_trace_less *less;         ///< [n] without all that are alive in them and can go; owned
    struct tide__buffer_block *of; ///< [n], owned
    size_t n;
} tide__buffer_less;
/// Storages in buffers of runs, alive at the moment of `set` (which is not expanded), appended to e->without: at most
/// `max` of each run; there is room for e->live.n in all. Events `first` to `last` are looked at.
tide_status tide__explain_buffers(tide_subject *s, const tide_live_set *set, uint64_t first, uint64_t last, size_t max,
                                  tide__reporter *reporter, tide_explanation *e, tide__buffer_less *out,
                                  tide_error *err) TIDE_NODISCARD;
void tide__buffer_less_deinit(tide__buffer_less *l);

// ---- explain_trace.c ----

/// most_events: of a run that is replayed; TIDE_EXPLAIN_ALIKE_EVENTS but in tests.
tide_status tide__explain_trace(tide_subject *s, size_t n_without, uint64_t most_events, tide__reporter *reporter,
                                tide_explanation *out, tide_error *err) TIDE_NODISCARD;

#endif
