// SPDX-License-Identifier: MIT
//
// Between which numbers a result lies, by rule of its operator. See number_bounds.h.
//
//     Shape of at most [2x256]  ->  [2, 2], [0, 256]      Gather of 1  ->  [0, 256]      Add 1  ->  [1, 257]
//
// What could overflow becomes all that the type can hold: kernels wrap there.
#include "core/ops/number_bounds.h"

#include <string.h>

#include "core/ops/bounds_util.h"
#include "core/ops/op_util.h"

typedef struct interval {
    int64_t least, most;
} interval;

/// False: it is past what 64 bits hold.
typedef bool (*number_rule)(interval a, interval b, interval *out);

static interval at(const tide_intervals *v, size_t i) {
    const size_t k = v->n == 1 ? 0 : i;
    return (interval){v->least[k], v->most[k]};
}

/// Where `v` leaves the type's range the number wraps: all that it can be stays.
static void put(tide_bounds *x, size_t i, interval v) {
    tide_intervals *out = &x->out_numbers[0];
    if (i >= out->n || v.least > v.most || v.least < out->least[i] || v.most > out->most[i]) return;
    out->least[i] = v.least;
    out->most[i] = v.most;
}

// ---- arithmetic, element by element ----

static bool add(interval a, interval b, interval *out) {
    return !__builtin_add_overflow(a.least, b.least, &out->least) &&
           !__builtin_add_overflow(a.most, b.most, &out->most);
}

static bool sub(interval a, interval b, interval *out) {
    return !__builtin_sub_overflow(a.least, b.most, &out->least) &&
           !__builtin_sub_overflow(a.most, b.least, &out->most);
}

/// The least and the most are at the ends.
static bool of_corners(interval a, interval b, bool (*calculate)(int64_t, int64_t, int64_t *), interval *out) {
    const int64_t as[] = {a.least, a.most}, bs[] = {b.least, b.most};
    for (int i = 0; i < 4; i++) {
        int64_t v;
        if (!calculate(as[i / 2], bs[i % 2], &v)) return false;
        if (i == 0 || v < out->least) out->least = v;
        if (i == 0 || v > out->most) out->most = v;
    }
    return true;
}

