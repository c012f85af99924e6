// SPDX-License-Identifier: MIT
//
// Scenes: what is asked aside is what would be asked at once, selection and scrolling are settled, caches hold what
// they say they hold, a recording grows under the view, and no failed allocation is more than a failed frame.
#include <poll.h>

#include "tests/tui/view_fixture.h"
#include "tui/scene/query_cache.h"

enum { TIMEOUT_MS = 20000 };

static void frame(tide_tui_app *app) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_frame(app, &err), &err);
}

/// Until nothing is being done aside.
static void settle(tide_tui_app *app) {
    frame(app);
    while (tide_tui_app_is_busy(app)) {
        struct pollfd fd = {.fd = tide_tui_worker_wake_fd(app->worker), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, TIMEOUT_MS), 1);
        tide_tui_worker_drain_wake(app->worker);
        frame(app);
    }
}

// ---- aside and at once ----

static const char keys_of_a_walk[] = "lhjk+-HL0fopPnN,.[]12345iretvAB@/s\t=GgTwsad \033";

/// Drives both with the same keys; their frames are the same whenever the worker has come to rest.
static void walk_both(tide_subject *a, tide_subject *b, uint64_t seed, int n_keys) {
    const tide_tui_session session = {.a = a};
    const tide_tui_session other = {.a = b};
    const tide_tui_options opt = {.glyphs = TIDE_TUI_GLYPHS_ASCII};
    tide_tui_app *now, *aside;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_open(&session, &opt, 100, 32, false, &now, &err), &err);
    assert_tide_ok(tide_tui_app_open(&other, &opt, 100, 32, true, &aside, &err), &err);
    aside->cache->always_async = true;
    tide_rng rng = {seed};
    for (int i = 0; i < n_keys; i++) {
        const uint32_t key = (unsigned char)keys_of_a_walk[tide_rng_below(&rng, sizeof keys_of_a_walk - 1)];
        frame(now);
        settle(aside);
        tide_text want = {0}, got = {0};
        tide_tui_grid_to_text(&now->grid, &want);
        tide_tui_grid_to_text(&aside->grid, &got);
        if (strcmp(tide_text_str(&want), tide_text_str(&got)) != 0)
            fail_msg("after %d keys at once:\n%s\naside:\n%s", i, tide_text_str(&want), tide_text_str(&got));
        tide_text_deinit(&want);
        tide_text_deinit(&got);
        (void)tide_tui_app_key(now, key);
        (void)tide_tui_app_key(aside, key);
    }
    tide_tui_app_close(now);
    tide_tui_app_close(aside);
}

static void aside_shows_what_at_once_shows(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(random_plan(5, 120, 20)), *b = subject_of_plan(random_plan(5, 120, 20));
    walk_both(a, b, 1, 150);
    tide_subject_destroy(a);
    tide_subject_destroy(b);
    tmp_dir dir;
    tmp_dir_make(&dir);
    char path[512];
    snprintf(path, sizeof path, "%s/t.db", dir.path);
    demo_record(path, 64);
    for (int64_t run = 0; run <= 2; run++) {
        a = subject_of_trace(path, run);
        b = subject_of_trace(path, run);
        walk_both(a, b, 10 + (uint64_t)run, 80);
        tide_subject_destroy(a);
        tide_subject_destroy(b);
    }
    tmp_dir_remove(&dir);
}

/// Keys that do not wait for the worker: whatever comes late must not show, and nothing may be lost or used twice.
static void keys_faster_than_the_worker(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(random_plan(6, 300, 40));
    const tide_tui_session session = {.a = a};
    tide_tui_app *app;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_open(&session, NULL, 120, 40, true, &app, &err), &err);
    app->cache->always_async = true;
    tide_rng rng = {3};
    for (int i = 0; i < 400; i++) {
        (void)tide_tui_app_key(app, (unsigned char)keys_of_a_walk[tide_rng_below(&rng, sizeof keys_of_a_walk - 1)]);
        if (tide_rng_below(&rng, 16) == 0) (void)tide_tui_app_line(app, "edit align 128");
        if (tide_rng_below(&rng, 16) == 0) (void)tide_tui_app_line(app, "undo");
        if (tide_rng_below(&rng, 3) == 0) frame(app);
    }
    settle(app);
    tide_tui_app_close(app);
    tide_subject_destroy(a);
}

// ---- selection and scrolling ----

