// SPDX-License-Identifier: MIT
//
// The CPU as a device: streams that are threads, events that are points in them, captures that are lists.
//
//     stream a:  | 41 | 42 | 43 | 44 |           stream b:  | 7 | wait for (a, 43) | 8 |
//                     ^n_done        ^n_queued
//     event e = (a, 43): recorded when 43 was the last item queued
//
// Work of a stream is numbered as it is queued; n_done counts what the thread has finished, in order. So an event needs
// nothing in the queue: recording notes how much was queued by then, and the event is done once n_done has got there.
//
// One lock guards everything here; work itself runs without it. A thread that sees a point reached has read n_done
// under the lock, and the stream's thread raised it under the lock after the work: that orders the work before what
// comes next.
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/device/backend.h"
#include "core/device/device_internal.h"
#include "core/device/id_table.h"

enum { FIRST_RING = 64 };

/// A place in the work of a stream: everything up to item number `n`. A stream that is gone has reached all of them.
typedef struct cpu_point {
    tide_stream_id stream;
    uint64_t n;
} cpu_point;

typedef enum cpu_work_kind { CPU_COPY, CPU_FILL, CPU_CALL, CPU_WAIT } cpu_work_kind;

/// An item of work.
typedef struct cpu_work {
    cpu_work_kind kind;
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
        cpu_point point; ///< wait
    } as;
} cpu_work;

/// Work kept instead of done.
typedef struct cpu_capture {
    tide_capture_id id;
    cpu_work *work; ///< [n], owned
    size_t n, cap;
    uint32_t n_refs; ///< the table's, and one per launch that is running it right now
} cpu_capture;

typedef struct cpu_stream {
    tide_stream_id id;
    pthread_t thread;
    pthread_cond_t has_work;
    pthread_cond_t moved; ///< n_done rose, or a waiter left
    cpu_work *ring;       ///< [cap], owned; work number n lies at n & (cap - 1)
    size_t cap;           ///< a power of two
    uint64_t n_queued;    ///< work put on the stream so far
    uint64_t n_done;      ///< of these, finished
    uint32_t n_waiters;   ///< threads in cpu_reach for this stream
    bool closing;         ///< takes no more work; not captured
    cpu_capture *capture; ///< owned; not NULL while the stream is captured
} cpu_stream;

typedef struct cpu_device {
    pthread_mutex_t lock;
    tide__id_table streams;  ///< cpu_stream
    tide__id_table events;   ///< cpu_point: where it was recorded last
    tide__id_table captures; ///< cpu_capture
    size_t n_captured;       ///< streams being captured
} cpu_device;

static cpu_device cpu = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t *const lock = &cpu.lock;

// ---- points: the lock is held ----

static bool cpu_is_reached(cpu_point point) {
    const cpu_stream *s = tide__id_table_get(&cpu.streams, point.stream);
    return s == NULL || s->n_done >= point.n;
}

/// Wait until the point is reached; gives the lock up meanwhile.
static void cpu_reach(cpu_point point) {
    cpu_stream *s = tide__id_table_get(&cpu.streams, point.stream);
    if (s == NULL) return;
    TIDE_ASSERT(point.n <= s->n_queued);
    s->n_waiters++;
    while (s->n_done < point.n) pthread_cond_wait(&s->moved, lock);
    s->n_waiters--;
    if (s->closing) pthread_cond_broadcast(&s->moved); // the thread that destroys it waits for this one
}

// ---- work ----

static void cpu_do(const cpu_work *work) {
    switch (work->kind) {
    // Zero bytes have no address, and C17 7.24.1p2 wants one even then.
    case CPU_COPY:
        if (work->as.bytes.size_bytes > 0) memmove(work->as.bytes.dst, work->as.bytes.src, work->as.bytes.size_bytes);
        return;
    case CPU_FILL:
        if (work->as.bytes.size_bytes > 0) memset(work->as.bytes.dst, work->byte, work->as.bytes.size_bytes);
        return;
    case CPU_CALL:
        work->as.call.fn(work->as.call.arg);
        return;
    case CPU_WAIT:
        pthread_mutex_lock(&cpu.lock);
        cpu_reach(work->as.point);
        pthread_mutex_unlock(&cpu.lock);
        return;
    }
}

// ---- the list of a capture: the lock is held ----

/// Takes NULL.
static void cpu_capture_unref(cpu_capture *c) {
    TIDE_ASSERT(c == NULL || c->n_refs > 0);
    if (c == NULL || --c->n_refs > 0) return;
    tide_host_free(c->work);
    tide_host_free(c);
}

