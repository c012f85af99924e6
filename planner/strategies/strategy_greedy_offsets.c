// SPDX-License-Identifier: MIT
//
// The greedy offset strategies: one buffer, items in a fixed order, each into a gap between those placed before it.
// They differ in order and gap rule alone; the placer does the work, and places items with given offsets first.
//
//     greedy_by_size       largest first                      lowest gap that fits
//     greedy_by_size_best  largest first                      smallest gap that fits
//     greedy_by_breadth    broadest tick first, then largest  smallest gap that fits
//     greedy_by_conflicts  most neighbours first              lowest gap that fits
//
// Source of size and breadth: Pisarchyk & Lee 2020, Greedy by Size and Greedy by Breadth for offset calculation; their
// walk over the operators is turned round: an item's turn comes with the broadest of the ticks it lives in. Source of
// conflicts: the order of TVM's USMP greedy_by_conflicts, but with the gaps used that it leaves.
#include "core/base/host_alloc.h"
#include "planner/strategies/orders.h"
#include "planner/strategies/placer.h"
#include "planner/strategies/strategies.h"

static tide_status place(const tide_problem *problem, tide_item_order order, tide_gap_rule rule, tide_placement *out,
                         tide_error *err) {
    uint32_t *list;
    TIDE_TRY(tide__order_make(problem, order, &list, err));
    tide_placer *placer;
    tide_status st = tide__placer_create(problem, &placer, err);
    if (st == TIDE_OK) {
        out->bytes = tide__placer_run(placer, list, rule, UINT64_MAX, out->offsets);
        if (tide__placer_failed(placer))
            st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to place %zu tensors", problem->n);
        tide__placer_destroy(placer);
    }
    tide_host_free(list);
    return st;
}

static tide_status by_size(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                           tide_error *err) {
    (void)opt;
    return place(problem, TIDE_ORDER_SIZE, TIDE_GAP_RULE_FIRST, out, err);
}

static tide_status by_size_best(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                                tide_error *err) {
    (void)opt;
    return place(problem, TIDE_ORDER_SIZE, TIDE_GAP_RULE_BEST, out, err);
}

static tide_status by_breadth(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                              tide_error *err) {
    (void)opt;
    return place(problem, TIDE_ORDER_BREADTH, TIDE_GAP_RULE_BEST, out, err);
}

static tide_status by_conflicts(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                                tide_error *err) {
    (void)opt;
    return place(problem, TIDE_ORDER_CONFLICTS, TIDE_GAP_RULE_FIRST, out, err);
}

const tide_strategy tide__strategy_greedy_by_size = {
    .name = "greedy_by_size",
    .what = "offsets, largest tensor first, lowest gap that fits",
    .source = "Pisarchyk & Lee 2020, Greedy by Size for offsets, with first fit",
    .form = TIDE_PLAN_OFFSETS,
    .place = by_size,
};

const tide_strategy tide__strategy_greedy_by_size_best = {
    .name = "greedy_by_size_best",
    .what = "offsets, largest tensor first, smallest gap that fits",
    .source = "Pisarchyk & Lee 2020, Greedy by Size for offsets",
    .form = TIDE_PLAN_OFFSETS,
    .place = by_size_best,
};

const tide_strategy tide__strategy_greedy_by_breadth = {
    .name = "greedy_by_breadth",
    .what = "offsets, broadest step first, there largest tensor first, smallest gap that fits",
    .source = "Pisarchyk & Lee 2020, Greedy by Breadth for offsets",
    .form = TIDE_PLAN_OFFSETS,
    .place = by_breadth,
};

const tide_strategy tide__strategy_greedy_by_conflicts = {
    .name = "greedy_by_conflicts",
    .what = "offsets, tensor with most neighbours first, lowest gap that fits",
    .source = "the order of TVM's USMP greedy_by_conflicts, with first fit",
    .form = TIDE_PLAN_OFFSETS,
    .place = by_conflicts,
};
