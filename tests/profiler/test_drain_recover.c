// SPDX-License-Identifier: MIT
//
// Traces of a killed process: after the next open, the trace holds every event of its rings. It does not matter how far
// the recording, or an earlier attempt to finish it, had come.
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/base/log.h"
#include "profiler/query.h"
#include "profiler/store/finish.h"
#include "tests/profiler/drain_fixture.h"

// ---- a process that is killed while it records ----

enum { N_THREADS = 2, N_KILLS = 8 };

/// What the threads of the child have put in, one number each, in memory that outlives it: between the call and the
/// count there is at most one event.
typedef struct shadow {
    _Atomic uint64_t n_put[N_THREADS];
    _Atomic uint64_t n_allocs, n_frees; ///< of all, before they are put in
} shadow;

typedef struct producer {
    tide_observer obs;
    shadow *shadow;
    uint64_t number;
} producer;

static void *produce(void *arg) {
    const producer *p = arg;
    for (uint64_t i = 1;; i++) {
        const tide_memory_event e = {.op = i % 2 == 1 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED,
                                     .block_id = p->number << 40 | ((i + 1) / 2),
                                     .requested_bytes = 8,
                                     .reserved_bytes = 8,
                                     .thread = (uint32_t)p->number + 1,
                                     .allocator = "cpu",
                                     .tag = "x"};
        p->obs.on_memory(p->obs.self, &e);
        atomic_store_explicit(&p->shadow->n_put[p->number], i, memory_order_release);
    }
    return NULL;
}

static void record_for_ever(const char *path, shadow *s) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    tide_recorder *rec;
    tide_error err = TIDE_ERROR_INIT;
    const tide_recorder_options opt = {.ring_events = 1 << 12, .quiet = true};
    if (tide_recorder_open(path, &opt, &rec, &err) != TIDE_OK) _exit(3);
    producer p[N_THREADS];
    pthread_t t;
    for (uint64_t i = 0; i < N_THREADS; i++) p[i] = (producer){tide_recorder_observer(rec), s, i};
    for (uint64_t i = 1; i < N_THREADS; i++)
        if (pthread_create(&t, NULL, produce, &p[i]) != 0) _exit(4);
    produce(&p[0]);
}

static uint64_t kept_of(const char *path, uint64_t thread) {
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *stmt;
    char query[128];
    snprintf(query, sizeof query, "SELECT count(*) FROM event WHERE thread = %" PRIu64, thread);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const uint64_t n = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static void test_nothing_is_lost_at_a_kill(void **state) {
    (void)state;
    shadow *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    for (uint64_t k = 0; k < (uint64_t)tide_test_rounds(3, N_KILLS); k++) {
        tmp_dir d;
        tmp_dir_make(&d);
        memset((void *)s, 0, sizeof *s);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) record_for_ever(d.file, s);
        while (atomic_load(&s->n_put[0]) < 500 + 20000 * k || atomic_load(&s->n_put[1]) == 0) sched_yield();
        kill(pid, SIGKILL);
        int how;
        assert_int_equal(waitpid(pid, &how, 0), pid);
        tide_error err = TIDE_ERROR_INIT;
        bool unfinished, in_use;
        assert_tide_ok(tide__drain_look(d.file, &unfinished, &in_use, &err), &err);
        assert_true(unfinished);
        assert_false(in_use);
        assert_tide_ok(tide__drain_recover(d.file, &err), &err);
        assert_int_equal(tmp_dir_count(&d), 1);
        assert_tide_ok(tide__finish_expand(d.file, &err), &err);
        for (uint64_t i = 0; i < N_THREADS; i++) {
            const uint64_t put = atomic_load(&s->n_put[i]), kept = kept_of(d.file, i + 1);
            if (kept < put || kept > put + 1)
                fail_msg("thread %" PRIu64 ": %" PRIu64 " put in, %" PRIu64 " kept", i, put, kept);
        }
        assert_sql(d.file, "SELECT how FROM process", "killed\n");
        assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'n_lost', 'n_problems') ORDER BY key",
                   "0\n0\ncomplete\n");
        assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
        assert_tide_ok(tide__drain_look(d.file, &unfinished, &in_use, &err), &err);
        assert_false(unfinished);
        tmp_dir_remove(&d);
    }
    munmap(s, sizeof *s);
}

// ---- stages at which a process may be killed ----

/// Run `work` in a child that is killed when it returns.
static void in_killed_child(void (*work)(const char *path), const char *path) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        work(path);
        kill(getpid(), SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    if (!WIFSIGNALED(how)) fail_msg("the child ended with status %d", WEXITSTATUS(how));
}

static void make_only(const char *path) {
    if (tide__store_create(path, NULL) != TIDE_OK) _exit(1);
}

