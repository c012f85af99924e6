// SPDX-License-Identifier: MIT
//
// The calls of backend.h: each finds the table behind the device and goes through it, or says what is not there.
#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/device/device_internal.h"

// ---- listeners ----
//
// They are called when a stream is gone. Calls run without the lock, so that a listener may take its own. Each round of
// calls is on a list with the listener it is at, so that removing a listener can wait until no round is at it.

/// One notify_destroyed in progress; lives on its caller's stack.
typedef struct round_of_calls {
    tide_stream_listener *now;  ///< being called; NULL between two calls
    tide_stream_listener *next; ///< to be called next
    struct round_of_calls *other;
} round_of_calls;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_ended = PTHREAD_COND_INITIALIZER;
static tide_stream_listener *first_listener;
static round_of_calls *first_round;

void tide_stream_listen(tide_stream_listener *listener) {
    pthread_mutex_lock(&lock);
    TIDE_ASSERT(listener != first_listener && listener->on_destroyed != NULL);
    listener->next = first_listener;
    first_listener = listener;
    pthread_mutex_unlock(&lock);
}

static bool is_being_called(const tide_stream_listener *listener) {
    for (const round_of_calls *t = first_round; t != NULL; t = t->other) {
        if (t->now == listener) return true;
    }
    return false;
}

void tide_stream_unlisten(tide_stream_listener *listener) {
    pthread_mutex_lock(&lock);
    tide_stream_listener **at = &first_listener;
    while (*at != NULL && *at != listener) at = &(*at)->next;
    if (*at != NULL) *at = listener->next;
    for (round_of_calls *t = first_round; t != NULL; t = t->other) {
        if (t->next == listener) t->next = listener->next;
    }
    while (is_being_called(listener)) pthread_cond_wait(&call_ended, &lock);
    pthread_mutex_unlock(&lock);
}

static void leave(round_of_calls *t) {
    round_of_calls **at = &first_round;
    while (*at != t) {
        TIDE_ASSERT(*at != NULL);
        at = &(*at)->other;
    }
    *at = t->other;
}

/// Tell every listener; called after the stream's last work.
static void notify_destroyed(tide_device device, tide_stream_id stream) {
    pthread_mutex_lock(&lock);
    round_of_calls t = {.next = first_listener, .other = first_round};
    first_round = &t;
    while (t.next != NULL) {
        t.now = t.next;
        t.next = t.now->next;
        pthread_mutex_unlock(&lock);
        t.now->on_destroyed(t.now->self, device, stream);
        pthread_mutex_lock(&lock);
        t.now = NULL;
        pthread_cond_broadcast(&call_ended);
    }
    leave(&t);
    pthread_mutex_unlock(&lock);
}

// ---- memory for allocators of tidemark's ----

static _Thread_local unsigned own_depth;

bool tide_device_is_own_call(void) { return own_depth > 0; }
void tide_device_own_call_enter(void) { own_depth++; }
void tide_device_own_call_leave(void) {
    TIDE_ASSERT(own_depth > 0);
    own_depth--;
}

/// The table behind `d`, for a call that must be able to fail; NULL (and *st set) when `d` is not there.
static const tide_device_ops *route(tide_device d, void **self, tide_status *st, tide_error *err) {
    *st = tide_device_require(d, err);
    const tide_device_ops *ops = *st == TIDE_OK ? tide_device_find(d, self) : NULL;
    TIDE_ASSERT((*st == TIDE_OK) == (ops != NULL)); // no thread uses a type that is being unregistered
    return ops;
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
    tide_device_own_call_enter();
    const tide_status st = ops->mem_alloc(self, d.index, size_bytes, align_bytes, out, err);
    tide_device_own_call_leave();
    return st;
}

void tide_device_mem_free(tide_device d, void *ptr) {
    void *self;
    const tide_device_ops *ops = tide_device_find(d, &self);
    if (ops == NULL || ptr == NULL) return;
    tide_device_own_call_enter();
    ops->mem_free(self, d.index, ptr);
    tide_device_own_call_leave();
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
    notify_destroyed(d, stream);
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

// ---- copies between devices ----
//
// Copies between two devices, waited for. What no single device can do goes through a staging buffer, chunk by chunk:
//
//     from:     | chunk 0 | chunk 1 | chunk 2 |
//                    |
//     staging:  | chunk |                          at most STAGING_BYTES of host memory
//                    |
//     to:       | chunk 0 | chunk 1 | chunk 2 |

enum { STAGING_BYTES = 1 << 20 };

/// Copy on one device and wait.
static tide_status copy_sync(tide_device d, tide_stream_id stream, tide_copy_direction direction, void *dst,
                             const void *src, size_t size_bytes, tide_error *err) {
    TIDE_TRY(tide_device_copy(d, stream, direction, dst, src, size_bytes, err));
    return tide_stream_sync(d, stream, err);
}

static tide_status copy_staged(tide_device to, char *dst, tide_device from, const char *src, size_t size_bytes,
                               tide_stream_id stream, char *staging, tide_error *err) {
    for (size_t at = 0; at < size_bytes; at += STAGING_BYTES) {
        const size_t left = size_bytes - at;
        const size_t n = left < STAGING_BYTES ? left : STAGING_BYTES;
        TIDE_TRY(copy_sync(from, stream, TIDE_COPY_DEVICE_TO_HOST, staging, src + at, n, err));
        TIDE_TRY(copy_sync(to, 0, TIDE_COPY_HOST_TO_DEVICE, dst + at, staging, n, err));
    }
    return TIDE_OK;
}

static tide_status through_host(tide_device to, void *dst, tide_device from, const void *src, size_t size_bytes,
                                tide_stream_id stream, tide_error *err) {
    TIDE_TRY(tide_device_require(to, err));
    TIDE_TRY(tide_device_require(from, err));
    const size_t staging_bytes = size_bytes < STAGING_BYTES ? size_bytes : STAGING_BYTES;
    char *staging = tide_host_alloc(staging_bytes);
    if (staging == NULL) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no %zu bytes to stage a copy of %zu bytes between two devices",
                         staging_bytes, size_bytes);
    }
    const tide_status st = copy_staged(to, dst, from, src, size_bytes, stream, staging, err);
    tide_host_free(staging);
    return st;
}

tide_status tide_device_transfer(tide_device to, void *dst, tide_device from, const void *src, size_t size_bytes,
                                 tide_stream_id stream, tide_error *err) {
    // Waiting first refuses a captured stream while nothing is on it yet.
    TIDE_TRY(tide_stream_sync(from.type == TIDE_DEVICE_CPU ? to : from, stream, err));
    if (size_bytes == 0) return tide_device_require(from.type == TIDE_DEVICE_CPU ? from : to, err);
    if (tide_device_equal(to, from)) return copy_sync(to, stream, TIDE_COPY_WITHIN_DEVICE, dst, src, size_bytes, err);
    if (from.type == TIDE_DEVICE_CPU) {
        TIDE_TRY(tide_device_require(from, err));
        return copy_sync(to, stream, TIDE_COPY_HOST_TO_DEVICE, dst, src, size_bytes, err);
    }
    if (to.type == TIDE_DEVICE_CPU) {
        TIDE_TRY(tide_device_require(to, err));
        return copy_sync(from, stream, TIDE_COPY_DEVICE_TO_HOST, dst, src, size_bytes, err);
    }
    return through_host(to, dst, from, src, size_bytes, stream, err);
}
