// SPDX-License-Identifier: MIT
//
// An event of the CPU: the point in a stream where it was recorded last. What waits for it takes a copy of the point,
// so that a later record, or the end of the event, changes nothing for who waits already (as in CUDA).
#include <inttypes.h>

#include "core/base/host_alloc.h"
#include "core/device/cpu_internal.h"

static pthread_mutex_t *const lock = &tide__cpu_state.lock;

tide_status tide__cpu_event_create(void *self, int32_t index, tide_event_id *out, tide_error *err) {
    (void)self, (void)index;
    const tide_event_id id = tide_device_new_id();
    tide__cpu_point *event = tide_host_calloc(1, sizeof *event); // stream 0, which has always reached everything
    tide_status st = event != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    if (st == TIDE_OK) {
        pthread_mutex_lock(lock);
        st = tide__id_table_put(&tide__cpu_state.events, id, event);
        pthread_mutex_unlock(lock);
    }
    if (st != TIDE_OK) {
        tide_host_free(event);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for an event of the cpu");
    }
    *out = id;
    return TIDE_OK;
}

void tide__cpu_event_destroy(void *self, int32_t index, tide_event_id event) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    tide__cpu_point *at = tide__id_table_remove(&tide__cpu_state.events, event);
    pthread_mutex_unlock(lock);
    tide_host_free(at);
}

/// The lock is held. @return NULL with the reason
static tide__cpu_point *find_event(tide_event_id id, tide_status *st, tide_error *err) {
    tide__cpu_point *event = tide__id_table_get(&tide__cpu_state.events, id);
    if (event == NULL) *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the cpu has no event %" PRIu64, id);
    return event;
}

static tide_status record(tide_event_id event, tide_stream_id stream, tide_error *err) {
    tide_status st = TIDE_OK;
    tide__cpu_point *at = find_event(event, &st, err);
    if (at == NULL) return st;
    if (stream == 0) {
        *at = (tide__cpu_point){0};
        return TIDE_OK;
    }
    const tide__cpu_stream *s = tide__cpu_find_moving_stream(stream, "record an event", &st, err);
    if (s == NULL) return st;
    *at = (tide__cpu_point){.stream = stream, .n = s->n_queued};
    return TIDE_OK;
}

tide_status tide__cpu_event_record(void *self, int32_t index, tide_event_id event, tide_stream_id stream,
                                   tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = record(event, stream, err);
    pthread_mutex_unlock(lock);
    return st;
}

static tide_status query(tide_event_id event, bool *done, tide_error *err) {
    tide_status st;
    const tide__cpu_point *at = find_event(event, &st, err);
    if (at == NULL) return st;
    if (tide__cpu_state.n_captured > 0) {
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "event %" PRIu64 " of the cpu cannot be asked while a stream is captured",
                         event);
    }
    *done = tide__cpu_is_reached(*at);
    return TIDE_OK;
}

tide_status tide__cpu_event_query(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = query(event, done, err);
    pthread_mutex_unlock(lock);
    return st;
}

tide_status tide__cpu_event_sync(void *self, int32_t index, tide_event_id event, tide_error *err) {
    (void)self, (void)index;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(lock);
    const tide__cpu_point *at = find_event(event, &st, err);
    if (at != NULL) tide__cpu_reach(*at);
    pthread_mutex_unlock(lock);
    return st;
}

static tide_status wait_event(tide_stream_id stream, tide_event_id event, tide_error *err) {
    tide_status st = TIDE_OK;
    const tide__cpu_point *at = find_event(event, &st, err);
    if (at == NULL) return st;
    if (stream == 0) {
        tide__cpu_reach(*at);
        return TIDE_OK;
    }
    tide__cpu_stream *s = tide__cpu_find_live_stream(stream, "wait for an event", &st, err);
    if (s == NULL || tide__cpu_is_reached(*at)) return st;
    const tide__cpu_work work = {.kind = TIDE__CPU_WAIT, .as.point = *at};
    return tide__cpu_queue(s, &work, 1, err);
}

tide_status tide__cpu_stream_wait_event(void *self, int32_t index, tide_stream_id stream, tide_event_id event,
                                        tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = wait_event(stream, event, err);
    pthread_mutex_unlock(lock);
    return st;
}
