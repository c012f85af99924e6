// SPDX-License-Identifier: MIT
//
// Timelines that the report tests share, besides tests/tui/timeline_sample.h.
#ifndef TIDE_TESTS_SAMPLE_REPORTS_H
#define TIDE_TESTS_SAMPLE_REPORTS_H

#include "tests/tide_test.h"

#include "reports/reports.h"
#include "tests/tui/timeline_sample.h"

static inline tide_timeline *sample_hostile_names(void) {
    static const sample_row rows[] = {
        {"</script><script>alert(1)</script>", "<!--<script>", 10, 0, 2, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE,
         0},
        {"\" onmouseover=\"x", "' onload='x", 20, 0, 1, TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT, TIDE_NO_OFFSET},
        {"two\nlines, and \"quotes\"", "]]>", 30, 1, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, 256},
        {"=cmd|' /C calc'!A0", "@sum(1)", 40, 1, 2, TIDE_KIND_KV_CACHE, TIDE_ROLE_INTERMEDIATE, 512},
        {"latin1 \xe9 cut \xe2\x82", "\xff\xfe", UINT64_MAX / 4, 2, 3, TIDE_KIND_HOST_PINNED, TIDE_ROLE_OUTPUT,
         UINT64_MAX - 1},
        {"\xe2\x80\xaertl", "esc\033[31m", 1, 2, 3, TIDE_KIND_PERSISTENT, TIDE_ROLE_WEIGHT, TIDE_NO_OFFSET},
        {"", "", 0, 2, 2, TIDE_KIND_DEFAULT, TIDE_ROLE_INTERMEDIATE, TIDE_NO_OFFSET},
    };
    tide_timeline *tl = sample_from_rows(rows, sizeof rows / sizeof rows[0], 3, NULL);
    sample_words(tl, "</title><b>&", "m\xff", "<i>", "\"'");
    return tl;
}

/// A run of 50 ms whose `n_steps` operators begin 10 ms apart, all at its end where that is over.
static inline tide_timeline *sample_run_of_steps(size_t n_steps) {
    tide_timeline *tl = sample_many(20, 4);
    tide_host_free(tl->step_names);
    tide_host_free(tl->step_begin);
    tl->n_steps = n_steps;
    tl->step_names = tide_host_calloc(n_steps, sizeof *tl->step_names);
    tl->step_begin = tide_host_calloc(n_steps, sizeof *tl->step_begin);
    for (size_t i = 0; i < n_steps; i++) {
        char name[32];
        snprintf(name, sizeof name, "<op>_%zu", i);
        tl->step_names[i] = tide_host_strdup(name);
        const int64_t begin = tl->begin + (int64_t)i * 10000000;
        tl->step_begin[i] = begin < tl->end ? begin : tl->end;
    }
    return tl;
}

static inline tide_timeline *sample_one(void) {
    static const sample_row rows[] = {
        {"only", "Identity_0", 4096, 0, 1, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 0}};
    tide_timeline *tl = sample_from_rows(rows, 1, 1, NULL);
    sample_words(tl, "one", "one", "planned", "naive");
    tl->has_plan = true;
    tl->plan_bytes = tl->naive_bytes = tl->lower_bound_bytes = 4096;
    return tl;
}

/// A pool plan over the small sample: three pools.
static inline tide_timeline *sample_pools(void) {
    static const int32_t pool_of[] = {0, 1, 2, 1, 0, 2, 0, 1, 0, TIDE_NO_POOL};
    tide_timeline *tl = sample_small();
    for (size_t i = 0; i < tl->n_items; i++) tl->items[i].pool = pool_of[tl->items[i].id];
    tl->plan = tide_host_calloc(1, sizeof *tl->plan);
    tl->plan->form = TIDE_PLAN_POOLS;
    tl->plan->n_pools = 3;
    tl->plan->pool_list = tide_host_calloc(3, sizeof *tl->plan->pool_list);
    tl->plan->pool_list[0] = (tide_plan_pool){196608, 0, 4, 0};
    tl->plan->pool_list[1] = (tide_plan_pool){262144, 196608, 3, 0};
    tl->plan->pool_list[2] = (tide_plan_pool){196608, 458752, 2, 0};
    return tl;
}

static inline void sample_pools_destroy(tide_timeline *tl) {
    tide_host_free(tl->plan->pool_list);
    tide_host_free(tl->plan);
    sample_destroy(tl);
}

static inline tide_text report_of(const tide_timeline *tl, tide_report_format format) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_report_render(tl, format, &out, &err), &err);
    return out;
}

#endif
