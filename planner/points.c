// SPDX-License-Identifier: MIT
//
// points: tables of one program at several sizes as one. See points.h.
#include "planner/points.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"

typedef struct merger {
    const tide_lifetimes *tables; // [n]
    const char *const *names;     // [n]
    size_t n, base;
    tide_strmap *by_name; // [n] tensor name -> index in tables[k]
    tide_lifetimes out;
    uint64_t *sizes; // [n] of the tensor being merged
    tide_error *err;
} merger;

static tide_status index_tables(merger *m) {
    m->by_name = tide_host_calloc(m->n, sizeof *m->by_name);
    m->sizes = tide_host_calloc(m->n, sizeof *m->sizes);
    if (m->by_name == NULL || m->sizes == NULL)
        return TIDE_NO_MEMORY(m->err, "for a table of %zu profile points", m->n);
    for (size_t k = 0; k < m->n; k++) {
        for (size_t i = 0; i < m->tables[k].n; i++) {
            if (tide_strmap_put(&m->by_name[k], m->tables[k].items[i].name, i) != TIDE_OK)
                return TIDE_NO_MEMORY(m->err, "for a table of %zu profile points", m->n);
        }
    }
    return TIDE_OK;
}

static tide_status check_steps(const merger *m, size_t k) {
    const tide_lifetimes *a = &m->tables[m->base], *b = &m->tables[k];
    if (a->n_steps != b->n_steps || a->n_step_names != b->n_step_names)
        return TIDE_FAIL(m->err, TIDE_ERR_INCOMPARABLE,
                         "the program differs between profile points: %lld steps at '%s', %lld at '%s'",
                         (long long)a->n_steps, m->names[m->base], (long long)b->n_steps, m->names[k]);
    for (size_t s = 0; s < a->n_step_names; s++) {
        if (strcmp(a->step_names[s], b->step_names[s]) == 0) continue;
        return TIDE_FAIL(m->err, TIDE_ERR_INCOMPARABLE,
                         "the program differs between profile points: step %zu is '%s' at '%s' and '%s' at '%s'", s,
                         a->step_names[s], m->names[m->base], b->step_names[s], m->names[k]);
    }
    return TIDE_OK;
}

/// A tensor that only some points have; scratch may be missing.
static tide_status differs(const merger *m, const char *tensor, size_t has, size_t lacks) {
    return TIDE_FAIL(m->err, TIDE_ERR_INCOMPARABLE,
                     "the program differs between profile points: tensor '%s' is there at '%s' and not at '%s'", tensor,
                     m->names[has], m->names[lacks]);
}

/// Sizes of the tensor at all points into m->sizes; it has the largest of them, and the bound of that point.
static tide_status find_sizes(const merger *m, tide_lifetime *item, size_t from) {
    for (size_t k = 0; k < m->n; k++) {
        uint64_t i = 0;
        const bool there = tide_strmap_get(&m->by_name[k], item->name, &i);
        if (!there && item->role != TIDE_ROLE_SCRATCH) return differs(m, item->name, from, k);
        m->sizes[k] = there ? m->tables[k].items[i].size_bytes : 0;
        if (m->sizes[k] <= item->size_bytes) continue;
        item->size_bytes = m->sizes[k];
        item->bound = m->tables[k].items[i].bound;
    }
    return TIDE_OK;
}

static tide_status add_item(merger *m, const tide_lifetime *from, size_t table) {
    tide_lifetime item = *from;
    TIDE_TRY(find_sizes(m, &item, table));
    item.alias = TIDE_ALIAS_NONE;
    item.alias_of = 0;
    item.alias_offset_bytes = 0;
    item.point_bytes = m->sizes;
    TIDE_ASSERT(item.size_bytes >= from->size_bytes && m->out.n_points == m->n);
    return tide_lifetimes_add(&m->out, &item, m->err);
}

tide_status tide_lifetimes_say_extents(const tide_program *program, tide_lifetimes *lt, tide_error *err) {
    char text[192];
    for (size_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        if (item->value == TIDE_NO_INDEX || item->bound != NULL) continue;
        tide_shape_format(&program->graph->values[item->value].shape, text, sizeof text);
        item->bound = tide_host_strdup(text);
        if (item->bound == NULL) return TIDE_NO_MEMORY(err, "for the extents of '%s'", item->name);
    }
    return TIDE_OK;
}

