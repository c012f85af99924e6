// SPDX-License-Identifier: MIT
//
// DepthToSpace and SpaceToDepth: blocks of channels to blocks of pixels and back; each is one transposition of six
// axes.
//
//     DepthToSpace, DCR   [N, b, b', C, H, W] -> [N, C, H, b, W, b']
//     DepthToSpace, CRD   [N, C, b, b', H, W] -> [N, C, H, b, W, b']
//     SpaceToDepth        [N, C, H, b, W, b'] -> [N, b, b', C, H, W]
#include "core/ops/data_util.h"
#include "core/ops/op_util.h"
#include "core/ops/strided_copy.h"

static tide_status read_block(const tide_infer *x, int64_t *block, tide_error *err) {
    *block = tide_node_attr_int(x->node, "blocksize", 0);
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[0], "input", 4, 4, err));
    if (*block < 1 || *block > INT32_MAX)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "blocksize is %lld", (long long)*block);
    return TIDE_OK;
}

static tide_status depth_to_space_infer(const tide_infer *x, tide_error *err) {
    const int64_t *const in = x->in[0].shape.dims;
    int64_t b;
    TIDE_TRY(read_block(x, &b, err));
    const char *const mode = tide_node_attr_string(x->node, "mode", "DCR");
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "mode '%s' is neither DCR nor CRD", mode);
    if (in[1] % (b * b) != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%lld channels do not divide by blocksize %lld squared",
                            (long long)in[1], (long long)b);
    int64_t dims[4] = {in[0], in[1] / (b * b), 0, 0};
    if (__builtin_mul_overflow(in[2], b, &dims[2]) || __builtin_mul_overflow(in[3], b, &dims[3]))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "blocksize %lld", (long long)b);
    return tide_op_set_out(x, 0, x->in[0].dtype, 4, dims, err);
}

static tide_status space_to_depth_infer(const tide_infer *x, tide_error *err) {
    const int64_t *const in = x->in[0].shape.dims;
    int64_t b;
    TIDE_TRY(read_block(x, &b, err));
    if (in[2] % b != 0 || in[3] % b != 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "%lldx%lld does not divide by blocksize %lld",
                            (long long)in[2], (long long)in[3], (long long)b);
    int64_t dims[4] = {in[0], 0, in[2] / b, in[3] / b};
    if (__builtin_mul_overflow(in[1], b * b, &dims[1]))
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_OVERFLOW, "blocksize %lld", (long long)b);
    return tide_op_set_out(x, 0, x->in[0].dtype, 4, dims, err);
}

/// Output axis i is axis perm[i] of the input seen as `split`.
static void permute_six(const tide_kernel_args *a, const int64_t split[6], const int32_t perm[6]) {
    int64_t in_strides[6], dims[6], src[6], dst[6];
    for (int64_t d = 5, step = 1; d >= 0; step *= split[d--]) in_strides[d] = step;
    for (int d = 0; d < 6; d++) {
        dims[d] = split[perm[d]];
        src[d] = in_strides[perm[d]];
    }
    for (int64_t d = 5, step = 1; d >= 0; step *= dims[d--]) dst[d] = step;
    tide_strided_copy(tide_dtype_size(a->out[0].dtype), 6, dims, a->out[0].data, dst, a->in[0].data, src);
}

static tide_status depth_to_space_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const int64_t *const in = a->in[0].shape.dims;
    const int64_t b = tide_node_attr_int(k->node, "blocksize", 1);
    const int64_t c = in[1] / (b * b);
    if (strcmp(tide_node_attr_string(k->node, "mode", "DCR"), "DCR") == 0)
        permute_six(a, (const int64_t[6]){in[0], b, b, c, in[2], in[3]}, (const int32_t[6]){0, 3, 4, 1, 5, 2});
    else
        permute_six(a, (const int64_t[6]){in[0], c, b, b, in[2], in[3]}, (const int32_t[6]){0, 1, 4, 2, 5, 3});
    return TIDE_OK;
}

static tide_status space_to_depth_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)err;
    const int64_t *const in = a->in[0].shape.dims;
    const int64_t b = tide_node_attr_int(k->node, "blocksize", 1);
    permute_six(a, (const int64_t[6]){in[0], in[1], in[2] / b, b, in[3] / b, b}, (const int32_t[6]){0, 3, 5, 1, 2, 4});
    return TIDE_OK;
}

const tide_op_def tide_op_depth_to_space = {
    .name = "DepthToSpace",
    .domain = "",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "blocksize"), TIDE_ATTR(STRING, "mode", .since = 11)),
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = depth_to_space_infer,
    .run = depth_to_space_run};
const tide_op_def tide_op_space_to_depth = {.name = "SpaceToDepth",
                                            .domain = "",
                                            .since = 1,
                                            .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "blocksize")),
                                            .min_inputs = 1,
                                            .max_inputs = 1,
                                            .min_outputs = 1,
                                            .max_outputs = 1,
                                            .infer = space_to_depth_infer,
                                            .run = space_to_depth_run};
