// SPDX-License-Identifier: MIT
//
// Every call of the driver fails once: the right status with the call's name, nothing left in the driver's ledger, and
// the next run works.
#include "core/base/log.h"
#include "tests/cuda/plugin/cuda_test.h"

static uint64_t *counter;
static void add_one(void *arg) { ++*(int *)arg; }

// Each part takes what it needs and gives it back on every way out.

static tide_status use_memory(tide_error *err) {
    void *device = NULL, *odd = NULL, *pinned = NULL, *odd_pinned = NULL;
    uint64_t n_free, n_total;
    tide_status st = ops->memory_info(self, 0, &n_free, &n_total, err);
    if (st == TIDE_OK) st = ops->mem_alloc(self, 0, 5000, 256, &device, err);
    if (st == TIDE_OK) st = ops->mem_alloc(self, 0, 5000, MIB, &odd, err);
    if (st == TIDE_OK) st = ops->pinned_alloc(self, 0, 5000, 64, &pinned, err);
    if (st == TIDE_OK) st = ops->pinned_alloc(self, 0, 5000, MIB, &odd_pinned, err);
    if (st == TIDE_OK) st = ops->copy(self, 0, 0, TIDE_COPY_HOST_TO_DEVICE, device, pinned, 5000, err);
    if (st == TIDE_OK) st = ops->copy(self, 0, 0, TIDE_COPY_WITHIN_DEVICE, odd, device, 5000, err);
    if (st == TIDE_OK) st = ops->copy(self, 0, 0, TIDE_COPY_DEVICE_TO_HOST, pinned, odd, 5000, err);
    if (st == TIDE_OK) st = ops->stream_sync(self, 0, 0, err);
    ops->mem_free(self, 0, device);
    ops->mem_free(self, 0, odd);
    ops->pinned_free(self, 0, pinned);
    ops->pinned_free(self, 0, odd_pinned);
    return st;
}

static tide_status with_stream(tide_stream_id s, tide_event_id e, tide_error *err) {
    int n = 0;
    bool done;
    tide_capture_id c = 0;
    tide_status st = ops->call(self, 0, s, add_one, &n, err);
    if (st == TIDE_OK) st = ops->event_record(self, 0, e, s, err);
    if (st == TIDE_OK) st = ops->event_query(self, 0, e, &done, err);
    if (st == TIDE_OK) st = ops->event_sync(self, 0, e, err);
    if (st == TIDE_OK) st = ops->stream_wait_event(self, 0, s, e, err);
    if (st == TIDE_OK) st = ops->capture_begin(self, 0, s, err);
    if (st == TIDE_OK) st = ops->call(self, 0, s, add_one, &n, err);
    if (st == TIDE_OK) st = ops->capture_end(self, 0, s, &c, err);
    if (st == TIDE_OK) st = ops->capture_launch(self, 0, c, s, err);
    if (st == TIDE_OK) st = ops->stream_sync(self, 0, s, err);
    if (c != 0) ops->capture_destroy(self, 0, c);
    if (st == TIDE_OK) st = ops->capture_begin(self, 0, s, err); // goes with the stream
    // `n` is on this stack.
    if (st != TIDE_OK) ops->stream_destroy(self, 0, s);
    if (st == TIDE_OK) assert_int_equal(n, 2);
    return st;
}

static tide_status use_streams(tide_error *err) {
    tide_stream_id s = 0;
    tide_event_id e = 0;
    tide_status st = ops->stream_create(self, 0, &s, err);
    if (st == TIDE_OK) st = ops->event_create(self, 0, &e, err);
    if (st == TIDE_OK) st = with_stream(s, e, err);
    if (e != 0) ops->event_destroy(self, 0, e);
    if (s != 0) ops->stream_destroy(self, 0, s);
    return st;
}

