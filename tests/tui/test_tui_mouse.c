// SPDX-License-Identifier: MIT
//
// What clicks, drags and the wheel do, cell by cell.
#include "tests/tui/view_fixture.h"

static tide_tui_mouse at(tide_tui_mouse_kind kind, int x, int y) {
    return (tide_tui_mouse){.kind = kind, .x = x, .y = y};
}

static void press(view *v, int x, int y) { view_mouse(v, at(TIDE_TUI_MOUSE_PRESS, x, y)); }

static void a_click_puts_the_cursor_in_its_column(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 200, 3000)), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    const tide_tui_rect curve = v.app->layout.panes[TIDE_TUI_PANE_CURVE], bars = v.app->layout.bars;
    for (int x = 0; x < curve.w; x += 3) {
        press(&v, curve.x + x, curve.y + 1);
        assert_int_equal(tide_tui_column_of(st->window, curve.w, st->cursor), x);
        assert_int_equal(st->focus, TIDE_TUI_PANE_CURVE);
        press(&v, curve.x + x, v.app->layout.ruler.y);
        assert_int_equal(tide_tui_column_of(st->window, curve.w, st->cursor), x);
        press(&v, bars.x + x, bars.y + x % bars.h);
        assert_int_equal(tide_tui_column_of(st->window, curve.w, st->cursor), x);
        assert_int_equal(st->focus, TIDE_TUI_PANE_GANTT);
        assert_int_equal(st->row, st->top + (size_t)(x % bars.h));
        assert_int_equal(v.app->scene.rows->members[st->row], st->item);
    }
    assert_false(st->shows_range);
    view_close(&v);
}

static void a_drag_selects_a_range_and_a_click_does_not(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 200, 3000)), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    const tide_tui_rect curve = v.app->layout.panes[TIDE_TUI_PANE_CURVE];
    press(&v, curve.x + 11, curve.y);
    view_mouse(&v, at(TIDE_TUI_MOUSE_DRAG, curve.x + 11, curve.y + 1)); // a trembling hand
    assert_false(st->shows_range);
    for (int to = 0; to < curve.w; to += 7) {
        press(&v, curve.x + 10, curve.y);
        view_mouse(&v, at(TIDE_TUI_MOUSE_DRAG, curve.x + to, curve.y + 2));
        view_mouse(&v, at(TIDE_TUI_MOUSE_RELEASE, curve.x + to, curve.y + 2));
        const int first = to < 10 ? to : 10, last = to < 10 ? 10 : to;
        assert_true(st->shows_range);
        assert_int_equal(tide_tui_column_of(st->window, curve.w, st->range_begin), first);
        assert_int_equal(tide_tui_column_of(st->window, curve.w, st->range_end - 1), last);
    }
    view_mouse(&v, at(TIDE_TUI_MOUSE_DRAG, curve.x, curve.y)); // the button is up
    assert_int_not_equal(st->range_begin, 0);
    press(&v, curve.x + 3, curve.y);
    assert_false(st->shows_range);
    press(&v, curve.x + 10, curve.y);
    view_mouse(&v, at(TIDE_TUI_MOUSE_DRAG, 0, 0)); // out of the pane: up to its edge
    assert_int_equal(st->range_begin, 0);
    view_close(&v);
}

static void the_wheel_zooms_at_the_pointer_and_pans_with_shift(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 200, 100000)), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    const tide_tui_rect curve = v.app->layout.panes[TIDE_TUI_PANE_CURVE];
    st->window = (tide_tui_window){20000, 60000};
    st->cursor = 40000;
    const int x = curve.w / 3;
    const int64_t pointed = st->window.begin + 40000 * x / curve.w + 1;
    view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_UP, curve.x + x, curve.y));
    assert_int_equal(tide_tui_window_span(st->window), 20000);
    assert_in_range(tide_tui_column_of(st->window, curve.w, pointed), x - 1, x + 1);
    view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_DOWN, curve.x + x, curve.y));
    assert_int_equal(tide_tui_window_span(st->window), 40000);
    const int64_t begin = st->window.begin;
    tide_tui_mouse m = at(TIDE_TUI_MOUSE_WHEEL_DOWN, curve.x + x, curve.y);
    m.shift = true;
    view_mouse(&v, m);
    assert_int_equal(st->window.begin, begin + 5000);
    view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_LEFT, curve.x + x, curve.y));
    assert_int_equal(st->window.begin, begin);
    view_close(&v);
}

