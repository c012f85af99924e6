// SPDX-License-Identifier: MIT
//
// The panes of text: inside their rectangles at every size, columns that give way by rank, sums that are sums, words
// for what is going on.
#include "tests/tui/scene_lists.h"

#include "tui/draw/format.h"
#include "tui/draw/panes.h"

static void (*const draws[TIDE_TUI_N_PANES])(const tide_tui_view *) = {
    [TIDE_TUI_PANE_TABLE] = tide_tui_draw_table,     [TIDE_TUI_PANE_OPERATORS] = tide_tui_draw_operators,
    [TIDE_TUI_PANE_POOLS] = tide_tui_draw_pools,     [TIDE_TUI_PANE_EXPLAIN] = tide_tui_draw_explain,
    [TIDE_TUI_PANE_COMPARE] = tide_tui_draw_compare, [TIDE_TUI_PANE_WHATIF] = tide_tui_draw_whatif,
    [TIDE_TUI_PANE_DETAILS] = tide_tui_draw_details,
};

static void draw_only(scene_lists *l, tide_tui_pane pane, int w, int h) {
    scene_lists_only(l, pane, w, h);
    scene_sample_draw(l->s, draws[pane]);
}

// ---- rectangles ----

/// A pane in the middle of a screen, in every size that a layout could give it.
static void keeps_to(scene_lists *l, tide_tui_pane pane, int w, int h) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_tui_rect r = {3, 2, w, h};
    l->s->layout = (tide_tui_layout){.width = w + 6, .height = h + 4};
    l->s->layout.panes[pane] = r;
    assert_tide_ok(tide_tui_grid_resize(&l->s->grid, w + 6, h + 4, &err), &err);
    scene_sample_keeps_to(l->s, draws[pane], &r, 1);
}

static void no_cell_outside_of_its_pane(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    for (int pane = 0; pane < TIDE_TUI_N_PANES; pane++) {
        if (draws[pane] == NULL) continue;
        for (int w = 3; w <= 130; w += w < 60 ? 1 : 17)
            for (int h = 1; h <= 24; h++) keeps_to(l, (tide_tui_pane)pane, w, h);
    }
    scene_lists_destroy(l);
}

/// Foreign names of any width and length push nothing out of a pane.
static void foreign_names_stay_inside(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    static const char wild[] = "\xE6\xBC\xA2\xE5\xAD\x97\xE6\xBC\xA2\xE5\xAD\x97\xE6\xBC\xA2\xE5\xAD\x97\x1B[31m\xFF\n"
                               "/a/very/long/name/of/a/tensor/that/goes/on/and/on/and/on/and/on/Conv_output_0";
    l->live[0].site.name = l->live[0].site.owner = wild;
    l->rows[0].name = l->rows[0].owner = wild;
    l->operators[2].name = wild;
    l->s->scene.selection.site.name = l->s->scene.selection.site.owner = wild;
    l->without[0].step = wild;
    for (int pane = 0; pane < TIDE_TUI_N_PANES; pane++) {
        if (draws[pane] == NULL) continue;
        for (int w = 4; w <= 130; w += 9)
            for (int h = 1; h <= 12; h++) keeps_to(l, (tide_tui_pane)pane, w, h);
    }
    scene_lists_destroy(l);
}

// ---- headings ----

static void the_focus_shows_without_colour(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    for (int ascii = 0; ascii < 2; ascii++) {
        l->s->view.glyphs = tide_tui_glyphs_of(ascii);
        scene_lists_only(l, TIDE_TUI_PANE_TABLE, 60, 8);
        l->s->state.focus = TIDE_TUI_PANE_TABLE;
        scene_sample_draw(l->s, tide_tui_draw_table);
        scene_sample_has(l->s, "TABLE:");
        const uint32_t focused = tide_tui_get(&l->s->grid, 0, 0).glyph;
        l->s->state.focus = TIDE_TUI_PANE_GANTT;
        scene_sample_draw(l->s, tide_tui_draw_table);
        scene_sample_has(l->s, "table:");
        assert_int_not_equal(focused, tide_tui_get(&l->s->grid, 0, 0).glyph);
    }
    scene_lists_destroy(l);
}

static void facts_end_at_a_comma_or_are_left_out(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    draw_only(l, TIDE_TUI_PANE_COMPARE, 200, 10);
    scene_sample_has(l->s, "1 added, 1 removed, 1 resized, 2 moved, 1 retimed, 1 same");
    draw_only(l, TIDE_TUI_PANE_COMPARE, 80, 10);
    scene_sample_has(l->s, "COMPARE: A at step 2, B at step 2");
    scene_sample_has(l->s, "1 added, 1 removed, 1 resized, 2 moved\xE2\x80\xA6");
    scene_sample_lacks(l->s, "1 ret");
    scene_lists_destroy(l);
}

