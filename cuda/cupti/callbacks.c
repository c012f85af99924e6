// SPDX-License-Identifier: MIT
//
// The callbacks of the driver's memory calls: each comes twice, before the call and after it, in the thread that calls.
// Allocations are told after the call, when it succeeded. Frees are told in two steps (tell.c). Which calls there are,
// and how their parameters are read, is calls.h; physical memory is mapping.c.
#include <errno.h>
#include <string.h>

#include "cuda/cupti/recorder.h"

/// What a call does, and so what is done before it and after it.
typedef enum call_sort {
    CALL_NONE,
    CALL_ALLOC,
    CALL_ALLOC_HOST,
    CALL_ALLOC_ASYNC,
    CALL_ALLOC_ARRAY,
    CALL_FREE,
    CALL_FREE_ASYNC,
    CALL_FREE_ARRAY,
    CALL_CREATE,
    CALL_RETAIN,
    CALL_RELEASE,
    CALL_MAP,
    CALL_UNMAP,
    CALL_NOTE_ALLOC, ///< no block: only so that its record is explained
    CALL_NOTE_FREE,
    CALL_POOL_CREATE,
    CALL_POOL_DESTROY,
    CALL_PRIMARY,
    CALL_CAPTURE_BEGIN,
    CALL_CAPTURE_END,
} call_sort;

// ---- parameters ----

/// Bytes of one channel of a texel; formats of several planes or of blocks count one byte (not known).
static uint64_t channel_bytes(CUarray_format format) {
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 1;
    }
}

static uint64_t at_least_one(uint64_t n) { return n != 0 ? n : 1; }

/// A height or depth of 0 means that there is no such axis. Each level of a mipmap is half as large along each axis.
static uint64_t array_bytes(uint64_t width, uint64_t height, uint64_t depth, CUarray_format format, unsigned channels,
                            unsigned levels) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < levels && i < 64; i++) {
        sum += at_least_one(width >> i) * at_least_one(height >> i) * at_least_one(depth >> i) * channel_bytes(format) *
               channels;
    }
    return sum;
}

/// The driver's newer name of the same call; the header of parameters has none for it.
typedef cuMemHostAlloc_params cuMemHostAlloc_v2_params;

#define X(name, sort, allocator, ...)                                                                                  \
    static void read_##name(const void *params, tide__cupti_call *c) {                                                 \
        const name##_params *p = params;                                                                               \
        __VA_ARGS__                                                                                                    \
    }
#include "cuda/cupti/calls.h"
#undef X

typedef struct row {
    CUpti_CallbackId id;
    call_sort sort;
    const char *allocator;
    void (*read)(const void *params, tide__cupti_call *c);
} row;

