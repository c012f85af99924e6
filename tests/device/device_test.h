// SPDX-License-Identifier: MIT
//
// What the tests of devices share: the device under test, a gate that holds a stream back until the test opens it, and
// short names for calls that must succeed.
//
// The device under test is the CPU, or what $TIDE_TEST_DEVICE names: tests/cuda runs these same tests over "cuda:0" of
// the simulated driver.
#ifndef TIDE_TESTS_DEVICE_TEST_H
#define TIDE_TESTS_DEVICE_TEST_H

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/device/plugin.h"
#include "tests/tide_test.h"

static TIDE_UNUSED tide_device subject; ///< the CPU until subject_setup

static TIDE_UNUSED bool subject_is_cpu(void) { return subject.type == TIDE_DEVICE_CPU; }

/// For what only the CPU's streams promise.
static TIDE_UNUSED void only_on_the_cpu(void) {
    if (!subject_is_cpu()) skip();
}

/// Of a group of tests.
static TIDE_UNUSED int subject_setup(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const char *name = getenv("TIDE_TEST_DEVICE");
    if (name == NULL) return 0;
    assert_tide_ok(tide_device_parse(name, &subject, &err), &err);
    assert_tide_ok(tide_device_load(subject, &err), &err);
    return 0;
}

/// What the simulated driver counts; NULL with any other.
static TIDE_UNUSED void *of_simulation(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver != NULL ? dlsym(driver, name) : NULL;
}

/// A simulated driver has all of its memory and objects back, and was never called with what it does not know.
static TIDE_UNUSED int subject_teardown(void **state) {
    (void)state;
    tide_device_unload();
    uint64_t (*left)(bool print), (*misuse)(void);
    *(void **)&left = of_simulation("tidesim_left");
    *(void **)&misuse = of_simulation("tidesim_misuse");
    if (left != NULL) assert_int_equal(left(true), 0);
    if (misuse != NULL) assert_int_equal(misuse(), 0);
    return 0;
}

#define run_subject_tests(tests) cmocka_run_group_tests(tests, subject_setup, subject_teardown)

/// Zeroed bytes that host and device can touch both; give_shared.
static TIDE_UNUSED void *take_shared(size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    void *self, *bytes = NULL;
    const tide_device_ops *ops = tide_device_find(subject, &self);
    assert_non_null(ops);
    if (ops->pinned_alloc != NULL)
        assert_tide_ok(ops->pinned_alloc(self, subject.index, n, 64, &bytes, &err), &err);
    else
        bytes = malloc(n);
    assert_non_null(bytes);
    return memset(bytes, 0, n);
}

static TIDE_UNUSED void give_shared(void *bytes) {
    void *self;
    const tide_device_ops *ops = tide_device_find(subject, &self);
    if (ops->pinned_free != NULL)
        ops->pinned_free(self, subject.index, bytes);
    else
        free(bytes);
}

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

/// The same where the stream of the event has nothing left to do: on the CPU at once, elsewhere in a while.
static TIDE_UNUSED bool is_done_soon(tide_device d, tide_event_id e) {
    tide_error err = TIDE_ERROR_INIT;
    if (d.type != TIDE_DEVICE_CPU) assert_tide_ok(tide_event_sync(d, e, &err), &err);
    return is_done(d, e);
}

static TIDE_UNUSED void finish(tide_device d, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_stream_sync(d, s, &err), &err);
}

#endif
