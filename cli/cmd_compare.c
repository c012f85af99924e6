// SPDX-License-Identifier: MIT
//
// tidemark compare: runs a model naive and planned, compares prediction with measurement, and the outputs of both.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/memory_report.h"
#include "cli/planning.h"
#include "cli/recording.h"
#include "cli/session.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/graph/import.h"
#include "core/runtime/run_compare.h"
#include "core/tensor/compare.h"

enum { OPT_REFERENCE = CLI_OPT_FIRST_OWN, OPT_RTOL, OPT_ATOL, OPT_ALLOCATOR, OPT_LIMIT, OPT_FILL, OPT_VERIFY };

static const char help[] = CLI_PLANNING_HELP
    "  --reference DIR     ONNX's layout: inputs from DIR/input_0.pb …, outputs compared with DIR/output_0.pb …\n"
    "  --rtol R, --atol A  tolerances for the reference (default 1e-3 and 1e-4)\n"
    "  -n RUNS             runs in each mode (default 3)\n"
    "  --allocator A       cpu (default) or another that `tidemark allocators` can name\n"
    "  --fill F            fresh memory is set to zero (default), none or poison\n"
    "  --verify            compare what every step makes, too, and name the first tensor and operator that differ, or\n"
    "                      the step that overwrote what a later one reads; two to five more runs\n"
    "  --limit SIZE        all kinds together may hold so much; what does not fit is reported\n"
    "  -o FILE             record both runs into one trace\n" CLI_RECORDER_HELP CLI_RECORDING_HELP
    "  --json              print numbers as JSON\n\n"
    "Exit 1 when outputs (with --verify any tensors) differ, the prediction is off by a byte, or the reference is "
    "missed.\n"
    "Example: tidemark compare sample_graphs/lenet5.json\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"reference", required_argument, NULL, OPT_REFERENCE},
                                             {"rtol", required_argument, NULL, OPT_RTOL},
                                             {"atol", required_argument, NULL, OPT_ATOL},
                                             {"allocator", required_argument, NULL, OPT_ALLOCATOR},
                                             {"limit", required_argument, NULL, OPT_LIMIT},
                                             {"fill", required_argument, NULL, OPT_FILL},
                                             {"verify", no_argument, NULL, OPT_VERIFY},
                                             {"runs", required_argument, NULL, 'n'},
                                             {"output", required_argument, NULL, 'o'},
                                             CLI_RECORDER_OPTION,
                                             CLI_RECORDING_OPTIONS,
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_compare = {"compare", "[OPTION…] FILE", "Run naive and planned and compare everything",
                                         help,      option_table,     CLI_OPERANDS_FILES,
                                         run};

enum { NAIVE, PLANNED, N_MODES };
static const char *const mode_names[N_MODES] = {"naive", "planned"};

typedef struct options {
    cli_planning planning;
    cli_session_options session;
    cli_recording_options recording;
    double rtol, atol;
    size_t runs;
    tide_fill fill;
    bool verify, json;
} options;

/// Of the first difference: the node, its operator, the tensors, the nodes that made and overwrote the second.
enum { AT, AT_OP, DIFFERS, OVERWRITTEN, MADE_BY, WRITER, N_NAMES };

/// The results of a comparison.
typedef struct comparison {
    cli_plans plans;
    cli_session_result modes[N_MODES];
    bool bitwise_equal;
    char **output_names; ///< [n_names], owned: they outlive the program
    size_t n_names;
    tide_tensor_diff *reference; ///< [n_reference], owned
    size_t n_reference;
    bool exact; ///< predicted - measured == 0 for every kind, in both modes
    bool reference_pass;
    tide_run_difference tensors; ///< with --verify
    char *names[N_NAMES];        ///< owned; NULL: there is none
    cli_recording recording;
} comparison;

static const tide_memory_plan *plan_of(const comparison *c) { return c->plans.plans[0]; }

/// Which bodies a naive run goes through is no part of a plan: here it is known.
static uint64_t predicted(const comparison *c, int mode, int kind) {
    if (mode == NAIVE && kind == TIDE_KIND_WORKSPACE && plan_of(c)->lifetimes.n_regions > 0)
        return c->modes[NAIVE].path_peak_bytes;
    return tide_memory_plan_predicted_run(plan_of(c), (tide_memory_kind)kind, mode == NAIVE, 1);
}

/// What nothing was predicted of.
static bool is_sized_while_running(const comparison *c, int kind) {
    return kind == TIDE_DYNAMIC_KIND && plan_of(c)->lifetimes.n_dynamic > 0;
}

