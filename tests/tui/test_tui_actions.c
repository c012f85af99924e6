// SPDX-License-Identifier: MIT
//
// What keys do: cursor and window of time, marks, ranges, edits, the way back. Rows and panes: test_tui_actions_rows.c.
#include "tests/tui/view_fixture.h"

/// Column of the screen that a time lies in.
static int column_of(const view *v, int64_t t) {
    return tide_tui_column_of(v->app->st.window, v->app->layout.panes[TIDE_TUI_PANE_CURVE].w, t);
}

// ---- time ----

static void begins_at_the_peak_with_everything_in_view(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 80, 24);
    const tide_tui_state *st = &v.app->st;
    assert_int_equal(st->cursor, 2);
    assert_int_equal(st->window.begin, 0);
    assert_int_equal(st->window.end, 8);
    assert_int_equal(st->preset, TIDE_TUI_PRESET_LIFETIMES);
    assert_int_equal(v.app->scene.cursor_bytes, 196608 + 262144 + 32768 + 65536 + 3072);
    view_close(&v);
}

static void zoom_keeps_the_column_of_the_cursor(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        view v;
        view_open(&v, subject_of_plan(random_plan(seed, 300, 5000)), NULL, 120, 40);
        tide_tui_state *st = &v.app->st;
        tide_rng rng = {seed};
        for (int i = 0; i < 200; i++) {
            const int n = v.app->layout.panes[TIDE_TUI_PANE_CURVE].w;
            st->cursor = st->window.begin + (int64_t)tide_rng_below(&rng, tide_tui_window_span(st->window));
            const tide_tui_window was = st->window;
            const int x = column_of(&v, st->cursor);
            const int64_t cursor = st->cursor;
            const bool in = tide_rng_below(&rng, 2) == 0;
            view_keys(&v, in ? "+" : "-");
            assert_int_equal(st->cursor, cursor);
            const uint64_t span = tide_tui_window_span(st->window);
            const bool at_edge = st->window.begin == 0 || st->window.end == 5000;
            if (!at_edge && span >= (uint64_t)n) assert_int_equal(column_of(&v, cursor), x);
            if (in) assert_int_equal(span, (tide_tui_window_span(was) + 1) / 2);
            if (!in && !at_edge) assert_int_equal(span, tide_tui_window_span(was) * 2);
        }
        view_close(&v);
    }
}

static void left_and_right_move_by_a_column_and_push_the_window(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(3, 200, 5000)), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    const int n = v.app->layout.panes[TIDE_TUI_PANE_CURVE].w;
    st->window = (tide_tui_window){1000, 2000};
    st->cursor = 1000;
    for (int x = 1; x < n; x++) {
        view_keys(&v, "l");
        assert_int_equal(column_of(&v, st->cursor), x);
        assert_int_equal(st->window.begin, 1000);
    }
    view_keys(&v, "l");
    assert_true(st->window.begin > 1000 && st->window.begin < 1020);
    assert_int_equal(tide_tui_window_span(st->window), 1000);
    assert_int_equal(column_of(&v, st->cursor), n - 1);
    for (int i = 0; i < 10000 && st->cursor > 0; i++) view_keys(&v, "h");
    assert_int_equal(st->cursor, 0);
    assert_int_equal(st->window.begin, 0);
    view_keys(&v, "h");
    assert_int_equal(st->cursor, 0);
    view_close(&v);
}

static void pan_moves_window_and_cursor_by_half(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(3, 200, 5000)), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    st->window = (tide_tui_window){1000, 2000};
    st->cursor = 1300;
    view_keys(&v, "L");
    assert_int_equal(st->window.begin, 1500);
    assert_int_equal(st->cursor, 1800);
    view_keys(&v, "HH");
    assert_int_equal(st->window.begin, 500);
    assert_int_equal(st->cursor, 800);
    view_keys(&v, "HHHH");
    assert_int_equal(st->window.begin, 0);
    assert_int_equal(tide_tui_window_span(st->window), 1000);
    view_keys(&v, "0");
    assert_int_equal(tide_tui_window_span(st->window), 5000);
    view_close(&v);
}

