// SPDX-License-Identifier: MIT
//
// Rules of bounds, by the operator's name. See bounds.h.
//
//     by_infer      no extent of a result falls when one of an operand rises: what infer() says of the largest operands
//                   is the bound, and what it says of the smallest ones the least extents
//     elementwise   the same, but operands may differ by broadcasting: the largest of each extent
//     by_numbers    as by_infer, of the largest and the smallest numbers that the size is made of (number_bounds.h)
//     others        what the operator can choose: elements, boxes, a part of an axis
#include "core/ops/bounds.h"

#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/ops/bounds_util.h"
#include "core/ops/data_util.h"
#include "core/ops/number_bounds.h"
#include "core/ops/op_util.h"

static void set_count(tide_bounds *x, tide_dtype dtype, int64_t n) {
    x->out[0].dtype = dtype;
    x->out[0].shape = tide_shape_make(1, &n);
    x->out_least[0] = tide_shape_make(1, &(int64_t){0});
    x->out_state[0] = TIDE_BOUND_COUNT;
}

// ---- what infer() says ----

static bool ask(const tide_bounds *x, const tide_operand *in, tide_operand *out) {
    const tide_infer q = {.node = x->node, .in = in, .n_in = x->n_in, .out = out, .n_out = x->n_out};
    if (x->node->def->infer(&q, NULL) != TIDE_OK) return false;
    for (size_t k = 0; k < x->n_out; k++) {
        if (x->node->outputs[k] == TIDE_NO_VALUE) continue;
        if (out[k].dtype == TIDE_DTYPE_UNDEFINED || !tide_shape_known(&out[k].shape)) return false;
    }
    return true;
}

/// Operands as small as they can be, and what is made of them where anything is.
static void ask_least(tide_bounds *x) {
    tide_operand *in = tide_host_calloc(x->n_in + 1, sizeof *in), *out = tide_host_calloc(x->n_out + 1, sizeof *out);
    bool is_good = in != NULL && out != NULL;
    for (size_t k = 0; is_good && k < x->n_in; k++) {
        in[k] = x->in[k];
        if (!tide_operand_present(&in[k])) continue;
        in[k].shape = x->least[k];
        is_good = tide_shape_operand_bytes(&in[k].shape, in[k].dtype, &in[k].size_bytes, NULL) == TIDE_OK;
    }
    is_good = is_good && ask(x, in, out);
    for (size_t k = 0; is_good && k < x->n_out; k++) {
        if (x->out_state[k] != TIDE_BOUND_SHAPE || out[k].shape.rank != x->out[k].shape.rank) continue;
        x->out_least[k] = out[k].shape;
        for (int32_t d = 0; d < out[k].shape.rank; d++) { // nothing is less than the bound by definition
            if (out[k].shape.dims[d] > x->out[k].shape.dims[d]) x->out_least[k].dims[d] = 0;
        }
    }
    tide_host_free(in);
    tide_host_free(out);
}

static bool all_have_shapes(const tide_bounds *x) {
    for (size_t k = 0; k < x->n_in; k++) {
        if (x->state[k] != TIDE_BOUND_SHAPE) return false;
    }
    return true;
}

/// As infer() says of `in`, which are the operands or the like.
static bool take_answer(tide_bounds *x, const tide_operand *in) {
    if (!ask(x, in, x->out)) return false;
    for (size_t k = 0; k < x->n_out; k++) {
        if (x->node->outputs[k] == TIDE_NO_VALUE) continue;
        x->out_least[k] = tide_shape_make(x->out[k].shape.rank, (int64_t[TIDE_MAX_RANK]){0});
        x->out_state[k] = TIDE_BOUND_SHAPE;
    }
    ask_least(x);
    x->is_by_shapes = x->is_scratch_by_shapes = true;
    return true;
}

static bool by_infer(tide_bounds *x) { return all_have_shapes(x) && take_answer(x, x->in); }
static bool by_infer_or_numbers(tide_bounds *x) { return by_infer(x) || tide_bound_by_numbers(x); }

