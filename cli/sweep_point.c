// SPDX-License-Identifier: MIT
//
// One point of a sweep: the model at one size, planned. See sweep.h.
#include <inttypes.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

static tide_status no_memory(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for a point"); }

void cli__sweep_point_free(tide_sweep_point *p) {
    tide_host_free(p->model);
    tide_host_free(p->sizes);
    tide_host_free(p->strategy);
    tide_host_free(p->error);
    *p = (tide_sweep_point){0};
}

// ---- what it is called ----

static uint64_t value_of(const cli_sweep_job *job, const cli_sweep_task *task, size_t axis, uint64_t swept) {
    return axis == 0 ? swept : job->places[task->place].others[axis];
}

/// All that was given about sizes: extents, the swept one first, then shapes.
static char *sizes_of(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value) {
    const cli_sweep_options *o = job->o;
    tide_text text = {0};
    for (size_t k = 0; k < o->n_axes; k++)
        tide_text_addf(&text, "%s%s=%" PRIu64, k > 0 ? " " : "", o->axes[k].name, value_of(job, task, k, value));
    for (size_t i = 0; i < o->planning.shapes.n; i++) {
        const tide_shape_binding *b = &o->planning.shapes.items[i];
        char shape[256];
        tide_text_addf(&text, "%s%s=%s", text.len > 0 ? " " : "", b->name,
                       cli_shape_text(&b->shape, shape, sizeof shape));
    }
    if (text.data == NULL && !text.failed) return tide_host_strdup("");
    if (!text.failed) return text.data; // moved out
    tide_text_deinit(&text);
    return NULL;
}

tide_status cli__sweep_point(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, const char *strategy,
                             tide_sweep_point *out, tide_error *err) {
    const uint64_t align = job->o->aligns[task->align];
    *out = (tide_sweep_point){.model = tide_host_strdup(job->models[task->model].path),
                              .sizes = sizes_of(job, task, value),
                              .strategy = tide_host_strdup(strategy),
                              .align_bytes = align != 0 ? align : TIDE_DEFAULT_ALIGN,
                              .value = value,
                              .rank = job->rank};
    if (out->model != NULL && out->sizes != NULL && out->strategy != NULL) return TIDE_OK;
    cli__sweep_point_free(out);
    return no_memory(err);
}

tide_status cli__sweep_keep(cli_sweep_task *task, tide_sweep_point *p, tide_error *err) {
    if (tide_host_grow(&task->points, &task->cap_points, task->n_points + 1, sizeof *task->points) != TIDE_OK) {
        cli__sweep_point_free(p);
        return no_memory(err);
    }
    task->points[task->n_points++] = *p;
    *p = (tide_sweep_point){0};
    return TIDE_OK;
}

// ---- what it is planned with ----

static tide_status add_extent(char **list, size_t *n, const char *name, uint64_t value, tide_error *err) {
    tide_text text = {0};
    tide_text_addf(&text, "%s=%" PRIu64, name, value);
    if (text.failed) {
        tide_text_deinit(&text);
        return no_memory(err);
    }
    list[(*n)++] = text.data;
    return TIDE_OK;
}

tide_status cli__sweep_extents(const cli_sweep_job *job, const cli_sweep_task *task, uint64_t value, char ***list,
                               size_t *n, tide_error *err) {
    const cli_sweep_model *m = &job->models[task->model];
    const cli_sweep_options *o = job->o;
    *n = 0;
    *list = tide_host_calloc(o->n_axes * (m->n_batch + 1) + 1, sizeof **list);
    if (*list == NULL) return no_memory(err);
    tide_status st = TIDE_OK;
    for (size_t k = 0; st == TIDE_OK && k < o->n_axes; k++) {
        const uint64_t at = value_of(job, task, k, value);
        if (!o->axes[k].is_batch) st = add_extent(*list, n, o->axes[k].name, at, err);
        for (size_t i = 0; st == TIDE_OK && o->axes[k].is_batch && i < m->n_batch; i++)
            st = add_extent(*list, n, m->batch[i], at, err);
    }
    if (st != TIDE_OK) cli_extents_free(list, n);
    return st;
}

cli_planning cli__sweep_planning(const cli_sweep_job *job, const cli_sweep_task *task, char **extents, size_t n,
                                 const char *strategy) {
    cli_planning p = job->o->planning; // shapes are borrowed
    p.strategy = strategy;
    p.align_bytes = job->o->aligns[task->align];
    p.extents = (const char *const *)extents;
    p.n_extents = n;
    return p;
}

// ---- its figures ----

/// What the plan says is held of `kind` beside its buffers.
static uint64_t beside_buffers(const tide_memory_plan *plan, tide_memory_kind kind) {
    uint64_t bytes = tide_memory_plan_predicted(plan, kind);
    for (size_t b = 0; b < plan->n_buffers; b++) bytes -= plan->buffers[b].kind == kind ? plan->buffers[b].bytes : 0;
    return bytes;
}

static tide_status fill(const tide_memory_plan *plan, tide_sweep_point *p, tide_error *err) {
    uint64_t total = plan->bytes, other = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const uint64_t bytes = beside_buffers(plan, (tide_memory_kind)k);
        if (!tide_add_u64(total, bytes, &total) || total > INT64_MAX)
            return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "everything together is more than 2^63 bytes");
        if (k != TIDE_KIND_PERSISTENT && k != TIDE_KIND_DEFAULT) other += bytes;
    }
    p->planned_bytes = plan->bytes;
    p->weights_bytes = beside_buffers(plan, TIDE_KIND_PERSISTENT);
    p->io_bytes = beside_buffers(plan, TIDE_KIND_DEFAULT);
    p->other_bytes = other;
    p->total_bytes = total;
    p->naive_bytes = tide_memory_plan_original_bytes(plan);
    p->lower_bound_bytes = plan->lower_bound_bytes;
    p->proved_bytes = plan->proved_bytes;
    p->proven = plan->proven;
    p->plan_time_ns = plan->time_ns;
    return TIDE_OK;
}

