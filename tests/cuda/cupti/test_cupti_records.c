// SPDX-License-Identifier: MIT
//
// The parser of activity records, with NVIDIA's own cuptiActivityGetNextRecord (which works without a driver) over
// buffers made by hand: every kind of record of the header, truncated ones, garbage. The ledger, against a plain list.
#include <stdlib.h>

#include "cuda/cupti/recorder.h"
#include "tests/cuda/cupti/seen_events.h"
#include "tests/tide_test.h"

/// Kinds that the library steps over, with the newest struct of the header for each. For all others it stops: they are
/// of interfaces that it has no more.
#define KINDS(X)                                                                                                       \
    X(MEMCPY, CUpti_ActivityMemcpy6)                                                                                   \
    X(MEMSET, CUpti_ActivityMemset4)                                                                                   \
    X(KERNEL, CUpti_ActivityKernel10)                                                                                  \
    X(DRIVER, CUpti_ActivityAPI)                                                                                       \
    X(RUNTIME, CUpti_ActivityAPI)                                                                                      \
    X(DEVICE, CUpti_ActivityDevice5)                                                                                   \
    X(CONTEXT, CUpti_ActivityContext3)                                                                                 \
    X(CONCURRENT_KERNEL, CUpti_ActivityKernel10)                                                                       \
    X(NAME, CUpti_ActivityName)                                                                                        \
    X(MARKER, CUpti_ActivityMarker2)                                                                                   \
    X(MARKER_DATA, CUpti_ActivityMarkerData2)                                                                          \
    X(OVERHEAD, CUpti_ActivityOverhead3)                                                                               \
    X(CDP_KERNEL, CUpti_ActivityCdpKernel)                                                                             \
    X(PREEMPTION, CUpti_ActivityPreemption)                                                                            \
    X(ENVIRONMENT, CUpti_ActivityEnvironment)                                                                          \
    X(MEMCPY2, CUpti_ActivityMemcpyPtoP4)                                                                              \
    X(UNIFIED_MEMORY_COUNTER, CUpti_ActivityUnifiedMemoryCounter3)                                                     \
    X(FUNCTION, CUpti_ActivityFunction)                                                                                \
    X(MODULE, CUpti_ActivityModule)                                                                                    \
    X(DEVICE_ATTRIBUTE, CUpti_ActivityDeviceAttribute)                                                                 \
    X(OPENACC_DATA, CUpti_ActivityOpenAccData)                                                                         \
    X(OPENACC_LAUNCH, CUpti_ActivityOpenAccLaunch)                                                                     \
    X(OPENACC_OTHER, CUpti_ActivityOpenAccOther)                                                                       \
    X(CUDA_EVENT, CUpti_ActivityCudaEvent2)                                                                            \
    X(STREAM, CUpti_ActivityStream)                                                                                    \
    X(SYNCHRONIZATION, CUpti_ActivitySynchronization2)                                                                 \
    X(EXTERNAL_CORRELATION, CUpti_ActivityExternalCorrelation)                                                         \
    X(NVLINK, CUpti_ActivityNvLink4)                                                                                   \
    X(MEMORY, CUpti_ActivityMemory)                                                                                    \
    X(PCIE, CUpti_ActivityPcie)                                                                                        \
    X(OPENMP, CUpti_ActivityOpenMp)                                                                                    \
    X(INTERNAL_LAUNCH_API, CUpti_ActivityAPI)                                                                          \
    X(MEMORY2, CUpti_ActivityMemory4)                                                                                  \
    X(MEMORY_POOL, CUpti_ActivityMemoryPool3)                                                                          \
    X(GRAPH_TRACE, CUpti_ActivityGraphTrace2)                                                                          \
    X(JIT, CUpti_ActivityJit2)                                                                                         \
    X(DEVICE_GRAPH_TRACE, CUpti_ActivityDeviceGraphTrace)                                                              \
    X(MEM_DECOMPRESS, CUpti_ActivityMemDecompress)

