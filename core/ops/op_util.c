// SPDX-License-Identifier: MIT
//
// Checks, axes, broadcasting. See op_util.h; sliding windows are in op_window.c.
#include "core/ops/op_util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"

tide_status tide_op_fail_at(tide_error *err, const tide_node *node, tide_status st, const char *file, int line,
                            const char *fmt, ...) {
    if (err == NULL) return st;
    char text[sizeof err->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tide_fail_at(err, st, file, line, "%s '%s': %s", node->op_type, node->name, text);
}

tide_status tide_op_require_dtype(const tide_node *node, const tide_operand *o, const char *what, tide_dtype want,
                                  tide_error *err) {
    if (o->dtype == want) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_NOT_IMPLEMENTED, "%s is %s; this kernel takes %s", what,
                        tide_dtype_name(o->dtype), tide_dtype_name(want));
}

tide_status tide_op_require_rank(const tide_node *node, const tide_operand *o, const char *what, int32_t min,
                                 int32_t max, tide_error *err) {
    if (o->shape.rank >= min && o->shape.rank <= max) return TIDE_OK;
    char s[192];
    tide_shape_format(&o->shape, s, sizeof s);
    if (min == max)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s is %s, must have rank %d", what, s, (int)min);
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s is %s, must have rank %d to %d", what, s, (int)min,
                        (int)max);
}

tide_status tide_op_require_shape(const tide_node *node, const tide_operand *o, const char *what,
                                  const tide_shape *want, tide_error *err) {
    if (tide_shape_equal(&o->shape, want)) return TIDE_OK;
    char got_s[192], want_s[192];
    return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s is %s, must be %s", what,
                        tide_shape_format(&o->shape, got_s, sizeof got_s),
                        tide_shape_format(want, want_s, sizeof want_s));
}

// True when the operand has elements: then its content is needed.
static bool has_elements(const tide_operand *o) {
    for (int32_t i = 0; i < o->shape.rank; i++)
        if (o->shape.dims[i] == 0) return false;
    return true;
}

tide_status tide_op_require_const(const tide_node *node, const tide_operand *o, const char *what, tide_error *err) {
    if (o->data != NULL || !has_elements(o)) return TIDE_OK;
    return TIDE_OP_FAIL(err, node, TIDE_ERR_UNKNOWN_SIZE,
                        "the output size depends on the content of %s, which is known "
                        "only while running",
                        what);
}

tide_status tide_op_set_out(const tide_infer *x, size_t i, tide_dtype dtype, int32_t rank, const int64_t *dims,
                            tide_error *err) {
    if (rank < 0 || rank > TIDE_MAX_RANK)
        return TIDE_OP_FAIL(err, x->node, TIDE_ERR_NOT_IMPLEMENTED, "output %zu would have rank %d; at most %d", i,
                            (int)rank, (int)TIDE_MAX_RANK);
    tide_shape shape = {.rank = rank};
    for (int32_t d = 0; d < rank; d++) {
        if (dims[d] < 0)
            return TIDE_OP_FAIL(err, x->node, TIDE_ERR_BAD_INPUT, "extent %d of output %zu would be %" PRId64, (int)d,
                                i, dims[d]);
        shape.dims[d] = dims[d];
    }
    // An output of nothing too has extents that can be multiplied: operators do.
    tide_shape full = shape;
    for (int32_t d = 0; d < rank; d++) full.dims[d] = dims[d] == 0 ? 1 : dims[d];
    size_t bytes;
    const tide_status st = tide_shape_bytes(&full, dtype, &bytes, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "%s '%s': output %zu", x->node->op_type, x->node->name, i);
        return st;
    }
    x->out[i].dtype = dtype;
    x->out[i].shape = shape;
    return TIDE_OK;
}

tide_status tide_op_infer_same(const tide_infer *x, tide_error *err) {
    return tide_op_set_out(x, 0, x->in[0].dtype, x->in[0].shape.rank, x->in[0].shape.dims, err);
}

