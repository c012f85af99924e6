// SPDX-License-Identifier: MIT
//
// Inputs of a measured run: drawn from a seed, or read from a folder in ONNX's layout. See session.h.
#include <stdio.h>
#include <string.h>

#include "cli/session.h"
#include "core/base/host_alloc.h"
#include "core/graph/import.h"

/// Floats uniform in [0, 1), everything else 0: indices stay in range whatever the model does with them.
static void draw_input(tide_tensor *t, tide_rng *rng) {
    void *data = tide_tensor_data(t);
    const size_t bytes = tide_tensor_size_bytes(t);
    if (bytes == 0) return;
    if (tide_tensor_dtype(t) == TIDE_F32) {
        float *values = data;
        for (size_t i = 0; i < bytes / sizeof *values; i++) values[i] = (float)tide_rng_f64(rng);
    } else if (tide_tensor_dtype(t) == TIDE_F64) {
        double *values = data;
        for (size_t i = 0; i < bytes / sizeof *values; i++) values[i] = tide_rng_f64(rng);
    } else {
        memset(data, 0, bytes);
    }
}

/// The alignment of an input in the plan, so that its block takes the planned bytes; 0 (the rule of its kind)
/// without a plan.
static size_t input_align(const cli_session_spec *spec, const char *name) {
    const tide_lifetimes *lt = spec->plan != NULL ? &spec->plan->lifetimes : NULL;
    for (size_t i = 0; lt != NULL && i < lt->n; i++) {
        const tide_lifetime *l = &lt->items[i];
        if (l->role == TIDE_ROLE_INPUT && strcmp(l->name, name) == 0) return (size_t)l->align_bytes;
    }
    return 0;
}

/// The tensor of input file `i` in the place that `spec` describes. The file's own copy is no part of what is measured.
static tide_status read_input(const char *input_dir, size_t i, const tide_tensor_spec *spec, tide_tensor **out,
                              tide_error *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s/input_%zu.pb", input_dir, i);
    tide_tensor *of_file = NULL;
    TIDE_TRY(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_HOST_PAGEABLE, &of_file, NULL, err));
    const tide_status st = tide_tensor_clone(of_file, spec, out, err);
    tide_tensor_unref(of_file);
    return st;
}

static tide_status make_input(tide_registry *registry, const cli_session_spec *s, size_t i, tide_rng *rng,
                              tide_tensor **out, tide_error *err) {
    const tide_graph *g = s->program->graph;
    const tide_value *value = &g->values[g->inputs[i]];
    const tide_tensor_spec spec = {.dtype = value->dtype,
                                   .shape = value->shape,
                                   .device = s->device,
                                   .kind = TIDE_KIND_DEFAULT,
                                   .align_bytes = input_align(s, value->name),
                                   .registry = registry,
                                   .tag = value->name};
    if (s->input_dir != NULL) return read_input(s->input_dir, i, &spec, out, err);
    TIDE_TRY(tide_tensor_create(&spec, out, err));
    draw_input(*out, rng);
    return TIDE_OK;
}

tide_status cli_session_make_inputs(tide_registry *registry, const cli_session_spec *spec, tide_tensor **inputs,
                                    tide_error *err) {
    tide_rng rng = {spec->seed};
    for (size_t i = 0; i < spec->program->graph->n_inputs; i++)
        TIDE_TRY(make_input(registry, spec, i, &rng, &inputs[i], err));
    return TIDE_OK;
}

tide_status cli_session_shapes_of_dir(const char *input_dir, const tide_graph *graph, tide_shape_binding **bindings,
                                      size_t *n, tide_error *err) {
    tide_shape_binding *items;
    TIDE_TRY(TIDE_NEW(&items, graph->n_inputs + 1, err, "for %zu shapes", graph->n_inputs));
    tide_status st = TIDE_OK;
    size_t count = 0;
    for (size_t i = 0; i < graph->n_inputs && st == TIDE_OK; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/input_%zu.pb", input_dir, i);
        tide_tensor *t = NULL;
        st = tide_tensor_from_pb_file(path, NULL, TIDE_KIND_HOST_PAGEABLE, &t, NULL, err);
        if (st == TIDE_OK) {
            items[count++] =
                (tide_shape_binding){.name = graph->values[graph->inputs[i]].name, .shape = *tide_tensor_shape(t)};
            tide_tensor_unref(t);
        }
    }
    if (st != TIDE_OK) {
        tide_host_free(items);
        return st;
    }
    *bindings = items;
    *n = count;
    return TIDE_OK;
}
