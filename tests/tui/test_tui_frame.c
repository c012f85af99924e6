// SPDX-License-Identifier: MIT
//
// Frames of the terminal view: golden texts, rectangles, foreign names, numbers. Goldens are recorded anew with
// TIDE_UPDATE_GOLDEN=1 in the environment; look at the difference before keeping it.
#include "tests/golden.h"
#include "tests/tide_test.h"

#include "tests/tui/timeline_sample.h"
#include "tui/draw.h"
#include "tui/tui.h"

/// One frame after `keys`.
static void render(const tide_timeline *tl, int width, int height, bool ascii, const char *keys, tide_text *out) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_model m;
    tide_tui_layout layout;
    tide_tui_grid grid = {0};
    assert_tide_ok(tide_tui_model_init(&m, tl, &err), &err);
    assert_tide_ok(tide_tui_grid_resize(&grid, width, height, &err), &err);
    tide_tui_layout_make(width, height, &layout);
    tide_tui_settle(&m, &layout);
    for (const char *k = keys; *k != '\0'; k++) tide_tui_press(&m, &layout, (uint32_t)*k);
    const tide_tui_view view = {&m, &layout, tide_tui_glyphs_of(ascii), &grid};
    tide_tui_draw(&view);
    tide_tui_grid_to_text(&grid, out);
    tide_tui_grid_deinit(&grid);
    tide_tui_model_deinit(&m);
}

static void compare_golden(const char *name, const tide_text *got) {
    char below[128];
    snprintf(below, sizeof below, "tests/tui/golden/%s.txt", name);
    compare_with_golden(below, got);
}

static void golden_frames(void **state) {
    (void)state;
    static const struct {
        const char *name, *keys;
        int width, height;
    } frames[] = {
        {"small_40x10", "", 40, 10},   {"small_80x24", "", 80, 24},         {"small_120x40", "", 120, 40},
        {"small_200x60", "", 200, 60}, {"zoomed_80x24", "jj++oo", 80, 24},  {"help_40x10", "?jjj", 40, 10},
        {"help_120x40", "?", 120, 40}, {"fit_120x40", "jjjjjofp", 120, 40}, {"too_small_20x5", "", 20, 5},
    };
    tide_timeline *tl = sample_small();
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        for (int ascii = 0; ascii < 2; ascii++) {
            char name[64];
            tide_text got = {0};
            render(tl, frames[i].width, frames[i].height, ascii, frames[i].keys, &got);
            snprintf(name, sizeof name, "%s_%s", frames[i].name, ascii ? "ascii" : "utf8");
            compare_golden(name, &got);
            tide_text_deinit(&got);
        }
    }
    sample_destroy(tl);
}

static void golden_run_and_empty(void **state) {
    (void)state;
    tide_timeline *run = sample_many(60, 4), *empty = sample_empty();
    tide_text got = {0};
    render(run, 80, 24, false, "j", &got);
    compare_golden("run_80x24_utf8", &got);
    tide_text_deinit(&got);
    render(empty, 80, 24, false, "", &got);
    compare_golden("empty_80x24_utf8", &got);
    tide_text_deinit(&got);
    sample_destroy(run);
    sample_destroy(empty);
}

static void golden_weights(void **state) {
    (void)state;
    static const struct {
        const char *name, *keys;
        int width, height;
    } frames[] = {{"weights_120x40", "", 120, 40},
                  {"weights_80x24", "", 80, 24},
                  {"weights_40x10", "", 40, 10},
                  {"hidden_80x24", "w", 80, 24},
                  {"hidden_40x10", "w", 40, 10}};
    tide_timeline *tl = sample_weights();
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        char name[64];
        tide_text got = {0};
        render(tl, frames[i].width, frames[i].height, false, frames[i].keys, &got);
        snprintf(name, sizeof name, "%s_utf8", frames[i].name);
        compare_golden(name, &got);
        tide_text_deinit(&got);
    }
    sample_destroy(tl);
}

