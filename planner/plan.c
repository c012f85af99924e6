// SPDX-License-Identifier: MIT
//
// plan, stage 4 of 4: split the table into problems, run a strategy on each under a clock, put the answers together,
// and let the verifier see the plan before it leaves this file.
#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/cancel.h"
#include "planner/plan.h"

static _Atomic uint64_t n_entries;

void tide__planner_entered(void) { atomic_fetch_add_explicit(&n_entries, 1, memory_order_relaxed); }

uint64_t tide_planner_entries(void) { return atomic_load_explicit(&n_entries, memory_order_relaxed); }

tide_status tide__plan_new(const tide_lifetimes *lt, const char *strategy, tide_plan_form form, tide_memory_plan **out,
                           tide_error *err) {
    if (lt->n > INT32_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu lifetimes are more than a plan can number", lt->n);
    tide_memory_plan *plan;
    TIDE_TRY(TIDE_NEW(&plan, 1, err, "for a plan"));
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
        return TIDE_NO_MEMORY(err, "for a plan of %zu tensors", lt->n);
    }
    for (size_t i = 0; i < lt->n; i++) {
        plan->offsets[i] = TIDE_NO_OFFSET;
        plan->pools[i] = TIDE_NO_POOL;
    }
    *out = plan;
    return TIDE_OK;
}

// ---- buffers and totals ----

/// Give the plan its buffers, one for each of `problems`, with all that does not depend on the placement: bytes are 0,
/// proved_bytes what the problem's bounds say.
static tide_status add_buffers(tide_memory_plan *plan, const tide_problems *problems, tide_error *err) {
    if (problems->n == 0) return TIDE_OK;
    TIDE_TRY(TIDE_NEW(&plan->buffers, problems->n, err, "for %zu buffers", problems->n));
    plan->n_buffers = problems->n;
    for (size_t b = 0; b < problems->n; b++) {
        const tide_problem *p = &problems->list[b];
        plan->buffers[b] = (tide_plan_buffer){.device = p->device,
                                              .kind = p->kind,
                                              .align_bytes = p->align_bytes,
                                              .naive_bytes = p->naive_bytes,
                                              .naive_peak_bytes = p->naive_peak_bytes,
                                              .lower_bound_bytes = p->lower_bound_bytes,
                                              .proved_bytes = p->proved_bytes,
                                              .proof = p->proof};
    }
    return TIDE_OK;
}

tide_status tide__plan_settle(tide_memory_plan *plan, tide_error *err) {
    tide_problems problems;
    TIDE_TRY(tide__problems_make(&plan->lifetimes, &problems, err));
    const tide_status st = add_buffers(plan, &problems, err);
    tide__problems_deinit(&problems);
    return st;
}

/// An empty tensor needs an entry, so that the runtime's strict rule holds, and no bytes.
static void place_the_rest(tide_memory_plan *plan) {
    const tide_lifetimes *lt = &plan->lifetimes;
    for (uint32_t i = 0; i < lt->n; i++) {
        if (!lt->items[i].persistent && lt->items[i].alias == TIDE_ALIAS_NONE && lt->items[i].size_bytes == 0)
            plan->offsets[i] = lt->items[i].fixed ? lt->items[i].fixed_offset_bytes : 0;
    }
    for (uint32_t i = 0; i < lt->n; i++) {
        if (lt->items[i].alias == TIDE_ALIAS_NONE) continue;
        uint64_t at;
        const uint32_t root = tide_lifetimes_root(lt, i, &at);
        if (plan->offsets[root] != TIDE_NO_OFFSET) plan->offsets[i] = plan->offsets[root] + at;
    }
}

static bool add_to(uint64_t *sum, uint64_t bytes) { return tide_add_u64(*sum, bytes, sum) && *sum <= INT64_MAX; }

