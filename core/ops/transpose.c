// SPDX-License-Identifier: MIT
//
// Transpose: output axis i is input axis perm[i]; without perm the axes are reversed.
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

static void read_perm(const tide_node *node, int32_t rank, int32_t *perm) {
    size_t n;
    const int64_t *const given = tide_node_attr_ints(node, "perm", &n);
    for (int32_t d = 0; d < rank; d++) perm[d] = given != NULL ? (int32_t)given[d] : rank - 1 - d;
}

static tide_status check_perm(const tide_node *node, int32_t rank, tide_error *err) {
    size_t n;
    const int64_t *const perm = tide_node_attr_ints(node, "perm", &n);
    if (perm == NULL) return TIDE_OK;
    if (n != (size_t)rank)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'perm' has %zu axes, the input has rank %d", n, rank);
    bool seen[TIDE_MAX_RANK] = {false};
    for (size_t d = 0; d < n; d++) {
        if (perm[d] < 0 || perm[d] >= rank || seen[perm[d]])
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "'perm' is no permutation: axis %lld",
                                (long long)perm[d]);
        seen[perm[d]] = true;
    }
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *const in = &x->in[0].shape;
    TIDE_TRY(check_perm(x->node, in->rank, err));
    int32_t perm[TIDE_MAX_RANK];
    read_perm(x->node, in->rank, perm);
    int64_t dims[TIDE_MAX_RANK];
    for (int32_t d = 0; d < in->rank; d++) dims[d] = in->dims[perm[d]];
    return tide_op_set_out(x, 0, x->in[0].dtype, in->rank, dims, err);
}

/// Only extents of 1 move: the others keep their order, and with it all bytes.
static tide_op_alias alias(const tide_infer *x, size_t in_i, size_t out_i) {
    const tide_shape *const in = &x->in[0].shape;
    int32_t perm[TIDE_MAX_RANK], last = -1;
    read_perm(x->node, in->rank, perm);
    for (int32_t d = 0; d < in->rank; d++) {
        if (in->dims[perm[d]] == 1) continue;
        if (perm[d] < last) return (tide_op_alias){TIDE_OP_ALIAS_NONE, 0};
        last = perm[d];
    }
    return (tide_op_alias){in_i == 0 && out_i == 0 ? TIDE_OP_ALIAS_VIEW : TIDE_OP_ALIAS_NONE, 0};
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const tide_shape *const out = &a->out[0].shape;
    if (a->out[0].data == a->in[0].data) return TIDE_OK; // a view of it
    int32_t perm[TIDE_MAX_RANK];
    int64_t in_strides[TIDE_MAX_RANK], src[TIDE_MAX_RANK], dst[TIDE_MAX_RANK];
    read_perm(k->node, out->rank, perm);
    tide_shape_strides(&a->in[0].shape, in_strides);
    tide_shape_strides(out, dst);
    for (int32_t d = 0; d < out->rank; d++) src[d] = in_strides[perm[d]];
    tide_strided_copy(tide_dtype_size(a->out[0].dtype), out->rank, out->dims, a->out[0].data, dst, a->in[0].data, src);
    return TIDE_OK;
}

const tide_op_def tide_op_transpose = {.name = "Transpose",
                                       .domain = "",
                                       .since = 1,
                                       .attrs = TIDE_ATTRS(TIDE_ATTR(INTS, "perm")),
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .min_outputs = 1,
                                       .max_outputs = 1,
                                       .infer = infer,
                                       .alias = alias,
                                       .run = run};
