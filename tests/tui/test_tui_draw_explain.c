// SPDX-License-Identifier: MIT
//
// The explanation: a bar and lines that sum to what is held, groups that sum to what is alive, conclusions in whole
// sentences at any width.
#include "tests/tui/scene_lists.h"

#include "tui/draw/draw.h"
#include "tui/draw/panes.h"

/// All of it on one tall screen.
static scene_lists *explained(int w, int h) {
    scene_lists *l = scene_lists_new();
    scene_lists_only(l, TIDE_TUI_PANE_EXPLAIN, w, h);
    scene_sample_draw(l->s, tide_tui_draw_explain);
    return l;
}

/// Numbers of "480,000 + 11,520 + … = 524,288 B" as they stand on the screen.
static void the_sum_on_the_screen_is_exact(void **state) {
    (void)state;
    for (int w = 40; w <= 160; w += 15) {
        scene_lists *l = explained(w, 40);
        tide_text text = scene_sample_text(l->s);
        const char *p = strstr(tide_text_str(&text), "480,000");
        assert_non_null(p);
        uint64_t sum = 0, number = 0;
        for (bool total = false; !total || (*p >= '0' && *p <= '9') || *p == ',' || number == 0; p++) {
            assert_true(*p != '\0');
            if (*p >= '0' && *p <= '9') {
                number = number * 10 + (uint64_t)(*p - '0');
            } else if (*p == '+' || *p == '=') {
                sum += number;
                number = 0;
                total = *p == '=';
            }
        }
        assert_int_equal(sum, number);
        assert_int_equal(number, 524288);
        tide_text_deinit(&text);
        scene_lists_destroy(l);
    }
}

/// Every part has at least a cell, and together they are exactly as wide as the pane: at any width, in both tiers.
static void the_bar_is_as_wide_as_the_pane(void **state) {
    (void)state;
    for (int ascii = 0; ascii < 2; ascii++) {
        for (int w = 10; w <= 160; w++) {
            scene_lists *l = scene_lists_new();
            l->s->view.glyphs = tide_tui_glyphs_of(ascii);
            scene_lists_only(l, TIDE_TUI_PANE_EXPLAIN, w, 12);
            scene_sample_draw(l->s, tide_tui_draw_explain);
            bool seen[4] = {false};
            static const uint32_t glyphs[2][4] = {{0x2588, 0x2593, 0x2591, 0x2592}, {'L', 'r', 'h', 's'}};
            for (int x = 1; x < w - 1; x++) {
                int which = -1;
                for (int i = 0; i < 4; i++)
                    if (tide_tui_get(&l->s->grid, x, 1).glyph == glyphs[ascii][i]) which = i;
                assert_true(which >= 0);
                seen[which] = true;
            }
            for (int i = 0; i < 4; i++) assert_true(seen[i]);
            assert_int_equal(tide_tui_get(&l->s->grid, w - 1, 1).glyph, ' ');
            scene_lists_destroy(l);
        }
    }
}

static void what_would_lower_the_peak_is_said(void **state) {
    (void)state;
    scene_lists *l = explained(200, 40);
    scene_sample_has(l->s, "Without conv2_out (Conv_2, 256.00 KiB) the peak is 448.00 KiB (-6.7 %); then step 0 "
                           "(Conv_0) rules.");
    scene_sample_has(l->s, "Without conv2.scratch (Conv_2, 32.00 KiB) the peak is 448.00 KiB (-6.7 %); still at step "
                           "2 (Conv_2).");
    scene_sample_has(l->s, "Without all that is alive here and does not persist the peak is 256.00 KiB (-46.7 %); "
                           "then step 0 (Conv_0) rules.");
    l->without[0].n_alike = 100; // of one name, iteration for iteration
    l->without[0].n_now = 3;
    scene_sample_draw(l->s, tide_tui_draw_explain);
    scene_sample_has(l->s, "Without conv2_out (Conv_2, 256.00 KiB; 3 now of 100, which all go) the peak is 448.00 KiB");
    l->without[0].n_alike = l->without[0].n_now = 1;
    l->without[0].name = "concat";
    l->without[0].n_inside = 10;
    l->without[0].has_plan = true;
    l->without[0].was_bytes = 1048576;
    l->without[0].plan_bytes = 786432;
    scene_sample_draw(l->s, tide_tui_draw_explain);
    scene_sample_has(l->s, "Without concat and the 10 that lie in it (now conv2_out, Conv_2, 256.00 KiB) the peak is");
    scene_sample_has(l->s, "The plan of the rest: 768.00 KiB (-25.0 %).");
    l->without[0].n_inside = 0;
    l->without[0].peak_bytes = 491520; // nothing is won
    scene_sample_draw(l->s, tide_tui_draw_explain);
    scene_sample_has(l->s, "the peak is 480.00 KiB (+0.0 %); step 0 is as high.");
    l->explanation.second_peak_bytes = 0;
    scene_sample_draw(l->s, tide_tui_draw_explain);
    scene_sample_has(l->s, "Without all that is alive here nothing is held at any moment.");
    scene_lists_destroy(l);
}

