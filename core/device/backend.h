// SPDX-License-Identifier: MIT
//
// backend: the devices of the process by type, and the calls that go through their tables. The CPU's is always there.
#ifndef TIDE_CORE_DEVICE_BACKEND_H
#define TIDE_CORE_DEVICE_BACKEND_H

#include "core/device/device_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Register a type of device. "cuda" gets TIDE_DEVICE_CUDA, every other name the next free number.
 *
 * @param ops   borrowed, static
 * @param self  borrowed; handed to every call; must live until tide_device_unregister
 * @param type  out
 * @return TIDE_OK; TIDE_ERR_INVALID (ABI, a missing entry, a name that is not lower case letters), TIDE_ERR_EXISTS
 *         (name taken), TIDE_ERR_NO_SPACE (TIDE_MAX_DEVICE_TYPES)
 */
tide_status tide_device_register(const tide_device_ops *ops, void *self, tide_device_type *type,
                                 tide_error *err) TIDE_NODISCARD;
/// Forget a type; its number is not given again, except to the same name. The CPU cannot be forgotten. No thread may
/// use it any more.
void tide_device_unregister(tide_device_type type);

/// The table and state behind `device`; NULL (and *self untouched) when its type has none.
const tide_device_ops *tide_device_find(tide_device device, void **self);
/// All devices there are, in order of type and index; `n_max` at most into `out`. @return how many there are
size_t tide_device_list(tide_device *out, size_t n_max);
/// Fresh numbers for backends: never 0, never the same twice in the process.
uint64_t tide_device_new_id(void);

// The calls: TIDE_ERR_NOT_IMPLEMENTED where the device, or the entry of its table, is not there.
tide_status tide_device_mem_alloc(tide_device d, size_t size_bytes, size_t align_bytes, void **out,
                                  tide_error *err) TIDE_NODISCARD;
void tide_device_mem_free(tide_device d, void *ptr);
/// Whether the calling thread is in a call of a device's table that takes or gives memory: an allocator of tidemark's
/// asked, and says so itself. A recorder that hears of the driver's calls leaves those out.
bool tide_device_is_own_call(void);
/// Around a call of the table's memory entries where it is made directly; they nest. The two above have it.
void tide_device_own_call_enter(void);
void tide_device_own_call_leave(void);
/// True when `d` has page-locked host memory to give.
bool tide_device_has_pinned(tide_device d);
tide_status tide_device_copy(tide_device d, tide_stream_id stream, tide_copy_direction direction, void *dst,
                             const void *src, size_t size_bytes, tide_error *err) TIDE_NODISCARD;
tide_status tide_device_fill(tide_device d, tide_stream_id stream, void *dst, unsigned char byte, size_t size_bytes,
                             tide_error *err) TIDE_NODISCARD;
tide_status tide_device_call(tide_device d, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                             tide_error *err) TIDE_NODISCARD;
/// Copy between any two devices in the order of `stream` (a stream of the device that is not the CPU) and wait for it;
/// between two devices of which neither is the CPU it goes through host memory, and `stream` is one of `from`. A
/// captured stream is TIDE_ERR_BUSY; after any other failure `dst` may hold a part.
tide_status tide_device_transfer(tide_device to, void *dst, tide_device from, const void *src, size_t size_bytes,
                                 tide_stream_id stream, tide_error *err) TIDE_NODISCARD;

tide_status tide_stream_create(tide_device d, tide_stream_id *out, tide_error *err) TIDE_NODISCARD;
/// Waits for the stream's work, then tells every listener. Stream 0 is ignored.
void tide_stream_destroy(tide_device d, tide_stream_id stream);
tide_status tide_stream_sync(tide_device d, tide_stream_id stream, tide_error *err) TIDE_NODISCARD;
tide_status tide_stream_wait_event(tide_device d, tide_stream_id stream, tide_event_id event,
                                   tide_error *err) TIDE_NODISCARD;
tide_status tide_event_create(tide_device d, tide_event_id *out, tide_error *err) TIDE_NODISCARD;
void tide_event_destroy(tide_device d, tide_event_id event);
tide_status tide_event_record(tide_device d, tide_event_id event, tide_stream_id stream,
                              tide_error *err) TIDE_NODISCARD;
tide_status tide_event_query(tide_device d, tide_event_id event, bool *done, tide_error *err) TIDE_NODISCARD;
tide_status tide_event_sync(tide_device d, tide_event_id event, tide_error *err) TIDE_NODISCARD;
tide_status tide_capture_begin(tide_device d, tide_stream_id stream, tide_error *err) TIDE_NODISCARD;
tide_status tide_capture_end(tide_device d, tide_stream_id stream, tide_capture_id *out,
                             tide_error *err) TIDE_NODISCARD;
tide_status tide_capture_launch(tide_device d, tide_capture_id capture, tide_stream_id stream,
                                tide_error *err) TIDE_NODISCARD;
void tide_capture_destroy(tide_device d, tide_capture_id capture);

/// Who wants to know that a stream is gone (allocators that keep blocks by stream). Embed it; it is the caller's, and
/// must be removed before it dies. The call comes after the stream's last work, without any lock of this file held.
typedef struct tide_stream_listener {
    void (*on_destroyed)(void *self, tide_device device, tide_stream_id stream);
    void *self;
    struct tide_stream_listener *next; ///< of this file
} tide_stream_listener;
void tide_stream_listen(tide_stream_listener *listener);
/// When this returns, no call to `listener` is running or will come. Not from inside such a call.
void tide_stream_unlisten(tide_stream_listener *listener);

#ifdef __cplusplus
}
#endif
#endif
