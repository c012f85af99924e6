// SPDX-License-Identifier: MIT
//
// What the simulated CUPTI is told: one pointer, looked at before anything is prepared for it.
#include <stdatomic.h>
#include <unistd.h>

#include "tests/cuda/driver/sim.h"

const tidesim_hooks *_Atomic sim_hooks;

SIM_API void tidesim_set_hooks(const tidesim_hooks *hooks) {
    atomic_store_explicit(&sim_hooks, hooks, memory_order_release);
}

void sim_hook_life(bool is_stream, bool created, const sim_ctx *ctx, const sim_stream *stream) {
    const tidesim_hooks *hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);
    if (hooks == NULL || (is_stream ? hooks->stream : hooks->context) == NULL) return;
    const tidesim_life event = {.created = created,
                                .context = (uint32_t)ctx->object.id,
                                .device = (uint32_t)ctx->device->ordinal,
                                .stream = stream != NULL ? (uint32_t)stream->id : 0,
                                .handle = (CUcontext)(uintptr_t)ctx,
                                .stream_handle =
                                    stream != NULL && !stream->is_legacy ? (CUstream)(uintptr_t)stream : NULL,
                                .t_ns = sim_now_ns(),
                                .flags = stream != NULL ? stream->flags : ctx->flags,
                                .priority = stream != NULL ? stream->priority : 0};
    (is_stream ? hooks->stream : hooks->context)(hooks->user, &event);
}

void sim_hook_pool(tidesim_pool_op op, const sim_pool *pool, uint64_t min_bytes) {
    const tidesim_hooks *hooks = atomic_load_explicit(&sim_hooks, memory_order_acquire);
    if (hooks == NULL || hooks->pool == NULL) return;
    const tidesim_pool_event event = {.op = op,
                                      .pool = (uint64_t)(uintptr_t)pool,
                                      .reserved = sim_pool_reserved(pool),
                                      .threshold = sim_pool_threshold(pool),
                                      .used = sim_pool_used(pool),
                                      .min_bytes_to_keep = min_bytes,
                                      .t_ns = sim_now_ns(),
                                      .device = (uint32_t)sim_pool_device(pool)->ordinal,
                                      .correlation = sim_correlation_now(),
                                      .pid = (uint32_t)getpid()};
    hooks->pool(hooks->user, &event);
}
