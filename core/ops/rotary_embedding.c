// SPDX-License-Identifier: MIT
//
// RotaryEmbedding (opset 23), float32: pairs of numbers of each head turn by an angle of their token's place.
//
//     (a, b) becomes (a cos - b sin, a sin + b cos); a, b are numbers i and i + n/2 of the n that turn, or, where
//     they are interleaved, 2i and 2i + 1
//
// X [batch, heads, seq, d], or [batch, seq, heads * d] with num_heads. cos and sin are tables [places, n/2] for
// position_ids [batch, seq], or [batch, seq, n/2] without. May work in place.
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { X, COS, SIN, POSITIONS };

typedef struct rotary {
    int64_t batch, heads, seq, d;
    int64_t half; ///< pairs that turn; what is behind them stays
    bool flat, interleaved, has_positions;
} rotary;

static tide_status read_node(const tide_node *node, const tide_operand *in, size_t n_in, rotary *r, tide_error *err) {
    TIDE_TRY(tide_op_require_rank(node, &in[X], "X", 3, 4, err));
    const int64_t *x = in[X].shape.dims, asked = tide_node_attr_int(node, "num_heads", 0);
    *r = (rotary){.batch = x[0], .flat = in[X].shape.rank == 3};
    if (r->flat && (asked < 1 || x[2] % asked != 0))
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "num_heads is %lld, which does not divide %lld",
                            (long long)asked, (long long)x[2]);
    r->heads = r->flat ? asked : x[1];
    r->seq = x[r->flat ? 1 : 2];
    r->d = r->flat ? x[2] / asked : x[3];
    r->interleaved = tide_node_attr_int(node, "interleaved", 0) != 0;
    r->has_positions = n_in > POSITIONS && tide_operand_present(&in[POSITIONS]);
    const int64_t dim = tide_node_attr_int(node, "rotary_embedding_dim", 0), n = dim != 0 ? dim : r->d;
    if (n < 0 || n > r->d || n % 2 != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%lld of a head's %lld numbers cannot turn in pairs",
                            (long long)n, (long long)r->d);
    r->half = n / 2;
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    static const char *const names[] = {"X", "cos_cache", "sin_cache"};
    rotary r;
    for (size_t i = X; i <= SIN; i++) TIDE_TRY(tide_op_require_dtype(x->node, &x->in[i], names[i], TIDE_F32, err));
    TIDE_TRY(read_node(x->node, x->in, x->n_in, &r, err));
    for (size_t i = COS; i <= SIN; i++) {
        const int32_t rank = r.has_positions ? 2 : 3;
        TIDE_TRY(tide_op_require_rank(x->node, &x->in[i], names[i], rank, rank, err));
        const tide_shape table = {2, {x->in[COS].shape.dims[0], r.half}}, all = {3, {r.batch, r.seq, r.half}};
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[i], names[i], r.has_positions ? &table : &all, err));
    }
    if (r.has_positions) {
        const tide_shape want = {2, {r.batch, r.seq}};
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[POSITIONS], "position_ids", TIDE_I64, err));
        TIDE_TRY(tide_op_require_shape(x->node, &x->in[POSITIONS], "position_ids", &want, err));
    }
    return tide_op_infer_same(x, err);
}

/// One head of one token.
static void turn(const rotary *r, const float *x, const float *cosines, const float *sines, float *y) {
    for (int64_t i = 0; i < r->half; i++) {
        const int64_t a = r->interleaved ? 2 * i : i, b = r->interleaved ? 2 * i + 1 : i + r->half;
        const float first = x[a], second = x[b];
        y[a] = cosines[i] * first - sines[i] * second;
        y[b] = sines[i] * first + cosines[i] * second;
    }
    for (int64_t i = 2 * r->half; i < r->d; i++) y[i] = x[i];
}

/// The row of the tables for token `t` of the batch.
static tide_status place_of(const tide_kernel *k, const tide_kernel_args *args, const rotary *r, int64_t t,
                            int64_t *row, tide_error *err) {
    *row = t;
    if (!r->has_positions) return TIDE_OK;
    const int64_t n = args->in[COS].shape.dims[0];
    *row = ((const int64_t *)args->in[POSITIONS].data)[t];
    if (*row >= 0 && *row < n) return TIDE_OK;
    return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "position %lld is outside of a table of %lld", (long long)*row,
                        (long long)n);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    rotary r;
    TIDE_TRY(read_node(k->node, args->in, args->n_in, &r, err));
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    const float *x = args->in[X].data, *cosines = args->in[COS].data, *sines = args->in[SIN].data;
    float *y = args->out[0].data;
    for (int64_t t = 0; t < r.batch * r.seq; t++) {
        int64_t row;
        TIDE_TRY(place_of(k, args, &r, t, &row, err));
        for (int64_t h = 0; h < r.heads; h++) {
            const int64_t at = r.flat ? t * r.heads + h : (t / r.seq * r.heads + h) * r.seq + t % r.seq;
            turn(&r, x + at * r.d, cosines + row * r.half, sines + row * r.half, y + at * r.d);
        }
    }
    return TIDE_OK;
}

const tide_op_def tide_op_rotary_embedding = {
    .domain = "",
    .name = "RotaryEmbedding",
    .since = 23,
    .attrs =
        TIDE_ATTRS(TIDE_ATTR(INT, "interleaved"), TIDE_ATTR(INT, "num_heads"), TIDE_ATTR(INT, "rotary_embedding_dim")),
    .inplace_inputs = 1u << X,
    .min_inputs = 3,
    .max_inputs = 4,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer,
    .run = run,
};