static void the_wheel_scrolls_lists(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(4, 400, 3000)), NULL, 120, 40);
    tide_tui_state *st = &v.app->st;
    const tide_tui_rect bars = v.app->layout.bars;
    view_key(&v, "Home");
    const tide_tui_window before = st->window;
    view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_DOWN, bars.x + 5, bars.y + 1));
    assert_int_equal(st->top, 3);
    assert_int_equal(st->row, 3); // the selection stays on the screen
    assert_int_equal(st->window.begin, before.begin);
    assert_int_equal(st->window.end, before.end);
    for (int i = 0; i < 300; i++) view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_DOWN, bars.x + 5, bars.y + 1));
    assert_int_equal(st->top, view_rows(&v) - (size_t)bars.h);
    tide_tui_mouse m = at(TIDE_TUI_MOUSE_WHEEL_UP, bars.x + 5, bars.y + 1);
    m.ctrl = true;
    view_mouse(&v, m);
    assert_true(tide_tui_window_span(st->window) < tide_tui_window_span(before));
    view_do(&v, "view allocators");
    const tide_tui_rect ops = v.app->layout.panes[TIDE_TUI_PANE_OPERATORS];
    const size_t row = st->pane_row[TIDE_TUI_PANE_OPERATORS];
    const int64_t cursor = st->cursor;
    view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_DOWN, ops.x + 1, ops.y + 2));
    assert_true(st->pane_row[TIDE_TUI_PANE_OPERATORS] > row);
    assert_int_equal(st->cursor, cursor); // scrolling chooses nothing
    view_close(&v);
}

static void a_double_click_fits(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_do(&v, "sort name");
    const tide_tui_rect bars = v.app->layout.bars;
    tide_tui_mouse m = at(TIDE_TUI_MOUSE_PRESS, bars.x + 2, bars.y + 1);
    m.t_ms = 5000;
    view_mouse(&v, m);
    m.t_ms = 5000 + TIDE_TUI_DOUBLE_CLICK_MS;
    view_mouse(&v, m); // too slow
    assert_int_equal(tide_tui_window_span(st->window), 8);
    m.t_ms += 100;
    view_mouse(&v, m);
    assert_true(tide_tui_window_span(st->window) < 8);
    m.t_ms += 100;
    view_mouse(&v, m); // the third one begins anew
    assert_true(tide_tui_window_span(st->window) < 8);
    view_keys(&v, "0");
    m.t_ms += 50;
    view_mouse(&v, m); // a key came between
    assert_int_equal(tide_tui_window_span(st->window), 8);
    m.button = 1;
    m.t_ms += 5000;
    view_mouse(&v, m); // the middle button fits at once
    assert_true(tide_tui_window_span(st->window) < 8);
    view_close(&v);
}

static void the_map_and_the_minimap_are_pointed_at(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    tide_tui_state *st = &v.app->st;
    view_keys(&v, "2");
    const tide_tui_rect map = v.app->layout.map;
    press(&v, map.x + map.w / 4 + 1, map.y + map.h - 1);
    assert_int_equal(st->space_cursor, 0);
    assert_int_equal(st->cursor, 2);
    assert_string_equal(view_selected(&v), "conv2_out"); // lies at 0
    press(&v, map.x, map.y);
    assert_true(st->space_cursor > 0);
    view_close(&v);

    view_open(&v, subject_of_plan(random_plan(4, 200, 100000)), NULL, 120, 40);
    st = &v.app->st;
    st->window = (tide_tui_window){0, 1000};
    const tide_tui_rect mini = v.app->layout.minimap;
    press(&v, mini.x + mini.w / 2, mini.y);
    assert_in_range(st->window.begin, 47000, 52000);
    assert_int_equal(tide_tui_window_span(st->window), 1000);
    view_mouse(&v, at(TIDE_TUI_MOUSE_DRAG, mini.x, mini.y));
    assert_int_equal(st->window.begin, 0);
    view_close(&v);
}

static void prompts_and_overlays_are_not_clicked_through(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 80, 24);
    tide_tui_state *st = &v.app->st;
    const int64_t cursor = st->cursor;
    const tide_tui_rect curve = v.app->layout.panes[TIDE_TUI_PANE_CURVE];
    view_keys(&v, "?");
    press(&v, curve.x + curve.w - 1, curve.y);
    assert_int_equal(st->cursor, cursor);
    view_mouse(&v, at(TIDE_TUI_MOUSE_WHEEL_DOWN, curve.x, curve.y));
    assert_int_equal(st->overlay_top, 3);
    view_key(&v, "Esc");
    view_keys(&v, ":so");
    press(&v, curve.x + curve.w - 1, curve.y);
    assert_int_equal(st->cursor, cursor);
    assert_string_equal(st->text, "so");
    view_key(&v, "Esc");
    press(&v, 0, 0); // the title
    assert_int_equal(st->cursor, cursor);
    view_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_click_puts_the_cursor_in_its_column),
        cmocka_unit_test(a_drag_selects_a_range_and_a_click_does_not),
        cmocka_unit_test(the_wheel_zooms_at_the_pointer_and_pans_with_shift),
        cmocka_unit_test(the_wheel_scrolls_lists),
        cmocka_unit_test(a_double_click_fits),
        cmocka_unit_test(the_map_and_the_minimap_are_pointed_at),
        cmocka_unit_test(prompts_and_overlays_are_not_clicked_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
