// SPDX-License-Identifier: MIT
//
// The collector process: rounds of a drain until all that record have ended. See collector.h.
#include "profiler/collector.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text.h"
#include "profiler/drain/drain.h"
#include "profiler/store/store.h"

/// Signals that end the recorded program must not end the collector before it; a limit on file sizes shall fail writes.
static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGXFSZ};
enum { N_HELD = sizeof held / sizeof held[0] };

static void hold_signals(struct sigaction *before) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < N_HELD; i++) sigaction(held[i], &ignore, &before[i]);
}

static void restore_signals(const struct sigaction *before) {
    for (size_t i = 0; i < N_HELD; i++) sigaction(held[i], &before[i], NULL);
}

static void say_ready(int fd) {
    if (fd < 0) return;
    const char byte = 1;
    (void)!write(fd, &byte, 1);
    close(fd);
}

/// It cannot be, and why: what started us has the words.
static void say_why(const tide_collector_options *opt, const tide_error *err) {
    char text[2 + sizeof *err] = {2, (char)err->status};
    const char *const parts[] = {err->msg, err->where, err->note, err->hint};
    size_t n = 2;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const size_t bytes = strlen(parts[i]) + 1;
        memcpy(text + n, parts[i], bytes);
        n += bytes;
    }
    (void)!write(opt->ready_fd, text, n);
    close(opt->ready_fd);
}

static bool is_over(const tide_collector_options *opt, const tide__drain *d) {
    if (opt->is_over != NULL) return opt->is_over(opt->ctx);
    // Who is started for a trace that is there finds its feed at once, or there is none.
    if (!opt->create || tide__drain_has_seen_feed(d)) return true;
    return opt->parent != 0 && getppid() != opt->parent;
}

/// Until a round is due, or what was recorded is over: `*is_told` says that this was heard before.
static void pause_between(const tide_collector_options *opt, tide__drain *d, size_t n_events, bool *is_told) {
    const uint64_t since = tide_now_ns();
    unsigned idle = 0;
    for (uint64_t ns; (ns = tide__drain_pause_ns(d, n_events, since, &idle)) > 0;) {
        if (!*is_told && opt->is_over != NULL && opt->is_over(opt->ctx)) {
            *is_told = true;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
    }
}

static tide_status collect(const tide_collector_options *opt, tide__drain *d, tide_error *err) {
    tide_status st;
    for (bool was_over = false, is_told = false;;) {
        size_t n_events, n_alive;
        st = tide__drain_round(d, &n_events, &n_alive, err);
        if (st != TIDE_OK) break;
        // One more round once no new process can come: it finds one that came just before.
        if (n_alive == 0 && was_over) break;
        was_over = n_alive == 0 && is_over(opt, d);
        if (was_over)
            tide__drain_look_again(d);
        else
            pause_between(opt, d, n_events, &is_told);
    }
    const tide_status finished = tide__drain_finish(d, st == TIDE_OK ? err : NULL);
    if (st == TIDE_OK) st = finished;
    return st == TIDE_OK ? tide__drain_check(d, err) : st;
}

static tide_status open_and_collect(const tide_collector_options *opt, tide_error *err) {
    const tide__drain_options drain = {.trace_path = opt->path,
                                       .form = opt->form,
                                       .max_bytes = opt->max_bytes,
                                       .batch_events = opt->batch_events,
                                       .hold_back_ms = opt->hold_back_ms,
                                       .sample_ms = opt->sample_ms,
                                       .attached_late = opt->attached_late,
                                       .quiet = opt->quiet};
    tide__drain *d = NULL;
    tide__drain_lock_file making = {0};
    tide_error why = TIDE_ERROR_INIT;
    tide_status opened = opt->create ? tide__drain_lock_making(opt->path, &making, &why) : TIDE_OK;
    if (opened == TIDE_OK && opt->create) opened = tide__store_create(opt->path, &why);
    if (opened == TIDE_OK) opened = tide__drain_open(&drain, &d, &why);
    tide__drain_made(&making);
    if (opened != TIDE_OK) {
        if (err != NULL) *err = why;
        if (opt->parent != 0 && opt->ready_fd >= 0) say_why(opt, &why);
        return opened;
    }
    say_ready(opt->ready_fd);
    const tide_status st = collect(opt, d, err);
    tide__drain_close(d);
    return st;
}

tide_status tide_collect(const tide_collector_options *opt, tide_error *err) {
    struct sigaction before[N_HELD];
    hold_signals(before);
    const tide_status st = open_and_collect(opt, err);
    restore_signals(before);
    return st;
}
