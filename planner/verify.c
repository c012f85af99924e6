// SPDX-License-Identifier: MIT
//
// verifier: whether a plan is sound, whoever made it. Shares no code with any strategy and runs on every plan, in
// release builds too; the runtime's safety rests on it.
//
// Overlap is found by a sweep over the steps. Tensors are numbered by offset; the live ones are kept as a set of
// those numbers. A tensor that is born must end before its live neighbour above begins, and begin after its live
// neighbour below ends; as the live ones were disjoint before, no other can be in the way. O(n log n).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "planner/rank_set.h"

const char *tide_verify_text(tide_verify_code code) {
    switch (code) {
#define XX(name, text)                                                                                                 \
    case TIDE_VERIFY_##name:                                                                                           \
        return text;
        TIDE_VERIFY_MAP(XX)
#undef XX
    }
    return "fault ?";
}

typedef struct check {
    const tide_memory_plan *plan;
    const tide_lifetime *items;
    size_t n;
    tide_verify_result result;
    tide_error *err;
} check;

#define NOBODY SIZE_MAX

/// Fill result and error; the words that follow the fault's own are the caller's.
#define FAULT(c, code_, a_, b_, ...)                                                                                   \
    ((c)->result = (tide_verify_result){(code_), (a_), (b_)}, TIDE_FAIL((c)->err, TIDE_ERR_VERIFY, __VA_ARGS__))

static uint64_t bytes_of(const check *c, size_t i) { return tide_lifetime_aligned_bytes(&c->items[i]); }
static bool is_planned(const check *c, size_t i) { return !c->items[i].persistent; }
static bool has_bytes(const check *c, size_t i) { return is_planned(c, i) && c->items[i].size_bytes > 0; }

// ---- each tensor alone ----

static tide_status check_persistent(check *c, size_t i) {
    const uint64_t offset = c->plan->offsets[i];
    if (offset == TIDE_NO_OFFSET && c->plan->pools[i] == TIDE_NO_POOL) return TIDE_OK;
    return FAULT(c, TIDE_VERIFY_PERSISTENT, i, NOBODY, "persistent tensor '%s' was given offset %" PRIu64 ", pool %d",
                 c->items[i].name, offset, c->plan->pools[i]);
}

static tide_status check_pool_entry(check *c, size_t i) {
    const int32_t pool = c->plan->pools[i];
    const char *name = c->items[i].name;
    if (c->plan->form == TIDE_PLAN_OFFSETS) {
        if (pool == TIDE_NO_POOL) return TIDE_OK;
        return FAULT(c, TIDE_VERIFY_POOL_SIZE, i, NOBODY, "tensor '%s' names pool %d of a plan without pools", name,
                     pool);
    }
    if (pool == TIDE_NO_POOL && !has_bytes(c, i)) return TIDE_OK;
    if (pool < 0 || (size_t)pool >= c->plan->n_pools)
        return FAULT(c, TIDE_VERIFY_MISSING, i, NOBODY, "tensor '%s' has pool %d, the plan has %zu", name, pool,
                     c->plan->n_pools);
    if (c->plan->offsets[i] != c->plan->pool_list[pool].offset_bytes)
        return FAULT(c, TIDE_VERIFY_POOL_SIZE, i, NOBODY,
                     "tensor '%s' lies at %" PRIu64 ", its pool %d begins at %" PRIu64, name, c->plan->offsets[i], pool,
                     c->plan->pool_list[pool].offset_bytes);
    return TIDE_OK;
}

