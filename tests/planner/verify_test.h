// SPDX-License-Identifier: MIT
//
// What the verifier's tests share: the definition of a sound plan, byte by byte and step by step, with all that a table
// can hold; tables by chance with all of it; and plans of them that know nothing of any strategy.
//
// The definition says which faults a plan has, as a set of codes; the verifier names the first that it meets. They
// agree when that one is in the set, or the set is empty and the verifier content. Tables are sound here; offsets may
// be anything.
#ifndef TIDE_TESTS_PLANNER_VERIFY_TEST_H
#define TIDE_TESTS_PLANNER_VERIFY_TEST_H

#include "core/base/text.h"
#include "tests/planner/plan_test.h"

// ---- what a tensor needs, by definition ----

static inline uint64_t def_rounded(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

static inline uint64_t def_own_bytes(const tide_lifetime *item) {
    const bool exact = item->unrounded || item->alias != TIDE_ALIAS_NONE;
    return exact ? item->size_bytes : def_rounded(item->size_bytes, item->align_bytes);
}

static inline uint64_t def_naive_bytes(const tide_lifetime *item) {
    return item->unrounded ? item->size_bytes : def_rounded(item->size_bytes, item->align_bytes);
}

/// Its bytes [*lo, *hi) that the tensor needs at `step`; false: none.
static inline bool def_needed(const tide_lifetime *item, int64_t step, uint64_t *lo, uint64_t *hi) {
    if (item->persistent || item->size_bytes == 0 || step < item->begin_step || step >= item->end_step) return false;
    *lo = 0;
    *hi = def_own_bytes(item);
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *g = &item->gaps[k];
        if (step < g->begin_step || g->end_step <= step) continue;
        *lo = g->lo_bytes;
        *hi = g->hi_bytes;
    }
    return *lo < *hi;
}

/// Whether the tensor needs its byte `x` at `step`.
static inline bool def_needs(const tide_lifetime *item, int64_t step, uint64_t x) {
    uint64_t lo, hi;
    return def_needed(item, step, &lo, &hi) && lo <= x && x < hi;
}

/// Whether its gaps leave any step at which it needs anything.
static inline bool def_ever_needs(const tide_lifetime *item) {
    for (int64_t step = item->begin_step; step < item->end_step; step++) {
        for (uint64_t x = 0; x < def_own_bytes(item); x++) {
            if (def_needs(item, step, x)) return true;
        }
    }
    return false;
}

/// The item that has the place, and how far `i` lies inside it.
static inline size_t def_root(const tide_lifetimes *lt, size_t i, uint64_t *inside) {
    *inside = 0;
    while (lt->items[i].alias != TIDE_ALIAS_NONE) {
        *inside += lt->items[i].alias_offset_bytes;
        i = lt->items[i].alias_of;
    }
    return i;
}

/// Bytes [*lo, *hi) of root `r` that item `i`, `inside` bytes into it, needs at `step`; false: none. Where r is rounded
/// up, whole multiples of its alignment are needed, or none of it.
static inline bool def_window(const tide_lifetimes *lt, size_t i, size_t r, uint64_t inside, int64_t step, uint64_t *lo,
                              uint64_t *hi) {
    const tide_lifetime *root = &lt->items[r];
    const uint64_t cell = root->unrounded ? 1 : root->align_bytes;
    if (!def_needed(&lt->items[i], step, lo, hi)) return false;
    *lo = (inside + *lo) / cell * cell;
    *hi = def_rounded(inside + *hi, cell);
    if (*hi > def_own_bytes(root)) *hi = def_own_bytes(root);
    return true;
}

/// Whether root `r` or anything in it needs byte `x` of r at `step`.
static inline bool def_class_needs(const tide_lifetimes *lt, size_t r, int64_t step, uint64_t x) {
    for (size_t i = 0; i < lt->n; i++) {
        uint64_t inside, lo, hi;
        if (step < lt->items[i].begin_step || step >= lt->items[i].end_step) continue; // soon said
        if (i != r && lt->items[i].alias == TIDE_ALIAS_NONE) continue;
        if (def_root(lt, i, &inside) == r && def_window(lt, i, r, inside, step, &lo, &hi) && lo <= x && x < hi)
            return true;
    }
    return false;
}

