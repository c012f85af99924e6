// SPDX-License-Identifier: MIT
//
// naive: every tensor has bytes of its own and nothing is reused. What the other strategies are measured against.
// Those with given offsets lie there; the others follow above the highest of them.
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies/orders.h"
#include "planner/strategies/strategies.h"

static tide_status lay_out(const tide_problem *problem, const uint32_t *order, tide_placement *out, tide_error *err) {
    uint64_t top = 0;
    for (size_t i = 0; i < problem->n; i++) {
        const tide_item *item = &problem->items[i];
        out->offsets[i] = item->fixed_offset;
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        if (item->fixed_offset + item->size_bytes > top) top = item->fixed_offset + item->size_bytes;
    }
    for (size_t k = 0; k < problem->n; k++) {
        const tide_item *item = &problem->items[order[k]];
        if (item->fixed_offset != TIDE_NO_OFFSET) continue;
        uint64_t *at = &out->offsets[order[k]];
        if (!tide_align_up(top, item->align_bytes, at) || !tide_add_u64(*at, item->size_bytes, &top))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the bytes of %zu tensors pass 2^64 - 1", problem->n);
    }
    out->bytes = top;
    return TIDE_OK;
}

static tide_status place(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                         tide_error *err) {
    (void)opt;
    uint32_t *order;
    TIDE_TRY(tide__order_make(problem, TIDE_ORDER_ALIGN, &order, err));
    const tide_status st = lay_out(problem, order, out, err);
    tide_host_free(order);
    return st;
}

const tide_strategy tide__strategy_naive = {
    .name = "naive",
    .what = "every tensor apart, nothing reused",
    .source = "the measure of the others",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
