// SPDX-License-Identifier: MIT
//
// Attention of ONNX (opset 23), float32: Y = softmax(cap(scale * Q K') + mask) V, head by head.
//
//     Q [batch, heads, queries, d]  K [batch, kv_heads, keys, d]  V [batch, kv_heads, keys, v_d]    of rank 4
//     Q [batch, queries, heads * d]  …                                                              of rank 3
//     past_key, past_value [batch, kv_heads, past, d or v_d]: cached keys and values, in front of those of now
//
// Neither layout is turned round: a head is a stride. Heads of Q share those of K and V in groups. The scratch is one
// row of scores.
#include <math.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/ops/attend.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS, N_INPUTS };
enum { Y, PRESENT_K, PRESENT_V, SCORES };
/// What output SCORES holds: qk_matmul_output_mode.
enum { OF_PRODUCT, OF_CAP, OF_MASK, OF_SOFTMAX };

typedef struct attention {
    int64_t batch, heads, kv_heads, queries, keys, past, total, d, v_d;
    bool flat; ///< rank 3
    bool causal;
    float scale, cap;
    int64_t mode;
    int64_t mask_step[4]; ///< elements of the mask per batch, head, query, key; 0 repeats
    int64_t mask_keys;    ///< the keys behind these are masked
} attention;

static bool has(const tide_operand *in, size_t n_in, size_t i) { return i < n_in && tide_operand_present(&in[i]); }

// ---- what the node says ----

static tide_status heads_of(const tide_node *node, const char *attr, const char *what, int64_t hidden, int64_t *heads,
                            int64_t *d, tide_error *err) {
    *heads = tide_node_attr_int(node, attr, 0);
    if (*heads < 1)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s is %lld; operands of rank 3 need it, 1 or more", attr,
                            (long long)*heads);
    if (hidden % *heads != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "%s has %lld numbers per token, which %lld heads do not divide", what, (long long)hidden,
                            (long long)*heads);
    *d = hidden / *heads;
    return TIDE_OK;
}

/// The head numbers and extents of Q, K, V, unchecked against each other.
static tide_status read_operands(const tide_node *node, const tide_operand *in, attention *a, int64_t *k_d,
                                 tide_error *err) {
    static const char *const names[] = {"Q", "K", "V"};
    TIDE_TRY(tide_op_require_rank(node, &in[Q], names[Q], 3, 4, err));
    for (size_t i = K; i <= V; i++)
        TIDE_TRY(tide_op_require_rank(node, &in[i], names[i], in[Q].shape.rank, in[Q].shape.rank, err));
    const int64_t *q = in[Q].shape.dims, *k = in[K].shape.dims, *v = in[V].shape.dims;
    a->flat = in[Q].shape.rank == 3;
    a->batch = q[0];
    a->queries = q[a->flat ? 1 : 2];
    a->keys = k[a->flat ? 1 : 2];
    if (!a->flat) {
        a->heads = q[1];
        a->kv_heads = k[1];
        a->d = q[3];
        *k_d = k[3];
        a->v_d = v[3];
        return TIDE_OK;
    }
    TIDE_TRY(heads_of(node, "q_num_heads", names[Q], q[2], &a->heads, &a->d, err));
    TIDE_TRY(heads_of(node, "kv_num_heads", names[K], k[2], &a->kv_heads, k_d, err));
    return heads_of(node, "kv_num_heads", names[V], v[2], &a->kv_heads, &a->v_d, err);
}

static tide_status read_attributes(const tide_node *node, attention *a, tide_error *err) {
    a->causal = tide_node_attr_int(node, "is_causal", 0) != 0;
    a->cap = tide_node_attr_float(node, "softcap", 0);
    a->scale = tide_node_attr_float(node, "scale", a->d > 0 ? (float)(1 / sqrt((double)a->d)) : 1);
    a->mode = tide_node_attr_int(node, "qk_matmul_output_mode", OF_PRODUCT);
    const int64_t precision = tide_node_attr_int(node, "softmax_precision", TIDE_F32);
    if (a->mode < OF_PRODUCT || a->mode > OF_SOFTMAX)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "qk_matmul_output_mode is %lld, must be 0 to 3",
                            (long long)a->mode);
    if (precision != TIDE_F32)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED,
                            "softmax_precision is %lld; this kernel takes 1, float32", (long long)precision);
    if (tide_node_attr(node, "left_window_size") != NULL || tide_node_attr(node, "right_window_size") != NULL)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "a window of keys is not implemented");
    if (!(a->cap >= 0) || isinf(a->cap))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "softcap is %g, must be 0 (none) or more", (double)a->cap);
    return TIDE_OK;
}

