// SPDX-License-Identifier: MIT
//
// Moments: each answer against a naive reading of the same history, in rows, in chunks, and mixed.
#include "profiler/moments.h"

#include "tests/profiler/history_check.h"

static void setup(fixture *f, uint64_t seed, size_t n, h_form form) {
    tide_error err = TIDE_ERROR_INIT;
    *f = (fixture){.rng = {seed}};
    tmp_dir_make(&f->d);
    print_message("seed %" PRIu64 "\n", seed);
    h_record(&f->h, f->d.file, seed, n, form);
    assert_tide_ok(tide_trace_open(f->d.file, &f->t, &err), &err);
}

static void teardown(fixture *f) {
    tide_trace_close(f->t);
    h_deinit(&f->h);
    tmp_dir_remove(&f->d);
}

static void check_everything(uint64_t seed, size_t n, h_form form) {
    fixture f;
    setup(&f, seed, n, form);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_check(f.t, &err), &err);
    check_live_sets(&f);
    check_peaks(&f);
    check_all_columns(&f);
    check_events(&f);
    check_runs(&f);
    check_blocks(&f);
    teardown(&f);
}

static void test_rows(void **state) {
    (void)state;
    check_everything(2, 42000, H_ROWS); // nothing odd
    check_everything(1, 9000, H_ROWS);
}

static void test_chunks(void **state) {
    (void)state;
    check_everything(3, 40000, H_CHUNKS);
    check_everything(7, 9000, H_CHUNKS); // problems and discards, many events of one moment
}

static void test_mixed(void **state) {
    (void)state;
    for (uint64_t seed = 4; seed <= (uint64_t)tide_test_rounds(4, 6); seed++)
        check_everything(seed, 8000 + 1000 * (size_t)seed, H_MIXED);
    check_everything(9, 40000, H_MIXED);
}

// ---- by hand ----

/// An event at 10 ns times its number.
static void put_at(history *h, writer *w, tide__event e) {
    e.id = w->last_event + 1;
    e.t_ns = 10 * e.id;
    e.thread = 1;
    h_note(h, &e);
    writer_put(w, e);
}

static tide__event event_of(int op, int64_t block, tide_memory_kind kind, int16_t device, int64_t bytes) {
    return (tide__event){.op = (uint8_t)op,
                         .block_id = block,
                         .kind = (uint8_t)kind,
                         .device = device,
                         .requested_bytes = bytes,
                         .reserved_bytes = bytes,
                         .tag_id = 1,
                         .allocator_id = 1};
}

/// The last event of every leaf is a spike, the first of the next one its end; in some of them another series dips just
/// before, in others it stands.
static void put_spikes(history *h, writer *w) {
    put_at(h, w, event_of(TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, 1, 5000));
    put_at(h, w, event_of(TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, 2, 800));
    int64_t small = 3, spike = 1000000;
    bool has_small = false;
    while (h->n < 12 * 1024 + 100) {
        const int64_t next = (int64_t)h->n + 1, in_leaf = (next - 1) % 1024;
        const int16_t device = next / 4096 % 2 == 0 ? 1 : 2;
        if (in_leaf == 1023) {
            put_at(h, w, event_of(TIDE_MEM_ALLOC, ++spike, TIDE_KIND_WORKSPACE, 2, 1000 * (1 + next / 1024 * 5 % 13)));
        } else if (in_leaf == 0 && next > 1024) {
            put_at(h, w,
                   event_of(TIDE_MEM_FREE_COMPLETED, spike, TIDE_KIND_WORKSPACE, 2, 1000 * (1 + next / 1024 * 5 % 13)));
        } else if (next / 1024 % 3 == 0 && next > 1024 && (in_leaf == 1022 || in_leaf == 1021)) { // a dip
            put_at(
                h, w,
                event_of(in_leaf == 1022 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED, 1, TIDE_KIND_WORKSPACE, 1, 5000));
        } else if (has_small) {
            put_at(h, w, event_of(TIDE_MEM_FREE_COMPLETED, small++, TIDE_KIND_DEFAULT, device, 7));
            has_small = false;
        } else if (next % 3 == 0) {
            put_at(h, w, event_of(TIDE_MEM_ALLOC, small, TIDE_KIND_DEFAULT, device, 7));
            has_small = true;
        } else {
            put_at(h, w, (tide__event){.op = TIDE__OP_SCOPE_ENTER, .kind = TIDE__NO_KIND, .scope_id = 1});
        }
    }
}

