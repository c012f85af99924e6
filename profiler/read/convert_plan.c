// SPDX-License-Identifier: MIT
//
// The plan of a run, from one trace into another. Version 1 had no buffers, aliases or proofs: its plans are completed
// with what version 2 writes for a plan that has none of these.
//
//     version 1   one buffer for all that is planned; its lower bound is what is proved; nothing shares memory, so that
//                 the naive peak is the lower bound too
#include <inttypes.h>
#include <stdio.h>

#include "profiler/read/convert_runs.h"
#include "profiler/store/plan_rows.h"

// ---- version 1 ----

typedef struct copied_table {
    const char *table, *select, *insert;
} copied_table;

static const copied_table tables_1[] = {
    {"plan",
     "SELECT run_id, model, strategy, form, bytes, align_bytes, naive_bytes, lower_bound_bytes, proven, verified, "
     "time_ns, n_steps, n_tensors, n_pools FROM plan WHERE run_id = ?",
     "INSERT INTO plan(run_id, model, strategy, form, bytes, align_bytes, naive_bytes, lower_bound_bytes, "
     "naive_peak_bytes, proved_bytes, proven, verified, time_ns, n_steps, n_tensors, n_pools, n_buffers) "
     "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0)"},
    {"plan_tensor",
     "SELECT run_id, idx, name, size_bytes, aligned_bytes, align_bytes, begin_step, end_step, kind, device, role, "
     "persistent, node, port, value, pool, offset_bytes FROM plan_tensor WHERE run_id = ? ORDER BY run_id, idx",
     "INSERT INTO plan_tensor(run_id, idx, name, size_bytes, aligned_bytes, align_bytes, begin_step, end_step, kind, "
     "device, role, persistent, node, port, value, pool, offset_bytes, unrounded) "
     "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"},
    {"plan_pool",
     "SELECT run_id, pool, size_bytes, offset_bytes, members FROM plan_pool WHERE run_id = ? ORDER BY run_id, pool",
     "INSERT INTO plan_pool(run_id, pool, size_bytes, offset_bytes, members, buffer) VALUES(?, ?, ?, ?, ?, 0)"},
    {"plan_step", "SELECT run_id, step, name FROM plan_step WHERE run_id = ? ORDER BY run_id, step",
     "INSERT INTO plan_step(run_id, step, name) VALUES(?, ?, ?)"},
};

/// What each row has; a value of a wrong type is refused by the table it goes to.
static tide_status copy_row(tide__in *in, const copied_table *t, sqlite3_stmt *from, const tide__sql *out,
                            sqlite3_stmt *to, int64_t row_i, tide_error *err) {
    for (int i = 0; i < sqlite3_column_count(from); i++) sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
    const int rc = sqlite3_step(to);
    sqlite3_reset(to);
    sqlite3_clear_bindings(to);
    if (rc == SQLITE_DONE) return TIDE_OK;
    return (rc & 0xff) == SQLITE_CONSTRAINT ? tide__in_bad_row(in, t->table, row_i, err)
                                            : tide__sql_fail(out, rc, "write", err);
}

static tide_status copy_rows(tide__in *in, const tide__sql *out, const copied_table *t, int64_t run_id,
                             tide_error *err) {
    bool has;
    TIDE_TRY(tide__in_has_table(in, t->table, &has, err));
    if (!has) return tide__in_damaged(in, err, "table %s is missing or none of ours", t->table);
    sqlite3_stmt *from = NULL, *to = NULL;
    tide_status st = tide__sql_prepare(&in->sql, t->select, &from, err);
    if (st == TIDE_OK) st = tide__sql_prepare(out, t->insert, &to, err);
    if (st == TIDE_OK) sqlite3_bind_int64(from, 1, run_id);
    bool has_row = st == TIDE_OK;
    for (int64_t row_i = 0; st == TIDE_OK; row_i++) {
        st = tide__sql_step(&in->sql, from, &has_row, err);
        if (st != TIDE_OK || !has_row) break;
        st = copy_row(in, t, from, out, to, row_i, err);
    }
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    return st;
}

