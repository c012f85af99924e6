// SPDX-License-Identifier: MIT
//
// Shared by the runtime's tests. See rt_util.h.
#include "rt_util.h"

#include "core/base/text.h"
#include "core/graph/import.h"

// ---- rig ----

void rt_rig_open(rt_rig *r) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_meter_create(&r->meter, &err), &err);
    r->observer = tide_meter_observer(r->meter);
    assert_tide_ok(tide_registry_create(&r->registry, &err), &err);
    tide_allocator *cpu, *metered;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_instrumented_create(cpu, &r->observer, &metered, &err), &err);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++)
        assert_tide_ok(tide_registry_add(r->registry, (tide_memory_kind)kind, metered, 0, &err), &err);
    tide_allocator_unref(metered);
    tide_allocator_unref(cpu);
}

void rt_rig_close(rt_rig *r) {
    tide_meter_kind total;
    tide_meter_total(r->meter, &total);
    assert_int_equal(total.live_bytes, 0);
    tide_registry_destroy(r->registry);
    tide_meter_destroy(r->meter);
}

uint64_t rt_live(const rt_rig *r, tide_memory_kind kind) {
    tide_meter_kind k;
    tide_meter_get(r->meter, kind, &k);
    return k.live_bytes;
}

uint64_t rt_peak(const rt_rig *r, tide_memory_kind kind) {
    tide_meter_kind k;
    tide_meter_get(r->meter, kind, &k);
    return k.peak_bytes;
}

uint64_t rt_n_allocs(const rt_rig *r) {
    tide_meter_kind k;
    tide_meter_total(r->meter, &k);
    return k.n_allocs;
}

// ---- graphs ----

tide_graph *rt_graph(const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    tide_graph *g;
    assert_tide_ok(tide_graph_create(name, "", &g, &err), &err);
    return g;
}

static tide_shape shape_of(const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    tide_shape s;
    assert_tide_ok(tide_shape_parse(text, &s, &err), &err);
    return s;
}

void rt_input(tide_graph *g, const char *name, const char *shape) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t v;
    assert_tide_ok(tide_graph_add_value(g, name, &v, &err), &err);
    g->values[v].dtype = TIDE_F32;
    g->values[v].shape = shape_of(shape);
    g->values[v].has_shape = true;
    assert_tide_ok(tide_graph_add_input(g, v, &err), &err);
}

static tide_tensor *make_tensor(tide_dtype dtype, tide_shape shape, tide_registry *registry) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_tensor_spec spec = {.dtype = dtype,
                                   .shape = shape,
                                   .device = TIDE_CPU,
                                   .kind = TIDE_KIND_DEFAULT,
                                   .align_bytes = 256,
                                   .registry = registry,
                                   .tag = "test"};
    tide_tensor *t;
    assert_tide_ok(tide_tensor_create(&spec, &t, &err), &err);
    return t;
}

static void add_constant(tide_graph *g, const char *name, tide_tensor *t) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t v;
    assert_tide_ok(tide_graph_add_value(g, name, &v, &err), &err);
    tide_graph_set_constant(g, v, t);
    tide_tensor_unref(t);
}

void rt_weight(tide_graph *g, const char *name, const char *shape, float start, float step) {
    tide_tensor *t = make_tensor(TIDE_F32, shape_of(shape), NULL);
    float *data = tide_tensor_data(t);
    const size_t n = tide_tensor_size_bytes(t) / sizeof *data;
    for (size_t i = 0; i < n; i++) data[i] = start + step * (float)i;
    add_constant(g, name, t);
}

void rt_weight_i64(tide_graph *g, const char *name, const int64_t *data, size_t n) {
    const int64_t dim = (int64_t)n;
    tide_tensor *t = make_tensor(TIDE_I64, tide_shape_make(1, &dim), NULL);
    memcpy(tide_tensor_data(t), data, n * sizeof *data);
    add_constant(g, name, t);
}

