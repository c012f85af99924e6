// SPDX-License-Identifier: MIT
//
// fourier: one discrete Fourier transform of any length, in double. Used by DFT and STFT.
#ifndef TIDE_CORE_OPS_FOURIER_H
#define TIDE_CORE_OPS_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_complex {
    double re, im;
} tide_complex;

/// What a transform of length n needs, each [n]: roots are made once and used for many.
typedef struct tide_fourier {
    int64_t n;
    tide_complex *roots, *in, *out, *spare;
} tide_fourier;

enum { TIDE_FOURIER_ARRAYS = 4 };
/// The longest transform: its scratch is counted in 63 bits, and no one waits for a longer one.
enum { TIDE_FOURIER_MAX = 1 << 26 };

/// Lay the arrays into `scratch`, of TIDE_FOURIER_ARRAYS * n elements, and make the roots of unity.
void tide_fourier_init(tide_fourier *f, int64_t n, bool inverse, void *scratch);
/// About how many multiply-adds one takes.
double tide_fourier_work(int64_t n);
/// out = the transform of in; inverse: divided by n. O(n * the sum of n's prime factors).
void tide_fourier_run(const tide_fourier *f, bool inverse);

#ifdef __cplusplus
}
#endif
#endif
