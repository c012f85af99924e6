// SPDX-License-Identifier: MIT
//
// Contexts, devices, looking up functions, and what holds for all calls: order of checks, misuse, fork, planned
// failures.
#include <dlfcn.h>
#include <sys/wait.h>

#include "tests/cuda/driver/sim_test.h"

// In a process of its own, so that nothing was initialised yet. @return its exit status
static int in_child(int (*body)(void)) {
    const pid_t pid = fork();
    if (pid == 0) _exit(body());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int before_init(void) {
    CUdeviceptr p;
    int n, version;
    if (cuMemAlloc(&p, 1) != CUDA_ERROR_NOT_INITIALIZED || cuDeviceGetCount(&n) != CUDA_ERROR_NOT_INITIALIZED) return 1;
    if (cuDriverGetVersion(&version) != CUDA_SUCCESS || version != 13000) return 2;
    if (cuInit(1) != CUDA_ERROR_INVALID_VALUE) return 3;
    if (cuInit(0) != CUDA_SUCCESS || cuMemAlloc(&p, 1) != CUDA_ERROR_INVALID_CONTEXT) return 4;
    if (cuDeviceGetCount(&n) != CUDA_SUCCESS || n != 1) return 5;
    return 0;
}

static int after_fork(void) {
    CUdeviceptr p;
    if (cuMemAlloc(&p, 1) != CUDA_ERROR_NOT_INITIALIZED || cuInit(0) != CUDA_ERROR_NOT_INITIALIZED) return 1;
    return cuStreamSynchronize(NULL) != CUDA_ERROR_NOT_INITIALIZED;
}

// The environment: two devices of 1 GiB, an older version, the third cuMemAlloc fails with 719, a log.
static int with_environment(void) {
    setenv("TIDESIM_DEVICES", "2", 1);
    setenv("TIDESIM_BYTES", "1073741824", 1);
    setenv("TIDESIM_VERSION", "12080", 1);
    setenv("TIDESIM_CONTEXT_BYTES", "4194304", 1);
    setenv("TIDESIM_STREAM_BYTES", "574619", 1);
    setenv("TIDESIM_FAIL", "3:719:cuMemAlloc_v2", 1);
    setenv("TIDESIM_LOG", "sim_context.log", 1);
    int n, version;
    CUcontext first, second;
    CUdeviceptr a, b, c;
    unsigned out;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&n) != CUDA_SUCCESS || n != 2) return 1;
    if (cuDriverGetVersion(&version) != CUDA_SUCCESS || version != 12080) return 2;
    if (cuCtxCreate(&first, NULL, 0, 0) != CUDA_SUCCESS || cuMemAlloc(&a, 4) != CUDA_SUCCESS) return 3;
    if (sim_free_bytes() != 1073741824 - 4194304 - 2 * MIB) return 4;
    if (cuCtxCreate(&second, NULL, 0, 1) != CUDA_SUCCESS || cuMemAlloc(&b, 4) != CUDA_SUCCESS) return 5;
    if (cuMemAlloc(&c, 4) != CUDA_ERROR_LAUNCH_FAILED || cuMemAlloc(&c, 4) != CUDA_SUCCESS) return 6;
    if (cuMemsetD32(a, 9, 1) != CUDA_SUCCESS || cuMemcpyPeer(b, second, a, first, 4) != CUDA_SUCCESS) return 7;
    if (cuMemcpyDtoH(&out, b, 4) != CUDA_SUCCESS || out != 9) return 8;
    if (tidesim_taken(0) != 4194304 + 2 * MIB || tidesim_taken(1) != 4194304 + 2 * MIB) return 9;
    CUstream streams[100];
    for (int i = 0; i < 100; i++)
        if (cuStreamCreate(&streams[i], 0) != CUDA_SUCCESS) return 11;
    for (int i = 0; i < 100; i++)
        if (cuStreamDestroy(streams[i]) != CUDA_SUCCESS) return 12;
    if (tidesim_taken(1) != 4194304 + 2 * MIB + 68 * 574619) return 13;
    if (cuCtxDestroy(second) != CUDA_SUCCESS || cuCtxDestroy(first) != CUDA_SUCCESS) return 10;
    return tidesim_left(true) != 0 || tidesim_taken(0) != 0 || tidesim_taken(1) != 0;
}

