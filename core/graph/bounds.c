// SPDX-License-Identifier: MIT
//
// Bounds of dynamic values. See bounds.h.
//
//     rule   NonZero of [4x64]: at most [2x256]      core/ops/bounds.c has the rules
//     file   value_info: [2x?]                       each extent that is fixed there, checked in each run
//     user   --bound y=2x100
//     bound  [2x100]                                 the least of them, extent by extent
#include "core/graph/bounds.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/graph/graph_internal.h"
#include "core/graph/region.h"
#include "core/graph/sizes.h"

static bool has_known_size(const tide_value *v) {
    return !v->is_dynamic && v->dtype != TIDE_DTYPE_UNDEFINED && v->has_shape && tide_shape_known(&v->shape);
}

tide__size tide__size_of(const tide_value *v) {
    if (has_known_size(v)) return (tide__size){TIDE_BOUND_SHAPE, v->dtype, v->shape, v->shape};
    if (!v->is_dynamic || v->bound == NULL) return (tide__size){.state = TIDE_BOUND_NONE};
    return (tide__size){v->bound->is_count ? TIDE_BOUND_COUNT : TIDE_BOUND_SHAPE, v->dtype, v->bound->most,
                        v->bound->least};
}

tide__size tide__size_either(const tide__size *a, const tide__size *b) {
    tide__size out = *a;
    if (a->state != TIDE_BOUND_SHAPE || b->state != TIDE_BOUND_SHAPE || a->dtype != b->dtype ||
        a->most.rank != b->most.rank)
        return (tide__size){.state = TIDE_BOUND_NONE, .dtype = a->dtype};
    for (int32_t d = 0; d < out.most.rank; d++) {
        if (b->most.dims[d] > out.most.dims[d]) out.most.dims[d] = b->most.dims[d];
        if (b->least.dims[d] < out.least.dims[d]) out.least.dims[d] = b->least.dims[d];
    }
    return out;
}

bool tide__size_fits(const tide__size *a, const tide__size *b) {
    if (a->state != b->state || a->dtype != b->dtype || a->most.rank != b->most.rank) return false;
    for (int32_t d = 0; d < a->most.rank; d++) {
        if (a->most.dims[d] > b->most.dims[d]) return false;
        if (a->state == TIDE_BOUND_SHAPE && a->least.dims[d] < b->least.dims[d]) return false;
    }
    return true;
}

// ---- what the file says ----

/// The extent as the file fixes it, or as the graph's inputs do that have its name; TIDE_DIM_UNKNOWN.
static int64_t file_extent(const tide_graph *g, const tide_value *v, int32_t d, bool by_name) {
    if (v->shape.dims[d] != TIDE_DIM_UNKNOWN) return v->shape.dims[d];
    const char *name = by_name && v->dim_names != NULL ? v->dim_names[d] : NULL;
    return name != NULL ? tide__symbol_extent(g, name) : TIDE_DIM_UNKNOWN;
}

/// A name is taken at its word only where the operator has no rule: files use one for what is not the same.
static bool narrow_by_file(const tide_graph *g, const tide_value *v, tide__size *s) {
    const bool has_rule = s->state == TIDE_BOUND_SHAPE;
    if (!v->has_shape || (has_rule && s->most.rank != v->shape.rank)) return false;
    tide__size file = {TIDE_BOUND_SHAPE, s->dtype, v->shape, v->shape};
    for (int32_t d = 0; d < v->shape.rank; d++) {
        const int64_t extent = file_extent(g, v, d, !has_rule);
        if (extent == TIDE_DIM_UNKNOWN && !has_rule) return false;
        const bool is_less = !has_rule || (extent != TIDE_DIM_UNKNOWN && extent < s->most.dims[d]);
        file.most.dims[d] = is_less ? extent : s->most.dims[d];
        file.least.dims[d] = v->shape.dims[d] != TIDE_DIM_UNKNOWN ? v->shape.dims[d] : has_rule ? s->least.dims[d] : 0;
        if (file.least.dims[d] > file.most.dims[d]) file.least.dims[d] = file.most.dims[d]; // the run will tell
    }
    *s = file;
    return true;
}

// ---- what the user says ----

