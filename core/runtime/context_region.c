// SPDX-License-Identifier: MIT
//
// Where a run goes on: the steps that open or close a region (core/graph/region.h).
//
//     If              no branch has run: to the first step of the one that the condition names
//     Merge           results of the branch -> results of the If; on behind the If
//     Loop, Scan      what is handed in -> carried values, the first items; on with the body, or behind it
//     NextIteration   what is collected -> its place; next values -> carried values; on with the body again, or behind
//                     it
//
// Copies are of tensors in the plan (or of the caller); a dynamic value becomes another tensor instead, and lies
// where that one lies. What a Loop collects grows by doubling where it is not known how often the Loop will go round.
#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/graph/region.h"
#include "core/memory/poison.h"
#include "core/runtime/runtime_internal.h"
#include "core/runtime/value_operand.h"

static const tide_graph *graph_of(const tide_context *c) { return c->plan->program->graph; }
static const char *name_of(const tide_context *c, uint32_t value_i) { return graph_of(c)->values[value_i].name; }
static bool is_dynamic(const tide_context *c, uint32_t value_i) { return c->plan->needs[value_i].dynamic; }
static bool is_bounded(const tide_context *c, uint32_t value_i) { return c->plan->needs[value_i].bounded; }

/// A region whose opening or closing step runs.
typedef struct turn {
    tide_context *c;
    const tide_region *r;
    const tide_node *open, *close;
} turn;

// ---- one value becomes another one's content ----

static tide_status fail_shape(const tide_context *c, uint32_t value_i, const tide_operand *is, const tide_operand *want,
                              tide_error *err) {
    char a[192], b[192];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is %s %s and would become %s %s", name_of(c, value_i),
                     tide_dtype_name(want->dtype), tide_shape_format(&want->shape, a, sizeof a),
                     tide_dtype_name(is->dtype), tide_shape_format(&is->shape, b, sizeof b));
}

static tide_status assign_dynamic(tide_context *c, uint32_t to, uint32_t from, const tide_operand *src,
                                  tide_error *err) {
    if (is_dynamic(c, from)) {
        tide__context_set_dynamic(c, to, c->values[from]);
        return TIDE_OK;
    }
    tide_operand copy = *src;
    tide__context_set_dynamic(c, to, NULL);
    TIDE_TRY(tide__context_make_dynamic(c, to, &copy, err));
    if (copy.size_bytes > 0) memcpy(copy.data, src->data, copy.size_bytes);
    return TIDE_OK;
}

static tide_status fail_shape(const tide_context *c, uint32_t value_i, const tide_operand *is, const tide_operand *want,
                              tide_error *err);

static tide_status assign_bounded(tide_context *c, uint32_t to, const tide_operand *src, tide_error *err) {
    const tide_value *v = &graph_of(c)->values[to];
    const tide_operand want = {.dtype = v->dtype, .shape = v->bound->most};
    tide_operand copy = *src;
    if (src->dtype != v->dtype) return fail_shape(c, to, src, &want, err);
    const size_t before = c->sized[to] ? tide_tensor_size_bytes(c->values[to]) : 0;
    TIDE_TRY(tide__context_size_bounded(c, to, &copy, err));
    if (c->fill == TIDE_FILL_POISON && copy.size_bytes < before) // what an iteration before has left behind its end
        tide_poison_fill((char *)c->data[to] + copy.size_bytes, before - copy.size_bytes);
    if (copy.size_bytes > 0 && copy.data != src->data) memcpy(copy.data, src->data, copy.size_bytes);
    return TIDE_OK;
}

/// `to` has the content of `from` now.
static tide_status assign(tide_context *c, uint32_t to, uint32_t from, tide_error *err) {
    tide_operand src, dst;
    if (to == TIDE_NO_VALUE || to == from) return TIDE_OK;
    TIDE_TRY(tide__context_operand(c, from, &src, err));
    if (is_dynamic(c, to)) return assign_dynamic(c, to, from, &src, err);
    if (is_bounded(c, to)) return assign_bounded(c, to, &src, err);
    TIDE_TRY(tide__value_operand(graph_of(c), to, &dst, err));
    if (src.dtype != dst.dtype || !tide_shape_equal(&src.shape, &dst.shape)) return fail_shape(c, to, &src, &dst, err);
    // They are the same bytes where the plan has put the one into the other.
    if (src.size_bytes > 0 && c->data[to] != src.data) memcpy(c->data[to], src.data, src.size_bytes);
    return TIDE_OK;
}

