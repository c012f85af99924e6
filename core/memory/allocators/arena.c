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
// been enough. Reserved is the backing block, for as long as the arena lives or until it is given a larger one.
//
// Memory that is not handed out must not be touched, and a pointer that outlives its block or a reset is a fault
// (LT-37). Under AddressSanitizer such a touch traps; in debug builds a reset overwrites what was used with the poison
// pattern. The arena itself never touches its memory otherwise, so the backing may be of any device.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/block.h"
#include "core/memory/poison.h"
#include "core/memory/short_lock.h"

typedef struct arena_state {
    tide__lock lock;     // guards everything below
    size_t cursor_bytes; // from the base
    uint64_t base;       // address of the backing's first byte
    size_t capacity_bytes;
    size_t align_bytes; // constant
    uint64_t requested_bytes, n_allocs, n_frees;
    // Of the time before the last release and before the last reset: until then the two only rise.
    uint64_t peak_requested_bytes, peak_cursor_bytes;
    uint64_t n_failed, n_system, reserved_bytes, peak_reserved_bytes;
    tide_allocator *source; // referenced; where backings come from
    tide_block *backing;    // owned; NULL: none yet
} arena_state;

static bool is_host(const arena_state *a) { return tide_allocator_device(a->source).type == TIDE_DEVICE_CPU; }

/// Move the cursor and say where the block lies; NULL: it does not fit. The lock is held.
static void *place(arena_state *a, size_t size_bytes, size_t align_bytes, size_t *span_bytes) {
    TIDE_ASSERT(a->cursor_bytes <= a->capacity_bytes && (align_bytes & (align_bytes - 1)) == 0);
    // The address is aligned, not the offset: the base is only as aligned as the arena's own alignment. No sum below
    // can wrap: base + capacity is an address, and what is added to it is compared with the room that is left first.
    const size_t align = align_bytes > a->align_bytes ? align_bytes : a->align_bytes;
    const size_t cursor = a->cursor_bytes, room = a->capacity_bytes - cursor;
    const uint64_t pad = (~(a->base + cursor) + 1) & (align - 1);
    if (pad > room || size_bytes > room - pad) return NULL;
    // The last span may be cut short: a capacity that is no multiple of the alignment can be used up.
    const size_t rounded = (size_bytes + (a->align_bytes - 1)) & ~(a->align_bytes - 1);
    *span_bytes = rounded > room - pad ? room : (size_t)pad + rounded;
    a->cursor_bytes = cursor + *span_bytes;
    a->requested_bytes += size_bytes;
    a->n_allocs++;
    TIDE_ASSERT(a->cursor_bytes <= a->capacity_bytes && (a->base + cursor + pad) % align == 0);
    return (void *)(uintptr_t)(a->base + cursor + pad);
}

static inline void unplace(arena_state *a, size_t size_bytes) {
    if (a->requested_bytes > a->peak_requested_bytes) a->peak_requested_bytes = a->requested_bytes;
    TIDE_ASSERT(a->requested_bytes >= size_bytes && a->n_frees < a->n_allocs);
    a->requested_bytes -= size_bytes;
    a->n_frees++;
}

static inline void hand_out(arena_state *a, void *data, size_t size_bytes, size_t span_bytes, tide_memory *out) {
    TIDE_ASSERT(span_bytes >= size_bytes && (uint64_t)(uintptr_t)data % a->align_bytes == 0);
    if (TIDE__ASAN && is_host(a)) tide_asan_unpoison(data, size_bytes);
    out->data = data;
    out->reserved_bytes = span_bytes;
    out->context = a;
}

static __attribute__((noinline)) tide_status alloc_away(arena_state *a, const tide_alloc_request *req, tide_memory *out,
                                                        tide_error *err) {
    size_t span_bytes = 0;
    tide__lock_take(&a->lock);
    void *data = place(a, req->size_bytes, req->align_bytes, &span_bytes);
    if (data == NULL) a->n_failed++;
    const size_t capacity = a->capacity_bytes, left = capacity - a->cursor_bytes;
    tide__lock_give(&a->lock);
    if (data == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "arena: '%s' needs %zu B (alignment %zu), %zu B left of %zu",
                         req->tag != NULL ? req->tag : "(no name)", req->size_bytes,
                         req->align_bytes > a->align_bytes ? req->align_bytes : a->align_bytes, left, capacity);
    hand_out(a, data, req->size_bytes, span_bytes, out);
    return TIDE_OK;
}

