// SPDX-License-Identifier: MIT
//
// Life of a recorder, its observer, and what the recorded process tells of itself: runs with their plans, facts. See
// tidemark/record.h.
//
//     open    trace made empty -> feed -> drain, which makes our row
//     close   feed ended -> drain takes the rest and finishes -> its result is ours
//
// All of it goes into the feed: one process writes the trace, the one that drains. A run is a record of the log first,
// then a slot in the ring of the thread that begins it: so the drain knows where it begins among the events.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "core/base/text.h"
#include "profiler/collector.h"
#include "profiler/feed/process_stat.h"
#include "profiler/feed/registration.h"
#include "profiler/recorder_internal.h"

// ---- calls that take turns ----

typedef struct turn {
    tide__signal_hold hold;
} turn;

static tide_status take_turn(tide_recorder *r, turn *t, tide_error *err) {
    if (r->owner != getpid())
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': a forked process has no part in it", r->path);
    pthread_mutex_lock(&r->call_lock);
    tide__hold_xfsz(&t->hold);
    return TIDE_OK;
}

static void end_turn(tide_recorder *r, const turn *t) {
    tide__release_xfsz(&t->hold);
    pthread_mutex_unlock(&r->call_lock);
}

// ---- runs ----

/// 0: the feed reads the clock, when the slot is put in.
static uint64_t now(const tide_recorder *r) { return r->opt.now != NULL ? r->opt.now(r->opt.now_ctx) : 0; }

