// SPDX-License-Identifier: MIT
//
// Fusion: what is rewritten, with which numbers, and what must be left alone.
#include <float.h>
#include <math.h>

#include "tests/graph/fake_ops.h"

enum { N_OUT = 3, N_IN = 2 };
static const int64_t w_dims[] = {N_OUT, N_IN, 1, 1}, c_dims[] = {N_OUT}, x_dims[] = {1, N_OUT, 2, 2};
static const float w[N_OUT * N_IN] = {1, -2, 0.5f, 4, 0, 3}, bias[N_OUT] = {0.5f, -1, 2};
static const float scale[N_OUT] = {2, 0.5f, -1}, shift[N_OUT] = {1, 2, 3}, mean[N_OUT] = {0.25f, -3, 7};
static const float variance[N_OUT] = {4, 1e-6f, 0.01f};

/// x -> Conv(w[, bias]) -> y -> BatchNormalization -> z -> Relu -> r, types known.
static tide_graph *conv_bn_relu(bool with_bias) {
    tide_graph *g = new_graph();
    add_input_f32(g, "x", 4, x_dims);
    add_constant_of(g, "w", TIDE_F32, 4, w_dims, w);
    add_constant_of(g, "bias", TIDE_F32, 1, c_dims, bias);
    add_constant_of(g, "scale", TIDE_F32, 1, c_dims, scale);
    add_constant_of(g, "shift", TIDE_F32, 1, c_dims, shift);
    add_constant_of(g, "mean", TIDE_F32, 1, c_dims, mean);
    add_constant_of(g, "var", TIDE_F32, 1, c_dims, variance);
    add_op(g, "Conv", "conv", with_bias ? "x,w,bias" : "x,w", "y");
    const uint32_t bn = add_op(g, "BatchNormalization", "bn", "y,scale,shift,mean,var", "z");
    add_attr_float(g, bn, "epsilon", 1e-3f);
    add_op(g, "Relu", "relu", "z", "r");
    add_output_named(g, "r");
    static const char *const between[] = {"y", "z", "r"};
    for (size_t i = 0; i < 3; i++) set_type(g, between[i], TIDE_F32, 4, x_dims);
    resolve_fakes(g);
    return g;
}

static tide_fuse_stats fuse(tide_graph *g) {
    tide_error err = TIDE_ERROR_INIT;
    tide_fuse_stats stats = {99, 99};
    assert_tide_ok(tide_graph_fuse(g, &stats, &err), &err);
    assert_tide_ok(tide_graph_validate(g, &err), &err);
    return stats;
}

static const float *weights_of(const tide_graph *g, size_t k) {
    return tide_tensor_const_data(g->values[g->nodes[0].inputs[k]].constant);
}

static void check_conv_bn(bool with_bias) {
    tide_graph *g = conv_bn_relu(with_bias);
    const tide_fuse_stats stats = fuse(g);
    assert_int_equal(stats.n_conv_bn, 1);
    assert_int_equal(stats.n_activation, 1);
    assert_int_equal(n_live(g), 1);
    const tide_node *conv = &g->nodes[0];
    assert_string_equal(conv->name, "conv");
    assert_int_equal(conv->n_inputs, 3);
    assert_int_equal(conv->outputs[0], tide_graph_find_value(g, "r"));
    assert_int_equal(g->values[tide_graph_find_value(g, "r")].producer, 0);
    assert_int_equal(conv->activation.kind, TIDE_ACT_RELU);
    for (size_t o = 0; o < N_OUT; o++) {
        const double s = scale[o] / sqrt((double)variance[o] + (double)1e-3f);
        const double b = with_bias ? (double)bias[o] : 0;
        for (size_t i = 0; i < N_IN; i++) assert_true(weights_of(g, 1)[o * N_IN + i] == (float)(w[o * N_IN + i] * s));
        assert_true(weights_of(g, 2)[o] == (float)((b - mean[o]) * s + shift[o]));
    }
    // The file's own weights go with their only reader, so that a model's weights are not there twice.
    assert_null(g->values[tide_graph_find_value(g, "w")].constant);
    tide_graph_destroy(g);
}

static void test_shared_weights_stay(void **state) {
    (void)state;
    tide_graph *g = conv_bn_relu(true);
    add_op(g, "Double", "reader", "w", "copy");
    set_type(g, "copy", TIDE_F32, 4, w_dims);
    add_output_named(g, "copy");
    resolve_fakes(g);
    assert_int_equal(fuse(g).n_conv_bn, 1);
    assert_memory_equal(floats_of(g, "w"), w, sizeof w);
    tide_graph_destroy(g);
}