tide_status tide_op_axis(const tide_node *node, int64_t axis, int32_t rank, int32_t *out, tide_error *err) {
    const int64_t span = rank == 0 ? 1 : rank;
    if (axis < -span || axis >= span)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "axis %" PRId64 " is outside [%" PRId64 ", %" PRId64 "]",
                            axis, -span, span - 1);
    *out = (int32_t)(axis < 0 ? axis + span : axis);
    return TIDE_OK;
}

tide_status tide_op_read_ints(const tide_node *node, const tide_operand *o, const char *what, size_t max, int64_t *out,
                              size_t *n, tide_error *err) {
    if (o->dtype != TIDE_I64 && o->dtype != TIDE_I32)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s is %s, must be int64 or int32", what,
                            tide_dtype_name(o->dtype));
    TIDE_TRY(tide_op_require_rank(node, o, what, 0, 1, err));
    const int64_t len = o->shape.rank == 0 ? 1 : o->shape.dims[0];
    if (len < 0 || (uint64_t)len > max)
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "%s has %" PRId64 " elements; at most %zu", what, len, max);
    TIDE_TRY(tide_op_require_const(node, o, what, err));
    for (int64_t i = 0; i < len; i++)
        out[i] = o->dtype == TIDE_I64 ? ((const int64_t *)o->data)[i] : ((const int32_t *)o->data)[i];
    *n = (size_t)len;
    return TIDE_OK;
}

// ---- broadcasting ----

tide_status tide_op_broadcast(const tide_node *node, const tide_shape *a, const tide_shape *b, tide_shape *out,
                              tide_error *err) {
    tide_shape r = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int32_t i = 0; i < r.rank; i++) {
        const int32_t ai = i - (r.rank - a->rank), bi = i - (r.rank - b->rank);
        const int64_t ad = ai < 0 ? 1 : a->dims[ai], bd = bi < 0 ? 1 : b->dims[bi];
        if (ad != bd && ad != 1 && bd != 1) {
            char as[192], bs[192];
            return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT,
                                "%s and %s do not broadcast: %" PRId64 " against %" PRId64,
                                tide_shape_format(a, as, sizeof as), tide_shape_format(b, bs, sizeof bs), ad, bd);
        }
        r.dims[i] = ad == 1 ? bd : ad;
    }
    *out = r;
    return TIDE_OK;
}

tide_status tide_op_second_shape(const tide_node *node, const tide_shape *a, const tide_shape *b, tide_shape *out,
                                 tide_error *err) {
    *out = *b;
    if (node->opset >= 7 || tide_op_numel(b) == 1 || tide_shape_equal(a, b)) return TIDE_OK;
    const bool is_prelu = strcmp(node->op_type, "PRelu") == 0;
    bool meets = b->rank <= a->rank && (is_prelu || tide_node_attr_int(node, "broadcast", 0) != 0);
    const int64_t asked = is_prelu ? 1 : tide_node_attr_int(node, "axis", a->rank - b->rank);
    const int64_t axis = asked < 0 ? asked + a->rank : asked;
    meets = meets && axis >= 0 && axis <= a->rank - b->rank;
    for (int32_t i = 0; meets && i < b->rank; i++) meets = b->dims[i] == a->dims[axis + i] || b->dims[i] == 1;
    if (!meets) {
        char x[192], y[192];
        return TIDE_OP_FAIL(err, node, TIDE_ERR_BAD_INPUT, "shapes %s and %s do not meet (axis %lld, broadcast %lld)",
                            tide_shape_format(a, x, sizeof x), tide_shape_format(b, y, sizeof y), (long long)asked,
                            (long long)tide_node_attr_int(node, "broadcast", 0));
    }
    out->rank = a->rank;
    for (int32_t i = 0; i < a->rank; i++) out->dims[i] = i >= axis && i < axis + b->rank ? b->dims[i - axis] : 1;
    return TIDE_OK;
}

void tide_op_broadcast_strides(const tide_shape *in, const tide_shape *out, int64_t *strides) {
    int64_t step = 1;
    for (int32_t i = out->rank - 1; i >= 0; i--) {
        const int32_t ii = i - (out->rank - in->rank);
        const int64_t d = ii < 0 ? 1 : in->dims[ii];
        strides[i] = d == 1 && out->dims[i] != 1 ? 0 : step;
        if (ii < 0) strides[i] = 0;
        step *= d;
    }
}
