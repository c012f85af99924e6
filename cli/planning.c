// SPDX-License-Identifier: MIT
//
// From FILE to plans: the program of a model, the tables of profiles, lifetimes and plans of any FILE. See planning.h.
//
// With a profile the program is built at each of its points. What each point would take alone is planned there; then
// all points follow the order of the largest one, so that their tables can be merged and aliases that hold at every
// point can be shared.
#include "cli/planning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay.h"
#include "cli/session.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/json.h"
#include "core/ops/ops.h"
#include "core/runtime/program_sizes.h"

// ---- program ----

/// Appends the bindings of `more` whose inputs have none yet: the first one wins.
static void merge(tide_shape_binding *all, size_t *n, const tide_shape_binding *more, size_t n_more) {
    for (size_t i = 0; i < n_more; i++) {
        bool named = false;
        for (size_t k = 0; k < *n && !named; k++) named = strcmp(all[k].name, more[i].name) == 0;
        if (!named) all[(*n)++] = more[i];
    }
}

/// `shapes` win over --shape, --shape over extents, and those over what the input files say.
static tide_status merge_shapes(const tide_graph *graph, const cli_planning *p, const tide_shape_binding *shapes,
                                size_t n_shapes, const tide_shape_binding *of_dir, size_t n_of_dir,
                                tide_shape_binding **out, size_t *n, tide_error *err) {
    const size_t room = n_shapes + p->shapes.n + graph->n_inputs + n_of_dir;
    tide_shape_binding *all;
    TIDE_TRY(TIDE_NEW(&all, room + 1, err, "for %zu shapes", room));
    *n = 0;
    merge(all, n, shapes, n_shapes);
    merge(all, n, p->shapes.items, p->shapes.n);
    *out = all;
    TIDE_TRY(cli__extents_bind(graph, p, all, n, err));
    merge(all, n, of_dir, n_of_dir);
    return TIDE_OK;
}

/// What --weights map could not do is said, once a command.
static void tell_of_weights(const cli_planning *p, const tide_program *program) {
    static bool is_told;
    if (p->weights != CLI_WEIGHTS_MAP || is_told) return;
    is_told = true;
    size_t n = 0;
    uint64_t bytes = 0;
    char mapped[32], all[32];
    for (uint32_t v = 0; v < program->graph->n_values; v++) {
        if (!tide_program_is_mapped(program, v)) continue;
        n++;
        bytes += tide_tensor_size_bytes(program->graph->values[v].constant);
    }
    if (n == program->n_weights) return;
    fprintf(stderr,
            "note: %zu of %zu weights, %s of %s, stay in their file; the others are small, or made here, or lie where "
            "their type may not\n",
            n, program->n_weights, tide_format_bytes(bytes, mapped, sizeof mapped),
            tide_format_bytes(program->weight_bytes, all, sizeof all));
}

/// @param contents  for a program that will not run; NULL: for one that will
static tide_status make_program(cli_input *in, const cli_planning *p, const tide_contents *contents,
                                const tide_shape_binding *shapes, size_t n_shapes, tide_program **out,
                                tide_error *err) {
    tide_graph *graph = NULL;
    TIDE_TRY(contents != NULL ? cli_input_sizes(in, contents, p->own_bytes, &graph, err)
                              : cli_input_graph(in, &graph, err));
    tide_shape_binding *of_dir = NULL, *all = NULL;
    size_t n_of_dir = 0, n = 0;
    tide_status st = TIDE_OK;
    if (p->input_dir != NULL) st = cli_session_shapes_of_dir(p->input_dir, graph, &of_dir, &n_of_dir, err);
    if (st == TIDE_OK) st = merge_shapes(graph, p, shapes, n_shapes, of_dir, n_of_dir, &all, &n, err);
    if (st == TIDE_OK) {
        const tide_program_options opt = {.no_fuse = p->no_fuse,
                                          .no_qdq = p->no_qdq,
                                          .allow_dynamic = true,
                                          .bound_limit_bytes =
                                              p->has_bound_limit ? p->bound_limit_bytes : CLI_BOUND_LIMIT,
                                          .bounds = p->bounds.items,
                                          .n_bounds = p->bounds.n,
                                          .no_kernels = p->no_kernels,
                                          .fold_max_bytes = p->fold_max_bytes,
                                          .shapes = all,
                                          .n_shapes = n,
                                          .keeps_mapped = p->weights != CLI_WEIGHTS_COPY,
                                          .mapped = p->mapped,
                                          .weights_of = p->weights_of,
                                          .weights_registry = p->weights_registry,
                                          .weights_align_bytes = p->align_bytes};
        st = contents != NULL ? tide_program_build_sizes(graph, &opt, contents, out, err) // takes the graph
                              : tide_program_build(graph, &opt, out, err);
        if (st == TIDE_OK) tell_of_weights(p, *out);
        if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", in->path);
    } else {
        tide_graph_destroy(graph);
    }
    tide_host_free(of_dir);
    tide_host_free(all);
    return st;
}