static void fit_goes_there_and_back(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "goto pool3_out"); // lives [3, 6)
    assert_string_equal(view_selected(&v), "pool3_out");
    view_keys(&v, "f");
    assert_int_equal(st->window.begin, 2);
    assert_int_equal(st->window.end, 7);
    view_keys(&v, "f");
    assert_int_equal(st->window.begin, 0);
    assert_int_equal(st->window.end, 8);
    view_do(&v, "range 5 6");
    view_keys(&v, "f"); // the range counts more than the selection
    assert_int_equal(st->window.begin, 4);
    assert_int_equal(st->window.end, 7);
    assert_true(st->cursor >= 4 && st->cursor < 7);
    view_close(&v);
}

static void jumps_to_peaks_and_changes(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "goto 0");
    assert_int_equal(st->cursor, 0);
    view_keys(&v, "]");
    assert_int_equal(st->cursor, 1);
    view_keys(&v, "[");
    assert_int_equal(st->cursor, 0);
    view_keys(&v, "[");
    assert_text_has(view_message(&v), "nothing changes before");
    view_keys(&v, "G");
    view_do(&v, "goto end");
    assert_int_equal(st->cursor, 7);
    view_keys(&v, "^");
    assert_int_equal(st->cursor, 2);
    view_do(&v, "goto end");
    view_keys(&v, "P");
    assert_int_equal(st->cursor, 5);
    view_keys(&v, "p");
    assert_int_equal(st->cursor, 2);
    assert_text_has(view_message(&v), "highest");
    view_keys(&v, "p");
    assert_int_equal(st->cursor, 5);
    assert_string_equal(view_message(&v), "");
    view_close(&v);
}

/// Peaks are those of the curve that is drawn: with weights folded away a moment at which most of them are there is
/// none.
static void peaks_are_those_of_the_curve(void **state) {
    (void)state;
    view v;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 64, false);
    const tide_run_info info = {.model = "demo", .mode = "naive", .strategy = "", .device = "cpu"};
    feed_begin_run(&f, 900, &info, NULL);
    static const struct {
        uint64_t t, bytes;
        tide_memory_kind kind;
    } blocks[] = {
        {2000, 300, TIDE_KIND_WORKSPACE}, {4000, 5000, TIDE_KIND_PERSISTENT}, {6000, 700, TIDE_KIND_WORKSPACE}};
    for (uint64_t i = 0; i < 3; i++) {
        feed(&f, blocks[i].t, TIDE_MEM_ALLOC, i + 1, blocks[i].kind, blocks[i].bytes, "block");
        feed_free(&f, blocks[i].t + 500, i + 1, blocks[i].kind, blocks[i].bytes, "block");
    }
    feed_end_run(&f, 8900);
    feeder_close(&f);
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    for (int folded = 0; folded < 2; folded++) {
        st->folds_weights = folded != 0;
        static const int64_t rising[2][3] = {{2000, 4000, 6000}, {2000, 6000, 6000}};
        view_do(&v, "goto begin");
        for (int i = 0; i < 3 - folded; i++) {
            view_keys(&v, "p");
            assert_int_equal(st->cursor, rising[folded][i]);
        }
        view_do(&v, "goto begin");
        view_keys(&v, "^");
        assert_int_equal(st->cursor, folded != 0 ? 6000 : 4000);
        assert_int_equal(v.app->scene.cursor_bytes, folded != 0 ? 700 : 5000);
    }
    view_close(&v);
    tmp_dir_remove(&d);
}

// ---- ranges, marks, moments ----

static void a_range_follows_the_cursor(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "goto 3");
    view_keys(&v, "v");
    assert_true(st->shows_range);
    view_do(&v, "goto 5");
    assert_int_equal(st->range_begin, 3);
    assert_int_equal(st->range_end, 6);
    assert_true(v.app->scene.range.known);
    view_do(&v, "goto 1");
    assert_int_equal(st->range_begin, 1);
    assert_int_equal(st->range_end, 4);
    view_keys(&v, "v");
    assert_false(st->shows_range);
    view_do(&v, "range 2 5");
    assert_int_equal(st->range_end, 5);
    view_do(&v, "goto 7");
    assert_int_equal(st->range_end, 5); // this one stays
    view_key(&v, "Esc");
    assert_false(st->shows_range);
    view_do(&v, "range 2");
    assert_true(st->message_is_error);
    assert_false(st->shows_range);
    view_close(&v);
}

