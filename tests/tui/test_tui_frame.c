// SPDX-License-Identifier: MIT
//
// Whole frames against golden texts: a plan with a gap, the trace of a planned run, a pair; all sizes and presets. With
// TIDE_UPDATE_GOLDEN=1 in the environment they are recorded anew and the difference is printed; look at it before
// keeping it.
#include "tests/profiler/trace_fixture.h"
#include "tests/tide_test.h"

#include "core/base/output.h"
#include "planner/planner.h"
#include "tui/app.h"

typedef struct sample {
    tmp_dir dir;
    tide_subject *plan, *other, *trace, *naive;
} sample;

static tide_subject *read_plan(const char *below) {
    char path[512], *data = NULL;
    size_t len = 0;
    tide_error err = TIDE_ERROR_INIT;
    tide_memory_plan *plan = NULL;
    tide_subject *s = NULL;
    tide_source_path(below, path, sizeof path);
    assert_tide_ok(tide_read_file(path, 0, &data, &len, &err), &err);
    assert_tide_ok(tide_plan_from_json(data, len, below, NULL, &plan, &err), &err);
    assert_tide_ok(tide_subject_of_plan(plan, NULL, &s, &err), &err);
    tide_host_free(data);
    return s;
}

static sample open_sample(void) {
    sample s = {.plan = read_plan("tests/tui/data/plan_a.json"), .other = read_plan("tests/tui/data/plan_b.json")};
    tide_error err = TIDE_ERROR_INIT;
    tmp_dir_make(&s.dir);
    demo_record(s.dir.file, 64);
    assert_tide_ok(tide_subject_of_trace(s.dir.file, 2, &s.trace, &err), &err);
    assert_tide_ok(tide_subject_of_trace(s.dir.file, 1, &s.naive, &err), &err);
    return s;
}

static void close_sample(sample *s) {
    tide_subject_destroy(s->plan);
    tide_subject_destroy(s->other);
    tide_subject_destroy(s->trace);
    tide_subject_destroy(s->naive);
    tmp_dir_remove(&s->dir);
}

typedef struct shot {
    const char *name;
    int width, height, preset;
    const char *commands; ///< NULL: none
} shot;

/// Lines of `want` and `got` that differ, one under the other.
static void print_difference(const char *want, const char *got) {
    for (int line = 1; *want != '\0' || *got != '\0'; line++) {
        const size_t w = strcspn(want, "\n"), g = strcspn(got, "\n");
        if (w != g || memcmp(want, got, w) != 0)
            print_message("%3d - %.*s\n    + %.*s\n", line, (int)w, want, (int)g, got);
        want += w + (want[w] == '\n');
        got += g + (got[g] == '\n');
    }
}

/// @return 1 when it differs (and is not recorded anew)
static int check_golden(const char *name, const tide_text *got) {
    char below[160], path[512], *want = NULL;
    size_t len = 0;
    tide_error err = TIDE_ERROR_INIT;
    snprintf(below, sizeof below, "tests/tui/golden/%s.txt", name);
    tide_source_path(below, path, sizeof path);
    const bool there = tide_read_file(path, 0, &want, &len, &err) == TIDE_OK;
    const bool same = there && len == got->len && memcmp(want, got->data, len) == 0;
    if (!same) {
        print_message("%s differs:\n", below);
        print_difference(there ? want : "", tide_text_str(got));
    }
    tide_host_free(want);
    if (same || getenv("TIDE_UPDATE_GOLDEN") == NULL) return same ? 0 : 1;
    assert_tide_ok(tide_write_file(path, got->data, got->len, &err), &err);
    return 0;
}

static void fail_for(int n_different) {
    if (n_different > 0) fail_msg("%d frames differ; TIDE_UPDATE_GOLDEN=1 records them anew", n_different);
}

/// Frames of one subject (or pair) in a tier of glyphs. @return how many differ
static int shoot(tide_subject *a, tide_subject *b, tide_tui_glyph_tier tier, const shot *shots, size_t n) {
    static const char *const tier_names[] = {
        [TIDE_TUI_GLYPHS_BLOCK] = "utf8", [TIDE_TUI_GLYPHS_BRAILLE] = "braille", [TIDE_TUI_GLYPHS_ASCII] = "ascii"};
    const tide_tui_session session = {.a = a, .b = b, .batch_prefix = "tidemark tui sample"};
    int n_different = 0;
    for (size_t i = 0; i < n; i++) {
        const tide_tui_options opt = {
            .glyphs = tier, .colour = TIDE_TUI_COLOUR_MONO, .preset = shots[i].preset, .commands = shots[i].commands};
        tide_text got = {0};
        tide_error err = TIDE_ERROR_INIT;
        char name[96];
        assert_tide_ok(tide_tui_once(&session, &opt, shots[i].width, shots[i].height, &got, &err), &err);
        snprintf(name, sizeof name, "%s_%dx%d_%s", shots[i].name, shots[i].width, shots[i].height, tier_names[tier]);
        n_different += check_golden(name, &got);
        tide_text_deinit(&got);
    }
    return n_different;
}

