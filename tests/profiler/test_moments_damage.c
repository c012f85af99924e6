// SPDX-License-Identifier: MIT
//
// Moments of damaged traces: a query is answered or refused with any contents of the tables, and tide_trace_check finds
// the damage. Each query also runs with each of its allocations failing.
#include "profiler/moments.h"

#include "core/base/output.h"
#include "tests/profiler/history_fixture.h"

// ---- every question once ----

typedef struct answers {
    tide_live_set sets[3];
    tide_group *groups;
    size_t n_groups;
    tide_trace_mark *marks;
    tide_trace_kind *kinds[2];
    tide_trace_block *blocks;
    size_t n_blocks;
    tide_text sql;
} answers;

static void answers_deinit(answers *a) {
    for (int i = 0; i < 3; i++) tide_live_set_deinit(&a->sets[i]);
    tide_groups_free(a->groups, a->n_groups);
    tide_trace_marks_free(a->marks);
    tide_trace_kinds_free(a->kinds[0]);
    tide_trace_kinds_free(a->kinds[1]);
    tide_trace_blocks_free(a->blocks, a->n_blocks);
    tide_text_deinit(&a->sql);
    *a = (answers){0};
}

/// Question number `i`; false: there is none of that number.
static bool ask(tide_trace *t, int i, uint64_t t_ns, answers *a, tide_status *st) {
    enum { N = 40 };
    uint64_t low[N], high[N], x, y, z;
    size_t n;
    tide_trace_event events[N];
    tide_trace_info info;
    tide_error err = TIDE_ERROR_INIT;
    switch (i) {
    case 0:
        *st = tide_trace_live_set(t, t_ns, &a->sets[0], &err);
        if (*st == TIDE_OK) *st = tide_live_set_group(&a->sets[0], TIDE_BY_SCOPE, &a->groups, &a->n_groups, &err);
        return true;
    case 1:
        *st = tide_trace_live_set_after(t, 2500, &a->sets[1], &err);
        return true;
    case 2:
        *st = tide_trace_alive_between(t, t_ns / 2, t_ns, &a->sets[2], &err);
        return true;
    case 3:
        *st = tide_trace_peak_between(t, -1, NULL, t_ns / 3, t_ns, &x, &y, &z, &err);
        return true;
    case 4:
        *st = tide_trace_peak_between(t, TIDE_KIND_WORKSPACE, NULL, 0, t_ns, &x, &y, &z, &err);
        return true;
    case 5:
        *st = tide_trace_columns(t, -1, "cpu", 0, 2 * t_ns, N, TIDE_COLUMNS_FAST, low, high, &err);
        return true;
    case 6:
        *st = tide_trace_columns(t, TIDE_KIND_DEFAULT, "cuda:0", 0, t_ns, N, TIDE_COLUMNS_EXACT, low, high, &err);
        return true;
    case 7:
        *st = tide_trace_events(t, 1000, events, N, &n, &err);
        return true;
    case 8:
        *st = tide_trace_event_at(t, t_ns, &x, &err);
        return true;
    case 9:
        *st = tide_trace_marks(t, &a->marks, &n, &err);
        return true;
    case 10:
        *st = tide_trace_kinds(t, 0, &a->kinds[0], &n, &err);
        return true;
    case 11:
        *st = tide_trace_kinds(t, 1, &a->kinds[1], &n, &err);
        return true;
    case 12:
        *st = tide_trace_live_at(t, TIDE_KIND_WORKSPACE, t_ns, &x, &err);
        return true;
    case 13:
        *st = tide_trace_get_info(t, &info, &err);
        return true;
    case 14:
        *st = tide_trace_blocks(t, 2, &a->blocks, &a->n_blocks, &err);
        return true;
    case 15:
        *st = tide_trace_sql(t, "SELECT * FROM bytes_by_kind", "|", 0, &a->sql, &err);
        return true;
    case 16:
        *st = tide_trace_check(t, &err);
        return true;
    default:
        return false;
    }
}

static void test_out_of_memory_everywhere(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    history h;
    h_record(&h, d.file, 7, 4000, H_MIXED);
    bool is_question = true;
    for (int i = 0; is_question; i++) {
        bool done = false;
        int64_t after = 0;
        for (; is_question && !done && after < 100000; after += 1 + after / tide_test_rounds(3, 40)) {
            tide_error err = TIDE_ERROR_INIT;
            tide_trace *t = NULL;
            answers a = {0};
            tide_host_fail_after(after);
            tide_status st = tide_trace_open(d.file, &t, &err);
            if (st == TIDE_OK) is_question = ask(t, i, (uint64_t)h.events[3000].t_ns, &a, &st);
            tide_host_fail_after(-1);
            done = st == TIDE_OK;
            if (!done && st != TIDE_ERR_NOMEM)
                fail_msg("question %d, %d allocations: %s", i, (int)after, tide_status_name(st));
            // What could not be answered once is answered next time.
            if (!done && t != NULL) {
                answers_deinit(&a);
                (void)ask(t, i, (uint64_t)h.events[3000].t_ns, &a, &st);
                if (st != TIDE_OK)
                    fail_msg("question %d after %d allocations: %s", i, (int)after, tide_status_name(st));
            }
            answers_deinit(&a);
            tide_trace_close(t);
        }
        assert_true(done || !is_question);
    }
    h_deinit(&h);
    tmp_dir_remove(&d);
}

// ---- damage ----