/// As many elements as there are in operand 0, whose shape is not known.
static bool as_many(tide_bounds *x) {
    tide_operand out = {0};
    const tide_infer q = {.node = x->node, .in = x->in, .n_in = x->n_in, .out = &out, .n_out = 1};
    if (x->state[0] != TIDE_BOUND_COUNT || x->n_in != 1 || x->n_out != 1) return false;
    if (x->node->def->infer(&q, NULL) != TIDE_OK || out.dtype == TIDE_DTYPE_UNDEFINED) return false;
    set_count(x, out.dtype, x->in[0].shape.dims[0]);
    x->is_by_shapes = x->is_scratch_by_shapes = true;
    return true;
}

/// One element of the result for each of operand 0.
static bool same(tide_bounds *x) { return x->state[0] == TIDE_BOUND_COUNT ? as_many(x) : by_infer(x); }

/// Another shape of the same elements.
static bool rearranged(tide_bounds *x) {
    if (x->state[0] != TIDE_BOUND_COUNT) return by_infer(x);
    set_count(x, x->in[0].dtype, x->in[0].shape.dims[0]);
    x->is_by_shapes = x->n_in == 1 || tide_bounds_has_content(x, 1);
    return true;
}

// ---- broadcasting ----

static bool is_one(const tide_bounds *x, size_t k) {
    return tide_bounds_has_shape(x, k) && tide_op_numel(&x->in[k].shape) == 1 &&
           tide_shape_equal(&x->in[k].shape, &x->least[k]);
}

/// Of one operand only the number of elements is known, and the others have one element.
static bool many_and_ones(tide_bounds *x) {
    size_t at = x->n_in;
    for (size_t k = 0; k < x->n_in; k++) {
        if (x->state[k] != TIDE_BOUND_COUNT && !is_one(x, k)) return false;
        if (x->state[k] == TIDE_BOUND_COUNT && at != x->n_in) return false;
        if (x->state[k] == TIDE_BOUND_COUNT) at = k;
    }
    tide_operand out = {0};
    const tide_infer q = {.node = x->node, .in = x->in, .n_in = x->n_in, .out = &out, .n_out = 1};
    if (at == x->n_in || x->n_out != 1 || x->node->def->infer(&q, NULL) != TIDE_OK) return false;
    set_count(x, out.dtype, x->in[at].shape.dims[0]);
    x->is_by_shapes = true;
    return true;
}

static tide_shape largest_of_each(const tide_bounds *x) {
    tide_shape most = {.rank = 0};
    for (size_t k = 0; k < x->n_in; k++) {
        if (tide_operand_present(&x->in[k]) && x->in[k].shape.rank > most.rank) most.rank = x->in[k].shape.rank;
    }
    for (size_t k = 0; k < x->n_in; k++) {
        const tide_shape *s = &x->in[k].shape;
        for (int32_t d = 0; tide_operand_present(&x->in[k]) && d < s->rank; d++) {
            int64_t *extent = &most.dims[most.rank - s->rank + d];
            if (s->dims[d] > *extent) *extent = s->dims[d];
        }
    }
    return most;
}

/// Operands whose bounds differ meet in each run, or that run ends.
static bool elementwise(tide_bounds *x) {
    if (!all_have_shapes(x)) return many_and_ones(x);
    if (by_infer(x)) return true;
    const tide_shape most = largest_of_each(x);
    tide_operand *in = tide_host_calloc(x->n_in + 1, sizeof *in);
    bool is_good = in != NULL;
    for (size_t k = 0; is_good && k < x->n_in; k++) {
        in[k] = x->in[k];
        for (int32_t d = 0; d < in[k].shape.rank; d++) {
            if (in[k].shape.dims[d] != 1) in[k].shape.dims[d] = most.dims[most.rank - in[k].shape.rank + d];
        }
        if (tide_operand_present(&in[k]))
            is_good = tide_shape_operand_bytes(&in[k].shape, in[k].dtype, &in[k].size_bytes, NULL) == TIDE_OK;
    }
    is_good = is_good && take_answer(x, in);
    tide_host_free(in);
    return is_good;
}

// ---- what an operator chooses ----

static bool nonzero(tide_bounds *x) {
    if (!tide_bounds_has_shape(x, 0)) return false;
    const int64_t rank = x->in[0].shape.rank;
    tide_bounds_set(x, 0, TIDE_I64, 2, (int64_t[]){rank, tide_op_numel(&x->in[0].shape)}, (int64_t[]){rank, 0});
    return true;
}