static size_t row_of_selection(const view *v) { return tide_rows_find(v->app->scene.rows, v->app->st.item); }

static void the_selection_survives_other_rows(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(7, 200, 30)), NULL, 100, 30);
    view_keys(&v, "jjjjjjjjj");
    const uint32_t item = v.app->st.item;
    assert_int_not_equal(item, TIDE_NO_ITEM);
    static const char *const changes[] = {"sort size", "sort name", "set reverse on", "sort life", "set reverse off"};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        view_do(&v, changes[i]);
        assert_int_equal(v.app->st.item, item);
        assert_int_equal(v.app->st.row, row_of_selection(&v));
        const int h = v.app->layout.bars.h;
        assert_in_range(v.app->st.row, v.app->st.top, v.app->st.top + (size_t)h - 1);
    }
    // A filter that hides it: another row is selected, and what is selected is in it.
    char line[128];
    const tide_items *items = tide_subject_items(v.a);
    snprintf(line, sizeof line, "filter !name~^%s$", tide_items_site(items, item)->name);
    view_do(&v, line);
    assert_int_not_equal(v.app->st.item, item);
    assert_int_equal(v.app->st.row, row_of_selection(&v));
    view_close(&v);
}

static void an_item_chosen_elsewhere_stays_chosen_where_it_is_hidden(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(8, 60, 30)), NULL, 100, 30);
    view_do(&v, "filter top=5");
    uint32_t hidden = 0;
    while (tide_rows_find(v.app->scene.rows, hidden) != SIZE_MAX) hidden++;
    v.app->st.item = hidden;
    view_look(&v);
    assert_int_equal(v.app->st.item, hidden);
    assert_true(v.app->scene.has_selection);
    view_keys(&v, "j");
    assert_int_not_equal(v.app->st.item, hidden);
    assert_int_equal(v.app->st.row, row_of_selection(&v));
    view_close(&v);
}

static void scrolling_keeps_the_selection_on_the_screen(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(9, 200, 30)), NULL, 100, 30);
    tide_rng rng = {4};
    for (int i = 0; i < 300; i++) {
        tide_tui_state *st = &v.app->st;
        const uint64_t what = tide_rng_below(&rng, 4);
        if (what == 0) st->top = tide_rng_below(&rng, 250); // the wheel
        if (what == 1) st->row = tide_rng_below(&rng, 250);
        if (what == 2) view_keys(&v, tide_rng_below(&rng, 2) == 0 ? "j" : "k");
        if (what == 3) {
            tide_error err = TIDE_ERROR_INIT;
            const int h = 20 + (int)tide_rng_below(&rng, 30);
            assert_tide_ok(tide_tui_app_resize(v.app, 100, h, &err), &err);
        }
        view_look(&v);
        const size_t h = (size_t)v.app->layout.bars.h, n = view_rows(&v);
        assert_in_range(st->row, 0, n - 1);
        assert_in_range(st->row, st->top, st->top + h - 1);
        assert_true(n <= h ? st->top == 0 : st->top <= n - h);
        assert_int_equal(st->row, row_of_selection(&v));
    }
    view_close(&v);
}

// ---- what a range holds, who reads a tensor ----

static void a_range_counts_what_a_plain_walk_counts(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(11, 300, 40)), NULL, 100, 30);
    const tide_lifetimes *lt = &tide_subject_get_facts(v.a)->plan->lifetimes;
    tide_rng rng = {5};
    for (int i = 0; i < 60; i++) {
        tide_tui_state *st = &v.app->st;
        st->shows_range = true;
        st->range_begin = (int64_t)tide_rng_below(&rng, 40);
        st->range_end = st->range_begin + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(40 - st->range_begin));
        view_look(&v);
        tide_tui_range_facts want = {.known = true};
        for (size_t k = 0; k < lt->n; k++) {
            const tide_lifetime *l = &lt->items[k];
            const uint64_t bytes = l->alias == TIDE_ALIAS_NONE ? l->size_bytes : 0;
            const bool born = l->begin_step >= st->range_begin && l->begin_step < st->range_end;
            const bool dies = l->end_step >= st->range_begin && l->end_step < st->range_end;
            want.n_allocs += born;
            want.n_frees += dies;
            want.n_left += born && !dies;
            want.alloc_bytes += born ? bytes : 0;
            want.free_bytes += dies ? bytes : 0;
            want.left_bytes += born && !dies ? bytes : 0;
        }
        const tide_tui_range_facts *got = &v.app->scene.range;
        assert_true(got->known);
        assert_int_equal(got->n_allocs, want.n_allocs);
        assert_int_equal(got->n_frees, want.n_frees);
        assert_int_equal(got->n_left, want.n_left);
        assert_int_equal(got->alloc_bytes, want.alloc_bytes);
        assert_int_equal(got->free_bytes, want.free_bytes);
        assert_int_equal(got->left_bytes, want.left_bytes);
        assert_true(got->peak_bytes >= got->begin_bytes && got->peak_bytes >= got->end_bytes);
    }
    view_close(&v);
}

