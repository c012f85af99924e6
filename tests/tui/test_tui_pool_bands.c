// SPDX-License-Identifier: MIT
//
// Pools over time in view 4: what is cached is seen in a band of one line too; the tensors that pass through the pools
// of a colouring plan; the pools of A beside those of B.
#include "analysis/table.h"
#include "tests/tui/view_fixture.h"

/// The lifetimes of the small plan, placed by another strategy.
static tide_memory_plan *plan_by(const char *name, uint64_t conv2_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *strategy = NULL;
    tide_memory_plan *offsets = small_plan(conv2_bytes), *plan = NULL;
    assert_tide_ok(tide_strategy_find(name, &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&offsets->lifetimes, strategy, NULL, &plan, &err), &err);
    tide_memory_plan_destroy(offsets);
    return plan;
}

static void draw(view *v) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_frame(v->app, &err), &err);
}

static void line_at(const view *v, int y, char *buf, size_t buf_bytes) {
    size_t n = 0;
    for (int x = 0; x < v->app->grid.width && n + 1 < buf_bytes; x++) {
        const uint32_t glyph = tide_tui_get(&v->app->grid, x, y).glyph;
        buf[n++] = glyph < 0x7F ? (char)glyph : '?';
    }
    buf[n] = 0;
}

/// The first line of the pane that has both texts; -1: none.
static int line_with(const view *v, const char *text, const char *other) {
    const tide_tui_rect r = v->app->layout.panes[TIDE_TUI_PANE_POOLS];
    char line[512];
    for (int y = r.y; y < r.y + r.h; y++) {
        line_at(v, y, line, sizeof line);
        if (strstr(line, text) != NULL && strstr(line, other) != NULL) return y;
    }
    return -1;
}

static void must_have(const view *v, const char *text, const char *other) {
    if (line_with(v, text, other) >= 0) return;
    tide_text frame = {0};
    tide_tui_grid_to_text(&v->app->grid, &frame);
    fputs(tide_text_str(&frame), stderr);
    tide_text_deinit(&frame);
    fail_msg("no line with '%s' and '%s'", text, other);
}

static void open_plans(view *v, tide_memory_plan *a, tide_memory_plan *b, int width, int height) {
    view_open(v, subject_of_plan(a), b != NULL ? subject_of_plan(b) : NULL, width, height);
    view_keys(v, "4");
    draw(v);
}

// ---- one line ----

/// The line of a pool's band, the last one that begins with its name; -1: it is not drawn, or in several lines.
static int line_of_band(const view *v, const tide_pool *p, bool is_first) {
    const tide_tui_rect curve = v->app->layout.panes[TIDE_TUI_PANE_CURVE];
    char name[32], line[512];
    int y = -1;
    snprintf(name, sizeof name, "%s%s ", is_first ? "> " : "  ", p->name);
    for (int i = curve.y + curve.h; i < v->app->grid.height; i++) {
        line_at(v, i, line, sizeof line);
        if (strncmp(line, name, strlen(name)) == 0) y = i;
    }
    if (y < 0) return -1;
    line_at(v, y + 1, line, sizeof line);
    return strncmp(line, "  Workspace", 11) == 0 ? -1 : y;
}

/// Each new height is drawn, and where bytes are cached a hatch stands beside it. @return whether some are
static bool check_one_line(const view *v, const tide_trace_pool_column *c, int y) {
    const tide_tui_rect curve = v->app->layout.panes[TIDE_TUI_PANE_CURVE];
    int n_hatched = 0, n_used = 0;
    bool has_cached = false;
    for (int x = 0; x < curve.w; x++) {
        const uint32_t glyph = tide_tui_get(&v->app->grid, curve.x + x, y).glyph;
        if (glyph == v->app->glyphs->cursor || c[x].active_bytes == 0) continue;
        has_cached = has_cached || c[x].cached_bytes >= c[x].reserved_bytes / 4;
        n_hatched += glyph == v->app->glyphs->spike;
        n_used += glyph != v->app->glyphs->spike;
        const bool is_new = x == 0 || c[x].active_bytes != c[x - 1].active_bytes;
        if (is_new) assert_int_not_equal(glyph, v->app->glyphs->spike);
    }
    if (has_cached) assert_true(n_hatched > 0 && n_used >= n_hatched);
    return has_cached;
}

