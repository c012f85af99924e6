// SPDX-License-Identifier: MIT
//
// explain: what plans and traces have in common. See explain.h.
#include "analysis/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain_internal.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"

const char *tide_part_name(tide_part_kind part) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_PART_MAP(XX)
#undef XX
    };
    return (unsigned)part < TIDE_N_PARTS ? names[part] : "part ?";
}

const char *tide__step_at(const tide_subject_facts *f, int64_t t) {
    if (!f->is_trace) return t >= 0 && (uint64_t)t < f->n_steps ? f->step_names[t] : "";
    // Of a run those that ran, in order of their numbers, which several threads need not keep.
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < f->n_steps; i++) {
        if (f->step_begin[i] <= t && (best == SIZE_MAX || f->step_begin[i] >= f->step_begin[best])) best = i;
    }
    return best != SIZE_MAX ? f->step_names[best] : "";
}

// ---- groups ----

const char *tide__owner_key(const tide_live_item *x) {
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
        st = put(&g, by_kind ? tide__kind_key(x, with_device, buf, sizeof buf) : tide__owner_key(x), x->counts_bytes);
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
    *e = (tide_explanation){0};
}

static int by_peak(const void *a, const void *b) {
    const tide_without *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes) return x->peak_bytes < y->peak_bytes ? -1 : 1;
    return (x->live > y->live) - (x->live < y->live);
}

static tide_status explain(tide_subject *s, size_t n_without, tide__telling *telling, tide_explanation *e,
                           tide_error *err) {
    TIDE_TRY(tide_subject_live(s, e->at, &e->live, err));
    TIDE_TRY(tide__tell(telling, 0.1, err));
    TIDE_TRY(s->trace != NULL ? tide__explain_trace(s, n_without, TIDE_EXPLAIN_ALIKE_EVENTS, telling, e, err)
                              : tide__explain_plan(s, n_without, telling, e, err));
    for (size_t i = 0; i < TIDE_N_PARTS; i++) e->held_bytes += e->parts[i];
    if (e->n_without > 1) qsort(e->without, e->n_without, sizeof *e->without, by_peak);
    if (group(&e->live, false, &e->by_owner, &e->n_by_owner) != TIDE_OK ||
        group(&e->live, true, &e->by_kind, &e->n_by_kind) != TIDE_OK)
        return TIDE_NO_MEMORY(err, "to explain what is held");
    return TIDE_OK;
}

tide_status tide_explain(tide_subject *s, tide_moment at, size_t n_without, const tide_progress *progress,
                         tide_explanation *out, tide_error *err) {
    tide_explanation e = {.at = at};
    tide__telling telling;
    tide__telling_begin(&telling, progress, s->trace, "explaining");
    const tide_status st = explain(s, n_without, &telling, &e, err);
    tide__telling_end(&telling);
    if (st != TIDE_OK) {
        tide_explanation_deinit(&e);
        return st;
    }
    *out = e;
    return TIDE_OK;
}
