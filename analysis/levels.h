// SPDX-License-Identifier: MIT
//
// levels: how high plan and lower bound stand beside a curve. The curve also holds what no plan places (weights,
// inputs, outputs), so the lines stand on top of that, and every label says so.
#ifndef TIDE_ANALYSIS_LEVELS_H
#define TIDE_ANALYSIS_LEVELS_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_levels {
    bool known;           ///< false: no plan, or it is not known what lies below it; all else is 0 then
    uint64_t below;       ///< persistent tensors of a plan, the predicted bytes of all but Workspace in a run
    uint64_t weights;     ///< the part of `below` that is Persistent
    uint64_t plan, bound; ///< heights: `below` and the bytes of each, once for every context
    uint64_t n_contexts;  ///< of the run; 1: a plan
    char words[128];      ///< what `below` is: "weights, inputs, outputs"; "" when it is nothing
} tide_levels;
/// The same beside a curve without weights.
tide_levels tide_levels_without_weights(const tide_levels *l);
/// Beside the curve of the plan itself.
tide_levels tide_levels_of_plan(const tide_memory_plan *plan);
/// Beside the curve of a run, with the kinds of the run; `plan` NULL: it has none. Each context has a buffer of its
/// own.
tide_levels tide_levels_of_run(const tide_memory_plan *plan, uint64_t n_contexts, const tide_trace_kind *kinds,
                               size_t n_kinds);
/// "plan", "plans of 3 contexts" or, in short, "3 plans": what stands for the bytes of all.
const char *tide_levels_name(const tide_levels *l, bool is_short, char *buf, size_t buf_bytes);
/// The same of the bound, or of both where they are one line.
const char *tide_levels_bound_name(const tide_levels *l, bool is_short, char *buf, size_t buf_bytes);

#ifdef __cplusplus
}
#endif
#endif
