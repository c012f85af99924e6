// SPDX-License-Identifier: MIT
//
// Timelines made by hand for the tests of the views: items in, exact curve out, nothing but the types of the profiler.
#ifndef TIDE_TESTS_TIMELINE_SAMPLE_H
#define TIDE_TESTS_TIMELINE_SAMPLE_H

#include "core/base/host_alloc.h"
#include "core/memory/allocator.h"
#include "profiler/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample_row {
    const char *name, *owner;
    uint64_t size;
    int64_t begin, end;
    tide_memory_kind kind;
    tide_role role;
    uint64_t offset;
} sample_row;

static inline int sample_order(const void *pa, const void *pb) {
    const tide_timeline_item *a = pa, *b = pb;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->size_bytes != b->size_bytes) return a->size_bytes > b->size_bytes ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static inline int sample_point_order(const void *pa, const void *pb) {
    const tide_timeline_point *a = pa, *b = pb;
    return a->t < b->t ? -1 : a->t > b->t;
}

/// Exact curve, peak and sorting from the items; `bytes` of the points hold deltas while they are summed up.
static inline void sample_finish(tide_timeline *tl) {
    const size_t n = tl->n_items;
    if (n > 0) qsort(tl->items, n, sizeof *tl->items, sample_order);
    tide_timeline_point *ends = tide_host_calloc(2 * n + 1, sizeof *ends);
    if (ends == NULL) abort();
    ends[0].t = tl->begin;
    for (size_t i = 0; i < n; i++) {
        ends[2 * i + 1] = (tide_timeline_point){tl->items[i].begin, tl->items[i].size_bytes};
        ends[2 * i + 2] = (tide_timeline_point){tl->items[i].end, (uint64_t)0 - tl->items[i].size_bytes};
    }
    qsort(ends, 2 * n + 1, sizeof *ends, sample_point_order);
    uint64_t live = 0;
    size_t n_points = 0;
    for (size_t i = 0; i < 2 * n + 1; i++) {
        live += ends[i].bytes;
        if (i + 1 < 2 * n + 1 && ends[i + 1].t == ends[i].t) continue;
        if (n_points > 0 && ends[n_points - 1].bytes == live) continue;
        ends[n_points++] = (tide_timeline_point){ends[i].t, live};
        if (live > tl->peak_bytes) {
            tl->peak_bytes = live;
            tl->peak_t = ends[i].t;
        }
    }
    tl->curve = ends;
    tl->n_points = n_points;
}

static inline tide_timeline *sample_new(tide_axis axis, int64_t begin, int64_t end, size_t n_items, size_t n_steps) {
    tide_timeline *tl = tide_host_calloc(1, sizeof *tl);
    if (tl == NULL) abort();
    tl->axis = axis;
    tl->begin = begin;
    tl->end = end;
    tl->peak_t = begin;
    tl->n_items = n_items;
    tl->items = tide_host_calloc(n_items, sizeof *tl->items);
    tl->n_steps = n_steps;
    tl->step_names = tide_host_calloc(n_steps, sizeof *tl->step_names);
    tl->step_begin = tide_host_calloc(n_steps, sizeof *tl->step_begin);
    return tl;
}

static inline void sample_words(tide_timeline *tl, const char *title, const char *model, const char *mode,
                                const char *strategy) {
    tl->title = tide_host_strdup(title);
    tl->model = tide_host_strdup(model);
    tl->mode = tide_host_strdup(mode);
    tl->strategy = tide_host_strdup(strategy);
}

