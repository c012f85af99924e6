// SPDX-License-Identifier: MIT
//
// schema: the tables and views of a trace file. The store creates them, the query side compares what
// it finds with them, docs/trace-format.md explains them. Private to profiler/.
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
/// The versions as text, for SQL: of a trace whose blocks are rows, and of one that has table block_chunk in use.
#define TIDE__TRACE_PLAIN_TEXT "1"
#define TIDE__TRACE_PACKED_TEXT "2"
/// Value of meta.packed: what a person reads who finds tables event and block empty.
#define TIDE__PACKED_TEXT                                                                                              \
    "events and blocks lie in tables event_chunk and block_chunk: tidemark trace FILE --sql QUERY sees them, "         \
    "tidemark trace FILE --expand makes rows of them for every SQLite shell"
#define TIDE__TRACE_SCHEMA "tidemark.trace"

/// Columns of table event in order, for a SELECT.
#define TIDE__EVENT_COLUMNS "id, " TIDE__EVENT_COLUMNS_BEHIND_ID
#define TIDE__EVENT_COLUMNS_BEHIND_ID                                                                                  \
    "run_id, t_ns, op, block_id, kind, device, stream, requested_bytes, reserved_bytes, address, thread, "             \
    "allocator_id, tag_id, scope_id"
/// Columns of table block in order.
#define TIDE__BLOCK_COLUMNS "id, " TIDE__BLOCK_COLUMNS_BEHIND_ID
#define TIDE__BLOCK_COLUMNS_BEHIND_ID                                                                                  \
    "run_id, alloc_event, free_event, alloc_ns, free_requested_ns, free_ns, kind, device, stream, "                    \
    "requested_bytes, reserved_bytes, address, thread, allocator_id, tag_id, scope_id"

/// Values of meta.state.
#define TIDE__STATE_RECORDING "recording"
#define TIDE__STATE_COMPLETE "complete"
#define TIDE__STATE_CUT_SHORT "cut short"

typedef struct tide__schema_item {
    const char *name;
    const char *sql; ///< the whole CREATE statement, as SQLite keeps it
} tide__schema_item;

/// Tables in the order in which they are created.
size_t tide__schema_tables(const tide__schema_item **out);
/// Table block_chunk, which a trace has when it has blocks that are packed, or had.
const tide__schema_item *tide__schema_block_chunk(void);
size_t tide__schema_views(const tide__schema_item **out);

#endif
