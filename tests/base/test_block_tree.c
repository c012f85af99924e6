// SPDX-License-Identifier: MIT
//
// core/base/block_tree: every answer against a list that is looked through from end to end.
#include "core/base/block_tree.h"

#include "core/base/assert.h"
#include "core/base/text.h"
#include "tests/tide_test.h"

enum { MAX_BLOCKS = 300 };

static bool stands_before(bool by_size, tide_block_span a, tide_block_span b) {
    if (by_size && a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.begin < b.begin;
}

static const tide_block_span *plain_at_least(const tide_block_span *list, size_t n, bool by_size, tide_block_span key) {
    const tide_block_span *best = NULL;
    for (size_t k = 0; k < n; k++) {
        if (stands_before(by_size, list[k], key)) continue;
        if (best == NULL || stands_before(by_size, list[k], *best)) best = &list[k];
    }
    return best;
}

static const tide_block_span *plain_before(const tide_block_span *list, size_t n, bool by_size, tide_block_span key) {
    const tide_block_span *best = NULL;
    for (size_t k = 0; k < n; k++) {
        if (!stands_before(by_size, list[k], key)) continue;
        if (best == NULL || stands_before(by_size, *best, list[k])) best = &list[k];
    }
    return best;
}

static const tide_block_span *plain_lowest_fit(const tide_block_span *list, size_t n, uint64_t bytes, uint64_t align) {
    const tide_block_span *best = NULL;
    for (size_t k = 0; k < n; k++) {
        const uint64_t at = (list[k].begin + align - 1) / align * align;
        if (at + bytes > list[k].begin + list[k].bytes) continue;
        if (best == NULL || list[k].begin < best->begin) best = &list[k];
    }
    return best;
}

static void check_answer(bool found, tide_block_span got, const tide_block_span *want) {
    assert_int_equal(found, want != NULL);
    if (want == NULL) return;
    assert_int_equal(got.begin, want->begin);
    assert_int_equal(got.bytes, want->bytes);
    assert_int_equal(got.id, want->id);
}

static void check_tree(uint64_t seed, bool by_size) {
    tide_rng rng = {seed};
    tide_block_tree tree = {.by_size = by_size};
    tide_block_span list[MAX_BLOCKS], got = {0};
    size_t n = 0;
    for (int k = 0; k < 3000; k++) {
        const tide_block_span key = {.begin = tide_rng_below(&rng, 5000), .bytes = tide_rng_below(&rng, 60)};
        if (n < MAX_BLOCKS && (n == 0 || tide_rng_below(&rng, 5) < 3)) {
            tide_block_span block = {(uint64_t)k * 64 % 9973 * 10, 1 + tide_rng_below(&rng, 50), (uint32_t)k};
            bool taken = false;
            for (size_t i = 0; i < n; i++) taken = taken || list[i].begin == block.begin;
            if (taken) continue;
            assert_tide_status(tide_block_tree_insert(&tree, block), TIDE_OK);
            list[n++] = block;
        } else {
            const size_t i = tide_rng_below(&rng, n);
            tide_block_tree_remove(&tree, list[i]);
            list[i] = list[--n];
        }
        check_answer(tide_block_tree_at_least(&tree, key, &got), got, plain_at_least(list, n, by_size, key));
        check_answer(tide_block_tree_before(&tree, key, &got), got, plain_before(list, n, by_size, key));
        if (by_size) continue;
        const uint64_t align = UINT64_C(1) << tide_rng_below(&rng, 6);
        check_answer(tide_block_tree_lowest_fit(&tree, 1 + key.bytes, align, &got), got,
                     plain_lowest_fit(list, n, 1 + key.bytes, align));
    }
    tide_block_tree_deinit(&tree);
}

static void answers_are_those_of_a_list(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        check_tree(seed, false);
        check_tree(seed, true);
    }
}

// ---- what is free, against a map of bytes ----

enum { SPACE_BYTES = 600 };

static bool is_free_throughout(const bool *is_free, uint64_t begin, uint64_t bytes, bool want) {
    for (uint64_t at = begin; at < begin + bytes; at++)
        if (is_free[at] != want) return false;
    return true;
}

/// Blocks of the tree are the longest stretches of free bytes, in their order.
static void check_free(const tide_block_tree *tree, const bool *is_free) {
    uint64_t largest = 0;
    tide_block_span got, key = {0};
    for (uint64_t at = 0; at < SPACE_BYTES;) {
        uint64_t end = at;
        while (end < SPACE_BYTES && is_free[end]) end++;
        if (end > at) {
            assert_true(tide_block_tree_at_least(tree, key, &got));
            assert_int_equal(got.begin, at);
            assert_int_equal(got.bytes, end - at);
            key.begin = got.begin + 1;
            if (got.bytes > largest) largest = got.bytes;
        }
        at = end + 1;
    }
    assert_false(tide_block_tree_at_least(tree, key, &got));
    assert_int_equal(tide_block_tree_largest(tree), largest);
}

static void free_blocks_are_those_of_a_map_of_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        tide_rng rng = {seed};
        tide_block_tree tree = {0};
        bool is_free[SPACE_BYTES] = {false};
        check_free(&tree, is_free);
        for (int k = 0; k < 1500; k++) {
            const uint64_t begin = tide_rng_below(&rng, SPACE_BYTES - 1);
            const uint64_t most = SPACE_BYTES - begin < 40 ? SPACE_BYTES - begin : 40;
            const tide_block_span span = {begin, 1 + tide_rng_below(&rng, most), 0};
            if (is_free_throughout(is_free, span.begin, span.bytes, false)) {
                assert_tide_status(tide_block_tree_give(&tree, span), TIDE_OK);
                memset(is_free + span.begin, true, span.bytes);
            } else {
                const bool whole = is_free_throughout(is_free, span.begin, span.bytes, true);
                assert_tide_status(tide_block_tree_take(&tree, span), whole ? TIDE_OK : TIDE_ERR_NOT_FOUND);
                if (whole) memset(is_free + span.begin, false, span.bytes);
            }
            check_free(&tree, is_free);
        }
        tide_block_tree_deinit(&tree);
    }
}

/// At the end of the address space, and beyond it.
static void free_blocks_reach_to_the_last_byte(void **state) {
    (void)state;
    tide_block_tree tree = {0};
    assert_tide_status(tide_block_tree_take(&tree, (tide_block_span){0, 1, 0}), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_block_tree_give(&tree, (tide_block_span){UINT64_MAX - 10, 10, 7}), TIDE_OK);
    assert_tide_status(tide_block_tree_take(&tree, (tide_block_span){UINT64_MAX - 5, 6, 0}), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_block_tree_take(&tree, (tide_block_span){UINT64_MAX, 1, 0}), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_block_tree_take(&tree, (tide_block_span){UINT64_MAX - 5, 5, 0}), TIDE_OK);
    assert_int_equal(tide_block_tree_largest(&tree), 5);
    tide_block_tree_deinit(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(answers_are_those_of_a_list),
        tide_unit_test(free_blocks_are_those_of_a_map_of_bytes),
        tide_unit_test(free_blocks_reach_to_the_last_byte),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
