// SPDX-License-Identifier: MIT
//
// explain: what plans and traces have in common. See explain.h.
#include "analysis/explain_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"

// ---- what live tensors asked for ----

// ---- a plan ----
//     buffer   [####  ######..    ]      # asked for   . rounding   between them holes, behind the last one slack
//     pools    [###..   ][         ]     a pool is larger than what is in it: slack; an empty one below a full one:
//     hole
//
// A tensor goes with all that shares its bytes: its storage. The curve is lower by what the storage needs, so one walk
// over the points of two curves finds the peak then. What a plan takes without the storage, explain_plans.c says.

/// Bytes of a root that a tensor needs, not rounded.
typedef struct need {
    uint32_t root;
    uint64_t lo, hi;
} need;

static int by_root(const void *a, const void *b) {
    const need *x = a, *y = b;
    if (x->root != y->root) return x->root < y->root ? -1 : 1;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static need need_at(const tide_lifetime *l, uint32_t root, uint64_t at, int64_t step) {
    for (uint32_t g = 0; g < l->n_gaps; g++) {
        if (l->gaps[g].begin_step <= step && step < l->gaps[g].end_step)
            return (need){root, at + l->gaps[g].lo_bytes, at + l->gaps[g].hi_bytes};
    }
    return (need){root, at, at + l->size_bytes};
}

/// Their union: bytes that aliases share count once.
static uint64_t union_of(need *list, size_t n) {
    uint64_t sum = 0;
    if (n > 1) qsort(list, n, sizeof *list, by_root);
    for (size_t i = 0; i < n;) {
        uint64_t lo = list[i].lo, hi = list[i].hi;
        const uint32_t root = list[i].root;
        for (i++; i < n && list[i].root == root && list[i].lo <= hi; i++) {
            if (list[i].hi > hi) hi = list[i].hi;
        }
        sum += hi - lo;
    }
    return sum;
}

static tide_status asked_for(const tide_memory_plan *plan, const tide_plan_live *live, const tide_live_items *l,
                             int64_t step, uint64_t *bytes) {
    need *list = tide_host_alloc((l->n + 1) * sizeof *list);
    size_t n = 0;
    if (list == NULL) return TIDE_ERR_NOMEM;
    *bytes = 0;
    for (size_t i = 0; i < l->n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[l->items[i].id];
        if (item->persistent)
            *bytes += item->size_bytes;
        else
            list[n++] = need_at(item, live->root[l->items[i].id], live->root_bytes[l->items[i].id], step);
    }
    *bytes += union_of(list, n);
    tide_host_free(list);
    return TIDE_OK;
}

// ---- holes and slack ----

typedef struct buffer_use {
    uint64_t occupied, top; // bytes in use, and the highest of them
    uint64_t inner_slack;   // of pools other than the one that has the top
    uint64_t top_pool_slack;
} buffer_use;

/// Rectangles of one root stand together in no order: its top is found by a scan of what is alive.
static void use_of_pool(const tide_memory_plan *plan, uint32_t root, uint64_t top, buffer_use *u) {
    const int32_t pool = plan->pools[root];
    const uint64_t slack =
        pool != TIDE_NO_POOL ? plan->pool_list[pool].offset_bytes + plan->pool_list[pool].size_bytes - top : 0;
    if (top > u->top) {
        u->inner_slack += u->top_pool_slack;
        u->top_pool_slack = slack;
        u->top = top;
    } else {
        u->inner_slack += slack;
    }
}

static size_t buffer_of(const tide_memory_plan *plan, const tide_lifetime *l) {
    for (size_t b = 0; b < plan->n_buffers; b++) {
        if (plan->buffers[b].kind == l->kind && tide_device_equal(plan->buffers[b].device, l->device)) return b;
    }
    return SIZE_MAX; // of a tensor without bytes
}

/// tops [n tensors]: where the live bytes of each root end in the buffer; 0: none.
static void use_buffers(const tide_memory_plan *plan, const tide_plan_live *live, int64_t step, uint64_t *tops,
                        buffer_use *uses) {
    for (size_t i = 0; i < live->n_occupied; i++) {
        const tide_occupied *o = &live->occupied[i];
        if (o->begin_step > step || step >= o->end_step) continue;
        const size_t b = buffer_of(plan, &plan->lifetimes.items[o->root]);
        const uint64_t top = plan->offsets[o->root] + o->hi_bytes;
        if (b == SIZE_MAX) continue;
        uses[b].occupied += o->hi_bytes - o->lo_bytes;
        if (top > tops[o->root]) tops[o->root] = top;
    }
    for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
        if (tops[i] > 0) use_of_pool(plan, i, tops[i], &uses[buffer_of(plan, &plan->lifetimes.items[i])]);
    }
}

