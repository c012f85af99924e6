// SPDX-License-Identifier: MIT
//
// rules: what the driver answers, asked call by call through its public API. The same program runs on the simulated
// driver in `make test`, where every answer must be the one that a real device gave, and on a real driver in
// `make gpu-test`, where a difference is written down: so the simulation is held to measured facts.
//
//     rules           prints "rule | expected | answer" for each; exit code 1 when one differs
//     rules --facts   figures of this device that no rule expects (sizes of contexts, of streams), one on a line
//
// The expected answers were measured on an H100 80GB with driver 580.159.04 (docs/gpu-results.md).
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/rules.h"

static unsigned long long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

/// Bytes of the device in use now.
static size_t used(void) {
    size_t unused = 0, total = 0;
    MUST(cuMemGetInfo(&unused, &total));
    return total - unused;
}

/// Whether an answer took at least as long as the stream's work: it waited.
enum { WORK_US = 100000, WAITED_US = 60000 };
static void CUDA_CB hold(void *arg) {
    (void)arg;
    usleep(WORK_US);
}

// ---- before there is a context ----

static void ask_begin(CUdevice *device, CUcontext *context) {
    CUdeviceptr p;
    void *entry = NULL;
    CUdriverProcAddressQueryResult found;
    rule("cuMemAlloc before cuInit", "NOT_INITIALIZED", cuMemAlloc(&p, 1));
    rule("cuInit(1)", "INVALID_VALUE", cuInit(1));
    MUST(cuInit(0));
    MUST(cuDeviceGet(device, 0));
    rule("cuMemAlloc without a context", "INVALID_CONTEXT", cuMemAlloc(&p, 1));
    rule("cuGetProcAddress of a name that is none", "ok", cuGetProcAddress("cuNoSuch", &entry, 13000, 0, &found));
    rule_bool("  and it is found", 0, entry != NULL || found == CU_GET_PROC_ADDRESS_SUCCESS);
    rule("cuGetProcAddress(cuMemAlloc_v2)", "ok", cuGetProcAddress("cuMemAlloc_v2", &entry, 13000, 0, &found));
    rule_number("  status", CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, found);
    rule("cuGetProcAddress(cuStreamGetId) for version 2.0", "ok",
         cuGetProcAddress("cuStreamGetId", &entry, 2000, 0, &found));
    rule_number("  status", CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, found);
    MUST(cuDevicePrimaryCtxRetain(context, *device));
    MUST(cuCtxSetCurrent(*context));
}

// ---- plain memory ----

static void ask_sizes(void) {
    static const struct {
        size_t bytes, takes;
        const char *what;
    } rows[] = {{1, 2 << 20, "the first byte takes"},         {512, 0, "512 B beside it take"},
                {4096, 0, "4096 B beside them take"},         {1 << 20, 0, "1 MiB beside them takes"},
                {(1 << 20) + 1, 2 << 20, "1 MiB + 1 B take"}, {2 << 20, 2 << 20, "2 MiB take"},
                {(2 << 20) + 1, 4 << 20, "2 MiB + 1 B take"}, {20 << 20, 20 << 20, "20 MiB take"}};
    enum { N = sizeof rows / sizeof rows[0] };
    CUdeviceptr p[N];
    const size_t begin = used();
    for (size_t i = 0; i < N; i++) {
        const size_t before = used();
        MUST(cuMemAlloc(&p[i], rows[i].bytes));
        rule_number(rows[i].what, rows[i].takes, used() - before);
        if (i > 0 && i < 3) rule_number("  steps of 512 B behind the one before", 512, p[i] - p[i - 1]);
        rule_number("  address modulo 512", 0, p[i] % 512);
    }
    CUdeviceptr base;
    size_t size;
    MUST(cuMemGetAddressRange(&base, &size, p[1] + 100));
    rule_number("cuMemGetAddressRange gives the bytes that were asked", 512, size);
    for (size_t i = 0; i < N; i++) MUST(cuMemFree(p[i]));
    rule_number("after all is freed the device has back all but", 0, used() - begin);
}

