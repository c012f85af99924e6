// SPDX-License-Identifier: MIT
//
// A memory plan as rows. See plan_rows.h.
#include "profiler/plan_rows.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"

static tide_status too_large(const tide__sql *s, const char *what, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "cannot store the plan in '%s': %s passes 2^63 - 1", s->path, what);
}

// ---- in ----

static tide_status write_head(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    tide__sql_bind_text(stmt, 2, p->lifetimes.model != NULL ? p->lifetimes.model : "");
    tide__sql_bind_text(stmt, 3, p->strategy != NULL ? p->strategy : "");
    tide__sql_bind_text(stmt, 4, p->form == TIDE_PLAN_POOLS ? "pools" : "offsets");
    const uint64_t sizes[] = {p->bytes, p->align_bytes, p->naive_bytes, p->lower_bound_bytes};
    bool fits = true;
    for (int i = 0; i < 4; i++) fits = tide__sql_bind_u64(stmt, 5 + i, sizes[i]) && fits;
    sqlite3_bind_int(stmt, 9, p->proven);
    sqlite3_bind_int(stmt, 10, p->verified);
    fits = tide__sql_bind_u64(stmt, 11, p->time_ns) && fits;
    sqlite3_bind_int64(stmt, 12, p->lifetimes.n_steps);
    sqlite3_bind_int64(stmt, 13, (int64_t)p->lifetimes.n);
    sqlite3_bind_int64(stmt, 14, (int64_t)p->n_pools);
    const tide_status st = fits ? tide__sql_run(s, stmt, err) : too_large(s, "a size of the buffer", err);
    sqlite3_finalize(stmt);
    return st;
}

static void bind_index(sqlite3_stmt *stmt, int i, uint32_t index) {
    if (index != TIDE_NO_INDEX) sqlite3_bind_int64(stmt, i, index);
}

static tide_status write_tensor(const tide__sql *s, sqlite3_stmt *stmt, int64_t run_id, const tide_memory_plan *p,
                                size_t tensor_i, tide_error *err) {
    const tide_lifetime *item = &p->lifetimes.items[tensor_i];
    char device[32];
    sqlite3_bind_int64(stmt, 1, run_id);
    sqlite3_bind_int64(stmt, 2, (int64_t)tensor_i);
    tide__sql_bind_text(stmt, 3, item->name);
    bool fits = tide__sql_bind_u64(stmt, 4, item->size_bytes);
    fits = tide__sql_bind_u64(stmt, 5, tide_lifetime_aligned_bytes(item)) && fits;
    fits = tide__sql_bind_u64(stmt, 6, item->align_bytes) && fits;
    sqlite3_bind_int64(stmt, 7, item->begin_step);
    sqlite3_bind_int64(stmt, 8, item->end_step);
    sqlite3_bind_int(stmt, 9, (int)item->kind);
    tide__sql_bind_text(stmt, 10, tide_device_format(item->device, device, sizeof device));
    tide__sql_bind_text(stmt, 11, tide_role_name(item->role));
    sqlite3_bind_int(stmt, 12, item->persistent);
    bind_index(stmt, 13, item->node);
    bind_index(stmt, 14, item->port);
    bind_index(stmt, 15, item->value);
    if (p->pools[tensor_i] != TIDE_NO_POOL) sqlite3_bind_int(stmt, 16, p->pools[tensor_i]);
    if (p->offsets[tensor_i] != TIDE_NO_OFFSET) fits = tide__sql_bind_u64(stmt, 17, p->offsets[tensor_i]) && fits;
    return fits ? tide__sql_run(s, stmt, err) : too_large(s, item->name, err);
}