/// Tables that moments are read from, with the columns that are numbers.
static const struct {
    const char *table, *columns[12];
} targets[] = {
    {"leaf",
     {"last_event", "begin_ns", "end_ns", "min_bytes", "max_bytes", "max_event", "max_ns", "max_reserved_bytes",
      "last_bytes", "last_reserved_bytes", "first_event"}},
    {"snapshot", {"event_id", "t_ns", "blocks", "requested_bytes"}},
    {"event", {"t_ns", "op", "block_id", "kind", "device", "requested_bytes", "reserved_bytes", "address", "id"}},
    {"event_chunk", {"first_event", "last_event", "begin_ns", "end_ns"}},
    {"block", {"alloc_event", "free_event", "alloc_ns", "free_ns", "kind", "device", "requested_bytes", "run_id"}},
    {"series", {"device", "kind", "id"}},
    {"problem", {"event_id"}},
};
/// The new value: text, then the column where `of_it`, then text.
static const struct {
    const char *before;
    bool of_it;
    const char *behind;
} values[] = {{"0", false, ""},
              {"-1", false, ""},
              {"9223372036854775807", false, ""},
              {"-9223372036854775807", false, ""},
              {"", true, " + 1"},
              {"", true, " - 1"},
              {"2 * ", true, ""},
              {"1000000", false, ""},
              {"NULL", false, ""},
              {"1024", false, ""},
              {"255", false, ""}};

/// One value somewhere becomes another one. *changed false: SQLite would not have it, or it was the same.
static void damage(const char *path, tide_rng *rng, char *what, size_t what_bytes, bool *changed) {
    const size_t target = (size_t)tide_rng_below(rng, sizeof targets / sizeof targets[0]);
    size_t n = 0;
    while (n < 12 && targets[target].columns[n] != NULL) n++;
    const char *column = targets[target].columns[tide_rng_below(rng, n)], *table = targets[target].table;
    char value[64], key[32] = "rowid";
    const size_t v = (size_t)tide_rng_below(rng, sizeof values / sizeof values[0]);
    snprintf(value, sizeof value, "%s%s%s", values[v].before, values[v].of_it ? column : "", values[v].behind);
    if (strcmp(table, "leaf") == 0) snprintf(key, sizeof key, "(series, first_event)");
    snprintf(what, what_bytes,
             "UPDATE OR IGNORE %s SET %s = %s WHERE %s = (SELECT %s FROM %s LIMIT 1 OFFSET %d %% max(1, "
             "(SELECT count(*) FROM %s))) AND %s IS NOT %s",
             table, column, value, key, key[0] == '(' ? "series, first_event" : key, table,
             (int)tide_rng_below(rng, 50), table, column, value);
    sqlite3 *db = sql_open(path);
    sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    *changed = sqlite3_exec(db, what, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) > 0;
    sqlite3_close(db);
}

static void copy_file(const char *from, const char *to) {
    char *data;
    size_t len;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(from, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_write_file(to, data, len, &err), &err);
    tide_host_free(data);
}

static void check_damaged(uint64_t seed, h_form form, int n_rounds) {
    tmp_dir d;
    tmp_dir_make(&d);
    char whole[400];
    snprintf(whole, sizeof whole, "%s.whole", d.file);
    history h;
    h_record(&h, whole, seed, 18000, form); // a snapshot, and what follows it
    tide_rng rng = {seed};
    int n_refused = 0, n_changed = 0;
    for (int round = 0; round < n_rounds; round++) {
        char what[512];
        bool changed;
        copy_file(whole, d.file);
        damage(d.file, &rng, what, sizeof what, &changed);
        if (!changed) continue;
        n_changed++;
        tide_error err = TIDE_ERROR_INIT;
        tide_trace *t;
        tide_status st = tide_trace_open(d.file, &t, &err);
        if (st != TIDE_OK) {
            if (st != TIDE_ERR_BAD_INPUT) fail_msg("%s: open says %s: %s", what, tide_status_name(st), err.msg);
            n_refused++;
            continue;
        }
        answers a = {0};
        for (int i = 0; i < 16; i++) {
            assert_true(ask(t, i, (uint64_t)h.events[3000].t_ns, &a, &st));
            if (st != TIDE_OK && st != TIDE_ERR_BAD_INPUT && st != TIDE_ERR_NOT_FOUND && st != TIDE_ERR_INVALID)
                fail_msg("%s: question %d says %s", what, i, tide_status_name(st));
        }
        answers_deinit(&a);
        st = tide_trace_check(t, &err);
        n_refused += st == TIDE_ERR_BAD_INPUT;
        // What is told once only, as the address of a free, or the event of a problem, can be anything.
        const bool is_told_once = strstr(what, "IGNORE problem") != NULL || strstr(what, "IGNORE event ") != NULL;
        if (st == TIDE_OK && !is_told_once) fail_msg("%s: not seen", what);
        tide_trace_close(t);
    }
    assert_true(n_changed > n_rounds / 8);
    assert_true(n_refused > n_changed / 2);
    h_deinit(&h);
    tmp_dir_remove(&d);
}

static void test_damaged_rows(void **state) {
    (void)state;
    check_damaged(3, H_ROWS, tide_test_rounds(7, 120));
}

static void test_damaged_chunks(void **state) {
    (void)state;
    check_damaged(5, H_MIXED, tide_test_rounds(7, 120));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_out_of_memory_everywhere),
        tide_unit_test(test_damaged_rows),
        tide_unit_test(test_damaged_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
