// SPDX-License-Identifier: MIT
//
// Leaves against the values written down after every event.
#include "profiler/store/leaf.h"
#include "tests/profiler/event_fixture.h"

enum { MAX_EVENTS = 9000, MAX_SERIES = 32 };

/// The whole story: bytes of each series after each event, and whether the event changed it.
typedef struct story {
    size_t n; ///< events
    int64_t id[MAX_EVENTS], t_ns[MAX_EVENTS];
    int64_t bytes[MAX_EVENTS][MAX_SERIES], reserved[MAX_EVENTS][MAX_SERIES];
    bool changed[MAX_EVENTS][MAX_SERIES];
    size_t n_series;
    tide__leaf leaves[MAX_EVENTS]; ///< [n_leaves] in order of completion
    size_t n_leaves;
} story;

static story s;
static tide__replay r;

static void take_leaves(tide__leaves *l) {
    assert_true(s.n_leaves + l->n_done <= MAX_EVENTS);
    if (l->n_done > 0) memcpy(&s.leaves[s.n_leaves], l->done, l->n_done * sizeof l->done[0]);
    s.n_leaves += l->n_done;
    l->n_done = 0;
}

static void write_down(const tide__event *e, const int64_t *n_before) {
    const size_t i = s.n++;
    s.id[i] = e->id;
    s.t_ns[i] = e->t_ns;
    assert_true(r.n_series <= MAX_SERIES);
    for (size_t k = 0; k < r.n_series; k++) {
        s.bytes[i][k] = r.series[k].live_bytes;
        s.reserved[i][k] = r.series[k].live_reserved_bytes;
        const int64_t n = k == 0 ? 0 : r.series[k].n_allocs + r.series[k].n_frees;
        s.changed[i][k] = n != n_before[k];
        if (k > 0 && s.changed[i][k]) s.changed[i][0] = true;
    }
    s.n_series = r.n_series;
}

static void add_event(tide__leaves *l, const tide__event *e) {
    int64_t n_before[MAX_SERIES] = {0};
    for (size_t k = 1; k < r.n_series; k++) n_before[k] = r.series[k].n_allocs + r.series[k].n_frees;
    tide__problem problem;
    size_t series;
    assert_tide_status(tide__replay_apply(&r, e, &problem, &series), TIDE_OK);
    write_down(e, n_before);
    assert_tide_status(tide__leaves_add(l, &r, e, series), TIDE_OK);
    take_leaves(l);
}

/// The leaf of `series` over events [first, end) of the story. False: the series did not change.
static bool by_hand(size_t series, size_t first, size_t end, tide__leaf *out) {
    *out = (tide__leaf){.series = (int32_t)series,
                        .first_event = s.id[first],
                        .last_event = s.id[end - 1],
                        .begin_ns = s.t_ns[first],
                        .end_ns = s.t_ns[end - 1]};
    bool any = false;
    for (size_t i = first; i < end; i++) {
        if (!s.changed[i][series]) continue;
        const int64_t bytes = s.bytes[i][series], reserved = s.reserved[i][series];
        if (!any || bytes < out->min_bytes) out->min_bytes = bytes;
        if (!any || bytes > out->max_bytes) {
            out->max_bytes = bytes;
            out->max_event = s.id[i];
            out->max_ns = s.t_ns[i];
        }
        if (!any || reserved > out->max_reserved_bytes) out->max_reserved_bytes = reserved;
        out->last_bytes = bytes;
        out->last_reserved_bytes = reserved;
        any = true;
    }
    return any;
}

static void assert_leaf_equal(const tide__leaf *got, const tide__leaf *want) {
#define SAME(field)                                                                                                    \
    if (got->field != want->field)                                                                                     \
    fail_msg("series %d, events %lld to %lld: " #field " is %lld, not %lld", want->series,                             \
             (long long)want->first_event, (long long)want->last_event, (long long)got->field, (long long)want->field)
    SAME(series);
    SAME(first_event);
    SAME(last_event);
    SAME(begin_ns);
    SAME(end_ns);
    SAME(min_bytes);
    SAME(max_bytes);
    SAME(max_event);
    SAME(max_ns);
    SAME(max_reserved_bytes);
    SAME(last_bytes);
    SAME(last_reserved_bytes);
#undef SAME
}

/// All leaves of the story, interval by interval, series by series.
static void assert_leaves(void) {
    size_t at = 0;
    for (size_t first = 0; first < s.n;) {
        size_t end = first + 1;
        while (end < s.n && (s.id[end] - 1) / 1024 == (s.id[first] - 1) / 1024) end++;
        for (size_t series = 0; series < s.n_series; series++) {
            tide__leaf want;
            if (!by_hand(series, first, end, &want)) continue;
            assert_true(at < s.n_leaves);
            assert_leaf_equal(&s.leaves[at++], &want);
        }
        first = end;
    }
    assert_int_equal(at, s.n_leaves);
}

