// SPDX-License-Identifier: MIT
//
// The memory of a context: the planned buffer and the tensors bound into it, in naive mode allocation and freeing while
// running, and the outputs. See runtime_internal.h.
//
//     planned   buffer  | x | y | scratch of conv | ... |   one block, Workspace, exactly the planned bytes, fixed
//     naive     x | y | scratch | ...                       one block each, Workspace, as long as it is needed
//     both      output 0 | output 1 | ...                   one block each, Default: no later step may reuse them
//     planned, in memory of the caller's: | buffer | output 0 | output 1 | ...   the same blocks (context_caller.c)
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/memory/poison.h"
#include "core/runtime/runtime_internal.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

/// Set fresh memory to what `fill` says.
static void fill_memory(tide_fill fill, void *data, size_t n) {
    if (fill == TIDE_FILL_NONE || data == NULL || n == 0) return;
    if (fill == TIDE_FILL_ZERO)
        memset(data, 0, n);
    else
        tide_poison_fill(data, n);
}

// ---- outputs ----
//
// One block each, taken for writing when a run begins. Their addresses are not kept from run to run: the caller may
// hold a lazy clone of an output, and then the first write gives the output memory of its own and leaves the clone its
// bytes.

static const tide_value *output_value(const tide_context *c, size_t i) {
    return &graph_of(c)->values[graph_of(c)->outputs[i]];
}

/// In the block that another context has for the same output.
static tide_status take_over_output(tide_context *c, uint32_t value_i, tide_tensor **out, tide_error *err) {
    const tide_value *v = &graph_of(c)->values[value_i];
    size_t i = 0, bytes = 0;
    while (graph_of(c)->outputs[i] != value_i) i++;
    TIDE_TRY(tide_shape_bytes(tide_value_most(v), v->dtype, &bytes, err));
    const tide_tensor *there = c->places_of->outputs[i];
    tide_block *block = there != NULL ? tide_tensor_storage(there)->block : NULL;
    const size_t room = block != NULL ? block->mem.requested_bytes : 0;
    if (bytes > room)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "output '%s' has %zu B and its place %zu B", v->name, bytes, room);
    tide_storage storage = {.device = c->plan->device};
    if (block != NULL) storage = tide_storage_of_block(block);
    const tide_status st = tide_tensor_create_on(&storage, 0, v->dtype, tide_value_most(v), out, err);
    tide_storage_deinit(&storage);
    return st;
}

/// A block of its own for a graph output.
static tide_status make_output(tide_context *c, uint32_t value_i, tide_tensor **out, tide_error *err) {
    const tide_value *v = &graph_of(c)->values[value_i];
    if (c->places_of != NULL) return take_over_output(c, value_i, out, err);
    const tide_tensor_spec spec = {.dtype = v->dtype,
                                   .shape = *tide_value_most(v),
                                   .device = c->plan->device,
                                   .kind = TIDE_KIND_DEFAULT,
                                   .align_bytes = c->plan->align_bytes,
                                   .registry = c->plan->registry,
                                   .tag = v->name};
    const tide_status st =
        c->caller != NULL ? tide__context_caller_output(c, value_i, out, err) : tide_tensor_create(&spec, out, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "output '%s'", v->name);
        return st;
    }
    if (tide_tensor_size_bytes(*out) > 0) fill_memory(c->fill, tide_tensor_data(*out), tide_tensor_size_bytes(*out));
    return TIDE_OK;
}

/// A graph output that no step writes (an input or a constant handed through) gets a tensor to be copied into.
static tide_status make_outputs(tide_context *c, tide_error *err) {
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        const uint32_t v = graph_of(c)->outputs[i];
        if (c->plan->needs[v].dynamic) continue; // made while running
        if (c->values[v] != NULL) {
            c->outputs[i] = tide_tensor_ref(c->values[v]);
        } else {
            TIDE_TRY(make_output(c, v, &c->outputs[i], err));
        }
        const tide_block *block = tide_tensor_storage(c->outputs[i])->block;
        c->output_blocks[i] = block != NULL ? block->id : 0;
    }
    return TIDE_OK;
}

