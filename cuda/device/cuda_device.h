// SPDX-License-Identifier: MIT
//
// What the files of cuda/device share: the state of a device, contexts around calls, and streams held for a call.
//
// Locks. `making` is taken while something is made that is there once (context, pool, kernels), `lock` guards the
// tables and what their objects say; neither is held while the driver waits for work. A call holds the objects that it
// uses by a reference, so that another thread may destroy them meanwhile.
#ifndef TIDE_CUDA_DEVICE_CUDA_DEVICE_H
#define TIDE_CUDA_DEVICE_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/device/device_ops.h"
#include "core/device/id_table.h"
#include "core/device/plugin.h"
#include "cuda/driver/driver.h"

typedef struct cuda_state cuda_state;

typedef struct cuda_device {
    cuda_state *state;
    const cuda_driver *cu;
    int32_t index;
    CUdevice handle;
    tide_device_facts facts;
    CUcontext _Atomic context; ///< the primary one, once it was needed; NULL before
    pthread_mutex_t making;
    CUmemoryPool pool; ///< made with the first call for it; NULL before

    pthread_mutex_t lock;
    pthread_cond_t moved;    ///< a reference was given up, or a capture was dropped
    tide__id_table streams;  ///< cuda_stream
    tide__id_table events;   ///< cuda_event
    tide__id_table captures; ///< cuda_capture
    tide__id_table
        moved_to;      ///< by aligned address, the address that the driver gave: where alignment was beyond its own
    size_t n_captured; ///< streams being captured
} cuda_device;

/// The devices of the process, and the kernels, which belong to none of them.
struct cuda_state {
    cuda_driver cu;
    int32_t count;
    cuda_device *devices; ///< [count], owned
    pthread_mutex_t making;
    CUlibrary library; ///< NULL: not loaded
    CUkernel fill, check;
};

typedef struct cuda_stream {
    tide_stream_id id;
    CUstream handle;
    uint32_t n_refs; ///< the table's, and one per call that uses it
    bool closing;    ///< takes no more work; not captured
    bool captured;
    bool changing; ///< its capture begins or is dropped: calls that ask whether it is captured wait
} cuda_stream;

// plugin.c
/// The device of a call; NULL for a number that there is none of.
cuda_device *cuda_at(void *self, int32_t index);
extern const tide_device_ops cuda_ops;

// cuda_context.c: the calling thread's current context is as it was before when a call is over
/// Make the device's context current; it is made with the first call. @return TIDE_OK: cuda_leave must follow
tide_status cuda_enter(cuda_device *d, tide_error *err) TIDE_NODISCARD;
void cuda_leave(cuda_device *d);
/// For calls that give back and have no way to fail: true when the device's context is current.
bool cuda_enter_to_give_back(cuda_device *d);
/// The result of a call that gives something back, said in the log when it is no success.
void cuda_gave_back(const cuda_device *d, CUresult result, const char *what);
/// The same, and the call is made once more when the driver had no memory for it: what it leaves is lost for good.
#define CUDA_GIVE_BACK(d, what, call)                                                                                  \
    do {                                                                                                               \
        CUresult gave_ = (call);                                                                                       \
        if (gave_ == CUDA_ERROR_OUT_OF_MEMORY) gave_ = (call);                                                         \
        if (gave_ != CUDA_SUCCESS) cuda_gave_back((d), gave_, (what));                                                 \
    } while (0)
/// Leave the function with the error of a driver's call. What follows `err` is printf's and says what was called.
#define CUDA_TRY(d, call, err, ...)                                                                                    \
    do {                                                                                                               \
        const CUresult got_ = (call);                                                                                  \
        if (got_ != CUDA_SUCCESS) return cuda_failed(got_, (d)->index, (err), __VA_ARGS__);                            \
    } while (0)

// cuda_streams.c
typedef enum cuda_stream_use {
    CUDA_USE_WORK,   ///< puts work on it: into its capture while it is captured
    CUDA_USE_LIVE,   ///< work that no capture may hold: TIDE_ERR_BUSY then
    CUDA_USE_MOVING, ///< the same, and a stream that is being destroyed is taken, too
} cuda_stream_use;
/// Stream held for one call.
typedef struct cuda_held {
    cuda_stream *stream; ///< NULL: the default stream
    CUstream handle;
} cuda_held;
/// @param what  completes "cannot … while it is captured". @return TIDE_OK: cuda_let_go must follow; TIDE_ERR_INVALID
tide_status cuda_hold(cuda_device *d, tide_stream_id stream, cuda_stream_use use, const char *what, cuda_held *out,
                      tide_error *err) TIDE_NODISCARD;
