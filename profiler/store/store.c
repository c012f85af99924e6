// SPDX-License-Identifier: MIT
//
// An unfinished trace, open for writing: its connection, its statements, its transactions, what is written. See
// store.h; what is read to go on is in store_resume.c.
//
// One connection writes to a trace while it is recorded, the drain's. Each write is in a transaction that begins
// IMMEDIATE: other programs may have the file open, and no writer shall learn at COMMIT that another one came first.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/plan_rows.h"
#include "profiler/store/snapshot.h"
#include "profiler/store/store_internal.h"

enum {
    BUSY_MS = 10000,          // how long another writer is waited for
    MAX_LOG_BYTES = 96 << 20, // a log of that many pages stays as it is: to cut it and let it grow again costs
    CACHE_KIB = 8192,
};

static const char *const texts[TIDE__N_STMTS] = {
#define XX(name, text) [TIDE__STMT_##name] = (text),
    TIDE__STORE_STMT_MAP(XX)
#undef XX
};

/// The statement `which`, ready to be bound.
static tide_status prepare_once(tide__store *s, tide__store_stmt which, sqlite3_stmt **out, tide_error *err) {
    if (s->stmts[which] == NULL) TIDE_TRY(tide__sql_prepare(&s->sql, texts[which], &s->stmts[which], err));
    *out = s->stmts[which];
    return TIDE_OK;
}

tide_status tide__store_bad(const tide__store *s, const char *table, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot record into '%s'", s->path);
    tide_error_where(err, "%s: table %s", s->path, table);
    tide_error_note(err, "damaged: it holds what no recorder writes");
    return st;
}

void tide__store_finalize(tide__store *s) {
    for (size_t i = 0; i < TIDE__N_STMTS; i++) {
        sqlite3_finalize(s->stmts[i]);
        s->stmts[i] = NULL;
    }
    tide__rows_close(s->rows);
    s->rows = NULL;
}

const tide__sql *tide__store_sql(const tide__store *s) { return &s->sql; }

// ---- open ----

static tide_status refuse(const tide__store *s, const char *why, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot record into '%s': %s", s->path, why);
    tide_error_where(err, "%s", s->path);
    return st;
}

static tide_status check_head(const tide__store *s, tide_error *err) {
    int64_t id, version;
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA application_id", 0, &id, err));
    TIDE_TRY(tide__sql_int(&s->sql, "PRAGMA user_version", 0, &version, err));
    if (id != TIDE__TRACE_APPLICATION_ID) return refuse(s, "it is not a tidemark trace", err);
    if (version == TIDE_TRACE_VERSION || version == TIDE_TRACE_VERSION_PACKED) return TIDE_OK; // it may be finished
    char why[64];
    snprintf(why, sizeof why, "it is a trace of version %" PRId64 ", not %d", version, (int)TIDE__TRACE_VERSION);
    return refuse(s, why, err);
}

/// The tables are the very ones of schema.c: no generated column and no trigger of the file decides what is
/// written.
static tide_status check_tables(const tide__store *s, tide_error *err) {
    const tide__schema_item *tables;
    const size_t n = tide__schema_tables(&tables);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide__sql_bind_text(stmt, 1, tables[i].name);
        bool has_row;
        st = tide__sql_step(&s->sql, stmt, &has_row, err);
        if (st == TIDE_OK && (!has_row || strcmp(tide__sql_text(stmt, 0), tables[i].sql) != 0))
            st = tide__store_bad(s, tables[i].name, err);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status check_state(const tide__store *s, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "SELECT value FROM meta WHERE key = 'state'", &stmt, err));
    bool has_row;
    tide_status st = tide__sql_step(&s->sql, stmt, &has_row, err);
    if (st == TIDE_OK && strcmp(tide__sql_text(stmt, 0), TIDE__STATE_RECORDING) != 0)
        st = refuse(s, has_row ? "that recording has ended" : "it does not say in what state it is", err);
    sqlite3_finalize(stmt);
    return st;
}