/// Whether the class of root `r` takes space at all, and (may be NULL) the steps from the first to after the last at
/// which it does.
static inline bool def_takes_space(const tide_lifetimes *lt, size_t r, int64_t *begin, int64_t *end) {
    bool found = false;
    const uint64_t bytes = def_own_bytes(&lt->items[r]);
    for (int64_t step = 0; step < lt->n_steps; step++) {
        for (uint64_t x = 0; x < bytes; x++) {
            if (!def_class_needs(lt, r, step, x)) continue;
            if (!found && begin != NULL) *begin = step;
            if (end != NULL) *end = step + 1;
            found = true;
            break;
        }
    }
    return found;
}

static inline bool def_is_root(const tide_lifetimes *lt, size_t i) {
    return !lt->items[i].persistent && lt->items[i].alias == TIDE_ALIAS_NONE;
}

static inline bool def_in_buffer(const tide_lifetime *item, const tide_plan_buffer *b) {
    return !item->persistent && item->kind == b->kind && item->device.type == b->device.type &&
           item->device.index == b->device.index;
}

// ---- what a buffer's numbers are, by definition ----

static inline uint64_t def_lower_bound(const tide_lifetimes *lt, const tide_plan_buffer *b) {
    uint64_t most = 0;
    for (int64_t step = 0; step < lt->n_steps; step++) {
        uint64_t sum = 0;
        for (size_t r = 0; r < lt->n; r++) {
            if (!def_is_root(lt, r) || !def_in_buffer(&lt->items[r], b)) continue;
            const uint64_t bytes = def_own_bytes(&lt->items[r]);
            for (uint64_t x = 0; x < bytes; x++) sum += def_class_needs(lt, r, step, x);
        }
        if (sum > most) most = sum;
    }
    return most;
}

static inline uint64_t def_naive(const tide_lifetimes *lt, const tide_plan_buffer *b) {
    uint64_t sum = 0;
    for (size_t i = 0; i < lt->n; i++) {
        if (def_in_buffer(&lt->items[i], b)) sum += def_naive_bytes(&lt->items[i]);
    }
    return sum;
}

static inline uint64_t def_naive_peak(const tide_lifetimes *lt, const tide_plan_buffer *b) {
    uint64_t most = 0;
    for (int64_t step = 0; step < lt->n_steps; step++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < lt->n; i++) {
            const tide_lifetime *item = &lt->items[i];
            if (def_in_buffer(item, b) && item->begin_step <= step && step < item->end_step)
                sum += def_naive_bytes(item);
        }
        if (sum > most) most = sum;
    }
    return most;
}

static inline uint64_t def_align(const tide_lifetimes *lt, const tide_plan_buffer *b) {
    uint64_t strictest = 1;
    for (size_t r = 0; r < lt->n; r++) {
        if (!def_is_root(lt, r) || !def_in_buffer(&lt->items[r], b) || !def_takes_space(lt, r, NULL, NULL)) continue;
        if (lt->items[r].align_bytes > strictest) strictest = lt->items[r].align_bytes;
    }
    return strictest;
}

/// Where the last root with bytes ends; `fixed`: of those with a given offset.
static inline uint64_t def_end(const tide_memory_plan *p, const tide_plan_buffer *b, bool fixed) {
    uint64_t end = 0;
    for (size_t r = 0; r < p->lifetimes.n; r++) {
        const tide_lifetime *item = &p->lifetimes.items[r];
        if (!def_is_root(&p->lifetimes, r) || !def_in_buffer(item, b) || p->offsets[r] == TIDE_NO_OFFSET) continue;
        if ((fixed && !item->fixed) || !def_takes_space(&p->lifetimes, r, NULL, NULL)) continue;
        const uint64_t e = p->offsets[r] + def_own_bytes(item);
        if (e > end) end = e;
    }
    return end;
}

// ---- which faults a plan has, by definition ----

#define FAULT_BIT(code) (UINT32_C(1) << TIDE_VERIFY_##code)

