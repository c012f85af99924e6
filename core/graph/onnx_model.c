// SPDX-License-Identifier: MIT
//
// ModelProto to graph. Nodes may stand in any order: values are found by name, the order is made later.
//
// What the file may do and the graph does not: initialisers also listed as inputs (IR version 3) are constants,
// Constant nodes are constants, omitted optional operands have empty names, node names may be missing or repeated.
// Bodies of If, Loop and Scan become regions of the one graph (region.h), and calls of the file's own functions the
// nodes of the function: names in them belong to a scope, and a value gets its name there, or the next free one.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/graph/import.h"
#include "core/graph/onnx_internal.h"
#include "core/graph/region.h"
#include "core/graph/sizes.h"

enum { OPSET_MIN = 1, OPSET_MAX = 24 };

/// The names of a body, or of one call of a function.
typedef struct scope {
    const struct scope *up;              // NULL: the graph itself is around it
    tide_strmap names;                   // -> value index; TIDE_NO_VALUE: an operand that the call leaves out
    const Onnx__FunctionProto *function; // sees no names from outside; NULL: a body, which does
    const Onnx__NodeProto *call;         // of the function
    uint32_t open;                       // of a body: the node that it belongs to
    const char *prefix;                  // of the names of its nodes; "": none
} scope;

typedef struct importer {
    const Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;
    tide__onnx_bytes *from;
    tide_graph *g;
    const scope *scope;     // of the nodes at hand; NULL: those of the graph
    uint32_t region;        // that they belong to
    tide_strmap inner;      // names of values that belong to some scope: no other one sees them
    tide_strmap opsets;     // domain -> version
    tide_strmap node_names; // name -> 1 + index of the node of the file that owns it; 0: made up
    uint32_t *ends;         // [cap_ends] inputs, then outputs of the node at hand
    size_t cap_ends;
    size_t n_twice; // values that two Constant nodes produce
    uint32_t twice; // the first of them
    tide_error *err;
} importer;

// ---- opsets ----

static const char *plain_domain(const char *domain) {
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static tide_status read_opset_list(importer *im, Onnx__OperatorSetIdProto *const *list, size_t n, tide_strmap *out) {
    for (size_t i = 0; i < n; i++) {
        const Onnx__OperatorSetIdProto *o = list[i];
        const char *domain = plain_domain(o->domain);
        if (o->version < OPSET_MIN || o->version > INT32_MAX)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "opset version %" PRId64 " of domain '%s' is none",
                             o->version, domain);
        if (domain[0] == '\0' && o->version > OPSET_MAX)
            return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED,
                             "the model uses opset %" PRId64 ", %d is the last known", o->version, OPSET_MAX);
        if (tide_strmap_put(out, domain, (uint64_t)o->version) != TIDE_OK) return TIDE_NO_MEMORY(im->err, "for opsets");
    }
    return TIDE_OK;
}

static tide_status read_opsets(importer *im) {
    TIDE_TRY(read_opset_list(im, im->model->opset_import, im->model->n_opset_import, &im->opsets));
    // Before IR version 3 there was no such list and one opset.
    const bool old = im->model->has_ir_version && im->model->ir_version < 3;
    if (im->model->n_opset_import == 0 && !old)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "not an ONNX model: it names no opset");
    if (im->model->n_opset_import == 0 && tide_strmap_put(&im->opsets, "", 1) != TIDE_OK)
        return TIDE_NO_MEMORY(im->err, "for opsets");
    return TIDE_OK;
}

// ---- types of values ----

static tide_status declare_shape(importer *im, tide_value *v, const Onnx__TensorShapeProto *s) {
    if (s->n_dim > TIDE_MAX_RANK)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "'%s' has %zu extents, %d are the most", v->name, s->n_dim,
                         TIDE_MAX_RANK);
    TIDE_TRY(TIDE_NEW(&v->dim_names, s->n_dim, im->err, "for %s", v->name));
    v->shape = (tide_shape){.rank = (int32_t)s->n_dim};
    v->has_shape = true;
    for (size_t d = 0; d < s->n_dim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = s->dim[d];
        v->shape.dims[d] = TIDE_DIM_UNKNOWN;
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0)
            v->shape.dims[d] = dim->dim_value;
        if (dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM) continue;
        TIDE_TRY(TIDE_COPY_TEXT(&v->dim_names[d], tide__onnx_str(dim->dim_param), im->err, "for %s", v->name));
    }
    return TIDE_OK;
}

/// A constant's own type is the truth; what the file says of it beside must agree.
static tide_status check_constant(importer *im, const tide_value *v, tide_dtype dtype,
                                  const Onnx__TensorShapeProto *s) {
    bool good = dtype == v->dtype;
    if (s != NULL) good = good && s->n_dim == (size_t)v->shape.rank;
    for (size_t d = 0; good && s != NULL && d < s->n_dim; d++) {
        if (s->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            good = s->dim[d]->dim_value == v->shape.dims[d];
    }
    if (good) return TIDE_OK;
    char shape[192];
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "'%s' is declared otherwise than its initialiser, %s %s", v->name,
                     tide_dtype_name(v->dtype), tide_shape_format(&v->shape, shape, sizeof shape));
}

