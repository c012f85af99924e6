// SPDX-License-Identifier: MIT
//
// A trace as a subject: the same curve, blocks and peaks as the profiler says, by run and whole.
#include "tests/analysis/subject_fixture.h"

#include "profiler/moments.h"

static const tide_curve_key live_bytes = {TIDE_CURVE_LIVE, -1, NULL};

static const tide_curve_key live_key = {TIDE_CURVE_LIVE, -1, NULL};

static void facts_of_runs(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, -1);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    assert_true(f->is_trace && f->has_plan);
    assert_int_equal(f->run_id, 2);
    assert_string_equal(f->title, "demo: planned, by_hand");
    assert_string_equal(f->path, d.file);
    assert_int_equal(f->begin, 2000);
    assert_int_equal(f->end, 2900);
    assert_int_equal(f->n_steps, N_DEMO_STEPS);
    assert_string_equal(f->step_names[0], "conv");
    assert_int_equal(f->step_begin[0], 2100);
    assert_int_equal(f->peak_bytes, 1024 + 512 + 1024 + DEMO_BYTES + 40);
    assert_int_equal(f->peak.t, 2660);
    assert_true(f->peak.event > 0);
    assert_int_equal(f->n_items, 5);
    assert_true(f->levels.known);
    assert_non_null(tide_subject_trace(s));
    tide_subject_destroy(s);
    s = subject_of_trace(d.file, 0);
    f = tide_subject_get_facts(s);
    assert_false(f->has_plan);
    assert_string_equal(f->title, "trace.db");
    assert_int_equal(f->n_items, N_DEMO_BLOCKS);
    assert_int_equal(f->end, 2831); // the last event is on the axis
    tide_subject_destroy(s);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_subject_of_trace(d.file, 7, &s, &err), TIDE_ERR_NOT_FOUND);
    tmp_dir_remove(&d);
}

