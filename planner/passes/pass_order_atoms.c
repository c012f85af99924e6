// SPDX-License-Identifier: MIT
//
// Atoms: the bytes of all roots, cut where a tensor begins or ends. See pass_order_model.h.
#include <stdlib.h>

#include "core/base/host_alloc.h"
#include "planner/passes/pass_order_model_internal.h"

/// More pairs of tensor and atom than this in one root (thousands of Concats nested): its members count apart instead.
enum { MAX_PAIRS = 1 << 20 };

static tide_status no_memory(const tide__order_facts *f, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an order of %zu steps", f->n_steps);
}

static uint64_t end_of(const tide__order_facts *f, uint32_t t) {
    const tide__fact_tensor *x = &f->tensors[t];
    return x->root == t ? x->own_bytes : x->at_bytes + x->size_bytes;
}

static int compare_u64(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

typedef struct cutter {
    const tide__order_facts *f;
    tide__order_model *m;
    size_t cap_atoms;
    uint64_t *cuts; // room for those of one root
    size_t cap_cuts;
    tide__fact_pairs covers; // atom, tensor
} cutter;

static tide_status add_atom(cutter *c, uint64_t bytes, uint32_t *out, tide_error *err) {
    if (tide_host_grow(&c->m->atoms, &c->cap_atoms, c->m->n_atoms + 1, sizeof *c->m->atoms) != TIDE_OK)
        return no_memory(c->f, err);
    *out = (uint32_t)c->m->n_atoms++;
    c->m->atoms[*out] = (tide__model_atom){.bytes = bytes};
    return TIDE_OK;
}

static tide_status take_whole(cutter *c, uint32_t t, uint64_t bytes, tide_error *err) {
    uint32_t atom = 0;
    TIDE_TRY(add_atom(c, bytes, &atom, err));
    c->m->tensors[t].atoms = (tide__span){atom, 1};
    return tide__facts_add_pair(&c->covers, atom, t, err);
}

static tide_status list_cuts(cutter *c, uint32_t root, size_t *n_cuts, size_t *n_members, tide_error *err) {
    size_t n = 0, members = 0;
    uint32_t t = root;
    do {
        if (tide_host_grow(&c->cuts, &c->cap_cuts, n + 2, sizeof *c->cuts) != TIDE_OK) return no_memory(c->f, err);
        c->cuts[n++] = c->f->tensors[t].at_bytes;
        c->cuts[n++] = end_of(c->f, t);
        members++;
        t = c->f->tensors[t].next;
    } while (t != root);
    qsort(c->cuts, n, sizeof *c->cuts, compare_u64);
    size_t unique = 0;
    for (size_t i = 0; i < n; i++) {
        if (unique == 0 || c->cuts[i] != c->cuts[unique - 1]) c->cuts[unique++] = c->cuts[i];
    }
    *n_cuts = unique;
    *n_members = members;
    return TIDE_OK;
}

static size_t find_cut(const cutter *c, size_t n_cuts, uint64_t at) {
    size_t lo = 0, hi = n_cuts;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (c->cuts[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static tide_status cut_root(cutter *c, uint32_t root, tide_error *err) {
    size_t n_cuts = 0, n_members = 0;
    TIDE_TRY(list_cuts(c, root, &n_cuts, &n_members, err));
    const bool apart = n_members > 1 && n_cuts * n_members > MAX_PAIRS;
    const uint32_t first = (uint32_t)c->m->n_atoms;
    for (size_t i = 0; !apart && i + 1 < n_cuts; i++) {
        uint32_t unused;
        TIDE_TRY(add_atom(c, c->cuts[i + 1] - c->cuts[i], &unused, err));
    }
    uint32_t t = root;
    do {
        if (apart) {
            TIDE_TRY(take_whole(c, t, c->f->tensors[t].own_bytes, err));
        } else {
            const uint32_t lo = first + (uint32_t)find_cut(c, n_cuts, c->f->tensors[t].at_bytes);
            const uint32_t hi = first + (uint32_t)find_cut(c, n_cuts, end_of(c->f, t));
            c->m->tensors[t].atoms = (tide__span){lo, hi - lo};
            for (uint32_t atom = lo; atom < hi; atom++) TIDE_TRY(tide__facts_add_pair(&c->covers, atom, t, err));
        }
        t = c->f->tensors[t].next;
    } while (t != root);
    return TIDE_OK;
}

tide_status tide__model_cut(const tide__order_facts *f, tide__order_model *m, tide_error *err) {
    cutter c = {.f = f, .m = m};
    tide__table covers = {0};
    tide_status st = TIDE_OK;
    for (uint32_t t = 0; t < f->n_tensors && st == TIDE_OK; t++) {
        if (f->tensors[t].root == t) st = cut_root(&c, t, err);
    }
    if (st == TIDE_OK && !tide__table_make(&covers, c.covers.list, c.covers.n, m->n_atoms, true))
        st = no_memory(f, err);
    for (size_t a = 0; st == TIDE_OK && a < m->n_atoms; a++) m->atoms[a].covers = tide__table_span(&covers, a);
    m->covers = covers.items;
    covers.items = NULL;
    tide__table_deinit(&covers);
    tide_host_free(c.cuts);
    tide_host_free(c.covers.list);
    return st;
}
