// SPDX-License-Identifier: MIT
//
// problem: from a table of lifetimes to what strategies see: one problem per (device, kind), steps renumbered to ticks,
// apart sets as ticks of their own; and its bounds. See problem.h.
#include "planner/problem.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "planner/problem_classes.h"

// ---- bounds, from sums per tick ----

/// Prefix sums of differences, modulo 2^64. No prefix overflows, because the sum of all sizes does not.
static void sum_up(uint64_t *per_tick, uint32_t n_ticks) {
    for (uint32_t t = 1; t < n_ticks; t++) per_tick[t] += per_tick[t - 1];
}

static void raise(tide_problem *p, uint64_t bytes, tide_proof proof) {
    if (bytes <= p->proved_bytes) return;
    p->proved_bytes = bytes;
    p->proof = proof;
}

static void bound_by_live_sums(tide_problem *p, uint32_t n_real_ticks, uint64_t *live) {
    for (size_t r = 0; r < p->n_rects; r++) {
        live[p->rects[r].begin] += p->rects[r].hi_bytes - p->rects[r].lo_bytes;
        live[p->rects[r].end] -= p->rects[r].hi_bytes - p->rects[r].lo_bytes;
    }
    sum_up(live, p->n_ticks);
    TIDE_ASSERT(p->n_ticks == 0 || live[p->n_ticks] + live[p->n_ticks - 1] == 0); // all that began has ended
    for (uint32_t t = 0; t < n_real_ticks; t++) {
        if (live[t] <= p->lower_bound_bytes) continue;
        p->lower_bound_bytes = live[t];
        p->peak_tick = t;
    }
    TIDE_ASSERT(p->lower_bound_bytes <= INT64_MAX && p->peak_tick <= n_real_ticks && n_real_ticks <= p->n_ticks);
    p->proved_bytes = p->lower_bound_bytes;
    p->proof = TIDE_PROOF_LIVE_SUM;
    for (uint32_t t = n_real_ticks; t < p->n_ticks; t++) raise(p, live[t], TIDE_PROOF_APART);
}

static void bound_by_fixed(tide_problem *p) {
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        raise(p, item->fixed_offset + item->size_bytes, TIDE_PROOF_FIXED);
    }
}

// ---- alignment ----

/// Whether the item is one rectangle over all of its bytes. Others are left out, and the bound still holds.
static bool is_whole(const tide_problem *p, const tide_item *item) {
    const tide_rect *rect = tide__rects_of(p, item);
    return item->n_rects == 1 && rect->lo_bytes == 0 && rect->hi_bytes == item->size_bytes;
}

static uint64_t pad_of(const tide_item *item, uint64_t align) {
    const uint64_t over = item->size_bytes % align;
    return over == 0 ? 0 : align - over;
}

/// For one alignment: items that have it or a stricter one, each rounded up to it, less the padding of the topmost.
static void bound_by_alignment(tide_problem *p, uint64_t align, uint64_t *live) {
    uint64_t most_padding = 0;
    for (uint32_t t = 0; t <= p->n_ticks; t++) live[t] = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->align_bytes < align || !is_whole(p, item)) continue;
        const uint64_t pad = pad_of(item, align);
        if (pad > most_padding) most_padding = pad;
        live[item->begin] += item->size_bytes + pad;
        live[item->end] -= item->size_bytes + pad;
    }
    sum_up(live, p->n_ticks);
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        if (live[t] > most_padding) raise(p, live[t] - most_padding, TIDE_PROOF_ALIGNMENT);
    }
}

static void bound_by_alignments(tide_problem *p, uint64_t *live) {
    uint64_t present = 0; // alignments are powers of two: a bit each
    bool padded = false;
    for (size_t i = 0; i < p->n; i++) {
        present |= p->items[i].align_bytes;
        if (pad_of(&p->items[i], p->items[i].align_bytes) != 0) padded = true;
    }
    // Where every size is a multiple of its own alignment, stacking by falling alignment needs no padding.
    for (uint64_t align = 2; padded && align != 0; align <<= 1) {
        if ((present & align) != 0) bound_by_alignment(p, align, live);
    }
}