/// After every event: what is live sums to the curve, by event and by time.
static void live_sums_to_the_curve(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_items *items = load_items(s);
    const uint64_t n_events = tide_subject_get_facts(s)->n_events;
    uint64_t highest = 0;
    for (uint64_t e = 1; e <= n_events; e++) {
        tide_trace_event event;
        size_t n;
        assert_tide_ok(tide_trace_events(tide_subject_trace(s), e, &event, 1, &n, &err), &err);
        for (int by_time = 0; by_time < 2; by_time++) {
            const tide_moment at = {(int64_t)event.t_ns, by_time != 0 ? 0 : e};
            tide_live_items l;
            uint64_t curve;
            assert_tide_ok(tide_subject_live(s, at, &l, &err), &err);
            assert_tide_ok(tide_subject_bytes_at(s, live_key, at, &curve, &err), &err);
            assert_int_equal(l.bytes, curve);
            if (curve > highest) highest = curve;
            for (size_t i = 0; i < l.n; i++) {
                if (l.items[i].is_unused) continue; // what lies in the buffer are items, the rest of it is none
                assert_true(l.items[i].item < items->n);
                assert_int_equal(tide_items_id(items, l.items[i].item), l.items[i].id);
                assert_string_equal(tide_items_site(items, l.items[i].item)->name, l.items[i].site.name);
            }
            tide_live_items_deinit(&l);
        }
    }
    assert_int_equal(highest, tide_subject_get_facts(s)->peak_bytes);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// The curve of columns [t0, t1), from the events alone: what holds when a column begins counts, unless an event that
/// changes something lies right there.
static void plain_columns(tide_trace *t, int64_t t0, int64_t t1, size_t n, uint64_t *low, uint64_t *high) {
    tide_error err = TIDE_ERROR_INIT;
    static tide_trace_event events[512];
    size_t n_events;
    assert_tide_ok(tide_trace_events(t, 1, events, 512, &n_events, &err), &err);
    assert_true(n_events < 512);
    for (size_t i = 0; i < n; i++) {
        const int64_t from = t0 + (t1 - t0) * (int64_t)i / (int64_t)n,
                      to = t0 + (t1 - t0) * ((int64_t)i + 1) / (int64_t)n;
        uint64_t bytes = 0, carried = 0;
        bool is_carried = true;
        low[i] = UINT64_MAX;
        high[i] = 0;
        for (size_t k = 0; k < n_events && (int64_t)events[k].t_ns < to; k++) {
            const bool comes = strcmp(events[k].op, "alloc") == 0, goes = strcmp(events[k].op, "free_completed") == 0;
            if (!comes && !goes) continue;
            bytes = comes ? bytes + events[k].requested_bytes : bytes - events[k].requested_bytes;
            if ((int64_t)events[k].t_ns < from) carried = bytes;
            if ((int64_t)events[k].t_ns < from) continue;
            if ((int64_t)events[k].t_ns == from) is_carried = false;
            if (bytes < low[i]) low[i] = bytes;
            if (bytes > high[i]) high[i] = bytes;
        }
        if (is_carried && carried < low[i]) low[i] = carried;
        if (is_carried && carried > high[i]) high[i] = carried;
    }
}

/// Columns of a run are what its events say; what the plan predicts stands at the times of the steps.
static void curves_of_a_run(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, 2);
    uint64_t low[90], high[90], want_low[90], want_high[90], bytes;
    for (size_t n = 1; n <= 90; n++) {
        assert_tide_ok(tide_subject_columns(s, live_key, 2000, 2900, n, low, high, &err), &err);
        plain_columns(tide_subject_trace(s), 2000, 2900, n, want_low, want_high);
        assert_memory_equal(low, want_low, n * sizeof low[0]);
        assert_memory_equal(high, want_high, n * sizeof high[0]);
    }
    static const struct {
        int64_t t;
        uint64_t bytes;
    } predicted[] = {{2000, 2560},        {2100, 2560 + 1792}, {2149, 2560 + 1792}, {2150, 2560 + 1536},
                     {2200, 2560 + 2560}, {2250, 2560 + 1792}, {2289, 2560 + 1792}, {2290, 2560},
                     {2499, 2560},        {2500, 2560 + 1792}, {2600, 2560 + 2560}, {2690, 2560}};
    for (size_t i = 0; i < sizeof predicted / sizeof predicted[0]; i++) {
        const tide_curve_key key = {TIDE_CURVE_PREDICTED, -1, NULL};
        assert_tide_ok(tide_subject_bytes_at(s, key, (tide_moment){predicted[i].t, 0}, &bytes, &err), &err);
        assert_int_equal(bytes, predicted[i].bytes);
    }
    tide_subject_destroy(s);
    s = subject_of_trace(d.file, 0);
    const tide_curve_key key = {TIDE_CURVE_PREDICTED, -1, NULL};
    assert_tide_status(tide_subject_bytes_at(s, key, (tide_moment){2000, 0}, &bytes, &err), TIDE_ERR_NOT_FOUND);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// What takes no time is there all the same, and the spike is the peak.
static void events_of_one_moment(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 50, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 10, "long");
    feed(&f, 50, TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 1000, "spike");
    feed_free(&f, 50, 2, TIDE_KIND_DEFAULT, 1000, "spike");
    feed_free(&f, 60, 1, TIDE_KIND_DEFAULT, 10, "long");
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, -1); // no runs: the whole trace
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    uint64_t low[5], high[5], bytes;
    assert_int_equal(facts->peak_bytes, 1010);
    assert_int_equal(facts->peak.t, 50);
    assert_tide_ok(tide_subject_bytes_at(s, live_key, (tide_moment){50, 0}, &bytes, &err), &err);
    assert_int_equal(bytes, 10);
    const tide_items *items = load_items(s);
    const uint32_t spike = tide_items_find(items, 2);
    assert_int_equal(tide_items_begin(items, spike), 50);
    assert_int_equal(tide_items_end(items, spike), 50);
    assert_tide_ok(tide_subject_columns(s, live_key, 50, 60, 5, low, high, &err), &err);
    assert_int_equal(high[0], 1010);
    assert_int_equal(high[1], 10);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// From change to change, forwards and backwards, every alloc and completed free is met once.
