// SPDX-License-Identifier: MIT
//
// The inputs of a context: checked all together, then taken all together. See context.h.
#include <string.h>

#include "core/runtime/context_internal.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }

static const tide_value *input_value(const tide_context *c, size_t i) {
    return &graph_of(c)->values[graph_of(c)->inputs[i]];
}

static bool shares_block(const tide_tensor *a, const tide_block *block) {
    return block != NULL && tide_tensor_storage(a)->block == block;
}

/// A run writes its buffer and its outputs before it may have read an input that lies there. A lazy clone of an output
/// is a block of its own: the output leaves it behind when the run begins.
static bool is_written_by_run(const tide_context *c, const tide_tensor *t) {
    if (shares_block(t, c->buffer)) return true;
    for (size_t i = 0; i < graph_of(c)->n_outputs; i++) {
        if (shares_block(t, tide_tensor_storage(c->outputs[i])->block)) return true;
    }
    return false;
}

/// Kernels read row-major bytes without gaps (LT-6): the limit is theirs, so a strided tensor is refused here and never
/// misread.
static tide_status refuse_strided(const tide_value *v, const tide_tensor *t, tide_error *err) {
    char shape[192], strides[192];
    tide_shape steps = tide_shape_make(tide_tensor_shape(t)->rank, tide_tensor_strides(t));
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID,
                  "input '%s' is not contiguous: shape %s with strides %s, and kernels read rows without gaps", v->name,
                  tide_shape_format(tide_tensor_shape(t), shape, sizeof shape),
                  tide_shape_format(&steps, strides, sizeof strides));
    tide_error_hint(err, "tide_tensor_contiguous makes a tensor without gaps of it");
    return st;
}

/// @param data  out: where the bytes are now
static tide_status check_input(const tide_context *c, size_t i, const tide_tensor *t, const void **data,
                               tide_error *err) {
    const tide_value *v = input_value(c, i);
    if (t == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is missing", v->name);
    if (tide_tensor_dtype(t) != v->dtype)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' wants %s, got %s", v->name, tide_dtype_name(v->dtype),
                         tide_dtype_name(tide_tensor_dtype(t)));
    if (!tide_shape_equal(tide_tensor_shape(t), &v->shape)) {
        char want[192], got[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' wants shape %s, got %s", v->name,
                         tide_shape_format(&v->shape, want, sizeof want),
                         tide_shape_format(tide_tensor_shape(t), got, sizeof got));
    }
    if (!tide_tensor_is_contiguous(t)) return refuse_strided(v, t, err);
    if (!tide_device_equal(tide_tensor_device(t), c->plan->device)) {
        char want[32], got[32];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is wanted on %s, got it on %s", v->name,
                         tide_device_format(c->plan->device, want, sizeof want),
                         tide_device_format(tide_tensor_device(t), got, sizeof got));
    }
    const tide_status st = tide_tensor_read(t, data, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "input '%s'", v->name);
        return st;
    }
    if (tide_tensor_size_bytes(t) > 0 && *data == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' has no memory", v->name);
    if (!is_written_by_run(c, t)) return TIDE_OK;
    TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' lies in memory that the same context writes", v->name);
    tide_error_hint(err, "clone the tensor first");
    return TIDE_ERR_INVALID;
}

static tide_status check_count(const tide_context *c, size_t n, tide_error *err) {
    if (n == graph_of(c)->n_inputs) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s' has %zu inputs, got %zu tensors", graph_of(c)->name,
                     graph_of(c)->n_inputs, n);
}

/// Between two runs an input may have been written, lazily cloned or changed by whoever shares it.
tide_status tide__context_read_inputs(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const void *data;
        TIDE_TRY(check_input(c, i, c->inputs[i], &data, err));
        c->data[g->inputs[i]] = (void *)(uintptr_t)data;
    }
    return TIDE_OK;
}

/// Check the candidates and take them: after the checks nothing can fail. Addresses are taken when a run begins.
static tide_status take_candidates(tide_context *c, tide_error *err) {
    const tide_graph *g = graph_of(c);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const void *unused;
        TIDE_TRY(check_input(c, i, c->next_inputs[i], &unused, err));
    }
    for (size_t i = 0; i < g->n_inputs; i++) {
        tide_tensor *old = c->inputs[i];
        c->inputs[i] = tide_tensor_ref(c->next_inputs[i]); // before the old one goes: they may be the same
        tide_tensor_unref(old);
    }
    c->inputs_set = true;
    return TIDE_OK;
}

tide_status tide_context_set_inputs(tide_context *c, tide_tensor *const *tensors, size_t n, tide_error *err) {
    TIDE_TRY(check_count(c, n, err));
    for (size_t i = 0; i < n; i++) c->next_inputs[i] = tensors[i];
    return take_candidates(c, err);
}

static bool find_input(const tide_context *c, const char *name, size_t *out) {
    for (size_t i = 0; i < graph_of(c)->n_inputs; i++) {
        if (strcmp(input_value(c, i)->name, name) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

tide_status tide_context_set_inputs_by_name(tide_context *c, const char *const *names, tide_tensor *const *tensors,
                                            size_t n, tide_error *err) {
    for (size_t i = 0; i < graph_of(c)->n_inputs; i++) c->next_inputs[i] = NULL;
    for (size_t k = 0; k < n; k++) {
        size_t i;
        if (!find_input(c, names[k], &i))
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "graph '%s' has no input '%s'", graph_of(c)->name, names[k]);
        if (c->next_inputs[i] != NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is given twice", names[k]);
        c->next_inputs[i] = tensors[k];
    }
    return take_candidates(c, err); // names what is missing
}
