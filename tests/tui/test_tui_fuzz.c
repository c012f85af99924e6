// SPDX-License-Identifier: MIT
//
// Random keys, mouse events, commands and sizes on a plan, a trace, a pair, and with a thread for what takes long.
// After each of them what has been kept between frames must not show: the frame is the one that a new query cache makes
// of the same state. Nothing is drawn outside its pane, and the state stays sound.
//
// TIDE_FUZZ_EVENTS sets how many events there are for each of the four (fewer without it on a trace, which takes
// longer), TIDE_FUZZ_SEED where they begin.
#include <poll.h>

#include "tests/analysis/allocator_fixture.h"
#include "tests/tui/view_fixture.h"
#include "tui/scene/query_cache.h"

enum { DEFAULT_EVENTS = 300, EVENTS_ON_A_TRACE = 160, TRACE_FOR_FAILURE = 12 };

static uint64_t number_from(const char *name, uint64_t fallback) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

// ---- what is done ----

typedef struct history {
    char last[TRACE_FOR_FAILURE][96]; ///< for a failure's words
    size_t n;
} history;

static void remember(history *h, const char *what) {
    snprintf(h->last[h->n++ % TRACE_FOR_FAILURE], sizeof h->last[0], "%s", what);
}

static void print_last_inputs(const history *h) {
    for (size_t i = h->n > TRACE_FOR_FAILURE ? h->n - TRACE_FOR_FAILURE : 0; i < h->n; i++) {
        print_message("  %zu: %s\n", i + 1, h->last[i % TRACE_FOR_FAILURE]);
    }
}

static const char *const commands[] = {
    "sort size",
    "sort name",
    "sort life",
    "sort offset",
    "sort area",
    "sort begin",
    "group none",
    "group name",
    "group owner",
    "group kind",
    "group size",
    "filter size>=1k",
    "filter !t1",
    "filter alive@peak",
    "filter alive@cursor",
    "filter top=7",
    "filter name~^t",
    "filter leaked",
    "filter kind=workspace",
    "filter size>9TiB",
    "filter",
    "search t",
    "search ^t1",
    "search (",
    "search conv|add",
    "kind workspace",
    "kind all",
    "kind persistent",
    "view 1",
    "view 2",
    "view 3",
    "view 4",
    "view 5",
    "goto 3",
    "goto peak",
    "goto begin",
    "goto end",
    "goto #7",
    "goto 0x40",
    "goto 300ns",
    "goto Op_4",
    "goto nowhere",
    "range 2 9",
    "range 100ns 300ns",
    "mark",
    "mark b two words",
    "jump b",
    "jump",
    "set capacity 64k",
    "set capacity none",
    "set mouse off",
    "set persistent",
    "pane curve",
    "pane gantt",
    "pane map",
    "pane table",
    "pane operators",
    "pane pools",
    "pane explain",
    "pane compare",
    "pane whatif",
    "pane details",
    "edit gone t5",
    "edit half t8",
    "edit align 256",
    "edit free-earlier t9 3",
    "edit pin t3 0",
    "edit strategy first_fit",
    "edit in-place t4 t3",
    "undo",
    "whole",
    "fit",
    "sql",
    "batch",
    "reset",
    "zoom-in",
    "help",
    "back",
    "next-pane",
    "frobnicate x",
};

/// Sizes that people have, and any.
static void random_size(tide_rng *rng, int *width, int *height) {
    static const int usual[][2] = {{80, 24}, {120, 40}, {200, 60}, {40, 10}, {20, 5}, {400, 120}, {79, 23}, {1, 1}};
    const size_t i = (size_t)tide_rng_below(rng, 3 * sizeof usual / sizeof usual[0]);
    const bool is_usual = i < sizeof usual / sizeof usual[0];
    *width = is_usual ? usual[i][0] : 30 + (int)tide_rng_below(rng, 150);
    *height = is_usual ? usual[i][1] : 8 + (int)tide_rng_below(rng, 60);
}

