// SPDX-License-Identifier: MIT
//
// Rows of the gantt: bars to the cell, ends, groups, matches, selection, empty states.
#include "tests/tui/scene_sample.h"

static const int sizes[][2] = {{40, 10}, {41, 17}, {60, 18}, {80, 24}, {120, 40}, {200, 60}};

static uint32_t bar_at(const scene_sample *s, int row, int column) {
    const tide_tui_rect r = s->layout.bars;
    return tide_tui_get(&s->grid, r.x + column, r.y + row).glyph;
}

/// Half-open: exactly the columns of the axis between begin and end, at every size and zoom.
static void a_bar_covers_exactly_its_columns(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    static const tide_tui_window windows[] = {{0, 8}, {1, 7}, {2, 4}, {6, 8}};
    for (size_t z = 0; z < sizeof windows / sizeof windows[0]; z++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            s->state.window = windows[z];
            s->state.cursor = windows[z].end; // out of the picture
            scene_sample_resize(s, sizes[i][0], sizes[i][1]);
            scene_sample_draw(s, tide_tui_draw_gantt);
            for (int row = 0; row < (int)s->scene.n_gantt; row++) {
                const sample_life *life = &sample_lives[row];
                int from, to;
                if (tide_tui_columns_of(windows[z], s->layout.bars.w, life->begin, life->end, &from, &to) != 0)
                    continue;
                for (int x = 0; x < s->layout.bars.w; x++)
                    assert_int_equal(bar_at(s, row, x) != ' ', x >= from && x < to);
            }
        }
    }
    scene_sample_destroy(s);
}

static void ends_tell_births_and_deaths_from_what_goes_on(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 80, 26); // all rows
    s->view.glyphs = tide_tui_glyphs_of(true);
    s->state.window = (tide_tui_window){2, 5};
    s->state.cursor = 6;
    scene_sample_again(s);
    scene_sample_draw(s, tide_tui_draw_gantt);
    const int w = s->layout.bars.w, step = w / 3;
    assert_int_equal(bar_at(s, 0, 0), '<'); // conv0_out, dead before
    assert_int_equal(bar_at(s, 0, 1), ' ');
    assert_int_equal(bar_at(s, 2, 0), '<'); // relu1_out: from before, dies inside
    assert_int_equal(bar_at(s, 2, step - 1), ']');
    assert_int_equal(bar_at(s, 3, 0), '['); // conv2_out: born and dead inside
    assert_int_equal(bar_at(s, 3, 1), '=');
    assert_int_equal(bar_at(s, 3, 2 * step - 1), ']');
    assert_int_equal(bar_at(s, 4, 1), '~');    // scratch has its own fill
    assert_int_equal(bar_at(s, 5, step), '['); // pool3_out: lives on
    assert_int_equal(bar_at(s, 5, w - 1), '>');
    assert_int_equal(bar_at(s, 7, w - 1), '>'); // add5_out: not yet born
    assert_int_equal(bar_at(s, 7, w - 2), ' ');
    scene_sample_destroy(s);
}

static void groups_show_how_many_live(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    tide_row_span *spans = s->spans[1];
    s->gantt[1].n_members = 1234;
    s->gantt[1].name = "pool";
    s->state.cursor = 7;
    const uint32_t counts[] = {0, 1, 2, 3, 4, 15, 16, 255};
    for (int ascii = 0; ascii < 2; ascii++) {
        const uint32_t want[2][8] = {{' ', 0x2591, 0x2592, 0x2592, 0x2593, 0x2593, 0x2588, 0x2588},
                                     {' ', '.', ':', ':', '+', '+', '#', '#'}};
        s->view.glyphs = tide_tui_glyphs_of(ascii == 1);
        for (int x = 0; x < 8; x++) spans[x] = (tide_row_span){.n = counts[x], .starts = true, .ends = true};
        scene_sample_draw(s, tide_tui_draw_gantt);
        for (int x = 0; x < 8; x++) assert_int_equal(bar_at(s, 1, x), want[ascii][x]);
        scene_sample_has(s, ascii ? "pool        x1,234 " : "pool        \u00d71,234 ");
    }
    scene_sample_destroy(s);
}

