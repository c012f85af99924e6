// SPDX-License-Identifier: MIT
//
// Files that were made to do harm: thousands of changed traces, and some that are built by hand. Opening one, asking it
// everything and recovering it gives answers or says why not; it does not crash, hang, or ask for memory that the file
// could never fill. What recovering makes of it is a sound trace.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/profiler/ask_all.h"
#include "tests/profiler/file_damage.h"
#include "tests/profiler/trace_fixture.h"

enum { MAX_FILES = 6 };

// ---- files to change ----

typedef struct specimen {
    const char *what;
    struct {
        char ending[80]; ///< behind the name of the trace
        char *data;
        size_t len;
    } files[MAX_FILES];
    size_t n_files;
} specimen;

static void specimen_add(specimen *s, const char *path, const char *ending) {
    assert_true(s->n_files < MAX_FILES);
    char *read;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(path, 0, &read, &len, &err), &err);
    snprintf(s->files[s->n_files].ending, sizeof s->files[0].ending, "%s", ending);
    s->files[s->n_files].data = malloc(len > 0 ? len : 1); // outlives the test that counts
    assert_non_null(s->files[s->n_files].data);
    memcpy(s->files[s->n_files].data, read, len);
    s->files[s->n_files++].len = len;
    tide_host_free(read);
}

static void put(const char *path, const void *data, size_t len) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void some_events(const char *path, tide_record_form form, int n, bool killed) {
    feeder f = {.thread = 1};
    const tide_recorder_options opt = {
        .form = form, .now = feeder_now, .now_ctx = &f, .quiet = true, .ring_events = 4096};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(path, &opt, &f.rec, &err), &err);
    f.obs = tide_recorder_observer(f.rec);
    const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
    feed_begin_run(&f, 1000, &info, NULL);
    for (int i = 0; i < n; i++) {
        feed(&f, 1000 + 10 * (uint64_t)i, TIDE_MEM_ALLOC, (uint64_t)i + 1, TIDE_KIND_WORKSPACE, 512, "t");
        if (i >= 20) feed_free(&f, 1005 + 10 * (uint64_t)i, (uint64_t)i - 19, TIDE_KIND_WORKSPACE, 512, NULL);
        if (i == n / 2) assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    }
    if (killed) kill(getpid(), SIGKILL);
    feed_end_run(&f, 1000 + 10 * (uint64_t)n);
    feeder_close(&f);
}

static void add_unfinished(specimen *s, const tmp_dir *d) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) some_events(d->file, TIDE_RECORD_ROWS, tide_test_rounds(400, 1500), true);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    DIR *dir = opendir(d->path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s", d->path, e->d_name);
        if (strcmp(e->d_name, "trace.db") == 0 || strstr(e->d_name, "-wal") != NULL ||
            strstr(e->d_name, ".feed-") != NULL)
            specimen_add(s, path, e->d_name + strlen("trace.db"));
    }
    closedir(dir);
}

enum { N_SPECIMENS = 4 };

/// Made once: a trace with plans, rows, chunks, one that was left by a killed program.
static const specimen *specimens(void) {
    static specimen all[N_SPECIMENS];
    if (all[0].n_files > 0) return all;
    static const char *const names[N_SPECIMENS] = {"demo", "rows", "chunks", "unfinished"};
    for (int i = 0; i < N_SPECIMENS; i++) {
        all[i].what = names[i];
        tmp_dir d;
        tmp_dir_make(&d);
        if (i == 0) demo_record(d.file, 0);
        if (i == 1 || i == 2)
            some_events(d.file, i == 1 ? TIDE_RECORD_ROWS : TIDE_RECORD_CHUNKS, tide_test_rounds(560, 2000), false);
        if (i == 3) add_unfinished(&all[i], &d);
        if (i != 3) specimen_add(&all[i], d.file, "");
        tmp_dir_remove(&d);
    }
    return all;
}

static void lay_out(const specimen *s, const tmp_dir *d) {
    for (size_t i = 0; i < s->n_files; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s%s", d->file, s->files[i].ending);
        put(path, s->files[i].data, s->files[i].len);
    }
}

// ---- what must hold of every one ----

enum { MEMORY_BYTES = 96 << 20 }; ///< far more than traces of this size take, far less than a file could claim

static void clear(const tmp_dir *d) {
    DIR *dir = opendir(d->path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s", d->path, e->d_name);
        if (e->d_name[0] != '.') remove(path);
    }
    closedir(dir);
}

