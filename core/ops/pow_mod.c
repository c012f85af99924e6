// SPDX-License-Identifier: MIT
//
// Pow and Mod: binary operators whose arithmetic needs a function. Pow takes a base and an exponent of two types and
// answers in the base's; Mod is numpy's `mod` (sign of the divisor) or, with fmod = 1, C's fmod (sign of the
// dividend).
#include <math.h>

#include "core/ops/data_util.h"
#include "core/ops/loops.h"
#include "core/ops/op_util.h"

typedef void (*element_fn)(const tide_kernel_args *a, int64_t out_i, int64_t a_i, int64_t b_i);

static void for_each(const tide_kernel_args *a, const tide_loops *l, element_fn f) {
    const int32_t inner = l->rank - 1;
    tide_loops_pos pos = {0};
    do
        for (int64_t i = 0; i < l->dims[inner]; i++)
            f(a, pos.at[0] + i * l->strides[0][inner], pos.at[1] + i * l->strides[1][inner],
              pos.at[2] + i * l->strides[2][inner]);
    while (tide_loops_next(l, 1, &pos));
}

// ---- Pow ----

static tide_status pow_infer(const tide_infer *x, tide_error *err) {
    for (int i = 0; i < 2; i++)
        if (x->in[i].dtype == TIDE_BOOL) return tide_data_no_dtype(x->node, x->in[i].dtype, err);
    tide_shape out, second;
    TIDE_TRY(tide_op_second_shape(x->node, &x->in[0].shape, &x->in[1].shape, &second, err));
    TIDE_TRY(tide_op_broadcast(x->node, &x->in[0].shape, &second, &out, err));
    return tide_op_set_out(x, 0, x->in[0].dtype, out.rank, out.dims, err);
}

/// Squares and cubes are most of what models ask for; powf would be a hundred times slower.
static void pow_row_f32(float *o, const float *x, float e, int64_t n) {
    if (e == 2.0f) {
        TIDE_IVDEP
        for (int64_t i = 0; i < n; i++) o[i] = x[i] * x[i];
    } else if (e == 3.0f) {
        TIDE_IVDEP
        for (int64_t i = 0; i < n; i++) o[i] = x[i] * x[i] * x[i];
    } else {
        for (int64_t i = 0; i < n; i++) o[i] = powf(x[i], e);
    }
}

/// base^exponent in the ring of 64-bit integers; a negative exponent leaves 0 except for 1 and -1.
static uint64_t pow_int(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? UINT64_MAX : 1) : 0;
    uint64_t result = 1;
    uint64_t square = (uint64_t)base;
    for (uint64_t e = (uint64_t)exponent; e != 0; e >>= 1) {
        if (e & 1) result *= square;
        square *= square;
    }
    return result;
}

static void store_wrapped(tide_dtype dtype, void *base, int64_t i, uint64_t v) {
    switch (dtype) {
#define XX(DT, sfx, S, C)                                                                                              \
    case TIDE_##DT:                                                                                                    \
        ((S *)base)[i] = (S)v;                                                                                         \
        return;
        TIDE_TYPES_INT(XX)
#undef XX
    default:
        return;
    }
}

static void pow_element(const tide_kernel_args *a, int64_t out_i, int64_t a_i, int64_t b_i) {
    const tide_dtype base = a->in[0].dtype;
    const tide_dtype exponent = a->in[1].dtype;
    if (!tide_dtype_is_float(base) && !tide_dtype_is_float(exponent)) {
        store_wrapped(
            base, a->out[0].data, out_i,
            pow_int(tide_data_load_i64(base, a->in[0].data, a_i), tide_data_load_i64(exponent, a->in[1].data, b_i)));
        return;
    }
    const double x = tide_data_load_f64(base, a->in[0].data, a_i);
    const double e = tide_data_load_f64(exponent, a->in[1].data, b_i);
    const double y = base == TIDE_F64 ? pow(x, e) : (double)powf((float)x, (float)e);
    tide_data_store_f64(base, a->out[0].data, out_i, tide_dtype_is_float(base) ? y : trunc(pow(x, e)));
}

