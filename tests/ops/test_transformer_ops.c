// SPDX-License-Identifier: MIT
//
// Operators of transformers, those of ONNX and those of com.microsoft, against naive loops in double that share nothing
// with core/ops, through the whole life of a kernel (nn_case.h); and what is refused, in words.
#include <math.h>

#include "tests/ops/nn_case.h"

enum { MOST = 4096 };

static bool has(const nn_case *c, size_t i) { return i < c->n_in && c->in[i].dtype != TIDE_DTYPE_UNDEFINED; }
static int64_t dim(const nn_case *c, size_t i, int32_t d) { return c->in[i].shape.dims[d]; }
static double at(const nn_case *c, size_t i, int64_t e) { return (double)nn_f32(&c->in[i])[e]; }
static int64_t int_attr(const nn_case *c, const char *name, int64_t absent) {
    return tide_node_attr_int(c->node, name, absent);
}

static double *room(int64_t n) {
    double *p = tide_host_calloc((size_t)n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/// weights of one query: softmax of score[n]; all 0 where nothing is attended to.
static void weigh(double *score, int64_t n) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) top = fmax(top, score[j]);
    for (int64_t j = 0; j < n; j++) sum += score[j] = isinf(top) ? 0 : exp(score[j] - top);
    for (int64_t j = 0; j < n; j++) score[j] = sum > 0 ? score[j] / sum : 0;
}

static void give_ints(nn_case *c, size_t i, const int64_t *v) {
    for (int64_t e = 0; e < tide_op_numel(&c->in[i].shape); e++) {
        if (c->in[i].dtype == TIDE_I32)
            ((int32_t *)c->in[i].data)[e] = (int32_t)v[e];
        else
            ((int64_t *)c->in[i].data)[e] = v[e];
    }
}

// ---- Attention of ONNX ----

typedef struct sizes {
    int64_t batch, heads, kv_heads, queries, keys, past, total, d, v_d;
    bool flat;
} sizes;

static sizes sizes_of(const nn_case *c) {
    sizes s = {.batch = dim(c, 0, 0), .flat = c->in[0].shape.rank == 3};
    s.heads = s.flat ? int_attr(c, "q_num_heads", 0) : dim(c, 0, 1);
    s.kv_heads = s.flat ? int_attr(c, "kv_num_heads", 0) : dim(c, 1, 1);
    s.queries = dim(c, 0, s.flat ? 1 : 2);
    s.keys = dim(c, 1, s.flat ? 1 : 2);
    s.d = s.flat ? dim(c, 0, 2) / s.heads : dim(c, 0, 3);
    s.v_d = s.flat ? dim(c, 2, 2) / s.kv_heads : dim(c, 2, 3);
    s.past = has(c, 4) ? dim(c, 4, 2) : 0;
    s.total = s.past + s.keys;
    return s;
}

/// Number `e` of token `j`, head `h` of operand `now`, or of the cache `past` in front of it.
static double cached(const nn_case *c, const sizes *s, size_t now, size_t past, int64_t b, int64_t h, int64_t j,
                     int64_t d, int64_t e) {
    if (j < s->past) return at(c, past, ((b * s->kv_heads + h) * s->past + j) * d + e);
    j -= s->past;
    return at(c, now,
              s->flat ? ((b * s->keys + j) * s->kv_heads + h) * d + e : ((b * s->kv_heads + h) * s->keys + j) * d + e);
}

static double mask_at(const nn_case *c, int64_t b, int64_t h, int64_t i, int64_t j) {
    const tide_shape *m = &c->in[3].shape;
    const int64_t want[4] = {b, h, i, j};
    int64_t e = 0;
    for (int32_t k = 0; k < m->rank; k++) {
        const int64_t place = want[4 - m->rank + k];
        if (k == m->rank - 1 && place >= m->dims[k]) return -INFINITY; // a mask that is too short masks the rest
        e = e * m->dims[k] + (k < m->rank - 1 && m->dims[k] == 1 ? 0 : place);
    }
    if (c->in[3].dtype == TIDE_BOOL) return ((const uint8_t *)c->in[3].data)[e] != 0 ? 0 : -INFINITY;
    return at(c, 3, e);
}

static double bias_of(const nn_case *c, const sizes *s, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t length = has(c, 6) ? ((const int64_t *)c->in[6].data)[b] : s->total;
    const int64_t ahead = has(c, 6) ? length - s->queries : s->past;
    if (j >= length || (int_attr(c, "is_causal", 0) != 0 && j > i + ahead)) return -INFINITY;
    return has(c, 3) ? mask_at(c, b, h, i, j) : 0;
}

/// y [batch, heads, queries, v_d] in the layout of the output, and what output 3 shall hold.
static void attend(const nn_case *c, const sizes *s, double *y, double *kept) {
    const double scale = (double)tide_node_attr_float(c->node, "scale", 1 / sqrtf((float)s->d));
    const double cap = (double)tide_node_attr_float(c->node, "softcap", 0);
    const int64_t mode = int_attr(c, "qk_matmul_output_mode", 0);
    double score[64];
    for (int64_t r = 0; r < s->batch * s->heads * s->queries; r++) {
        const int64_t b = r / (s->heads * s->queries), h = r / s->queries % s->heads, i = r % s->queries;
        const int64_t shared = h * s->kv_heads / s->heads, q = s->flat ? (b * s->queries + i) * s->heads + h : r;
        for (int64_t j = 0; j < s->total; j++) {
            double *out = kept + r * s->total + j;
            score[j] = 0;
            for (int64_t e = 0; e < s->d; e++)
                score[j] += at(c, 0, q * s->d + e) * cached(c, s, 1, 4, b, shared, j, s->d, e);
            score[j] *= scale;
            if (mode == 0) *out = score[j];
            if (cap > 0) score[j] = cap * tanh(score[j] / cap);
            if (mode == 1) *out = score[j];
            score[j] += bias_of(c, s, b, h, i, j);
            if (mode == 2) *out = score[j];
        }
        weigh(score, s->total);
        for (int64_t j = 0; mode == 3 && j < s->total; j++) kept[r * s->total + j] = score[j];
        for (int64_t e = 0; e < s->v_d; e++) {
            y[q * s->v_d + e] = 0;
            for (int64_t j = 0; j < s->total; j++)
                y[q * s->v_d + e] += score[j] * cached(c, s, 2, 5, b, shared, j, s->v_d, e);
        }
    }
}

