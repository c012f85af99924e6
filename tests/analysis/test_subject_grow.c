// SPDX-License-Identifier: MIT
//
// A subject that grows: what a refresh shows is what opening the trace at that time shows.
#include "tests/analysis/allocator_fixture.h"

static void assert_same_kinds(const tide_subject_facts *a, const tide_subject_facts *b) {
    assert_int_equal(a->n_kinds, b->n_kinds);
    for (size_t i = 0; i < a->n_kinds; i++) {
        const tide_trace_kind *x = &a->kinds[i], *y = &b->kinds[i];
        assert_int_equal(x->kind, y->kind);
        assert_string_equal(x->device, y->device);
        assert_int_equal(x->requested_bytes, y->requested_bytes);
        assert_int_equal(x->peak_bytes, y->peak_bytes);
        assert_int_equal(x->peak_reserved_bytes, y->peak_reserved_bytes);
        assert_int_equal(x->predicted_bytes, y->predicted_bytes);
        assert_int_equal(x->n_allocs, y->n_allocs);
        assert_int_equal(x->n_frees, y->n_frees);
        assert_int_equal(x->live_at_end_bytes, y->live_at_end_bytes);
    }
}

static void assert_same(const tide_subject *grown, const char *path, int64_t run_id) {
    tide_subject *fresh = subject_of_trace(path, run_id);
    const tide_subject_facts *a = tide_subject_get_facts(grown), *b = tide_subject_get_facts(fresh);
    assert_same_kinds(a, b);
    assert_int_equal(a->n_items, b->n_items);
    assert_int_equal(a->n_events, b->n_events);
    assert_int_equal(a->begin, b->begin);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_int_equal(a->peak.event, b->peak.event);
    tide_subject_destroy(fresh);
}

/// Sums of blocks that were allocated or alive in the events of the trace so far, from the list of blocks.
static void assert_counted(tide_subject *s) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_block *blocks;
    size_t n;
    uint64_t requested = 0, live = 0, n_frees = 0, want_requested = 0, want_live = 0, want_frees = 0, n_allocs = 0;
    const tide_subject_facts *f = tide_subject_get_facts(s);
    assert_tide_ok(tide_trace_blocks(tide_subject_trace(s), 0, &blocks, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        want_requested += blocks[i].requested_bytes;
        want_frees += blocks[i].free_ns != UINT64_MAX;
        if (blocks[i].free_ns == UINT64_MAX) want_live += blocks[i].requested_bytes;
    }
    for (size_t i = 0; i < f->n_kinds; i++) {
        requested += f->kinds[i].requested_bytes;
        live += f->kinds[i].live_at_end_bytes;
        n_allocs += f->kinds[i].n_allocs;
        n_frees += f->kinds[i].n_frees;
    }
    assert_int_equal(n_allocs, n);
    assert_int_equal(n_frees, want_frees);
    assert_int_equal(requested, want_requested);
    assert_int_equal(live, want_live);
    tide_trace_blocks_free(blocks, n);
}

/// The whole trace and a run of it, part after part, with questions about other moments in between.
static void kinds_of_what_grows(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir dir;
    working w;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    work_at_random(&w, 3, 80);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    int64_t run_id;
    w.now += WORK_STEP_NS;
    assert_tide_ok(tide_recorder_begin_run(w.rec, &info, NULL, &run_id, &err), &err);
    tide_subject *s[2] = {NULL, NULL};
    const int64_t runs[2] = {0, run_id};
    for (int part = 0; part < 6; part++) {
        if (part != 2) work_at_random(&w, (uint64_t)part + 20, 50);
        if (part == 2) { // one kind alone
            for (size_t i = 0; i < N_WORK_SLOTS; i++)
                if (w.slots[i] != NULL) work_free(&w, i);
        }
        assert_tide_ok(tide_recorder_flush(w.rec, &err), &err);
        for (int k = 0; k < 2; k++) {
            bool grew = true;
            if (s[k] == NULL) s[k] = subject_of_trace(dir.file, runs[k]);
            assert_tide_ok(tide_subject_refresh(s[k], &grew, &err), &err);
            assert_same(s[k], dir.file, runs[k]);
            if (k == 0) assert_counted(s[k]);
            tide_live_items live;
            assert_tide_ok(tide_subject_live(s[k], tide_subject_get_facts(s[k])->peak, &live, &err), &err);
            tide_live_items_deinit(&live);
        }
    }
    w.now += WORK_STEP_NS;
    assert_tide_ok(tide_recorder_end_run(w.rec, &err), &err);
    work_close(&w);
    for (int k = 0; k < 2; k++) {
        assert_tide_ok(tide_subject_refresh(s[k], NULL, &err), &err);
        assert_same(s[k], dir.file, runs[k]);
        tide_subject_destroy(s[k]);
    }
    tmp_dir_remove(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(kinds_of_what_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
