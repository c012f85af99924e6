// SPDX-License-Identifier: MIT
//
// The simulated CUPTI: records of memory, as an H100 with CUDA 13.0 was seen to make them (cupti_rules asks each of
// these of the real library):
//
//     cuMemAlloc, Pitch, Managed, HostAlloc, HostRegister    a record of each, and of each free
//     cuMemAllocAsync, cuMemFreeAsync                        the same, with pool, isAsync 1
//     cuMemFree of a pool's block                            context and stream 0xFFFFFFFF, isAsync 0
//     cuMemCreate, cuMemMap, cuMemRelease                    none
//     cuMemSetAccess, cuMemUnmap                             a record of each mapping, context 0xFFFFFFFF
//     memory of a graph, at its launch                       address 0, context 0xFFFFFFFF
//     two contexts                                           what is made in the second gives a record for each
//     a request to a pool that failed                        a MEMORY_POOL record with the size that was asked for
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/cupti/simcupti.h"

#define NONE 0xffffffffU

enum { MAX_MAPPINGS = 4096 };

typedef struct mapping {
    uint64_t address, bytes; ///< bytes 0: free
    uint32_t device;
    bool is_told;
} mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mapping mappings[MAX_MAPPINGS];
static uint64_t last_pool;

static CUpti_ActivityMemoryKind kind_of(tidesim_kind kind) {
    switch (kind) {
    case TIDESIM_PINNED:
    case TIDESIM_REGISTERED:
        return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case TIDESIM_MANAGED:
        return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    default:
        return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    }
}

static CUpti_ActivityMemory4 record_of(const tidesim_memory *e) {
    CUpti_ActivityMemory4 m = {.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
                               .memoryOperationType = e->alloc ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                                               : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
                               .memoryKind = kind_of(e->kind),
                               .correlationId = e->correlation,
                               .address = e->address,
                               .bytes = e->bytes,
                               .timestamp = sc_now_ns(),
                               .processId = e->pid,
                               .deviceId = e->device,
                               .contextId = e->context,
                               .streamId = NONE};
    if (e->kind == TIDESIM_POOL_BLOCK && e->pool != 0) {
        m.isAsync = e->stream != TIDESIM_NO_STREAM;
        m.streamId = m.isAsync ? sc_stream_id(e->stream) : NONE;
        if (!m.isAsync) m.contextId = NONE;
        m.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
        m.memoryPoolConfig.address = e->pool;
        m.memoryPoolConfig.releaseThreshold = e->pool_threshold;
        m.memoryPoolConfig.pool.size = e->pool_reserved;
        m.memoryPoolConfig.utilizedSize = e->pool_used;
    }
    return m;
}

/// With two contexts, what the second one makes is told for the first one, too.
static void put_for_contexts(CUpti_ActivityMemory4 *m) {
    uint32_t first;
    const uint32_t of = m->contextId;
    if (of != NONE && of != 0 && sc_live_contexts(&first) > 1 && first != of &&
        m->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION) {
        m->contextId = first;
        sc_put_record(m, sizeof *m);
        m->contextId = of;
    }
    sc_put_record(m, sizeof *m);
}

/// Notes the mapping, and says whether it was told before.
static bool note_mapping(const tidesim_memory *e) {
    bool was_told = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MAX_MAPPINGS; i++) {
        mapping *m = &mappings[i];
        if (e->alloc ? m->bytes != 0 : m->bytes == 0 || m->address != e->address) continue;
        was_told = m->is_told;
        *m = e->alloc ? (mapping){e->address, e->bytes, e->device, false} : (mapping){0};
        break;
    }
    pthread_mutex_unlock(&lock);
    return was_told;
}

void sc_on_memory(void *user, const tidesim_memory *e) {
    (void)user;
    if (!sc_is_enabled(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
    CUpti_ActivityMemory4 m = record_of(e);
    switch (e->kind) {
    case TIDESIM_MAPPED:
        if (!note_mapping(e)) return; // its allocation is told by cuMemSetAccess
        m.contextId = NONE;
        sc_put_record(&m, sizeof m);
        return;
    case TIDESIM_GRAPH:
        m.contextId = NONE;
        m.address = 0;
        sc_put_record(&m, sizeof m);
        return;
    case TIDESIM_PHYSICAL:
    case TIDESIM_POOL:
    case TIDESIM_RESERVED:
    case TIDESIM_CONTEXT:
        return;
    default:
        put_for_contexts(&m);
    }
}

void sc_on_pool(void *user, const tidesim_pool_event *e) {
    (void)user;
    last_pool = e->pool;
    if (!sc_is_enabled(CUPTI_ACTIVITY_KIND_MEMORY_POOL)) return;
    const CUpti_ActivityMemoryPool3 m = {
        .kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
        .memoryPoolOperationType = (CUpti_ActivityMemoryPoolOperationType)e->op,
        .memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL,
        .correlationId = e->correlation,
        .processId = e->pid,
        .deviceId = e->device,
        .minBytesToKeep = e->min_bytes_to_keep,
        .address = e->pool,
        .size = e->reserved,
        .releaseThreshold = e->threshold,
        .timestamp = sc_now_ns(),
        .utilizedSize = e->used,
    };
    sc_put_record(&m, sizeof m);
}

static void tell_access(const tidesim_api *call) {
    const cuMemSetAccess_params *p = call->params;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MAX_MAPPINGS; i++) {
        mapping *at = &mappings[i];
        if (at->bytes == 0 || at->is_told || at->address < p->ptr || at->address >= p->ptr + p->size) continue;
        const tidesim_memory e = {.alloc = true,
                                  .kind = TIDESIM_MAPPED,
                                  .address = at->address,
                                  .bytes = at->bytes,
                                  .device = at->device,
                                  .context = NONE,
                                  .correlation = call->correlation,
                                  .pid = (uint32_t)getpid()};
        const CUpti_ActivityMemory4 m = record_of(&e);
        at->is_told = true;
        sc_put_record(&m, sizeof m);
    }
    pthread_mutex_unlock(&lock);
}

void sc_after_call(const tidesim_api *call) {
    if (*call->result == CUDA_SUCCESS && strcmp(call->name, "cuMemSetAccess") == 0 &&
        sc_is_enabled(CUPTI_ACTIVITY_KIND_MEMORY2))
        tell_access(call);
    if (*call->result == CUDA_ERROR_OUT_OF_MEMORY && strncmp(call->name, "cuMemAllocAsync", 15) == 0 &&
        last_pool != 0) {
        const cuMemAllocAsync_params *p = call->params;
        const tidesim_pool_event e = {.op = TIDESIM_POOL_CREATED,
                                      .pool = last_pool,
                                      .reserved = p->bytesize,
                                      .device = call->device,
                                      .correlation = call->correlation,
                                      .pid = (uint32_t)getpid()};
        sc_on_pool(NULL, &e);
    }
}
