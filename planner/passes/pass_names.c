// SPDX-License-Identifier: MIT
//
// pass names: the words for the passes of passes.h, both ways.
#include <strings.h>

#include "planner/passes.h"

const char *tide_pass_name(tide_pass pass) {
    switch (pass) {
#define XX(name, text)                                                                                                 \
    case TIDE_PASS_##name:                                                                                             \
        return text;
        TIDE_PASS_MAP(XX)
#undef XX
    case TIDE_N_PASSES:
        break;
    }
    return "pass ?";
}

tide_status tide_pass_parse(const char *text, tide_pass *out, tide_error *err) {
#define XX(name, word)                                                                                                 \
    if (strcasecmp(text, word) == 0) {                                                                                 \
        *out = TIDE_PASS_##name;                                                                                       \
        return TIDE_OK;                                                                                                \
    }
    TIDE_PASS_MAP(XX)
#undef XX
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "there is no pass '%s'", text);
    tide_error_hint(err, "passes are views, slices, in-place, parts, order, recompute");
    return st;
}