/// Which class's byte it is, per step and byte of one buffer.
static inline uint32_t def_overlap(const tide_memory_plan *p, const tide_plan_buffer *b) {
    enum { BYTES = 2048 };
    static size_t owner[BYTES];
    const tide_lifetimes *lt = &p->lifetimes;
    uint32_t faults = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < lt->n; i++) {
        const uint64_t e = p->offsets[i] + def_own_bytes(&lt->items[i]);
        if (p->offsets[i] < BYTES && e > end) end = e < BYTES ? e : BYTES;
    }
    for (int64_t step = 0; step < lt->n_steps; step++) {
        for (size_t x = 0; x < end; x++) owner[x] = SIZE_MAX;
        for (size_t i = 0; i < lt->n; i++) {
            uint64_t inside;
            const size_t r = def_root(lt, i, &inside);
            if (!def_in_buffer(&lt->items[i], b) || p->offsets[i] == TIDE_NO_OFFSET) continue;
            uint64_t lo, hi;
            if (!def_window(lt, i, r, p->offsets[i] - p->offsets[r], step, &lo, &hi)) continue;
            for (uint64_t at = p->offsets[r] + lo; at < p->offsets[r] + hi && at < end; at++) {
                if (owner[at] != SIZE_MAX && owner[at] != r) faults |= FAULT_BIT(OVERLAP);
                owner[at] = r;
            }
        }
    }
    return faults;
}

static inline uint32_t def_apart(const tide_memory_plan *p) {
    const tide_lifetimes *lt = &p->lifetimes;
    for (size_t i = 0; i < lt->n; i++) {
        for (size_t j = 0; j < i; j++) {
            const tide_lifetime *a = &lt->items[i], *b = &lt->items[j];
            if (a->apart_set == 0 || a->apart_set != b->apart_set || a->persistent || b->persistent) continue;
            if (a->kind != b->kind || a->device.type != b->device.type || a->device.index != b->device.index) continue;
            if (!def_takes_space(lt, i, NULL, NULL) || !def_takes_space(lt, j, NULL, NULL)) continue;
            for (uint64_t x = 0; x < def_own_bytes(a); x++) {
                for (uint64_t y = 0; y < def_own_bytes(b); y++) {
                    if (p->offsets[i] + x == p->offsets[j] + y) return FAULT_BIT(APART);
                }
            }
        }
    }
    return 0;
}

static inline uint32_t def_place(const tide_memory_plan *p, size_t i) {
    const tide_lifetimes *lt = &p->lifetimes;
    const tide_lifetime *item = &lt->items[i];
    const uint64_t offset = p->offsets[i];
    if (item->persistent) return offset != TIDE_NO_OFFSET || p->pools[i] != TIDE_NO_POOL ? FAULT_BIT(PERSISTENT) : 0;
    if (offset == TIDE_NO_OFFSET) return FAULT_BIT(MISSING);
    if (item->alias != TIDE_ALIAS_NONE) {
        const bool there = offset == p->offsets[item->alias_of] + item->alias_offset_bytes;
        return there && p->pools[i] == TIDE_NO_POOL ? 0 : FAULT_BIT(ALIAS);
    }
    uint32_t faults = 0;
    const bool takes_space = def_takes_space(lt, i, NULL, NULL);
    uint64_t room = 0;
    bool found = false;
    for (size_t b = 0; b < p->n_buffers; b++) {
        if (!def_in_buffer(item, &p->buffers[b])) continue;
        room = p->buffers[b].bytes;
        found = true;
    }
    if (takes_space && !found) faults |= FAULT_BIT(BUFFER);
    if (item->fixed && offset != item->fixed_offset_bytes) faults |= FAULT_BIT(FIXED);
    if (offset % item->align_bytes != 0) faults |= FAULT_BIT(MISALIGNED);
    if ((takes_space || !item->fixed) && offset + (takes_space ? def_own_bytes(item) : 0) > room)
        faults |= FAULT_BIT(OUT_OF_BUFFER);
    return faults;
}

