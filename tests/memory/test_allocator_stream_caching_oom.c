// SPDX-License-Identifier: MIT
//
// stream_caching when there is no memory left: one rung after the other, then the numbers (rule 7); and which calls
// come with the lock open (rule 8).
#include "core/base/assert.h"
#include "stream_caching_test.h"

static void finish(tide_allocator *a) {
    tide_allocator_unref(a);
    fake_teardown();
}

// ---- rule 7: one rung after the other ----

/// What the ladder asked of the device since `from`.
static void assert_calls(const uint64_t from[FAKE_N_CALLS], uint64_t allocs, uint64_t event_syncs, uint64_t frees) {
    assert_int_equal(fake_calls(FAKE_MEM_ALLOC) - from[FAKE_MEM_ALLOC], allocs);
    assert_int_equal(fake_calls(FAKE_EVENT_SYNC) - from[FAKE_EVENT_SYNC], event_syncs);
    assert_int_equal(fake_calls(FAKE_MEM_FREE) - from[FAKE_MEM_FREE], frees);
}

static void note_calls(uint64_t from[FAKE_N_CALLS]) {
    for (int i = 0; i < FAKE_N_CALLS; i++) from[i] = fake_calls((fake_call_kind)i);
}

static void rule_7_nothing_is_tried_that_is_not_needed(void **state) {
    (void)state;
    uint64_t from[FAKE_N_CALLS];
    tide_allocator *a = make_fake();
    fake_limit(40 * MIB);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory low = take_on(a, 10 * MIB, s), high = take_on(a, 10 * MIB, s); // one segment of 20 MiB
    const tide_memory rest = take_on(a, 20 * MIB, s);                                // and all that is left
    use(a, &low, t);
    use(a, &high, t);
    give_on(a, &low, s);
    give_on(a, &high, s);
    // Nothing pending is long enough to be taken over. Waiting for both and merging them is enough: nothing goes back.
    note_calls(from);
    const tide_memory both = take_on(a, 20 * MIB, s);
    assert_ptr_equal(both.data, low.data);
    assert_calls(from, 1, 1, 0);
    // Idle memory of another stream does not serve, but its segment goes.
    give_on(a, &both, s);
    touch(&rest, s);
    give_on(a, &rest, s);
    note_calls(from);
    const tide_memory others = take_on(a, 30 * MIB, t);
    assert_calls(from, 2, 0, 2);
    assert_true(fake_calls(FAKE_STREAM_SYNC) - from[FAKE_STREAM_SYNC] == 1); // before: s may still touch them
    give_on(a, &others, t);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_7_a_full_climb_and_then_the_numbers(void **state) {
    (void)state;
    uint64_t from[FAKE_N_CALLS];
    tide_allocator *a = make_fake();
    fake_limit(44 * MIB);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory small = take_on(a, 1000, s), large = take_on(a, 3 * MIB, s), idle = take_on(a, 11 * MIB, t),
                      pending = take_on(a, 500, s);
    use(a, &pending, t);
    give_on(a, &pending, s);
    give_on(a, &idle, t);
    note_calls(from);
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = 25 * MIB, .align_bytes = 1024, .stream = s, .tag = "conv_7.out"};
    tide_memory none = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_NOMEM);
    assert_null(none.data);
    assert_sound(a);
    assert_calls(from, 2, 1, 1); // asked, waited, gave t's segment back, asked again
    assert_text_has(err.msg, "stream_caching on fake:0: no memory for 'conv_7.out': asked 25.00 MiB (26214400 B");
    assert_text_has(err.msg, "alignment 1024");
    assert_text_has(err.msg, "active 3.00 MiB, of these pending 0 B in 0 blocks");
    assert_text_has(err.msg, "cached 19.00 MiB, reserved 22.00 MiB, largest free 17.00 MiB");
    assert_text_has(err.note, "small: 1 segments, 2.00 MiB");
    assert_text_has(err.note, "large: 1, 20.00 MiB, cached 17.00 MiB");
    assert_text_has(err.note, "captured work: 0, 0 B");
    assert_text_has(err.note, "fake:0 has no"); // the device's own words
    assert_true(stats_of(a).n_failed == 1);
    give_on(a, &small, s);
    give_on(a, &large, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_7_idle_memory_of_another_stream_is_the_last_resort(void **state) {
    (void)state;
    uint64_t from[FAKE_N_CALLS];
    tide_allocator *a = make_fake();
    fake_limit(20 * MIB);
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory live = take_on(a, 3 * MIB, s), idle = take_on(a, 5 * MIB, s);
    touch(&idle, s);
    give_on(a, &idle, s);
    note_calls(from);
    const tide_memory mem = take_on(a, 10 * MIB, t);
    assert_ptr_equal(mem.data, idle.data);
    assert_calls(from, 2, 0, 0);
    assert_true(fake_calls(FAKE_STREAM_SYNC) == from[FAKE_STREAM_SYNC]); // t waits, the host does not
    touch(&mem, t);
    assert_false(fake_step(t));
    fake_finish(s);
    assert_true(fake_step(t));
    give_on(a, &mem, t);
    give_on(a, &live, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

/// No memory; and while that was found out, all streams came to the end of their work.
static tide_status refuse_while_work_ends(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                                          tide_error *err) {
    const tide_status st = fake_mem_alloc(self, index, size_bytes, align_bytes, out, err);
    if (st == TIDE_ERR_NOMEM) fake_finish_all();
    return st;
}

static void rule_7_work_done_meanwhile_is_enough(void **state) {
    (void)state;
    uint64_t from[FAKE_N_CALLS];
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    tide_device_ops ops = fake_ops;
    ops.name = "refusing";
    ops.mem_alloc = refuse_while_work_ends;
    tide_device device = {0};
    assert_tide_ok(tide_device_register(&ops, &fake, &device.type, &err), &err);
    tide_allocator *a = make_on(device);
    fake_limit(20 * MIB);
    fake_hold(true);
    const tide_stream_id s = stream_on(device), t = stream_on(device);
    const tide_memory low = take_on(a, 10 * MIB, s), high = take_on(a, 10 * MIB, s);
    tide_allocator_record_use(a, &low, t);
    tide_allocator_record_use(a, &high, t);
    give_on(a, &low, s);
    give_on(a, &high, s);
    note_calls(from);
    const tide_memory both = take_on(a, 20 * MIB, s);
    assert_ptr_equal(both.data, low.data);
    assert_calls(from, 1, 0, 0); // asked once, waited for nothing, gave nothing back
    give_on(a, &both, s);
    tide_stream_destroy(device, s);
    tide_stream_destroy(device, t);
    tide_allocator_unref(a);
    tide_device_unregister(device.type);
    fake_teardown();
}

static void other_failures_of_the_device_are_passed_on(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    const tide_device device = fake_at(0);
    tide_allocator *a = make_on(device);
    tide_allocator *none = NULL;
    assert_tide_status(tide_stream_caching_create((tide_device){device.type, 5}, NULL, &none, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_stream_caching_create((tide_device){TIDE_DEVICE_CUDA, 0}, NULL, &none, &err),
                       TIDE_ERR_NOT_IMPLEMENTED);
    tide_device_unregister(device.type); // the device goes while an allocator of it still exists
    const tide_alloc_request req = {.size_bytes = 1};
    tide_memory mem = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_sound(a);
    assert_true(stats_of(a).n_failed == 1 && stats_of(a).reserved_bytes == 0);
    finish(a);
}

// ---- rule 8 ----

static tide_allocator *asked_from_inside;

/// Would stop for ever if the caller held the allocator's lock.
static tide_status alloc_and_look(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                                  tide_error *err) {
    if (asked_from_inside != NULL) assert_sound(asked_from_inside);
    return fake_mem_alloc(self, index, size_bytes, align_bytes, out, err);
}

static void free_and_look(void *self, int32_t index, void *ptr) {
    if (asked_from_inside != NULL) assert_sound(asked_from_inside);
    fake_mem_free(self, index, ptr);
}

static void rule_8_the_device_is_asked_with_the_lock_open(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    tide_device_ops ops = fake_ops;
    ops.name = "looking";
    ops.mem_alloc = alloc_and_look;
    ops.mem_free = free_and_look;
    tide_device device = {0};
    assert_tide_ok(tide_device_register(&ops, &fake, &device.type, &err), &err);
    tide_allocator *a = asked_from_inside = make_on(device);
    const tide_memory mem = take_on(a, 1000, 0), large = take_on(a, 2 * MIB, 0);
    give_on(a, &mem, 0);
    give_on(a, &large, 0);
    assert_true(fake_calls(FAKE_MEM_ALLOC) == 2 && fake_calls(FAKE_MEM_FREE) == 0); // frees do not ask the device
    tide_allocator_trim(a);
    assert_true(fake_calls(FAKE_MEM_FREE) == 2);
    asked_from_inside = NULL;
    tide_allocator_unref(a);
    tide_device_unregister(device.type);
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rule_7_nothing_is_tried_that_is_not_needed),
        tide_unit_test(rule_7_a_full_climb_and_then_the_numbers),
        tide_unit_test(rule_7_idle_memory_of_another_stream_is_the_last_resort),
        tide_unit_test(rule_7_work_done_meanwhile_is_enough),
        tide_unit_test(other_failures_of_the_device_are_passed_on),
        tide_unit_test(rule_8_the_device_is_asked_with_the_lock_open),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests_name("allocator stream_caching, out of memory", tests, NULL, NULL);
}
