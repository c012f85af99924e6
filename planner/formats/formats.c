// SPDX-License-Identifier: MIT
//
// Which format a file has, and who reads it. See formats.h.
#include "planner/formats/formats.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "planner/formats/formats_internal.h"

const char *tide_list_format_name(tide_list_format format) {
    switch (format) {
    case TIDE_LIST_UNKNOWN:
        return "no list of lifetimes";
    case TIDE_LIST_TFLITE:
        return "a TensorFlow Lite model";
    case TIDE_LIST_EXECUTORCH:
        return "an ExecuTorch program";
    case TIDE_LIST_XLA:
        return "a buffer assignment of XLA";
    case TIDE_LIST_SOMAS:
        return "a memory plan of MindSpore";
    }
    return "?";
}

/// The identifier of a flatbuffer, behind the offset of its root, which has to lie in the file: four letters there may
/// be a text of any other format.
static bool has_identifier(const char *data, size_t len, const char *identifier, size_t n) {
    const unsigned char *u = (const unsigned char *)data;
    if (len < 12 || memcmp(data + 4, identifier, n) != 0) return false;
    const uint64_t root = u[0] | (uint64_t)u[1] << 8 | (uint64_t)u[2] << 16 | (uint64_t)u[3] << 24;
    return root >= 8 && root <= len - 4;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

tide_list_format tide_list_look(const char *data, size_t len) {
    if (has_identifier(data, len, "TFL3", 4)) return TIDE_LIST_TFLITE;
    if (has_identifier(data, len, "ET", 2) && is_digit(data[6]) && is_digit(data[7])) return TIDE_LIST_EXECUTORCH;
    if (tide__list_is_xla(data, len)) return TIDE_LIST_XLA;
    if (tide__list_is_somas(data, len)) return TIDE_LIST_SOMAS;
    return TIDE_LIST_UNKNOWN;
}

/// Of a text, whose bytes count as they are, the plan that it has is one of the table: more cannot be needed at once.
static tide_status check_bound(const tide_lifetimes *lt, const char *path, tide_error *err) {
    uint64_t bytes;
    int64_t step;
    if (lt->given_plan_bytes == 0) return TIDE_OK;
    TIDE_TRY(tide_lower_bound(lt, &bytes, &step, err));
    if (bytes <= lt->given_plan_bytes) return TIDE_OK;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                                     "'%s' needs %" PRIu64 " bytes in step %" PRId64 ", and its own plan has %" PRIu64,
                                     path, bytes, step, lt->given_plan_bytes);
    tide_error_where(err, "%s", path);
    return st;
}

static tide_status read_list(tide_list_format format, const char *data, size_t len, const char *path,
                             tide_lifetimes *out, tide_error *err) {
    switch (format) {
    case TIDE_LIST_TFLITE:
        return tide__list_tflite(data, len, path, out, err);
    case TIDE_LIST_EXECUTORCH:
        return tide__list_executorch(data, len, path, out, err);
    case TIDE_LIST_XLA:
        return tide__list_xla(data, len, path, out, err);
    case TIDE_LIST_SOMAS:
        return tide__list_somas(data, len, path, out, err);
    case TIDE_LIST_UNKNOWN:
        break;
    }
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is %s", path, tide_list_format_name(TIDE_LIST_UNKNOWN));
}

tide_status tide_lifetimes_from_format(tide_list_format format, const char *data, size_t len, const char *path,
                                       tide_lifetimes *out, tide_error *err) {
    tide_lifetimes lt = {0};
    tide_status st = read_list(format, data, len, path, &lt, err);
    if (st == TIDE_OK && (format == TIDE_LIST_XLA || format == TIDE_LIST_SOMAS)) st = check_bound(&lt, path, err);
    if (st == TIDE_OK) {
        lt.model = tide_path_stem(path);
        if (lt.model == NULL) st = TIDE_NO_MEMORY(err, "to read '%s'", path);
    }
    if (st == TIDE_OK)
        *out = lt;
    else
        tide_lifetimes_deinit(&lt);
    return st;
}
