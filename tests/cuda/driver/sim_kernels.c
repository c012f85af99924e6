// SPDX-License-Identifier: MIT
//
// The tables of kernels: the plug-in's, which the build links where its source is there, and that of the driver's own
// tests.
#include "tests/cuda/driver/sim_kernels.h"

#include <string.h>

TIDE_KERNEL void sim_test_add(uint32_t *at, uint32_t n, uint32_t value) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) at[i] += value;
}
TIDE_HOST_RUN3(sim_test_add, uint32_t *, uint32_t, uint32_t)

// Counts words that are not `value`.
TIDE_KERNEL void sim_test_count(const uint32_t *at, uint32_t n, uint32_t value, uint32_t *differ) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && at[i] != value) atomicAdd(differ, 1);
}
TIDE_HOST_RUN4(sim_test_count, const uint32_t *, uint32_t, uint32_t, uint32_t *)

static const tide_host_kernel of_tests[] = {
    TIDE_HOST_ROW3(sim_test_add, uint32_t *, uint32_t, uint32_t),
    TIDE_HOST_ROW4(sim_test_count, const uint32_t *, uint32_t, uint32_t, uint32_t *),
    {0},
};

static const tide_host_kernel *find_in(const tide_host_kernel *table, const char *name) {
    for (; table->name != NULL; table++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

const tide_host_kernel *sim_kernel_find(const char *name) {
#ifdef SIM_HAS_PLUGIN_KERNELS
    const tide_host_kernel *found = find_in(tide_host_kernels, name);
    if (found != NULL) return found;
#endif
    return find_in(of_tests, name);
}
