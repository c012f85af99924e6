// SPDX-License-Identifier: MIT
//
// Types and shapes of what an If, a Loop and a Scan make. See infer_region.h.
#include "core/graph/infer_region.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/graph/graph_internal.h"
#include "core/graph/sizes.h"

/// "<op type> '<node>': " before the message.
#define FAIL(err, n, st, fmt, ...) TIDE_FAIL((err), (st), "%s '%s': " fmt, (n)->op_type, (n)->name, __VA_ARGS__)

static const tide_region *opened(const tide_graph *g, const tide_node *open) { return tide_region_of(g, open->opens); }

static bool is_known(const tide_value *v) {
    return !v->is_dynamic && v->dtype != TIDE_DTYPE_UNDEFINED && v->has_shape && tide_shape_known(&v->shape);
}

/// The bytes of a value that are known now; NULL: they are not, or it is left out.
static const void *content_of(const tide__region_view *x, uint32_t value_i, tide_dtype dtype) {
    if (value_i == TIDE_NO_VALUE) return NULL;
    const tide_tensor *t = x->g->values[value_i].constant;
    if (t == NULL && x->known != NULL) t = x->known[value_i];
    if (t == NULL || tide_tensor_dtype(t) != dtype) return NULL;
    if (tide_constant_is_blank(t)) {
        *x->needs_blank = true;
        return NULL;
    }
    return tide_tensor_size_bytes(t) >= tide_dtype_size(dtype) ? tide_tensor_const_data(t) : NULL;
}

/// One element of `dtype`: the condition of an If, the number of trips.
static tide_status check_scalar(const tide_graph *g, const tide_node *n, uint32_t value_i, const char *what,
                                tide_dtype dtype, tide_error *err) {
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    const tide_value *v = &g->values[value_i];
    if (v->dtype != TIDE_DTYPE_UNDEFINED && v->dtype != dtype)
        return FAIL(err, n, TIDE_ERR_BAD_INPUT, "%s '%s' is %s, not %s", what, v->name, tide_dtype_name(v->dtype),
                    tide_dtype_name(dtype));
    size_t bytes = 0;
    if (!is_known(v)) return TIDE_OK; // the run looks again
    TIDE_TRY(tide_shape_bytes(&v->shape, v->dtype, &bytes, err));
    char shape[192];
    if (bytes == tide_dtype_size(dtype)) return TIDE_OK;
    return FAIL(err, n, TIDE_ERR_BAD_INPUT, "%s '%s' has the shape %s, not one element", what, v->name,
                tide_shape_format(&v->shape, shape, sizeof shape));
}

tide_status tide__region_branch(const tide__region_view *x, const tide_node *open, tide__branch *out, tide_error *err) {
    *out = TIDE__BRANCH_UNKNOWN;
    TIDE_TRY(check_scalar(x->g, open, open->inputs[0], "the condition", TIDE_BOOL, err));
    const unsigned char *condition = content_of(x, open->inputs[0], TIDE_BOOL);
    if (condition != NULL) *out = *condition != 0 ? TIDE__BRANCH_THEN : TIDE__BRANCH_ELSE;
    return TIDE_OK;
}

// ---- what is known at the opening node ----

tide_status tide__region_check_open(const tide_graph *g, const tide_node *open, tide_error *err) {
    const tide_region *r = opened(g, open);
    if (r->kind != TIDE_REGION_LOOP) return TIDE_OK;
    TIDE_TRY(check_scalar(g, open, open->inputs[0], "the number of trips", TIDE_I64, err));
    return check_scalar(g, open, open->inputs[1], "the condition", TIDE_BOOL, err);
}

bool tide__region_is_late(const tide_graph *g, const tide_node *open, size_t k) {
    const tide_region *r = opened(g, open);
    if (!tide_region_repeats(r)) return true;
    return k >= r->n_carried && k < r->n_carried + r->n_collected;
}

static tide_status same_as(const tide_graph *g, const tide_node *n, uint32_t value_i, tide_operand *out,
                           tide_error *err) {
    const tide_value *v = &g->values[value_i];
    if (!is_known(v)) return FAIL(err, n, TIDE_ERR_UNKNOWN_SIZE, "the size of '%s' is not known", v->name);
    out->dtype = v->dtype;
    out->shape = v->shape;
    return TIDE_OK;
}

