// SPDX-License-Identifier: MIT
//
// One size after the other. See run_sizes.h.
#include "cli/run_sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "core/memory/block.h"
#include "profiler/clock.h"

/// A run of sizes under way.
typedef struct sizes {
    cli_session *session;
    cli_input in;
    cli_planning planning; ///< for programs that run
    const cli_planning *given;
    const cli_session_spec *spec;
    cli_plans plans;
    size_t largest;           ///< which point of the profile
    tide_shape_range *ranges; ///< [profile.n]
    tide_program *first;      ///< of the largest size, until the engine takes it
    tide_shape_engine *engine;
    tide_tensor **inputs; ///< [n_points * n_inputs]
    size_t n_inputs;
    uint64_t *times; ///< [n_points * runs]
    cli_sizes_result *out;
} sizes;

// ---- programs ----

static tide_status build(void *ctx, const tide_shape_binding *shapes, size_t n, const tide_program *weights_of,
                         tide_program **out, tide_error *err) {
    sizes *w = ctx;
    if (weights_of == NULL && w->first != NULL) { // the largest
        *out = w->first;
        w->first = NULL;
        return TIDE_OK;
    }
    const tide_lifetimes *lt = &w->plans.plans[0]->lifetimes;
    cli_planning p = w->planning;
    p.weights_of = weights_of;
    p.shapes = (cli_shapes){0}; // all inputs are given
    p.n_extents = 0;
    TIDE_TRY(cli__program_make(&w->in, &p, shapes, n, out, err));
    const tide_status st =
        tide_program_follow(*out, lt->step_names, lt->n_step_names, lt->recomputed, lt->n_recomputed, err);
    if (st != TIDE_OK) tide_program_unref(*out);
    return st;
}

static int64_t volume(const tide_shape *s) {
    int64_t n = 1;
    for (int32_t d = 0; d < s->rank; d++) n *= s->dims[d];
    return n;
}

static void find_largest(sizes *w) {
    const cli_profile *f = &w->given->profile;
    int64_t most = -1;
    for (size_t k = 0; k < f->n_points; k++) {
        int64_t sum = 0;
        for (size_t i = 0; i < f->n; i++) sum += volume(&f->inputs[i].shapes[k]);
        if (sum <= most) continue;
        most = sum;
        w->largest = k;
    }
}

/// What may come: from the smallest to the largest extent of any point; the program of the largest point is the one in
/// whose memory all others run.
static tide_status make_ranges(sizes *w, tide_error *err) {
    const cli_profile *f = &w->given->profile;
    TIDE_TRY(TIDE_NEW(&w->ranges, f->n + 1, err, "for a profile"));
    for (size_t i = 0; i < f->n; i++) {
        tide_shape_range *r = &w->ranges[i];
        *r = (tide_shape_range){f->inputs[i].name, f->inputs[i].shapes[0], f->inputs[i].shapes[w->largest],
                                f->inputs[i].shapes[0]};
        for (size_t k = 0; k < f->n_points; k++) {
            for (int32_t d = 0; d < r->min.rank && f->inputs[i].shapes[k].rank == r->min.rank; d++) {
                const int64_t n = f->inputs[i].shapes[k].dims[d];
                if (n < r->min.dims[d]) r->min.dims[d] = n;
                if (n > r->max.dims[d]) r->max.dims[d] = n;
            }
        }
    }
    return TIDE_OK;
}

/// The first program binds what --shape and --extent say too; later ones get all inputs of the tensors.
static tide_status make_first(sizes *w, tide_error *err) {
    const cli_profile *f = &w->given->profile;
    const tide_lifetimes *lt = &w->plans.plans[0]->lifetimes;
    tide_shape_binding *shapes;
    TIDE_TRY(TIDE_NEW(&shapes, f->n + 1, err, "for a profile"));
    for (size_t i = 0; i < f->n; i++)
        shapes[i] = (tide_shape_binding){.name = f->inputs[i].name, .shape = f->inputs[i].shapes[w->largest]};
    tide_status st = cli__program_make(&w->in, &w->planning, shapes, f->n, &w->first, err);
    tide_host_free(shapes);
    TIDE_TRY(st);
    return tide_program_follow(w->first, lt->step_names, lt->n_step_names, lt->recomputed, lt->n_recomputed, err);
}

// ---- inputs ----

static const tide_shape *shape_at(const sizes *w, const tide_value *v, size_t k) {
    const cli_profile *f = &w->given->profile;
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->inputs[i].name, v->name) == 0) return &f->inputs[i].shapes[k];
    }
    return &v->shape; // the same at all points
}

