// SPDX-License-Identifier: MIT
//
// Start and end of the recorder of CUDA memory, its thread, and the table that the program asks for. See recorder.h.
//
//     start   libcupti -> subscribe -> clock, attributes, buffers -> records on -> callbacks on -> thread
//     thread  each 100 ms: sample, flush, parse
//     stop    a last round of the thread, with a watchdog: a flush that hangs is left behind -> nothing is recorded any
//             more -> callbacks that are under way are waited for
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/base/status.h"
#include "cuda/cupti/plugin.h"
#include "cuda/cupti/recorder.h"

enum { FIRST_ROUND_MS = 10, ROUND_MS = 100, WATCHDOG_MS = 4000, LEAVE_MS = 1000 };

tide__cupti_state tide__cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef enum phase { PHASE_OFF, PHASE_RUNS, PHASE_ENDS, PHASE_ENDED } phase;

/// Of the recorder's thread.
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    phase phase;
    bool is_joined;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t tide__cupti_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

bool tide__cupti_works(CUptiResult result) {
    if (result == CUPTI_SUCCESS) return true;
    atomic_fetch_add(&tide__cupti.n_errors, 1U);
    return false;
}

// ---- who is inside ----

bool tide__cupti_enter(void) {
    if (atomic_load_explicit(&tide__cupti.in_child, memory_order_relaxed)) return false;
    atomic_fetch_add(&tide__cupti.n_inside, 1U);
    if (atomic_load(&tide__cupti.is_on)) return true;
    atomic_fetch_sub(&tide__cupti.n_inside, 1U);
    return false;
}

void tide__cupti_leave(void) { atomic_fetch_sub(&tide__cupti.n_inside, 1U); }

static void in_child(void) { atomic_store(&tide__cupti.in_child, true); }

/// Nothing is recorded from now on. False: a callback does not come back.
static bool leave_all(void) {
    atomic_store(&tide__cupti.is_on, false);
    for (int i = 0; i < LEAVE_MS && atomic_load(&tide__cupti.n_inside) > 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return atomic_load(&tide__cupti.n_inside) == 0;
}

// ---- the thread ----

static struct timespec in_ms(unsigned ms) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

/// Waits until the phase is at least `at_least`. False: it is not in time.
static bool wait_for(phase at_least, unsigned ms) {
    const struct timespec until = in_ms(ms);
    int rc = 0;
    pthread_mutex_lock(&worker.lock);
    while (worker.phase < at_least && rc == 0) rc = pthread_cond_timedwait(&worker.changed, &worker.lock, &until);
    const bool is_there = worker.phase >= at_least;
    pthread_mutex_unlock(&worker.lock);
    return is_there;
}

static void set_phase(phase p) {
    pthread_mutex_lock(&worker.lock);
    worker.phase = p;
    pthread_cond_broadcast(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
}

/// CUPTI says how many since it was asked last; not to be asked in a callback (two locks of its own, both ways).
static void count_dropped(void) {
    size_t n = 0;
    if (!tide__cupti_works(tide__cupti.lib.cuptiActivityGetNumDroppedRecords(NULL, 0, &n))) n = 0;
    tide__cupti_lock();
    tide__cupti.counts.dropped += n;
    tide__cupti.counts.refused_buffers = tide__cupti_refused_buffers();
    tide__cupti_unlock();
}

static void one_round(bool last) {
    tide__cupti_sample(last);
    (void)tide__cupti_works(tide__cupti.lib.cuptiActivityFlushAll(0));
    if (last) (void)tide__cupti_works(tide__cupti.lib.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    if (!tide__cupti_enter()) return; // it was left behind
    tide__cupti_take_records(last);
    tide__cupti_leave();
    count_dropped();
}

static void *work(void *unused) {
    (void)unused;
    // What is short is seen, too.
    for (unsigned ms = FIRST_ROUND_MS; !wait_for(PHASE_ENDS, ms); ms = ms * 2 < ROUND_MS ? ms * 2 : ROUND_MS)
        one_round(false);
    one_round(true);
    set_phase(PHASE_ENDED);
    return NULL;
}

/// Signals are the program's.
static tide_status start_thread(tide_error *err) {
    sigset_t all, before;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&worker.changed, &attr);
    pthread_condattr_destroy(&attr);
    worker.phase = PHASE_RUNS;
    worker.is_joined = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&worker.thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) return TIDE_OK;
    worker.phase = PHASE_OFF;
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record CUDA memory: no thread: %s", strerror(rc));
}

// ---- CUPTI ----

static tide_status refused(const char *call, CUptiResult result, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_BACKEND, "cannot record CUDA memory: %s: %s (%d)", call,
                     tide__cupti_result(&tide__cupti.lib, result), (int)result);
}

/// CUPTI takes one subscriber in a process: a profiler, a debugger, or torch.profiler.
static tide_status subscribe(tide_error *err) {
    char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
    CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                     .subscriberName = "tidemark",
                                     .oldSubscriberName = other,
                                     .oldSubscriberSize = sizeof other};
    const CUptiResult result =
        tide__cupti.lib.cuptiSubscribe_v2(&tide__cupti.subscriber, tide__cupti_on_callback, NULL, &params);
    if (result == CUPTI_SUCCESS) return TIDE_OK;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        other[sizeof other - 1] = '\0';
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot record CUDA memory: another tool watches this process already: %s",
                         other[0] != '\0' ? other : "it does not say its name");
    }
    const tide_status st = refused("cuptiSubscribe_v2", result, err);
    if (result == CUPTI_ERROR_UNKNOWN) tide_error_hint(err, "this is what it says without an NVIDIA driver");
    return st;
}

