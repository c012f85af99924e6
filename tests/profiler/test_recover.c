// SPDX-License-Identifier: MIT
//
// What tide_trace_recover makes of traces that are whole, cut, have bad pages, lost tables, bad logs and torn feeds: a
// trace that opens and passes every check, says how much is missing, and holds nothing that the damaged one did not.
#include <signal.h>
#include <sys/wait.h>

#include "profiler/query.h"
#include "profiler/store/finish.h"
#include "tests/profiler/trace_fixture.h"

enum { PAGE = 8192 };

typedef struct ward {
    tmp_dir d;
    char out[340];
    uint64_t n_lost;
} ward;

static void ward_make(ward *w) {
    tmp_dir_make(&w->d);
    snprintf(w->out, sizeof w->out, "%s/new.db", w->d.path);
}

// ---- a program with some thousand events ----

typedef struct program_block {
    uint64_t id, bytes;
    tide_memory_kind kind;
} program_block;

typedef struct program {
    feeder f;
    tide_rng rng;
    program_block live[256];
    size_t n_live;
    uint64_t last_block, t_ns;
} program;

static void program_open(program *p, const char *path, tide_record_form form, uint64_t max_bytes) {
    *p = (program){.rng = {.state = 42}, .t_ns = 1000, .f = {.thread = 1}};
    const tide_recorder_options opt = {
        .form = form, .max_bytes = max_bytes, .now = feeder_now, .now_ctx = &p->f, .quiet = true};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_open(path, &opt, &p->f.rec, &err), &err);
    p->f.obs = tide_recorder_observer(p->f.rec);
}

static void program_step(program *p) {
    static const tide_scope outer = {.name = "outer", .kind = TIDE_SCOPE_REGION, .index = -1};
    static const tide_scope inner = {.name = "inner", .kind = TIDE_SCOPE_OPERATOR, .index = 3, .parent = &outer};
    static const char *const tags[] = {"weights", "input", "a", "b"};
    p->t_ns += 1 + tide_rng_below(&p->rng, 9);
    const uint64_t what = tide_rng_below(&p->rng, 100);
    if (what == 0 && p->f.scope == NULL) {
        feed_scope(&p->f, p->t_ns, true, &outer);
    } else if (what < 4) {
        const bool enter = p->f.scope != &inner && (p->f.scope == NULL || what < 2);
        if (p->f.scope == NULL)
            feed_scope(&p->f, p->t_ns, true, &outer);
        else
            feed_scope(&p->f, p->t_ns, enter, enter ? &inner : p->f.scope);
    } else if (p->n_live == 0 || (what < 50 && p->n_live < 250)) {
        const program_block b = {.id = ++p->last_block,
                                 .bytes = 64 + tide_rng_below(&p->rng, 4096),
                                 .kind = (tide_memory_kind)tide_rng_below(&p->rng, 3)};
        p->live[p->n_live++] = b;
        feed(&p->f, p->t_ns, TIDE_MEM_ALLOC, b.id, b.kind, b.bytes, tags[tide_rng_below(&p->rng, 4)]);
    } else {
        const size_t i = (size_t)tide_rng_below(&p->rng, p->n_live);
        const program_block b = p->live[i];
        p->live[i] = p->live[--p->n_live];
        p->t_ns++;
        feed_free(&p->f, p->t_ns, b.id, b.kind, b.bytes, NULL);
    }
}

/// Two runs with some between and around them.
static void program_run(program *p, int n_steps) {
    const tide_run_info info = {.model = "m", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    tide_memory_plan *plan = demo_plan_make();
    for (int i = 0; i < n_steps; i++) {
        if (i == n_steps / 10 || i == n_steps / 2) feed_begin_run(&p->f, p->t_ns, &info, plan);
        if (i == n_steps * 4 / 10 || i == n_steps * 9 / 10) feed_end_run(&p->f, p->t_ns);
        program_step(p);
    }
    tide_memory_plan_destroy(plan);
}

static void record(const char *path, tide_record_form form, int n_steps, uint64_t max_bytes) {
    program p;
    program_open(&p, path, form, max_bytes);
    program_run(&p, n_steps);
    feeder_close(&p.f);
}

static void read_all(const char *path, char **data, size_t *len) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(path, 0, data, len, &err), &err);
}