static void test_environment(void **state) {
    (void)state;
    unlink("sim_context.log"); // of a run that failed
    assert_int_equal(in_child(with_environment), 0);
    char line[256];
    int n_allocs = 0, n_failed = 0;
    FILE *log = fopen("sim_context.log", "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL) {
        n_allocs += strstr(line, " cuMemAlloc_v2 ") != NULL;
        n_failed += strstr(line, " cuMemAlloc_v2 719") != NULL;
    }
    fclose(log);
    unlink("sim_context.log");
    assert_int_equal(n_allocs, 4);
    assert_int_equal(n_failed, 1);
}

static int injected(void) {
    setenv("CUDA_INJECTION64_PATH", getenv("SIM_INJECTED_LIBRARY"), 1);
    if (cuInit(0) != CUDA_SUCCESS || cuInit(0) != CUDA_SUCCESS) return 1;
    const char *times = getenv("SIM_INJECTED_TIMES");
    return times == NULL || strcmp(times, "1") != 0;
}

static void test_injection(void **state) {
    (void)state;
    assert_non_null(getenv("SIM_INJECTED_LIBRARY")); // ctest sets it
    assert_int_equal(in_child(injected), 0);
}

static void test_order_of_checks(void **state) {
    (void)state;
    assert_int_equal(in_child(before_init), 0); // the first test: the parent has not called cuInit
}

static void test_fork(void **state) {
    (void)state;
    sim_open();
    CUdeviceptr p;
    assert_ok(cuMemAlloc(&p, 1));
    assert_int_equal(in_child(after_fork), 0);
    assert_ok(cuMemFree(p));
    sim_close(0);
}

