// SPDX-License-Identifier: MIT
//
// without: see without.h.
#include "planner/without.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "planner/plan.h"

// ---- the table ----

tide_status tide_lifetimes_take_out(tide_lifetimes *lt, const bool *gone, tide_error *err) {
    uint32_t *now;
    TIDE_TRY(TIDE_NEW(&now, lt->n + 1, err, "to take tensors out"));
    uint32_t n = 0;
    for (uint32_t i = 0; i < lt->n; i++) now[i] = gone[i] ? TIDE_NO_INDEX : n++;
    for (uint32_t i = 0; i < lt->n; i++) {
        tide_lifetime *item = &lt->items[i];
        if (gone[i]) {
            tide_host_free(item->name);
            tide_host_free(item->gaps);
            tide_host_free(item->point_bytes);
            continue;
        }
        if (item->alias != TIDE_ALIAS_NONE) {
            TIDE_ASSERT(!gone[item->alias_of]);
            item->alias_of = now[item->alias_of];
        }
        lt->items[now[i]] = *item;
    }
    lt->n = n;
    tide_host_free(now);
    return TIDE_OK;
}

// ---- what is left of a plan ----

static uint32_t buffer_of(const tide_memory_plan *plan, const tide_lifetime *l) {
    for (uint32_t b = 0; b < plan->n_buffers; b++) {
        if (plan->buffers[b].kind == l->kind && tide_device_equal(plan->buffers[b].device, l->device)) return b;
    }
    return TIDE_NO_INDEX; // of a tensor without bytes
}

/// Whether it has a place of its own that takes space.
static bool has_place(const tide_memory_plan *plan, uint32_t i, uint32_t *buffer) {
    const tide_lifetime *l = &plan->lifetimes.items[i];
    if (l->persistent || l->alias != TIDE_ALIAS_NONE || l->size_bytes == 0) return false;
    *buffer = buffer_of(plan, l);
    return *buffer != TIDE_NO_INDEX;
}

/// Each buffer ends with its last tensor.
static void end_buffers(tide_memory_plan *rest) {
    for (uint32_t i = 0; i < rest->lifetimes.n; i++) {
        uint32_t b;
        if (!has_place(rest, i, &b)) continue;
        const uint64_t end = rest->offsets[i] + tide_lifetime_aligned_bytes(&rest->lifetimes.items[i]);
        if (end > rest->buffers[b].bytes) rest->buffers[b].bytes = end;
    }
}

/// Pools as large as what is left in them, without the empty ones; rest->pools are as they were in the plan of all.
static tide_status shrink_pools(tide_memory_plan *rest, size_t n_pools, tide_error *err) {
    uint32_t *now;
    if (n_pools == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&rest->pool_list, n_pools, err, "for %zu pools", n_pools));
    TIDE_TRY(TIDE_NEW(&now, n_pools, err, "for %zu pools", n_pools));
    for (size_t p = 0; p < n_pools; p++) now[p] = TIDE_NO_INDEX;
    for (uint32_t i = 0; i < rest->lifetimes.n; i++) {
        const int32_t was = rest->pools[i];
        uint32_t b;
        if (was == TIDE_NO_POOL || !has_place(rest, i, &b)) continue;
        if (now[was] == TIDE_NO_INDEX) {
            now[was] = (uint32_t)rest->n_pools;
            rest->pool_list[rest->n_pools++] = (tide_plan_pool){.buffer = b};
        }
        tide_plan_pool *pool = &rest->pool_list[now[was]];
        const uint64_t bytes = tide_lifetime_aligned_bytes(&rest->lifetimes.items[i]);
        rest->pools[i] = (int32_t)now[was];
        pool->n_members++;
        if (bytes > pool->size_bytes) pool->size_bytes = bytes;
    }
    tide_host_free(now);
    return TIDE_OK;
}