static void write_all(const char *path, const void *data, size_t len) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

// ---- what every recovered trace is ----

static int64_t number(const char *path, const char *query) {
    sqlite3 *db = sql_open(path);
    tide_text t = {0};
    sql_print(db, query, false, &t);
    sqlite3_close(db);
    const int64_t n = strtoll(tide_text_str(&t), NULL, 10);
    tide_text_deinit(&t);
    return n;
}

/// Opens, passes all checks, and says itself what is missing.
static void expect_sound(const ward *w, const char *what) {
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = tide_trace_open(w->out, &t, &err);
    if (st != TIDE_OK) fail_msg("%s: open: %s: %s [%s] (%s)", what, tide_status_name(st), err.msg, err.where, err.note);
    st = tide_trace_check(t, &err);
    if (st != TIDE_OK)
        fail_msg("%s: check: %s: %s [%s] (%s)", what, tide_status_name(st), err.msg, err.where, err.note);
    char lost[32];
    assert_tide_ok(tide_trace_meta(t, "recovered_lost", lost, sizeof lost, &err), &err);
    assert_int_equal(strtoull(lost, NULL, 10), w->n_lost);
    tide_trace_close(t);
}

static void recover(ward *w, const char *what) {
    char *before = NULL, *after;
    size_t n_before, n_after;
    const int n_files = tmp_dir_count(&w->d);
    read_all(w->d.file, &before, &n_before);
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_recover(w->d.file, w->out, &w->n_lost, &err);
    if (st != TIDE_OK) fail_msg("%s: %s: %s [%s] (%s)", what, tide_status_name(st), err.msg, err.where, err.note);
    read_all(w->d.file, &after, &n_after);
    assert_int_equal(n_before, n_after); // the damaged file is as it was
    assert_memory_equal(before, after, n_before);
    tide_host_free(before);
    tide_host_free(after);
    assert_int_equal(tmp_dir_count(&w->d), n_files + 1); // no strays
    expect_sound(w, what);
    remove(w->out);
}

/// As `recover`, and the new file stays.
static void recover_and_keep(ward *w, const char *what) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_trace_recover(w->d.file, w->out, &w->n_lost, &err);
    if (st != TIDE_OK) fail_msg("%s: %s: %s [%s] (%s)", what, tide_status_name(st), err.msg, err.where, err.note);
    expect_sound(w, what);
}

static void expect_same(const char *a, const char *b, const char *query) {
    tide_text x = {0}, y = {0};
    sqlite3 *db = sql_open(a);
    sql_print(db, query, true, &x);
    sqlite3_close(db);
    db = sql_open(b);
    sql_print(db, query, true, &y);
    sqlite3_close(db);
    if (strcmp(tide_text_str(&x), tide_text_str(&y)) != 0) {
        size_t i = 0;
        while (tide_text_str(&x)[i] == tide_text_str(&y)[i]) i++;
        while (i > 0 && tide_text_str(&x)[i - 1] != '\n') i--;
        fail_msg("%s\nfirst:\n%.300s\nsecond:\n%.300s", query, tide_text_str(&x) + i, tide_text_str(&y) + i);
    }
    tide_text_deinit(&x);
    tide_text_deinit(&y);
}

/// What of `b` is not in `a`, by everything but the number. Gaps and what was restored from blocks are not looked at.
static int64_t foreign_events(const char *a, const char *b) {
    sqlite3 *db = sql_open(a);
    char attach[400];
    snprintf(attach, sizeof attach, "ATTACH '%s' AS b", b);
    assert_int_equal(sqlite3_exec(db, attach, NULL, NULL, NULL), SQLITE_OK);
    tide_text t = {0};
    sql_print(db,
              "SELECT count(*) FROM (SELECT t_ns, op, block_id, kind, requested_bytes, reserved_bytes, address "
              "FROM b.event WHERE op <> 18 EXCEPT "
              "SELECT t_ns, op, block_id, kind, requested_bytes, reserved_bytes, address FROM main.event)",
              false, &t);
    sqlite3_close(db);
    const int64_t n = strtoll(tide_text_str(&t), NULL, 10);
    tide_text_deinit(&t);
    return n;
}

// ---- nothing is wrong ----

