// SPDX-License-Identifier: MIT
//
// A drain in a thread of the recorded process. It blocks all signals: those are the program's.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/drain/drain_internal.h"

struct tide__drain_thread {
    tide__drain *drain;
    pthread_t thread;
    pthread_mutex_t lock; ///< guards the four below
    pthread_cond_t wake;
    bool hurry, give_up, release;
    const char *leave; ///< feed whose end is the end of the thread; NULL: all must have ended
    bool has_ended;    ///< it drains no more
    tide_status st;    ///< of its end
    tide_error err;
};

/// Sleep for up to `ns`. @return whether to go on
static bool pause_for(tide__drain_thread *t, uint64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec += (long)(ns % 1000000000);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&t->lock);
    while (ns > 0 && !t->hurry && !t->give_up) {
        if (pthread_cond_timedwait(&t->wake, &t->lock, &until) == ETIMEDOUT) break;
    }
    const bool go_on = !t->give_up;
    pthread_mutex_unlock(&t->lock);
    return go_on;
}

/// Until a round is due.
static bool wait_for_round(tide__drain_thread *t, size_t n_events) {
    const uint64_t since = tide_now_ns();
    unsigned idle = 0;
    for (;;) {
        const uint64_t ns = tide__drain_pause_ns(t->drain, n_events, since, &idle);
        if (!pause_for(t, ns)) return false;
        pthread_mutex_lock(&t->lock);
        const bool hurry = t->hurry;
        t->hurry = false;
        if (t->release) tide__drain_release(t->drain);
        t->release = false;
        pthread_mutex_unlock(&t->lock);
        if (hurry || ns == 0) return true;
    }
}

/// Others still record, but not the process that this thread is of.
static bool may_leave(tide__drain_thread *t) {
    pthread_mutex_lock(&t->lock);
    const char *feed = t->leave;
    pthread_mutex_unlock(&t->lock);
    return feed != NULL && tide__drain_has_ended(t->drain, feed);
}

/// Rounds until all is in the file. False: it has left, or has given up, before that.
static bool drain_all(tide__drain_thread *t) {
    for (bool was_over = false;;) {
        size_t n_events, n_alive;
        t->st = tide__drain_round(t->drain, &n_events, &n_alive, &t->err);
        if (t->st != TIDE_OK || (n_alive == 0 && was_over)) return true;
        // Another process may have begun to record since the folder was looked at: one more round sees it.
        was_over = n_alive == 0;
        if (was_over)
            tide__drain_look_again(t->drain);
        else if (may_leave(t) || !wait_for_round(t, n_events))
            return false;
    }
}

static void *work(void *arg) {
    tide__drain_thread *t = arg;
    pthread_setname_np(pthread_self(), "tide-drain");
    if (drain_all(t)) {
        tide_status st = tide__drain_finish(t->drain, t->st == TIDE_OK ? &t->err : NULL);
        if (t->st == TIDE_OK && st == TIDE_OK) st = tide__drain_check(t->drain, &t->err);
        if (t->st == TIDE_OK) t->st = st;
        // Lets go of the trace: a process that waits for it need not wait for the join.
        tide__drain_close(t->drain);
        t->drain = NULL;
    }
    pthread_mutex_lock(&t->lock);
    t->has_ended = true;
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static tide_status start(tide__drain_thread *t, const tide__drain_options *opt, tide_error *err) {
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) return TIDE_NO_MEMORY(err, "to record into '%s'", opt->trace_path);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&t->lock, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&t->thread, NULL, work, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) return TIDE_OK;
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot start a thread that writes '%s': %s", opt->trace_path,
                     strerror(rc));
}

tide_status tide__drain_thread_start(const tide__drain_options *opt, tide__drain_thread **out, tide_error *err) {
    tide__drain_thread *t;
    TIDE_TRY(TIDE_NEW(&t, 1, err, "to record into '%s'", opt->trace_path));
    tide_status st = tide__drain_open(opt, &t->drain, err);
    if (st == TIDE_OK) st = start(t, opt, err);
    if (st != TIDE_OK) {
        tide__drain_close(t->drain);
        tide_host_free(t);
        return st;
    }
    *out = t;
    return TIDE_OK;
}

void tide__drain_thread_hurry(tide__drain_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->hurry = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

void tide__drain_thread_release(tide__drain_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->hurry = t->release = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

void tide__drain_thread_leave(tide__drain_thread *t, const char *feed_path) {
    pthread_mutex_lock(&t->lock);
    t->leave = feed_path;
    pthread_mutex_unlock(&t->lock);
    tide__drain_thread_hurry(t);
}

bool tide__drain_thread_has_ended(tide__drain_thread *t) {
    pthread_mutex_lock(&t->lock);
    const bool has_ended = t->has_ended;
    pthread_mutex_unlock(&t->lock);
    return has_ended;
}

static void end(tide__drain_thread *t) {
    pthread_join(t->thread, NULL);
    tide__drain_close(t->drain);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
}

tide_status tide__drain_thread_join(tide__drain_thread *t, tide_error *err) {
    tide__drain_thread_hurry(t);
    end(t);
    const tide_status st = t->st;
    if (st != TIDE_OK && err != NULL) *err = t->err;
    tide_host_free(t);
    return st;
}

void tide__drain_thread_abandon(tide__drain_thread *t) {
    if (t == NULL) return;
    pthread_mutex_lock(&t->lock);
    t->give_up = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    end(t);
    tide_host_free(t);
}
