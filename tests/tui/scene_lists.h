// SPDX-License-Identifier: MIT
//
// The lists of the scene of scene_sample.h: who is alive at its peak, why, what allocators hold, what a second plan
// changes, advice. Sums are right by construction; the tests compute them anew.
#ifndef TIDE_TESTS_SCENE_LISTS_H
#define TIDE_TESTS_SCENE_LISTS_H

#include "tests/tui/scene_sample.h"

typedef struct scene_lists {
    scene_sample *s;
    tide_live_item live[3];
    tide_live_items alive;
    tide_explain_group owners[2], kinds[1];
    tide_without without[2];
    tide_explanation explanation;
    tide_pool pool_items[2];
    tide_pools pools;
    tide_leak leak_items[2];
    tide_leaks leaks;
    tide_diff_row rows[6];
    tide_diff_step by_owner[4];
    tide_diff diff;
    tide_edit_advice advice[3];
    tide_tui_operator operators[8];
    char texts[16][40];
} scene_lists;

static inline tide_live_item lists_live(const sample_life *l, uint64_t id) {
    return (tide_live_item){.item = (uint32_t)id,
                            .id = id,
                            .site = {l->name, l->owner, l->begin},
                            .shape = {.size_bytes = l->bytes,
                                      .reserved_bytes = l->bytes,
                                      .device = "cpu",
                                      .allocator = "",
                                      .kind = TIDE_KIND_WORKSPACE,
                                      .fill = l->fill,
                                      .is_planned = true},
                            .counts_bytes = l->bytes,
                            .place = l->place,
                            .begin = l->begin};
}

static inline char *lists_text(scene_lists *l, int i, const char *text) {
    snprintf(l->texts[i], sizeof l->texts[i], "%s", text);
    return l->texts[i];
}

static inline void lists_explain(scene_lists *l) {
    l->live[0] = lists_live(&sample_lives[3], 3); // conv2_out 262144, relu1_out 196608, conv2.scratch 32768
    l->live[1] = lists_live(&sample_lives[2], 2);
    l->live[2] = lists_live(&sample_lives[4], 4);
    l->alive = (tide_live_items){.at = {.t = 2}, .items = l->live, .n = 3, .bytes = 491520};
    l->owners[0] = (tide_explain_group){lists_text(l, 0, "Conv_2"), 294912, 2};
    l->owners[1] = (tide_explain_group){lists_text(l, 1, "Relu_1"), 196608, 1};
    l->kinds[0] = (tide_explain_group){lists_text(l, 2, "Workspace"), 491520, 3};
    l->without[0] = (tide_without){
        .live = 0, .name = "conv2_out", .bytes = 262144, .peak_bytes = 458752, .at = {.t = 0}, .step = "Conv_0"};
    l->without[1] = (tide_without){
        .live = 2, .name = "conv2.scratch", .bytes = 32768, .peak_bytes = 458752, .at = {.t = 2}, .step = "Conv_2"};
    l->explanation = (tide_explanation){.at = {.t = 2},
                                        .held_bytes = 524288,
                                        .parts = {[TIDE_PART_LIVE] = 480000,
                                                  [TIDE_PART_ROUNDING] = 11520,
                                                  [TIDE_PART_HOLES] = 30000,
                                                  [TIDE_PART_SLACK] = 2768},
                                        .live = l->alive,
                                        .by_owner = l->owners,
                                        .n_by_owner = 2,
                                        .by_kind = l->kinds,
                                        .n_by_kind = 1,
                                        .without = l->without,
                                        .n_without = 2,
                                        .second_peak_bytes = 262144,
                                        .second_peak = {.t = 0}};
}