static bool is_expected(tide_status st) {
    return st == TIDE_OK || st == TIDE_ERR_BAD_INPUT || st == TIDE_ERR_NOT_FOUND;
}

typedef struct tally {
    int n_opened, n_sound, n_recovered;
    uint64_t peak_bytes;
} tally;

/// Open it, ask it, recover it.
static void try_it(const tmp_dir *d, const char *what, tally *t) {
    char out[340];
    snprintf(out, sizeof out, "%s/new.db", d->path);
    tide_error err = TIDE_ERROR_INIT;
    tide_host_reset_peak();
    uint64_t n_lost;
    tide_status st = tide_trace_recover(d->file, out, &n_lost, &err);
    if (!is_expected(st)) fail_msg("%s: recover: %s: %s (%s)", what, tide_status_name(st), err.msg, err.note);
    if (st != TIDE_OK) assert_text_has(err.msg, d->file);
    if (st == TIDE_OK) {
        t->n_recovered++;
        st = ask_all(out, true, &err);
        if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND)
            fail_msg("%s: what was recovered: %s: %s [%s] (%s)", what, tide_status_name(st), err.msg, err.where,
                     err.note);
    }
    tide_error own = TIDE_ERROR_INIT;
    tide_trace *trace = NULL;
    st = tide_trace_open(d->file, &trace, &own);
    if (!is_expected(st)) fail_msg("%s: open: %s: %s (%s)", what, tide_status_name(st), own.msg, own.note);
    if (st != TIDE_OK) assert_text_has(own.msg, d->file);
    if (st == TIDE_OK) {
        t->n_opened++;
        st = ask_trace(trace, true, &own);
        if (!is_expected(st)) fail_msg("%s: asked: %s: %s (%s)", what, tide_status_name(st), own.msg, own.note);
        t->n_sound += st == TIDE_OK;
    }
    tide_trace_close(trace);
    tide_host_stats stats;
    tide_host_get_stats(&stats);
    if (stats.peak_bytes > MEMORY_BYTES) fail_msg("%s: %" PRIu64 " bytes of memory", what, stats.peak_bytes);
    if (stats.peak_bytes > t->peak_bytes) t->peak_bytes = stats.peak_bytes;
}

// ---- thousands of changes ----

static void run_rounds(uint64_t seed, int n_rounds) {
    const specimen *all = specimens();
    tide_rng rng = {seed};
    tally t = {0};
    tmp_dir d;
    tmp_dir_make(&d);
    for (int round = 0; round < n_rounds; round++) {
        const specimen *s = &all[tide_rng_below(&rng, N_SPECIMENS)];
        clear(&d);
        lay_out(s, &d);
        const size_t which = (size_t)tide_rng_below(&rng, s->n_files);
        size_t len = s->files[which].len;
        char *data = malloc(len > 0 ? len : 1);
        assert_non_null(data);
        memcpy(data, s->files[which].data, len);
        const uint64_t n_changes = 1 + tide_rng_below(&rng, 6);
        for (uint64_t i = 0; i < n_changes; i++) mutate(&rng, data, &len);
        char path[500], what[160];
        snprintf(path, sizeof path, "%s%s", d.file, s->files[which].ending);
        snprintf(what, sizeof what, "seed %" PRIu64 ", round %d, %s%s", seed, round, s->what, s->files[which].ending);
        put(path, data, len);
        free(data);
        try_it(&d, what, &t);
    }
    print_message("%d files: %d opened, %d of them sound, %d recovered; at most %" PRIu64 " bytes of memory\n",
                  n_rounds, t.n_opened, t.n_sound, t.n_recovered, t.peak_bytes);
    assert_true(t.n_recovered > n_rounds / 2);
    assert_true(t.n_opened > t.n_sound);
    tmp_dir_remove(&d);
}

/// TIDE_FUZZ_SEED and TIDE_FUZZ_ROUNDS in the environment: another seed, more of them.
static void test_changed_files(void **state) {
    (void)state;
    const char *seed = getenv("TIDE_FUZZ_SEED"), *rounds = getenv("TIDE_FUZZ_ROUNDS");
    run_rounds(seed != NULL ? strtoull(seed, NULL, 10) : 20261122,
               rounds != NULL ? (int)strtol(rounds, NULL, 10) : tide_test_rounds(7, 60));
}

