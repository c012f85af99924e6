// SPDX-License-Identifier: MIT
//
// Who drains a recorder's feed: a thread of this process, a collector process, or the collector of another program. A
// collector that dies is noticed when a ring is full, at a flush and at the end; then a thread of this process goes on
// where it stood. See recorder_internal.h.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "profiler/collector.h"
#include "profiler/feed/process_stat.h"
#include "profiler/recorder_internal.h"

// ---- a collector process ----
//
// The program is started as "PROGRAM collect TRACE ..." and says through a pipe when it has taken the feed. It keeps
// standard error, and no other file of ours.

enum { READY_FD = 3, PATIENCE_MS = 10000, MAX_ARGS = 16 };

typedef struct command {
    char form[16], max_bytes[24], batch_events[24], hold_back[24], ready_fd[8];
    char *args[MAX_ARGS];
} command;

static const char *const forms[] = {
    [TIDE_RECORD_AUTO] = "auto", [TIDE_RECORD_ROWS] = "rows", [TIDE_RECORD_CHUNKS] = "chunks"};

static void add(command *c, size_t *n, const char *arg) { c->args[(*n)++] = (char *)(uintptr_t)arg; }

static void make_command(command *c, const tide_recorder *r, const char *program) {
    *c = (command){0};
    snprintf(c->form, sizeof c->form, "%s", forms[r->opt.form]);
    snprintf(c->max_bytes, sizeof c->max_bytes, "%" PRIu64, r->opt.max_bytes);
    snprintf(c->batch_events, sizeof c->batch_events, "%zu", r->opt.batch_events);
    snprintf(c->hold_back, sizeof c->hold_back, "%u", r->opt.hold_back_ms);
    snprintf(c->ready_fd, sizeof c->ready_fd, "%d", READY_FD);
    const char *const args[] = {program, "collect",     r->path,      "--ready-fd",     c->ready_fd,    "--form",
                                c->form, "--max-bytes", c->max_bytes, "--batch-events", c->batch_events};
    size_t n = 0;
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) add(c, &n, args[i]);
    if (r->opt.hold_back_ms != 0) {
        add(c, &n, "--hold-back-ms");
        add(c, &n, c->hold_back);
    }
    if (r->opt.attached_late) add(c, &n, "--attached-late");
    if (r->opt.quiet) add(c, &n, "--quiet");
}

// ---- this program as its own collector ----

static atomic_bool has_hook;

tide_status tide__collector_check(const tide_recorder *r, tide_error *err) {
    if (r->opt.drain != TIDE_RECORD_PROCESS || r->opt.collector != NULL || atomic_load(&has_hook)) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID,
                  "cannot record into '%s': this program would be started again as its own collector, "
                  "and has not called tide_collector_hook",
                  r->path);
    tide_error_hint(err, "call it first in main, name the program tidemark as collector, or record with a thread");
    return st;
}

/// One option that make_command gives; false: it is none.
static bool take_option(tide_collector_options *o, const char *name, const char *value) {
    char *end = NULL;
    const unsigned long long n = strtoull(value, &end, 10);
    const bool is_number = value[0] >= '0' && value[0] <= '9' && *end == '\0';
    if (strcmp(name, "--form") == 0) {
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            if (strcmp(value, forms[i]) != 0) continue;
            o->form = (tide_record_form)i;
            return true;
        }
        return false;
    }
    if (strcmp(name, "--ready-fd") == 0)
        o->ready_fd = (int)n;
    else if (strcmp(name, "--max-bytes") == 0)
        o->max_bytes = n;
    else if (strcmp(name, "--batch-events") == 0)
        o->batch_events = (size_t)n;
    else if (strcmp(name, "--hold-back-ms") == 0)
        o->hold_back_ms = (unsigned)n;
    else
        return false;
    return is_number;
}

void tide_collector_hook(int argc, char **argv) {
    atomic_store(&has_hook, true);
    if (argc < 4 || strcmp(argv[1], "collect") != 0 || strcmp(argv[3], "--ready-fd") != 0) return;
    tide_collector_options o = {.path = argv[2], .ready_fd = -1};
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--attached-late") == 0) {
            o.attached_late = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            o.quiet = true;
        } else if (i + 1 == argc || !take_option(&o, argv[i], argv[i + 1])) {
            return; // the arguments of another program
        } else {
            i++;
        }
    }
    exit(tide_collect(&o, NULL) == TIDE_OK ? 0 : 1); // the feed says why to the process that started it
}

// ---- started ----

