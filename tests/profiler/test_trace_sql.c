// SPDX-License-Identifier: MIT
//
// Queries of the user's: the same answers whether events are rows or lie in chunks, and nothing but reading.
#include "profiler/moments.h"

#include "profiler/feed/feed.h"
#include "tests/profiler/history_fixture.h"

static tide_trace *open_trace(const char *path) {
    tide_trace *t;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    return t;
}

static void ask(tide_trace *t, const char *query, tide_text *out) {
    tide_error err = TIDE_ERROR_INIT;
    out->len = 0;
    assert_tide_ok(tide_trace_sql(t, query, "|", 0, out, &err), &err);
}

static void refused(tide_trace *t, const char *query, const char *words) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text out = {0};
    assert_tide_status(tide_trace_sql(t, query, "|", 0, &out, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, words);
    tide_text_deinit(&out);
}

static void test_values_of_meta_as_lines(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    history h;
    h_record(&h, d.file, 2, 100, H_ROWS);
    sql_exec(d.file,
             "INSERT INTO meta VALUES('tool.2', 'second'), ('tool.1', 'first' || char(10) || 'of' || char(9) || "
             "'them'), ('tool.', ''), ('tool', 'not this'), ('tool%3', 'nor this')");
    tide_trace *t = open_trace(d.file);
    tide_text out = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_meta_lines(t, "tool.", &out, &err), &err);
    assert_string_equal(tide_text_str(&out), "\nfirst?of?them\nsecond\n");
    assert_tide_ok(tide_trace_meta_lines(t, "none.", &out, &err), &err);
    assert_tide_ok(tide_trace_meta_lines(t, "tool%", &out, &err), &err); // appended
    assert_string_equal(tide_text_str(&out), "\nfirst?of?them\nsecond\nnor this\n");
    tide_text_deinit(&out);
    tide_trace_close(t);
    h_deinit(&h);
    tmp_dir_remove(&d);
}

static void test_rows_as_text(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    history h;
    h_record(&h, d.file, 2, 3000, H_ROWS);
    tide_trace *t = open_trace(d.file);
    tide_text out = {0};
    ask(t, "SELECT 1 AS one, NULL AS none, 'two' AS t, 2.5 AS real, x'00ff' AS bytes", &out);
    assert_string_equal(tide_text_str(&out), "one|none|t|real|bytes\n1||two|2.5|x'00ff'\n");
    ask(t, "-- a remark\n;SELECT name FROM device ORDER BY id; -- another\n ;", &out);
    assert_string_equal(tide_text_str(&out), "name\ncpu\ncuda:0\n");
    ask(t, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n", &out);
    assert_string_equal(tide_text_str(&out), "i\n1\n2\n3\n");
    ask(t, "SELECT id FROM event WHERE 0", &out);
    assert_string_equal(tide_text_str(&out), "id\n");
    ask(t, "PRAGMA table_info(kind)", &out);
    assert_text_has(tide_text_str(&out), "purpose");
    tide_error err = TIDE_ERROR_INIT;
    out.len = 0;
    assert_tide_ok(tide_trace_sql(t, "SELECT id, op FROM event ORDER BY id", ",", 2, &out, &err), &err);
    int n_lines = 0;
    for (const char *p = tide_text_str(&out); *p != '\0'; p++) n_lines += *p == '\n';
    assert_int_equal(n_lines, 3);
    assert_text_has(tide_text_str(&out), "id,op\n1,");
    tide_text_deinit(&out);
    tide_trace_close(t);
    h_deinit(&h);
    tmp_dir_remove(&d);
}

/// Views and all_events: rows, chunks and an unfinished trace give the same text.
static void test_views(void **state) {
    (void)state;
    static const char *const queries[] = {
        "SELECT * FROM events ORDER BY event_id",
        "SELECT * FROM all_events ORDER BY id",
        "SELECT * FROM event WHERE id BETWEEN 100 AND 130",
        "SELECT count(*), min(id), max(id), sum(requested_bytes) FROM event",
        "SELECT * FROM span",
        "SELECT * FROM peak ORDER BY run_id",
        "SELECT * FROM bytes_by_kind WHERE run_id > 0 ORDER BY run_id, kind, device",
        "SELECT * FROM blocks ORDER BY alloc_event",
        "SELECT * FROM scopes ORDER BY scope_event_id",
        "SELECT * FROM steps",
        "SELECT * FROM marks ORDER BY event_id",
        "SELECT * FROM gaps ORDER BY event_id",
        "SELECT * FROM oom_attempts ORDER BY event_id",
        "SELECT * FROM leaks ORDER BY block_id",
        "SELECT problem_id, event_id, op, what FROM problems ORDER BY problem_id",
        "SELECT * FROM live_at_peak WHERE run_id = 1 ORDER BY block_id",
        "SELECT s.run_id, e.id FROM span s JOIN event e ON e.id = s.first_event ORDER BY 1",
    };
    tmp_dir rows, chunks, open;
    tmp_dir_make(&rows);
    tmp_dir_make(&chunks);
    tmp_dir_make(&open);
    history h[3];
    h_record(&h[0], rows.file, 7, 3500, H_ROWS);
    writer w;
    h_record(&h[1], chunks.file, 7, 3500, H_CHUNKS);
    h_begin(&h[2], &w, open.file, 7);
    for (int run = 0; run < 4; run++) {
        if (run == 1 || run == 2) h_run(&h[2], &w, true, run);
        h_go_on(&h[2], &w, 3500 / 4, H_CHUNKS);
        if (run == 1 || run == 2) h_run(&h[2], &w, false, run);
    }
    tide_error err = TIDE_ERROR_INIT;
    tide__feed *feed;
    const tide__feed_options opt = {.trace_path = open.file, .rank = -1, .ring_slots = 64};
    assert_tide_ok(tide__feed_create(&opt, &feed, &err), &err); // a recording is active
    tide_trace *a = open_trace(rows.file), *b = open_trace(chunks.file), *c = open_trace(open.file);
    tide_text x = {0}, y = {0}, z = {0};
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        ask(a, queries[i], &x);
        ask(b, queries[i], &y);
        ask(c, queries[i], &z);
        if (strchr(tide_text_str(&x), '\n')[1] == '\0') fail_msg("%s: no rows", queries[i]);
        if (strcmp(tide_text_str(&x), tide_text_str(&y)) != 0)
            fail_msg("%s: chunks are told as other rows", queries[i]);
        // Leaves of the end are not in the file yet.
        if (strcmp(queries[i], "SELECT * FROM peak ORDER BY run_id") == 0) continue;
        if (strcmp(tide_text_str(&x), tide_text_str(&z)) != 0)
            fail_msg("%s: unfinished, it is told otherwise", queries[i]);
    }
    tide_text_deinit(&x);
    tide_text_deinit(&y);
    tide_text_deinit(&z);
    tide_trace_close(a);
    tide_trace_close(b);
    tide_trace_close(c);
    writer_close(&w);
    tide__feed_end(feed);
    tide__feed_destroy(feed, true);
    for (int i = 0; i < 3; i++) h_deinit(&h[i]);
    tmp_dir_remove(&rows);
    tmp_dir_remove(&chunks);
    tmp_dir_remove(&open);
}

