// SPDX-License-Identifier: MIT
//
// window: see pass_order_window.h.
#include "planner/passes/pass_order_window.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"

// ---- states of a window: which of its nodes have run, which are ready, what is alive ----

/// Bits of a state: [words] nodes that have run, [words] nodes that are ready.
static inline uint32_t words_of(const tide__window *w) { return (w->n + 63) / 64; }
static inline bool has_bit(const uint64_t *bits, uint32_t i) { return (bits[i / 64] >> (i % 64) & 1u) != 0; }

/// First set bit at or after `i`; `n` when there is none.
static uint32_t next_bit(const uint64_t *bits, uint32_t i, uint32_t n) {
    while (i < n) {
        const uint64_t rest = bits[i / 64] >> (i % 64);
        if (rest != 0) {
            i += (uint32_t)__builtin_ctzll(rest);
            return i < n ? i : n;
        }
        i = (i / 64 + 1) * 64;
    }
    return n;
}

static void set_bit(uint64_t *bits, uint32_t i) { bits[i / 64] |= UINT64_C(1) << (i % 64); }
static void clear_bit(uint64_t *bits, uint32_t i) { bits[i / 64] &= ~(UINT64_C(1) << (i % 64)); }

/// A state that is being changed.
typedef struct tide__window_state {
    uint64_t *ran, *ready;
    uint64_t live_bytes, peak_bytes, hash;
    uint32_t n_ran;
} tide__window_state;

