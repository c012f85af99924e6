// SPDX-License-Identifier: MIT
//
// pairs: see pairs.h. First the list of pairs and how each may lie, then the search at one capacity, then probes
// at several capacities.
//
// Two rectangles that share a tick forbid an open interval of distances between their items. What several rectangles
// forbid is a union of those; the intervals left between them are the *disjuncts* of the pair:
//
//     distance a - b    … a below b ]   (forbidden)   [ a hooked into b ]   (forbidden)   [ a above b …
//
// Every item has bounds on its offset, every pair a range of disjuncts that are still possible. Bounds rule out
// disjuncts, disjuncts move bounds, until nothing changes. The items alive at a tick are a *clique*: where one cannot
// fit between its bounds, the node is a dead end. When all items at their lowest offsets are disjoint, that is a plan.
// Otherwise some pair overlaps there, and the search branches on its disjuncts: the lower ones, or the higher ones.
// Every plan of at most the capacity is in one of the two halves, so a search that ends without one is a proof.
//
// Source: branching on disjunctions with bounds propagation, as in disjunctive scheduling (Carlier & Pinson 1989),
// with offsets for times and stiff shapes for jobs.
#include "planner/search/pairs.h"
#include "planner/cancel.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

/// Offset of a - offset of b is in [lo, hi].
typedef struct disjunct {
    int64_t lo, hi;
} disjunct;

/// Two items that meet in time. Their disjuncts are in ascending order, from "a below b" to "a above b".
typedef struct item_pair {
    uint32_t a, b;
    uint32_t first_disjunct, n_disjuncts;
} item_pair;

struct tide_pairs {
    const tide_problem *problem;
    item_pair *pairs; ///< [n_pairs]
    size_t n_pairs, cap_pairs;
    disjunct *disjuncts; ///< [n_ways]
    size_t n_disjuncts, cap_disjuncts;
    uint32_t *of_item;       ///< pairs of item i: of_item[first_of_item[i]] … up to first_of_item[i + 1]
    uint32_t *first_of_item; ///< [n + 1]
    uint32_t *peaks; ///< [n_peaks] ticks at whose end an item dies: the clique of any other is part of a later one's
    size_t n_peaks, cap_peaks;
    uint32_t *alive; ///< rectangles alive at peak k: alive[first_alive[k]] … up to first_alive[k + 1]
    size_t n_alive, cap_alive;
    uint32_t *first_alive; ///< [n_peaks + 1]
    uint32_t *item_of;     ///< [n_rects]
};

#define TIDE_PAIR_FAR (INT64_MAX / 4) ///< stands for "any distance": no sum of two leaves 64 bits

// ---- disjuncts ----

/// Whole distances from lo to hi, both inclusive, at which two rectangles overlap.
typedef struct forbidden {
    int64_t lo, hi;
} forbidden;

typedef struct lister {
    tide_pairs *out;
    forbidden *list; // scratch
    size_t n, cap;
} lister;

static int compare_forbidden(const void *a, const void *b) {
    const forbidden *x = a, *y = b;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return (x->hi > y->hi) - (x->hi < y->hi);
}

static tide_status list_forbidden(lister *l, const tide_item *a, const tide_item *b) {
    const tide_problem *p = l->out->problem;
    l->n = 0;
    for (uint32_t i = 0; i < a->n_rects; i++) {
        const tide_rect *r = &tide__rects_of(p, a)[i];
        for (uint32_t k = 0; k < b->n_rects; k++) {
            const tide_rect *s = &tide__rects_of(p, b)[k];
            if (r->end <= s->begin || s->end <= r->begin) continue;
            TIDE_TRY(tide_host_grow(&l->list, &l->cap, l->n + 1, sizeof *l->list));
            l->list[l->n++] = (forbidden){(int64_t)s->lo_bytes - (int64_t)r->hi_bytes + 1,
                                          (int64_t)s->hi_bytes - (int64_t)r->lo_bytes - 1};
        }
    }
    if (l->n > 1) qsort(l->list, l->n, sizeof *l->list, compare_forbidden);
    return TIDE_OK;
}

static tide_status add_disjunct(tide_pairs *out, int64_t lo, int64_t hi) {
    if (lo > hi) return TIDE_OK;
    TIDE_TRY(tide_host_grow(&out->disjuncts, &out->cap_disjuncts, out->n_disjuncts + 1, sizeof *out->disjuncts));
    out->disjuncts[out->n_disjuncts++] = (disjunct){lo, hi};
    return TIDE_OK;
}