static tide_status add_holes(const tide_memory_plan *plan, const tide_plan_live *live, int64_t step,
                             uint64_t parts[TIDE_N_PARTS]) {
    uint64_t *tops = tide_host_calloc(plan->lifetimes.n + 1, sizeof *tops);
    buffer_use *uses = tide_host_calloc(plan->n_buffers + 1, sizeof *uses);
    if (tops != NULL && uses != NULL) {
        use_buffers(plan, live, step, tops, uses);
        for (size_t b = 0; b < plan->n_buffers; b++) {
            const buffer_use *u = &uses[b];
            parts[TIDE_PART_HOLES] += u->top - u->occupied - u->inner_slack;
            parts[TIDE_PART_SLACK] += plan->buffers[b].bytes - u->top + u->inner_slack;
        }
    }
    const bool ok = tops != NULL && uses != NULL;
    tide_host_free(tops);
    tide_host_free(uses);
    return ok ? TIDE_OK : TIDE_ERR_NOMEM;
}

// ---- without one of them ----

/// The curve of the rectangles of those roots that are marked.
static tide_status curve_of(const tide_plan_live *live, const bool *roots, tide__step_curve *out) {
    tide__step_change *changes = tide_host_alloc((live->n_occupied + 1) * sizeof *changes);
    size_t n = 0;
    if (changes == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < live->n_occupied; i++) {
        const tide_occupied *o = &live->occupied[i];
        if (roots[o->root])
            changes[n++] =
                (tide__step_change){.begin = o->begin_step, .end = o->end_step, .bytes = o->hi_bytes - o->lo_bytes};
    }
    const tide_status st = tide__step_curve_make(changes, n, false, out);
    tide_host_free(changes);
    return st;
}

/// A walk along a curve: the value at a time that only grows.
typedef struct walker {
    const tide__step_curve *c;
    size_t next;
    uint64_t bytes;
} walker;

static void walk_to(walker *w, int64_t t) {
    for (; w->next < w->c->n && w->c->points[w->next].t <= t; w->next++) w->bytes = w->c->points[w->next].bytes;
}

static int64_t next_of(const walker *w, int64_t end) {
    return w->next < w->c->n && w->c->points[w->next].t < end ? w->c->points[w->next].t : end;
}

/// Highest of whole - part in [begin, end).
static void find_peak(const tide__step_curve *whole, const tide__step_curve *part, int64_t begin, int64_t end,
                      uint64_t *bytes, int64_t *at) {
    walker w[2] = {{whole, 0, 0}, {part, 0, 0}};
    *bytes = 0;
    *at = begin;
    for (int64_t t = begin; t < end;) {
        int64_t next = end;
        for (int k = 0; k < 2; k++) {
            walk_to(&w[k], t);
            const int64_t own = next_of(&w[k], end);
            if (own < next) next = own;
        }
        const uint64_t sum = w[0].bytes - w[1].bytes;
        if (sum > *bytes) {
            *bytes = sum;
            *at = t;
        }
        t = next;
    }
}

/// The highest of the curve without the marked storages.
static tide_status peak_without(tide_subject *s, const tide_plan_live *live, const tide__step_curve *whole,
                                const bool *roots, uint64_t *bytes, tide_moment *at) {
    tide__step_curve part = {0};
    const tide_status st = curve_of(live, roots, &part);
    if (st == TIDE_OK) find_peak(whole, &part, s->facts.begin, s->facts.end, bytes, &at->t);
    tide__step_curve_deinit(&part);
    return st;
}

static tide_status without_one(tide_subject *s, const tide_plan_live *live, const tide__step_curve *whole,
                               tide_without *w, bool *roots) {
    const uint32_t root = live->root[w->storage];
    roots[root] = true;
    const tide_status st = peak_without(s, live, whole, roots, &w->peak_bytes, &w->at);
    roots[root] = false;
    w->step = tide_subject_step_name_at(&s->facts, w->at.t);
    return st;
}