static tide_status declare_value(importer *im, uint32_t value_i, const Onnx__TypeProto *type) {
    tide_value *v = &im->g->values[value_i];
    if (type == NULL || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) return TIDE_OK;
    if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "'%s' is not a tensor", v->name);
    const Onnx__TypeProto__Tensor *t = type->tensor_type;
    tide_dtype dtype = TIDE_DTYPE_UNDEFINED;
    if (t->has_elem_type && t->elem_type != 0) TIDE_TRY(tide__onnx_dtype(t->elem_type, v->name, &dtype, im->err));
    if (v->constant != NULL) return dtype != TIDE_DTYPE_UNDEFINED ? check_constant(im, v, dtype, t->shape) : TIDE_OK;
    if (v->has_shape || v->dtype != TIDE_DTYPE_UNDEFINED) return TIDE_OK; // an input that is listed again
    v->dtype = dtype;
    return t->shape != NULL ? declare_shape(im, v, t->shape) : TIDE_OK;
}

// ---- the parts of a graph ----

static tide_status add_initializers(importer *im) {
    if (im->proto->n_sparse_initializer > 0) {
        const Onnx__TensorProto *t = im->proto->sparse_initializer[0]->values;
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "initialiser '%s' is a sparse tensor",
                         t != NULL ? tide__onnx_str(t->name) : "");
    }
    for (size_t i = 0; i < im->proto->n_initializer; i++) {
        Onnx__TensorProto *t = im->proto->initializer[i];
        if (t->name == NULL || t->name[0] == '\0')
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "initialiser %zu has no name", i);
        uint32_t value_i;
        TIDE_TRY(tide_graph_add_value(im->g, t->name, &value_i, im->err));
        tide_tensor *tensor = NULL;
        const tide_status st = tide__onnx_tensor_take(t, t->name, im->from, &tensor, im->err);
        if (st != TIDE_OK) {
            tide_error_where(im->err, "%s: initialiser '%s'", im->from->path, t->name);
            return st;
        }
        tide_graph_set_constant(im->g, value_i, tensor);
        tide_tensor_unref(tensor);
    }
    return TIDE_OK;
}

static tide_status add_inputs(importer *im) {
    for (size_t i = 0; i < im->proto->n_input; i++) {
        const Onnx__ValueInfoProto *info = im->proto->input[i];
        const char *name = tide__onnx_str(info->name);
        if (name[0] == '\0') return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "graph input %zu has no name", i);
        uint32_t value_i;
        TIDE_TRY(tide_graph_intern_value(im->g, name, &value_i, im->err));
        if (im->g->values[value_i].constant == NULL) TIDE_TRY(tide_graph_add_input(im->g, value_i, im->err));
        TIDE_TRY(declare_value(im, value_i, info->type));
    }
    return TIDE_OK;
}

static tide_status add_outputs(importer *im) {
    if (im->proto->n_output == 0) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the graph has no outputs");
    for (size_t i = 0; i < im->proto->n_output; i++) {
        const Onnx__ValueInfoProto *info = im->proto->output[i];
        uint32_t value_i = tide_graph_find_value(im->g, tide__onnx_str(info->name));
        if (value_i == TIDE_NO_VALUE)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "nothing produces the graph output '%s'",
                             tide__onnx_str(info->name));
        TIDE_TRY(tide_graph_add_output(im->g, value_i, im->err));
        TIDE_TRY(declare_value(im, value_i, info->type));
    }
    return TIDE_OK;
}

static tide_status add_value_info(importer *im) {
    for (size_t i = 0; i < im->proto->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = im->proto->value_info[i];
        const uint32_t value_i = tide_graph_find_value(im->g, tide__onnx_str(info->name));
        if (value_i != TIDE_NO_VALUE) TIDE_TRY(declare_value(im, value_i, info->type));
    }
    return TIDE_OK;
}

// ---- names of nodes ----

/// The first node with a name keeps it.
static tide_status collect_node_names(importer *im) {
    for (size_t i = 0; i < im->proto->n_node; i++) {
        const char *name = tide__onnx_str(im->proto->node[i]->name);
        if (name[0] == '\0' || tide_strmap_get(&im->node_names, name, NULL)) continue;
        if (tide_strmap_put(&im->node_names, name, i + 1) != TIDE_OK) return TIDE_NO_MEMORY(im->err, "for node names");
    }
    return TIDE_OK;
}

/// The node's own name, or a made-up one that no other node has. *made_up is owned by the caller.
static tide_status pick_node_name(importer *im, size_t file_i, const char **name, tide_text *made_up) {
    const Onnx__NodeProto *n = im->proto->node[file_i];
    uint64_t owner = 0;
    *name = tide__onnx_str(n->name);
    if (tide_strmap_get(&im->node_names, *name, &owner) && owner == file_i + 1) return TIDE_OK;
    TIDE_TRY(tide__node_name_make(n->op_type, im->g->n_nodes, &im->node_names, made_up, im->err));
    *name = made_up->data;
    return TIDE_OK;
}

/// A name may be given to two Constant nodes, and the last one holds: that is how ONNX Runtime reads such files, and
/// models patched by a script have it (GPT-2 exports with shrunken weights). Any other double use of a name is an
/// error.
static tide_status set_constant(importer *im, uint32_t value_i, tide_tensor *tensor) {
    const tide_value *v = &im->g->values[value_i];
    const bool is_initializer = im->scope == NULL && value_i < im->proto->n_initializer; // they were added first
    if (is_initializer || v->is_input || v->producer != TIDE_NO_NODE || (im->scope != NULL && v->constant != NULL))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a Constant produces '%s', which is there already", v->name);
    if (v->constant != NULL && im->n_twice++ == 0) im->twice = value_i;
    tide_graph_set_constant(im->g, value_i, tensor);
    return TIDE_OK;
}

