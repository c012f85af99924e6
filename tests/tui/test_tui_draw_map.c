// SPDX-License-Identifier: MIT
//
// The picture of addresses over time: two places a cell, holes, regions, letters without colours.
#include "tests/tui/scene_sample.h"

static scene_sample *map_sample(int width, int height) {
    scene_sample *s = scene_sample_new();
    s->state.preset = TIDE_TUI_PRESET_MEMORY;
    s->state.focus = TIDE_TUI_PANE_MAP;
    static char label[] = "Workspace on cpu";
    s->regions[0].label = label;
    s->state.cursor = 8; // out of the picture
    scene_sample_resize(s, width, height);
    return s;
}

static tide_space_cell place(const scene_sample *s, int x, int row) { return s->cells[row * s->layout.map.w + x]; }

/// The colours of the two halves of a cell, from below: what stands for a place in the picture.
static int colour_of_half(const scene_sample *s, int x, int y, bool upper) {
    const tide_tui_cell c = tide_tui_get(&s->grid, x, y);
    const tide_tui_glyphs *g = s->view.glyphs;
    if (c.glyph == g->full || c.glyph == g->hole) return c.role;
    if (c.glyph == g->upper) return upper ? c.role : c.ground;
    if (c.glyph == g->lower) return upper ? c.ground : c.role;
    return TIDE_TUI_ROLE_TEXT;
}

static void every_place_has_its_own_half_of_a_cell(void **state) {
    (void)state;
    scene_sample *s = map_sample(120, 40);
    s->regions[0].bound_bytes = 0;
    scene_sample_draw(s, tide_tui_draw_map);
    const tide_tui_rect r = s->layout.map;
    for (int y = 0; y < r.h; y++) {
        for (int x = 0; x < r.w; x++) {
            for (int half = 0; half < 2; half++) {
                const uint32_t item = place(s, x, 2 * (r.h - 1 - y) + half).item;
                const int colour = colour_of_half(s, r.x + x, r.y + y, half == 1);
                if (item == TIDE_SPACE_HOLE) {
                    assert_int_equal(colour, TIDE_TUI_ROLE_HOLE);
                } else if (item == TIDE_SPACE_FREE) {
                    assert_int_equal(colour, TIDE_TUI_ROLE_TEXT);
                } else {
                    assert_in_range(colour, TIDE_TUI_ROLE_PLACE, TIDE_TUI_N_ROLES - 1);
                }
            }
        }
    }
    scene_sample_destroy(s);
}

/// An item has one colour everywhere, and those that touch it have others.
static void neighbours_are_told_apart(void **state) {
    (void)state;
    static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 60}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int letters = 0; letters < 2; letters++) {
            scene_sample *s = map_sample(sizes[i][0], sizes[i][1]);
            s->regions[0].bound_bytes = 0;
            s->view.glyphs = tide_tui_glyphs_for(TIDE_TUI_GLYPHS_BLOCK, letters == 1);
            scene_sample_draw(s, tide_tui_draw_map);
            const tide_tui_rect r = s->layout.map;
            int look_of[SAMPLE_LIVES] = {0};
            for (int y = 0; y < r.h; y++) {
                for (int x = 0; x < r.w; x++) {
                    const uint32_t item = place(s, x, 2 * (r.h - 1 - y)).item;
                    if (item >= SAMPLE_LIVES) continue;
                    const int look = letters ? (int)tide_tui_get(&s->grid, r.x + x, r.y + y).glyph
                                             : colour_of_half(s, r.x + x, r.y + y, false);
                    if (look_of[item] == 0) look_of[item] = look;
                    assert_int_equal(look_of[item], look);
                    const uint32_t left = x > 0 ? place(s, x - 1, 2 * (r.h - 1 - y)).item : item;
                    if (left < SAMPLE_LIVES && left != item) assert_int_not_equal(look_of[left], look);
                }
            }
            scene_sample_destroy(s);
        }
    }
}

static void without_colours_items_are_letters_and_holes_are_seen(void **state) {
    (void)state;
    scene_sample *s = map_sample(120, 40);
    s->view.glyphs = tide_tui_glyphs_of(true);
    s->state.item = 3;
    scene_sample_draw(s, tide_tui_draw_map);
    const tide_tui_rect r = s->layout.map;
    int n_selected = 0, n_holes = 0;
    for (int y = 0; y < r.h; y++) {
        for (int x = 0; x < r.w; x++) {
            const uint32_t glyph = tide_tui_get(&s->grid, r.x + x, r.y + y).glyph;
            const tide_space_cell lower = place(s, x, 2 * (r.h - 1 - y)), upper = place(s, x, 2 * (r.h - 1 - y) + 1);
            assert_true(glyph < 0x7F);
            if (glyph == '@') assert_true(lower.item == 3 || upper.item == 3);
            if (glyph == '.') assert_true(lower.item == TIDE_SPACE_HOLE || upper.item == TIDE_SPACE_HOLE);
            n_selected += glyph == '@';
            n_holes += glyph == '.';
        }
    }
    assert_true(n_selected > 0 && n_holes > 0);
    scene_sample_destroy(s);
}

static void regions_have_names_sizes_and_bounds(void **state) {
    (void)state;
    static char other_label[] = "pool 3";
    scene_sample *s = map_sample(120, 40);
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_has(s, "Workspace on cpu 512.00 KiB");
    scene_sample_has(s, "bound 480.00 KiB");
    scene_sample_has(s, "1 region, 512.00 KiB");
    scene_sample_resize(s, 80, 24);
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_has(s, "Workspace on cpu");
    s->regions[1] = (tide_region){.label = other_label, .bytes = 524288, .at = 524288, .begin = 0, .end = 8};
    s->space.n = 2;
    s->space.bytes = 1048576;
    scene_sample_resize(s, 120, 40);
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_has(s, "pool 3 512.00 KiB");
    s->state.space_hi = 262144; // zoomed into the first region
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_lacks(s, "pool 3");
    scene_sample_has(s, "Workspace on cpu");
    scene_sample_destroy(s);
}

