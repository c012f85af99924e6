// SPDX-License-Identifier: MIT
//
// In a foreign program: the driver loads this library at cuInit, because CUDA_INJECTION64_PATH names it, and calls
// InitializeInjection. The process becomes one of those that record into the trace of `tidemark record`, which
// $TIDEMARK_COLLECT names.
//
//     cuInit -> InitializeInjection   feed, subscription; what fails is one line on standard error
//     exit   -> at_exit               the last records, while the driver is still there; frees of later handlers are
//     heard
//            -> destructor            counts into the trace, the feed is closed
//     _exit, exec, a signal           nothing of ours runs: what is in the feed is in the trace, the counts are not
//
// It always returns 1: the driver takes any other answer for "unload it", while CUPTI's callbacks are still there
// (measured: PyTorch crashed). It opens no standard stream, changes no signal and no errno of the program's, and a
// child of fork has no part in it.
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/device/backend.h"
#include "core/memory/observer.h"
#include "cuda/cupti/plugin.h"
#include "profiler/collector.h"
#include "tidemark/record.h"

int InitializeInjection(void);

static const tide_cupti_host host = {.abi = TIDE_CUPTI_ABI,
                                     .new_block_id = tide_block_new_id,
                                     .thread_id = tide_thread_id,
                                     .scope = tide_scope_current,
                                     .is_own_call = tide_device_is_own_call};

static tide_recorder *recorder;
static pid_t owner;
static char key[64]; ///< of table meta: "cuda.<pid>.<time>": a pid is used again by exec, and may be by another process

/// One line, never more: the program's own output goes on around it.
static void say(const tide_error *err) {
    char line[512];
    const int n =
        snprintf(line, sizeof line, "tidemark: process %d: %s; the program runs on\n", (int)getpid(), err->msg);
    if (n > 0) (void)!write(STDERR_FILENO, line, (size_t)(n < (int)sizeof line ? n : (int)sizeof line - 1));
}

// ---- what the trace says of the process ----

static void note(const char *value) {
    if (recorder != NULL) (void)!tide_recorder_put_meta(recorder, key, value, NULL);
}

/// "off busy cannot record …": why there is nothing.
static void note_failure(tide_status st, const tide_error *err) {
    char text[600];
    snprintf(text, sizeof text, "off %s%s", st == TIDE_ERR_BUSY ? "busy " : "", err->msg);
    note(text);
}

/// "ended calls=12 allocs=6 …"
static void note_counts(const tide_cupti_counts *c) {
    char text[1024];
    int n = snprintf(text, sizeof text, "ended");
#define XX(field, what)                                                                                                \
    if (n > 0 && n < (int)sizeof text)                                                                                 \
        n += snprintf(text + n, sizeof text - (size_t)n, " %s=%" PRIu64, #field, c->field);
    TIDE_CUPTI_COUNT_MAP(XX)
#undef XX
    note(text);
}

// ---- begin ----

/// As the options of `tidemark record` were; it has checked them.
static void take_options(tide_recorder_options *o) {
    const char *ring = getenv(TIDE_RING_EVENTS_ENV), *on_full = getenv(TIDE_ON_FULL_ENV),
               *max_wait = getenv(TIDE_MAX_WAIT_ENV);
    if (ring != NULL) o->ring_events = (size_t)strtoull(ring, NULL, 10);
    o->drop_when_full = on_full != NULL && strcmp(on_full, "drop") == 0;
    if (max_wait != NULL) o->max_wait_ns = (uint64_t)(strtod(max_wait, NULL) * 1e9);
}

static tide_status open_trace(tide_error *err) {
    const char *trace = getenv(TIDE_COLLECTOR_ENV);
    if (trace == NULL || trace[0] == '\0')
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND,
                         "CUDA memory is not recorded: no collector runs (start it with tidemark record)");
    tide_recorder_options o = {.drain = TIDE_RECORD_ATTACH, .rank = -1, .quiet = true};
    take_options(&o);
    TIDE_TRY(tide_recorder_open(trace, &o, &recorder, err));
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(key, sizeof key, "cuda.%d.%lld%03ld", (int)getpid(), (long long)now.tv_sec, now.tv_nsec / 1000000);
    note("recording");
    return TIDE_OK;
}

static void at_exit(void) {
    if (getpid() == owner) tide__cupti_last_round();
}

static tide_status begin(tide_error *err) {
    // Tidemark's own process, which records itself: nothing to say.
    if (tide__cupti_is_started()) return TIDE_OK;
    TIDE_TRY(open_trace(err));
    const tide_observer to_recorder = tide_recorder_observer(recorder);
    const tide_status st = tide__cupti_start(&to_recorder, &host, err);
    if (st == TIDE_OK) {
        owner = getpid();
        atexit(at_exit);
        return TIDE_OK;
    }
    note_failure(st, err);
    (void)!tide_recorder_close(recorder, NULL);
    recorder = NULL;
    return st;
}

__attribute__((visibility("default"))) int InitializeInjection(void) {
    static atomic_bool is_called;
    const int saved = errno;
    tide_error err = TIDE_ERROR_INIT;
    if (!atomic_exchange(&is_called, true)) {
        if (begin(&err) != TIDE_OK) say(&err);
    }
    errno = saved;
    return 1;
}

// ---- end ----

__attribute__((destructor)) static void end(void) {
    if (recorder == NULL || getpid() != owner) return;
    tide_cupti_counts counts = {0};
    tide__cupti_stop(&counts, false);
    note_counts(&counts);
    tide__recorder_process_ends(recorder);
    (void)!tide_recorder_close(recorder, NULL);
    recorder = NULL;
}