static void test_edges_of_leaves(void **state) {
    (void)state;
    fixture f = {.rng = {3}};
    writer w;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, 2);
    put_spikes(&f.h, &w);
    h_finish(&w);
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    for (int device = -1; device < H_DEVICES; device++) {
        for (int kind = -1; kind <= TIDE_KIND_WORKSPACE; kind++) {
            for (int64_t first = 2 * 1024 - 2; first <= 2 * 1024 + 3; first++)
                for (int64_t last = 5 * 1024 - 2; last <= 5 * 1024 + 3; last++)
                    check_peak(&f, kind, device, 10 * first, 10 * last);
            for (int64_t shift = -20; shift <= 20; shift += 10) { // columns that begin with a leaf, or one event off
                check_columns(&f, kind, device, 10250 + shift, 10250 + 10240 * 10 + shift, 10, TIDE_COLUMNS_EXACT);
                check_columns(&f, kind, device, 10250 + shift, 10250 + 10240 * 10 + shift, 10, TIDE_COLUMNS_FAST);
                check_columns(&f, kind, device, 10240 + shift, 10240 * 3 + shift, 400, TIDE_COLUMNS_EXACT);
            }
        }
    }
    teardown(&f);
}

/// Two problems that cancel each other in the sums of a leaf, and show between.
static void test_problems_that_cancel_out(void **state) {
    (void)state;
    fixture f = {.rng = {3}};
    writer w;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, 2);
    put_at(&f.h, &w, event_of(TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 1, 9000));
    put_at(&f.h, &w, event_of(TIDE_MEM_FREE_COMPLETED, 1, TIDE_KIND_DEFAULT, 1, 9000));
    put_at(&f.h, &w, event_of(TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 1, 100));
    put_at(&f.h, &w, event_of(TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 1, 100)); // twice: still 100
    put_at(&f.h, &w, event_of(TIDE_MEM_FREE_COMPLETED, 2, TIDE_KIND_DEFAULT, 1, 100));
    put_at(&f.h, &w, event_of(TIDE_MEM_FREE_COMPLETED, 2, TIDE_KIND_DEFAULT, 1, 100)); // nothing
    h_finish(&w);
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    for (uint64_t t_ns = 0; t_ns < 70; t_ns += 10) {
        uint64_t bytes;
        assert_tide_ok(tide_trace_live_at(f.t, -1, t_ns, &bytes, &err), &err);
        assert_int_equal(bytes, h_bytes(&f.h, -1, -1, (int64_t)t_ns / 10));
    }
    teardown(&f);
}

static void test_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    history h;
    writer w;
    h_begin(&h, &w, d.file, 1);
    h_finish(&w);
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    assert_tide_ok(tide_trace_check(t, &err), &err);
    tide_live_set s;
    assert_tide_ok(tide_trace_live_set(t, 1000, &s, &err), &err);
    assert_int_equal(s.n, 0);
    tide_live_set_deinit(&s);
    uint64_t bytes, low[3], high[3];
    assert_tide_ok(tide_trace_peak_between(t, -1, NULL, 0, 1000, &bytes, NULL, NULL, &err), &err);
    assert_int_equal(bytes, 0);
    assert_tide_ok(tide_trace_columns(t, -1, "cpu", 0, UINT64_MAX, 3, TIDE_COLUMNS_EXACT, low, high, &err), &err);
    assert_int_equal(high[2], 0);
    tide_trace_event event;
    size_t n;
    assert_tide_ok(tide_trace_events(t, 1, &event, 1, &n, &err), &err);
    assert_int_equal(n, 0);
    tide_trace_close(t);
    h_deinit(&h);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_rows),
        tide_unit_test(test_chunks),
        tide_unit_test(test_mixed),
        tide_unit_test(test_edges_of_leaves),
        tide_unit_test(test_problems_that_cancel_out),
        tide_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