static const tide_bound_given *given_of(const tide_graph *g, const tide_value *v) {
    for (size_t i = 0; i < g->n_given; i++) {
        if (strcmp(g->given[i].name, v->name) == 0) return &g->given[i];
    }
    return NULL;
}

static tide_status check_given(const tide_value *v, const tide_bound_given *given, const tide__size *s,
                               tide_error *err) {
    char says[192], is[192];
    const bool has_rule = s->state == TIDE_BOUND_SHAPE;
    tide_shape_format(&given->most, says, sizeof says);
    if (has_rule && s->most.rank != given->most.rank)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "the bound %s of tensor '%s' has %d extents, and the tensor %d", says,
                         v->name, (int)given->most.rank, (int)s->most.rank);
    for (int32_t d = 0; has_rule && d < given->most.rank; d++) {
        if (given->most.dims[d] == TIDE_DIM_UNKNOWN || given->most.dims[d] >= s->least.dims[d]) continue;
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "the bound %s of tensor '%s' contradicts its operator: extent %d is never less than %" PRId64
                         " of %s",
                         says, v->name, (int)d, s->least.dims[d], tide_shape_format(&s->most, is, sizeof is));
    }
    return TIDE_OK;
}

static tide_status narrow_by_user(const tide_value *v, const tide_bound_given *given, tide__size *s, tide_error *err) {
    TIDE_TRY(check_given(v, given, s, err));
    if (s->state != TIDE_BOUND_SHAPE) {
        if (!tide_shape_known(&given->most))
            return TIDE_FAIL(err, TIDE_ERR_INVALID,
                             "tensor '%s' has no bound of its own, and the one that is given leaves an extent open",
                             v->name);
        s->state = TIDE_BOUND_SHAPE;
        s->most = given->most;
        s->least = tide_shape_make(given->most.rank, (int64_t[TIDE_MAX_RANK]){0});
    }
    for (int32_t d = 0; d < s->most.rank; d++) {
        const int64_t most = given->most.dims[d];
        if (most != TIDE_DIM_UNKNOWN && most < s->most.dims[d]) s->most.dims[d] = most;
    }
    return TIDE_OK;
}

tide_status tide__bounds_check_given(const tide_graph *g, tide_error *err) {
    for (size_t i = 0; i < g->n_given; i++) {
        const uint32_t v = tide_graph_find_value(g, g->given[i].name);
        if (v == TIDE_NO_VALUE)
            return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "a bound is given for '%s', and the model has no such tensor",
                             g->given[i].name);
        if (!g->values[v].is_dynamic)
            return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND,
                             "a bound is given for tensor '%s', which is not sized while running", g->given[i].name);
    }
    return TIDE_OK;
}

// ---- a value ----

static tide_status keep(tide_value *v, const tide__size *s, bool by_file, bool by_user, tide_error *err) {
    if (v->bound == NULL) TIDE_TRY(TIDE_NEW(&v->bound, 1, err, "for the bound of '%s'", v->name));
    *v->bound = (tide_bound){s->most, s->least, s->state == TIDE_BOUND_COUNT, by_file, by_user};
    v->dtype = s->dtype;
    return TIDE_OK;
}

tide_status tide__bound_value(tide_graph *g, uint32_t value_i, const tide__size *rule, tide_error *err) {
    tide_value *v = &g->values[value_i];
    const tide_bound_given *given = given_of(g, v);
    tide__size s = *rule;
    size_t bytes = 0;
    TIDE_ASSERT(v->is_dynamic);
    tide_host_free(v->bound);
    v->bound = NULL;
    v->is_bounded = false;
    if (s.state == TIDE_BOUND_NONE) s.dtype = v->dtype != TIDE_DTYPE_UNDEFINED ? v->dtype : rule->dtype;
    if (v->dtype != TIDE_DTYPE_UNDEFINED && s.dtype != v->dtype) return TIDE_OK; // the run will tell
    const bool by_file = narrow_by_file(g, v, &s) && rule->state != TIDE_BOUND_SHAPE;
    if (given != NULL) TIDE_TRY(narrow_by_user(v, given, &s, err));
    if (given != NULL && s.dtype == TIDE_DTYPE_UNDEFINED)
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "tensor '%s' cannot be given a bound: its element type is known only while running", v->name);
    if (s.state == TIDE_BOUND_NONE || s.dtype == TIDE_DTYPE_UNDEFINED) return TIDE_OK;
    if (tide_shape_operand_bytes(&s.most, s.dtype, &bytes, NULL) != TIDE_OK) {
        if (given == NULL) return TIDE_OK; // more than there can be: no bound
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "the bound of tensor '%s' has more bytes than there can be", v->name);
    }
    TIDE_TRY(keep(v, &s, by_file, given != NULL, err));
    v->is_bounded = given != NULL || (g->bound_limit_bytes > 0 && (by_file || bytes <= g->bound_limit_bytes));
    return TIDE_OK;
}

