// SPDX-License-Identifier: MIT
//
// device: every block is a call to its device, nothing is kept. The plain allocator of any backend, and what others may
// take as their backing.
//
//     request 100 B, align 64          request 5000 B, align 4096
//     |<- 100 ->|..|                   |<----- 5000 ----->|.......|
//     |<--- 256 -->| active            |<--------- 8192 --------->| active
//     ^ multiple of 256                ^ multiple of 4096
//
// An alignment is honoured or refused (S28-23): the device is asked for it, and an address that has it not goes back at
// once and is an error.
//
// The numbers: active is each request rounded up to its alignment (256 at the least, as device calls align at least
// so); reserved is the same as active, cached and largest free are 0. What the device's driver adds is not ours.
//
// The device's calls may wait for its work (device_ops.h), and need not: a block that a stream may still use must not
// be released before. So this is not stream-aware; stream_caching is.
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/short_lock.h"

enum { DEVICE_ALIGN_BYTES = 256 };

typedef struct device_state {
    tide_device device;
    tide__lock lock; // guards stats
    tide_allocator_stats stats;
} device_state;

/// Memory of that size and alignment from the device itself.
static tide_status take(const device_state *d, size_t size_bytes, size_t align_bytes, void **out, tide_error *err) {
    void *data = NULL;
    TIDE_TRY(tide_device_mem_alloc(d->device, size_bytes, align_bytes, &data, err));
    if ((uintptr_t)data % align_bytes == 0) {
        *out = data;
        return TIDE_OK;
    }
    tide_device_mem_free(d->device, data);
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "device %s does not honour an alignment of %zu B: it gave %p",
                     tide_device_format(d->device, name, sizeof name), align_bytes, data);
}

static tide_status device_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    device_state *d = self;
    const size_t align = req->align_bytes > DEVICE_ALIGN_BYTES ? req->align_bytes : DEVICE_ALIGN_BYTES;
    uint64_t rounded = 0;
    tide_status st;
    if (!tide_align_up(req->size_bytes, align, &rounded) || rounded > PTRDIFF_MAX) {
        st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "%zu B are more than there can be", req->size_bytes);
    } else {
        st = take(d, (size_t)rounded, align, &out->data, err);
    }
    tide__lock_take(&d->lock);
    if (st == TIDE_OK) {
        out->reserved_bytes = (size_t)rounded;
        tide__count_reserve(&d->stats, out->reserved_bytes);
        tide__count_alloc(&d->stats, req->size_bytes, out->reserved_bytes);
    } else {
        d->stats.n_failed++;
    }
    const uint64_t active = d->stats.active_bytes;
    tide__lock_give(&d->lock);
    if (st == TIDE_OK) return TIDE_OK;
    char name[32];
    tide_error_prefix(err, "allocator 'device' on %s: '%s' asked %zu B (alignment %zu), %" PRIu64 " B active",
                      tide_device_format(d->device, name, sizeof name), req->tag != NULL ? req->tag : "(no name)",
                      req->size_bytes, align, active);
    return st;
}

static void device_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    device_state *d = self;
    tide_device_mem_free(d->device, mem->data);
    tide__lock_take(&d->lock);
    tide__count_free(&d->stats, mem->requested_bytes, mem->reserved_bytes);
    d->stats.reserved_bytes -= mem->reserved_bytes;
    tide__lock_give(&d->lock);
}

static void device_stats(const void *self, tide_allocator_stats *out) {
    device_state *d = tide__mutable(self);
    tide__lock_take(&d->lock);
    *out = d->stats;
    tide__lock_give(&d->lock);
    out->headroom_bytes = TIDE_UNKNOWN_BYTES;
}

static void device_props(const void *self, tide_allocator_props *out) {
    (void)self;
    out->what = "memory straight from a device's own calls";
    out->align_bytes = DEVICE_ALIGN_BYTES;
}

static tide_status device_check(const void *self, tide_error *err) {
    tide_allocator_stats s;
    device_stats(self, &s);
    TIDE_TRY(tide__counters_check(&s, "device", err));
    if (s.reserved_bytes != s.active_bytes || s.cached_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "allocator 'device' keeps bytes that no block holds");
    return TIDE_OK;
}

static void device_destroy(void *self) { tide_host_free(self); }

static const tide_allocator_ops device_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "device",
                                              .alloc = device_alloc,
                                              .release = device_release,
                                              .stats = device_stats,
                                              .props = device_props,
                                              .destroy = device_destroy,
                                              .check = device_check};

tide_status tide_device_allocator_create(tide_device device, tide_allocator **out, tide_error *err) {
    TIDE_TRY(tide_device_require(device, err));
    device_state *d;
    TIDE_TRY(TIDE_NEW(&d, 1, err, "for the state of allocator 'device'"));
    d->device = device;
    return tide_allocator_create(&device_ops, d, device, out, err);
}