static tide_status begin_run(tide_recorder *r, const tide_run_info *info, const tide_memory_plan *plan,
                             tide_error *err) {
    if (r->run_id != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot begin a run of '%s': run %" PRId64 " is still open",
                         info->model != NULL ? info->model : "", r->run_id);
    TIDE_TRY(tide__recorder_failure(r, err));
    const uint64_t t_ns = now(r);
    const int64_t begin_ns = (int64_t)((t_ns != 0 ? t_ns : tide_now_ns()) & INT64_MAX);
    tide_text bytes = {0};
    tide_status st = tide__registration_put_run(&bytes, info, plan, begin_ns, err);
    if (st == TIDE_OK) st = tide__feed_register(r->feed, TIDE__LOG_RUN, bytes.data, bytes.len, err);
    tide_text_deinit(&bytes);
    TIDE_TRY(st);
    r->run_id = ++r->n_runs;
    tide__feed_run(r->feed, true, r->run_id, t_ns);
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
    TIDE_TRY(tide__recorder_failure(r, err));
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

tide_status tide_recorder_put_meta(tide_recorder *r, const char *key, const char *value, tide_error *err) {
    if (tide__is_own_key(key))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot put '%s' into meta: the recorder writes it itself", key);
    turn t;
    TIDE_TRY(take_turn(r, &t, err));
    tide_text bytes = {0};
    tide_status st = tide__recorder_failure(r, err);
    if (st == TIDE_OK) st = tide__registration_put_fact(&bytes, key, value, err);
    if (st == TIDE_OK) st = tide__feed_register(r->feed, TIDE__LOG_FACT, bytes.data, bytes.len, err);
    tide_text_deinit(&bytes);
    end_turn(r, &t);
    return st;
}

static void end_open_run(tide_recorder *r) {
    pthread_mutex_lock(&r->call_lock);
    if (r->run_id != 0 && r->feed != NULL) (void)!end_run(r, NULL);
    pthread_mutex_unlock(&r->call_lock);
}

// ---- marks, flush ----

void tide_recorder_mark(tide_recorder *r, const char *name) {
    if (r == NULL) return;
    const tide_memory_event e = {.op = TIDE_MEM_SNAPSHOT,
                                 .t_ns = now(r),
                                 .device = TIDE_CPU,
                                 .thread = tide_thread_id(),
                                 .tag = name,
                                 .scope = tide_scope_current()};
    tide__feed_memory(r->feed, &e);
}

/// Whether all events before `heads`, and `n_registered` runs and facts, are in the file.
static bool is_written(const tide_recorder *r, const uint64_t *heads, size_t n, uint64_t n_registered) {
    const tide__feed_header *head = tide__feed_head(r->feed);
    return atomic_load_explicit(&head->n_registered, memory_order_acquire) >= n_registered &&
           tide__feed_has_given(r->feed, heads, n);
}

static tide_status flush(tide_recorder *r, tide_error *err) {
    uint64_t *heads = NULL;
    size_t n;
    TIDE_TRY(tide__feed_heads(r->feed, &heads, &n, err));
    tide_status st = TIDE_OK;
    const uint64_t n_registered = tide__feed_n_registered(r->feed);
    uint64_t stopped_ns = 0;
    for (unsigned i = 0; !is_written(r, heads, n, n_registered); i++) {
        st = tide__recorder_failure(r, err);
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

// ---- callbacks ----

static void on_memory(void *self, const tide_memory_event *event) { tide__feed_memory(self, event); }
static void on_scope(void *self, const tide_scope_event *event) { tide__feed_scope(self, event); }

static void hear_nothing(void *self, const tide_memory_event *event) { (void)self, (void)event; }

tide_observer tide_recorder_observer(tide_recorder *r) {
    if (r == NULL) return (tide_observer){.on_memory = hear_nothing, .no_time = true};
    return (tide_observer){.self = r->feed, .on_memory = on_memory, .on_scope = on_scope, .no_time = true};
}

void tide_recorder_enter(tide_recorder *r, tide_scope *scope) {
    if (r == NULL) return;
    const tide_observer to = tide_recorder_observer(r);
    tide_scope_enter(scope, &to);
}

void tide_recorder_leave(tide_recorder *r, tide_scope *scope) {
    if (r == NULL) return;
    const tide_observer to = tide_recorder_observer(r);
    tide_scope_leave(scope, &to);
}

void tide_recorder_get_stats(const tide_recorder *r, tide_recorder_stats *out) {
    tide__feed_stats s;
    tide__feed_get_stats(r->feed, &s);
    *out = (tide_recorder_stats){.n_events = s.n_events,
                                 .n_lost = s.n_lost,
                                 .n_refused = s.n_refused,
                                 .blocked_ns = s.blocked_ns,
                                 .feed_bytes = s.file_bytes,
                                 .n_threads = s.n_rings};
}

// ---- open ----

/// From the root, as long as that can be told, and behind links: feeds and locks lie beside the trace itself.
static char *absolute_path(const char *path) {
    char folder[4096], *real = NULL;
    const tide_status followed = tide_output_follow(path, &real, NULL);
    if (followed != TIDE_OK && followed != TIDE_ERR_NOMEM) real = tide_host_strdup(path); // reported when it is made
    if (real == NULL || real[0] == '/' || getcwd(folder, sizeof folder) == NULL) return real;
    tide_text text = {0};
    tide_text_addf(&text, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, real);
    tide_host_free(real);
    if (!text.failed) return text.data;
    tide_text_deinit(&text);
    return NULL;
}

static void destroy(tide_recorder *r, bool remove_feed) {
    tide__drain_made(&r->making);
    if (r->feed != NULL) tide__feed_end(r->feed);
    tide__feed_destroy(r->feed, remove_feed);
    tide__own_blocks_destroy(r->own);
    pthread_mutex_destroy(&r->call_lock);
    pthread_mutex_destroy(&r->drain_lock);
    tide_host_free(r->path);
    tide_host_free(r);
}

/// The trace and what SQLite put beside it.
static void remove_trace(const tide_recorder *r) {
    static const char *const endings[] = {"", "-wal", "-shm", "-journal", ".drain"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s%s", r->path, endings[i]);
        if (!name.failed) unlink(name.data);
        tide_text_deinit(&name);
    }
}

static tide_status make_feed(tide_recorder *r, tide_error *err) {
    char command[TIDE__MAX_COMMAND];
    tide__process_command(command);
    const bool has_rank = r->opt.rank > 0 || (r->opt.has_rank && r->opt.rank == 0);
    const tide__feed_options opt = {.trace_path = r->path,
                                    .command = command[0] != '\0' ? command : NULL,
                                    .rank = has_rank ? r->opt.rank : tide__process_rank(),
                                    .ring_slots = r->opt.ring_events,
                                    .drop_when_full = r->opt.drop_when_full,
                                    .max_wait_ns = tide__recorder_max_wait(r)};
    TIDE_TRY(tide__feed_create(&opt, &r->feed, err));
    tide__feed_set_watch(r->feed, tide__recorder_drain_lives, r);
    tide__feed_on_stall(r->feed, tide__recorder_drain_stalls, r);
    return TIDE_OK;
}

static tide_status open_parts(tide_recorder *r, const char *path, tide_error *err) {
    TIDE_TRY(tide__own_blocks_create(&r->own, err));
    TIDE_TRY(tide__recorder_make_trace(r, path, err));
    TIDE_TRY(make_feed(r, err));
    return tide__recorder_start_drain(r, err);
}

tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) {
    tide_recorder *r;
    TIDE_TRY(TIDE_NEW(&r, 1, err, "to record into '%s'", path));
    if (opt != NULL) r->opt = *opt;
    r->owner = getpid();
    pthread_mutex_init(&r->call_lock, NULL);
    pthread_mutex_init(&r->drain_lock, NULL);
    r->path = absolute_path(path);
    tide__signal_hold hold;
    tide__hold_xfsz(&hold);
    const tide_status st =
        r->path != NULL ? open_parts(r, path, err) : TIDE_NO_MEMORY(err, "to record into '%s'", path);
    if (st == TIDE_OK) tide__drain_made(&r->making);
    tide__release_xfsz(&hold);
    if (st == TIDE_OK) {
        *out = r;
        return TIDE_OK;
    }
    tide_recorder_abandon(r);
    return st;
}

// ---- close ----

static tide_status first_error(const tide_recorder *r, tide_status st, const tide_error *why, tide_error *err) {
    tide_error first = TIDE_ERROR_INIT;
    const tide_status refused = tide__feed_error(r->feed, &first);
    // The drain's own message has more in it than the one in the feed; a refusal came before.
    if (st == TIDE_OK || (refused != TIDE_OK && refused != TIDE_ERR_WRITE)) {
        if (refused != TIDE_OK && err != NULL) *err = first;
        return refused;
    }
    if (err != NULL) *err = *why;
    return st;
}

/// In a child of fork the trace, its locks and its connections are the parent's.
static bool is_ours(const tide_recorder *r) { return r->owner == getpid(); }

void tide__recorder_process_ends(tide_recorder *r) {
    if (is_ours(r)) tide__feed_say_ending(r->feed, TIDE__FEED_ENDS);
}

tide_status tide_recorder_close(tide_recorder *r, tide_error *err) {
    if (!is_ours(r)) {
        tide__feed_destroy(r->feed, false);
        return TIDE_OK;
    }
    tide__signal_hold hold;
    tide__hold_xfsz(&hold);
    end_open_run(r);
    tide__feed_end(r->feed);
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__recorder_end_drain(r, &why);
    st = first_error(r, st, &why, err);
    destroy(r, false);
    tide__release_xfsz(&hold);
    return st;
}

void tide_recorder_abandon(tide_recorder *r) {
    if (r == NULL) return;
    if (!is_ours(r)) {
        tide__feed_destroy(r->feed, false);
        return;
    }
    end_open_run(r);
    tide__recorder_stop_drain(r);
    if (r->created) remove_trace(r);
    // A trace that others record into keeps what was recorded: its collector removes the feed.
    destroy(r, r->created || !tide__recorder_is_taken(r));
}