static void test_primary(void **state) {
    (void)state;
    CUcontext ctx = sim_open(), again;
    unsigned flags;
    int active;
    CUdeviceptr p;
    assert_ok(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(ctx, again);
    assert_ok(cuDevicePrimaryCtxRelease(0));
    CUdeviceptr block;
    assert_ok(cuMemAlloc(&p, 1));
    assert_ok(cuMemAllocAsync(&block, 1, NULL));
    assert_ok(cuDevicePrimaryCtxRelease(0)); // the last one: all of it goes
    assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    assert_int_equal(tidesim_taken(0), 0);
    assert_int_equal(tidesim_left(true), 0);
    assert_cu(cuMemAlloc(&p, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_cu(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    sim_open();
    assert_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    sim_close(2);
}

// A context takes its figure, its memory may be used and freed with another one current, and goes with it.
static void test_second_context(void **state) {
    (void)state;
    sim_open();
    CUcontext second, popped;
    CUdeviceptr mine, theirs;
    CUstream stream;
    CUevent event = sim_event_create();
    const uint64_t before = sim_free_bytes();
    assert_ok(cuMemAlloc(&mine, 4));
    assert_ok(cuCtxCreate(&second, NULL, 0, 0));
    assert_int_equal(before - sim_free_bytes(), 2 * MIB + 503360ULL * 1024);
    assert_ok(cuMemAlloc(&theirs, 4));
    stream = sim_stream_create();
    assert_cu(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuMemFree(mine));
    assert_ok(cuMemAlloc(&mine, 4));
    assert_ok(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, second);
    assert_ok(cuMemFree(theirs));
    CUdeviceptr block; // of the device, not of the context
    assert_ok(cuCtxPushCurrent(second));
    assert_ok(cuMemAllocAsync(&block, 1, NULL));
    assert_ok(cuCtxPopCurrent(NULL));
    assert_ok(cuCtxDestroy(second));
    assert_int_equal(sim_count(TIDESIM_POOL_BLOCK).live_bytes, 1);
    assert_ok(cuMemFree(block));
    assert_ok(cuCtxSynchronize());
    assert_cu(cuCtxDestroy(second), CUDA_ERROR_INVALID_CONTEXT);
    assert_cu(cuMemcpyDtoD(mine, mine, 1), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuEventDestroy(event));
    assert_int_equal(before, sim_free_bytes());
    sim_close(4);
}

static void *use_destroyed(void *arg) {
    CUcontext ctx = arg, current;
    CUdeviceptr p;
    assert_ok(cuCtxSetCurrent(ctx));
    CUcontext other;
    assert_ok(cuCtxPushCurrent(ctx));
    assert_ok(cuCtxDestroy(ctx)); // popped once here; below it is still current
    assert_ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, ctx);
    assert_cu(cuMemAlloc(&p, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_ok(cuCtxPopCurrent(&other));
    assert_cu(cuMemAlloc(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
    return NULL;
}

static void test_destroyed_but_current(void **state) {
    (void)state;
    sim_open();
    CUcontext second;
    assert_ok(cuCtxCreate(&second, NULL, 0, 0));
    assert_ok(cuCtxPopCurrent(NULL));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, use_destroyed, second), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sim_close(0);
}

static void test_proc_address(void **state) {
    (void)state;
    CUdriverProcAddressQueryResult status;
    void *fn, *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    assert_ok(cuGetProcAddress("cuMemAlloc", &fn, 13000, 0, &status));
    assert_ptr_equal(fn, dlsym(library, "cuMemAlloc_v2"));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    for (int i = 0; i < 2; i++) {
        assert_ok(cuGetProcAddress((const char *[]){"cuNoSuch", "cuMemAlloc_v2"}[i], &fn, 13000, 0, &status));
        assert_null(fn);
        assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    }
    assert_ok(cuGetProcAddress("cuStreamGetId", &fn, 2000, 0, &status));
    assert_null(fn);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_ok(
        cuGetProcAddress("cuStreamSynchronize", &fn, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    assert_ptr_equal(fn, dlsym(library, "cuStreamSynchronize_ptsz"));
    assert_ok(cuGetProcAddress("cuMemcpyHtoD", &fn, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    assert_ptr_equal(fn, dlsym(library, "cuMemcpyHtoD_v2_ptds"));
    assert_ok(cuGetProcAddress("cuCtxCreate", &fn, 11040, 0, &status));
    assert_ptr_equal(fn, dlsym(library, "cuCtxCreate_v3"));
    assert_ok(cuGetProcAddress("cuEventElapsedTime", &fn, 12000, 0, &status));
    assert_ptr_equal(fn, dlsym(library, "cuEventElapsedTime"));
    dlclose(library);
}

typedef struct entry {
    const char *base;
    void (*in_header)(void); ///< what cuda.h makes of the name
} entry;

// Whether cuGetProcAddress gives what cuda.h calls so. Four names have a newer form than that of the header.
static bool is_newer_than_header(const char *base) {
    return strcmp(base, "cuCtxSynchronize") == 0 || strcmp(base, "cuCtxGetDevice") == 0 ||
           strcmp(base, "cuStreamGetCtx") == 0 || strcmp(base, "cuGraphInstantiate") == 0;
}

static void test_names_of_header(void **state) {
    (void)state;
    static const entry entries[] = {
#define X(name, base, version, needs) {#base, (void (*)(void))base},
#include "tests/cuda/driver/sim_entries.h"
#undef X
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        CUdriverProcAddressQueryResult status;
        void *fn, *want;
        memcpy(&want, &entries[i].in_header, sizeof want);
        assert_ok(cuGetProcAddress(entries[i].base, &fn, CUDA_VERSION, 0, &status));
        if ((fn == want) == is_newer_than_header(entries[i].base)) fail_msg("%s is another function", entries[i].base);
    }
}

// Asked for version 13000, cuCtxSynchronize takes a context.
static void test_synchronize_13(void **state) {
    (void)state;
    CUcontext ctx = sim_open();
    CUdriverProcAddressQueryResult status;
    CUresult (*synchronize)(CUcontext);
    void *fn;
    assert_ok(cuGetProcAddress("cuCtxSynchronize", &fn, 13000, 0, &status));
    memcpy(&synchronize, &fn, sizeof fn);
    assert_ok(synchronize(ctx));
    assert_ok(synchronize(NULL));
    assert_cu(synchronize((CUcontext)(void *)&status), CUDA_ERROR_INVALID_CONTEXT);
    assert_ok(cuGetProcAddress("cuCtxSynchronize", &fn, 12080, 0, &status));
    assert_ptr_equal(fn, dlsym(RTLD_DEFAULT, "cuCtxSynchronize"));
    sim_close(1);
}

// One work of a program, whose every call may fail. It says with what.
static CUresult small_program(void) {
    CUdeviceptr p = 0, block = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUresult first = CUDA_SUCCESS;
    int out;
#define STEP(expr)                                                                                                     \
    do {                                                                                                               \
        if (first == CUDA_SUCCESS) first = (expr);                                                                     \
    } while (0)
#define UNDO(done, expr)                                                                                               \
    do {                                                                                                               \
        if (done) {                                                                                                    \
            const CUresult undone_ = (expr);                                                                           \
            if (first == CUDA_SUCCESS) first = undone_;                                                                \
            if (undone_ != CUDA_SUCCESS) assert_ok(expr);                                                              \
        }                                                                                                              \
    } while (0)
    STEP(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    STEP(cuEventCreate(&event, 0));
    STEP(cuMemAlloc(&p, 4096));
    STEP(cuMemAllocAsync(&block, 4096, stream));
    STEP(cuMemsetD32Async(block, 5, 1024, stream));
    STEP(cuMemcpyDtoDAsync(p, block, 4096, stream));
    STEP(cuEventRecord(event, stream));
    STEP(cuEventSynchronize(event));
    STEP(cuMemcpyDtoH(&out, p, 4));
    UNDO(block != 0, cuMemFreeAsync(block, stream));
    UNDO(p != 0, cuMemFree(p));
    UNDO(event != NULL, cuEventDestroy(event));
    UNDO(stream != NULL, cuStreamDestroy(stream));
    UNDO(true, cuCtxSynchronize());
    return first;
}

static void test_every_call_fails(void **state) {
    (void)state;
    sim_open();
    const uint64_t taken = tidesim_taken(0);
    uint64_t n = 0;
    CUresult got;
    do {
        tidesim_fail_nth(++n, CUDA_ERROR_ILLEGAL_ADDRESS, NULL);
        got = small_program();
        assert_true(got == CUDA_SUCCESS || got == CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_int_equal(tidesim_left(true), 0);
        assert_int_equal(tidesim_taken(0), taken);
    } while (got != CUDA_SUCCESS);
    assert_int_equal(n, 15); // 14 calls, and the run in which none fails
    assert_int_equal(tidesim_failed(), 14);
    tidesim_fail_nth(2, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc_v2");
    CUdeviceptr a, b;
    assert_ok(cuMemAlloc(&a, 1));
    assert_cu(cuMemAlloc(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemAlloc(&b, 1));
    assert_ok(cuMemFree(a));
    assert_ok(cuMemFree(b));
    sim_close(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_checks),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_injection),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_primary),
        cmocka_unit_test(test_second_context),
        cmocka_unit_test(test_destroyed_but_current),
        cmocka_unit_test(test_proc_address),
        cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_names_of_header),
        cmocka_unit_test(test_synchronize_13),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