static const row rows[] = {
#define X(name, sort, allocator, ...) {CUPTI_DRIVER_TRACE_CBID_##name, sort, allocator, read_##name},
#include "cuda/cupti/calls.h"
#undef X
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(N_ROWS < 255, "numbers of rows are bytes");

static uint8_t row_of[CUPTI_DRIVER_TRACE_CBID_SIZE]; ///< number + 1; 0: not asked for

static tide__cupti_call read_call(const row *r, const CUpti_CallbackData *d) {
    tide__cupti_call c = {.device = TIDE__CUPTI_UNKNOWN_DEVICE,
                          .allocator = r->allocator,
                          .correlation = d->correlationId,
                          .is_own = tide__cupti.host->is_own_call()};
    r->read(d->functionParams, &c);
    return c;
}

// ---- contexts and streams ----

/// Its entry; NULL: not known. NULL as context: a free entry.
static tide__cupti_context *entry_of(CUcontext context) {
    for (size_t i = 0; i < TIDE__CUPTI_MAX_CONTEXTS; i++)
        if (tide__cupti.contexts[i].handle == context) return &tide__cupti.contexts[i];
    return NULL;
}

int32_t tide__cupti_device_of(CUcontext context) {
    const tide__cupti_context *at = context != NULL ? entry_of(context) : NULL;
    return at != NULL ? at->device : 0;
}

/// Without the lock: CUPTI is asked for what is not known yet, and may wait for a lock that a thread has which waits
/// for ours.
static void know_context(CUcontext context) {
    uint32_t device = 0;
    if (context == NULL) return;
    tide__cupti_lock();
    const bool is_known = entry_of(context) != NULL;
    tide__cupti_unlock();
    if (is_known || !tide__cupti_works(tide__cupti.lib.cuptiGetDeviceId(context, &device))) return;
    tide__cupti_lock();
    tide__cupti_context *at = entry_of(context) == NULL ? entry_of(NULL) : NULL;
    if (at != NULL) *at = (tide__cupti_context){.handle = context, .device = (int32_t)device};
    tide__cupti_unlock();
}

static void primary_is(CUcontext context) {
    tide__cupti_context *at = entry_of(context);
    if (at != NULL) at->is_primary = true;
}

/// Without the lock. CUPTI's number of the stream; 0: the default stream, or not known.
static uint64_t stream_number(CUcontext context, const tide__cupti_call *c) {
    const bool is_default = (c->stream == NULL && !c->per_thread) || c->stream == CU_STREAM_LEGACY;
    uint32_t id = 0;
    if (is_default) return 0;
    const bool per_thread = c->per_thread || c->stream == CU_STREAM_PER_THREAD;
    const CUstream stream = c->stream == CU_STREAM_PER_THREAD ? NULL : c->stream;
    return tide__cupti_works(tide__cupti.lib.cuptiGetStreamIdEx(context, stream, per_thread, &id)) ? id : 0;
}

static size_t capture_of(CUstream stream) {
    size_t i = 0;
    while (i < tide__cupti.n_captures && tide__cupti.captures[i] != stream) i++;
    return i;
}

/// Whether work of the stream becomes a node of a graph now. A stream that has joined the capture of another one by
/// waiting for its event is not known to be in it.
static bool is_captured(const tide__cupti_call *c) { return capture_of(c->stream) < tide__cupti.n_captures; }

static void capture_begins(CUstream stream) {
    if (tide__cupti.n_captures < TIDE__CUPTI_MAX_CAPTURES) tide__cupti.captures[tide__cupti.n_captures++] = stream;
}

static void capture_ends(CUstream stream) {
    const size_t i = capture_of(stream);
    if (i < tide__cupti.n_captures) tide__cupti.captures[i] = tide__cupti.captures[--tide__cupti.n_captures];
}

static void pool_is_made(uint64_t handle, int32_t device) {
    for (size_t i = 0; i < TIDE__CUPTI_MAX_POOLS; i++) {
        if (tide__cupti.pools[i].handle != 0 && tide__cupti.pools[i].handle != handle) continue;
        tide__cupti.pools[i] = (tide__cupti_pool){handle, device};
        return;
    }
}

static tide__cupti_pool *pool_of(uint64_t handle) {
    for (size_t i = 0; handle != 0 && i < TIDE__CUPTI_MAX_POOLS; i++)
        if (tide__cupti.pools[i].handle == handle) return &tide__cupti.pools[i];
    return NULL;
}

// ---- blocks ----

void tide__cupti_end_block(tide__cupti_block *b, uint64_t t_ns) {
    tide__cupti_tell_end(b, t_ns);
    tide__cupti_ledger_unbind(&tide__cupti.ledger, (tide__cupti_space)b->space, b->key);
    tide__cupti_ledger_drop(&tide__cupti.ledger, b);
}

void tide__cupti_make_room(tide__cupti_space space, uint64_t key) {
    tide__cupti_block *b = tide__cupti_ledger_find(&tide__cupti.ledger, space, key, NULL);
    if (b == NULL) return;
    tide__cupti.counts.replaced++;
    if (b->n_handles + b->n_maps > 0)
        tide__cupti_name_lost(b, space, key);
    else
        tide__cupti_end_block(b, 0);
}

static int32_t device_of_call(const tide__cupti_call *c, call_sort sort, CUcontext context) {
    if (sort == CALL_ALLOC_HOST) return TIDE__CUPTI_HOST;
    if (c->device != TIDE__CUPTI_UNKNOWN_DEVICE) return c->device;
    const tide__cupti_pool *pool = pool_of(c->pool);
    return pool != NULL ? pool->device : tide__cupti_device_of(context);
}

tide__cupti_block *tide__cupti_new_block(tide__cupti_space space, uint64_t key, uint64_t bytes) {
    tide__cupti_make_room(space, key);
    tide__cupti_block *b = tide__cupti_ledger_new(&tide__cupti.ledger);
    if (b == NULL || !tide__cupti_ledger_bind(&tide__cupti.ledger, space, key, bytes, b)) {
        if (b != NULL) tide__cupti_ledger_drop(&tide__cupti.ledger, b);
        tide__cupti.counts.no_room++;
        return NULL;
    }
    b->space = (uint8_t)space;
    b->key = key;
    b->bytes = bytes;
    return b;
}

static void allocated(const tide__cupti_call *c, call_sort sort, const CUpti_CallbackData *d) {
    if (c->address == 0) return; // a request for no bytes of host memory succeeds with no address
    const tide__cupti_space space = sort == CALL_ALLOC_ARRAY ? TIDE__CUPTI_ARRAY : TIDE__CUPTI_ADDRESS;
    tide__cupti_block *b = tide__cupti_new_block(space, c->address, c->bytes);
    if (b == NULL) return;
    b->since_ns = tide__cupti_now_ns();
    b->address = sort == CALL_ALLOC_ARRAY ? 0 : c->address;
    b->device = device_of_call(c, sort, d->context);
    b->kind = b->device < 0 ? TIDE_KIND_HOST_PINNED : TIDE_KIND_DEFAULT;
    b->allocator = c->allocator;
    b->tag = c->tag;
    b->stream = c->stream_number;
    b->goes_last = b->is_pooled = sort == CALL_ALLOC_ASYNC;
    b->context = b->goes_last ? NULL : d->context;
    b->is_own = c->is_own;
    tide__cupti_tell_alloc(b, 0);
}

static void failed_alloc(const tide__cupti_call *c, call_sort sort, const CUpti_CallbackData *d) {
    if (c->is_own) return;
    const int32_t device = device_of_call(c, sort, d->context);
    tide__cupti_tell_oom(device, device < 0 ? TIDE_KIND_HOST_PINNED : TIDE_KIND_DEFAULT, c->allocator, c->tag,
                         c->asked_bytes != 0 ? c->asked_bytes : c->bytes, c->stream_number);
}

static tide__cupti_space space_of(call_sort sort) {
    return sort == CALL_FREE_ARRAY ? TIDE__CUPTI_ARRAY : TIDE__CUPTI_ADDRESS;
}

/// Before the call. @return bytes of the block; 0: not known
static uint64_t free_begins(const tide__cupti_call *c, call_sort sort) {
    tide__cupti_block *b = tide__cupti_ledger_find(&tide__cupti.ledger, space_of(sort), c->address, NULL);
    if (b == NULL) {
        tide__cupti.counts.unknown_frees += c->address != 0;
        return 0;
    }
    if (b->freeing != 0) return b->bytes;
    b->freeing = c->correlation;
    tide__cupti_tell_request(b);
    return b->bytes;
}

/// After it. Nothing where the address was given to another block in between.
static void free_ends(const tide__cupti_call *c, call_sort sort, CUresult result) {
    const tide__cupti_space space = space_of(sort);
    tide__cupti_block *b = tide__cupti_ledger_find(&tide__cupti.ledger, space, c->address, NULL);
    if (b == NULL || b->freeing != c->correlation) return;
    if (result == CUDA_SUCCESS) {
        tide__cupti_end_block(b, 0);
        return;
    }
    b->freeing = 0;
    tide__cupti.counts.failed_frees++;
    tide__cupti_tell_again(b, b->address, b->allocator);
}

// ---- before and after a call ----

static bool is_free(call_sort sort) {
    return sort == CALL_FREE || sort == CALL_FREE_ASYNC || sort == CALL_FREE_ARRAY || sort == CALL_NOTE_FREE;
}

static bool is_alloc(call_sort sort) { return sort >= CALL_ALLOC && sort <= CALL_ALLOC_ARRAY; }

static void log_call(const tide__cupti_call *c, call_sort sort, uint64_t enter_ns, uint64_t bytes, bool has_ended) {
    const bool anywhere = sort == CALL_ALLOC_ARRAY || sort == CALL_FREE_ARRAY;
    const tide__cupti_logged logged = {.address = anywhere ? 0 : c->address,
                                       .bytes = anywhere     ? 0
                                                : bytes != 0 ? bytes
                                                             : 1,
                                       .enter_ns = enter_ns,
                                       .exit_ns = has_ended ? tide__cupti_now_ns() : 0,
                                       .correlation = c->correlation,
                                       .is_alloc = !is_free(sort) && sort != CALL_UNMAP,
                                       .has_ended = has_ended};
    tide__cupti_log_put(&tide__cupti.log, &logged);
}

static void log_end(uint32_t correlation, CUresult result) {
    tide__cupti_logged *at = tide__cupti_log_at(&tide__cupti.log, correlation);
    if (at == NULL || at->correlation != correlation) return;
    at->exit_ns = tide__cupti_now_ns();
    at->failed = result != CUDA_SUCCESS;
    at->has_ended = true;
}

/// What is kept until the call has ended: for calls that are read before it, a serial; for all others, when it began.
static void before(const row *r, const CUpti_CallbackData *d) {
    const uint64_t enter_ns = tide__cupti_now_ns();
    *d->correlationData = enter_ns;
    if (!is_free(r->sort) && r->sort != CALL_RELEASE) return;
    const tide__cupti_call c = read_call(r, d);
    tide__cupti_lock();
    if (r->sort == CALL_RELEASE) {
        *d->correlationData = tide__cupti_releasing(&c);
    } else if (r->sort != CALL_FREE_ASYNC || !is_captured(&c)) {
        const uint64_t bytes = r->sort != CALL_NOTE_FREE ? free_begins(&c, r->sort) : c.bytes;
        log_call(&c, r->sort, enter_ns, bytes, false);
    } else {
        tide__cupti.counts.captured++;
    }
    tide__cupti_unlock();
}

/// The call succeeded, and is none of a free.
static void has_succeeded(const row *r, const CUpti_CallbackData *d, const tide__cupti_call *c) {
    switch (r->sort) {
    case CALL_ALLOC_ASYNC:
        if (is_captured(c)) {
            tide__cupti.counts.captured++;
            return;
        }
        // fall through
    case CALL_ALLOC:
    case CALL_ALLOC_HOST:
    case CALL_ALLOC_ARRAY:
        allocated(c, r->sort, d);
        break;
    case CALL_CREATE:
        tide__cupti_created(c);
        return; // leaves no record
    case CALL_RETAIN:
        tide__cupti_retained(c);
        return;
    case CALL_RELEASE:
        tide__cupti_released(c, *d->correlationData);
        return;
    case CALL_MAP:
        tide__cupti_mapped(c);
        return;
    case CALL_UNMAP:
        tide__cupti_unmapped(c);
        break;
    case CALL_POOL_CREATE:
        pool_is_made(c->pool, c->device);
        return;
    case CALL_POOL_DESTROY:
        return; // what is out stays until it is freed; the device of the pool may still be asked for
    case CALL_PRIMARY:
        primary_is((CUcontext)(uintptr_t)c->handle);
        return;
    case CALL_CAPTURE_BEGIN:
        capture_begins(c->stream);
        return;
    default:
        break;
    }
    log_call(c, r->sort, *d->correlationData, c->bytes, true);
}

/// Allocations that failed for another reason than that there is no memory may have no parameters to be read.
static bool can_read(const row *r, CUresult result) {
    return result == CUDA_SUCCESS || is_free(r->sort) || r->sort == CALL_CAPTURE_END;
}

static void after(const row *r, const CUpti_CallbackData *d) {
    const CUresult result = *(const CUresult *)d->functionReturnValue;
    const bool is_oom = result == CUDA_ERROR_OUT_OF_MEMORY && (is_alloc(r->sort) || r->sort == CALL_CREATE);
    if (!can_read(r, result) && !is_oom) return;
    const bool takes = is_alloc(r->sort) || r->sort == CALL_CREATE;
    const char *tag = takes ? tide__cupti_caller() : NULL;
    tide__cupti_call c = read_call(r, d);
    c.tag = tag;
    know_context(r->sort == CALL_PRIMARY ? (CUcontext)(uintptr_t)c.handle : takes ? d->context : NULL);
    if (r->sort == CALL_ALLOC_ASYNC) c.stream_number = stream_number(d->context, &c);
    tide__cupti_lock();
    tide__cupti.counts.calls++;
    tide__cupti.counts.own_calls += c.is_own && (takes || is_free(r->sort));
    if (is_oom)
        failed_alloc(&c, r->sort, d);
    else if (r->sort == CALL_CAPTURE_END)
        capture_ends(c.stream); // also when it failed: the capture is over
    else if (is_free(r->sort)) {
        free_ends(&c, r->sort, result);
        log_end(c.correlation, result);
    } else {
        has_succeeded(r, d, &c);
    }
    tide__cupti_unlock();
}

// ---- contexts ----

/// What is left of a context goes with it. Pools' blocks go with the primary context of their device, if it is the last
/// one; physical memory is of no context.
static void context_ends(CUcontext context) {
    const int32_t device = tide__cupti_device_of(context);
    size_t n_others = 0, at = 0;
    bool is_primary = false;
    for (size_t i = 0; i < TIDE__CUPTI_MAX_CONTEXTS; i++) {
        tide__cupti_context *c = &tide__cupti.contexts[i];
        if (c->handle == context) {
            is_primary = c->is_primary;
            *c = (tide__cupti_context){0};
        }
        n_others += c->handle != NULL && c->device == device;
    }
    tide__cupti_block *b;
    while ((b = tide__cupti_ledger_next(&tide__cupti.ledger, &at)) != NULL) {
        const bool goes = b->context == context ||
                          (b->goes_last && b->device == device && n_others == 0 && (is_primary || !b->is_pooled));
        if (!goes || b->n_handles + b->n_maps > 0) continue;
        tide__cupti_note_gone(b);
        tide__cupti_end_block(b, 0);
    }
}

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *d) {
    const bool begins = id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED;
    const bool holds = !begins && tide__cupti_samples_hold();
    if (begins) {
        know_context(d->context);
        return;
    }
    tide__cupti_lock();
    context_ends(d->context);
    tide__cupti_unlock();
    if (holds) tide__cupti_samples_release();
}

