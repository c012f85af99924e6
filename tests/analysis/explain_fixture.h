// SPDX-License-Identifier: MIT
//
// The events of a small trace, replayed as plainly as can be: what the explainer and the lives of blocks are held
// against.
#ifndef TIDE_TESTS_EXPLAIN_FIXTURE_H
#define TIDE_TESTS_EXPLAIN_FIXTURE_H

#include "profiler/lives.h"
#include "tests/analysis/allocator_fixture.h"

enum { MAX_EVENTS = 4000 };

typedef struct block {
    uint64_t id, alloc_event, free_event, requested, reserved, address;
    const char *device, *name, *scope;
} block;

typedef struct segment {
    uint64_t alloc_event, free_event, address, bytes;
    const char *device;
} segment;

typedef struct history {
    tide_trace_event events[MAX_EVENTS];
    size_t n_events;
    block blocks[MAX_EVENTS];
    size_t n_blocks;
    segment segments[MAX_EVENTS];
    size_t n_segments;
    uint64_t bytes[MAX_EVENTS + 1]; ///< after each event
} history;

static inline void take(history *h, const tide_trace_event *e) {
    if (strcmp(e->op, "alloc") == 0) {
        h->blocks[h->n_blocks++] =
            (block){e->block_id, e->id,   UINT64_MAX, e->requested_bytes, e->reserved_bytes, e->address,
                    e->device,   e->name, e->scope};
    } else if (strcmp(e->op, "free_completed") == 0) {
        for (size_t i = 0; i < h->n_blocks; i++) {
            if (h->blocks[i].id == e->block_id && h->blocks[i].free_event == UINT64_MAX)
                h->blocks[i].free_event = e->id;
        }
    } else if (strcmp(e->op, "segment_alloc") == 0) {
        h->segments[h->n_segments++] = (segment){e->id, UINT64_MAX, e->address, e->reserved_bytes, e->device};
    } else if (strcmp(e->op, "segment_free") == 0) {
        for (size_t i = 0; i < h->n_segments; i++) {
            if (h->segments[i].address == e->address && h->segments[i].free_event == UINT64_MAX)
                h->segments[i].free_event = e->id;
        }
    }
}

static inline bool alive(const block *b, uint64_t event) { return b->alloc_event <= event && event < b->free_event; }

static inline void read_history(tide_trace *t, history *h) {
    tide_error err = TIDE_ERROR_INIT;
    memset(h, 0, sizeof *h);
    assert_tide_ok(tide_trace_events(t, 1, h->events, MAX_EVENTS, &h->n_events, &err), &err);
    assert_true(h->n_events < MAX_EVENTS);
    for (size_t i = 0; i < h->n_events; i++) {
        assert_int_equal(h->events[i].id, i + 1);
        take(h, &h->events[i]);
    }
    for (size_t i = 0; i < h->n_blocks; i++) {
        const block *b = &h->blocks[i];
        for (uint64_t k = b->alloc_event; k <= h->n_events && k < b->free_event; k++) h->bytes[k] += b->requested;
    }
}

/// Sums of a moment: live, reserved by blocks, holes, cached.
static inline void count(const history *h, uint64_t event, uint64_t out[4]) {
    memset(out, 0, 4 * sizeof *out);
    for (size_t i = 0; i < h->n_blocks; i++) {
        if (!alive(&h->blocks[i], event)) continue;
        out[0] += h->blocks[i].requested;
        out[1] += h->blocks[i].reserved;
    }
    for (size_t k = 0; k < h->n_segments; k++) {
        const segment *s = &h->segments[k];
        uint64_t used = 0;
        size_t n = 0;
        if (s->alloc_event > event || event >= s->free_event) continue;
        for (size_t i = 0; i < h->n_blocks; i++) {
            const block *b = &h->blocks[i];
            if (!alive(b, event) || b->address < s->address || b->address >= s->address + s->bytes) continue;
            used += b->reserved;
            n++;
        }
        out[n > 0 ? 2 : 3] += s->bytes - used;
    }
}

static inline const block *block_at(const history *h, uint64_t id, uint64_t event) {
    for (size_t i = 0; i < h->n_blocks; i++) {
        if (h->blocks[i].id == id && alive(&h->blocks[i], event)) return &h->blocks[i];
    }
    fail_msg("block %llu is not alive", (unsigned long long)id);
    return NULL;
}

static inline bool are_alike(const block *a, const block *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->scope, b->scope) == 0;
}

/// The peak of the whole trace without a block, or without all that are alike; the first event that has it.
static inline uint64_t peak_without(const history *h, const block *gone, bool alike, uint64_t *event, uint64_t *n) {
    static uint64_t comes[MAX_EVENTS + 2], goes[MAX_EVENTS + 2];
    uint64_t best = 0, away = 0;
    memset(comes, 0, sizeof comes);
    memset(goes, 0, sizeof goes);
    *event = *n = 0;
    for (size_t i = 0; i < h->n_blocks; i++) {
        const block *b = &h->blocks[i];
        if (alike ? !are_alike(b, gone) : b != gone) continue;
        ++*n;
        comes[b->alloc_event] += b->requested;
        if (b->free_event <= h->n_events) goes[b->free_event] += b->requested;
    }
    for (uint64_t k = 0; k <= h->n_events; k++) {
        away += comes[k];
        away -= goes[k];
        if (h->bytes[k] - away <= best) continue;
        best = h->bytes[k] - away;
        *event = k;
    }
    return best;
}

#endif