static const struct kind_size {
    const char *name;
    uint32_t kind;
    size_t bytes;
} sizes[] = {
#define X(kind, type) {#kind, CUPTI_ACTIVITY_KIND_##kind, sizeof(type)},
    KINDS(X)
#undef X
};
enum { N_KINDS = sizeof sizes / sizeof sizes[0] };

static bool is_listed(uint32_t kind) {
    for (size_t i = 0; i < N_KINDS; i++)
        if (sizes[i].kind == kind) return true;
    return false;
}

static int begin(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    if (getenv("TIDEMARK_CUPTI") == NULL || getenv("TIDEMARK_CUPTI")[0] == '\0') {
        print_message("skipped: no libcupti of the toolkit\n");
        exit(77);
    }
    assert_int_equal(tide__cupti_library_open(&tide__cupti.lib, &err), TIDE_OK);
    tide__cupti.observer = seen_observer;
    tide__cupti.host = &seen_host;
    assert_true(tide__cupti_log_init(&tide__cupti.log));
    return 0;
}

/// All that there is in a buffer, as one that CUPTI gave back.
static void parse(const void *bytes, size_t n) {
    uint8_t *buffer;
    size_t size, most;
    tide__cupti_give_buffer(&buffer, &size, &most);
    assert_non_null(buffer);
    assert_true(n <= size);
    memcpy(buffer, bytes, n);
    tide__cupti_take_buffer(NULL, 0, buffer, size, n);
    tide__cupti_take_records(true);
}

static void forget(void) {
    n_seen = 0;
    tide__cupti_ledger_clear(&tide__cupti.ledger);
    tide__cupti_pools_clear();
    tide__cupti.counts = (tide_cupti_counts){0};
}

static CUpti_ActivityMemory4 allocation(uint64_t address, uint64_t bytes, uint64_t t_ns) {
    return (CUpti_ActivityMemory4){.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
                                   .memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                                   .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                   .correlationId = (uint32_t)t_ns,
                                   .address = address,
                                   .bytes = bytes,
                                   .timestamp = t_ns};
}

