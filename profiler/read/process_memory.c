// SPDX-License-Identifier: MIT
//
// What the system counted of processes while they recorded. See devices.h.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/devices.h"
#include "profiler/read/trace_internal.h"

tide_status tide_trace_program(const tide_trace *t, uint32_t process, char *buf, size_t bytes, tide_error *err) {
    sqlite3_stmt *stmt;
    buf[0] = '\0';
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT command FROM main.process WHERE id = ?", &stmt, err));
    sqlite3_bind_int64(stmt, 1, (int64_t)process + 1);
    bool has_row;
    const tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && has_row) {
        const char *word = tide__sql_text(stmt, 0);
        size_t n = strcspn(word, " ");
        for (size_t i = n; i > 0; i--)
            if (word[i - 1] == '/') {
                word += i;
                n -= i;
                break;
            }
        snprintf(buf, bytes, "%.*s", (int)(n < bytes ? n : bytes - 1), word);
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_has_process_memory(tide_trace *t, bool *has, tide_error *err) {
    int64_t n = 0;
    *has = false;
    TIDE_TRY(tide__sql_int(&t->sql, "SELECT 1 FROM main.process_memory LIMIT 1", 0, &n, err));
    *has = n != 0;
    return TIDE_OK;
}

static bool take(sqlite3_stmt *row, tide_trace_process_sample *s) {
    int64_t process, t_ns, n[6];
    bool good = tide__sql_number(row, 0, 1, INT32_MAX, &process) && tide__sql_number(row, 1, 0, INT64_MAX, &t_ns);
    for (int i = 0; i < 6; i++) good = tide__sql_int_or(row, 2 + i, 0, INT64_MAX, -1, &n[i]) && good;
    for (int i = 0; i < 5; i++) good = good && n[i] >= 0;
    *s = (tide_trace_process_sample){.process = (uint32_t)process - 1,
                                     .t_ns = (uint64_t)t_ns,
                                     .resident_bytes = (uint64_t)n[0],
                                     .peak_bytes = (uint64_t)n[1],
                                     .swapped_bytes = (uint64_t)n[2],
                                     .minor_faults = (uint64_t)n[3],
                                     .major_faults = (uint64_t)n[4],
                                     .share_bytes = n[5] >= 0 ? (uint64_t)n[5] : TIDE_UNKNOWN_BYTES};
    return good;
}

static tide_status read_all(tide_trace *t, sqlite3_stmt *stmt, tide_trace_process_sample **out, size_t *n,
                            tide_error *err) {
    size_t cap = 0;
    bool has_row;
    while (true) {
        TIDE_TRY(tide__sql_step(&t->sql, stmt, &has_row, err));
        if (!has_row) return TIDE_OK;
        TIDE_TRY(TIDE_GROW(out, &cap, *n + 1, err, "for the processes of '%s'", t->path));
        if (!take(stmt, &(*out)[*n]))
            return tide__trace_bad_row(t, "process_memory", sqlite3_column_int64(stmt, 0), err);
        ++*n;
    }
}

tide_status tide_trace_process_samples(tide_trace *t, size_t n_columns, tide_trace_process_sample **out, size_t *n,
                                       tide_error *err) {
    *out = NULL;
    *n = 0;
    bool has;
    TIDE_TRY(tide_trace_has_process_memory(t, &has, err));
    if (!has) return TIDE_OK;
    sqlite3_stmt *stmt;
    // Columns of a row with max() are those of the row that has it (https://www.sqlite.org/lang_select.html#bareagg).
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT process_id, t_ns, max(resident_bytes), peak_bytes, swapped_bytes, minor_faults, "
                               "major_faults, share_bytes FROM main.process_memory "
                               "GROUP BY process_id, CAST((t_ns - ?1) * ?2 AS INTEGER) ORDER BY process_id, t_ns",
                               &stmt, err));
    const double len = (double)(t->end_ns - t->begin_ns) + 1;
    sqlite3_bind_int64(stmt, 1, t->begin_ns);
    sqlite3_bind_double(stmt, 2, (double)n_columns / len);
    const tide_status st = read_all(t, stmt, out, n, err);
    sqlite3_finalize(stmt);
    if (st == TIDE_OK) return st;
    tide_host_free(*out);
    *out = NULL;
    *n = 0;
    return st;
}
