// SPDX-License-Identifier: MIT
//
// Sizes for graph inputs that the file leaves open: what the command line's --shape gives.
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/graph/graph_internal.h"
#include "core/graph/passes.h"

static tide_status unknown_input(const tide_graph *g, const char *name, tide_error *err) {
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the graph has no input '%s'", name);
    tide_text list = {0};
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        char shape[192] = "";
        if (v->has_shape) tide_shape_format(&v->shape, shape, sizeof shape);
        tide_text_addf(&list, "%s%s%s", i > 0 ? ", " : "", v->name, shape);
    }
    tide_error_where(err, "%s", g->source);
    tide_error_note(err, "its inputs are: %s", g->n_inputs > 0 ? tide_text_str(&list) : "none");
    tide_text_deinit(&list);
    return st;
}

static tide_status check_binding(const tide_graph *g, const tide_shape_binding *b, tide_error *err) {
    const uint32_t value_i = tide_graph_find_value(g, b->name);
    if (value_i == TIDE_NO_VALUE || !g->values[value_i].is_input) return unknown_input(g, b->name, err);
    const tide_value *v = &g->values[value_i];
    if (!tide_shape_known(&b->shape))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the shape given for input '%s' has an open extent", v->name);
    int64_t numel;
    TIDE_TRY(tide_shape_numel(&b->shape, &numel, err));
    if (!v->has_shape) return TIDE_OK;
    char given[192], file[192];
    tide_shape_format(&b->shape, given, sizeof given);
    tide_shape_format(&v->shape, file, sizeof file);
    if (b->shape.rank != v->shape.rank)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is given as %s with %d extents, the file says %s with %d",
                         v->name, given, b->shape.rank, file, v->shape.rank);
    for (int32_t i = 0; i < v->shape.rank; i++) {
        if (v->shape.dims[i] != TIDE_DIM_UNKNOWN && v->shape.dims[i] != b->shape.dims[i])
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is given as %s, the file says %s (extent %d)", v->name,
                             given, file, i);
    }
    return TIDE_OK;
}

int64_t tide__symbol_extent(const tide_graph *g, const char *name) {
    int64_t found = TIDE_DIM_UNKNOWN;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        for (int32_t d = 0; v->dim_names != NULL && d < v->shape.rank; d++) {
            if (v->dim_names[d] == NULL || strcmp(v->dim_names[d], name) != 0) continue;
            if (v->shape.dims[d] == TIDE_DIM_UNKNOWN || v->shape.dims[d] == found) continue;
            if (found != TIDE_DIM_UNKNOWN) return TIDE_DIM_UNKNOWN;
            found = v->shape.dims[d];
        }
    }
    return found;
}

/// One symbol is one number (ONNX IR, "Static tensor shapes"): an extent given for one input holds for the others.
static void spread_symbols(tide_graph *g) {
    for (size_t i = 0; i < g->n_inputs; i++) {
        tide_value *v = &g->values[g->inputs[i]];
        for (int32_t d = 0; v->dim_names != NULL && d < v->shape.rank; d++) {
            if (v->shape.dims[d] != TIDE_DIM_UNKNOWN || v->dim_names[d] == NULL) continue;
            v->shape.dims[d] = tide__symbol_extent(g, v->dim_names[d]);
        }
    }
}

tide_status tide_graph_bind_shapes(tide_graph *g, const tide_shape_binding *bindings, size_t n, tide_error *err) {
    for (size_t i = 0; i < n; i++) {
        TIDE_TRY(check_binding(g, &bindings[i], err));
        for (size_t k = 0; k < i; k++) {
            if (strcmp(bindings[k].name, bindings[i].name) == 0 &&
                !tide_shape_equal(&bindings[k].shape, &bindings[i].shape))
                return TIDE_FAIL(err, TIDE_ERR_INVALID, "input '%s' is given two shapes", bindings[i].name);
        }
    }
    for (size_t i = 0; i < n; i++) {
        tide_value *v = &g->values[tide_graph_find_value(g, bindings[i].name)];
        TIDE_ASSERT(v->is_input && tide_shape_known(&bindings[i].shape));
        v->shape = bindings[i].shape;
        v->has_shape = true;
    }
    spread_symbols(g);
    return TIDE_OK;
}