/// Also while other connections do the same: in this one step SQLite does not always wait by itself (with six of them,
/// once in some thousand times).
static tide_status enter_wal(const tide__store *s, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql, "PRAGMA journal_mode = WAL", &stmt, err));
    int rc = sqlite3_step(stmt);
    for (int ms = 0; (rc & 0xff) == SQLITE_BUSY && ms < BUSY_MS; ms++) {
        sqlite3_reset(stmt);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        rc = sqlite3_step(stmt);
    }
    tide_status st = rc == SQLITE_ROW ? TIDE_OK : tide__sql_fail(&s->sql, rc, "record into", err);
    if (st == TIDE_OK && strcmp(tide__sql_text(stmt, 0), "wal") != 0)
        st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot record into '%s': no write-ahead log is possible there", s->path);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status connect(tide__store *s, tide_error *err) {
    char *plain = tide__sql_file_name(s->path);
    if (plain == NULL) return TIDE_NO_MEMORY(err, "to record into '%s'", s->path);
    const int rc = sqlite3_open_v2(plain, &s->sql.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(plain);
    if (rc != SQLITE_OK) return tide__sql_fail(&s->sql, rc, "record into", err);
    sqlite3_busy_timeout(s->sql.db, BUSY_MS);
    tide__sql_guard(s->sql.db, true);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(s->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return TIDE_OK;
}

static tide_status configure(const tide__store *s, tide_error *err) {
    char text[256];
    // What thinning deletes need not be overwritten: it was the user's to begin with.
    snprintf(text, sizeof text,
             "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = %d; PRAGMA journal_size_limit = %d; "
             "PRAGMA cache_size = -%d; PRAGMA cell_size_check = ON; PRAGMA secure_delete = OFF",
             (int)TIDE__STORE_CHECKPOINT_PAGES, (int)MAX_LOG_BYTES, (int)CACHE_KIB);
    return tide__sql_exec(&s->sql, text, err);
}

static tide_status open_it(tide__store *s, tide_error *err) {
    TIDE_TRY(connect(s, err));
    TIDE_TRY(check_head(s, err));
    TIDE_TRY(check_tables(s, err));
    TIDE_TRY(check_state(s, err));
    TIDE_TRY(enter_wal(s, err));
    TIDE_TRY(configure(s, err));
    return tide__rows_open(&s->sql, &s->rows, err);
}

tide_status tide__store_open(const char *path, tide__store **out, tide_error *err) {
    tide__store *s = tide_host_calloc(1, sizeof *s);
    if (s != NULL) s->path = tide_host_strdup(path);
    if (s == NULL || s->path == NULL) {
        tide_host_free(s);
        return TIDE_NO_MEMORY(err, "to record into '%s'", path);
    }
    s->sql.path = s->path;
    s->n_leaves_since = TIDE__STORE_COUNT_LEAVES;
    const tide_status st = open_it(s, err);
    if (st != TIDE_OK) {
        tide__store_close(s);
        return st;
    }
    *out = s;
    return TIDE_OK;
}

void tide__store_close(tide__store *s) {
    if (s == NULL) return;
    tide__store_finalize(s);
    sqlite3_close(s->sql.db);
    tide_host_free(s->chunk);
    tide_text_deinit(&s->snapshot);
    tide_host_free(s->path);
    tide_host_free(s);
}

// ---- transactions ----

tide_status tide__store_begin(tide__store *s, tide_error *err) {
    return tide__sql_exec(&s->sql, "BEGIN IMMEDIATE", err);
}

tide_status tide__store_end(tide__store *s, tide_status st, tide_error *err) {
    if (st == TIDE_OK) st = tide__sql_exec(&s->sql, "COMMIT", err);
    if (st == TIDE_OK) return st;
    if (sqlite3_get_autocommit(s->sql.db) == 0) sqlite3_exec(s->sql.db, "ROLLBACK", NULL, NULL, NULL);
    s->n_series = 0;
    s->first_kept = 0;
    return st;
}

// ---- writes ----

/// Bind numbers to the parameters 1, 2, ... of a statement of the store, and run it.
static tide_status run_numbers(tide__store *s, tide__store_stmt which, const int64_t *values, int n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, which, &stmt, err));
    for (int i = 0; i < n; i++) sqlite3_bind_int64(stmt, i + 1, values[i]);
    return tide__sql_run(&s->sql, stmt, err);
}
#define RUN_NUMBERS(s, which, err, ...)                                                                                \
    run_numbers((s), (which), (const int64_t[]){__VA_ARGS__},                                                          \
                (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (err))

// ---- facts and names ----

tide_status tide__store_put_meta(tide__store *s, const char *key, const char *value, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_PUT_META, &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    tide__sql_bind_text(stmt, 2, value);
    return tide__sql_run(&s->sql, stmt, err);
}

tide_status tide__store_put_meta_int(tide__store *s, const char *key, int64_t value, tide_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return tide__store_put_meta(s, key, text, err);
}

static tide_status write_texts(tide__store *s, const tide__names *n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_NAME, &stmt, err));
    for (size_t i = 0; i < n->n_fresh; i++) {
        sqlite3_bind_int64(stmt, 1, n->n_texts - (int64_t)(n->n_fresh - i) + 1);
        tide__sql_bind_text(stmt, 2, n->fresh[i]);
        TIDE_TRY(tide__sql_run(&s->sql, stmt, err));
    }
    return TIDE_OK;
}