static bool are_twins(const tide_problem *p, const tide_item *a, const tide_item *b) {
    if (a->size_bytes != b->size_bytes || a->align_bytes != b->align_bytes || a->n_rects != b->n_rects) return false;
    if (a->fixed_offset != TIDE_NO_OFFSET || b->fixed_offset != TIDE_NO_OFFSET) return false;
    for (uint32_t i = 0; i < a->n_rects; i++) {
        const tide_rect *r = &tide__rects_of(p, a)[i], *s = &tide__rects_of(p, b)[i];
        if (r->begin != s->begin || r->end != s->end || r->lo_bytes != s->lo_bytes || r->hi_bytes != s->hi_bytes)
            return false;
    }
    return true;
}

static tide_status add_pair(lister *l, uint32_t a, uint32_t b) {
    tide_pairs *out = l->out;
    const tide_item *x = &out->problem->items[a], *y = &out->problem->items[b];
    if (x->end <= y->begin || y->end <= x->begin) return TIDE_OK;
    TIDE_TRY(list_forbidden(l, x, y));
    if (l->n == 0) return TIDE_OK;
    const size_t first = out->n_disjuncts;
    int64_t from = -TIDE_PAIR_FAR;
    for (size_t k = 0; k < l->n; k++) {
        TIDE_TRY(add_disjunct(out, from, l->list[k].lo - 1));
        if (l->list[k].hi + 1 > from) from = l->list[k].hi + 1;
    }
    TIDE_TRY(add_disjunct(out, from, TIDE_PAIR_FAR));
    // Twins may change places: the first of them lies no higher.
    size_t n = out->n_disjuncts - first;
    if (are_twins(out->problem, x, y)) {
        while (n > 1 && out->disjuncts[first + n - 1].lo > 0) n--;
    }
    TIDE_TRY(tide_host_grow(&out->pairs, &out->cap_pairs, out->n_pairs + 1, sizeof *out->pairs));
    out->pairs[out->n_pairs++] = (item_pair){a, b, (uint32_t)first, (uint32_t)n};
    return TIDE_OK;
}

static tide_status list_pairs(tide_pairs *out) {
    lister l = {.out = out};
    tide_status st = TIDE_OK;
    for (uint32_t a = 0; a < out->problem->n && st == TIDE_OK; a++) {
        for (uint32_t b = a + 1; b < out->problem->n && st == TIDE_OK; b++) st = add_pair(&l, a, b);
    }
    tide_host_free(l.list);
    return st;
}

static tide_status index_by_item(tide_pairs *out) {
    const size_t n = out->problem->n;
    out->first_of_item = tide_host_calloc(n + 2, sizeof *out->first_of_item);
    out->of_item = tide_host_calloc(2 * out->n_pairs + 1, sizeof *out->of_item);
    if (out->first_of_item == NULL || out->of_item == NULL) return TIDE_ERR_NOMEM;
    uint32_t *end = out->first_of_item + 1; // of each item, while they are dealt out; then the next one's first
    for (size_t k = 0; k < out->n_pairs; k++) {
        end[out->pairs[k].a + 1]++;
        end[out->pairs[k].b + 1]++;
    }
    for (size_t i = 0; i < n; i++) end[i + 1] += end[i];
    for (size_t k = 0; k < out->n_pairs; k++) {
        out->of_item[end[out->pairs[k].a]++] = (uint32_t)k;
        out->of_item[end[out->pairs[k].b]++] = (uint32_t)k;
    }
    return TIDE_OK;
}

// ---- ticks whose clique is no part of the next one's ----

/// Whether anything dies at the end of tick `t`: where nothing does, all that is alive is alive at the next one too.
static bool is_peak(const tide_problem *p, uint32_t t) {
    for (size_t r = 0; r < p->n_rects; r++) {
        if (p->rects[r].end == t + 1) return true;
    }
    return false;
}

