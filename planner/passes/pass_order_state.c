// SPDX-License-Identifier: MIT
//
// States of a window: which of its nodes have run, which are ready, what is alive. See pass_order_search.h.
#include <string.h>

#include "planner/passes/pass_order_search.h"

uint32_t tide__next_bit(const uint64_t *bits, uint32_t i, uint32_t n) {
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

void tide__window_start(const tide__window *w, tide__window_state *s) {
    const uint32_t words = tide__window_words(w);
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

/// Nothing but late nodes stands before it any more.
static bool is_near(const tide__window *w, const tide__ran *ran, uint32_t node) {
    const tide__span before = w->m->nodes[node].before;
    for (uint32_t k = 0; k < before.n; k++) {
        const uint32_t other = w->m->before[before.first + k];
        if (!w->m->nodes[other].late && !tide__has_ran(ran, other)) return false;
    }
    return true;
}

bool tide__window_is_choice(const tide__window *w, const tide__window_state *s, uint32_t i) {
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

tide__look tide__window_look(const tide__window *w, const tide__window_state *s, uint32_t i) {
    const tide__ran ran = {.bits = s->ran, .place = w->place};
    const uint64_t cost = w->m->nodes[w->nodes[i]].cost;
    *w->budget -= cost < *w->budget ? cost : *w->budget;
    return tide__order_model_look(w->m, &ran, w->nodes[i], s->live_bytes);
}

void tide__window_run(const tide__window *w, tide__window_state *s, uint32_t i, tide__look look) {
    set_bit(s->ran, i);
    clear_bit(s->ready, i);
    s->hash ^= key_of(i);
    s->n_ran++;
    s->live_bytes = look.after_bytes;
    if (look.transient_bytes > s->peak_bytes) s->peak_bytes = look.transient_bytes;
    const tide__ran ran = {.bits = s->ran, .place = w->place};
    const tide__span behind = w->m->nodes[w->nodes[i]].behind;
    for (uint32_t k = 0; k < behind.n; k++) {
        const uint32_t node = w->m->behind[behind.first + k];
        if (w->place[node] >= 0 && is_ready(w, &ran, node)) set_bit(s->ready, (uint32_t)w->place[node]);
    }
}

void tide__window_run_safe(const tide__window *w, tide__window_state *s, uint32_t *trace) {
    for (uint32_t i = 0; (i = tide__next_bit(s->ready, i, w->n)) < w->n;) {
        const tide__look look = tide__window_look(w, s, i);
        if (look.after_bytes > s->live_bytes || look.transient_bytes > s->peak_bytes) {
            i++;
            continue;
        }
        if (trace != NULL) trace[s->n_ran] = i;
        tide__window_run(w, s, i, look);
        i = 0; // what was not safe may be by now
    }
}