/// Inputs of the largest size, and over the same blocks those of all others.
static tide_status make_inputs(sizes *w, const cli_session_spec *spec, tide_error *err) {
    const tide_graph *g = spec->program->graph;
    const size_t n_points = w->given->profile.n_points;
    w->n_inputs = g->n_inputs;
    TIDE_TRY(TIDE_NEW(&w->inputs, n_points * g->n_inputs + 1, err, "for inputs"));
    tide_tensor **largest = &w->inputs[w->largest * g->n_inputs];
    TIDE_TRY(cli_session_make_inputs(cli_session_registry(w->session), spec, largest, err));
    for (size_t k = 0; k < n_points; k++) {
        for (size_t i = 0; i < g->n_inputs && k != w->largest; i++) {
            const tide_value *v = &g->values[g->inputs[i]];
            const tide_status st = tide_tensor_create_on(tide_tensor_storage(largest[i]), 0, v->dtype,
                                                         shape_at(w, v, k), &w->inputs[k * g->n_inputs + i], err);
            if (st == TIDE_OK) continue;
            tide_error_prefix(err, "input '%s' of size '%s', in the place of the largest", v->name,
                              w->out->sizes[k].name);
            return st;
        }
    }
    return TIDE_OK;
}

static void drop_inputs(sizes *w) {
    for (size_t i = 0; w->inputs != NULL && i < w->given->profile.n_points * w->n_inputs; i++)
        tide_tensor_unref(w->inputs[i]);
    tide_host_free(w->inputs);
}

// ---- running ----

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tide_status run_point(sizes *w, size_t k, size_t turn, tide_error *err) {
    const uint64_t begin = tide_now_ns();
    TIDE_TRY(tide_shape_engine_set_inputs(w->engine, &w->inputs[k * w->n_inputs], w->n_inputs, err));
    const uint64_t set = tide_now_ns();
    TIDE_TRY(tide_shape_engine_run(w->engine, err));
    const uint64_t end = tide_now_ns();
    w->times[k * w->spec->runs + turn] = end - set;
    if (turn == 0) w->out->sizes[k].first_ns = end - begin;
    return TIDE_OK;
}

static void read_times(sizes *w) {
    const size_t runs = w->spec->runs;
    cli_session_result *r = &w->out->session;
    for (size_t k = 0; k < w->out->n; k++) {
        qsort(&w->times[k * runs], runs, sizeof *w->times, by_time);
        w->out->sizes[k].median_ns = w->times[k * runs + runs / 2];
        w->out->sizes[k].n_runs = runs;
    }
    qsort(w->times, runs * w->out->n, sizeof *w->times, by_time);
    r->time_min_ns = w->times[0];
    r->time_median_ns = w->times[runs * w->out->n / 2];
    r->time_max_ns = w->times[runs * w->out->n - 1];
}

static tide_status run_all(sizes *w, tide_error *err) {
    uint64_t warm = 0;
    for (size_t turn = 0; turn < w->spec->runs; turn++) {
        for (size_t k = 0; k < w->out->n; k++) {
            const tide_status st = run_point(w, k, turn, err);
            if (st != TIDE_OK) {
                tide_error_prefix(err, "size '%s'", w->out->sizes[k].name);
                return st;
            }
        }
        if (turn > 0) continue;
        cli_session_mark_warm(w->session);
        warm = cli_session_n_allocated(w->session);
    }
    w->out->session.warm_allocations = cli_session_n_allocated(w->session) - warm;
    read_times(w);
    tide_shape_engine_get_stats(w->engine, &w->out->engine);
    return TIDE_OK;
}

/// What came out of tensors that are sized while running, over all sizes: each has a context of its own, which is the
/// present one once its inputs are set.
static tide_status list_bounded(sizes *w, tide_error *err) {
    for (size_t i = 0; i < w->out->n; i++) { // the largest first: the list has its bounds
        const size_t k = i == 0 ? w->largest : i <= w->largest ? i - 1 : i;
        TIDE_TRY(tide_shape_engine_set_inputs(w->engine, &w->inputs[k * w->n_inputs], w->n_inputs, err));
        TIDE_TRY(cli_bounded_add(&w->out->session.bounded, tide_shape_engine_context(w->engine), err));
    }
    return TIDE_OK;
}

static tide_status run_engine(sizes *w, const cli_session_spec *spec, tide_error *err) {
    const tide_shape_engine_options opt = {.build = build,
                                           .build_ctx = w,
                                           .profile = w->ranges,
                                           .n_ranges = w->given->profile.n,
                                           .memory_plan = w->plans.plans[0],
                                           .registry = cli_session_registry(w->session),
                                           .fill = w->spec->fill,
                                           .observer = cli_session_observer(w->session),
                                           .max_sizes = w->given->profile.n_points};
    TIDE_TRY(make_inputs(w, spec, err));
    TIDE_TRY(TIDE_NEW(&w->times, w->out->n * w->spec->runs + 1, err, "for times"));
    TIDE_TRY(tide_shape_engine_create(&opt, &w->engine, err));
    TIDE_TRY(run_all(w, err));
    return list_bounded(w, err);
}