static bool prediction_is_exact(const comparison *c) {
    for (int mode = 0; mode < N_MODES; mode++) {
        for (int k = 0; k < TIDE_N_KINDS; k++) {
            if (is_sized_while_running(c, k)) continue;
            if (predicted(c, mode, k) != c->modes[mode].kinds[k].peak_bytes) return false;
        }
    }
    return true;
}

// ---- work ----

static tide_status run_mode(const options *o, comparison *c, int mode, cli_session *session, const char *path,
                            tide_error *err) {
    const cli_session_spec spec = {.program = c->plans.program,
                                   .plan = plan_of(c),
                                   .mode = mode == PLANNED ? TIDE_RUN_PLANNED : TIDE_RUN_NAIVE,
                                   .fill = o->fill,
                                   .device = TIDE_CPU,
                                   .runs = o->runs,
                                   .contexts = 1,
                                   .input_dir = o->planning.input_dir,
                                   .seed = o->planning.seed,
                                   .source = path,
                                   .keep_outputs = true};
    const tide_status st = cli_session_run(session, &spec, &c->modes[mode], err);
    if (st != TIDE_OK) tide_error_prefix(err, "%s run", mode_names[mode]);
    return st;
}

static tide_status compare_modes(comparison *c, tide_error *err) {
    c->bitwise_equal = true;
    for (size_t i = 0; i < c->modes[PLANNED].n_outputs; i++) {
        tide_tensor_diff diff;
        TIDE_TRY(tide_tensor_compare(c->modes[PLANNED].outputs[i], c->modes[NAIVE].outputs[i], 0.0, 0.0, &diff, err));
        c->bitwise_equal = c->bitwise_equal && diff.bitwise_equal;
    }
    return TIDE_OK;
}

static tide_status compare_reference(const options *o, comparison *c, tide_error *err) {
    c->reference_pass = true;
    const char *dir = o->planning.input_dir;
    if (dir == NULL) return TIDE_OK;
    const size_t n = c->modes[PLANNED].n_outputs;
    TIDE_TRY(TIDE_NEW(&c->reference, n + 1, err, "for %zu outputs", n));
    for (size_t i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/output_%zu.pb", dir, i);
        tide_tensor *want = NULL;
        TIDE_TRY(tide_tensor_from_pb_file(path, NULL, TIDE_KIND_HOST_PAGEABLE, &want, NULL, err));
        const tide_status st =
            tide_tensor_compare(c->modes[PLANNED].outputs[i], want, o->rtol, o->atol, &c->reference[i], err);
        tide_tensor_unref(want);
        if (st != TIDE_OK) {
            tide_error_where(err, "%s", path);
            return st;
        }
        c->n_reference = i + 1;
        c->reference_pass = c->reference_pass && c->reference[i].pass;
    }
    return TIDE_OK;
}

/// What every step makes, in two more runs.
static tide_status compare_tensors(const options *o, comparison *c, cli_session *session, tide_error *err) {
    const cli_session_spec spec = {.program = c->plans.program,
                                   .plan = plan_of(c),
                                   .device = TIDE_CPU,
                                   .input_dir = o->planning.input_dir,
                                   .seed = o->planning.seed};
    const tide_inference_plan_options opt = {
        .device = TIDE_CPU, .registry = cli_session_registry(session), .memory_plan = plan_of(c)};
    const size_t n = c->plans.program->graph->n_inputs;
    tide_inference_plan *plan = NULL;
    tide_tensor **inputs;
    TIDE_TRY(TIDE_NEW(&inputs, n + 1, err, "for %zu inputs", n));
    tide_status st = cli_session_make_inputs(cli_session_registry(session), &spec, inputs, err);
    if (st == TIDE_OK) st = tide_inference_plan_create(c->plans.program, &opt, &plan, err);
    if (st == TIDE_OK) st = tide_runs_compare(plan, inputs, n, o->fill, &c->tensors, err);
    tide_inference_plan_unref(plan);
    for (size_t i = 0; i < n; i++) tide_tensor_unref(inputs[i]);
    tide_host_free(inputs);
    return st;
}