// ---- scalars ----

static tide_status read_scalar(const tide_context *c, uint32_t value_i, tide_dtype dtype, const void **out,
                               tide_error *err) {
    tide_operand o;
    TIDE_TRY(tide__context_operand(c, value_i, &o, err));
    if (o.dtype == dtype && o.size_bytes == tide_dtype_size(dtype)) {
        *out = o.data;
        return TIDE_OK;
    }
    char shape[192];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is %s %s, one element of %s is wanted", name_of(c, value_i),
                     tide_dtype_name(o.dtype), tide_shape_format(&o.shape, shape, sizeof shape),
                     tide_dtype_name(dtype));
}

static tide_status read_condition(const tide_context *c, uint32_t value_i, bool *out, tide_error *err) {
    const void *data;
    *out = true;
    if (value_i == TIDE_NO_VALUE) return TIDE_OK; // nothing ends it
    TIDE_TRY(read_scalar(c, value_i, TIDE_BOOL, &data, err));
    *out = *(const unsigned char *)data != 0;
    return TIDE_OK;
}

// ---- along an axis ----

/// Rows of a tensor along one axis, each in `n_outer` stretches of `row_bytes`.
typedef struct rows {
    char *data;
    int64_t n; ///< rows
    size_t n_outer, row_bytes;
} rows;

static rows rows_of(const tide_operand *o, int32_t axis) {
    rows r = {.data = o->data, .n = o->shape.dims[axis], .n_outer = 1, .row_bytes = tide_dtype_size(o->dtype)};
    for (int32_t d = 0; d < axis; d++) r.n_outer *= (size_t)o->shape.dims[d];
    for (int32_t d = axis + 1; d < o->shape.rank; d++) r.row_bytes *= (size_t)o->shape.dims[d];
    return r;
}

/// The stretches of row `at` stand behind each other in `part`.
static void copy_row(const rows *r, int64_t at, char *part, bool into_part) {
    TIDE_ASSERT(at >= 0 && at < r->n);
    for (size_t i = 0; i < r->n_outer; i++) {
        char *row = r->data + (i * (size_t)r->n + (size_t)at) * r->row_bytes;
        if (into_part)
            memcpy(part + i * r->row_bytes, row, r->row_bytes);
        else
            memcpy(row, part + i * r->row_bytes, r->row_bytes);
    }
}

static bool is_backward(const turn *t, const char *attr, size_t k) {
    size_t len;
    const int64_t *directions = tide_node_attr_ints(t->open, attr, &len);
    return k < len && directions[k] != 0;
}

static tide_status check_axis(const turn *t, uint32_t value_i, int32_t axis, int32_t rank, tide_error *err) {
    if (axis >= 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' has %d extents, and not the axis that the node names",
                     name_of(t->c, value_i), (int)rank);
}

// ---- sequences of a Scan ----

static uint32_t sequence_of(const turn *t, size_t k) { return t->open->inputs[t->r->n_carried + k]; }
static uint32_t item_of(const turn *t, size_t k) { return t->open->outputs[t->r->n_carried + t->r->n_collected + k]; }

static tide_status read_sequence(const turn *t, size_t k, tide_operand *o, int32_t *axis, tide_error *err) {
    TIDE_TRY(tide__context_operand(t->c, sequence_of(t, k), o, err));
    *axis = tide_region_axis(t->open, "scan_input_axes", k, o->shape.rank);
    return check_axis(t, sequence_of(t, k), *axis, o->shape.rank, err);
}

static tide_status sequence_length(const turn *t, int64_t *out, tide_error *err) {
    tide_operand o;
    int32_t axis = 0;
    for (size_t k = 0; k < t->r->n_items; k++) {
        TIDE_TRY(read_sequence(t, k, &o, &axis, err));
        if (k > 0 && o.shape.dims[axis] != *out)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' has %" PRId64 " items, the first sequence %" PRId64,
                             name_of(t->c, sequence_of(t, k)), o.shape.dims[axis], *out);
        *out = o.shape.dims[axis];
    }
    return TIDE_OK;
}