static tide_status write_scopes(tide__store *s, const tide__names *n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_SCOPE, &stmt, err));
    for (size_t i = n->n_scopes_written; i < n->n_scopes; i++) {
        const tide__scope_row *row = &n->scopes[i];
        sqlite3_bind_int64(stmt, 1, (int64_t)i + 1);
        sqlite3_bind_int64(stmt, 2, row->name_id);
        tide__sql_bind_text(stmt, 3, tide__names_scope_text(row->kind));
        if (row->step >= 0) sqlite3_bind_int(stmt, 4, row->step);
        tide__sql_bind_id(stmt, 5, row->parent_id);
        TIDE_TRY(tide__sql_run(&s->sql, stmt, err));
    }
    return TIDE_OK;
}

static tide_status write_devices(tide__store *s, const tide__names *n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_DEVICE, &stmt, err));
    for (size_t i = n->n_devices_written; i < n->n_devices; i++) {
        char text[32];
        sqlite3_bind_int64(stmt, 1, (int64_t)i + 1);
        tide__sql_bind_text(stmt, 2, tide_device_format(n->devices[i], text, sizeof text));
        TIDE_TRY(tide__sql_run(&s->sql, stmt, err));
    }
    return TIDE_OK;
}

static tide_status write_threads(tide__store *s, const tide__names *n, tide_error *err) {
    if (n->n_threads_unwritten == 0) return TIDE_OK;
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_THREAD, &stmt, err));
    for (size_t i = 0; i < n->n_threads; i++) {
        const tide__thread_row *row = &n->threads[i];
        if (row->is_written) continue;
        sqlite3_bind_int64(stmt, 1, row->id);
        sqlite3_bind_int64(stmt, 2, row->process_id);
        sqlite3_bind_int64(stmt, 3, row->number);
        tide__sql_bind_text(stmt, 4, row->name);
        TIDE_TRY(tide__sql_run(&s->sql, stmt, err));
    }
    return TIDE_OK;
}

tide_status tide__store_write_names(tide__store *s, const tide__names *n, tide_error *err) {
    TIDE_TRY(write_texts(s, n, err));
    TIDE_TRY(write_scopes(s, n, err));
    TIDE_TRY(write_devices(s, n, err));
    return write_threads(s, n, err);
}

// ---- events and what is drawn from them ----

static tide_status write_chunk(tide__store *s, const tide__event *events, size_t n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_CHUNK, &stmt, err));
    const size_t n_bytes = tide__chunk_encode(events, n, s->chunk);
    sqlite3_bind_int64(stmt, 1, events[0].id);
    sqlite3_bind_int64(stmt, 2, events[n - 1].id);
    sqlite3_bind_int64(stmt, 3, events[0].t_ns);
    sqlite3_bind_int64(stmt, 4, events[n - 1].t_ns);
    sqlite3_bind_blob(stmt, 5, s->chunk, (int)n_bytes, SQLITE_STATIC);
    return tide__sql_run(&s->sql, stmt, err);
}

tide_status tide__store_write_events(tide__store *s, const tide__event *events, size_t n, bool as_chunks,
                                     tide_error *err) {
    if (n == 0) return TIDE_OK;
    if (!as_chunks) return tide__rows_insert_events(s->rows, events, n, err);
    if (s->chunk == NULL) s->chunk = tide_host_alloc(TIDE__CHUNK_MAX_BYTES);
    if (s->chunk == NULL) return TIDE_NO_MEMORY(err, "to write '%s'", s->path);
    for (size_t i = 0; i < n; i += TIDE__CHUNK_MAX_EVENTS) {
        const size_t left = n - i;
        TIDE_TRY(write_chunk(s, &events[i], left < TIDE__CHUNK_MAX_EVENTS ? left : TIDE__CHUNK_MAX_EVENTS, err));
    }
    return TIDE_OK;
}

