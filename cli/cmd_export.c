// SPDX-License-Identifier: MIT
//
// tidemark export: the lifetimes of any FILE in a form that others read.
#include <stdio.h>
#include <string.h>

#include "cli/planning.h"
#include "core/base/output.h"

enum { OPT_TO = CLI_OPT_FIRST_OWN, OPT_WITH_OFFSETS };

static const char help[] = CLI_PLANNING_HELP
    "  --to FORM           csv (ours, holds the whole problem), json (everything), minimalloc (its own columns); "
    "needed\n"
    "  --with-offsets      add where a plan puts things: of a model one is made, a plan file or trace has its own\n"
    "  -o FILE             write to FILE (default: standard output)\n\n"
    "Example: tidemark export --to minimalloc -o lenet.csv sample_graphs/lenet5.json\n";

static int run(int argc, char **argv);
const cli_command cli_command_export = {"export", "[OPTION…] FILE --to FORM", "Write lifetimes for other tools", help,
                                        run};

typedef tide_status (*writer)(const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out, tide_error *err);

static const struct {
    const char *name;
    writer write;
} forms[] = {
    {"csv", tide_lifetimes_to_csv}, {"json", tide_lifetimes_to_json}, {"minimalloc", tide_lifetimes_to_minimalloc}};

typedef struct options {
    cli_planning planning;
    writer write; // NULL: --to was not given
    bool with_offsets;
    const char *out;
} options;

/// What has no lifetime in the list.
static void tell_of_dynamic(const tide_lifetimes *lt) {
    char name[128];
    if (lt->n_dynamic == 0) return;
    fprintf(stderr, "note: %zu tensor%s sized while running, and not in the list: '%s'%s\n", lt->n_dynamic,
            lt->n_dynamic == 1 ? " is" : "s are", cli_clean(lt->dynamic[0], name, sizeof name),
            lt->n_dynamic == 1 ? "" : " and others");
}

static tide_status make_text(cli_input *in, const options *o, tide_text *out, tide_error *err) {
    tide_memory_plan *plan = NULL;
    tide_lifetimes lt = {0};
    tide_status st;
    if (o->with_offsets) {
        st = cli_plan_of_input(in, &o->planning, &plan, err);
        if (st == TIDE_OK) tell_of_dynamic(&plan->lifetimes);
        if (st == TIDE_OK) st = o->write(&plan->lifetimes, plan, out, err);
    } else {
        st = cli_lifetimes_of_input(in, &o->planning, &lt, err);
        if (st == TIDE_OK) tell_of_dynamic(&lt);
        if (st == TIDE_OK) st = o->write(&lt, NULL, out, err);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    return st;
}

static int export_file(const char *path, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_input in;
    if (cli_same_file(path, o->out))
        return cli_usage(&cli_command_export, "-o: '%s' is the input; it would be replaced", o->out);
    if (cli_input_open(path, &in, &err) != TIDE_OK) return cli_fail(&err);
    tide_text text = {0};
    tide_status st = make_text(&in, o, &text, &err);
    if (st == TIDE_OK) st = tide_write_file(o->out, text.data, text.len, &err);
    tide_text_deinit(&text);
    cli_input_close(&in);
    return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    switch (c) {
    case OPT_TO:
        o->write = NULL;
        for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
            if (strcmp(optarg, forms[k].name) == 0) o->write = forms[k].write;
        }
        if (o->write == NULL)
            return cli_usage(&cli_command_export, "--to: '%s' is none of csv, json, minimalloc", optarg);
        return CLI_EXIT_OK;
    case OPT_WITH_OFFSETS:
        o->with_offsets = true;
        return CLI_EXIT_OK;
    case 'o':
        o->out = optarg;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    static const struct option table[] = {CLI_PLANNING_OPTIONS,
                                          {"to", required_argument, NULL, OPT_TO},
                                          {"with-offsets", no_argument, NULL, OPT_WITH_OFFSETS},
                                          {"output", required_argument, NULL, 'o'},
                                          {NULL, 0, NULL, 0}};
    options o = {.out = "-"};
    int code = cli_parse_options(&cli_command_export, argc, argv, table, &o.planning, take_option, &o);
    if (code == CLI_GO_ON && o.write == NULL)
        code = cli_usage(&cli_command_export, "--to FORM is needed: csv, json or minimalloc");
    cli_allow_dynamic(&o.planning);
    if (code == CLI_GO_ON) code = export_file(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
