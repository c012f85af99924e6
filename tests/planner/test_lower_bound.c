// SPDX-License-Identifier: MIT
//
// planner/lower_bound against a walk over all steps.
#include "core/base/assert.h"
#include "tests/planner/plan_test.h"

static void brute_force(const tide_lifetimes *lt, uint64_t *bytes, int64_t *step) {
    *bytes = 0;
    *step = 0;
    for (int64_t s = 0; s < lt->n_steps; s++) {
        uint64_t live = 0;
        for (size_t i = 0; i < lt->n; i++) {
            const tide_lifetime *x = &lt->items[i];
            if (!x->persistent && x->begin_step <= s && s < x->end_step) live += tide_lifetime_aligned_bytes(x);
        }
        if (live > *bytes) {
            *bytes = live;
            *step = s;
        }
    }
}

// S23-10.
static void it_is_the_largest_live_sum(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        tide_rng rng = {seed};
        tide_lifetimes lt = {0};
        put_random(&lt, &rng, 1 + tide_rng_below(&rng, 40), 30, 300, true);
        uint64_t bytes, want_bytes;
        int64_t step, want_step;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_lower_bound(&lt, &bytes, &step, &err), &err);
        brute_force(&lt, &want_bytes, &want_step);
        assert_int_equal(bytes, want_bytes);
        assert_int_equal(step, want_step);
        tide_lifetimes_deinit(&lt);
    }
}

static void nothing_and_too_much(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    uint64_t bytes = 7;
    assert_tide_status(tide_lower_bound(&lt, &bytes, NULL, NULL), TIDE_OK);
    assert_int_equal(bytes, 0);
    put(&lt, "a", INT64_MAX, 0, 2);
    put(&lt, "b", INT64_MAX, 1, 2);
    put(&lt, "c", INT64_MAX, 1, 2);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_lower_bound(&lt, &bytes, NULL, &err), TIDE_ERR_OVERFLOW);
    assert_text_has(err.msg, "'b'");
    tide_lifetimes_deinit(&lt);
}

/// Each buffer fits into 63 bits; three of them pass 64.
static void buffers_that_do_not_add_up(void **state) {
    (void)state;
    tide_lifetimes lt = {0};
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes = 0;
    const tide_memory_kind kinds[] = {TIDE_KIND_WORKSPACE, TIDE_KIND_KV_CACHE, TIDE_KIND_HOST_PAGEABLE};
    for (size_t k = 0; k < 3; k++) {
        tide_lifetime item = an_item("half", INT64_MAX, 1, 0, 1);
        item.kind = kinds[k];
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
        assert_tide_status(tide_lower_bound(&lt, &bytes, NULL, &err), k < 2 ? TIDE_OK : TIDE_ERR_OVERFLOW);
        if (k == 1) assert_true(bytes == UINT64_MAX - 1);
    }
    assert_text_has(err.msg, "3 buffers");
    tide_lifetimes_deinit(&lt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_is_the_largest_live_sum),
        tide_unit_test(nothing_and_too_much),
        tide_unit_test(buffers_that_do_not_add_up),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
