// SPDX-License-Identifier: MIT
//
// Sorting. See items_order.h.
//
// Merging natural runs (Knuth, TAOCP 3, 5.2.4, algorithm N): blocks come nearly in order of their begin, one run per
// recorded thread. The shorter of two runs is put aside:
//
//     numbers  [ left run ][ right run       ]      the left one is shorter: copied, merged from the front
//     aside    [ left run ]                         else the right one, merged from the back
#include "analysis/items_order.h"

#include <string.h>

#include "analysis/items_internal.h"
#include "core/base/host_alloc.h"

enum { INDEX_ITEMS = 1000000 };

enum { REPORT_NUMBERS = 1 << 16 };

bool tide__sorting_goes_on(tide__sorting *s, size_t n) {
    if (s == NULL || s->progress == NULL || s->progress->tell == NULL) return true;
    s->done += n;
    if (s->done - s->reported < REPORT_NUMBERS) return true;
    s->reported = s->done;
    const double share = s->done < s->total ? (double)s->done / (double)s->total : 1;
    return tide_progress_goes_on(s->progress, s->from + (s->to - s->from) * share, s->what);
}

// ---- merging ----

/// One merge after the other. Each number takes part in `n_rounds` of them: all of them count it once.
typedef struct merging {
    tide__in_order_fn in_order;
    const void *ctx;
    uint32_t *aside;
    tide__sorting *reporter;
    size_t n_rounds;
} merging;

/// Now and then of a long merge. False: cancelled.
static bool goes_on(const merging *m, size_t out) {
    return out % REPORT_NUMBERS != 0 || tide__sorting_goes_on(m->reporter, REPORT_NUMBERS / m->n_rounds);
}

static bool merge_front(const merging *m, uint32_t *at, size_t n_left, size_t n_right) {
    const uint32_t *right = at + n_left, *aside = m->aside;
    size_t l = 0, r = 0, out = 0;
    while (l < n_left && r < n_right) {
        at[out++] = m->in_order(m->ctx, aside[l], right[r]) ? aside[l++] : right[r++];
        if (!goes_on(m, out)) return false;
    }
    if (l < n_left) memcpy(at + out, aside + l, (n_left - l) * sizeof *at);
    return true;
}

static bool merge_back(const merging *m, uint32_t *at, size_t n_left, size_t n_right) {
    const uint32_t *aside = m->aside;
    size_t l = n_left, r = n_right, out = n_left + n_right;
    while (l > 0 && r > 0) {
        at[--out] = m->in_order(m->ctx, at[l - 1], aside[r - 1]) ? aside[--r] : at[--l];
        if (!goes_on(m, out)) return false;
    }
    if (r > 0) memcpy(at, aside, r * sizeof *at);
    return true;
}

/// False: cancelled, and numbers are lost.
static bool merge(const merging *m, uint32_t *at, size_t n_left, size_t n_right) {
    if (!tide__sorting_goes_on(m->reporter, (n_left + n_right) % REPORT_NUMBERS / m->n_rounds)) return false;
    if (m->in_order(m->ctx, at[n_left - 1], at[n_left])) return true;
    if (n_left <= n_right) {
        memcpy(m->aside, at, n_left * sizeof *at);
        return merge_front(m, at, n_left, n_right);
    }
    memcpy(m->aside, at + n_left, n_right * sizeof *at);
    return merge_back(m, at, n_left, n_right);
}

/// Where each run begins, and n; short ones are made longer by insertion.
static tide_status find_runs(uint32_t *numbers, size_t n, tide__in_order_fn in_order, const void *ctx, size_t **out,
                             size_t *n_runs) {
    enum { SHORTEST = 12 };
    size_t cap = 0, *runs = NULL;
    *n_runs = 0;
    for (size_t i = 0; i < n;) {
        if (tide_host_grow(&runs, &cap, *n_runs + 2, sizeof *runs) != TIDE_OK) {
            tide_host_free(runs);
            return TIDE_ERR_NOMEM;
        }
        runs[(*n_runs)++] = i;
        size_t end = i + 1;
        while (end < n && in_order(ctx, numbers[end - 1], numbers[end])) end++;
        for (; end < n && end - i < SHORTEST; end++) {
            const uint32_t x = numbers[end];
            size_t k = end;
            for (; k > i && !in_order(ctx, numbers[k - 1], x); k--) numbers[k] = numbers[k - 1];
            numbers[k] = x;
        }
        i = end;
    }
    if (*n_runs > 0) runs[*n_runs] = n;
    *out = runs;
    return TIDE_OK;
}

