// SPDX-License-Identifier: MIT
//
// tidemark check: did this change make memory worse? Measures what a configuration names (or FILEs), compares it
// with a baseline, and names the operators and tensors that made the change (docs/gate.md).
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/memory_report.h"
#include "core/base/host_alloc.h"
#include "reports/reports.h"

enum {
    OPT_CONFIG = CLI_OPT_FIRST_OWN,
    OPT_BASELINE,
    OPT_NO_BASELINE,
    OPT_UPDATE,
    OPT_REASON,
    OPT_BY,
    OPT_BASELINE_OF,
    OPT_WRITE_JSON,
    OPT_MARKDOWN,
    OPT_JUNIT,
    OPT_SARIF,
    OPT_REPORT,
    OPT_ANNOTATIONS,
    OPT_NO_SUMMARY,
    OPT_JOBS,
    OPT_RUN,
    OPT_CONTEXTS,
    OPT_ALLOCATOR,
    OPT_LIMIT,

};

static const char help[] =
    "  --config FILE       what is measured and what it may cost (default: tidemark.toml or tidemark.json here); or\n"
    "                      name FILEs: the default rules, and the options at the end say how they are planned\n"
    "  --baseline FILE     hold against this instead of what the configuration names: a baseline file, and for a\n"
    "                      single FILE also a plan, a trace or another model\n"
    "  --no-baseline       budgets alone\n"
    "  --baseline-of REF   the baseline as git's revision REF has it: for changes that rewrite it\n"
    "  --update-baseline   make the baseline of what is measured; wants --reason, and refuses to in CI\n"
    "  --reason TEXT, --by NAME  why, and who says so (default as git signs); kept in the file\n"
    "  --jobs N            threads that measure what is planned and not run (default 1)\n"
    "  -v, --verbose       every figure, also those that pass; predicted, measured and their difference by kind\n"
    "  --json              print the result as JSON\n"
    "  --write-json FILE   write it\n"
    "  --markdown FILE, --junit FILE, --sarif FILE   the result for a comment, a test report, a code scanner\n"
    "  --report FILE       a page (.html): baseline against current, of each case that failed, warned or changed\n"
    "  --annotations       print workflow commands of GitHub too\n"
    "  --no-summary        do not append Markdown to $GITHUB_STEP_SUMMARY\n\n"
    "How FILEs are planned and run:\n"
    "  --strategy S, --shape NAME=DIMS, --align N, --no-fuse, --no-qdq, --no-passes, --no-views, --no-slices,\n"
    "  --no-in-place, --no-parts, --no-order, --allow-recompute P, --seed N, --own-memory SIZE, --fold-limit SIZE,\n"
    "  --weights W, --bound NAME=DIMS, --bound-limit SIZE\n"
    "                      as of tidemark plan\n"
    "  --intra-threads N   threads of each kernel, as of tidemark plan; also with a configuration\n"
    "  --node-limit N      steps that strategy search may take (default 20000); no clock and no threads decide here\n"
    "  --extent NAME=N     an open extent by its name, in all inputs; may be repeated\n"
    "  --run               run them too\n"
    "  -n RUNS, --contexts N, --allocator A, --limit SIZE, --input-dir DIR\n"
    "                      as of tidemark run (RUNS: 3 by default)\n\n"
    "Byte figures are exact and may not grow at all unless a rule says so; times are told, never judged.\n"
    "Exit: 0 pass or warn, 1 fail, 4 nothing to compare with.\n"
    "Example: tidemark plan model.onnx --node-limit 20000 -o plan.json\n"
    "         tidemark check model.onnx --baseline plan.json\n";
