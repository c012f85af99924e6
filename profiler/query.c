// SPDX-License-Identifier: MIT
//
// Questions to a trace that concern runs, steps, plans and moments. See query.h; blocks and kinds are in
// query_blocks.c.
#include "profiler/query.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "profiler/plan_rows.h"
#include "profiler/trace_internal.h"

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

tide_status tide__trace_bad_row(const tide_trace *t, const char *table, int64_t id, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s'", t->path);
    tide_error_where(err, "%s: table %s, id %" PRId64, t->path, table, id);
    tide_error_note(err, "damaged: a value is outside its range");
    return st;
}

static bool i64_column(sqlite3_stmt *stmt, int i, int64_t *out) {
    uint64_t value;
    if (!tide__sql_u64(stmt, i, &value)) return false;
    *out = (int64_t)value;
    return true;
}

// ---- runs ----

static bool take_run(sqlite3_stmt *stmt, tide_trace_run *run) {
    if (!i64_column(stmt, 0, &run->id) || run->id == 0) return false;
    tide__trace_copy_text(run->model, sizeof run->model, tide__sql_text(stmt, 1));
    tide__trace_copy_text(run->source, sizeof run->source, tide__sql_text(stmt, 2));
    tide__trace_copy_text(run->mode, sizeof run->mode, tide__sql_text(stmt, 3));
    tide__trace_copy_text(run->strategy, sizeof run->strategy, tide__sql_text(stmt, 4));
    tide__trace_copy_text(run->device, sizeof run->device, tide__sql_text(stmt, 5));
    if (!tide__sql_u64(stmt, 6, &run->begin_ns) || !tide__sql_u64(stmt, 7, &run->end_ns) || run->end_ns < run->begin_ns)
        return false;
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
                               "FROM run r LEFT JOIN plan p ON p.run_id = r.id ORDER BY r.id",
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
        if (!take_run(stmt, &runs[n_runs++])) {
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
    if (!i64_column(stmt, 0, &out->first_event) || out->first_event < 1 || !i64_column(stmt, 1, &out->last_event) ||
        !tide__sql_u64(stmt, 2, &out->begin_ns) || !tide__sql_u64(stmt, 3, &out->end_ns) || out->end_ns < out->begin_ns)
        return tide__trace_bad_row(t, run_id == 0 ? "event" : "run", run_id, err);
    return TIDE_OK;
}

tide_status tide__trace_span(const tide_trace *t, int64_t run_id, tide__span *out, tide_error *err) {
    static const char whole[] =
        "SELECT 1, coalesce(max(id), 0), coalesce(min(t_ns), 0), coalesce(max(t_ns), 0) FROM event";
    static const char one[] = "SELECT first_event, last_event, begin_ns, end_ns FROM run WHERE id = ?";
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, run_id == 0 ? whole : one, &stmt, err));
    if (run_id != 0) sqlite3_bind_int64(stmt, 1, run_id);
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

// ---- moments ----

tide_status tide_trace_live_at(tide_trace *t, int kind, uint64_t t_ns, uint64_t *bytes, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql,
                               "SELECT coalesce(sum(requested_bytes), 0) FROM block WHERE alloc_ns <= ?1 "
                               "AND (free_ns IS NULL OR free_ns > ?1) AND (?2 < 0 OR kind = ?2)",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, t_ns > INT64_MAX ? INT64_MAX : (int64_t)t_ns);
    sqlite3_bind_int(stmt, 2, kind);
    bool has_row;
    tide_status st = tide__sql_step(&t->sql, stmt, &has_row, err);
    if (st == TIDE_OK && !tide__sql_u64(stmt, 0, bytes)) st = tide__trace_bad_row(t, "block", 0, err);
    sqlite3_finalize(stmt);
    return st;
}

// ---- steps ----

// The same choice as view `steps`, which people query: docs/trace-format.md. What follows the entering of a scope on
// its thread is its leaving, or it was not left: one pass, whatever the file holds.
static const char steps_query[] =
    "WITH told AS ("
    "  SELECT e.id, e.t_ns, e.enter, e.thread, s.step, s.name_id,"
    "         lead(e.enter) OVER turn AS next_enter, lead(e.t_ns) OVER turn AS next_ns"
    "  FROM scope_event e JOIN scope s ON s.id = e.scope_id"
    "  WHERE e.run_id = ?1 AND s.kind = 'operator' AND s.step IS NOT NULL"
    "  WINDOW turn AS (PARTITION BY e.thread, e.scope_id ORDER BY e.id)),"
    "began AS ("
    "  SELECT *, first_value(thread) OVER (ORDER BY id) AS first_thread FROM told WHERE enter = 1),"
    "placed AS ("
    "  SELECT *, row_number() OVER (PARTITION BY step ORDER BY thread <> first_thread, id) AS place FROM began)"
    "SELECT p.step, n.text, p.t_ns, CASE WHEN p.next_enter = 0 THEN p.next_ns ELSE ?2 END "
    "FROM placed p LEFT JOIN name n ON n.id = p.name_id WHERE place = 1 ORDER BY p.step";

static tide_status take_step(const tide_trace *t, sqlite3_stmt *stmt, tide_trace_step *step, tide_error *err) {
    if (!i64_column(stmt, 0, &step->index) || !tide__sql_u64(stmt, 2, &step->begin_ns) ||
        !tide__sql_u64(stmt, 3, &step->end_ns) || step->end_ns < step->begin_ns)
        return tide__trace_bad_row(t, "scope_event", step->index, err);
    step->name = tide_host_strdup(tide__sql_text(stmt, 1));
    return step->name != NULL ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the steps of '%s'", t->path);
}

tide_status tide_trace_steps(tide_trace *t, int64_t run_id, tide_trace_step **out, size_t *n, tide_error *err) {
    tide__span span;
    TIDE_TRY(tide__trace_span(t, run_id, &span, err));
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(&t->sql, steps_query, &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    sqlite3_bind_int64(stmt, 2, (int64_t)span.end_ns);
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
        st = take_step(t, stmt, &steps[n_steps++], err);
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
