// SPDX-License-Identifier: MIT
//
// Rows, names and events of a damaged trace. See recover_read.h.
#include "profiler/read/recover_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/store/replay.h"
#include "profiler/store/schema.h"

enum {
    MAX_VALUE_BYTES = 1 << 24, ///< longest text or chunk that is read
    STEPS_PER_LOOK = 100000,   ///< of SQLite's machine between two looks at the budget
    STEPS_PER_BYTE = 200,      ///< several passes over a file need some 10
    MIN_ROW_BYTES = 6,         ///< of a key, a value and a place in the page's list
};

// ---- by content ----

static tide_status not_a_trace(const char *path, const char *why, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is not a tidemark trace", path);
    tide_error_where(err, "%s", path);
    tide_error_note(err, "%s", why);
    return st;
}

/// A file may claim any size: what counts is what was written, also where the file system packs it well.
static uint64_t written_bytes(const struct stat *info) {
    const uint64_t size = (uint64_t)info->st_size, written = (uint64_t)info->st_blocks * 512;
    return size / 8 > written ? written * 8 : size;
}

/// Source: https://www.sqlite.org/fileformat2.html, 1.3: text at 0, user version at 60, application id at 68.
static tide_status check_head(tide__damaged *in, const char *file, tide_error *err) {
    struct stat info;
    // Without O_NONBLOCK a pipe would wait for a writer.
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': %s", in->path, strerror(errno));
    unsigned char head[TIDE_TRACE_HEAD_BYTES] = {0};
    const bool known = fstat(fd, &info) == 0;
    const bool regular = known && S_ISREG(info.st_mode);
    const ssize_t n = regular ? pread(fd, head, sizeof head, 0) : 0;
    const int why = errno;
    close(fd);
    if (known && !regular)
        return TIDE_FAIL(err, TIDE_ERR_IO, "cannot open '%s': it is %s", in->path,
                         S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
    if (!known || n < 0) return TIDE_FAIL(err, TIDE_ERR_IO, "cannot read '%s': %s", in->path, strerror(why));
    in->file_bytes = written_bytes(&info);
    if (n == 0) return not_a_trace(in->path, "the file is empty", err);
    if ((size_t)n < sizeof head || memcmp(head, "SQLite format 3", 16) != 0)
        return not_a_trace(in->path, "it is no SQLite database", err);
    if (!tide_trace_recognise(head, (size_t)n))
        return not_a_trace(in->path, "it is an SQLite database of another program", err);
    const unsigned char *v = head + 60;
    const uint32_t version = (uint32_t)v[0] << 24 | (uint32_t)v[1] << 16 | (uint32_t)v[2] << 8 | v[3];
    if (version == TIDE_TRACE_VERSION || version == TIDE_TRACE_VERSION_PACKED) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': trace version %" PRIu32, in->path, version);
    tide_error_where(err, "%s", in->path);
    tide_error_note(err, "this tidemark reads versions %d and %d", (int)TIDE_TRACE_VERSION,
                    (int)TIDE_TRACE_VERSION_PACKED);
    if (version > TIDE_TRACE_VERSION_PACKED) tide_error_hint(err, "a newer tidemark wrote it: read it with that one");
    return st;
}

// ---- open ----

/// A tree of pages can lead back to itself, so that a query never ends: one that takes far more steps than the file has
/// bytes is stopped.
static int count_steps(void *ctx) {
    tide__damaged *in = ctx;
    if (in->steps_left < STEPS_PER_LOOK) return 1;
    in->steps_left -= STEPS_PER_LOOK;
    return 0;
}

/// SQLite takes no lock, looks for no log and makes no file beside it.
static tide_status connect(tide__damaged *in, const char *file, tide_error *err) {
    char *name = tide__sql_immutable_name(file);
    if (name == NULL) return TIDE_NO_MEMORY(err, "to open '%s'", in->path);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    const int rc = sqlite3_open_v2(name, &in->sql.db, flags, NULL);
    tide_host_free(name);
    if (rc != SQLITE_OK) return tide__sql_fail(&in->sql, rc, "open", err);
    // Only so SQLite reads a file that was cut, and passes over entries of its list of tables that make no sense.
    sqlite3_exec(in->sql.db, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
    sqlite3_db_config(in->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(in->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(in->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_limit(in->sql.db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_exec(in->sql.db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    in->steps_left = 100 * (int64_t)STEPS_PER_LOOK;
    if (in->file_bytes < INT64_MAX / (4 * STEPS_PER_BYTE)) in->steps_left += (int64_t)in->file_bytes * STEPS_PER_BYTE;
    sqlite3_progress_handler(in->sql.db, STEPS_PER_LOOK, count_steps, in);
    return TIDE_OK;
}

tide_status tide__damaged_open(tide__damaged *in, const char *path, const char *file, tide_error *err) {
    *in = (tide__damaged){.next_thread = INT32_MAX,
                          .names = TIDE_MAP(tide__renamed),
                          .scopes = TIDE_MAP(tide__renamed),
                          .devices = TIDE_MAP(tide__renamed),
                          .threads = TIDE_MAP(tide__renamed)};
    TIDE_TRY(TIDE_COPY_TEXT(&in->path, path, err, "to open '%s'", path));
    in->sql.path = in->path;
    tide_status st = check_head(in, file, err);
    if (st == TIDE_OK) st = connect(in, file, err);
    if (st != TIDE_OK) tide__damaged_close(in);
    return st;
}

void tide__damaged_close(tide__damaged *in) {
    sqlite3_close(in->sql.db);
    tide_host_free(in->path);
    tide_map *const maps[] = {&in->names, &in->scopes, &in->devices, &in->threads};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) tide_map_deinit(maps[i]);
    *in = (tide__damaged){0};
}

// ---- what is inside ----

/// Whether a query about a table has a row. A schema that cannot be read has none.
static tide_status has_row_for(const tide__damaged *in, const char *query, const char *table, bool *has,
                               tide_error *err) {
    sqlite3_stmt *stmt = NULL;
    *has = false;
    tide_status st = tide__sql_prepare(&in->sql, query, &stmt, err);
    if (st == TIDE_OK) {
        tide__sql_bind_text(stmt, 1, table);
        st = tide__sql_step(&in->sql, stmt, has, err);
    }
    sqlite3_finalize(stmt);
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM) return st;
    tide_error_clear(err);
    *has = false;
    return TIDE_OK;
}

tide_status tide__damaged_has_table(const tide__damaged *in, const char *table, bool *has, tide_error *err) {
    bool computed;
    TIDE_TRY(has_row_for(in, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? AND rootpage > 1", table,
                         has, err));
    if (!*has) return TIDE_OK;
    TIDE_TRY(has_row_for(in, "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden <> 0", table, &computed, err));
    if (computed) *has = false;
    return TIDE_OK;
}

// ---- rows by number ----
//
// Where a page cannot be read, every search for a number that lies on it fails, and the search for a number behind it
// succeeds: the first number behind is found by doubling steps and halving.
//
//     readable      damaged page       readable
//     ...  39 40 | x  x  x  x  x  x | 87 88 ...
//             ^next --1--2----4--------8       double until a search succeeds, then halve between the last two

/// Whether reading goes on after this error: the file is at fault, and not memory or the disk.
static bool is_damage(int rc) {
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
    case SQLITE_FULL:
    case SQLITE_INTERRUPT:
        return false;
    default:
        return true;
    }
}

static tide_status fail(const tide__damaged *in, int rc, const char *table, tide_error *err) {
    tide_status st;
    if ((rc & 0xff) == SQLITE_INTERRUPT) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", in->path);
        tide_error_where(err, "%s", in->path);
        tide_error_note(err, "damaged: table %s has rows without end", table);
        return st;
    }
    st = tide__sql_fail(&in->sql, rc, "read", err);
    tide_error_where(err, "%s: table %s", in->path, table);
    return st;
}

tide_status tide__walk_open(tide__walk *w, tide__damaged *in, const char *table, const char *key, const char *columns,
                            tide_error *err) {
    *w = (tide__walk){.in = in, .table = table, .next = INT64_MIN};
    bool has;
    TIDE_TRY(tide__damaged_has_table(in, table, &has, err));
    if (!has) in->n_lost_spots++;
    w->has_ended = !has;
    if (!has) return TIDE_OK;
    tide_text query = {0};
    // An index that the file brings along must not be used.
    tide_text_addf(&query, "SELECT %s FROM %s NOT INDEXED WHERE %s >= ?1 ORDER BY %s", columns, table, key, key);
    tide_status st = query.failed ? TIDE_NO_MEMORY(err, "to read '%s'", in->path)
                                  : tide__sql_prepare(&in->sql, query.data, &w->stmt, err);
    tide_text_deinit(&query);
    if (st == TIDE_ERR_NOMEM) return st;
    if (st != TIDE_OK) {
        tide_error_clear(err);
        in->n_lost_spots++;
        w->has_ended = true;
        return TIDE_OK;
    }
    sqlite3_bind_int64(w->stmt, 1, w->next);
    return TIDE_OK;
}

void tide__walk_close(tide__walk *w) {
    sqlite3_finalize(w->stmt);
    *w = (tide__walk){0};
}

/// Whether the rows from number `x` on can be read: on a row whose number is at least that, or at the end.
static bool seek(tide__walk *w, int64_t x, int *rc) {
    sqlite3_reset(w->stmt);
    sqlite3_bind_int64(w->stmt, 1, x);
    *rc = sqlite3_step(w->stmt);
    if (*rc == SQLITE_DONE) return true;
    return *rc == SQLITE_ROW && sqlite3_column_type(w->stmt, 0) == SQLITE_INTEGER &&
           sqlite3_column_int64(w->stmt, 0) >= x;
}

/// Row `next` and those on its page cannot be read: stand on the first one behind, or at the end.
static int skip_damage(tide__walk *w) {
    int rc;
    w->n_spots++;
    int64_t bad = w->next, good = w->next;
    for (int64_t step = 1; !seek(w, good, &rc); step = step <= INT64_MAX / 2 ? 2 * step : INT64_MAX) {
        if (rc != SQLITE_ROW && !is_damage(rc)) return rc;
        bad = good;
        if (good == INT64_MAX) return SQLITE_DONE;
        if (__builtin_add_overflow(good, step, &good)) good = INT64_MAX;
    }
    if (good == w->next) return rc;
    while (bad < good - 1) {
        const int64_t mid = bad + (good - bad) / 2;
        if (seek(w, mid, &rc)) {
            good = mid;
        } else {
            if (rc != SQLITE_ROW && !is_damage(rc)) return rc;
            bad = mid;
        }
    }
    return seek(w, good, &rc) || rc != SQLITE_ROW ? rc : SQLITE_CORRUPT;
}

tide_status tide__walk_next(tide__walk *w, sqlite3_stmt **row, tide_error *err) {
    *row = NULL;
    if (w->has_ended) return TIDE_OK;
    int rc = sqlite3_step(w->stmt);
    const bool rises = rc != SQLITE_ROW || (sqlite3_column_type(w->stmt, 0) == SQLITE_INTEGER &&
                                            sqlite3_column_int64(w->stmt, 0) >= w->next);
    if (!rises || (rc != SQLITE_ROW && rc != SQLITE_DONE && is_damage(rc))) {
        // Numbers count from 1; what claims less is not looked for.
        if (w->next < 0) w->next = 0;
        rc = skip_damage(w);
    }
    if (rc == SQLITE_ROW) {
        const int64_t id = sqlite3_column_int64(w->stmt, 0);
        w->has_ended = id == INT64_MAX;
        w->next = w->has_ended ? id : id + 1;
        *row = w->stmt;
        return TIDE_OK;
    }
    w->has_ended = true;
    w->in->n_lost_spots += w->n_spots;
    return rc == SQLITE_DONE ? TIDE_OK : fail(w->in, rc, w->table, err);
}

static tide_status take_one(tide__damaged *in, sqlite3_stmt *row, tide__take_row take, void *ctx, tide_error *err) {
    const tide_status st = take(ctx, row, err);
    if (st != TIDE_ERR_BAD_INPUT) return st;
    tide_error_clear(err);
    in->n_lost_rows++;
    return TIDE_OK;
}

tide_status tide__damaged_each(tide__damaged *in, const char *table, const char *key, const char *columns,
                               tide__take_row take, void *ctx, tide_error *err) {
    tide__walk w;
    tide_status st = tide__walk_open(&w, in, table, key, columns, err);
    while (st == TIDE_OK) {
        sqlite3_stmt *row;
        st = tide__walk_next(&w, &row, err);
        if (st != TIDE_OK || row == NULL) break;
        st = take_one(in, row, take, ctx, err);
    }
    tide__walk_close(&w);
    return st;
}

// ---- rows by key ----

/// *met_damage: the walk ended before the end of the table.
static tide_status walk_by_key(tide__damaged *in, const char *table, const char *order, bool backwards,
                               const char *columns, tide__take_row take, void *ctx, bool *met_damage, tide_error *err) {
    tide_text query = {0};
    sqlite3_stmt *stmt = NULL;
    *met_damage = false;
    tide_text_addf(&query, "SELECT %s FROM %s NOT INDEXED ORDER BY ", columns, table);
    for (const char *c = order; *c != '\0'; c++) { // every column of it the other way round
        if (*c == ',' && backwards) tide_text_add(&query, " DESC");
        tide_text_add_n(&query, c, 1);
    }
    if (backwards) tide_text_add(&query, " DESC");
    tide_status st = query.failed ? TIDE_NO_MEMORY(err, "to read '%s'", in->path)
                                  : tide__sql_prepare(&in->sql, query.data, &stmt, err);
    tide_text_deinit(&query);
    int rc = SQLITE_OK;
    // No row takes less than some bytes: more rows than that are pages that lead to themselves.
    uint64_t room = in->file_bytes / MIN_ROW_BYTES;
    while (st == TIDE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (room-- == 0) rc = SQLITE_CORRUPT;
        if (rc != SQLITE_ROW) break;
        st = take_one(in, stmt, take, ctx, err);
    }
    if (st == TIDE_OK && rc != SQLITE_DONE) st = fail(in, rc, table, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM || (rc == SQLITE_ROW && st != TIDE_ERR_BAD_INPUT)) return st;
    tide_error_clear(err);
    *met_damage = true;
    return TIDE_OK;
}

tide_status tide__damaged_each_by_key(tide__damaged *in, const char *table, const char *order, const char *columns,
                                      tide__take_row take, void *ctx, tide_error *err) {
    bool has, met_damage;
    TIDE_TRY(tide__damaged_has_table(in, table, &has, err));
    if (!has) in->n_lost_spots++;
    if (!has) return TIDE_OK;
    TIDE_TRY(walk_by_key(in, table, order, false, columns, take, ctx, &met_damage, err));
    if (!met_damage) return TIDE_OK;
    in->n_lost_spots++;
    return walk_by_key(in, table, order, true, columns, take, ctx, &met_damage, err);
}

// ---- meta ----

tide_status tide__damaged_meta_int(tide__damaged *in, const char *key, int64_t *value, bool *has, tide_error *err) {
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
    tide_error_clear(err);
    *value = 0;
    return TIDE_OK;
}

void tide__damaged_meta_text(const tide__damaged *in, const char *key, char *buf, size_t buf_bytes) {
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
