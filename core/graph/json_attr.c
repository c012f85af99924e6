// SPDX-License-Identifier: MIT
//
// Attributes of graph text. JSON tells 2 from 2.0 but people do not: a whole number also reads as a float, and a
// list of whole numbers as a list of floats.
#include <string.h>

#include "core/graph/json_internal.h"

static tide_status bad_attr(const char *key, const char *what, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                     "attribute '%s' of %s should be a number, a string, a list of numbers or of strings, or a tensor",
                     key, what);
}

static bool all_of(const json_t *list, bool (*is)(const json_t *item)) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!is(json_array_get(list, i))) return false;
    }
    return true;
}

static bool is_whole(const json_t *item) { return json_is_integer(item); }
static bool is_number(const json_t *item) { return json_is_number(item); }
static bool is_text(const json_t *item) { return json_is_string(item); }

/// Every element as a float, and as an integer too where all are whole.
static bool convert_numbers(const json_t *list, tide_attr *out) {
    const bool whole = all_of(list, is_whole);
    out->type = whole ? TIDE_ATTR_INTS : TIDE_ATTR_FLOATS;
    out->n = json_array_size(list);
    out->floats = tide_host_calloc(out->n, sizeof *out->floats);
    if (whole) out->ints = tide_host_calloc(out->n, sizeof *out->ints);
    if (out->floats == NULL || (whole && out->ints == NULL)) return false;
    for (size_t i = 0; i < out->n; i++) {
        const json_t *item = json_array_get(list, i);
        out->floats[i] = (float)json_number_value(item);
        if (whole) out->ints[i] = json_integer_value(item);
    }
    return true;
}

static bool convert_strings(const json_t *list, tide_attr *out) {
    out->type = TIDE_ATTR_STRINGS;
    out->strings = tide_host_calloc(json_array_size(list), sizeof *out->strings);
    if (out->strings == NULL) return false;
    out->n = json_array_size(list);
    for (size_t i = 0; i < out->n; i++) {
        out->strings[i] = tide_host_strdup(json_string_value(json_array_get(list, i)));
        if (out->strings[i] == NULL) return false;
    }
    return true;
}

static tide_status convert(const json_t *item, const char *what, tide__json_budget *budget, tide_attr *out,
                           tide_error *err) {
    static const char *const tensor_keys[] = {"dtype", "shape", "values", "fill", "random", NULL};
    bool have_memory = true;
    switch (json_typeof(item)) {
    case JSON_INTEGER:
        out->type = TIDE_ATTR_INT;
        out->i = json_integer_value(item);
        break;
    case JSON_REAL:
        out->type = TIDE_ATTR_FLOAT;
        out->f = (float)json_real_value(item);
        break;
    case JSON_STRING:
        out->type = TIDE_ATTR_STRING;
        have_memory = (out->s = tide_host_strdup(json_string_value(item))) != NULL;
        break;
    case JSON_ARRAY:
        if (all_of(item, is_number)) {
            have_memory = convert_numbers(item, out);
        } else if (all_of(item, is_text)) {
            have_memory = convert_strings(item, out);
        } else {
            return bad_attr(out->name, what, err);
        }
        break;
    case JSON_OBJECT:
        out->type = TIDE_ATTR_TENSOR;
        TIDE_TRY(tide__json_check_keys(item, tensor_keys, out->name, err));
        return tide__json_tensor(item, out->name, out->name, budget, &out->tensor, err);
    default:
        return bad_attr(out->name, what, err);
    }
    return have_memory ? TIDE_OK : TIDE__NOMEM(err, "an attribute");
}

tide_status tide__json_attrs(tide_graph *g, uint32_t node_i, const json_t *attrs, tide__json_budget *budget,
                             const char *what, tide_error *err) {
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)attrs, key, item) {
        tide_attr attr = {.name = tide_host_strdup(key)};
        if (attr.name == NULL) return TIDE__NOMEM(err, "an attribute");
        const tide_status st = convert(item, what, budget, &attr, err);
        if (st != TIDE_OK) {
            tide_attr_deinit(&attr);
            return st;
        }
        TIDE_TRY(tide_graph_add_attr(g, node_i, &attr, err));
    }
    return TIDE_OK;
}

// ---- output types of an Opaque node ----

static tide_status add_ints(tide_graph *g, uint32_t node_i, const char *name, const int64_t *ints, size_t n,
                            tide_error *err) {
    tide_attr attr = {.name = tide_host_strdup(name), .type = TIDE_ATTR_INTS, .n = n};
    attr.ints = tide_host_calloc(n, sizeof *ints);
    if (attr.name == NULL || attr.ints == NULL) {
        tide_attr_deinit(&attr);
        return TIDE__NOMEM(err, name);
    }
    if (n > 0) memcpy(attr.ints, ints, n * sizeof *ints);
    return tide_graph_add_attr(g, node_i, &attr, err);
}

static tide_status read_output_type(const json_t *item, const char *what, int64_t *dtype, tide_shape *shape,
                                    tide_error *err) {
    static const char *const known[] = {"dtype", "shape", NULL};
    TIDE_TRY(tide__json_check_keys(item, known, what, err));
    tide_dtype parsed;
    json_t *extents;
    size_t bytes;
    TIDE_TRY(tide__json_dtype(item, what, &parsed, err));
    TIDE_TRY(tide__json_member(item, "shape", JSON_ARRAY, true, what, &extents, err));
    TIDE_TRY(tide__json_shape(extents, what, shape, NULL, err));
    *dtype = parsed;
    if (tide_shape_bytes(shape, parsed, &bytes, err) == TIDE_OK) return TIDE_OK;
    tide_error_prefix(err, "%s", what);
    return TIDE_ERR_BAD_INPUT;
}

tide_status tide__json_output_types(tide_graph *g, uint32_t node_i, const json_t *list, const char *what,
                                    tide_error *err) {
    const size_t n = json_array_size(list);
    if (n != g->nodes[node_i].n_outputs)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s has %zu outputs and %zu output types", what,
                         g->nodes[node_i].n_outputs, n);
    int64_t *dtypes = tide_host_calloc(n, sizeof *dtypes);
    int64_t *shapes = tide_host_calloc(n * (1 + TIDE_MAX_RANK), sizeof *shapes);
    size_t n_shapes = 0;
    tide_status st = dtypes != NULL && shapes != NULL ? TIDE_OK : TIDE__NOMEM(err, "output types");
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide_shape shape;
        st = read_output_type(json_array_get(list, i), what, &dtypes[i], &shape, err);
        if (st != TIDE_OK) break;
        shapes[n_shapes++] = shape.rank;
        for (int32_t d = 0; d < shape.rank; d++) shapes[n_shapes++] = shape.dims[d];
    }
    if (st == TIDE_OK) st = add_ints(g, node_i, "tide_dtypes", dtypes, n, err);
    if (st == TIDE_OK) st = add_ints(g, node_i, "tide_shapes", shapes, n_shapes, err);
    tide_host_free(dtypes);
    tide_host_free(shapes);
    return st;
}