/// The axis that the node names; -1: none, and the operand counts as one row.
static bool read_axis(const tide_bounds *x, int32_t *axis) {
    *axis = -1;
    if (tide_node_attr(x->node, "axis") == NULL) return true;
    const int32_t rank = x->in[0].shape.rank;
    return rank > 0 && tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), rank, axis, NULL) == TIDE_OK;
}

static bool compress(tide_bounds *x) {
    int32_t axis;
    if (!tide_bounds_has_shape(x, 0) || !tide_bounds_has_shape(x, 1) || x->in[1].shape.rank != 1 ||
        !read_axis(x, &axis))
        return false;
    tide_shape most = x->in[0].shape, least = x->least[0];
    const int64_t numel = tide_op_numel(&most), wanted = x->in[1].shape.dims[0];
    if (axis < 0) {
        most = tide_shape_make(1, &numel);
        least = tide_shape_make(1, &(int64_t){0});
        axis = 0;
    }
    if (wanted < most.dims[axis]) most.dims[axis] = wanted;
    least.dims[axis] = 0;
    tide_bounds_set(x, 0, x->in[0].dtype, most.rank, most.dims, least.dims);
    return true;
}

static bool unique(tide_bounds *x) {
    int32_t axis;
    if (!tide_bounds_has_shape(x, 0) || !read_axis(x, &axis)) return false;
    tide_shape most = x->in[0].shape, least = x->least[0];
    int64_t n = tide_op_numel(&most), fewest = tide_op_numel(&least);
    if (axis >= 0) {
        n = most.dims[axis];
        fewest = least.dims[axis];
        least.dims[axis] = fewest > 0;
    } else {
        most = tide_shape_make(1, &n);
        least = tide_shape_make(1, &(int64_t){fewest > 0});
    }
    const int64_t some = fewest > 0;
    x->is_scratch_by_shapes = true;
    tide_bounds_set(x, 0, x->in[0].dtype, most.rank, most.dims, least.dims);
    tide_bounds_set(x, 1, TIDE_I64, 1, &n, &some);
    tide_bounds_set(x, 2, TIDE_I64, 1, &n, &fewest);
    tide_bounds_set(x, 3, TIDE_I64, 1, &n, &some);
    return true;
}

static bool non_max_suppression(tide_bounds *x) {
    if (!tide_bounds_has_shape(x, 0) || !tide_bounds_has_shape(x, 1) || x->in[0].shape.rank != 3 ||
        x->in[1].shape.rank != 3)
        return false;
    const int64_t *boxes = x->in[0].shape.dims, *scores = x->in[1].shape.dims;
    int64_t each = boxes[1] < scores[2] ? boxes[1] : scores[2], n;
    if (!tide_bounds_has_in(x, 2)) each = 0; // no box at all is wanted
    if (tide_bounds_has_content(x, 2) && x->in[2].dtype == TIDE_I64 && x->in[2].size_bytes == sizeof(int64_t)) {
        const int64_t wanted = tide_data_load_i64(TIDE_I64, x->in[2].data, 0);
        if (wanted < each) each = wanted > 0 ? wanted : 0;
    }
    if (__builtin_mul_overflow(boxes[0], scores[1], &n) || __builtin_mul_overflow(n, each, &n)) return false;
    tide_bounds_set(x, 0, TIDE_I64, 2, (int64_t[]){n, 3}, (int64_t[]){0, 3});
    x->is_scratch_by_shapes = true;
    return true;
}

