// SPDX-License-Identifier: MIT
//
// What lies over the panes, and the last line: help made from the table of keys, SQL, messages, settings; prompt and
// hints.
#include "tests/tui/scene_lists.h"

#include "tui/draw/panes.h"
#include "tui/pane_sql.h"
#include "tui/state/keys.h"

static void open_overlay(scene_lists *l, tide_tui_overlay overlay, int w, int h) {
    scene_lists_only(l, TIDE_TUI_PANE_TABLE, w, h);
    l->s->state.overlay = overlay;
    scene_sample_draw(l->s, tide_tui_draw_overlay);
}

/// All lines of the overlay at width w, blanks and line ends taken out: wrapped text is found in it all the same.
static tide_text squeezed(scene_lists *l, tide_tui_overlay overlay, int w) {
    tide_text out = {0};
    open_overlay(l, overlay, w, 300);
    tide_text text = scene_sample_text(l->s);
    for (const char *p = tide_text_str(&text); *p != '\0'; p++)
        if (*p != ' ' && *p != '\n') tide_text_add_n(&out, p, 1);
    tide_text_deinit(&text);
    return out;
}

static void has_squeezed(const tide_text *all, const char *what) {
    char want[256];
    size_t n = 0;
    for (const char *p = what; *p != '\0' && n + 1 < sizeof want; p++)
        if (*p != ' ') want[n++] = *p;
    want[n] = '\0';
    assert_text_has(tide_text_str(all), want);
}

/// Every action of the table is in the help with its keys, whatever the width. Nothing is typed in.
static void help_has_every_binding(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    for (int w = 40; w <= 240; w += 20) {
        tide_text all = squeezed(l, TIDE_TUI_OVERLAY_HELP, w);
        const bool one_column = w < 114; // lines of neighbours stand between the lines of a wrapped text
        for (size_t i = 0; i < n; i++) {
            tide_text keys = {0};
            tide_tui_keys_label(&b[i], &keys);
            if (keys.len > 0)
                has_squeezed(&all, tide_text_str(&keys));
            else
                has_squeezed(&all, b[i].name);
            if (one_column || tide_tui_text_width(l->s->view.glyphs, b[i].what) < 40) has_squeezed(&all, b[i].what);
            tide_text_deinit(&keys);
        }
        for (int group = 0; group < TIDE_TUI_N_KEY_GROUPS; group++)
            has_squeezed(&all, tide_tui_key_group_title((tide_tui_key_group)group));
        for (int fill = 0; fill < TIDE_N_ITEM_FILLS; fill++)
            has_squeezed(&all, tide_item_fill_text((tide_item_fill)fill));
        tide_text_deinit(&all);
    }
    scene_lists_destroy(l);
}

/// The five questions that people come with are the first thing, each with the key of its view.
static void help_begins_with_questions(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    open_overlay(l, TIDE_TUI_OVERLAY_HELP, 80, 22);
    static const char *const questions[] = {"what makes the peak", "what would lower it", "is B better than A",
                                            "which allocator", "where a leak began"};
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) scene_sample_has(l->s, questions[i]);
    scene_lists_destroy(l);
}

static void overlays_scroll_to_their_last_line_and_no_further(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    for (int w = 40; w <= 200; w += 40) {
        open_overlay(l, TIDE_TUI_OVERLAY_HELP, w, 10);
        const size_t n = tide_tui_overlay_lines(&l->s->scene, l->s->view.glyphs);
        const int max_top = tide_tui_overlay_max_top(&l->s->scene, l->s->view.glyphs);
        assert_int_equal(max_top, n - 10);
        l->s->state.overlay_top = 100000;
        scene_sample_draw(l->s, tide_tui_draw_overlay);
        char want[64];
        snprintf(want, sizeof want, "lines %zu-%zu of %zu", n - 9, n, n);
        scene_sample_has(l->s, want);
        l->s->state.overlay_top = 0;
    }
    scene_lists_destroy(l);
}

static void overlays_stay_inside(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    snprintf(l->s->state.message, sizeof l->s->state.message,
             "error: a message that is longer than the screen is wide");
    tide_text sql = {0};
    tide_tui_pane_sql(&l->s->scene, TIDE_TUI_PANE_TABLE, &sql);
    for (int overlay = TIDE_TUI_OVERLAY_HELP; overlay <= TIDE_TUI_OVERLAY_SETUP; overlay++) {
        for (int w = 20; w <= 130; w += 11) {
            for (int h = 2; h <= 24; h += 2) {
                tide_error err = TIDE_ERROR_INIT;
                const tide_tui_rect r = {2, 1, w, h};
                l->s->layout = (tide_tui_layout){.width = w + 5, .height = h + 3, .overlay = r};
                l->s->state.overlay = (tide_tui_overlay)overlay;
                l->s->scene.overlay_text = overlay == TIDE_TUI_OVERLAY_SQL ? tide_text_str(&sql) : NULL;
                assert_tide_ok(tide_tui_grid_resize(&l->s->grid, w + 5, h + 3, &err), &err);
                scene_sample_keeps_to(l->s, tide_tui_draw_overlay, &r, 1);
            }
        }
    }
    tide_text_deinit(&sql);
    scene_lists_destroy(l);
}

