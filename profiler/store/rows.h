// SPDX-License-Identifier: MIT
//
// rows: arrays in memory as tables that SQLite can read, so that one INSERT ... SELECT writes thousands of rows: a
// third less time than a statement per row. Private to profiler/.
//
//     tide__event[n] --pointer, bound to a parameter--> virtual table --INSERT INTO event SELECT *--> rows
#ifndef TIDE_PROFILER_STORE_ROWS_H
#define TIDE_PROFILER_STORE_ROWS_H

#include "profiler/event.h"
#include "profiler/store/sql.h"

/// A row of table block. Numbers that refer to a table are 0 for none and become NULL.
typedef struct tide__block_row {
    int64_t id; ///< block_id of its events
    int64_t run_id;
    int64_t alloc_event, free_event; ///< free_event 0: never freed in the trace
    int64_t alloc_ns;
    int64_t free_requested_ns; ///< 0: not requested
    int64_t free_ns;           ///< read with a free_event only
    int64_t requested_bytes, reserved_bytes;
    int64_t address, stream;
    int32_t thread, scope_id, tag_id, allocator_id;
    int16_t device;
    uint8_t kind;
} tide__block_row;

/// Statements of one connection that insert arrays. The connection may have several.
typedef struct tide__rows tide__rows;

/// `s` is borrowed until close.
tide_status tide__rows_open(const tide__sql *s, tide__rows **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__rows_close(tide__rows *r);

/// Insert events with consecutive ids into table event, inside a transaction.
tide_status tide__rows_insert_events(tide__rows *r, const tide__event *events, size_t n,
                                     tide_error *err) TIDE_NODISCARD;
/// Insert into table block, `temp`: into temp.block. In any order; by id is fastest. Of two blocks with one number (a
/// program that hands it out twice) the one that comes later gets -alloc_event as its id.
tide_status tide__rows_insert_blocks(tide__rows *r, bool temp, const tide__block_row *blocks, size_t n,
                                     tide_error *err) TIDE_NODISCARD;

/// Which columns of a row of table event hold every value of the event, also 0; the others are NULL for 0 (kind: for
/// TIDE__NO_KIND). Reading NULL as 0 (kind: as TIDE__NO_KIND) gives the event back as it went in.
enum { TIDE__HAS_STREAM = 1, TIDE__HAS_REQUESTED = 2, TIDE__HAS_RESERVED = 4, TIDE__HAS_ADDRESS = 8 };
unsigned tide__event_columns(int op);
/// Column `column_i` of table event for `e`, as the result of a virtual table's xColumn.
void tide__event_result(sqlite3_context *c, const tide__event *e, int column_i);
/// The same of table block.
void tide__block_result(sqlite3_context *c, const tide__block_row *b, int column_i);

#endif
