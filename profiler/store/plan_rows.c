// SPDX-License-Identifier: MIT
//
// A memory plan as rows of a trace, in and out. See plan_rows.h. Every row is checked where it is read.
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/plan_live.h"
#include "planner/planner.h"
#include "profiler/store/plan_rows.h"

/// A gap with its tensor; they come before the tensors, which take them.
typedef struct gap_row {
    uint64_t tensor_i;
    tide_gap gap;
} gap_row;

/// A size at a profile point.
typedef struct size_row {
    uint64_t tensor_i, point;
    uint64_t bytes;
} size_row;

typedef struct alias_row {
    uint32_t tensor_i, of;
    tide_alias_kind kind;
    uint64_t offset_bytes;
} alias_row;

/// Rows that are there: amounts of memory are asked by these and not by what a row claims.
typedef struct counts {
    uint64_t n_tensors, n_pools, n_buffers, n_step_names, n_gaps, n_points, n_sizes, n_recomputed, n_dynamic, n_regions;
} counts;

typedef struct reader {
    const tide__sql *s;
    int64_t run_id;
    tide_memory_plan *p;
    counts n;
    gap_row *gaps; ///< [n.n_gaps], by tensor
    size_t n_gaps, next_gap;
    size_row *sizes; ///< [n.n_sizes], by tensor
    size_t n_sizes, next_size;
    alias_row *aliases; ///< [n_aliases]
    size_t n_aliases, cap_aliases;
    tide_error *err;
} reader;

/// What the queries for them select, in order.
#define PLAN_GAP_COLUMNS "idx, gap, begin_step, end_step, lo_bytes, hi_bytes"
#define PLAN_SIZE_COLUMNS "idx, point, size_bytes"
#define PLAN_TENSOR_COLUMNS                                                                                            \
    "idx, name, size_bytes, align_bytes, begin_step, end_step, kind, device, role, persistent, node, port, value, "    \
    "aligned_bytes, pool, offset_bytes, unrounded, fixed_offset_bytes, apart_set, alias, alias_of, "                   \
    "alias_offset_bytes, bound"

/// TIDE_ERR_BAD_INPUT: a row of `table` that no recorder wrote.
static tide_status bad_row(const reader *r, const char *table, size_t row_i) {
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "cannot read the plan in '%s'", r->s->path);
    tide_error_where(r->err, "%s: table %s, row %zu", r->s->path, table, row_i);
    tide_error_note(r->err, "damaged: the row makes no part of a plan");
    return st;
}

// ---- what belongs to tensors ----

/// Rows of plan_gap and plan_point_size, which come first; of plan_tensor, which takes them; then the aliases.
static tide_status take_gap(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    uint64_t number, begin, end;
    if (r->n_gaps >= r->n.n_gaps) return bad_row(r, "plan_gap", row_i);
    gap_row *g = &r->gaps[r->n_gaps];
    const bool good = tide__sql_u64(stmt, 0, &g->tensor_i) && tide__sql_u64(stmt, 1, &number) &&
                      tide__sql_u64(stmt, 2, &begin) && tide__sql_u64(stmt, 3, &end) &&
                      tide__sql_u64(stmt, 4, &g->gap.lo_bytes) && tide__sql_u64(stmt, 5, &g->gap.hi_bytes);
    // Numbers count from 0 within a tensor.
    const bool first = r->n_gaps == 0 || r->gaps[r->n_gaps - 1].tensor_i != g->tensor_i;
    if (!good || (first && number != 0)) return bad_row(r, "plan_gap", row_i);
    g->gap.begin_step = (int64_t)begin;
    g->gap.end_step = (int64_t)end;
    r->n_gaps++;
    return TIDE_OK;
}

static tide_status take_size(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    if (r->n_sizes >= r->n.n_sizes) return bad_row(r, "plan_point_size", row_i);
    size_row *z = &r->sizes[r->n_sizes++];
    const bool good =
        tide__sql_u64(stmt, 0, &z->tensor_i) && tide__sql_u64(stmt, 1, &z->point) && tide__sql_u64(stmt, 2, &z->bytes);
    return good ? TIDE_OK : bad_row(r, "plan_point_size", row_i);
}