// ---- tables ----

static void columns_give_way_by_rank_and_numbers_stay_whole(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    draw_only(l, TIDE_TUI_PANE_TABLE, 120, 10);
    static const char *const all[] = {"name", "op", "kind", "size", "share", "in all", "born", "place", "458,752"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) scene_sample_has(l->s, all[i]);
    for (int w = 40; w < 120; w++) {
        draw_only(l, TIDE_TUI_PANE_TABLE, w, 10);
        scene_sample_has(l->s, "conv2_out");
        scene_sample_has(l->s, "256.00 KiB"); // what is asked for is whole at any width
        scene_sample_has(l->s, "53.3 %");
    }
    scene_sample_lacks(l->s, "\xE2\x80\xA6");
    draw_only(l, TIDE_TUI_PANE_TABLE, 40, 10);
    scene_sample_lacks(l->s, "place");
    scene_lists_destroy(l);
}

/// The ten largest are the first ten rows, and the last column says how much of the peak they are together.
static void the_table_answers_who_makes_the_peak(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    draw_only(l, TIDE_TUI_PANE_TABLE, 100, 10);
    scene_sample_has(l->s, "TABLE: live at step 2 (Conv_2), peak");
    scene_sample_has(l->s, "3 tensors, 480.00 KiB");
    scene_sample_has(l->s, "53.3 %   53.3 %");
    scene_sample_has(l->s, "40.0 %   93.3 %");
    scene_sample_has(l->s, "6.7 %  100.0 %");
    scene_lists_destroy(l);
}

/// Whatever row is selected, it is on the screen, and it is marked by more than a colour.
static void the_selected_row_is_on_the_screen(void **state) {
    (void)state;
    enum { MANY = 500 };
    scene_lists *l = scene_lists_new();
    tide_live_item *many = tide_host_calloc(MANY, sizeof *many);
    assert_non_null(many);
    char names[MANY][24];
    for (int i = 0; i < MANY; i++) {
        many[i] = l->live[0];
        snprintf(names[i], sizeof names[i], "tensor_%d_", i);
        many[i].site.name = names[i];
    }
    l->alive.items = many;
    l->alive.n = MANY;
    for (int h = 1; h <= 9; h += 4) {
        for (size_t row = 0; row < MANY; row += 7) {
            scene_lists_only(l, TIDE_TUI_PANE_TABLE, 80, h);
            l->s->state.pane_row[TIDE_TUI_PANE_TABLE] = row;
            tide_tui_pane_settle(&l->s->state, &l->s->scene);
            scene_sample_draw(l->s, tide_tui_draw_table);
            char want[32];
            snprintf(want, sizeof want, "> %.29s", names[row]);
            scene_sample_has(l->s, want);
            const tide_tui_list_place place = tide_tui_pane_list(&l->s->scene, TIDE_TUI_PANE_TABLE);
            assert_true(row >= place.top && row - place.top < (size_t)place.r.h);
            const int y = place.r.y + (int)(row - place.top);
            assert_int_equal(tide_tui_get(&l->s->grid, 0, y).glyph, '>');
            assert_int_equal(tide_tui_get(&l->s->grid, 40, y).marks, TIDE_TUI_MARK_SELECTED);
            assert_int_equal(tide_tui_pane_row_at(&l->s->scene, TIDE_TUI_PANE_TABLE, y), row);
        }
    }
    l->s->state.pane_row[TIDE_TUI_PANE_TABLE] = 99999; // more than there are: the last one
    tide_tui_pane_settle(&l->s->state, &l->s->scene);
    assert_int_equal(l->s->state.pane_row[TIDE_TUI_PANE_TABLE], MANY - 1);
    tide_host_free(many);
    scene_lists_destroy(l);
}

// ---- each pane's answer ----

static void operators_tell_makes_frees_and_live(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    draw_only(l, TIDE_TUI_PANE_OPERATORS, 100, 10);
    scene_sample_has(l->s, "288.00 KiB  224.00 KiB  480.00 KiB  100.0 %  cursor, peak");
    l->s->scene.n_operators = 0;
    draw_only(l, TIDE_TUI_PANE_OPERATORS, 60, 6);
    scene_sample_has(l->s, "This plan has no names of steps.");
    scene_lists_destroy(l);
}

