// SPDX-License-Identifier: MIT
//
// Files of SQLite that may come from anybody. See import_internal.h.
#include "profiler/import/import_internal.h"

int tide__import_open_sqlite(const char *path, sqlite3 **db) {
    const int rc = sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) return rc;
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    tide__sql_guard(*db, true);
    return SQLITE_OK;
}
