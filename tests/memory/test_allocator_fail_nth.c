// SPDX-License-Identifier: MIT
//
// fail_nth: which allocation fails, and that a scenario can be led through each of its failures.
#include <stdatomic.h>

#include "memory_test.h"

static tide_allocator *make_fail_nth(int64_t n) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_fail_nth_create(cpu, n, &a, &err), &err);
    tide_allocator_unref(cpu);
    return a;
}

/// How many of ten allocations go through before one fails, -1: all.
static int first_failure(tide_allocator *a) {
    int at = -1;
    for (int i = 0; i < 10; i++) {
        const tide_alloc_request req = {.size_bytes = 100, .tag = "probe"};
        tide_error err = TIDE_ERROR_INIT;
        tide_memory mem = {0};
        const tide_status st = tide_allocator_alloc(a, &req, &mem, &err);
        if (st == TIDE_OK) {
            give(a, &mem);
            continue;
        }
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_text_has(err.msg, "100 B for 'probe'");
        assert_null(mem.data);
        assert_int_equal(at, -1); // once only
        at = i;
    }
    return at;
}

static void the_planted_one_fails_once(void **state) {
    (void)state;
    for (int n = 0; n < 5; n++) {
        tide_allocator *a = make_fail_nth(n);
        assert_int_equal(first_failure(a), n);
        const tide_allocator_stats s = stats_of(a);
        assert_true(s.n_failed == 1 && s.n_allocs == 9 && s.n_system == 9);
        assert_int_equal(first_failure(a), -1);
        assert_tide_status(tide_fail_nth_arm(a, 3, NULL), TIDE_OK);
        assert_int_equal(first_failure(a), 3);
        assert_tide_status(tide_fail_nth_arm(a, 3, NULL), TIDE_OK);
        assert_tide_status(tide_fail_nth_arm(a, -1, NULL), TIDE_OK);
        assert_int_equal(first_failure(a), -1);
        assert_true(stats_of(a).n_failed == 2);
        tide_allocator_unref(a);
    }
}

static void only_a_fail_nth_can_be_armed(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_status(tide_fail_nth_arm(cpu, 0, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'cpu'");
    tide_allocator_unref(cpu);
}

/// Nonsense is refused before it is counted.
static void nonsense_is_not_counted(void **state) {
    (void)state;
    tide_allocator *a = make_fail_nth(1);
    const tide_alloc_request empty = {.size_bytes = 0};
    tide_memory mem = {0};
    for (int i = 0; i < 3; i++) assert_tide_status(tide_allocator_alloc(a, &empty, &mem, NULL), TIDE_ERR_INVALID);
    assert_int_equal(first_failure(a), 1);
    tide_allocator_unref(a);
}

static tide_status three_blocks(tide_allocator *a, tide_error *err) {
    tide_block *b[3] = {NULL};
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < 3 && st == TIDE_OK; i++)
        st = tide_block_create(a, 64 * (i + 1), 0, TIDE_KIND_WORKSPACE, 0, "step", &b[i], err);
    for (size_t i = 0; i < 3; i++) tide_block_unref(b[i]);
    return st;
}

/// The loop this is made for: fail the 1st, 2nd, 3rd … allocation until the scenario succeeds (S28-4).
static void a_scenario_meets_every_failure(void **state) {
    (void)state;
    tide_allocator *a = make_fail_nth(-1);
    int n_failures = 0;
    tide_status st = TIDE_ERR_NOMEM;
    for (; st != TIDE_OK; n_failures++) {
        assert_tide_status(tide_fail_nth_arm(a, n_failures, NULL), TIDE_OK);
        st = three_blocks(a, NULL);
        assert_true(st == TIDE_OK || st == TIDE_ERR_NOMEM);
        assert_true(stats_of(a).requested_bytes == 0);
    }
    assert_int_equal(n_failures, 4);
    tide_allocator_unref(a);
}

typedef struct counter {
    tide_allocator *a;
    _Atomic int n_failed;
} counter;

static void *count_failures(void *arg) {
    counter *c = arg;
    for (int i = 0; i < 500; i++) {
        const tide_alloc_request req = {.size_bytes = 64};
        tide_memory mem = {0};
        if (tide_allocator_alloc(c->a, &req, &mem, NULL) == TIDE_OK) {
            give(c->a, &mem);
        } else {
            atomic_fetch_add(&c->n_failed, 1);
        }
    }
    return NULL;
}

static void one_thread_of_eight_meets_it(void **state) {
    (void)state;
    counter c = {.a = make_fail_nth(1234)};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, count_failures, &c), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert_int_equal(c.n_failed, 1);
    assert_true(stats_of(c.a).n_allocs == 8 * 500 - 1 && stats_of(c.a).n_failed == 1);
    tide_allocator_unref(c.a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_planted_one_fails_once),   tide_unit_test(only_a_fail_nth_can_be_armed),
        tide_unit_test(nonsense_is_not_counted),      tide_unit_test(a_scenario_meets_every_failure),
        tide_unit_test(one_thread_of_eight_meets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
