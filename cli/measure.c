// SPDX-License-Identifier: MIT
//
// One target as a case. See measure.h.
//
//     path --(what is it?)--> model: program, plan, run in a session --> figures, steps, tensors, leaks
//                             plan | lifetimes: plan                 --> figures, steps, tensors
//                             trace: subject                         --> figures, blocks by name, leaks
//                             (measure_trace.c)
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/measure_internal.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"
#include "core/base/pages.h"
#include "core/ops/ops.h"

// ---- settings of planning ----

static tide_status add_shape(cli_shapes *shapes, const char *text, tide_error *err) {
    const char *eq = strrchr(text, '=');
    tide_shape shape;
    if (eq == NULL || eq == text)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape '%s' is not of the form NAME=1x3x224x224", text);
    TIDE_TRY(tide_shape_parse(eq + 1, &shape, err));
    char *name = tide_host_strndup(text, (size_t)(eq - text));
    if (name == NULL || tide_host_grow(&shapes->items, &shapes->cap, shapes->n + 1, sizeof *shapes->items) != TIDE_OK ||
        tide_host_grow(&shapes->names, &shapes->cap_names, shapes->n + 1, sizeof *shapes->names) != TIDE_OK) {
        tide_host_free(name);
        return TIDE_NO_MEMORY(err, "for shape '%s'", text);
    }
    shapes->names[shapes->n] = name;
    shapes->items[shapes->n++] = (tide_shape_binding){.name = name, .shape = shape};
    return TIDE_OK;
}

static uint64_t node_limit(const tide_gate_plan_settings *s) {
    return s->node_limit != 0 ? s->node_limit : CLI_MEASURE_NODE_LIMIT;
}

/// What planning needs, from the settings of a gate. Texts are borrowed from them; freed by cli_planning_deinit.
static tide_status planning_of(const tide_gate_plan_settings *s, cli_planning *out, tide_error *err) {
    *out = (cli_planning){.strategy = s->strategy,
                          .no_fuse = s->no_fuse,
                          .no_qdq = s->no_qdq,
                          .recompute_share = s->recompute_share,
                          .align_bytes = s->align_bytes,
                          .seed = s->seed,
                          .node_limit = node_limit(s), // and no time limit: the same plan every time
                          .n_threads = 1,
                          .extents = s->extents,
                          .n_extents = s->n_extents,
                          .bound_limit_bytes = s->bound_limit_bytes,
                          .has_bound_limit = s->has_bound_limit,
                          .input_dir = s->input_dir};
    for (int p = 0; p < TIDE_N_PASSES; p++) out->no_pass[p] = (s->no_passes >> p & 1) != 0;
    const tide_strategy *strategy;
    tide_status st = cli_strategy(out, &strategy, err);
    for (size_t i = 0; st == TIDE_OK && i < s->n_shapes; i++) st = add_shape(&out->shapes, s->shapes[i], err);
    for (size_t i = 0; st == TIDE_OK && i < s->n_bounds; i++) st = cli_bound_add(&out->bounds, s->bounds[i], err);
    if (st != TIDE_OK) cli_planning_deinit(out);
    return st;
}

// ---- settings of the case ----

