// SPDX-License-Identifier: MIT
//
// Rows in the order of a column, against an insertion sort by what the cells hold.
#include <stdlib.h>
#include <string.h>

#include "analysis/table.h"
#include "tests/tide_test.h"

typedef struct sample_row {
    const char *name;
    uint64_t bytes, count, place;
    int64_t change, t;
    double share;
    bool flag;
} sample_row;

static const tide_column columns[] = {
    {"name", "name", TIDE_UNIT_TEXT, TIDE_AT(sample_row, name)},
    {"bytes", "bytes", TIDE_UNIT_BYTES, TIDE_AT(sample_row, bytes)},
    {"count", "count", TIDE_UNIT_COUNT, TIDE_AT(sample_row, count)},
    {"place", "place", TIDE_UNIT_ADDRESS, TIDE_AT(sample_row, place)},
    {"change", "change", TIDE_UNIT_CHANGE, TIDE_AT(sample_row, change)},
    {"t", "t", TIDE_UNIT_TIME, TIDE_AT(sample_row, t)},
    {"share", "share", TIDE_UNIT_SHARE, TIDE_AT(sample_row, share)},
    {"flag", "flag", TIDE_UNIT_FLAG, TIDE_AT(sample_row, flag)},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0], MOST_ROWS = 60 };

static uint64_t next(uint64_t *seed) {
    return *seed = *seed * 6364136223846793005u + 1442695040888963407u, *seed >> 33;
}

static void fill(sample_row *rows, size_t n, uint64_t *seed) {
    static const char *const names[] = {"", "a", "b", "ab", "a\nb", "\xC3\xA9", "zz", "Z"};
    static const uint64_t numbers[] = {0, 1, 2, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, 4096};
    static const int64_t signed_ones[] = {0, -1, 1, INT64_MIN, INT64_MAX, -4096};
    static const double shares[] = {0, 0.5, -1, 1e300, 0.25};
    for (size_t i = 0; i < n; i++)
        rows[i] = (sample_row){.name = names[next(seed) % 8],
                               .bytes = numbers[next(seed) % 7],
                               .count = numbers[next(seed) % 7],
                               .place = numbers[next(seed) % 7],
                               .change = signed_ones[next(seed) % 6],
                               .t = signed_ones[next(seed) % 6],
                               .share = shares[next(seed) % 5],
                               .flag = next(seed) % 2 == 0};
}

static int of_numbers(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

/// Which value is smaller, of cells that are both known.
static int compare(const sample_row *a, const sample_row *b, int column) {
    switch (column) {
    case 0:
        return strcmp(a->name, b->name);
    case 1:
        return of_numbers(a->bytes, b->bytes);
    case 2:
        return of_numbers(a->count, b->count);
    case 3:
        return of_numbers(a->place, b->place);
    case 4:
        return a->change < b->change ? -1 : a->change > b->change;
    case 5:
        return a->t < b->t ? -1 : a->t > b->t;
    case 6:
        return a->share < b->share ? -1 : a->share > b->share;
    default:
        return (int)a->flag - (int)b->flag;
    }
}

static bool is_known(const sample_row *r, int column) {
    const uint64_t number = column == 1 ? r->bytes : column == 2 ? r->count : column == 3 ? r->place : 0;
    return column == 0 ? r->name[0] != 0 : number != UINT64_MAX;
}

/// Whether row `a` must stand before row `b`; equal rows stay as they were.
static bool is_before(const sample_row *rows, uint32_t a, uint32_t b, int column, bool reverse) {
    const bool falls = column == 1 || column == 2 || column == 4 || column == 6 || column == 7;
    const bool known_a = is_known(&rows[a], column), known_b = is_known(&rows[b], column);
    if (known_a != known_b) return known_a;
    int c = known_a ? compare(&rows[a], &rows[b], column) : 0;
    if (falls != reverse) c = -c;
    return c != 0 ? c < 0 : a < b;
}

static void rows_stand_in_the_order_of_the_column(void **state) {
    (void)state;
    uint64_t seed = 11;
    sample_row rows[MOST_ROWS];
    uint32_t order[MOST_ROWS], want[MOST_ROWS];
    for (size_t n = 0; n < MOST_ROWS; n += n < 4 ? 1 : 7) {
        fill(rows, n, &seed);
        const tide_table t = {TIDE_COLUMNS(columns), .rows = rows, .row_bytes = sizeof rows[0], .n_rows = n};
        for (int column = 0; column < N_COLUMNS; column++) {
            for (int reverse = 0; reverse < 2; reverse++) {
                tide_error err = TIDE_ERROR_INIT;
                for (uint32_t i = 0; i < n; i++) {
                    uint32_t at = i;
                    for (; at > 0 && is_before(rows, i, want[at - 1], column, reverse); at--) want[at] = want[at - 1];
                    want[at] = i;
                }
                assert_tide_ok(tide_table_order(&t, (size_t)column, reverse, order, &err), &err);
                for (size_t i = 0; i < n; i++) assert_int_equal(order[i], want[i]);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(rows_stand_in_the_order_of_the_column)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
