// SPDX-License-Identifier: MIT
//
// Opening a trace: is it one, can this version read it, is it still being written. See query.h.
//
// A trace may come from anywhere. Nothing in it is trusted: its tables must be the very ones of schema.c (a view of the
// same name could compute for ever), its views and triggers are never used, and every number is checked where it is
// read.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "core/base/text.h"
#include "profiler/drain/drain.h"
#include "profiler/query.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/finish.h"
#include "profiler/store/frame_names.h"
#include "profiler/store/schema.h"

// ---- whether a trace holds what its recorder noted: tables, counts, sums ----

enum {
    COUNT_ALL = 1000000, // events up to which rows are counted when a trace is opened
};

/// What makes a trace one of version 2 is there.
static tide_status check_version_of_tables(const tide_trace *t, tide_error *err) {
    int64_t is_missing;
    TIDE_TRY(tide__sql_int(&t->sql,
                           "SELECT user_version = " TIDE__TRACE_PACKED_TEXT
                           " AND NOT EXISTS(SELECT 1 FROM main.sqlite_schema WHERE name = 'block_chunk') "
                           "FROM pragma_user_version",
                           0, &is_missing, err));
    if (is_missing == 0) return TIDE_OK;
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_note(err, "damaged: a trace of version %d without table block_chunk", (int)TIDE_TRACE_VERSION_PACKED);
    return st;
}

tide_status tide__trace_check_tables(const tide_trace *t, tide_error *err) {
    const tide__schema_item *tables;
    const size_t n = tide__schema_tables(&tables);
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(&t->sql, "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide__sql_bind_text(stmt, 1, tables[i].name);
        bool has_row;
        st = tide__sql_step(&t->sql, stmt, &has_row, err);
        if (st == TIDE_OK && (!has_row || strcmp(tide__sql_text(stmt, 0), tables[i].sql) != 0)) {
            st = tide__trace_damaged(t, err);
            tide_error_note(err, "damaged: table %s is %s", tables[i].name,
                            has_row ? "not the one of this version" : "missing");
        }
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st == TIDE_OK ? check_version_of_tables(t, err) : st;
}

static tide_status check_number(tide_trace *t, const char *key, const char *what, int64_t found, tide_error *err) {
    int64_t recorded;
    TIDE_TRY(tide__trace_meta_number(t, key, &recorded, err));
    if (recorded == found) return TIDE_OK;
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_note(err, "damaged: %" PRId64 " %s recorded, %" PRId64 " found", recorded, what, found);
    return st;
}

typedef struct counted {
    const char *key, *what, *query;
} counted;

static tide_status check_counts(tide_trace *t, const counted *all, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        int64_t found;
        TIDE_TRY(tide__sql_int(&t->sql, all[i].query, 0, &found, err));
        TIDE_TRY(check_number(t, all[i].key, all[i].what, found, err));
    }
    return TIDE_OK;
}

// ---- blocks ----

static tide_status check_blocks(tide_trace *t, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__trace_ask_blocks(t, "sum(1), sum(requested_bytes), sum(iif(free_event IS NULL, 0, requested_bytes))",
                                    "", &stmt, err));
    bool has_row;
    int64_t found[3] = {0};
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    for (int i = 0; st == TIDE_OK && has_row && i < 3; i++) found[i] = sqlite3_column_int64(stmt, i); // NULL: 0
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) st = check_number(t, "n_blocks", "blocks", found[0], err);
    if (st == TIDE_OK) st = check_number(t, "requested_bytes", "requested bytes", found[1], err);
    return st == TIDE_OK ? check_number(t, "freed_bytes", "freed bytes", found[2], err) : st;
}

// ---- events ----

static tide_status count_scope_events(void *ctx, const tide__event *events, size_t n) {
    int64_t *n_scope_events = ctx;
    for (size_t i = 0; i < n; i++)
        *n_scope_events += events[i].op == TIDE__OP_SCOPE_ENTER || events[i].op == TIDE__OP_SCOPE_LEAVE;
    return TIDE_OK;
}

/// Every event is read: each one that is left is there.
static tide_status check_events(tide_trace *t, tide_error *err) {
    int64_t n_scope_events = 0;
    TIDE_TRY(
        tide__trace_each(t, TIDE__READ_OPS, t->first_event, t->last_event, count_scope_events, &n_scope_events, err));
    return check_number(t, "n_scope_events", "scope events", n_scope_events, err);
}

// ---- sums ----

