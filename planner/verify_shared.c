// SPDX-License-Identifier: MIT
//
// verifier, overlap: no two tensors that need bytes at the same step share one, unless they are aliases of each other.
//
// Every tensor is one rectangle of steps x bytes, with gaps several; a sweep over the steps keeps the live ones. Most
// tensors are no alias. Their rectangles are numbered by offset and kept as a set of numbers: a rectangle that begins
// must end before its live neighbour above begins, and begin after its live neighbour below ends. The live ones were
// disjoint before, so no other one can overlap it. Rectangles of classes with several members may overlap others of
// their class; those are kept in a cover tree. Each new rectangle is compared with both. O(n log n) for any plan.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/cover_tree.h"
#include "planner/rank_set.h"
#include "planner/verify_check.h"

// ---- rectangles ----

static size_t count_rects(const tide_verify_check *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->items[i].persistent && c->items[i].size_bytes > 0) n += 1 + 2 * (size_t)c->items[i].n_gaps;
    }
    return n;
}

/// Where the root is rounded up, all in it counts in whole multiples of its alignment.
static void add_rect(tide_verify_check *c, size_t i, int64_t begin, int64_t end, uint64_t lo, uint64_t hi) {
    if (begin >= end || lo >= hi) return;
    const size_t r = c->roots[i];
    const uint64_t inside = c->plan->offsets[i] - c->plan->offsets[r], root_bytes = tide__verify_bytes_of(c, r);
    lo += inside;
    hi += inside;
    if (!c->items[r].unrounded) {
        lo -= lo % c->items[r].align_bytes;
        const uint64_t over = hi % c->items[r].align_bytes;
        if (over != 0) hi += c->items[r].align_bytes - over;
        if (hi > root_bytes) hi = root_bytes;
    }
    const uint64_t at = tide__verify_base_of(c, i) + c->plan->offsets[r];
    TIDE_ASSERT(lo < hi && hi <= root_bytes);
    c->rects[c->n_rects++] = (tide_verify_rect){begin, end, at + lo, at + hi, (uint32_t)i};
}

tide_status tide__verify_rects(tide_verify_check *c) {
    const size_t room = count_rects(c);
    c->rects = tide_host_calloc(room, sizeof *c->rects);
    if (c->rects == NULL || room > UINT32_MAX / 2) return TIDE_NO_MEMORY(c->err, "to verify %zu rectangles", room);
    for (size_t i = 0; i < c->n; i++) {
        const tide_lifetime *item = &c->items[i];
        if (item->persistent || item->size_bytes == 0 || c->n_alive[c->roots[i]] == 0) continue;
        const uint64_t bytes = tide__verify_bytes_of(c, i);
        int64_t from = item->begin_step;
        for (uint32_t k = 0; k < item->n_gaps; k++) {
            const tide_gap *g = &item->gaps[k];
            add_rect(c, i, from, g->begin_step, 0, bytes);
            add_rect(c, i, g->begin_step, g->end_step, g->lo_bytes, g->hi_bytes);
            from = g->end_step;
        }
        add_rect(c, i, from, item->end_step, 0, bytes);
    }
    TIDE_ASSERT(c->n_rects <= room);
    return TIDE_OK;
}

// ---- orders ----

typedef struct sweep {
    tide_verify_check *c;
    tide_radix_key *keys, *room; // [2 * n_rects] scratch
    uint32_t *births, *deaths;   // [n_rects] rectangles by begin, by end
    uint32_t *by_lo, *ranks;     // [n_rects] rectangles by lo; of each rectangle its number there
    tide_rank_set alone;         // live rectangles of classes of one
    uint64_t *positions;         // [n_positions] where rectangles of larger classes begin or end
    uint32_t *from, *to;         // [n_rects] those, as indices of positions
    size_t n_positions;
    tide_cover_tree shared; // live rectangles of larger classes
    uint64_t *live;         // [n_buffers] bytes alive now
} sweep;

static uint32_t class_of(const sweep *s, const tide_verify_rect *r) { return s->c->roots[r->item]; }
static bool is_shared(const sweep *s, const tide_verify_rect *r) { return s->c->n_alive[class_of(s, r)] > 1; }