static tide__feed *make_feed(const char *path) {
    make_only(path);
    return rig_add_feed(path, 64, false);
}

static void make_empty_feed(const char *path) { make_feed(path); }

static void make_events(const char *path) {
    tide__feed *f = make_feed(path);
    for (uint64_t i = 1; i <= 50; i++) rig_put(f, i, TIDE_MEM_ALLOC, i, 8, "x");
}

/// Killed between the sequence of the last slot and the head.
static void make_events_and_no_head(const char *path) {
    tide__feed *f = make_feed(path);
    for (uint64_t i = 1; i <= 50; i++) rig_put(f, i, TIDE_MEM_ALLOC, i, 8, "x");
    tide__feed_reader *r;
    if (tide__feed_reader_open(tide__feed_path(f), false, &r, NULL) != TIDE_OK) _exit(5);
    atomic_fetch_sub(&tide__feed_reader_ring(r, 0)->head, 1u);
}

static void make_events_and_end(const char *path) {
    tide__feed *f = make_feed(path);
    for (uint64_t i = 1; i <= 50; i++) rig_put(f, i, TIDE_MEM_ALLOC, i, 8, "x");
    tide__feed_end(f);
}

static void make_and_drain(const char *path, bool end) {
    tide__feed *f = make_feed(path);
    for (uint64_t i = 1; i <= 50; i++) rig_put(f, i, TIDE_MEM_ALLOC, i, 8, "x");
    const tide__drain_options opt = {.trace_path = path};
    tide__drain *d;
    size_t n, n_alive;
    if (tide__drain_open(&opt, &d, NULL) != TIDE_OK) _exit(2);
    if (end) tide__feed_end(f);
    do {
        if (tide__drain_round(d, &n, &n_alive, NULL) != TIDE_OK) _exit(3);
    } while (n > 0);
}

static void make_events_and_drain(const char *path) { make_and_drain(path, false); }
static void make_all_but_the_finish(const char *path) { make_and_drain(path, true); }

static void make_half_a_process(const char *path) {
    const tide__process_row row = {.pid = 1, .rank = -1, .command = "half", .begin_ns = 1};
    make_events(path);
    tide__store *s;
    int64_t id;
    if (tide__store_open(path, &s, NULL) != TIDE_OK || tide__store_begin(s, NULL) != TIDE_OK ||
        tide__store_add_process(s, &row, &id, NULL) != TIDE_OK)
        _exit(4);
}

static void make_open_run(const char *path) {
    tide__feed *f = make_feed(path);
    const int64_t run = rig_add_run(f), never = rig_add_run(f);
    tide__feed_run(f, true, run, 1);
    for (uint64_t i = 1; i <= 50; i++) rig_put(f, i, TIDE_MEM_ALLOC, i, 8, "x");
    (void)never; // its row is there, its slot is not
}

static void test_stages(void **state) {
    (void)state;
    static const struct {
        void (*work)(const char *path);
        const char *processes, *facts;
        int n_events;
    } cases[] = {
        {make_only, "", "complete\n0\n", 0},
        {make_empty_feed, "killed\n", "complete\n0\n", 0},
        {make_events, "killed\n", "complete\n0\n", 50},
        {make_events_and_no_head, "killed\n", "complete\n0\n", 50},
        {make_events_and_end, "closed\n", "complete\n0\n", 50},
        {make_events_and_drain, "killed\n", "complete\n0\n", 50},
        {make_all_but_the_finish, "closed\n", "complete\n0\n", 50},
        {make_half_a_process, "killed\n", "complete\n0\n", 50},
        {make_open_run, "killed\n", "complete\n0\n", 50},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        in_killed_child(cases[i].work, d.file);
        tide_error err = TIDE_ERROR_INIT;
        bool unfinished, in_use;
        assert_tide_ok(tide__drain_look(d.file, &unfinished, &in_use, &err), &err);
        assert_true(unfinished && !in_use);
        assert_tide_ok(tide__drain_recover(d.file, &err), &err);
        assert_int_equal(tmp_dir_count(&d), 1);
        assert_sql(d.file, "SELECT how FROM process", cases[i].processes);
        assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'n_problems') ORDER BY key DESC",
                   cases[i].facts);
        rig r = {.dir = d};
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), cases[i].n_events);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM block"), cases[i].n_events);
        if (cases[i].work == make_open_run)
            assert_sql(d.file, "SELECT first_event, last_event, end_ns FROM run", "1|50|50\n||\n");
        // A drain killed in its very last step leaves its lock file. The next open of the trace removes that file.
        char lock[400];
        snprintf(lock, sizeof lock, "%s.drain", d.file);
        fclose(fopen(lock, "w"));
        tide_trace *t;
        assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
        tide_trace_close(t);
        assert_int_equal(tmp_dir_count(&d), 1);
        // A second time there is nothing to do.
        assert_tide_status(tide__drain_recover(d.file, &err), TIDE_ERR_BAD_INPUT);
        assert_int_equal(tmp_dir_count(&d), 1);
        tmp_dir_remove(&d);
    }
}