/// What is live at the end: as the last leaves say, and as the sums of meta say.
static tide_status check_leaves(tide_trace *t, tide_error *err) {
    int64_t requested, freed, left = 0, live = 0;
    TIDE_TRY(tide__trace_meta_number(t, "requested_bytes", &requested, err));
    TIDE_TRY(tide__trace_meta_number(t, "freed_bytes", &freed, err));
    TIDE_TRY(
        tide__sql_int(&t->sql, "SELECT CAST(value AS INTEGER) FROM main.meta WHERE key = 'left_bytes'", 0, &left, err));
    const tide__trace_series *sum = &t->series[0];
    if (sum->n_leaves > 0) live = sum->leaves[sum->n_leaves - 1].last_bytes;
    if (requested >= freed && freed >= 0 && left >= 0 && requested - freed >= left && requested - freed - left == live)
        return TIDE_OK;
    const tide_status st = tide__trace_damaged(t, err);
    tide_error_note(err,
                    "damaged: %" PRId64 " bytes requested, %" PRId64 " freed and %" PRId64
                    " gone with their processes, but %" PRId64 " live at the end",
                    requested, freed, left, live);
    return st;
}

tide_status tide__trace_check_content(tide_trace *t, bool every, tide_error *err) {
    static const counted small[] = {
        {"n_runs", "runs", "SELECT sum(1) FROM main.run"},
        {"n_problems", "problems", "SELECT sum(1) FROM main.problem"},
        {"n_lost", "lost events", "SELECT sum(n_lost) FROM main.position"},
    };
    char schema[32];
    const tide_status st = tide_trace_meta(t, "schema", schema, sizeof schema, err);
    if (st == TIDE_ERR_NOT_FOUND || (st == TIDE_OK && strcmp(schema, TIDE__TRACE_SCHEMA) != 0)) {
        tide__trace_damaged(t, err);
        tide_error_note(err, "damaged: meta does not say '%s'", TIDE__TRACE_SCHEMA);
        return TIDE_ERR_BAD_INPUT;
    }
    TIDE_TRY(st);
    if (t->state == TIDE_TRACE_RECORDING) return TIDE_OK; // the counts come at the end
    TIDE_TRY(check_counts(t, small, sizeof small / sizeof small[0], err));
    TIDE_TRY(check_number(t, "n_names", "names", t->names.n_text_rows, err));
    TIDE_TRY(check_number(t, "n_scopes", "scopes", t->names.n_scope_rows, err));
    TIDE_TRY(check_number(t, "n_events", "events", t->last_event, err));
    TIDE_TRY(check_number(t, "first_kept_event", "as first event", t->first_event, err));
    TIDE_TRY(check_leaves(t, err));
    if (!every && t->last_event - t->first_event >= COUNT_ALL) return TIDE_OK;
    TIDE_TRY(check_blocks(t, err));
    return check_events(t, err);
}

// ---- by content ----

static uint32_t big_endian(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

// Source: https://www.sqlite.org/fileformat2.html, 1.3: text at 0, user version at 60, application id at 68.
static bool is_sqlite(const unsigned char *head, size_t n) {
    return n >= 100 && memcmp(head, "SQLite format 3", 16) == 0;
}

bool tide_trace_recognise(const void *head, size_t n_bytes) {
    const unsigned char *bytes = head;
    return is_sqlite(bytes, n_bytes) && big_endian(bytes + 68) == TIDE__TRACE_APPLICATION_ID;
}

static tide_status not_a_trace(const char *path, const char *why, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is not a tidemark trace", path);
    tide_error_where(err, "%s", path);
    tide_error_note(err, "%s", why);
    return st;
}

static tide_status check_version(const char *path, uint32_t version, tide_error *err) {
    if (version == TIDE_TRACE_VERSION || version == TIDE_TRACE_VERSION_PACKED) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': trace version %" PRIu32, path, version);
    tide_error_where(err, "%s", path);
    tide_error_note(err, "this tidemark reads versions %d and %d", (int)TIDE_TRACE_VERSION,
                    (int)TIDE_TRACE_VERSION_PACKED);
    if (version > TIDE_TRACE_VERSION_PACKED) tide_error_hint(err, "a newer tidemark wrote it: read it with that one");
    return st;
}

static tide_status check_head(const char *path, tide_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': it is a directory", path);
    if (!S_ISREG(info.st_mode)) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': it is not a regular file", path);
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO), "cannot open '%s': %s", path, strerror(errno));
    unsigned char head[TIDE_TRACE_HEAD_BYTES] = {0};
    const size_t n = fread(head, 1, sizeof head, f);
    const bool failed = ferror(f) != 0;
    fclose(f);
    if (failed) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s'", path);
    if (n == 0) return not_a_trace(path, "the file is empty", err);
    if (!is_sqlite(head, n)) return not_a_trace(path, "it is no SQLite database", err);
    if (!tide_trace_recognise(head, n)) return not_a_trace(path, "it is an SQLite database of another program", err);
    return check_version(path, big_endian(head + 60), err);
}

