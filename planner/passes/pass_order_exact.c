// SPDX-License-Identifier: MIT
//
// Best-first search over the states of a window. See pass_order_search.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_search.h"

enum { NO_STATE = -1, MAX_BYTES = 64 << 20 };

typedef struct node {
    uint64_t peak_bytes, live_bytes, hash;
    int32_t parent; // state it was reached from
    uint32_t via;   // by running this node of the window, and what was safe then
    uint32_t n_ran;
    bool done; // all that follows is in the queue
} node;

/// Cheapest first; of one price the farthest, then the one with the least alive, then the newest.
typedef struct entry {
    uint64_t peak_bytes, live_bytes;
    uint32_t n_ran, state;
} entry;

typedef struct search {
    const tide__window *w;
    uint32_t words;
    node *states;
    size_t n_states, cap_states;
    uint64_t *bits; // [n_states * 2 * words]
    size_t cap_bits;
    uint32_t *slots; // [cap_slots] hash table of states + 1; 0: free
    size_t cap_slots;
    entry *queue;
    size_t n_queue, cap_queue;
    uint64_t *room; // [2 * words] of the state being made
    bool full;
} search;

// ---- queue: a binary heap ----

static bool goes_first(const entry *a, const entry *b) {
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes;
    if (a->n_ran != b->n_ran) return a->n_ran > b->n_ran;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes;
    return a->state > b->state;
}

static tide_status push(search *s, entry e) {
    TIDE_TRY(tide_host_grow(&s->queue, &s->cap_queue, s->n_queue + 1, sizeof *s->queue));
    size_t i = s->n_queue++;
    for (; i > 0 && goes_first(&e, &s->queue[(i - 1) / 2]); i = (i - 1) / 2) s->queue[i] = s->queue[(i - 1) / 2];
    s->queue[i] = e;
    return TIDE_OK;
}

static entry pop(search *s) {
    const entry top = s->queue[0], last = s->queue[--s->n_queue];
    size_t i = 0;
    for (size_t child = 1; child < s->n_queue; child = 2 * i + 1) {
        if (child + 1 < s->n_queue && goes_first(&s->queue[child + 1], &s->queue[child])) child++;
        if (!goes_first(&s->queue[child], &last)) break;
        s->queue[i] = s->queue[child];
        i = child;
    }
    s->queue[i] = last;
    return top;
}

// ---- states by what has run ----

static uint64_t *bits_of(const search *s, uint32_t state) { return s->bits + (size_t)state * 2 * s->words; }

static tide_status grow_slots(search *s) {
    const size_t cap = s->cap_slots == 0 ? 256 : s->cap_slots * 2;
    uint32_t *slots = tide_host_calloc(cap, sizeof *slots);
    if (slots == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < s->n_states; i++) {
        size_t at = s->states[i].hash & (cap - 1);
        while (slots[at] != 0) at = (at + 1) & (cap - 1);
        slots[at] = (uint32_t)i + 1;
    }
    tide_host_free(s->slots);
    s->slots = slots;
    s->cap_slots = cap;
    return TIDE_OK;
}

/// The slot of the state with these nodes run, or the free one where it goes.
static uint32_t *find(const search *s, const tide__window_state *x) {
    size_t at = x->hash & (s->cap_slots - 1);
    for (; s->slots[at] != 0; at = (at + 1) & (s->cap_slots - 1)) {
        const uint32_t state = s->slots[at] - 1;
        if (s->states[state].hash == x->hash && memcmp(bits_of(s, state), x->ran, s->words * sizeof *x->ran) == 0)
            break;
    }
    return &s->slots[at];
}

/// Put the state into table and queue, unless it is known at this price or less.
static tide_status meet(search *s, const tide__window_state *x, int32_t parent, uint32_t via) {
    if (x->peak_bytes >= s->w->bound_bytes) return TIDE_OK;
    if (2 * (s->n_states + 1) > s->cap_slots) TIDE_TRY(grow_slots(s));
    uint32_t *slot = find(s, x);
    if (*slot == 0) {
        const size_t per_state = 2 * s->words * sizeof *s->bits + sizeof *s->states + sizeof *s->queue;
        if ((s->n_states + 1) * per_state > MAX_BYTES) {
            s->full = true;
            return TIDE_OK;
        }
        TIDE_TRY(tide_host_grow(&s->states, &s->cap_states, s->n_states + 1, sizeof *s->states));
        TIDE_TRY(tide_host_grow(&s->bits, &s->cap_bits, (s->n_states + 1) * 2 * s->words, sizeof *s->bits));
        memcpy(bits_of(s, (uint32_t)s->n_states), x->ran, 2 * s->words * sizeof *x->ran);
        s->states[s->n_states++] = (node){.peak_bytes = UINT64_MAX, .hash = x->hash, .n_ran = x->n_ran};
        *slot = (uint32_t)s->n_states;
    }
    node *known = &s->states[*slot - 1];
    if (known->peak_bytes <= x->peak_bytes) return TIDE_OK;
    known->peak_bytes = x->peak_bytes;
    known->live_bytes = x->live_bytes;
    known->parent = parent;
    known->via = via;
    return push(s, (entry){x->peak_bytes, x->live_bytes, x->n_ran, *slot - 1});
}