/// The tensor's gaps, which come next in the list, into `item`; memory of the caller's.
static tide_status give_gaps(reader *r, size_t tensor_i, tide_lifetime *item) {
    size_t n = 0;
    while (r->next_gap + n < r->n_gaps && r->gaps[r->next_gap + n].tensor_i == tensor_i) n++;
    if (n == 0) return TIDE_OK;
    item->gaps = tide_host_calloc(n, sizeof *item->gaps);
    if (item->gaps == NULL) return TIDE_NO_MEMORY(r->err, "for a plan");
    for (size_t k = 0; k < n; k++) item->gaps[k] = r->gaps[r->next_gap + k].gap;
    item->n_gaps = (uint32_t)n;
    r->next_gap += n;
    return TIDE_OK;
}

static tide_status give_sizes(reader *r, size_t tensor_i, tide_lifetime *item) {
    const size_t n = r->p->lifetimes.n_points;
    if (r->next_size >= r->n_sizes || r->sizes[r->next_size].tensor_i != tensor_i) return TIDE_OK;
    item->point_bytes = n > 0 ? tide_host_calloc(n, sizeof *item->point_bytes) : NULL;
    if (n == 0) return bad_row(r, "plan_point_size", r->next_size);
    if (item->point_bytes == NULL) return TIDE_NO_MEMORY(r->err, "for a plan");
    for (size_t k = 0; k < n; k++, r->next_size++) {
        if (r->next_size >= r->n_sizes || r->sizes[r->next_size].tensor_i != tensor_i ||
            r->sizes[r->next_size].point != k)
            return bad_row(r, "plan_point_size", r->next_size);
        item->point_bytes[k] = r->sizes[r->next_size].bytes;
    }
    return TIDE_OK;
}

// ---- tensors ----

static bool index_column(sqlite3_stmt *stmt, int i, uint32_t *out) {
    *out = TIDE_NO_INDEX;
    if (sqlite3_column_type(stmt, i) == SQLITE_NULL) return true;
    uint64_t value;
    if (!tide__sql_u64(stmt, i, &value) || value >= TIDE_NO_INDEX) return false;
    *out = (uint32_t)value;
    return true;
}

/// The tensor's place, when it has one: NULL is none; what is there must lie inside the buffers and the pools.
static bool place_columns(sqlite3_stmt *stmt, size_t i, bool is_alias, tide_memory_plan *p) {
    p->pools[i] = TIDE_NO_POOL;
    p->offsets[i] = TIDE_NO_OFFSET;
    uint64_t value;
    if (sqlite3_column_type(stmt, 14) != SQLITE_NULL) {
        if (!tide__sql_u64(stmt, 14, &value) || value >= p->n_pools) return false;
        p->pools[i] = (int32_t)value;
    }
    if (sqlite3_column_type(stmt, 15) != SQLITE_NULL) {
        uint64_t end;
        const tide_lifetime *item = &p->lifetimes.items[i];
        const uint64_t bytes = is_alias ? item->size_bytes : tide_lifetime_aligned_bytes(item);
        if (!tide__sql_u64(stmt, 15, &value)) return false;
        if (!tide_add_u64(value, bytes, &end) || end > p->bytes) return false;
        p->offsets[i] = value;
    }
    return true;
}

/// Columns 16 to 18.
static bool rare_columns(sqlite3_stmt *stmt, tide_lifetime *item) {
    uint64_t value;
    if (!tide__sql_u64(stmt, 16, &value)) return false;
    item->unrounded = value != 0;
    if (sqlite3_column_type(stmt, 17) != SQLITE_NULL) {
        item->fixed = true;
        if (!tide__sql_u64(stmt, 17, &item->fixed_offset_bytes)) return false;
    }
    if (sqlite3_column_type(stmt, 18) == SQLITE_NULL) return true;
    if (!tide__sql_u64(stmt, 18, &value) || value == 0 || value > UINT32_MAX) return false;
    item->apart_set = (uint32_t)value;
    return true;
}

/// Columns 19 to 21. *has: the tensor is an alias, which is made when all are there.
static bool alias_columns(sqlite3_stmt *stmt, size_t tensor_i, alias_row *out, bool *has) {
    uint64_t of;
    *has = sqlite3_column_type(stmt, 19) != SQLITE_NULL;
    if (!*has) return true;
    out->tensor_i = (uint32_t)tensor_i;
    if (tide_alias_kind_parse(tide__sql_text(stmt, 19), &out->kind, NULL) != TIDE_OK) return false;
    if (!tide__sql_u64(stmt, 20, &of) || of >= TIDE_NO_INDEX || !tide__sql_u64(stmt, 21, &out->offset_bytes))
        return false;
    out->of = (uint32_t)of;
    return true;
}