static tide_status make_item(tide_context *c, uint32_t value_i, tide_operand *item, tide_error *err) {
    if (is_bounded(c, value_i)) return tide__context_size_bounded(c, value_i, item, err);
    TIDE_TRY(tide_shape_bytes(&item->shape, item->dtype, &item->size_bytes, err));
    tide__context_set_dynamic(c, value_i, NULL);
    return tide__context_make_dynamic(c, value_i, item, err);
}

/// Item `at` of each sequence.
static tide_status take_items(const turn *t, int64_t at, tide_error *err) {
    for (size_t k = 0; k < t->r->n_items; k++) {
        tide_operand o, item;
        int32_t axis = 0;
        const uint32_t value_i = item_of(t, k);
        if (value_i == TIDE_NO_VALUE) continue;
        TIDE_TRY(read_sequence(t, k, &o, &axis, err));
        const rows all = rows_of(&o, axis);
        if (is_dynamic(t->c, value_i) || is_bounded(t->c, value_i)) {
            item = o;
            item.shape.rank--;
            for (int32_t d = axis; d < item.shape.rank; d++) item.shape.dims[d] = o.shape.dims[d + 1];
            TIDE_TRY(make_item(t->c, value_i, &item, err));
        } else {
            TIDE_TRY(tide__value_operand(graph_of(t->c), value_i, &item, err));
            item.data = t->c->data[value_i];
        }
        TIDE_ASSERT(item.size_bytes == all.n_outer * all.row_bytes);
        const int64_t row = is_backward(t, "scan_input_directions", k) ? all.n - 1 - at : at;
        if (item.size_bytes > 0) copy_row(&all, row, item.data, true);
    }
    return TIDE_OK;
}

// ---- what is collected ----

static uint32_t collected_of(const turn *t, size_t k) { return t->open->outputs[t->r->n_carried + k]; }
static uint32_t part_of(const turn *t, size_t k) {
    return t->close->inputs[tide_region_first_next(t->r) + t->r->n_carried + k];
}

/// The shape of all of them, of which `n` are there.
static tide_status collected_shape(const turn *t, size_t k, const tide_operand *part, int64_t n, tide_operand *out,
                                   int32_t *axis, tide_error *err) {
    const int32_t rank = part->shape.rank + 1;
    *axis = t->r->kind == TIDE_REGION_SCAN ? tide_region_axis(t->open, "scan_output_axes", k, rank) : 0;
    if (rank > TIDE_MAX_RANK)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "'%s' would have %d extents, %d are the most",
                         name_of(t->c, collected_of(t, k)), (int)rank, TIDE_MAX_RANK);
    TIDE_TRY(check_axis(t, collected_of(t, k), *axis, rank, err));
    *out = *part;
    out->shape.rank = rank;
    for (int32_t d = rank - 1; d > *axis; d--) out->shape.dims[d] = part->shape.dims[d - 1];
    out->shape.dims[*axis] = n;
    return tide_shape_bytes(&out->shape, out->dtype, &out->size_bytes, err);
}

/// Room for `capacity` of them, with the `n` that are there.
static tide_status make_room(const turn *t, size_t k, const tide_operand *part, int64_t n, int64_t capacity,
                             tide_error *err) {
    const uint32_t value_i = collected_of(t, k);
    tide_operand whole;
    int32_t axis = 0;
    tide_tensor *old = t->c->values[value_i];
    TIDE_TRY(collected_shape(t, k, part, capacity, &whole, &axis, err));
    if (is_bounded(t->c, value_i)) return tide__context_size_bounded(t->c, value_i, &whole, err);
    if (old != NULL) tide_tensor_ref(old);
    tide__context_set_dynamic(t->c, value_i, NULL);
    const tide_status st = tide__context_make_dynamic(t->c, value_i, &whole, err);
    if (st == TIDE_OK && old != NULL && part->size_bytes > 0)
        memcpy(whole.data, tide_tensor_const_data(old), part->size_bytes * (size_t)n); // along the first axis
    tide_tensor_unref(old);
    return st;
}

