// SPDX-License-Identifier: MIT
//
// Device memory: by hand, at every sample as view device_memory says, at every event as a ledger adds it up, peaks and
// columns as a search through all of them.
#include "analysis/device_memory.h"
#include "tests/analysis/device_events.h"
#include "tests/analysis/subject_fixture.h"

enum { N_RANDOM = 600, N_SEEDS = 6 };
#define MIB DEVICE_MIB

typedef struct opened {
    tmp_dir d;
    tide_trace *t;
    tide_device_memory m;
} opened;

static void open_trace(opened *o, int what, tide_record_form form) {
    tide_error err = TIDE_ERROR_INIT;
    tide_recorder *rec = NULL;
    tmp_dir_make(&o->d);
    device_events d = {.now_ns = 1000};
    const tide_recorder_options opt = {.now = device_now, .now_ctx = &d, .form = form};
    assert_tide_ok(tide_recorder_open(o->d.file, &opt, &rec, &err), &err);
    d.to = tide_recorder_observer(rec);
    if (what < 0)
        device_program(&d, what == -1);
    else
        device_at_random(&d, (uint64_t)what, N_RANDOM);
    assert_tide_ok(tide_recorder_close(rec, &err), &err);
    assert_tide_ok(tide_trace_open(o->d.file, &o->t, &err), &err);
    assert_tide_ok(tide_device_memory_make(o->t, NULL, &o->m, &err), &err);
}

static void close_trace(opened *o) {
    tide_device_memory_deinit(&o->m);
    tide_trace_close(o->t);
    tmp_dir_remove(&o->d);
}

static void assert_parts(const opened *o, tide_moment at, const char *want) {
    tide_error err = TIDE_ERROR_INIT;
    tide_device_part *parts = NULL;
    size_t n = 0;
    tide_text text = {0};
    assert_tide_ok(tide_device_parts(&o->m, 0, at, &parts, &n, &err), &err);
    for (size_t i = 0; i < n; i++)
        tide_text_addf(&text, "%d %s %" PRIu64 "\n", (int)parts[i].of, parts[i].name, parts[i].bytes);
    assert_string_equal(tide_text_str(&text), want);
    tide_text_deinit(&text);
    tide_host_free(parts);
}

static void a_program_by_hand(void **state) {
    (void)state;
    opened o;
    open_trace(&o, -1, TIDE_RECORD_ROWS);
    assert_int_equal(o.m.n, 1);
    const tide_device_lane *lane = &o.m.lanes[0];
    assert_string_equal(lane->device, "cuda:0");
    assert_int_equal(lane->n_samples, 5);
    const uint64_t modules = 9216, cublas = 1024 + 131072;
    // The context alone.
    tide_device_figures f = tide_device_at(lane, (tide_moment){.event = 1});
    assert_true(f.allocators_bytes == 0 && f.outside_bytes == 0 && f.unexplained_bytes == 526 * MIB);
    assert_true(f.total_bytes == device_total && f.free_bytes == device_total - 526 * MIB);
    // The highest: the sample with the pool, the table and the workspace, or what came before it.
    tide_moment at;
    f = tide_device_peak(lane, INT64_MIN, INT64_MAX, &at);
    assert_true(f.allocators_bytes == 37 * MIB);
    assert_true(f.outside_bytes == modules + cublas + 96 * MIB);
    assert_true(f.used_bytes == f.allocators_bytes + f.outside_bytes + f.unexplained_bytes && f.off_bytes == 0);
    assert_parts(&o, at,
                 "0 cuda_caching 33554432\n0 device 5242880\n"
                 "1 cuMemAlloc 67240960\n1 cuMemAllocAsync 33554432\n1 module 9216\n"
                 "2 libcublas.so.13 67240960\n2 libcudnn.so.9 20971520\n"
                 "2 kept by the driver's pools 12582912\n2 libtorch_cuda.so 9216\n");
    close_trace(&o);
}

/// Without samples the rest is not known: not 0.
static void never_asked(void **state) {
    (void)state;
    opened o;
    open_trace(&o, -2, TIDE_RECORD_ROWS);
    const tide_device_figures f = tide_device_peak(&o.m.lanes[0], INT64_MIN, INT64_MAX, NULL);
    assert_true(f.allocators_bytes == 37 * MIB && f.outside_bytes > 96 * MIB && f.off_bytes == 0);
    assert_true(f.unexplained_bytes == TIDE_UNKNOWN_BYTES && f.used_bytes == TIDE_UNKNOWN_BYTES);
    assert_true(f.free_bytes == TIDE_UNKNOWN_BYTES && f.total_bytes == TIDE_UNKNOWN_BYTES);
    close_trace(&o);
}