static tide_status add_peak(tide_pairs *out, uint32_t t) {
    const tide_problem *p = out->problem;
    TIDE_TRY(tide_host_grow(&out->peaks, &out->cap_peaks, out->n_peaks + 1, sizeof *out->peaks));
    out->peaks[out->n_peaks] = t;
    out->first_alive[out->n_peaks++] = (uint32_t)out->n_alive;
    for (uint32_t r = 0; r < p->n_rects; r++) {
        if (p->rects[r].begin > t || p->rects[r].end <= t) continue;
        TIDE_TRY(tide_host_grow(&out->alive, &out->cap_alive, out->n_alive + 1, sizeof *out->alive));
        out->alive[out->n_alive++] = r;
    }
    out->first_alive[out->n_peaks] = (uint32_t)out->n_alive;
    return TIDE_OK;
}

static tide_status list_peaks(tide_pairs *out) {
    const tide_problem *p = out->problem;
    out->first_alive = tide_host_calloc((size_t)p->n_ticks + 1, sizeof *out->first_alive);
    out->item_of = tide_host_calloc(p->n_rects, sizeof *out->item_of);
    if (out->first_alive == NULL || out->item_of == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t i = 0; i < p->n; i++) {
        for (uint32_t r = 0; r < p->items[i].n_rects; r++) out->item_of[p->items[i].first_rect + r] = i;
    }
    for (uint32_t t = 0; t < p->n_ticks; t++) {
        if (is_peak(p, t)) TIDE_TRY(add_peak(out, t));
    }
    return TIDE_OK;
}

// ---- begin and end ----

tide_status tide__pairs_create(const tide_problem *problem, tide_pairs **out, tide_error *err) {
    if (problem->n > TIDE_PAIRS_MAX_ITEMS)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "%zu items are more than %d to search pair by pair", problem->n,
                         TIDE_PAIRS_MAX_ITEMS);
    tide_pairs *pairs = tide_host_calloc(1, sizeof *pairs);
    tide_status st = TIDE_ERR_NOMEM;
    if (pairs != NULL) {
        pairs->problem = problem;
        st = list_pairs(pairs);
        if (st == TIDE_OK) st = index_by_item(pairs);
        if (st == TIDE_OK) st = list_peaks(pairs);
    }
    if (st != TIDE_OK) {
        tide__pairs_destroy(pairs);
        return TIDE_FAIL(err, st, "no memory for the pairs of %zu items", problem->n);
    }
    *out = pairs;
    return TIDE_OK;
}

void tide__pairs_destroy(tide_pairs *pairs) {
    if (pairs == NULL) return;
    tide_host_free(pairs->pairs);
    tide_host_free(pairs->disjuncts);
    tide_host_free(pairs->of_item);
    tide_host_free(pairs->first_of_item);
    tide_host_free(pairs->peaks);
    tide_host_free(pairs->alive);
    tide_host_free(pairs->first_alive);
    tide_host_free(pairs->item_of);
    tide_host_free(pairs);
}

enum { NODES_PER_CHECK = 64 }; // at the clock

/// What was so before, to go back to.
typedef struct undo {
    enum { UNDO_LO, UNDO_HI, UNDO_FIRST, UNDO_LAST } what;
    uint32_t index;
    int64_t was;
} undo;

/// A decision that is tried: first one half, then the other.
typedef struct decision {
    uint32_t pair, part; // disjuncts below `part` are one half, from it on the other
    size_t n_undo;       // trail as it was before
    bool high_first, is_second;
} decision;

typedef struct clique_entry {
    int64_t lo, hi, bytes; // lowest begin, highest end
} clique_entry;

typedef struct search {
    const tide_pairs *of;
    const tide_problem *p;
    int64_t *lo, *hi;       // [n] bounds of the offsets
    uint32_t *first, *last; // [n_pairs] disjuncts still possible
    undo *trail;
    size_t n_trail, cap_trail;
    decision *stack;
    size_t n_stack, cap_stack;
    uint32_t *queue; // [n] items whose bounds have moved
    size_t n_queue;
    bool *queued;         // [n]
    clique_entry *clique; // [n_rects] scratch
} search;

// ---- changes that can be undone ----

static tide_status note(search *s, undo u) {
    TIDE_TRY(tide_host_grow(&s->trail, &s->cap_trail, s->n_trail + 1, sizeof *s->trail));
    s->trail[s->n_trail++] = u;
    return TIDE_OK;
}

