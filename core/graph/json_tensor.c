// SPDX-License-Identifier: MIT
//
// Types, shapes, constants and attributes of graph text. Weights are usually "random" with a seed, so that a graph of
// 100 MB is a file of a few KB and the same everywhere.
//
// An unknown key is an error, since it is nearly always a known one misspelt.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"
#include "core/graph/json_internal.h"

// ---- keys ----

static const char *type_name(json_type type) {
    if (type == JSON_INTEGER) return "a whole number";
    return type == JSON_REAL ? "a number" : tide_json_type_name(type);
}

tide_status tide__json_refuse(tide_json_reader *r, const char *key, const json_t *value, json_type want) {
    if (value == NULL) return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s has no '%s'", r->at, key);
    return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "'%s' of %s is %s, it should be %s", key, r->at,
                     type_name(json_typeof(value)), type_name(want));
}

tide_status tide__json_check_keys(tide_json_reader *r, const json_t *object, const char *const *known) {
    if (json_is_object(object)) return tide_json_check_keys(r, object, known);
    return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s is %s, it should be an object", r->at,
                     type_name(json_typeof(object)));
}

tide_status tide__json_text_if(tide_json_reader *r, const json_t *object, const char *key, const char **out) {
    return tide_json_has(object, key) ? tide_json_get_text(r, object, key, out) : TIDE_OK;
}

// ---- types and shapes ----

static void free_names(char **names, int32_t rank) {
    for (int32_t i = 0; names != NULL && i < rank; i++) tide_host_free(names[i]);
    tide_host_free(names);
}

static tide_status read_extent(tide_json_reader *r, const json_t *item, size_t i, int64_t *extent, char **name) {
    if (json_is_integer(item) && json_integer_value(item) >= 0) {
        *extent = json_integer_value(item);
        return TIDE_OK;
    }
    if (name == NULL || !json_is_string(item) || json_string_length(item) == 0)
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "extent %zu in the shape of %s should be a whole number from 0%s",
                         i, r->at, name != NULL ? " or the name of an open extent" : "");
    *extent = TIDE_DIM_UNKNOWN;
    *name = tide_host_strdup(json_string_value(item));
    return *name != NULL ? TIDE_OK : TIDE_NO_MEMORY(r->err, "for %s", r->at);
}

tide_status tide__json_shape(tide_json_reader *r, const json_t *list, tide_shape *out, char ***dim_names) {
    const size_t rank = json_array_size(list);
    if (rank > TIDE_MAX_RANK)
        return TIDE_FAIL(r->err, TIDE_ERR_NOT_IMPLEMENTED, "%s has %zu extents, %d are the most", r->at, rank,
                         TIDE_MAX_RANK);
    tide_shape shape = {.rank = (int32_t)rank};
    char **names = NULL;
    if (dim_names != NULL) {
        TIDE_TRY(TIDE_NEW(&names, rank, r->err, "for %s", r->at));
    }
    for (size_t i = 0; i < rank; i++) {
        const tide_status st =
            read_extent(r, json_array_get(list, i), i, &shape.dims[i], names != NULL ? &names[i] : NULL);
        if (st == TIDE_OK) continue;
        free_names(names, shape.rank);
        return st;
    }
    *out = shape;
    if (dim_names != NULL) *dim_names = names;
    return TIDE_OK;
}

tide_status tide__json_dtype(tide_json_reader *r, const json_t *object, tide_dtype *out) {
    const char *name = NULL;
    TIDE_TRY(tide_json_get_text(r, object, "dtype", &name));
    if (tide_dtype_parse(name, out, NULL) == TIDE_OK) return TIDE_OK;
    const tide_status st = TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s has the unknown element type '%s'", r->at, name);
    static const char *const known[] = {
#define XX(suffix, value, text, bytes) text,
        TIDE_DTYPE_MAP(XX)
#undef XX
    };
    const char *near = tide_nearest_of(name, known, sizeof known / sizeof known[0]);
    if (near != NULL) tide_error_hint(r->err, "did you mean '%s'?", near);
    return st;
}

// ---- content ----

