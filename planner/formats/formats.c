// SPDX-License-Identifier: MIT
//
// Which format a file has, and who reads it. See formats.h.
#include "planner/formats/formats.h"

#include "core/base/status.h"
#include "planner/formats/formats_internal.h"

const char *tide_list_format_name(tide_list_format format) {
    switch (format) {
    case TIDE_LIST_UNKNOWN:
        return "no list of lifetimes";
    case TIDE_LIST_XLA:
        return "a buffer assignment of XLA";
    case TIDE_LIST_SOMAS:
        return "a memory plan of MindSpore";
    }
    return "?";
}

tide_list_format tide_list_look(const char *data, size_t len) {
    if (tide__list_is_xla(data, len)) return TIDE_LIST_XLA;
    if (tide__list_is_somas(data, len)) return TIDE_LIST_SOMAS;
    return TIDE_LIST_UNKNOWN;
}

static tide_status read_list(tide_list_format format, const char *data, size_t len, const char *path,
                             tide_lifetimes *out, tide_error *err) {
    switch (format) {
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
    const tide_status st = read_list(format, data, len, path, &lt, err);
    if (st == TIDE_OK)
        *out = lt;
    else
        tide_lifetimes_deinit(&lt);
    return st;
}