static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"config", required_argument, NULL, OPT_CONFIG},
                                             {"baseline", required_argument, NULL, OPT_BASELINE},
                                             {"no-baseline", no_argument, NULL, OPT_NO_BASELINE},
                                             {"update-baseline", no_argument, NULL, OPT_UPDATE},
                                             {"reason", required_argument, NULL, OPT_REASON},
                                             {"by", required_argument, NULL, OPT_BY},
                                             {"baseline-of", required_argument, NULL, OPT_BASELINE_OF},
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {"write-json", required_argument, NULL, OPT_WRITE_JSON},
                                             {"markdown", required_argument, NULL, OPT_MARKDOWN},
                                             {"junit", required_argument, NULL, OPT_JUNIT},
                                             {"sarif", required_argument, NULL, OPT_SARIF},
                                             {"report", required_argument, NULL, OPT_REPORT},
                                             {"annotations", no_argument, NULL, OPT_ANNOTATIONS},
                                             {"no-summary", no_argument, NULL, OPT_NO_SUMMARY},
                                             {"jobs", required_argument, NULL, OPT_JOBS},
                                             {"verbose", no_argument, NULL, 'v'},
                                             {"run", no_argument, NULL, OPT_RUN},
                                             {"runs", required_argument, NULL, 'n'},
                                             {"contexts", required_argument, NULL, OPT_CONTEXTS},
                                             {"allocator", required_argument, NULL, OPT_ALLOCATOR},
                                             {"limit", required_argument, NULL, OPT_LIMIT},
                                             {"input-dir", required_argument, NULL, CLI_OPT_INPUT_DIR},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_check = {"check", "[OPTION…] [FILE…]", "Fail when memory got worse than the baseline",
                                       help,    option_table,        CLI_OPERANDS_FILES,
                                       run};

// ---- options ----

static int take_text(const char **to) {
    *to = optarg;
    return CLI_EXIT_OK;
}

static int take_flag(bool *to) {
    *to = true;
    return CLI_EXIT_OK;
}

static int take_count(const char *option, uint64_t least, uint64_t most, uint64_t *to) {
    if (!cli_parse_count(&cli_command_check, option, optarg, most, to)) return CLI_EXIT_USAGE;
    if (*to >= least) return CLI_EXIT_OK;
    return cli_usage(&cli_command_check, "%s: at least %d is needed", option, (int)least);
}

/// Takes an option about running FILEs. @return CLI_GO_ON: it is another one
static int take_run_option(cli_check_options *o, int c) {
    tide_gate_plan_settings *s = &o->running;
    switch (c) {
    case OPT_RUN:
        s->run = true;
        o->of_files = "--run";
        return CLI_EXIT_OK;
    case 'n':
        o->of_run = "-n";
        return take_count("-n", 1, 1000000, &s->runs);
    case OPT_CONTEXTS:
        o->of_run = "--contexts";
        return take_count("--contexts", 1, 1024, &s->contexts);
    case OPT_ALLOCATOR:
        o->of_run = "--allocator";
        s->allocator = optarg;
        return cli_parse_allocator(&cli_command_check, optarg) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_LIMIT:
        o->of_run = "--limit";
        return cli_parse_limit(&cli_command_check, optarg, &s->limit_bytes) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case CLI_OPT_INPUT_DIR:
        o->of_files = "--input-dir";
        s->input_dir = optarg;
        return CLI_EXIT_OK;
    default:
        return CLI_GO_ON;
    }
}

static int take_option(cli_check_options *o, int c) {
    switch (c) {
    case OPT_CONFIG:
        return take_text(&o->config);
    case OPT_BASELINE:
        return take_text(&o->baseline);
    case OPT_NO_BASELINE:
        return take_flag(&o->no_baseline);
    case OPT_UPDATE:
        return take_flag(&o->update);
    case OPT_REASON:
        return take_text(&o->reason);
    case OPT_BY:
        return take_text(&o->by);
    case OPT_BASELINE_OF:
        return take_text(&o->base_ref);
    case OPT_WRITE_JSON:
        return take_text(&o->write_json);
    case OPT_MARKDOWN:
        return take_text(&o->markdown);
    case OPT_JUNIT:
        return take_text(&o->junit);
    case OPT_SARIF:
        return take_text(&o->sarif);
    case OPT_REPORT:
        return take_text(&o->report);
    case OPT_ANNOTATIONS:
        return take_flag(&o->annotations);
    case OPT_NO_SUMMARY:
        return take_flag(&o->no_summary);
    case OPT_JOBS:
        return take_count("--jobs", 1, 256, &o->jobs);
    case CLI_OPT_JSON:
        return take_flag(&o->json);
    case 'v':
        return take_flag(&o->verbose);
    default:
        return take_run_option(o, c);
    }
}

