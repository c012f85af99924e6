// SPDX-License-Identifier: MIT
//
// The proof of every pane: the SQL that it names, run over the trace, gives the numbers of the scene.
#include "tests/profiler/trace_fixture.h"
#include "tests/tide_test.h"

#include "tui/draw/panes.h"
#include "tui/pane_sql.h"

// ---- a trace ----

/// Blocks of an allocator with segments: 4096 + 8192 bytes taken, 1000 + 3000 used, one leaks.
static void record_segments(feeder *f) {
    const struct {
        tide_memory_op op;
        uint64_t t, id, requested, reserved, address;
        const char *tag;
    } events[] = {
        {TIDE_MEM_SEGMENT_ALLOC, 2910, 0, 4096, 4096, 0x100000, NULL},
        {TIDE_MEM_ALLOC, 2911, 31, 1000, 1024, 0x100000, "cached_a"},
        {TIDE_MEM_SEGMENT_ALLOC, 2912, 0, 8192, 8192, 0x200000, NULL},
        {TIDE_MEM_ALLOC, 2913, 32, 3000, 3072, 0x200000, "cached_b"},
        {TIDE_MEM_ALLOC, 2914, 33, 500, 512, 0x100800, "cached_c"},
        {TIDE_MEM_FREE_COMPLETED, 2920, 33, 500, 512, 0x100800, "cached_c"},
        {TIDE_MEM_FREE_COMPLETED, 2930, 31, 1000, 1024, 0x100000, "cached_a"},
        {TIDE_MEM_SEGMENT_FREE, 2935, 0, 4096, 4096, 0x100000, NULL},
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        const tide_memory_event event = {.op = events[i].op,
                                         .t_ns = events[i].t,
                                         .block_id = events[i].id,
                                         .device = TIDE_CPU,
                                         .kind = TIDE_KIND_WORKSPACE,
                                         .requested_bytes = events[i].requested,
                                         .reserved_bytes = events[i].reserved,
                                         .address = events[i].address,
                                         .thread = 1,
                                         .allocator = "stream_caching",
                                         .tag = events[i].tag};
        f->now = events[i].t;
        f->obs.on_memory(f->obs.self, &event);
    }
}

static void record(const char *path) {
    feeder f;
    feeder_open(&f, path, 16, false);
    tide_memory_plan *plan = demo_plan_make();
    demo_naive_run(&f, plan);
    demo_planned_run(&f, plan);
    record_segments(&f);
    tide_memory_plan_destroy(plan);
    feeder_close(&f);
}

// ---- a view of it ----

typedef struct look {
    tmp_dir dir;
    tide_subject *a;
    tide_tui_query_cache *cache;
    tide_tui_state state;
    tide_tui_layout layout;
    tide_tui_scene scene;
} look;

static void look_open(look *l, int64_t run_id) {
    tide_error err = TIDE_ERROR_INIT;
    *l = (look){.a = NULL};
    tmp_dir_make(&l->dir);
    record(l->dir.file);
    assert_tide_ok(tide_subject_of_trace(l->dir.file, run_id, &l->a, &err), &err);
    assert_tide_ok(tide_tui_query_cache_create(NULL, &l->cache, &err), &err);
    tide_tui_state_init(&l->state, l->a, NULL);
}

static void look_close(look *l) {
    tide_tui_query_cache_destroy(l->cache);
    tide_subject_destroy(l->a);
    tmp_dir_remove(&l->dir);
}

static bool preset_has(tide_tui_preset preset, tide_tui_pane pane) {
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    const int n = tide_tui_preset_panes(preset, panes);
    for (int i = 0; i < n; i++)
        if (panes[i] == pane) return true;
    return false;
}