/// Hidden rows are counted on every screen that shows any, and the frame without them has none of their names.
static void nothing_is_hidden_in_silence(void **state) {
    (void)state;
    tide_timeline *tl = sample_weights();
    for (int h = TIDE_TUI_MIN_HEIGHT; h < 50; h += 3) {
        for (int w = TIDE_TUI_MIN_WIDTH; w < 160; w += 7) {
            tide_text got = {0};
            render(tl, w, h, false, "w", &got);
            assert_text_has(got.data, "hidden: w");
            if (w >= 80 && h >= 18) assert_text_has(got.data, "3 of 7 rows (4 persistent hidden: w)");
            assert_null(strstr(got.data, "weights0"));
            assert_text_has(got.data, "conv0_out");
            tide_text_deinit(&got);
            render(tl, w, h, false, "ww", &got);
            assert_null(strstr(got.data, "hidden"));
            tide_text_deinit(&got);
        }
    }
    for (size_t i = 0; i < tl->n_items; i++) tl->items[i].persistent = true;
    tide_text got = {0};
    render(tl, 80, 24, false, "w", &got);
    assert_text_has(got.data, "0 of 7 rows (7 persistent hidden: w)");
    assert_text_has(got.data, "All rows are hidden: w shows them.");
    tide_text_deinit(&got);
    sample_destroy(tl);
}

/// Rows go, the curve stays: above the ruler only the summary differs.
static void hiding_rows_leaves_the_curve(void **state) {
    (void)state;
    tide_timeline *tl = sample_weights();
    tide_text all = {0}, few = {0};
    render(tl, 100, 30, false, "", &all);
    render(tl, 100, 30, false, "w", &few);
    const char *a = strchr(strchr(all.data, '\n') + 1, '\n'), *b = strchr(strchr(few.data, '\n') + 1, '\n');
    const char *ruler = strstr(a, "\u252c");
    assert_non_null(ruler);
    assert_memory_equal(a, b, (size_t)(ruler - a));
    tide_text_deinit(&all);
    tide_text_deinit(&few);
    sample_destroy(tl);
}

static void the_labels_say_what_the_height_is_made_of(void **state) {
    (void)state;
    tide_timeline *tl = sample_weights();
    tide_text got = {0};
    render(tl, 120, 40, false, "", &got);
    assert_text_has(got.data, "lower bound 144.00 KiB");
    assert_text_has(got.data, "+ 70.00 KiB weights, inputs, outputs");
    assert_text_has(got.data, " lower bound 144K + 70.0K ");
    tide_text_deinit(&got);
    tl->plan_bytes = 262144; // more than a row above the bound
    render(tl, 120, 40, false, "", &got);
    assert_text_has(got.data, " plan 256K + 70.0K ");
    assert_text_has(got.data, " lower bound 144K + 70.0K ");
    tide_text_deinit(&got);
    tl->plan_bytes = tl->lower_bound_bytes;
    static const struct {
        int width;
        const char *label;
    } cases[] = {{160, "plan = lower bound 144K + 70.0K "},
                 {120, "plan=bound 144K+70.0K "},
                 {72, " bound 144K+70.0K "},
                 {40, "bound "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        render(tl, cases[i].width, 24, false, "", &got);
        assert_text_has(got.data, cases[i].label);
        tide_text_deinit(&got);
    }
    sample_destroy(tl);
}

static void once_is_the_first_frame(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_text want = {0}, got = {0};
    tide_error err = TIDE_ERROR_INIT;
    render(tl, 80, 24, false, "", &want);
    assert_tide_ok(tide_tui_once(tl, NULL, 80, 24, &got, &err), &err);
    assert_string_equal(tide_text_str(&got), tide_text_str(&want));
    tide_text_deinit(&got);
    tide_text_deinit(&want);
    sample_destroy(tl);
}

static void once_refuses_sizes_that_are_none(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    static const int sizes[][2] = {{0, 24}, {80, 0}, {-1, -1}, {2001, 24}, {80, 100000}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tide_text got = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_status(tide_tui_once(tl, NULL, sizes[i][0], sizes[i][1], &got, &err), TIDE_ERR_INVALID);
        assert_text_has(err.hint, "120x40");
        assert_int_equal(got.len, 0);
    }
    sample_destroy(tl);
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_status st = TIDE_ERR_NOMEM;
    int n = 0;
    for (; st != TIDE_OK && n < 100; n++) {
        tide_text got = {0};
        tide_error err = TIDE_ERROR_INIT;
        tide_host_fail_after(n);
        st = tide_tui_once(tl, NULL, 40, 10, &got, &err);
        tide_host_fail_after(-1);
        tide_text_deinit(&got);
        assert_true(st == TIDE_OK || st == TIDE_ERR_NOMEM);
    }
    assert_in_range(n, 4, 99);
    sample_destroy(tl);
}

// ---- rectangles ----

static void add_area(int *cover, const tide_tui_layout *l, tide_tui_rect r) {
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = r.x; x < r.x + r.w; x++) {
            assert_true(x >= 0 && x < l->width && y >= 0 && y < l->height);
            cover[y * l->width + x]++;
        }
    }
}