static void assert_present(const nn_case *c, const sizes *s, size_t out, size_t now, size_t past, int64_t d) {
    const float *got = c->out[out].data;
    for (int64_t e = 0; e < s->batch * s->kv_heads * s->total * d; e++) {
        const int64_t row = e / d, head = row / s->total;
        assert_true((double)got[e] ==
                    cached(c, s, now, past, head / s->kv_heads, head % s->kv_heads, row % s->total, d, e % d));
    }
}

static void assert_scores(const nn_case *c, const double *want, int64_t n) {
    const float *got = c->out[3].data;
    for (int64_t i = 0; i < n; i++)
        if (!((double)got[i] == want[i] || fabs((double)got[i] - want[i]) <= 1e-5 + 2e-5 * fabs(want[i])))
            fail_msg("score %lld is %g instead of %g", (long long)i, (double)got[i], want[i]);
}

typedef struct attention_row {
    const char *in, *attrs;
    size_t n_out;
    const int64_t *lengths;
} attention_row;

static void run_attention(const attention_row *row) {
    nn_case c;
    nn_make(&c, "Attention", 24, row->in, row->attrs, row->n_out);
    if (row->lengths != NULL) give_ints(&c, 6, row->lengths);
    nn_run(&c);
    const sizes s = sizes_of(&c);
    double *y = room(MOST), *kept = room(MOST);
    attend(&c, &s, y, kept);
    nn_assert_close(&c, 0, y, 2e-5, 1e-5);
    if (row->n_out > 1) assert_present(&c, &s, 1, 1, 4, s.d);
    if (row->n_out > 2) assert_present(&c, &s, 2, 2, 5, s.v_d);
    if (row->n_out > 3) assert_scores(&c, kept, s.batch * s.heads * s.queries * s.total);
    tide_host_free(y);
    tide_host_free(kept);
    nn_done(&c);
}

static void test_attention(void **state) {
    (void)state;
    static const int64_t lengths[] = {4, 0};
    static const attention_row rows[] = {
        {"2x3x4x8 2x3x6x8 2x3x6x5", "", 1, NULL},
        {"2x4x24 2x6x24 2x6x15", "q_num_heads=3 kv_num_heads=3", 1, NULL},
        {"2x6x4x8 2x2x6x8 2x2x6x5 2x1x4x6", "is_causal=1 scale=0.3", 1, NULL},
        {"1x4x48 1x6x16 1x6x16 b:4x6", "q_num_heads=6 kv_num_heads=2 softcap=0.5", 1, NULL},
        {"1x4x48 1x4x8 1x4x8 b:6x4x9 1x1x5x8 1x1x5x8", "q_num_heads=6 kv_num_heads=1 is_causal=1", 3, NULL},
        {"2x2x1x8 2x2x1x8 2x2x1x3 - 2x2x6x8 2x2x6x3", "is_causal=1", 3, NULL},
        {"2x2x3x8 2x2x3x8 2x2x3x8 2x2x3x7 2x2x4x8 2x2x4x8", "qk_matmul_output_mode=0 softcap=2.0", 4, NULL},
        {"2x2x3x8 2x2x3x8 2x2x3x8 2x2x3x7 2x2x4x8 2x2x4x8", "is_causal=1 qk_matmul_output_mode=1 softcap=2.0", 4, NULL},
        {"2x2x3x8 2x2x3x8 2x2x3x8 b:3x7 2x2x4x8 2x2x4x8", "is_causal=1 qk_matmul_output_mode=2", 4, NULL},
        {"2x2x3x8 2x2x3x8 2x2x3x8 7 2x2x4x8 2x2x4x8", "qk_matmul_output_mode=3", 4, NULL},
        {"2x2x3x8 2x2x5x8 2x2x5x8 1x1x1x3", "", 1, NULL}, // a mask that is too short
        {"2x2x3x8 2x2x5x8 2x2x5x8 b:3x1", "", 1, NULL},
        {"2x2x3x8 2x2x6x8 2x2x6x8 - - - i64:2", "", 1, lengths},
        {"2x2x3x8 2x2x6x8 2x2x6x8 - - - i64:2", "is_causal=1", 1, lengths},
        {"2x2x3x8 2x2x6x8 2x2x6x8 2x1x3x6 - - i64:2", "is_causal=1", 1, lengths},
        {"1x1x40x33 1x1x40x33 1x1x40x17", "is_causal=1", 1, NULL},
        // nothing of one kind or another
        {"0x2x3x8 0x2x5x8 0x2x5x8", "", 3, NULL},
        {"2x2x0x8 2x2x5x8 2x2x5x8 - 2x2x3x8 2x2x3x8", "", 4, NULL},
        {"2x2x3x8 2x2x0x8 2x2x0x8", "", 4, NULL}, // no keys: 0
        {"2x2x3x8 2x2x2x8 2x2x2x8 - 2x2x0x8 2x2x0x8", "", 3, NULL},
        {"2x2x3x8 2x2x0x8 2x2x0x8 - 2x2x2x8 2x2x2x8", "is_causal=1", 3, NULL},
        {"2x2x3x8 2x2x5x8 2x2x5x0", "qk_matmul_output_mode=3", 4, NULL},
        {"2x2x3x0 2x2x5x0 2x2x5x4", "scale=1.0", 1, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) run_attention(&rows[i]);
}

// ---- Attention of com.microsoft ----

typedef struct fused {
    int64_t batch, seq, n_in, heads, hidden, v_hidden, columns, past, total;
} fused;

static fused fused_of(const nn_case *c) {
    size_t n;
    const int64_t *parts = tide_node_attr_ints(c->node, "qkv_hidden_sizes", &n);
    fused f = {dim(c, 0, 0), dim(c, 0, 1), dim(c, 0, 2), int_attr(c, "num_heads", 0), 0, 0, dim(c, 1, 1), 0, 0};
    f.hidden = parts != NULL ? parts[0] : f.columns / 3;
    f.v_hidden = parts != NULL ? parts[2] : f.columns / 3;
    f.past = has(c, 4) ? dim(c, 4, 3) : 0;
    f.total = f.past + f.seq;
    return f;
}

static double projected(const nn_case *c, const fused *f, int64_t b, int64_t t, int64_t column) {
    double sum = has(c, 2) ? at(c, 2, column) : 0;
    for (int64_t i = 0; i < f->n_in; i++)
        sum += at(c, 0, (b * f->seq + t) * f->n_in + i) * at(c, 1, i * f->columns + column);
    return sum;
}

/// Number `e` of head `h`, token `j` of all: of the keys (0) or the values (1).
static double remembered(const nn_case *c, const fused *f, int kv, int64_t b, int64_t h, int64_t j, int64_t e) {
    const int64_t d = (kv == 0 ? f->hidden : f->v_hidden) / f->heads;
    if (j < f->past) return at(c, 4, (((kv * f->batch + b) * f->heads + h) * f->past + j) * d + e);
    return projected(c, f, b, j - f->past, (kv == 0 ? f->hidden : 2 * f->hidden) + h * d + e);
}

static bool is_masked(const nn_case *c, const fused *f, int64_t b, int64_t i, int64_t j) {
    if (!has(c, 3)) return false;
    const int32_t *m = c->in[3].data;
    if (c->in[3].shape.rank == 3) return m[(b * f->seq + i) * f->total + j] == 0;
    if (c->in[3].shape.rank == 2) return m[b * f->total + j] == 0;
    return j >= m[b] || (dim(c, 3, 0) == 2 * f->batch && f->batch > 0 && j < m[f->batch + b]);
}

static double score_bias(const nn_case *c, const fused *f, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!has(c, 5)) return 0;
    const int64_t bb = dim(c, 5, 0) == 1 ? 0 : b, hh = dim(c, 5, 1) == 1 ? 0 : h;
    return at(c, 5, ((bb * dim(c, 5, 1) + hh) * f->seq + i) * f->total + j);
}

