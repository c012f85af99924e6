// SPDX-License-Identifier: MIT
//
// The state by itself: where it begins, what settling makes of windows and cursors, settings in words, lists that
// follow.
#include "tests/tui/view_fixture.h"

static void begins_at_the_peak(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st;
    memset(&st, 0xAB, sizeof st);
    tide_tui_state_init(&st, a, NULL);
    assert_ptr_equal(st.a, a);
    assert_null(st.b);
    assert_int_equal(st.window.begin, 0);
    assert_int_equal(st.window.end, 8);
    assert_int_equal(tide_tui_now(&st).t, 2);
    assert_int_equal(st.item, TIDE_NO_ITEM);
    assert_int_equal(st.curve_kind, -1);
    assert_int_equal(st.n_filters, 0);
    assert_string_equal(st.message, "");
    assert_true(st.mouse);
    assert_false(st.is_recording);
    tide_subject_destroy(a);
}

static void settling_keeps_everything_inside(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(random_plan(3, 50, 1000));
    tide_tui_state st;
    tide_rng rng = {17};
    tide_tui_state_init(&st, a, NULL);
    for (int i = 0; i < 20000; i++) {
        st.window.begin = (int64_t)tide_rng_below(&rng, 4000) - 1500;
        st.window.end = (int64_t)tide_rng_below(&rng, 4000) - 1500;
        if (tide_rng_below(&rng, 50) == 0) st.window = (tide_tui_window){INT64_MIN, INT64_MAX};
        if (tide_rng_below(&rng, 50) == 0) st.window = (tide_tui_window){INT64_MAX - 10, INT64_MAX};
        if (tide_rng_below(&rng, 50) == 0) st.window = (tide_tui_window){INT64_MIN, INT64_MIN + 10};
        st.cursor = (int64_t)tide_rng_below(&rng, 4000) - 1500;
        st.cursor_event = 7;
        st.shows_range = tide_rng_below(&rng, 2) == 0;
        st.range_begin = (int64_t)tide_rng_below(&rng, 4000) - 1500;
        st.range_end = (int64_t)tide_rng_below(&rng, 4000) - 1500;
        const tide_tui_window was = st.window;
        const int64_t cursor = st.cursor;
        tide_tui_state_settle(&st);
        assert_true(st.window.begin >= 0 && st.window.end <= 1000 && st.window.begin < st.window.end);
        assert_in_range(st.cursor, st.window.begin, st.window.end - 1);
        if (was.begin < was.end && tide_tui_window_span(was) <= 1000) { // it is moved, not cut
            assert_int_equal(tide_tui_window_span(st.window), tide_tui_window_span(was));
        }
        assert_int_equal(st.cursor_event, st.cursor == cursor ? 7 : 0); // another moment is no event of before
        if (st.shows_range) {
            assert_true(st.range_begin >= 0 && st.range_begin < st.range_end && st.range_end <= 1000);
        }
        const tide_tui_state once = st;
        tide_tui_state_settle(&st);
        assert_memory_equal(&once, &st, sizeof st);
    }
    tide_subject_destroy(a);
}

static void settings_are_told_in_words(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st;
    char value[64];
    tide_tui_state_init(&st, a, NULL);
    st.capacity_bytes = UINT64_C(8) << 30;
    st.sort = TIDE_ROW_SORT_SIZE;
    st.curve_kind = TIDE_KIND_WORKSPACE;
    assert_string_equal(tide_tui_setting_value(&st, TIDE_TUI_SETTING_CAPACITY, value, sizeof value), "8.00 GiB");
    assert_string_equal(tide_tui_setting_value(&st, TIDE_TUI_SETTING_SORT, value, sizeof value), "size");
    assert_string_equal(tide_tui_setting_value(&st, TIDE_TUI_SETTING_KIND, value, sizeof value), "Workspace");
    assert_string_equal(tide_tui_setting_value(&st, TIDE_TUI_SETTING_MOUSE, value, sizeof value), "on");
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
        assert_true(strlen(tide_tui_setting_what((tide_tui_setting)i)) > 5);
        assert_string_not_equal(tide_tui_setting_value(&st, (tide_tui_setting)i, value, sizeof value), "?");
    }
    tide_subject_destroy(a);
}

/// Every setting can be set to what it says of itself, and toggled in the setup.
static void settings_can_be_set(void **state) {
    (void)state;
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) {
        const tide_tui_setting setting = (tide_tui_setting)i;
        view v;
        char before[64], after[64], line[160];
        view_open_small(&v, 120, 40);
        tide_tui_state *st = &v.app->st;
        if (setting == TIDE_TUI_SETTING_FOLLOW) st->is_recording = true; // of nothing else can it be asked
        view_key(&v, "F2");
        st->overlay_row = i;
        tide_tui_setting_value(st, setting, before, sizeof before);
        view_key(&v, "Enter");
        tide_tui_setting_value(st, setting, after, sizeof after);
        if (setting == TIDE_TUI_SETTING_CAPACITY) {
            assert_string_equal(st->text, "set capacity ");
            view_key(&v, "Esc");
        } else if (strcmp(before, after) == 0) {
            fail_msg("%s stays %s", tide_tui_setting_name(setting), before);
        }
        view_key(&v, "Esc");
        snprintf(line, sizeof line, "set %s %s", tide_tui_setting_name(setting), before);
        view_do(&v, line);
        if (st->message_is_error) fail_msg("%s: %s", line, st->message);
        assert_string_equal(tide_tui_setting_value(st, setting, after, sizeof after), before);
        view_close(&v);
    }
}

static void what_is_said_is_cut_not_overrun(void **state) {
    (void)state;
    tide_subject *a = subject_of_plan(small_plan(262144));
    tide_tui_state st;
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    tide_tui_state_init(&st, a, NULL);
    tide_tui_say(&st, true, "%s", text);
    assert_int_equal(strlen(st.message), sizeof st.message - 1);
    assert_true(st.message_is_error);
    tide_tui_say(&st, false, "%d rows", 3);
    assert_string_equal(st.message, "3 rows");
    assert_false(st.message_is_error);
    tide_subject_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_at_the_peak),
        cmocka_unit_test(settling_keeps_everything_inside),
        cmocka_unit_test(settings_are_told_in_words),
        cmocka_unit_test(settings_can_be_set),
        cmocka_unit_test(what_is_said_is_cut_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
