// SPDX-License-Identifier: MIT
//
// The direct convolution in every kind of instructions that this processor has, against sums in double: kernels,
// strides, dilations, paddings, groups, narrow and wide images, filters that fill no block. Operands end where their
// memory ends.
#include "core/ops/direct_conv.h"

#include <math.h>

#include "tests/tide_test.h"

static char name[] = "conv";

typedef struct shape {
    int64_t batch, groups, channels, filters, in[2], kernel[2], stride[2], dilation[2], begin[2], end[2];
} shape;

static const shape shapes[] = {
    // 1 x 1: in place, with a rest of every length, and too short for a vector
    {2, 1, 3, 9, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 5, 17, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 5, 7, {3, 5}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 2, 6, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 3000, 8, {9, 11}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 3000, 3, {1, 145}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 4, 8, {8, 9}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 4, 8, {8, 8}, {1, 1}, {1, 1}, {1, 1}, {1, 2}, {0, 1}},
    // tiles: whole, cut by rows, cut by columns
    {1, 1, 3, 8, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 4, 6, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 300, 5, {13, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 1, 200, 4, {3, 150}, {3, 5}, {1, 2}, {1, 1}, {1, 2}, {1, 2}},
    {1, 1, 3, 16, {21, 23}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}},
    {1, 1, 3, 2, {21, 40}, {3, 2}, {3, 2}, {2, 3}, {0, 1}, {2, 0}},
    {1, 1, 2, 15, {17, 18}, {2, 3}, {1, 3}, {4, 2}, {3, 5}, {1, 0}},
    {1, 1, 1, 31, {1, 5000}, {1, 64}, {1, 4}, {1, 1}, {0, 30}, {0, 31}},
    {1, 1, 2, 4, {900, 1}, {16, 1}, {3, 1}, {2, 1}, {7, 0}, {3, 0}},
    {1, 1, 1, 1, {4, 4}, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 1, 1, 2, {3, 3}, {3, 3}, {5, 5}, {1, 1}, {4, 4}, {9, 9}},
    // depthwise, by rows and through tiles
    {1, 5, 1, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 3, 1, 1, {33, 35}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {1, 3, 1, 1, {14, 31}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
    {1, 3, 1, 1, {15, 70}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}},
    {1, 3, 1, 1, {15, 18}, {5, 5}, {1, 1}, {2, 2}, {4, 4}, {4, 4}},
    {1, 3, 1, 1, {15, 18}, {4, 7}, {1, 1}, {1, 3}, {9, 20}, {0, 40}},
    {1, 3, 1, 1, {15, 18}, {3, 4}, {2, 2}, {3, 1}, {2, 0}, {0, 3}},
    {1, 3, 1, 1, {15, 58}, {3, 9}, {1, 1}, {1, 1}, {1, 4}, {1, 4}},
    {1, 3, 1, 1, {1, 58}, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}},
    {1, 3, 1, 1, {58, 1}, {3, 1}, {2, 1}, {1, 1}, {1, 0}, {1, 0}},
    {1, 3, 1, 1, {9, 9}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 3, 1, 4, {9, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
};

static tide_window window_of(const shape *s) {
    tide_window w = {.n = 3, .in = {1}, .kernel = {1}, .stride = {1}, .dilation = {1}, .out = {1}};
    for (int i = 0; i < 2; i++) {
        w.in[i + 1] = s->in[i];
        w.kernel[i + 1] = s->kernel[i];
        w.stride[i + 1] = s->stride[i];
        w.dilation[i + 1] = s->dilation[i];
        w.pad_begin[i + 1] = s->begin[i];
        w.pad_end[i + 1] = s->end[i];
        const int64_t span = (s->kernel[i] - 1) * s->dilation[i] + 1;
        w.out[i + 1] = (s->in[i] + s->begin[i] + s->end[i] - span) / s->stride[i] + 1;
    }
    return w;
}

static float *numbers(size_t n, uint32_t seed) {
    float *p = malloc(n * sizeof *p);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    return p;
}

/// One output as a sum in double, and the sum of what its terms are without their signs.
static double expected(const shape *s, const float *x, const float *w, int64_t group, int64_t filter, int64_t oh,
                       int64_t ow, double *size) {
    double sum = 0;
    *size = 0;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t kh = 0; kh < s->kernel[0]; kh++)
            for (int64_t kw = 0; kw < s->kernel[1]; kw++) {
                const int64_t h = oh * s->stride[0] + kh * s->dilation[0] - s->begin[0];
                const int64_t v = ow * s->stride[1] + kw * s->dilation[1] - s->begin[1];
                if (h < 0 || h >= s->in[0] || v < 0 || v >= s->in[1]) continue;
                const double a = x[((group * s->channels + c) * s->in[0] + h) * s->in[1] + v];
                const double b = w[((filter * s->channels + c) * s->kernel[0] + kh) * s->kernel[1] + kw];
                sum += a * b;
                *size += fabs(a * b);
            }
    return sum;
}

static void check(const shape *s, size_t which, tide_direct_conv_kind kind, bool with_bias) {
    const tide_window w = window_of(s);
    const int64_t all = s->groups * s->filters;
    const size_t n_x = (size_t)(s->batch * s->groups * s->channels * s->in[0] * s->in[1]);
    const size_t n_w = (size_t)(all * s->channels * s->kernel[0] * s->kernel[1]);
    const size_t n_y = (size_t)(s->batch * all * w.out[1] * w.out[2]);
    tide_direct_conv c = {.batch = s->batch,
                          .groups = s->groups,
                          .channels = s->channels,
                          .filters = s->filters,
                          .act = {.kind = with_bias ? TIDE_ACT_RELU : TIDE_ACT_NONE}};
    bool ours = false;
    assert_int_equal(tide_direct_conv_init(&c, &w, &(tide_node){.name = name}, &ours, NULL), TIDE_OK);
    assert_true(ours);
    float *x = numbers(n_x, 1), *k = numbers(n_w, 2), *bias = with_bias ? numbers((size_t)all, 3) : NULL;
    float *y = malloc(n_y * sizeof *y), *scratch = NULL;
    assert_non_null(y);
    memset(y, 0xff, n_y * sizeof *y);
    if (c.scratch_bytes > 0) assert_int_equal(posix_memalign((void **)&scratch, 64, c.scratch_bytes), 0);
    if (scratch != NULL) memset(scratch, 0xff, c.scratch_bytes); // NaN, as poison is
    assert_true(tide_direct_conv_use(kind));
    tide_direct_conv_run(&c, x, k, bias, y, scratch);
    const float *at = y;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t m = 0; m < all; m++)
            for (int64_t oh = 0; oh < w.out[1]; oh++)
                for (int64_t ow = 0; ow < w.out[2]; ow++, at++) {
                    double size;
                    double sum = expected(s, x, k, b * s->groups + m / s->filters, m, oh, ow, &size);
                    if (with_bias) sum = fmax(sum + (double)bias[m], 0);
                    if (!(fabs((double)*at - sum) <= 1e-6 * (size + 1)))
                        fail_msg("shape %zu kind %d [%d,%d,%d,%d]: %g, not %g", which, (int)kind, (int)b, (int)m,
                                 (int)oh, (int)ow, (double)*at, sum);
                }
    free(x), free(k), free(bias), free(y), free(scratch);
    tide_direct_conv_deinit(&c);
}

