// SPDX-License-Identifier: MIT
//
// Beside the map and below it: names of regions stand at their own lines, whatever the width; letters have a legend.
#include "tests/tui/scene_sample.h"
#include "tests/tui/view_fixture.h"

enum { N_REGIONS = 6 };

/// Regions of very different sizes: some share a line of the screen.
static scene_sample *sample_of_regions(tide_region regions[N_REGIONS], int width, int height) {
    static char labels[N_REGIONS][40];
    static const uint64_t bytes[N_REGIONS] = {20971520, 2097152, 2097152, 4096, 2097152, 131072};
    scene_sample *s = scene_sample_new();
    uint64_t at = 0;
    for (int i = 0; i < N_REGIONS; i++) {
        snprintf(labels[i], sizeof labels[i], "stream_caching segment %d", i + 1);
        regions[i] =
            (tide_region){.label = labels[i], .tail = strlen("stream_caching "), .bytes = bytes[i], .at = at, .end = 8};
        at += bytes[i];
    }
    s->space = (tide_space){.regions = regions, .n = N_REGIONS, .bytes = at, .has_holes = true};
    s->state.preset = TIDE_TUI_PRESET_MEMORY;
    s->state.focus = TIDE_TUI_PANE_MAP;
    scene_sample_resize(s, width, height);
    return s;
}

/// The text of a line beside the map, without blanks in front.
static void label_at(const scene_sample *s, int y, char *buf, size_t buf_bytes) {
    const tide_tui_rect r = s->layout.map_labels;
    size_t n = 0;
    for (int x = r.x; x < r.x + r.w - 1 && n + 1 < buf_bytes; x++) {
        const uint32_t glyph = tide_tui_get(&s->grid, x, y).glyph;
        if (n > 0 || glyph != ' ') buf[n++] = glyph < 0x7F ? (char)glyph : '~';
    }
    while (n > 0 && buf[n - 1] == ' ') n--;
    buf[n] = 0;
}

/// Whether some of the region lies in the line.
static bool lies_at(const scene_sample *s, const tide_region *region, int y) {
    const tide_tui_rect r = s->layout.map;
    const uint64_t line = (uint64_t)(r.y + r.h - 1 - y), lo = s->space.bytes * line / (uint64_t)r.h,
                   hi = s->space.bytes * (line + 1) / (uint64_t)r.h;
    return region->at < hi && region->at + region->bytes > lo;
}

static void check_labels(int width, int height) {
    tide_region regions[N_REGIONS];
    scene_sample *s = sample_of_regions(regions, width, height);
    char text[64];
    int n_named = 0, n_others = 0;
    scene_sample_draw(s, tide_tui_draw_map);
    const tide_tui_rect r = s->layout.map;
    for (int y = r.y; y < r.y + r.h; y++) {
        label_at(s, y, text, sizeof text);
        assert_int_not_equal(text[0], '~');
        const char *number = strstr(text, "segm"), *others = strchr(text, '+');
        if (number != NULL) {
            const int i = atoi(number + strcspn(number, "0123456789")) - 1; // "segment 5", "segm~5 +2"
            assert_in_range(i, 0, N_REGIONS - 1);
            if (!lies_at(s, &regions[i], y)) fail_msg("%dx%d: '%s' stands elsewhere", width, height, text);
            n_named++;
        }
        if (others != NULL) n_others += atoi(others + 1);
        if (strncmp(text, "and ", 4) == 0) n_others += atoi(text + 4);
    }
    // None is left out without a word.
    if (n_named + n_others != N_REGIONS) fail_msg("%dx%d: %d named, %d others", width, height, n_named, n_others);
    scene_sample_destroy(s);
}

static void names_of_regions_stand_beside_them_at_every_width(void **state) {
    (void)state;
    for (int w = 40; w <= 240; w += w < 120 ? 1 : 7)
        for (int h = 10; h <= 60; h += 5) check_labels(w, h);
}

