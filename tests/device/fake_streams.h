// SPDX-License-Identifier: MIT
//
// The fake device, second part: streams, and the work that waits in them. Included by fake_device.h.
#ifndef TIDE_TESTS_DEVICE_FAKE_STREAMS_H
#define TIDE_TESTS_DEVICE_FAKE_STREAMS_H

#include "tests/device/fake_state.h"

static TIDE_UNUSED fake_stream *fake_find_key(uint64_t key) {
    fake_stream *s = fake.streams;
    while (s != NULL && s->key != key) s = s->next;
    return s;
}

/// At the end of the list, so that a loop over all streams sees them in the order in which they were made.
static TIDE_UNUSED fake_stream *fake_add_stream(int32_t index, uint64_t key) {
    fake_stream *s = fake_new(sizeof *s);
    *s = (fake_stream){.key = key, .index = index};
    s->queue.last = &s->queue.first;
    s->captured_work.last = &s->captured_work.first;
    fake_stream **at = &fake.streams;
    while (*at != NULL) at = &(*at)->next;
    *at = s;
    return s;
}

static TIDE_UNUSED fake_stream *fake_find(int32_t index, tide_stream_id stream, tide_status *st, tide_error *err) {
    fake_stream *s = fake_find_key(stream == 0 ? FAKE_DEFAULT_KEY + (uint64_t)index : stream);
    if (s != NULL && s->index == index) return s;
    *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "fake:%" PRId32 " has no stream %" PRIu64, index, stream);
    return NULL;
}

static TIDE_UNUSED fake_stream *fake_find_live(int32_t index, tide_stream_id stream, tide_status *st, tide_error *err) {
    fake_stream *s = fake_find(index, stream, st, err);
    if (s == NULL || !s->captured) return s;
    *st = TIDE_FAIL(err, TIDE_ERR_BUSY, "stream %" PRIu64 " of fake:%" PRId32 " is captured", stream, index);
    return NULL;
}

static TIDE_UNUSED void fake_hang(fake_list *list, const fake_work *work) {
    fake_work *own = fake_new(sizeof *own);
    *own = *work;
    own->next = NULL;
    *list->last = own;
    list->last = &own->next;
}

static TIDE_UNUSED void fake_drop(fake_list *list) {
    while (list->first != NULL) {
        fake_work *w = list->first;
        list->first = w->next;
        free(w);
    }
    list->last = &list->first;
}

static TIDE_UNUSED bool fake_reached(uint64_t stream_key, uint64_t n) {
    const fake_stream *s = fake_find_key(stream_key);
    return s == NULL || s->n_done >= n;
}