/// Between runs any caller may have changed the tensor. One that is sized in each run begins as its bound.
static tide_status check_output(const tide_context *c, size_t i, tide_error *err) {
    const tide_value *v = output_value(c, i);
    tide_tensor *t = c->outputs[i];
    if (v->is_bounded && tide_tensor_dtype(t) == v->dtype) TIDE_TRY(tide_tensor_set_shape(t, &v->bound->most, err));
    if (tide_tensor_dtype(t) == v->dtype && tide_shape_equal(tide_tensor_shape(t), tide_value_most(v)) &&
        tide_tensor_is_contiguous(t) && tide_device_equal(tide_tensor_device(t), c->plan->device) &&
        (tide_tensor_size_bytes(t) == 0 || tide_tensor_is_bound(t)))
        return TIDE_OK;
    char want[192], got[192];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "output '%s' was changed: the run writes %s %s, it is %s %s%s", v->name,
                     tide_dtype_name(v->dtype), tide_shape_format(tide_value_most(v), want, sizeof want),
                     tide_dtype_name(tide_tensor_dtype(t)), tide_shape_format(tide_tensor_shape(t), got, sizeof got),
                     tide_tensor_is_bound(t) ? "" : " without memory");
}

static tide_status write_output(tide_context *c, size_t i, tide_error *err) {
    if (c->outputs[i] == NULL) return TIDE_OK; // made while running
    TIDE_TRY(check_output(c, i, err));
    const tide_block *block = tide_tensor_storage(c->outputs[i])->block;
    if (block == NULL) return TIDE_OK; // no elements
    const bool ours = block->id == c->output_blocks[i];
    void *data;
    const tide_status st = tide_tensor_write(c->outputs[i], &data, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "output '%s'", output_value(c, i)->name);
        return st;
    }
    if (ours) c->output_blocks[i] = block->id; // the copy that a write made is the runtime's too
    if (c->values[graph_of(c)->outputs[i]] != NULL) c->data[graph_of(c)->outputs[i]] = data;
    return TIDE_OK;
}

tide_status tide__context_write_outputs(tide_context *c, tide_error *err) {
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) TIDE_TRY(write_output(c, i, err));
    return TIDE_OK;
}

static tide_status copy_output(tide_context *c, size_t i, tide_error *err) {
    const size_t n = tide_tensor_size_bytes(c->outputs[i]);
    if (n == 0) return TIDE_OK;
    void *data;
    TIDE_TRY(tide_tensor_write(c->outputs[i], &data, err));
    TIDE_ASSERT(c->data[graph_of(c)->outputs[i]] != NULL);
    memcpy(data, c->data[graph_of(c)->outputs[i]], n);
    c->stats.n_copied_bytes += n;
    return TIDE_OK;
}

tide_status tide__context_copy_outputs(tide_context *c, tide_error *err) {
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        if (c->values[graph_of(c)->outputs[i]] == NULL) TIDE_TRY(copy_output(c, i, err));
    }
    return TIDE_OK;
}

// ---- planned mode: one buffer ----

/// The buffer of another context, which is as large: what lies in it is whatever that one left.
static tide_status take_over_buffer(tide_context *c, uint64_t bytes, tide_error *err) {
    tide_block *buffer = c->places_of->buffer;
    const uint64_t there = buffer != NULL ? buffer->mem.requested_bytes : 0;
    if (there < bytes)
        return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "plan buffer of %" PRIu64 " B in the place of one of %" PRIu64 " B",
                         bytes, there);
    c->buffer = tide_block_ref(buffer);
    c->stats.buffer_bytes = bytes;
    return TIDE_OK;
}

static tide_status take_buffer(tide_context *c, tide_error *err) {
    const tide_plan_buffer *m = c->plan->buffer;
    if (c->mode != TIDE_RUN_PLANNED || m == NULL || m->bytes == 0) return TIDE_OK; // nothing to place needs no buffer
    if (c->places_of != NULL) return take_over_buffer(c, m->bytes, err);
    tide_status st = tide_block_create(c->workspace, m->bytes, tide__plan_buffer_align(m), TIDE_KIND_WORKSPACE, 0,
                                       "plan buffer", &c->buffer, err);
    if (st == TIDE_OK) st = tide_block_fix(c->buffer, err); // every tensor in it is reached by a kept address
    if (st != TIDE_OK) {
        tide_error_prefix(err, "plan buffer of %" PRIu64 " B", m->bytes);
        return st;
    }
    fill_memory(c->fill, c->buffer->mem.data, m->bytes);
    c->stats.buffer_bytes = m->bytes;
    return TIDE_OK;
}

