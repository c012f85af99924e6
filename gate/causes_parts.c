// SPDX-License-Identifier: MIT
//
// The waterfall: what each operator, and each kind, holds at both peaks. Each byte that is held is some tensor's or a
// hole, so both lists sum to the change exactly.
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "gate/causes_internal.h"

/// What stands for the operator of a tensor that none makes.
static const char *owner_key(const tide_gate_tensor *t) {
    if (t->owner != NULL && t->owner[0] != '\0') return t->owner;
    switch (t->kind) {
    case TIDE_KIND_PERSISTENT:
        return "(weights)";
    case TIDE_KIND_DEFAULT:
        return "(inputs and outputs)";
    default:
        return "(no operator)";
    }
}

static tide_status put(tide__causing *g, const tide_gate_tensor *t, bool is_b) {
    const char *key = owner_key(t);
    uint64_t i;
    if (!tide_strmap_get(&g->owner_index, key, &i)) {
        if (tide_host_grow(&g->owners, &g->cap_owners, g->n_owners + 1, sizeof *g->owners) != TIDE_OK ||
            tide_strmap_put(&g->owner_index, key, g->n_owners) != TIDE_OK)
            return tide__causes_no_memory(g->err);
        i = g->n_owners++;
        g->owners[i] = (tide__cause_owner){.key = key};
    }
    tide__cause_owner *o = &g->owners[i];
    const tide_gate_tensor **largest = is_b ? &o->b_largest : &o->a_largest;
    *(is_b ? &o->b_bytes : &o->a_bytes) += t->at_peak_bytes; // no more than held_bytes: the case was checked
    if (t->at_peak_bytes > (*largest != NULL ? (*largest)->at_peak_bytes : 0)) *largest = t;
    return TIDE_OK;
}

tide_status tide__causes_find_owners(tide__causing *g) {
    for (size_t i = 0; i < g->a->n_tensors; i++) TIDE_TRY(put(g, &g->a->tensors[i], false));
    for (size_t i = 0; i < g->b->n_tensors; i++) TIDE_TRY(put(g, &g->b->tensors[i], true));
    return TIDE_OK;
}

tide__cause_owner *tide__causes_owner(const tide__causing *g, const char *key) {
    uint64_t i;
    return tide_strmap_get(&g->owner_index, key, &i) ? &g->owners[i] : NULL;
}

// ---- parts ----

static int compare_parts(const void *a, const void *b) {
    const tide_gate_part *x = a, *y = b;
    const int64_t dx = llabs(tide__change(x->a_bytes, x->b_bytes)), dy = llabs(tide__change(y->a_bytes, y->b_bytes));
    if (dx != dy) return dx > dy ? -1 : 1;
    return strcmp(x->key, y->key);
}

/// Parts that did not change add nothing and are left out.
static tide_status add_part(const tide__causing *g, tide_gate_part *list, size_t *n, const char *key, uint64_t a,
                            uint64_t b) {
    if (a == b) return TIDE_OK;
    char *copy = tide_host_strdup(key);
    if (copy == NULL) return tide__causes_no_memory(g->err);
    list[(*n)++] = (tide_gate_part){.key = copy, .a_bytes = a, .b_bytes = b};
    return TIDE_OK;
}

static tide_status finish(const tide__causing *g, tide_gate_part *list, size_t *n) {
    TIDE_TRY(add_part(g, list, n, "holes", g->a->holes_bytes, g->b->holes_bytes));
    if (*n > 1) qsort(list, *n, sizeof *list, compare_parts);
    return TIDE_OK;
}

tide_status tide__causes_add_parts(tide__causing *g) {
    tide_gate_judged *out = g->out;
    uint64_t a[TIDE_N_KINDS] = {0}, b[TIDE_N_KINDS] = {0};
    out->by_operator = tide_host_calloc(g->n_owners + 1, sizeof *out->by_operator);
    out->by_kind = tide_host_calloc(TIDE_N_KINDS + 1, sizeof *out->by_kind);
    if (out->by_operator == NULL || out->by_kind == NULL) return tide__causes_no_memory(g->err);
    for (size_t i = 0; i < g->n_owners; i++) {
        const tide__cause_owner *o = &g->owners[i];
        TIDE_TRY(add_part(g, out->by_operator, &out->n_by_operator, o->key, o->a_bytes, o->b_bytes));
    }
    for (size_t i = 0; i < g->a->n_tensors; i++) a[g->a->tensors[i].kind] += g->a->tensors[i].at_peak_bytes;
    for (size_t i = 0; i < g->b->n_tensors; i++) b[g->b->tensors[i].kind] += g->b->tensors[i].at_peak_bytes;
    for (int k = 0; k < TIDE_N_KINDS; k++)
        TIDE_TRY(add_part(g, out->by_kind, &out->n_by_kind, tide_memory_kind_name((tide_memory_kind)k), a[k], b[k]));
    TIDE_TRY(finish(g, out->by_operator, &out->n_by_operator));
    return finish(g, out->by_kind, &out->n_by_kind);
}