tide_status tide__plan_close(tide_memory_plan *plan, tide_error *err) {
    place_the_rest(plan);
    plan->align_bytes = 1;
    plan->bytes = plan->naive_bytes = plan->naive_peak_bytes = plan->lower_bound_bytes = plan->proved_bytes = 0;
    for (size_t b = 0; b < plan->n_buffers; b++) {
        const tide_plan_buffer *buffer = &plan->buffers[b];
        if (buffer->align_bytes > plan->align_bytes) plan->align_bytes = buffer->align_bytes;
        if (!add_to(&plan->bytes, buffer->bytes) || !add_to(&plan->naive_bytes, buffer->naive_bytes) ||
            !add_to(&plan->naive_peak_bytes, buffer->naive_peak_bytes) ||
            !add_to(&plan->lower_bound_bytes, buffer->lower_bound_bytes) ||
            !add_to(&plan->proved_bytes, buffer->proved_bytes))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the %zu buffers together pass 2^63 - 1 bytes", plan->n_buffers);
    }
    TIDE_ASSERT(plan->naive_bytes >= plan->naive_peak_bytes && tide_is_pow2(plan->align_bytes));
    plan->proven = plan->bytes == plan->proved_bytes;
    return TIDE_OK;
}

tide_proof tide__plan_proof(const tide_memory_plan *plan) {
    tide_proof hardest = TIDE_PROOF_LIVE_SUM;
    for (size_t b = 0; b < plan->n_buffers; b++) {
        if (plan->buffers[b].proof > hardest) hardest = plan->buffers[b].proof;
    }
    return hardest;
}

// ---- running a strategy ----

static tide_status copy_pools(tide_memory_plan *plan, const tide_placement *pl, uint32_t buffer, tide_error *err) {
    if (pl->n_pools == 0) return TIDE_OK;
    size_t cap = plan->n_pools;
    TIDE_TRY(TIDE_GROW(&plan->pool_list, &cap, plan->n_pools + pl->n_pools, err, "for %zu pools",
                       plan->n_pools + pl->n_pools));
    for (size_t k = 0; k < pl->n_pools; k++) {
        plan->pool_list[plan->n_pools + k] = pl->pool_list[k];
        plan->pool_list[plan->n_pools + k].buffer = buffer;
    }
    return TIDE_OK;
}

/// Copy the placement of one buffer into the plan.
static tide_status copy_placement(tide_memory_plan *plan, const tide_problem *p, const tide_placement *pl,
                                  uint32_t buffer, tide_error *err) {
    TIDE_ASSERT(buffer < plan->n_buffers); // whatever else a strategy says, the verifier looks at
    TIDE_TRY(copy_pools(plan, pl, buffer, err));
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t lifetime = p->items[i].lifetime;
        plan->offsets[lifetime] = pl->offsets[i];
        if (pl->pools[i] != TIDE_NO_POOL) plan->pools[lifetime] = (int32_t)plan->n_pools + pl->pools[i];
    }
    plan->n_pools += pl->n_pools;
    plan->buffers[buffer].bytes = pl->bytes;
    plan->buffers[buffer].proved_bytes = pl->proved_bytes;
    plan->buffers[buffer].proof = pl->proof;
    return TIDE_OK;
}

static tide_status place_buffer(tide_memory_plan *plan, const tide_problem *p, uint32_t buffer,
                                const tide_strategy *strategy, const tide_strategy_options *opt, tide_error *err) {
    tide_placement pl;
    TIDE_TRY(tide__placement_init(&pl, p, err));
    const uint64_t t0 = tide_now_ns();
    tide_status st = strategy->place(strategy, p, opt, &pl, err);
    plan->time_ns += tide_now_ns() - t0;
    if (st == TIDE_OK) st = copy_placement(plan, p, &pl, buffer, err);
    tide__placement_deinit(&pl);
    if (st == TIDE_OK && tide__is_cancelled())
        st = TIDE_FAIL(err, TIDE_ERR_CANCELLED, "the plan of %zu lifetimes was cancelled", plan->lifetimes.n);
    return st;
}

/// The share of the remaining time for `n` of `n_left` items. Verifying is assumed to take as long as making the
/// problems took, `made_ns`.
static uint64_t share_of_time(const tide_strategy_options *opt, uint64_t begin_ns, uint64_t made_ns, size_t n,
                              size_t n_left) {
    TIDE_ASSERT(n <= n_left);
    if (opt->time_limit_ns == 0) return 0;
    const uint64_t spent_ns = tide_now_ns() - begin_ns + made_ns;
    if (spent_ns >= opt->time_limit_ns) return 1;
    const double share = (double)(opt->time_limit_ns - spent_ns) * (double)n / (double)n_left;
    return share < 1 ? 1 : (uint64_t)share;
}