static void what_is_cached_is_seen_in_one_line(void **state) {
    (void)state;
    int n_bands = 0;
    for (int w = 90; w < 120; w++) {
        view v;
        open_plans(&v, plan_by("greedy_color", 262144), NULL, w, 26);
        const tide_pool_history *h = v.app->scene.pool_history;
        assert_non_null(h);
        for (size_t k = 0; k < v.app->scene.pools->n; k++) {
            const tide_pool *p = &v.app->scene.pools->items[k];
            const int y = line_of_band(&v, p, k == 0);
            if (y >= 0) n_bands += check_one_line(&v, &h->columns[p->number * h->n_columns], y);
        }
        view_close(&v);
    }
    assert_true(n_bands > 30);
}

// ---- tensors ----

/// The largest first, with what each leaves over; in brackets the one that is there at the cursor.
static void lanes_name_the_tensors(void **state) {
    (void)state;
    view v;
    open_plans(&v, plan_by("greedy_color", 262144), NULL, 200, 60);
    const tide_pool_tensors *t = v.app->scene.pool_tensors;
    assert_non_null(t);
    view_do(&v, "goto 2");
    draw(&v);
    for (size_t k = 0; k < t->n_pools; k++) {
        char first[96], now[96];
        const tide_pool_tensor *large = &t->items[t->first[k]];
        snprintf(first, sizeof first, "%s ", large->name);
        must_have(&v, first, "left over)");
        for (size_t i = t->first[k]; i < t->first[k + 1]; i++) {
            snprintf(now, sizeof now, "[%s ", t->items[i].name);
            const bool is_there = t->items[i].begin <= 2 && 2 < t->items[i].end;
            if (is_there) must_have(&v, now, "left over)]");
            if (!is_there) assert_int_equal(line_with(&v, now, ""), -1);
        }
    }
    assert_true(t->items[0].bytes == 262144);
    must_have(&v, "[conv2_out 256K (0 left over)], conv0_out 192K (64.0K left over)", "4.00K (252K left over)");
    view_close(&v);
}

static void lanes_at_every_size(void **state) {
    (void)state;
    for (int w = 40; w <= 240; w += 9) {
        for (int h = 20; h <= 60; h += 4) {
            view v;
            open_plans(&v, plan_by("greedy_color", 262144), NULL, w, h);
            const tide_tui_rect pane = v.app->layout.panes[TIDE_TUI_PANE_POOLS];
            if (pane.h >= 8) must_have(&v, w >= 80 ? "conv2_out 256K" : "256K", w < 60 ? "" : "left");
            assert_int_equal(line_with(&v, "A plan has no leaks", ""), -1);
            view_close(&v);
        }
    }
}

static void plans_of_offsets_have_none(void **state) {
    (void)state;
    view v;
    open_plans(&v, small_plan(262144), NULL, 120, 40);
    assert_null(v.app->scene.pool_tensors);
    assert_int_equal(line_with(&v, "left over", ""), -1);
    assert_true(line_with(&v, "A plan has no leaks", "") > 0);
    view_close(&v);
}

// ---- A and B ----

/// What a side holds at a step, asked of the subject itself.
static void ask(tide_subject *s, int64_t step, tide_pools *out) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_pools_at(s, (tide_moment){step, 0}, 0, 7, NULL, out, &err), &err);
}

static const tide_pool *named(const tide_pools *pools, const char *name) {
    for (size_t i = 0; i < pools->n; i++)
        if (strcmp(pools->items[i].name, name) == 0) return &pools->items[i];
    return NULL;
}

static void say(const tide_pool *p, char *buf, size_t buf_bytes) {
    if (p != NULL)
        tide_format_bytes(p->active_bytes, buf, buf_bytes);
    else
        snprintf(buf, buf_bytes, "-");
}

