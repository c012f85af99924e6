// SPDX-License-Identifier: MIT
//
// tidemark report: a trace, plan or model as a file that people open.
#include <string.h>

#include "cli/view.h"
#include "reports/reports.h"

enum { OPT_RUN = CLI_OPT_FIRST_OWN, OPT_PERSISTENT };

static const char help[] =
    CLI_PLANNING_HELP "  -o FILE             .html, .csv or .json: the ending says what is written; needed\n"
                      "  --run N             run N of a trace (default: the last)\n"
                      "  --persistent        of a plan or model: show weights, inputs and outputs too\n\n"
                      "Example: tidemark report lenet.db -o lenet.html\n";

static int run(int argc, char **argv);
const cli_command cli_command_report = {"report", "[OPTION…] FILE -o OUT", "Write an HTML, CSV or JSON report", help,
                                        run};

typedef struct options {
    cli_view view;
    const char *out;
} options;

static int write_report(const char *path, const options *o) {
    if (cli_same_file(path, o->out))
        return cli_usage(&cli_command_report, "-o: '%s' is the input; it would be replaced", o->out);
    tide_error err = TIDE_ERROR_INIT;
    tide_report_format format;
    if (tide_report_format_of_path(o->out, &format, &err) != TIDE_OK) {
        cli_print_error(&err);
        return CLI_EXIT_USAGE;
    }
    tide_timeline *tl = NULL;
    if (cli_timeline_of_file(path, &o->view, &tl, &err) != TIDE_OK) return cli_fail(&err);
    tide_text text = {0};
    tide_status st = tide_report_render(tl, format, &text, &err);
    if (st == TIDE_OK && text.failed) st = TIDE_FAIL(&err, TIDE_ERR_NOMEM, "no memory for the report");
    if (st == TIDE_OK) st = tide_write_file(o->out, tide_text_str(&text), text.len, &err);
    tide_text_deinit(&text);
    tide_timeline_destroy(tl);
    return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    switch (c) {
    case 'o':
        o->out = optarg;
        return CLI_EXIT_OK;
    case OPT_RUN:
        return cli_parse_count(&cli_command_report, "--run", optarg, INT64_MAX, &o->view.run_id) ? CLI_EXIT_OK
                                                                                                 : CLI_EXIT_USAGE;
    case OPT_PERSISTENT:
        o->view.persistent = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    static const struct option table[] = {CLI_PLANNING_OPTIONS,
                                          {"run", required_argument, NULL, OPT_RUN},
                                          {"persistent", no_argument, NULL, OPT_PERSISTENT},
                                          {"output", required_argument, NULL, 'o'},
                                          {NULL, 0, NULL, 0}};
    options o = {0};
    int code = cli_parse_options(&cli_command_report, argc, argv, table, &o.view.planning, take_option, &o);
    if (code == CLI_GO_ON && o.out == NULL)
        code = cli_usage(&cli_command_report, "-o is needed: where to write the report");
    if (code == CLI_GO_ON) code = write_report(argv[optind], &o);
    cli_planning_deinit(&o.view.planning);
    return code;
}