tide_status tide__merge_sort(uint32_t *numbers, size_t n, tide__in_order_fn in_order, const void *ctx,
                             tide__sorting *reporter) {
    size_t *runs, n_runs;
    TIDE_TRY(find_runs(numbers, n, in_order, ctx, &runs, &n_runs));
    merging m = {.in_order = in_order, .ctx = ctx, .reporter = reporter, .n_rounds = 1};
    while (m.n_rounds < 64 && n_runs >> m.n_rounds > 1) m.n_rounds++;
    m.aside = n_runs > 1 ? tide_host_alloc((n / 2 + 1) * sizeof *m.aside) : NULL;
    tide_status st = n_runs <= 1 || m.aside != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    while (st == TIDE_OK && n_runs > 1) {
        size_t n_left = 0;
        for (size_t i = 0; st == TIDE_OK && i < n_runs; i += 2) {
            if (i + 1 < n_runs && !merge(&m, numbers + runs[i], runs[i + 1] - runs[i], runs[i + 2] - runs[i + 1]))
                st = TIDE_ERR_CANCELLED;
            runs[n_left++] = runs[i];
        }
        runs[n_left] = n;
        n_runs = n_left;
    }
    tide_host_free(runs);
    tide_host_free(m.aside);
    return st;
}

// ---- by digits ----

void tide__keyed_sort(tide__keyed *keys, tide__keyed *spare, size_t n) {
    enum { BITS = 11, SIZE = 1 << BITS, N_DIGITS = 6 };
    static const unsigned shift[N_DIGITS] = {0, 11, 22, 33, 44, 55};
    uint64_t low = UINT64_MAX, high = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        if (keys[i].key < low) low = keys[i].key;
        if (keys[i].key > high) high = keys[i].key;
    }
    if (n > 0) all = high - low;
    tide__keyed *from = keys, *to = spare;
    for (int d = 0; d < N_DIGITS && all >> shift[d] != 0; d++) {
        uint32_t at[SIZE] = {0};
        for (size_t i = 0; i < n; i++) at[(from[i].key - low) >> shift[d] & (SIZE - 1)]++;
        for (uint32_t i = 0, sum = 0; i < SIZE; i++) {
            const uint32_t count = at[i];
            at[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) to[at[(from[i].key - low) >> shift[d] & (SIZE - 1)]++] = from[i];
        tide__keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys && n > 0) memcpy(keys, from, n * sizeof *keys);
}

// ---- by buckets ----

/// A bucket has 1/1024 of a power of two of the distance from the lowest key: keys that crowd near it are kept apart as
/// well as those far away. Rises with the key.
static uint32_t bucket_of(uint64_t distance) {
    if (distance < 1 << 10) return (uint32_t)distance;
    const unsigned bits = 64 - (unsigned)__builtin_clzll(distance); // 11 .. 64
    return ((bits - 10) << 10) + (uint32_t)(distance >> (bits - 11) & 1023);
}
enum { N_BUCKETS = 56 << 10, AT_ONCE = 1 << 18, MOST_AT_ONCE = 1 << 20 };

static bool is_set(const uint8_t *bits, size_t i) { return bits == NULL || (bits[i / 8] >> (i % 8) & 1) != 0; }

/// Numbers with their keys, for sorting that looks up nothing twice.
typedef struct bucket_sort {
    tide__key_fn key;
    const void *ctx;
    tide__keyed *keys; // [2 * cap]
    size_t cap;
    tide__sorting *reporter;
} bucket_sort;

/// Sort `n` numbers by key.
static void sort_stretch(const bucket_sort *s, uint32_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++) s->keys[i] = (tide__keyed){.key = s->key(s->ctx, numbers[i]), .number = numbers[i]};
    tide__keyed_sort(s->keys, s->keys + n, n);
    for (size_t i = 0; i < n; i++) numbers[i] = s->keys[i].number;
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b) {
    const bucket_sort *s = ctx;
    return s->key(s->ctx, a) <= s->key(s->ctx, b);
}

/// The next stretch of buckets that are sorted together: some small ones, or one.
static size_t stretch_end(const uint32_t *end, size_t b, size_t from) {
    while (b + 1 < N_BUCKETS && end[b + 1] - from <= AT_ONCE) b++;
    return b;
}

static size_t fullest(const uint32_t *end) {
    size_t most = 0, from = 0;
    for (size_t b = 0; b < N_BUCKETS; b++) {
        b = stretch_end(end, b, from);
        if (end[b] - from > most) most = end[b] - from;
        from = end[b];
    }
    return most;
}

/// A bucket that is fuller than may be has keys very near each other, often one alone: merging takes little memory,
/// and no time where they are in order.
static tide_status sort_buckets(bucket_sort *s, uint32_t *numbers, const uint32_t *end) {
    size_t from = 0;
    s->cap = fullest(end) < MOST_AT_ONCE ? fullest(end) : MOST_AT_ONCE;
    s->keys = tide_host_alloc((2 * s->cap + 1) * sizeof *s->keys);
    if (s->keys == NULL) return TIDE_ERR_NOMEM;
    for (size_t b = 0; b < N_BUCKETS; b++) {
        b = stretch_end(end, b, from);
        const size_t n = end[b] - from;
        if (n > s->cap) TIDE_TRY(tide__merge_sort(numbers + from, n, is_before, s, s->reporter));
        if (n > 1 && n <= s->cap) sort_stretch(s, numbers + from, n);
        if (n <= s->cap && !tide__sorting_goes_on(s->reporter, n)) return TIDE_ERR_CANCELLED;
        from = end[b];
    }
    return TIDE_OK;
}

