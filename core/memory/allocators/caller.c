// SPDX-License-Identifier: MIT
//
// caller: cuts blocks from memory that the caller of tidemark owns, so that what lies there is seen, named and counted
// like any other block. It takes no memory:
//
//     memory                                     cursor                size_bytes
//     |[ block 1 ......][pad][ block 2 .][ block 3 ]|        free         |
//     |<---------------- active ------------------->|<----- cached ------>|
//
// Addresses are aligned, not offsets: the memory may begin anywhere. A block takes its bytes rounded up to the
// alignment that every block has, the last one no more than there is; padding in front of it counts as its own. A
// released block stays active until reset, as in an arena: the cursor cannot go back under younger blocks.
//
// The numbers: reserved is the whole memory, from the beginning. None of it was taken from the system, so n_system
// stays 0. What no block holds is not closed for AddressSanitizer: the owner of the memory may use it.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/short_lock.h"

typedef struct caller_state {
    tide__lock lock; // guards cursor and numbers
    char *memory;    // borrowed
    size_t size_bytes, align_bytes, cursor_bytes;
    tide_allocator_stats stats; // those of bytes that are free follow from the cursor
} caller_state;

/// Move the cursor over padding and block. @return NULL: there is no room, and nothing has changed. The lock is held.
static void *place(caller_state *c, size_t size_bytes, size_t align_bytes, size_t *span_bytes) {
    const size_t room = c->size_bytes - c->cursor_bytes;
    const uintptr_t at = (uintptr_t)c->memory + c->cursor_bytes; // no wrap: the memory ends at an address
    const size_t pad = (size_t)((~at + 1) & (align_bytes - 1));
    if (pad > room || size_bytes > room - pad) return NULL;
    char *const data = c->memory + c->cursor_bytes + pad;
    uint64_t rounded = 0;
    const bool fits = tide_align_up(size_bytes, c->align_bytes, &rounded) && rounded <= room - pad;
    *span_bytes = fits ? pad + (size_t)rounded : room;
    c->cursor_bytes += *span_bytes;
    TIDE_ASSERT(c->cursor_bytes <= c->size_bytes && (uintptr_t)data % align_bytes == 0);
    return data;
}

static tide_status caller_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    caller_state *c = self;
    const size_t align = req->align_bytes > c->align_bytes ? req->align_bytes : c->align_bytes;
    size_t span_bytes = 0;
    tide__lock_take(&c->lock);
    void *const data = place(c, req->size_bytes, align, &span_bytes);
    if (data != NULL)
        tide__count_alloc(&c->stats, req->size_bytes, span_bytes);
    else
        c->stats.n_failed++;
    const size_t left = c->size_bytes - c->cursor_bytes;
    tide__lock_give(&c->lock);
    if (data == NULL) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                      "allocator 'caller': '%s' needs %zu B (alignment %zu), %zu B left of %zu that the caller gave",
                      req->tag != NULL ? req->tag : "(no name)", req->size_bytes, align, left, c->size_bytes);
        tide_error_hint(err, "a copy of what lies there needs a place of its own: say device and kind");
        return st;
    }
    out->data = data;
    out->reserved_bytes = span_bytes;
    out->context = c; // no address alone suffices to free it: lazy clones are copies
    return TIDE_OK;
}

static void caller_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    caller_state *c = self;
    tide__lock_take(&c->lock);
    tide__count_free(&c->stats, mem->requested_bytes, 0); // active until reset
    tide__lock_give(&c->lock);
}

static tide_status caller_reset(void *self, tide_error *err) {
    caller_state *c = self;
    tide__lock_take(&c->lock);
    const uint64_t n_out = c->stats.n_allocs - c->stats.n_frees;
    if (n_out == 0) {
        c->cursor_bytes = 0;
        c->stats.active_bytes = 0;
    }
    tide__lock_give(&c->lock);
    if (n_out == 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "allocator 'caller' cannot be reset: %" PRIu64 " block%s still out", n_out,
                     n_out == 1 ? " is" : "s are");
}

static void caller_stats(const void *self, tide_allocator_stats *out) {
    caller_state *c = tide__mutable(self);
    tide__lock_take(&c->lock);
    *out = c->stats;
    out->cached_bytes = out->largest_free_bytes = c->size_bytes - c->cursor_bytes;
    TIDE_ASSERT(out->active_bytes == c->cursor_bytes);
    tide__lock_give(&c->lock);
    out->headroom_bytes = 0; // it never takes more
}

static void caller_props(const void *self, tide_allocator_props *out) {
    const caller_state *c = self;
    out->what = "memory of the caller and a cursor: nothing is taken";
    out->align_bytes = c->align_bytes;
    out->needs_reset = true;
}

static tide_status caller_check(const void *self, tide_error *err) {
    tide_allocator_stats s;
    caller_stats(self, &s);
    return tide__counters_check(&s, "caller", err);
}

static void caller_destroy(void *self) { tide_host_free(self); }

static const tide_allocator_ops caller_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "caller",
                                              .alloc = caller_alloc,
                                              .release = caller_release,
                                              .stats = caller_stats,
                                              .props = caller_props,
                                              .destroy = caller_destroy,
                                              .reset = caller_reset,
                                              .check = caller_check};

tide_status tide_caller_create(void *memory, size_t size_bytes, size_t align_bytes, tide_allocator **out,
                               tide_error *err) {
    if (!tide_is_pow2(align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'caller': alignment %zu is not a power of two", align_bytes);
    if (memory == NULL && size_bytes > 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'caller': %zu B at address NULL", size_bytes);
    if (size_bytes > UINTPTR_MAX - (uintptr_t)memory)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'caller': %zu B at %p go past the end of memory", size_bytes,
                         memory);
    caller_state *c;
    TIDE_TRY(TIDE_NEW(&c, 1, err, "for the state of allocator 'caller'"));
    c->memory = memory;
    c->size_bytes = size_bytes;
    c->align_bytes = align_bytes;
    c->stats.reserved_bytes = c->stats.peak_reserved_bytes = size_bytes;
    return tide_allocator_create(&caller_ops, c, TIDE_CPU, out, err);
}