/// The place of all of them, in which `part` must have the shape of one.
static tide_status find_place(const turn *t, size_t k, const tide_operand *part, int32_t *axis, tide_operand *whole,
                              tide_error *err) {
    tide_operand want;
    TIDE_TRY(tide__context_operand(t->c, collected_of(t, k), whole, err));
    whole->data = t->c->data[collected_of(t, k)];
    TIDE_TRY(collected_shape(t, k, part, 0, &want, axis, err));
    if (want.dtype == whole->dtype && want.shape.rank == whole->shape.rank) {
        want.shape.dims[*axis] = whole->shape.dims[*axis];
        if (tide_shape_equal(&want.shape, &whole->shape)) return TIDE_OK;
    }
    return fail_shape(t->c, collected_of(t, k), part, whole, err);
}

/// Of a bounded one: room for as many as there can be, or for part `at`, which is one too many.
static tide_status have_bound(const turn *t, size_t k, const tide_operand *part, int64_t at, tide_error *err) {
    int64_t n = graph_of(t->c)->values[collected_of(t, k)].bound->most.dims[0];
    if (t->r->kind == TIDE_REGION_SCAN) TIDE_TRY(sequence_length(t, &n, err));
    if (at > 0 && at < n) return TIDE_OK;
    return make_room(t, k, part, at, at < n ? n : at + 1, err);
}

/// Of a dynamic one: so many that part `at` has a place.
static tide_status have_room(const turn *t, size_t k, const tide_operand *part, int64_t at, tide_error *err) {
    const tide_tensor *now = t->c->values[collected_of(t, k)];
    enum { FIRST = 8 };
    int64_t n = 0;
    if (t->r->kind == TIDE_REGION_SCAN) {
        TIDE_TRY(sequence_length(t, &n, err));
        return now == NULL ? make_room(t, k, part, 0, n, err) : TIDE_OK;
    }
    if (now != NULL && tide_tensor_shape(now)->rank > 0) n = tide_tensor_shape(now)->dims[0];
    if (now != NULL && at < n) return TIDE_OK;
    if (n > INT64_MAX / 2) return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "more than 2^62 items");
    return make_room(t, k, part, at, n < FIRST ? FIRST : 2 * n, err);
}

static tide_status collect(const turn *t, size_t k, int64_t at, tide_error *err) {
    const uint32_t value_i = collected_of(t, k);
    tide_operand part, whole;
    int32_t axis = 0;
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    TIDE_TRY(tide__context_operand(t->c, part_of(t, k), &part, err));
    if (is_bounded(t->c, value_i)) TIDE_TRY(have_bound(t, k, &part, at, err));
    if (is_dynamic(t->c, value_i)) {
        // More room is made by the shape of this part: first it is held against those before.
        if (t->c->values[value_i] != NULL) TIDE_TRY(find_place(t, k, &part, &axis, &whole, err));
        TIDE_TRY(have_room(t, k, &part, at, err));
    }
    TIDE_TRY(find_place(t, k, &part, &axis, &whole, err));
    const rows all = rows_of(&whole, axis);
    const int64_t row = is_backward(t, "scan_output_directions", k) ? all.n - 1 - at : at;
    TIDE_ASSERT(part.size_bytes == all.n_outer * all.row_bytes);
    if (part.size_bytes > 0) copy_row(&all, row, part.data, false);
    return TIDE_OK;
}

/// A shape for all of them where no iteration made any: what the file says of a part or of all, 0 for the rest.
static tide_status empty_part(const turn *t, size_t k, tide_operand *part, tide_error *err) {
    const tide_value *v = &graph_of(t->c)->values[part_of(t, k)];
    const tide_value *all = &graph_of(t->c)->values[collected_of(t, k)];
    const bool by_bound = !v->has_shape && !all->has_shape && all->is_bounded;
    const bool from_all = by_bound || (!v->has_shape && all->has_shape && all->shape.rank > 0);
    *part = (tide_operand){.dtype = v->dtype != TIDE_DTYPE_UNDEFINED ? v->dtype : all->dtype, .shape = v->shape};
    if (part->dtype == TIDE_DTYPE_UNDEFINED || (!v->has_shape && !from_all))
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "there was no iteration, and the file does not say what '%s' is",
                         v->name);
    if (from_all) {
        const tide_shape *whole = by_bound ? &all->bound->least : &all->shape;
        const int32_t axis =
            t->r->kind == TIDE_REGION_SCAN ? tide_region_axis(t->open, "scan_output_axes", k, whole->rank) : 0;
        part->shape = *whole;
        TIDE_TRY(check_axis(t, collected_of(t, k), axis, whole->rank, err));
        part->shape.rank--;
        for (int32_t d = axis; d < part->shape.rank; d++) part->shape.dims[d] = whole->dims[d + 1];
    }
    for (int32_t d = 0; d < part->shape.rank; d++) {
        if (part->shape.dims[d] == TIDE_DIM_UNKNOWN) part->shape.dims[d] = 0;
    }
    return tide_shape_bytes(&part->shape, part->dtype, &part->size_bytes, err);
}

