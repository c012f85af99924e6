// SPDX-License-Identifier: MIT
//
// The worker thread and its queue of requests. See worker.h.
//
//     submit -> slot WAITING -> RUNNING -> DONE -> take
//                    |             |         |
//                    +-- replaced or cancelled: the request is released; one that runs, by the thread when it ends
//
// Everything below `lock` is read and written with the lock held; `run` itself is called without it. A request that is
// cancelled while it runs leaves its slot at once, so that the next one can wait there.
#include "tui/scene/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/text.h"

enum { NS_PER_MS = 1000000, WAKE_EVERY_MS = 50, NO_SLOT = -1 };

typedef enum slot_state { SLOT_EMPTY, SLOT_WAITING, SLOT_RUNNING, SLOT_DONE } slot_state;

typedef struct slot {
    slot_state state;
    tide_tui_request request;
    uint64_t order;   ///< requests run in the order in which they came
    uint64_t took_ns; ///< by the last request of this slot
    tide_status status;
    tide_error err;
    double share;
    char what[48];
} slot;

/// How the thread gets a subject: a plan is copied by the caller; a trace, which takes long to open, is opened by the
/// thread itself when the first request comes, with what it shares with the caller's.
typedef struct source {
    tide_subject *subject;
    char *path;                ///< to be opened; owned; NULL: nothing, or opened
    tide_trace_shared *shared; ///< owned; NULL: nothing, or the trace is still being recorded
    int64_t run_id;
} source;

typedef struct subjects {
    source a, b;
    tide_error open_error; ///< why one of them could not be opened
} subjects;

struct tide_tui_worker {
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t lock;
    pthread_cond_t has_work, moved;
    bool stops;
    slot slots[TIDE_TUI_MAX_REQUESTS];
    uint64_t n_submitted;
    int running;       ///< slot of the request that runs, or ran when it was cancelled; NO_SLOT
    bool is_cancelled; ///< the request that runs
    uint64_t running_since_ns, woke_ns;
    bool has_next; ///< `next` replaces `now` before the next request
    subjects next;
    const tide_subject *source_a; ///< the caller's subject that now.a (or next.a) was opened from
    subjects now;                 ///< the thread's own, without the lock
};

static void drop_source(source *s) {
    tide_subject_destroy(s->subject);
    tide_host_free(s->path);
    tide_trace_shared_drop(s->shared);
    *s = (source){0};
}

static void drop_subjects(subjects *s) {
    drop_source(&s->a);
    drop_source(&s->b);
    s->open_error = (tide_error){0};
}

/// Called by the thread that `from` belongs to.
static tide_status note_source(const tide_subject *from, source *out, tide_error *err) {
    *out = (source){0};
    if (from == NULL) return TIDE_OK;
    const tide_subject_facts *f = tide_subject_get_facts(from);
    if (!f->is_trace) return tide_subject_again(from, &out->subject, err);
    out->run_id = f->run_id;
    TIDE_TRY(TIDE_COPY_TEXT(&out->path, f->path, err, "for a path"));
    const tide_status st = tide_subject_share(from, &out->shared, err);
    if (st != TIDE_OK) drop_source(out);
    return st;
}

static void open_source(source *s, tide_error *open_error) {
    if (s->path == NULL) return;
    (void)!tide_subject_of_shared(s->path, s->shared, s->run_id, &s->subject, open_error);
    tide_trace_shared_drop(s->shared);
    tide_host_free(s->path);
    s->shared = NULL;
    s->path = NULL;
}

static void wake(const tide_tui_worker *w) {
    const uint64_t one = 1;
    // A full counter is readable, too.
    if (write(w->wake_fd, &one, sizeof one) < 0) return;
}

// ---- the thread ----