static bool top_k(tide_bounds *x) {
    if (by_infer(x)) return true;
    int32_t axis;
    const int64_t k = x->node->opset < 10             ? tide_node_attr_int(x->node, "k", -1)
                      : tide_bounds_has_content(x, 1) ? tide_data_load_i64(x->in[1].dtype, x->in[1].data, 0)
                                                      : -1;
    if (!tide_bounds_has_shape(x, 0) || x->in[0].shape.rank == 0) return false;
    if (tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", -1), x->in[0].shape.rank, &axis, NULL) != TIDE_OK)
        return false;
    tide_shape most = x->in[0].shape, least = x->least[0];
    if (k >= 0 && k < most.dims[axis]) most.dims[axis] = k;
    x->is_by_shapes = k >= 0;
    x->is_scratch_by_shapes = true;
    least.dims[axis] = 0;
    tide_bounds_set(x, 0, x->in[0].dtype, most.rank, most.dims, least.dims);
    tide_bounds_set(x, 1, TIDE_I64, most.rank, most.dims, least.dims);
    return true;
}

// ---- parts and other shapes ----

/// Numbers of an attribute, or of an operand that is a constant.
static bool read_list(const tide_bounds *x, const char *attr, size_t operand, int64_t *out, size_t *n) {
    *n = 0;
    if (operand == 0) {
        const int64_t *list = tide_node_attr_ints(x->node, attr, n);
        if (*n > TIDE_MAX_RANK) return false;
        for (size_t i = 0; i < *n; i++) out[i] = list[i];
        return true;
    }
    if (!tide_bounds_has_in(x, operand)) return true;
    return tide_bounds_has_content(x, operand) &&
           tide_op_read_ints(x->node, &x->in[operand], attr, TIDE_MAX_RANK, out, n, NULL) == TIDE_OK;
}

/// Whether [start, end) by `step` of an axis of at most `extent` elements never shrinks when the axis grows.
static bool stretch_grows(int64_t start, int64_t end, int64_t step, int64_t extent) {
    if (step > 0) return start >= 0 || end < 0 || end >= extent;
    if (start >= 0) return end >= 0 || end < -extent;
    return end >= 0 || start > end; // else the start is moved to the one element of a short axis: a long one has none
}

/// So it is with every axis, by constants.
static bool grows_with_axes(const tide_bounds *x) {
    const bool is_old = x->node->opset < 10;
    int64_t starts[TIDE_MAX_RANK], ends[TIDE_MAX_RANK], axes[TIDE_MAX_RANK], steps[TIDE_MAX_RANK];
    size_t n, n_ends, n_axes, n_steps = 0;
    if (!read_list(x, "starts", is_old ? 0 : 1, starts, &n) || !read_list(x, "ends", is_old ? 0 : 2, ends, &n_ends) ||
        !read_list(x, "axes", is_old ? 0 : 3, axes, &n_axes) || (!is_old && !read_list(x, "steps", 4, steps, &n_steps)))
        return false;
    const tide_shape *s = &x->in[0].shape;
    for (size_t i = 0; n == n_ends && i < n; i++) {
        int32_t axis;
        const int64_t at = n_axes == n ? axes[i] : (int64_t)i;
        if (tide_op_axis(x->node, at, s->rank, &axis, NULL) != TIDE_OK || axis >= s->rank) return false;
        if (!stretch_grows(starts[i], ends[i], n_steps == n ? steps[i] : 1, s->dims[axis])) return false;
    }
    return n == n_ends;
}

static bool slice(tide_bounds *x) {
    if (!tide_bounds_has_shape(x, 0)) return false;
    if (grows_with_axes(x) && by_infer(x)) return true;
    int64_t axes[TIDE_MAX_RANK];
    size_t n = 0;
    const tide_shape *most = &x->in[0].shape;
    tide_shape least = tide_shape_make(most->rank, (int64_t[TIDE_MAX_RANK]){0});
    if (read_list(x, "axes", x->node->opset < 10 ? 0 : 3, axes, &n) && n > 0) {
        least = x->least[0];
        for (size_t i = 0; i < n; i++) {
            int32_t axis;
            if (tide_op_axis(x->node, axes[i], most->rank, &axis, NULL) != TIDE_OK) return false;
            least.dims[axis] = 0;
        }
    }
    tide_bounds_set(x, 0, x->in[0].dtype, most->rank, most->dims, least.dims);
    return true;
}

/// Of a bound and of a number that it is never below: at -1 stands what is left of the elements.
static bool reshape_to(const tide_bounds *x, const int64_t *want, int32_t rank, tide_shape *most, tide_shape *least) {
    const bool keeps_zero = tide_node_attr_int(x->node, "allowzero", 0) != 0,
               is_count = x->state[0] == TIDE_BOUND_COUNT;
    const tide_shape *in = &x->in[0].shape;
    bool is_kept[TIDE_MAX_RANK] = {false};
    int64_t known = 1, left = 1, fewest = 1;
    int32_t open = -1;
    for (int32_t d = 0; d < rank; d++) {
        most->dims[d] = least->dims[d] = want[d];
        if (want[d] == -1 && open >= 0) return false;
        if (want[d] == -1) {
            open = d;
        } else if (want[d] == 0 && !keeps_zero) {
            if (is_count || d >= in->rank) return false;
            is_kept[d] = true;
            most->dims[d] = in->dims[d];
            least->dims[d] = x->least[0].dims[d];
        } else if (want[d] < 0 || __builtin_mul_overflow(known, want[d], &known)) {
            return false;
        }
    }
    most->rank = least->rank = rank;
    if (open < 0) return true;
    for (int32_t d = 0; d < in->rank; d++) {
        if (is_kept[d]) continue;
        left *= in->dims[d];
        fewest *= is_count ? 0 : x->least[0].dims[d];
    }
    if (known == 0) return false;
    most->dims[open] = left / known;
    least->dims[open] = fewest / known;
    return true;
}

/// The same by calculated extents, of which at most one is surely -1. False: an extent may mean several things.
static bool reshape_by_numbers(const tide_bounds *x, tide_shape *most, tide_shape *least) {
    const tide_intervals *to = tide_bounds_numbers(x, 1);
    const bool keeps_zero = tide_node_attr_int(x->node, "allowzero", 0) != 0;
    const int64_t numel = tide_op_numel(&x->in[0].shape);
    int64_t others = 1, all = 1;
    int32_t open = -1;
    if (to->n == 0 || to->n > TIDE_MAX_RANK || x->in[1].shape.rank != 1) return false;
    most->rank = least->rank = (int32_t)to->n;
    for (int32_t d = 0; d < most->rank; d++) {
        const bool is_open = to->least[d] == -1 && to->most[d] == -1;
        if (is_open ? open >= 0 : to->least[d] < (keeps_zero ? 0 : 1)) return false;
        most->dims[d] = to->most[d];
        least->dims[d] = to->least[d];
        if (is_open) open = d;
        if (!is_open && to->least[d] > 1 && __builtin_mul_overflow(others, to->least[d], &others)) return false;
    }
    if (open >= 0) most->dims[open] = numel / others;
    if (open >= 0) least->dims[open] = 0;
    for (int32_t d = 0; d < most->rank; d++)
        if (__builtin_mul_overflow(all, most->dims[d], &all)) return false;
    return all <= numel; // else the number of elements says more than the extents
}

static bool reshape(tide_bounds *x) {
    int64_t want[TIDE_MAX_RANK];
    size_t rank = 0;
    tide_shape most = {.rank = 0}, least = {.rank = 0};
    if (x->state[0] == TIDE_BOUND_NONE) return false;
    if (tide_bounds_has_content(x, 1) &&
        tide_op_read_ints(x->node, &x->in[1], "shape", TIDE_MAX_RANK, want, &rank, NULL) == TIDE_OK) {
        if (!reshape_to(x, want, (int32_t)rank, &most, &least)) return false;
        tide_bounds_set(x, 0, x->in[0].dtype, most.rank, most.dims, least.dims);
        x->is_by_shapes = true;
        return true;
    }
    if (x->n_in > 1 && reshape_by_numbers(x, &most, &least)) {
        tide_bounds_set(x, 0, x->in[0].dtype, most.rank, most.dims, least.dims);
        return true;
    }
    set_count(x, x->in[0].dtype, tide_op_numel(&x->in[0].shape));
    return true;
}

/// Without axes it hangs on the extents which of them go.
static bool squeeze(tide_bounds *x) {
    if (x->state[0] == TIDE_BOUND_COUNT) return rearranged(x);
    const bool names_axes = tide_node_attr(x->node, "axes") != NULL || tide_bounds_has_content(x, 1);
    if (names_axes || tide_bounds_is_exact(x, 0)) return by_infer(x);
    if (!tide_bounds_has_shape(x, 0)) return false;
    set_count(x, x->in[0].dtype, tide_op_numel(&x->in[0].shape));
    return true;
}

/// How many extents the result has hangs on the last extent of the indices.
static bool gather_nd(tide_bounds *x) {
    if (!tide_bounds_has_shape(x, 0) || !tide_bounds_has_shape(x, 1) || x->in[1].shape.rank == 0) return false;
    const int32_t last = x->in[1].shape.rank - 1;
    return x->in[1].shape.dims[last] == x->least[1].dims[last] && by_infer(x);
}

/// Parts of given lengths, or of equal ones but for the last: each has at most the longer length.
static bool split(tide_bounds *x) {
    int64_t sizes[TIDE_MAX_RANK];
    size_t n = 0;
    int32_t axis;
    const bool by_attr = tide_node_attr(x->node, "split") != NULL, is_given = by_attr || tide_bounds_has_in(x, 1);
    if (!tide_bounds_has_shape(x, 0) || x->in[0].shape.rank == 0 || x->n_out == 0) return false;
    if (tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 0), x->in[0].shape.rank, &axis, NULL) != TIDE_OK)
        return false;
    tide_shape most = x->in[0].shape, least = x->least[0];
    const int64_t n_parts = (int64_t)x->n_out, extent = most.dims[axis];
    const bool is_known = is_given && read_list(x, "split", by_attr ? 0 : 1, sizes, &n) && n == x->n_out;
    x->is_by_shapes = is_known || !is_given;
    for (size_t k = 0; k < x->n_out; k++) {
        if (is_known && sizes[k] < 0) return false;
        most.dims[axis] = is_known ? sizes[k] : is_given ? extent : extent / n_parts + (extent % n_parts != 0);
        least.dims[axis] = is_known ? sizes[k] : 0;
        tide_bounds_set(x, k, x->in[0].dtype, most.rank, most.dims, least.dims);
    }
    return true;
}

