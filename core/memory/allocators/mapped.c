// SPDX-License-Identifier: MIT
//
// mapped: gives out parts of files that are mapped already, so that weights which are used where they lie in a file are
// seen, named and counted like any other block. It takes no memory:
//
//     file, mapped  |....|<- weight ->|......|
//                        ^ given out; holds the mapping until it comes back
//
// Which part is next is said by tide_mapped_block_create, in the same thread; any other request is refused.
//
// The numbers: active and reserved are the bytes of the file that blocks stand for. None of them is private memory:
// pages come when they are first read, and the system may take them back.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/short_lock.h"

typedef struct mapped_state {
    tide__lock lock; // guards the numbers
    tide_allocator_stats stats;
} mapped_state;

/// Of this thread: what the next request gets.
static _Thread_local struct {
    const void *data;
    size_t size_bytes;
    tide_block *file; // borrowed until it is given out
} offer;

static tide_status mapped_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    mapped_state *m = self;
    if (offer.file == NULL || offer.size_bytes != req->size_bytes ||
        (uintptr_t)offer.data % (req->align_bytes != 0 ? req->align_bytes : 1) != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'mapped': there is no part of a file for %zu B of '%s'",
                         req->size_bytes, req->tag != NULL ? req->tag : "(no name)");
    out->data = tide__mutable(offer.data);
    out->reserved_bytes = req->size_bytes;
    out->context = tide_block_ref(offer.file);
    offer.file = NULL;
    tide__lock_take(&m->lock);
    tide__count_reserve(&m->stats, out->reserved_bytes);
    tide__count_alloc(&m->stats, req->size_bytes, out->reserved_bytes);
    m->stats.n_system--; // no call to the system
    tide__lock_give(&m->lock);
    return TIDE_OK;
}

static void mapped_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    mapped_state *m = self;
    tide_block_unref(mem->context);
    tide__lock_take(&m->lock);
    tide__count_free(&m->stats, mem->requested_bytes, mem->reserved_bytes);
    TIDE_ASSERT(m->stats.reserved_bytes >= mem->reserved_bytes);
    m->stats.reserved_bytes -= mem->reserved_bytes;
    tide__lock_give(&m->lock);
}

static void mapped_stats(const void *self, tide_allocator_stats *out) {
    mapped_state *m = tide__mutable(self);
    tide__lock_take(&m->lock);
    *out = m->stats;
    tide__lock_give(&m->lock);
    out->headroom_bytes = TIDE_UNKNOWN_BYTES;
}

static void mapped_props(const void *self, tide_allocator_props *out) {
    (void)self;
    out->what = "parts of files that are mapped: nothing is taken";
}

static tide_status mapped_check(const void *self, tide_error *err) {
    tide_allocator_stats s;
    mapped_stats(self, &s);
    return tide__counters_check(&s, "mapped", err);
}

static void mapped_destroy(void *self) { tide_host_free(self); }

static const tide_allocator_ops mapped_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "mapped",
                                              .alloc = mapped_alloc,
                                              .release = mapped_release,
                                              .stats = mapped_stats,
                                              .props = mapped_props,
                                              .destroy = mapped_destroy,
                                              .check = mapped_check};

tide_status tide_mapped_create(tide_allocator **out, tide_error *err) {
    mapped_state *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "for the state of allocator 'mapped'"));
    return tide_allocator_create(&mapped_ops, m, TIDE_CPU, out, err);
}

tide_status tide_mapped_block_create(tide_allocator *a, tide_block *file, const void *data, size_t size_bytes,
                                     size_t align_bytes, tide_memory_kind kind, const char *tag, tide_block **out,
                                     tide_error *err) {
    TIDE_ASSERT(tide_block_is_mapped(file) && size_bytes <= file->mem.requested_bytes);
    TIDE_ASSERT((uintptr_t)data - (uintptr_t)tide_block_address(file) <= file->mem.requested_bytes - size_bytes);
    offer.data = data;
    offer.size_bytes = size_bytes;
    offer.file = file;
    const tide_status st = tide_block_create(a, size_bytes, align_bytes, kind, 0, tag, out, err);
    offer.file = NULL;
    if (st == TIDE_OK) (*out)->flags |= TIDE_BLOCK_READ_ONLY;
    return st;
}
