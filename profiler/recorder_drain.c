// SPDX-License-Identifier: MIT
//
// Who drains a recorder's feed: a thread of this process, a collector process, or the collector of another program. A
// collector that dies is noticed when a ring is full, at a flush and at the end; then a thread of this process goes on
// where it stood. See recorder_internal.h.
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/text.h"
#include "profiler/feed/process_stat.h"
#include "profiler/recorder_internal.h"

enum {
    PATIENCE_NS = 10, ///< seconds until a collector must have taken a new feed
    MAX_WAIT_S = 30,  ///< for one that does not move, unless the options say another time
    LOOK_NAPS = 50,   ///< between two looks whether it was stopped
};

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static uint32_t drain_state(const tide_recorder *r) {
    return atomic_load_explicit(&tide__feed_head(r->feed)->drain, memory_order_acquire);
}

/// The drain, of which nothing is needed as long as another process has one. Opening a trace, with the drain's lock, or
/// when no other thread calls.
static tide_status need_engine(tide_recorder *r, tide_error *err) {
    return r->engine != NULL ? TIDE_OK : tide__engine_get(&r->engine, err);
}

static tide_status start_thread(tide_recorder *r, tide_error *err) {
    TIDE_TRY(need_engine(r, err));
    const tide__drain_options opt = {.trace_path = r->path,
                                     .form = r->opt.form,
                                     .max_bytes = r->opt.max_bytes,
                                     .batch_events = r->opt.batch_events,
                                     .hold_back_ms = r->opt.hold_back_ms,
                                     .attached_late = r->opt.attached_late,
                                     .quiet = r->opt.quiet};
    return r->engine->thread_start(&opt, &r->thread, err);
}

// ---- begin ----

bool tide__recorder_is_taken(const tide_recorder *r) { return r->feed != NULL && drain_state(r) != TIDE__DRAIN_NONE; }

static tide_status make_trace_here(tide_recorder *r, const char *path, tide_error *err) {
    TIDE_TRY(need_engine(r, err));
    if (path[0] != '\0') TIDE_TRY(tide__drain_lock_making(r->path, &r->making, err));
    TIDE_TRY(r->engine->create(path, err));
    r->created = true;
    return TIDE_OK;
}

tide_status tide__recorder_make_trace(tide_recorder *r, const char *path, tide_error *err) {
    switch (r->opt.drain) {
    case TIDE_RECORD_THREAD:
        return make_trace_here(r, path, err);
    case TIDE_RECORD_PROCESS:
        TIDE_TRY(tide__collector_start(r, path, &r->collector, err));
        r->created = true;
        return TIDE_OK;
    case TIDE_RECORD_ATTACH:
        if (path[0] != '\0' && tide__drain_is_locked(r->path)) return TIDE_OK;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot record into '%s': no collector is there", path);
        tide_error_hint(err, "start one with: tidemark record -o TRACE -- COMMAND");
        return st;
    }
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': no such drain", path);
}

/// A collector looks for new feeds all the time; it has made our row when it says that it takes the events.
static tide_status wait_until_taken(const tide_recorder *r, tide_error *err) {
    const uint64_t since = tide_now_ns();
    while (drain_state(r) == TIDE__DRAIN_NONE) {
        const bool late = tide_now_ns() - since > (uint64_t)PATIENCE_NS * 1000000000;
        if (late || !tide__drain_is_locked(r->path))
            return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot record into '%s': no collector took the events%s",
                             r->path, late ? " in time" : "");
        nap();
    }
    return tide__recorder_failure(r, err);
}

tide_status tide__recorder_start_drain(tide_recorder *r, tide_error *err) {
    return r->opt.drain == TIDE_RECORD_THREAD ? start_thread(r, err) : wait_until_taken(r, err);
}

// ---- while it records ----

