// SPDX-License-Identifier: MIT
//
// planner work: see planner_work.h.
#include "bench/planner_work.h"

#include <math.h>
#include <stdio.h>

#include "core/base/text.h"

enum { ALIGN = 256, REPEATED = 48, LONG_FACTOR = 8, LONG_PERCENT = 15 };

static uint64_t between(tide_rng *rng, double lo, double hi) {
    const double bytes = lo * exp2(tide_rng_f64(rng) * log2(hi / lo));
    return ((uint64_t)bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t draw_size(tide_rng *rng) {
    const double kib = 1024, mib = 1024 * 1024;
    const uint64_t which = tide_rng_below(rng, 1000);
    if (which < 700) return between(rng, 256, 64 * kib);
    if (which < 940) return between(rng, 64 * kib, 8 * mib);
    if (which < 995) return between(rng, 8 * mib, 64 * mib);
    return between(rng, 100 * mib, 512 * mib);
}

/// At least one step; exponential with that mean.
static int64_t draw_duration(tide_rng *rng, double mean) {
    return 1 + (int64_t)(-log(1 - tide_rng_f64(rng)) * (mean > 1 ? mean - 1 : 0));
}

tide_status tide_planner_work_make(uint64_t seed, size_t n, uint32_t density, tide_lifetimes *out, tide_error *err) {
    *out = (tide_lifetimes){0};
    tide_rng rng = {seed};
    uint64_t repeated[REPEATED]; // every second tensor has one of these sizes
    for (size_t i = 0; i < REPEATED; i++) repeated[i] = draw_size(&rng);
    const size_t n_whole = 2 + density / 50;
    const double alive = density > n_whole ? density - (double)n_whole : 1;
    const double shorts = alive / (1 + (LONG_FACTOR - 1) * LONG_PERCENT / 100.0);
    const int64_t n_steps = n > 0 ? (int64_t)n : 1;
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%zu", i);
        const uint64_t size = tide_rng_below(&rng, 2) == 0 ? repeated[tide_rng_below(&rng, REPEATED)] : draw_size(&rng);
        const bool lasts = tide_rng_below(&rng, 100) < LONG_PERCENT;
        int64_t begin = (int64_t)i, end = begin + draw_duration(&rng, lasts ? LONG_FACTOR * shorts : shorts);
        if (tide_rng_below(&rng, n) < n_whole) begin = 0, end = n_steps;
        const tide_lifetime item = {.name = name,
                                    .size_bytes = size,
                                    .align_bytes = ALIGN,
                                    .begin_step = begin,
                                    .end_step = end < n_steps ? end : n_steps,
                                    .kind = TIDE_KIND_WORKSPACE,
                                    .device = TIDE_CPU,
                                    .node = TIDE_NO_INDEX,
                                    .port = TIDE_NO_INDEX,
                                    .value = TIDE_NO_INDEX};
        TIDE_TRY(tide_lifetimes_add(out, &item, err));
    }
    out->n_steps = n_steps;
    return TIDE_OK;
}