static void test_every_kind(void **state) {
    (void)state;
    for (uint32_t kind = 1; kind <= CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS; kind++) {
        uint8_t buffer[1024] __attribute__((aligned(8))) = {0};
        CUpti_Activity *record = NULL;
        memcpy(buffer, &kind, sizeof kind);
        const CUptiResult got = tide__cupti.lib.cuptiActivityGetNextRecord(buffer, sizeof buffer, &record);
        assert_int_equal(got, is_listed(kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND);
    }
    for (size_t i = 0; i < N_KINDS; i++) {
        uint8_t buffer[1024] __attribute__((aligned(8))) = {0};
        const CUpti_ActivityMemory4 behind = allocation(0x10000, 4096 + i, 1000 + i);
        forget();
        memcpy(buffer, &sizes[i].kind, sizeof sizes[i].kind);
        memcpy(buffer + sizes[i].bytes, &behind, sizeof behind);
        parse(buffer, sizes[i].bytes + sizeof behind);
        assert_int_equal(n_seen, 1); // and nothing of the record before it
        assert_int_equal(seen[0].bytes, 4096 + i);
        assert_string_equal(seen[0].tag, "unmatched");
        assert_int_equal(seen[0].t_ns, 1000 + i);
    }
}

/// Allocation and release, pools, graphs, variables, in any order of the buffers.
static void test_what_is_told(void **state) {
    (void)state;
    forget();
    CUpti_ActivityMemory4 m[6];
    for (size_t i = 0; i < 6; i++) m[i] = allocation(0x10000 + i * 4096, 4096, 100 * (6 - i));
    m[0].memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL; // the last one by its time
    m[0].memoryPoolConfig.address = 0x77;
    m[0].memoryPoolConfig.pool.size = 32 << 20;
    m[1].memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC;
    m[1].name = "weights";
    m[2].address = 0; // of a graph
    m[3].memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    m[4].address = m[5].address; // the release of m[5], which is before it
    m[4].memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    parse(m, sizeof m);
    for (size_t i = 1; i < n_seen; i++) assert_true(seen[i - 1].t_ns <= seen[i].t_ns);
    assert_int_equal(seen_live("CUPTI record"), 2 * 4096); // m[0] and m[3]
    assert_int_equal(seen_live("module"), 4096);
    assert_int_equal(seen_live("cuGraphLaunch"), 4096);
    assert_int_equal(seen_count(TIDE_MEM_SEGMENT_ALLOC, "cuMemAllocAsync"), 1);
    assert_int_equal(tide__cupti.counts.unmatched, 4);
    const CUpti_ActivityMemoryPool3 p[] = {
        {.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
         .memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED,
         .memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL,
         .address = 0x77,
         .size = UINT64_C(83852525568), // of a request that failed
         .timestamp = 1000},
        {.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
         .memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED,
         .memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL,
         .address = 0x77,
         .size = 10 << 20,
         .timestamp = 1001},
    };
    parse(p, sizeof p);
    assert_int_equal(seen_count(TIDE_MEM_SEGMENT_ALLOC, "cuMemAllocAsync"), 2); // what is left of the first one
    assert_int_equal(seen[n_seen - 1].bytes, 10 << 20);
}

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/// Nothing that lies in a buffer makes the parser read beyond it or tell an event that cannot be.
static void test_garbage(void **state) {
    (void)state;
    uint64_t seed = 88172645463325252U;
    for (int i = 0; i < 3000; i++) {
        uint64_t words[128];
        for (size_t k = 0; k < 128; k++) words[k] = next(&seed);
        if (i % 2 == 0)
            memcpy(words, &(uint32_t){CUPTI_ACTIVITY_KIND_MEMORY2 + (uint32_t)(i / 2 % 2)}, sizeof(uint32_t));
        if (i % 4 == 0) { // a record with all but some fields as they can be
            CUpti_ActivityMemory4 m = allocation(next(&seed), next(&seed), next(&seed));
            m.memoryOperationType = (CUpti_ActivityMemoryOperationType)(1 + next(&seed) % 2);
            m.bytes >>= next(&seed) % 64;
            memcpy(words, &m, sizeof m);
        }
        parse(words, next(&seed) % (sizeof words + 1));
        if (n_seen > SEEN_MAX / 2) forget();
    }
    assert_true(tide__cupti.counts.no_records > 100);
    for (size_t i = 0; i < n_seen; i++) assert_true((seen[i].bytes | seen[i].t_ns) >> 62 == 0);
}

// ---- the ledger ----

enum { N_NAMES = 3000, N_OPERATIONS = 200000 };

static void test_ledger(void **state) {
    (void)state;
    tide__cupti_ledger l = {0};
    static uint64_t serials[N_NAMES]; // what should be there; 0: nothing
    uint64_t seed = 1234567;
    for (int i = 0; i < N_OPERATIONS; i++) {
        const size_t n = next(&seed) % N_NAMES;
        const uint64_t key = 0x7f0000000000 + n * 512;
        const tide__cupti_space space = (tide__cupti_space)(n % 3);
        uint64_t bytes = 0;
        tide__cupti_block *b = tide__cupti_ledger_find(&l, space, key, &bytes);
        assert_int_equal(b != NULL ? b->serial : 0, serials[n]);
        if (b != NULL) {
            assert_int_equal(bytes, n + 1);
            tide__cupti_ledger_unbind(&l, space, key);
            tide__cupti_ledger_drop(&l, b);
            serials[n] = 0;
        } else {
            b = tide__cupti_ledger_new(&l);
            assert_non_null(b);
            serials[n] = b->serial;
            assert_true(tide__cupti_ledger_bind(&l, space, key, n + 1, b));
        }
    }
    size_t at = 0, n_live = 0, n_there = 0;
    while (tide__cupti_ledger_next(&l, &at) != NULL) n_live++;
    for (size_t i = 0; i < N_NAMES; i++) n_there += serials[i] != 0;
    assert_int_equal(n_live, n_there);
    tide__cupti_ledger_clear(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_kind), cmocka_unit_test(test_what_is_told),
                                       cmocka_unit_test(test_garbage), cmocka_unit_test(test_ledger)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
