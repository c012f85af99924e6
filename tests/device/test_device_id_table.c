// SPDX-License-Identifier: MIT
//
// id_table against a plain array, with ids that fall on the same rows.
#include "core/base/text.h"
#include "core/device/id_table.h"
#include "tests/tide_test.h"

enum { N_IDS = 400 };

static void agrees_with_an_array(void **state) {
    (void)state;
    static int objects[N_IDS];
    static bool in[N_IDS];
    static const uint64_t strides[] = {1, 2, 16, 1024, (uint64_t)1 << 33};
    for (size_t k = 0; k < sizeof strides / sizeof strides[0]; k++) {
        tide__id_table t = {0};
        tide_rng rng = {.state = k};
        size_t n_in = 0;
        for (int step = 0; step < 6000; step++) {
            const bool filling = step / 1500 % 2 == 0; // grows, then empties, twice
            const size_t i = tide_rng_below(&rng, N_IDS);
            const uint64_t id = (i + 1) * strides[k];
            if (in[i] && (!filling || tide_rng_below(&rng, 3) == 0)) {
                assert_ptr_equal(tide__id_table_remove(&t, id), &objects[i]);
                in[i] = false;
                n_in--;
            } else if (!in[i] && (filling || tide_rng_below(&rng, 8) == 0)) {
                assert_tide_status(tide__id_table_put(&t, id, &objects[i]), TIDE_OK);
                in[i] = true;
                n_in++;
            } else if (!in[i]) {
                assert_null(tide__id_table_remove(&t, id));
            }
            if (step % 50 != 0) continue;
            for (size_t x = 0; x < N_IDS; x++) {
                assert_ptr_equal(tide__id_table_get(&t, (x + 1) * strides[k]), in[x] ? (void *)&objects[x] : NULL);
            }
            assert_int_equal(t.map.n, n_in);
        }
        for (size_t i = 0; i < N_IDS; i++) {
            if (in[i]) assert_ptr_equal(tide__id_table_remove(&t, (i + 1) * strides[k]), &objects[i]);
            in[i] = false;
        }
        assert_null(t.map.slots); // an empty table holds nothing
        assert_null(tide__id_table_get(&t, 1));
        assert_null(tide__id_table_get(&t, 0));
    }
}

static void without_memory_it_stays_as_it_was(void **state) {
    (void)state;
    tide__id_table t = {0};
    int object;
    tide_host_fail_after(0);
    assert_tide_status(tide__id_table_put(&t, 1, &object), TIDE_ERR_NOMEM);
    assert_null(t.map.slots);
    uint64_t n = 0;
    for (tide_status st = TIDE_OK; st == TIDE_OK;) {
        tide_host_fail_after(n == 0 ? -1 : 0);
        st = tide__id_table_put(&t, n + 1, &object);
        if (st == TIDE_OK) n++;
    }
    tide_host_fail_after(-1);
    assert_true(n > 1);
    assert_int_equal(t.map.n, n);
    assert_null(tide__id_table_get(&t, n + 1));
    for (uint64_t id = 1; id <= n; id++) assert_ptr_equal(tide__id_table_remove(&t, id), &object);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(agrees_with_an_array),
        tide_unit_test(without_memory_it_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