static tide_status use_pool(tide_error *err) {
    void *p = NULL;
    tide_device_pool_stats stats;
    tide_status st = ops->pool_keep(self, 0, 64 * MIB, err);
    if (st == TIDE_OK) st = ops->pool_alloc(self, 0, 0, 5000, &p, err);
    if (st == TIDE_OK) st = ops->fill(self, 0, 0, p, 1, 5000, err);
    if (p != NULL) {
        tide_error twice = TIDE_ERROR_INIT;
        const tide_status freed = ops->pool_free(self, 0, 0, p, &twice);
        if (freed != TIDE_OK) assert_int_equal(ops->pool_free(self, 0, 0, p, NULL), TIDE_OK);
        if (st == TIDE_OK && freed != TIDE_OK) *err = twice;
        if (st == TIDE_OK) st = freed;
    }
    if (st == TIDE_OK) st = ops->stream_sync(self, 0, 0, err);
    if (st == TIDE_OK) st = ops->pool_stats(self, 0, &stats, err);
    if (st == TIDE_OK) st = ops->pool_trim(self, 0, 0, err);
    return st;
}

static tide_status use_mapping(tide_error *err) {
    void *base = NULL;
    TIDE_TRY(ops->vm_reserve(self, 0, 8 * MIB, &base, err));
    const tide_status st = ops->vm_map(self, 0, base, 2 * MIB, err);
    if (st == TIDE_OK) ops->vm_unmap(self, 0, base, 2 * MIB);
    ops->vm_release(self, 0, base, 8 * MIB);
    return st;
}

static tide_status use_patterns(tide_error *err) {
    void *p = NULL, *n = NULL;
    tide_status st = ops->mem_alloc(self, 0, 5000, 256, &p, err);
    if (st == TIDE_OK) st = ops->pinned_alloc(self, 0, sizeof *counter, 64, &n, err);
    if (st == TIDE_OK) {
        counter = n;
        *counter = 0;
        st = ops->pattern_fill(self, 0, 0, p, 5000, 3, err);
    }
    if (st == TIDE_OK) st = ops->pattern_check(self, 0, 0, p, 5000, 3, counter, err);
    if (st == TIDE_OK) st = ops->stream_sync(self, 0, 0, err);
    if (st == TIDE_OK) assert_int_equal(*counter, 0);
    ops->mem_free(self, 0, p);
    ops->pinned_free(self, 0, n);
    return st;
}

static tide_status use_all(tide_error *err) {
    TIDE_TRY(use_memory(err));
    TIDE_TRY(use_streams(err));
    TIDE_TRY(use_pool(err));
    TIDE_TRY(use_mapping(err));
    return use_patterns(err);
}

/// Loads the plug-in, uses all of it, and unloads it.
static tide_status run(tide_error *err) {
    TIDE_TRY(tide_device_load(cuda_0, err));
    ops = tide_device_find(cuda_0, &self);
    const tide_status st = use_all(err);
    tide_device_unload();
    return st;
}

static void nothing_is_left(uint64_t n) {
    tide_host_stats host;
    tide_host_get_stats(&host);
    if (tidesim_left(true) != 0 || tidesim_live("context") != 0)
        fail_msg("call %llu left something", (unsigned long long)n);
    assert_int_equal(tidesim_misuse(), 0);
    assert_int_equal(host.n_live, tide_host_live_before);
}

static void must_work(void) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(run(&err), &err);
}

static void each_call_fails_once(void **state) {
    (void)state;
    must_work();
    uint64_t n_failed = 0, n_errors = 0;
    for (uint64_t n = 1;; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tidesim_reset_counts();
        tidesim_fail_nth(n, CUDA_ERROR_OUT_OF_MEMORY, NULL);
        const tide_status st = run(&err);
        tidesim_fail_nth(0, CUDA_SUCCESS, NULL);
        if (tidesim_failed() == 0) break;
        n_failed++;
        nothing_is_left(n);
        if (st == TIDE_OK) continue; // a call that gives back, and was made once more
        n_errors++;
        if (st != TIDE_ERR_NOMEM) fail_msg("call %llu: %s: %s", (unsigned long long)n, tide_status_name(st), err.msg);
        assert_text_has(err.msg, "CUDA_ERROR_OUT_OF_MEMORY (2)");
        assert_text_has(err.msg, "cu");
        if (n % 10 == 0) must_work();
    }
    must_work();
    print_message("%llu calls failed, %llu runs with them\n", (unsigned long long)n_failed,
                  (unsigned long long)n_errors);
    assert_true(n_failed > 150 && n_errors > 100 && n_errors < n_failed);
}

