// SPDX-License-Identifier: MIT
//
// Parts of the drain by themselves: what a round may take when heads move while they are read, and ticks to ns.
#include "profiler/drain/drain_internal.h"
#include "tests/profiler/drain_fixture.h"

// ---- heads that move while they are read ----

static void *second_ring(void *arg) {
    rig_put(arg, 50, TIDE_MEM_ALLOC, 10, 8, "x");
    rig_put(arg, 310, TIDE_MEM_FREE_COMPLETED, 2, 8, "late");
    return NULL;
}

/// Ring 0: alloc 1 at 100, alloc 2 at 300; ring 1: alloc 10 at 50, free 2 at 310. When the first heads were read, alloc
/// 1 and alloc 10 were there; then, before the second ones of ring 0 were read, nothing more; before those of ring 1,
/// the rest. So the free is seen, and the alloc that it follows from is not.
static void test_what_is_younger_than_the_first_heads_waits(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 8, "x");
    rig_put(r.feed, 300, TIDE_MEM_ALLOC, 2, 8, "x");
    rig_on_thread(second_ring, r.feed);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__drain_list(r.drain, true, &err), &err);
    assert_tide_ok(tide__drain_look_at_feeds(r.drain, &err), &err);
    tide__drain_ring *a = r.drain->feeds[0]->rings[0], *b = r.drain->feeds[0]->rings[1];
    assert_int_equal(a->end, 3); // a word about its thread comes first
    assert_int_equal(b->end, 3);
    a->sure_end = 2;
    a->end = 2;
    b->sure_end = 2;
    size_t n;
    assert_tide_ok(tide__drain_batch(r.drain, &n, &err), &err);
    assert_int_equal(n, 2);
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT id, t_ns, op, block_id FROM event", "1|50|1|10\n2|100|1|1\n3|300|1|2\n4|310|3|2\n");
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem"), 0);
    rig_close(&r);
}

/// What was there at first is taken in any case, also where a caller's clock makes no sense.
static void test_a_clock_that_runs_backwards_does_not_stop_the_drain(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    for (uint64_t i = 1; i <= 20; i++) rig_put(r.feed, 1000000 - i * 1000, TIDE_MEM_ALLOC, i, 8, "x");
    rig_put(r.feed, 5, TIDE_MEM_FREE_COMPLETED, 1, 8, "x");
    assert_int_equal(rig_rounds(&r), 21);
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT count(DISTINCT t_ns), min(t_ns), max(id) FROM event", "1|999000|21\n");
    rig_close(&r);
}

/// While another writer keeps the trace to itself events stay where they are; that is no end of the recording.
static void test_another_writer(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    for (uint64_t i = 1; i <= 20; i++) rig_put(r.feed, i, TIDE_MEM_ALLOC, i, 8, "x");
    sqlite3_busy_timeout(tide__store_sql(r.drain->store)->db, 1);
    sqlite3 *db = sql_open(r.dir.file);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 5; i++) assert_int_equal(rig_round(&r), 0);
    rig_put(r.feed, 21, TIDE_MEM_ALLOC, 21, 8, "y");
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(rig_rounds(&r), 21);
    rig_finish(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event JOIN name ON name.id = tag_id"), 21);
    rig_close(&r);
}

/// However long a recording is, and without a limit: a series has a bounded number of leaves.
static void test_leaves_of_a_long_recording(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    tide_error err = TIDE_ERROR_INIT;
    const tide__sql *s = tide__store_sql(r.drain->store);
    assert_tide_ok(
        tide__sql_exec(s,
                       "WITH n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n "
                       "WHERE i < 65999) INSERT INTO leaf SELECT 0, i * 1024 + 1, i * 1024 + 1024, 0, 0, i, i, i * "
                       "1024 + 1, 0, 0, 0, 0 FROM n",
                       &err),
        &err);
    rig_put(r.feed, 1, TIDE_MEM_ALLOC, 1, 8, "x");
    assert_int_equal(rig_rounds(&r), 1);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM leaf"), 66000 - 66000 / 4);
    assert_int_equal(rig_number(&r, "SELECT max(max_bytes) FROM leaf"), 65999);
    rig_close(&r);
}

// ---- more rings than fit on one hand ----

enum { N_RINGS = 70, PER_RING = 50 };

typedef struct many {
    rig *r;
    uint64_t number;
    pthread_barrier_t *all;
} many;

/// Events of ring k at k, k + N, k + 2 N, ...: in the file they stand in one row.
static void *ring_of_many(void *arg) {
    const many *m = arg;
    for (uint64_t i = 0; i < PER_RING; i++)
        rig_put(m->r->feed, 1 + m->number + i * N_RINGS, TIDE_MEM_ALLOC, 1 + m->number + i * N_RINGS, 8, "x");
    pthread_barrier_wait(m->all); // no thread ends early and passes its ring to another thread
    return NULL;
}

static void test_many_rings(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    static many threads[N_RINGS];
    pthread_t ids[N_RINGS];
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, N_RINGS);
    for (uint64_t i = 0; i < N_RINGS; i++) {
        threads[i] = (many){&r, i, &all};
        assert_int_equal(pthread_create(&ids[i], NULL, ring_of_many, &threads[i]), 0);
    }
    for (size_t i = 0; i < N_RINGS; i++) pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&all);
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT count(*), sum(id = t_ns AND id = block_id), count(DISTINCT thread) FROM event",
               "3500|3500|70\n");
    rig_close(&r);
}