static void test_conv_bn_relu(void **state) {
    (void)state;
    check_conv_bn(true);
}
static void test_conv_without_bias_gets_one(void **state) {
    (void)state;
    check_conv_bn(false);
}

/// Conv(x) then BatchNormalization, in real numbers, against the fused weights: 1x1 filters, one pixel.
static void test_conv_bn_is_the_same_function(void **state) {
    (void)state;
    tide_graph *g = conv_bn_relu(true);
    const float x[N_IN] = {1.5f, -0.75f};
    (void)fuse(g);
    for (size_t o = 0; o < N_OUT; o++) {
        double y = bias[o], fused = weights_of(g, 2)[o];
        for (size_t i = 0; i < N_IN; i++) {
            y += (double)w[o * N_IN + i] * x[i];
            fused += (double)weights_of(g, 1)[o * N_IN + i] * x[i];
        }
        const double z = (y - mean[o]) / sqrt(variance[o] + 1e-3) * scale[o] + shift[o];
        assert_true(fabs(fused - z) <= 1e-5 * fmax(1, fabs(z)));
    }
    tide_graph_destroy(g);
}

typedef void (*spoil_fn)(tide_graph *g);
static void spoil_second_use(tide_graph *g) {
    add_op(g, "Relu", "other", "y", "o");
    add_output_named(g, "o");
}
static void spoil_graph_output(tide_graph *g) { add_output_named(g, "y"); }
static void spoil_variable_scale(tide_graph *g) {
    tide_value *v = &g->values[value_of(g, "scale")];
    tide_tensor_unref(v->constant);
    v->constant = NULL;
    v->is_input = true;
}
static void spoil_variable_bias(tide_graph *g) {
    tide_value *v = &g->values[value_of(g, "bias")];
    tide_tensor_unref(v->constant);
    v->constant = NULL;
    v->is_input = true;
}
static void spoil_half_weights(tide_graph *g) {
    const uint16_t half[N_OUT * N_IN] = {0};
    add_constant_of(g, "w", TIDE_F16, 4, w_dims, half);
}
static void spoil_channels(tide_graph *g) {
    const int64_t two[] = {2};
    add_constant_of(g, "mean", TIDE_F32, 1, two, mean);
}
static void spoil_training(tide_graph *g) { add_attr_int(g, 1, "training_mode", 1); }
static void spoil_not_spatial(tide_graph *g) { add_attr_int(g, 1, "spatial", 0); }
static void spoil_old_opset(tide_graph *g) { g->nodes[1].opset = 6; }
static void spoil_fused_already(tide_graph *g) { g->nodes[1].activation.kind = TIDE_ACT_RELU; }
static void spoil_other_domain(tide_graph *g) {
    tide_host_free(g->nodes[0].domain);
    g->nodes[0].domain = tide_host_strdup("com.example");
}

static void test_conv_bn_left_alone(void **state) {
    (void)state;
    static const spoil_fn spoils[] = {spoil_second_use,   spoil_graph_output, spoil_variable_scale, spoil_variable_bias,
                                      spoil_half_weights, spoil_channels,     spoil_training,       spoil_not_spatial,
                                      spoil_old_opset,    spoil_other_domain, spoil_fused_already};
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        tide_graph *g = conv_bn_relu(true);
        spoils[i](g);
        resolve_fakes(g);
        const tide_fuse_stats stats = fuse(g);
        if (stats.n_conv_bn != 0) fail_msg("spoil %zu was fused", i);
        assert_false(g->nodes[1].dead);
        assert_int_equal(g->nodes[0].outputs[0], value_of(g, "y"));
        tide_graph_destroy(g);
    }
}

// ---- activations ----

/// x -> Conv -> y -> `op` -> z, with Clip's bounds lo and hi as constants at hand.
static tide_graph *conv_then(const char *op, const char *inputs, int opset) {
    tide_graph *g = new_graph();
    const float lo = -1, hi = 6;
    add_input_f32(g, "x", 4, x_dims);
    add_constant_of(g, "w", TIDE_F32, 4, w_dims, w);
    add_constant_of(g, "lo", TIDE_F32, 0, NULL, &lo);
    add_constant_of(g, "hi", TIDE_F32, 0, NULL, &hi);
    add_op(g, "Conv", "conv", "x,w", "y");
    const uint32_t act = add_op(g, op, "act", inputs, "z");
    g->nodes[0].def = &fake_table[2];
    g->nodes[act].opset = opset;
    add_output_named(g, "z");
    set_type(g, "y", TIDE_F32, 4, x_dims);
    set_type(g, "z", TIDE_F32, 4, x_dims);
    return g;
}