void cuda_let_go(cuda_device *d, cuda_held held);
/// End the capture that the driver holds of a stream and forget it.
void cuda_drop_capture(cuda_device *d, cuda_stream *s);

/// A call on a stream with the device's context current: holds, enters, runs `fn`, leaves, lets go.
typedef tide_status (*cuda_on_stream_fn)(cuda_device *d, CUstream handle, void *args, tide_error *err);
tide_status cuda_on_stream(cuda_device *d, tide_stream_id stream, cuda_stream_use use, const char *what,
                           cuda_on_stream_fn fn, void *args, tide_error *err) TIDE_NODISCARD;

// The entries of the table, by file.
// cuda_memory.c
tide_status cuda_mem_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                           tide_error *err);
void cuda_mem_free(void *self, int32_t index, void *ptr);
tide_status cuda_pinned_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                              tide_error *err);
void cuda_pinned_free(void *self, int32_t index, void *ptr);
tide_status cuda_facts(void *self, int32_t index, tide_device_facts *out, tide_error *err);
tide_status cuda_memory_info(void *self, int32_t index, uint64_t *free_bytes, uint64_t *total_bytes, tide_error *err);
/// Fill d->facts. Needs no context, so that it takes nothing of the device.
tide_status cuda_read_facts(cuda_device *d, tide_error *err) TIDE_NODISCARD;
/// Where memory of the device lies, as pools and mappings want it.
CUmemLocation cuda_location(const cuda_device *d);
// cuda_streams.c
tide_status cuda_stream_create(void *self, int32_t index, tide_stream_id *out, tide_error *err);
void cuda_stream_destroy(void *self, int32_t index, tide_stream_id stream);
tide_status cuda_stream_sync(void *self, int32_t index, tide_stream_id stream, tide_error *err);
tide_status cuda_copy(void *self, int32_t index, tide_stream_id stream, tide_copy_direction direction, void *dst,
                      const void *src, size_t size_bytes, tide_error *err);
tide_status cuda_fill(void *self, int32_t index, tide_stream_id stream, void *dst, unsigned char byte,
                      size_t size_bytes, tide_error *err);
tide_status cuda_call(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                      tide_error *err);
// cuda_events.c
tide_status cuda_event_create(void *self, int32_t index, tide_event_id *out, tide_error *err);
void cuda_event_destroy(void *self, int32_t index, tide_event_id event);
tide_status cuda_event_record(void *self, int32_t index, tide_event_id event, tide_stream_id stream, tide_error *err);
tide_status cuda_event_query(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err);
tide_status cuda_event_sync(void *self, int32_t index, tide_event_id event, tide_error *err);
tide_status cuda_stream_wait_event(void *self, int32_t index, tide_stream_id stream, tide_event_id event,
                                   tide_error *err);
// cuda_captures.c
tide_status cuda_capture_begin(void *self, int32_t index, tide_stream_id stream, tide_error *err);
tide_status cuda_capture_end(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out, tide_error *err);
tide_status cuda_capture_launch(void *self, int32_t index, tide_capture_id capture, tide_stream_id stream,
                                tide_error *err);
void cuda_capture_destroy(void *self, int32_t index, tide_capture_id capture);
// cuda_pools.c
tide_status cuda_pool_alloc(void *self, int32_t index, tide_stream_id stream, size_t size_bytes, void **out,
                            tide_error *err);
tide_status cuda_pool_free(void *self, int32_t index, tide_stream_id stream, void *ptr, tide_error *err);
tide_status cuda_pool_keep(void *self, int32_t index, uint64_t keep_bytes, tide_error *err);
tide_status cuda_pool_trim(void *self, int32_t index, uint64_t keep_bytes, tide_error *err);
tide_status cuda_pool_stats(void *self, int32_t index, tide_device_pool_stats *out, tide_error *err);
// cuda_mapping.c
tide_status cuda_vm_reserve(void *self, int32_t index, size_t size_bytes, void **out, tide_error *err);
void cuda_vm_release(void *self, int32_t index, void *base, size_t size_bytes);
tide_status cuda_vm_map(void *self, int32_t index, void *at, size_t size_bytes, tide_error *err);
void cuda_vm_unmap(void *self, int32_t index, void *at, size_t size_bytes);
// cuda_patterns.c
tide_status cuda_pattern_fill(void *self, int32_t index, tide_stream_id stream, void *dst, size_t size_bytes,
                              uint64_t seed, tide_error *err);
tide_status cuda_pattern_check(void *self, int32_t index, tide_stream_id stream, const void *src, size_t size_bytes,
                               uint64_t seed, uint64_t *n_wrong, tide_error *err);

#endif
