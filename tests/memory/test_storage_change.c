// SPDX-License-Identifier: MIT
//
// A storage that changes what it holds: reset, external memory, growing. Whatever fails, nothing is lost or half done.
#include <time.h>

#include "core/device/backend.h"
#include "core/memory/allocators/allocators.h"
#include "storage_test.h"

// ---- reset ----

// S28-3: 0 bytes empties; else rounded size, allocator chosen by device, zeroed, capacity = rounded size. The same
// holds for a live storage: the new memory is there before the old goes back through its own allocator; other users
// keep the old.
static void reset_gives_zeroed_memory(void **state) {
    (void)state;
    static mock m, elsewhere;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device fake1 = fake_at(1);
    tide_allocator *a = make_mock(&m, TIDE_CPU), *b = make_mock(&elsewhere, fake1);
    tide_registry *r = registry_of(a);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, b, 0, &err), &err);
    const tide_storage_spec here = spec_for(r, TIDE_CPU, "w"), there = spec_for(r, fake1, "w");

    tide_storage s = {.device = TIDE_CPU};
    assert_tide_ok(tide_storage_reset(&s, &here, 300, &err), &err);
    assert_int_equal(s.size_bytes, 512);
    assert_int_equal(m.asked.size_bytes, 512);
    assert_bytes(&s, 0, 512, 0);
    fill(&s, 9);

    tide_storage other = tide_storage_ref(&s); // of a live one
    assert_tide_ok(tide_storage_reset(&s, &here, 700, &err), &err);
    assert_int_equal(s.size_bytes, 768);
    assert_bytes(&s, 0, 768, 0);
    assert_bytes(&other, 0, 512, 9);
    assert_string_equal(m.order, "aa");
    tide_storage_deinit(&other);
    assert_string_equal(m.order, "aar");
    assert_int_equal(m.released.requested_bytes, 512);

    assert_tide_ok(tide_storage_reset(&s, &there, 100, &err), &err); // to another device
    assert_true(tide_device_equal(s.device, fake1));
    assert_string_equal(m.order, "aarr"); // the old memory went to its own allocator
    assert_string_equal(elsewhere.order, "a");
    assert_int_equal(fake_calls(FAKE_FILL), 1);
    assert_int_equal(fake_calls(FAKE_STREAM_SYNC), 1);
    static const char zeros[256];
    assert_memory_equal(fake_peek(1, tide_storage_data(&s), 256), zeros, 256);

    assert_tide_ok(tide_storage_reset(&s, &there, 0, &err), &err);
    assert_null(s.block);
    assert_int_equal(s.size_bytes, 0);
    assert_true(tide_device_equal(s.device, fake1));
    assert_string_equal(elsewhere.order, "ar");
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_allocator_unref(b);
    fake_teardown();
}