// ---- scopes ----

/// A body reads what the graph around it makes, but not what comes of itself. `found` is the scope that has the name.
static tide_status check_capture(importer *im, const scope *found, uint32_t value_i) {
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    for (const scope *s = im->scope; s != found; s = s->up) {
        if (s->function != NULL || im->g->values[value_i].producer != s->open) continue;
        return TIDE_FAIL(im->err, TIDE_ERR_CYCLE,
                         "the graph has a cycle: the body of '%s' reads '%s', which comes of it",
                         im->g->nodes[s->open].name, im->g->values[value_i].name);
    }
    return TIDE_OK;
}

/// The value that nodes at hand call `name`; TIDE_NO_VALUE for "".
static tide_status value_named(importer *im, const char *name, uint32_t *out) {
    *out = TIDE_NO_VALUE;
    if (name[0] == '\0') return TIDE_OK;
    for (const scope *s = im->scope; s != NULL; s = s->up) {
        uint64_t i;
        if (tide_strmap_get(&s->names, name, &i)) {
            *out = (uint32_t)i;
            return check_capture(im, s, *out);
        }
        if (s->function != NULL)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "function '%s' reads '%s', which nothing in it makes",
                             tide__onnx_str(s->function->name), name);
    }
    if (tide_strmap_get(&im->inner, name, NULL))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "'%s' is made in another body: nothing produces it here", name);
    TIDE_TRY(tide_graph_intern_value(im->g, name, out, im->err));
    return check_capture(im, NULL, *out);
}

static tide_status values_named(importer *im, char *const *names, size_t n, uint32_t *out) {
    for (size_t k = 0; k < n; k++) TIDE_TRY(value_named(im, tide__onnx_str(names[k]), &out[k]));
    return TIDE_OK;
}

/// A value of the graph with this name behind the scope's prefix, or with the next free one.
static tide_status make_value(importer *im, const scope *s, const char *name, uint32_t *out) {
    tide_text wanted = {0};
    if (s != NULL) tide_text_add(&wanted, s->prefix);
    tide_text_add(&wanted, name);
    char *unique = wanted.failed ? NULL : tide__value_name_unique(im->g, wanted.data);
    tide_text_deinit(&wanted);
    if (unique == NULL) return TIDE_NO_MEMORY(im->err, "for %s", name);
    tide_status st = tide_graph_add_value(im->g, unique, out, im->err);
    if (st == TIDE_OK && tide_strmap_put(&im->inner, unique, 1) != TIDE_OK)
        st = TIDE_NO_MEMORY(im->err, "for %s", name);
    tide_host_free(unique);
    return st;
}

static tide_status bind_name(importer *im, scope *s, const char *name, uint32_t value_i) {
    return tide_strmap_put(&s->names, name, value_i) == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(im->err, "for %s", name);
}

/// What nodes of the scope make has a value before any of them is read: they may stand in any order.
static tide_status bind_results(importer *im, scope *s, Onnx__NodeProto *const *nodes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < nodes[i]->n_output; k++) {
            const char *name = tide__onnx_str(nodes[i]->output[k]);
            uint32_t value_i;
            if (name[0] == '\0' || tide_strmap_get(&s->names, name, NULL)) continue;
            TIDE_TRY(make_value(im, s, name, &value_i));
            TIDE_TRY(bind_name(im, s, name, value_i));
        }
    }
    return TIDE_OK;
}

/// The attribute itself, or the one of the call that it refers to. *out NULL: the call does not have it.
static tide_status resolve_attr(importer *im, const char *node, Onnx__AttributeProto *a, Onnx__AttributeProto **out) {
    const scope *s = im->scope;
    while (a != NULL && tide__onnx_str(a->ref_attr_name)[0] != '\0') {
        while (s != NULL && s->function == NULL) s = s->up;
        if (s == NULL)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "attribute '%s' of node '%s' refers to one of a function",
                             tide__onnx_str(a->name), node);
        Onnx__AttributeProto *found = NULL;
        for (size_t i = 0; i < s->call->n_attribute && found == NULL; i++) {
            if (strcmp(tide__onnx_str(s->call->attribute[i]->name), a->ref_attr_name) == 0)
                found = s->call->attribute[i];
        }
        a = found;
        s = s->up;
    }
    *out = a;
    return TIDE_OK;
}

// ---- nodes ----

static bool is_body(const Onnx__AttributeProto *a) { return a->g != NULL; }

static tide_status add_attrs(importer *im, uint32_t node_i, const Onnx__NodeProto *n, bool but_bodies) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        Onnx__AttributeProto *a;
        TIDE_TRY(resolve_attr(im, im->g->nodes[node_i].name, n->attribute[k], &a));
        if (a == NULL || (but_bodies && is_body(a))) continue;
        const char *name = tide__onnx_str(n->attribute[k]->name);
        TIDE_TRY(tide__onnx_attr_add(im->g, node_i, name, a, im->from, im->err));
    }
    return TIDE_OK;
}