static void test_sums(void **state) {
    (void)state;
    const tide_direct_conv_kind best = tide_direct_conv_best();
    for (int kind = 0; kind <= (int)best; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int with_bias = 0; with_bias < 2; with_bias++)
                check(&shapes[i], i, (tide_direct_conv_kind)kind, with_bias != 0);
    if (best < TIDE_DIRECT_CONV_AVX512) print_message("[  SKIPPED ] this processor has no AVX-512\n");
    assert_false(tide_direct_conv_use(TIDE_DIRECT_CONV_AVX512 + 1));
    assert_true(tide_direct_conv_use(best));
}

/// What is left to oneDNN: a third extent, taps that are far apart. A tile takes no more than it is told to.
static void test_what_is_ours(void **state) {
    (void)state;
    tide_direct_conv c = {.batch = 1, .groups = 1, .channels = 2, .filters = 2};
    bool ours = true;
    tide_window w = {
        .n = 3, .in = {2, 5, 5}, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}, .out = {2, 5, 5}};
    assert_int_equal(tide_direct_conv_init(&c, &w, &(tide_node){.name = name}, &ours, NULL), TIDE_OK);
    assert_false(ours);
    assert_null(c.taps);
    w = (tide_window){
        .n = 3, .in = {1, 5, 1 << 20}, .kernel = {1, 1, 2}, .stride = {1, 1, 1}, .dilation = {1, 1, 1 << 19}};
    w.out[0] = 1, w.out[1] = 5, w.out[2] = 1 << 19;
    assert_int_equal(tide_direct_conv_init(&c, &w, &(tide_node){.name = name}, &ours, NULL), TIDE_OK);
    assert_false(ours);
    const shape large = {1, 1, 64, 64, {500, 500}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    w = window_of(&large);
    c = (tide_direct_conv){.batch = 1, .groups = 1, .channels = 64, .filters = 64};
    tide_host_fail_after(0);
    assert_int_equal(tide_direct_conv_init(&c, &w, &(tide_node){.name = name}, &ours, NULL), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    assert_int_equal(tide_direct_conv_init(&c, &w, &(tide_node){.name = name}, &ours, NULL), TIDE_OK);
    assert_true(ours);
    assert_in_range(c.scratch_bytes, 1, 300 * 1024); // its operands take 128 MB
    tide_direct_conv_deinit(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_sums),
        tide_unit_test(test_what_is_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