static tide_status add_tensor(reader *r, sqlite3_stmt *stmt, size_t row_i, tide_lifetime *item) {
    uint64_t idx, begin_step, end_step, kind, persistent, aligned_bytes;
    alias_row alias;
    bool is_alias = false;
    const bool good = tide__sql_u64(stmt, 0, &idx) && idx == row_i && row_i < r->n.n_tensors &&
                      tide__sql_u64(stmt, 2, &item->size_bytes) && tide__sql_u64(stmt, 3, &item->align_bytes) &&
                      tide__sql_u64(stmt, 4, &begin_step) && tide__sql_u64(stmt, 5, &end_step) &&
                      tide__sql_u64(stmt, 6, &kind) && kind < TIDE_N_KINDS &&
                      tide_device_parse(tide__sql_text(stmt, 7), &item->device, NULL) == TIDE_OK &&
                      tide_role_parse(tide__sql_text(stmt, 8), &item->role, NULL) == TIDE_OK &&
                      tide__sql_u64(stmt, 9, &persistent) && index_column(stmt, 10, &item->node) &&
                      index_column(stmt, 11, &item->port) && index_column(stmt, 12, &item->value) &&
                      tide__sql_u64(stmt, 13, &aligned_bytes) && end_step <= (uint64_t)r->p->lifetimes.n_steps &&
                      rare_columns(stmt, item) && alias_columns(stmt, row_i, &alias, &is_alias);
    if (!good) return bad_row(r, "plan_tensor", row_i);
    item->begin_step = (int64_t)begin_step;
    item->end_step = (int64_t)end_step;
    item->kind = (tide_memory_kind)kind;
    item->persistent = persistent != 0;
    TIDE_TRY(give_gaps(r, row_i, item));
    TIDE_TRY(give_sizes(r, row_i, item));
    const tide_status st = tide_lifetimes_add(&r->p->lifetimes, item, r->err);
    if (st == TIDE_ERR_NOMEM) return st;
    if (st != TIDE_OK || tide_lifetime_aligned_bytes(item) != aligned_bytes ||
        !place_columns(stmt, row_i, is_alias, r->p))
        return bad_row(r, "plan_tensor", row_i);
    if (!is_alias) return TIDE_OK;
    if (tide_host_grow(&r->aliases, &r->cap_aliases, r->n_aliases + 1, sizeof *r->aliases) != TIDE_OK)
        return TIDE_NO_MEMORY(r->err, "for a plan");
    r->aliases[r->n_aliases++] = alias;
    return TIDE_OK;
}

static tide_status take_tensor(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    // The table copies what the item has; until then SQLite lends the name.
    const bool is_bounded = sqlite3_column_type(stmt, 22) != SQLITE_NULL;
    tide_lifetime item = {.name = tide_host_strdup(tide__sql_text(stmt, 1)),
                          .bound = is_bounded ? tide_host_strdup(tide__sql_text(stmt, 22)) : NULL};
    const bool good = item.name != NULL && (item.bound != NULL || !is_bounded);
    const tide_status st = good ? add_tensor(r, stmt, row_i, &item) : TIDE_NO_MEMORY(r->err, "for a plan");
    tide_host_free(item.name);
    tide_host_free(item.bound);
    tide_host_free(item.gaps);
    tide_host_free(item.point_bytes);
    return st;
}

static tide_status make_aliases(reader *r) {
    for (size_t k = 0; k < r->n_aliases; k++) {
        const alias_row *a = &r->aliases[k];
        const tide_status st =
            tide_lifetimes_alias(&r->p->lifetimes, a->tensor_i, a->kind, a->of, a->offset_bytes, r->err);
        if (st != TIDE_OK) return bad_row(r, "plan_tensor", a->tensor_i);
    }
    return TIDE_OK;
}

/// Rows of one run in order, handed to `take`; it finds its place by the row number.
typedef tide_status (*take_row)(reader *r, sqlite3_stmt *stmt, size_t row_i);