/// Along the axis all of them, across it the largest.
static bool concat(tide_bounds *x) {
    int32_t axis;
    if (!all_have_shapes(x) || x->n_in == 0 || x->in[0].shape.rank == 0) return false;
    if (by_infer(x)) return true;
    tide_shape most = x->in[0].shape, least = x->least[0];
    if (tide_op_axis(x->node, tide_node_attr_int(x->node, "axis", 1), most.rank, &axis, NULL) != TIDE_OK) return false;
    for (size_t k = 1; k < x->n_in; k++) {
        const tide_shape *s = &x->in[k].shape, *s_least = &x->least[k];
        if (x->in[k].dtype != x->in[0].dtype || s->rank != most.rank) return false;
        for (int32_t d = 0; d < most.rank; d++) {
            if (d == axis && __builtin_add_overflow(most.dims[d], s->dims[d], &most.dims[d])) return false;
            if (d != axis && s->dims[d] > most.dims[d]) most.dims[d] = s->dims[d];
            least.dims[d] = d == axis ? least.dims[d] + s_least->dims[d] : 0;
        }
    }
    tide_bounds_set(x, 0, x->in[0].dtype, most.rank, most.dims, least.dims);
    x->is_by_shapes = true;
    return true;
}

/// Sizes that keep the proportions of the operand may be larger for a smaller one.
static bool resize(tide_bounds *x) {
    const char *policy = tide_node_attr_string(x->node, "keep_aspect_ratio_policy", "stretch");
    return strcmp(policy, "stretch") == 0 && by_infer_or_numbers(x);
}