static void marks_are_kept_and_jumped_to(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "goto 3");
    view_keys(&v, "mwarm up");
    assert_int_equal(st->prompt, TIDE_TUI_PROMPT_NOTE);
    view_key(&v, "Enter");
    assert_int_equal(st->n_marks, 1);
    assert_int_equal(st->marks[0].name, 'a');
    assert_string_equal(st->marks[0].text, "warm up");
    view_do(&v, "goto 6");
    view_do(&v, "mark z the end");
    assert_int_equal(st->n_marks, 2);
    view_do(&v, "goto 0");
    view_keys(&v, "'");
    assert_int_equal(st->cursor, 3);
    view_keys(&v, "'");
    assert_int_equal(st->cursor, 6);
    view_keys(&v, "'"); // round
    assert_int_equal(st->cursor, 3);
    view_do(&v, "jump z");
    assert_int_equal(st->cursor, 6);
    assert_text_has(view_message(&v), "the end");
    view_do(&v, "goto 1");
    view_do(&v, "mark z");
    assert_int_equal(st->n_marks, 2); // it has moved
    view_do(&v, "jump q");
    assert_true(st->message_is_error);
    for (int i = 0; i < 30; i++) view_do(&v, "mark");
    assert_int_equal(st->n_marks, 26);
    assert_true(st->message_is_error);
    char text[200];
    memset(text, 0, sizeof text);
    for (int i = 0; i < 40; i++) strncat(text, "\xC3\xA9", sizeof text - strlen(text) - 1); // 80 bytes for 63
    view_do(&v, "reset");
    assert_int_equal(st->n_marks, 0);
    view_keys(&v, "m");
    for (int i = 0; i < 40; i++) (void)tide_tui_app_key(v.app, 0xE9);
    view_key(&v, "Enter");
    assert_int_equal(strlen(st->marks[0].text), 62); // whole characters
    assert_memory_equal(st->marks[0].text, text, 62);
    view_close(&v);
}

static void two_moments_are_compared(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "5");
    assert_text_has(view_message(&v), "no B yet");
    view_do(&v, "goto 2");
    view_keys(&v, "A");
    assert_null(st->b);
    view_do(&v, "goto 5");
    view_keys(&v, "B");
    assert_true(st->compares_moments);
    assert_ptr_equal(st->b, st->a);
    assert_non_null(v.app->scene.diff);
    assert_int_equal(v.app->scene.diff->a_at.t, 2);
    assert_int_equal(v.app->scene.diff->b_at.t, 5);
    view_key(&v, "Esc");
    assert_false(st->compares_moments);
    assert_null(st->b);
    view_close(&v);
}

// ---- edits ----

static void edits_make_a_plan_and_are_taken_back(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "u");
    assert_text_has(view_message(&v), "no edit");
    view_keys(&v, "E");
    assert_string_equal(st->text, "edit ");
    view_keys(&v, "gone conv2_out");
    assert_true((view_key(&v, "Enter") & TIDE_TUI_EFFECT) != 0);
    assert_int_equal(st->n_edits, 1);
    assert_non_null(st->b);
    assert_true(st->b_is_whatif);
    assert_int_equal(tide_subject_get_facts(st->b)->peak_bytes, 196608 * 2 + 65536 + 3072);
    view_keys(&v, "u");
    assert_int_equal(st->n_edits, 0);
    view_do(&v, "edit gonne x");
    assert_true(st->message_is_error);
    assert_int_equal(st->n_edits, 0);
    view_keys(&v, "3");
    assert_true(v.app->scene.n_advice > 0);
    view_keys(&v, "!");
    assert_int_equal(st->n_edits, 1);
    view_close(&v);
}

// ---- overlays, prompts, the way back ----

