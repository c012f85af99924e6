// SPDX-License-Identifier: MIT
//
// The view in lines, and panes as documents: sentences without drawing, JSON and CSV with the same numbers.
#include <jansson.h>

#include "core/base/utf8.h"
#include "tests/tui/view_fixture.h"

/// What is printed for the lines of `input` on a plan.
static char *talk_about(tide_memory_plan *plan, const char *input) {
    tide_error err = TIDE_ERROR_INIT;
    tide_subject *a = subject_of_plan(plan);
    const tide_tui_session session = {.a = a};
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n), *in = tmpfile();
    assert_non_null(out);
    assert_non_null(in);
    fputs(input, in);
    rewind(in);
    assert_tide_ok(tide_tui_linear(&session, NULL, in, out, &err), &err);
    fclose(in);
    fclose(out);
    tide_subject_destroy(a);
    return text;
}

static char *talk(const char *input) { return talk_about(small_plan(262144), input); }

/// Line `n` of a text, from 0, as a fresh string.
static char *line_of(const char *text, size_t n) {
    while (n-- > 0) {
        text += strcspn(text, "\n");
        assert_int_equal(*text, '\n');
        text++;
    }
    return strndup(text, strcspn(text, "\n"));
}

static void one_line_for_each_change(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } turns[] = {
        {"goto 5", "step 5 (Add_5): "},
        {"Right", "step 6 (Gemm_6): "},
        {"sort size", "11 rows by size"},
        {"Home",
         "1 of 11: name: conv2_out; made by: Conv_2; step of that: 2; kind: Workspace; device: cpu; size: 256.00 KiB"},
        {"j", "2 of 11: name: "},
        {"\\", "filter (conditions; empty takes the last one off)?"},
        {"size>=64k", "8 rows by size, filter size>=64"},
        {"nonsense", "error: there is no command 'nonsense'"},
        {"2", "view memory: curve, map, table, details. pane map: addresses over time"},
        {"Z", "addresses 120.00 KiB to 360.00 KiB"},
        {"z", "all addresses"},
        {"Tab", "pane table: who is alive at the cursor"},
        {"v", "range 6 to 7"},
        {"Esc", "no range"},
        {"+", "window "},
        {"0", "window 0 to 8"},
        {"0", "nothing has changed"},
        {"m", "text of the mark (may be empty)?"},
        {"here", "mark a here: ' jumps there"},
        {"range 1 4", "range 1 to 4: at most 547.00 KiB, 4 made, 4 freed, 2 left with 320.00 KiB"},
    };
    enum { N = sizeof turns / sizeof turns[0] };
    char input[1024] = "";
    for (size_t i = 0; i < N; i++) {
        strncat(input, turns[i].line, sizeof input - strlen(input) - 2);
        strncat(input, "\n", sizeof input - strlen(input) - 1);
    }
    char *said = talk(input);
    char *hello = line_of(said, 0);
    assert_text_has(hello, "smallnet");
    assert_text_has(hello, "Peak ");
    assert_text_has(hello, "at 2, 11 tensors");
    free(hello);
    for (size_t i = 0; i < N; i++) {
        char *line = line_of(said, i + 2);
        if (strstr(line, turns[i].says) == NULL)
            fail_msg("'%s' says '%s', not '%s'", turns[i].line, line, turns[i].says);
        free(line);
    }
    free(said);
}

static void nothing_is_drawn(void **state) {
    (void)state;
    char *said = talk("?\nlist 50\n1\nlist\n2\nlist table\nlist map\n3\nlist\nlist whatif\n4\nlist\nlist "
                      "operators\n5\nlist\nkeys\nF2\n"
                      "Esc\nsql\nwhere\n");
    uint32_t cp;
    for (const char *at = said; *at != 0; at += tide_utf8_decode(at, &cp)) {
        (void)tide_utf8_decode(at, &cp);
        if (cp >= 0x2500 && cp <= 0x28FF) fail_msg("drawn: %.20s", at); // lines, blocks, braille
        assert_true(cp == '\n' || !tide_utf8_is_control(cp));
    }
    assert_text_has(said, ":zoom-in");
    assert_text_has(said, "part: live; bytes: ");
    assert_text_has(said, "operator: MaxPool_3; step: 3");
    free(said);
}

