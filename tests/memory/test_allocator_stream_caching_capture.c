// SPDX-License-Identifier: MIT
//
// stream_caching while streams are captured (rule 5; LT-35): no event is recorded or queried before the capture has
// ended, and captured work has memory of its own that no other work gets while the capture can be launched again.
#include "core/base/assert.h"
#include "stream_caching_test.h"

static void begin_capture(tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_capture_begin(fake_at(0), s, &err), &err);
}

static tide_capture_id end_capture(tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    tide_capture_id c = 0;
    assert_tide_ok(tide_capture_end(fake_at(0), s, &c, &err), &err);
    return c;
}

static uint64_t begin_pool(tide_allocator *a, tide_stream_id s) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t pool = 0;
    assert_tide_ok(tide_stream_caching_begin_pool(a, s, &pool, &err), &err);
    assert_true(pool != 0);
    return pool;
}

static void end_pool(tide_allocator *a, uint64_t pool) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_stream_caching_end_pool(a, pool, &err), &err);
    assert_sound(a);
}

static void release_pool(tide_allocator *a, uint64_t pool) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_stream_caching_release_pool(a, pool, &err), &err);
    assert_sound(a);
}

static void rule_5_a_record_waits_for_the_end_of_the_capture_LT_35(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 1000, s);
    use(a, &first, t); // work that t has before its capture
    begin_capture(t);
    give_on(a, &first, s);
    const tide_memory second = take_on(a, 1000, s); // no query: there is no event yet
    assert_ptr_not_equal(second.data, first.data);
    assert_true(fake_calls(FAKE_EVENT_QUERY) == 0 && stats_of(a).n_pending == 1);
    tide_capture_destroy(fake_at(0), end_capture(t));
    const tide_memory third = take_on(a, 1000, s); // recorded now, and not done
    assert_ptr_not_equal(third.data, first.data);
    assert_true(fake_calls(FAKE_EVENT_QUERY) == 1 && e.n_completed == 0);
    fake_finish(t);
    const tide_memory fourth = take_on(a, 1000, s);
    assert_ptr_equal(fourth.data, first.data);
    assert_true(e.n_completed == 1);
    give_on(a, &second, s);
    give_on(a, &third, s);
    give_on(a, &fourth, s);
    end_stream(s);
    end_stream(t);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_a_capture_anywhere_stops_the_questions(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_stream_id s = new_stream(), t = new_stream(), u = new_stream(), captured = new_stream();
    const tide_memory first = take_on(a, 1000, s), second = take_on(a, 1000, s);
    tide_allocator_record_use(a, &first, t);
    tide_allocator_record_use(a, &second, u);
    begin_capture(captured);
    give_on(a, &first, s); // both events are recorded, and done
    give_on(a, &second, s);
    const uint64_t before = fake_calls(FAKE_EVENT_QUERY);
    const tide_memory third = take_on(a, 1000, s);
    assert_true(fake_calls(FAKE_EVENT_QUERY) == before + 1); // one refusal, and no further query
    assert_true(stats_of(a).n_pending == 2);
    tide_capture_destroy(fake_at(0), end_capture(captured));
    const tide_memory fourth = take_on(a, 1000, s);
    assert_ptr_equal(fourth.data, first.data);
    assert_true(stats_of(a).n_pending == 0);
    give_on(a, &third, s);
    give_on(a, &fourth, s);
    end_stream(s);
    end_stream(t);
    end_stream(u);
    end_stream(captured);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_out_of_memory_in_a_capture_is_an_error_and_no_harm(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_fake();
    fake_hold(true);
    fake_limit(20 * MIB);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 5 * MIB, s);
    touch(&first, s);
    use(a, &first, t);
    begin_capture(t);
    give_on(a, &first, s);
    // The block may not be waited for, nor taken over.
    const tide_alloc_request req = {.size_bytes = 16 * MIB, .stream = s, .tag = "x"};
    tide_memory mem = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "pending 5.00 MiB in 1 block;");
    assert_sound(a);
    tide_capture_destroy(fake_at(0), end_capture(t));
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    assert_ptr_equal(mem.data, first.data);
    give_on(a, &mem, s);
    end_stream(s);
    end_stream(t);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_a_captured_stream_hands_nothing_over(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 30 * MIB, s);
    use(a, &first, t);
    give_on(a, &first, s);
    begin_capture(s);
    const uint64_t before = fake_calls(FAKE_EVENT_RECORD);
    tide_memory mem[4];
    for (int i = 0; i < 4; i++) { // t cannot be made to wait for s now: new memory each time, and one try
        mem[i] = take_on(a, 30 * MIB, t);
        assert_ptr_not_equal(mem[i].data, first.data);
    }
    assert_true(fake_calls(FAKE_EVENT_CREATE) == 2 && fake_calls(FAKE_MEM_ALLOC) == 5);
    assert_true(fake_calls(FAKE_EVENT_RECORD) > before && fake_calls(FAKE_STREAM_WAIT_EVENT) == 0);
    tide_capture_destroy(fake_at(0), end_capture(s));
    const tide_memory again = take_on(a, 30 * MIB, t);
    assert_ptr_equal(again.data, first.data);
    give_on(a, &again, t);
    for (int i = 0; i < 4; i++) give_on(a, &mem[i], t);
    end_stream(s);
    end_stream(t);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_a_segment_whose_stream_is_captured_is_not_given_back(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream();
    const tide_memory mem = take_on(a, 5 * MIB, s);
    touch(&mem, s);
    give_on(a, &mem, s);
    begin_capture(s);
    tide_allocator_trim(a); // may not wait for s, so it cannot
    assert_true(fake_calls(FAKE_MEM_FREE) == 0 && stats_of(a).cached_bytes == 20 * MIB);
    tide_capture_destroy(fake_at(0), end_capture(s));
    tide_allocator_trim(a);
    assert_true(fake_calls(FAKE_MEM_FREE) == 1 && stats_of(a).cached_bytes == 0);
    end_stream(s);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_captured_work_keeps_its_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_fake();
    const tide_stream_id s = new_stream();
    const tide_memory ordinary = take_on(a, 1000, s);
    give_on(a, &ordinary, s);
    const uint64_t pool = begin_pool(a, s);
    begin_capture(s);
    const tide_memory inside = take_on(a, 1000, s);
    assert_ptr_not_equal(inside.data, ordinary.data); // not from the shared chunks
    touch(&inside, s);
    give_on(a, &inside, s);
    const tide_memory next = take_on(a, 1000, s);
    assert_ptr_equal(next.data, inside.data); // within the captured work stream order holds
    touch(&next, s);
    give_on(a, &next, s);
    const tide_capture_id capture = end_capture(s);
    end_pool(a, pool);
    // Outside, the same stream gets ordinary memory; and trim leaves what a launch will touch.
    const tide_memory outside = take_on(a, 1000, s);
    assert_ptr_equal(outside.data, ordinary.data);
    give_on(a, &outside, s);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 2 * MIB);
    assert_sound(a);
    assert_tide_ok(tide_capture_launch(fake_at(0), capture, s, &err), &err); // a fault if its memory were gone
    assert_true(fake.n_faults == 0);
    tide_capture_destroy(fake_at(0), capture);
    release_pool(a, pool);
    const tide_memory now = take_on(a, 1000, s);
    assert_ptr_equal(now.data, inside.data);
    give_on(a, &now, s);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 0);
    end_stream(s);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_pools_do_not_mix(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const uint64_t one = begin_pool(a, s), two = begin_pool(a, t);
    assert_true(one != two);
    const tide_memory of_one = take_on(a, 30 * MIB, s);
    use(a, &of_one, t);
    give_on(a, &of_one, s); // pending: only the pool may take it over
    const tide_memory of_two = take_on(a, 30 * MIB, t);
    assert_ptr_not_equal(of_two.data, of_one.data);
    const tide_stream_id u = new_stream();
    const tide_memory of_all = take_on(a, 30 * MIB, u);
    assert_ptr_not_equal(of_all.data, of_one.data);
    end_pool(a, one);
    end_pool(a, two);
    // Released with one live block and one pending: both serve every stream after they come back.
    release_pool(a, one);
    release_pool(a, two);
    assert_true(stats_of(a).n_pending == 1);
    const tide_memory taken_over = take_on(a, 30 * MIB, u);
    assert_ptr_equal(taken_over.data, of_one.data);
    give_on(a, &of_two, t);
    const tide_memory again = take_on(a, 30 * MIB, t);
    assert_ptr_equal(again.data, of_two.data);
    give_on(a, &again, t);
    give_on(a, &taken_over, u);
    give_on(a, &of_all, u);
    end_stream(s);
    end_stream(t);
    end_stream(u);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_a_stream_may_go_before_its_pool(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_stream_id s = new_stream(), t = new_stream();
    const uint64_t pool = begin_pool(a, s);
    const tide_memory idle = take_on(a, 1000, s), live = take_on(a, 1000, s);
    give_on(a, &idle, s);
    end_stream(s);
    assert_sound(a);
    end_pool(a, pool); // harmless: it ended with the stream
    const tide_memory other = take_on(a, 1000, t);
    assert_ptr_not_equal(other.data, idle.data);
    release_pool(a, pool);
    give_on(a, &live, s);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 2 * MIB); // t's
    give_on(a, &other, t);
    end_stream(t);
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_5_pools_are_begun_ended_released_in_this_order(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_fake();
    const tide_stream_id s = new_stream();
    uint64_t pool = begin_pool(a, s), other = 0;
    assert_tide_status(tide_stream_caching_begin_pool(a, s, &other, &err), TIDE_ERR_BUSY);
    assert_true(other == 0);
    assert_tide_status(tide_stream_caching_release_pool(a, pool, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "has not ended");
    assert_tide_status(tide_stream_caching_end_pool(a, pool + 1, &err), TIDE_ERR_NOT_FOUND);
    end_pool(a, pool);
    assert_tide_status(tide_stream_caching_end_pool(a, pool, &err), TIDE_ERR_INVALID);
    release_pool(a, pool);
    assert_tide_status(tide_stream_caching_release_pool(a, pool, &err), TIDE_ERR_NOT_FOUND);
    // A pool that is never released ends with the allocator.
    pool = begin_pool(a, s);
    const tide_memory mem = take_on(a, 1000, s);
    give_on(a, &mem, s);
    tide_allocator *cpu = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_status(tide_stream_caching_begin_pool(cpu, s, &other, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'cpu' has no pools");
    tide_allocator_unref(cpu);
    tide_allocator_unref(a);
    end_stream(s);
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rule_5_a_record_waits_for_the_end_of_the_capture_LT_35),
        tide_unit_test(rule_5_a_capture_anywhere_stops_the_questions),
        tide_unit_test(rule_5_out_of_memory_in_a_capture_is_an_error_and_no_harm),
        tide_unit_test(rule_5_a_captured_stream_hands_nothing_over),
        tide_unit_test(rule_5_a_segment_whose_stream_is_captured_is_not_given_back),
        tide_unit_test(rule_5_captured_work_keeps_its_memory),
        tide_unit_test(rule_5_pools_do_not_mix),
        tide_unit_test(rule_5_a_stream_may_go_before_its_pool),
        tide_unit_test(rule_5_pools_are_begun_ended_released_in_this_order),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests_name("allocator stream_caching, capture", tests, NULL, NULL);
}
