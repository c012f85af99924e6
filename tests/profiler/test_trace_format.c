// SPDX-License-Identifier: MIT
//
// docs/trace-format.md is true: its examples run on the demo trace and print what the page shows, it explains every
// table, view and column that is in the file, and none that is not, and its layouts are those of the code.
// TIDE_UPDATE_DOCS=1 writes outputs and layouts anew.
#include "core/base/output.h"
#include "profiler/store/schema.h"
#include "tests/profiler/trace_fixture.h"

static char *read_doc(char *path, size_t path_bytes) {
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(tide_source_path("docs/trace-format.md", path, path_bytes), 0, &data, &len, &err),
                   &err);
    return data;
}

/// The text of the fenced block that `at` begins with, or NULL when another kind of text stands there. *end is behind
/// it.
static char *take_block(const char *at, const char *fence, const char **end) {
    if (strncmp(at, fence, strlen(fence)) != 0) return NULL;
    const char *text = at + strlen(fence);
    const char *close = strstr(text, "```\n");
    assert_non_null(close);
    *end = close + 4;
    return tide_host_strndup(text, (size_t)(close - text));
}

/// The demo trace, with two moments that have names and a free that cannot be.
static void record(const char *path) {
    feeder f;
    feeder_open(&f, path, 0, false);
    tide_memory_plan *plan = demo_plan_make();
    demo_naive_run(&f, plan);
    f.now = 1700;
    tide_recorder_mark(f.rec, "between the runs");
    demo_planned_run(&f, plan);
    feed(&f, 2950, TIDE_MEM_FREE_COMPLETED, 99, TIDE_KIND_DEFAULT, 64, NULL);
    f.now = 3000;
    tide_recorder_mark(f.rec, "the end");
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
}

/// Write the page anew, or hold what was made of it against what is there, when TIDE_UPDATE_DOCS does not ask for it.
static void settle(const char *path, const char *doc, const tide_text *fresh) {
    tide_error err = TIDE_ERROR_INIT;
    if (getenv("TIDE_UPDATE_DOCS") != NULL) {
        assert_tide_ok(tide_write_file(path, fresh->data, fresh->len, &err), &err);
    } else {
        assert_string_equal(fresh->data, doc);
    }
}

static void test_examples_run_and_print_what_is_shown(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    record(d.file);
    sqlite3 *db = sql_open(d.file);
    char path[512];
    char *doc = read_doc(path, sizeof path);
    tide_text fresh = {0};
    const char *at = doc;
    int n_examples = 0;
    for (const char *next; (next = strstr(at, "```sql\n")) != NULL; n_examples++) {
        char *query = take_block(next, "```sql\n", &next);
        assert_non_null(query);
        tide_text_add_n(&fresh, at, (size_t)(next - at));
        tide_text got = {0};
        sql_print(db, query, true, &got);
        char *want = take_block(next, "```text\n", &at);
        if (want == NULL) fail_msg("no output is shown for: %s", query);
        if (getenv("TIDE_UPDATE_DOCS") == NULL && strcmp(want, tide_text_str(&got)) != 0)
            fail_msg("%sgot:\n%sthe page shows:\n%s", query, tide_text_str(&got), want);
        tide_text_addf(&fresh, "```text\n%s```\n", tide_text_str(&got));
        tide_text_deinit(&got);
        tide_host_free(want);
        tide_host_free(query);
    }
    assert_true(n_examples >= 10);
    tide_text_add(&fresh, at);
    settle(path, doc, &fresh);
    tide_text_deinit(&fresh);
    tide_host_free(doc);
    sqlite3_close(db);
    tmp_dir_remove(&d);
}

/// The section "### `name`" holds a row for each column, in order, and no more.
static void check_section(sqlite3 *db, const char *doc, const char *name) {
    tide_text heading = {0}, query = {0}, columns = {0}, shown = {0};
    tide_text_addf(&heading, "\n### `%s`\n", name);
    const char *section = strstr(doc, heading.data);
    if (section == NULL) fail_msg("the page has no section for '%s'", name);
    const char *end = strstr(section + 1, "\n#");
    const char *row = strstr(section, "| column | meaning |\n|---|---|\n");
    assert_non_null(row);
    assert_true(end == NULL || row < end);
    row = strstr(row, "|---|---|\n") + strlen("|---|---|\n");
    while (strncmp(row, "| `", 3) == 0) {
        const char *close = strchr(row + 3, '`');
        assert_non_null(close);
        tide_text_add_n(&shown, row + 3, (size_t)(close - row - 3));
        tide_text_add(&shown, "\n");
        row = strchr(close, '\n') + 1;
    }
    tide_text_addf(&query, "SELECT name FROM pragma_table_info('%s')", name);
    sql_print(db, query.data, false, &columns);
    if (strcmp(tide_text_str(&shown), tide_text_str(&columns)) != 0)
        fail_msg("%s: the page has\n%sthe file has\n%s", name, tide_text_str(&shown), tide_text_str(&columns));
    tide_text_deinit(&heading);
    tide_text_deinit(&query);
    tide_text_deinit(&columns);
    tide_text_deinit(&shown);
}

