// SPDX-License-Identifier: MIT
//
// orders: see orders.h. An order is a pair of numbers an item, computed once; the smaller pair goes first.
#include "planner/strategies/orders.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "planner/strategies/breadth.h"

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
    tide_breadth breadth;
    TIDE_TRY(tide__breadth_init(&breadth, p));
    // Breadths of two ticks may be equal: the earlier tick goes first, so ranks stand for (breadth, tick).
    for (size_t i = 0; i < p->n; i++) {
        keys[i].major = tide__breadth_rank(&breadth, p->items[i].begin, p->items[i].end);
        keys[i].minor = ~p->items[i].size_bytes;
    }
    tide__breadth_deinit(&breadth);
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
        for (size_t k = 0; k < n; k++) list[k] = keys[k].item_i;
    }
    tide_host_free(keys);
    if (st != TIDE_OK) {
        tide_host_free(list);
        return TIDE_FAIL(err, st, "no memory to sort %zu tensors", n);
    }
    *out = list;
    return TIDE_OK;
}
