// SPDX-License-Identifier: MIT
//
// Kernels that a launch finds by name: those of the plug-in (cuda/kernels/kernels.cu, when it is there) and those of
// the driver's own tests, all compiled by the host's compiler. The contract is cuda/kernels/host.h.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_KERNELS_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_KERNELS_H

#include "cuda/kernels/host.h"

/// The kernel of that name, or NULL.
const tide_host_kernel *sim_kernel_find(const char *name);

#endif
