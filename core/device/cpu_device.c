// SPDX-License-Identifier: MIT
//
// The CPU's table: its memory, and what a piece of work does. Streams, events and captures are in the files beside it;
// how they hang together is drawn in cpu_internal.h.
#include <stdlib.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/device/cpu_internal.h"
#include "core/device/device_internal.h"

tide__cpu tide__cpu_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int32_t count(void *self) {
    (void)self;
    return 1;
}

static tide_status mem_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                             tide_error *err) {
    (void)self, (void)index;
    if (size_bytes == 0 || !tide_is_pow2(align_bytes)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cpu memory: %zu bytes aligned to %zu were asked for", size_bytes,
                         align_bytes);
    }
    // C17 7.22.3.1 wanted the size to be a multiple of the alignment until DR 460; rounding keeps to both.
    uint64_t rounded;
    const bool fits = tide_align_up(size_bytes, align_bytes, &rounded) && rounded <= PTRDIFF_MAX;
    // Bare, as tide__system_alloc: this is the memory that is studied, not our own bookkeeping.
    void *ptr = fits ? aligned_alloc(align_bytes, (size_t)rounded) : NULL;
    if (ptr == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the system has no %zu bytes of cpu memory", size_bytes);
    *out = ptr;
    return TIDE_OK;
}

static void mem_free(void *self, int32_t index, void *ptr) {
    (void)self, (void)index;
    free(ptr);
}

void tide__cpu_do(const tide__cpu_work *work) {
    switch (work->kind) {
    // Zero bytes have no address, and C17 7.24.1p2 wants one even then.
    case TIDE__CPU_COPY:
        if (work->as.bytes.size_bytes > 0) memmove(work->as.bytes.dst, work->as.bytes.src, work->as.bytes.size_bytes);
        return;
    case TIDE__CPU_FILL:
        if (work->as.bytes.size_bytes > 0) memset(work->as.bytes.dst, work->byte, work->as.bytes.size_bytes);
        return;
    case TIDE__CPU_CALL:
        work->as.call.fn(work->as.call.arg);
        return;
    case TIDE__CPU_WAIT:
        pthread_mutex_lock(&tide__cpu_state.lock);
        tide__cpu_reach(work->as.point);
        pthread_mutex_unlock(&tide__cpu_state.lock);
        return;
    }
}

static tide_status copy(void *self, int32_t index, tide_stream_id stream, tide_copy_direction direction, void *dst,
                        const void *src, size_t size_bytes, tide_error *err) {
    (void)self, (void)index;
    if ((unsigned)direction > TIDE_COPY_WITHIN_DEVICE) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%d is no direction of a copy", (int)direction);
    }
    if (size_bytes > 0 && (dst == NULL || src == NULL)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a copy of %zu bytes has no %s", size_bytes,
                         dst == NULL ? "destination" : "source");
    }
    const tide__cpu_work work = {.kind = TIDE__CPU_COPY,
                                 .as.bytes = {.dst = dst, .src = src, .size_bytes = size_bytes}};
    return tide__cpu_put(stream, &work, err);
}

static tide_status fill(void *self, int32_t index, tide_stream_id stream, void *dst, unsigned char byte,
                        size_t size_bytes, tide_error *err) {
    (void)self, (void)index;
    if (size_bytes > 0 && dst == NULL) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a fill of %zu bytes has no destination", size_bytes);
    }
    const tide__cpu_work work = {
        .kind = TIDE__CPU_FILL, .byte = byte, .as.bytes = {.dst = dst, .size_bytes = size_bytes}};
    return tide__cpu_put(stream, &work, err);
}

static tide_status call(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                        tide_error *err) {
    (void)self, (void)index;
    if (fn == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a call in stream order has no function");
    const tide__cpu_work work = {.kind = TIDE__CPU_CALL, .as.call = {.fn = fn, .arg = arg}};
    return tide__cpu_put(stream, &work, err);
}

const tide_device_ops tide__cpu_device_ops = {
    .abi = TIDE_DEVICE_ABI,
    .name = "cpu",
    .count = count,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .copy = copy,
    .fill = fill,
    .call = call,
    .stream_create = tide__cpu_stream_create,
    .stream_destroy = tide__cpu_stream_destroy,
    .stream_sync = tide__cpu_stream_sync,
    .stream_wait_event = tide__cpu_stream_wait_event,
    .event_create = tide__cpu_event_create,
    .event_destroy = tide__cpu_event_destroy,
    .event_record = tide__cpu_event_record,
    .event_query = tide__cpu_event_query,
    .event_sync = tide__cpu_event_sync,
    .capture_begin = tide__cpu_capture_begin,
    .capture_end = tide__cpu_capture_end,
    .capture_launch = tide__cpu_capture_launch,
    .capture_destroy = tide__cpu_capture_destroy,
};