static bool report_progress(void *ctx, double share, const char *what) {
    tide_tui_worker *w = ctx;
    pthread_mutex_lock(&w->lock);
    const bool goes_on = !w->is_cancelled && !w->stops;
    if (goes_on) {
        TIDE_ASSERT(w->running != NO_SLOT && w->slots[w->running].state == SLOT_RUNNING);
        slot *s = &w->slots[w->running];
        s->share = share;
        size_t n = strlen(what);
        if (n >= sizeof s->what) n = sizeof s->what - 1;
        memcpy(s->what, what, n);
        s->what[n] = '\0';
        const uint64_t now = tide_now_ns();
        if (now - w->woke_ns >= (uint64_t)WAKE_EVERY_MS * NS_PER_MS) {
            w->woke_ns = now;
            wake(w);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

static int next_slot(const tide_tui_worker *w) {
    int found = NO_SLOT;
    for (int i = 0; i < TIDE_TUI_MAX_REQUESTS; i++) {
        if (w->slots[i].state != SLOT_WAITING) continue;
        if (found == NO_SLOT || w->slots[i].order < w->slots[found].order) found = i;
    }
    return found;
}

/// Called with the lock held, which is released while subjects are closed.
static void take_new_subjects(tide_tui_worker *w) {
    subjects old = w->now;
    w->now = w->next;
    if (w->now.a.subject == NULL && w->now.a.path == NULL) {
        w->now.a = old.a; // the same A stays, with what it has loaded
        if (old.a.subject == NULL) w->now.open_error = old.open_error;
        old.a = (source){0};
    }
    w->next = (subjects){0};
    w->has_next = false;
    pthread_mutex_unlock(&w->lock);
    drop_subjects(&old);
    pthread_mutex_lock(&w->lock);
}

/// Called with the lock held, which is released while the request runs.
static void run_request(tide_tui_worker *w, int at) {
    slot *s = &w->slots[at];
    s->state = SLOT_RUNNING;
    const tide_tui_request request = s->request;
    w->running = at;
    w->is_cancelled = false;
    w->running_since_ns = tide_now_ns();
    pthread_mutex_unlock(&w->lock);

    tide_error err = TIDE_ERROR_INIT;
    const tide_progress progress = {report_progress, w};
    open_source(&w->now.a, &w->now.open_error);
    open_source(&w->now.b, &w->now.open_error);
    tide_status status = w->now.open_error.status;
    if (status == TIDE_OK)
        status = request.run(request.ctx, w->now.a.subject, w->now.b.subject, &progress, &err);
    else
        err = w->now.open_error;

    pthread_mutex_lock(&w->lock);
    TIDE_ASSERT(w->running == at);
    const bool is_kept = !w->is_cancelled;
    w->slots[at].took_ns = tide_now_ns() - w->running_since_ns;
    w->running = NO_SLOT;
    if (is_kept) {
        s->status = status;
        s->err = err;
        s->state = SLOT_DONE;
        pthread_cond_broadcast(&w->moved);
        wake(w);
        return;
    }
    pthread_mutex_unlock(&w->lock);
    if (request.release != NULL) request.release(request.ctx);
    pthread_mutex_lock(&w->lock);
}

static void *thread_main(void *arg) {
    tide_tui_worker *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stops) {
        if (w->has_next) {
            take_new_subjects(w);
            continue;
        }
        const int at = next_slot(w);
        if (at == NO_SLOT)
            pthread_cond_wait(&w->has_work, &w->lock);
        else
            run_request(w, at);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// ---- starting and stopping ----

/// Signals go to the thread that has the terminal. Those of a crash are not blocked here: blocked, they would end the
/// program without the handler that restores the screen.
static int start_thread(tide_tui_worker *w) {
    static const int of_crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof of_crashes / sizeof of_crashes[0]; i++) sigdelset(&all, of_crashes[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&w->thread, NULL, thread_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void make_locks(tide_tui_worker *w) {
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->has_work, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->moved, &attr);
    pthread_condattr_destroy(&attr);
}

static void free_worker(tide_tui_worker *w) {
    if (w->wake_fd >= 0) close(w->wake_fd);
    pthread_cond_destroy(&w->moved);
    pthread_cond_destroy(&w->has_work);
    pthread_mutex_destroy(&w->lock);
    drop_subjects(&w->now);
    drop_subjects(&w->next);
    tide_host_free(w);
}

tide_status tide_tui_worker_start(const tide_subject *a, const tide_subject *b, tide_tui_worker **out,
                                  tide_error *err) {
    *out = NULL;
    tide_tui_worker *w;
    TIDE_TRY(TIDE_NEW(&w, 1, err, "for a worker thread"));
    w->running = NO_SLOT;
    w->source_a = a;
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    make_locks(w);
    tide_status st = TIDE_OK;
    if (w->wake_fd < 0) st = TIDE_FAIL(err, TIDE_ERR_IO, "cannot make an event descriptor: %s", strerror(errno));
    if (st == TIDE_OK) st = note_source(a, &w->now.a, err);
    if (st == TIDE_OK) st = note_source(b, &w->now.b, err);
    const int failed = st == TIDE_OK ? start_thread(w) : 0;
    if (failed != 0) st = TIDE_FAIL(err, TIDE_ERR_IO, "cannot start a worker thread: %s", strerror(failed));
    if (st != TIDE_OK)
        free_worker(w);
    else
        *out = w;
    return st;
}

/// Called with the lock held. The slot is empty afterwards; *dropped must be released without the lock, unless its run
/// is NULL.
static void clear_slot(tide_tui_worker *w, int at, tide_tui_request *dropped) {
    TIDE_ASSERT(at >= 0 && at < TIDE_TUI_MAX_REQUESTS);
    slot *s = &w->slots[at];
    *dropped = (tide_tui_request){0};
    if (s->state == SLOT_RUNNING)
        w->is_cancelled = true; // the thread releases it
    else if (s->state != SLOT_EMPTY)
        *dropped = s->request;
    s->state = SLOT_EMPTY;
    s->share = 0;
    s->what[0] = '\0';
}

static void release_request(const tide_tui_request *request) {
    if (request->run != NULL && request->release != NULL) request->release(request->ctx);
}

void tide_tui_worker_cancel(tide_tui_worker *w, int at) {
    tide_tui_request dropped;
    pthread_mutex_lock(&w->lock);
    clear_slot(w, at, &dropped);
    pthread_mutex_unlock(&w->lock);
    release_request(&dropped);
}

void tide_tui_worker_stop(tide_tui_worker *w) {
    if (w == NULL) return;
    for (int i = 0; i < TIDE_TUI_MAX_REQUESTS; i++) tide_tui_worker_cancel(w, i);
    pthread_mutex_lock(&w->lock);
    w->stops = true;
    pthread_cond_broadcast(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    free_worker(w);
}

tide_status tide_tui_worker_set_subjects(tide_tui_worker *w, const tide_subject *a, const tide_subject *b,
                                         tide_error *err) {
    for (int i = 0; i < TIDE_TUI_MAX_REQUESTS; i++) tide_tui_worker_cancel(w, i);
    subjects fresh = {0};
    if (a != w->source_a) TIDE_TRY(note_source(a, &fresh.a, err));
    const tide_status st = note_source(b, &fresh.b, err);
    if (st != TIDE_OK) {
        drop_subjects(&fresh);
        return st;
    }
    const tide_subject *before = w->source_a;
    w->source_a = a;
    pthread_mutex_lock(&w->lock);
    subjects unused = w->next; // that the thread has not taken yet
    if (a == before) {
        fresh.a = unused.a;
        unused.a = (source){0};
    }
    w->next = fresh;
    w->has_next = true;
    pthread_cond_signal(&w->has_work);
    pthread_mutex_unlock(&w->lock);
    drop_subjects(&unused);
    return TIDE_OK;
}

// ---- requests ----

int tide_tui_worker_wake_fd(const tide_tui_worker *w) { return w->wake_fd; }

void tide_tui_worker_drain_wake(tide_tui_worker *w) {
    uint64_t n;
    if (read(w->wake_fd, &n, sizeof n) < 0) return;
}

static struct timespec timespec_of(uint64_t until) {
    return (struct timespec){.tv_sec = (time_t)(until / 1000000000U), .tv_nsec = (long)(until % 1000000000U)};
}

/// Called with the lock held. Waits a few milliseconds for a quick result: not behind a long request, and not when the
/// last request of this slot took longer.
static void wait_briefly(tide_tui_worker *w, int at) {
    const uint64_t limit_ns = (uint64_t)TIDE_TUI_WAIT_MS * NS_PER_MS, now = tide_now_ns();
    if (w->slots[at].took_ns > limit_ns) return;
    const bool is_behind_long_one = w->running != NO_SLOT && w->running != at && !w->is_cancelled &&
                                    now - w->running_since_ns > limit_ns; // one that is cancelled ends soon
    if (is_behind_long_one) return;
    const uint64_t wait_until_ns = w->slots[at].request.wait_until_ns;
    const struct timespec until = timespec_of(wait_until_ns > 0 ? wait_until_ns : now + limit_ns);
    while (w->slots[at].state != SLOT_DONE) {
        if (pthread_cond_timedwait(&w->moved, &w->lock, &until) != 0) return;
    }
}

tide_status tide_tui_worker_submit(tide_tui_worker *w, const tide_tui_request *request, tide_error *err) {
    if (request->slot < 0 || request->slot >= TIDE_TUI_MAX_REQUESTS || request->run == NULL) {
        if (request->release != NULL) request->release(request->ctx);
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a question of sort %d", request->slot);
    }
    tide_tui_request dropped;
    pthread_mutex_lock(&w->lock);
    clear_slot(w, request->slot, &dropped);
    slot *s = &w->slots[request->slot];
    s->request = *request;
    s->order = ++w->n_submitted;
    s->state = SLOT_WAITING;
    pthread_cond_signal(&w->has_work);
    wait_briefly(w, request->slot);
    pthread_mutex_unlock(&w->lock);
    release_request(&dropped);
    return TIDE_OK;
}

bool tide_tui_worker_take(tide_tui_worker *w, int at, uint64_t key, void **ctx, tide_status *status, tide_error *err) {
    pthread_mutex_lock(&w->lock);
    slot *s = &w->slots[at];
    const bool is_there = s->state == SLOT_DONE && s->request.key == key;
    if (is_there) {
        *ctx = s->request.ctx;
        *status = s->status;
        if (err != NULL) *err = s->err;
        s->state = SLOT_EMPTY;
    }
    pthread_mutex_unlock(&w->lock);
    return is_there;
}

void tide_tui_worker_progress(tide_tui_worker *w, int at, char *buf, size_t buf_bytes) {
    tide_text text = {0};
    pthread_mutex_lock(&w->lock);
    const slot *s = &w->slots[at];
    const bool has_progress = w->running != NO_SLOT && !w->is_cancelled && w->slots[w->running].what[0] != '\0';
    const slot *first = has_progress ? &w->slots[w->running] : NULL; // the request that it waits for
    if (s->state == SLOT_RUNNING && s->what[0] != '\0')
        tide_text_addf(&text, "%s %.0f %%", s->what, 100 * s->share);
    else if (s->state == SLOT_RUNNING)
        tide_text_add(&text, "working");
    else if (s->state == SLOT_WAITING && first != NULL)
        tide_text_addf(&text, "%s %.0f %%, then this", first->what, 100 * first->share);
    else if (s->state == SLOT_WAITING)
        tide_text_add(&text, "waiting");
    pthread_mutex_unlock(&w->lock);
    size_t n = text.len < buf_bytes ? text.len : buf_bytes - 1;
    memcpy(buf, tide_text_str(&text), n);
    buf[n] = '\0';
    tide_text_deinit(&text);
}

bool tide_tui_worker_is_busy(tide_tui_worker *w, int at, uint64_t key) {
    pthread_mutex_lock(&w->lock);
    const slot *s = &w->slots[at];
    const bool busy = (s->state == SLOT_WAITING || s->state == SLOT_RUNNING) && s->request.key == key;
    pthread_mutex_unlock(&w->lock);
    return busy;
}
