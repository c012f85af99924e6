// SPDX-License-Identifier: MIT
//
// A sweep's models (read once) and tasks, which rank does which task, and the results of all tasks as one sweep. See
// sweep.h.
#include <stdio.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"

// ---- models ----

// ---- extents ----

/// The name of the input's first open extent, as cli_extents_of_graph calls it; NULL: none is open. @return `buf`
static const char *first_open(const tide_value *v, char *buf, size_t buf_bytes) {
    for (int32_t d = 0; v->has_shape && d < v->shape.rank; d++) {
        if (v->shape.dims[d] != TIDE_DIM_UNKNOWN) continue;
        const char *symbol = v->dim_names != NULL ? v->dim_names[d] : NULL;
        if (symbol != NULL && symbol[0] != '\0') return symbol;
        snprintf(buf, buf_bytes, "%s.%d", v->name, (int)d);
        return buf;
    }
    return NULL;
}

static tide_status find_batch(const tide_graph *g, cli_sweep_model *m, tide_error *err) {
    TIDE_TRY(TIDE_NEW(&m->batch, g->n_inputs + 1, err, "for %zu inputs", g->n_inputs));
    for (size_t i = 0; i < g->n_inputs; i++) {
        char buf[512];
        const char *name = first_open(&g->values[g->inputs[i]], buf, sizeof buf);
        bool known = name == NULL;
        for (size_t k = 0; !known && k < m->n_batch; k++) known = strcmp(m->batch[k], name) == 0;
        if (known) continue;
        TIDE_TRY(TIDE_COPY_TEXT(&m->batch[m->n_batch], name, err, "for an extent"));
        m->n_batch++;
    }
    return TIDE_OK;
}

static tide_status nothing_open(const cli_sweep_model *m, const cli_sweep_axis *axis, tide_error *err) {
    TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' leaves no extent of its inputs open: there is no '%s' to vary", m->path,
              axis->name);
    tide_error_note(err, "every extent is a number in the file");
    return TIDE_ERR_NOT_FOUND;
}

static tide_status check_axis(const cli_sweep_model *m, const cli_sweep_axis *axis, tide_error *err) {
    if (m->n_extents == 0) return nothing_open(m, axis, err);
    if (axis->is_batch) return TIDE_OK;
    for (size_t k = 0; k < m->n_extents; k++) {
        if (strcmp(m->extents[k], axis->name) == 0) return TIDE_OK;
    }
    TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' has no open extent '%s'", m->path, axis->name);
    tide_text list = {0};
    for (size_t k = 0; k < m->n_extents; k++) tide_text_addf(&list, "%s%s", k > 0 ? ", " : "", m->extents[k]);
    tide_error_note(err, "its open extents are: %s", tide_text_str(&list));
    tide_text_deinit(&list);
    const char *meant = tide_nearest_of(axis->name, (const char *const *)m->extents, m->n_extents);
    if (meant != NULL) tide_error_hint(err, "did you mean '%s'?", meant);
    return TIDE_ERR_NOT_FOUND;
}

static tide_status read_extents(const cli_sweep_options *o, cli_sweep_model *m, tide_error *err) {
    tide_graph *graph = NULL;
    TIDE_TRY(cli_graph_of_names(&m->in, &o->planning, &graph, err));
    tide_status st = cli_extents_of_graph(graph, &m->extents, &m->n_extents, err);
    if (st == TIDE_OK) st = find_batch(graph, m, err);
    tide_graph_destroy(graph);
    for (size_t k = 0; st == TIDE_OK && k < o->n_axes; k++) st = check_axis(m, &o->axes[k], err);
    return st;
}

// ---- a file ----

static tide_status read_model(const cli_sweep_options *o, cli_sweep_model *m, tide_error *err) {
    TIDE_TRY(cli_input_open(m->path, &m->in, err));
    m->in.keep = true;
    const bool is_graph = m->in.kind == CLI_INPUT_ONNX || m->in.kind == CLI_INPUT_GRAPH;
    if (is_graph) return read_extents(o, m, err);
    if (m->in.kind == CLI_INPUT_TRACE)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is a trace: a sweep plans models, graph texts and lifetimes",
                         m->path);
    if (o->run != CLI_SWEEP_RUN_NONE) return cli_input_require_graph(&m->in, err);
    if (o->n_axes == 0) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "'%s' is %s: its sizes are numbers, there is no '%s' to vary", m->path,
                     cli_input_name(&m->in), o->axes[0].name);
}