/// Fill lower_bound_bytes and peak_tick, then proved_bytes and proof, of a problem that is otherwise complete;
/// `n_real_ticks` are those that are steps.
static tide_status find_bounds(tide_problem *p, uint32_t n_real_ticks, tide_error *err) {
    uint64_t *live;
    TIDE_TRY(TIDE_NEW(&live, (size_t)p->n_ticks + 1, err, "for the lower bound of %zu tensors", p->n));
    bound_by_live_sums(p, n_real_ticks, live);
    bound_by_fixed(p);
    bound_by_alignments(p, live);
    tide_host_free(live);
    return TIDE_OK;
}

// ---- fixed items ----

typedef struct fixed_rect {
    uint64_t lo, hi; // in the buffer
    uint32_t begin, end, item;
} fixed_rect;

static int compare_fixed(const void *a, const void *b) {
    const fixed_rect *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static size_t list_fixed(const tide_problem *p, fixed_rect *out) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        for (uint32_t r = 0; r < item->n_rects; r++) {
            const tide_rect *rect = &tide__rects_of(p, item)[r];
            out[n++] = (fixed_rect){item->fixed_offset + rect->lo_bytes, item->fixed_offset + rect->hi_bytes,
                                    rect->begin, rect->end, i};
        }
    }
    qsort(out, n, sizeof *out, compare_fixed);
    return n;
}

/// Live rectangles by lo; disjoint until the first overlap is found.
typedef struct fixed_sweep {
    fixed_rect *live;
    size_t n;
} fixed_sweep;

