// SPDX-License-Identifier: MIT
//
// Lines behind ':': words, numbers, times, errors with the nearest word, completion.
#include "tests/tui/view_fixture.h"

static void words_choose(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "view memory");
    assert_int_equal(st->preset, TIDE_TUI_PRESET_MEMORY);
    view_do(&v, ":view 4");
    assert_int_equal(st->preset, TIDE_TUI_PRESET_ALLOCATORS);
    view_do(&v, "  view   peak  ");
    assert_int_equal(st->preset, TIDE_TUI_PRESET_PEAK);
    view_do(&v, "pane whatif");
    assert_int_equal(st->focus, TIDE_TUI_PANE_WHATIF);
    view_do(&v, "set sort SIZE"); // of rows, whatever has the focus
    assert_int_equal(st->sort, TIDE_ROW_SORT_SIZE);
    view_do(&v, "view 1");
    view_do(&v, "sort AREA");
    assert_int_equal(st->sort, TIDE_ROW_SORT_AREA);
    view_do(&v, "group kind");
    assert_int_equal(st->group, TIDE_ROW_GROUP_KIND);
    view_do(&v, "kind workspace");
    assert_int_equal(st->curve_kind, TIDE_KIND_WORKSPACE);
    assert_int_equal(v.app->scene.cursor_bytes, 196608 + 262144 + 32768);
    view_do(&v, "kind all");
    assert_int_equal(st->curve_kind, -1);
    for (int by = 0; by < TIDE_N_BAND_BYS; by++) {
        assert_int_equal(st->bands_by, by);
        assert_int_equal(v.app->scene.bands->by, by);
        for (size_t i = 0; i < v.app->scene.n_columns; i++)
            assert_int_equal(v.app->scene.bands->bytes[i], v.app->scene.max[i]);
        view_do(&v, "bands");
    }
    assert_int_equal(st->bands_by, -1);
    assert_null(v.app->scene.bands);
    view_do(&v, "set bands tensor");
    assert_int_equal(st->bands_by, TIDE_BAND_BY_TENSOR);
    view_do(&v, "bands fruit");
    assert_true(st->message_is_error);
    view_do(&v, "set capacity 8GiB");
    assert_int_equal(st->capacity_bytes, UINT64_C(8) << 30);
    view_do(&v, "set capacity none");
    assert_int_equal(st->capacity_bytes, 0);
    view_do(&v, "set persistent off");
    assert_true(st->hides_persistent);
    view_do(&v, "set persistent");
    assert_false(st->hides_persistent);
    view_do(&v, "set mouse off");
    assert_false(st->mouse);
    view_close(&v);
}

/// Weights, 65536 bytes, are in none of curve, rows and bound.
static void weights_fold(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    const tide_tui_scene *s = &v.app->scene;
    const uint64_t peak = s->highest_bytes, cursor = s->cursor_bytes, bound = tide_tui_scene_levels(s).bound;
    const size_t rows = s->rows->n;
    assert_false(v.app->st.folds_weights);
    view_keys(&v, "I");
    assert_true(v.app->st.folds_weights);
    assert_text_has(view_message(&v), "64.00 KiB of weights are folded");
    assert_int_equal(s->highest_bytes, peak - 65536);
    assert_int_equal(s->cursor_bytes, cursor - 65536);
    assert_int_equal(tide_tui_scene_levels(s).bound, bound - 65536);
    assert_string_equal(tide_tui_scene_levels(s).words, "inputs, outputs");
    assert_int_equal(s->rows->n, rows - 1);
    for (size_t i = 0; i < s->bands->n_items; i++) assert_int_not_equal(s->bands->items[i].sort, TIDE_BAND_WEIGHTS);
    view_do(&v, "set weights on");
    assert_int_equal(s->highest_bytes, peak);
    assert_int_equal(s->rows->n, rows);
    view_close(&v);
}

/// On opening they are folded where they are more than half of the peak.
static void heavy_weights_are_folded_on_opening(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    feeder f;
    for (uint64_t bytes = 100; bytes <= 102; bytes += 2) {
        tmp_dir_make(&d);
        feeder_open(&f, d.file, 64, false);
        feed(&f, 10, TIDE_MEM_ALLOC, 1, TIDE_KIND_PERSISTENT, bytes, "w");
        feed(&f, 20, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, 100, "x");
        feeder_close(&f);
        view_open(&v, subject_of_trace(d.file, 0), NULL, 120, 40);
        assert_int_equal(v.app->st.folds_weights, bytes == 102);
        if (bytes == 102) assert_int_equal(v.app->scene.highest_bytes, 100);
        view_close(&v);
        tmp_dir_remove(&d);
    }
}

