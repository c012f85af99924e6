// SPDX-License-Identifier: MIT
//
// The collector as a process: one for a recorder that starts it, one for several processes that find it, one that is
// killed in the middle. This program is its own collector.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/log.h"
#include "profiler/collector.h"
#include "profiler/drain/drain.h"
#include "tests/profiler/trace_fixture.h"

static char self[4096]; // this program, for opt.collector

static int64_t sql_number(const char *path, const char *query) {
    sqlite3 *db = sql_open(path);
    sqlite3_busy_timeout(db, 10000);
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, query, -1, &stmt, NULL) != SQLITE_OK) fail_msg("%s: %s", query, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/// Events of our own clock: block ids from `from` on, two events each.
static void feed_blocks(feeder *f, uint64_t from, uint64_t n) {
    for (uint64_t id = from; id < from + n; id++) {
        feed(f, 0, TIDE_MEM_ALLOC, id, TIDE_KIND_DEFAULT, 8, "block");
        feed(f, 0, TIDE_MEM_FREE_COMPLETED, id, TIDE_KIND_DEFAULT, 8, "block");
    }
}

static tide_status feeder_try(feeder *f, const char *path, const tide_recorder_options *opt, tide_error *err) {
    *f = (feeder){.thread = 1};
    TIDE_TRY(tide_recorder_open(path, opt, &f->rec, err));
    f->obs = tide_recorder_observer(f->rec);
    return TIDE_OK;
}

/// The process that drains the feed of a recorder: our child that is the collector.
static pid_t only_child(void) {
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *f = fopen(path, "r");
    if (f == NULL) return 0;
    const bool good = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    return good ? (pid_t)atol(text) : 0;
}

// ---- a collector of one's own ----

static void test_process_writes_the_events_it_received(void **state) {
    (void)state;
    static const tide_record_form forms[] = {TIDE_RECORD_AUTO, TIDE_RECORD_ROWS, TIDE_RECORD_CHUNKS};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        feeder f;
        tide_error err = TIDE_ERROR_INIT;
        const tide_recorder_options opt = {
            .drain = TIDE_RECORD_PROCESS, .collector = self, .form = forms[i], .batch_events = 5000};
        assert_tide_ok(feeder_try(&f, d.file, &opt, &err), &err);
        const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
        assert_tide_ok(tide_recorder_begin_run(f.rec, &info, NULL, NULL, &err), &err);
        feed_blocks(&f, 1, 20000);
        assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
        assert_int_equal(sql_number(d.file, "SELECT sum(position) >= 40000 FROM position"), 1);
        assert_tide_ok(tide_recorder_put_meta(f.rec, "fact", "yes", &err), &err);
        feed_blocks(&f, 20001, 10);
        feeder_close(&f);
        assert_int_equal(tmp_dir_count(&d), 1);
        const bool packed = forms[i] == TIDE_RECORD_CHUNKS;
        assert_int_equal(
            sql_number(d.file, packed ? "SELECT sum(blocks) FROM block_chunk" : "SELECT count(*) FROM block"), 20010);
        const int64_t in_chunks = packed ? 40020 : 0;
        assert_int_equal(sql_number(d.file, "SELECT total(last_event - first_event + 1) FROM event_chunk"), in_chunks);
        assert_sql(d.file, "SELECT first_event, last_event FROM run", "1|40020\n");
        assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'fact', 'totals', 'n_events') ORDER BY key",
                   "yes\n40020\ncomplete\nequal\n");
        assert_int_equal(only_child(), 0); // reaped
        tmp_dir_remove(&d);
    }
}

