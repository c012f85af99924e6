// SPDX-License-Identifier: MIT
//
// Streams and events of the simulated driver: work really runs beside the host, and each order that cuda.h promises
// holds.
#include "tests/cuda/driver/sim_test.h"

static void test_event_waits_for_gate(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create();
    CUevent event = sim_event_create();
    sim_gate gate;
    assert_ok(cuEventQuery(event)); // never recorded
    sim_hold(stream, &gate);
    assert_ok(cuEventRecord(event, stream));
    sim_settle();
    assert_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    assert_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    const pthread_t opens = sim_let_go_later(&gate);
    assert_ok(cuEventSynchronize(event));
    assert_int_equal(gate.n_passed, 1);
    pthread_join(opens, NULL);
    assert_ok(cuEventQuery(event));
    assert_ok(cuStreamQuery(stream));
    assert_ok(cuEventDestroy(event));
    assert_ok(cuStreamDestroy(stream));
    sim_close(0);
}

static void test_wait_event_orders(void **state) {
    (void)state;
    sim_open();
    CUstream first = sim_stream_create(), second = sim_stream_create(), free_one = sim_stream_create();
    CUevent event = sim_event_create();
    CUdeviceptr p;
    sim_gate gate;
    unsigned value = 0;
    assert_ok(cuMemAlloc(&p, 4));
    sim_hold(first, &gate);
    assert_ok(cuMemsetD32Async(p, 7, 1, first));
    assert_ok(cuEventRecord(event, first));
    assert_ok(cuStreamWaitEvent(second, event, 0));
    assert_ok(cuEventDestroy(event)); // the wait stays
    void *pinned;
    assert_ok(cuMemAllocHost(&pinned, 4));
    assert_ok(cuMemcpyDtoHAsync(pinned, p, 4, second));
    sim_settle();
    assert_ok(cuStreamSynchronize(free_one)); // a stream that waits for nothing is not held up
    assert_cu(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    sim_let_go(&gate);
    assert_ok(cuStreamSynchronize(second));
    memcpy(&value, pinned, 4);
    assert_int_equal(value, 7);
    assert_ok(cuMemFreeHost(pinned));
    assert_ok(cuMemFree(p));
    assert_ok(cuStreamDestroy(first));
    assert_ok(cuStreamDestroy(second));
    assert_ok(cuStreamDestroy(free_one));
    sim_close(0);
}

// The legacy default stream waits for blocking streams and they for it; a non-blocking one is outside.
static void test_legacy_order(void **state) {
    (void)state;
    sim_open();
    CUstream blocking, outside = sim_stream_create();
    assert_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CUdeviceptr p;
    assert_ok(cuMemAlloc(&p, 4));
    CUevent event = sim_event_create();
    sim_gate gate;
    sim_hold(blocking, &gate);
    assert_ok(cuMemsetD32Async(p, 1, 1, NULL)); // waits for the blocking one
    assert_ok(cuEventRecord(event, NULL));
    sim_settle();
    assert_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    assert_ok(cuStreamSynchronize(outside));
    sim_let_go(&gate);
    assert_ok(cuEventSynchronize(event));

    sim_hold(CU_STREAM_LEGACY, &gate);
    assert_ok(cuEventRecord(event, blocking)); // waits for the legacy one
    assert_ok(cuMemsetD32Async(p, 2, 1, outside));
    assert_ok(cuStreamSynchronize(outside));
    sim_settle();
    assert_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    sim_let_go(&gate);
    assert_ok(cuEventSynchronize(event));

    // cuMemsetD8 does not wait for a non-blocking stream, cuMemFree does.
    sim_hold(outside, &gate);
    assert_ok(cuMemsetD8(p, 0, 4));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(gate.n_passed, 0);
    pthread_t opens = sim_let_go_later(&gate);
    assert_ok(cuMemFree(p));
    assert_int_equal(gate.n_passed, 1);
    pthread_join(opens, NULL);
    void *pinned; // cuMemFreeHost as well, and allocating does not
    sim_hold(outside, &gate);
    assert_ok(cuMemAlloc(&p, 4));
    assert_ok(cuMemHostAlloc(&pinned, 4, 0));
    assert_int_equal(gate.n_passed, 0);
    opens = sim_let_go_later(&gate);
    assert_ok(cuMemFreeHost(pinned));
    assert_int_equal(gate.n_passed, 1);
    pthread_join(opens, NULL);
    assert_ok(cuMemFree(p));
    assert_ok(cuEventDestroy(event));
    assert_ok(cuStreamDestroy(blocking));
    assert_ok(cuStreamDestroy(outside));
    sim_close(0);
}

static void test_ids(void **state) {
    (void)state;
    sim_open();
    unsigned long long legacy, zero, first, second, again, mine;
    CUstream a = sim_stream_create(), b = sim_stream_create();
    assert_ok(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    assert_ok(cuStreamGetId(NULL, &zero));
    assert_int_equal(legacy, zero);
    assert_ok(cuStreamGetId(a, &first));
    assert_ok(cuStreamGetId(b, &second));
    assert_ok(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
    assert_true(first < second && second < mine);
    assert_ok(cuStreamDestroy(a));
    a = sim_stream_create(); // the handle may be the old one, the number is not
    assert_ok(cuStreamGetId(a, &again));
    assert_true(again > mine);
    assert_int_equal(tidesim_stream_id(NULL, a), again);
    assert_ok(cuStreamDestroy(a));
    assert_ok(cuStreamDestroy(b));
    assert_int_equal(tidesim_left(true), 0);
    sim_close(0);
}

static void test_destroy_with_work(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create();
    CUevent event = sim_event_create();
    sim_gate gate;
    sim_hold(stream, &gate);
    assert_ok(cuEventRecord(event, stream));
    assert_ok(cuStreamDestroy(stream)); // at once
    assert_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    assert_cu(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    assert_cu(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    const pthread_t opens = sim_let_go_later(&gate);
    assert_ok(cuCtxSynchronize()); // waits for it all the same
    assert_int_equal(gate.n_passed, 1);
    pthread_join(opens, NULL);
    assert_ok(cuEventQuery(event));
    assert_ok(cuEventDestroy(event));
    assert_cu(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    assert_cu(cuEventDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    sim_close(4);
}

static void test_elapsed(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create();
    CUevent begin = sim_event_create(), end = sim_event_create(), untimed;
    CUdeviceptr p;
    float ms = -1;
    assert_ok(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    assert_cu(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuMemAlloc(&p, 4));
    tidesim_set_delay_us(3000);
    assert_ok(cuEventRecord(begin, stream));
    assert_ok(cuMemsetD32Async(p, 0, 1, stream));
    assert_ok(cuEventRecord(end, stream));
    assert_ok(cuEventRecord(untimed, stream));
    assert_ok(cuStreamSynchronize(stream));
    tidesim_set_delay_us(0);
    assert_ok(cuEventElapsedTime(&ms, begin, end));
    assert_true(ms >= 3.0f);
    assert_cu(cuEventElapsedTime(&ms, begin, untimed), CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuMemFree(p));
    assert_ok(cuEventDestroy(begin));
    assert_ok(cuEventDestroy(end));
    assert_ok(cuEventDestroy(untimed));
    assert_ok(cuStreamDestroy(stream));
    sim_close(0);
}

static void call_the_driver(void *user) {
    size_t free_bytes, total;
    *(CUresult *)user = cuMemGetInfo(&free_bytes, &total);
}

// Pageable memory is staged when the copy is asked for; pinned memory is read when it runs.
static void test_async_copies(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create();
    CUdeviceptr p;
    int pageable = 1, *pinned, out;
    sim_gate gate;
    assert_ok(cuMemAlloc(&p, 4));
    assert_ok(cuMemAllocHost((void **)&pinned, 4));
    sim_hold(stream, &gate);
    assert_ok(cuMemcpyHtoDAsync(p, &pageable, 4, stream));
    pageable = 2;
    sim_let_go(&gate);
    assert_ok(cuMemcpyDtoHAsync(&out, p, 4, stream)); // to pageable memory: it waits
    assert_int_equal(out, 1);
    *pinned = 3;
    sim_hold(stream, &gate);
    assert_ok(cuMemcpyHtoDAsync(p, pinned, 4, stream));
    *pinned = 4;
    sim_let_go(&gate);
    assert_ok(cuMemcpyDtoHAsync(&out, p, 4, stream));
    assert_int_equal(out, 4);
    CUresult inside = CUDA_SUCCESS;
    assert_ok(cuLaunchHostFunc(stream, call_the_driver, &inside));
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
    assert_ok(cuMemFreeHost(pinned));
    assert_ok(cuMemFree(p));
    assert_ok(cuStreamDestroy(stream));
    sim_close(0);
}

// 2,000 streams, all with work at the same time.
static void test_many_streams(void **state) {
    (void)state;
    enum { MOST = 2000 };
    const int n = sim_is_valgrind() ? 100 : MOST;
    sim_open();
    static CUstream streams[MOST];
    CUdeviceptr p;
    sim_gate gate;
    assert_ok(cuMemAlloc(&p, MOST * sizeof(int)));
    sim_gate_init(&gate);
    for (int i = 0; i < n; i++) streams[i] = sim_stream_create();
    for (int i = 0; i < n; i++) {
        assert_ok(cuLaunchHostFunc(streams[i], sim_gate_pass, &gate));
        assert_ok(cuMemsetD32Async(p + (size_t)i * 4, (unsigned)i, 1, streams[i]));
    }
    assert_int_equal(gate.n_passed, 0);
    sim_let_go(&gate);
    for (int i = 0; i < n; i++) assert_ok(cuStreamDestroy(streams[i]));
    static int out[MOST];
    assert_ok(cuCtxSynchronize());
    assert_ok(cuMemcpyDtoH(out, p, sizeof out));
    for (int i = 0; i < n; i++) assert_int_equal(out[i], i);
    assert_ok(cuMemFree(p));
    sim_close(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_waits_for_gate), cmocka_unit_test(test_wait_event_orders),
        cmocka_unit_test(test_legacy_order),         cmocka_unit_test(test_ids),
        cmocka_unit_test(test_destroy_with_work),    cmocka_unit_test(test_elapsed),
        cmocka_unit_test(test_async_copies),         cmocka_unit_test(test_many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