static const char *const all_tables[] = {
    "SELECT * FROM name ORDER BY id",
    "SELECT * FROM scope ORDER BY id",
    "SELECT * FROM device ORDER BY id",
    "SELECT * FROM process ORDER BY id",
    "SELECT * FROM thread ORDER BY id",
    "SELECT * FROM run ORDER BY id",
    "SELECT * FROM event ORDER BY id",
    "SELECT first_event, last_event, begin_ns, end_ns FROM event_chunk WHERE 0 ORDER BY first_event",
    "SELECT * FROM leaf ORDER BY series, first_event",
    "SELECT * FROM series ORDER BY id",
    "SELECT event_id, t_ns, blocks, requested_bytes, hex(data) FROM snapshot ORDER BY event_id",
    "SELECT * FROM position ORDER BY process_id, ring",
    "SELECT * FROM total ORDER BY process_id, device, kind",
    "SELECT event_id, problem, what FROM problem ORDER BY id",
    "SELECT * FROM block ORDER BY id",
    "SELECT * FROM step ORDER BY run_id, step",
    "SELECT * FROM plan ORDER BY run_id",
    "SELECT * FROM plan_tensor ORDER BY run_id, idx",
    "SELECT * FROM plan_buffer ORDER BY run_id, buffer",
    "SELECT * FROM plan_step ORDER BY run_id, step",
    "SELECT * FROM meta WHERE key NOT LIKE 'recovered%' ORDER BY key",
};

static void expect_copy(const char *a, const char *b) {
    for (size_t i = 0; i < sizeof all_tables / sizeof all_tables[0]; i++) expect_same(a, b, all_tables[i]);
}

static void test_whole_traces(void **state) {
    (void)state;
    static const tide_record_form forms[] = {TIDE_RECORD_ROWS, TIDE_RECORD_CHUNKS};
    for (size_t i = 0; i < 2; i++) {
        ward w;
        ward_make(&w);
        record(w.d.file, forms[i], 30000, 0);
        recover_and_keep(&w, i == 0 ? "rows" : "chunks");
        assert_int_equal(w.n_lost, 0);
        expect_copy(w.d.file, w.out);
        const int64_t n_chunks = number(w.out, "SELECT count(*) FROM event_chunk");
        assert_true(forms[i] == TIDE_RECORD_CHUNKS ? n_chunks > 0 : n_chunks == 0);
        assert_sql(w.out, "SELECT count(*) FROM snapshot WHERE event_id >= 16384", "2\n");
        assert_int_equal(tmp_dir_count(&w.d), 2);
        tmp_dir_remove(&w.d);
    }
}

/// The demo trace, with every kind of event and a plan for each run.
static void test_demo(void **state) {
    (void)state;
    ward w;
    ward_make(&w);
    demo_record(w.d.file, 0);
    recover_and_keep(&w, "demo");
    assert_int_equal(w.n_lost, 0);
    expect_copy(w.d.file, w.out);
    tmp_dir_remove(&w.d);
}

// ---- bad pages ----

enum { N_STEPS = 6000 }; ///< some thousand events: two chunks

/// Where there are no chunks, fewer do in the suite.
static int n_row_steps(void) { return tide_test_rounds(1500, N_STEPS); }

typedef struct sample {
    char *data;
    size_t len;
    int64_t n_events;
    char rows[340]; ///< the same, every event as a row
} sample;

static void sample_make(sample *s, ward *w, tide_record_form form) {
    ward_make(w);
    record(w->d.file, form, form == TIDE_RECORD_ROWS ? n_row_steps() : N_STEPS, 0);
    read_all(w->d.file, &s->data, &s->len);
    s->n_events = number(w->d.file, "SELECT max(last_event) FROM leaf");
    snprintf(s->rows, sizeof s->rows, "%s.rows", w->d.path);
    write_all(s->rows, s->data, s->len);
    tide_error err = TIDE_ERROR_INIT;
    if (form == TIDE_RECORD_CHUNKS) assert_tide_ok(tide__finish_expand(s->rows, &err), &err);
}

static void sample_free(sample *s, ward *w) {
    remove(s->rows);
    tide_host_free(s->data);
    tmp_dir_remove(&w->d);
}

