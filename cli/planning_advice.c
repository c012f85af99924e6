// SPDX-License-Identifier: MIT
//
// The changes that advice tries on a model: its program made again with one option changed. See planner/advice.h.
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"

typedef struct maker {
    cli_input *in;
    const cli_planning *p;
} maker;

// ---- open extents at half ----

/// What the options give the input now; NULL: nothing.
static const tide_shape *shape_of(const cli_planning *p, const char *name) {
    for (size_t i = 0; i < p->shapes.n; i++) {
        if (strcmp(p->shapes.items[i].name, name) == 0) return &p->shapes.items[i].shape;
    }
    return NULL;
}

/// `out` becomes the input's shape with every extent that the file leaves open halved. @return whether any was
static bool halve(const tide_value *input, const tide_shape *now, tide_shape *out) {
    bool any = false;
    *out = *now;
    for (int d = 0; d < (int)now->rank; d++) {
        const bool open = !input->has_shape || (d < (int)input->shape.rank && input->shape.dims[d] == TIDE_DIM_UNKNOWN);
        if (!open || out->dims[d] < 2) continue;
        out->dims[d] -= out->dims[d] / 2;
        any = true;
    }
    return any;
}

static tide_status halve_inputs(const maker *m, const tide_graph *graph, tide_shape_binding *out, size_t *n,
                                tide_text *words, tide_error *err) {
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const tide_value *input = &graph->values[graph->inputs[i]];
        const tide_shape *now = shape_of(m->p, input->name);
        char shape[256];
        tide_shape half;
        if (now == NULL || !halve(input, now, &half)) continue;
        tide_text_addf(words, "%s--shape %s=%s", *n > 0 ? " " : "", input->name,
                       cli_shape_text(&half, shape, sizeof shape));
        out[(*n)++] = (tide_shape_binding){.name = input->name, .shape = half};
    }
    if (*n == 0) return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the file leaves no extent open");
    return words->failed ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for advice") : TIDE_OK;
}

// ---- making it again ----

static tide_status make_table(const maker *m, const cli_planning *p, const tide_shape_binding *shapes, size_t n,
                              tide_lifetimes *out, tide_error *err) {
    const tide_pass_options opt = cli_pass_options(p);
    tide_program *program = NULL;
    TIDE_TRY(cli__program_make(m->in, p, shapes, n, &program, err));
    const tide_status st = tide_passes_run(program, &opt, out, NULL, err);
    tide_program_unref(program);
    return st;
}

static tide_status remake_half(const maker *m, const cli_planning *p, tide_lifetimes *out, char **what,
                               tide_error *err) {
    tide_graph *graph = NULL; // names are borrowed from it
    TIDE_TRY(cli_graph_of_names(m->in, p, &graph, err));
    tide_shape_binding *shapes = tide_host_calloc(graph->n_inputs + 1, sizeof *shapes);
    size_t n = 0;
    tide_text words = {0};
    tide_status st = shapes == NULL ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for advice")
                                    : halve_inputs(m, graph, shapes, &n, &words, err);
    if (st == TIDE_OK) st = make_table(m, p, shapes, n, out, err);
    if (st == TIDE_OK) {
        *what = words.data;
        words = (tide_text){0}; // moved out
    }
    tide_text_deinit(&words);
    tide_host_free(shapes);
    tide_graph_destroy(graph);
    return st;
}

static tide_status remake(void *ctx, const tide_change *change, tide_lifetimes *out, char **what, tide_error *err) {
    const maker *m = ctx;
    cli_planning p = *m->p;
    p.weights_registry = NULL;
    switch (change->kind) {
    case TIDE_CHANGE_PASS:
        p.no_pass[change->pass] = false;
        break;
    case TIDE_CHANGE_PASSES:
        memset(p.no_pass, 0, sizeof p.no_pass);
        break;
    case TIDE_CHANGE_FUSE:
        p.no_fuse = false;
        break;
    case TIDE_CHANGE_ALIGN:
        p.align_bytes = change->align_bytes;
        break;
    case TIDE_CHANGE_RECOMPUTE:
        p.recompute_share = change->recompute_share;
        break;
    case TIDE_CHANGE_EXTENTS:
        return remake_half(m, &p, out, what, err);
    default:
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "no program is needed for that");
    }
    return make_table(m, &p, NULL, 0, out, err);
}

tide_status cli_advise(cli_input *in, const cli_planning *p, const tide_memory_plan *plan, uint64_t budget_bytes,
                       tide_advice *out, tide_error *err) {
    const bool is_model = in->kind == CLI_INPUT_ONNX || in->kind == CLI_INPUT_GRAPH;
    const tide_strategy *strategy;
    maker m = {.in = in, .p = p};
    TIDE_TRY(cli_strategy(p, &strategy, err));
    const tide_advice_question q = {.plan = plan,
                                    .budget_bytes = budget_bytes,
                                    .remake = is_model && p->profile.n_points == 0 ? remake : NULL,
                                    .ctx = &m,
                                    .passes = cli_pass_options(p),
                                    .no_fuse = p->no_fuse,
                                    .strategy = strategy};
    return tide_advice_make(&q, out, err);
}
