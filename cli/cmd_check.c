// SPDX-License-Identifier: MIT
//
// tidemark check: is this plan worse than the baseline? Exit 0 no, 1 yes, 4 there is nothing to compare with.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/planning.h"
#include "planner/plan_check.h"

enum { OPT_BASELINE = CLI_OPT_FIRST_OWN };

static const char help[] = CLI_PLANNING_HELP
    "  --baseline B        plan (JSON), trace or model to hold FILE against; needed\n"
    "  --json              print the verdict as JSON\n\n"
    "Byte figures are exact and may not grow at all. Example:\n"
    "  tidemark plan model.onnx -o baseline.json; tidemark check model.onnx --baseline baseline.json\n";

static int run(int argc, char **argv);
const cli_command cli_command_check = {"check", "[OPTION…] FILE --baseline B", "Fail when a plan got worse", help, run};

typedef struct options {
    cli_planning planning;
    const char *baseline;
    bool json;
} options;

// ---- output ----

static json_t *rules_json(const tide_check_result *result, const char *model) {
    json_t *rules = json_array();
    for (size_t i = 0; i < TIDE_N_CHECK_METRICS; i++) {
        const tide_check_rule *r = &result->rules[i];
        json_t *row = json_object();
        json_object_set_new(row, "id", json_string(tide_check_metric_name(r->metric)));
        json_object_set_new(row, "model", cli_json_text(model));
        json_object_set_new(row, "metric", json_string(tide_check_metric_name(r->metric)));
        json_object_set_new(row, "baseline", cli_json_bytes(r->baseline));
        json_object_set_new(row, "current", cli_json_bytes(r->current));
        json_object_set_new(row, "delta", json_integer((json_int_t)r->current - (json_int_t)r->baseline));
        json_object_set_new(row, "verdict", json_string(r->pass ? "pass" : "fail"));
        json_t *causes = json_array();
        for (size_t k = 0; k < r->n_causes; k++) {
            json_t *cause = json_object();
            json_object_set_new(cause, "tensor", cli_json_text(r->causes[k].name));
            json_object_set_new(cause, "baseline_bytes", cli_json_bytes(r->causes[k].baseline_bytes));
            json_object_set_new(cause, "current_bytes", cli_json_bytes(r->causes[k].current_bytes));
            json_array_append_new(causes, cause);
        }
        json_object_set_new(row, "causes", causes);
        json_array_append_new(rules, row);
    }
    return rules;
}

static void print_verdict_json(const char *verdict, int code, const tide_check_result *result, const char *model,
                               const tide_error *why) {
    json_t *doc = cli_json_document("check");
    json_object_set_new(doc, "verdict", json_string(verdict));
    json_object_set_new(doc, "exit_code", json_integer(code));
    json_object_set_new(doc, "rules", result != NULL ? rules_json(result, model) : json_array());
    if (why != NULL) json_object_set_new(doc, "reason", cli_json_text(why->msg));
    cli_json_print(doc);
}

static void print_text(const tide_check_result *result, const char *model) {
    char name[256];
    printf("%s: %s\n\n%-18s %16s %16s %16s\n", cli_clean(model, name, sizeof name), result->pass ? "pass" : "FAIL",
           "bytes", "baseline", "current", "change");
    for (size_t i = 0; i < TIDE_N_CHECK_METRICS; i++) {
        const tide_check_rule *r = &result->rules[i];
        printf("%-18s %16" PRIu64 " %16" PRIu64 " %+16" PRId64 "%s\n", tide_check_metric_name(r->metric), r->baseline,
               r->current, (int64_t)(r->current - r->baseline), r->pass ? "" : "  worse");
        for (size_t k = 0; k < r->n_causes; k++)
            printf("    %s: %" PRIu64 " -> %" PRIu64 "%s\n", cli_clean(r->causes[k].name, name, sizeof name),
                   r->causes[k].baseline_bytes, r->causes[k].current_bytes,
                   r->causes[k].is_new                ? " (new)"
                   : r->causes[k].baseline_bytes == 0 ? " (shared memory before)"
                                                      : "");
        if (!r->pass && r->n_causes == 0)
            printf("    no tensor takes more than before: more of them are alive together\n");
    }
}

// ---- work ----

static int not_comparable(const options *o, const tide_error *err) {
    if (o->json) print_verdict_json("not_comparable", CLI_EXIT_NO_BASELINE, NULL, NULL, err);
    cli_print_error(err);
    return CLI_EXIT_NO_BASELINE;
}

static int check_plans(const tide_memory_plan *baseline, const tide_memory_plan *current, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_check_result result;
    const tide_status st = tide_plan_check(baseline, current, &result, &err);
    if (st == TIDE_ERR_INCOMPARABLE) return not_comparable(o, &err);
    if (st != TIDE_OK) return cli_fail(&err);
    const int code = result.pass ? CLI_EXIT_OK : CLI_EXIT_CHECK_FAILED;
    const char *model = current->lifetimes.model;
    if (o->json)
        print_verdict_json(result.pass ? "pass" : "fail", code, &result, model, NULL);
    else
        print_text(&result, model);
    return code;
}

static int check_file(const char *path, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    if (strcmp(o->baseline, "-") != 0 && access(o->baseline, F_OK) != 0) {
        TIDE_FAIL(&err, TIDE_ERR_INCOMPARABLE, "there is no baseline '%s'", o->baseline);
        tide_error_hint(&err, "make one: tidemark plan %s -o %s", path, o->baseline);
        return not_comparable(o, &err);
    }
    tide_memory_plan *baseline = NULL, *current = NULL;
    int code;
    if (cli_plan_of_file(o->baseline, &o->planning, &baseline, &err) != TIDE_OK ||
        cli_plan_of_file(path, &o->planning, &current, &err) != TIDE_OK) {
        // A baseline that cannot be read is no regression and no pass: the exit says that nothing was compared.
        code = baseline == NULL ? not_comparable(o, &err) : cli_fail(&err);
    } else {
        code = check_plans(baseline, current, o);
    }
    tide_memory_plan_destroy(baseline);
    tide_memory_plan_destroy(current);
    return code;
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    if (c == OPT_BASELINE)
        o->baseline = optarg;
    else if (c == CLI_OPT_JSON)
        o->json = true;
    else
        return CLI_EXIT_USAGE;
    return CLI_EXIT_OK;
}

static int run(int argc, char **argv) {
    static const struct option table[] = {CLI_PLANNING_OPTIONS,
                                          {"baseline", required_argument, NULL, OPT_BASELINE},
                                          {"json", no_argument, NULL, CLI_OPT_JSON},
                                          {NULL, 0, NULL, 0}};
    options o = {0};
    int code = cli_parse_options(&cli_command_check, argc, argv, table, &o.planning, take_option, &o);
    if (code == CLI_GO_ON && o.baseline == NULL)
        code = cli_usage(&cli_command_check, "--baseline is needed: what to hold FILE against");
    if (code == CLI_GO_ON) code = check_file(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