/// What is said of a failure in one line.
static char *one_line(const tide_error *why) {
    tide_text text = {0};
    tide_text_add(&text, why->msg[0] != '\0' ? why->msg : tide_status_text(why->status));
    if (why->note[0] != '\0') tide_text_addf(&text, "; %s", why->note);
    if (!text.failed) return text.data; // moved out
    tide_text_deinit(&text);
    return NULL;
}

tide_status cli__sweep_set_error(tide_sweep_point *p, const tide_error *why, tide_error *err) {
    p->measured = false;
    if (why->status == TIDE_ERR_NOMEM) cli_ran_out(why->msg);
    p->error = one_line(why);
    return p->error != NULL ? TIDE_OK : no_memory(err);
}

static tide_status plan_one(const cli_planning *p, const cli_sweep_model *m, const tide_lifetimes *lt, const char *name,
                            tide_sweep_point *point, tide_error *err) {
    const tide_strategy_options opt = cli_strategy_options(p);
    const tide_strategy *strategy;
    tide_memory_plan *plan = NULL;
    TIDE_TRY(tide_strategy_find(name, &strategy, err));
    TIDE_TRY(tide_plan_make(lt, strategy, &opt, &plan, err));
    const tide_status st = fill(plan, point, err);
    // A lifetimes file says itself how things are aligned, unless --align asks for more.
    const bool is_graph = m->in.kind == CLI_INPUT_ONNX || m->in.kind == CLI_INPUT_GRAPH;
    if (st == TIDE_OK && p->align_bytes == 0 && !is_graph && plan->n_buffers > 0)
        point->align_bytes = plan->align_bytes;
    tide_memory_plan_destroy(plan);
    return st;
}

/// A point of each strategy, with figures or, when `made` says that there are no lifetimes, with `why`.
static tide_status points_of(const cli_sweep_job *job, cli_sweep_task *task, uint64_t value, const char *strategy,
                             const cli_planning *planning, const tide_lifetimes *lt, tide_status made, tide_error *why,
                             tide_error *err) {
    for (size_t s = 0; s < job->o->n_strategies; s++) {
        const char *name = job->o->strategies[s];
        if (strategy != NULL && strcmp(strategy, name) != 0) continue;
        tide_sweep_point p;
        TIDE_TRY(cli__sweep_point(job, task, value, name, &p, err));
        const tide_status st =
            made == TIDE_OK ? plan_one(planning, &job->models[task->model], lt, name, &p, why) : made;
        const tide_status noted = st == TIDE_OK ? TIDE_OK : cli__sweep_set_error(&p, why, err);
        if (noted != TIDE_OK) {
            cli__sweep_point_free(&p);
            return noted;
        }
        task->last = st;
        TIDE_TRY(cli__sweep_keep(task, &p, err));
    }
    return TIDE_OK;
}

tide_status cli__sweep_plan_at(const cli_sweep_job *job, cli_sweep_task *task, uint64_t value, const char *strategy,
                               tide_error *err) {
    const cli_sweep_model *m = &job->models[task->model];
    char **extents = NULL;
    size_t n = 0;
    TIDE_TRY(cli__sweep_extents(job, task, value, &extents, &n, err));
    const cli_planning planning = cli__sweep_planning(job, task, extents, n, NULL);
    tide_lifetimes lt = {0};
    tide_error why = m->err;
    cli_input in = m->in; // bytes are borrowed and kept
    const tide_status made = why.status != TIDE_OK ? why.status : cli_lifetimes_of_input(&in, &planning, &lt, &why);
    const tide_status st = points_of(job, task, value, strategy, &planning, &lt, made, &why, err);
    tide_lifetimes_deinit(&lt);
    cli_extents_free(&extents, &n);
    return st;
}
