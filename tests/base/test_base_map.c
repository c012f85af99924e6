// SPDX-License-Identifier: MIT
//
// The map against a plain array, with ids that fall on the same slots, and without memory.
#include "core/base/map.h"

#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
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

// ---- index ----

/// Rows of squares, of which every third has the hash of another one.
static uint64_t row_hash(const void *rows, uint32_t row) { return ((const uint64_t *)rows)[row] % 3; }
static bool is_row(const void *rows, uint32_t row, const void *key) {
    return ((const uint64_t *)rows)[row] == *(const uint64_t *)key;
}

/// Also at the moment at which the next key would make the map grow.
static void overwriting_a_text_takes_no_memory(void **state) {
    (void)state;
    tide_strmap map = {0};
    char key[16];
    for (uint64_t n = 0; n < 100; n++) {
        snprintf(key, sizeof key, "key %" PRIu64, n);
        assert_int_equal(tide_strmap_put(&map, key, n), TIDE_OK);
        tide_host_fail_after(0);
        const tide_status st = tide_strmap_put(&map, key, 2 * n);
        tide_host_fail_after(-1);
        uint64_t value = 0;
        assert_int_equal(st, TIDE_OK);
        assert_true(tide_strmap_get(&map, key, &value) && value == 2 * n);
    }
    tide_strmap_deinit(&map);
}

static void an_index_finds_rows_of_equal_hash(void **state) {
    (void)state;
    uint64_t rows[500];
    tide_index x = {0};
    for (uint32_t i = 0; i < 500; i++) {
        rows[i] = (uint64_t)i * i;
        assert_int_equal(tide_index_find(&x, rows[i] % 3, rows, is_row, &rows[i]), TIDE_INDEX_NONE);
        assert_tide_status(tide_index_put(&x, i, rows, row_hash), TIDE_OK);
    }
    assert_int_equal(x.n, 500);
    assert_true(x.cap >= 2 * x.n);
    for (uint32_t i = 0; i < 500; i++) assert_int_equal(tide_index_find(&x, rows[i] % 3, rows, is_row, &rows[i]), i);
    tide_index_deinit(&x);
    assert_int_equal(tide_index_find(&x, 0, rows, is_row, &rows[0]), TIDE_INDEX_NONE);
}

static void an_index_without_memory_stays_as_it_is(void **state) {
    (void)state;
    const uint64_t rows[33] = {0, 1, 2};
    tide_index x = {0};
    tide_host_fail_after(0);
    assert_tide_status(tide_index_put(&x, 0, rows, row_hash), TIDE_ERR_NOMEM);
    assert_int_equal(x.n, 0);
    tide_host_fail_after(-1);
    for (uint32_t i = 0; i < 32; i++) assert_tide_status(tide_index_put(&x, i, rows, row_hash), TIDE_OK);
    tide_host_fail_after(0);
    assert_tide_status(tide_index_put(&x, 32, rows, row_hash), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    assert_int_equal(x.n, 32);
    assert_int_equal(tide_index_find(&x, 2, rows, is_row, &rows[2]), 2);
    tide_index_deinit(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(agrees_with_an_array),
        tide_unit_test(without_memory_it_fills_up),
        tide_unit_test(overwriting_a_text_takes_no_memory),
        tide_unit_test(an_index_finds_rows_of_equal_hash),
        tide_unit_test(an_index_without_memory_stays_as_it_is),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