static void sort_into(sweep *s, uint32_t *order) {
    tide__radix_sort(s->keys, s->room, s->c->n_rects);
    for (size_t k = 0; k < s->c->n_rects; k++) order[k] = s->keys[k].id;
}

static void sort_rects(sweep *s) {
    const size_t n = s->c->n_rects;
    const tide_verify_rect *rects = s->c->rects;
    for (size_t r = 0; r < n; r++) s->keys[r] = (tide_radix_key){(uint64_t)rects[r].begin, (uint32_t)r};
    sort_into(s, s->births);
    for (size_t r = 0; r < n; r++) s->keys[r] = (tide_radix_key){(uint64_t)rects[r].end, (uint32_t)r};
    sort_into(s, s->deaths);
    for (size_t r = 0; r < n; r++) s->keys[r] = (tide_radix_key){rects[r].lo, (uint32_t)r};
    sort_into(s, s->by_lo);
    for (size_t k = 0; k < n; k++) s->ranks[s->by_lo[k]] = (uint32_t)k;
}

/// Number the bytes at which rectangles of larger classes begin (key 2r) or end (2r + 1).
static void list_positions(sweep *s) {
    size_t n = 0;
    for (size_t r = 0; r < s->c->n_rects; r++) {
        const tide_verify_rect *rect = &s->c->rects[r];
        if (!is_shared(s, rect)) continue;
        s->keys[n++] = (tide_radix_key){rect->lo, (uint32_t)(2 * r)};
        s->keys[n++] = (tide_radix_key){rect->hi, (uint32_t)(2 * r + 1)};
    }
    tide__radix_sort(s->keys, s->room, n);
    for (size_t k = 0; k < n; k++) {
        if (s->n_positions == 0 || s->positions[s->n_positions - 1] != s->keys[k].key)
            s->positions[s->n_positions++] = s->keys[k].key;
        uint32_t *end = s->keys[k].id % 2 == 0 ? s->from : s->to;
        end[s->keys[k].id / 2] = (uint32_t)s->n_positions - 1;
    }
}

static tide_status init(sweep *s) {
    const size_t n = s->c->n_rects;
    s->births = tide_host_calloc(n, sizeof *s->births);
    s->deaths = tide_host_calloc(n, sizeof *s->deaths);
    s->by_lo = tide_host_calloc(n, sizeof *s->by_lo);
    s->ranks = tide_host_calloc(n, sizeof *s->ranks);
    s->live = tide_host_calloc(s->c->plan->n_buffers, sizeof *s->live);
    size_t n_shared = 0;
    for (size_t r = 0; r < n; r++) n_shared += is_shared(s, &s->c->rects[r]);
    const size_t n_keys = 2 * n_shared > n ? 2 * n_shared : n;
    s->keys = tide_host_calloc(n_keys, sizeof *s->keys);
    s->room = tide_host_calloc(n_keys, sizeof *s->room);
    if (s->births == NULL || s->deaths == NULL || s->by_lo == NULL || s->ranks == NULL || s->live == NULL ||
        s->keys == NULL || s->room == NULL)
        return TIDE_ERR_NOMEM;
    sort_rects(s);
    TIDE_TRY(tide__rank_set_init(&s->alone, n));
    if (n_shared == 0) return TIDE_OK;
    s->positions = tide_host_calloc(2 * n_shared, sizeof *s->positions);
    s->from = tide_host_calloc(n, sizeof *s->from);
    s->to = tide_host_calloc(n, sizeof *s->to);
    if (s->positions == NULL || s->from == NULL || s->to == NULL) return TIDE_ERR_NOMEM;
    list_positions(s);
    return tide__cover_tree_init(&s->shared, s->positions, s->n_positions);
}

static void deinit(sweep *s) {
    tide_host_free(s->keys);
    tide_host_free(s->room);
    tide_host_free(s->births);
    tide_host_free(s->deaths);
    tide_host_free(s->by_lo);
    tide_host_free(s->ranks);
    tide_host_free(s->positions);
    tide_host_free(s->from);
    tide_host_free(s->to);
    tide_host_free(s->live);
    tide__rank_set_deinit(&s->alone);
    tide__cover_tree_deinit(&s->shared);
}

