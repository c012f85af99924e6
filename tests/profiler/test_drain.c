// SPDX-License-Identifier: MIT
//
// The drain, round by round: the order of events of several threads, full rings, gaps, forms, and a drain that stops
// anywhere and goes on as if it had not.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "profiler/drain/drain_internal.h"
#include "profiler/query.h"
#include "profiler/store/finish.h"
#include "tests/profiler/drain_fixture.h"

// ---- order ----

enum { MAX_WORKERS = 8, N_PER_WORKER = 4000, POOL = 64 };

/// Blocks that any thread may free: who takes one follows from who put it there.
typedef struct pool {
    pthread_mutex_t lock;
    uint64_t ids[POOL];
    size_t n;
} pool;

typedef struct worker {
    rig *r;
    pool *pool;
    uint64_t number;
} worker;

/// The addresses of a thread's events count up: its order can be told in the file.
static void put_next(tide__feed *f, uint64_t *sequence, tide_memory_op op, uint64_t block_id) {
    const tide_memory_event e = {.op = op,
                                 .block_id = block_id,
                                 .device = TIDE_CPU,
                                 .kind = TIDE_KIND_WORKSPACE,
                                 .requested_bytes = 8,
                                 .reserved_bytes = 8,
                                 .address = ++*sequence,
                                 .thread = tide_thread_id(),
                                 .allocator = "cpu",
                                 .tag = "b"};
    tide__feed_memory(f, &e);
}

/// Allocates, and frees what others allocated.
static void *exchange(void *arg) {
    const worker *w = arg;
    tide_rng rng = {w->number};
    uint64_t sequence = 0;
    for (uint64_t i = 0; i < N_PER_WORKER; i++) {
        uint64_t id = 0;
        pthread_mutex_lock(&w->pool->lock);
        if (w->pool->n == POOL || (w->pool->n > 0 && tide_rng_below(&rng, 2) == 0)) id = w->pool->ids[--w->pool->n];
        pthread_mutex_unlock(&w->pool->lock);
        if (id != 0) {
            put_next(w->r->feed, &sequence, TIDE_MEM_FREE_REQUESTED, id);
            put_next(w->r->feed, &sequence, TIDE_MEM_FREE_COMPLETED, id);
            continue;
        }
        id = w->number << 32 | (i + 1);
        put_next(w->r->feed, &sequence, TIDE_MEM_ALLOC, id);
        pthread_mutex_lock(&w->pool->lock);
        const bool has_room = w->pool->n < POOL;
        if (has_room) w->pool->ids[w->pool->n++] = id;
        pthread_mutex_unlock(&w->pool->lock);
        if (!has_room) put_next(w->r->feed, &sequence, TIDE_MEM_FREE_COMPLETED, id);
    }
    return NULL;
}

static void check_order(uint64_t n_workers, tide_record_form form, size_t batch_events) {
    rig r;
    const tide__drain_options opt = {.form = form, .batch_events = batch_events};
    rig_open(&r, 512, false, &opt);
    pool p = {.lock = PTHREAD_MUTEX_INITIALIZER};
    worker workers[MAX_WORKERS];
    pthread_t threads[MAX_WORKERS];
    for (uint64_t i = 0; i < n_workers; i++) {
        workers[i] = (worker){&r, &p, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, &workers[i]), 0);
    }
    tide__feed_stats stats;
    uint64_t n = 0;
    for (uint64_t joined = 0; joined < n_workers;) {
        n += rig_round(&r);
        while (joined < n_workers && pthread_tryjoin_np(threads[joined], NULL) == 0) joined++;
    }
    n += rig_rounds(&r);
    tide__feed_get_stats(r.feed, &stats);
    assert_int_equal(n, stats.n_events);
    rig_finish(&r);
    tide_error err = TIDE_ERROR_INIT;
    if (form == TIDE_RECORD_CHUNKS) assert_tide_ok(tide__finish_expand(r.dir.file, &err), &err);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), n);
    // Every block is allocated before it is freed, also when another thread frees it.
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem"), 0);
    assert_sql(r.dir.file,
               "SELECT count(*) FROM event a JOIN event f ON f.block_id = a.block_id AND f.op <> 1 WHERE a.op = 1 AND "
               "f.id < a.id",
               "0\n");
    // Events of one thread keep their order.
    assert_sql(r.dir.file,
               "SELECT count(*) FROM (SELECT address - lag(address, 1, 0) OVER (PARTITION BY thread "
               "ORDER BY id) AS step FROM event) WHERE step <> 1",
               "0\n");
    // Time never decreases, and is that of the clock.
    assert_sql(r.dir.file, "SELECT count(*) FROM event a JOIN event b ON b.id = a.id + 1 WHERE b.t_ns < a.t_ns", "0\n");
    assert_true((uint64_t)rig_number(&r, "SELECT max(t_ns) FROM event") <= tide_now_ns() + 1000000);
    assert_int_equal(rig_number(&r, "SELECT count(DISTINCT thread) FROM event"), (int64_t)n_workers);
    assert_sql(r.dir.file, "SELECT value FROM meta WHERE key = 'totals'", "equal\n");
    rig_close(&r);
}

