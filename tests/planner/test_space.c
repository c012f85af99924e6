// SPDX-License-Identifier: MIT
//
// planner/strategies/space: every answer against one flag for each byte at each tick, with blocks of time so short that
// spans reach over many of them.
#include "core/base/assert.h"
#include "planner/strategies/space.h"

#include "core/base/text.h"
#include "tests/tide_test.h"

enum { TICKS = 60, BYTES = 400, RECTS = 150 };

static bool taken[TICKS][BYTES];

static bool is_free(uint32_t begin, uint32_t end, uint64_t at, uint64_t bytes) {
    for (uint32_t t = begin; t < end; t++) {
        for (uint64_t b = at; b < at + bytes && b < BYTES; b++) {
            if (taken[t][b]) return false;
        }
    }
    return true;
}

static uint64_t plain_next(uint32_t begin, uint32_t end, uint64_t from, uint64_t bytes) {
    while (!is_free(begin, end, from, bytes)) from++;
    return from;
}

static uint64_t plain_end(uint32_t begin, uint32_t end, uint64_t at) {
    while (at < BYTES && is_free(begin, end, at, 1)) at++;
    return at == BYTES ? UINT64_MAX : at;
}

/// All places from the bottom up, for a span of one of the rectangles.
static void check_span(const tide_space *space, tide_rng *rng, tide_rect span, uint64_t min_bytes) {
    tide_space_window window;
    const uint64_t bytes = min_bytes + tide_rng_below(rng, 12);
    tide__space_open(space, span.begin, span.end, bytes, &window);
    for (uint64_t from = tide_rng_below(rng, 30); from < BYTES;) {
        uint64_t run_end;
        const uint64_t at = tide__space_next(&window, from, &run_end);
        assert_int_equal(at, plain_next(span.begin, span.end, from, bytes));
        assert_int_equal(run_end, plain_end(span.begin, span.end, at));
        if (run_end == UINT64_MAX) break;
        from = tide_rng_below(rng, 2) == 0 ? at + 1 : run_end;
    }
}

static tide_rect random_span(tide_rng *rng) {
    const uint32_t begin = (uint32_t)tide_rng_below(rng, TICKS);
    const uint32_t reach = tide_rng_below(rng, 3) == 0 ? TICKS - begin : 4;
    uint32_t end = begin + 1 + (uint32_t)tide_rng_below(rng, reach);
    if (end > TICKS) end = TICKS;
    return (tide_rect){begin, end, 0, 1};
}

static void it_knows_what_is_free_over_a_span(void **state) {
    (void)state;
    static const uint32_t block_events[] = {1, 2, 5, 20, 400};
    for (uint64_t seed = 0; seed < 60; seed++) {
        tide_rng rng = {seed};
        tide_rect spans[RECTS];
        for (size_t k = 0; k < RECTS; k++) spans[k] = random_span(&rng);
        tide_space *space;
        assert_tide_status(tide__space_create(spans, RECTS, TICKS, block_events[seed % 5], &space), TIDE_OK);
        for (int round = 0; round < 2; round++) { // the second after a reset
            const uint64_t min_bytes = 1 + seed % 3;
            tide__space_reset(space, min_bytes);
            memset(taken, 0, sizeof taken);
            for (size_t k = 0; k < RECTS; k++) {
                const uint64_t lo = tide_rng_below(&rng, BYTES - 40), hi = lo + 1 + tide_rng_below(&rng, 40);
                assert_true(tide__space_take(space, spans[k].begin, spans[k].end, lo, hi));
                for (uint32_t t = spans[k].begin; t < spans[k].end; t++) memset(&taken[t][lo], 1, hi - lo);
                if (k % 4 == 0) check_span(space, &rng, spans[tide_rng_below(&rng, RECTS)], min_bytes);
            }
        }
        tide__space_destroy(space);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_knows_what_is_free_over_a_span),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
