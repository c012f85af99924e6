// SPDX-License-Identifier: MIT
//
// Live sets by groups, and two of them side by side. See moments.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "core/base/text.h"
#include "profiler/moments.h"

/// A group of either set while both are counted.
typedef struct group {
    char *key;      // owned
    unsigned order; // of sizes and ages
    uint64_t n[2], requested[2], reserved[2];
} group;

typedef struct grouping {
    group *groups; // [n], owned
    size_t n, cap;
    tide_strmap by_key;
} grouping;

static void grouping_deinit(grouping *g) {
    for (size_t i = 0; i < g->n; i++) tide_host_free(g->groups[i].key);
    tide_host_free(g->groups);
    tide_strmap_deinit(&g->by_key);
}

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to group blocks"); }

// ---- keys ----

/// "1 KiB", "16 MiB": an exact power of two.
static void power_text(unsigned bits, char *out, size_t out_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    snprintf(out, out_bytes, "%u %s", 1u << bits % 10, units[bits / 10]);
}

/// "10 us", "1 s": an exact power of ten ns.
static void decade_text(unsigned decade, char *out, size_t out_bytes) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned unit = decade / 3, digits = decade % 3;
    if (unit > 3) {
        digits += 3 * (unit - 3);
        unit = 3;
    }
    snprintf(out, out_bytes, "1%.*s %s", (int)digits, "0000000000000000000", units[unit]);
}

static void size_key(uint64_t bytes, tide_text *key, unsigned *order) {
    *order = 0;
    if (bytes == 0) {
        tide_text_add(key, "0 B");
        return;
    }
    const unsigned bits = 63u - (unsigned)__builtin_clzll(bytes);
    char lo[24], hi[24];
    power_text(bits, lo, sizeof lo);
    power_text(bits + 1, hi, sizeof hi);
    if (bits == 63) snprintf(hi, sizeof hi, "16 EiB");
    tide_text_addf(key, "[%s, %s)", lo, hi);
    *order = bits + 1;
}

static void age_key(uint64_t ns, tide_text *key, unsigned *order) {
    enum { FIRST = 3 }; // below a microsecond all are one
    unsigned decade = 0;
    for (uint64_t rest = ns; rest >= 10; rest /= 10) decade++;
    char lo[32], hi[32];
    *order = decade;
    if (decade < FIRST) {
        *order = 0;
        tide_text_add(key, "< 1 us");
        return;
    }
    decade_text(decade, lo, sizeof lo);
    decade_text(decade + 1, hi, sizeof hi);
    tide_text_addf(key, "[%s, %s)", lo, hi);
}

static void add_key(const tide_live_set *s, const tide_live *b, tide_group_by by, tide_text *key, unsigned *order) {
    *order = 0;
    switch (by) {
    case TIDE_BY_KIND:
        tide_text_add(key, tide_memory_kind_name(b->kind));
        break;
    case TIDE_BY_DEVICE:
        tide_text_add(key, b->device);
        break;
    case TIDE_BY_SCOPE:
        tide_text_add(key, b->scope[0] != '\0' ? b->scope : "(outside all scopes)");
        if (b->scope_index >= 0) tide_text_addf(key, " #%" PRId64, b->scope_index);
        break;
    case TIDE_BY_NAME:
        tide_text_add(key, b->name[0] != '\0' ? b->name : "(no name)");
        break;
    case TIDE_BY_ALLOCATOR:
        tide_text_add(key, b->allocator[0] != '\0' ? b->allocator : "(no name)");
        break;
    case TIDE_BY_SIZE:
        size_key(b->requested_bytes, key, order);
        break;
    case TIDE_BY_AGE:
        age_key(s->t_ns > b->alloc_ns ? s->t_ns - b->alloc_ns : 0, key, order);
        break;
    case TIDE_BY_THREAD:
        tide_text_addf(key, "thread %" PRIu32, b->thread);
        break;
    case TIDE_BY_RUN:
        if (b->run_id == 0) {
            tide_text_add(key, "(outside all runs)");
        } else {
            tide_text_addf(key, "run %" PRId64, b->run_id);
        }
        break;
    }
}

// ---- counting ----

