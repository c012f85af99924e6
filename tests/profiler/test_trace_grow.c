// SPDX-License-Identifier: MIT
//
// Traces that are not simply complete: still being recorded, left unfinished, with a dropped beginning, with merged
// leaves. Each answers as the naive reading of what it holds.
#include "profiler/feed/feed.h"
#include "profiler/moments.h"

#include "tests/profiler/history_check.h"

static void check_all(fixture *f) {
    check_live_sets(f);
    check_peaks(f);
    check_all_columns(f);
    check_events(f);
    check_blocks(f);
}

static tide_trace_state state_of(tide_trace *t) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_info info;
    assert_tide_ok(tide_trace_get_info(t, &info, &err), &err);
    return info.state;
}

static void check_n_blocks(fixture *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_info info;
    uint64_t n = 0;
    for (size_t i = 0; i < f->h.n_blocks; i++) n += f->h.blocks[i].alloc.id <= (int64_t)f->h.n;
    assert_tide_ok(tide_trace_get_info(f->t, &info, &err), &err);
    assert_int_equal(info.n_blocks, n);
}

// ---- while it is recorded ----

static void check_growing(uint64_t seed, h_form form) {
    tide_error err = TIDE_ERROR_INIT;
    fixture f = {.rng = {seed}};
    writer w;
    tide__feed *feed;
    bool grew;
    print_message("seed %" PRIu64 "\n", seed);
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, seed);
    h_go_on(&f.h, &w, 500, form);
    const tide__feed_options opt = {.trace_path = f.d.file, .rank = -1, .ring_slots = 64};
    assert_tide_ok(tide__feed_create(&opt, &feed, &err), &err); // a recording is active
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    assert_int_equal(state_of(f.t), TIDE_TRACE_RECORDING);
    assert_tide_ok(tide_trace_refresh(f.t, &grew, &err), &err);
    assert_false(grew);
    tide_live_set first;
    assert_tide_ok(tide_trace_live_set(f.t, UINT64_MAX, &first, &err), &err);
    char name[32];
    snprintf(name, sizeof name, "%s", first.items[0].name);
    // Some grow by nothing to speak of, by a leaf, past a snapshot; in make soak past another one at once.
    const size_t steps[] = {1, 20, 600, 1023, 3500, 12500, 2, 1500, 17000, 14000};
    for (size_t i = 0; i < (size_t)tide_test_rounds(6, 10); i++) {
        const size_t n_before = f.h.n;
        h_go_on(&f.h, &w, steps[i], form);
        const size_t n_after = f.h.n;
        f.h.n = n_before; // what came later is not seen yet
        check_live_sets(&f);
        if (i % 3 == 1) check_blocks(&f);
        f.h.n = n_after;
        assert_tide_ok(tide_trace_refresh(f.t, &grew, &err), &err);
        assert_int_equal(grew, n_after > n_before);
        check_live_sets(&f);
        check_events(&f);
        check_n_blocks(&f);
        if (i % 2 == 1) check_peaks(&f);
        if (i % 4 == 3) check_blocks(&f);
    }
    check_all_columns(&f);
    assert_tide_ok(tide_trace_check(f.t, &err), &err);
    assert_string_equal(first.items[0].name, name); // borrowed, and still there
    tide_live_set_deinit(&first);
    h_finish(&w);
    tide__feed_end(feed);
    tide__feed_destroy(feed, true);
    assert_tide_ok(tide_trace_refresh(f.t, &grew, &err), &err);
    assert_true(grew);
    assert_int_equal(state_of(f.t), TIDE_TRACE_COMPLETE);
    check_all(&f);
    assert_tide_ok(tide_trace_check(f.t, &err), &err);
    assert_tide_ok(tide_trace_refresh(f.t, &grew, &err), &err);
    assert_false(grew);
    tide_trace_close(f.t);
    assert_int_equal(tmp_dir_count(&f.d), 1); // one plain file, although it was looked at when it was finished
    h_deinit(&f.h);
    tmp_dir_remove(&f.d);
}

static void test_growing(void **state) {
    (void)state;
    check_growing(7, H_MIXED);
    if (tide_test_rounds(0, 1) == 0) return;
    check_growing(2, H_ROWS);
    check_growing(4, H_CHUNKS);
}

