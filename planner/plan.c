// SPDX-License-Identifier: MIT
//
// plan, stage 4 of 4: run a strategy under a clock, compute what every plan is measured by, and let the verifier see
// it before anybody else does.
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/plan_internal.h"

tide_status tide__plan_new(const tide_lifetimes *lt, const char *strategy, tide_plan_form form, tide_memory_plan **out,
                           tide_error *err) {
    if (lt->n > INT32_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu lifetimes are more than a plan can number", lt->n);
    tide_memory_plan *plan = tide_host_calloc(1, sizeof *plan);
    if (plan == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan");
    const tide_status st = tide_lifetimes_copy(lt, &plan->lifetimes, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    plan->form = form;
    plan->strategy = tide_host_strdup(strategy);
    plan->offsets = tide_host_calloc(lt->n, sizeof *plan->offsets);
    plan->pools = tide_host_calloc(lt->n, sizeof *plan->pools);
    if (plan->strategy == NULL || plan->offsets == NULL || plan->pools == NULL) {
        tide_memory_plan_destroy(plan);
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a plan of %zu tensors", lt->n);
    }
    for (size_t i = 0; i < lt->n; i++) {
        plan->offsets[i] = TIDE_NO_OFFSET;
        plan->pools[i] = TIDE_NO_POOL;
    }
    *out = plan;
    return TIDE_OK;
}

/// An empty tensor needs an entry, so that the runtime's strict rule holds, and no bytes.
static void settle_empty(tide_memory_plan *plan) {
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (!item->persistent && item->size_bytes == 0) plan->offsets[i] = 0;
    }
}

tide_status tide__plan_settle(tide_memory_plan *plan, tide_error *err) {
    plan->naive_bytes = 0;
    plan->align_bytes = 1;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *item = &plan->lifetimes.items[i];
        if (item->persistent) continue;
        if (item->align_bytes > plan->align_bytes) plan->align_bytes = item->align_bytes;
        // Files hold sizes as signed 64-bit numbers.
        if (!tide_add_u64(plan->naive_bytes, tide_lifetime_aligned_bytes(item), &plan->naive_bytes) ||
            plan->naive_bytes > INT64_MAX)
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the sizes up to tensor '%s' add up to more than 2^63 - 1 bytes",
                             item->name);
    }
    TIDE_TRY(tide_lower_bound(&plan->lifetimes, &plan->lower_bound_bytes, NULL, err));
    return TIDE_OK;
}

static tide_status make(tide_memory_plan *plan, const tide_strategy *strategy, const tide_strategy_options *opt,
                        tide_error *err) {
    static const tide_strategy_options none = {0};
    // Sizes that add up keep every strategy's arithmetic inside 64 bits.
    TIDE_TRY(tide__plan_settle(plan, err));
    const uint64_t t0 = tide_now_ns();
    TIDE_TRY(strategy->place(plan, opt != NULL ? opt : &none, err));
    plan->time_ns = tide_now_ns() - t0;
    settle_empty(plan);
    plan->proven = plan->bytes == plan->lower_bound_bytes;
    const tide_status st = tide_plan_verify(plan, NULL, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "strategy '%s'", strategy->name);
        return st;
    }
    plan->verified = true;
    return TIDE_OK;
}

tide_status tide_plan_make(const tide_lifetimes *lt, const tide_strategy *strategy, const tide_strategy_options *opt,
                           tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_new(lt, strategy->name, strategy->form, &plan, err));
    const tide_status st = make(plan, strategy, opt, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    *out = plan;
    return TIDE_OK;
}

tide_status tide_plan_pools_to_offsets(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *flat;
    TIDE_TRY(tide__plan_new(&plan->lifetimes, plan->strategy, TIDE_PLAN_OFFSETS, &flat, err));
    if (plan->lifetimes.n > 0) memcpy(flat->offsets, plan->offsets, plan->lifetimes.n * sizeof *flat->offsets);
    flat->bytes = plan->bytes;
    flat->time_ns = plan->time_ns;
    tide_status st = tide__plan_settle(flat, err);
    flat->proven = flat->bytes == flat->lower_bound_bytes;
    if (st == TIDE_OK) st = tide_plan_verify(flat, NULL, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(flat);
        return st;
    }
    flat->verified = true;
    *out = flat;
    return TIDE_OK;
}