// ---- built by hand ----

/// Number of the page that is the root of a table.
static uint32_t root_of(const char *path, const char *table) {
    sqlite3 *db = sql_open(path);
    char query[160];
    snprintf(query, sizeof query, "SELECT rootpage FROM sqlite_schema WHERE name = '%s' AND type = 'table'", table);
    tide_text t = {0};
    sql_print(db, query, false, &t);
    sqlite3_close(db);
    const uint32_t root = (uint32_t)strtoul(tide_text_str(&t), NULL, 10);
    tide_text_deinit(&t);
    return root;
}

/// A page between the root and the leaves, whose `n` children are all one page.
static void make_interior(char *page, int n, uint32_t child) {
    memset(page, 0, PAGE);
    page[0] = 5;
    page[3] = (char)(n >> 8);
    page[4] = (char)n;
    put_u32(page, 8, child);
    int end = PAGE;
    for (int i = 0; i < n; i++) {
        const int row = i + 1; // in two bytes of a number of variable length
        end -= 6;
        put_u32(page, (size_t)end, child);
        page[end + 4] = (char)(0x80 | row >> 7);
        page[end + 5] = (char)(row & 0x7f);
        page[12 + 2 * i] = (char)(end >> 8);
        page[13 + 2 * i] = (char)end;
    }
    page[5] = (char)(end >> 8);
    page[6] = (char)end;
}

/// Tables whose pages lead to themselves: by their tree, they have more rows than atoms are in the universe.
static void test_endless_tables(void **state) {
    (void)state;
    static const struct {
        const char *table, *before; ///< statements that change the trace first
    } all[] = {
        {"event", NULL},
        {"block", NULL},
        {"name", NULL},
        {"scope", NULL},
        {"leaf", NULL},
        {"meta", NULL},
        {"run", NULL},
        {"snapshot", NULL},
        {"problem", NULL},
        {"process", NULL},
        {"series", NULL},
        {"snapshot", "INSERT INTO snapshot SELECT 1024, t_ns, 0, 0, x'' FROM event WHERE id = 1024"},
        // One that is said to be recorded, and cannot be finished, is looked at without counting.
        {"run", "UPDATE meta SET value = 'recording' WHERE key = 'state'"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        lay_out(&specimens()[1], &d);
        if (all[i].before != NULL) sql_exec(d.file, all[i].before);
        const uint32_t root = root_of(d.file, all[i].table);
        assert_true(root > 1);
        char *was;
        size_t len;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_read_file(d.file, 0, &was, &len, &err), &err);
        const size_t n_pages = len / PAGE;
        char *data = calloc(n_pages + 8, PAGE);
        assert_non_null(data);
        memcpy(data, was, n_pages * PAGE);
        tide_host_free(was);
        // The old root, moved behind, is the one leaf below six floors of pages with 500 children each.
        memcpy(data + (n_pages + 7) * PAGE, data + (size_t)(root - 1) * PAGE, PAGE);
        for (size_t k = 0; k < 7; k++) make_interior(data + (n_pages + k) * PAGE, 500, (uint32_t)(n_pages + k + 2));
        make_interior(data + (size_t)(root - 1) * PAGE, 500, (uint32_t)n_pages + 1);
        put_u32(data, 28, (uint32_t)n_pages + 8);
        put(d.file, data, (n_pages + 8) * PAGE);
        free(data);
        tally t = {0};
        char what[64];
        snprintf(what, sizeof what, "endless %s %zu", all[i].table, i);
        try_it(&d, what, &t);
        tmp_dir_remove(&d);
    }
}

/// A file that claims to be as large as a disk, and is mostly holes.
static void test_huge_files(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        const specimen *s = &specimens()[which == 2 ? 3 : 1];
        tmp_dir d;
        tmp_dir_make(&d);
        lay_out(s, &d);
        for (size_t i = 0; i < s->n_files; i++) {
            char path[500];
            snprintf(path, sizeof path, "%s%s", d.file, s->files[i].ending);
            if (which == 2 && strstr(path, ".feed-") == NULL && strstr(path, "-wal") == NULL) continue;
            if (truncate(path, (off_t)1 << 40) != 0)
                print_message("no sparse file of 1 TiB here: %s\n", strerror(errno));
            if (which != 1) continue;
            FILE *f = fopen(path, "r+b"); // and says so
            assert_non_null(f);
            char pages[4];
            put_u32(pages, 0, (uint32_t)((1ULL << 40) / PAGE));
            fseek(f, 28, SEEK_SET);
            fwrite(pages, 1, 4, f);
            fclose(f);
        }
        tally t = {0};
        try_it(&d, "huge", &t);
        assert_int_equal(t.n_recovered, 1);
        tmp_dir_remove(&d);
    }
}

