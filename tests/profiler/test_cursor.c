// SPDX-License-Identifier: MIT
//
// Reading events back: rows, chunks and holes in any order, from anywhere to anywhere; what no recorder writes is
// refused with its place.
#include "profiler/store/cursor.h"

#include "profiler/store/chunk.h"
#include "profiler/store/store.h"
#include "tests/profiler/event_fixture.h"
#include "tests/profiler/trace_fixture.h"

enum { N_EVENTS = 20000 };

static tide__event all[N_EVENTS], kept[N_EVENTS];
static size_t n_kept;

// ---- a trace in pieces ----

static tide__store *open_new(const tmp_dir *d) {
    tide_error err = TIDE_ERROR_INIT;
    tide__store *s;
    assert_tide_ok(tide__store_create(d->file, &err), &err);
    assert_tide_ok(tide__store_open(d->file, &s, &err), &err);
    return s;
}

static void exec(const tide__store *s, const char *text) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__sql_exec(tide__store_sql(s), text, &err), &err);
}

typedef enum form { ROWS, CHUNKS, HOLE } form;

static void put(tide__store *s, size_t first, size_t n, form f) {
    tide_error err = TIDE_ERROR_INIT;
    if (f == HOLE) return;
    assert_tide_ok(tide__store_begin(s, &err), &err);
    assert_tide_ok(tide__store_end(s, tide__store_write_events(s, &all[first], n, f == CHUNKS, &err), &err), &err);
    memcpy(&kept[n_kept], &all[first], n * sizeof all[0]);
    n_kept += n;
}

static void make_events(tide_rng *rng) {
    static program p;
    p = (program){.rng = *rng, .scopes = 150, .lies = 30, .requests = true, .n_threads = 3, .n_runs = 2, .n_kinds = 3};
    for (size_t i = 0; i < N_EVENTS; i++) {
        all[i] = program_next(&p);
        if (i % 700 == 13) { // no two alike, as far as a row goes
            const tide__event e = extreme_event(&p.rng);
            const int64_t id = all[i].id, t_ns = all[i].t_ns;
            all[i] = e;
            all[i].id = id;
            all[i].t_ns = t_ns;
        }
    }
    *rng = p.rng;
    n_kept = 0;
}

/// Intervals of any length in any form, `n` of them.
static void put_pieces(tide__store *s, tide_rng *rng, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t left = N_EVENTS - at;
        const size_t len = i + 1 == n ? left : (size_t)tide_rng_below(rng, 2 * left / (n - i) + 1);
        put(s, at, len, (form)tide_rng_below(rng, 3));
        at += len;
    }
}

// ---- reading ----

/// What the cursor gives must be kept[] between the two numbers.
static void assert_gives(tide__cursor *c, int64_t first, int64_t last) {
    tide_error err = TIDE_ERROR_INIT;
    size_t at = 0;
    while (at < n_kept && kept[at].id < first) at++;
    while (true) {
        const tide__event *events;
        size_t n;
        assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
        if (n == 0) break;
        assert_true(n <= TIDE__CHUNK_MAX_EVENTS);
        for (size_t i = 0; i < n; i++, at++) {
            assert_true(at < n_kept && kept[at].id <= last);
            assert_event_equal(&events[i], &kept[at]);
        }
    }
    assert_true(at == n_kept || kept[at].id > last);
    const tide__event *events;
    size_t n;
    assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
    assert_int_equal(n, 0); // and stays at the end
}

