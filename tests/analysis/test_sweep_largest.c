// SPDX-License-Identifier: MIT
//
// The largest value that fits, held against asking for every value.
#include "analysis/sweep.h"
#include "core/base/text.h"
#include "tests/tide_test.h"

enum { MAX_VALUE = 3000 };

/// Totals by value; what was asked, and how often.
typedef struct table {
    uint64_t totals[MAX_VALUE + 1];
    unsigned asked[MAX_VALUE + 1];
    unsigned n_asked;
    uint64_t cancel_at; // 0: never
} table;

static table t;

static tide_status ask(void *ctx, uint64_t value, uint64_t *needs_bytes, tide_error *err) {
    table *of = ctx;
    assert_in_range(value, 1, MAX_VALUE);
    of->asked[value]++;
    of->n_asked++;
    if (value == of->cancel_at) return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "enough");
    *needs_bytes = of->totals[value];
    return TIDE_OK;
}

static void forget(void) {
    memset(t.asked, 0, sizeof t.asked);
    t.n_asked = 0;
    t.cancel_at = 0;
}

static tide_sweep_answer largest(uint64_t lo, uint64_t hi, uint64_t budget, unsigned n_beyond) {
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep_answer a = {.series = 7};
    forget();
    assert_tide_ok(tide_sweep_largest(lo, hi, budget, n_beyond, ask, &t, &a, &err), &err);
    assert_int_equal(a.series, 7);
    assert_int_equal(a.budget_bytes, budget);
    return a;
}

/// What is said was asked, and the numbers are those of the table.
static void check_said(const tide_sweep_answer *a, uint64_t lo, uint64_t hi, uint64_t budget) {
    if (a->none_fits) {
        assert_int_equal(a->next_value, lo);
        assert_true(t.totals[lo] > budget);
    } else {
        assert_true(t.asked[a->value] > 0);
        assert_int_equal(a->needs_bytes, t.totals[a->value]);
        assert_true(a->needs_bytes <= budget);
        assert_int_equal(a->is_open, a->value == hi);
    }
    if (a->is_open) {
        assert_int_equal(a->next_value, 0);
        return;
    }
    if (!a->none_fits) assert_int_equal(a->next_value, a->value + 1);
    assert_true(t.asked[a->next_value] > 0);
    assert_int_equal(a->next_bytes, t.totals[a->next_value]);
    assert_true(a->next_bytes > budget);
}

static void growing_totals(void **state) {
    (void)state;
    tide_rng rng = {1};
    for (int round = 0; round < 2000; round++) {
        uint64_t total = tide_rng_below(&rng, 1000);
        const uint64_t most = 1 + tide_rng_below(&rng, 50);
        for (int v = 1; v <= MAX_VALUE; v++) t.totals[v] = total += tide_rng_below(&rng, most); // equal ones too
        const uint64_t lo = 1 + tide_rng_below(&rng, MAX_VALUE), hi = lo + tide_rng_below(&rng, MAX_VALUE - lo + 1);
        const uint64_t budget = tide_rng_below(&rng, t.totals[MAX_VALUE] + 500);
        const tide_sweep_answer a = largest(lo, hi, budget, 4);
        uint64_t want = 0;
        for (uint64_t v = lo; v <= hi; v++) want = t.totals[v] <= budget ? v : want;
        assert_int_equal(a.none_fits, want == 0);
        assert_int_equal(a.value, want);
        check_said(&a, lo, hi, budget);
        assert_in_range(t.n_asked, 1, 2 * 12 + 4); // doubling, halving, neighbours
    }
}

/// Where totals fall again within the neighbours that are looked at, the answer moves up.
static void totals_that_fall_again(void **state) {
    (void)state;
    tide_rng rng = {2};
    size_t moved = 0;
    for (int round = 0; round < 2000; round++) {
        for (int v = 1; v <= MAX_VALUE; v++) t.totals[v] = (uint64_t)v * 100;
        // Every eighth size is a good one, where halving does not come by: it takes what the one three below it does.
        for (int v = 11; v <= MAX_VALUE; v += 8) t.totals[v] = (uint64_t)(v - 3) * 100;
        const uint64_t budget = 100 + tide_rng_below(&rng, 100 * (uint64_t)MAX_VALUE / 2);
        const tide_sweep_answer plain = largest(1, MAX_VALUE, budget, 0), a = largest(1, MAX_VALUE, budget, 4);
        check_said(&a, 1, MAX_VALUE, budget);
        assert_true(a.value >= plain.value);
        for (uint64_t v = a.value + 1; v <= a.value + 4; v++) assert_true(t.totals[v] > budget);
        moved += a.value > plain.value;
    }
    assert_true(moved > 100);
}

static void edges(void **state) {
    (void)state;
    for (int v = 1; v <= MAX_VALUE; v++) t.totals[v] = (uint64_t)v * 10;
    tide_sweep_answer a = largest(1, MAX_VALUE, 10 * MAX_VALUE, 4); // to the byte
    assert_true(a.is_open);
    assert_int_equal(a.value, MAX_VALUE);
    a = largest(5, 5, 50, 4);
    assert_true(a.is_open && a.value == 5 && t.n_asked == 1);
    a = largest(5, 5, 49, 4);
    assert_true(a.none_fits && a.next_value == 5 && a.next_bytes == 50 && t.n_asked == 1);
    a = largest(1, 2, 10, 4); // no neighbours beyond the range
    assert_true(!a.is_open && a.value == 1 && a.next_value == 2);
    a = largest(1, MAX_VALUE, UINT64_MAX, 4);
    assert_true(a.is_open);
    t.totals[105] = 1; // four above the answer, where halving does not come by
    assert_int_equal(largest(1, MAX_VALUE, 1010, 3).value, 101);
    a = largest(1, MAX_VALUE, 1010, 4);
    assert_true(a.value == 105 && a.needs_bytes == 1 && a.next_value == 106 && a.next_bytes == 1060);
    t.totals[105] = 1050;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_sweep_largest(0, 5, 1, 0, ask, &t, &a, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_sweep_largest(6, 5, 1, 0, ask, &t, &a, &err), TIDE_ERR_INVALID);
}

static void cancelling_ends_it(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep_answer a = {0};
    for (int v = 1; v <= MAX_VALUE; v++) t.totals[v] = (uint64_t)v;
    forget();
    t.cancel_at = 64;
    assert_tide_status(tide_sweep_largest(1, MAX_VALUE, 1000, 4, ask, &t, &a, &err), TIDE_ERR_CANCELLED);
    assert_int_equal(t.n_asked, 7); // 1, 2, 4 … 64
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_totals),
        cmocka_unit_test(totals_that_fall_again),
        cmocka_unit_test(edges),
        cmocka_unit_test(cancelling_ends_it),
    };
    return cmocka_run_group_tests_name("sweep_largest", tests, NULL, NULL);
}
