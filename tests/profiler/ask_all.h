// SPDX-License-Identifier: MIT
//
// Every question of the read API to a trace that may be damaged, for the tests of damage: what answers, answers without
// harm; what does not, says why.
#ifndef TIDE_TESTS_PROFILER_ASK_ALL_H
#define TIDE_TESTS_PROFILER_ASK_ALL_H

#include "profiler/moments.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

/// Said in words, and nothing said without need. Keeps the first error.
static inline void ask_note(const char *call, tide_status st, const tide_error *own, tide_status *first,
                            tide_error *err) {
    if (own->status != st) fail_msg("%s: %s, but '%s'", call, tide_status_name(st), own->msg);
    if (st == TIDE_OK || *first != TIDE_OK) return;
    assert_true(own->msg[0] != '\0');
    *first = st;
    *err = *own;
}
#define ASK(call)                                                                                                      \
    do {                                                                                                               \
        tide_error own = TIDE_ERROR_INIT;                                                                              \
        const tide_status st_ = (call);                                                                                \
        ask_note(#call, st_, &own, &first, err);                                                                       \
    } while (0)

/// Every number of a row that stands for a text has one.
static inline tide_status ask_texts(void *ctx, const tide_trace_block_row *rows, size_t n) {
    int64_t step;
    for (size_t i = 0; i < n; i++) {
        assert_non_null(tide_trace_text_of(ctx, rows[i].name));
        assert_non_null(tide_trace_text_of(ctx, rows[i].allocator));
        assert_non_null(tide_trace_scope_of(ctx, rows[i].scope, &step));
        assert_non_null(tide_trace_device_of(ctx, rows[i].device));
    }
    return TIDE_OK;
}

static inline tide_status ask_run(tide_trace *t, int64_t run, tide_error *err) {
    tide_status first = TIDE_OK;
    tide_trace_run *runs = NULL;
    tide_trace_kind *kinds = NULL;
    tide_trace_block *blocks = NULL;
    tide_trace_step *steps = NULL;
    tide_memory_plan *plan = NULL;
    tide_trace_extent extent;
    size_t n, n_blocks = 0, n_steps = 0;
    uint64_t bytes, t_ns;
    ASK(tide_trace_runs(t, &runs, &n, &own));
    ASK(tide_trace_kinds(t, run, &kinds, &n, &own));
    ASK(tide_trace_blocks(t, run, &blocks, &n_blocks, &own));
    ASK(tide_trace_steps(t, run, &steps, &n_steps, &own));
    if (run != 0) ASK(tide_trace_plan(t, run, &plan, &own));
    ASK(tide_trace_peak(t, run, -1, &bytes, &t_ns, &own));
    ASK(tide_trace_get_extent(t, run, &extent, &own));
    ASK(tide_trace_each_block(t, run, ask_texts, t, &own));
    tide_memory_plan_destroy(plan);
    tide_trace_steps_free(steps, n_steps);
    tide_trace_blocks_free(blocks, n_blocks);
    tide_trace_kinds_free(kinds);
    tide_trace_runs_free(runs);
    return first;
}

static inline tide_status ask_moments(tide_trace *t, uint64_t t0, uint64_t t1, tide_error *err) {
    tide_status first = TIDE_OK;
    tide_live_set set = {0}, other = {0};
    tide_group *groups = NULL, *functions = NULL;
    tide_group_change *changes = NULL;
    tide_trace_mark *marks = NULL;
    uint64_t bytes, event, t_ns, min_bytes[16], max_bytes[16];
    size_t n = 0, n_groups = 0, n_functions = 0, n_changes = 0;
    enum { AT_ONCE = 500 }; // each call begins with the chunk that it is in
    static tide_trace_event events[AT_ONCE];
    ASK(tide_trace_live_at(t, -1, t1, &bytes, &own));
    ASK(tide_trace_live_set(t, t1, &set, &own));
    ASK(tide_trace_alive_between(t, t0, t1, &other, &own));
    ASK(tide_live_set_group(&set, TIDE_BY_SCOPE, &groups, &n_groups, &own));
    ASK(tide_live_set_group(&set, TIDE_BY_FUNCTION, &functions, &n_functions, &own));
    ASK(tide_live_set_compare(&set, &other, TIDE_BY_NAME, &changes, &n_changes, &own));
    ASK(tide_trace_peak_between(t, -1, NULL, t0, t1, &bytes, &event, &t_ns, &own));
    ASK(tide_trace_columns(t, -1, NULL, t0, t1, 16, TIDE_COLUMNS_EXACT, min_bytes, max_bytes, &own));
    ASK(tide_trace_columns(t, TIDE_KIND_WORKSPACE, "cpu", t0, t1, 16, TIDE_COLUMNS_FAST, min_bytes, max_bytes, &own));
    ASK(tide_trace_event_at(t, t1, &event, &own));
    ASK(tide_trace_marks(t, &marks, &n, &own));
    for (uint64_t from = 1; first == TIDE_OK; from += n) {
        ASK(tide_trace_events(t, from, events, AT_ONCE, &n, &own));
        if (n == 0 || from > 4096) break;
    }
    tide_trace_marks_free(marks);
    tide_group_changes_free(changes, n_changes);
    tide_groups_free(groups, n_groups);
    tide_groups_free(functions, n_functions);
    tide_live_set_deinit(&set);
    tide_live_set_deinit(&other);
    return first;
}

/// Everything, of an open trace; `check`: and what tide_trace_check says. @return the first error
static inline tide_status ask_trace(tide_trace *t, bool check, tide_error *err) {
    tide_status first = TIDE_OK;
    tide_trace_info info = {0};
    tide_text text = {0};
    int64_t shown;
    ASK(tide_trace_shown_run(t, &shown, &own));
    ASK(tide_trace_get_info(t, &info, &own));
    for (int64_t run = 0; run <= 2; run++) ASK(ask_run(t, run, &own));
    ASK(ask_moments(t, info.begin_ns + 100, info.end_ns > 100 ? info.end_ns - 100 : 200, &own));
    ASK(ask_moments(t, 0, UINT64_MAX, &own));
    ASK(tide_trace_sql(t, "SELECT count(*), sum(requested_bytes) FROM all_events", "|", 0, &text, &own));
    if (check) ASK(tide_trace_check(t, &own));
    tide_text_deinit(&text);
    return first;
}

/// The same of a file.
static inline tide_status ask_all(const char *path, bool check, tide_error *err) {
    tide_trace *t = NULL;
    TIDE_TRY(tide_trace_open(path, &t, err));
    const tide_status st = ask_trace(t, check, err);
    tide_trace_close(t);
    return st;
}

#undef ASK

#endif
