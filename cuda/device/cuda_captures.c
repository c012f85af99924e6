// SPDX-License-Identifier: MIT
//
// Captures: graphs of the driver. They are made in relaxed mode, in which the driver forbids no call of any thread
// while they last; what device_ops.h forbids is refused here, before the driver hears of it, so that no capture is
// invalidated.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/device/backend.h"
#include "cuda/device/cuda_device.h"

typedef struct cuda_capture {
    CUgraphExec exec;          ///< NULL until its capture has ended
    uint32_t n_refs;           ///< the table's, and one per launch that is being called
    pthread_mutex_t launching; ///< one thread at a time may use a graph (CUDA driver API, "Graph object thread safety")
} cuda_capture;

/// The context is current, or `c` was never launched.
static void unref(cuda_device *d, cuda_capture *c) {
    pthread_mutex_lock(&d->lock);
    TIDE_ASSERT(c->n_refs > 0);
    const bool last = --c->n_refs == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last) return;
    // A launch that still runs goes on to its end (cuda.h, cuGraphExecDestroy).
    if (c->exec != NULL) CUDA_GIVE_BACK(d, "cuGraphExecDestroy", d->cu->GraphExecDestroy(c->exec));
    pthread_mutex_destroy(&c->launching);
    tide_host_free(c);
}

// ---- a stream that is captured ----

/// Marks the stream and waits until no other call uses it: none that was let in before puts what no capture may hold
/// into this one.
static void mark(cuda_device *d, cuda_stream *s) {
    s->captured = s->changing = true;
    d->n_captured++;
    while (s->n_refs > 2) pthread_cond_wait(&d->moved, &d->lock); // the table's and ours
}

static void unmark(cuda_device *d, cuda_stream *s, bool captured) {
    pthread_mutex_lock(&d->lock);
    TIDE_ASSERT(s->captured && d->n_captured > 0);
    s->changing = false;
    s->captured = captured;
    if (!captured) d->n_captured--;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
}

static tide_status begin(cuda_device *d, cuda_stream *s, tide_error *err) {
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&d->lock);
    if (s->captured || s->closing) {
        st = TIDE_FAIL(err, TIDE_ERR_BUSY, "stream %" PRIu64 " of cuda:%" PRId32 " is being captured or destroyed",
                       s->id, d->index);
    } else {
        mark(d, s);
    }
    pthread_mutex_unlock(&d->lock);
    TIDE_TRY(st);
    st = cuda_enter(d, err);
    if (st == TIDE_OK) {
        const CUresult result = d->cu->StreamBeginCapture(s->handle, CU_STREAM_CAPTURE_MODE_RELAXED);
        cuda_leave(d);
        if (result != CUDA_SUCCESS) st = cuda_failed(result, d->index, err, "cuStreamBeginCapture");
    }
    unmark(d, s, st == TIDE_OK);
    return st;
}

tide_status cuda_capture_begin(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    cuda_held held;
    if (stream == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the default stream of cuda:%" PRId32 " cannot be captured", index);
    TIDE_TRY(cuda_hold(d, stream, CUDA_USE_LIVE, "be captured again", &held, err));
    const tide_status st = begin(d, held.stream, err);
    cuda_let_go(d, held);
    return st;
}

void cuda_drop_capture(cuda_device *d, cuda_stream *s) {
    CUgraph graph = NULL;
    CUDA_GIVE_BACK(d, "cuStreamEndCapture", d->cu->StreamEndCapture(s->handle, &graph));
    if (graph != NULL) CUDA_GIVE_BACK(d, "cuGraphDestroy", d->cu->GraphDestroy(graph));
    unmark(d, s, false);
}

// ---- ending ----

/// The driver's side: from the stream's capture to what can be launched. *captured: the stream still is.
static tide_status end_in_driver(cuda_device *d, CUstream handle, CUgraphExec *out, bool *captured, tide_error *err) {
    CUgraph graph = NULL;
    CUresult result = d->cu->StreamEndCapture(handle, &graph);
    if (result != CUDA_SUCCESS) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        *captured =
            d->cu->StreamIsCapturing(handle, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
        return cuda_failed(result, d->index, err, "cuStreamEndCapture");
    }
    *captured = false;
    result = d->cu->GraphInstantiateWithFlags(out, graph, 0);
    CUDA_GIVE_BACK(d, "cuGraphDestroy", d->cu->GraphDestroy(graph));
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "cuGraphInstantiate");
}