/// A scene that shows the pane.
static const tide_tui_scene *look_at(look *l, tide_tui_pane pane) {
    tide_error err = TIDE_ERROR_INIT;
    for (int preset = 0; preset < TIDE_TUI_N_PRESETS; preset++) {
        l->state.preset = (tide_tui_preset)preset;
        if (preset_has(l->state.preset, pane)) break;
    }
    l->state.focus = pane;
    tide_tui_layout_make(120, 40, l->state.preset, pane, &l->layout);
    assert_true(l->layout.panes[pane].w > 0);
    assert_tide_ok(tide_tui_scene_make(l->cache, &l->state, &l->layout, &l->scene, &err), &err);
    if (l->scene.error[pane][0] != '\0') fail_msg("%s: %s", tide_tui_pane_name(pane), l->scene.error[pane]);
    return &l->scene;
}

static void set_cursor(look *l, int64_t t, uint64_t event) {
    l->state.cursor = t;
    l->state.cursor_event = event;
}

// ---- answers ----

typedef struct answer {
    tide_text text;
    char *cells[400][32]; ///< [row][column]; row 0: names of columns
    size_t n_rows, n_columns;
} answer;

/// What tide_trace_sql says to the pane's text, cut into cells.
static void ask(look *l, tide_tui_pane pane, answer *out) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text sql = {0};
    tide_tui_pane_sql(&l->scene, pane, &sql);
    *out = (answer){.n_rows = 0};
    const tide_status st = tide_trace_sql(tide_subject_trace(l->a), tide_text_str(&sql), "\t", 0, &out->text, &err);
    if (st != TIDE_OK) fail_msg("%s\n%s\n%s", tide_tui_pane_name(pane), tide_text_str(&sql), err.msg);
    tide_text_deinit(&sql);
    assert_false(out->text.failed);
    for (char *line = out->text.data, *next; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        assert_true(out->n_rows < 400);
        size_t n = 0;
        for (char *cell = line, *tab; cell != NULL; cell = tab) {
            tab = strchr(cell, '\t');
            if (tab != NULL) *tab++ = '\0';
            assert_true(n < 32);
            out->cells[out->n_rows][n++] = cell;
        }
        out->n_columns = n;
        out->n_rows++;
    }
    assert_true(out->n_rows > 0);
    out->n_rows--;
}

static const char *cell(const answer *a, size_t row, const char *column) {
    for (size_t c = 0; c < a->n_columns; c++)
        if (strcmp(a->cells[0][c], column) == 0) return a->cells[row + 1][c];
    fail_msg("there is no column '%s'", column);
    return "";
}
static uint64_t number(const answer *a, size_t row, const char *column) {
    return strtoull(cell(a, row, column), NULL, 10);
}
static uint64_t sum_of(const answer *a, const char *column) {
    uint64_t sum = 0;
    for (size_t i = 0; i < a->n_rows; i++) sum += number(a, i, column);
    return sum;
}

/// Moments of the demo: before anything, inside steps, at the peaks, behind the runs, at its end.
static const int64_t moments[] = {1000, 1010, 1115, 1180, 1215, 1320, 1370, 1475, 1600, 2040, 2660, 2800, 2915, 2925};
enum { N_MOMENTS = (int)(sizeof moments / sizeof moments[0]) };

static void is_table(look *l) {
    answer got;
    const tide_tui_scene *s = look_at(l, TIDE_TUI_PANE_TABLE);
    ask(l, TIDE_TUI_PANE_TABLE, &got);
    assert_int_equal(got.n_rows, s->live->n);
    for (size_t i = 0; i < got.n_rows; i++) {
        assert_string_equal(cell(&got, i, "name"), s->live->items[i].site.name);
        assert_int_equal(number(&got, i, "requested_bytes"), s->live->items[i].counts_bytes);
        assert_int_equal(number(&got, i, "alloc_ns"), s->live->items[i].begin > s->a->begin
                                                          ? (uint64_t)s->live->items[i].begin
                                                          : number(&got, i, "alloc_ns"));
    }
    assert_int_equal(sum_of(&got, "requested_bytes"), s->live->bytes);
    assert_int_equal(s->live->bytes, s->cursor_bytes);
    tide_text_deinit(&got.text);
}