static int file_actions(posix_spawn_file_actions_t *a, int ready_fd) {
    int rc = posix_spawn_file_actions_init(a);
    if (rc != 0) return rc;
    if (rc == 0) rc = posix_spawn_file_actions_adddup2(a, ready_fd, READY_FD);
    if (rc == 0) rc = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0) rc = posix_spawn_file_actions_addopen(a, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // A pipe that the program was given must not stay open in a process that it does not know of.
    if (rc == 0) rc = posix_spawn_file_actions_addclosefrom_np(a, READY_FD + 1);
#endif
    if (rc != 0) posix_spawn_file_actions_destroy(a);
    return rc;
}

/// What ends the recorded program from the keyboard must not end the collector before it: blocked until it can say so
/// itself (tide_collect).
static int attributes(posix_spawnattr_t *attr) {
    int rc = posix_spawnattr_init(attr);
    if (rc != 0) return rc;
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    rc = posix_spawnattr_setsigmask(attr, &held);
    if (rc == 0) rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
    if (rc != 0) posix_spawnattr_destroy(attr);
    return rc;
}

static int spawn(const tide_recorder *r, int ready_fd, pid_t *pid) {
    const char *program = r->opt.collector != NULL ? r->opt.collector : "/proc/self/exe";
    command c;
    make_command(&c, r, program);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc = file_actions(&actions, ready_fd);
    if (rc != 0) return rc;
    rc = attributes(&attr);
    if (rc == 0) {
        rc = posix_spawn(pid, program, &actions, &attr, c.args, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/// One byte: it drains. None: it ended, or takes too long.
static bool wait_until_ready(int fd, bool *late) {
    const uint64_t since = tide_now_ns();
    for (;;) {
        const uint64_t ms = (tide_now_ns() - since) / 1000000;
        *late = ms >= PATIENCE_MS;
        if (*late) return false;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int n = poll(&p, 1, PATIENCE_MS - (int)ms);
        if (n < 0 && errno == EINTR) continue;
        char byte = 0;
        if (n > 0) return read(fd, &byte, 1) == 1 && byte == 1;
        if (n < 0) return false;
    }
}

static tide_status not_ready(const tide_recorder *r, pid_t pid, bool late, tide_error *err) {
    int how = 0;
    if (late) kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot record into '%s': the collector %s", r->path,
                                     late ? "did not begin in time" : "ended before it began");
    if (!late && WIFEXITED(how)) tide_error_note(err, "it ended with status %d", WEXITSTATUS(how));
    if (!late && WIFSIGNALED(how)) tide_error_note(err, "signal %d ended it", WTERMSIG(how));
    return st;
}

/// Start "PROGRAM collect TRACE ..." and wait until it drains.
static tide_status collector_start(const tide_recorder *r, pid_t *pid, tide_error *err) {
    if ((unsigned)r->opt.form > TIDE_RECORD_CHUNKS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': no such form of a trace", r->path);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot start a collector for '%s': %s", r->path, strerror(errno));
    const int rc = spawn(r, fds[1], pid);
    close(fds[1]);
    tide_status st = TIDE_OK;
    bool late;
    if (rc != 0) {
        st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot start the collector '%s' for '%s': %s",
                       r->opt.collector != NULL ? r->opt.collector : "/proc/self/exe", r->path, strerror(rc));
        *pid = 0;
    } else if (!wait_until_ready(fds[0], &late)) {
        st = not_ready(r, *pid, late, err);
        *pid = 0;
    }
    close(fds[0]);
    return st;
}

enum {
    PATIENCE_NS = 10, ///< seconds until a collector must have taken a new feed
    MAX_WAIT_S = 30,  ///< for one that does not move, unless the options say another time
    LOOK_NAPS = 50,   ///< between two looks whether it was stopped
};

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static uint32_t drain_state(const tide_recorder *r) {
    return atomic_load_explicit(&tide__feed_head(r->feed)->drain, memory_order_acquire);
}

static tide_status start_thread(tide_recorder *r, tide_error *err) {
    const tide__drain_options opt = {.trace_path = r->path,
                                     .form = r->opt.form,
                                     .max_bytes = r->opt.max_bytes,
                                     .batch_events = r->opt.batch_events,
                                     .hold_back_ms = r->opt.hold_back_ms,
                                     .attached_late = r->opt.attached_late,
                                     .quiet = r->opt.quiet};
    return tide__drain_thread_start(&opt, &r->thread, err);
}

// ---- begin ----

/// The collector of another program looks for new feeds all the time.
static tide_status wait_until_taken(const tide_recorder *r, tide_error *err) {
    const uint64_t since = tide_now_ns();
    while (drain_state(r) == TIDE__DRAIN_NONE) {
        const bool late = tide_now_ns() - since > (uint64_t)PATIENCE_NS * 1000000000;
        if (late || !tide__drain_is_locked(r->path))
            return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot record into '%s': no collector took the events%s",
                             r->path, late ? " in time" : "");
        nap();
    }
    return TIDE_OK;
}

tide_status tide__recorder_start_drain(tide_recorder *r, tide_error *err) {
    switch (r->opt.drain) {
    case TIDE_RECORD_THREAD:
        return start_thread(r, err);
    case TIDE_RECORD_PROCESS:
        return collector_start(r, &r->collector, err);
    case TIDE_RECORD_ATTACH:
        return wait_until_taken(r, err);
    }
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': no such drain", r->path);
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
        tide__drain_thread_hurry(r->thread);
        return !tide__drain_thread_has_ended(r->thread);
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
    if (r->thread != NULL) tide__drain_thread_release(r->thread);
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
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "%.*s", (int)strnlen(head->error, sizeof head->error), head->error);
}

