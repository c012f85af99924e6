// SPDX-License-Identifier: MIT
//
// The driver's pool and the mapping of addresses, through the plug-in's table on the simulated driver.
#include "tests/cuda/plugin/cuda_test.h"

static tide_device_pool_stats stats_now(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_device_pool_stats stats;
    assert_tide_ok(ops->pool_stats(self, 0, &stats, &err), &err);
    return stats;
}

static void *take(tide_stream_id s, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    void *p = NULL;
    assert_tide_ok(ops->pool_alloc(self, 0, s, n, &p, &err), &err);
    assert_non_null(p);
    return p;
}

static void a_pool_keeps_what_it_is_told_to(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id s;
    assert_tide_ok(ops->stream_create(self, 0, &s, &err), &err);
    assert_int_equal(stats_now().reserved_bytes, 0);
    assert_tide_ok(ops->pool_keep(self, 0, UINT64_MAX, &err), &err);
    void *a = take(s, 1000), *b = take(0, 5 * MIB);
    assert_int_equal(stats_now().used_bytes, live_bytes(TIDESIM_POOL_BLOCK));
    assert_int_equal(live_bytes(TIDESIM_POOL_BLOCK), 1000 + 5 * MIB);
    assert_tide_ok(ops->fill(self, 0, s, a, 3, 1000, &err), &err);
    assert_tide_ok(ops->pool_free(self, 0, s, a, &err), &err);
    assert_tide_ok(ops->pool_free(self, 0, 0, b, &err), &err);
    assert_tide_ok(ops->pool_free(self, 0, 0, NULL, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, s, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
    tide_device_pool_stats stats = stats_now();
    assert_int_equal(stats.used_bytes, 0);
    assert_true(stats.reserved_bytes > 0 && stats.peak_used_bytes == 1000 + 5 * MIB);
    assert_int_equal(stats.reserved_bytes, live_bytes(TIDESIM_POOL));
    assert_int_equal(stats.peak_reserved_bytes, stats.reserved_bytes);
    assert_tide_ok(ops->pool_trim(self, 0, 0, &err), &err);
    assert_int_equal(stats_now().reserved_bytes, 0);
    ops->stream_destroy(self, 0, s);
}

/// What the device's default pool does is not ours.
static void the_pool_is_our_own(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    CUmemoryPool theirs;
    cuuint64_t used = 1;
    void *p = take(0, 100);
    assert_int_equal(cuDeviceGetDefaultMemPool(&theirs, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemPoolGetAttribute(theirs, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
    assert_int_equal(used, 0);
    assert_int_equal(stats_now().used_bytes, 100);
    assert_tide_ok(ops->pool_free(self, 0, 0, p, &err), &err);
}

static void a_pool_refuses_in_words(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id s;
    tide_capture_id c;
    void *p = NULL;
    assert_tide_status(ops->pool_alloc(self, 0, 0, 0, &p, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->pool_alloc(self, 0, 0, (size_t)1 << 50, &p, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "cuMemAllocFromPoolAsync of 1125899906842624 B");
    assert_tide_status(ops->pool_alloc(self, 0, 4711, 8, &p, &err), TIDE_ERR_INVALID);
    assert_tide_ok(ops->stream_create(self, 0, &s, &err), &err);
    p = take(s, 100);
    assert_tide_ok(ops->capture_begin(self, 0, s, &err), &err);
    void *none = NULL;
    assert_tide_status(ops->pool_alloc(self, 0, s, 8, &none, &err), TIDE_ERR_BUSY);
    assert_tide_status(ops->pool_free(self, 0, s, p, &err), TIDE_ERR_BUSY);
    assert_tide_ok(ops->capture_end(self, 0, s, &c, &err), &err);
    ops->capture_destroy(self, 0, c);
    assert_tide_ok(ops->pool_free(self, 0, s, p, &err), &err);
    ops->stream_destroy(self, 0, s);
}

static void memory_is_mapped_into_reserved_addresses(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char *base;
    unsigned char back[16];
    assert_tide_ok(ops->vm_reserve(self, 0, 64 * MIB, (void **)&base, &err), &err);
    assert_int_equal(live_bytes(TIDESIM_RESERVED), 64 * MIB);
    assert_int_equal(live_bytes(TIDESIM_PHYSICAL), 0);
    assert_tide_ok(ops->vm_map(self, 0, base, 4 * MIB, &err), &err);
    assert_tide_ok(ops->vm_map(self, 0, base + 4 * MIB, 2 * MIB, &err), &err);
    assert_int_equal(live_bytes(TIDESIM_PHYSICAL), 6 * MIB);
    // One block over the seam.
    assert_tide_ok(ops->fill(self, 0, 0, base + 4 * MIB - 8, 9, 16, &err), &err);
    assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_DEVICE_TO_HOST, back, base + 4 * MIB - 8, 16, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
    for (size_t i = 0; i < sizeof back; i++) assert_int_equal(back[i], 9);
    assert_tide_status(ops->vm_map(self, 0, base + 4 * MIB, 2 * MIB, &err), TIDE_ERR_INVALID); // twice
    assert_text_has(err.msg, "cuMemMap");
    assert_int_equal(tidesim_misuse(), 1); // that one
    tidesim_reset_counts();
    assert_tide_status(ops->vm_map(self, 0, base + 8 * MIB, 1000, &err), TIDE_ERR_INVALID); // no multiple of the step
    assert_tide_status(ops->vm_map(self, 0, base + 8 * MIB, 32ULL << 30, &err), TIDE_ERR_NOMEM);
    assert_int_equal(live_bytes(TIDESIM_PHYSICAL), 6 * MIB); // nothing was kept of the three
    ops->vm_unmap(self, 0, base, 4 * MIB);
    assert_int_equal(live_bytes(TIDESIM_PHYSICAL), 2 * MIB);
    ops->vm_unmap(self, 0, base + 4 * MIB, 2 * MIB);
    assert_int_equal(live_bytes(TIDESIM_PHYSICAL), 0);
    ops->vm_release(self, 0, base, 64 * MIB);
    assert_int_equal(live_bytes(TIDESIM_RESERVED), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cuda_unit_test(a_pool_keeps_what_it_is_told_to),
        cuda_unit_test(the_pool_is_our_own),
        cuda_unit_test(a_pool_refuses_in_words),
        cuda_unit_test(memory_is_mapped_into_reserved_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
