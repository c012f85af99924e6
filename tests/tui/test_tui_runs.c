// SPDX-License-Identifier: MIT
//
// Executions in the view: from one to the next, one alone, two compared, and what the line under the ruler says of
// them.
#include "tests/tui/view_fixture.h"

enum { N = 4, BEGIN = 1000, EACH = 1000 };

/// Four executions of the demo plan, the third of which takes 7 bytes beside its buffer.
static void record_runs(const char *path) {
    feeder f;
    feeder_open(&f, path, 64, false);
    tide_memory_plan *plan = demo_plan_make();
    const tide_run_info info = {
        .model = "demo", .source = "demo.json", .mode = "planned", .strategy = "by_hand", .device = "cpu"};
    assert_int_equal(feed_begin_run(&f, 900, &info, plan), 1);
    feed(&f, 910, TIDE_MEM_ALLOC, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    for (int k = 0; k < N; k++) {
        const uint64_t t = BEGIN + EACH * (uint64_t)k;
        const tide_scope run = {.name = "demo", .kind = TIDE_SCOPE_RUN, .index = k, .block_id = 2};
        feed_scope(&f, t, true, &run);
        if (k == 2) feed(&f, t + 10, TIDE_MEM_ALLOC, 9, TIDE_KIND_DEFAULT, 7, "beside");
        for (int i = 0; i < N_DEMO_STEPS; i++) {
            const tide_scope op = {.name = demo_steps[i], .kind = TIDE_SCOPE_OPERATOR, .index = i, .parent = &run};
            feed_scope(&f, t + 50 + 100 * (uint64_t)i, true, &op);
            feed_scope(&f, t + 140 + 100 * (uint64_t)i, false, &op);
        }
        if (k == 2) feed_free(&f, t + 600, 9, TIDE_KIND_DEFAULT, 7, "beside");
        feed_scope(&f, t + 800, false, &run);
    }
    feed_free(&f, 6000, 2, TIDE_KIND_WORKSPACE, DEMO_BYTES, "plan buffer");
    feed_end_run(&f, 6100);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
}

static void keys_go_from_run_to_run(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    const tide_tui_state *st = &v.app->st;
    view_do(&v, "goto begin");
    for (int k = 0; k < N; k++) {
        view_keys(&v, "}");
        assert_int_equal(st->cursor, BEGIN + EACH * k);
        assert_text_has(view_message(&v), "of 4, from ");
    }
    view_keys(&v, "}");
    assert_text_has(view_message(&v), "no execution begins after here");
    for (int k = N - 2; k >= 0; k--) {
        view_keys(&v, "{");
        assert_int_equal(st->cursor, BEGIN + EACH * k);
    }
    view_keys(&v, "{");
    assert_text_has(view_message(&v), "no execution begins before here");
    view_close(&v);
    tmp_dir_remove(&d);
}

static void one_run_fills_the_window(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    const tide_tui_state *st = &v.app->st;
    static const char *const lines[] = {"run 2", "run exec:2", "goto exec:2"};
    for (size_t i = 0; i < 3; i++) {
        view_do(&v, "run 0");
        assert_int_equal(st->window.begin, BEGIN);
        view_do(&v, lines[i]);
        assert_int_equal(st->window.begin, BEGIN + 2 * EACH);
        assert_int_equal(st->window.end, BEGIN + 2 * EACH + 800);
        tide_trace_used fullest;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_trace_fullest(tide_subject_trace(v.a), 1, 2, &fullest, &err), &err);
        assert_int_equal(st->cursor, fullest.t_ns);
        assert_int_equal(st->cursor_event, fullest.event);
    }
    view_do(&v, "run warm");
    assert_int_equal(st->window.begin, BEGIN + EACH);
    view_do(&v, "run 4");
    assert_true(st->message_is_error);
    assert_text_has(view_message(&v), "has 4 executions");
    view_do(&v, "run fast");
    assert_true(st->message_is_error);
    view_close(&v);
    tmp_dir_remove(&d);
}

