// SPDX-License-Identifier: MIT
//
// What the driver writes and tells beside its interface: the ledger file of a process that is killed, as another
// program reads it; the hooks for the simulated CUPTI; an injected library.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/cuda/driver/sim_test.h"

typedef struct shared {
    _Atomic int ready;
    uint64_t t_ns[3];
    uint64_t device_bytes[3], block_bytes[3];
} shared;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void note(shared *out, int i) {
    out->device_bytes[i] = sim_count(TIDESIM_DEVICE).live_bytes;
    out->block_bytes[i] = sim_count(TIDESIM_POOL_BLOCK).live_bytes;
    out->t_ns[i] = now_ns();
    usleep(1000);
}

// The victim: allocates, notes what is live, and waits to be killed.
static void victim(shared *out) {
    CUdeviceptr p[100], block;
    sim_open();
    for (size_t i = 0; i < 100; i++) assert_ok(cuMemAlloc(&p[i], 1 + i * 37));
    assert_ok(cuMemAllocAsync(&block, 12345, NULL));
    note(out, 0);
    for (size_t i = 0; i < 100; i += 3) assert_ok(cuMemFree(p[i]));
    note(out, 1);
    assert_ok(cuMemFreeAsync(block, NULL));
    note(out, 2);
    atomic_store(&out->ready, 1);
    for (;;) pause();
}

static void read_with_python(const char *ledger, const shared *out, char *text, size_t bytes) {
    char script[512], command[2048];
    tide_source_path("tests/cuda/driver/sim_ledger_read.py", script, sizeof script);
    snprintf(command, sizeof command, "python3 '%s' '%s' %llu %llu %llu", script, ledger,
             (unsigned long long)out->t_ns[0], (unsigned long long)out->t_ns[1], (unsigned long long)out->t_ns[2]);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, bytes - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

static void test_killed(void **state) {
    (void)state;
    shared *out = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t pid = fork(); // nothing of the driver was used here before
    if (pid == 0) {
        setenv("TIDESIM_LEDGER", "sim_ledger.%p", 1);
        victim(out);
    }
    while (!atomic_load(&out->ready)) usleep(1000);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    char path[64], text[4096], want[128];
    snprintf(path, sizeof path, "sim_ledger.%d", (int)pid);
    read_with_python(path, out, text, sizeof text);
    for (int i = 0; i < 3; i++) {
        snprintf(want, sizeof want, " device:0=%llu ", (unsigned long long)out->device_bytes[i]);
        assert_text_has(text, want);
        if (out->block_bytes[i] == 0) continue;
        snprintf(want, sizeof want, " pool_block:0=%llu", (unsigned long long)out->block_bytes[i]);
        assert_text_has(text, want);
    }
    assert_int_equal(out->block_bytes[0], 12345);
    assert_int_equal(out->block_bytes[2], 0);
    unlink(path);
    munmap(out, sizeof *out);
}

typedef struct told {
    int n_enter, n_exit, n_work, n_pool, n_context, n_stream;
    uint64_t live_bytes, copied_bytes;
    uint32_t last_correlation, stream, kernel_stream;
    CUdeviceptr asked_for;
} told;

static void on_api(void *user, const tidesim_api *call) {
    told *t = user;
    t->n_enter += call->enter;
    t->n_exit += !call->enter;
    if (call->enter) *call->cookie = call->correlation;
    if (!call->enter) assert_int_equal(*call->cookie, call->correlation);
    if (strcmp(call->name, "cuMemAlloc_v2") == 0) {
        struct {
            CUdeviceptr *dptr;
            size_t bytesize;
        } params;
        memcpy(&params, call->params, sizeof params);
        assert_int_equal(params.bytesize, 1000);
        if (!call->enter) t->asked_for = *params.dptr;
    }
    if (strcmp(call->name, "cuMemGetInfo_v2") == 0 && !call->enter) *call->result = CUDA_ERROR_UNKNOWN;
    t->last_correlation = call->correlation;
}

static void on_memory(void *user, const tidesim_memory *event) {
    told *t = user;
    assert_true(event->t_ns <= now_ns() && now_ns() - event->t_ns < 60000000000ULL);
    assert_int_equal(event->correlation, tidesim_correlation());
    if (event->is_async) assert_int_equal(event->pool_reserved, 32 * MIB);
    if (event->is_async && event->alloc) assert_int_equal(event->pool_used, event->bytes);
    if (event->is_async) t->stream = event->stream;
    t->live_bytes += event->alloc ? event->bytes : -event->bytes;
}

static void on_pool(void *user, const tidesim_pool_event *event) {
    told *t = user;
    assert_int_equal(event->op, t->n_pool == 0 ? TIDESIM_POOL_CREATED : TIDESIM_POOL_TRIMMED);
    assert_int_equal(event->reserved, t->n_pool == 0 ? 32 * MIB : 0);
    t->n_pool++;
}

static void on_work(void *user, const tidesim_work *event) {
    told *t = user;
    t->n_work++;
    assert_true(event->begin_ns <= event->end_ns);
    if (event->kind == TIDESIM_WORK_MEMSET) t->copied_bytes = event->bytes;
    t->kernel_stream = event->stream;
}

static void on_context(void *user, const tidesim_life *event) { ((told *)user)->n_context += event->created ? 1 : 100; }
static void on_stream(void *user, const tidesim_life *event) { ((told *)user)->n_stream += event->created ? 1 : 100; }

static void test_hooks(void **state) {
    (void)state;
    told t = {0};
    const tidesim_hooks hooks = {on_api, on_memory, on_pool, on_work, on_context, on_stream, &t};
    tidesim_set_hooks(&hooks);
    CUcontext ctx = sim_open();
    CUdeviceptr p, block;
    size_t free_bytes, total;
    CUstream stream = sim_stream_create();
    assert_ok(cuMemAlloc(&p, 1000));
    assert_int_equal(t.asked_for, p);
    assert_int_equal(t.last_correlation, tidesim_correlation());
    assert_ok(cuMemAllocAsync(&block, 50, stream));
    assert_int_equal(t.live_bytes, 1050);
    assert_int_equal(t.stream, tidesim_stream_id(ctx, stream));
    assert_ok(cuMemsetD8Async(block, 0, 50, stream));
    assert_ok(cuMemFreeAsync(block, stream));
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(t.n_work, 1);
    assert_int_equal(t.copied_bytes, 50);
    assert_int_equal(t.kernel_stream, tidesim_stream_id(ctx, stream));
    assert_int_equal(t.n_pool, 2);
    assert_ok(cuMemFree(p));
    assert_int_equal(t.live_bytes, 0);
    assert_cu(cuMemGetInfo(&free_bytes, &total), CUDA_ERROR_UNKNOWN); // the hook changed the result
    assert_ok(cuStreamDestroy(stream));
    assert_int_equal(t.n_stream, 102); // the default stream and ours came, ours went
    assert_int_equal(t.n_context, 1);
    assert_int_equal(t.n_enter, t.n_exit);
    tidesim_set_hooks(NULL);
    const int n = t.n_enter;
    sim_close(0);
    assert_int_equal(t.n_enter, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed), cmocka_unit_test(test_hooks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
