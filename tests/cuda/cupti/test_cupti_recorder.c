// SPDX-License-Identifier: MIT
//
// The recorder in its own process, on the simulated driver: start and stop, calls of tidemark's own allocators,
// captures, physical memory under several addresses, threads.
#include <cuda.h>

#include "cuda/cupti/plugin.h"
#include "tests/cuda/cupti/seen_events.h"
#include "tests/cuda/driver/tidesim.h"
#include "tests/tide_test.h"

static CUcontext primary;
static tide_cupti_counts counts;

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

static void begin(void) {
    tide_error err = TIDE_ERROR_INIT;
    n_seen = 0;
    const tide_status st = tide__cupti_start(&seen_observer, &seen_host, &err);
    if (st != TIDE_OK) print_error("%s\n", err.msg);
    assert_int_equal(st, TIDE_OK);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
}

static void end(void) {
    OK(cuDevicePrimaryCtxRelease(0));
    tide__cupti_stop(&counts, true);
    assert_int_equal(counts.unmatched + counts.errors + counts.dropped + counts.no_room, 0);
    assert_int_equal(seen_live(NULL), 0);
}

static void test_start_and_stop(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p;
        tide_error err = TIDE_ERROR_INIT;
        begin();
        assert_int_equal(tide__cupti_start(&seen_observer, &seen_host, &err), TIDE_ERR_EXISTS);
        OK(cuMemAlloc(&p, 1000));
        assert_int_equal(seen_live("cuMemAlloc"), 1000);
        OK(cuMemFree(p));
        end();
        assert_int_equal(counts.matched, 2);
    }
    n_seen = 0;
    CUdeviceptr p; // nothing is heard any more
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    OK(cuMemAlloc(&p, 1000));
    OK(cuMemFree(p));
    OK(cuDevicePrimaryCtxRelease(0));
    assert_int_equal(n_seen, 0);
}

/// What tidemark's allocators take is counted and not told; a block keeps that, whichever call frees it.
static void test_own_calls(void **state) {
    (void)state;
    CUdeviceptr own[2], other;
    begin();
    tide_device_own_call_enter();
    OK(cuMemAlloc(&own[0], 5000));
    OK(cuMemAlloc(&own[1], 7000));
    tide_device_own_call_leave();
    OK(cuMemAlloc(&other, 100));
    tide__cupti_count(&counts);
    assert_int_equal(counts.own_bytes, 12000);
    assert_int_equal(seen_live("cuMemAlloc"), 100);
    OK(cuMemFree(other));
    OK(cuMemFree(own[0]));
    tide__cupti_count(&counts);
    assert_int_equal(counts.own_bytes, 7000);
    assert_int_equal(counts.own_peak_bytes, 12000);
    end(); // own[1] goes with the context
    assert_int_equal(counts.own_bytes, 0);
    assert_int_equal(counts.own_calls, 2);
}

