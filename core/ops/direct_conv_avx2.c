// SPDX-License-Identifier: MIT
//
// The direct convolution in instructions of AVX2 and FMA. See direct_conv.h.
#ifdef __x86_64__
#include <immintrin.h>

#define KIND __attribute__((target("avx2,fma")))
#define RUN tide__direct_conv_avx2
#define LANES 8
#define WIDE 4
#define BLOCKS XX(4, 3) XX(4, 2) XX(4, 1) XX(2, 4) XX(2, 2) XX(2, 1) XX(1, 8) XX(1, 4) XX(1, 2) XX(1, 1)

// Lanes lo … hi - 1: both ends are compared with the number of the lane.
#define MASK __m256i
#define MASK_OF(lo, hi)                                                                                                \
    _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)(hi)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),      \
                     _mm256_cmpgt_epi32(_mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8), _mm256_set1_epi32((int)(lo))))
#define LOAD(p, mask) (vector) _mm256_maskload_ps((p), (mask))
// Rounded once, whatever the compiler makes of a product and a sum.
#define ADD_PRODUCT(sum, a, b) (vector) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(sum))
#define STORE(p, mask, v) _mm256_maskstore_ps((p), (mask), (__m256)(v))
#define EVENS(a, b)                                                                                                    \
    (vector) _mm256_castpd_ps(                                                                                         \
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps((__m256)(a), (__m256)(b), 0x88)), 0xD8))

#include "core/ops/direct_conv_body.h"
#endif