static void lists_have_every_row(void **state) {
    (void)state;
    char *said = talk("list gantt 100\n");
    for (int i = 1; i <= 11; i++) {
        char begin[32];
        snprintf(begin, sizeof begin, "%d of 11: name: ", i);
        assert_text_has(said, begin);
    }
    free(said);
}

static void hostile_names_are_cleaned(void **state) {
    (void)state;
    tide_memory_plan *plan = small_plan(262144);
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        if (strcmp(plan->lifetimes.items[i].name, "conv2_out") != 0) continue;
        tide_host_free(plan->lifetimes.items[i].name);
        plan->lifetimes.items[i].name = tide_host_strdup("evil\033[2J\ntwo\xFF");
    }
    char *said = talk_about(plan, "sort size\nHome\nlist\n");
    assert_text_has(said, "evil\xEF\xBF\xBD[2J\xEF\xBF\xBDtwo\xEF\xBF\xBD");
    assert_null(strchr(said, '\033'));
    free(said);
}

static void quitting_ends_the_talk(void **state) {
    (void)state;
    char *said = talk("quit\nsort size\n");
    assert_null(strstr(said, "by size"));
    free(said);
    said = talk("");
    assert_text_has(said, "11 rows by begin");
    free(said);
}

// ---- documents ----

static json_t *document(const tide_tui_session *session, const char *pane, const char *commands) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    const tide_tui_options opt = {.commands = commands};
    assert_tide_ok(tide_tui_pane_json(session, &opt, pane, &text, &err), &err);
    json_error_t at;
    json_t *doc = json_loads(tide_text_str(&text), 0, &at);
    if (doc == NULL) fail_msg("%s: line %d: %s", pane, at.line, at.text);
    tide_text_deinit(&text);
    return doc;
}

static int64_t number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail_msg("'%s' is no integer", key);
    return json_integer_value(value);
}

static int64_t sum(const json_t *rows, const char *key) {
    int64_t total = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) total += number(json_array_get(rows, i), key);
    return total;
}

static void documents_have_schema_and_exact_numbers(void **state) {
    (void)state;
    enum { PEAK = 196608 + 262144 + 32768 + 65536 + 3072 };
    tide_subject *a = subject_of_plan(small_plan(262144)), *b = subject_of_plan(small_plan(131072));
    const tide_tui_session session = {.a = a, .b = b};
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        const char *pane = tide_tui_pane_name((tide_tui_pane)i);
        char schema[64];
        snprintf(schema, sizeof schema, "tidemark.tui.%s", pane);
        json_t *doc = document(&session, pane, NULL);
        const char *first = json_object_iter_key(json_object_iter(doc));
        assert_string_equal(first, "schema");
        assert_string_equal(json_string_value(json_object_get(doc, "schema")), schema);
        assert_int_equal(number(doc, "version"), 1);
        assert_int_equal(number(doc, "cursor_step"), 2);
        assert_int_equal(number(doc, "cursor_bytes"), PEAK);
        json_decref(doc);
    }
    json_t *doc = document(&session, "table", NULL);
    assert_int_equal(sum(json_object_get(doc, "rows"), "counts_bytes"), PEAK);
    json_decref(doc);
    doc = document(&session, "explain", NULL);
    assert_int_equal(sum(json_object_get(doc, "parts"), "bytes"), number(doc, "held_bytes"));
    assert_int_equal(sum(json_object_get(doc, "by_owner"), "bytes"), number(doc, "live_bytes"));
    assert_int_equal(sum(json_object_get(doc, "by_kind"), "bytes"), number(doc, "live_bytes"));
    json_decref(doc);
    doc = document(&session, "compare", NULL);
    assert_int_equal(sum(json_object_get(doc, "by_owner"), "change_bytes"),
                     number(doc, "b_bytes") - number(doc, "a_bytes"));
    assert_int_equal(sum(json_object_get(doc, "by_kind"), "change_bytes"),
                     number(doc, "b_bytes") - number(doc, "a_bytes"));
    json_decref(doc);
    doc = document(&session, "gantt", "filter conv\nsort size");
    assert_int_equal(json_array_size(json_object_get(doc, "rows")), 5);
    assert_int_equal(number(doc, "hidden_items"), 6);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(doc, "rows"), 0), "name")),
                        "conv2_out");
    json_decref(doc);
    doc = document(&session, "whatif", "edit gone conv2_out");
    assert_int_equal(json_array_size(json_object_get(doc, "edits")), 1);
    json_decref(doc);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
}

