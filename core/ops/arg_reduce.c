// SPDX-License-Identifier: MIT
//
// ArgMax and ArgMin: the index along one axis of the largest or smallest element; the first of equals, or the last
// with select_last_index (opset 12).
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"

enum { BLOCK = 64 }; ///< neighbouring outputs found together, so that reads are dense

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    if (x->in[0].dtype == TIDE_BOOL) return tide_data_no_dtype(x->node, x->in[0].dtype, err);
    int32_t axis;
    TIDE_TRY(tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), in->rank, &axis, err));
    const bool keep = tide_node_attr_int(x->node, "keepdims", 1) != 0;
    if (in->rank != 0 && in->dims[axis] == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "axis %d is empty: there is no index", axis);
    int64_t dims[TIDE_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        if (d != axis)
            dims[rank++] = in->dims[d];
        else if (keep)
            dims[rank++] = 1;
    }
    return tide_op_set_out(x, 0, TIDE_I64, rank, dims, err);
}

typedef struct search {
    bool smallest, last;
    int64_t extent; ///< of the axis
    int64_t stride; ///< elements between neighbours on it
} search;

/// The indices of `n` neighbouring outputs.
typedef void (*find_fn)(const search *s, const void *in, int64_t n, int64_t *out);

#define XX(DT, sfx, S, C)                                                                                              \
    static void find_##sfx(const search *s, const void *in, int64_t n, int64_t *out) {                                 \
        const S *const x = in;                                                                                         \
        C best[BLOCK];                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            best[i] = TIDE_LOAD_##sfx(x[i]);                                                                           \
            out[i] = 0;                                                                                                \
        }                                                                                                              \
        for (int64_t j = 1; j < s->extent; j++)                                                                        \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C v = TIDE_LOAD_##sfx(x[j * s->stride + i]);                                                     \
                const bool better = s->smallest ? v < best[i] : v > best[i];                                           \
                if (!better && !(s->last && v == best[i])) continue;                                                   \
                best[i] = v;                                                                                           \
                out[i] = j;                                                                                            \
            }                                                                                                          \
    }
TIDE_TYPES_NUMERIC(XX)
#undef XX

static const find_fn finds[TIDE_DTYPE_LIMIT] = {
#define XX(DT, sfx, S, C) [TIDE_##DT] = find_##sfx,
    TIDE_TYPES_NUMERIC(XX)
#undef XX
};

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    const tide_operand *const in = &a->in[0];
    const size_t elem = tide_dtype_size(in->dtype);
    int32_t axis;
    TIDE_TRY(tide_op_axis(k->node, tide_node_attr_int(k->node, "axis", 0), in->shape.rank, &axis, err));
    const int64_t inner = tide_op_count(&in->shape, axis + 1, in->shape.rank);
    const search s = {.smallest = strcmp(k->def->name, "ArgMin") == 0,
                      .last = k->node->opset >= 12 && tide_node_attr_int(k->node, "select_last_index", 0) != 0,
                      .extent = in->shape.rank == 0 ? 1 : in->shape.dims[axis],
                      .stride = inner};
    int64_t *const out = a->out[0].data;
    if (a->out[0].size_bytes == 0) return TIDE_OK;
    for (int64_t o = 0; o < tide_op_count(&in->shape, 0, axis); o++)
        for (int64_t i = 0; i < inner; i += BLOCK)
            finds[in->dtype](&s, tide_data_const_at(in->data, o * s.extent * inner + i, elem),
                             inner - i < BLOCK ? inner - i : BLOCK, out + o * inner + i);
    return TIDE_OK;
}

#define OP_DEF(row_name, text)                                                                                         \
    const tide_op_def tide_op_##row_name = {.name = text,                                                              \
                                            .domain = "",                                                              \
                                            .since = 1,                                                                \
                                            .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(INT, "keepdims"),    \
                                                                TIDE_ATTR(INT, "select_last_index", .since = 12)),     \
                                            .min_inputs = 1,                                                           \
                                            .max_inputs = 1,                                                           \
                                            .min_outputs = 1,                                                          \
                                            .max_outputs = 1,                                                          \
                                            .infer = infer,                                                            \
                                            .run = run};
OP_DEF(arg_max, "ArgMax")
OP_DEF(arg_min, "ArgMin")