static bool store(tide_tensor *t, size_t i, const json_t *item) {
    void *data = tide_tensor_data(t);
    const tide_dtype dtype = tide_tensor_dtype(t);
    if (json_is_integer(item)) return tide__number_store_int(data, dtype, i, json_integer_value(item));
    if (json_is_real(item)) return tide__number_store_real(data, dtype, i, json_real_value(item));
    if (json_is_boolean(item) && dtype == TIDE_BOOL)
        return tide__number_store_int(data, dtype, i, json_is_true(item) ? 1 : 0);
    return false;
}

static tide_status not_a_number(tide_json_reader *r, size_t i, tide_dtype dtype) {
    return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "element %zu of %s is no %s", i, r->at, tide_dtype_name(dtype));
}

static tide_status write_values(tide_json_reader *r, const json_t *values, tide_tensor *t) {
    for (size_t i = 0; i < json_array_size(values); i++) {
        if (!store(t, i, json_array_get(values, i))) return not_a_number(r, i, tide_tensor_dtype(t));
    }
    return TIDE_OK;
}

static tide_status write_fill(tide_json_reader *r, const json_t *fill, size_t n, tide_tensor *t) {
    const size_t size = tide_dtype_size(tide_tensor_dtype(t));
    if (n == 0) return TIDE_OK;
    if (!store(t, 0, fill)) return not_a_number(r, 0, tide_tensor_dtype(t));
    char *data = tide_tensor_data(t);
    // What is there is copied behind itself: a fill of 4 GiB is 32 calls at most, not one per element.
    for (size_t done = size; done < n * size;) {
        const size_t more = done < n * size - done ? done : n * size - done;
        memcpy(data + done, data, more);
        done += more;
    }
    return TIDE_OK;
}

typedef struct random_spec {
    tide_rng rng;
    double low, high; // [low, high)
} random_spec;

static tide_status read_bound(tide_json_reader *r, const json_t *random, const char *key, double *out) {
    const json_t *item = json_object_get(random, key);
    if (item == NULL) return TIDE_OK;
    if (!json_is_number(item)) return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "'%s' of %s is no number", key, r->at);
    *out = json_number_value(item);
    return TIDE_OK;
}

static tide_status read_random(tide_json_reader *r, const json_t *random, const char *seed_name, random_spec *out) {
    static const char *const known[] = {"seed", "low", "high", NULL};
    *out = (random_spec){.rng = {tide_hash_text(TIDE_HASH_START, seed_name)}, .low = -1.0, .high = 1.0};
    TIDE_TRY(tide__json_check_keys(r, random, known));
    json_t *seed;
    TIDE_TRY(tide_json_get(r, random, "seed", JSON_INTEGER, false, &seed));
    if (seed != NULL) out->rng.state = (uint64_t)json_integer_value(seed);
    TIDE_TRY(read_bound(r, random, "low", &out->low));
    TIDE_TRY(read_bound(r, random, "high", &out->high));
    if (!(out->low < out->high))
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "'random' of %s: low %g is not below high %g", r->at, out->low,
                         out->high);
    if (!isfinite(out->high - out->low))
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "'random' of %s: from low %g to high %g is no finite distance",
                         r->at, out->low, out->high);
    return TIDE_OK;
}

static bool is_float(tide_dtype dtype) {
    return dtype == TIDE_F32 || dtype == TIDE_F64 || dtype == TIDE_F16 || dtype == TIDE_BF16;
}

static tide_status write_random(tide_json_reader *r, random_spec *spec, size_t n, tide_tensor *t) {
    void *data = tide_tensor_data(t);
    const tide_dtype dtype = tide_tensor_dtype(t);
    const double low = spec->low, width = spec->high - spec->low;
    if (dtype == TIDE_F32) { // nearly all weights: no question for each of millions
        float *floats = data;
        for (size_t i = 0; i < n; i++) floats[i] = (float)(low + width * tide_rng_f64(&spec->rng));
        return TIDE_OK;
    }
    const bool whole = !is_float(dtype);
    for (size_t i = 0; i < n; i++) {
        double v = low + width * tide_rng_f64(&spec->rng);
        if (whole) v = floor(v);
        if (!tide__number_store_real(data, dtype, i, v)) return not_a_number(r, i, dtype);
    }
    return TIDE_OK;
}

// ---- a constant ----

typedef struct content {
    json_t *values, *fill, *random; // one of them is there
    random_spec spec;
} content;

