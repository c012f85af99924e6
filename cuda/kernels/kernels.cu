// SPDX-License-Identifier: MIT
//
// The kernels of the plug-in: memory is filled with a pattern that a seed decides, and checked against it. One source for
// nvcc and for the host's compiler (host.h).
//
// The pattern is a row of 32-bit words, the low byte first; byte i of memory is byte i of that row, wherever the memory
// begins. A thread has every n-th word; the last word may be cut.
#include <stdint.h>

#include "cuda/kernels/host.h"

/// Word number `i` of the pattern (Steele, Lea and Flood 2014, splitmix64).
__device__ uint32_t tide_pattern_word(uint64_t seed, uint64_t i) {
    uint64_t x = seed + (i + 1) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return (uint32_t)(x ^ (x >> 31));
}

/// Bytes of word number `i` that lie within `n_bytes`.
__device__ uint32_t tide_pattern_bytes(uint64_t n_bytes, uint64_t i) {
    const uint64_t left = n_bytes - 4 * i;
    return left < 4 ? (uint32_t)left : 4;
}

TIDE_KERNEL void tide_pattern_fill(unsigned char *at, uint64_t n_bytes, uint64_t seed) {
    const uint64_t n_words = n_bytes / 4 + (n_bytes % 4 != 0), n_threads = (uint64_t)gridDim.x * blockDim.x;
    const int is_aligned = (uintptr_t)at % 4 == 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_words; i += n_threads) {
        const uint32_t word = tide_pattern_word(seed, i), n = tide_pattern_bytes(n_bytes, i);
        if (is_aligned && n == 4) {
            ((uint32_t *)at)[i] = word;
        } else {
            for (uint32_t k = 0; k < n; k++) at[4 * i + k] = (unsigned char)(word >> 8 * k);
        }
    }
}

TIDE_KERNEL void tide_pattern_check(const unsigned char *at, uint64_t n_bytes, uint64_t seed,
                                    unsigned long long *n_wrong) {
    const uint64_t n_words = n_bytes / 4 + (n_bytes % 4 != 0), n_threads = (uint64_t)gridDim.x * blockDim.x;
    const int is_aligned = (uintptr_t)at % 4 == 0;
    unsigned long long wrong = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n_words; i += n_threads) {
        const uint32_t word = tide_pattern_word(seed, i), n = tide_pattern_bytes(n_bytes, i);
        if (is_aligned && n == 4 && ((const uint32_t *)at)[i] == word) continue;
        for (uint32_t k = 0; k < n; k++) wrong += at[4 * i + k] != (unsigned char)(word >> 8 * k);
    }
    if (wrong != 0) atomicAdd(n_wrong, wrong);
}

#ifndef __CUDACC__
TIDE_HOST_RUN3(tide_pattern_fill, unsigned char *, uint64_t, uint64_t)
TIDE_HOST_RUN4(tide_pattern_check, const unsigned char *, uint64_t, uint64_t, unsigned long long *)
const tide_host_kernel tide_host_kernels[] = {
    TIDE_HOST_ROW3(tide_pattern_fill, unsigned char *, uint64_t, uint64_t),
    TIDE_HOST_ROW4(tide_pattern_check, const unsigned char *, uint64_t, uint64_t, unsigned long long *),
    {0},
};
#endif