static void matches_and_the_selection_are_told_by_more_than_colour(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->gantt[2].is_match = true;
    s->state.row = 3;
    scene_sample_draw(s, tide_tui_draw_gantt);
    const tide_tui_rect names = s->layout.names;
    scene_sample_lacks(s, "match");
    snprintf(s->state.search, sizeof s->state.search, "relu");
    s->scene.n_matches = 12;
    s->scene.match_at = 3;
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, "by begin, match 3/12");
    assert_int_equal(tide_tui_get(&s->grid, names.x, names.y + 2).glyph, '*');
    assert_true(tide_tui_get(&s->grid, names.x + 1, names.y + 2).marks & TIDE_TUI_MARK_MATCH);
    assert_false(tide_tui_get(&s->grid, names.x + 1, names.y + 1).marks & TIDE_TUI_MARK_MATCH);
    assert_int_equal(tide_tui_get(&s->grid, names.x, names.y + 3).glyph, '>');
    for (int y = 0; y < (int)s->scene.n_gantt; y++) {
        const bool selected = tide_tui_get(&s->grid, names.x + 1, names.y + y).marks & TIDE_TUI_MARK_SELECTED;
        assert_int_equal(selected, y == 3);
    }
    scene_sample_destroy(s);
}

/// A reversed full block would be a blank: bars keep their look.
static void the_selection_does_not_reverse_bars(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_draw(s, tide_tui_draw_gantt);
    const tide_tui_rect r = s->layout.bars;
    for (int x = r.x; x < r.x + r.w; x++) assert_int_equal(tide_tui_get(&s->grid, x, r.y).marks, 0);
    scene_sample_destroy(s);
}

static void long_names_are_cut_in_the_middle_and_sizes_have_units(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, "/features\u2026output_0 ");
    scene_sample_has(s, "192.00 KiB");
    scene_sample_has(s, "1/10 by begin");
    scene_sample_has(s, "step 2 (Conv_2): 480.00 KiB live");
    scene_sample_resize(s, 40, 10);
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, " 192K\n");
    scene_sample_resize(s, 200, 60);
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, "conv0_out  Conv_0");
    scene_sample_destroy(s);
}

static void foreign_names_are_made_safe(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->gantt[0].name = "a\033[31mb\nc\xff\xfe";
    s->gantt[1].name = "";
    s->gantt[1].owner = "";
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_lacks(s, "\033");
    scene_sample_has(s, "a\uFFFD[31mb\uFFFDc\uFFFD");
    scene_sample_has(s, "(unnamed)");
    scene_sample_destroy(s);
}

static void empty_states_say_why(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    tide_rows none = {.n_hidden = 10};
    s->scene.n_gantt = 0;
    s->scene.rows = &none;
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, "All 10 tensors are hidden by filters.");
    s->scene.rows = NULL;
    snprintf(s->scene.busy[TIDE_TUI_PANE_GANTT], 64, "sorting 5,000,000 blocks 43 %%");
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, "sorting 5,000,000 blocks 43 %");
    s->scene.busy[TIDE_TUI_PANE_GANTT][0] = '\0';
    s->a.n_items = 0;
    scene_sample_draw(s, tide_tui_draw_gantt);
    scene_sample_has(s, "This plan holds no tensor that lives.");
    scene_sample_destroy(s);
}

static void the_cursor_crosses_rows_and_the_pane_keeps_to_itself(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->state.shows_range = true;
    s->state.range_begin = 1;
    s->state.range_end = 5;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        scene_sample_resize(s, sizes[i][0], sizes[i][1]);
        scene_sample_draw(s, tide_tui_draw_gantt);
        const tide_tui_rect r = s->layout.bars;
        const int x = tide_tui_column_of(s->state.window, r.w, s->state.cursor);
        assert_int_equal(bar_at(s, 1, x), s->view.glyphs->cursor);
        scene_sample_keeps_to(s, tide_tui_draw_gantt, &s->layout.panes[TIDE_TUI_PANE_GANTT], 1);
    }
    scene_sample_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_bar_covers_exactly_its_columns),
        tide_unit_test(ends_tell_births_and_deaths_from_what_goes_on),
        tide_unit_test(groups_show_how_many_live),
        tide_unit_test(matches_and_the_selection_are_told_by_more_than_colour),
        tide_unit_test(the_selection_does_not_reverse_bars),
        tide_unit_test(long_names_are_cut_in_the_middle_and_sizes_have_units),
        tide_unit_test(foreign_names_are_made_safe),
        tide_unit_test(empty_states_say_why),
        tide_unit_test(the_cursor_crosses_rows_and_the_pane_keeps_to_itself),
    };
    return cmocka_run_group_tests_name("tui_draw_gantt", tests, NULL, NULL);
}
