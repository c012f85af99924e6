// SPDX-License-Identifier: MIT
//
// The calls of backend.h: each finds the table behind the device and goes through it, or says what is not there.
#include "core/device/backend.h"
#include "core/device/device_internal.h"

/// The table behind `d`, for a call that must be able to fail; NULL (and *st set) when `d` is not there.
static const tide_device_ops *route(tide_device d, void **self, tide_status *st, tide_error *err) {
    *st = tide_device_require(d, err);
    return *st == TIDE_OK ? tide_device_find(d, self) : NULL;
}

static tide_status no_entry(tide_device d, const char *what, tide_error *err) {
    char name[32];
    return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "device %s cannot %s", tide_device_format(d, name, sizeof name),
                     what);
}

/// Find the table, or leave the function with the reason.
#define ROUTE(d, err)                                                                                                  \
    void *self = NULL;                                                                                                 \
    tide_status route_st_;                                                                                             \
    const tide_device_ops *ops = route((d), &self, &route_st_, (err));                                                 \
    if (ops == NULL) return route_st_

tide_status tide_device_mem_alloc(tide_device d, size_t size_bytes, size_t align_bytes, void **out, tide_error *err) {
    ROUTE(d, err);
    return ops->mem_alloc(self, d.index, size_bytes, align_bytes, out, err);
}

void tide_device_mem_free(tide_device d, void *ptr) {
    void *self;
    const tide_device_ops *ops = tide_device_find(d, &self);
    if (ops != NULL && ptr != NULL) ops->mem_free(self, d.index, ptr);
}

bool tide_device_has_pinned(tide_device d) {
    void *self;
    const tide_device_ops *ops = tide_device_find(d, &self);
    return ops != NULL && ops->pinned_alloc != NULL;
}

tide_status tide_device_copy(tide_device d, tide_stream_id stream, tide_copy_direction direction, void *dst,
                             const void *src, size_t size_bytes, tide_error *err) {
    ROUTE(d, err);
    return ops->copy(self, d.index, stream, direction, dst, src, size_bytes, err);
}

tide_status tide_device_fill(tide_device d, tide_stream_id stream, void *dst, unsigned char byte, size_t size_bytes,
                             tide_error *err) {
    ROUTE(d, err);
    return ops->fill(self, d.index, stream, dst, byte, size_bytes, err);
}

tide_status tide_device_call(tide_device d, tide_stream_id stream, void (*fn)(void *arg), void *arg, tide_error *err) {
    ROUTE(d, err);
    return ops->call(self, d.index, stream, fn, arg, err);
}

tide_status tide_stream_create(tide_device d, tide_stream_id *out, tide_error *err) {
    ROUTE(d, err);
    return ops->stream_create(self, d.index, out, err);
}

void tide_stream_destroy(tide_device d, tide_stream_id stream) {
    void *self;
    const tide_device_ops *ops = tide_device_find(d, &self);
    if (ops == NULL || stream == 0) return;
    ops->stream_destroy(self, d.index, stream);
    tide__stream_tell_destroyed(d, stream);
}

tide_status tide_stream_sync(tide_device d, tide_stream_id stream, tide_error *err) {
    ROUTE(d, err);
    return ops->stream_sync(self, d.index, stream, err);
}

tide_status tide_stream_wait_event(tide_device d, tide_stream_id stream, tide_event_id event, tide_error *err) {
    ROUTE(d, err);
    return ops->stream_wait_event(self, d.index, stream, event, err);
}

tide_status tide_event_create(tide_device d, tide_event_id *out, tide_error *err) {
    ROUTE(d, err);
    return ops->event_create(self, d.index, out, err);
}

void tide_event_destroy(tide_device d, tide_event_id event) {
    void *self;
    const tide_device_ops *ops = tide_device_find(d, &self);
    if (ops != NULL) ops->event_destroy(self, d.index, event);
}

tide_status tide_event_record(tide_device d, tide_event_id event, tide_stream_id stream, tide_error *err) {
    ROUTE(d, err);
    return ops->event_record(self, d.index, event, stream, err);
}

tide_status tide_event_query(tide_device d, tide_event_id event, bool *done, tide_error *err) {
    ROUTE(d, err);
    return ops->event_query(self, d.index, event, done, err);
}

tide_status tide_event_sync(tide_device d, tide_event_id event, tide_error *err) {
    ROUTE(d, err);
    return ops->event_sync(self, d.index, event, err);
}

tide_status tide_capture_begin(tide_device d, tide_stream_id stream, tide_error *err) {
    ROUTE(d, err);
    if (ops->capture_begin == NULL) return no_entry(d, "capture streams", err);
    return ops->capture_begin(self, d.index, stream, err);
}

tide_status tide_capture_end(tide_device d, tide_stream_id stream, tide_capture_id *out, tide_error *err) {
    ROUTE(d, err);
    if (ops->capture_end == NULL) return no_entry(d, "capture streams", err);
    return ops->capture_end(self, d.index, stream, out, err);
}

tide_status tide_capture_launch(tide_device d, tide_capture_id capture, tide_stream_id stream, tide_error *err) {
    ROUTE(d, err);
    if (ops->capture_launch == NULL) return no_entry(d, "capture streams", err);
    return ops->capture_launch(self, d.index, capture, stream, err);
}

void tide_capture_destroy(tide_device d, tide_capture_id capture) {
    void *self;
    const tide_device_ops *ops = tide_device_find(d, &self);
    if (ops != NULL && ops->capture_destroy != NULL) ops->capture_destroy(self, d.index, capture);
}