static tide_status name_sizes(sizes *w, tide_error *err) {
    const tide_memory_plan *plan = w->plans.plans[0];
    w->out->n = w->given->profile.n_points;
    TIDE_TRY(TIDE_NEW(&w->out->sizes, w->out->n + 1, err, "for %zu sizes", w->out->n));
    for (size_t k = 0; k < w->out->n; k++)
        TIDE_TRY(TIDE_COPY_TEXT(&w->out->sizes[k].name, plan->lifetimes.point_names[k], err, "for a size"));
    TIDE_TRY(TIDE_COPY_TEXT(&w->out->model, w->first->graph->name, err, "for a name"));
    return TIDE_COPY_TEXT(&w->out->strategy, plan->strategy, err, "for a name");
}

static tide_status load(sizes *w, tide_error *err) {
    cli_planning sizes_alone = *w->given;
    sizes_alone.weights_registry = NULL;
    sizes_alone.mapped = NULL;
    TIDE_TRY(cli_input_require_graph(&w->in, err));
    w->in.keep = true;
    TIDE_TRY(cli_plans_make(&w->in, &sizes_alone, &w->plans, err));
    find_largest(w);
    TIDE_TRY(make_ranges(w, err));
    TIDE_TRY(make_first(w, err));
    return name_sizes(w, err);
}

static tide_status run_in_session(sizes *w, const char *path, tide_error *err) {
    cli_session_spec spec = *w->spec;
    cli_session_mark mark = {0};
    TIDE_TRY(load(w, err));
    spec.program = w->first;
    spec.plan = w->plans.plans[0];
    spec.mode = TIDE_RUN_PLANNED;
    spec.source = path;
    spec.contexts = 1;
    cli_session_begin(w->session, &spec, &mark);
    const tide_status st = run_engine(w, &spec, err);
    tide_shape_engine_destroy(w->engine);
    drop_inputs(w);
    const uint64_t warm = w->out->session.warm_allocations;
    cli_session_finish(w->session, &mark, &w->out->session);
    w->out->session.warm_allocations = warm;
    return st;
}

tide_status cli_sizes_run(cli_session *s, const char *path, const cli_planning *p, const cli_session_spec *spec,
                          cli_sizes_result *out, tide_error *err) {
    sizes w = {.session = s, .planning = *p, .given = p, .spec = spec, .out = out};
    *out = (cli_sizes_result){0};
    TIDE_TRY(cli_input_open(path, &w.in, err));
    const tide_status st = run_in_session(&w, path, err);
    tide_program_unref(w.first);
    cli_plans_deinit(&w.plans);
    cli_input_close(&w.in);
    tide_host_free(w.ranges);
    tide_host_free(w.times);
    return st;
}

void cli_sizes_result_deinit(cli_sizes_result *r) {
    for (size_t k = 0; r->sizes != NULL && k < r->n; k++) tide_host_free(r->sizes[k].name);
    tide_host_free(r->sizes);
    tide_host_free(r->model);
    tide_host_free(r->strategy);
    *r = (cli_sizes_result){0};
}

// ---- output ----

void cli_sizes_print(const cli_sizes_result *r) {
    printf("%-32s %14s %14s\n", "size", "first run, ms", "median, ms");
    for (size_t k = 0; k < r->n; k++) {
        char name[256];
        printf("%-32s %14.3f %14.3f\n", cli_clean(r->sizes[k].name, name, sizeof name),
               (double)r->sizes[k].first_ns / 1e6, (double)r->sizes[k].median_ns / 1e6);
    }
    printf("\nchanges of size: %" PRIu64 ", programs built: %" PRIu64 ", all in one buffer\n", r->engine.n_changes,
           r->engine.n_inferred);
}

void cli_json_sizes(tide_json_out *j, const char *key, const cli_sizes_result *r) {
    tide_json_open(j, key, '[');
    for (size_t k = 0; k < r->n; k++) {
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "size", r->sizes[k].name);
        tide_json_u64(j, "runs", r->sizes[k].n_runs);
        tide_json_u64(j, "first_ns", r->sizes[k].first_ns);
        tide_json_u64(j, "median_ns", r->sizes[k].median_ns);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    tide_json_u64(j, "size_changes", r->engine.n_changes);
    tide_json_u64(j, "programs_built", r->engine.n_inferred);
}
