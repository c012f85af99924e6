// SPDX-License-Identifier: MIT
//
// Settings of the allocator pytorch from a text, and the rules that follow from them alone: what a request is rounded
// up to, and what it holds of a chunk. The numbers are those of pytorch.c. See pytorch.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/text.h"
#include "core/memory/allocators/pytorch_internal.h"

// ---- options ----

static const char *const names[] = {"max_split_size", "roundup_power2_divisions", "garbage_collection_threshold",
                                    "expandable_segments"};
enum { N_OPTIONS = sizeof names / sizeof names[0] };

/// Which option `text` begins with; N_OPTIONS: none.
static size_t option_of(const char *text, size_t len) {
    size_t i = 0;
    while (i < N_OPTIONS && !(strlen(names[i]) == len && memcmp(names[i], text, len) == 0)) i++;
    return i;
}

bool tide_pytorch_is_option(const char *text) { return option_of(text, strcspn(text, "=,")) < N_OPTIONS; }

static bool take_share(const char *value, double *out) {
    char *end;
    *out = strtod(value, &end);
    return end != value && *end == '\0' && isfinite(*out) && *out > 0 && *out < 1;
}

/// A power of two that is not too large for any request.
static bool take_divisions(const char *value, uint32_t *out) {
    enum { MOST = 1 << 16 };
    char *end;
    const unsigned long n = strtoul(value, &end, 10);
    *out = (uint32_t)n;
    return value[0] >= '0' && value[0] <= '9' && *end == '\0' && n > 0 && n <= MOST && (n & (n - 1)) == 0;
}

static bool take_option(size_t option, const char *value, tide_pytorch_options *out) {
    switch (option) {
    case 0:
        return value != NULL && tide_parse_bytes(value, &out->max_split_bytes, NULL) == TIDE_OK &&
               out->max_split_bytes > TIDE__SC_LARGE_SEGMENT;
    case 1:
        return value != NULL && take_divisions(value, &out->roundup_divisions);
    case 2:
        return value != NULL && take_share(value, &out->gc_threshold);
    case 3:
        return out->expandable_segments = value == NULL;
    default:
        return false;
    }
}

tide_status tide_pytorch_options_parse(const char *text, tide_pytorch_options *out, tide_error *err) {
    *out = (tide_pytorch_options){0};
    for (const char *at = text; *text != '\0'; at++) {
        char word[96], *value;
        const size_t len = strcspn(at, ",");
        bool good = len < sizeof word;
        snprintf(word, sizeof word, "%.*s", (int)(good ? len : sizeof word - 1), at);
        value = strchr(word, '=');
        if (value != NULL) *value++ = '\0';
        good = good && take_option(option_of(word, strlen(word)), value, out);
        if (!good) {
            const tide_status st =
                TIDE_FAIL(err, TIDE_ERR_INVALID, "allocator 'pytorch' has no option '%.*s'", (int)len, at);
            tide_error_hint(err,
                            "options: max_split_size=512MiB (above 20 MiB), roundup_power2_divisions=4 (a power of "
                            "two), garbage_collection_threshold=0.8 (between 0 and 1), expandable_segments");
            return st;
        }
        at += len;
        if (*at == '\0') break;
    }
    return TIDE_OK;
}

// ---- rules 1 and 4 ----

static unsigned log2_of(uint64_t v) { return 63u - (unsigned)__builtin_clzll(v); }

uint64_t tide_pytorch_round(uint64_t bytes, uint64_t divisions) {
    const uint64_t step = TIDE__SC_STEP_BYTES;
    if (bytes < step) return step;
    if (bytes > (uint64_t)INT64_MAX - step) return bytes;
    if (divisions <= 1 || bytes <= step * divisions) return (bytes + step - 1) / step * step;
    const uint64_t floor = UINT64_C(1) << log2_of(bytes), part = floor >> log2_of(divisions);
    return bytes == floor || part == 0 ? bytes : (bytes + part - 1) / part * part;
}

uint64_t tide_pytorch_held(const tide_pytorch_options *opt, uint64_t chunk_bytes, uint64_t need_bytes, bool is_large) {
    TIDE_ASSERT(chunk_bytes >= need_bytes);
    const uint64_t rest = chunk_bytes - need_bytes, most = opt->max_split_bytes;
    if (!is_large || opt->expandable_segments) return rest >= TIDE__SC_STEP_BYTES ? need_bytes : chunk_bytes;
    return (most == 0 || need_bytes < most) && rest > TIDE__SC_LARGE_REST_BYTES ? need_bytes : chunk_bytes;
}
