// SPDX-License-Identifier: MIT
//
// "Did you mean": slips are found, other words are not.
#include "core/base/nearest.h"
#include "tests/tide_test.h"

static const char *const words[] = {"size", "begin", NULL, "greedy_by_size", "float32", "initializers", "sim_arena"};
enum { N_WORDS = sizeof words / sizeof words[0] };

static const char *meant(const char *word) {
    const char *near = tide_nearest_of(word, words, N_WORDS);
    return near != NULL ? near : "(none)";
}

static void slips(void **state) {
    (void)state;
    assert_string_equal(meant("szie"), "size");                     // swapped
    assert_string_equal(meant("siz"), "size");                      // left out
    assert_string_equal(meant("sizze"), "size");                    // put in
    assert_string_equal(meant("bagin"), "begin");                   // changed
    assert_string_equal(meant("BEGIN"), "begin");                   // whatever the case
    assert_string_equal(meant("greedy-by-sise"), "greedy_by_size"); // several in a long word
    assert_string_equal(meant("float32"), "float32");
}

static void other_words(void **state) {
    (void)state;
    assert_string_equal(meant("place"), "(none)");
    assert_string_equal(meant("x"), "(none)"); // nothing of it would be left
    assert_string_equal(meant(""), "(none)");
    assert_string_equal(meant("beginbeginbegin"), "(none)");
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_string_equal(meant(longest), "(none)");
    const char *const only_long[] = {longest};
    assert_null(tide_nearest_of("aaaa", only_long, 1));
    assert_null(tide_nearest_of("size", NULL, 0));
}

static void the_first_of_several(void **state) {
    (void)state;
    static const char *const two[] = {"cat", "car"};
    assert_string_equal(tide_nearest_of("cas", two, 2), "cat");
    assert_string_equal(tide_nearest_of("ca", two, 2), "cat");
    assert_string_equal(tide_nearest_of("car", two, 2), "car");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slips),
        cmocka_unit_test(other_words),
        cmocka_unit_test(the_first_of_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
