// SPDX-License-Identifier: MIT
//
// The tensors of a stored plan: lifetimes and places, gaps, sizes at profile points, aliases. See plan_rows.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "profiler/store/plan_rows_internal.h"

// ---- what belongs to tensors ----

tide_status tide__plan_take_gap(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    uint64_t number, begin, end;
    if (r->n_gaps >= r->n.n_gaps) return tide__plan_bad_row(r, "plan_gap", row_i);
    tide__gap_row *g = &r->gaps[r->n_gaps];
    const bool good = tide__sql_u64(stmt, 0, &g->tensor_i) && tide__sql_u64(stmt, 1, &number) &&
                      tide__sql_u64(stmt, 2, &begin) && tide__sql_u64(stmt, 3, &end) &&
                      tide__sql_u64(stmt, 4, &g->gap.lo_bytes) && tide__sql_u64(stmt, 5, &g->gap.hi_bytes);
    // Numbers count from 0 within a tensor.
    const bool first = r->n_gaps == 0 || r->gaps[r->n_gaps - 1].tensor_i != g->tensor_i;
    if (!good || (first && number != 0)) return tide__plan_bad_row(r, "plan_gap", row_i);
    g->gap.begin_step = (int64_t)begin;
    g->gap.end_step = (int64_t)end;
    r->n_gaps++;
    return TIDE_OK;
}

tide_status tide__plan_take_size(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    if (r->n_sizes >= r->n.n_sizes) return tide__plan_bad_row(r, "plan_point_size", row_i);
    tide__size_row *z = &r->sizes[r->n_sizes++];
    const bool good =
        tide__sql_u64(stmt, 0, &z->tensor_i) && tide__sql_u64(stmt, 1, &z->point) && tide__sql_u64(stmt, 2, &z->bytes);
    return good ? TIDE_OK : tide__plan_bad_row(r, "plan_point_size", row_i);
}

/// The tensor's gaps, which come next in the list, into `item`; memory of the caller's.
static tide_status give_gaps(tide__plan_reader *r, size_t tensor_i, tide_lifetime *item) {
    size_t n = 0;
    while (r->next_gap + n < r->n_gaps && r->gaps[r->next_gap + n].tensor_i == tensor_i) n++;
    if (n == 0) return TIDE_OK;
    item->gaps = tide_host_calloc(n, sizeof *item->gaps);
    if (item->gaps == NULL) return tide__plan_no_memory(r);
    for (size_t k = 0; k < n; k++) item->gaps[k] = r->gaps[r->next_gap + k].gap;
    item->n_gaps = (uint32_t)n;
    r->next_gap += n;
    return TIDE_OK;
}

static tide_status give_sizes(tide__plan_reader *r, size_t tensor_i, tide_lifetime *item) {
    const size_t n = r->p->lifetimes.n_points;
    if (r->next_size >= r->n_sizes || r->sizes[r->next_size].tensor_i != tensor_i) return TIDE_OK;
    item->point_bytes = n > 0 ? tide_host_calloc(n, sizeof *item->point_bytes) : NULL;
    if (n == 0) return tide__plan_bad_row(r, "plan_point_size", r->next_size);
    if (item->point_bytes == NULL) return tide__plan_no_memory(r);
    for (size_t k = 0; k < n; k++, r->next_size++) {
        if (r->next_size >= r->n_sizes || r->sizes[r->next_size].tensor_i != tensor_i ||
            r->sizes[r->next_size].point != k)
            return tide__plan_bad_row(r, "plan_point_size", r->next_size);
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
static bool alias_columns(sqlite3_stmt *stmt, size_t tensor_i, tide__alias_row *out, bool *has) {
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

static tide_status add_tensor(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i, tide_lifetime *item) {
    uint64_t idx, begin_step, end_step, kind, persistent, aligned_bytes;
    tide__alias_row alias;
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
    if (!good) return tide__plan_bad_row(r, "plan_tensor", row_i);
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
        return tide__plan_bad_row(r, "plan_tensor", row_i);
    if (!is_alias) return TIDE_OK;
    if (tide_host_grow(&r->aliases, &r->cap_aliases, r->n_aliases + 1, sizeof *r->aliases) != TIDE_OK)
        return tide__plan_no_memory(r);
    r->aliases[r->n_aliases++] = alias;
    return TIDE_OK;
}

tide_status tide__plan_take_tensor(tide__plan_reader *r, sqlite3_stmt *stmt, size_t row_i) {
    // The table copies what the item has; until then SQLite lends the name.
    tide_lifetime item = {.name = tide_host_strdup(tide__sql_text(stmt, 1))};
    const tide_status st = item.name != NULL ? add_tensor(r, stmt, row_i, &item) : tide__plan_no_memory(r);
    tide_host_free(item.name);
    tide_host_free(item.gaps);
    tide_host_free(item.point_bytes);
    return st;
}

tide_status tide__plan_make_aliases(tide__plan_reader *r) {
    for (size_t k = 0; k < r->n_aliases; k++) {
        const tide__alias_row *a = &r->aliases[k];
        const tide_status st =
            tide_lifetimes_alias(&r->p->lifetimes, a->tensor_i, a->kind, a->of, a->offset_bytes, r->err);
        if (st != TIDE_OK) return tide__plan_bad_row(r, "plan_tensor", a->tensor_i);
    }
    return TIDE_OK;
}
