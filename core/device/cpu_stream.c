// SPDX-License-Identifier: MIT
//
// A stream of the CPU: a thread and a ring of work. The ring grows when the host runs ahead and is never made smaller,
// so that a steady state does not allocate. See cpu_internal.h.
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/cpu_internal.h"

enum { FIRST_RING = 64 };

static pthread_mutex_t *const lock = &tide__cpu_state.lock;

// Points.

bool tide__cpu_is_reached(tide__cpu_point point) {
    const tide__cpu_stream *s = tide__id_table_get(&tide__cpu_state.streams, point.stream);
    return s == NULL || s->n_done >= point.n;
}

void tide__cpu_reach(tide__cpu_point point) {
    tide__cpu_stream *s = tide__id_table_get(&tide__cpu_state.streams, point.stream);
    if (s == NULL) return;
    s->n_waiters++;
    while (s->n_done < point.n) pthread_cond_wait(&s->moved, lock);
    s->n_waiters--;
    if (s->closing) pthread_cond_broadcast(&s->moved); // its destroyer waits for us to let go
}

// The thread.

static void *work_through(void *arg) {
    tide__cpu_stream *s = arg;
    pthread_mutex_lock(lock);
    for (;;) {
        while (s->n_done == s->n_queued && !s->closing) pthread_cond_wait(&s->has_work, lock);
        if (s->n_done == s->n_queued) break;
        const tide__cpu_work work = s->ring[s->n_done & (s->cap - 1)]; // copied: the ring may move meanwhile
        pthread_mutex_unlock(lock);
        tide__cpu_do(&work);
        pthread_mutex_lock(lock);
        s->n_done++;
        if (s->n_waiters > 0) pthread_cond_broadcast(&s->moved);
    }
    pthread_mutex_unlock(lock);
    return NULL;
}

/// Signals are for the program's own threads: a stream must not run its handlers.
static int start_thread(tide__cpu_stream *s) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&s->thread, NULL, work_through, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

// Life.

static void free_stream(tide__cpu_stream *s) {
    pthread_cond_destroy(&s->moved);
    pthread_cond_destroy(&s->has_work);
    tide_host_free(s->ring);
    tide_host_free(s);
}

static tide__cpu_stream *new_stream(void) {
    tide__cpu_stream *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->ring = tide_host_calloc(FIRST_RING, sizeof *s->ring);
    if (s->ring == NULL) {
        tide_host_free(s);
        return NULL;
    }
    s->cap = FIRST_RING;
    s->id = tide_device_new_id();
    pthread_cond_init(&s->has_work, NULL);
    pthread_cond_init(&s->moved, NULL);
    return s;
}

/// Into the table, then to work; the lock is held. @return out of memory or the thread's error, with nothing changed
static tide_status start(tide__cpu_stream *s, tide_error *err) {
    if (tide__id_table_put(&tide__cpu_state.streams, s->id, s) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a stream of the cpu");
    }
    const int failed = start_thread(s);
    if (failed == 0) return TIDE_OK;
    tide__id_table_remove(&tide__cpu_state.streams, s->id);
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "no thread for a stream of the cpu: %s", strerror(failed));
}

tide_status tide__cpu_stream_create(void *self, int32_t index, tide_stream_id *out, tide_error *err) {
    (void)self, (void)index;
    tide__cpu_stream *s = new_stream();
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a stream of the cpu");
    pthread_mutex_lock(lock);
    const tide_status st = start(s, err);
    pthread_mutex_unlock(lock);
    if (st != TIDE_OK) {
        free_stream(s);
        return st;
    }
    *out = s->id;
    return TIDE_OK;
}

static void drop_capture(tide__cpu_stream *s) {
    if (s->capture == NULL) return;
    tide__cpu_capture_unref(s->capture);
    s->capture = NULL;
    tide__cpu_state.n_captured--;
}

void tide__cpu_stream_destroy(void *self, int32_t index, tide_stream_id stream) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    tide__cpu_stream *s = tide__id_table_get(&tide__cpu_state.streams, stream);
    if (s == NULL || s->closing) {
        // Somebody else is ending it: who hears "destroyed" from us may rely on its work being done, too.
        if (s != NULL) tide__cpu_reach((tide__cpu_point){.stream = stream, .n = s->n_queued});
        pthread_mutex_unlock(lock);
        return;
    }
    s->closing = true;
    drop_capture(s);
    pthread_cond_signal(&s->has_work);
    pthread_mutex_unlock(lock);
    pthread_join(s->thread, NULL);
    // Its points stay in reach until here; from here on a stream that is not in the table has reached them all.
    pthread_mutex_lock(lock);
    tide__id_table_remove(&tide__cpu_state.streams, stream);
    while (s->n_waiters > 0) pthread_cond_wait(&s->moved, lock);
    free_stream(s);
    pthread_mutex_unlock(lock);
}