static void check_reading(const tide__sql *s, tide_rng *rng) {
    tide_error err = TIDE_ERROR_INIT;
    tide__cursor *c, *other;
    assert_tide_ok(tide__cursor_open(s, 1, INT64_MAX, &c, &err), &err);
    assert_tide_ok(tide__cursor_open(s, INT64_MIN, N_EVENTS, &other, &err), &err); // two on one connection
    assert_gives(c, 1, INT64_MAX);
    for (int i = 0; i < tide_test_rounds(30, 60); i++) {
        const int64_t first = 1 + (int64_t)tide_rng_below(rng, N_EVENTS + 10);
        const int64_t last = tide_rng_below(rng, 4) == 0 ? first - 1 + (int64_t)tide_rng_below(rng, 3)
                                                         : first + (int64_t)tide_rng_below(rng, N_EVENTS);
        assert_tide_ok(tide__cursor_seek(c, first, last, &err), &err);
        if (i % 3 == 0) { // leave in the middle
            const tide__event *events;
            size_t n;
            assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
        } else {
            assert_gives(c, first, last);
        }
    }
    assert_gives(other, 1, N_EVENTS);
    tide__cursor_close(c);
    tide__cursor_close(other);
    tide__cursor_close(NULL);
}

static int64_t at_by_hand(int64_t t_ns) {
    int64_t id = 0;
    for (size_t i = 0; i < n_kept && kept[i].t_ns <= t_ns; i++) id = kept[i].id;
    return id;
}

static void assert_event_at(const tide__sql *s, int64_t t_ns) {
    tide_error err = TIDE_ERROR_INIT;
    int64_t id;
    assert_tide_ok(tide__cursor_event_at(s, t_ns, &id, &err), &err);
    if (id != at_by_hand(t_ns))
        fail_msg("at %lld: event %lld, not %lld", (long long)t_ns, (long long)id, (long long)at_by_hand(t_ns));
}

static void check_moments(const tide__sql *s, tide_rng *rng) {
    const int64_t end = all[N_EVENTS - 1].t_ns;
    for (int i = 0; i < tide_test_rounds(75, 150); i++)
        assert_event_at(s, (int64_t)tide_rng_below(rng, (uint64_t)end + 10));
    for (size_t i = 0; i < n_kept; i += 1 + (size_t)tide_rng_below(rng, 300)) {
        assert_event_at(s, kept[i].t_ns);
        assert_event_at(s, kept[i].t_ns - 1);
    }
    assert_event_at(s, 0);
    assert_event_at(s, -1);
    assert_event_at(s, INT64_MAX);
}

static void test_any_mixture_reads_as_it_was_written(void **state) {
    (void)state;
    tide_rng rng = {.state = 21};
    static const size_t pieces[] = {1, 1, 1, 2, 5, 20, 200};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide__store *s = open_new(&d);
        make_events(&rng);
        if (i < 2) {
            put(s, 0, N_EVENTS, i == 0 ? ROWS : CHUNKS);
        } else {
            put_pieces(s, &rng, pieces[i]);
        }
        check_reading(tide__store_sql(s), &rng);
        check_moments(tide__store_sql(s), &rng);
        tide__store_close(s);
        tmp_dir_remove(&d);
    }
}

/// Times at which a search by interpolation guesses badly, and many events at one moment.
static void test_moments_of_uneven_programs_are_found(void **state) {
    (void)state;
    tide_rng rng = {.state = 5};
    for (int kind = ROWS; kind <= CHUNKS; kind++) {
        for (int shape = 0; shape < 3; shape++) {
            tmp_dir d;
            tmp_dir_make(&d);
            tide__store *s = open_new(&d);
            make_events(&rng);
            for (size_t i = 0; i < N_EVENTS; i++) {
                const int64_t k = (int64_t)i;
                if (shape == 0) all[i].t_ns = k < N_EVENTS / 2 ? k : INT64_C(1) << 60;
                if (shape == 1) all[i].t_ns = k * k * k;
                if (shape == 2) all[i].t_ns = k / 3000 * 3000;
            }
            put(s, 0, N_EVENTS / 2, (form)kind);
            put(s, N_EVENTS / 2, N_EVENTS / 2, (form)kind);
            check_moments(tide__store_sql(s), &rng);
            tide__store_close(s);
            tmp_dir_remove(&d);
        }
    }
}

