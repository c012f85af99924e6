// SPDX-License-Identifier: MIT
//
// A stream-ordered pool: what sim_pool.c (blocks in and out) and sim_pool_calls.c (making it, asking about it) share.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_POOL_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_POOL_H

#include "tests/cuda/driver/sim_blocks.h"

struct sim_pool {
    sim_object object;
    sim_device *device;
    uint64_t threshold, reserved, reserved_high, used, used_high;
    uint64_t max_bytes;
    int reuse_events, reuse_opportunistic, reuse_dependencies;
    bool announced; ///< to the hooks: with its first memory
    size_t n_live;
    bool dying; ///< destroyed while blocks are live or frees are to come
    sim_pool *next_dying;
    sim_chunk *chunks;
};

/// Gives back idle chunks while at least `keep` bytes stay reserved. True: some went.
bool sim_pool_trim(sim_pool *pool, uint64_t keep);
/// It is no object any more; its memory goes as soon as nothing needs it.
void sim_pool_destroy(sim_pool *pool);

#endif
