// SPDX-License-Identifier: MIT
//
// A memory plan out of rows. See plan_rows.h. Every row is checked where it is read.
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/planner.h"
#include "profiler/store/plan_rows_internal.h"

tide_status tide__plan_bad_row(const tide__plan_reader *r, const char *table, size_t row_i) {
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "cannot read the plan in '%s'", r->s->path);
    tide_error_where(r->err, "%s: table %s, row %zu", r->s->path, table, row_i);
    tide_error_note(r->err, "damaged: the row makes no part of a plan");
    return st;
}

tide_status tide__plan_no_memory(const tide__plan_reader *r) {
    return TIDE_FAIL(r->err, TIDE_ERR_NOMEM, "no memory for a plan");
}

/// Rows of one run in order, handed to `take`; it finds its place by the row number.
typedef tide_status (*take_row)(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i);

static tide_status read_rows(tide__plan_reader *r, const char *query, take_row take) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(r->s, query, &stmt, r->err));
    sqlite3_bind_int64(stmt, 1, r->run_id);
    size_t n = 0;
    bool has_row;
    tide_status st;
    while ((st = tide__sql_step(r->s, stmt, &has_row, r->err)) == TIDE_OK && has_row) {
        st = take(r, stmt, n++);
        if (st != TIDE_OK) break;
    }
    sqlite3_finalize(stmt);
    return st;
}

// ---- the plan ----

static bool take_counts(sqlite3_stmt *stmt, int first, tide__plan_counts *n) {
    uint64_t *const all[] = {&n->n_tensors, &n->n_pools,  &n->n_buffers, &n->n_step_names,
                             &n->n_gaps,    &n->n_points, &n->n_sizes,   &n->n_recomputed};
    bool good = true;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        good = tide__sql_u64(stmt, first + (int)k, all[k]) && *all[k] <= INT32_MAX && good;
    return good;
}

static tide_status take_head(tide__plan_reader *r, sqlite3_stmt *stmt) {
    tide_memory_plan *p = r->p;
    bool has_row;
    TIDE_TRY(tide__sql_step(r->s, stmt, &has_row, r->err));
    if (!has_row)
        return TIDE_FAIL(r->err, TIDE_ERR_NOT_FOUND, "run %" PRId64 " in '%s' has no plan", r->run_id, r->s->path);
    uint64_t n_steps, proven, verified, n_tensors, n_pools, n_buffers;
    const bool good = tide__sql_u64(stmt, 3, &p->bytes) && tide__sql_u64(stmt, 4, &p->align_bytes) &&
                      tide__sql_u64(stmt, 5, &p->naive_bytes) && tide__sql_u64(stmt, 6, &p->lower_bound_bytes) &&
                      tide__sql_u64(stmt, 7, &p->naive_peak_bytes) && tide__sql_u64(stmt, 8, &p->proved_bytes) &&
                      tide__sql_u64(stmt, 9, &proven) && tide__sql_u64(stmt, 10, &verified) &&
                      tide__sql_u64(stmt, 11, &p->time_ns) && tide__sql_u64(stmt, 12, &n_steps) &&
                      tide__sql_u64(stmt, 13, &n_tensors) && tide__sql_u64(stmt, 14, &n_pools) &&
                      tide__sql_u64(stmt, 15, &n_buffers) && take_counts(stmt, 16, &r->n);
    const char *form = tide__sql_text(stmt, 2);
    const bool is_pools = strcmp(form, "pools") == 0;
    if (!good || (!is_pools && strcmp(form, "offsets") != 0)) return tide__plan_bad_row(r, "plan", 0);
    if (n_tensors != r->n.n_tensors || n_pools != r->n.n_pools || n_buffers != r->n.n_buffers) {
        const tide_status st = tide__plan_bad_row(r, "plan", 0);
        tide_error_note(r->err,
                        "damaged: %" PRIu64 " tensors, %" PRIu64 " pools, %" PRIu64 " buffers recorded, %" PRIu64
                        ", %" PRIu64 ", %" PRIu64 " found",
                        n_tensors, n_pools, n_buffers, r->n.n_tensors, r->n.n_pools, r->n.n_buffers);
        return st;
    }
    p->form = is_pools ? TIDE_PLAN_POOLS : TIDE_PLAN_OFFSETS;
    p->proven = proven != 0;
    p->verified = verified != 0;
    p->lifetimes.n_steps = (int64_t)n_steps;
    p->lifetimes.model = tide_host_strdup(tide__sql_text(stmt, 0));
    p->strategy = tide_host_strdup(tide__sql_text(stmt, 1));
    return p->lifetimes.model != NULL && p->strategy != NULL ? TIDE_OK : tide__plan_no_memory(r);
}