static tide_status add_constant_node(importer *im, const Onnx__NodeProto *n) {
    const char *label = n->n_output > 0 ? tide__onnx_str(n->output[0]) : "";
    if (n->n_output != 1 || label[0] == '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "Constant '%s' has %zu outputs, it needs one",
                         tide__onnx_str(n->name), n->n_output);
    Onnx__AttributeProto *a = NULL;
    if (n->n_attribute == 1) TIDE_TRY(resolve_attr(im, label, n->attribute[0], &a));
    if (a == NULL)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the Constant for '%s' has %zu attributes, it needs one", label,
                         n->n_attribute == 1 ? (size_t)0 : n->n_attribute);
    tide_tensor *tensor = NULL;
    TIDE_TRY(tide__onnx_constant(label, tide__onnx_str(n->attribute[0]->name), a, im->from, &tensor, im->err));
    uint32_t value_i;
    tide_status st = value_named(im, label, &value_i);
    if (st == TIDE_OK) st = set_constant(im, value_i, tensor);
    tide_tensor_unref(tensor);
    return st;
}

static tide_status opset_of(importer *im, const Onnx__NodeProto *n, int *out) {
    uint64_t opset;
    if (!tide_strmap_get(&im->opsets, plain_domain(n->domain), &opset))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the model names no opset for the domain '%s' of operator %s",
                         plain_domain(n->domain), n->op_type);
    if (strcmp(plain_domain(n->domain), TIDE_REGION_DOMAIN) == 0)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the domain '%s' is tidemark's own", TIDE_REGION_DOMAIN);
    *out = (int)opset;
    return TIDE_OK;
}

/// A node with these operands, in the region at hand.
static tide_status put_node(importer *im, const Onnx__NodeProto *n, const char *name, const uint32_t *in, size_t n_in,
                            const uint32_t *out, size_t n_out, uint32_t *node_i) {
    int opset;
    TIDE_TRY(opset_of(im, n, &opset));
    TIDE_TRY(tide_graph_add_node(im->g, name, n->op_type, plain_domain(n->domain), opset, in, n_in, out, n_out, node_i,
                                 im->err));
    im->g->nodes[*node_i].region = im->region;
    return TIDE_OK;
}

static tide_status add_plain_node(importer *im, const Onnx__NodeProto *n, const char *name) {
    uint32_t node_i;
    const bool has_branches = strcmp(n->op_type, "If") == 0 && plain_domain(n->domain)[0] == '\0';
    TIDE_TRY(TIDE_GROW(&im->ends, &im->cap_ends, n->n_input + n->n_output, im->err, "for %s", name));
    TIDE_TRY(values_named(im, n->input, n->n_input, im->ends));
    TIDE_TRY(values_named(im, n->output, n->n_output, im->ends + n->n_input));
    TIDE_TRY(put_node(im, n, name, im->ends, n->n_input, im->ends + n->n_input, n->n_output, &node_i));
    return add_attrs(im, node_i, n, has_branches);
}

static tide_status add_node(importer *im, const Onnx__NodeProto *n, size_t file_i);

// ---- bodies ----

/// The body of an If, a Loop or a Scan under way.
typedef struct body {
    const Onnx__NodeProto *node; // that it is of
    const char *name;            // of the node
    const Onnx__GraphProto *proto;
    tide_region region;
    uint32_t number;
    uint32_t *results; // [n_output] values
} body;

static tide_status find_body(importer *im, const Onnx__NodeProto *n, const char *attr, const Onnx__GraphProto **out) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        Onnx__AttributeProto *a;
        if (strcmp(tide__onnx_str(n->attribute[k]->name), attr) != 0) continue;
        TIDE_TRY(resolve_attr(im, tide__onnx_str(n->name), n->attribute[k], &a));
        if (a == NULL || a->g == NULL) break;
        *out = a->g;
        return TIDE_OK;
    }
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s has no body '%s'", n->op_type, attr);
}

static tide_status declare_value(importer *im, uint32_t value_i, const Onnx__TypeProto *type);

/// The inputs of a body are values that the opening node makes. Their type is what the file says; their shape follows
/// from what is handed in, but that the number of an iteration and a condition may have the shape [1].
static tide_status bind_inputs(importer *im, body *b, scope *s) {
    const tide_region *r = &b->region;
    const uint32_t *made = im->g->nodes[r->open].outputs;
    const size_t n_scalars = r->kind == TIDE_REGION_LOOP ? 2 : 0;
    const size_t wanted = tide_region_repeats(r) ? n_scalars + r->n_carried + r->n_items : 0;
    if (b->proto->n_input != wanted)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the body of %s '%s' has %zu inputs, it is handed %zu",
                         b->node->op_type, b->name, b->proto->n_input, wanted);
    for (size_t k = 0; k < wanted; k++) {
        const Onnx__ValueInfoProto *info = b->proto->input[k];
        const char *name = tide__onnx_str(info->name);
        if (name[0] == '\0' || tide_strmap_get(&s->names, name, NULL))
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "input %zu of the body of '%s' has no name of its own", k,
                             b->name);
        size_t at = k < n_scalars ? tide_region_iteration(r) + k : k - n_scalars;
        if (k >= n_scalars + r->n_carried) at += r->n_collected;
        TIDE_TRY(bind_name(im, s, name, made[at]));
        if (k < n_scalars) TIDE_TRY(declare_value(im, made[at], info->type));
    }
    return TIDE_OK;
}

