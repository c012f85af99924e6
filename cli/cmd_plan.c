// SPDX-License-Identifier: MIT
//
// tidemark plan: plan a model's memory before it runs, and say whether it fits and, if not, what would make it fit.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "core/ops/ops.h"

enum { OPT_BUDGET = CLI_OPT_FIRST_OWN, OPT_CAPACITY, OPT_DUMP, OPT_PROFILE, OPT_FULL };

static const char help[] = CLI_PLANNING_HELP
    "  --all               every strategy there is, one row each\n"
    "  --profile NAME=MIN:OPT:MAX   one plan for several extents of a graph input, or a list NAME=DIMS,DIMS,…\n"
    "  --budget SIZE       will the process fit that runs it (program, weights, inputs, outputs, buffer)? exit 6 if "
    "not,\n"
    "                      with who is alive at the peak and the smallest change that would make it fit; exit 7 if "
    "that\n"
    "                      could not be settled. Of a list: buffer, weights, inputs and outputs alone\n"
    "  --capacity SIZE     will the planned buffer alone fit? exit 6: there is no such plan; 7: not settled\n"
    "  --full              list every tensor with its place, or every pool (default: the verdict, and the ten largest\n"
    "                      that are alive at the peak)\n"
    "  -v                  say who is alive at the peak in any case\n"
    "  --dump-stage STAGE  print liveness, graph, colour or plan, and nothing else\n"
    "  -o FILE             write the plan as JSON (\"-\": standard output)\n"
    "  --json              print the plan as JSON\n\n"
    "Example: tidemark plan --all sample_graphs/lenet5.json\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"all", no_argument, NULL, CLI_OPT_ALL},
                                             {"budget", required_argument, NULL, OPT_BUDGET},
                                             {"capacity", required_argument, NULL, OPT_CAPACITY},
                                             {"dump-stage", required_argument, NULL, OPT_DUMP},
                                             {"full", no_argument, NULL, OPT_FULL},
                                             {"profile", required_argument, NULL, OPT_PROFILE},
                                             {"output", required_argument, NULL, 'o'},
                                             {"verbose", no_argument, NULL, 'v'},
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_plan = {"plan", "[OPTION…] FILE", "Plan the memory of a model, graph or lifetimes file",
                                      help,   option_table,     CLI_OPERANDS_FILES,
                                      run};

typedef struct options {
    cli_planning planning;
    bool has_budget, has_capacity, json, verbose, full;
    uint64_t budget, capacity;
    const char *out;
    const char *stage;
} options;

enum { MAX_MATTER = 10 }; ///< tensors that are listed below the verdict

/// The answers beside the plans.
typedef struct answer {
    const char *fits; // NULL: no limit was given
    bool is_least;    // `needs` is without what is sized while running
    uint64_t needs, limit;
    const tide_memory_plan *best; // the smallest plan
    bool has_peaks, has_advice;
    bool asks_peaks; // all are listed, not only the ten largest
    tide_peaks peaks;
    tide_advice advice;
    bool asks_process; // it is what is to fit
} answer;

// ---- does it fit ----

/// The smallest plan decides; a bound that one of the plans proves holds for all.
static void find_fit(const options *o, const cli_plans *plans, answer *a) {
    a->best = plans->plans[0];
    uint64_t proved = 0;
    for (size_t i = 0; i < plans->n; i++) {
        if (plans->plans[i]->bytes < a->best->bytes) a->best = plans->plans[i];
        if (plans->plans[i]->proved_bytes > proved) proved = plans->plans[i]->proved_bytes;
    }
    if (!o->has_budget && !o->has_capacity) return;
    a->asks_process = o->has_budget && tide_process_is_known(&a->best->lifetimes);
    a->needs = o->has_budget ? tide_need_bytes(&a->best->lifetimes, a->best->bytes) : a->best->bytes;
    const uint64_t least = o->has_budget ? tide_need_bytes(&a->best->lifetimes, proved) : proved;
    a->limit = o->has_budget ? o->budget : o->capacity;
    a->is_least = a->best->lifetimes.n_dynamic > 0;
    a->fits = a->needs <= a->limit && !a->is_least ? "yes" : least > a->limit ? "no" : "unknown";
}

/// Whether the text begins with the verdict.
static bool is_short(const options *o) { return !o->full && !o->planning.all && !o->json && o->stage == NULL; }

static tide_status find_answer(cli_input *in, const options *o, const cli_plans *plans, answer *a, tide_error *err) {
    find_fit(o, plans, a);
    const bool misses = a->fits != NULL && a->needs > a->limit;
    a->asks_peaks = o->verbose || (o->has_budget && misses);
    if (a->asks_peaks || is_short(o)) {
        TIDE_TRY(tide_peaks_find(&a->best->lifetimes, &a->peaks, err));
        a->has_peaks = true;
    }
    if (!o->has_budget || !misses) return TIDE_OK;
    TIDE_TRY(cli_advise(in, &o->planning, a->best, o->budget, &a->advice, err));
    a->has_advice = true;
    return TIDE_OK;
}

