// SPDX-License-Identifier: MIT
//
// Attributes of ONNX nodes: AttributeProto to attribute, and the Constant operator, which is nothing but its attribute.
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/onnx_internal.h"

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

tide_status tide__onnx_attr_add(tide_graph *g, uint32_t node_i, const char *name, Onnx__AttributeProto *a,
                                const tide__onnx_bytes *from, tide_error *err) {
    const tide_node *n = &g->nodes[node_i];
    if (name[0] == '\0')
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "node '%s' has an attribute without a name", n->name);
    tide_attr attr = {.name = tide_host_strdup(name)};
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

tide_status tide__onnx_constant(const char *label, const char *key, Onnx__AttributeProto *a,
                                const tide__onnx_bytes *from, tide_tensor **out, tide_error *err) {
    if (strcmp(key, "value") == 0 && a->t != NULL) return tide__onnx_tensor_take(a->t, label, from, out, err);
    if (strcmp(key, "value_int") == 0) return from_numbers(&a->i, SIZE_MAX, TIDE_I64, label, out, err);
    if (strcmp(key, "value_ints") == 0) return from_numbers(a->ints, a->n_ints, TIDE_I64, label, out, err);
    if (strcmp(key, "value_float") == 0) return from_numbers(&a->f, SIZE_MAX, TIDE_F32, label, out, err);
    if (strcmp(key, "value_floats") == 0) return from_numbers(a->floats, a->n_floats, TIDE_F32, label, out, err);
    if (strcmp(key, "value_string") == 0 || strcmp(key, "value_strings") == 0 || strcmp(key, "sparse_value") == 0)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "the Constant for '%s' has a '%s'", label, key);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "the Constant for '%s' has no value, but '%s'", label, key);
}