static void test_nothing_but_reading(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    history h;
    h_record(&h, d.file, 2, 1500, H_MIXED);
    tide_trace *t = open_trace(d.file);
    refused(t, "", "empty");
    refused(t, " -- nothing\n", "empty");
    refused(t, "SELECT nope FROM event", "no such column: nope");
    refused(t, "SELEC 1", "syntax error");
    refused(t, "SELECT 1; SELECT 2", "more than one");
    refused(t, "SELECT 1; nonsense", "more than one");
    refused(t, "DELETE FROM run", "");
    refused(t, "UPDATE run SET model = ''", "");
    refused(t, "INSERT INTO run(id) VALUES(9)", "");
    refused(t, "CREATE TEMP TABLE x(a)", "");
    refused(t, "CREATE VIEW x AS SELECT 1", "");
    refused(t, "DROP VIEW peak", "");
    refused(t, "ATTACH 'elsewhere.db' AS other", "");
    refused(t, "VACUUM INTO 'elsewhere.db'", "");
    refused(t, "PRAGMA journal_mode = DELETE", "");
    refused(t, "PRAGMA writable_schema = ON", "");
    refused(t, "BEGIN", "");
    refused(t, "SELECT load_extension('x')", "");
    refused(t, "SELECT * FROM pragma_journal_mode", "");
    refused(t, "SELECT abs(-9223372036854775808)", "overflow");
    tide_text out = {0};
    ask(t, "SELECT count(*) FROM run", &out);
    assert_string_equal(tide_text_str(&out), "count(*)\n2\n");
    tide_text_deinit(&out);
    tide_trace_close(t);
    h_deinit(&h);
    assert_int_equal(tmp_dir_count(&d), 1);
    tmp_dir_remove(&d);
}

/// A view of the file that pretends to be one of ours is not asked.
static void test_views_of_the_file_are_not_used(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    history h;
    h_record(&h, d.file, 2, 1500, H_ROWS);
    sql_exec(d.file, "DROP VIEW peak; CREATE VIEW peak AS SELECT 'a lie' AS peak_bytes; "
                     "CREATE VIEW trap AS SELECT 1 AS a");
    tide_trace *t = open_trace(d.file);
    tide_text out = {0};
    ask(t, "SELECT count(*) FROM peak WHERE peak_bytes = 'a lie'", &out);
    assert_string_equal(tide_text_str(&out), "count(*)\n0\n");
    refused(t, "SELECT * FROM trap", "access to view \"trap\" prohibited");
    tide_text_deinit(&out);
    tide_trace_close(t);
    h_deinit(&h);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_rows_as_text),
        tide_unit_test(test_values_of_meta_as_lines),
        tide_unit_test(test_views),
        tide_unit_test(test_nothing_but_reading),
        tide_unit_test(test_views_of_the_file_are_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
