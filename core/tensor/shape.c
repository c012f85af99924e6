// SPDX-License-Identifier: MIT
//
// Shapes: counts that are checked for overflow, strides, text. See dtype.h.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/tensor/dtype.h"

tide_shape tide_shape_make(int32_t rank, const int64_t *dims) {
    TIDE_ASSERT(rank >= 0 && rank <= TIDE_MAX_RANK);
    tide_shape s = {.rank = rank < 0 ? 0 : rank > TIDE_MAX_RANK ? TIDE_MAX_RANK : rank};
    for (int32_t i = 0; i < s.rank; i++) s.dims[i] = dims[i];
    return s;
}

bool tide_shape_equal(const tide_shape *a, const tide_shape *b) {
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) return false;
    }
    return true;
}

bool tide_shape_known(const tide_shape *s) {
    for (int32_t i = 0; i < s->rank; i++) {
        if (s->dims[i] == TIDE_DIM_UNKNOWN) return false;
    }
    return true;
}

// ---- counts ----

tide_status tide_shape_numel(const tide_shape *s, int64_t *out, tide_error *err) {
    char text[192];
    if (s->rank < 0 || s->rank > TIDE_MAX_RANK)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "rank %" PRId32 " is outside 0 to %d", s->rank, TIDE_MAX_RANK);
    // Two passes: a negative extent is an error beside a 0 too, and a 0 makes the rest harmless however large.
    bool has_zero = false;
    for (int32_t i = 0; i < s->rank; i++) {
        if (s->dims[i] < 0)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s has %s extent at position %" PRId32,
                             tide_shape_format(s, text, sizeof text),
                             s->dims[i] == TIDE_DIM_UNKNOWN ? "an unknown" : "a negative", i);
        if (s->dims[i] == 0) has_zero = true;
    }
    int64_t numel = has_zero ? 0 : 1;
    for (int32_t i = 0; i < s->rank && !has_zero; i++) {
        if (!tide_mul_i64(numel, s->dims[i], &numel))
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "shape %s has more than 2^63-1 elements",
                             tide_shape_format(s, text, sizeof text));
    }
    TIDE_ASSERT(numel >= 0 && (numel == 0) == has_zero);
    *out = numel;
    return TIDE_OK;
}

tide_status tide_shape_bytes(const tide_shape *s, tide_dtype dtype, size_t *out, tide_error *err) {
    const size_t elem_bytes = tide_dtype_size(dtype);
    if (elem_bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "element type %d is not one of the list", (int)dtype);
    int64_t numel, bytes;
    TIDE_TRY(tide_shape_numel(s, &numel, err));
    if (!tide_mul_i64(numel, (int64_t)elem_bytes, &bytes)) {
        char text[192];
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "shape %s of %s has more than 2^63-1 bytes",
                         tide_shape_format(s, text, sizeof text), tide_dtype_name(dtype));
    }
    *out = (size_t)bytes;
    return TIDE_OK;
}

tide_status tide_shape_operand_bytes(const tide_shape *s, tide_dtype dtype, size_t *out, tide_error *err) {
    TIDE_TRY(tide_shape_bytes(s, dtype, out, err));
    if (*out > 0) return TIDE_OK;
    tide_shape rest = *s;
    size_t bytes;
    for (int32_t d = 0; d < rest.rank; d++) {
        if (rest.dims[d] == 0) rest.dims[d] = 1;
    }
    if (tide_shape_bytes(&rest, dtype, &bytes, NULL) == TIDE_OK) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "shape %s is empty, but its other extents pass 2^63-1 bytes",
                     tide_shape_format(s, text, sizeof text));
}

void tide_shape_strides(const tide_shape *s, int64_t *strides) {
    // strides[rank-1] = 1, strides[i] = strides[i+1] * dims[i+1]. Extents below 1 count as 1, as everywhere else;
    // a product past 2^63-1 can only arise beside a 0 extent, where no stride is ever used, and stays put.
    TIDE_ASSERT(s->rank >= 0 && s->rank <= TIDE_MAX_RANK);
    int64_t stride = 1;
    for (int32_t i = s->rank; i-- > 0;) {
        strides[i] = stride;
        int64_t next;
        if (s->dims[i] > 1 && tide_mul_i64(stride, s->dims[i], &next)) stride = next;
    }
}

// ---- text ----

char *tide_shape_format(const tide_shape *s, char *buf, size_t buf_bytes) {
    size_t at = 0;
    if (buf_bytes == 0) return buf;
    buf[0] = '\0';
    for (int32_t i = 0; i < s->rank && i < TIDE_MAX_RANK && at < buf_bytes; i++) {
        const char *const lead = i == 0 ? "[" : "x";
        const int n = s->dims[i] == TIDE_DIM_UNKNOWN
                          ? snprintf(buf + at, buf_bytes - at, "%s?", lead)
                          : snprintf(buf + at, buf_bytes - at, "%s%" PRId64, lead, s->dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at < buf_bytes) snprintf(buf + at, buf_bytes - at, s->rank > 0 ? "]" : "[]");
    return buf;
}

/// One extent at *at: digits or "?"; moves *at behind it. False for anything else and for what does not fit.
static bool parse_dim(const char **at, int64_t *out) {
    const char *p = *at;
    if (*p == '?') {
        *out = TIDE_DIM_UNKNOWN;
        *at = p + 1;
        return true;
    }
    int64_t dim = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (!tide_mul_i64(dim, 10, &dim) || !tide_add_i64(dim, *p - '0', &dim)) return false;
    }
    if (p == *at) return false;
    *out = dim;
    *at = p;
    return true;
}

static bool parse_open_dim(const char **p, int64_t *dim) {
    if (**p != '?') return parse_dim(p, dim);
    *dim = TIDE_DIM_UNKNOWN;
    (*p)++;
    return true;
}

static tide_status parse(const char *text, bool (*parse_one)(const char **p, int64_t *dim), tide_shape *out,
                         tide_error *err) {
    tide_shape s = {0};
    const char *p = text;
    while (*p != '\0') {
        if (s.rank == TIDE_MAX_RANK)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape '%s' has more than %d extents", text, TIDE_MAX_RANK);
        if (!parse_one(&p, &s.dims[s.rank]) || (*p != 'x' && *p != '\0') || (*p == 'x' && p[1] == '\0')) {
            const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not a shape", text);
            tide_error_hint(err, "write extents with x between them: 1x3x224x224");
            return st;
        }
        s.rank++;
        if (*p == 'x') p++;
    }
    *out = s;
    return TIDE_OK;
}

tide_status tide_shape_parse(const char *text, tide_shape *out, tide_error *err) {
    return parse(text, parse_dim, out, err);
}

tide_status tide_shape_parse_open(const char *text, tide_shape *out, tide_error *err) {
    return parse(text, parse_open_dim, out, err);
}