static void test_order_of_one_thread(void **state) {
    (void)state;
    check_order(1, TIDE_RECORD_ROWS, 0);
}

static void test_order_of_several_threads(void **state) {
    (void)state;
    check_order(2, TIDE_RECORD_ROWS, 0);
    check_order(2, TIDE_RECORD_CHUNKS, 100);
    check_order(8, TIDE_RECORD_AUTO, 0);
    check_order(8, TIDE_RECORD_ROWS, 333);
}

// ---- clocks that differ ----

static void *alloc_at_1000(void *arg) {
    rig_put(arg, 900, TIDE_MEM_ALLOC, 7, 1, "other");
    rig_put(arg, 1000, TIDE_MEM_ALLOC, 1, 8, "a");
    rig_put(arg, 1010, TIDE_MEM_ALLOC, 2, 8, "b");
    return NULL;
}

/// The clock of the core that frees is behind: by its time the free comes first.
static void test_free_by_a_clock_that_is_behind(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    rig_put(r.feed, 800, TIDE_MEM_ALLOC, 50, 8, "first"); // this thread has its ring before the other one does
    rig_on_thread(alloc_at_1000, r.feed);
    rig_put(r.feed, 960, TIDE_MEM_FREE_REQUESTED, 1, 8, "a");
    rig_put(r.feed, 970, TIDE_MEM_FREE_COMPLETED, 1, 8, "a");
    rig_put(r.feed, 980, TIDE_MEM_FREE_COMPLETED, 7, 1, "other");
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT id, t_ns, op, block_id FROM event ORDER BY id",
               "1|800|1|50\n2|900|1|7\n3|1000|1|1\n4|1000|2|1\n5|1000|3|1\n6|1000|3|7\n7|1010|1|2\n");
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE problem <> 8"), 0);
    assert_sql(r.dir.file, "SELECT event_id, t_ns, own_ns FROM late", "4|1000|960\n5|1000|970\n6|1000|980\n");
    rig_close(&r);
}

/// A clock that a program counts from 0 is not the machine's, also in the first minutes after the machine was started.
static void test_clocks_of_a_young_machine(void **state) {
    (void)state;
    const unsigned given = TIDE__SLOT_GIVEN << TIDE__SLOT_FLAG_SHIFT;
    const uint64_t s = 1000000000;
    static tide__drain d;
    tide__drain_begin_batch(&d, 30 * s);
    assert_true(tide__drain_is_foreign(&d, 0, given));
    assert_true(tide__drain_is_foreign(&d, 14 * s, given));
    assert_false(tide__drain_is_foreign(&d, 16 * s, given));
    assert_false(tide__drain_is_foreign(&d, 30 * s + 1, given)); // put in since
    assert_true(tide__drain_is_foreign(&d, 40 * s, given));
    assert_false(tide__drain_is_foreign(&d, 0, 0)); // that the recorder read
    tide__drain_begin_batch(&d, 100000 * s);
    assert_true(tide__drain_is_foreign(&d, 99300 * s, given));
    assert_false(tide__drain_is_foreign(&d, 99500 * s, given));
}

/// Block numbers of two processes are two sets: the free of one process does not wait for the alloc of another one.
static void test_free_does_not_wait_for_another_process(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 4096, false, NULL);
    tide__feed *other = rig_add_feed(r.dir.file, 4096, false);
    tide__drain_look_again(r.drain);
    rig_put(r.feed, 990, TIDE_MEM_FREE_COMPLETED, 1, 8, "freed, never allocated");
    rig_put(other, 1000, TIDE_MEM_ALLOC, 1, 8, "the other's");
    assert_int_equal(rig_rounds(&r), 2);
    char want[160];
    snprintf(want, sizeof want, "1|990|3|1\n2|1000|1|%" PRId64 "\n", (INT64_C(1) << TIDE__BLOCK_ID_BITS) + 1);
    assert_sql(r.dir.file, "SELECT id, t_ns, op, block_id FROM event ORDER BY id", want);
    assert_sql(r.dir.file, "SELECT event_id, problem FROM problem", "1|2\n");
    tide__feed_end(other);
    rig_finish(&r);
    tide__feed_destroy(other, false);
    rig_close(&r);
}