static bool product(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static bool mul(interval a, interval b, interval *out) { return of_corners(a, b, product, out); }

static bool quotient(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *out = a / b; // as the kernel does, towards 0
    return true;
}
static bool div_by(interval a, interval b, interval *out) {
    return (b.least > 0 || b.most < 0) && of_corners(a, b, quotient, out);
}

static bool smaller(interval a, interval b, interval *out) {
    *out = (interval){a.least < b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
    return true;
}
static bool larger(interval a, interval b, interval *out) {
    *out = (interval){a.least > b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
    return true;
}
static bool either(interval a, interval b, interval *out) {
    *out = (interval){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
    return true;
}

/// Operands of one element, or of as many as the result has.
static bool fits(const tide_bounds *x, size_t k) {
    return tide_bounds_numbers(x, k)->n == 1 ||
           (tide_bounds_numbers(x, k)->n == x->out_numbers[0].n && x->in[k].shape.rank <= 1);
}

static void fold(tide_bounds *x, size_t from, number_rule rule) {
    for (size_t k = from; k < x->n_in; k++)
        if (!fits(x, k)) return;
    for (size_t i = 0; i < x->out_numbers[0].n && from < x->n_in; i++) {
        interval v = at(tide_bounds_numbers(x, from), i);
        bool is_good = true;
        for (size_t k = from + 1; k < x->n_in && is_good; k++) is_good = rule(v, at(tide_bounds_numbers(x, k), i), &v);
        if (is_good) put(x, i, v);
    }
}

static void of_add(tide_bounds *x) { fold(x, 0, add); }
static void of_sub(tide_bounds *x) { fold(x, 0, sub); }
static void of_mul(tide_bounds *x) { fold(x, 0, mul); }
static void of_div(tide_bounds *x) { fold(x, 0, div_by); }
static void of_min(tide_bounds *x) { fold(x, 0, smaller); }
static void of_max(tide_bounds *x) { fold(x, 0, larger); }
static void of_where(tide_bounds *x) { fold(x, 1, either); }

static void of_neg(tide_bounds *x) {
    for (size_t i = 0; fits(x, 0) && i < x->out_numbers[0].n; i++) {
        interval v;
        if (sub((interval){0, 0}, at(tide_bounds_numbers(x, 0), i), &v)) put(x, i, v);
    }
}

/// From opset 11 on the ends are operands, each of which may be left out. The upper one wins.
static void of_clip(tide_bounds *x) {
    if (x->node->opset < 11 || !fits(x, 0)) return;
    for (size_t k = 1; k < x->n_in; k++)
        if (tide_bounds_has_in(x, k) && tide_bounds_numbers(x, k)->n != 1) return;
    for (size_t i = 0; i < x->out_numbers[0].n; i++) {
        interval v = at(tide_bounds_numbers(x, 0), i);
        if (tide_bounds_numbers(x, 1)->n == 1) larger(v, at(tide_bounds_numbers(x, 1), 0), &v);
        if (tide_bounds_numbers(x, 2)->n == 1) smaller(v, at(tide_bounds_numbers(x, 2), 0), &v);
        put(x, i, v);
    }
}

// ---- the same numbers in another place ----

/// Cast too: what the type does not hold is not put.
static void same(tide_bounds *x) {
    const tide_intervals *v = tide_bounds_numbers(x, 0);
    const bool to_bool = x->out[0].dtype == TIDE_BOOL && x->in[0].dtype != TIDE_BOOL;
    if (v->n != x->out_numbers[0].n || to_bool) return;
    for (size_t i = 0; i < v->n; i++) put(x, i, at(v, i));
}

static void of_concat(tide_bounds *x) {
    size_t i = 0;
    if (x->out[0].shape.rank != 1) return;
    for (size_t k = 0; k < x->n_in; k++) {
        const tide_intervals *v = tide_bounds_numbers(x, k);
        const bool is_empty = tide_bounds_is_exact(x, k) && x->in[k].shape.dims[0] == 0;
        if (v->n == 0 && !is_empty) return;
        for (size_t j = 0; j < v->n; j++) put(x, i++, at(v, j));
    }
}

/// `n` numbers, each of which is somewhere in `v`.
static void some_of(tide_bounds *x, const tide_intervals *v) {
    interval all = at(v, 0);
    for (size_t i = 1; i < v->n; i++) either(all, at(v, i), &all);
    for (size_t i = 0; i < x->out_numbers[0].n; i++) put(x, i, all);
}

static void of_gather(tide_bounds *x) {
    const tide_intervals *v = tide_bounds_numbers(x, 0), *index = tide_bounds_numbers(x, 1);
    if (v->n == 0 || x->in[0].shape.rank != 1) return;
    if (index->n != x->out_numbers[0].n) {
        some_of(x, v);
        return;
    }
    for (size_t i = 0; i < index->n; i++) {
        int64_t k = index->least[i];
        if (index->most[i] != k) {
            some_of(x, v);
            return;
        }
        if (k < 0) k += (int64_t)v->n;
        if (k >= 0 && k < (int64_t)v->n) put(x, i, at(v, (size_t)k));
    }
}

/// Of a list, by constants: as many numbers as infer() says, from the first one on.
static void of_slice(tide_bounds *x) {
    const tide_intervals *v = tide_bounds_numbers(x, 0), *start = tide_bounds_numbers(x, 1),
                         *step = tide_bounds_numbers(x, 4);
    if (v->n == 0 || x->in[0].shape.rank != 1) return;
    const bool is_old = x->node->opset < 10, has_step = !is_old && tide_bounds_has_in(x, 4);
    size_t n = 0;
    const int64_t *list = is_old ? tide_node_attr_ints(x->node, "starts", &n) : NULL;
    const bool is_known = is_old ? n == 1 : start->n == 1 && start->least[0] == start->most[0];
    if (!is_known || (has_step && (step->n != 1 || step->least[0] != step->most[0]))) {
        some_of(x, v);
        return;
    }
    const int64_t by = has_step ? step->least[0] : 1, len = (int64_t)v->n;
    int64_t k = is_old ? list[0] : start->least[0];
    if (k < 0) k = k < -len ? 0 : k + len;
    if (k >= len) k = by < 0 ? len - 1 : len;
    for (size_t i = 0; i < x->out_numbers[0].n && k >= 0 && k < len; i++) {
        put(x, i, at(v, (size_t)k));
        if (__builtin_add_overflow(k, by, &k)) return;
    }
}

// ---- numbers that come of sizes ----

static void of_shape(tide_bounds *x) {
    const int64_t rank = x->in[0].shape.rank;
    int64_t start = tide_node_attr_int(x->node, "start", 0);
    if (!tide_bounds_has_shape(x, 0)) return;
    if (start < 0) start = start < -rank ? 0 : start + rank;
    for (size_t i = 0; i < x->out_numbers[0].n && start + (int64_t)i < rank; i++)
        put(x, i, (interval){x->least[0].dims[start + (int64_t)i], x->in[0].shape.dims[start + (int64_t)i]});
}

static void of_size(tide_bounds *x) {
    if (x->state[0] == TIDE_BOUND_NONE) return;
    const int64_t least = x->state[0] == TIDE_BOUND_SHAPE ? tide_op_numel(&x->least[0]) : 0;
    put(x, 0, (interval){least, tide_op_numel(&x->in[0].shape)});
}

/// The place of an element along an axis: 0 … extent - 1.
static void of_place(tide_bounds *x) {
    int32_t axis;
    if (!tide_bounds_has_shape(x, 0) || x->in[0].shape.rank == 0) return;
    if (tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), x->in[0].shape.rank, &axis, NULL) != TIDE_OK)
        return;
    for (size_t i = 0; i < x->out_numbers[0].n; i++) put(x, i, (interval){0, x->in[0].shape.dims[axis] - 1});
}

/// A list to one number. Without axes some versions reduce nothing.
static void reduce(tide_bounds *x, number_rule rule) {
    const tide_intervals *v = tide_bounds_numbers(x, 0);
    if (v->n == 0 || x->in[0].shape.rank != 1 || x->out_numbers[0].n != 1) return;
    interval all = at(v, 0);
    for (size_t i = 1; i < v->n; i++)
        if (!rule(all, at(v, i), &all)) return;
    put(x, 0, all);
}

static void of_reduce_sum(tide_bounds *x) { reduce(x, add); }
static void of_reduce_prod(tide_bounds *x) { reduce(x, mul); }
static void of_reduce_min(tide_bounds *x) { reduce(x, smaller); }
static void of_reduce_max(tide_bounds *x) { reduce(x, larger); }

// ---- the table ----

void tide_op_number_bounds(tide_bounds *x) {
    static const struct {
        const char *op;
        void (*rule)(tide_bounds *x);
    } rules[] = {{"Add", of_add},
                 {"ArgMax", of_place},
                 {"ArgMin", of_place},
                 {"Cast", same},
                 {"Clip", of_clip},
                 {"Concat", of_concat},
                 {"Div", of_div},
                 {"Flatten", same},
                 {"Gather", of_gather},
                 {"Identity", same},
                 {"Max", of_max},
                 {"Min", of_min},
                 {"Mul", of_mul},
                 {"Neg", of_neg},
                 {"ReduceMax", of_reduce_max},
                 {"ReduceMin", of_reduce_min},
                 {"ReduceProd", of_reduce_prod},
                 {"ReduceSum", of_reduce_sum},
                 {"Reshape", same},
                 {"Shape", of_shape},
                 {"Size", of_size},
                 {"Slice", of_slice},
                 {"Squeeze", same},
                 {"Sub", of_sub},
                 {"Unsqueeze", same},
                 {"Where", of_where}};
    if (x->n_out == 0 || x->n_in == 0 || x->out_numbers == NULL || x->out_numbers[0].n == 0 ||
        x->node->domain[0] != '\0')
        return;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].op, x->node->op_type) == 0) rules[i].rule(x);
}
