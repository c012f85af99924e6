// SPDX-License-Identifier: MIT
//
// The grid of cells: foreign text made safe, clipping, grounds and marks.
#include "tests/tide_test.h"

#include "tui/draw/cells.h"

static void names_are_made_safe_and_cut(void **state) {
    (void)state;
    static const struct {
        const char *text, *utf8, *ascii;
        int width;
        tide_tui_cut cut;
    } cases[] = {
        {"plain", "plain", "plain", 10, TIDE_TUI_CUT_END},
        {"a\nb\tc\033[2J", "a�b�c�[2J", "a?b?c?[2J", 20, TIDE_TUI_CUT_END},
        {"bad\xff\xc0\xaf.", "bad���.", "bad???.", 20, TIDE_TUI_CUT_END},
        {"\xed\xa0\x80", "���", "???", 20, TIDE_TUI_CUT_END}, // a surrogate
        {"truncated \xe2\x82", "truncated ��", "truncated ??", 20, TIDE_TUI_CUT_END},
        {"größe", "größe", "gr??e", 20, TIDE_TUI_CUT_END},
        {"張量", "張量", "??", 20, TIDE_TUI_CUT_END},
        {"張量張量", "張…", "????", 4, TIDE_TUI_CUT_END},                // half a wide glyph is never drawn
        {"e\xcc\x81t\xe2\x80\x8e", "et�", "e?t?", 20, TIDE_TUI_CUT_END}, // combining and direction marks
        {"\xe2\x80\xae"
         "evil",
         "�evil", "?evil", 20, TIDE_TUI_CUT_END},
        {"abcdefghij", "abcd…", "abcd~", 5, TIDE_TUI_CUT_END},
        {"abcdefghij", "abc…hij", "abc~hij", 7, TIDE_TUI_CUT_MIDDLE},
        {"abcdefghij", "abcd…hij", "abcd~hij", 8, TIDE_TUI_CUT_MIDDLE},
        {"abcdefghij", "…", "~", 1, TIDE_TUI_CUT_MIDDLE},
        {"stream_caching Persistent", "stream_ca…Persistent", "stream_ca~Persistent", 20, TIDE_TUI_CUT_MIDDLE},
        {"stream_caching Default", "stream_cachi…Default", "stream_cachi~Default", 20, TIDE_TUI_CUT_MIDDLE},
        {"stream_caching Persistent", "stre…tent", "stre~tent", 9, TIDE_TUI_CUT_MIDDLE},
        {"one two three four five", "one …five", "one ~five", 9, TIDE_TUI_CUT_MIDDLE},
        {"", "", "", 5, TIDE_TUI_CUT_END},
    };
    const tide_tui_locale locale = tide_tui_locale_enter();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int ascii = 0; ascii < 2; ascii++) {
            tide_error err = TIDE_ERROR_INIT;
            tide_tui_grid grid = {0};
            tide_text got = {0};
            assert_tide_ok(tide_tui_grid_resize(&grid, 24, 1, &err), &err);
            const char *want = ascii ? cases[i].ascii : cases[i].utf8;
            const int used = tide_tui_put_text(&grid, tide_tui_glyphs_of(ascii), 0, 0, cases[i].width, cases[i].text,
                                               cases[i].cut, TIDE_TUI_ROLE_TEXT);
            tide_tui_grid_to_text(&grid, &got);
            assert_true(used <= cases[i].width);
            assert_memory_equal(got.data, want, strlen(want));
            for (const char *p = got.data + strlen(want); *p != '\n'; p++) assert_int_equal(*p, ' ');
            tide_text_deinit(&got);
            tide_tui_grid_deinit(&grid);
        }
    }
    tide_tui_locale_leave(locale);
}

static void text_is_clipped_at_every_edge(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_grid grid = {0};
    assert_tide_ok(tide_tui_grid_resize(&grid, 5, 3, &err), &err);
    static const int at[][2] = {{-3, 0}, {4, 1}, {0, -1}, {0, 3}, {9, 9}, {INT32_MAX - 20, 1}};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        tide_tui_put_text(&grid, tide_tui_glyphs_of(false), at[i][0], at[i][1], 10, "overflowing", TIDE_TUI_CUT_END,
                          TIDE_TUI_ROLE_TEXT);
    assert_int_equal(tide_tui_get(&grid, 4, 1).glyph, 'o');
    assert_int_equal(tide_tui_get(&grid, 0, 0).glyph, 'r');
    tide_tui_grid_deinit(&grid);
}

// ---- numbers ----

static void grounds_and_marks_outlast_glyphs(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_grid grid = {0};
    assert_tide_ok(tide_tui_grid_resize(&grid, 4, 2, &err), &err);
    tide_tui_put_ground(&grid, 1, 1, TIDE_TUI_ROLE_RANGE);
    tide_tui_mark_row(&grid, 1, 1, 2, TIDE_TUI_MARK_MATCH);
    tide_tui_put(&grid, 1, 1, 'x', TIDE_TUI_ROLE_PEAK);
    const tide_tui_cell cell = tide_tui_get(&grid, 1, 1);
    assert_int_equal(cell.glyph, 'x');
    assert_int_equal(cell.role, TIDE_TUI_ROLE_PEAK);
    assert_int_equal(cell.ground, TIDE_TUI_ROLE_RANGE);
    assert_int_equal(cell.marks, TIDE_TUI_MARK_MATCH);
    tide_tui_grid_clear(&grid);
    assert_int_equal(tide_tui_get(&grid, 1, 1).ground, TIDE_TUI_ROLE_TEXT);
    assert_int_equal(tide_tui_get(&grid, 1, 1).marks, 0);
    tide_tui_grid_deinit(&grid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_are_made_safe_and_cut),
        tide_unit_test(text_is_clipped_at_every_edge),
        tide_unit_test(grounds_and_marks_outlast_glyphs),
    };
    return cmocka_run_group_tests_name("tui_cells", tests, NULL, NULL);
}