static void csv_follows_the_rules(void **state) {
    (void)state;
    tide_memory_plan *plan = small_plan(262144);
    tide_host_free(plan->lifetimes.items[3].name);
    plan->lifetimes.items[3].name = tide_host_strdup("a \"quoted\", name");
    tide_subject *a = subject_of_plan(plan);
    const tide_tui_session session = {.a = a};
    const tide_tui_options opt = {.commands = "sort size"};
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    assert_tide_ok(tide_tui_pane_csv(&session, &opt, "gantt", &text, &err), &err);
    assert_true(
        strncmp(
            tide_text_str(&text),
            "name,owner,step,kind,device,allocator,size_bytes,reserved_bytes,bound,extents,"
            "actual_bytes,id,place_bytes,begin_step,"
            "end_step,never_freed,persistent\r\n\"a \"\"quoted\"\", name\",Conv_2,2,Workspace,cpu,,262144,262144,,,,",
            210) == 0);
    size_t n = 0;
    for (const char *at = tide_text_str(&text); (at = strstr(at, "\r\n")) != NULL; at += 2) n++;
    assert_int_equal(n, 12);
    tide_text_deinit(&text);
    assert_tide_ok(tide_tui_pane_csv(&session, NULL, "explain.by_kind", &text, &err), &err);
    assert_text_has(tide_text_str(&text), "name,items,bytes\r\n");
    assert_text_has(tide_text_str(&text), "Workspace,3,491520\r\n");
    tide_text_deinit(&text);
    assert_tide_status(tide_tui_pane_csv(&session, NULL, "explain.nothing", &text, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tui_pane_csv(&session, NULL, "gannt", &text, &err), TIDE_ERR_INVALID);
    assert_text_has(err.hint, "gantt");
    assert_tide_status(tide_tui_pane_json(&session, NULL, "", &text, &err), TIDE_ERR_INVALID);
    const tide_tui_options wrong = {.commands = "sort szie"};
    assert_tide_status(tide_tui_pane_json(&session, &wrong, "gantt", &text, &err), TIDE_ERR_INVALID);
    tide_text_deinit(&text);
    tide_subject_destroy(a);
}

/// Whatever allocation fails: a status, and nothing held afterwards.
static void memory_runs_out_anywhere(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(small_plan(262144));
    const tide_tui_session session = {.a = a};
    load_items(a);
    for (int what = 0; what < 3; what++) {
        bool done = false;
        int64_t n = 0;
        for (; !done; n++) {
            tide_error err = TIDE_ERROR_INIT;
            tide_text text = {0};
            tide_host_fail_after(n);
            const tide_status st = what == 0 ? tide_tui_pane_csv(&session, NULL, "table", &text, &err)
                                   : what == 1
                                       ? tide_tui_pane_json(&session, NULL, "explain", &text, &err)
                                       : tide_tui_script(&session, NULL, 80, 24, "keys jj3\ndump\n", &text, &err);
            tide_host_fail_after(-1);
            done = st == TIDE_OK && !text.failed;
            if (!done && st != TIDE_ERR_NOMEM)
                fail_msg("%d, allocation %" PRId64 ": %s: %s", what, n, tide_status_name(st), err.msg);
            tide_text_deinit(&text);
            assert_true(n < 5000);
        }
        assert_true(n > 10);
    }
    tide_subject_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_for_each_change), cmocka_unit_test(nothing_is_drawn),
        cmocka_unit_test(lists_have_every_row),     cmocka_unit_test(hostile_names_are_cleaned),
        cmocka_unit_test(quitting_ends_the_talk),   cmocka_unit_test(documents_have_schema_and_exact_numbers),
        cmocka_unit_test(csv_follows_the_rules),    cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