/// At every step each row has what A and B hold there, and the difference.
static void check_rows(view *v, int64_t step) {
    tide_pools a, b;
    ask(v->a, step, &a);
    ask(v->b, step, &b);
    const tide_tui_scene *s = &v->app->scene;
    size_t n_b = 0;
    for (size_t i = 0; i < s->pools->n; i++) {
        const char *name = s->pools->items[i].name;
        const tide_pool *of_a = named(&a, name), *of_b = named(&b, name);
        char begin[40], used_a[32], used_b[32], change[32];
        say(of_a, used_a, sizeof used_a);
        say(of_b, used_b, sizeof used_b);
        tide_format_change(of_a != NULL ? of_a->active_bytes : 0, of_b != NULL ? of_b->active_bytes : 0, change,
                           sizeof change);
        snprintf(begin, sizeof begin, "> %s ", name);
        v->app->st.pane_row[TIDE_TUI_PANE_POOLS] = i;
        draw(v);
        const int y = line_with(v, begin, used_a);
        assert_true(y > 0);
        char line[512], words[3][32] = {"", "", ""};
        line_at(v, y, line, sizeof line);
        // the last three figures of the line
        char *end = line + strlen(line);
        for (int k = 2; k >= 0; k--) {
            while (end > line && end[-1] == ' ') *--end = 0;
            char *at = end;
            while (at > line && !(at[-1] == ' ' && at[-2] == ' ')) at--;
            snprintf(words[k], sizeof words[k], "%.31s", at);
            *(end = at) = 0;
        }
        assert_string_equal(words[0], used_a);
        assert_string_equal(words[1], used_b);
        assert_string_equal(words[2], change);
        n_b += of_b != NULL;
    }
    assert_int_equal(n_b, b.n); // none of B is left out
    v->app->st.pane_row[TIDE_TUI_PANE_POOLS] = 0;
    draw(v);
    tide_pools_deinit(&a);
    tide_pools_deinit(&b);
}

static void both_sides_at_every_step(void **state) {
    (void)state;
    static const char *const others[] = {"greedy_by_size", "greedy_color_best", "greedy_color"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        view v;
        open_plans(&v, plan_by("greedy_color", 262144), plan_by(others[i], 131072), 130, 60);
        for (int step = 0; step < 8; step++) {
            char line[16];
            snprintf(line, sizeof line, "goto %d", step);
            view_do(&v, line);
            draw(&v);
            assert_non_null(v.app->scene.b_pools);
            check_rows(&v, step);
        }
        must_have(&v, i == 0 ? "  A pool 0 " : "> A pool 0 ", ""); // and over time
        must_have(&v, i == 0 ? "> B buffer" : "> B pool 0", "");
        view_close(&v);
    }
}

/// The bands of both stand in the same columns: what B uses in a column is what its own history says there.
static void bands_have_one_axis_and_one_scale(void **state) {
    (void)state;
    view v;
    tide_error err = TIDE_ERROR_INIT;
    tide_pool_history own;
    open_plans(&v, plan_by("greedy_color", 262144), plan_by("greedy_color", 131072), 120, 60);
    const tide_tui_scene *s = &v.app->scene;
    assert_non_null(s->b_pool_history);
    assert_tide_ok(tide_pools_over(v.b, 0, 8, s->b_pool_history->n_columns, NULL, &own, &err), &err);
    assert_int_equal(own.n_columns, s->pool_history->n_columns);
    assert_memory_equal(own.columns, s->b_pool_history->columns, own.n_pools * own.n_columns * sizeof *own.columns);
    tide_pool_history_deinit(&own);
    // A's pool 0 has 256 KiB, B's 192 KiB: at step 0 both hold 192 KiB, and are drawn as high.
    const int x = v.app->layout.panes[TIDE_TUI_PANE_CURVE].x, a = line_with(&v, "> A pool 0", "256.00 KiB"),
              b = line_with(&v, "> B pool 0", "192.00 KiB");
    assert_true(a > 0 && b > a);
    assert_true(b - a >= 3);
    for (int y = 0; y < b - a; y++) {
        const uint32_t of_a = tide_tui_get(&v.app->grid, x, a + y).glyph,
                       of_b = tide_tui_get(&v.app->grid, x, b + y).glyph;
        const bool a_is_used = of_a != v.app->glyphs->spike && of_a != ' ';
        const bool b_is_used = of_b != v.app->glyphs->spike && of_b != ' ';
        assert_int_equal(a_is_used, b_is_used);
    }
    view_close(&v);
}

static void a_file_beside_itself_differs_in_nothing(void **state) {
    (void)state;
    view v;
    open_plans(&v, plan_by("greedy_color", 262144), plan_by("greedy_color", 262144), 120, 40);
    must_have(&v, "B - A 0 B reserved", "");
    assert_int_equal(v.app->scene.pools->n, v.app->scene.b_pools->n);
    for (size_t i = 0; i < v.app->scene.pools->n; i++) {
        const tide_pool *a = &v.app->scene.pools->items[i], *b = v.app->scene.pool_of_b[i];
        assert_non_null(b);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->active_bytes, b->active_bytes);
    }
    view_close(&v);
}

