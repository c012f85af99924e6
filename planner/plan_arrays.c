// SPDX-License-Identifier: MIT
//
// Lifetimes as arrays of numbers, offsets as an array: for other languages, see tide_plan_arrays in tidemark/plan.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "tidemark/plan.h"

enum { USUAL_ALIGN = 64 };

static tide_status add_all(tide_lifetimes *lt, size_t n, const uint64_t *sizes, const uint64_t *aligns,
                           const int64_t *begins, const int64_t *ends, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        const tide_lifetime item =
            tide_lifetime_make(name, sizes[i], aligns != NULL ? aligns[i] : USUAL_ALIGN, begins[i], ends[i]);
        TIDE_TRY(tide_lifetimes_add(lt, &item, err));
    }
    return TIDE_OK;
}

tide_status tide_plan_arrays(size_t n, const uint64_t *sizes, const uint64_t *aligns, const int64_t *begins,
                             const int64_t *ends, uint64_t time_limit_ns, uint64_t *offsets, tide_plan_result *result,
                             tide_error *err) {
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = NULL;
    const tide_strategy_options opt = {.time_limit_ns = time_limit_ns};
    tide_status st = add_all(&lt, n, sizes, aligns, begins, ends, err);
    if (st == TIDE_OK) st = tide_plan_make(&lt, tide_strategy_default(), &opt, &plan, err);
    tide_lifetimes_deinit(&lt);
    if (st != TIDE_OK) return st;
    TIDE_ASSERT(plan->verified && plan->lifetimes.n == n);
    if (n > 0) memcpy(offsets, plan->offsets, n * sizeof *offsets);
    if (result != NULL)
        *result = (tide_plan_result){
            .bytes = plan->bytes, .proved_bytes = plan->proved_bytes, .naive_bytes = plan->naive_bytes};
    tide_memory_plan_destroy(plan);
    return TIDE_OK;
}