static void the_table_is_the_live_set(void **state) {
    (void)state;
    for (int64_t run = 0; run <= 2; run++) {
        look l;
        look_open(&l, run);
        is_table(&l); // at the peak, which is an event
        for (int i = 0; i < N_MOMENTS; i++) {
            if (moments[i] < l.scene.a->begin || moments[i] >= l.scene.a->end) continue;
            set_cursor(&l, moments[i], 0);
            is_table(&l);
        }
        look_close(&l);
    }
}

static void the_curve_is_live_bytes(void **state) {
    (void)state;
    for (int64_t run = 0; run <= 2; run++) {
        for (int kind = -1; kind <= TIDE_KIND_WORKSPACE; kind++) {
            look l;
            look_open(&l, run);
            l.state.curve_kind = kind;
            const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_CURVE);
            answer got;
            ask(&l, TIDE_TUI_PANE_CURVE, &got);
            assert_true(got.n_rows >= 2);
            uint64_t want = 0, most = 0;
            for (size_t i = 0; i < got.n_rows; i++)
                if (number(&got, i, "bytes") > want) want = number(&got, i, "bytes");
            for (size_t i = 0; i < s->n_columns; i++)
                if (s->max[i] > most) most = s->max[i];
            assert_int_equal(most, want);
            tide_text_deinit(&got.text);
            look_close(&l);
        }
    }
}

static void the_gantt_is_the_blocks_of_the_run(void **state) {
    (void)state;
    for (int64_t run = 0; run <= 2; run++) {
        look l;
        look_open(&l, run);
        const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_GANTT);
        answer got;
        ask(&l, TIDE_TUI_PANE_GANTT, &got);
        assert_int_equal(got.n_rows, s->rows->n_members);
        const tide_items *items = tide_subject_items(l.a);
        for (size_t i = 0; i < got.n_rows; i++) // the table of items has the same order
            assert_string_equal(cell(&got, i, "name"), tide_items_site(items, i)->name);
        tide_text_deinit(&got.text);
        look_close(&l);
    }
}

static void operators_make_and_free_what_sql_says(void **state) {
    (void)state;
    for (int64_t run = 1; run <= 2; run++) { // blocks; tensors in a plan's buffer
        look l;
        look_open(&l, run);
        const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_OPERATORS);
        answer got;
        ask(&l, TIDE_TUI_PANE_OPERATORS, &got);
        assert_int_equal(got.n_rows, s->n_operators);
        assert_int_equal(got.n_rows, N_DEMO_STEPS);
        assert_true(sum_of(&got, "makes_bytes") > 0);
        for (size_t i = 0; i < got.n_rows; i++) {
            assert_string_equal(cell(&got, i, "name"), s->operators[i].name);
            assert_int_equal(number(&got, i, "makes_bytes"), s->operators[i].makes_bytes);
            assert_int_equal(number(&got, i, "frees_bytes"), s->operators[i].frees_bytes);
        }
        tide_text_deinit(&got.text);
        look_close(&l);
    }
}

static void the_explanation_is_grouped_live_blocks(void **state) {
    (void)state;
    look l;
    look_open(&l, 1);
    for (int i = -1; i < N_MOMENTS; i++) {
        if (i >= 0 && (moments[i] < 1010 || moments[i] > 1500)) continue;
        if (i >= 0) set_cursor(&l, moments[i], 0);
        const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_EXPLAIN);
        answer got;
        ask(&l, TIDE_TUI_PANE_EXPLAIN, &got);
        uint64_t outside = 0; // of all operators: the scene tells inputs, weights and outputs apart, a scope does not
        size_t n_named = 0;
        for (size_t k = 0; k < s->explanation->n_by_owner; k++) {
            const tide_explain_group *group = &s->explanation->by_owner[k];
            bool found = group->key[0] == '(';
            if (found) outside += group->bytes;
            for (size_t r = 0; r < got.n_rows && !found; r++)
                found = strcmp(cell(&got, r, "operator"), group->key) == 0 &&
                        number(&got, r, "live_bytes") == group->bytes && number(&got, r, "blocks") == group->n;
            if (!found) fail_msg("'%s' is not what SQL says", group->key);
            n_named += group->key[0] != '(';
        }
        for (size_t r = 0; r < got.n_rows; r++) {
            if (cell(&got, r, "operator")[0] == '\0') assert_int_equal(number(&got, r, "live_bytes"), outside);
            n_named -= cell(&got, r, "operator")[0] != '\0';
        }
        assert_int_equal(n_named, 0);
        assert_int_equal(sum_of(&got, "live_bytes"), s->explanation->parts[TIDE_PART_LIVE]);
        assert_int_equal(sum_of(&got, "rounding_bytes"), s->explanation->parts[TIDE_PART_ROUNDING]);
        tide_text_deinit(&got.text);
    }
    look_close(&l);
}

