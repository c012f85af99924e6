// SPDX-License-Identifier: MIT
//
// Settings of the allocator pytorch from a text, and the rules that follow from them alone: what a request is rounded
// up to, and what it holds of a chunk. The numbers are those of pytorch.c. See pytorch.h.
#include <inttypes.h>
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

/// How much of `text` is one option: a list in it has commas of its own.
static size_t option_len(const char *text) {
    const size_t len = strcspn(text, ",[");
    if (text[len] != '[') return len;
    const size_t list = strcspn(text + len, "]");
    return len + list + strcspn(text + len + list, ",");
}

size_t tide_pytorch_options_len(const char *text) {
    size_t len = option_len(text);
    while (text[len] == ',' && option_of(text + len + 1, strcspn(text + len + 1, "=,")) < N_OPTIONS)
        len += 1 + option_len(text + len + 1);
    return len;
}

static bool take_share(const char *value, double *out) {
    char *end;
    *out = strtod(value, &end);
    return end != value && *end == '\0' && isfinite(*out) && *out > 0 && *out < 1;
}

bool tide_pytorch_takes_divisions(uint64_t n) {
    enum { MOST = 1 << 16 }; // beyond, steps are below 512 B for all requests that there can be
    return n <= MOST && (n & (n - 1)) == 0;
}

/// Digits at *at, which moves behind them. False: there are none, or they are no number of divisions.
static bool take_divisions(const char **at, uint32_t *out) {
    char *end;
    const unsigned long n = strtoul(*at, &end, 10);
    const bool good = **at >= '0' && **at <= '9' && tide_pytorch_takes_divisions(n);
    *at = end;
    *out = (uint32_t)n;
    return good;
}

/// The place of a size in MiB, a power of two, in the table of roundups.
static bool take_size(const char **at, size_t *out) {
    char *end;
    const unsigned long mib = strtoul(*at, &end, 10);
    const bool good = **at >= '0' && **at <= '9' && mib > 0 && (mib & (mib - 1)) == 0;
    *at = end;
    *out = 0;
    while (mib >> (*out + 1) > 0 && *out + 1 < TIDE_PYTORCH_ROUNDUPS) (*out)++;
    return good;
}

/// "[256:1,512:2,>:8]" at its first entry: the first also counts for all below it, ">" for all above the one before.
static bool take_list(const char *at, uint32_t *roundup) {
    size_t place = 0, last = 0;
    for (bool is_first = true;; is_first = false) {
        uint32_t n;
        const bool is_rest = *at == '>';
        if (is_rest)
            at++;
        else if (!take_size(&at, &place))
            return false;
        if (*at++ != ':' || !take_divisions(&at, &n)) return false;
        if (is_first)
            for (size_t i = 0; i < place; i++) roundup[i] = n;
        if (!is_rest) roundup[last = place] = n;
        for (size_t i = last + 1; is_rest && i < TIDE_PYTORCH_ROUNDUPS; i++) roundup[i] = n;
        if (*at == ']') return at[1] == '\0';
        if (*at++ != ',') return false;
    }
}

static bool take_roundup(const char *value, uint32_t *roundup) {
    if (*value == '[') return take_list(value + 1, roundup);
    uint32_t n;
    if (!take_divisions(&value, &n) || *value != '\0' || n == 0) return false;
    for (size_t i = 0; i < TIDE_PYTORCH_ROUNDUPS; i++) roundup[i] = n;
    return true;
}

static bool take_option(size_t option, const char *value, tide_pytorch_options *out) {
    switch (option) {
    case 0:
        return value != NULL && tide_parse_bytes(value, &out->max_split_bytes, NULL) == TIDE_OK &&
               out->max_split_bytes > TIDE__SC_LARGE_SEGMENT;
    case 1:
        return value != NULL && take_roundup(value, out->roundup);
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
        char word[320], *value;
        const size_t len = option_len(at);
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
                            "two) or [256:1,512:2,>:8] (by MiB), garbage_collection_threshold=0.8 (between 0 and 1), "
                            "expandable_segments");
            return st;
        }
        at += len;
        if (*at == '\0') break;
    }
    return TIDE_OK;
}

/// The shortest list that is read as these.
static void add_roundup(const uint32_t *r, tide_text *out) {
    size_t first = 0, rest = TIDE_PYTORCH_ROUNDUPS - 1;
    while (first < rest && r[first + 1] == r[0]) first++;
    while (rest > first && r[rest - 1] == r[rest]) rest--;
    if (first == rest && r[0] <= 1) return;
    tide_text_add(out, "roundup_power2_divisions=");
    if (first == rest) {
        tide_text_addf(out, "%u,", (unsigned)r[0]);
        return;
    }
    tide_text_add(out, "[");
    for (size_t i = first; i < rest; i++) tide_text_addf(out, "%u:%u,", 1u << i, (unsigned)r[i]);
    tide_text_addf(out, ">:%u],", (unsigned)r[rest]);
}

void tide_pytorch_options_text(const tide_pytorch_options *opt, tide_text *out) {
    const size_t begin = out->len;
    if (opt->max_split_bytes > 0) tide_text_addf(out, "max_split_size=%" PRIu64 ",", opt->max_split_bytes);
    add_roundup(opt->roundup, out);
    if (opt->gc_threshold > 0) tide_text_addf(out, "garbage_collection_threshold=%.17g,", opt->gc_threshold);
    if (opt->expandable_segments) tide_text_add(out, "expandable_segments,");
    if (out->len > begin && !out->failed) out->data[--out->len] = '\0'; // the last comma
}

// ---- rules 1 and 4 ----

static unsigned log2_of(uint64_t v) { return 63u - (unsigned)__builtin_clzll(v); }

static uint64_t divisions_of(const tide_pytorch_options *opt, uint64_t bytes) {
    const unsigned mib = 20, log = log2_of(bytes), last = TIDE_PYTORCH_ROUNDUPS - 1;
    return opt->roundup[log < mib ? 0 : log - mib > last ? last : log - mib];
}

uint64_t tide_pytorch_round(const tide_pytorch_options *opt, uint64_t bytes) {
    const uint64_t step = TIDE__SC_STEP_BYTES;
    if (bytes < step) return step;
    if (bytes > (uint64_t)INT64_MAX - step) return bytes;
    const uint64_t divisions = divisions_of(opt, bytes);
    TIDE_ASSERT(tide_pytorch_takes_divisions(divisions));
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
