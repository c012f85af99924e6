// SPDX-License-Identifier: MIT
//
// bounds: what no plan of a problem can go below, as far as that shows without search. See problem.h.
//
//   live sum   the largest sum of bytes alive at one tick (S23-10)
//   alignment  of tensors alive together whose offsets are multiples of m, all but the topmost take a multiple of m
//   fixed      where the highest tensor with a given offset ends
//   apart      the sum of a set whose members never share a byte
#include <stdlib.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/problem_internal.h"

// ---- sums per tick ----

/// Sums by differences, modulo 2^64: no prefix overflows, for all sizes together do not.
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
    for (uint32_t t = 0; t < n_real_ticks; t++) {
        if (live[t] <= p->lower_bound_bytes) continue;
        p->lower_bound_bytes = live[t];
        p->peak_tick = t;
    }
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

/// An item as a whole: one rectangle over all of its bytes. Others are left out of this bound, which stays true.
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

tide_status tide__problem_bounds(tide_problem *p, uint32_t n_real_ticks, tide_error *err) {
    uint64_t *live = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *live);
    if (live == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the lower bound of %zu tensors", p->n);
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

/// Those alive, by lo; disjoint as long as nothing was found.
typedef struct fixed_sweep {
    fixed_rect *live;
    size_t n;
} fixed_sweep;

/// Where `lo` belongs among those alive.
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

/// Enter `r`, dropping what is dead beside it. @return the one that it overlaps; NULL: none
static const fixed_rect *enter_fixed(fixed_sweep *s, const fixed_rect *r) {
    size_t at = place_of(s, r->lo);
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

tide_status tide__problem_check_fixed(const tide_problem *p, const tide_lifetimes *lt, tide_error *err) {
    if (!p->has_fixed) return TIDE_OK;
    fixed_rect *all = tide_host_calloc(p->n_rects, 2 * sizeof *all);
    if (all == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to check given offsets of %zu tensors", p->n);
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
