// SPDX-License-Identifier: MIT
//
// open: the one way in to the trace of `tidemark record`: a feed beside it, of which the collector makes the rows. All
// that the library knows of traces is here. See preload.h.
//
// What stays is a mapped file, and a descriptor that the program may close (profiler/feed/mapped_file.h).
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text.h"
#include "preload/preload.h"
#include "profiler/collector.h"
#include "profiler/drain/drain.h"
#include "profiler/feed/process_stat.h"
#include "profiler/feed/registration.h"

enum { TAKEN_S = 10, MAX_WAIT_S = 30 };

// ---- what it tells ----

/// Fact "malloc.<pid>.<time>": why a process is not recorded.
static tide_status put_reason(tide__feed *feed, const char *off, tide_error *err) {
    char key[64], command[TIDE__MAX_COMMAND], text[TIDE__MAX_COMMAND + 256];
    tide__process_command(command);
    snprintf(key, sizeof key, "malloc.%ld.%llu", (long)getpid(), (unsigned long long)tide_now_ns());
    snprintf(text, sizeof text, "off '%.200s': %s", command, off);
    tide_text bytes = {0};
    tide_status st = tide__registration_put_fact(&bytes, key, text, err);
    if (st == TIDE_OK) st = tide__feed_register(feed, TIDE__LOG_FACT, bytes.data, bytes.len, err);
    tide_text_deinit(&bytes);
    return st;
}

// ---- the feed ----

/// As the options of `tidemark record` were; it has checked them.
static void take_options(tide__feed_options *o) {
    const char *ring = getenv(TIDE_RING_EVENTS_ENV), *on_full = getenv(TIDE_ON_FULL_ENV);
    const char *max_wait = getenv(TIDE_MAX_WAIT_ENV);
    if (ring != NULL) o->ring_slots = (size_t)strtoull(ring, NULL, 10);
    o->drop_when_full = on_full != NULL && strcmp(on_full, "drop") == 0;
    o->max_wait_ns = (uint64_t)((max_wait != NULL ? strtod(max_wait, NULL) : MAX_WAIT_S) * 1e9);
    if (o->max_wait_ns == 0) o->max_wait_ns = (uint64_t)MAX_WAIT_S * 1000000000;
}

/// The feed's watch: whether a drain holds it. By the feed's own lock, which any folder, user or container shows alike;
/// where it cannot be looked at, one is believed to be there.
static bool has_drain(void *ctx) {
    const int fd = open(tide__feed_path(ctx), O_RDONLY | O_CLOEXEC);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = TIDE__FEED_LOCK_DRAIN, .l_len = 1};
    const bool is_known = fd >= 0 && fcntl(fd, F_OFD_GETLK, &l) == 0;
    if (fd >= 0) close(fd);
    return !is_known || l.l_type != F_UNLCK ||
           atomic_load_explicit(&tide__feed_head(ctx)->drain, memory_order_acquire) == TIDE__DRAIN_NONE;
}

static tide_status make_feed(const char *trace, bool is_late, tide__feed **out, tide_error *err) {
    char command[TIDE__MAX_COMMAND];
    tide__process_command(command);
    tide__feed_options o = {.trace_path = trace,
                            .command = command[0] != '\0' ? command : NULL,
                            .rank = tide__process_rank(),
                            .by_address = true,
                            .is_late = is_late};
    take_options(&o);
    TIDE_TRY(tide__feed_create(&o, out, err));
    tide__feed_set_watch(*out, has_drain, *out);
    return TIDE_OK;
}

// ---- the collector ----

/// Whether the command that `tidemark record` started lives: the collector looks for feeds once more after its end.
static bool command_lives(void) {
    const char *text = getenv(TIDE_COMMAND_ENV);
    const long pid = text != NULL ? strtol(text, NULL, 10) : 0;
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/// Of a process that outlives the command: it may have come too late.
static bool is_taken(const char *trace, tide__feed *feed) {
    if (command_lives()) return true;
    const uint64_t since = tide_now_ns();
    while (atomic_load_explicit(&tide__feed_head(feed)->drain, memory_order_acquire) == TIDE__DRAIN_NONE) {
        if (!tide__drain_is_locked(trace) || tide_now_ns() - since > (uint64_t)TAKEN_S * 1000000000) return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

// ---- for a child of fork ----

int preload_claim(const tide__feed *feed) {
    enum { HIGH = 900 };
    const int fd = open(tide__feed_path(feed), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = TIDE__FEED_LOCK_CHILD, .l_len = 1};
    const bool is_locked = fcntl(fd, F_OFD_SETLK, &l) == 0;
    const int high = is_locked ? fcntl(fd, F_DUPFD_CLOEXEC, HIGH) : -1;
    if (is_locked && high < 0) return fd;
    close(fd);
    return high;
}

bool preload_holds_claim(const tide__feed *feed, int fd) {
    struct stat mine, its;
    return fstat(fd, &mine) == 0 && stat(tide__feed_path(feed), &its) == 0 && mine.st_dev == its.st_dev &&
           mine.st_ino == its.st_ino;
}

tide_status preload_open(bool is_late, const char *off, tide__feed **out, tide_error *err) {
    const char *trace = getenv(TIDE_COLLECTOR_ENV);
    *out = NULL;
    if (trace == NULL || trace[0] == '\0' || !tide__drain_is_locked(trace))
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no collector is there");
    tide__signal_hold hold;
    tide__hold_xfsz(&hold);
    tide_status st = make_feed(trace, is_late, out, err);
    if (st == TIDE_OK && off != NULL) st = put_reason(*out, off, err);
    if (st == TIDE_OK && !is_taken(trace, *out))
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no collector took the events");
    if (*out != NULL && (st != TIDE_OK || off != NULL)) {
        tide__feed_end(*out);
        tide__feed_destroy(*out, st != TIDE_OK); // else it stays for the collector
        *out = NULL;
    }
    tide__release_xfsz(&hold);
    return st;
}