static tide_status bind_initializers(importer *im, body *b, scope *s) {
    if (b->proto->n_sparse_initializer > 0)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "the body of '%s' has a sparse initialiser", b->name);
    for (size_t i = 0; i < b->proto->n_initializer; i++) {
        Onnx__TensorProto *t = b->proto->initializer[i];
        const char *name = tide__onnx_str(t->name);
        uint32_t value_i;
        if (name[0] == '\0' || tide_strmap_get(&s->names, name, NULL))
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "initialiser %zu of the body of '%s' has no name of its own",
                             i, b->name);
        TIDE_TRY(make_value(im, s, name, &value_i));
        TIDE_TRY(bind_name(im, s, name, value_i));
        tide_tensor *tensor = NULL;
        TIDE_TRY(tide__onnx_tensor_take(t, name, im->from, &tensor, im->err));
        tide_graph_set_constant(im->g, value_i, tensor);
        tide_tensor_unref(tensor);
    }
    return TIDE_OK;
}

/// What a body hands on must not be overwritten before it is read: a carried value that becomes another one is copied.
static tide_status copy_result(importer *im, body *b, size_t k) {
    const tide_node *open = &im->g->nodes[b->region.open];
    const size_t first = tide_region_first_next(&b->region);
    if (!tide_region_repeats(&b->region) || k < first || k >= first + b->region.n_carried) return TIDE_OK;
    size_t j = 0;
    while (j < b->region.n_carried && open->outputs[j] != b->results[k]) j++;
    if (j == b->region.n_carried || j == k - first) return TIDE_OK;
    uint32_t copy, node_i;
    TIDE_TRY(make_value(im, NULL, im->g->values[b->results[k]].name, &copy));
    TIDE_TRY(tide_graph_add_node(im->g, NULL, "Identity", "", 14, &b->results[k], 1, &copy, 1, &node_i, im->err));
    im->g->nodes[node_i].region = b->number;
    b->results[k] = copy;
    return TIDE_OK;
}

static tide_status find_results(importer *im, body *b, const scope *s) {
    for (size_t k = 0; k < b->proto->n_output; k++) {
        const Onnx__ValueInfoProto *info = b->proto->output[k];
        const char *name = tide__onnx_str(info->name);
        TIDE_TRY(value_named(im, name, &b->results[k]));
        if (b->results[k] == TIDE_NO_VALUE)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "result %zu of a body of '%s' has no name", k, b->name);
        const tide_value *v = &im->g->values[b->results[k]];
        const bool is_made_here = v->producer != TIDE_NO_NODE && im->g->nodes[v->producer].region == b->number;
        if (is_made_here && tide_strmap_get(&s->names, name, NULL))
            TIDE_TRY(declare_value(im, b->results[k], info->type));
        TIDE_TRY(copy_result(im, b, k));
    }
    return TIDE_OK;
}

static tide_status read_body(importer *im, body *b, scope *s) {
    TIDE_TRY(bind_inputs(im, b, s));
    TIDE_TRY(bind_initializers(im, b, s));
    TIDE_TRY(bind_results(im, s, b->proto->node, b->proto->n_node));
    for (size_t i = 0; i < b->proto->n_node; i++) TIDE_TRY(add_node(im, b->proto->node[i], i));
    return find_results(im, b, s);
}

/// Add the region of `b`, whose node is there, and all that is in it.
static tide_status add_body(importer *im, body *b) {
    if (b->proto->n_output != tide_region_n_results(&b->region))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a body of %s '%s' has %zu results, %zu are wanted",
                         b->node->op_type, b->name, b->proto->n_output, tide_region_n_results(&b->region));
    scope s = {.up = im->scope, .prefix = im->scope != NULL ? im->scope->prefix : "", .open = b->region.open};
    const scope *const outer = im->scope;
    const uint32_t region = im->region;
    TIDE_TRY(TIDE_NEW(&b->results, b->proto->n_output + 1, im->err, "for the results of a body"));
    b->region.parent = region;
    tide_status st = tide_graph_add_region(im->g, &b->region, &b->number, im->err);
    if (st == TIDE_OK) {
        im->scope = &s;
        im->region = b->number;
        st = read_body(im, b, &s);
        im->scope = outer;
        im->region = region;
    }
    if (st == TIDE_OK) st = tide_graph_close_region(im->g, b->number, b->results, b->proto->n_output, im->err);
    tide_strmap_deinit(&s.names);
    tide_host_free(b->results);
    return st;
}

static tide_status add_if(importer *im, const Onnx__NodeProto *n, const char *name) {
    static const char *const attrs[] = {"then_branch", "else_branch"};
    uint32_t node_i, numbers[2];
    if (n->n_input != 1)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "If has %zu inputs, it takes the condition", n->n_input);
    TIDE_TRY(add_plain_node(im, n, name));
    node_i = (uint32_t)im->g->n_nodes - 1;
    for (size_t k = 0; k < 2; k++) {
        body b = {
            .node = n,
            .name = name,
            .region = {.kind = k == 0 ? TIDE_REGION_THEN : TIDE_REGION_ELSE, .open = node_i, .n_carried = n->n_output}};
        TIDE_TRY(find_body(im, n, attrs[k], &b.proto));
        TIDE_TRY(add_body(im, &b));
        numbers[k] = b.number;
    }
    im->g->nodes[node_i].opens = numbers[0];
    im->g->regions[numbers[0] - 1].other = numbers[1];
    im->g->regions[numbers[1] - 1].other = numbers[0];
    return TIDE_OK;
}

