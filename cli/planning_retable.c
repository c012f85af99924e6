// SPDX-License-Identifier: MIT
//
// The table of lifetimes of a model made again with something changed: one option, for advice (planner/advice.h); or
// passes, extents, batch and tensors computed twice, for what-if (analysis/whatif.h).
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"
#include "core/ops/ops.h"

// ---- advice: a model with one option changed ----

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
    return words->failed ? TIDE_NO_MEMORY(err, "for advice") : TIDE_OK;
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
    tide_status st =
        shapes == NULL ? TIDE_NO_MEMORY(err, "for advice") : halve_inputs(m, graph, shapes, &n, &words, err);
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

// ---- what-if: a model with edits ----

/// A view asks from its worker, and from the thread that writes a page of it: the input is read by one at a time.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/// Shapes that edits give to inputs; names are owned.
typedef struct bindings {
    tide_shape_binding *items; // [n]
    char **names;              // [n]
    size_t n, cap, cap_names;
} bindings;

static void bindings_deinit(bindings *b) {
    for (size_t i = 0; i < b->n; i++) tide_host_free(b->names[i]);
    tide_host_free(b->items);
    tide_host_free(b->names);
}

/// The first binding of a name wins, so a later one must be put in front.
static tide_status bind(bindings *b, const char *name, size_t len, const tide_shape *shape, tide_error *err) {
    char *copy = tide_host_strndup(name, len);
    if (copy == NULL || tide_host_grow(&b->items, &b->cap, b->n + 1, sizeof *b->items) != TIDE_OK ||
        tide_host_grow(&b->names, &b->cap_names, b->n + 1, sizeof *b->names) != TIDE_OK) {
        tide_host_free(copy);
        return TIDE_NO_MEMORY(err, "for a shape");
    }
    b->names[b->n] = copy;
    b->items[b->n++] = (tide_shape_binding){.name = copy, .shape = *shape};
    return TIDE_OK;
}

static tide_status bind_extent(bindings *b, const char *text, tide_error *err) {
    const char *eq = strrchr(text, '=');
    tide_shape shape;
    if (eq == NULL || eq == text)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "extent: '%s' is not of the form NAME=1x3x224x224", text);
    TIDE_TRY(tide_shape_parse(eq + 1, &shape, err));
    return bind(b, text, (size_t)(eq - text), &shape, err);
}

/// The shape that an input has now: of an earlier edit, of --shape, of the file.
static tide_shape shape_now(const bindings *b, const cli_planning *p, const tide_value *input) {
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->items[i].name, input->name) == 0) return b->items[i].shape;
    }
    for (size_t i = 0; i < p->shapes.n; i++) {
        if (strcmp(p->shapes.items[i].name, input->name) == 0) return p->shapes.items[i].shape;
    }
    return input->shape;
}

/// The first extent that the file leaves open; -1: none.
static int first_open(const tide_value *input) {
    if (!input->has_shape) return 0;
    for (int d = 0; d < (int)input->shape.rank; d++) {
        if (input->shape.dims[d] == TIDE_DIM_UNKNOWN) return d;
    }
    return -1;
}

/// Whether extent `d` of the input, which is open, is meant: the first one, or that of the name.
static bool is_meant(const tide_value *input, int d, const char *name) {
    char buf[512];
    if (name == NULL) return d == first_open(input);
    return input->has_shape && input->shape.dims[d] == TIDE_DIM_UNKNOWN &&
           strcmp(cli__extent_name(input, d, buf, sizeof buf), name) == 0;
}

