// SPDX-License-Identifier: MIT
//
// Streams of a device under many host threads. Meant for the thread sanitizer: what a consumer reads after it waited,
// on a stream or on the host, was written by the producer before.
#include "core/base/text.h"
#include "tests/device/device_test.h"

enum { N_THREADS = 8, N_STREAMS = 3, N_ROUNDS = 150, N_BYTES = 512 };

typedef struct check {
    const unsigned char *bytes;
    unsigned char want;
    uint64_t n_wrong, n_checked; ///< written on streams, in event order
} check;

static void check_bytes(void *arg) {
    check *c = arg;
    for (size_t i = 0; i < N_BYTES; i++) c->n_wrong += c->bytes[i] != c->want;
    c->n_checked++;
}

static void next_value(void *arg) {
    check *c = arg;
    c->want++;
}

/// One buffer fills, another stream reads it and lets the first go on: a ring of one.
static void producer_and_consumer(void **state) {
    (void)state;
    const tide_stream_id producer = new_stream(subject), consumer = new_stream(subject);
    const tide_event_id full = new_event(subject), empty = new_event(subject);
    unsigned char *bytes = take_shared(N_BYTES);
    check c = {.bytes = bytes};
    for (int round = 1; round <= 1000; round++) {
        wait_for(subject, producer, empty);
        put_fill(subject, producer, bytes, round, N_BYTES);
        record(subject, full, producer);
        wait_for(subject, consumer, full);
        put_call(subject, consumer, next_value, &c);
        put_call(subject, consumer, check_bytes, &c);
        record(subject, empty, consumer);
    }
    finish(subject, consumer);
    assert_int_equal(c.n_checked, 1000);
    assert_int_equal(c.n_wrong, 0);
    give_shared(bytes);
    tide_event_destroy(subject, full);
    tide_event_destroy(subject, empty);
    tide_stream_destroy(subject, producer);
    tide_stream_destroy(subject, consumer);
}

typedef struct worker {
    pthread_t thread;
    const tide_stream_id *shared; ///< [N_STREAMS], of all workers
    uint64_t seed;
    unsigned char *bytes; ///< [2 * N_BYTES]
    uint64_t n_wrong, n_rounds;
    tide_status st;
    tide_error err;
} worker;

/// Fill on one stream, copy on the next, check on a third; then the host sees it by one of three ways.
static tide_status one_round(worker *w, tide_rng *rng, const tide_event_id *e, unsigned char *a, unsigned char *b,
                             check *c) {
    const tide_stream_id s[3] = {w->shared[tide_rng_below(rng, N_STREAMS)], w->shared[tide_rng_below(rng, N_STREAMS)],
                                 w->shared[tide_rng_below(rng, N_STREAMS)]};
    c->want = (unsigned char)tide_rng_below(rng, 256);
    TIDE_TRY(tide_device_fill(subject, s[0], a, c->want, N_BYTES, &w->err));
    TIDE_TRY(tide_event_record(subject, e[0], s[0], &w->err));
    TIDE_TRY(tide_stream_wait_event(subject, s[1], e[0], &w->err));
    TIDE_TRY(tide_device_copy(subject, s[1], TIDE_COPY_WITHIN_DEVICE, b, a, N_BYTES, &w->err));
    TIDE_TRY(tide_event_record(subject, e[1], s[1], &w->err));
    TIDE_TRY(tide_stream_wait_event(subject, s[2], e[1], &w->err));
    TIDE_TRY(tide_device_call(subject, s[2], check_bytes, c, &w->err));
    TIDE_TRY(tide_event_record(subject, e[0], s[2], &w->err));
    bool done = false;
    switch (tide_rng_below(rng, 4)) {
    case 0:
        return tide_stream_sync(subject, s[2], &w->err);
    case 1:
        TIDE_TRY(tide_stream_wait_event(subject, 0, e[0], &w->err));
        return tide_stream_sync(subject, 0, &w->err);
    case 2: // a query that says done is as good as a wait
        TIDE_TRY(tide_event_query(subject, e[0], &done, &w->err));
        if (done) return TIDE_OK;
    }
    return tide_event_sync(subject, e[0], &w->err);
}

static tide_status all_rounds(worker *w, const tide_event_id *e) {
    unsigned char *const a = w->bytes, *const b = w->bytes + N_BYTES;
    tide_rng rng = {.state = w->seed};
    check c = {.bytes = b};
    for (int round = 0; round < N_ROUNDS; round++) {
        TIDE_TRY(one_round(w, &rng, e, a, b, &c));
        w->n_wrong = c.n_wrong;
        w->n_rounds = c.n_checked;
        if (round % 16 != 0) continue;
        tide_stream_id own; // streams that come and go beside the shared ones
        TIDE_TRY(tide_stream_create(subject, &own, &w->err));
        const tide_status st = tide_device_call(subject, own, check_bytes, &c, &w->err);
        tide_stream_destroy(subject, own);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

static void *work(void *arg) {
    worker *w = arg;
    tide_event_id e[2] = {0};
    for (int i = 0; i < 2 && w->st == TIDE_OK; i++) w->st = tide_event_create(subject, &e[i], &w->err);
    if (w->st == TIDE_OK) w->st = all_rounds(w, e);
    for (int i = 0; i < 2; i++) tide_event_destroy(subject, e[i]);
    return NULL;
}

static void eight_threads_and_three_streams(void **state) {
    (void)state;
    static worker workers[N_THREADS];
    tide_stream_id shared[N_STREAMS];
    for (size_t i = 0; i < N_STREAMS; i++) shared[i] = new_stream(subject);
    for (size_t i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.shared = shared, .seed = i + 1, .bytes = take_shared((size_t)2 * N_BYTES)};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_tide_ok(workers[i].st, &workers[i].err);
        assert_int_equal(workers[i].n_wrong, 0);
        assert_true(workers[i].n_rounds >= N_ROUNDS);
        give_shared(workers[i].bytes);
    }
    for (size_t i = 0; i < N_STREAMS; i++) tide_stream_destroy(subject, shared[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(producer_and_consumer),
        tide_unit_test(eight_threads_and_three_streams),
    };
    return run_subject_tests(tests);
}
