// SPDX-License-Identifier: MIT
//
// For tests that need a stream of the device under test which is being destroyed while its last work still runs: a gate
// in the stream, and a thread that destroys it.
#ifndef TIDE_TESTS_CLOSING_TEST_H
#define TIDE_TESTS_CLOSING_TEST_H

#include <sched.h>

#include "tests/device/device_test.h"

typedef struct closing {
    tide_stream_id stream;
    gate door; ///< its last work stands in it
    pthread_t destroyer;
} closing;

#define CLOSING_INIT                                                                                                   \
    { .door = GATE_INIT }

static TIDE_UNUSED void *closing_destroy(void *arg) {
    const closing *c = arg;
    tide_stream_destroy(subject, c->stream);
    return NULL;
}

/// A stream that stands in the gate.
static TIDE_UNUSED void open_stream(closing *c) {
    c->stream = new_stream(subject);
    put_call(subject, c->stream, gate_pass, &c->door);
    gate_wait_entered(&c->door);
}

/// Destroy it on a thread of its own; returns when the stream takes no more work.
static TIDE_UNUSED void close_stream(closing *c) {
    assert_int_equal(pthread_create(&c->destroyer, NULL, closing_destroy, c), 0);
    char byte;
    while (tide_device_fill(subject, c->stream, &byte, 0, 0, NULL) == TIDE_OK) sched_yield();
}

static TIDE_UNUSED void begin_closing(closing *c) {
    open_stream(c);
    close_stream(c);
}

/// The gate is open.
static TIDE_UNUSED void end_closing(closing *c) { pthread_join(c->destroyer, NULL); }

#endif