// ---- ticks ----

static tide__feed_header header_of(uint64_t t0, uint64_t ns0, uint64_t t1, uint64_t ns1) {
    tide__feed_header h;
    memset(&h, 0, sizeof h);
    h.has_ticks = 1;
    h.first[0] = (tide__tick_pair){t0, ns0};
    h.first[1] = (tide__tick_pair){t1, ns1};
    return h;
}

static void test_lines_between_pairs(void **state) {
    (void)state;
    tide__feed_header h = header_of(1000, 5000, 3000, 6000); // two ticks per ns
    tide__drain_clock c;
    tide__drain_clock_init(&c, &h);
    assert_int_equal(tide__drain_clock_ns(&c, 1000), 5000);
    assert_int_equal(tide__drain_clock_ns(&c, 2000), 5500);
    assert_int_equal(tide__drain_clock_ns(&c, 5000), 7000);
    assert_int_equal(tide__drain_clock_ns(&c, 600), 4800); // before the first pair, on its line
    // Corners: 2 ticks per ns, then 4, then 1; each interval goes by its own line, and they meet.
    c.n = 3;
    c.pairs[1] = (tide__tick_pair){3000, 6000};
    c.pairs[2] = (tide__tick_pair){7000, 7000};
    c.now = (tide__tick_pair){2007000, 2007000};
    c.lo = c.hi = c.n_plain = 0;
    const struct {
        uint64_t ticks, ns;
    } want[] = {{3000, 6000}, {5000, 6500}, {7000, 7000}, {8000, 8000}, {3000000, 3000000}, {2000, 5500}, {6999, 6999}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_in_range(tide__drain_clock_ns(&c, want[i].ticks), want[i].ns - 1, want[i].ns);
    uint64_t before = 0;
    for (uint64_t ticks = 0; ticks < 9000; ticks += 7) {
        const uint64_t ns = tide__drain_clock_ns(&c, ticks);
        assert_true(ns >= before);
        before = ns;
    }
}

/// What an earlier drain left serves the next one; without ticks slots hold ns.
static void test_pairs_of_an_earlier_drain(void **state) {
    (void)state;
    tide__feed_header h = header_of(1000, 5000, 3000, 6000);
    h.last[0] = (tide__tick_pair){3000, 6000};
    h.last[1] = (tide__tick_pair){4000003000, 8000006000}; // half a tick per ns
    h.last_n = 2;
    tide__drain_clock c;
    tide__drain_clock_init(&c, &h);
    assert_in_range(tide__drain_clock_ns(&c, 2000003000), 4000005999, 4000006000);
    h.last_n = 3; // killed while it wrote them
    tide__drain_clock_init(&c, &h);
    assert_int_equal(tide__drain_clock_ns(&c, 2000003000), 1000006000); // by the first two alone
    h.has_ticks = 0;
    tide__drain_clock_init(&c, &h);
    assert_int_equal(tide__drain_clock_ns(&c, 1234), 1234);
}

/// No pair, however wrong, does more harm than a wrong time.
static void test_pairs_that_cannot_be(void **state) {
    (void)state;
    const uint64_t values[] = {0, 1, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    enum { N = sizeof values / sizeof values[0] };
    for (size_t i = 0; i < N * N * N * N; i++) {
        tide__feed_header h =
            header_of(values[i % N], values[i / N % N], values[i / N / N % N], values[i / N / N / N % N]);
        tide__drain_clock c;
        tide__drain_clock_init(&c, &h);
        for (size_t k = 0; k < N; k++) (void)tide__drain_clock_ns(&c, values[k]);
        tide__drain_clock_read(&c, &h);
        for (size_t k = 0; k < N; k++) (void)tide__drain_clock_ns(&c, values[k]);
    }
}

/// Ticks that were read between two readings of the clock lie between them.
static void test_ticks_of_this_machine(void **state) {
    (void)state;
    if (!tide__clock_has_ticks()) {
        print_message("[  SKIPPED ] this machine has no ticks\n");
        return;
    }
    tide__feed_header h = header_of(0, 0, 0, 0);
    tide__clock_two_pairs(&h.first[0], &h.first[1]);
    snprintf(h.boot_id, sizeof h.boot_id, "%s", "");
    tide__drain_clock c;
    tide__drain_clock_init(&c, &h);
    c.is_this_boot = true;
    for (int i = 0; i < 100; i++) {
        const uint64_t a = tide_now_ns(), ticks = tide__ticks(), b = tide_now_ns();
        tide__drain_clock_read(&c, &h);
        assert_in_range(tide__drain_clock_ns(&c, ticks), a - 20000, b + 20000);
    }
    assert_true(h.last_n > 0 && h.last_n % 2 == 0);
    assert_true(h.last[1].ns > h.last[0].ns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_what_is_younger_than_the_first_heads_waits),
        tide_unit_test(test_a_clock_that_runs_backwards_does_not_stop_the_drain),
        tide_unit_test(test_another_writer),
        tide_unit_test(test_leaves_of_a_long_recording),
        tide_unit_test(test_many_rings),
        tide_unit_test(test_lines_between_pairs),
        tide_unit_test(test_pairs_of_an_earlier_drain),
        tide_unit_test(test_pairs_that_cannot_be),
        tide_unit_test(test_ticks_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