/// What is wrong with the file stays in out->err, and is an error of its points.
static void open_file(const char *path, const cli_sweep_options *o, cli_sweep_model *out) {
    *out = (cli_sweep_model){.path = path};
    const tide_status st = read_model(o, out, &out->err);
    if (st == TIDE_OK) tide_error_clear(&out->err);
}

static void close_file(cli_sweep_model *m) {
    cli_input_close(&m->in);
    cli_extents_free(&m->extents, &m->n_extents);
    cli_extents_free(&m->batch, &m->n_batch);
}

// ---- tasks ----

// ---- making ----

/// All combinations of the axes behind the swept one, the last one fastest.
static tide_status make_places(const cli_sweep_options *o, cli_sweep_job *job, tide_error *err) {
    size_t n = 1;
    for (size_t k = 1; k < o->n_axes; k++) {
        if (!tide_mul_size(n, o->axes[k].n, &n) || n > CLI_SWEEP_MAX_POINTS)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "these are more than %d points", CLI_SWEEP_MAX_POINTS);
    }
    TIDE_TRY(TIDE_NEW(&job->places, n, err, "for %zu combinations", n));
    job->n_places = n;
    for (size_t i = 0; i < n; i++) {
        size_t rest = i;
        for (size_t k = o->n_axes; k-- > 1; rest /= o->axes[k].n)
            job->places[i].others[k] = o->axes[k].values[rest % o->axes[k].n];
    }
    return TIDE_OK;
}

/// How many tasks one (model, place, alignment) makes: one for each strategy that searches, or one for each value.
static size_t tasks_each(const cli_sweep_options *o) {
    if (o->n_budgets > 0) return o->n_strategies;
    return o->n_axes > 0 ? o->axes[0].n : 1;
}

/// Deals tasks back and forth: neighbours, which cost about the same, go to different ranks, and no rank gets the
/// most expensive task of every round.
static uint32_t rank_of(const cli_sweep_job *job, size_t task) {
    const size_t round = task / job->n_ranks, at = task % job->n_ranks;
    return (uint32_t)(round % 2 == 0 ? at : job->n_ranks - 1 - at);
}

/// Only the options decide, not the files, because a file may be missing on the machine of one rank.
static tide_status make_tasks(const cli_sweep_options *o, cli_sweep_job *job, tide_error *err) {
    const size_t each = tasks_each(o);
    size_t n = o->n_files, points;
    const bool fits = tide_mul_size(n, job->n_places, &n) && tide_mul_size(n, o->n_aligns, &n) &&
                      tide_mul_size(n, each, &n) && tide_mul_size(n, o->n_strategies, &points) &&
                      points <= CLI_SWEEP_MAX_POINTS;
    if (!fits) return TIDE_FAIL(err, TIDE_ERR_INVALID, "these are more than %d points", CLI_SWEEP_MAX_POINTS);
    TIDE_TRY(TIDE_NEW(&job->tasks, n + 1, err, "for %zu tasks", n));
    job->n_tasks = n;
    for (size_t i = 0; i < n; i++) {
        cli_sweep_task *t = &job->tasks[i];
        const size_t one = i % each, rest = i / each;
        t->align = rest % o->n_aligns;
        t->place = rest / o->n_aligns % job->n_places;
        t->model = rest / o->n_aligns / job->n_places;
        t->rank = rank_of(job, i);
        if (o->n_budgets > 0)
            t->strategy = one;
        else if (o->n_axes > 0)
            t->value = o->axes[0].values[one];
    }
    return TIDE_OK;
}

tide_status cli_sweep_job_make(const cli_sweep_options *o, uint32_t rank, uint32_t n_ranks, cli_sweep_job *out,
                               tide_error *err) {
    *out = (cli_sweep_job){.o = o, .rank = rank, .n_ranks = n_ranks};
    out->models = tide_host_calloc(o->n_files + 1, sizeof *out->models);
    tide_status st = out->models != NULL ? make_places(o, out, err) : TIDE_NO_MEMORY(err, "for %zu files", o->n_files);
    if (st == TIDE_OK) st = make_tasks(o, out, err);
    for (size_t i = 0; st == TIDE_OK && i < o->n_files; i++) open_file(o->files[i], o, &out->models[i]);
    if (st != TIDE_OK) cli_sweep_job_deinit(out);
    return st;
}

static void forget_results(cli_sweep_task *t) {
    for (size_t i = 0; i < t->n_points; i++) cli__sweep_point_free(&t->points[i]);
    tide_host_free(t->points);
    tide_host_free(t->found);
    t->points = NULL;
    t->found = NULL;
    t->n_points = t->n_found = 0;
}