/// All storages of which something is alive and that can go.
static tide_status add_second_peak(tide_subject *s, const tide_plan_live *live, const tide__step_curve *whole,
                                   bool *roots, tide_explanation *e) {
    for (size_t i = 0; i < e->live.n; i++) {
        if (tide__can_go(&e->live.items[i])) roots[live->root[e->live.items[i].id]] = true;
    }
    return peak_without(s, live, whole, roots, &e->second_peak_bytes, &e->second_peak);
}

static tide_status add_peaks(tide_subject *s, size_t max, tide__reporter *reporter, tide_explanation *e,
                             tide_error *err) {
    const tide_plan_live *live;
    const tide__step_curve *whole;
    TIDE_TRY(tide__subject_plan_live(s, &live, err));
    TIDE_TRY(tide__subject_curve(s, (tide_curve_key){.kind = -1}, &whole, err));
    bool *roots = tide_host_calloc(s->plan->lifetimes.n + 1, sizeof *roots);
    const bool is_asked = max > 0;
    if (max > e->live.n) max = e->live.n;
    tide_status st = roots != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "to explain what is held");
    if (st == TIDE_OK) st = TIDE_NEW(&e->without, max + 1, err, "to explain what is held");
    if (st == TIDE_OK) tide__list_storages(s->plan, 0, max, e);
    for (size_t k = 0; st == TIDE_OK && k < e->n_without; k++) {
        st = tide__report_share(reporter, 0.3 + 0.3 * (double)k / (double)e->n_without, err);
        if (st == TIDE_OK) st = without_one(s, live, whole, &e->without[k], roots);
    }
    if (st == TIDE_OK && is_asked) st = add_second_peak(s, live, whole, roots, e);
    tide_host_free(roots);
    return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(err, "to explain what is held") : st;
}

// ---- the whole ----

/// Parts, counterfactuals and the second peak; out->live is there already.
static tide_status explain_plan(tide_subject *s, size_t n_without, tide__reporter *reporter, tide_explanation *out,
                                tide_error *err) {
    const tide_plan_live *live;
    uint64_t asked = 0;
    TIDE_TRY(tide__subject_plan_live(s, &live, err));
    tide_status st = asked_for(s->plan, live, &out->live, out->at.t, &asked);
    if (st == TIDE_OK) st = add_holes(s->plan, live, out->at.t, out->parts);
    if (st != TIDE_OK) return st == TIDE_ERR_NOMEM ? TIDE_NO_MEMORY(err, "to explain what is held") : st;
    out->parts[TIDE_PART_LIVE] = asked;
    out->parts[TIDE_PART_ROUNDING] = out->live.bytes - asked;
    TIDE_TRY(tide__report_share(reporter, 0.3, err));
    TIDE_TRY(add_peaks(s, n_without, reporter, out, err));
    TIDE_TRY(tide__add_plans(s, reporter, out, err));
    out->knows_ends = true;
    return TIDE_OK;
}

// ---- groups ----

/// Keys of groups and of the waterfall, for people.
static const char *owner_key(const tide_live_item *x) {
    if (x->site.owner[0] != '\0') return x->site.owner;
    switch (x->shape.role) {
    case TIDE_ROLE_INPUT:
        return "(inputs)";
    case TIDE_ROLE_OUTPUT:
        return "(outputs)";
    case TIDE_ROLE_WEIGHT:
        return "(weights)";
    default:
        return x->shape.persistent ? "(persistent)" : "(no operator)";
    }
}

const char *tide__kind_key(const tide_live_item *x, bool with_device, char *buf, size_t buf_bytes) {
    if (!with_device) return tide_memory_kind_name(x->shape.kind);
    snprintf(buf, buf_bytes, "%s on %s", tide_memory_kind_name(x->shape.kind), x->shape.device);
    return buf;
}

static bool has_devices(const tide_live_items *l) {
    for (size_t i = 1; i < l->n; i++) {
        if (strcmp(l->items[i].shape.device, l->items[0].shape.device) != 0) return true;
    }
    return false;
}

static int by_bytes(const void *a, const void *b) {
    const tide_explain_group *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->key, y->key);
}