/// Every event is told, or told to be missing; and none is told that was not there.
static void expect_all_told(const ward *w, const sample *s, const char *what) {
    const int64_t n_told = number(w->out, "SELECT count(*) FROM event WHERE op <> 18");
    if (n_told + (int64_t)w->n_lost != s->n_events)
        fail_msg("%s: %" PRId64 " events told and %" PRIu64 " lost, of %" PRId64, what, n_told, w->n_lost, s->n_events);
    const int64_t n_gone = number(w->out, "SELECT coalesce(sum(requested_bytes), 0) FROM event WHERE op = 18");
    assert_int_equal(n_gone, w->n_lost);
    const int64_t n_foreign = foreign_events(s->rows, w->out);
    if (n_foreign != 0) fail_msg("%s: %" PRId64 " events that were never there", what, n_foreign);
}

/// Page after page is overwritten. What its table tells elsewhere too is told.
static void lose_pages(tide_record_form form, int fill, uint64_t most_lost) {
    sample s;
    ward w;
    sample_make(&s, &w, form);
    char *copy = tide_host_alloc(s.len);
    assert_non_null(copy);
    uint64_t n_lost = 0, n_pages_lost = 0;
    const size_t stride = PAGE * (size_t)tide_test_rounds(form == TIDE_RECORD_ROWS ? 9 : 13, 1);
    for (size_t at = 0; at < s.len; at += stride) {
        char what[64];
        snprintf(what, sizeof what, "page %zu of %zu filled with %d", at / PAGE + 1, s.len / PAGE, fill);
        memcpy(copy, s.data, s.len);
        memset(copy + at, fill, PAGE);
        write_all(w.d.file, copy, s.len);
        recover_and_keep(&w, what);
        if (number(w.out, "SELECT count(*) FROM event_chunk") > 0) {
            tide_error err = TIDE_ERROR_INIT;
            assert_tide_ok(tide__finish_expand(w.out, &err), &err);
        }
        expect_all_told(&w, &s, what);
        if (w.n_lost > most_lost) fail_msg("%s: %" PRIu64 " events lost", what, w.n_lost);
        n_lost += w.n_lost;
        n_pages_lost += w.n_lost > 0;
        remove(w.out);
    }
    print_message("%" PRId64 " events on %zu pages: %" PRIu64 " pages lost some, %" PRIu64 " in all\n", s.n_events,
                  s.len / PAGE, n_pages_lost, n_lost);
    assert_true(n_pages_lost > 0);
    tide_host_free(copy);
    sample_free(&s, &w);
}

static void test_lost_pages_of_rows(void **state) {
    (void)state;
    lose_pages(TIDE_RECORD_ROWS, 0, 20);
    lose_pages(TIDE_RECORD_ROWS, 0xa5, 20);
}

static void test_lost_pages_of_chunks(void **state) {
    (void)state;
    lose_pages(TIDE_RECORD_CHUNKS, 0, 4096);
}

// ---- cut, and without tables ----

static void test_cut_files(void **state) {
    (void)state;
    sample s;
    ward w;
    sample_make(&s, &w, TIDE_RECORD_ROWS);
    for (size_t n = s.len - 1; n > 3 * PAGE; n -= n < 6 * PAGE + 997 ? PAGE / 2 - 1 : 6 * PAGE + 997) {
        char what[64];
        snprintf(what, sizeof what, "cut at %zu of %zu", n, s.len);
        write_all(w.d.file, s.data, n);
        recover(&w, what);
    }
    sample_free(&s, &w);
}

static void test_lost_tables(void **state) {
    (void)state;
    static const struct {
        const char *table;
        int64_t most_lost; ///< events
    } all[] = {
        {"meta", 0},     {"op", 0},          {"kind", 0},        {"device", 0},   {"name", 0},      {"scope", 0},
        {"process", 0},  {"thread", 0},      {"run", 0},         {"event", 300},  {"leaf", 0},      {"series", 0},
        {"snapshot", 0}, {"position", 0},    {"total", 0},       {"problem", 0},  {"block", 0},     {"step", 0},
        {"plan", 0},     {"plan_tensor", 0}, {"event_chunk", 0}, {"plan_gap", 0}, {"plan_step", 0},
    };
    sample s;
    ward w;
    sample_make(&s, &w, TIDE_RECORD_ROWS);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char change[200];
        write_all(w.d.file, s.data, s.len);
        sqlite3 *db = sql_open(w.d.file);
        sqlite3_exec(db,
                     "PRAGMA synchronous = OFF; PRAGMA writable_schema = ON; "
                     "DELETE FROM sqlite_schema WHERE type = 'view'",
                     NULL, NULL, NULL);
        sqlite3_close(db);
        snprintf(change, sizeof change, "DROP TABLE %s", all[i].table);
        sql_exec(w.d.file, change);
        recover_and_keep(&w, change);
        if ((int64_t)w.n_lost > all[i].most_lost) fail_msg("%s: %" PRIu64 " events lost", change, w.n_lost);
        expect_all_told(&w, &s, change);
        remove(w.out);
    }
    sample_free(&s, &w);
}