static tide_status put(tide_gate_case *c, tide_error *err, const char *key, const char *fmt, ...) TIDE_PRINTF(4, 5);
static tide_status put(tide_gate_case *c, tide_error *err, const char *key, const char *fmt, ...) {
    char value[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    return tide_gate_case_set(c, key, value, err);
}

static tide_status put_passes(tide_gate_case *c, const tide_gate_plan_settings *s, tide_error *err) {
    tide_text list = {0};
    for (int p = 0; p < TIDE_N_PASSES; p++) {
        const bool is_on = (s->no_passes >> p & 1) == 0 && (p != TIDE_PASS_RECOMPUTE || s->recompute_share > 0);
        if (is_on) tide_text_addf(&list, "%s%s", list.len > 0 ? " " : "", tide_pass_name((tide_pass)p));
    }
    const tide_status st = list.failed ? TIDE_NO_MEMORY(err, "for the names of passes")
                                       : tide_gate_case_set(c, "passes", list.len > 0 ? list.data : "none", err);
    tide_text_deinit(&list);
    return st;
}

/// What kernels size their scratch by (tide_gate_setting_is_of_machine).
static tide_status put_machine(tide_gate_case *c, tide_error *err) {
    char caches[256], library[64];
    TIDE_TRY(put(c, err, "caches", "%s", tide_ops_caches(caches, sizeof caches)));
    TIDE_TRY(put(c, err, "instructions", "%s", tide_ops_instructions()));
    TIDE_TRY(put(c, err, "library", "%s", tide_ops_library(library, sizeof library)));
    return put(c, err, "threads", "%u", (unsigned)tide_ops_threads()); // of a kernel: its scratch grows with them
}

static tide_status put_run(tide_gate_case *c, const tide_gate_plan_settings *s, tide_error *err) {
    TIDE_TRY(put(c, err, "runs", "%" PRIu64, cli_measure_runs(s)));
    TIDE_TRY(put(c, err, "contexts", "%" PRIu64, cli_measure_contexts(s)));
    TIDE_TRY(put(c, err, "allocator", "%s", s->allocator != NULL ? s->allocator : "cpu"));
    return s->limit_bytes > 0 ? put(c, err, "limit", "%" PRIu64, s->limit_bytes) : TIDE_OK;
}

/// Everything beside the model's file that its figures depend on.
static tide_status put_settings(tide_gate_case *c, const tide_gate_plan_settings *s, tide_error *err) {
    TIDE_TRY(put(c, err, "fuse", "%s", s->no_fuse ? "off" : "on"));
    if (s->no_qdq) TIDE_TRY(put(c, err, "qdq", "off"));
    TIDE_TRY(put_passes(c, s, err));
    if (s->has_bound_limit) TIDE_TRY(put(c, err, "bound_limit", "%" PRIu64, s->bound_limit_bytes));
    if (s->recompute_share > 0) TIDE_TRY(put(c, err, "recompute", "%.6g %%", s->recompute_share * 100));
    TIDE_TRY(put(c, err, "seed", "%" PRIu64, s->seed));
    TIDE_TRY(put(c, err, "node_limit", "%" PRIu64, node_limit(s)));
    TIDE_TRY(put_machine(c, err));
    return s->run ? put_run(c, s, err) : TIDE_OK;
}

static void add_signature(tide_text *t, const tide_graph *g, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const tide_value *v = &g->values[values[i]];
        tide_text_addf(t, "%s%s %s", i > 0 ? ", " : "", v->name, tide_dtype_name(v->dtype));
    }
}

/// Signature and inputs of a graph whose shapes are known.
static tide_status put_graph(tide_gate_case *c, const tide_graph *g, tide_error *err) {
    tide_text signature = {0}, inputs = {0};
    add_signature(&signature, g, g->inputs, g->n_inputs);
    tide_text_add(&signature, " -> ");
    add_signature(&signature, g, g->outputs, g->n_outputs);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const tide_value *v = &g->values[g->inputs[i]];
        char shape[256];
        cli_shape_text(&v->shape, shape, sizeof shape);
        tide_text_addf(&inputs, "%s%s%s%s", i > 0 ? ", " : "", v->name, shape[0] != '\0' ? " " : "", shape);
    }
    tide_host_free(c->signature);
    tide_host_free(c->inputs);
    c->signature = tide_host_strdup(tide_text_str(&signature));
    c->inputs = tide_host_strdup(tide_text_str(&inputs));
    const bool good = !signature.failed && !inputs.failed && c->signature != NULL && c->inputs != NULL;
    tide_text_deinit(&signature);
    tide_text_deinit(&inputs);
    return good ? TIDE_OK : TIDE_NO_MEMORY(err, "for the inputs of '%s'", g->name);
}

uint64_t cli_measure_runs(const tide_gate_plan_settings *s) { return s->runs != 0 ? s->runs : CLI_MEASURE_RUNS; }
uint64_t cli_measure_contexts(const tide_gate_plan_settings *s) {
    return s->contexts != 0 ? s->contexts : CLI_MEASURE_CONTEXTS;
}

// ---- models ----

/// A model while it is measured.
typedef struct job {
    tide_gate_case *c;
    cli_input *in;
    const tide_gate_plan_settings *settings;
    cli_planning planning;
    cli_plans plans;
    cli_session *session; // NULL: it is not run
    cli_session_result result;
    bool skipped;
    tide_error *err;
} job;

