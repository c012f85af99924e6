// SPDX-License-Identifier: MIT
//
// core/base/host_alloc: counting, growing and planted failures of our own bookkeeping memory.
#include <pthread.h>

#include "core/base/text.h"
#include "tests/tide_test.h"

static tide_host_stats stats_now(void) {
    tide_host_stats s;
    tide_host_get_stats(&s);
    return s;
}

static void every_call_is_counted(void **state) {
    (void)state;
    const tide_host_stats before = stats_now();
    tide_host_reset_peak();
    char *a = tide_host_alloc(1000);
    char *b = tide_host_calloc(10, 7);
    assert_non_null(a);
    assert_non_null(b);
    for (int i = 0; i < 70; i++) assert_int_equal(b[i], 0);
    assert_int_equal((uintptr_t)a % 16, 0);
    assert_int_equal(stats_now().live_bytes, before.live_bytes + 1070);
    assert_int_equal(stats_now().n_live, before.n_live + 2);
    a = tide_host_realloc(a, 3000);
    assert_non_null(a);
    assert_int_equal(stats_now().live_bytes, before.live_bytes + 3070);
    tide_host_free(a);
    tide_host_free(b);
    tide_host_free(NULL);
    assert_int_equal(stats_now().live_bytes, before.live_bytes);
    assert_int_equal(stats_now().n_live, before.n_live);
    assert_int_equal(stats_now().n_allocs, 3);
    assert_int_equal(stats_now().n_frees, 3);
    assert_in_range(stats_now().peak_bytes, before.live_bytes + 3070, before.live_bytes + 4070);
    tide_host_reset_peak();
    assert_int_equal(stats_now().peak_bytes, before.live_bytes);
}

static void sizes_that_do_not_fit_are_refused(void **state) {
    (void)state;
    assert_null(tide_host_alloc(SIZE_MAX));
    assert_null(tide_host_calloc(SIZE_MAX / 2, 3));
    char *kept = tide_host_strdup("kept");
    assert_non_null(kept);
    assert_null(tide_host_realloc(kept, SIZE_MAX));
    assert_string_equal(kept, "kept");
    tide_host_free(kept);
    void *empty = tide_host_alloc(0);
    assert_non_null(empty);
    tide_host_free(empty);
}

static void strings_are_copied(void **state) {
    (void)state;
    char *whole = tide_host_strdup("tidemark");
    char *part = tide_host_strndup("tidemark", 4);
    assert_string_equal(whole, "tidemark");
    assert_string_equal(part, "tide");
    tide_host_free(whole);
    tide_host_free(part);
}

static void planted_failure_hits_the_nth_call_once(void **state) {
    (void)state;
    for (int64_t n = 0; n < 5; n++) {
        void *taken[6];
        tide_host_fail_after(n);
        for (int i = 0; i < 6; i++) {
            taken[i] = tide_host_alloc(8);
            assert_int_equal(taken[i] == NULL, i == n);
        }
        for (int i = 0; i < 6; i++) tide_host_free(taken[i]);
    }
    tide_host_fail_after(-1);
    // calloc, strdup and realloc come through the same door.
    char *text = tide_host_strdup("text");
    tide_host_fail_after(0);
    assert_null(tide_host_realloc(text, 100));
    tide_host_fail_after(0);
    assert_null(tide_host_calloc(1, 1));
    tide_host_fail_after(0);
    assert_null(tide_host_strdup("x"));
    assert_string_equal(text, "text");
    tide_host_free(text);
}

static void grow_keeps_the_content(void **state) {
    (void)state;
    uint32_t *array = NULL;
    size_t cap = 0;
    for (uint32_t n = 0; n < 5000; n++) {
        assert_tide_status(tide_host_grow(&array, &cap, n + 1, sizeof *array), TIDE_OK);
        array[n] = n * 3;
    }
    assert_true(cap >= 5000 && cap < 10000 + 8);
    for (uint32_t n = 0; n < 5000; n++) assert_int_equal(array[n], n * 3);
    const size_t cap_before = cap;
    const uint32_t *array_before = array;
    tide_host_fail_after(0);
    assert_tide_status(tide_host_grow(&array, &cap, cap + 1, sizeof *array), TIDE_ERR_NOMEM);
    assert_tide_status(tide_host_grow(&array, &cap, SIZE_MAX / 2, sizeof *array), TIDE_ERR_NOMEM);
    assert_int_equal(cap, cap_before);
    assert_ptr_equal(array, array_before);
    tide_host_free(array);
}

static void no_memory_says_what_it_was_for(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    int *array = NULL;
    char *text = NULL;
    size_t cap = 0;
    assert_tide_status(TIDE_NEW(&array, SIZE_MAX / 2, &err, "for %d rows of '%s'", 7, "x.db"), TIDE_ERR_NOMEM);
    assert_null(array);
    assert_string_equal(err.msg, "no memory for 7 rows of 'x.db'");
    assert_true(strstr(err.file, "test_base_host_alloc.c") != NULL && err.line > 0);
    tide_host_fail_after(0);
    assert_tide_status(TIDE_GROW(&array, &cap, 1, &err, "to look at %s", "it"), TIDE_ERR_NOMEM);
    assert_string_equal(err.msg, "no memory to look at it");
    tide_host_fail_after(0);
    assert_tide_status(TIDE_COPY_TEXT(&text, "abc", NULL, "for a name"), TIDE_ERR_NOMEM);
    assert_null(text);
    assert_tide_status(TIDE_NO_MEMORY(&err, "for a name"), TIDE_ERR_NOMEM);
    assert_string_equal(err.msg, "no memory for a name");
    // And with memory the caller gets it: zeroed, grown, copied.
    assert_tide_ok(TIDE_NEW(&array, 3, &err, "for it"), &err);
    assert_int_equal(array[0] | array[1] | array[2], 0);
    cap = 3;
    assert_tide_ok(TIDE_GROW(&array, &cap, 4, &err, "for it"), &err);
    assert_true(cap >= 4);
    assert_tide_ok(TIDE_COPY_TEXT(&text, "abc", &err, "for it"), &err);
    assert_string_equal(text, "abc");
    tide_host_free(array);
    tide_host_free(text);
}

static void *allocate_and_free(void *seed) {
    tide_rng rng = {(uint64_t)(uintptr_t)seed};
    void *held[16] = {0};
    for (int step = 0; step < 5000; step++) {
        void **slot = &held[tide_rng_below(&rng, 16)];
        tide_host_free(*slot);
        *slot = tide_host_alloc(tide_rng_below(&rng, 300));
    }
    for (int i = 0; i < 16; i++) tide_host_free(held[i]);
    return NULL;
}

static void counts_hold_under_threads(void **state) {
    (void)state;
    const tide_host_stats before = stats_now();
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert_int_equal(stats_now().live_bytes, before.live_bytes);
    assert_int_equal(stats_now().n_live, before.n_live);
    assert_int_equal(stats_now().n_allocs - before.n_allocs, stats_now().n_frees - before.n_frees);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_call_is_counted),
        tide_unit_test(sizes_that_do_not_fit_are_refused),
        tide_unit_test(strings_are_copied),
        tide_unit_test(planted_failure_hits_the_nth_call_once),
        tide_unit_test(grow_keeps_the_content),
        tide_unit_test(counts_hold_under_threads),
        tide_unit_test(no_memory_says_what_it_was_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
