// SPDX-License-Identifier: MIT
//
// com.microsoft.MultiHeadAttention, float32: attention of each head over queries, keys and values that are projected
// already.
//
//     query [batch, seq, H], key [batch, kv, H], value [batch, kv, V_H], each with its part of bias [H + H + V_H]
//     past_key, past_value [batch, heads, past, d]: in front of them; present_key, present_value: both together
//     output [batch, seq, V_H] = softmax(scale * q k' + mask + attention_bias) v
//
// What is masked (tide_attend_mask) gets mask_filter_value, a finite number. Scratch: a query, one row of scores, and
// with a bias keys and values of one item.
#include <math.h>

#include "core/ops/attend.h"
#include "core/ops/op_list.h"

enum { QUERY, KEY, VALUE, BIAS, MASK, SCORE_BIAS, PAST_KEY, PAST_VALUE, N_INPUTS };
enum { Y, PRESENT_KEY, PRESENT_VALUE };

typedef struct attention {
    int64_t batch, seq, kv, heads, hidden, v_hidden, past, total, d, v_d;
    tide_attend_mask mask;
    bool causal, has_bias;
    float scale, filter;
    int64_t bias_step[2]; ///< elements of attention_bias per item and head; 0 repeats
} attention;

static bool has(const tide_operand *in, size_t n_in, size_t i) { return i < n_in && tide_operand_present(&in[i]); }

// ---- what the node says ----

static tide_status read_extents(const tide_node *node, const tide_operand *in, size_t n_in, attention *a,
                                tide_error *err) {
    static const char *const names[] = {"query", "key", "value"};
    if (!has(in, n_in, KEY) || !has(in, n_in, VALUE))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "keys or values packed with others are not served");
    for (size_t i = QUERY; i <= VALUE; i++) {
        if (in[i].shape.rank == 4 || in[i].shape.rank == 5)
            return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "%s has rank %d; only 3 is served", names[i],
                                (int)in[i].shape.rank);
        TIDE_TRY(tide_op_require_rank(node, &in[i], names[i], 3, 3, err));
    }
    a->heads = tide_node_attr_int(node, "num_heads", 0);
    a->batch = in[QUERY].shape.dims[0];
    a->seq = in[QUERY].shape.dims[1];
    a->hidden = in[QUERY].shape.dims[2];
    a->kv = in[KEY].shape.dims[1];
    a->v_hidden = in[VALUE].shape.dims[2];
    if (a->heads < 1 || a->hidden % a->heads != 0 || a->v_hidden % a->heads != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "num_heads is %lld, which does not divide %lld and %lld",
                            (long long)a->heads, (long long)a->hidden, (long long)a->v_hidden);
    a->d = a->hidden / a->heads;
    a->v_d = a->v_hidden / a->heads;
    if (has(in, n_in, PAST_KEY) && in[PAST_KEY].shape.rank == 4) a->past = in[PAST_KEY].shape.dims[2];
    const int64_t most = INT64_MAX / (int64_t)sizeof(float) / 8;
    if (a->past > most || a->kv > most || a->seq > most || a->batch > most || a->hidden > most || a->v_hidden > most ||
        (a->kv > 0 && a->hidden + a->v_hidden > most / a->kv))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "%lld and %lld keys of %lld items are too many",
                            (long long)a->past, (long long)a->kv, (long long)a->batch);
    a->total = a->past + a->kv;
    return TIDE_OK;
}

/// [batch or 1, heads or 1, seq, total].
static tide_status read_score_bias(const tide_node *node, const tide_operand *bias, attention *a, tide_error *err) {
    TIDE_TRY(tide_op_require_rank(node, bias, "attention_bias", 4, 4, err));
    const int64_t *dims = bias->shape.dims;
    const tide_shape want = {4, {dims[0] == 1 ? 1 : a->batch, dims[1] == 1 ? 1 : a->heads, a->seq, a->total}};
    TIDE_TRY(tide_op_require_shape(node, bias, "attention_bias", &want, err));
    a->bias_step[0] = dims[0] == 1 ? 0 : dims[1] * dims[2] * dims[3];
    a->bias_step[1] = dims[1] == 1 ? 0 : dims[2] * dims[3];
    return TIDE_OK;
}

