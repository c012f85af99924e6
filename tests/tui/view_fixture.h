// SPDX-License-Identifier: MIT
//
// What the tests of actions share: a view of a small plan, of a random one, of a trace, of a pair, without a terminal
// and without a thread; keys by their labels and lines behind ':'.
#ifndef TIDE_TESTS_VIEW_FIXTURE_H
#define TIDE_TESTS_VIEW_FIXTURE_H

#include "tests/analysis/subject_fixture.h"
#include "tui/app.h"
#include "tui/draw/panes.h"

typedef struct view {
    tide_subject *a, *b;
    tide_tui_session session;
    tide_tui_options opt;
    tide_tui_app *app;
} view;

/// A plan of eight steps; its peak is at step 2: 196608 + 262144 + 32768 bytes and the persistent ones, 65536 + 3072.
static inline tide_memory_plan *small_plan(uint64_t conv2_bytes) {
    static const struct {
        const char *name;
        uint64_t bytes;
        int64_t begin, end;
        tide_role role;
    } lives[] = {
        {"conv0_out", 196608, 0, 2, TIDE_ROLE_INTERMEDIATE},
        {"conv0.scratch", 65536, 0, 1, TIDE_ROLE_SCRATCH},
        {"relu1_out", 196608, 1, 3, TIDE_ROLE_INTERMEDIATE},
        {"conv2_out", 262144, 2, 4, TIDE_ROLE_INTERMEDIATE},
        {"conv2.scratch", 32768, 2, 3, TIDE_ROLE_SCRATCH},
        {"pool3_out", 65536, 3, 6, TIDE_ROLE_INTERMEDIATE},
        {"conv4_out", 65536, 4, 6, TIDE_ROLE_INTERMEDIATE},
        {"add5_out", 65536, 5, 7, TIDE_ROLE_INTERMEDIATE},
        {"gemm6_out", 4096, 6, 8, TIDE_ROLE_INTERMEDIATE},
        {"weights", 65536, 0, 8, TIDE_ROLE_WEIGHT},
        {"image", 3072, 0, 8, TIDE_ROLE_INPUT},
    };
    static const char *const steps[] = {"Conv_0", "Relu_1", "Conv_2", "MaxPool_3",
                                        "Conv_4", "Add_5",  "Gemm_6", "Softmax_7"};
    tide_lifetimes lt = {.model = tide_host_strdup("smallnet"), .n_steps = 8};
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", lives[i].name);
        const bool is_weight = lives[i].role == TIDE_ROLE_WEIGHT, is_input = lives[i].role == TIDE_ROLE_INPUT;
        const tide_lifetime item = {.name = name,
                                    .size_bytes = strcmp(name, "conv2_out") == 0 ? conv2_bytes : lives[i].bytes,
                                    .align_bytes = 64,
                                    .begin_step = lives[i].begin,
                                    .end_step = lives[i].end,
                                    .kind = is_weight  ? TIDE_KIND_PERSISTENT
                                            : is_input ? TIDE_KIND_DEFAULT
                                                       : TIDE_KIND_WORKSPACE,
                                    .device = TIDE_CPU,
                                    .role = lives[i].role,
                                    .persistent = is_weight || is_input,
                                    .node = TIDE_NO_INDEX,
                                    .port = TIDE_NO_INDEX,
                                    .value = TIDE_NO_INDEX};
        assert_tide_ok(tide_lifetimes_add(&lt, &item, &err), &err);
    }
    lt.step_names = tide_host_calloc(8, sizeof *lt.step_names);
    for (int i = 0; i < 8; i++) lt.step_names[i] = tide_host_strdup(steps[i]);
    lt.n_step_names = 8;
    const tide_strategy *strategy = NULL;
    tide_memory_plan *plan = NULL;
    assert_tide_ok(tide_strategy_find("greedy_by_size", &strategy, &err), &err);
    assert_tide_ok(tide_plan_make(&lt, strategy, NULL, &plan, &err), &err);
    tide_lifetimes_deinit(&lt);
    return plan;
}

static inline tide_tui_state *view_look(view *v) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_tui_app_look(v->app, &err), &err);
    return &v->app->st;
}

/// Takes both subjects; `b` may be NULL.
static inline void view_open(view *v, tide_subject *a, tide_subject *b, int width, int height) {
    tide_error err = TIDE_ERROR_INIT;
    *v = (view){.a = a, .b = b};
    v->session = (tide_tui_session){.a = a, .b = b, .batch_prefix = "tidemark tui FILE"};
    v->opt = (tide_tui_options){.glyphs = TIDE_TUI_GLYPHS_ASCII, .colour = TIDE_TUI_COLOUR_MONO};
    assert_tide_ok(tide_tui_app_open(&v->session, &v->opt, width, height, false, &v->app, &err), &err);
    view_look(v);
}

static inline void view_open_small(view *v, int width, int height) {
    view_open(v, subject_of_plan(small_plan(262144)), NULL, width, height);
}

static inline void view_close(view *v) {
    tide_tui_app_close(v->app);
    tide_subject_destroy(v->a);
    tide_subject_destroy(v->b);
}

/// One key by its label, and the frame after it.
static inline unsigned view_key(view *v, const char *label) {
    const uint32_t key = tide_tui_key_named(label);
    assert_int_not_equal(key, 0);
    const unsigned flags = tide_tui_app_key(v->app, key);
    view_look(v);
    return flags;
}

/// A key for each character.
static inline void view_keys(view *v, const char *keys) {
    for (; *keys != 0; keys++) {
        (void)tide_tui_app_key(v->app, (uint32_t)*keys);
        view_look(v);
    }
}

static inline unsigned view_do(view *v, const char *line) {
    const unsigned flags = tide_tui_app_line(v->app, line);
    view_look(v);
    return flags;
}

static inline unsigned view_mouse(view *v, tide_tui_mouse mouse) {
    const unsigned flags = tide_tui_app_point(v->app, &mouse);
    view_look(v);
    return flags;
}

static inline const char *view_message(const view *v) { return v->app->st.message; }

/// Name of the selected item, "" for none.
static inline const char *view_selected(const view *v) {
    const tide_items *items = tide_subject_items(v->a);
    const uint32_t item = v->app->st.item;
    return items != NULL && item < items->n ? tide_items_site(items, item)->name : "";
}

static inline size_t view_rows(const view *v) { return v->app->scene.rows != NULL ? v->app->scene.rows->n : SIZE_MAX; }

#endif