static inline void lists_pools(scene_lists *l) {
    l->pool_items[0] = (tide_pool){.name = lists_text(l, 3, "stream_caching"),
                                   .device = "cpu",
                                   .kind = TIDE_KIND_WORKSPACE,
                                   .tells_segments = true,
                                   .n_segments = 2,
                                   .n_blocks = 3,
                                   .reserved_bytes = 4194304,
                                   .active_bytes = 1048576,
                                   .requested_bytes = 1000000,
                                   .cached_bytes = 3145728,
                                   .largest_free_bytes = 2097152,
                                   .peak_reserved_bytes = 4194304,
                                   .peak_active_bytes = 4000000,
                                   .unused_bytes = 2097152,
                                   .unused_since = 1};
    l->pool_items[1] = (tide_pool){.name = lists_text(l, 4, "cpu"),
                                   .device = "cpu",
                                   .kind = TIDE_KIND_DEFAULT,
                                   .n_blocks = 1,
                                   .reserved_bytes = 4096,
                                   .active_bytes = 4096,
                                   .requested_bytes = 4000,
                                   .largest_free_bytes = TIDE_UNKNOWN_BYTES,
                                   .peak_reserved_bytes = 8192};
    l->pools = (tide_pools){.at = {.t = 2},
                            .items = l->pool_items,
                            .n = 2,
                            .reserved_bytes = 4198400,
                            .active_bytes = 1052672,
                            .requested_bytes = 1004000,
                            .cached_bytes = 3145728};
    l->leak_items[0] = (tide_leak){.name = lists_text(l, 5, "kept"),
                                   .owner = lists_text(l, 6, "Add_5"),
                                   .kind = TIDE_KIND_WORKSPACE,
                                   .device = "cpu",
                                   .n = 3,
                                   .bytes = 40960,
                                   .first = 5,
                                   .last = 7,
                                   .n_allocated = 9,
                                   .per_second = 3276.8,
                                   .grows = true};
    l->leak_items[1] = (tide_leak){.name = lists_text(l, 7, "table"),
                                   .owner = lists_text(l, 8, ""),
                                   .kind = TIDE_KIND_DEFAULT,
                                   .device = "cpu",
                                   .n = 1,
                                   .bytes = 512,
                                   .first = 3,
                                   .last = 3,
                                   .n_allocated = 1};
    l->leaks = (tide_leaks){.items = l->leak_items, .n = 2, .bytes = 41472};
}

static inline void lists_diff(scene_lists *l) {
    l->rows[0] = (tide_diff_row){.name = "relu1_out",
                                 .owner = "Relu_1",
                                 .what = TIDE_DIFF_REMOVED,
                                 .a = 2,
                                 .b = TIDE_NO_ITEM,
                                 .a_bytes = 196608,
                                 .a_at_bytes = 196608};
    l->rows[1] = (tide_diff_row){.name = "conv2.scratch",
                                 .owner = "Conv_2",
                                 .what = TIDE_DIFF_RESIZED | TIDE_DIFF_MOVED,
                                 .a_bytes = 32768,
                                 .b_bytes = 65536,
                                 .a_at_bytes = 32768,
                                 .b_at_bytes = 65536};
    l->rows[2] = (tide_diff_row){.name = "conv2_out",
                                 .owner = "Conv_2",
                                 .what = TIDE_DIFF_MOVED,
                                 .a_bytes = 262144,
                                 .b_bytes = 262144,
                                 .a_at_bytes = 262144,
                                 .b_at_bytes = 262144};
    l->rows[3] = (tide_diff_row){.name = "extra",
                                 .owner = "Conv_2",
                                 .what = TIDE_DIFF_ADDED,
                                 .a = TIDE_NO_ITEM,
                                 .b_bytes = 4096,
                                 .b_at_bytes = 4096};
    l->rows[4] = (tide_diff_row){
        .name = "pool3_out", .owner = "MaxPool_3", .what = TIDE_DIFF_RETIMED, .a_bytes = 65536, .b_bytes = 65536};
    l->rows[5] = (tide_diff_row){.name = "gemm6_out", .owner = "Gemm_6", .a_bytes = 4096, .b_bytes = 4096};
    l->by_owner[0] = (tide_diff_step){lists_text(l, 9, "Relu_1"), false, 196608, 0};
    l->by_owner[1] = (tide_diff_step){lists_text(l, 10, "Conv_2"), false, 294912, 331776};
    l->by_owner[2] = (tide_diff_step){lists_text(l, 11, "holes"), true, 32768, 33792};
    l->by_owner[3] = (tide_diff_step){lists_text(l, 12, "rounding"), true, 0, 0};
    l->diff = (tide_diff){.a_at = {.t = 2},
                          .b_at = {.t = 2},
                          .a_bytes = 524288,
                          .b_bytes = 365568,
                          .a_peak_bytes = 491520,
                          .b_peak_bytes = 331776,
                          .a_plan_bytes = 524288,
                          .b_plan_bytes = 365568,
                          .rows = l->rows,
                          .n = 6,
                          .n_added = 1,
                          .n_removed = 1,
                          .n_resized = 1,
                          .n_moved = 2,
                          .n_retimed = 1,
                          .n_unchanged = 1,
                          .by_owner = l->by_owner,
                          .n_by_owner = 4};
}

