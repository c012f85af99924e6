// SPDX-License-Identifier: MIT
//
// sim:arena: what a bump allocator would reserve on the same births and deaths: each request goes to the top, nothing
// is given back alone, and the top falls to the bottom when nothing is alive any more.
//
//     |[a][b][c..][d]          | reserved: the highest top
//                    ^ top
//
// Requested and active are what items ask for, with the padding of their alignments; cached is what lies below the top
// and is dead; largest free is what lies above the top.
//
// Source: region allocation, Hanson 1990, "Fast allocation and deallocation of memory based on object lifetimes".
#include "core/base/checked.h"
#include "planner/strategies/fixed.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/timeline.h"

typedef struct arena {
    const tide_problem *problem;
    tide_placement *out;
    uint64_t top;
    size_t n_alive;
} arena;

static tide_status born(void *self, uint32_t item_i, tide_error *err) {
    arena *a = self;
    const tide_item *item = &a->problem->items[item_i];
    uint64_t *at = &a->out->offsets[item_i];
    if (!tide_align_up(a->top, item->align_bytes, at) || !tide_add_u64(*at, item->size_bytes, &a->top) ||
        a->top > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "sim:arena would reserve more than 2^63 - 1 bytes for %zu tensors",
                         a->problem->n);
    if (a->top > a->out->bytes) a->out->bytes = a->top;
    a->n_alive++;
    return TIDE_OK;
}

static tide_status died(void *self, uint32_t item_i, tide_error *err) {
    (void)item_i;
    (void)err;
    arena *a = self;
    if (--a->n_alive == 0) a->top = 0;
    return TIDE_OK;
}

static tide_status place(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                         tide_error *err) {
    (void)opt;
    TIDE_TRY(tide__refuse_fixed(problem, "sim:arena", err));
    arena a = {.problem = problem, .out = out};
    out->bytes = 0;
    return tide__timeline_walk(problem, TIDE_ORDER_GIVEN, born, died, &a, err);
}

const tide_strategy tide__strategy_sim_arena = {
    .name = "sim:arena",
    .what = "what a bump allocator, emptied when nothing is alive, would reserve at run time",
    .source = "Hanson 1990, region allocation",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