/// Names of what differs, which outlive the program.
static tide_status name_difference(comparison *c, tide_error *err) {
    const tide_program *p = c->plans.program;
    const tide_run_difference *d = &c->tensors;
    if (d->is_equal) return TIDE_OK;
    const char *const names[N_NAMES] = {
        [AT] = p->steps[d->step].kernel.node->name,
        [AT_OP] = p->steps[d->step].kernel.node->op_type,
        [DIFFERS] = d->value != TIDE_NO_VALUE ? p->graph->values[d->value].name : NULL,
        [OVERWRITTEN] = d->overwritten != TIDE_NO_VALUE ? p->graph->values[d->overwritten].name : NULL,
        [MADE_BY] = d->overwritten != TIDE_NO_VALUE ? p->steps[d->made_by].kernel.node->name : NULL,
        [WRITER] = d->overwritten_by != SIZE_MAX ? p->steps[d->overwritten_by].kernel.node->name : NULL};
    for (int i = 0; i < N_NAMES; i++) {
        c->names[i] = names[i] != NULL ? tide_host_strdup(names[i]) : NULL;
        if (names[i] != NULL && c->names[i] == NULL) return TIDE_NO_MEMORY(err, "for names");
    }
    return TIDE_OK;
}

static tide_status copy_output_names(comparison *c, tide_error *err) {
    const tide_graph *g = c->plans.program->graph;
    c->output_names = tide_host_calloc(g->n_outputs + 1, sizeof(char *));
    for (size_t i = 0; c->output_names != NULL && i < g->n_outputs; i++) {
        c->output_names[i] = tide_host_strdup(g->values[g->outputs[i]].name);
        if (c->output_names[i] == NULL) break;
        c->n_names = i + 1;
    }
    if (c->n_names < g->n_outputs) return TIDE_NO_MEMORY(err, "for %zu names", g->n_outputs);
    return TIDE_OK;
}

static tide_status compare_in_session(const char *path, const options *o, cli_session *session, comparison *c,
                                      tide_error *err) {
    cli_input in;
    TIDE_TRY(cli_input_open(path, &in, err));
    tide_status st = cli_input_require_graph(&in, err);
    cli_planning planning = o->planning;
    planning.weights_registry = cli_session_registry(session);
    planning.mapped = cli_session_mapped(session);
    if (st == TIDE_OK) st = cli_plans_make(&in, &planning, &c->plans, err);
    cli_input_close(&in);
    if (st == TIDE_OK) st = copy_output_names(c, err);
    for (int mode = 0; mode < N_MODES && st == TIDE_OK; mode++) st = run_mode(o, c, mode, session, path, err);
    if (st == TIDE_OK) st = compare_modes(c, err);
    if (st == TIDE_OK) st = compare_reference(o, c, err);
    if (st == TIDE_OK && o->verify) st = compare_tensors(o, c, session, err);
    if (st == TIDE_OK && o->verify) st = name_difference(c, err);
    if (st == TIDE_OK) c->exact = prediction_is_exact(c);
    return st;
}

/// Releases the program and its memory in the session; plans, results and names stay.
static void release_program(comparison *c) {
    tide_program_unref(c->plans.program);
    c->plans.program = NULL;
}

static void comparison_deinit(comparison *c) {
    for (size_t i = 0; i < c->n_names; i++) tide_host_free(c->output_names[i]);
    tide_host_free(c->output_names);
    for (int i = 0; i < N_NAMES; i++) tide_host_free(c->names[i]);
    for (int mode = 0; mode < N_MODES; mode++) cli_session_result_deinit(&c->modes[mode]);
    tide_host_free(c->reference);
    cli_plans_deinit(&c->plans);
}

// ---- output ----

