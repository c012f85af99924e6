// SPDX-License-Identifier: MIT
//
// The recorder: what is in the file is what was heard, while it records and afterwards, in one file of its own name.
#include <pthread.h>

#include "profiler/query.h"
#include "profiler/store/finish.h"
#include "tests/profiler/trace_fixture.h"
#include "tidemark/version.h"

static int64_t sql_number(const char *path, const char *query) {
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

// ---- what is in the file ----

static void check_demo(const tmp_dir *d) {
    assert_int_equal(tmp_dir_count(d), 1); // one file: no -wal, no -shm, no feed
    assert_int_equal(sql_number(d->file, "SELECT count(*) FROM event"), N_DEMO_EVENTS + N_DEMO_SCOPE_EVENTS);
    assert_int_equal(sql_number(d->file, "SELECT count(*) FROM scope_event"), N_DEMO_SCOPE_EVENTS);
    assert_int_equal(sql_number(d->file, "SELECT count(*) FROM block"), N_DEMO_BLOCKS);
    assert_sql(d->file,
               "SELECT e.run_id, t_ns, o.name, block_id, k.name, d.name, stream, requested_bytes, reserved_bytes, "
               "address, thread, a.text, t.text, scope_id FROM event e JOIN op o ON o.id = e.op "
               "JOIN kind k ON k.id = e.kind JOIN device d ON d.id = e.device JOIN name a ON a.id = allocator_id "
               "JOIN name t ON t.id = tag_id WHERE e.id IN (1, 6, 8, 9, 58) ORDER BY e.id",
               "1|1010|alloc|1|Default|cpu|0|1024|1024|139637976731648|1|cpu|x|\n"
               "1|1110|alloc|4|Workspace|cpu|0|1024|1024|139637976743936|1|cpu|a|2\n"
               "1|1179|free_requested|5|Workspace|cpu|0|768|768|139637976748032|1|cpu|conv.scratch|2\n"
               "1|1180|free_completed|5|Workspace|cpu|0|768|768|139637976748032|1|cpu|conv.scratch|2\n"
               "2|2670|oom||Workspace|cpu|0|1000000|||1|cpu|too much|10\n");
    assert_sql(d->file,
               "SELECT s.id, n.text, s.kind, s.step, s.parent_id FROM scope s JOIN name n ON n.id = s.name_id "
               "WHERE s.id IN (1, 2, 6, 10)",
               "1|demo|run|0|\n2|conv|operator|0|1\n6|demo|run|1|\n10|add|operator|3|6\n");
    assert_sql(d->file,
               "SELECT id, process_id, model, source, mode, strategy, device, begin_ns, end_ns, first_event, "
               "last_event, plan_bytes, plan_naive_bytes, plan_lower_bound_bytes FROM run",
               "1|1|demo|demo.json|naive||cpu|1000|1600|1|34|2560|3328|2560\n"
               "2|1|demo|demo.json|planned|by_hand|cpu|2000|2900|35|68|2560|3328|2560\n");
    assert_sql(d->file,
               "SELECT id, run_id, alloc_event, free_event, alloc_ns, free_requested_ns, free_ns FROM block "
               "WHERE id IN (5, 15)",
               "5|1|7|9|1120|1179|1180\n15|2|57||2660||\n");
}

static void test_demo_is_written_as_received(void **state) {
    (void)state;
    const size_t batches[] = {1, 7, 8192, SIZE_MAX};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        demo_record(d.file, batches[i]);
        check_demo(&d);
        tmp_dir_remove(&d);
    }
}