static void answer_deinit(answer *a) {
    tide_peaks_deinit(&a->peaks);
    tide_advice_deinit(&a->advice);
}

// ---- output ----

static bool parse_stage(const char *text, tide_stage *out) {
    static const char *const names[] = {"liveness", "graph", "colour", "plan"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (tide_stage)i;
        return true;
    }
    return false;
}

static void print_points(const cli_plans *plans, const tide_memory_plan *best, tide_text *out) {
    char alone[24], bound[24], all[24];
    tide_text_add(out, "\nProfile points, each planned alone beside the one plan for all:\n");
    for (size_t k = 0; k < plans->n_points; k++) {
        const tide_point_need *need = &plans->points[k];
        char name[512];
        tide_text_addf(
            out, "  %s: lower bound %s, planned %s, in the one plan %s\n", cli_clean(need->name, name, sizeof name),
            tide_format_bytes(need->lower_bound_bytes, bound, sizeof bound),
            tide_format_bytes(need->bytes, alone, sizeof alone), tide_format_bytes(best->bytes, all, sizeof all));
    }
}

/// Prints the difference too, because rounded sizes may look alike.
static void print_fit(const answer *a, tide_text *out) {
    char needs[24], limit[24], over[24];
    tide_text_addf(out, "\nfits: %s (needs %s of %s", a->fits, tide_format_bytes(a->needs, needs, sizeof needs),
                   tide_format_bytes(a->limit, limit, sizeof limit));
    if (a->needs > a->limit)
        tide_text_addf(out, ", %s too much", tide_format_bytes(a->needs - a->limit, over, sizeof over));
    if (a->is_least) tide_text_add(out, "; what is sized while running comes on top of that");
    if (strcmp(a->fits, "unknown") == 0 && a->needs > a->limit)
        tide_text_add(out,
                      "; nothing proves that no plan fits: strategy search may settle it, the longer the likelier");
    tide_text_add(out, ")\n");
    if (!a->asks_process) return;
    const tide_process_need process = tide_process_need_of(a->best, 1);
    tide_process_need_print(&process, out);
}

static tide_status render_text(const options *o, const cli_plans *plans, const tide_plan_extras *extras,
                               const answer *a, tide_text *out, tide_error *err) {
    const tide_memory_plan *const *list = (const tide_memory_plan *const *)plans->plans;
    if (o->stage != NULL) {
        tide_stage stage;
        if (!parse_stage(o->stage, &stage)) return TIDE_FAIL(err, TIDE_ERR_INVALID, "no stage '%s'", o->stage);
        return tide_plan_dump_stage(list[0], stage, out, err);
    }
    if (o->planning.all)
        tide_plan_table_with(list, plans->n, extras, out);
    else if (is_short(o))
        tide_plan_verdict(list[0], out);
    else
        tide_plan_report(list[0], out);
    if (is_short(o)) {
        if (a->fits != NULL) print_fit(a, out);
        tide_peaks_print(&a->peaks, &a->best->lifetimes, a->asks_peaks ? 0 : MAX_MATTER, out);
        if (list[0]->lifetimes.n > 0) tide_text_addf(out, "\n--full lists all %zu tensors\n", list[0]->lifetimes.n);
    }
    if (plans->has_passes) tide_pass_report_print(&plans->passes, out);
    if (plans->n_points > 0) print_points(plans, a->best, out);
    if (a->has_peaks && !is_short(o)) tide_peaks_print(&a->peaks, &a->best->lifetimes, 0, out);
    if (a->has_advice) tide_advice_print(&a->advice, out);
    if (a->fits != NULL && !is_short(o)) print_fit(a, out);
    return TIDE_OK;
}

static tide_status emit(const options *o, const cli_plans *plans, const answer *a, tide_error *err) {
    const tide_memory_plan *const *list = (const tide_memory_plan *const *)plans->plans;
    const tide_plan_extras extras = {.fits = a->fits,
                                     .passes = plans->has_passes ? &plans->passes : NULL,
                                     .kernel_threads =
                                         plans->has_passes || plans->n_points > 0 ? tide_ops_threads() : 0,
                                     .refused = plans->refused,
                                     .n_refused = plans->n_refused,
                                     .no_times = o->out != NULL, // the same input, the same bytes of the file
                                     .peaks = a->asks_peaks ? &a->peaks : NULL,
                                     .advice = a->has_advice ? &a->advice : NULL,
                                     .points = plans->points,
                                     .n_points = plans->n_points};
    tide_text text = {0}, json = {0};
    tide_status st = TIDE_OK;
    if (o->json || o->out != NULL) st = tide_plan_to_json_with(list, plans->n, &extras, &json, err);
    if (st == TIDE_OK && !o->json) st = render_text(o, plans, &extras, a, &text, err);
    if (st == TIDE_OK && (json.failed || text.failed)) st = TIDE_NO_MEMORY(err, "for the report");
    if (st == TIDE_OK && o->out != NULL) st = tide_write_file(o->out, json.data, json.len, err);
    const bool out_is_stdout = o->out != NULL && strcmp(o->out, "-") == 0;
    if (st == TIDE_OK && !out_is_stdout) fputs(o->json ? json.data : tide_text_str(&text), stdout);
    tide_text_deinit(&text);
    tide_text_deinit(&json);
    return st;
}

