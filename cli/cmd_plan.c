// SPDX-License-Identifier: MIT
//
// tidemark plan: plan a model's memory before it runs, and say whether it fits.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/planning.h"
#include "core/base/host_alloc.h"

enum { OPT_BUDGET = CLI_OPT_FIRST_OWN, OPT_CAPACITY, OPT_DUMP };

static const char help[] =
    CLI_PLANNING_HELP "  --all               every strategy there is, one row each\n"
                      "  --budget SIZE       will everything fit (buffer, weights, inputs, outputs)? exit 1 if not\n"
                      "  --capacity SIZE     will the planned buffer alone fit? exit 1 if not\n"
                      "  --dump-stage STAGE  print liveness, graph, colour or plan, and nothing else\n"
                      "  -o FILE             write the plan as JSON (\"-\": standard output)\n"
                      "  --json              print the plan as JSON\n\n"
                      "Example: tidemark plan --all sample_graphs/lenet5.json\n";

static int run(int argc, char **argv);
const cli_command cli_command_plan = {"plan", "[OPTION…] FILE", "Plan the memory of a model, graph or lifetimes file",
                                      help, run};

typedef struct options {
    cli_planning planning;
    bool has_budget, has_capacity, json;
    uint64_t budget, capacity;
    const char *out;
    const char *stage;
} options;

/// Whether `bytes` (with nothing smaller possible than `floor`) fits into `limit`.
static const char *fits_word(uint64_t bytes, uint64_t floor_bytes, uint64_t limit) {
    if (bytes <= limit) return "yes";
    return floor_bytes > limit ? "no" : "unknown";
}

/// The answer for the smallest plan at hand; NULL when nothing was asked.
static const char *answer_fits(const options *o, const cli_plans *plans, uint64_t *needs, uint64_t *limit) {
    if (!o->has_budget && !o->has_capacity) return NULL;
    const tide_memory_plan *best = plans->plans[0];
    for (size_t i = 1; i < plans->n; i++) {
        if (plans->plans[i]->bytes < best->bytes) best = plans->plans[i];
    }
    const uint64_t rest = o->has_budget ? cli_plan_total_bytes(best) - best->bytes : 0;
    *needs = best->bytes + rest;
    *limit = o->has_budget ? o->budget : o->capacity;
    return fits_word(*needs, best->lower_bound_bytes + rest, *limit);
}

static bool parse_stage(const char *text, tide_stage *out) {
    static const char *const names[] = {"liveness", "graph", "colour", "plan"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (tide_stage)i;
        return true;
    }
    return false;
}

static tide_status render_text(const options *o, const cli_plans *plans, const char *fits, uint64_t needs,
                               uint64_t limit, tide_text *out, tide_error *err) {
    const tide_memory_plan *const *list = (const tide_memory_plan *const *)plans->plans;
    if (o->stage != NULL) {
        tide_stage stage;
        if (!parse_stage(o->stage, &stage)) return TIDE_FAIL(err, TIDE_ERR_INVALID, "no stage '%s'", o->stage);
        return tide_plan_dump_stage(list[0], stage, out, err);
    }
    if (o->planning.all)
        tide_plan_table(list, plans->n, out);
    else
        tide_plan_report(list[0], out);
    if (fits != NULL) {
        char a[24], b[24];
        tide_text_addf(out, "\nfits: %s (needs %s of %s)\n", fits, tide_format_bytes(needs, a, sizeof a),
                       tide_format_bytes(limit, b, sizeof b));
    }
    return TIDE_OK;
}

static tide_status emit(const options *o, const cli_plans *plans, const char *fits, uint64_t needs, uint64_t limit,
                        tide_error *err) {
    const tide_memory_plan *const *list = (const tide_memory_plan *const *)plans->plans;
    tide_text text = {0}, json = {0};
    tide_status st = TIDE_OK;
    if (o->json || o->out != NULL) st = tide_plan_to_json(list, plans->n, fits, &json, err);
    if (st == TIDE_OK && !o->json) st = render_text(o, plans, fits, needs, limit, &text, err);
    if (st == TIDE_OK && (json.failed || text.failed)) st = TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory for the report");
    if (st == TIDE_OK && o->out != NULL) st = tide_write_file(o->out, json.data, json.len, err);
    const bool out_is_stdout = o->out != NULL && strcmp(o->out, "-") == 0;
    if (st == TIDE_OK && !out_is_stdout) fputs(o->json ? json.data : tide_text_str(&text), stdout);
    tide_text_deinit(&text);
    tide_text_deinit(&json);
    return st;
}

