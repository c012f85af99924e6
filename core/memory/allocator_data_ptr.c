// SPDX-License-Identifier: MIT
//
// An allocator's memory as a data pointer (PT-13): for owners that know nothing of allocators, and copies of bytes.
//
// Where the address alone suffices to free, the pointer is simple. Elsewhere its context is one piece of host memory
// that keeps memory and allocator together; the tag lies behind it, as old as the memory:
//
//     data pointer
//       data    -> | bytes ...             |
//       context -> | allocator, memory, tag --+ | "conv1.out\0" |
//                                             +---^
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/allocator_internal.h"

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