static inline uint32_t def_pool_entry(const tide_memory_plan *p, size_t i) {
    const tide_lifetimes *lt = &p->lifetimes;
    const int32_t pool = p->pools[i];
    int64_t begin = 0, end = 0;
    const bool takes_space = def_takes_space(lt, i, &begin, &end);
    if (!takes_space && pool == TIDE_NO_POOL) return 0;
    if (pool < 0 || (size_t)pool >= p->n_pools) return FAULT_BIT(MISSING);
    uint32_t faults = 0;
    const tide_plan_pool *of = &p->pool_list[pool];
    if (of->offset_bytes != p->offsets[i]) faults |= FAULT_BIT(POOL_SIZE);
    if (of->buffer >= p->n_buffers || !def_in_buffer(&lt->items[i], &p->buffers[of->buffer]))
        faults |= FAULT_BIT(BUFFER);
    if (!takes_space) return faults;
    if (of->size_bytes < def_own_bytes(&lt->items[i])) faults |= FAULT_BIT(POOL_SIZE);
    for (size_t j = 0; j < i; j++) {
        int64_t b = 0, e = 0;
        if (!def_is_root(lt, j) || p->pools[j] != pool || !def_takes_space(lt, j, &b, &e)) continue;
        for (int64_t step = begin; step < end; step++) {
            if (b <= step && step < e) faults |= FAULT_BIT(POOL_CONFLICT);
        }
    }
    return faults;
}

static inline uint32_t def_pools(const tide_memory_plan *p) {
    if (p->form == TIDE_PLAN_OFFSETS) return p->n_pools > 0 ? FAULT_BIT(POOL_SIZE) : 0;
    uint32_t faults = 0;
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        if (def_is_root(&p->lifetimes, i)) faults |= def_pool_entry(p, i);
    }
    for (size_t k = 0; k < p->n_pools; k++) {
        const tide_plan_pool *pool = &p->pool_list[k];
        if (pool->buffer >= p->n_buffers) return faults | FAULT_BIT(BUFFER);
        size_t n = 0;
        uint64_t largest = 0;
        for (size_t i = 0; i < p->lifetimes.n; i++) {
            if (p->pools[i] != (int32_t)k) continue;
            n++;
            const uint64_t bytes = def_own_bytes(&p->lifetimes.items[i]);
            if (def_takes_space(&p->lifetimes, i, NULL, NULL) && bytes > largest) largest = bytes;
        }
        if (n != pool->n_members || pool->size_bytes >= largest + p->buffers[pool->buffer].align_bytes)
            faults |= FAULT_BIT(POOL_SIZE);
    }
    for (size_t b = 0; b < p->n_buffers; b++) { // every byte of the buffer is in one pool
        uint64_t sum = 0;
        for (size_t k = 0; k < p->n_pools; k++) {
            if (p->pool_list[k].buffer == b) sum += p->pool_list[k].size_bytes;
        }
        if (sum != p->buffers[b].bytes) faults |= FAULT_BIT(POOL_SIZE);
        for (uint64_t x = 0; x < p->buffers[b].bytes; x++) {
            size_t n = 0;
            for (size_t k = 0; k < p->n_pools; k++) {
                const tide_plan_pool *pool = &p->pool_list[k];
                n += pool->buffer == b && pool->offset_bytes <= x && x < pool->offset_bytes + pool->size_bytes;
            }
            if (n != 1) faults |= FAULT_BIT(POOL_SIZE);
        }
    }
    return faults;
}

static inline uint32_t def_buffer(const tide_memory_plan *p, size_t b) {
    const tide_plan_buffer *x = &p->buffers[b];
    const tide_lifetimes *lt = &p->lifetimes;
    uint32_t faults = def_overlap(p, x);
    bool used = false;
    for (size_t r = 0; r < lt->n; r++)
        used = used || (def_is_root(lt, r) && def_in_buffer(&lt->items[r], x) && def_takes_space(lt, r, NULL, NULL));
    if (!used) faults |= FAULT_BIT(BUFFER);
    for (size_t o = 0; o < b; o++) {
        const tide_plan_buffer *y = &p->buffers[o];
        const bool before = y->device.type != x->device.type     ? y->device.type < x->device.type
                            : y->device.index != x->device.index ? y->device.index < x->device.index
                                                                 : y->kind < x->kind;
        if (!before) faults |= FAULT_BIT(BUFFER);
    }
    const uint64_t align = def_align(lt, x), end = def_end(p, x, false);
    if (x->naive_bytes != def_naive(lt, x) || x->naive_peak_bytes != def_naive_peak(lt, x) ||
        x->lower_bound_bytes != def_lower_bound(lt, x) || x->align_bytes != align)
        faults |= FAULT_BIT(TOTAL);
    if (strncmp(p->strategy, "sim:", 4) != 0 && x->bytes >= end + align) faults |= FAULT_BIT(TOTAL);
    if (x->proved_bytes < x->lower_bound_bytes || x->proved_bytes > x->bytes ||
        (x->proof == TIDE_PROOF_LIVE_SUM && x->proved_bytes != x->lower_bound_bytes) ||
        (x->proof == TIDE_PROOF_FIXED && x->proved_bytes > def_end(p, x, true)))
        faults |= FAULT_BIT(PROOF);
    return faults;
}

