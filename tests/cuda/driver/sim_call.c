// SPDX-License-Identifier: MIT
//
// What every entry point does before and after its own work: count, planned failures, hooks, and the checks that hold
// for all (initialised, a context, no capture in the way). The order of the checks is measured: without cuInit a call
// says NOT_INITIALIZED, without a context INVALID_CONTEXT.
#include <stdatomic.h>
#include <stdio.h>

#include <cupti_driver_cbid.h>

#include "tests/cuda/driver/sim.h"

const sim_row sim_rows[] = {
#define X(name, base, version, needs)                                                                                  \
    {#name, #base, CUPTI_DRIVER_TRACE_CBID_##name, version, needs, (void (*)(void))name},
#include "tests/cuda/driver/sim_entries.h"
#undef X
};
const int sim_n_rows = SIM_N_ROWS;

static _Atomic uint32_t n_calls;
static _Thread_local uint32_t my_correlation;

uint32_t sim_correlation_now(void) { return my_correlation; }
SIM_API uint32_t tidesim_correlation(void) { return my_correlation; }

static void tell_hook(sim_call *call, CUresult *result) {
    const tidesim_hooks *hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);
    if (hooks == NULL || hooks->api == NULL) return;
    CUresult ignored;
    const bool may_look = sim.ready && !sim_is_forked_child();
    if (may_look) sim_lock_take();
    const sim_ctx *ctx = may_look ? sim_ctx_current(&ignored) : NULL;
    const uint32_t ctx_id = ctx != NULL ? (uint32_t)ctx->object.id : 0;
    const uint32_t device = ctx != NULL ? (uint32_t)ctx->device->ordinal : 0;
    if (may_look) sim_lock_drop();
    const tidesim_api event = {.enter = result == NULL,
                               .name = call->row->name,
                               .cbid = call->row->cbid,
                               .params = call->params,
                               .result = result,
                               .correlation = call->correlation,
                               .context = ctx_id,
                               .device = device,
                               .handle = (CUcontext)(void *)(uintptr_t)ctx,
                               .tid = sim_tid(),
                               .t_ns = sim_now_ns(),
                               .cookie = &call->cookie};
    hooks->api(hooks->user, &event);
}

static CUresult checked(sim_call *call) {
    const unsigned needs = call->row->needs;
    if (needs & SIM_NEEDS_INIT && (!sim.ready || sim_is_forked_child())) return CUDA_ERROR_NOT_INITIALIZED;
    // cuda.h, cuLaunchHostFunc: host functions must not call the driver.
    if (needs & SIM_NEEDS_INIT && sim_in_host_func()) return CUDA_ERROR_NOT_PERMITTED;
    if (needs & SIM_UNLOCKED) return CUDA_SUCCESS;
    sim_lock_take();
    call->locked = true;
    CUresult why = CUDA_SUCCESS;
    if (needs & SIM_NEEDS_INIT) call->ctx = sim_ctx_current(&why);
    if ((needs & SIM_NEEDS_CTX) == SIM_NEEDS_CTX && call->ctx == NULL) return why;
    return needs & SIM_UNSAFE ? sim_capture_forbids() : CUDA_SUCCESS;
}

CUresult sim_enter(sim_call *call, int row_i, const void *params) {
    sim_configure();
    *call = (sim_call){.row = &sim_rows[row_i], .params = params};
    call->correlation = my_correlation = atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed) + 1;
    tell_hook(call, NULL);
    const CUresult planned = sim_fail_check(row_i);
    return planned != CUDA_SUCCESS ? planned : checked(call);
}

CUresult sim_leave(sim_call *call, CUresult result) {
    if (call->locked) sim_lock_drop();
    tell_hook(call, &result);
    sim_log_call(call, result);
    return result;
}
