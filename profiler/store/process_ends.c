// SPDX-License-Identifier: MIT
//
// Ends of processes as rows of table meta. See process_ends.h.
#include "profiler/store/process_ends.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/event.h"

// ---- the list ----

/// Where the end of that process is, or belongs.
static size_t place_of(const tide__process_ends *ends, int64_t process_id) {
    size_t lo = 0, hi = ends->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (ends->items[mid].process_id < process_id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

const tide__process_end *tide__process_ends_find(const tide__process_ends *ends, int64_t process_id) {
    const size_t i = place_of(ends, process_id);
    return i < ends->n && ends->items[i].process_id == process_id ? &ends->items[i] : NULL;
}

tide_status tide__process_ends_put(tide__process_ends *ends, const tide__process_end *end) {
    const size_t i = place_of(ends, end->process_id);
    if (i < ends->n && ends->items[i].process_id == end->process_id) {
        ends->items[i] = *end;
        return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&ends->items, &ends->cap, ends->n + 1, sizeof *ends->items));
    memmove(&ends->items[i + 1], &ends->items[i], (ends->n - i) * sizeof *ends->items);
    ends->items[i] = *end;
    ends->n++;
    return TIDE_OK;
}

void tide__process_ends_deinit(tide__process_ends *ends) {
    tide_host_free(ends->items);
    *ends = (tide__process_ends){0};
}

// ---- rows ----

/// A number from `lo` to `hi` at *at, which then stands behind it.
static bool take_number(const char **at, int64_t lo, int64_t hi, int64_t *out) {
    if (**at < '0' || **at > '9') return false;
    char *end;
    errno = 0;
    const long long number = strtoll(*at, &end, 10);
    *at = end;
    *out = number;
    return errno == 0 && number >= lo && number <= hi;
}

bool tide__process_end_parse(const char *key, const char *value, tide__process_end *out) {
    const size_t n = sizeof TIDE__PROCESS_END_KEY - 1;
    if (strncmp(key, TIDE__PROCESS_END_KEY, n) != 0) return false;
    key += n;
    const int64_t max_process = INT64_C(1) << (63 - TIDE__BLOCK_ID_BITS);
    if (!take_number(&key, 1, max_process, &out->process_id) || *key != '\0') return false;
    if (!take_number(&value, 0, TIDE__MAX_EVENT, &out->event) || *value++ != ' ') return false;
    if (!take_number(&value, 0, INT64_MAX, &out->t_ns) || *value++ != ' ') return false;
    if (!take_number(&value, 0, TIDE__MAX_EVENT, &out->n_blocks) || *value++ != ' ') return false;
    return take_number(&value, 0, INT64_MAX, &out->bytes) && *value == '\0';
}

static tide_status take_row(tide__process_ends *ends, const tide__sql *s, sqlite3_stmt *row, tide_error *err) {
    tide__process_end end;
    const char *key = tide__sql_text(row, 0);
    if (!tide__process_end_parse(key, tide__sql_text(row, 1), &end)) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", s->path);
        tide_error_where(err, "%s: table meta", s->path);
        tide_error_note(err, "damaged: '%.40s' says no event and time", key);
        return st;
    }
    return tide__process_ends_put(ends, &end) == TIDE_OK ? TIDE_OK
                                                         : TIDE_NO_MEMORY(err, "for the processes of '%s'", s->path);
}

tide_status tide__process_ends_load(tide__process_ends *ends, const tide__sql *s, tide_error *err) {
    sqlite3_stmt *stmt;
    ends->n = 0;
    TIDE_TRY(tide__sql_prepare(
        s, "SELECT key, value FROM main.meta WHERE key >= '" TIDE__PROCESS_END_KEY "' AND key < 'process_end/'", &stmt,
        err));
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(s, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = take_row(ends, s, stmt, err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__process_end_write(const tide__sql *s, const tide__process_end *end, tide_error *err) {
    sqlite3_stmt *stmt;
    char key[40], value[96];
    snprintf(key, sizeof key, TIDE__PROCESS_END_KEY "%" PRId64, end->process_id);
    snprintf(value, sizeof value, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, end->event, end->t_ns, end->n_blocks,
             end->bytes);
    TIDE_TRY(tide__sql_prepare(s,
                               "INSERT INTO main.meta(key, value) VALUES(?, ?) "
                               "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                               &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    tide__sql_bind_text(stmt, 2, value);
    const tide_status st = tide__sql_run(s, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}
