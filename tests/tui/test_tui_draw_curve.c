// SPDX-License-Identifier: MIT
//
// The curve, its lines and labels, minimap and ruler.
#include "tests/tui/scene_sample.h"

static const int sizes[][2] = {{40, 10}, {41, 17}, {60, 18}, {80, 24}, {120, 40}, {200, 60}};

static tide_tui_rect curve_of(const scene_sample *s) { return s->layout.panes[TIDE_TUI_PANE_CURVE]; }

/// Eighths of a column that are filled, from below.
static int filled(const scene_sample *s, int column) {
    const tide_tui_rect r = curve_of(s);
    int eighths = 0;
    for (int y = r.y + r.h - 1; y >= r.y; y--) {
        const uint32_t glyph = tide_tui_get(&s->grid, r.x + column, y).glyph;
        if (glyph >= 0x2581 && glyph <= 0x2588) eighths += (int)(glyph - 0x2580);
        if (glyph == s->view.glyphs->spike || glyph == s->view.glyphs->cursor) eighths += 8;
    }
    return eighths;
}

static void the_height_of_a_column_is_its_largest_value(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->a.levels.known = false; // no lines in the way
    s->state.cursor = 7;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        scene_sample_resize(s, sizes[i][0], sizes[i][1]);
        scene_sample_draw(s, tide_tui_draw_curve);
        const tide_tui_rect r = curve_of(s);
        for (int x = 0; x < r.w; x++) {
            if (tide_tui_column_of(s->state.window, r.w, 7) == x) continue;
            const double want = (double)s->max[x] / 524288.0 * 8 * r.h;
            const int got = filled(s, x);
            assert_true(got > want - 1 && got < want + 1);
        }
    }
    scene_sample_destroy(s);
}

/// One event of 10 million: its column shows it at full height, however low the column is otherwise.
static void no_spike_is_lost(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->a.levels.known = false;
    scene_sample_resize(s, 120, 40);
    const tide_tui_rect r = curve_of(s);
    for (int x = 0; x < r.w; x++) s->min[x] = s->max[x] = 1000;
    s->max[17] = 524288;
    s->a.peak.t = 7;
    s->state.cursor = 7;
    scene_sample_draw(s, tide_tui_draw_curve);
    for (int y = r.y; y < r.y + r.h - 1; y++) {
        const tide_tui_cell cell = tide_tui_get(&s->grid, r.x + 17, y);
        assert_int_equal(cell.glyph, s->view.glyphs->spike);
        assert_int_equal(cell.role, TIDE_TUI_ROLE_SPIKE);
        assert_int_equal(tide_tui_get(&s->grid, r.x + 16, y).glyph, ' ');
    }
    scene_sample_destroy(s);
}

/// Twice as many columns as cells: a cell holds the extremes of both.
static void finer_columns_are_folded(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->a.levels.known = false;
    s->state.cursor = 7;
    const tide_tui_rect r = curve_of(s);
    for (int x = 0; x < 2 * r.w; x++) s->min[x] = s->max[x] = 65536;
    s->max[2 * 20 + 1] = 524288;
    s->scene.n_columns = (size_t)(2 * r.w);
    scene_sample_draw(s, tide_tui_draw_curve);
    assert_int_equal(filled(s, 20), 8 * r.h);
    assert_true(filled(s, 19) < 8 * r.h);
    assert_true(filled(s, 21) < 8 * r.h);
    scene_sample_destroy(s);
}

