// SPDX-License-Identifier: MIT
//
// The recorder: what is in the file is what was heard, in one file of its own name, or no file at all.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/profiler/trace_fixture.h"

#include "profiler/query.h"

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

static void test_demo_is_written_as_heard(void **state) {
    (void)state;
    const size_t batches[] = {1, 7, 8192, SIZE_MAX};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        demo_record(d.file, batches[i]);
        assert_int_equal(tmp_dir_count(&d), 1); // one file: no -wal, no -shm, nothing temporary
        assert_int_equal(sql_number(d.file, "SELECT count(*) FROM event"), N_DEMO_EVENTS);
        assert_int_equal(sql_number(d.file, "SELECT count(*) FROM scope_event"), N_DEMO_SCOPE_EVENTS);
        assert_int_equal(sql_number(d.file, "SELECT count(*) FROM block"), N_DEMO_BLOCKS);
        assert_sql(d.file,
                   "SELECT e.run_id, t_ns, o.name, block_id, k.name, d.name, stream, requested_bytes, reserved_bytes, "
                   "address, thread, a.text, t.text, scope_id FROM event e JOIN op o ON o.id = e.op "
                   "JOIN kind k ON k.id = e.kind JOIN device d ON d.id = e.device JOIN name a ON a.id = allocator_id "
                   "JOIN name t ON t.id = tag_id WHERE e.id IN (1, 4, 6, 7, 30) ORDER BY e.id",
                   "1|1010|alloc|1|Default|cpu|0|1024|1024|139637976731648|1|cpu|x|\n"
                   "1|1110|alloc|4|Workspace|cpu|0|1024|1024|139637976743936|1|cpu|a|2\n"
                   "1|1179|free_requested|5|Workspace|cpu|0|768|768|139637976748032|1|cpu|conv.scratch|2\n"
                   "1|1180|free_completed|5|Workspace|cpu|0|768|768|139637976748032|1|cpu|conv.scratch|2\n"
                   "2|2670|oom|0|Workspace|cpu|0|1000000|0|0|1|cpu|too much|10\n");
        assert_sql(d.file,
                   "SELECT s.id, n.text, s.kind, s.step, s.parent_id FROM scope s JOIN name n ON n.id = s.name_id "
                   "WHERE s.id IN (1, 2, 6, 10)",
                   "1|demo|run|0|\n2|conv|operator|0|1\n6|demo|run|1|\n10|add|operator|3|6\n");
        assert_sql(d.file,
                   "SELECT id, model, source, mode, strategy, device, begin_ns, end_ns, first_event, last_event, "
                   "plan_bytes, plan_naive_bytes, plan_lower_bound_bytes FROM run",
                   "1|demo|demo.json|naive||cpu|1000|1600|1|24|2560|3328|2560\n"
                   "2|demo|demo.json|planned|by_hand|cpu|2000|2900|25|38|2560|3328|2560\n");
        assert_sql(d.file,
                   "SELECT id, run_id, alloc_event, free_event, alloc_ns, free_requested_ns, free_ns FROM block "
                   "WHERE id IN (5, 15)",
                   "5|1|5|7|1120|1179|1180\n15|2|29||2660||\n");
        tmp_dir_remove(&d);
    }
}

