// SPDX-License-Identifier: MIT
//
// Where: element by element from X or Y as the condition says, with numpy's broadcasting; any dtype, since only bytes
// move. Output 0 may overwrite any input that has its bytes.
#include "core/ops/data_util.h"
#include "core/ops/loops.h"
#include "core/ops/op_util.h"

static tide_status infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_op_require_dtype(x->node, &x->in[0], "condition", TIDE_BOOL, err));
    TIDE_TRY(tide_data_same_dtype(x, 1, 2, err));
    tide_shape out;
    TIDE_TRY(tide_op_broadcast(x->node, &x->in[0].shape, &x->in[1].shape, &out, err));
    TIDE_TRY(tide_op_broadcast(x->node, &out, &x->in[2].shape, &out, err));
    return tide_op_set_out(x, 0, x->in[1].dtype, out.rank, out.dims, err);
}

typedef void (*row_fn)(void *out, const uint8_t *c, const void *x, const void *y, int64_t n, const int64_t *strides);

#define DEFINE_ROW(fn, T)                                                                                              \
    static void fn(void *out, const uint8_t *c, const void *in_x, const void *in_y, int64_t n, const int64_t *s) {     \
        T *const o = out;                                                                                              \
        const T *const x = in_x;                                                                                       \
        const T *const y = in_y;                                                                                       \
        for (int64_t i = 0; i < n; i++) o[i] = c[i * s[0]] != 0 ? x[i * s[1]] : y[i * s[2]];                           \
    }
DEFINE_ROW(row_1, uint8_t)
DEFINE_ROW(row_2, uint16_t)
DEFINE_ROW(row_4, uint32_t)
DEFINE_ROW(row_8, uint64_t)

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    (void)k, (void)err;
    tide_loops l;
    const tide_operand *const inputs[] = {&a->in[0], &a->in[1], &a->in[2]};
    if (!tide_loops_init_broadcast(&l, &a->out[0], 3, inputs)) return TIDE_OK;
    const size_t elem = tide_dtype_size(a->out[0].dtype);
    const row_fn row = elem == 1 ? row_1 : elem == 2 ? row_2 : elem == 4 ? row_4 : row_8;
    const int32_t inner = l.rank - 1;
    const int64_t strides[] = {l.strides[1][inner], l.strides[2][inner], l.strides[3][inner]};
    tide_loops_pos pos = {0};
    do
        row(tide_data_at(a->out[0].data, pos.at[0], elem), tide_data_const_at(a->in[0].data, pos.at[1], 1),
            tide_data_const_at(a->in[1].data, pos.at[2], elem), tide_data_const_at(a->in[2].data, pos.at[3], elem),
            l.dims[inner], strides);
    while (tide_loops_next(&l, 1, &pos));
    return TIDE_OK;
}

const tide_op_def tide_op_where = {.name = "Where",
                                   .domain = "",
                                   .since = 9,
                                   .inplace_inputs = 7u,
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .infer = infer,
                                   .run = run};
