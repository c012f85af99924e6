// SPDX-License-Identifier: MIT
//
// The inside of a store, shared by its files. Private to profiler/store/.
#ifndef TIDE_PROFILER_STORE_INTERNAL_H
#define TIDE_PROFILER_STORE_INTERNAL_H

#include "profiler/store/rows.h"
#include "profiler/store/store.h"

/// Statements that a store keeps, prepared when first used.
#define TIDE__STORE_STMT_MAP(XX)                                                                                       \
    XX(PUT_META, "INSERT INTO meta(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value")    \
    XX(NAME, "INSERT INTO name(id, text) VALUES(?, ?)")                                                                \
    XX(SCOPE, "INSERT INTO scope(id, name_id, kind, step, parent_id) VALUES(?, ?, ?, ?, ?)")                           \
    XX(DEVICE, "INSERT INTO device(id, name) VALUES(?, ?)")                                                            \
    XX(THREAD, "INSERT INTO thread(id, process_id, number, name) VALUES(?, ?, ?, ?) "                                  \
               "ON CONFLICT(id) DO UPDATE SET name = excluded.name")                                                   \
    XX(CHUNK, "INSERT INTO event_chunk(first_event, last_event, begin_ns, end_ns, data) VALUES(?, ?, ?, ?, ?)")        \
    XX(SERIES, "INSERT OR IGNORE INTO series(id, device, kind) VALUES(?, ?, ?)")                                       \
    XX(LEAF, "INSERT OR REPLACE INTO leaf(series, first_event, last_event, begin_ns, end_ns, min_bytes, max_bytes, "   \
             "max_event, max_ns, max_reserved_bytes, last_bytes, last_reserved_bytes) "                                \
             "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                                             \
    XX(SNAPSHOT, "INSERT OR REPLACE INTO snapshot(event_id, t_ns, blocks, requested_bytes, data) "                     \
                 "VALUES(?, ?, ?, ?, ?)")                                                                              \
    XX(PROBLEM, "INSERT INTO problem(event_id, problem, what) VALUES(?, ?, ?)")                                        \
    XX(POSITION, "INSERT OR REPLACE INTO position(process_id, ring, position, thread, n_lost) VALUES(?, ?, ?, ?, ?)")  \
    XX(PROCESS_MEMORY, "INSERT OR REPLACE INTO process_memory(process_id, t_ns, resident_bytes, peak_bytes, "          \
                       "swapped_bytes, share_bytes, minor_faults, major_faults) VALUES(?, ?, ?, ?, ?, ?, ?, ?)")       \
    XX(TOTAL, "INSERT OR REPLACE INTO total(process_id, device, kind, n_allocs, n_frees, requested_bytes, "            \
              "freed_bytes) VALUES(?, ?, ?, ?, ?, ?, ?)")                                                              \
    XX(RUN_BEGIN, "UPDATE run SET first_event = ?1 + 1, begin_ns = ?2 WHERE id = ?3")                                  \
    XX(RUN_END, "UPDATE run SET last_event = ?1, end_ns = max(?2, begin_ns) WHERE id = ?3")                            \
    XX(END_PROCESS, "UPDATE process SET how = ?1, end_ns = ?2 WHERE id = ?3")
typedef enum tide__store_stmt {
#define XX(name, text) TIDE__STMT_##name,
    TIDE__STORE_STMT_MAP(XX)
#undef XX
        TIDE__N_STMTS
} tide__store_stmt;

/// 80 MB of log: fewer, larger checkpoints cost less.
enum { TIDE__STORE_CHECKPOINT_PAGES = 10000 };
/// Leaves that are written before they are counted again: to count those of a long recording takes some ten ms.
enum { TIDE__STORE_COUNT_LEAVES = 8192 };

struct tide__store {
    tide__sql sql; ///< path is `path`
    char *path;    ///< as the caller gave it; owned
    sqlite3_stmt *stmts[TIDE__N_STMTS];
    tide__rows *rows;
    size_t n_series;       ///< that have a row; forgotten when a transaction is rolled back
    size_t n_leaves_since; ///< written since they were last counted; those that are there at open count as many
    int64_t first_kept;    ///< event; 0: not known yet
    uint8_t *chunk;        ///< [TIDE__CHUNK_MAX_BYTES], once a chunk was written
    tide_text snapshot;    ///< buffer
};

/// TIDE_ERR_BAD_INPUT: table `table` holds what no recorder writes.
tide_status tide__store_bad(const tide__store *s, const char *table, tide_error *err);
/// Leaves of series that have their rows.
tide_status tide__store_write_known_leaves(tide__store *s, const tide__leaf *leaves, size_t n,
                                           tide_error *err) TIDE_NODISCARD;
/// All statements give up their memory and their hold on the file.
void tide__store_finalize(tide__store *s);

#endif