/// The operands of a Loop or Scan: what the file says, and what its body is given besides.
static tide_status list_ends(importer *im, const body *b, uint32_t *in, size_t n_in, uint32_t *out, size_t n_out) {
    const Onnx__NodeProto *n = b->node;
    const tide_region *r = &b->region;
    for (size_t k = 0; k < n_in; k++) in[k] = TIDE_NO_VALUE;
    TIDE_TRY(values_named(im, n->input, n->n_input, in));
    for (size_t k = 0; k < n_out; k++) {
        out[k] = TIDE_NO_VALUE;
        if (k < n->n_output && tide__onnx_str(n->output[k])[0] != '\0') {
            TIDE_TRY(value_named(im, n->output[k], &out[k]));
            continue;
        }
        const bool is_collected = k >= r->n_carried && k < r->n_carried + r->n_collected;
        const char *stem = is_collected ? "collected" : k < r->n_carried ? "carried" : "step";
        tide_text name = {0};
        tide_text_addf(&name, "%s.%s", b->name, stem);
        const tide_status st =
            name.failed ? TIDE_NO_MEMORY(im->err, "for a name") : make_value(im, NULL, name.data, &out[k]);
        tide_text_deinit(&name);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

static tide_status open_loop(importer *im, body *b, size_t n_in, size_t n_out) {
    uint32_t *ends;
    TIDE_TRY(TIDE_NEW(&ends, n_in + n_out + 1, im->err, "for %s", b->name));
    tide_status st = list_ends(im, b, ends, n_in, ends + n_in, n_out);
    if (st == TIDE_OK) st = put_node(im, b->node, b->name, ends, n_in, ends + n_in, n_out, &b->region.open);
    tide_host_free(ends);
    if (st == TIDE_OK) st = add_attrs(im, b->region.open, b->node, true);
    if (st == TIDE_OK) st = add_body(im, b);
    if (st == TIDE_OK) im->g->nodes[b->region.open].opens = b->number;
    return st;
}

static tide_status check_results(importer *im, const body *b, size_t n_fixed) {
    const tide_region *r = &b->region;
    if (b->proto->n_output >= n_fixed && b->node->n_output <= r->n_carried + b->proto->n_output - n_fixed)
        return TIDE_OK;
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "%s carries %zu values and has %zu results, its body has %zu",
                     b->node->op_type, r->n_carried, b->node->n_output, b->proto->n_output);
}

static tide_status add_loop(importer *im, const Onnx__NodeProto *n, const char *name) {
    body b = {.node = n, .name = name, .region = {.kind = TIDE_REGION_LOOP}};
    TIDE_TRY(find_body(im, n, "body", &b.proto));
    b.region.n_carried = n->n_input > 2 ? n->n_input - 2 : 0;
    TIDE_TRY(check_results(im, &b, 1 + b.region.n_carried));
    b.region.n_collected = b.proto->n_output - 1 - b.region.n_carried;
    return open_loop(im, &b, 2 + b.region.n_carried, tide_region_iteration(&b.region) + 2);
}

static tide_status add_scan(importer *im, const Onnx__NodeProto *n, const char *name) {
    body b = {.node = n, .name = name, .region = {.kind = TIDE_REGION_SCAN}};
    int opset;
    int64_t n_items = 0;
    TIDE_TRY(opset_of(im, n, &opset));
    if (opset < 9) {
        TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "operator 'Scan' of node '%s' is not implemented for opset %d",
                  name, opset);
        tide_error_hint(im->err, "Scan is served for opset 9 and later");
        return TIDE_ERR_NOT_IMPLEMENTED;
    }
    TIDE_TRY(find_body(im, n, "body", &b.proto));
    for (size_t k = 0; k < n->n_attribute; k++) {
        if (strcmp(tide__onnx_str(n->attribute[k]->name), "num_scan_inputs") == 0) n_items = n->attribute[k]->i;
    }
    if (n_items < 1 || (uint64_t)n_items > n->n_input)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "Scan has %zu inputs and num_scan_inputs %" PRId64, n->n_input,
                         n_items);
    b.region.n_items = (size_t)n_items;
    b.region.n_carried = n->n_input - (size_t)n_items;
    TIDE_TRY(check_results(im, &b, b.region.n_carried));
    b.region.n_collected = b.proto->n_output - b.region.n_carried;
    return open_loop(im, &b, n->n_input, tide_region_iteration(&b.region) + 1);
}

// ---- functions of the file ----

static const Onnx__FunctionProto *find_function(const importer *im, const Onnx__NodeProto *n) {
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *f = im->model->functions[i];
        if (strcmp(tide__onnx_str(f->name), n->op_type) == 0 &&
            strcmp(plain_domain(f->domain), plain_domain(n->domain)) == 0)
            return f;
    }
    return NULL;
}

static tide_status check_call(importer *im, const Onnx__NodeProto *n, const Onnx__FunctionProto *f) {
    enum { MAX_CALLS = 64, MAX_NODES = 1 << 17 };
    size_t depth = 0;
    for (const scope *s = im->scope; s != NULL; s = s->up) {
        if (s->function == f) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "function '%s' calls itself", f->name);
        if (s->function != NULL && ++depth >= MAX_CALLS)
            return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "more than %d functions call one another",
                             (int)MAX_CALLS);
    }
    if (im->g->n_nodes > im->proto->n_node + MAX_NODES)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "the calls of functions come to more than %d nodes",
                         (int)MAX_NODES);
    if (n->n_input <= f->n_input && n->n_output <= f->n_output) return TIDE_OK;
    return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT,
                     "the call of function '%s' has %zu inputs and %zu outputs, the function %zu and %zu", f->name,
                     n->n_input, n->n_output, f->n_input, f->n_output);
}

