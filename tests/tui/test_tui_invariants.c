// SPDX-License-Identifier: MIT
//
// In every pane and at every cursor position, numbers on the screen equal those that SQL finds in the file; the parts
// of a whole sum to it.
#include "tests/analysis/allocator_fixture.h"
#include "tests/tui/view_fixture.h"
#include "tui/sheet.h"

typedef struct asked {
    tmp_dir dir;
    sqlite3 *db;
    view v;
    int64_t begin, end;
} asked;

static void asked_open(asked *q, uint64_t seed) {
    working w;
    tmp_dir_make(&q->dir);
    work_open(&w, q->dir.file);
    work_at_random(&w, seed, 400);
    work_close(&w);
    assert_int_equal(sqlite3_open_v2(q->dir.file, &q->db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    view_open(&q->v, subject_of_trace(q->dir.file, 0), NULL, 120, 40);
    const tide_subject_facts *f = tide_subject_get_facts(q->v.a);
    q->begin = f->begin;
    q->end = f->end;
}

static void asked_close(asked *q) {
    view_close(&q->v);
    sqlite3_close(q->db);
    tmp_dir_remove(&q->dir);
}

/// The one number that a SELECT gives; ?1 and ?2 are `a` and `b`.
static uint64_t sql(const asked *q, const char *select, int64_t a, int64_t b) {
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(q->db, select, -1, &stmt, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(q->db));
    sqlite3_bind_int64(stmt, 1, a);
    sqlite3_bind_int64(stmt, 2, b);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const uint64_t number = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

#define ALIVE "FROM blocks WHERE alloc_ns <= ?1 AND (free_ns IS NULL OR free_ns > ?1)"

static void assert_frame_says(asked *q, const char *words) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text frame = {0};
    assert_tide_ok(tide_tui_app_frame(q->v.app, &err), &err);
    tide_tui_grid_to_text(&q->v.app->grid, &frame);
    if (strstr(tide_text_str(&frame), words) == NULL) fail_msg("no '%s' in\n%s", words, tide_text_str(&frame));
    tide_text_deinit(&frame);
}

static uint64_t column_sum(const asked *q, tide_tui_pane pane, size_t which, const char *key) {
    tide_tui_sheet sheets[TIDE_TUI_MAX_SHEETS];
    assert_true(tide_tui_sheets_of(&q->v.app->scene, pane, sheets) > which);
    const tide_tui_sheet *sheet = &sheets[which];
    tide_row_room room;
    tide_cell cell;
    size_t column = 0;
    while (column < sheet->n_columns && strcmp(sheet->columns[column].key, key) != 0) column++;
    assert_true(column < sheet->n_columns);
    uint64_t sum = 0;
    for (size_t row = 0; row < sheet->n_rows; row++) {
        tide_table_cell(sheet, tide_table_row(sheet, row, &room), column, &cell);
        sum += cell.u;
    }
    return sum;
}

static void at_any_moment_what_is_live(void **state) {
    (void)state;
    asked q;
    asked_open(&q, 21);
    tide_rng rng = {5};
    for (int i = 0; i < 40; i++) {
        const int64_t t = q.begin + (int64_t)tide_rng_below(&rng, (uint64_t)(q.end - q.begin));
        char line[64], bytes[24], words[64];
        snprintf(line, sizeof line, "goto %" PRId64 "ns", t - q.begin);
        view_do(&q.v, "view lifetimes");
        view_do(&q.v, line);
        const uint64_t live = sql(&q, "SELECT coalesce(sum(requested_bytes), 0) " ALIVE, t, 0);
        assert_int_equal(q.v.app->scene.cursor_bytes, live);
        snprintf(words, sizeof words, "%s live", tide_format_bytes(live, bytes, sizeof bytes));
        assert_frame_says(&q, words);

        view_do(&q.v, "view memory");
        assert_int_equal(q.v.app->scene.live->n, sql(&q, "SELECT count(*) " ALIVE, t, 0));
        assert_int_equal(column_sum(&q, TIDE_TUI_PANE_TABLE, 0, "counts_bytes"), live);
        assert_int_equal(column_sum(&q, TIDE_TUI_PANE_TABLE, 0, "reserved_bytes"),
                         sql(&q, "SELECT coalesce(sum(reserved_bytes), 0) " ALIVE, t, 0));
    }
    asked_close(&q);
}

static void parts_sum_to_what_is_held(void **state) {
    (void)state;
    asked q;
    asked_open(&q, 22);
    tide_rng rng = {6};
    view_do(&q.v, "view peak");
    for (int i = 0; i < 40; i++) {
        char line[64], bytes[24];
        const int64_t t = q.begin + (int64_t)tide_rng_below(&rng, (uint64_t)(q.end - q.begin));
        snprintf(line, sizeof line, "goto %" PRId64 "ns", t - q.begin);
        view_do(&q.v, line);
        const tide_explanation *e = q.v.app->scene.explanation;
        assert_non_null(e);
        assert_int_equal(column_sum(&q, TIDE_TUI_PANE_EXPLAIN, 0, "bytes"), e->held_bytes);
        assert_int_equal(column_sum(&q, TIDE_TUI_PANE_EXPLAIN, 1, "bytes"), e->live.bytes);
        assert_int_equal(column_sum(&q, TIDE_TUI_PANE_EXPLAIN, 2, "bytes"), e->live.bytes);
        assert_int_equal(e->live.bytes, sql(&q, "SELECT coalesce(sum(requested_bytes), 0) " ALIVE, t, 0));
        assert_int_equal(e->parts[TIDE_PART_ROUNDING],
                         sql(&q, "SELECT coalesce(sum(reserved_bytes - requested_bytes), 0) " ALIVE, t, 0));
        assert_frame_says(&q, tide_format_bytes(e->held_bytes, bytes, sizeof bytes));
    }
    asked_close(&q);
}

static void filters_and_searches_count_what_sql_counts(void **state) {
    (void)state;
    static const struct {
        const char *filter, *where;
    } filters[] = {
        {"kind=workspace", "kind = 'Workspace'"},
        {"kind!=workspace", "kind <> 'Workspace'"},
        {"size>=1MiB", "requested_bytes >= 1048576"},
        {"size<4k !conv", "requested_bytes < 4096 AND name NOT LIKE '%conv%'"},
        {"leaked", "free_ns IS NULL"},
        {"name~^(conv|add)$", "name IN ('conv', 'add')"},
        {"allocator=cpu", "allocator = 'cpu'"},
        {"life>300ns", "coalesce(free_ns, (SELECT max(t_ns) FROM event)) - alloc_ns > 300"},
    };
    asked q;
    asked_open(&q, 23);
    view_do(&q.v, "set weights on"); // they are more than half of the peak here
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        char line[128], select[256];
        snprintf(line, sizeof line, "filter %s", filters[i].filter);
        view_do(&q.v, line);
        if (q.v.app->st.message_is_error) fail_msg("%s: %s", line, view_message(&q.v));
        snprintf(select, sizeof select, "SELECT count(*) FROM blocks WHERE %s", filters[i].where);
        const uint64_t n = sql(&q, select, 0, 0);
        if (view_rows(&q.v) != n) fail_msg("%s: %zu rows, not %" PRIu64, line, view_rows(&q.v), n);
        assert_int_equal(q.v.app->scene.rows->n_hidden, sql(&q, "SELECT count(*) FROM blocks", 0, 0) - n);
        snprintf(select, sizeof select, "SELECT coalesce(sum(requested_bytes), 0) FROM blocks WHERE NOT (%s)",
                 filters[i].where);
        assert_int_equal(q.v.app->scene.rows->hidden_bytes, sql(&q, select, 0, 0));
        view_do(&q.v, "filter");
    }
    view_do(&q.v, "search ^(CONV|keys)$");
    assert_int_equal(q.v.app->scene.n_matches,
                     sql(&q, "SELECT count(*) FROM blocks WHERE name IN ('conv', 'keys')", 0, 0));
    asked_close(&q);
}

static void ranges_count_what_sql_counts(void **state) {
    (void)state;
    asked q;
    asked_open(&q, 24);
    tide_rng rng = {8};
    for (int i = 0; i < 40; i++) {
        const int64_t span = q.end - q.begin;
        const int64_t from = q.begin + (int64_t)tide_rng_below(&rng, (uint64_t)span);
        const int64_t to = from + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(q.end - from));
        char line[96];
        snprintf(line, sizeof line, "range %" PRId64 "ns %" PRId64 "ns", from - q.begin, to - q.begin);
        view_do(&q.v, line);
        const tide_tui_range_facts *r = &q.v.app->scene.range;
        const int64_t end = q.v.app->st.range_end; // held inside the axis
        assert_int_equal(q.v.app->st.range_begin, from);
        assert_true(r->known);
        assert_int_equal(r->n_allocs,
                         sql(&q, "SELECT count(*) FROM blocks WHERE alloc_ns >= ?1 AND alloc_ns < ?2", from, end));
        assert_int_equal(r->n_frees,
                         sql(&q, "SELECT count(*) FROM blocks WHERE free_ns >= ?1 AND free_ns < ?2", from, end));
        assert_int_equal(r->n_left, sql(&q,
                                        "SELECT count(*) FROM blocks WHERE alloc_ns >= ?1 AND alloc_ns < ?2 AND "
                                        "(free_ns IS NULL OR free_ns >= ?2)",
                                        from, end));
        assert_int_equal(r->alloc_bytes,
                         sql(&q,
                             "SELECT coalesce(sum(requested_bytes), 0) FROM blocks WHERE alloc_ns >= ?1 "
                             "AND alloc_ns < ?2",
                             from, end));
    }
    asked_close(&q);
}

