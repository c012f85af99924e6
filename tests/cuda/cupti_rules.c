// SPDX-License-Identifier: MIT
//
// cupti_rules: what CUPTI tells of memory, asked through its public API: as rules.c, on the simulated library in
// `make test` and on the real one in `make gpu-test`.
//
// Each step makes one call of the driver, flushes, and looks at the callbacks and records that came.
#include <cupti.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/rules.h"

typedef struct seen_call {
    char name[40];
    uint32_t correlation;
    uint64_t enter_ns, exit_ns;
} seen_call;

/// Of the calls since `forget`.
static seen_call calls[64];
static size_t n_calls;
static CUpti_ActivityMemory4 records[64];
static size_t n_records;
static CUpti_ActivityMemoryPool3 pools[64];
static size_t n_pools;
static size_t n_buffers, n_resource[16];

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static uint64_t CUPTIAPI stamp(void) { return now_ns(); }

static void CUPTIAPI on_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    (void)unused;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id < 16) n_resource[id]++;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
    const CUpti_CallbackData *call = data;
    if (call->callbackSite == CUPTI_API_ENTER && n_calls < 64) {
        seen_call *seen = &calls[n_calls++];
        snprintf(seen->name, sizeof seen->name, "%s", call->functionName);
        seen->correlation = call->correlationId;
        seen->enter_ns = now_ns();
    } else if (n_calls > 0) {
        calls[n_calls - 1].exit_ns = now_ns();
    }
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *max_records) {
    n_buffers++;
    *size = 1 << 20;
    *buffer = aligned_alloc(4096, *size);
    *max_records = 0;
}

static void CUPTIAPI take_buffer(CUcontext c, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)c, (void)stream, (void)size;
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2 && n_records < 64)
            memcpy(&records[n_records++], record, sizeof records[0]);
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL && n_pools < 64)
            memcpy(&pools[n_pools++], record, sizeof pools[0]);
    }
    free(buffer);
}

static void forget(void) { n_calls = n_records = n_pools = 0; }
static void flush(void) { rule_number("  cuptiActivityFlushAll", CUPTI_SUCCESS, cuptiActivityFlushAll(0)); }

/// What one call left: `n` records, of the operation, kind and bytes that are named (of the first one).
static void expect(const char *call, size_t n, int operation, int kind, uint64_t bytes) {
    char text[96];
    flush();
    snprintf(text, sizeof text, "%s: records", call);
    rule_number(text, n, n_records);
    if (n > 0 && n_records > 0) {
        rule_number("  operation", (unsigned)operation, records[0].memoryOperationType);
        rule_number("  kind of memory", (unsigned)kind, records[0].memoryKind);
        rule_number("  bytes", bytes, records[0].bytes);
    }
    snprintf(text, sizeof text, "%s: callbacks", call);
    rule_number(text, 1, n_calls);
    if (n > 0 && n_records > 0 && n_calls > 0) {
        rule_bool("  the record has the callback's correlation id", 1,
                  records[0].correlationId == calls[0].correlation);
        rule_bool("  its time lies inside the call", 1,
                  calls[0].enter_ns <= records[0].timestamp && records[0].timestamp <= calls[0].exit_ns);
    }
    forget();
}