static void ask_memory(void) {
    CUdeviceptr p = 0;
    void *host = NULL;
    size_t pitch = 0, total = 0, unused;
    MUST(cuMemGetInfo(&unused, &total));
    rule("cuMemAlloc(0)", "INVALID_VALUE", cuMemAlloc(&p, 0));
    rule("cuMemAlloc of twice the device", "OUT_OF_MEMORY", cuMemAlloc(&p, total * 2));
    rule("cuMemFree(0)", "ok", cuMemFree(0));
    rule("cuMemFree of a host address", "INVALID_VALUE", cuMemFree((CUdeviceptr)(uintptr_t)&p));
    MUST(cuMemAlloc(&p, MIB(1)));
    rule("cuMemFree of an inner address", "INVALID_VALUE", cuMemFree(p + 256));
    rule("cuMemFree", "ok", cuMemFree(p));
    rule("cuMemFree again", "INVALID_VALUE", cuMemFree(p));
    MUST(cuMemAllocPitch(&p, &pitch, 1000, 100, 4));
    rule_number("cuMemAllocPitch of 1000 B: pitch", 1024, pitch);
    MUST(cuMemFree(p));
    rule("cuMemHostAlloc(0)", "ok", cuMemHostAlloc(&host, 0, 0));
    MUST(cuMemHostAlloc(&host, MIB(1), CU_MEMHOSTALLOC_PORTABLE));
    rule("cuMemFree of pinned host memory", "INVALID_VALUE", cuMemFree((CUdeviceptr)(uintptr_t)host));
    rule("cuMemFreeHost", "ok", cuMemFreeHost(host));
    rule("cuMemFreeHost again", "INVALID_VALUE", cuMemFreeHost(host));
    rule("cuMemAllocManaged", "ok", cuMemAllocManaged(&p, MIB(1), CU_MEM_ATTACH_GLOBAL));
    rule("cuMemFree of managed memory", "ok", cuMemFree(p));
}

// ---- streams and events ----

static unsigned long long id_of(CUstream s) {
    unsigned long long id = 0;
    MUST(cuStreamGetId(s, &id));
    return id;
}

static void ask_streams(void) {
    CUstream a, b;
    CUevent e;
    MUST(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    rule_bool("ids of streams grow", 1, id_of(b) > id_of(a) && id_of(a) > id_of(0));
    rule_bool("handle 0 is the legacy stream", 1, id_of(0) == id_of(CU_STREAM_LEGACY));
    const unsigned long long gone = id_of(b);
    MUST(cuStreamDestroy(b));
    MUST(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    rule_bool("an id is used again", 0, id_of(b) == gone);
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    rule("an event that was never recorded", "ok", cuEventQuery(e));
    MUST(cuLaunchHostFunc(a, hold, NULL));
    MUST(cuEventRecord(e, a));
    rule("cuEventQuery behind work", "NOT_READY", cuEventQuery(e));
    rule("cuStreamQuery with work", "NOT_READY", cuStreamQuery(a));
    unsigned long long t = now_us();
    rule("cuStreamDestroy with work", "ok", cuStreamDestroy(a));
    rule_bool("  waits for it", 0, now_us() - t > WAITED_US);
    rule("  its event then", "NOT_READY", cuEventQuery(e));
    MUST(cuEventSynchronize(e));
    rule("  and after cuEventSynchronize", "ok", cuEventQuery(e));
    MUST(cuEventDestroy(e));
    rule("cuEventDestroy(NULL)", "INVALID_HANDLE", cuEventDestroy(NULL));
    MUST(cuStreamDestroy(b));
}

/// Which calls wait for the work of a stream that does not block.
static void ask_waits(void) {
    CUstream s;
    CUdeviceptr p, q;
    void *host;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&p, MIB(1)));
    MUST(cuMemHostAlloc(&host, MIB(1), 0));
#define WAITS(call, expected)                                                                                          \
    do {                                                                                                               \
        MUST(cuLaunchHostFunc(s, hold, NULL));                                                                         \
        const unsigned long long t = now_us();                                                                         \
        MUST(call);                                                                                                    \
        rule_bool(#call " waits for a stream that does not block", expected, now_us() - t > WAITED_US);                \
        MUST(cuStreamSynchronize(s));                                                                                  \
    } while (0)
    WAITS(cuMemAlloc(&q, MIB(64)), 0);
    WAITS(cuMemFree(q), 1);
    WAITS(cuMemFreeHost(host), 1);
    WAITS(cuMemHostAlloc(&host, MIB(1), 0), 0);
    WAITS(cuMemsetD8(p, 3, 4096), 0);
#undef WAITS
    MUST(cuMemFreeHost(host));
    MUST(cuMemFree(p));
    MUST(cuStreamDestroy(s));
}

// ---- capture ----

static CUstreamCaptureStatus status_of(CUstream s) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    MUST(cuStreamIsCapturing(s, &status));
    return status;
}

