// SPDX-License-Identifier: MIT
//
// Rectangles of every size: nothing overlaps, nothing lies outside, nothing that is shown is empty, the focus is there.
#include "tests/tide_test.h"

#include "tui/state/layout.h"

static bool is_there(tide_tui_rect r) { return r.w > 0 && r.h > 0; }

static bool overlap(tide_tui_rect a, tide_tui_rect b) {
    return is_there(a) && is_there(b) && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

static bool lies_in(tide_tui_rect inner, tide_tui_rect outer) {
    return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.w <= outer.x + outer.w &&
           inner.y + inner.h <= outer.y + outer.h;
}

/// Why a layout is wrong; NULL: it is not.
static const char *wrong_with(const tide_tui_layout *l, tide_tui_pane focus) {
    const tide_tui_rect screen = {0, 0, l->width, l->height}, *p = l->panes;
    tide_tui_rect all[TIDE_TUI_N_PANES + 6];
    int n = 0;
    all[n++] = l->title;
    all[n++] = l->summary;
    all[n++] = l->labels;
    all[n++] = l->ruler;
    all[n++] = l->minimap;
    all[n++] = l->bottom;
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) all[n++] = p[i];
    for (int i = 0; i < n; i++) {
        if (is_there(all[i]) && !lies_in(all[i], screen)) return "something lies outside";
        for (int k = 0; k < i; k++) {
            if (overlap(all[i], all[k])) return "two overlap";
        }
    }
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        if (p[i].w == 0 && p[i].h == 0) continue;
        if (p[i].w < 10) return "a pane is too narrow";
        if (p[i].h < 2) return "a pane has no line below its heading";
    }
    if (!is_there(p[focus])) return "the focus is not shown";
    if (!is_there(p[TIDE_TUI_PANE_CURVE]) || !is_there(l->ruler) || !is_there(l->labels)) return "the curve is gone";
    if (l->title.h != 1 || l->bottom.h != 1 || !is_there(l->overlay)) return "a line is gone";
    if (overlap(l->overlay, l->title) || overlap(l->overlay, l->bottom)) return "the overlay hides a line";
    const tide_tui_rect curve = p[TIDE_TUI_PANE_CURVE], gantt = p[TIDE_TUI_PANE_GANTT], map = p[TIDE_TUI_PANE_MAP];
    if (l->ruler.x != curve.x || l->ruler.w != curve.w) return "the ruler is off the curve";
    if (is_there(gantt)) {
        const tide_tui_rect body = {gantt.x, gantt.y + 1, gantt.w, gantt.h - 1};
        if (l->bars.x != curve.x || l->bars.w != curve.w) return "the bars are off the curve";
        if (!lies_in(l->names, body) || !lies_in(l->bars, body) || !lies_in(l->sizes, body)) return "gantt bursts";
        if (overlap(l->names, l->bars) || overlap(l->bars, l->sizes)) return "gantt overlaps itself";
        if (!is_there(l->names) || !is_there(l->sizes)) return "gantt has no names or sizes";
    }
    if (is_there(map)) {
        const tide_tui_rect body = {map.x, map.y + 1, map.w, map.h - 1};
        if (l->map.x != curve.x || l->map.w != curve.w) return "the map is off the curve";
        if (!lies_in(l->map, body) || !lies_in(l->map_labels, body) || overlap(l->map, l->map_labels))
            return "map bursts";
    }
    return NULL;
}

/// Each is found again by its cells.
static const char *wrong_list(const tide_tui_layout *l) {
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        const tide_tui_rect r = l->panes[i];
        if (!is_there(r)) continue;
        if (tide_tui_layout_pane_at(l, r.x, r.y) != (tide_tui_pane)i) return "a pane's first cell is not its own";
        if (tide_tui_layout_pane_at(l, r.x + r.w - 1, r.y + r.h - 1) != (tide_tui_pane)i) return "nor its last one";
    }
    return NULL;
}