/// The mask broadcasts to [batch, heads, queries, total]; its last extent may be shorter.
static tide_status read_mask(const tide_node *node, const tide_operand *mask, attention *a, tide_error *err) {
    const int64_t want[4] = {a->batch, a->heads, a->queries, a->total};
    if (mask->dtype != TIDE_BOOL) TIDE_TRY(tide_op_require_dtype(node, mask, "attn_mask", TIDE_F32, err));
    TIDE_TRY(tide_op_require_rank(node, mask, "attn_mask", 1, 4, err));
    int64_t step = 1;
    bool meets = true;
    for (int32_t i = 3, m = mask->shape.rank - 1; m >= 0; i--, m--) {
        const int64_t extent = mask->shape.dims[m];
        meets = meets && (extent == want[i] || extent == 1 || (i == 3 && extent < want[i]));
        a->mask_step[i] = i < 3 && extent == 1 ? 0 : step;
        step *= extent;
    }
    a->mask_keys = mask->shape.dims[mask->shape.rank - 1];
    if (meets && a->mask_keys <= a->total) return TIDE_OK;
    char s[192];
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                        "attn_mask is %s, which does not broadcast to [%lldx%lldx%lldx%lld]",
                        tide_shape_format(&mask->shape, s, sizeof s), (long long)want[0], (long long)want[1],
                        (long long)want[2], (long long)want[3]);
}

static tide_status read_node(const tide_node *node, const tide_operand *in, size_t n_in, attention *a,
                             tide_error *err) {
    int64_t k_d = 0;
    *a = (attention){0};
    TIDE_TRY(read_operands(node, in, a, &k_d, err));
    TIDE_TRY(read_attributes(node, a, err));
    if (k_d != a->d)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "a head of Q has %lld numbers, one of K %lld",
                            (long long)a->d, (long long)k_d);
    if (a->kv_heads != a->heads && (a->kv_heads == 0 || a->heads % a->kv_heads != 0))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                            "%lld heads of Q cannot share %lld of K and V in equal groups", (long long)a->heads,
                            (long long)a->kv_heads);
    if (has(in, n_in, PAST_K)) {
        TIDE_TRY(tide_op_require_rank(node, &in[PAST_K], "past_key", 4, 4, err));
        a->past = in[PAST_K].shape.dims[2];
    }
    if (!tide_add_i64(a->past, a->keys, &a->total) || a->total > INT64_MAX / (int64_t)sizeof(float))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "%lld and %lld keys are too many", (long long)a->past,
                            (long long)a->keys);
    if (has(in, n_in, MASK)) TIDE_TRY(read_mask(node, &in[MASK], a, err));
    return TIDE_OK;
}

// ---- shapes ----

static tide_status check_inputs(const tide_infer *x, const attention *a, tide_error *err) {
    // In rank 3 the heads divide what K and V have.
    const int64_t n = a->keys, k_hidden = a->flat ? a->kv_heads * a->d : 0,
                  v_hidden = a->flat ? a->kv_heads * a->v_d : 0;
    const int64_t flat_k[] = {a->batch, n, k_hidden}, flat_v[] = {a->batch, n, v_hidden};
    const int64_t k[] = {a->batch, a->kv_heads, n, a->d}, v[] = {a->batch, a->kv_heads, n, a->v_d};
    const tide_shape want_k = a->flat ? tide_shape_make(3, flat_k) : tide_shape_make(4, k);
    const tide_shape want_v = a->flat ? tide_shape_make(3, flat_v) : tide_shape_make(4, v);
    const tide_shape past_k = {4, {a->batch, a->kv_heads, a->past, a->d}};
    const tide_shape past_v = {4, {a->batch, a->kv_heads, a->past, a->v_d}};
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[K], "K", &want_k, err));
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[V], "V", &want_v, err));
    if (tide_op_has_in(x, PAST_K) != tide_op_has_in(x, PAST_V))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "past_key and past_value go together");
    if (tide_op_has_in(x, PAST_K)) {
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[PAST_K], "past_key", TIDE_F32, err));
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[PAST_V], "past_value", TIDE_F32, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[PAST_K], "past_key", &past_k, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[PAST_V], "past_value", &past_v, err));
    }
    if (!tide_op_has_in(x, LENGTHS)) return TIDE_OK;
    if (tide_op_has_in(x, PAST_K))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT,
                            "nonpad_kv_seqlen is for caches outside of the operator, "
                            "past_key for those inside");
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[LENGTHS], "nonpad_kv_seqlen", TIDE_I64, err));
    return tide_op_require_shape(x->node, &x->in[LENGTHS], "nonpad_kv_seqlen", &(tide_shape){1, {a->batch}}, err);
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"Q", "K", "V"};
    attention a;
    for (size_t i = Q; i <= V; i++) TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
    TIDE_TRY(read_node(x->node, x->in, x->n_in, &a, err));
    TIDE_TRY(check_inputs(x, &a, err));
    int64_t hidden = 0; // in rank 4 no one counts it
    if (a.flat && !tide_mul_i64(a.heads, a.v_d, &hidden))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "%lld heads of %lld numbers are too many",
                            (long long)a.heads, (long long)a.v_d);
    const int64_t flat[] = {a.batch, a.queries, hidden}, y[] = {a.batch, a.heads, a.queries, a.v_d};
    const int64_t present_k[] = {a.batch, a.kv_heads, a.total, a.d};
    const int64_t present_v[] = {a.batch, a.kv_heads, a.total, a.v_d};
    const int64_t scores[] = {a.batch, a.heads, a.queries, a.total};
    TIDE_TRY(tide_op_set_out(x, Y, TIDE_F32, a.flat ? 3 : 4, a.flat ? flat : y, err));
    if (tide_op_has_out(x, PRESENT_K)) TIDE_TRY(tide_op_set_out(x, PRESENT_K, TIDE_F32, 4, present_k, err));
    if (tide_op_has_out(x, PRESENT_V)) TIDE_TRY(tide_op_set_out(x, PRESENT_V, TIDE_F32, 4, present_v, err));
    if (tide_op_has_out(x, SCORES)) TIDE_TRY(tide_op_set_out(x, SCORES, TIDE_F32, 4, scores, err));
    return TIDE_OK;
}

