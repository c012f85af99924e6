// SPDX-License-Identifier: MIT
//
// orders: see orders.h. An order is a pair of numbers an item, computed once; the smaller pair goes first.
#include "planner/strategies/orders.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

// ---- breadth: the tick of a span that has the most bytes, in O(1) after O(n log n) ----
//
// Ticks are ranked once, the broadest first, the earlier one of equals. The best rank of a span comes from a sparse
// table over the ranks:
//
//     best[k][t] = least rank of ticks t … t + 2^k - 1

typedef struct breadth_table {
    uint32_t *best; ///< [n_levels * n_ticks], owned
    size_t n_ticks, n_levels;
} breadth_table;

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

static void breadth_deinit(breadth_table *b) {
    tide_host_free(b->best);
    *b = (breadth_table){0};
}

static tide_status breadth_init(breadth_table *b, const tide_problem *p) {
    *b = (breadth_table){.n_ticks = p->n_ticks, .n_levels = 1};
    while (((size_t)1 << b->n_levels) <= b->n_ticks) b->n_levels++;
    size_t room;
    if (!tide_mul_size(b->n_levels, b->n_ticks, &room)) return TIDE_ERR_NOMEM;
    tick_load *loads = tide_host_calloc(b->n_ticks, sizeof *loads);
    b->best = tide_host_calloc(room, sizeof *b->best);
    if (loads == NULL || b->best == NULL) {
        tide_host_free(loads);
        breadth_deinit(b);
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

/// Rank of the broadest tick of [begin, end): 0 is the broadest of all.
static uint32_t breadth_rank(const breadth_table *b, uint32_t begin, uint32_t end) {
    TIDE_ASSERT(begin < end && end <= b->n_ticks);
    size_t k = 0;
    while (((size_t)2 << k) <= end - begin) k++;
    const uint32_t *level = b->best + k * b->n_ticks;
    const uint32_t left = level[begin], right = level[end - ((size_t)1 << k)];
    return left < right ? left : right;
}

// ---- orders ----

typedef struct sort_key {
    uint64_t major, minor;
    uint32_t item_i;
} sort_key;

static int compare_keys(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    if (x->major != y->major) return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor) return x->minor < y->minor ? -1 : 1;
    return (x->item_i > y->item_i) - (x->item_i < y->item_i);
}

static int compare_ticks(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/// Number of the sorted ticks that are below `tick`.
static size_t count_below(const uint32_t *ticks, size_t n, uint32_t tick) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (ticks[mid] < tick) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/// Items whose spans meet: all but those born too late and those that die too early.
static tide_status key_conflicts(const tide_problem *p, sort_key *keys) {
    uint32_t *begins = tide_host_calloc(p->n, sizeof *begins), *ends = tide_host_calloc(p->n, sizeof *ends);
    if (begins != NULL && ends != NULL) {
        for (size_t i = 0; i < p->n; i++) {
            begins[i] = p->items[i].begin;
            ends[i] = p->items[i].end;
        }
        qsort(begins, p->n, sizeof *begins, compare_ticks);
        qsort(ends, p->n, sizeof *ends, compare_ticks);
        for (size_t i = 0; i < p->n; i++) {
            const uint64_t met =
                count_below(begins, p->n, p->items[i].end) - count_below(ends, p->n, p->items[i].begin + 1);
            TIDE_ASSERT(met > 0 && met <= p->n); // an item meets itself
            keys[i].major = ~met;
            keys[i].minor = ~p->items[i].size_bytes;
        }
    }
    const bool good = begins != NULL && ends != NULL;
    tide_host_free(begins);
    tide_host_free(ends);
    return good ? TIDE_OK : TIDE_ERR_NOMEM;
}

static tide_status key_breadth(const tide_problem *p, sort_key *keys) {
    breadth_table breadth;
    TIDE_TRY(breadth_init(&breadth, p));
    // Breadths of two ticks may be equal: the earlier tick goes first, so ranks stand for (breadth, tick).
    for (size_t i = 0; i < p->n; i++) {
        keys[i].major = breadth_rank(&breadth, p->items[i].begin, p->items[i].end);
        keys[i].minor = ~p->items[i].size_bytes;
    }
    breadth_deinit(&breadth);
    return TIDE_OK;
}

/// Bytes x ticks in 64 bits that keep the order of magnitude: sizes may have 63 bits, durations 32.
static uint64_t area_of(const tide_problem *p, const tide_item *item) {
    uint64_t area = 0;
    for (uint32_t r = 0; r < item->n_rects; r++) {
        const tide_rect *rect = &tide__rects_of(p, item)[r];
        uint64_t part;
        if (__builtin_mul_overflow(rect->hi_bytes - rect->lo_bytes, (uint64_t)(rect->end - rect->begin), &part) ||
            __builtin_add_overflow(area, part, &area))
            return UINT64_MAX;
    }
    return area;
}

/// log2 of `x` > 0 in units of 2^-16, the same on every machine: the fraction by squaring, bit by bit.
static uint64_t log2_of(uint64_t x) {
    TIDE_ASSERT(x > 0);
    const unsigned whole = 63 - (unsigned)__builtin_clzll(x);
    uint64_t mantissa = whole >= 31 ? x >> (whole - 31) : x << (31 - whole); // in [2^31, 2^32)
    uint64_t result = whole;
    for (int bit = 0; bit < 16; bit++) {
        mantissa = mantissa * mantissa >> 31;
        const bool carry = mantissa >> 32 != 0;
        mantissa >>= carry;
        result = 2 * result + carry;
    }
    return result;
}

static void key_simply(const tide_problem *p, tide_item_order order, sort_key *keys) {
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        const uint64_t smaller = ~item->size_bytes, shorter = ~(uint64_t)(item->end - item->begin);
        switch (order) {
        case TIDE_ORDER_BIRTH:
            keys[i].major = item->begin, keys[i].minor = smaller;
            break;
        case TIDE_ORDER_END:
            keys[i].major = item->end;
            break;
        case TIDE_ORDER_DEATH:
            keys[i].major = ~(uint64_t)item->end, keys[i].minor = smaller;
            break;
        case TIDE_ORDER_ALIGN:
            keys[i].major = ~item->align_bytes, keys[i].minor = item->begin;
            break;
        case TIDE_ORDER_SIZE:
            keys[i].major = smaller;
            break;
        case TIDE_ORDER_SIZE_LONG:
            keys[i].major = smaller, keys[i].minor = shorter;
            break;
        case TIDE_ORDER_SPAN:
            keys[i].major = 2 * (uint64_t)(item->end - item->begin) < p->n_ticks, keys[i].minor = smaller;
            break;
        case TIDE_ORDER_VOLUME:
            keys[i].major = ~(10 * log2_of(item->size_bytes) + 3 * log2_of(item->end - item->begin));
            break;
        case TIDE_ORDER_DURATION:
            keys[i].major = shorter, keys[i].minor = smaller;
            break;
        case TIDE_ORDER_AREA:
            keys[i].major = ~area_of(p, item), keys[i].minor = smaller;
            break;
        default: // TIDE_ORDER_GIVEN
            keys[i].major = item->begin;
            break;
        }
    }
}

tide_status tide__order_make(const tide_problem *problem, tide_item_order order, uint32_t **out, tide_error *err) {
    const size_t n = problem->n;
    sort_key *keys = tide_host_calloc(n, sizeof *keys);
    uint32_t *list = tide_host_calloc(n, sizeof *list);
    tide_status st = keys == NULL || list == NULL ? TIDE_ERR_NOMEM : TIDE_OK;
    if (st == TIDE_OK) {
        for (size_t i = 0; i < n; i++) keys[i].item_i = (uint32_t)i;
        if (order == TIDE_ORDER_CONFLICTS) {
            st = key_conflicts(problem, keys);
        } else if (order == TIDE_ORDER_BREADTH) {
            st = key_breadth(problem, keys);
        } else {
            key_simply(problem, order, keys);
        }
    }
    if (st == TIDE_OK) {
        qsort(keys, n, sizeof *keys, compare_keys);
        for (size_t k = 0; k < n; k++) {
            TIDE_ASSERT(k == 0 || compare_keys(&keys[k - 1], &keys[k]) < 0); // so each item stands there once
            list[k] = keys[k].item_i;
        }
    }
    tide_host_free(keys);
    if (st != TIDE_OK) {
        tide_host_free(list);
        return TIDE_FAIL(err, st, "no memory to sort %zu tensors", n);
    }
    *out = list;
    return TIDE_OK;
}