/// Open extents of that name; NULL: the first of each input, the batch. TIDE_ERR_NOT_FOUND: there is none.
static tide_status bind_open(bindings *b, cli_input *in, const cli_planning *p, const char *name, uint64_t value,
                             tide_error *err) {
    const char *what = name != NULL ? name : "batch";
    if (value == 0 || value > INT32_MAX)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "%s: %" PRIu64 " is not a size between 1 and %d", what, value,
                         INT32_MAX);
    tide_graph *graph = NULL;
    TIDE_TRY(cli_graph_of_names(in, p, &graph, err));
    tide_status st = TIDE_OK;
    bool any = false;
    bindings made = {0};
    for (size_t i = 0; st == TIDE_OK && i < graph->n_inputs; i++) {
        const tide_value *input = &graph->values[graph->inputs[i]];
        tide_shape shape = shape_now(b, p, input);
        bool is_open = false;
        for (int d = 0; d < (int)shape.rank; d++) {
            if (!is_meant(input, d, name)) continue;
            shape.dims[d] = (int64_t)value;
            is_open = true;
        }
        any = any || is_open;
        if (is_open) st = bind(&made, input->name, strlen(input->name), &shape, err);
    }
    for (size_t i = 0; st == TIDE_OK && i < b->n; i++)
        st = bind(&made, b->items[i].name, strlen(b->items[i].name), &b->items[i].shape, err);
    tide_graph_destroy(graph);
    if (st == TIDE_OK && !any) {
        st = TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s: '%s' leaves no such extent of its inputs open", what, in->path);
        tide_error_note(err, "every extent is a number in the file: nothing can be bound to another batch size");
    }
    if (st != TIDE_OK) {
        bindings_deinit(&made);
        return st;
    }
    bindings_deinit(b);
    *b = made;
    return TIDE_OK;
}

/// Whether "NAME=…" is about an input, not about an open extent of that name.
static tide_status names_input(cli_input *in, const cli_planning *p, const char *text, bool *out, tide_error *err) {
    const char *eq = strrchr(text, '=');
    const size_t len = eq != NULL ? (size_t)(eq - text) : 0;
    tide_graph *graph = NULL;
    char **names = NULL;
    size_t n = 0;
    TIDE_TRY(cli_graph_of_names(in, p, &graph, err));
    const tide_status st = cli_extents_of_graph(graph, &names, &n, err);
    *out = true;
    for (size_t i = 0; i < n; i++) *out = *out && !(strlen(names[i]) == len && strncmp(names[i], text, len) == 0);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const char *name = graph->values[graph->inputs[i]].name;
        *out = *out || (strlen(name) == len && strncmp(name, text, len) == 0);
    }
    cli_extents_free(&names, &n);
    tide_graph_destroy(graph);
    return st;
}

/// "N=8", where it names no input.
static tide_status bind_named(bindings *b, cli_input *in, const cli_planning *p, const char *text, tide_error *err) {
    bool is_input;
    size_t len;
    int64_t value;
    char name[512];
    TIDE_TRY(names_input(in, p, text, &is_input, err));
    if (is_input) return TIDE_OK; // it is bound already
    TIDE_TRY(cli_extent_parse(text, &len, &value, err));
    snprintf(name, sizeof name, "%.*s", (int)len, text);
    return bind_open(b, in, p, name, (uint64_t)value, err);
}

static tide_status switch_pass(cli_planning *p, const char *text, tide_error *err) {
    const bool off = text[0] == '-';
    tide_pass pass;
    TIDE_TRY(tide_pass_parse(off ? text + 1 : text, &pass, err));
    p->no_pass[pass] = off;
    if (pass == TIDE_PASS_RECOMPUTE && !off && p->recompute_share == 0) p->recompute_share = CLI_RETABLE_RECOMPUTE;
    return TIDE_OK;
}

static tide_status make_edited(cli_input *in, const cli_planning *p, const bindings *b, const tide_edit *edits,
                               size_t n, tide_lifetimes *out, tide_error *err) {
    const tide_pass_options opt = cli_pass_options(p);
    tide_program *program = NULL;
    TIDE_TRY(cli__program_make(in, p, b->items, b->n, &program, err));
    tide_lifetimes lt = {0};
    tide_status st = tide_passes_run(program, &opt, &lt, NULL, err);
    for (size_t k = 0; st == TIDE_OK && k < n; k++) {
        if (edits[k].kind == TIDE_EDIT_RECOMPUTE) st = tide_whatif_repeat(program, &opt, edits[k].item, &lt, err);
    }
    tide_program_unref(program);
    if (st == TIDE_OK)
        *out = lt;
    else
        tide_lifetimes_deinit(&lt);
    return st;
}

