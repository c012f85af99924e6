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

enum { TIDE_DEVICE_ABI = 2 };

/// An event of its device, unique in the process and never reused; 0 is none.
typedef uint64_t tide_event_id;
/// Work captured from a stream, to be launched as a whole; 0 is none.
typedef uint64_t tide_capture_id;

typedef enum tide_copy_direction {
    TIDE_COPY_HOST_TO_DEVICE,
    TIDE_COPY_DEVICE_TO_HOST,
    TIDE_COPY_WITHIN_DEVICE,
} tide_copy_direction;

/// What is known of a device before anything runs on it.
typedef struct tide_device_facts {
    char name[64];           ///< as the maker calls it; "" unknown
    char driver[32];         ///< version of its driver, as text; "" none
    uint64_t total_bytes;    ///< of its memory; 0: unknown
    uint64_t map_step_bytes; ///< sizes and places of vm_map are multiples of it; 0: it cannot map
    bool has_pool;           ///< pool_alloc works here
} tide_device_facts;

/// What the driver's pool of a device holds.
typedef struct tide_device_pool_stats {
    uint64_t used_bytes, reserved_bytes, peak_used_bytes, peak_reserved_bytes;
} tide_device_pool_stats;

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

    // what there is. Optional, each by itself
    tide_status (*facts)(void *self, int32_t index, tide_device_facts *out, tide_error *err);
    /// Free and total bytes of the device just now, as its driver counts them: all processes, and what none explains.
    tide_status (*memory_info)(void *self, int32_t index, uint64_t *free_bytes, uint64_t *total_bytes, tide_error *err);

    // the driver's own pool: memory that is given and taken back in the order of a stream. Optional, all or none.
    /// May be used by `stream` from this point on, by others once they have waited for it. TIDE_ERR_NOMEM.
    tide_status (*pool_alloc)(void *self, int32_t index, tide_stream_id stream, size_t size_bytes, void **out,
                              tide_error *err);
    /// What `stream` has queued so far may still use it.
    tide_status (*pool_free)(void *self, int32_t index, tide_stream_id stream, void *ptr, tide_error *err);
    /// How much the pool keeps when the device is synchronised; UINT64_MAX: all.
    tide_status (*pool_keep)(void *self, int32_t index, uint64_t keep_bytes, tide_error *err);
    /// Give back to the device what is not in use, down to `keep_bytes`.
    tide_status (*pool_trim)(void *self, int32_t index, uint64_t keep_bytes, tide_error *err);
    tide_status (*pool_stats)(void *self, int32_t index, tide_device_pool_stats *out, tide_error *err);

    // addresses first, memory later. Optional, all or none. Sizes and places are multiples of facts.map_step_bytes.
    tide_status (*vm_reserve)(void *self, int32_t index, size_t size_bytes, void **out, tide_error *err);
    void (*vm_release)(void *self, int32_t index, void *base, size_t size_bytes);
    /// Memory at [at, at + size_bytes) of a reserved range, to be read and written by the device. TIDE_ERR_NOMEM:
    /// nothing is mapped.
    tide_status (*vm_map)(void *self, int32_t index, void *at, size_t size_bytes, tide_error *err);
    /// Take back exactly what one vm_map gave. May wait for the device.
    void (*vm_unmap)(void *self, int32_t index, void *at, size_t size_bytes);

    // contents, for tests of who writes where: words of a pattern that a seed decides. Optional, both or none.
    tide_status (*pattern_fill)(void *self, int32_t index, tide_stream_id stream, void *dst, size_t size_bytes,
                                uint64_t seed, tide_error *err);
    /// In the order of `stream`, add to *n_wrong how many bytes differ from the pattern. `n_wrong` is memory of
    /// pinned_alloc, to be read after the stream was waited for.
    tide_status (*pattern_check)(void *self, int32_t index, tide_stream_id stream, const void *src, size_t size_bytes,
                                 uint64_t seed, uint64_t *n_wrong, tide_error *err);
} tide_device_ops;

#ifdef __cplusplus
}
#endif
#endif