static bool range(tide_bounds *x) { return by_infer(x) || tide_bound_range(x); }
static bool expand(tide_bounds *x) { return by_infer(x) || tide_bound_expand(x); }

// ---- the table ----

typedef struct rule {
    const char *names; ///< with a space before and behind each
    tide_bound_rule rule;
} rule;

static const rule rules[] = {
    {" Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
     "HardSwish "
     "Identity IsInf IsNaN LeakyRelu Log Mish Neg Not QuickGelu Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin "
     "Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu ",
     same},
    {" Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min "
     "Mod Mul Or Pow Sub Sum Where "
     "Xor ",
     elementwise},
    {" ArgMax ArgMin Attention AveragePool BatchNormalization BiasGelu CastLike Clip Conv ConvInteger "
     "ConvTranspose CumSum DepthToSpace DequantizeLinear Det Dropout DynamicQuantizeLinear Einsum "
     "EmbedLayerNormalization EyeLike FastGelu Flatten FusedMatMul GRU Gather GatherElements Gemm "
     "GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNormalization Hardmax InstanceNormalization LRN "
     "LSTM LayerNormalization LogSoftmax "
     "LpNormalization MatMul MatMulInteger MaxPool MaxRoiPool MeanVarianceNormalization MultiHeadAttention PRelu "
     "QLinearConv QLinearMatMul "
     "QuantizeLinear RMSNormalization RNN ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
     "ReduceMin ReduceProd ReduceSum ReduceSumSquare ReverseSequence RoiAlign RotaryEmbedding Scatter "
     "ScatterElements ScatterND Shape SimplifiedLayerNormalization Size SkipLayerNormalization "
     "SkipSimplifiedLayerNormalization Softmax "
     "SpaceToDepth TensorScatter TransposeMatMul Trilu Upsample ",
     by_infer},
    {" ConstantOfShape OneHot Pad Tile ", by_infer_or_numbers},
    {" Range ", range},
    {" Expand ", expand},
    {" Transpose Unsqueeze ", rearranged},
    {" Resize ", resize},
    {" NonZero ", nonzero},
    {" Compress ", compress},
    {" Unique ", unique},
    {" NonMaxSuppression ", non_max_suppression},
    {" TopK ", top_k},
    {" Slice ", slice},
    {" Reshape ", reshape},
    {" Squeeze ", squeeze},
    {" GatherND ", gather_nd},
    {" Split ", split},
    {" Concat ", concat},
};