static void keep_line(void *ctx, tide_log_level level, const char *line) {
    if (level == TIDE_LOG_INFO) snprintf(ctx, 300, "%s", line);
}

/// Opening the trace reports how the recording ended: the program was killed, or the recording had failed before.
static void test_words_about_the_end(void **state) {
    (void)state;
    static const char *const reasons[] = {NULL, "the disk was full"};
    for (size_t i = 0; i < 2; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        in_killed_child(make_events, d.file);
        if (reasons[i] != NULL) sql_exec(d.file, "INSERT INTO meta VALUES('reason', 'the disk was full')");
        char line[300] = "";
        tide_error err = TIDE_ERROR_INIT;
        tide_trace *t;
        tide_log_set(keep_line, line, TIDE_LOG_INFO);
        assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
        tide_log_set(NULL, NULL, TIDE_LOG_WARN);
        assert_text_has(line, reasons[i] != NULL ? reasons[i] : "a program that was killed");
        tide_trace_close(t);
        tmp_dir_remove(&d);
    }
}

// ---- who may recover ----

/// A drain that was killed has let go of the trace, and not yet of the feed: the system takes it down bit by bit.
static void test_a_feed_that_is_still_held(void **state) {
    (void)state;
    rig r;
    tide_error err = TIDE_ERROR_INIT;
    rig_open(&r, 64, false, NULL);
    rig_put(r.feed, 1, TIDE_MEM_ALLOC, 1, 8, "x");
    assert_int_equal(rig_rounds(&r), 1);
    tide__drain_close(r.drain);
    tide__feed_reader *held;
    assert_tide_ok(tide__feed_reader_open(tide__feed_path(r.feed), false, &held, &err), &err);
    rig_open_drain(&r);
    rig_put(r.feed, 2, TIDE_MEM_ALLOC, 2, 8, "y");
    size_t n_events, n_alive;
    for (int i = 0; i < 3; i++) {
        assert_tide_ok(tide__drain_round(r.drain, &n_events, &n_alive, &err), &err);
        assert_int_equal(n_events, 0);
        assert_int_equal(n_alive, 1); // nothing has ended
        assert_false(tide__drain_has_ended(r.drain, tide__feed_path(r.feed)));
    }
    tide__feed_reader_close(held, false);
    assert_int_equal(rig_rounds(&r), 1);
    rig_finish(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 2);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem"), 0);
    rig_close(&r);
}

static bool lives(void *ctx) {
    (void)ctx;
    return true;
}

/// The same at the other end: a thread that took over does not end, and finish the trace, before it has drained.
static void test_a_thread_waits_for_the_feed(void **state) {
    (void)state;
    rig r;
    tide_error err = TIDE_ERROR_INIT;
    rig_open(&r, 64, false, NULL);
    tide__drain_close(r.drain);
    r.drain = NULL;
    tide__feed_set_watch(r.feed, lives, NULL);
    tide__feed_reader *held;
    assert_tide_ok(tide__feed_reader_open(tide__feed_path(r.feed), false, &held, &err), &err);
    tide__drain_thread *t;
    assert_tide_ok(tide__drain_thread_start(&r.opt, &t, &err), &err);
    for (uint64_t i = 1; i <= 50; i++) rig_put(r.feed, i, TIDE_MEM_ALLOC, i, 8, "x");
    for (int i = 0; i < 5; i++) {
        tide__drain_thread_hurry(t);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    assert_false(tide__drain_thread_has_ended(t));
    tide__feed_reader_close(held, false);
    for (uint64_t i = 51; i <= 500; i++) rig_put(r.feed, i, TIDE_MEM_ALLOC, i, 8, "x"); // more than the ring holds
    tide__feed_end(r.feed);
    assert_tide_ok(tide__drain_thread_join(t, &err), &err);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event WHERE op = 1"), 500);
    assert_int_equal(rig_number(&r, "SELECT value FROM meta WHERE key = 'n_lost'"), 0);
    rig_close(&r);
}

static void test_recover_leaves_the_living_alone(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    rig_put(r.feed, 1, TIDE_MEM_ALLOC, 1, 8, "x");
    tide_error err = TIDE_ERROR_INIT;
    bool unfinished, in_use;
    assert_tide_ok(tide__drain_look(r.dir.file, &unfinished, &in_use, &err), &err);
    assert_true(unfinished && in_use);
    assert_tide_status(tide__drain_recover(r.dir.file, &err), TIDE_ERR_BUSY);
    tide__drain_close(r.drain); // the collector is gone, the producer lives
    r.drain = NULL;
    assert_tide_ok(tide__drain_look(r.dir.file, &unfinished, &in_use, &err), &err);
    assert_true(unfinished && in_use);
    assert_tide_status(tide__drain_recover(r.dir.file, &err), TIDE_ERR_BUSY);
    rig_open_drain(&r);
    tide__drain *second = NULL;
    assert_tide_status(tide__drain_open(&r.opt, &second, &err), TIDE_ERR_BUSY);
    rig_finish(&r);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 1);
    rig_close(&r);
    assert_tide_status(tide__drain_look("/none/such.db", &unfinished, &in_use, &err), TIDE_ERR_NOT_FOUND);
}

