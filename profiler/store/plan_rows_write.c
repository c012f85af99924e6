// SPDX-License-Identifier: MIT
//
// A memory plan into rows. See plan_rows.h.
#include <inttypes.h>
#include <string.h>

#include "planner/planner.h"
#include "profiler/store/plan_rows.h"

static tide_status too_large(const tide__sql *s, const char *what, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "cannot store the plan in '%s': %s passes 2^63 - 1", s->path, what);
}

// ---- the plan and its buffers ----

static tide_status write_head(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(s, "INSERT INTO plan VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &stmt, err));
    sqlite3_bind_int64(stmt, 1, run_id);
    tide__sql_bind_text(stmt, 2, p->lifetimes.model != NULL ? p->lifetimes.model : "");
    tide__sql_bind_text(stmt, 3, p->strategy != NULL ? p->strategy : "");
    tide__sql_bind_text(stmt, 4, p->form == TIDE_PLAN_POOLS ? "pools" : "offsets");
    const uint64_t sizes[] = {p->bytes,       p->align_bytes, p->naive_bytes, p->lower_bound_bytes, p->naive_peak_bytes,
                              p->proved_bytes};
    bool fits = true;
    for (int i = 0; i < 6; i++) fits = tide__sql_bind_u64(stmt, 5 + i, sizes[i]) && fits;
    sqlite3_bind_int(stmt, 11, p->proven);
    sqlite3_bind_int(stmt, 12, p->verified);
    fits = tide__sql_bind_u64(stmt, 13, p->time_ns) && fits;
    sqlite3_bind_int64(stmt, 14, p->lifetimes.n_steps);
    sqlite3_bind_int64(stmt, 15, (int64_t)p->lifetimes.n);
    sqlite3_bind_int64(stmt, 16, (int64_t)p->n_pools);
    sqlite3_bind_int64(stmt, 17, (int64_t)p->n_buffers);
    const tide_status st = fits ? tide__sql_run(s, stmt, err) : too_large(s, "a size of the buffer", err);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status write_buffers(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_buffer VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < p->n_buffers; i++) {
        const tide_plan_buffer *b = &p->buffers[i];
        char device[32];
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        tide__sql_bind_text(stmt, 3, tide_device_format(b->device, device, sizeof device));
        sqlite3_bind_int(stmt, 4, (int)b->kind);
        const uint64_t sizes[] = {
            b->bytes, b->align_bytes, b->naive_bytes, b->naive_peak_bytes, b->lower_bound_bytes, b->proved_bytes};
        bool fits = true;
        for (int k = 0; k < 6; k++) fits = tide__sql_bind_u64(stmt, 5 + k, sizes[k]) && fits;
        tide__sql_bind_text(stmt, 11, tide_proof_name(b->proof));
        st = fits ? tide__sql_run(s, stmt, err) : too_large(s, "a buffer", err);
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- tensors ----

static void bind_index(sqlite3_stmt *stmt, int i, uint32_t index) {
    if (index != TIDE_NO_INDEX) sqlite3_bind_int64(stmt, i, index);
}

/// Columns 18 to 23: what most tensors have nothing of.
static bool bind_rare(sqlite3_stmt *stmt, const tide_lifetime *item) {
    bool fits = true;
    sqlite3_bind_int(stmt, 18, item->unrounded);
    if (item->fixed) fits = tide__sql_bind_u64(stmt, 19, item->fixed_offset_bytes);
    if (item->apart_set != 0) sqlite3_bind_int64(stmt, 20, item->apart_set);
    if (item->alias == TIDE_ALIAS_NONE) return fits;
    tide__sql_bind_text(stmt, 21, tide_alias_kind_name(item->alias));
    sqlite3_bind_int64(stmt, 22, item->alias_of);
    return tide__sql_bind_u64(stmt, 23, item->alias_offset_bytes) && fits;
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
    fits = bind_rare(stmt, item) && fits;
    return fits ? tide__sql_run(s, stmt, err) : too_large(s, item->name, err);
}

static tide_status write_tensors(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(s,
                          "INSERT INTO plan_tensor VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                          "?, ?, ?, ?)",
                          &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < p->lifetimes.n; i++) st = write_tensor(s, stmt, run_id, p, i, err);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status write_gap(const tide__sql *s, sqlite3_stmt *stmt, int64_t run_id, size_t tensor_i, uint32_t gap_i,
                             const tide_gap *gap, tide_error *err) {
    sqlite3_bind_int64(stmt, 1, run_id);
    sqlite3_bind_int64(stmt, 2, (int64_t)tensor_i);
    sqlite3_bind_int64(stmt, 3, gap_i);
    sqlite3_bind_int64(stmt, 4, gap->begin_step);
    sqlite3_bind_int64(stmt, 5, gap->end_step);
    bool fits = tide__sql_bind_u64(stmt, 6, gap->lo_bytes);
    fits = tide__sql_bind_u64(stmt, 7, gap->hi_bytes) && fits;
    return fits ? tide__sql_run(s, stmt, err) : too_large(s, "a gap", err);
}

static tide_status write_gaps(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_gap VALUES(?, ?, ?, ?, ?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->lifetimes.n && st == TIDE_OK; i++) {
        const tide_lifetime *item = &p->lifetimes.items[i];
        for (uint32_t k = 0; k < item->n_gaps && st == TIDE_OK; k++)
            st = write_gap(s, stmt, run_id, i, k, &item->gaps[k], err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static tide_status write_point_sizes(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_point_size VALUES(?, ?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < p->lifetimes.n; i++) {
        const tide_lifetime *item = &p->lifetimes.items[i];
        for (size_t k = 0; item->point_bytes != NULL && k < p->lifetimes.n_points && st == TIDE_OK; k++) {
            sqlite3_bind_int64(stmt, 1, run_id);
            sqlite3_bind_int64(stmt, 2, (int64_t)i);
            sqlite3_bind_int64(stmt, 3, (int64_t)k);
            st = tide__sql_bind_u64(stmt, 4, item->point_bytes[k]) ? tide__sql_run(s, stmt, err)
                                                                   : too_large(s, item->name, err);
        }
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- pools and names ----

static tide_status write_pools(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "INSERT INTO plan_pool VALUES(?, ?, ?, ?, ?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < p->n_pools; i++) {
        const tide_plan_pool *pool = &p->pool_list[i];
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        bool fits = tide__sql_bind_u64(stmt, 3, pool->size_bytes);
        fits = tide__sql_bind_u64(stmt, 4, pool->offset_bytes) && fits;
        sqlite3_bind_int64(stmt, 5, (int64_t)pool->n_members);
        sqlite3_bind_int64(stmt, 6, pool->buffer);
        st = fits ? tide__sql_run(s, stmt, err) : too_large(s, "a pool", err);
    }
    sqlite3_finalize(stmt);
    return st;
}

/// Rows (run, number, name).
static tide_status write_names(const tide__sql *s, const char *insert, int64_t run_id, char *const *names, size_t n,
                               tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, insert, &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        tide__sql_bind_text(stmt, 3, names[i]);
        st = tide__sql_run(s, stmt, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

tide_status tide__plan_rows_write(const tide__sql *s, int64_t run_id, const tide_memory_plan *plan, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    TIDE_TRY(write_head(s, run_id, plan, err));
    TIDE_TRY(write_buffers(s, run_id, plan, err));
    TIDE_TRY(write_tensors(s, run_id, plan, err));
    TIDE_TRY(write_gaps(s, run_id, plan, err));
    TIDE_TRY(write_point_sizes(s, run_id, plan, err));
    TIDE_TRY(write_pools(s, run_id, plan, err));
    TIDE_TRY(write_names(s, "INSERT INTO plan_point VALUES(?, ?, ?)", run_id, lt->point_names, lt->n_points, err));
    TIDE_TRY(
        write_names(s, "INSERT INTO plan_recomputed VALUES(?, ?, ?)", run_id, lt->recomputed, lt->n_recomputed, err));
    return write_names(s, "INSERT INTO plan_step VALUES(?, ?, ?)", run_id, lt->step_names, lt->n_step_names, err);
}
