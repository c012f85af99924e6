// SPDX-License-Identifier: MIT
//
// What tide_plan_make is given beside lifetimes: a question whether the plan is still wanted, memory of the caller's;
// and the same as arrays of numbers (planner/cancel, plan, plan_arrays).
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/base/host_alloc.h"
#include "tests/planner/plan_test.h"
#include "tests/tide_test.h"
#include "tidemark/plan.h"

enum { N = 300 };

/// Hard enough that a search goes on for seconds: short lifetimes of odd sizes, some of them long.
static void fill(tide_lifetimes *lt, uint64_t seed) {
    tide_rng rng = {seed};
    tide_error err = TIDE_ERROR_INIT;
    for (int i = 0; i < N; i++) {
        const int64_t begin = (int64_t)tide_rng_below(&rng, N), length = 1 + (int64_t)tide_rng_below(&rng, 40);
        const tide_lifetime item = tide_lifetime_make("x", 1 + tide_rng_below(&rng, 5000), 1, begin, begin + length);
        assert_tide_ok(tide_lifetimes_add(lt, &item, &err), &err);
    }
}

// ---- is_cancelled ----

typedef struct questions {
    atomic_int n_asked;
    int n_yes; ///< from which question on
} questions;

static bool is_over(void *ctx) {
    questions *p = ctx;
    return atomic_fetch_add(&p->n_asked, 1) + 1 >= p->n_yes;
}

static tide_status plan_until(int n_yes, uint32_t n_threads, questions *p, tide_memory_plan **plan) {
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    fill(&lt, 7);
    *p = (questions){.n_yes = n_yes};
    const tide_strategy_options opt = {
        .node_limit = 100000, .n_threads = n_threads, .is_cancelled = is_over, .cancel_ctx = p};
    const tide_status st = tide_plan_make(&lt, tide_strategy_default(), &opt, plan, &err);
    if (st != TIDE_OK) assert_non_null(strstr(err.msg, "300 lifetimes"));
    tide_lifetimes_deinit(&lt);
    return st;
}

static void a_plan_can_be_cancelled_at_any_question(void **state) {
    (void)state;
    tide_memory_plan *plan = NULL;
    questions p;
    assert_int_equal(plan_until(INT_MAX, 2, &p, &plan), TIDE_OK);
    const int n_all = atomic_load(&p.n_asked);
    assert_true(n_all > 50);
    tide_memory_plan_destroy(plan);
    for (int yes = 1; yes <= n_all / 2; yes += 1 + yes / 2) {
        plan = NULL;
        assert_int_equal(plan_until(yes, 1 + (uint32_t)yes % 3, &p, &plan), TIDE_ERR_CANCELLED);
        assert_null(plan);
        assert_true(atomic_load(&p.n_asked) <= yes + 3); // each thread may ask once more
    }
}

/// The first question makes a plan of its own and says no; the second one says yes.
static bool plans_inside(void *ctx) {
    tide_memory_plan *plan = NULL;
    questions p;
    if (atomic_fetch_add((atomic_int *)ctx, 1) > 0) return true;
    assert_int_equal(plan_until(INT_MAX, 1, &p, &plan), TIDE_OK);
    tide_memory_plan_destroy(plan);
    return false;
}

static void a_question_may_plan_itself(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_memory_plan *plan = NULL;
    atomic_int n_asked = 0;
    fill(&lt, 8);
    const tide_strategy_options opt = {.n_threads = 1, .is_cancelled = plans_inside, .cancel_ctx = &n_asked};
    assert_int_equal(tide_plan_make(&lt, tide_strategy_default(), &opt, &plan, NULL), TIDE_ERR_CANCELLED);
    assert_int_equal(atomic_load(&n_asked), 2);
    tide_lifetimes_deinit(&lt);
}

static void *plan_beside(void *arg) {
    tide_memory_plan *plan = NULL;
    questions p;
    *(tide_status *)arg = plan_until(INT_MAX, 1, &p, &plan);
    if (plan != NULL) tide_memory_plan_destroy(plan);
    return NULL;
}

static void only_the_plan_that_is_asked_about_ends(void **state) {
    (void)state;
    pthread_t beside;
    tide_status st = TIDE_ERR_UNKNOWN;
    tide_memory_plan *plan = NULL;
    questions p;
    assert_int_equal(pthread_create(&beside, NULL, plan_beside, &st), 0);
    assert_int_equal(plan_until(3, 1, &p, &plan), TIDE_ERR_CANCELLED);
    pthread_join(beside, NULL);
    assert_int_equal(st, TIDE_OK);
}

