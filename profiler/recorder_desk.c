// SPDX-License-Identifier: MIT
//
// The desk: what a recorded process writes into its trace itself, beside the drain: its row, runs with their plans,
// facts. Seldom, and through a connection of its own; while it waits for its turn the drain holds back.
//
// A run is a row first, and then a slot in the ring of the thread that begins it: where it begins among the events is
// for the drain to say.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/recorder_internal.h"

enum { MAX_COMMAND = 4096 };

// ---- our row ----

/// The command line, its words apart by blanks; NULL: not known.
static char *command_line(void) {
    char *text;
    size_t len;
    if (tide_read_file("/proc/self/cmdline", 0, &text, &len, NULL) != TIDE_OK) return NULL;
    while (len > 0 && text[len - 1] == '\0') len--;
    if (len > MAX_COMMAND) len = MAX_COMMAND;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0') text[i] = ' ';
    text[len] = '\0';
    return text;
}

static tide_status add_process(tide_recorder *r, tide_error *err) {
    TIDE_TRY(tide__store_begin(r->desk, err));
    char *command = command_line();
    const int32_t rank = tide__recorder_rank(&r->opt);
    const tide_status st =
        tide__store_add_process(r->desk, getpid(), rank, command, NULL, (int64_t)tide_now_ns(), &r->process_id, err);
    tide_host_free(command);
    return tide__store_end(r->desk, st, err);
}

tide_status tide__desk_open(tide_recorder *r, tide_error *err) {
    TIDE_TRY(tide__store_open(r->path, &r->desk, err));
    return add_process(r, err);
}

tide_status tide__desk_set_feed(tide_recorder *r, tide_error *err) {
    const char *path = tide__feed_path(r->feed), *slash = strrchr(path, '/');
    TIDE_TRY(tide__store_begin(r->desk, err));
    const tide_status st = tide__store_set_feed(r->desk, r->process_id, slash != NULL ? slash + 1 : path, err);
    return tide__store_end(r->desk, st, err);
}

// ---- turns ----

/// What ended the recording early, if anything did. A refused event did not.
static tide_status failure_of(const tide_recorder *r, tide_error *err) {
    const tide__feed_header *head = tide__feed_head(r->feed);
    if (atomic_load_explicit(&head->drain, memory_order_acquire) != TIDE__DRAIN_FAILED) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "%.*s", (int)strnlen(head->error, sizeof head->error), head->error);
}

/// With the desk's lock: wait for the trace, with a word to the drain. The connection is only good while we are who
/// opened it.
static tide_status begin(tide_recorder *r, tide_error *err) {
    TIDE_TRY(failure_of(r, err));
    tide__feed_header *head = tide__feed_head(r->feed);
    atomic_fetch_add(&head->desk_waits, 1u);
    const tide_status st = tide__store_begin(r->desk, err);
    atomic_fetch_sub(&head->desk_waits, 1u);
    return st;
}

typedef struct turn {
    tide__signal_hold hold;
} turn;

static tide_status take_turn(tide_recorder *r, turn *t, tide_error *err) {
    if (r->owner != getpid())
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': a forked process has no part in it", r->path);
    pthread_mutex_lock(&r->desk_lock);
    tide__hold_xfsz(&t->hold);
    return TIDE_OK;
}

static void end_turn(tide_recorder *r, const turn *t) {
    tide__release_xfsz(&t->hold);
    pthread_mutex_unlock(&r->desk_lock);
}

// ---- runs ----

/// 0: the feed reads the clock, when the slot is put in.
static uint64_t now(const tide_recorder *r) { return r->opt.now != NULL ? r->opt.now(r->opt.now_ctx) : 0; }

static tide_status begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                             tide_error *err) {
    if (r->run_id != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot begin a run of '%s': run %" PRId64 " is still open",
                         info->model != NULL ? info->model : "", r->run_id);
    TIDE_TRY(begin(r, err));
    const uint64_t t_ns = now(r);
    int64_t run_id = 0;
    tide_status st = tide__store_add_run(r->desk, r->process_id, info, plan,
                                         (int64_t)(t_ns != 0 ? t_ns : tide_now_ns()), &run_id, err);
    TIDE_TRY(tide__store_end(r->desk, st, err));
    tide__feed_run(r->feed, true, run_id, t_ns);
    r->run_id = run_id;
    return TIDE_OK;
}

tide_status tide_recorder_begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                                    int64_t *run_id, tide_error *err) {
    turn t;
    TIDE_TRY(take_turn(r, &t, err));
    const tide_status st = begin_run(r, info, plan, err);
    if (st == TIDE_OK && run_id != NULL) *run_id = r->run_id;
    end_turn(r, &t);
    return st;
}

