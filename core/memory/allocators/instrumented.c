// SPDX-License-Identifier: MIT
//
// instrumented: passes every call to an inner allocator and tells an observer. It owns no memory:
//
//     caller --alloc--> instrumented --alloc--> inner        caller --release--> instrumented
//                            | alloc, oom                                            | free_requested
//                            v (after the inner call)                                v free_completed
//                        observer                                                observer
//                                                            (before the inner call) | --release--> inner
//
// The order matters to whoever keeps a running sum while several threads allocate. An alloc is told after it
// happened and a free before the memory goes back, so at any moment the sum heard is at most what is really out, and
// no address is heard as allocated again before it was heard as freed.
//
// Numbers, alignment, reset, trim and check are the inner allocator's.
#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"

typedef struct instrumented_state {
    tide_allocator *inner; // referenced
    tide_observer obs;
} instrumented_state;

/// An event with everything filled that all of them have in common.
static tide_memory_event new_event(const instrumented_state *s, tide_memory_op op, tide_stream_id stream) {
    return (tide_memory_event){.op = op,
                               .t_ns = tide_now_ns(),
                               .device = tide_allocator_device(s->inner),
                               .stream = stream,
                               .thread = tide_thread_id(),
                               .allocator = tide_allocator_name(s->inner),
                               .scope = tide_scope_current()};
}

static void tell_memory(const instrumented_state *s, tide_memory_op op, const tide_memory *mem, tide_stream_id stream) {
    tide_memory_event event = new_event(s, op, stream);
    event.block_id = mem->block_id;
    event.kind = mem->kind;
    event.requested_bytes = mem->requested_bytes;
    event.reserved_bytes = mem->reserved_bytes;
    event.address = (uint64_t)(uintptr_t)mem->data;
    event.tag = mem->tag;
    s->obs.on_memory(s->obs.self, &event);
}

static void tell_oom(const instrumented_state *s, const tide_alloc_request *req) {
    tide_memory_event event = new_event(s, TIDE_MEM_OOM, req->stream);
    event.kind = req->kind;
    event.requested_bytes = req->size_bytes;
    event.tag = req->tag;
    s->obs.on_memory(s->obs.self, &event);
}

static tide_status instrumented_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    const instrumented_state *s = self;
    const tide_status st = tide_allocator_alloc(s->inner, req, out, err);
    if (st == TIDE_OK) {
        tell_memory(s, TIDE_MEM_ALLOC, out, req->stream);
    } else {
        tell_oom(s, req);
    }
    return st;
}

static void instrumented_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    const instrumented_state *s = self;
    tell_memory(s, TIDE_MEM_FREE_REQUESTED, mem, last_stream);
    tell_memory(s, TIDE_MEM_FREE_COMPLETED, mem, last_stream);
    tide_allocator_release(s->inner, mem, last_stream);
}

static void instrumented_stats(const void *self, tide_allocator_stats *out) {
    const instrumented_state *s = self;
    tide_allocator_get_stats(s->inner, out);
}

static tide_status instrumented_reset(void *self, tide_error *err) {
    const instrumented_state *s = self;
    return tide_allocator_reset(s->inner, err);
}

static void instrumented_trim(void *self) {
    const instrumented_state *s = self;
    tide_allocator_trim(s->inner);
}

static tide_status instrumented_check(const void *self, tide_error *err) {
    const instrumented_state *s = self;
    return tide_allocator_check(s->inner, err);
}

static void instrumented_destroy(void *self) {
    instrumented_state *s = self;
    tide_allocator_unref(s->inner);
    tide_host_free(s);
}

static const tide_allocator_ops instrumented_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                                    .name = "instrumented",
                                                    .alloc = instrumented_alloc,
                                                    .release = instrumented_release,
                                                    .stats = instrumented_stats,
                                                    .destroy = instrumented_destroy,
                                                    .reset = instrumented_reset,
                                                    .trim = instrumented_trim,
                                                    .check = instrumented_check};

tide_status tide_instrumented_create(tide_allocator *inner, const tide_observer *obs, tide_allocator **out,
                                     tide_error *err) {
    if (obs->on_memory == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "instrumented allocator: the observer does not listen to memory");
    instrumented_state *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of allocator 'instrumented'");
    s->inner = tide_allocator_ref(inner);
    s->obs = *obs;
    return tide_allocator_create(&instrumented_ops, s, tide_allocator_device(inner), out, err);
}
