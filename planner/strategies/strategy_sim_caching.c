// SPDX-License-Identifier: MIT
//
// sim:caching: what PyTorch's caching allocator for CUDA would reserve on the same births and deaths, run once with an
// empty cache.
//
//     request, rounded up to 512 B     pool    segment asked of the device       a found block is split
//     up to 1 MiB                      small   2 MiB                             when 512 B or more are left
//     above, below 10 MiB              large   20 MiB                            when more than 1 MiB is left
//     10 MiB and more                  large   the request, up to 2 MiB          the same
//
// Best fit within the pool, the lowest address of equals; free neighbours of a segment merge; segments are kept.
//
// Source: pytorch c10/cuda/CUDACachingAllocator.cpp (2.x): kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge, should_split, get_allocation_size; defaults, that is no max_split_size, no expandable
// segments, one stream, and a device that never says no.
#include "planner/strategies/sim_heap.h"
#include "planner/strategies/strategies.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

enum { SMALL, LARGE };

static uint32_t pool_of(uint64_t bytes) { return bytes <= MIB ? SMALL : LARGE; }

static bool splits(uint64_t block_bytes, uint64_t bytes, uint32_t pool) {
    const uint64_t rest = block_bytes - bytes;
    return pool == SMALL ? rest >= 512 : rest > MIB;
}

static uint64_t segment_bytes(uint64_t bytes, uint64_t *state) {
    (void)state;
    if (bytes <= MIB) return 2 * MIB;
    if (bytes < 10 * MIB) return 20 * MIB;
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static tide_status place(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                         tide_error *err) {
    (void)opt;
    static const tide_sim_rules rules = {"sim:caching", 512, pool_of, splits, segment_bytes};
    return tide__sim_run(problem, &rules, out, err);
}

const tide_strategy tide__strategy_sim_caching = {
    .name = "sim:caching",
    .what = "what a caching allocator with small and large segments would reserve at run time",
    .source = "PyTorch CUDACachingAllocator, default settings",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