static inline uint32_t def_sums(const tide_memory_plan *p) {
    uint64_t bytes = 0, naive = 0, naive_peak = 0, bound = 0, proved = 0, align = 1;
    for (size_t b = 0; b < p->n_buffers; b++) {
        const tide_plan_buffer *x = &p->buffers[b];
        bytes += x->bytes;
        naive += x->naive_bytes;
        naive_peak += x->naive_peak_bytes;
        bound += x->lower_bound_bytes;
        proved += x->proved_bytes;
        if (x->align_bytes > align) align = x->align_bytes;
    }
    const bool equal = p->bytes == bytes && p->naive_bytes == naive && p->naive_peak_bytes == naive_peak &&
                       p->lower_bound_bytes == bound && p->proved_bytes == proved && p->align_bytes == align;
    return (equal ? 0 : FAULT_BIT(BUFFER)) | (p->proven == (p->bytes == p->proved_bytes) ? 0 : FAULT_BIT(PROOF));
}

static inline uint32_t def_faults(const tide_memory_plan *p) {
    uint32_t faults = 0;
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        faults |= def_place(p, i);
        if (p->form == TIDE_PLAN_OFFSETS && def_is_root(&p->lifetimes, i) && p->pools[i] != TIDE_NO_POOL)
            faults |= FAULT_BIT(POOL_SIZE);
    }
    for (size_t b = 0; b < p->n_buffers; b++) faults |= def_buffer(p, b);
    return faults | def_pools(p) | def_apart(p) | def_sums(p);
}

// ---- plans without a strategy ----

/// A plan of `lt` without places; its buffers are those of the table, without bytes.
static inline tide_memory_plan *bare_plan(const tide_lifetimes *lt, const char *name, tide_plan_form form) {
    tide_memory_plan *p = tide_host_calloc(1, sizeof *p);
    assert_non_null(p);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_lifetimes_copy(lt, &p->lifetimes, &err), &err);
    p->strategy = tide_host_strdup(name);
    p->form = form;
    p->offsets = tide_host_calloc(lt->n, sizeof *p->offsets);
    p->pools = tide_host_calloc(lt->n, sizeof *p->pools);
    p->pool_list = tide_host_calloc(lt->n, sizeof *p->pool_list);
    p->buffers = tide_host_calloc(lt->n, sizeof *p->buffers);
    assert_true(p->strategy != NULL && p->offsets != NULL && p->pools != NULL && p->buffers != NULL);
    for (size_t i = 0; i < lt->n; i++) {
        p->offsets[i] = TIDE_NO_OFFSET;
        p->pools[i] = TIDE_NO_POOL;
    }
    // Every key there can be, in order, so that nothing needs sorting.
    for (int32_t type = 0; type < 3; type++) {
        for (int32_t index = 0; index < 3; index++) {
            for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
                const tide_plan_buffer b = {.device = {(tide_device_type)type, index}, .kind = (tide_memory_kind)kind};
                bool used = false;
                for (size_t r = 0; r < lt->n; r++)
                    used = used || (def_is_root(lt, r) && def_in_buffer(&lt->items[r], &b) &&
                                    def_takes_space(lt, r, NULL, NULL));
                if (used) p->buffers[p->n_buffers++] = b;
            }
        }
    }
    return p;
}

static inline size_t def_buffer_of(const tide_memory_plan *p, size_t i) {
    for (size_t b = 0; b < p->n_buffers; b++) {
        if (def_in_buffer(&p->lifetimes.items[i], &p->buffers[b])) return b;
    }
    return SIZE_MAX;
}