static void test_capture(void **state) {
    (void)state;
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr p;
    begin();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemAllocAsync(&p, 1 << 20, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamEndCapture(s, &graph));
    assert_int_equal(n_seen, 0);
    OK(cuMemAllocAsync(&p, 1 << 20, s)); // the capture is over
    assert_int_equal(seen_live("cuMemAllocAsync"), 1 << 20);
    OK(cuMemFreeAsync(p, s));
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    OK(cuGraphInstantiateWithParams(&exec, graph, &params));
    OK(cuGraphLaunch(exec, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(s));
    end();
    assert_int_equal(counts.captured, 2);
    assert_int_equal(seen_count(TIDE_MEM_ALLOC, "cuGraphLaunch"), 1);
}

enum { PIECE = 2 << 20 };

static void test_mapping(void **state) {
    (void)state;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr at;
    CUmemGenericAllocationHandle a, b, again;
    begin();
    OK(cuMemAddressReserve(&at, 4 * PIECE, 0, 0, 0));
    OK(cuMemCreate(&a, PIECE, &prop, 0));
    OK(cuMemCreate(&b, PIECE, &prop, 0));
    assert_int_equal(seen_live("cuMemCreate"), 2 * PIECE);
    OK(cuMemMap(at, PIECE, 0, a, 0));
    OK(cuMemMap(at + PIECE, PIECE, 0, b, 0));
    assert_int_equal(seen_live("cuMemCreate"), 0);
    assert_int_equal(seen_live("cuMemMap"), 2 * PIECE);
    OK(cuMemMap(at + 2 * PIECE, PIECE, 0, a, 0)); // the same memory: no byte more
    assert_int_equal(seen_live("cuMemMap"), 2 * PIECE);
    OK(cuMemRelease(a));
    OK(cuMemRelease(b));
    assert_int_equal(seen_live("cuMemMap"), 2 * PIECE);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
    OK(cuMemUnmap(at, 2 * PIECE)); // two at once: b is gone, a is seen at its other address
    assert_int_equal(seen_live("cuMemMap"), PIECE);
    assert_int_equal(seen[n_seen - 1].op == TIDE_MEM_ALLOC ? seen[n_seen - 1].address : at + 2 * PIECE, at + 2 * PIECE);
    OK(cuMemUnmap(at + 2 * PIECE, PIECE));
    assert_int_equal(seen_live("cuMemMap"), 0);
    assert_int_equal(seen_live("cuMemCreate"), PIECE); // the handle that was retained keeps it
    OK(cuMemRelease(again));
    OK(cuMemAddressFree(at, 4 * PIECE));
    end();
}

/// One call of the driver fails: nothing is taken or given, and nothing is told but the request that was not met.
static void test_failures(void **state) {
    (void)state;
    CUdeviceptr p, q;
    begin();
    OK(cuMemAlloc(&p, 1000));
    tidesim_fail_nth(1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuMemFree_v2");
    assert_int_equal(cuMemFree(p), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(seen_live("cuMemAlloc"), 1000);
    tidesim_fail_nth(1, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc_v2");
    assert_int_equal(cuMemAlloc(&q, 3000), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(seen_live("cuMemAlloc"), 1000);
    assert_int_equal(seen[n_seen - 1].op, TIDE_MEM_OOM);
    assert_int_equal(seen[n_seen - 1].bytes, 3000);
    tidesim_fail_nth(0, CUDA_SUCCESS, NULL);
    OK(cuMemFree(p));
    end();
    assert_int_equal(counts.failed_frees, 1);
}

enum { N_THREADS = 4, N_ROUNDS = 1500 };

static void *use(void *unused) {
    (void)unused;
    CUdeviceptr p[8] = {0};
    if (cuCtxSetCurrent(primary) != CUDA_SUCCESS) return NULL;
    for (size_t i = 0; i < N_ROUNDS; i++) {
        CUdeviceptr *at = &p[i % 8];
        if (*at != 0 && cuMemFree(*at) != CUDA_SUCCESS) return NULL;
        if (cuMemAlloc(at, 512 + i) != CUDA_SUCCESS) return NULL;
    }
    for (size_t i = 0; i < 8; i++)
        if (cuMemFree(p[i]) != CUDA_SUCCESS) return NULL;
    return primary;
}

/// No byte is live twice: a block ends before another one begins at its address.
static void check_addresses(void) {
    static struct { uint64_t address, id; } at[1 << 16];
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < n_seen; i++) {
        size_t k = seen[i].address / 512 % (1 << 16);
        while (at[k].address != 0 && at[k].address != seen[i].address) k = (k + 1) % (1 << 16);
        if (seen[i].op == TIDE_MEM_ALLOC) {
            assert_int_equal(at[k].id, 0);
            at[k].address = seen[i].address;
            at[k].id = seen[i].block_id;
        } else if (seen[i].op == TIDE_MEM_FREE_COMPLETED) {
            assert_int_equal(at[k].id, seen[i].block_id);
            at[k].id = 0;
        }
    }
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    begin();
    for (size_t i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use, NULL), 0);
    for (size_t i = 0; i < N_THREADS; i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_ptr_equal(got, primary);
    }
    end();
    assert_int_equal(counts.matched, 2 * N_THREADS * N_ROUNDS);
    check_addresses();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_start_and_stop), cmocka_unit_test(test_own_calls),
                                       cmocka_unit_test(test_capture),        cmocka_unit_test(test_mapping),
                                       cmocka_unit_test(test_failures),       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
