// SPDX-License-Identifier: MIT
//
// Stream-ordered memory of the simulated driver: steps, the release threshold, and who may reuse a block when.
#include "tests/cuda/driver/sim_test.h"

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute name) {
    cuuint64_t value = 0;
    assert_ok(cuMemPoolGetAttribute(pool, name, &value));
    return value;
}
#define RESERVED(pool) attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
#define USED(pool) attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

static CUmemoryPool pool_create(void) {
    CUmemoryPool pool;
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    assert_ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void set_flag(CUmemoryPool pool, CUmemPool_attribute name, int value) {
    assert_ok(cuMemPoolSetAttribute(pool, name, &value));
}

static CUdeviceptr get(CUmemoryPool pool, size_t bytes, CUstream stream) {
    CUdeviceptr p = 0;
    assert_ok(cuMemAllocFromPoolAsync(&p, bytes, pool, stream));
    return p;
}

static void test_steps_and_threshold(void **state) {
    (void)state;
    sim_open();
    CUmemoryPool pool = pool_create();
    CUstream stream = sim_stream_create();
    assert_int_equal(RESERVED(pool), 0);
    CUdeviceptr a = get(pool, 100, stream), b = get(pool, 100, stream);
    assert_int_equal(b - a, 512);
    assert_int_equal(RESERVED(pool), 32 * MIB);
    assert_int_equal(USED(pool), 200);
    CUdeviceptr large = get(pool, 100 * MIB, stream);
    assert_int_equal(RESERVED(pool), 128 * MIB);
    assert_int_equal(sim_count(TIDESIM_POOL).live_bytes, 128 * MIB);
    assert_int_equal(sim_count(TIDESIM_POOL_BLOCK).live_bytes, 200 + 100 * MIB);
    assert_ok(cuMemFreeAsync(large, stream));
    assert_int_equal(USED(pool), 200);
    assert_int_equal(RESERVED(pool), 128 * MIB); // not before a wait
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(RESERVED(pool), 32 * MIB);
    assert_cu(cuMemFreeAsync(large, stream), CUDA_ERROR_INVALID_VALUE);
    cuuint64_t threshold = UINT64_MAX;
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    assert_ok(cuMemFreeAsync(a, stream));
    assert_ok(cuMemFreeAsync(b, stream));
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(RESERVED(pool), 32 * MIB);
    assert_int_equal(USED(pool), 0);
    assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 128 * MIB);
    assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 200 + 100 * MIB);
    assert_ok(cuMemPoolTrimTo(pool, 1)); // at least that much stays
    assert_int_equal(RESERVED(pool), 32 * MIB);
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(RESERVED(pool), 0);
    assert_ok(cuMemFreeAsync(get(pool, 0, stream), stream)); // zero bytes: a block of none
    sim_gate gate; // a free to come: the call returns at once, the memory goes later
    sim_hold(stream, &gate);
    assert_ok(cuMemFreeAsync(get(pool, 1, stream), stream));
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(sim_count(TIDESIM_POOL).live_bytes, 32 * MIB);
    sim_let_go(&gate);
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(sim_count(TIDESIM_POOL).live_bytes, 0);
    assert_ok(cuStreamDestroy(stream));
    sim_close(1);
}

// With a gate before the free: the same stream has the block at once, another one does not.
static void test_reuse_same_stream(void **state) {
    (void)state;
    sim_open();
    CUmemoryPool pool = pool_create();
    CUstream mine = sim_stream_create(), other = sim_stream_create();
    sim_gate gate;
    CUdeviceptr a = get(pool, MIB, mine);
    sim_hold(mine, &gate);
    assert_ok(cuMemFreeAsync(a, mine));
    CUdeviceptr theirs = get(pool, MIB, other);
    assert_int_not_equal(theirs, a);
    assert_int_equal(get(pool, MIB, mine), a);
    sim_let_go(&gate);
    assert_ok(cuMemFreeAsync(a, mine));
    assert_ok(cuMemFreeAsync(theirs, other));
    assert_ok(cuCtxSynchronize());
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuStreamDestroy(mine));
    assert_ok(cuStreamDestroy(other));
    sim_close(0);
}