static void ask_capture_errors(CUstream s, CUevent e, CUdeviceptr q) {
    CUgraph g = NULL;
    CUdeviceptr p;
    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    rule("global capture: cuEventQuery", "STREAM_CAPTURE_UNSUPPORTED", cuEventQuery(e));
    rule("  further work", "STREAM_CAPTURE_INVALIDATED", cuMemsetD8Async(q, 1, 4096, s));
    rule_number("  status", CU_STREAM_CAPTURE_STATUS_INVALIDATED, status_of(s));
    rule("  cuStreamEndCapture", "STREAM_CAPTURE_INVALIDATED", cuStreamEndCapture(s, &g));
    rule_bool("  and there is a graph", 0, g != NULL);
    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    rule("global capture: cuMemAlloc", "STREAM_CAPTURE_UNSUPPORTED", cuMemAlloc(&p, 4096));
    rule("  cuStreamEndCapture", "STREAM_CAPTURE_INVALIDATED", cuStreamEndCapture(s, &g));
    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    rule("thread's capture: cuStreamSynchronize", "STREAM_CAPTURE_UNSUPPORTED", cuStreamSynchronize(s));
    rule("  cuStreamEndCapture", "STREAM_CAPTURE_INVALIDATED", cuStreamEndCapture(s, &g));
    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    rule("relaxed capture: cuMemAlloc", "ok", cuMemAlloc(&p, 4096));
    rule("relaxed capture: cuMemFree", "ok", cuMemFree(p));
    rule("relaxed capture: cuEventQuery of another's event", "ok", cuEventQuery(e));
    MUST(cuEventRecord(e, s));
    rule("relaxed capture: cuEventQuery of a captured event", "CAPTURED_EVENT", cuEventQuery(e));
    rule_number("  status", CU_STREAM_CAPTURE_STATUS_INVALIDATED, status_of(s));
    (void)!cuStreamEndCapture(s, &g);
}

static void ask_graph(CUstream s, CUstream other, CUevent e) {
    CUgraph g = NULL;
    CUgraphExec launched;
    CUdeviceptr p;
    size_t n_nodes = 0;
    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemAllocAsync(&p, MIB(1), s));
    MUST(cuMemsetD8Async(p, 1, MIB(1), s));
    MUST(cuMemFreeAsync(p, s));
    MUST(cuLaunchHostFunc(s, hold, NULL));
    MUST(cuEventRecord(e, s));
    MUST(cuStreamWaitEvent(other, e, 0));
    rule_number("a stream that waits for a captured event joins", CU_STREAM_CAPTURE_STATUS_ACTIVE, status_of(other));
    rule("cuStreamEndCapture", "ok", cuStreamEndCapture(s, &g));
    rule_number("  the other stream then", CU_STREAM_CAPTURE_STATUS_NONE, status_of(other));
    if (g == NULL) return;
    MUST(cuGraphGetNodes(g, NULL, &n_nodes));
    rule_number("  nodes of allocate, set, free and a host function", 4, n_nodes);
    MUST(cuGraphInstantiate(&launched, g, 0));
    MUST(cuGraphDestroy(g));
    rule("cuGraphLaunch", "ok", cuGraphLaunch(launched, s));
    rule("cuStreamQuery behind it", "NOT_READY", cuStreamQuery(s));
    MUST(cuStreamSynchronize(s));
    MUST(cuGraphExecDestroy(launched));
}

static void ask_capture(CUdevice device) {
    CUstream s, other;
    CUevent e;
    CUdeviceptr q;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&q, 4096));
    ask_capture_errors(s, e, q);
    MUST(cuEventDestroy(e));
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamDestroy(s));
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ask_graph(s, other, e);
    MUST(cuMemFree(q));
    MUST(cuEventDestroy(e));
    MUST(cuStreamDestroy(other));
    MUST(cuStreamDestroy(s));
    MUST(cuDeviceGraphMemTrim(device)); // what launches of the graph have taken, or it comes back at some later moment
}

// ---- memory in the order of a stream ----

static unsigned long long pool_number(CUmemoryPool pool, CUmemPool_attribute what) {
    cuuint64_t value = 0;
    MUST(cuMemPoolGetAttribute(pool, what, &value));
    return value;
}
#define USED(pool) pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
#define RESERVED(pool) pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)