/// A number for the i-th node; a set's hash is the exclusive or of its nodes' (Zobrist). Mixing as in splitmix64.
static uint64_t key_of(uint32_t i) {
    uint64_t z = (i + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static bool is_ready(const tide__window *w, const tide__ran *ran, uint32_t node) {
    const tide__span before = w->m->nodes[node].before;
    for (uint32_t k = 0; k < before.n; k++) {
        if (!tide__has_ran(ran, w->m->before[before.first + k])) return false;
    }
    return true;
}

static void start(const tide__window *w, tide__window_state *s) {
    const uint32_t words = words_of(w);
    memset(s->ran, 0, words * sizeof *s->ran);
    memset(s->ready, 0, words * sizeof *s->ready);
    const tide__ran ran = {.bits = s->ran, .place = w->place};
    for (uint32_t i = 0; i < w->n; i++) {
        if (is_ready(w, &ran, w->nodes[i])) set_bit(s->ready, i);
    }
    s->live_bytes = w->live_bytes;
    s->peak_bytes = w->floor_bytes;
    s->hash = 0;
    s->n_ran = 0;
}

/// Whether all nodes before it have run, but for late ones.
static bool is_near(const tide__window *w, const tide__ran *ran, uint32_t node) {
    const tide__span before = w->m->nodes[node].before;
    for (uint32_t k = 0; k < before.n; k++) {
        const uint32_t other = w->m->before[before.first + k];
        if (!w->m->nodes[other].late && !tide__has_ran(ran, other)) return false;
    }
    return true;
}

/// Whether the i-th node, which is ready, is worth a choice: no late node that is not wanted yet.
static bool is_choice(const tide__window *w, const tide__window_state *s, uint32_t i) {
    const tide__model_node *n = &w->m->nodes[w->nodes[i]];
    if (!n->late) return true;
    const tide__ran ran = {.bits = s->ran, .place = w->place};
    bool has_inside = false;
    for (uint32_t k = 0; k < n->behind.n; k++) {
        const uint32_t node = w->m->behind[n->behind.first + k];
        if (w->place[node] < 0) continue;
        if (is_near(w, &ran, node)) return true;
        has_inside = true;
    }
    return !has_inside; // all that wait stand behind the window: it has to run some time
}

static tide__effect effect_of(const tide__window *w, const tide__window_state *s, uint32_t i) {
    const tide__ran ran = {.bits = s->ran, .place = w->place};
    const uint64_t cost = w->m->nodes[w->nodes[i]].cost;
    *w->budget -= cost < *w->budget ? cost : *w->budget;
    return tide__order_model_effect(w->m, &ran, w->nodes[i], s->live_bytes);
}

/// Run the i-th node.
static void run_node(const tide__window *w, tide__window_state *s, uint32_t i, tide__effect effect) {
    set_bit(s->ran, i);
    clear_bit(s->ready, i);
    s->hash ^= key_of(i);
    s->n_ran++;
    s->live_bytes = effect.after_bytes;
    if (effect.transient_bytes > s->peak_bytes) s->peak_bytes = effect.transient_bytes;
    const tide__ran ran = {.bits = s->ran, .place = w->place};
    const tide__span behind = w->m->nodes[w->nodes[i]].behind;
    for (uint32_t k = 0; k < behind.n; k++) {
        const uint32_t node = w->m->behind[behind.first + k];
        if (w->place[node] >= 0 && is_ready(w, &ran, node)) set_bit(s->ready, (uint32_t)w->place[node]);
    }
}

/// Run all safe steps; into trace[s->n_ran …] (may be NULL) the nodes' indices in the window.
static void run_safe(const tide__window *w, tide__window_state *s, uint32_t *trace) {
    for (uint32_t i = 0; (i = next_bit(s->ready, i, w->n)) < w->n;) {
        const tide__effect effect = effect_of(w, s, i);
        if (effect.after_bytes > s->live_bytes || effect.transient_bytes > s->peak_bytes) {
            i++;
            continue;
        }
        if (trace != NULL) trace[s->n_ran] = i;
        run_node(w, s, i, effect);
        i = 0; // what was not safe may be by now
    }
}

// ---- exact: best first ----

enum { NO_STATE = -1, MAX_BYTES = 64 << 20 };

typedef struct known_state {
    uint64_t peak_bytes, live_bytes, hash;
    int32_t parent; // state it was reached from
    uint32_t via;   // by running this node of the window, and what was safe then
    uint32_t n_ran;
    bool done; // all that follows is in the queue
} known_state;

/// Order of the queue: lowest peak, then most nodes run, then fewest bytes alive, then newest.
typedef struct entry {
    uint64_t peak_bytes, live_bytes;
    uint32_t n_ran, state;
} entry;

typedef struct search {
    const tide__window *w;
    uint32_t words;
    known_state *states;
    size_t n_states, cap_states;
    uint64_t *bits; // [n_states * 2 * words]
    size_t cap_bits;
    tide_index index; // of states, by what has run
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

static uint64_t hash_of(const void *ctx, uint32_t state) { return ((const search *)ctx)->states[state].hash; }

/// Whether the same nodes have run in both.
static bool is_state(const void *ctx, uint32_t state, const void *other) {
    const search *s = ctx;
    const tide__window_state *x = other;
    return s->states[state].hash == x->hash && memcmp(bits_of(s, state), x->ran, s->words * sizeof *x->ran) == 0;
}

/// Put the state into table and queue, unless it is known with this peak or a lower one.
static tide_status meet(search *s, const tide__window_state *x, int32_t parent, uint32_t via) {
    if (x->peak_bytes >= s->w->bound_bytes) return TIDE_OK;
    uint32_t state = tide_index_find(&s->index, x->hash, s, is_state, x);
    if (state == TIDE_INDEX_NONE) {
        const size_t per_state = 2 * s->words * sizeof *s->bits + sizeof *s->states + sizeof *s->queue;
        if ((s->n_states + 1) * per_state > MAX_BYTES) {
            s->full = true;
            return TIDE_OK;
        }
        TIDE_TRY(tide_host_grow(&s->states, &s->cap_states, s->n_states + 1, sizeof *s->states));
        TIDE_TRY(tide_host_grow(&s->bits, &s->cap_bits, (s->n_states + 1) * 2 * s->words, sizeof *s->bits));
        memcpy(bits_of(s, (uint32_t)s->n_states), x->ran, 2 * s->words * sizeof *x->ran);
        state = (uint32_t)s->n_states;
        s->states[state] = (known_state){.peak_bytes = UINT64_MAX, .hash = x->hash, .n_ran = x->n_ran};
        TIDE_TRY(tide_index_put(&s->index, state, s, hash_of));
        s->n_states++;
    }
    known_state *known = &s->states[state];
    if (known->peak_bytes <= x->peak_bytes) return TIDE_OK;
    known->peak_bytes = x->peak_bytes;
    known->live_bytes = x->live_bytes;
    known->parent = parent;
    known->via = via;
    return push(s, (entry){x->peak_bytes, x->live_bytes, x->n_ran, state});
}

// ---- expanding a state ----

static void load(const search *s, uint32_t state, tide__window_state *x) {
    const known_state *n = &s->states[state];
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
    for (uint32_t i = 0; (i = next_bit(bits_of(s, state) + s->words, i, s->w->n)) < s->w->n; i++) {
        if (!is_choice(s->w, &x, i)) continue;
        const tide__effect effect = effect_of(s->w, &x, i);
        if (effect.transient_bytes >= s->w->bound_bytes) continue;
        run_node(s->w, &x, i, effect);
        run_safe(s->w, &x, NULL);
        TIDE_TRY(meet(s, &x, (int32_t)state, i));
        load(s, state, &x);
    }
    return TIDE_OK;
}

// ---- the path to a state ----

/// The states from the first to `goal`, then their steps once more: safe ones follow from the price, which is known.
static tide_status trace(const search *s, uint32_t goal, uint32_t *order) {
    size_t n = 0;
    for (int32_t at = (int32_t)goal; at != NO_STATE; at = s->states[at].parent) n++;
    uint32_t *way = tide_host_calloc(n, sizeof *way);
    if (way == NULL) return TIDE_ERR_NOMEM;
    size_t k = n;
    for (int32_t at = (int32_t)goal; at != NO_STATE; at = s->states[at].parent) way[--k] = (uint32_t)at;
    tide__window_state x = {.ran = s->room, .ready = s->room + s->words};
    start(s->w, &x);
    run_safe(s->w, &x, order);
    for (k = 1; k < n; k++) {
        const known_state *to = &s->states[way[k]];
        order[x.n_ran] = to->via;
        run_node(s->w, &x, to->via, effect_of(s->w, &x, to->via));
        x.peak_bytes = to->peak_bytes;
        run_safe(s->w, &x, order);
    }
    for (uint32_t i = 0; i < s->w->n; i++) order[i] = s->w->nodes[order[i]];
    tide_host_free(way);
    return TIDE_OK;
}

static tide_status run(search *s, uint32_t *order, tide__window_result *result) {
    tide__window_state x = {.ran = s->room, .ready = s->room + s->words};
    start(s->w, &x);
    run_safe(s->w, &x, NULL);
    TIDE_TRY(meet(s, &x, NO_STATE, 0));
    while (s->n_queue > 0) {
        const entry e = pop(s);
        const known_state *n = &s->states[e.state];
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
    search s = {.w = w, .words = words_of(w)};
    s.room = tide_host_calloc(s.words + 1, 2 * sizeof *s.room);
    const tide_status st = s.room != NULL ? run(&s, order, result) : TIDE_ERR_NOMEM;
    result->n_states = s.n_states;
    tide_host_free(s.states);
    tide_host_free(s.bits);
    tide_index_deinit(&s.index);
    tide_host_free(s.queue);
    tide_host_free(s.room);
    return st == TIDE_OK ? TIDE_OK : TIDE_FAIL(err, st, "no memory for an order of %u steps", w->n);
}

// ---- beam: for windows that are too wide for the exact search ----
//
//     beam:   [state][state] … at most `width`, each a set of nodes that have run
//     next:   every ready node of every state, by (peak, alive); the best `width` that differ are the next beam
//     trail:  one entry per step taken: node and the entry before it; the beam's states hold the end of theirs

#define NO_ENTRY UINT32_MAX

typedef struct trail_entry {
    uint32_t node, before;
} trail_entry;

typedef struct choice {
    uint64_t peak_bytes, after_bytes;
    uint32_t state, node; // of the beam; of the window
    tide__effect effect;
} choice;

typedef struct beam {
    const tide__window *w;
    uint32_t words, width;
    tide__window_state *states, *next; // [width]; what they point to is in bits
    uint32_t *ends, *next_ends;        // [width] of the trail
    uint32_t n, n_next;
    uint64_t *bits;
    choice *choices;
    size_t n_choices, cap_choices;
    trail_entry *trail;
    size_t n_trail, cap_trail;
    uint32_t *safe; // [n] what was safe
    uint64_t best_bytes;
    uint32_t best_end; // of the complete order with the smallest peak
    uint64_t n_states;
} beam;

static int compare_choices(const void *a, const void *b) {
    const choice *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes) return x->peak_bytes < y->peak_bytes ? -1 : 1;
    if (x->after_bytes != y->after_bytes) return x->after_bytes < y->after_bytes ? -1 : 1;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static tide_status add_to_trail(beam *b, uint32_t node, uint32_t *end) {
    TIDE_TRY(tide_host_grow(&b->trail, &b->cap_trail, b->n_trail + 1, sizeof *b->trail));
    b->trail[b->n_trail] = (trail_entry){node, *end};
    *end = (uint32_t)b->n_trail++;
    return TIDE_OK;
}

static tide_status run_all_safe(beam *b, tide__window_state *s, uint32_t *end) {
    const uint32_t from = s->n_ran;
    run_safe(b->w, s, b->safe);
    for (uint32_t i = from; i < s->n_ran; i++) TIDE_TRY(add_to_trail(b, b->safe[i], end));
    return TIDE_OK;
}

static tide_status list_choices(beam *b) {
    b->n_choices = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        const tide__window_state *s = &b->states[k];
        for (uint32_t i = 0; (i = next_bit(s->ready, i, b->w->n)) < b->w->n; i++) {
            if (!is_choice(b->w, s, i)) continue;
            const tide__effect effect = effect_of(b->w, s, i);
            const uint64_t peak = effect.transient_bytes > s->peak_bytes ? effect.transient_bytes : s->peak_bytes;
            if (peak >= b->best_bytes) continue;
            TIDE_TRY(tide_host_grow(&b->choices, &b->cap_choices, b->n_choices + 1, sizeof *b->choices));
            b->choices[b->n_choices++] = (choice){peak, effect.after_bytes, k, i, effect};
        }
    }
    qsort(b->choices, b->n_choices, sizeof *b->choices, compare_choices);
    return TIDE_OK;
}

static bool is_known(const beam *b, const tide__window_state *s) {
    for (uint32_t k = 0; k < b->n_next; k++) {
        if (b->next[k].hash == s->hash && memcmp(b->next[k].ran, s->ran, b->words * sizeof *s->ran) == 0) return true;
    }
    return false;
}

static void copy_state(const beam *b, const tide__window_state *from, tide__window_state *to) {
    uint64_t *const ran = to->ran, *const ready = to->ready;
    *to = *from;
    to->ran = ran;
    to->ready = ready;
    memcpy(ran, from->ran, b->words * sizeof *ran);
    memcpy(ready, from->ready, b->words * sizeof *ready);
}

/// One choice into the next beam; complete orders go into `best`.
static tide_status take(beam *b, const choice *c) {
    tide__window_state *s = &b->next[b->n_next];
    uint32_t end = b->ends[c->state];
    copy_state(b, &b->states[c->state], s);
    run_node(b->w, s, c->node, c->effect);
    const size_t n_trail = b->n_trail;
    TIDE_TRY(add_to_trail(b, c->node, &end));
    TIDE_TRY(run_all_safe(b, s, &end));
    b->n_states++;
    if (s->n_ran == b->w->n) {
        if (s->peak_bytes < b->best_bytes) {
            b->best_bytes = s->peak_bytes;
            b->best_end = end;
        }
        return TIDE_OK;
    }
    if (is_known(b, s)) {
        b->n_trail = n_trail;
        return TIDE_OK;
    }
    b->next_ends[b->n_next++] = end;
    return TIDE_OK;
}

static void turn(beam *b) {
    tide__window_state *const states = b->states;
    uint32_t *const ends = b->ends;
    b->states = b->next;
    b->ends = b->next_ends;
    b->n = b->n_next;
    b->next = states;
    b->next_ends = ends;
    b->n_next = 0;
}

static tide_status go(beam *b) {
    tide__window_state *s = &b->states[0];
    uint32_t end = NO_ENTRY;
    start(b->w, s);
    TIDE_TRY(run_all_safe(b, s, &end));
    if (s->n_ran == b->w->n && s->peak_bytes < b->best_bytes) {
        b->best_bytes = s->peak_bytes;
        b->best_end = end;
    }
    b->ends[0] = end;
    b->n = s->n_ran < b->w->n;
    while (b->n > 0 && *b->w->budget > 0) {
        TIDE_TRY(list_choices(b));
        for (size_t i = 0; i < b->n_choices && b->n_next < b->width; i++) {
            if (b->choices[i].peak_bytes < b->best_bytes) TIDE_TRY(take(b, &b->choices[i]));
        }
        turn(b);
    }
    return TIDE_OK;
}

static tide_status beam_init(beam *b) {
    const size_t per_state = 2 * (size_t)b->words;
    b->states = tide_host_calloc(b->width, 2 * sizeof *b->states);
    b->ends = tide_host_calloc(b->width, 2 * sizeof *b->ends);
    b->bits = tide_host_calloc(b->width, 2 * per_state * sizeof *b->bits);
    b->safe = tide_host_calloc(b->w->n + 1, sizeof *b->safe);
    if (b->states == NULL || b->ends == NULL || b->bits == NULL || b->safe == NULL) return TIDE_ERR_NOMEM;
    for (uint32_t k = 0; k < 2 * b->width; k++) {
        b->states[k].ran = b->bits + k * per_state;
        b->states[k].ready = b->states[k].ran + b->words;
    }
    b->next = b->states + b->width;
    b->next_ends = b->ends + b->width;
    return TIDE_OK;
}

static void fill_order(const beam *b, uint32_t *order) {
    uint32_t at = b->best_end;
    for (uint32_t i = b->w->n; i-- > 0; at = b->trail[at].before) order[i] = b->w->nodes[b->trail[at].node];
}

tide_status tide__window_beam(const tide__window *w, uint32_t width, uint32_t *order, tide__window_result *result,
                              tide_error *err) {
    *result = (tide__window_result){0};
    beam b = {.w = w, .words = words_of(w), .width = width, .best_bytes = w->bound_bytes, .best_end = NO_ENTRY};
    tide_status st = beam_init(&b);
    tide__window_state *const states = b.states;
    uint32_t *const ends = b.ends;
    if (st == TIDE_OK) st = go(&b);
    if (st == TIDE_OK && b.best_end != NO_ENTRY) {
        result->found = true;
        result->peak_bytes = b.best_bytes;
        fill_order(&b, order);
    }
    result->n_states = b.n_states;
    tide_host_free(states);
    tide_host_free(ends);
    tide_host_free(b.bits);
    tide_host_free(b.safe);
    tide_host_free(b.choices);
    tide_host_free(b.trail);
    return st == TIDE_OK ? TIDE_OK : TIDE_FAIL(err, st, "no memory for an order of %u steps", w->n);
}