static void test_every_table_view_and_column_is_explained(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    sqlite3 *db = sql_open(d.file);
    char path[512];
    char *doc = read_doc(path, sizeof path);
    const tide__schema_item *tables, *views;
    const size_t n_tables = tide__schema_tables(&tables), n_views = tide__schema_views(&views);
    for (size_t i = 0; i < n_tables; i++) check_section(db, doc, tables[i].name);
    for (size_t i = 0; i < n_views; i++) check_section(db, doc, views[i].name);
    sql_exec(d.file, tide__schema_block_chunk()->sql); // a trace has it when blocks are packed
    check_section(db, doc, "block_chunk");
    size_t n_sections = 0;
    for (const char *at = doc; (at = strstr(at, "\n### `")) != NULL; at++) n_sections++;
    assert_int_equal(n_sections, n_tables + n_views + 1); // the table of chunks of blocks is made where it is needed
    char n[16];
    snprintf(n, sizeof n, "%zu\n", n_tables + n_views + 1);
    assert_sql(d.file, "SELECT count(*) FROM sqlite_schema WHERE type IN ('table', 'view')", n);
    tide_host_free(doc);
    sqlite3_close(db);
    tmp_dir_remove(&d);
}

/// The part of a header's first comment that begins with "Layout", without the slashes.
static void header_layout(const char *file, tide_text *out) {
    char path[512], *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(tide_source_path(file, path, sizeof path), 0, &data, &len, &err), &err);
    const char *line = strstr(data, "\n// Layout");
    if (line == NULL) fail_msg("%s explains no layout", file);
    for (line++; strncmp(line, "//", 2) == 0; line = strchr(line, '\n') + 1) {
        const char *text = line + (line[2] == ' ' ? 3 : 2);
        tide_text_add_n(out, text, (size_t)(strchr(line, '\n') + 1 - text));
    }
    tide_host_free(data);
}

static void test_layouts_are_those_of_the_code(void **state) {
    (void)state;
    char path[512];
    char *doc = read_doc(path, sizeof path);
    tide_text fresh = {0};
    const char *at = doc;
    static const char *const files[] = {"profiler/store/chunk.h", "profiler/store/block_chunk.h",
                                        "profiler/store/snapshot.h"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char mark[128];
        snprintf(mark, sizeof mark, "<!-- %s -->\n", files[i]);
        const char *next = strstr(at, mark);
        if (next == NULL) fail_msg("the page has no layout of %s", files[i]);
        next += strlen(mark);
        tide_text_add_n(&fresh, at, (size_t)(next - at));
        tide_text layout = {0};
        header_layout(files[i], &layout);
        assert_true(layout.len > 500);
        tide_text_addf(&fresh, "```text\n%s```\n", tide_text_str(&layout));
        tide_text_deinit(&layout);
        char *shown = take_block(next, "```text\n", &at);
        assert_non_null(shown);
        tide_host_free(shown);
    }
    tide_text_add(&fresh, at);
    settle(path, doc, &fresh);
    tide_text_deinit(&fresh);
    tide_host_free(doc);
}

/// Each view answers on a trace of nothing, too: no division by nothing, no row that is all NULL.
static void test_views_of_a_trace_of_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feeder_close(&f);
    const tide__schema_item *views;
    const size_t n = tide__schema_views(&views);
    for (size_t i = 0; i < n; i++) {
        char query[128];
        const char *want = "", *columns = "*";
        if (strcmp(views[i].name, "span") == 0) want = "0|1|0|0|0\n";
        if (strcmp(views[i].name, "processes") == 0) { // who recorded nothing
            want = "1|closed|0|0|0\n";
            columns = "process_id, how, threads, runs, lost";
        }
        snprintf(query, sizeof query, "SELECT %s FROM %s", columns, views[i].name);
        assert_sql(d.file, query, want);
    }
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_examples_run_and_print_what_is_shown),
        tide_unit_test(test_every_table_view_and_column_is_explained),
        tide_unit_test(test_layouts_are_those_of_the_code),
        tide_unit_test(test_views_of_a_trace_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