static void add_modes(tide_json_out *j, const comparison *c) {
    tide_json_open(j, "modes", '[');
    for (int mode = 0; mode < N_MODES; mode++) {
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "mode", mode_names[mode]);
        tide_json_text(j, "strategy", mode == PLANNED ? plan_of(c)->strategy : NULL);
        tide_json_u64(j, "peak_bytes", c->modes[mode].total_peak_bytes);
        tide_json_u64(j, "time_ns", c->modes[mode].time_median_ns);
        tide_json_u64(j, "warm_allocations", c->modes[mode].warm_allocations);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

static void add_kinds(tide_json_out *j, const char *key, const comparison *c, int mode) {
    tide_json_open(j, key, '[');
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const uint64_t measured = c->modes[mode].kinds[k].peak_bytes, predicted_bytes = predicted(c, mode, k);
        if (measured == 0 && predicted_bytes == 0) continue;
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "kind", tide_memory_kind_name((tide_memory_kind)k));
        if (is_sized_while_running(c, k))
            tide_json_null(j, "predicted_bytes");
        else
            tide_json_u64(j, "predicted_bytes", predicted_bytes);
        tide_json_u64(j, "measured_bytes", measured);
        if (is_sized_while_running(c, k))
            tide_json_null(j, "difference_bytes");
        else
            tide_json_i64(j, "difference_bytes", (int64_t)(predicted_bytes - measured));
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

static void add_outputs(tide_json_out *j, const comparison *c) {
    tide_json_open(j, "outputs", '{');
    tide_json_bool(j, "bitwise_equal", c->bitwise_equal);
    tide_json_open(j, "reference", '[');
    for (size_t i = 0; i < c->n_reference; i++) {
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "name", c->output_names[i]);
        tide_json_number(j, "max_abs_diff", c->reference[i].max_abs, 12);
        tide_json_number(j, "max_rel_diff", c->reference[i].max_rel, 12);
        tide_json_bool(j, "pass", c->reference[i].pass);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
    tide_json_close(j, '}');
}

/// Key tensors: what --verify found; null without it.
static void add_tensors(tide_json_out *j, const comparison *c, bool verified) {
    const tide_run_difference *d = &c->tensors;
    if (!verified) {
        tide_json_null(j, "tensors");
        return;
    }
    tide_json_open(j, "tensors", '{');
    tide_json_u64(j, "compared", d->n_compared);
    tide_json_bool(j, "bitwise_equal", d->is_equal);
    if (d->is_equal) {
        tide_json_null(j, "first");
    } else {
        tide_json_open(j, "first", '{');
        tide_json_u64(j, "step", d->step);
        tide_json_u64(j, "nth", d->nth);
        tide_json_text_or_null(j, "node", c->names[AT]);
        tide_json_text_or_null(j, "op", c->names[AT_OP]);
        tide_json_text_or_null(j, "tensor", c->names[DIFFERS]);
        if (d->value != TIDE_NO_VALUE) {
            tide_json_number(j, "max_abs_diff", d->diff.max_abs, 12);
            tide_json_u64(j, "n_different", (uint64_t)d->diff.n_failed);
        }
        tide_json_text_or_null(j, "overwritten", c->names[OVERWRITTEN]);
        if (d->overwritten != TIDE_NO_VALUE) {
            tide_json_text_or_null(j, "made_by", c->names[MADE_BY]);
            tide_json_text_or_null(j, "overwritten_by", c->names[WRITER]);
        }
        tide_json_close(j, '}');
    }
    tide_json_close(j, '}');
}

/// What the naive run's tensors held at most: the plan's buffer stands in their place.
static uint64_t naive_peak(const comparison *c) { return c->modes[NAIVE].kinds[TIDE_KIND_WORKSPACE].peak_bytes; }

/// Of the naive run's peak what the plan saves; 0 where there was nothing to save.
static double peak_saving(const comparison *c) {
    const double peak = (double)naive_peak(c);
    return peak > 0 ? 1 - (double)plan_of(c)->bytes / peak : 0;
}

static int print_json(const comparison *c, const options *o) {
    const tide_memory_plan *plan = plan_of(c);
    tide_text text = {0};
    tide_json_out doc = cli_document_begin("compare", &text), *const j = &doc;
    tide_json_text(j, "model", plan_of(c)->lifetimes.model);
    add_modes(j, c);
    add_kinds(j, "kinds", c, PLANNED);
    add_kinds(j, "naive_kinds", c, NAIVE);
    tide_json_u64(j, "bytes", plan->bytes);
    tide_json_u64(j, "naive_bytes", tide_memory_plan_original_bytes(plan));
    tide_json_u64(j, "lower_bound_bytes", plan->lower_bound_bytes);
    tide_json_number(j, "saving", tide_memory_plan_saving(plan), 12);
    tide_json_u64(j, "naive_peak_bytes", naive_peak(c));
    tide_json_number(j, "saving_of_naive_peak", peak_saving(c), 12);
    add_outputs(j, c);
    add_tensors(j, c, o->verify);
    tide_json_bool(j, "verified", plan->verified);
    cli_json_recording(j, &c->recording);
    cli_json_own_memory(j, "own_memory");
    cli_document_end(j);
    return cli_document_print(&text);
}

static void print_kinds(const comparison *c, int mode) {
    printf("%s run%s%s: peak per memory kind, in bytes\n", mode_names[mode], mode == PLANNED ? ", " : "",
           mode == PLANNED ? plan_of(c)->strategy : "");
    printf("  %-13s %14s %14s %11s %12s\n", "kind", "predicted", "measured", "difference", "allocations");
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_meter_kind *m = &c->modes[mode].kinds[k];
        const uint64_t predicted_bytes = predicted(c, mode, k);
        if (m->peak_bytes == 0 && predicted_bytes == 0) continue;
        if (is_sized_while_running(c, k)) {
            printf("  %-13s %14s %14" PRIu64 " %11s %12" PRIu64 "   sized while running: not planned\n",
                   tide_memory_kind_name((tide_memory_kind)k), "-", m->peak_bytes, "-", m->n_allocs);
            continue;
        }
        printf("  %-13s %14" PRIu64 " %14" PRIu64 " %+11" PRId64 " %12" PRIu64 "\n",
               tide_memory_kind_name((tide_memory_kind)k), predicted_bytes, m->peak_bytes,
               (int64_t)(predicted_bytes - m->peak_bytes), m->n_allocs);
    }
    printf("  together %*s %14" PRIu64 "   median %.3f ms, %" PRIu64 " allocations in warm runs\n\n", 19, "",
           c->modes[mode].total_peak_bytes, (double)c->modes[mode].time_median_ns / 1e6,
           c->modes[mode].warm_allocations);
}

