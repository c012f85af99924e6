// SPDX-License-Identifier: MIT
//
// What a plan has alive at its steps: as a curve, and tensor by tensor so that the parts sum to it.
//
// Bytes that aliases share count once (tide_lifetimes_occupied). Of tensors that lie in one root each byte that is
// needed at a step belongs to the first of them that is alive and has it: the root itself, then the larger alias:
//
//     needed   [##########....####]       root dead, two aliases alive
//     a        [########]                 counts 8
//     b            [######]               counts 2: the rest is a's
#include <stdlib.h>
#include <string.h>

#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

const char *tide__subject_device(const tide_subject *s, tide_device device) {
    char text[32];
    tide_device_format(device, text, sizeof text);
    for (size_t i = 0; i < s->n_devices; i++)
        if (strcmp(s->devices[i], text) == 0) return s->devices[i];
    return "";
}

// ---- the curve ----

/// Whether a tensor is of that kind and device.
static bool matches(const tide_lifetime *l, int kind, const tide_device *device) {
    return (kind < 0 || (int)l->kind == kind) && (device == NULL || tide_device_equal(l->device, *device));
}

static tide_status parse_device(const tide_memory_plan *plan, const char *text, tide_device *out, tide_error *err) {
    bool known = tide_device_parse(text, out, NULL) == TIDE_OK, used = false;
    for (size_t i = 0; known && !used && i < plan->lifetimes.n; i++)
        used = tide_device_equal(plan->lifetimes.items[i].device, *out);
    return used ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the plan has no device '%s'", text);
}

tide_status tide__plan_curve(const tide_memory_plan *plan, int kind, const char *device, tide__step_curve *out,
                             tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide_device d;
    tide_occupied *occupied;
    size_t n_occupied, n = 0;
    if (device != NULL) TIDE_TRY(parse_device(plan, device, &d, err));
    TIDE_TRY(tide_lifetimes_occupied(lt, &occupied, &n_occupied, err));
    tide__step_change *changes = tide_host_alloc((lt->n + n_occupied + 1) * sizeof *changes);
    if (changes == NULL) {
        tide_host_free(occupied);
        return TIDE_NO_MEMORY(err, "for the curve of a plan");
    }
    for (size_t i = 0; i < n_occupied; i++) {
        const tide_occupied *o = &occupied[i];
        if (matches(&lt->items[o->root], kind, device != NULL ? &d : NULL))
            changes[n++] =
                (tide__step_change){.begin = o->begin_step, .end = o->end_step, .bytes = o->hi_bytes - o->lo_bytes};
    }
    for (size_t i = 0; i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        if (l->persistent && matches(l, kind, device != NULL ? &d : NULL))
            changes[n++] = (tide__step_change){
                .begin = l->begin_step, .end = l->end_step, .bytes = tide_lifetime_aligned_bytes(l)};
    }
    const tide_status st = tide__step_curve_make(changes, n, false, out);
    tide_host_free(changes);
    tide_host_free(occupied);
    if (st == TIDE_ERR_OVERFLOW) return TIDE_FAIL(err, st, "the tensors of the plan add up to more than 2^64 bytes");
    return st == TIDE_OK ? st : TIDE_FAIL(err, st, "no memory for the curve of a plan");
}

// ---- what is alive ----

void tide__plan_live_deinit(tide__plan_live *l) {
    tide_host_free(l->occupied);
    tide_host_free(l->root);
    tide_host_free(l->root_bytes);
    tide_host_free(l->changes);
    *l = (tide__plan_live){0};
}

static int by_step(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/// Steps of the axis at which something begins or ends, once each.
static void make_changes(const tide_lifetimes *lt, tide__plan_live *l) {
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

static tide_status plan_live_make(const tide_memory_plan *plan, tide__plan_live *out, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    tide__plan_live l = {0};
    TIDE_TRY(tide_lifetimes_occupied(lt, &l.occupied, &l.n_occupied, err));
    l.root = tide_host_alloc((lt->n + 1) * sizeof *l.root);
    l.root_bytes = tide_host_alloc((lt->n + 1) * sizeof *l.root_bytes);
    l.changes = tide_host_alloc((2 * lt->n + 1) * sizeof *l.changes);
    if (l.root == NULL || l.root_bytes == NULL || l.changes == NULL) {
        tide__plan_live_deinit(&l);
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
static member need_of(const tide_lifetimes *lt, const tide__plan_live *l, uint32_t i, int64_t step) {
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

tide_status tide__plan_live_counts(const tide_memory_plan *plan, const tide__plan_live *l, int64_t step,
                                   uint64_t *counts, tide_error *err) {
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

tide_status tide__subject_plan_live(tide_subject *s, const tide__plan_live **out, tide_error *err) {
    if (!s->has_live) TIDE_TRY(plan_live_make(tide__subject_plan(s), &s->live, err));
    s->has_live = true;
    *out = &s->live;
    return TIDE_OK;
}