/// Aliases where their targets have them.
static inline void follow_targets(tide_memory_plan *p) {
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        uint64_t inside;
        const size_t r = def_root(&p->lifetimes, i, &inside);
        if (r != i) p->offsets[i] = p->offsets[r] + inside;
    }
}

static inline void settle_sums(tide_memory_plan *p) {
    p->bytes = p->naive_bytes = p->naive_peak_bytes = p->lower_bound_bytes = p->proved_bytes = 0;
    p->align_bytes = 1;
    for (size_t b = 0; b < p->n_buffers; b++) {
        const tide_plan_buffer *x = &p->buffers[b];
        p->bytes += x->bytes;
        p->naive_bytes += x->naive_bytes;
        p->naive_peak_bytes += x->naive_peak_bytes;
        p->lower_bound_bytes += x->lower_bound_bytes;
        p->proved_bytes += x->proved_bytes;
        if (x->align_bytes > p->align_bytes) p->align_bytes = x->align_bytes;
    }
    p->proven = p->bytes == p->proved_bytes;
}

/// All numbers, from table and offsets.
static inline void settle(tide_memory_plan *p) {
    for (size_t b = 0; b < p->n_buffers; b++) {
        tide_plan_buffer *x = &p->buffers[b];
        x->bytes = def_end(p, x, false);
        for (size_t k = 0; k < p->n_pools; k++) {
            const tide_plan_pool *pool = &p->pool_list[k];
            if (pool->buffer == b && pool->offset_bytes + pool->size_bytes > x->bytes)
                x->bytes = pool->offset_bytes + pool->size_bytes;
        }
        x->naive_bytes = def_naive(&p->lifetimes, x);
        x->naive_peak_bytes = def_naive_peak(&p->lifetimes, x);
        x->lower_bound_bytes = x->proved_bytes = def_lower_bound(&p->lifetimes, x);
        x->align_bytes = def_align(&p->lifetimes, x);
        x->proof = TIDE_PROOF_LIVE_SUM;
    }
    settle_sums(p);
}

// ---- tables with all that there is ----

static inline bool one_in(tide_rng *rng, uint64_t n) { return tide_rng_below(rng, n) == 0; }

static inline void put_featured(tide_lifetimes *lt, tide_rng *rng, size_t i, int64_t n_steps, uint64_t max_bytes) {
    char name[24];
    snprintf(name, sizeof name, "t%zu", i);
    const uint64_t align = UINT64_C(1) << tide_rng_below(rng, 4);
    const int64_t begin = (int64_t)tide_rng_below(rng, (uint64_t)n_steps);
    const int64_t end = begin + 1 + (int64_t)tide_rng_below(rng, (uint64_t)(n_steps - begin));
    tide_lifetime item = an_item(name, one_in(rng, 16) ? 0 : 1 + tide_rng_below(rng, max_bytes), align, begin, end);
    item.unrounded = one_in(rng, 3);
    if (one_in(rng, 6)) item.device = (tide_device){(tide_device_type)1, 0};
    if (one_in(rng, 6)) item.kind = TIDE_KIND_DEFAULT;
    item.persistent = one_in(rng, 12);
    tide_gap gaps[3];
    item.gaps = gaps;
    for (int64_t at = begin; at < end && item.n_gaps < 3 && one_in(rng, 5);) {
        tide_gap *g = &gaps[item.n_gaps];
        g->begin_step = at + (int64_t)tide_rng_below(rng, (uint64_t)(end - at));
        g->end_step = g->begin_step + 1 + (int64_t)tide_rng_below(rng, (uint64_t)(end - g->begin_step));
        g->lo_bytes = tide_rng_below(rng, item.size_bytes + 1);
        g->hi_bytes = g->lo_bytes + tide_rng_below(rng, item.size_bytes - g->lo_bytes + 1);
        at = g->end_step;
        item.n_gaps++;
    }
    while (item.n_gaps > 0 && !def_ever_needs(&item)) item.n_gaps--; // the table refuses what is never needed
    if (!item.persistent && one_in(rng, 12)) {
        item.fixed = true;
        item.fixed_offset_bytes = tide_rng_below(rng, 4) * align;
    }
    if (one_in(rng, 6)) item.apart_set = 1 + (uint32_t)tide_rng_below(rng, 2);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
}