// ---- going on ----

static void load(const search *s, uint32_t state, tide__window_state *x) {
    const node *n = &s->states[state];
    x->ran = s->room;
    x->ready = s->room + s->words;
    memcpy(s->room, bits_of(s, state), 2 * s->words * sizeof *s->room);
    x->live_bytes = n->live_bytes;
    x->peak_bytes = n->peak_bytes;
    x->hash = n->hash;
    x->n_ran = n->n_ran;
}

static tide_status expand(search *s, uint32_t state) {
    tide__window_state x;
    load(s, state, &x);
    s->states[state].done = true;
    for (uint32_t i = 0; (i = tide__next_bit(bits_of(s, state) + s->words, i, s->w->n)) < s->w->n; i++) {
        if (!tide__window_is_choice(s->w, &x, i)) continue;
        const tide__look look = tide__window_look(s->w, &x, i);
        if (look.transient_bytes >= s->w->bound_bytes) continue;
        tide__window_run(s->w, &x, i, look);
        tide__window_run_safe(s->w, &x, NULL);
        TIDE_TRY(meet(s, &x, (int32_t)state, i));
        load(s, state, &x);
    }
    return TIDE_OK;
}

// ---- the way back ----

/// The states from the first to `goal`, then their steps once more: safe ones follow from the price, which is known.
static tide_status trace(const search *s, uint32_t goal, uint32_t *order) {
    size_t n = 0;
    for (int32_t at = (int32_t)goal; at != NO_STATE; at = s->states[at].parent) n++;
    uint32_t *way = tide_host_calloc(n, sizeof *way);
    if (way == NULL) return TIDE_ERR_NOMEM;
    size_t k = n;
    for (int32_t at = (int32_t)goal; at != NO_STATE; at = s->states[at].parent) way[--k] = (uint32_t)at;
    tide__window_state x = {.ran = s->room, .ready = s->room + s->words};
    tide__window_start(s->w, &x);
    tide__window_run_safe(s->w, &x, order);
    for (k = 1; k < n; k++) {
        const node *to = &s->states[way[k]];
        order[x.n_ran] = to->via;
        tide__window_run(s->w, &x, to->via, tide__window_look(s->w, &x, to->via));
        x.peak_bytes = to->peak_bytes;
        tide__window_run_safe(s->w, &x, order);
    }
    for (uint32_t i = 0; i < s->w->n; i++) order[i] = s->w->nodes[order[i]];
    tide_host_free(way);
    return TIDE_OK;
}

static tide_status run(search *s, uint32_t *order, tide__window_result *result) {
    tide__window_state x = {.ran = s->room, .ready = s->room + s->words};
    tide__window_start(s->w, &x);
    tide__window_run_safe(s->w, &x, NULL);
    TIDE_TRY(meet(s, &x, NO_STATE, 0));
    while (s->n_queue > 0) {
        const entry e = pop(s);
        const node *n = &s->states[e.state];
        if (n->done || n->peak_bytes != e.peak_bytes) continue; // found again at a better price
        if (n->n_ran == s->w->n) {
            result->found = result->exact = true;
            result->peak_bytes = n->peak_bytes;
            return trace(s, e.state, order);
        }
        if (s->full || *s->w->budget == 0) return TIDE_OK;
        TIDE_TRY(expand(s, e.state));
    }
    result->exact = !s->full;
    return TIDE_OK;
}

tide_status tide__window_exact(const tide__window *w, uint32_t *order, tide__window_result *result, tide_error *err) {
    *result = (tide__window_result){0};
    search s = {.w = w, .words = tide__window_words(w)};
    s.room = tide_host_calloc(s.words + 1, 2 * sizeof *s.room);
    const tide_status st = s.room != NULL ? run(&s, order, result) : TIDE_ERR_NOMEM;
    result->n_states = s.n_states;
    tide_host_free(s.states);
    tide_host_free(s.bits);
    tide_host_free(s.slots);
    tide_host_free(s.queue);
    tide_host_free(s.room);
    return st == TIDE_OK ? TIDE_OK : TIDE_FAIL(err, st, "no memory for an order of %u steps", w->n);
}
