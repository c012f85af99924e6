// SPDX-License-Identifier: MIT
//
// boxed: for very many tensors: small ones that live at about the same time are stacked into boxes (boxes.h), then the
// boxes and the large tensors are placed as greedy_by_size does. A box is no higher than a 2^14th of the lower bound:
// on traces with many alive at once that costs about a tenth of a percent and is several times faster.
//
// Source: boxing after Buchsbaum, Karloff, Kenyon, Reingold & Thorup 2003; placing after Pisarchyk & Lee 2020.
#include "core/base/host_alloc.h"
#include "planner/strategies/boxes.h"
#include "planner/strategies/orders.h"
#include "planner/strategies/placer.h"
#include "planner/strategies/strategies.h"

static tide_status place_boxes(const tide_problem *boxes, uint64_t *offsets, tide_error *err) {
    uint32_t *order;
    TIDE_TRY(tide__order_make(boxes, TIDE_ORDER_SIZE, &order, err));
    tide_placer *placer;
    tide_status st = tide__placer_create(boxes, &placer, err);
    if (st == TIDE_OK) {
        tide__placer_run(placer, order, TIDE_GAP_RULE_FIRST, UINT64_MAX, offsets);
        if (tide__placer_failed(placer)) st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to place %zu boxes", boxes->n);
        tide__placer_destroy(placer);
    }
    tide_host_free(order);
    return st;
}

static tide_status place(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                         tide_error *err) {
    (void)opt;
    tide_boxes boxes;
    TIDE_TRY(tide__boxes_make(problem, problem->lower_bound_bytes >> TIDE_BOX_SHIFT, &boxes, err));
    uint64_t *offsets = tide_host_calloc(boxes.problem.n, sizeof *offsets);
    tide_status st = offsets != NULL ? place_boxes(&boxes.problem, offsets, err)
                                     : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to place %zu boxes", boxes.problem.n);
    if (st == TIDE_OK) out->bytes = tide__boxes_unpack(&boxes, problem, offsets, out->offsets);
    tide_host_free(offsets);
    tide__boxes_deinit(&boxes);
    return st;
}

const tide_strategy tide__strategy_boxed = {
    .name = "boxed",
    .what = "offsets, small tensors stacked into boxes, then largest first, lowest gap that fits",
    .source = "boxes after Buchsbaum et al. 2003, then Pisarchyk & Lee 2020, Greedy by Size",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
