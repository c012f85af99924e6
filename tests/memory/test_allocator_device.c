// SPDX-License-Identifier: MIT
//
// The plain allocator of a device: every block is a call to it, and an alignment is honoured or refused (S28_23).
#include "stream_caching_test.h"

static tide_allocator *make_plain(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_device_allocator_create(device, &a, &err), &err);
    return a;
}

static void every_block_is_a_call(void **state) {
    (void)state;
    fake_setup(2);
    tide_allocator *a = make_plain(fake_at(1));
    assert_string_equal(tide_allocator_name(a), "device");
    assert_true(tide_device_equal(tide_allocator_device(a), fake_at(1)));
    const tide_memory one = take(a, 1, 0), two = take(a, 5000, 4096);
    assert_true(one.reserved_bytes == 256 && two.reserved_bytes == 8192);
    assert_true(fake.live_bytes[1] == 256 + 8192 && fake.live_bytes[0] == 0);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 5001 && s.active_bytes == 256 + 8192 && s.reserved_bytes == s.active_bytes);
    assert_true(s.cached_bytes == 0 && s.largest_free_bytes == 0 && s.n_system == 2);
    give(a, &one);
    give(a, &two);
    assert_true(fake_calls(FAKE_MEM_FREE) == 2 && fake.live_bytes[1] == 0);
    assert_sound(a);
    tide_allocator_unref(a);
    fake_teardown();
}

static void alignment_is_honoured_S28_23(void **state) {
    (void)state;
    fake_setup(1);
    const tide_device devices[] = {TIDE_CPU, fake_at(0)};
    for (size_t d = 0; d < 2; d++) {
        tide_allocator *a = make_plain(devices[d]);
        tide_memory mem[8][13];
        for (size_t i = 0; i < 8; i++) { // several of each, so that none is aligned by luck
            for (size_t j = 0; j < 13; j++) {
                mem[i][j] = take(a, 100 + 512 * i, (size_t)1 << j);
                assert_true((uintptr_t)mem[i][j].data % ((size_t)1 << j) == 0);
                assert_true((uintptr_t)mem[i][j].data % 256 == 0);
            }
        }
        for (size_t i = 0; i < 8; i++) {
            for (size_t j = 0; j < 13; j++) give(a, &mem[i][j]);
        }
        assert_sound(a);
        tide_allocator_unref(a);
    }
    fake_teardown();
}

/// A device that never gives more than 256.
static tide_status poor_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                              tide_error *err) {
    (void)align_bytes;
    void *real = NULL;
    TIDE_TRY(fake_mem_alloc(self, index, size_bytes + 256, 4096, &real, err));
    *out = (char *)real + 256;
    return TIDE_OK;
}

static void poor_free(void *self, int32_t index, void *ptr) { fake_mem_free(self, index, (char *)ptr - 256); }

static void or_it_is_refused_S28_23(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    tide_device_ops ops = fake_ops;
    ops.name = "poor";
    ops.mem_alloc = poor_alloc;
    ops.mem_free = poor_free;
    tide_device device = {0};
    assert_tide_ok(tide_device_register(&ops, &fake, &device.type, &err), &err);
    tide_allocator *a = make_plain(device);
    tide_memory mem = {0};
    const tide_alloc_request req = {.size_bytes = 1000, .align_bytes = 512, .tag = "weights"};
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'weights' asked 1000 B (alignment 512)");
    assert_text_has(err.msg, "poor:0 does not honour an alignment of 512 B");
    assert_true(fake.n_live_blocks == 0 && stats_of(a).n_failed == 1 && stats_of(a).reserved_bytes == 0);
    mem = take(a, 1000, 256); // that it has
    give(a, &mem);
    tide_allocator_unref(a);
    tide_device_unregister(device.type);
    fake_teardown();
}

static void no_memory_is_reported_in_numbers(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(1);
    fake_limit(1000);
    tide_allocator *a = make_plain(fake_at(0));
    const tide_memory one = take(a, 700, 0);
    tide_memory mem = {0};
    tide_alloc_request req = {.size_bytes = 500, .tag = "x"};
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "on fake:0: 'x' asked 500 B (alignment 256), 768 B active");
    assert_null(mem.data);
    req.size_bytes = SIZE_MAX - 10;
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
    req.size_bytes = (size_t)PTRDIFF_MAX;
    assert_tide_status(tide_allocator_alloc(a, &req, &mem, &err), TIDE_ERR_NOMEM);
    assert_true(stats_of(a).n_failed == 3);
    assert_sound(a);
    give(a, &one);
    tide_allocator_unref(a);
    fake_teardown();
}

static void there_must_be_a_device(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_status(tide_device_allocator_create((tide_device){TIDE_DEVICE_CUDA, 0}, &a, &err),
                       TIDE_ERR_NOT_IMPLEMENTED);
    assert_tide_status(tide_device_allocator_create((tide_device){TIDE_DEVICE_CPU, 1}, &a, &err), TIDE_ERR_INVALID);
    assert_null(a);
    tide_host_fail_after(0);
    assert_tide_status(tide_device_allocator_create(TIDE_CPU, &a, &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(1);
    assert_tide_status(tide_device_allocator_create(TIDE_CPU, &a, &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    assert_null(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_block_is_a_call),   tide_unit_test(alignment_is_honoured_S28_23),
        tide_unit_test(or_it_is_refused_S28_23), tide_unit_test(no_memory_is_reported_in_numbers),
        tide_unit_test(there_must_be_a_device),
    };
    return cmocka_run_group_tests_name("allocator device", tests, NULL, NULL);
}