// ---- a node ----

/// Numbers are followed back through so many nodes, one behind the other and all together, of so many operands: what
/// shapes are made of comes of a few. Past it they can be anything.
enum { MAX_DEPTH = 32, MAX_NODES = 256, MAX_OPERANDS = 256 };

/// Room for the operands of one node, in and out.
typedef struct room {
    tide_operand *operands; // [n]
    tide_shape *least;      // [n]
    tide_bound_state *state;
    tide_intervals *numbers; // [n]; NULL: of more than MAX_OPERANDS operands nothing is followed
} room;

static void room_deinit(room *r) {
    tide_host_free(r->operands);
    tide_host_free(r->least);
    tide_host_free(r->state);
    tide_host_free(r->numbers);
}

static tide_status make_room(room *r, size_t n, const tide_node *node, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&r->operands, n + 1, err, "for the operands of '%s'", node->name));
    TIDE_TRY(TIDE_NEW(&r->least, n + 1, err, "for the operands of '%s'", node->name));
    TIDE_TRY(TIDE_NEW(&r->state, n + 1, err, "for the operands of '%s'", node->name));
    if (n > MAX_OPERANDS) return TIDE_OK;
    return TIDE_NEW(&r->numbers, n + 1, err, "for the operands of '%s'", node->name);
}

/// Operators know a known operand by its data: a content of 0 bytes has some address too.
static void *content_of(const tide_graph *g, tide_tensor *const *known, uint32_t value_i) {
    static unsigned char nothing[1];
    const tide_tensor *t = g->values[value_i].constant;
    const void *data;
    if (t == NULL && known != NULL) t = known[value_i];
    if (t == NULL || tide_constant_is_blank(t) || !tide_tensor_is_contiguous(t)) return NULL;
    if (tide_tensor_size_bytes(t) == 0) return nothing;
    return tide_tensor_read(t, &data, NULL) == TIDE_OK ? (void *)(uintptr_t)data : NULL;
}

static void load(const tide_graph *g, tide_tensor *const *known, const tide_node *n, size_t k, room *r) {
    r->state[k] = TIDE_BOUND_SHAPE;
    if (n->inputs[k] == TIDE_NO_VALUE) return;
    const tide__size s = tide__size_of(&g->values[n->inputs[k]]);
    tide_operand *o = &r->operands[k];
    *o = (tide_operand){.dtype = s.dtype, .shape = s.most};
    r->least[k] = s.least;
    r->state[k] = s.state;
    if (s.state == TIDE_BOUND_NONE) return;
    if (tide_shape_operand_bytes(&o->shape, o->dtype, &o->size_bytes, NULL) != TIDE_OK)
        r->state[k] = TIDE_BOUND_NONE;
    else
        o->data = content_of(g, known, n->inputs[k]);
}

/// What is asked about numbers: where contents are, and how far it may still go.
typedef struct search {
    const tide_graph *g;
    tide_tensor *const *known;
    size_t depth, n_nodes;
} search;

static tide_status load_all(search *s, const tide_node *n, room *r, tide_error *err);

static tide_bounds question(const tide_node *n, const room *r) {
    return (tide_bounds){.node = n,
                         .in = r->operands,
                         .least = r->least,
                         .state = r->state,
                         .in_numbers = r->numbers,
                         .n_in = n->n_inputs,
                         .out = r->operands + n->n_inputs,
                         .out_least = r->least + n->n_inputs,
                         .out_state = r->state + n->n_inputs,
                         .out_numbers = r->numbers != NULL ? r->numbers + n->n_inputs : NULL,
                         .n_out = n->n_outputs};
}

