// SPDX-License-Identifier: MIT
//
// greedy_color: the planner of seed 23: largest tensor first, into the first pool (in order of id) without a
// conflicting member, else into a new pool (S23-11, S23-12). greedy_color_best takes the smallest pool that is large
// enough instead, the "shared objects" of Pisarchyk & Lee 2020.
#include "planner/coloring.h"
#include "planner/strategies.h"

static tide_status place_first(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    return tide__plan_color(plan, tide__by_size_desc, TIDE_POOL_RULE_FIRST, err);
}

static tide_status place_best(tide_memory_plan *plan, const tide_strategy_options *opt, tide_error *err) {
    (void)opt;
    return tide__plan_color(plan, tide__by_size_desc, TIDE_POOL_RULE_BEST, err);
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