/// Rows that no recorder wrote are left out, those of counts and sums are made anew.
static void test_changed_rows(void **state) {
    (void)state;
    static const struct {
        const char *change, *query, *want;
    } all[] = {
        {"UPDATE meta SET value = 7 WHERE key = 'n_events'", "SELECT count(*) FROM event WHERE op = 18", "0\n"},
        {"UPDATE meta SET value = 'x' WHERE key = 'n_blocks'", "SELECT count(*) FROM event WHERE op = 18", "0\n"},
        {"DELETE FROM leaf", "SELECT max(last_event) >= 68 FROM leaf", "1\n"},
        {"UPDATE leaf SET max_bytes = 1", "SELECT max(max_bytes) FROM leaf", "5160\n"},
        {"UPDATE block SET requested_bytes = requested_bytes + 1", "SELECT sum(requested_bytes) FROM block", "11048\n"},
        {"DELETE FROM block WHERE id = 3", "SELECT count(*) FROM block", "13\n"},
        {"UPDATE event SET kind = 77 WHERE id = 6", "SELECT op, requested_bytes FROM event WHERE op = 18", ""},
        {"UPDATE event SET op = 99 WHERE id = 5", "SELECT op, requested_bytes FROM event WHERE op = 18", "18|1\n"},
        {"UPDATE event SET t_ns = 99999999 WHERE id = 5", "SELECT max(t_ns) FROM event", "2830\n"},
        {"UPDATE event SET t_ns = 3 WHERE id = 30", "SELECT count(*) FROM event WHERE op = 18", "0\n"},
        {"DELETE FROM event WHERE id BETWEEN 3 AND 9", "SELECT sum(requested_bytes) FROM event WHERE op = 18", "2\n"},
        {"DELETE FROM name WHERE id = 1", "SELECT count(*) FROM name WHERE text = '(name 1 is lost)'", "1\n"},
        {"DELETE FROM scope WHERE id = 2", "SELECT count(*) FROM name WHERE text = '(scope 2 is lost)'", "1\n"},
        {"DELETE FROM device", "SELECT name FROM device", "cpu\n"},
        {"DELETE FROM run WHERE id = 2", "SELECT id, model, mode FROM run", "1|demo|naive\n2|(lost)|\n"},
        {"UPDATE run SET first_event = 4000, last_event = 5000 WHERE id = 1", "SELECT first_event, last_event FROM run",
         "1|34\n35|68\n"},
        {"UPDATE plan SET bytes = 1 WHERE run_id = 1", "SELECT id FROM run WHERE plan_bytes IS NOT NULL", "2\n"},
        {"UPDATE run SET begin_ns = -1 WHERE id = 1", "SELECT id, model FROM run", "1|(lost)\n2|demo\n"},
        {"DELETE FROM process", "SELECT id, how FROM process", "1|killed\n"},
        {"DELETE FROM thread", "SELECT id, number FROM thread", "1|1\n"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ward w;
        ward_make(&w);
        demo_record(w.d.file, 0);
        sql_exec(w.d.file, all[i].change);
        recover_and_keep(&w, all[i].change);
        print_message("%s\n", all[i].change);
        assert_sql(w.out, all[i].query, all[i].want);
        tmp_dir_remove(&w.d);
    }
}

// ---- left by a killed program ----

/// Files of a trace whose program was killed in the middle: the trace, its log, its feed.
typedef struct ruin {
    struct {
        char name[300];
        char *data;
        size_t len;
    } files[8];
    size_t n_files;
} ruin;

static void ruin_make(ruin *r, ward *w, tide_record_form form) {
    ward_make(w);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        program p;
        program_open(&p, w->d.file, form, 0);
        const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
        const int n_steps = form == TIDE_RECORD_ROWS ? n_row_steps() : N_STEPS;
        for (int i = 0; i < n_steps; i++) {
            if (i == 100) feed_begin_run(&p.f, p.t_ns, &info, NULL);
            if (i == n_steps / 2) assert_tide_ok(tide_recorder_flush(p.f.rec, NULL), &(tide_error){0});
            program_step(&p);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    *r = (ruin){0};
    DIR *dir = opendir(w->d.path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        // The rest is SQLite's shared memory and the lock of the drain.
        if (strcmp(e->d_name, "trace.db") != 0 && strstr(e->d_name, "-wal") == NULL &&
            strstr(e->d_name, ".feed-") == NULL)
            continue;
        assert_true(r->n_files < 8);
        snprintf(r->files[r->n_files].name, sizeof r->files[0].name, "%s", e->d_name);
        char path[700];
        snprintf(path, sizeof path, "%s/%s", w->d.path, e->d_name);
        read_all(path, &r->files[r->n_files].data, &r->files[r->n_files].len);
        r->n_files++;
    }
    closedir(dir);
    assert_true(r->n_files >= 2);
}

/// The same files again, in a folder that is empty otherwise.
static void ruin_lay_out(const ruin *r, const ward *w) {
    DIR *dir = opendir(w->d.path);
    assert_non_null(dir);
    char path[700];
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", w->d.path, e->d_name);
        if (e->d_name[0] != '.') remove(path);
    }
    closedir(dir);
    for (size_t i = 0; i < r->n_files; i++) {
        snprintf(path, sizeof path, "%s/%s", w->d.path, r->files[i].name);
        write_all(path, r->files[i].data, r->files[i].len);
    }
}

static void ruin_free(ruin *r) {
    for (size_t i = 0; i < r->n_files; i++) tide_host_free(r->files[i].data);
}

/// What recovering says of it is what opening it says: nothing is lost, and the files stay as they are.
static void test_killed(void **state) {
    (void)state;
    for (int form = TIDE_RECORD_ROWS; form <= TIDE_RECORD_CHUNKS; form++) {
        ruin r;
        ward w;
        char kept[340];
        ruin_make(&r, &w, (tide_record_form)form);
        ruin_lay_out(&r, &w);
        recover_and_keep(&w, "killed");
        assert_int_equal(w.n_lost, 0);
        for (size_t i = 0; i < r.n_files; i++) {
            char path[700], *data;
            size_t len;
            snprintf(path, sizeof path, "%s/%s", w.d.path, r.files[i].name);
            read_all(path, &data, &len);
            assert_int_equal(len, r.files[i].len);
            assert_memory_equal(data, r.files[i].data, len);
            tide_host_free(data);
        }
        assert_int_equal(tmp_dir_count(&w.d), (int)r.n_files + 1);
        snprintf(kept, sizeof kept, "%s.kept", w.d.path);
        assert_int_equal(rename(w.out, kept), 0);
        ruin_lay_out(&r, &w);
        tide_trace *t;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_trace_open(w.d.file, &t, &err), &err); // finishes it from the feed
        tide_trace_info info;
        assert_tide_ok(tide_trace_get_info(t, &info, &err), &err);
        assert_int_equal(info.state, TIDE_TRACE_COMPLETE);
        tide_trace_close(t);
        // Both take the same feed; how much memory that took, and when, may differ.
        for (size_t i = 0; i + 1 < sizeof all_tables / sizeof all_tables[0]; i++)
            if (strstr(all_tables[i], "snapshot") == NULL) expect_same(w.d.file, kept, all_tables[i]);
        remove(kept);
        ruin_free(&r);
        tmp_dir_remove(&w.d);
    }
}

