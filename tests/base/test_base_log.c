// SPDX-License-Identifier: MIT
//
// core/base/log: warnings go to standard error until a sink is set, are silent without one, and filtered by level.
#include "core/base/log.h"

#include <unistd.h>

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

/// What `say` writes to standard error.
static const char *heard_on_stderr(void (*say)(void), char *buf, size_t buf_bytes) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    dup2(fds[1], STDERR_FILENO);
    say();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    close(fds[1]);
    const ssize_t n = read(fds[0], buf, buf_bytes - 1);
    close(fds[0]);
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

static void say_both(void) {
    tide_log(TIDE_LOG_INFO, "too quiet");
    tide_log(TIDE_LOG_WARN, "disk %d is full", 1);
}

/// Before any sink is set.
static void warnings_go_to_standard_error(void **state) {
    (void)state;
    char buf[256];
    assert_true(tide_log_enabled(TIDE_LOG_WARN));
    assert_false(tide_log_enabled(TIDE_LOG_INFO));
    assert_string_equal(heard_on_stderr(say_both, buf, sizeof buf), "tidemark: disk 1 is full\n");
    tide_log_set(NULL, NULL, TIDE_LOG_DEBUG);
    assert_false(tide_log_enabled(TIDE_LOG_ERROR));
    assert_string_equal(heard_on_stderr(say_both, buf, sizeof buf), "");
}

static void keep_message(void *ctx, const char *line) { snprintf(ctx, 64, "%s", line); }

/// What programs that link the library set.
static void messages_go_where_the_program_says(void **state) {
    (void)state;
    char kept[64] = "", buf[256];
    tide_set_messages(keep_message, kept);
    assert_string_equal(heard_on_stderr(say_both, buf, sizeof buf), "");
    assert_string_equal(kept, "disk 1 is full");
    tide_set_messages(NULL, NULL);
    kept[0] = '\0';
    assert_string_equal(heard_on_stderr(say_both, buf, sizeof buf), "");
    assert_string_equal(kept, "");
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
    tide_log(TIDE_LOG_ERROR, "unheard");
    assert_int_equal(h.n, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(warnings_go_to_standard_error),
        tide_unit_test(messages_go_where_the_program_says),
        tide_unit_test(filtered_by_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
