// SPDX-License-Identifier: MIT
//
// A scene made by hand for the tests of drawing: a small convolution net of eight steps with its curve and rows,
// computed here column by column from the definition, so that nothing of what makes scenes is needed.
#ifndef TIDE_TESTS_SCENE_SAMPLE_H
#define TIDE_TESTS_SCENE_SAMPLE_H

#include "tests/tide_test.h"

#include "tui/draw/draw.h"

enum { SAMPLE_COLUMNS = 512, SAMPLE_ROWS = 32 };

typedef struct sample_life {
    const char *name, *owner;
    uint64_t bytes, place;
    int64_t begin, end;
    tide_item_fill fill;
} sample_life;

/// The peak of 480 KiB is at step 2.
static const sample_life sample_lives[] = {
    {"conv0_out", "Conv_0", 196608, 0, 0, 2, TIDE_ITEM_FILL_INTERMEDIATE},
    {"conv0.scratch", "Conv_0", 65536, 196608, 0, 1, TIDE_ITEM_FILL_SCRATCH},
    {"relu1_out", "Relu_1", 196608, 262144, 1, 3, TIDE_ITEM_FILL_INTERMEDIATE},
    {"conv2_out", "Conv_2", 262144, 0, 2, 4, TIDE_ITEM_FILL_INTERMEDIATE},
    {"conv2.scratch", "Conv_2", 32768, 458752, 2, 3, TIDE_ITEM_FILL_SCRATCH},
    {"pool3_out", "MaxPool_3", 65536, 262144, 3, 6, TIDE_ITEM_FILL_INTERMEDIATE},
    {"/features/block.1/conv4/Conv_output_0", "Conv_4", 65536, 0, 4, 6, TIDE_ITEM_FILL_INTERMEDIATE},
    {"add5_out", "Add_5", 65536, 65536, 5, 7, TIDE_ITEM_FILL_INTERMEDIATE},
    {"gemm6_out", "Gemm_6", 4096, 131072, 6, 8, TIDE_ITEM_FILL_INTERMEDIATE},
    {"probabilities", "Softmax_7", 4096, 0, 7, 8, TIDE_ITEM_FILL_INOUT},
};
enum { SAMPLE_LIVES = (int)(sizeof sample_lives / sizeof sample_lives[0]) };

typedef struct scene_sample {
    tide_tui_state state;
    tide_tui_layout layout;
    tide_tui_scene scene;
    tide_subject_facts a, b;
    tide_rows rows;
    tide_tui_grid grid;
    tide_tui_view view;
    uint64_t min[SAMPLE_COLUMNS], max[SAMPLE_COLUMNS], mini[SAMPLE_COLUMNS];
    tide_tui_gantt_row gantt[SAMPLE_ROWS];
    tide_row_span spans[SAMPLE_ROWS][SAMPLE_COLUMNS];
    tide_space space;
    tide_region regions[2];
    tide_space_cell cells[SAMPLE_COLUMNS * 128];
} scene_sample;

/// Column i of n of a window, as tide_tui_axis defines it: [*lo, *hi).
static inline void sample_column(tide_tui_window w, int n, int i, int64_t *lo, int64_t *hi) {
    const int64_t span = w.end - w.begin;
    *lo = w.begin + span * i / n;
    *hi = w.begin + span * (i + 1) / n;
    if (*hi <= *lo) *hi = *lo + 1;
}

static inline uint64_t sample_bytes_at(int64_t t) {
    uint64_t sum = 0;
    for (int i = 0; i < SAMPLE_LIVES; i++)
        if (sample_lives[i].begin <= t && t < sample_lives[i].end) sum += sample_lives[i].bytes;
    return sum;
}

static inline void sample_extents(tide_tui_window w, int n, uint64_t *min, uint64_t *max) {
    for (int i = 0; i < n; i++) {
        int64_t lo, hi;
        sample_column(w, n, i, &lo, &hi);
        uint64_t least = UINT64_MAX, most = 0;
        for (int64_t t = lo; t < hi; t++) {
            const uint64_t bytes = sample_bytes_at(t);
            if (bytes < least) least = bytes;
            if (bytes > most) most = bytes;
        }
        if (min != NULL) min[i] = least;
        max[i] = most;
    }
}

