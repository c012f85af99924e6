// SPDX-License-Identifier: MIT
//
// Types, shapes and constants of graph text. Weights are usually "random" with a seed, so that a graph of 100 MB is
// a file of a few KB and the same everywhere.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/nearest.h"
#include "core/graph/json_internal.h"

static void free_names(char **names, int32_t rank) {
    for (int32_t i = 0; names != NULL && i < rank; i++) tide_host_free(names[i]);
    tide_host_free(names);
}

static tide_status read_extent(const json_t *item, size_t i, const char *what, int64_t *extent, char **name,
                               tide_error *err) {
    if (json_is_integer(item) && json_integer_value(item) >= 0) {
        *extent = json_integer_value(item);
        return TIDE_OK;
    }
    if (name == NULL || !json_is_string(item) || json_string_length(item) == 0)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "extent %zu in the shape of %s should be a whole number from 0%s", i,
                         what, name != NULL ? " or the name of an open extent" : "");
    *extent = TIDE_DIM_UNKNOWN;
    *name = tide_host_strdup(json_string_value(item));
    return *name != NULL ? TIDE_OK : TIDE__NOMEM(err, what);
}

tide_status tide__json_shape(const json_t *list, const char *what, tide_shape *out, char ***dim_names,
                             tide_error *err) {
    const size_t rank = json_array_size(list);
    if (rank > TIDE_MAX_RANK)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "%s has %zu extents, %d are the most", what, rank,
                         TIDE_MAX_RANK);
    tide_shape shape = {.rank = (int32_t)rank};
    char **names = NULL;
    if (dim_names != NULL) {
        names = tide_host_calloc(rank, sizeof *names);
        if (names == NULL) return TIDE__NOMEM(err, what);
    }
    for (size_t i = 0; i < rank; i++) {
        const tide_status st =
            read_extent(json_array_get(list, i), i, what, &shape.dims[i], names != NULL ? &names[i] : NULL, err);
        if (st == TIDE_OK) continue;
        free_names(names, shape.rank);
        return st;
    }
    *out = shape;
    if (dim_names != NULL) *dim_names = names;
    return TIDE_OK;
}

tide_status tide__json_dtype(const json_t *object, const char *what, tide_dtype *out, tide_error *err) {
    const char *name = NULL;
    TIDE_TRY(tide__json_string(object, "dtype", true, what, &name, err));
    if (tide_dtype_parse(name, out, NULL) == TIDE_OK) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s has the unknown element type '%s'", what, name);
    static const char *const known[] = {
#define XX(suffix, value, text, bytes) text,
        TIDE_DTYPE_MAP(XX)
#undef XX
    };
    const char *near = tide_nearest_of(name, known, sizeof known / sizeof known[0]);
    if (near != NULL) tide_error_hint(err, "did you mean '%s'?", near);
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

static tide_status not_a_number(const char *what, size_t i, tide_dtype dtype, tide_error *err) {
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "element %zu of %s is no %s", i, what, tide_dtype_name(dtype));
}

static tide_status write_values(const json_t *values, const char *what, tide_tensor *t, tide_error *err) {
    for (size_t i = 0; i < json_array_size(values); i++) {
        if (!store(t, i, json_array_get(values, i))) return not_a_number(what, i, tide_tensor_dtype(t), err);
    }
    return TIDE_OK;
}

