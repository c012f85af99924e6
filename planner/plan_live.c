// SPDX-License-Identifier: MIT
//
// What a plan has alive at a step, tensor by tensor. See plan_live.h.
//
// Bytes that aliases share count once (tide_lifetimes_occupied). Of tensors that lie in one root each byte that is
// needed at a step belongs to the first of them that is alive and has it: the root itself, then the larger alias:
//
//     needed   [##########....####]       root dead, two aliases alive
//     a        [########]                 counts 8
//     b            [######]               counts 2: the rest is a's
#include "planner/plan_live.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"

void tide_plan_live_deinit(tide_plan_live *l) {
    tide_host_free(l->occupied);
    tide_host_free(l->root);
    tide_host_free(l->root_bytes);
    tide_host_free(l->changes);
    *l = (tide_plan_live){0};
}

static int by_step(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/// Steps of the axis at which something begins or ends, once each.
static void make_changes(const tide_lifetimes *lt, tide_plan_live *l) {
    size_t n = 0;
    for (size_t i = 0; i < lt->n; i++) {
        l->changes[n++] = lt->items[i].begin_step;
        if (lt->items[i].end_step < lt->n_steps) l->changes[n++] = lt->items[i].end_step;
    }
    if (n > 1) qsort(l->changes, n, sizeof *l->changes, by_step);
    for (size_t i = 0; i < n; i++)
        if (l->n_changes == 0 || l->changes[i] != l->changes[l->n_changes - 1])
            l->changes[l->n_changes++] = l->changes[i];
}

tide_status tide_plan_live_make(const tide_memory_plan *plan, tide_plan_live *out, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide_plan_live l = {0};
    TIDE_TRY(tide_lifetimes_occupied(lt, &l.occupied, &l.n_occupied, err));
    l.root = tide_host_alloc((lt->n + 1) * sizeof *l.root);
    l.root_bytes = tide_host_alloc((lt->n + 1) * sizeof *l.root_bytes);
    l.changes = tide_host_alloc((2 * lt->n + 1) * sizeof *l.changes);
    if (l.root == NULL || l.root_bytes == NULL || l.changes == NULL) {
        tide_plan_live_deinit(&l);
        return TIDE_NO_MEMORY(err, "for the tensors of a plan");
    }
    for (uint32_t i = 0; i < lt->n; i++) l.root[i] = tide_lifetimes_root(lt, i, &l.root_bytes[i]);
    make_changes(lt, &l);
    *out = l;
    return TIDE_OK;
}

/// One that is alive, and which bytes of its root it needs.
typedef struct member {
    uint32_t root, tensor;
    uint64_t lo, hi;
} member;

/// A stretch of a root that is needed, and how much of it is assigned to a tensor.
typedef struct stretch {
    uint32_t root;
    uint64_t lo, hi;
} stretch;

static int by_root(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    const bool x_root = x->tensor == x->root, y_root = y->tensor == y->root;
    if (x_root != y_root) return x_root ? -1 : 1;
    if (x->hi - x->lo != y->hi - y->lo) return x->hi - x->lo > y->hi - y->lo ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int stretch_by_root(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/// What a tensor needs of its root at `step`: a root may have gaps.
static member need_of(const tide_lifetimes *lt, const tide_plan_live *l, uint32_t i, int64_t step) {
    const tide_lifetime *t = &lt->items[i];
    member m = {.root = l->root[i], .tensor = i, .lo = l->root_bytes[i]};
    m.hi = m.lo + t->size_bytes;
    if (m.root != i) return m;
    m.lo = 0;
    m.hi = tide_lifetime_aligned_bytes(t);
    for (uint32_t g = 0; g < t->n_gaps; g++) {
        if (t->gaps[g].begin_step > step || step >= t->gaps[g].end_step) continue;
        m.lo = t->gaps[g].lo_bytes;
        m.hi = t->gaps[g].hi_bytes;
    }
    return m;
}

/// Share the stretches of one root among its members, in their order. `s` has room for one more each time a stretch is
/// cut in two. Bytes outside all ranges (rounding to the root's alignment) go to the first member.
static tide_status share(const member *m, size_t n_members, stretch **s, size_t *n, size_t *cap, uint64_t *counts) {
    for (size_t k = 0; k < n_members; k++) {
        const size_t n_now = *n;
        for (size_t i = 0; i < n_now; i++) {
            stretch *x = &(*s)[i];
            const uint64_t lo = x->lo > m[k].lo ? x->lo : m[k].lo, hi = x->hi < m[k].hi ? x->hi : m[k].hi;
            if (lo >= hi) continue;
            counts[m[k].tensor] += hi - lo;
            const stretch right = {x->root, hi, x->hi};
            x->hi = lo;
            if (right.lo >= right.hi) continue;
            TIDE_TRY(tide_host_grow(s, cap, *n + 1, sizeof **s));
            (*s)[(*n)++] = right;
        }
    }
    for (size_t i = 0; n_members > 0 && i < *n; i++) counts[m[0].tensor] += (*s)[i].hi - (*s)[i].lo;
    return TIDE_OK;
}

static tide_status share_all(const member *m, size_t n_members, const stretch *needed, size_t n_needed,
                             uint64_t *counts) {
    stretch *own = NULL;
    size_t cap = 0, at = 0;
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < n_members;) {
        size_t end = i, n = 0;
        while (end < n_members && m[end].root == m[i].root) end++;
        while (at < n_needed && needed[at].root < m[i].root) at++;
        for (; st == TIDE_OK && at < n_needed && needed[at].root == m[i].root; at++) {
            st = tide_host_grow(&own, &cap, n + 1, sizeof *own);
            if (st == TIDE_OK) own[n++] = needed[at];
        }
        if (st == TIDE_OK) st = share(m + i, end - i, &own, &n, &cap, counts);
        i = end;
    }
    tide_host_free(own);
    return st;
}

tide_status tide_plan_live_counts(const tide_memory_plan *plan, const tide_plan_live *l, int64_t step, uint64_t *counts,
                                  tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    member *m = tide_host_alloc((lt->n + 1) * sizeof *m);
    stretch *needed = tide_host_alloc((l->n_occupied + 1) * sizeof *needed);
    size_t n_members = 0, n_needed = 0;
    tide_status st = m != NULL && needed != NULL ? TIDE_OK : TIDE_ERR_NOMEM;
    memset(counts, 0, lt->n * sizeof *counts);
    for (uint32_t i = 0; st == TIDE_OK && i < lt->n; i++) {
        const tide_lifetime *t = &lt->items[i];
        if (step < t->begin_step || step >= t->end_step) continue;
        if (t->persistent) counts[i] = tide_lifetime_aligned_bytes(t);
        if (!t->persistent) m[n_members++] = need_of(lt, l, i, step);
    }
    for (size_t i = 0; st == TIDE_OK && i < l->n_occupied; i++) {
        const tide_occupied *o = &l->occupied[i];
        if (o->begin_step <= step && step < o->end_step)
            needed[n_needed++] = (stretch){o->root, o->lo_bytes, o->hi_bytes};
    }
    if (st == TIDE_OK) {
        qsort(m, n_members, sizeof *m, by_root);
        qsort(needed, n_needed, sizeof *needed, stretch_by_root);
        st = share_all(m, n_members, needed, n_needed, counts);
    }
    tide_host_free(m);
    tide_host_free(needed);
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for the tensors of a plan");
}

void tide_plan_live_bytes(const tide_memory_plan *plan, const tide_plan_live *l, const tide_plan_buffer *buffer,
                          uint64_t *bytes) {
    const tide_lifetimes *lt = &plan->lifetimes;
    memset(bytes, 0, (size_t)lt->n_steps * sizeof *bytes);
    // As differences first: the sums stay right where one of them wraps.
    for (size_t i = 0; i < l->n_occupied; i++) {
        const tide_occupied *o = &l->occupied[i];
        const tide_lifetime *root = &lt->items[o->root];
        if (root->kind != buffer->kind || !tide_device_equal(root->device, buffer->device)) continue;
        const int64_t begin = o->begin_step > 0 ? o->begin_step : 0;
        if (begin < lt->n_steps) bytes[begin] += o->hi_bytes - o->lo_bytes;
        if (o->end_step > begin && o->end_step < lt->n_steps) bytes[o->end_step] -= o->hi_bytes - o->lo_bytes;
    }
    for (int64_t step = 1; step < lt->n_steps; step++) bytes[step] += bytes[step - 1];
}

// ---- parts: what each tensor keeps, from when to when ----

typedef struct parts_maker {
    const tide_lifetimes *lt;
    const tide_plan_live *live;
    tide_plan_part *parts; // [n], owned
    size_t n, cap;
    uint64_t *counts; // [tensors] of one stretch, 0 between two; owned
    size_t *last;     // [tensors] the last part of each + 1; 0: none yet; owned
    member *members;  // [tensors] that are alive in a stretch; owned
    stretch *needed;  // [occupied]; owned
    int64_t *cuts;    // of one class; owned
    size_t n_cuts, cap_cuts;
} parts_maker;

static tide_status add_cut(parts_maker *m, int64_t step) {
    TIDE_TRY(tide_host_grow(&m->cuts, &m->cap_cuts, m->n_cuts + 1, sizeof *m->cuts));
    m->cuts[m->n_cuts++] = step;
    return TIDE_OK;
}

/// Goes on with the tensor's last part where nothing has changed.
static tide_status add_part(parts_maker *m, uint32_t tensor, int64_t begin, int64_t end) {
    const uint64_t bytes = m->counts[tensor];
    tide_plan_part *last = m->last[tensor] > 0 ? &m->parts[m->last[tensor] - 1] : NULL;
    if (last != NULL && last->end_step == begin && last->bytes == bytes) {
        last->end_step = end;
        return TIDE_OK;
    }
    TIDE_TRY(tide_host_grow(&m->parts, &m->cap, m->n + 1, sizeof *m->parts));
    m->parts[m->n++] = (tide_plan_part){tensor, begin, end, bytes};
    m->last[tensor] = m->n;
    return TIDE_OK;
}

/// Steps [begin, end) of a class, in which no member is born or dies.
static tide_status add_steps(parts_maker *m, const uint32_t *tensors, size_t n, const tide_occupied *occupied,
                             size_t n_occupied, int64_t begin, int64_t end) {
    size_t n_members = 0, n_needed = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_lifetime *t = &m->lt->items[tensors[i]];
        if (t->begin_step <= begin && end <= t->end_step)
            m->members[n_members++] = need_of(m->lt, m->live, tensors[i], begin);
    }
    for (size_t i = 0; i < n_occupied; i++)
        if (occupied[i].begin_step <= begin && end <= occupied[i].end_step)
            m->needed[n_needed++] = (stretch){occupied[i].root, occupied[i].lo_bytes, occupied[i].hi_bytes};
    qsort(m->members, n_members, sizeof *m->members, by_root);
    qsort(m->needed, n_needed, sizeof *m->needed, stretch_by_root);
    TIDE_TRY(share_all(m->members, n_members, m->needed, n_needed, m->counts));
    for (size_t i = 0; i < n_members; i++) {
        TIDE_TRY(add_part(m, m->members[i].tensor, begin, end));
        m->counts[m->members[i].tensor] = 0;
    }
    return TIDE_OK;
}

static tide_status add_class(parts_maker *m, const uint32_t *tensors, size_t n, const tide_occupied *occupied,
                             size_t n_occupied) {
    m->n_cuts = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_lifetime *t = &m->lt->items[tensors[i]];
        TIDE_TRY(add_cut(m, t->begin_step));
        TIDE_TRY(add_cut(m, t->end_step));
        for (uint32_t g = 0; g < t->n_gaps; g++) {
            TIDE_TRY(add_cut(m, t->gaps[g].begin_step));
            TIDE_TRY(add_cut(m, t->gaps[g].end_step));
        }
    }
    for (size_t i = 0; i < n_occupied; i++) {
        TIDE_TRY(add_cut(m, occupied[i].begin_step));
        TIDE_TRY(add_cut(m, occupied[i].end_step));
    }
    qsort(m->cuts, m->n_cuts, sizeof *m->cuts, by_step);
    for (size_t i = 0; i + 1 < m->n_cuts; i++)
        if (m->cuts[i] < m->cuts[i + 1])
            TIDE_TRY(add_steps(m, tensors, n, occupied, n_occupied, m->cuts[i], m->cuts[i + 1]));
    return TIDE_OK;
}

