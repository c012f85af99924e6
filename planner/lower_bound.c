// SPDX-License-Identifier: MIT
//
// lower bound: the largest sum of bytes alive at one step. No plan of these lifetimes is smaller, whatever the
// strategy; a plan that reaches it is proven best (S23-10). What aliases share counts once.
#include "planner/planner.h"
#include "planner/problem.h"

tide_status tide_lower_bound(const tide_lifetimes *lt, uint64_t *bytes, int64_t *step, tide_error *err) {
    tide_problems problems;
    TIDE_TRY(tide__problems_make(lt, &problems, err));
    uint64_t sum = 0, largest = 0;
    int64_t at = 0;
    for (size_t i = 0; i < problems.n; i++) {
        const tide_problem *p = &problems.list[i];
        sum += p->lower_bound_bytes; // at most the naive bytes of all, which fit into 63 bits for each buffer
        if (p->lower_bound_bytes <= largest) continue;
        largest = p->lower_bound_bytes;
        at = p->tick_steps[p->peak_tick];
    }
    tide__problems_deinit(&problems);
    *bytes = sum;
    if (step != NULL) *step = at;
    return TIDE_OK;
}