/// Pipes, folders and rings of links where files should be.
static void test_strange_neighbours(void **state) {
    (void)state;
    static const char *const endings[] = {"-wal", "-shm", "-journal", ".feed-1-1", ".feed-99999-1", ".drain"};
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
            for (int which = kind == 1 ? 1 : 3; which <= 3; which += 2) {
                const specimen *s = &specimens()[which];
                tmp_dir d;
                char path[500], what[120];
                tmp_dir_make(&d);
                lay_out(s, &d);
                snprintf(path, sizeof path, "%s%s", d.file, endings[i]);
                snprintf(what, sizeof what, "%s, neighbour %s of kind %d", s->what, endings[i], kind);
                remove(path);
                if (kind == 0) assert_int_equal(mkfifo(path, 0600), 0);
                if (kind == 1) assert_int_equal(mkdir(path, 0700), 0);
                if (kind == 2) assert_int_equal(symlink(path, path), 0);
                char out[340];
                uint64_t n_lost;
                snprintf(out, sizeof out, "%s/new.db", d.path);
                tide_error err = TIDE_ERROR_INIT;
                // SQLite may be unable to open a file beside which there is such a thing: then that is said.
                tide_status st = tide_trace_recover(d.file, out, &n_lost, &err);
                if (st != TIDE_OK) fail_msg("%s: %s: %s", what, tide_status_name(st), err.msg);
                st = ask_all(out, true, &err);
                if (st != TIDE_OK && st != TIDE_ERR_NOT_FOUND)
                    fail_msg("%s: %s: %s", what, tide_status_name(st), err.msg);
                st = ask_all(d.file, true, &err);
                if (!is_expected(st) && st != TIDE_ERR_IO && st != TIDE_ERR_BUSY)
                    fail_msg("%s: %s: %s", what, tide_status_name(st), err.msg);
                rmdir(path);
                tmp_dir_remove(&d);
            }
        }
    }
}