/// What --extent binds becomes shapes of the inputs, behind those that edits have given: one extent of them can change.
static tide_status fix_shapes(const cli_model *m, cli_planning *p, bindings *b, tide_error *err) {
    tide_program *program;
    if (p->n_extents == 0) return TIDE_OK;
    TIDE_TRY(cli__program_make(m->in, p, NULL, 0, &program, err));
    tide_status st = TIDE_OK;
    for (size_t i = 0; st == TIDE_OK && i < program->graph->n_inputs; i++) {
        const tide_value *input = &program->graph->values[program->graph->inputs[i]];
        if (input->has_shape) st = bind(b, input->name, strlen(input->name), &input->shape, err);
    }
    tide_program_unref(program);
    p->extents = NULL;
    p->n_extents = 0;
    return st;
}

static bool binds(const tide_edit *edits, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (edits[k].kind == TIDE_EDIT_BATCH || edits[k].kind == TIDE_EDIT_EXTENT) return true;
    }
    return false;
}

/// Passes go into `p`, extents and batch into `b`.
static tide_status take_edits(const cli_model *m, const tide_edit *edits, size_t n, cli_planning *p, bindings *b,
                              tide_error *err) {
    p->weights_registry = NULL;
    for (size_t k = n; k-- > 0;) { // the last one of an input wins
        if (edits[k].kind != TIDE_EDIT_EXTENT) continue;
        bool is_input;
        TIDE_TRY(names_input(m->in, p, edits[k].text, &is_input, err));
        if (is_input) TIDE_TRY(bind_extent(b, edits[k].text, err));
    }
    if (binds(edits, n)) TIDE_TRY(fix_shapes(m, p, b, err));
    for (size_t k = 0; k < n; k++) {
        if (edits[k].kind == TIDE_EDIT_PASS) TIDE_TRY(switch_pass(p, edits[k].text, err));
        if (edits[k].kind == TIDE_EDIT_BATCH) TIDE_TRY(bind_open(b, m->in, p, NULL, edits[k].bytes, err));
        if (edits[k].kind == TIDE_EDIT_EXTENT) TIDE_TRY(bind_named(b, m->in, p, edits[k].text, err));
    }
    return TIDE_OK;
}

static tide_status retable_now(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out, tide_error *err) {
    const cli_model *m = ctx;
    cli_planning p = *m->planning;
    bindings b = {0};
    tide_status st = take_edits(m, edits, n, &p, &b, err);
    if (st == TIDE_OK) st = make_edited(m->in, &p, &b, edits, n, out, err);
    bindings_deinit(&b);
    return st;
}