static void test_an_empty_trace_has_no_events(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    n_kept = 0;
    tide_error err = TIDE_ERROR_INIT;
    tide__cursor *c;
    assert_tide_ok(tide__cursor_open(tide__store_sql(s), 1, INT64_MAX, &c, &err), &err);
    assert_gives(c, 1, INT64_MAX);
    assert_event_at(tide__store_sql(s), 5);
    tide__cursor_close(c);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

// ---- invalid contents ----

static tide_status read_all(const tide__sql *s, tide_error *err) {
    tide__cursor *c;
    tide_status st = tide__cursor_open(s, 1, INT64_MAX, &c, err);
    if (st != TIDE_OK) return st;
    const tide__event *events;
    size_t n;
    while ((st = tide__cursor_next(c, &events, &n, err)) == TIDE_OK && n > 0) {
    }
    tide__cursor_close(c);
    return st;
}

/// A trace of rows, a chunk, rows; then `change`.
static void assert_refused(const char *change, const char *where, const char *why) {
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    tide_rng rng = {.state = 1};
    make_events(&rng);
    put(s, 0, 5000, ROWS);
    put(s, 5000, 3000, CHUNKS);
    put(s, 8000, 5000, ROWS);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(read_all(tide__store_sql(s), &err), &err);
    exec(s, change);
    const tide_status st = read_all(tide__store_sql(s), &err);
    if (st != TIDE_ERR_BAD_INPUT) fail_msg("%s: %s", change, tide_status_name(st));
    assert_text_has(err.msg, d.file);
    assert_text_has(err.msg, why);
    assert_text_has(err.where, where);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

static void test_what_no_recorder_writes_is_refused(void **state) {
    (void)state;
    static const char *const columns[] = {"run_id = -1",
                                          "run_id = 2147483648",
                                          "t_ns = -1",
                                          "op = 0",
                                          "op = 9",
                                          "op = 32",
                                          "op = 257",
                                          "op = -255",
                                          "block_id = -1",
                                          "kind = 200",
                                          "kind = -1",
                                          "kind = 256",
                                          "device = -1",
                                          "device = 1024",
                                          "device = 65537",
                                          "requested_bytes = -1",
                                          "reserved_bytes = -1",
                                          "thread = -1",
                                          "thread = 4294967297",
                                          "allocator_id = -1",
                                          "allocator_id = 2147483648",
                                          "tag_id = -1",
                                          "scope_id = -1",
                                          "op = 1, kind = NULL",
                                          "op = 1, device = NULL"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "UPDATE event SET %s WHERE id = 4321", columns[i]);
        assert_refused(text, "table event, row 4321", "no event");
    }
    assert_refused("UPDATE event SET t_ns = 9000000000000000000 WHERE id = 20", "table event, row 21",
                   "time runs back");
    assert_refused("UPDATE event SET t_ns = 9000000000000000000 WHERE id = 5000", "table event_chunk, row 5001",
                   "time runs back");
    assert_refused("UPDATE event SET t_ns = 0 WHERE id = 8001", "table event, row 8001", "time runs back");
    assert_refused("INSERT INTO event(id, t_ns, op, thread) SELECT 5001, end_ns, 8, 1 FROM event_chunk",
                   "table event, row 5001", "there twice");
    assert_refused("INSERT INTO event(id, t_ns, op, thread) SELECT 7777, end_ns, 8, 1 FROM event_chunk",
                   "table event, row 7777", "there twice");
    assert_refused("INSERT INTO event_chunk SELECT 4000, last_event, begin_ns, end_ns, data FROM event_chunk",
                   "table event_chunk", "tells of");
    assert_refused("UPDATE event_chunk SET data = x''", "table event_chunk, row 5001", "damaged");
    assert_refused("UPDATE event_chunk SET data = zeroblob(length(data))", "table event_chunk, row 5001", "damaged");
    assert_refused("UPDATE event_chunk SET data = substr(data, 1, length(data) - 1)", "table event_chunk, row 5001",
                   "damaged");
    assert_refused("UPDATE event_chunk SET first_event = 5002", "table event_chunk, row 5002", "tells of");
    assert_refused("UPDATE event_chunk SET last_event = 7999", "table event_chunk, row 5001", "tells of");
    assert_refused("UPDATE event_chunk SET begin_ns = begin_ns + 1", "table event_chunk, row 5001", "tells of");
    assert_refused("UPDATE event_chunk SET end_ns = end_ns + 1", "table event_chunk, row 5001", "tells of");
}

static void test_a_search_of_a_damaged_trace_ends(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE event SET t_ns = -5 WHERE id % 3 = 0",
        "UPDATE event SET t_ns = abs(random())",
        "UPDATE event_chunk SET last_event = 9223372036854775807",
        "UPDATE event_chunk SET begin_ns = 9223372036854775807, end_ns = 0",
        "UPDATE event SET id = -id",
        "INSERT INTO event(id, t_ns, op, thread) VALUES(9223372036854775807, 9223372036854775807, 8, 1)",
        "DELETE FROM event_chunk",
    };
    tide_rng rng = {.state = 11};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tmp_dir d;
        tmp_dir_make(&d);
        tide__store *s = open_new(&d);
        make_events(&rng);
        put(s, 0, 3000, ROWS);
        put(s, 3000, 3000, CHUNKS);
        put(s, 6000, 3000, ROWS);
        exec(s, changes[i]);
        for (int k = 0; k < tide_test_rounds(50, 100); k++) {
            int64_t id = -1;
            tide_error err = TIDE_ERROR_INIT;
            const tide_status st =
                tide__cursor_event_at(tide__store_sql(s), extreme(&rng, 63) % (all[9000].t_ns * 2), &id, &err);
            assert_true(st == TIDE_OK || st == TIDE_ERR_BAD_INPUT);
        }
        tide__store_close(s);
        tmp_dir_remove(&d);
    }
}