static tide_status read_rows(reader *r, const char *query, take_row take) {
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

static bool take_counts(sqlite3_stmt *stmt, int first, counts *n) {
    uint64_t *const all[] = {&n->n_tensors, &n->n_pools, &n->n_buffers,    &n->n_step_names, &n->n_gaps,
                             &n->n_points,  &n->n_sizes, &n->n_recomputed, &n->n_dynamic,    &n->n_regions};
    bool good = true;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        good = tide__sql_u64(stmt, first + (int)k, all[k]) && *all[k] <= INT32_MAX && good;
    return good;
}

static tide_status take_head(reader *r, sqlite3_stmt *stmt) {
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
    if (!good || (!is_pools && strcmp(form, "offsets") != 0)) return bad_row(r, "plan", 0);
    if (n_tensors != r->n.n_tensors || n_pools != r->n.n_pools || n_buffers != r->n.n_buffers) {
        const tide_status st = bad_row(r, "plan", 0);
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
    return p->lifetimes.model != NULL && p->strategy != NULL ? TIDE_OK : TIDE_NO_MEMORY(r->err, "for a plan");
}

static tide_status read_head(reader *r) {
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
                          "(SELECT count(*) FROM plan_recomputed t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_dynamic t WHERE t.run_id = plan.run_id), "
                          "(SELECT count(*) FROM plan_region t WHERE t.run_id = plan.run_id) "
                          "FROM plan WHERE run_id = ?",
                          &stmt, r->err));
    sqlite3_bind_int64(stmt, 1, r->run_id);
    const tide_status st = take_head(r, stmt);
    sqlite3_finalize(stmt);
    return st;
}

static tide_status take_buffer(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    static const char table[] = "plan_buffer";
    uint64_t number, kind;
    if (row_i >= r->p->n_buffers) return bad_row(r, table, row_i);
    tide_plan_buffer *b = &r->p->buffers[row_i];
    const bool good = tide__sql_u64(stmt, 0, &number) && number == row_i &&
                      tide_device_parse(tide__sql_text(stmt, 1), &b->device, NULL) == TIDE_OK &&
                      tide__sql_u64(stmt, 2, &kind) && kind < TIDE_N_KINDS && tide__sql_u64(stmt, 3, &b->bytes) &&
                      tide__sql_u64(stmt, 4, &b->align_bytes) && tide__sql_u64(stmt, 5, &b->naive_bytes) &&
                      tide__sql_u64(stmt, 6, &b->naive_peak_bytes) && tide__sql_u64(stmt, 7, &b->lower_bound_bytes) &&
                      tide__sql_u64(stmt, 8, &b->proved_bytes) &&
                      tide_proof_parse(tide__sql_text(stmt, 9), &b->proof, NULL) == TIDE_OK;
    if (!good) return bad_row(r, table, row_i);
    b->kind = (tide_memory_kind)kind;
    return TIDE_OK;
}

// ---- pools and names ----

static tide_status take_pool(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    uint64_t pool, members, buffer;
    tide_plan_pool row;
    if (!tide__sql_u64(stmt, 0, &pool) || pool != row_i || row_i >= r->p->n_pools ||
        !tide__sql_u64(stmt, 1, &row.size_bytes) || !tide__sql_u64(stmt, 2, &row.offset_bytes) ||
        !tide__sql_u64(stmt, 3, &members) || members > r->p->lifetimes.n || !tide__sql_u64(stmt, 4, &buffer) ||
        buffer >= r->p->n_buffers)
        return bad_row(r, "plan_pool", row_i);
    row.n_members = (size_t)members;
    row.buffer = (uint32_t)buffer;
    r->p->pool_list[row_i] = row;
    return TIDE_OK;
}

/// One more name of a list that has room for `room`.
static tide_status take_name(reader *r, sqlite3_stmt *stmt, size_t row_i, const char *table, uint64_t room, char **list,
                             size_t *n) {
    uint64_t number;
    if (!tide__sql_u64(stmt, 0, &number) || number != row_i || number >= room) return bad_row(r, table, row_i);
    list[row_i] = tide_host_strdup(tide__sql_text(stmt, 1));
    if (list[row_i] == NULL) return TIDE_NO_MEMORY(r->err, "for a plan");
    *n = row_i + 1;
    return TIDE_OK;
}

static tide_status take_step(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_step", r->n.n_step_names, lt->step_names, &lt->n_step_names);
}

static tide_status take_point(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_point", r->n.n_points, lt->point_names, &lt->n_points);
}

static tide_status take_recomputed(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_recomputed", r->n.n_recomputed, lt->recomputed, &lt->n_recomputed);
}