/// As many as there are, over the room that was made for more.
static tide_status cut(const turn *t, uint32_t value_i, int64_t n, tide_error *err) {
    tide_tensor *room = t->c->values[value_i], *whole;
    tide_shape shape = *tide_tensor_shape(room);
    if (t->r->kind == TIDE_REGION_SCAN || shape.dims[0] == n) return TIDE_OK;
    shape.dims[0] = n;
    if (is_bounded(t->c, value_i)) {
        tide_operand all = {.dtype = tide_tensor_dtype(room), .shape = shape};
        return tide__context_size_bounded(t->c, value_i, &all, err);
    }
    tide_status st =
        tide_tensor_is_bound(room)
            ? tide_tensor_create_on(tide_tensor_storage(room), 0, tide_tensor_dtype(room), &shape, &whole, err)
            : tide_tensor_create_unbound(tide_tensor_dtype(room), &shape, t->c->plan->device, &whole, err);
    if (st == TIDE_OK) {
        tide__context_set_dynamic(t->c, value_i, whole);
        tide_tensor_unref(whole);
    }
    return st;
}

/// `n` iterations have run, and there is no other one.
static tide_status finish(const turn *t, int64_t n, tide_error *err) {
    for (size_t k = 0; k < t->r->n_collected; k++) {
        const uint32_t value_i = collected_of(t, k);
        tide_operand part;
        if (value_i == TIDE_NO_VALUE || !(is_dynamic(t->c, value_i) || is_bounded(t->c, value_i))) continue;
        if (is_bounded(t->c, value_i) ? n == 0 : t->c->values[value_i] == NULL) {
            TIDE_TRY(empty_part(t, k, &part, err));
            TIDE_TRY(make_room(t, k, &part, 0, 0, err));
        }
        TIDE_TRY(cut(t, value_i, n, err));
        if (is_dynamic(t->c, value_i)) tide__context_note_output(t->c, value_i);
    }
    for (size_t k = 0; k < t->r->n_carried; k++) {
        const uint32_t value_i = t->open->outputs[k];
        if (value_i != TIDE_NO_VALUE && is_dynamic(t->c, value_i)) tide__context_note_output(t->c, value_i);
    }
    return TIDE_OK;
}

// ---- iterations ----

/// INT64_MAX where there is no limit.
static tide_status read_trips(const turn *t, int64_t *out, tide_error *err) {
    const void *data;
    *out = INT64_MAX;
    if (t->r->kind == TIDE_REGION_SCAN) return sequence_length(t, out, err);
    if (t->open->inputs[0] == TIDE_NO_VALUE) return TIDE_OK;
    TIDE_TRY(read_scalar(t->c, t->open->inputs[0], TIDE_I64, &data, err));
    memcpy(out, data, sizeof *out);
    return TIDE_OK;
}

static int64_t *iteration_of(const turn *t) { return t->c->data[t->open->outputs[tide_region_iteration(t->r)]]; }

/// What the body reads of its turn: the number, and that the condition holds; items.
static tide_status begin_iteration(const turn *t, int64_t number, tide_error *err) {
    TIDE_ASSERT(number >= 0 && iteration_of(t) != NULL);
    memcpy(iteration_of(t), &number, sizeof number);
    if (t->r->kind == TIDE_REGION_SCAN) return take_items(t, number, err);
    *(unsigned char *)t->c->data[t->open->outputs[tide_region_iteration(t->r) + 1]] = 1;
    return TIDE_OK;
}

