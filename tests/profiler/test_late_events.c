// SPDX-License-Identifier: MIT
//
// Events that come later than others that happened after them: merged by their own time while the trace waits for them,
// and with both times where it did not.
#include <pthread.h>
#include <time.h>

#include "profiler/moments.h"
#include "profiler/query.h"
#include "tests/profiler/trace_fixture.h"

enum { N_FIRST = 1000, N_LATE = 10, MS = 1000000 };
#define BASE UINT64_C(1000000000000000000) ///< of the program's own clock

typedef struct late {
    feeder f;
    uint64_t first_block;
    size_t n;
} late;

static void nap(unsigned ms) { nanosleep(&(struct timespec){.tv_nsec = (long)ms * MS}, NULL); }

/// Ten events of 0 to 900 ms, from a thread of their own.
static void *put_late(void *ctx) {
    late *l = ctx;
    for (size_t i = 0; i < l->n; i++)
        feed(&l->f, BASE + i * 100 * MS, TIDE_MEM_ALLOC, l->first_block + i, TIDE_KIND_WORKSPACE, 64, "late");
    return NULL;
}

static void put_from_thread(const feeder *f, uint64_t first_block, size_t n) {
    late l = {.f = *f, .first_block = first_block, .n = n};
    l.f.thread = 2;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, put_late, &l), 0);
    pthread_join(thread, NULL);
}

static void open_with(feeder *f, const char *path, unsigned hold_back_ms, size_t ring_events) {
    *f = (feeder){.thread = 1};
    const tide_recorder_options opt = {.hold_back_ms = hold_back_ms, .ring_events = ring_events};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(path, &opt, &f->rec, &err), &err);
    f->obs = tide_recorder_observer(f->rec);
}

/// One event each millisecond for a second of the program's clock; the odd ones free what the even ones took.
static void put_first(feeder *f) {
    for (uint64_t i = 0; i < N_FIRST; i++)
        feed(f, BASE + i * MS, i % 2 == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED, i / 2 + 1, TIDE_KIND_DEFAULT, 8,
             "first");
}

static void check_whole(const char *path, uint64_t n_late) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    tide_trace_info info;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    assert_tide_ok(tide_trace_check(t, &err), &err);
    assert_tide_ok(tide_trace_get_info(t, &info, &err), &err);
    assert_int_equal(info.n_late, n_late);
    assert_int_equal(info.n_problems, 0);
    assert_int_equal(info.n_events, N_FIRST + N_LATE);
    tide_trace_close(t);
    assert_sql(path, "SELECT count(*) FROM event a JOIN event b ON b.id = a.id + 1 WHERE b.t_ns < a.t_ns", "0\n");
}

static void test_within_the_window_they_stand_by_their_time(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    open_with(&f, d.file, 0, 0); // as it is by default, for a program that gives times
    put_first(&f);
    nap(150); // three batches of a drain that would not wait
    put_from_thread(&f, 1001, N_LATE);
    feeder_close(&f);
    check_whole(d.file, 0);
    assert_sql(d.file, "SELECT count(*), min(t_ns), max(t_ns) FROM events WHERE name = 'late'",
               "10|1000000000000000000|1000000000900000000\n");
    assert_sql(d.file, "SELECT count(*) FROM problem", "0\n");
    // Each stands among those of its time: what is live there says so.
    assert_sql(d.file,
               "SELECT count(*) FROM events a JOIN events b ON b.event_id = a.event_id - 1 "
               "WHERE a.name = 'late' AND a.t_ns - b.t_ns > 1000000",
               "0\n");
    tmp_dir_remove(&d);
}