static tide_bound_rule find_rule(const tide_node *node) {
    char word[64];
    if (node->domain[0] != '\0' && strcmp(node->domain, "com.microsoft") != 0) return NULL;
    if (strlen(node->op_type) > sizeof word - 3) return NULL;
    snprintf(word, sizeof word, " %s ", node->op_type);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strstr(rules[i].names, word) != NULL) return rules[i].rule;
    }
    return NULL;
}

// ---- types alone ----

/// What infer() says of the types where the numbers that it hangs on were all `number`.
static bool types_with(tide_bounds *x, int64_t number) {
    enum { MOST = 16 };
    int64_t numbers[MOST];
    tide_operand *in = tide_host_calloc(x->n_in + 1, sizeof *in), *out = tide_host_calloc(x->n_out + 1, sizeof *out);
    bool is_good = in != NULL && out != NULL;
    for (size_t i = 0; i < MOST; i++) numbers[i] = number;
    for (size_t k = 0; is_good && k < x->n_in; k++) {
        in[k] = x->in[k];
        const bool is_list = in[k].dtype == TIDE_I64 && in[k].size_bytes <= sizeof numbers;
        if (x->state[k] == TIDE_BOUND_SHAPE && tide_operand_present(&in[k]) && in[k].data == NULL && is_list)
            in[k].data = numbers;
    }
    is_good = is_good && ask(x, in, out);
    for (size_t k = 0; is_good && k < x->n_out; k++) x->out[k].dtype = out[k].dtype;
    tide_host_free(in);
    tide_host_free(out);
    return is_good;
}

/// Results of few whole numbers, as many as there are in each run, can be anything, and then what the operator says.
static void bound_numbers(tide_bounds *x) {
    for (size_t k = 0; k < x->n_out && x->out_numbers != NULL; k++) {
        const bool is_exact = x->node->outputs[k] != TIDE_NO_VALUE && x->out_state[k] == TIDE_BOUND_SHAPE &&
                              tide_shape_equal(&x->out[k].shape, &x->out_least[k]);
        x->out_numbers[k] =
            is_exact ? tide_intervals_any(x->out[k].dtype, tide_op_numel(&x->out[k].shape)) : (tide_intervals){.n = 0};
    }
    tide_op_number_bounds(x);
}

bool tide_op_bound(tide_bounds *x) {
    const tide_bound_rule own = find_rule(x->node);
    if (own != NULL && own(x)) {
        bound_numbers(x);
        return true;
    }
    for (size_t k = 0; k < x->n_out; k++) {
        x->out[k] = (tide_operand){.dtype = TIDE_DTYPE_UNDEFINED};
        x->out_state[k] = TIDE_BOUND_NONE;
    }
    x->is_by_shapes = x->is_scratch_by_shapes = false;
    // Without a rule the type is known all the same: the user's bound needs it.
    for (size_t k = 0; k < x->n_in; k++) {
        if (x->state[k] == TIDE_BOUND_NONE) return false;
    }
    return types_with(x, 1) || types_with(x, 0);
}