/// The position of `lo` among the live rectangles.
static size_t place_of(const fixed_sweep *s, uint64_t lo) {
    size_t a = 0, b = s->n;
    while (a < b) {
        const size_t mid = a + (b - a) / 2;
        if (s->live[mid].lo < lo)
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}

/// Insert `r` and remove ended rectangles beside it. @return the one that it overlaps; NULL: none
static const fixed_rect *enter_fixed(fixed_sweep *s, const fixed_rect *r) {
    size_t at = place_of(s, r->lo);
    TIDE_ASSERT(r->lo < r->hi && (at == 0 || s->live[at - 1].lo < r->lo));
    size_t from = at, to = at; // dead ones around the new one make room for it
    while (from > 0 && s->live[from - 1].end <= r->begin) from--;
    while (to < s->n && s->live[to].end <= r->begin) to++;
    if (from > 0 && s->live[from - 1].hi > r->lo) return &s->live[from - 1];
    if (to < s->n && s->live[to].lo < r->hi) return &s->live[to];
    if (from == to) {
        for (size_t k = s->n++; k > at; k--) s->live[k] = s->live[k - 1];
        s->live[at] = *r;
        return NULL;
    }
    s->live[from] = *r;
    for (size_t k = to; k < s->n; k++) s->live[from + 1 + k - to] = s->live[k];
    s->n -= to - from - 1;
    return NULL;
}

/// TIDE_ERR_INVALID naming both when two fixed items overlap.
static tide_status check_fixed(const tide_problem *p, const tide_lifetimes *lt, tide_error *err) {
    if (!p->has_fixed) return TIDE_OK;
    fixed_rect *all = tide_host_calloc(p->n_rects, 2 * sizeof *all);
    if (all == NULL) return TIDE_NO_MEMORY(err, "to check given offsets of %zu tensors", p->n);
    const size_t n = list_fixed(p, all);
    fixed_sweep s = {.live = all + n};
    tide_status st = TIDE_OK;
    for (size_t k = 0; k < n && st == TIDE_OK; k++) {
        const fixed_rect *other = enter_fixed(&s, &all[k]);
        if (other == NULL || other->item == all[k].item) continue;
        const tide_lifetime *a = &lt->items[p->items[other->item].lifetime],
                            *b = &lt->items[p->items[all[k].item].lifetime];
        st = TIDE_FAIL(err, TIDE_ERR_INVALID,
                       "tensors '%s' of %llu bytes at %llu and '%s' of %llu bytes at %llu have given offsets and share "
                       "bytes while both are needed",
                       a->name, (unsigned long long)a->size_bytes, (unsigned long long)a->fixed_offset_bytes, b->name,
                       (unsigned long long)b->size_bytes, (unsigned long long)b->fixed_offset_bytes);
    }
    tide_host_free(all);
    return st;
}

void tide__problem_deinit(tide_problem *p) {
    tide_host_free(p->items);
    tide_host_free(p->rects);
    tide_host_free(p->tick_steps);
    *p = (tide_problem){0};
}

// ---- ticks ----

static int compare_steps(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/// The steps at which a rectangle of classes [first, end) begins or ends, each once.
static tide_status list_ticks(const tide_classes *c, size_t first, size_t end, tide_problem *p) {
    size_t n_rects = 0, n = 0;
    for (size_t i = first; i < end; i++) n_rects += c->list[i].n_rects;
    int64_t *steps = tide_host_calloc(n_rects, 2 * sizeof *steps);
    if (steps == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = first; i < end; i++) {
        for (size_t r = 0; r < c->list[i].n_rects; r++) {
            steps[n++] = c->rects.list[c->list[i].first_rect + r].begin;
            steps[n++] = c->rects.list[c->list[i].first_rect + r].end;
        }
    }
    qsort(steps, n, sizeof *steps, compare_steps);
    size_t n_unique = 0;
    for (size_t k = 0; k < n; k++) {
        if (n_unique == 0 || steps[k] != steps[n_unique - 1]) steps[n_unique++] = steps[k];
    }
    TIDE_ASSERT(n == 2 * n_rects && n_unique >= 2);
    p->tick_steps = steps;
    p->n_rects = n_rects;
    if (n_unique > UINT32_MAX / 2) return TIDE_ERR_NOMEM;
    p->n_ticks = (uint32_t)n_unique - 1; // the last step only ends things
    return TIDE_OK;
}

static uint32_t tick_of(const tide_problem *p, int64_t step) {
    size_t lo = 0, hi = (size_t)p->n_ticks + 1;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p->tick_steps[mid] < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    TIDE_ASSERT(lo <= p->n_ticks && p->tick_steps[lo] == step);
    return (uint32_t)lo;
}

// ---- apart sets ----

typedef struct apart_member {
    uint32_t set, item;
} apart_member;

static int compare_apart(const void *a, const void *b) {
    const apart_member *x = a, *y = b;
    if (x->set != y->set) return x->set < y->set ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/// Sets are numbered by their first member, so that their names in the table do not count.
static int compare_first_members(const void *a, const void *b) {
    const apart_member *const *x = a, *const *y = b;
    return ((*x)->item > (*y)->item) - ((*x)->item < (*y)->item);
}

typedef struct apart {
    apart_member *members;       // [n] by set, then item
    const apart_member **firsts; // [n_sets] of the sets with two members or more
    size_t n, n_sets;
} apart;

static tide_status list_apart(const tide_lifetimes *lt, const tide_problem *p, apart *out) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) n += lt->items[p->items[i].lifetime].apart_set != 0;
    if (n < 2) return TIDE_OK;
    out->members = tide_host_calloc(n, sizeof *out->members);
    out->firsts = tide_host_calloc(n, sizeof *out->firsts);
    if (out->members == NULL || out->firsts == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t set = lt->items[p->items[i].lifetime].apart_set;
        if (set != 0) out->members[out->n++] = (apart_member){set, (uint32_t)i};
    }
    qsort(out->members, out->n, sizeof *out->members, compare_apart);
    for (size_t k = 0; k + 1 < out->n; k++) {
        const bool first = k == 0 || out->members[k - 1].set != out->members[k].set;
        if (first && out->members[k + 1].set == out->members[k].set) out->firsts[out->n_sets++] = &out->members[k];
    }
    qsort(out->firsts, out->n_sets, sizeof *out->firsts, compare_first_members);
    return TIDE_OK;
}

/// One more rectangle for each member of a set, over the whole item, in the set's own tick.
static tide_status add_apart_rects(tide_problem *p, const apart *a) {
    size_t n_more = 0;
    uint32_t *tick_of_item = tide_host_calloc(p->n, sizeof *tick_of_item); // 0: none, no item has its apart tick there
    if (tick_of_item == NULL) return TIDE_ERR_NOMEM;
    for (size_t s = 0; s < a->n_sets; s++) {
        const uint32_t tick = p->n_ticks + (uint32_t)s;
        for (const apart_member *m = a->firsts[s]; m < a->members + a->n && m->set == a->firsts[s]->set; m++, n_more++)
            tick_of_item[m->item] = tick;
    }
    tide_rect *rects = tide_host_calloc(p->n_rects + n_more, sizeof *rects);
    if (rects == NULL) {
        tide_host_free(tick_of_item);
        return TIDE_ERR_NOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        tide_item *item = &p->items[i];
        const size_t first = n;
        for (size_t r = 0; r < item->n_rects; r++) rects[n++] = p->rects[item->first_rect + r];
        if (tick_of_item[i] != 0) {
            rects[n++] = (tide_rect){tick_of_item[i], tick_of_item[i] + 1, 0, item->size_bytes};
            item->end = tick_of_item[i] + 1;
        }
        item->first_rect = (uint32_t)first;
        item->n_rects = (uint32_t)(n - first);
    }
    tide_host_free(tick_of_item);
    tide_host_free(p->rects);
    p->rects = rects;
    p->n_rects = n;
    return TIDE_OK;
}

static tide_status add_apart_ticks(tide_problem *p, size_t n_sets) {
    if (n_sets > UINT32_MAX / 2) return TIDE_ERR_NOMEM;
    int64_t *steps = tide_host_calloc((size_t)p->n_ticks + n_sets, sizeof *steps);
    if (steps == NULL) return TIDE_ERR_NOMEM;
    for (size_t t = 0; t < p->n_ticks; t++) steps[t] = p->tick_steps[t];
    for (size_t s = 0; s < n_sets; s++) steps[p->n_ticks + s] = -1;
    tide_host_free(p->tick_steps);
    p->tick_steps = steps;
    p->n_ticks += (uint32_t)n_sets;
    return TIDE_OK;
}

static tide_status keep_apart(const tide_lifetimes *lt, tide_problem *p) {
    apart a = {0};
    tide_status st = list_apart(lt, p, &a);
    if (st == TIDE_OK && a.n_sets > 0) st = add_apart_rects(p, &a);
    if (st == TIDE_OK && a.n_sets > 0) st = add_apart_ticks(p, a.n_sets);
    tide_host_free(a.members);
    tide_host_free(a.firsts);
    return st;
}

// ---- items ----

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b != 0) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/// What every item's sizes and given offset are multiples of, and every alignment that does not follow from it.
static uint64_t grain_of(const tide_problem *p) {
    uint64_t g = 0;
    for (size_t r = 0; r < p->n_rects; r++) g = gcd(gcd(g, p->rects[r].lo_bytes), p->rects[r].hi_bytes);
    for (size_t i = 0; i < p->n; i++) {
        g = gcd(g, p->items[i].size_bytes);
        if (p->items[i].fixed_offset != TIDE_NO_OFFSET) g = gcd(g, p->items[i].fixed_offset);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (g % p->items[i].align_bytes != 0) g = gcd(g, p->items[i].align_bytes);
    }
    TIDE_ASSERT(p->n == 0 || g > 0);
    return g == 0 ? 1 : g;
}