static void print_difference(const comparison *c) {
    const tide_run_difference *d = &c->tensors;
    char a[256], b[256], e[256];
    printf("tensors naive = planned: NO, after %zu that are equal\n", d->n_compared);
    printf("  first difference: step %zu, node '%s' (%s)", d->step, cli_clean(c->names[AT], a, sizeof a),
           cli_clean(c->names[AT_OP], b, sizeof b));
    if (d->nth > 0) printf(", time %" PRIu64 " that it runs", d->nth + 1);
    printf("\n");
    if (d->value != TIDE_NO_VALUE)
        printf("  makes '%s': %" PRId64 " element%s, by %s%.6g\n", cli_clean(c->names[DIFFERS], a, sizeof a),
               d->diff.n_failed, d->diff.n_failed == 1 ? " differs" : "s differ", d->diff.n_failed == 1 ? "" : "up to ",
               d->diff.max_abs);
    if (d->overwritten == TIDE_NO_VALUE) return;
    printf("  reads '%s', made by step %zu ('%s'), which ", cli_clean(c->names[OVERWRITTEN], a, sizeof a), d->made_by,
           cli_clean(c->names[MADE_BY], b, sizeof b));
    if (c->names[WRITER] != NULL)
        printf("step %zu ('%s') has overwritten\n", d->overwritten_by, cli_clean(c->names[WRITER], e, sizeof e));
    else
        printf("was overwritten in between\n");
}