/// Bytes of the log, of the trace and of the feed are changed at random: there is always a trace afterwards.
static void test_killed_and_damaged(void **state) {
    (void)state;
    ruin r;
    ward w;
    ruin_make(&r, &w, TIDE_RECORD_ROWS);
    tide_rng rng = {77};
    print_message("seed %" PRIu64 "\n", rng.state);
    uint64_t n_lost = 0;
    for (int round = 0; round < tide_test_rounds(4, 60); round++) {
        ruin_lay_out(&r, &w);
        const size_t which = (size_t)tide_rng_below(&rng, r.n_files);
        char path[700], what[400];
        snprintf(path, sizeof path, "%s/%s", w.d.path, r.files[which].name);
        snprintf(what, sizeof what, "round %d, %s", round, r.files[which].name);
        char *copy = tide_host_alloc(r.files[which].len);
        assert_non_null(copy);
        memcpy(copy, r.files[which].data, r.files[which].len);
        const uint64_t n_changes = 1 + tide_rng_below(&rng, 30);
        for (uint64_t i = 0; i < n_changes; i++) {
            size_t at = (size_t)tide_rng_below(&rng, r.files[which].len);
            if (tide_rng_below(&rng, 3) == 0) at %= 40000; // heads of files
            if (at >= r.files[which].len) at = 0;
            copy[at] = (char)tide_rng_u64(&rng);
        }
        size_t len = r.files[which].len;
        if (tide_rng_below(&rng, 5) == 0) len = (size_t)tide_rng_below(&rng, len);
        write_all(path, copy, len);
        tide_host_free(copy);
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_trace_recover(w.d.file, w.out, &w.n_lost, &err);
        // A file that lost its first bytes cannot be recognised as a trace.
        if (st != TIDE_OK && st != TIDE_ERR_BAD_INPUT) fail_msg("%s: %s: %s", what, tide_status_name(st), err.msg);
        if (st == TIDE_OK) expect_sound(&w, what);
        if (st != TIDE_OK) print_message("%s: %s (%s)\n", what, err.msg, err.note);
        n_lost += w.n_lost;
    }
    print_message("%" PRIu64 " events lost in all\n", n_lost);
    ruin_free(&r);
    tmp_dir_remove(&w.d);
}

