// SPDX-License-Identifier: MIT
//
// A run that began after a reader had opened the trace: the reader sees the table of runs as it is now, but the events
// as they were at the open. The run is listed without events; a refresh shows its events.
#include "profiler/moments.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

static void a_run_younger_than_the_open_trace(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir dir;
    feeder f;
    tide_trace *t = NULL;
    tide_trace_kind *kinds = NULL;
    size_t n = 0;
    tmp_dir_make(&dir);
    feeder_open(&f, dir.file, 1, false);
    feed(&f, 1000, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 100, "before");
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    assert_tide_ok(tide_trace_open(dir.file, &t, &err), &err);
    for (uint64_t id = 2; id < 20; id++)
        feed(&f, 1000 + id, TIDE_MEM_ALLOC, id, TIDE_KIND_DEFAULT, 100, "meanwhile"); // the run begins far behind
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    assert_int_equal(feed_begin_run(&f, 1100, &info, NULL), 1);
    feed(&f, 1110, TIDE_MEM_ALLOC, 20, TIDE_KIND_WORKSPACE, 64, "inside");
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);

    assert_tide_ok(tide_trace_kinds(t, 1, &kinds, &n, &err), &err);
    for (size_t i = 0; i < n; i++) assert_true(kinds[i].kind != TIDE_KIND_WORKSPACE);
    tide_trace_kinds_free(kinds);
    assert_tide_ok(tide_trace_refresh(t, NULL, &err), &err);
    assert_tide_ok(tide_trace_kinds(t, 1, &kinds, &n, &err), &err);
    bool any = false;
    for (size_t i = 0; i < n; i++) any = any || (kinds[i].kind == TIDE_KIND_WORKSPACE && kinds[i].peak_bytes == 64);
    assert_true(any);
    tide_trace_kinds_free(kinds);
    tide_trace_close(t);
    assert_tide_ok(tide_recorder_end_run(f.rec, &err), &err);
    feeder_close(&f);
    tmp_dir_remove(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(a_run_younger_than_the_open_trace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
