// SPDX-License-Identifier: MIT
//
// core/memory/poison: the pattern, and what AddressSanitizer is told.
#include <math.h>

#include "core/memory/poison.h"
#include "survives.h"
#include "tests/tide_test.h"

// a poisoned number is a NaN as float and as double, and no plausible index.
static void pattern_is_a_nan(void **state) {
    (void)state;
    union {
        float f[4];
        double d[2];
        int32_t i[4];
    } u;
    tide_poison_fill(&u, sizeof u);
    assert_true(isnan(u.f[0]) && isnan(u.f[3]) && isnan(u.d[0]) && isnan(u.d[1]));
    assert_int_equal(u.i[0], -1);
    tide_poison_fill(NULL, 5);
    tide_poison_fill(&u, 0);
}

static void first_changed_byte_is_found(void **state) {
    (void)state;
    unsigned char bytes[100];
    tide_poison_fill(bytes, sizeof bytes);
    assert_int_equal(tide_poison_find(bytes, sizeof bytes), sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 0x7F;
        assert_int_equal(tide_poison_find(bytes, sizeof bytes), i);
        assert_int_equal(tide_poison_find(bytes, i), i); // what lies behind does not count
        if (i + 1 < sizeof bytes) bytes[i + 1] = 0;      // nor does a second one
        assert_int_equal(tide_poison_find(bytes, sizeof bytes), i);
        tide_poison_fill(bytes, sizeof bytes);
    }
    memset(bytes, 0, sizeof bytes); // all alike, and all wrong
    assert_int_equal(tide_poison_find(bytes, sizeof bytes), 0);
    assert_int_equal(tide_poison_find(bytes, 1), 0);
    assert_int_equal(tide_poison_find(bytes, 0), 0);
    assert_int_equal(tide_poison_find(NULL, 0), 0);
}

// under AddressSanitizer a touch of barred memory ends the process, next to it and afterwards it does not; in
// other builds the calls are nothing.
static void barred_memory_traps(void **state) {
    (void)state;
    unsigned char *bytes = calloc(1, 256);
    tide_asan_poison(bytes + 60, 100); // begins and ends inside a granule
    const bool barred = !survives_reading(bytes + 100);
    assert_true(barred == tide_asan_active());
    assert_true(survives_reading(bytes + 59));
    assert_true(survives_reading(bytes + 160));
    assert_true(survives_reading(bytes + 255));
    tide_asan_unpoison(bytes + 60, 100);
    assert_true(survives_reading(bytes + 60));
    assert_true(survives_reading(bytes + 100));
    assert_true(survives_reading(bytes + 159));
    tide_asan_poison(NULL, 5);
    tide_asan_poison(bytes, 0);
    tide_asan_unpoison(NULL, 5);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(pattern_is_a_nan),
        tide_unit_test(first_changed_byte_is_found),
        tide_unit_test(barred_memory_traps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