void cli_sweep_job_deinit(cli_sweep_job *job) {
    for (size_t i = 0; i < job->n_tasks; i++) forget_results(&job->tasks[i]);
    for (size_t i = 0; job->models != NULL && i < job->o->n_files; i++) close_file(&job->models[i]);
    tide_host_free(job->tasks);
    tide_host_free(job->places);
    tide_host_free(job->models);
    *job = (cli_sweep_job){0};
}

// ---- results ----

static tide_status open_sweep(const cli_sweep_job *job, tide_sweep *out, tide_error *err) {
    const cli_sweep_axis *swept = cli_sweep_swept(job->o);
    *out = (tide_sweep){.n_ranks = 1};
    return TIDE_COPY_TEXT(&out->extent, swept != NULL ? swept->name : "", err, "for a sweep");
}

/// "the point's series" of an answer: the one that the task's point with the value of the answer is in.
static tide_status add_answers(const cli_sweep_job *job, const cli_sweep_task *t, tide_sweep *out, tide_error *err) {
    for (size_t k = 0; k < t->n_found; k++) {
        tide_sweep_answer a = t->found[k].answer;
        tide_sweep_point like = {0};
        TIDE_TRY(cli__sweep_point(job, t, a.none_fits ? a.next_value : a.value, t->found[k].strategy, &like, err));
        const char *rest = strchr(like.sizes + strlen(out->extent), ' '); // the name itself may hold blanks
        const bool found =
            tide_sweep_find(out, like.model, rest != NULL ? rest + 1 : "", like.strategy, like.align_bytes, &a.series);
        cli__sweep_point_free(&like);
        if (!found) return TIDE_FAIL(err, TIDE_ERR_UNKNOWN, "an answer has no series");
        TIDE_TRY(tide_sweep_add_answer(out, &a, err));
    }
    return TIDE_OK;
}

static tide_status collect(cli_sweep_job *job, tide_sweep *out, tide_error *err) {
    TIDE_TRY(open_sweep(job, out, err));
    for (size_t i = 0; i < job->n_tasks; i++) {
        cli_sweep_task *t = &job->tasks[i];
        for (size_t k = 0; k < t->n_points; k++) TIDE_TRY(tide_sweep_add(out, &t->points[k], err));
    }
    TIDE_TRY(tide_sweep_sort(out, err));
    for (size_t i = 0; i < job->n_tasks; i++) TIDE_TRY(add_answers(job, &job->tasks[i], out, err));
    return TIDE_OK;
}

tide_status cli_sweep_collect(cli_sweep_job *job, tide_sweep *out, tide_error *err) {
    const tide_status st = collect(job, out, err);
    for (size_t i = 0; i < job->n_tasks; i++) forget_results(&job->tasks[i]);
    if (st != TIDE_OK) tide_sweep_deinit(out);
    return st;
}

static tide_status add_lost_points(const cli_sweep_job *job, uint32_t rank, const char *why, tide_sweep *out,
                                   tide_error *err) {
    const cli_sweep_axis *swept = cli_sweep_swept(job->o);
    TIDE_TRY(open_sweep(job, out, err));
    for (size_t i = 0; i < job->n_tasks; i++) {
        const cli_sweep_task *t = &job->tasks[i];
        if (t->rank != rank) continue;
        const bool one = job->o->n_budgets > 0; // a task of one strategy: the whole series is one point, at its begin
        for (size_t s = one ? t->strategy : 0; s < (one ? t->strategy + 1 : job->o->n_strategies); s++) {
            tide_sweep_point p = {0};
            TIDE_TRY(
                cli__sweep_point(job, t, one && swept != NULL ? swept->lo : t->value, job->o->strategies[s], &p, err));
            p.rank = rank;
            p.error = tide_host_strdup(why);
            if (p.error == NULL) {
                cli__sweep_point_free(&p);
                return TIDE_NO_MEMORY(err, "for an error");
            }
            TIDE_TRY(tide_sweep_add(out, &p, err));
        }
    }
    return tide_sweep_sort(out, err);
}

tide_status cli_sweep_lost(const cli_sweep_job *job, uint32_t rank, const char *why, tide_sweep *out, tide_error *err) {
    const tide_status st = add_lost_points(job, rank, why, out, err);
    if (st != TIDE_OK) tide_sweep_deinit(out);
    return st;
}