/// Byte `at` of the pattern of a seed.
static TIDE_UNUSED unsigned char fake_pattern(uint64_t seed, size_t at) {
    return (unsigned char)(((at / 8 + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ seed * UINT64_C(0xBF58476D1CE4E5B9)) >>
                           (8 * (at % 8)));
}

static TIDE_UNUSED void fake_do_pattern(int32_t index, const fake_work *w) {
    char *bytes = fake_bytes(index, w->kind == FAKE_WORK_PATTERN ? w->dst : w->src, w->size_bytes);
    for (size_t i = 0; bytes != NULL && i < w->size_bytes; i++) {
        const unsigned char want = fake_pattern(w->seed, i);
        if (w->kind == FAKE_WORK_PATTERN) {
            bytes[i] = (char)want;
        } else if ((unsigned char)bytes[i] != want) {
            ++*w->n_wrong;
        }
    }
    if (bytes == NULL && w->kind == FAKE_WORK_CHECK) *w->n_wrong += w->size_bytes;
}

static TIDE_UNUSED void fake_do(fake_stream *s, const fake_work *w) {
    const int32_t index = s->index;
    if (w->kind == FAKE_WORK_CALL) { // fn may take locks of its own
        s->busy = true;
        pthread_mutex_unlock(&fake.lock);
        w->fn(w->arg);
        pthread_mutex_lock(&fake.lock);
        s->busy = false;
        pthread_cond_broadcast(&fake.calm);
    } else if (w->kind == FAKE_WORK_POOL_FREE) {
        fake_give(index, w->dst, false);
    } else if (w->kind == FAKE_WORK_PATTERN || w->kind == FAKE_WORK_CHECK) {
        fake_do_pattern(index, w);
    } else if (w->kind == FAKE_WORK_FILL && w->size_bytes > 0) {
        char *dst = fake_bytes(index, w->dst, w->size_bytes);
        if (dst != NULL) memset(dst, w->byte, w->size_bytes);
    } else if (w->kind == FAKE_WORK_COPY && w->size_bytes > 0) {
        const bool from_host = w->direction == TIDE_COPY_HOST_TO_DEVICE;
        const bool to_host = w->direction == TIDE_COPY_DEVICE_TO_HOST;
        void *dst = to_host ? w->dst : fake_bytes(index, w->dst, w->size_bytes);
        const void *src = from_host ? w->src : fake_bytes(index, w->src, w->size_bytes);
        if (dst != NULL && src != NULL) memmove(dst, src, w->size_bytes);
    }
}

/// The next piece of `s`; false when there is none or it has to wait for another stream.
static TIDE_UNUSED bool fake_step_locked(fake_stream *s) {
    while (s->busy) pthread_cond_wait(&fake.calm, &fake.lock);
    fake_work *w = s->queue.first;
    if (w == NULL || (w->kind == FAKE_WORK_WAIT && !fake_reached(w->stream_key, w->n))) return false;
    s->queue.first = w->next;
    if (w->next == NULL) s->queue.last = &s->queue.first;
    fake_do(s, w);
    s->n_done++;
    free(w);
    return true;
}

/// Do pieces of the stream, and of those it waits for, until `n` of its pieces are done. A wait is always for what was
/// queued before it, so this ends.
static TIDE_UNUSED void fake_advance(uint64_t stream_key, uint64_t n) {
    for (fake_stream *s; (s = fake_find_key(stream_key)) != NULL && s->n_done < n;) {
        if (!fake_step_locked(s) && s->queue.first != NULL) fake_advance(s->queue.first->stream_key, s->queue.first->n);
    }
}

static TIDE_UNUSED void fake_queue(fake_stream *s, const fake_work *work) {
    fake_hang(&s->queue, work);
    s->n_queued++;
    if (!fake.held) fake_advance(s->key, s->n_queued);
}

static TIDE_UNUSED tide_status fake_put(fake_call_kind call, int32_t index, tide_stream_id stream,
                                        const fake_work *work, tide_error *err) {
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    fake_stream *s = NULL;
    if (fake_planted(call)) {
        st = fake_failed(call, err);
    } else {
        s = fake_find(index, stream, &st, err);
    }
    if (s != NULL && s->captured) {
        fake_hang(&s->captured_work, work);
    } else if (s != NULL) {
        fake_queue(s, work);
    }
    if (s != NULL && work->kind == FAKE_WORK_COPY) {
        fake.n_copies[work->direction]++;
        fake.copy_stream = stream;
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

static TIDE_UNUSED tide_status fake_copy(void *self, int32_t index, tide_stream_id stream,
                                         tide_copy_direction direction, void *dst, const void *src, size_t size_bytes,
                                         tide_error *err) {
    (void)self;
    const fake_work work = {
        .kind = FAKE_WORK_COPY, .direction = direction, .dst = dst, .src = src, .size_bytes = size_bytes};
    return fake_put(FAKE_COPY, index, stream, &work, err);
}

static TIDE_UNUSED tide_status fake_fill(void *self, int32_t index, tide_stream_id stream, void *dst,
                                         unsigned char byte, size_t size_bytes, tide_error *err) {
    (void)self;
    const fake_work work = {.kind = FAKE_WORK_FILL, .dst = dst, .byte = byte, .size_bytes = size_bytes};
    return fake_put(FAKE_FILL, index, stream, &work, err);
}

static TIDE_UNUSED tide_status fake_call(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg),
                                         void *arg, tide_error *err) {
    (void)self;
    const fake_work work = {.kind = FAKE_WORK_CALL, .fn = fn, .arg = arg};
    return fake_put(FAKE_CALL, index, stream, &work, err);
}

static TIDE_UNUSED tide_status fake_stream_create(void *self, int32_t index, tide_stream_id *out, tide_error *err) {
    (void)self;
    pthread_mutex_lock(&fake.lock);
    const bool fails = fake_planted(FAKE_STREAM_CREATE);
    if (!fails) *out = fake_add_stream(index, tide_device_new_id())->key;
    pthread_mutex_unlock(&fake.lock);
    return fails ? fake_failed(FAKE_STREAM_CREATE, err) : TIDE_OK;
}

static TIDE_UNUSED void fake_remove_stream(fake_stream *s) {
    fake_stream **at = &fake.streams;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    fake_drop(&s->queue);
    fake_drop(&s->captured_work);
    free(s);
}

static TIDE_UNUSED void fake_stream_destroy(void *self, int32_t index, tide_stream_id stream) {
    (void)self;
    tide_status st;
    pthread_mutex_lock(&fake.lock);
    fake.n_calls[FAKE_STREAM_DESTROY]++;
    fake_stream *s = stream != 0 ? fake_find(index, stream, &st, NULL) : NULL;
    if (s != NULL) {
        fake_advance(s->key, s->n_queued);
        fake_remove_stream(s);
    }
    pthread_mutex_unlock(&fake.lock);
}

enum { FAKE_STEP_BYTES = 2 << 20 }; ///< a pool takes memory in steps of it, and mappings are multiples of it

static TIDE_UNUSED uint64_t fake_steps(uint64_t bytes) {
    return (bytes + FAKE_STEP_BYTES - 1) / FAKE_STEP_BYTES * FAKE_STEP_BYTES;
}

/// The pool gives back what it does not use, down to `keep_bytes`.
static TIDE_UNUSED void fake_shrink_pool(int32_t index, uint64_t keep_bytes) {
    tide_device_pool_stats *s = &fake.pools[index].stats;
    const uint64_t used = fake_steps(s->used_bytes);
    const uint64_t left = used > keep_bytes ? used : keep_bytes;
    if (left >= s->reserved_bytes) return;
    fake.live_bytes[index] -= s->reserved_bytes - left;
    s->reserved_bytes = left;
}

static TIDE_UNUSED tide_status fake_stream_sync(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    (void)self;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(&fake.lock);
    if (fake_planted(FAKE_STREAM_SYNC)) {
        st = fake_failed(FAKE_STREAM_SYNC, err);
    } else {
        const fake_stream *s = fake_find_live(index, stream, &st, err);
        if (s != NULL) fake_advance(s->key, s->n_queued);
        if (s != NULL) fake_shrink_pool(index, fake.pools[index].keep_bytes);
    }
    pthread_mutex_unlock(&fake.lock);
    return st;
}

#endif