static tide_status write_tensors(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_tensor VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                               &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < p->lifetimes.n; i++) st = write_tensor(s, stmt, run_id, p, i, err);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status write_pools(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_pool VALUES(?, ?, ?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < p->n_pools; i++) {
        const tide_plan_pool *pool = &p->pool_list[i];
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        bool fits = tide__sql_bind_u64(stmt, 3, pool->size_bytes);
        fits = tide__sql_bind_u64(stmt, 4, pool->offset_bytes) && fits;
        sqlite3_bind_int64(stmt, 5, (int64_t)pool->n_members);
        st = fits ? tide__sql_run(s, stmt, err) : too_large(s, "a pool", err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status write_steps(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_step VALUES(?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < p->lifetimes.n_step_names; i++) {
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        tide__sql_bind_text(stmt, 3, p->lifetimes.step_names[i]);
        st = tide__sql_run(s, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__plan_rows_write(const tide__sql *s, int64_t run_id, const tide_memory_plan *plan, tide_error *err) {
    TIDE_TRY(write_head(s, run_id, plan, err));
    TIDE_TRY(write_tensors(s, run_id, plan, err));
    TIDE_TRY(write_pools(s, run_id, plan, err));
    return write_steps(s, run_id, plan, err);
}

// ---- out ----

/// Rows of one run in order of their second column, handed to `take`; it finds its place by the row number.
typedef tide_status (*take_row)(const tide__sql *s, sqlite3_stmt *stmt, size_t row_i, tide_memory_plan *p,
                                tide_error *err);

static tide_status bad_row(const tide__sql *s, const char *table, size_t row_i, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read the plan in '%s'", s->path);
    tide_error_where(err, "%s: table %s, row %zu", s->path, table, row_i);
    tide_error_note(err, "damaged: the row makes no part of a plan");
    return st;
}

static tide_status read_rows(const tide__sql *s, const char *query, int64_t run_id, take_row take, tide_memory_plan *p,
                             tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, query, &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    size_t n = 0;
    bool has_row;
    tide_status st;
    while ((st = tide__sql_step(s, stmt, &has_row, err)) == TIDE_OK && has_row) {
        st = take(s, stmt, n++, p, err);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Rows that are there: amounts of memory are asked by these and not by what a row claims.
typedef struct plan_head {
    uint64_t n_tensors, n_pools, n_step_names;
} plan_head;

static tide_status take_head(const tide__sql *s, sqlite3_stmt *stmt, int64_t run_id, tide_memory_plan *p,
                             plan_head *head, tide_error *err) {
    bool has_row;
    TIDE_TRY(tide__sql_step(s, stmt, &has_row, err));
    if (!has_row) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "run %" PRId64 " in '%s' has no plan", run_id, s->path);
    uint64_t n_steps, proven, verified, n_tensors, n_pools;
    const bool good = tide__sql_u64(stmt, 3, &p->bytes) && tide__sql_u64(stmt, 4, &p->align_bytes) &&
                      tide__sql_u64(stmt, 5, &p->naive_bytes) && tide__sql_u64(stmt, 6, &p->lower_bound_bytes) &&
                      tide__sql_u64(stmt, 7, &proven) && tide__sql_u64(stmt, 8, &verified) &&
                      tide__sql_u64(stmt, 9, &p->time_ns) && tide__sql_u64(stmt, 10, &n_steps) &&
                      tide__sql_u64(stmt, 11, &n_tensors) && tide__sql_u64(stmt, 12, &n_pools) &&
                      tide__sql_u64(stmt, 13, &head->n_tensors) && tide__sql_u64(stmt, 14, &head->n_pools) &&
                      tide__sql_u64(stmt, 15, &head->n_step_names);
    const char *form = tide__sql_text(stmt, 2);
    const bool is_pools = strcmp(form, "pools") == 0;
    if (!good || (!is_pools && strcmp(form, "offsets") != 0)) return bad_row(s, "plan", 0, err);
    if (n_tensors != head->n_tensors || n_pools != head->n_pools) {
        const tide_status st = bad_row(s, "plan", 0, err);
        tide_error_note(
            err, "damaged: %" PRIu64 " tensors and %" PRIu64 " pools recorded, %" PRIu64 " and %" PRIu64 " found",
            n_tensors, n_pools, head->n_tensors, head->n_pools);
        return st;
    }
    p->form = is_pools ? TIDE_PLAN_POOLS : TIDE_PLAN_OFFSETS;
    p->proven = proven != 0;
    p->verified = verified != 0;
    p->lifetimes.n_steps = (int64_t)n_steps;
    p->lifetimes.model = tide_host_strdup(tide__sql_text(stmt, 0));
    p->strategy = tide_host_strdup(tide__sql_text(stmt, 1));
    if (p->lifetimes.model == NULL || p->strategy == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    return TIDE_OK;
}

static tide_status read_head(const tide__sql *s, int64_t run_id, tide_memory_plan *p, plan_head *head,
                             tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s,
                               "SELECT model, strategy, form, bytes, align_bytes, naive_bytes, lower_bound_bytes, "
                               "proven, verified, time_ns, n_steps, n_tensors, n_pools, "
                               "(SELECT count(*) FROM plan_tensor t WHERE t.run_id = plan.run_id), "
                               "(SELECT count(*) FROM plan_pool q WHERE q.run_id = plan.run_id), "
                               "(SELECT count(*) FROM plan_step s WHERE s.run_id = plan.run_id) "
                               "FROM plan WHERE run_id = ?",
                               &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    const tide_status st = take_head(s, stmt, run_id, p, head, err);
    sqlite3_finalize(stmt);
    return st;
}

static bool index_column(sqlite3_stmt *stmt, int i, uint32_t *out) {
    *out = TIDE_NO_INDEX;
    if (sqlite3_column_type(stmt, i) == SQLITE_NULL) return true;
    uint64_t value;
    if (!tide__sql_u64(stmt, i, &value) || value >= TIDE_NO_INDEX) return false;
    *out = (uint32_t)value;
    return true;
}

/// The tensor's place, when it has one: NULL is none; what is there must lie inside the buffer and the pools.
static bool place_columns(sqlite3_stmt *stmt, size_t i, tide_memory_plan *p) {
    p->pools[i] = TIDE_NO_POOL;
    p->offsets[i] = TIDE_NO_OFFSET;
    uint64_t value;
    if (sqlite3_column_type(stmt, 14) != SQLITE_NULL) {
        if (!tide__sql_u64(stmt, 14, &value) || value >= p->n_pools) return false;
        p->pools[i] = (int32_t)value;
    }
    if (sqlite3_column_type(stmt, 15) != SQLITE_NULL) {
        uint64_t end;
        if (!tide__sql_u64(stmt, 15, &value)) return false;
        if (!tide_add_u64(value, tide_lifetime_aligned_bytes(&p->lifetimes.items[i]), &end) || end > p->bytes)
            return false;
        p->offsets[i] = value;
    }
    return true;
}

static tide_status take_tensor(const tide__sql *s, sqlite3_stmt *stmt, size_t row_i, tide_memory_plan *p,
                               tide_error *err) {
    static const char table[] = "plan_tensor";
    // The name is copied by tide_lifetimes_add; until then SQLite lends it.
    char *name = tide_host_strdup(tide__sql_text(stmt, 1));
    if (name == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    tide_lifetime item = {.name = name};
    uint64_t idx, begin_step, end_step, kind, persistent, aligned_bytes;
    const bool good = tide__sql_u64(stmt, 0, &idx) && idx == row_i && tide__sql_u64(stmt, 2, &item.size_bytes) &&
                      tide__sql_u64(stmt, 3, &item.align_bytes) && tide__sql_u64(stmt, 4, &begin_step) &&
                      tide__sql_u64(stmt, 5, &end_step) && tide__sql_u64(stmt, 6, &kind) && kind < TIDE_N_KINDS &&
                      tide_device_parse(tide__sql_text(stmt, 7), &item.device, NULL) == TIDE_OK &&
                      tide_role_parse(tide__sql_text(stmt, 8), &item.role, NULL) == TIDE_OK &&
                      tide__sql_u64(stmt, 9, &persistent) && index_column(stmt, 10, &item.node) &&
                      index_column(stmt, 11, &item.port) && index_column(stmt, 12, &item.value) &&
                      tide__sql_u64(stmt, 13, &aligned_bytes) && end_step <= (uint64_t)p->lifetimes.n_steps;
    tide_status st = good ? TIDE_OK : bad_row(s, table, row_i, err);
    if (st == TIDE_OK) {
        item.begin_step = (int64_t)begin_step;
        item.end_step = (int64_t)end_step;
        item.kind = (tide_memory_kind)kind;
        item.persistent = persistent != 0;
        st = tide_lifetimes_add(&p->lifetimes, &item, err);
        if (st == TIDE_OK && tide_lifetime_aligned_bytes(&p->lifetimes.items[row_i]) != aligned_bytes)
            st = TIDE_ERR_INVALID;
        if (st != TIDE_OK && st != TIDE_ERR_NOMEM) st = bad_row(s, table, row_i, err);
    }
    tide_host_free(name);
    if (st == TIDE_OK && !place_columns(stmt, row_i, p)) st = bad_row(s, table, row_i, err);
    return st;
}

static tide_status take_pool(const tide__sql *s, sqlite3_stmt *stmt, size_t row_i, tide_memory_plan *p,
                             tide_error *err) {
    uint64_t pool, members;
    tide_plan_pool row;
    if (!tide__sql_u64(stmt, 0, &pool) || pool != row_i || row_i >= p->n_pools ||
        !tide__sql_u64(stmt, 1, &row.size_bytes) || !tide__sql_u64(stmt, 2, &row.offset_bytes) ||
        !tide__sql_u64(stmt, 3, &members) || members > p->lifetimes.n)
        return bad_row(s, "plan_pool", row_i, err);
    row.n_members = (size_t)members;
    p->pool_list[row_i] = row;
    return TIDE_OK;
}

static tide_status take_step(const tide__sql *s, sqlite3_stmt *stmt, size_t row_i, tide_memory_plan *p,
                             tide_error *err) {
    uint64_t step;
    if (!tide__sql_u64(stmt, 0, &step) || step != row_i || step >= (uint64_t)p->lifetimes.n_steps)
        return bad_row(s, "plan_step", row_i, err);
    char *name = tide_host_strdup(tide__sql_text(stmt, 1));
    if (name == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    p->lifetimes.step_names[row_i] = name;
    p->lifetimes.n_step_names = row_i + 1;
    return TIDE_OK;
}

static tide_status read_parts(const tide__sql *s, int64_t run_id, tide_memory_plan *p, const plan_head *head,
                              tide_error *err) {
    if (head->n_pools > INT32_MAX) return bad_row(s, "plan_pool", 0, err);
    p->n_pools = (size_t)head->n_pools;
    p->offsets = tide_host_calloc((size_t)head->n_tensors, sizeof *p->offsets);
    p->pools = tide_host_calloc((size_t)head->n_tensors, sizeof *p->pools);
    if (p->offsets == NULL || p->pools == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    TIDE_TRY(
        read_rows(s,
                  "SELECT idx, name, size_bytes, align_bytes, begin_step, end_step, kind, device, role, persistent, "
                  "node, port, value, aligned_bytes, pool, offset_bytes FROM plan_tensor WHERE run_id = ? "
                  "ORDER BY idx",
                  run_id, take_tensor, p, err));
    if (p->n_pools > 0) {
        p->pool_list = tide_host_calloc(p->n_pools, sizeof *p->pool_list);
        if (p->pool_list == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    }
    TIDE_TRY(read_rows(s,
                       "SELECT pool, size_bytes, offset_bytes, members FROM plan_pool WHERE run_id = ? ORDER BY pool",
                       run_id, take_pool, p, err));
    if (head->n_step_names == 0) return TIDE_OK;
    if (head->n_step_names != (uint64_t)p->lifetimes.n_steps) return bad_row(s, "plan_step", 0, err);
    p->lifetimes.step_names = tide_host_calloc((size_t)head->n_step_names, sizeof *p->lifetimes.step_names);
    if (p->lifetimes.step_names == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    return read_rows(s, "SELECT step, name FROM plan_step WHERE run_id = ? ORDER BY step", run_id, take_step, p, err);
}

/// A plan that says it was verified must be: whoever runs it relies on that.
static tide_status check_verified(const tide__sql *s, const tide_memory_plan *p, tide_error *err) {
    if (!p->verified) return TIDE_OK;
    tide_error own = TIDE_ERROR_INIT;
    tide_status st = tide_plan_verify(p, NULL, &own);
    if (st == TIDE_ERR_VERIFY) {
        st = bad_row(s, "plan", 0, err);
        tide_error_note(err, "damaged: marked as verified, but %s", own.msg);
    } else if (st != TIDE_OK && err != NULL) {
        *err = own;
    }
    return st;
}

tide_status tide__plan_rows_read(const tide__sql *s, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *p = tide_host_calloc(1, sizeof *p);
    if (p == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    plan_head head;
    tide_status st = read_head(s, run_id, p, &head, err);
    if (st == TIDE_OK) st = read_parts(s, run_id, p, &head, err);
    if (st == TIDE_OK) st = check_verified(s, p, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(p);
        return st;
    }
    *out = p;
    return TIDE_OK;
}
