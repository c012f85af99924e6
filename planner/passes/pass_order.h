// SPDX-License-Identifier: MIT
//
// The order pass on facts, with a report on its answer. Private to planner/passes; tests use it.
#ifndef TIDE_PLANNER_PASSES_PASS_ORDER_H
#define TIDE_PLANNER_PASSES_PASS_ORDER_H

#include "planner/passes/pass_order_window.h"

/// Tensors that may be visited where the caller names no limit: some tens of milliseconds.
enum { TIDE__ORDER_BUDGET = 1 << 21 };

typedef struct tide__order_report {
    uint64_t given_bytes, best_bytes; ///< peaks of the given order and of the new one
    bool exact;                       ///< no order has a smaller peak, as this pass counts
    size_t n_nodes, n_windows;        ///< after gluing; stretches between steps that all others wait for or follow
    uint64_t n_states, n_visits;      ///< looked at
} tide__order_report;

/// @param budget  tensors that may be visited; 0: TIDE__ORDER_BUDGET  @param order  out [f->n_steps]
tide_status tide__order_run(const tide__order_facts *f, uint64_t budget, uint32_t *order, tide__order_report *report,
                            tide_error *err) TIDE_NODISCARD;

/// Peak of the steps as they stand.
tide_status tide__order_given_peak(const tide__order_facts *f, uint64_t *bytes, tide_error *err) TIDE_NODISCARD;

#endif
