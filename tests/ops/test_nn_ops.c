// SPDX-License-Identifier: MIT
//
// Operators of neural networks against naive loops in double (nn_oracle.h), through the whole life of a kernel
// (nn_case.h: repeated runs, moved buffers, two execs and in-place runs must agree bit for bit).
#include <dlfcn.h>
#include <math.h>

#include "tests/ops/nn_oracle.h"

typedef struct row {
    const char *op;
    int opset;
    const char *in, *attrs, *want; ///< want: shape of output 0
} row;

typedef double *(*oracle_fn)(const nn_case *c);

static void run_row(const row *r, oracle_fn oracle, const tide_activation *act) {
    nn_case c;
    nn_make(&c, r->op, r->opset, r->in, r->attrs, 1);
    if (act != NULL) c.node->activation = *act;
    if (c.n_in == 5)
        for (int64_t i = 0; i < tide_op_numel(&c.in[4].shape); i++) nn_f32(&c.in[4])[i] += 1.5f; // a variance
    nn_run(&c);
    nn_assert_shape(&c, 0, r->want);
    double *want = oracle(&c);
    nn_assert_close(&c, 0, want, 2e-5, 1e-5);
    tide_host_free(want);
    nn_done(&c);
}

#define RUN_ROWS(rows, oracle)                                                                                         \
    for (size_t r_ = 0; r_ < sizeof(rows) / sizeof(rows)[0]; r_++) run_row(&(rows)[r_], oracle, NULL)

static const row conv_rows[] = {
    {"Conv", 7, "1x3x8x8 4x3x3x3 4", "", "1x4x6x6"},
    {"Conv", 11, "2x3x9x7 5x3x3x2", "strides=[2,1] pads=[1,0,0,1]", "2x5x4x7"},
    {"Conv", 11, "1x4x10x10 6x2x3x3 6", "group=2 kernel_shape=[3,3] pads=[1,1,1,1]", "1x6x10x10"},
    {"Conv", 11, "1x2x11x11 3x2x3x3 3", "dilations=[2,3] pads=[2,1,0,3]", "1x3x9x9"},
    {"Conv", 11, "1x2x7x8 3x2x3x4 3", "auto_pad=SAME_UPPER strides=[2,2]", "1x3x4x4"},
    {"Conv", 11, "1x2x7x8 3x2x3x4 3", "auto_pad=SAME_LOWER strides=[2,3]", "1x3x4x3"},
    {"Conv", 11, "1x2x7x8 3x2x2x2", "auto_pad=SAME_LOWER", "1x3x7x8"},
    {"Conv", 11, "1x2x7x8 3x2x3x4", "auto_pad=VALID strides=[3,2] pads=[1,1,1,1]", "1x3x2x3"},
    {"Conv", 11, "2x5x20 7x5x4 7", "strides=[3] pads=[2,1]", "2x7x7"},
    {"Conv", 11, "1x2x5x6x7 3x2x2x3x2 3", "strides=[1,2,1] pads=[0,1,1,1,1,0]", "1x3x5x3x7"},
    {"Conv", 11, "1x16x6x6 32x16x1x1 32", "", "1x32x6x6"},
    {"Conv", 11, "1x16x6x6 32x16x1x1 -", "strides=[2,2]", "1x32x3x3"},
    {"Conv", 11, "1x1x12x12 1x1x5x5 1", "pads=[2,2,2,2]", "1x1x12x12"},
    {"Conv", 11, "0x3x8x8 4x3x3x3 4", "", "0x4x6x6"},
    {"Conv", 11, "1x3x0x0 8x3x3x3 8", "pads=[2,2,2,2]", "1x8x2x2"}, // nothing but padding: the bias
    {"Conv", 11, "2x3x0x4 8x3x1x3", "pads=[1,0,1,0]", "2x8x2x2"},
    // depthwise: the loop of our own
    {"Conv", 11, "2x6x9x9 6x1x3x3 6", "group=6 pads=[1,1,1,1]", "2x6x9x9"},
    {"Conv", 11, "1x6x9x10 6x1x3x3", "group=6 pads=[1,1,1,1] strides=[2,2]", "1x6x5x5"},
    {"Conv", 11, "1x4x9x10 8x1x5x5 8", "group=4 pads=[2,2,2,2] strides=[1,2]", "1x8x9x5"},
    {"Conv", 11, "1x4x9x16 4x1x3x4 4", "group=4 pads=[0,3,1,2] strides=[3,3] dilations=[1,2]", "1x4x3x5"},
    {"Conv", 11, "1x4x9x3 4x1x3x7 4", "group=4 auto_pad=SAME_UPPER", "1x4x9x3"},
    {"Conv", 11, "1x4x0x0 4x1x3x3 4", "group=4 pads=[2,2,2,2]", "1x4x2x2"},
    {"Conv", 11, "1x4x13 4x1x3", "group=4 dilations=[4] pads=[4,4]", "1x4x13"},
    {"Conv", 11, "1x3x4x5x6 3x1x2x2x3 3", "group=3 pads=[1,0,1,0,1,1]", "1x3x4x5x6"},
    {"Conv", 11, "1x1x300 1x1x100", "strides=[2]", "1x1x101"},
    {"Conv", 11, "2x1x9x9 4x1x3x3 4", "pads=[1,1,1,1]", "2x4x9x9"},
    {"Conv", 11, "1x2x9x9 20x1x3x3 20", "group=2", "1x20x7x7"}, // too many outputs per channel for it
    {"Conv", 11, "1x3x1x1 3x1x3x3 3", "group=3 pads=[2,2,2,2] strides=[2,2]", "1x3x2x2"},
};
static void test_conv(void **state) {
    (void)state;
    RUN_ROWS(conv_rows, nn_oracle_conv);
}

