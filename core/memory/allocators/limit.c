// SPDX-License-Identifier: MIT
//
// limit: an inner allocator with a budget. For runs that must show what a smaller machine would do, and for tests that
// run out of memory at a known byte. It owns no memory:
//
//     budget_bytes
//     |[ block of A ][ block of B ....][ block of A ]|           left            |
//     |<----------------- used --------------------->|<-- stats.headroom_bytes ->|
//              A and B: two limits that share one budget, each over an allocator of its own
//
// Used is the sum of what the blocks take in their inner allocator, rounding included. It is charged before inner is
// asked and uncharged after inner has the memory back, so at no moment more than the budget is out. What inner will
// round up to is known only when it has answered: a request whose rounding alone goes past the budget is given back at
// once. A block that a stream-aware inner allocator keeps back is uncharged when the streams are done with it; these
// are waited for before a request is refused, as before any end of memory. What other sharers of the budget keep back
// is not: to give that up is their owners' affair.
//
// The numbers are inner's, with the requests refused here in n_failed; headroom is what is left, and the largest free
// block is no larger than that.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/wrap.h"

typedef struct budget {
    _Atomic uint32_t refs; // limits that share it
    _Atomic uint64_t used_bytes;
    uint64_t bytes;
    _Atomic bool overshoots; // see give_back
} budget;

typedef struct limit_state {
    tide__wrap wrap; // first
    budget *budget;  // shared
    tide_allocator_listener outer;
    _Atomic uint64_t n_refused;
} limit_state;

static uint64_t left_of(const budget *b) {
    const uint64_t used = atomic_load_explicit(&b->used_bytes, memory_order_relaxed);
    return used < b->bytes ? b->bytes - used : 0;
}

/// All of `bytes` or nothing.
static bool charge(budget *b, uint64_t bytes) {
    uint64_t used = atomic_load_explicit(&b->used_bytes, memory_order_relaxed);
    do {
        if (used > b->bytes || bytes > b->bytes - used) return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->used_bytes, &used, used + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static void uncharge(budget *b, uint64_t bytes) {
    const uint64_t used = atomic_fetch_sub_explicit(&b->used_bytes, bytes, memory_order_relaxed);
    TIDE_ASSERT(used >= bytes);
}

static tide_status refuse(limit_state *s, const tide_alloc_request *req, uint64_t takes_bytes, tide_error *err) {
    atomic_fetch_add_explicit(&s->n_refused, 1, memory_order_relaxed);
    const budget *b = s->budget;
    const uint64_t left = left_of(b);
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOMEM,
                                     "limit: '%s' needs %" PRIu64 " B, %" PRIu64 " B left of a budget of %" PRIu64
                                     " B (%" PRIu64 " B in use)",
                                     tide__tag_text(req->tag), takes_bytes, left, b->bytes, b->bytes - left);
    const uint32_t n_sharers = atomic_load_explicit(&b->refs, memory_order_relaxed);
    const char *const inner = tide_allocator_name(s->wrap.inner);
    if (takes_bytes > req->size_bytes) {
        tide_error_note(err, "%zu B were asked for, a block of allocator '%s' takes %" PRIu64 " B for them",
                        req->size_bytes, inner, takes_bytes);
    } else if (n_sharers > 1) {
        tide_error_note(err, "%" PRIu32 " allocators share this budget", n_sharers);
    } else {
        tide_error_note(err, "in use is what blocks of allocator '%s' take, rounding included", inner);
    }
    return st;
}

/// Only its size was charged, and the rest is too much. A deferred inner allocator uncharges the whole when it is done
/// with the block, so the rest is charged past the budget for that moment.
static void give_back(limit_state *s, const tide_memory *mem, tide_stream_id stream) {
    TIDE_ASSERT(mem->reserved_bytes >= mem->requested_bytes);
    const size_t rest = mem->reserved_bytes - mem->requested_bytes;
    if (s->wrap.deferred) atomic_fetch_add_explicit(&s->budget->used_bytes, rest, memory_order_relaxed);
    tide_allocator_release(s->wrap.inner, mem, stream);
    if (!s->wrap.deferred) uncharge(s->budget, mem->requested_bytes);
}

/// Streams may still use blocks that were released, or be done with them unseen: trim waits and settles it. True when
/// there were any.
static bool settle_pending(const limit_state *s) {
    tide_allocator_stats stats;
    if (!s->wrap.deferred) return false;
    tide_allocator_get_stats(s->wrap.inner, &stats);
    if (stats.n_pending == 0) return false;
    tide_allocator_trim(s->wrap.inner);
    return true;
}

static tide_status limit_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    limit_state *s = self;
    if (!charge(s->budget, req->size_bytes) && !(settle_pending(s) && charge(s->budget, req->size_bytes)))
        return refuse(s, req, req->size_bytes, err);
    tide_memory mem;
    const tide_status st = tide_allocator_alloc(s->wrap.inner, req, &mem, err);
    if (st != TIDE_OK) {
        uncharge(s->budget, req->size_bytes);
        return st;
    }
    TIDE_ASSERT(mem.reserved_bytes >= req->size_bytes && mem.requested_bytes == req->size_bytes);
    const size_t rounding = mem.reserved_bytes - mem.requested_bytes;
    if (!charge(s->budget, rounding) && !(settle_pending(s) && charge(s->budget, rounding))) {
        give_back(s, &mem, req->stream);
        return refuse(s, req, mem.reserved_bytes, err);
    }
    *out = mem;
    return TIDE_OK;
}

