// SPDX-License-Identifier: MIT
//
// A trace of version 3 as one of today's. Its tables are those of today, and chunks of format 1 are read as they are:
// so it is copied page by page, and gets another number. See convert.h.
#include <stdio.h>

#include "core/base/host_alloc.h"
#include "profiler/read/convert.h"
#include "profiler/read/trace_internal.h"
#include "profiler/store/schema.h"

static tide_status copy_pages(tide__sql *to, const tide_trace *from, tide_error *err) {
    sqlite3_backup *b = sqlite3_backup_init(to->db, "main", from->sql.db, "main");
    if (b == NULL) return tide__sql_fail(to, sqlite3_errcode(to->db), "write", err);
    sqlite3_backup_step(b, -1);
    const int rc = sqlite3_backup_finish(b);
    return rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(to, rc, "write", err);
}

static tide_status renumber(const tide__sql *to, tide_error *err) {
    char text[320];
    snprintf(text, sizeof text,
             "PRAGMA journal_mode = DELETE; BEGIN; UPDATE meta SET value = '%d' WHERE key = 'version'; "
             "INSERT OR REPLACE INTO meta(key, value) VALUES('converted_from_version', '%d'); "
             "PRAGMA user_version = %d; COMMIT",
             (int)TIDE__TRACE_VERSION, (int)TIDE__TRACE_OLDEST, (int)TIDE__TRACE_VERSION);
    return tide__sql_exec(to, text, err);
}

static tide_status write_copy(const tide_trace *from, const char *file, const char *path, tide_error *err) {
    char *name = tide__sql_file_name(file);
    if (name == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to write '%s'", path);
    tide__sql to = {.path = path};
    const int rc =
        sqlite3_open_v2(name, &to.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_host_free(name);
    tide_status st = rc == SQLITE_OK ? TIDE_OK : tide__sql_fail(&to, rc, "write", err);
    if (st == TIDE_OK) st = copy_pages(&to, from, err);
    if (st == TIDE_OK) st = renumber(&to, err);
    sqlite3_close(to.db);
    return st;
}

tide_status tide__convert_copy(const char *path, const char *out_path, tide_error *err) {
    tide_trace *t = NULL;
    TIDE_TRY(tide_trace_open(path, &t, err));
    tide__out out = {0};
    tide_status st = TIDE_OK;
    if (t->state == TIDE_TRACE_RECORDING)
        st = TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot convert '%s': it is being recorded", path);
    if (st == TIDE_OK) st = tide__out_create(&out, out_path, err);
    if (st == TIDE_OK) {
        tide__store_close(out.store); // of the new file only its name is needed
        out.store = NULL;
        tide__out_remove(out.tmp_path);
        st = write_copy(t, out.tmp_path, out_path, err);
    }
    if (st == TIDE_OK) st = tide__out_replace(&out, err);
    tide__out_deinit(&out);
    tide_trace_close(t);
    return st;
}