static tide_status cpu_keep(cpu_capture *c, const cpu_work *work, tide_error *err) {
    if (tide_host_grow(&c->work, &c->cap, c->n + 1, sizeof *c->work) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "no host memory for the capture of a stream of the cpu, which has %zu"
                         " pieces of work",
                         c->n);
    }
    TIDE_ASSERT(work->kind != CPU_WAIT && c->n_refs == 1); // events stay outside, and nothing runs it yet
    c->work[c->n++] = *work;
    return TIDE_OK;
}

// ---- streams ----
//
// A thread and a ring of work. The ring grows when the host runs ahead and is never made smaller, so that a steady
// state does not allocate.

static void *work_through(void *arg) {
    cpu_stream *s = arg;
    pthread_mutex_lock(lock);
    for (;;) {
        while (s->n_done == s->n_queued && !s->closing) pthread_cond_wait(&s->has_work, lock);
        if (s->n_done == s->n_queued) break;
        TIDE_ASSERT(s->n_done < s->n_queued && s->n_queued - s->n_done <= s->cap);
        const cpu_work work = s->ring[s->n_done & (s->cap - 1)]; // copied: the ring may move meanwhile
        pthread_mutex_unlock(lock);
        cpu_do(&work);
        pthread_mutex_lock(lock);
        s->n_done++;
        if (s->n_waiters > 0) pthread_cond_broadcast(&s->moved);
    }
    pthread_mutex_unlock(lock);
    return NULL;
}

/// Signals are for the program's own threads: a stream must not run its handlers.
static int start_thread(cpu_stream *s) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&s->thread, NULL, work_through, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void free_stream(cpu_stream *s) {
    pthread_cond_destroy(&s->moved);
    pthread_cond_destroy(&s->has_work);
    tide_host_free(s->ring);
    tide_host_free(s);
}

static cpu_stream *new_stream(void) {
    cpu_stream *s = tide_host_calloc(1, sizeof *s);
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
static tide_status start(cpu_stream *s, tide_error *err) {
    if (tide__id_table_put(&cpu.streams, s->id, s) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a stream of the cpu");
    }
    const int failed = start_thread(s);
    if (failed == 0) return TIDE_OK;
    tide__id_table_remove(&cpu.streams, s->id);
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "no thread for a stream of the cpu: %s", strerror(failed));
}

static tide_status cpu_stream_create(void *self, int32_t index, tide_stream_id *out, tide_error *err) {
    (void)self, (void)index;
    cpu_stream *s = new_stream();
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

static void drop_capture(cpu_stream *s) {
    if (s->capture == NULL) return;
    cpu_capture_unref(s->capture);
    s->capture = NULL;
    TIDE_ASSERT(cpu.n_captured > 0);
    cpu.n_captured--;
}

static void cpu_stream_destroy(void *self, int32_t index, tide_stream_id stream) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    cpu_stream *s = tide__id_table_get(&cpu.streams, stream);
    if (s == NULL || s->closing) {
        // Another thread is ending it: when this call returns its work is done, too.
        if (s != NULL) cpu_reach((cpu_point){.stream = stream, .n = s->n_queued});
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
    tide__id_table_remove(&cpu.streams, stream);
    while (s->n_waiters > 0) pthread_cond_wait(&s->moved, lock);
    TIDE_ASSERT(s->n_done == s->n_queued && s->capture == NULL);
    free_stream(s);
    pthread_mutex_unlock(lock);
}

/// NULL with the reason when there is no such stream, or it is being destroyed and `even_closing` is false.
static cpu_stream *find(tide_stream_id id, bool even_closing, tide_status *st, tide_error *err) {
    cpu_stream *s = tide__id_table_get(&cpu.streams, id);
    if (s != NULL && (even_closing || !s->closing)) return s;
    *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the cpu has no stream %" PRIu64, id);
    return NULL;
}

static cpu_stream *unless_captured(cpu_stream *s, const char *what, tide_status *st, tide_error *err) {
    if (s == NULL || s->capture == NULL) return s;
    *st = TIDE_FAIL(err, TIDE_ERR_BUSY, "stream %" PRIu64 " of the cpu cannot %s while it is captured", s->id, what);
    return NULL;
}

static cpu_stream *cpu_find_stream(tide_stream_id id, tide_status *st, tide_error *err) {
    return find(id, false, st, err);
}

/// TIDE_ERR_BUSY while the stream is captured. `what` completes "… while it is captured".
static cpu_stream *cpu_find_live_stream(tide_stream_id id, const char *what, tide_status *st, tide_error *err) {
    return unless_captured(find(id, false, st, err), what, st, err);
}

/// The same, and one that is being destroyed as well: its last work can be waited for.
static cpu_stream *cpu_find_moving_stream(tide_stream_id id, const char *what, tide_status *st, tide_error *err) {
    return unless_captured(find(id, true, st, err), what, st, err);
}

/// Room for `n` items behind those that wait.
static tide_status make_room(cpu_stream *s, size_t n) {
    size_t need;
    if (!tide_add_size((size_t)(s->n_queued - s->n_done), n, &need)) return TIDE_ERR_NOMEM;
    size_t cap = s->cap;
    while (cap < need) {
        if (!tide_mul_size(cap, 2, &cap)) return TIDE_ERR_NOMEM;
    }
    if (cap == s->cap) return TIDE_OK;
    cpu_work *ring = tide_host_calloc(cap, sizeof *ring);
    if (ring == NULL) return TIDE_ERR_NOMEM;
    for (uint64_t i = s->n_done; i < s->n_queued; i++) ring[i & (cap - 1)] = s->ring[i & (s->cap - 1)];
    tide_host_free(s->ring);
    s->ring = ring;
    s->cap = cap;
    return TIDE_OK;
}

/// Put [n] items of work on the stream: all of them, or none with TIDE_ERR_NOMEM.
static tide_status cpu_queue(cpu_stream *s, const cpu_work *work, size_t n, tide_error *err) {
    if (make_room(s, n) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM,
                         "no host memory to queue %zu more on stream %" PRIu64 " of the cpu, which has %" PRIu64
                         " waiting",
                         n, s->id, s->n_queued - s->n_done);
    }
    TIDE_ASSERT((s->cap & (s->cap - 1)) == 0 && s->n_queued - s->n_done + n <= s->cap && s->capture == NULL);
    for (size_t i = 0; i < n; i++) s->ring[(s->n_queued + i) & (s->cap - 1)] = work[i];
    s->n_queued += n;
    if (n > 0) pthread_cond_signal(&s->has_work);
    return TIDE_OK;
}