static void messages_and_settings(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    l->s->scene.overlay_text = "error: cannot open 'x'\nnote: it is not there\nhint: look again";
    open_overlay(l, TIDE_TUI_OVERLAY_MESSAGE, 80, 10);
    scene_sample_has(l->s, "error: cannot open 'x'");
    scene_sample_has(l->s, "hint: look again");
    l->s->state.overlay_row = TIDE_TUI_SETTING_SORT;
    open_overlay(l, TIDE_TUI_OVERLAY_SETUP, 80, 14);
    for (int i = 0; i < TIDE_TUI_N_SETTINGS; i++) scene_sample_has(l->s, tide_tui_setting_name((tide_tui_setting)i));
    scene_sample_has(l->s, "> sort");
    scene_lists_destroy(l);
}

// ---- the last line ----

static void draw_bottom(scene_lists *l, int w) {
    scene_lists_only(l, TIDE_TUI_PANE_TABLE, w, 4);
    scene_sample_draw(l->s, tide_tui_draw_bottom);
}

/// The hints of every pane are whole, and the way to help and out is there at any width.
static void hints_fit(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    for (int pane = 0; pane < TIDE_TUI_N_PANES; pane++) {
        int widest = 0;
        for (int w = 40; w <= 200; w += 5) {
            scene_lists_only(l, (tide_tui_pane)pane, w, 4);
            scene_sample_keeps_to(l->s, tide_tui_draw_bottom, &l->s->layout.bottom, 1);
            scene_sample_has(l->s, "? help");
            scene_sample_has(l->s, "q quit");
            scene_sample_lacks(l->s, "\xE2\x80\xA6");
            int used = 0;
            for (int x = 0; x < w; x++)
                if (tide_tui_get(&l->s->grid, x, 5).glyph != ' ') used = x;
            assert_true(used >= widest); // more room, no fewer hints
            widest = used;
        }
    }
    scene_lists_destroy(l);
}

static void an_error_says_so_in_words(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    snprintf(l->s->state.message, sizeof l->s->state.message, "there is no order 'siez'");
    l->s->state.message_is_error = true;
    draw_bottom(l, 60);
    scene_sample_has(l->s, "error: there is no order 'siez'");
    l->s->state.message_is_error = false;
    draw_bottom(l, 60);
    scene_sample_lacks(l->s, "error");
    scene_lists_destroy(l);
}

/// The cursor of a prompt is on the screen wherever it is in the text, also when the text is longer than the line.
static void the_prompt_shows_its_cursor(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    tide_tui_state *st = &l->s->state;
    st->prompt = TIDE_TUI_PROMPT_COMMAND;
    for (int i = 0; i < 120; i++) st->text[i] = (char)('a' + i % 26);
    for (size_t at = 0; at <= 120; at++) {
        st->text_at = at;
        draw_bottom(l, 40);
        int marked = -1;
        for (int x = 0; x < 40; x++)
            if (tide_tui_get(&l->s->grid, x, 5).marks == TIDE_TUI_MARK_SELECTED) marked = x;
        assert_true(marked >= 1);
        if (at < 120) assert_int_equal(tide_tui_get(&l->s->grid, marked, 5).glyph, st->text[at]);
    }
    snprintf(st->text, sizeof st->text, "so");
    st->text_at = 2;
    snprintf(st->completions, sizeof st->completions, "sort something");
    draw_bottom(l, 60);
    scene_sample_has(l->s, ":so   sort something");
    scene_lists_destroy(l);
}

static void tests_can_wait_for_a_state(void **state) {
    (void)state;
    scene_lists *l = scene_lists_new();
    draw_bottom(l, 60);
    scene_sample_lacks(l->s, "seq=");
    l->s->scene.shows_seq = true;
    l->s->state.seq = 42;
    draw_bottom(l, 60);
    scene_sample_has(l->s, "seq=42 idle");
    l->s->scene.is_busy = true;
    draw_bottom(l, 60);
    scene_sample_has(l->s, "seq=42 busy");
    scene_lists_destroy(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_has_every_binding),
        cmocka_unit_test(help_begins_with_questions),
        cmocka_unit_test(overlays_scroll_to_their_last_line_and_no_further),
        cmocka_unit_test(overlays_stay_inside),
        cmocka_unit_test(messages_and_settings),
        cmocka_unit_test(hints_fit),
        cmocka_unit_test(an_error_says_so_in_words),
        cmocka_unit_test(the_prompt_shows_its_cursor),
        cmocka_unit_test(tests_can_wait_for_a_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