/// The quick way: no other thread is inside, an alignment that the cursor has anyway, and a span that need not be cut.
static tide_status arena_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    arena_state *a = self;
    const size_t size = req->size_bytes;
    if (!tide__lock_try(&a->lock)) return alloc_away(a, req, out, err);
    const size_t cursor = a->cursor_bytes, mask = a->align_bytes - 1, room = a->capacity_bytes - cursor;
    const size_t span_bytes = (size + mask) & ~mask; // wraps for sizes that have no room anyway
    if (__builtin_expect(size > room || span_bytes > room || req->align_bytes > mask + 1, 0)) {
        tide__lock_give(&a->lock);
        return alloc_away(a, req, out, err);
    }
    void *data = (void *)(uintptr_t)(a->base + cursor);
    a->cursor_bytes = cursor + span_bytes;
    a->requested_bytes += size;
    a->n_allocs++;
    tide__lock_give(&a->lock);
    hand_out(a, data, size, span_bytes, out);
    return TIDE_OK;
}

static void arena_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    arena_state *a = self;
    if (TIDE__ASAN && is_host(a)) tide_asan_poison(mem->data, mem->requested_bytes);
    tide__lock_take(&a->lock);
    unplace(a, mem->requested_bytes);
    tide__lock_give(&a->lock);
}

/// A stale pointer into [0, used) of the backing reads the pattern from now on. The lock is held.
static void spoil(const arena_state *a, size_t used_bytes) {
#ifndef NDEBUG
    TIDE_ASSERT(used_bytes <= a->capacity_bytes);
    if (!is_host(a) || used_bytes == 0) return;
    void *base = (void *)(uintptr_t)a->base;
    tide_asan_unpoison(base, used_bytes);
    tide_poison_fill(base, used_bytes);
    tide_asan_poison(base, used_bytes);
#else
    (void)a;
    (void)used_bytes;
#endif
}

static tide_status arena_reset(void *self, tide_error *err) {
    arena_state *a = self;
    tide__lock_take(&a->lock);
    const uint64_t n_out = a->n_allocs - a->n_frees;
    if (n_out == 0) {
        if (a->cursor_bytes > a->peak_cursor_bytes) a->peak_cursor_bytes = a->cursor_bytes;
        spoil(a, a->cursor_bytes);
        a->cursor_bytes = 0;
    }
    tide__lock_give(&a->lock);
    if (n_out == 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "arena cannot be reset: %" PRIu64 " block%s still out", n_out,
                     n_out == 1 ? " is" : "s are");
}

/// The lock is held.
static void fill_stats(const arena_state *a, tide_allocator_stats *out) {
    const uint64_t cursor = a->cursor_bytes, requested = a->requested_bytes;
    TIDE_ASSERT(cursor <= a->capacity_bytes && requested <= cursor);
    TIDE_ASSERT(a->n_frees <= a->n_allocs);
    *out = (tide_allocator_stats){.requested_bytes = requested,
                                  .active_bytes = cursor,
                                  .cached_bytes = a->capacity_bytes - cursor,
                                  .reserved_bytes = a->reserved_bytes,
                                  .largest_free_bytes = a->capacity_bytes - cursor,
                                  .headroom_bytes = 0, // it never takes more by itself
                                  .peak_requested_bytes =
                                      requested > a->peak_requested_bytes ? requested : a->peak_requested_bytes,
                                  .peak_active_bytes = cursor > a->peak_cursor_bytes ? cursor : a->peak_cursor_bytes,
                                  .peak_reserved_bytes = a->peak_reserved_bytes,
                                  .n_allocs = a->n_allocs,
                                  .n_frees = a->n_frees,
                                  .n_failed = a->n_failed,
                                  .n_system = a->n_system};
}

static void arena_stats(const void *self, tide_allocator_stats *out) {
    arena_state *a = tide__mutable(self);
    tide__lock_take(&a->lock);
    fill_stats(a, out);
    tide__lock_give(&a->lock);
}

static void arena_props(const void *self, tide_allocator_props *out) {
    const arena_state *a = self;
    out->what = "one block and a cursor; reset gives everything back";
    out->align_bytes = a->align_bytes;
    out->needs_reset = true;
}

static tide_status arena_check(const void *self, tide_error *err) {
    arena_state *a = tide__mutable(self);
    tide_allocator_stats s;
    tide__lock_take(&a->lock);
    fill_stats(a, &s);
    const size_t cursor = a->cursor_bytes, capacity = a->capacity_bytes;
    const bool is_backed = capacity == 0 || a->backing != NULL;
    tide__lock_give(&a->lock);
    TIDE_TRY(tide__counters_check(&s, "arena", err));
    if (cursor > capacity || !is_backed)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "arena: cursor %zu, capacity %zu", cursor, capacity);
    return TIDE_OK;
}

// ---- the backing ----

static void drop_backing(arena_state *a, tide_block *backing) {
    if (backing != NULL && is_host(a)) tide_asan_unpoison(tide_block_address(backing), backing->mem.reserved_bytes);
    tide_block_unref(backing);
}