static double work(const tide_infer *x) {
    attention a;
    if (read_node(x->node, x->in, x->n_in, &a, NULL) != TIDE_OK) return 0;
    return (double)a.batch * (double)a.heads * (double)a.queries * (double)a.total * (double)(a.d + a.v_d);
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
    const bool has_scores = x->n_out > SCORES && tide_operand_present(&x->out[SCORES]);
    const bool has_work =
        tide_op_numel(&x->out[Y].shape) > 0 || (has_scores && tide_op_numel(&x->out[SCORES].shape) > 0);
    k->workspace_bytes = has_work ? (size_t)a->total * sizeof(float) : 0;
    return TIDE_OK;
}

static void destroy(tide_kernel *k) {
    tide_host_free(k->state);
    k->state = NULL;
}

// ---- running ----

/// The rows of one head of K or V: operand `now`, before it `past`.
static tide_attend_rows rows_of(const attention *a, const tide_kernel_args *args, size_t now, size_t past, int64_t b,
                                int64_t h, int64_t d) {
    const float *here = args->in[now].data;
    tide_attend_rows r = {.past_step = d, .now_step = a->flat ? a->kv_heads * d : d, .n_past = a->past};
    if (here != NULL)
        r.now = here + (a->flat ? (b * a->keys * a->kv_heads + h) * d : (b * a->kv_heads + h) * a->keys * d);
    if (a->past > 0 && args->in[past].data != NULL)
        r.past = (const float *)args->in[past].data + (b * a->kv_heads + h) * a->past * d;
    return r;
}

/// Element of Q or Y where query `i` of a head begins.
static int64_t query_at(const attention *a, int64_t b, int64_t h, int64_t i, int64_t d) {
    return (a->flat ? (b * a->queries + i) * a->heads + h : (b * a->heads + h) * a->queries + i) * d;
}

static void add_mask(const attention *a, const tide_operand *mask, const int64_t *at, int64_t n, float *score) {
    const int64_t first = at[0] * a->mask_step[0] + at[1] * a->mask_step[1] + at[2] * a->mask_step[2];
    const int64_t n_masked = n < a->mask_keys ? n : a->mask_keys;
    const bool is_bool = mask->dtype == TIDE_BOOL;
    for (int64_t j = 0; j < n_masked; j++) {
        if (!is_bool)
            score[j] += ((const float *)mask->data)[first + j];
        else if (((const uint8_t *)mask->data)[first + j] == 0)
            score[j] = -INFINITY;
    }
    for (int64_t j = n_masked; j < n; j++) score[j] = -INFINITY;
}

typedef struct head {
    const attention *a;
    const tide_kernel_args *args;
    tide_attend_rows keys, values;
    int64_t b, h;
    int64_t n_valid; ///< keys that are no padding
    int64_t ahead;   ///< query i sees keys up to i + ahead, where it is causal
    float *score;
    float *copy; ///< of output SCORES, may be NULL
} head;

/// How many keys query `i` sees; those behind them are -infinity.
static int64_t n_seen(const head *t, int64_t i) {
    const attention *a = t->a;
    int64_t n = t->n_valid;
    if (a->causal && i + t->ahead + 1 < n) n = i + t->ahead + 1;
    return n < 0 ? 0 : n;
}

static void keep(const head *t, int64_t i, int64_t mode) {
    if (t->copy != NULL && t->a->mode == mode && t->a->total > 0)
        memcpy(t->copy + i * t->a->total, t->score, (size_t)t->a->total * sizeof *t->copy);
}