static void test_file_is_recognised_by_content(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    assert_sql(d.file, "PRAGMA user_version", "1\n");
    assert_sql(d.file, "PRAGMA application_id", "1953064037\n"); // 'tide'
    assert_sql(d.file, "PRAGMA page_size", "8192\n");
    assert_sql(d.file, "PRAGMA journal_mode", "delete\n");
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    assert_sql(d.file,
               "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict AND "
               "name NOT LIKE 'sqlite_%'",
               "0\n");
    assert_sql(d.file,
               "SELECT key, value FROM meta WHERE key NOT IN ('created_utc', 'feed_bytes', 'own_peak_bytes', "
               "'blocked_ns') ORDER BY key",
               "clock|CLOCK_MONOTONIC, ns\ncreated_by|tidemark\nfirst_kept_event|1\nfreed_bytes|11008\nn_blocks|13\n"
               "n_events|68\nn_lost|0\nn_names|17\nn_orphan_frees|0\nn_problems|0\nn_runs|2\nn_scope_events|30\n"
               "n_scopes|10\nrequested_bytes|11048\nschema|tidemark.trace\nstate|complete\ntool_version|" TIDE_VERSION
               "\ntotals|equal\nversion|1\n");
    assert_sql(d.file,
               "SELECT count(*) FROM meta WHERE key IN ('feed_bytes', 'own_peak_bytes') AND CAST(value AS INTEGER) > "
               "0",
               "2\n");
    assert_sql(d.file,
               "SELECT pid > 0, rank, length(command) > 0, feed LIKE 'trace.db.feed-%', end_ns >= 0, how "
               "FROM process",
               "1||1|1|1|closed\n");
    unsigned char head[TIDE_TRACE_HEAD_BYTES];
    FILE *f = fopen(d.file, "rb");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    fclose(f);
    assert_true(tide_trace_recognise(head, sizeof head));
    assert_false(tide_trace_recognise(head, sizeof head - 1));
    head[71] ^= 1;
    assert_false(tide_trace_recognise(head, sizeof head));
    tmp_dir_remove(&d);
}

static void test_existing_file_is_replaced_at_open(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    FILE *f = fopen(d.file, "wb");
    fputs("old", f);
    fclose(f);
    feeder feed_;
    feeder_open(&feed_, d.file, 0, false);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "recording\n");
    feed(&feed_, 5, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, "a");
    tide_recorder_abandon(feed_.rec);
    assert_int_equal(tmp_dir_count(&d), 0); // neither the old one nor ours
    demo_record(d.file, 0);
    demo_record(d.file, 0);
    check_demo(&d);
    tide_recorder_abandon(NULL);
    tmp_dir_remove(&d);
}

/// A reader sees during the recording what was flushed: rows, leaves, names, an open run.
static void test_file_can_be_read_while_it_grows(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    assert_int_equal(feed_begin_run(&f, 10, &info, NULL), 1);
    tide_error err = TIDE_ERROR_INIT;
    for (uint64_t i = 1; i <= 20; i++) {
        feed(&f, 10 + i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, "grown");
        assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
        assert_int_equal(sql_number(d.file, "SELECT count(*) FROM event WHERE run_id = 1"), i);
    }
    assert_sql(d.file, "SELECT first_event, last_event, end_ns FROM run", "1||\n");
    assert_sql(d.file, "SELECT DISTINCT n.text FROM event e JOIN name n ON n.id = e.tag_id", "grown\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "recording\n");
    feeder_close(&f);
    assert_sql(d.file, "SELECT first_event, last_event, end_ns FROM run", "1|20|30\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
    tmp_dir_remove(&d);
}

static void test_marks(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, "a");
    f.now = 150;
    tide_recorder_mark(f.rec, "before");
    feed_free(&f, 200, 1, TIDE_KIND_DEFAULT, 8, "a");
    tide_recorder_mark(f.rec, "after");
    feeder_close(&f);
    assert_sql(d.file,
               "SELECT e.id, e.t_ns, e.block_id, n.text FROM event e JOIN op o ON o.id = e.op JOIN name n ON n.id = "
               "e.tag_id WHERE o.name = 'snapshot'",
               "2|150||before\n5|200||after\n");
    tmp_dir_remove(&d);
}

static void test_ranks(void **state) {
    (void)state;
    static const struct {
        tide_recorder_options opt;
        const char *launcher, *want;
    } cases[] = {
        {{.rank = 0}, NULL, "\n"},     {{.rank = 0, .has_rank = true}, NULL, "0\n"},
        {{.rank = 3}, NULL, "3\n"},    {{.rank = -1}, NULL, "\n"},
        {{.rank = -1}, "7", "7\n"},    {{.rank = 2}, "7", "2\n"},
        {{.rank = -1}, "seven", "\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        if (cases[i].launcher != NULL) setenv("PMI_RANK", cases[i].launcher, 1);
        tide_recorder *r;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_recorder_open(d.file, &cases[i].opt, &r, &err), &err);
        unsetenv("PMI_RANK");
        assert_tide_ok(tide_recorder_close(r, &err), &err);
        assert_sql(d.file, "SELECT rank FROM process", cases[i].want);
        tmp_dir_remove(&d);
    }
}

static void test_meta(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_put_meta(f.rec, "tool_version", "0", &err), &err);
    assert_tide_ok(tide_recorder_put_meta(f.rec, "tool_version", "1.2", &err), &err);
    // All that docs/trace-format.md says are written by the recorder.
    static const char *const own[] = {
        "schema",  "version",  "created_by",       "created_utc", "clock",          "state",
        "reason",  "n_events", "first_kept_event", "n_blocks",    "n_scope_events", "n_runs",
        "n_names", "n_scopes", "requested_bytes",  "freed_bytes", "n_orphan_frees", "n_problems",
        "n_late",  "n_lost",   "totals",           "feed_bytes",  "blocked_ns",     "own_peak_bytes"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        assert_tide_status(tide_recorder_put_meta(f.rec, own[i], "7", &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, own[i]);
    }
    feeder_close(&f);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'tool_version'", "1.2\n");
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err); // a trace of nothing is a trace
    char text[3];
    assert_tide_ok(tide_trace_meta(t, "tool_version", text, sizeof text, &err), &err);
    assert_string_equal(text, "1."); // cut to fit
    assert_tide_status(tide_trace_meta(t, "none", text, sizeof text, &err), TIDE_ERR_NOT_FOUND);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

static void test_two_recorders_aim_at_one_name(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder a;
    feeder_open(&a, d.file, 0, false);
    tide_recorder *b = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_open(d.file, NULL, &b, &err), TIDE_ERR_BUSY);
    assert_null(b);
    assert_text_has(err.msg, d.file);
    feed(&a, 5, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, "a");
    feeder_close(&a);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT requested_bytes FROM block", "8\n");
    tmp_dir_remove(&d);
}

