// SPDX-License-Identifier: MIT
//
// What the tests of devices share: a gate that holds a stream back until the test opens it, and short names for calls
// that must succeed.
#ifndef TIDE_TESTS_DEVICE_TEST_H
#define TIDE_TESTS_DEVICE_TEST_H

#include <pthread.h>
#include <time.h>

#include "core/device/backend.h"
#include "tests/tide_test.h"

/// A door in a stream: the stream's thread stands in it until it is opened.
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered, open, left;
} gate;

#define GATE_INIT                                                                                                      \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }

/// For tide_device_call.
static TIDE_UNUSED void gate_pass(void *arg) {
    gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->entered = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    g->left = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static TIDE_UNUSED void gate_wait_entered(gate *g) {
    pthread_mutex_lock(&g->lock);
    while (!g->entered) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static TIDE_UNUSED void gate_open(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/// Long enough for a wrong return to be seen; right code passes however long it takes.
static TIDE_UNUSED void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL); }

/// Thread body: opens the gate after a while.
static TIDE_UNUSED void *gate_open_later(void *arg) {
    pause_briefly();
    gate_open(arg);
    return NULL;
}

// Calls on a device that must succeed.

static TIDE_UNUSED tide_stream_id new_stream(tide_device d) {
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id id = 0;
    assert_tide_ok(tide_stream_create(d, &id, &err), &err);
    assert_true(id != 0);
    return id;
}

static TIDE_UNUSED tide_event_id new_event(tide_device d) {
    tide_error err = TIDE_ERROR_INIT;
    tide_event_id id = 0;
    assert_tide_ok(tide_event_create(d, &id, &err), &err);
    assert_true(id != 0);
    return id;
}

static TIDE_UNUSED void put_call(tide_device d, tide_stream_id s, void (*fn)(void *arg), void *arg) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_call(d, s, fn, arg, &err), &err);
}

static TIDE_UNUSED void put_fill(tide_device d, tide_stream_id s, void *dst, int byte, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_fill(d, s, dst, (unsigned char)byte, n, &err), &err);
}

static TIDE_UNUSED void put_copy(tide_device d, tide_stream_id s, tide_copy_direction way, void *dst, const void *src,
                                 size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_copy(d, s, way, dst, src, n, &err), &err);
}

static TIDE_UNUSED void record(tide_device d, tide_event_id e, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_event_record(d, e, s, &err), &err);
}

static TIDE_UNUSED void wait_for(tide_device d, tide_stream_id s, tide_event_id e) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_stream_wait_event(d, s, e, &err), &err);
}

static TIDE_UNUSED bool is_done(tide_device d, tide_event_id e) {
    tide_error err = TIDE_ERROR_INIT;
    bool done = false;
    assert_tide_ok(tide_event_query(d, e, &done, &err), &err);
    return done;
}

static TIDE_UNUSED void finish(tide_device d, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_stream_sync(d, s, &err), &err);
}

#endif