enum { LIFETIMES = 1, MEMORY, PEAK, ALLOCATORS, COMPARISON };

static void plans_at_every_size(void **state) {
    (void)state;
    sample s = open_sample();
    static const shot shots[] = {{"plan", 40, 10, LIFETIMES, NULL},
                                 {"plan", 80, 24, LIFETIMES, NULL},
                                 {"plan", 120, 40, LIFETIMES, NULL},
                                 {"plan", 200, 60, LIFETIMES, NULL}};
    const int n =
        shoot(s.plan, NULL, TIDE_TUI_GLYPHS_BLOCK, shots, 4) + shoot(s.plan, NULL, TIDE_TUI_GLYPHS_ASCII, shots, 4);
    close_sample(&s);
    fail_for(n);
}

static void runs_at_every_size(void **state) {
    (void)state;
    sample s = open_sample();
    static const shot shots[] = {{"run", 40, 10, LIFETIMES, NULL},
                                 {"run", 80, 24, LIFETIMES, NULL},
                                 {"run", 120, 40, LIFETIMES, NULL},
                                 {"run_memory", 120, 40, MEMORY, NULL},
                                 {"run_pools", 120, 40, ALLOCATORS, NULL}};
    static const shot ascii[] = {{"run_naive", 80, 24, MEMORY, NULL}};
    const int n = shoot(s.trace, NULL, TIDE_TUI_GLYPHS_BLOCK, shots, 5) +
                  shoot(s.naive, NULL, TIDE_TUI_GLYPHS_ASCII, ascii, 1) +
                  shoot(s.naive, NULL, TIDE_TUI_GLYPHS_BRAILLE, ascii, 1);
    close_sample(&s);
    fail_for(n);
}

static void pairs_at_every_size(void **state) {
    (void)state;
    sample s = open_sample();
    static const shot shots[] = {{"pair", 40, 10, COMPARISON, NULL},
                                 {"pair", 80, 24, COMPARISON, NULL},
                                 {"pair", 120, 40, COMPARISON, NULL},
                                 {"pair", 200, 60, COMPARISON, NULL}};
    const int n = shoot(s.plan, s.other, TIDE_TUI_GLYPHS_BLOCK, shots, 4) +
                  shoot(s.plan, s.other, TIDE_TUI_GLYPHS_ASCII, &shots[2], 1);
    close_sample(&s);
    fail_for(n);
}

static void every_preset_and_state(void **state) {
    (void)state;
    sample s = open_sample();
    static const shot shots[] = {{"memory", 120, 40, MEMORY, NULL},
                                 {"memory", 80, 24, MEMORY, NULL},
                                 {"peak", 120, 40, PEAK, NULL},
                                 {"pools", 120, 40, ALLOCATORS, NULL},
                                 {"alone", 80, 24, COMPARISON, NULL},
                                 {"filtered", 80, 24, LIFETIMES, "filter size>=100KiB"},
                                 {"hidden", 80, 24, LIFETIMES, "filter nobody"},
                                 {"operators", 120, 40, LIFETIMES, "bands operator"},
                                 {"tensors", 80, 24, LIFETIMES, "bands tensor"},
                                 {"curve", 80, 24, LIFETIMES, "bands off"},
                                 {"too_small", 20, 5, LIFETIMES, NULL}};
    static const shot ascii[] = {{"memory", 120, 40, MEMORY, NULL}};
    const int n = shoot(s.plan, NULL, TIDE_TUI_GLYPHS_BLOCK, shots, sizeof shots / sizeof shots[0]) +
                  shoot(s.plan, NULL, TIDE_TUI_GLYPHS_ASCII, ascii, 1);
    close_sample(&s);
    fail_for(n);
}

// ---- colours ----

/// The frame as it is on a screen with colours: glyphs, and below each other the roles and grounds as letters.
static void grid_with_roles(const tide_tui_grid *grid, tide_text *out) {
    static const char letters[] = ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    tide_tui_grid_to_text(grid, out);
    for (int layer = 0; layer < 2; layer++) {
        tide_text_add(out, layer == 0 ? "-- roles\n" : "-- grounds\n");
        for (int y = 0; y < grid->height; y++) {
            for (int x = 0; x < grid->width; x++) {
                const tide_tui_cell cell = tide_tui_get(grid, x, y);
                tide_text_add_n(out, &letters[layer == 0 ? cell.role : cell.ground], 1);
            }
            tide_text_add_n(out, "\n", 1);
        }
    }
}