/// Rows begin with what is alive at the peak, the largest first, until others are asked for.
static void rows_open_with_what_is_alive(void **state) {
    (void)state;
    static const char *const asks[] = {"alive", "sort begin", "group kind", "filter size>1", "search gemm", "reverse"};
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        view v = {.a = subject_of_plan(small_plan(262144))};
        v.session = (tide_tui_session){.a = v.a, .batch_prefix = "tidemark tui FILE"};
        v.opt = (tide_tui_options){.glyphs = TIDE_TUI_GLYPHS_ASCII, .opens_alive = true};
        assert_tide_ok(tide_tui_app_open(&v.session, &v.opt, 120, 40, false, &v.app, &err), &err);
        const tide_tui_state *st = view_look(&v);
        const tide_items *items = tide_subject_items(v.a);
        const tide_rows *rows = v.app->scene.rows;
        assert_int_equal(rows->n, 5);
        for (size_t row = 0; row < rows->n; row++) {
            assert_true(tide_items_alive_at(items, rows->members[row], st->cursor));
            if (row > 0)
                assert_true(tide_items_shape(items, rows->members[row])->size_bytes <=
                            tide_items_shape(items, rows->members[row - 1])->size_bytes);
        }
        view_keys(&v, "I"); // weights alone go
        assert_int_equal(v.app->scene.rows->n, 4);
        view_keys(&v, "I");
        view_do(&v, "peak"); // elsewhere the rows stay
        assert_int_equal(v.app->scene.rows->n, 5);
        view_do(&v, asks[i]);
        assert_false(st->is_opening);
        assert_int_equal(v.app->scene.rows->n_hidden, 0);
        if (i == 4) assert_string_equal(tide_items_site(items, st->item)->name, "gemm6_out");
        view_close(&v);
    }
}

static void numbers_go_there(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "5");
    assert_int_equal(st->cursor, 5);
    view_do(&v, "goto 3");
    assert_int_equal(st->cursor, 3);
    view_do(&v, "goto Gemm_6");
    assert_int_equal(st->cursor, 6);
    view_do(&v, "goto pool3_out");
    assert_int_equal(st->cursor, 3);
    view_do(&v, "goto 8");
    assert_true(st->message_is_error);
    assert_int_equal(st->cursor, 3);
    view_do(&v, "goto 1.5ms");
    assert_true(st->message_is_error); // a plan counts in steps
    view_do(&v, "goto #1");
    assert_true(st->message_is_error);
    view_do(&v, "goto Gemm_7");
    assert_text_has(view_message(&v), "did you mean Gemm_6?");
    view_do(&v, "99999999999999999999999999");
    assert_true(st->message_is_error);
    assert_int_equal(st->cursor, 3);
    view_close(&v);
}

