// SPDX-License-Identifier: MIT
//
// colouring: assign pools, then lay the pools end to end. See coloring.h.
#include "planner/coloring.h"

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/placed_index.h"

typedef struct member {
    int64_t begin_step, end_step;
    int32_t pool;
} member;

typedef struct coloring {
    tide_memory_plan *plan;
    const tide_worklist *work;
    tide_placed_index placed;
    uint32_t *neighbours; // [few_of(work->n)] scratch
    member *members;      // [work->n] those that have a pool, in the order of work
    tide_pool_rule rule;
    size_t cap_pools;
    uint64_t *aligns; // [n_pools] strictest member
    size_t cap_aligns;
    uint32_t *taken_by; // [n_pools] last tensor, numbered from 1, that found the pool taken; 0: none yet
    size_t cap_taken;
} coloring;

/// As many neighbours as the index finds in the time of a walk over `n` members.
static size_t few_of(size_t n) { return 32 + n / 16; }

/// Mark every pool in which a tensor lies that conflicts with the one at position `work_i`: all before it have a pool.
static void mark_taken(coloring *c, size_t work_i, uint32_t mark) {
    const tide_lifetime *item = c->work->items[work_i];
    const size_t few = few_of(work_i), n = tide__placed_index_find(&c->placed, item, c->neighbours, few);
    if (n <= few) {
        for (size_t k = 0; k < n; k++) c->taken_by[c->members[c->neighbours[k]].pool] = mark;
        return;
    }
    for (size_t k = 0; k < work_i; k++) {
        const member *m = &c->members[k];
        if (m->begin_step < item->end_step && item->begin_step < m->end_step) c->taken_by[m->pool] = mark;
    }
}

/// Whether free pool `p` is a better choice than free pool `q` for a tensor of `bytes`.
static bool is_better(uint64_t p, uint64_t q, uint64_t bytes) {
    const bool p_holds = p >= bytes, q_holds = q >= bytes;
    if (p_holds != q_holds) return p_holds;
    return p_holds ? p < q : p > q;
}

static int32_t choose_pool(const coloring *c, uint64_t bytes, uint32_t mark) {
    int32_t best = TIDE_NO_POOL;
    for (size_t p = 0; p < c->plan->n_pools; p++) {
        if (c->taken_by[p] == mark) continue;
        if (c->rule == TIDE_POOL_RULE_FIRST) return (int32_t)p;
        const tide_plan_pool *pools = c->plan->pool_list;
        if (best == TIDE_NO_POOL || is_better(pools[p].size_bytes, pools[best].size_bytes, bytes)) best = (int32_t)p;
    }
    return best;
}

static tide_status add_pool(coloring *c, int32_t *out) {
    const size_t n = c->plan->n_pools;
    TIDE_TRY(tide_host_grow(&c->plan->pool_list, &c->cap_pools, n + 1, sizeof *c->plan->pool_list));
    TIDE_TRY(tide_host_grow(&c->aligns, &c->cap_aligns, n + 1, sizeof *c->aligns));
    TIDE_TRY(tide_host_grow(&c->taken_by, &c->cap_taken, n + 1, sizeof *c->taken_by));
    c->plan->pool_list[n] = (tide_plan_pool){0};
    c->aligns[n] = 1;
    c->taken_by[n] = 0;
    c->plan->n_pools = n + 1;
    *out = (int32_t)n;
    return TIDE_OK;
}

static void join(coloring *c, size_t work_i, int32_t pool) {
    const tide_lifetime *item = c->work->items[work_i];
    tide_plan_pool *p = &c->plan->pool_list[pool];
    const uint64_t bytes = tide_lifetime_aligned_bytes(item);
    if (bytes > p->size_bytes) p->size_bytes = bytes;
    if (item->align_bytes > c->aligns[pool]) c->aligns[pool] = item->align_bytes;
    p->n_members++;
    c->plan->pools[item - c->plan->lifetimes.items] = pool;
    c->members[work_i] = (member){item->begin_step, item->end_step, pool};
    tide__placed_index_add(&c->placed, c->work, work_i);
}

static tide_status assign_pools(coloring *c, tide_error *err) {
    for (size_t k = 0; k < c->work->n; k++) {
        const uint32_t mark = (uint32_t)k + 1;
        mark_taken(c, k, mark);
        int32_t pool = choose_pool(c, tide_lifetime_aligned_bytes(c->work->items[k]), mark);
        if (pool == TIDE_NO_POOL && add_pool(c, &pool) != TIDE_OK)
            return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a pool of tensor '%s'", c->work->items[k]->name);
        join(c, k, pool);
    }
    return TIDE_OK;
}

/// Pools end to end, by id; those of stricter alignment before others, so that no padding is needed between them and
/// their sizes add up to the total. With one alignment for all that is plainly the order of ids.
static tide_status lay_out(coloring *c, tide_error *err) {
    uint64_t at = 0;
    size_t n_laid = 0;
    for (uint64_t align = UINT64_C(1) << 63; align != 0 && n_laid < c->plan->n_pools; align >>= 1) {
        for (size_t p = 0; p < c->plan->n_pools; p++) {
            if (c->aligns[p] != align) continue;
            tide_plan_pool *pool = &c->plan->pool_list[p];
            pool->offset_bytes = at;
            if (!tide_align_up(pool->size_bytes, align, &pool->size_bytes) || !tide_add_u64(at, pool->size_bytes, &at))
                return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the bytes of %zu pools pass 2^64 - 1", c->plan->n_pools);
            n_laid++;
        }
    }
    c->plan->bytes = at;
    for (size_t i = 0; i < c->plan->lifetimes.n; i++) {
        const int32_t pool = c->plan->pools[i];
        if (pool != TIDE_NO_POOL) c->plan->offsets[i] = c->plan->pool_list[pool].offset_bytes;
    }
    return TIDE_OK;
}

static tide_status color(coloring *c, tide_error *err) {
    c->neighbours = tide_host_calloc(few_of(c->work->n), sizeof *c->neighbours);
    c->members = tide_host_calloc(c->work->n, sizeof *c->members);
    if (c->neighbours == NULL || c->members == NULL || tide__placed_index_init(&c->placed, c->work) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to colour %zu tensors", c->work->n);
    TIDE_TRY(assign_pools(c, err));
    return lay_out(c, err);
}

tide_status tide__plan_color(tide_memory_plan *plan, tide_worklist_order *order, tide_pool_rule rule, tide_error *err) {
    tide_worklist work;
    TIDE_TRY(tide__worklist_make(&plan->lifetimes, order, &work, err));
    coloring c = {.plan = plan, .work = &work, .rule = rule};
    const tide_status st = color(&c, err);
    tide__placed_index_deinit(&c.placed);
    tide_host_free(c.neighbours);
    tide_host_free(c.members);
    tide_host_free(c.aligns);
    tide_host_free(c.taken_by);
    tide__worklist_deinit(&work);
    return st;
}
