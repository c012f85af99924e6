// SPDX-License-Identifier: MIT
//
// What the tests of core/memory share: a plain list of live memory that always tells the truth, and an observer that
// writes down what it hears.
#ifndef TIDE_TESTS_MEMORY_TEST_H
#define TIDE_TESTS_MEMORY_TEST_H

#include <pthread.h>

#include "core/base/text.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/block.h"
#include "tests/tide_test.h"

// ---- the plain list ----

enum { ORACLE_MAX = 256, ORACLE_EDGE = 512 };

typedef struct oracle_row {
    tide_memory mem;
    unsigned char fill;
} oracle_row;

/// Live memory in order of address.
typedef struct oracle {
    oracle_row rows[ORACLE_MAX];
    size_t n;
    uint64_t requested_bytes;
} oracle;

static inline uintptr_t oracle_begin(const tide_memory *m) { return (uintptr_t)m->data; }
static inline uintptr_t oracle_end(const tide_memory *m) { return (uintptr_t)m->data + m->requested_bytes; }

/// Both ends are written (all of it when it is small): an overlapping block would change them.
static inline void oracle_fill(const oracle_row *row) {
    unsigned char *p = row->mem.data;
    const size_t n = row->mem.requested_bytes, edge = n < ORACLE_EDGE ? n : ORACLE_EDGE;
    memset(p, row->fill, edge);
    memset(p + n - edge, row->fill, edge);
}

static inline bool oracle_intact(const oracle_row *row) {
    const unsigned char *p = row->mem.data;
    const size_t n = row->mem.requested_bytes, edge = n < ORACLE_EDGE ? n : ORACLE_EDGE;
    for (size_t i = 0; i < edge; i++) {
        if (p[i] != row->fill || p[n - 1 - i] != row->fill) return false;
    }
    return true;
}

/// Fails the test when `mem` meets memory that is still out.
static inline void oracle_add(oracle *o, const tide_memory *mem, unsigned char fill) {
    size_t at = 0;
    while (at < o->n && oracle_begin(&o->rows[at].mem) < oracle_begin(mem)) at++;
    if (at > 0) assert_true(oracle_end(&o->rows[at - 1].mem) <= oracle_begin(mem));
    if (at < o->n) assert_true(oracle_end(mem) <= oracle_begin(&o->rows[at].mem));
    assert_true(o->n < ORACLE_MAX);
    memmove(&o->rows[at + 1], &o->rows[at], (o->n - at) * sizeof o->rows[0]);
    o->rows[at] = (oracle_row){*mem, fill};
    o->n++;
    o->requested_bytes += mem->requested_bytes;
    oracle_fill(&o->rows[at]);
}

/// Takes row `at` out; fails the test when its bytes were changed by another block's owner.
static inline tide_memory oracle_remove(oracle *o, size_t at) {
    assert_true(oracle_intact(&o->rows[at]));
    const tide_memory mem = o->rows[at].mem;
    memmove(&o->rows[at], &o->rows[at + 1], (o->n - at - 1) * sizeof o->rows[0]);
    o->n--;
    o->requested_bytes -= mem.requested_bytes;
    return mem;
}

// ---- the listener ----

enum { HEARD_MAX = 4096 };

typedef struct heard_event {
    tide_memory_event event;
    char tag[32], scope[32], allocator[32];
} heard_event;

/// Every memory event in the order in which it came, with copies of its words.
typedef struct listener {
    pthread_mutex_t lock;
    heard_event events[HEARD_MAX];
    size_t n;
} listener;

static inline void listener_on_memory(void *self, const tide_memory_event *event) {
    listener *l = self;
    pthread_mutex_lock(&l->lock);
    if (l->n < HEARD_MAX) {
        heard_event *h = &l->events[l->n++];
        h->event = *event;
        snprintf(h->tag, sizeof h->tag, "%s", event->tag != NULL ? event->tag : "(none)");
        snprintf(h->scope, sizeof h->scope, "%s", event->scope != NULL ? event->scope->name : "(none)");
        snprintf(h->allocator, sizeof h->allocator, "%s", event->allocator);
    }
    pthread_mutex_unlock(&l->lock);
}

static inline tide_observer listener_observer(listener *l) {
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    return (tide_observer){.self = l, .on_memory = listener_on_memory};
}

// ---- shorthands ----

static inline tide_allocator_stats stats_of(const tide_allocator *a) {
    tide_allocator_stats s;
    tide_allocator_get_stats(a, &s);
    return s;
}

static inline tide_memory take(tide_allocator *a, size_t size_bytes, size_t align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = size_bytes, .align_bytes = align_bytes, .block_id = 1};
    tide_memory mem = {0};
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    return mem;
}

static inline void give(tide_allocator *a, const tide_memory *mem) { tide_allocator_release(a, mem, 0); }

static inline void assert_sound(const tide_allocator *a) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_allocator_check(a, &err), &err);
}

static inline tide_allocator *make_cpu(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    return a;
}

static inline tide_allocator *make_arena(tide_allocator *backing, size_t capacity_bytes, size_t align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_arena_create(backing, capacity_bytes, align_bytes, &a, &err), &err);
    return a;
}

#endif