static size_t intern_list(tide_graph *g, const char *list, uint32_t *out, size_t n_max) {
    tide_error err = TIDE_ERROR_INIT;
    size_t n = 0;
    for (const char *at = list; *list != '\0';) {
        const char *comma = strchr(at, ',');
        const size_t len = comma != NULL ? (size_t)(comma - at) : strlen(at);
        assert_true(n < n_max);
        out[n] = TIDE_NO_VALUE;
        if (len > 0) {
            char *name = tide_host_strndup(at, len);
            assert_tide_ok(tide_graph_intern_value(g, name, &out[n], &err), &err);
            tide_host_free(name);
        }
        n++;
        if (comma == NULL) break;
        at = comma + 1;
    }
    return n;
}

uint32_t rt_node(tide_graph *g, const char *op, const char *name, const char *inputs, const char *outputs) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t in[8], out[8], node;
    const size_t n_in = intern_list(g, inputs, in, 8);
    const size_t n_out = intern_list(g, outputs, out, 8);
    assert_tide_ok(tide_graph_add_node(g, name, op, "", 13, in, n_in, out, n_out, &node, &err), &err);
    return node;
}

void rt_attr_ints(tide_graph *g, uint32_t node, const char *name, const int64_t *ints, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    tide_attr a = {.type = TIDE_ATTR_INTS, .name = tide_host_strdup(name), .n = n};
    a.ints = tide_host_calloc(n, sizeof *a.ints);
    assert_non_null(a.ints);
    memcpy(a.ints, ints, n * sizeof *ints);
    assert_tide_ok(tide_graph_add_attr(g, node, &a, &err), &err);
}

void rt_attr_int(tide_graph *g, uint32_t node, const char *name, int64_t i) {
    tide_error err = TIDE_ERROR_INIT;
    tide_attr a = {.type = TIDE_ATTR_INT, .name = tide_host_strdup(name), .i = i};
    assert_tide_ok(tide_graph_add_attr(g, node, &a, &err), &err);
}

void rt_output(tide_graph *g, const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    uint32_t v;
    assert_tide_ok(tide_graph_intern_value(g, name, &v, &err), &err);
    assert_tide_ok(tide_graph_add_output(g, v, &err), &err);
}

tide_graph *rt_graph_diamond(void) {
    tide_graph *g = rt_graph("diamond");
    rt_input(g, "x", "4x64");
    rt_node(g, "Relu", "top", "x", "a");
    rt_node(g, "Sigmoid", "left", "a", "b");
    rt_node(g, "Tanh", "right", "a", "c");
    rt_node(g, "Add", "join", "b,c", "y");
    rt_output(g, "y");
    return g;
}

tide_graph *rt_graph_early_output(void) {
    tide_graph *g = rt_graph("early_output");
    rt_input(g, "x", "4x64");
    rt_node(g, "Sigmoid", "first", "x", "early");
    rt_node(g, "Tanh", "second", "early", "a");
    rt_node(g, "Sigmoid", "third", "a", "b");
    rt_node(g, "Tanh", "fourth", "b", "c");
    rt_node(g, "Mul", "fifth", "c,b", "d");
    rt_node(g, "Add", "last", "d,early", "late");
    rt_output(g, "early");
    rt_output(g, "late");
    return g;
}