const char *cli_unbounded_names(const tide_lifetimes *lt, char *buf, size_t buf_bytes) {
    enum { MOST = 3 };
    size_t at = 0;
    char clean[48];
    buf[0] = '\0';
    for (size_t i = 0; i < lt->n_dynamic && i < MOST && at < buf_bytes; i++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%s", i > 0 ? ", " : "",
                               cli_clean(lt->dynamic[i], clean, sizeof clean));
    if (lt->n_dynamic > MOST && at < buf_bytes)
        snprintf(buf + at, buf_bytes - at, " and %zu more", lt->n_dynamic - MOST);
    return buf;
}

tide_status cli_must_be_bounded(const tide_lifetimes *lt, tide_error *err) {
    char names[192];
    if (lt->n_dynamic == 0) return TIDE_OK;
    TIDE_FAIL(err, TIDE_ERR_UNKNOWN_SIZE, "how large %zu tensor%s can be is not known: %s", lt->n_dynamic,
              lt->n_dynamic == 1 ? "" : "s", cli_unbounded_names(lt, names, sizeof names));
    tide_error_note(err,
                    "%s sized while running, and neither the operators nor the file give a bound of at most "
                    "--bound-limit",
                    lt->n_dynamic == 1 ? "it is" : "they are");
    tide_error_hint(err, "--bound NAME=DIMS gives one; run -o FILE.db records what they take");
    return TIDE_ERR_UNKNOWN_SIZE;
}

tide_status cli__program_make(cli_input *in, const cli_planning *p, const tide_shape_binding *shapes, size_t n_shapes,
                              tide_program **out, tide_error *err) {
    tide_status st;
    if (p->weights_registry != NULL) return make_program(in, p, NULL, shapes, n_shapes, out, err);
    // If sizes depend on constants, these are small. If a size depends on a larger one, that is made in a second
    // try.
    bool wanted = false;
    const tide_contents small = {4096, (size_t)4 << 20, &wanted}, large = {(size_t)24 << 20, (size_t)24 << 20, &wanted};
    st = make_program(in, p, &small, shapes, n_shapes, out, err);
    if (st == TIDE_ERR_UNKNOWN_SIZE && wanted) {
        tide_error_clear(err);
        st = make_program(in, p, &large, shapes, n_shapes, out, err);
    }
    if (!in->keep) cli_input_close(in); // the graph holds its own copies
    return st;
}

tide_status cli_graph_of_names(cli_input *in, const cli_planning *p, tide_graph **out, tide_error *err) {
    bool wanted;
    const tide_contents none = {0, 0, &wanted};
    const tide_status st = cli_input_sizes(in, &none, p->own_bytes, out, err);
    if (!in->keep) cli_input_close(in);
    return st;
}

// ---- profiles: one table for a model at several sizes ----

typedef struct profile_work {
    cli_input *in;
    const cli_planning *p;
    tide_shape_binding *shapes; // [n_inputs] of the point at work
    char **names;               // [n_points]
    tide_lifetimes *tables;     // [n_points]
    tide_point_need *needs;     // [n_points]
    tide_alias_facts *facts;    // [n_points] of all but the base
    size_t n_points, base;
} profile_work;

static void bind_point(const profile_work *f, size_t k) {
    for (size_t i = 0; i < f->p->profile.n; i++)
        f->shapes[i] =
            (tide_shape_binding){.name = f->p->profile.inputs[i].name, .shape = f->p->profile.inputs[i].shapes[k]};
}

