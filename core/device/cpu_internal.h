// SPDX-License-Identifier: MIT
//
// The CPU as a device: streams that are threads, events that are points in them, captures that are lists.
//
//     stream a:  | 41 | 42 | 43 | 44 |           stream b:  | 7 | wait for (a, 43) | 8 |
//                     ^n_done        ^n_queued
//     event e = (a, 43): recorded when 43 was the last piece queued
//
// Work of a stream is numbered as it is queued; n_done counts what the thread has finished, in order. So an event needs
// nothing in the queue: recording notes how much was queued by then, and the event is done once n_done has got there.
//
// One lock guards everything here; work itself runs without it. Whoever sees a point reached has seen n_done under the
// lock, and the thread raised it under the lock after the work: that orders the work before whatever comes next.
#ifndef TIDE_CORE_DEVICE_CPU_INTERNAL_H
#define TIDE_CORE_DEVICE_CPU_INTERNAL_H

#include <pthread.h>

#include "core/device/backend.h"
#include "core/device/id_table.h"

/// A place in the work of a stream: everything up to the `n`-th piece. A stream that is gone has reached all of them.
typedef struct tide__cpu_point {
    tide_stream_id stream;
    uint64_t n;
} tide__cpu_point;

typedef enum tide__cpu_work_kind { TIDE__CPU_COPY, TIDE__CPU_FILL, TIDE__CPU_CALL, TIDE__CPU_WAIT } tide__cpu_work_kind;

/// One piece of work.
typedef struct tide__cpu_work {
    tide__cpu_work_kind kind;
    unsigned char byte; ///< of a fill
    union {
        struct {
            void *dst;
            const void *src; ///< of a copy
            size_t size_bytes;
        } bytes; ///< copy, fill
        struct {
            void (*fn)(void *arg);
            void *arg;
        } call;
        tide__cpu_point point; ///< wait
    } as;
} tide__cpu_work;

/// Work kept instead of done.
typedef struct tide__cpu_capture {
    tide_capture_id id;
    tide__cpu_work *work; ///< [n], owned
    size_t n, cap;
    uint32_t n_refs; ///< the table's, and one per launch that is running it right now
} tide__cpu_capture;

typedef struct tide__cpu_stream {
    tide_stream_id id;
    pthread_t thread;
    pthread_cond_t has_work;
    pthread_cond_t moved;       ///< n_done rose, or a waiter left
    tide__cpu_work *ring;       ///< [cap], owned; work number n lies at n & (cap - 1)
    size_t cap;                 ///< a power of two
    uint64_t n_queued;          ///< work put on the stream so far
    uint64_t n_done;            ///< of these, finished
    uint32_t n_waiters;         ///< threads in tide__cpu_reach for this stream
    bool closing;               ///< takes no more work; not captured
    tide__cpu_capture *capture; ///< owned; not NULL while the stream is captured
} tide__cpu_stream;

typedef struct tide__cpu {
    pthread_mutex_t lock;
    tide__id_table streams;  ///< tide__cpu_stream
    tide__id_table events;   ///< tide__cpu_point: where it was recorded last
    tide__id_table captures; ///< tide__cpu_capture
    size_t n_captured;       ///< streams being captured
} tide__cpu;

extern tide__cpu tide__cpu_state;

// cpu_device.c
void tide__cpu_do(const tide__cpu_work *work);

// cpu_stream.c; the lock is held
/// @return NULL with the reason when there is no such stream, or it is being destroyed
tide__cpu_stream *tide__cpu_find_stream(tide_stream_id id, tide_status *st, tide_error *err);
/// The same, but TIDE_ERR_BUSY while the stream is captured. `what` completes "… while it is captured".
tide__cpu_stream *tide__cpu_find_live_stream(tide_stream_id id, const char *what, tide_status *st, tide_error *err);
/// The same, and one that is being destroyed as well: its last work can be waited for.
tide__cpu_stream *tide__cpu_find_moving_stream(tide_stream_id id, const char *what, tide_status *st, tide_error *err);
/// Put [n] pieces of work on the stream: all of them, or none with TIDE_ERR_NOMEM.
tide_status tide__cpu_queue(tide__cpu_stream *s, const tide__cpu_work *work, size_t n, tide_error *err);
bool tide__cpu_is_reached(tide__cpu_point point);
/// Wait until the point is reached; gives the lock up meanwhile.
void tide__cpu_reach(tide__cpu_point point);

// cpu_stream.c; the lock is not held
/// Do the work now (stream 0), queue it, or keep it (a captured stream).
tide_status tide__cpu_put(tide_stream_id stream, const tide__cpu_work *work, tide_error *err);

// cpu_capture.c; the lock is held
tide_status tide__cpu_keep(tide__cpu_capture *c, const tide__cpu_work *work, tide_error *err);
/// Takes NULL.
void tide__cpu_capture_unref(tide__cpu_capture *c);

// The entries of the table that the other files hold.
tide_status tide__cpu_stream_create(void *self, int32_t index, tide_stream_id *out, tide_error *err);
void tide__cpu_stream_destroy(void *self, int32_t index, tide_stream_id stream);
tide_status tide__cpu_stream_sync(void *self, int32_t index, tide_stream_id stream, tide_error *err);
tide_status tide__cpu_stream_wait_event(void *self, int32_t index, tide_stream_id stream, tide_event_id event,
                                        tide_error *err);
tide_status tide__cpu_event_create(void *self, int32_t index, tide_event_id *out, tide_error *err);
void tide__cpu_event_destroy(void *self, int32_t index, tide_event_id event);
tide_status tide__cpu_event_record(void *self, int32_t index, tide_event_id event, tide_stream_id stream,
                                   tide_error *err);
tide_status tide__cpu_event_query(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err);
tide_status tide__cpu_event_sync(void *self, int32_t index, tide_event_id event, tide_error *err);
tide_status tide__cpu_capture_begin(void *self, int32_t index, tide_stream_id stream, tide_error *err);
tide_status tide__cpu_capture_end(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out,
                                  tide_error *err);
tide_status tide__cpu_capture_launch(void *self, int32_t index, tide_capture_id capture, tide_stream_id stream,
                                     tide_error *err);
void tide__cpu_capture_destroy(void *self, int32_t index, tide_capture_id capture);

#endif