static void fused_attend(const nn_case *c, const fused *f, double *y) {
    const int64_t d = f->hidden / f->heads, v_d = f->v_hidden / f->heads;
    const double scale = (double)tide_node_attr_float(c->node, "scale", d > 0 ? 1 / sqrtf((float)d) : 1);
    const double filter = (double)tide_node_attr_float(c->node, "mask_filter_value", -10000);
    double score[64];
    for (int64_t r = 0; r < f->batch * f->heads * f->seq; r++) {
        const int64_t b = r / (f->heads * f->seq), h = r / f->seq % f->heads, i = r % f->seq;
        for (int64_t j = 0; j < f->total; j++) {
            score[j] = 0;
            for (int64_t e = 0; e < d; e++)
                score[j] += projected(c, f, b, i, h * d + e) * remembered(c, f, 0, b, h, j, e);
            score[j] = score[j] * scale + score_bias(c, f, b, h, i, j) + (is_masked(c, f, b, i, j) ? filter : 0);
            if (int_attr(c, "unidirectional", 0) != 0 && j > f->past + i) score[j] = -INFINITY;
        }
        weigh(score, f->total);
        for (int64_t e = 0; e < v_d; e++) {
            double *to = y + (b * f->seq + i) * f->v_hidden + h * v_d + e;
            for (int64_t j = 0; j < f->total; j++) *to += score[j] * remembered(c, f, 1, b, h, j, e);
        }
    }
}

typedef struct fused_row {
    const char *in, *attrs;
    size_t n_out;
    const int64_t *mask;
} fused_row;

static void run_fused(const fused_row *row) {
    nn_case c;
    nn_make(&c, "com.microsoft.Attention", 1, row->in, row->attrs, row->n_out);
    if (row->mask != NULL) give_ints(&c, 3, row->mask);
    nn_run(&c);
    const fused f = fused_of(&c);
    double *y = room(MOST), *present = room(MOST);
    fused_attend(&c, &f, y);
    nn_assert_close(&c, 0, y, 2e-5, 1e-5);
    const int64_t d = f.hidden / f.heads, n = 2 * f.batch * f.heads * f.total * d;
    for (int64_t e = 0; row->n_out > 1 && e < n; e++) {
        const int64_t token = e / d, head = token / f.total, item = head / f.heads;
        present[e] = remembered(&c, &f, (int)(item / f.batch), item % f.batch, head % f.heads, token % f.total, e % d);
    }
    if (row->n_out > 1) nn_assert_close(&c, 1, present, 2e-5, 1e-5);
    tide_host_free(y);
    tide_host_free(present);
    nn_done(&c);
}