static tide_status check_trips(const turn *t, int64_t trips, tide_error *err) {
    if (t->r->kind != TIDE_REGION_LOOP || trips <= TIDE_REGION_MAX_TRIPS || !tide_region_hands_on(graph_of(t->c), t->r))
        return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "it would go round %" PRId64 " times, and nothing ends it before", trips);
}

static tide_status open_loop(const turn *t, size_t step_i, size_t *next, tide_error *err) {
    const size_t first = tide_region_first_init(t->r);
    int64_t trips;
    bool goes = true;
    TIDE_TRY(read_trips(t, &trips, err));
    if (t->r->kind == TIDE_REGION_LOOP) TIDE_TRY(read_condition(t->c, t->open->inputs[1], &goes, err));
    if (goes) TIDE_TRY(check_trips(t, trips, err));
    for (size_t k = 0; k < t->r->n_carried; k++)
        TIDE_TRY(assign(t->c, t->open->outputs[k], t->open->inputs[first + k], err));
    for (size_t k = 0; k < t->r->n_collected; k++) {
        const uint32_t value_i = collected_of(t, k);
        if (value_i != TIDE_NO_VALUE && is_dynamic(t->c, value_i)) tide__context_set_dynamic(t->c, value_i, NULL);
    }
    if (goes && trips > 0) return begin_iteration(t, 0, err);
    *next = t->c->plan->program->steps[step_i].jump;
    return finish(t, 0, err);
}

static tide_status close_loop(const turn *t, size_t step_i, size_t *next, tide_error *err) {
    const size_t first = tide_region_first_next(t->r);
    int64_t trips, at;
    bool goes = true;
    memcpy(&at, iteration_of(t), sizeof at);
    if (t->r->kind == TIDE_REGION_LOOP) TIDE_TRY(read_condition(t->c, t->close->inputs[0], &goes, err));
    TIDE_TRY(read_trips(t, &trips, err));
    for (size_t k = 0; k < t->r->n_collected; k++) TIDE_TRY(collect(t, k, at, err));
    for (size_t k = 0; k < t->r->n_carried; k++)
        TIDE_TRY(assign(t->c, t->open->outputs[k], t->close->inputs[first + k], err));
    if (++at >= trips || !goes) return finish(t, at, err);
    *next = t->c->plan->program->steps[step_i].jump;
    return begin_iteration(t, at, err);
}

// ---- branches ----

static tide_status open_if(const turn *t, size_t step_i, size_t *next, tide_error *err) {
    bool holds;
    TIDE_TRY(read_condition(t->c, t->open->inputs[0], &holds, err));
    const bool goes_first = holds == (t->r->kind == TIDE_REGION_THEN);
    TIDE_ASSERT(goes_first || t->r->other != 0); // what is left of an If is the branch that it takes
    if (!goes_first) *next = t->c->plan->program->steps[step_i].jump;
    return TIDE_OK;
}

static tide_status close_branch(const turn *t, size_t step_i, size_t *next, tide_error *err) {
    for (size_t k = 0; k < t->r->n_carried; k++) {
        const uint32_t value_i = t->open->outputs[k];
        if (value_i == TIDE_NO_VALUE) continue;
        TIDE_TRY(assign(t->c, value_i, t->close->inputs[k], err));
        if (is_dynamic(t->c, value_i)) tide__context_note_output(t->c, value_i);
    }
    *next = t->c->plan->program->steps[step_i].jump;
    return TIDE_OK;
}

tide_status tide__context_run_control(tide_context *c, size_t step_i, size_t *next, tide_error *err) {
    const tide_graph *g = graph_of(c);
    const tide_node *node = c->plan->program->steps[step_i].kernel.node;
    const bool opens = node->opens != 0;
    const tide_region *r = tide_region_of(g, opens ? node->opens : node->closes);
    const turn t = {.c = c, .r = r, .open = &g->nodes[r->open], .close = &g->nodes[r->close]};
    TIDE_ASSERT(c->steps[step_i].control && c->plan->program->steps[step_i].jump != 0);
    TIDE_ASSERT(t.open->opens != 0 && t.close->closes != 0 && !t.open->dead && !t.close->dead);
    *next = step_i + 1;
    if (tide_region_repeats(r)) return opens ? open_loop(&t, step_i, next, err) : close_loop(&t, step_i, next, err);
    return opens ? open_if(&t, step_i, next, err) : close_branch(&t, step_i, next, err);
}
