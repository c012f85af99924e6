// SPDX-License-Identifier: MIT
//
// Questions to a trace that concern runs, steps and plans. See query.h; blocks are in query_blocks.c, kinds and peaks
// in query_kinds.c.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/read/trace_internal.h"
#include "profiler/store/plan_rows.h"

void tide__trace_copy_text(char *out, size_t out_bytes, const char *text) {
    if (out_bytes == 0) return;
    size_t n = strlen(text);
    if (n >= out_bytes) {
        n = out_bytes - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--; // not inside a character of UTF-8
    }
    memcpy(out, text, n);
    out[n] = '\0';
}

static bool i64_column(sqlite3_stmt *stmt, int i, int64_t *out) {
    uint64_t value;
    if (!tide__sql_u64(stmt, i, &value)) return false;
    *out = (int64_t)value;
    return true;
}

// ---- runs ----

/// A run that has not ended ends with the trace.
static bool take_end(const tide_trace *t, sqlite3_stmt *stmt, int i, uint64_t begin_ns, uint64_t *end_ns) {
    if (sqlite3_column_type(stmt, i) != SQLITE_NULL) return tide__sql_u64(stmt, i, end_ns) && *end_ns >= begin_ns;
    *end_ns = (uint64_t)t->end_ns > begin_ns ? (uint64_t)t->end_ns : begin_ns;
    return true;
}

static bool take_run(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_run *run) {
    if (!i64_column(stmt, 0, &run->id) || run->id == 0) return false;
    tide__trace_copy_text(run->model, sizeof run->model, tide__sql_text(stmt, 1));
    tide__trace_copy_text(run->source, sizeof run->source, tide__sql_text(stmt, 2));
    tide__trace_copy_text(run->mode, sizeof run->mode, tide__sql_text(stmt, 3));
    tide__trace_copy_text(run->strategy, sizeof run->strategy, tide__sql_text(stmt, 4));
    tide__trace_copy_text(run->device, sizeof run->device, tide__sql_text(stmt, 5));
    if (!tide__sql_u64(stmt, 6, &run->begin_ns) || !take_end(t, stmt, 7, run->begin_ns, &run->end_ns)) return false;
    run->has_plan = sqlite3_column_type(stmt, 8) != SQLITE_NULL;
    return !run->has_plan ||
           (tide__sql_u64(stmt, 9, &run->plan_bytes) && tide__sql_u64(stmt, 10, &run->plan_naive_bytes) &&
            tide__sql_u64(stmt, 11, &run->plan_lower_bound_bytes));
}

tide_status tide_trace_runs(tide_trace *t, tide_trace_run **out, size_t *n, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT r.id, r.model, r.source, r.mode, r.strategy, r.device, r.begin_ns, r.end_ns, "
                               "p.run_id, r.plan_bytes, r.plan_naive_bytes, r.plan_lower_bound_bytes "
                               "FROM main.run r LEFT JOIN main.plan p ON p.run_id = r.id ORDER BY r.id",
                               &stmt, err));
    tide_trace_run *runs = NULL;
    size_t n_runs = 0, cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = tide_host_grow(&runs, &cap, n_runs + 1, sizeof *runs);
        if (st != TIDE_OK) {
            TIDE_FAIL(err, st, "no memory for the runs of '%s'", t->path);
            break;
        }
        memset(&runs[n_runs], 0, sizeof *runs);
        if (!take_run(t, stmt, &runs[n_runs++])) {
            st = tide__trace_bad_row(t, "run", sqlite3_column_int64(stmt, 0), err);
            break;
        }
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK) {
        tide_host_free(runs);
        return st;
    }
    *out = runs;
    *n = n_runs;
    return TIDE_OK;
}

