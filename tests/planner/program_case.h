// SPDX-License-Identifier: MIT
//
// Programs for the planner's tests: sample graphs, shared models, small graphs by hand; and runs of them.
#ifndef TIDE_TESTS_PLANNER_PROGRAM_CASE_H
#define TIDE_TESTS_PLANNER_PROGRAM_CASE_H

#include "core/base/text.h"
#include "core/graph/import.h"
#include "core/graph/sizes.h"
#include "core/runtime/context.h"
#include "core/runtime/program_sizes.h"
#include "planner/passes.h"
#include "tests/tide_test.h"

static const char *const case_samples[] = {
    "decoder_kv",        "decoder_step",  "densenet_block",      "diamond",      "early_output",
    "inception_block",   "lenet5",        "long_skip",           "mobilenet_v2", "resnet18",
    "split_two_outputs", "squeezenet1_1", "transformer_encoder", "unet",         "view_chain",
    "resnet50",
};
enum { N_CASE_SAMPLES = sizeof case_samples / sizeof case_samples[0] };

/// Models of the shared folder with branches, by which the passes can be told apart.
static const char *const case_models[] = {"basic-pitch",       "bert-toy",           "fastestdet", "gpt2-past",
                                          "light-densenet121", "light-shufflenet",   "magika-v2",  "vit-pgd-2-3-16",
                                          "ultraface-rfb-320", "selfie-segmentation"};
enum { N_CASE_MODELS = sizeof case_models / sizeof case_models[0] };

static inline tide_program *case_build(tide_graph *g, const tide_shape_binding *shapes, size_t n_shapes) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_program_options opt = {.shapes = shapes, .n_shapes = n_shapes};
    tide_program *p;
    assert_tide_ok(tide_program_build(g, &opt, &p, &err), &err);
    return p;
}

/// With all its weights for `contents` NULL.
static inline tide_graph *case_sample_graph(const char *name, const tide_contents *contents) {
    tide_error err = TIDE_ERROR_INIT;
    char below[128], path[512], *data;
    size_t len;
    tide_graph *g;
    snprintf(below, sizeof below, "sample_graphs/%s.json", name);
    assert_tide_ok(tide_read_file(tide_source_path(below, path, sizeof path), 0, &data, &len, &err), &err);
    if (contents != NULL)
        assert_tide_ok(tide_graph_sizes_from_json(data, len, path, contents, 0, &g, &err), &err);
    else
        assert_tide_ok(tide_graph_from_json(data, len, path, &g, &err), &err);
    tide_host_free(data);
    return g;
}

static inline tide_program *case_sample(const char *name) { return case_build(case_sample_graph(name, NULL), NULL, 0); }

/// As the program plans a file: its large weights have no content. For what asks of sizes alone; it cannot run.
static inline tide_program *case_sizes(const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    bool wanted = false;
    const tide_contents small = {4096, (size_t)4 << 20, &wanted};
    tide_program *p;
    assert_tide_ok(tide_program_build_sizes(case_sample_graph(name, &small), NULL, &small, &p, &err), &err);
    return p;
}

/// Without kernels, and so without their scratch, which follows the processor's caches: figures are the same anywhere.
static inline tide_program *case_sample_without_kernels(const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_program_options opt = {.no_kernels = true};
    tide_program *p;
    assert_tide_ok(tide_program_build(case_sample_graph(name, NULL), &opt, &p, &err), &err);
    return p;
}

/// NULL when the shared folder is not here. Input shapes are those of the model's first data set.
static inline tide_program *case_model(const char *name) {
    enum { MAX_INPUTS = 32 };
    tide_error err = TIDE_ERROR_INIT;
    char below[200], path[512], *data;
    size_t len, n_shapes = 0;
    tide_graph *g;
    tide_shape_binding shapes[MAX_INPUTS];
    snprintf(below, sizeof below, "models/%s/model.onnx", name);
    if (tide_shared_path(below, path, sizeof path) == NULL) return NULL;
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_graph_from_onnx(data, len, path, &g, &err), &err);
    tide_host_free(data);
    assert_true(g->n_inputs <= MAX_INPUTS);
    for (size_t i = 0; i < g->n_inputs; i++) {
        char pb[600];
        tide_tensor *t;
        snprintf(pb, sizeof pb, "%.*s/test_data_set_0/input_%zu.pb", (int)(strlen(path) - strlen("/model.onnx")), path,
                 i);
        assert_tide_ok(tide_tensor_from_pb_file(pb, NULL, TIDE_KIND_DEFAULT, &t, NULL, &err), &err);
        shapes[n_shapes++] = (tide_shape_binding){.name = g->values[g->inputs[i]].name, .shape = *tide_tensor_shape(t)};
        tide_tensor_unref(t);
    }
    return case_build(g, shapes, n_shapes);
}

// ---- graphs by hand ----

static inline uint32_t case_value(tide_graph *g, const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t v;
    assert_tide_ok(tide_graph_intern_value(g, name, &v, &err), &err);
    return v;
}