/// A plan in which nothing has a place.
static tide_memory_plan *plan_of_nothing(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_lifetimes lt = {.model = tide_host_strdup("nothing"), .n_steps = 8};
    const tide_strategy *strategy = NULL;
    tide_memory_plan *plan = NULL;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    return plan;
}

/// Two pools: of the first one three pages are taken, and freed again within one column of the picture, the one in the
/// middle last; the second one grows later.
static void record_two_pools(const char *path) {
    feeder f;
    feeder_open(&f, path, 64, false);
    const tide_run_info info = {.model = "demo", .mode = "naive", .strategy = "", .device = "cpu"};
    feed_begin_run(&f, 900, &info, NULL);
    feed(&f, 1000, TIDE_MEM_SEGMENT_ALLOC, 10, TIDE_KIND_WORKSPACE, 3 * 4096, "");
    for (uint64_t i = 0; i < 3; i++) feed(&f, 1100 + i, TIDE_MEM_ALLOC, 10 + i, TIDE_KIND_WORKSPACE, 4096, "a");
    feed(&f, 2000, TIDE_MEM_SEGMENT_ALLOC, 20, TIDE_KIND_KV_CACHE, 4096, "");
    feed(&f, 2100, TIDE_MEM_ALLOC, 20, TIDE_KIND_KV_CACHE, 3000, "page");
    feed_free(&f, 3002, 10, TIDE_KIND_WORKSPACE, 4096, "a");
    feed_free(&f, 3004, 12, TIDE_KIND_WORKSPACE, 4096, "a");
    feed_free(&f, 3006, 11, TIDE_KIND_WORKSPACE, 4096, "a");
    feed_end_run(&f, 6000);
    feeder_close(&f);
}

/// What a band says of its fragmentation is what its row says, and is so at the cursor; what grew last is the pool that
/// is selected, and it is named where the sentence speaks of another one.
static void a_band_says_what_is_so_at_the_cursor(void **state) {
    (void)state;
    static const struct {
        const char *line, *share;
    } at[] = {{"goto #10", "50.0 % fragm"}, {"goto #12", "Workspace, 0.0 % fragm"}};
    tmp_dir d;
    tmp_dir_make(&d);
    record_two_pools(d.file);
    view v;
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    view_do(&v, "view 4");
    for (size_t i = 0; i < 2; i++) {
        view_do(&v, at[i].line);
        draw(&v);
        must_have(&v, "Workspace, ", at[i].share);
    }
    view_do(&v, "goto end");
    draw(&v);
    must_have(&v, "cpu on cpu (KVCache): 1.06 KiB", "cpu Workspace grew last by 12.00 KiB");
    for (int i = 0; i < 8 && v.app->st.focus != TIDE_TUI_PANE_POOLS; i++) view_key(&v, "Tab");
    view_key(&v, "Down");
    draw(&v);
    must_have(&v, "cpu on cpu (KVCache): 1.06 KiB", "It grew last by 4.00 KiB");
    view_close(&v);
    tmp_dir_remove(&d);
}