/// Once each, on the item's own colour, in the middle of its height.
static void names_stand_in_what_the_items_take(void **state) {
    (void)state;
    scene_sample *s = map_sample(120, 40);
    s->state.item = 3;
    s->scene.has_selection = true;
    s->scene.selection = (tide_item_facts){.item = 3, .site = {.name = "conv2_out"}};
    scene_sample_draw(s, tide_tui_draw_map);
    const tide_tui_rect r = s->layout.map;
    int n = 0;
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = r.x; x < r.x + r.w; x++) {
            const tide_tui_cell cell = tide_tui_get(&s->grid, x, y);
            if (cell.glyph < 'a' || cell.glyph > 'z') continue;
            assert_int_equal(place(s, x - r.x, 2 * (r.h - 1 - (y - r.y))).item, 3);
            assert_int_equal(cell.marks, TIDE_TUI_MARK_SELECTED);
            n++;
        }
    }
    assert_int_equal(n, (int)strlen("convout"));
    scene_sample_has(s, "\u2588conv2_out\u2588");
    scene_sample_destroy(s);
}

static void many_items_in_a_cell_are_no_item(void **state) {
    (void)state;
    scene_sample *s = map_sample(80, 24);
    const tide_tui_rect r = s->layout.map;
    s->regions[0].bound_bytes = 0;
    for (int i = 0; i < r.w * r.h * 2; i++) s->cells[i] = (tide_space_cell){(uint32_t)(i % 7), true};
    scene_sample_draw(s, tide_tui_draw_map);
    assert_int_equal(tide_tui_get(&s->grid, r.x, r.y).glyph, s->view.glyphs->shared);
    s->view.glyphs = tide_tui_glyphs_of(true);
    scene_sample_draw(s, tide_tui_draw_map);
    assert_int_equal(tide_tui_get(&s->grid, r.x, r.y).glyph, '*');
    for (int i = 0; i < r.w * r.h * 2; i++) s->cells[i] = (tide_space_cell){TIDE_SPACE_OUTSIDE, false};
    scene_sample_draw(s, tide_tui_draw_map);
    assert_int_equal(tide_tui_get(&s->grid, r.x, r.y).glyph, '/');
    scene_sample_destroy(s);
}

/// One moment is drawn as a bar without a time axis: nothing else in the plane, no cursor, and the title says which
/// moment.
static void one_moment_is_a_bar(void **state) {
    (void)state;
    enum { W = 10 };
    scene_sample *s = map_sample(120, 40);
    const tide_tui_rect r = s->layout.map;
    s->regions[0].bound_bytes = 0;
    s->state.cursor = 4;
    s->scene.map_is_moment = true;
    s->scene.cells_w = W;
    s->scene.map_at = (tide_moment){3, 0};
    for (int y = 0; y < 2 * r.h; y++) {
        for (int x = 0; x < W; x++) s->cells[y * W + x] = (tide_space_cell){.item = (uint32_t)(y / 8)};
    }
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_has(s, "MAP: only step 3 (MaxPool_3) (too many blocks for all times), 1 region, 512.00 KiB");
    for (int y = 0; y < r.h; y++) {
        for (int x = 0; x < r.w; x++) {
            const tide_tui_cell cell = tide_tui_get(&s->grid, r.x + x, r.y + y);
            if (x >= W) assert_int_equal(cell.glyph, ' ');
            if (x < W) assert_int_not_equal(cell.glyph, ' ');
        }
    }
    scene_sample_destroy(s);
}

static void nothing_with_a_place_is_said(void **state) {
    (void)state;
    scene_sample *s = map_sample(80, 24);
    s->scene.space = NULL;
    s->scene.cells = NULL;
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_has(s, "Nothing here has a place in memory.");
    snprintf(s->scene.error[TIDE_TUI_PANE_MAP], 64, "places of 10,000,000 blocks were not kept");
    scene_sample_draw(s, tide_tui_draw_map);
    scene_sample_has(s, "were not kept");
    scene_sample_destroy(s);
}

static void the_pane_keeps_to_itself(void **state) {
    (void)state;
    static const int sizes[][2] = {{40, 10}, {60, 18}, {80, 24}, {120, 40}, {200, 60}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        scene_sample *s = map_sample(sizes[i][0], sizes[i][1]);
        s->state.cursor = 3;
        s->state.space_cursor = 100000;
        scene_sample_keeps_to(s, tide_tui_draw_map, &s->layout.panes[TIDE_TUI_PANE_MAP], 1);
        scene_sample_destroy(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_place_has_its_own_half_of_a_cell),
        tide_unit_test(neighbours_are_told_apart),
        tide_unit_test(without_colours_items_are_letters_and_holes_are_seen),
        tide_unit_test(regions_have_names_sizes_and_bounds),
        tide_unit_test(names_stand_in_what_the_items_take),
        tide_unit_test(many_items_in_a_cell_are_no_item),
        tide_unit_test(one_moment_is_a_bar),
        tide_unit_test(nothing_with_a_place_is_said),
        tide_unit_test(the_pane_keeps_to_itself),
    };
    return cmocka_run_group_tests_name("tui_draw_map", tests, NULL, NULL);
}
