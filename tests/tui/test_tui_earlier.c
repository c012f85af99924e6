// SPDX-License-Identifier: MIT
//
// While an answer is being made for the cursor's moment, panes show that of the moment before, under its own name: a
// question that waits for a gate keeps the thread busy, so that nothing is left to time.
#include <poll.h>
#include <pthread.h>

#include "tests/tui/view_fixture.h"
#include "tui/scene/query_cache.h"

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool is_open, was_reached;
} gate;

static void set_gate(gate *g, bool *what) {
    pthread_mutex_lock(&g->lock);
    *what = true;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

static void wait_gate(gate *g, const bool *what) {
    pthread_mutex_lock(&g->lock);
    while (!*what) pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static tide_status run_gate(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                            tide_error *err) {
    (void)a;
    (void)b;
    (void)progress;
    (void)err;
    gate *g = ctx;
    set_gate(g, &g->was_reached);
    wait_gate(g, &g->is_open);
    return TIDE_OK;
}

/// The thread has something to do until the gate is opened.
static void close_gate(tide_tui_app *app, gate *g) {
    const tide_tui_request job = {.slot = TIDE_TUI_MAX_REQUESTS - 1, .key = 1, .run = run_gate, .ctx = g};
    tide_error err = TIDE_ERROR_INIT;
    *g = (gate){.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    assert_tide_ok(tide_tui_worker_submit(app->worker, &job, &err), &err);
    wait_gate(g, &g->was_reached);
}

static void frame(tide_tui_app *app) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_frame(app, &err), &err);
}

static void settle(tide_tui_app *app) {
    frame(app);
    while (tide_tui_app_is_busy(app) || tide_tui_app_has_news(app)) {
        struct pollfd wake = {.fd = tide_tui_worker_wake_fd(app->worker), .events = POLLIN};
        if (tide_tui_app_is_busy(app)) assert_int_equal(poll(&wake, 1, 60000), 1);
        tide_tui_worker_drain_wake(app->worker);
        frame(app);
    }
}

static void has(const tide_tui_app *app, const char *words, bool wanted) {
    tide_text text = {0};
    tide_tui_grid_to_text(&app->grid, &text);
    if ((strstr(tide_text_str(&text), words) != NULL) != wanted)
        fail_msg("%s '%s' in\n%s", wanted ? "no" : "still", words, tide_text_str(&text));
    tide_text_deinit(&text);
}

static void open_aside(view *v, const char *lines) {
    tide_error err = TIDE_ERROR_INIT;
    view_open_small(v, 160, 48);
    tide_tui_app_close(v->app);
    assert_tide_ok(tide_tui_app_open(&v->session, &v->opt, 160, 48, true, &v->app, &err), &err);
    v->app->cache->always_async = true;
    (void)tide_tui_app_line(v->app, lines);
    settle(v->app);
    (void)tide_tui_app_line(v->app, "goto 2");
    settle(v->app);
}

static void the_moment_before_stays_until_the_next_is_there(void **state) {
    (void)state;
    view v;
    gate g;
    open_aside(&v, "view 3");
    tide_tui_app *app = v.app;
    assert_false(app->scene.is_earlier[TIDE_TUI_PANE_EXPLAIN]);
    has(app, "EXPLAIN: step 2 (Conv_2)", true);
    has(app, "table: live at step 2 (Conv_2)", true);
    close_gate(app, &g);
    (void)tide_tui_app_line(app, "goto 3");
    frame(app);
    // What is shown is what it says that it is of; the curve and the ruler are at the cursor already.
    assert_true(app->scene.is_earlier[TIDE_TUI_PANE_EXPLAIN]);
    assert_true(app->scene.is_earlier[TIDE_TUI_PANE_TABLE]);
    assert_int_equal(app->scene.live->at.t, 2);
    assert_int_equal(app->scene.explanation->at.t, 2);
    has(app, "EXPLAIN: step 2 (Conv_2)", true);
    has(app, "table: live at step 2 (Conv_2)", true);
    has(app, "waiting, 11 tensors", false); // the heading says it of the pane's own facts
    has(app, "waiting, ", true);
    // What is not the cursor's is not written to a file.
    (void)tide_tui_app_line(app, "export /tmp/never_written.csv");
    assert_true(app->st.message_is_error);
    assert_non_null(strstr(app->st.message, "still being made"));
    // Another move: what was asked for step 3 is dropped.
    (void)tide_tui_app_line(app, "goto 4");
    frame(app);
    assert_int_equal(app->scene.explanation->at.t, 2);
    set_gate(&g, &g.is_open);
    settle(app);
    assert_false(app->scene.is_earlier[TIDE_TUI_PANE_EXPLAIN]);
    assert_false(app->scene.is_earlier[TIDE_TUI_PANE_TABLE]);
    assert_int_equal(app->scene.live->at.t, 4);
    has(app, "EXPLAIN: step 4 (Conv_4)", true);
    has(app, "waiting", false);
    view_close(&v);
}

static void allocators_too(void **state) {
    (void)state;
    view v;
    gate g;
    open_aside(&v, "view 4");
    close_gate(v.app, &g);
    (void)tide_tui_app_line(v.app, "goto 5");
    frame(v.app);
    assert_true(v.app->scene.is_earlier[TIDE_TUI_PANE_POOLS]);
    assert_int_equal(v.app->scene.pools->at.t, 2);
    has(v.app, "POOLS: allocators at step 2", true);
    (void)tide_tui_app_line(v.app, "zoom-in"); // of another window it would say what is not so
    frame(v.app);
    assert_null(v.app->scene.pools);
    set_gate(&g, &g.is_open);
    settle(v.app);
    has(v.app, "POOLS: allocators at step 5", true);
    view_close(&v);
}

/// Texts of what was there before a trace grew may be gone: nothing of it is shown.
static void nothing_is_kept_of_a_subject_that_grew(void **state) {
    (void)state;
    view v;
    gate g;
    tide_error err = TIDE_ERROR_INIT;
    open_aside(&v, "view 3");
    close_gate(v.app, &g);
    assert_tide_ok(tide__query_a_grew(v.app->cache, &err), &err);
    frame(v.app);
    assert_null(v.app->scene.explanation);
    assert_null(v.app->scene.live);
    has(v.app, "Working: waiting", true);
    set_gate(&g, &g.is_open);
    settle(v.app);
    assert_non_null(v.app->scene.explanation);
    view_close(&v);
}

static bool has_taken_in(const tide_tui_app *app) {
    const tide__query_result *r = &app->cache->results[TIDE__QUERY_REFRESH];
    return r->is_there && r->status == TIDE_OK && r->key == app->cache->a_serial;
}

/// What was recorded is taken in by the thread's own subject though everything is cancelled, or B becomes another:
/// there may be no next time.
static void a_refresh_is_not_lost(void **state) {
    (void)state;
    for (int with_b = 0; with_b < 2; with_b++) {
        view v;
        gate g;
        tide_error err = TIDE_ERROR_INIT;
        open_aside(&v, "view 3");
        close_gate(v.app, &g);
        assert_tide_ok(tide__query_a_grew(v.app->cache, &err), &err);
        if (with_b)
            v.app->worker_b = v.app->st.a; // never B: the thread gets its subjects anew
        else
            tide__query_cancel_all(v.app->cache);
        frame(v.app);
        assert_false(has_taken_in(v.app));
        set_gate(&g, &g.is_open);
        settle(v.app);
        assert_true(has_taken_in(v.app));
        assert_non_null(v.app->scene.explanation);
        view_close(&v);
    }
}

/// A plan that comes between the taking of results and the scene of the same frame is news for the next one.
static void an_answer_that_the_scene_collects_is_taken(void **state) {
    (void)state;
    view v;
    gate g;
    tide_error err = TIDE_ERROR_INIT;
    open_aside(&v, "view 3");
    tide_tui_app *app = v.app;
    close_gate(app, &g);
    (void)tide_tui_app_line(app, "edit align 128");
    assert_true(tide_tui_app_is_busy(app));
    set_gate(&g, &g.is_open);
    while (tide_tui_worker_is_busy(app->worker, TIDE__QUERY_PLAN, app->plan_key)) {
        struct pollfd wake = {.fd = tide_tui_worker_wake_fd(app->worker), .events = POLLIN};
        assert_int_equal(poll(&wake, 1, 60000), 1);
        tide_tui_worker_drain_wake(app->worker);
    }
    assert_tide_ok(tide__query_collect(app->cache, &app->st, &err), &err); // as the scene does
    assert_true(tide_tui_app_is_busy(app));
    assert_true(tide_tui_app_has_news(app));
    settle(app);
    assert_true(app->st.b_is_whatif);
    assert_non_null(strstr(app->st.message, "planned anew"));
    view_close(&v);
}

/// A selection by the list waits for the list of the cursor.
static void the_selection_follows_the_list_that_belongs_to_it(void **state) {
    (void)state;
    view v;
    gate g;
    open_aside(&v, "view 3");
    (void)tide_tui_app_line(v.app, "goto pool3_out"); // selects it, where it is born
    settle(v.app);
    (void)tide_tui_app_line(v.app, "goto 2");
    settle(v.app);
    close_gate(v.app, &g);
    (void)tide_tui_app_line(v.app, "goto 4");
    frame(v.app);
    assert_true(v.app->scene.is_earlier[TIDE_TUI_PANE_TABLE]);
    set_gate(&g, &g.is_open);
    settle(v.app);
    const size_t row = tide_tui_pane_row(&v.app->scene, TIDE_TUI_PANE_TABLE);
    assert_string_equal(v.app->scene.live->items[row].site.name, "pool3_out");
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_moment_before_stays_until_the_next_is_there),
        tide_unit_test(allocators_too),
        tide_unit_test(an_answer_that_the_scene_collects_is_taken),
        tide_unit_test(nothing_is_kept_of_a_subject_that_grew),
        tide_unit_test(a_refresh_is_not_lost),
        tide_unit_test(the_selection_follows_the_list_that_belongs_to_it),
    };
    return cmocka_run_group_tests_name("tui_earlier", tests, NULL, NULL);
}