tide_status cli_retable(void *ctx, const tide_edit *edits, size_t n, tide_lifetimes *out, tide_error *err) {
    pthread_mutex_lock(&one_at_a_time);
    const tide_status st = retable_now(ctx, edits, n, out, err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

// ---- the batch ----

/// The number to which extent `d` of that input is bound; 0: not known.
static uint64_t bound_extent(const tide_graph *graph, const char *name, int d) {
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const tide_value *input = &graph->values[graph->inputs[i]];
        if (strcmp(input->name, name) != 0 || !input->has_shape || d >= (int)input->shape.rank) continue;
        return input->shape.dims[d] > 0 ? (uint64_t)input->shape.dims[d] : 0;
    }
    return 0;
}

static tide_status find_batch(const cli_model *m, const cli_planning *p, const bindings *b, const tide_graph *open,
                              uint64_t *batch, tide_error *err) {
    for (size_t i = 0; i < open->n_inputs; i++) {
        const tide_value *input = &open->values[open->inputs[i]];
        const int d = first_open(input);
        if (d < 0) continue;
        tide_program *program = NULL;
        TIDE_TRY(cli__program_make(m->in, p, b->items, b->n, &program, err));
        *batch = bound_extent(program->graph, input->name, d);
        tide_program_unref(program);
        return TIDE_OK;
    }
    return TIDE_OK;
}

static tide_status retable_batch_now(void *ctx, const tide_edit *edits, size_t n, uint64_t *batch, tide_error *err) {
    const cli_model *m = ctx;
    cli_planning p = *m->planning;
    bindings b = {0};
    tide_graph *graph = NULL;
    *batch = 0;
    tide_status st = take_edits(m, edits, n, &p, &b, err);
    if (st == TIDE_OK) st = cli_graph_of_names(m->in, &p, &graph, err);
    if (st == TIDE_OK) st = find_batch(m, &p, &b, graph, batch, err);
    tide_graph_destroy(graph);
    bindings_deinit(&b);
    return st;
}

tide_status cli_retable_batch(void *ctx, const tide_edit *edits, size_t n, uint64_t *batch, tide_error *err) {
    pthread_mutex_lock(&one_at_a_time);
    const tide_status st = retable_batch_now(ctx, edits, n, batch, err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

// ---- other open extents ----

/// Those of `program`, which is bound, by the names that `open` has for them.
static void list_extents(const tide_graph *open, const tide_graph *bound, tide_open_extent *out, size_t max,
                         size_t *n) {
    char buf[512];
    for (size_t i = 0; i < open->n_inputs; i++) {
        const tide_value *input = &open->values[open->inputs[i]];
        for (int d = 0; input->has_shape && d < (int)input->shape.rank && *n < max; d++) {
            if (input->shape.dims[d] != TIDE_DIM_UNKNOWN || d == first_open(input)) continue;
            const char *name = cli__extent_name(input, d, buf, sizeof buf);
            const uint64_t value = bound_extent(bound, input->name, d);
            bool is_new = value > 0 && strlen(name) < sizeof out->name;
            for (size_t k = 0; is_new && k < *n; k++) is_new = strcmp(out[k].name, name) != 0;
            if (!is_new) continue;
            out[*n].value = value;
            memcpy(out[(*n)++].name, name, strlen(name) + 1);
        }
    }
}

static tide_status retable_extents_now(void *ctx, const tide_edit *edits, size_t n_edits, tide_open_extent *out,
                                       size_t max, size_t *n, tide_error *err) {
    const cli_model *m = ctx;
    cli_planning p = *m->planning;
    bindings b = {0};
    tide_graph *graph = NULL;
    tide_program *program = NULL;
    *n = 0;
    tide_status st = take_edits(m, edits, n_edits, &p, &b, err);
    if (st == TIDE_OK) st = cli_graph_of_names(m->in, &p, &graph, err);
    if (st == TIDE_OK) st = cli__program_make(m->in, &p, b.items, b.n, &program, err);
    if (st == TIDE_OK) list_extents(graph, program->graph, out, max, n);
    if (program != NULL) tide_program_unref(program);
    tide_graph_destroy(graph);
    bindings_deinit(&b);
    return st;
}

tide_status cli_retable_extents(void *ctx, const tide_edit *edits, size_t n_edits, tide_open_extent *out, size_t max,
                                size_t *n, tide_error *err) {
    pthread_mutex_lock(&one_at_a_time);
    const tide_status st = retable_extents_now(ctx, edits, n_edits, out, max, n, err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

// ---- in place ----

static tide_status retable_in_place_now(void *ctx, const char *tensor, tide_in_place *out, tide_error *err) {
    const cli_model *m = ctx;
    cli_planning p = *m->planning;
    p.weights_registry = NULL;
    const tide_pass_options opt = cli_pass_options(&p);
    tide_program *program = NULL;
    tide_lifetimes lt = {0};
    TIDE_TRY(cli__program_make(m->in, &p, NULL, 0, &program, err));
    tide_status st = tide_passes_run(program, &opt, &lt, NULL, err);
    if (st == TIDE_OK) st = tide_whatif_in_place(program, &lt, tensor, out, err);
    tide_lifetimes_deinit(&lt);
    tide_program_unref(program);
    return st;
}

tide_status cli_retable_in_place(void *ctx, const char *tensor, tide_in_place *out, tide_error *err) {
    pthread_mutex_lock(&one_at_a_time);
    const tide_status st = retable_in_place_now(ctx, tensor, out, err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

// ---- advice: a model with one option changed (the rest) ----

static tide_status nothing_to_change(tide_error *err) { return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "it is so already"); }

/// Kernels of one thread each; how many there are is the process's own.
static tide_status remake_on_one_thread(const maker *m, const cli_planning *p, tide_lifetimes *out, tide_error *err) {
    const uint32_t n = tide_ops_threads();
    if (n < 2) return nothing_to_change(err);
    TIDE_TRY(tide_ops_set_threads(1, err));
    tide_status st = make_table(m, p, NULL, 0, out, err);
    tide_error own = TIDE_ERROR_INIT;
    const tide_status back = tide_ops_set_threads(n, &own);
    if (st == TIDE_OK && back != TIDE_OK) {
        tide_lifetimes_deinit(out);
        if (err != NULL) *err = own;
        st = back;
    }
    return st;
}

/// The first open extent of each input at `batch`; *what: how that is typed.
static tide_status remake_batch(const maker *m, uint64_t batch, tide_lifetimes *out, char **what, tide_error *err) {
    const cli_model model = {m->in, m->p};
    const tide_edit edit = {.kind = TIDE_EDIT_BATCH, .bytes = batch};
    cli_planning p = *m->p;
    bindings b = {0};
    tide_text words = {0};
    tide_status st = take_edits(&model, &edit, 1, &p, &b, err);
    if (st == TIDE_OK) st = make_edited(m->in, &p, &b, NULL, 0, out, err);
    tide_text_addf(&words, "batch %" PRIu64 ":", batch);
    for (size_t i = 0; st == TIDE_OK && i < b.n; i++) {
        char shape[256];
        bool is_first = true; // the first binding of an input wins
        for (size_t k = 0; k < i; k++) is_first = is_first && strcmp(b.items[k].name, b.items[i].name) != 0;
        if (is_first)
            tide_text_addf(&words, " --shape %s=%s", b.items[i].name,
                           cli_shape_text(&b.items[i].shape, shape, sizeof shape));
    }
    if (st == TIDE_OK && words.failed) {
        tide_lifetimes_deinit(out);
        st = TIDE_NO_MEMORY(err, "for advice");
    }
    if (st == TIDE_OK) {
        *what = words.data;
        words = (tide_text){0}; // moved out
    }
    tide_text_deinit(&words);
    bindings_deinit(&b);
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
    case TIDE_CHANGE_QDQ:
        p.no_qdq = false;
        break;
    case TIDE_CHANGE_ALIGN:
        p.align_bytes = change->align_bytes;
        break;
    case TIDE_CHANGE_RECOMPUTE:
        p.recompute_share = change->recompute_share;
        break;
    case TIDE_CHANGE_MAP:
        if (p.weights != CLI_WEIGHTS_COPY || m->in->kind != CLI_INPUT_ONNX) return nothing_to_change(err);
        p.weights = CLI_WEIGHTS_AUTO;
        break;
    case TIDE_CHANGE_FOLD:
        if (p.fold_max_bytes != 0) return nothing_to_change(err);
        p.fold_max_bytes = change->limit_bytes;
        break;
    case TIDE_CHANGE_THREADS:
        return remake_on_one_thread(m, &p, out, err);
    case TIDE_CHANGE_BATCH:
        return remake_batch(m, change->batch, out, what, err);
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
    const bool is_remade = is_model && p->profile.n_points == 0;
    const cli_model model = {in, p};
    uint64_t batch = 0;
    if (is_remade) TIDE_TRY(cli_retable_batch((void *)(uintptr_t)&model, NULL, 0, &batch, err));
    const tide_advice_question q = {.plan = plan,
                                    .budget_bytes = budget_bytes,
                                    .remake = is_remade ? remake : NULL,
                                    .ctx = &m,
                                    .passes = cli_pass_options(p),
                                    .no_fuse = p->no_fuse,
                                    .no_qdq = p->no_qdq,
                                    .batch = batch,
                                    .strategy = strategy};
    return tide_advice_make(&q, out, err);
}