static void test_behind_the_window_both_times_are_kept(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    open_with(&f, d.file, TIDE_RECORD_NO_HOLD_BACK, 0);
    put_first(&f);
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    put_from_thread(&f, 1001, N_LATE);
    feeder_close(&f);
    check_whole(d.file, N_LATE);
    assert_sql(d.file, "SELECT count(*), min(own_ns), max(own_ns), min(t_ns) FROM late",
               "10|1000000000000000000|1000000000900000000|1000000000999000000\n");
    assert_sql(d.file, "SELECT group_concat(own_ns / 1000000 - 1000000000000, ' ') FROM late",
               "0 100 200 300 400 500 600 700 800 900\n");
    assert_sql(d.file, "SELECT count(*) FROM problems WHERE what LIKE 'came later%'", "10\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'n_late'", "10\n");
    tmp_dir_remove(&d);
}

/// In one thread the order in which it put them in stays, whatever times it gives.
static void test_a_thread_keeps_its_order(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    open_with(&f, d.file, 0, 0);
    const uint64_t ms[] = {5, 3, 4, 6, 6, 2, 7};
    for (uint64_t i = 0; i < 7; i++) feed(&f, BASE + ms[i] * MS, TIDE_MEM_ALLOC, i + 1, TIDE_KIND_DEFAULT, 8, NULL);
    feeder_close(&f);
    assert_sql(d.file, "SELECT group_concat(block_id), group_concat(t_ns / 1000000 - 1000000000000) FROM event",
               "1,2,3,4,5,6,7|5,5,5,6,6,6,7\n");
    assert_sql(d.file, "SELECT event_id, own_ns / 1000000 - 1000000000000 FROM late", "2|3\n3|4\n6|2\n");
    tmp_dir_remove(&d);
}

/// A ring that fills goes on: what is held back is bounded by half a ring, and nothing is lost or stands still.
static void test_full_rings_go_first(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    open_with(&f, d.file, 3600 * 1000, 64);
    put_first(&f);
    tide_recorder_stats stats;
    tide_recorder_get_stats(f.rec, &stats);
    assert_int_equal(stats.n_events, N_FIRST);
    assert_int_equal(stats.n_lost, 0);
    put_from_thread(&f, 1001, N_LATE);
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err); // a flush does not wait an hour
    assert_sql(d.file,
               "SELECT (SELECT count(*) FROM event) + (SELECT coalesce(sum(last_event - first_event + 1), 0) FROM "
               "event_chunk)",
               "1010\n");
    feeder_close(&f);
    assert_sql(d.file, "SELECT count(*) FROM event", "1010\n");
    tmp_dir_remove(&d);
}

/// Where the recorder reads the clock nothing waits, and nothing is late.
static void test_own_clock_is_not_held_back(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    open_with(&f, d.file, 0, 0);
    for (uint64_t i = 0; i < 100; i++) feed(&f, 0, TIDE_MEM_ALLOC, i + 1, TIDE_KIND_DEFAULT, 8, NULL);
    // Without a flush: with a hold-back it would take two seconds, without one the next round has it.
    const uint64_t since = tide_now_ns();
    int64_t n = 0;
    while (n < 100 && tide_now_ns() - since < UINT64_C(60000000000)) {
        nap(5);
        tide_text t = {0};
        sqlite3 *db = sql_open(d.file);
        sql_print(db, "SELECT count(*) FROM event", false, &t);
        sqlite3_close(db);
        n = strtoll(tide_text_str(&t), NULL, 10);
        tide_text_deinit(&t);
    }
    print_message("100 events of the recorder's clock seen after %llu ms\n",
                  (unsigned long long)((tide_now_ns() - since) / MS));
    assert_int_equal(n, 100);
    feeder_close(&f);
    assert_sql(d.file, "SELECT count(*) FROM late", "0\n");
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_within_the_window_they_stand_by_their_time),
        tide_unit_test(test_behind_the_window_both_times_are_kept),
        tide_unit_test(test_a_thread_keeps_its_order),
        tide_unit_test(test_full_rings_go_first),
        tide_unit_test(test_own_clock_is_not_held_back),
    };
    return cmocka_run_group_tests_name("late_events", tests, NULL, NULL);
}
