// SPDX-License-Identifier: MIT
//
// Traces of versions 1 and 2: what those versions recorded of the demo trace, and files with other rows in tables of
// their make.
#ifndef TIDE_TESTS_PROFILER_OLD_TRACE_H
#define TIDE_TESTS_PROFILER_OLD_TRACE_H

#include "tests/profiler/trace_fixture.h"

/// The demo trace, as version 1 or 2 wrote it (tests/golden/trace_v1.sql, trace_v2.sql).
static inline void old_record(const char *path, int version) {
    char below[64], script[600];
    snprintf(below, sizeof below, "tests/golden/trace_v%d.sql", version);
    tide_source_path(below, script, sizeof script);
    char *text = NULL;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(script, 0, &text, &len, &err), &err);
    remove(path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    char *words = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &words) != SQLITE_OK) fail_msg("%s: %s", script, words);
    sqlite3_close(db);
    tide_host_free(text);
}

/// Tables of that version without any row but those of the lists.
static inline void old_empty(const char *path, int version) {
    old_record(path, version);
    sql_exec(path, "DELETE FROM event; DELETE FROM scope_event; DELETE FROM block; DELETE FROM run; DELETE FROM plan; "
                   "DELETE FROM plan_tensor; DELETE FROM plan_pool; DELETE FROM plan_step; DELETE FROM name; "
                   "DELETE FROM scope; DELETE FROM device");
    if (version == 2) sql_exec(path, "DELETE FROM plan_buffer");
}

/// What a recorder of versions 1 and 2 did at its end.
static inline void old_close(const char *path) {
    sql_exec(path,
             "INSERT INTO block "
             "SELECT a.block_id, a.run_id, a.id, f.id, a.t_ns, q.t_ns, f.t_ns, a.kind, a.device, a.stream, "
             "       a.requested_bytes, a.reserved_bytes, a.address, a.thread, a.allocator_id, a.tag_id, a.scope_id "
             "FROM event a LEFT JOIN (SELECT block_id, t_ns FROM event WHERE op = 2) q ON q.block_id = a.block_id "
             "             LEFT JOIN (SELECT block_id, id, t_ns FROM event WHERE op = 3) f ON f.block_id = a.block_id "
             "WHERE a.op = 1 ORDER BY a.block_id;"
             "UPDATE meta SET value = (SELECT count(*) FROM event) WHERE key = 'n_events';"
             "UPDATE meta SET value = (SELECT count(*) FROM scope_event) WHERE key = 'n_scope_events';"
             "UPDATE meta SET value = (SELECT count(*) FROM block) WHERE key = 'n_blocks';"
             "UPDATE meta SET value = (SELECT count(*) FROM run) WHERE key = 'n_runs';"
             "UPDATE meta SET value = (SELECT count(*) FROM name) WHERE key = 'n_names';"
             "UPDATE meta SET value = (SELECT count(*) FROM scope) WHERE key = 'n_scopes';"
             "UPDATE meta SET value = (SELECT coalesce(sum(requested_bytes), 0) FROM block) "
             "WHERE key = 'requested_bytes';"
             "UPDATE meta SET value = (SELECT coalesce(sum(requested_bytes), 0) FROM block "
             "WHERE free_event IS NOT NULL) WHERE key = 'freed_bytes'");
}

#endif
