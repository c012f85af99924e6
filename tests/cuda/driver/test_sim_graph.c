// SPDX-License-Identifier: MIT
//
// Capture and graphs of the simulated driver, and launches of kernels.
#include "tests/cuda/driver/sim_test.h"

static const uint32_t fatbin[4] = {0xba55ed50U, 0x00100001U, 0, 0};

static CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus status;
    assert_ok(cuStreamIsCapturing(stream, &status));
    return status;
}

static size_t n_nodes(CUgraph graph) {
    size_t n = 0;
    assert_ok(cuGraphGetNodes(graph, NULL, &n));
    return n;
}

static void test_kernels(void **state) {
    (void)state;
    sim_open();
    CUlibrary library;
    CUkernel add, count, none;
    CUfunction function;
    CUdeviceptr p, differ;
    assert_cu(cuLibraryLoadData(&library, "no image at all", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
    assert_ok(cuLibraryLoadData(&library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
    assert_ok(cuLibraryGetKernel(&add, library, "sim_test_add"));
    assert_ok(cuLibraryGetKernel(&count, library, "sim_test_count"));
    assert_cu(cuLibraryGetKernel(&none, library, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
    assert_ok(cuKernelGetFunction(&function, add));
    assert_ok(cuMemAlloc(&p, 4000));
    assert_ok(cuMemAlloc(&differ, 4));
    assert_ok(cuMemsetD32(p, 40, 1000));
    assert_ok(cuMemsetD32(differ, 0, 1));
    uint32_t n = 1000, value = 2, out;
    void *params[] = {&p, &n, &value};
    assert_ok(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    value = 41; // arguments are copied at the launch
    void *counted[] = {&p, &n, &value, &differ};
    assert_ok(cuLaunchKernel((CUfunction)count, 8, 1, 1, 128, 1, 1, 0, NULL, counted, NULL));
    assert_ok(cuMemcpyDtoH(&out, differ, 4));
    assert_int_equal(out, 1000);
    assert_ok(cuMemcpyDtoH(&out, p + 3996, 4));
    assert_int_equal(out, 42);
    assert_cu(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuLibraryUnload(library));
    assert_cu(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuMemFree(p));
    assert_ok(cuMemFree(differ));
    sim_close(1);
}

// Host function, then a memset in each of two streams, the second of which joins by an event.
static CUgraphExec capture_two(CUstream a, CUstream b, CUdeviceptr p, sim_gate *gate) {
    CUevent fork_event = sim_event_create(), join_event = sim_event_create();
    CUgraph graph;
    CUgraphExec exec;
    assert_ok(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(status_of(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_ok(cuLaunchHostFunc(a, sim_gate_pass, gate));
    assert_ok(cuEventRecord(fork_event, a));
    assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_ok(cuStreamWaitEvent(b, fork_event, 0));
    assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_ok(cuMemsetD32Async(p, 5, 1, a));
    assert_ok(cuMemsetD32Async(p + 4, 6, 1, b));
    assert_ok(cuEventRecord(join_event, b));
    assert_ok(cuStreamWaitEvent(a, join_event, 0));
    assert_ok(cuStreamEndCapture(a, &graph));
    assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(n_nodes(graph), 3);
    assert_cu(cuEventQuery(fork_event), CUDA_ERROR_INVALID_VALUE); // its capture is over
    assert_ok(cuGraphInstantiate(&exec, graph, 0));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuEventDestroy(fork_event));
    assert_ok(cuEventDestroy(join_event));
    return exec;
}

// The graph is launched twice and does its work each time.
static void test_capture(void **state) {
    (void)state;
    sim_open();
    CUstream a = sim_stream_create(), b = sim_stream_create();
    CUdeviceptr p;
    sim_gate gate;
    sim_gate_init(&gate);
    assert_ok(cuMemAlloc(&p, 8));
    assert_ok(cuMemsetD32(p, 1, 2));
    assert_ok(cuCtxSynchronize());
    const CUgraphExec exec = capture_two(a, b, p, &gate);
    unsigned out[2];
    assert_ok(cuMemcpyDtoH(out, p, 8));
    assert_int_equal(out[0], 1); // nothing has run so far
    sim_let_go(&gate);
    for (int i = 1; i <= 2; i++) {
        sim_gate before; // the graph follows what is in its stream
        sim_hold(b, &before);
        assert_ok(cuGraphLaunch(exec, b));
        sim_settle();
        assert_cu(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
        assert_int_equal(gate.n_passed, i - 1);
        sim_let_go(&before);
        assert_ok(cuStreamSynchronize(b));
        assert_int_equal(gate.n_passed, i);
        assert_ok(cuMemcpyDtoH(out, p, 8));
        assert_int_equal(out[0], 5);
        assert_int_equal(out[1], 6);
        assert_ok(cuMemsetD32(p, 1, 2));
        assert_ok(cuCtxSynchronize());
    }
    // The node of the stream that joined follows the host function of the other one.
    sim_gate_init(&gate);
    assert_ok(cuGraphLaunch(exec, b));
    sim_settle();
    assert_ok(cuMemcpyDtoHAsync(out, p, 8, a));
    assert_int_equal(out[1], 1);
    sim_let_go(&gate);
    assert_ok(cuStreamSynchronize(b));
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuMemFree(p));
    assert_ok(cuStreamDestroy(a));
    assert_ok(cuStreamDestroy(b));
    sim_close(0);
}

// What invalidates a capture of mode global, and what a thread of mode relaxed may do.
static void test_illegal(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create(), blocking;
    CUevent event = sim_event_create(), inside = sim_event_create();
    CUdeviceptr p;
    CUgraph graph;
    assert_ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    assert_ok(cuEventRecord(event, stream));
    assert_ok(cuStreamSynchronize(stream));
    for (int i = 0; i < 5; i++) {
        assert_ok(cuStreamBeginCapture(stream, i < 3 ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_RELAXED));
        if (i == 0) assert_cu(cuMemAlloc(&p, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        if (i == 1) assert_cu(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        if (i == 2) assert_cu(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        if (i == 3) assert_cu(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        if (i == 4) assert_ok(cuEventRecord(inside, stream));
        if (i == 4) assert_cu(cuEventQuery(inside), CUDA_ERROR_CAPTURED_EVENT);
        assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        assert_cu(cuLaunchHostFunc(stream, sim_gate_pass, NULL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_cu(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_null(graph);
        assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    }
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_ok(cuMemAlloc(&p, 1));
    assert_ok(cuMemFree(p));
    assert_ok(cuEventQuery(event));
    assert_ok(cuStreamEndCapture(stream, &graph));
    assert_int_equal(n_nodes(graph), 0);
    assert_ok(cuGraphDestroy(graph));
    assert_cu(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    assert_cu(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    // Work of the default stream would depend on the capture of a blocking one.
    assert_ok(cuMemAlloc(&p, 1));
    assert_ok(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_cu(cuMemsetD8Async(p, 0, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_cu(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // Work of a stream that joined and that nothing follows.
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_ok(cuEventRecord(inside, stream));
    assert_ok(cuStreamWaitEvent(blocking, inside, 0));
    assert_ok(cuMemsetD8Async(p, 0, 1, blocking));
    assert_cu(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_ok(cuMemFree(p));
    assert_ok(cuEventDestroy(event));
    assert_ok(cuEventDestroy(inside));
    assert_ok(cuStreamDestroy(stream));
    assert_ok(cuStreamDestroy(blocking));
    sim_close(0);
}

static void test_origin_goes(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create();
    CUdeviceptr p;
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuMemAllocAsync(&p, 10, stream));
    assert_int_equal(tidesim_live("capture"), 1);
    assert_ok(cuStreamDestroy(stream));
    assert_int_equal(tidesim_live("capture"), 0);
    assert_ok(cuMemAlloc(&p, 1));
    assert_ok(cuMemFree(p));
    sim_close(0);
}

// Allocation, memset, free and host function: four nodes; memory is taken at the launch and given back with the graph.
static void test_graph_memory(void **state) {
    (void)state;
    sim_open();
    CUstream stream = sim_stream_create();
    CUdeviceptr p;
    CUgraph graph;
    CUgraphExec exec;
    sim_gate gate;
    sim_gate_init(&gate);
    const uint64_t before = sim_free_bytes();
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuMemAllocAsync(&p, 1000, stream));
    assert_ok(cuMemsetD8Async(p, 1, 1000, stream));
    assert_ok(cuMemFreeAsync(p, stream));
    assert_ok(cuLaunchHostFunc(stream, sim_gate_pass, &gate));
    assert_ok(cuStreamEndCapture(stream, &graph));
    assert_int_equal(n_nodes(graph), 4);
    assert_ok(cuGraphInstantiate(&exec, graph, 0));
    assert_int_equal(sim_free_bytes(), before);
    sim_let_go(&gate);
    for (int i = 0; i < 2; i++) assert_ok(cuGraphLaunch(exec, stream));
    assert_int_equal(before - sim_free_bytes(), 32 * MIB);
    assert_int_equal(sim_count(TIDESIM_GRAPH).live_bytes, 32 * MIB);
    assert_ok(cuStreamSynchronize(stream));
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuGraphDestroy(graph));
    assert_int_equal(sim_free_bytes(), before);
    assert_ok(cuStreamDestroy(stream));
    sim_close(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),     cmocka_unit_test(test_capture),      cmocka_unit_test(test_illegal),
        cmocka_unit_test(test_origin_goes), cmocka_unit_test(test_graph_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
