// SPDX-License-Identifier: MIT
//
// Opening a trace that is read to be written anew. See convert_in.h.
#include "profiler/read/convert_in.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/store/schema.h"

enum {
    MAX_VALUE_BYTES = 1 << 24, ///< longest text or chunk that is read
    STEPS_PER_LOOK = 100000,   ///< of SQLite's machine between two looks at the budget
    STEPS_PER_BYTE = 200,      ///< several passes over a file need some 10
};

tide_status tide__in_damaged(const tide__in *in, tide_error *err, const char *note, ...) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", in->path);
    tide_error_where(err, "%s", in->path);
    char text[256];
    va_list args;
    va_start(args, note);
    vsnprintf(text, sizeof text, note, args);
    va_end(args);
    tide_error_note(err, "damaged: %s", text);
    return st;
}

tide_status tide__in_bad_row(const tide__in *in, const char *table, int64_t id, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", in->path);
    tide_error_where(err, "%s: table %s, row %" PRId64, in->path, table, id);
    tide_error_note(err, "damaged: no recorder wrote this row");
    return st;
}

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
static tide_status check_head(tide__in *in, const char *file, tide_error *err) {
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
    if (version >= 1 && version <= TIDE__TRACE_VERSION) {
        in->version = (int)version;
        return TIDE_OK;
    }
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': trace version %" PRIu32, in->path, version);
    tide_error_where(err, "%s", in->path);
    tide_error_note(err, "this tidemark reads versions 1 to %d", (int)TIDE__TRACE_VERSION);
    if (version > TIDE__TRACE_VERSION) tide_error_hint(err, "a newer tidemark wrote it: read it with that one");
    return st;
}

// ---- open ----

/// A tree of pages that meets itself again has rows without end: a reading that takes far more steps than the file has
/// bytes is ended.
static int count_steps(void *ctx) {
    tide__in *in = ctx;
    if (in->steps_left < STEPS_PER_LOOK) return 1;
    in->steps_left -= STEPS_PER_LOOK;
    return 0;
}

/// A damaged file: SQLite takes no lock, looks for no log and makes no file beside it.
static tide_status connect_leniently(tide__in *in, const char *file, tide_error *err) {
    char *name = tide__sql_immutable_name(file);
    if (name == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to open '%s'", in->path);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    const int rc = sqlite3_open_v2(name, &in->sql.db, flags, NULL);
    tide_host_free(name);
    if (rc != SQLITE_OK) return tide__sql_fail(&in->sql, rc, "open", err);
    // Only so SQLite reads a file that was cut, and passes over entries of its list of tables that make no sense.
    sqlite3_exec(in->sql.db, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
    sqlite3_db_config(in->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(in->sql.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(in->sql.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return TIDE_OK;
}

static tide_status connect(tide__in *in, const char *file, tide_error *err) {
    TIDE_TRY(in->lenient ? connect_leniently(in, file, err) : tide__sql_open_to_read(&in->sql, err));
    sqlite3_limit(in->sql.db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_exec(in->sql.db, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    in->steps_left = 100 * (int64_t)STEPS_PER_LOOK;
    if (in->file_bytes < INT64_MAX / (4 * STEPS_PER_BYTE)) in->steps_left += (int64_t)in->file_bytes * STEPS_PER_BYTE;
    sqlite3_progress_handler(in->sql.db, STEPS_PER_LOOK, count_steps, in);
    return TIDE_OK;
}

tide_status tide__in_open(tide__in *in, const char *path, const char *file, bool lenient, tide_error *err) {
    *in = (tide__in){.lenient = lenient,
                     .next_thread = INT32_MAX,
                     .names = TIDE_ID_MAP(tide__renamed),
                     .scopes = TIDE_ID_MAP(tide__renamed),
                     .devices = TIDE_ID_MAP(tide__renamed),
                     .threads = TIDE_ID_MAP(tide__renamed)};
    in->path = tide_host_strdup(path);
    if (in->path == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to open '%s'", path);
    in->sql.path = in->path;
    tide_status st = check_head(in, file, err);
    if (st == TIDE_OK) st = connect(in, file, err);
    if (st != TIDE_OK) tide__in_close(in);
    return st;
}

void tide__in_close(tide__in *in) {
    sqlite3_close(in->sql.db);
    tide_host_free(in->path);
    tide_id_map *const maps[] = {&in->names, &in->scopes, &in->devices, &in->threads};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) tide_id_map_deinit(maps[i]);
    *in = (tide__in){0};
}

// ---- what is inside ----

/// Whether a query of one text parameter (or two) has a row; a schema that cannot be read has none, for the lenient.
static tide_status has_row_for(const tide__in *in, const char *query, const char *a, const char *b, bool *has,
                               tide_error *err) {
    sqlite3_stmt *stmt = NULL;
    *has = false;
    tide_status st = tide__sql_prepare(&in->sql, query, &stmt, err);
    if (st == TIDE_OK) {
        tide__sql_bind_text(stmt, 1, a);
        if (b != NULL) tide__sql_bind_text(stmt, 2, b);
        st = tide__sql_step(&in->sql, stmt, has, err);
    }
    sqlite3_finalize(stmt);
    if (st == TIDE_OK || st == TIDE_ERR_NOMEM || !in->lenient) return st;
    tide_error_clear(err);
    *has = false;
    return TIDE_OK;
}

tide_status tide__in_has_table(const tide__in *in, const char *table, bool *has, tide_error *err) {
    bool computed;
    TIDE_TRY(has_row_for(in, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? AND rootpage > 1", table,
                         NULL, has, err));
    if (!*has) return TIDE_OK;
    TIDE_TRY(has_row_for(in, "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden <> 0", table, NULL, &computed, err));
    if (computed) *has = false;
    return TIDE_OK;
}

tide_status tide__in_has_column(const tide__in *in, const char *table, const char *column, bool *has, tide_error *err) {
    return has_row_for(in, "SELECT 1 FROM pragma_table_xinfo(?) WHERE name = ? AND hidden = 0", table, column, has,
                       err);
}