static void times_have_units(void **state) {
    (void)state;
    tmp_dir dir;
    feeder f;
    view v;
    tmp_dir_make(&dir);
    feeder_open(&f, dir.file, 0, false);
    feed(&f, 1000000, TIDE_MEM_ALLOC, 1, TIDE_KIND_WORKSPACE, 4096, "first");
    feed(&f, 2500000, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, 1024, "second");
    feed_free(&f, 4000000, 1, TIDE_KIND_WORKSPACE, 4096, "first");
    feed(&f, 9000000, TIDE_MEM_ALLOC, 3, TIDE_KIND_WORKSPACE, 64, "third");
    feeder_close(&f);
    view_open(&v, subject_of_trace(dir.file, 0), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    const int64_t begin = tide_subject_get_facts(v.a)->begin;
    assert_int_equal(begin, 1000000);
    view_do(&v, "goto 1.5ms");
    assert_int_equal(st->cursor, 2500000);
    view_do(&v, "goto 2500us");
    assert_int_equal(st->cursor, 3500000);
    view_do(&v, "goto 0.000001 s");
    assert_int_equal(st->cursor, 1001000);
    view_do(&v, "goto 3");
    assert_text_has(view_message(&v), "needs a unit");
    view_do(&v, "goto 3 parsecs");
    assert_text_has(view_message(&v), "no unit of time");
    view_do(&v, "goto 2h");
    assert_true(st->message_is_error);
    view_do(&v, "goto #4");
    assert_int_equal(st->cursor, 4000000);
    assert_int_equal(st->cursor_event, 4);
    view_do(&v, "goto #99");
    assert_text_has(view_message(&v), "no event 99");
    view_do(&v, "edit gone first");
    assert_text_has(view_message(&v), "no plan to change");
    assert_int_equal(st->n_edits, 0);
    view_do(&v, "range 1ms 2ms");
    assert_int_equal(st->range_begin, 2000000);
    assert_int_equal(st->range_end, 3000000);
    view_close(&v);
    tmp_dir_remove(&dir);
}

static void numbers_of_a_run_are_its_steps(void **state) {
    (void)state;
    tmp_dir dir;
    feeder f;
    view v;
    tide_memory_plan *plan = demo_plan_make();
    tmp_dir_make(&dir);
    feeder_open(&f, dir.file, 0, false);
    demo_naive_run(&f, plan);
    feeder_close(&f);
    tide_memory_plan_destroy(plan);
    view_open(&v, subject_of_trace(dir.file, 1), NULL, 120, 40);
    const tide_subject_facts *facts = tide_subject_get_facts(v.a);
    assert_int_equal(facts->n_steps, N_DEMO_STEPS);
    view_do(&v, "goto 2");
    assert_int_equal(v.app->st.cursor, facts->step_begin[2]);
    assert_int_equal(v.app->st.cursor, 1300);
    view_do(&v, "goto 4"); // there are four
    assert_text_has(view_message(&v), "needs a unit");
    view_close(&v);
    tmp_dir_remove(&dir);
}

static void errors_name_the_nearest_word(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"zoom-im", "did you mean 'zoom-in'?"},
        {"srot size", "did you mean 'sort'?"},
        {"sort szie", "did you mean 'size'?"},
        {"sort sideways", "there are begin, offset, size, life, area, name"},
        {"view memroy", "did you mean 'memory'?"},
        {"view 9", "there is no view '9'"},
        {"pane gannt", "did you mean 'gantt'?"},
        {"kind worksapce", "did you mean 'Workspace'?"},
        {"group knd", "did you mean 'kind'?"},
        {"set capactiy 3", "did you mean capacity?"},
        {"set capacity lots", "lots"},
        {"set mouse sideways", "on or off"},
        {"zoom-in twice", "takes nothing"},
        {"frobnicate", "there is no command 'frobnicate'"},
        {"jump ab", "one letter"},
        {"range 1 2 3", "too much"},
        {"save-plan x.json", "nothing was changed"},
        {"edit free-erlier conv2_out", "free-earlier"},
        {"filter alive@cursr", "cursor"},
    };
    view v;
    view_open_small(&v, 120, 40);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        view_do(&v, cases[i].line);
        if (!v.app->st.message_is_error) fail_msg("':%s' is no error", cases[i].line);
        assert_text_has(view_message(&v), cases[i].says);
        assert_false(v.app->st.b_is_whatif);
    }
    view_do(&v, "");
    assert_string_equal(view_message(&v), "");
    view_close(&v);
}

static void effects_carry_their_text(void **state) {
    (void)state;
    static const struct {
        const char *line;
        tide_tui_effect effect;
        const char *text;
    } cases[] = {
        {"export a b.csv", TIDE_TUI_EFFECT_EXPORT, "a b.csv"},
        {"compare other.db", TIDE_TUI_EFFECT_OPEN_B, "other.db"},
        {"sql SELECT 1", TIDE_TUI_EFFECT_SQL, "SELECT 1"},
        {"sql", TIDE_TUI_EFFECT_SQL, ""},
        {"batch", TIDE_TUI_EFFECT_BATCH, ""},
        {"reset", TIDE_TUI_EFFECT_FORGET_STATE, ""},
        {"mouse", TIDE_TUI_EFFECT_MOUSE, ""},
        {"edit align 256", TIDE_TUI_EFFECT_PLAN, ""},
    };
    view v;
    view_open_small(&v, 120, 40);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tide_tui_result r = tide_tui_command(&v.app->st, &v.app->scene, cases[i].line);
        assert_int_equal(r.effect, cases[i].effect);
        assert_true(r.flags & TIDE_TUI_EFFECT);
        assert_string_equal(r.text, cases[i].text);
    }
    view_close(&v);
}

// ---- completion ----

/// What Tab makes of a line, and what it lists.
static void complete(view *v, tide_tui_prompt prompt, const char *line) {
    tide_tui_state *st = &v->app->st;
    st->prompt = prompt;
    snprintf(st->text, sizeof st->text, "%s", line);
    st->text_at = strlen(st->text);
    tide_tui_complete(st, NULL);
}