static void backtrack(search *s, size_t n_undo) {
    while (s->n_trail > n_undo) {
        const undo *u = &s->trail[--s->n_trail];
        switch (u->what) {
        case UNDO_LO:
            s->lo[u->index] = u->was;
            break;
        case UNDO_HI:
            s->hi[u->index] = u->was;
            break;
        case UNDO_FIRST:
            s->first[u->index] = (uint32_t)u->was;
            break;
        case UNDO_LAST:
            s->last[u->index] = (uint32_t)u->was;
            break;
        }
    }
    while (s->n_queue > 0) s->queued[s->queue[--s->n_queue]] = false;
}

static void enqueue(search *s, uint32_t item) {
    if (s->queued[item]) return;
    s->queued[item] = true;
    s->queue[s->n_queue++] = item;
}

static int64_t aligned_up(int64_t x, int64_t align) { return (x + align - 1) & ~(align - 1); }

/// @return TIDE_ERR_NO_SPACE: nothing is left between the bounds
static tide_status raise(search *s, uint32_t i, int64_t to) {
    to = aligned_up(to, (int64_t)s->p->items[i].align_bytes);
    if (to <= s->lo[i]) return TIDE_OK;
    if (to > s->hi[i]) return TIDE_ERR_NO_SPACE;
    TIDE_TRY(note(s, (undo){UNDO_LO, i, s->lo[i]}));
    s->lo[i] = to;
    enqueue(s, i);
    return TIDE_OK;
}

static tide_status lower(search *s, uint32_t i, int64_t to) {
    if (to >= s->hi[i]) return TIDE_OK;
    if (to < s->lo[i]) return TIDE_ERR_NO_SPACE;
    to &= ~((int64_t)s->p->items[i].align_bytes - 1);
    TIDE_ASSERT(to >= s->lo[i]); // which is aligned
    TIDE_TRY(note(s, (undo){UNDO_HI, i, s->hi[i]}));
    s->hi[i] = to;
    enqueue(s, i);
    return TIDE_OK;
}

// ---- propagation ----

static tide_status rule_out(search *s, uint32_t k) {
    const item_pair *pair = &s->of->pairs[k];
    const disjunct *disjuncts = s->of->disjuncts + pair->first_disjunct;
    const int64_t least = s->lo[pair->a] - s->hi[pair->b], most = s->hi[pair->a] - s->lo[pair->b];
    uint32_t first = s->first[k], last = s->last[k];
    while (first <= last && disjuncts[first].hi < least) first++;
    while (first <= last && disjuncts[last].lo > most) {
        if (last == 0) return TIDE_ERR_NO_SPACE;
        last--;
    }
    if (first > last) return TIDE_ERR_NO_SPACE;
    if (first != s->first[k]) TIDE_TRY(note(s, (undo){UNDO_FIRST, k, s->first[k]}));
    if (last != s->last[k]) TIDE_TRY(note(s, (undo){UNDO_LAST, k, s->last[k]}));
    s->first[k] = first;
    s->last[k] = last;
    return TIDE_OK;
}

static tide_status tighten(search *s, uint32_t k) {
    TIDE_TRY(rule_out(s, k));
    const item_pair *pair = &s->of->pairs[k];
    const int64_t lo = s->of->disjuncts[pair->first_disjunct + s->first[k]].lo,
                  hi = s->of->disjuncts[pair->first_disjunct + s->last[k]].hi;
    if (lo > -TIDE_PAIR_FAR) {
        TIDE_TRY(raise(s, pair->a, s->lo[pair->b] + lo));
        TIDE_TRY(lower(s, pair->b, s->hi[pair->a] - lo));
    }
    if (hi < TIDE_PAIR_FAR) {
        TIDE_TRY(raise(s, pair->b, s->lo[pair->a] - hi));
        TIDE_TRY(lower(s, pair->a, s->hi[pair->b] + hi));
    }
    return TIDE_OK;
}

static tide_status propagate(search *s) {
    while (s->n_queue > 0) {
        const uint32_t item = s->queue[--s->n_queue];
        s->queued[item] = false;
        for (uint32_t k = s->of->first_of_item[item]; k < s->of->first_of_item[item + 1]; k++)
            TIDE_TRY(tighten(s, s->of->of_item[k]));
    }
    return TIDE_OK;
}

static int compare_clique(const void *a, const void *b) {
    const clique_entry *x = a, *y = b;
    return (x->lo < y->lo) - (x->lo > y->lo); // highest begin first
}