tide_graph *rt_graph_conv(void) {
    tide_graph *g = rt_graph("conv");
    rt_input(g, "x", "1x3x16x16");
    rt_weight(g, "w1", "8x3x3x3", -0.3f, 0.003f);
    rt_weight(g, "b1", "8", 0.1f, 0.01f);
    rt_weight(g, "w2", "4x8x3x3", 0.2f, -0.0015f);
    rt_weight(g, "w3", "196x10", -0.1f, 0.0001f);
    rt_weight(g, "b3", "10", 0.5f, 0.1f);
    static const int64_t three[] = {3, 3}, ones[] = {1, 1, 1, 1}, two[] = {2, 2}, flat[] = {1, 196};
    uint32_t n = rt_node(g, "Conv", "conv1", "x,w1,b1", "c1");
    rt_attr_ints(g, n, "kernel_shape", three, 2);
    rt_attr_ints(g, n, "pads", ones, 4);
    rt_node(g, "Relu", "relu1", "c1", "r1");
    n = rt_node(g, "Conv", "conv2", "r1,w2", "c2"); // 1x4x14x14
    rt_attr_ints(g, n, "kernel_shape", three, 2);
    n = rt_node(g, "MaxPool", "pool", "c2", "p"); // 1x4x7x7
    rt_attr_ints(g, n, "kernel_shape", two, 2);
    rt_attr_ints(g, n, "strides", two, 2);
    rt_weight_i64(g, "flat", flat, 2);
    rt_node(g, "Reshape", "flatten", "p,flat", "f");
    rt_node(g, "Gemm", "classify", "f,w3,b3", "scores");
    rt_node(g, "Softmax", "softmax", "scores", "y");
    rt_output(g, "y");
    return g;
}

tide_graph *rt_graph_long(void) {
    tide_graph *g = rt_graph("long");
    rt_input(g, "x", "8x32");
    rt_input(g, "z", "8x32");
    rt_node(g, "Sub", "s0", "x,z", "t0");
    rt_node(g, "Tanh", "s1", "t0", "t1");
    rt_node(g, "Concat", "s2", "t0,t1", "t2");
    rt_attr_int(g, 2, "axis", 1);
    rt_node(g, "Sigmoid", "s3", "t2", "t3");
    rt_node(g, "Concat", "s4", "t3,t2,t3", "t4");
    rt_attr_int(g, 4, "axis", 1);
    rt_node(g, "Tanh", "s5", "t4", "t5");
    rt_node(g, "Mul", "s6", "t1,t0", "t6");
    rt_node(g, "Concat", "s7", "t5,t6", "t7");
    rt_attr_int(g, 7, "axis", 1);
    rt_node(g, "Sigmoid", "s8", "t7", "t8");
    rt_node(g, "Sub", "s9", "t6,x", "t9");
    rt_node(g, "Concat", "s10", "t8,t9", "t10");
    rt_attr_int(g, 10, "axis", 1);
    rt_node(g, "Tanh", "s11", "t10", "y");
    rt_output(g, "y");
    return g;
}

tide_graph *rt_graph_nth(size_t i) {
    static tide_graph *(*const all[])(void) = {rt_graph_diamond, rt_graph_early_output, rt_graph_conv, rt_graph_long};
    return i < sizeof all / sizeof all[0] ? all[i]() : NULL;
}

tide_graph *rt_graph_sample(const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    char below[100], path[512], *data;
    size_t len;
    tide_graph *g;
    snprintf(below, sizeof below, "sample_graphs/%s.json", name);
    assert_tide_ok(tide_read_file(tide_source_path(below, path, sizeof path), 0, &data, &len, &err), &err);
    assert_tide_ok(tide_graph_from_json(data, len, path, &g, &err), &err);
    tide_host_free(data);
    return g;
}

// ---- from graph to context ----

tide_program *rt_build(tide_graph *g) {
    tide_error err = TIDE_ERROR_INIT;
    tide_program *p;
    assert_tide_ok(tide_program_build(g, NULL, &p, &err), &err);
    return p;
}

tide_memory_plan *rt_plan(const tide_program *p, const char *strategy) { return rt_plan_aliased(p, strategy, 0, NULL); }

tide_memory_plan *rt_plan_aliased(const tide_program *p, const char *strategy, unsigned passes, size_t *n_aliases) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt;
    assert_tide_ok(tide_liveness(p, TIDE_DEFAULT_ALIGN, &lt, &err), &err);
    size_t n, sum = 0;
    for (unsigned pass = 0; pass < TIDE_N_PASSES; pass++) {
        if ((passes >> pass & 1u) == 0) continue;
        assert_tide_ok(tide_pass_alias(p, (tide_pass)pass, &lt, &n, &err), &err);
        sum += n;
    }
    if (n_aliases != NULL) *n_aliases = sum;
    const tide_strategy *s;
    assert_tide_ok(tide_strategy_find(strategy, &s, &err), &err);
    const tide_strategy_options opt = {0};
    tide_memory_plan *m;
    assert_tide_ok(tide_plan_make(&lt, s, &opt, &m, &err), &err);
    tide_lifetimes_deinit(&lt);
    return m;
}