/// End to end, those of stricter alignment before others: no padding is needed between them.
static tide_status lay_pools(tide_memory_plan *rest, tide_error *err) {
    uint64_t *aligns;
    TIDE_TRY(TIDE_NEW(&aligns, rest->n_pools + 1, err, "for %zu pools", rest->n_pools));
    for (uint32_t i = 0; i < rest->lifetimes.n; i++) {
        const uint64_t align = rest->lifetimes.items[i].align_bytes;
        if (rest->pools[i] != TIDE_NO_POOL && align > aligns[rest->pools[i]]) aligns[rest->pools[i]] = align;
    }
    for (uint64_t align = UINT64_C(1) << 63; align != 0; align >>= 1) {
        for (size_t p = 0; p < rest->n_pools; p++) {
            tide_plan_pool *pool = &rest->pool_list[p];
            uint64_t *end = &rest->buffers[pool->buffer].bytes;
            if (aligns[p] != align) continue;
            pool->size_bytes = (pool->size_bytes + align - 1) & ~(align - 1); // as it was in the plan of all, or less
            pool->offset_bytes = *end;
            *end += pool->size_bytes;
        }
    }
    for (uint32_t i = 0; i < rest->lifetimes.n; i++) {
        if (rest->pools[i] != TIDE_NO_POOL) rest->offsets[i] = rest->pool_list[rest->pools[i]].offset_bytes;
    }
    tide_host_free(aligns);
    return TIDE_OK;
}

/// Places of those that stay, as they were.
static tide_status keep_places(const tide_memory_plan *plan, const bool *gone, tide_memory_plan *rest,
                               tide_error *err) {
    size_t k = 0;
    for (uint32_t i = 0; i < plan->lifetimes.n; i++) {
        if (gone[i]) continue;
        rest->offsets[k] = plan->offsets[i];
        rest->pools[k++] = plan->pools[i];
    }
    TIDE_ASSERT(k == rest->lifetimes.n);
    TIDE_TRY(tide__plan_settle(rest, err));
    if (plan->form == TIDE_PLAN_POOLS) {
        TIDE_TRY(shrink_pools(rest, plan->n_pools, err));
        TIDE_TRY(lay_pools(rest, err));
    } else {
        end_buffers(rest);
    }
    TIDE_TRY(tide__plan_close(rest, err));
    TIDE_TRY(tide_plan_verify(rest, NULL, err));
    rest->verified = true;
    return TIDE_OK;
}

static tide_status rest_of_plan(const tide_memory_plan *plan, const bool *gone, tide_memory_plan **out,
                                tide_error *err) {
    tide_lifetimes lt;
    TIDE_TRY(tide_lifetimes_copy(&plan->lifetimes, &lt, err));
    tide_memory_plan *rest = NULL;
    tide_status st = tide_lifetimes_take_out(&lt, gone, err);
    if (st == TIDE_OK) st = tide__plan_new(&lt, plan->strategy, plan->form, &rest, err);
    tide_lifetimes_deinit(&lt);
    if (st == TIDE_OK) st = keep_places(plan, gone, rest, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(rest);
        return st;
    }
    *out = rest;
    return TIDE_OK;
}

// ---- the smaller of both ----

tide_status tide_plan_without(const tide_memory_plan *plan, const bool *gone, const tide_strategy *strategy,
                              const tide_strategy_options *opt, tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *rest, *anew = NULL;
    tide_error own = TIDE_ERROR_INIT;
    TIDE_TRY(rest_of_plan(plan, gone, &rest, err));
    if (rest->proven) { // nothing is smaller
        *out = rest;
        return TIDE_OK;
    }
    const tide_status st = tide_plan_make(&rest->lifetimes, strategy, opt, &anew, &own);
    if (st == TIDE_ERR_NOMEM) {
        tide_memory_plan_destroy(rest);
        return TIDE_FAIL(err, st, "%s", own.msg);
    }
    if (st != TIDE_OK || anew->bytes > rest->bytes) { // a strategy that cannot serve the table, or does worse
        tide_memory_plan_destroy(anew);
        *out = rest;
        return TIDE_OK;
    }
    tide_memory_plan_destroy(rest);
    *out = anew;
    return TIDE_OK;
}