/// Members of the clique that begin at or above some height must fit between it and the highest end among them.
static bool clique_fits(search *s, size_t peak) {
    const uint32_t *alive = s->of->alive + s->of->first_alive[peak];
    const size_t n = s->of->first_alive[peak + 1] - s->of->first_alive[peak];
    for (size_t k = 0; k < n; k++) {
        const tide_rect *r = &s->p->rects[alive[k]];
        const uint32_t i = s->of->item_of[alive[k]];
        s->clique[k] = (clique_entry){s->lo[i] + (int64_t)r->lo_bytes, s->hi[i] + (int64_t)r->hi_bytes,
                                      (int64_t)(r->hi_bytes - r->lo_bytes)};
    }
    qsort(s->clique, n, sizeof *s->clique, compare_clique);
    int64_t sum = 0, end = 0;
    for (size_t k = 0; k < n; k++) {
        sum += s->clique[k].bytes;
        if (s->clique[k].hi > end) end = s->clique[k].hi;
        if (s->clique[k].lo + sum > end) return false;
    }
    return true;
}

static bool cliques_fit(search *s) {
    for (size_t k = 0; k < s->of->n_peaks; k++) {
        if (!clique_fits(s, k)) return false;
    }
    return true;
}

// ---- branching ----

typedef struct choice {
    uint32_t pair, part;
    bool high_first;
    int64_t least_move; // bytes that the nearer of the two halves moves an item
} choice;

/// Of the pairs that overlap when all items lie at their lowest offsets, the one that moves an item most. @return
/// false: none
static bool choose(const search *s, choice *out) {
    bool found = false;
    for (uint32_t k = 0; k < s->of->n_pairs; k++) {
        if (s->first[k] == s->last[k]) continue; // propagation keeps them apart
        const item_pair *pair = &s->of->pairs[k];
        const disjunct *disjuncts = s->of->disjuncts + pair->first_disjunct;
        const int64_t d = s->lo[pair->a] - s->lo[pair->b];
        uint32_t part = s->first[k];
        while (part <= s->last[k] && disjuncts[part].hi < d) part++;
        if (part <= s->last[k] && disjuncts[part].lo <= d) continue; // disjoint as they are
        if (part == s->first[k] || part > s->last[k]) continue;      // cannot be: bounds hold d inside the open range
        // Below `part` b has to rise, from it on a has to.
        const int64_t b_rises = d - disjuncts[part - 1].hi, a_rises = disjuncts[part].lo - d;
        const int64_t least = a_rises < b_rises ? a_rises : b_rises;
        if (found && least <= out->least_move) continue;
        *out = (choice){k, part, a_rises < b_rises, least};
        found = true;
    }
    return found;
}

static tide_status take_half(search *s, const decision *d, bool high) {
    const uint32_t k = d->pair;
    if (high) {
        TIDE_TRY(note(s, (undo){UNDO_FIRST, k, s->first[k]}));
        s->first[k] = d->part;
    } else {
        TIDE_TRY(note(s, (undo){UNDO_LAST, k, s->last[k]}));
        s->last[k] = d->part - 1;
    }
    TIDE_TRY(tighten(s, k));
    TIDE_TRY(propagate(s));
    return cliques_fit(s) ? TIDE_OK : TIDE_ERR_NO_SPACE;
}

/// Try the second halves of the decisions on the stack, the last one first. @return TIDE_ERR_NO_SPACE: none is left
static tide_status next_half(search *s, uint64_t *n_nodes) {
    while (s->n_stack > 0) {
        decision *d = &s->stack[s->n_stack - 1];
        backtrack(s, d->n_undo);
        if (d->is_second) {
            s->n_stack--;
            continue;
        }
        d->is_second = true;
        (*n_nodes)++;
        const tide_status st = take_half(s, d, !d->high_first);
        if (st != TIDE_ERR_NO_SPACE) return st;
    }
    return TIDE_ERR_NO_SPACE;
}

static tide_status decide(search *s, const choice *c, uint64_t *n_nodes) {
    TIDE_TRY(tide_host_grow(&s->stack, &s->cap_stack, s->n_stack + 1, sizeof *s->stack));
    decision *d = &s->stack[s->n_stack++];
    *d = (decision){.pair = c->pair, .part = c->part, .n_undo = s->n_trail, .high_first = c->high_first};
    (*n_nodes)++;
    const tide_status st = take_half(s, d, d->high_first);
    return st == TIDE_ERR_NO_SPACE ? next_half(s, n_nodes) : st;
}