static uint32_t random_key(tide_rng *rng) {
    static const uint32_t others[] = {TIDE_TUI_KEY_BACKSPACE,
                                      TIDE_TUI_KEY_DELETE,
                                      TIDE_TUI_KEY_CTRL_U,
                                      0xE9,
                                      0x4E2D,
                                      TIDE_TUI_KEY_CTRL_W,
                                      TIDE_TUI_KEY_F12,
                                      '7',
                                      1,
                                      0x10FFFF};
    const tide_tui_binding *b;
    const size_t n = tide_tui_bindings(&b);
    if (tide_rng_below(rng, 8) == 0) return others[tide_rng_below(rng, sizeof others / sizeof others[0])];
    for (;;) {
        const uint32_t key = b[tide_rng_below(rng, n)].keys[tide_rng_below(rng, TIDE_TUI_MAX_KEYS)];
        if (key != 0) return key;
    }
}

/// Commands that write files are not for dice.
static bool is_harmless(const tide_tui_state *st) {
    if (st->prompt != TIDE_TUI_PROMPT_COMMAND) return true;
    const char *text = st->text + strspn(st->text, " :");
    return strncmp(text, "export", 6) != 0 && strncmp(text, "save", 4) != 0 && strncmp(text, "compare", 7) != 0;
}

static void do_key(view *v, tide_rng *rng, history *h) {
    char label[16], what[64];
    uint32_t key = random_key(rng);
    if (key == TIDE_TUI_KEY_ENTER && !is_harmless(&v->app->st)) key = TIDE_TUI_KEY_ESC;
    snprintf(what, sizeof what, "key %s", tide_tui_key_label(key, label, sizeof label));
    remember(h, what);
    (void)tide_tui_app_key(v->app, key);
}

static void do_mouse(view *v, tide_rng *rng, history *h) {
    char what[96];
    const tide_tui_mouse m = {.kind = (tide_tui_mouse_kind)tide_rng_below(rng, TIDE_TUI_MOUSE_WHEEL_RIGHT + 1),
                              .button = (int)tide_rng_below(rng, 8) / 6,
                              .x = (int)tide_rng_below(rng, (uint64_t)v->app->grid.width + 3),
                              .y = (int)tide_rng_below(rng, (uint64_t)v->app->grid.height + 3),
                              .shift = tide_rng_below(rng, 5) == 0,
                              .ctrl = tide_rng_below(rng, 5) == 0,
                              .t_ms = tide_rng_below(rng, 4) == 0 ? 0 : 1000 * h->n};
    snprintf(what, sizeof what, "mouse %d button %d at %d %d%s%s", (int)m.kind, m.button, m.x, m.y,
             m.shift ? " shift" : "", m.ctrl ? " ctrl" : "");
    remember(h, what);
    (void)tide_tui_app_point(v->app, &m);
}

static void do_anything(view *v, tide_rng *rng, history *h) {
    tide_error err = TIDE_ERROR_INIT;
    const uint64_t dice = tide_rng_below(rng, 100);
    if (dice < 60) {
        do_key(v, rng, h);
    } else if (dice < 80) {
        do_mouse(v, rng, h);
    } else if (dice < 96) {
        const char *line = commands[tide_rng_below(rng, sizeof commands / sizeof commands[0])];
        remember(h, line);
        (void)tide_tui_app_line(v->app, line);
    } else {
        int width, height;
        char what[32];
        random_size(rng, &width, &height);
        snprintf(what, sizeof what, "resize %dx%d", width, height);
        remember(h, what);
        assert_tide_ok(tide_tui_app_resize(v->app, width, height, &err), &err);
    }
}

// ---- what must hold ----

/// The frame of a view that has kept nothing.
static void compare_with_fresh(view *v, const history *h) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tui_app *fresh;
    const tide_tui_grid *was = &v->app->grid;
    assert_tide_ok(tide_tui_app_open(&v->session, &v->opt, was->width, was->height, false, &fresh, &err), &err);
    fresh->st = v->app->st;
    const char *text = v->app->scene.overlay_text;
    if (text != NULL) assert_tide_ok(tide_tui_query_cache_set_text(fresh->cache, text, &err), &err);
    assert_tide_ok(tide_tui_app_frame(fresh, &err), &err);
    const tide_tui_grid *is = &fresh->grid;
    for (int y = 0; y < was->height; y++) {
        for (int x = 0; x < was->width; x++) {
            const tide_tui_cell a = tide_tui_get(was, x, y), b = tide_tui_get(is, x, y);
            if (a.glyph == b.glyph && a.role == b.role && a.marks == b.marks) continue;
            tide_text frames = {0};
            tide_tui_grid_to_text(was, &frames);
            tide_text_add(&frames, "---- fresh ----\n");
            tide_tui_grid_to_text(is, &frames);
            print_last_inputs(h);
            print_message("%s", tide_text_str(&frames));
            tide_text_deinit(&frames);
            fail_msg("event %zu: a stale cell at %d, %d: %x (role %d, marks %d), fresh %x (role %d, marks %d)", h->n, x,
                     y, a.glyph, a.role, a.marks, b.glyph, b.role, b.marks);
        }
    }
    tide_tui_app_close(fresh);
}