static tide_status scan_axis(const tide_node *n, const char *attr, size_t k, const tide_value *v, int32_t rank,
                             int32_t *out, tide_error *err) {
    *out = tide_region_axis(n, attr, k, rank);
    if (*out >= 0) return TIDE_OK;
    size_t len;
    const int64_t *axes = tide_node_attr_ints(n, attr, &len);
    return FAIL(err, n, TIDE_ERR_BAD_INPUT, "%s: axis %" PRId64 " of '%s', which has %d extents", attr,
                k < len ? axes[k] : 0, v->name, (int)rank);
}

/// One item of sequence `k` of a Scan: the sequence without the axis along which it goes.
static tide_status item_of(const tide_graph *g, const tide_node *n, size_t k, tide_operand *out, tide_error *err) {
    const uint32_t sequence = n->inputs[opened(g, n)->n_carried + k];
    TIDE_TRY(same_as(g, n, sequence, out, err));
    int32_t axis = 0;
    TIDE_TRY(scan_axis(n, "scan_input_axes", k, &g->values[sequence], out->shape.rank, &axis, err));
    out->shape.rank--;
    for (int32_t d = axis; d < out->shape.rank; d++) out->shape.dims[d] = out->shape.dims[d + 1];
    return TIDE_OK;
}

static tide_status early_output(const tide__region_view *x, const tide_node *open, size_t k, tide_operand *out,
                                tide_error *err) {
    const tide_region *r = opened(x->g, open);
    const size_t first_item = r->n_carried + r->n_collected;
    if (k < r->n_carried) return same_as(x->g, open, open->inputs[tide_region_first_init(r) + k], out, err);
    if (k < tide_region_iteration(r)) return item_of(x->g, open, k - first_item, out, err);
    const bool is_number = k == tide_region_iteration(r);
    out->dtype = is_number ? TIDE_I64 : TIDE_BOOL;
    out->shape = (tide_shape){.rank = 0};
    // Some files declare these as [1].
    const tide_value *v = open->outputs[k] != TIDE_NO_VALUE ? &x->g->values[open->outputs[k]] : NULL;
    if (v != NULL && v->has_shape && v->shape.rank == 1) out->shape = tide_shape_make(1, &(int64_t){1});
    return TIDE_OK;
}

// ---- what is known at the closing node ----

static tide_status result_of_branch(const tide__region_view *x, const tide_node *open, size_t k, tide_operand *out,
                                    tide_error *err) {
    const uint32_t first = open->opens, second = opened(x->g, open)->other;
    const bool only = second == 0 || x->untaken[first] || x->untaken[second];
    const uint32_t taken = second != 0 && x->untaken[first] ? second : first;
    TIDE_TRY(same_as(x->g, open, x->g->nodes[tide_region_of(x->g, taken)->close].inputs[k], out, err));
    if (only) return TIDE_OK;
    tide_operand other = {0};
    const uint32_t there = x->g->nodes[tide_region_of(x->g, second)->close].inputs[k];
    TIDE_TRY(same_as(x->g, open, there, &other, err));
    const char *const name = x->g->values[open->outputs[k]].name;
    if (out->dtype != other.dtype)
        return FAIL(err, open, TIDE_ERR_BAD_INPUT, "'%s' is %s from one branch and %s from the other", name,
                    tide_dtype_name(out->dtype), tide_dtype_name(other.dtype));
    if (tide_shape_equal(&out->shape, &other.shape)) return TIDE_OK;
    char a[192], b[192];
    return FAIL(err, open, TIDE_ERR_UNKNOWN_SIZE, "'%s' is %s from one branch and %s from the other", name,
                tide_shape_format(&out->shape, a, sizeof a), tide_shape_format(&other.shape, b, sizeof b));
}

/// The number of trips of a Loop that nothing can end before.
static bool trips_of(const tide__region_view *x, const tide_region *r, int64_t *out) {
    const tide_node *open = &x->g->nodes[r->open], *close = &x->g->nodes[r->close];
    const int64_t *trips = content_of(x, open->inputs[0], TIDE_I64);
    const unsigned char *first = content_of(x, open->inputs[1], TIDE_BOOL);
    const unsigned char *next = content_of(x, close->inputs[0], TIDE_BOOL);
    if (trips == NULL || (open->inputs[1] != TIDE_NO_VALUE && first == NULL)) return false;
    const bool begins = open->inputs[1] == TIDE_NO_VALUE || *first != 0;
    *out = begins && *trips > 0 ? *trips : 0;
    if (*out <= 1) return true;
    if (next != NULL && *next == 0) *out = 1;
    return next != NULL || tide_region_hands_on(x->g, r);
}

