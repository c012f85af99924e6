// SPDX-License-Identifier: MIT
//
// pinned: host memory that copies to and from a device start and end in (LT-27).
//
//     device has page-locked memory     its pinned_alloc   -> segments -> stream_caching's engine, events of that
//     device it has none, or is not here       aligned host memory -> segments -> the same
//
// Page-locking is slow (milliseconds for a segment) and a copy runs on after the host has let go of the buffer: both
// are why it is cached, and why a freed block waits for the streams that use it. Sizes are stream_caching's: steps of
// 512 B, not powers of two, which are known to waste up to half of what is locked. The drawing and the numbers are
// there.
#include "core/memory/allocator_internal.h"
#include "core/memory/allocators/stream_caching_internal.h"

static tide_status take_locked(tide_device device, size_t size_bytes, void **out, tide_error *err) {
    void *self = NULL;
    const tide_device_ops *ops = tide_device_find(device, &self);
    if (ops == NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "pinned: the device is gone");
    tide_device_own_call_enter();
    const tide_status st = ops->pinned_alloc(self, device.index, size_bytes, TIDE__SC_STEP_BYTES, out, err);
    tide_device_own_call_leave();
    return st;
}

static void give_back_locked(tide_device device, void *base) {
    void *self = NULL;
    const tide_device_ops *ops = tide_device_find(device, &self);
    if (ops == NULL) return;
    tide_device_own_call_enter();
    ops->pinned_free(self, device.index, base);
    tide_device_own_call_leave();
}

static tide_status take_plain(tide_device device, size_t size_bytes, void **out, tide_error *err) {
    (void)device;
    void *base = tide__system_alloc(size_bytes, TIDE__SC_STEP_BYTES);
    if (base == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the system has no %zu B", size_bytes);
    *out = base;
    return TIDE_OK;
}

static void give_back_plain(tide_device device, void *base) {
    (void)device;
    tide__system_free(base);
}

static const tide__sc_source locked = {
    .take = take_locked, .give_back = give_back_locked, .host_memory = true, .page_locked = true};
static const tide__sc_source plain = {.take = take_plain, .give_back = give_back_plain, .host_memory = true};

tide_status tide_pinned_create(tide_device device, tide_allocator **out, tide_error *err) {
    void *self = NULL;
    // CUDA has a name in every build, and pinned memory for it must not keep a program from running without.
    const bool is_absent = tide_device_find(device, &self) == NULL;
    if (!is_absent || device.type != TIDE_DEVICE_CUDA) TIDE_TRY(tide_device_require(device, err));
    return tide__sc_create(TIDE__SC_PINNED, device, tide_device_has_pinned(device) ? &locked : &plain, NULL, out, err);
}
