// SPDX-License-Identifier: MIT
//
// Arguments of a kernel, copied at the launch: each at the next multiple of 16 bytes.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_LAUNCH_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_LAUNCH_H

#include <stddef.h>

#include "tests/cuda/driver/sim_kernels.h"

static inline size_t sim_arg_span(const tide_host_kernel *kernel, uint32_t i) {
    return (kernel->param_bytes[i] + (size_t)15) & ~(size_t)15;
}

static inline size_t sim_args_bytes(const tide_host_kernel *kernel) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < kernel->n_params; i++) bytes += sim_arg_span(kernel, i);
    return bytes != 0 ? bytes : 1;
}

/// params[i]: address of the i-th argument in `args`.
static inline void sim_args_spread(const tide_host_kernel *kernel, void *args, void **params) {
    char *at = args;
    for (uint32_t i = 0; i < kernel->n_params; i++) {
        params[i] = at;
        at += sim_arg_span(kernel, i);
    }
}

#endif