/// A drain that failed leaves the reason in the feed. The process that finishes the trace reports it.
static void test_reason_of_an_earlier_failure(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    rig_put(r.feed, 1, TIDE_MEM_ALLOC, 1, 8, "x");
    tide__drain_close(r.drain);
    r.drain = NULL;
    tide__feed_header *head = tide__feed_head(r.feed);
    snprintf(head->error, sizeof head->error, "the disk was full");
    atomic_store(&head->drain, TIDE__DRAIN_FAILED);
    tide__feed_end(r.feed);
    tide__feed_destroy(r.feed, false);
    r.feed = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__drain_recover(r.dir.file, &err), &err);
    assert_sql(r.dir.file, "SELECT value FROM meta WHERE key IN ('state', 'reason') ORDER BY key",
               "the disk was full\ncut short\n");
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 1);
    rig_close(&r);
}

/// A child that the recorded process forked lives on when that is killed: what it inherited must not stand for its
/// parent.
static void test_forked_child_outlives_the_killed(void **state) {
    (void)state;
    _Atomic pid_t *orphan = mmap(NULL, sizeof *orphan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(orphan != MAP_FAILED);
    tmp_dir d;
    tmp_dir_make(&d);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tide_recorder *rec;
        if (tide_recorder_open(d.file, NULL, &rec, NULL) != TIDE_OK) _exit(1);
        const tide_observer obs = tide_recorder_observer(rec);
        const tide_memory_event e = {.op = TIDE_MEM_ALLOC, .block_id = 1, .requested_bytes = 8, .allocator = "cpu"};
        obs.on_memory(obs.self, &e);
        const pid_t child = fork();
        for (; child == 0;) pause();
        atomic_store(orphan, child);
        for (;;) pause();
    }
    while (atomic_load(orphan) == 0) sched_yield();
    kill(pid, SIGKILL);
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    tide_error err = TIDE_ERROR_INIT;
    bool unfinished, in_use;
    assert_tide_ok(tide__drain_look(d.file, &unfinished, &in_use, &err), &err);
    const tide_status st = tide__drain_recover(d.file, &err);
    kill(atomic_load(orphan), SIGKILL);
    assert_true(unfinished && !in_use);
    assert_tide_ok(st, &err);
    assert_sql(d.file, "SELECT count(*) FROM event", "1\n");
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

// ---- no memory ----

/// Every allocation of a recovery fails once: the trace is as it was, or finished, and the next attempt succeeds.
static void test_out_of_memory(void **state) {
    (void)state;
    int n_good = 0, n = 0;
    for (; n_good < tide_test_rounds(6, 16) && n < 3000; n = (int)tide_test_next_failure(n)) {
        tmp_dir d;
        tmp_dir_make(&d);
        in_killed_child(make_events, d.file);
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = tide__drain_recover(d.file, &err);
        tide_host_fail_after(-1);
        n_good = st == TIDE_OK ? n_good + 1 : 0;
        if (st != TIDE_OK && st != TIDE_ERR_NOMEM) fail_msg("%d: %s: %s", n, tide_status_name(st), err.msg);
        bool unfinished, in_use;
        assert_tide_ok(tide__drain_look(d.file, &unfinished, &in_use, &err), &err);
        if (unfinished) assert_tide_ok(tide__drain_recover(d.file, &err), &err);
        rig r = {.dir = d};
        assert_int_equal(tmp_dir_count(&d), 1);
        if (rig_number(&r, "SELECT count(*) FROM block") != 50)
            assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "cut short\n");
        tmp_dir_remove(&d);
    }
    print_message("the first of %d allocations that did no harm was reached\n", n);
    assert_true(n > 80 && n < 3000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_nothing_is_lost_at_a_kill),
        tide_unit_test(test_stages),
        tide_unit_test(test_words_about_the_end),
        tide_unit_test(test_a_feed_that_is_still_held),
        tide_unit_test(test_a_thread_waits_for_the_feed),
        tide_unit_test(test_recover_leaves_the_living_alone),
        tide_unit_test(test_reason_of_an_earlier_failure),
        tide_unit_test(test_forked_child_outlives_the_killed),
        tide_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