/// The trace is there, the feed is not: what was under way is gone, and the new trace says so.
static void test_killed_without_feed(void **state) {
    (void)state;
    ruin r;
    ward w;
    ruin_make(&r, &w, TIDE_RECORD_ROWS);
    ruin_lay_out(&r, &w);
    for (size_t i = 0; i < r.n_files; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s", w.d.path, r.files[i].name);
        if (strstr(path, ".feed-") != NULL) remove(path);
    }
    recover_and_keep(&w, "no feed");
    assert_sql(w.out, "SELECT value FROM meta WHERE key = 'state'", "cut short\n");
    assert_true(number(w.out, "SELECT count(*) FROM event") > 1000);
    ruin_free(&r);
    tmp_dir_remove(&w.d);
}

static void test_recorded_into(void **state) {
    (void)state;
    ward w;
    ward_make(&w);
    program p;
    program_open(&p, w.d.file, TIDE_RECORD_ROWS, 0);
    for (int i = 0; i < 100; i++) program_step(&p);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_trace_recover(w.d.file, w.out, &w.n_lost, &err), TIDE_ERR_BUSY);
    feeder_close(&p.f);
    // And a trace that is recorded into is not replaced.
    program_open(&p, w.out, TIDE_RECORD_ROWS, 0);
    assert_tide_status(tide_trace_recover(w.d.file, w.out, &w.n_lost, &err), TIDE_ERR_BUSY);
    feeder_close(&p.f);
    recover_and_keep(&w, "afterwards");
    tmp_dir_remove(&w.d);
}

// ---- of which the oldest events were dropped ----

static void test_thinned(void **state) {
    (void)state;
    ward w;
    ward_make(&w);
    record(w.d.file, TIDE_RECORD_ROWS, 100000, 4 << 20);
    const int64_t first = number(w.d.file, "SELECT value FROM meta WHERE key = 'first_kept_event'");
    assert_true(first > 16384);
    recover_and_keep(&w, "thinned");
    assert_int_equal(w.n_lost, 0);
    expect_copy(w.d.file, w.out);
    // Its first snapshot is gone: what was live before is not known, and frees of it are no problem.
    sql_exec(w.d.file, "DELETE FROM snapshot");
    recover_and_keep(&w, "thinned, without snapshots");
    assert_int_equal(w.n_lost, 0);
    assert_sql(w.out, "SELECT count(*) FROM problem", "0\n");
    assert_int_equal(number(w.out, "SELECT min(id) FROM event"), first);
    tmp_dir_remove(&w.d);
}