static void run_query(const head *t, int64_t i) {
    const attention *a = t->a;
    const int64_t seen = n_seen(t, i), total = a->total;
    const float *q = a->d > 0 ? (const float *)t->args->in[Q].data + query_at(a, t->b, t->h, i, a->d) : NULL;
    const bool all = t->copy != NULL && a->mode != OF_SOFTMAX; // also of keys that are not seen
    tide_attend_scores(q, &t->keys, all ? total : seen, a->d, a->scale, t->score);
    keep(t, i, OF_PRODUCT);
    if (a->cap > 0)
        for (int64_t j = 0; j < (all ? total : seen); j++) t->score[j] = a->cap * tanhf(t->score[j] / a->cap);
    keep(t, i, OF_CAP);
    for (int64_t j = seen; j < total; j++) t->score[j] = -INFINITY;
    if (has(t->args->in, t->args->n_in, MASK))
        add_mask(a, &t->args->in[MASK], (const int64_t[]){t->b, t->h, i}, seen, t->score);
    keep(t, i, OF_MASK);
    tide_attend_softmax(t->score, total);
    keep(t, i, OF_SOFTMAX);
    if (a->v_d > 0)
        tide_attend_values(t->score, &t->values, seen, a->v_d,
                           (float *)t->args->out[Y].data + query_at(a, t->b, t->h, i, a->v_d));
}

static tide_status read_length(const tide_kernel *k, const tide_kernel_args *args, head *t, tide_error *err) {
    const attention *a = t->a;
    t->n_valid = a->total;
    t->ahead = a->past;
    if (!has(args->in, args->n_in, LENGTHS)) return TIDE_OK;
    t->n_valid = ((const int64_t *)args->in[LENGTHS].data)[t->b];
    t->ahead = t->n_valid - a->queries;
    if (t->n_valid >= 0 && t->n_valid <= a->total) return TIDE_OK;
    return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "nonpad_kv_seqlen[%lld] is %lld of %lld keys", (long long)t->b,
                        (long long)t->n_valid, (long long)a->total);
}

static void write_present(const attention *a, const tide_kernel_args *args, size_t out, size_t now, size_t past,
                          int64_t d) {
    if (out >= args->n_out || !tide_operand_present(&args->out[out]) || args->out[out].size_bytes == 0) return;
    float *to = args->out[out].data;
    for (int64_t b = 0; b < a->batch; b++) {
        for (int64_t h = 0; h < a->kv_heads; h++, to += a->total * d) {
            const tide_attend_rows rows = rows_of(a, args, now, past, b, h, d);
            tide_attend_join(&rows, a->keys, d, to);
        }
    }
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const attention *a = k->state;
    const bool wants_scores = args->n_out > SCORES && tide_operand_present(&args->out[SCORES]);
    write_present(a, args, PRESENT_K, K, PAST_K, a->d);
    write_present(a, args, PRESENT_V, V, PAST_V, a->v_d);
    if (args->out[Y].size_bytes == 0 && (!wants_scores || args->out[SCORES].size_bytes == 0)) return TIDE_OK;
    head t = {.a = a, .args = args, .score = args->workspace};
    for (t.b = 0; t.b < a->batch; t.b++) {
        TIDE_TRY(read_length(k, args, &t, err));
        for (t.h = 0; t.h < a->heads; t.h++) {
            const int64_t shared = t.h / (a->heads / a->kv_heads);
            t.keys = rows_of(a, args, K, PAST_K, t.b, shared, a->d);
            t.values = rows_of(a, args, V, PAST_V, t.b, shared, a->v_d);
            if (wants_scores && args->out[SCORES].size_bytes > 0)
                t.copy = (float *)args->out[SCORES].data + (t.b * a->heads + t.h) * a->queries * a->total;
            for (int64_t i = 0; i < a->queries; i++) run_query(&t, i);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_attention = {
    .domain = "",
    .name = "Attention",
    .since = 23,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "is_causal"), TIDE_ATTR(INT, "kv_num_heads"), TIDE_ATTR(INT, "q_num_heads"),
                        TIDE_ATTR(INT, "qk_matmul_output_mode"), TIDE_ATTR(FLOAT, "scale"), TIDE_ATTR(FLOAT, "softcap"),
                        TIDE_ATTR(INT, "softmax_precision"), TIDE_ATTR(INT, "left_window_size", .since = 25),
                        TIDE_ATTR(INT, "right_window_size", .since = 25)),
    .min_inputs = 3,
    .max_inputs = N_INPUTS,
    .min_outputs = 1,
    .max_outputs = 4,
    .infer = infer,
    .work = work,
    .prepare = prepare,
    .destroy = destroy,
    .run = run,
};