/// Two moments of one trace: each pool as it was at both, and one band for it.
static void two_moments_stand_beside_each_other(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 64, false);
    const tide_run_info info = {.model = "demo", .mode = "naive", .strategy = "", .device = "cpu"};
    feed_begin_run(&f, 900, &info, NULL);
    feed(&f, 1000, TIDE_MEM_SEGMENT_ALLOC, 10, TIDE_KIND_WORKSPACE, 4096, "");
    feed(&f, 1100, TIDE_MEM_ALLOC, 10, TIDE_KIND_WORKSPACE, 1000, "a");
    feed(&f, 3000, TIDE_MEM_SEGMENT_ALLOC, 20, TIDE_KIND_WORKSPACE, 8192, "");
    feed(&f, 3100, TIDE_MEM_ALLOC, 20, TIDE_KIND_WORKSPACE, 3000, "b");
    feed_free(&f, 5000, 10, TIDE_KIND_WORKSPACE, 1000, "a");
    feed_end_run(&f, 6000);
    feeder_close(&f);
    view v;
    view_open(&v, subject_of_trace(d.file, 1), NULL, 120, 40);
    view_do(&v, "view 4");
    view_do(&v, "goto #2"); // 1100
    view_keys(&v, "A");
    view_do(&v, "goto end");
    view_keys(&v, "B");
    const tide_tui_scene *s = &v.app->scene;
    tide_pools a, b;
    tide_error err = TIDE_ERROR_INIT;
    const tide_tui_state *st = &v.app->st;
    const int64_t t0 = st->window.begin, t1 = st->window.end - 1;
    assert_int_equal(st->preset, TIDE_TUI_PRESET_ALLOCATORS);
    assert_non_null(s->b_pools);
    assert_tide_ok(tide_pools_at(v.a, st->a_moment, t0, t1, NULL, &a, &err), &err);
    assert_tide_ok(tide_pools_at(v.a, st->b_moment, t0, t1, NULL, &b, &err), &err);
    assert_int_equal(a.reserved_bytes, 4096);
    assert_int_equal(b.reserved_bytes, 4096 + 8192);
    assert_int_equal(s->pools->reserved_bytes, a.reserved_bytes);
    assert_int_equal(s->b_pools->reserved_bytes, b.reserved_bytes);
    assert_int_equal(s->pools->n, a.n);
    for (size_t i = 0; i < s->pools->n; i++) {
        assert_non_null(s->pool_of_b[i]);
        assert_int_equal(s->pools->items[i].active_bytes, a.items[i].active_bytes);
        assert_string_equal(s->pools->items[i].name, s->pool_of_b[i]->name);
    }
    draw(&v);
    must_have(&v, "B - A +8.00 KiB reserved", "");
    view_do(&v, "goto 1100ns"); // wherever the cursor is
    assert_int_equal(v.app->scene.b_pools->reserved_bytes, b.reserved_bytes);
    assert_int_equal(v.app->scene.pools->reserved_bytes, a.reserved_bytes);
    tide_pools_deinit(&a);
    tide_pools_deinit(&b);
    view_close(&v);
    tmp_dir_remove(&d);
}

static void one_side_without_pools(void **state) {
    (void)state;
    static const int sizes[][2] = {{40, 20}, {80, 24}, {120, 40}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        view v;
        open_plans(&v, plan_by("greedy_color", 262144), plan_of_nothing(), sizes[i][0], sizes[i][1]);
        must_have(&v, "B holds nothing", "");
        must_have(&v, "> pool 0", "");
        view_close(&v);
        open_plans(&v, plan_of_nothing(), plan_by("greedy_color", 262144), sizes[i][0], sizes[i][1]);
        must_have(&v, "> pool 0", "");
        for (const char *keys = "jjjjkG<or"; *keys != 0; keys++) { // rows that B alone has can be gone through
            char key[2] = {*keys, 0};
            view_keys(&v, key);
        }
        view_do(&v, "request 1KiB");
        assert_string_equal(v.app->scene.error[TIDE_TUI_PANE_POOLS], "");
        view_do(&v, "goto fragmented");
        view_do(&v, "sort pools active");
        draw(&v);
        view_close(&v);
    }
}

static void both_sides_at_every_size(void **state) {
    (void)state;
    for (int w = 40; w <= 240; w += 11) {
        for (int h = 16; h <= 60; h += 4) {
            view v;
            open_plans(&v, plan_by("greedy_color", 262144), plan_by("greedy_by_size", 262144), w, h);
            const size_t n = v.app->scene.pools->n;
            for (size_t row = 0; row < n; row++) {
                char want[40];
                snprintf(want, sizeof want, "> %s", v.app->scene.pools->items[row].name);
                v.app->st.focus = TIDE_TUI_PANE_POOLS;
                v.app->st.pane_row[TIDE_TUI_PANE_POOLS] = row;
                draw(&v);
                must_have(&v, want, "");
            }
            view_close(&v);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_is_cached_is_seen_in_one_line),
        tide_unit_test(lanes_name_the_tensors),
        tide_unit_test(two_moments_stand_beside_each_other),
        tide_unit_test(a_band_says_what_is_so_at_the_cursor),
        tide_unit_test(lanes_at_every_size),
        tide_unit_test(plans_of_offsets_have_none),
        tide_unit_test(both_sides_at_every_step),
        tide_unit_test(bands_have_one_axis_and_one_scale),
        tide_unit_test(a_file_beside_itself_differs_in_nothing),
        tide_unit_test(one_side_without_pools),
        tide_unit_test(both_sides_at_every_size),
    };
    return cmocka_run_group_tests_name("tui_pool_bands", tests, NULL, NULL);
}