size_t rt_entry(const tide_memory_plan *m, const char *name) {
    for (size_t i = 0; i < m->lifetimes.n; i++) {
        if (strcmp(m->lifetimes.items[i].name, name) == 0) return i;
    }
    fail_msg("no entry '%s'", name);
    return 0;
}

tide_inference_plan *rt_inference(rt_rig *r, tide_program *p, const tide_memory_plan *m) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_inference_plan_options opt = {.device = TIDE_CPU, .registry = r->registry, .memory_plan = m};
    tide_inference_plan *ip;
    assert_tide_ok(tide_inference_plan_create(p, &opt, &ip, &err), &err);
    return ip;
}

tide_context *rt_context(tide_inference_plan *ip, tide_run_mode mode, tide_fill fill) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_context_options opt = {.mode = mode, .fill = fill};
    tide_context *c;
    assert_tide_ok(tide_context_create(ip, &opt, &c, &err), &err);
    return c;
}

static tide_tensor *seeded(tide_shape shape, tide_registry *registry, uint64_t seed) {
    tide_tensor *t = make_tensor(TIDE_F32, shape, registry);
    float *data = tide_tensor_data(t);
    const size_t n = tide_tensor_size_bytes(t) / sizeof *data;
    tide_rng rng = {seed};
    for (size_t i = 0; i < n; i++) data[i] = (float)(tide_rng_f64(&rng) * 4.0 - 2.0);
    return t;
}

tide_tensor *rt_tensor(const char *shape, uint64_t seed) { return seeded(shape_of(shape), NULL, seed); }

void rt_feed(tide_context *c, const tide_program *p, rt_rig *r, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *in[8];
    const tide_graph *g = p->graph;
    assert_true(g->n_inputs <= 8);
    for (size_t i = 0; i < g->n_inputs; i++)
        in[i] = seeded(g->values[g->inputs[i]].shape, r != NULL ? r->registry : NULL, seed + i * 1000);
    assert_tide_ok(tide_context_set_inputs(c, in, g->n_inputs, &err), &err);
    for (size_t i = 0; i < g->n_inputs; i++) tide_tensor_unref(in[i]);
}

void rt_run(tide_context *c) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_context_run(c, &err), &err);
}

void rt_assert_same_outputs(const tide_context *a, const tide_context *b) {
    assert_int_equal(tide_context_n_outputs(a), tide_context_n_outputs(b));
    for (size_t i = 0; i < tide_context_n_outputs(a); i++) {
        const tide_tensor *x = tide_context_output(a, i), *y = tide_context_output(b, i);
        assert_int_equal(tide_tensor_size_bytes(x), tide_tensor_size_bytes(y));
        if (tide_tensor_size_bytes(x) > 0)
            assert_memory_equal(tide_tensor_const_data(x), tide_tensor_const_data(y), tide_tensor_size_bytes(x));
    }
}

char *rt_output_bytes(const tide_context *c, size_t *n) {
    *n = 0;
    for (size_t i = 0; i < tide_context_n_outputs(c); i++) *n += tide_tensor_size_bytes(tide_context_output(c, i));
    char *all = tide_host_alloc(*n), *at = all;
    assert_non_null(all);
    for (size_t i = 0; i < tide_context_n_outputs(c); i++) {
        const tide_tensor *t = tide_context_output(c, i);
        if (tide_tensor_size_bytes(t) > 0) memcpy(at, tide_tensor_const_data(t), tide_tensor_size_bytes(t));
        at += tide_tensor_size_bytes(t);
    }
    return all;
}
