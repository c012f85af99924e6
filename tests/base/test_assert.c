// SPDX-License-Identifier: MIT
//
// core/base/assert: what does not hold ends the program and says what and where; every build with sanitizers checks it.
#ifdef TIDE_ASSERT_LEVEL
enum { level_of_the_build = TIDE_ASSERT_LEVEL };
#else
enum { level_of_the_build = 0 };
#endif
#undef TIDE_ASSERT_LEVEL
#define TIDE_ASSERT_LEVEL 1
#include "core/base/assert.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tide_test.h"

/// What a child says on standard error before it ends; *end: how.
static void fail_in_a_child(int value, char *said, size_t room, int *end) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        TIDE_ASSERT(value == 42);
        _exit(7);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n < room - 1 && (got = read(ends[0], said + n, room - 1 - n)) > 0;) n += (size_t)got;
    said[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, end, 0), child);
}

static void failed_assertions_are_reported(void **state) {
    (void)state;
    char said[512];
    int end;
    fail_in_a_child(41, said, sizeof said, &end);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGABRT);
    assert_non_null(strstr(said, "test_assert.c:"));
    assert_non_null(strstr(said, "fail_in_a_child: this does not hold: value == 42"));
    fail_in_a_child(42, said, sizeof said, &end);
    assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 7);
    assert_string_equal(said, "");
}

static int n_looks;

static bool look(void) {
    n_looks++;
    return true;
}

static void slow_ones_look_where_they_are_asked(void **state) {
    (void)state;
    TIDE_ASSERT_SLOW(look());
    assert_int_equal(n_looks, 0);
    tide_assert_slowly(true);
    TIDE_ASSERT_SLOW(look());
    tide_assert_slowly(false);
    TIDE_ASSERT_SLOW(look());
    assert_int_equal(n_looks, 1);
}

/// Tests of the whole program run with assertions on, or those in the code say nothing.
static void sanitizers_turn_it_on(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    assert_int_equal(level_of_the_build, 1);
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(failed_assertions_are_reported),
        tide_unit_test(slow_ones_look_where_they_are_asked),
        tide_unit_test(sanitizers_turn_it_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