static tide_status end_run(tide_recorder *r, tide_error *err) {
    TIDE_TRY(failure_of(r, err));
    if (r->run_id == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot end a run: none is open");
    tide__feed_run(r->feed, false, r->run_id, now(r));
    r->run_id = 0;
    return TIDE_OK;
}

tide_status tide_recorder_end_run(tide_recorder *r, tide_error *err) {
    turn t;
    TIDE_TRY(take_turn(r, &t, err));
    const tide_status st = end_run(r, err);
    end_turn(r, &t);
    return st;
}

// ---- facts ----

static bool is_own_key(const char *key) {
    static const char *const own[] = {
        "schema",     "version",     "created_by",     "created_utc",      "clock",           "state",
        "reason",     "n_events",    "n_scope_events", "n_blocks",         "n_orphan_frees",  "n_runs",
        "n_names",    "n_scopes",    "n_threads",      "n_processes",      "n_problems",      "n_lost",
        "feed_bytes", "freed_bytes", "blocked_ns",     "n_gaps",           "requested_bytes", "n_snapshots",
        "n_leaves",   "n_thinned",   "own_peak_bytes", "first_kept_event", "totals",
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(key, own[i]) == 0) return true;
    return false;
}

tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value, tide_error *err) {
    if (is_own_key(key))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot put '%s' into meta: the recorder writes it itself", key);
    turn t;
    TIDE_TRY(take_turn(r, &t, err));
    tide_status st = begin(r, err);
    if (st == TIDE_OK) st = tide__store_end(r->desk, tide__store_put_meta(r->desk, key, value, err), err);
    end_turn(r, &t);
    return st;
}

void tide__desk_close(tide_recorder *r) {
    pthread_mutex_lock(&r->desk_lock);
    if (r->run_id != 0 && r->feed != NULL) (void)!end_run(r, NULL);
    tide__store_close(r->desk);
    r->desk = NULL;
    pthread_mutex_unlock(&r->desk_lock);
}

// ---- marks, flush ----

void tide_recorder_mark(tide_recorder *r, const char *name) {
    const tide_memory_event e = {.op = TIDE_MEM_SNAPSHOT,
                                 .t_ns = now(r),
                                 .device = TIDE_CPU,
                                 .thread = tide_thread_id(),
                                 .tag = name,
                                 .scope = tide_scope_current()};
    tide__feed_memory(r->feed, &e);
}

/// Heads of all rings as they are now; *n of them, owned by the caller.
static tide_status read_heads(tide_recorder *r, uint64_t **heads, size_t *n, tide_error *err) {
    if (r->looker == NULL) TIDE_TRY(tide__feed_reader_open(tide__feed_path(r->feed), true, &r->looker, err));
    TIDE_TRY(tide__feed_reader_refresh(r->looker, err));
    *n = tide__feed_reader_n_rings(r->looker);
    *heads = tide_host_calloc(*n + 1, sizeof **heads);
    if (*heads == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to flush '%s'", r->path);
    for (size_t i = 0; i < *n; i++)
        (*heads)[i] = atomic_load_explicit(&tide__feed_reader_ring(r->looker, i)->head, memory_order_acquire);
    return TIDE_OK;
}

static bool is_written(const tide_recorder *r, const uint64_t *heads, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (atomic_load_explicit(&tide__feed_reader_ring(r->looker, i)->tail, memory_order_acquire) < heads[i])
            return false;
    return true;
}

static tide_status flush(tide_recorder *r, tide_error *err) {
    uint64_t *heads = NULL;
    size_t n;
    TIDE_TRY(read_heads(r, &heads, &n, err));
    tide_status st = TIDE_OK;
    uint64_t stopped_ns = 0;
    for (unsigned i = 0; !is_written(r, heads, n); i++) {
        st = failure_of(r, err);
        if (st == TIDE_OK && i % 64 == 63 && tide__recorder_is_stopped_too_long(r, &stopped_ns))
            st = tide__recorder_stopped(r, "flush", err);
        if (st != TIDE_OK) break;
        if (i % 16 == 0) tide__recorder_hurry(r);
        if (i % 64 == 63) tide__feed_check(r->feed);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    tide_host_free(heads);
    return st;
}

tide_status tide_recorder_flush(tide_recorder *r, tide_error *err) {
    turn t;
    TIDE_TRY(take_turn(r, &t, err));
    const tide_status st = flush(r, err);
    end_turn(r, &t);
    return st;
}