typedef struct classed {
    uint32_t root, tensor;
} classed;

static int by_class(const void *a, const void *b) {
    const classed *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int occupied_by_root(const void *a, const void *b) {
    const tide_occupied *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return (x->begin_step > y->begin_step) - (x->begin_step < y->begin_step);
}

static int by_tensor(const void *a, const void *b) {
    const tide_plan_part *x = a, *y = b;
    if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
    return (x->begin_step > y->begin_step) - (x->begin_step < y->begin_step);
}

static tide_status add_classes(parts_maker *m, classed *order, uint32_t *tensors, tide_occupied *occupied) {
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < m->lt->n; i++)
        if (!m->lt->items[i].persistent) order[n++] = (classed){m->live->root[i], i};
    if (n > 1) qsort(order, n, sizeof *order, by_class);
    for (size_t i = 0; i < n; i++) tensors[i] = order[i].tensor;
    if (m->live->n_occupied > 0) memcpy(occupied, m->live->occupied, m->live->n_occupied * sizeof *occupied);
    if (m->live->n_occupied > 1) qsort(occupied, m->live->n_occupied, sizeof *occupied, occupied_by_root);
    for (size_t i = 0, end; i < n; i = end) {
        const uint32_t root = order[i].root;
        for (end = i; end < n && order[end].root == root;) end++;
        while (at < m->live->n_occupied && occupied[at].root < root) at++;
        const size_t first = at;
        while (at < m->live->n_occupied && occupied[at].root == root) at++;
        TIDE_TRY(add_class(m, &tensors[i], end - i, &occupied[first], at - first));
    }
    return TIDE_OK;
}

