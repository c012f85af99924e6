// SPDX-License-Identifier: MIT
//
// The activity records of memory: parsed out of full buffers, put in the order of their times, held against the calls
// that the callbacks saw, and told where they say more. On the recorder's thread, some 100 ms after the fact.
//
//     MEMORY2 of pinned, device, array or managed memory   a check: a call must explain it. One that none explains is
//                                                          told by itself, with its own time and the tag `unmatched`
//     the same at address 0                                memory of graphs (measured at the launch of a graph)
//     MEMORY2 of static variables                          variables of modules: allocator `module`, Persistent. They
//                                                          lie in memory that the driver took for the module, and have
//                                                          no release: they end with the last context of the device
//     MEMORY2 with a pool, MEMORY_POOL                     what the pool has reserved: segments (reserved.c). The size
//                                                          in a record of a new pool is not taken: a request that
//                                                          failed left one of 83 GB (measured); the next MEMORY2 has it
//
// Records are read through the newest struct of the header; the structs of later versions only have more at their end.
#include <stdlib.h>
#include <string.h>

#include "cuda/cupti/recorder.h"

enum {
    PATIENCE = 5,    ///< rounds that a record waits for its call
    N_GONE = 1024,   ///< blocks that went with their context, as far as they are remembered
    SLACK_NS = 2000, ///< that a record's time may lie outside of its call
};

typedef enum item_sort { ITEM_MEMORY, ITEM_POOL, ITEM_SAMPLE } item_sort;

/// One record, or one sample.
typedef struct item {
    uint64_t t_ns;
    uint64_t address, bytes; ///< of a sample: bytes of all, bytes in use
    uint64_t pool, pool_bytes;
    const char *name;
    uint32_t correlation;
    int32_t device;
    uint16_t operation, memory_kind;
    uint16_t n_waits;
    uint16_t sort;
} item;

typedef struct gone_block {
    uint64_t address, bytes;
} gone_block;

static item *items; // [n_items], pages of the system; of the recorder's thread alone
static size_t n_items, cap_items;
static gone_block gone[N_GONE]; // with the lock
static size_t n_gone;

void tide__cupti_note_gone(const tide__cupti_block *b) { gone[n_gone++ % N_GONE] = (gone_block){b->address, b->bytes}; }

static bool went_with_context(const item *it) {
    for (size_t i = 0; i < N_GONE && i < n_gone; i++)
        if (gone[i].address == it->address && gone[i].bytes == it->bytes) return true;
    return false;
}

// ---- parsing ----

static void add_item(const item *it) {
    void *pages = items;
    if (!tide__cupti_pages_grow(&pages, &cap_items, n_items + 1, sizeof *items)) {
        tide__cupti_lock();
        tide__cupti.counts.no_room++;
        tide__cupti_unlock();
        return;
    }
    items = pages;
    items[n_items++] = *it;
}

void tide__cupti_add_sample(int32_t device, uint64_t used, uint64_t total, uint64_t t_ns) {
    const item it = {.sort = ITEM_SAMPLE, .t_ns = t_ns, .device = device, .bytes = used, .address = total};
    add_item(&it);
}

static bool is_variable(const item *it) {
    return it->memory_kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC ||
           it->memory_kind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC;
}