static tide_status read_content(tide_json_reader *r, const json_t *object, const char *seed_name, content *c) {
    TIDE_TRY(tide_json_get(r, object, "values", JSON_ARRAY, false, &c->values));
    TIDE_TRY(tide_json_get(r, object, "random", JSON_OBJECT, false, &c->random));
    c->fill = json_object_get(object, "fill");
    if ((c->values != NULL) + (c->fill != NULL) + (c->random != NULL) != 1)
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s needs one of 'values', 'fill' and 'random'", r->at);
    if (c->random == NULL) return TIDE_OK;
    return read_random(r, c->random, seed_name, &c->spec);
}

/// Whether the content is left out; else it is taken from what may be made. Checked as if it were made.
static tide_status leave_blank(tide_json_reader *r, const content *c, tide_dtype dtype, size_t size_bytes,
                               tide__json_budget *budget, bool *is_blank) {
    tide_contents *made = &budget->contents;
    *is_blank =
        budget->may_be_blank && c->values == NULL && (size_bytes > made->one_bytes || size_bytes > made->all_bytes);
    if (!*is_blank) {
        made->all_bytes -= budget->may_be_blank && c->values == NULL ? size_bytes : 0;
        return TIDE_OK;
    }
    tide_tensor *one;
    const tide_shape shape = tide_shape_make(0, NULL);
    TIDE_TRY(tide__constant_create(dtype, &shape, r->at, &one, r->err));
    random_spec spec = c->spec;
    const tide_status st = c->fill != NULL ? write_fill(r, c->fill, 1, one) : write_random(r, &spec, 1, one);
    tide_tensor_unref(one);
    return st;
}

tide_status tide__json_tensor(tide_json_reader *r, const json_t *object, const char *seed_name,
                              tide__json_budget *budget, tide_tensor **out) {
    tide_dtype dtype;
    tide_shape shape;
    json_t *extents;
    int64_t numel;
    size_t size_bytes;
    content c = {0};
    TIDE_TRY(tide__json_dtype(r, object, &dtype));
    TIDE_TRY(tide_json_get(r, object, "shape", JSON_ARRAY, true, &extents));
    TIDE_TRY(tide__json_shape(r, extents, &shape, NULL));
    TIDE_TRY(read_content(r, object, seed_name, &c));
    if (tide_shape_numel(&shape, &numel, r->err) != TIDE_OK ||
        tide_shape_bytes(&shape, dtype, &size_bytes, r->err) != TIDE_OK) {
        tide_error_prefix(r->err, "%s", r->at);
        return TIDE_ERR_BAD_INPUT;
    }
    if (c.values != NULL && json_array_size(c.values) != (size_t)numel)
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s has %zu values, its shape has %" PRId64 " elements", r->at,
                         json_array_size(c.values), numel);
    if (size_bytes > budget->bytes)
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT,
                         "%s needs %zu bytes: the constants of a graph text are limited to 4 GiB", r->at, size_bytes);
    bool is_blank;
    TIDE_TRY(leave_blank(r, &c, dtype, size_bytes, budget, &is_blank));
    budget->bytes -= size_bytes;
    if (is_blank) return tide_tensor_create_unbound(dtype, &shape, TIDE_CPU, out, r->err);
    tide_tensor *t = NULL;
    TIDE_TRY(tide__constant_create(dtype, &shape, seed_name, &t, r->err));
    tide_status st;
    if (c.values != NULL) {
        st = write_values(r, c.values, t);
    } else if (c.fill != NULL) {
        st = write_fill(r, c.fill, (size_t)numel, t);
    } else {
        st = write_random(r, &c.spec, (size_t)numel, t);
    }
    if (st != TIDE_OK) {
        tide_tensor_unref(t);
        return st;
    }
    *out = t;
    return TIDE_OK;
}

// ---- attributes ----
//
// JSON distinguishes 2 from 2.0, people do not: a whole number also reads as a float, and a list of whole numbers as a
// list of floats.

static tide_status bad_attr(tide_json_reader *r, const char *key) {
    return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT,
                     "attribute '%s' of %s should be a number, a string, a list of numbers or of strings, or a tensor",
                     key, r->at);
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

