// SPDX-License-Identifier: MIT
//
// What the tests of core/memory share: a plain list of live memory that always tells the truth, and an observer that
// writes down what it hears.
#ifndef TIDE_TESTS_MEMORY_TEST_H
#define TIDE_TESTS_MEMORY_TEST_H

#include <pthread.h>

#include "core/base/text.h"
#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/block.h"
#include "tests/tide_test.h"

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN true
#endif
#endif
#ifndef HAS_TSAN
#define HAS_TSAN false
#endif

// ---- bytes ----
//
// Of the host, or of a device that the host cannot touch: then on the device's stream 0, and waited for. False: the
// device refused.

static inline bool bytes_fill(tide_device d, void *at, unsigned char byte, size_t n) {
    if (d.type == TIDE_DEVICE_CPU) return memset(at, byte, n) != NULL;
    return tide_device_fill(d, 0, at, byte, n, NULL) == TIDE_OK && tide_stream_sync(d, 0, NULL) == TIDE_OK;
}

static inline bool bytes_read(tide_device d, void *to, const void *from, size_t n) {
    if (d.type == TIDE_DEVICE_CPU) return memcpy(to, from, n) != NULL;
    return tide_device_copy(d, 0, TIDE_COPY_DEVICE_TO_HOST, to, from, n, NULL) == TIDE_OK &&
           tide_stream_sync(d, 0, NULL) == TIDE_OK;
}

/// All of them are `byte`.
static inline bool bytes_are(tide_device d, const void *at, unsigned char byte, size_t n) {
    unsigned char *copy = malloc(n);
    bool same = copy != NULL && bytes_read(d, copy, at, n);
    for (size_t i = 0; same && i < n; i++) same = copy[i] == byte;
    free(copy);
    return same;
}

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
    tide_device device; ///< of the memory
} oracle;

static inline uintptr_t oracle_begin(const tide_memory *m) { return (uintptr_t)m->data; }
static inline uintptr_t oracle_end(const tide_memory *m) { return (uintptr_t)m->data + m->requested_bytes; }

/// Both ends are written (all of it when it is small): an overlapping block would change them.
static inline bool oracle_fill(tide_device d, const oracle_row *row) {
    unsigned char *p = row->mem.data;
    const size_t n = row->mem.requested_bytes, edge = n < ORACLE_EDGE ? n : ORACLE_EDGE;
    return bytes_fill(d, p, row->fill, edge) && bytes_fill(d, p + n - edge, row->fill, edge);
}

static inline bool oracle_intact(tide_device d, const oracle_row *row) {
    const unsigned char *p = row->mem.data;
    const size_t n = row->mem.requested_bytes, edge = n < ORACLE_EDGE ? n : ORACLE_EDGE;
    return bytes_are(d, p, row->fill, edge) && bytes_are(d, p + n - edge, row->fill, edge);
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
    assert_true(oracle_fill(o->device, &o->rows[at]));
}

/// Takes row `at` out; fails the test when its bytes were changed by another block's owner.
static inline tide_memory oracle_remove(oracle *o, size_t at) {
    assert_true(oracle_intact(o->device, &o->rows[at]));
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