static int plan_file(const char *path, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_input in;
    if (cli_same_file(path, o->out))
        return cli_usage(&cli_command_plan, "-o: '%s' is the input; it would be replaced", o->out);
    if (cli_input_open(path, &in, &err) != TIDE_OK) return cli_fail(&err);
    cli_plans plans = {0};
    tide_status st;
    if (in.kind == CLI_INPUT_PLAN && !o->planning.all) {
        plans.plans = tide_host_calloc(1, sizeof(tide_memory_plan *));
        st = plans.plans == NULL
                 ? TIDE_FAIL(&err, TIDE_ERR_NOMEM, "no memory for a plan")
                 : tide_plan_from_json(in.data, in.len, path, o->planning.strategy, &plans.plans[0], &err);
        if (st == TIDE_OK) plans.n = 1;
    } else if (in.kind == CLI_INPUT_TRACE) {
        st = TIDE_FAIL(&err, TIDE_ERR_BAD_INPUT, "'%s' is a trace; look at it with 'tidemark tui' or 'report'", path);
    } else {
        st = cli_plans_make(&in, &o->planning, &plans, &err);
    }
    cli_input_close(&in);
    uint64_t needs = 0, limit = 0;
    const char *fits = NULL;
    if (st == TIDE_OK) {
        fits = answer_fits(o, &plans, &needs, &limit);
        st = emit(o, &plans, fits, needs, limit, &err);
    }
    int code = CLI_EXIT_OK;
    if (st != TIDE_OK)
        code = cli_fail(&err);
    else if (fits != NULL && strcmp(fits, "yes") != 0)
        code = CLI_EXIT_CHECK_FAILED;
    cli_plans_deinit(&plans);
    return code;
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    tide_stage stage;
    switch (c) {
    case CLI_OPT_ALL:
        o->planning.all = true;
        return CLI_EXIT_OK;
    case OPT_BUDGET:
        o->has_budget = true;
        return cli_parse_size(&cli_command_plan, "--budget", optarg, &o->budget) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_CAPACITY:
        o->has_capacity = true;
        return cli_parse_size(&cli_command_plan, "--capacity", optarg, &o->capacity) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_DUMP:
        if (!parse_stage(optarg, &stage))
            return cli_usage(&cli_command_plan, "--dump-stage: '%s' is none of liveness, graph, colour, plan", optarg);
        o->stage = optarg;
        return CLI_EXIT_OK;
    case 'o':
        o->out = optarg;
        return CLI_EXIT_OK;
    case CLI_OPT_JSON:
        o->json = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    static const struct option table[] = {CLI_PLANNING_OPTIONS,
                                          {"all", no_argument, NULL, CLI_OPT_ALL},
                                          {"budget", required_argument, NULL, OPT_BUDGET},
                                          {"capacity", required_argument, NULL, OPT_CAPACITY},
                                          {"dump-stage", required_argument, NULL, OPT_DUMP},
                                          {"output", required_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, CLI_OPT_JSON},
                                          {NULL, 0, NULL, 0}};
    options o = {0};
    int code = cli_parse_options(&cli_command_plan, argc, argv, table, &o.planning, take_option, &o);
    if (code == CLI_GO_ON && o.has_budget && o.has_capacity)
        code = cli_usage(&cli_command_plan, "--budget and --capacity ask different questions: give one");
    if (code == CLI_GO_ON && o.planning.all && o.stage != NULL)
        code = cli_usage(&cli_command_plan, "--dump-stage shows one strategy: leave --all out");
    if (code == CLI_GO_ON) code = plan_file(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