static void select_by_name(view *v, const char *name) {
    const tide_items *items = tide_subject_items(v->a);
    for (uint32_t i = 0; i < items->n; i++) {
        if (strcmp(tide_items_site(items, i)->name, name) == 0) v->app->st.item = i;
    }
    view_look(v);
    assert_string_equal(view_selected(v), name);
}

static void why_a_tensor_is_alive_is_said(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    static const struct {
        int64_t cursor;
        const char *name, *why, *readers;
    } rows[] = {
        {0, "conv0_out", "alive: step 1 Relu_1 still reads it", "Relu_1"},
        {1, "conv0_out", "alive: this step reads it last", "Relu_1"},
        {2, "conv0_out", "dead: step 1 Relu_1 read it last", "Relu_1"},
        {0, "conv2_out", "not made yet: step 2 Conv_2 makes it", "MaxPool_3"},
        {2, "conv2.scratch", "alive in this step alone: not read later", ""},
        {3, "weights", "weight: there for the whole run", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        v.app->st.cursor = rows[i].cursor;
        select_by_name(&v, rows[i].name);
        assert_string_equal(v.app->scene.why, rows[i].why);
        assert_string_equal(v.app->scene.consumers, rows[i].readers);
    }
    view_close(&v);
}

static void who_had_the_place_before_shares_a_byte(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(12, 200, 30)), NULL, 120, 40);
    const tide_items *items = tide_subject_items(v.a);
    size_t n_before = 0, n_after = 0;
    for (uint32_t i = 0; i < items->n; i++) {
        v.app->st.item = i;
        view_look(&v);
        const uint32_t pair[2] = {v.app->scene.before, v.app->scene.after};
        for (int side = 0; side < 2; side++) {
            const uint32_t k = pair[side];
            if (k == TIDE_NO_ITEM) continue;
            n_before += side == 0;
            n_after += side == 1;
            const uint64_t lo = items->place[k], hi = lo + tide_items_shape(items, k)->reserved_bytes;
            assert_true(lo < items->place[i] + tide_items_shape(items, i)->reserved_bytes && items->place[i] < hi);
            assert_true(side == 0 ? tide_items_end(items, k) <= tide_items_begin(items, i)
                                  : tide_items_begin(items, k) >= tide_items_end(items, i));
        }
    }
    assert_true(n_before > 20 && n_after > 20);
    view_close(&v);
}

// ---- a recording ----

static void record_some(feeder *f, uint64_t from, uint64_t n) {
    for (uint64_t i = from; i < from + n; i++) {
        char tag[16];
        snprintf(tag, sizeof tag, "t%u", (unsigned)(i % 7));
        feed(f, 1000 + 10 * i, TIDE_MEM_ALLOC, i + 1, TIDE_KIND_WORKSPACE, 64 * (1 + i % 5), tag);
        if (i % 3 == 2) feed_free(f, 1000 + 10 * i + 5, i, TIDE_KIND_WORKSPACE, 64 * (1 + (i - 1) % 5), "");
    }
}

/// Until the view has taken in what was recorded: the drain commits when it likes.
static void until_blocks(tide_tui_app *app, uint64_t n) {
    for (int i = 0; tide_subject_get_facts(app->st.a)->n_events < n + 2 * (n / 3); i++) {
        assert_in_range(i, 0, 100000000);
        (void)tide_tui_app_refresh(app);
    }
    settle(app);
}