static void tab_completes(void **state) {
    (void)state;
    static const struct {
        tide_tui_prompt prompt;
        const char *line, *becomes, *lists; ///< lists NULL: nothing
    } cases[] = {
        {TIDE_TUI_PROMPT_COMMAND, "zoo", "zoom-", "zoom-addresses-in"},
        {TIDE_TUI_PROMPT_COMMAND, "zoom-i", "zoom-in ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "xyz", "xyz", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "sort s", "sort size ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "kind W", "kind Workspace ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "kind w", "kind Workspace ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "set cap", "set capacity ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "set mouse o", "set mouse o", "off"},
        {TIDE_TUI_PROMPT_COMMAND, "set sort n", "set sort name ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "edit in", "edit in-place ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "edit in-place relu1_out conv", "edit in-place relu1_out conv", "conv4_out"},
        {TIDE_TUI_PROMPT_COMMAND, "edit in-place relu1_out conv4", "edit in-place relu1_out conv4_out ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "goto Max", "goto MaxPool_3 ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "view p", "view peak ", NULL},
        {TIDE_TUI_PROMPT_COMMAND, "filter kind=Work", "filter kind=Workspace ", NULL},
        {TIDE_TUI_PROMPT_FILTER, "siz", "size", "size>="},
        {TIDE_TUI_PROMPT_FILTER, "size>1 ki", "size>1 kind=", NULL},
        {TIDE_TUI_PROMPT_FILTER, "gem", "gemm6_out ", NULL},
        {TIDE_TUI_PROMPT_SEARCH, "pool", "pool3_out ", NULL},
        {TIDE_TUI_PROMPT_GOTO, "MaxP", "MaxPool_3 ", NULL},
    };
    view v;
    view_open_small(&v, 120, 40);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        complete(&v, cases[i].prompt, cases[i].line);
        if (strcmp(v.app->st.text, cases[i].becomes) != 0) {
            fail_msg("'%s' became '%s', not '%s'", cases[i].line, v.app->st.text, cases[i].becomes);
        }
        assert_int_equal(v.app->st.text_at, strlen(cases[i].becomes));
        if (cases[i].lists != NULL) assert_text_has(v.app->st.completions, cases[i].lists);
        if (cases[i].lists == NULL) assert_string_equal(v.app->st.completions, "");
    }
    // In the middle of a line what follows stays.
    v.app->st.prompt = TIDE_TUI_PROMPT_COMMAND;
    snprintf(v.app->st.text, sizeof v.app->st.text, "sor size");
    v.app->st.text_at = 3;
    tide_tui_complete(&v.app->st, &v.app->scene);
    assert_string_equal(v.app->st.text, "sort  size");
    assert_int_equal(v.app->st.text_at, 5);
    // Up to the last byte of the line; what does not fit leaves it as it is.
    char line[TIDE_TUI_MAX_PROMPT];
    const int blanks = TIDE_TUI_MAX_PROMPT - 1 - (int)strlen("zoom-in ");
    snprintf(line, sizeof line, "%*szoom-i", blanks, "");
    complete(&v, TIDE_TUI_PROMPT_COMMAND, line);
    assert_string_equal(v.app->st.text + blanks, "zoom-in ");
    snprintf(line, sizeof line, "%*szoom-i", blanks + 1, "");
    complete(&v, TIDE_TUI_PROMPT_COMMAND, line);
    assert_string_equal(v.app->st.text, line);
    assert_int_equal(v.app->st.text_at, strlen(line));
    view_close(&v);
}

static void every_word_that_is_completed_is_understood(void **state) {
    (void)state;
    static const char *const commands[] = {"sort ", "group ", "kind ", "view ", "pane "};
    view v;
    view_open_small(&v, 120, 40);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        complete(&v, TIDE_TUI_PROMPT_COMMAND, commands[i]);
        char list[1024], line[256];
        snprintf(list, sizeof list, "%s", v.app->st.completions);
        assert_true(strlen(list) > 0);
        for (char *at = list; *at != 0;) {
            const size_t n = strcspn(at, " ");
            snprintf(line, sizeof line, "%s%.*s", commands[i], (int)n, at);
            v.app->st.prompt = TIDE_TUI_PROMPT_NONE;
            view_do(&v, line);
            if (v.app->st.message_is_error) fail_msg("':%s': %s", line, view_message(&v));
            at += n + (at[n] == ' ');
        }
    }
    complete(&v, TIDE_TUI_PROMPT_FILTER, "");
    assert_text_has(v.app->st.completions, "alive@peak");
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_choose),
        cmocka_unit_test(weights_fold),
        cmocka_unit_test(heavy_weights_are_folded_on_opening),
        cmocka_unit_test(rows_open_with_what_is_alive),
        cmocka_unit_test(numbers_go_there),
        cmocka_unit_test(times_have_units),
        cmocka_unit_test(numbers_of_a_run_are_its_steps),
        cmocka_unit_test(errors_name_the_nearest_word),
        cmocka_unit_test(effects_carry_their_text),
        cmocka_unit_test(tab_completes),
        cmocka_unit_test(every_word_that_is_completed_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