// ---- entry points ----

static tide_status start_at(search *s, int64_t capacity) {
    for (uint32_t i = 0; i < s->p->n; i++) {
        const tide_item *item = &s->p->items[i];
        if (item->size_bytes > (uint64_t)capacity) return TIDE_ERR_NO_SPACE;
        s->hi[i] = (capacity - (int64_t)item->size_bytes) & ~((int64_t)item->align_bytes - 1);
        if (item->fixed_offset == TIDE_NO_OFFSET) continue;
        if (item->fixed_offset > (uint64_t)s->hi[i]) return TIDE_ERR_NO_SPACE;
        s->lo[i] = s->hi[i] = (int64_t)item->fixed_offset;
    }
    for (uint32_t k = 0; k < s->of->n_pairs; k++) {
        s->first[k] = 0;
        s->last[k] = s->of->pairs[k].n_disjuncts - 1;
    }
    for (uint32_t k = 0; k < s->of->n_pairs; k++) TIDE_TRY(tighten(s, k));
    TIDE_TRY(propagate(s));
    return cliques_fit(s) ? TIDE_OK : TIDE_ERR_NO_SPACE;
}

static tide_status run(search *s, uint64_t capacity_bytes, uint64_t max_nodes, uint64_t deadline_ns,
                       tide_pairs_answer *answer, uint64_t *n_nodes) {
    const uint64_t from = *n_nodes;
    uint64_t next_check = from;
    *answer = TIDE_PAIRS_LIMIT;
    if (capacity_bytes > TIDE_PAIR_FAR) return TIDE_OK; // higher than distances go: nothing is known
    *answer = TIDE_PAIRS_NONE;
    TIDE_TRY(start_at(s, (int64_t)capacity_bytes));
    choice c = {0};
    while (choose(s, &c)) {
        *answer = TIDE_PAIRS_LIMIT;
        if (*n_nodes - from >= max_nodes) return TIDE_OK;
        if (*n_nodes >= next_check) {
            if (tide__is_late(deadline_ns)) return TIDE_OK;
            next_check = *n_nodes + NODES_PER_CHECK;
        }
        *answer = TIDE_PAIRS_NONE;
        TIDE_TRY(decide(s, &c, n_nodes));
    }
    TIDE_ASSERT(s->n_queue == 0);
    *answer = TIDE_PAIRS_FOUND;
    return TIDE_OK;
}

tide_status tide__pairs_search(tide_pairs *pairs, uint64_t capacity_bytes, uint64_t max_nodes, uint64_t deadline_ns,
                               uint64_t *offsets, tide_pairs_answer *answer, uint64_t *n_nodes, tide_error *err) {
    const size_t n = pairs->problem->n;
    search s = {.of = pairs, .p = pairs->problem};
    s.lo = tide_host_calloc(n, 2 * sizeof *s.lo);
    s.first = tide_host_calloc(pairs->n_pairs, 2 * sizeof *s.first);
    s.queue = tide_host_calloc(n, sizeof *s.queue);
    s.queued = tide_host_calloc(n, sizeof *s.queued);
    s.clique = tide_host_calloc(pairs->problem->n_rects, sizeof *s.clique);
    tide_status st = TIDE_ERR_NOMEM;
    if (s.lo != NULL && s.first != NULL && s.queue != NULL && s.queued != NULL && s.clique != NULL) {
        s.hi = s.lo + n;
        s.last = s.first + pairs->n_pairs;
        st = run(&s, capacity_bytes, max_nodes, deadline_ns, answer, n_nodes);
    }
    for (size_t i = 0; st == TIDE_OK && *answer == TIDE_PAIRS_FOUND && i < n; i++) offsets[i] = (uint64_t)s.lo[i];
    tide_host_free(s.lo);
    tide_host_free(s.first);
    tide_host_free(s.queue);
    tide_host_free(s.queued);
    tide_host_free(s.clique);
    tide_host_free(s.trail);
    tide_host_free(s.stack);
    if (st == TIDE_ERR_NO_SPACE) return TIDE_OK; // nothing is left: *answer is NONE
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory to search %zu items pair by pair", n);
}

// ---- from "is there a plan of at most N bytes?" to the smallest plan ----
//
//     proved bound --raised by NONE-->            <--lowered by FOUND-- best plan