static tide_status read_node(const tide_node *node, const tide_operand *in, size_t n_in, attention *a,
                             tide_error *err) {
    *a = (attention){0};
    TIDE_TRY(read_extents(node, in, n_in, a, err));
    a->causal = tide_node_attr_int(node, "unidirectional", 0) != 0;
    a->filter = tide_node_attr_float(node, "mask_filter_value", -10000.0f);
    a->scale = tide_node_attr_float(node, "scale", 0);
    if (a->scale == 0) a->scale = a->d > 0 ? (float)(1 / sqrt((double)a->d)) : 1;
    a->has_bias = has(in, n_in, BIAS);
    a->mask = (tide_attend_mask){.batch = a->batch, .seq = a->seq, .total = a->total};
    if (has(in, n_in, MASK) && in[MASK].shape.rank == 1 && in[MASK].shape.dims[0] == 3 * a->batch + 2)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "key_padding_mask of 3 * batch + 2 is not served");
    if (has(in, n_in, MASK)) TIDE_TRY(tide_attend_mask_read(node, &in[MASK], "key_padding_mask", &a->mask, err));
    return has(in, n_in, SCORE_BIAS) ? read_score_bias(node, &in[SCORE_BIAS], a, err) : TIDE_OK;
}

// ---- shapes ----

static tide_status check_inputs(const tide_infer *x, const attention *a, tide_error *err) {
    const tide_shape key = {3, {a->batch, a->kv, a->hidden}}, value = {3, {a->batch, a->kv, a->v_hidden}};
    const tide_shape bias = {1, {2 * a->hidden + a->v_hidden}};
    const tide_shape past_key = {4, {a->batch, a->heads, a->past, a->d}};
    const tide_shape past_value = {4, {a->batch, a->heads, a->past, a->v_d}};
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[KEY], "key", &key, err));
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[VALUE], "value", &value, err));
    if (a->has_bias) TIDE_TRY(tide_op_require_shape(x->node, &x->in[BIAS], "bias", &bias, err));
    if (tide_op_has_in(x, PAST_KEY) != tide_op_has_in(x, PAST_VALUE))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "past_key and past_value belong together");
    if (!tide_op_has_in(x, PAST_KEY)) return TIDE_OK;
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[PAST_KEY], "past_key", &past_key, err));
    return tide_op_require_shape(x->node, &x->in[PAST_VALUE], "past_value", &past_value, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[N_INPUTS] = {"query",          "key",      "value",     "bias", NULL,
                                                "attention_bias", "past_key", "past_value"};
    attention a;
    for (size_t i = 0; i < N_INPUTS; i++)
        if (names[i] != NULL && tide_op_has_in(x, i))
            TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
    if (x->n_in > N_INPUTS && (tide_op_has_in(x, N_INPUTS) || tide_op_has_in(x, N_INPUTS + 1)))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "a cache that is written in place is not served");
    TIDE_TRY(read_node(x->node, x->in, x->n_in, &a, err));
    TIDE_TRY(check_inputs(x, &a, err));
    const int64_t y[] = {a.batch, a.seq, a.v_hidden};
    const int64_t key[] = {a.batch, a.heads, a.total, a.d}, value[] = {a.batch, a.heads, a.total, a.v_d};
    TIDE_TRY(tide_op_set_out(x, Y, TIDE_F32, 3, y, err));
    if (tide_op_has_out(x, PRESENT_KEY)) TIDE_TRY(tide_op_set_out(x, PRESENT_KEY, TIDE_F32, 4, key, err));
    return tide_op_has_out(x, PRESENT_VALUE) ? tide_op_set_out(x, PRESENT_VALUE, TIDE_F32, 4, value, err) : TIDE_OK;
}

static double work(const tide_infer *x) {
    attention a;
    if (read_node(x->node, x->in, x->n_in, &a, NULL) != TIDE_OK) return 0;
    return (double)a.batch * (double)a.seq * (double)a.total * (double)(a.hidden + a.v_hidden);
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
    if (a->batch == 0) return TIDE_OK;
    const int64_t joined = a->has_bias ? a->kv * (a->hidden + a->v_hidden) : 0;
    k->workspace_bytes = (size_t)(a->d + a->total + joined) * sizeof(float);
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    tide_host_free(k->state);
    k->state = NULL;
}

// ---- a run ----

/// to [rows, n] = x [rows, n] + bias [n].
static void add_bias(const float *x, const float *bias, int64_t rows, int64_t n, float *to) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) to[r * n + i] = x[r * n + i] + bias[i];
}

typedef struct job {
    const attention *a;
    const tide_kernel_args *args;
    tide_attend_mask mask;
    const float *bias; ///< NULL: none
    float *query, *score, *keys, *values;
} job;

static const float *data_of(const tide_kernel_args *args, size_t i) {
    return has(args->in, args->n_in, i) ? args->in[i].data : NULL;
}

