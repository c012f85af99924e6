// SPDX-License-Identifier: MIT
//
// Beam search over the states of a window, for those that are too wide for the exact one. See pass_order_search.h.
//
//     beam:   [state][state] … at most `width`, each a set of nodes that have run
//     next:   every ready node of every state, by (peak, alive); the best `width` that differ are the next beam
//     trail:  one entry per step taken: node and the entry before it; the beam's states hold the end of theirs
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_search.h"

#define NO_ENTRY UINT32_MAX

typedef struct crumb {
    uint32_t node, before;
} crumb;

typedef struct choice {
    uint64_t peak_bytes, after_bytes;
    uint32_t state, node; // of the beam; of the window
    tide__look look;
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
    crumb *trail;
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

static tide_status leave_crumb(beam *b, uint32_t node, uint32_t *end) {
    TIDE_TRY(tide_host_grow(&b->trail, &b->cap_trail, b->n_trail + 1, sizeof *b->trail));
    b->trail[b->n_trail] = (crumb){node, *end};
    *end = (uint32_t)b->n_trail++;
    return TIDE_OK;
}

static tide_status run_safe(beam *b, tide__window_state *s, uint32_t *end) {
    const uint32_t from = s->n_ran;
    tide__window_run_safe(b->w, s, b->safe);
    for (uint32_t i = from; i < s->n_ran; i++) TIDE_TRY(leave_crumb(b, b->safe[i], end));
    return TIDE_OK;
}

static tide_status list_choices(beam *b) {
    b->n_choices = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        const tide__window_state *s = &b->states[k];
        for (uint32_t i = 0; (i = tide__next_bit(s->ready, i, b->w->n)) < b->w->n; i++) {
            if (!tide__window_is_choice(b->w, s, i)) continue;
            const tide__look look = tide__window_look(b->w, s, i);
            const uint64_t peak = look.transient_bytes > s->peak_bytes ? look.transient_bytes : s->peak_bytes;
            if (peak >= b->best_bytes) continue;
            TIDE_TRY(tide_host_grow(&b->choices, &b->cap_choices, b->n_choices + 1, sizeof *b->choices));
            b->choices[b->n_choices++] = (choice){peak, look.after_bytes, k, i, look};
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
    tide__window_run(b->w, s, c->node, c->look);
    const size_t n_trail = b->n_trail;
    TIDE_TRY(leave_crumb(b, c->node, &end));
    TIDE_TRY(run_safe(b, s, &end));
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
    tide__window_start(b->w, s);
    TIDE_TRY(run_safe(b, s, &end));
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
    beam b = {
        .w = w, .words = tide__window_words(w), .width = width, .best_bytes = w->bound_bytes, .best_end = NO_ENTRY};
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