static inline void sample_spans(tide_tui_window w, int n, const sample_life *life, tide_row_span *out) {
    for (int i = 0; i < n; i++) {
        int64_t lo, hi;
        sample_column(w, n, i, &lo, &hi);
        out[i] = (tide_row_span){0};
        if (life->begin >= hi || life->end <= lo) continue;
        out[i] =
            (tide_row_span){.n = 1,
                            .fill = (uint8_t)life->fill,
                            .starts = life->begin >= lo && life->begin<hi, .ends = life->end> lo && life->end <= hi};
    }
}

/// What is at a place at a time: an item, a hole, or free memory.
static inline uint32_t sample_holder(int64_t t, uint64_t place) {
    uint64_t top = 0;
    for (int i = 0; i < SAMPLE_LIVES - 1; i++) { // the last one has no place
        const sample_life *l = &sample_lives[i];
        if (t < l->begin || t >= l->end) continue;
        if (place >= l->place && place < l->place + l->bytes) return (uint32_t)i;
        if (l->place + l->bytes > top) top = l->place + l->bytes;
    }
    return place < top ? TIDE_SPACE_HOLE : TIDE_SPACE_FREE;
}

static inline void sample_map(scene_sample *s) {
    const int w = s->layout.map.w, h = 2 * s->layout.map.h;
    if (w <= 0) return;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            int64_t lo, hi;
            sample_column(s->state.window, w, x, &lo, &hi);
            const uint64_t place = s->space.bytes * (uint64_t)(2 * y + 1) / (uint64_t)(2 * h);
            s->cells[y * w + x] = (tide_space_cell){.item = sample_holder(lo, place)};
        }
    }
}

/// Everything that depends on window, size and preset.
static inline void scene_sample_again(scene_sample *s) {
    const int w = s->layout.panes[TIDE_TUI_PANE_CURVE].w;
    s->scene.n_columns = (size_t)w;
    sample_extents(s->state.window, w, s->min, s->max);
    sample_extents((tide_tui_window){0, 8}, s->layout.minimap.w, NULL, s->mini);
    s->scene.cursor_bytes = sample_bytes_at(s->state.cursor);
    s->scene.cursor_step = (size_t)s->state.cursor;
    s->scene.n_gantt = 0;
    for (size_t i = s->state.top; i < SAMPLE_LIVES && (int)s->scene.n_gantt < s->layout.bars.h; i++) {
        const sample_life *life = &sample_lives[i];
        tide_tui_gantt_row *row = &s->gantt[s->scene.n_gantt];
        *row =
            (tide_tui_gantt_row){.item = (uint32_t)i,
                                 .n_members = 1,
                                 .name = life->name,
                                 .owner = life->owner,
                                 .bytes = life->bytes,
                                 .fill = life->fill,
                                 .where = life->end <= s->state.window.begin ? -1 : life->begin >= s->state.window.end,
                                 .spans = s->spans[s->scene.n_gantt]};
        sample_spans(s->state.window, s->layout.bars.w, life, row->spans);
        s->scene.n_gantt++;
    }
    sample_map(s);
}

static inline void scene_sample_resize(scene_sample *s, int width, int height) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_layout_make(width, height, s->state.preset, s->state.focus, &s->layout);
    assert_tide_ok(tide_tui_grid_resize(&s->grid, width, height, &err), &err);
    if (!s->layout.too_small) scene_sample_again(s);
}

