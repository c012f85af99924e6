// SPDX-License-Identifier: MIT
//
// Mean and variance of a row. See moments.h.
#include "core/ops/moments.h"

enum { LANES = 8 }; // running sums: breaks the chain of dependent additions, in an order that is ours

static double total(const double *part) {
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

void tide_moments(const float *x, int64_t n, double *mean, double *variance) {
    double part[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) part[j] += (double)x[i + j];
    for (int j = 0; i < n; i++, j++) part[j] += (double)x[i];
    const double m = total(part) / (double)n;
    double square[LANES] = {0};
    for (i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) square[j] += ((double)x[i + j] - m) * ((double)x[i + j] - m);
    for (int j = 0; i < n; i++, j++) square[j] += ((double)x[i] - m) * ((double)x[i] - m);
    *mean = m;
    *variance = total(square) / (double)n;
}
