// SPDX-License-Identifier: MIT
//
// Bounds of what is sized by calculated numbers. See number_bounds.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/ops/bounds_util.h"
#include "core/ops/number_bounds.h"
#include "core/ops/op_util.h"

/// The numbers of an operand as its content; room for all of them.
typedef union content {
    int64_t wide[TIDE_INTERVALS_MAX];
    int32_t narrow[TIDE_INTERVALS_MAX];
} content;

/// False: they are of another type than those of shapes.
static bool fill(content *to, tide_dtype dtype, const tide_intervals *v, bool is_most) {
    for (size_t i = 0; i < v->n; i++) {
        const int64_t number = is_most ? v->most[i] : v->least[i];
        if (dtype == TIDE_I64)
            to->wide[i] = number;
        else if (dtype == TIDE_I32)
            to->narrow[i] = (int32_t)number;
        else
            return false;
    }
    return true;
}

/// What infer() says where the numbers that are not known are the largest, or the smallest, and so are the operands.
static bool ask(const tide_bounds *x, bool is_most, tide_operand *out) {
    tide_operand *in = tide_host_calloc(x->n_in + 1, sizeof *in);
    content *contents = tide_host_calloc(x->n_in + 1, sizeof *contents);
    bool is_good = in != NULL && contents != NULL;
    for (size_t k = 0; is_good && k < x->n_in; k++) {
        in[k] = x->in[k];
        if (!tide_operand_present(&in[k])) continue;
        if (!is_most) in[k].shape = x->least[k];
        is_good = tide_shape_operand_bytes(&in[k].shape, in[k].dtype, &in[k].size_bytes, NULL) == TIDE_OK;
        if (in[k].data != NULL || tide_bounds_numbers(x, k)->n == 0) continue;
        if (fill(&contents[k], in[k].dtype, tide_bounds_numbers(x, k), is_most)) in[k].data = &contents[k];
    }
    const tide_infer q = {.node = x->node, .in = in, .n_in = x->n_in, .out = out, .n_out = x->n_out};
    is_good = is_good && x->node->def->infer(&q, NULL) == TIDE_OK && tide_shape_known(&out->shape);
    tide_host_free(in);
    tide_host_free(contents);
    return is_good;
}

bool tide_bound_by_numbers(tide_bounds *x) {
    tide_operand most = {0}, least = {0};
    for (size_t k = 0; k < x->n_in; k++)
        if (x->state[k] != TIDE_BOUND_SHAPE) return false;
    if (x->n_out != 1 || !ask(x, true, &most)) return false;
    const bool has_least = ask(x, false, &least) && least.shape.rank == most.shape.rank;
    if (!has_least) least.shape = tide_shape_make(most.shape.rank, (int64_t[TIDE_MAX_RANK]){0});
    for (int32_t d = 0; d < most.shape.rank; d++)
        if (least.shape.dims[d] > most.shape.dims[d]) least.shape.dims[d] = 0;
    tide_bounds_set(x, 0, most.dtype, most.shape.rank, most.shape.dims, least.shape.dims);
    return true;
}

/// Elements from `start` to before `limit`; past what 64 bits hold: INT64_MAX.
static int64_t count(int64_t start, int64_t limit, int64_t step) {
    int64_t span;
    if (limit <= start) return 0;
    return __builtin_sub_overflow(limit, start, &span) ? INT64_MAX : (span - 1) / step + 1;
}

bool tide_bound_range(tide_bounds *x) {
    if (x->n_in != 3 || x->n_out != 1) return false;
    for (size_t k = 0; k < 3; k++)
        if (!tide_bounds_has_shape(x, k) || tide_bounds_numbers(x, k)->n != 1 || x->in[k].dtype != x->in[0].dtype)
            return false;
    const tide_intervals *start = tide_bounds_numbers(x, 0), *limit = tide_bounds_numbers(x, 1),
                         *delta = tide_bounds_numbers(x, 2);
    int64_t most, least = 0;
    if (delta->least[0] > 0) {
        most = count(start->least[0], limit->most[0], delta->least[0]);
        least = count(start->most[0], limit->least[0], delta->most[0]);
    } else if (delta->most[0] < 0 && delta->least[0] != INT64_MIN) {
        most = count(limit->least[0], start->most[0], -delta->most[0]);
        least = count(limit->most[0], start->least[0], -delta->least[0]);
    } else {
        return false;
    }
    if (most == INT64_MAX) return false;
    tide_bounds_set(x, 0, x->in[0].dtype, 1, &most, &least);
    return true;
}

/// An extent that is more than 1 stays what it is, and one of 1 becomes what the shape says.
bool tide_bound_expand(tide_bounds *x) {
    if (!tide_bounds_has_shape(x, 0) || !tide_bounds_is_exact(x, 1) || x->in[1].shape.rank != 1) return false;
    const tide_intervals *to = tide_bounds_numbers(x, 1);
    const int32_t wanted = (int32_t)to->n, own = x->in[0].shape.rank, rank = wanted > own ? wanted : own;
    if (wanted > TIDE_MAX_RANK || (wanted == 0 && x->in[1].shape.dims[0] != 0)) return false;
    tide_shape most = {.rank = rank}, least = {.rank = rank};
    for (int32_t d = 0; d < rank; d++) {
        const int32_t a = d - (rank - own), b = d - (rank - wanted);
        const int64_t own_most = a >= 0 ? x->in[0].shape.dims[a] : 1, own_least = a >= 0 ? x->least[0].dims[a] : 1;
        const int64_t to_most = b >= 0 ? to->most[b] : 1, to_least = b >= 0 ? to->least[b] : 1;
        most.dims[d] = own_most > to_most ? own_most : to_most;
        if (own_least > 1) most.dims[d] = own_most; // the shape says the same, or 1
        least.dims[d] = own_least > 1 ? own_least : own_most == 1 && own_least == 1 && to_least > 0 ? to_least : 0;
    }
    tide_bounds_set(x, 0, x->in[0].dtype, rank, most.dims, least.dims);
    return true;
}