static void a_recording_grows_under_the_view(bool aside) {
    tmp_dir dir;
    tmp_dir_make(&dir);
    char path[512];
    snprintf(path, sizeof path, "%s/t.db", dir.path);
    feeder f;
    feeder_open(&f, path, 8, false);
    record_some(&f, 0, 40);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    tide_subject *a = subject_of_trace(path, 0);
    const tide_tui_session session = {.a = a};
    const tide_tui_options opt = {.follow = true};
    tide_tui_app *app;
    assert_tide_ok(tide_tui_app_open(&session, &opt, 100, 30, aside, &app, &err), &err);
    settle(app);
    assert_true(app->st.is_recording && app->st.follows);
    until_blocks(app, 40);
    assert_int_equal(app->scene.rows->n_members, 40);
    for (int i = 0; i < 5; i++) (void)tide_tui_app_key(app, 'j'), frame(app);
    const uint64_t id = tide_items_id(tide_subject_items(a), app->st.item);

    record_some(&f, 40, 60);
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    until_blocks(app, 100);
    assert_int_equal(app->scene.rows->n_members, 100);
    assert_int_equal(tide_items_id(tide_subject_items(a), app->st.item), id); // the same block
    const tide_subject_facts *facts = tide_subject_get_facts(a);
    assert_int_equal(app->st.window.end, facts->end); // the whole stays the whole
    assert_int_equal(app->st.cursor, facts->end - 1);

    (void)tide_tui_app_line(app, "pause");
    const tide_tui_window held = app->st.window;
    record_some(&f, 100, 50);
    assert_tide_ok(tide_recorder_flush(f.rec, &err), &err);
    until_blocks(app, 150);
    assert_int_equal(app->st.window.end, held.end);
    assert_int_equal(app->scene.rows->n_members, 100); // held
    (void)tide_tui_app_line(app, "pause");
    (void)tide_tui_app_refresh(app);
    settle(app);
    assert_int_equal(app->scene.rows->n_members, 150); // nothing that came meanwhile is lost
    assert_int_equal(app->st.window.end, tide_subject_get_facts(a)->end);

    feeder_close(&f);
    for (int i = 0; app->st.is_recording; i++) {
        assert_in_range(i, 0, 100000000);
        (void)tide_tui_app_refresh(app);
    }
    settle(app);
    assert_int_equal(app->scene.rows->n_members, 150);
    tide_tui_app_close(app);
    tide_subject_destroy(a);
    tmp_dir_remove(&dir);
}

static void a_recording_grows_aside(void **state) {
    (void)state;
    a_recording_grows_under_the_view(true);
}

static void a_recording_grows_at_once(void **state) {
    (void)state;
    a_recording_grows_under_the_view(false);
}

// ---- no memory ----

enum { GOOD_IN_A_ROW = 20 };

/// Fails the n-th allocation of a whole session, for each n until it no longer fails.
static void any_allocation_may_fail(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(small_plan(262144));
    const tide_tui_session session = {.a = a};
    const tide_tui_options opt = {.commands = "view 2\nview 3\nview 4\nfilter size>1\nsearch conv\nview 1"};
    int64_t n = 0;
    // One failure may do no harm: memory that was to be made smaller and stays as it is.
    for (int n_good = 0; n_good < GOOD_IN_A_ROW; n++) {
        assert_in_range(n, 0, 200000);
        tide_text out = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        const tide_status st = tide_tui_once(&session, &opt, 100, 30, &out, &err);
        n_good = st == TIDE_OK && out.len > 3000 ? n_good + 1 : 0;
        tide_host_fail_after(-1);
        if (st != TIDE_OK && st != TIDE_ERR_NOMEM && st != TIDE_ERR_INVALID) fail_msg("%d: %s", (int)st, err.msg);
        tide_text_deinit(&out);
    }
    assert_true(n > 50 + GOOD_IN_A_ROW);
    tide_subject_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(aside_shows_what_at_once_shows),
        tide_unit_test(keys_faster_than_the_worker),
        tide_unit_test(the_selection_survives_other_rows),
        tide_unit_test(an_item_chosen_elsewhere_stays_chosen_where_it_is_hidden),
        tide_unit_test(scrolling_keeps_the_selection_on_the_screen),
        tide_unit_test(a_range_counts_what_a_plain_walk_counts),
        tide_unit_test(why_a_tensor_is_alive_is_said),
        tide_unit_test(who_had_the_place_before_shares_a_byte),
        tide_unit_test(a_recording_grows_aside),
        tide_unit_test(a_recording_grows_at_once),
        tide_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("tui_scene", tests, NULL, NULL);
}
