// SPDX-License-Identifier: MIT
//
// com.microsoft.Attention, float32: the projection to queries, keys and values, then attention of each head.
//
//     input [batch, seq, I] x weights [I, H + H + V_H] + bias = q | k | v      weights may differ in V_H from H
//     past [2, batch, heads, past, d]: keys and values in front of them; present: both together
//     output [batch, seq, V_H] = softmax(scale * q k' + mask + attention_bias) v
//
// mask_index has one of four forms: [batch] lengths; [2 * batch] ends, then begins; [batch, total] and
// [batch, seq, total] with 0 for what is masked. What is masked gets mask_filter_value, a finite number: where all is,
// all counts alike. Scratch: the projection of one item of the batch, and one row of scores.
#include <math.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/ops/attend.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { X, WEIGHTS, BIAS, MASK, PAST, SCORE_BIAS, PAST_LENGTH, N_INPUTS };
enum { Y, PRESENT };
enum { TILE_ROWS = 4, TILE_COLUMNS = 32 };

typedef struct attention {
    int64_t batch, seq, n_in, heads, hidden, v_hidden, past, total;
    int64_t d, v_d, columns; ///< columns: of the projection
    tide_attend_mask mask;
    bool causal;
    float scale, filter;
    int64_t bias_step[2]; ///< elements of attention_bias per item and head; 0 repeats
} attention;

static bool has(const tide_operand *in, size_t n_in, size_t i) { return i < n_in && tide_operand_present(&in[i]); }

// ---- what the node says ----

static tide_status read_hidden(const tide_node *node, const tide_operand *in, attention *a, tide_error *err) {
    size_t n = 0;
    const int64_t *sizes = tide_node_attr_ints(node, "qkv_hidden_sizes", &n);
    a->columns = in[WEIGHTS].shape.dims[1];
    a->heads = tide_node_attr_int(node, "num_heads", 0);
    a->hidden = a->v_hidden = a->columns / 3;
    if (n != 0 && n != 3)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "qkv_hidden_sizes has %zu numbers, must have 3", n);
    if (n == 3) {
        a->hidden = sizes[0];
        a->v_hidden = sizes[2];
    }
    if (n == 3 && (sizes[0] != sizes[1] || sizes[0] < 0 || sizes[0] > a->columns))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "qkv_hidden_sizes begins with %lld, %lld: both must be the same", (long long)sizes[0],
                            (long long)sizes[1]);
    if (a->v_hidden != a->columns - 2 * a->hidden || a->v_hidden < 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "weights have %lld columns; queries, keys and values do not "
                            "share them as %lld, %lld, %lld",
                            (long long)a->columns, (long long)a->hidden, (long long)a->hidden, (long long)a->v_hidden);
    if (a->heads < 1 || a->hidden % a->heads != 0 || a->v_hidden % a->heads != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "num_heads is %lld, which does not divide %lld and %lld",
                            (long long)a->heads, (long long)a->hidden, (long long)a->v_hidden);
    a->d = a->hidden / a->heads;
    a->v_d = a->v_hidden / a->heads;
    return TIDE_OK;
}

/// [batch or 1, heads or 1, seq, total].
static tide_status read_score_bias(const tide_node *node, const tide_operand *bias, attention *a, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(node, bias, "attention_bias", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(node, bias, "attention_bias", 4, 4, err));
    const int64_t *dims = bias->shape.dims;
    const tide_shape want = {4, {dims[0] == 1 ? 1 : a->batch, dims[1] == 1 ? 1 : a->heads, a->seq, a->total}};
    TIDE_TRY(tide_op_require_shape(node, bias, "attention_bias", &want, err));
    a->bias_step[0] = dims[0] == 1 ? 0 : dims[1] * dims[2] * dims[3];
    a->bias_step[1] = dims[1] == 1 ? 0 : dims[2] * dims[3];
    return TIDE_OK;
}

static tide_status refuse_attributes(const tide_node *node, tide_error *err) {
    static const char *const switches[] = {"do_rotary", "past_present_share_buffer"};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (tide_node_attr_int(node, switches[i], 0) != 0)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "%s is not implemented", switches[i]);
    return TIDE_OK;
}

