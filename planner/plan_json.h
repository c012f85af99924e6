// SPDX-License-Identifier: MIT
//
// plan_json: the `tidemark.plan` document (docs/plan-format.md) with all that may stand in it beside the plans.
// planner.h has the plain forms, tide_plan_to_json and tide_plan_from_json.
#ifndef TIDE_PLANNER_PLAN_JSON_H
#define TIDE_PLANNER_PLAN_JSON_H

#include "planner/advice.h"
#include "planner/passes.h"
#include "planner/points.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_PLAN_SCHEMA "tidemark.plan"
enum { TIDE_PLAN_SCHEMA_VERSION = 1 };

#define TIDE_PLAN_FORM_POOLS "pools"
#define TIDE_PLAN_FORM_OFFSETS "offsets"

/// A strategy that cannot serve a table, and why; for `plan --all`.
typedef struct tide_plan_refusal {
    const char *strategy;
    char *why; ///< owned by the maker of the list
} tide_plan_refusal;

/// What may stand beside the plans; all of it borrowed, each part may be absent (NULL or 0).
typedef struct tide_plan_extras {
    const char *fits;               ///< "yes", "no", "unknown"
    const tide_pass_report *passes; ///< what made the table smaller
    const tide_plan_refusal *refused;
    size_t n_refused;
    const tide_peaks *peaks;
    const tide_advice *advice;
    uint32_t kernel_threads;       ///< of the kernels whose scratch is in the plan; 0: there are none
    const tide_point_need *points; ///< what each profile point would take alone
    size_t n_points;
    bool no_times; ///< leave out what differs from run to run
} tide_plan_extras;

/// As tide_plan_to_json.
tide_status tide_plan_to_json_with(const tide_memory_plan *const *plans, size_t n, const tide_plan_extras *extras,
                                   tide_text *out, tide_error *err) TIDE_NODISCARD;

/// `plan --all` with a row for each strategy that was refused, too.
void tide_plan_table_with(const tide_memory_plan *const *plans, size_t n, const tide_plan_extras *extras,
                          tide_text *out);

/// What each pass gained, a line each; nothing where no pass ran.
void tide_pass_report_print(const tide_pass_report *report, tide_text *out);

#ifdef __cplusplus
}
#endif
#endif