/// Called for every number; progress is reported between stretches. `at` and `numbers` as in tide__bucket_sort.
typedef enum bucket_step { FIND_LOWEST, COUNT_BUCKETS, DEAL_OUT } bucket_step;

static tide_status each_number(const bucket_sort *s, bucket_step step, const uint8_t *bits, size_t n_all, uint64_t *low,
                               uint32_t *at, uint32_t *numbers) {
    for (uint32_t from = 0; from < n_all;) {
        const uint32_t end = n_all - from > REPORT_NUMBERS ? from + REPORT_NUMBERS : (uint32_t)n_all;
        for (uint32_t i = from; i < end; i++) {
            if (!is_set(bits, i)) continue;
            const uint64_t k = s->key(s->ctx, i);
            if (step == FIND_LOWEST && k < *low) *low = k;
            if (step == COUNT_BUCKETS) at[bucket_of(k - *low) + 1]++;
            if (step == DEAL_OUT) numbers[at[bucket_of(k - *low)]++] = i;
        }
        if (!tide__sorting_goes_on(s->reporter, end - from)) return TIDE_ERR_CANCELLED;
        from = end;
    }
    return TIDE_OK;
}

tide_status tide__bucket_sort(const uint8_t *bits, size_t n_all, size_t n, tide__key_fn key, const void *ctx,
                              tide__sorting *reporter, uint32_t **out) {
    bucket_sort s = {.key = key, .ctx = ctx, .reporter = reporter};
    uint32_t *at = tide_host_calloc(N_BUCKETS + 1, sizeof *at), *numbers = tide_host_alloc((n + 1) * sizeof *numbers);
    tide_status st = at != NULL && numbers != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    uint64_t low = UINT64_MAX;
    if (st == TIDE_OK) st = each_number(&s, FIND_LOWEST, bits, n_all, &low, at, numbers);
    if (st == TIDE_OK) st = each_number(&s, COUNT_BUCKETS, bits, n_all, &low, at, numbers);
    for (size_t b = 0; st == TIDE_OK && b < N_BUCKETS; b++) at[b + 1] += at[b];
    if (st == TIDE_OK) st = each_number(&s, DEAL_OUT, bits, n_all, &low, at, numbers);
    if (st == TIDE_OK) st = sort_buckets(&s, numbers, at); // at[b] is the end of bucket b by now
    tide_host_free(at);
    tide_host_free(s.keys);
    if (st != TIDE_OK) {
        tide_host_free(numbers);
        return st;
    }
    *out = numbers;
    return TIDE_OK;
}

// ---- items ----

static bool begins_before(const void *ctx, uint32_t a, uint32_t b) {
    const tide_items *it = ctx;
    if (tide_items_begin(it, a) != tide_items_begin(it, b)) return tide_items_begin(it, a) < tide_items_begin(it, b);
    const tide_item_shape *x = tide_items_shape(it, a), *y = tide_items_shape(it, b);
    if (x->size_bytes != y->size_bytes) return x->size_bytes > y->size_bytes;
    return tide_items_id(it, a) <= tide_items_id(it, b);
}

tide_status tide__items_sort(tide_items *items, const tide_progress *progress) {
    uint32_t *order = tide_host_alloc((items->n + 1) * sizeof *order);
    if (order == NULL) return TIDE_ERR_NOMEM;
    const size_t n = items->n;
    size_t n_same = 0;
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    tide__sorting reporter = {
        .progress = progress, .what = "sorting blocks", .from = 0.9, .to = 0.94, .total = n}; // as tide__items_report
    tide_status st = tide__merge_sort(order, n, begins_before, items, &reporter);
    if (st == TIDE_OK) st = tide__items_report(progress, 0.4);
    while (st == TIDE_OK && n_same < n && order[n_same] == n_same) n_same++;
    if (st == TIDE_OK && n_same < items->n) st = tide__items_repack(items, order, n, progress);
    tide_host_free(order);
    return st;
}

static bool numbered_before(const void *ctx, uint32_t a, uint32_t b) {
    const tide_items *it = ctx;
    return tide_items_id(it, a) <= tide_items_id(it, b);
}

tide_status tide__items_index(const tide_items *items, uint32_t **out) {
    *out = NULL;
    if (items->n > INDEX_ITEMS) return TIDE_OK;
    uint32_t *by_id = tide_host_alloc((items->n + 1) * sizeof *by_id);
    if (by_id == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < items->n; i++) by_id[i] = i;
    const tide_status st = tide__merge_sort(by_id, items->n, numbered_before, items, NULL);
    if (st != TIDE_OK) {
        tide_host_free(by_id);
        return st;
    }
    *out = by_id;
    return TIDE_OK;
}