static void test_collector_that_does_not_begin(void **state) {
    (void)state;
    static const struct {
        const char *program, *words;
    } cases[] = {
        {"/none/such/program", "No such file"},
        {"/bin/false", "ended before it began"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        const tide_recorder_options opt = {.drain = TIDE_RECORD_PROCESS, .collector = cases[i].program};
        feeder f;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(feeder_try(&f, d.file, &opt, &err), TIDE_ERR_RUNTIME);
        assert_text_has(err.msg, cases[i].words);
        assert_text_has(err.msg, d.file);
        assert_int_equal(tmp_dir_count(&d), 0);
        tmp_dir_remove(&d);
    }
}

/// A program that does not know what "collect" means must not be started again: before anything is made, it is told.
/// The first test that calls the hook in this process.
static void test_a_program_is_asked_before_it_is_its_collector(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    FILE *old = fopen(d.file, "we");
    assert_non_null(old);
    assert_true(fputs("what was there", old) >= 0 && fclose(old) == 0);
    const tide_recorder_options opt = {.drain = TIDE_RECORD_PROCESS};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(feeder_try(&f, d.file, &opt, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "has not called tide_collector_hook");
    assert_int_equal(only_child(), 0);
    char text[32] = "";
    old = fopen(d.file, "re");
    assert_true(old != NULL && fgets(text, sizeof text, old) != NULL && fclose(old) == 0);
    assert_string_equal(text, "what was there");
    assert_int_equal(tmp_dir_count(&d), 1);
    char *strange[] = {self, (char *)(uintptr_t) "collect", (char *)(uintptr_t) "stamps", NULL};
    tide_collector_hook(3, strange); // not what a recorder says: main may have a command of that name
    assert_tide_ok(feeder_try(&f, d.file, &opt, &err), &err);
    feed_blocks(&f, 1, 100);
    feeder_close(&f);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM block"), 100);
    tmp_dir_remove(&d);
}

/// What ends the recorded program from the keyboard goes to the whole group: the collector must outlive it.
static void test_collector_is_deaf_to_the_keyboard(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    const tide_recorder_options opt = {.drain = TIDE_RECORD_PROCESS, .collector = self};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(feeder_try(&f, d.file, &opt, &err), &err);
    const pid_t pid = only_child();
    assert_true(pid > 0);
    feed_blocks(&f, 1, 10);
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    kill(pid, SIGHUP);
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    assert_int_equal(only_child(), pid);
    feed_blocks(&f, 11, 10);
    feeder_close(&f);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM block"), 20);
    tmp_dir_remove(&d);
}

static void test_abandon_ends_the_collector(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    const tide_recorder_options opt = {.drain = TIDE_RECORD_PROCESS, .collector = self};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(feeder_try(&f, d.file, &opt, &err), &err);
    feed_blocks(&f, 1, 10);
    tide_recorder_abandon(f.rec);
    assert_int_equal(only_child(), 0);
    assert_int_equal(tmp_dir_count(&d), 0);
    tmp_dir_remove(&d);
}

// ---- a collector that dies ----

static int n_lines;
static void count_line(void *ctx, tide_log_level level, const char *line) {
    (void)ctx;
    (void)level;
    if (strstr(line, "the collector is gone") != NULL) n_lines++;
}

/// Killed while events come: when a ring is full (`more` events fill it), at a flush, or at the end, this process goes
/// on in its place.
static void kill_collector(size_t more, bool flush) {
    tmp_dir d;
    tmp_dir_make(&d);
    n_lines = 0;
    tide_log_set(count_line, NULL, TIDE_LOG_WARN);
    const tide_recorder_options opt = {.drain = TIDE_RECORD_PROCESS, .collector = self, .ring_events = 1024};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(feeder_try(&f, d.file, &opt, &err), &err);
    feed_blocks(&f, 1, 5000);
    kill(only_child(), SIGKILL);
    feed_blocks(&f, 5001, more);
    if (flush) assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    feed_blocks(&f, 5001 + more, 10);
    tide_recorder_stats stats;
    tide_recorder_get_stats(f.rec, &stats);
    assert_int_equal(stats.n_lost, 0);
    feeder_close(&f);
    tide_log_set(NULL, NULL, TIDE_LOG_WARN);
    assert_int_equal(n_lines, 1);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM block WHERE free_event IS NOT NULL"),
                     5010 + (int64_t)more);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM problem"), 0);
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'totals') ORDER BY key", "complete\nequal\n");
    tmp_dir_remove(&d);
}

static void test_collector_that_is_killed(void **state) {
    (void)state;
    kill_collector(20000, false);
    kill_collector(10, true);
    kill_collector(10, false);
    kill_collector(0, false);
}

/// The thread that says that nothing moves, and the one that learns just then that the collector is dead.
typedef struct stalled {
    feeder *f;
    pid_t collector;
    _Atomic bool has_stalled;
} stalled;

static void kill_the_stopped(void *ctx, tide_log_level level, const char *line) {
    stalled *s = ctx;
    (void)level;
    if (strstr(line, "the collector is stopped") == NULL) return;
    kill(s->collector, SIGKILL);
    atomic_store_explicit(&s->has_stalled, true, memory_order_relaxed); // orders nothing: the recorder's locks must
    while (kill(s->collector, 0) == 0) sched_yield(); // until the other thread has found it dead, and waited for it
}

static void *fill_rings(void *arg) {
    feed_blocks(((stalled *)arg)->f, 1, 5000);
    return NULL;
}

/// A signal takes its time on a busy machine: whether the process stands still by now.
static bool stands_still(pid_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    const bool has_line = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    const char *behind = strrchr(text, ')');
    return has_line && behind != NULL && behind[1] == ' ' && behind[2] == 'T';
}