static void dots_stand_for_halves_of_a_cell(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->view.glyphs = tide_tui_glyphs_for(TIDE_TUI_GLYPHS_BRAILLE, false);
    s->a.levels.known = false;
    s->a.peak.t = 7;
    s->state.cursor = 7;
    const tide_tui_rect r = curve_of(s);
    for (int x = 0; x < 2 * r.w; x++) s->min[x] = s->max[x] = 0;
    s->min[10] = s->max[10] = 524288;
    s->min[13] = s->max[13] = 524288 / (4 * (uint64_t)r.h);
    s->scene.n_columns = (size_t)(2 * r.w);
    scene_sample_draw(s, tide_tui_draw_curve);
    for (int y = r.y; y < r.y + r.h; y++) assert_int_equal(tide_tui_get(&s->grid, r.x + 5, y).glyph, 0x2847);
    assert_int_equal(tide_tui_get(&s->grid, r.x + 6, r.y + r.h - 1).glyph, 0x2880);
    assert_int_equal(tide_tui_get(&s->grid, r.x + 7, r.y + r.h - 1).glyph, ' ');
    scene_sample_destroy(s);
}

static void lines_say_what_they_are_and_how_high(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 120, 44);
    s->a.lower_bound_bytes = s->a.levels.bound = 262144;
    s->scene.top_bytes = 655360;
    s->state.capacity_bytes = 655360;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "capacity 640.00 KiB ");
    scene_sample_has(s, "plan 512K, peak 480.00 KiB ");
    scene_sample_has(s, "lower bound 256.00 KiB ");
    scene_sample_has(s, "\u254D\u254D\u254D");
    scene_sample_has(s, "\u2550\u2550\u2550");
    scene_sample_has(s, "\u2500\u2500\u2500");
    s->a.levels.below = 71680;
    s->a.levels.bound += 71680;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "lower bound 256K + 70.0K ");
    scene_sample_resize(s, 40, 10);
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_lacks(s, "256");
    scene_sample_has(s, "bound");
    scene_sample_destroy(s);
}

/// What is reserved far above the curve has its line at the upper edge, and its label says so.
static void what_is_reserved_far_above(void **state) {
    (void)state;
    static uint64_t reserved[TIDE_TUI_MAX_COLUMNS];
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 120, 44);
    const tide_tui_rect r = curve_of(s);
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) reserved[i] = 4 * s->scene.top_bytes;
    s->a.levels.known = false;
    s->scene.reserved_max = reserved;
    s->scene.peak_reserved = 4 * s->scene.top_bytes;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "above: reserved 2.00 MiB");
    assert_int_equal(tide_tui_get(&s->grid, r.x + 3, r.y).glyph, s->view.glyphs->reserved);
    s->scene.top_bytes = s->scene.peak_reserved;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "reserved 2.00 MiB");
    scene_sample_lacks(s, "above");
    assert_int_equal(tide_tui_get(&s->grid, r.x + 3, r.y).glyph, s->view.glyphs->reserved);
    scene_sample_destroy(s);
}

static void one_kind_has_no_lines_of_all(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 120, 40);
    s->state.curve_kind = TIDE_KIND_WORKSPACE;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "Workspace only");
    scene_sample_lacks(s, "plan");
    scene_sample_lacks(s, "bound");
    scene_sample_lacks(s, "peak");
    scene_sample_destroy(s);
}

static void second_curves_lie_over_the_first(void **state) {
    (void)state;
    static uint64_t predicted[SAMPLE_COLUMNS], other[SAMPLE_COLUMNS];
    scene_sample *s = scene_sample_new();
    s->a.levels.known = false;
    scene_sample_resize(s, 80, 40);
    const tide_tui_rect r = curve_of(s);
    for (int x = 0; x < r.w; x++) {
        predicted[x] = 524288;
        other[x] = 1;
        s->min[x] = s->max[x] = 262144;
    }
    other[3] = 0;
    s->scene.predicted_max = predicted;
    s->scene.b_min = s->scene.b_max = other;
    s->state.cursor = 7;
    s->a.peak.t = 7;
    scene_sample_draw(s, tide_tui_draw_curve);
    assert_int_equal(tide_tui_get(&s->grid, r.x + 2, r.y).glyph, s->view.glyphs->predicted);
    const tide_tui_cell b = tide_tui_get(&s->grid, r.x + 2, r.y + r.h - 1);
    assert_int_equal(b.glyph, s->view.glyphs->other);
    assert_int_equal(b.role, TIDE_TUI_ROLE_OTHER);
    assert_int_equal(b.ground, TIDE_TUI_ROLE_CURVE);
    assert_int_equal(tide_tui_get(&s->grid, r.x + 3, r.y + r.h - 1).glyph, s->view.glyphs->rise[8]);
    scene_sample_destroy(s);
}

