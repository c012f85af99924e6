// SPDX-License-Identifier: MIT
//
// A trace of version 1 or 2 as one of today's. See query.h. (One of version 3 is copied: convert_copy.c.)
//
//     names, scopes, devices -> numbers of the new file
//     event + scope_event, by time -> event (renumbered), leaves, snapshots, problems
//     run -> run (first and last event renumbered), plan -> plan (version 1: completed)
//     block, step, indexes, counts: as at the end of a recording
#include "profiler/read/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/checked.h"

tide_status tide__convert_check_names(const char *path, const char *out_path, tide_error *err) {
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(out_path, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot write '%s': it is the file that is read", out_path);
    tide_error_hint(err, "name another file");
    return st;
}

// ---- meta ----

typedef struct meta_copy {
    tide__in *in;
    tide__out *out;
} meta_copy;

/// What is counted, or follows from how the file was written.
static bool is_made_anew(const char *key) {
    static const char *const all[] = {
        "schema",      "version", "state",     "reason",           "n_orphan_frees", "n_scope_events",  "n_blocks",
        "n_runs",      "n_names", "n_scopes",  "n_events",         "n_chunks",       "requested_bytes", "n_problems",
        "freed_bytes", "n_lost",  "n_threads", "first_kept_event", "totals"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(key, all[i]) == 0) return true;
    return false;
}

static tide_status take_meta(void *ctx, sqlite3_stmt *row, tide_error *err) {
    meta_copy *c = ctx;
    if (sqlite3_column_type(row, 0) != SQLITE_TEXT || sqlite3_column_type(row, 1) != SQLITE_TEXT)
        return tide__in_bad_row(c->in, "meta", 0, err);
    const char *key = tide__sql_text(row, 0);
    return is_made_anew(key) ? TIDE_OK : tide__out_meta(c->out, key, tide__sql_text(row, 1), err);
}

tide_status tide__convert_meta(tide__in *in, tide__out *out, tide_error *err) {
    meta_copy c = {.in = in, .out = out};
    return tide__in_each_by_key(in, "meta", "key", "key, value", take_meta, &c, err);
}

tide_status tide__convert_meta_int(tide__in *in, const char *key, int64_t *value, bool *has, tide_error *err) {
    sqlite3_stmt *stmt = NULL;
    bool has_row = false;
    *has = false;
    *value = 0;
    tide_status st = tide__sql_prepare(&in->sql, "SELECT value FROM meta WHERE key = ?", &stmt, err);
    if (st == TIDE_OK) {
        tide__sql_bind_text(stmt, 1, key);
        st = tide__sql_step(&in->sql, stmt, &has_row, err);
    }
    if (st == TIDE_OK && has_row) {
        const char *text = tide__sql_text(stmt, 0);
        char *end;
        errno = 0;
        *value = strtoll(text, &end, 10);
        *has = end != text && *end == '\0' && errno == 0;
    }
    sqlite3_finalize(stmt);
    if (*has || st == TIDE_ERR_NOMEM) return st;
    if (!in->lenient) return st != TIDE_OK ? st : tide__in_damaged(in, err, "meta has no number '%s'", key);
    tide_error_clear(err);
    *value = 0;
    return TIDE_OK;
}

void tide__convert_meta_text(const tide__in *in, const char *key, char *buf, size_t buf_bytes) {
    sqlite3_stmt *stmt = NULL;
    bool has_row = false;
    buf[0] = '\0';
    if (tide__sql_prepare(&in->sql, "SELECT value FROM meta WHERE key = ?", &stmt, NULL) == TIDE_OK) {
        tide__sql_bind_text(stmt, 1, key);
        if (tide__sql_step(&in->sql, stmt, &has_row, NULL) == TIDE_OK && has_row)
            snprintf(buf, buf_bytes, "%s", tide__sql_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
}

// ---- counts ----

/// What a recorder of version 1 or 2 noted at its end is what was read: a missing event would make every sum wrong.
static tide_status check_counts(tide__in *in, const tide__out *out, const tide__merged *told, size_t n_runs,
                                tide_error *err) {
    int64_t requested = 0, freed = 0, n_blocks = 0;
    for (size_t i = 1; i < out->replay.n_series; i++) {
        const tide__series *s = &out->replay.series[i];
        n_blocks += s->n_allocs;
        if (!tide_add_i64(requested, s->requested_bytes, &requested) || !tide_add_i64(freed, s->freed_bytes, &freed))
            return tide__in_damaged(in, err, "all requests pass 2^63 - 1 bytes");
    }
    const struct {
        const char *key, *what;
        int64_t found;
    } all[] = {
        {"n_events", "events", told->n_events},
        {"n_scope_events", "scope events", told->n_scope_events},
        {"n_blocks", "blocks", n_blocks},
        {"n_runs", "runs", (int64_t)n_runs},
        {"n_names", "names", (int64_t)in->names.n},
        {"n_scopes", "scopes", (int64_t)in->scopes.n},
        {"requested_bytes", "requested bytes", requested},
        {"freed_bytes", "freed bytes", freed},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int64_t recorded;
        bool has;
        TIDE_TRY(tide__convert_meta_int(in, all[i].key, &recorded, &has, err));
        if (recorded != all[i].found)
            return tide__in_damaged(in, err, "%" PRId64 " %s recorded, %" PRId64 " found", recorded, all[i].what,
                                    all[i].found);
    }
    return TIDE_OK;
}

/// Events at the end of a table that meta knows of and nobody can read.
static tide_status tell_lost_end(tide__retell *r, const char *key, int64_t last, tide_error *err) {
    int64_t n;
    bool has;
    TIDE_TRY(tide__convert_meta_int(r->in, key, &n, &has, err));
    if (!has || n <= last || (uint64_t)(n - last) > r->in->file_bytes) return TIDE_OK;
    return tide__retell_gap(r, (uint64_t)(n - last), r->out->last_ns, false, err);
}

// ---- the whole ----

static tide_status tell(tide__retell *r, tide_error *err) {
    bool has;
    int64_t n_orphan_frees;
    TIDE_TRY(tide__convert_meta_int(r->in, "n_orphan_frees", &n_orphan_frees, &has, err));
    r->out->forgive = n_orphan_frees > 0; // recording began when blocks were already out
    tide__merged told;
    TIDE_TRY(tide__convert_merge(r, &told, err));
    if (r->in->lenient) {
        TIDE_TRY(tell_lost_end(r, "n_events", told.last_event, err));
        TIDE_TRY(tell_lost_end(r, "n_scope_events", told.last_scope_event, err));
    } else {
        TIDE_TRY(check_counts(r->in, r->out, &told, r->n_runs, err));
    }
    return tide__retell_runs(r, err);
}

/// The one process that older versions recorded.
static tide_status write_process(const tide__sql *s, int64_t begin_ns, int64_t end_ns, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO process(id, pid, begin_ns, end_ns, how) VALUES(1, 0, ?, ?, 'closed')",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, begin_ns);
    sqlite3_bind_int64(stmt, 2, end_ns);
    const tide_status st = tide__sql_run(s, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__convert_old(tide__in *in, tide__out *out, uint64_t *n_lost, tide_error *err) {
    const tide__sql *s;
    TIDE_TRY(tide__out_sql(out, &s, err));
    TIDE_TRY(tide__in_read_names(in, &out->names, s, err));
    tide__retell r = {0};
    tide_status st = tide__retell_begin(&r, in, out, err);
    if (st == TIDE_OK) st = tell(&r, err);
    *n_lost = r.n_lost;
    const int64_t begin_ns = out->first_ns;
    tide__retell_deinit(&r);
    TIDE_TRY(st);
    TIDE_TRY(tide__out_sql(out, &s, err));
    TIDE_TRY(write_process(s, begin_ns, out->last_ns, err));
    TIDE_TRY(tide__convert_meta(in, out, err));
    return tide__out_meta_int(out, "converted_from_version", in->version, err);
}

static tide_status check_version(const tide__in *in, tide_error *err) {
    if (in->version < TIDE__TRACE_VERSION) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot convert '%s'", in->path);
    tide_error_where(err, "%s", in->path);
    tide_error_note(err, "it is of version %d, the newest, already", in->version);
    return st;
}

/// A file of another make, with a schema text that says so.
static tide_status check_schema(tide__in *in, tide_error *err) {
    sqlite3_stmt *stmt;
    bool has_table, has = false;
    TIDE_TRY(tide__in_has_table(in, "meta", &has_table, err));
    if (!has_table) return tide__in_damaged(in, err, "table meta is missing or none of ours");
    TIDE_TRY(tide__sql_prepare(&in->sql, "SELECT 1 FROM meta WHERE key = 'schema' AND value = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, TIDE__TRACE_SCHEMA);
    const tide_status st = tide__sql_step(&in->sql, stmt, &has, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK && !has) return tide__in_damaged(in, err, "meta does not say '%s'", TIDE__TRACE_SCHEMA);
    return st;
}

tide_status tide_trace_convert(const char *path, const char *out_path, tide_error *err) {
    TIDE_TRY(tide__convert_check_names(path, out_path, err));
    tide__in in;
    TIDE_TRY(tide__in_open(&in, path, path, false, err));
    tide__out out = {0};
    uint64_t n_lost;
    tide_status st = check_version(&in, err);
    if (st == TIDE_OK) st = check_schema(&in, err);
    if (st == TIDE_OK && in.version >= TIDE__TRACE_OLDEST) {
        tide__in_close(&in);
        return tide__convert_copy(path, out_path, err);
    }
    if (st == TIDE_OK) st = tide__out_create(&out, out_path, err);
    if (st == TIDE_OK) st = tide__convert_old(&in, &out, &n_lost, err);
    if (st == TIDE_OK) st = tide__out_finish(&out, NULL, err);
    tide__out_deinit(&out);
    tide__in_close(&in);
    return st;
}
