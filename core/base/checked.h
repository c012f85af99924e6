// SPDX-License-Identifier: MIT
//
// Arithmetic on sizes that says when it overflows, and the one round-up formula of the project.
#ifndef TIDE_CORE_BASE_CHECKED_H
#define TIDE_CORE_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// `*out = a + b`; false (and *out untouched in meaning) when the sum does not fit.
static inline bool tide_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool tide_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool tide_add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool tide_mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool tide_add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool tide_mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

static inline bool tide_is_pow2(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }

/**
 * Round `bytes` up to the next multiple of `align`: 1 -> 256, 256 -> 256, 257 -> 512, 1000 -> 1024 at 256.
 *
 * @return false when `align` is not a power of two or the result does not fit
 */
static inline bool tide_align_up(uint64_t bytes, uint64_t align, uint64_t *out) {
    if (!tide_is_pow2(align)) return false;
    uint64_t raised;
    if (!tide_add_u64(bytes, align - 1, &raised)) return false;
    *out = raised & ~(align - 1);
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