/// Messages name the attribute instead of the node.
static tide_status convert_tensor(const tide_json_reader *r, const json_t *item, tide__json_budget *budget,
                                  tide_attr *out) {
    static const char *const known[] = {"dtype", "shape", "values", "fill", "random", NULL};
    tide_json_reader of_attr = *r;
    snprintf(of_attr.at, sizeof of_attr.at, "%s", out->name);
    TIDE_TRY(tide__json_check_keys(&of_attr, item, known));
    return tide__json_tensor(&of_attr, item, out->name, budget, &out->tensor);
}

static tide_status convert(tide_json_reader *r, const json_t *item, tide__json_budget *budget, tide_attr *out) {
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
            return bad_attr(r, out->name);
        }
        break;
    case JSON_OBJECT:
        out->type = TIDE_ATTR_TENSOR;
        return convert_tensor(r, item, budget, out);
    default:
        return bad_attr(r, out->name);
    }
    return have_memory ? TIDE_OK : TIDE_NO_MEMORY(r->err, "for an attribute");
}

tide_status tide__json_attrs(tide_json_reader *r, tide_graph *g, uint32_t node_i, const json_t *attrs,
                             tide__json_budget *budget) {
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)attrs, key, item) {
        tide_attr attr = {.name = tide_host_strdup(key)};
        if (attr.name == NULL) return TIDE_NO_MEMORY(r->err, "for an attribute");
        const tide_status st = convert(r, item, budget, &attr);
        if (st != TIDE_OK) {
            tide_attr_deinit(&attr);
            return st;
        }
        TIDE_TRY(tide_graph_add_attr(g, node_i, &attr, r->err));
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
        return TIDE_NO_MEMORY(err, "for %s", name);
    }
    if (n > 0) memcpy(attr.ints, ints, n * sizeof *ints);
    return tide_graph_add_attr(g, node_i, &attr, err);
}

static tide_status read_output_type(tide_json_reader *r, const json_t *item, int64_t *dtype, tide_shape *shape) {
    static const char *const known[] = {"dtype", "shape", NULL};
    TIDE_TRY(tide__json_check_keys(r, item, known));
    tide_dtype parsed;
    json_t *extents;
    size_t bytes;
    TIDE_TRY(tide__json_dtype(r, item, &parsed));
    TIDE_TRY(tide_json_get(r, item, "shape", JSON_ARRAY, true, &extents));
    TIDE_TRY(tide__json_shape(r, extents, shape, NULL));
    *dtype = parsed;
    if (tide_shape_bytes(shape, parsed, &bytes, r->err) == TIDE_OK) return TIDE_OK;
    tide_error_prefix(r->err, "%s", r->at);
    return TIDE_ERR_BAD_INPUT;
}

tide_status tide__json_output_types(tide_json_reader *r, tide_graph *g, uint32_t node_i, const json_t *list) {
    const size_t n = json_array_size(list);
    if (n != g->nodes[node_i].n_outputs)
        return TIDE_FAIL(r->err, TIDE_ERR_BAD_INPUT, "%s has %zu outputs and %zu output types", r->at,
                         g->nodes[node_i].n_outputs, n);
    int64_t *dtypes = tide_host_calloc(n, sizeof *dtypes);
    int64_t *shapes = tide_host_calloc(n * (1 + TIDE_MAX_RANK), sizeof *shapes);
    size_t n_shapes = 0;
    tide_status st = dtypes != NULL && shapes != NULL ? TIDE_OK : TIDE_NO_MEMORY(r->err, "for output types");
    for (size_t i = 0; st == TIDE_OK && i < n; i++) {
        tide_shape shape;
        st = read_output_type(r, json_array_get(list, i), &dtypes[i], &shape);
        if (st != TIDE_OK) break;
        shapes[n_shapes++] = shape.rank;
        for (int32_t d = 0; d < shape.rank; d++) shapes[n_shapes++] = shape.dims[d];
    }
    if (st == TIDE_OK) st = add_ints(g, node_i, "tide_dtypes", dtypes, n, r->err);
    if (st == TIDE_OK) st = add_ints(g, node_i, "tide_shapes", shapes, n_shapes, r->err);
    tide_host_free(dtypes);
    tide_host_free(shapes);
    return st;
}
