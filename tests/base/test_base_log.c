// SPDX-License-Identifier: MIT
//
// core/base/log: silent without a sink, filtered by level with one.
#include "core/base/log.h"

#include "tests/tide_test.h"

typedef struct heard {
    int n;
    tide_log_level level;
    char line[1024];
} heard;

static void listen(void *ctx, tide_log_level level, const char *line) {
    heard *h = ctx;
    h->n++;
    h->level = level;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void silent_without_a_sink(void **state) {
    (void)state;
    assert_false(tide_log_enabled(TIDE_LOG_ERROR));
    tide_log(TIDE_LOG_ERROR, "nobody hears %d", 1);
}

static void filtered_by_level(void **state) {
    (void)state;
    heard h = {0};
    tide_log_set(listen, &h, TIDE_LOG_WARN);
    tide_log(TIDE_LOG_INFO, "too quiet");
    assert_int_equal(h.n, 0);
    tide_log(TIDE_LOG_WARN, "block %d", 12);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.level, TIDE_LOG_WARN);
    assert_string_equal(h.line, "block 12");
    assert_true(tide_log_enabled(TIDE_LOG_ERROR));
    assert_false(tide_log_enabled(TIDE_LOG_DEBUG));
    tide_log_set(NULL, NULL, TIDE_LOG_DEBUG);
    tide_log(TIDE_LOG_ERROR, "nobody");
    assert_int_equal(h.n, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(silent_without_a_sink),
        tide_unit_test(filtered_by_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