// ---- the sweep ----

/// Name both: the new rectangle, and the first live one of another class that shares bytes with it. Only for faults.
static tide_status overlap(sweep *s, const tide_verify_rect *fresh) {
    const tide_verify_rect *other = fresh;
    for (size_t r = 0; r < s->c->n_rects; r++) {
        const tide_verify_rect *x = &s->c->rects[r];
        if (class_of(s, x) == class_of(s, fresh) || x->begin > fresh->begin || fresh->begin >= x->end) continue;
        if (x->lo < fresh->hi && fresh->lo < x->hi) {
            other = x;
            break;
        }
    }
    const uint64_t base = tide__verify_base_of(s->c, fresh->item);
    return TIDE_FAULT(s->c, OVERLAP, other->item, fresh->item,
                      "tensors '%s' at %" PRIu64 "..%" PRIu64 " and '%s' at %" PRIu64 "..%" PRIu64
                      " share bytes, both alive at step %" PRId64,
                      s->c->items[other->item].name, other->lo - base, other->hi - base, s->c->items[fresh->item].name,
                      fresh->lo - base, fresh->hi - base, fresh->begin);
}

static bool meets_alone(const sweep *s, size_t r) {
    const tide_verify_rect *fresh = &s->c->rects[r], *rects = s->c->rects;
    const size_t below = tide__rank_set_below(&s->alone, s->ranks[r]);
    if (below != SIZE_MAX && rects[s->by_lo[below]].hi > fresh->lo) return true;
    const size_t above = tide__rank_set_above(&s->alone, s->ranks[r]);
    return above != SIZE_MAX && rects[s->by_lo[above]].lo < fresh->hi;
}

static tide_status add_shared(sweep *s, size_t r, uint64_t *grown) {
    const tide_verify_rect *fresh = &s->c->rects[r];
    const uint32_t owner = tide__cover_tree_owner(&s->shared, s->from[r], s->to[r]);
    if (owner != TIDE_COVER_NONE && owner != class_of(s, fresh)) return overlap(s, fresh);
    const uint64_t before = tide__cover_tree_bytes(&s->shared);
    tide__cover_tree_add(&s->shared, s->from[r], s->to[r], class_of(s, fresh));
    TIDE_ASSERT(tide__cover_tree_bytes(&s->shared) >= before);
    *grown = tide__cover_tree_bytes(&s->shared) - before;
    return TIDE_OK;
}

static tide_status add_alone(sweep *s, size_t r, uint64_t *grown) {
    const tide_verify_rect *fresh = &s->c->rects[r];
    if (s->n_positions > 0 && tide__cover_tree_bytes(&s->shared) > 0 &&
        tide__cover_tree_owner_of_bytes(&s->shared, fresh->lo, fresh->hi) != TIDE_COVER_NONE)
        return overlap(s, fresh);
    tide__rank_set_add(&s->alone, s->ranks[r]);
    *grown = fresh->hi - fresh->lo;
    return TIDE_OK;
}

static tide_status begin_rect(sweep *s, size_t r, uint64_t *peaks) {
    const tide_verify_rect *fresh = &s->c->rects[r];
    const uint32_t b = s->c->buffers[class_of(s, fresh)];
    uint64_t grown = 0;
    if (meets_alone(s, r)) return overlap(s, fresh);
    TIDE_TRY(is_shared(s, fresh) ? add_shared(s, r, &grown) : add_alone(s, r, &grown));
    s->live[b] += grown; // what is alive is disjoint and inside the buffer: this cannot overflow
    TIDE_ASSERT(s->live[b] <= s->c->plan->buffers[b].bytes);
    if (s->live[b] > peaks[b]) peaks[b] = s->live[b];
    return TIDE_OK;
}