/// All buffers share one time limit, by their numbers of tensors; time that one does not use goes to the next ones.
static tide_status place_all(tide_memory_plan *plan, const tide_problems *problems, const tide_strategy *strategy,
                             const tide_strategy_options *opt, uint64_t begin_ns, tide_error *err) {
    const uint64_t made_ns = tide_now_ns() - begin_ns;
    size_t n_left = 0;
    for (size_t b = 0; b < problems->n; b++) n_left += problems->list[b].n;
    TIDE_TRY(add_buffers(plan, problems, err));
    for (uint32_t b = 0; b < problems->n; b++) {
        tide_strategy_options own = *opt;
        own.time_limit_ns = share_of_time(opt, begin_ns, made_ns, problems->list[b].n, n_left);
        TIDE_TRY(place_buffer(plan, &problems->list[b], b, strategy, &own, err));
        n_left -= problems->list[b].n;
    }
    TIDE_ASSERT(n_left == 0 && plan->n_buffers == problems->n);
    return tide__plan_close(plan, err);
}

static tide_status make(tide_memory_plan *plan, const tide_strategy *strategy, const tide_strategy_options *opt,
                        tide_error *err) {
    static const tide_strategy_options none = {0};
    const uint64_t begin_ns = tide_now_ns();
    tide_problems problems;
    TIDE_TRY(tide__problems_make(&plan->lifetimes, &problems, err));
    tide_status st = place_all(plan, &problems, strategy, opt != NULL ? opt : &none, begin_ns, err);
    tide__problems_deinit(&problems);
    if (st == TIDE_OK) {
        st = tide_plan_verify(plan, NULL, err);
        if (st != TIDE_OK) tide_error_prefix(err, "strategy '%s'", strategy->name);
    }
    plan->verified = st == TIDE_OK;
    return st;
}

tide_status tide_plan_make(const tide_lifetimes *lt, const tide_strategy *strategy, const tide_strategy_options *opt,
                           tide_memory_plan **out, tide_error *err) {
    tide__planner_entered();
    tide_memory_plan *plan;
    TIDE_TRY(tide__plan_new(lt, strategy->name, strategy->form, &plan, err));
    tide__cancel cancel = {0};
    if (opt != NULL) {
        cancel.is_cancelled = opt->is_cancelled;
        cancel.ctx = opt->cancel_ctx;
    }
    tide__cancel *before = tide__cancel_work_for(&cancel);
    const tide_status st = make(plan, strategy, opt, err);
    tide__cancel *mine = tide__cancel_work_for(before);
    TIDE_ASSERT(mine == &cancel); // a plan that was made inside of it has put it back
    (void)mine;
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(plan);
        return st;
    }
    *out = plan;
    return TIDE_OK;
}

// ---- memory of the caller's ----

void tide_plan_set_memory(const tide_plan_memory *memory) {
    if (memory == NULL) {
        tide_host_set_source(NULL);
        return;
    }
    const tide_host_source source = {
        .take = memory->take, .resize = memory->resize, .give_back = memory->give_back, .ctx = memory->ctx};
    tide_host_set_source(&source);
}

// ---- pools laid end to end ----

tide_status tide_plan_pools_to_offsets(const tide_memory_plan *plan, tide_memory_plan **out, tide_error *err) {
    tide_memory_plan *flat;
    TIDE_TRY(tide_memory_plan_copy(plan, &flat, err));
    flat->form = TIDE_PLAN_OFFSETS;
    for (size_t i = 0; i < flat->lifetimes.n; i++) flat->pools[i] = TIDE_NO_POOL;
    tide_host_free(flat->pool_list);
    flat->pool_list = NULL;
    flat->n_pools = 0;
    const tide_status st = tide_plan_verify(flat, NULL, err);
    if (st != TIDE_OK) {
        tide_memory_plan_destroy(flat);
        return st;
    }
    *out = flat;
    return TIDE_OK;
}