/// A free without an allocation does not delay later events and is counted as a problem.
static void test_free_of_nothing(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    rig_put(r.feed, 800, TIDE_MEM_ALLOC, 50, 8, "first"); // this thread has its ring before the other one does
    rig_on_thread(alloc_at_1000, r.feed);
    rig_put(r.feed, 960, TIDE_MEM_FREE_COMPLETED, 99, 8, "never");
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT id, t_ns, op, block_id FROM event ORDER BY id",
               "1|800|1|50\n2|900|1|7\n3|960|3|99\n4|1000|1|1\n5|1010|1|2\n");
    assert_sql(r.dir.file, "SELECT event_id, problem FROM problem", "3|2\n");
    rig_close(&r);
}

// ---- full rings ----

enum { SMALL_RING = 64, N_MANY = 1000 };

static void *put_many(void *arg) {
    for (uint64_t i = 1; i <= N_MANY; i++) rig_put(arg, 0, TIDE_MEM_ALLOC, i, i, "many");
    return NULL;
}

static bool is_full(const rig *r) {
    tide_error err = TIDE_ERROR_INIT;
    tide__feed_reader *look;
    assert_tide_ok(tide__feed_reader_open(tide__feed_path(r->feed), true, &look, &err), &err);
    bool full = false;
    if (tide__feed_reader_n_rings(look) > 0) {
        tide__ring_header *ring = tide__feed_reader_ring(look, 0);
        full = atomic_load(&ring->head) - atomic_load(&ring->tail) == SMALL_RING;
    }
    tide__feed_reader_close(look, false);
    return full;
}