static tide_status read_node(const tide_node *node, const tide_operand *in, size_t n_in, attention *a,
                             tide_error *err) {
    *a = (attention){0};
    TIDE_TRY(tide_op_require_rank(node, &in[X], "input", 3, 3, err));
    TIDE_TRY(tide_op_require_rank(node, &in[WEIGHTS], "weights", 2, 2, err));
    TIDE_TRY(refuse_attributes(node, err));
    a->batch = in[X].shape.dims[0];
    a->seq = in[X].shape.dims[1];
    a->n_in = in[X].shape.dims[2];
    TIDE_TRY(read_hidden(node, in, a, err));
    a->causal = tide_node_attr_int(node, "unidirectional", 0) != 0;
    a->filter = tide_node_attr_float(node, "mask_filter_value", -10000.0f);
    a->scale = tide_node_attr_float(node, "scale", 0);
    if (a->scale == 0) a->scale = a->d > 0 ? (float)(1 / sqrt((double)a->d)) : 1;
    if (has(in, n_in, PAST)) {
        TIDE_TRY(tide_op_require_rank(node, &in[PAST], "past", 5, 5, err));
        a->past = in[PAST].shape.dims[3];
    }
    const int64_t most = INT64_MAX / (int64_t)sizeof(float) / 4;
    if (a->past > most || a->seq > most || a->batch > most || (a->columns > 0 && a->seq > most / a->columns))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "%lld and %lld keys of %lld items are too many",
                            (long long)a->past, (long long)a->seq, (long long)a->batch);
    a->total = a->past + a->seq;
    a->mask = (tide_attend_mask){.batch = a->batch, .seq = a->seq, .total = a->total};
    if (has(in, n_in, MASK)) TIDE_TRY(tide_attend_mask_read(node, &in[MASK], "mask_index", &a->mask, err));
    if (has(in, n_in, SCORE_BIAS)) TIDE_TRY(read_score_bias(node, &in[SCORE_BIAS], a, err));
    return TIDE_OK;
}

// ---- shapes ----

static tide_status check_inputs(const tide_infer *x, const attention *a, tide_error *err) {
    const tide_shape weights = {2, {a->n_in, a->columns}}, bias = {1, {a->columns}};
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[WEIGHTS], "weights", &weights, err));
    if (tide_op_has_in(x, BIAS)) {
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[BIAS], "bias", TIDE_F32, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[BIAS], "bias", &bias, err));
    }
    if (tide_op_has_in(x, PAST_LENGTH))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED,
                            "past_sequence_length belongs to past_present_share_buffer, which is not implemented");
    const bool has_past = tide_op_has_in(x, PAST), has_present = tide_op_has_out(x, PRESENT);
    if ((has_past || has_present) && a->hidden != a->v_hidden)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "past and present hold keys and values of one size, these "
                            "are of %lld and %lld",
                            (long long)a->hidden, (long long)a->v_hidden);
    if (!has_past) return TIDE_OK;
    const tide_shape past = {5, {2, a->batch, a->heads, a->past, a->d}};
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[PAST], "past", TIDE_F32, err));
    return tide_op_require_shape(x->node, &x->in[PAST], "past", &past, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    attention a;
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[X], "input", TIDE_F32, err));
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[WEIGHTS], "weights", TIDE_F32, err));
    TIDE_TRY(read_node(x->node, x->in, x->n_in, &a, err));
    TIDE_TRY(check_inputs(x, &a, err));
    const int64_t y[] = {a.batch, a.seq, a.v_hidden}, present[] = {2, a.batch, a.heads, a.total, a.d};
    TIDE_TRY(tide_op_set_out(x, Y, TIDE_F32, 3, y, err));
    return tide_op_has_out(x, PRESENT) ? tide_op_set_out(x, PRESENT, TIDE_F32, 5, present, err) : TIDE_OK;
}

static double work(const tide_infer *x) {
    attention a;
    if (read_node(x->node, x->in, x->n_in, &a, NULL) != TIDE_OK) return 0;
    return (double)a.batch * (double)a.seq *
           ((double)a.n_in * (double)a.columns + (double)a.total * (double)(a.hidden + a.v_hidden));
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    attention *a;
    TIDE_TRY(TIDE_OP_NEW(&a, x->node, err));
    const tide_status st = read_node(x->node, x->in, x->n_in, a, err);
    if (st != TIDE_OK) {
        tide_host_free(a);
        return st;
    }
    k->state = a;
    if (a->batch > 0) k->workspace_bytes = (size_t)(a->seq * a->columns + a->total) * sizeof(float);
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    tide_host_free(k->state);
    k->state = NULL;
}

// ---- the projection ----

/// to [n_rows, columns], columns [from, from + n): what the weights make of n_rows <= TILE_ROWS rows of x.
static inline void project_tile(const attention *a, const float *x, int64_t n_rows, const float *weights,
                                const float *bias, int64_t from, int64_t n, float *to) {
    float sum[TILE_ROWS][TILE_COLUMNS];
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < n; c++) sum[r][c] = bias != NULL ? bias[from + c] : 0;
    for (int64_t i = 0; i < a->n_in; i++) {
        const float *restrict w = weights + i * a->columns + from;
        for (int64_t r = 0; r < n_rows; r++) {
            const float v = x[r * a->n_in + i];
            for (int64_t c = 0; c < n; c++) sum[r][c] += v * w[c];
        }
    }
    for (int64_t r = 0; r < n_rows; r++) memcpy(to + r * a->columns + from, sum[r], (size_t)n * sizeof(float));
}

/// to [seq, columns] of one item.
static void project(const attention *a, const float *x, const float *weights, const float *bias, float *to) {
    for (int64_t r = 0; r < a->seq; r += TILE_ROWS) {
        const int64_t n_rows = a->seq - r < TILE_ROWS ? a->seq - r : TILE_ROWS;
        for (int64_t c = 0; c < a->columns; c += TILE_COLUMNS) {
            const int64_t n = a->columns - c < TILE_COLUMNS ? a->columns - c : TILE_COLUMNS;
            if (n_rows == TILE_ROWS && n == TILE_COLUMNS) // numbers that the compiler knows: the sums stay in registers
                project_tile(a, x + r * a->n_in, TILE_ROWS, weights, bias, c, TILE_COLUMNS, to + r * a->columns);
            else
                project_tile(a, x + r * a->n_in, n_rows, weights, bias, c, n, to + r * a->columns);
        }
    }
}