/// What is listed, found and counted is that of the one execution.
static void one_run_alone(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    const tide_tui_state *st = &v.app->st;
    view_do(&v, "filter size>0");
    const size_t all = v.app->scene.rows->n, beside = 1, each = (all - beside) / N;
    assert_int_equal(all, beside + N * each); // the buffer is its tensors
    for (size_t i = 0; i < N; i++) {
        char line[16], filter[16];
        snprintf(line, sizeof line, "run %zu", i);
        snprintf(filter, sizeof filter, "exec=%zu", i);
        view_do(&v, line);
        assert_int_equal(st->n_filters, 2);
        assert_string_equal(st->filters[0], filter);
        assert_int_equal(v.app->scene.rows->n, each + (i == 2 ? beside : 0));
        assert_int_equal(v.app->scene.rows->n_hidden, all - v.app->scene.rows->n);
        view_do(&v, "search beside");
        assert_int_equal(st->message_is_error, i != 2);
        if (i != 2) assert_text_has(view_message(&v), "hidden by filters");
    }
    view_keys(&v, "{");
    assert_string_equal(st->filters[0], "exec=2");
    assert_int_equal(st->window.begin, BEGIN + 2 * EACH);
    view_keys(&v, "}");
    assert_string_equal(st->filters[0], "exec=3");
    view_keys(&v, "}");
    assert_text_has(view_message(&v), "no execution begins after here");
    view_do(&v, "filter");
    assert_int_equal(st->n_filters, 1); // the one that was added last
    view_do(&v, "run all");
    assert_int_equal(st->n_filters, 0);
    assert_int_equal(v.app->scene.rows->n, all);
    view_do(&v, "goto exec:1");
    assert_int_equal(st->n_filters, 0);
    assert_int_equal(st->window.begin, BEGIN + EACH);
    view_close(&v);
    tmp_dir_remove(&d);
}

static void two_runs_are_compared(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    view_do(&v, "compare exec:1 exec:2");
    assert_int_equal(v.app->st.preset, TIDE_TUI_PRESET_COMPARISON);
    const tide_diff *diff = v.app->scene.diff;
    assert_non_null(diff);
    assert_int_equal(diff->b_bytes - diff->a_bytes, 64);  // 7 bytes, as they are held
    assert_int_equal(diff->n_added, 1 + diff->n_removed); // "beside"; each execution has tensors of its own
    view_do(&v, "compare cold warm");
    assert_text_has(view_message(&v), "A is execution 0 (800 ns), B is 1 (800 ns)");
    assert_int_equal(v.app->scene.diff->b_bytes, v.app->scene.diff->a_bytes);
    view_do(&v, "compare exec:1");
    assert_true(v.app->st.message_is_error);
    view_do(&v, "compare exec:1 exec:2 exec:3");
    assert_true(v.app->st.message_is_error);
    view_close(&v);
    view_open_small(&v, 120, 40);
    view_keys(&v, "}");
    assert_text_has(view_message(&v), "no executions are known here");
    view_do(&v, "run 1");
    assert_true(v.app->st.message_is_error);
    view_close(&v);
    tmp_dir_remove(&d);
}

static void line_of_runs(const view *v, char *buf, size_t buf_bytes) {
    const tide_tui_rect r = v->app->layout.runs;
    size_t n = 0;
    for (int x = r.x; x < r.x + r.w && n + 1 < buf_bytes; x++)
        buf[n++] = (char)tide_tui_get(&v->app->grid, x, r.y).glyph;
    buf[n] = 0;
}

static void the_line_says_what_runs(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    char line[256];
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_frame(v.app, &err), &err);
    line_of_runs(&v, line, sizeof line);
    for (int k = 0; k < N; k++) {
        char word[8];
        snprintf(word, sizeof word, "|#%d", k);
        assert_text_has(line, word);
    }
    view_do(&v, "run 3");
    assert_tide_ok(tide_tui_app_frame(v.app, &err), &err);
    line_of_runs(&v, line, sizeof line);
    assert_text_has(line, "|#3 conv");
    for (int i = 1; i < N_DEMO_STEPS; i++) assert_text_has(line, demo_steps[i]);
    view_close(&v);
    tmp_dir_remove(&d);
}

/// A step of an execution by number and by name, its begin and end, a share of the axis; rows of the operators' list
/// are steps of the execution that the cursor is in.
static void a_moment_of_a_run(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int64_t at;
    } moments[] = {{"goto exec:2:relu", BEGIN + 2 * EACH + 150},
                   {"goto exec:1:3", BEGIN + EACH + 350},
                   {"goto exec:3:begin", BEGIN + 3 * EACH},
                   {"goto exec:3:end", BEGIN + 3 * EACH + 800},
                   {"goto 100%", 6099},
                   {"goto exec:0:conv2", BEGIN + 250}};
    static const char *const errors[] = {"goto exec:2:nope", "goto exec:4:relu", "goto exec:2:9", "goto 101%"};
    view v;
    tmp_dir d;
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    const tide_tui_state *st = &v.app->st;
    view_do(&v, "view 4");
    const tide_tui_window whole = st->window;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        view_do(&v, moments[i].line);
        assert_int_equal(st->cursor, moments[i].at);
        assert_int_equal(st->window.begin, whole.begin);
    }
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        view_do(&v, errors[i]);
        assert_true(st->message_is_error);
        assert_int_equal(st->cursor, BEGIN + 250);
    }
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N_DEMO_STEPS; i++) {
            char line[32];
            snprintf(line, sizeof line, "goto exec:%d:%d", k, i);
            view_do(&v, line);
            assert_int_equal(st->pane_row[TIDE_TUI_PANE_OPERATORS], i);
        }
    for (int i = 0; i < 8 && st->focus != TIDE_TUI_PANE_OPERATORS; i++) view_key(&v, "Tab");
    view_key(&v, "Up");
    assert_int_equal(st->pane_row[TIDE_TUI_PANE_OPERATORS], N_DEMO_STEPS - 2);
    assert_int_equal(st->cursor, BEGIN + (N - 1) * EACH + 50 + 100 * (N_DEMO_STEPS - 2));
    view_close(&v);
    tmp_dir_remove(&d);
}