enum { UNTOUCHED = 0xE000 }; // of a private plane: no pane draws it

/// Each pane by itself leaves every cell of others as it was.
static void check_panes(view *v, const history *h) {
    static const struct {
        tide_tui_pane pane;
        void (*draw)(const tide_tui_view *v);
    } draws[] = {
        {TIDE_TUI_PANE_GANTT, tide_tui_draw_gantt},     {TIDE_TUI_PANE_MAP, tide_tui_draw_map},
        {TIDE_TUI_PANE_TABLE, tide_tui_draw_table},     {TIDE_TUI_PANE_OPERATORS, tide_tui_draw_operators},
        {TIDE_TUI_PANE_POOLS, tide_tui_draw_pools},     {TIDE_TUI_PANE_EXPLAIN, tide_tui_draw_explain},
        {TIDE_TUI_PANE_COMPARE, tide_tui_draw_compare}, {TIDE_TUI_PANE_WHATIF, tide_tui_draw_whatif},
        {TIDE_TUI_PANE_DETAILS, tide_tui_draw_details}, {TIDE_TUI_PANE_STACKS, tide_tui_draw_stacks},
    };
    const tide_tui_app *app = v->app;
    tide_tui_grid grid = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_grid_resize(&grid, app->grid.width, app->grid.height, &err), &err);
    const tide_tui_view one = {&app->scene, app->glyphs, &grid};
    for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++) {
        const tide_tui_rect r = app->layout.panes[draws[i].pane];
        if (app->layout.too_small || r.w == 0) continue;
        for (int y = 0; y < grid.height; y++) tide_tui_fill_row(&grid, 0, y, grid.width, UNTOUCHED, TIDE_TUI_ROLE_TEXT);
        draws[i].draw(&one);
        for (int y = 0; y < grid.height; y++) {
            for (int x = 0; x < grid.width; x++) {
                const bool outside = !tide_tui_rect_has(r, x, y);
                if (!outside || tide_tui_get(&grid, x, y).glyph == UNTOUCHED) continue;
                print_last_inputs(h);
                fail_msg("event %zu: pane %s draws at %d, %d, outside of it", h->n, tide_tui_pane_name(draws[i].pane),
                         x, y);
            }
        }
    }
    tide_tui_grid_deinit(&grid);
}

/// Why a state is not sound; NULL: it is.
static const char *wrong_with(const view *v) {
    const tide_tui_state *st = &v->app->st;
    const tide_subject_facts *f = tide_subject_get_facts(st->a);
    const tide_rows *rows = v->app->scene.rows;
    const tide_items *items = tide_subject_items(st->a);
    if (st->window.begin < f->begin || st->window.end > f->end || st->window.begin >= st->window.end) return "window";
    if (st->cursor < st->window.begin || st->cursor >= st->window.end) return "cursor";
    if (st->shows_range && (st->range_begin < f->begin || st->range_end > f->end || st->range_begin >= st->range_end)) {
        return "range";
    }
    if (v->app->layout.too_small) return NULL;
    if (rows != NULL && rows->n > 0 && (st->row >= rows->n || st->top > st->row)) return "row";
    if (rows != NULL && rows->n > 0 && items != NULL) {
        const size_t from = rows->first != NULL ? rows->first[st->row] : st->row;
        const size_t to = rows->first != NULL ? rows->first[st->row + 1] : st->row + 1;
        bool is_member = false;
        for (size_t i = from; i < to; i++) is_member |= rows->members[i] == st->item;
        // What was chosen in another list may be hidden here; else it is of the selected row.
        if (!is_member && tide_rows_find(rows, st->item) != SIZE_MAX) return "selected item is of another row";
    }
    if (st->n_filters > TIDE_TUI_MAX_FILTERS || st->n_marks > TIDE_TUI_MAX_MARKS || st->n_edits > TIDE_TUI_MAX_EDITS) {
        return "a list is too long";
    }
    if (st->text_at > strlen(st->text)) return "cursor of the prompt";
    if (((unsigned char)st->text[st->text_at] & 0xC0U) == 0x80U) return "cursor of the prompt inside of a character";
    if (st->focus >= TIDE_TUI_N_PANES || v->app->layout.panes[st->focus].w == 0) return "focus";
    if (st->space_lo < 0 || st->space_hi < st->space_lo) return "addresses";
    if (st->compares_moments && st->b == NULL) return "moments without B";
    return NULL;
}