typedef struct improver {
    const tide_problem *p;
    tide_pairs *pairs;
    tide_placement *best;
    uint64_t *offsets; // [n] of the last probe
    uint64_t n_nodes, max_nodes, deadline_ns;
    uint64_t capacity_bytes;
} improver;

/// The next height above `bytes` that any plan can have.
static uint64_t next_height(const tide_problem *p, uint64_t bytes) {
    return bytes - bytes % p->grain_bytes + p->grain_bytes;
}

static void take_found(improver *m) {
    memcpy(m->best->offsets, m->offsets, m->p->n * sizeof *m->offsets);
    tide__placement_measure(m->best, m->p);
}

/// One probe with at most `max_nodes` of what is left. *answer says how it ended; best and proved follow it.
static tide_status probe(improver *m, uint64_t capacity_bytes, uint64_t max_nodes, tide_pairs_answer *answer,
                         tide_error *err) {
    const uint64_t left = m->max_nodes - m->n_nodes;
    TIDE_TRY(tide__pairs_search(m->pairs, capacity_bytes, max_nodes < left ? max_nodes : left, m->deadline_ns,
                                m->offsets, answer, &m->n_nodes, err));
    m->n_nodes++; // so that a limit on nodes ends probes that decide nothing
    if (m->n_nodes > m->max_nodes) m->n_nodes = m->max_nodes;
    if (*answer == TIDE_PAIRS_FOUND) take_found(m);
    if (*answer == TIDE_PAIRS_NONE && next_height(m->p, capacity_bytes) > m->best->proved_bytes) {
        m->best->proved_bytes = next_height(m->p, capacity_bytes);
        m->best->proof = TIDE_PROOF_SEARCH;
    }
    return TIDE_OK;
}

static bool is_done(const improver *m) {
    if (m->best->bytes <= m->best->proved_bytes) return true;
    if (m->capacity_bytes == 0) return false;
    return m->best->bytes <= m->capacity_bytes || m->best->proved_bytes > m->capacity_bytes;
}

/// From the best plan downwards, as long as that finds better ones. @return *answer of the last probe
static tide_status lower_best(improver *m, uint64_t max_nodes, tide_pairs_answer *answer, tide_error *err) {
    *answer = TIDE_PAIRS_FOUND;
    while (*answer == TIDE_PAIRS_FOUND && !is_done(m)) {
        const uint64_t below = m->best->bytes - 1 - (m->best->bytes - 1) % m->p->grain_bytes;
        TIDE_TRY(probe(m, below, max_nodes, answer, err));
    }
    return TIDE_OK;
}

/// The bound first: a plan that meets it ends the search. Both sides get twice as many nodes in each round.
static tide_status improve(improver *m, tide_error *err) {
    enum { FIRST_NODES = 2000 };
    tide_pairs_answer up = TIDE_PAIRS_NONE, down = TIDE_PAIRS_LIMIT;
    for (uint64_t n = FIRST_NODES; !is_done(m) && m->n_nodes < m->max_nodes && !tide__is_cancelled(); n *= 2) {
        const uint64_t before = m->n_nodes;
        const uint64_t at = m->capacity_bytes != 0 ? m->capacity_bytes : m->best->proved_bytes;
        TIDE_TRY(probe(m, at, n, &up, err));
        if (m->capacity_bytes == 0 && !is_done(m)) TIDE_TRY(lower_best(m, n, &down, err));
        if (m->n_nodes == before && up == TIDE_PAIRS_LIMIT) break; // the time is over
        if (n > UINT64_MAX / 4) break;
    }
    return TIDE_OK;
}

tide_status tide__pairs_improve(const tide_problem *problem, uint64_t capacity_bytes, uint64_t max_nodes,
                                uint64_t deadline_ns, tide_placement *best, uint64_t *n_nodes, tide_error *err) {
    improver m = {.p = problem,
                  .best = best,
                  .max_nodes = max_nodes,
                  .deadline_ns = deadline_ns,
                  .capacity_bytes = capacity_bytes};
    TIDE_TRY(tide__pairs_create(problem, &m.pairs, err));
    m.offsets = tide_host_calloc(problem->n, sizeof *m.offsets);
    tide_status st = m.offsets != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to search %zu items", problem->n);
    if (st == TIDE_OK) st = improve(&m, err);
    *n_nodes += m.n_nodes;
    tide_host_free(m.offsets);
    tide__pairs_destroy(m.pairs);
    return st;
}
