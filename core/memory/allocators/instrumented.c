// SPDX-License-Identifier: MIT
//
// instrumented: passes every call to an inner allocator and reports it to an observer. It owns no memory:
//
//     caller --alloc--> instrumented --alloc--> inner        caller --release--> instrumented
//                            | alloc, oom                                            | free_requested
//                            v (after the inner call)                                v (before the inner call)
//                        observer                                                observer
//                                                                                    ^
//                                           inner, when the memory can serve again --+ free_completed
//
// The order matters to an observer that keeps a running sum while several threads allocate. An alloc is reported after
// it happened and a free before the memory goes back, so at any moment the reported sum is at most what is really
// allocated, and no address is reported as allocated again before it was reported as freed.
//
// Most allocators have nothing to wait for: their free_completed follows free_requested at once. A stream-aware one
// says itself when the streams are done; it calls from under its own lock, so the same order holds. It has one
// listener: only one instrumented allocator may stand around it, and nothing else may allocate from it meanwhile.
//
// Life: a block holds its owner, so the wrapper lives until every block is released; but a released block may still be
// pending in the inner allocator. When the wrapper held the last reference, the inner one ends with it and completes
// them all while we still listen. When another holds it too, we stop listening: those blocks stay "free
// requested" for this observer, whose life we may not outlast.
//
// Numbers, properties, alignment, reset, trim and check are the inner allocator's.
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/wrap.h"

typedef struct instrumented_state {
    tide__wrap wrap; // first
    tide_observer obs;
    tide_allocator_listener ears;  // ours at a stream-aware inner
    tide_allocator_listener outer; // of an allocator around this one that wants to know the same
    tide_device device;
    const char *name;        // of inner
    _Atomic int latest_kind; // of the request that inner works on: segments are taken for one
} instrumented_state;

static uint64_t now_if_wanted(const instrumented_state *s) { return s->obs.no_time ? 0 : tide_now_ns(); }

/// Of events that are about one block.
static inline tide_memory_event block_event(const instrumented_state *s, tide_memory_op op, const tide_memory *mem,
                                            tide_stream_id stream) {
    return (tide_memory_event){.op = op,
                               .t_ns = now_if_wanted(s),
                               .block_id = mem->block_id,
                               .device = s->device,
                               .kind = mem->kind,
                               .stream = stream,
                               .requested_bytes = mem->requested_bytes,
                               .reserved_bytes = mem->reserved_bytes,
                               .address = (uint64_t)(uintptr_t)mem->data,
                               .thread = tide_thread_id(),
                               .allocator = s->name,
                               .tag = mem->tag,
                               .scope = tide_scope_current()};
}

static void report(const instrumented_state *s, const tide_memory_event *event) {
    s->obs.on_memory(s->obs.self, event);
}

static void report_oom(const instrumented_state *s, const tide_alloc_request *req) {
    tide_allocator_stats stats;
    tide_allocator_get_stats(s->wrap.inner, &stats);
    const tide_memory_event event = {.op = TIDE_MEM_OOM,
                                     .t_ns = now_if_wanted(s),
                                     .device = s->device,
                                     .kind = req->kind,
                                     .stream = req->stream,
                                     .requested_bytes = req->size_bytes,
                                     .thread = tide_thread_id(),
                                     .allocator = s->name,
                                     .tag = req->tag,
                                     .scope = tide_scope_current(),
                                     .stats = &stats,
                                     .align_bytes = req->align_bytes};
    report(s, &event);
}

// ---- events of the inner allocator ----

static void hear_completed(void *self, const tide_memory *mem, tide_stream_id stream) {
    const instrumented_state *s = self;
    const tide_memory_event event = block_event(s, TIDE_MEM_FREE_COMPLETED, mem, stream);
    report(s, &event);
    if (s->outer.on_free_completed != NULL) s->outer.on_free_completed(s->outer.self, mem, stream);
}