/// Of each function the first call, with an error that says that the context is lost: no call hides it, or takes it for
/// something else.
static void each_function_says_what_failed(void **state) {
    (void)state;
    static const char *const names[] = {
        "cuDeviceGetCount",        "cuDeviceGet",           "cuDeviceGetName",
        "cuDeviceTotalMem",        "cuDeviceGetAttribute",  "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent",        "cuMemGetInfo",          "cuMemAlloc",
        "cuMemHostAlloc",          "cuMemcpyHtoDAsync",     "cuMemcpyDtoHAsync",
        "cuMemcpyDtoDAsync",       "cuMemsetD8Async",       "cuStreamCreate",
        "cuStreamSynchronize",     "cuStreamWaitEvent",     "cuLaunchHostFunc",
        "cuEventCreate",           "cuEventRecord",         "cuEventQuery",
        "cuEventSynchronize",      "cuStreamBeginCapture",  "cuStreamEndCapture",
        "cuGraphInstantiate",      "cuGraphLaunch",         "cuMemPoolCreate",
        "cuMemPoolSetAttribute",   "cuMemPoolGetAttribute", "cuMemPoolTrimTo",
        "cuMemAllocFromPoolAsync", "cuMemFreeAsync",        "cuMemGetAllocationGranularity",
        "cuMemAddressReserve",     "cuMemCreate",           "cuMemMap",
        "cuMemSetAccess",          "cuLibraryLoadData",     "cuLibraryGetKernel",
        "cuLaunchKernel"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        char sim_name[64];
        snprintf(sim_name, sizeof sim_name, "%s%s", names[i],
                 strcmp(names[i], "cuGraphInstantiate") == 0 ? "WithFlags" : "");
        tidesim_fail_nth(1, CUDA_ERROR_LAUNCH_FAILED, sim_name);
        const tide_status st = run(&err);
        const bool is_loading = strncmp(names[i], "cuDeviceGet", 11) == 0 ||
                                strcmp(names[i], "cuDeviceTotalMem") == 0 ||
                                strcmp(names[i], "cuMemGetAllocationGranularity") == 0;
        if (st != (is_loading ? TIDE_ERR_NOT_IMPLEMENTED : TIDE_ERR_BACKEND))
            fail_msg("%s: %s: %s", names[i], tide_status_name(st), err.msg);
        assert_text_has(err.msg, names[i]);
        assert_text_has(err.msg, "CUDA_ERROR_LAUNCH_FAILED (719): ");
        tidesim_fail_nth(0, CUDA_SUCCESS, NULL);
        nothing_is_left(i);
    }
}

/// What cannot be given back is said in the log, and the rest goes on.
static char log_text[4096];
static void keep_line(void *ctx, tide_log_level level, const char *line) {
    (void)ctx, (void)level;
    snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", line);
}

static void what_cannot_be_given_back_is_said(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    void *p;
    tide_log_set(keep_line, NULL, TIDE_LOG_WARN);
    open_cuda();
    assert_tide_ok(ops->mem_alloc(self, 0, 100, 64, &p, &err), &err);
    tidesim_fail_nth(1, CUDA_ERROR_LAUNCH_FAILED, "cuMemFree");
    ops->mem_free(self, 0, p);
    assert_text_has(log_text, "cuda:0: cannot give back: cuMemFree: CUDA_ERROR_LAUNCH_FAILED (719)");
    ops->mem_free(self, 0, p);
    tide_event_id e;
    assert_tide_ok(ops->event_create(self, 0, &e, &err), &err);
    ops->event_destroy(self, 0, e);
    tide_log_set(NULL, NULL, TIDE_LOG_WARN);
    close_cuda();
}

/// The host's memory runs out at every place.
static void host_memory_runs_out(void **state) {
    (void)state;
    for (int64_t n = 0;; n++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = run(&err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            assert_true(n > 6);
            return;
        }
        assert_int_equal(st, TIDE_ERR_NOMEM);
        nothing_is_left((uint64_t)n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(each_call_fails_once),
        tide_unit_test(each_function_says_what_failed),
        tide_unit_test(what_cannot_be_given_back_is_said),
        tide_unit_test(host_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