static tide_status sequence_length(const tide__region_view *x, const tide_node *open, int64_t *out, tide_error *err) {
    const tide_region *r = opened(x->g, open);
    tide_operand o = {0};
    for (size_t k = 0; k < r->n_items; k++) {
        const uint32_t sequence = open->inputs[r->n_carried + k];
        int32_t axis = 0;
        TIDE_TRY(same_as(x->g, open, sequence, &o, err));
        TIDE_TRY(scan_axis(open, "scan_input_axes", k, &x->g->values[sequence], o.shape.rank, &axis, err));
        if (k > 0 && o.shape.dims[axis] != *out)
            return FAIL(err, open, TIDE_ERR_BAD_INPUT, "'%s' has %" PRId64 " items, the first sequence %" PRId64,
                        x->g->values[sequence].name, o.shape.dims[axis], *out);
        *out = o.shape.dims[axis];
    }
    return TIDE_OK;
}

static tide_status collected(const tide__region_view *x, const tide_node *open, size_t k, tide_operand *out,
                             tide_error *err) {
    const tide_region *r = opened(x->g, open);
    const tide_value *v = &x->g->values[open->outputs[k]];
    int64_t n = 0;
    int32_t axis = 0;
    const uint32_t part = x->g->nodes[r->close].inputs[tide_region_first_next(r) + k];
    if (r->kind == TIDE_REGION_LOOP && !trips_of(x, r, &n))
        return FAIL(err, open, TIDE_ERR_UNKNOWN_SIZE, "how many items '%s' has is known only while running", v->name);
    TIDE_TRY(same_as(x->g, open, part, out, err));
    if (out->shape.rank >= TIDE_MAX_RANK)
        return FAIL(err, open, TIDE_ERR_NOT_IMPLEMENTED, "'%s' has %d extents, %d are the most", v->name,
                    (int)out->shape.rank + 1, TIDE_MAX_RANK);
    if (r->kind == TIDE_REGION_SCAN) {
        TIDE_TRY(sequence_length(x, open, &n, err));
        TIDE_TRY(scan_axis(open, "scan_output_axes", k - r->n_carried, v, out->shape.rank + 1, &axis, err));
    }
    for (int32_t d = out->shape.rank++; d > axis; d--) out->shape.dims[d] = out->shape.dims[d - 1];
    out->shape.dims[axis] = n;
    return TIDE_OK;
}

tide_status tide__region_output(const tide__region_view *x, const tide_node *open, size_t k, tide_operand *out,
                                tide_error *err) {
    *out = (tide_operand){0};
    if (!tide__region_is_late(x->g, open, k)) return early_output(x, open, k, out, err);
    return tide_region_repeats(opened(x->g, open)) ? collected(x, open, k, out, err)
                                                   : result_of_branch(x, open, k, out, err);
}

// ---- bounds ----

static const tide__size nothing_known = {.state = TIDE_BOUND_NONE};

/// Nothing is known but the type, if that is.
static tide__size type_of(const tide__region_view *x, uint32_t value_i) {
    return (tide__size){.state = TIDE_BOUND_NONE, .dtype = x->g->values[value_i].dtype};
}

static tide__size size_of(const tide__region_view *x, uint32_t value_i) {
    const tide__size s = tide__size_of(&x->g->values[value_i]);
    return s.state == TIDE_BOUND_SHAPE ? s : type_of(x, value_i);
}

static tide__size size_of_branch(const tide__region_view *x, const tide_node *open, size_t k) {
    const uint32_t first = open->opens, second = opened(x->g, open)->other;
    const uint32_t taken = second != 0 && x->untaken[first] ? second : first;
    const tide__size a = size_of(x, x->g->nodes[tide_region_of(x->g, taken)->close].inputs[k]);
    if (second == 0 || x->untaken[first] || x->untaken[second]) return a;
    const tide__size b = size_of(x, x->g->nodes[tide_region_of(x->g, second)->close].inputs[k]);
    return tide__size_either(&a, &b);
}

/// The fewest and the most items that sequence `k` of a Scan has.
static bool items_of(const tide__region_view *x, const tide_node *open, size_t k, tide__size *sequence, int32_t *axis) {
    *sequence = size_of(x, open->inputs[opened(x->g, open)->n_carried + k]);
    if (sequence->state == TIDE_BOUND_NONE) return false;
    *axis = tide_region_axis(open, "scan_input_axes", k, sequence->most.rank);
    return *axis >= 0;
}