static int parse(int argc, char **argv, cli_check_options *o) {
    int c;
    while ((c = cli_next_option(&cli_command_check, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == CLI_OPT_TIME_LIMIT || c == CLI_OPT_THREADS)
            return cli_usage(&cli_command_check, "plans of a gate depend on no clock and no threads: use --node-limit");
        const int taken = cli_planning_option(&cli_command_check, &o->planning, c);
        if (taken < 0 || (taken == 0 && take_option(o, c) != CLI_EXIT_OK)) return CLI_EXIT_USAGE;
        if (taken > 0 && c != CLI_OPT_INTRA_THREADS)
            o->of_files = c == CLI_OPT_EXTENT ? "--extent" : "what says how models are planned";
    }
    return CLI_GO_ON;
}

// ---- options that exclude each other ----

static int check_update_options(const cli_check_options *o) {
    const cli_command *cmd = &cli_command_check;
    if (!o->update) {
        if (o->reason != NULL || o->by != NULL)
            return cli_usage(cmd, "%s is of --update-baseline", o->reason != NULL ? "--reason" : "--by");
        return CLI_GO_ON;
    }
    const char *ci = tide_gate_ci_name();
    if (ci != NULL)
        return cli_usage(cmd, "--update-baseline: $%s says that this is CI: a baseline is for people to change", ci);
    if (o->reason == NULL || o->reason[strspn(o->reason, " \t\r\n")] == '\0')
        return cli_usage(cmd, "--update-baseline: --reason says why, and is kept beside the figures");
    if (o->no_baseline || o->base_ref != NULL)
        return cli_usage(cmd, "--update-baseline and %s contradict each other",
                         o->no_baseline ? "--no-baseline" : "--baseline-of");
    if (o->baseline != NULL && strcmp(o->baseline, "-") == 0)
        return cli_usage(cmd, "--update-baseline: standard input cannot be written to");
    if (o->json || o->write_json != NULL || o->markdown != NULL || o->junit != NULL || o->sarif != NULL ||
        o->report != NULL || o->annotations)
        return cli_usage(cmd, "--update-baseline judges nothing: there is no result to be written");
    return CLI_GO_ON;
}

static int check_options(const cli_check_options *o, int n_files) {
    const cli_command *cmd = &cli_command_check;
    tide_report_format format;
    if (o->report != NULL &&
        (tide_report_format_of_path(o->report, &format, NULL) != TIDE_OK || format != TIDE_REPORT_HTML))
        return cli_usage(cmd, "--report: '%s' does not end in .html", o->report);
    if (n_files > 0 && o->config != NULL)
        return cli_usage(cmd, "give --config or FILEs: a configuration names its own");
    if (n_files == 0 && (o->of_files != NULL || o->of_run != NULL))
        return cli_usage(cmd, "%s is for FILEs; the configuration has it for its models",
                         o->of_files != NULL ? o->of_files : o->of_run);
    if (o->of_run != NULL && !o->running.run) return cli_usage(cmd, "%s is of --run", o->of_run);
    if (o->no_baseline && (o->baseline != NULL || o->base_ref != NULL))
        return cli_usage(cmd, "--no-baseline and %s contradict each other",
                         o->baseline != NULL ? "--baseline" : "--baseline-of");
    if (o->base_ref != NULL && (o->base_ref[0] == '\0' || o->base_ref[0] == '-' || strchr(o->base_ref, ':') != NULL))
        return cli_usage(cmd, "--baseline-of: '%s' is no revision", o->base_ref);
    if (o->base_ref != NULL && o->baseline != NULL && strcmp(o->baseline, "-") == 0)
        return cli_usage(cmd, "--baseline-of: standard input is in no revision");
    return check_update_options(o);
}

// ---- configuration ----

/// The default configuration file; NULL after the message was printed.
static const char *find_config(int *code) {
    static const char *const names[] = {"tidemark.toml", "tidemark.json"};
    const bool toml = access(names[0], F_OK) == 0, json = access(names[1], F_OK) == 0;
    *code = CLI_EXIT_USAGE;
    if (toml && json)
        cli_usage(&cli_command_check, "%s and %s are both here: --config says which one counts", names[0], names[1]);
    else if (!toml && !json)
        cli_usage(&cli_command_check, "nothing to check: no FILE, no --config, and no %s or %s here", names[0],
                  names[1]);
    return toml == json ? NULL : toml ? names[0] : names[1];
}

static tide_gate_plan_settings settings_of(const cli_check_options *o) {
    tide_gate_plan_settings s = o->running;
    const cli_planning *p = &o->planning;
    s.strategy = p->strategy;
    s.align_bytes = p->align_bytes;
    s.seed = p->seed;
    s.node_limit = p->node_limit;
    s.no_fuse = p->no_fuse;
    s.no_qdq = p->no_qdq;
    s.recompute_share = p->recompute_share;
    for (int k = 0; k < TIDE_N_PASSES; k++) s.no_passes |= p->no_pass[k] ? 1U << k : 0;
    s.extents = p->extent_list;
    s.n_extents = p->n_extents;
    s.bounds = p->bounds.texts;
    s.n_bounds = p->bounds.n;
    s.bound_limit_bytes = p->bound_limit_bytes;
    s.has_bound_limit = p->has_bound_limit;
    return s;
}

/// The values of --shape as text again, as settings need them. *texts [shapes.n], owned.
static tide_status shape_texts(const cli_shapes *shapes, char ***texts, tide_error *err) {
    *texts = tide_host_calloc(shapes->n + 1, sizeof **texts);
    bool good = *texts != NULL;
    for (size_t i = 0; good && i < shapes->n; i++) {
        char dims[256];
        tide_text t = {0};
        tide_text_addf(&t, "%s=%s", shapes->items[i].name, cli_shape_text(&shapes->items[i].shape, dims, sizeof dims));
        good = !t.failed;
        (*texts)[i] = t.data; // moved
    }
    return good ? TIDE_OK : TIDE_NO_MEMORY(err, "for %zu shapes", shapes->n);
}

static tide_status config_of_files(const cli_check_options *o, char **files, size_t n, tide_gate_config **out,
                                   tide_error *err) {
    tide_gate_plan_settings s = settings_of(o);
    char **shapes = NULL;
    const char **paths = tide_host_calloc(n + 1, sizeof *paths);
    tide_status st = shape_texts(&o->planning.shapes, &shapes, err);
    if (st == TIDE_OK && paths == NULL) st = TIDE_NO_MEMORY(err, "for %zu FILEs", n);
    for (size_t i = 0; st == TIDE_OK && i < n; i++) paths[i] = files[i];
    s.shapes = (const char *const *)shapes;
    s.n_shapes = o->planning.shapes.n;
    if (st == TIDE_OK) st = tide_gate_config_of_files(paths, n, &s, out, err);
    for (size_t i = 0; shapes != NULL && i < o->planning.shapes.n; i++) tide_host_free(shapes[i]);
    tide_host_free(shapes);
    tide_host_free(paths);
    return st;
}

// ---- work ----

/// Writes the verdict to all outputs.
static int write_result(const cli_check_options *o, tide_gate_result *r) {
    const int code = cli_check_write(o, r);
    tide_gate_result_deinit(r);
    return code;
}

/// Prints the reason of exit code 4 on stderr too, so that a log of errors shows it.
static void print_not_comparable(const tide_gate_result *r) {
    tide_error err = TIDE_ERROR_INIT;
    if (r->verdict != TIDE_GATE_NOT_COMPARABLE_VERDICT) return;
    TIDE_FAIL(&err, TIDE_ERR_INCOMPARABLE, "%s", r->reason != NULL ? r->reason : "not everything can be compared");
    for (size_t i = 0; r->reason == NULL && i < r->n; i++) {
        const tide_gate_judged *c = &r->cases[i];
        if (c->verdict != TIDE_GATE_NOT_COMPARABLE_VERDICT) continue;
        tide_error_where(&err, "%s", c->key);
        tide_error_note(&err, "%s", c->reason != NULL ? c->reason : "");
        break;
    }
    cli_print_error(&err);
}

static int nothing_to_compare(const cli_check_options *o, const tide_gate_config *config, const tide_error *why) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_result r = {0};
    bool wanted;
    const char *path = o->baseline != NULL ? o->baseline : tide_gate_config_baseline(config, &wanted);
    tide_text command = {0};
    const cli_check_baseline none = {0};
    cli_check_command(o, config, &none, &command);
    tide_error shown = *why;
    if (o->base_ref == NULL && path != NULL && command.len > 0 && !command.failed) {
        char clean[1024];
        if (why->hint[0] != '\0' && strstr(why->hint, "tidemark check") == NULL)
            tide_error_note(&shown, "%s%s%s", why->note, why->note[0] != '\0' ? "; " : "", why->hint); // "did you mean"
        tide_error_hint(&shown, "look at what is measured, then: %s", cli_clean(command.data, clean, sizeof clean));
    }
    cli_print_error(&shown);
    if (tide_gate_nothing(path != NULL ? path : "", tide_gate_config_path(config), why, &r, &err) != TIDE_OK)
        return cli_fail(&err);
    r.command = command.data;
    const int code = write_result(o, &r);
    tide_text_deinit(&command);
    return code;
}