/// Marks the stream as one whose capture changes.
static tide_status begin_end(cuda_device *d, cuda_stream *s, tide_error *err) {
    pthread_mutex_lock(&d->lock);
    const bool good = s->captured && !s->closing && !s->changing;
    if (good) s->changing = true;
    pthread_mutex_unlock(&d->lock);
    if (good) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "stream %" PRIu64 " of cuda:%" PRId32 " is not captured", s->id, d->index);
}

static tide_status end(cuda_device *d, cuda_stream *s, cuda_capture *c, tide_error *err) {
    bool captured = true;
    TIDE_TRY(begin_end(d, s, err));
    tide_status st = cuda_enter(d, err);
    if (st == TIDE_OK) {
        st = end_in_driver(d, s->handle, &c->exec, &captured, err);
        cuda_leave(d);
    }
    unmark(d, s, captured);
    return st;
}

static tide_status new_capture(cuda_device *d, tide_capture_id id, cuda_capture **out, tide_error *err) {
    cuda_capture *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a capture of cuda:%" PRId32, d->index);
    pthread_mutex_init(&c->launching, NULL);
    c->n_refs = 2; // the table's and the caller's
    pthread_mutex_lock(&d->lock);
    const tide_status st = tide__id_table_put(&d->captures, id, c);
    pthread_mutex_unlock(&d->lock);
    if (st == TIDE_OK) {
        *out = c;
        return TIDE_OK;
    }
    pthread_mutex_destroy(&c->launching);
    tide_host_free(c);
    return TIDE_FAIL(err, st, "no host memory for a capture of cuda:%" PRId32, d->index);
}

static void forget(cuda_device *d, tide_capture_id capture) {
    pthread_mutex_lock(&d->lock);
    cuda_capture *c = tide__id_table_remove(&d->captures, capture);
    pthread_mutex_unlock(&d->lock);
    if (c != NULL) unref(d, c);
}

/// Host memory is there before the driver's capture ends: without, the stream stays captured and ending can be tried
/// again.
tide_status cuda_capture_end(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    cuda_held held;
    cuda_capture *c = NULL;
    if (stream == 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the default stream of cuda:%" PRId32 " is not captured", index);
    TIDE_TRY(cuda_hold(d, stream, CUDA_USE_WORK, NULL, &held, err));
    const tide_capture_id id = tide_device_new_id();
    tide_status st = new_capture(d, id, &c, err);
    if (st == TIDE_OK) st = end(d, held.stream, c, err);
    if (st != TIDE_OK && c != NULL) forget(d, id);
    if (c != NULL) unref(d, c);
    cuda_let_go(d, held);
    if (st == TIDE_OK) *out = id;
    return st;
}

// ---- launching ----

static tide_status put_launch(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    cuda_capture *c = args;
    pthread_mutex_lock(&c->launching);
    const CUresult result = d->cu->GraphLaunch(c->exec, handle);
    pthread_mutex_unlock(&c->launching);
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "cuGraphLaunch");
}

tide_status cuda_capture_launch(void *self, int32_t index, tide_capture_id capture, tide_stream_id stream,
                                tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    pthread_mutex_lock(&d->lock);
    cuda_capture *c = tide__id_table_get(&d->captures, capture);
    if (c != NULL && c->exec != NULL)
        c->n_refs++;
    else
        c = NULL;
    pthread_mutex_unlock(&d->lock);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "cuda:%" PRId32 " has no capture %" PRIu64, index, capture);
    const tide_status st = cuda_on_stream(d, stream, CUDA_USE_LIVE, "launch a capture", put_launch, c, err);
    unref(d, c);
    return st;
}

void cuda_capture_destroy(void *self, int32_t index, tide_capture_id capture) {
    cuda_device *d = cuda_at(self, index);
    if (d == NULL || !cuda_enter_to_give_back(d)) return;
    forget(d, capture);
    cuda_leave(d);
}