static void hear_segment(void *self, bool taken, uint64_t id, const void *address, size_t size_bytes) {
    instrumented_state *s = self;
    const tide_memory_event event = {.op = taken ? TIDE_MEM_SEGMENT_ALLOC : TIDE_MEM_SEGMENT_FREE,
                                     .t_ns = now_if_wanted(s),
                                     .block_id = id,
                                     .device = s->device,
                                     .kind =
                                         (tide_memory_kind)atomic_load_explicit(&s->latest_kind, memory_order_relaxed),
                                     .requested_bytes = size_bytes,
                                     .reserved_bytes = size_bytes,
                                     .address = (uint64_t)(uintptr_t)address,
                                     .thread = tide_thread_id(),
                                     .allocator = s->name,
                                     .scope = tide_scope_current()};
    report(s, &event);
    if (s->outer.on_segment != NULL) s->outer.on_segment(s->outer.self, taken, id, address, size_bytes);
}

// ---- the table ----

static tide_status instrumented_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    instrumented_state *s = self;
    if (s->wrap.deferred) atomic_store_explicit(&s->latest_kind, (int)req->kind, memory_order_relaxed);
    const tide_status st = tide_allocator_alloc(s->wrap.inner, req, out, err);
    if (st == TIDE_OK) {
        const tide_memory_event event = block_event(s, TIDE_MEM_ALLOC, out, req->stream);
        report(s, &event);
    } else if (st != TIDE_ERR_INVALID) { // a request that makes no sense is no lack of memory
        report_oom(s, req);
    }
    return st;
}

static void instrumented_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    const instrumented_state *s = self;
    tide_memory_event event = block_event(s, TIDE_MEM_FREE_REQUESTED, mem, last_stream);
    report(s, &event);
    if (!s->wrap.deferred) {
        event.op = TIDE_MEM_FREE_COMPLETED;
        report(s, &event);
    }
    tide_allocator_release(s->wrap.inner, mem, last_stream);
}

static void instrumented_stats(const void *self, tide_allocator_stats *out) {
    const instrumented_state *s = self;
    tide_allocator_get_stats(s->wrap.inner, out);
}

static void instrumented_listen(void *self, const tide_allocator_listener *listener) {
    instrumented_state *s = self;
    s->outer = listener != NULL ? *listener : (tide_allocator_listener){0};
}

static void instrumented_destroy(void *self) {
    instrumented_state *s = self;
    tide__wrap_deinit(&s->wrap);
    tide_host_free(s);
}

static const tide_allocator_ops instrumented_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                                    .name = "instrumented",
                                                    .alloc = instrumented_alloc,
                                                    .release = instrumented_release,
                                                    .stats = instrumented_stats,
                                                    .props = tide__wrap_props,
                                                    .destroy = instrumented_destroy,
                                                    .reset = tide__wrap_reset,
                                                    .trim = tide__wrap_trim,
                                                    .check = tide__wrap_check,
                                                    .record_use = tide__wrap_record_use,
                                                    .listen = instrumented_listen};

tide_status tide_instrumented_create(tide_allocator *inner, const tide_observer *obs, tide_allocator **out,
                                     tide_error *err) {
    if (obs->on_memory == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "instrumented allocator: the observer does not listen to memory");
    instrumented_state *s;
    TIDE_TRY(TIDE_NEW(&s, 1, err, "for the state of allocator 'instrumented'"));
    tide__wrap_init(&s->wrap, inner);
    s->obs = *obs;
    s->device = tide_allocator_device(inner);
    s->name = tide_allocator_name(inner);
    const tide_status st = tide_allocator_create(&instrumented_ops, s, s->device, out, err);
    if (st != TIDE_OK) return st; // the state is gone already, before it was given out
    if (s->wrap.deferred) {
        s->ears = (tide_allocator_listener){.self = s, .on_free_completed = hear_completed, .on_segment = hear_segment};
        tide__wrap_hear(&s->wrap, &s->ears);
    }
    return TIDE_OK;
}