static int judge(const cli_check_options *o, const tide_gate_config *config, const cli_check_baseline *baseline,
                 tide_gate_cases *cases) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_result r = {0};
    if (baseline->is_measured) cli_check_match_words(&baseline->base.cases, cases);
    tide_status st = tide_gate_judge(config, baseline->is_wanted ? &baseline->base : NULL, cases, &r, &err);
    if (st == TIDE_OK) st = cli_check_accept(config, baseline, cases, &r, &err);
    if (st == TIDE_OK) {
        tide_text command = {0};
        cli_check_command(o, config, baseline, &command);
        r.command = command.data;
        r.is_final = command.data == NULL;
        print_not_comparable(&r);
        const int code = write_result(o, &r);
        tide_text_deinit(&command);
        return code;
    }
    tide_gate_result_deinit(&r);
    return cli_fail(&err);
}

/// Reads the baseline first: without one there is no need to measure.
static int check(const cli_check_options *o, const tide_gate_config *config) {
    tide_error err = TIDE_ERROR_INIT;
    cli_check_baseline baseline = {0};
    tide_gate_cases cases = {0};
    size_t n;
    const tide_gate_target *targets = tide_gate_config_targets(config, &n);
    int code;
    tide_status st = TIDE_OK;
    if (!cli_check_outputs_differ(&cli_command_check, o, config)) return CLI_EXIT_USAGE;
    if (!o->update) st = cli_check_baseline_load(o, config, &baseline, &err);
    if (st == TIDE_ERR_INCOMPARABLE) return nothing_to_compare(o, config, &err);
    if (st == TIDE_OK)
        st = cli_check_measure(targets, n, !baseline.is_with_scratch, o->jobs != 0 ? o->jobs : 1, &cases, &err);
    if (st != TIDE_OK)
        code = cli_fail(&err);
    else
        code = o->update ? cli_check_baseline_update(o, config, &cases) : judge(o, config, &baseline, &cases);
    cli_check_baseline_deinit(&baseline);
    tide_gate_cases_deinit(&cases);
    return code;
}

