// SPDX-License-Identifier: MIT
//
// greedy: see greedy.h.
#include "planner/strategies/greedy.h"

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies/boxes.h"

// ---- nothing reused ----

/// Items with given offsets lie there; the others follow above the highest of them.
static tide_status stack(const tide_problem *problem, const uint32_t *order, tide_placement *out, tide_error *err) {
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
    TIDE_ASSERT(top >= problem->proved_bytes);
    out->bytes = top;
    return TIDE_OK;
}

tide_status tide__greedy_stack(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) {
    (void)opt;
    const tide_greedy_rule *rule = self->rule;
    TIDE_ASSERT(rule != NULL && rule->order < TIDE_N_ORDERS);
    uint32_t *order;
    TIDE_TRY(tide__order_make(problem, rule->order, &order, err));
    const tide_status st = stack(problem, order, out, err);
    tide_host_free(order);
    return st;
}

// ---- pools ----

tide_status tide__greedy_pools(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) {
    (void)opt;
    const tide_greedy_rule *rule = self->rule;
    TIDE_ASSERT(rule != NULL && rule->order < TIDE_N_ORDERS);
    uint32_t *order;
    TIDE_TRY(tide__order_make(problem, rule->order, &order, err));
    const tide_status st = tide__color(problem, order, rule->pool, out, err);
    tide_host_free(order);
    return st;
}

// ---- offsets ----

/// `what` names the items in a message.
static tide_status place_in_order(const tide_problem *problem, const tide_greedy_rule *rule, const char *what,
                                  uint64_t *offsets, uint64_t *height, tide_error *err) {
    TIDE_ASSERT(rule != NULL && rule->order < TIDE_N_ORDERS);
    uint32_t *order;
    TIDE_TRY(tide__order_make(problem, rule->order, &order, err));
    tide_placer *placer;
    tide_status st = tide__placer_create(problem, &placer, err);
    if (st == TIDE_OK) {
        *height = tide__placer_run(placer, order, rule->gap, UINT64_MAX, offsets);
        if (tide__placer_failed(placer)) st = TIDE_NO_MEMORY(err, "to place %zu %s", problem->n, what);
        tide__placer_destroy(placer);
    }
    tide_host_free(order);
    return st;
}

tide_status tide__greedy_offsets(const tide_strategy *self, const tide_problem *problem,
                                 const tide_strategy_options *opt, tide_placement *out, tide_error *err) {
    (void)opt;
    return place_in_order(problem, self->rule, "tensors", out->offsets, &out->bytes, err);
}

tide_status tide__place_in_boxes(const tide_problem *problem, const tide_greedy_rule *rule, tide_placement *out,
                                 tide_error *err) {
    tide_boxes boxes;
    TIDE_TRY(tide__boxes_make(problem, problem->lower_bound_bytes >> TIDE_BOX_SHIFT, &boxes, err));
    TIDE_ASSERT(boxes.load_bytes >= problem->lower_bound_bytes);
    uint64_t *offsets, height;
    tide_status st = TIDE_NEW(&offsets, boxes.problem.n, err, "to place %zu boxes", boxes.problem.n);
    if (st == TIDE_OK) st = place_in_order(&boxes.problem, rule, "boxes", offsets, &height, err);
    if (st == TIDE_OK) out->bytes = tide__boxes_unpack(&boxes, problem, offsets, out->offsets);
    tide_host_free(offsets);
    tide__boxes_deinit(&boxes);
    return st;
}

tide_status tide__greedy_boxes(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                               tide_placement *out, tide_error *err) {
    (void)opt;
    return tide__place_in_boxes(problem, self->rule, out, err);
}
