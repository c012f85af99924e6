// SPDX-License-Identifier: MIT
//
// Unique: each element, or each slice along an axis, once; where it stands first, which one each is, how often it is
// there. Sorted, or in the order in which they come. How many there are hangs on the content: inference counts them.
#include <string.h>

#include "core/base/checked.h"
#include "core/ops/data_util.h"
#include "core/ops/index_sort.h"
#include "core/ops/op_util.h"

/// The slices: `inner` elements side by side, `outer` times.
typedef struct slices {
    const tide_operand *in;
    int64_t outer, n, inner;
    int32_t axis; ///< -1: elements
} slices;

/// Scratch of one run, [n] each.
typedef struct tables {
    int64_t *order; ///< slices as they are sorted
    int64_t *spare;
    int64_t *group; ///< by slice: which one of the results it is
    int64_t *first; ///< by result: the first slice that is it
} tables;
enum { N_TABLES = 4 };

static tables tables_in(int64_t *memory, int64_t n) {
    return (tables){memory, memory + n, memory + 2 * n, memory + 3 * n};
}

static tide_status read_slices(const tide_node *node, const tide_operand *in, slices *out, tide_error *err) {
    *out = (slices){in, 1, tide_op_numel(&in->shape), 1, -1};
    if (tide_node_attr(node, "axis") == NULL) return TIDE_OK;
    if (in->shape.rank == 0) return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "a scalar has no axis");
    TIDE_TRY(tide_op_axis(node, tide_node_attr_int(node, "axis", 0), in->shape.rank, &out->axis, err));
    out->outer = tide_op_count(&in->shape, 0, out->axis);
    out->n = in->shape.dims[out->axis];
    out->inner = tide_op_count(&in->shape, out->axis + 1, in->shape.rank);
    return TIDE_OK;
}

/// NaN is behind all numbers, and one NaN is as the other.
static int compare_floats(double a, double b) {
    if (isnan(a) || isnan(b)) return (int)isnan(a) - (int)isnan(b);
    return (a > b) - (a < b);
}

static int compare_elements(const tide_operand *in, int64_t a, int64_t b) {
    if (tide_dtype_is_float(in->dtype))
        return compare_floats(tide_data_load_f64(in->dtype, in->data, a), tide_data_load_f64(in->dtype, in->data, b));
    const int64_t x = tide_data_load_i64(in->dtype, in->data, a), y = tide_data_load_i64(in->dtype, in->data, b);
    if (in->dtype == TIDE_U64) return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static int compare_slices(const void *ctx, int64_t a, int64_t b) {
    const slices *s = ctx;
    for (int64_t o = 0; o < s->outer; o++) {
        for (int64_t i = 0; i < s->inner; i++) {
            const int64_t base = o * s->n * s->inner + i;
            const int order = compare_elements(s->in, base + a * s->inner, base + b * s->inner);
            if (order != 0) return order;
        }
    }
    return 0;
}

/// Fill `t`. @return how many different slices there are
static int64_t find_unique(const slices *s, bool is_sorted, tables t) {
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++) t.order[i] = i;
    tide_index_sort(t.order, t.spare, s->n, compare_slices, s);
    for (int64_t i = 0; i < s->n; i++) {
        const bool is_new = i == 0 || compare_slices(s, t.order[i - 1], t.order[i]) != 0;
        if (is_new) t.first[n++] = t.order[i]; // of equal ones the first comes first
        t.group[t.order[i]] = n - 1;
    }
    if (is_sorted) return n;
    // As they come: number them anew by their first slice.
    int64_t n_seen = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (t.first[t.group[i]] == i) t.spare[t.group[i]] = n_seen++;
    }
    for (int64_t i = 0; i < s->n; i++) t.group[i] = t.spare[t.group[i]];
    for (int64_t i = s->n; i-- > 0;) t.first[t.group[i]] = i;
    return n;
}

static tide_status scratch_bytes(const tide_node *node, int64_t n, size_t *out, tide_error *err) {
    if (tide_mul_size((size_t)n, N_TABLES * sizeof(int64_t), out)) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_OVERFLOW, "too many elements");
}

/// Slices without elements are all the same: however many there are, nothing is sorted.
static bool has_elements(const slices *s) { return tide_op_numel(&s->in->shape) > 0; }