static char *name_of(const profile_work *f, size_t k) {
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

static tide_status build_point(const profile_work *f, size_t k, tide_program **out, tide_error *err) {
    bind_point(f, k);
    const tide_status st = cli__program_make(f->in, f->p, f->shapes, f->p->profile.n, out, err);
    if (st != TIDE_OK) tide_error_prefix(err, "profile point '%s'", f->names[k]);
    return st;
}

/// Plans the point alone; its table stays in f->tables[k].
static tide_status plan_alone(const profile_work *f, size_t k, tide_error *err) {
    const tide_pass_options passes = cli_pass_options(f->p);
    const tide_strategy_options opt = cli_strategy_options(f->p);
    const tide_strategy *strategy;
    tide_program *program = NULL;
    tide_memory_plan *plan = NULL;
    TIDE_TRY(cli_strategy(f->p, &strategy, err));
    TIDE_TRY(build_point(f, k, &program, err));
    tide_status st = tide_passes_run(program, &passes, &f->tables[k], NULL, err);
    tide_program_unref(program);
    if (st == TIDE_OK) st = cli_must_be_bounded(&f->tables[k], err);
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
static tide_status follow_base(const profile_work *f, const tide_lifetimes *base, size_t k, tide_program **out,
                               tide_error *err) {
    const tide_pass_options passes = cli_pass_options(f->p);
    TIDE_TRY(build_point(f, k, out, err));
    tide_status st =
        tide_program_follow(*out, base->step_names, base->n_step_names, base->recomputed, base->n_recomputed, err);
    if (st == TIDE_OK) st = tide_liveness(*out, passes.align_bytes, &f->tables[k], err);
    if (st == TIDE_OK) st = tide_lifetimes_say_extents(*out, &f->tables[k], err);
    if (st == TIDE_OK) return st;
    tide_program_unref(*out);
    *out = NULL;
    tide_error_prefix(err, "the program differs between profile points '%s' and '%s'", f->names[f->base], f->names[k]);
    return st;
}

/// Collects what is needed of the points other than the base. Their programs, with their weights, are freed.
static tide_status look_at_others(const profile_work *f, const tide_lifetimes *base, tide_error *err) {
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

static tide_status merge_points(profile_work *f, const tide_program *program, tide_lifetimes *out, tide_error *err) {
    const tide_pass_options passes = cli_pass_options(f->p);
    tide_lifetimes merged;
    TIDE_TRY(tide_lifetimes_merge_points(f->tables, (const char *const *)f->names, f->n_points, f->base, &merged, err));
    tide_lifetimes_keep_bounds(program, &merged);
    // Removes the empty entry of the base from the list.
    f->facts[f->base] = f->facts[f->n_points - 1];
    f->facts[f->n_points - 1] = (tide_alias_facts){0};
    const tide_status st = tide_passes_at_points(program, f->facts, f->n_points - 1, &passes, &merged, err);
    if (st != TIDE_OK)
        tide_lifetimes_deinit(&merged);
    else
        *out = merged;
    return st;
}

static tide_status make_table_of_points(profile_work *f, tide_lifetimes *out, tide_error *err) {
    for (size_t k = 0; k < f->n_points; k++) {
        f->names[k] = name_of(f, k);
        if (f->names[k] == NULL) return TIDE_NO_MEMORY(err, "for a profile");
        TIDE_TRY(plan_alone(f, k, err));
        if (sum_of_sizes(&f->tables[k]) > sum_of_sizes(&f->tables[f->base])) f->base = k;
    }
    tide_lifetimes base = f->tables[f->base]; // its order is followed, also by itself: without its aliases
    f->tables[f->base] = (tide_lifetimes){0};
    tide_program *program = NULL;
    tide_status st = look_at_others(f, &base, err);
    if (st == TIDE_OK) st = follow_base(f, &base, f->base, &program, err);
    if (st == TIDE_OK) st = merge_points(f, program, out, err);
    tide_program_unref(program);
    tide_lifetimes_deinit(&base);
    return st;
}

/// Lifetimes and needs at all points of the profile, merged into out->lifetimes.
static tide_status make_points(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) {
    const size_t n = p->profile.n_points;
    profile_work f = {.in = in, .p = p, .n_points = n};
    f.shapes = tide_host_calloc(p->profile.n, sizeof *f.shapes);
    f.names = tide_host_calloc(n, sizeof *f.names);
    f.tables = tide_host_calloc(n, sizeof *f.tables);
    f.needs = tide_host_calloc(n, sizeof *f.needs);
    f.facts = tide_host_calloc(n, sizeof *f.facts);
    const bool good = f.shapes != NULL && f.names != NULL && f.tables != NULL && f.needs != NULL && f.facts != NULL;
    tide_status st = good ? make_table_of_points(&f, &out->lifetimes, err) : TIDE_NO_MEMORY(err, "for a profile");
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

// ---- lifetimes ----

/// The plan of the last run.
static tide_status plan_of_trace(tide_trace *trace, const char *path, tide_memory_plan **out, tide_error *err) {
    tide_trace_run *runs = NULL;
    size_t n = 0;
    TIDE_TRY(tide_trace_runs(trace, &runs, &n, err));
    const tide_status st = n == 0 ? TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the trace '%s' holds no run", path)
                                  : tide_trace_plan(trace, runs[n - 1].id, out, err);
    tide_trace_runs_free(runs);
    return st;
}

/// Of a trace without runs, as that of another program: its blocks.
static tide_status blocks_of_trace(tide_trace *trace, const char *path, uint64_t align_bytes, tide_lifetimes *out,
                                   tide_error *err) {
    cli_replay_source source = {.trace = trace, .path = path};
    TIDE_TRY(cli_replay_source_open(&source, err));
    return cli_replay_lifetimes(&source, align_bytes, out, err);
}

static tide_status has_runs(tide_trace *trace, bool *out, tide_error *err) {
    tide_trace_info info;
    TIDE_TRY(tide_trace_get_info(trace, &info, err));
    *out = info.n_runs > 0;
    return TIDE_OK;
}

/// Of a trace without runs the blocks, if they are wanted; else what its last run went by.
static tide_status lifetimes_of_trace(const char *path, const cli_planning *p, tide_lifetimes *out, tide_error *err) {
    tide_trace *trace = NULL;
    tide_memory_plan *plan = NULL;
    bool has;
    TIDE_TRY(cli_trace_open(path, &trace, err));
    tide_status st = has_runs(trace, &has, err);
    if (st == TIDE_OK)
        st = has || !p->takes_blocks ? plan_of_trace(trace, path, &plan, err)
                                     : blocks_of_trace(trace, path, p->align_bytes, out, err);
    if (st == TIDE_OK && plan != NULL) st = tide_lifetimes_copy(&plan->lifetimes, out, err);
    tide_memory_plan_destroy(plan);
    tide_trace_close(trace);
    return st;
}

/// The plan that a trace holds; *out NULL: it holds blocks alone, and one of them is to be made.
static tide_status stored_in_trace(const char *path, const cli_planning *p, tide_memory_plan **out, tide_error *err) {
    tide_trace *trace = NULL;
    bool has;
    *out = NULL;
    TIDE_TRY(cli_trace_open(path, &trace, err));
    tide_status st = has_runs(trace, &has, err);
    if (st == TIDE_OK && (has || !p->takes_blocks)) st = plan_of_trace(trace, path, out, err);
    tide_trace_close(trace);
    return st;
}

static tide_status lifetimes_of_plan(const cli_input *in, tide_lifetimes *out, tide_error *err) {
    tide_memory_plan *plan = NULL;
    TIDE_TRY(tide_plan_from_json(in->data, in->len, in->path, NULL, &plan, err));
    const tide_status st = tide_lifetimes_copy(&plan->lifetimes, out, err);
    tide_memory_plan_destroy(plan);
    return st;
}

/// Each file aligns as its own runtime does, unless --align asks for more.
static tide_status foreign_list(const cli_input *in, uint64_t align_bytes, tide_lifetimes *out, tide_error *err) {
    tide_lifetimes lt;
    cli_log_notes(true);
    const tide_status st = tide_lifetimes_from_format(in->format, in->data, in->len, in->path, &lt, err);
    cli_log_notes(false);
    TIDE_TRY(st);
    for (size_t i = 0; i < lt.n; i++) {
        tide_lifetime *item = &lt.items[i];
        uint64_t rounded;
        if (item->unrounded || item->align_bytes >= align_bytes) continue;
        item->align_bytes = align_bytes;
        if (tide_align_up(item->size_bytes, align_bytes, &rounded)) continue;
        tide_lifetimes_deinit(&lt);
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s': a tensor is too large for --align", in->path);
    }
    *out = lt;
    return TIDE_OK;
}

static tide_status make_lifetimes(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) {
    if (p->n_extents > 0 && in->kind != CLI_INPUT_ONNX && in->kind != CLI_INPUT_GRAPH)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "--extent: '%s' is no model and has no open extents", in->path);
    switch (in->kind) {
    case CLI_INPUT_PLAN:
        return lifetimes_of_plan(in, &out->lifetimes, err);
    case CLI_INPUT_TRACE:
        return lifetimes_of_trace(in->path, p, &out->lifetimes, err);
    case CLI_INPUT_LIFETIMES: // says itself how things are aligned, unless --align asks for more
        return tide_lifetimes_from_csv(in->data, in->len, in->path, p->align_bytes, &out->lifetimes, err);
    case CLI_INPUT_LIFETIMES_JSON:
        return tide_lifetimes_from_json(in->data, in->len, in->path, &out->lifetimes, err);
    case CLI_INPUT_FOREIGN_LIST:
        return foreign_list(in, p->align_bytes, &out->lifetimes, err);
    case CLI_INPUT_ONNX:
    case CLI_INPUT_GRAPH:
        break;
    }
    if (p->profile.n_points > 0) return make_points(in, p, out, err);
    const tide_pass_options opt = cli_pass_options(p);
    TIDE_TRY(cli__program_make(in, p, NULL, 0, &out->program, err));
    TIDE_TRY(tide_passes_run(out->program, &opt, &out->lifetimes, &out->passes, err));
    out->has_passes = true;
    return TIDE_OK;
}

tide_status cli_lifetimes_of_input(cli_input *in, const cli_planning *p, tide_lifetimes *out, tide_error *err) {
    cli_plans plans = {0};
    const tide_status st = make_lifetimes(in, p, &plans, err);
    if (st == TIDE_OK) {
        *out = plans.lifetimes;
        plans.lifetimes = (tide_lifetimes){0}; // moved out
    }
    cli_plans_deinit(&plans);
    return st;
}

// ---- plans ----

/// A strategy that cannot serve the table; the others may.
static tide_status note_refusal(cli_plans *out, const char *strategy, const tide_error *why, tide_error *err) {
    size_t cap = out->n_refused;
    char *text = tide_host_strdup(why->msg);
    if (text == NULL || tide_host_grow(&out->refused, &cap, out->n_refused + 1, sizeof *out->refused) != TIDE_OK) {
        tide_host_free(text);
        return TIDE_NO_MEMORY(err, "for a refusal");
    }
    out->refused[out->n_refused++] = (tide_plan_refusal){.strategy = strategy, .why = text};
    return TIDE_OK;
}

static tide_status make_all(const cli_planning *p, cli_plans *out, tide_error *err) {
    const tide_strategy_options opt = cli_strategy_options(p);
    const tide_strategy *const *all = NULL;
    const size_t n = tide_strategies(&all);
    TIDE_TRY(TIDE_NEW(&out->plans, n, err, "for %zu plans", n));
    tide_error why = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        tide_error_clear(&why);
        const tide_status st = tide_plan_make(&out->lifetimes, all[i], &opt, &out->plans[out->n], &why);
        if (st == TIDE_OK) {
            out->n++;
        } else if (st == TIDE_ERR_NOT_IMPLEMENTED) {
            TIDE_TRY(note_refusal(out, all[i]->name, &why, err));
        } else {
            if (err != NULL) *err = why;
            return st;
        }
    }
    if (out->n > 0) return TIDE_OK;
    if (err != NULL) *err = why;
    return TIDE_ERR_NOT_IMPLEMENTED;
}

static tide_status make_plans(const cli_planning *p, cli_plans *out, tide_error *err) {
    if (p->all) return make_all(p, out, err);
    const tide_strategy *strategy;
    const tide_strategy_options opt = cli_strategy_options(p);
    TIDE_TRY(cli_strategy(p, &strategy, err));
    TIDE_TRY(TIDE_NEW(&out->plans, 1, err, "for a plan"));
    TIDE_TRY(tide_plan_make(&out->lifetimes, strategy, &opt, &out->plans[0], err));
    out->n = 1;
    return TIDE_OK;
}

tide_status cli_plans_make(cli_input *in, const cli_planning *p, cli_plans *out, tide_error *err) {
    *out = (cli_plans){0};
    tide_status st = make_lifetimes(in, p, out, err);
    if (st == TIDE_OK) st = make_plans(p, out, err);
    if (st != TIDE_OK) cli_plans_deinit(out);
    return st;
}

/// Threads of the kernels that a stored plan was made for; 0: it does not say.
static uint64_t kernel_threads_of(const cli_input *stored) {
    uint64_t n = 0;
    char text[24] = "";
    tide_trace *trace = NULL;
    if (stored->kind == CLI_INPUT_PLAN) {
        json_t *doc = tide_json_load(stored->data, stored->len, 0, NULL);
        const json_int_t value = json_integer_value(json_object_get(doc, "kernel_threads"));
        json_decref(doc);
        return value > 0 ? (uint64_t)value : 0;
    }
    if (stored->kind != CLI_INPUT_TRACE || cli_trace_open(stored->path, &trace, NULL) != TIDE_OK) return 0;
    if (tide_trace_meta(trace, "kernel_threads", text, sizeof text, NULL) == TIDE_OK) n = strtoull(text, NULL, 10);
    tide_trace_close(trace);
    return n;
}

static tide_status stored_plan_of(const char *path, const cli_planning *p, tide_memory_plan **out, tide_error *err) {
    cli_input stored;
    TIDE_TRY(cli_input_open(path, &stored, err));
    const uint64_t n = kernel_threads_of(&stored);
    tide_status st = TIDE_OK;
    if (n > 0 && n != tide_ops_threads()) {
        st = TIDE_FAIL(err, TIDE_ERR_INCOMPARABLE,
                       "the plan '%s' is for kernels of %llu threads, these have %u: their scratch differs", path,
                       (unsigned long long)n, (unsigned)tide_ops_threads());
        tide_error_hint(err, "--intra-threads %llu, or plan anew", (unsigned long long)n);
    }
    if (st == TIDE_OK) st = cli_plan_of_input(&stored, p, out, err);
    cli_input_close(&stored);
    return st;
}

static tide_status follow(cli_input *in, const char *plan_path, const cli_planning *p, cli_plans *out,
                          tide_error *err) {
    TIDE_TRY(cli__program_make(in, p, NULL, 0, &out->program, err));
    TIDE_TRY(TIDE_NEW(&out->plans, 1, err, "for a plan"));
    TIDE_TRY(stored_plan_of(plan_path, p, &out->plans[0], err));
    out->n = 1;
    tide_lifetimes *lt = &out->plans[0]->lifetimes;
    lt->process = tide_process_facts_of(out->program, lt); // of this process, whatever the file says
    if (lt->n_step_names == 0) return TIDE_OK; // a plan by hand names no steps: it must be of the order as it is
    return tide_program_follow(out->program, lt->step_names, lt->n_step_names, lt->recomputed, lt->n_recomputed, err);
}

tide_status cli_plans_follow(cli_input *in, const char *plan_path, const cli_planning *p, cli_plans *out,
                             tide_error *err) {
    *out = (cli_plans){0};
    const tide_status st = follow(in, plan_path, p, out, err);
    if (st != TIDE_OK) cli_plans_deinit(out);
    return st;
}

void cli_plans_deinit(cli_plans *plans) {
    for (size_t i = 0; i < plans->n; i++) tide_memory_plan_destroy(plans->plans[i]);
    for (size_t i = 0; i < plans->n_refused; i++) tide_host_free(plans->refused[i].why);
    tide_host_free(plans->plans);
    tide_host_free(plans->refused);
    tide_host_free(plans->points);
    tide_lifetimes_deinit(&plans->lifetimes);
    tide_program_unref(plans->program);
    *plans = (cli_plans){0};
}

// ---- one plan ----

tide_status cli_plan_of_input(cli_input *in, const cli_planning *p, tide_memory_plan **out, tide_error *err) {
    cli_plans plans;
    if (in->kind == CLI_INPUT_PLAN) return tide_plan_from_json(in->data, in->len, in->path, p->strategy, out, err);
    if (in->kind == CLI_INPUT_TRACE) {
        TIDE_TRY(stored_in_trace(in->path, p, out, err));
        if (*out != NULL) return TIDE_OK;
    }
    TIDE_TRY(cli_plans_make(in, p, &plans, err));
    *out = plans.plans[0];
    plans.plans[0] = NULL; // moved out; destroy takes NULL
    cli_plans_deinit(&plans);
    return TIDE_OK;
}

tide_status cli_plan_of_file(const char *path, const cli_planning *p, tide_memory_plan **out, tide_error *err) {
    cli_input in;
    TIDE_TRY(cli_input_open(path, &in, err));
    const tide_status st = cli_plan_of_input(&in, p, out, err);
    cli_input_close(&in);
    return st;
}
