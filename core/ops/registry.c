// SPDX-License-Identifier: MIT
//
// The operator registry: finds the row for a node, and says in words why there is none. See ops.h.
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "core/ops/attr_check.h"
#include "core/ops/bounds.h"
#include "core/ops/op_list.h"
#include "core/ops/ops.h"
#include "core/ops/widened.h"

// NULL-terminated, so that it stays a legal array while the lists are empty.
static const tide_op_def *const table[] = {
#define XX(name) &tide_op_##name,
    TIDE_OP_LIST(XX)
#undef XX
        NULL,
};
enum { N_ROWS = sizeof table / sizeof table[0] - 1 };

/// The table, or where rows were added a copy of it with those behind it.
static const tide_op_def *const *rows = table;
static const tide_op_def **extended; // owned; NULL: none were added
static size_t n_rows = N_ROWS;

static bool same_name(const tide_op_def *d, const char *domain, const char *name) {
    return strcmp(d->name, name) == 0 && strcmp(d->domain, domain) == 0;
}

const tide_op_def *tide_op_find(const char *domain, const char *name, int opset) {
    if (domain == NULL) domain = "";
    // A scan: it runs once per node at build, never while running, and the table has some hundred rows.
    for (size_t i = 0; i < n_rows; i++) {
        const tide_op_def *d = rows[i];
        if (opset >= d->since && (d->until == 0 || opset <= d->until) && same_name(d, domain, name)) return d;
    }
    return NULL;
}

size_t tide_op_table(const tide_op_def *const **out) {
    *out = rows;
    return n_rows;
}

// ---- rows of a program's own ----

static bool overlaps(const tide_op_def *a, const tide_op_def *b) {
    return same_name(a, b->domain, b->name) && (a->until == 0 || b->since <= a->until) &&
           (b->until == 0 || a->since <= b->until);
}

static tide_status check_row(const tide_op_def *d, size_t i, tide_error *err) {
    if (d == NULL || d->name == NULL || d->name[0] == '\0' || d->domain == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "operator %zu of those to be added has no name or no domain", i);
    const char *what = d->infer == NULL                                         ? "has no infer function"
                       : d->run == NULL && !(d->flags & TIDE_OP_PLAN_ONLY)      ? "has no kernel (TIDE_OP_PLAN_ONLY)"
                       : d->since < 1 || (d->until != 0 && d->until < d->since) ? "serves no version"
                       : d->max_inputs != 0 && d->max_inputs < d->min_inputs    ? "takes fewer inputs than it needs"
                       : d->max_outputs != 0 && d->max_outputs < d->min_outputs ? "makes fewer outputs than it must"
                       : d->exec_create != NULL && d->exec_destroy == NULL      ? "makes what it does not destroy"
                       : strcmp(d->domain, "ai.onnx") == 0 ? "is of domain \"ai.onnx\", which is written \"\""
                                                           : NULL;
    if (what != NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "operator '%s' of domain '%s' %s", d->name, d->domain, what);
    for (size_t k = 0; k < n_rows; k++)
        if (overlaps(rows[k], d))
            return TIDE_FAIL(err, TIDE_ERR_INVALID,
                             "operator '%s' of domain '%s' is served already, from version %d on", d->name, d->domain,
                             rows[k]->since);
    return TIDE_OK;
}

tide_status tide_ops_add(const tide_op_def *const *added, size_t n, tide_error *err) {
    const size_t n_before = n_rows;
    const tide_op_def **all;
    TIDE_TRY(TIDE_NEW(&all, n_before + n + 1, err, "for %zu operators", n));
    memcpy(all, rows, n_before * sizeof *all);
    const tide_op_def *const *before = rows;
    rows = all; // each is held against those before it as well
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < n && st == TIDE_OK; i++) {
        st = check_row(added[i], i, err);
        if (st == TIDE_OK) all[n_rows++] = added[i];
    }
    if (st != TIDE_OK) {
        rows = before;
        n_rows = n_before;
        tide_host_free(all);
        return st;
    }
    tide_host_free(extended);
    extended = all;
    return TIDE_OK;
}

void tide_ops_remove_added(void) {
    rows = table;
    n_rows = N_ROWS;
    tide_host_free(extended);
    extended = NULL;
}

// ---- why there is no row ----

