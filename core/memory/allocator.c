// SPDX-License-Identifier: MIT
//
// The allocator object: reference count, guards and defaults around an allocator's table. See allocator.h.
//
// tide_allocator_alloc and tide_allocator_release are on the warm path of every caller: one test for what is wrong with
// a request, one indirect call, and no copy of more than the fields that an allocator sets.
#include "core/memory/allocator.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/allocator_internal.h"

static tide_status check_ops(const tide_allocator_ops *ops, tide_error *err) {
    if (ops->abi != TIDE_ALLOCATOR_ABI)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator table has ABI %u, this build wants %d", (unsigned)ops->abi,
                         TIDE_ALLOCATOR_ABI);
    const char *const name = ops->name != NULL ? ops->name : "?";
    if (ops->name == NULL || ops->alloc == NULL || ops->release == NULL || ops->stats == NULL || ops->destroy == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s' lacks one of name, alloc, release, stats, destroy",
                         name);
    if ((ops->raw_alloc == NULL) != (ops->raw_free == NULL))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s' has only one of raw_alloc and raw_free", name);
    return TIDE_OK;
}

tide_status tide_allocator_create(const tide_allocator_ops *ops, void *self, tide_device device, tide_allocator **out,
                                  tide_error *err) {
    tide_status st = check_ops(ops, err);
    tide_allocator *a = NULL;
    if (st == TIDE_OK) {
        a = tide_host_calloc(1, sizeof *a);
        if (a == NULL) st = TIDE_NO_MEMORY(err, "for the allocator object of '%s'", ops->name);
    }
    if (st != TIDE_OK) {
        if (ops->abi == TIDE_ALLOCATOR_ABI && ops->destroy != NULL) ops->destroy(self);
        return st;
    }
    atomic_init(&a->refs, 1);
    a->ops = ops;
    a->self = self;
    a->device = device;
    tide_allocator_props props;
    tide_allocator_get_props(a, &props);
    a->max_align_bytes = props.max_align_bytes;
    *out = a;
    return TIDE_OK;
}

tide_allocator *tide_allocator_ref(tide_allocator *a) {
    const uint32_t before = atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    TIDE_ASSERT(before > 0 && before < UINT32_MAX);
    return a;
}

void tide_allocator_unref(tide_allocator *a) {
    if (a == NULL) return;
    const uint32_t before = atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel);
    TIDE_ASSERT(before > 0);
    if (before != 1) return;
    a->ops->destroy(a->self);
    tide_host_free(a);
}

const char *tide_allocator_name(const tide_allocator *a) { return a->ops->name; }
tide_device tide_allocator_device(const tide_allocator *a) { return a->device; }
void *tide_allocator_self(const tide_allocator *a) { return a->self; }