/// A recording that drops its oldest events while a reader has the trace open.
static void test_growing_and_dropping(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = {.rng = {11}};
    writer w;
    tide__feed *feed;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, 3);
    h_go_on(&f.h, &w, (size_t)tide_test_rounds(16000, 40000), H_MIXED);
    const tide__feed_options opt = {.trace_path = f.d.file, .rank = -1, .ring_slots = 64};
    assert_tide_ok(tide__feed_create(&opt, &feed, &err), &err);
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    check_live_sets(&f);
    int n_dropped = 0;
    for (int i = 0; i < 4; i++) {
        const int64_t kept_before = f.first_kept;
        uint64_t file, wal;
        assert_tide_ok(tide__store_bytes(w.s, &file, &wal, &err), &err);
        assert_tide_ok(tide__store_thin(w.s, file, &f.first_kept, &err), &err);
        tide_live_set s;
        const tide_status st = tide_trace_live_set_after(f.t, (uint64_t)f.first_kept / 2, &s, &err); // not refreshed
        if (st != TIDE_ERR_NOT_FOUND) assert_tide_ok(st, &err);
        if (st == TIDE_OK) tide_live_set_deinit(&s);
        h_go_on(&f.h, &w, 12000, H_MIXED);
        assert_tide_ok(tide_trace_refresh(f.t, NULL, &err), &err);
        n_dropped += f.first_kept > kept_before;
        tide_trace_info info;
        assert_tide_ok(tide_trace_get_info(f.t, &info, &err), &err);
        assert_int_equal(info.first_kept_event, f.first_kept);
        check_live_sets(&f);
        check_events(&f);
        check_peak(&f, -1, -1, 0, end_ns(&f));
        check_peak(&f, TIDE_KIND_WORKSPACE, 1, 0, end_ns(&f));
    }
    assert_true(n_dropped >= 2);
    check_peaks(&f);
    check_all_columns(&f);
    tide_trace_close(f.t);
    writer_close(&w);
    tide__feed_end(feed);
    tide__feed_destroy(feed, true);
    h_deinit(&f.h);
    tmp_dir_remove(&f.d);
}

/// Held, it shows what it showed until the next refresh, whatever is dropped; once it is finished it keeps none away.
static void test_held_while_events_are_dropped(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = {.rng = {12}};
    writer w;
    tide__feed *feed;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, 5);
    h_go_on(&f.h, &w, (size_t)tide_test_rounds(16000, 40000), H_MIXED);
    const tide__feed_options opt = {.trace_path = f.d.file, .rank = -1, .ring_slots = 64};
    assert_tide_ok(tide__feed_create(&opt, &feed, &err), &err);
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    tide_trace_hold(f.t);
    int n_dropped = 0;
    for (int i = 0; i < 3; i++) {
        bool grew;
        assert_tide_ok(tide_trace_refresh(f.t, &grew, &err), &err);
        assert_int_equal(grew, i > 0);
        const size_t n_before = f.h.n;
        int64_t kept;
        uint64_t file, wal;
        assert_tide_ok(tide__store_bytes(w.s, &file, &wal, &err), &err);
        assert_tide_ok(tide__store_thin(w.s, file, &kept, &err), &err);
        n_dropped += kept > f.first_kept;
        h_go_on(&f.h, &w, 12000, H_MIXED);
        const size_t n_after = f.h.n;
        f.h.n = n_before;
        check_live_sets(&f);
        check_events(&f);
        check_all_columns(&f);
        assert_tide_ok(tide_trace_check(f.t, &err), &err);
        f.h.n = n_after;
        f.first_kept = kept;
    }
    assert_true(n_dropped >= 2);
    h_finish(&w);
    tide__feed_end(feed);
    tide__feed_destroy(feed, true);
    assert_tide_ok(tide_trace_refresh(f.t, NULL, &err), &err);
    assert_int_equal(state_of(f.t), TIDE_TRACE_COMPLETE);
    sqlite3 *db = sql_open(f.d.file);
    assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    tide_trace_close(f.t);
    assert_int_equal(tmp_dir_count(&f.d), 1);
    h_deinit(&f.h);
    tmp_dir_remove(&f.d);
}

