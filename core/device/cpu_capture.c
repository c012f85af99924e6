// SPDX-License-Identifier: MIT
//
// Capture on the CPU: work put on a captured stream goes into a list of its own; a launch queues the whole list.
// Events stay outside of captures here, so a list holds copies, fills and calls only.
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/device/cpu_internal.h"

static pthread_mutex_t *const lock = &tide__cpu_state.lock;

void tide__cpu_capture_unref(tide__cpu_capture *c) {
    if (c == NULL || --c->n_refs > 0) return;
    tide_host_free(c->work);
    tide_host_free(c);
}

tide_status tide__cpu_keep(tide__cpu_capture *c, const tide__cpu_work *work, tide_error *err) {
    if (tide_host_grow(&c->work, &c->cap, c->n + 1, sizeof *c->work) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "no host memory for the capture of a stream of the cpu, which has %zu"
                         " pieces of work",
                         c->n);
    }
    c->work[c->n++] = *work;
    return TIDE_OK;
}

static tide_status begin(tide_stream_id stream, tide_error *err) {
    if (stream == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "the default stream of the cpu cannot be captured");
    tide_status st;
    tide__cpu_stream *s = tide__cpu_find_live_stream(stream, "be captured again", &st, err);
    if (s == NULL) return st;
    tide__cpu_capture *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the capture of a stream of the cpu");
    c->id = tide_device_new_id();
    c->n_refs = 1;
    s->capture = c;
    tide__cpu_state.n_captured++;
    return TIDE_OK;
}

tide_status tide__cpu_capture_begin(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = begin(stream, err);
    pthread_mutex_unlock(lock);
    return st;
}

/// Without memory the stream stays captured, and ending can be tried again.
static tide_status end(tide_stream_id stream, tide_capture_id *out, tide_error *err) {
    tide_status st;
    tide__cpu_stream *s = tide__cpu_find_stream(stream, &st, err);
    if (s == NULL) return st;
    if (s->capture == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "stream %" PRIu64 " of the cpu is not captured", stream);
    if (tide__id_table_put(&tide__cpu_state.captures, s->capture->id, s->capture) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the capture of stream %" PRIu64 " of the cpu",
                         stream);
    }
    *out = s->capture->id;
    s->capture = NULL;
    tide__cpu_state.n_captured--;
    return TIDE_OK;
}

tide_status tide__cpu_capture_end(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out,
                                  tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = end(stream, out, err);
    pthread_mutex_unlock(lock);
    return st;
}

/// On the calling thread, as all work of stream 0. Gives the lock up meanwhile.
static void launch_here(tide__cpu_capture *c) {
    c->n_refs++;
    pthread_mutex_unlock(lock);
    for (size_t i = 0; i < c->n; i++) tide__cpu_do(&c->work[i]);
    pthread_mutex_lock(lock);
    tide__cpu_capture_unref(c);
}

static tide_status launch(tide_capture_id capture, tide_stream_id stream, tide_error *err) {
    tide__cpu_capture *c = tide__id_table_get(&tide__cpu_state.captures, capture);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "the cpu has no capture %" PRIu64, capture);
    if (stream == 0) {
        launch_here(c);
        return TIDE_OK;
    }
    tide_status st;
    tide__cpu_stream *s = tide__cpu_find_live_stream(stream, "launch a capture", &st, err);
    return s != NULL ? tide__cpu_queue(s, c->work, c->n, err) : st;
}

tide_status tide__cpu_capture_launch(void *self, int32_t index, tide_capture_id capture, tide_stream_id stream,
                                     tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = launch(capture, stream, err);
    pthread_mutex_unlock(lock);
    return st;
}

void tide__cpu_capture_destroy(void *self, int32_t index, tide_capture_id capture) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    tide__cpu_capture_unref(tide__id_table_remove(&tide__cpu_state.captures, capture));
    pthread_mutex_unlock(lock);
}
