// SPDX-License-Identifier: MIT
//
// cuda_async: frees that wait in streams and not on the host, what happens when a stream takes no event, when memory
// ends, and when streams go. What every allocator does is in the conformance suite.
#include "stream_caching_test.h"

static tide_allocator *make_with(const tide_stream_pool_options *opt) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    fake_setup_driver(1);
    assert_tide_ok(tide_stream_pool_create(fake_at(0), opt, &a, &err), &err);
    return a;
}

static void end(tide_allocator *a) {
    tide_allocator_unref(a);
    fake_teardown();
}

/// What the fake says of work on memory that was freed before is what this rests on: with the planted fault it comes.
static uint64_t free_under_a_user(bool unsafe) {
    tide_allocator *a = make_with(&(tide_stream_pool_options){.unsafe_no_deferral = unsafe});
    ears e;
    listen_with(a, &e);
    const tide_stream_id p = new_stream(), c = new_stream();
    const tide_memory mem = take_on(a, 1000, p);
    fake_hold(true);
    touch(&mem, p);
    use(a, &mem, c);
    give_on(a, &mem, p);
    assert_int_equal(e.n_completed, 1); // at the release: the driver orders the rest
    assert_true(stats_of(a).active_bytes == 0 && stats_of(a).n_pending == 0);
    assert_int_equal(fake.n_live_blocks, 1); // nothing was waited for
    while (fake_step(p)) {
    } // as far as it gets
    const uint64_t left = fake.n_live_blocks;
    fake_finish(c);
    fake_finish(p);
    assert_int_equal(fake.n_live_blocks, 0);
    const uint64_t n_faults = fake.n_faults;
    assert_int_equal(left, unsafe ? 0 : 1);
    fake.n_faults = 0;
    fake_hold(false);
    end_stream(p);
    end_stream(c);
    end(a);
    return n_faults;
}

static void the_allocating_stream_waits_for_the_users(void **state) {
    (void)state;
    assert_int_equal(free_under_a_user(false), 0);
}

static void the_planted_fault_is_seen(void **state) {
    (void)state;
    assert_int_equal(free_under_a_user(true), 1);
}

/// The stream of the release is a user, too.
static void the_stream_of_the_release_counts(void **state) {
    (void)state;
    tide_allocator *a = make_with(NULL);
    const tide_stream_id p = new_stream(), c = new_stream();
    const tide_memory mem = take_on(a, 1000, p);
    fake_hold(true);
    touch(&mem, c);
    give_on(a, &mem, c);
    while (fake_step(p)) {
    }
    assert_int_equal(fake.n_live_blocks, 1);
    fake_finish(p);
    assert_int_equal(fake.n_live_blocks, 0);
    fake_hold(false);
    end_stream(p);
    end_stream(c);
    end(a);
}

/// A user that is captured takes no event: the block is pending until the capture has ended. One that allocates there
/// is refused.
static void captures(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_capture_id capture = 0;
    tide_allocator *a = make_with(NULL);
    ears e;
    listen_with(a, &e);
    const tide_stream_id p = new_stream(), c = new_stream();
    const tide_memory mem = take_on(a, 1000, p);
    tide_allocator_record_use(a, &mem, c);
    assert_tide_ok(tide_capture_begin(fake_at(0), c, &err), &err);
    give_on(a, &mem, p);
    assert_true(stats_of(a).pending_bytes == 1000 && stats_of(a).n_pending == 1 && e.n_completed == 0);
    const tide_alloc_request req = {.size_bytes = 100, .stream = c, .tag = "inside"};
    tide_memory none = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "captured");
    assert_text_has(err.msg, "'inside'");
    assert_tide_ok(tide_capture_end(fake_at(0), c, &capture, &err), &err);
    tide_capture_destroy(fake_at(0), capture);
    const tide_memory next = take_on(a, 50, p); // tries again
    assert_true(stats_of(a).n_pending == 0 && e.n_completed == 1);
    assert_int_equal(e.last.requested_bytes, 1000);
    give_on(a, &next, p);
    end_stream(p);
    end_stream(c);
    end(a);
}

