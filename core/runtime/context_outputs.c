// SPDX-License-Identifier: MIT
//
// The outputs of a context: one block each, taken for writing when a run begins. See context.h.
//
// Their addresses are not kept from run to run: somebody may hold a lazy clone of an output, and then the first write
// gives the output memory of its own and leaves the clone its bytes.
#include <inttypes.h>
#include <string.h>

#include "core/runtime/context_internal.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

static const tide_value *output_value(const tide_context *c, size_t i) {
    return &graph_of(c)->values[graph_of(c)->outputs[i]];
}

// ---- made once ----

tide_status tide__context_make_output(tide_context *c, uint32_t value_i, tide_tensor **out, tide_error *err) {
    const tide_value *v = &graph_of(c)->values[value_i];
    const tide_tensor_spec spec = {.dtype = v->dtype,
                                   .shape = v->shape,
                                   .device = c->plan->device,
                                   .kind = TIDE_KIND_DEFAULT,
                                   .align_bytes = c->plan->align_bytes,
                                   .registry = c->plan->registry,
                                   .tag = v->name};
    const tide_status st = tide_tensor_create(&spec, out, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "output '%s'", v->name);
        return st;
    }
    if (tide_tensor_size_bytes(*out) > 0)
        tide__fill_memory(c->fill, tide_tensor_data(*out), tide_tensor_size_bytes(*out));
    return TIDE_OK;
}

/// A graph output that no step writes (an input or a constant handed through) gets a tensor to be copied into.
tide_status tide__context_make_outputs(tide_context *c, tide_error *err) {
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        const uint32_t v = graph_of(c)->outputs[i];
        if (c->values[v] != NULL) {
            c->outputs[i] = tide_tensor_ref(c->values[v]);
        } else {
            TIDE_TRY(tide__context_make_output(c, v, &c->outputs[i], err));
        }
        const tide_block *block = tide_tensor_storage(c->outputs[i])->block;
        c->output_blocks[i] = block != NULL ? block->id : 0;
    }
    return TIDE_OK;
}

// ---- each run ----

/// The tensor is in everybody's hands between runs.
static tide_status check_output(const tide_context *c, size_t i, tide_error *err) {
    const tide_value *v = output_value(c, i);
    const tide_tensor *t = c->outputs[i];
    if (tide_tensor_dtype(t) == v->dtype && tide_shape_equal(tide_tensor_shape(t), &v->shape) &&
        tide_tensor_is_contiguous(t) && tide_device_equal(tide_tensor_device(t), c->plan->device) &&
        (tide_tensor_size_bytes(t) == 0 || tide_tensor_is_bound(t)))
        return TIDE_OK;
    char want[192], got[192];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "output '%s' was changed: the run writes %s %s, it is %s %s%s", v->name,
                     tide_dtype_name(v->dtype), tide_shape_format(&v->shape, want, sizeof want),
                     tide_dtype_name(tide_tensor_dtype(t)), tide_shape_format(tide_tensor_shape(t), got, sizeof got),
                     tide_tensor_is_bound(t) ? "" : " without memory");
}

static tide_status write_output(tide_context *c, size_t i, tide_error *err) {
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
    if (ours) c->output_blocks[i] = block->id; // the copy that a write made is ours too
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
