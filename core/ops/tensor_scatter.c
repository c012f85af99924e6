// SPDX-License-Identifier: MIT
//
// TensorScatter (opset 24): a cache of fixed size with an update written into it, from write_indices[item] on along
// `axis`; in circular mode it goes on at the front. May work in place: then only the update is written.
#include <inttypes.h>
#include <string.h>

#include "core/ops/data_util.h"
#include "core/ops/op_list.h"
#include "core/ops/op_util.h"

enum { CACHE, UPDATE, INDICES };

static tide_status read_node(const tide_node *node, const tide_shape *cache, int32_t *axis, bool *circular,
                             tide_error *err) {
    const char *mode = tide_node_attr_string(node, "mode", "linear");
    *circular = strcmp(mode, "circular") == 0;
    if (!*circular && strcmp(mode, "linear") != 0)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "mode is '%s', must be linear or circular", mode);
    TIDE_TRY(tide_op_axis(node, tide_node_attr_int(node, "axis", -2), cache->rank, axis, err));
    return *axis > 0 ? TIDE_OK : TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "axis 0 is that of the items");
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_shape *cache = &x->in[CACHE].shape, *update = &x->in[UPDATE].shape;
    int32_t axis;
    bool circular;
    if (tide_dtype_size(x->in[CACHE].dtype) == 0) return tide_data_no_dtype(x->node, x->in[CACHE].dtype, err);
    TIDE_TRY(tide_data_same_dtype(x, CACHE, UPDATE, err));
    TIDE_TRY(tide_op_require_rank(x->node, &x->in[CACHE], "past_cache", 2, TIDE_MAX_RANK, err));
    TIDE_TRY(read_node(x->node, cache, &axis, &circular, err));
    tide_shape want = *cache;
    if (update->rank == cache->rank && update->dims[axis] <= cache->dims[axis]) want.dims[axis] = update->dims[axis];
    TIDE_TRY(tide_op_require_shape(x->node, &x->in[UPDATE], "update", &want, err));
    if (tide_op_has_in(x, INDICES)) {
        TIDE_TRY(tide_op_require_dtype(x->node, &x->in[INDICES], "write_indices", TIDE_I64, err));
        TIDE_TRY(
            tide_op_require_shape(x->node, &x->in[INDICES], "write_indices", &(tide_shape){1, {cache->dims[0]}}, err));
    }
    return tide_op_infer_same(x, err);
}

/// Where the update of an item begins.
static tide_status begin_of(const tide_kernel *k, const tide_kernel_args *args, int64_t item, int64_t most,
                            int64_t *out, tide_error *err) {
    *out = 0;
    if (args->n_in <= INDICES || !tide_operand_present(&args->in[INDICES])) return TIDE_OK;
    *out = ((const int64_t *)args->in[INDICES].data)[item];
    if (*out >= 0 && *out <= most) return TIDE_OK;
    return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME,
                        "write_indices[%" PRId64 "] is %" PRId64 ", must be 0 to %" PRId64, item, *out, most);
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *args, tide_error *err) {
    const tide_operand *cache = &args->in[CACHE], *update = &args->in[UPDATE];
    const size_t elem = tide_dtype_size(cache->dtype);
    int32_t axis;
    bool circular;
    TIDE_TRY(read_node(k->node, &cache->shape, &axis, &circular, err));
    if (args->out[0].size_bytes == 0) return TIDE_OK;
    if (args->out[0].data != cache->data) memcpy(args->out[0].data, cache->data, args->out[0].size_bytes);
    const int64_t length = cache->shape.dims[axis], n = update->shape.dims[axis];
    const int64_t outer = tide_op_count(&cache->shape, 1, axis),
                  inner = tide_op_count(&cache->shape, axis + 1, cache->shape.rank);
    for (int64_t item = 0; item < cache->shape.dims[0]; item++) {
        int64_t begin;
        TIDE_TRY(begin_of(k, args, item, circular ? length - 1 : length - n, &begin, err));
        for (int64_t o = item * outer; o < (item + 1) * outer; o++)
            for (int64_t i = 0; i < n; i++)
                memcpy(tide_data_at(args->out[0].data, (o * length + (begin + i) % length) * inner, elem),
                       tide_data_const_at(update->data, (o * n + i) * inner, elem), (size_t)inner * elem);
    }
    return TIDE_OK;
}

const tide_op_def tide_op_tensor_scatter = {.name = "TensorScatter",
                                            .domain = "",
                                            .since = 24,
                                            .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(STRING, "mode")),
                                            .inplace_inputs = 1u << CACHE,
                                            .min_inputs = 2,
                                            .max_inputs = 3,
                                            .min_outputs = 1,
                                            .max_outputs = 1,
                                            .infer = infer,
                                            .run = run};