static void test_no_traces(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    char out[340];
    snprintf(out, sizeof out, "%s/new.db", d.path);
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n_lost = 7;
    assert_tide_status(tide_trace_recover(d.file, out, &n_lost, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "No such file");
    assert_int_equal(n_lost, 0);
    assert_tide_status(tide_trace_recover(d.path, out, NULL, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "a directory");
    assert_tide_status(tide_trace_recover("/dev/null", out, NULL, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "not a regular file");
    assert_int_equal(mkfifo(d.file, 0600), 0);
    assert_tide_status(tide_trace_recover(d.file, out, NULL, &err), TIDE_ERR_IO);
    assert_text_has(err.msg, "not a regular file");
    remove(d.file);
    static const struct {
        const char *data;
        size_t len;
        const char *words;
    } all[] = {{"", 0, "empty"},
               {"{\"schema\": \"tidemark.plan\"}\n", 27, "no SQLite database"},
               {"SQLite format 3", 16, "no SQLite database"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        put(d.file, all[i].data, all[i].len);
        assert_tide_status(tide_trace_recover(d.file, out, NULL, &err), TIDE_ERR_BAD_INPUT);
        assert_text_has(err.msg, d.file);
        assert_text_has(err.note, all[i].words);
    }
    char *noise = malloc(40 * PAGE);
    assert_non_null(noise);
    tide_rng rng = {5};
    for (size_t i = 0; i < 40 * PAGE; i++) noise[i] = (char)tide_rng_u64(&rng);
    put(d.file, noise, 40 * PAGE);
    free(noise);
    assert_tide_status(tide_trace_recover(d.file, out, NULL, &err), TIDE_ERR_BAD_INPUT);
    assert_int_equal(tmp_dir_count(&d), 1);
    // A database of another program, and one that a newer version wrote.
    remove(d.file);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(d.file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE event(id); INSERT INTO event VALUES(1)", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_tide_status(tide_trace_recover(d.file, out, NULL, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.note, "another program");
    lay_out(&specimens()[0], &d);
    sql_exec(d.file, "PRAGMA user_version = 5; UPDATE meta SET value = 5 WHERE key = 'version'");
    assert_tide_status(tide_trace_recover(d.file, out, NULL, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "version 5");
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

/// Names that are long, broken, or end early; scopes that lie in themselves.
static void test_strange_names(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE name SET text = CAST(x'ff00fe80' AS TEXT) WHERE id = 2",
        "UPDATE name SET text = hex(zeroblob(2000000)) WHERE id = 2",
        "UPDATE name SET text = char(0, 65) WHERE id = 2",
        "UPDATE name SET text = ''",
        "UPDATE scope SET parent_id = id",
        "UPDATE scope SET parent_id = 3 WHERE id = 2; UPDATE scope SET parent_id = 2 WHERE id = 3",
        "UPDATE device SET name = hex(zeroblob(500))",
        "UPDATE device SET name = ''",
        "UPDATE run SET model = hex(zeroblob(100000)), source = hex(zeroblob(100000))",
        "UPDATE meta SET value = hex(zeroblob(100000)) WHERE key NOT IN ('schema', 'version')",
        "INSERT INTO meta VALUES('', ''), (char(10), char(27))",
        "UPDATE thread SET name = hex(zeroblob(100000))",
        "INSERT INTO thread SELECT 2147483647, 2147483647, 2147483647, NULL",
        "UPDATE process SET id = 2147483647",
        "UPDATE process SET command = hex(zeroblob(100000)), feed = '../../../../etc/passwd'",
        "UPDATE plan_tensor SET name = hex(zeroblob(100000))",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        tally t = {0};
        tmp_dir_make(&d);
        lay_out(&specimens()[0], &d);
        sql_exec(d.file, changes[i]);
        try_it(&d, changes[i], &t);
        assert_int_equal(t.n_recovered, 1);
        tmp_dir_remove(&d);
    }
}

/// Numbers at the ends of what a column holds; those that leave so much out that a table of them would not fit.
static void test_strange_numbers(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE block SET id = -9223372036854775807 - 1 WHERE id = 3",
        "UPDATE block SET id = 9223372036854775807 WHERE id = 3",
        "UPDATE event SET id = (9223372036854775807 - 68) + id WHERE id <= 68; "
        "UPDATE meta SET value = '9223372036854775807' WHERE key = 'n_events'",
        // The last events that there can be, with nothing before them.
        "UPDATE event SET id = (9223372036854775806 - 68) + id WHERE id <= 68; DELETE FROM leaf; DELETE FROM block; "
        "INSERT INTO snapshot SELECT min(id) - 1, 0, 0, 0, x'' FROM event; "
        "UPDATE meta SET value = '9223372036854775806' WHERE key = 'n_events'; "
        "UPDATE meta SET value = '9223372036854775739' WHERE key = 'first_kept_event'; "
        "UPDATE meta SET value = '0' WHERE key IN ('requested_bytes', 'freed_bytes', 'n_blocks')",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
        "INSERT INTO name SELECT 65000 * i, 'x' FROM n; "
        "UPDATE meta SET value = value + 2000 WHERE key = 'n_names'",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
        "INSERT INTO scope SELECT 65000 * i, 1, 'run', NULL, NULL FROM n; "
        "UPDATE meta SET value = value + 2000 WHERE key = 'n_scopes'",
        "UPDATE plan SET n_steps = 9223372036854775807; DELETE FROM plan_step",
        "UPDATE plan SET n_steps = 1000000000000; DELETE FROM plan_step",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        tally t = {0};
        tmp_dir_make(&d);
        lay_out(&specimens()[0], &d);
        sql_exec(d.file, changes[i]);

        try_it(&d, changes[i], &t);
        tmp_dir_remove(&d);
    }
}

static int free_specimens(void **state) {
    (void)state;
    for (int i = 0; i < N_SPECIMENS; i++)
        for (size_t k = 0; k < specimens()[i].n_files; k++) free(specimens()[i].files[k].data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_no_traces),       tide_unit_test(test_strange_names),
        tide_unit_test(test_strange_numbers), tide_unit_test(test_endless_tables),
        tide_unit_test(test_huge_files),      tide_unit_test(test_strange_neighbours),
        tide_unit_test(test_changed_files),
    };
    return cmocka_run_group_tests(tests, NULL, free_specimens);
}