/// The begin of a trace is gone, with its blocks: it begins with a snapshot.
static void test_lost_begin(void **state) {
    (void)state;
    ward w;
    ward_make(&w);
    record(w.d.file, TIDE_RECORD_ROWS, 30000, 0);
    const int64_t peak = number(w.d.file, "SELECT max(max_bytes) FROM leaf WHERE series = 0");
    sql_exec(w.d.file, "DELETE FROM event WHERE id <= 20000; DELETE FROM block");
    recover_and_keep(&w, "begin lost");
    assert_int_equal(number(w.out, "SELECT value FROM meta WHERE key = 'first_kept_event'"), 16385);
    assert_int_equal(number(w.out, "SELECT max(max_bytes) FROM leaf WHERE series = 0"), peak);
    assert_true(w.n_lost > 16384 && w.n_lost <= 20000);
    tmp_dir_remove(&w.d);
}

// ---- names of files ----

static void test_places_to_write(void **state) {
    (void)state;
    ward w;
    ward_make(&w);
    demo_record(w.d.file, 0);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_trace_recover(w.d.file, "", NULL, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_trace_recover(w.d.file, "-", NULL, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_trace_recover(w.d.file, w.d.path, NULL, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "a directory");
    assert_tide_status(tide_trace_recover(w.d.file, "/dev/null", NULL, &err), TIDE_ERR_WRITE);
    assert_tide_status(tide_trace_recover(w.d.file, w.d.file, NULL, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "file that is read");
    char nowhere[400];
    snprintf(nowhere, sizeof nowhere, "%s/nowhere/new.db", w.d.path);
    assert_tide_status(tide_trace_recover(w.d.file, nowhere, NULL, &err), TIDE_ERR_WRITE);
    assert_int_equal(tmp_dir_count(&w.d), 1);
    // What is there is replaced, with what belonged to it, once the new file is whole.
    char wal[400];
    snprintf(wal, sizeof wal, "%s-wal", w.out);
    write_all(w.out, "a file", 6);
    write_all(wal, "something of an older file", 26);
    recover_and_keep(&w, "over another file");
    expect_copy(w.d.file, w.out);
    assert_int_equal(tmp_dir_count(&w.d), 2);
    tmp_dir_remove(&w.d);
}

// ---- no memory ----

static void test_no_memory(void **state) {
    (void)state;
    sample s;
    ward w;
    sample_make(&s, &w, TIDE_RECORD_ROWS);
    memset(s.data, 0, PAGE); // everything is needed: a copy, first pages, bare pages, blocks
    memset(s.data + s.len / PAGE / 3 * PAGE, 0, 2 * PAGE);
    write_all(w.d.file, s.data, s.len);
    int n_failed = 0;
    for (int64_t n = 0, n_good = 0; n_good < 3; n = n < 40 ? n + 2 : tide_test_next_failure(n)) {
        tide_error err = TIDE_ERROR_INIT;
        remove(w.out);
        tide_host_fail_after(n);
        const tide_status st = tide_trace_recover(w.d.file, w.out, &w.n_lost, &err);
        tide_host_fail_after(-1);
        n_good = st == TIDE_OK ? n_good + 1 : 0;
        if (st == TIDE_OK) continue;
        if (st != TIDE_ERR_NOMEM) fail_msg("allocation %" PRId64 ": %s: %s", n, tide_status_name(st), err.msg);
        assert_int_equal(err.status, TIDE_ERR_NOMEM);
        assert_int_equal(tmp_dir_count(&w.d), 1);
        n_failed++;
    }
    print_message("%d allocations failed\n", n_failed);
    assert_true(n_failed > tide_test_rounds(20, 50));
    sample_free(&s, &w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_whole_traces),       tide_unit_test(test_demo),
        tide_unit_test(test_lost_pages_of_rows), tide_unit_test(test_lost_pages_of_chunks),
        tide_unit_test(test_cut_files),          tide_unit_test(test_lost_tables),
        tide_unit_test(test_changed_rows),       tide_unit_test(test_killed),
        tide_unit_test(test_killed_and_damaged), tide_unit_test(test_killed_without_feed),
        tide_unit_test(test_recorded_into),      tide_unit_test(test_thinned),
        tide_unit_test(test_lost_begin),         tide_unit_test(test_places_to_write),
        tide_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