static tide_status put(tide_stream_id stream, const cpu_work *work, tide_error *err) {
    tide_status st;
    cpu_stream *s = cpu_find_stream(stream, &st, err);
    if (s == NULL) return st;
    return s->capture != NULL ? cpu_keep(s->capture, work, err) : cpu_queue(s, work, 1, err);
}

/// Do the work now (stream 0), queue it, or keep it (a captured stream). The lock is not held.
static tide_status cpu_put(tide_stream_id stream, const cpu_work *work, tide_error *err) {
    if (stream == 0) {
        cpu_do(work);
        return TIDE_OK;
    }
    pthread_mutex_lock(lock);
    const tide_status st = put(stream, work, err);
    pthread_mutex_unlock(lock);
    return st;
}

static tide_status cpu_stream_sync(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    (void)self, (void)index;
    if (stream == 0) return TIDE_OK;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(lock);
    const cpu_stream *s = cpu_find_moving_stream(stream, "be waited for", &st, err);
    if (s != NULL) cpu_reach((cpu_point){.stream = stream, .n = s->n_queued});
    pthread_mutex_unlock(lock);
    return st;
}

// ---- events ----
//
// An event is the point in a stream where it was recorded last. A wait for it takes a copy of the point, so that a
// later record, or the end of the event, changes nothing for those that wait already (as in CUDA).

static tide_status cpu_event_create(void *self, int32_t index, tide_event_id *out, tide_error *err) {
    (void)self, (void)index;
    const tide_event_id id = tide_device_new_id();
    cpu_point *event = tide_host_calloc(1, sizeof *event); // stream 0, which has always reached everything
    tide_status st = event != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    if (st == TIDE_OK) {
        pthread_mutex_lock(lock);
        st = tide__id_table_put(&cpu.events, id, event);
        pthread_mutex_unlock(lock);
    }
    if (st != TIDE_OK) {
        tide_host_free(event);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for an event of the cpu");
    }
    *out = id;
    return TIDE_OK;
}

static void cpu_event_destroy(void *self, int32_t index, tide_event_id event) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    cpu_point *at = tide__id_table_remove(&cpu.events, event);
    pthread_mutex_unlock(lock);
    tide_host_free(at);
}

/// The lock is held. @return NULL with the reason
static cpu_point *find_event(tide_event_id id, tide_status *st, tide_error *err) {
    cpu_point *event = tide__id_table_get(&cpu.events, id);
    if (event == NULL) *st = TIDE_FAIL(err, TIDE_ERR_INVALID, "the cpu has no event %" PRIu64, id);
    return event;
}

