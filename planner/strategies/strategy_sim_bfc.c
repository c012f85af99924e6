// SPDX-License-Identifier: MIT
//
// sim:bfc: what TensorFlow's best-fit-with-coalescing allocator would reserve on the same births and deaths when it may
// grow without limit.
//
// Requests are rounded up to 256 B. Free chunks lie in 21 bins by powers of two from 256 B on, each in order of size,
// then address; the bins are searched upwards from the request's. That is the smallest chunk that fits, whichever bin
// it is in, so one tree stands for all bins here. A chunk of twice the request or more, or with 128 MiB or more to
// spare, is split. When none fits a region is added: of 2 MiB at first, doubled with every region, and doubled at once
// until the request fits. Free neighbours of a region merge; regions are kept.
//
// Source: tensorflow/core/common_runtime/bfc_allocator.{h,cc} (2.x): kMinAllocationSize, FindChunkPtr, Extend; defaults
// with allow_growth, no fragmentation_fraction and a device that never says no.
#include "planner/strategies/sim_heap.h"
#include "planner/strategies/strategies.h"

#define MIB (UINT64_C(1024) * 1024)

static uint32_t pool_of(uint64_t bytes) {
    (void)bytes;
    return 0;
}

static bool splits(uint64_t block_bytes, uint64_t bytes, uint32_t pool) {
    (void)pool;
    return block_bytes - bytes >= bytes || block_bytes - bytes >= 128 * MIB;
}

/// `state` is the size of the next region.
static uint64_t segment_bytes(uint64_t bytes, uint64_t *state) {
    if (*state == 0) *state = 2 * MIB;
    bool increased = false;
    for (; *state < bytes; increased = true) {
        if (*state > UINT64_MAX / 2) return 0;
        *state *= 2;
    }
    const uint64_t region = *state;
    if (!increased && *state <= UINT64_MAX / 2) *state *= 2;
    return region;
}

static tide_status place(const tide_problem *problem, const tide_strategy_options *opt, tide_placement *out,
                         tide_error *err) {
    (void)opt;
    static const tide_sim_rules rules = {"sim:bfc", 256, pool_of, splits, segment_bytes};
    return tide__sim_run(problem, &rules, out, err);
}

const tide_strategy tide__strategy_sim_bfc = {
    .name = "sim:bfc",
    .what = "what a best-fit allocator that doubles its regions would reserve at run time",
    .source = "TensorFlow BFCAllocator with allow_growth",
    .form = TIDE_PLAN_OFFSETS,
    .place = place,
};
