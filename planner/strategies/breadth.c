// SPDX-License-Identifier: MIT
//
// breadth: see breadth.h.
#include "planner/strategies/breadth.h"

#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"

typedef struct tick_load {
    uint64_t bytes;
    uint32_t tick;
} tick_load;

static int broadest_first(const void *a, const void *b) {
    const tick_load *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->tick > y->tick) - (x->tick < y->tick);
}

/// Sums of differences, modulo 2^64: what is alive at a tick does not overflow, the problem has seen to that.
static void measure(tick_load *loads, const tide_problem *p) {
    for (size_t t = 0; t < p->n_ticks; t++) loads[t].tick = (uint32_t)t;
    for (size_t r = 0; r < p->n_rects; r++) {
        const tide_rect *rect = &p->rects[r];
        const uint64_t bytes = rect->hi_bytes - rect->lo_bytes;
        loads[rect->begin].bytes += bytes;
        if (rect->end < p->n_ticks) loads[rect->end].bytes -= bytes;
    }
    for (size_t t = 1; t < p->n_ticks; t++) loads[t].bytes += loads[t - 1].bytes;
}

tide_status tide__breadth_init(tide_breadth *b, const tide_problem *p) {
    *b = (tide_breadth){.n_ticks = p->n_ticks, .n_levels = 1};
    while (((size_t)1 << b->n_levels) <= b->n_ticks) b->n_levels++;
    size_t room;
    if (!tide_mul_size(b->n_levels, b->n_ticks, &room)) return TIDE_ERR_NOMEM;
    tick_load *loads = tide_host_calloc(b->n_ticks, sizeof *loads);
    b->best = tide_host_calloc(room, sizeof *b->best);
    if (loads == NULL || b->best == NULL) {
        tide_host_free(loads);
        tide__breadth_deinit(b);
        return TIDE_ERR_NOMEM;
    }
    measure(loads, p);
    qsort(loads, b->n_ticks, sizeof *loads, broadest_first);
    for (size_t rank = 0; rank < b->n_ticks; rank++) b->best[loads[rank].tick] = (uint32_t)rank;
    tide_host_free(loads);
    for (size_t k = 1; k < b->n_levels; k++) {
        const size_t half = (size_t)1 << (k - 1);
        const uint32_t *below = b->best + (k - 1) * b->n_ticks;
        for (size_t t = 0; t + 2 * half <= b->n_ticks; t++)
            b->best[k * b->n_ticks + t] = below[t] < below[t + half] ? below[t] : below[t + half];
    }
    return TIDE_OK;
}

void tide__breadth_deinit(tide_breadth *b) {
    tide_host_free(b->best);
    *b = (tide_breadth){0};
}

uint32_t tide__breadth_rank(const tide_breadth *b, uint32_t begin, uint32_t end) {
    size_t k = 0;
    while (((size_t)2 << k) <= end - begin) k++;
    const uint32_t *level = b->best + k * b->n_ticks;
    const uint32_t left = level[begin], right = level[end - ((size_t)1 << k)];
    return left < right ? left : right;
}