static int check_files(const cli_check_options *o, char **files, int n_files) {
    tide_error err = TIDE_ERROR_INIT;
    tide_gate_config *config = NULL;
    tide_status st;
    int code = CLI_EXIT_OK;
    if (n_files > 0) {
        st = config_of_files(o, files, (size_t)n_files, &config, &err);
    } else {
        const char *path = o->config != NULL ? o->config : find_config(&code);
        if (path == NULL) return code;
        st = tide_gate_config_read(path, &config, &err);
    }
    if (st != TIDE_OK) return cli_fail(&err);
    bool wanted;
    if (o->update && o->baseline == NULL && tide_gate_config_baseline(config, &wanted) == NULL)
        code = cli_usage(&cli_command_check, "--update-baseline: no baseline is named, here or in the configuration");
    else
        code = check(o, config);
    tide_gate_config_destroy(config);
    return code;
}

static int run(int argc, char **argv) {
    // A copy of the words as they were typed, because getopt_long reorders them.
    char **words = tide_host_calloc((size_t)argc + 1, sizeof *words);
    if (words == NULL) cli_option_no_memory("the command line");
    memcpy(words, argv + 1, (size_t)(argc - 1) * sizeof *words);
    cli_check_options o = {.words = words, .n_words = (size_t)(argc - 1)};
    int code = parse(argc, argv, &o);
    if (code == CLI_GO_ON) code = check_options(&o, argc - optind);
    if (code == CLI_GO_ON) code = check_files(&o, argv + optind, argc - optind);
    cli_planning_deinit(&o.planning);
    tide_host_free(words);
    return code;
}