/// No record of CUPTI's says anything else; what does is no record.
static bool is_possible(const item *it) {
    const bool is_known = it->sort == ITEM_POOL || (it->operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ||
                                                    it->operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
    return is_known && (it->t_ns | it->bytes | it->pool_bytes) >> 62 == 0 && it->device >= 0;
}

/// Records are aligned to 8 bytes, and packed.
static void add_record(const CUpti_Activity *record) {
    item it = {0};
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
        CUpti_ActivityMemory4 m;
        memcpy(&m, record, sizeof m);
        it = (item){.sort = ITEM_MEMORY,
                    .t_ns = m.timestamp,
                    .address = m.address,
                    .bytes = m.bytes,
                    .correlation = m.correlationId,
                    .device = (int32_t)m.deviceId,
                    .operation = (uint16_t)m.memoryOperationType,
                    .memory_kind = (uint16_t)m.memoryKind};
        if (is_variable(&it)) it.name = tide__cupti_keep_text(m.name);
        if (m.memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL) {
            it.pool = m.memoryPoolConfig.address;
            it.pool_bytes = m.memoryPoolConfig.pool.size;
        }
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL) {
        CUpti_ActivityMemoryPool3 m;
        memcpy(&m, record, sizeof m);
        if (m.memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL) return;
        it = (item){.sort = ITEM_POOL,
                    .t_ns = m.timestamp,
                    .pool = m.address,
                    .pool_bytes = m.size,
                    .device = (int32_t)m.deviceId,
                    .operation = (uint16_t)m.memoryPoolOperationType};
    } else {
        return;
    }
    if (is_possible(&it)) {
        add_item(&it);
        return;
    }
    tide__cupti_lock();
    tide__cupti.counts.no_records++;
    tide__cupti_unlock();
}

static void parse_buffers(void) {
    size_t valid;
    uint8_t *bytes;
    while ((bytes = tide__cupti_full_buffer(&valid)) != NULL) {
        CUpti_Activity *record = NULL;
        while (tide__cupti.lib.cuptiActivityGetNextRecord(bytes, valid, &record) == CUPTI_SUCCESS) add_record(record);
        tide__cupti_buffer_done(bytes);
    }
}