/// All that a planned run holds: buffer, weights, inputs, outputs.
static uint64_t total_bytes(const tide_memory_plan *plan) {
    uint64_t total = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) total += tide_memory_plan_predicted(plan, (tide_memory_kind)k);
    return total;
}

/// Figures of the plan with kernels' scratch, beside those of the graph's tensors alone.
static void put_full_plan(job *j) {
    tide_gate_case *c = j->c;
    const tide_memory_plan *plan = j->plans.plans[0];
    uint64_t scratch = 0;
    for (size_t i = 0; i < plan->lifetimes.n; i++) {
        const tide_lifetime *l = &plan->lifetimes.items[i];
        const uint64_t bytes = tide_lifetime_aligned_bytes(l);
        if (l->role == TIDE_ROLE_SCRATCH && bytes > scratch) scratch = bytes;
    }
    for (int k = 0; k < TIDE_N_KINDS; k++)
        c->kinds[TIDE_GATE_PREDICTED][k] = cli__measured(tide_memory_plan_predicted(plan, (tide_memory_kind)k));
    c->metrics[TIDE_GATE_FULL_PLANNED] = cli__measured(plan->bytes);
    c->metrics[TIDE_GATE_FULL_TOTAL] = cli__measured(total_bytes(plan));
    c->metrics[TIDE_GATE_FULL_BOUND] = cli__measured(plan->lower_bound_bytes);
    c->metrics[TIDE_GATE_SCRATCH] = cli__measured(scratch);
}

/// What the process takes with all contexts of the run.
static void put_process(job *j) {
    const tide_memory_plan *plan = j->plans.plans[0];
    const uint64_t contexts = j->settings->run ? cli_measure_contexts(j->settings) : 1;
    if (!tide_process_is_known(&plan->lifetimes)) return;
    j->c->metrics[TIDE_GATE_PROCESS] = cli__measured(tide_process_need_of(plan, contexts).peak_bytes);
}

static tide_status put_plan(job *j) {
    const tide_program *p = j->plans.program;
    const tide_memory_plan *plan = j->plans.plans[0];
    const size_t n = plan->lifetimes.n_step_names;
    const char **ops = NULL;
    if (p != NULL && n == p->n_steps) {
        TIDE_TRY(TIDE_NEW(&ops, n + 1, j->err, "for %zu steps", n));
        for (size_t i = 0; i < n; i++) ops[i] = p->graph->nodes[p->steps[i].node].op_type;
    }
    tide_status st = tide_gate_case_of_plan(plan, ops, j->c, j->err);
    tide_host_free(ops);
    if (st == TIDE_OK && p != NULL) st = put_graph(j->c, p->graph, j->err);
    if (st == TIDE_OK && p != NULL) st = put_settings(j->c, j->settings, j->err);
    return st;
}

static tide_status must_be_runnable(job *j) {
    const tide_program *p = j->plans.program;
    for (size_t i = 0; i < p->n_steps; i++) {
        const tide_node *node = &p->graph->nodes[p->steps[i].node];
        if ((node->def->flags & TIDE_OP_PLAN_ONLY) == 0) continue;
        j->skipped = true;
        return TIDE_FAIL(j->err, TIDE_ERR_NOT_IMPLEMENTED,
                         "it cannot be run: operator '%s' (%s) has no kernel; run = false plans it alone", node->name,
                         node->op_type);
    }
    return TIDE_OK;
}

/// The bytes that allocators took from the system. Each kind has an allocator of its own.
static tide_status put_reserved(job *j) {
    uint64_t reserved = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        tide_allocator_stats stats;
        TIDE_TRY(tide_registry_stats(cli_session_registry(j->session), TIDE_CPU, (tide_memory_kind)k, &stats, j->err));
        reserved += stats.peak_reserved_bytes;
    }
    j->c->metrics[TIDE_GATE_RESERVED] = cli__measured(reserved);
    return TIDE_OK;
}

