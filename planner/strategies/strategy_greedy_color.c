// SPDX-License-Identifier: MIT
//
// greedy_color: the planner of seed 23: largest tensor first, into the first pool (in order of id) without a
// conflicting member, else into a new pool (S23-11, S23-12). greedy_color_best takes the smallest pool that is large
// enough instead, the "shared objects" of Pisarchyk & Lee 2020. greedy_color_given takes the tensors as the program
// makes them, so that pools grow when a larger one joins (S23-13).
#include "planner/strategies/coloring.h"
#include "planner/strategies/strategies.h"

static tide_status place_first(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                               tide_error *err) {
    (void)opt;
    return tide__color_by(problem, TIDE_ORDER_SIZE, TIDE_POOL_RULE_FIRST, out, err);
}

static tide_status place_best(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                              tide_error *err) {
    (void)opt;
    return tide__color_by(problem, TIDE_ORDER_SIZE, TIDE_POOL_RULE_BEST, out, err);
}

static tide_status place_given(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                               tide_error *err) {
    (void)opt;
    return tide__color_by(problem, TIDE_ORDER_GIVEN, TIDE_POOL_RULE_FIRST, out, err);
}

const tide_strategy tide__strategy_greedy_color = {
    .name = "greedy_color",
    .what = "pools, largest tensor first, first pool without conflict",
    .source = "greedy colouring of the interference graph, first-fit decreasing",
    .form = TIDE_PLAN_POOLS,
    .place = place_first,
};

const tide_strategy tide__strategy_greedy_color_best = {
    .name = "greedy_color_best",
    .what = "pools, largest tensor first, smallest pool that is large enough",
    .source = "Pisarchyk & Lee 2020, Greedy by Size for shared objects",
    .form = TIDE_PLAN_POOLS,
    .place = place_best,
};

const tide_strategy tide__strategy_greedy_color_given = {
    .name = "greedy_color_given",
    .what = "pools, tensors in the order in which the program makes them, first pool without conflict",
    .source = "greedy colouring of the interference graph, in given order",
    .form = TIDE_PLAN_POOLS,
    .place = place_given,
};
