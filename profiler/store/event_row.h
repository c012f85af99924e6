// SPDX-License-Identifier: MIT
//
// event row: a row of table event as an event, out of the values that SQLite gives an SQL function: a third less time
// than a step per row. Private to profiler/.
#ifndef TIDE_PROFILER_STORE_EVENT_ROW_H
#define TIDE_PROFILER_STORE_EVENT_ROW_H

#include <sqlite3.h>
#include <stdbool.h>

#include "profiler/event.h"

enum { TIDE__EVENT_N_COLUMNS = 15 }; ///< of table event

static inline bool tide__column_fits(int64_t v, int64_t max) { return v >= 0 && v <= max; }

/// False, here and below: it is none.
static inline bool tide__column_kind(sqlite3_value *v, tide__event *e) {
    int64_t kind = sqlite3_value_int64(v);
    if (kind == 0 && sqlite3_value_type(v) == SQLITE_NULL) kind = TIDE__NO_KIND;
    e->kind = (uint8_t)kind;
    return tide__column_fits(kind, UINT8_MAX);
}

static inline bool tide__column_device(sqlite3_value *v, tide__event *e) {
    const int64_t device = sqlite3_value_int64(v);
    e->device = (int16_t)device;
    return tide__column_fits(device, INT16_MAX);
}

/// All columns, in the order of TIDE__EVENT_COLUMNS.
static inline bool tide__event_of_columns(sqlite3_value **v, tide__event *e) {
    const int64_t run = sqlite3_value_int64(v[1]), op = sqlite3_value_int64(v[3]), thread = sqlite3_value_int64(v[11]);
    const int64_t allocator = sqlite3_value_int64(v[12]), tag = sqlite3_value_int64(v[13]);
    const int64_t scope = sqlite3_value_int64(v[14]);
    *e = (tide__event){.id = sqlite3_value_int64(v[0]),
                       .t_ns = sqlite3_value_int64(v[2]),
                       .block_id = sqlite3_value_int64(v[4]),
                       .requested_bytes = sqlite3_value_int64(v[8]),
                       .reserved_bytes = sqlite3_value_int64(v[9]),
                       .address = sqlite3_value_int64(v[10]),
                       .stream = sqlite3_value_int64(v[7]),
                       .run_id = (int32_t)run,
                       .thread = (int32_t)thread,
                       .scope_id = (int32_t)scope,
                       .tag_id = (int32_t)tag,
                       .allocator_id = (int32_t)allocator,
                       .op = (uint8_t)op};
    return tide__column_fits(run | thread | allocator | tag | scope, INT32_MAX) && tide__column_fits(op, UINT8_MAX) &&
           tide__column_kind(v[5], e) && tide__column_device(v[6], e) && tide__event_is_sane(e) &&
           e->id <= TIDE__MAX_EVENT;
}

#endif