static void test_time_never_runs_backwards(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, NULL);
    feed(&f, 90, TIDE_MEM_ALLOC, 2, TIDE_KIND_DEFAULT, 8, NULL); // waited for the lock
    feed(&f, 110, TIDE_MEM_ALLOC, 3, TIDE_KIND_DEFAULT, 8, NULL);
    feeder_close(&f);
    assert_sql(d.file, "SELECT id, t_ns FROM event", "1|100\n2|100\n3|110\n");
    tmp_dir_remove(&d);
}

static void test_runs_open_and_close(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_end_run(f.rec, &err), TIDE_ERR_INVALID);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cuda"};
    f.now = 10;
    assert_int_equal(feed_begin_run(&f, 10, &info, NULL), 1);
    int64_t id = -1;
    assert_tide_status(tide_recorder_begin_run(f.rec, &info, NULL, &id, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "run 1 is still open");
    feed(&f, 20, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, NULL);
    f.now = 30;
    feeder_close(&f); // ends the run
    assert_sql(d.file, "SELECT id, source, strategy, device, begin_ns, end_ns, first_event, last_event FROM run",
               "1|||cuda:0|10|30|1|1\n"); // the name that events use
    tmp_dir_remove(&d);
}

// ---- threads ----

enum { MAX_THREADS = 8, N_PER_THREAD = 3000 };

typedef struct worker {
    feeder *f;
    uint32_t thread;
    uint64_t requested;
} worker;

/// Allocates, keeps up to 16 blocks, frees; each in a scope of its own.
static void *work(void *arg) {
    worker *w = arg;
    feeder own = *w->f; // the observer, with a scope and a thread number of its own
    own.thread = w->thread;
    tide_rng rng = {w->thread};
    uint64_t live[16] = {0}, sizes[16] = {0};
    char name[16];
    snprintf(name, sizeof name, "worker %" PRIu32, w->thread);
    const tide_scope scope = {.name = name, .kind = TIDE_SCOPE_REGION, .index = -1};
    feed_scope(&own, tide_now_ns(), true, &scope);
    for (uint64_t i = 0; i < N_PER_THREAD; i++) {
        const size_t slot = (size_t)tide_rng_below(&rng, 16);
        if (live[slot] != 0) {
            feed_free(&own, tide_now_ns(), live[slot], (tide_memory_kind)(live[slot] % TIDE_N_KINDS), sizes[slot],
                      name);
            live[slot] = 0;
        } else {
            live[slot] = w->thread * 1000000u + i + 1;
            sizes[slot] = 1 + tide_rng_below(&rng, 5000);
            feed(&own, tide_now_ns(), TIDE_MEM_ALLOC, live[slot], (tide_memory_kind)(live[slot] % TIDE_N_KINDS),
                 sizes[slot], name);
            w->requested += sizes[slot];
        }
    }
    feed_scope(&own, tide_now_ns(), false, &scope);
    return NULL;
}