static tide_status take_span(const tide_trace *t, sqlite3_stmt *stmt, int64_t run_id, tide__span *out,
                             tide_error *err) {
    bool has_row;
    TIDE_TRY(tide__sql_step(&t->sql, stmt, &has_row, err));
    if (!has_row) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no run %" PRId64, t->path, run_id);
    bool good = tide__sql_u64(stmt, 2, &out->begin_ns) && take_end(t, stmt, 3, out->begin_ns, &out->end_ns);
    out->first_event = t->last_event + 1; // announced, and nothing of it has arrived
    out->last_event = t->last_event;
    if (sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        good = good && i64_column(stmt, 0, &out->first_event) && out->first_event >= 1;
    if (sqlite3_column_type(stmt, 1) != SQLITE_NULL)
        good = good && i64_column(stmt, 1, &out->last_event) && out->last_event >= out->first_event - 1;
    if (!good) return tide__trace_bad_row(t, "run", run_id, err);
    // The row may be younger than what the trace shows: its events are not seen until the next refresh.
    if (out->last_event > t->last_event) out->last_event = t->last_event;
    if (out->first_event > t->last_event + 1) out->first_event = t->last_event + 1;
    if (out->first_event >= t->first_event) return TIDE_OK;
    out->first_event = t->first_event;
    if (out->last_event < t->first_event - 1) out->last_event = t->first_event - 1;
    if (out->begin_ns < (uint64_t)t->begin_ns) out->begin_ns = (uint64_t)t->begin_ns;
    if (out->end_ns < out->begin_ns) out->end_ns = out->begin_ns;
    return TIDE_OK;
}

tide_status tide__trace_span(tide_trace *t, int64_t run_id, tide__span *out, tide_error *err) {
    if (run_id == 0) {
        *out = (tide__span){.first_event = t->first_event,
                            .last_event = t->last_event,
                            .begin_ns = (uint64_t)t->begin_ns,
                            .end_ns = (uint64_t)t->end_ns};
        return TIDE_OK;
    }
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, "SELECT first_event, last_event, begin_ns, end_ns FROM main.run WHERE id = ?",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    const tide_status st = take_span(t, stmt, run_id, out, err);
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide_trace_plan(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    return tide__plan_rows_read(&t->sql, run_id, out, err);
}

tide_status tide__trace_plan_or_null(tide_trace *t, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    tide_error own = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_plan(t, run_id, out, &own);
    if (st == TIDE_ERR_NOT_FOUND) {
        *out = NULL;
        return TIDE_OK;
    }
    if (st != TIDE_OK && err != NULL) *err = own;
    return st;
}

// ---- steps ----

static tide_status take_step(const tide_trace *t, sqlite3_stmt *stmt, uint64_t end_ns, tide_trace_step *step,
                             tide_error *err) {
    if (!i64_column(stmt, 0, &step->index) || !tide__sql_u64(stmt, 2, &step->begin_ns))
        return tide__trace_bad_row(t, "step", step->index, err);
    if (sqlite3_column_type(stmt, 3) == SQLITE_NULL) {
        step->end_ns = end_ns > step->begin_ns ? end_ns : step->begin_ns;
    } else if (!tide__sql_u64(stmt, 3, &step->end_ns) || step->end_ns < step->begin_ns) {
        return tide__trace_bad_row(t, "step", step->index, err);
    }
    step->name = tide_host_strdup(tide__trace_text(t, sqlite3_column_int64(stmt, 1)));
    return step->name != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the steps of '%s'", t->path);
}

tide_status tide_trace_steps(tide_trace *t, int64_t run_id, tide_trace_step **out, size_t *n, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    TIDE_TRY(tide__trace_need_tables(t, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(
        &t->sql, "SELECT step, name_id, begin_ns, end_ns FROM step WHERE run_id = ? ORDER BY step", &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    tide_trace_step *steps = NULL;
    size_t n_steps = 0, cap = 0;
    tide_status st;
    bool has_row;
    while ((st = tide__sql_step(&t->sql, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = tide_host_grow(&steps, &cap, n_steps + 1, sizeof *steps);
        if (st != TIDE_OK) {
            TIDE_FAIL(err, st, "no memory for the steps of '%s'", t->path);
            break;
        }
        steps[n_steps] = (tide_trace_step){0};
        st = take_step(t, stmt, span.end_ns, &steps[n_steps++], err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    if (st != TIDE_OK) {
        tide_trace_steps_free(steps, n_steps);
        return st;
    }
    *out = steps;
    *n = n_steps;
    return TIDE_OK;
}

void tide_trace_steps_free(tide_trace_step *steps, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(steps[i].name);
    tide_host_free(steps);
}
