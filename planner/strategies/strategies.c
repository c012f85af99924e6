// SPDX-License-Identifier: MIT
//
// The table of strategies and the search by name. The order is that of printed tables: naive first, as what the
// others are measured against; then pools; then offsets; then what run-time allocators would take; the search last.
#include "planner/strategies/strategies.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/nearest.h"
#include "planner/search/strategy_search.h"
#include "planner/strategies/greedy.h"
#include "planner/strategies/linear_scan.h"
#include "planner/strategies/sim.h"

static const tide_strategy *const table[TIDE_N_STRATEGIES] = {
    [TIDE_STRATEGY_NAIVE] =
        &(const tide_strategy){
            .name = "naive",
            .what = "every tensor apart, nothing reused",
            .source = "the measure of the others",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__greedy_stack,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_ALIGN},
        },
    [TIDE_STRATEGY_GREEDY_COLOR] =
        &(const tide_strategy){
            .name = "greedy_color",
            .what = "pools, largest tensor first, first pool without conflict",
            .source = "greedy colouring of the interference graph, first-fit decreasing",
            .form = TIDE_PLAN_POOLS,
            .place = tide__greedy_pools,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_SIZE, .pool = TIDE_POOL_RULE_FIRST},
        },
    [TIDE_STRATEGY_GREEDY_COLOR_BEST] =
        &(const tide_strategy){
            .name = "greedy_color_best",
            .what = "pools, largest tensor first, smallest pool that is large enough",
            .source = "Pisarchyk & Lee 2020, Greedy by Size for shared objects",
            .form = TIDE_PLAN_POOLS,
            .place = tide__greedy_pools,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_SIZE, .pool = TIDE_POOL_RULE_BEST},
        },
    [TIDE_STRATEGY_GREEDY_COLOR_GIVEN] =
        &(const tide_strategy){
            .name = "greedy_color_given",
            .what = "pools, tensors in the order in which the program makes them, first pool without conflict",
            .source = "greedy colouring of the interference graph, in given order",
            .form = TIDE_PLAN_POOLS,
            .place = tide__greedy_pools,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_GIVEN, .pool = TIDE_POOL_RULE_FIRST},
        },
    [TIDE_STRATEGY_LINEAR_SCAN] =
        &(const tide_strategy){
            .name = "linear_scan",
            .what = "offsets, in order of birth, from a free list that merges neighbours",
            .source = "Poletto & Sarkar 1999, with sized blocks for registers",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__linear_scan,
        },
    [TIDE_STRATEGY_GREEDY_BY_BREADTH] =
        &(const tide_strategy){
            .name = "greedy_by_breadth",
            .what = "offsets, broadest step first, there largest tensor first, smallest gap that fits",
            .source = "Pisarchyk & Lee 2020, Greedy by Breadth for offsets",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__greedy_offsets,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_BREADTH, .gap = TIDE_GAP_RULE_BEST},
        },
    [TIDE_STRATEGY_GREEDY_BY_SIZE] =
        &(const tide_strategy){
            .name = "greedy_by_size",
            .what = "offsets, largest tensor first, lowest gap that fits",
            .source = "Pisarchyk & Lee 2020, Greedy by Size for offsets, with first fit",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__greedy_offsets,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_SIZE, .gap = TIDE_GAP_RULE_FIRST},
        },
    [TIDE_STRATEGY_GREEDY_BY_SIZE_BEST] =
        &(const tide_strategy){
            .name = "greedy_by_size_best",
            .what = "offsets, largest tensor first, smallest gap that fits",
            .source = "Pisarchyk & Lee 2020, Greedy by Size for offsets",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__greedy_offsets,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_SIZE, .gap = TIDE_GAP_RULE_BEST},
        },
    [TIDE_STRATEGY_GREEDY_BY_CONFLICTS] =
        &(const tide_strategy){
            .name = "greedy_by_conflicts",
            .what = "offsets, tensor with most neighbours first, lowest gap that fits",
            .source = "the order of TVM's USMP greedy_by_conflicts, with first fit",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__greedy_offsets,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_CONFLICTS, .gap = TIDE_GAP_RULE_FIRST},
        },
    [TIDE_STRATEGY_BOXED] =
        &(const tide_strategy){
            .name = "boxed",
            .what = "offsets, small tensors stacked into boxes, then largest first, lowest gap that fits",
            .source = "boxes after Buchsbaum et al. 2003, then Pisarchyk & Lee 2020, Greedy by Size",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__greedy_boxes,
            .rule = &(const tide_greedy_rule){.order = TIDE_ORDER_SIZE, .gap = TIDE_GAP_RULE_FIRST},
        },
    [TIDE_STRATEGY_SIM_CACHING] =
        &(const tide_strategy){
            .name = "sim:caching",
            .what = "what a caching allocator with small and large segments would reserve at run time",
            .source = "PyTorch CUDACachingAllocator, default settings",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__sim_heap,
            .rule = &tide__sim_caching,
        },
    [TIDE_STRATEGY_SIM_BFC] =
        &(const tide_strategy){
            .name = "sim:bfc",
            .what = "what a best-fit allocator that doubles its regions would reserve at run time",
            .source = "TensorFlow BFCAllocator with allow_growth",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__sim_heap,
            .rule = &tide__sim_bfc,
        },
    [TIDE_STRATEGY_SIM_ARENA] =
        &(const tide_strategy){
            .name = "sim:arena",
            .what = "what a bump allocator, emptied when nothing is alive, would reserve at run time",
            .source = "Hanson 1990, region allocation",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__sim_arena,
        },
    [TIDE_STRATEGY_SEARCH] =
        &(const tide_strategy){
            .name = "search",
            .what = "offsets, tree search within a budget, with a proof where there is one",
            .source =
                "skylines as in Moffitt 2024 (MiniMalloc) and Côté, Dell'Amico & Iori 2014, after a greedy portfolio",
            .form = TIDE_PLAN_OFFSETS,
            .place = tide__search_place,
        },
};

