// SPDX-License-Identifier: MIT
//
// A Fourier transform of any length by its prime factors: of n = p * m, p transforms of length m over every p-th
// element, put together by p sums for each of m places. See fourier.h.
#include "core/ops/fourier.h"

#include <math.h>

static tide_complex times(tide_complex a, tide_complex b) {
    return (tide_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

void tide_fourier_init(tide_fourier *f, int64_t n, bool inverse, void *scratch) {
    *f = (tide_fourier){.n = n, .roots = scratch};
    f->in = f->roots + n;
    f->out = f->in + n;
    f->spare = f->out + n;
    for (int64_t i = 0; i < n; i++) {
        const double angle = (inverse ? 2 : -2) * 3.14159265358979323846 * (double)i / (double)n;
        f->roots[i] = (tide_complex){cos(angle), sin(angle)};
    }
}

static int64_t smallest_factor(int64_t n) {
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}

double tide_fourier_work(int64_t n) {
    double sum = 1;
    for (int64_t left = n, p; left > 1; left /= p) sum += (double)(p = smallest_factor(left));
    return 4 * (double)n * sum;
}

/// out[p * m] holds p transforms of length m; root number i of p * m is roots[i * stride].
static void put_together(const tide_fourier *f, tide_complex *out, int64_t p, int64_t m, int64_t stride) {
    const int64_t n = p * m;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++) f->spare[r] = times(out[r * m + k], f->roots[r * k % n * stride]);
        for (int64_t q = 0; q < p; q++) {
            tide_complex sum = f->spare[0];
            for (int64_t r = 1; r < p; r++) {
                const tide_complex term = times(f->spare[r], f->roots[r * q % p * m * stride]);
                sum.re += term.re;
                sum.im += term.im;
            }
            out[q * m + k] = sum;
        }
    }
}

/// As deep as n has prime factors: 26 at most.
static void transform(const tide_fourier *f, const tide_complex *in, int64_t stride, tide_complex *out, int64_t n) {
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    const int64_t p = smallest_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++) transform(f, in + r * stride, stride * p, out + r * m, m);
    put_together(f, out, p, m, stride);
}

void tide_fourier_run(const tide_fourier *f, bool inverse) {
    if (f->n == 0) return;
    transform(f, f->in, 1, f->out, f->n);
    for (int64_t i = 0; inverse && i < f->n; i++) {
        f->out[i].re /= (double)f->n;
        f->out[i].im /= (double)f->n;
    }
}
