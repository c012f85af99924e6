// SPDX-License-Identifier: MIT
//
// The recorder: callbacks go straight into the feed, and everything else is about beginning and ending. See recorder.h.
//
//     open    trace made empty -> our row in it -> feed -> drain
//     close   desk closed -> feed ended -> drain takes the rest and finishes -> what it says is what we say
#include "profiler/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "core/base/text.h"
#include "profiler/recorder_internal.h"

// ---- callbacks ----

static void on_memory(void *self, const tide_memory_event *event) { tide__feed_memory(self, event); }
static void on_scope(void *self, const tide_scope_event *event) { tide__feed_scope(self, event); }

tide_observer tide_recorder_observer(tide_recorder *r) {
    return (tide_observer){.self = r->feed, .on_memory = on_memory, .on_scope = on_scope, .no_time = true};
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

int32_t tide__recorder_rank(const tide_recorder_options *opt) {
    if (opt->rank > 0 || (opt->has_rank && opt->rank == 0)) return opt->rank;
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text == NULL || text[0] < '0' || text[0] > '9') continue;
        char *end;
        errno = 0;
        const long rank = strtol(text, &end, 10);
        if (errno == 0 && *end == '\0' && rank <= INT32_MAX) return (int32_t)rank;
    }
    return -1;
}

/// From the root, as long as that can be told, and behind links: feeds and locks lie beside the trace itself.
static char *absolute_path(const char *path) {
    char folder[4096], *real = NULL;
    const tide_status followed = tide_output_follow(path, &real, NULL);
    if (followed != TIDE_OK && followed != TIDE_ERR_NOMEM) real = tide_host_strdup(path); // told when it is made
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
    tide__feed_reader_close(r->looker, false);
    if (r->feed != NULL) tide__feed_end(r->feed);
    tide__feed_destroy(r->feed, remove_feed);
    pthread_mutex_destroy(&r->desk_lock);
    pthread_mutex_destroy(&r->drain_lock);
    tide_host_free(r->path);
    tide_host_free(r);
}

/// The trace and what SQLite put beside it.
static void remove_trace(const tide_recorder *r) {
    static const char *const endings[] = {"", "-wal", "-shm", "-journal", ".drain"};
    char *plain = tide__sql_file_name(r->path);
    for (size_t i = 0; plain != NULL && i < sizeof endings / sizeof endings[0]; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s%s", plain, endings[i]);
        if (!name.failed) unlink(name.data);
        tide_text_deinit(&name);
    }
    tide_host_free(plain);
}

static tide_status make_trace(tide_recorder *r, const char *path, tide_error *err) {
    if (r->opt.drain == TIDE_RECORD_ATTACH) {
        if (path[0] != '\0' && tide__drain_is_locked(r->path)) return TIDE_OK;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot record into '%s': no collector is there", path);
        tide_error_hint(err, "start one with: tidemark record -o TRACE -- COMMAND");
        return st;
    }
    if (path[0] != '\0') TIDE_TRY(tide__drain_lock_making(r->path, &r->making, err));
    TIDE_TRY(tide__store_create(path, err));
    r->created = true;
    return TIDE_OK;
}

static tide_status open_parts(tide_recorder *r, const char *path, tide_error *err) {
    TIDE_TRY(tide__collector_check(r, err));
    TIDE_TRY(make_trace(r, path, err));
    TIDE_TRY(tide__desk_open(r, err));
    const tide__feed_options opt = {.trace_path = r->path,
                                    .process_id = r->process_id,
                                    .rank = tide__recorder_rank(&r->opt),
                                    .ring_slots = r->opt.ring_events,
                                    .drop_when_full = r->opt.drop_when_full,
                                    .max_wait_ns = tide__recorder_max_wait(r)};
    TIDE_TRY(tide__feed_create(&opt, &r->feed, err));
    tide__feed_set_watch(r->feed, tide__recorder_drain_lives, r);
    tide__feed_on_stall(r->feed, tide__recorder_drain_stalls, r);
    TIDE_TRY(tide__desk_set_feed(r, err));
    return tide__recorder_start_drain(r, err);
}

tide_status tide_recorder_open(const char *path, const tide_recorder_options *opt, tide_recorder **out,
                               tide_error *err) {
    tide_recorder *r = tide_host_calloc(1, sizeof *r);
    if (r == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
    if (opt != NULL) r->opt = *opt;
    r->owner = getpid();
    pthread_mutex_init(&r->desk_lock, NULL);
    pthread_mutex_init(&r->drain_lock, NULL);
    r->path = absolute_path(path);
    tide__signal_hold hold;
    tide__hold_xfsz(&hold);
    const tide_status st = r->path != NULL ? open_parts(r, path, err)
                                           : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to record into '%s'", path);
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
    tide_error heard = TIDE_ERROR_INIT;
    const tide_status refused = tide__feed_error(r->feed, &heard);
    // The drain's own words have more in them than what it left in the feed; what was refused came before.
    if (st == TIDE_OK || (refused != TIDE_OK && refused != TIDE_ERR_WRITE)) {
        if (refused != TIDE_OK && err != NULL) *err = heard;
        return refused;
    }
    if (err != NULL) *err = *why;
    return st;
}

/// In a child of fork the trace, its locks and its connections are the parent's.
static bool is_ours(const tide_recorder *r) { return r->owner == getpid(); }

tide_status tide_recorder_close(tide_recorder *r, tide_error *err) {
    if (!is_ours(r)) {
        tide__feed_destroy(r->feed, false);
        return TIDE_OK;
    }
    tide__signal_hold hold;
    tide__hold_xfsz(&hold);
    tide__desk_close(r);
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
    tide__desk_close(r);
    tide__recorder_stop_drain(r);
    if (r->created) remove_trace(r);
    // A trace that others record into keeps what was heard: its collector takes the feed away.
    destroy(r, r->created || r->process_id == 0);
}