static void the_map_in_colours(void **state) {
    (void)state;
    sample s = open_sample();
    const tide_tui_session session = {.a = s.plan, .batch_prefix = "tidemark tui sample"};
    const tide_tui_options opt = {.glyphs = TIDE_TUI_GLYPHS_BLOCK, .preset = MEMORY};
    tide_tui_app *app = NULL;
    tide_text got = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_true(TIDE_TUI_N_ROLES <= 63);
    assert_tide_ok(tide_tui_app_open(&session, &opt, 120, 40, false, &app, &err), &err);
    app->glyphs = tide_tui_glyphs_for(TIDE_TUI_GLYPHS_BLOCK, false);
    assert_tide_ok(tide_tui_app_frame(app, &err), &err);
    grid_with_roles(&app->grid, &got);
    const int n = check_golden("memory_120x40_colour", &got);
    tide_text_deinit(&got);
    tide_tui_app_close(app);
    close_sample(&s);
    fail_for(n);
}

// ---- what is drawn is what lives ----

/// Whether an item lives somewhere in column x of n of a window.
static bool lives_in(tide_tui_window w, int n, int x, int64_t begin, int64_t end) {
    const int64_t span = w.end - w.begin, lo = w.begin + span * x / n;
    int64_t hi = w.begin + span * (x + 1) / n;
    if (hi <= lo) hi = lo + 1;
    if (end <= begin) end = begin + 1; // shorter than the clock can tell
    return begin < hi && end > lo;
}

/// A row's cells are filled exactly in the columns of its item's lifetime, the cursor's line aside; an arrow points to
/// what lies outside of the window.
static void check_bars(const tide_tui_app *app) {
    const tide_items *items = tide_subject_items(app->st.a);
    const tide_tui_rect r = app->layout.bars;
    assert_non_null(items);
    for (size_t i = 0; i < app->scene.n_gantt && (int)i < r.h; i++) {
        const uint32_t item = app->scene.gantt[i].item;
        int n_alive = 0;
        for (int x = 0; x < r.w; x++)
            n_alive += lives_in(app->st.window, r.w, x, tide_items_begin(items, item), tide_items_end(items, item));
        for (int x = 0; x < r.w; x++) {
            const uint32_t glyph = tide_tui_get(&app->grid, r.x + x, r.y + (int)i).glyph;
            if (glyph == app->glyphs->cursor || (n_alive == 0 && (x == 0 || x == r.w - 1))) continue;
            const bool alive =
                lives_in(app->st.window, r.w, x, tide_items_begin(items, item), tide_items_end(items, item));
            if ((glyph != ' ') != alive)
                fail_msg("row %zu, column %d of %d in [%lld, %lld): item lives [%lld, %lld)", i, x, r.w,
                         (long long)app->st.window.begin, (long long)app->st.window.end,
                         (long long)tide_items_begin(items, item), (long long)tide_items_end(items, item));
        }
    }
}

static void bars_are_where_items_live(void **state) {
    (void)state;
    sample s = open_sample();
    tide_subject *const subjects[] = {s.plan, s.other, s.trace, s.naive};
    static const char *const lines[] = {"zoom-in", "zoom-in",   "left",      "zoom-in",  "last",  "zoom-in", "pan-left",
                                        "zoom-in", "pan-right", "pan-right", "zoom-out", "whole", "first"};
    for (size_t i = 0; i < 4; i++) {
        const tide_tui_session session = {.a = subjects[i], .batch_prefix = "tidemark tui sample"};
        const tide_tui_options opt = {.preset = LIFETIMES};
        tide_tui_app *app = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_tui_app_open(&session, &opt, 100, 30, false, &app, &err), &err);
        for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
            assert_tide_ok(tide_tui_app_frame(app, &err), &err);
            assert_int_equal(app->scene.n_gantt > 0, true);
            check_bars(app);
            (void)tide_tui_app_line(app, lines[k]);
            assert_false(app->st.message_is_error);
        }
        tide_tui_app_close(app);
    }
    close_sample(&s);
}

/// The same question twice is the same frame: nothing in it depends on time, addresses or what was drawn before.
static void frames_are_the_same_each_time(void **state) {
    (void)state;
    sample s = open_sample();
    const tide_tui_session session = {.a = s.plan, .b = s.other, .batch_prefix = "tidemark tui sample"};
    for (int preset = LIFETIMES; preset <= COMPARISON; preset++) {
        const tide_tui_options opt = {.glyphs = TIDE_TUI_GLYPHS_BLOCK, .preset = preset};
        tide_text first = {0}, second = {0};
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide_tui_once(&session, &opt, 120, 40, &first, &err), &err);
        assert_tide_ok(tide_tui_once(&session, &opt, 120, 40, &second, &err), &err);
        assert_string_equal(tide_text_str(&first), tide_text_str(&second));
        tide_text_deinit(&first);
        tide_text_deinit(&second);
    }
    close_sample(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(plans_at_every_size),
        tide_unit_test(runs_at_every_size),
        tide_unit_test(pairs_at_every_size),
        tide_unit_test(every_preset_and_state),
        tide_unit_test(the_map_in_colours),
        tide_unit_test(bars_are_where_items_live),
        tide_unit_test(frames_are_the_same_each_time),
    };
    return cmocka_run_group_tests_name("tui_frame", tests, NULL, NULL);
}