/// What the rule of the node that makes the value says of its numbers.
static tide_status ask_producer(search *s, const tide_value *v, tide_intervals *out, tide_error *err) {
    const tide_node *n = v->producer != TIDE_NO_NODE ? &s->g->nodes[v->producer] : NULL;
    if (n == NULL || n->rule == NULL || n->dead || n->quant != NULL || tide_node_is_control(n)) return TIDE_OK;
    if (s->depth >= MAX_DEPTH || s->n_nodes >= MAX_NODES) return TIDE_OK;
    room r = {0};
    s->depth++;
    s->n_nodes++;
    tide_status st = make_room(&r, n->n_inputs + n->n_outputs, n, err);
    if (st == TIDE_OK) st = load_all(s, n, &r, err);
    if (st == TIDE_OK && r.numbers != NULL) {
        tide_bounds x = question(n, &r);
        const tide_intervals *says = &x.out_numbers[v->producer_port];
        if (n->rule(&x) && says->n == out->n && x.out[v->producer_port].dtype == v->dtype) *out = *says;
    }
    s->depth--;
    room_deinit(&r);
    return st;
}

/// Of operand `k`, whose size stands in `r`.
static tide_status load_numbers(search *s, const tide_node *n, size_t k, room *r, tide_error *err) {
    const tide_operand *o = &r->operands[k];
    if (r->numbers == NULL) return TIDE_OK;
    r->numbers[k] = (tide_intervals){.n = 0};
    if (n->inputs[k] == TIDE_NO_VALUE || r->state[k] != TIDE_BOUND_SHAPE) return TIDE_OK;
    if (!tide_shape_equal(&o->shape, &r->least[k])) return TIDE_OK;
    const int64_t n_elements = (int64_t)(o->size_bytes / tide_dtype_size(o->dtype));
    if (o->data != NULL) {
        r->numbers[k] = tide_intervals_of(o->dtype, o->data, n_elements);
        return TIDE_OK;
    }
    r->numbers[k] = tide_intervals_any(o->dtype, n_elements);
    return r->numbers[k].n > 0 ? ask_producer(s, &s->g->values[n->inputs[k]], &r->numbers[k], err) : TIDE_OK;
}

static tide_status load_all(search *s, const tide_node *n, room *r, tide_error *err) {
    for (size_t k = 0; k < n->n_inputs; k++) {
        load(s->g, s->known, n, k, r);
        TIDE_TRY(load_numbers(s, n, k, r, err));
    }
    return TIDE_OK;
}

static tide_status bound_outputs(tide_graph *g, tide_node *n, const room *r, tide_error *err) {
    for (size_t k = 0; k < n->n_outputs; k++) {
        const size_t at = n->n_inputs + k;
        if (n->outputs[k] == TIDE_NO_VALUE) continue;
        const tide__size rule = {r->state[at], r->operands[at].dtype, r->operands[at].shape, r->least[at]};
        TIDE_TRY(tide__bound_value(g, n->outputs[k], &rule, err));
    }
    return TIDE_OK;
}

tide_status tide__bound_node(tide_graph *g, tide_node *n, tide_tensor *const *known, tide_error *err) {
    room r = {0};
    tide_status st = make_room(&r, n->n_inputs + n->n_outputs, n, err);
    search all = {.g = g, .known = known};
    if (st == TIDE_OK) st = load_all(&all, n, &r, err);
    if (st == TIDE_OK) {
        tide_bounds x = question(n, &r);
        const bool is_known = n->rule != NULL && n->rule(&x);
        for (size_t k = 0; k < n->n_outputs && !is_known; k++) {
            x.out_state[k] = TIDE_BOUND_NONE;
            x.out[k].dtype = TIDE_DTYPE_UNDEFINED;
        }
        n->is_sized_by_shapes = is_known && x.is_by_shapes;
        n->has_most_scratch = is_known && x.is_scratch_by_shapes;
        st = bound_outputs(g, n, &r, err);
    }
    room_deinit(&r);
    return st;
}