static int by_time(const void *a, const void *b) {
    const item *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

// ---- against the calls ----

typedef enum verdict { EXPLAINED, NOT_YET, UNEXPLAINED } verdict;

static bool is_alloc(const item *it) { return it->operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION; }

static bool tells_of(const item *it, const tide__cupti_logged *call) {
    if (call->correlation != it->correlation || call->is_alloc != is_alloc(it)) return false;
    return call->bytes == 0 || (it->address >= call->address && it->address - call->address < call->bytes);
}

static void note_match(const item *it, tide__cupti_logged *call) {
    tide_cupti_counts *n = &tide__cupti.counts;
    n->matched++;
    n->duplicates += call->n_records > 0 && it->address == call->address;
    if (call->n_records < UINT16_MAX) call->n_records++;
    n->outside += it->t_ns + SLACK_NS < call->enter_ns || (call->has_ended && it->t_ns > call->exit_ns + SLACK_NS);
}

static verdict judge(const item *it, bool last) {
    tide__cupti_logged *call = tide__cupti_log_at(&tide__cupti.log, it->correlation);
    if (call != NULL && tells_of(it, call)) {
        if (!call->has_ended && !last) return NOT_YET;
        note_match(it, call);
        return EXPLAINED;
    }
    if (!is_alloc(it) && went_with_context(it)) {
        tide__cupti.counts.matched++;
        return EXPLAINED;
    }
    if (call == NULL || (int32_t)(call->correlation - it->correlation) > 0) {
        tide__cupti.counts.unchecked++;
        return EXPLAINED;
    }
    return last || it->n_waits >= PATIENCE ? UNEXPLAINED : NOT_YET;
}

// ---- what is told of them ----

static bool is_pinned(const item *it) { return it->memory_kind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED; }

static tide__cupti_block *announce(const item *it, tide__cupti_space space, uint64_t key, const char *allocator,
                                   const char *tag) {
    tide__cupti_block *b = tide__cupti_new_block(space, key, it->bytes);
    if (b == NULL) return NULL;
    b->address = it->address;
    b->device = is_pinned(it) ? TIDE__CUPTI_HOST : it->device;
    b->kind = is_pinned(it) ? TIDE_KIND_HOST_PINNED : TIDE_KIND_DEFAULT;
    b->allocator = allocator;
    b->tag = tag;
    b->since_ns = it->t_ns;
    b->goes_last = true;
    return b;
}

/// A record that no call explains: what it says is in the trace all the same.
static void tell_unexplained(const item *it) {
    tide__cupti_block *there = tide__cupti_ledger_find(&tide__cupti.ledger, TIDE__CUPTI_ADDRESS, it->address, NULL);
    tide__cupti.counts.unmatched++;
    if (!is_alloc(it)) {
        const bool is_younger = there != NULL && there->since_ns > it->t_ns;
        if (there != NULL && !is_younger && there->n_maps + there->n_handles == 0)
            tide__cupti_end_block(there, it->t_ns);
        return;
    }
    if (there != NULL) return; // it is known already, by a call with another number
    tide__cupti_block *b = announce(it, TIDE__CUPTI_ADDRESS, it->address, "CUPTI record", "unmatched");
    if (b != NULL) tide__cupti_tell_alloc(b, it->t_ns);
}

static tide__cupti_block *find_graph_memory(const item *it) {
    size_t at = 0;
    tide__cupti_block *b;
    while ((b = tide__cupti_ledger_next(&tide__cupti.ledger, &at)) != NULL)
        if (b->space == TIDE__CUPTI_GRAPH && b->bytes == it->bytes && b->device == it->device) return b;
    return NULL;
}

static void tell_graph_memory(const item *it) {
    static uint64_t n_keys;
    tide__cupti_block *b;
    if (!is_alloc(it)) {
        b = find_graph_memory(it);
        if (b != NULL) tide__cupti_end_block(b, it->t_ns);
    } else {
        b = announce(it, TIDE__CUPTI_GRAPH, ++n_keys, "cuGraphLaunch", "memory of graphs");
        if (b != NULL) tide__cupti_tell_alloc(b, it->t_ns);
    }
}

static void tell_variable(const item *it) {
    tide__cupti_block *b = tide__cupti_ledger_find(&tide__cupti.ledger, TIDE__CUPTI_ADDRESS, it->address, NULL);
    if (!is_alloc(it)) {
        if (b != NULL && b->kind == TIDE_KIND_PERSISTENT) tide__cupti_end_block(b, it->t_ns);
        return;
    }
    if (b != NULL) return; // told by the record of another context
    b = announce(it, TIDE__CUPTI_ADDRESS, it->address, "module", it->name);
    if (b == NULL) return;
    b->kind = TIDE_KIND_PERSISTENT;
    tide__cupti_tell_alloc(b, it->t_ns);
}

/// False: it shall be looked at again.
static bool take_memory(const item *it, bool last) {
    if (is_variable(it)) {
        tell_variable(it);
    } else if (it->address == 0) {
        tell_graph_memory(it);
    } else {
        const verdict v = judge(it, last);
        if (v == NOT_YET) return false;
        if (v == UNEXPLAINED) tell_unexplained(it);
    }
    tide__cupti.counts.records++;
    if (it->pool != 0) tide__cupti_pool_is(it->pool, it->device, it->pool_bytes, it->t_ns);
    return true;
}

static bool take_item(const item *it, bool last) {
    switch ((item_sort)it->sort) {
    case ITEM_MEMORY:
        return take_memory(it, last);
    case ITEM_POOL:
        tide__cupti.counts.records++;
        if (it->operation == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED)
            tide__cupti_pool_trimmed(it->pool, 0, it->t_ns);
        else if (it->operation == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED)
            tide__cupti_pool_trimmed(it->pool, it->pool_bytes, it->t_ns);
        return true;
    case ITEM_SAMPLE:
        tide__cupti_tell_usage(it->device, it->bytes, it->address, it->t_ns);
        return true;
    }
    return true;
}

void tide__cupti_take_records(bool last) {
    parse_buffers();
    if (n_items > 1) qsort(items, n_items, sizeof *items, by_time);
    size_t n_kept = 0;
    for (size_t i = 0; i < n_items; i++) {
        item it = items[i];
        it.n_waits++;
        tide__cupti_lock();
        const bool is_done = take_item(&it, last);
        tide__cupti_unlock();
        if (!is_done) items[n_kept++] = it;
    }
    n_items = n_kept;
}

void tide__cupti_records_clear(void) {
    tide__cupti_pages_free(items, cap_items, sizeof *items);
    items = NULL;
    n_items = cap_items = 0;
    n_gone = 0;
}