static inline tide_timeline *sample_from_rows(const sample_row *rows, size_t n, int64_t n_steps,
                                              const char *const *step_names) {
    tide_timeline *tl = sample_new(TIDE_AXIS_STEPS, 0, n_steps, n, (size_t)n_steps);
    for (size_t i = 0; i < n; i++) {
        tl->items[i] = (tide_timeline_item){
            .name = tide_host_strdup(rows[i].name),
            .owner = tide_host_strdup(rows[i].owner),
            .size_bytes = rows[i].size,
            .reserved_bytes = rows[i].size,
            .begin = rows[i].begin,
            .end = rows[i].end,
            .kind = rows[i].kind,
            .role = rows[i].role,
            .persistent = rows[i].kind == TIDE_KIND_PERSISTENT,
            .pool = TIDE_NO_POOL,
            .offset_bytes = rows[i].offset,
            .id = i,
        };
    }
    for (size_t i = 0; i < (size_t)n_steps; i++) {
        char name[32];
        snprintf(name, sizeof name, "node_%zu", i);
        tl->step_names[i] = tide_host_strdup(step_names != NULL ? step_names[i] : name);
        tl->step_begin[i] = (int64_t)i;
    }
    sample_finish(tl);
    return tl;
}

/// A small convolution net of eight steps: the peak of 480 KiB is at step 2.
static inline tide_timeline *sample_small(void) {
    static const char *const steps[] = {"Conv_0", "Relu_1", "Conv_2", "MaxPool_3",
                                        "Conv_4", "Add_5",  "Gemm_6", "Softmax_7"};
    static const sample_row rows[] = {
        {"conv0_out", "Conv_0", 196608, 0, 2, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 0},
        {"conv0.scratch", "Conv_0", 65536, 0, 1, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, 196608},
        {"relu1_out", "Relu_1", 196608, 1, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 262144},
        {"conv2_out", "Conv_2", 262144, 2, 4, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 0},
        {"conv2.scratch", "Conv_2", 32768, 2, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_SCRATCH, 458752},
        {"pool3_out", "MaxPool_3", 65536, 3, 6, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 262144},
        {"/features/block.1/conv4/Conv_output_0", "Conv_4", 65536, 4, 6, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE,
         0},
        {"add5_out", "Add_5", 65536, 5, 7, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 65536},
        {"gemm6_out", "Gemm_6", 4096, 6, 8, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 131072},
        {"probabilities", "Softmax_7", 4096, 7, 8, TIDE_KIND_DEFAULT, TIDE_ROLE_OUTPUT, TIDE_NO_OFFSET},
    };
    tide_timeline *tl = sample_from_rows(rows, sizeof rows / sizeof rows[0], 8, steps);
    sample_words(tl, "smallnet: planned, greedy_by_size", "smallnet", "planned", "greedy_by_size");
    tl->has_plan = true;
    tl->plan_bytes = 524288;
    tl->naive_bytes = 958464;
    tl->lower_bound_bytes = 491520;
    tl->n_kinds = 2;
    tl->kinds = tide_host_calloc(2, sizeof *tl->kinds);
    tl->kinds[0] = (tide_trace_kind){.kind = TIDE_KIND_DEFAULT,
                                     .device = "cpu",
                                     .requested_bytes = TIDE_UNKNOWN_BYTES,
                                     .peak_bytes = TIDE_UNKNOWN_BYTES,
                                     .peak_reserved_bytes = TIDE_UNKNOWN_BYTES,
                                     .predicted_bytes = 4096};
    tl->kinds[1] = (tide_trace_kind){.kind = TIDE_KIND_WORKSPACE,
                                     .device = "cpu",
                                     .requested_bytes = TIDE_UNKNOWN_BYTES,
                                     .peak_bytes = 524288,
                                     .peak_reserved_bytes = 524288,
                                     .predicted_bytes = 524288};
    return tl;
}

