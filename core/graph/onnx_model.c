// SPDX-License-Identifier: MIT
//
// ModelProto to graph. Nodes may stand in any order: values are found by name, the order is made later.
//
// What the file may do and the graph does not: initialisers also listed as inputs (IR version 3) are constants,
// Constant nodes are constants, omitted optional operands have empty names, node names may be missing or repeated.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/graph/import.h"
#include "core/graph/onnx_internal.h"
#include "core/graph/sizes.h"

// ---- attributes ----
//
// AttributeProto to attribute, and the Constant operator, which is nothing but its attribute.

typedef Onnx__AttributeProto__AttributeType attr_type;

/// Files of IR version 1 have no `type`: then it follows from the field that is set.
static attr_type type_of(const Onnx__AttributeProto *a) {
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED) return a->type;
    if (a->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    if (a->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (a->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    if (a->t != NULL) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (a->g != NULL) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    if (a->n_floats > 0) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    if (a->n_ints > 0) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    if (a->n_strings > 0) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static const char *type_name(attr_type type) {
    switch (type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS:
        return "a subgraph";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR:
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSORS:
        return "a sparse tensor";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS:
        return "a list of tensors";
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO:
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTOS:
        return "a type";
    default:
        return "of an unknown type";
    }
}

/// A copy of `n` elements; NULL only for lack of memory.
static void *copy_list(const void *list, size_t n, size_t elem_bytes) {
    void *copy = tide_host_calloc(n, elem_bytes);
    if (copy != NULL && n > 0) memcpy(copy, list, n * elem_bytes);
    return copy;
}

static char *copy_bytes(const ProtobufCBinaryData *s) {
    return tide_host_strndup(s->data != NULL ? (const char *)s->data : "", s->len);
}

static bool copy_strings(const Onnx__AttributeProto *a, tide_attr *out) {
    out->strings = tide_host_calloc(a->n_strings, sizeof *out->strings);
    if (out->strings == NULL) return false;
    out->n = a->n_strings;
    for (size_t i = 0; i < a->n_strings; i++) {
        out->strings[i] = copy_bytes(&a->strings[i]);
        if (out->strings[i] == NULL) return false;
    }
    return true;
}

/// Fill all of `out` but its name.
static tide_status convert(Onnx__AttributeProto *a, const char *node, const tide__onnx_bytes *from, tide_attr *out,
                           tide_error *err) {
    bool have_memory = true;
    switch (type_of(a)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        out->type = TIDE_ATTR_INT;
        out->i = a->i;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        out->type = TIDE_ATTR_FLOAT;
        out->f = a->f;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        out->type = TIDE_ATTR_STRING;
        have_memory = (out->s = copy_bytes(&a->s)) != NULL;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        out->type = TIDE_ATTR_INTS;
        out->n = a->n_ints;
        have_memory = (out->ints = copy_list(a->ints, a->n_ints, sizeof *a->ints)) != NULL;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        out->type = TIDE_ATTR_FLOATS;
        out->n = a->n_floats;
        have_memory = (out->floats = copy_list(a->floats, a->n_floats, sizeof *a->floats)) != NULL;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        out->type = TIDE_ATTR_STRINGS;
        have_memory = copy_strings(a, out);
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        out->type = TIDE_ATTR_TENSOR;
        if (a->t == NULL)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "attribute '%s' of node '%s' has no tensor", out->name, node);
        return tide__onnx_tensor_take(a->t, out->name, from, &out->tensor, err);
    default:
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "attribute '%s' of node '%s' is %s", out->name, node,
                         type_name(type_of(a)));
    }
    return have_memory ? TIDE_OK : TIDE_NO_MEMORY(err, "for an attribute");
}

/// Add an attribute to a node. TIDE_ERR_NOT_IMPLEMENTED for subgraphs and the other types that no operator has.
static tide_status add_attr(tide_graph *g, uint32_t node_i, Onnx__AttributeProto *a, const tide__onnx_bytes *from,
                            tide_error *err) {
    const tide_node *n = &g->nodes[node_i];
    if (a->name == NULL || a->name[0] == '\0')
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' has an attribute without a name", n->name);
    if (a->ref_attr_name != NULL && a->ref_attr_name[0] != '\0')
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "attribute '%s' of node '%s' refers to one of a function", a->name,
                         n->name);
    tide_attr attr = {.name = tide_host_strdup(a->name)};
    if (attr.name == NULL) return TIDE_NO_MEMORY(err, "for an attribute");
    const tide_status st = convert(a, n->name, from, &attr, err);
    if (st != TIDE_OK) {
        tide_attr_deinit(&attr);
        return st;
    }
    return tide_graph_add_attr(g, node_i, &attr, err);
}