static void note_shapes(tide_problem *p) {
    p->align_bytes = 1;
    p->plain = true;
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        const tide_rect *rect = tide__rects_of(p, item);
        if (item->align_bytes > p->align_bytes) p->align_bytes = item->align_bytes;
        if (item->fixed_offset != TIDE_NO_OFFSET) p->has_fixed = true;
        if (item->n_rects != 1 || rect->lo_bytes != 0 || rect->hi_bytes != item->size_bytes) p->plain = false;
    }
    if (p->has_fixed) p->plain = false;
    p->grain_bytes = grain_of(p);
}

static tide_status fill_items(const tide_lifetimes *lt, const tide_classes *c, size_t first, size_t end,
                              tide_problem *p) {
    p->items = tide_host_calloc(end - first, sizeof *p->items);
    p->rects = tide_host_calloc(p->n_rects, sizeof *p->rects);
    if (p->items == NULL || p->rects == NULL || p->n_rects > UINT32_MAX) return TIDE_ERR_NOMEM;
    uint32_t at = 0;
    for (size_t i = first; i < end; i++) {
        const tide_class *of = &c->list[i];
        const tide_lifetime *root = &lt->items[of->root];
        tide_item *item = &p->items[p->n++];
        *item = (tide_item){.size_bytes = tide_lifetime_aligned_bytes(root),
                            .align_bytes = root->align_bytes,
                            .fixed_offset = root->fixed ? root->fixed_offset_bytes : TIDE_NO_OFFSET,
                            .begin = UINT32_MAX,
                            .first_rect = at,
                            .n_rects = (uint32_t)of->n_rects,
                            .lifetime = of->root};
        for (size_t r = 0; r < of->n_rects; r++, at++) {
            const tide_step_rect *from = &c->rects.list[of->first_rect + r];
            const tide_rect rect = {tick_of(p, from->begin), tick_of(p, from->end), from->lo, from->hi};
            p->rects[at] = rect;
            if (rect.begin < item->begin) item->begin = rect.begin;
            if (rect.end > item->end) item->end = rect.end;
        }
    }
    TIDE_ASSERT(at == p->n_rects && p->n == end - first);
    return TIDE_OK;
}