/// Peaks, columns and live sets of what was seen before `n_before` events were.
static void check_as_it_was(fixture *f, size_t n_before) {
    const size_t n_after = f->h.n;
    f->h.n = n_before;
    check_peak(f, -1, -1, 0, end_ns(f));
    check_peak(f, TIDE_KIND_WORKSPACE, 0, 0, end_ns(f));
    check_columns(f, -1, -1, 0, end_ns(f) + 1, 40, TIDE_COLUMNS_EXACT);
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set s;
    assert_tide_ok(tide_trace_live_set(f->t, UINT64_MAX, &s, &err), &err);
    check_set(f, &s, (int64_t)n_before, (int64_t)n_before);
    tide_live_set_deinit(&s);
    f->h.n = n_after;
}

/// Cancels at call number `cancel_at`.
typedef struct canceller {
    int n, cancel_at;
} canceller;

static bool cancel(void *ctx, double share) {
    canceller *c = ctx;
    assert_true(share == 0);
    return c->n++ < c->cancel_at;
}

/// A refresh that is cancelled, or gets no memory, leaves the trace as it was; the next one shows what is new.
static void test_failed_refresh(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = {.rng = {12}};
    writer w;
    tide__feed *feed;
    bool grew;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, 12);
    h_go_on(&f.h, &w, 1500, H_CHUNKS);
    const tide__feed_options opt = {.trace_path = f.d.file, .rank = -1, .ring_slots = 64};
    assert_tide_ok(tide__feed_create(&opt, &feed, &err), &err); // a recording is active
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    int n_failed = 0, n_cancelled = 0;
    for (size_t i = 0; i < 90; i++) { // mostly so few that the leaf at the end stays open
        const size_t n_before = f.h.n;
        h_go_on(&f.h, &w, i % 30 == 29 ? 20000 : 37, i % 30 == 29 ? H_CHUNKS : H_ROWS);
        tide_status st = TIDE_ERR_CANCELLED;
        for (int k = 0; i % 30 == 29 && st != TIDE_OK && k < 2; k++) {
            canceller c = {.cancel_at = k};
            const tide_reading reading = {cancel, &c};
            tide_trace_hear(f.t, &reading);
            st = tide_trace_refresh(f.t, &grew, &err);
            tide_trace_hear(f.t, NULL);
            n_cancelled += st == TIDE_ERR_CANCELLED;
            if (st != TIDE_OK) check_as_it_was(&f, n_before);
        }
        for (int64_t n = 0; st != TIDE_OK; n = tide_test_next_failure(n)) {
            tide_host_fail_after(n);
            st = tide_trace_refresh(f.t, &grew, &err);
            tide_host_fail_after(-1);
            if (st == TIDE_OK) break;
            assert_int_equal(st, TIDE_ERR_NOMEM);
            n_failed++;
            check_as_it_was(&f, n_before);
        }
        check_as_it_was(&f, f.h.n);
    }
    assert_true(n_failed >= 4);
    assert_true(n_cancelled >= 2);
    tide_trace_close(f.t);
    writer_close(&w);
    tide__feed_end(feed);
    tide__feed_destroy(feed, true);
    h_deinit(&f.h);
    tmp_dir_remove(&f.d);
}

/// The recorder is gone and has not finished the trace: opening the trace finishes it.
static void test_unfinished(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fixture f = {.rng = {5}};
    writer w;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, 5);
    h_go_on(&f.h, &w, 20000, H_MIXED);
    writer_close(&w);
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    assert_int_equal(state_of(f.t), TIDE_TRACE_COMPLETE);
    check_all(&f);
    assert_tide_ok(tide_trace_check(f.t, &err), &err);
    tide_trace_close(f.t);
    h_deinit(&f.h);
    tmp_dir_remove(&f.d);
}

// ---- with a dropped beginning ----

