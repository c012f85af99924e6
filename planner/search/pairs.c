// SPDX-License-Identifier: MIT
//
// pairs, the search. See pairs.h.
//
// Every item has bounds on its offset, every pair a range of ways that are still open. Bounds close ways, ways move
// bounds, until nothing changes; the crowd at a tick that cannot fit between its bounds ends the branch. When all items
// at their lowest offsets are disjoint that is a plan. Otherwise some pair overlaps there, and its ways are parted: the
// distance is that of the lower ones, or of the higher ones. Every plan of at most the capacity is in one of the two
// halves, so a search that ends without one is a proof.
//
// Source: branching on disjunctions with bounds propagation, as in disjunctive scheduling (Carlier & Pinson 1989),
// with offsets for times and stiff shapes for jobs.
#include "planner/search/pairs.h"

#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "planner/search/pairs_internal.h"

enum { NODES_PER_LOOK = 64 }; // at the clock

/// What was so before, to go back to.
typedef struct undo {
    enum { UNDO_LO, UNDO_HI, UNDO_FIRST, UNDO_LAST } what;
    uint32_t index;
    int64_t was;
} undo;

/// A decision that is tried: first one half, then the other.
typedef struct decision {
    uint32_t pair, part; // ways below `part` are one half, from it on the other
    size_t n_undo;       // trail as it was before
    bool high_first, is_second;
} decision;

typedef struct crowd_entry {
    int64_t lo, hi, bytes; // lowest begin, highest end
} crowd_entry;

typedef struct search {
    const tide_pairs *of;
    const tide_problem *p;
    int64_t *lo, *hi;       // [n] bounds of the offsets
    uint32_t *first, *last; // [n_pairs] ways still open
    undo *trail;
    size_t n_trail, cap_trail;
    decision *stack;
    size_t n_stack, cap_stack;
    uint32_t *queue; // [n] items whose bounds have moved
    size_t n_queue;
    bool *queued;       // [n]
    crowd_entry *crowd; // [n_rects] scratch
} search;

// ---- changes that can be undone ----

static tide_status note(search *s, undo u) {
    TIDE_TRY(tide_host_grow(&s->trail, &s->cap_trail, s->n_trail + 1, sizeof *s->trail));
    s->trail[s->n_trail++] = u;
    return TIDE_OK;
}

static void go_back(search *s, size_t n_undo) {
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
    to &= ~((int64_t)s->p->items[i].align_bytes - 1); // the lower bound is aligned: this stays at or above it
    TIDE_TRY(note(s, (undo){UNDO_HI, i, s->hi[i]}));
    s->hi[i] = to;
    enqueue(s, i);
    return TIDE_OK;
}

// ---- propagation ----