static void put_kinds(job *j) {
    const uint64_t contexts = cli_measure_contexts(j->settings);
    uint64_t n_allocs = 0;
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_meter_kind *m = &j->result.kinds[k];
        const uint64_t predicted =
            tide_memory_plan_predicted_run(j->plans.plans[0], (tide_memory_kind)k, false, contexts);
        const uint64_t off = predicted > m->peak_bytes ? predicted - m->peak_bytes : m->peak_bytes - predicted;
        n_allocs += m->n_allocs;
        j->c->kinds[TIDE_GATE_KIND_PEAK][k] = cli__measured(m->peak_bytes);
        if (k == TIDE_DYNAMIC_KIND && j->plans.plans[0]->lifetimes.n_dynamic > 0) continue; // nothing was predicted
        if (predicted == TIDE_UNKNOWN_BYTES) continue;
        j->c->kinds[TIDE_GATE_PREDICTED][k] = cli__measured(predicted);
        j->c->kinds[TIDE_GATE_UNEXPLAINED][k] = cli__measured(off);
    }
    j->c->metrics[TIDE_GATE_PEAK] = cli__measured(j->result.total_peak_bytes);
    j->c->metrics[TIDE_GATE_ALLOCATIONS] = cli__measured(n_allocs);
    j->c->metrics[TIDE_GATE_TIME] = cli__measured(j->result.time_median_ns);
}

/// Allocations in steady state. A single run has none.
static tide_status put_warm(job *j) {
    if (cli_measure_runs(j->settings) < 2) return TIDE_OK;
    j->c->metrics[TIDE_GATE_WARM] = cli__measured(j->result.warm_allocations);
    size_t n;
    const cli_warm_site *sites = cli_session_warm_sites(j->session, &n);
    for (size_t i = 0; i < n; i++) {
        const cli__tensor_row who = {
            .name = sites[i].tag, .owner = sites[i].op, .kind = sites[i].kind, .bytes = sites[i].largest_bytes};
        TIDE_TRY(cli__measure_charge(j->c, &who, 0, sites[i].n, j->err));
    }
    return TIDE_OK;
}

static tide_status charge_blocks(job *j, const tide_live_block *blocks, size_t n, uint64_t *bytes) {
    for (size_t i = 0; i < n; i++) {
        const tide_live_block *b = &blocks[i];
        const cli__tensor_row who = {.name = b->tag != NULL ? b->tag : "",
                                     .owner = b->op != NULL ? b->op : "",
                                     .kind = b->kind,
                                     .bytes = b->requested_bytes};
        *bytes += b->requested_bytes;
        TIDE_TRY(cli__measure_charge(j->c, &who, b->requested_bytes, 0, j->err));
    }
    return TIDE_OK;
}

/// After the end of the session: what was not given back by then has leaked.
static tide_status put_leaks(job *j) {
    cli_leaks leaks;
    cli_session_get_leaks(j->session, &leaks);
    uint64_t bytes = 0;
    TIDE_TRY(charge_blocks(j, leaks.at_end, leaks.n_at_end, &bytes));
    TIDE_TRY(charge_blocks(j, leaks.late, leaks.n_late, &bytes));
    if (leaks.n_blocks > leaks.n_at_end + leaks.n_late) return TIDE_NO_MEMORY(j->err, "for the list of leaks");
    j->c->metrics[TIDE_GATE_LEAKED] = cli__measured(bytes);
    j->c->metrics[TIDE_GATE_LEAKED_BLOCKS] = cli__measured(leaks.n_blocks);
    return TIDE_OK;
}

/// The graph's tensors planned by themselves, as if no kernel had any scratch: the same on every machine.
static tide_status plan_apart(job *j) {
    cli_planning alone = j->planning;
    alone.no_kernels = true;
    alone.weights_registry = NULL;
    j->in->keep = true; // it is read again for the plan with scratch
    tide_status st = cli_plans_make(j->in, &alone, &j->plans, j->err);
    j->in->keep = false;
    if (st == TIDE_OK) st = put_plan(j);
    cli_plans_deinit(&j->plans);
    return st;
}