static const row conv_transpose_rows[] = {
    {"ConvTranspose", 11, "1x2x3x3 2x4x3x3 4", "", "1x4x5x5"},
    {"ConvTranspose", 11, "2x3x4x5 3x2x3x2", "strides=[2,3] pads=[1,0,0,1]", "2x2x8x13"},
    {"ConvTranspose", 11, "1x4x4x4 4x3x3x3 6", "group=2 strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]", "1x6x8x8"},
    {"ConvTranspose", 11, "1x2x3x3 2x2x2x2 2", "dilations=[2,2]", "1x2x5x5"},
    {"ConvTranspose", 11, "1x1x3x3 1x2x3x3", "strides=[3,2] output_shape=[10,8]", "1x2x10x8"},
    {"ConvTranspose", 11, "1x1x3x3 1x2x3x3", "strides=[3,2] output_shape=[8,6]", "1x2x8x6"},
    {"ConvTranspose", 11, "1x1x3x3 1x2x3x3 2", "strides=[2,2] auto_pad=SAME_UPPER", "1x2x6x6"},
    {"ConvTranspose", 11, "1x1x3x3 1x2x3x3 2", "strides=[2,2] auto_pad=SAME_LOWER", "1x2x6x6"},
    {"ConvTranspose", 11, "1x1x3x3 1x2x3x3 2", "strides=[2,2] auto_pad=VALID", "1x2x7x7"},
    {"ConvTranspose", 11, "1x3x6 3x2x4 2", "strides=[2] pads=[1,1]", "1x2x12"},
    {"ConvTranspose", 11, "1x2x3x4x3 2x2x2x3x2 2", "strides=[1,2,2]", "1x2x4x9x6"},
    {"ConvTranspose", 11, "1x6x5x5 6x1x4x4 6", "group=6 strides=[2,2] pads=[1,1,1,1]", "1x6x10x10"},
    {"ConvTranspose", 11, "1x2x3x3 2x2x1x1", "strides=[2,2] output_padding=[1,1]", "1x2x6x6"},
};
static void test_conv_transpose(void **state) {
    (void)state;
    RUN_ROWS(conv_transpose_rows, nn_oracle_conv_transpose);
}