/// With the lock. Whether our collector has ended; then it is reaped.
static bool collector_has_ended(tide_recorder *r) {
    if (r->collector == 0) return true;
    int how;
    pid_t got;
    do got = waitpid(r->collector, &how, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    r->collector = 0; // or other code of the program has reaped it
    return true;
}

/// With the lock. No drain is left: start one here.
static bool take_over(tide_recorder *r) {
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = start_thread(r, &why);
    if (st == TIDE_ERR_BUSY) return true; // another of the recorded processes was faster
    if (!r->opt.quiet) {
        if (st == TIDE_OK)
            tide_log(TIDE_LOG_WARN, "recording into '%s': the collector is gone; this process goes on in its place",
                     r->path);
        else
            tide_log(TIDE_LOG_WARN, "recording into '%s': the collector is gone: %s", r->path, why.msg);
    }
    return st == TIDE_OK;
}

/// With the lock.
static bool drain_lives(tide_recorder *r) {
    const uint32_t state = drain_state(r);
    if (state == TIDE__DRAIN_FAILED || state == TIDE__DRAIN_DONE) return true; // it has reported that
    if (r->thread != NULL) {
        r->engine->thread_hurry(r->thread);
        return !r->engine->thread_has_ended(r->thread);
    }
    const bool is_gone = r->opt.drain == TIDE_RECORD_PROCESS ? collector_has_ended(r) : !tide__drain_is_locked(r->path);
    return !is_gone || take_over(r);
}

bool tide__recorder_drain_lives(void *self) {
    tide_recorder *r = self;
    pthread_mutex_lock(&r->drain_lock);
    const bool lives = drain_lives(r);
    pthread_mutex_unlock(&r->drain_lock);
    return lives;
}

void tide__recorder_hurry(tide_recorder *r) {
    pthread_mutex_lock(&r->drain_lock);
    if (r->thread != NULL) r->engine->thread_release(r->thread);
    pthread_mutex_unlock(&r->drain_lock);
}

// ---- one that does not move ----

uint64_t tide__recorder_max_wait(const tide_recorder *r) {
    return r->opt.max_wait_ns != 0 ? r->opt.max_wait_ns : (uint64_t)MAX_WAIT_S * 1000000000;
}

/// The process that drains; 0: it is this one, or not known. Without the lock.
static pid_t drain_pid(const tide_recorder *recorder) {
    tide_recorder *r = (tide_recorder *)(uintptr_t)recorder; // a lock is no change
    pthread_mutex_lock(&r->drain_lock);
    const bool has_thread = r->thread != NULL;
    const pid_t collector = r->collector;
    pthread_mutex_unlock(&r->drain_lock);
    if (has_thread || drain_state(r) == TIDE__DRAIN_NONE) return collector;
    return (pid_t)atomic_load_explicit(&tide__feed_head(r->feed)->drain_pid, memory_order_relaxed);
}

/// By a signal, or by who debugs it. In another container than ours it would be another process: who is not there, or
/// runs, is not taken for stopped.
static bool is_stopped(const tide_recorder *r) {
    const pid_t pid = drain_pid(r);
    if (pid <= 0 || pid == getpid()) return false;
    char path[48], state;
    uint64_t ticks;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    return tide__process_stat(path, &state, &ticks) && (state == 'T' || state == 't');
}

bool tide__recorder_is_stopped_too_long(const tide_recorder *r, uint64_t *since_ns) {
    const uint64_t max_ns = tide__recorder_max_wait(r), now = tide_now_ns();
    if (!is_stopped(r)) {
        *since_ns = 0;
    } else if (*since_ns == 0) {
        *since_ns = now;
    }
    return *since_ns != 0 && now - *since_ns >= max_ns;
}

tide_status tide__recorder_stopped(const tide_recorder *r, const char *what, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot %s '%s': its collector, process %ld, is stopped", what,
                                     r->path, (long)drain_pid(r));
    tide_error_hint(
        err, "what is not in the trace yet is in its feed, and is taken once the collector goes on (kill -CONT)");
    return st;
}

void tide__recorder_drain_stalls(void *self) {
    const tide_recorder *r = self;
    if (r->opt.quiet) return;
    tide_log(
        TIDE_LOG_WARN,
        "recording into '%s': nothing was taken from a full ring for %.3g s%s; events are dropped and counted until "
        "that goes on",
        r->path, (double)tide__recorder_max_wait(r) / 1e9, is_stopped(r) ? ", the collector is stopped" : "");
}

// ---- end ----