/// Figures that leave out tensors of which no bound is known are no figures of all that a run holds: a budget for one
/// of them is exceeded, and says by which tensors.
static tide_status hide_open(job *j) {
    static const tide_gate_metric whole[] = {TIDE_GATE_TOTAL, TIDE_GATE_FULL_TOTAL, TIDE_GATE_PROCESS};
    const tide_lifetimes *lt = &j->plans.plans[0]->lifetimes;
    char names[192];
    if (lt->n_dynamic == 0 || j->plans.program == NULL) return TIDE_OK; // a list is as it is
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) j->c->metrics[whole[i]] = (tide_gate_value){0};
    j->c->kinds[TIDE_GATE_PREDICTED][TIDE_DYNAMIC_KIND] = (tide_gate_value){0};
    return tide_gate_case_set(j->c, TIDE_GATE_UNBOUNDED, cli_unbounded_names(lt, names, sizeof names), j->err);
}

static tide_status plan_model(job *j) {
    const bool is_model = j->in->kind == CLI_INPUT_ONNX || j->in->kind == CLI_INPUT_GRAPH;
    const bool apart = is_model && j->settings->scratch_apart;
    if (apart) TIDE_TRY(plan_apart(j));
    TIDE_TRY(cli_plans_make(j->in, &j->planning, &j->plans, j->err));
    if (apart) put_full_plan(j);
    const tide_status st = apart ? TIDE_OK : put_plan(j);
    put_process(j);
    return st == TIDE_OK ? hide_open(j) : st;
}

static tide_status run_model(job *j) {
    const tide_gate_plan_settings *s = j->settings;
    TIDE_TRY(plan_model(j));
    TIDE_TRY(must_be_runnable(j));
    const cli_session_spec spec = {.program = j->plans.program,
                                   .plan = j->plans.plans[0],
                                   .mode = TIDE_RUN_PLANNED,
                                   .device = TIDE_CPU,
                                   .runs = (size_t)cli_measure_runs(s),
                                   .contexts = (size_t)cli_measure_contexts(s),
                                   .input_dir = s->input_dir,
                                   .seed = s->seed,
                                   .source = j->in->path};
    TIDE_TRY(cli_session_run(j->session, &spec, &j->result, j->err));
    put_kinds(j);
    TIDE_TRY(put_reserved(j));
    return put_warm(j);
}

static tide_status measure_run(job *j) {
    const cli_session_options opt = {.allocator = j->settings->allocator != NULL ? j->settings->allocator : "cpu",
                                     .limit_bytes = j->settings->limit_bytes,
                                     .keeps_warm_sites = true};
    TIDE_TRY(cli_session_open(&opt, &j->session, j->err));
    j->planning.weights_registry = cli_session_registry(j->session);
    j->planning.mapped = cli_session_mapped(j->session);
    tide_status st = run_model(j);
    cli_session_result_deinit(&j->result);
    cli_plans_deinit(&j->plans);
    cli_session_end(j->session);
    if (st == TIDE_OK) st = put_leaks(j);
    tide_oom_report oom;
    // A run that exceeds the limit is a result about the model; if tidemark itself has no memory, it is an
    // error.
    if (st == TIDE_ERR_NOMEM && cli_session_oom(j->session, &oom)) {
        j->err->status = TIDE_ERR_NO_SPACE;
        st = TIDE_ERR_NO_SPACE;
    }
    cli_session_close(j->session);
    return st;
}

// ---- plans ----

/// The file's plan by the requested strategy, or else its first plan: then the case has another strategy, which is
/// a cause.
static tide_status measure_plan(job *j) {
    tide_memory_plan *plan = NULL;
    tide_status st = tide_plan_from_json(j->in->data, j->in->len, j->in->path, j->settings->strategy, &plan, j->err);
    if (st == TIDE_ERR_NOT_FOUND) st = tide_plan_from_json(j->in->data, j->in->len, j->in->path, NULL, &plan, j->err);
    if (st == TIDE_OK) st = tide_gate_case_of_plan(plan, NULL, j->c, j->err);
    tide_memory_plan_destroy(plan);
    return st;
}

// ---- any file ----

/// FNV-1a over the file, by which a renamed file is recognised. Traces have none: each recording differs, and they
/// are not read as a whole.
static tide_status put_content(job *j) {
    const uint64_t hash = tide_hash_bytes(TIDE_HASH_START, j->in->data, j->in->len);
    if (j->in->file != NULL) tide_pages_drop(j->in->data, j->in->len);
    tide_text text = {0};
    tide_text_addf(&text, "fnv1a:%016" PRIx64 ":%zu", hash, j->in->len);
    j->c->content = text.data; // moved
    return text.failed ? TIDE_NO_MEMORY(j->err, "for '%s'", j->in->path) : TIDE_OK;
}

