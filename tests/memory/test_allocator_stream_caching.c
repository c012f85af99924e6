// SPDX-License-Identifier: MIT
//
// stream_caching on the fake device: who gets a freed block, and when (rules 1 to 4 of its head comment; LT-26, LT-35).
// Work waits in its stream until the test lets it go, so every moment can be looked at.
#include "core/base/assert.h"
#include "core/memory/allocators/stream_caching_internal.h"
#include "stream_caching_test.h"

/// The fake's teardown proves that no work touched memory that was given back, and that nothing is left.
static void finish(tide_allocator *a) {
    tide_allocator_unref(a);
    fake_teardown();
}

static void rule_1_own_stream_reuses_at_once(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 1000, s);
    touch(&first, s);
    give_on(a, &first, s);
    assert_true(fake_waiting(s) == 1); // it is still to be touched
    const tide_memory second = take_on(a, 1000, s);
    assert_ptr_equal(second.data, first.data);
    give_on(a, &second, s);
    // Another stream has nothing to protect it.
    const tide_memory other = take_on(a, 1000, t);
    assert_ptr_not_equal(other.data, first.data);
    give_on(a, &other, t);
    assert_true(fake_calls(FAKE_EVENT_RECORD) == 0 && fake_calls(FAKE_EVENT_QUERY) == 0);
    assert_true(stats_of(a).n_hits == 1 && stats_of(a).n_system == 2);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_2_not_before_its_event_LT_26_LT_35(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 1000, s);
    use(a, &first, t);
    use(a, &first, t); // a second declaration needs no second event
    give_on(a, &first, s);
    assert_true(stats_of(a).n_pending == 1 && stats_of(a).pending_bytes == 1024);
    assert_true(stats_of(a).requested_bytes == 0 && stats_of(a).active_bytes == 1024);
    assert_true(fake_calls(FAKE_EVENT_RECORD) == 1);
    assert_true(e.n_completed == 0);
    const tide_memory second = take_on(a, 1000, s);
    assert_ptr_not_equal(second.data, first.data);
    assert_true(fake_step(t) && fake_step(t)); // both touches, not the event
    const tide_memory third = take_on(a, 1000, s);
    assert_ptr_not_equal(third.data, first.data);
    assert_true(e.n_completed == 0);
    assert_true(fake_step(t)); // the event
    const tide_memory fourth = take_on(a, 1000, s);
    assert_ptr_equal(fourth.data, first.data);
    assert_true(e.n_completed == 1 && e.last.block_id == first.block_id && e.last_stream == s);
    assert_null(e.last.tag);
    assert_true(stats_of(a).n_pending == 0 && stats_of(a).pending_bytes == 0);
    // The host never waited.
    assert_true(fake_calls(FAKE_EVENT_SYNC) == 0 && fake_calls(FAKE_STREAM_SYNC) == 0);
    give_on(a, &second, s);
    give_on(a, &third, s);
    give_on(a, &fourth, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_2_the_stream_of_the_release_is_a_use(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 1000, s);
    touch(&first, t); // never declared
    give_on(a, &first, t);
    assert_true(stats_of(a).n_pending == 1);
    const tide_memory second = take_on(a, 1000, s);
    assert_ptr_not_equal(second.data, first.data);
    fake_finish(t);
    const tide_memory third = take_on(a, 1000, s);
    assert_ptr_equal(third.data, first.data);
    give_on(a, &second, s);
    give_on(a, &third, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_2_every_stream_that_uses_it_counts(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream(), u = new_stream();
    const tide_memory first = take_on(a, 1000, s);
    use(a, &first, t);
    use(a, &first, u);
    give_on(a, &first, s);
    assert_true(fake_calls(FAKE_EVENT_RECORD) == 2);
    fake_finish(t);
    const tide_memory second = take_on(a, 1000, s);
    assert_ptr_not_equal(second.data, first.data);
    fake_finish(u);
    const tide_memory third = take_on(a, 1000, s);
    assert_ptr_equal(third.data, first.data);
    give_on(a, &second, s);
    give_on(a, &third, s);
    end_stream(s);
    end_stream(t);
    end_stream(u);
    finish(a);
}

static void rule_2_oldest_first_up_to_the_first_that_is_not_done(void **state) {
    (void)state;
    enum { N = 4 };
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    tide_memory mem[N];
    for (int i = 0; i < N; i++) mem[i] = take_on(a, 1000, s);
    for (int i = 0; i < N; i++) {
        use(a, &mem[i], t);
        give_on(a, &mem[i], s);
    }
    tide_memory other[2 * N];
    for (size_t done = 0; done < N; done++) {
        const uint64_t before = fake_calls(FAKE_EVENT_QUERY);
        other[2 * done] = take_on(a, 3000, s);
        // One query: the first event is not done, so the others are not queried.
        assert_true(fake_calls(FAKE_EVENT_QUERY) == before + 1 && e.n_completed == done);
        assert_true(fake_step(t) && fake_step(t));
        other[2 * done + 1] = take_on(a, 3000, s);
        assert_true(e.n_completed == done + 1 && e.last.block_id == mem[done].block_id);
    }
    for (int i = 0; i < 2 * N; i++) give_on(a, &other[i], s);
    assert_true(stats_of(a).n_pending == 0);
    end_stream(s);
    end_stream(t);
    finish(a);
}

// ---- rule 3 ----

static void rule_3_under_pressure_a_pending_block_goes_on_behind_its_events(void **state) {
    (void)state;
    const unsigned char ones = 2;
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream(), u = new_stream();
    const tide_memory first = take_on(a, 30 * MIB, s);
    touch(&first, s);
    use(a, &first, t);
    give_on(a, &first, s);
    const tide_memory second = take_on(a, 30 * MIB, u);
    assert_ptr_equal(second.data, first.data);
    assert_true(fake_calls(FAKE_MEM_ALLOC) == 1 && e.n_completed == 1 && stats_of(a).n_pending == 0);
    assert_true(fake_calls(FAKE_EVENT_SYNC) == 0 && fake_calls(FAKE_STREAM_SYNC) == 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_fill(fake_at(0), u, second.data, ones, 30 * MIB, &err), &err);
    // u can do nothing before both s and t have let go of the block.
    assert_false(fake_step(u));
    fake_finish(t);
    while (fake_step(u)) continue;
    assert_false(fake_holds(0, second.data, &ones, 1));
    fake_finish(s);
    while (fake_step(u)) continue;
    assert_true(fake_holds(0, second.data, &ones, 1));
    give_on(a, &second, u);
    // It is u's now: there at once, and not on s.
    const tide_memory third = take_on(a, 30 * MIB, u);
    assert_ptr_equal(third.data, first.data);
    give_on(a, &third, u);
    const tide_memory fourth = take_on(a, 30 * MIB, s);
    assert_ptr_not_equal(fourth.data, first.data);
    give_on(a, &fourth, s);
    end_stream(s);
    end_stream(t);
    end_stream(u);
    finish(a);
}

static void rule_3_a_stream_does_not_wait_for_itself(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    // Used by t and asked for by its own stream: one wait.
    const tide_memory first = take_on(a, 30 * MIB, s);
    use(a, &first, t);
    give_on(a, &first, s);
    const tide_memory second = take_on(a, 30 * MIB, s);
    assert_ptr_equal(second.data, first.data);
    assert_true(fake_calls(FAKE_STREAM_WAIT_EVENT) == 1 && fake_calls(FAKE_EVENT_RECORD) == 1);
    // Used by t and asked for by t: it waits for s, where the block came from.
    use(a, &second, t);
    give_on(a, &second, s);
    const tide_memory third = take_on(a, 30 * MIB, t);
    assert_ptr_equal(third.data, first.data);
    assert_true(fake_calls(FAKE_STREAM_WAIT_EVENT) == 2 && fake_calls(FAKE_EVENT_RECORD) == 3);
    give_on(a, &third, t);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_3_the_rest_of_a_long_block_goes_with_it(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream(), u = new_stream();
    const tide_memory first = take_on(a, 30 * MIB, s);
    use(a, &first, t);
    give_on(a, &first, s);
    const tide_memory low = take_on(a, 11 * MIB, u), high = take_on(a, 11 * MIB, u);
    assert_ptr_equal(low.data, first.data);
    assert_ptr_equal(high.data, at_offset(&first, 11 * MIB));
    assert_true(fake_calls(FAKE_MEM_ALLOC) == 1);
    give_on(a, &low, u);
    give_on(a, &high, u);
    end_stream(s);
    end_stream(t);
    end_stream(u);
    finish(a);
}

static void pass_gate(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
}

static void rule_3_the_host_takes_new_memory_instead_of_waiting(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_on(TIDE_CPU);
    const tide_stream_id s = stream_on(TIDE_CPU), t = stream_on(TIDE_CPU);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    const tide_memory first = take_on(a, 30 * MIB, s);
    assert_tide_ok(tide_device_call(TIDE_CPU, t, pass_gate, &gate, &err), &err);
    tide_allocator_record_use(a, &first, t);
    give_on(a, &first, s);
    const tide_memory second = take_on(a, 30 * MIB, 0); // stream 0 is this thread, and t waits for this thread
    assert_ptr_not_equal(second.data, first.data);
    assert_true(stats_of(a).n_pending == 1);
    give_on(a, &second, 0);
    pthread_mutex_unlock(&gate);
    assert_tide_ok(tide_stream_sync(TIDE_CPU, t, &err), &err);
    // The host as the last user needs no event either: what it did is done.
    const tide_memory third = take_on(a, 30 * MIB, s);
    give_on(a, &third, 0);
    assert_true(stats_of(a).n_pending == 0);
    tide_stream_destroy(TIDE_CPU, s);
    tide_stream_destroy(TIDE_CPU, t);
    tide_allocator_unref(a);
}

// ---- rule 4 ----

static void rule_4_a_stream_that_goes_leaves_its_blocks_to_everybody(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream(), u = new_stream();
    const tide_memory idle = take_on(a, 1000, s), live = take_on(a, 1000, s), wall = take_on(a, 1000, s);
    touch(&live, s);
    give_on(a, &idle, s);
    const tide_memory waits = take_on(a, 3000, t); // of t, used by s
    use(a, &waits, s);
    give_on(a, &waits, t);
    const tide_memory declared = take_on(a, 3000, t); // and one that t has not released yet
    use(a, &declared, s);
    assert_true(stats_of(a).n_pending == 1);
    end_stream(s);
    assert_sound(a);
    // Blocks that waited for s are free now; blocks of its free list serve every stream.
    assert_true(stats_of(a).n_pending == 0);
    assert_true(e.n_completed == 2);
    give_on(a, &declared, t);
    assert_true(e.n_completed == 3 && stats_of(a).n_pending == 0);
    const tide_memory again = take_on(a, 1000, u);
    assert_ptr_equal(again.data, idle.data);
    give_on(a, &again, u);
    // A block of the stream that is gone: no event can be put there, none is needed.
    give_on(a, &live, s);
    assert_true(stats_of(a).n_pending == 0);
    const tide_stream_id v = new_stream();
    const tide_memory other = take_on(a, 1000, v);
    assert_ptr_equal(other.data, live.data);
    give_on(a, &other, v);
    end_stream(v);
    give_on(a, &wall, s);
    assert_true(fake_calls(FAKE_EVENT_RECORD) == 1);
    end_stream(t);
    end_stream(u);
    finish(a);
}

static void rule_4_idle_neighbours_merge_when_their_streams_are_gone(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory whole = take_on(a, 20 * MIB, s);
    give_on(a, &whole, s);
    end_stream(s);
    // Half of it goes to t, the rest stays free for every stream; then t is destroyed, too.
    const tide_memory half = take_on(a, 11 * MIB, t);
    assert_ptr_equal(half.data, whole.data);
    give_on(a, &half, t);
    assert_true(stats_of(a).largest_free_bytes == 11 * MIB);
    end_stream(t);
    assert_sound(a);
    assert_true(stats_of(a).largest_free_bytes == 20 * MIB);
    finish(a);
}

static void rule_4_a_use_by_a_stream_long_gone_needs_no_wait(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), gone = new_stream();
    end_stream(gone); // before the allocator ever heard of it
    const tide_memory first = take_on(a, 1000, s);
    give_on(a, &first, gone);
    assert_true(stats_of(a).n_pending == 0);
    const tide_memory second = take_on(a, 1000, s);
    assert_ptr_equal(second.data, first.data);
    give_on(a, &second, s);
    end_stream(s);
    finish(a);
}

static void rule_4_events_are_used_again(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_stream_id s = new_stream(), t = new_stream();
    for (int i = 0; i < 100; i++) {
        const tide_memory mem = take_on(a, 1000, s);
        use(a, &mem, t);
        give_on(a, &mem, s);
    }
    assert_true(fake_calls(FAKE_EVENT_RECORD) == 100);
    assert_true(fake_calls(FAKE_EVENT_CREATE) == 1);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void streams_of_other_devices_are_not_ours(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory mem = take_on(a, 1000, s);
    touch(&mem, s);
    give_on(a, &mem, s);
    // Ids are unique in the process, and yet: what another device says of its own stream says nothing of ours.
    tide__sc_on_stream_destroyed(tide__sc_of(a), fake_at(1), s);
    const tide_memory other = take_on(a, 1000, t);
    assert_ptr_not_equal(other.data, mem.data);
    give_on(a, &other, t);
    end_stream(s);
    end_stream(t);
    finish(a);
}

// ---- the end, and the planted fault ----

static void the_end_waits_for_the_streams(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    ears e;
    listen_with(a, &e);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory pending = take_on(a, 1000, s), idle = take_on(a, 5 * MIB, s);
    touch(&idle, s);
    use(a, &pending, t);
    give_on(a, &pending, s);
    give_on(a, &idle, s);
    tide_allocator_unref(a); // the fake finds work on memory that is no more
    assert_true(fake_waiting(s) == 0 && fake_waiting(t) == 0);
    assert_true(e.n_completed == 2 && e.n_taken == 2 && e.n_given == 2);
    end_stream(s);
    end_stream(t);
    fake_teardown();
}

static void without_deferral_blocks_are_reused_too_early(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    tide_allocator *a = NULL;
    assert_tide_ok(
        tide_stream_caching_create(fake_at(0), &(tide_stream_caching_options){.unsafe_no_deferral = true}, &a, &err),
        &err);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 1000, s);
    use(a, &first, t);
    give_on(a, &first, t);
    const tide_memory second = take_on(a, 1000, s);
    assert_ptr_equal(second.data, first.data);
    assert_true(fake_waiting(t) == 1 && fake_calls(FAKE_EVENT_RECORD) == 0);
    give_on(a, &second, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rule_1_own_stream_reuses_at_once),
        tide_unit_test(rule_2_not_before_its_event_LT_26_LT_35),
        tide_unit_test(rule_2_the_stream_of_the_release_is_a_use),
        tide_unit_test(rule_2_every_stream_that_uses_it_counts),
        tide_unit_test(rule_2_oldest_first_up_to_the_first_that_is_not_done),
        tide_unit_test(rule_3_under_pressure_a_pending_block_goes_on_behind_its_events),
        tide_unit_test(rule_3_a_stream_does_not_wait_for_itself),
        tide_unit_test(rule_3_the_rest_of_a_long_block_goes_with_it),
        tide_unit_test(rule_3_the_host_takes_new_memory_instead_of_waiting),
        tide_unit_test(rule_4_a_stream_that_goes_leaves_its_blocks_to_everybody),
        tide_unit_test(rule_4_idle_neighbours_merge_when_their_streams_are_gone),
        tide_unit_test(rule_4_a_use_by_a_stream_long_gone_needs_no_wait),
        tide_unit_test(rule_4_events_are_used_again),
        tide_unit_test(streams_of_other_devices_are_not_ours),
        tide_unit_test(the_end_waits_for_the_streams),
        tide_unit_test(without_deferral_blocks_are_reused_too_early),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests_name("allocator stream_caching", tests, NULL, NULL);
}