static tide_status count(const tide_infer *x, const slices *s, int64_t *n, tide_error *err) {
    size_t bytes;
    *n = s->n > 0;
    if (!has_elements(s)) return TIDE_OK;
    TIDE_TRY(scratch_bytes(x->node, s->n, &bytes, err));
    int64_t *own = bytes > x->scratch_bytes ? tide_host_alloc(bytes + 1) : NULL;
    if (own == NULL && bytes > x->scratch_bytes)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOMEM, "no memory to sort %lld", (long long)s->n);
    *n = find_unique(s, true, tables_in(own != NULL ? own : x->scratch, s->n));
    tide_host_free(own);
    return TIDE_OK;
}

static tide_status infer(const tide_infer *x, tide_error *err) {
    const tide_operand *in = &x->in[0];
    slices s;
    int64_t n = 0;
    if (tide_dtype_size(in->dtype) == 0) return tide_data_no_dtype(x->node, in->dtype, err);
    TIDE_TRY(read_slices(x->node, in, &s, err));
    TIDE_TRY(tide_op_require_const(x->node, in, "X", err));
    TIDE_TRY(count(x, &s, &n, err));
    tide_shape out = in->shape;
    if (s.axis >= 0) out.dims[s.axis] = n;
    TIDE_TRY(s.axis < 0 ? tide_op_set_out(x, 0, in->dtype, 1, &n, err)
                        : tide_op_set_out(x, 0, in->dtype, out.rank, out.dims, err));
    if (tide_op_has_out(x, 1)) TIDE_TRY(tide_op_set_out(x, 1, TIDE_I64, 1, &n, err));
    if (tide_op_has_out(x, 2)) TIDE_TRY(tide_op_set_out(x, 2, TIDE_I64, 1, &s.n, err));
    return tide_op_has_out(x, 3) ? tide_op_set_out(x, 3, TIDE_I64, 1, &n, err) : TIDE_OK;
}

static tide_status prepare(const tide_prepare *x, tide_kernel *k, tide_error *err) {
    slices s;
    TIDE_TRY(read_slices(x->node, &x->in[0], &s, err));
    return has_elements(&s) ? scratch_bytes(x->node, s.n, &k->workspace_bytes, err) : TIDE_OK;
}

static void copy_slices(const slices *s, const int64_t *first, int64_t n, char *out) {
    const size_t bytes = (size_t)s->inner * tide_dtype_size(s->in->dtype);
    for (int64_t o = 0; bytes > 0 && o < s->outer; o++) {
        for (int64_t i = 0; i < n; i++, out += bytes)
            memcpy(out, (const char *)s->in->data + (size_t)(o * s->n + first[i]) * bytes, bytes);
    }
}

static int64_t *out_of(const tide_kernel_args *a, size_t i) {
    return i < a->n_out && tide_operand_present(&a->out[i]) && a->out[i].size_bytes > 0 ? a->out[i].data : NULL;
}

static tide_status run(const tide_kernel *k, const tide_kernel_args *a, tide_error *err) {
    slices s;
    TIDE_TRY(read_slices(k->node, &a->in[0], &s, err));
    if (!has_elements(&s)) {
        if (out_of(a, 1) != NULL) out_of(a, 1)[0] = 0;
        if (out_of(a, 2) != NULL) memset(out_of(a, 2), 0, a->out[2].size_bytes);
        if (out_of(a, 3) != NULL) out_of(a, 3)[0] = s.n;
        return TIDE_OK;
    }
    const tables t = tables_in(a->workspace, s.n);
    const int64_t n = find_unique(&s, tide_node_attr_int(k->node, "sorted", 1) != 0, t);
    int64_t *first = out_of(a, 1), *group = out_of(a, 2), *counts = out_of(a, 3);
    copy_slices(&s, t.first, n, a->out[0].data);
    if (first != NULL) memcpy(first, t.first, (size_t)n * sizeof *first);
    if (group != NULL) memcpy(group, t.group, (size_t)s.n * sizeof *group);
    if (counts == NULL) return TIDE_OK;
    memset(counts, 0, (size_t)n * sizeof *counts);
    for (int64_t i = 0; i < s.n; i++) counts[t.group[i]]++;
    return TIDE_OK;
}

const tide_op_def tide_op_unique = {.name = "Unique",
                                    .domain = "",
                                    .since = 11,
                                    .attrs = TIDE_ATTRS(TIDE_ATTR(INT, "axis"), TIDE_ATTR(INT, "sorted")),
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .min_outputs = 1,
                                    .max_outputs = 4,
                                    .infer = infer,
                                    .prepare = prepare,
                                    .run = run};