static void run(program *p, int64_t first_id, size_t n) {
    memset(&s, 0, sizeof s);
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__leaves l = {0};
    p->id = first_id - 1;
    for (size_t i = 0; i < n; i++) {
        const tide__event e = program_next(p);
        add_event(&l, &e);
        // What was complete is out at once.
        if (e.id % 1024 == 0 && s.n_leaves > 0) assert_int_equal(l.first_event, 0);
    }
    assert_tide_status(tide__leaves_end(&l), TIDE_OK);
    take_leaves(&l);
    assert_tide_status(tide__leaves_end(&l), TIDE_OK);
    assert_int_equal(l.n_done, 0);
    assert_leaves();
    tide__leaves_deinit(&l);
    tide__replay_deinit(&r);
}

static void test_leaves_are_what_happened(void **state) {
    (void)state;
    static program p;
    p = (program){.want_live = 30};
    run(&p, 1, 5000);
    p = (program){.want_live = 500, .n_devices = 4, .n_kinds = 6, .scopes = 300};
    run(&p, 1, 8192); // ends with an interval
    p = (program){.want_live = 100, .n_devices = 3, .n_kinds = 6, .lies = 300, .discards = 30, .requests = true};
    run(&p, 1, 8000);
}

static void test_intervals_lie_at_fixed_numbers_wherever_one_begins(void **state) {
    (void)state;
    static program p;
    static const int64_t firsts[] = {2, 1023, 1024, 1025, 5000, INT64_C(1) << 40, INT64_MAX - 4100};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        p = (program){.want_live = 20, .n_kinds = 2};
        run(&p, firsts[i], 3000);
        for (size_t k = 0; k < s.n_leaves; k++) {
            const tide__leaf *leaf = &s.leaves[k];
            assert_true(leaf->last_event % 1024 == 0 || leaf->last_event == firsts[i] + 2999);
            assert_true(leaf->first_event % 1024 == 1 || leaf->first_event == firsts[i]);
        }
    }
}

/// The first event that reached the maximum counts, however often it is reached.
static void test_the_first_of_equal_peaks_is_reported(void **state) {
    (void)state;
    memset(&s, 0, sizeof s);
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__leaves l = {0};
    for (int64_t id = 1; id <= 3000; id++) {
        add_event(&l, &(tide__event){.op = id % 2 == 0 ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_ALLOC,
                                     .id = id,
                                     .t_ns = 10 * id,
                                     .block_id = (id + 1) / 2,
                                     .device = 1,
                                     .requested_bytes = id < 100 ? 1 : 64});
    }
    assert_tide_status(tide__leaves_end(&l), TIDE_OK);
    take_leaves(&l);
    assert_leaves();
    assert_int_equal(s.leaves[0].max_event, 101);
    assert_int_equal(s.leaves[0].max_ns, 1010);
    tide__leaves_deinit(&l);
    tide__replay_deinit(&r);
}

/// Numbers that are missing end an interval too.
static void test_a_hole_in_the_numbers_ends_an_interval(void **state) {
    (void)state;
    memset(&s, 0, sizeof s);
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__leaves l = {0};
    static program p;
    p = (program){.want_live = 20};
    for (int i = 0; i < 600; i++) {
        if (i % 100 == 99) p.id += 700;
        const tide__event e = program_next(&p);
        add_event(&l, &e);
    }
    assert_tide_status(tide__leaves_end(&l), TIDE_OK);
    take_leaves(&l);
    assert_leaves();
    assert_true(s.n_leaves >= 8);
    tide__leaves_deinit(&l);
    tide__replay_deinit(&r);
}

static void test_an_interval_without_memory_has_no_leaf(void **state) {
    (void)state;
    static program p;
    p = (program){.scopes = 1000};
    run(&p, 1, 3000);
    assert_int_equal(s.n_leaves, 0);
}

static void test_without_memory_it_says_so(void **state) {
    (void)state;
    static program p;
    p = (program){.want_live = 20, .n_kinds = 3};
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__leaves l = {0};
    int n_failed = 0;
    for (int i = 0; i < 1024; i++) {
        const tide__event e = program_next(&p);
        tide__problem problem;
        size_t series;
        assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
        for (int fail = 0;; fail++) {
            tide_host_fail_after(fail);
            const tide_status st = tide__leaves_add(&l, &r, &e, series);
            tide_host_fail_after(-1);
            if (st == TIDE_OK) break;
            assert_int_equal(st, TIDE_ERR_NOMEM);
            n_failed++;
        }
    }
    assert_true(n_failed >= 2);
    assert_int_equal(l.n_done, r.n_series);
    tide__leaves_deinit(&l);
    tide__replay_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_leaves_are_what_happened),
        tide_unit_test(test_intervals_lie_at_fixed_numbers_wherever_one_begins),
        tide_unit_test(test_the_first_of_equal_peaks_is_reported),
        tide_unit_test(test_a_hole_in_the_numbers_ends_an_interval),
        tide_unit_test(test_an_interval_without_memory_has_no_leaf),
        tide_unit_test(test_without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
