// SPDX-License-Identifier: MIT
//
// Leaks: what was never freed, by who made it, and which of them grow.
#include "analysis/pools.h"

#include "tests/analysis/allocator_fixture.h"

enum { N_RUNS = 5 };

/// Per run: "cache" is kept (grows), "temp" is freed, "table" is kept in runs 0 and 1 alone; "weights" once, before.
static void record_leaks(const char *path, bool closes_weights) {
    feeder f;
    feeder_open(&f, path, 0, false);
    uint64_t id = 1, t = 1000;
    feed(&f, t, TIDE_MEM_ALLOC, id++, TIDE_KIND_PERSISTENT, 5000, "weights");
    for (int run = 0; run < N_RUNS; run++) {
        const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
        feed_begin_run(&f, t += 100, &info, NULL);
        const tide_scope op = {.name = "attend", .kind = TIDE_SCOPE_OPERATOR, .index = run};
        feed_scope(&f, t += 10, true, &op);
        feed(&f, t += 10, TIDE_MEM_ALLOC, id++, TIDE_KIND_WORKSPACE, 200, "cache");
        feed(&f, t += 10, TIDE_MEM_ALLOC, id++, TIDE_KIND_WORKSPACE, 300, "cache");
        feed_free(&f, t += 10, id - 1, TIDE_KIND_WORKSPACE, 300, "cache"); // the second one is freed
        feed(&f, t += 10, TIDE_MEM_ALLOC, id++, TIDE_KIND_WORKSPACE, 7000, "temp");
        feed_free(&f, t += 10, id - 1, TIDE_KIND_WORKSPACE, 7000, "temp");
        if (run < 2) feed(&f, t += 10, TIDE_MEM_ALLOC, id++, TIDE_KIND_DEFAULT, 9000, "table");
        feed_scope(&f, t += 10, false, &op);
        feed_end_run(&f, t += 10);
    }
    if (closes_weights) feed_free(&f, t += 10, 1, TIDE_KIND_PERSISTENT, 5000, "weights");
    feeder_close(&f);
}

static void by_site_those_that_grow_first(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    record_leaks(dir.file, true);
    tide_subject *s = subject_of_trace(dir.file, 0);
    tide_leaks leaks;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_leaks_find(s, &leaks, &err), TIDE_ERR_INVALID); // items are not loaded
    const tide_items *items = load_items(s);
    assert_tide_ok(tide_leaks_find(s, &leaks, &err), &err);
    assert_int_equal(leaks.n, 2);
    assert_int_equal(leaks.bytes, N_RUNS * 200 + 2 * 9000);
    const tide_leak *cache = &leaks.items[0], *table = &leaks.items[1]; // the smaller one grows
    assert_string_equal(cache->name, "cache");
    assert_string_equal(cache->owner, "attend");
    assert_string_equal(cache->device, "cpu");
    assert_int_equal(cache->kind, TIDE_KIND_WORKSPACE);
    assert_true(cache->grows);
    assert_int_equal(cache->n, N_RUNS);
    assert_int_equal(cache->n_allocated, 2 * N_RUNS);
    assert_int_equal(cache->bytes, N_RUNS * 200);
    assert_int_equal(cache->first, 1120);
    assert_int_equal(tide_items_begin(items, cache->first_item), 1120);
    assert_true(cache->last > cache->first);
    const double seconds = (double)(cache->last - cache->first) / 1e9;
    assert_true(cache->per_second > 0.999 * 1000 / seconds && cache->per_second < 1.001 * 1000 / seconds);
    assert_string_equal(table->name, "table");
    assert_false(table->grows);
    assert_int_equal(table->n, 2);
    assert_int_equal(table->n_allocated, 2);
    tide_leaks_deinit(&leaks);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

/// In a trace that is complete weights that were never freed are leaks too.
static void weights_of_a_complete_trace(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    record_leaks(dir.file, false);
    tide_subject *s = subject_of_trace(dir.file, 0);
    tide_leaks leaks;
    tide_error err = TIDE_ERROR_INIT;
    load_items(s);
    assert_tide_ok(tide_leaks_find(s, &leaks, &err), &err);
    assert_int_equal(leaks.n, 3);
    assert_string_equal(leaks.items[2].name, "weights");
    assert_int_equal(leaks.items[2].n, 1);
    assert_true(leaks.items[2].per_second == 0);
    tide_leaks_deinit(&leaks);
    tide_subject_destroy(s);
    tmp_dir_remove(&dir);
}

/// As long as the trace goes on, weights are in use.
static void weights_while_it_is_recorded(void **state) {
    (void)state;
    tmp_dir dir;
    tmp_dir_make(&dir);
    feeder f;
    feeder_open(&f, dir.file, 1, false);
    feed(&f, 1000, TIDE_MEM_ALLOC, 1, TIDE_KIND_PERSISTENT, 5000, "weights");
    feed(&f, 1010, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, 64, "kept");
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    tide_subject *s = subject_of_trace(dir.file, 0);
    tide_leaks leaks;
    assert_true(tide_subject_get_facts(s)->is_recording);
    load_items(s);
    assert_tide_ok(tide_leaks_find(s, &leaks, &err), &err);
    assert_int_equal(leaks.n, 1);
    assert_string_equal(leaks.items[0].name, "kept");
    tide_leaks_deinit(&leaks);
    tide_subject_destroy(s);
    feeder_close(&f);
    tmp_dir_remove(&dir);
}

/// Sums over random work are those of the blocks that were held at the end.
static void sums_of_random_work(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        tmp_dir dir;
        working w;
        tmp_dir_make(&dir);
        work_open(&w, dir.file);
        work_at_random(&w, seed, 200);
        uint64_t held = 0;
        size_t n_held = 0;
        for (size_t i = 0; i < N_WORK_SLOTS; i++) {
            if (w.slots[i] == NULL) continue;
            held += w.slots[i]->mem.requested_bytes;
            n_held++;
        }
        work_close(&w);
        tide_subject *s = subject_of_trace(dir.file, 0);
        const tide_items *items = load_items(s);
        tide_leaks leaks;
        assert_tide_ok(tide_leaks_find(s, &leaks, &err), &err);
        assert_int_equal(leaks.bytes, held);
        size_t n = 0, n_allocated = 0;
        for (size_t i = 0; i < leaks.n; i++) {
            n += leaks.items[i].n;
            n_allocated += leaks.items[i].n_allocated;
        }
        assert_int_equal(n, n_held);
        assert_true(n_allocated <= items->n && n_allocated >= n);
        tide_leaks_deinit(&leaks);
        tide_subject_destroy(s);
        tmp_dir_remove(&dir);
    }
}

static void a_plan_has_none(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *s = subject_of_plan(demo_plan_make());
    tide_leaks leaks;
    load_items(s);
    assert_tide_ok(tide_leaks_find(s, &leaks, &err), &err);
    assert_int_equal(leaks.n, 0);
    tide_leaks_deinit(&leaks);
    tide_subject_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(by_site_those_that_grow_first),
        tide_unit_test(weights_of_a_complete_trace),
        tide_unit_test(weights_while_it_is_recorded),
        tide_unit_test(sums_of_random_work),
        tide_unit_test(a_plan_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
