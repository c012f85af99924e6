// SPDX-License-Identifier: MIT
//
// What a trace answers, held against the naive reading of its history (history_fixture.h).
#ifndef TIDE_TESTS_PROFILER_HISTORY_CHECK_H
#define TIDE_TESTS_PROFILER_HISTORY_CHECK_H

#include "profiler/moments.h"
#include "tests/profiler/history_fixture.h"

typedef struct fixture {
    tmp_dir d;
    history h;
    tide_trace *t;
    tide_rng rng;
    int64_t first_kept; ///< events before it were dropped; 0: none
} fixture;

static inline int64_t end_ns(const fixture *f) { return f->h.events[f->h.n - 1].t_ns; }
/// The last event that was dropped: 0, when none was.
static inline int64_t base_event(const fixture *f) { return f->first_kept > 0 ? f->first_kept - 1 : 0; }
static inline int64_t base_ns(const fixture *f) { return base_event(f) > 0 ? f->h.events[base_event(f) - 1].t_ns : 0; }
static inline int64_t any_event(fixture *f) {
    return base_event(f) + (int64_t)tide_rng_below(&f->rng, f->h.n - (uint64_t)base_event(f) + 1);
}
static inline int64_t any_ns(fixture *f) {
    return base_ns(f) + (int64_t)tide_rng_below(&f->rng, (uint64_t)(end_ns(f) - base_ns(f)) + 20);
}

// ---- live sets ----