tide_bind_result tide__context_bind(tide_context *c, uint32_t value_i, tide_error *err) {
    if (c->mode != TIDE_RUN_PLANNED || c->plan->places[value_i].offset_bytes == TIDE_NO_OFFSET)
        return TIDE_BIND_NOT_TRIED;
    const tide__place *place = &c->plan->places[value_i];
    const char *name = graph_of(c)->values[value_i].name;
    if (c->buffer == NULL) {
        TIDE_FAIL(err, TIDE_ERR_RUNTIME, "tensor '%s' has a place at offset %" PRIu64 " and there is no buffer", name,
                  place->offset_bytes);
        return TIDE_BIND_FAILED;
    }
    tide_storage whole = tide_storage_of_block(c->buffer);
    tide_storage slot = {.device = c->plan->device};
    tide_status st = tide_storage_slice(&whole, place->offset_bytes, place->slot_bytes, &slot, err);
    if (st == TIDE_OK) st = tide_tensor_bind(c->values[value_i], &slot, 0, err);
    if (st != TIDE_OK) tide_error_prefix(err, "tensor '%s'", name);
    tide_storage_deinit(&slot);
    tide_storage_deinit(&whole);
    return st == TIDE_OK ? TIDE_BIND_BOUND : TIDE_BIND_FAILED;
}

static tide_status bind_value(tide_context *c, uint32_t value_i, tide_error *err) {
    switch (tide__context_bind(c, value_i, err)) {
    case TIDE_BIND_NOT_TRIED:
        c->stats.n_not_tried++;
        break;
    case TIDE_BIND_BOUND:
        c->stats.n_bound++;
        c->data[value_i] = tide_tensor_data(c->values[value_i]);
        break;
    case TIDE_BIND_FAILED:
        c->stats.n_failed++;
        if (err != NULL) tide_log(TIDE_LOG_ERROR, "context: %s", err->msg);
        return TIDE_ERR_RUNTIME;
    }
    return TIDE_OK;
}

static void bind_scratch(tide_context *c) {
    if (c->mode != TIDE_RUN_PLANNED) return;
    for (size_t i = 0; i < c->plan->program->n_steps; i++) {
        const tide__place *place = &c->plan->scratch[i];
        if (place->offset_bytes == TIDE_NO_OFFSET) continue;
        TIDE_ASSERT(c->buffer != NULL && place->offset_bytes + place->slot_bytes <= c->buffer->mem.requested_bytes);
        c->steps[i].args.workspace = (char *)c->buffer->mem.data + place->offset_bytes;
    }
}

// ---- tensors of node outputs ----

static tide_status make_intermediate(tide_context *c, uint32_t value_i, tide_error *err) {
    const tide_value *v = &graph_of(c)->values[value_i];
    TIDE_TRY(tide_tensor_create_unbound(v->dtype, tide_value_most(v), c->plan->device, &c->values[value_i], err));
    return bind_value(c, value_i, err);
}

/// Weights do not move after they are loaded: their address is read once.
static tide_status read_weight(tide_context *c, uint32_t value_i, tide_error *err) {
    if (c->plan->weights[value_i] == NULL) return TIDE_OK;
    const void *data;
    const tide_status st = tide_tensor_read(c->plan->weights[value_i], &data, err);
    if (st != TIDE_OK) tide_error_prefix(err, "weight '%s'", graph_of(c)->values[value_i].name);
    if (st == TIDE_OK) c->data[value_i] = (void *)(uintptr_t)data;
    return st;
}

static tide_status make_values(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    for (uint32_t v = 0; v < g->n_values; v++) {
        TIDE_TRY(read_weight(c, v, err));
        if (c->plan->needs[v].birth_step < 0) continue; // fed, constant or unused
        if (c->plan->needs[v].dynamic) continue;        // made while running
        if (c->plan->needs[v].intermediate) {
            TIDE_TRY(make_intermediate(c, v, err));
            continue;
        }
        TIDE_TRY(make_output(c, v, &c->values[v], err));
        c->stats.n_not_tried++;
    }
    return TIDE_OK;
}

tide_status tide__context_take_memory(tide_context *c, tide_error *err) {
    TIDE_TRY(take_buffer(c, err));
    TIDE_TRY(make_values(c, err));
    TIDE_TRY(make_outputs(c, err));
    TIDE_ASSERT(tide__context_caller_is_full(c));
    bind_scratch(c);
    tide__poison_open(c);
    return TIDE_OK;
}

static void unref_all(tide_tensor **tensors, size_t n) {
    if (tensors == NULL) return;
    for (size_t i = 0; i < n; i++) tide_tensor_unref(tensors[i]);
    tide_host_free(tensors);
}