static tide_status take_dynamic(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    return take_name(r, stmt, row_i, "plan_dynamic", r->n.n_dynamic, lt->dynamic, &lt->n_dynamic);
}

static tide_status take_region(reader *r, sqlite3_stmt *stmt, size_t row_i) {
    tide_lifetimes *lt = &r->p->lifetimes;
    const char *kind = (const char *)sqlite3_column_text(stmt, 1);
    if (row_i >= r->n.n_regions || sqlite3_column_int64(stmt, 0) != (int64_t)row_i || kind == NULL)
        return bad_row(r, "plan_region", row_i);
    tide_plan_region x = {.open_step = sqlite3_column_int64(stmt, 2),
                          .begin_step = sqlite3_column_int64(stmt, 3),
                          .end_step = sqlite3_column_int64(stmt, 4)};
    if (!tide_body_kind_parse(kind, &x.kind)) return bad_row(r, "plan_region", row_i);
    if (x.open_step < 0 || x.open_step >= x.begin_step || x.begin_step >= x.end_step || x.end_step > lt->n_steps)
        return bad_row(r, "plan_region", row_i);
    lt->regions[row_i] = x;
    lt->n_regions = row_i + 1;
    return TIDE_OK;
}

// ---- the whole ----

static tide_status make_room(reader *r) {
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
    lt->dynamic = r->n.n_dynamic > 0 ? tide_host_calloc(r->n.n_dynamic, sizeof *lt->dynamic) : NULL;
    lt->regions = r->n.n_regions > 0 ? tide_host_calloc(r->n.n_regions, sizeof *lt->regions) : NULL;
    r->gaps = tide_host_calloc((size_t)r->n.n_gaps, sizeof *r->gaps);
    r->sizes = tide_host_calloc((size_t)r->n.n_sizes, sizeof *r->sizes);
    const bool good = p->offsets != NULL && p->pools != NULL && (p->pool_list != NULL || p->n_pools == 0) &&
                      (p->buffers != NULL || p->n_buffers == 0) && (lt->step_names != NULL || r->n.n_step_names == 0) &&
                      (lt->point_names != NULL || r->n.n_points == 0) &&
                      (lt->recomputed != NULL || r->n.n_recomputed == 0) &&
                      (lt->dynamic != NULL || r->n.n_dynamic == 0) && (lt->regions != NULL || r->n.n_regions == 0) &&
                      r->gaps != NULL && r->sizes != NULL;
    return good ? TIDE_OK : TIDE_NO_MEMORY(r->err, "for a plan");
}

static tide_status read_parts(reader *r) {
    TIDE_TRY(make_room(r));
    TIDE_TRY(read_rows(r,
                       "SELECT buffer, device, kind, bytes, align_bytes, naive_bytes, naive_peak_bytes, "
                       "lower_bound_bytes, proved_bytes, proof FROM plan_buffer WHERE run_id = ? ORDER BY buffer",
                       take_buffer));
    TIDE_TRY(read_rows(r, "SELECT point, name FROM plan_point WHERE run_id = ? ORDER BY point", take_point));
    TIDE_TRY(read_rows(r, "SELECT " PLAN_GAP_COLUMNS " FROM plan_gap WHERE run_id = ? ORDER BY idx, gap", take_gap));
    TIDE_TRY(read_rows(r, "SELECT " PLAN_SIZE_COLUMNS " FROM plan_point_size WHERE run_id = ? ORDER BY idx, point",
                       take_size));
    TIDE_TRY(
        read_rows(r, "SELECT " PLAN_TENSOR_COLUMNS " FROM plan_tensor WHERE run_id = ? ORDER BY idx", take_tensor));
    if (r->next_gap != r->n_gaps) return bad_row(r, "plan_gap", r->next_gap);
    if (r->next_size != r->n_sizes) return bad_row(r, "plan_point_size", r->next_size);
    TIDE_TRY(make_aliases(r));
    TIDE_TRY(read_rows(
        r, "SELECT pool, size_bytes, offset_bytes, members, buffer FROM plan_pool WHERE run_id = ? ORDER BY pool",
        take_pool));
    TIDE_TRY(read_rows(r, "SELECT idx, name FROM plan_recomputed WHERE run_id = ? ORDER BY idx", take_recomputed));
    TIDE_TRY(read_rows(r, "SELECT idx, name FROM plan_dynamic WHERE run_id = ? ORDER BY idx", take_dynamic));
    TIDE_TRY(read_rows(r,
                       "SELECT idx, kind, open_step, begin_step, end_step FROM plan_region WHERE run_id = ? "
                       "ORDER BY idx",
                       take_region));
    if (r->n.n_step_names != 0 && r->n.n_step_names != (uint64_t)r->p->lifetimes.n_steps)
        return bad_row(r, "plan_step", 0);
    return read_rows(r, "SELECT step, name FROM plan_step WHERE run_id = ? ORDER BY step", take_step);
}

