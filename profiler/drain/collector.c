// SPDX-License-Identifier: MIT
//
// The collector process: rounds of a drain until all that record have ended. See collector.h.
#include "profiler/collector.h"

#include <signal.h>
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

static bool is_over(const tide_collector_options *opt, const tide__drain *d) {
    if (opt->is_over != NULL) return opt->is_over(opt->ctx);
    // Who is started for a trace that is there finds its feed at once, or there is none.
    return !opt->create || tide__drain_has_seen_feed(d);
}

static void pause_between(tide__drain *d, size_t n_events) {
    const uint64_t since = tide_now_ns();
    unsigned idle = 0;
    for (uint64_t ns; (ns = tide__drain_pause_ns(d, n_events, since, &idle)) > 0;)
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static tide_status collect(const tide_collector_options *opt, tide__drain *d, tide_error *err) {
    tide_status st;
    for (bool was_over = false;;) {
        size_t n_events, n_alive;
        st = tide__drain_round(d, &n_events, &n_alive, err);
        if (st != TIDE_OK) break;
        // One more round once no new process can come: it finds one that came just before.
        if (n_alive == 0 && was_over) break;
        was_over = n_alive == 0 && is_over(opt, d);
        if (was_over)
            tide__drain_look_again(d);
        else
            pause_between(d, n_events);
    }
    const tide_status finished = tide__drain_finish(d, st == TIDE_OK ? err : NULL);
    return st == TIDE_OK ? finished : st;
}

static tide_status open_and_collect(const tide_collector_options *opt, tide_error *err) {
    const tide__drain_options drain = {.trace_path = opt->path,
                                       .form = opt->form,
                                       .max_bytes = opt->max_bytes,
                                       .batch_events = opt->batch_events,
                                       .hold_back_ms = opt->hold_back_ms,
                                       .attached_late = opt->attached_late,
                                       .quiet = opt->quiet};
    tide__drain *d = NULL;
    tide__drain_lock_file making = {0};
    if (opt->create) TIDE_TRY(tide__drain_lock_making(opt->path, &making, err));
    tide_status opened = opt->create ? tide__store_create(opt->path, err) : TIDE_OK;
    if (opened == TIDE_OK) opened = tide__drain_open(&drain, &d, err);
    tide__drain_made(&making);
    if (opened != TIDE_OK) return opened;
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