static void test_full_ring_waits_for_the_drain(void **state) {
    (void)state;
    rig r;
    rig_open(&r, SMALL_RING, false, NULL);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, put_many, r.feed), 0);
    while (!is_full(&r)) sched_yield(); // the drain stands still
    size_t n = 0;
    while (pthread_tryjoin_np(t, NULL) != 0) n += rig_round(&r);
    n += rig_rounds(&r);
    assert_int_equal(n, N_MANY);
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT count(*), min(id), max(id) FROM block", "1000|1|1000\n");
    assert_true(rig_number(&r, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'blocked_ns'") > 0);
    assert_int_equal(rig_number(&r, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'n_lost'"), 0);
    rig_close(&r);
}

static void test_full_ring_drops_and_says_so(void **state) {
    (void)state;
    rig r;
    rig_open(&r, SMALL_RING, true, NULL);
    put_many(r.feed); // no drain runs: the ring takes events until it is full
    rig_rounds(&r);
    for (uint64_t i = 1; i <= 10; i++) rig_put(r.feed, 0, TIDE_MEM_FREE_COMPLETED, i * 100, i * 100, "many");
    rig_rounds(&r);
    put_many(r.feed); // the last ones are dropped, and nothing follows them
    tide__feed_stats stats;
    tide__feed_get_stats(r.feed, &stats);
    assert_true(stats.n_lost > 0);
    rig_finish(&r);
    // Lost and kept are what was heard; every lost event is in a gap.
    const int64_t n_gaps = rig_number(&r, "SELECT count(*) FROM event WHERE op = 18");
    const int64_t n_kept = rig_number(&r, "SELECT count(*) FROM event WHERE op <> 18");
    const int64_t n_lost = rig_number(&r, "SELECT sum(requested_bytes) FROM event WHERE op = 18");
    assert_true(n_gaps >= 2);
    assert_int_equal(n_lost, (int64_t)stats.n_lost);
    assert_int_equal(n_kept + n_lost, (int64_t)stats.n_events);
    assert_int_equal(rig_number(&r, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'n_lost'"), n_lost);
    assert_int_equal(rig_number(&r, "SELECT sum(n_lost) FROM position"), n_lost);
    // The totals are those of all that was heard.
    assert_int_equal(rig_number(&r, "SELECT n_allocs FROM total"), 2 * N_MANY);
    assert_int_equal(rig_number(&r, "SELECT n_frees FROM total"), 10);
    // A free whose alloc was dropped contradicts nothing; a number that is there twice does.
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE problem <> 1"), 0);
    assert_int_equal(rig_number(&r, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'n_orphan_frees'"), 10);
    rig_close(&r);
}

/// A thread that drops and is never heard again: what it lost is noted all the same.
static void test_gap_of_a_process_that_was_killed(void **state) {
    (void)state;
    rig r;
    rig_open(&r, SMALL_RING, true, NULL);
    tide__drain_close(r.drain);
    r.drain = NULL;
    tide__feed_destroy(r.feed, true);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tide__feed *f = rig_add_feed(r.dir.file, SMALL_RING, true);
        put_many(f);
        kill(getpid(), SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    r.feed = NULL;
    rig_open_drain(&r);
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT how FROM process WHERE id = 2", "killed\n");
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event WHERE op = 1") +
                         rig_number(&r, "SELECT sum(requested_bytes) FROM event WHERE op = 18"),
                     N_MANY);
    rig_close(&r);
}

// ---- forms ----

static void record_some(rig *r, uint64_t from, uint64_t n) {
    for (uint64_t i = from; i < from + n; i++) rig_put(r->feed, i + 1, TIDE_MEM_ALLOC, i + 1, 8, "x");
}

static void test_form_follows_the_backlog(void **state) {
    (void)state;
    rig r;
    const tide__drain_options opt = {.form = TIDE_RECORD_AUTO};
    rig_open(&r, 1024, false, &opt);
    record_some(&r, 0, 100);
    rig_rounds(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 100);
    record_some(&r, 100, 900); // more than half of the ring
    rig_rounds(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 100);
    assert_int_equal(rig_number(&r, "SELECT sum(last_event - first_event + 1) FROM event_chunk"), 900);
    record_some(&r, 1000, 50);
    rig_rounds(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 150);
    rig_finish(&r); // few enough to become rows
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event_chunk"), 0);
    assert_sql(r.dir.file, "SELECT count(*), min(id), max(id), sum(t_ns = id) FROM event", "1050|1|1050|1050\n");
    rig_close(&r);
}

static void test_a_batch_is_a_batch(void **state) {
    (void)state;
    rig r;
    const tide__drain_options opt = {.form = TIDE_RECORD_ROWS, .batch_events = 10};
    rig_open(&r, 1024, false, &opt);
    record_some(&r, 0, 95);
    for (int i = 0; i < 9; i++) assert_int_equal(rig_round(&r), 10);
    assert_int_equal(rig_round(&r), 5);
    assert_int_equal(rig_round(&r), 0);
    rig_finish(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 95);
    rig_close(&r);
}

// ---- stop and go on ----

/// 60,000 events of two threads by the caller's clock, so that two recordings of them are the same.
enum { N_LONG = 60000 };

static void put_as(tide__feed *f, uint32_t thread, uint64_t t_ns, tide_memory_op op, uint64_t block_id) {
    const tide_memory_event e = {.op = op,
                                 .t_ns = t_ns,
                                 .block_id = block_id,
                                 .kind = thread == 1 ? TIDE_KIND_WORKSPACE : TIDE_KIND_KV_CACHE,
                                 .requested_bytes = 8 + block_id % 100,
                                 .reserved_bytes = 128,
                                 .address = block_id * 128,
                                 .thread = thread,
                                 .allocator = "cpu",
                                 .tag = block_id % 2 == 0 ? "even" : "odd"};
    tide__feed_memory(f, &e);
}

static void *second_thread(void *arg) {
    for (uint64_t i = 0; i < N_LONG / 2; i++)
        put_as(arg, 2, 100 + 20 * i + 10, i % 2 == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED, 1000000 + i / 2);
    return NULL;
}

/// Two allocs, then the free of the older one of two others.
static void first_thread(tide__feed *f) {
    for (uint64_t i = 0; i < N_LONG / 2; i++) {
        const bool frees = i % 3 == 2 && i > 900;
        put_as(f, 1, 100 + 20 * i, frees ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_ALLOC, frees ? i - 901 : i + 1);
    }
}

static const char *const compared[] = {
    "SELECT * FROM event ORDER BY id",
    "SELECT * FROM leaf ORDER BY series, first_event",
    "SELECT event_id, t_ns, blocks, requested_bytes, data FROM snapshot ORDER BY event_id",
    "SELECT * FROM series",
    "SELECT * FROM name",
    "SELECT id, process_id FROM thread WHERE number <= 2 ORDER BY id",
    "SELECT * FROM block ORDER BY id",
    "SELECT * FROM position",
    "SELECT * FROM total",
    "SELECT event_id, problem FROM problem ORDER BY event_id",
    "SELECT * FROM run",
    "SELECT key, value FROM meta WHERE key LIKE 'n_%' OR key IN ('state', 'totals')",
};
enum { N_COMPARED = sizeof compared / sizeof compared[0] };

/// Record the 60,000 events with `n_stops` stops of the drain. `forget`: as if each drain had been killed behind its
/// COMMIT, before it gave the slots back.
static void record_long(rig *r, unsigned n_stops, bool forget, tide_text *out) {
    const tide__drain_options opt = {.form = TIDE_RECORD_ROWS, .batch_events = 777};
    rig_open(r, 1 << 16, false, &opt);
    const int64_t run = rig_add_run(r->feed);
    tide__feed_run(r->feed, true, run, 50); // takes this thread's ring
    rig_on_thread(second_thread, r->feed);
    first_thread(r->feed);
    for (unsigned i = 0; i < n_stops; i++) {
        for (unsigned k = 0; k < 5 + 3 * i; k++) rig_round(r);
        tide__drain_close(r->drain);
        if (forget) {
            tide_error err = TIDE_ERROR_INIT;
            tide__feed_reader *f;
            assert_tide_ok(tide__feed_reader_open(tide__feed_path(r->feed), false, &f, &err), &err);
            for (size_t k = 0; k < tide__feed_reader_n_rings(f); k++) {
                tide__ring_header *ring = tide__feed_reader_ring(f, k);
                const uint64_t tail = atomic_load(&ring->tail);
                atomic_store(&ring->tail, tail > 300 ? tail - 300 : 0);
            }
            tide__feed_reader_close(f, false);
        }
        rig_open_drain(r);
    }
    tide__feed_run(r->feed, false, run, 100 + 20 * N_LONG);
    rig_finish(r);
    sqlite3 *db = sql_open(r->dir.file);
    for (size_t i = 0; i < N_COMPARED; i++) sql_print(db, compared[i], true, &out[i]);
    sqlite3_close(db);
    rig_close(r);
}

static void test_a_drain_that_stops_goes_on_where_it_stood(void **state) {
    (void)state;
    tide_text whole[N_COMPARED] = {{0}}, stopped[N_COMPARED];
    rig r;
    record_long(&r, 0, false, whole);
    for (unsigned n_stops = 1; n_stops <= 4; n_stops += 3) {
        memset(stopped, 0, sizeof stopped);
        record_long(&r, n_stops, n_stops > 1, stopped);
        for (size_t i = 0; i < N_COMPARED; i++) {
            if (strcmp(tide_text_str(&whole[i]), tide_text_str(&stopped[i])) != 0)
                fail_msg("%u stops: %s differs", n_stops, compared[i]);
            tide_text_deinit(&stopped[i]);
        }
    }
    for (size_t i = 0; i < N_COMPARED; i++) {
        if (i != 9) assert_true(strlen(tide_text_str(&whole[i])) > 0); // but for problems there are some of each
        tide_text_deinit(&whole[i]);
    }
}

/// While the oldest events are dropped the trace says how many blocks there were, those too.
static void test_blocks_of_a_recording_that_drops(void **state) {
    (void)state;
    enum { N_BLOCKS = 40000, PER_ROUND = 200 };
    tide_error err = TIDE_ERROR_INIT;
    rig r;
    const tide__drain_options opt = {.max_bytes = 1 << 20};
    rig_open(&r, 1024, false, &opt);
    for (uint64_t id = 1; id <= N_BLOCKS; id++) {
        rig_put(r.feed, 0, TIDE_MEM_ALLOC, id, 8, "b");
        rig_put(r.feed, 0, TIDE_MEM_FREE_COMPLETED, id, 0, NULL);
        if (id % PER_ROUND == 0) rig_rounds(&r);
    }
    tide_trace *t;
    tide_trace_info info;
    assert_tide_ok(tide_trace_open(r.dir.file, &t, &err), &err);
    assert_tide_ok(tide_trace_get_info(t, &info, &err), &err);
    assert_int_equal(info.state, TIDE_TRACE_RECORDING);
    assert_true(info.first_kept_event > 1);
    assert_int_equal(info.n_blocks, N_BLOCKS);
    tide_trace_close(t);
    rig_finish(&r);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_order_of_one_thread),
        tide_unit_test(test_order_of_several_threads),
        tide_unit_test(test_free_by_a_clock_that_is_behind),
        tide_unit_test(test_clocks_of_a_young_machine),
        tide_unit_test(test_free_does_not_wait_for_another_process),
        tide_unit_test(test_free_of_nothing),
        tide_unit_test(test_full_ring_waits_for_the_drain),
        tide_unit_test(test_full_ring_drops_and_says_so),
        tide_unit_test(test_gap_of_a_process_that_was_killed),
        tide_unit_test(test_form_follows_the_backlog),
        tide_unit_test(test_a_batch_is_a_batch),
        tide_unit_test(test_a_drain_that_stops_goes_on_where_it_stood),
        tide_unit_test(test_blocks_of_a_recording_that_drops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
