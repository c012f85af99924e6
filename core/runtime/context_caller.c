// SPDX-License-Identifier: MIT
//
// A context in memory of the caller's: how much it needs, and how its buffer and outputs come to lie there.
//
//     memory   | planned buffer |pad| output | output | ... |  not touched |
//              0                                      need.bytes     memory_bytes
//
// The sizes of outputs are multiples of their common alignment, so that only the end of the buffer may need padding,
// and it does not where a planner has made it: every tensor in it is rounded up to that alignment or a larger one.
// Blocks are cut by a cursor in the order in which they are made (allocators/caller.c). The question counts them in the
// same order, so that the answer is exact.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/memory/allocators/allocators.h"
#include "core/runtime/runtime_internal.h"

// ---- how much ----

/// Count a block: it begins at the next multiple of `align_bytes`. @return false: the sum overflows
static bool add_block(tide_context_need *need, uint64_t bytes, size_t align_bytes) {
    if (bytes == 0) return true; // has no block
    if (align_bytes > need->align_bytes) need->align_bytes = align_bytes;
    return tide_align_up(need->bytes, align_bytes, &need->bytes) && tide_add_u64(need->bytes, bytes, &need->bytes);
}

/// Bytes of the block of a graph output.
static tide_status output_bytes(const tide_inference_plan *p, uint32_t value_i, uint64_t *out, tide_error *err) {
    const tide_value *v = &p->program->graph->values[value_i];
    size_t bytes = 0;
    tide_status st = tide_shape_bytes(tide_value_most(v), v->dtype, &bytes, err);
    if (st == TIDE_OK && !tide_align_up(bytes, p->align_bytes, out))
        st =
            TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu B rounded up to %zu do not fit into 64 bits", bytes, p->align_bytes);
    if (st != TIDE_OK) tide_error_prefix(err, "output '%s'", v->name);
    return st;
}

static tide_status add_output(const tide_inference_plan *p, uint32_t value_i, tide_context_need *need,
                              tide_error *err) {
    uint64_t bytes = 0;
    TIDE_TRY(output_bytes(p, value_i, &bytes, err));
    need->output_bytes += bytes; // not above need->bytes, whose overflow is found
    if (add_block(need, bytes, p->align_bytes)) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "graph '%s': buffer and outputs together pass 2^64 - 1 B",
                     p->program->graph->name);
}

/// First the outputs that a step makes, then those that are copied (an input or a constant handed through): as
/// context_memory.c makes them.
static tide_status add_outputs(const tide_inference_plan *p, tide_context_need *need, tide_error *err) {
    const tide_graph *g = p->program->graph;
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (p->needs[v].birth_step >= 0 && !p->needs[v].intermediate && !p->needs[v].dynamic)
            TIDE_TRY(add_output(p, v, need, err));
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        if (p->needs[g->outputs[i]].birth_step < 0) TIDE_TRY(add_output(p, g->outputs[i], need, err));
    }
    return TIDE_OK;
}

tide_status tide_context_need_of(const tide_inference_plan *plan, tide_context_need *out, tide_error *err) {
    if (plan->memory == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s': what a context needs is not known without a memory plan",
                         plan->program->graph->name);
    tide_context_need need = {.align_bytes = 1};
    if (plan->buffer != NULL) {
        need.buffer_bytes = plan->buffer->bytes;
        (void)add_block(&need, plan->buffer->bytes, tide__plan_buffer_align(plan->buffer)); // the first: no sum yet
    }
    TIDE_TRY(add_outputs(plan, &need, err));
    TIDE_ASSERT(need.bytes >= need.buffer_bytes && need.bytes - need.buffer_bytes >= need.output_bytes);
    *out = need;
    return TIDE_OK;
}

// ---- in the caller's memory ----

static tide_status check_memory(const tide_context *c, const tide_context_options *opt, const tide_context_need *need,
                                tide_error *err) {
    if (opt->memory == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory of the caller: %zu B at address NULL", opt->memory_bytes);
    if (c->plan->device.type != TIDE_DEVICE_CPU)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "memory of the caller can be host memory only");
    if (opt->memory_bytes < need->bytes)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                         "memory of the caller: %" PRIu64 " B are needed (buffer %" PRIu64 " B, outputs %" PRIu64
                         " B), there are %zu B",
                         need->bytes, need->buffer_bytes, need->output_bytes, opt->memory_bytes);
    if ((uintptr_t)opt->memory % need->align_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory of the caller: %p is no multiple of %zu B", opt->memory,
                         need->align_bytes);
    return TIDE_OK;
}

/// The allocator, and around it what tells the observer of its blocks.
static tide_status make_allocator(tide_context *c, tide_error *err) {
    tide_allocator *plain = NULL;
    TIDE_TRY(tide_caller_create((void *)(uintptr_t)c->memory, c->memory_bytes, 1, &plain, err));
    if (c->observer == NULL || c->observer->on_memory == NULL) {
        c->caller = plain;
        return TIDE_OK;
    }
    const tide_status st = tide_instrumented_create(plain, c->observer, &c->caller, err);
    tide_allocator_unref(plain);
    return st;
}

tide_status tide__context_open_caller(tide_context *c, const tide_context_options *opt, tide_error *err) {
    TIDE_ASSERT(c->workspace == NULL && c->caller == NULL && c->buffer == NULL);
    if (c->mode != TIDE_RUN_PLANNED)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "memory of the caller in naive mode: what that takes is not planned");
    tide_context_need need;
    TIDE_TRY(tide_context_need_of(c->plan, &need, err));
    TIDE_TRY(check_memory(c, opt, &need, err));
    c->memory = opt->memory;
    c->memory_bytes = (size_t)need.bytes; // no more than memory_bytes
    TIDE_TRY(make_allocator(c, err));
    c->workspace = tide_allocator_ref(c->caller);
    return TIDE_OK;
}

tide_status tide__context_caller_output(tide_context *c, uint32_t value_i, tide_tensor **out, tide_error *err) {
    const tide_value *v = &c->plan->program->graph->values[value_i];
    uint64_t bytes = 0;
    TIDE_TRY(output_bytes(c->plan, value_i, &bytes, err));
    tide_storage storage = {.device = c->plan->device};
    if (bytes > 0) {
        tide_block *block = NULL;
        TIDE_TRY(tide_block_create(c->caller, (size_t)bytes, c->plan->align_bytes, TIDE_KIND_DEFAULT, 0, v->name,
                                   &block, err));
        storage = tide_storage_of_block(block);
        tide_block_unref(block);
    }
    const tide_status st = tide_tensor_create_on(&storage, 0, v->dtype, tide_value_most(v), out, err);
    tide_storage_deinit(&storage);
    return st;
}

bool tide__context_is_in_caller(const tide_context *c, const tide_tensor *t) {
    if (c->memory == NULL || tide_tensor_storage(t)->block == NULL) return false;
    const uintptr_t begin = (uintptr_t)tide_storage_data(tide_tensor_storage(t)) + tide_tensor_offset_bytes(t);
    const uintptr_t memory = (uintptr_t)c->memory;
    return begin < memory + c->memory_bytes && memory < begin + tide_tensor_size_bytes(t);
}

bool tide__context_caller_is_full(const tide_context *c) {
    if (c->caller == NULL) return true;
    tide_allocator_stats stats;
    tide_allocator_get_stats(c->caller, &stats);
    return stats.active_bytes == c->memory_bytes && stats.n_failed == 0;
}