static void the_longest_form_that_has_room(void **state) {
    (void)state;
    tide_region regions[N_REGIONS];
    static const struct {
        int width;
        const char *has, *lacks;
    } cases[] = {
        {160, "stream_caching segment 1 20.00 MiB", "and 20.00 MiB"},
        {120, "stream_caching segment 1", "segment 1 20.00 MiB"},
        {80, "stream_caching\u2502", "stream_caching segment"},
        {40, "segment 1\u2502", "stream"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene_sample *s = sample_of_regions(regions, cases[i].width, 40);
        scene_sample_draw(s, tide_tui_draw_map);
        scene_sample_has(s, cases[i].has);
        scene_sample_lacks(s, cases[i].lacks);
        scene_sample_destroy(s);
    }
}

/// Pools of a colouring plan have their numbers at their own lines, and none stands twice.
static void pools_stand_beside_them_at_every_width(void **state) {
    (void)state;
    enum { N_POOLS = 5 };
    static const uint64_t bytes[N_POOLS] = {2097152, 2097152, 1048576, 524288, 65536};
    char label[] = "Workspace on cpu", text[64];
    int n_most = 0;
    for (int w = 40; w <= 240; w += w < 120 ? 1 : 7) {
        for (int h = 10; h <= 60; h += 5) {
            tide_region_pool pools[N_POOLS];
            tide_region region = {.label = label, .end = 8, .pools = pools, .n_pools = N_POOLS};
            for (uint32_t i = 0; i < N_POOLS; i++) {
                pools[i] = (tide_region_pool){i, region.bytes, bytes[i]};
                region.bytes += bytes[i];
            }
            scene_sample *s = scene_sample_new();
            s->space = (tide_space){.regions = &region, .n = 1, .bytes = region.bytes, .has_holes = true};
            s->state.preset = TIDE_TUI_PRESET_MEMORY;
            s->state.focus = TIDE_TUI_PANE_MAP;
            scene_sample_resize(s, w, h);
            scene_sample_draw(s, tide_tui_draw_map);
            const tide_tui_rect r = s->layout.map;
            int n_named = 0, n_seen[N_POOLS] = {0};
            for (int y = r.y; y < r.y + r.h; y++) {
                label_at(s, y, text, sizeof text);
                if (strncmp(text, "pool ", 5) != 0) continue;
                const int i = atoi(text + 5);
                assert_in_range(i, 0, N_POOLS - 1);
                const tide_region own = {.at = pools[i].offset_bytes, .bytes = pools[i].bytes};
                if (!lies_at(s, &own, y)) fail_msg("%dx%d: '%s' stands elsewhere", w, h, text);
                assert_int_equal(n_seen[i]++, 0);
                n_named++;
            }
            if (n_named > n_most) n_most = n_named;
            if (r.h >= 20) assert_true(n_named >= 3);
            scene_sample_destroy(s);
        }
    }
    assert_true(n_most >= 4);
}

// ---- the legend ----

static bool has_text(const tide_tui_app *app, int y, const char *text) {
    const int w = app->grid.width;
    for (int x = 0; x < w; x++) {
        size_t n = 0;
        while (text[n] != 0 && tide_tui_get(&app->grid, x + (int)n, y).glyph == (uint32_t)(unsigned char)text[n]) n++;
        if (text[n] == 0) return true;
    }
    return false;
}

static bool legend_has(const view *v, const char *text) {
    const tide_tui_rect r = v->app->layout.map_legend;
    for (int y = r.y; y < r.y + r.h; y++)
        if (has_text(v->app, y, text)) return true;
    return false;
}

static void draw(view *v) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_frame(v->app, &err), &err);
}

/// Every letter in the picture is in the legend, with the name of what lies there.
static void letters_come_with_their_names(void **state) {
    (void)state;
    view v;
    char text[64];
    int n = 0;
    view_open_small(&v, 120, 40);
    view_keys(&v, "2");
    draw(&v);
    const tide_tui_rect r = v.app->layout.map;
    const tide_items *items = tide_subject_items(v.a);
    assert_true(v.app->layout.map_legend.h > 0 && v.app->scene.cells != NULL);
    for (int y = 0; y < r.h; y++) {
        for (int x = 0; x < r.w; x++) {
            const uint32_t glyph = tide_tui_get(&v.app->grid, r.x + x, r.y + y).glyph;
            const tide_space_cell *c = &v.app->scene.cells[2 * (r.h - 1 - y) * v.app->scene.cells_w + x];
            const uint32_t lower = c[0].item, upper = c[v.app->scene.cells_w].item;
            const bool is_letter = (glyph >= 'A' && glyph <= 'Z') || (glyph >= 'a' && glyph <= 'z') || glyph == '@';
            if (!is_letter || lower >= items->n || lower != upper) continue;
            snprintf(text, sizeof text, "%c %s ", (char)glyph, tide_items_site(items, lower)->name);
            if (!legend_has(&v, text)) fail_msg("no '%s' in the legend", text);
            n++;
        }
    }
    assert_true(n > 100);
    assert_true(legend_has(&v, ". hole"));
    view_close(&v);
}

/// With colours there is none, and the map has its lines.
static void colours_need_no_legend(void **state) {
    (void)state;
    view v;
    view_open_small(&v, 120, 40);
    view_keys(&v, "2");
    const int h = v.app->layout.map.h, h_legend = v.app->layout.map_legend.h;
    v.app->glyphs = tide_tui_glyphs_for(TIDE_TUI_GLYPHS_BLOCK, false);
    view_look(&v);
    draw(&v);
    assert_int_equal(v.app->layout.map_legend.h, 0);
    assert_int_equal(v.app->layout.map.h, h + h_legend);
    view_close(&v);
}

/// On a small screen it takes a third of the map at most, and says how many names are left out.
static void a_legend_without_room_says_so(void **state) {
    (void)state;
    static const int sizes[][2] = {{40, 10}, {40, 20}, {60, 24}, {80, 24}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        view v;
        view_open_small(&v, sizes[i][0], sizes[i][1]);
        view_keys(&v, "2");
        draw(&v);
        const tide_tui_layout *l = &v.app->layout;
        assert_true(l->map.h >= 2 * l->map_legend.h);
        if (sizes[i][0] < 80 && l->map_legend.h > 0) assert_true(legend_has(&v, " more"));
        view_close(&v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_of_regions_stand_beside_them_at_every_width),
        tide_unit_test(the_longest_form_that_has_room),
        tide_unit_test(pools_stand_beside_them_at_every_width),
        tide_unit_test(letters_come_with_their_names),
        tide_unit_test(colours_need_no_legend),
        tide_unit_test(a_legend_without_room_says_so),
    };
    return cmocka_run_group_tests_name("tui_draw_map_labels", tests, NULL, NULL);
}
