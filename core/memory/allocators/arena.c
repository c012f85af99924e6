// SPDX-License-Identifier: MIT
//
// arena: one block from a backing allocator and a cursor that only moves up; reset rewinds it (LT-28).
//
//     base                                       cursor                     capacity
//     |[ block 1 ......][ block 2 .][pad][ block 3 ]|          free          |
//     |<---------------- active ------------------>|<-------- cached ------>|
//
// Every span behind the cursor is a multiple of the arena's alignment (the last one may be cut by the end), so that for
// requests of that alignment the cursor is the sum of the sizes rounded up, which is also how a plan counts. A request
// with a stricter alignment first moves the cursor to such an address; the padding belongs to its span.
//
// Releasing a block takes its bytes out of `requested` and nothing else: the span stays active until reset, since the
// cursor cannot go back under younger blocks. Hence peak active is the high-water mark: the capacity that would have
// been enough. Reserved is the backing block, for as long as the arena lives. The arena never touches the memory
// itself, so the backing may be of any device.
#include <inttypes.h>
#include <pthread.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/block.h"

typedef struct arena_state {
    pthread_mutex_t lock; // guards cursor and stats
    tide_block *backing;  // owned
    size_t capacity_bytes;
    size_t align_bytes;
    size_t cursor_bytes; // from the base of the backing; == stats.active_bytes
    tide_allocator_stats stats;
} arena_state;

typedef struct span {
    size_t begin_bytes; // where the block starts, aligned
    size_t end_bytes;   // where the cursor will be
} span;

/// Where a request would lie from the present cursor on; false when it does not fit. Pure.
static bool place(const arena_state *a, const tide_alloc_request *req, span *out) {
    const size_t align = req->align_bytes > a->align_bytes ? req->align_bytes : a->align_bytes;
    const uint64_t base = (uint64_t)(uintptr_t)a->backing->mem.data;
    // The address is aligned, not the offset: the base is only as aligned as the arena's own alignment.
    uint64_t address, span_bytes;
    if (!tide_align_up(base + a->cursor_bytes, align, &address)) return false;
    const uint64_t begin = address - base;
    if (begin > a->capacity_bytes || req->size_bytes > a->capacity_bytes - begin) return false;
    const uint64_t room = a->capacity_bytes - begin;
    // The last span may be cut short: a capacity that is no multiple of the alignment can be used up.
    if (!tide_align_up(req->size_bytes, a->align_bytes, &span_bytes) || span_bytes > room) span_bytes = room;
    *out = (span){.begin_bytes = (size_t)begin, .end_bytes = (size_t)(begin + span_bytes)};
    return true;
}

static tide_status arena_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    arena_state *a = self;
    pthread_mutex_lock(&a->lock);
    const size_t cursor = a->cursor_bytes;
    span s;
    const bool fits = place(a, req, &s);
    if (fits) {
        a->cursor_bytes = s.end_bytes;
        tide__count_alloc(&a->stats, req->size_bytes, s.end_bytes - cursor);
    } else {
        a->stats.n_failed++;
    }
    pthread_mutex_unlock(&a->lock);
    if (!fits) {
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "arena: '%s' needs %zu B (alignment %zu), %zu B left of %zu",
                         req->tag != NULL ? req->tag : "(no name)", req->size_bytes,
                         req->align_bytes > a->align_bytes ? req->align_bytes : a->align_bytes,
                         a->capacity_bytes - cursor, a->capacity_bytes);
    }
    out->data = (char *)a->backing->mem.data + s.begin_bytes;
    out->reserved_bytes = s.end_bytes - cursor;
    return TIDE_OK;
}

static void arena_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    arena_state *a = self;
    pthread_mutex_lock(&a->lock);
    tide__count_free(&a->stats, mem->requested_bytes, 0);
    pthread_mutex_unlock(&a->lock);
}

static tide_status arena_reset(void *self, tide_error *err) {
    arena_state *a = self;
    pthread_mutex_lock(&a->lock);
    const uint64_t n_out = a->stats.n_allocs - a->stats.n_frees;
    if (n_out == 0) {
        a->cursor_bytes = 0;
        a->stats.active_bytes = 0;
    }
    pthread_mutex_unlock(&a->lock);
    if (n_out == 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "arena cannot be reset: %" PRIu64 " block%s still out", n_out,
                     n_out == 1 ? " is" : "s are");
}

static void fill_stats(const arena_state *a, tide_allocator_stats *out) {
    *out = a->stats;
    out->cached_bytes = a->capacity_bytes - a->cursor_bytes;
    out->largest_free_bytes = out->cached_bytes;
}

static void arena_stats(const void *self, tide_allocator_stats *out) {
    arena_state *a = tide__mutable(self);
    pthread_mutex_lock(&a->lock);
    fill_stats(a, out);
    pthread_mutex_unlock(&a->lock);
}

static tide_status arena_check(const void *self, tide_error *err) {
    arena_state *a = tide__mutable(self);
    tide_allocator_stats s;
    pthread_mutex_lock(&a->lock);
    fill_stats(a, &s);
    const size_t cursor = a->cursor_bytes;
    pthread_mutex_unlock(&a->lock);
    TIDE_TRY(tide__counters_check(&s, "arena", err));
    if (cursor != s.active_bytes || cursor > a->capacity_bytes)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "arena: cursor %zu, active %" PRIu64 ", capacity %zu", cursor,
                         s.active_bytes, a->capacity_bytes);
    return TIDE_OK;
}

static void arena_destroy(void *self) {
    arena_state *a = self;
    tide_block_unref(a->backing);
    pthread_mutex_destroy(&a->lock);
    tide_host_free(a);
}

static const tide_allocator_ops arena_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                             .name = "arena",
                                             .alloc = arena_alloc,
                                             .release = arena_release,
                                             .stats = arena_stats,
                                             .destroy = arena_destroy,
                                             .reset = arena_reset,
                                             .check = arena_check};

tide_status tide_arena_create(tide_allocator *backing, size_t capacity_bytes, size_t align_bytes, tide_allocator **out,
                              tide_error *err) {
    const tide_device device = tide_allocator_device(backing);
    const size_t align = align_bytes != 0 ? align_bytes : tide_memory_kind_alignment(TIDE_KIND_WORKSPACE, device);
    if (capacity_bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "arena: a capacity of 0 bytes");
    if (!tide_is_pow2(align))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "arena: alignment %zu is not a power of two", align);
    arena_state *a = tide_host_calloc(1, sizeof *a);
    if (a == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the state of an arena");
    // A block and not a raw allocation: it has an id of its own, and it keeps the backing allocator alive.
    const tide_status st =
        tide_block_create(backing, capacity_bytes, align, TIDE_KIND_WORKSPACE, 0, "arena", &a->backing, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "arena of %zu B", capacity_bytes);
        tide_host_free(a);
        return st;
    }
    pthread_mutex_init(&a->lock, NULL);
    a->capacity_bytes = capacity_bytes;
    a->align_bytes = align;
    tide__count_reserve(&a->stats, a->backing->mem.reserved_bytes);
    return tide_allocator_create(&arena_ops, a, device, out, err);
}
