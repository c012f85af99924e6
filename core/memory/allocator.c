// SPDX-License-Identifier: MIT
//
// The allocator object: reference count, guards and defaults around an allocator's table. See allocator.h.
//
// tide_allocator_alloc and tide_allocator_release are on everybody's warm path: one test for what is wrong with a
// request, one indirect call, and no copy of more than the fields that an allocator sets.
#include "core/memory/allocator.h"

#include <inttypes.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
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
        if (a == NULL) st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the allocator object of '%s'", ops->name);
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
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void tide_allocator_unref(tide_allocator *a) {
    if (a == NULL || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1) return;
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
