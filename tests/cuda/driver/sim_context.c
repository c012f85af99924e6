// SPDX-License-Identifier: MIT
//
// Contexts: primary ones, which a device has of its own and counts, and others; and each thread's stack of current ones
// (cuda.h, "Context Management", "Primary Context Management").
#include <stdio.h>

#include "tests/cuda/driver/sim.h"

// What a context takes of the device (measured on an H100: the first one in a process and the further ones).
#define FIRST_CONTEXT_BYTES (526 * SIM_MIB)
#define CONTEXT_BYTES ((uint64_t)503360 * 1024)

#define MAX_DEPTH 128

static _Thread_local struct current {
    sim_ctx *ctx;
    uint64_t id; ///< tells a context from a later one at the same address
} stack[MAX_DEPTH];
static _Thread_local size_t depth;

static void push(sim_ctx *ctx) {
    if (depth == MAX_DEPTH) {
        fputs("tidesim: a thread pushed too many contexts\n", stderr);
        abort();
    }
    stack[depth++] = (struct current){ctx, ctx->is_primary ? 0 : ctx->object.id};
}

// cuda.h, cuCtxDestroy: a context that was destroyed stays current to other threads, which then get
// CUDA_ERROR_CONTEXT_IS_DESTROYED.
sim_ctx *sim_ctx_current(CUresult *why) {
    *why = CUDA_ERROR_INVALID_CONTEXT;
    if (depth == 0 || stack[depth - 1].ctx == NULL) return NULL;
    sim_ctx *ctx = sim_object_find(stack[depth - 1].ctx, SIM_CONTEXT);
    const bool same = ctx != NULL && (ctx->is_primary || ctx->object.id == stack[depth - 1].id);
    if (same && ctx->active) return ctx;
    *why = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return NULL;
}

sim_ctx *sim_ctx_of(CUcontext handle) {
    sim_ctx *ctx = sim_object_of(handle, SIM_CONTEXT);
    return ctx;
}

static sim_entry_info overhead_of(const sim_ctx *ctx) {
    return (sim_entry_info){.kind = TIDESIM_CONTEXT,
                            .device = ctx->device,
                            .address = (uint64_t)(uintptr_t)ctx,
                            .bytes = ctx->overhead_bytes,
                            .ctx = ctx,
                            .quiet = true};
}

static bool open_ctx(sim_ctx *ctx) {
    sim_device *device = ctx->device;
    ctx->overhead_bytes = sim.context_bytes != 0 ? sim.context_bytes
                          : device->had_context  ? CONTEXT_BYTES
                                                 : FIRST_CONTEXT_BYTES;
    if (!sim_take(device, ctx->overhead_bytes)) return false;
    device->had_context = true;
    ctx->active = true;
    const sim_entry_info entry = overhead_of(ctx);
    sim_ledger_alloc(&entry);
    ctx->legacy = sim_stream_new(ctx, 0, 0);
    sim_hook_life(false, true, ctx, NULL);
    return true;
}

static void is_on_device(sim_object *object, void *user) {
    const sim_ctx *ctx = (const sim_ctx *)object;
    struct {
        const sim_device *device;
        size_t n;
    } *count = user;
    count->n += ctx->active && ctx->device == count->device;
}

static bool is_last_of_device(const sim_ctx *ctx) {
    struct {
        const sim_device *device;
        size_t n;
    } count = {ctx->device, 0};
    sim_objects_each(SIM_CONTEXT, is_on_device, &count);
    return count.n == 1;
}

