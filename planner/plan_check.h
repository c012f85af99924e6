// SPDX-License-Identifier: MIT
//
// check: is a plan worse than a baseline plan, in which figure, and because of which tensors?
#ifndef TIDE_PLANNER_PLAN_CHECK_H
#define TIDE_PLANNER_PLAN_CHECK_H

#include "core/runtime/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The figures that are held against each other; more bytes is worse.
#define TIDE_CHECK_METRIC_MAP(XX)                                                                                      \
    XX(BUFFER, "planned_bytes", "the one buffer of activations and scratch")                                           \
    XX(LOWER_BOUND, "lower_bound_bytes", "what no plan can go below")                                                  \
    XX(WEIGHTS, "persistent_bytes", "weights")                                                                         \
    XX(IO, "default_bytes", "graph inputs and outputs")
typedef enum tide_check_metric {
#define XX(name, text, what) TIDE_CHECK_##name,
    TIDE_CHECK_METRIC_MAP(XX)
#undef XX
        TIDE_N_CHECK_METRICS
} tide_check_metric;
const char *tide_check_metric_name(tide_check_metric m);

enum { TIDE_CHECK_MAX_CAUSES = 5 };
typedef struct tide_check_cause {
    const char *name;                       ///< of the tensor; borrowed from the plan that has it
    uint64_t baseline_bytes, current_bytes; ///< aligned; 0: not there, or inside another tensor
    bool is_new;                            ///< the baseline has no tensor of that name
} tide_check_cause;

typedef struct tide_check_rule {
    tide_check_metric metric;
    uint64_t baseline, current;
    bool pass;
    tide_check_cause causes[TIDE_CHECK_MAX_CAUSES]; ///< largest growth first; only where the rule fails
    size_t n_causes;
} tide_check_rule;

typedef struct tide_check_result {
    bool pass; ///< every rule passes
    tide_check_rule rules[TIDE_N_CHECK_METRICS];
} tide_check_result;

/**
 * Hold `current` against `baseline`; both are borrowed and must outlive the result.
 *
 * @return TIDE_OK with the verdict in *out; TIDE_ERR_INCOMPARABLE saying why when the two are plans of different
 *         models, alignments or strategies; TIDE_ERR_NOMEM
 */
tide_status tide_plan_check(const tide_memory_plan *baseline, const tide_memory_plan *current, tide_check_result *out,
                            tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