// S28-4: no allocator, or one that has nothing, leaves an empty storage that knows its device, and an error.
static void failed_reset_leaves_an_empty_storage(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    const tide_storage_spec here = spec_for(r, TIDE_CPU, "w"), nowhere = spec_for(r, cuda1, "w");
    tide_storage s = create(r, 100);
    m.fail_after = 0;
    assert_tide_status(tide_storage_reset(&s, &here, 300, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "mock has no 512 B");
    assert_null(s.block);
    assert_true(tide_storage_is_empty(&s));
    assert_true(tide_device_equal(s.device, TIDE_CPU));
    assert_string_equal(m.order, "afr");

    s = create(r, 100);
    assert_tide_status(tide_storage_reset(&s, &nowhere, 300, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "cuda:1");
    assert_null(s.block);
    assert_null(tide_storage_data(&s));
    assert_true(tide_device_equal(s.device, cuda1));
    assert_int_equal(m.n_allocs, m.n_releases);

    int n_failed = 0; // host memory
    for (;; n_failed++) {
        s = create(r, 100);
        tide_host_fail_after(n_failed);
        const tide_status st = tide_storage_reset(&s, &here, 300, &err);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_null(s.block);
    }
    tide_host_fail_after(-1);
    assert_int_equal(n_failed, 1);
    tide_storage_deinit(&s);
    assert_int_equal(m.n_allocs, m.n_releases);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// S28-2, S28-14 (storage level): set external: offset 0, their device and address, released after the last user.
static void external_memory_can_be_set(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    int n_released = 0;
    char bytes[64];
    tide_storage s = create(r, 100), part;
    tide_data_ptr p = tide_data_ptr_make(bytes, &n_released, count_release, TIDE_CPU);
    assert_tide_ok(tide_storage_set_external(&s, &p, 64, TIDE_KIND_PERSISTENT, "theirs", &err), &err);
    assert_null(p.data);
    assert_int_equal(m.n_releases, 1);
    assert_ptr_equal(tide_storage_data(&s), bytes);
    assert_int_equal(s.offset_bytes, 0);
    assert_int_equal(s.size_bytes, 64);
    assert_true(tide_device_equal(s.device, TIDE_CPU));
    assert_tide_ok(tide_storage_slice(&s, 8, 8, &part, &err), &err);
    tide_storage_deinit(&s);
    assert_int_equal(n_released, 0);
    tide_storage_deinit(&part);
    assert_int_equal(n_released, 1);

    // Refused: empty, as a failed reset; the memory stays the caller's.
    s = create(r, 100);
    p = tide_data_ptr_make(bytes, &n_released, count_release, TIDE_CPU);
    tide_host_fail_after(0);
    assert_tide_status(tide_storage_set_external(&s, &p, 64, TIDE_KIND_DEFAULT, NULL, &err), TIDE_ERR_NOMEM);
    assert_null(s.block);
    assert_ptr_equal(p.data, bytes);
    assert_int_equal(n_released, 1);
    tide_data_ptr_reset(&p);
    assert_int_equal(m.n_allocs, m.n_releases);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

typedef enum { OWNED, EXTERNAL, EMPTY, N_SORTS } sort;

static tide_storage make_sort(sort what, tide_registry *r, char *bytes, int *n_released) {
    tide_error err = TIDE_ERROR_INIT;
    tide_storage s = {.device = TIDE_CPU};
    if (what == OWNED) s = create(r, 100);
    tide_data_ptr p = tide_data_ptr_make(bytes, n_released, count_release, TIDE_CPU);
    if (what == EXTERNAL) assert_tide_ok(tide_storage_adopt(&p, 64, TIDE_KIND_DEFAULT, "first", &s, &err), &err);
    return s;
}

// S28-2: both calls that change, on an owned, an external and an empty storage: what it held is let go once, in its own
// way, and not before the new is there.
static void every_sort_takes_either_memory(void **state) {
    (void)state;
    for (sort from = OWNED; from < N_SORTS; from++) {
        for (sort to = OWNED; to < N_SORTS; to++) {
            static mock m;
            tide_error err = TIDE_ERROR_INIT;
            tide_allocator *a = make_mock(&m, TIDE_CPU);
            tide_registry *r = registry_of(a);
            char first[64], second[32];
            int n_first = 0, n_second = 0;
            tide_storage s = make_sort(from, r, first, &n_first);
            const tide_storage_spec spec = spec_for(r, TIDE_CPU, "w");
            tide_data_ptr p = tide_data_ptr_make(second, &n_second, count_release, TIDE_CPU);
            if (to == EXTERNAL)
                assert_tide_ok(tide_storage_set_external(&s, &p, 32, TIDE_KIND_DEFAULT, "second", &err), &err);
            else
                assert_tide_ok(tide_storage_reset(&s, &spec, to == OWNED ? 300 : 0, &err), &err);
            const size_t size = to == OWNED ? 512 : to == EXTERNAL ? 32 : 0;
            assert_int_equal(s.size_bytes, size);
            assert_true(tide_storage_is_empty(&s) == (to == EMPTY));
            assert_ptr_equal(tide_storage_data(&s), to == OWNED ? m.given : to == EXTERNAL ? second : NULL);
            assert_true(tide_device_equal(s.device, TIDE_CPU));
            if (to == OWNED) assert_bytes(&s, 0, size, 0);
            assert_int_equal(n_first, from == EXTERNAL ? 1 : 0);
            assert_int_equal(n_second, 0);
            static const char *const orders[N_SORTS][N_SORTS] = {{"aar", "ar", "ar"}, {"a", "", ""}, {"a", "", ""}};
            assert_string_equal(m.order, orders[from][to]);
            tide_storage_deinit(&s);
            assert_int_equal(n_first, from == EXTERNAL ? 1 : 0);
            assert_int_equal(n_second, to == EXTERNAL ? 1 : 0);
            assert_int_equal(m.n_allocs, m.n_releases);
            tide_registry_destroy(r);
            tide_allocator_unref(a);
        }
    }
}

// ---- growing ----

// PT-2: it grows on resize: old bytes kept, the rest zero; within the capacity nothing happens; other users keep
// theirs.
static void resize_keeps_the_bytes(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    tide_storage s = create(r, 256), other = tide_storage_ref(&s);
    fill(&s, 5);
    assert_tide_ok(tide_storage_resize(&s, NULL, 256, &err), &err);
    assert_tide_ok(tide_storage_resize(&s, NULL, 0, &err), &err);
    assert_ptr_equal(s.block, other.block);
    assert_int_equal(m.n_allocs, 1);
    assert_tide_ok(tide_storage_resize(&s, NULL, 257, &err), &err);
    assert_int_equal(s.size_bytes, 512);
    assert_string_equal(s.block->tag, "w"); // as the block was made
    assert_int_equal(m.asked.align_bytes, 256);
    assert_bytes(&s, 0, 256, 5);
    assert_bytes(&s, 256, 512, 0);
    fill(&s, 6);
    assert_bytes(&other, 0, 256, 5);

    tide_storage part; // a slice grows to a block of its own, with its own bytes
    assert_tide_ok(tide_storage_slice(&s, 128, 64, &part, &err), &err);
    assert_tide_ok(tide_storage_resize(&part, NULL, 300, &err), &err);
    assert_int_equal(part.offset_bytes, 0);
    assert_int_equal(part.size_bytes, 512);
    assert_bytes(&part, 0, 64, 6);
    assert_bytes(&part, 64, 512, 0);
    tide_storage_deinit(&part);
    tide_storage_deinit(&s);
    tide_storage_deinit(&other);
    assert_int_equal(m.n_allocs, m.n_releases);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// To another device, and on a device within itself: the bytes come along, the tail is zero there too.
static void resize_crosses_devices(void **state) {
    (void)state;
    static mock m, far;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device fake1 = fake_at(1);
    tide_allocator *a = make_mock(&m, TIDE_CPU), *b = make_mock(&far, fake1);
    tide_registry *r = registry_of(a);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, b, 0, &err), &err);
    const tide_storage_spec here = spec_for(r, TIDE_CPU, "w"), there = spec_for(r, fake1, "w");
    tide_storage s = create(r, 256);
    fill(&s, 5);
    assert_tide_ok(tide_storage_resize(&s, &there, 300, &err), &err);
    assert_true(tide_device_equal(s.device, fake1));
    assert_tide_ok(tide_storage_resize(&s, NULL, 600, &err), &err);
    assert_int_equal(fake.n_copies[TIDE_COPY_WITHIN_DEVICE], 1); // that one within the device
    assert_tide_ok(tide_storage_resize(&s, &here, 1000, &err), &err);
    assert_int_equal(s.size_bytes, 1024);
    assert_bytes(&s, 0, 256, 5);
    assert_bytes(&s, 256, 1024, 0);

    // A copy that fails leaves everything as it was.
    fake_fail(FAKE_COPY, 0, -1);
    const tide_storage before = s;
    assert_tide_status(tide_storage_resize(&s, &there, 2000, &err), TIDE_ERR_BACKEND);
    assert_memory_equal(&s, &before, sizeof s);
    tide_storage_deinit(&s);
    assert_int_equal(far.n_allocs, far.n_releases);
    assert_int_equal(m.n_allocs, m.n_releases);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_allocator_unref(b);
    fake_teardown();
}

// PT-4: without an allocator there is nothing to grow by: refused, with what to do; saying where is enough.
static void foreign_memory_cannot_grow_by_itself(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    char bytes[40];
    memset(bytes, 3, sizeof bytes);
    tide_data_ptr p = tide_data_ptr_bare(bytes, TIDE_CPU);
    tide_storage s, empty = {.device = TIDE_CPU};
    assert_tide_ok(tide_storage_adopt(&p, 40, TIDE_KIND_DEFAULT, "theirs", &s, &err), &err);
    assert_tide_status(tide_storage_resize(&s, NULL, 41, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "theirs");
    assert_true(err.hint[0] != '\0');
    assert_ptr_equal(tide_storage_data(&s), bytes);
    assert_tide_status(tide_storage_resize(&empty, NULL, 1, &err), TIDE_ERR_INVALID);
    const tide_storage_spec spec = spec_for(r, TIDE_CPU, NULL);
    assert_tide_ok(tide_storage_resize(&s, &spec, 41, &err), &err);
    assert_bytes(&s, 0, 40, 3);
    assert_bytes(&s, 40, 256, 0);
    tide_storage_deinit(&s);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

static void failed_resize_changes_nothing(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    tide_storage s = create(r, 100);
    fill(&s, 8);
    const tide_storage before = s;
    m.fail_after = 0;
    assert_tide_status(tide_storage_resize(&s, NULL, 1000, &err), TIDE_ERR_NOMEM);
    assert_memory_equal(&s, &before, sizeof s);
    assert_tide_status(tide_storage_resize(&s, NULL, SIZE_MAX, &err), TIDE_ERR_OVERFLOW);
    const tide_storage_spec nowhere = spec_for(r, cuda1, NULL);
    assert_tide_status(tide_storage_resize(&s, &nowhere, 1000, &err), TIDE_ERR_NOT_FOUND);
    tide_block_set_guard(s.block, TIDE_BLOCK_FAIL_ACCESS, 0);
    assert_tide_status(tide_storage_resize(&s, NULL, 1000, &err), TIDE_ERR_BUSY);
    tide_block_set_guard(s.block, 0, TIDE_BLOCK_FAIL_ACCESS);
    tide_host_fail_after(0);
    assert_tide_status(tide_storage_resize(&s, NULL, 1000, &err), TIDE_ERR_NOMEM);
    assert_memory_equal(&s, &before, sizeof s);
    assert_bytes(&s, 0, 256, 8);
    assert_int_equal(m.n_allocs - m.n_releases, 1);
    tide_storage_deinit(&s);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

/// Sleeps before it writes, so that code that does not wait for the stream runs first.
static void set_later(void *arg) {
    const struct timespec a_while = {.tv_nsec = 30 * 1000 * 1000};
    nanosleep(&a_while, NULL);
    memset(arg, 7, 256);
}

// S28-3, S28-11: the CPU's streams are threads. Copying bytes, and zeroing fresh memory (an earlier owner on that
// stream may still write there), waits for the stream first.
static void streams_are_waited_for(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    tide_stream_id stream = 0;
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    tide_registry *r = registry_of(a);
    tide_storage_spec spec = spec_for(r, TIDE_CPU, "w");
    spec.stream = stream;
    tide_storage s;
    assert_tide_ok(tide_storage_create(&spec, 256, &s, &err), &err);
    assert_tide_ok(tide_device_call(TIDE_CPU, stream, set_later, tide_storage_data(&s), &err), &err);
    assert_tide_ok(tide_storage_resize(&s, NULL, 512, &err), &err);
    assert_bytes(&s, 0, 256, 7);
    assert_bytes(&s, 256, 512, 0);
    tide_storage_deinit(&s);
    tide_registry_destroy(r);
    tide_allocator_unref(a);

    // Freed memory serves again at once on its own stream, before the work that is queued there is done.
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &a, &err), &err);
    r = registry_of(a);
    spec.registry = r;
    assert_tide_ok(tide_storage_create(&spec, 256, &s, &err), &err);
    void *const at = tide_storage_data(&s);
    assert_tide_ok(tide_device_call(TIDE_CPU, stream, set_later, at, &err), &err);
    tide_storage_deinit(&s);
    assert_tide_ok(tide_storage_reset(&s, &spec, 256, &err), &err);
    assert_ptr_equal(tide_storage_data(&s), at);
    assert_tide_ok(tide_stream_sync(TIDE_CPU, stream, &err), &err);
    assert_bytes(&s, 0, 256, 0);
    tide_storage_deinit(&s);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_stream_destroy(TIDE_CPU, stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(reset_gives_zeroed_memory),
        tide_unit_test(failed_reset_leaves_an_empty_storage),
        tide_unit_test(external_memory_can_be_set),
        tide_unit_test(every_sort_takes_either_memory),
        tide_unit_test(resize_keeps_the_bytes),
        tide_unit_test(resize_crosses_devices),
        tide_unit_test(foreign_memory_cannot_grow_by_itself),
        tide_unit_test(failed_resize_changes_nothing),
        tide_unit_test(streams_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