static uint64_t CUPTIAPI time_of_record(void) { return tide__cupti_now_ns(); }

/// Records of kernels and copies would take device memory for their buffers unless it is page-locked host memory; the
/// recorder asks for none of them, but CUPTI takes 14 MiB for any subscriber without it (measured).
static tide_status configure(tide_error *err) {
    const tide__cupti_library *lib = &tide__cupti.lib;
    uint8_t on = 1;
    size_t size = sizeof on;
    CUptiResult result = lib->cuptiActivityRegisterTimestampCallback(time_of_record);
    if (result != CUPTI_SUCCESS) return refused("cuptiActivityRegisterTimestampCallback", result, err);
    (void)tide__cupti_works(
        lib->cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size, &on));
    result = lib->cuptiActivityRegisterCallbacks(tide__cupti_give_buffer, tide__cupti_take_buffer);
    if (result != CUPTI_SUCCESS) return refused("cuptiActivityRegisterCallbacks", result, err);
    result = lib->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2);
    if (result != CUPTI_SUCCESS) return refused("cuptiActivityEnable(MEMORY2)", result, err);
    result = lib->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
    if (result != CUPTI_SUCCESS) return refused("cuptiActivityEnable(MEMORY_POOL)", result, err);
    return TIDE_OK;
}

static void unsubscribe(void) {
    (void)tide__cupti.lib.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY2);
    (void)tide__cupti.lib.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
    (void)tide__cupti.lib.cuptiUnsubscribe(tide__cupti.subscriber);
}

// ---- start and stop ----

static bool is_started; // of the one thread that starts and stops

bool tide__cupti_is_started(void) { return is_started; }

static void forget_all(void) {
    tide__cupti_lock();
    tide__cupti_ledger_clear(&tide__cupti.ledger);
    tide__cupti_log_clear(&tide__cupti.log);
    tide__cupti_records_clear();
    tide__cupti_pools_clear();
    memset(tide__cupti.contexts, 0, sizeof tide__cupti.contexts);
    memset(tide__cupti.pools, 0, sizeof tide__cupti.pools);
    tide__cupti.n_captures = 0;
    tide__cupti_unlock();
}

static tide_status begin(tide_error *err) {
    TIDE_TRY(configure(err));
    TIDE_TRY(tide__cupti_enable_callbacks(err));
    atomic_store(&tide__cupti.is_on, true);
    return start_thread(err);
}

tide_status tide__cupti_start(const tide_observer *observer, const tide_cupti_host *host, tide_error *err) {
    if (is_started)
        return TIDE_FAIL(err, TIDE_ERR_EXISTS, "cannot record CUDA memory: this process is being recorded already");
    if (host->abi != TIDE_CUPTI_ABI)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the recorder of CUDA memory is of version %d, the program of %u",
                         TIDE_CUPTI_ABI, host->abi);
    if (tide__cupti.lib.handle == NULL) {
        TIDE_TRY(tide__cupti_library_open(&tide__cupti.lib, err));
        pthread_atfork(NULL, NULL, in_child);
        tide__cupti_caller_init();
    }
    tide__cupti.observer = *observer;
    tide__cupti.host = host;
    tide__cupti.counts = (tide_cupti_counts){0};
    atomic_store(&tide__cupti.n_errors, 0U);
    if (!tide__cupti_log_init(&tide__cupti.log)) tide__cupti.counts.no_room++;
    tide__cupti_samples_init();
    tide_status st = subscribe(err);
    if (st == TIDE_OK) {
        st = begin(err);
        if (st != TIDE_OK) {
            leave_all();
            unsubscribe();
        }
    }
    if (st != TIDE_OK) forget_all();
    is_started = st == TIDE_OK;
    return st;
}

void tide__cupti_last_round(void) {
    if (!is_started || worker.is_joined) return;
    set_phase(PHASE_ENDS);
    if (wait_for(PHASE_ENDED, WATCHDOG_MS)) {
        pthread_join(worker.thread, NULL);
        worker.is_joined = true;
    } else {
        tide__cupti_lock();
        tide__cupti.counts.flush_hung = 1;
        tide__cupti_unlock();
    }
}

void tide__cupti_stop(tide_cupti_counts *counts, bool unsubscribes) {
    if (!is_started) return;
    tide__cupti_last_round();
    const bool is_quiet = leave_all();
    tide__cupti_count(counts);
    is_started = false;
    if (unsubscribes && worker.is_joined) unsubscribe();
    if (unsubscribes && worker.is_joined && is_quiet) forget_all();
}

void tide__cupti_count(tide_cupti_counts *counts) {
    tide__cupti_lock();
    *counts = tide__cupti.counts;
    counts->errors = atomic_load(&tide__cupti.n_errors);
    tide__cupti_unlock();
}

static void stop_here(tide_cupti_counts *counts) { tide__cupti_stop(counts, true); }

__attribute__((visibility("default"))) const tide_cupti_plugin tidemark_cupti_plugin = {
    .abi = TIDE_CUPTI_ABI,
    .start = tide__cupti_start,
    .stop = stop_here,
    .count = tide__cupti_count,
};
