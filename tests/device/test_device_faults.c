// SPDX-License-Identifier: MIT
//
// Host memory that ends while streams, events and captures are made and used: the 1st, 2nd, 3rd … allocation fails
// until all succeed. Each time the call says so, what was there is as before, and trying again works.
#include "tests/device/device_test.h"

/// More than a stream's queue and a capture's list hold at first.
enum { N_WORK = 150 };

typedef struct scene {
    tide_stream_id s, other;
    tide_event_id e;
    tide_capture_id c;
    int n;         ///< calls that ran
    int n_put;     ///< calls that were accepted
    int n_refused; ///< steps that failed for want of memory
} scene;

static void add_one(void *arg) { ++*(int *)arg; }

/// The step's own result; a step without memory is taken again, and must then succeed.
#define STEP(scene_, expr)                                                                                             \
    do {                                                                                                               \
        tide_error err_ = TIDE_ERROR_INIT;                                                                             \
        tide_status st_ = (expr);                                                                                      \
        if (st_ == TIDE_ERR_NOMEM) {                                                                                   \
            assert_text_has(err_.msg, "host memory");                                                                  \
            (scene_)->n_refused++;                                                                                     \
            st_ = (expr);                                                                                              \
        }                                                                                                              \
        assert_tide_ok(st_, &err_);                                                                                    \
    } while (0)

static void put_calls(scene *x, int n) {
    for (int i = 0; i < n; i++) {
        STEP(x, tide_device_call(TIDE_CPU, x->s, add_one, &x->n, &err_));
        x->n_put++;
    }
}

static void play(scene *x) {
    gate door = GATE_INIT;
    STEP(x, tide_stream_create(TIDE_CPU, &x->s, &err_));
    STEP(x, tide_stream_create(TIDE_CPU, &x->other, &err_));
    STEP(x, tide_event_create(TIDE_CPU, &x->e, &err_));
    STEP(x, tide_device_call(TIDE_CPU, x->s, gate_pass, &door, &err_));
    put_calls(x, N_WORK);
    STEP(x, tide_event_record(TIDE_CPU, x->e, x->s, &err_));
    STEP(x, tide_stream_wait_event(TIDE_CPU, x->other, x->e, &err_));
    gate_open(&door);
    finish(TIDE_CPU, x->other);
    assert_int_equal(x->n, N_WORK);
    assert_int_equal(x->n_put, N_WORK);
    STEP(x, tide_capture_begin(TIDE_CPU, x->s, &err_));
    put_calls(x, N_WORK);
    STEP(x, tide_capture_end(TIDE_CPU, x->s, &x->c, &err_));
    assert_int_equal(x->n, N_WORK);
    STEP(x, tide_capture_launch(TIDE_CPU, x->c, x->other, &err_)); // its queue must grow for it
    finish(TIDE_CPU, x->other);
    assert_int_equal(x->n, 2 * N_WORK);
}

static void strike(scene *x) {
    tide_capture_destroy(TIDE_CPU, x->c);
    tide_event_destroy(TIDE_CPU, x->e);
    tide_stream_destroy(TIDE_CPU, x->s);
    tide_stream_destroy(TIDE_CPU, x->other);
}

static void host_memory_ends_at_every_allocation(void **state) {
    (void)state;
    tide_host_stats before, after;
    tide_host_get_stats(&before);
    int n_failed = 0;
    for (int64_t nth = 0;; nth++) {
        scene x = {0};
        tide_host_fail_after(nth);
        play(&x);
        tide_host_fail_after(-1);
        strike(&x);
        tide_host_get_stats(&after);
        assert_int_equal(after.n_live, before.n_live);
        assert_true(x.n_refused <= 1);
        if (x.n_refused == 0) break;
        n_failed++;
    }
    // Two streams of two pieces each, four tables less one (streams share), an event, growths of rings and list.
    assert_true(n_failed >= 12);
}

/// Without a retry: what was made is unmade, and nothing is left.
static void a_stream_that_cannot_be_made_leaves_nothing(void **state) {
    (void)state;
    for (int64_t nth = 0;; nth++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_stream_id s = 77;
        tide_host_stats before, after;
        tide_host_get_stats(&before);
        tide_host_fail_after(nth);
        const tide_status st = tide_stream_create(TIDE_CPU, &s, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            assert_int_equal(nth, 3); // the stream, its ring, the table
            tide_stream_destroy(TIDE_CPU, s);
            break;
        }
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_int_equal(s, 77);
        tide_host_get_stats(&after);
        assert_int_equal(after.n_live, before.n_live);
    }
}

/// The system refuses a thread whose stack is larger than any address space.
static void a_stream_without_a_thread_is_no_stream(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    pthread_attr_t usual, huge;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_getattr_default_np(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 50), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    tide_stream_id s = 77;
    const tide_status st = tide_stream_create(TIDE_CPU, &s, &err);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    assert_tide_status(st, TIDE_ERR_BACKEND);
    assert_text_has(err.msg, "no thread for a stream");
    assert_int_equal(s, 77);
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&huge);
    tide_stream_destroy(TIDE_CPU, new_stream(TIDE_CPU)); // the next one has its thread
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(host_memory_ends_at_every_allocation),
        tide_unit_test(a_stream_that_cannot_be_made_leaves_nothing),
        tide_unit_test(a_stream_without_a_thread_is_no_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