static void ask_plain(void) {
    CUdeviceptr p;
    void *host;
    size_t pitch;
    MUST(cuMemAlloc(&p, 1000));
    expect("cuMemAlloc", 1, 1, 3, 1000);
    MUST(cuMemFree(p));
    expect("cuMemFree", 1, 2, 3, 1000);
    rule("cuMemAlloc(0)", "INVALID_VALUE", cuMemAlloc(&p, 0));
    expect("a call that fails", 0, 0, 0, 0);
    MUST(cuMemAllocPitch(&p, &pitch, 1000, 100, 4));
    expect("cuMemAllocPitch", 1, 1, 3, 102400);
    MUST(cuMemFree(p));
    expect("cuMemFree", 1, 2, 3, 102400);
    MUST(cuMemAllocManaged(&p, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    expect("cuMemAllocManaged", 1, 1, 5, 1 << 20);
    MUST(cuMemFree(p));
    expect("cuMemFree", 1, 2, 5, 1 << 20);
    MUST(cuMemHostAlloc(&host, 5000, 0));
    expect("cuMemHostAlloc", 1, 1, 2, 5000);
    MUST(cuMemFreeHost(host));
    expect("cuMemFreeHost", 1, 2, 2, 5000);
}

static void ask_async(void) {
    CUstream s;
    CUdeviceptr p;
    uint32_t id = 0;
    CUcontext context;
    MUST(cuCtxGetCurrent(&context));
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    rule_number("cuptiGetStreamIdEx", CUPTI_SUCCESS, cuptiGetStreamIdEx(context, s, 0, &id));
    forget();
    MUST(cuMemAllocAsync(&p, 1000, s));
    flush();
    rule_number("the first cuMemAllocAsync: records of pools", 1, n_pools);
    if (n_pools > 0) {
        rule_number("  operation", 1, pools[0].memoryPoolOperationType);
        rule_number("  size", 32 << 20, pools[0].size);
    }
    if (n_records > 0) {
        rule_number("  its own record: in the order of a stream", 1, records[0].isAsync);
        rule_number("  stream", id, records[0].streamId);
        rule_number("  reserved by its pool", 32 << 20, records[0].memoryPoolConfig.pool.size);
        rule_number("  used of its pool", 1000, records[0].memoryPoolConfig.utilizedSize);
    }
    expect("cuMemAllocAsync", 1, 1, 3, 1000);
    MUST(cuMemFreeAsync(p, s));
    expect("cuMemFreeAsync", 1, 2, 3, 1000);
    MUST(cuStreamSynchronize(s));
    flush();
    rule_bool("cuStreamSynchronize leaves a record of what the pool gave back", 1,
              n_pools > 0 && pools[n_pools - 1].memoryPoolOperationType == 3 && pools[n_pools - 1].size == 0);
    MUST(cuStreamDestroy(s));
    flush();
    forget();
}

static void ask_mapping(CUdevice device) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr p;
    CUmemGenericAllocationHandle h;
    MUST(cuMemAddressReserve(&p, 4 << 20, 0, 0, 0));
    flush();
    forget();
    MUST(cuMemCreate(&h, 4 << 20, &prop, 0));
    expect("cuMemCreate", 0, 0, 0, 0);
    MUST(cuMemMap(p, 4 << 20, 0, h, 0));
    expect("cuMemMap", 0, 0, 0, 0);
    MUST(cuMemSetAccess(p, 4 << 20, &access, 1));
    expect("cuMemSetAccess", 1, 1, 3, 4 << 20);
    MUST(cuMemUnmap(p, 4 << 20));
    expect("cuMemUnmap", 1, 2, 3, 4 << 20);
    MUST(cuMemRelease(h));
    expect("cuMemRelease", 0, 0, 0, 0);
    MUST(cuMemAddressFree(p, 4 << 20));
    flush();
    forget();
}

static void ask_contexts(CUdevice device) {
    CUcontext second;
    CUdeviceptr p;
    const size_t created = n_resource[CUPTI_CBID_RESOURCE_CONTEXT_CREATED];
    MUST(cuCtxCreate(&second, NULL, 0, device));
    rule_number("cuCtxCreate: callbacks of a new context", 1,
                n_resource[CUPTI_CBID_RESOURCE_CONTEXT_CREATED] - created);
    forget();
    MUST(cuMemAlloc(&p, 1000));
    expect("cuMemAlloc with two contexts", 2, 1, 3, 1000);
    MUST(cuCtxPopCurrent(&second));
    const size_t gone = n_resource[CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING];
    MUST(cuCtxDestroy(second));
    rule_number("cuCtxDestroy: callbacks of an ending context", 1,
                n_resource[CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING] - gone);
    flush();
    rule_number("  releases of what it still held", 1, n_records);
    forget();
}

static void ask_subscribers(void) {
    char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
    CUpti_SubscriberHandle second;
    CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                     .subscriberName = "another",
                                     .oldSubscriberName = old,
                                     .oldSubscriberSize = sizeof old};
    rule_number("a second cuptiSubscribe_v2", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                cuptiSubscribe_v2(&second, on_callback, NULL, &params));
    rule_text("  it is told", "CUPTI for rules", old);
}

static void begin(void) {
    static const CUpti_CallbackId asked[] = {
        CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,      CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2, CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
        CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,     CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
        CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,    CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync,
        CUPTI_DRIVER_TRACE_CBID_cuMemCreate,        CUPTI_DRIVER_TRACE_CBID_cuMemMap,
        CUPTI_DRIVER_TRACE_CBID_cuMemUnmap,         CUPTI_DRIVER_TRACE_CBID_cuMemRelease,
        CUPTI_DRIVER_TRACE_CBID_cuMemSetAccess};
    CUpti_SubscriberHandle sub;
    CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE, .subscriberName = "rules"};
    uint8_t value = 0;
    size_t size = sizeof value;
    rule_number("cuptiSubscribe_v2", CUPTI_SUCCESS, cuptiSubscribe_v2(&sub, on_callback, NULL, &params));
    ask_subscribers();
    rule_number("cuptiActivityRegisterTimestampCallback", CUPTI_SUCCESS, cuptiActivityRegisterTimestampCallback(stamp));
    rule_number("attribute PER_THREAD_ACTIVITY_BUFFER", CUPTI_SUCCESS,
                cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value));
    rule_number("  value", 1, value);
    rule_number("cuptiActivityRegisterCallbacks", CUPTI_SUCCESS,
                cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
    rule_number("MEMORY2", CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2));
    rule_number("MEMORY_POOL", CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY_POOL));
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        (void)!cuptiEnableCallback(1, sub, CUPTI_CB_DOMAIN_DRIVER_API, asked[i]);
    (void)!cuptiEnableDomain(1, sub, CUPTI_CB_DOMAIN_RESOURCE);
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUdeviceptr p;
    size_t n_dropped = 99;
    begin();
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    rule_number("a context: callbacks", 1, n_resource[CUPTI_CBID_RESOURCE_CONTEXT_CREATED]);
    flush();
    forget();
    ask_plain();
    ask_async();
    ask_mapping(device);
    ask_contexts(device);
    rule_number("cuptiActivityGetNumDroppedRecords", CUPTI_SUCCESS,
                cuptiActivityGetNumDroppedRecords(NULL, 0, &n_dropped));
    rule_number("  dropped", 0, n_dropped);
    MUST(cuMemAlloc(&p, 5000));
    flush();
    forget();
    MUST(cuDevicePrimaryCtxRelease(device));
    flush();
    rule_number("the last release of a context: records of what it still held", 0, n_records);
    rule_bool("buffers were asked for", 1, n_buffers > 0);
    printf("%d rules, %d differ\n", n_rules, n_differ);
    return n_differ > 0;
}
