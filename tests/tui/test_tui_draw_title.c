// SPDX-License-Identifier: MIT
//
// The two lines above everything: what is never left out, at any size.
#include "tests/tui/scene_sample.h"

static void gap_peak_and_title_are_there_at_every_size(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    for (int h = TIDE_TUI_MIN_HEIGHT; h < 50; h += 3) {
        for (int w = TIDE_TUI_MIN_WIDTH; w < 230; w += 7) {
            scene_sample_resize(s, w, h);
            scene_sample_draw(s, tide_tui_draw_title);
            scene_sample_has(s, "gap 6.7 %");
            scene_sample_has(s, w < 60 ? "peak 480K" : "peak 480.00 KiB");
            scene_sample_has(s, " small");
        }
    }
    scene_sample_destroy(s);
}

static void the_summary_says_it_in_full_where_it_fits(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 200, 60);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "smallnet: planned, greedy_by_size");
    scene_sample_has(s, "plan 512.00 KiB");
    scene_sample_has(s, "lower bound 480.00 KiB");
    scene_sample_has(s, "naive 936.00 KiB");
    scene_sample_has(s, "10 tensors");
    scene_sample_has(s, "peak at step 2");
    scene_sample_has(s, "by begin");
    scene_sample_has(s, "8 steps");
    scene_sample_resize(s, 80, 24);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "plan 512.00 KiB");
    scene_sample_has(s, "bound 480K");
    scene_sample_destroy(s);
}

static void filters_and_what_they_hide_always_show(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->state.n_filters = 1;
    snprintf(s->state.filters[0], sizeof s->state.filters[0], "size>=64k kind=workspace alive@peak");
    s->rows.n_hidden = 6;
    static const int widths[] = {40, 60, 80, 100, 160};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        scene_sample_resize(s, widths[i], 24);
        scene_sample_draw(s, tide_tui_draw_title);
        scene_sample_has(s, "filter ");
        scene_sample_has(s, "hidden");
        scene_sample_has(s, "gap 6.7 %");
    }
    scene_sample_has(s, "filter size>=64k kind=workspace alive@peak");
    scene_sample_has(s, "6 of 10 tensors hidden");
    s->state.n_filters = 2;
    snprintf(s->state.filters[1], sizeof s->state.filters[1], "conv");
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "alive@peak & conv");
    s->state.filters_off = true;
    s->rows.n_hidden = 0;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "filter off: size");
    scene_sample_resize(s, 40, 10);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "filter off");
    s->state.filters_off = false;
    s->rows.n_hidden = 6;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "6 hidden");
    scene_sample_destroy(s);
}

static void capacity_is_answered_with_yes_or_no(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 160, 40);
    s->state.capacity_bytes = 524288;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "fits 512.00 KiB");
    s->state.capacity_bytes = 524287; // the peak would fit, the planned buffer does not
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "does not fit 512.00 KiB: 1 B too much");
    scene_sample_resize(s, 80, 24);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "over by 1 B ");
    scene_sample_destroy(s);
}

static void errors_and_live_states_show(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    snprintf(s->a.trouble, sizeof s->a.trouble, "cut short: disk full");
    s->a.n_lost = 1234;
    s->state.is_recording = true;
    scene_sample_resize(s, 160, 40);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "cut short: disk full");
    scene_sample_has(s, "1,234 events lost");
    scene_sample_has(s, "LIVE  peak");
    s->state.follows = true;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "LIVE, following  peak");
    s->state.is_paused = true;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "PAUSED  peak");
    scene_sample_lacks(s, "LIVE");
    scene_sample_destroy(s);
}

static void a_pair_has_both_names(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->b = s->a;
    s->b.title = "smallnet: planned, search";
    s->scene.b = &s->b;
    scene_sample_resize(s, 120, 40);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "A smallnet: planned, greedy_by_size   B smallnet: planned, search");
    scene_sample_resize(s, 80, 24); // each is cut by itself
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "A smallnet: plan\u2026greedy_by_size   B smallnet: planned, search");
    s->state.b_is_whatif = true;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "A smallnet: planned, greedy_by_size   B what if");
    scene_sample_destroy(s);
}

static void both_lines_keep_to_themselves(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    static const int sizes[][2] = {{40, 10}, {60, 18}, {80, 24}, {120, 40}, {200, 60}};
    s->a.title =
        "a title that is longer than any line of a screen could be, with \u6f22\u5b57 in it, again and again and "
        "again and again and again and again and again and again and again and again and again and again";
    s->state.n_filters = 1;
    memset(s->state.filters[0], 'x', sizeof s->state.filters[0] - 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        scene_sample_resize(s, sizes[i][0], sizes[i][1]);
        scene_sample_keeps_to(s, tide_tui_draw_title, (tide_tui_rect[]){s->layout.title, s->layout.summary}, 2);
    }
    scene_sample_destroy(s);
}

static void a_screen_that_is_too_small_says_what_it_needs(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    scene_sample_resize(s, 39, 10);
    assert_true(s->layout.too_small);
    scene_sample_draw(s, tide_tui_draw_too_small);
    scene_sample_has(s, "needs 40x10, has 39x10 (q quits)");
    scene_sample_resize(s, 7, 3);
    scene_sample_draw(s, tide_tui_draw_too_small);
    scene_sample_has(s, "needs  \n40x10, \nhas 7x3\n");
    scene_sample_resize(s, 1, 1);
    scene_sample_draw(s, tide_tui_draw_too_small);
    scene_sample_destroy(s);
}

/// The peak of what allocators hold, and what there is, stand beside the peak of what lives.
static void what_runs_out_is_said(void **state) {
    (void)state;
    scene_sample *s = scene_sample_new();
    s->scene.whole_reserved = 2 << 20;
    scene_sample_resize(s, 120, 40);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "peak 480.00 KiB live, 2.00 MiB reserved ");
    s->state.capacity_bytes = 1 << 20;
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "peak 480.00 KiB live, 2.00 MiB reserved of 1.00 MiB");
    scene_sample_has(s, "does not fit 1.00 MiB: 1.00 MiB too much");
    scene_sample_resize(s, 40, 10);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "480K, 2.00M res");
    s->scene.whole_reserved = 0;
    scene_sample_resize(s, 80, 24);
    scene_sample_draw(s, tide_tui_draw_title);
    scene_sample_has(s, "peak 480K of 1.00M");
    scene_sample_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(gap_peak_and_title_are_there_at_every_size),
        tide_unit_test(the_summary_says_it_in_full_where_it_fits),
        tide_unit_test(filters_and_what_they_hide_always_show),
        tide_unit_test(capacity_is_answered_with_yes_or_no),
        tide_unit_test(what_runs_out_is_said),
        tide_unit_test(errors_and_live_states_show),
        tide_unit_test(a_pair_has_both_names),
        tide_unit_test(both_lines_keep_to_themselves),
        tide_unit_test(a_screen_that_is_too_small_says_what_it_needs),
    };
    return cmocka_run_group_tests_name("tui_draw_title", tests, NULL, NULL);
}