void tide__context_drop_memory(tide_context *c) {
    const tide_graph *g = graph_of(c);
    tide__poison_close(c);
    tide_block_unref(c->scratch);
    unref_all(c->outputs, g->n_outputs);
    unref_all(c->inputs, g->n_inputs);
    unref_all(c->values, g->n_values);
    tide_host_free(c->output_blocks);
    tide_host_free(c->data);
    tide_block_unref(c->buffer);
}

// ---- naive mode: allocation and freeing while running ----

tide_status tide__context_take_block(tide_context *c, tide_allocator *from, tide_memory_kind kind, uint64_t size_bytes,
                                     size_t align_bytes, const char *tag, tide_block **out, tide_error *err) {
    uint64_t rounded;
    if (!tide_align_up(size_bytes, align_bytes, &rounded))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "'%s': %" PRIu64 " B rounded up to %zu B", tag, size_bytes,
                         align_bytes);
    TIDE_TRY(tide_block_create(from, rounded, align_bytes, kind, 0, tag, out, err));
    fill_memory(c->fill, (*out)->mem.data, rounded);
    return TIDE_OK;
}

static tide_status take_block(tide_context *c, uint64_t size_bytes, size_t align_bytes, const char *tag,
                              tide_block **out, tide_error *err) {
    return tide__context_take_block(c, c->workspace, TIDE_KIND_WORKSPACE, size_bytes, align_bytes, tag, out, err);
}

static tide_status alloc_value(tide_context *c, uint32_t value_i, tide_error *err) {
    const tide__need *need = &c->plan->needs[value_i];
    if (!need->intermediate || need->size_bytes == 0) return TIDE_OK;
    TIDE_ASSERT(!tide_tensor_is_bound(c->values[value_i]) && c->data[value_i] == NULL);
    tide_block *block;
    TIDE_TRY(take_block(c, need->size_bytes, c->plan->align_bytes, graph_of(c)->values[value_i].name, &block, err));
    tide_storage whole = tide_storage_of_block(block);
    const tide_status st = tide_tensor_bind(c->values[value_i], &whole, 0, err);
    tide_storage_deinit(&whole);
    // Not as the tensor has it: a bounded one may be empty still, from the run before.
    if (st == TIDE_OK) c->data[value_i] = block->mem.data;
    tide_block_unref(block); // the tensor holds it now
    return st;
}

tide_status tide__context_alloc_step(tide_context *c, size_t step_i, tide_error *err) {
    const tide_kernel *k = &c->plan->program->steps[step_i].kernel;
    for (size_t port = 0; port < k->node->n_outputs; port++) {
        if (k->node->outputs[port] != TIDE_NO_VALUE) TIDE_TRY(alloc_value(c, k->node->outputs[port], err));
    }
    if (k->workspace_bytes == 0) return TIDE_OK;
    const size_t align = c->plan->align_bytes > TIDE_WORKSPACE_ALIGN ? c->plan->align_bytes : TIDE_WORKSPACE_ALIGN;
    TIDE_ASSERT(c->scratch == NULL);
    TIDE_TRY(take_block(c, k->workspace_bytes, align, c->steps[step_i].scratch_tag, &c->scratch, err));
    c->steps[step_i].args.workspace = c->scratch->mem.data;
    return TIDE_OK;
}

void tide__context_free_value(tide_context *c, uint32_t value_i) {
    tide_tensor_unbind(c->values[value_i]);
    c->data[value_i] = NULL;
}

static void free_if_last(tide_context *c, uint32_t value_i, size_t step_i) {
    if (value_i == TIDE_NO_VALUE) return;
    if (c->plan->needs[value_i].intermediate && tide__value_ends(c, value_i, step_i))
        tide__context_free_value(c, value_i);
}

static void drop_scratch(tide_context *c, size_t step_i) {
    tide_block_unref(c->scratch);
    c->scratch = NULL;
    c->steps[step_i].args.workspace = NULL;
}

void tide__context_free_step(tide_context *c, size_t step_i) {
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    drop_scratch(c, step_i);
    for (size_t k = 0; k < node->n_inputs; k++) free_if_last(c, node->inputs[k], step_i);
    for (size_t k = 0; k < node->n_outputs; k++) free_if_last(c, node->outputs[k], step_i);
}

void tide__context_free_rest(tide_context *c) {
    for (size_t i = 0; i < c->plan->program->n_steps; i++) drop_scratch(c, i);
    for (uint32_t v = 0; v < graph_of(c)->n_values; v++) {
        if (c->plan->needs[v].intermediate) tide__context_free_value(c, v);
    }
}