/// A tensor of rank 0 (`n` SIZE_MAX) or 1 around `n` elements that are copied.
static tide_status from_numbers(const void *numbers, size_t n, tide_dtype dtype, const char *label, tide_tensor **out,
                                tide_error *err) {
    const int64_t extent = (int64_t)n;
    const tide_shape shape = tide_shape_make(n == SIZE_MAX ? 0 : 1, &extent);
    TIDE_TRY(tide__constant_create(dtype, &shape, label, out, err));
    const size_t size_bytes = tide_tensor_size_bytes(*out);
    if (size_bytes > 0) memcpy(tide_tensor_data(*out), numbers, size_bytes);
    return TIDE_OK;
}

/// The tensor that a Constant node stands for.
static tide_status constant_of(const Onnx__NodeProto *n, const tide__onnx_bytes *from, tide_tensor **out,
                               tide_error *err) {
    const char *label = n->n_output > 0 ? tide__onnx_str(n->output[0]) : "";
    if (n->n_output != 1 || label[0] == '\0')
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "Constant '%s' has %zu outputs, it needs one",
                         tide__onnx_str(n->name), n->n_output);
    if (n->n_attribute != 1)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "the Constant for '%s' has %zu attributes, it needs one", label,
                         n->n_attribute);
    Onnx__AttributeProto *a = n->attribute[0];
    const char *key = tide__onnx_str(a->name);
    if (strcmp(key, "value") == 0 && a->t != NULL) return tide__onnx_tensor_take(a->t, label, from, out, err);
    if (strcmp(key, "value_int") == 0) return from_numbers(&a->i, SIZE_MAX, TIDE_I64, label, out, err);
    if (strcmp(key, "value_ints") == 0) return from_numbers(a->ints, a->n_ints, TIDE_I64, label, out, err);
    if (strcmp(key, "value_float") == 0) return from_numbers(&a->f, SIZE_MAX, TIDE_F32, label, out, err);
    if (strcmp(key, "value_floats") == 0) return from_numbers(a->floats, a->n_floats, TIDE_F32, label, out, err);
    if (strcmp(key, "value_string") == 0 || strcmp(key, "value_strings") == 0 || strcmp(key, "sparse_value") == 0)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "the Constant for '%s' has a '%s'", label, key);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "the Constant for '%s' has no value, but '%s'", label, key);
}

enum { OPSET_MIN = 1, OPSET_MAX = 24 };

typedef struct importer {
    const Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;
    const tide__onnx_bytes *from;
    tide_graph *g;
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

static tide_status read_opsets(importer *im) {
    for (size_t i = 0; i < im->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = im->model->opset_import[i];
        const char *domain = plain_domain(o->domain);
        if (o->version < OPSET_MIN || o->version > INT32_MAX)
            return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "opset version %" PRId64 " of domain '%s' is none",
                             o->version, domain);
        if (domain[0] == '\0' && o->version > OPSET_MAX)
            return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED,
                             "the model uses opset %" PRId64 ", %d is the last known", o->version, OPSET_MAX);
        if (tide_strmap_put(&im->opsets, domain, (uint64_t)o->version) != TIDE_OK)
            return TIDE_NO_MEMORY(im->err, "for opsets");
    }
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

// ---- nodes ----

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

static tide_status intern_ends(importer *im, char **names, size_t n, uint32_t *ends) {
    for (size_t k = 0; k < n; k++) {
        ends[k] = TIDE_NO_VALUE;
        const char *name = tide__onnx_str(names[k]);
        if (name[0] != '\0') TIDE_TRY(tide_graph_intern_value(im->g, name, &ends[k], im->err));
    }
    return TIDE_OK;
}

