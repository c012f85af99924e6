// SPDX-License-Identifier: MIT
//
// What is in the file against what the producers heard: two ways to the same sums. See finish_internal.h.
#include <inttypes.h>
#include <stdio.h>

#include "profiler/store/cursor.h"
#include "profiler/store/finish_internal.h"

typedef struct sums {
    int64_t n_allocs, n_frees, requested_bytes, freed_bytes;
} sums;

/// Blocks that a discard ended were freed by nobody.
static bool are_equal(const sums *heard, const sums *kept, bool discarded) {
    return heard->n_allocs == kept->n_allocs && heard->requested_bytes == kept->requested_bytes &&
           (discarded || (heard->n_frees == kept->n_frees && heard->freed_bytes == kept->freed_bytes));
}

static void say(char *what, size_t what_bytes, int64_t device, int64_t kind, const sums *heard, const sums *kept) {
    snprintf(what, what_bytes,
             "%s: device %" PRId64 ", kind %" PRId64 ": %" PRId64 " of %" PRId64 " allocs, %" PRId64 " of %" PRId64
             " frees",
             tide__problem_text(TIDE__PROBLEM_TOTALS), device, kind, kept->n_allocs, heard->n_allocs, kept->n_frees,
             heard->n_frees);
}

/// The sums of one series; none when nothing of it is in the file.
static sums kept_of(const tide__replay *r, int64_t device, int64_t kind) {
    for (size_t i = 1; i < r->n_series; i++) {
        const tide__series *s = &r->series[i];
        if (s->device == device && s->kind == kind)
            return (sums){s->n_allocs, s->n_frees, s->requested_bytes, s->freed_bytes};
    }
    return (sums){0};
}

tide_status tide__finish_compare_totals(const tide__sql *s, const tide__replay *r, bool discarded, bool *equal,
                                        char *what, size_t what_bytes, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s,
                               "SELECT device, kind, sum(n_allocs), sum(n_frees), sum(requested_bytes), "
                               "sum(freed_bytes) FROM main.total GROUP BY device, kind",
                               &stmt, err));
    int64_t n_heard = 0, n_kept = 0;
    tide_status st;
    bool has_row;
    *equal = true;
    while ((st = tide__sql_step(s, stmt, &has_row, err)) == TIDE_OK && has_row) {
        const int64_t device = sqlite3_column_int64(stmt, 0), kind = sqlite3_column_int64(stmt, 1);
        const sums heard = {sqlite3_column_int64(stmt, 2), sqlite3_column_int64(stmt, 3), sqlite3_column_int64(stmt, 4),
                            sqlite3_column_int64(stmt, 5)};
        const sums kept = kept_of(r, device, kind);
        n_heard += heard.n_allocs;
        if (are_equal(&heard, &kept, discarded)) continue;
        *equal = false;
        say(what, what_bytes, device, kind, &heard, &kept);
        break;
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK || !*equal) return st;
    for (size_t i = 1; i < r->n_series; i++) n_kept += r->series[i].n_allocs;
    if (n_kept == n_heard) return TIDE_OK;
    *equal = false; // of a device or kind that nobody told of
    snprintf(what, what_bytes, "%s: %" PRId64 " of %" PRId64 " allocs", tide__problem_text(TIDE__PROBLEM_TOTALS),
             n_kept, n_heard);
    return TIDE_OK;
}
