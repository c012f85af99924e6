// SPDX-License-Identifier: MIT
//
// A trace that is written in one go. See new_trace.h.
#include "profiler/store/new_trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/drain/drain.h"
#include "profiler/feed/reader.h"
#include "profiler/store/finish.h"
#include "profiler/store/process_ends.h"
#include "profiler/store/snapshot.h"

enum { BATCH_EVENTS = 4096, TRANSACTION_EVENTS = 1 << 18 };

// ---- names of files ----

/// What belongs to an earlier file of that name must go, or SQLite would take its log for the new one's. False: no
/// memory, something may still be there.
static bool remove_beside(const char *path) {
    static const char *const endings[] = {"-wal", "-shm", "-journal"};
    bool good = true;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        tide_text name = {0};
        tide_text_addf(&name, "%s%s", path, endings[i]);
        good = !name.failed && good;
        if (!name.failed) unlink(name.data);
        tide_text_deinit(&name);
    }
    char **feeds = NULL;
    size_t n = 0;
    if (tide__feed_list(path, &feeds, &n, NULL) == TIDE_ERR_NOMEM) return false;
    for (size_t i = 0; i < n; i++) {
        unlink(feeds[i]);
        tide_host_free(feeds[i]);
    }
    tide_host_free(feeds);
    return good;
}

void tide__new_trace_remove(const char *path) {
    unlink(path);
    (void)remove_beside(path);
}

static tide_status check_path(const char *path, tide_error *err) {
    if (path[0] == '\0' || strcmp(path, "-") == 0) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot write '%s': a trace is not a stream", path);
        tide_error_hint(err, "name a file, for example trace.db");
        return st;
    }
    struct stat info;
    if (stat(path, &info) != 0) return TIDE_OK;
    if (!S_ISREG(info.st_mode))
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot write '%s': it is %s", path,
                         S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
    bool unfinished = false, in_use = false;
    if (tide__drain_look(path, &unfinished, &in_use, NULL) == TIDE_OK && in_use)
        return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot write '%s': another process records into it", path);
    return TIDE_OK;
}

// ---- life ----

tide_status tide__new_trace_create(tide__new_trace *o, const char *path, tide_error *err) {
    *o = (tide__new_trace){0};
    TIDE_TRY(check_path(path, err));
    tide_status st = TIDE_COPY_TEXT(&o->path, path, err, "to write '%s'", path);
    if (st == TIDE_OK) st = TIDE_NEW(&o->batch, BATCH_EVENTS, err, "to write '%s'", path);
    if (st == TIDE_OK && tide__replay_init(&o->replay) != TIDE_OK) st = TIDE_NO_MEMORY(err, "to write '%s'", path);
    if (st == TIDE_OK) st = tide_output_begin(path, &o->output, err);
    if (st == TIDE_OK) {
        o->tmp_path = tide_output_file(o->output);
        st = tide__store_fill(o->tmp_path, path, err);
    }
    if (st == TIDE_OK) st = tide__store_open(o->tmp_path, &o->store, err);
    if (st != TIDE_OK) tide__new_trace_deinit(o);
    return st;
}

void tide__new_trace_deinit(tide__new_trace *o) {
    tide__store_close(o->store);
    tide_output_drop(o->output);
    tide__names_deinit(&o->names);
    tide__replay_deinit(&o->replay);
    tide__leaves_deinit(&o->leaves);
    tide_host_free(o->batch);
    tide_host_free(o->path);
    *o = (tide__new_trace){0};
}

// ---- transactions ----

static tide_status begin(tide__new_trace *o, tide_error *err) {
    if (o->in_transaction) return TIDE_OK;
    TIDE_TRY(tide__store_begin(o->store, err));
    o->in_transaction = true;
    o->n_in_transaction = 0;
    return TIDE_OK;
}

static tide_status commit(tide__new_trace *o, tide_error *err) {
    if (!o->in_transaction) return TIDE_OK;
    o->in_transaction = false;
    return tide__store_end(o->store, TIDE_OK, err);
}