static void free_groups(tide_explain_group *g, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(g[i].key);
    tide_host_free(g);
}

typedef struct grouping {
    tide_strmap index;
    tide_explain_group *list; // [n], owned
    size_t n, cap;
} grouping;

static tide_status put(grouping *g, const char *key, uint64_t bytes) {
    uint64_t i;
    if (!tide_strmap_get(&g->index, key, &i)) {
        TIDE_TRY(tide_host_grow(&g->list, &g->cap, g->n + 1, sizeof *g->list));
        TIDE_TRY(tide_strmap_put(&g->index, key, g->n));
        char *own = tide_host_strdup(key);
        if (own == NULL) return TIDE_ERR_NOMEM;
        i = g->n++;
        g->list[i] = (tide_explain_group){.key = own};
    }
    g->list[i].bytes += bytes;
    g->list[i].n++;
    return TIDE_OK;
}

static tide_status group(const tide_live_items *l, bool by_kind, tide_explain_group **out, size_t *n) {
    grouping g = {0};
    const bool with_device = has_devices(l);
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < l->n; i++) {
        const tide_live_item *x = &l->items[i];
        char buf[128];
        st = put(&g, by_kind ? tide__kind_key(x, with_device, buf, sizeof buf) : owner_key(x), x->counts_bytes);
    }
    tide_strmap_deinit(&g.index);
    if (st != TIDE_OK) {
        free_groups(g.list, g.n);
        return st;
    }
    if (g.n > 1) qsort(g.list, g.n, sizeof *g.list, by_bytes);
    *out = g.list;
    *n = g.n;
    return TIDE_OK;
}

// ---- the whole ----

void tide_explanation_deinit(tide_explanation *e) {
    tide_live_items_deinit(&e->live);
    free_groups(e->by_owner, e->n_by_owner);
    free_groups(e->by_kind, e->n_by_kind);
    tide_host_free(e->without);
    tide_host_free(e->ways);
    *e = (tide_explanation){0};
}

static int by_peak(const void *a, const void *b) {
    const tide_without *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes) return x->peak_bytes < y->peak_bytes ? -1 : 1;
    return (x->live > y->live) - (x->live < y->live);
}

static int by_what_is_left(const void *a, const void *b) {
    const tide_without *x = a, *y = b;
    if (x->has_plan != y->has_plan) return x->has_plan ? -1 : 1;
    if (x->plan_bytes != y->plan_bytes) return x->plan_bytes < y->plan_bytes ? -1 : 1;
    return by_peak(a, b);
}

static tide_status explain(tide_subject *s, size_t n_without, tide__reporter *reporter, tide_explanation *e,
                           tide_error *err) {
    TIDE_TRY(tide_subject_live(s, e->at, &e->live, err));
    TIDE_TRY(tide__report_share(reporter, 0.1, err));
    TIDE_TRY(s->trace != NULL ? tide__explain_trace(s, n_without, TIDE_EXPLAIN_ALIKE_EVENTS, reporter, e, err)
                              : explain_plan(s, n_without, reporter, e, err));
    for (size_t i = 0; i < TIDE_N_PARTS; i++) e->held_bytes += e->parts[i];
    if (e->n_without > 1)
        qsort(e->without, e->n_without, sizeof *e->without, s->trace != NULL ? by_peak : by_what_is_left);
    if (e->n_without > n_without) e->n_without = n_without; // blocks, and tensors in buffers
    TIDE_TRY(tide__add_ways(s, reporter, e, err));
    if (group(&e->live, false, &e->by_owner, &e->n_by_owner) != TIDE_OK ||
        group(&e->live, true, &e->by_kind, &e->n_by_kind) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to explain what is held");
    return TIDE_OK;
}

tide_status tide_explain(tide_subject *s, tide_moment at, size_t n_without, const tide_progress *progress,
                         tide_explanation *out, tide_error *err) {
    tide_explanation e = {.at = at};
    tide__reporter reporter;
    tide__reporter_begin(&reporter, progress, s->trace, "explaining");
    const tide_status st = explain(s, n_without, &reporter, &e, err);
    tide__reporter_end(&reporter);
    if (st != TIDE_OK) {
        tide_explanation_deinit(&e);
        return st;
    }
    *out = e;
    return TIDE_OK;
}