// Work.

static tide__cpu_stream *find(tide_stream_id id, bool even_closing, tide_status *st, tide_error *err) {
    tide__cpu_stream *s = tide__id_table_get(&tide__cpu_state.streams, id);
    if (s != NULL && (even_closing || !s->closing)) return s;
    *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the cpu has no stream %" PRIu64, id);
    return NULL;
}

static tide__cpu_stream *unless_captured(tide__cpu_stream *s, const char *what, tide_status *st, tide_error *err) {
    if (s == NULL || s->capture == NULL) return s;
    *st = TIDE_FAIL(err, TIDE_ERR_BUSY, "stream %" PRIu64 " of the cpu cannot %s while it is captured", s->id, what);
    return NULL;
}

tide__cpu_stream *tide__cpu_find_stream(tide_stream_id id, tide_status *st, tide_error *err) {
    return find(id, false, st, err);
}

tide__cpu_stream *tide__cpu_find_live_stream(tide_stream_id id, const char *what, tide_status *st, tide_error *err) {
    return unless_captured(find(id, false, st, err), what, st, err);
}

tide__cpu_stream *tide__cpu_find_moving_stream(tide_stream_id id, const char *what, tide_status *st, tide_error *err) {
    return unless_captured(find(id, true, st, err), what, st, err);
}

/// Room for `n` pieces behind those that wait.
static tide_status make_room(tide__cpu_stream *s, size_t n) {
    size_t need;
    if (!tide_add_size((size_t)(s->n_queued - s->n_done), n, &need)) return TIDE_ERR_NOMEM;
    size_t cap = s->cap;
    while (cap < need) {
        if (!tide_mul_size(cap, 2, &cap)) return TIDE_ERR_NOMEM;
    }
    if (cap == s->cap) return TIDE_OK;
    tide__cpu_work *ring = tide_host_calloc(cap, sizeof *ring);
    if (ring == NULL) return TIDE_ERR_NOMEM;
    for (uint64_t i = s->n_done; i < s->n_queued; i++) ring[i & (cap - 1)] = s->ring[i & (s->cap - 1)];
    tide_host_free(s->ring);
    s->ring = ring;
    s->cap = cap;
    return TIDE_OK;
}

tide_status tide__cpu_queue(tide__cpu_stream *s, const tide__cpu_work *work, size_t n, tide_error *err) {
    if (make_room(s, n) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "no host memory to queue %zu more on stream %" PRIu64 " of the cpu, which has %" PRIu64
                         " waiting",
                         n, s->id, s->n_queued - s->n_done);
    }
    for (size_t i = 0; i < n; i++) s->ring[(s->n_queued + i) & (s->cap - 1)] = work[i];
    s->n_queued += n;
    if (n > 0) pthread_cond_signal(&s->has_work);
    return TIDE_OK;
}

static tide_status put(tide_stream_id stream, const tide__cpu_work *work, tide_error *err) {
    tide_status st;
    tide__cpu_stream *s = tide__cpu_find_stream(stream, &st, err);
    if (s == NULL) return st;
    return s->capture != NULL ? tide__cpu_keep(s->capture, work, err) : tide__cpu_queue(s, work, 1, err);
}

tide_status tide__cpu_put(tide_stream_id stream, const tide__cpu_work *work, tide_error *err) {
    if (stream == 0) {
        tide__cpu_do(work);
        return TIDE_OK;
    }
    pthread_mutex_lock(lock);
    const tide_status st = put(stream, work, err);
    pthread_mutex_unlock(lock);
    return st;
}

tide_status tide__cpu_stream_sync(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    (void)self, (void)index;
    if (stream == 0) return TIDE_OK;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(lock);
    const tide__cpu_stream *s = tide__cpu_find_moving_stream(stream, "be waited for", &st, err);
    if (s != NULL) tide__cpu_reach((tide__cpu_point){.stream = stream, .n = s->n_queued});
    pthread_mutex_unlock(lock);
    return st;
}