static tide_status bind_call(importer *im, const Onnx__NodeProto *n, const Onnx__FunctionProto *f, scope *s) {
    for (size_t k = 0; k < f->n_input; k++) {
        uint32_t value_i = TIDE_NO_VALUE;
        if (k < n->n_input) TIDE_TRY(value_named(im, tide__onnx_str(n->input[k]), &value_i));
        TIDE_TRY(bind_name(im, s, tide__onnx_str(f->input[k]), value_i));
    }
    for (size_t k = 0; k < f->n_output; k++) {
        const char *name = tide__onnx_str(f->output[k]);
        uint32_t value_i = TIDE_NO_VALUE;
        if (tide_strmap_get(&s->names, name, NULL))
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "output '%s' of function '%s' is there already", name,
                             f->name);
        if (k < n->n_output) TIDE_TRY(value_named(im, tide__onnx_str(n->output[k]), &value_i));
        if (value_i != TIDE_NO_VALUE) TIDE_TRY(bind_name(im, s, name, value_i));
    }
    return bind_results(im, s, f->node, f->n_node);
}

static tide_status read_function(importer *im, const Onnx__FunctionProto *f, scope *s) {
    const scope *const outer = im->scope;
    const tide_strmap opsets = im->opsets;
    const bool was_read_again = im->from->is_read_again;
    im->opsets = (tide_strmap){0};
    tide_status st = read_opset_list(im, f->opset_import, f->n_opset_import, &im->opsets);
    im->scope = s;
    im->from->is_read_again = true;
    for (size_t i = 0; i < f->n_node && st == TIDE_OK; i++) st = add_node(im, f->node[i], i);
    im->from->is_read_again = was_read_again;
    im->scope = outer;
    tide_strmap_deinit(&im->opsets);
    im->opsets = opsets;
    return st;
}

/// The nodes of the function, once for each call.
static tide_status add_call(importer *im, const Onnx__NodeProto *n, const char *name, const Onnx__FunctionProto *f) {
    TIDE_TRY(check_call(im, n, f));
    tide_text prefix = {0};
    tide_text_addf(&prefix, "%s/", name);
    scope s = {.up = im->scope, .function = f, .call = n, .prefix = tide_text_str(&prefix)};
    tide_status st = prefix.failed ? TIDE_NO_MEMORY(im->err, "for a name") : bind_call(im, n, f, &s);
    if (st == TIDE_OK) st = read_function(im, f, &s);
    tide_strmap_deinit(&s.names);
    tide_text_deinit(&prefix);
    return st;
}

// ---- any node ----

/// In a body or a function: the node's own name behind the prefix, or the next free one.
static tide_status pick_inner_name(importer *im, const Onnx__NodeProto *n, tide_text *out) {
    const char *name = tide__onnx_str(n->name);
    tide_text_add(out, im->scope->prefix);
    if (name[0] != '\0')
        tide_text_add(out, name);
    else
        tide_text_addf(out, "%s_%zu", n->op_type, im->g->n_nodes);
    const size_t len = out->len;
    for (unsigned k = 2; !out->failed && tide_strmap_get(&im->node_names, out->data, NULL); k++) {
        out->len = len;
        tide_text_addf(out, "_%u", k);
    }
    if (out->failed || tide_strmap_put(&im->node_names, out->data, 0) != TIDE_OK)
        return TIDE_NO_MEMORY(im->err, "for node names");
    return TIDE_OK;
}

static tide_status pick_name(importer *im, const Onnx__NodeProto *n, size_t file_i, const char **name,
                             tide_text *made_up) {
    if (im->scope == NULL) return pick_node_name(im, file_i, name, made_up);
    TIDE_TRY(pick_inner_name(im, n, made_up));
    *name = made_up->data;
    return TIDE_OK;
}

static tide_status add_real_node(importer *im, const Onnx__NodeProto *n, const char *name) {
    const Onnx__FunctionProto *f = find_function(im, n);
    if (f != NULL) return add_call(im, n, name, f);
    if (plain_domain(n->domain)[0] == '\0') {
        if (strcmp(n->op_type, "If") == 0) return add_if(im, n, name);
        if (strcmp(n->op_type, "Loop") == 0) return add_loop(im, n, name);
        if (strcmp(n->op_type, "Scan") == 0) return add_scan(im, n, name);
    }
    return add_plain_node(im, n, name);
}

static bool is_constant(const Onnx__NodeProto *n) {
    return strcmp(n->op_type, "Constant") == 0 && plain_domain(n->domain)[0] == '\0';
}

static tide_status add_node(importer *im, const Onnx__NodeProto *n, size_t file_i) {
    if (n->op_type == NULL || n->op_type[0] == '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "node %zu '%s' has no operator", file_i, tide__onnx_str(n->name));
    tide_text made_up = {0};
    const char *name = tide__onnx_str(n->name);
    tide_status st;
    if (is_constant(n)) {
        st = add_constant_node(im, n);
    } else {
        st = pick_name(im, n, file_i, &name, &made_up);
        if (st == TIDE_OK) st = add_real_node(im, n, name);
    }
    // The innermost node has said where.
    if (st != TIDE_OK && im->err != NULL && im->err->where[0] == '\0')
        tide_error_where(im->err, "%s: node %zu '%s' (%s)", im->from->path, file_i, name, n->op_type);
    tide_text_deinit(&made_up);
    return st;
}

static bool has_bodies(const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_attribute; k++) {
            if (is_body(g->node[i]->attribute[k])) return true;
        }
    }
    return false;
}