static inline void lists_others(scene_lists *l) {
    l->advice[0] = (tide_edit_advice){.edit = {.kind = TIDE_EDIT_IN_PLACE, .item = "relu1_out", .other = "conv0_out"},
                                      .bytes = 458752,
                                      .bound_bytes = 458752};
    l->advice[1] = (tide_edit_advice){
        .edit = {.kind = TIDE_EDIT_RECOMPUTE, .item = "conv0_out"}, .bytes = 491520, .bound_bytes = 458752};
    l->advice[2] =
        (tide_edit_advice){.edit = {.kind = TIDE_EDIT_ALIGN, .bytes = 16}, .bytes = 520192, .bound_bytes = 491520};
    for (int i = 0; i < 8; i++) {
        uint64_t makes = 0, frees = 0;
        for (int k = 0; k < SAMPLE_LIVES; k++) {
            makes += sample_lives[k].begin == i ? sample_lives[k].bytes : 0;
            frees += sample_lives[k].end == i + 1 ? sample_lives[k].bytes : 0;
        }
        l->operators[i] = (tide_tui_operator){.name = l->s->a.step_names[i],
                                              .step = (size_t)i,
                                              .begin = i,
                                              .makes_bytes = makes,
                                              .frees_bytes = frees,
                                              .live_bytes = sample_bytes_at(i)};
    }
}

static inline void lists_select(scene_lists *l) {
    tide_tui_scene *scene = &l->s->scene;
    const tide_live_item *it = &l->live[1];
    scene->has_selection = true;
    scene->selection = (tide_item_facts){.item = 2,
                                         .id = 2,
                                         .site = it->site,
                                         .shape = it->shape,
                                         .begin = 1,
                                         .end = 3,
                                         .place = it->place,
                                         .pool = TIDE_NO_POOL,
                                         .alias_of = TIDE_NO_ITEM};
    scene->below = 3;
    scene->above = 4;
    scene->before = scene->after = TIDE_NO_ITEM;
    snprintf(scene->consumers, sizeof scene->consumers, "Conv_2");
    snprintf(scene->why, sizeof scene->why, "alive: this step reads it last");
}

static inline scene_lists *scene_lists_new(void) {
    scene_lists *l = tide_host_calloc(1, sizeof *l);
    assert_non_null(l);
    l->s = scene_sample_new();
    lists_explain(l);
    lists_pools(l);
    lists_diff(l);
    lists_others(l);
    lists_select(l);
    tide_tui_scene *scene = &l->s->scene;
    scene->live = &l->alive;
    scene->explanation = &l->explanation;
    scene->pools = &l->pools;
    scene->leaks = &l->leaks;
    scene->diff = &l->diff;
    scene->advice = l->advice;
    scene->n_advice = 3;
    scene->operators = l->operators;
    scene->n_operators = 8;
    return l;
}

static inline void scene_lists_destroy(scene_lists *l) {
    scene_sample_destroy(l->s);
    tide_host_free(l);
}

/// A screen of one pane alone, `w` x `h` without its heading.
static inline void scene_lists_only(scene_lists *l, tide_tui_pane pane, int w, int h) {
    tide_error err = TIDE_ERROR_INIT;
    l->s->layout = (tide_tui_layout){.width = w, .height = h + 2};
    l->s->layout.panes[pane] = (tide_tui_rect){0, 0, w, h + 1};
    l->s->layout.bottom = (tide_tui_rect){0, h + 1, w, 1};
    l->s->layout.overlay = (tide_tui_rect){0, 0, w, h + 1};
    l->s->state.focus = pane;
    assert_tide_ok(tide_tui_grid_resize(&l->s->grid, w, h + 2, &err), &err);
}

#endif