static tide_status measure_input(job *j) {
    if (j->in->kind != CLI_INPUT_TRACE && j->in->data != NULL) TIDE_TRY(put_content(j));
    const bool is_model = j->in->kind == CLI_INPUT_ONNX || j->in->kind == CLI_INPUT_GRAPH;
    if (j->in->kind == CLI_INPUT_TRACE) return cli__measure_trace(j->in->path, j->c, j->err);
    if (j->in->kind == CLI_INPUT_PLAN) return measure_plan(j);
    TIDE_TRY(planning_of(j->settings, &j->planning, j->err));
    const tide_status st = is_model && j->settings->run ? measure_run(j) : plan_model(j);
    cli_plans_deinit(&j->plans);
    cli_planning_deinit(&j->planning);
    return st;
}

/// Why a case has no figures, kept in it as one line. `skipped`: it was not tried. TIDE_ERR_NOMEM.
static tide_status note_error(tide_gate_case *c, const tide_error *why, bool skipped, tide_error *err) {
    tide_text line = {0};
    tide_text_add(&line, why->msg[0] != '\0' ? why->msg : tide_status_text(why->status));
    if (why->where[0] != '\0' && strstr(why->msg, why->where) == NULL) tide_text_addf(&line, " (%s)", why->where);
    if (why->note[0] != '\0') tide_text_addf(&line, "; %s", why->note);
    if (why->hint[0] != '\0') tide_text_addf(&line, "; %s", why->hint);
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '\n' || line.data[i] == '\r') line.data[i] = ' ';
    }
    if (line.failed) {
        tide_text_deinit(&line);
        return TIDE_NO_MEMORY(err, "for what is wrong with '%s'", c->key);
    }
    tide_host_free(c->error);
    c->error = line.data; // moved
    c->skipped = skipped;
    return TIDE_OK;
}

/// No text of a case is NULL but `error`.
static tide_status fill_texts(tide_gate_case *c, tide_error *err) {
    char **texts[] = {&c->model, &c->signature, &c->inputs, &c->peak_step};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] == NULL) *texts[i] = tide_host_strdup("");
        if (*texts[i] == NULL) return TIDE_NO_MEMORY(err, "for case '%s'", c->key);
    }
    return TIDE_OK;
}

/// A case that failed has no figures at all.
static tide_status start_over(tide_gate_case *c, const char *key, tide_error *err) {
    tide_gate_case_deinit(c);
    *c = (tide_gate_case){.key = tide_host_strdup(key)};
    return c->key != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for case '%s'", key);
}

tide_status cli_measure(const char *path, const char *key, const tide_gate_plan_settings *settings, tide_gate_case *out,
                        tide_error *err) {
    *out = (tide_gate_case){0};
    tide_error why = TIDE_ERROR_INIT;
    tide_status st = start_over(out, key, &why);
    cli_input in = {0};
    job j = {.c = out, .in = &in, .settings = settings, .err = &why};
    if (st == TIDE_OK) st = cli_input_open(path, &in, &why);
    j.skipped = st == TIDE_ERR_IO && access(path, R_OK) != 0;
    if (st == TIDE_OK) st = measure_input(&j);
    cli_input_close(&in);
    if (st != TIDE_OK && st != TIDE_ERR_NOMEM) {
        st = start_over(out, key, &why);
        if (st == TIDE_OK) st = note_error(out, &why, j.skipped, &why);
    }
    if (st == TIDE_OK) st = fill_texts(out, &why);
    if (st != TIDE_OK) {
        tide_gate_case_deinit(out);
        *out = (tide_gate_case){0};
        if (err != NULL) *err = why;
    }
    return st;
}

tide_status cli_measure_extents(const char *path, char ***names, size_t *n, tide_error *err) {
    cli_input in;
    *names = NULL;
    *n = 0;
    TIDE_TRY(cli_input_open(path, &in, err));
    tide_graph *graph = NULL;
    tide_status st = cli_input_graph(&in, &graph, err);
    if (st == TIDE_OK) st = cli_extents_of_graph(graph, names, n, err);
    tide_graph_destroy(graph);
    cli_input_close(&in);
    return st;
}