static void test_file_is_recognised_by_content(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    assert_sql(d.file, "PRAGMA user_version", "2\n");
    assert_sql(d.file, "PRAGMA application_id", "1953064037\n"); // 'tide'
    assert_sql(d.file, "PRAGMA page_size", "8192\n");
    assert_sql(d.file, "PRAGMA journal_mode", "delete\n");
    assert_sql(d.file, "PRAGMA integrity_check", "ok\n");
    assert_sql(d.file, "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict",
               "19\n");
    assert_sql(d.file, "SELECT key, value FROM meta WHERE key <> 'created_utc' ORDER BY key",
               "clock|CLOCK_MONOTONIC, ns\ncreated_by|tidemark\nfreed_bytes|11008\nn_blocks|13\nn_events|38\n"
               "n_names|17\nn_orphan_frees|0\nn_runs|2\nn_scope_events|30\nn_scopes|10\nrequested_bytes|11048\n"
               "schema|tidemark.trace\nversion|2\n");
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

static void test_existing_file_is_replaced_only_at_close(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    FILE *f = fopen(d.file, "wb");
    fputs("old", f);
    fclose(f);
    feeder feed_;
    feeder_open(&feed_, d.file, 0, false);
    struct stat info;
    assert_int_equal(stat(d.file, &info), 0);
    assert_int_equal(info.st_size, 3);
    tide_recorder_abandon(feed_.rec);
    assert_int_equal(tmp_dir_count(&d), 1); // the old one; nothing of ours
    assert_int_equal(stat(d.file, &info), 0);
    assert_int_equal(info.st_size, 3);
    demo_record(d.file, 0);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT count(*) FROM run", "2\n");
    tide_recorder_abandon(NULL);
    tmp_dir_remove(&d);
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
    assert_tide_status(tide_recorder_put_meta(f.rec, "n_events", "7", &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "n_events");
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
    feeder a, b;
    feeder_open(&a, d.file, 0, false);
    feeder_open(&b, d.file, 0, false);
    feed(&a, 5, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, "a");
    feed(&b, 5, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 9, "b");
    feeder_close(&a);
    feeder_close(&b);
    assert_int_equal(tmp_dir_count(&d), 1);
    assert_sql(d.file, "SELECT requested_bytes FROM block", "9\n"); // the later one, whole
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

// ---- events that cannot be true ----

static void expect_refused(const tide_memory_event *events, size_t n, const char *words) {
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    for (size_t i = 0; i < n; i++) f.obs.on_memory(f.obs.self, &events[i]);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_put_meta(f.rec, "k", "v", &err), TIDE_ERR_INVALID); // kept until close
    assert_text_has(err.msg, words);
    feed(&f, 1, TIDE_MEM_ALLOC, 77, TIDE_KIND_DEFAULT, 8, NULL); // quiet
    tide_error_clear(&err);
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, words);
    assert_int_equal(tmp_dir_count(&d), 0);
    tmp_dir_remove(&d);
}

static void test_untrue_events_are_refused(void **state) {
    (void)state;
    const tide_memory_event good = {.op = TIDE_MEM_ALLOC, .block_id = 1, .requested_bytes = 8, .reserved_bytes = 8};
    tide_memory_event bad[3] = {good, good, good};
    expect_refused(bad, 2, "it is already allocated");
    bad[0].block_id = 0;
    expect_refused(bad, 1, "no number");
    bad[0] = good;
    bad[0].op = TIDE_MEM_FREE_COMPLETED;
    expect_refused(bad, 1, "it is not allocated");
    bad[0] = good;
    bad[1].op = bad[2].op = TIDE_MEM_FREE_COMPLETED;
    expect_refused(bad, 3, "it is not allocated");
    bad[1].op = bad[2].op = TIDE_MEM_FREE_REQUESTED;
    expect_refused(bad, 3, "requested before");
    bad[0].kind = (tide_memory_kind)TIDE_N_KINDS;
    expect_refused(bad, 1, "kind");
    bad[0] = good;
    bad[0].op = (tide_memory_op)9;
    expect_refused(bad, 1, "no such operation");
    bad[0] = good;
    bad[0].requested_bytes = UINT64_MAX;
    expect_refused(bad, 1, "passes 2^63");
    bad[0] = good;
    bad[0].t_ns = (uint64_t)INT64_MAX + 1;
    expect_refused(bad, 1, "time");
    bad[0] = bad[1] = good;
    bad[1].block_id = 2;
    bad[0].requested_bytes = bad[1].requested_bytes = INT64_MAX;
    expect_refused(bad, 2, "all requests pass");
}

static void test_circle_of_scopes_is_refused(void **state) {
    (void)state;
    tide_scope a = {.name = "a"}, b = {.name = "b", .parent = &a};
    a.parent = &b;
    const tide_memory_event event = {.op = TIDE_MEM_ALLOC, .block_id = 1, .requested_bytes = 8, .scope = &a};
    expect_refused(&event, 1, "cannot record event 1");
}

static void test_attached_late_keeps_orphan_frees(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, true);
    feed_free(&f, 100, 7, TIDE_KIND_DEFAULT, 64, "before us");
    feed(&f, 110, TIDE_MEM_ALLOC, 8, TIDE_KIND_DEFAULT, 8, "after");
    feeder_close(&f);
    assert_sql(d.file, "SELECT value FROM meta WHERE key = 'n_orphan_frees'", "2\n");
    assert_sql(d.file, "SELECT count(*) FROM event", "3\n");
    assert_sql(d.file, "SELECT kind, peak_bytes FROM bytes_by_kind", "Default|8\n");
    tmp_dir_remove(&d);
}