tide_status tide__new_trace_sql(tide__new_trace *o, const tide__sql **s, tide_error *err) {
    TIDE_TRY(begin(o, err));
    *s = tide__store_sql(o->store);
    return TIDE_OK;
}

bool tide__new_trace_makes(const char *key) {
    static const char *const all[] = {
        "schema",      "version", "state",     "reason",           "n_orphan_frees", "n_scope_events",  "n_blocks",
        "n_runs",      "n_names", "n_scopes",  "n_events",         "n_chunks",       "requested_bytes", "n_problems",
        "freed_bytes", "n_lost",  "n_threads", "first_kept_event", "totals",         "left_bytes",      "packed"};
    if (strncmp(key, TIDE__PROCESS_END_KEY, sizeof TIDE__PROCESS_END_KEY - 1) == 0) return true;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(key, all[i]) == 0) return true;
    return false;
}

tide_status tide__new_trace_meta(tide__new_trace *o, const char *key, const char *value, tide_error *err) {
    TIDE_TRY(begin(o, err));
    return tide__store_put_meta(o->store, key, value, err);
}

tide_status tide__new_trace_meta_int(tide__new_trace *o, const char *key, int64_t value, tide_error *err) {
    TIDE_TRY(begin(o, err));
    return tide__store_put_meta_int(o->store, key, value, err);
}

// ---- events ----

static tide_status write_leaves(tide__new_trace *o, tide_error *err) {
    if (o->leaves.n_done == 0) return TIDE_OK;
    TIDE_TRY(begin(o, err));
    TIDE_TRY(tide__store_write_leaves(o->store, &o->replay, o->leaves.done, o->leaves.n_done, err));
    o->leaves.n_done = 0;
    return TIDE_OK;
}

static tide_status flush(tide__new_trace *o, tide_error *err) {
    TIDE_TRY(begin(o, err));
    TIDE_TRY(tide__store_write_names(o->store, &o->names, err));
    tide__names_written(&o->names); // after a failed commit they are not used again
    if (o->n_batch > 0) TIDE_TRY(tide__store_write_events(o->store, o->batch, o->n_batch, o->batch_is_chunk, err));
    o->n_in_transaction += o->n_batch;
    o->n_batch = 0;
    TIDE_TRY(write_leaves(o, err));
    return o->n_in_transaction >= TRANSACTION_EVENTS ? commit(o, err) : TIDE_OK;
}

static bool snapshot_is_due(const tide__new_trace *o) {
    if (o->last_event % TIDE__LEAF_EVENTS != 0) return false;
    return o->last_event - o->snapshot_event >= tide__snapshot_distance(o->replay.n_live, o->batch_is_chunk);
}

static tide_status write_snapshot(tide__new_trace *o, tide_error *err) {
    TIDE_TRY(begin(o, err));
    TIDE_TRY(tide__store_write_snapshot(o->store, &o->replay, err));
    o->snapshot_event = o->last_event;
    return TIDE_OK;
}