static void panes_do_not_overlap_or_leave_the_screen(void **state) {
    (void)state;
    static int cover[260 * 90];
    for (int h = 1; h < 90; h++) {
        for (int w = 1; w < 260; w += h % 3 + 1) {
            tide_tui_layout l;
            tide_tui_layout_make(w, h, &l);
            assert_int_equal(l.too_small, w < TIDE_TUI_MIN_WIDTH || h < TIDE_TUI_MIN_HEIGHT);
            if (l.too_small) continue;
            const tide_tui_rect panes[] = {l.title,  l.summary, l.curve_labels, l.curve, l.ruler,   l.ticks,
                                           l.header, l.names,   l.bars,         l.sizes, l.details, l.footer};
            memset(cover, 0, sizeof cover);
            for (size_t i = 0; i < sizeof panes / sizeof panes[0]; i++) add_area(cover, &l, panes[i]);
            for (int i = 0; i < w * h; i++) assert_in_range(cover[i], 0, 1);
            assert_true(l.bars.w >= 20 && l.bars.h >= 3);
            assert_int_equal(l.bars.x, l.curve.x);
            assert_int_equal(l.bars.w, l.curve.w);
            assert_int_equal(l.bars.w, l.ruler.w);
        }
    }
}

enum { UNTOUCHED = 99 };

static bool inside(tide_tui_rect r, int x, int y) { return x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h; }

static void check_pane(const tide_tui_view *v, void (*draw)(const tide_tui_view *), const tide_tui_rect *own,
                       size_t n) {
    for (int i = 0; i < v->grid->width * v->grid->height; i++) v->grid->cells[i] = (tide_tui_cell){' ', UNTOUCHED, 0};
    draw(v);
    int n_drawn = 0;
    for (int y = 0; y < v->grid->height; y++) {
        for (int x = 0; x < v->grid->width; x++) {
            const tide_tui_cell cell = tide_tui_get(v->grid, x, y);
            if (cell.role == UNTOUCHED && cell.glyph == ' ') continue;
            n_drawn++;
            bool is_own = false;
            for (size_t i = 0; i < n; i++) is_own = is_own || inside(own[i], x, y);
            if (!is_own) fail_msg("a cell outside its pane at %d,%d of %dx%d", x, y, v->grid->width, v->grid->height);
        }
    }
    assert_true(n_drawn > 0);
}

static void each_pane_keeps_to_its_rectangles(void **state) {
    (void)state;
    static const int sizes[][2] = {{40, 10}, {41, 15}, {80, 24}, {120, 40}, {200, 60}};
    tide_timeline *timelines[] = {sample_small(), sample_many(300, 8)};
    for (size_t t = 0; t < 2; t++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            tide_error err = TIDE_ERROR_INIT;
            tide_tui_model m;
            tide_tui_layout l;
            tide_tui_grid grid = {0};
            assert_tide_ok(tide_tui_model_init(&m, timelines[t], &err), &err);
            assert_tide_ok(tide_tui_grid_resize(&grid, sizes[s][0], sizes[s][1], &err), &err);
            tide_tui_layout_make(sizes[s][0], sizes[s][1], &l);
            const tide_tui_view v = {&m, &l, tide_tui_glyphs_of(false), &grid};
            check_pane(&v, tide_tui_draw_title, &l.title, 1);
            if (l.summary.h > 0) check_pane(&v, tide_tui_draw_summary, &l.summary, 1);
            check_pane(&v, tide_tui_draw_curve, (tide_tui_rect[]){l.curve_labels, l.curve}, 2);
            check_pane(&v, tide_tui_draw_ruler, (tide_tui_rect[]){l.ruler, l.ticks}, 2);
            check_pane(&v, tide_tui_draw_gantt, (tide_tui_rect[]){l.header, l.names, l.bars, l.sizes}, 4);
            check_pane(&v, tide_tui_draw_details, &l.details, 1);
            check_pane(&v, tide_tui_draw_footer, &l.footer, 1);
            check_pane(&v, tide_tui_draw_help, &l.help, 1);
            tide_tui_grid_deinit(&grid);
            tide_tui_model_deinit(&m);
        }
        sample_destroy(timelines[t]);
    }
}