static void pools_say_which_allocator_caches_unused_memory(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    for (int w = 60; w <= 140; w += 10) {
        draw_only(l, TIDE_TUI_PANE_POOLS, w, 14);
        scene_sample_has(l->s, "stream_caching on cpu (Workspace): 2.00");
        scene_sample_has(l->s, "> stream_caching");
        scene_sample_has(l->s, "leaks: 2 sites, 40.50 KiB");
        scene_sample_has(l->s, "kept");
        scene_sample_has(l->s, "step 5"); // where it began
    }
    scene_sample_has(l->s, "yes, 3.20 KiB/s");
    scene_sample_has(l->s, "3 of 9");
    l->pool_items[0].unused_bytes = 0;
    draw_only(l, TIDE_TUI_PANE_POOLS, 100, 14);
    scene_sample_has(l->s, "All that was held was used at some moment of this window.");
    scene_lists_destroy(l);
}

/// One selection goes through both tables, and a click means the row that is drawn there.
static void pools_and_leaks_are_one_list(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    assert_int_equal(tide_tui_pane_rows(&l->s->scene, TIDE_TUI_PANE_POOLS), 4);
    static const char *const names[] = {"> stream_caching", "> cpu", "> kept", "> table"};
    for (size_t row = 0; row < 4; row++) {
        for (int h = 3; h <= 14; h++) {
            scene_lists_only(l, TIDE_TUI_PANE_POOLS, 80, h);
            l->s->state.pane_row[TIDE_TUI_PANE_POOLS] = row;
            tide_tui_pane_settle(&l->s->state, &l->s->scene);
            scene_sample_draw(l->s, tide_tui_draw_pools);
            scene_sample_has(l->s, names[row]);
            for (int y = 0; y < h + 1; y++) {
                const size_t at = tide_tui_pane_row_at(&l->s->scene, TIDE_TUI_PANE_POOLS, y);
                if (tide_tui_get(&l->s->grid, 0, y).glyph == '>') assert_int_equal(at, row);
            }
        }
    }
    scene_lists_destroy(l);
}

/// With room for both tables each line is the same row, whichever is selected.
static void lines_of_pools_and_leaks_keep_their_rows(void **state) {
    (void)state;
    enum { HEIGHT = 14 };
    scene_lists *l = scene_lists_new();
    size_t row_of[HEIGHT + 1], n_rows = 0;
    scene_lists_only(l, TIDE_TUI_PANE_POOLS, 80, HEIGHT);
    for (size_t row = 0; row < 4; row++) {
        l->s->state.pane_row[TIDE_TUI_PANE_POOLS] = row;
        tide_tui_pane_settle(&l->s->state, &l->s->scene);
        for (int y = 0; y <= HEIGHT; y++) {
            const size_t at = tide_tui_pane_row_at(&l->s->scene, TIDE_TUI_PANE_POOLS, y);
            if (row == 0) n_rows += at != SIZE_MAX;
            if (row == 0) row_of[y] = at;
            assert_int_equal(at, row_of[y]);
        }
    }
    assert_int_equal(n_rows, 4);
    scene_lists_destroy(l);
}

static void compare_sums_to_the_difference(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    int64_t sum = 0;
    for (size_t i = 0; i < l->diff.n_by_owner; i++)
        sum += (int64_t)l->diff.by_owner[i].b_bytes - (int64_t)l->diff.by_owner[i].a_bytes;
    assert_int_equal(sum, (int64_t)l->diff.b_bytes - (int64_t)l->diff.a_bytes);
    draw_only(l, TIDE_TUI_PANE_COMPARE, 90, 16);
    scene_sample_has(l->s, "held    512.00 KiB 357.00 KiB -155.00 KiB   -30.3 %");
    scene_sample_has(l->s, "-192.00 KiB");
    scene_sample_has(l->s, "(holes)");
    scene_sample_has(l->s, "= B - A");
    scene_sample_has(l->s, "resized, moved");
    // Too few lines for all steps: the rest is one line, so that what is seen still sums.
    draw_only(l, TIDE_TUI_PANE_COMPARE, 90, 11);
    scene_sample_has(l->s, "2 others                  +37.00 KiB");
    l->s->scene.diff = NULL;
    draw_only(l, TIDE_TUI_PANE_COMPARE, 90, 6);
    scene_sample_has(l->s, "There is no second input.");
    scene_lists_destroy(l);
}