static void check_activation(tide_graph *g, tide_activation_kind kind, float alpha, float beta) {
    const tide_fuse_stats stats = fuse(g);
    const tide_activation *a = &g->nodes[0].activation;
    assert_int_equal(stats.n_activation, kind != TIDE_ACT_NONE);
    assert_int_equal(a->kind, kind);
    assert_true(a->alpha == alpha && a->beta == beta);
    assert_int_equal(g->nodes[1].dead, kind != TIDE_ACT_NONE);
    tide_graph_destroy(g);
}

static void test_activation_kinds(void **state) {
    (void)state;
    check_activation(conv_then("Relu", "y", 13), TIDE_ACT_RELU, 0, 0);
    check_activation(conv_then("Sigmoid", "y", 13), TIDE_ACT_SIGMOID, 0, 0);
    check_activation(conv_then("Tanh", "y", 13), TIDE_ACT_TANH, 0, 0);
    check_activation(conv_then("LeakyRelu", "y", 13), TIDE_ACT_LEAKY_RELU, 0.01f, 0);
    check_activation(conv_then("Softmax", "y", 13), TIDE_ACT_NONE, 0, 0);
    tide_graph *g = conv_then("LeakyRelu", "y", 13);
    add_attr_float(g, 1, "alpha", 0.3f);
    check_activation(g, TIDE_ACT_LEAKY_RELU, 0.3f, 0);
}

static void test_clip_bounds(void **state) {
    (void)state;
    check_activation(conv_then("Clip", "y,lo,hi", 13), TIDE_ACT_CLIP, -1, 6);
    check_activation(conv_then("Clip", "y,,hi", 13), TIDE_ACT_CLIP, -FLT_MAX, 6);
    check_activation(conv_then("Clip", "y,lo", 11), TIDE_ACT_CLIP, -1, FLT_MAX);
    check_activation(conv_then("Clip", "y", 6), TIDE_ACT_CLIP, -FLT_MAX, FLT_MAX);
    tide_graph *g = conv_then("Clip", "y", 6); // attributes up to opset 10
    add_attr_float(g, 1, "min", 0);
    add_attr_float(g, 1, "max", 6);
    check_activation(g, TIDE_ACT_CLIP, 0, 6);
    g = conv_then("Clip", "y,x", 13); // a bound that is not known
    check_activation(g, TIDE_ACT_NONE, 0, 0);
}

static void test_activation_left_alone(void **state) {
    (void)state;
    tide_graph *g = conv_then("Relu", "y", 13);
    add_output_named(g, "y"); // the caller wants to see it
    check_activation(g, TIDE_ACT_NONE, 0, 0);
    g = conv_then("Relu", "y", 13);
    add_op(g, "Relu", "second", "y", "q");
    check_activation(g, TIDE_ACT_NONE, 0, 0);
    g = conv_then("Relu", "y", 13);
    g->nodes[0].def = &fake_table[0]; // an operator that does not honour it
    check_activation(g, TIDE_ACT_NONE, 0, 0);
    g = conv_then("Relu", "y", 13);
    set_type(g, "y", TIDE_I32, 4, x_dims);
    check_activation(g, TIDE_ACT_NONE, 0, 0);
    g = conv_then("Relu", "x", 13); // behind a graph input
    check_activation(g, TIDE_ACT_NONE, 0, 0);
}

static void test_one_activation_per_node(void **state) {
    (void)state;
    tide_graph *g = conv_then("Relu", "y", 13);
    g->values[value_of(g, "z")].is_output = false;
    g->n_outputs = 0;
    add_op(g, "Tanh", "second", "z", "q");
    set_type(g, "q", TIDE_F32, 4, x_dims);
    add_output_named(g, "q");
    const tide_fuse_stats stats = fuse(g);
    assert_int_equal(stats.n_activation, 1);
    assert_int_equal(g->nodes[0].activation.kind, TIDE_ACT_RELU);
    assert_false(g->nodes[2].dead);
    tide_graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_conv_bn_relu),
        tide_unit_test(test_conv_without_bias_gets_one),
        tide_unit_test(test_shared_weights_stay),
        tide_unit_test(test_conv_bn_is_the_same_function),
        tide_unit_test(test_conv_bn_left_alone),
        tide_unit_test(test_activation_kinds),
        tide_unit_test(test_clip_bounds),
        tide_unit_test(test_activation_left_alone),
        tide_unit_test(test_one_activation_per_node),
    };
    (void)tide_registry_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