static tide_status check_place(check *c, size_t i) {
    const uint64_t offset = c->plan->offsets[i], align = c->items[i].align_bytes;
    const char *name = c->items[i].name;
    if (offset == TIDE_NO_OFFSET) return FAULT(c, TIDE_VERIFY_MISSING, i, NOBODY, "tensor '%s' has no offset", name);
    if (!tide_is_pow2(align) || offset % align != 0)
        return FAULT(c, TIDE_VERIFY_MISALIGNED, i, NOBODY,
                     "tensor '%s' lies at %" PRIu64 ", which is no multiple of %" PRIu64, name, offset, align);
    uint64_t end;
    if (!tide_add_u64(offset, bytes_of(c, i), &end) || end > c->plan->bytes)
        return FAULT(c, TIDE_VERIFY_OUT_OF_BUFFER, i, NOBODY,
                     "tensor '%s' of %" PRIu64 " bytes at %" PRIu64 " ends outside the buffer of %" PRIu64, name,
                     bytes_of(c, i), offset, c->plan->bytes);
    return check_pool_entry(c, i);
}

static tide_status check_span(check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    if (item->begin_step >= 0 && item->begin_step < item->end_step && item->end_step <= c->plan->lifetimes.n_steps)
        return TIDE_OK;
    return FAULT(c, TIDE_VERIFY_TOTAL, i, NOBODY,
                 "tensor '%s' lives from step %" PRId64 " to %" PRId64 " of a plan of %" PRId64 " steps", item->name,
                 item->begin_step, item->end_step, c->plan->lifetimes.n_steps);
}

static tide_status check_places(check *c) {
    for (size_t i = 0; i < c->n; i++) {
        TIDE_TRY(check_span(c, i));
        TIDE_TRY(is_planned(c, i) ? check_place(c, i) : check_persistent(c, i));
    }
    return TIDE_OK;
}

// ---- pools ----

typedef struct member {
    size_t i;
    int32_t pool;
    int64_t begin, end;
} member;

static int compare_members(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static size_t list_members(const check *c, member *members) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->plan->pools[i] == TIDE_NO_POOL) continue;
        members[n++] = (member){i, c->plan->pools[i], c->items[i].begin_step, c->items[i].end_step};
    }
    qsort(members, n, sizeof *members, compare_members);
    return n;
}

/// Members of one pool, by birth: each must be born after all before it have died.
static tide_status check_one_at_a_time(check *c, const member *members, size_t n) {
    size_t last = NOBODY; // the member of this pool that has lived longest
    for (size_t k = 0; k < n; k++) {
        if (k > 0 && members[k].pool != members[k - 1].pool) last = NOBODY;
        if (!has_bytes(c, members[k].i)) continue;
        if (last != NOBODY && members[k].begin < members[last].end)
            return FAULT(c, TIDE_VERIFY_POOL_CONFLICT, members[last].i, members[k].i,
                         "tensors '%s' and '%s' are both in pool %d and both alive at step %" PRId64,
                         c->items[members[last].i].name, c->items[members[k].i].name, members[k].pool,
                         members[k].begin);
        if (last == NOBODY || members[k].end > members[last].end) last = k;
    }
    return TIDE_OK;
}

static tide_status check_pool_members(check *c, const member *members, size_t n) {
    size_t k = 0;
    for (size_t p = 0; p < c->plan->n_pools; p++) {
        const tide_plan_pool *pool = &c->plan->pool_list[p];
        size_t n_members = 0;
        for (; k < n && (size_t)members[k].pool == p; k++, n_members++) {
            const size_t i = members[k].i;
            if (bytes_of(c, i) > pool->size_bytes)
                return FAULT(c, TIDE_VERIFY_POOL_SIZE, i, NOBODY,
                             "pool %zu has %" PRIu64 " bytes, its member '%s' needs %" PRIu64, p, pool->size_bytes,
                             c->items[i].name, bytes_of(c, i));
        }
        if (n_members != pool->n_members)
            return FAULT(c, TIDE_VERIFY_POOL_SIZE, NOBODY, NOBODY, "pool %zu lists %zu members and has %zu", p,
                         pool->n_members, n_members);
    }
    return TIDE_OK;
}