// ---- work ----

static tide_status make_plans(cli_input *in, const options *o, cli_plans *plans, tide_error *err) {
    if (in->kind == CLI_INPUT_TRACE) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' is a trace", in->path);
        tide_error_hint(err, "look at it with 'tidemark tui' or 'report'; what the best placement of its blocks needs "
                             "says 'tidemark replay --strategy search'");
        return st;
    }
    if (o->planning.profile.n_points > 0) TIDE_TRY(cli_input_require_graph(in, err));
    if (in->kind != CLI_INPUT_PLAN || o->planning.all) return cli_plans_make(in, &o->planning, plans, err);
    // A plan file shows the plan it has.
    TIDE_TRY(TIDE_NEW(&plans->plans, 1, err, "for a plan"));
    TIDE_TRY(tide_plan_from_json(in->data, in->len, in->path, o->planning.strategy, &plans->plans[0], err));
    plans->n = 1;
    return TIDE_OK;
}

static int exit_code_of(const char *fits) {
    if (strcmp(fits, "yes") == 0) return CLI_EXIT_OK;
    return strcmp(fits, "no") == 0 ? CLI_EXIT_DOES_NOT_FIT : CLI_EXIT_NOT_DECIDED;
}

static int plan_file(const char *path, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_input in;
    if (cli_same_file(path, o->out))
        return cli_usage(&cli_command_plan, "-o: '%s' is the input; it would be replaced", o->out);
    if (cli_input_open(path, &in, &err) != TIDE_OK) return cli_fail(&err);
    in.keep = o->has_budget || o->planning.profile.n_points > 0; // the program may be made several times
    cli_plans plans = {0};
    answer a = {0};
    tide_status st = make_plans(&in, o, &plans, &err);
    if (st == TIDE_OK) st = find_answer(&in, o, &plans, &a, &err);
    if (st == TIDE_OK) st = emit(o, &plans, &a, &err);
    int code = CLI_EXIT_OK;
    if (st != TIDE_OK)
        code = cli_fail(&err);
    else if (a.fits != NULL)
        code = exit_code_of(a.fits);
    answer_deinit(&a);
    cli_plans_deinit(&plans);
    cli_input_close(&in);
    return code;
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    const cli_command *cmd = &cli_command_plan;
    tide_stage stage;
    switch (c) {
    case CLI_OPT_ALL:
        o->planning.all = true;
        return CLI_EXIT_OK;
    case OPT_BUDGET:
        o->has_budget = true;
        return cli_parse_size(cmd, "--budget", optarg, &o->budget) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_CAPACITY:
        o->has_capacity = true;
        if (!cli_parse_size(cmd, "--capacity", optarg, &o->capacity)) return CLI_EXIT_USAGE;
        o->planning.capacity_bytes = o->capacity;
        return CLI_EXIT_OK;
    case OPT_PROFILE:
        return cli_profile_add(cmd, &o->planning.profile, optarg) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_DUMP:
        if (!parse_stage(optarg, &stage))
            return cli_usage(cmd, "--dump-stage: '%s' is none of liveness, graph, colour, plan", optarg);
        o->stage = optarg;
        return CLI_EXIT_OK;
    case 'o':
        o->out = optarg;
        return CLI_EXIT_OK;
    case OPT_FULL:
        o->full = true;
        return CLI_EXIT_OK;
    case 'v':
        o->verbose = true;
        return CLI_EXIT_OK;
    case CLI_OPT_JSON:
        o->json = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    options o = {0};
    int code = cli_parse_options(&cli_command_plan, argc, argv, &o.planning, take_option, &o);
    if (code == CLI_GO_ON && o.has_budget && o.has_capacity)
        code = cli_usage(&cli_command_plan, "--budget and --capacity ask different questions: give one");
    if (code == CLI_GO_ON && o.planning.all && o.stage != NULL)
        code = cli_usage(&cli_command_plan, "--dump-stage shows one strategy: leave --all out");
    if (code == CLI_GO_ON) code = plan_file(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
