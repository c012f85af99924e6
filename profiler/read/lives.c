// SPDX-License-Identifier: MIT
//
// Lives of blocks and peaks between events. See lives.h.
#include "profiler/lives.h"

#include <inttypes.h>

#include "profiler/read/moments_internal.h"

/// Of two blocks with one number the later one is kept under the number of its event, negative.
tide_status tide_trace_free_event(tide_trace *t, uint64_t block_id, uint64_t alloc_event, uint64_t *free_event,
                                  tide_error *err) {
    sqlite3_stmt *stmt;
    bool has_row;
    TIDE_TRY(tide__trace_need_tables(t, err));
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT free_event FROM block WHERE id IN (?1, -?2) AND alloc_event = ?2",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, (int64_t)block_id);
    sqlite3_bind_int64(stmt, 2, (int64_t)alloc_event);
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && !has_row)
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no block %" PRIu64 " of event %" PRIu64, t->path, block_id,
                       alloc_event);
    if (st == TIDE_OK) {
        const int64_t event = sqlite3_column_int64(stmt, 0); // NULL: 0
        *free_event = event > 0 && event <= t->last_event ? (uint64_t)event : UINT64_MAX;
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_peak_of_events(tide_trace *t, int kind, const char *device, uint64_t first, uint64_t last,
                                      uint64_t *bytes, uint64_t *event, tide_error *err) {
    tide__curve *c;
    int64_t high, high_event;
    if (last < first)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "events %" PRIu64 " to %" PRIu64 ": there are none", first, last);
    if (last > (uint64_t)t->last_event)
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no event %" PRIu64, t->path, last);
    TIDE_TRY(tide__trace_curve(t, kind, device, &c, err));
    TIDE_TRY(tide__curve_peak(t, c, (int64_t)first + 1, (int64_t)last, &high, &high_event, NULL, err));
    *bytes = (uint64_t)high;
    if (event != NULL) *event = (uint64_t)high_event;
    return TIDE_OK;
}