static void changes_are_met(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, 0);
    const tide_subject_facts *f = tide_subject_get_facts(s);
    size_t n_changes = 0;
    tide_moment met[64], at = {f->begin - 1, 0}, next;
    for (;; at = next) {
        assert_tide_ok(tide_subject_next_change(s, at, 1, &next, &err), &err);
        if (next.t == at.t && next.event == at.event) break;
        assert_true(n_changes < 64 && next.event > at.event);
        met[n_changes++] = next;
    }
    char count[16];
    snprintf(count, sizeof count, "%zu\n", n_changes);
    assert_sql(d.file, "SELECT count(*) FROM event WHERE op IN (1, 3)", count);
    at = (tide_moment){f->end, 0};
    for (size_t i = n_changes; i-- > 0; at = next) {
        assert_tide_ok(tide_subject_next_change(s, at, -1, &next, &err), &err);
        assert_int_equal(next.event, met[i].event);
        assert_int_equal(next.t, met[i].t);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// Changes far apart, with thousands of events between them that change nothing.
static void changes_far_apart(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_scope op = {.name = "op", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
    uint64_t t = 1000;
    for (uint64_t id = 1; id <= 3; id++) {
        feed(&f, ++t, TIDE_MEM_ALLOC, id, TIDE_KIND_DEFAULT, 64, "a");
        for (int i = 0; i < 1100; i++) feed_scope(&f, ++t, i % 2 == 0, &op);
    }
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    const int64_t at[] = {1001, 2102, 3203};
    tide_moment m = {1000, 0};
    for (int i = 0; i < 3; i++) {
        assert_tide_ok(tide_subject_next_change(s, m, 1, &m, &err), &err);
        assert_int_equal(m.t, at[i]);
    }
    m = (tide_moment){tide_subject_get_facts(s)->end, 0};
    for (int i = 3; i-- > 0;) {
        assert_tide_ok(tide_subject_next_change(s, m, -1, &m, &err), &err);
        assert_int_equal(m.t, at[i]);
    }
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

static void peaks_are_met(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_subject *s = subject_of_trace(d.file, 1);
    tide_moment at;
    assert_tide_ok(tide_subject_next_peak(s, live_bytes, 1000, 1, 1000, 1600, 60, &at, &err), &err);
    assert_int_equal(at.t, 1120); // a and its scratch
    assert_tide_ok(tide_subject_next_peak(s, live_bytes, at.t, 1, 1000, 1600, 60, &at, &err), &err);
    assert_int_equal(at.t, tide_subject_get_facts(s)->peak.t);
    assert_int_equal(at.event, tide_subject_get_facts(s)->peak.event);
    assert_tide_status(tide_subject_next_peak(s, live_bytes, at.t, 1, 1000, 1600, 60, &at, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_ok(tide_subject_next_peak(s, live_bytes, at.t, -1, 1000, 1600, 60, &at, &err), &err);
    assert_int_equal(at.t, 1120);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

/// A trace that is being recorded grows under the subject; its items are loaded anew when they are asked for.
static void a_recording_grows(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 1, false);
    feed(&f, 1000, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 100, "a");
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    tide_subject *s = subject_of_trace(d.file, -1);
    const tide_subject_facts *facts = tide_subject_get_facts(s);
    assert_true(facts->is_recording);
    assert_int_equal(facts->run_id, 0);
    assert_int_equal(load_items(s)->n, 1);
    assert_true(tide_items_is_open_ended(tide_subject_items(s), 0));
    bool grew = true;
    assert_tide_ok(tide_subject_refresh(s, &grew, &err), &err);
    assert_false(grew);
    feed(&f, 2000, TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 300, "b");
    feed(&f, 3000, TIDE_MEM_FREE_COMPLETED, 1, TIDE_KIND_DEFAULT, 100, "a");
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    assert_tide_ok(tide_subject_refresh(s, &grew, &err), &err);
    assert_true(grew);
    assert_int_equal(facts->peak_bytes, 400);
    assert_int_equal(facts->end, 3001);
    assert_int_equal(tide_subject_items(s)->n, 1); // as they were loaded
    assert_int_equal(load_items(s)->n, 2);
    assert_false(tide_items_is_open_ended(tide_subject_items(s), tide_items_find(tide_subject_items(s), 1)));
    feeder_close(&f);
    assert_tide_ok(tide_subject_refresh(s, &grew, &err), &err);
    assert_true(grew);
    assert_false(facts->is_recording);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

static bool cancel(void *ctx, double share, const char *what) {
    (void)what;
    assert_true(share >= 0 && share <= 1);
    ++*(int *)ctx;
    return false;
}

static void another_one_loads(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    for (uint64_t i = 1; i <= 70000; i++) feed(&f, 1000 + i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 64, "a");
    feeder_close(&f);
    tide_subject *a = subject_of_trace(d.file, -1), *b = NULL;
    int n_calls = 0;
    const tide_progress stop = {cancel, &n_calls};
    assert_tide_status(tide_subject_load(a, &stop, &err), TIDE_ERR_CANCELLED);
    assert_int_equal(n_calls, 1);
    assert_null(tide_subject_items(a));
    assert_tide_ok(tide_subject_again(a, &b, &err), &err);
    assert_int_equal(load_items(b)->n, 70000);
    tide_subject_take_items(a, b);
    tide_subject_destroy(b);
    assert_string_equal(tide_subject_items(a)->sites[0].name, "a");
    assert_string_equal(tide_subject_items(a)->shapes[0].device, "cpu");
    tide_subject_destroy(a);
    tmp_dir_remove(&d);
}

/// Reserved bytes: the segments where an allocator reports them, else the reserved bytes of its blocks.
static void reserved_bytes(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 1000, TIDE_MEM_SEGMENT_ALLOC, 500, TIDE_KIND_WORKSPACE, 4096, "");
    feed(&f, 1010, TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, 100, "a");
    feed(&f, 1020, TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 100, "b"); // 128 with its rounding
    feed(&f, 1030, TIDE_MEM_SEGMENT_ALLOC, 600, TIDE_KIND_WORKSPACE, 8192, "");
    feed(&f, 1040, TIDE_MEM_FREE_COMPLETED, 1, TIDE_KIND_WORKSPACE, 100, "a");
    feed(&f, 1050, TIDE_MEM_SEGMENT_FREE, 500, TIDE_KIND_WORKSPACE, 4096, "");
    feed(&f, 1060, TIDE_MEM_FREE_COMPLETED, 2, TIDE_KIND_DEFAULT, 100, "b");
    feed(&f, 1070, TIDE_MEM_ALLOC, 3, TIDE_KIND_DEFAULT, 10, "c");
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    static const struct {
        int64_t t;
        uint64_t all, workspace;
    } want[] = {{1000, 4096, 4096},   {1015, 4096, 4096}, {1020, 4224, 4096}, {1030, 12416, 12288},
                {1049, 12416, 12288}, {1050, 8320, 8192}, {1060, 8192, 8192}, {1070, 8256, 8192}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        uint64_t bytes;
        const tide_moment at = {want[i].t, 0};
        tide_curve_key key = {TIDE_CURVE_RESERVED, -1, NULL};
        assert_tide_ok(tide_subject_bytes_at(s, key, at, &bytes, &err), &err);
        assert_int_equal(bytes, want[i].all);
        key = (tide_curve_key){TIDE_CURVE_RESERVED, TIDE_KIND_WORKSPACE, "cpu"};
        assert_tide_ok(tide_subject_bytes_at(s, key, at, &bytes, &err), &err);
        assert_int_equal(bytes, want[i].workspace);
    }
    uint64_t bytes;
    tide_moment at;
    const tide_curve_key key = {TIDE_CURVE_RESERVED, -1, NULL}, elsewhere = {TIDE_CURVE_RESERVED, -1, "cuda:0"};
    assert_tide_ok(tide_subject_peak_between(s, key, 1000, 1071, &bytes, &at, &err), &err);
    assert_int_equal(bytes, 12416);
    assert_int_equal(at.t, 1030);
    assert_tide_status(tide_subject_bytes_at(s, elsewhere, at, &bytes, &err), TIDE_ERR_NOT_FOUND);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_runs),     cmocka_unit_test(live_sums_to_the_curve),
        cmocka_unit_test(curves_of_a_run),   cmocka_unit_test(events_of_one_moment),
        cmocka_unit_test(changes_are_met),   cmocka_unit_test(peaks_are_met),
        cmocka_unit_test(a_recording_grows), cmocka_unit_test(another_one_loads),
        cmocka_unit_test(reserved_bytes),    cmocka_unit_test(changes_far_apart),
    };
    return cmocka_run_group_tests_name("subject_trace", tests, NULL, NULL);
}