/// A plan with weights, input and output in the view: 70 KiB persist below a plan of 150 KiB.
static inline tide_timeline *sample_weights(void) {
    static const sample_row rows[] = {
        {"weights0", "", 32768, 0, 3, TIDE_KIND_PERSISTENT, TIDE_ROLE_WEIGHT, TIDE_NO_OFFSET},
        {"weights2", "", 16384, 0, 3, TIDE_KIND_PERSISTENT, TIDE_ROLE_WEIGHT, TIDE_NO_OFFSET},
        {"input", "", 18432, 0, 3, TIDE_KIND_DEFAULT, TIDE_ROLE_INPUT, TIDE_NO_OFFSET},
        {"probabilities", "", 4096, 0, 3, TIDE_KIND_DEFAULT, TIDE_ROLE_OUTPUT, TIDE_NO_OFFSET},
        {"conv0_out", "Conv_0", 65536, 0, 2, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 0},
        {"relu1_out", "Relu_1", 81920, 1, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 65536},
        {"gemm2_out", "Gemm_2", 8192, 2, 3, TIDE_KIND_WORKSPACE, TIDE_ROLE_INTERMEDIATE, 0},
    };
    tide_timeline *tl = sample_from_rows(rows, sizeof rows / sizeof rows[0], 3, NULL);
    for (size_t i = 0; i < tl->n_items; i++) tl->items[i].persistent = tl->items[i].kind != TIDE_KIND_WORKSPACE;
    sample_words(tl, "weighty: plan, greedy_by_size", "weighty", "plan", "greedy_by_size");
    tl->has_plan = true;
    tl->plan_bytes = 153600;
    tl->naive_bytes = 155648;
    tl->lower_bound_bytes = 147456;
    return tl;
}

static inline tide_timeline *sample_empty(void) {
    tide_timeline *tl = sample_from_rows(NULL, 0, 0, NULL);
    sample_words(tl, "nothing", "", "", "");
    return tl;
}

/// `n` blocks of a run in nanoseconds, from a seed; the last tenth is never freed.
static inline tide_timeline *sample_many(size_t n, uint64_t seed) {
    const int64_t end = 50000000;
    tide_timeline *tl = sample_new(TIDE_AXIS_NS, 1000, 1000 + end, n, 0);
    tide_rng rng = {seed};
    for (size_t i = 0; i < n; i++) {
        char name[48];
        snprintf(name, sizeof name, "block_%zu", i);
        const int64_t begin = 1000 + (int64_t)tide_rng_below(&rng, (uint64_t)end - 10);
        int64_t stop = begin + 1 + (int64_t)tide_rng_below(&rng, (uint64_t)(end / 20));
        const bool open = i >= n - n / 10;
        if (open || stop > tl->end) stop = tl->end;
        tl->items[i] = (tide_timeline_item){
            .name = tide_host_strdup(name),
            .owner = tide_host_strdup(i % 3 == 0 ? "" : "Conv_1"),
            .size_bytes = 1 + tide_rng_below(&rng, 1 << 20),
            .begin = begin,
            .end = stop,
            .open_ended = open,
            .kind = (tide_memory_kind)tide_rng_below(&rng, TIDE_KIND_HOST_PAGEABLE + 1), // of every build
            .role = TIDE_ROLE_INTERMEDIATE,
            .pool = TIDE_NO_POOL,
            .offset_bytes = TIDE_NO_OFFSET,
            .id = i + 1,
        };
        tl->items[i].reserved_bytes = tl->items[i].size_bytes + 64;
    }
    sample_finish(tl);
    sample_words(tl, "many: naive", "many", "naive", "");
    return tl;
}

static inline void sample_destroy(tide_timeline *tl) {
    for (size_t i = 0; i < tl->n_items; i++) {
        tide_host_free(tl->items[i].name);
        tide_host_free(tl->items[i].owner);
    }
    for (size_t i = 0; i < tl->n_steps; i++) tide_host_free(tl->step_names[i]);
    tide_host_free(tl->items);
    tide_host_free(tl->step_names);
    tide_host_free(tl->step_begin);
    tide_host_free(tl->curve);
    tide_host_free(tl->kinds);
    tide_host_free(tl->title);
    tide_host_free(tl->model);
    tide_host_free(tl->mode);
    tide_host_free(tl->strategy);
    tide_host_free(tl);
}

#endif
