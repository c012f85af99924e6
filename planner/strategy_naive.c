// SPDX-License-Identifier: MIT
//
// naive: every tensor has bytes of its own and nothing is reused. What the other strategies are measured against.
#include "core/base/checked.h"
#include "planner/strategies.h"
#include "planner/worklist.h"

static tide_status place(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    tide_worklist work;
    TIDE_TRY(tide__worklist_make(&plan->lifetimes, tide__by_align_desc, &work, err));
    uint64_t at = 0;
    tide_status st = TIDE_OK;
    for (size_t k = 0; k < work.n && st == TIDE_OK; k++) {
        const tide_lifetime *item = work.items[k];
        plan->offsets[item - plan->lifetimes.items] = at;
        if (!tide_add_u64(at, tide_lifetime_aligned_bytes(item), &at))
            st = TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the bytes up to tensor '%s' pass 2^64 - 1", item->name);
    }
    plan->bytes = at;
    tide__worklist_deinit(&work);
    return st;
}

const tide_strategy tide__strategy_naive = {
    .name = "naive",
    .what = "every tensor apart, nothing reused",
    .source = "the measure of the others",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