// ---- foreign names ----

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
        {"張量張量", "張…", "????", 4, TIDE_TUI_CUT_END},               // half a wide glyph is never drawn
        {"e\xcc\x81t\xe2\x80\x8e", "et", "e?t?", 20, TIDE_TUI_CUT_END}, // combining and direction marks
        {"\xe2\x80\xae"
         "evil",
         "evil", "?evil", 20, TIDE_TUI_CUT_END},
        {"abcdefghij", "abcd…", "abcd~", 5, TIDE_TUI_CUT_END},
        {"abcdefghij", "abc…hij", "abc~hij", 7, TIDE_TUI_CUT_MIDDLE},
        {"abcdefghij", "abcd…hij", "abcd~hij", 8, TIDE_TUI_CUT_MIDDLE},
        {"abcdefghij", "…", "~", 1, TIDE_TUI_CUT_MIDDLE},
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

static void the_frame_says_the_timelines_numbers(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tide_text got = {0};
    render(tl, 120, 40, false, "jjj", &got);
    char size[24], text[64];
    snprintf(text, sizeof text, "peak %s", tide_format_bytes(tl->peak_bytes, size, sizeof size));
    assert_text_has(got.data, text);
    snprintf(text, sizeof text, "plan %s", tide_format_bytes(tl->plan_bytes, size, sizeof size));
    assert_text_has(got.data, text);
    snprintf(text, sizeof text, "lower bound %s", tide_format_bytes(tl->lower_bound_bytes, size, sizeof size));
    assert_text_has(got.data, text);
    assert_text_has(got.data, "gap 6.7 %");
    assert_text_has(got.data, "of peak   53.3 %"); // conv2_out: 256 of 480 KiB
    assert_text_has(got.data, "at peak   alive");
    tide_text_deinit(&got);
    sample_destroy(tl);
}

/// Where a column is no longer than a step, the bars drawn in it are exactly what its curve is the sum of.
static void the_bars_of_a_column_add_up_to_its_curve(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    for (int64_t begin = 0; begin < 7; begin++) {
        for (int n = 20; n < 180; n++) {
            const tide_tui_window w = {begin, 8};
            uint64_t min[180], max[180], sum[180] = {0};
            tide_timeline_columns(tl, w.begin, w.end, (size_t)n, min, max);
            for (size_t i = 0; i < tl->n_items; i++) {
                int from, to;
                if (tide_tui_columns_of(w, n, tl->items[i].begin, tl->items[i].end, &from, &to) != 0) continue;
                for (int x = from; x < to; x++) sum[x] += tl->items[i].size_bytes;
            }
            for (int x = 0; x < n; x++) {
                assert_int_equal(sum[x], min[x]);
                assert_int_equal(sum[x], max[x]);
            }
        }
    }
    sample_destroy(tl);
}

static void an_unbounded_plan_has_no_gap(void **state) {
    (void)state;
    tide_timeline *tl = sample_small();
    tl->lower_bound_bytes = 0;
    tide_text got = {0};
    render(tl, 120, 40, false, "", &got);
    assert_null(strstr(got.data, "gap"));
    tide_text_deinit(&got);
    sample_destroy(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_frames), // a difference leaks its texts, no more
        cmocka_unit_test(golden_run_and_empty),
        cmocka_unit_test(golden_weights),
        tide_unit_test(nothing_is_hidden_in_silence),
        tide_unit_test(hiding_rows_leaves_the_curve),
        tide_unit_test(the_labels_say_what_the_height_is_made_of),
        tide_unit_test(once_is_the_first_frame),
        tide_unit_test(once_refuses_sizes_that_are_none),
        tide_unit_test(every_failed_allocation_is_an_error),
        tide_unit_test(panes_do_not_overlap_or_leave_the_screen),
        tide_unit_test(each_pane_keeps_to_its_rectangles),
        tide_unit_test(names_are_made_safe_and_cut),
        tide_unit_test(text_is_clipped_at_every_edge),
        tide_unit_test(the_frame_says_the_timelines_numbers),
        tide_unit_test(the_bars_of_a_column_add_up_to_its_curve),
        tide_unit_test(an_unbounded_plan_has_no_gap),
    };
    return cmocka_run_group_tests_name("tui_frame", tests, NULL, NULL);
}