/// Blocks alive at any moment between event `before` and event `last`, both included.
static inline void check_set(const fixture *f, const tide_live_set *s, int64_t before, int64_t last) {
    uint64_t requested = 0, reserved = 0;
    size_t n = 0;
    for (size_t i = 0; i < f->h.n_blocks; i++) {
        const h_block *b = &f->h.blocks[i];
        if (b->alloc.id > last || (b->end_event != 0 && b->end_event <= before)) continue;
        n++;
        requested += (uint64_t)b->alloc.requested_bytes;
        reserved += (uint64_t)b->alloc.reserved_bytes;
        const tide_live *found = NULL; // by block number, then event: search the block, step to the event
        size_t lo = 0, hi = s->n;
        while (lo < hi) {
            const size_t mid = (lo + hi) / 2;
            const tide_live *x = &s->items[mid];
            if (x->block_id == (uint64_t)b->alloc.block_id && x->alloc_event == (uint64_t)b->alloc.id) found = x;
            if (x->block_id < (uint64_t)b->alloc.block_id ||
                (x->block_id == (uint64_t)b->alloc.block_id && x->alloc_event < (uint64_t)b->alloc.id)) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        if (found == NULL) fail_msg("block %lld is missing", (long long)b->alloc.block_id);
        assert_int_equal(found->requested_bytes, b->alloc.requested_bytes);
        assert_int_equal(found->reserved_bytes, b->alloc.reserved_bytes);
        assert_int_equal(found->alloc_ns, b->alloc.t_ns);
        assert_int_equal(found->kind, b->alloc.kind);
        assert_int_equal(found->thread, b->alloc.thread);
        assert_int_equal(found->address, b->alloc.address);
        assert_true(found->stream == (uint64_t)b->alloc.stream);
        assert_string_equal(found->device, h_devices[b->alloc.device - 1]);
        assert_string_equal(found->allocator, "cpu");
        assert_int_equal(found->name[0] == '\0', b->alloc.tag_id == 0);
        assert_int_equal(found->scope_index, b->alloc.scope_id < 2 ? -1 : b->alloc.scope_id - 2);
        assert_int_equal(found->free_requested, b->requested_event != 0 && b->requested_event <= before);
    }
    assert_int_equal(s->n, n);
    assert_int_equal(s->requested_bytes, requested);
    assert_int_equal(s->reserved_bytes, reserved);
    assert_int_equal(s->event_id, last);
}

static inline void check_live_sets(fixture *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_live_set s;
    for (int i = 0; i < tide_test_rounds(10, 60); i++) {
        int64_t id = any_event(f);
        if (i < 12) id = (int64_t)(f->h.n / 12) * i / 1024 * 1024 + i % 3 - 1; // around the edges of leaves
        if (id < base_event(f)) id = base_event(f);
        assert_tide_ok(tide_trace_live_set_after(f->t, (uint64_t)id, &s, &err), &err);
        check_set(f, &s, id, id);
        tide_live_set_deinit(&s);
        const int64_t t_ns = any_ns(f);
        assert_tide_ok(tide_trace_live_set(f->t, (uint64_t)t_ns, &s, &err), &err);
        check_set(f, &s, h_event_at(&f->h, t_ns), h_event_at(&f->h, t_ns));
        assert_int_equal(s.t_ns, t_ns);
        tide_live_set_deinit(&s);
        const int64_t t1 = t_ns + (int64_t)tide_rng_below(&f->rng, 20000);
        if (t_ns == base_ns(f) && t_ns > 0) continue; // an event of that moment was dropped
        assert_tide_ok(tide_trace_alive_between(f->t, (uint64_t)t_ns, (uint64_t)t1, &s, &err), &err);
        check_set(f, &s, h_event_at(&f->h, t_ns - 1), h_event_at(&f->h, t1));
        tide_live_set_deinit(&s);
    }
    // Around each snapshot, from far away each time.
    tide_text snapshots = {0};
    assert_tide_ok(tide_trace_sql(f->t, "SELECT event_id FROM snapshot", "|", 0, &snapshots, &err), &err);
    for (char *p = strchr(snapshots.data, '\n') + 1; *p != '\0'; p++) {
        const int64_t at = strtoll(p, &p, 10);
        for (int64_t id = at + 1; id >= at - 1; id--) {
            if (id < base_event(f) || id > (int64_t)f->h.n) continue;
            assert_tide_ok(tide_trace_live_set_after(f->t, (uint64_t)id, &s, &err), &err);
            check_set(f, &s, id, id);
            tide_live_set_deinit(&s);
        }
    }
    tide_text_deinit(&snapshots);
    // Consecutive events, as in scrolling.
    for (int64_t id = base_event(f) + 1000; id < base_event(f) + 1040 && id < (int64_t)f->h.n; id++) {
        assert_tide_ok(tide_trace_live_set_after(f->t, (uint64_t)id, &s, &err), &err);
        check_set(f, &s, id, id);
        tide_live_set_deinit(&s);
    }
    assert_tide_status(tide_trace_live_set_after(f->t, f->h.n + 1, &s, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_ok(tide_trace_live_set(f->t, UINT64_MAX, &s, &err), &err);
    check_set(f, &s, (int64_t)f->h.n, (int64_t)f->h.n);
    tide_live_set_deinit(&s);
}

// ---- peaks ----

static inline void check_peak(fixture *f, int kind, int device, int64_t t0, int64_t t1) {
    tide_error err = TIDE_ERROR_INIT;
    const int64_t before = h_event_at(&f->h, t0 - 1), last = h_event_at(&f->h, t1);
    int64_t high = h_bytes(&f->h, kind, device, before), high_event = before, high_ns = t0;
    for (int64_t id = before + 1; id <= last; id++) {
        const int64_t bytes = h_bytes(&f->h, kind, device, id);
        if (bytes <= high) continue;
        high = bytes;
        high_event = id;
        high_ns = f->h.events[id - 1].t_ns;
    }
    uint64_t bytes, event, t_ns;
    assert_tide_ok(tide_trace_peak_between(f->t, kind, device < 0 ? NULL : h_devices[device], (uint64_t)t0,
                                           (uint64_t)t1, &bytes, &event, &t_ns, &err),
                   &err);
    if ((int64_t)bytes != high || (int64_t)event != high_event || (int64_t)t_ns != high_ns)
        fail_msg("kind %d, device %d, [%lld, %lld]: got %llu at event %llu, %llu ns; want %lld at event %lld, %lld ns",
                 kind, device, (long long)t0, (long long)t1, (unsigned long long)bytes, (unsigned long long)event,
                 (unsigned long long)t_ns, (long long)high, (long long)high_event, (long long)high_ns);
}

static inline void check_peaks(fixture *f) {
    for (int device = -1; device < H_DEVICES; device++) {
        for (int kind = -1; kind < TIDE_N_KINDS; kind++) {
            check_peak(f, kind, device, base_ns(f) + (base_ns(f) > 0), end_ns(f));
            check_peak(f, kind, device, base_ns(f) + (base_ns(f) > 0), end_ns(f) + 100);
            for (int i = 0; i < tide_test_rounds(4, 12); i++) {
                const int64_t t0 = 1 + any_ns(f);
                check_peak(f, kind, device, t0, t0 + (int64_t)tide_rng_below(&f->rng, i % 2 == 0 ? 500 : 400000));
            }
            // Windows that begin and end with a leaf, and one event beside it.
            for (int i = -1; i <= 1; i++) {
                const int64_t first = base_event(f) / 1024 * 1024 + 3 * 1024 + 1 + i, last = first + 3 * 1024 - 1;
                if (last <= (int64_t)f->h.n)
                    check_peak(f, kind, device, f->h.events[first - 1].t_ns, f->h.events[last - 1].t_ns);
            }
        }
    }
    tide_error err = TIDE_ERROR_INIT;
    uint64_t bytes;
    assert_tide_status(tide_trace_peak_between(f->t, -1, "tpu:7", 0, 1, &bytes, NULL, NULL, &err), TIDE_ERR_NOT_FOUND);
    assert_tide_status(tide_trace_peak_between(f->t, -1, NULL, 2, 1, &bytes, NULL, NULL, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_trace_peak_between(f->t, 99, NULL, 1, 2, &bytes, NULL, NULL, &err), TIDE_ERR_INVALID);
    for (int i = 0; i < 60; i++) {
        const int64_t t_ns = any_ns(f);
        const int kind = (int)tide_rng_below(&f->rng, 1 + TIDE_N_KINDS) - 1;
        assert_tide_ok(tide_trace_live_at(f->t, kind, (uint64_t)t_ns, &bytes, &err), &err);
        assert_int_equal(bytes, h_bytes(&f->h, kind, -1, h_event_at(&f->h, t_ns)));
    }
}

// ---- columns ----

/// As plainly as can be: what holds when the column begins, unless the curve has a point right there, and
/// every point.
static inline void naive_column(const fixture *f, int kind, int device, int64_t lo, int64_t hi, int64_t *low,
                                int64_t *high) {
    const int64_t before = h_event_at(&f->h, lo - 1), last = h_event_at(&f->h, hi - 1);
    bool is_carried = true;
    *low = INT64_MAX;
    *high = -1;
    for (int64_t id = last; id >= before; id--) {
        if (id > before && !h_is_of(&f->h, kind, device, id)) continue;
        if (id > before && f->h.events[id - 1].t_ns == lo) is_carried = false;
        if (id == before && !is_carried) continue;
        const int64_t bytes = h_bytes(&f->h, kind, device, id);
        if (bytes < *low) *low = bytes;
        if (bytes > *high) *high = bytes;
    }
}

static inline void check_columns(fixture *f, int kind, int device, int64_t t0, int64_t t1, size_t n,
                                 tide_columns_mode mode) {
    enum { MAX = 400 };
    tide_error err = TIDE_ERROR_INIT;
    uint64_t low[MAX], high[MAX];
    assert_true(n <= MAX);
    assert_tide_ok(tide_trace_columns(f->t, kind, device < 0 ? NULL : h_devices[device], (uint64_t)t0, (uint64_t)t1, n,
                                      mode, low, high, &err),
                   &err);
    for (size_t i = 0; i < n; i++) {
        const int64_t lo = t0 + (t1 - t0) * (int64_t)i / (int64_t)n;
        int64_t hi = t0 + (t1 - t0) * ((int64_t)i + 1) / (int64_t)n, want_low, want_high;
        if (hi <= lo) hi = lo + 1;
        naive_column(f, kind, device, lo, hi, &want_low, &want_high);
        if (mode == TIDE_COLUMNS_EXACT && ((int64_t)low[i] != want_low || (int64_t)high[i] != want_high))
            fail_msg("kind %d, device %d, column %zu of %zu over [%lld, %lld): got %llu ... %llu, want %lld ... %lld",
                     kind, device, i, n, (long long)t0, (long long)t1, (unsigned long long)low[i],
                     (unsigned long long)high[i], (long long)want_low, (long long)want_high);
        // Fast: nothing is lost, and what is shown too much happened within the leaves that the column meets.
        assert_true((int64_t)low[i] <= want_low && (int64_t)high[i] >= want_high);
        if ((int64_t)low[i] == want_low && (int64_t)high[i] == want_high) continue;
        const int64_t before = h_event_at(&f->h, lo - 1), last = h_event_at(&f->h, hi - 1);
        int64_t first_near = (before - 1) / 1024 * 1024, last_near = (last + 1024) / 1024 * 1024;
        if (last_near > (int64_t)f->h.n) last_near = (int64_t)f->h.n;
        if (first_near < 0) first_near = 0;
        int64_t near_low = INT64_MAX, near_high = -1;
        for (int64_t id = first_near; id <= last_near; id++) {
            const int64_t bytes = h_bytes(&f->h, kind, device, id);
            if (bytes < near_low) near_low = bytes;
            if (bytes > near_high) near_high = bytes;
        }
        if ((int64_t)low[i] < near_low || (int64_t)high[i] > near_high)
            fail_msg("kind %d, device %d, column %zu of %zu: %llu ... %llu is made up, %lld ... %lld is near", kind,
                     device, i, n, (unsigned long long)low[i], (unsigned long long)high[i], (long long)near_low,
                     (long long)near_high);
    }
}

static inline void check_all_columns(fixture *f) {
    for (int device = -1; device < H_DEVICES; device++) {
        for (int kind = -1; kind < TIDE_N_KINDS; kind++) {
            for (int mode = TIDE_COLUMNS_FAST; mode <= TIDE_COLUMNS_EXACT; mode++) {
                const int64_t t0 = base_ns(f) + (base_ns(f) > 0);
                check_columns(f, kind, device, t0, end_ns(f) + 1, 100, (tide_columns_mode)mode);
                check_columns(f, kind, device, t0, end_ns(f) + 1, 1, (tide_columns_mode)mode);
            }
        }
    }
    for (int i = 0; i < tide_test_rounds(10, 60); i++) {
        const int64_t t0 = 1 + any_ns(f);
        const int64_t t1 = t0 + (int64_t)tide_rng_below(&f->rng, i % 3 == 0 ? 200 : 300000);
        const int kind = i % 2 == 0 ? -1 : (int)tide_rng_below(&f->rng, TIDE_N_KINDS);
        const int device = (int)tide_rng_below(&f->rng, 3) - 1;
        check_columns(f, kind, device, t0, t1, 1 + (size_t)tide_rng_below(&f->rng, 300),
                      i % 4 == 0 ? TIDE_COLUMNS_FAST : TIDE_COLUMNS_EXACT);
    }
}

// ---- events ----

static inline void check_events(fixture *f) {
    enum { AT_ONCE = 700 };
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_event *events = tide_host_alloc(AT_ONCE * sizeof *events);
    assert_non_null(events);
    size_t n = 0, at = (size_t)base_event(f);
    for (uint64_t from = 0;; from = events[n - 1].id + 1) {
        assert_tide_ok(tide_trace_events(f->t, from, events, AT_ONCE, &n, &err), &err);
        if (n == 0) break;
        for (size_t i = 0; i < n; i++, at++) {
            const tide__event *want = &f->h.events[at];
            assert_int_equal(events[i].id, want->id);
            assert_int_equal(events[i].t_ns, want->t_ns);
            assert_string_equal(events[i].op, tide__op_name(want->op));
            assert_int_equal(events[i].block_id, tide__event_is_of_process(want) ? 0 : want->block_id);
            if (tide__event_is_of_process(want)) assert_int_equal(events[i].process, h_process(want));
            assert_int_equal(events[i].requested_bytes, want->requested_bytes);
            assert_int_equal(events[i].address, want->address);
            assert_int_equal(events[i].thread, want->thread);
            assert_string_equal(events[i].device, want->device == 0 ? "" : h_devices[want->device - 1]);
            assert_int_equal(events[i].kind[0] == '\0', want->kind == TIDE__NO_KIND);
        }
    }
    assert_int_equal(at, f->h.n);
    tide_host_free(events);
    for (int i = 0; i < 200; i++) {
        const int64_t t_ns = i == 0 ? base_ns(f) : any_ns(f);
        uint64_t id;
        assert_tide_ok(tide_trace_event_at(f->t, (uint64_t)t_ns, &id, &err), &err);
        assert_int_equal(id, h_event_at(&f->h, t_ns));
    }
    tide_trace_mark *marks;
    assert_tide_ok(tide_trace_marks(f->t, &marks, &n, &err), &err);
    at = 0;
    for (size_t i = (size_t)base_event(f); i < f->h.n; i++) {
        const tide__event *e = &f->h.events[i];
        if (e->op != TIDE_MEM_SNAPSHOT) continue;
        assert_true(at < n);
        assert_int_equal(marks[at].event_id, e->id);
        assert_int_equal(marks[at].t_ns, e->t_ns);
        assert_true(marks[at++].name[0] != '\0');
    }
    assert_int_equal(at, n);
    assert_true(n > 0 || f->h.n < 2000);
    tide_trace_marks_free(marks);
}

// ---- runs ----

/// tide_trace_peak and tide_trace_kinds of runs 0 to 2.
static inline void check_runs(fixture *f) {
    tide_error err = TIDE_ERROR_INIT;
    const int64_t n = (int64_t)f->h.n;
    sqlite3 *db = sql_open(f->d.file);
    for (int run = 0; run <= 2; run++) {
        char query[128];
        snprintf(query, sizeof query, "SELECT first_event, last_event, begin_ns FROM run WHERE id = %d", run);
        sqlite3_stmt *stmt;
        assert_int_equal(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
        const bool has_row = sqlite3_step(stmt) == SQLITE_ROW;
        const int64_t first = has_row ? sqlite3_column_int64(stmt, 0) : 1;
        const int64_t last = has_row ? sqlite3_column_int64(stmt, 1) : n;
        const int64_t begin_ns = has_row ? sqlite3_column_int64(stmt, 2) : f->h.events[0].t_ns;
        sqlite3_finalize(stmt);
        tide_trace_kind *kinds;
        size_t n_kinds, seen = 0;
        assert_tide_ok(tide_trace_kinds(f->t, run, &kinds, &n_kinds, &err), &err);
        for (int kind = -1; kind < TIDE_N_KINDS; kind++) {
            int64_t high = h_bytes(&f->h, kind, -1, first - 1), high_ns = begin_ns;
            for (int64_t id = first; id <= last; id++) {
                if (h_bytes(&f->h, kind, -1, id) <= high) continue;
                high = h_bytes(&f->h, kind, -1, id);
                high_ns = f->h.events[id - 1].t_ns;
            }
            uint64_t bytes, t_ns;
            assert_tide_ok(tide_trace_peak(f->t, run, kind, &bytes, &t_ns, &err), &err);
            assert_int_equal(bytes, high);
            assert_int_equal(t_ns, high_ns);
        }
        for (size_t i = 0; i < n_kinds; i++) {
            const int device = strcmp(kinds[i].device, "cpu") == 0 ? 0 : 1, kind = (int)kinds[i].kind;
            int64_t high = h_bytes(&f->h, kind, device, first - 1);
            uint64_t n_allocs = 0, n_frees = 0, requested = 0;
            for (int64_t id = first; id <= last; id++)
                if (h_bytes(&f->h, kind, device, id) > high) high = h_bytes(&f->h, kind, device, id);
            for (size_t k = 0; k < f->h.n_blocks; k++) {
                const h_block *b = &f->h.blocks[k];
                if (b->alloc.kind != kind || b->alloc.device != device + 1) continue;
                n_frees += b->free_event >= first && b->free_event <= last;
                if (b->alloc.id < first || b->alloc.id > last) continue;
                n_allocs++;
                requested += (uint64_t)b->alloc.requested_bytes;
            }
            assert_int_equal(kinds[i].peak_bytes, high);
            assert_int_equal(kinds[i].live_at_end_bytes, h_bytes(&f->h, kind, device, last));
            assert_int_equal(kinds[i].n_allocs, n_allocs);
            assert_int_equal(kinds[i].n_frees, n_frees);
            assert_int_equal(kinds[i].requested_bytes, requested);
            seen += n_allocs;
        }
        tide_trace_kinds_free(kinds);
        for (size_t k = 0; k < f->h.n_blocks; k++)
            seen -= f->h.blocks[k].alloc.id >= first && f->h.blocks[k].alloc.id <= last;
        assert_int_equal(seen, 0);
    }
    sqlite3_close(db);
}

static inline void check_blocks(fixture *f) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_block *blocks;
    size_t n;
    assert_tide_ok(tide_trace_blocks(f->t, 0, &blocks, &n, &err), &err);
    size_t n_seen = 0;
    for (size_t i = 0; i < f->h.n_blocks && f->h.blocks[i].alloc.id <= (int64_t)f->h.n; i++, n_seen++) {
        const h_block *want = &f->h.blocks[i];
        const bool is_freed = want->free_event != 0 && want->free_event <= (int64_t)f->h.n;
        assert_true(i < n);
        assert_int_equal(blocks[i].id, want->alloc.block_id);
        assert_int_equal(blocks[i].alloc_ns, want->alloc.t_ns);
        assert_int_equal(blocks[i].requested_bytes, want->alloc.requested_bytes);
        assert_true(blocks[i].free_ns == (is_freed ? (uint64_t)want->free_ns : UINT64_MAX));
        const bool is_gone = want->end_event != 0 && want->end_event <= (int64_t)f->h.n;
        assert_true(blocks[i].end_ns == (is_gone ? (uint64_t)want->end_ns : UINT64_MAX));
    }
    assert_int_equal(n, n_seen);
    tide_trace_blocks_free(blocks, n);
}

#endif
