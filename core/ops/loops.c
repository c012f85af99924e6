// SPDX-License-Identifier: MIT
//
// loops: merging and walking a nest of strided loops. Used by the elementwise operators and by strided_copy.
#include "core/ops/loops.h"

#include "core/ops/op_util.h"

/// Loop `d` can continue the one before it (`last`): stepping that one equals dims[d] steps of this one everywhere.
static bool mergeable(const tide_loops *l, int32_t last, int64_t dim, const int64_t *const *strides, int32_t d) {
    for (int32_t op = 0; op < l->n_operands; op++)
        if (l->strides[op][last] != strides[op][d] * dim) return false;
    return true;
}

bool tide_loops_init(tide_loops *l, int32_t rank, const int64_t *dims, int32_t n_operands,
                     const int64_t *const *strides) {
    l->rank = 0;
    l->n_operands = n_operands;
    for (int32_t d = 0; d < rank; d++) {
        if (dims[d] == 0) return false;
        if (dims[d] == 1) continue;
        const bool merge = l->rank > 0 && mergeable(l, l->rank - 1, dims[d], strides, d);
        const int32_t to = merge ? l->rank - 1 : l->rank++;
        l->dims[to] = merge ? l->dims[to] * dims[d] : dims[d];
        for (int32_t op = 0; op < n_operands; op++) l->strides[op][to] = strides[op][d];
    }
    if (l->rank == 0) { // one element
        l->rank = 1;
        l->dims[0] = 1;
        for (int32_t op = 0; op < n_operands; op++) l->strides[op][0] = 1;
    }
    return true;
}

bool tide_loops_init_broadcast(tide_loops *l, const tide_operand *out, int32_t n_inputs,
                               const tide_operand *const *inputs) {
    int64_t strides[TIDE_LOOPS_MAX_OPERANDS][TIDE_MAX_RANK];
    const int64_t *rows[TIDE_LOOPS_MAX_OPERANDS];
    tide_shape_strides(&out->shape, strides[0]);
    rows[0] = strides[0];
    for (int32_t i = 0; i < n_inputs; i++) {
        tide_op_broadcast_strides(&inputs[i]->shape, &out->shape, strides[i + 1]);
        rows[i + 1] = strides[i + 1];
    }
    return tide_loops_init(l, out->shape.rank, out->shape.dims, n_inputs + 1, rows);
}

bool tide_loops_next(const tide_loops *l, int32_t n_inner, tide_loops_pos *pos) {
    for (int32_t d = l->rank - n_inner - 1; d >= 0; d--) {
        if (++pos->index[d] < l->dims[d]) {
            for (int32_t op = 0; op < l->n_operands; op++) pos->at[op] += l->strides[op][d];
            return true;
        }
        pos->index[d] = 0;
        for (int32_t op = 0; op < l->n_operands; op++) pos->at[op] -= l->strides[op][d] * (l->dims[d] - 1);
    }
    return false;
}