static void cursor_and_range_run_through_the_curve(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->state.cursor = 4;
    s->state.shows_range = true;
    s->state.range_begin = 5;
    s->state.range_end = 7;
    scene_sample_again(s);
    scene_sample_draw(s, tide_tui_draw_curve);
    const tide_tui_rect r = curve_of(s);
    const int cursor = r.x + tide_tui_column_of(s->state.window, r.w, 4);
    const int from = r.x + tide_tui_column_of(s->state.window, r.w, 5);
    const int to = r.x + tide_tui_column_of(s->state.window, r.w, 7);
    const tide_tui_cell crossed = tide_tui_get(&s->grid, cursor, r.y + r.h - 1);
    assert_int_equal(crossed.glyph, s->view.glyphs->cursor);
    assert_int_equal(crossed.ground, TIDE_TUI_ROLE_CURVE);
    for (int x = r.x; x < r.x + r.w; x++) {
        const bool inside = x >= from && x < to;
        assert_int_equal(tide_tui_get(&s->grid, x, r.y + 2).ground == TIDE_TUI_ROLE_RANGE, inside);
    }
    assert_int_equal(tide_tui_get(&s->grid, from, r.y + 2).glyph, s->view.glyphs->edge);
    assert_int_equal(tide_tui_get(&s->grid, to - 1, r.y + 2).glyph, s->view.glyphs->edge);
    scene_sample_destroy(s);
}

static void nothing_to_draw_is_said(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->scene.n_columns = 0;
    s->scene.top_bytes = 0;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "This plan holds no tensor that lives.");
    s->a.is_trace = true;
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "No block lived in this run.");
    snprintf(s->scene.error[TIDE_TUI_PANE_CURVE], 64, "cannot read 'x.tide': gone");
    scene_sample_draw(s, tide_tui_draw_curve);
    scene_sample_has(s, "read 'x.tide': gone");
    scene_sample_destroy(s);
}

// ---- ruler and minimap ----

static void the_ruler_has_ticks_marks_peak_and_cursor(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    tide_tui_mark marks[] = {{.name = 'k', .at = {.t = 5}}, {.name = 0, .at = {.t = 6}}, {.name = 'z', .at = {.t = 9}}};
    s->scene.marks = marks;
    s->scene.n_marks = 3;
    s->state.cursor = 7;
    s->view.glyphs = tide_tui_glyphs_of(true);
    scene_sample_draw(s, tide_tui_draw_ruler);
    const tide_tui_rect r = s->layout.ruler;
    const struct {
        int64_t t;
        uint32_t glyph;
    } want[] = {{0, '+'}, {2, '^'}, {5, 'k'}, {6, '*'}, {7, '|'}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const int x = r.x + tide_tui_column_of(s->state.window, r.w, want[i].t);
        assert_int_equal(tide_tui_get(&s->grid, x, r.y).glyph, want[i].glyph);
    }
    scene_sample_lacks(s, "z");
    scene_sample_has(s, "+0---");
    scene_sample_destroy(s);
}