static inline tide_graph *case_graph(const char *name, const char *input, const char *shape) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g;
    assert_tide_ok(tide_graph_create(name, "", &g, &err), &err);
    const uint32_t v = case_value(g, input);
    g->values[v].dtype = TIDE_F32;
    g->values[v].has_shape = true;
    assert_tide_ok(tide_shape_parse(shape, &g->values[v].shape, &err), &err);
    assert_tide_ok(tide_graph_add_input(g, v, &err), &err);
    return g;
}

/// Up to three inputs; NULL: no more. Concat gets axis 1.
static inline void case_node(tide_graph *g, const char *op, const char *name, const char *out, const char *a,
                             const char *b, const char *c) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t in[3], node;
    size_t n = 0;
    const char *const names[] = {a, b, c};
    for (size_t i = 0; i < 3; i++) {
        if (names[i] != NULL) in[n++] = case_value(g, names[i]);
    }
    const uint32_t o = case_value(g, out);
    assert_tide_ok(tide_graph_add_node(g, name, op, "", 13, in, n, &o, 1, &node, &err), &err);
    if (strcmp(op, "Concat") != 0) return;
    tide_attr axis = {.type = TIDE_ATTR_INT, .name = tide_host_strdup("axis"), .i = 1};
    assert_tide_ok(tide_graph_add_attr(g, node, &axis, &err), &err);
}

static inline void case_output(tide_graph *g, const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_graph_add_output(g, case_value(g, name), &err), &err);
}

// ---- what the planner makes of a program ----

static inline uint64_t case_lower_bound(const tide_program *p, const tide_pass_options *opt, size_t *n_aliases) {
    static const tide_pass passes[] = {TIDE_PASS_VIEWS, TIDE_PASS_SLICES, TIDE_PASS_IN_PLACE, TIDE_PASS_PARTS};
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt;
    uint64_t bytes;
    size_t sum = 0, n;
    assert_tide_ok(tide_liveness(p, opt->align_bytes, &lt, &err), &err);
    for (size_t i = 0; i < 4; i++) {
        if (opt->off[passes[i]]) continue;
        assert_tide_ok(tide_pass_alias(p, passes[i], &lt, &n, &err), &err);
        sum += n;
    }
    assert_tide_ok(tide_lower_bound(&lt, &bytes, NULL, &err), &err);
    tide_lifetimes_deinit(&lt);
    if (n_aliases != NULL) *n_aliases = sum;
    return bytes;
}

static inline tide_memory_plan *case_plan(const tide_lifetimes *lt) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *s;
    tide_memory_plan *m;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &s, &err), &err);
    assert_tide_ok(tide_plan_make(lt, s, NULL, &m, &err), &err);
    return m;
}

static inline tide_tensor *case_numbers(const tide_value *v, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_tensor_spec spec = {
        .dtype = v->dtype, .shape = v->shape, .device = TIDE_CPU, .kind = TIDE_KIND_DEFAULT, .align_bytes = 256};
    tide_tensor *t;
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    assert_int_equal(v->dtype, TIDE_F32);
    float *data = tide_tensor_data(t);
    tide_rng rng = {seed};
    for (size_t i = 0; i < tide_tensor_size_bytes(t) / sizeof *data; i++)
        data[i] = (float)(tide_rng_f64(&rng) * 4.0 - 2.0);
    return t;
}

/// Output bytes of a poisoned run on `plan`, naive for NULL; host memory of the caller.
static inline char *case_run(tide_program *p, const tide_memory_plan *plan, size_t *n) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .memory_plan = plan};
    const tide_context_options copt = {.mode = plan != NULL ? TIDE_RUN_PLANNED : TIDE_RUN_NAIVE,
                                       .fill = TIDE_FILL_POISON};
    tide_inference_plan *ip;
    tide_context *c;
    tide_tensor *in[8];
    const size_t n_in = p->graph->n_inputs;
    assert_true(n_in <= 8);
    assert_tide_ok(tide_inference_plan_create(p, &opt, &ip, &err), &err);
    assert_tide_ok(tide_context_create(ip, &copt, &c, &err), &err);
    for (size_t i = 0; i < n_in; i++) in[i] = case_numbers(&p->graph->values[p->graph->inputs[i]], 5 + i);
    assert_tide_ok(tide_context_set_inputs(c, in, n_in, &err), &err);
    assert_tide_ok(tide_context_run(c, &err), &err);
    *n = 0;
    for (size_t i = 0; i < tide_context_n_outputs(c); i++) *n += tide_tensor_size_bytes(tide_context_output(c, i));
    char *all = tide_host_alloc(*n), *at = all;
    assert_non_null(all);
    for (size_t i = 0; i < tide_context_n_outputs(c); i++) {
        const tide_tensor *t = tide_context_output(c, i);
        memcpy(at, tide_tensor_const_data(t), tide_tensor_size_bytes(t));
        at += tide_tensor_size_bytes(t);
    }
    for (size_t i = 0; i < n_in; i++) tide_tensor_unref(in[i]);
    tide_context_destroy(c);
    tide_inference_plan_unref(ip);
    return all;
}

#endif