/// Streams may go before their blocks are released: nothing is lost.
static void streams_may_go_first(void **state) {
    (void)state;
    tide_allocator *a = make_with(NULL);
    const tide_stream_id p = new_stream(), c = new_stream();
    const tide_memory one = take_on(a, 1000, p), two = take_on(a, 1000, 0), three = take_on(a, 1000, p);
    tide_allocator_record_use(a, &two, c);
    tide_allocator_record_use(a, &three, c);
    end_stream(p);
    give_on(a, &three, 0); // its stream is gone, its user is not
    end_stream(c);
    give_on(a, &one, 0);
    give_on(a, &two, 0);
    assert_true(stats_of(a).active_bytes == 0 && stats_of(a).n_pending == 0);
    assert_int_equal(fake.n_live_blocks, 0);
    end(a);
}

/// What was freed in a stream that has not come to it yet is waited for before a request fails; then it fails with
/// numbers.
static void memory_ends(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_with(NULL);
    fake_limit(10 * MIB);
    const tide_stream_id p = new_stream();
    const tide_memory mem = take_on(a, 6 * MIB, p);
    fake_hold(true);
    touch(&mem, p);
    give_on(a, &mem, p);
    const tide_memory next = take_on(a, 7 * MIB, 0);
    assert_int_equal(fake_waiting(p), 0); // waited for
    tide_memory none = {0};
    const tide_alloc_request req = {.size_bytes = 4 * MIB, .stream = p, .tag = "too much"};
    assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "cuda_async on fake:0: no memory for 'too much'");
    assert_text_has(err.msg, "active 7.00 MiB");
    assert_true(stats_of(a).n_failed == 1);
    fake_hold(false);
    give_on(a, &next, 0);
    end_stream(p);
    end(a);
}

/// reserved and cached are the pool's: kept over a wait or not, as was asked.
static void it_keeps_what_was_asked(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (int keep = 0; keep < 2; keep++) {
        tide_allocator *a = make_with(&(tide_stream_pool_options){.keep_none = keep == 0});
        const tide_memory mem = take_on(a, 3 * MIB, 0);
        assert_true(stats_of(a).reserved_bytes == 4 * MIB && stats_of(a).cached_bytes == MIB);
        give_on(a, &mem, 0);
        assert_true(stats_of(a).reserved_bytes == 4 * MIB);
        assert_tide_ok(tide_stream_sync(fake_at(0), 0, &err), &err);
        assert_true(stats_of(a).reserved_bytes == (keep == 0 ? 0 : 4 * MIB));
        assert_true(stats_of(a).peak_reserved_bytes == 4 * MIB);
        end(a);
    }
}

/// A driver that refuses a free once gets it again; the block is told of once.
static void a_free_that_fails_comes_again(void **state) {
    (void)state;
    tide_allocator *a = make_with(NULL);
    ears e;
    listen_with(a, &e);
    const tide_memory mem = take_on(a, 1000, 0), other = take_on(a, 1000, 0);
    fake_fail(FAKE_POOL_FREE, 0, 1);
    give_on(a, &mem, 0);
    assert_int_equal(fake.n_live_blocks, 2);
    fake_fail(FAKE_EVENT_RECORD, 0, 1);
    const tide_stream_id c = new_stream();
    tide_allocator_record_use(a, &other, c);
    give_on(a, &other, 0);
    assert_true(stats_of(a).n_pending == 1 && e.n_completed == 1);
    tide_allocator_trim(a);
    assert_int_equal(fake.n_live_blocks, 0);
    assert_int_equal(e.n_completed, 2);
    end_stream(c);
    end(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_allocating_stream_waits_for_the_users),
        tide_unit_test(the_planted_fault_is_seen),
        tide_unit_test(the_stream_of_the_release_counts),
        tide_unit_test(captures),
        tide_unit_test(streams_may_go_first),
        tide_unit_test(memory_ends),
        tide_unit_test(it_keeps_what_was_asked),
        tide_unit_test(a_free_that_fails_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
