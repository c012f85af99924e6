// SPDX-License-Identifier: MIT
//
// greedy_by_size: offsets in one buffer; the largest tensor first, each into a gap between those placed before it.
//
// Source: Pisarchyk & Lee 2020, "Efficient Memory Management for Deep Neural Net Inference" (Greedy by Size for offset
// calculation), which takes the smallest gap that fits (greedy_by_size_best here); TensorFlow Lite Micro takes the
// first. First fit is the default: on the MiniMalloc instances it is the better one. Ties of size go by name (S23-11).
// Cost O(n log n) where few tensors are alive together, O(n^2) where many are; O(n) memory: no table of pairs.
#include "planner/placed_list.h"
#include "planner/strategies.h"

static tide_status place(tide_memory_plan *plan, tide_gap_rule rule, tide_error *err) {
    tide_worklist work;
    TIDE_TRY(tide__worklist_make(&plan->lifetimes, tide__by_size_desc, &work, err));
    const tide_status st = tide__place_in_order(plan, &work, rule, err);
    tide__worklist_deinit(&work);
    return st;
}

static tide_status place_first(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    return place(plan, TIDE_GAP_RULE_FIRST, err);
}

static tide_status place_best(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    return place(plan, TIDE_GAP_RULE_BEST, err);
}

const tide_strategy tide__strategy_greedy_by_size = {
    .name = "greedy_by_size",
    .what = "offsets, largest tensor first, lowest gap that fits",
    .source = "Pisarchyk & Lee 2020, Greedy by Size for offsets, with first fit",
    .form = TIDE_PLAN_OFFSETS,
    .place = place_first,
};

const tide_strategy tide__strategy_greedy_by_size_best = {
    .name = "greedy_by_size_best",
    .what = "offsets, largest tensor first, smallest gap that fits",
    .source = "Pisarchyk & Lee 2020, Greedy by Size for offsets",
    .form = TIDE_PLAN_OFFSETS,
    .place = place_best,
};