/// A name may be given to two Constant nodes, and the last one holds: that is how ONNX Runtime reads such files, and
/// models patched by a script have it (GPT-2 exports with shrunken weights). Any other double use of a name is an
/// error.
static tide_status set_constant(importer *im, uint32_t value_i, tide_tensor *tensor) {
    const tide_value *v = &im->g->values[value_i];
    const bool is_initializer = value_i < im->proto->n_initializer; // they were added first
    if (is_initializer || v->is_input || v->producer != TIDE_NO_NODE)
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "a Constant produces '%s', which is there already", v->name);
    if (v->constant != NULL && im->n_twice++ == 0) im->twice = value_i;
    tide_graph_set_constant(im->g, value_i, tensor);
    return TIDE_OK;
}

static tide_status add_constant_node(importer *im, const Onnx__NodeProto *n) {
    tide_tensor *tensor = NULL;
    TIDE_TRY(constant_of(n, im->from, &tensor, im->err));
    uint32_t value_i;
    tide_status st = tide_graph_intern_value(im->g, n->output[0], &value_i, im->err);
    if (st == TIDE_OK) st = set_constant(im, value_i, tensor);
    tide_tensor_unref(tensor);
    return st;
}

static tide_status check_function(importer *im, const Onnx__NodeProto *n) {
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *f = im->model->functions[i];
        if (strcmp(tide__onnx_str(f->name), n->op_type) != 0) continue;
        if (strcmp(plain_domain(f->domain), plain_domain(n->domain)) != 0) continue;
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "%s.%s is a function defined in the model file",
                         tide__onnx_str(n->domain), n->op_type);
    }
    return TIDE_OK;
}

static tide_status add_real_node(importer *im, size_t file_i, const char *name) {
    const Onnx__NodeProto *n = im->proto->node[file_i];
    const char *domain = plain_domain(n->domain);
    uint64_t opset;
    TIDE_TRY(check_function(im, n));
    if (!tide_strmap_get(&im->opsets, domain, &opset))
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the model names no opset for the domain '%s' of operator %s",
                         domain, n->op_type);
    TIDE_TRY(TIDE_GROW(&im->ends, &im->cap_ends, n->n_input + n->n_output, im->err, "for %s", name));
    TIDE_TRY(intern_ends(im, n->input, n->n_input, im->ends));
    TIDE_TRY(intern_ends(im, n->output, n->n_output, im->ends + n->n_input));
    uint32_t node_i;
    TIDE_TRY(tide_graph_add_node(im->g, name, n->op_type, domain, (int)opset, im->ends, n->n_input,
                                 im->ends + n->n_input, n->n_output, &node_i, im->err));
    for (size_t k = 0; k < n->n_attribute; k++) TIDE_TRY(add_attr(im->g, node_i, n->attribute[k], im->from, im->err));
    return TIDE_OK;
}

static tide_status add_node(importer *im, size_t file_i) {
    const Onnx__NodeProto *n = im->proto->node[file_i];
    if (n->op_type == NULL || n->op_type[0] == '\0')
        return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "node %zu '%s' has no operator", file_i, tide__onnx_str(n->name));
    tide_text made_up = {0};
    const char *name;
    tide_status st;
    if (strcmp(n->op_type, "Constant") == 0 && plain_domain(n->domain)[0] == '\0') {
        name = tide__onnx_str(n->name);
        st = add_constant_node(im, n);
    } else {
        st = pick_node_name(im, file_i, &name, &made_up);
        if (st == TIDE_OK) st = add_real_node(im, file_i, name);
    }
    if (st != TIDE_OK) tide_error_where(im->err, "%s: node %zu '%s' (%s)", im->from->path, file_i, name, n->op_type);
    tide_text_deinit(&made_up);
    return st;
}

static tide_status add_nodes(importer *im) {
    if (im->proto->n_node == 0) return TIDE_FAIL(im->err, TIDE_ERR_BAD_INPUT, "the graph has no nodes");
    TIDE_TRY(collect_node_names(im));
    for (size_t i = 0; i < im->proto->n_node; i++) TIDE_TRY(add_node(im, i));
    return TIDE_OK;
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