/// Names of the graph go before names in bodies.
static tide_status reserve_names(importer *im) {
    if (im->model->n_functions == 0 && !has_bodies(im->proto)) return TIDE_OK;
    for (size_t i = 0; i < im->proto->n_node; i++) {
        const Onnx__NodeProto *n = im->proto->node[i];
        uint32_t unused;
        for (size_t k = 0; k < n->n_output; k++) TIDE_TRY(value_named(im, tide__onnx_str(n->output[k]), &unused));
    }
    return TIDE_OK;
}

static tide_status add_nodes(importer *im) {
    if (im->proto->n_node == 0) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the graph has no nodes");
    TIDE_TRY(collect_node_names(im));
    TIDE_TRY(reserve_names(im));
    for (size_t i = 0; i < im->proto->n_node; i++) TIDE_TRY(add_node(im, im->proto->node[i], i));
    return tide_graph_find_captures(im->g, im->err);
}

// ---- the model ----

static tide_status add_comment(importer *im) {
    const char *producer = tide__onnx_str(im->model->producer_name);
    if (producer[0] == '\0') return TIDE_OK;
    tide_text comment = {0};
    tide_text_addf(&comment, "%s %s", producer, tide__onnx_str(im->model->producer_version));
    if (comment.failed) {
        tide_text_deinit(&comment);
        return TIDE_NO_MEMORY(im->err, "for a comment");
    }
    if (comment.data[comment.len - 1] == ' ') comment.data[--comment.len] = '\0';
    im->g->comment = comment.data;
    return TIDE_OK;
}

static tide_status import_graph(importer *im) {
    TIDE_TRY(read_opsets(im));
    TIDE_TRY(add_comment(im));
    TIDE_TRY(add_initializers(im));
    TIDE_TRY(add_inputs(im));
    TIDE_TRY(add_nodes(im));
    TIDE_TRY(add_outputs(im));
    TIDE_TRY(add_value_info(im));
    return tide_graph_validate(im->g, im->err);
}

/// One line, however many there are.
static void tell_of_twice(const importer *im) {
    char more[48] = "";
    if (im->n_twice == 0) return;
    if (im->n_twice > 1) snprintf(more, sizeof more, " (and %zu other values)", im->n_twice - 1);
    tide_log(TIDE_LOG_WARN, "%s: two Constant nodes produce '%s'%s, the last one is taken", im->from->path,
             im->g->values[im->twice].name, more);
}

static tide_status import_model(const Onnx__ModelProto *model, const tide__onnx_bytes *from, tide_graph **out,
                                tide_error *err) {
    if (model->graph == NULL) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX model: there is no graph in it");
    tide__onnx_bytes noted = *from;
    importer im = {.model = model, .proto = model->graph, .from = &noted, .err = err};
    const char *name = tide__onnx_str(model->graph->name);
    TIDE_TRY(tide_graph_create(name[0] != '\0' ? name : tide__path_leaf(from->path), from->path, &im.g, err));
    noted.graph = im.g;
    const tide_status st = import_graph(&im);
    tell_of_twice(&im);
    tide_strmap_deinit(&im.opsets);
    tide_strmap_deinit(&im.node_names);
    tide_strmap_deinit(&im.inner);
    tide_host_free(im.ends);
    if (st == TIDE_OK) {
        *out = im.g;
    } else {
        tide_graph_destroy(im.g);
    }
    return st;
}

static tide_status from_bytes(const tide__onnx_bytes *from, size_t max_bytes, tide_graph **out, tide_error *err) {
    ProtobufCMessage *message = NULL;
    tide_status st;
    if (from->len == 0) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX model: the file is empty");
    } else {
        st = tide__onnx_unpack(&onnx__model_proto__descriptor, from, max_bytes, &message, err);
    }
    if (st == TIDE_OK) st = import_model((Onnx__ModelProto *)message, from, out, err);
    tide__onnx_free(message);
    if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", from->path);
    return st;
}

tide_status tide_graph_from_onnx(const char *data, size_t len, const char *path, tide_graph **out, tide_error *err) {
    return tide_graph_sizes_from_onnx(data, len, path, 0, out, err);
}

tide_status tide_graph_sizes_from_onnx(const char *data, size_t len, const char *path, size_t max_bytes,
                                       tide_graph **out, tide_error *err) {
    const tide__onnx_bytes from = {.data = data, .len = len, .path = path != NULL ? path : ""};
    return from_bytes(&from, max_bytes, out, err);
}

static tide__onnx_bytes bytes_of(tide_block *file, const char *path) {
    return (tide__onnx_bytes){.data = tide_block_address(file),
                              .len = file->mem.requested_bytes,
                              .path = path != NULL ? path : "",
                              .file = file};
}

tide_status tide_graph_from_onnx_mapped(tide_block *file, const char *path, tide_graph **out, tide_error *err) {
    const tide__onnx_bytes from = bytes_of(file, path);
    return from_bytes(&from, 0, out, err);
}

tide_status tide_graph_sizes_from_onnx_mapped(tide_block *file, const char *path, const tide_contents *contents,
                                              size_t max_bytes, tide_graph **out, tide_error *err) {
    tide__onnx_bytes from = bytes_of(file, path);
    from.contents = contents;
    return from_bytes(&from, max_bytes, out, err);
}