/// A frame in which nothing is left to be done aside.
static void draw(view *v) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_frame(v->app, &err), &err);
    while (v->app->worker != NULL && (tide_tui_app_is_busy(v->app) || tide_tui_app_has_news(v->app))) {
        struct pollfd wake = {.fd = tide_tui_worker_wake_fd(v->app->worker), .events = POLLIN};
        if (tide_tui_app_is_busy(v->app)) assert_int_equal(poll(&wake, 1, 60000), 1);
        tide_tui_worker_drain_wake(v->app->worker);
        assert_tide_ok(tide_tui_app_frame(v->app, &err), &err);
    }
}

static void run(view *v, uint64_t seed, uint64_t n_events) {
    const uint64_t n = number_from("TIDE_FUZZ_EVENTS", n_events);
    tide_rng rng = {number_from("TIDE_FUZZ_SEED", seed)};
    history h = {.n = 0};
    for (uint64_t i = 0; i < n; i++) {
        do_anything(v, &rng, &h);
        draw(v);
        const char *wrong = wrong_with(v);
        if (wrong != NULL) {
            print_last_inputs(&h);
            fail_msg("event %" PRIu64 ": %s", i + 1, wrong);
        }
        compare_with_fresh(v, &h);
        if (i % 16 == 0) check_panes(v, &h);
    }
    view_close(v);
}

static void on_a_plan(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(11, 40, 30)), NULL, 120, 40);
    run(&v, 1, DEFAULT_EVENTS);
}

static void on_a_trace(void **state) {
    (void)state;
    tmp_dir dir;
    working w;
    view v;
    tmp_dir_make(&dir);
    work_open(&w, dir.file);
    work_at_random(&w, 7, 300);
    work_close(&w);
    view_open(&v, subject_of_trace(dir.file, 0), NULL, 80, 24);
    run(&v, 2, EVENTS_ON_A_TRACE);
    tmp_dir_remove(&dir);
}

static void on_a_pair(void **state) {
    (void)state;
    view v;
    view_open(&v, subject_of_plan(random_plan(11, 40, 30)), subject_of_plan(random_plan(12, 45, 30)), 200, 60);
    run(&v, 3, DEFAULT_EVENTS);
}

/// Long work on a thread of its own: when it is done, the frame is the one that is made without.
static void on_a_plan_with_a_worker(void **state) {
    (void)state;
    view v;
    tide_error err = TIDE_ERROR_INIT;
    view_open(&v, subject_of_plan(random_plan(13, 40, 30)), NULL, 120, 40);
    tide_tui_app_close(v.app);
    assert_tide_ok(tide_tui_app_open(&v.session, &v.opt, 120, 40, true, &v.app, &err), &err);
    draw(&v);
    run(&v, 4, DEFAULT_EVENTS);
}

/// Copies go to a folder of the test's own.
static int own_home(void **state) {
    static tmp_dir home;
    tmp_dir_make(&home);
    *state = &home;
    return setenv("HOME", home.path, 1) + setenv("XDG_STATE_HOME", home.path, 1);
}

static int remove_home(void **state) {
    const tmp_dir *home = *state;
    tmp_dir below = {0};
    snprintf(below.path, sizeof below.path, "%.200s/tidemark", home->path);
    if (access(below.path, F_OK) == 0) tmp_dir_remove(&below);
    tmp_dir_remove(home);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_plan),
        cmocka_unit_test(on_a_trace),
        cmocka_unit_test(on_a_pair),
        cmocka_unit_test(on_a_plan_with_a_worker),
    };
    return cmocka_run_group_tests(tests, own_home, remove_home);
}