// ---- threads ----

enum { N_THREADS = 4, N_PER_THREAD = 3000 };

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

static void test_threads(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 64, false);
    worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (uint32_t i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.f = &f, .thread = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    int64_t requested = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        requested += (int64_t)workers[i].requested;
    }
    f.now = tide_now_ns();
    feeder_close(&f);
    assert_int_equal(sql_number(d.file, "SELECT sum(requested_bytes) FROM event WHERE op = 1"), requested);
    assert_int_equal(sql_number(d.file, "SELECT count(*) FROM scope_event"), 2 * N_THREADS);
    assert_int_equal(sql_number(d.file, "SELECT count(DISTINCT thread) FROM block"), N_THREADS);
    // Each block was allocated inside the scope of its own thread.
    assert_sql(d.file, "SELECT count(*) FROM blocks WHERE scope <> 'worker ' || thread OR name <> scope", "0\n");
    assert_sql(d.file, "SELECT count(*) FROM event a JOIN event b ON b.id = a.id + 1 WHERE b.t_ns < a.t_ns", "0\n");
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    tide_trace_close(t);
    tmp_dir_remove(&d);
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
    expect_no_open(d.path, TIDE_ERR_IO, "directory");
    char path[600];
    snprintf(path, sizeof path, "%s/none/trace.db", d.path);
    expect_no_open(path, TIDE_ERR_IO, "unable to open");
    snprintf(path, sizeof path, "%s/file", d.path);
    FILE *f = fopen(path, "w");
    fclose(f);
    snprintf(path, sizeof path, "%s/file/trace.db", d.path);
    expect_no_open(path, TIDE_ERR_IO, "unable to open");
    expect_no_open("/proc/trace.db", TIDE_ERR_IO, "unable to open");
    // The finished file would take the place of a device or a pipe.
    expect_no_open("/dev/null", TIDE_ERR_IO, "not a regular file");
    snprintf(path, sizeof path, "%s/pipe", d.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_no_open(path, TIDE_ERR_IO, "not a regular file");
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

/// The place becomes a directory while recording: the close fails, and nothing is left.
static void test_target_turns_into_a_directory(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, NULL);
    assert_int_equal(mkdir(d.file, 0700), 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, d.file);
    assert_int_equal(tmp_dir_count(&d), 1);
    rmdir(d.file);
    tmp_dir_remove(&d);
}

/// The folder goes away while recording: the close fails and says so.
static void test_folder_is_removed_while_recording(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char folder[600], path[700], moved[600];
    snprintf(folder, sizeof folder, "%s/in", d.path);
    snprintf(moved, sizeof moved, "%s/out", d.path);
    snprintf(path, sizeof path, "%s/trace.db", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    feeder f;
    feeder_open(&f, path, 0, false);
    feed(&f, 100, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 8, NULL);
    assert_int_equal(rename(folder, moved), 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "cannot write");
    assert_text_has(err.note, "moved or removed");
    assert_int_equal(tmp_dir_count(&d), 1);
    char command[800];
    snprintf(command, sizeof command, "rm -rf '%s'", moved);
    assert_int_equal(system(command), 0);
    tmp_dir_remove(&d);
}

/// A limit on the size of files stands for a full disk: SQLite gets EFBIG from write.
static void test_disk_full_leaves_nothing_and_harms_nobody(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*const old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    feeder f;
    feeder_open(&f, d.file, 100, false);
    const struct rlimit limit = {.rlim_cur = 400000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint64_t i = 1; i <= 50000; i++) feed(&f, i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, "block");
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_recorder_close(f.rec, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, old_handler);
    assert_tide_status(st, TIDE_ERR_IO);
    assert_text_has(err.msg, d.file);
    assert_int_equal(tmp_dir_count(&d), 0);
    tmp_dir_remove(&d);
}

/// Rows that get lost between hearing and closing are noticed: here by another hand on the growing file.
static void test_lost_rows_are_noticed_at_close(void **state) {
    (void)state;
    static const struct {
        const char *change, *words;
    } cases[] = {
        {"DELETE FROM event WHERE id = 5", "events: 24 heard, 23 in the file"},
        {"UPDATE event SET requested_bytes = 1 WHERE id = 1", "requested bytes: 2048 heard, 1025 in the file"},
        {"UPDATE event SET op = 4 WHERE id = 7", "frees: 5 heard, 4 in the file"},
        {"DELETE FROM scope_event WHERE id = 5", "scope events: 10 heard, 9 in the file"},
        {"DELETE FROM name WHERE id = 1", "names: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        feeder f;
        feeder_open(&f, d.file, 1, false);
        demo_naive_run(&f, NULL);
        char growing[600] = "";
        DIR *dir = opendir(d.path);
        assert_non_null(dir);
        for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
            if (strncmp(e->d_name, "trace.db.tmp-", 13) == 0 && strchr(e->d_name + 13, 'w') == NULL &&
                strchr(e->d_name + 13, 'h') == NULL)
                snprintf(growing, sizeof growing, "%s/%s", d.path, e->d_name);
        }
        closedir(dir);
        sql_exec(growing, cases[i].change);
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_recorder_close(f.rec, &err), TIDE_ERR_RUNTIME);
        assert_text_has(err.msg, "does not hold what was recorded");
        assert_text_has(err.note, cases[i].words);
        assert_int_equal(tmp_dir_count(&d), 0);
        tmp_dir_remove(&d);
    }
}