static void test_collector_that_is_stopped_and_killed(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    const tide_recorder_options opt = {
        .drain = TIDE_RECORD_PROCESS, .collector = self, .ring_events = 1024, .max_wait_ns = 20 * 1000 * 1000};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(feeder_try(&f, d.file, &opt, &err), &err);
    stalled s = {.f = &f, .collector = only_child()};
    tide_log_set(kill_the_stopped, &s, TIDE_LOG_WARN);
    kill(s.collector, SIGSTOP);
    while (!stands_still(s.collector)) sched_yield();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fill_rings, &s), 0);
    while (!atomic_load_explicit(&s.has_stalled, memory_order_relaxed)) sched_yield();
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    pthread_join(thread, NULL);
    tide_log_set(NULL, NULL, TIDE_LOG_WARN);
    feeder_close(&f);
    assert_true(sql_number(d.file, "SELECT count(*) FROM block") > 0);
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'totals') ORDER BY key", "complete\n");
    tmp_dir_remove(&d);
}

// ---- a collector of several ----

/// Shared by the collector and who ends it.
typedef struct shared {
    _Atomic bool over;
} shared;

static shared *share(void) {
    void *page = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    return page;
}

static bool is_over(void *ctx) { return atomic_load(&((shared *)ctx)->over); }

/// The collector of tidemark record, in a child: until s->over.
static pid_t start_shared(const char *path, shared *s) {
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // also when the test fails
        close(ready[0]);
        const tide_collector_options opt = {
            .path = path, .create = true, .ready_fd = ready[1], .is_over = is_over, .ctx = s, .quiet = true};
        tide_error err = TIDE_ERROR_INIT;
        _exit(tide_collect(&opt, &err) == TIDE_OK ? 0 : 1);
    }
    close(ready[1]);
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static pid_t start_attached(const char *path, int32_t rank, uint64_t n_blocks, bool dies) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0) return pid;
    const tide_recorder_options opt = {.drain = TIDE_RECORD_ATTACH, .rank = rank, .has_rank = true};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    if (feeder_try(&f, path, &opt, &err) != TIDE_OK) _exit(3);
    const tide_run_info info = {.model = rank == 0 ? "zero" : "one", .mode = "naive", .device = "cpu"};
    if (tide_recorder_begin_run(f.rec, &info, NULL, NULL, &err) != TIDE_OK) _exit(4);
    feed_blocks(&f, 1, n_blocks);
    if (dies) kill(getpid(), SIGKILL);
    if (tide_recorder_end_run(f.rec, &err) != TIDE_OK) _exit(5);
    _exit(tide_recorder_close(f.rec, &err) == TIDE_OK ? 0 : 6);
}

static int end_of(pid_t pid) {
    int how;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 100 + WTERMSIG(how);
}

static void test_two_processes_one_collector(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    shared *s = share();
    const pid_t collector = start_shared(d.file, s);
    // No program records yet, but the collector already holds the trace.
    feeder intruder;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(feeder_try(&intruder, d.file, NULL, &err), TIDE_ERR_BUSY);
    const pid_t a = start_attached(d.file, 0, 3000, false), b = start_attached(d.file, 1, 2000, false);
    assert_int_equal(end_of(a), 0);
    assert_int_equal(end_of(b), 0);
    assert_int_equal(end_of(start_attached(d.file, 2, 100, true)), 100 + SIGKILL);
    atomic_store(&s->over, true);
    assert_int_equal(end_of(collector), 0);
    munmap(s, sizeof *s);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT rank, how FROM process ORDER BY rank", "0|closed\n1|closed\n2|killed\n");
    // Each has its block numbers to itself, its thread, its run.
    assert_sql(d.file,
               "SELECT p.rank, count(*), count(b.free_event), min(b.id & ((1 << 48) - 1)), max(b.id >> 48) = p.id - 1, "
               "count(DISTINCT b.thread), count(DISTINCT b.run_id) FROM block b JOIN run r ON r.id = b.run_id "
               "JOIN process p ON p.id = r.process_id GROUP BY p.rank",
               "0|3000|3000|1|1|1|1\n1|2000|2000|1|1|1|1\n2|100|100|1|1|1|1\n");
    assert_sql(d.file, "SELECT count(*) FROM run WHERE end_ns IS NULL OR last_event IS NULL", "0\n");
    assert_int_equal(sql_number(d.file, "SELECT count(DISTINCT process_id) FROM thread"), 3);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM problem"), 0);
    assert_sql(d.file, "SELECT count(*) FROM event a JOIN event b ON b.id = a.id + 1 WHERE b.t_ns < a.t_ns", "0\n");
    tmp_dir_remove(&d);
}