static tide_status write_fill(const json_t *fill, const char *what, size_t n, tide_tensor *t, tide_error *err) {
    const size_t size = tide_dtype_size(tide_tensor_dtype(t));
    if (n == 0) return TIDE_OK;
    if (!store(t, 0, fill)) return not_a_number(what, 0, tide_tensor_dtype(t), err);
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

static tide_status read_bound(const json_t *random, const char *key, const char *what, double *out, tide_error *err) {
    const json_t *item = json_object_get(random, key);
    if (item == NULL) return TIDE_OK;
    if (!json_is_number(item)) return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' of %s is no number", key, what);
    *out = json_number_value(item);
    return TIDE_OK;
}

static tide_status read_random(const json_t *random, const char *what, const char *seed_name, random_spec *out,
                               tide_error *err) {
    static const char *const known[] = {"seed", "low", "high", NULL};
    *out = (random_spec){.rng = {tide_hash_text(TIDE_HASH_START, seed_name)}, .low = -1.0, .high = 1.0};
    TIDE_TRY(tide__json_check_keys(random, known, what, err));
    json_t *seed;
    TIDE_TRY(tide__json_member(random, "seed", JSON_INTEGER, false, what, &seed, err));
    if (seed != NULL) out->rng.state = (uint64_t)json_integer_value(seed);
    TIDE_TRY(read_bound(random, "low", what, &out->low, err));
    TIDE_TRY(read_bound(random, "high", what, &out->high, err));
    if (out->low < out->high) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'random' of %s: low %g is not below high %g", what, out->low, out->high);
}

static bool is_float(tide_dtype dtype) {
    return dtype == TIDE_F32 || dtype == TIDE_F64 || dtype == TIDE_F16 || dtype == TIDE_BF16;
}

static tide_status write_random(random_spec *r, const char *what, size_t n, tide_tensor *t, tide_error *err) {
    void *data = tide_tensor_data(t);
    const tide_dtype dtype = tide_tensor_dtype(t);
    const bool whole = !is_float(dtype);
    for (size_t i = 0; i < n; i++) {
        double v = r->low + (r->high - r->low) * tide_rng_f64(&r->rng);
        if (whole) v = floor(v);
        if (!tide__number_store_real(data, dtype, i, v)) return not_a_number(what, i, dtype, err);
    }
    return TIDE_OK;
}

// ---- a constant ----

typedef struct content {
    json_t *values, *fill, *random; // one of them is there
    random_spec spec;
} content;

static tide_status read_content(const json_t *object, const char *what, const char *seed_name, content *c,
                                tide_error *err) {
    TIDE_TRY(tide__json_member(object, "values", JSON_ARRAY, false, what, &c->values, err));
    TIDE_TRY(tide__json_member(object, "random", JSON_OBJECT, false, what, &c->random, err));
    c->fill = json_object_get(object, "fill");
    if ((c->values != NULL) + (c->fill != NULL) + (c->random != NULL) != 1)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s needs one of 'values', 'fill' and 'random'", what);
    if (c->random == NULL) return TIDE_OK;
    return read_random(c->random, what, seed_name, &c->spec, err);
}

/// Whether the content is left out; else it is taken from what may be made. Checked as if it were made.
static tide_status leave_blank(const content *c, const char *what, tide_dtype dtype, size_t size_bytes,
                               tide__json_budget *budget, bool *is_blank, tide_error *err) {
    tide_contents *made = &budget->contents;
    *is_blank =
        budget->may_be_blank && c->values == NULL && (size_bytes > made->one_bytes || size_bytes > made->all_bytes);
    if (!*is_blank) {
        made->all_bytes -= budget->may_be_blank && c->values == NULL ? size_bytes : 0;
        return TIDE_OK;
    }
    tide_tensor *one;
    const tide_shape shape = tide_shape_make(0, NULL);
    TIDE_TRY(tide__constant_create(dtype, &shape, what, &one, err));
    random_spec spec = c->spec;
    const tide_status st =
        c->fill != NULL ? write_fill(c->fill, what, 1, one, err) : write_random(&spec, what, 1, one, err);
    tide_tensor_unref(one);
    return st;
}

tide_status tide__json_tensor(const json_t *object, const char *what, const char *seed_name, tide__json_budget *budget,
                              tide_tensor **out, tide_error *err) {
    tide_dtype dtype;
    tide_shape shape;
    json_t *extents;
    int64_t numel;
    size_t size_bytes;
    content c = {0};
    TIDE_TRY(tide__json_dtype(object, what, &dtype, err));
    TIDE_TRY(tide__json_member(object, "shape", JSON_ARRAY, true, what, &extents, err));
    TIDE_TRY(tide__json_shape(extents, what, &shape, NULL, err));
    TIDE_TRY(read_content(object, what, seed_name, &c, err));
    if (tide_shape_numel(&shape, &numel, err) != TIDE_OK ||
        tide_shape_bytes(&shape, dtype, &size_bytes, err) != TIDE_OK) {
        tide_error_prefix(err, "%s", what);
        return TIDE_ERR_BAD_INPUT;
    }
    if (c.values != NULL && json_array_size(c.values) != (size_t)numel)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "%s has %zu values, its shape has %" PRId64 " elements", what,
                         json_array_size(c.values), numel);
    if (size_bytes > budget->bytes)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                         "%s needs %zu bytes: the constants of a graph text are limited to 4 GiB", what, size_bytes);
    bool is_blank;
    TIDE_TRY(leave_blank(&c, what, dtype, size_bytes, budget, &is_blank, err));
    budget->bytes -= size_bytes;
    if (is_blank) return tide_tensor_create_unbound(dtype, &shape, TIDE_CPU, out, err);
    tide_tensor *t = NULL;
    TIDE_TRY(tide__constant_create(dtype, &shape, seed_name, &t, err));
    tide_status st;
    if (c.values != NULL) {
        st = write_values(c.values, what, t, err);
    } else if (c.fill != NULL) {
        st = write_fill(c.fill, what, (size_t)numel, t, err);
    } else {
        st = write_random(&c.spec, what, (size_t)numel, t, err);
    }
    if (st != TIDE_OK) {
        tide_tensor_unref(t);
        return st;
    }
    *out = t;
    return TIDE_OK;
}