/// A trace of the CPU alone has no device, nor has a plan.
static void no_device(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    tide_device_memory m;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_ok(tide_device_memory_make(t, NULL, &m, &err), &err);
    assert_int_equal(m.n, 0);
    tide_device_memory_deinit(&m);
    assert_tide_ok(tide_device_memory_make(NULL, NULL, &m, &err), &err);
    assert_int_equal(m.n, 0);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

// ---- against the view ----

static void as_the_view_says(void **state) {
    (void)state;
    bool one_is_off = false;
    for (int seed = 1; seed <= N_SEEDS; seed++) {
        opened o;
        open_trace(&o, seed, seed % 2 == 0 ? TIDE_RECORD_CHUNKS : TIDE_RECORD_ROWS);
        tide_text want = {0}, got = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_trace_sql(o.t,
                                      "SELECT event_id, device, used_bytes, total_bytes, allocators_bytes, "
                                      "outside_bytes, unexplained_bytes, off_bytes, free_bytes FROM device_memory "
                                      "ORDER BY device, event_id",
                                      "|", 0, &want, &err),
                       &err);
        tide_text_add(&got, "event_id|device|used_bytes|total_bytes|allocators_bytes|outside_bytes|unexplained_bytes|"
                            "off_bytes|free_bytes\n");
        assert_int_equal(o.m.n, 2);
        for (size_t k = 0; k < o.m.n; k++) {
            const tide_device_lane *lane = &o.m.lanes[k];
            for (size_t i = 0; i < lane->n; i++) {
                if (!lane->points[i].is_sample) continue;
                const tide_device_figures f = tide_device_at(lane, (tide_moment){.event = lane->points[i].event});
                tide_text_addf(&got,
                               "%" PRIu64 "|%s|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64
                               "|%" PRIu64 "\n",
                               lane->points[i].event, lane->device, f.used_bytes, f.total_bytes, f.allocators_bytes,
                               f.outside_bytes, f.unexplained_bytes, f.off_bytes, f.free_bytes);
                one_is_off = one_is_off || f.off_bytes > 0;
            }
        }
        assert_string_equal(tide_text_str(&got), tide_text_str(&want));
        tide_text_deinit(&want);
        tide_text_deinit(&got);
        close_trace(&o);
    }
    assert_true(one_is_off);
}

// ---- parts, peaks, columns ----

static void parts_sum_to_the_figures(void **state) {
    (void)state;
    opened o;
    open_trace(&o, 11, TIDE_RECORD_ROWS);
    tide_error err = TIDE_ERROR_INIT;
    for (size_t k = 0; k < o.m.n; k++) {
        for (uint64_t event = 1; event <= N_RANDOM; event += 7) {
            const tide_device_figures f = tide_device_at(&o.m.lanes[k], (tide_moment){.event = event});
            tide_device_part *parts = NULL;
            size_t n = 0;
            uint64_t sums[3] = {0};
            assert_tide_ok(tide_device_parts(&o.m, k, (tide_moment){.event = event}, &parts, &n, &err), &err);
            for (size_t i = 0; i < n; i++) sums[parts[i].of] += parts[i].bytes;
            assert_true(sums[TIDE_DEVICE_ALLOCATOR] == f.allocators_bytes);
            assert_true(sums[TIDE_DEVICE_API] == f.outside_bytes && sums[TIDE_DEVICE_LIBRARY] == f.outside_bytes);
            tide_host_free(parts);
        }
    }
    close_trace(&o);
}

static uint64_t height(const tide_device_figures *f) {
    return f->used_bytes != TIDE_UNKNOWN_BYTES ? f->used_bytes : f->allocators_bytes + f->outside_bytes;
}

/// The highest of [lo, hi), event by event.
static uint64_t highest(const tide_device_lane *lane, int64_t lo, int64_t hi) {
    uint64_t best = 0;
    tide_device_figures f;
    f = tide_device_at(lane, (tide_moment){.t = lo - 1}); // what held when it began
    best = height(&f);
    for (size_t i = 0; i < lane->n; i++) { // several events of one moment
        if (lane->points[i].t < lo || lane->points[i].t >= hi) continue;
        f = tide_device_at(lane, (tide_moment){.event = lane->points[i].event});
        if (height(&f) > best) best = height(&f);
    }
    return best;
}

static void columns_hold_their_peaks(void **state) {
    (void)state;
    opened o;
    open_trace(&o, 12, TIDE_RECORD_ROWS);
    enum { N = 37 };
    for (size_t k = 0; k < o.m.n; k++) {
        const tide_device_lane *lane = &o.m.lanes[k];
        const int64_t t0 = 1000, t1 = lane->points[lane->n - 1].t + 1;
        tide_device_figures columns[N];
        uint64_t top = 0;
        tide_device_columns(lane, t0, t1, N, columns);
        for (int64_t i = 0; i < N; i++) {
            const int64_t lo = t0 + (t1 - t0) * i / N, hi = t0 + (t1 - t0) * (i + 1) / N;
            assert_true(height(&columns[i]) == highest(lane, lo, hi > lo ? hi : lo + 1));
            if (height(&columns[i]) > top) top = height(&columns[i]);
        }
        tide_moment at;
        const tide_device_figures peak = tide_device_peak(lane, t0, t1, &at), there = tide_device_at(lane, at);
        assert_true(height(&peak) == top && height(&there) == top);
    }
    close_trace(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_program_by_hand),
        tide_unit_test(never_asked),
        tide_unit_test(no_device),
        tide_unit_test(as_the_view_says),
        tide_unit_test(parts_sum_to_the_figures),
        tide_unit_test(columns_hold_their_peaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
