// SPDX-License-Identifier: MIT
//
// colouring: assign pools, then lay the pools end to end. See coloring.h.
#include "planner/strategies/coloring.h"

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies/space.h"

typedef struct coloring {
    const tide_problem *problem;
    tide_placement *out;
    const uint32_t *order;
    tide_pool_rule rule;
    tide_rect *spans;  // [2 * problem->n] when an item holds its pool, then its apart set's tick or nothing
    tide_space *space; // of pool ids instead of bytes
    size_t cap_pools;
    uint64_t *aligns; // [n_pools] strictest member
    size_t cap_aligns;
    bool descending; // no pool is larger than those before it
} coloring;

// ---- when an item holds its pool ----

/// From birth to death, gaps included. The tick of an apart set stands alone: what lies between does not count.
static void note_spans(const tide_problem *p, const tide_item *item, tide_rect spans[2]) {
    spans[0] = (tide_rect){item->begin, item->begin, 0, 1};
    spans[1] = (tide_rect){0, 0, 0, 1};
    for (uint32_t r = 0; r < item->n_rects; r++) {
        const tide_rect *rect = &tide__rects_of(p, item)[r];
        if (p->tick_steps != NULL && p->tick_steps[rect->begin] < 0) {
            spans[1].begin = rect->begin;
            spans[1].end = rect->end;
        } else if (rect->end > spans[0].end) {
            spans[0].end = rect->end;
        }
    }
}

static tide_status make_space(coloring *c) {
    const size_t n = c->problem->n;
    c->spans = tide_host_calloc(n, 2 * sizeof *c->spans);
    tide_rect *known = tide_host_calloc(n, 2 * sizeof *known);
    tide_status st = c->spans == NULL || known == NULL ? TIDE_ERR_NOMEM : TIDE_OK;
    size_t n_known = 0;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide_rect *spans = c->spans + 2 * i;
        note_spans(c->problem, &c->problem->items[i], spans);
        known[n_known++] = spans[0];
        if (spans[1].end != 0) known[n_known++] = spans[1];
    }
    if (st == TIDE_OK) st = tide__space_create(known, n_known, c->problem->n_ticks, TIDE_SPACE_BLOCK_EVENTS, &c->space);
    tide_host_free(known);
    return st;
}

// ---- the choice ----

/// Pools stand in the space by id, the oldest first, for first fit. For best fit the newest comes first, for that is
/// the smallest where items come in descending order.
static uint64_t number_of(const coloring *c, uint64_t pool) {
    return c->rule == TIDE_POOL_RULE_FIRST ? pool : c->problem->n - 1 - pool;
}

/// The first free pool's number at or above `from`.
static uint64_t next_free(tide_space_window w[2], uint64_t from) {
    for (;;) {
        const uint64_t at = tide__space_next(&w[0], from, NULL);
        from = tide__space_next(&w[1], at, NULL);
        if (from == at) return at;
    }
}

/// Whether free pool `p` is a better choice than free pool `q` for an item of `bytes`.
static bool is_better(uint64_t p, uint64_t q, uint64_t bytes) {
    const bool p_holds = p >= bytes, q_holds = q >= bytes;
    if (p_holds != q_holds) return p_holds;
    return p_holds ? p < q : p > q;
}

/// TIDE_NO_POOL: none is free.
static int32_t choose_pool(const coloring *c, uint32_t item_i) {
    tide_space_window w[2];
    const tide_rect *spans = c->spans + 2 * (size_t)item_i;
    tide__space_open(c->space, spans[0].begin, spans[0].end, 1, &w[0]);
    w[1].n_lists = w[1].n_notes = 0;
    if (spans[1].end != 0) tide__space_open(c->space, spans[1].begin, spans[1].end, 1, &w[1]);
    const size_t n_pools = c->out->n_pools;
    if (n_pools == 0) return TIDE_NO_POOL;
    if (c->rule == TIDE_POOL_RULE_FIRST) {
        const uint64_t pool = next_free(w, 0);
        return pool < n_pools ? (int32_t)pool : TIDE_NO_POOL;
    }
    const uint64_t bytes = c->problem->items[item_i].size_bytes;
    const tide_plan_pool *pools = c->out->pool_list;
    int32_t best = TIDE_NO_POOL;
    for (uint64_t from = number_of(c, n_pools - 1);; from++) {
        from = next_free(w, from);
        if (from >= c->problem->n) return best;
        TIDE_ASSERT(number_of(c, from) < n_pools);
        const size_t p = (size_t)number_of(c, from);
        if (best == TIDE_NO_POOL || is_better(pools[p].size_bytes, pools[best].size_bytes, bytes)) best = (int32_t)p;
        if (c->descending && pools[best].size_bytes >= bytes) return best; // the others are no smaller
    }
}

