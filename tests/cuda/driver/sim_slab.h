// SPDX-License-Identifier: MIT
//
// Where cuMemAlloc's bytes come from (sim_slab.c).
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_SLAB_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_SLAB_H

#include "tests/cuda/driver/sim.h"

/// Fills address, span and slab of the range from its device, context and bytes. False: the device has no more.
bool sim_slab_alloc(sim_range *range);
void sim_slab_free(sim_range *range);

#endif