static void remove_rect(sweep *s, size_t r) {
    const tide_verify_rect *dead = &s->c->rects[r];
    const uint32_t b = s->c->buffers[class_of(s, dead)];
    if (!is_shared(s, dead)) {
        TIDE_ASSERT(s->live[b] >= dead->hi - dead->lo);
        tide__rank_set_remove(&s->alone, s->ranks[r]);
        s->live[b] -= dead->hi - dead->lo;
        return;
    }
    const uint64_t before = tide__cover_tree_bytes(&s->shared);
    tide__cover_tree_remove(&s->shared, s->from[r], s->to[r]);
    TIDE_ASSERT(before >= tide__cover_tree_bytes(&s->shared));
    s->live[b] -= before - tide__cover_tree_bytes(&s->shared);
}

/// At each step rectangles that end are removed before those that begin are added: lifetimes are half-open.
tide_status tide__verify_overlap(tide_verify_check *c, uint64_t *peaks) {
    sweep s = {.c = c};
    tide_status st = init(&s);
    if (st != TIDE_OK) st = TIDE_FAIL(c->err, st, "no memory to verify %zu rectangles", c->n_rects);
    size_t n_dead = 0;
    for (size_t k = 0; k < c->n_rects && st == TIDE_OK; k++) {
        const int64_t step = c->rects[s.births[k]].begin;
        while (c->rects[s.deaths[n_dead]].end <= step) remove_rect(&s, s.deaths[n_dead++]);
        TIDE_ASSERT(n_dead <= k); // what ends has begun before
        st = begin_rect(&s, s.births[k], peaks);
    }
    deinit(&s);
    return st;
}

// ---- apart sets ----

/// Members of one set share no byte at any step: by offset, each begins where all before it have ended.
static tide_status check_sets(tide_verify_check *c, const tide_radix_key *members, size_t n) {
    uint64_t end = 0;
    size_t highest = TIDE_VERIFY_NO_ITEM;
    for (size_t k = 0; k < n; k++) {
        const size_t i = members[k].id;
        if (k > 0 && c->items[members[k - 1].id].apart_set != c->items[i].apart_set) highest = TIDE_VERIFY_NO_ITEM;
        const uint64_t at = tide__verify_base_of(c, i) + c->plan->offsets[i];
        if (highest != TIDE_VERIFY_NO_ITEM && at < end)
            return TIDE_FAULT(c, APART, highest, i,
                              "tensors '%s' and '%s' of apart set %" PRIu32 " share bytes from %" PRIu64 " on",
                              c->items[highest].name, c->items[i].name, c->items[i].apart_set, c->plan->offsets[i]);
        if (highest == TIDE_VERIFY_NO_ITEM || at + tide__verify_bytes_of(c, i) > end) {
            end = at + tide__verify_bytes_of(c, i);
            highest = i;
        }
    }
    return TIDE_OK;
}

tide_status tide__verify_apart(tide_verify_check *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) n += c->items[i].apart_set != 0 && c->n_alive[i] > 0;
    if (n == 0) return TIDE_OK;
    tide_radix_key *keys = tide_host_calloc(n, 2 * sizeof *keys);
    if (keys == NULL) return TIDE_NO_MEMORY(c->err, "to verify %zu tensors", n);
    n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->items[i].apart_set == 0 || c->n_alive[i] == 0) continue;
        keys[n++] = (tide_radix_key){tide__verify_base_of(c, i) + c->plan->offsets[i], (uint32_t)i};
    }
    tide__radix_sort(keys, keys + n, n);
    for (size_t k = 0; k < n; k++) keys[k].key = c->items[keys[k].id].apart_set;
    tide__radix_sort(keys, keys + n, n); // stable: members of a set stay by offset
    const tide_status st = check_sets(c, keys, n);
    tide_host_free(keys);
    return st;
}

// ---- pools ----
//
// Each pool holds one tensor at a time, with all that lies inside it; no member is larger than its pool, and laid end
// to end the pools of a buffer fill it (S23-9, S23-13, S23-17).

typedef struct pools {
    tide_verify_check *c;
    int64_t *begins, *ends;      // [n] of a root: hull of the steps at which its class needs bytes
    tide_radix_key *keys, *room; // [n or n_pools] scratch
    uint64_t *largest;           // [n_pools] bytes of the largest member
    size_t *n_members;           // [n_pools]
} pools;