/// 80 columns and 24 lines, lifetimes, everything in view, blocks with colours.
static inline scene_sample *scene_sample_new(void) {
    static const char *const steps[] = {"Conv_0", "Relu_1", "Conv_2", "MaxPool_3",
                                        "Conv_4", "Add_5",  "Gemm_6", "Softmax_7"};
    static const int64_t begins[] = {0, 1, 2, 3, 4, 5, 6, 7};
    scene_sample *s = tide_host_calloc(1, sizeof *s);
    assert_non_null(s);
    s->a = (tide_subject_facts){.axis = TIDE_AXIS_STEPS,
                                .begin = 0,
                                .end = 8,
                                .path = "",
                                .title = "smallnet: planned, greedy_by_size",
                                .model = "smallnet",
                                .mode = "planned",
                                .strategy = "greedy_by_size",
                                .n_items = SAMPLE_LIVES,
                                .peak_bytes = 491520,
                                .peak = {.t = 2},
                                .has_plan = true,
                                .plan_bytes = 524288,
                                .naive_bytes = 958464,
                                .lower_bound_bytes = 491520,
                                .levels = {.known = true, .plan = 524288, .bound = 491520},
                                .step_names = steps,
                                .step_begin = begins,
                                .n_steps = 8};
    s->rows = (tide_rows){.n = SAMPLE_LIVES, .n_members = SAMPLE_LIVES};
    s->regions[0] = (tide_region){
        .label = NULL, .bytes = 524288, .begin = 0, .end = 8, .bound_bytes = 491520, .kind = TIDE_KIND_WORKSPACE};
    s->space = (tide_space){.regions = s->regions, .n = 1, .bytes = 524288, .has_holes = true};
    s->state.window = (tide_tui_window){0, 8};
    s->state.cursor = 2;
    s->state.focus = TIDE_TUI_PANE_GANTT;
    s->state.curve_kind = -1;
    s->state.space_cursor = -1;
    s->state.item = TIDE_NO_ITEM;
    s->scene = (tide_tui_scene){.state = &s->state,
                                .layout = &s->layout,
                                .a = &s->a,
                                .min = s->min,
                                .max = s->max,
                                .mini_max = s->mini,
                                .top_bytes = 524288,
                                .rows = &s->rows,
                                .gantt = s->gantt,
                                .cells = s->cells,
                                .space = &s->space};
    s->view = (tide_tui_view){&s->scene, tide_tui_glyphs_of(false), &s->grid};
    scene_sample_resize(s, 80, 24);
    return s;
}

static inline void scene_sample_destroy(scene_sample *s) {
    tide_tui_grid_deinit(&s->grid);
    tide_host_free(s);
}

/// One pane on a blank grid.
static inline void scene_sample_draw(scene_sample *s, void (*draw)(const tide_tui_view *)) {
    tide_tui_grid_clear(&s->grid);
    const tide_tui_locale locale = tide_tui_locale_enter();
    draw(&s->view);
    tide_tui_locale_leave(locale);
}

/// The whole grid as text, owned by the caller.
static inline tide_text scene_sample_text(const scene_sample *s) {
    tide_text text = {0};
    tide_tui_grid_to_text(&s->grid, &text);
    return text;
}

static inline void scene_sample_print(const scene_sample *s) {
    tide_text text = scene_sample_text(s);
    fputs(tide_text_str(&text), stderr);
    tide_text_deinit(&text);
}

/// Fails unless the drawn text has `needle`.
static inline void scene_sample_has(const scene_sample *s, const char *needle) {
    tide_text text = scene_sample_text(s);
    const bool has = strstr(tide_text_str(&text), needle) != NULL;
    tide_text_deinit(&text);
    if (has) return;
    scene_sample_print(s);
    fail_msg("'%s' is not there", needle);
}
static inline void scene_sample_lacks(const scene_sample *s, const char *needle) {
    tide_text text = scene_sample_text(s);
    const bool has = strstr(tide_text_str(&text), needle) != NULL;
    tide_text_deinit(&text);
    if (!has) return;
    scene_sample_print(s);
    fail_msg("'%s' is there", needle);
}

/// Fails when `draw` writes outside of the given rectangles, or nothing at all.
static inline void scene_sample_keeps_to(scene_sample *s, void (*draw)(const tide_tui_view *), const tide_tui_rect *own,
                                         size_t n) {
    const uint8_t untouched = 255;
    const size_t cells = (size_t)s->grid.width * (size_t)s->grid.height;
    for (size_t i = 0; i < cells; i++) s->grid.cells[i] = (tide_tui_cell){.glyph = ' ', .role = untouched};
    draw(&s->view);
    size_t n_drawn = 0;
    for (int y = 0; y < s->grid.height; y++) {
        for (int x = 0; x < s->grid.width; x++) {
            const tide_tui_cell cell = tide_tui_get(&s->grid, x, y);
            if (cell.role == untouched && cell.glyph == ' ' && cell.ground == 0 && cell.marks == 0) continue;
            n_drawn++;
            bool is_own = false;
            for (size_t i = 0; i < n; i++)
                is_own =
                    is_own || (x >= own[i].x && x < own[i].x + own[i].w && y >= own[i].y && y < own[i].y + own[i].h);
            if (!is_own) fail_msg("a cell outside its pane at %d,%d of %dx%d", x, y, s->grid.width, s->grid.height);
        }
    }
    assert_true(n_drawn > 0);
}

#endif