/// How often a body runs.
static bool turns_of(const tide__region_view *x, const tide_node *open, int64_t *least, int64_t *most) {
    const tide_region *r = opened(x->g, open);
    tide__size sequence;
    int32_t axis = 0;
    if (r->kind == TIDE_REGION_SCAN) {
        if (r->n_items == 0 || !items_of(x, open, 0, &sequence, &axis)) return false;
        *least = sequence.least.dims[axis];
        *most = sequence.most.dims[axis];
        return true;
    }
    if (trips_of(x, r, most)) {
        *least = *most;
        return true;
    }
    const int64_t *trips = content_of(x, open->inputs[0], TIDE_I64);
    if (trips == NULL) return false;
    *least = 0;
    *most = *trips > 0 ? *trips : 0;
    return true;
}

static void insert_extent(tide_shape *s, int32_t axis, int64_t extent) {
    for (int32_t d = s->rank++; d > axis; d--) s->dims[d] = s->dims[d - 1];
    s->dims[axis] = extent;
}

static tide__size size_of_collected(const tide__region_view *x, const tide_node *open, size_t k) {
    const tide_region *r = opened(x->g, open);
    const uint32_t part = x->g->nodes[r->close].inputs[tide_region_first_next(r) + k];
    tide__size s = size_of(x, part);
    int64_t least, most;
    int32_t axis = 0;
    if (s.state == TIDE_BOUND_NONE || s.most.rank >= TIDE_MAX_RANK || !turns_of(x, open, &least, &most))
        return type_of(x, part);
    if (r->kind == TIDE_REGION_SCAN)
        axis = tide_region_axis(open, "scan_output_axes", k - r->n_carried, s.most.rank + 1);
    if (axis < 0) return type_of(x, part);
    insert_extent(&s.most, axis, most);
    insert_extent(&s.least, axis, least);
    return s;
}

static void remove_extent(tide_shape *s, int32_t axis) {
    s->rank--;
    for (int32_t d = axis; d < s->rank; d++) s->dims[d] = s->dims[d + 1];
    s->dims[s->rank] = 0;
}

tide__size tide__region_size(const tide__region_view *x, const tide_node *open, size_t k) {
    const tide_region *r = opened(x->g, open);
    if (!tide_region_repeats(r)) return size_of_branch(x, open, k);
    if (tide__region_is_late(x->g, open, k)) return size_of_collected(x, open, k);
    tide__size s;
    int32_t axis = 0;
    if (k < r->n_carried) {
        s = size_of(x, open->inputs[tide_region_first_init(r) + k]);
        for (int32_t d = 0; d < s.least.rank; d++) s.least.dims[d] = 0; // it may have changed before
        return s;
    }
    if (k >= tide_region_iteration(r) || !items_of(x, open, k - r->n_carried - r->n_collected, &s, &axis))
        return nothing_known;
    remove_extent(&s.most, axis);
    remove_extent(&s.least, axis);
    return s;
}

tide_status tide__region_check_trips(const tide__region_view *x, const tide_region *r, tide_error *err) {
    int64_t n;
    if (r->kind != TIDE_REGION_LOOP || !trips_of(x, r, &n) || n <= TIDE_REGION_MAX_TRIPS) return TIDE_OK;
    return FAIL(err, &x->g->nodes[r->open], TIDE_ERR_BAD_INPUT,
                "it would go round %" PRId64 " times, and nothing ends it before", n);
}

tide_status tide__region_check_carried(const tide__region_view *x, const tide_region *r, size_t k, tide_error *err) {
    const tide_node *open = &x->g->nodes[r->open], *close = &x->g->nodes[r->close];
    const tide_value *now = &x->g->values[open->outputs[k]];
    const tide_value *next = &x->g->values[close->inputs[tide_region_first_next(r) + k]];
    if (next->dtype != TIDE_DTYPE_UNDEFINED && now->dtype != TIDE_DTYPE_UNDEFINED && next->dtype != now->dtype)
        return FAIL(err, open, TIDE_ERR_BAD_INPUT, "an iteration is given '%s' as %s and hands on %s", now->name,
                    tide_dtype_name(now->dtype), tide_dtype_name(next->dtype));
    if (now->is_dynamic || (is_known(next) && tide_shape_equal(&now->shape, &next->shape))) return TIDE_OK;
    return FAIL(err, open, TIDE_ERR_UNKNOWN_SIZE, "the size of '%s' may change from one iteration to the next",
                now->name);
}
