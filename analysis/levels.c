// SPDX-License-Identifier: MIT
//
// Heights of plan and bound. See levels.h.
#include "analysis/levels.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/memory/allocator.h"

/// Bytes that lie below, and their kinds as bits.
typedef struct ground {
    uint64_t bytes, weights;
    unsigned kinds;
} ground;

/// False: it is not known, or it does not fit.
static bool add_below(ground *g, tide_memory_kind kind, uint64_t bytes) {
    if (bytes == 0) return true;
    g->kinds |= 1u << kind;
    if (kind == TIDE_KIND_PERSISTENT && bytes != TIDE_UNKNOWN_BYTES) g->weights += bytes; // at most the sum below
    return bytes != TIDE_UNKNOWN_BYTES && tide_add_u64(g->bytes, bytes, &g->bytes);
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

static bool height_of(const ground *g, uint64_t bytes, uint64_t n, uint64_t *out) {
    return tide_mul_u64(bytes, n, &bytes) && tide_add_u64(g->bytes, bytes, out);
}

static tide_levels stand_on(const ground *g, const tide_memory_plan *plan, uint64_t n_contexts) {
    tide_levels l = {.known = true, .below = g->bytes, .weights = g->weights, .n_contexts = n_contexts};
    if (!height_of(g, plan->bytes, n_contexts, &l.plan) || !height_of(g, plan->lower_bound_bytes, n_contexts, &l.bound))
        return (tide_levels){0};
    name_kinds(g->kinds, l.words, sizeof l.words);
    return l;
}

tide_levels tide_levels_of_plan(const tide_memory_plan *plan) {
    ground g = {0};
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        if (l->persistent && !add_below(&g, l->kind, tide_lifetime_aligned_bytes(l))) return (tide_levels){0};
    }
    return stand_on(&g, plan, 1);
}

tide_levels tide_levels_of_run(const tide_memory_plan *plan, uint64_t n_contexts, const tide_trace_kind *kinds,
                               size_t n_kinds) {
    ground g = {0};
    if (plan == NULL) return (tide_levels){0};
    for (size_t i = 0; i < n_kinds; i++) {
        if (kinds[i].kind != TIDE_KIND_WORKSPACE && !add_below(&g, kinds[i].kind, kinds[i].predicted_bytes))
            return (tide_levels){0};
    }
    return stand_on(&g, plan, n_contexts > 0 ? n_contexts : 1);
}

const char *tide_levels_name(const tide_levels *l, bool is_short, char *buf, size_t buf_bytes) {
    if (l->n_contexts <= 1) return "plan";
    if (is_short)
        snprintf(buf, buf_bytes, "%" PRIu64 " plans", l->n_contexts);
    else
        snprintf(buf, buf_bytes, "plans of %" PRIu64 " contexts", l->n_contexts);
    return buf;
}

const char *tide_levels_bound_name(const tide_levels *l, bool is_short, char *buf, size_t buf_bytes) {
    const bool both = l->plan == l->bound;
    if (l->n_contexts <= 1 && both) return is_short ? "plan=bound" : "plan = lower bound";
    if (l->n_contexts <= 1) return is_short ? "bound" : "lower bound";
    if (is_short)
        snprintf(buf, buf_bytes, "%" PRIu64 " %s", l->n_contexts, both ? "plans=bounds" : "bounds");
    else if (both)
        snprintf(buf, buf_bytes, "plans of %" PRIu64 " contexts = lower bounds", l->n_contexts);
    else
        snprintf(buf, buf_bytes, "lower bounds of %" PRIu64 " contexts", l->n_contexts);
    return buf;
}

tide_levels tide_levels_without_weights(const tide_levels *l) {
    static const char word[] = "weights"; // the first of the words, where there are weights
    tide_levels out = *l;
    if (!l->known || l->weights == 0) return out;
    out.below -= l->weights;
    out.plan -= l->weights;
    out.bound -= l->weights;
    out.weights = 0;
    const char *rest = l->words + strlen(word);
    snprintf(out.words, sizeof out.words, "%s", rest[0] == ',' ? rest + 2 : "");
    return out;
}