static tide_status read_head(tide__plan_reader *r) {
    sqlite3_stmt *stmt;
    TIDE_TRY(
        tide__sql_prepare(r->s,
                          "SELECT model, strategy, form, bytes, align_bytes, naive_bytes, lower_bound_bytes, "
                          "naive_peak_bytes, proved_bytes, proven, verified, time_ns, n_steps, n_tensors, n_pools, "
                          "n_buffers, "
                          "(SELECT count(*) FROM plan_tensor t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_pool t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_buffer t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_step t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_gap t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_point t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_point_size t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_recomputed t WHERE t.run_id = plan.run_id) "
                          "FROM plan WHERE run_id = ?",
                          &stmt, r->err));
    sqlite3_bind_int64(stmt, 1, r->run_id);
    const tide_status st = take_head(r, stmt);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status take_buffer(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    static const char table[] = "plan_buffer";
    uint64_t number, kind;
    if (row_i >= r->p->n_buffers) return tide__plan_bad_row(r, table, row_i);
    tide_plan_buffer *b = &r->p->buffers[row_i];
    const bool good = tide__sql_u64(stmt, 0, &number) && number == row_i &&
                      tide_device_parse(tide__sql_text(stmt, 1), &b->device, NULL) == TIDE_OK &&
                      tide__sql_u64(stmt, 2, &kind) && kind < TIDE_N_KINDS && tide__sql_u64(stmt, 3, &b->bytes) &&
                      tide__sql_u64(stmt, 4, &b->align_bytes) && tide__sql_u64(stmt, 5, &b->naive_bytes) &&
                      tide__sql_u64(stmt, 6, &b->naive_peak_bytes) && tide__sql_u64(stmt, 7, &b->lower_bound_bytes) &&
                      tide__sql_u64(stmt, 8, &b->proved_bytes) &&
                      tide_proof_parse(tide__sql_text(stmt, 9), &b->proof, NULL) == TIDE_OK;
    if (!good) return tide__plan_bad_row(r, table, row_i);
    b->kind = (tide_memory_kind)kind;
    return TIDE_OK;
}

// ---- pools and names ----

static tide_status take_pool(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    uint64_t pool, members, buffer;
    tide_plan_pool row;
    if (!tide__sql_u64(stmt, 0, &pool) || pool != row_i || row_i >= r->p->n_pools ||
        !tide__sql_u64(stmt, 1, &row.size_bytes) || !tide__sql_u64(stmt, 2, &row.offset_bytes) ||
        !tide__sql_u64(stmt, 3, &members) || members > r->p->lifetimes.n || !tide__sql_u64(stmt, 4, &buffer) ||
        buffer >= r->p->n_buffers)
        return tide__plan_bad_row(r, "plan_pool", row_i);
    row.n_members = (size_t)members;
    row.buffer = (uint32_t)buffer;
    r->p->pool_list[row_i] = row;
    return TIDE_OK;
}

/// One more name of a list that has room for `room`.
static tide_status take_name(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i, const char *table, uint64_t room,
                             char **list, size_t *n) {
    uint64_t number;
    if (!tide__sql_u64(stmt, 0, &number) || number != row_i || number >= room)
        return tide__plan_bad_row(r, table, row_i);
    list[row_i] = tide_host_strdup(tide__sql_text(stmt, 1));
    if (list[row_i] == NULL) return tide__plan_no_memory(r);
    *n = row_i + 1;
    return TIDE_OK;
}

static tide_status take_step(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_step", r->n.n_step_names, lt->step_names, &lt->n_step_names);
}

static tide_status take_point(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_point", r->n.n_points, lt->point_names, &lt->n_points);
}

static tide_status take_recomputed(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_recomputed", r->n.n_recomputed, lt->recomputed, &lt->n_recomputed);
}

// ---- the whole ----

static tide_status make_room(tide__plan_reader *r) {
    tide_memory_plan *p = r->p;
    tide_lifetimes *lt = &p->lifetimes;
    p->n_pools = (size_t)r->n.n_pools;
    p->n_buffers = (size_t)r->n.n_buffers;
    p->offsets = tide_host_calloc((size_t)r->n.n_tensors, sizeof *p->offsets);
    p->pools = tide_host_calloc((size_t)r->n.n_tensors, sizeof *p->pools);
    p->pool_list = p->n_pools > 0 ? tide_host_calloc(p->n_pools, sizeof *p->pool_list) : NULL;
    p->buffers = p->n_buffers > 0 ? tide_host_calloc(p->n_buffers, sizeof *p->buffers) : NULL;
    lt->step_names = r->n.n_step_names > 0 ? tide_host_calloc(r->n.n_step_names, sizeof *lt->step_names) : NULL;
    lt->point_names = r->n.n_points > 0 ? tide_host_calloc(r->n.n_points, sizeof *lt->point_names) : NULL;
    lt->recomputed = r->n.n_recomputed > 0 ? tide_host_calloc(r->n.n_recomputed, sizeof *lt->recomputed) : NULL;
    r->gaps = tide_host_calloc((size_t)r->n.n_gaps, sizeof *r->gaps);
    r->sizes = tide_host_calloc((size_t)r->n.n_sizes, sizeof *r->sizes);
    const bool good = p->offsets != NULL && p->pools != NULL && (p->pool_list != NULL || p->n_pools == 0) &&
                      (p->buffers != NULL || p->n_buffers == 0) && (lt->step_names != NULL || r->n.n_step_names == 0) &&
                      (lt->point_names != NULL || r->n.n_points == 0) &&
                      (lt->recomputed != NULL || r->n.n_recomputed == 0) && r->gaps != NULL && r->sizes != NULL;
    return good ? TIDE_OK : tide__plan_no_memory(r);
}

static tide_status read_parts(tide__plan_reader *r) {
    TIDE_TRY(make_room(r));
    TIDE_TRY(read_rows(r,
                       "SELECT buffer, device, kind, bytes, align_bytes, naive_bytes, naive_peak_bytes, "
                       "lower_bound_bytes, proved_bytes, proof FROM plan_buffer WHERE run_id = ? ORDER BY buffer",
                       take_buffer));
    TIDE_TRY(read_rows(r, "SELECT point, name FROM plan_point WHERE run_id = ? ORDER BY point", take_point));
    TIDE_TRY(read_rows(r, "SELECT " TIDE__PLAN_GAP_COLUMNS " FROM plan_gap WHERE run_id = ? ORDER BY idx, gap",
                       tide__plan_take_gap));
    TIDE_TRY(read_rows(r,
                       "SELECT " TIDE__PLAN_SIZE_COLUMNS " FROM plan_point_size WHERE run_id = ? ORDER BY idx, point",
                       tide__plan_take_size));
    TIDE_TRY(read_rows(r, "SELECT " TIDE__PLAN_TENSOR_COLUMNS " FROM plan_tensor WHERE run_id = ? ORDER BY idx",
                       tide__plan_take_tensor));
    if (r->next_gap != r->n_gaps) return tide__plan_bad_row(r, "plan_gap", r->next_gap);
    if (r->next_size != r->n_sizes) return tide__plan_bad_row(r, "plan_point_size", r->next_size);
    TIDE_TRY(tide__plan_make_aliases(r));
    TIDE_TRY(read_rows(
        r, "SELECT pool, size_bytes, offset_bytes, members, buffer FROM plan_pool WHERE run_id = ? ORDER BY pool",
        take_pool));
    TIDE_TRY(read_rows(r, "SELECT idx, name FROM plan_recomputed WHERE run_id = ? ORDER BY idx", take_recomputed));
    if (r->n.n_step_names != 0 && r->n.n_step_names != (uint64_t)r->p->lifetimes.n_steps)
        return tide__plan_bad_row(r, "plan_step", 0);
    return read_rows(r, "SELECT step, name FROM plan_step WHERE run_id = ? ORDER BY step", take_step);
}

/// A plan that says it was verified must be: whoever runs it relies on that.
static tide_status check_verified(const tide__plan_reader *r) {
    if (!r->p->verified) return TIDE_OK;
    tide_error own = TIDE_ERROR_INIT;
    tide_status st = tide_plan_verify(r->p, NULL, &own);
    if (st == TIDE_OK && r->p->proven != (r->p->bytes == r->p->proved_bytes))
        st = TIDE_FAIL(&own, TIDE_ERR_VERIFY, "whether it is proven does not follow from its bytes");
    if (st == TIDE_ERR_VERIFY) {
        st = tide__plan_bad_row(r, "plan", 0);
        tide_error_note(r->err, "damaged: marked as verified, but %s", own.msg);
    } else if (st != TIDE_OK && r->err != NULL) {
        *r->err = own;
    }
    return st;
}

tide_status tide__plan_rows_read(const tide__sql *s, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    tide__plan_reader r = {.s = s, .run_id = run_id, .err = err, .p = tide_host_calloc(1, sizeof *r.p)};
    if (r.p == NULL) return tide__plan_no_memory(&r);
    tide_status st = read_head(&r);
    if (st == TIDE_OK) st = read_parts(&r);
    if (st == TIDE_OK) st = check_verified(&r);
    tide_host_free(r.gaps);
    tide_host_free(r.sizes);
    tide_host_free(r.aliases);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(r.p);
        return st;
    }
    *out = r.p;
    return TIDE_OK;
}