/// Every number has its row, every row its words and its function, and no two share a name.
static bool table_holds(void) {
    for (size_t i = 0; i < TIDE_N_STRATEGIES; i++) {
        const tide_strategy *s = table[i];
        if (s == NULL || s->name == NULL || s->what == NULL || s->source == NULL || s->place == NULL) return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(table[k]->name, s->name) == 0) return false;
        }
    }
    return true;
}

size_t tide_strategies(const tide_strategy *const **out) {
    TIDE_ASSERT(table_holds());
    *out = table;
    return TIDE_N_STRATEGIES;
}

const tide_strategy *tide__strategy(tide_strategy_id id) {
    TIDE_ASSERT(id < TIDE_N_STRATEGIES);
    return table[id];
}

const tide_strategy *tide_strategy_default(void) { return table[TIDE_STRATEGY_SEARCH]; }

static const char *name_at(const void *ctx, size_t i) {
    (void)ctx;
    return table[i]->name;
}

tide_status tide_strategy_find(const char *name, const tide_strategy **out, tide_error *err) {
    for (size_t i = 0; i < TIDE_N_STRATEGIES; i++) {
        if (strcmp(name, table[i]->name) != 0) continue;
        *out = table[i];
        return TIDE_OK;
    }
    tide_text all = {0};
    for (size_t i = 0; i < TIDE_N_STRATEGIES; i++) tide_text_addf(&all, "%s%s", i == 0 ? "" : ", ", table[i]->name);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no strategy '%s'", name);
    tide_error_note(err, "strategies are %s", tide_text_str(&all));
    tide_text_deinit(&all);
    const char *nearest = tide_nearest_word(name, name_at, NULL, TIDE_N_STRATEGIES);
    if (nearest != NULL) tide_error_hint(err, "did you mean '%s'?", nearest);
    return st;
}