void tide_lifetimes_keep_bounds(const tide_program *program, tide_lifetimes *lt) {
    for (size_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        bool is_one = true;
        for (size_t k = 0; item->point_bytes != NULL && k < lt->n_points; k++)
            is_one = is_one && item->point_bytes[k] == item->size_bytes;
        const bool is_kept = item->value != TIDE_NO_INDEX && item->role != TIDE_ROLE_INPUT &&
                             (!is_one || program->graph->values[item->value].is_bounded);
        if (is_kept) continue;
        tide_host_free(item->bound);
        item->bound = NULL;
    }
}

static tide_status copy_name(const merger *m, const char *from, char **to) {
    *to = tide_host_strdup(from != NULL ? from : "");
    return *to != NULL ? TIDE_OK : TIDE_NO_MEMORY(m->err, "for a table of %zu profile points", m->n);
}

static tide_status copy_names(const merger *m, char *const *from, size_t n, char ***to, size_t *n_to) {
    if (n == 0) return TIDE_OK;
    *to = tide_host_calloc(n, sizeof **to);
    if (*to == NULL) return TIDE_NO_MEMORY(m->err, "for a table of %zu profile points", m->n);
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(copy_name(m, from[i], &(*to)[i]));
        *n_to = i + 1;
    }
    return TIDE_OK;
}

static tide_status copy_head(merger *m) {
    const tide_lifetimes *base = &m->tables[m->base];
    tide_lifetimes *out = &m->out;
    out->n_steps = base->n_steps;
    out->process = base->process;
    TIDE_TRY(copy_name(m, base->model, &out->model));
    TIDE_TRY(copy_names(m, base->step_names, base->n_step_names, &out->step_names, &out->n_step_names));
    TIDE_TRY(copy_names(m, base->recomputed, base->n_recomputed, &out->recomputed, &out->n_recomputed));
    TIDE_TRY(TIDE_NEW(&out->point_names, m->n, m->err, "for a table of %zu profile points", m->n));
    for (size_t k = 0; k < m->n; k++) {
        TIDE_TRY(copy_name(m, m->names[k], &out->point_names[k]));
        out->n_points = k + 1;
    }
    return TIDE_OK;
}

/// Tensors of other points that the base has not: scratch, or a difference.
static tide_status add_others(merger *m, size_t k) {
    for (size_t i = 0; i < m->tables[k].n; i++) {
        const tide_lifetime *item = &m->tables[k].items[i];
        uint64_t at;
        if (tide_strmap_get(&m->by_name[m->base], item->name, &at)) continue;
        if (item->role != TIDE_ROLE_SCRATCH) return differs(m, item->name, k, m->base);
        bool added = false; // by a point before this one
        for (size_t e = 0; e < k && !added; e++)
            added = e != m->base && tide_strmap_get(&m->by_name[e], item->name, &at);
        if (!added) TIDE_TRY(add_item(m, item, k));
    }
    return TIDE_OK;
}

static tide_status merge(merger *m) {
    TIDE_ASSERT(m->base < m->n);
    TIDE_TRY(index_tables(m));
    TIDE_TRY(copy_head(m));
    const tide_lifetimes *base = &m->tables[m->base];
    for (size_t k = 0; k < m->n; k++) TIDE_TRY(check_steps(m, k));
    for (size_t i = 0; i < base->n; i++) TIDE_TRY(add_item(m, &base->items[i], m->base));
    for (size_t k = 0; k < m->n; k++) {
        if (k != m->base) TIDE_TRY(add_others(m, k));
    }
    return TIDE_OK;
}

tide_status tide_lifetimes_merge_points(const tide_lifetimes *tables, const char *const *names, size_t n, size_t base,
                                        tide_lifetimes *out, tide_error *err) {
    merger m = {.tables = tables, .names = names, .n = n, .base = base, .err = err};
    const tide_status st = merge(&m);
    if (st == TIDE_OK) {
        *out = m.out;
    } else {
        tide_lifetimes_deinit(&m.out);
    }
    for (size_t k = 0; k < n && m.by_name != NULL; k++) tide_strmap_deinit(&m.by_name[k]);
    tide_host_free(m.by_name);
    tide_host_free(m.sizes);
    return st;
}