static tide_status record(tide_event_id event, tide_stream_id stream, tide_error *err) {
    tide_status st = TIDE_OK;
    cpu_point *at = find_event(event, &st, err);
    if (at == NULL) return st;
    if (stream == 0) {
        *at = (cpu_point){0};
        return TIDE_OK;
    }
    const cpu_stream *s = cpu_find_moving_stream(stream, "record an event", &st, err);
    if (s == NULL) return st;
    *at = (cpu_point){.stream = stream, .n = s->n_queued};
    return TIDE_OK;
}

static tide_status cpu_event_record(void *self, int32_t index, tide_event_id event, tide_stream_id stream,
                                    tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = record(event, stream, err);
    pthread_mutex_unlock(lock);
    return st;
}

static tide_status query(tide_event_id event, bool *done, tide_error *err) {
    tide_status st;
    const cpu_point *at = find_event(event, &st, err);
    if (at == NULL) return st;
    if (cpu.n_captured > 0) {
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "event %" PRIu64 " of the cpu cannot be asked while a stream is captured",
                         event);
    }
    *done = cpu_is_reached(*at);
    return TIDE_OK;
}

static tide_status cpu_event_query(void *self, int32_t index, tide_event_id event, bool *done, tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = query(event, done, err);
    pthread_mutex_unlock(lock);
    return st;
}

static tide_status cpu_event_sync(void *self, int32_t index, tide_event_id event, tide_error *err) {
    (void)self, (void)index;
    tide_status st = TIDE_OK;
    pthread_mutex_lock(lock);
    const cpu_point *at = find_event(event, &st, err);
    if (at != NULL) cpu_reach(*at);
    pthread_mutex_unlock(lock);
    return st;
}

static tide_status wait_event(tide_stream_id stream, tide_event_id event, tide_error *err) {
    tide_status st = TIDE_OK;
    const cpu_point *at = find_event(event, &st, err);
    if (at == NULL) return st;
    if (stream == 0) {
        cpu_reach(*at);
        return TIDE_OK;
    }
    cpu_stream *s = cpu_find_live_stream(stream, "wait for an event", &st, err);
    if (s == NULL || cpu_is_reached(*at)) return st;
    const cpu_work work = {.kind = CPU_WAIT, .as.point = *at};
    return cpu_queue(s, &work, 1, err);
}

static tide_status cpu_stream_wait_event(void *self, int32_t index, tide_stream_id stream, tide_event_id event,
                                         tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = wait_event(stream, event, err);
    pthread_mutex_unlock(lock);
    return st;
}

// ---- captures ----
//
// Work put on a captured stream goes into a list of its own; a launch queues the whole list. Events stay outside of
// captures here, so a list holds copies, fills and calls only.

static tide_status begin(tide_stream_id stream, tide_error *err) {
    if (stream == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "the default stream of the cpu cannot be captured");
    tide_status st;
    cpu_stream *s = cpu_find_live_stream(stream, "be captured again", &st, err);
    if (s == NULL) return st;
    cpu_capture *c = tide_host_calloc(1, sizeof *c);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the capture of a stream of the cpu");
    c->id = tide_device_new_id();
    c->n_refs = 1;
    s->capture = c;
    cpu.n_captured++;
    return TIDE_OK;
}

static tide_status cpu_capture_begin(void *self, int32_t index, tide_stream_id stream, tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = begin(stream, err);
    pthread_mutex_unlock(lock);
    return st;
}

/// Without memory the stream stays captured, and ending can be tried again.
static tide_status end(tide_stream_id stream, tide_capture_id *out, tide_error *err) {
    tide_status st;
    cpu_stream *s = cpu_find_stream(stream, &st, err);
    if (s == NULL) return st;
    if (s->capture == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "stream %" PRIu64 " of the cpu is not captured", stream);
    if (tide__id_table_put(&cpu.captures, s->capture->id, s->capture) != TIDE_OK) {
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the capture of stream %" PRIu64 " of the cpu",
                         stream);
    }
    *out = s->capture->id;
    s->capture = NULL;
    TIDE_ASSERT(cpu.n_captured > 0);
    cpu.n_captured--;
    return TIDE_OK;
}

static tide_status cpu_capture_end(void *self, int32_t index, tide_stream_id stream, tide_capture_id *out,
                                   tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = end(stream, out, err);
    pthread_mutex_unlock(lock);
    return st;
}

/// On the calling thread, as all work of stream 0. Gives the lock up meanwhile.
static void launch_here(cpu_capture *c) {
    c->n_refs++;
    pthread_mutex_unlock(lock);
    for (size_t i = 0; i < c->n; i++) cpu_do(&c->work[i]);
    pthread_mutex_lock(lock);
    cpu_capture_unref(c);
}