static int compare_pools(const void *a, const void *b) {
    const tide_plan_pool *x = a, *y = b;
    if (x->offset_bytes != y->offset_bytes) return x->offset_bytes < y->offset_bytes ? -1 : 1;
    return (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
}

/// Laid end to end the pools fill the buffer: no gap, no overlap, and their sizes add up to its size (S23-17).
static tide_status check_pool_layout(check *c) {
    const size_t n = c->plan->n_pools;
    tide_plan_pool *pools = tide_host_calloc(n, sizeof *pools);
    if (pools == NULL) return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu pools", n);
    if (n > 0) memcpy(pools, c->plan->pool_list, n * sizeof *pools);
    qsort(pools, n, sizeof *pools, compare_pools);
    uint64_t at = 0;
    bool sound = true;
    for (size_t p = 0; p < n && sound; p++)
        sound = pools[p].offset_bytes == at && tide_add_u64(at, pools[p].size_bytes, &at);
    tide_host_free(pools);
    if (sound && at == c->plan->bytes) return TIDE_OK;
    return FAULT(c, TIDE_VERIFY_POOL_SIZE, NOBODY, NOBODY,
                 "the %zu pools, end to end, do not fill the buffer of %" PRIu64 " bytes", n, c->plan->bytes);
}

static tide_status check_pools(check *c) {
    if (c->plan->form == TIDE_PLAN_OFFSETS) {
        if (c->plan->n_pools == 0) return TIDE_OK;
        return FAULT(c, TIDE_VERIFY_POOL_SIZE, NOBODY, NOBODY, "an offset plan lists %zu pools", c->plan->n_pools);
    }
    member *members = tide_host_calloc(c->n, sizeof *members);
    if (members == NULL) return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu tensors", c->n);
    const size_t n = list_members(c, members);
    tide_status st = check_one_at_a_time(c, members, n);
    if (st == TIDE_OK) st = check_pool_members(c, members, n);
    if (st == TIDE_OK) st = check_pool_layout(c);
    tide_host_free(members);
    return st;
}

// ---- overlap and totals, by a sweep over steps ----

typedef struct ranked {
    uint64_t offset;
    size_t i;
} ranked;

typedef struct event {
    int64_t step;
    bool born; // else: dies
    size_t rank;
} event;

typedef struct sweep_data {
    ranked *ranks; // [n] lifetimes that have bytes, by offset
    event *events; // [2n] by step, deaths first
    size_t n;
    tide_rank_set live;
    uint64_t live_bytes, peak_bytes, end_bytes, sum_bytes;
} sweep_data;

static int compare_ranks(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static int compare_events(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->born != y->born) return (int)x->born - (int)y->born;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static tide_status sweep_init(check *c, sweep_data *s) {
    s->ranks = tide_host_calloc(c->n, sizeof *s->ranks);
    s->events = tide_host_calloc(c->n, 2 * sizeof *s->events);
    if (s->ranks == NULL || s->events == NULL || tide__rank_set_init(&s->live, c->n) != TIDE_OK)
        return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu tensors", c->n);
    for (size_t i = 0; i < c->n; i++) {
        if (!has_bytes(c, i)) continue;
        s->ranks[s->n++] = (ranked){c->plan->offsets[i], i};
        if (!tide_add_u64(s->sum_bytes, bytes_of(c, i), &s->sum_bytes))
            return FAULT(c, TIDE_VERIFY_TOTAL, i, NOBODY, "the sizes up to tensor '%s' pass 2^64 - 1",
                         c->items[i].name);
    }
    qsort(s->ranks, s->n, sizeof *s->ranks, compare_ranks);
    for (size_t r = 0; r < s->n; r++) {
        const tide_lifetime *item = &c->items[s->ranks[r].i];
        s->events[2 * r] = (event){item->begin_step, true, r};
        s->events[2 * r + 1] = (event){item->end_step, false, r};
    }
    qsort(s->events, 2 * s->n, sizeof *s->events, compare_events);
    return TIDE_OK;
}

static tide_status check_apart(check *c, const sweep_data *s, size_t low, size_t high, int64_t step) {
    const ranked *a = &s->ranks[low], *b = &s->ranks[high];
    const uint64_t a_end = a->offset + bytes_of(c, a->i);
    if (a_end <= b->offset) return TIDE_OK;
    return FAULT(c, TIDE_VERIFY_OVERLAP, a->i, b->i,
                 "tensors '%s' at %" PRIu64 "..%" PRIu64 " and '%s' at %" PRIu64 "..%" PRIu64
                 " share bytes, both alive at step %" PRId64,
                 c->items[a->i].name, a->offset, a_end, c->items[b->i].name, b->offset, b->offset + bytes_of(c, b->i),
                 step);
}

static tide_status sweep_birth(check *c, sweep_data *s, const event *e) {
    const size_t below = tide__rank_set_below(&s->live, e->rank), above = tide__rank_set_above(&s->live, e->rank);
    if (below != SIZE_MAX) TIDE_TRY(check_apart(c, s, below, e->rank, e->step));
    if (above != SIZE_MAX) TIDE_TRY(check_apart(c, s, e->rank, above, e->step));
    tide__rank_set_add(&s->live, e->rank);
    const size_t i = s->ranks[e->rank].i;
    s->live_bytes += bytes_of(c, i);
    if (s->live_bytes > s->peak_bytes) s->peak_bytes = s->live_bytes;
    const uint64_t end = c->plan->offsets[i] + bytes_of(c, i);
    if (end > s->end_bytes) s->end_bytes = end;
    return TIDE_OK;
}

static tide_status check_total(check *c, const char *what, uint64_t said, uint64_t is) {
    if (said == is) return TIDE_OK;
    return FAULT(c, TIDE_VERIFY_TOTAL, NOBODY, NOBODY, "the plan says %s %" PRIu64 ", its tensors say %" PRIu64, what,
                 said, is);
}

static tide_status check_totals(check *c, const sweep_data *s) {
    const tide_memory_plan *p = c->plan;
    TIDE_TRY(check_total(c, "naive_bytes", p->naive_bytes, s->sum_bytes));
    TIDE_TRY(check_total(c, "lower_bound_bytes", p->lower_bound_bytes, s->peak_bytes));
    TIDE_TRY(check_total(c, "proven", p->proven, p->bytes == s->peak_bytes));
    uint64_t strictest = 1;
    for (size_t i = 0; i < c->n; i++) {
        if (is_planned(c, i) && c->items[i].align_bytes > strictest) strictest = c->items[i].align_bytes;
    }
    TIDE_TRY(check_total(c, "align_bytes", p->align_bytes, strictest));
    // Rounding up to the alignment is all that a buffer may have beyond its last tensor.
    if (p->bytes - s->end_bytes >= strictest) return check_total(c, "bytes", p->bytes, s->end_bytes);
    return TIDE_OK;
}

static tide_status check_sweep(check *c) {
    sweep_data s = {0};
    tide_status st = sweep_init(c, &s);
    for (size_t k = 0; k < 2 * s.n && st == TIDE_OK; k++) {
        const event *e = &s.events[k];
        if (e->born) {
            st = sweep_birth(c, &s, e);
        } else {
            tide__rank_set_remove(&s.live, e->rank);
            s.live_bytes -= bytes_of(c, s.ranks[e->rank].i);
        }
    }
    if (st == TIDE_OK) st = check_totals(c, &s);
    tide_host_free(s.ranks);
    tide_host_free(s.events);
    tide__rank_set_deinit(&s.live);
    return st;
}

tide_status tide_plan_verify(const tide_memory_plan *plan, tide_verify_result *result, tide_error *err) {
    check c = {.plan = plan,
               .items = plan->lifetimes.items,
               .n = plan->lifetimes.n,
               .result = {TIDE_VERIFY_OK, NOBODY, NOBODY},
               .err = err};
    tide_status st = check_places(&c);
    if (st == TIDE_OK) st = check_pools(&c);
    if (st == TIDE_OK) st = check_sweep(&c);
    if (st == TIDE_ERR_VERIFY) tide_error_note(err, "%s", tide_verify_text(c.result.code));
    if (result != NULL) *result = c.result;
    return st;
}
