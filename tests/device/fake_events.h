// SPDX-License-Identifier: MIT
//
// The fake device, third part: events and captures. Included by fake_device.h. An event is a point in a stream, as on
// the CPU, but recording it is a piece of work, so that a test can stop before it.
#ifndef TIDE_TESTS_DEVICE_FAKE_EVENTS_H
#define TIDE_TESTS_DEVICE_FAKE_EVENTS_H

#include "tests/device/fake_streams.h"

// Events.

/// Counts the call as well. @return NULL with the reason
static TIDE_UNUSED fake_event *fake_find_event(fake_call_kind call, int32_t index, tide_event_id id, tide_status *st,
                                               tide_error *err) {
    if (fake_planted(call)) {
        *st = fake_failed(call, err);
        return NULL;
    }
    fake_event *e = fake.events;
    while (e != NULL && !(e->id == id && e->index == index)) e = e->next;
    if (e == NULL) *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "fake:%" PRId32 " has no event %" PRIu64, index, id);
    return e;
}

static TIDE_UNUSED tide_status fake_event_create(void *self, int32_t index, tide_event_id *out, tide_error *err) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    const bool fails = fake_planted(FAKE_EVENT_CREATE);
    if (!fails) {
        fake_event *e = fake_new(sizeof *e);
        *e = (fake_event){.next = fake.events, .id = tide_device_new_id(), .index = index};
        fake.events = e;
        *out = e->id;
    }
    pthread_mutex_unlock(&fake.lock);
    return fails ? fake_failed(FAKE_EVENT_CREATE, err) : TIDE_OK;
}

static TIDE_UNUSED void fake_event_destroy(void *self, int32_t index, tide_event_id event) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_EVENT_DESTROY]++;
    fake_event **at = &fake.events;
    while (*at != NULL && !((*at)->id == event && (*at)->index == index)) at = &(*at)->next;
    fake_event *e = *at;
    if (e != NULL) *at = e->next;
    free(e);
    pthread_mutex_unlock(&fake.lock);
}

static TIDE_UNUSED tide_status fake_event_record(void *self, int32_t index, tide_event_id event, tide_stream_id stream,
                                                 tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    fake_event *e = fake_find_event(FAKE_EVENT_RECORD, index, event, &st, err);
    fake_stream *s = e != NULL ? fake_find_live(index, stream, &st, err) : NULL;
    if (s != NULL) {
        e->stream_key = s->key;
        e->n = s->n_queued + 1;
        const fake_work mark = {.kind = FAKE_WORK_MARK};
        fake_queue(s, &mark);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED bool fake_is_captured(int32_t index) {
    const fake_stream *s = fake.streams;
    while (s != NULL && !(s->index == index && s->captured)) s = s->next;
    return s != NULL;
}

static TIDE_UNUSED tide_status fake_event_query(void *self, int32_t index, tide_event_id event, bool *done,
                                                tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    const fake_event *e = fake_find_event(FAKE_EVENT_QUERY, index, event, &st, err);
    if (e != NULL && fake_is_captured(index)) {
        st = TIDE_FAIL(err, TIDE_ERR_BUSY, "a stream of fake:%" PRId32 " is captured", index);
    } else if (e != NULL) {
        *done = fake_reached(e->stream_key, e->n);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED tide_status fake_event_sync(void *self, int32_t index, tide_event_id event, tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    const fake_event *e = fake_find_event(FAKE_EVENT_SYNC, index, event, &st, err);
    if (e != NULL) fake_advance(e->stream_key, e->n);
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED tide_status fake_stream_wait_event(void *self, int32_t index, tide_stream_id stream,
                                                      tide_event_id event, tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    const fake_event *e = fake_find_event(FAKE_STREAM_WAIT_EVENT, index, event, &st, err);
    fake_stream *s = e != NULL ? fake_find_live(index, stream, &st, err) : NULL;
    if (s != NULL) {
        const fake_work wait = {.kind = FAKE_WORK_WAIT, .stream_key = e->stream_key, .n = e->n};
        fake_queue(s, &wait);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

// Capture.

static TIDE_UNUSED tide_status fake_capture_begin(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    if (fake_planted(FAKE_CAPTURE_BEGIN)) {
        st = fake_failed(FAKE_CAPTURE_BEGIN, err);
    } else if (stream == 0) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the default stream of fake:%" PRId32 " cannot be captured", index);
    } else {
        fake_stream *s = fake_find_live(index, stream, &st, err);
        if (s != NULL) s->captured = true;
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED tide_capture_id fake_end(fake_stream *s) {
    fake_capture *c = fake_new(sizeof *c);
    *c = (fake_capture){.next = fake.captures, .id = tide_device_new_id(), .index = s->index};
    c->work.first = s->captured_work.first;
    fake.captures = c;
    s->captured = false;
    s->captured_work = (fake_list){.last = &s->captured_work.first};
    return c->id;
}

static TIDE_UNUSED tide_status fake_capture_end(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out,
                                                tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    if (fake_planted(FAKE_CAPTURE_END)) {
        st = fake_failed(FAKE_CAPTURE_END, err);
    } else {
        fake_stream *s = fake_find(index, stream, &st, err);
        if (s != NULL && s->captured) {
            *out = fake_end(s);
        } else if (s != NULL) {
            st = TIDE_FAIL(err, TIDE_ERR_INVALID, "stream %" PRIu64 " of fake:%" PRId32 " is not captured", stream,
                           index);
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED fake_capture **fake_find_capture(int32_t index, tide_capture_id capture) {
    fake_capture **at = &fake.captures;
    while (*at != NULL && !((*at)->id == capture && (*at)->index == index)) at = &(*at)->next;
    return at;
}

static TIDE_UNUSED tide_status fake_capture_launch(void *self, int32_t index, tide_capture_id capture,
                                                   tide_stream_id stream, tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    const fake_capture *c = *fake_find_capture(index, capture);
    if (fake_planted(FAKE_CAPTURE_LAUNCH)) {
        st = fake_failed(FAKE_CAPTURE_LAUNCH, err);
    } else if (c == NULL) {
        st = TIDE_FAIL(err, TIDE_ERR_INVALID, "fake:%" PRId32 " has no capture %" PRIu64, index, capture);
    } else {
        fake_stream *s = fake_find_live(index, stream, &st, err);
        for (const fake_work *w = c->work.first; s != NULL && w != NULL; w = w->next) fake_queue(s, w);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED void fake_capture_destroy(void *self, int32_t index, tide_capture_id capture) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_CAPTURE_DESTROY]++;
    fake_capture **at = fake_find_capture(index, capture), *c = *at;
    if (c != NULL) {
        *at = c->next;
        fake_drop(&c->work);
    }
    free(c);
    pthread_mutex_unlock(&fake.lock);
}

#endif
