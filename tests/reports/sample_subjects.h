// SPDX-License-Identifier: MIT
//
// Subjects that the report tests share: small plans made by hand.
#ifndef TIDE_TESTS_SAMPLE_SUBJECTS_H
#define TIDE_TESTS_SAMPLE_SUBJECTS_H

#include "tests/tide_test.h"

#include "planner/planner.h"
#include "reports/reports.h"

typedef struct sample_row {
    const char *name;
    uint64_t size_bytes;
    int64_t begin, end;
    tide_memory_kind kind;
    tide_role role;
} sample_row;

static inline tide_subject *sample_of_rows(const sample_row *rows, size_t n, int64_t n_steps, const char *model) {
    tide_lifetimes lt = {.n_steps = n_steps};
    tide_error err = TIDE_ERROR_INIT;
    lt.model = tide_host_strdup(model);
    for (size_t i = 0; i < n; i++) {
        char *name = tide_host_strdup(rows[i].name);
        const tide_lifetime item = {.name = name,
                                    .size_bytes = rows[i].size_bytes,
                                    .align_bytes = 64,
                                    .begin_step = rows[i].begin,
                                    .end_step = rows[i].end,
                                    .kind = rows[i].kind,
                                    .device = TIDE_CPU,
                                    .role = rows[i].role,
                                    .persistent = rows[i].role >= TIDE_ROLE_INPUT};
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
        tide_host_free(name);
    }
    if (lt.n_steps < n_steps) lt.n_steps = n_steps;
    const tide_strategy *strategy;
    tide_memory_plan *plan;
    tide_subject *s;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
    assert_tide_ok(tide_subject_of_plan(plan, "/some/where/sample.json", &s, &err), &err);
    tide_lifetimes_deinit(&lt);
    return s;
}

static const sample_row small_rows[] = {
    {"image", 3136, 0, 4, TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT},
    {"conv1.w", 800, 0, 4, TIDE_KIND_PERSISTENT, TIDE_ROLE_WEIGHT},
    {"conv1_out", 25088, 0, 2, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
    {"conv1.scratch", 12544, 0, 1, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH},
    {"pool1_out", 6272, 1, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
    {"fc1_out", 512, 2, 4, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
    {"probabilities", 40, 0, 4, TIDE_KIND_DEFAULT, TIDE_ROLE_OUTPUT},
};
static inline tide_subject *sample_small(void) {
    return sample_of_rows(small_rows, sizeof small_rows / sizeof small_rows[0], 4, "small");
}
/// The small one with a larger and a new tensor, and one that is gone.
static inline tide_subject *sample_changed(void) {
    sample_row rows[sizeof small_rows / sizeof small_rows[0]];
    memcpy(rows, small_rows, sizeof rows);
    rows[2].size_bytes = 30000;
    rows[3].name = "conv1.buffer";
    return sample_of_rows(rows, sizeof rows / sizeof rows[0], 4, "small");
}
static inline tide_subject *sample_one(void) {
    static const sample_row rows[] = {{"only", 4096, 0, 1, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE}};
    return sample_of_rows(rows, 1, 1, "one");
}
static inline tide_subject *sample_empty(void) { return sample_of_rows(NULL, 0, 1, "empty"); }

static inline tide_subject *sample_hostile(void) {
    static char long_name[10001];
    memset(long_name, 'x', sizeof long_name - 1);
    const sample_row rows[] = {
        {"</script><script>alert(1)</script>", 64, 0, 2, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
        {"\" onmouseover=\"x", 128, 0, 1, TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT},
        {"two\nlines, and \"quotes\" ]]>", 192, 1, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH},
        {"=cmd|' /C calc'!A0", 256, 1, 2, TIDE_KIND_KV_CACHE, TIDE_ROLE_INTERMEDIATE},
        {"@sum(1)", 320, 1, 2, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
        {"latin1 \xe9 cut \xe2\x82", 384, 2, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
        {"\xe2\x80\xaertl \xd7\xa9\xd7\x9c", 1, 2, 3, TIDE_KIND_PERSISTENT, TIDE_ROLE_WEIGHT},
        {"esc\033[31m & <b> `md` | *x*", 2, 2, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
        {long_name, 3, 2, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE},
    };
    return sample_of_rows(rows, sizeof rows / sizeof rows[0], 3, "</title><b>&\xff");
}

/// `n` tensors over `n` / 4 steps, sizes and lives drawn.
static inline tide_subject *sample_many(size_t n, uint64_t seed) {
    tide_rng rng = {seed};
    sample_row *rows = tide_host_calloc(n, sizeof *rows);
    char(*names)[64] = tide_host_calloc(n, sizeof *names);
    const int64_t n_steps = (int64_t)n / 4 + 2;
    assert_true(rows != NULL && names != NULL);
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "layer%zu/tensor_%zu", i / 7, i);
        const int64_t begin = (int64_t)tide_rng_below(&rng, (uint64_t)n_steps - 1);
        const int64_t life = 1 + (int64_t)tide_rng_below(&rng, 12);
        rows[i] = (sample_row){names[i],
                               1 + tide_rng_below(&rng, 1 << 20),
                               begin,
                               begin + life < n_steps ? begin + life : n_steps,
                               TIDE_KIND_WORKSPACE,
                               i % 9 == 0 ? TIDE_ROLE_SCRATCH : TIDE_ROLE_INTERMEDIATE};
    }
    tide_subject *s = sample_of_rows(rows, n, n_steps, "many");
    tide_host_free(rows);
    tide_host_free(names);
    return s;
}

static inline tide_text report_of(tide_subject *a, tide_subject *b, const tide_report_options *opt,
                                  tide_report_format format) {
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_report_render(a, b, opt, format, &out, &err), &err);
    return out;
}

#endif
