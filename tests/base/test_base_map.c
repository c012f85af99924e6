// SPDX-License-Identifier: MIT
//
// The map against a plain array, with ids that fall on the same slots, and without memory.
#include "core/base/map.h"
#include "core/base/text.h"
#include "tests/tide_test.h"

enum { N_IDS = 400 };

typedef struct entry {
    uint64_t id;
    uint64_t twice; ///< what must come back with it
    uint8_t odd[24];
} entry;

static entry make_entry(uint64_t id) {
    entry e = {.id = id, .twice = 2 * id};
    memset(e.odd, (int)(id & 0xFF), sizeof e.odd);
    return e;
}

static void assert_same(const tide_map *m, uint64_t id, bool there) {
    const entry *found = tide_map_find(m, id), want = make_entry(id);
    assert_true((found != NULL) == there);
    if (there) assert_memory_equal(found, &want, sizeof want);
}

static void assert_all(const tide_map *m, uint64_t stride, const bool *in, size_t n_in) {
    for (size_t i = 0; i < N_IDS; i++) assert_same(m, (i + 1) * stride, in[i]);
    assert_int_equal(m->n, n_in);
    size_t n_slots = 0;
    for (size_t i = 0; i < m->cap; i++) n_slots += tide_map_at(m, i) != NULL;
    assert_int_equal(n_slots, n_in);
}

static void agrees_with_an_array(void **state) {
    (void)state;
    static bool in[N_IDS];
    static const uint64_t strides[] = {1, 2, 16, 1024, (uint64_t)1 << 33};
    for (size_t k = 0; k < sizeof strides / sizeof strides[0]; k++) {
        tide_map m = TIDE_MAP(entry);
        tide_rng rng = {.state = k};
        size_t n_in = 0;
        memset(in, 0, sizeof in);
        for (int step = 0; step < 6000; step++) {
            const bool filling = step / 1500 % 2 == 0; // grows, then empties, twice
            const size_t i = tide_rng_below(&rng, N_IDS);
            const entry e = make_entry((i + 1) * strides[k]);
            if (in[i] && (!filling || tide_rng_below(&rng, 3) == 0)) {
                tide_map_take(&m, tide_map_find(&m, e.id));
                in[i] = false;
                n_in--;
            } else if (!in[i] && (filling || tide_rng_below(&rng, 8) == 0)) {
                assert_true(tide_map_put(&m, &e));
                in[i] = true;
                n_in++;
            }
            if (step % 50 == 0) assert_all(&m, strides[k], in, n_in);
        }
        assert_null(tide_map_find(&m, 0));
        tide_map_deinit(&m);
        assert_null(tide_map_find(&m, strides[k]));
        const entry again = make_entry(7);
        assert_true(tide_map_put(&m, &again));
        assert_same(&m, 7, true);
        tide_map_deinit(&m);
    }
}

// Without memory to grow it fills up to the last slot but one, and everything that is in stays to be found.
static void without_memory_it_fills_up(void **state) {
    (void)state;
    tide_map m = TIDE_MAP(entry);
    const entry first = make_entry(1);
    tide_host_fail_after(0);
    assert_false(tide_map_put(&m, &first));
    tide_host_fail_after(-1);
    assert_null(m.slots);
    uint64_t n = 0;
    for (bool good = true; good;) {
        const entry e = make_entry(n + 1);
        tide_host_fail_after(n == 0 ? -1 : 0);
        good = tide_map_put(&m, &e);
        if (good) n++;
    }
    tide_host_fail_after(-1);
    assert_int_equal(n, m.cap - 1);
    assert_int_equal(m.n, n);
    assert_same(&m, n + 1, false);
    for (uint64_t id = 1; id <= n; id++) {
        assert_same(&m, id, true);
        tide_map_take(&m, tide_map_find(&m, id));
    }
    assert_int_equal(m.n, 0);
    tide_map_deinit(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(agrees_with_an_array),
        tide_unit_test(without_memory_it_fills_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