tide_status tide__recorder_failure(const tide_recorder *r, tide_error *err) {
    if (drain_state(r) != TIDE__DRAIN_FAILED) return TIDE_OK;
    const tide__feed_header *head = tide__feed_head(r->feed);
    const tide_status st = head->has_no_memory != 0 ? TIDE_ERR_NOMEM : TIDE_ERR_WRITE;
    return TIDE_FAIL(err, st, "%.*s", (int)strnlen(head->error, sizeof head->error), head->error);
}

/// Until it has ended; false: it was stopped, and for too long (only with `may_give_up`). *how as of waitpid; -1: other
/// code of the program has reaped it.
static bool wait_for_collector(tide_recorder *r, bool may_give_up, int *how) {
    uint64_t stopped_ns = 0;
    *how = -1;
    for (unsigned i = 1;; i++) {
        const pid_t got = r->collector > 0 ? waitpid(r->collector, how, WNOHANG) : -2;
        if (got <= 0) *how = -1;
        // Other code of the program may reap our children: then the lock tells.
        if (got > 0 || got == -2 || (got < 0 && errno != EINTR && !tide__drain_is_locked(r->path))) break;
        if (may_give_up && i % LOOK_NAPS == 0 && tide__recorder_is_stopped_too_long(r, &stopped_ns)) return false;
        nap();
    }
    r->collector = 0;
    return true;
}

static tide_status end_thread(tide_recorder *r, tide_error *err) {
    if (r->opt.drain == TIDE_RECORD_ATTACH) r->engine->thread_leave(r->thread, tide__feed_path(r->feed));
    const tide_status st = r->engine->thread_join(r->thread, err);
    r->thread = NULL;
    return st;
}

/// The collector was killed, or failed, or how it ended is not known: look at the file, and do what is left to do.
static tide_status finish_for_collector(tide_recorder *r, tide_error *err) {
    bool finished;
    TIDE_TRY(need_engine(r, err));
    TIDE_TRY(r->engine->is_finished(r->path, &finished, err));
    if (finished) {
        tide__feed_stats s;
        tide__feed_get_stats(r->feed, &s);
        return r->engine->check_file(r->path, s.n_events, s.n_lost, err);
    }
    if (!r->opt.quiet)
        tide_log(TIDE_LOG_WARN, "recording into '%s': the collector is gone; this process writes the rest", r->path);
    TIDE_TRY(start_thread(r, err));
    return end_thread(r, err);
}

/// Our collector has ended, in whatever way. One that ended well has finished the trace and compared it with what we
/// counted.
static tide_status end_with_collector(tide_recorder *r, tide_error *err) {
    int how;
    if (!wait_for_collector(r, true, &how)) return tide__recorder_stopped(r, "finish", err);
    TIDE_TRY(tide__recorder_failure(r, err));
    return how == 0 ? TIDE_OK : finish_for_collector(r, err);
}

/// Others record into the trace, too: only our own part has to be in it.
static tide_status end_attached(tide_recorder *r, tide_error *err) {
    uint64_t stopped_ns = 0;
    for (unsigned i = 1;; i++) {
        TIDE_TRY(tide__recorder_failure(r, err));
        if (drain_state(r) == TIDE__DRAIN_DONE) return TIDE_OK;
        if (i % LOOK_NAPS == 0 && tide__recorder_is_stopped_too_long(r, &stopped_ns))
            return tide__recorder_stopped(r, "finish", err);
        if (!tide__drain_is_locked(r->path) && drain_state(r) != TIDE__DRAIN_DONE) {
            if (!take_over(r)) return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "the collector of '%s' is gone", r->path);
            if (r->thread != NULL) break;
        }
        nap();
    }
    return end_thread(r, err);
}

tide_status tide__recorder_end_drain(tide_recorder *r, tide_error *err) {
    // No callback runs any more: no other thread takes the lock.
    if (r->thread != NULL) return end_thread(r, err);
    return r->opt.drain == TIDE_RECORD_PROCESS ? end_with_collector(r, err) : end_attached(r, err);
}

void tide__recorder_stop_drain(tide_recorder *r) {
    int how;
    if (r->thread != NULL) r->engine->thread_abandon(r->thread);
    r->thread = NULL;
    if (r->collector <= 0) return;
    kill(r->collector, SIGKILL);
    (void)!wait_for_collector(r, false, &how);
}