// ---- one head ----

typedef struct head {
    const attention *a;
    const float *q; ///< of the first query; a row of the projection apart
    tide_attend_rows keys, values;
    tide_attend_mask mask;
    const float *score_bias; ///< of this head; may be NULL
    int64_t b;
    float *score, *y;
} head;

static void run_head(const head *t) {
    const attention *a = t->a;
    for (int64_t i = 0; i < a->seq; i++) {
        const int64_t seen = a->causal ? a->past + i + 1 : a->total;
        tide_attend_scores(t->q + i * a->columns, &t->keys, seen, a->d, a->scale, t->score);
        for (int64_t j = 0; t->mask.form != TIDE_ATTEND_ALL && j < seen; j++)
            if (tide_attend_is_masked(&t->mask, t->b, i, j)) t->score[j] += a->filter;
        for (int64_t j = 0; t->score_bias != NULL && j < seen; j++) t->score[j] += t->score_bias[i * a->total + j];
        tide_attend_softmax(t->score, seen);
        tide_attend_values(t->score, &t->values, seen, a->v_d, t->y + i * a->v_hidden);
    }
}

static const float *data_of(const tide_kernel_args *args, size_t i) {
    return has(args->in, args->n_in, i) ? args->in[i].data : NULL;
}

/// Head `h` of item `b`, whose projection is `qkv`; `kv` 0: its keys, 1: its values.
static tide_attend_rows rows_of(const attention *a, const tide_kernel_args *args, const float *qkv, int64_t b,
                                int64_t h, int kv) {
    const float *past = data_of(args, PAST);
    tide_attend_rows r = {.past_step = a->d, .now_step = a->columns, .n_past = a->past};
    if (past != NULL) r.past = past + ((kv * a->batch + b) * a->heads + h) * a->past * a->d;
    r.now = qkv + (kv == 0 ? a->hidden + h * a->d : 2 * a->hidden + h * a->v_d);
    return r;
}

static void write_present(const attention *a, const tide_kernel_args *args, const head *t, int64_t h) {
    if (args->n_out <= PRESENT || !tide_operand_present(&args->out[PRESENT]) || args->out[PRESENT].size_bytes == 0)
        return;
    const int64_t len = a->total * a->d, at = (t->b * a->heads + h) * len;
    float *to = args->out[PRESENT].data;
    tide_attend_join(&t->keys, a->seq, a->d, to + at);
    tide_attend_join(&t->values, a->seq, a->d, to + a->batch * a->heads * len + at);
}

static bool has_results(const tide_kernel_args *args) {
    return args->out[Y].size_bytes > 0 || (args->n_out > PRESENT && args->out[PRESENT].size_bytes > 0);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const attention *a = k->state;
    if (!has_results(args)) return TIDE_OK;
    const float *x = args->in[X].data, *score_bias = data_of(args, SCORE_BIAS);
    float *qkv = args->workspace;
    for (int64_t b = 0; b < a->batch; b++) {
        if (a->seq * a->columns > 0)
            project(a, x + b * a->seq * a->n_in, args->in[WEIGHTS].data, data_of(args, BIAS), qkv);
        for (int64_t h = 0; h < a->heads; h++) {
            head t = {.a = a, .q = qkv + h * a->d, .b = b, .score = qkv + a->seq * a->columns};
            t.keys = rows_of(a, args, qkv, b, h, 0);
            t.values = rows_of(a, args, qkv, b, h, 1);
            t.mask = a->mask;
            if (t.mask.form != TIDE_ATTEND_ALL) t.mask.data = args->in[MASK].data;
            if (score_bias != NULL) t.score_bias = score_bias + b * a->bias_step[0] + h * a->bias_step[1];
            write_present(a, args, &t, h);
            if (args->out[Y].size_bytes == 0) continue;
            t.y = (float *)args->out[Y].data + b * a->seq * a->v_hidden + h * a->v_d;
            run_head(&t);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_attention_fused = {
    .domain = "com.microsoft",
    .name = "Attention",
    .since = 1,
    .attrs =
        TIDE_ATTRS(TIDE_ATTR(INT, "do_rotary"), TIDE_ATTR(FLOAT, "mask_filter_value"), TIDE_ATTR(INT, "num_heads"),
                   TIDE_ATTR(INT, "past_present_share_buffer"), TIDE_ATTR(INTS, "qkv_hidden_sizes"),
                   TIDE_ATTR(INT, "rotary_embedding_dim"), TIDE_ATTR(FLOAT, "scale"), TIDE_ATTR(INT, "unidirectional")),
    .min_inputs = 2,
    .max_inputs = N_INPUTS,
    .min_outputs = 1,
    .max_outputs = 2,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .run = run,
};