static tide_status take_backing(const arena_state *a, size_t capacity_bytes, tide_block **out, tide_error *err) {
    // A block and not a raw allocation: it has an id of its own, and it keeps the backing allocator alive.
    const tide_status st =
        tide_block_create(a->source, capacity_bytes, a->align_bytes, TIDE_KIND_WORKSPACE, 0, "arena", out, err);
    if (st != TIDE_OK) tide_error_prefix(err, "arena of %zu B", capacity_bytes);
    return st;
}

/// The backing becomes `fresh`; returns the old one. The lock is held, or no other thread knows the arena yet.
static tide_block *put_backing(arena_state *a, tide_block *fresh, size_t capacity_bytes) {
    TIDE_ASSERT(a->cursor_bytes == 0 && a->n_allocs == a->n_frees && capacity_bytes > a->capacity_bytes);
    tide_block *old = a->backing;
    if (is_host(a)) tide_asan_poison(tide_block_address(fresh), capacity_bytes);
    a->backing = fresh;
    a->base = (uint64_t)(uintptr_t)tide_block_address(fresh);
    TIDE_ASSERT(a->base % a->align_bytes == 0 && fresh->mem.reserved_bytes >= capacity_bytes);
    a->capacity_bytes = capacity_bytes;
    a->n_system++;
    a->reserved_bytes = fresh->mem.reserved_bytes;
    if (a->reserved_bytes > a->peak_reserved_bytes) a->peak_reserved_bytes = a->reserved_bytes;
    return old;
}

static void arena_destroy(void *self) {
    arena_state *a = self;
    drop_backing(a, a->backing);
    tide_allocator_unref(a->source);
    tide_host_free(a);
}

static const tide_allocator_ops arena_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                             .name = "arena",
                                             .alloc = arena_alloc,
                                             .release = arena_release,
                                             .stats = arena_stats,
                                             .props = arena_props,
                                             .destroy = arena_destroy,
                                             .reset = arena_reset,
                                             .check = arena_check};

tide_status tide_arena_create(tide_allocator *backing, size_t capacity_bytes, size_t align_bytes, tide_allocator **out,
                              tide_error *err) {
    const tide_device device = tide_allocator_device(backing);
    const size_t align = align_bytes != 0 ? align_bytes : tide_memory_kind_alignment(TIDE_KIND_WORKSPACE, device);
    if (!tide_is_pow2(align))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "arena: alignment %zu is not a power of two", align);
    arena_state *a;
    TIDE_TRY(TIDE_NEW(&a, 1, err, "for the state of an arena"));
    a->source = tide_allocator_ref(backing);
    a->align_bytes = align;
    tide_block *fresh = NULL;
    if (capacity_bytes > 0) {
        const tide_status st = take_backing(a, capacity_bytes, &fresh, err);
        if (st != TIDE_OK) {
            arena_destroy(a);
            return st;
        }
        put_backing(a, fresh, capacity_bytes);
    }
    return tide_allocator_create(&arena_ops, a, device, out, err);
}

/// TIDE_OK: a larger backing may be put in; *enough: there is no need. The lock is held.
static tide_status may_grow(const arena_state *a, size_t capacity_bytes, bool *enough, tide_error *err) {
    *enough = capacity_bytes <= a->capacity_bytes;
    if (*enough || (a->n_allocs == a->n_frees && a->cursor_bytes == 0)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BUSY,
                     "arena cannot grow to %zu B: %" PRIu64 " blocks are out, the cursor is at %zu of %zu",
                     capacity_bytes, a->n_allocs - a->n_frees, a->cursor_bytes, a->capacity_bytes);
}

tide_status tide_arena_reserve(tide_allocator *allocator, size_t capacity_bytes, tide_error *err) {
    if (allocator->ops != &arena_ops)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s' is no arena: nothing can be reserved in it",
                         allocator->ops->name);
    arena_state *a = allocator->self;
    bool enough;
    tide__lock_take(&a->lock);
    tide_status st = may_grow(a, capacity_bytes, &enough, err);
    tide__lock_give(&a->lock);
    if (st != TIDE_OK || enough) return st;
    tide_block *fresh = NULL, *spare;
    TIDE_TRY(take_backing(a, capacity_bytes, &fresh, err));
    // The backing was asked without the lock: another thread may have been here in between.
    tide__lock_take(&a->lock);
    st = may_grow(a, capacity_bytes, &enough, err);
    spare = st == TIDE_OK && !enough ? put_backing(a, fresh, capacity_bytes) : fresh;
    tide__lock_give(&a->lock);
    drop_backing(a, spare);
    return st;
}
