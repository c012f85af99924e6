// SPDX-License-Identifier: MIT
//
// The simulated CUPTI: buffers of activity records. Each thread that makes records asks for a buffer of its own (the
// attribute PER_THREAD_ACTIVITY_BUFFER is 1 by default, measured) and keeps it until it is full or flushed; a flush of
// any sort gives all of them out (measured for MEMORY2). Both callbacks run with the lock held, as in the real library.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/cupti/simcupti.h"

enum { MAX_THREADS = 512, MAX_ATTRIBUTES = 16, MAX_KEPT = 4096, STACK = 64 };

typedef struct thread_buffer {
    uint8_t *bytes; ///< NULL: none
    size_t size, used, max_records, n_records;
} thread_buffer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static thread_buffer of_threads[MAX_THREADS], kept[MAX_KEPT];
static size_t n_threads, n_kept;
static _Thread_local size_t my_number; ///< + 1
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static uint8_t kinds[256];
static uint64_t n_dropped, n_all;
static uint8_t attributes[MAX_ATTRIBUTES][8] = {[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {1}};

uint64_t sc_n_records(void) { return n_all; }

bool sc_is_enabled(CUpti_ActivityKind kind) { return kind > 0 && kind < 256 && kinds[kind]; }

// ---- buffers ----

/// With the lock.
static void give_out(thread_buffer *b) {
    if (b->bytes == NULL) return;
    const sc_place was = sc_now_in;
    sc_now_in = SC_IN_BUFFER;
    complete(NULL, 0, b->bytes, b->size, b->used);
    sc_now_in = was;
    *b = (thread_buffer){0};
}

/// With the lock: a buffer that is full. Small ones (TIDECUPTI_BUFFER_RECORDS) are kept until the next flush, so that
/// many are out at once.
static void put_away(thread_buffer *b) {
    if (sc_env("TIDECUPTI_BUFFER_RECORDS") == NULL || n_kept == MAX_KEPT) {
        give_out(b);
        return;
    }
    kept[n_kept++] = *b;
    *b = (thread_buffer){0};
}

static void ask(thread_buffer *b) {
    const char *most = sc_env("TIDECUPTI_BUFFER_RECORDS");
    const sc_place was = sc_now_in;
    sc_now_in = SC_IN_BUFFER;
    request(&b->bytes, &b->size, &b->max_records);
    sc_now_in = was;
    if (b->bytes != NULL && (uintptr_t)b->bytes % ACTIVITY_RECORD_ALIGNMENT != 0) sc_misuse("a buffer is not aligned");
    for (size_t i = 0; b->bytes != NULL && i < n_threads; i++)
        if (&of_threads[i] != b && of_threads[i].bytes == b->bytes) sc_misuse("a buffer was given twice");
    if (most != NULL) b->max_records = (size_t)strtoull(most, NULL, 10);
}

/// With the lock; NULL: no place for one more thread.
static thread_buffer *mine(void) {
    if (my_number == 0 && n_threads < MAX_THREADS) my_number = ++n_threads;
    return my_number != 0 ? &of_threads[my_number - 1] : NULL;
}

void sc_put_record(const void *record, size_t bytes) {
    pthread_mutex_lock(&lock);
    thread_buffer *b = request != NULL ? mine() : NULL;
    n_all++;
    if (b != NULL && b->bytes != NULL &&
        (b->used + bytes > b->size || (b->max_records > 0 && b->n_records >= b->max_records)))
        put_away(b);
    if (b != NULL && b->bytes == NULL) ask(b);
    if (b == NULL || b->bytes == NULL || b->size < bytes) {
        n_dropped++;
    } else {
        memcpy(b->bytes + b->used, record, bytes);
        b->used += bytes;
        b->n_records++;
    }
    pthread_mutex_unlock(&lock);
}

// ---- calls ----

static bool hangs(uint32_t flag) {
    const char *what = sc_env("TIDECUPTI_HANG");
    return what != NULL &&
           (strcmp(what, "all") == 0 || (strcmp(what, "forced") == 0 && flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
}

SC_API CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    if (!sc_may_call("cuptiActivityFlushAll", false)) return CUPTI_ERROR_INVALID_OPERATION;
    if (complete == NULL) return CUPTI_ERROR_INVALID_OPERATION;
    while (hangs(flag)) pause();
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_kept; i++) give_out(&kept[i]);
    n_kept = 0;
    for (size_t i = 0; i < n_threads; i++) give_out(&of_threads[i]);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityFlushPeriod(uint32_t ms) {
    (void)ms;
    sc_misuse("cuptiActivityFlushPeriod gives out full buffers only");
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc on_request,
                                                  CUpti_BuffersCallbackCompleteFunc on_complete) {
    if (on_request == NULL || on_complete == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    request = on_request;
    complete = on_complete;
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc fn) {
    if (fn == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < sizeof kinds; i++)
        if (kinds[i]) sc_misuse("the clock is set after records were enabled");
    sc_timestamp = fn;
    return CUPTI_SUCCESS;
}

static CUptiResult set_kind(CUpti_ActivityKind kind, uint8_t on) {
    if (!sc_may_call("cuptiActivityEnable", false)) return CUPTI_ERROR_INVALID_OPERATION;
    if (kind == CUPTI_ACTIVITY_KIND_KERNEL && on)
        sc_misuse("CUPTI_ACTIVITY_KIND_KERNEL puts kernels one after the other");
    if (kind <= 0 || kind >= 256) return CUPTI_ERROR_INVALID_KIND;
    if (on && complete == NULL) sc_misuse("records are enabled before there are buffers for them");
    kinds[kind] = on;
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return set_kind(kind, 1); }
SC_API CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return set_kind(kind, 0); }

SC_API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    (void)context, (void)stream;
    if (!sc_may_call("cuptiActivityGetNumDroppedRecords", false)) return CUPTI_ERROR_INVALID_OPERATION;
    if (dropped == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    *dropped = n_dropped;
    n_dropped = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value) {
    if ((unsigned)attr >= MAX_ATTRIBUTES || size == NULL || value == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(value, attributes[attr], *size < 8 ? *size : 8);
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value) {
    if ((unsigned)attr >= MAX_ATTRIBUTES || size == NULL || value == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(attributes[attr], value, *size < 8 ? *size : 8);
    return CUPTI_SUCCESS;
}

static size_t record_bytes(CUpti_ActivityKind kind) {
    return kind == CUPTI_ACTIVITY_KIND_MEMORY2       ? sizeof(CUpti_ActivityMemory4)
           : kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL ? sizeof(CUpti_ActivityMemoryPool3)
                                                     : 0;
}

SC_API CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
    if (buffer == NULL || record == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t *at = buffer;
    if (*record != NULL) at = (uint8_t *)*record + record_bytes((*record)->kind);
    if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_Activity *next = (CUpti_Activity *)(void *)at;
    const size_t bytes = record_bytes(next->kind);
    if (bytes == 0 || bytes > (size_t)(buffer + valid - at)) return CUPTI_ERROR_INVALID_KIND;
    *record = next;
    return CUPTI_SUCCESS;
}

// ---- external correlation: kept, and no records of it (measured: none came) ----

static _Thread_local uint64_t pushed[STACK];
static _Thread_local size_t n_pushed;

SC_API CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
    (void)kind;
    if (n_pushed == STACK) return CUPTI_ERROR_OUT_OF_MEMORY;
    pushed[n_pushed++] = id;
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last) {
    (void)kind;
    if (n_pushed == 0) return CUPTI_ERROR_QUEUE_EMPTY;
    n_pushed--;
    if (last != NULL) *last = pushed[n_pushed];
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t enable) {
    (void)id, (void)enable;
    return CUPTI_SUCCESS;
}
SC_API CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t enable) {
    (void)id, (void)enable;
    return CUPTI_SUCCESS;
}
SC_API CUptiResult cuptiActivityEnableAllocationSource(uint8_t enable) {
    (void)enable;
    return CUPTI_SUCCESS;
}