tide_status tide_plan_live_parts(const tide_memory_plan *plan, const tide_plan_live *l, tide_plan_part **out, size_t *n,
                                 tide_error *err) {
    const size_t n_tensors = plan->lifetimes.n;
    parts_maker m = {.lt = &plan->lifetimes, .live = l};
    m.counts = tide_host_calloc(n_tensors + 1, sizeof *m.counts);
    m.last = tide_host_calloc(n_tensors + 1, sizeof *m.last);
    m.members = tide_host_alloc((n_tensors + 1) * sizeof *m.members);
    m.needed = tide_host_alloc((l->n_occupied + 1) * sizeof *m.needed);
    classed *order = tide_host_alloc((n_tensors + 1) * sizeof *order);
    uint32_t *tensors = tide_host_alloc((n_tensors + 1) * sizeof *tensors);
    tide_occupied *occupied = tide_host_alloc((l->n_occupied + 1) * sizeof *occupied);
    const bool good = m.counts != NULL && m.last != NULL && m.members != NULL && m.needed != NULL && order != NULL &&
                      tensors != NULL && occupied != NULL;
    const tide_status st = good ? add_classes(&m, order, tensors, occupied) : TIDE_ERR_NOMEM;
    if (st == TIDE_OK && m.n > 1) qsort(m.parts, m.n, sizeof *m.parts, by_tensor);
    tide_host_free(occupied);
    tide_host_free(tensors);
    tide_host_free(order);
    tide_host_free(m.cuts);
    tide_host_free(m.needed);
    tide_host_free(m.members);
    tide_host_free(m.last);
    tide_host_free(m.counts);
    if (st != TIDE_OK) {
        tide_host_free(m.parts);
        return TIDE_NO_MEMORY(err, "for the tensors of a plan");
    }
    *out = m.parts;
    *n = m.n;
    return TIDE_OK;
}
