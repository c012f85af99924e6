// SPDX-License-Identifier: MIT
//
// Twenty thousand random keys and resizes over several timelines: state stays sound, and each frame has exactly the
// size of its screen, whatever was pressed. The seed is fixed; run it under the sanitizers.
#include "tests/tide_test.h"

#include "tests/tui/timeline_sample.h"
#include "tui/draw.h"

#include <wchar.h>

enum { N_EVENTS = 20000 };

/// Names and times that input can hold and nobody would choose.
static tide_timeline *sample_hostile(void) {
    static const sample_row rows[] = {
        {"", "", 0, 0, 0, TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT, TIDE_NO_OFFSET},
        {"\033[31m\n\xff\xfe", "\t\t", UINT64_MAX / 4, -1152921504606846976, 1152921504606846976, TIDE_KIND_KV_CACHE,
         TIDE_ROLE_WEIGHT, 1},
        {"張量張量張量張量張量張量張量張量張量張量張量張量", "節點", 1, 5, 6, TIDE_KIND_HOST_PINNED, TIDE_ROLE_SCRATCH,
         UINT64_MAX - 1},
        {"\xe2\x80\xae\xcc\x81", "x", 12345, 1152921504606846975, 1152921504606846976, TIDE_KIND_PERSISTENT,
         TIDE_ROLE_WEIGHT, 7},
        {"end before begin", "", 99, 50, 10, TIDE_KIND_WORKSPACE, TIDE_ROLE_OUTPUT, 0},
    };
    tide_timeline *tl = sample_from_rows(rows, sizeof rows / sizeof rows[0], 3, NULL);
    tl->begin = -1152921504606846976;
    tl->end = 1152921504606846976;
    tl->has_plan = true;
    tl->plan_bytes = UINT64_MAX / 2;
    tl->lower_bound_bytes = 1;
    sample_words(tl, "\xf0\x9f\x92\xbe \n \xff", "", "", "");
    return tl;
}

static uint32_t random_key(tide_rng *rng) {
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    if (tide_rng_below(rng, 10) == 0) return (uint32_t)tide_rng_u64(rng);
    const tide_tui_binding *one = &b[tide_rng_below(rng, n)];
    return one->keys[tide_rng_below(rng, one->keys[1] != 0 ? 2 : 1)];
}

static void check_state(const tide_tui_model *m, const tide_tui_layout *l) {
    const tide_tui_window whole = tide_tui_whole(m->tl);
    assert_true(whole.begin <= m->window.begin && m->window.begin < m->window.end && m->window.end <= whole.end);
    assert_true(m->window.begin <= m->cursor && m->cursor < m->window.end);
    assert_true(m->n_rows <= m->tl->n_items && tide_tui_n_hidden(m) == (m->hides_persistent ? m->n_persistent : 0));
    if (m->n_rows == 0) return;
    assert_true(m->row < m->n_rows && m->top <= m->row);
    for (size_t i = 0; i < m->n_rows && m->hides_persistent; i++)
        assert_false(tide_timeline_persists(&m->tl->items[m->order[i]]));
    if (!l->too_small) assert_true(m->row < m->top + (size_t)l->bars.h);
}

/// Every line adds up to the width of the screen, and no cell holds what a terminal would act on.
static void check_grid(const tide_tui_grid *grid) {
    for (int y = 0; y < grid->height; y++) {
        int columns = 0;
        for (int x = 0; x < grid->width; x++) {
            const tide_tui_cell cell = tide_tui_get(grid, x, y);
            assert_true(cell.role < TIDE_TUI_N_ROLES);
            if (cell.glyph == 0) continue;
            assert_true(cell.glyph >= 0x20 && (cell.glyph < 0x7F || cell.glyph >= 0xA0) && cell.glyph <= 0x10FFFF);
            const int w = cell.glyph < 0x7F ? 1 : wcwidth((wchar_t)cell.glyph);
            assert_in_range(w, 1, 2);
            if (w == 2) assert_int_equal(tide_tui_get(grid, x + 1, y).glyph, 0);
            columns += w;
        }
        assert_int_equal(columns, grid->width);
    }
}

static void random_keys_and_sizes(void **state) {
    (void)state;
    tide_timeline *timelines[] = {sample_small(), sample_many(500, 1), sample_empty(), sample_hostile(),
                                  sample_weights()};
    tide_rng rng = {20240607};
    for (size_t t = 0; t < sizeof timelines / sizeof timelines[0]; t++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_tui_model m;
        tide_tui_grid grid = {0}, again = {0};
        tide_tui_layout l;
        int width = 80, height = 24;
        assert_tide_ok(tide_tui_model_init(&m, timelines[t], &err), &err);
        const tide_tui_locale locale = tide_tui_locale_enter();
        for (int i = 0; i < N_EVENTS / 5; i++) {
            if (i == 0 || tide_rng_below(&rng, 20) == 0) {
                width = 1 + (int)tide_rng_below(&rng, tide_rng_below(&rng, 8) == 0 ? 200 : 100);
                height = 1 + (int)tide_rng_below(&rng, tide_rng_below(&rng, 8) == 0 ? 70 : 40);
                assert_tide_ok(tide_tui_grid_resize(&grid, width, height, &err), &err);
                assert_tide_ok(tide_tui_grid_resize(&again, width, height, &err), &err);
                tide_tui_layout_make(width, height, &l);
                tide_tui_settle(&m, &l);
            }
            tide_tui_press(&m, &l, random_key(&rng));
            check_state(&m, &l);
            const tide_tui_glyphs *glyphs = tide_tui_glyphs_of(i % 5 == 0);
            const tide_tui_view view = {&m, &l, glyphs, &grid}, fresh = {&m, &l, glyphs, &again};
            tide_tui_draw(&view);
            check_grid(&grid);
            if (i % 16 != 0) continue;
            tide_tui_draw(&fresh);
            assert_memory_equal(grid.cells, again.cells, (size_t)width * (size_t)height * sizeof *grid.cells);
        }
        tide_tui_locale_leave(locale);
        tide_tui_grid_deinit(&grid);
        tide_tui_grid_deinit(&again);
        tide_tui_model_deinit(&m);
        sample_destroy(timelines[t]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {tide_unit_test(random_keys_and_sizes)};
    return cmocka_run_group_tests_name("tui_fuzz", tests, NULL, NULL);
}
