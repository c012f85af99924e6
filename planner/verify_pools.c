// SPDX-License-Identifier: MIT
//
// verifier, pools: each pool holds one tensor at a time, with all that lies inside it; no member is larger than its
// pool, and laid end to end the pools of a buffer fill it (S23-9, S23-13, S23-17).
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/verify_internal.h"

typedef struct pools {
    tide_verify_check *c;
    int64_t *begins, *ends;      // [n] of a root: hull of the steps at which its class needs bytes
    tide_radix_key *keys, *room; // [n or n_pools] scratch
    uint64_t *largest;           // [n_pools] bytes of the largest member
    size_t *n_members;           // [n_pools]
} pools;

/// An alias's bytes lie inside its root: what a pool holds is the root from the first step at which anybody in its
/// class needs bytes to the last.
static void find_hulls(pools *p) {
    const tide_verify_check *c = p->c;
    for (size_t i = 0; i < c->n; i++) p->begins[i] = INT64_MAX;
    for (size_t r = 0; r < c->n_rects; r++) {
        const tide_verify_rect *rect = &c->rects[r];
        const uint32_t root = c->roots[rect->item];
        if (rect->begin < p->begins[root]) p->begins[root] = rect->begin;
        if (rect->end > p->ends[root]) p->ends[root] = rect->end;
    }
}

/// Members that need bytes, by pool, in each by birth.
static size_t list_members(pools *p) {
    const tide_verify_check *c = p->c;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->plan->pools[i] == TIDE_NO_POOL) continue;
        const size_t pool = (size_t)c->plan->pools[i];
        p->n_members[pool]++;
        if (c->n_alive[i] == 0) continue;
        if (tide__verify_bytes_of(c, i) > p->largest[pool]) p->largest[pool] = tide__verify_bytes_of(c, i);
        p->keys[n++] = (tide_radix_key){(uint64_t)p->begins[i], (uint32_t)i};
    }
    tide__radix_sort(p->keys, p->room, n);
    for (size_t k = 0; k < n; k++) p->keys[k].key = (uint64_t)c->plan->pools[p->keys[k].id];
    tide__radix_sort(p->keys, p->room, n);
    return n;
}

static tide_status check_one_at_a_time(pools *p, size_t n) {
    tide_verify_check *c = p->c;
    size_t last = TIDE_VERIFY_NOBODY; // the member of this pool that has lived longest
    for (size_t k = 0; k < n; k++) {
        const size_t i = p->keys[k].id;
        if (k > 0 && p->keys[k].key != p->keys[k - 1].key) last = TIDE_VERIFY_NOBODY;
        if (last != TIDE_VERIFY_NOBODY && p->begins[i] < p->ends[last])
            return TIDE_FAULT(c, POOL_CONFLICT, last, i,
                              "tensors '%s' and '%s' are both in pool %" PRIu64 " and both needed at step %" PRId64,
                              c->items[last].name, c->items[i].name, p->keys[k].key, p->begins[i]);
        if (last == TIDE_VERIFY_NOBODY || p->ends[i] > p->ends[last]) last = i;
    }
    return TIDE_OK;
}

/// A pool may be rounded up to its strictest member, so that the one after it begins aligned; more is waste.
static tide_status check_sizes(pools *p) {
    tide_verify_check *c = p->c;
    for (size_t k = 0; k < c->plan->n_pools; k++) {
        const tide_plan_pool *pool = &c->plan->pool_list[k];
        if (pool->buffer >= c->plan->n_buffers)
            return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                              "pool %zu is of buffer %" PRIu32 ", the plan has %zu", k, pool->buffer,
                              c->plan->n_buffers);
        const uint64_t align = c->plan->buffers[pool->buffer].align_bytes;
        if (pool->size_bytes < p->largest[k] || pool->size_bytes - p->largest[k] >= align)
            return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                              "pool %zu has %" PRIu64 " bytes, its largest member needs %" PRIu64, k, pool->size_bytes,
                              p->largest[k]);
        if (pool->n_members != p->n_members[k])
            return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                              "pool %zu lists %zu members and has %zu", k, pool->n_members, p->n_members[k]);
    }
    return TIDE_OK;
}

static void sort_pools_by(pools *p, uint64_t (*key)(const tide_plan_pool *pool)) {
    const size_t n = p->c->plan->n_pools;
    for (size_t k = 0; k < n; k++) p->keys[k].key = key(&p->c->plan->pool_list[p->keys[k].id]);
    tide__radix_sort(p->keys, p->room, n);
}
static uint64_t size_of(const tide_plan_pool *pool) { return pool->size_bytes; }
static uint64_t offset_of(const tide_plan_pool *pool) { return pool->offset_bytes; }
static uint64_t buffer_of(const tide_plan_pool *pool) { return pool->buffer; }

/// End to end the pools fill their buffer: no gap, no overlap, and their sizes add up (S23-17).
static tide_status check_layout(pools *p) {
    tide_verify_check *c = p->c;
    const size_t n = c->plan->n_pools;
    for (size_t k = 0; k < n; k++) p->keys[k].id = (uint32_t)k;
    sort_pools_by(p, size_of); // empty ones first where several begin
    sort_pools_by(p, offset_of);
    sort_pools_by(p, buffer_of);
    size_t k = 0;
    for (size_t b = 0; b < c->plan->n_buffers; b++) {
        uint64_t at = 0;
        bool sound = true;
        for (; k < n && p->keys[k].key == b && sound; k++) {
            const tide_plan_pool *pool = &c->plan->pool_list[p->keys[k].id];
            sound = pool->offset_bytes == at && tide_add_u64(at, pool->size_bytes, &at);
        }
        if (!sound || at != c->plan->buffers[b].bytes)
            return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY,
                              "the pools, end to end, do not fill buffer %zu of %" PRIu64 " bytes", b,
                              c->plan->buffers[b].bytes);
    }
    return TIDE_OK;
}

static tide_status check_all(pools *p) {
    const size_t n = p->c->n, n_pools = p->c->plan->n_pools, n_keys = n > n_pools ? n : n_pools;
    p->begins = tide_host_calloc(n, sizeof *p->begins);
    p->ends = tide_host_calloc(n, sizeof *p->ends);
    p->keys = tide_host_calloc(n_keys, sizeof *p->keys);
    p->room = tide_host_calloc(n_keys, sizeof *p->room);
    p->largest = tide_host_calloc(n_pools, sizeof *p->largest);
    p->n_members = tide_host_calloc(n_pools, sizeof *p->n_members);
    if (p->begins == NULL || p->ends == NULL || p->keys == NULL || p->room == NULL || p->largest == NULL ||
        p->n_members == NULL)
        return TIDE_FAIL(p->c->err, TIDE_ERR_NOMEM, "no memory to verify %zu pools", n_pools);
    find_hulls(p);
    TIDE_TRY(check_one_at_a_time(p, list_members(p)));
    TIDE_TRY(check_sizes(p));
    return check_layout(p);
}

tide_status tide__verify_pools(tide_verify_check *c) {
    if (c->plan->form == TIDE_PLAN_OFFSETS) {
        if (c->plan->n_pools == 0) return TIDE_OK;
        return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NOBODY, TIDE_VERIFY_NOBODY, "an offset plan lists %zu pools",
                          c->plan->n_pools);
    }
    pools p = {.c = c};
    const tide_status st = check_all(&p);
    tide_host_free(p.begins);
    tide_host_free(p.ends);
    tide_host_free(p.keys);
    tide_host_free(p.room);
    tide_host_free(p.largest);
    tide_host_free(p.n_members);
    return st;
}