static void test_without_memory_it_says_so(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    tide__cursor *c;
    tide_error err = TIDE_ERROR_INIT;
    tide_host_fail_after(0);
    assert_tide_status(tide__cursor_open(tide__store_sql(s), 1, 2, &c, &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(0);
    assert_tide_status(tide__cursor_register(tide__store_sql(s), &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(-1);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

// ---- all_events ----

static char *query(const tide__store *s, const char *text) {
    static char out[4096];
    sqlite3_stmt *stmt;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__sql_prepare(tide__store_sql(s), text, &stmt, &err), &err);
    out[0] = '\0';
    bool has_row;
    while (tide__sql_step(tide__store_sql(s), stmt, &has_row, &err) == TIDE_OK && has_row) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", i > 0 ? "|" : "", tide__sql_text(stmt, i));
        snprintf(out + strlen(out), sizeof out - strlen(out), "\n");
    }
    sqlite3_finalize(stmt);
    return out;
}

static void assert_number(const tide__store *s, const char *text, int64_t want) {
    char number[32];
    snprintf(number, sizeof number, "%lld\n", (long long)want);
    if (strcmp(query(s, text), number) != 0) fail_msg("%s: %s, not %s", text, query(s, text), number);
}

/// In the trace below, rows up to 6000 and from 14001 on.
static const char *const bounds[] = {"id = 7000",
                                     "id > 5990 AND id <= 6010",
                                     "id BETWEEN 13990 AND 14010",
                                     "id >= 9223372036854775807",
                                     "id > 9223372036854775807",
                                     "id < -9223372036854775808",
                                     "rowid < 12",
                                     "t_ns < 100000",
                                     "t_ns <= (SELECT t_ns FROM want WHERE id = 6500)",
                                     "t_ns > (SELECT t_ns FROM want WHERE id = 6500)",
                                     "t_ns >= (SELECT t_ns FROM want WHERE id = 12000) AND id < 13000 AND op = 1",
                                     "t_ns = (SELECT t_ns FROM want WHERE id = 7777)",
                                     "t_ns BETWEEN -5 AND 0",
                                     "t_ns < 12345.5",
                                     "id > 100.5 AND id < '300'",
                                     "id < 100.5",
                                     "id = 'x'",
                                     "id IS NULL",
                                     "id IN (3, 9000, 14001, 99999)",
                                     "block_id = 40 AND thread > 1"};

static void test_all_events_are_one_table(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    tide__store *s = open_new(&d);
    tide_error err = TIDE_ERROR_INIT;
    tide_rng rng = {.state = 77};
    make_events(&rng);
    assert_tide_ok(tide__cursor_register(tide__store_sql(s), &err), &err);
    assert_number(s, "SELECT count(*) FROM all_events", 0);
    put(s, 0, N_EVENTS, ROWS);
    exec(s, "CREATE TEMP TABLE want AS SELECT * FROM event");
    exec(s, "DELETE FROM event WHERE id BETWEEN 6001 AND 14000");
    n_kept = 6000;
    put(s, 6000, 8000, CHUNKS);
    // The same columns, NULLs and all.
    assert_number(s, "SELECT count(*) FROM (SELECT * FROM want EXCEPT SELECT * FROM all_events)", 0);
    assert_number(s, "SELECT count(*) FROM (SELECT * FROM all_events EXCEPT SELECT * FROM want)", 0);
    assert_number(s, "SELECT count(*) FROM all_events", N_EVENTS);
    assert_number(s, "SELECT count(*) FROM all_events JOIN want USING (id)", N_EVENTS);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        char got[300], want[300], many[4096];
        snprintf(want, sizeof want, "SELECT count(*), min(id), max(id), total(t_ns) FROM want WHERE %s", bounds[i]);
        snprintf(got, sizeof got, "SELECT count(*), min(id), max(id), total(t_ns) FROM all_events WHERE %s", bounds[i]);
        snprintf(many, sizeof many, "%s", query(s, want));
        if (strcmp(query(s, got), many) != 0) fail_msg("%s: %s, not %s", bounds[i], query(s, got), many);
    }
    assert_string_equal(query(s, "SELECT id FROM all_events WHERE id > 5998 ORDER BY id LIMIT 4"),
                        "5999\n6000\n6001\n6002\n");
    assert_string_equal(query(s, "SELECT id FROM all_events WHERE id < 6003 ORDER BY id DESC LIMIT 3"),
                        "6002\n6001\n6000\n");
    // A bound is used: what lies outside is not even looked at.
    exec(s, "UPDATE event_chunk SET data = x'00' WHERE first_event > 10000");
    assert_number(s, "SELECT count(*) FROM all_events WHERE id <= 10000", 10000);
    assert_number(s, "SELECT count(*) FROM all_events WHERE id > 14000", N_EVENTS - 14000);
    sqlite3_stmt *stmt;
    assert_tide_ok(tide__sql_prepare(tide__store_sql(s), "SELECT count(*) FROM all_events", &stmt, &err), &err);
    bool has_row;
    assert_tide_status(tide__sql_step(tide__store_sql(s), stmt, &has_row, &err), TIDE_ERR_BAD_INPUT);
    assert_text_has(err.msg, "table event_chunk, row 10097");
    sqlite3_finalize(stmt);
    tide__store_close(s);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_any_mixture_reads_as_it_was_written),
        tide_unit_test(test_moments_of_uneven_programs_are_found),
        tide_unit_test(test_an_empty_trace_has_no_events),
        tide_unit_test(test_what_no_recorder_writes_is_refused),
        tide_unit_test(test_a_search_of_a_damaged_trace_ends),
        tide_unit_test(test_without_memory_it_says_so),
        tide_unit_test(test_all_events_are_one_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