// Everything in it goes, after all work of the device is done, as cuMemFree waits for it (GUESS: that it waits).
static void close_ctx(sim_ctx *ctx) {
    // GUESS: CUPTI's "destroy starting" comes before anything is taken away, and with no lock held.
    sim_lock_drop();
    sim_hook_life(false, false, ctx, NULL);
    sim_lock_take();
    sim_device_drain(ctx->device);
    const bool is_last = is_last_of_device(ctx);
    sim_captures_of_ctx_free(ctx);
    sim_streams_of_ctx_free(ctx);
    sim_events_of_ctx_free(ctx);
    sim_modules_of_ctx_free(ctx);
    sim_memory_of_ctx_free(ctx, is_last);
    // cuda.h: a reset of the primary context takes all of the device along; cuCtxDestroy leaves pools alone.
    if (is_last && ctx->is_primary) sim_pools_of_device_free(ctx->device);
    sim_pools_synchronised();
    const sim_entry_info entry = overhead_of(ctx);
    sim_ledger_free(&entry);
    sim_give(ctx->device, ctx->overhead_bytes);
    ctx->active = false;
}

static sim_ctx *ctx_new(sim_device *device, unsigned flags) {
    sim_ctx *ctx = SIM_NEW(sim_ctx);
    ctx->device = device;
    ctx->flags = flags;
    sim_object_add(&ctx->object, SIM_CONTEXT);
    return ctx;
}

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev) {
    sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (pctx == NULL || flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
    sim_ctx *ctx = ctx_new(device, flags);
    if (!open_ctx(ctx)) {
        sim_object_remove(&ctx->object);
        free(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    push(ctx);
    *pctx = (CUcontext)ctx;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev)) {
    return create(pctx, flags, dev);
}

SIM_ENTRY(cuCtxCreate_v3,
          (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev),
          (pctx, paramsArray, numParams, flags, dev)) {
    return numParams != 0 ? CUDA_ERROR_NOT_SUPPORTED : create(pctx, flags, dev);
}

SIM_ENTRY(cuCtxCreate_v4, (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
          (pctx, ctxCreateParams, flags, dev)) {
    // cuda.h: without affinity and without shared graphics it is an ordinary context; others are not simulated.
    const CUctxCreateParams *more = ctxCreateParams;
    const bool plain = more == NULL || (more->numExecAffinityParams == 0 && more->cigParams == NULL);
    return plain ? create(pctx, flags, dev) : CUDA_ERROR_NOT_SUPPORTED;
}

SIM_ENTRY(cuCtxDestroy_v2, (CUcontext handle), (handle)) {
    sim_ctx *ctx = sim_ctx_of(handle);
    if (ctx == NULL) return handle == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->is_primary) { // cuda.h, "Primary Context Management": it cannot be destroyed by cuCtxDestroy
        sim_misused("cuCtxDestroy of a primary context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    close_ctx(ctx);
    if (depth > 0 && stack[depth - 1].ctx == ctx) depth--;
    sim_object_remove(&ctx->object);
    free(ctx);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxPushCurrent_v2, (CUcontext handle), (handle)) {
    sim_ctx *ctx = sim_ctx_of(handle);
    if (ctx == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    push(ctx);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxPopCurrent_v2, (CUcontext * pctx), (pctx)) {
    if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (pctx != NULL) *pctx = (CUcontext)stack[depth].ctx;
    return CUDA_SUCCESS;
}

// cuda.h, cuCtxSetCurrent: replaces the top of the stack; NULL takes it away.
SIM_ENTRY(cuCtxSetCurrent, (CUcontext handle), (handle)) {
    sim_ctx *ctx = NULL;
    if (handle != NULL && (ctx = sim_ctx_of(handle)) == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (depth > 0) depth--;
    if (ctx != NULL) push(ctx);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxGetCurrent, (CUcontext * pctx), (pctx)) {
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    *pctx = depth > 0 ? (CUcontext)stack[depth - 1].ctx : NULL;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxGetDevice, (CUdevice * device), (device)) {
    if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
    *device = call->ctx->device->ordinal;
    return CUDA_SUCCESS;
}

// cuda.h has two forms since 13.0, and cuda.h's own name is the old one. cuGetProcAddress gives the new one to a caller
// that asks for version 13000 (cudaTypedefs.h: PFN_cuCtxGetDevice_v13000), as for cuCtxSynchronize.
static CUresult ctx_or_current(const sim_call *call, CUcontext handle, sim_ctx **out) {
    *out = handle != NULL ? sim_ctx_of(handle) : call->ctx;
    if (*out == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    return (*out)->active ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

SIM_ENTRY(cuCtxGetDevice_v2, (CUdevice * device, CUcontext handle), (device, handle)) {
    sim_ctx *ctx;
    SIM_TRY(ctx_or_current(call, handle, &ctx));
    if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
    *device = ctx->device->ordinal;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxSynchronize_v2, (CUcontext handle), (handle)) {
    sim_ctx *ctx;
    SIM_TRY(ctx_or_current(call, handle, &ctx));
    sim_device_drain(ctx->device);
    sim_pools_synchronised();
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxGetFlags, (unsigned int *flags), (flags)) {
    if (flags == NULL) return CUDA_ERROR_INVALID_VALUE;
    *flags = call->ctx->flags;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxGetId, (CUcontext handle, unsigned long long *ctxId), (handle, ctxId)) {
    const sim_ctx *ctx = handle != NULL ? sim_ctx_of(handle) : call->ctx;
    if (ctxId == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (ctx == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (!ctx->active) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ctxId = ctx->object.id;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxGetApiVersion, (CUcontext handle, unsigned int *version), (handle, version)) {
    const sim_ctx *ctx = handle != NULL ? sim_ctx_of(handle) : call->ctx;
    if (ctx == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxGetStreamPriorityRange, (int *leastPriority, int *greatestPriority), (leastPriority, greatestPriority)) {
    if (leastPriority != NULL) *leastPriority = 0;
    if (greatestPriority != NULL) *greatestPriority = -5;
    return CUDA_SUCCESS;
}

// It takes no parameters, so it has no struct of them.
SIM_API CUresult CUDAAPI cuCtxSynchronize(void) {
    sim_call call;
    const CUresult got = sim_enter(&call, SIM_ROW_cuCtxSynchronize, NULL);
    if (got == CUDA_SUCCESS) {
        sim_ctx_drain(call.ctx);
        sim_pools_synchronised();
    }
    return sim_leave(&call, got);
}

// Primary contexts. The handle of a device's stays the same from the first retain on.

SIM_ENTRY(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev), (pctx, dev)) {
    sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (pctx == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (device->primary == NULL) {
        device->primary = ctx_new(device, 0);
        device->primary->is_primary = device->primary->object.own = true;
    }
    if (!device->primary->active) {
        if (!open_ctx(device->primary)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->primary->refs++;
    *pctx = (CUcontext)device->primary;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev)) {
    const sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary == NULL || device->primary->refs == 0) {
        sim_misused("a primary context is released more often than retained");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--device->primary->refs == 0) close_ctx(device->primary);
    return CUDA_SUCCESS;
}

// cuda.h: "Explicitly destroys and cleans up all resources associated with the current device in the current process."
// The counts of those who hold it stay (GUESS).
SIM_ENTRY(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev)) {
    const sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary == NULL || !device->primary->active) return CUDA_SUCCESS;
    close_ctx(device->primary);
    device->primary->refs = 0;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active), (dev, flags, active)) {
    const sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == NULL || active == NULL) return CUDA_ERROR_INVALID_VALUE;
    *active = device->primary != NULL && device->primary->active;
    *flags = device->primary != NULL ? device->primary->flags : 0;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags), (dev, flags)) {
    sim_device *device = sim_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
    if (device->primary == NULL) {
        device->primary = ctx_new(device, 0);
        device->primary->is_primary = device->primary->object.own = true;
    }
    device->primary->flags = flags;
    return CUDA_SUCCESS;
}

SIM_API uint32_t tidesim_context_id(CUcontext context) {
    sim_lock_take();
    const sim_ctx *ctx = sim_object_find(context, SIM_CONTEXT);
    const uint32_t id = ctx != NULL && ctx->active ? (uint32_t)ctx->object.id : 0;
    sim_lock_drop();
    return id;
}
