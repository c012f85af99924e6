// SPDX-License-Identifier: MIT
//
// Threads, and what ThreadSanitizer sees of streams. In a build with it, planted errors are run in a process of their
// own and must end in its report, and the same program without the error must not.
#include <sys/wait.h>

#include "tests/cuda/driver/sim_test.h"

static CUcontext shared_ctx;

static void *allocates(void *arg) {
    const size_t bytes = 1 + (size_t)(uintptr_t)arg % 5000;
    assert_ok(cuCtxSetCurrent(shared_ctx));
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p, block;
        assert_ok(cuMemAlloc(&p, bytes));
        assert_ok(cuMemAllocAsync(&block, bytes, CU_STREAM_PER_THREAD));
        assert_ok(cuMemsetD8Async(block, 1, bytes, CU_STREAM_PER_THREAD));
        assert_ok(cuMemFreeAsync(block, CU_STREAM_PER_THREAD));
        assert_ok(cuMemFree(p));
    }
    return NULL;
}

// Two thousand threads allocate, hundreds at once.
static void test_many_threads(void **state) {
    (void)state;
    enum { MOST = SIM_TSAN ? 400 : 2000 };
    const size_t n = sim_is_valgrind() ? 100 : MOST, at_once = sim_is_valgrind() ? 50 : 250;
    static pthread_t threads[MOST];
    shared_ctx = sim_open();
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocates, (void *)(uintptr_t)i), 0);
        if (i >= at_once) assert_int_equal(pthread_join(threads[i - at_once], NULL), 0);
    }
    for (size_t i = n - at_once; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_ok(cuCtxSynchronize());
    assert_int_equal(sim_count(TIDESIM_DEVICE).n_allocs, 3 * n);
    assert_int_equal(sim_count(TIDESIM_DEVICE).live_bytes, 0);
    assert_int_equal(sim_count(TIDESIM_POOL).live_bytes, 0);
    sim_close(0);
}

// Two streams write the same words; with `ordered` an event stands between. The host never waits in between, and the
// first has long finished when the second begins: only the missing order is the error.
static void two_streams(bool ordered) {
    sim_open();
    CUstream a = sim_stream_create(), b = sim_stream_create();
    CUevent event = sim_event_create();
    CUdeviceptr p;
    assert_ok(cuMemAlloc(&p, 4096));
    assert_ok(cuMemsetD32Async(p, 1, 1024, a));
    if (ordered) {
        assert_ok(cuEventRecord(event, a));
        assert_ok(cuStreamWaitEvent(b, event, 0));
    }
    usleep(20000);
    assert_ok(cuMemsetD32Async(p, 2, 1024, b));
    assert_ok(cuMemFree(p));
    assert_ok(cuEventDestroy(event));
    assert_ok(cuStreamDestroy(a));
    assert_ok(cuStreamDestroy(b));
    sim_close(0);
}

// A pool's block is used by a stream that does not follow its allocation, which has not come yet.
static void use_before_alloc(bool ordered) {
    sim_open();
    CUstream a = sim_stream_create(), b = sim_stream_create();
    CUevent event = sim_event_create();
    CUdeviceptr p;
    sim_gate gate;
    sim_hold(a, &gate);
    assert_ok(cuMemAllocAsync(&p, 4096, a));
    if (ordered) {
        assert_ok(cuEventRecord(event, a));
        assert_ok(cuStreamWaitEvent(b, event, 0));
        sim_let_go(&gate);
    }
    assert_ok(cuMemsetD32Async(p, 2, 1024, b));
    assert_ok(cuStreamSynchronize(b));
    sim_let_go(&gate);
    assert_ok(cuMemFreeAsync(p, b));
    assert_ok(cuCtxSynchronize());
    assert_ok(cuEventDestroy(event));
    assert_ok(cuStreamDestroy(a));
    assert_ok(cuStreamDestroy(b));
    sim_close(0);
}

typedef void program(bool ordered);

static int exit_of(program *run, bool ordered) {
    const pid_t pid = fork();
    if (pid == 0) {
        run(ordered);
        exit(0); // so that the sanitizer ends the process as it does at the end of main
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void test_race_is_seen(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(exit_of(two_streams, true), 0);
        if (SIM_TSAN) assert_int_equal(exit_of(two_streams, false), 66);
    }
    assert_int_equal(exit_of(use_before_alloc, true), 0);
    if (SIM_ASAN) assert_int_equal(exit_of(use_before_alloc, false), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_race_is_seen), cmocka_unit_test(test_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