/// SQLite opens files that have the names of its logs, and would wait for ever for a writer of a pipe.
static tide_status check_beside(const char *path, tide_error *err) {
    static const char *const endings[] = {"-journal", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        struct stat info;
        tide_text name = {0};
        tide_text_addf(&name, "%s%s", path, endings[i]);
        const bool is_other = !name.failed && stat(name.data, &info) == 0 && !S_ISREG(info.st_mode);
        const bool failed = name.failed;
        tide_text_deinit(&name);
        if (failed) return TIDE_NO_MEMORY(err, "to open '%s'", path);
        if (is_other)
            return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': '%s%s' is not a regular file", path, path,
                             endings[i]);
    }
    return TIDE_OK;
}

tide_status tide__trace_connect(const char *path, sqlite3 **db, tide_error *err) {
    tide__sql s = {.path = path};
    TIDE_TRY(tide__sql_open_to_read(&s, err));
    *db = s.db;
    return TIDE_OK;
}

// ---- open ----

/// What left the trace unfinished: its program was killed, or its recording had ended before.
static void note_finished(tide_trace *t) {
    char reason[256] = "";
    const bool has_reason = tide_trace_meta(t, "reason", reason, sizeof reason, NULL) == TIDE_OK && reason[0] != '\0';
    if (has_reason)
        tide_log(TIDE_LOG_INFO, "finished '%s', whose recording had ended early: %s", t->path, reason);
    else
        tide_log(TIDE_LOG_INFO, "finished '%s', the trace of a program that was killed", t->path);
}

/// The trace says that it is being recorded. If it is not, finish it from the feeds beside it.
static tide_status look_for_recorder(tide_trace *t, tide_error *err) {
    char state[32] = "";
    const tide_status has_state = tide_trace_meta(t, "state", state, sizeof state, err);
    if (has_state != TIDE_OK && has_state != TIDE_ERR_NOT_FOUND) return has_state;
    if (strcmp(state, TIDE__STATE_RECORDING) != 0) {
        tide__drain_sweep(t->path);
        return TIDE_OK;
    }
    bool unfinished, in_use;
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = tide__drain_look(t->path, &unfinished, &in_use, &why);
    if (st == TIDE_OK && (in_use || !unfinished)) return TIDE_OK;
    sqlite3_close(t->sql.db); // the file becomes a plain one only when no process has it open
    t->sql.db = NULL;
    if (st == TIDE_OK) st = tide__drain_recover(t->path, &why);
    if (st != TIDE_OK) tide_log(TIDE_LOG_WARN, "'%s' is unfinished and stays so: %s", t->path, why.msg);
    TIDE_TRY(tide__trace_connect(t->path, &t->sql.db, err));
    if (st == TIDE_OK) note_finished(t);
    return st == TIDE_ERR_NOMEM ? TIDE_FAIL(err, st, "no memory to open '%s'", t->path) : TIDE_OK;
}

static tide_status open_whole(tide_trace *t, tide_error *err) {
    TIDE_TRY(tide__trace_connect(t->path, &t->sql.db, err));
    TIDE_TRY(tide__trace_check_tables(t, err));
    TIDE_TRY(look_for_recorder(t, err));
    TIDE_TRY(tide__trace_load(t, NULL, err));
    return tide__trace_check_content(t, false, err);
}

/// What tells one file from another that took its place.
static void note_file(const char *path, uint64_t out[3]) {
    struct stat info;
    const bool is_there = stat(path, &info) == 0;
    out[0] = is_there ? (uint64_t)info.st_dev : 0;
    out[1] = is_there ? (uint64_t)info.st_ino : 0;
    out[2] = is_there ? (uint64_t)info.st_size : 0;
}

struct tide_trace_shared {
    uint64_t file[3]; // as of tide_trace
    tide__trace_names names;
    struct tide__run_executions **executions; // [n_executions], each with a reference of ours; owned
    size_t n_executions;
};

