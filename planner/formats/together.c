// SPDX-License-Identifier: MIT
//
// Buffers that must keep their distance from each other, as aliases of a table. See texts.h.
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/formats/texts.h"

tide_status tide__together_init(tide__together *t, size_t n, tide_error *err) {
    *t = (tide__together){.n = n};
    tide_status st = TIDE_NEW(&t->parent, n, err, "for %zu buffers", n);
    if (st == TIDE_OK) st = TIDE_NEW(&t->place, n, err, "for %zu buffers", n);
    for (size_t i = 0; st == TIDE_OK && i < n; i++) t->parent[i] = (uint32_t)i;
    if (st != TIDE_OK) tide__together_deinit(t);
    return st;
}

void tide__together_deinit(tide__together *t) {
    tide_host_free(t->parent);
    tide_host_free(t->place);
    *t = (tide__together){0};
}

/// The root of the item's group. Ways get shorter by being gone.
static uint32_t find(tide__together *t, uint32_t i) {
    while (t->parent[i] != i) {
        t->parent[i] = t->parent[t->parent[i]];
        i = t->parent[i];
    }
    return i;
}

void tide__together_bind(tide__together *t, uint32_t a, uint32_t b) {
    TIDE_ASSERT(a < t->n && b < t->n);
    t->parent[find(t, b)] = find(t, a);
}

/// A group, by its root: the bytes that it spans, and when it is needed.
typedef struct group {
    size_t n;
    uint64_t lo, hi;
    int64_t first_all, last_all; // where all of it is needed, half-open
    int64_t first_any, last_any; // where any of it is
    uint32_t cover;              // the item that all lie in
} group;

static void widen(group *g, const tide_lifetime *item, uint64_t place) {
    const bool is_new = g->n++ == 0;
    if (is_new || place < g->lo) g->lo = place;
    if (is_new || place + item->size_bytes > g->hi) g->hi = place + item->size_bytes;
    if (is_new || item->begin_step > g->first_all) g->first_all = item->begin_step;
    if (is_new || item->end_step < g->last_all) g->last_all = item->end_step;
    if (is_new || item->begin_step < g->first_any) g->first_any = item->begin_step;
    if (is_new || item->end_step > g->last_any) g->last_any = item->end_step;
}

static void measure(tide__together *t, const tide_lifetimes *lt, group *groups) {
    for (uint32_t i = 0; i < t->n; i++) {
        TIDE_ASSERT(t->place[i] >> TIDE_LIST_MAX_SHIFT == 0 && lt->items[i].size_bytes >> TIDE_LIST_MAX_SHIFT == 0);
        groups[i].cover = TIDE_NO_INDEX;
        widen(&groups[find(t, i)], &lt->items[i], t->place[i]);
    }
    for (uint32_t i = 0; i < t->n; i++) { // the first item that spans its group
        group *g = &groups[find(t, i)];
        const bool spans = t->place[i] == g->lo && lt->items[i].size_bytes == g->hi - g->lo;
        if (spans && g->cover == TIDE_NO_INDEX) g->cover = i;
    }
}

/// An item for a group that no item of its own spans. Nothing but its members is in it: it is needed where all of them
/// are, or from the first to the last where they are never all there.
static tide_status add_cover(tide_lifetimes *lt, uint32_t member, group *g, size_t number, tide_error *err) {
    char name[48];
    snprintf(name, sizeof name, "(together %zu)", number);
    const tide_lifetime *like = &lt->items[member];
    const bool meet = g->first_all < g->last_all;
    tide_lifetime item = tide_lifetime_make(name, g->hi - g->lo, like->align_bytes, meet ? g->first_all : g->first_any,
                                            meet ? g->last_all : g->last_any);
    item.kind = like->kind;
    item.device = like->device;
    item.unrounded = like->unrounded;
    g->cover = (uint32_t)lt->n;
    return tide_lifetimes_add(lt, &item, err);
}

static tide_status make_aliases(tide__together *t, tide_lifetimes *lt, group *groups, tide_error *err) {
    size_t n_covers = 0;
    measure(t, lt, groups);
    for (uint32_t i = 0; i < t->n; i++) {
        if (groups[i].n < 2 || groups[i].cover != TIDE_NO_INDEX) continue;
        TIDE_TRY(add_cover(lt, i, &groups[i], n_covers++, err));
    }
    for (uint32_t i = 0; i < t->n; i++) {
        const group *g = &groups[find(t, i)];
        if (g->n < 2 || g->cover == i) continue;
        const tide_alias_kind kind = g->cover >= t->n ? TIDE_ALIAS_PART : TIDE_ALIAS_GIVEN;
        TIDE_TRY(tide_lifetimes_alias(lt, i, kind, g->cover, t->place[i] - g->lo, err));
    }
    return TIDE_OK;
}

tide_status tide__together_apply(tide__together *t, tide_lifetimes *lt, tide_error *err) {
    TIDE_ASSERT(t->n <= lt->n);
    group *groups = NULL;
    TIDE_TRY(TIDE_NEW(&groups, t->n, err, "for %zu buffers", t->n));
    const tide_status st = make_aliases(t, lt, groups, err);
    tide_host_free(groups);
    return st;
}

uint64_t tide__together_alignment(const uint64_t *places, size_t n, uint64_t most) {
    uint64_t bits = most;
    for (size_t i = 0; i < n; i++) bits |= places[i];
    return bits & (~bits + 1); // the lowest
}