static tide_status close_ways(search *s, uint32_t k) {
    const tide_pair *pair = &s->of->pairs[k];
    const tide_pair_way *ways = s->of->ways + pair->first_way;
    const int64_t least = s->lo[pair->a] - s->hi[pair->b], most = s->hi[pair->a] - s->lo[pair->b];
    uint32_t first = s->first[k], last = s->last[k];
    while (first <= last && ways[first].hi < least) first++;
    while (first <= last && ways[last].lo > most) {
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
    TIDE_TRY(close_ways(s, k));
    const tide_pair *pair = &s->of->pairs[k];
    const int64_t lo = s->of->ways[pair->first_way + s->first[k]].lo, hi = s->of->ways[pair->first_way + s->last[k]].hi;
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

static int compare_crowd(const void *a, const void *b) {
    const crowd_entry *x = a, *y = b;
    return (x->lo < y->lo) - (x->lo > y->lo); // highest begin first
}

/// Those of the crowd that begin at or above some height must fit between it and the highest end among them.
static bool crowd_fits(search *s, size_t peak) {
    const uint32_t *alive = s->of->alive + s->of->first_alive[peak];
    const size_t n = s->of->first_alive[peak + 1] - s->of->first_alive[peak];
    for (size_t k = 0; k < n; k++) {
        const tide_rect *r = &s->p->rects[alive[k]];
        const uint32_t i = s->of->item_of[alive[k]];
        s->crowd[k] = (crowd_entry){s->lo[i] + (int64_t)r->lo_bytes, s->hi[i] + (int64_t)r->hi_bytes,
                                    (int64_t)(r->hi_bytes - r->lo_bytes)};
    }
    qsort(s->crowd, n, sizeof *s->crowd, compare_crowd);
    int64_t sum = 0, end = 0;
    for (size_t k = 0; k < n; k++) {
        sum += s->crowd[k].bytes;
        if (s->crowd[k].hi > end) end = s->crowd[k].hi;
        if (s->crowd[k].lo + sum > end) return false;
    }
    return true;
}

static bool crowds_fit(search *s) {
    for (size_t k = 0; k < s->of->n_peaks; k++) {
        if (!crowd_fits(s, k)) return false;
    }
    return true;
}

// ---- branching ----

typedef struct choice {
    uint32_t pair, part;
    bool high_first;
    int64_t least_move; // bytes that the nearer of the two halves moves an item
} choice;

/// Of the pairs that overlap when all items lie at their lowest, the one whose parting moves most. @return false: none
static bool choose(const search *s, choice *out) {
    bool found = false;
    for (uint32_t k = 0; k < s->of->n_pairs; k++) {
        if (s->first[k] == s->last[k]) continue; // propagation has seen to it
        const tide_pair *pair = &s->of->pairs[k];
        const tide_pair_way *ways = s->of->ways + pair->first_way;
        const int64_t d = s->lo[pair->a] - s->lo[pair->b];
        uint32_t part = s->first[k];
        while (part <= s->last[k] && ways[part].hi < d) part++;
        if (part <= s->last[k] && ways[part].lo <= d) continue; // disjoint as they are
        if (part == s->first[k] || part > s->last[k]) continue; // cannot be: bounds hold d inside the open range
        // Below `part` b has to rise, from it on a has to.
        const int64_t b_rises = d - ways[part - 1].hi, a_rises = ways[part].lo - d;
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
    return crowds_fit(s) ? TIDE_OK : TIDE_ERR_NO_SPACE;
}

/// Try the second halves of the decisions on the stack, the last one first. @return TIDE_ERR_NO_SPACE: none is left
static tide_status next_half(search *s, uint64_t *n_nodes) {
    while (s->n_stack > 0) {
        decision *d = &s->stack[s->n_stack - 1];
        go_back(s, d->n_undo);
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

// ---- the whole ----

static tide_status set_out(search *s, uint64_t capacity_bytes) {
    const int64_t capacity = capacity_bytes < TIDE_PAIR_FAR ? (int64_t)capacity_bytes : TIDE_PAIR_FAR;
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
        s->last[k] = s->of->pairs[k].n_ways - 1;
    }
    for (uint32_t k = 0; k < s->of->n_pairs; k++) TIDE_TRY(tighten(s, k));
    TIDE_TRY(propagate(s));
    return crowds_fit(s) ? TIDE_OK : TIDE_ERR_NO_SPACE;
}

static tide_status run(search *s, uint64_t capacity_bytes, uint64_t max_nodes, uint64_t deadline_ns,
                       tide_pairs_answer *answer, uint64_t *n_nodes) {
    const uint64_t from = *n_nodes;
    uint64_t next_look = from;
    *answer = TIDE_PAIRS_NONE;
    TIDE_TRY(set_out(s, capacity_bytes));
    choice c = {0};
    while (choose(s, &c)) {
        *answer = TIDE_PAIRS_LIMIT;
        if (*n_nodes - from >= max_nodes) return TIDE_OK;
        if (deadline_ns != 0 && *n_nodes >= next_look) {
            if (tide_now_ns() >= deadline_ns) return TIDE_OK;
            next_look = *n_nodes + NODES_PER_LOOK;
        }
        *answer = TIDE_PAIRS_NONE;
        TIDE_TRY(decide(s, &c, n_nodes));
    }
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
    s.crowd = tide_host_calloc(pairs->problem->n_rects, sizeof *s.crowd);
    tide_status st = TIDE_ERR_NOMEM;
    if (s.lo != NULL && s.first != NULL && s.queue != NULL && s.queued != NULL && s.crowd != NULL) {
        s.hi = s.lo + n;
        s.last = s.first + pairs->n_pairs;
        st = run(&s, capacity_bytes, max_nodes, deadline_ns, answer, n_nodes);
    }
    for (size_t i = 0; st == TIDE_OK && *answer == TIDE_PAIRS_FOUND && i < n; i++) offsets[i] = (uint64_t)s.lo[i];
    tide_host_free(s.lo);
    tide_host_free(s.first);
    tide_host_free(s.queue);
    tide_host_free(s.queued);
    tide_host_free(s.crowd);
    tide_host_free(s.trail);
    tide_host_free(s.stack);
    if (st == TIDE_ERR_NO_SPACE) return TIDE_OK; // nothing is left: *answer is NONE
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory to search %zu items pair by pair", n);
}