static void pools_hold_what_sql_says(void **state) {
    (void)state;
    look l;
    look_open(&l, 0);
    static const int64_t when[] = {1320, 2660, 2911, 2915, 2925, 2931, 2935};
    for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
        set_cursor(&l, when[i], 0);
        const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_POOLS);
        answer got;
        ask(&l, TIDE_TUI_PANE_POOLS, &got);
        assert_int_equal(sum_of(&got, "reserved_bytes"), s->pools->reserved_bytes);
        assert_int_equal(sum_of(&got, "active_bytes"), s->pools->active_bytes);
        assert_int_equal(sum_of(&got, "requested_bytes"), s->pools->requested_bytes);
        assert_int_equal(sum_of(&got, "cached_bytes"), s->pools->cached_bytes);
        for (size_t k = 0; k < s->pools->n; k++) {
            bool found = s->pools->items[k].reserved_bytes == 0;
            for (size_t r = 0; r < got.n_rows; r++)
                found = found || (strcmp(cell(&got, r, "allocator"), s->pools->items[k].name) == 0 &&
                                  number(&got, r, "reserved_bytes") == s->pools->items[k].reserved_bytes &&
                                  number(&got, r, "cached_bytes") == s->pools->items[k].cached_bytes);
            assert_true(found);
        }
        tide_text_deinit(&got.text);
    }
    look_close(&l);
}

static void leaks_began_when_sql_says(void **state) {
    (void)state;
    look l;
    look_open(&l, 0);
    const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_POOLS);
    assert_non_null(s->leaks);
    l.state.pane_row[TIDE_TUI_PANE_POOLS] = s->pools->n; // the first leak
    s = look_at(&l, TIDE_TUI_PANE_POOLS);
    answer got;
    ask(&l, TIDE_TUI_PANE_POOLS, &got);
    assert_int_equal(got.n_rows, s->leaks->n);
    assert_int_equal(got.n_rows, 2); // "kept" and "cached_b"
    for (size_t i = 0; i < got.n_rows; i++) {
        bool found = false;
        for (size_t k = 0; k < s->leaks->n; k++)
            found = found || (strcmp(cell(&got, i, "name"), s->leaks->items[k].name) == 0 &&
                              number(&got, i, "bytes") == s->leaks->items[k].bytes &&
                              number(&got, i, "blocks") == s->leaks->items[k].n &&
                              number(&got, i, "began_ns") == (uint64_t)s->leaks->items[k].first);
        assert_true(found);
    }
    tide_text_deinit(&got.text);
    look_close(&l);
}

static void two_moments_differ_by_what_sql_says(void **state) {
    (void)state;
    look l;
    look_open(&l, 1);
    l.state.compares_moments = true;
    l.state.a_moment = (tide_moment){.t = 1120};
    l.state.b_moment = (tide_moment){.t = 1320};
    const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_COMPARE);
    answer got;
    ask(&l, TIDE_TUI_PANE_COMPARE, &got);
    assert_true(got.n_rows >= 3);
    for (size_t i = 0; i < got.n_rows; i++) {
        bool found = false;
        for (size_t k = 0; k < s->diff->n_by_owner; k++)
            found = found || (strcmp(cell(&got, i, "scope"), s->diff->by_owner[k].key) == 0 &&
                              number(&got, i, "a_bytes") == s->diff->by_owner[k].a_bytes &&
                              number(&got, i, "b_bytes") == s->diff->by_owner[k].b_bytes);
        if (!found) fail_msg("'%s' is not in the waterfall", cell(&got, i, "scope"));
    }
    tide_text_deinit(&got.text);
    look_close(&l);
}

