// SPDX-License-Identifier: MIT
//
// Lives of blocks, peaks between events, and peaks without all blocks of a site, each counted again from the events.
#include "tests/analysis/explain_fixture.h"

static void lives_of_blocks(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    tide_subject *s = subject_of_trace(d.file, 0);
    tide_trace *t = tide_subject_trace(s);
    read_history(t, h);
    uint64_t event, bytes;
    for (size_t i = 0; i < h->n_blocks; i++) {
        const block *b = &h->blocks[i];
        assert_tide_ok(tide_trace_end_event(t, b->id, b->alloc_event, &event, &err), &err);
        assert_int_equal(event, b->free_event);
        assert_tide_status(tide_trace_end_event(t, b->id, b->alloc_event + 1, &event, &err), TIDE_ERR_NOT_FOUND);
    }
    for (uint64_t first = 0; first <= h->n_events; first += 3) {
        for (uint64_t last = first; last <= h->n_events; last += 5) {
            uint64_t want = 0, at = first;
            for (uint64_t k = first; k <= last; k++) {
                if (h->bytes[k] <= want && k > first) continue;
                want = h->bytes[k];
                at = k;
            }
            assert_tide_ok(tide_trace_peak_of_events(t, -1, NULL, first, last, &bytes, &event, NULL, &err), &err);
            assert_int_equal(bytes, want);
            assert_int_equal(event, at);
        }
    }
    assert_tide_status(tide_trace_peak_of_events(t, -1, NULL, 5, 4, &bytes, &event, NULL, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_trace_peak_of_events(t, -1, NULL, 5, 99999, &bytes, &event, NULL, &err),
                       TIDE_ERR_NOT_FOUND);
    tide_subject_destroy(s);
    free(h);
    tmp_dir_remove(&d);
}

/// More sites than one replay has room for; asked twice, and in parts of the trace.
static void many_sites(void **state) {
    (void)state;
    enum { N_NAMES = 300 };
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir d;
    feeder f;
    tide_rng rng = {8};
    tmp_dir_make(&d);
    feeder_open(&f, d.file, 0, false);
    uint64_t sizes[2 * N_NAMES + 1];
    for (uint64_t id = 1; id <= 2 * N_NAMES; id++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", (int)(id % N_NAMES));
        sizes[id] = 1 + tide_rng_below(&rng, 9000);
        feed(&f, 1000 + 10 * id, TIDE_MEM_ALLOC, id, TIDE_KIND_WORKSPACE, sizes[id], name);
        if (id > 40) feed_free(&f, 1005 + 10 * id, id - 40, TIDE_KIND_WORKSPACE, sizes[id - 40], "");
    }
    feeder_close(&f);
    tide_subject *s = subject_of_trace(d.file, 0);
    tide_trace *t = tide_subject_trace(s);
    history *h = calloc(1, sizeof *h);
    tide_trace_alike *sites = calloc(N_NAMES, sizeof *sites);
    assert_true(h != NULL && sites != NULL);
    read_history(t, h);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N_NAMES; i++) {
            tide_trace_block_row row;
            assert_tide_ok(tide_trace_find_block(t, h->blocks[i].id, &row, &err), &err);
            sites[i] = (tide_trace_alike){.name = row.name, .scope = row.scope};
        }
        assert_tide_ok(tide_trace_peaks_without(t, 1, h->n_events, sites, N_NAMES, &err), &err);
        for (size_t i = 0; i < N_NAMES; i++) {
            uint64_t event, n;
            assert_int_equal(sites[i].peak_bytes, peak_without(h, &h->blocks[i], true, &event, &n));
            assert_int_equal(sites[i].event, event);
            assert_int_equal(sites[i].n_blocks, n);
        }
        // Other events have other answers.
        tide_trace_alike one = {.name = sites[0].name, .scope = sites[0].scope};
        assert_tide_ok(tide_trace_peaks_without(t, 1, 1, &one, 1, &err), &err);
        assert_int_equal(one.peak_bytes, 0);
    }
    free(sites);
    free(h);
    tide_subject_destroy(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(lives_of_blocks), tide_unit_test(many_sites)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