static void whatif_tells_what_to_press(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    draw_only(l, TIDE_TUI_PANE_WHATIF, 100, 12);
    scene_sample_has(l->s, "in-place relu1_out conv0_out");
    scene_sample_has(l->s, "64.00 KiB   12.5 %  448.00 KiB");
    char key[TIDE_TUI_WORD], want[80];
    snprintf(want, sizeof want, "%s %s", tide_tui_key_of(TIDE_TUI_APPLY, key, sizeof key),
             tide_tui_binding_of(TIDE_TUI_APPLY)->name);
    scene_sample_has(l->s, want);
    l->s->state.edits[0] = l->advice[0].edit;
    l->s->state.n_edits = 1;
    l->s->state.b_is_whatif = true;
    l->s->b = l->s->a;
    l->s->b.plan_bytes = 458752;
    l->s->scene.b = &l->s->b;
    draw_only(l, TIDE_TUI_PANE_WHATIF, 100, 12);
    scene_sample_has(l->s, "1  in-place relu1_out conv0_out");
    scene_sample_has(l->s, "With this edit the plan is 448.00 KiB instead of 512.00 KiB: -64.00 KiB (-12.5 %).");
    snprintf(l->s->scene.error[TIDE_TUI_PANE_WHATIF], 256, "there is no tensor 'x'");
    draw_only(l, TIDE_TUI_PANE_WHATIF, 100, 12);
    scene_sample_has(l->s, "error: there is no tensor 'x'");
    scene_lists_destroy(l);
}

static void details_answer_first_what_is_asked_most(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    for (int h = 3; h <= 8; h++) {
        draw_only(l, TIDE_TUI_PANE_DETAILS, 80, h);
        scene_sample_has(l->s, "DETAILS: relu1_out");
        scene_sample_has(l->s, "alive: this step reads it last");
        scene_sample_has(l->s, "192.00 KiB (196,608 B)");
        scene_sample_has(l->s, "alive at the cursor");
    }
    draw_only(l, TIDE_TUI_PANE_DETAILS, 120, 6);
    static const char *const all[] = {"step 1 to 3", "lasts   2 steps", "Relu_1 (step 1)", "262,144", "Conv_2"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) scene_sample_has(l->s, all[i]);
    l->s->scene.has_selection = false;
    draw_only(l, TIDE_TUI_PANE_DETAILS, 80, 6);
    scene_sample_has(l->s, "Nothing is selected.");
    scene_lists_destroy(l);
}

// ---- what is going on ----

static void progress_and_errors_are_said_in_words(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    tide_tui_scene *s = &l->s->scene;
    s->live = NULL;
    s->pools = NULL;
    s->explanation = NULL;
    s->diff = NULL;
    s->n_operators = 0;
    static const tide_tui_pane panes[] = {TIDE_TUI_PANE_TABLE, TIDE_TUI_PANE_OPERATORS, TIDE_TUI_PANE_POOLS,
                                          TIDE_TUI_PANE_EXPLAIN, TIDE_TUI_PANE_COMPARE};
    for (size_t i = 0; i < sizeof panes / sizeof panes[0]; i++) {
        snprintf(s->busy[panes[i]], sizeof s->busy[0], "reading events 43 %%");
        draw_only(l, panes[i], 60, 6);
        scene_sample_has(l->s, "Working: reading events 43 %\xE2\x80\xA6");
        snprintf(s->error[panes[i]], sizeof s->error[0], "The events of this moment were dropped.");
        draw_only(l, panes[i], 60, 6);
        scene_sample_has(l->s, "The events of this moment were dropped.");
    }
    scene_lists_destroy(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cell_outside_of_its_pane),
        cmocka_unit_test(foreign_names_stay_inside),
        cmocka_unit_test(the_focus_shows_without_colour),
        cmocka_unit_test(facts_end_at_a_comma_or_are_left_out),
        cmocka_unit_test(columns_give_way_by_rank_and_numbers_stay_whole),
        cmocka_unit_test(the_table_answers_who_makes_the_peak),
        cmocka_unit_test(the_selected_row_is_on_the_screen),
        cmocka_unit_test(operators_tell_makes_frees_and_live),
        cmocka_unit_test(pools_say_which_allocator_caches_unused_memory),
        cmocka_unit_test(pools_and_leaks_are_one_list),
        cmocka_unit_test(lines_of_pools_and_leaks_keep_their_rows),
        cmocka_unit_test(compare_sums_to_the_difference),
        cmocka_unit_test(whatif_tells_what_to_press),
        cmocka_unit_test(details_answer_first_what_is_asked_most),
        cmocka_unit_test(progress_and_errors_are_said_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