static void every_size_every_preset_every_focus(void **state) {
    (void)state;
    for (int w = 1; w <= 400; w += w < 140 ? 1 : 13) {
        for (int h = 1; h <= 120; h += h < 62 ? 1 : 7) {
            for (int k = 0; k < TIDE_TUI_N_PRESETS * TIDE_TUI_N_PANES; k++) {
                const tide_tui_preset preset = (tide_tui_preset)(k / TIDE_TUI_N_PANES);
                const tide_tui_pane focus = (tide_tui_pane)(k % TIDE_TUI_N_PANES);
                tide_tui_layout l;
                tide_tui_layout_make(w, h, preset, focus, &l);
                assert_int_equal(l.too_small, w < TIDE_TUI_MIN_WIDTH || h < TIDE_TUI_MIN_HEIGHT);
                if (l.too_small) continue;
                const char *wrong = wrong_with(&l, focus);
                if (wrong == NULL) wrong = wrong_list(&l);
                if (wrong != NULL) {
                    fail_msg("%dx%d, %s, focus %s: %s", w, h, tide_tui_preset_name(preset), tide_tui_pane_name(focus),
                             wrong);
                }
            }
        }
    }
}

static void a_usual_screen_has_the_whole_preset(void **state) {
    (void)state;
    static const int sizes[][2] = {{80, 24}, {120, 40}, {200, 60}, {400, 120}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int k = 0; k < TIDE_TUI_N_PRESETS; k++) {
            tide_tui_pane panes[TIDE_TUI_N_PANES];
            const int n = tide_tui_preset_panes((tide_tui_preset)k, panes);
            tide_tui_layout l;
            assert_true(n >= 3);
            assert_int_equal(panes[0], TIDE_TUI_PANE_CURVE);
            tide_tui_layout_make(sizes[i][0], sizes[i][1], (tide_tui_preset)k, panes[1], &l);
            // On 24 lines the last one leaves its lines to pools, to a comparison and to calls, until it has the focus.
            const bool is_full =
                (k != TIDE_TUI_PRESET_ALLOCATORS && k != TIDE_TUI_PRESET_COMPARISON && k != TIDE_TUI_PRESET_STACKS) ||
                sizes[i][1] > 24;
            for (int p = 0; p < n; p++) assert_int_equal(is_there(l.panes[panes[p]]), is_full || p + 1 < n);
            tide_tui_layout_make(sizes[i][0], sizes[i][1], (tide_tui_preset)k, panes[n - 1], &l);
            for (int p = 0; p < n; p++) assert_true(is_there(l.panes[panes[p]]));
        }
    }
}

static void small_screens_have_one_list_that_is_the_focus(void **state) {
    (void)state;
    tide_tui_layout l;
    tide_tui_layout_make(40, 10, TIDE_TUI_PRESET_PEAK, TIDE_TUI_PANE_WHATIF, &l);
    for (int i = 0; i < TIDE_TUI_N_PANES; i++)
        assert_int_equal(is_there(l.panes[i]), i == TIDE_TUI_PANE_CURVE || i == TIDE_TUI_PANE_WHATIF);
    assert_true(l.panes[TIDE_TUI_PANE_CURVE].y < l.panes[TIDE_TUI_PANE_WHATIF].y);
    tide_tui_layout_make(79, 23, TIDE_TUI_PRESET_ALLOCATORS, TIDE_TUI_PANE_CURVE, &l);
    assert_true(is_there(l.panes[TIDE_TUI_PANE_POOLS])); // of the curve's focus, the preset's first list
    assert_false(is_there(l.panes[TIDE_TUI_PANE_OPERATORS]));
}

static void names_are_unique(void **state) {
    (void)state;
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        assert_true(strlen(tide_tui_pane_what((tide_tui_pane)i)) > 5);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(tide_tui_pane_name((tide_tui_pane)i), tide_tui_pane_name((tide_tui_pane)k));
        }
    }
    assert_string_equal(tide_tui_preset_name(TIDE_TUI_PRESET_MEMORY), "memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_every_preset_every_focus),
        cmocka_unit_test(a_usual_screen_has_the_whole_preset),
        cmocka_unit_test(small_screens_have_one_list_that_is_the_focus),
        cmocka_unit_test(names_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