static const row pool_rows[] = {
    {"MaxPool", 8, "1x3x8x8", "kernel_shape=[2,2] strides=[2,2]", "1x3x4x4"},
    {"MaxPool", 12, "2x2x9x8", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", "2x2x5x4"},
    {"MaxPool", 12, "1x2x8x8", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1", "1x2x4x4"},
    {"MaxPool", 12, "1x1x4x4", "kernel_shape=[1,1] strides=[2,2] ceil_mode=1", "1x1x2x2"},
    {"MaxPool", 12, "1x2x9x9", "kernel_shape=[2,3] dilations=[3,2]", "1x2x6x5"},
    {"MaxPool", 12, "1x2x9x9", "kernel_shape=[3,3] dilations=[2,2] pads=[2,2,2,2] strides=[3,2]", "1x2x3x5"},
    {"MaxPool", 12, "1x2x7x8", "kernel_shape=[3,2] auto_pad=SAME_UPPER strides=[2,2]", "1x2x4x4"},
    {"MaxPool", 12, "1x2x7x8", "kernel_shape=[2,2] auto_pad=SAME_LOWER", "1x2x7x8"},
    {"MaxPool", 12, "1x2x7x8", "kernel_shape=[3,3] auto_pad=VALID strides=[2,2]", "1x2x3x3"},
    {"MaxPool", 12, "1x3x17", "kernel_shape=[4] strides=[3] pads=[1,2]", "1x3x6"},
    {"MaxPool", 12, "1x2x5x6x7", "kernel_shape=[2,3,2] strides=[2,1,2] pads=[1,1,0,0,1,1]", "1x2x3x6x4"},
    {"MaxPool", 12, "u8:1x2x5x5", "kernel_shape=[3,3] pads=[1,1,1,1]", "1x2x5x5"},
    {"MaxPool", 12, "i8:1x2x5x5", "kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,2]", "1x2x3x3"},
    {"MaxPool", 12, "0x3x8x8", "kernel_shape=[2,2]", "0x3x7x7"},
    {"AveragePool", 7, "1x3x8x8", "kernel_shape=[2,2] strides=[2,2]", "1x3x4x4"},
    {"AveragePool", 11, "1x2x8x9", "kernel_shape=[3,3] pads=[1,1,1,1]", "1x2x8x9"},
    {"AveragePool", 11, "1x2x8x9", "kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1", "1x2x8x9"},
    {"AveragePool", 11, "1x2x8x8", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1", "1x2x4x4"},
    {"AveragePool", 11, "1x2x8x8", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1 count_include_pad=1", "1x2x4x4"},
    {"AveragePool", 11, "1x1x7x7", "kernel_shape=[4,4] strides=[3,3] pads=[1,1,1,1] ceil_mode=1 count_include_pad=1",
     "1x1x3x3"},
    {"AveragePool", 11, "1x2x7x8", "kernel_shape=[3,4] strides=[2,2] auto_pad=SAME_UPPER", "1x2x4x4"},
    {"AveragePool", 11, "1x2x7x8", "kernel_shape=[3,4] strides=[2,3] auto_pad=SAME_LOWER count_include_pad=1",
     "1x2x4x3"},
    {"AveragePool", 19, "1x2x9x9", "kernel_shape=[3,2] dilations=[2,3] pads=[1,2,1,2]", "1x2x7x10"},
    {"AveragePool", 11, "2x3x15", "kernel_shape=[3] strides=[2]", "2x3x7"},
    {"AveragePool", 11, "1x2x4x5x6", "kernel_shape=[2,2,3] pads=[1,0,1,0,1,1]", "1x2x4x5x6"},
};
static void test_pool(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pool_rows / sizeof pool_rows[0]; i++) {
        if (strchr(pool_rows[i].in, ':') == NULL) {
            run_row(&pool_rows[i], nn_oracle_pool, NULL);
            continue;
        }
        nn_case c;
        nn_make(&c, pool_rows[i].op, pool_rows[i].opset, pool_rows[i].in, pool_rows[i].attrs, 1);
        nn_run(&c);
        nn_assert_shape(&c, 0, pool_rows[i].want);
        double *want = nn_oracle_pool(&c);
        for (int64_t e = 0; e < tide_op_numel(&c.out[0].shape); e++) {
            const double got =
                c.out[0].dtype == TIDE_U8 ? ((const uint8_t *)c.out[0].data)[e] : ((const int8_t *)c.out[0].data)[e];
            assert_true(got == want[e]);
        }
        tide_host_free(want);
        nn_done(&c);
    }
}

static const row global_rows[] = {
    {"GlobalAveragePool", 7, "2x3x5x7", "", "2x3x1x1"}, {"GlobalAveragePool", 7, "1x4x33", "", "1x4x1"},
    {"GlobalMaxPool", 7, "2x3x5x7", "", "2x3x1x1"},     {"GlobalMaxPool", 7, "1x3x2x3x4", "", "1x3x1x1x1"},
    {"GlobalAveragePool", 7, "0x3x5x7", "", "0x3x1x1"},
};
static void test_global_pool(void **state) {
    (void)state;
    RUN_ROWS(global_rows, nn_oracle_global_pool);
}

static const row matmul_rows[] = {
    {"MatMul", 7, "4x5 5x6", "", "4x6"},
    {"MatMul", 9, "5 5", "", ""},
    {"MatMul", 9, "5 5x6", "", "6"},
    {"MatMul", 9, "4x5 5", "", "4"},
    {"MatMul", 13, "3x4x5 5x6", "", "3x4x6"},
    {"MatMul", 13, "3x4x5 3x5x6", "", "3x4x6"},
    {"MatMul", 13, "3x4x5 1x5x6", "", "3x4x6"},
    {"MatMul", 13, "4x5 3x5x6", "", "3x4x6"},
    {"MatMul", 13, "5 3x5x6", "", "3x6"},
    {"MatMul", 13, "2x3x4x5 5", "", "2x3x4"},
    {"MatMul", 13, "2x1x4x5 1x3x5x6", "", "2x3x4x6"},
    {"MatMul", 13, "2x3x1x4x5 1x4x5x6", "", "2x3x4x4x6"},
    {"MatMul", 13, "2x1x2x3x4x5 1x2x2x1x5x6", "", "2x2x2x3x4x6"},
    {"MatMul", 13, "2x3x4x5 2x3x5x6", "", "2x3x4x6"},
    {"MatMul", 13, "1x64 64x100", "", "1x100"},
    {"MatMul", 13, "3x0x5 5x6", "", "3x0x6"},
    {"MatMul", 13, "3x4x0 0x6", "", "3x4x6"},
};
static void test_matmul(void **state) {
    (void)state;
    RUN_ROWS(matmul_rows, nn_oracle_matmul);
}

static const row gemm_rows[] = {
    {"Gemm", 7, "4x5 5x6 6", "", "4x6"},
    {"Gemm", 11, "4x5 5x6", "", "4x6"},
    {"Gemm", 11, "4x5 5x6 -", "alpha=0.5", "4x6"},
    {"Gemm", 9, "5x4 5x6 4x6", "transA=1 beta=0.25", "4x6"},
    {"Gemm", 9, "4x5 6x5 1x6", "transB=1", "4x6"},
    {"Gemm", 9, "5x4 6x5 4x1", "transA=1 transB=1 alpha=1.5", "4x6"},
    {"Gemm", 11, "4x5 5x6 []", "alpha=0.25 beta=0.35", "4x6"},
    {"Gemm", 11, "4x5 5x6 1", "", "4x6"},
    {"Gemm", 11, "4x5 5x6 6", "alpha=2.0", "4x6"},
    {"Gemm", 11, "4x5 5x6 4x6", "beta=0.0", "4x6"},
    {"Gemm", 11, "1x5 5x1 1", "", "1x1"},
    {"Gemm", 11, "1x300 1000x300 1000", "transB=1", "1x1000"},
    {"Gemm", 11, "4x0 0x6 6", "", "4x6"},
    {"Gemm", 11, "4x0 0x6 4x1", "beta=0.5", "4x6"},
    {"Gemm", 11, "4x0 0x6", "", "4x6"},
};
static void test_gemm(void **state) {
    (void)state;
    RUN_ROWS(gemm_rows, nn_oracle_gemm);
}

static void test_norms(void **state) {
    (void)state;
    static const row batch[] = {
        {"BatchNormalization", 7, "2x3x4x5 3 3 3 3", "", "2x3x4x5"},
        {"BatchNormalization", 6, "2x3x4 3 3 3 3", "is_test=1", "2x3x4"},
        {"BatchNormalization", 9, "1x5x7 5 5 5 5", "epsilon=0.1 momentum=0.9", "1x5x7"},
        {"BatchNormalization", 14, "6x4 4 4 4 4", "training_mode=0", "6x4"},
        {"BatchNormalization", 15, "1x2x2x3x3 2 2 2 2", "", "1x2x2x3x3"},
    };
    static const row instance[] = {
        {"InstanceNormalization", 7, "2x3x4x5 3 3", "", "2x3x4x5"},
        {"InstanceNormalization", 7, "1x4x33 4 4", "epsilon=0.01", "1x4x33"},
    };
    static const row layer[] = {
        {"LayerNormalization", 17, "2x3x17 17 17", "", "2x3x17"},
        {"LayerNormalization", 17, "2x3x4x5 3x4x5", "axis=1 epsilon=0.1", "2x3x4x5"},
        {"LayerNormalization", 17, "2x3x4x5 4x5 4x5", "axis=-2", "2x3x4x5"},
    };
    static const row lrn[] = {
        {"LRN", 7, "2x9x3x5", "size=5 alpha=0.1 beta=0.75 bias=2.0", "2x9x3x5"},
        {"LRN", 7, "1x6x30x20", "size=3", "1x6x30x20"},
        {"LRN", 13, "1x6x4x4", "size=4 alpha=0.5 beta=0.6", "1x6x4x4"},
        {"LRN", 13, "1x3x4", "size=9 alpha=0.5", "1x3x4"},
    };
    RUN_ROWS(batch, nn_oracle_batch_norm);
    RUN_ROWS(instance, nn_oracle_instance_norm);
    RUN_ROWS(layer, nn_oracle_layer_norm);
    RUN_ROWS(lrn, nn_oracle_lrn);
}

/// In place too, and where the running statistics are not asked for: the numbers are those of test_signal_ops.
static void test_batch_norm_in_training(void **state) {
    (void)state;
    for (size_t n_out = 1; n_out <= 3; n_out++) {
        nn_case c;
        nn_make(&c, "BatchNormalization", 15, "2x3x4 3 3 3 3", "training_mode=1", n_out);
        nn_run(&c);
        nn_done(&c);
    }
}

static void test_layer_norm_statistics(void **state) {
    (void)state;
    nn_case c;
    nn_make(&c, "LayerNormalization", 17, "2x3x4 3x4 3x4", "axis=1", 3);
    nn_run(&c);
    nn_assert_shape(&c, 1, "2x1x1");
    nn_assert_shape(&c, 2, "2x1x1");
    for (int r = 0; r < 2; r++) {
        double mean = 0, var = 0;
        const float *x = nn_f32(&c.in[0]) + r * 12;
        for (int i = 0; i < 12; i++) mean += (double)x[i] / 12;
        for (int i = 0; i < 12; i++) var += pow((double)x[i] - mean, 2) / 12;
        assert_float_equal(nn_f32(&c.out[1])[r], mean, 1e-6);
        assert_float_equal(nn_f32(&c.out[2])[r], 1 / sqrt(var + 1e-5), 1e-5);
    }
    nn_done(&c);
}

static void test_softmax(void **state) {
    (void)state;
    static const row rows[] = {
        {"Softmax", 9, "3x7", "", "3x7"},
        {"Softmax", 11, "2x3x4x5", "", "2x3x4x5"},
        {"Softmax", 11, "2x3x4x5", "axis=2", "2x3x4x5"},
        {"Softmax", 11, "2x3x4x5", "axis=-1", "2x3x4x5"},
        {"Softmax", 11, "2x3x4x5", "axis=0", "2x3x4x5"},
        {"Softmax", 13, "2x3x4x5", "", "2x3x4x5"},
        {"Softmax", 13, "2x3x4x5", "axis=1", "2x3x4x5"},
        {"Softmax", 13, "2x3x4x5", "axis=0", "2x3x4x5"},
        {"Softmax", 13, "1x1000x1x1", "axis=1", "1x1000x1x1"},
        {"Softmax", 13, "2x1x5", "axis=1", "2x1x5"},
        {"LogSoftmax", 11, "2x3x4", "axis=1", "2x3x4"},
        {"LogSoftmax", 13, "2x3x4", "axis=1", "2x3x4"},
        {"LogSoftmax", 13, "2x3x40", "axis=-1", "2x3x40"},
        {"Softmax", 13, "2x0x4", "", "2x0x4"},
    };
    RUN_ROWS(rows, nn_oracle_softmax);
}

static void test_activations(void **state) {
    (void)state;
    static const row rows[] = {
        {"Relu", 7, "2x3x33", "", "2x3x33"},
        {"Relu", 14, "[]", "", ""},
        {"Relu", 14, "3x0x2", "", "3x0x2"},
        {"LeakyRelu", 7, "2x50", "", "2x50"},
        {"LeakyRelu", 16, "2x50", "alpha=0.3", "2x50"},
        {"Elu", 7, "101", "", "101"},
        {"Elu", 7, "101", "alpha=2.5", "101"},
        {"Sigmoid", 13, "4x31", "", "4x31"},
        {"Tanh", 13, "4x31", "", "4x31"},
        {"HardSwish", 14, "4x31", "", "4x31"},
        {"Softplus", 7, "4x31", "", "4x31"},
        {"HardSigmoid", 7, "4x31", "", "4x31"},
        {"HardSigmoid", 7, "4x31", "alpha=0.9 beta=0.1", "4x31"},
        {"Gelu", 20, "4x31", "", "4x31"},
        {"Gelu", 20, "4x31", "approximate=tanh", "4x31"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, rows[i].op, rows[i].opset, rows[i].in, rows[i].attrs, 1);
        for (int64_t e = 0; e < tide_op_numel(&c.in[0].shape); e++) nn_f32(&c.in[0])[e] *= 8; // reach both tails
        nn_run(&c);
        nn_assert_shape(&c, 0, rows[i].want);
        double *want = nn_oracle_activation(&c);
        nn_assert_close(&c, 0, want, 2e-5, 2e-6);
        tide_host_free(want);
        nn_done(&c);
    }
}

static void assert_clip(const char *in, int opset, const char *attrs, double low, double high) {
    nn_case c;
    nn_make(&c, "Clip", opset, in, attrs, 1);
    if (c.n_in > 1 && c.in[1].dtype == TIDE_F32) nn_f32(&c.in[1])[0] = (float)low;
    if (c.n_in > 2 && c.in[2].dtype == TIDE_F32) nn_f32(&c.in[2])[0] = (float)high;
    if (c.n_in > 1 && c.in[1].dtype == TIDE_I64) ((int64_t *)c.in[1].data)[0] = (int64_t)low;
    if (c.n_in > 1 && c.in[1].dtype == TIDE_I8) ((int8_t *)c.in[1].data)[0] = (int8_t)low;
    nn_run(&c);
    for (int64_t i = 0; i < tide_op_numel(&c.in[0].shape); i++) {
        const double x = c.in[0].dtype == TIDE_F32   ? (double)nn_f32(&c.in[0])[i]
                         : c.in[0].dtype == TIDE_I64 ? (double)((const int64_t *)c.in[0].data)[i]
                                                     : ((const int8_t *)c.in[0].data)[i];
        const double y = c.in[0].dtype == TIDE_F32   ? (double)nn_f32(&c.out[0])[i]
                         : c.in[0].dtype == TIDE_I64 ? (double)((const int64_t *)c.out[0].data)[i]
                                                     : ((const int8_t *)c.out[0].data)[i];
        assert_true(y == fmin(fmax(x, low), high));
    }
    nn_done(&c);
}

static void test_clip(void **state) {
    (void)state;
    assert_clip("3x40", 6, "min=-0.5 max=0.25", -0.5, 0.25);
    assert_clip("3x40", 10, "max=0.25", -INFINITY, 0.25);
    assert_clip("3x40 [] []", 11, "", -0.25, 0.5);
    assert_clip("3x40 - []", 12, "", -INFINITY, 0.5);
    assert_clip("3x40 1", 13, "", 0.125, INFINITY);
    assert_clip("3x40 [] []", 13, "", 0.5, -0.5); // crossed: the upper bound wins
    assert_clip("i64:3x40 i64:[]", 12, "", -7, INFINITY);
    assert_clip("i8:3x40 i8:[]", 12, "", 5, INFINITY);
    assert_clip("0x4 [] []", 12, "", 0, 1);
}

/// Every row that says it honours an activation does so, for every kind.
static void test_fused_activation(void **state) {
    (void)state;
    static const tide_activation acts[] = {
        {TIDE_ACT_RELU, 0, 0}, {TIDE_ACT_CLIP, -0.1f, 0.2f},   {TIDE_ACT_SIGMOID, 0, 0},
        {TIDE_ACT_TANH, 0, 0}, {TIDE_ACT_LEAKY_RELU, 0.3f, 0},
    };
    static const struct {
        row r;
        oracle_fn oracle;
    } rows[] = {
        {{"Conv", 11, "1x3x8x9 4x3x3x3 4", "pads=[1,1,1,1]", "1x4x8x9"}, nn_oracle_conv},
        {{"Conv", 11, "1x4x8x9 4x2x1x1", "group=2", "1x4x8x9"}, nn_oracle_conv},
        {{"Conv", 11, "1x4x8x9 4x1x3x3 4", "group=4 strides=[2,1]", "1x4x3x7"}, nn_oracle_conv},
        {{"Conv", 11, "1x4x19 4x4x3 4", "", "1x4x17"}, nn_oracle_conv},
        {{"ConvTranspose", 11, "1x2x4x4 2x3x3x3 3", "strides=[2,2]", "1x3x9x9"}, nn_oracle_conv_transpose},
        {{"MatMul", 13, "2x4x5 2x5x6", "", "2x4x6"}, nn_oracle_matmul},
        {{"MatMul", 13, "2x4x0 0x6", "", "2x4x6"}, nn_oracle_matmul},
        {{"Gemm", 11, "4x5 5x6 6", "", "4x6"}, nn_oracle_gemm},
        {{"Gemm", 11, "4x5 5x6 4x1", "alpha=0.5 beta=2.0", "4x6"}, nn_oracle_gemm},
        {{"Gemm", 11, "4x0 0x6 4x1", "", "4x6"}, nn_oracle_gemm},
        {{"BatchNormalization", 15, "2x3x4x5 3 3 3 3", "", "2x3x4x5"}, nn_oracle_batch_norm},
    };
    const tide_op_def *const *table;
    const size_t n = tide_op_table(&table);
    for (size_t i = 0; i < n; i++) {
        // Rows of this file's family only: those of others have their own test.
        if ((table[i]->flags & TIDE_OP_FUSES_ACT) == 0) continue;
        bool listed = false;
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            listed = listed || strcmp(rows[r].r.op, table[i]->name) == 0;
        if (!listed) print_message("%s fuses activations and is tested elsewhere\n", table[i]->name);
    }
    for (size_t a = 0; a < sizeof acts / sizeof acts[0]; a++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) run_row(&rows[r].r, rows[r].oracle, &acts[a]);
}

typedef struct act_pair {
    tide_activation act;
    const char *op; ///< the same as a node of its own
    int opset;
    const char *attrs;
} act_pair;

static const act_pair act_pairs[] = {
    {{TIDE_ACT_RELU, 0, 0}, "Relu", 14, ""},
    {{TIDE_ACT_CLIP, -0.1f, 0.2f}, "Clip", 6, "min=-0.1 max=0.2"},
    {{TIDE_ACT_CLIP, 0.2f, -0.1f}, "Clip", 6, "min=0.2 max=-0.1"}, // crossed: the upper one wins
    {{TIDE_ACT_SIGMOID, 0, 0}, "Sigmoid", 13, ""},
    {{TIDE_ACT_TANH, 0, 0}, "Tanh", 13, ""},
    {{TIDE_ACT_LEAKY_RELU, 0.3f, 0}, "LeakyRelu", 6, "alpha=0.3"},
};

/// A producer whose results hold NaN, both infinities and ordinary numbers.
static void run_spoilt(nn_case *c, const row *r, const tide_activation *act) {
    nn_make(c, r->op, r->opset, r->in, r->attrs, 1);
    if (act != NULL) c->node->activation = *act;
    float *x = nn_f32(&c->in[0]);
    x[0] = NAN;
    x[tide_op_numel(&c->in[0].shape) / 2] = INFINITY;
    if (c->n_in == 5)
        for (int64_t i = 0; i < tide_op_numel(&c->in[4].shape); i++) nn_f32(&c->in[4])[i] += 1.5f; // a variance
    nn_run(c);
}

static void check_pair(const row *r, const act_pair *a) {
    nn_case plain, fused, alone;
    run_spoilt(&plain, r, NULL);
    run_spoilt(&fused, r, &a->act);
    nn_make(&alone, a->op, a->opset, r->want, a->attrs, 1);
    memcpy(alone.in[0].data, plain.out[0].data, plain.out[0].size_bytes);
    nn_run(&alone);
    int64_t n_nan = 0;
    for (int64_t i = 0; i < tide_op_numel(&alone.out[0].shape); i++) {
        const float f = nn_f32(&fused.out[0])[i], u = nn_f32(&alone.out[0])[i], v = nn_f32(&plain.out[0])[i];
        n_nan += isnan(v);
        const bool same = isnan(v) ? isnan(f) && isnan(u) : f == u || fabsf(f - u) <= 1e-5f;
        if (!same) fail_msg("%s + %s of %g: fused %g, by itself %g", r->op, a->op, (double)v, (double)f, (double)u);
    }
    assert_true(n_nan > 0);
    nn_done(&plain);
    nn_done(&fused);
    nn_done(&alone);
}

/// Fusing changes no result: not that of a NaN, which stays one, nor that of crossed bounds.
static void test_fused_is_unfused(void **state) {
    (void)state;
    static const row rows[] = {
        {"Conv", 11, "1x3x8x9 16x3x3x3 16", "pads=[1,1,1,1]", "1x16x8x9"},
        {"Conv", 11, "1x4x8x9 4x1x3x3 4", "group=4 strides=[2,1]", "1x4x3x7"},
        {"ConvTranspose", 11, "1x2x4x4 2x3x3x3 3", "strides=[2,2]", "1x3x9x9"},
        {"MatMul", 13, "2x7x33 2x33x19", "", "2x7x19"},
        {"Gemm", 11, "7x33 33x19 19", "", "7x19"},
        {"Gemm", 11, "7x33 33x19 7x1", "alpha=0.5 beta=2.0", "7x19"},
        {"BatchNormalization", 15, "2x3x4x5 3 3 3 3", "", "2x3x4x5"},
        {"Add", 13, "7x33 33", "", "7x33"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (size_t a = 0; a < sizeof act_pairs / sizeof act_pairs[0]; a++) check_pair(&rows[r], &act_pairs[a]);
}

/// One kernel, two execs, two threads (S27: the plan is shared, contexts are not).
static void test_threads_share_kernel(void **state) {
    (void)state;
    static const row rows[] = {
        {"Conv", 11, "1x16x14x14 16x16x3x3 16", "pads=[1,1,1,1]", "1x16x14x14"},
        {"Gemm", 11, "8x64 64x32 8x1", "", "8x32"},
        {"MatMul", 13, "4x16x16 4x16x16", "", "4x16x16"},
        {"Softmax", 13, "8x100x3", "axis=1", "8x100x3"},
        {"Tanh", 13, "4x310", "", "4x310"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, rows[i].op, rows[i].opset, rows[i].in, rows[i].attrs, 1);
        nn_run(&c);
        nn_run_threads(&c);
        nn_done(&c);
    }
}

typedef struct bad {
    const char *op;
    int opset;
    const char *in, *attrs;
    size_t n_out;
    tide_status want;
    const char *text;
} bad;

/// Bad input is told in words that name the node and the sizes; nothing is written.
static void test_errors(void **state) {
    (void)state;
    static const bad rows[] = {
        {"Conv", 11, "1x3x8x8 4x2x3x3", "", 1, TIDE_ERR_BAD_INPUT, "W is [4x2x3x3]"},
        {"Conv", 11, "1x4x8x8 3x2x3x3", "group=2", 1, TIDE_ERR_BAD_INPUT, "group is 2"},
        {"Conv", 11, "1x4x8x8 3x2x3x3", "group=0", 1, TIDE_ERR_BAD_INPUT, "group is 0"},
        {"Conv", 11, "1x0x8x8 3x0x3x3", "", 1, TIDE_ERR_BAD_INPUT, "W must be"},
        {"Conv", 11, "1x3x8x8 4x3x3x3 5", "", 1, TIDE_ERR_BAD_INPUT, "B is [5], must be [4]"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "kernel_shape=[3,4]", 1, TIDE_ERR_BAD_INPUT, "kernel_shape"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "strides=[1]", 1, TIDE_ERR_BAD_INPUT, "'strides' has 1 elements, must have 2"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "strides=[0,1]", 1, TIDE_ERR_BAD_INPUT, "'strides'[0] is 0"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "pads=[-1,0,0,0]", 1, TIDE_ERR_BAD_INPUT, "'pads'[0] is -1"},
        {"Conv", 11, "1x3x2x8 4x3x3x3", "", 1, TIDE_ERR_BAD_INPUT, "window of 3 is larger than the padded input of 2"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "auto_pad=SAME", 1, TIDE_ERR_BAD_INPUT, "auto_pad is 'SAME'"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "dilations=[9223372036854775807,1]", 1, TIDE_ERR_OVERFLOW, "too large"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "pads=[9223372036854775807,1,1,1]", 1, TIDE_ERR_OVERFLOW, "too large"},
        {"Conv", 11, "1x3x8x8 4x3x3x3", "strides=[4294967296,1]", 1, TIDE_ERR_OVERFLOW, "4294967296 is too large"},
        {"Conv", 11, "1x3x8x8 4x3x1x1", "dilations=[4294967296,1]", 1, TIDE_ERR_OVERFLOW, "too large"},
        {"AveragePool", 11, "1x1x8", "kernel_shape=[1099511627776] pads=[1099511627776,0]", 1, TIDE_ERR_OVERFLOW,
         "too large"},
        {"Conv", 11, "i8:1x3x8x8 4x3x3x3", "", 1, TIDE_ERR_NOT_IMPLEMENTED, "X is int8"},
        {"Conv", 11, "3x8 4x3", "", 1, TIDE_ERR_BAD_INPUT, "must have rank 3 to 5"},
        {"Conv", 11, "1x3x8x8 4x3x3", "", 1, TIDE_ERR_BAD_INPUT, "W is [4x3x3], must have rank 4"},
        {"Conv", 11, "1x3x8x8", "", 1, TIDE_ERR_BAD_INPUT, "has 1 input, the operator takes 2 to 3"},
        {"ConvTranspose", 11, "1x2x3x3 3x4x3x3", "", 1, TIDE_ERR_BAD_INPUT, "W is [3x4x3x3]"},
        {"ConvTranspose", 11, "1x2x3x3 2x4x3x3", "pads=[3,0,3,0]", 1, TIDE_ERR_BAD_INPUT, "leave nothing"},
        {"ConvTranspose", 11, "1x2x3x3 2x4x3x3", "output_shape=[50,5]", 1, TIDE_ERR_NOT_IMPLEMENTED, "past the"},
        {"ConvTranspose", 11, "1x2x3x3 2x4x3x3", "strides=[9223372036854775807,1]", 1, TIDE_ERR_OVERFLOW, "too large"},
        {"ConvTranspose", 11, "1x2x1x1 2x4x3x3", "strides=[4294967296,1]", 1, TIDE_ERR_OVERFLOW, "too large"},
        {"ConvTranspose", 11, "1x2x1x1 2x4x1x1", "dilations=[4294967296,1]", 1, TIDE_ERR_OVERFLOW, "too large"},
        {"MaxPool", 12, "1x2x5x5", "", 1, TIDE_ERR_BAD_INPUT, "'kernel_shape' is missing"},
        {"MaxPool", 12, "1x2x5x5", "kernel_shape=[0,1]", 1, TIDE_ERR_BAD_INPUT, "'kernel_shape'[0] is 0"},
        {"MaxPool", 12, "i64:1x2x5x5", "kernel_shape=[2,2]", 1, TIDE_ERR_NOT_IMPLEMENTED, "X is int64"},
        {"GlobalMaxPool", 7, "1x2x0x5", "", 1, TIDE_ERR_BAD_INPUT, "no elements"},
        {"MatMul", 13, "3x4 5x6", "", 1, TIDE_ERR_BAD_INPUT, "A is [3x4], B is [5x6]"},
        {"MatMul", 13, "[] 5x6", "", 1, TIDE_ERR_BAD_INPUT, "A is []"},
        {"MatMul", 13, "2x3x4 3x4x5", "", 1, TIDE_ERR_BAD_INPUT, "do not broadcast"},
        {"Gemm", 11, "3x4 5x6", "", 1, TIDE_ERR_BAD_INPUT, "transA 0"},
        {"Gemm", 11, "3x4 4x6 5", "", 1, TIDE_ERR_BAD_INPUT, "C is [5], must broadcast to [3x6]"},
        {"Gemm", 11, "1x4 4x6 3x6", "", 1, TIDE_ERR_BAD_INPUT, "C is [3x6], must broadcast to [1x6]"},
        {"Gemm", 11, "2x3x4 4x6", "", 1, TIDE_ERR_BAD_INPUT, "must have rank 2"},
        {"BatchNormalization", 9, "1x3x4 3 3 4 3", "", 1, TIDE_ERR_BAD_INPUT, "mean is [4], must be [3]"},
        {"BatchNormalization", 9, "1x3x4 3 3 3 3", "", 3, TIDE_ERR_NOT_IMPLEMENTED, "output 1"},
        {"BatchNormalization", 6, "1x3x4 3 3 3 3", "", 1, TIDE_ERR_NOT_IMPLEMENTED, "is_test is 0"},
        {"BatchNormalization", 7, "1x3x4 3 3 3 3", "spatial=0", 1, TIDE_ERR_NOT_IMPLEMENTED, "spatial"},
        {"LayerNormalization", 17, "2x3 4", "", 1, TIDE_ERR_BAD_INPUT, "[4] and [3]"},
        {"LayerNormalization", 17, "2x3 1", "", 1, TIDE_ERR_NOT_IMPLEMENTED, "Scale is [1]"},
        {"LRN", 13, "1x3x4x4", "", 1, TIDE_ERR_BAD_INPUT, "'size' is 0"},
        {"Softmax", 13, "2x3", "axis=2", 1, TIDE_ERR_BAD_INPUT, "axis 2 is outside [-2, 1]"},
        {"Gelu", 20, "4", "approximate=cubic", 1, TIDE_ERR_BAD_INPUT, "approximate is 'cubic'"},
        {"Relu", 14, "i32:4", "", 1, TIDE_ERR_NOT_IMPLEMENTED, "X is int32"},
        {"Clip", 12, "4 2", "", 1, TIDE_ERR_BAD_INPUT, "min is [2], must be a scalar"},
        {"Clip", 12, "4 i64:[]", "", 1, TIDE_ERR_BAD_INPUT, "min is int64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, rows[i].op, rows[i].opset, rows[i].in, rows[i].attrs, rows[i].n_out);
        const tide_status got = nn_infer(&c);
        if (got != rows[i].want)
            fail_msg("%s %s: got %s (%s)", rows[i].op, rows[i].attrs, tide_status_name(got), c.err.msg);
        assert_text_has(c.err.msg, rows[i].text);
        assert_text_has(c.err.msg, "'it'");
        nn_done(&c);
    }
}

/// Fail the first, second, third … host allocation of prepare and exec_create until both succeed: the right status each
/// time, nothing leaked (the fixture counts), no half-made kernel.
static void test_out_of_memory(void **state) {
    (void)state;
    static const row rows[] = {
        {"Conv", 11, "1x3x8x8 4x3x3x3 4", "", ""},
        {"Conv", 11, "1x3x8x8 3x1x3x3 3", "group=3", ""},
        {"Gemm", 11, "4x5 5x6 6", "", ""},
        {"Softmax", 13, "4x5", "", ""},
        {"Softmax", 13, "4x5x2", "axis=1", ""},
        {"MaxPool", 12, "1x2x5x5", "kernel_shape=[2,2]", ""},
        {"Tanh", 13, "4", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, rows[i].op, rows[i].opset, rows[i].in, rows[i].attrs, 1);
        assert_tide_ok(nn_infer(&c), &c.err);
        const tide_op_def *d = c.node->def;
        int n = 0;
        for (bool done = false; !done; n++) {
            assert_true(n < 20);
            tide_kernel k = {.def = d, .node = c.node};
            void *exec = NULL;
            tide_host_fail_after(n);
            tide_status st = d->prepare(&(tide_prepare){c.node, c.in, c.n_in, c.out, c.n_out}, &k, &c.err);
            const bool prepared = st == TIDE_OK;
            if (prepared && d->exec_create != NULL) st = d->exec_create(&k, &exec, &c.err);
            tide_host_fail_after(-1);
            if (st != TIDE_OK) assert_int_equal(st, TIDE_ERR_NOMEM);
            if (!prepared) assert_null(k.state);
            if (st == TIDE_OK && d->exec_destroy != NULL) d->exec_destroy(&k, exec);
            if (prepared) d->destroy(&k);
            done = st == TIDE_OK;
        }
        assert_true(n >= 2); // at least one failure was planted and seen
        nn_done(&c);
    }
}

/// Scratch comes from the plan: what a kernel needs is told, in bytes, before any run (S27-15).
static void test_workspace_is_reported(void **state) {
    (void)state;
    nn_case c;
    nn_make(&c, "Conv", 11, "1x16x28x28 16x16x3x3 16", "pads=[1,1,1,1]", 1);
    nn_run(&c);
    assert_true(c.workspace_bytes > 0); // a tile of the input, with its padding
    nn_done(&c);
    nn_make(&c, "MaxPool", 12, "1x16x28x28", "kernel_shape=[2,2]", 1);
    nn_run(&c);
    assert_int_equal(c.workspace_bytes, 28 * sizeof(float));
    nn_done(&c);
}

static size_t conv_workspace(void) {
    nn_case c;
    nn_make(&c, "Conv", 11, "1x64x56x56 64x64x3x3 64", "pads=[1,1,1,1]", 1);
    nn_run(&c);
    const size_t bytes = c.workspace_bytes;
    nn_done(&c);
    return bytes;
}

/// Scratch does not depend on how many cores there are, and the host program's own OpenMP setting survives us.
static void test_one_thread_per_kernel(void **state) {
    (void)state;
    void (*set)(int);
    int (*get)(void);
    *(void **)&set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    *(void **)&get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    if (set == NULL || get == NULL || getenv("OMP_NUM_THREADS") != NULL) {
        print_message("[  SKIPPED ] oneDNN's threads are not ours to set here\n");
        return;
    }
    const int before = get();
    set(1);
    const size_t one = conv_workspace();
    assert_int_equal(get(), 1);
    set(4);
    const size_t four = conv_workspace();
    assert_int_equal(get(), 4);
    set(before);
    assert_int_equal(one, four);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_conv),
        tide_unit_test(test_conv_transpose),
        tide_unit_test(test_pool),
        tide_unit_test(test_global_pool),
        tide_unit_test(test_matmul),
        tide_unit_test(test_gemm),
        tide_unit_test(test_norms),
        tide_unit_test(test_batch_norm_in_training),
        tide_unit_test(test_layer_norm_statistics),
        tide_unit_test(test_softmax),
        tide_unit_test(test_activations),
        tide_unit_test(test_clip),
        tide_unit_test(test_fused_activation),
        tide_unit_test(test_fused_is_unfused),
        tide_unit_test(test_threads_share_kernel),
        tide_unit_test(test_errors),
        tide_unit_test(test_out_of_memory),
        tide_unit_test(test_workspace_is_reported),
        tide_unit_test(test_one_thread_per_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
