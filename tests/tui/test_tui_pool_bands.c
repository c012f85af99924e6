// SPDX-License-Identifier: MIT
//
// Pools over time in view 4: what is cached is seen in a band of one line too; the tensors that pass through the pools
// of a colouring plan; the pools of A beside those of B.
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

/// The line of the pane, below its heading, that has both texts; -1: none.
static int line_with(const view *v, const char *text, const char *other) {
    const tide_tui_rect r = v->app->layout.panes[TIDE_TUI_PANE_POOLS];
    char line[512];
    for (int y = r.y + 1; y < r.y + r.h; y++) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(what_is_cached_is_seen_in_one_line),
        tide_unit_test(lanes_name_the_tensors),
        tide_unit_test(lanes_at_every_size),
        tide_unit_test(plans_of_offsets_have_none),
    };
    return cmocka_run_group_tests_name("tui_pool_bands", tests, NULL, NULL);
}
