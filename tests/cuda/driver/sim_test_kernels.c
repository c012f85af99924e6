// SPDX-License-Identifier: MIT
//
// Kernels of the driver's own tests, until the table of the plug-in's kernels is linked beside them.
#include "tests/cuda/driver/sim_kernels.h"

// test_add(uint32_t *at, uint32_t n, uint32_t value): adds to each of n words.
static void run_add(const sim_grid *grid, void **params) {
    uint32_t *const at = *(uint32_t **)params[0];
    const uint32_t n = *(const uint32_t *)params[1], value = *(const uint32_t *)params[2];
    const uint64_t threads = (uint64_t)grid->grid[0] * grid->block[0];
    for (uint64_t i = 0; i < threads && i < n; i++) at[i] += value;
}

const sim_kernel_row sim_kernels[] = {
    {"test_add", run_add, 3, {8, 4, 4}},
    {0},
};