/// Rows of all series up to `series`: their numbers have no holes. Rows that are there stay.
static tide_status write_series(tide__store *s, const tide__replay *r, size_t series, tide_error *err) {
    for (; s->n_series <= series; s->n_series++) {
        const tide__series *row = &r->series[s->n_series];
        sqlite3_stmt *stmt;
        TIDE_TRY(prepare_once(s, TIDE__STMT_SERIES, &stmt, err));
        sqlite3_bind_int64(stmt, 1, (int64_t)s->n_series);
        if (s->n_series > 0) sqlite3_bind_int(stmt, 2, row->device);
        if (s->n_series > 0) sqlite3_bind_int(stmt, 3, row->kind);
        TIDE_TRY(tide__sql_run(&s->sql, stmt, err));
    }
    return TIDE_OK;
}

tide_status tide__store_write_known_leaves(tide__store *s, const tide__leaf *leaves, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        const tide__leaf *l = &leaves[i];
        TIDE_TRY(RUN_NUMBERS(s, TIDE__STMT_LEAF, err, l->series, l->first_event, l->last_event, l->begin_ns, l->end_ns,
                             l->min_bytes, l->max_bytes, l->max_event, l->max_ns, l->max_reserved_bytes, l->last_bytes,
                             l->last_reserved_bytes));
    }
    return TIDE_OK;
}

tide_status tide__store_write_leaves(tide__store *s, const tide__replay *r, const tide__leaf *leaves, size_t n,
                                     tide_error *err) {
    for (size_t i = 0; i < n; i++) TIDE_TRY(write_series(s, r, (size_t)leaves[i].series, err));
    s->n_leaves_since += n;
    return tide__store_write_known_leaves(s, leaves, n, err);
}

tide_status tide__store_write_snapshot(tide__store *s, const tide__replay *r, tide_error *err) {
    s->snapshot.len = 0;
    s->snapshot.failed = false;
    if (tide__snapshot_encode(r, &s->snapshot) != TIDE_OK || s->snapshot.failed)
        return TIDE_NO_MEMORY(err, "to write '%s'", s->path);
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_SNAPSHOT, &stmt, err));
    sqlite3_bind_int64(stmt, 1, r->last_event);
    sqlite3_bind_int64(stmt, 2, r->last_ns);
    sqlite3_bind_int64(stmt, 3, (int64_t)r->n_live);
    sqlite3_bind_int64(stmt, 4, r->series[0].live_bytes);
    // An empty value is no NULL.
    sqlite3_bind_blob64(stmt, 5, s->snapshot.len > 0 ? s->snapshot.data : "", s->snapshot.len, SQLITE_STATIC);
    return tide__sql_run(&s->sql, stmt, err);
}

tide_status tide__store_write_problem(tide__store *s, const tide__event *e, tide__problem problem, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_PROBLEM, &stmt, err));
    sqlite3_bind_int64(stmt, 1, e->id);
    sqlite3_bind_int(stmt, 2, (int)problem);
    tide__sql_bind_text(stmt, 3, tide__problem_text(problem));
    return tide__sql_run(&s->sql, stmt, err);
}

tide_status tide__store_write_late(tide__store *s, const tide__event *e, int64_t own_ns, tide_error *err) {
    sqlite3_stmt *stmt;
    char what[128];
    snprintf(what, sizeof what, "%s %" PRId64 " ns", tide__problem_text(TIDE__PROBLEM_LATE), own_ns);
    TIDE_TRY(prepare_once(s, TIDE__STMT_PROBLEM, &stmt, err));
    sqlite3_bind_int64(stmt, 1, e->id);
    sqlite3_bind_int(stmt, 2, (int)TIDE__PROBLEM_LATE);
    tide__sql_bind_text(stmt, 3, what);
    return tide__sql_run(&s->sql, stmt, err); // which no longer needs the text: it has been stepped to its end
}

// ---- where the recorded processes stand ----

tide_status tide__store_write_position(tide__store *s, const tide__position *p, tide_error *err) {
    return RUN_NUMBERS(s, TIDE__STMT_POSITION, err, p->process_id, p->ring, p->position, p->thread, p->n_lost);
}

tide_status tide__store_write_process_memory(tide__store *s, const tide__process_memory *m, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_PROCESS_MEMORY, &stmt, err));
    const int64_t values[] = {m->process_id,    m->t_ns,        m->resident_bytes, m->peak_bytes,
                              m->swapped_bytes, m->share_bytes, m->minor_faults,   m->major_faults};
    enum { SHARE = 5 };
    for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++) sqlite3_bind_int64(stmt, i + 1, values[i]);
    if (m->share_bytes < 0) sqlite3_bind_null(stmt, SHARE + 1);
    return tide__sql_run(&s->sql, stmt, err);
}

/// What a feed says may be anything; what passes 2^63 - 1 has no place in the file.
static int64_t at_most(uint64_t n) { return n > INT64_MAX ? INT64_MAX : (int64_t)n; }

