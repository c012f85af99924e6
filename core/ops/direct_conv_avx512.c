// SPDX-License-Identifier: MIT
//
// The direct convolution in instructions of AVX-512. See direct_conv.h.
#ifdef __x86_64__
#include <immintrin.h>

#define KIND __attribute__((target("avx512f,avx2,fma")))
#define RUN tide__direct_conv_avx512
#define LANES 16
#define WIDE 8
#define BLOCKS                                                                                                         \
    XX(8, 3)                                                                                                           \
    XX(8, 2)                                                                                                           \
    XX(8, 1) XX(4, 6) XX(4, 4) XX(4, 2) XX(4, 1) XX(2, 8) XX(2, 4) XX(2, 2) XX(2, 1) XX(1, 8) XX(1, 4) XX(1, 2) XX(1, 1)

#define MASK __mmask16
#define MASK_OF(lo, hi) (__mmask16)((hi) > (lo) ? ((1u << (hi)) - 1u) & ~((1u << (lo)) - 1u) : 0u)
#define LOAD(p, mask) (vector) _mm512_maskz_loadu_ps((mask), (p))
// Rounded once, whatever the compiler makes of a product and a sum.
#define ADD_PRODUCT(sum, a, b) (vector) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum))
#define STORE(p, mask, v) _mm512_mask_storeu_ps((p), (mask), (__m512)(v))
#define EVENS(a, b)                                                                                                    \
    (vector) _mm512_permutex2var_ps(                                                                                   \
        (__m512)(a), _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), (__m512)(b))

#include "core/ops/direct_conv_body.h"
#endif