// ---- what a table's items would take without aliases ----

typedef struct birth_or_death {
    int64_t step;
    int64_t bytes; // negative: dies
} birth_or_death;

static int compare_bytes_in_time(const void *a, const void *b) {
    const birth_or_death *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); // deaths first
}

static bool is_of(const tide_lifetime *item, const tide_problem *p) {
    return !item->persistent && item->size_bytes > 0 && item->kind == p->kind &&
           tide_device_equal(item->device, p->device);
}

static tide_status measure_naive(const tide_lifetimes *lt, tide_problem *p, tide_error *err) {
    birth_or_death *changes = tide_host_calloc(lt->n, 2 * sizeof *changes);
    if (changes == NULL) return TIDE_NO_MEMORY(err, "to measure %zu lifetimes", lt->n);
    size_t n = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < lt->n && st == TIDE_OK; i++) {
        const tide_lifetime *item = &lt->items[i];
        if (!is_of(item, p)) continue;
        const uint64_t bytes = tide_lifetime_aligned_bytes(item);
        // Files hold sizes as signed 64-bit numbers, and strategies add them up.
        if (!tide_add_u64(p->naive_bytes, bytes, &p->naive_bytes) || p->naive_bytes > INT64_MAX)
            st = TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the sizes up to tensor '%s' add up to more than 2^63 - 1 bytes",
                           item->name);
        changes[n++] = (birth_or_death){item->begin_step, (int64_t)bytes};
        changes[n++] = (birth_or_death){item->end_step, -(int64_t)bytes};
    }
    qsort(changes, n, sizeof *changes, compare_bytes_in_time);
    int64_t live = 0;
    for (size_t k = 0; k < n && st == TIDE_OK; k++) {
        live += changes[k].bytes;
        if (live > 0 && (uint64_t)live > p->naive_peak_bytes) p->naive_peak_bytes = (uint64_t)live;
    }
    TIDE_ASSERT(st != TIDE_OK || (live == 0 && p->naive_peak_bytes <= p->naive_bytes));
    tide_host_free(changes);
    return st;
}

