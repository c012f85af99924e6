// SPDX-License-Identifier: MIT
//
// sim: what run-time allocators would reserve on the births and deaths of a problem. Offsets are addresses, bytes are
// what the allocator has reserved in the end. Private to the planner.
#ifndef TIDE_PLANNER_STRATEGIES_SIM_H
#define TIDE_PLANNER_STRATEGIES_SIM_H

#include "planner/planner.h"
#include "planner/problem.h"

/// What makes one allocator differ from another. `bytes` are rounded by `granule` already.
typedef struct tide_sim_rules {
    uint64_t granule_bytes;
    uint32_t (*pool_of)(uint64_t bytes);
    bool (*splits)(uint64_t block_bytes, uint64_t bytes, uint32_t pool);
    uint64_t (*segment_bytes)(uint64_t bytes, uint64_t *state); ///< of the next segment; state is 0 at first
} tide_sim_rules;

extern const tide_sim_rules tide__sim_caching, tide__sim_bfc;

/**
 * A best-fit allocator with the rules that `self->rule` (a tide_sim_rules) says. An item with a stricter alignment than
 * the granule asks for as much more as it may have to skip.
 *
 * @return TIDE_ERR_NOT_IMPLEMENTED for given offsets, TIDE_ERR_OVERFLOW, TIDE_ERR_NOMEM
 */
tide_status tide__sim_heap(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                           tide_placement *out, tide_error *err) TIDE_NODISCARD;
/// A bump allocator; returns the same errors.
tide_status tide__sim_arena(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                            tide_placement *out, tide_error *err) TIDE_NODISCARD;

#endif