static void ask_pool_keeps(CUmemoryPool pool, CUstream s) {
    CUdeviceptr big;
    cuuint64_t all = UINT64_MAX;
    rule("cuMemPoolSetAttribute(RELEASE_THRESHOLD)", "ok",
         cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    MUST(cuMemAllocFromPoolAsync(&big, MIB(100), pool, s));
    MUST(cuMemFreeAsync(big, s));
    MUST(cuStreamSynchronize(s));
    rule_number("threshold without end: reserved after cuStreamSynchronize", MIB(128), RESERVED(pool));
    MUST(cuMemPoolTrimTo(pool, 0));
    rule_number("  after cuMemPoolTrimTo(0)", MIB(32), RESERVED(pool));
}

static void ask_pool(CUdevice device) {
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemoryPool pool, usual;
    CUstream s;
    CUdeviceptr p, q, big;
    size_t total, unused;
    MUST(cuMemGetInfo(&unused, &total));
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuDeviceGetDefaultMemPool(&usual, device));
    rule_number("threshold of the default pool", 0, pool_number(usual, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
    const size_t before = used();
    MUST(cuMemPoolCreate(&pool, &props));
    rule_number("cuMemPoolCreate takes", 0, used() - before);
    MUST(cuMemAllocFromPoolAsync(&p, 100, pool, s));
    MUST(cuMemAllocFromPoolAsync(&q, 100, pool, s));
    rule_number("the first 100 B of a pool take", MIB(32), used() - before);
    rule_number("  the next lie behind them by", 512, q - p);
    rule_number("  used counts what was asked", 200, USED(pool));
    MUST(cuMemAllocFromPoolAsync(&big, MIB(100), pool, s));
    rule_number("100 MiB more: reserved", MIB(128), RESERVED(pool));
    rule("cuMemFreeAsync", "ok", cuMemFreeAsync(big, s));
    rule("cuMemFreeAsync again", "INVALID_VALUE", cuMemFreeAsync(big, s));
    rule_number("  used at once", 200, USED(pool));
    rule_number("  reserved before any wait", MIB(128), RESERVED(pool));
    MUST(cuStreamSynchronize(s));
    rule_number("threshold 0: reserved after cuStreamSynchronize", MIB(32), RESERVED(pool));
    rule("cuMemAllocFromPoolAsync of 0 B", "ok", cuMemAllocFromPoolAsync(&big, 0, pool, s));
    rule("cuMemFree of memory of a pool", "ok", cuMemFree(q));
    ask_pool_keeps(pool, s);
    rule("cuMemAllocFromPoolAsync of twice the device", "OUT_OF_MEMORY",
         cuMemAllocFromPoolAsync(&big, total * 2, pool, s));
    MUST(cuMemFreeAsync(p, s));
    MUST(cuStreamSynchronize(s));
    MUST(cuMemPoolDestroy(pool));
    rule_number("cuMemPoolDestroy gives back all but", 0, used() - before);
    MUST(cuStreamDestroy(s));
}

// ---- addresses first, memory later ----

static void ask_mapping(CUdeviceptr p, CUmemGenericAllocationHandle h, const CUmemAccessDesc *access) {
    const size_t before = used();
    rule("cuMemMap", "ok", cuMemMap(p, MIB(4), 0, h, 0));
    rule("cuMemMap there again", "INVALID_VALUE", cuMemMap(p, MIB(4), 0, h, 0));
    rule("cuMemSetAccess", "ok", cuMemSetAccess(p, MIB(4), access, 1));
    rule("cuMemsetD8 there", "ok", cuMemsetD8(p, 1, MIB(4)));
    MUST(cuCtxSynchronize()); // the work may still be on its way: cuMemUnmap need not wait for it
    rule("cuMemRelease while it is mapped", "ok", cuMemRelease(h));
    rule_number("  gives back", 0, before - used());
    rule("cuMemAddressFree while it is mapped", "INVALID_VALUE", cuMemAddressFree(p, MIB(64)));
    rule("cuMemUnmap of a half", "INVALID_VALUE", cuMemUnmap(p, MIB(2)));
    rule("cuMemUnmap", "ok", cuMemUnmap(p, MIB(4)));
    rule_number("  gives back", MIB(4), before - used());
    rule("cuMemAddressFree", "ok", cuMemAddressFree(p, MIB(64)));
}

static void ask_vmm(CUdevice device) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr p, q;
    CUmemGenericAllocationHandle h;
    size_t step = 0, total, unused;
    MUST(cuMemGetInfo(&unused, &total));
    MUST(cuMemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    rule_number("granularity", MIB(2), step);
    size_t before = used();
    MUST(cuMemAddressReserve(&p, MIB(64), 0, 0, 0));
    rule_number("cuMemAddressReserve takes", 0, used() - before);
    rule("cuMemAddressReserve of 1 MiB", "INVALID_VALUE", cuMemAddressReserve(&q, MIB(1), 0, 0, 0));
    rule("cuMemCreate of 1 MiB", "INVALID_VALUE", cuMemCreate(&h, MIB(1), &prop, 0));
    rule("cuMemCreate of twice the device", "OUT_OF_MEMORY", cuMemCreate(&h, total * 2, &prop, 0));
    before = used();
    MUST(cuMemCreate(&h, MIB(4), &prop, 0));
    rule_number("cuMemCreate of 4 MiB takes", MIB(4), used() - before);
    ask_mapping(p, h, &access);
    rule("cuMemAddressReserve of 1 TiB", "ok", cuMemAddressReserve(&p, (size_t)1 << 40, 0, 0, 0));
    rule("cuMemAddressFree of it", "ok", cuMemAddressFree(p, (size_t)1 << 40));
    MUST(cuMemCreate(&h, MIB(2), &prop, 0));
    rule("cuMemRelease", "ok", cuMemRelease(h));
    rule("cuMemRelease again", "INVALID_VALUE", cuMemRelease(h));
}

// ---- contexts, processes ----

static void ask_contexts(CUdevice device) {
    CUcontext second;
    CUdeviceptr first_block, p;
    MUST(cuMemAlloc(&first_block, 4096));
    MUST(cuCtxCreate(&second, NULL, 0, device));
    rule("cuMemFree of a block of another context", "ok", cuMemFree(first_block));
    MUST(cuMemAlloc(&p, 4096));
    MUST(cuCtxPopCurrent(&second));
    rule("use of a block of a context that is not current", "ok", cuMemsetD8(p, 1, 10));
    MUST(cuCtxSynchronize());
    MUST(cuCtxDestroy(second));
    rule("use of a block whose context is gone", "INVALID_VALUE", cuMemsetD8(p, 1, 10));
    rule("cuMemFree of it", "INVALID_VALUE", cuMemFree(p));
}

/// Exit codes of children carry the answer.
static void ask_fork(void) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        CUdeviceptr p;
        _exit(cuMemAlloc(&p, 10) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    rule_bool("a child after fork is told NOT_INITIALIZED", 1, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void tell_facts(CUdevice device) {
    enum { N_STREAMS = 1000 };
    static CUstream streams[N_STREAMS];
    char name[128] = "";
    int version = 0;
    CUcontext second;
    MUST(cuDeviceGetName(name, sizeof name, device));
    MUST(cuDriverGetVersion(&version));
    printf("device | %s\ndriver | %d\ncontext_bytes | %zu\n", name, version, used());
    size_t before = used();
    MUST(cuCtxCreate(&second, NULL, 0, device));
    printf("second_context_bytes | %zu\n", used() - before);
    MUST(cuCtxPopCurrent(&second));
    MUST(cuCtxDestroy(second));
    before = used();
    for (int i = 0; i < N_STREAMS; i++) MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    printf("bytes_of_1000_streams | %zu\n", used() - before);
    for (int i = 0; i < N_STREAMS; i++) MUST(cuStreamDestroy(streams[i]));
    printf("bytes_of_1000_destroyed_streams | %zu\n", used() - before);
}

int main(int argc, char **argv) {
    CUdevice device;
    CUcontext context;
    const int facts = argc > 1 && strcmp(argv[1], "--facts") == 0;
    if (facts) {
        MUST(cuInit(0));
        MUST(cuDeviceGet(&device, 0));
        MUST(cuDevicePrimaryCtxRetain(&context, device));
        MUST(cuCtxSetCurrent(context));
        tell_facts(device);
        return 0;
    }
    ask_begin(&device, &context);
    ask_sizes();
    ask_memory();
    ask_streams();
    ask_waits();
    ask_capture(device);
    ask_pool(device);
    ask_vmm(device);
    ask_contexts(device);
    ask_fork();
    MUST(cuDevicePrimaryCtxRelease(device));
    CUdeviceptr p;
    rule("cuMemAlloc after the last release of the context", "CONTEXT_IS_DESTROYED", cuMemAlloc(&p, 10));
    printf("%d rules, %d differ\n", n_rules, n_differ);
    return n_differ > 0;
}
