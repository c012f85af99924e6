// SPDX-License-Identifier: MIT
//
// What a kernel's source needs where the host's compiler compiles it as C: the words of the device's language, loops
// over grid and block, and a table in which the simulated driver finds kernels by name. A kernel written for both:
//
//     TIDE_KERNEL void tide_fill(uint32_t *at, uint32_t n, uint32_t value) {
//         const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
//         if (i < n) at[i] = value;
//     }
//     #ifndef __CUDACC__
//     TIDE_HOST_RUN3(tide_fill, uint32_t *, uint32_t, uint32_t)
//     const tide_host_kernel tide_host_kernels[] = {TIDE_HOST_ROW3(tide_fill, uint32_t *, uint32_t, uint32_t), {0}};
//     #endif
//
// Threads of a block run one after the other: no shared memory, no __syncthreads.
#ifndef TIDE_CUDA_KERNELS_HOST_H
#define TIDE_CUDA_KERNELS_HOST_H

#ifdef __CUDACC__
#define TIDE_KERNEL extern "C" __global__
#else

#include <stddef.h>
#include <stdint.h>

#define TIDE_KERNEL static
#define __device__ static inline

typedef struct tide_host_grid {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
} tide_host_grid;

#define TIDE_HOST_MAX_PARAMS 16

/// A row of the table, which ends with a row without name.
typedef struct tide_host_kernel {
    const char *name;
    /// Runs the whole grid; params[i] points to the i-th argument.
    void (*run)(const tide_host_grid *grid, void **params);
    uint32_t n_params;
    uint32_t param_bytes[TIDE_HOST_MAX_PARAMS];
} tide_host_kernel;

extern const tide_host_kernel tide_host_kernels[];

typedef struct tide_host_index {
    uint32_t x, y, z;
} tide_host_index;

__attribute__((unused)) static _Thread_local tide_host_index blockIdx, threadIdx, blockDim, gridDim;

__attribute__((unused)) static inline uint32_t tide_host_add(uint32_t *at, uint32_t value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
__attribute__((unused)) static inline unsigned long long tide_host_add_wide(unsigned long long *at,
                                                                            unsigned long long value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
#define atomicAdd(at, value)                                                                                           \
    _Generic((at), unsigned long long * : tide_host_add_wide, default : tide_host_add)(at, value)

#define TIDE_HOST_OVER(index, n)                                                                                       \
    for ((index).z = 0; (index).z < (n).z; (index).z++)                                                                \
        for ((index).y = 0; (index).y < (n).y; (index).y++)                                                            \
            for ((index).x = 0; (index).x < (n).x; (index).x++)

#define TIDE_HOST_RUN(name, call)                                                                                      \
    static void run_##name(const tide_host_grid *grid, void **params) {                                                \
        gridDim = (tide_host_index){grid->grid[0], grid->grid[1], grid->grid[2]};                                      \
        blockDim = (tide_host_index){grid->block[0], grid->block[1], grid->block[2]};                                  \
        TIDE_HOST_OVER(blockIdx, gridDim) TIDE_HOST_OVER(threadIdx, blockDim) call;                                    \
    }
#define TIDE_HOST_ARG(type, i) *(type *)params[i]
#define TIDE_HOST_RUN3(name, a, b, c)                                                                                  \
    TIDE_HOST_RUN(name, name(TIDE_HOST_ARG(a, 0), TIDE_HOST_ARG(b, 1), TIDE_HOST_ARG(c, 2)))
#define TIDE_HOST_RUN4(name, a, b, c, d)                                                                               \
    TIDE_HOST_RUN(name, name(TIDE_HOST_ARG(a, 0), TIDE_HOST_ARG(b, 1), TIDE_HOST_ARG(c, 2), TIDE_HOST_ARG(d, 3)))
#define TIDE_HOST_RUN5(name, a, b, c, d, e)                                                                            \
    TIDE_HOST_RUN(name, name(TIDE_HOST_ARG(a, 0), TIDE_HOST_ARG(b, 1), TIDE_HOST_ARG(c, 2), TIDE_HOST_ARG(d, 3),       \
                             TIDE_HOST_ARG(e, 4)))
#define TIDE_HOST_ROW3(name, a, b, c)                                                                                  \
    {                                                                                                                  \
#name, run_##name, 3, { sizeof(a), sizeof(b), sizeof(c) }                                                      \
    }
#define TIDE_HOST_ROW4(name, a, b, c, d)                                                                               \
    {                                                                                                                  \
#name, run_##name, 4, { sizeof(a), sizeof(b), sizeof(c), sizeof(d) }                                           \
    }
#define TIDE_HOST_ROW5(name, a, b, c, d, e)                                                                            \
    {                                                                                                                  \
#name, run_##name, 5, { sizeof(a), sizeof(b), sizeof(c), sizeof(d), sizeof(e) }                                \
    }

#endif
#endif