/// Cursor, marks and peak may stand anywhere: what is printed is a whole time of a tick or of the cursor.
static void no_time_on_the_ruler_is_cut(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->view.glyphs = tide_tui_glyphs_of(true);
    s->a.axis = TIDE_AXIS_NS;
    s->a.end = 45000000;
    s->state.window = (tide_tui_window){0, 45000000};
    tide_tui_mark mark = {.name = 'k', .at = {.t = 20500000}};
    s->scene.marks = &mark;
    s->scene.n_marks = 1;
    for (int64_t t = 0; t < 45000000; t += 250000) {
        s->state.cursor = t;
        s->a.peak.t = 45000000 - 1 - t;
        scene_sample_draw(s, tide_tui_draw_ruler);
        tide_text text = scene_sample_text(s);
        char *line = text.data, cursor[32], tick[32];
        for (int y = 0; y < s->layout.ruler.y; y++) line = strchr(line, '\n') + 1;
        line[strcspn(line, "\n")] = '\0';
        for (size_t len = strlen(line); len > 0 && line[len - 1] == ' '; len--) line[len - 1] = '\0';
        tide_tui_format_time(&s->a, t, cursor, sizeof cursor);
        int n = 0;
        for (char *token = strtok_r(line, "-+|^k", &line); token != NULL; token = strtok_r(NULL, "-+|^k", &line)) {
            bool is_time = strspn(token, " ") == strlen(token) || strcmp(token, cursor) == 0;
            for (int64_t at = 0; at < 45000000; at += 5000000)
                is_time = is_time || strcmp(token, tide_tui_format_time(&s->a, at, tick, sizeof tick)) == 0;
            if (!is_time) fail_msg("'%s' with the cursor at %s", token, cursor);
            n += token[0] != ' ';
        }
        assert_true(n >= 1);
        tide_text_deinit(&text);
    }
    scene_sample_destroy(s);
}

static void the_minimap_holds_the_window_in_brackets(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->view.glyphs = tide_tui_glyphs_of(true);
    s->state.window = (tide_tui_window){2, 4};
    s->state.cursor = 3;
    scene_sample_again(s);
    scene_sample_draw(s, tide_tui_draw_ruler);
    const tide_tui_rect r = s->layout.minimap;
    assert_int_equal(tide_tui_get(&s->grid, r.x + r.w * 2 / 8, r.y).glyph, '[');
    assert_int_equal(tide_tui_get(&s->grid, r.x + r.w * 4 / 8 - 1, r.y).glyph, ']');
    assert_int_equal(tide_tui_get(&s->grid, r.x + 1, r.y).role, TIDE_TUI_ROLE_DIM);
    assert_int_equal(tide_tui_get(&s->grid, r.x + r.w * 5 / 16, r.y).role, TIDE_TUI_ROLE_CURVE);
    scene_sample_destroy(s);
}

static void panes_keep_to_their_rectangles(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->state.capacity_bytes = 524288;
    s->state.shows_range = true;
    s->state.range_end = 20;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int zoomed = 0; zoomed < 2; zoomed++) {
            s->state.window = zoomed ? (tide_tui_window){2, 3} : (tide_tui_window){0, 8};
            scene_sample_resize(s, sizes[i][0], sizes[i][1]);
            scene_sample_keeps_to(s, tide_tui_draw_curve, (tide_tui_rect[]){curve_of(s), s->layout.labels}, 2);
            scene_sample_keeps_to(s, tide_tui_draw_ruler, (tide_tui_rect[]){s->layout.ruler, s->layout.minimap}, 2);
        }
    }
    scene_sample_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_height_of_a_column_is_its_largest_value),
        tide_unit_test(no_spike_is_lost),
        tide_unit_test(finer_columns_are_folded),
        tide_unit_test(dots_stand_for_halves_of_a_cell),
        tide_unit_test(lines_say_what_they_are_and_how_high),
        tide_unit_test(what_is_reserved_far_above),
        tide_unit_test(one_kind_has_no_lines_of_all),
        tide_unit_test(second_curves_lie_over_the_first),
        tide_unit_test(cursor_and_range_run_through_the_curve),
        tide_unit_test(nothing_to_draw_is_said),
        tide_unit_test(the_ruler_has_ticks_marks_peak_and_cursor),
        tide_unit_test(no_time_on_the_ruler_is_cut),
        tide_unit_test(the_minimap_holds_the_window_in_brackets),
        tide_unit_test(panes_keep_to_their_rectangles),
    };
    return cmocka_run_group_tests_name("tui_draw_curve", tests, NULL, NULL);
}