// What a process takes beside the tensors stands in `meta`, under keys that end in the number of the run: processes
// that are recorded into one trace may run different models.

enum { N_PROCESS_KEYS = 4, PROCESS_KEY_BYTES = 64 };
static const char *const process_keys[N_PROCESS_KEYS] = {"process_program_bytes", "process_own_bytes",
                                                         "process_constants_bytes", "process_mapped_bytes"};

static const char *process_key(int k, int64_t run_id, char buf[PROCESS_KEY_BYTES]) {
    snprintf(buf, PROCESS_KEY_BYTES, "%s.%" PRId64, process_keys[k], run_id);
    return buf;
}

static void process_fields(tide_process_facts *facts, uint64_t *out[N_PROCESS_KEYS]) {
    out[0] = &facts->program_bytes;
    out[1] = &facts->own_bytes;
    out[2] = &facts->constants_bytes;
    out[3] = &facts->mapped_bytes;
}

/// Traces of programs that ran no model, and older ones, have none of it.
static tide_status read_process(reader *r) {
    uint64_t *fields[N_PROCESS_KEYS];
    sqlite3_stmt *stmt;
    process_fields(&r->p->lifetimes.process, fields);
    TIDE_TRY(tide__sql_prepare(r->s,
                               "SELECT iif(value = '' OR value GLOB '*[^0-9]*', -1, CAST(value AS INTEGER)) FROM meta "
                               "WHERE key = ?",
                               &stmt, r->err));
    tide_status st = TIDE_OK;
    for (int k = 0; st == TIDE_OK && k < N_PROCESS_KEYS; k++) {
        char key[PROCESS_KEY_BYTES];
        bool has_row;
        tide__sql_bind_text(stmt, 1, process_key(k, r->run_id, key));
        st = tide__sql_step(r->s, stmt, &has_row, r->err);
        if (st == TIDE_OK && has_row && !tide__sql_u64(stmt, 0, fields[k])) st = bad_row(r, "meta", k);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

/// A plan that says it was verified must be: a runtime relies on that.
static tide_status check_verified(const reader *r) {
    if (!r->p->verified) return TIDE_OK;
    tide_error own = TIDE_ERROR_INIT;
    tide_status st = tide_plan_verify(r->p, NULL, &own);
    if (st == TIDE_OK && r->p->proven != (r->p->bytes == r->p->proved_bytes))
        st = TIDE_FAIL(&own, TIDE_ERR_VERIFY, "whether it is proven does not follow from its bytes");
    if (st == TIDE_ERR_VERIFY) {
        st = bad_row(r, "plan", 0);
        tide_error_note(r->err, "damaged: marked as verified, but %s", own.msg);
    } else if (st != TIDE_OK && r->err != NULL) {
        *r->err = own;
    }
    return st;
}

tide_status tide__plan_rows_read(const tide__sql *s, int64_t run_id, tide_memory_plan **out, tide_error *err) {
    reader r = {.s = s, .run_id = run_id, .err = err, .p = tide_host_calloc(1, sizeof *r.p)};
    if (r.p == NULL) return TIDE_NO_MEMORY(err, "for a plan");
    tide_status st = read_head(&r);
    if (st == TIDE_OK) st = read_parts(&r);
    if (st == TIDE_OK) st = read_process(&r);
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

// ---- a plan into rows ----

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

static tide_status write_process(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    tide_process_facts facts = p->lifetimes.process;
    uint64_t *fields[N_PROCESS_KEYS];
    sqlite3_stmt *stmt;
    if (facts.program_bytes == 0) return TIDE_OK;
    process_fields(&facts, fields);
    TIDE_TRY(tide__sql_prepare(s, "INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)", &stmt, err));
    tide_status st = TIDE_OK;
    for (int k = 0; st == TIDE_OK && k < N_PROCESS_KEYS; k++) {
        char key[PROCESS_KEY_BYTES], value[24];
        snprintf(value, sizeof value, "%" PRIu64, *fields[k]);
        tide__sql_bind_text(stmt, 1, process_key(k, run_id, key));
        tide__sql_bind_text(stmt, 2, value);
        st = tide__sql_run(s, stmt, err);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return st;
}

enum { DEVICE_BYTES = 32 };
/// Binds what row `i` has behind its run and its number; `device` is room for a text that it binds. @return NULL, or
/// what of it is too large
typedef const char *(*bind_fn)(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device);

/// Rows (run, number, ...).
static tide_status write_rows(const tide__sql *s, const char *insert, int64_t run_id, const tide_memory_plan *p,
                              size_t n, bind_fn bind, tide_error *err) {
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, insert, &stmt, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        char device[DEVICE_BYTES];
        const char *large = bind(stmt, p, i, device);
        st = large == NULL ? tide__sql_run(s, stmt, err) : too_large(s, large, err);
    }
    sqlite3_finalize(stmt);
    return st;
}

static const char *bind_buffer(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    const tide_plan_buffer *b = &p->buffers[i];
    tide__sql_bind_text(stmt, 3, tide_device_format(b->device, device, DEVICE_BYTES));
    sqlite3_bind_int(stmt, 4, (int)b->kind);
    const uint64_t sizes[] = {b->bytes,       b->align_bytes, b->naive_bytes, b->naive_peak_bytes, b->lower_bound_bytes,
                              b->proved_bytes};
    bool fits = true;
    for (int k = 0; k < 6; k++) fits = tide__sql_bind_u64(stmt, 5 + k, sizes[k]) && fits;
    tide__sql_bind_text(stmt, 11, tide_proof_name(b->proof));
    return fits ? NULL : "a buffer";
}

// ---- tensors ----

static void bind_index(sqlite3_stmt *stmt, int i, uint32_t index) {
    if (index != TIDE_NO_INDEX) sqlite3_bind_int64(stmt, i, index);
}

/// Columns 18 to 24: what most tensors have nothing of.
static bool bind_rare(sqlite3_stmt *stmt, const tide_lifetime *item) {
    bool fits = true;
    sqlite3_bind_int(stmt, 18, item->unrounded);
    if (item->fixed) fits = tide__sql_bind_u64(stmt, 19, item->fixed_offset_bytes);
    if (item->apart_set != 0) sqlite3_bind_int64(stmt, 20, item->apart_set);
    if (item->bound != NULL) tide__sql_bind_text(stmt, 24, item->bound);
    if (item->alias == TIDE_ALIAS_NONE) return fits;
    tide__sql_bind_text(stmt, 21, tide_alias_kind_name(item->alias));
    sqlite3_bind_int64(stmt, 22, item->alias_of);
    return tide__sql_bind_u64(stmt, 23, item->alias_offset_bytes) && fits;
}

static const char *bind_tensor(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    const tide_lifetime *item = &p->lifetimes.items[i];
    tide__sql_bind_text(stmt, 3, item->name);
    bool fits = tide__sql_bind_u64(stmt, 4, item->size_bytes);
    fits = tide__sql_bind_u64(stmt, 5, tide_lifetime_aligned_bytes(item)) && fits;
    fits = tide__sql_bind_u64(stmt, 6, item->align_bytes) && fits;
    sqlite3_bind_int64(stmt, 7, item->begin_step);
    sqlite3_bind_int64(stmt, 8, item->end_step);
    sqlite3_bind_int(stmt, 9, (int)item->kind);
    tide__sql_bind_text(stmt, 10, tide_device_format(item->device, device, DEVICE_BYTES));
    tide__sql_bind_text(stmt, 11, tide_role_name(item->role));
    sqlite3_bind_int(stmt, 12, item->persistent);
    bind_index(stmt, 13, item->node);
    bind_index(stmt, 14, item->port);
    bind_index(stmt, 15, item->value);
    if (p->pools[i] != TIDE_NO_POOL) sqlite3_bind_int(stmt, 16, p->pools[i]);
    if (p->offsets[i] != TIDE_NO_OFFSET) fits = tide__sql_bind_u64(stmt, 17, p->offsets[i]) && fits;
    fits = bind_rare(stmt, item) && fits;
    return fits ? NULL : item->name;
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

static const char *bind_pool(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    (void)device;
    const tide_plan_pool *pool = &p->pool_list[i];
    bool fits = tide__sql_bind_u64(stmt, 3, pool->size_bytes);
    fits = tide__sql_bind_u64(stmt, 4, pool->offset_bytes) && fits;
    sqlite3_bind_int64(stmt, 5, (int64_t)pool->n_members);
    sqlite3_bind_int64(stmt, 6, pool->buffer);
    return fits ? NULL : "a pool";
}

/// What each tensor keeps of its buffer, and when: nothing here reads it back, for the tensors say it; SQL does.
static tide_status write_parts(const tide__sql *s, int64_t run_id, const tide_memory_plan *p, tide_error *err) {
    tide_plan_live live;
    tide_plan_part *parts = NULL;
    size_t n = 0;
    sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_plan_live_make(p, &live, err));
    tide_status st = tide_plan_live_parts(p, &live, &parts, &n, err);
    if (st == TIDE_OK) st = tide__sql_prepare(s, "INSERT INTO plan_part VALUES(?, ?, ?, ?, ?)", &stmt, err);
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        sqlite3_bind_int64(stmt, 1, run_id);
        sqlite3_bind_int64(stmt, 2, parts[i].tensor);
        sqlite3_bind_int64(stmt, 3, parts[i].begin_step);
        sqlite3_bind_int64(stmt, 4, parts[i].end_step);
        st = tide__sql_bind_u64(stmt, 5, parts[i].bytes) ? tide__sql_run(s, stmt, err)
                                                         : too_large(s, p->lifetimes.items[parts[i].tensor].name, err);
    }
    sqlite3_finalize(stmt);
    tide_host_free(parts);
    tide_plan_live_deinit(&live);
    return st;
}

static const char *bind_point(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    (void)device;
    tide__sql_bind_text(stmt, 3, p->lifetimes.point_names[i]);
    return NULL;
}

static const char *bind_recomputed(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    (void)device;
    tide__sql_bind_text(stmt, 3, p->lifetimes.recomputed[i]);
    return NULL;
}

static const char *bind_dynamic(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    (void)device;
    tide__sql_bind_text(stmt, 3, p->lifetimes.dynamic[i]);
    return NULL;
}

static const char *bind_region(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    const tide_plan_region *x = &p->lifetimes.regions[i];
    (void)device;
    tide__sql_bind_text(stmt, 3, tide_plan_region_name(x));
    sqlite3_bind_int64(stmt, 4, x->open_step);
    sqlite3_bind_int64(stmt, 5, x->begin_step);
    sqlite3_bind_int64(stmt, 6, x->end_step);
    return NULL;
}

static const char *bind_step(sqlite3_stmt *stmt, const tide_memory_plan *p, size_t i, char *device) {
    (void)device;
    tide__sql_bind_text(stmt, 3, p->lifetimes.step_names[i]);
    return NULL;
}

tide_status tide__plan_rows_write(const tide__sql *s, int64_t run_id, const tide_memory_plan *plan, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    const struct {
        const char *insert;
        size_t n;
        bind_fn bind;
    } tables[] = {
        {"INSERT INTO plan_buffer VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", plan->n_buffers, bind_buffer},
        {"INSERT INTO plan_tensor VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
         lt->n, bind_tensor},
        {"INSERT INTO plan_pool VALUES(?, ?, ?, ?, ?, ?)", plan->n_pools, bind_pool},
        {"INSERT INTO plan_point VALUES(?, ?, ?)", lt->n_points, bind_point},
        {"INSERT INTO plan_recomputed VALUES(?, ?, ?)", lt->n_recomputed, bind_recomputed},
        {"INSERT INTO plan_dynamic VALUES(?, ?, ?)", lt->n_dynamic, bind_dynamic},
        {"INSERT INTO plan_region VALUES(?, ?, ?, ?, ?, ?)", lt->n_regions, bind_region},
        {"INSERT INTO plan_step VALUES(?, ?, ?)", lt->n_step_names, bind_step},
    };
    TIDE_TRY(write_head(s, run_id, plan, err));
    TIDE_TRY(write_process(s, run_id, plan, err));
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        TIDE_TRY(write_rows(s, tables[i].insert, run_id, plan, tables[i].n, tables[i].bind, err));
    TIDE_TRY(write_parts(s, run_id, plan, err));
    TIDE_TRY(write_gaps(s, run_id, plan, err));
    return write_point_sizes(s, run_id, plan, err);
}