// ---- memory ----

/// Every allocation of ours fails once: the right status, no leak (the fixture counts), no file.
static void test_out_of_memory_everywhere(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    bool done = false;
    int64_t n = 0;
    for (; !done && n < 1000; n++) {
        tide_memory_plan *plan = demo_plan_make();
        tide_error err = TIDE_ERROR_INIT;
        tide_recorder *rec = NULL;
        tide_host_fail_after(n);
        feeder f = {.thread = 1};
        const tide_recorder_options opt = {.batch_events = 4, .now = feeder_now, .now_ctx = &f};
        tide_status st = tide_recorder_open(d.file, &opt, &rec, &err);
        if (st == TIDE_OK) {
            f.rec = rec;
            f.obs = tide_recorder_observer(rec);
            const tide_run_info info = {.model = "demo", .mode = "planned", .device = "cpu"};
            int64_t run_id;
            const tide_status begun = tide_recorder_begin_run(rec, &info, plan, &run_id, &err);
            const tide_scope scope = {.name = "op", .kind = TIDE_SCOPE_OPERATOR, .index = 0};
            feed_scope(&f, 10, true, &scope);
            for (uint64_t i = 1; i <= 40; i++) feed(&f, 10 + i, TIDE_MEM_ALLOC, i, TIDE_KIND_DEFAULT, 8, "block");
            feed_scope(&f, 60, false, &scope);
            st = tide_recorder_close(rec, &err);
            if (st == TIDE_OK) st = begun;
        }
        tide_host_fail_after(-1);
        tide_memory_plan_destroy(plan);
        done = st == TIDE_OK;
        if (!done) assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_int_equal(tmp_dir_count(&d), done ? 1 : 0);
    }
    assert_true(done);
    assert_true(n > 15); // the loop did reach the inside
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_demo_is_written_as_heard),
        tide_unit_test(test_file_is_recognised_by_content),
        tide_unit_test(test_existing_file_is_replaced_only_at_close),
        tide_unit_test(test_meta),
        tide_unit_test(test_two_recorders_aim_at_one_name),
        tide_unit_test(test_time_never_runs_backwards),
        tide_unit_test(test_runs_open_and_close),
        tide_unit_test(test_untrue_events_are_refused),
        tide_unit_test(test_circle_of_scopes_is_refused),
        tide_unit_test(test_attached_late_keeps_orphan_frees),
        tide_unit_test(test_threads),
        tide_unit_test(test_places_that_cannot_be_written),
        tide_unit_test(test_names_that_mean_something_to_sqlite),
        tide_unit_test(test_target_turns_into_a_directory),
        tide_unit_test(test_folder_is_removed_while_recording),
        tide_unit_test(test_disk_full_leaves_nothing_and_harms_nobody),
        tide_unit_test(test_lost_rows_are_noticed_at_close),
        tide_unit_test(test_out_of_memory_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
