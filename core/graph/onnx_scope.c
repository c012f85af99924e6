// SPDX-License-Identifier: MIT
//
// What the names of an ONNX file mean: opsets of domains, types of values, and which value a name is, in the graph, in
// a body or in one call of a function. See onnx_import.h.
#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/graph/onnx_import.h"

enum { OPSET_MIN = 1, OPSET_MAX = 24 };

// ---- opsets ----

tide_status tide__onnx_read_opsets(tide__onnx_importer *im, Onnx__OperatorSetIdProto *const *list, size_t n,
                                   tide_strmap *out) {
    for (size_t i = 0; i < n; i++) {
        const Onnx__OperatorSetIdProto *o = list[i];
        const char *domain = tide__onnx_domain(o->domain);
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

// ---- types of values ----

static tide_status declare_shape(tide__onnx_importer *im, tide_value *v, const Onnx__TensorShapeProto *s) {
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
static tide_status check_constant(tide__onnx_importer *im, const tide_value *v, tide_dtype dtype,
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

/// What a value is that is no tensor.
static const char *sort_name(const Onnx__TypeProto *type) {
    switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return "a sequence";
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return "a map";
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return "an optional";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return "a sparse tensor";
    default:
        return "of an unknown type";
    }
}

tide_status tide__onnx_declare(tide__onnx_importer *im, uint32_t value_i, const Onnx__TypeProto *type) {
    tide_value *v = &im->g->values[value_i];
    if (type == NULL || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) return TIDE_OK;
    if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return TIDE_FAIL(im->err, TIDE_ERR_NOT_IMPLEMENTED, "'%s' is %s; values are dense tensors here", v->name,
                         sort_name(type));
    const Onnx__TypeProto__Tensor *t = type->tensor_type;
    tide_dtype dtype = TIDE_DTYPE_UNDEFINED;
    if (t->has_elem_type && t->elem_type != 0) TIDE_TRY(tide__onnx_dtype(t->elem_type, v->name, &dtype, im->err));
    if (v->constant != NULL) return dtype != TIDE_DTYPE_UNDEFINED ? check_constant(im, v, dtype, t->shape) : TIDE_OK;
    if (v->has_shape || v->dtype != TIDE_DTYPE_UNDEFINED) return TIDE_OK; // an input that is listed again
    v->dtype = dtype;
    return t->shape != NULL ? declare_shape(im, v, t->shape) : TIDE_OK;
}

// ---- scopes ----

/// A body reads what the graph around it makes, but not what comes of itself. `found` is the scope that has the name.
static tide_status check_capture(tide__onnx_importer *im, const tide__onnx_scope *found, uint32_t value_i) {
    if (value_i == TIDE_NO_VALUE) return TIDE_OK;
    for (const tide__onnx_scope *s = im->scope; s != found; s = s->up) {
        if (s->function != NULL || im->g->values[value_i].producer != s->open) continue;
        return TIDE_FAIL(im->err, TIDE_ERR_CYCLE,
                         "the graph has a cycle: the body of '%s' reads '%s', which comes of it",
                         im->g->nodes[s->open].name, im->g->values[value_i].name);
    }
    return TIDE_OK;
}

/// The value that nodes at hand call `name`; TIDE_NO_VALUE for "".
tide_status tide__onnx_value_named(tide__onnx_importer *im, const char *name, uint32_t *out) {
    *out = TIDE_NO_VALUE;
    if (name[0] == '\0') return TIDE_OK;
    for (const tide__onnx_scope *s = im->scope; s != NULL; s = s->up) {
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

tide_status tide__onnx_values_named(tide__onnx_importer *im, char *const *names, size_t n, uint32_t *out) {
    for (size_t k = 0; k < n; k++) TIDE_TRY(tide__onnx_value_named(im, tide__onnx_str(names[k]), &out[k]));
    return TIDE_OK;
}

/// A value of the graph with this name behind the scope's prefix, or with the next free one.
tide_status tide__onnx_make_value(tide__onnx_importer *im, const tide__onnx_scope *s, const char *name, uint32_t *out) {
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

tide_status tide__onnx_bind_name(tide__onnx_importer *im, tide__onnx_scope *s, const char *name, uint32_t value_i) {
    return tide_strmap_put(&s->names, name, value_i) == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(im->err, "for %s", name);
}

/// What nodes of the scope make has a value before any of them is read: they may stand in any order.
tide_status tide__onnx_bind_results(tide__onnx_importer *im, tide__onnx_scope *s, Onnx__NodeProto *const *nodes,
                                    size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < nodes[i]->n_output; k++) {
            const char *name = tide__onnx_str(nodes[i]->output[k]);
            uint32_t value_i;
            if (name[0] == '\0' || tide_strmap_get(&s->names, name, NULL)) continue;
            TIDE_TRY(tide__onnx_make_value(im, s, name, &value_i));
            TIDE_TRY(tide__onnx_bind_name(im, s, name, value_i));
        }
    }
    return TIDE_OK;
}

static Onnx__AttributeProto *default_of(const tide__onnx_importer *im, const Onnx__FunctionProto *f, const char *name) {
    for (size_t i = 0; i < im->n_defaults; i++) {
        if (im->defaults[i].function == f && strcmp(tide__onnx_str(im->defaults[i].attr->name), name) == 0)
            return im->defaults[i].attr;
    }
    return NULL;
}

/// The attribute itself, or the one of the call that it refers to, or what the function has in its place. *out NULL:
/// neither has it.
tide_status tide__onnx_resolve_attr(tide__onnx_importer *im, const char *node, Onnx__AttributeProto *a,
                                    Onnx__AttributeProto **out) {
    const tide__onnx_scope *s = im->scope;
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
        a = found != NULL ? found : default_of(im, s->function, a->ref_attr_name);
        s = s->up;
    }
    *out = a;
    return TIDE_OK;
}