// ---- memory of the caller's ----

typedef struct heap {
    atomic_long n_taken, n_given;
    atomic_long left; ///< calls that succeed; negative: all
} heap;

static bool has_some(heap *h) {
    if (atomic_load(&h->left) < 0) return true;
    return atomic_fetch_sub(&h->left, 1) > 0 ? true : (atomic_store(&h->left, 0), false);
}

static void *take(void *ctx, size_t bytes) {
    heap *h = ctx;
    if (!has_some(h)) return NULL;
    atomic_fetch_add(&h->n_taken, 1);
    char *p = malloc(bytes);
    if (p != NULL) memset(p, 0xA5, bytes); // memory that is not zero
    return p;
}

static void *resize(void *ctx, void *block, size_t bytes) { return has_some(ctx) ? realloc(block, bytes) : NULL; }

static void give_back(void *ctx, void *block) {
    atomic_fetch_add(&((heap *)ctx)->n_given, 1);
    free(block);
}

static void memory_is_the_callers(void **state) {
    (void)state;
    heap h = {.left = -1};
    const tide_plan_memory memory = {take, resize, give_back, &h};
    const uint64_t sizes[] = {1000, 2000, 3000}, aligns[] = {64, 64, 1024};
    const int64_t begins[] = {0, 1, 2}, ends[] = {2, 3, 4};
    uint64_t offsets[3], usual[3];
    tide_plan_result result, same;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_arrays(3, sizes, aligns, begins, ends, 0, usual, &same, &err), &err);
    tide_plan_set_memory(&memory);
    assert_tide_ok(tide_plan_arrays(3, sizes, aligns, begins, ends, 0, offsets, &result, &err), &err);
    const long n_needed = atomic_load(&h.n_taken);
    assert_true(n_needed > 5 && n_needed == atomic_load(&h.n_given));
    assert_memory_equal(offsets, usual, sizeof usual);
    assert_memory_equal(&result, &same, sizeof same);
    for (long left = 0; left < n_needed; left++) {
        atomic_store(&h.left, left);
        const tide_status st = tide_plan_arrays(3, sizes, aligns, begins, ends, 0, offsets, &result, &err);
        assert_true(st == TIDE_ERR_NOMEM || st == TIDE_OK);
        assert_int_equal(atomic_load(&h.n_taken), atomic_load(&h.n_given));
    }
    tide_plan_set_memory(NULL);
    assert_tide_ok(tide_plan_arrays(3, sizes, aligns, begins, ends, 0, offsets, NULL, &err), &err);
}

// ---- arrays ----

static void arrays_are_lifetimes(void **state) {
    (void)state;
    const uint64_t sizes[] = {100, 100, 0}, odd[] = {64, 3, 64};
    const int64_t begins[] = {0, 1, 0}, ends[] = {1, 2, 5};
    uint64_t offsets[3] = {9, 9, 9};
    tide_plan_result result;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_plan_arrays(0, NULL, NULL, NULL, NULL, 0, NULL, &result, &err), &err);
    assert_int_equal(result.bytes + result.proved_bytes + result.naive_bytes, 0);
    assert_tide_ok(tide_plan_arrays(2, sizes, NULL, begins, ends, 0, offsets, &result, &err), &err);
    assert_true(offsets[0] == 0 && offsets[1] == 0 && offsets[2] == 9);
    assert_true(result.bytes == 128 && result.proved_bytes == 128 && result.naive_bytes == 256);
    assert_int_equal(tide_plan_arrays(2, sizes, odd, begins, ends, 0, offsets, NULL, &err), TIDE_ERR_INVALID);
    assert_non_null(strstr(err.msg, "'1'"));
    assert_int_equal(tide_plan_arrays(2, sizes, NULL, ends, begins, 0, offsets, NULL, NULL), TIDE_ERR_INVALID);
    assert_tide_ok(tide_plan_arrays(3, sizes, NULL, begins, ends, 0, offsets, &result, &err), &err);
    assert_int_equal(result.bytes, 128); // what has no bytes takes none
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_plan_can_be_cancelled_at_any_question),
                                       cmocka_unit_test(a_question_may_plan_itself),
                                       cmocka_unit_test(only_the_plan_that_is_asked_about_ends),
                                       cmocka_unit_test(memory_is_the_callers), cmocka_unit_test(arrays_are_lifetimes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
