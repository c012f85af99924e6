// SPDX-License-Identifier: MIT
//
// What every test of the house includes: cmocka with the headers it wants first, and our own helpers.
#ifndef TIDE_TESTS_TIDE_TEST_H
#define TIDE_TESTS_TIDE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/host_alloc.h"
#include "core/base/status.h"

/// Fails the test with the error's own words.
#define assert_tide_ok(expr, err)                                                                                      \
    do {                                                                                                               \
        const tide_status got_ = (expr);                                                                               \
        if (got_ != TIDE_OK) fail_msg("%s: %s: %s [%s]", #expr, tide_status_name(got_), (err)->msg, (err)->where);     \
    } while (0)

#define assert_tide_status(expr, want)                                                                                 \
    do {                                                                                                               \
        const tide_status got_ = (expr);                                                                               \
        if (got_ != (want)) fail_msg("%s: got %s, want %s", #expr, tide_status_name(got_), tide_status_name(want));    \
    } while (0)

/// `needle` occurs in `text`.
#define assert_text_has(text, needle)                                                                                  \
    do {                                                                                                               \
        if (strstr((text), (needle)) == NULL) fail_msg("'%s' does not contain '%s'", (text), (needle));                \
    } while (0)

/// Path of something below the shared folder, or NULL (after printing why) when it is not there.
static inline const char *tide_shared_path(const char *below, char *buf, size_t buf_bytes) {
    const char *dir = getenv("TIDE_SHARED_DIR");
    snprintf(buf, buf_bytes, "%s/%s", dir != NULL ? dir : "../shared", below);
    FILE *f = fopen(buf, "rb");
    if (f == NULL) {
        print_message("[  SKIPPED ] %s is not here\n", buf);
        return NULL;
    }
    fclose(f);
    return buf;
}

/// How many rounds a long loop goes: `few` in the suite, `all` in `make soak`, which sets TIDE_SOAK.
static inline int tide_test_rounds(int few, int all) { return getenv("TIDE_SOAK") != NULL ? all : few; }

/// The allocation that fails after the `n`-th one did: the next one in `make soak`; in the suite each of the first
/// five and then one in ever more, so that all sizes are met.
static inline int64_t tide_test_next_failure(int64_t n) { return tide_test_rounds(0, 1) ? n + 1 : n + 1 + n / 5; }

/// Path of something below the project's root.
static inline const char *tide_source_path(const char *below, char *buf, size_t buf_bytes) {
    const char *dir = getenv("TIDE_SOURCE_DIR");
    snprintf(buf, buf_bytes, "%s/%s", dir != NULL ? dir : ".", below);
    return buf;
}

/// light-squeezenet ends in a softmax over a thousand equal numbers near 9.5e9, where neighbouring floats are 1024
/// apart: the reference holds only where all channels are rounded alike. oneDNN's AVX2 matrix product rounds the last
/// channels in another order than the rest, its AVX-512 and SSE4.1 ones do not.
static inline bool tide_rounding_decides(const char *model) {
#if defined(__x86_64__)
    if (strcmp(model, "light-squeezenet") != 0 || __builtin_cpu_supports("avx512f")) return false;
    print_message("[  SKIPPED ] last softmax of %s: rounding decides it on a CPU without AVX-512\n", model);
    return true;
#else
    return strcmp(model, "light-squeezenet") == 0;
#endif
}

/// cmocka group fixture: the group must give back all host memory it took.
static uint64_t tide_host_live_before;
static inline int tide_leak_setup(void **state) {
    (void)state;
    tide_host_stats s;
    tide_host_get_stats(&s);
    tide_host_live_before = s.n_live;
    return 0;
}
static inline int tide_leak_teardown(void **state) {
    (void)state;
    tide_host_stats s;
    tide_host_get_stats(&s);
    if (s.n_live != tide_host_live_before) {
        print_error("host memory leaked: %llu blocks before the test, %llu after\n",
                    (unsigned long long)tide_host_live_before, (unsigned long long)s.n_live);
        return -1;
    }
    return 0;
}
/// A test that must give back all host memory it took.
#define tide_unit_test(f) cmocka_unit_test_setup_teardown(f, tide_leak_setup, tide_leak_teardown)

#endif