static tide_status launch(tide_capture_id capture, tide_stream_id stream, tide_error *err) {
    cpu_capture *c = tide__id_table_get(&cpu.captures, capture);
    if (c == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "the cpu has no capture %" PRIu64, capture);
    if (stream == 0) {
        launch_here(c);
        return TIDE_OK;
    }
    tide_status st;
    cpu_stream *s = cpu_find_live_stream(stream, "launch a capture", &st, err);
    return s != NULL ? cpu_queue(s, c->work, c->n, err) : st;
}

static tide_status cpu_capture_launch(void *self, int32_t index, tide_capture_id capture, tide_stream_id stream,
                                      tide_error *err) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    const tide_status st = launch(capture, stream, err);
    pthread_mutex_unlock(lock);
    return st;
}

static void cpu_capture_destroy(void *self, int32_t index, tide_capture_id capture) {
    (void)self, (void)index;
    pthread_mutex_lock(lock);
    cpu_capture_unref(tide__id_table_remove(&cpu.captures, capture));
    pthread_mutex_unlock(lock);
}

// ---- the table ----

static int32_t count(void *self) {
    (void)self;
    return 1;
}

static tide_status mem_alloc(void *self, int32_t index, size_t size_bytes, size_t align_bytes, void **out,
                             tide_error *err) {
    (void)self, (void)index;
    if (size_bytes == 0 || !tide_is_pow2(align_bytes)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cpu memory: %zu bytes aligned to %zu were asked for", size_bytes,
                         align_bytes);
    }
    // C17 7.22.3.1 wanted the size to be a multiple of the alignment until DR 460; rounding keeps to both.
    uint64_t rounded;
    const bool fits = tide_align_up(size_bytes, align_bytes, &rounded) && rounded <= PTRDIFF_MAX;
    // Bare, as tide__system_alloc: this is the memory that is studied, not our own bookkeeping.
    void *ptr = fits ? aligned_alloc(align_bytes, (size_t)rounded) : NULL;
    if (ptr == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "the system has no %zu bytes of cpu memory", size_bytes);
    *out = ptr;
    return TIDE_OK;
}

static void mem_free(void *self, int32_t index, void *ptr) {
    (void)self, (void)index;
    free(ptr);
}

static tide_status copy(void *self, int32_t index, tide_stream_id stream, tide_copy_direction direction, void *dst,
                        const void *src, size_t size_bytes, tide_error *err) {
    (void)self, (void)index;
    if ((unsigned)direction > TIDE_COPY_WITHIN_DEVICE) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%d is no direction of a copy", (int)direction);
    }
    if (size_bytes > 0 && (dst == NULL || src == NULL)) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a copy of %zu bytes has no %s", size_bytes,
                         dst == NULL ? "destination" : "source");
    }
    const cpu_work work = {.kind = CPU_COPY, .as.bytes = {.dst = dst, .src = src, .size_bytes = size_bytes}};
    return cpu_put(stream, &work, err);
}

static tide_status fill(void *self, int32_t index, tide_stream_id stream, void *dst, unsigned char byte,
                        size_t size_bytes, tide_error *err) {
    (void)self, (void)index;
    if (size_bytes > 0 && dst == NULL) {
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a fill of %zu bytes has no destination", size_bytes);
    }
    const cpu_work work = {.kind = CPU_FILL, .byte = byte, .as.bytes = {.dst = dst, .size_bytes = size_bytes}};
    return cpu_put(stream, &work, err);
}

static tide_status call(void *self, int32_t index, tide_stream_id stream, void (*fn)(void *arg), void *arg,
                        tide_error *err) {
    (void)self, (void)index;
    if (fn == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a call in stream order has no function");
    const cpu_work work = {.kind = CPU_CALL, .as.call = {.fn = fn, .arg = arg}};
    return cpu_put(stream, &work, err);
}

const tide_device_ops tide__cpu_device_ops = {
    .abi = TIDE_DEVICE_ABI,
    .name = "cpu",
    .count = count,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .copy = copy,
    .fill = fill,
    .call = call,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_sync = cpu_stream_sync,
    .stream_wait_event = cpu_stream_wait_event,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_query = cpu_event_query,
    .event_sync = cpu_event_sync,
    .capture_begin = cpu_capture_begin,
    .capture_end = cpu_capture_end,
    .capture_launch = cpu_capture_launch,
    .capture_destroy = cpu_capture_destroy,
};