static void test_reuse_by_event(void **state) {
    (void)state;
    sim_open();
    CUstream mine = sim_stream_create(), between = sim_stream_create(), other = sim_stream_create();
    CUevent event = sim_event_create();
    sim_gate gate;
    for (int follows = 0; follows < 2; follows++) {
        CUmemoryPool pool = pool_create();
        set_flag(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, follows);
        CUdeviceptr a = get(pool, 32 * MIB, mine);
        sim_hold(mine, &gate);
        assert_ok(cuMemFreeAsync(a, mine));
        assert_ok(cuEventRecord(event, mine));
        assert_ok(cuStreamWaitEvent(between, event, 0));
        assert_ok(cuEventRecord(event, between)); // over a third stream
        assert_ok(cuStreamWaitEvent(other, event, 0));
        CUdeviceptr b = get(pool, 32 * MIB, other);
        assert_int_equal(b == a, follows);
        sim_let_go(&gate);
        assert_ok(cuMemFreeAsync(b, other));
        assert_ok(cuCtxSynchronize());
        assert_ok(cuMemPoolDestroy(pool));
    }
    assert_ok(cuEventDestroy(event));
    assert_ok(cuStreamDestroy(mine));
    assert_ok(cuStreamDestroy(between));
    assert_ok(cuStreamDestroy(other));
    sim_close(0);
}

// A free that is done, though the host did not wait for it: only the opportunistic policy may use it.
static void test_reuse_opportunistic(void **state) {
    (void)state;
    sim_open();
    CUstream mine = sim_stream_create(), other = sim_stream_create();
    for (int may = 0; may < 2; may++) {
        CUmemoryPool pool = pool_create();
        set_flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, may);
        CUdeviceptr a = get(pool, 32 * MIB, mine);
        assert_ok(cuMemFreeAsync(a, mine));
        while (cuStreamQuery(mine) != CUDA_SUCCESS) usleep(100);
        CUdeviceptr b = get(pool, 32 * MIB, other);
        assert_int_equal(b == a, may);
        assert_ok(cuMemFreeAsync(b, other));
        assert_ok(cuCtxSynchronize());
        assert_ok(cuMemPoolDestroy(pool));
    }
    assert_ok(cuStreamDestroy(mine));
    assert_ok(cuStreamDestroy(other));
    sim_close(0);
}

// No memory is left: the asking stream is made to wait for the free, when that is allowed.
static void test_reuse_by_waiting(void **state) {
    (void)state;
    sim_open();
    CUstream mine = sim_stream_create(), other = sim_stream_create();
    CUmemoryPool pool = pool_create();
    tidesim_set_bytes(0, tidesim_taken(0) + 40 * MIB);
    sim_gate gate;
    CUdeviceptr a = get(pool, 30 * MIB, mine), b = 0;
    sim_hold(mine, &gate);
    assert_ok(cuMemFreeAsync(a, mine));
    set_flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    assert_cu(cuMemAllocFromPoolAsync(&b, 30 * MIB, pool, other), CUDA_ERROR_OUT_OF_MEMORY);
    set_flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1);
    b = get(pool, 30 * MIB, other);
    assert_int_equal(b, a);
    sim_settle();
    assert_cu(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    sim_let_go(&gate);
    assert_ok(cuStreamSynchronize(other));
    assert_ok(cuMemFreeAsync(b, other));
    tidesim_set_bytes(0, 0);
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuStreamDestroy(mine));
    assert_ok(cuStreamDestroy(other));
    sim_close(0);
}

static void test_device_pool(void **state) {
    (void)state;
    sim_open();
    CUmemoryPool standard, now, pool = pool_create();
    CUdeviceptr p;
    assert_ok(cuDeviceGetDefaultMemPool(&standard, 0));
    assert_ok(cuDeviceGetMemPool(&now, 0));
    assert_ptr_equal(standard, now);
    assert_int_equal(attribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    assert_cu(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuDeviceSetMemPool(0, pool));
    assert_ok(cuMemAllocAsync(&p, 1, NULL));
    assert_int_equal(USED(pool), 1);
    CUmemoryPool of;
    assert_ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(of, pool);
    assert_ok(cuMemPoolDestroy(pool)); // a block is live: the pool stays for it
    assert_cu(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sim_count(TIDESIM_POOL).live_bytes, 32 * MIB);
    assert_ok(cuMemFreeAsync(p, NULL));
    assert_ok(cuCtxSynchronize());
    assert_int_equal(sim_count(TIDESIM_POOL).live_bytes, 0);
    assert_ok(cuDeviceGetMemPool(&now, 0));
    assert_ptr_equal(standard, now);
    sim_close(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_and_threshold), cmocka_unit_test(test_reuse_same_stream),
        cmocka_unit_test(test_reuse_by_event),      cmocka_unit_test(test_reuse_opportunistic),
        cmocka_unit_test(test_reuse_by_waiting),    cmocka_unit_test(test_device_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