/// Series get their rows with their first leaf; those of a snapshot without leaves before it need theirs here.
static tide_status write_series(tide__new_trace *o, tide_error *err) {
    const tide__sql *s;
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__new_trace_sql(o, &s, err));
    TIDE_TRY(tide__sql_prepare(s, "INSERT OR IGNORE INTO series(id, device, kind) VALUES(?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 1; st == TIDE_OK && i < o->replay.n_series; i++) {
        sqlite3_bind_int64(stmt, 1, (int64_t)i);
        sqlite3_bind_int64(stmt, 2, o->replay.series[i].device);
        sqlite3_bind_int64(stmt, 3, o->replay.series[i].kind);
        st = tide__sql_run(s, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__new_trace_begin_at(tide__new_trace *o, int64_t last_event, int64_t last_ns, tide__replay *blocks,
                                     tide_error *err) {
    tide__replay_deinit(&o->replay);
    o->replay = *blocks;
    *blocks = (tide__replay){0};
    o->replay.last_event = o->last_event = last_event;
    o->replay.last_ns = o->last_ns = last_ns;
    TIDE_TRY(write_series(o, err));
    return write_snapshot(o, err);
}

tide_status tide__new_trace_past_moment(tide__new_trace *o, int64_t event, int64_t t_ns, tide__replay *blocks,
                                        tide_error *err) {
    blocks->last_event = event;
    blocks->last_ns = t_ns;
    TIDE_TRY(begin(o, err));
    return tide__store_write_snapshot(o->store, blocks, err);
}

/// What of the event cannot be true is noted in the file; the end of a block whose alloc is missing only counts.
static tide_status note_problem(tide__new_trace *o, const tide__event *e, tide__problem problem, tide_error *err) {
    if (problem == TIDE__PROBLEM_NONE) return TIDE_OK;
    if (o->forgive && (problem == TIDE__PROBLEM_FREE_UNKNOWN || problem == TIDE__PROBLEM_REQUESTED_UNKNOWN)) {
        o->n_orphan_frees++;
        return TIDE_OK;
    }
    TIDE_TRY(begin(o, err));
    return tide__store_write_problem(o->store, e, problem, err);
}

tide_status tide__new_trace_event(tide__new_trace *o, const tide__event *e, bool as_chunk, tide_error *err) {
    if (o->n_batch > 0 && (o->n_batch == BATCH_EVENTS || o->batch_is_chunk != as_chunk)) TIDE_TRY(flush(o, err));
    tide__event next = *e;
    next.id = o->last_event + 1;
    if (next.t_ns < o->last_ns) next.t_ns = o->last_ns;
    tide__problem problem = TIDE__PROBLEM_NONE;
    size_t series = 0;
    tide_status st = tide__replay_apply(&o->replay, &next, &problem, &series);
    if (st == TIDE_OK) st = tide__leaves_add(&o->leaves, &o->replay, &next, series);
    if (st == TIDE_ERR_NOMEM) return TIDE_NO_MEMORY(err, "to write '%s'", o->path);
    if (st != TIDE_OK) return TIDE_FAIL(err, st, "cannot write '%s': an event of no device", o->path);
    if (o->first_ns == 0) o->first_ns = next.t_ns;
    o->last_event = next.id;
    o->last_ns = next.t_ns;
    o->batch[o->n_batch++] = next;
    o->batch_is_chunk = as_chunk;
    TIDE_TRY(note_problem(o, &next, problem, err));
    return snapshot_is_due(o) ? write_snapshot(o, err) : TIDE_OK;
}

// ---- the end ----

tide_status tide__new_trace_close(tide__new_trace *o, tide_error *err) {
    TIDE_TRY(flush(o, err));
    if (o->n_orphan_frees > 0) TIDE_TRY(tide__new_trace_meta_int(o, "n_orphan_frees", o->n_orphan_frees, err));
    TIDE_TRY(commit(o, err));
    tide__store_close(o->store);
    o->store = NULL;
    return TIDE_OK;
}

tide_status tide__new_trace_replace(tide__new_trace *o, tide_error *err) {
    if (!remove_beside(tide_output_target(o->output))) return TIDE_NO_MEMORY(err, "to write '%s'", o->path);
    tide_output *output = o->output;
    o->output = NULL;
    o->tmp_path = NULL;
    return tide_output_end(output, err);
}

tide_status tide__new_trace_finish(tide__new_trace *o, const char *reason, tide_error *err) {
    TIDE_TRY(flush(o, err));
    if (tide__leaves_end(&o->leaves) != TIDE_OK) return TIDE_NO_MEMORY(err, "to write '%s'", o->path);
    TIDE_TRY(write_leaves(o, err));
    if (o->n_orphan_frees > 0) TIDE_TRY(tide__new_trace_meta_int(o, "n_orphan_frees", o->n_orphan_frees, err));
    TIDE_TRY(commit(o, err));
    tide__store *store = o->store;
    o->store = NULL;
    TIDE_TRY(tide__finish(store, reason, err));
    return tide__new_trace_replace(o, err);
}
