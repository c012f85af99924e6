// SPDX-License-Identifier: MIT
//
// The largest value that fits: doubling, then halving the interval, then the neighbours. See sweep.h.
#include <inttypes.h>

#include "analysis/sweep.h"

typedef struct search {
    uint64_t hi, budget;
    tide_sweep_ask ask;
    void *ctx;
    uint64_t good, good_bytes; // the largest known to fit
    uint64_t bad, bad_bytes;   // one above it that does not; 0: none is known
} search;

/// Ask for one value above `good`; what it is moves good or bad.
static tide_status probe(search *s, uint64_t value, bool *fits, tide_error *err) {
    uint64_t bytes = 0;
    TIDE_TRY(s->ask(s->ctx, value, &bytes, err));
    *fits = bytes <= s->budget;
    if (*fits) {
        s->good = value;
        s->good_bytes = bytes;
    } else {
        s->bad = value;
        s->bad_bytes = bytes;
    }
    return TIDE_OK;
}

/// From `good` up in steps that double, until one does not fit or the end of the range does.
static tide_status reach(search *s, uint64_t step, tide_error *err) {
    s->bad = 0;
    while (s->bad == 0 && s->good < s->hi) {
        bool fits;
        const uint64_t left = s->hi - s->good;
        TIDE_TRY(probe(s, step < left ? s->good + step : s->hi, &fits, err));
        step = step > UINT64_MAX / 2 ? UINT64_MAX : step * 2;
    }
    return TIDE_OK;
}

static tide_status halve(search *s, tide_error *err) {
    while (s->bad != 0 && s->bad - s->good > 1) {
        bool fits;
        TIDE_TRY(probe(s, s->good + (s->bad - s->good) / 2, &fits, err));
    }
    return TIDE_OK;
}

/// The values up to good + n_beyond; `moved`: one of them fits, and is `good` from now on.
static tide_status look_beyond(search *s, unsigned n_beyond, bool *moved, tide_error *err) {
    search beyond = *s;
    *moved = false;
    for (unsigned k = 2; k <= n_beyond && k <= s->hi - s->good; k++) {
        bool fits;
        TIDE_TRY(probe(&beyond, s->good + k, &fits, err));
        *moved |= fits;
    }
    if (*moved) {
        s->good = beyond.good;
        s->good_bytes = beyond.good_bytes;
    }
    return TIDE_OK;
}

tide_status tide_sweep_largest(uint64_t lo, uint64_t hi, uint64_t budget_bytes, unsigned n_beyond, tide_sweep_ask ask,
                               void *ctx, tide_sweep_answer *out, tide_error *err) {
    if (lo == 0 || lo > hi)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%" PRIu64 " to %" PRIu64 " is no range of sizes", lo, hi);
    const size_t series = out->series;
    *out = (tide_sweep_answer){.series = series, .budget_bytes = budget_bytes};
    search s = {.hi = hi, .budget = budget_bytes, .ask = ask, .ctx = ctx};
    bool fits = false, moved = true;
    TIDE_TRY(probe(&s, lo, &fits, err));
    if (!fits) {
        out->none_fits = true;
        out->next_value = lo;
        out->next_bytes = s.bad_bytes;
        return TIDE_OK;
    }
    for (uint64_t step = lo; moved; step = 1) { // from lo: 2 lo, 4 lo, …
        TIDE_TRY(reach(&s, step, err));
        TIDE_TRY(halve(&s, err));
        if (s.bad == 0) break;
        TIDE_TRY(look_beyond(&s, n_beyond, &moved, err));
    }
    out->is_open = s.bad == 0;
    out->value = s.good;
    out->total_bytes = s.good_bytes;
    out->next_value = s.bad;
    out->next_bytes = s.bad != 0 ? s.bad_bytes : 0;
    return TIDE_OK;
}