static tide_status run_for(const tide__sql *out, const char *text, int64_t run_id, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(out, text, &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    const tide_status st = tide__sql_run(out, stmt, err);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status add_buffer(tide__in *in, const tide__sql *out, int64_t run_id, tide_error *err) {
    TIDE_TRY(run_for(out,
                     "INSERT INTO plan_buffer(run_id, buffer, device, kind, bytes, align_bytes, naive_bytes, "
                     "naive_peak_bytes, lower_bound_bytes, proved_bytes, proof) "
                     "SELECT p.run_id, row_number() OVER () - 1, t.device, t.kind, p.bytes, max(t.align_bytes), "
                     "p.naive_bytes, p.lower_bound_bytes, p.lower_bound_bytes, p.lower_bound_bytes, 'live sum' "
                     "FROM plan p JOIN plan_tensor t ON t.run_id = p.run_id "
                     "WHERE p.run_id = ?1 AND NOT t.persistent AND t.size_bytes > 0 GROUP BY t.device, t.kind",
                     run_id, err));
    int64_t n;
    char query[96];
    snprintf(query, sizeof query, "SELECT count(*) FROM plan_buffer WHERE run_id = %" PRId64, run_id);
    TIDE_TRY(tide__sql_int(out, query, 0, &n, err));
    if (n > 1) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot convert '%s'", in->path);
        tide_error_where(err, "%s: table plan_tensor, run %" PRId64, in->path, run_id);
        tide_error_note(err, "version 1 planned one buffer, and the tensors are of %" PRId64 " kinds or devices", n);
        return st;
    }
    return run_for(out,
                   "UPDATE plan SET n_buffers = (SELECT count(*) FROM plan_buffer WHERE run_id = ?1), align_bytes = "
                   "coalesce((SELECT max(align_bytes) FROM plan_buffer WHERE run_id = ?1), 1) WHERE run_id = ?1",
                   run_id, err);
}

static tide_status convert_1(tide__in *in, const tide__sql *out, int64_t run_id, tide_error *err) {
    for (size_t i = 0; i < sizeof tables_1 / sizeof tables_1[0]; i++)
        TIDE_TRY(copy_rows(in, out, &tables_1[i], run_id, err));
    TIDE_TRY(add_buffer(in, out, run_id, err));
    // Whether it is a plan at all is found out by reading it back; errors name the file that it came from.
    const tide__sql read_back = {.db = out->db, .path = in->path};
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_rows_read(&read_back, run_id, &plan, err));
    tide_memory_plan_destroy(plan);
    return TIDE_OK;
}

// ---- every version ----

static tide_status convert_2(tide__in *in, const tide__sql *out, int64_t run_id, tide_error *err) {
    static const char *const tables[] = {"plan",      "plan_buffer", "plan_tensor",
                                         "plan_gap",  "plan_point",  "plan_point_size",
                                         "plan_pool", "plan_step",   "plan_recomputed"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        bool has;
        TIDE_TRY(tide__in_has_table(in, tables[i], &has, err));
        if (!has) return tide__in_damaged(in, err, "table %s is missing or none of ours", tables[i]);
    }
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_rows_read(&in->sql, run_id, &plan, err));
    const tide_status st = tide__plan_rows_write(out, run_id, plan, err);
    tide_memory_plan_destroy(plan);
    return st;
}

static tide_status forget(const tide__sql *out, int64_t run_id, tide_error *err) {
    static const char *const deletes[] = {
        "DELETE FROM plan WHERE run_id = ?",           "DELETE FROM plan_buffer WHERE run_id = ?",
        "DELETE FROM plan_tensor WHERE run_id = ?",    "DELETE FROM plan_gap WHERE run_id = ?",
        "DELETE FROM plan_point WHERE run_id = ?",     "DELETE FROM plan_point_size WHERE run_id = ?",
        "DELETE FROM plan_pool WHERE run_id = ?",      "DELETE FROM plan_step WHERE run_id = ?",
        "DELETE FROM plan_recomputed WHERE run_id = ?"};
    for (size_t i = 0; i < sizeof deletes / sizeof deletes[0]; i++) TIDE_TRY(run_for(out, deletes[i], run_id, err));
    return TIDE_OK;
}

tide_status tide__convert_plan(tide__in *in, tide__out *o, int64_t run_id, bool *has, tide_error *err) {
    const tide__sql *out;
    TIDE_TRY(tide__out_sql(o, &out, err));
    const tide_status st = in->version == 1 ? convert_1(in, out, run_id, err) : convert_2(in, out, run_id, err);
    *has = st == TIDE_OK;
    if (st == TIDE_ERR_NOT_FOUND && !in->lenient)
        return tide__in_damaged(in, err, "run %" PRId64 " has a plan, and table plan has none of it", run_id);
    if (st == TIDE_OK || !in->lenient || (st != TIDE_ERR_BAD_INPUT && st != TIDE_ERR_NOT_FOUND)) return st;
    tide_error_clear(err);
    in->n_lost_rows++;
    return forget(out, run_id, err);
}