static void run_head(const job *j, int64_t b, int64_t h, const tide_attend_rows *keys, const tide_attend_rows *values) {
    const attention *a = j->a;
    const float *score_bias = data_of(j->args, SCORE_BIAS);
    if (score_bias != NULL) score_bias += b * a->bias_step[0] + h * a->bias_step[1];
    for (int64_t i = 0; i < a->seq; i++) {
        const int64_t most = a->past + i + 1, seen = a->causal && most < a->total ? most : a->total;
        const float *q = (const float *)j->args->in[QUERY].data + (b * a->seq + i) * a->hidden + h * a->d;
        if (j->bias != NULL) {
            add_bias(q, j->bias + h * a->d, 1, a->d, j->query);
            q = j->query;
        }
        tide_attend_scores(q, keys, seen, a->d, a->scale, j->score);
        for (int64_t k = 0; j->mask.form != TIDE_ATTEND_ALL && k < seen; k++)
            if (tide_attend_is_masked(&j->mask, b, i, k)) j->score[k] += a->filter;
        for (int64_t k = 0; score_bias != NULL && k < seen; k++) j->score[k] += score_bias[i * a->total + k];
        tide_attend_softmax(j->score, seen);
        float *y = (float *)j->args->out[Y].data + (b * a->seq + i) * a->v_hidden + h * a->v_d;
        tide_attend_values(j->score, values, seen, a->v_d, y);
    }
}

static void write_present(const job *j, size_t out_i, const tide_attend_rows *rows, int64_t at, int64_t d) {
    const tide_kernel_args *args = j->args;
    if (args->n_out <= out_i || !tide_operand_present(&args->out[out_i]) || args->out[out_i].size_bytes == 0) return;
    tide_attend_join(rows, j->a->kv, d, (float *)args->out[out_i].data + at * j->a->total * d);
}

/// Keys and values of item `b`, with their bias.
static void load_item(job *j, int64_t b) {
    const attention *a = j->a;
    const float *keys = (const float *)j->args->in[KEY].data + b * a->kv * a->hidden;
    const float *values = (const float *)j->args->in[VALUE].data + b * a->kv * a->v_hidden;
    if (a->kv == 0) return;
    add_bias(keys, j->bias + a->hidden, a->kv, a->hidden, j->keys);
    add_bias(values, j->bias + 2 * a->hidden, a->kv, a->v_hidden, j->values);
}

static tide_attend_rows rows_of(const float *past, const float *now, int64_t n_past, int64_t d, int64_t step) {
    return (tide_attend_rows){.past = past, .now = now, .n_past = n_past, .past_step = d, .now_step = step};
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    (void)err;
    const attention *a = k->state;
    float *room = args->workspace;
    job j = {.a = a, .args = args, .mask = a->mask, .bias = data_of(args, BIAS)};
    if (j.mask.form != TIDE_ATTEND_ALL) j.mask.data = args->in[MASK].data;
    if (room != NULL) {
        j.query = room;
        j.score = room + a->d;
        j.keys = j.score + a->total;
        j.values = j.keys + a->kv * a->hidden;
    }
    const float *past_key = data_of(args, PAST_KEY), *past_value = data_of(args, PAST_VALUE);
    for (int64_t b = 0; b < a->batch; b++) {
        if (j.bias != NULL) load_item(&j, b);
        const float *keys = j.bias != NULL ? j.keys : (const float *)args->in[KEY].data + b * a->kv * a->hidden;
        const float *values = j.bias != NULL ? j.values : (const float *)args->in[VALUE].data + b * a->kv * a->v_hidden;
        for (int64_t h = 0; h < a->heads; h++) {
            const int64_t at = b * a->heads + h;
            const tide_attend_rows key_rows = rows_of(past_key != NULL ? past_key + at * a->past * a->d : NULL,
                                                      keys + h * a->d, a->past, a->d, a->hidden);
            const tide_attend_rows value_rows = rows_of(past_value != NULL ? past_value + at * a->past * a->v_d : NULL,
                                                        values + h * a->v_d, a->past, a->v_d, a->v_hidden);
            write_present(&j, PRESENT_KEY, &key_rows, at, a->d);
            write_present(&j, PRESENT_VALUE, &value_rows, at, a->v_d);
            if (args->out[Y].size_bytes > 0) run_head(&j, b, h, &key_rows, &value_rows);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_attention_multi = {
    .domain = "com.microsoft",
    .name = "MultiHeadAttention",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(FLOAT, "mask_filter_value"), TIDE_ATTR(INT, "num_heads"), TIDE_ATTR(FLOAT, "scale"),
                        TIDE_ATTR(INT, "unidirectional")),
    .min_inputs = 1,
    .max_inputs = N_INPUTS + 2,
    .min_outputs = 1,
    .max_outputs = 3,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .run = run,
};