static tide_status pow_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    tide_loops l;
    tide_operand second = a->in[1];
    const tide_operand *const inputs[] = {&a->in[0], &second};
    TIDE_TRY(tide_op_second_shape(k->node, &a->in[0].shape, &a->in[1].shape, &second.shape, err));
    if (!tide_loops_init_broadcast(&l, &a->out[0], 2, inputs)) return TIDE_OK;
    const bool scalar = tide_op_numel(&a->in[1].shape) == 1;
    if (a->in[0].dtype == TIDE_F32 && scalar) {
        const float e = (float)tide_data_load_f64(a->in[1].dtype, a->in[1].data, 0);
        pow_row_f32(a->out[0].data, a->in[0].data, e, tide_op_numel(&a->out[0].shape));
        return TIDE_OK;
    }
    for_each(a, &l, pow_element);
    return TIDE_OK;
}

const tide_op_def tide_op_pow = {
    .name = "Pow",
    .domain = "",
    .since = 1,
    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis", .until = 6), TIDE_ATTR(INT, "broadcast", .until = 6)),
    .inplace_inputs = 3u,
    .min_inputs = 2,
    .max_inputs = 2,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = pow_infer,
    .run = pow_run};

// ---- Mod ----

static tide_status mod_infer(const tide_infer *x, tide_error *err) {
    TIDE_TRY(tide_data_same_dtype(x, 0, 1, err));
    const tide_dtype dtype = x->in[0].dtype;
    if (dtype == TIDE_BOOL) return tide_data_no_dtype(x->node, dtype, err);
    if (tide_dtype_is_float(dtype) && tide_node_attr_int(x->node, "fmod", 0) == 0)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "fmod must be 1 for %s", tide_dtype_name(dtype));
    tide_shape out;
    TIDE_TRY(tide_op_broadcast(x->node, &x->in[0].shape, &x->in[1].shape, &out, err));
    return tide_op_set_out(x, 0, dtype, out.rank, out.dims, err);
}

/// The remainder with the dividend's sign; the lowest number by -1 must not trap.
static int64_t rem_i64(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
static int64_t mod_i64(int64_t a, int64_t b) {
    const int64_t r = rem_i64(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static void mod_element(const tide_kernel_args *a, int64_t out_i, int64_t a_i, int64_t b_i) {
    const tide_dtype dtype = a->in[0].dtype;
    if (tide_dtype_is_float(dtype)) {
        tide_data_store_f64(
            dtype, a->out[0].data, out_i,
            fmod(tide_data_load_f64(dtype, a->in[0].data, a_i), tide_data_load_f64(dtype, a->in[1].data, b_i)));
        return;
    }
    if (dtype == TIDE_U64) {
        const uint64_t *const x = a->in[0].data;
        const uint64_t *const y = a->in[1].data;
        ((uint64_t *)a->out[0].data)[out_i] = x[a_i] % y[b_i];
        return;
    }
    store_wrapped(dtype, a->out[0].data, out_i,
                  (uint64_t)mod_i64(tide_data_load_i64(dtype, a->in[0].data, a_i),
                                    tide_data_load_i64(dtype, a->in[1].data, b_i)));
}

static void fmod_int_element(const tide_kernel_args *a, int64_t out_i, int64_t a_i, int64_t b_i) {
    const tide_dtype dtype = a->in[0].dtype;
    store_wrapped(dtype, a->out[0].data, out_i,
                  (uint64_t)rem_i64(tide_data_load_i64(dtype, a->in[0].data, a_i),
                                    tide_data_load_i64(dtype, a->in[1].data, b_i)));
}

static tide_status mod_run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    tide_loops l;
    const tide_operand *const inputs[] = {&a->in[0], &a->in[1]};
    if (!tide_loops_init_broadcast(&l, &a->out[0], 2, inputs)) return TIDE_OK;
    const tide_dtype dtype = a->in[0].dtype;
    const bool whole = !tide_dtype_is_float(dtype);
    for (int64_t i = 0; whole && i < tide_op_numel(&a->in[1].shape); i++)
        if (tide_data_load_i64(dtype, a->in[1].data, i) == 0)
            return TIDE_OP_FAIL(err, k->node, TIDE_ERR_RUNTIME, "integer division by zero (element %lld of input 1)",
                                (long long)i);
    const bool by_dividend = tide_node_attr_int(k->node, "fmod", 0) != 0;
    for_each(a, &l, whole && by_dividend && dtype != TIDE_U64 ? fmod_int_element : mod_element);
    return TIDE_OK;
}

const tide_op_def tide_op_mod = {.name = "Mod",
                                 .domain = "",
                                 .since = 10,
                                 .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "fmod")),
                                 .inplace_inputs = 3u,
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .min_outputs = 1,
                                 .max_outputs = 1,
                                 .infer = mod_infer,
                                 .run = mod_run};