/// Compare the counts of the file with those of the observer.
static tide_status compare(const tide_recorder *r, const tide__sql *s, tide_error *err) {
    int64_t different, n_events;
    TIDE_TRY(tide__sql_int(s, "SELECT 1 FROM meta WHERE key = 'totals' AND value = 'different'", 0, &different, err));
    TIDE_TRY(tide__sql_int(s, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'n_events'", 0, &n_events, err));
    tide__feed_stats stats;
    tide__feed_get_stats(r->feed, &stats);
    // A gap is an event of the file, and none that the observer counted.
    const bool counts_differ = stats.n_lost == 0 && (uint64_t)n_events != stats.n_events;
    if (different == 0 && !counts_differ) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "'%s' does not hold what was recorded", r->path);
    if (counts_differ)
        tide_error_note(err, "events: %" PRIu64 " heard, %" PRId64 " in the file", stats.n_events, n_events);
    else
        tide_error_note(err, "sums over its events are not those that were heard; see its view problems");
    return st;
}

static tide_status check_file(const tide_recorder *r, tide_error *err) {
    tide__sql s = {.path = r->path};
    TIDE_TRY(tide__sql_open_to_read(&s, err));
    const tide_status st = compare(r, &s, err);
    sqlite3_close(s.db);
    return st;
}

/// Until it has ended; false: it was stopped, and for too long (only with `may_give_up`).
static bool wait_for_collector(tide_recorder *r, bool may_give_up) {
    uint64_t stopped_ns = 0;
    for (unsigned i = 1;; i++) {
        int how;
        const pid_t got = r->collector > 0 ? waitpid(r->collector, &how, WNOHANG) : 1;
        // Other code of the program may reap our children: then the lock tells.
        if (got > 0 || (got < 0 && errno != EINTR && !tide__drain_is_locked(r->path))) break;
        if (may_give_up && i % LOOK_NAPS == 0 && tide__recorder_is_stopped_too_long(r, &stopped_ns)) return false;
        nap();
    }
    r->collector = 0;
    return true;
}

static tide_status end_thread(tide_recorder *r, tide_error *err) {
    if (r->opt.drain == TIDE_RECORD_ATTACH) tide__drain_thread_leave(r->thread, r->process_id);
    const tide_status st = tide__drain_thread_join(r->thread, err);
    r->thread = NULL;
    return st;
}

/// Our collector has ended, in whatever way: the trace is finished, or is to be.
static tide_status end_with_collector(tide_recorder *r, tide_error *err) {
    if (!wait_for_collector(r, true)) return tide__recorder_stopped(r, "finish", err);
    TIDE_TRY(tide__recorder_failure(r, err));
    bool unfinished, in_use;
    TIDE_TRY(tide__drain_look(r->path, &unfinished, &in_use, err));
    if (!unfinished) { // in its very last steps it may have been killed: what it left beside the trace goes
        tide__drain_sweep(r->path);
        tide__sql_make_plain(r->path);
        return TIDE_OK;
    }
    if (!r->opt.quiet)
        tide_log(TIDE_LOG_WARN, "recording into '%s': the collector is gone; this process writes the rest", r->path);
    TIDE_TRY(start_thread(r, err));
    return end_thread(r, err);
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
    if (r->thread != NULL) {
        TIDE_TRY(end_thread(r, err));
    } else {
        TIDE_TRY(r->opt.drain == TIDE_RECORD_PROCESS ? end_with_collector(r, err) : end_attached(r, err));
    }
    return r->opt.drain == TIDE_RECORD_ATTACH ? TIDE_OK : check_file(r, err);
}

void tide__recorder_stop_drain(tide_recorder *r) {
    if (r->thread != NULL) tide__drain_thread_abandon(r->thread);
    r->thread = NULL;
    if (r->collector <= 0) return;
    kill(r->collector, SIGKILL);
    (void)!wait_for_collector(r, false);
}