/// From change to change the cursor goes through the steps of every execution, in which tensors of the plan come and go
/// in one block; and back through the same moments.
static void changes_are_those_of_tensors(void **state) {
    (void)state;
    enum { MOST = 64 };
    view v;
    tmp_dir d;
    tide_error err = TIDE_ERROR_INIT;
    tide_moment there[MOST];
    size_t n = 0;
    tmp_dir_make(&d);
    record_runs(d.file);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    view_do(&v, "goto begin");
    for (tide_moment was = {-1, 0}; n < MOST && (was.t != v.app->st.cursor || was.event != v.app->st.cursor_event);) {
        was = tide_tui_now(&v.app->st);
        there[n++] = was;
        view_keys(&v, "]");
    }
    // The buffer, each step and what is left of it behind the last one, and what is taken and freed beside it.
    assert_int_equal(n, 1 + N * (N_DEMO_STEPS + 1) + 2 + 2);
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < N_DEMO_STEPS; i++) {
            size_t at = 0;
            while (at < n && there[at].t != BEGIN + EACH * k + 50 + 100 * i) at++;
            assert_true(at < n);
        }
    }
    for (size_t i = 1; i < n; i++) {
        tide_live_items a, b;
        assert_tide_ok(tide_subject_live(v.a, there[i - 1], &a, &err), &err);
        assert_tide_ok(tide_subject_live(v.a, there[i], &b, &err), &err);
        bool is_same = a.n == b.n;
        for (size_t j = 0; is_same && j < a.n; j++) is_same = strcmp(a.items[j].site.name, b.items[j].site.name) == 0;
        if (is_same) fail_msg("nothing changes from %d to %d", (int)there[i - 1].t, (int)there[i].t);
        tide_live_items_deinit(&a);
        tide_live_items_deinit(&b);
    }
    for (size_t i = n - 1; i-- > 1;) { // the first one is the begin of the axis
        view_keys(&v, "[");
        assert_int_equal(v.app->st.cursor, there[i].t);
    }
    view_close(&v);
    tmp_dir_remove(&d);
}

static void run_once(feeder *f, uint64_t t, uint32_t thread, int32_t index) {
    const tide_scope run = {.name = "m", .kind = TIDE_SCOPE_RUN, .index = index};
    const tide_scope op = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR, .index = 0, .parent = &run};
    f->thread = thread;
    f->scope = NULL;
    feed_scope(f, t, true, &run);
    feed_scope(f, t + 10, true, &op);
    feed_scope(f, t + 20, false, &op);
    feed_scope(f, t + 30, false, &run);
}

/// Two contexts: the second execution is the other one's first, so it is not warm.
static void warm_is_of_a_context(void **state) {
    (void)state;
    for (int n = 2; n < 4; n++) {
        view v;
        tmp_dir d;
        feeder f;
        tmp_dir_make(&d);
        feeder_open(&f, d.file, 64, false);
        const tide_run_info info = {.model = "m", .mode = "naive", .device = "cpu"};
        feed_begin_run(&f, 900, &info, NULL);
        for (int i = 0; i < n; i++) run_once(&f, 1000 + 100 * (uint64_t)i, i == 1 ? 2 : 1, i == 2);
        feed_end_run(&f, 2000);
        feeder_close(&f);
        view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
        view_do(&v, "run warm");
        assert_int_equal(v.app->st.message_is_error, n == 2);
        if (n == 2) assert_text_has(view_message(&v), "no context ran a second time");
        if (n == 3) assert_int_equal(v.app->st.window.begin, 1200);
        view_close(&v);
        tmp_dir_remove(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_moment_of_a_run),       tide_unit_test(warm_is_of_a_context),
        tide_unit_test(keys_go_from_run_to_run), tide_unit_test(one_run_fills_the_window),
        tide_unit_test(one_run_alone),           tide_unit_test(two_runs_are_compared),
        tide_unit_test(the_line_says_what_runs), tide_unit_test(changes_are_those_of_tensors),
    };
    return cmocka_run_group_tests_name("tui_runs", tests, NULL, NULL);
}