// ---- the callback ----

void CUPTIAPI tide__cupti_on_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                      const void *data) {
    (void)unused;
    if (!tide__cupti_enter()) return;
    const int saved = errno;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        on_resource(id, data);
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id < CUPTI_DRIVER_TRACE_CBID_SIZE && row_of[id] != 0) {
        const CUpti_CallbackData *d = data;
        const row *r = &rows[row_of[id] - 1];
        if (d->callbackSite == CUPTI_API_ENTER)
            before(r, d);
        else
            after(r, d);
    }
    errno = saved;
    tide__cupti_leave();
}

static tide_status enable(CUpti_CallbackDomain domain, CUpti_CallbackId id, tide_error *err) {
    const CUptiResult result = tide__cupti.lib.cuptiEnableCallback(1, tide__cupti.subscriber, domain, id);
    if (result == CUPTI_SUCCESS) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record CUDA memory: cuptiEnableCallback(%d, %u): %s (%d)",
                     (int)domain, (unsigned)id, tide__cupti_result(&tide__cupti.lib, result), (int)result);
}

tide_status tide__cupti_enable_callbacks(tide_error *err) {
    for (size_t i = 0; i < N_ROWS; i++) {
        row_of[rows[i].id] = (uint8_t)(i + 1);
        TIDE_TRY(enable(CUPTI_CB_DOMAIN_DRIVER_API, rows[i].id, err));
    }
    TIDE_TRY(enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, err));
    return enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, err);
}
