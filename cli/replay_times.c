// SPDX-License-Identifier: MIT
//
// Nanoseconds of calls, as a histogram that does not grow: 64 steps for each doubling. See replay.h.
#include "cli/replay.h"
#include "core/base/assert.h"

enum { STEPS = 64, STEP_BITS = 6 };

/// Row 0 holds 0 to 63 ns exactly; row k values of k + 5 bits behind the first, in steps of 2^(k - 1).
void cli_replay_times_add(cli_replay_times *t, uint64_t ns) {
    t->n++;
    if (ns < STEPS) {
        t->counts[0][ns]++;
        return;
    }
    const unsigned shift = 63U - (unsigned)__builtin_clzll(ns) - STEP_BITS;
    TIDE_ASSERT(shift + 1 < sizeof t->counts / sizeof t->counts[0]);
    t->counts[shift + 1][(ns >> shift) & (STEPS - 1)]++;
}

static uint64_t value_of(size_t row, size_t step) { return row == 0 ? step : (uint64_t)(STEPS + step) << (row - 1); }

uint64_t cli_replay_times_at(const cli_replay_times *t, double share) {
    const double wanted = share * (double)t->n;
    uint64_t n = 0;
    for (size_t row = 0; row < sizeof t->counts / sizeof t->counts[0]; row++) {
        for (size_t step = 0; step < STEPS; step++) {
            n += t->counts[row][step];
            if (n > 0 && (double)n >= wanted) return value_of(row, step);
        }
    }
    return UINT64_MAX;
}

uint64_t cli_replay_clock_ns(void) {
    enum { TRIES = 1000 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t begin = tide_now_ns(), end = tide_now_ns();
        if (end - begin < least) least = end - begin;
    }
    return least;
}
