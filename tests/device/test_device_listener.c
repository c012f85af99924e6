// SPDX-License-Identifier: MIT
//
// Who is told that a stream is gone, when, and that who has left is left alone.
#include "tests/device/device_test.h"

typedef struct hearer {
    tide_stream_listener base;
    int n;
    tide_device device;
    tide_stream_id stream;
    bool was_gone; ///< the device did not know the stream any more
    gate *door;    ///< to stand in, or NULL
} hearer;

static void hear(void *self, tide_device device, tide_stream_id stream) {
    hearer *h = self;
    h->n++;
    h->device = device;
    h->stream = stream;
    h->was_gone = tide_stream_sync(device, stream, NULL) == TIDE_ERR_INVALID;
    if (h->door != NULL) gate_pass(h->door);
}

static void listen_with(hearer *h) {
    h->base = (tide_stream_listener){.on_destroyed = hear, .self = h};
    tide_stream_listen(&h->base);
}

static void listeners_are_called_once_for_each_stream(void **state) {
    (void)state;
    hearer a = {0}, b = {0}, never = {0};
    listen_with(&a);
    listen_with(&never);
    listen_with(&b);
    tide_stream_unlisten(&never.base);
    tide_stream_unlisten(&never.base); // gone already
    tide_stream_destroy(TIDE_CPU, 0);
    assert_int_equal(a.n, 0);
    const tide_stream_id s = new_stream(TIDE_CPU);
    tide_stream_destroy(TIDE_CPU, s);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    assert_int_equal(a.stream, s);
    assert_true(tide_device_equal(a.device, TIDE_CPU));
    assert_true(a.was_gone && b.was_gone);
    tide_stream_unlisten(&a.base);
    tide_stream_destroy(TIDE_CPU, new_stream(TIDE_CPU));
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 2);
    tide_stream_unlisten(&b.base);
    tide_stream_destroy(TIDE_CPU, new_stream(TIDE_CPU));
    assert_int_equal(b.n, 2);
    assert_int_equal(never.n, 0);
}

static void *destroy_a_stream(void *arg) {
    (void)arg;
    tide_stream_id s;
    if (tide_stream_create(TIDE_CPU, &s, NULL) == TIDE_OK) tide_stream_destroy(TIDE_CPU, s);
    return NULL;
}

typedef struct leaver {
    hearer *who;
    gate left; ///< opened when tide_stream_unlisten has returned
} leaver;

static void *leave(void *arg) {
    leaver *l = arg;
    tide_stream_unlisten(&l->who->base);
    gate_open(&l->left);
    return NULL;
}

static bool is_open(gate *g) {
    pthread_mutex_lock(&g->lock);
    const bool open = g->open;
    pthread_mutex_unlock(&g->lock);
    return open;
}

/// Leaving waits for a call that is with oneself, and for no other; who left is passed by, even by a round of calls
/// that is on its way.
static void leaving_waits_for_ones_own_call_only(void **state) {
    (void)state;
    gate door = GATE_INIT;
    hearer in_call = {.door = &door}, next = {0}, other = {0};
    listen_with(&other); // called last
    listen_with(&next);
    listen_with(&in_call); // called first
    pthread_t destroyer, leaving;
    assert_int_equal(pthread_create(&destroyer, NULL, destroy_a_stream, NULL), 0);
    gate_wait_entered(&door);

    tide_stream_unlisten(&next.base); // returns: the call is with in_call
    leaver l = {.who = &in_call, .left = GATE_INIT};
    assert_int_equal(pthread_create(&leaving, NULL, leave, &l), 0);
    pause_briefly();
    assert_false(is_open(&l.left));
    gate_open(&door);
    pthread_join(leaving, NULL);
    assert_true(is_open(&l.left));
    pthread_join(destroyer, NULL);
    assert_int_equal(in_call.n, 1);
    assert_int_equal(next.n, 0);
    assert_int_equal(other.n, 1);
    tide_stream_unlisten(&other.base);
}

enum { N_THREADS = 4, N_ROUNDS = 40 };

static void count_up(void *self, tide_device device, tide_stream_id stream) {
    (void)device, (void)stream;
    int *n = self;
    __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static void *come_and_go(void *arg) {
    (void)arg;
    for (int i = 0; i < N_ROUNDS; i++) {
        int n = 0; // dies with the round: a call that came late would write to a dead stack
        tide_stream_listener own = {.on_destroyed = count_up, .self = &n};
        tide_stream_listen(&own);
        destroy_a_stream(NULL);
        tide_stream_unlisten(&own);
        if (n < 1) return (void *)own.self;
    }
    return NULL;
}

static void listeners_come_and_go_on_many_threads(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (size_t i = 0; i < N_THREADS; i++) {
        void *missed = NULL;
        pthread_join(threads[i], &missed);
        assert_null(missed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(listeners_are_called_once_for_each_stream),
        tide_unit_test(leaving_waits_for_ones_own_call_only),
        tide_unit_test(listeners_come_and_go_on_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