static void test_attach_needs_a_collector(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    const tide_recorder_options opt = {.drain = TIDE_RECORD_ATTACH};
    feeder f;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(feeder_try(&f, d.file, &opt, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "no collector");
    demo_record(d.file, 0); // a finished trace is no better
    assert_tide_status(feeder_try(&f, d.file, &opt, &err), TIDE_ERR_NOT_FOUND);
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

/// The shared collector is killed: who records goes on in its place, and leaves the rest to the next one.
static void test_shared_collector_that_is_killed(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    shared *s = share();
    const pid_t collector = start_shared(d.file, s);
    const tide_recorder_options opt = {.drain = TIDE_RECORD_ATTACH, .ring_events = 1024, .quiet = true};
    feeder a, b;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(feeder_try(&a, d.file, &opt, &err), &err);
    assert_tide_ok(feeder_try(&b, d.file, &opt, &err), &err); // another recorder stands for another process
    feed_blocks(&a, 1, 100);
    feed_blocks(&b, 1, 100);
    kill(collector, SIGKILL);
    assert_int_equal(end_of(collector), 100 + SIGKILL);
    munmap(s, sizeof *s);
    feed_blocks(&a, 101, 5000); // more than the ring holds
    feed_blocks(&b, 101, 100);
    feeder_close(&a);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "recording\n");
    feed_blocks(&b, 201, 5000);
    feeder_close(&b);
    assert_sql(d.file, "SELECT value FROM meta WHERE key IN ('state', 'totals') ORDER BY key", "complete\nequal\n");
    assert_sql(d.file, "SELECT process_id, n_allocs, n_frees FROM total", "1|5100|5100\n2|5200|5200\n");
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM block WHERE free_event IS NOT NULL"), 10300);
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

/// A child of fork has no part in the recording, whatever it does with the recorder.
static void test_forked_child_harms_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed_blocks(&f, 1, 10);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tide_error err = TIDE_ERROR_INIT;
        const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
        feed_blocks(&f, 1000, 10);
        tide_recorder_mark(f.rec, "child");
        const bool refused = tide_recorder_begin_run(f.rec, &info, NULL, NULL, &err) == TIDE_ERR_INVALID &&
                             tide_recorder_flush(f.rec, &err) == TIDE_ERR_INVALID;
        _exit(tide_recorder_close(f.rec, &err) == TIDE_OK && refused ? 0 : 1);
    }
    assert_int_equal(end_of(pid), 0);
    feed_blocks(&f, 11, 10);
    feeder_close(&f);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM block"), 20);
    assert_int_equal(sql_number(d.file, "SELECT max(id) FROM block"), 20);
    tmp_dir_remove(&d);
}

/// Every option that a recorder gives is one that its collector takes: the hook of this program, started again, does
/// not return to main.
static void test_the_hook_takes_what_a_recorder_gives(void **state) {
    (void)state;
    static const char *const all[] = {"program",
                                      "collect",
                                      "/nowhere/trace.db",
                                      "--ready-fd",
                                      "3",
                                      "--form",
                                      "rows",
                                      "--max-bytes",
                                      "0",
                                      "--batch-events",
                                      "7",
                                      "--hold-back-ms",
                                      "5",
                                      "--attached-late",
                                      "--quiet"};
    enum { N = sizeof all / sizeof all[0] };
    char *args[N + 1] = {NULL};
    for (size_t i = 0; i < N; i++) args[i] = (char *)(uintptr_t)all[i];
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tide_collector_hook(N, args);
        _exit(42);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 1); // there is no such trace
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "collect") == 0) tide_collector_hook(argc, argv);
    if (realpath(argv[0], self) == NULL) return 1;
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_process_writes_the_events_it_received),
        tide_unit_test(test_collector_that_does_not_begin),
        tide_unit_test(test_collector_is_deaf_to_the_keyboard),
        tide_unit_test(test_abandon_ends_the_collector),
        tide_unit_test(test_collector_that_is_killed),
        tide_unit_test(test_collector_that_is_stopped_and_killed),
        tide_unit_test(test_two_processes_one_collector),
        tide_unit_test(test_attach_needs_a_collector),
        tide_unit_test(test_shared_collector_that_is_killed),
        tide_unit_test(test_forked_child_harms_nothing),
        tide_unit_test(test_a_program_is_asked_before_it_is_its_collector),
        tide_unit_test(test_the_hook_takes_what_a_recorder_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
