// SPDX-License-Identifier: MIT
//
// Growing strings, byte counts, files. See text.h.
#include "core/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

// ---- growing string ----

/// There is room for a NUL; where a caller has cut the text there is none yet.
static bool text_holds(const tide_text *t) { return t->data == NULL ? t->len == 0 : t->len < t->cap; }

void tide_text_add_n(tide_text *t, const char *bytes, size_t n) {
    TIDE_ASSERT(text_holds(t));
    if (t->failed) return;
    size_t need;
    if (!tide_add_size(t->len, n, &need) || !tide_add_size(need, 1, &need) ||
        tide_host_grow(&t->data, &t->cap, need, 1) != TIDE_OK) {
        t->failed = true;
        return;
    }
    if (n > 0) memcpy(t->data + t->len, bytes, n);
    t->len += n;
    t->data[t->len] = '\0';
}

void tide_text_add(tide_text *t, const char *text) { tide_text_add_n(t, text, strlen(text)); }

void tide_text_addf(tide_text *t, const char *fmt, ...) {
    TIDE_ASSERT(text_holds(t));
    if (t->failed) return;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    size_t need;
    if (n < 0 || !tide_add_size(t->len, (size_t)n + 1, &need) ||
        tide_host_grow(&t->data, &t->cap, need, 1) != TIDE_OK) {
        t->failed = true;
    } else {
        TIDE_ASSERT(need <= t->cap);
        vsnprintf(t->data + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void tide_text_deinit(tide_text *t) {
    tide_host_free(t->data);
    *t = (tide_text){0};
}

const char *tide_text_str(const tide_text *t) { return t->data != NULL ? t->data : ""; }

// ---- byte counts ----

char *tide_format_bytes(uint64_t bytes, char *buf, size_t buf_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit_i = 0;
    double value = (double)bytes;
    while (value >= 1024.0 && unit_i + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit_i++;
    }
    if (unit_i == 0) {
        snprintf(buf, buf_bytes, "%" PRIu64 " B", bytes);
    } else {
        snprintf(buf, buf_bytes, "%.2f %s", value, units[unit_i]);
    }
    return buf;
}

char *tide_format_ns(uint64_t ns, const char *us, char *buf, size_t buf_bytes) {
    if (ns < 1000) {
        snprintf(buf, buf_bytes, "%" PRIu64 " ns", ns);
    } else if (ns < 1000000) {
        snprintf(buf, buf_bytes, "%.4g %s", (double)ns / 1e3, us);
    } else if (ns < 1000000000) {
        snprintf(buf, buf_bytes, "%.4g ms", (double)ns / 1e6);
    } else {
        snprintf(buf, buf_bytes, ns < UINT64_C(99999500000000) ? "%.5g s" : "%.0f s", (double)ns / 1e9);
    }
    return buf;
}

char *tide_format_moment_ns(uint64_t ns, uint64_t span_ns, const char *us, char *buf, size_t buf_bytes) {
    const uint64_t unit = ns < 1000 ? 1 : ns < 1000000 ? 1000 : ns < 1000000000 ? 1000000 : 1000000000;
    const uint64_t fine = span_ns >= 1000 ? span_ns / 1000 : 1;
    if (ns / 1000 <= fine) return tide_format_ns(ns, us, buf, buf_bytes); // four digits tell it
    int digits = 0;
    for (uint64_t step = unit; step > fine; step /= 10) digits++;
    snprintf(buf, buf_bytes, "%.*f", digits, (double)ns / (double)unit);
    size_t len = strlen(buf);
    while (digits > 0 && buf[len - 1] == '0') buf[--len] = '\0';
    if (digits > 0 && buf[len - 1] == '.') buf[--len] = '\0';
    snprintf(buf + len, buf_bytes - len, " %s", unit == 1 ? "ns" : unit == 1000 ? us : unit == 1000000 ? "ms" : "s");
    return buf;
}

/// The factor of a unit as people write it; 0 when it is none.
static uint64_t unit_factor(const char *unit) {
    if (*unit == '\0' || strcasecmp(unit, "B") == 0) return 1;
    static const char letters[] = "KMGT";
    uint64_t binary = 1, decimal = 1;
    for (size_t i = 0; letters[i] != '\0'; i++) {
        binary *= 1024;
        decimal *= 1000;
        if ((unit[0] & ~0x20) != letters[i]) continue;
        if (unit[1] == '\0' || strcasecmp(unit + 1, "iB") == 0) return binary;
        if (strcasecmp(unit + 1, "B") == 0) return decimal;
    }
    return 0;
}

/// Digits, an optional point with digits, blanks, a unit. By hand and not with strtod: exact up to 2^64, the same in
/// every locale, and no "0x10", "1e3" or "nan". A part of a byte is rounded to the nearest.
static bool parse_size(const char *p, uint64_t *out) {
    uint64_t whole = 0;
    double part = 0.0, place = 1.0;
    bool has_digits = false;
    for (; *p >= '0' && *p <= '9'; p++, has_digits = true) {
        if (!tide_mul_u64(whole, 10, &whole) || !tide_add_u64(whole, (uint64_t)(*p - '0'), &whole)) return false;
    }
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++, has_digits = true) part += (*p - '0') * (place /= 10.0);
    }
    while (*p == ' ') p++;
    const uint64_t factor = unit_factor(p);
    if (!has_digits || factor == 0 || !tide_mul_u64(whole, factor, &whole)) return false;
    return tide_add_u64(whole, (uint64_t)(part * (double)factor + 0.5), out);
}

tide_status tide_parse_bytes(const char *text, uint64_t *out, tide_error *err) {
    uint64_t bytes;
    if (!parse_size(text, &bytes)) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is not a size", text);
        tide_error_hint(err, "write bytes with an optional unit: 4096, 64KiB, 1.5GiB, 10MB");
        return st;
    }
    *out = bytes;
    return TIDE_OK;
}

// ---- files ----

tide_status tide_read_file(const char *path, size_t max_bytes, char **data, size_t *len, tide_error *err) {
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    if (f == NULL)
        return TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO), "cannot open '%s': %s", path, strerror(errno));
    tide_text content = {0};
    tide_status st = TIDE_OK;
    char chunk[65536];
    size_t n;
    while (st == TIDE_OK && (n = fread(chunk, 1, sizeof chunk, f)) > 0) {
        tide_text_add_n(&content, chunk, n);
        if (content.failed) {
            st = TIDE_NO_MEMORY(err, "to read '%s' (%zu bytes so far)", path, content.len);
        } else if (max_bytes != 0 && content.len > max_bytes) {
            st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is longer than %zu bytes", path, max_bytes);
        }
    }
    if (st == TIDE_OK && ferror(f))
        st = TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO), "cannot read '%s': %s", path, strerror(errno));
    if (!is_stdin) fclose(f);
    if (st == TIDE_OK && content.data == NULL) {
        tide_text_add(&content, "");
        if (content.failed) st = TIDE_NO_MEMORY(err, "to read '%s'", path);
    }
    if (st != TIDE_OK) {
        tide_text_deinit(&content);
        return st;
    }
    *data = content.data;
    *len = content.len;
    return TIDE_OK;
}

// ---- time ----

char *tide_path_stem(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return tide_host_strndup(base, dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base));
}

uint64_t tide_now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}