// ---- what holds ----

static bool item_holds(const tide_problem *p, const tide_item *item) {
    const bool is_aligned = item->fixed_offset == TIDE_NO_OFFSET || item->fixed_offset % item->align_bytes == 0;
    if (item->begin >= item->end || item->end > p->n_ticks || (item->align_bytes & (item->align_bytes - 1)) != 0)
        return false;
    for (uint32_t r = 0; r < item->n_rects; r++) {
        const tide_rect *rect = &tide__rects_of(p, item)[r];
        if (rect->begin >= rect->end || rect->lo_bytes >= rect->hi_bytes) return false;
        if (rect->begin < item->begin || rect->end > item->end || rect->hi_bytes > item->size_bytes) return false;
    }
    return is_aligned && item->n_rects > 0;
}

bool tide__problem_holds(const tide_problem *p) {
    for (size_t i = 0; i < p->n; i++) {
        if (!item_holds(p, &p->items[i])) return false;
    }
    return p->grain_bytes > 0 && p->lower_bound_bytes <= p->proved_bytes;
}

// ---- offsets that fit into 63 bits ----

/// Stacked in any order above the highest given offset, each item takes its size and what its alignment may skip.
/// @return the first item with which that passes 2^63 - 1; p->n: none
static size_t first_out_of_reach(const tide_problem *p) {
    uint64_t reach = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        if (item->fixed_offset + item->size_bytes > reach) reach = item->fixed_offset + item->size_bytes;
    }
    for (size_t i = 0; i < p->n; i++) {
        const tide_item *item = &p->items[i];
        if (item->fixed_offset != TIDE_NO_OFFSET) continue;
        if (!tide_add_u64(reach, item->size_bytes, &reach) || !tide_add_u64(reach, item->align_bytes - 1, &reach) ||
            reach > INT64_MAX)
            return i;
    }
    return p->n;
}

static tide_status check_reach(const tide_problem *p, const tide_lifetimes *lt, tide_error *err) {
    const size_t i = first_out_of_reach(p);
    if (i == p->n) return TIDE_OK;
    const tide_lifetime *item = &lt->items[p->items[i].lifetime];
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW,
                     "up to tensor '%s' of %llu bytes, at multiples of %llu, tensors may end past 2^63 - 1 bytes",
                     item->name, (unsigned long long)item->size_bytes, (unsigned long long)item->align_bytes);
}

// ---- one problem, all problems ----

static tide_status make(const tide_lifetimes *lt, const tide_classes *c, size_t first, size_t end, tide_problem *p,
                        tide_error *err) {
    const tide_lifetime *root = &lt->items[c->list[first].root];
    p->device = root->device;
    p->kind = root->kind;
    TIDE_TRY(measure_naive(lt, p, err));
    tide_status st = list_ticks(c, first, end, p);
    if (st == TIDE_OK) st = fill_items(lt, c, first, end, p);
    if (st == TIDE_OK) TIDE_TRY(check_reach(p, lt, err));
    const uint32_t n_real_ticks = p->n_ticks;
    if (st == TIDE_OK) st = keep_apart(lt, p);
    if (st != TIDE_OK) return TIDE_FAIL(err, st, "no memory for a problem of %zu tensors", end - first);
    note_shapes(p);
    TIDE_TRY(find_bounds(p, n_real_ticks, err));
    TIDE_ASSERT(tide__problem_holds(p));
    return check_fixed(p, lt, err);
}

static bool same_buffer(const tide_lifetimes *lt, const tide_class *a, const tide_class *b) {
    const tide_lifetime *x = &lt->items[a->root], *y = &lt->items[b->root];
    return x->kind == y->kind && tide_device_equal(x->device, y->device);
}

