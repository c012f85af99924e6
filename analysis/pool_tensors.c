// SPDX-License-Identifier: MIT
//
// Which tensors pass through the pools of a colouring plan, and what each leaves over. See pools.h.
#include <stdlib.h>

#include "analysis/pools.h"

#include "analysis/plan_pools.h"
#include "analysis/subject_internal.h"
#include "core/base/host_alloc.h"

void tide_pool_tensors_deinit(tide_pool_tensors *t) {
    for (size_t i = 0; i < t->n; i++) tide_host_free(t->items[i].name);
    tide_host_free(t->items);
    tide_host_free(t->first);
    *t = (tide_pool_tensors){0};
}

static int by_pool(const void *a, const void *b) {
    const tide_pool_tensor *x = a, *y = b;
    if (x->colour != y->colour) return x->colour < y->colour ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/// The most that is held in the pool while the tensor is there: by it and what shares its bytes, each byte once.
static uint64_t most_held(const tide__plan_pools *p, uint32_t pool, const tide_lifetime *l) {
    const tide__pool_stretch *s = tide__plan_pool_at(p, pool, l->begin_step);
    const tide__pool_stretch *end = tide__plan_pool_stretches(p, pool) + p->pools[pool].n;
    uint64_t most = 0;
    for (; s < end && s->step < l->end_step; s++)
        if (s->active > most) most = s->active;
    return most;
}

/// An alias passes through the pool of the tensor that it lies in.
static tide_status add_tensor(const tide__plan_pools *p, uint32_t i, tide_pool_tensors *out, tide_error *err) {
    const tide_lifetimes *lt = &p->plan->lifetimes;
    const tide_lifetime *l = &lt->items[i];
    const uint32_t pool = tide__plan_pool_of(p->plan, tide_lifetimes_root(lt, i, NULL));
    const uint64_t bytes = tide__shape_of_tensor(l).reserved_bytes;
    if (bytes == 0 || pool >= p->plan->n_pools) return TIDE_OK;
    const uint64_t size = p->plan->pool_list[pool].size_bytes, held = most_held(p, pool, l);
    tide_pool_tensor *t = &out->items[out->n];
    *t = (tide_pool_tensor){.colour = pool,
                            .begin = l->begin_step,
                            .end = l->end_step,
                            .bytes = bytes,
                            .left_over = size > held ? size - held : 0};
    TIDE_TRY(TIDE_COPY_TEXT(&t->name, l->name != NULL ? l->name : "", err, "for the tensors of pools"));
    out->n++;
    return TIDE_OK;
}

static tide_status collect(const tide__plan_pools *p, tide_pool_tensors *out, tide_error *err) {
    const size_t n = p->plan->lifetimes.n;
    TIDE_TRY(TIDE_NEW(&out->items, n + 1, err, "for the tensors of pools"));
    TIDE_TRY(TIDE_NEW(&out->first, p->plan->n_pools + 1, err, "for the tensors of pools"));
    out->n_pools = p->plan->n_pools;
    for (uint32_t i = 0; i < n; i++) TIDE_TRY(add_tensor(p, i, out, err));
    if (out->n > 1) qsort(out->items, out->n, sizeof *out->items, by_pool);
    for (size_t k = 0, i = 0; k <= out->n_pools; k++) {
        while (i < out->n && out->items[i].colour < k) i++;
        out->first[k] = i;
    }
    return TIDE_OK;
}

tide_status tide_pools_tensors(tide_subject *s, tide_pool_tensors *out, tide_error *err) {
    *out = (tide_pool_tensors){0};
    const tide_memory_plan *plan = tide__subject_plan(s);
    if (plan == NULL || plan->n_pools == 0) return TIDE_OK;
    const tide__plan_pools *pools;
    TIDE_TRY(tide__subject_plan_pools(s, &pools, err));
    const tide_status st = collect(pools, out, err);
    if (st != TIDE_OK) tide_pool_tensors_deinit(out);
    return st;
}
