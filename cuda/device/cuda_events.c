// SPDX-License-Identifier: MIT
//
// Events: points in streams, without times. One that is asked or waited for while another thread destroys it lives
// until that call is over.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "cuda/device/cuda_device.h"

typedef struct cuda_event {
    CUevent handle;
    uint32_t n_refs; ///< the table's, and one per call that uses it
} cuda_event;

/// @return NULL with the reason; cuda_drop must follow otherwise
static cuda_event *take(cuda_device *d, tide_event_id event, tide_status *st, tide_error *err) {
    pthread_mutex_lock(&d->lock);
    cuda_event *e = tide__id_table_get(&d->events, event);
    if (e != NULL) e->n_refs++;
    pthread_mutex_unlock(&d->lock);
    if (e == NULL) *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cuda:%" PRId32 " has no event %" PRIu64, d->index, event);
    return e;
}

/// Give up a reference; the last one ends the event.
static void drop(cuda_device *d, cuda_event *e) {
    pthread_mutex_lock(&d->lock);
    TIDE_ASSERT(e->n_refs > 0);
    const bool last = --e->n_refs == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last) return;
    if (cuda_enter_to_give_back(d)) {
        CUDA_GIVE_BACK(d, "cuEventDestroy", d->cu->EventDestroy(e->handle));
        cuda_leave(d);
    }
    tide_host_free(e);
}

static tide_status make(cuda_device *d, CUevent *out, tide_error *err) {
    TIDE_TRY(cuda_enter(d, err));
    const CUresult result = d->cu->EventCreate(out, CU_EVENT_DISABLE_TIMING);
    cuda_leave(d);
    return result == CUDA_SUCCESS ? TIDE_OK : cuda_failed(result, d->index, err, "cuEventCreate");
}

tide_status cuda_event_create(void *self, int32_t index, tide_event_id *out, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    cuda_event *e = tide_host_calloc(1, sizeof *e);
    if (e == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for an event of cuda:%" PRId32, index);
    const tide_status made = make(d, &e->handle, err);
    if (made != TIDE_OK) {
        tide_host_free(e);
        return made;
    }
    e->n_refs = 1;
    const tide_event_id id = tide_device_new_id();
    pthread_mutex_lock(&d->lock);
    const tide_status st = tide__id_table_put(&d->events, id, e);
    pthread_mutex_unlock(&d->lock);
    if (st != TIDE_OK) {
        drop(d, e);
        return TIDE_FAIL(err, st, "no host memory for an event of cuda:%" PRId32, index);
    }
    *out = id;
    return TIDE_OK;
}

void cuda_event_destroy(void *self, int32_t index, tide_event_id event) {
    cuda_device *d = cuda_at(self, index);
    if (d == NULL) return;
    pthread_mutex_lock(&d->lock);
    cuda_event *e = tide__id_table_remove(&d->events, event);
    pthread_mutex_unlock(&d->lock);
    if (e != NULL) drop(d, e);
}

static tide_status put_record(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    const cuda_event *e = args;
    CUDA_TRY(d, d->cu->EventRecord(e->handle, handle), err, "cuEventRecord");
    return TIDE_OK;
}

tide_status cuda_event_record(void *self, int32_t index, tide_event_id event, tide_stream_id stream, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    tide_status st = TIDE_OK;
    cuda_event *e = take(d, event, &st, err);
    if (e == NULL) return st;
    st = cuda_on_stream(d, stream, CUDA_USE_MOVING, "record an event", put_record, e, err);
    drop(d, e);
    return st;
}

static tide_status put_wait(cuda_device *d, CUstream handle, void *args, tide_error *err) {
    const cuda_event *e = args;
    CUDA_TRY(d, d->cu->StreamWaitEvent(handle, e->handle, CU_EVENT_WAIT_DEFAULT), err, "cuStreamWaitEvent");
    return TIDE_OK;
}

tide_status cuda_stream_wait_event(void *self, int32_t index, tide_stream_id stream, tide_event_id event,
                                   tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    tide_status st = TIDE_OK;
    cuda_event *e = take(d, event, &st, err);
    if (e == NULL) return st;
    st = cuda_on_stream(d, stream, CUDA_USE_LIVE, "wait for an event", put_wait, e, err);
    drop(d, e);
    return st;
}

/// Captures of our own forbid no call (cuda_captures.c), so what begins between the question and the call does no harm.
static tide_status query(cuda_device *d, const cuda_event *e, tide_event_id event, bool *done, tide_error *err) {
    pthread_mutex_lock(&d->lock);
    const bool captured = d->n_captured > 0;
    pthread_mutex_unlock(&d->lock);
    if (captured) {
        return TIDE_FAIL(err, TIDE_ERR_BUSY,
                         "event %" PRIu64 " of cuda:%" PRId32 " cannot be asked while a stream is captured", event,
                         d->index);
    }
    TIDE_TRY(cuda_enter(d, err));
    const CUresult result = d->cu->EventQuery(e->handle);
    cuda_leave(d);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        return cuda_failed(result, d->index, err, "cuEventQuery");
    *done = result == CUDA_SUCCESS;
    return TIDE_OK;
}

tide_status cuda_event_query(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    tide_status st = TIDE_OK;
    cuda_event *e = take(d, event, &st, err);
    if (e == NULL) return st;
    st = query(d, e, event, done, err);
    drop(d, e);
    return st;
}

tide_status cuda_event_sync(void *self, int32_t index, tide_event_id event, tide_error *err) {
    cuda_device *d = cuda_at(self, index);
    tide_status st = TIDE_OK;
    cuda_event *e = take(d, event, &st, err);
    if (e == NULL) return st;
    st = cuda_enter(d, err);
    if (st == TIDE_OK) {
        const CUresult result = d->cu->EventSynchronize(e->handle);
        cuda_leave(d);
        if (result != CUDA_SUCCESS) st = cuda_failed(result, index, err, "cuEventSynchronize");
    }
    drop(d, e);
    return st;
}