static void details_and_plan_are_rows_of_the_trace(void **state) {
    (void)state;
    look l;
    look_open(&l, 1);
    look_at(&l, TIDE_TUI_PANE_GANTT);
    for (uint32_t item = 0; item < 8; item++) {
        l.state.item = item;
        const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_GANTT);
        assert_true(s->has_selection);
        answer got;
        ask(&l, TIDE_TUI_PANE_DETAILS, &got);
        assert_int_equal(got.n_rows, 1);
        assert_string_equal(cell(&got, 0, "name"), s->selection.site.name);
        assert_int_equal(number(&got, 0, "requested_bytes"), s->selection.shape.size_bytes);
        assert_int_equal(number(&got, 0, "reserved_bytes"), s->selection.shape.reserved_bytes);
        tide_text_deinit(&got.text);
    }
    answer got;
    ask(&l, TIDE_TUI_PANE_WHATIF, &got);
    assert_int_equal(number(&got, 0, "bytes"), l.scene.a->plan_bytes);
    assert_int_equal(number(&got, 0, "lower_bound_bytes"), l.scene.a->lower_bound_bytes);
    tide_text_deinit(&got.text);
    look_close(&l);
}

/// In a planned run tensors stand in the place of the buffer: their rows are the plan's.
static void details_of_a_planned_tensor_are_its_row_of_the_plan(void **state) {
    (void)state;
    look l;
    look_open(&l, 2);
    look_at(&l, TIDE_TUI_PANE_GANTT);
    const size_t n = tide_subject_items(l.a)->n;
    size_t n_planned = 0;
    for (uint32_t item = 0; item < n; item++) {
        l.state.item = item;
        const tide_tui_scene *s = look_at(&l, TIDE_TUI_PANE_GANTT);
        if (!s->selection.shape.is_planned) continue;
        answer got;
        ask(&l, TIDE_TUI_PANE_DETAILS, &got);
        assert_int_equal(got.n_rows, 1);
        assert_string_equal(cell(&got, 0, "name"), s->selection.site.name);
        assert_int_equal(number(&got, 0, "size_bytes"), s->selection.shape.size_bytes);
        assert_int_equal(number(&got, 0, "offset_bytes"), s->selection.place);
        tide_text_deinit(&got.text);
        n_planned++;
    }
    assert_int_equal(n_planned, 2 * 5); // a, conv.scratch, b, c, conv2.scratch
    look_close(&l);
}

/// No pane's text is refused, for a whole trace, a naive and a planned run, at moments and at events.
static void every_text_is_valid(void **state) {
    (void)state;
    for (int64_t run = 0; run <= 2; run++) {
        for (int by_event = 0; by_event < 2; by_event++) {
            look l;
            look_open(&l, run);
            if (by_event == 0) l.state.cursor_event = 0;
            for (int pane = 0; pane < TIDE_TUI_N_PANES; pane++) {
                answer got;
                look_at(&l, TIDE_TUI_PANE_GANTT);
                ask(&l, (tide_tui_pane)pane, &got);
                tide_text_deinit(&got.text);
            }
            look_close(&l);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_the_live_set),
        cmocka_unit_test(the_curve_is_live_bytes),
        cmocka_unit_test(the_gantt_is_the_blocks_of_the_run),
        cmocka_unit_test(operators_make_and_free_what_sql_says),
        cmocka_unit_test(the_explanation_is_grouped_live_blocks),
        cmocka_unit_test(pools_hold_what_sql_says),
        cmocka_unit_test(leaks_began_when_sql_says),
        cmocka_unit_test(two_moments_differ_by_what_sql_says),
        cmocka_unit_test(details_and_plan_are_rows_of_the_trace),
        cmocka_unit_test(details_of_a_planned_tensor_are_its_row_of_the_plan),
        cmocka_unit_test(every_text_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