/// The group of `key`, made when it is new; NULL without memory. Valid until the next call.
static group *group_of(grouping *g, const char *key, unsigned order) {
    uint64_t i;
    if (tide_strmap_get(&g->by_key, key, &i)) return &g->groups[i];
    if (tide_host_grow(&g->groups, &g->cap, g->n + 1, sizeof *g->groups) != TIDE_OK) return NULL;
    char *copy = tide_host_strdup(key);
    if (copy == NULL) return NULL;
    if (tide_strmap_put(&g->by_key, key, g->n) != TIDE_OK) {
        tide_host_free(copy);
        return NULL;
    }
    g->groups[g->n] = (group){.key = copy, .order = order};
    return &g->groups[g->n++];
}

static tide_status count(grouping *g, const tide_live_set *s, tide_group_by by, int side, tide_error *err) {
    tide_text key = {0};
    for (size_t i = 0; i < s->n; i++) {
        unsigned order;
        key.len = 0;
        add_key(s, &s->items[i], by, &key, &order);
        group *to = key.failed ? NULL : group_of(g, tide_text_str(&key), order);
        if (to == NULL) {
            tide_text_deinit(&key);
            return no_memory(err);
        }
        to->n[side]++;
        to->requested[side] += s->items[i].requested_bytes;
        to->reserved[side] += s->items[i].reserved_bytes;
    }
    tide_text_deinit(&key);
    return TIDE_OK;
}

// ---- one set ----

static int by_bytes(const void *a, const void *b) {
    const group *x = a, *y = b;
    if (x->requested[0] != y->requested[0]) return x->requested[0] > y->requested[0] ? -1 : 1;
    if (x->n[0] != y->n[0]) return x->n[0] > y->n[0] ? -1 : 1;
    return strcmp(x->key, y->key);
}

static int by_order(const void *a, const void *b) {
    const group *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

tide_status tide_live_set_group(const tide_live_set *s, tide_group_by by, tide_group **out, size_t *n,
                                tide_error *err) {
    grouping g = {0};
    tide_status st = count(&g, s, by, 0, err);
    tide_group *groups = st == TIDE_OK ? tide_host_calloc(g.n + 1, sizeof *groups) : NULL;
    if (st == TIDE_OK && groups == NULL) st = no_memory(err);
    if (st == TIDE_OK) {
        if (g.n > 1)
            qsort(g.groups, g.n, sizeof *g.groups, by == TIDE_BY_SIZE || by == TIDE_BY_AGE ? by_order : by_bytes);
        for (size_t i = 0; i < g.n; i++) {
            groups[i] =
                (tide_group){g.groups[i].key, g.groups[i].n[0], g.groups[i].requested[0], g.groups[i].reserved[0]};
            g.groups[i].key = NULL;
        }
        *out = groups;
        *n = g.n;
    }
    grouping_deinit(&g);
    return st;
}

void tide_groups_free(tide_group *groups, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(groups[i].key);
    tide_host_free(groups);
}

// ---- two sets ----

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static int by_change(const void *a, const void *b) {
    const group *x = a, *y = b;
    const uint64_t dx = distance(x->requested[0], x->requested[1]), dy = distance(y->requested[0], y->requested[1]);
    if (dx != dy) return dx > dy ? -1 : 1;
    const uint64_t nx = distance(x->n[0], x->n[1]), ny = distance(y->n[0], y->n[1]);
    if (nx != ny) return nx > ny ? -1 : 1;
    if (x->requested[1] != y->requested[1]) return x->requested[1] > y->requested[1] ? -1 : 1;
    return strcmp(x->key, y->key);
}

tide_status tide_live_set_compare(const tide_live_set *a, const tide_live_set *b, tide_group_by by,
                                  tide_group_change **out, size_t *n, tide_error *err) {
    grouping g = {0};
    tide_status st = count(&g, a, by, 0, err);
    if (st == TIDE_OK) st = count(&g, b, by, 1, err);
    tide_group_change *changes = st == TIDE_OK ? tide_host_calloc(g.n + 1, sizeof *changes) : NULL;
    if (st == TIDE_OK && changes == NULL) st = no_memory(err);
    if (st == TIDE_OK) {
        if (g.n > 1) qsort(g.groups, g.n, sizeof *g.groups, by_change);
        for (size_t i = 0; i < g.n; i++) {
            const group *from = &g.groups[i];
            changes[i] = (tide_group_change){from->key, from->n[0], from->n[1], from->requested[0], from->requested[1]};
            g.groups[i].key = NULL;
        }
        *out = changes;
        *n = g.n;
    }
    grouping_deinit(&g);
    return st;
}

void tide_group_changes_free(tide_group_change *changes, size_t n) {
    for (size_t i = 0; i < n; i++) tide_host_free(changes[i].key);
    tide_host_free(changes);
}