static __attribute__((cold, noinline)) tide_status refuse(const tide_allocator *a, const tide_alloc_request *req,
                                                          tide_error *err) {
    if (req->size_bytes == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s': 0 bytes were asked for", a->ops->name);
    if (!tide_is_pow2(req->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s': alignment %zu is not a power of two", a->ops->name,
                         req->align_bytes);
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s': alignment %zu was asked for, it honours %" PRIu64 " B",
                     a->ops->name, req->align_bytes, a->max_align_bytes);
}

tide_status tide_allocator_alloc(tide_allocator *a, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    const size_t size = req->size_bytes, align = req->align_bytes;
    out->data = NULL;
    if (__builtin_expect(size == 0 || (align & (align - 1)) != 0 || align > a->max_align_bytes, 0))
        return refuse(a, req, err);
    // The request's own words are filled in here, once for all allocators; alloc sets data, reserved_bytes and context
    // when it succeeds. Written in place and not copied: the time of this path is its number of stores.
    out->requested_bytes = size;
    out->reserved_bytes = size;
    out->context = NULL;
    out->kind = req->kind;
    out->block_id = req->block_id;
    out->tag = req->tag;
    return a->ops->alloc(a->self, req, out, err);
}

void tide_allocator_release(tide_allocator *a, const tide_memory *mem, tide_stream_id last_stream) {
    if (mem->data == NULL) return;
    a->ops->release(a->self, mem, last_stream);
}

void tide_allocator_get_stats(const tide_allocator *a, tide_allocator_stats *out) {
    *out = (tide_allocator_stats){.headroom_bytes = TIDE_UNKNOWN_BYTES};
    a->ops->stats(a->self, out);
}

tide_status tide_allocator_reset(tide_allocator *a, tide_error *err) {
    if (a->ops->reset == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "allocator '%s' cannot be reset", a->ops->name);
    return a->ops->reset(a->self, err);
}

void tide_allocator_trim(tide_allocator *a) {
    if (a->ops->trim != NULL) a->ops->trim(a->self);
}

tide_status tide_allocator_check(const tide_allocator *a, tide_error *err) {
    return a->ops->check != NULL ? a->ops->check(a->self, err) : TIDE_OK;
}

void tide_allocator_get_props(const tide_allocator *a, tide_allocator_props *out) {
    // A plain one: promises no alignment beyond what is asked, refuses none, keeps nothing.
    *out = (tide_allocator_props){
        .what = a->ops->name, .align_bytes = 1, .max_align_bytes = (uint64_t)1 << 63, .max_bytes = TIDE_UNKNOWN_BYTES};
    if (a->ops->props != NULL) a->ops->props(a->self, out);
}

void tide_allocator_record_use(tide_allocator *a, const tide_memory *mem, tide_stream_id stream) {
    if (mem->data != NULL && a->ops->record_use != NULL) a->ops->record_use(a->self, mem, stream);
}

void tide_allocator_listen(tide_allocator *a, const tide_allocator_listener *listener) {
    if (a->ops->listen != NULL) a->ops->listen(a->self, listener);
}

// ---- data pointers ----
//
// An allocator's memory as a data pointer (PT-13): for owners that know nothing of allocators, and copies of bytes.
//
// Where the address alone suffices to free, the pointer is simple. Elsewhere its context is one allocation of host
// memory that keeps memory and allocator together; the tag lies behind it, as old as the memory:
//
//     data pointer
//       data    -> | bytes ...             |
//       context -> | allocator, memory, tag --+ | "conv1.out\0" |
//                                             +---^

typedef struct loan {
    tide_allocator *owner; // referenced
    tide_memory mem;
    tide_stream_id stream; // the last one, as far as a bare pointer can know
} loan;

static void return_loan(void *context) {
    loan *l = context;
    tide_allocator_release(l->owner, &l->mem, l->stream);
    tide_allocator_unref(l->owner);
    tide_host_free(l);
}

static tide_status lend(tide_allocator *a, const tide_alloc_request *req, tide_data_ptr *out, tide_error *err) {
    const size_t tag_bytes = req->tag != NULL ? strlen(req->tag) + 1 : 0;
    size_t total;
    loan *l = tide_add_size(sizeof *l, tag_bytes, &total) ? tide_host_calloc(1, total) : NULL;
    if (l == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the record of %zu B from allocator '%s'",
                         req->size_bytes, a->ops->name);
    tide_alloc_request kept = *req;
    if (req->tag != NULL) kept.tag = memcpy(l + 1, req->tag, tag_bytes);
    const tide_status st = tide_allocator_alloc(a, &kept, &l->mem, err);
    if (st != TIDE_OK) {
        tide_host_free(l);
        return st;
    }
    l->owner = tide_allocator_ref(a);
    l->stream = req->stream;
    *out = (tide_data_ptr){.data = l->mem.data, .context = l, .release = return_loan, .device = a->device};
    return TIDE_OK;
}

tide_status tide_allocator_alloc_data_ptr(tide_allocator *a, const tide_alloc_request *req, tide_data_ptr *out,
                                          tide_error *err) {
    tide_allocator_props props;
    tide_allocator_get_props(a, &props);
    if (a->ops->raw_alloc == NULL || req->align_bytes > props.align_bytes) return lend(a, req, out, err);
    if (req->align_bytes != 0 && !tide_is_pow2(req->align_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s': alignment %zu is not a power of two", a->ops->name,
                         req->align_bytes);
    void *data;
    TIDE_TRY(tide_allocator_raw_alloc(a, req->size_bytes, &data, err));
    *out = (tide_data_ptr){.data = data, .context = data, .release = a->ops->raw_free, .device = a->device};
    return TIDE_OK;
}

tide_release_fn tide_allocator_raw_release(const tide_allocator *a) { return a->ops->raw_free; }

tide_status tide_allocator_raw_alloc(tide_allocator *a, size_t size_bytes, void **out, tide_error *err) {
    if (a->ops->raw_alloc == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "allocator '%s' needs more than the address to free memory",
                         a->ops->name);
    if (size_bytes == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator '%s': 0 bytes were asked for", a->ops->name);
    void *data = NULL;
    TIDE_TRY(a->ops->raw_alloc(a->self, size_bytes, &data, err));
    *out = data;
    return TIDE_OK;
}

tide_status tide_allocator_clone(tide_allocator *a, const void *data, size_t size_bytes, tide_data_ptr *out,
                                 tide_error *err) {
    const tide_alloc_request req = {.size_bytes = size_bytes, .kind = TIDE_KIND_DEFAULT, .tag = "clone"};
    tide_data_ptr fresh;
    TIDE_TRY(tide_allocator_alloc_data_ptr(a, &req, &fresh, err));
    const tide_status st = tide_allocator_copy(a, fresh.data, data, size_bytes, err);
    if (st != TIDE_OK) {
        fresh.release(fresh.context);
        return st;
    }
    *out = fresh;
    return TIDE_OK;
}

tide_status tide_allocator_copy(tide_allocator *a, void *dst, const void *src, size_t size_bytes, tide_error *err) {
    if (size_bytes == 0) return TIDE_OK;
    if (a->device.type == TIDE_DEVICE_CPU) {
        memmove(dst, src, size_bytes);
        return TIDE_OK;
    }
    TIDE_TRY(tide_device_copy(a->device, 0, TIDE_COPY_WITHIN_DEVICE, dst, src, size_bytes, err));
    return tide_stream_sync(a->device, 0, err);
}

// ---- counters ----
//
// The numbers that every allocator keeps in the same way, and their invariants.

static void raise_peak(uint64_t *peak, uint64_t now) {
    if (now > *peak) *peak = now;
}

void tide__count_alloc(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes) {
    s->requested_bytes += requested_bytes;
    s->active_bytes += active_bytes;
    s->n_allocs++;
    raise_peak(&s->peak_requested_bytes, s->requested_bytes);
    raise_peak(&s->peak_active_bytes, s->active_bytes);
}

void tide__count_free(tide_allocator_stats *s, size_t requested_bytes, size_t active_bytes) {
    TIDE_ASSERT(s->requested_bytes >= requested_bytes && s->active_bytes >= active_bytes);
    TIDE_ASSERT(s->n_frees < s->n_allocs);
    s->requested_bytes -= requested_bytes;
    s->active_bytes -= active_bytes;
    s->n_frees++;
}

void tide__count_reserve(tide_allocator_stats *s, size_t taken_bytes) {
    s->reserved_bytes += taken_bytes;
    s->n_system++;
    TIDE_ASSERT(s->reserved_bytes >= taken_bytes); // else the sum wrapped
    raise_peak(&s->peak_reserved_bytes, s->reserved_bytes);
}

static tide_status at_least(const char *name, const char *big_name, uint64_t big, const char *small_name,
                            uint64_t small, tide_error *err) {
    if (big >= small) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator '%s': %s %" PRIu64 " is below %s %" PRIu64, name, big_name, big,
                     small_name, small);
}

tide_status tide__counters_check(const tide_allocator_stats *s, const char *name, tide_error *err) {
    TIDE_TRY(at_least(name, "active", s->active_bytes, "requested", s->requested_bytes, err));
    TIDE_TRY(at_least(name, "reserved", s->reserved_bytes, "active + cached", s->active_bytes + s->cached_bytes, err));
    TIDE_TRY(at_least(name, "cached", s->cached_bytes, "largest free", s->largest_free_bytes, err));
    TIDE_TRY(at_least(name, "active", s->active_bytes, "pending", s->pending_bytes, err));
    TIDE_TRY(at_least(name, "peak requested", s->peak_requested_bytes, "requested", s->requested_bytes, err));
    TIDE_TRY(at_least(name, "peak active", s->peak_active_bytes, "active", s->active_bytes, err));
    TIDE_TRY(at_least(name, "peak reserved", s->peak_reserved_bytes, "reserved", s->reserved_bytes, err));
    TIDE_TRY(at_least(name, "allocations", s->n_allocs, "frees", s->n_frees, err));
    TIDE_TRY(at_least(name, "allocations", s->n_allocs, "hits", s->n_hits, err));
    if ((s->pending_bytes == 0) != (s->n_pending == 0))
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator '%s': %" PRIu64 " bytes pending in %" PRIu64 " blocks", name,
                         s->pending_bytes, s->n_pending);
    if (s->n_allocs == s->n_frees && s->requested_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator '%s': %" PRIu64 " bytes requested, yet nothing is out", name,
                         s->requested_bytes);
    return TIDE_OK;
}
