// SPDX-License-Identifier: MIT
//
// The models of a sweep: read once, and what they leave open. See sweep.h.
#include <stdio.h>
#include <string.h>

#include "cli/sweep.h"
#include "core/base/host_alloc.h"
#include "core/base/nearest.h"

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
    m->batch = tide_host_calloc(g->n_inputs + 1, sizeof *m->batch);
    if (m->batch == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for %zu inputs", g->n_inputs);
    for (size_t i = 0; i < g->n_inputs; i++) {
        char buf[512];
        const char *name = first_open(&g->values[g->inputs[i]], buf, sizeof buf);
        bool known = name == NULL;
        for (size_t k = 0; !known && k < m->n_batch; k++) known = strcmp(m->batch[k], name) == 0;
        if (known) continue;
        m->batch[m->n_batch] = tide_host_strdup(name);
        if (m->batch[m->n_batch] == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for an extent");
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

static tide_status open_model(const cli_sweep_options *o, cli_sweep_model *m, tide_error *err) {
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
                     cli_input_kind_name(m->in.kind), o->axes[0].name);
}

void cli_sweep_model_open(const char *path, const cli_sweep_options *o, cli_sweep_model *out) {
    *out = (cli_sweep_model){.path = path};
    const tide_status st = open_model(o, out, &out->err);
    if (st == TIDE_OK) tide_error_clear(&out->err);
}

void cli_sweep_model_close(cli_sweep_model *m) {
    cli_input_close(&m->in);
    cli_extents_free(&m->extents, &m->n_extents);
    cli_extents_free(&m->batch, &m->n_batch);
}