static void test_fused_attention(void **state) {
    (void)state;
    static const int64_t ends[] = {3, 5}, ranges[] = {3, 5, 1, 2}, keys[] = {1, 0, 1, 1, 0, 1, 1, 1, 0, 1};
    static const int64_t pairs[] = {1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1};
    static const fused_row rows[] = {
        {"2x5x8 8x24 24", "num_heads=2", 1, NULL},
        {"2x5x8 8x24", "num_heads=2 unidirectional=1", 2, NULL},
        {"2x5x7 7x38 38", "num_heads=2 qkv_hidden_sizes=[16,16,6]", 1, NULL},
        {"2x5x8 8x24 24 i32:2", "num_heads=2", 1, ends},
        {"2x5x8 8x24 24 i32:4", "num_heads=2 scale=0.5", 1, ranges},
        {"2x5x8 8x24 24 i32:2x5", "num_heads=2 unidirectional=1 mask_filter_value=-3.5", 1, keys},
        {"1x2x9 9x72 72 i32:1x2x6 2x1x3x4x8", "num_heads=3 unidirectional=1", 2, pairs},
        {"2x3x8 8x24 24 - 2x2x2x4x4", "num_heads=2 unidirectional=1", 2, NULL},
        {"2x1x8 8x24 24 - 2x2x2x4x4 1x2x1x5", "num_heads=2 unidirectional=1", 2, NULL},
        {"2x3x8 8x24 24 - - 2x1x3x3", "num_heads=2", 1, NULL},
        {"1x9x33 33x120 120", "num_heads=4 unidirectional=1", 2, NULL}, // tiles of rows and columns, and their rests
        {"0x5x8 8x24 24", "num_heads=2", 2, NULL},
        {"2x0x8 8x24 24", "num_heads=2", 2, NULL},
        {"2x0x8 8x24 24 - 2x2x2x4x4", "num_heads=2", 2, NULL},
        {"2x3x8 8x24 24 - 2x2x2x0x4", "num_heads=2", 2, NULL},
        {"2x3x0 0x24 24", "num_heads=2", 2, NULL},
        {"2x3x8 8x0 0", "num_heads=2", 2, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) run_fused(&rows[i]);
}

// ---- normalisations ----

/// want [rows, n] = the sums in want, normalised.
static void normalise(double *want, int64_t rows, int64_t n, const float *gamma, const float *beta, double epsilon,
                      bool centred) {
    for (int64_t r = 0; r < rows; r++, want += n) {
        double mean = 0, square = 0;
        for (int64_t i = 0; centred && i < n; i++) mean += want[i] / (double)n;
        for (int64_t i = 0; i < n; i++) square += (want[i] - mean) * (want[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            want[i] =
                (want[i] - mean) / sqrt(square + epsilon) * (double)gamma[i] + (beta != NULL ? (double)beta[i] : 0);
    }
}

static void run_skip(const char *op, const char *in, const char *attrs, size_t n_out) {
    nn_case c;
    nn_make(&c, op, 1, in, attrs, n_out);
    nn_run(&c);
    const bool is_layer = strstr(op, "Simplified") == NULL;
    const tide_shape *s = &c.in[0].shape;
    const int64_t n = s->dims[s->rank - 1], all = tide_op_numel(s), n_skip = tide_op_numel(&c.in[1].shape);
    const size_t bias = is_layer ? 4 : 3;
    double *want = room(all);
    for (int64_t i = 0; i < all; i++)
        want[i] = at(&c, 0, i) + at(&c, 1, i % n_skip) + (has(&c, bias) ? at(&c, bias, i % n) : 0);
    if (n_out > 3) nn_assert_close(&c, 3, want, 1e-6, 1e-6);
    for (int64_t r = 0; is_layer && n_out > 1 && r < all / n; r++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++) mean += want[r * n + i] / (double)n;
        assert_true(fabs((double)nn_f32(&c.out[1])[r] - mean) < 1e-5);
    }
    normalise(want, n > 0 ? all / n : 0, n, nn_f32(&c.in[2]), is_layer && has(&c, 3) ? nn_f32(&c.in[3]) : NULL,
              (double)tide_node_attr_float(c.node, "epsilon", 1e-12f), is_layer);
    nn_assert_close(&c, 0, want, 2e-5, 1e-5);
    tide_host_free(want);
    nn_done(&c);
}

static void test_skip_norm(void **state) {
    (void)state;
    static const char layer[] = "com.microsoft.SkipLayerNormalization";
    static const char rms[] = "com.microsoft.SkipSimplifiedLayerNormalization";
    run_skip(layer, "2x3x9 2x3x9 9", "", 1);
    run_skip(layer, "2x3x9 1x3x9 9 9 9", "epsilon=0.25", 4);
    run_skip(layer, "2x3x9 3x9 9 - 9", "", 4);
    run_skip(layer, "6x9 6x9 9 9", "", 4);
    run_skip(layer, "0x3x9 3x9 9 9", "", 4);
    run_skip(layer, "2x0x9 2x0x9 9 9", "", 4);
    run_skip(rms, "2x3x9 2x3x9 9", "", 1);
    run_skip(rms, "4x9 4x9 9 9", "epsilon=0.25", 4);
    nn_case c;
    nn_make(&c, layer, 1, "2x3x0 2x3x0 0", "", 3); // the mean of nothing
    nn_run(&c);
    for (int i = 0; i < 6; i++) assert_true(isnan(nn_f32(&c.out[1])[i]));
    nn_done(&c);
}

static void test_embed_norm(void **state) {
    (void)state;
    static const int64_t ids[] = {0, 4, 2, 2, 1, 3}, segments[] = {1, 0, 1, 0, 0, 1}, mask[] = {1, 1, 0, 1, 1, 1};
    static const int64_t places[] = {6, 0, 5, 1, 4, 2};
    static const struct {
        const char *in;
        bool one_row;
    } rows[] = {
        {"i32:2x3 - 5x9 7x9 - 9 9", false},
        {"i32:2x3 i32:2x3 5x9 7x9 2x9 9 9 i32:2x3", false},
        {"i32:2x3 - 5x9 7x9 - 9 9 i32:2x3 i32:2x3", false},
        {"i32:2x3 - 5x9 7x9 - 9 9 - i32:1x3", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, "com.microsoft.EmbedLayerNormalization", 1, rows[i].in, "epsilon=0.125", 3);
        const int64_t *const lists[] = {ids, segments, mask, places};
        static const size_t inputs[] = {0, 1, 7, 8};
        for (int k = 0; k < 4; k++)
            if (has(&c, inputs[k])) give_ints(&c, inputs[k], lists[k]);
        nn_run(&c);
        double want[54];
        for (int t = 0; t < 6; t++) {
            const int64_t place = !has(&c, 8) ? t % 3 : places[rows[i].one_row ? t % 3 : t];
            for (int e = 0; e < 9; e++)
                want[t * 9 + e] = at(&c, 2, ids[t] * 9 + e) + at(&c, 3, place * 9 + e) +
                                  (has(&c, 1) ? at(&c, 4, segments[t] * 9 + e) : 0);
        }
        nn_assert_close(&c, 2, want, 1e-6, 1e-6);
        normalise(want, 6, 9, nn_f32(&c.in[5]), nn_f32(&c.in[6]), 0.125, true);
        nn_assert_close(&c, 0, want, 2e-5, 1e-5);
        const int32_t *lengths = c.out[1].data;
        assert_int_equal(lengths[0], has(&c, 7) ? 2 : 0);
        assert_int_equal(lengths[1], has(&c, 7) ? 3 : 0);
        nn_done(&c);
    }
}

static void run_rms(const char *in, const char *attrs, int32_t axis) {
    nn_case c;
    nn_make(&c, "RMSNormalization", 23, in, attrs, 1);
    nn_run(&c);
    const tide_shape *s = &c.in[0].shape, *g = &c.in[1].shape;
    const int64_t n = tide_op_count(s, axis, s->rank), all = tide_op_numel(s);
    double *want = room(all);
    float *gamma = tide_host_calloc((size_t)n + 1, sizeof *gamma);
    assert_non_null(gamma);
    for (int64_t i = 0; i < all; i++) want[i] = at(&c, 0, i);
    int64_t extent[3] = {1, 1, 1}; // of scale, as of three axes
    for (int32_t k = 0; k < g->rank; k++) extent[3 - g->rank + k] = g->dims[k];
    for (int64_t i = 0; i < n; i++) {
        const int64_t place[3] = {i / (s->dims[1] * s->dims[2]), i / s->dims[2] % s->dims[1], i % s->dims[2]};
        int64_t e = 0;
        for (int k = 0; k < 3; k++) e = e * extent[k] + (extent[k] > 1 ? place[k] : 0);
        gamma[i] = nn_f32(&c.in[1])[e];
    }
    normalise(want, n > 0 ? all / n : 0, n, gamma, NULL, (double)tide_node_attr_float(c.node, "epsilon", 1e-5f), false);
    nn_assert_close(&c, 0, want, 2e-5, 1e-5);
    tide_host_free(gamma);
    tide_host_free(want);
    nn_done(&c);
}

static void test_rms_norm(void **state) {
    (void)state;
    run_rms("2x3x9 9", "", 2);
    run_rms("2x3x9 3x9", "axis=1 epsilon=0.5", 1);
    run_rms("2x3x9 9", "axis=-2", 1);
    run_rms("2x3x9 3x1", "axis=1", 1);
    run_rms("2x3x9 1", "axis=1", 1);
    run_rms("2x3x9 2x1x9", "axis=0", 0);
    run_rms("0x3x9 9", "", 2);
    run_rms("2x3x0 1", "", 2);
}

// ---- RotaryEmbedding ----

static void run_rotary(const char *in, const char *attrs, const int64_t *places) {
    nn_case c;
    nn_make(&c, "RotaryEmbedding", 23, in, attrs, 1);
    if (places != NULL) give_ints(&c, 3, places);
    nn_run(&c);
    const bool flat = c.in[0].shape.rank == 3, interleaved = int_attr(&c, "interleaved", 0) != 0;
    const int64_t heads = flat ? int_attr(&c, "num_heads", 0) : dim(&c, 0, 1), seq = dim(&c, 0, flat ? 1 : 2);
    const int64_t d = flat ? dim(&c, 0, 2) / heads : dim(&c, 0, 3), n = int_attr(&c, "rotary_embedding_dim", d);
    const int64_t all = tide_op_numel(&c.in[0].shape);
    double *want = room(all);
    for (int64_t e = 0; e < all; e++) {
        const int64_t i = e % d, row = e / d;
        const int64_t t = flat ? row / heads : row / (heads * seq) * seq + row % seq;
        const int64_t pair = interleaved ? i / 2 : i % (n / 2);
        const bool is_first = interleaved ? i % 2 == 0 : i < n / 2;
        const int64_t other = interleaved ? e ^ 1 : is_first ? e + n / 2 : e - n / 2;
        const int64_t at_table = (places != NULL ? places[t] : t) * (n / 2) + pair;
        want[e] = at(&c, 0, e);
        if (i >= n) continue;
        want[e] = at(&c, 1, at_table) * at(&c, 0, e) + (is_first ? -1 : 1) * at(&c, 2, at_table) * at(&c, 0, other);
    }
    nn_assert_close(&c, 0, want, 2e-6, 1e-6);
    tide_host_free(want);
    nn_done(&c);
}

static void test_rotary_embedding(void **state) {
    (void)state;
    static const int64_t places[] = {4, 0, 3, 2, 2, 1};
    run_rotary("2x5x3x8 7x4 7x4 i64:2x3", "", places);
    run_rotary("2x3x40 7x4 7x4 i64:2x3", "num_heads=5 interleaved=1", places);
    run_rotary("2x3x40 2x3x2 2x3x2", "num_heads=5 rotary_embedding_dim=4", NULL);
    run_rotary("2x5x3x8 2x3x4 2x3x4", "interleaved=1", NULL);
    run_rotary("2x5x0x8 2x0x4 2x0x4", "", NULL);
}

// ---- TensorScatter ----

static void run_scatter(const char *in, const char *attrs, const int64_t *begins) {
    nn_case c;
    nn_make(&c, "TensorScatter", 24, in, attrs, 1);
    if (begins != NULL) give_ints(&c, 2, begins);
    nn_run(&c);
    const int64_t batch = dim(&c, 0, 0), heads = dim(&c, 0, 1), length = dim(&c, 0, 2), d = dim(&c, 0, 3),
                  n = dim(&c, 1, 2);
    for (int64_t e = 0; e < batch * heads * length * d; e++) {
        const int64_t row = e / d, head = row / length, begin = begins != NULL ? begins[head / heads] : 0;
        const int64_t i = (row % length - begin + length) % length; // of the update, if it is that long
        const double want = i < n ? at(&c, 1, (head * n + i) * d + e % d) : at(&c, 0, e);
        if ((double)nn_f32(&c.out[0])[e] != want)
            fail_msg("element %lld is %g", (long long)e, (double)nn_f32(&c.out[0])[e]);
    }
    nn_done(&c);
}

static void test_tensor_scatter(void **state) {
    (void)state;
    static const int64_t begins[] = {3, 1}, late[] = {4, 2};
    run_scatter("2x3x5x4 2x3x2x4 i64:2", "", begins);
    run_scatter("2x3x5x4 2x3x2x4 i64:2", "mode=circular", late);
    run_scatter("2x3x5x4 2x3x2x4", "axis=2", NULL);
    run_scatter("2x3x5x4 2x3x5x4", "", NULL);
    run_scatter("2x3x5x4 2x3x0x4 i64:2", "", begins);
    run_scatter("0x3x5x4 0x3x2x4 i64:0", "", begins);
}

// ---- Gelu and its kin, FusedMatMul ----

static double gelu_of(const char *op, double v, double alpha) {
    if (strstr(op, "Fast") != NULL)
        return 0.5 * v * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
    if (strstr(op, "Quick") != NULL || strstr(op, "Swish") != NULL) return v / (1 + exp(-alpha * v));
    if (strstr(op, "Mish") != NULL) return v * tanh(log1p(exp(v)));
    return 0.5 * v * (1 + erf(v / sqrt(2)));
}

static void run_gelu(const char *op, int opset, const char *in, const char *attrs, double alpha) {
    nn_case c;
    nn_make(&c, op, opset, in, attrs, 1);
    nn_run(&c);
    const int64_t all = tide_op_numel(&c.in[0].shape);
    double *want = room(all);
    for (int64_t i = 0; i < all; i++)
        want[i] = gelu_of(op, at(&c, 0, i) + (has(&c, 1) ? at(&c, 1, i % tide_op_numel(&c.in[1].shape)) : 0), alpha);
    nn_assert_close(&c, 0, want, 2e-5, 2e-6);
    tide_host_free(want);
    nn_done(&c);
}

static void test_gelus(void **state) {
    (void)state;
    run_gelu("com.microsoft.Gelu", 1, "3x7", "", 0);
    run_gelu("com.microsoft.BiasGelu", 1, "2x3x7 7", "", 0);
    run_gelu("com.microsoft.FastGelu", 1, "2x3x7", "", 0);
    run_gelu("com.microsoft.FastGelu", 1, "2x3x7 7", "", 0);
    run_gelu("com.microsoft.FastGelu", 1, "2x0x7 7", "", 0);
    run_gelu("com.microsoft.FastGelu", 1, "2x3x0 0", "", 0);
    run_gelu("com.microsoft.QuickGelu", 1, "2x3x7", "", 1.702);
    run_gelu("com.microsoft.QuickGelu", 1, "2x3x7", "alpha=0.5", 0.5);
    run_gelu("Swish", 24, "2x3x7", "", 1);
    run_gelu("Swish", 24, "2x3x7", "alpha=0.5", 0.5);
    run_gelu("Mish", 18, "2x3x7", "", 0);
}

/// Element of an operand of rank 3 that is read as [batch, row, column].
static double turned(const nn_case *c, size_t i, const char *trans, const char *trans_batch, int64_t b, int64_t r,
                     int64_t k) {
    const int64_t row = int_attr(c, trans, 0) != 0 ? k : r, column = int_attr(c, trans, 0) != 0 ? r : k;
    const bool batch_second = int_attr(c, trans_batch, 0) != 0; // [d0, d1, k] is read as [d1, d0, k]
    return at(c, i, ((batch_second ? row : b) * dim(c, i, 1) + (batch_second ? b : row)) * dim(c, i, 2) + column);
}

static void run_matmul(const char *in, const char *attrs, const char *shape) {
    nn_case c;
    nn_make(&c, "com.microsoft.FusedMatMul", 1, in, attrs, 1);
    nn_run(&c);
    nn_assert_shape(&c, 0, shape);
    const int64_t *y = c.out[0].shape.dims, all = tide_op_numel(&c.out[0].shape);
    const int64_t inner = int_attr(&c, "transA", 0) == 0        ? dim(&c, 0, 2)
                          : int_attr(&c, "transBatchA", 0) == 0 ? dim(&c, 0, 1)
                                                                : dim(&c, 0, 0);
    double *want = room(all);
    for (int64_t e = 0; e < all; e++) {
        const int64_t b = e / (y[1] * y[2]), r = e / y[2] % y[1], column = e % y[2];
        for (int64_t k = 0; k < inner; k++)
            want[e] +=
                turned(&c, 0, "transA", "transBatchA", b, r, k) * turned(&c, 1, "transB", "transBatchB", b, k, column);
        want[e] *= (double)tide_node_attr_float(c.node, "alpha", 1);
    }
    nn_assert_close(&c, 0, want, 2e-5, 1e-5);
    tide_host_free(want);
    nn_done(&c);
}

static void test_fused_matmul(void **state) {
    (void)state;
    run_matmul("2x3x4 2x4x5", "alpha=0.5", "2x3x5");
    run_matmul("2x4x3 2x4x5", "transA=1", "2x3x5");
    run_matmul("2x3x4 2x5x4", "transB=1 alpha=-2.0", "2x3x5");
    run_matmul("3x2x4 4x2x5", "transBatchA=1 transBatchB=1", "2x3x5");
    run_matmul("4x2x3 5x2x4", "transBatchA=1 transBatchB=1 transA=1 transB=1", "2x3x5");
    run_matmul("2x3x0 2x0x5", "", "2x3x5");
    run_matmul("0x3x4 0x4x5", "transA=0", "0x3x5");
    nn_case c;
    nn_make(&c, "com.microsoft.FusedMatMul", 1, "4 2x4x5", "transA=1", 1);
    nn_run(&c);
    nn_assert_shape(&c, 0, "2x5");
    nn_done(&c);
}

// ---- what is refused ----

static void test_what_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int opset;
        const char *in, *attrs;
        tide_status want;
        const char *says;
    } rows[] = {
        {"Attention", 23, "2x4x24 2x6x24 2x6x24", "", TIDE_ERR_BAD_INPUT, "q_num_heads is 0"},
        {"Attention", 23, "2x4x24 2x6x24 2x6x24", "q_num_heads=5 kv_num_heads=3", TIDE_ERR_BAD_INPUT, "5 heads"},
        {"Attention", 23, "2x5x4x8 2x2x4x8 2x2x4x8", "", TIDE_ERR_BAD_INPUT, "5 heads of Q cannot share 2"},
        {"Attention", 23, "2x2x4x8 2x2x4x7 2x2x4x8", "", TIDE_ERR_BAD_INPUT, "8 numbers, one of K 7"},
        {"Attention", 23, "2x2x4x8 2x2x4x8 2x2x5x8", "", TIDE_ERR_BAD_INPUT, "V is [2x2x5x8]"},
        {"Attention", 23, "2x2x4x8 2x2x4x8 2x2x4x8 4x5", "", TIDE_ERR_BAD_INPUT, "attn_mask is [4x5]"},
        {"Attention", 23, "2x2x4x8 2x2x4x8 2x2x4x8 3x4", "", TIDE_ERR_BAD_INPUT, "does not broadcast to [2x2x4x4]"},
        {"Attention", 23, "2x2x4x8 2x2x4x8 2x2x4x8 - 2x2x4x8", "", TIDE_ERR_BAD_INPUT, "go together"},
        {"Attention", 23, "2x2x4x8 2x2x4x8 2x2x4x8", "softmax_precision=10", TIDE_ERR_NOT_IMPLEMENTED, "is 10"},
        {"Attention", 25, "2x2x4x8 2x2x4x8 2x2x4x8", "left_window_size=2", TIDE_ERR_NOT_IMPLEMENTED,
         "a window of keys"},
        {"Attention", 23, "2x2x4x8 2x2x4x8 2x2x4x8", "qk_matmul_output_mode=4", TIDE_ERR_BAD_INPUT, "must be 0 to 3"},
        {"Attention", 23, "u8:2x2x4x8 2x2x4x8 2x2x4x8", "", TIDE_ERR_NOT_IMPLEMENTED, "Q is uint8"},
        {"Attention", 24, "2x2x4x8 2x2x4x8 2x2x4x8 - 2x2x1x8 2x2x1x8 i64:2", "", TIDE_ERR_BAD_INPUT,
         "nonpad_kv_seqlen"},
        {"com.microsoft.Attention", 1, "2x2x8 8x24 24", "", TIDE_ERR_BAD_INPUT, "num_heads is 0"},
        {"com.microsoft.Attention", 1, "2x2x8 8x24 24", "num_heads=3", TIDE_ERR_BAD_INPUT, "does not divide 8"},
        {"com.microsoft.Attention", 1, "2x2x8 8x25 25", "num_heads=2", TIDE_ERR_BAD_INPUT, "25 columns"},
        {"com.microsoft.Attention", 1, "2x2x8 9x24 24", "num_heads=2", TIDE_ERR_BAD_INPUT, "weights is [9x24]"},
        {"com.microsoft.Attention", 1, "2x2x8 8x24 24", "num_heads=2 do_rotary=1", TIDE_ERR_NOT_IMPLEMENTED,
         "do_rotary"},
        {"com.microsoft.Attention", 1, "2x2x8 8x24 24 i32:8", "num_heads=2", TIDE_ERR_BAD_INPUT, "mask_index is [8]"},
        {"com.microsoft.Attention", 1, "2x2x8 8x24 24 i32:2x1x9x9", "num_heads=2", TIDE_ERR_NOT_IMPLEMENTED, "rank 4"},
        {"com.microsoft.Attention", 1, "2x2x8 8x20 20 - 2x2x2x3x4", "num_heads=2 qkv_hidden_sizes=[8,8,4]",
         TIDE_ERR_BAD_INPUT, "of 8 and 4"},
        {"com.microsoft.Attention", 1, "2x2x8 8x24 24", "num_heads=2 qkv_hidden_sizes=[8,4,12]", TIDE_ERR_BAD_INPUT,
         "8, 4"},
        {"com.microsoft.SkipLayerNormalization", 1, "2x3x9 2x1x9 9", "", TIDE_ERR_BAD_INPUT, "skip is [2x1x9]"},
        {"com.microsoft.SkipLayerNormalization", 1, "2x3x9 2x3x9 8", "", TIDE_ERR_BAD_INPUT, "gamma is [8]"},
        {"com.microsoft.EmbedLayerNormalization", 1, "i32:2x3 i32:2x3 5x9 7x9 - 9 9", "", TIDE_ERR_BAD_INPUT,
         "go together"},
        {"com.microsoft.EmbedLayerNormalization", 1, "i32:2x3 - 5x9", "", TIDE_ERR_BAD_INPUT, "input 3 is left out"},
        {"com.microsoft.FastGelu", 1, "2x3 2", "", TIDE_ERR_BAD_INPUT, "bias is [2], must be [3]"},
        {"com.microsoft.FusedMatMul", 1, "2x3 2x4", "", TIDE_ERR_BAD_INPUT, "inner extents"},
        {"RMSNormalization", 23, "2x3x9 2x3x9", "", TIDE_ERR_BAD_INPUT, "scale is [2x3x9], must be [9]"},
        {"RotaryEmbedding", 23, "2x3x40 7x4 7x4 i64:2x3", "num_heads=7", TIDE_ERR_BAD_INPUT, "does not divide 40"},
        {"RotaryEmbedding", 23, "2x5x3x8 7x3 7x3 i64:2x3", "", TIDE_ERR_BAD_INPUT, "cos_cache is [7x3], must be [7x4]"},
        {"RotaryEmbedding", 23, "2x5x3x7 2x3x3 2x3x3", "", TIDE_ERR_BAD_INPUT, "cannot turn in pairs"},
        {"TensorScatter", 24, "2x3x5x4 2x3x6x4", "", TIDE_ERR_BAD_INPUT, "update is [2x3x6x4]"},
        {"TensorScatter", 24, "2x3x5x4 2x3x2x4", "axis=0", TIDE_ERR_BAD_INPUT, "axis 0"},
        {"TensorScatter", 24, "2x3x5x4 2x3x2x4", "mode=round", TIDE_ERR_BAD_INPUT, "mode is 'round'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, rows[i].op, rows[i].opset, rows[i].in, rows[i].attrs, 1);
        const tide_status got = nn_infer(&c);
        if (got != rows[i].want) fail_msg("row %zu: %s: %s", i, tide_status_name(got), c.err.msg);
        assert_text_has(c.err.msg, rows[i].says);
        assert_text_has(c.err.msg, "'it'");
        nn_done(&c);
    }
}

/// What only a run can see: an index that no table has.
static void test_indices_out_of_range(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int opset;
        const char *in;
        size_t indices;
        int64_t value;
        const char *says;
    } rows[] = {
        {"com.microsoft.EmbedLayerNormalization", 1, "i32:1x2 - 5x9 7x9 - 9 9", 0, 5,
         "word 5 is outside of a table of 5"},
        {"com.microsoft.EmbedLayerNormalization", 1, "i32:1x2 - 5x9 7x9 - 9 9", 0, -1, "word -1 is outside"},
        {"RotaryEmbedding", 23, "1x5x2x8 7x4 7x4 i64:1x2", 3, 7, "position 7 is outside of a table of 7"},
        {"TensorScatter", 24, "1x2x6x8 1x2x3x8 i64:1", 2, 4, "write_indices[0] is 4, must be 0 to 3"},
        {"TensorScatter", 24, "1x2x6x8 1x2x3x8 i64:1", 2, -1, "write_indices[0] is -1"},
        {"Attention", 24, "1x2x3x8 1x2x6x8 1x2x6x8 - - - i64:1", 6, 7, "nonpad_kv_seqlen[0] is 7 of 6 keys"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nn_case c;
        nn_make(&c, rows[i].op, rows[i].opset, rows[i].in, "", 1);
        give_ints(&c, rows[i].indices, (const int64_t[]){rows[i].value, 0});
        assert_tide_ok(nn_infer(&c), &c.err);
        tide_kernel k = {.def = c.node->def, .node = c.node};
        if (k.def->prepare != NULL)
            assert_tide_ok(k.def->prepare(&(tide_prepare){c.node, c.in, c.n_in, c.out, 1}, &k, &c.err), &c.err);
        void *work = tide_host_calloc(k.workspace_bytes + 1, 1);
        c.out[0].data = tide_host_calloc(c.out[0].size_bytes + 1, 1);
        const tide_kernel_args args = {c.in, c.n_in, c.out, 1, NULL, work};
        assert_tide_status(k.def->run(&k, &args, &c.err), TIDE_ERR_RUNTIME);
        assert_text_has(c.err.msg, rows[i].says);
        tide_host_free(work);
        if (k.def->destroy != NULL) k.def->destroy(&k);
        nn_done(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_attention),
        tide_unit_test(test_fused_attention),
        tide_unit_test(test_skip_norm),
        tide_unit_test(test_embed_norm),
        tide_unit_test(test_rms_norm),
        tide_unit_test(test_rotary_embedding),
        tide_unit_test(test_tensor_scatter),
        tide_unit_test(test_gelus),
        tide_unit_test(test_fused_matmul),
        tide_unit_test(test_what_is_refused),
        tide_unit_test(test_indices_out_of_range),
    };
    return cmocka_run_group_tests_name("operators of transformers", tests, NULL, NULL);
}