static void two_moments_differ_by_what_sql_says(void **state) {
    (void)state;
    asked q;
    asked_open(&q, 25);
    tide_rng rng = {9};
    view_do(&q.v, "view comparison");
    for (int i = 0; i < 20; i++) {
        int64_t t[2];
        for (int k = 0; k < 2; k++) {
            char line[64];
            t[k] = q.begin + (int64_t)tide_rng_below(&rng, (uint64_t)(q.end - q.begin));
            snprintf(line, sizeof line, "goto %" PRId64 "ns", t[k] - q.begin);
            view_do(&q.v, line);
            view_keys(&q.v, k == 0 ? "A" : "B");
        }
        const tide_diff *d = q.v.app->scene.diff;
        assert_non_null(d);
        // What is held is what was asked for, rounding, and what allocators keep: more than what lives.
        int64_t by_owner = 0, by_kind = 0;
        for (size_t s = 0; s < d->n_by_owner; s++)
            by_owner += (int64_t)(d->by_owner[s].b_bytes - d->by_owner[s].a_bytes);
        for (size_t s = 0; s < d->n_by_kind; s++) by_kind += (int64_t)(d->by_kind[s].b_bytes - d->by_kind[s].a_bytes);
        assert_int_equal(by_owner, (int64_t)(d->b_bytes - d->a_bytes));
        assert_int_equal(by_kind, (int64_t)(d->b_bytes - d->a_bytes));
        assert_true(d->a_bytes >= sql(&q, "SELECT coalesce(sum(requested_bytes), 0) " ALIVE, t[0], 0));
        assert_true(d->b_bytes >= sql(&q, "SELECT coalesce(sum(requested_bytes), 0) " ALIVE, t[1], 0));
    }
    asked_close(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_any_moment_what_is_live),
        cmocka_unit_test(parts_sum_to_what_is_held),
        cmocka_unit_test(filters_and_searches_count_what_sql_counts),
        cmocka_unit_test(ranges_count_what_sql_counts),
        cmocka_unit_test(two_moments_differ_by_what_sql_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
