// SPDX-License-Identifier: MIT
//
// Whether a finished trace holds what was recorded: its counts against those of the process that was recorded.
#include <inttypes.h>

#include "profiler/drain/drain_internal.h"

static tide_status compare(const tide__sql *s, uint64_t n_heard, uint64_t n_dropped, tide_error *err) {
    int64_t n_processes, different, n_events;
    TIDE_TRY(tide__sql_int(s, "SELECT count(*) FROM process", 0, &n_processes, err));
    if (n_processes != 1) return TIDE_OK;
    TIDE_TRY(tide__sql_int(s, "SELECT 1 FROM meta WHERE key = 'totals' AND value = 'different'", 0, &different, err));
    TIDE_TRY(tide__sql_int(s, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'n_events'", 0, &n_events, err));
    // A gap is an event of the file, and none that the observer counted.
    const bool counts_differ = n_dropped == 0 && (uint64_t)n_events != n_heard;
    if (different == 0 && !counts_differ) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "'%s' does not hold what was recorded", s->path);
    if (counts_differ)
        tide_error_note(err, "events: %" PRIu64 " heard, %" PRId64 " in the file", n_heard, n_events);
    else
        tide_error_note(err, "sums over its events are not those that were heard; see its view problems");
    return st;
}

tide_status tide__drain_check_file(const char *path, uint64_t n_heard, uint64_t n_dropped, tide_error *err) {
    tide__sql s = {.path = path};
    TIDE_TRY(tide__sql_open_to_read(&s, err));
    const tide_status st = compare(&s, n_heard, n_dropped, err);
    sqlite3_close(s.db);
    return st;
}

tide_status tide__drain_check(const tide__drain *d, tide_error *err) {
    return d->has_counted ? tide__drain_check_file(d->path, d->n_heard, d->n_dropped, err) : TIDE_OK;
}