static void print_text(const comparison *c, const options *o) {
    const tide_memory_plan *plan = plan_of(c);
    char a[24], b[24], lb[24], peak[24], name[256];
    printf("%s: %" PRId64 " steps, %zu tensors\n\n", cli_clean(plan->lifetimes.model, name, sizeof name),
           plan->lifetimes.n_steps, plan->lifetimes.n);
    for (int mode = 0; mode < N_MODES; mode++) print_kinds(c, mode);
    const double gap =
        plan->lower_bound_bytes == 0 ? 0.0 : 100.0 * ((double)plan->bytes / (double)plan->lower_bound_bytes - 1.0);
    printf("every tensor its own memory  %12s\n"
           "naive run, measured peak     %12s\n"
           "planned, one buffer          %12s   saves %.2f %% of the first, %.2f %% of the second\n"
           "lower bound                  %12s   gap %.2f %%%s\n\n",
           tide_format_bytes(tide_memory_plan_original_bytes(plan), a, sizeof a),
           tide_format_bytes(naive_peak(c), peak, sizeof peak), tide_format_bytes(plan->bytes, b, sizeof b),
           100.0 * tide_memory_plan_saving(plan), 100.0 * peak_saving(c),
           tide_format_bytes(plan->lower_bound_bytes, lb, sizeof lb), gap,
           plan->proven ? ": no plan of these lifetimes is smaller" : "");
    printf("outputs naive = planned: %s\n", c->bitwise_equal ? "bit for bit" : "NO");
    if (o->verify && c->tensors.is_equal)
        printf("tensors naive = planned: bit for bit, %zu made by %" PRId64 " steps\n", c->tensors.n_compared,
               plan->lifetimes.n_steps);
    if (o->verify && !c->tensors.is_equal) print_difference(c);
    for (size_t i = 0; i < c->n_reference; i++)
        printf("reference %-30s max abs %.3g, max rel %.3g: %s\n", cli_clean(c->output_names[i], name, sizeof name),
               c->reference[i].max_abs, c->reference[i].max_rel, c->reference[i].pass ? "ok" : "MISSED");
    printf("plan verified: %s\npredicted = measured: %s%s\n", plan->verified ? "yes" : "NO",
           c->exact ? "to the byte" : "NO",
           plan->lifetimes.n_dynamic > 0 ? ", but for what is sized while running" : "");
    cli_recording_print(&c->recording);
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    const cli_command *cmd = &cli_command_compare;
    uint64_t n;
    switch (c) {
    case OPT_REFERENCE:
        o->planning.input_dir = optarg;
        return CLI_EXIT_OK;
    case OPT_RTOL:
        return cli_parse_real(cmd, "--rtol", optarg, &o->rtol) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_ATOL:
        return cli_parse_real(cmd, "--atol", optarg, &o->atol) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_ALLOCATOR:
        if (!cli_parse_allocator(cmd, optarg)) return CLI_EXIT_USAGE;
        o->session.allocator = optarg;
        return CLI_EXIT_OK;
    case OPT_FILL:
        return cli_parse_fill(cmd, optarg, &o->fill) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_VERIFY:
        o->verify = true;
        return CLI_EXIT_OK;
    case OPT_LIMIT:
        return cli_parse_limit(cmd, optarg, &o->session.limit_bytes) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case 'n':
        if (!cli_parse_count(cmd, "-n", optarg, 100000000, &n)) return CLI_EXIT_USAGE;
        if (n == 0) return cli_usage(cmd, "-n: at least 1 is needed");
        o->runs = (size_t)n;
        return CLI_EXIT_OK;
    case 'o':
        o->recording.path = optarg;
        return CLI_EXIT_OK;
    case CLI_OPT_JSON:
        o->json = true;
        return CLI_EXIT_OK;
    default:
        return cli_recording_option(cmd, &o->recording, c) > 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    }
}

/// Print what was found. @return the exit code
static int print_answer(const comparison *c, const options *o) {
    int code = CLI_EXIT_OK;
    if (o->json)
        code = print_json(c, o);
    else
        print_text(c, o);
    const bool good = c->bitwise_equal && (!o->verify || c->tensors.is_equal) && c->exact && c->reference_pass &&
                      plan_of(c)->verified;
    return code == CLI_EXIT_OK && !good ? CLI_EXIT_CHECK_FAILED : code;
}

/// The recorder outlives the session, which outlives the model. The answer is printed last, when the trace is
/// finished.
static int compare_file(const char *path, const options *o) {
    if (o->verify && o->recording.path != NULL)
        return cli_usage(&cli_command_compare, "--verify: its runs are not recorded; leave out -o");
    if (cli_same_file(path, o->recording.path))
        return cli_usage(&cli_command_compare, "-o: '%s' is the input; it would be replaced", o->recording.path);
    tide_error err = TIDE_ERROR_INIT;
    cli_session *session = NULL;
    comparison c = {0};
    if (cli_recording_open(&o->recording, &c.recording, &err) != TIDE_OK) return cli_fail(&err);
    cli_session_options opt = o->session;
    opt.recorder = c.recording.recorder;
    tide_status st = cli_session_open(&opt, &session, &err);
    if (st == TIDE_OK) st = compare_in_session(path, o, session, &c, &err);
    release_program(&c);
    cli_session_end(session);
    cli_recording_end(&c.recording, st, session != NULL ? cli_session_record_error(session) : NULL);
    int code = st == TIDE_OK ? print_answer(&c, o)
                             : cli_fail_in_session(session, o->json ? "compare" : NULL, o->session.limit_bytes, &err);
    code = cli_recording_report(&c.recording, code);
    cli_session_close(session);
    comparison_deinit(&c);
    return code;
}

static int run(int argc, char **argv) {
    options o = {.rtol = 1e-3,
                 .atol = 1e-4,
                 .runs = 3,
                 .session = {.allocator = "cpu"},
                 .recording = {.recorder = {.drain = TIDE_RECORD_PROCESS, .rank = -1}}};
    int code = cli_parse_options(&cli_command_compare, argc, argv, &o.planning, take_option, &o);
    if (code == CLI_GO_ON && !cli_recording_settle(&cli_command_compare, &o.recording)) code = CLI_EXIT_USAGE;
    if (code == CLI_GO_ON) code = compare_file(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
