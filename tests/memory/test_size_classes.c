// SPDX-License-Identifier: MIT
//
// Size classes of the caching allocator: both schemes over a sweep of all magnitudes, and their buckets.
#include "core/memory/allocators/size_classes.h"

#include "memory_test.h"

static const tide_size_classes schemes[] = {TIDE_SIZES_POW2, TIDE_SIZES_STEPS};

/// Every class border and its neighbours, and something in between, up to `top_log2`.
enum { MAX_SIZES = 60000 };
static size_t sizes[MAX_SIZES];
static size_t n_sizes;

static int compare_sizes(const void *a, const void *b) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void make_sizes(unsigned top_log2) {
    tide_rng rng = {23};
    n_sizes = 0;
    for (size_t size = 1; size <= 4200; size++) sizes[n_sizes++] = size;
    for (unsigned log2 = 6; log2 < top_log2; log2++) {
        const size_t low = (size_t)1 << log2;
        for (size_t eighth = 0; eighth < 8; eighth++) {
            const size_t border = low + (low / 8) * eighth;
            for (int d = -2; d <= 2; d++) sizes[n_sizes++] = border + (size_t)(ptrdiff_t)d;
        }
        for (int i = 0; i < 200; i++) sizes[n_sizes++] = low + (size_t)tide_rng_below(&rng, low);
    }
    for (size_t step = 0; step < 200; step++) {
        for (int d = -1; d <= 1; d++) sizes[n_sizes++] = ((size_t)64 << 20) + step * (2 << 20) + (size_t)(ptrdiff_t)d;
    }
    assert_true(n_sizes <= MAX_SIZES);
    qsort(sizes, n_sizes, sizeof sizes[0], compare_sizes);
}

// LT-23: a block is at least as large as what is asked, a larger request never gets a smaller block, and a block's own
// size is its class.
static void large_enough_and_monotonic(void **state) {
    (void)state;
    make_sizes(60);
    for (int k = 0; k < 2; k++) {
        size_t before = 0;
        for (size_t i = 0; i < n_sizes; i++) {
            const size_t bytes = tide_size_class_bytes(schemes[k], sizes[i]);
            if (bytes < sizes[i] || bytes < before || bytes % 64 != 0)
                fail_msg("scheme %d: %zu B got %zu B, a smaller one %zu B", k, sizes[i], bytes, before);
            assert_true(tide_size_class_bytes(schemes[k], bytes) == bytes);
            before = bytes;
        }
    }
}

// LT-24: what rounding may cost at the most, in both schemes, and that the bound is nearly reached.
static void waste_is_bounded(void **state) {
    (void)state;
    make_sizes(40);
    double worst_pow2 = 0, worst_steps = 0, worst_huge = 0;
    for (size_t i = 0; i < n_sizes; i++) {
        const size_t size = sizes[i];
        if (size <= 32) continue; // the smallest block is a cache line
        const size_t pow2 = tide_size_class_bytes(TIDE_SIZES_POW2, size);
        const size_t steps = tide_size_class_bytes(TIDE_SIZES_STEPS, size);
        const double waste_pow2 = (double)(pow2 - size) / (double)pow2, waste = (double)(steps - size) / (double)steps;
        assert_true(waste_pow2 < 0.5);
        if (waste_pow2 > worst_pow2) worst_pow2 = waste_pow2;
        assert_true(steps <= pow2);
        if (size <= (size_t)1 << 20) {
            assert_true(steps == pow2);
        } else if (size <= (size_t)64 << 20) {
            assert_true(waste <= 0.125);
            if (waste > worst_steps) worst_steps = waste;
        } else {
            assert_true(steps - size < (size_t)2 << 20);
            if (waste > worst_huge) worst_huge = waste;
        }
    }
    assert_true(worst_pow2 > 0.49);
    assert_true(worst_steps > 0.11); // (1/8 - 1 B) of 9/8
    assert_true(worst_huge > 0.03 && worst_huge < 0.0625);
}

static void by_hand(void **state) {
    (void)state;
    static const struct {
        size_t size, pow2, steps;
    } rows[] = {{0, 64, 64},
                {1, 64, 64},
                {64, 64, 64},
                {65, 128, 128},
                {1 << 20, 1 << 20, 1 << 20},
                {(1 << 20) + 1, 2 << 20, (1 << 20) + (1 << 17)},
                {(1 << 20) + (1 << 17), 2 << 20, (1 << 20) + (1 << 17)},
                {2 << 20, 2 << 20, 2 << 20},
                {(2 << 20) + 1, 4 << 20, (2 << 20) + (1 << 18)},
                {(33 << 20), 64 << 20, 36 << 20},
                {64 << 20, 64 << 20, 64 << 20},
                {(64 << 20) + 1, 128 << 20, 66 << 20},
                {(size_t)3 << 30, (size_t)4 << 30, (size_t)3 << 30},
                {((size_t)3 << 30) + 1, (size_t)4 << 30, ((size_t)3 << 30) + (2 << 20)}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tide_size_class_bytes(TIDE_SIZES_POW2, rows[i].size), rows[i].pow2);
        assert_int_equal(tide_size_class_bytes(TIDE_SIZES_STEPS, rows[i].size), rows[i].steps);
    }
}

static void what_cannot_be_is_0(void **state) {
    (void)state;
    static const size_t too_much[] = {SIZE_MAX, SIZE_MAX - 1, ((size_t)1 << 63) + 1, (size_t)1 << 63};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tide_size_class_bytes(TIDE_SIZES_POW2, too_much[i]), 0);
        assert_int_equal(tide_size_class_bytes(TIDE_SIZES_STEPS, too_much[i]), 0);
    }
    assert_true(tide_size_class_bytes(TIDE_SIZES_POW2, (size_t)1 << 62) == (size_t)1 << 62);
    assert_int_equal(tide_size_class_bytes(TIDE_SIZES_POW2, ((size_t)1 << 62) + 1), 0);
}

/// One bucket, one size: two requests share a bucket exactly when their blocks are alike. The last bucket has the rest.
static void a_bucket_has_one_size(void **state) {
    (void)state;
    make_sizes(60);
    for (int k = 0; k < 2; k++) {
        size_t bytes_of[TIDE__N_CLASSES] = {0};
        unsigned before = 0;
        for (size_t i = 0; i < n_sizes; i++) {
            const tide__size_class class = tide__size_class_of(schemes[k], sizes[i]);
            assert_true(class.index < TIDE__N_CLASSES && class.index >= before);
            before = class.index;
            if (class.index == TIDE__CLASS_HUGE) {
                assert_true(schemes[k] == TIDE_SIZES_STEPS && sizes[i] > (size_t)64 << 20);
                continue;
            }
            if (bytes_of[class.index] == 0) bytes_of[class.index] = class.bytes;
            assert_true(bytes_of[class.index] == class.bytes);
            assert_true(tide__size_class_bytes_at(schemes[k], class.index) == class.bytes);
        }
        for (unsigned i = 1; i < TIDE__N_CLASSES; i++) {
            if (bytes_of[i] != 0) assert_true(bytes_of[i] > bytes_of[i - 1]);
        }
        assert_int_equal(tide__size_class_bytes_at(schemes[k], TIDE__CLASS_HUGE), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(large_enough_and_monotonic), tide_unit_test(waste_is_bounded),      tide_unit_test(by_hand),
        tide_unit_test(what_cannot_be_is_0),        tide_unit_test(a_bucket_has_one_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