static void limit_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    const limit_state *s = self;
    tide_allocator_release(s->wrap.inner, mem, last_stream);
    if (!s->wrap.deferred) uncharge(s->budget, mem->reserved_bytes);
}

static void hear_completed(void *self, const tide_memory *mem, tide_stream_id stream) {
    const limit_state *s = self;
    uncharge(s->budget, mem->reserved_bytes);
    if (s->outer.on_free_completed != NULL) s->outer.on_free_completed(s->outer.self, mem, stream);
}

static void hear_segment(void *self, bool taken, uint64_t id, const void *address, size_t size_bytes) {
    const limit_state *s = self;
    if (s->outer.on_segment != NULL) s->outer.on_segment(s->outer.self, taken, id, address, size_bytes);
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void limit_stats(const void *self, tide_allocator_stats *out) {
    const limit_state *s = self;
    const uint64_t left = left_of(s->budget);
    tide_allocator_get_stats(s->wrap.inner, out);
    out->n_failed += atomic_load_explicit(&s->n_refused, memory_order_relaxed);
    out->headroom_bytes = smaller(out->headroom_bytes, left); // unknown is the largest number there is
    out->largest_free_bytes = smaller(out->largest_free_bytes, left);
}

static void limit_props(const void *self, tide_allocator_props *out) {
    const limit_state *s = self;
    tide_allocator_get_props(s->wrap.inner, out);
    out->what = "a budget over another allocator";
    out->max_bytes = smaller(out->max_bytes, s->budget->bytes);
}

static tide_status limit_check(const void *self, tide_error *err) {
    const limit_state *s = self;
    TIDE_TRY(tide_allocator_check(s->wrap.inner, err));
    const budget *b = s->budget;
    const uint64_t used = atomic_load_explicit(&b->used_bytes, memory_order_relaxed);
    if (used > b->bytes && !atomic_load_explicit(&b->overshoots, memory_order_relaxed))
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "limit: %" PRIu64 " B in use of a budget of %" PRIu64 " B", used,
                         b->bytes);
    return TIDE_OK;
}

static void limit_listen(void *self, const tide_allocator_listener *listener) {
    limit_state *s = self;
    s->outer = listener != NULL ? *listener : (tide_allocator_listener){0};
}

static void drop_budget(budget *b) {
    TIDE_ASSERT(atomic_load_explicit(&b->refs, memory_order_relaxed) > 0);
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) tide_host_free(b);
}

static void limit_destroy(void *self) {
    limit_state *s = self;
    tide__wrap_deinit(&s->wrap);
    drop_budget(s->budget);
    tide_host_free(s);
}

static const tide_allocator_ops limit_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                             .name = "limit",
                                             .alloc = limit_alloc,
                                             .release = limit_release,
                                             .stats = limit_stats,
                                             .props = limit_props,
                                             .destroy = limit_destroy,
                                             .reset = tide__wrap_reset,
                                             .trim = tide__wrap_trim,
                                             .check = limit_check,
                                             .record_use = tide__wrap_record_use,
                                             .listen = limit_listen};

/// Takes a reference of `b` in every case.
static tide_status create(tide_allocator *inner, budget *b, tide_allocator **out, tide_error *err) {
    limit_state *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) {
        drop_budget(b);
        return TIDE_NO_MEMORY(err, "for the state of allocator 'limit'");
    }
    tide__wrap_init(&s->wrap, inner);
    s->budget = b;
    tide_allocator *a = NULL;
    TIDE_TRY(tide_allocator_create(&limit_ops, s, tide_allocator_device(inner), &a, err));
    if (s->wrap.deferred) {
        const tide_allocator_listener ears = {
            .self = s, .on_free_completed = hear_completed, .on_segment = hear_segment};
        atomic_store_explicit(&b->overshoots, true, memory_order_relaxed);
        tide__wrap_hear(&s->wrap, &ears);
    }
    *out = a;
    return TIDE_OK;
}

tide_status tide_limit_create(tide_allocator *inner, uint64_t budget_bytes, tide_allocator **out, tide_error *err) {
    budget *b;
    TIDE_TRY(TIDE_NEW(&b, 1, err, "for the budget of allocator 'limit'"));
    atomic_init(&b->refs, 1);
    b->bytes = budget_bytes;
    return create(inner, b, out, err);
}

tide_status tide_limit_create_shared(tide_allocator *inner, tide_allocator *first, tide_allocator **out,
                                     tide_error *err) {
    if (first->ops != &limit_ops)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "limit: allocator '%s' has no budget to share", first->ops->name);
    budget *b = ((limit_state *)first->self)->budget;
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return create(inner, b, out, err);
}