static void overlays_scroll_and_close(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 80, 24);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "?");
    assert_int_equal(st->overlay, TIDE_TUI_OVERLAY_HELP);
    view_keys(&v, "jj");
    assert_int_equal(st->overlay_top, 2);
    view_key(&v, "End");
    const int last = st->overlay_top;
    assert_true(last > 2);
    view_keys(&v, "j");
    assert_int_equal(st->overlay_top, last);
    const int64_t cursor = st->cursor;
    view_keys(&v, "l"); // means nothing here
    assert_int_equal(st->cursor, cursor);
    assert_int_equal(view_key(&v, "q") & TIDE_TUI_LEAVE, 0);
    assert_int_equal(st->overlay, TIDE_TUI_OVERLAY_NONE);
    view_key(&v, "F2");
    assert_int_equal(st->overlay, TIDE_TUI_OVERLAY_SETUP);
    while (st->overlay_row != TIDE_TUI_SETTING_REVERSE) view_keys(&v, "j");
    view_key(&v, "Space");
    assert_true(st->reverse);
    assert_true((view_key(&v, "Esc") & TIDE_TUI_EFFECT) != 0); // saved
    assert_int_equal(st->overlay, TIDE_TUI_OVERLAY_NONE);
    view_keys(&v, "v");
    assert_int_equal(view_key(&v, "q") & TIDE_TUI_LEAVE, 0);
    assert_false(st->shows_range);
    assert_int_not_equal(view_key(&v, "q") & TIDE_TUI_LEAVE, 0);
    view_close(&v);
}

static void lines_can_be_edited(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 80, 24);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, ":sort siez");
    view_key(&v, "Bksp");
    view_key(&v, "Bksp");
    view_keys(&v, "ze");
    assert_string_equal(st->text, "sort size");
    view_key(&v, "Home");
    view_key(&v, "Right");
    view_keys(&v, "X");
    assert_string_equal(st->text, "sXort size");
    view_key(&v, "Left");
    view_key(&v, "Del");
    assert_string_equal(st->text, "sort size");
    view_key(&v, "End");
    (void)tide_tui_app_key(v.app, 0xE9);
    assert_string_equal(st->text, "sort size\xC3\xA9");
    view_key(&v, "Bksp"); // the whole character
    assert_string_equal(st->text, "sort size");
    view_key(&v, "^W");
    assert_string_equal(st->text, "sort ");
    view_key(&v, "^U");
    assert_string_equal(st->text, "");
    view_keys(&v, "sort size");
    view_key(&v, "Enter");
    assert_int_equal(st->sort, TIDE_ROW_SORT_SIZE);
    view_keys(&v, ":reverse");
    view_key(&v, "Enter");
    view_keys(&v, ":");
    view_key(&v, "Up");
    assert_string_equal(st->text, "reverse");
    view_key(&v, "Up");
    assert_string_equal(st->text, "sort size");
    view_key(&v, "Down");
    view_key(&v, "Down");
    assert_string_equal(st->text, "");
    view_key(&v, "Esc");
    assert_int_equal(st->prompt, TIDE_TUI_PROMPT_NONE);
    view_keys(&v, ":");
    for (int i = 0; i < TIDE_TUI_MAX_PROMPT + 50; i++) (void)tide_tui_app_key(v.app, 'x');
    assert_int_equal(strlen(st->text), TIDE_TUI_MAX_PROMPT - 1);
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_those_of_the_curve),
        cmocka_unit_test(begins_at_the_peak_with_everything_in_view),
        cmocka_unit_test(zoom_keeps_the_column_of_the_cursor),
        cmocka_unit_test(left_and_right_move_by_a_column_and_push_the_window),
        cmocka_unit_test(pan_moves_window_and_cursor_by_half),
        cmocka_unit_test(fit_goes_there_and_back),
        cmocka_unit_test(jumps_to_peaks_and_changes),
        cmocka_unit_test(a_range_follows_the_cursor),
        cmocka_unit_test(marks_are_kept_and_jumped_to),
        cmocka_unit_test(two_moments_are_compared),
        cmocka_unit_test(edits_make_a_plan_and_are_taken_back),
        cmocka_unit_test(overlays_scroll_and_close),
        cmocka_unit_test(lines_can_be_edited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