/// Chains, trees, parts that live before their target and views that outlive it: whatever the table takes.
static inline void alias_some(tide_lifetimes *lt, tide_rng *rng) {
    for (size_t i = 0; i < lt->n; i++) {
        if (one_in(rng, 2)) continue;
        for (int attempt = 0; attempt < 4 && lt->items[i].alias == TIDE_ALIAS_NONE; attempt++) {
            const uint32_t of = (uint32_t)tide_rng_below(rng, lt->n);
            if (of == i || lt->items[of].size_bytes < lt->items[i].size_bytes) continue;
            const uint64_t room = lt->items[of].size_bytes - lt->items[i].size_bytes;
            const tide_alias_kind kind = (tide_alias_kind)(1 + tide_rng_below(rng, TIDE_ALIAS_GIVEN));
            // What the table refuses stays as it is.
            const tide_status st = tide_lifetimes_alias(lt, (uint32_t)i, kind, of, tide_rng_below(rng, room + 1), NULL);
            if (st != TIDE_OK) assert_tide_status(st, TIDE_ERR_INVALID);
        }
    }
}

static inline void put_all_features(tide_lifetimes *lt, tide_rng *rng, size_t n, int64_t n_steps, uint64_t max_bytes) {
    for (size_t i = 0; i < n; i++) put_featured(lt, rng, i, n_steps, max_bytes);
    alias_some(lt, rng);
}

// ---- placements by chance and by looking ----

/// Roots anywhere below `reach` bytes, aligned; those with a given offset mostly there.
static inline void place_anywhere(tide_memory_plan *p, tide_rng *rng, uint64_t reach) {
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        const tide_lifetime *item = &p->lifetimes.items[i];
        if (!def_is_root(&p->lifetimes, i)) continue;
        p->offsets[i] = tide_rng_below(rng, reach / item->align_bytes + 1) * item->align_bytes;
        if (item->fixed && !one_in(rng, 8)) p->offsets[i] = item->fixed_offset_bytes;
        if (!def_takes_space(&p->lifetimes, i, NULL, NULL) && !item->fixed) p->offsets[i] = 0;
    }
    follow_targets(p);
}

static inline bool def_meets(const tide_memory_plan *p, size_t i, size_t j) {
    const tide_lifetimes *lt = &p->lifetimes;
    const tide_lifetime *a = &lt->items[i], *b = &lt->items[j];
    for (uint64_t x = 0; x < def_own_bytes(a); x++) {
        const uint64_t at = p->offsets[i] + x;
        if (at < p->offsets[j] || at >= p->offsets[j] + def_own_bytes(b)) continue;
        if (a->apart_set != 0 && a->apart_set == b->apart_set) return true;
        for (int64_t step = 0; step < lt->n_steps; step++) {
            if (def_class_needs(lt, i, step, x) && def_class_needs(lt, j, step, at - p->offsets[j])) return true;
        }
    }
    return false;
}

/// Fixed offsets first, then each root in turn at the lowest place without a conflict. @return false when fixed
/// offsets conflict with each other
static inline bool place_lowest(tide_memory_plan *p) {
    const tide_lifetimes *lt = &p->lifetimes;
    for (int given = 1; given >= 0; given--) {
        for (size_t i = 0; i < lt->n; i++) {
            const tide_lifetime *item = &lt->items[i];
            if (!def_is_root(lt, i) || item->fixed != (given == 1)) continue;
            p->offsets[i] = given ? item->fixed_offset_bytes : 0;
            if (!def_takes_space(lt, i, NULL, NULL)) continue;
            for (size_t j = 0; j < lt->n;) {
                const bool there = j != i && def_is_root(lt, j) && p->offsets[j] != TIDE_NO_OFFSET &&
                                   def_buffer_of(p, i) == def_buffer_of(p, j) && def_takes_space(lt, j, NULL, NULL);
                if (!there || !def_meets(p, i, j)) {
                    j++;
                    continue;
                }
                if (given) return false;
                p->offsets[i] += item->align_bytes;
                j = 0;
            }
        }
    }
    follow_targets(p);
    return true;
}

#endif