static tide_status add_pool(coloring *c, int32_t *out) {
    const size_t n = c->out->n_pools;
    TIDE_TRY(tide_host_grow(&c->out->pool_list, &c->cap_pools, n + 1, sizeof *c->out->pool_list));
    TIDE_TRY(tide_host_grow(&c->aligns, &c->cap_aligns, n + 1, sizeof *c->aligns));
    c->out->pool_list[n] = (tide_plan_pool){0};
    c->aligns[n] = 1;
    c->out->n_pools = n + 1;
    *out = (int32_t)n;
    return TIDE_OK;
}

static bool join(coloring *c, uint32_t item_i, int32_t pool) {
    const tide_item *item = &c->problem->items[item_i];
    tide_plan_pool *p = &c->out->pool_list[pool];
    TIDE_ASSERT(pool >= 0 && (size_t)pool < c->out->n_pools && c->out->pools[item_i] == TIDE_NO_POOL);
    if (item->size_bytes > p->size_bytes) {
        p->size_bytes = item->size_bytes;
        if (pool > 0 && p->size_bytes > p[-1].size_bytes) c->descending = false;
    }
    if (item->align_bytes > c->aligns[pool]) c->aligns[pool] = item->align_bytes;
    p->n_members++;
    c->out->pools[item_i] = pool;
    const tide_rect *spans = c->spans + 2 * (size_t)item_i;
    const uint64_t at = number_of(c, (uint64_t)pool);
    return tide__space_take(c->space, spans[0].begin, spans[0].end, at, at + 1) &&
           (spans[1].end == 0 || tide__space_take(c->space, spans[1].begin, spans[1].end, at, at + 1));
}

static tide_status assign_pools(coloring *c) {
    TIDE_TRY(make_space(c));
    c->descending = true;
    for (size_t k = 0; k < c->problem->n; k++) {
        int32_t pool = choose_pool(c, c->order[k]);
        if (pool == TIDE_NO_POOL) TIDE_TRY(add_pool(c, &pool));
        if (!join(c, c->order[k], pool)) return TIDE_ERR_NOMEM;
    }
    TIDE_ASSERT(c->out->n_pools <= c->problem->n);
    return TIDE_OK;
}

/// Pools end to end, by id; those of stricter alignment before others, so that no padding is needed between them and
/// their sizes add up to the total. With one alignment for all that is plainly the order of ids.
static tide_status lay_out(coloring *c, tide_error *err) {
    uint64_t at = 0;
    size_t n_laid = 0;
    for (uint64_t align = UINT64_C(1) << 63; align != 0 && n_laid < c->out->n_pools; align >>= 1) {
        for (size_t p = 0; p < c->out->n_pools; p++) {
            if (c->aligns[p] != align) continue;
            tide_plan_pool *pool = &c->out->pool_list[p];
            TIDE_ASSERT(at % align == 0);
            pool->offset_bytes = at;
            if (!tide_align_up(pool->size_bytes, align, &pool->size_bytes) || !tide_add_u64(at, pool->size_bytes, &at))
                return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the bytes of %zu pools pass 2^64 - 1", c->out->n_pools);
            n_laid++;
        }
    }
    TIDE_ASSERT(n_laid == c->out->n_pools);
    c->out->bytes = at;
    for (size_t i = 0; i < c->problem->n; i++) c->out->offsets[i] = c->out->pool_list[c->out->pools[i]].offset_bytes;
    return TIDE_OK;
}

tide_status tide__color(const tide_problem *problem, const uint32_t *order, tide_pool_rule rule, tide_placement *out,
                        tide_error *err) {
    TIDE_TRY(tide__refuse_fixed(problem, "a pool plan", err));
    coloring c = {.problem = problem, .out = out, .order = order, .rule = rule};
    tide_status st = assign_pools(&c);
    st = st == TIDE_OK ? lay_out(&c, err) : TIDE_FAIL(err, st, "no memory to colour %zu tensors", problem->n);
    tide__space_destroy(c.space);
    tide_host_free(c.spans);
    tide_host_free(c.aligns);
    return st;
}