tide_status tide__store_write_total(tide__store *s, int64_t process_id, int16_t device, uint8_t kind,
                                    const tide__ring_total *total, tide_error *err) {
    return RUN_NUMBERS(s, TIDE__STMT_TOTAL, err, process_id, device, kind, at_most(total->n_allocs),
                       at_most(total->n_frees), at_most(total->requested_bytes), at_most(total->freed_bytes));
}

tide_status tide__store_run(tide__store *s, bool begin, int64_t run_id, int64_t last_event, int64_t t_ns,
                            tide_error *err) {
    TIDE_TRY(RUN_NUMBERS(s, begin ? TIDE__STMT_RUN_BEGIN : TIDE__STMT_RUN_END, err, last_event, t_ns, run_id));
    if (sqlite3_changes(s->sql.db) == 1) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no run %" PRId64, s->path, run_id);
}

tide_status tide__store_add_process(tide__store *s, const tide__process_row *row, int64_t *process_id,
                                    tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql,
                               "INSERT INTO process(pid, rank, command, feed, begin_ns, label, boot_id, wall_ns) "
                               "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, row->pid);
    if (row->rank >= 0) sqlite3_bind_int(stmt, 2, row->rank);
    tide__sql_bind_text(stmt, 3, row->command);
    tide__sql_bind_text(stmt, 4, row->feed);
    sqlite3_bind_int64(stmt, 5, row->begin_ns);
    tide__sql_bind_text(stmt, 6, row->label);
    tide__sql_bind_text(stmt, 7, row->boot_id);
    if (row->has_wall) sqlite3_bind_int64(stmt, 8, row->wall_ns);
    const tide_status st = tide__sql_run(&s->sql, stmt, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) *process_id = sqlite3_last_insert_rowid(s->sql.db);
    return st;
}

tide_status tide__store_end_process(tide__store *s, int64_t process_id, const char *how, int64_t t_ns,
                                    tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(prepare_once(s, TIDE__STMT_END_PROCESS, &stmt, err));
    tide__sql_bind_text(stmt, 1, how);
    if (how != NULL) sqlite3_bind_int64(stmt, 2, t_ns);
    sqlite3_bind_int64(stmt, 3, process_id);
    return tide__sql_run(&s->sql, stmt, err);
}

static tide_status insert_run(tide__store *s, int64_t process_id, const tide_run_info *info,
                              const tide_memory_plan *plan, int64_t begin_ns, tide_error *err) {
    // Events name devices in one way ("cuda:0"); a run that says "cuda" must still meet them.
    const char *device = info->device != NULL ? info->device : "cpu";
    tide_device parsed;
    char device_name[32];
    if (tide_device_parse(device, &parsed, NULL) == TIDE_OK)
        device = tide_device_format(parsed, device_name, sizeof device_name);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&s->sql,
                               "INSERT INTO run(process_id, model, source, mode, strategy, device, contexts, begin_ns, "
                               "plan_bytes, plan_naive_bytes, plan_lower_bound_bytes) "
                               "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, process_id);
    tide__sql_bind_text(stmt, 2, info->model != NULL ? info->model : "");
    tide__sql_bind_text(stmt, 3, info->source);
    tide__sql_bind_text(stmt, 4, info->mode != NULL ? info->mode : "");
    tide__sql_bind_text(stmt, 5, info->strategy);
    tide__sql_bind_text(stmt, 6, device);
    sqlite3_bind_int64(stmt, 7, info->n_contexts > 0 ? info->n_contexts : 1);
    sqlite3_bind_int64(stmt, 8, begin_ns);
    // plan_rows refuses what does not fit; here it would only be NULL.
    if (plan != NULL) {
        tide__sql_bind_u64(stmt, 9, plan->bytes);
        tide__sql_bind_u64(stmt, 10, plan->naive_bytes);
        tide__sql_bind_u64(stmt, 11, plan->lower_bound_bytes);
    }
    const tide_status st = tide__sql_run(&s->sql, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__store_add_run(tide__store *s, int64_t process_id, const tide_run_info *info,
                                const tide_memory_plan *plan, int64_t begin_ns, int64_t *run_id, tide_error *err) {
    TIDE_TRY(insert_run(s, process_id, info, plan, begin_ns, err));
    const int64_t id = sqlite3_last_insert_rowid(s->sql.db);
    if (plan != NULL) TIDE_TRY(tide__plan_rows_write(&s->sql, id, plan, err));
    *run_id = id;
    return TIDE_OK;
}
