// SPDX-License-Identifier: MIT
//
// schema: the tables and views of a trace file, version 2. The recorder creates them, the query side compares what it
// finds with them, docs/trace-format.md explains them. Private to profiler/.
//
// A change to a table or to the meaning of a column is a new version; a new view is not.
#ifndef TIDE_PROFILER_SCHEMA_H
#define TIDE_PROFILER_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/query.h"

enum {
    TIDE__TRACE_APPLICATION_ID = 0x74696465,  ///< 'tide', at byte 68 of the file
    TIDE__TRACE_VERSION = TIDE_TRACE_VERSION, ///< PRAGMA user_version and meta.version
};
#define TIDE__TRACE_SCHEMA "tidemark.trace"

/// Columns of table event behind its id, once for the table, the row in memory, and the insert. Each is an integer;
/// OPTIONAL ones are 0 in memory for none and NULL in the file.
#define TIDE__EVENT_COLUMNS(REQUIRED, OPTIONAL)                                                                        \
    OPTIONAL(run_id)                                                                                                   \
    REQUIRED(t_ns)                                                                                                     \
    REQUIRED(op)                                                                                                       \
    REQUIRED(block_id)                                                                                                 \
    REQUIRED(kind)                                                                                                     \
    REQUIRED(device)                                                                                                   \
    REQUIRED(stream)                                                                                                   \
    REQUIRED(requested_bytes)                                                                                          \
    REQUIRED(reserved_bytes)                                                                                           \
    REQUIRED(address)                                                                                                  \
    REQUIRED(thread)                                                                                                   \
    OPTIONAL(allocator_id)                                                                                             \
    OPTIONAL(tag_id)                                                                                                   \
    OPTIONAL(scope_id)

typedef struct tide__event_row {
    int64_t id;
#define XX(column) int64_t column;
    TIDE__EVENT_COLUMNS(XX, XX)
#undef XX
} tide__event_row;

typedef struct tide__schema_item {
    const char *name;
    const char *sql; ///< the whole CREATE statement, as SQLite keeps it
} tide__schema_item;

/// Tables in the order in which they are created.
size_t tide__schema_tables(const tide__schema_item **out);
size_t tide__schema_views(const tide__schema_item **out);
extern const char *const tide__schema_insert_event; ///< parameters: id, then the columns of the list
/// Fills table block from table event; run once, at close.
extern const char *const tide__schema_fill_blocks;

#endif