static void put_totals(const history *h, writer *w) {
    tide_error err = TIDE_ERROR_INIT;
    writer_begin(w);
    for (int device = 0; device < H_DEVICES; device++) {
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            tide__ring_total total = {0};
            for (size_t i = 0; i < h->n_blocks; i++) {
                const h_block *b = &h->blocks[i];
                if (b->alloc.kind != kind || b->alloc.device != device + 1) continue;
                total.n_allocs++;
                total.requested_bytes += (uint64_t)b->alloc.requested_bytes;
                total.n_frees += b->free_event != 0;
            }
            if (total.n_allocs > 0)
                assert_tide_ok(tide__store_write_total(w->s, 1, (int16_t)(device + 1), (uint8_t)kind, &total, &err),
                               &err);
        }
    }
    writer_flush(w);
}

/// Sums and peaks of the whole trace stay exact, also of what is gone.
static void check_whole(fixture *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_kind *kinds;
    size_t n;
    uint64_t bytes, event, t_ns, n_allocs = 0;
    assert_tide_ok(tide_trace_kinds(f->t, 0, &kinds, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const int device = strcmp(kinds[i].device, "cpu") == 0 ? 0 : 1;
        int64_t high = 0;
        for (int64_t id = 1; id <= (int64_t)f->h.n; id++)
            if (h_bytes(&f->h, (int)kinds[i].kind, device, id) > high)
                high = h_bytes(&f->h, (int)kinds[i].kind, device, id);
        assert_int_equal(kinds[i].peak_bytes, high);
        assert_tide_ok(tide_trace_peak_between(f->t, (int)kinds[i].kind, h_devices[device], 0, UINT64_MAX, &bytes,
                                               &event, &t_ns, &err),
                       &err);
        assert_int_equal(bytes, high);
        assert_int_equal(h_bytes(&f->h, (int)kinds[i].kind, device, (int64_t)event), high);
        assert_int_equal(kinds[i].live_at_end_bytes, h_bytes(&f->h, (int)kinds[i].kind, device, (int64_t)f->h.n));
        n_allocs += kinds[i].n_allocs;
    }
    tide_trace_kinds_free(kinds);
    assert_int_equal(n_allocs, f->h.n_blocks);
    check_columns(f, -1, -1, 0, end_ns(f) + 1, 60, TIDE_COLUMNS_FAST); // leaves are as fine as ever
}

static void check_gone(fixture *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set s;
    uint64_t bytes, id, low[9], high[9];
    const uint64_t gone_ns = (uint64_t)f->h.events[1500].t_ns;
    assert_tide_status(tide_trace_live_set_after(f->t, (uint64_t)f->first_kept - 2, &s, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_live_set(f->t, gone_ns, &s, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_event_at(f->t, gone_ns, &id, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_live_at(f->t, -1, gone_ns, &bytes, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_peak_between(f->t, -1, NULL, gone_ns, gone_ns + 9, &bytes, NULL, NULL, &err),
                       TIDE_ERR_NOT_FOUND);
    assert_tide_status(
        tide_trace_columns(f->t, -1, NULL, gone_ns, gone_ns + 50, 9, TIDE_COLUMNS_EXACT, low, high, &err),
        TIDE_ERR_NOT_FOUND);
    assert_text_has(err.note, "dropped");
    tide_trace_info info;
    assert_tide_ok(tide_trace_get_info(f->t, &info, &err), &err);
    assert_int_equal(info.first_kept_event, f->first_kept);
    assert_int_equal(info.n_events, f->h.n);
    assert_int_equal(info.n_blocks, f->h.n_blocks);
    assert_int_equal(info.n_leaked, h_n_leaked(&f->h));
    assert_int_equal(info.begin_ns, 0); // the run begins before its first event
}

static void check_thinned(uint64_t seed, h_form form) {
    tide_error err = TIDE_ERROR_INIT;
    fixture f = {.rng = {seed}};
    writer w;
    tmp_dir_make(&f.d);
    h_begin(&f.h, &w, f.d.file, seed);
    h_run(&f.h, &w, true, 1);
    for (int i = 0; i < 5; i++) h_go_on(&f.h, &w, 10000, form);
    while (f.first_kept < 17000) {
        uint64_t file, wal;
        assert_tide_ok(tide__store_bytes(w.s, &file, &wal, &err), &err);
        assert_tide_ok(tide__store_thin(w.s, file, &f.first_kept, &err), &err);
    }
    assert_true(f.first_kept < 50000);
    h_go_on(&f.h, &w, 5000, form);
    h_run(&f.h, &w, false, 1);
    put_totals(&f.h, &w);
    h_finish(&w);
    assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
    assert_tide_ok(tide_trace_check(f.t, &err), &err);
    check_gone(&f);
    check_whole(&f);
    check_live_sets(&f);
    check_peaks(&f);
    check_all_columns(&f);
    check_events(&f);
    tide_trace_kind *kinds; // of the run: from the first event that is left
    size_t n;
    assert_tide_ok(tide_trace_kinds(f.t, 1, &kinds, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const int device = strcmp(kinds[i].device, "cpu") == 0 ? 0 : 1;
        int64_t high = 0;
        for (int64_t id = f.first_kept - 1; id <= (int64_t)f.h.n; id++)
            if (h_bytes(&f.h, (int)kinds[i].kind, device, id) > high)
                high = h_bytes(&f.h, (int)kinds[i].kind, device, id);
        assert_int_equal(kinds[i].peak_bytes, high);
    }
    tide_trace_kinds_free(kinds);
    tide_trace_close(f.t);
    h_deinit(&f.h);
    tmp_dir_remove(&f.d);
}

static void test_dropped_beginning(void **state) {
    (void)state;
    check_thinned(2, H_ROWS);
    check_thinned(3, H_CHUNKS);
}

/// The older leaves of a very long trace are merged, each series for itself.
static void test_merged_leaves(void **state) {
    (void)state;
    for (uint64_t seed = 6; seed <= (uint64_t)tide_test_rounds(6, 7); seed++) {
        tide_error err = TIDE_ERROR_INIT;
        fixture f = {.rng = {seed}};
        tmp_dir_make(&f.d);
        h_record(&f.h, f.d.file, seed, 12000, H_ROWS);
        sql_exec(f.d.file,
                 "CREATE TEMP TABLE pair AS SELECT a.series, a.first_event AS a, b.first_event AS b FROM leaf a JOIN "
                 "leaf b ON b.series = a.series AND b.first_event = (SELECT min(first_event) FROM leaf WHERE series = "
                 "a.series AND first_event > a.first_event) WHERE a.series <> 1 AND a.first_event < 8000 AND "
                 "(SELECT count(*) FROM leaf WHERE series = a.series AND first_event < a.first_event) % (2 + (a.series "
                 "= 2)) = 0;"
                 "UPDATE leaf SET last_event = o.last_event, end_ns = o.end_ns, last_bytes = o.last_bytes, "
                 "last_reserved_bytes = o.last_reserved_bytes, min_bytes = min(leaf.min_bytes, o.min_bytes), "
                 "max_event = iif(o.max_bytes > leaf.max_bytes, o.max_event, leaf.max_event), "
                 "max_ns = iif(o.max_bytes > leaf.max_bytes, o.max_ns, leaf.max_ns), "
                 "max_bytes = max(leaf.max_bytes, o.max_bytes), "
                 "max_reserved_bytes = max(leaf.max_reserved_bytes, o.max_reserved_bytes) "
                 "FROM temp.pair p, leaf o WHERE p.series = leaf.series AND p.a = leaf.first_event AND o.series = "
                 "p.series AND o.first_event = p.b;"
                 "DELETE FROM leaf WHERE EXISTS (SELECT 1 FROM temp.pair p WHERE p.series = leaf.series AND p.b = "
                 "leaf.first_event)");
        assert_tide_ok(tide_trace_open(f.d.file, &f.t, &err), &err);
        assert_tide_ok(tide_trace_check(f.t, &err), &err);
        check_live_sets(&f);
        check_peaks(&f);
        check_runs(&f);
        for (int i = 0; i < 40; i++) {
            const int64_t t0 = any_ns(&f);
            check_columns(&f, i % 7 - 1, i % 3 - 1, t0, t0 + 5 + i * 997, 50, TIDE_COLUMNS_EXACT);
        }
        tide_trace_close(f.t);
        h_deinit(&f.h);
        tmp_dir_remove(&f.d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_growing),
        tide_unit_test(test_growing_and_dropping),
        tide_unit_test(test_held_while_events_are_dropped),
        tide_unit_test(test_unfinished),
        tide_unit_test(test_dropped_beginning),
        tide_unit_test(test_merged_leaves),
        tide_unit_test(test_failed_refresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
