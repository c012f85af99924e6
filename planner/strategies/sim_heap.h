// SPDX-License-Identifier: MIT
//
// sim heap: what the simulations of best-fit run-time allocators share: segments that are reserved once and never given
// back, cut into blocks that know their neighbours, free blocks by size in one or more pools. No byte is touched: these
// are numbers. Private to the planner.
//
//     address   0                2 MiB                                  22 MiB = reserved
//     segment   [ 512 |free.....][ 3 MiB | free .......................]
//     blocks      <->   <->        <->     neighbours only within a segment
//
// Requested is what items ask for; active what blocks in use span, roundings included; cached the free blocks; reserved
// the sum of the segments, which is what a simulation's plan counts. Largest free is the last block of a pool's tree.
#ifndef TIDE_PLANNER_STRATEGIES_SIM_HEAP_H
#define TIDE_PLANNER_STRATEGIES_SIM_HEAP_H

#include "planner/strategies/block_tree.h"
#include "planner/strategies/timeline.h"

enum { TIDE_SIM_MAX_POOLS = 2 };

typedef struct tide_sim_block {
    uint64_t begin, bytes;
    uint32_t prev, next; ///< in the segment; 0: none
    uint32_t pool;
    bool in_use;
} tide_sim_block;

typedef struct tide_sim_heap {
    tide_sim_block *blocks; ///< [cap], numbered from 1; owned
    size_t n_blocks, cap;
    uint32_t unused;                          ///< blocks without a place, chained by `next`
    tide_block_tree free[TIDE_SIM_MAX_POOLS]; ///< by size, then address
    uint64_t reserved_bytes;
} tide_sim_heap;

void tide__sim_heap_init(tide_sim_heap *heap);
void tide__sim_heap_deinit(tide_sim_heap *heap);
/// The smallest free block of the pool with at least `bytes`, the lowest of equals; 0: none.
uint32_t tide__sim_heap_find(const tide_sim_heap *heap, uint32_t pool, uint64_t bytes);
/// Reserve one more segment; it is one free block of the pool. @return TIDE_ERR_NOMEM, TIDE_ERR_OVERFLOW
tide_status tide__sim_heap_reserve(tide_sim_heap *heap, uint32_t pool, uint64_t bytes, uint32_t *out) TIDE_NODISCARD;
/// Take free block `i`; with `bytes` below its size the rest becomes a free block behind it.
tide_status tide__sim_heap_take(tide_sim_heap *heap, uint32_t i, uint64_t bytes) TIDE_NODISCARD;
/// Give block `i` back; it merges with free neighbours of its segment.
tide_status tide__sim_heap_give_back(tide_sim_heap *heap, uint32_t i) TIDE_NODISCARD;

/// What makes one allocator differ from another. `bytes` are rounded by `granule` already.
typedef struct tide_sim_rules {
    const char *name;
    uint64_t granule_bytes;
    uint32_t (*pool_of)(uint64_t bytes);
    bool (*splits)(uint64_t block_bytes, uint64_t bytes, uint32_t pool);
    uint64_t (*segment_bytes)(uint64_t bytes, uint64_t *state); ///< of the next segment; state is 0 at first
} tide_sim_rules;

/**
 * Run births and deaths of `problem` through an allocator of such rules. Offsets are addresses, bytes what it has
 * reserved in the end. An item with a stricter alignment than the granule asks for as much more as it may have to skip.
 *
 * @return TIDE_ERR_NOT_IMPLEMENTED for given offsets, TIDE_ERR_OVERFLOW, TIDE_ERR_NOMEM
 */
tide_status tide__sim_run(const tide_problem *problem, const tide_sim_rules *rules, tide_placement *out,
                          tide_error *err) TIDE_NODISCARD;

#endif