/// An alias's bytes lie inside its root: what a pool holds is the root from the first step at which any member of its
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
    TIDE_ASSERT(n <= c->n);
    return n;
}

static tide_status check_one_at_a_time(pools *p, size_t n) {
    tide_verify_check *c = p->c;
    size_t last = TIDE_VERIFY_NO_ITEM; // the member of this pool that has lived longest
    for (size_t k = 0; k < n; k++) {
        const size_t i = p->keys[k].id;
        if (k > 0 && p->keys[k].key != p->keys[k - 1].key) last = TIDE_VERIFY_NO_ITEM;
        if (last != TIDE_VERIFY_NO_ITEM && p->begins[i] < p->ends[last])
            return TIDE_FAULT(c, POOL_CONFLICT, last, i,
                              "tensors '%s' and '%s' are both in pool %" PRIu64 " and both needed at step %" PRId64,
                              c->items[last].name, c->items[i].name, p->keys[k].key, p->begins[i]);
        if (last == TIDE_VERIFY_NO_ITEM || p->ends[i] > p->ends[last]) last = i;
    }
    return TIDE_OK;
}

/// A pool may be rounded up to its strictest member, so that the one after it begins aligned; more is waste.
static tide_status check_sizes(pools *p) {
    tide_verify_check *c = p->c;
    for (size_t k = 0; k < c->plan->n_pools; k++) {
        const tide_plan_pool *pool = &c->plan->pool_list[k];
        if (pool->buffer >= c->plan->n_buffers)
            return TIDE_FAULT(c, BUFFER, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                              "pool %zu is of buffer %" PRIu32 ", the plan has %zu", k, pool->buffer,
                              c->plan->n_buffers);
        const uint64_t align = c->plan->buffers[pool->buffer].align_bytes;
        if (pool->size_bytes < p->largest[k] || pool->size_bytes - p->largest[k] >= align)
            return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                              "pool %zu has %" PRIu64 " bytes, its largest member needs %" PRIu64, k, pool->size_bytes,
                              p->largest[k]);
        if (pool->n_members != p->n_members[k])
            return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
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
            return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM,
                              "the pools, end to end, do not fill buffer %zu of %" PRIu64 " bytes", b,
                              c->plan->buffers[b].bytes);
    }
    return TIDE_OK;
}

static tide_status check_all_pools(pools *p) {
    const size_t n = p->c->n, n_pools = p->c->plan->n_pools, n_keys = n > n_pools ? n : n_pools;
    p->begins = tide_host_calloc(n, sizeof *p->begins);
    p->ends = tide_host_calloc(n, sizeof *p->ends);
    p->keys = tide_host_calloc(n_keys, sizeof *p->keys);
    p->room = tide_host_calloc(n_keys, sizeof *p->room);
    p->largest = tide_host_calloc(n_pools, sizeof *p->largest);
    p->n_members = tide_host_calloc(n_pools, sizeof *p->n_members);
    if (p->begins == NULL || p->ends == NULL || p->keys == NULL || p->room == NULL || p->largest == NULL ||
        p->n_members == NULL)
        return TIDE_NO_MEMORY(p->c->err, "to verify %zu pools", n_pools);
    find_hulls(p);
    TIDE_TRY(check_one_at_a_time(p, list_members(p)));
    TIDE_TRY(check_sizes(p));
    return check_layout(p);
}

tide_status tide__verify_pools(tide_verify_check *c) {
    if (c->plan->form == TIDE_PLAN_OFFSETS) {
        if (c->plan->n_pools == 0) return TIDE_OK;
        return TIDE_FAULT(c, POOL_SIZE, TIDE_VERIFY_NO_ITEM, TIDE_VERIFY_NO_ITEM, "an offset plan lists %zu pools",
                          c->plan->n_pools);
    }
    pools p = {.c = c};
    const tide_status st = check_all_pools(&p);
    tide_host_free(p.begins);
    tide_host_free(p.ends);
    tide_host_free(p.keys);
    tide_host_free(p.room);
    tide_host_free(p.largest);
    tide_host_free(p.n_members);
    return st;
}