static tide_status split(const tide_lifetimes *lt, const tide_classes *c, tide_problems *out, tide_error *err) {
    size_t n = 0, cap = 0;
    for (size_t first = 0, end; first < c->n; first = end) {
        for (end = first + 1; end < c->n && same_buffer(lt, &c->list[first], &c->list[end]);) end++;
        TIDE_TRY(TIDE_GROW(&out->list, &cap, n + 1, err, "for %zu problems", n + 1));
        out->list[n] = (tide_problem){0};
        out->n = ++n;
        TIDE_TRY(make(lt, c, first, end, &out->list[n - 1], err));
    }
    return TIDE_OK;
}

tide_status tide__problems_make(const tide_lifetimes *lt, tide_problems *out, tide_error *err) {
    *out = (tide_problems){0};
    if (lt->n > INT32_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu lifetimes are more than a plan can number", lt->n);
    tide_classes classes;
    TIDE_TRY(tide__classes_make(lt, &classes, err));
    const tide_status st = split(lt, &classes, out, err);
    tide__classes_deinit(&classes);
    if (st != TIDE_OK) tide__problems_deinit(out);
    return st;
}

void tide__problems_deinit(tide_problems *p) {
    for (size_t i = 0; i < p->n; i++) tide__problem_deinit(&p->list[i]);
    tide_host_free(p->list);
    *p = (tide_problems){0};
}

// ---- bare items ----

tide_status tide__problem_of_items(const tide_item *items, size_t n, tide_problem *out, tide_error *err) {
    *out = (tide_problem){.device = TIDE_CPU, .kind = TIDE_KIND_WORKSPACE, .n = n, .n_rects = n};
    out->items = tide_host_calloc(n, sizeof *out->items);
    out->rects = tide_host_calloc(n, sizeof *out->rects);
    tide_status st = out->items != NULL && out->rects != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        out->items[i] = items[i];
        out->items[i].lifetime = out->items[i].first_rect = (uint32_t)i;
        out->items[i].n_rects = 1;
        out->rects[i] = (tide_rect){items[i].begin, items[i].end, 0, items[i].size_bytes};
        if (items[i].end > out->n_ticks) out->n_ticks = items[i].end;
        if (!tide_add_u64(out->naive_bytes, items[i].size_bytes, &out->naive_bytes) || out->naive_bytes > INT64_MAX)
            st = TIDE_ERR_OVERFLOW;
    }
    if (st == TIDE_OK && first_out_of_reach(out) < n) st = TIDE_ERR_OVERFLOW;
    if (st != TIDE_OK) {
        tide__problem_deinit(out);
        return TIDE_FAIL(err, st, "a problem of %zu items", n);
    }
    note_shapes(out);
    st = find_bounds(out, out->n_ticks, err);
    out->naive_peak_bytes = out->lower_bound_bytes;
    if (st != TIDE_OK) tide__problem_deinit(out);
    return st;
}

// ---- the lower bound of a table ----
//
// No plan of these lifetimes is smaller, whatever the strategy; a plan that reaches it is proven best (S23-10).

tide_status tide_lower_bound(const tide_lifetimes *lt, uint64_t *bytes, int64_t *step, tide_error *err) {
    tide_problems problems;
    TIDE_TRY(tide__problems_make(lt, &problems, err));
    uint64_t sum = 0, largest = 0;
    int64_t at = 0;
    bool fits = true;
    for (size_t i = 0; i < problems.n; i++) {
        const tide_problem *p = &problems.list[i];
        fits = tide_add_u64(sum, p->lower_bound_bytes, &sum) && fits; // each buffer's fits into 63 bits
        if (p->lower_bound_bytes <= largest) continue;
        largest = p->lower_bound_bytes;
        at = p->tick_steps[p->peak_tick];
    }
    const size_t n_buffers = problems.n;
    tide__problems_deinit(&problems);
    if (!fits) return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu buffers together pass 2^64 - 1 bytes", n_buffers);
    *bytes = sum;
    if (step != NULL) *step = at;
    return TIDE_OK;
}