static const char *name_at(const void *ctx, size_t i) {
    (void)ctx;
    return rows[i]->name;
}

static const tide_op_def *nearest(const char *name) {
    const char *near = tide_nearest_word(name, name_at, NULL, n_rows);
    for (size_t i = 0; near != NULL && i < n_rows; i++)
        if (rows[i]->name == near) return rows[i];
    return NULL;
}

// "7 to 12, 14 and later" for the rows of that name; false when there is none.
static bool versions(const char *domain, const char *name, char *buf, size_t buf_bytes) {
    size_t len = 0;
    for (size_t i = 0; i < n_rows && len < buf_bytes; i++) {
        const tide_op_def *d = rows[i];
        if (!same_name(d, domain, name)) continue;
        const char *sep = len > 0 ? ", " : "";
        const int n = d->until == 0 ? snprintf(buf + len, buf_bytes - len, "%s%d and later", sep, d->since)
                                    : snprintf(buf + len, buf_bytes - len, "%s%d to %d", sep, d->since, d->until);
        len += n > 0 ? (size_t)n : 0;
    }
    return len > 0;
}

static tide_status fail_missing(const tide_node *n, tide_error *err) {
    const char *dot = n->domain[0] != '\0' ? "." : "";
    TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "operator '%s%s%s' of node '%s' is not implemented for opset %d",
              n->domain, dot, n->op_type, n->name, n->opset);
    char served[160];
    const tide_op_def *near = NULL;
    if (versions(n->domain, n->op_type, served, sizeof served))
        tide_error_hint(err, "%s is served for opset %s", n->op_type, served);
    else if ((near = nearest(n->op_type)) != NULL)
        tide_error_hint(err, "the nearest known operator is '%s%s%s'", near->domain, near->domain[0] != '\0' ? "." : "",
                        near->name);
    return TIDE_ERR_NOT_IMPLEMENTED;
}

// ---- arity ----

// Positions up to the last one that is not left out: exporters pad with empty names.
static size_t n_used(const uint32_t *values, size_t n) {
    while (n > 0 && values[n - 1] == TIDE_NO_VALUE) n--;
    return n;
}

static tide_status fail_arity(const tide_node *n, const char *what, size_t have, size_t min, size_t max,
                              tide_error *err) {
    char takes[64];
    if (max == 0)
        snprintf(takes, sizeof takes, "at least %zu", min);
    else if (min == max)
        snprintf(takes, sizeof takes, "%zu", min);
    else
        snprintf(takes, sizeof takes, "%zu to %zu", min, max);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s' has %zu %s%s, the operator takes %s", n->op_type, n->name, have,
                     what, have == 1 ? "" : "s", takes);
}

static tide_status check_arity(const tide_node *n, const tide_op_def *d, tide_error *err) {
    const size_t n_in = n_used(n->inputs, n->n_inputs), n_out = n_used(n->outputs, n->n_outputs);
    if (n_in < d->min_inputs || (d->max_inputs != 0 && n_in > d->max_inputs))
        return fail_arity(n, "input", n_in, d->min_inputs, d->max_inputs, err);
    if (n_out < d->min_outputs || (d->max_outputs != 0 && n_out > d->max_outputs))
        return fail_arity(n, "output", n_out, d->min_outputs, d->max_outputs, err);
    for (size_t i = 0; i < d->min_inputs; i++)
        if (n->inputs[i] == TIDE_NO_VALUE)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s': input %zu is left out, the operator needs it",
                             n->op_type, n->name, i);
    for (size_t i = 0; d->max_outputs != 0 && i < d->min_outputs; i++)
        if (n->outputs[i] == TIDE_NO_VALUE)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s '%s': output %zu is left out, the operator always has it",
                             n->op_type, n->name, i);
    return TIDE_OK;
}

tide_status tide_ops_resolve(tide_graph *g, tide_error *err) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        tide_node *n = &g->nodes[i];
        if (n->dead) continue;
        const tide_op_def *d = tide_op_find(n->domain, n->op_type, n->opset);
        if (d == NULL) return fail_missing(n, err);
        TIDE_TRY(check_arity(n, d, err));
        TIDE_TRY(tide_op_check_attrs(n, d, rows, n_rows, err));
        n->def = d;
        n->rule = tide_op_bound;
        n->widen = tide_op_widen;
    }
    return TIDE_OK;
}
