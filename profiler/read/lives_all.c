// SPDX-License-Identifier: MIT
//
// What a peak would be without all blocks of many sites at once: one replay that counts what of them is alive. See
// lives.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/lives.h"
#include "profiler/read/moments_internal.h"

typedef struct site {
    uint32_t name;
    const char *scope; // scopes go by their texts: an operator's has another number in each run
} site;

typedef struct walk {
    tide_trace *t;
    site *sites; // [n] in order, owned
    size_t n;
    const tide_trace_less *less; // [n_less]
    size_t n_less;
    int64_t away; // of what is alive
    int64_t peak, event;
} walk;

static int compare(const void *a, const void *b) {
    const site *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return strcmp(x->scope, y->scope);
}

static const char *scope_text(const walk *w, uint32_t scope) { return tide__trace_scope_of(w->t, scope).name; }

/// How much of the block is not there.
static int64_t away_of(const walk *w, const tide__live_block *b) {
    const site of = {(uint32_t)b->tag_id, scope_text(w, (uint32_t)b->scope_id)};
    if (w->n > 0 && bsearch(&of, w->sites, w->n, sizeof of, compare) != NULL) return b->requested_bytes;
    for (size_t i = 0; i < w->n_less; i++) {
        if (w->less[i].block_id == (uint64_t)b->block_id && w->less[i].alloc_event == (uint64_t)b->alloc_event)
            return (int64_t)w->less[i].bytes;
    }
    return 0;
}

static void on_gone(void *ctx, const tide__live_block *block, const tide__event *end) {
    walk *w = ctx;
    (void)end;
    w->away -= away_of(w, block);
}

/// Only what is allocated raises the sum.
static void note(walk *w, int64_t live_bytes, int64_t event) {
    if (live_bytes - w->away <= w->peak) return;
    w->peak = live_bytes - w->away;
    w->event = event;
}

static tide_status on_begin(void *ctx, const tide__replay *r) {
    walk *w = ctx;
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) w->away += away_of(w, b);
    note(w, r->series[0].live_bytes, r->last_event);
    w->t->at.replay.on_gone = on_gone;
    w->t->at.replay.ctx = w;
    return TIDE_OK;
}

static tide_status on_event(void *ctx, const tide__replay *r, const tide__event *e, size_t series) {
    walk *w = ctx;
    if (e->op != TIDE_MEM_ALLOC || series == 0) return TIDE_OK;
    const tide__live_block *b = tide__replay_find(r, e->block_id);
    if (b != NULL && b->alloc_event == e->id) w->away += away_of(w, b);
    note(w, r->series[0].live_bytes, e->id);
    return TIDE_OK;
}

tide_status tide_trace_peak_without_all(tide_trace *t, uint64_t first, uint64_t last, const tide_trace_alike *sites,
                                        size_t n, const tide_trace_less *less, size_t n_less, uint64_t *bytes,
                                        uint64_t *event, tide_error *err) {
    walk w = {.t = t, .n = n, .less = less, .n_less = n_less, .peak = -1};
    TIDE_TRY(TIDE_NEW(&w.sites, n + 1, err, "for the peak of '%s'", t->path));
    for (size_t i = 0; i < n; i++) w.sites[i] = (site){sites[i].name, scope_text(&w, sites[i].scope)};
    if (n > 1) qsort(w.sites, n, sizeof *w.sites, compare);
    const tide_status st = tide__trace_walk(t, (int64_t)first, (int64_t)last, on_begin, on_event, &w, err);
    t->at.replay.on_gone = NULL;
    t->at.replay.ctx = NULL;
    tide_host_free(w.sites);
    TIDE_TRY(st);
    *bytes = (uint64_t)w.peak;
    *event = (uint64_t)w.event;
    return TIDE_OK;
}
