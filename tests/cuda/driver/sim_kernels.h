// SPDX-License-Identifier: MIT
//
// The contract between the simulated driver and kernels that the host's compiler compiled: a table of names. The
// library links one file that defines `sim_kernels`; a launch finds its kernel there by name.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_KERNELS_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sim_grid {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
} sim_grid;

/// Runs the whole grid. `params[i]` points to a copy of the i-th argument.
typedef void sim_kernel(const sim_grid *grid, void **params);

#define SIM_MAX_PARAMS 16

typedef struct sim_kernel_row {
    const char *name;
    sim_kernel *run;
    uint32_t n_params;
    uint32_t param_bytes[SIM_MAX_PARAMS]; ///< as the device's compiler lays them out: each aligned to its size
} sim_kernel_row;

/// Ends with a row without name.
extern const sim_kernel_row sim_kernels[];

#endif
