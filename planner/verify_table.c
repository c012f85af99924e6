// SPDX-License-Identifier: MIT
//
// verifier, the table: whether the lifetimes that came with a plan are such that a plan of them means anything. A plan
// file is read from outside, so nothing is taken for granted here: not even that chains of aliases end.
#include <inttypes.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/verify_internal.h"

uint64_t tide__verify_bytes_of(const tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    if (item->unrounded || item->alias != TIDE_ALIAS_NONE) return item->size_bytes;
    return (item->size_bytes + item->align_bytes - 1) & ~(item->align_bytes - 1);
}

// ---- each lifetime alone ----

static tide_status check_life(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    if (item->begin_step >= 0 && item->begin_step < item->end_step && item->end_step <= c->plan->lifetimes.n_steps)
        return TIDE_OK;
    return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NOBODY,
                      "tensor '%s' lives from step %" PRId64 " to %" PRId64 " of a plan of %" PRId64 " steps",
                      item->name, item->begin_step, item->end_step, c->plan->lifetimes.n_steps);
}

static tide_status check_gaps(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    int64_t last_end = item->begin_step;
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        const tide_gap *g = &item->gaps[k];
        const bool in_order = last_end <= g->begin_step && g->begin_step < g->end_step;
        if (!in_order || g->end_step > item->end_step || g->lo_bytes > g->hi_bytes || g->hi_bytes > item->size_bytes)
            return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NOBODY,
                              "gap %" PRIu32 " of tensor '%s', steps %" PRId64 " to %" PRId64 ", bytes %" PRIu64
                              " to %" PRIu64 ", is empty, out of order or outside of the tensor",
                              k, item->name, g->begin_step, g->end_step, g->lo_bytes, g->hi_bytes);
        last_end = g->end_step;
    }
    return TIDE_OK;
}

static tide_status check_size(tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    uint64_t rounded;
    if (!tide_is_pow2(item->align_bytes))
        return TIDE_FAULT(c, MISALIGNED, i, TIDE_VERIFY_NOBODY,
                          "tensor '%s' is to be aligned to %" PRIu64 ", which is no power of two", item->name,
                          item->align_bytes);
    if (!tide_align_up(item->size_bytes, item->align_bytes, &rounded))
        return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NOBODY, "tensor '%s' of %" PRIu64 " bytes, rounded up, passes 2^64",
                          item->name, item->size_bytes);
    for (size_t k = 0; item->point_bytes != NULL && k < c->plan->lifetimes.n_points; k++) {
        if (item->point_bytes[k] > item->size_bytes)
            return TIDE_FAULT(c, SPAN, i, TIDE_VERIFY_NOBODY,
                              "tensor '%s' has %" PRIu64 " bytes at profile point %zu, is planned for %" PRIu64,
                              item->name, item->point_bytes[k], k, item->size_bytes);
    }
    return TIDE_OK;
}

// ---- aliases ----

static const char *why_no_alias(const tide_verify_check *c, size_t i) {
    const tide_lifetime *a = &c->items[i], *of = &c->items[a->alias_of];
    uint64_t end;
    if (a->persistent || of->persistent) return "one of them is persistent";
    if (!tide_device_equal(a->device, of->device) || a->kind != of->kind) return "they differ in device or kind";
    if (a->n_gaps > 0 || a->fixed || a->apart_set != 0) return "it has gaps, a given offset or an apart set of its own";
    if (!tide_add_u64(a->alias_offset_bytes, a->size_bytes, &end) || end > of->size_bytes) return "it ends outside";
    return NULL;
}

static tide_status check_alias(tide_verify_check *c, size_t i) {
    const tide_lifetime *a = &c->items[i];
    if (!tide__verify_is_alias(c, i)) return TIDE_OK;
    if (a->alias_of >= c->n)
        return TIDE_FAULT(c, ALIAS, i, TIDE_VERIFY_NOBODY, "tensor '%s' is alias of number %" PRIu32 ", there are %zu",
                          a->name, a->alias_of, c->n);
    const char *why = why_no_alias(c, i);
    if (why == NULL) return TIDE_OK;
    return TIDE_FAULT(c, ALIAS, i, a->alias_of,
                      "tensor '%s' of %" PRIu64 " bytes cannot lie %" PRIu64 " bytes into '%s' of %" PRIu64 ": %s",
                      a->name, a->size_bytes, a->alias_offset_bytes, c->items[a->alias_of].name,
                      c->items[a->alias_of].size_bytes, why);
}

/// Follow each chain to its end once: what was met on the way learns the root too. UNKNOWN has not been met, COMING has
/// been in this chain: meeting it again means that the chain bites its tail.
enum { UNKNOWN = UINT32_MAX, COMING = UINT32_MAX - 1 };

static tide_status find_root(tide_verify_check *c, size_t i) {
    uint32_t at = (uint32_t)i;
    while (c->roots[at] == UNKNOWN && tide__verify_is_alias(c, at)) {
        c->roots[at] = COMING;
        at = c->items[at].alias_of;
    }
    if (c->roots[at] == COMING)
        return TIDE_FAULT(c, ALIAS, i, at, "the aliases from tensor '%s' on come back to '%s'", c->items[i].name,
                          c->items[at].name);
    const uint32_t root = c->roots[at] == UNKNOWN ? at : c->roots[at];
    c->roots[at] = root;
    for (at = (uint32_t)i; c->roots[at] == COMING; at = c->items[at].alias_of) c->roots[at] = root;
    return TIDE_OK;
}

// ---- who needs bytes ----

static bool is_alive_somewhere(const tide_lifetime *item) {
    if (item->persistent || item->size_bytes == 0) return false;
    int64_t at = item->begin_step;
    for (uint32_t k = 0; k < item->n_gaps; k++) {
        if (item->gaps[k].begin_step > at || item->gaps[k].lo_bytes < item->gaps[k].hi_bytes) return true;
        at = item->gaps[k].end_step;
    }
    return at < item->end_step;
}

tide_status tide__verify_table(tide_verify_check *c) {
    c->roots = tide_host_calloc(c->n, sizeof *c->roots);
    c->n_alive = tide_host_calloc(c->n, sizeof *c->n_alive);
    if (c->roots == NULL || c->n_alive == NULL)
        return TIDE_FAIL(c->err, TIDE_ERR_NOMEM, "no memory to verify %zu tensors", c->n);
    for (size_t i = 0; i < c->n; i++) {
        TIDE_TRY(check_life(c, i));
        TIDE_TRY(check_gaps(c, i));
        TIDE_TRY(check_size(c, i));
        TIDE_TRY(check_alias(c, i));
        c->roots[i] = UNKNOWN;
    }
    for (size_t i = 0; i < c->n; i++) {
        TIDE_TRY(find_root(c, i));
        if (is_alive_somewhere(&c->items[i])) c->n_alive[c->roots[i]]++;
    }
    return TIDE_OK;
}
