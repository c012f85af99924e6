// SPDX-License-Identifier: MIT
//
// Sweeps made by hand, for the tests of analysis/ and reports/.
#ifndef TIDE_TESTS_ANALYSIS_SWEEP_FIXTURE_H
#define TIDE_TESTS_ANALYSIS_SWEEP_FIXTURE_H

#include <inttypes.h>

#include "analysis/sweep.h"
#include "tests/tide_test.h"

/// A point whose figures follow from the value: planned value * 1 MiB, all else fixed.
static inline tide_sweep_point sweep_point(const char *model, const char *extent, uint64_t value, const char *rest,
                                           const char *strategy, uint64_t align) {
    char sizes[512];
    snprintf(sizes, sizeof sizes, "%s=%" PRIu64 "%s%s", extent, value, rest[0] != '\0' ? " " : "", rest);
    tide_sweep_point p = {.model = tide_host_strdup(model),
                          .sizes = tide_host_strdup(extent[0] != '\0' ? sizes : rest),
                          .strategy = tide_host_strdup(strategy),
                          .align_bytes = align,
                          .value = value,
                          .planned_bytes = value << 20,
                          .weights_bytes = 3 << 20,
                          .io_bytes = value << 10,
                          .naive_bytes = value << 21,
                          .lower_bound_bytes = value << 19,
                          .proved_bytes = value << 20,
                          .proven = true,
                          .plan_time_ns = 1000 + value};
    p.total_bytes = p.planned_bytes + p.weights_bytes + p.io_bytes;
    return p;
}

static inline void sweep_put(tide_sweep *s, tide_sweep_point p) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_sweep_add(s, &p, &err), &err);
    assert_null(p.model);
}

static inline tide_sweep sweep_open(const char *extent) {
    tide_sweep s = {.extent = tide_host_strdup(extent), .n_ranks = 1};
    return s;
}

static inline void sweep_answer(tide_sweep *s, tide_sweep_answer a) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_sweep_add_answer(s, &a, &err), &err);
}

/// One model, N = 1, 2, 4, 8; 5 MiB: N = 2 needs 5 MiB and 2 KiB, so 1 fits; 8 MiB: 4 fits.
static inline tide_sweep sweep_small(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_sweep s = sweep_open("N");
    for (uint64_t v = 8; v >= 1; v /= 2) sweep_put(&s, sweep_point("nets/a.onnx", "N", v, "", "search", 256));
    assert_tide_ok(tide_sweep_sort(&s, &err), &err);
    sweep_answer(&s, (tide_sweep_answer){.budget_bytes = 8 << 20,
                                         .value = 4,
                                         .needs_bytes = s.points[2].total_bytes,
                                         .next_value = 8,
                                         .next_bytes = s.points[3].total_bytes});
    return s;
}

#endif