static void record_threads(uint32_t n_threads, tide_record_form form) {
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f = {.thread = 1};
    const tide_recorder_options opt = {.form = form, .ring_events = 256, .batch_events = 1000};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(d.file, &opt, &f.rec, &err), &err);
    f.obs = tide_recorder_observer(f.rec);
    worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    for (uint32_t i = 0; i < n_threads; i++) {
        workers[i] = (worker){.f = &f, .thread = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    int64_t requested = 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        requested += (int64_t)workers[i].requested;
    }
    feeder_close(&f);
    if (form == TIDE_RECORD_CHUNKS) assert_tide_ok(tide__finish_expand(d.file, &err), &err);
    assert_int_equal(sql_number(d.file, "SELECT sum(requested_bytes) FROM event WHERE op = 1"), requested);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM scope_event"), 2 * n_threads);
    assert_int_equal(sql_number(d.file, "SELECT count(DISTINCT thread) FROM block"), n_threads);
    // Each block was allocated inside the scope of its own thread.
    assert_sql(d.file, "SELECT count(*) FROM blocks WHERE scope <> 'worker ' || thread OR name <> scope", "0\n");
    assert_sql(d.file, "SELECT count(*) FROM event a JOIN event b ON b.id = a.id + 1 WHERE b.t_ns < a.t_ns", "0\n");
    // A ring that is half full lets go of what it should hold back; what a thread puts in then may come late.
    assert_sql(d.file, "SELECT count(*) FROM problem WHERE problem <> 8", "0\n");
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'totals'", "equal\n");
    tmp_dir_remove(&d);
}

static void test_threads(void **state) {
    (void)state;
    record_threads(1, TIDE_RECORD_ROWS);
    record_threads(2, TIDE_RECORD_AUTO);
    record_threads(8, TIDE_RECORD_ROWS);
    record_threads(8, TIDE_RECORD_CHUNKS);
}

// ---- disks ----

static void expect_no_open(const char *path, tide_status want, const char *words) {
    tide_recorder *r = NULL;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_open(path, NULL, &r, &err), want);
    assert_null(r);
    assert_text_has(err.msg, path);
    assert_text_has(err.msg, words);
}

static void test_places_that_cannot_be_written(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    expect_no_open("", TIDE_ERR_INVALID, "not a stream");
    expect_no_open("-", TIDE_ERR_INVALID, "not a stream");
    expect_no_open(d.path, TIDE_ERR_WRITE, "directory");
    char path[600];
    snprintf(path, sizeof path, "%s/none/trace.db", d.path);
    expect_no_open(path, TIDE_ERR_WRITE, "does not exist");
    snprintf(path, sizeof path, "%s/file", d.path);
    FILE *f = fopen(path, "w");
    fclose(f);
    snprintf(path, sizeof path, "%s/file/trace.db", d.path);
    expect_no_open(path, TIDE_ERR_WRITE, "Not a directory");
    expect_no_open("/proc/trace.db", TIDE_ERR_WRITE, "No such file");
    // The finished file would take the place of a device or a pipe.
    expect_no_open("/dev/null", TIDE_ERR_WRITE, "not a regular file");
    snprintf(path, sizeof path, "%s/pipe", d.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_no_open(path, TIDE_ERR_WRITE, "not a regular file");
    struct stat info;
    assert_true(stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    assert_int_equal(tmp_dir_count(&d), 2);
    tmp_dir_remove(&d);
}

static void test_names_that_mean_something_to_sqlite(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char here[512];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(d.path), 0);
    const char *const names[] = {":memory:", "file:x.db?mode=memory", "a b%20'\".db"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        demo_record(names[i], 0);
        struct stat info;
        assert_int_equal(stat(names[i], &info), 0);
        tide_error err = TIDE_ERROR_INIT;
        tide_trace *t;
        assert_tide_ok(tide_trace_open(names[i], &t, &err), &err);
        tide_trace_close(t);
    }
    assert_int_equal(tmp_dir_count(&d), 3);
    assert_int_equal(chdir(here), 0);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_demo_is_written_as_received),
        tide_unit_test(test_file_is_recognised_by_content),
        tide_unit_test(test_existing_file_is_replaced_at_open),
        tide_unit_test(test_file_can_be_read_while_it_grows),
        tide_unit_test(test_marks),
        tide_unit_test(test_ranks),
        tide_unit_test(test_meta),
        tide_unit_test(test_two_recorders_aim_at_one_name),
        tide_unit_test(test_time_never_runs_backwards),
        tide_unit_test(test_runs_open_and_close),
        tide_unit_test(test_threads),
        tide_unit_test(test_places_that_cannot_be_written),
        tide_unit_test(test_names_that_mean_something_to_sqlite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
