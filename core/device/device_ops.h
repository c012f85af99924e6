// SPDX-License-Identifier: MIT
//
// What a type of device can do: a const table of functions plus a state. One table for the CPU (cpu_device.c), one in
// the CUDA plug-in, one for each added device (docs/extending.md).
//
// Work is ordered by streams, as in CUDA: what is put on one stream happens in order, streams are independent, an event
// is a point in a stream that others can wait for. Every function may be called from several threads at once.
#ifndef TIDE_CORE_DEVICE_DEVICE_OPS_H
#define TIDE_CORE_DEVICE_DEVICE_OPS_H

#include "core/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TIDE_DEVICE_ABI = 1 };

/// An event of its device, unique in the process and never reused; 0 is none.
typedef uint64_t tide_event_id;
/// Work captured from a stream, to be launched as a whole; 0 is none.
typedef uint64_t tide_capture_id;

typedef enum tide_copy_direction {
    TIDE_COPY_HOST_TO_DEVICE,
    TIDE_COPY_DEVICE_TO_HOST,
    TIDE_COPY_WITHIN_DEVICE,
} tide_copy_direction;

typedef struct tide_device_ops {
    uint32_t abi;     ///< TIDE_DEVICE_ABI, checked at registration
    const char *name; ///< "cpu", "fake": lower case letters; stands before the colon in "fake:0"

    /// How many devices of this type there are; indices are 0 … count-1.
    int32_t (*count)(void *self);

    // memory: plain, uncached; may wait for the device
    tide_status (*mem_alloc)(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                             tide_error *err);
    void (*mem_free)(void *self, int32_t index, void *ptr);
    /// Page-locked host memory that this device copies from directly. Optional, both or none.
    tide_status (*pinned_alloc)(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                                tide_error *err);
    void (*pinned_free)(void *self, int32_t index, void *ptr);

    // work in stream order; returns once it is queued
    tide_status (*copy)(void *self, int32_t index, tide_stream_id stream, tide_copy_direction direction, void *dst,
                        const void *src, size_t size_bytes, tide_error *err);
    tide_status (*fill)(void *self, int32_t index, tide_stream_id stream, void *dst, unsigned char byte,
                        size_t size_bytes, tide_error *err);
    /// Call fn(arg) on the host in stream order. fn must not call the device.
    tide_status (*call)(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                        tide_error *err);

    // streams
    tide_status (*stream_create)(void *self, int32_t index, tide_stream_id *out, tide_error *err);
    /// Waits for the stream's work. The id is never used again. Meanwhile stream_sync and event_record take the stream
    /// as before: a stream that they do not know (TIDE_ERR_INVALID) has no work left.
    void (*stream_destroy)(void *self, int32_t index, tide_stream_id stream);
    tide_status (*stream_sync)(void *self, int32_t index, tide_stream_id stream, tide_error *err);
    /// Later work of `stream` waits for `event`; the host does not.
    tide_status (*stream_wait_event)(void *self, int32_t index, tide_stream_id stream, tide_event_id event,
                                     tide_error *err);

    // events: one record is enough for an event's life; a second record moves it
    tide_status (*event_create)(void *self, int32_t index, tide_event_id *out, tide_error *err);
    void (*event_destroy)(void *self, int32_t index, tide_event_id event);
    /// TIDE_ERR_BUSY while `stream` is captured.
    tide_status (*event_record)(void *self, int32_t index, tide_event_id event, tide_stream_id stream, tide_error *err);
    /// TIDE_ERR_BUSY while any stream of the device is captured (as CUDA forbids it); *done for an event that was never
    /// recorded is true.
    tide_status (*event_query)(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err);
    tide_status (*event_sync)(void *self, int32_t index, tide_event_id event, tide_error *err);

    // capture: work put on a captured stream is kept instead of done. Optional, all four or none.
    tide_status (*capture_begin)(void *self, int32_t index, tide_stream_id stream, tide_error *err);
    tide_status (*capture_end)(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out, tide_error *err);
    tide_status (*capture_launch)(void *self, int32_t index, tide_capture_id capture, tide_stream_id stream,
                                  tide_error *err);
    void (*capture_destroy)(void *self, int32_t index, tide_capture_id capture);
} tide_device_ops;

#ifdef __cplusplus
}
#endif
#endif