static void groups_are_shares_of_what_is_alive(void **state) {
    (void)state;
    scene_lists *l = explained(100, 40);
    scene_sample_has(l->s, "alive, by operator");
    scene_sample_has(l->s, "288.00 KiB   60.0 %  2 tensors");
    scene_sample_has(l->s, "192.00 KiB   40.0 %  1 tensor");
    scene_sample_has(l->s, "480.00 KiB  100.0 %  3 tensors");
    scene_sample_has(l->s, "Workspace");
    scene_lists_destroy(l);
}

/// When there are many operators, the last ones share one line with their number and their sum.
static void many_groups_still_sum(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    enum { MANY = 40 };
    static tide_explain_group many[MANY];
    char keys[MANY][24];
    uint64_t rest = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "op_%d", i);
        many[i] = (tide_explain_group){keys[i], 12288, 1};
        if (i >= 12) rest += 12288;
    }
    l->explanation.by_owner = many;
    l->explanation.n_by_owner = MANY;
    scene_lists_only(l, TIDE_TUI_PANE_EXPLAIN, 100, 60);
    scene_sample_draw(l->s, tide_tui_draw_explain);
    scene_sample_has(l->s, "op_11");
    scene_sample_lacks(l->s, "op_12");
    scene_sample_has(l->s, "28 more");
    char size[24];
    scene_sample_has(l->s, tide_format_bytes(rest, size, sizeof size));
    scene_lists_destroy(l);
}

/// Scrolled line by line everything is seen: each line of the tall screen shows up on a small one.
static void scrolling_shows_every_line(void **state) {
    (void)state;
    for (int w = 40; w <= 120; w += 40) {
        scene_lists *tall = explained(w, 60), *small = scene_lists_new();
        const size_t n = tide_tui_pane_rows(&tall->s->scene, TIDE_TUI_PANE_EXPLAIN);
        assert_true(n > 10 && n < 60);
        scene_lists_only(small, TIDE_TUI_PANE_EXPLAIN, w, 5);
        assert_int_equal(tide_tui_pane_rows(&small->s->scene, TIDE_TUI_PANE_EXPLAIN), n);
        for (size_t row = 0; row < n; row++) {
            small->s->state.pane_row[TIDE_TUI_PANE_EXPLAIN] = row;
            tide_tui_pane_settle(&small->s->state, &small->s->scene);
            const size_t top = small->s->state.pane_top[TIDE_TUI_PANE_EXPLAIN];
            assert_int_equal(top, row < n - 5 ? row : n - 5);
            scene_sample_draw(small->s, tide_tui_draw_explain);
            for (int y = 0; y < 5; y++)
                for (int x = 0; x < w; x++)
                    assert_int_equal(tide_tui_get(&small->s->grid, x, 1 + y).glyph,
                                     tide_tui_get(&tall->s->grid, x, 1 + (int)top + y).glyph);
        }
        scene_lists_destroy(tall);
        scene_lists_destroy(small);
    }
}

// ---- wrapping ----

static void words_are_not_broken_and_none_is_lost(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    const char *text = "Without  conv2_out the peak\nis 448.00 KiB; then step 0 rules.";
    tide_error err = TIDE_ERROR_INIT;
    for (int w = 1; w <= 70; w++) {
        assert_tide_ok(tide_tui_grid_resize(&l->s->grid, w, 80, &err), &err);
        tide_tui_lines p = {.v = &l->s->view, .r = {0, 0, w, 80}};
        tide_tui_lines_wrap(&p, 0, text, TIDE_TUI_ROLE_TEXT);
        assert_int_equal(p.n, tide_tui_wrap_count(&l->s->view, w, text));
        char seen[128] = "", want[128] = "";
        size_t n = 0, m = 0;
        for (int y = 0; y < 80; y++)
            for (int x = 0; x < w; x++) {
                const uint32_t glyph = tide_tui_get(&l->s->grid, x, y).glyph;
                if (glyph != ' ') seen[n++] = (char)glyph;
            }
        for (const char *c = text; *c != '\0'; c++)
            if (*c != ' ' && *c != '\n') want[m++] = *c;
        assert_string_equal(seen, want);
        if (w < 10) continue; // the longest word has room: the words of the lines are those of the text
        char words[128] = "";
        n = 0;
        for (int y = 0; y < (int)p.n; y++)
            for (int x = 0; x <= w; x++) {
                const char c = x < w ? (char)tide_tui_get(&l->s->grid, x, y).glyph : ' ';
                if (c != ' ' || (n > 0 && words[n - 1] != ' ')) words[n++] = c;
            }
        assert_string_equal(words, "Without conv2_out the peak is 448.00 KiB; then step 0 rules. ");
    }
    scene_lists_destroy(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_on_the_screen_is_exact),
        cmocka_unit_test(the_bar_is_as_wide_as_the_pane),
        cmocka_unit_test(what_would_lower_the_peak_is_said),
        cmocka_unit_test(groups_are_shares_of_what_is_alive),
        cmocka_unit_test(many_groups_still_sum),
        cmocka_unit_test(scrolling_shows_every_line),
        cmocka_unit_test(words_are_not_broken_and_none_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
