// SPDX-License-Identifier: MIT
//
// fixed: see fixed.h. Items have no names here: a message can only count them.
#include "planner/strategies/fixed.h"

tide_status tide__refuse_fixed(const tide_problem *problem, const char *what, tide_error *err) {
    if (!problem->has_fixed) return TIDE_OK;
    size_t n = 0;
    for (size_t i = 0; i < problem->n; i++) n += problem->items[i].fixed_offset != TIDE_NO_OFFSET;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "%s cannot keep given offsets, and %zu of %zu tensors have one", what,
                  n, problem->n);
    tide_error_hint(err, "offset strategies can: greedy_by_size, for one");
    return st;
}
