// SPDX-License-Identifier: MIT
//
// Timeline facts. See timeline_facts.h.
#include "profiler/timeline_facts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/memory/allocator.h"

tide_timeline_fill tide_timeline_fill_of(const tide_timeline_item *item) {
    switch (item->kind) {
    case TIDE_KIND_KV_CACHE:
        return TIDE_TIMELINE_FILL_KV_CACHE;
    case TIDE_KIND_HOST_PINNED:
    case TIDE_KIND_HOST_PAGEABLE:
        return TIDE_TIMELINE_FILL_HOST;
    case TIDE_KIND_PERSISTENT:
        return TIDE_TIMELINE_FILL_WEIGHT;
    default:
        break;
    }
    switch (item->role) {
    case TIDE_ROLE_SCRATCH:
        return TIDE_TIMELINE_FILL_SCRATCH;
    case TIDE_ROLE_WEIGHT:
        return TIDE_TIMELINE_FILL_WEIGHT;
    case TIDE_ROLE_INPUT:
    case TIDE_ROLE_OUTPUT:
        return TIDE_TIMELINE_FILL_INOUT;
    default:
        return item->kind == TIDE_KIND_DEFAULT ? TIDE_TIMELINE_FILL_INOUT : TIDE_TIMELINE_FILL_INTERMEDIATE;
    }
}

const char *tide_timeline_fill_text(tide_timeline_fill fill) {
    static const char *const texts[] = {
#define XX(name, text) text,
        TIDE_TIMELINE_FILL_MAP(XX)
#undef XX
    };
    return fill < TIDE_TIMELINE_N_FILLS ? texts[fill] : "";
}

bool tide_timeline_persists(const tide_timeline_item *item) {
    return item->persistent || item->kind == TIDE_KIND_PERSISTENT || item->role == TIDE_ROLE_WEIGHT ||
           item->role == TIDE_ROLE_INPUT || item->role == TIDE_ROLE_OUTPUT;
}

// ---- heights of plan and bound ----

/// Sums up what lies below and notes its kinds as bits; false: a part of it is unknown.
static bool add_below(const tide_timeline *tl, uint64_t *below, unsigned *kinds) {
    if (tl->axis == TIDE_AXIS_STEPS) {
        for (size_t i = 0; i < tl->n_items; i++) {
            if (!tl->items[i].persistent || tl->items[i].size_bytes == 0) continue;
            *kinds |= 1u << tl->items[i].kind;
            if (!tide_add_u64(*below, tl->items[i].size_bytes, below)) return false;
        }
        return true;
    }
    for (size_t i = 0; i < tl->n_kinds; i++) {
        const uint64_t bytes = tl->kinds[i].predicted_bytes;
        if (tl->kinds[i].kind == TIDE_KIND_WORKSPACE || bytes == 0) continue;
        *kinds |= 1u << tl->kinds[i].kind;
        if (bytes == TIDE_UNKNOWN_BYTES || !tide_add_u64(*below, bytes, below)) return false;
    }
    return true;
}

static void add_words(const char *words, char *buf, size_t buf_bytes) {
    const size_t len = strlen(buf);
    snprintf(buf + len, buf_bytes - len, "%s%s", len > 0 ? ", " : "", words);
}

static void name_kinds(unsigned kinds, char *buf, size_t buf_bytes) {
    static const struct {
        unsigned kinds;
        const char *words;
    } names[] = {{1u << TIDE_KIND_PERSISTENT, "weights"},
                 {1u << TIDE_KIND_DEFAULT, "inputs, outputs"},
                 {1u << TIDE_KIND_KV_CACHE, "KV cache"},
                 {1u << TIDE_KIND_HOST_PINNED | 1u << TIDE_KIND_HOST_PAGEABLE, "host memory"},
                 {1u << TIDE_KIND_WORKSPACE, "persistent workspace"}};
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((kinds & names[i].kinds) != 0) add_words(names[i].words, buf, buf_bytes);
        kinds &= ~names[i].kinds;
    }
    // Kinds that a build has added (docs/extending.md) go by their names.
    static_assert((int)TIDE_N_KINDS <= 32, "one bit each");
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        if ((kinds & 1u << kind) != 0) add_words(tide_memory_kind_name((tide_memory_kind)kind), buf, buf_bytes);
    }
}

tide_timeline_levels tide_timeline_levels_of(const tide_timeline *tl) {
    tide_timeline_levels l = {0};
    unsigned kinds = 0;
    if (!tl->has_plan || !add_below(tl, &l.below, &kinds) || !tide_add_u64(l.below, tl->plan_bytes, &l.plan) ||
        !tide_add_u64(l.below, tl->lower_bound_bytes, &l.bound))
        return (tide_timeline_levels){0};
    l.known = true;
    name_kinds(kinds, l.words, sizeof l.words);
    return l;
}

bool tide_timeline_alive_at(const tide_timeline_item *item, int64_t t) { return item->begin <= t && t < item->end; }
