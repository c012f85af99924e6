// SPDX-License-Identifier: MIT
//
// The end of a trace; and the trace that a killed process left, which is drained and finished by whoever opens it next.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "profiler/drain/drain_internal.h"
#include "profiler/store/finish.h"

enum { MAX_EXPANDED = 4 << 20 }; ///< events in chunks that form AUTO turns into rows: 170 MB of them

static void remove_feeds(tide__drain *d) {
    for (size_t i = 0; i < d->n_feeds; i++) tide__drain_feed_destroy(d->feeds[i], !d->feeds[i]->is_damaged);
    d->n_feeds = 0;
}

/// What the end of the tables does not know.
static tide_status write_facts(tide__drain *d, tide_error *err) {
    tide_host_stats own;
    tide_host_get_stats(&own);
    TIDE_TRY(tide__store_put_meta_int(d->store, "feed_bytes", (int64_t)d->feed_bytes, err));
    TIDE_TRY(tide__store_put_meta_int(d->store, "blocked_ns", (int64_t)d->blocked_ns, err));
    TIDE_TRY(tide__store_put_meta_int(d->store, "own_peak_bytes", (int64_t)own.peak_bytes, err));
    return tide__store_put_meta_int(d->store, "n_orphan_frees", d->n_orphans_stored, err);
}

/// What is in chunks, and how much; -1 when that cannot be told.
static int64_t count_chunked(const tide__drain *d) {
    int64_t n;
    return tide__sql_int(tide__store_sql(d->store), "SELECT sum(last_event - first_event + 1) FROM event_chunk", 0, &n,
                         NULL) == TIDE_OK
               ? n
               : -1;
}

/// Tables of the end. Gives the store away.
static tide_status finish_store(tide__drain *d, const char *reason, tide_error *err) {
    TIDE_TRY(tide__store_begin(d->store, err));
    TIDE_TRY(tide__store_end(d->store, write_facts(d, err), err));
    const int64_t n_chunked = count_chunked(d);
    tide__store *store = d->store;
    d->store = NULL;
    TIDE_TRY(tide__finish(store, reason, err));
    if (d->opt.form != TIDE_RECORD_AUTO || n_chunked <= 0 || n_chunked > MAX_EXPANDED || d->opt.max_bytes != 0)
        return TIDE_OK;
    tide_error why = TIDE_ERROR_INIT;
    if (tide__finish_expand(d->path, &why) != TIDE_OK && !d->opt.quiet) // as chunks they are no less there
        tide_log(TIDE_LOG_WARN, "'%s': events stay in chunks: %s", d->path, why.msg);
    return TIDE_OK;
}

/// After a failure: what is in the file is what counts, and all that the end of the tables looks at.
static tide_status finish_failed(tide__drain *d, tide_error *err) {
    if (!d->is_removed && tide__drain_check_file(d, true, NULL) == TIDE_OK &&
        finish_store(d, d->failure.msg, NULL) == TIDE_OK)
        remove_feeds(d);
    if (d->is_removed) remove_feeds(d); // what they hold belongs to nothing
    if (err != NULL) *err = d->failure;
    return d->failure.status;
}

tide_status tide__drain_finish(tide__drain *d, tide_error *err) {
    if (d->failure.status == TIDE_OK) (void)!tide__drain_check_file(d, true, &d->failure);
    if (d->failure.status != TIDE_OK) return finish_failed(d, err);
    const tide_status st = finish_store(d, d->reason[0] != '\0' ? d->reason : NULL, err);
    if (st == TIDE_OK) remove_feeds(d);
    return st;
}

// ---- what was left behind ----

static tide_status read_state(const char *path, bool *unfinished, tide_error *err) {
    tide__sql s = {.path = path};
    TIDE_TRY(tide__sql_open_to_read(&s, err));
    sqlite3_stmt *stmt = NULL;
    tide_status st = tide__sql_prepare(&s, "SELECT value FROM meta WHERE key = 'state'", &stmt, err);
    bool has_row = false;
    if (st == TIDE_OK) st = tide__sql_step(&s, stmt, &has_row, err);
    *unfinished = st == TIDE_OK && has_row && strcmp(tide__sql_text(stmt, 0), TIDE__STATE_RECORDING) == 0;
    sqlite3_finalize(stmt);
    sqlite3_close(s.db);
    return st;
}

void tide__drain_sweep(const char *path) {
    if (!tide__drain_has_lock(path) || tide__drain_is_in_use(path)) return;
    tide__drain_lock_file *lock = tide_host_calloc(1, sizeof *lock);
    if (lock != NULL && tide__drain_lock(path, lock, NULL) == TIDE_OK) tide__drain_unlock(lock);
    tide_host_free(lock);
}

static tide_status feeds_in_use(const char *path, bool *in_use, tide_error *err) {
    char **paths;
    size_t n;
    TIDE_TRY(tide__feed_list(path, &paths, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (tide__feed_is_in_use(paths[i])) *in_use = true;
        tide_host_free(paths[i]);
    }
    tide_host_free(paths);
    return TIDE_OK;
}

tide_status tide__drain_look(const char *path, bool *unfinished, bool *in_use, tide_error *err) {
    *unfinished = *in_use = false;
    if (access(path, F_OK) != 0) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "cannot open '%s': no such file", path);
    TIDE_TRY(read_state(path, unfinished, err));
    *in_use = tide__drain_is_in_use(path);
    return *in_use ? TIDE_OK : feeds_in_use(path, in_use, err);
}

static tide_status drain_all(tide__drain *d, tide_error *err) {
    for (;;) {
        size_t n_events, n_alive;
        TIDE_TRY(tide__drain_round(d, &n_events, &n_alive, err));
        for (size_t i = 0; i < d->n_feeds; i++) {
            if (!d->feeds[i]->is_ended && d->feeds[i]->is_alive)
                return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot finish '%s': '%s' still records into it", d->path,
                                 d->feeds[i]->path);
        }
        if (n_alive == 0) return TIDE_OK;
        if (d->has_held_feed)
            return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot finish '%s': another process takes events out of a feed",
                             d->path);
    }
}

tide_status tide__drain_recover(const char *path, tide_error *err) {
    bool in_use = false;
    TIDE_TRY(feeds_in_use(path, &in_use, err));
    if (in_use) return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot finish '%s': somebody records into it", path);
    const tide__drain_options opt = {.trace_path = path, .quiet = true};
    tide__drain *d;
    TIDE_TRY(tide__drain_open(&opt, &d, err));
    tide_status st = drain_all(d, err);
    if (st == TIDE_OK) tide__store_remove_strays(path);
    if (st == TIDE_OK) st = tide__drain_finish(d, err);
    tide__drain_close(d);
    return st;
}