tide_status tide_trace_share(const tide_trace *t, tide_trace_shared **out, tide_error *err) {
    *out = NULL;
    if (t->names.refs == NULL) return TIDE_OK;
    tide_trace_shared *s;
    TIDE_TRY(TIDE_NEW(&s, 1, err, "to share '%s'", t->path));
    memcpy(s->file, t->file, sizeof s->file);
    tide__trace_names_share(&t->names, &s->names);
    const tide_status st =
        tide__executions_share(t->executions, t->n_executions, &s->executions, &s->n_executions, err);
    if (st != TIDE_OK) {
        tide_trace_shared_drop(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

void tide_trace_shared_drop(tide_trace_shared *s) {
    if (s == NULL) return;
    tide__trace_names_deinit(&s->names);
    tide__executions_drop(s->executions, s->n_executions);
    tide_host_free(s);
}

/// If it is of this very file.
static tide_status take_shared(tide_trace *t, const tide_trace_shared *s, tide_error *err) {
    if (s == NULL || s->file[1] == 0 || memcmp(t->file, s->file, sizeof t->file) != 0) return TIDE_OK;
    tide__trace_names_share(&s->names, &t->names);
    return tide__executions_take(t, s->executions, s->n_executions, err);
}

tide_status tide_trace_open_shared(const char *path, const tide_trace_shared *shared, tide_trace **out,
                                   tide_error *err) {
    TIDE_TRY(check_head(path, err));
    TIDE_TRY(check_beside(path, err));
    tide_trace *t = tide_host_calloc(1, sizeof *t);
    char *copy = NULL; // feeds and locks lie beside the trace itself, not beside a link to it
    const tide_status followed = tide_output_follow(path, &copy, NULL);
    if (followed != TIDE_OK && followed != TIDE_ERR_NOMEM) copy = tide_host_strdup(path);
    if (t == NULL || copy == NULL) {
        tide_host_free(t);
        tide_host_free(copy);
        return TIDE_NO_MEMORY(err, "to open '%s'", path);
    }
    t->path = copy;
    t->sql.path = copy;
    note_file(copy, t->file);
    tide_status st = take_shared(t, shared, err);
    if (st == TIDE_OK) st = open_whole(t, err);
    if (st == TIDE_OK && t->state != TIDE_TRACE_RECORDING) st = tide__trace_names_close(&t->names, err);
    if (st != TIDE_OK) {
        tide_trace_close(t);
        return st;
    }
    t->is_open = true;
    *out = t;
    return TIDE_OK;
}

tide_status tide_trace_open(const char *path, tide_trace **out, tide_error *err) {
    return tide_trace_open_shared(path, NULL, out, err);
}

tide_status tide_trace_refresh(tide_trace *t, bool *grew, tide_error *err) {
    if (grew != NULL) *grew = false;
    return t->state == TIDE_TRACE_RECORDING ? tide__trace_load(t, grew, err) : TIDE_OK;
}

void tide_trace_hold(tide_trace *t) { t->holds = true; }

void tide_trace_close(tide_trace *t) {
    if (t == NULL) return;
    tide__trace_unload(t);
    sqlite3_close(t->sql.db);
    // A recorder that finished while others looked on, or was killed in its last step, did not make one file of it.
    if (t->is_open && t->state != TIDE_TRACE_RECORDING) tide__sql_make_plain(t->path);
    tide_host_free(t->path);
    tide_host_free(t);
}

// ---- all events as rows ----

/// What is to be changed in place.
static tide_status look_at_finished(const char *path, const char *verb, tide_trace_info *info, tide_error *err) {
    tide_trace *t = NULL;
    TIDE_TRY(tide_trace_open(path, &t, err)); // finishes what a killed program left
    const tide_status st = tide_trace_get_info(t, info, err);
    tide_trace_close(t);
    if (st != TIDE_OK) return st;
    if (info->state == TIDE_TRACE_RECORDING)
        return TIDE_FAIL(err, TIDE_ERR_IO, "cannot %s '%s': it is not finished", verb, path);
    return TIDE_OK;
}

tide_status tide_trace_expand(const char *path, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(look_at_finished(path, "expand", &info, err));
    return info.n_chunks > 0 ? tide__finish_expand(path, err) : TIDE_OK;
}

tide_status tide_trace_name_frames(const char *path, const tide_symbols_plugin *symbols, tide_symbols_report *out,
                                   tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(look_at_finished(path, "name the call stacks of", &info, err));
    return tide__name_frames(path, symbols, out, err);
}
