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

static tide_status collect(const tide_memory_plan *plan, tide_pool_tensors *out, tide_error *err) {
    const tide_lifetimes *lt = &plan->lifetimes;
    TIDE_TRY(TIDE_NEW(&out->items, lt->n + 1, err, "for the tensors of pools"));
    TIDE_TRY(TIDE_NEW(&out->first, plan->n_pools + 1, err, "for the tensors of pools"));
    out->n_pools = plan->n_pools;
    for (uint32_t i = 0; i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        const uint32_t pool = tide__plan_pool_of(plan, i);
        const uint64_t bytes = l->alias == TIDE_ALIAS_NONE ? tide_lifetime_aligned_bytes(l) : 0;
        if (bytes == 0 || pool >= plan->n_pools) continue;
        const uint64_t size = plan->pool_list[pool].size_bytes;
        tide_pool_tensor *t = &out->items[out->n];
        *t = (tide_pool_tensor){.colour = pool,
                                .begin = l->begin_step,
                                .end = l->end_step,
                                .bytes = bytes,
                                .left_over = size > bytes ? size - bytes : 0};
        TIDE_TRY(TIDE_COPY_TEXT(&t->name, l->name != NULL ? l->name : "", err, "for the tensors of pools"));
        out->n++;
    }
    if (out->n > 1) qsort(out->items, out->n, sizeof *out->items, by_pool);
    for (size_t k = 0, i = 0; k <= plan->n_pools; k++) {
        while (i < out->n && out->items[i].colour < k) i++;
        out->first[k] = i;
    }
    return TIDE_OK;
}

tide_status tide_pools_tensors(tide_subject *s, tide_pool_tensors *out, tide_error *err) {
    *out = (tide_pool_tensors){0};
    const tide_memory_plan *plan = tide__subject_plan(s);
    if (plan == NULL || plan->n_pools == 0) return TIDE_OK;
    const tide_status st = collect(plan, out, err);
    if (st != TIDE_OK) tide_pool_tensors_deinit(out);
    return st;
}
