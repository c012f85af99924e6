// SPDX-License-Identifier: MIT
//
// Profiles: one table for a model at several sizes. See planning.h.
//
// The program is built at each point. What each point would take alone is planned there; then all points follow the
// order of the largest, so that their tables can be merged and what lies inside what at every point can be shared.
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"

typedef struct profiler {
    cli_input *in;
    const cli_planning *p;
    tide_shape_binding *shapes; // [n_inputs] of the point at work
    char **names;               // [n_points]
    tide_lifetimes *tables;     // [n_points]
    tide_point_need *needs;     // [n_points]
    tide_alias_facts *facts;    // [n_points] of all but the base
    size_t n_points, base;
} profiler;

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a profile"); }

static void bind(const profiler *f, size_t k) {
    for (size_t i = 0; i < f->p->profile.n; i++)
        f->shapes[i] =
            (tide_shape_binding){.name = f->p->profile.inputs[i].name, .shape = f->p->profile.inputs[i].shapes[k]};
}

static char *name_of(const profiler *f, size_t k) {
    tide_text name = {0};
    for (size_t i = 0; i < f->p->profile.n; i++) {
        char shape[256];
        tide_text_addf(&name, "%s%s=%s", i > 0 ? "," : "", f->p->profile.inputs[i].name,
                       cli_shape_text(&f->p->profile.inputs[i].shapes[k], shape, sizeof shape));
    }
    if (!name.failed) return name.data;
    tide_text_deinit(&name);
    return NULL;
}

static tide_status build(const profiler *f, size_t k, tide_program **out, tide_error *err) {
    bind(f, k);
    const tide_status st = cli__program_make(f->in, f->p, f->shapes, f->p->profile.n, out, err);
    if (st != TIDE_OK) tide_error_prefix(err, "profile point '%s'", f->names[k]);
    return st;
}

/// What the point takes when nothing but it is planned for; its table stays in f->tables[k].
static tide_status plan_alone(const profiler *f, size_t k, tide_error *err) {
    const tide_pass_options passes = cli_pass_options(f->p);
    const tide_strategy_options opt = cli_strategy_options(f->p);
    const tide_strategy *strategy;
    tide_program *program = NULL;
    tide_memory_plan *plan = NULL;
    TIDE_TRY(cli_strategy(f->p, &strategy, err));
    TIDE_TRY(build(f, k, &program, err));
    tide_status st = tide_passes_run(program, &passes, &f->tables[k], NULL, err);
    tide_program_unref(program);
    if (st == TIDE_OK) st = tide_plan_make(&f->tables[k], strategy, &opt, &plan, err);
    if (st != TIDE_OK) {
        tide_error_prefix(err, "profile point '%s'", f->names[k]);
        return st;
    }
    f->needs[k] = (tide_point_need){.lower_bound_bytes = plan->lower_bound_bytes, .bytes = plan->bytes};
    tide_memory_plan_destroy(plan);
    return TIDE_OK;
}

static uint64_t sum_of_sizes(const tide_lifetimes *lt) {
    uint64_t sum = 0;
    for (size_t i = 0; i < lt->n; i++) sum += lt->items[i].size_bytes;
    return sum;
}

/// Program and sizes of the point in the order of the base, without aliases.
static tide_status follow_base(const profiler *f, const tide_lifetimes *base, size_t k, tide_program **out,
                               tide_error *err) {
    const tide_pass_options passes = cli_pass_options(f->p);
    TIDE_TRY(build(f, k, out, err));
    tide_status st =
        tide_program_follow(*out, base->step_names, base->n_step_names, base->recomputed, base->n_recomputed, err);
    if (st == TIDE_OK) st = tide_liveness(*out, passes.align_bytes, &f->tables[k], err);
    if (st == TIDE_OK) return st;
    tide_program_unref(*out);
    *out = NULL;
    tide_error_prefix(err, "the program differs between profile points '%s' and '%s'", f->names[f->base], f->names[k]);
    return st;
}

/// All that is needed of the points beside the base; their programs, with their weights, do not stay.
static tide_status look_at_others(const profiler *f, const tide_lifetimes *base, tide_error *err) {
    for (size_t k = 0; k < f->n_points; k++) {
        tide_program *program;
        if (k == f->base) continue;
        tide_lifetimes_deinit(&f->tables[k]);
        TIDE_TRY(follow_base(f, base, k, &program, err));
        const tide_status st = tide_alias_facts_make(program, &f->facts[k], err);
        tide_program_unref(program);
        TIDE_TRY(st);
    }
    return TIDE_OK;
}

static tide_status merge(profiler *f, const tide_program *program, tide_lifetimes *out, tide_error *err) {
    const tide_pass_options passes = cli_pass_options(f->p);
    tide_lifetimes merged;
    TIDE_TRY(tide_lifetimes_merge_points(f->tables, (const char *const *)f->names, f->n_points, f->base, &merged, err));
    // The base's own facts, which are none, go out of the list.
    f->facts[f->base] = f->facts[f->n_points - 1];
    f->facts[f->n_points - 1] = (tide_alias_facts){0};
    const tide_status st = tide_passes_at_points(program, f->facts, f->n_points - 1, &passes, &merged, err);
    if (st != TIDE_OK)
        tide_lifetimes_deinit(&merged);
    else
        *out = merged;
    return st;
}

static tide_status make(profiler *f, tide_lifetimes *out, tide_error *err) {
    for (size_t k = 0; k < f->n_points; k++) {
        f->names[k] = name_of(f, k);
        if (f->names[k] == NULL) return no_memory(err);
        TIDE_TRY(plan_alone(f, k, err));
        if (sum_of_sizes(&f->tables[k]) > sum_of_sizes(&f->tables[f->base])) f->base = k;
    }
    tide_lifetimes base = f->tables[f->base]; // its order is followed, also by itself: without its aliases
    f->tables[f->base] = (tide_lifetimes){0};
    tide_program *program = NULL;
    tide_status st = look_at_others(f, &base, err);
    if (st == TIDE_OK) st = follow_base(f, &base, f->base, &program, err);
    if (st == TIDE_OK) st = merge(f, program, out, err);
    tide_program_unref(program);
    tide_lifetimes_deinit(&base);
    return st;
}

tide_status cli__points_make(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) {
    const size_t n = p->profile.n_points;
    profiler f = {.in = in, .p = p, .n_points = n};
    f.shapes = tide_host_calloc(p->profile.n, sizeof *f.shapes);
    f.names = tide_host_calloc(n, sizeof *f.names);
    f.tables = tide_host_calloc(n, sizeof *f.tables);
    f.needs = tide_host_calloc(n, sizeof *f.needs);
    f.facts = tide_host_calloc(n, sizeof *f.facts);
    const bool good = f.shapes != NULL && f.names != NULL && f.tables != NULL && f.needs != NULL && f.facts != NULL;
    tide_status st = good ? make(&f, &out->lifetimes, err) : no_memory(err);
    if (st == TIDE_OK) {
        for (size_t k = 0; k < n; k++) f.needs[k].name = out->lifetimes.point_names[k];
        out->points = f.needs;
        out->n_points = n;
        f.needs = NULL; // moved out
    }
    for (size_t k = 0; k < n && good; k++) {
        tide_host_free(f.names[k]);
        tide_lifetimes_deinit(&f.tables[k]);
        tide_alias_facts_deinit(&f.facts[k]);
    }
    tide_host_free(f.facts);
    tide_host_free(f.shapes);
    tide_host_free(f.names);
    tide_host_free(f.tables);
    tide_host_free(f.needs);
    return st;
}
