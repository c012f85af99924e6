// SPDX-License-Identifier: MIT
//
// tidemark report: a trace, plan or model, or two of them, as a file that people open.
#include <string.h>

#include "cli/replay_settings.h"
#include "cli/view.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "reports/reports.h"

enum { OPT_RUN = CLI_OPT_FIRST_OWN, OPT_WHOLE, OPT_CAPACITY, OPT_TABLE, OPT_EXACT, OPT_ROWS, OPT_SCRIPT };

static const char help[] = CLI_PLANNING_HELP
    "  -o FILE             .html, .csv, .json, .md, .svg or .txt: the ending says what is written; needed\n"
    "  --run N             run N of a trace (default: the last)\n"
    "  --whole             all of a trace, whatever its runs\n"
    "  --capacity SIZE     will it fit? A line in the picture, and an answer\n"
    "  --table NAME        of .csv: which table (default items; of the second file b.NAME);\n"
    "                      a wrong name lists them all\n"
    "  --exact-names       of .csv: what a spreadsheet would take for a formula gets no ' in front\n"
    "  --rows N            of .md and .txt: rows of each table (default 10)\n"
    "  --split-script      of .html: script and style go into files of their own beside the page (.js, .css), for\n"
    "                      servers that forbid them inside (Content-Security-Policy)\n\n"
    "With a second FILE the report compares the two.\n"
    "Example: tidemark report lenet.db -o lenet.html\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"run", required_argument, NULL, OPT_RUN},
                                             {"whole", no_argument, NULL, OPT_WHOLE},
                                             {"capacity", required_argument, NULL, OPT_CAPACITY},
                                             {"table", required_argument, NULL, OPT_TABLE},
                                             {"exact-names", no_argument, NULL, OPT_EXACT},
                                             {"rows", required_argument, NULL, OPT_ROWS},
                                             {"split-script", no_argument, NULL, OPT_SCRIPT},
                                             {"output", required_argument, NULL, 'o'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_report = {"report",
                                        "[OPTION…] FILE [FILE_B] -o OUT",
                                        "Write a report: HTML, CSV, JSON, Markdown, SVG or text",
                                        help,
                                        option_table,
                                        CLI_OPERANDS_FILES,
                                        run};

typedef struct options {
    cli_view view;
    tide_report_options report;
    bool split_script;
    const char *out;
} options;

/// "lenet.html" has "lenet.js" and "lenet.css" beside it. @param name  out: what the page calls it
static tide_status write_beside(const options *o, const char *ending, void (*content)(tide_text *out), tide_text *name,
                                tide_error *err) {
    const char *dot = strrchr(o->out, '.');
    tide_text path = {0}, text = {0};
    tide_text_add_n(&path, o->out, (size_t)(dot - o->out));
    tide_text_add(&path, ending);
    const char *slash = strrchr(tide_text_str(&path), '/');
    tide_text_add(name, slash != NULL ? slash + 1 : tide_text_str(&path));
    content(&text);
    const tide_status st = path.failed || text.failed || name->failed
                               ? TIDE_NO_MEMORY(err, "for the page's parts")
                               : tide_write_file(tide_text_str(&path), tide_text_str(&text), text.len, err);
    tide_text_deinit(&path);
    tide_text_deinit(&text);
    return st;
}

static tide_status write_report(const options *o, tide_subject *a, tide_subject *b, tide_error *err) {
    tide_report_options report = o->report;
    tide_text script = {0}, style = {0};
    tide_status st = TIDE_OK;
    if (o->split_script) {
        st = write_beside(o, ".js", tide_report_script, &script, err);
        if (st == TIDE_OK) st = write_beside(o, ".css", tide_report_style, &style, err);
        report.script_href = tide_text_str(&script);
        report.style_href = tide_text_str(&style);
    }
    if (st == TIDE_OK) st = cli_subject_report(a, b, &report, o->out, err);
    tide_text_deinit(&script);
    tide_text_deinit(&style);
    return st;
}

/// What a file's allocator would take with other settings; nothing for what is no trace.
static tide_status try_settings(const options *o, const char *path, tide_subject *s, tide_report_settings *out,
                                tide_error *err) {
    tide_trace *t = tide_subject_trace(s);
    if (t == NULL) return TIDE_OK;
    return cli_replay_settings_try(t, path, o->report.capacity_bytes, out, err);
}

static tide_status write_all(options *o, char **files, const cli_subject *a, const cli_subject *b, tide_error *err) {
    tide_report_settings settings[2] = {0};
    TIDE_TRY(try_settings(o, files[0], a->subject, &settings[0], err));
    if (b->subject != NULL) TIDE_TRY(try_settings(o, files[1], b->subject, &settings[1], err));
    o->report.settings[0] = &settings[0];
    o->report.settings[1] = &settings[1];
    return write_report(o, a->subject, b->subject, err);
}

static int report_on(char **files, int n_files, options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_report_format format;
    for (int i = 0; i < n_files; i++)
        if (cli_same_file(files[i], o->out))
            return cli_usage(&cli_command_report, "-o: '%s' is the input; it would be replaced", o->out);
    if (tide_report_format_of_path(o->out, &format, &err) != TIDE_OK) {
        cli_print_error(&err);
        return CLI_EXIT_USAGE;
    }
    if (o->report.table != NULL && format != TIDE_REPORT_CSV)
        return cli_usage(&cli_command_report, "--table: only a .csv is one table");
    if (o->split_script && format != TIDE_REPORT_HTML)
        return cli_usage(&cli_command_report, "--split-script: only a .html has a script and a style");
    cli_subject a = {0}, b = {0};
    tide_status st = cli_subject_open(files[0], &o->view, &a, &err);
    if (st == TIDE_OK && n_files > 1) st = cli_subject_open(files[1], &o->view, &b, &err);
    if (st == TIDE_OK) st = write_all(o, files, &a, &b, &err);
    cli_subject_close(&b);
    cli_subject_close(&a);
    return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    const cli_command *cmd = &cli_command_report;
    uint64_t n;
    switch (c) {
    case 'o':
        o->out = optarg;
        return CLI_EXIT_OK;
    case OPT_RUN:
        return cli_parse_count(cmd, "--run", optarg, INT64_MAX, &o->view.run_id) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_WHOLE:
        o->view.whole = true;
        return CLI_EXIT_OK;
    case OPT_CAPACITY:
        return cli_parse_size(cmd, "--capacity", optarg, &o->report.capacity_bytes) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_TABLE:
        o->report.table = optarg;
        return CLI_EXIT_OK;
    case OPT_EXACT:
        o->report.exact_names = true;
        return CLI_EXIT_OK;
    case OPT_ROWS:
        if (!cli_parse_count(cmd, "--rows", optarg, 1000000, &n)) return CLI_EXIT_USAGE;
        o->report.max_rows = (size_t)n;
        return CLI_EXIT_OK;
    case OPT_SCRIPT:
        o->split_script = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    options o = {.view.is_one_look = true};
    int code = cli_parse_files(&cli_command_report, argc, argv, &o.view.planning, 2, take_option, &o);
    if (code == CLI_GO_ON && o.out == NULL)
        code = cli_usage(&cli_command_report, "-o is needed: where to write the report");
    if (code == CLI_GO_ON) code = report_on(argv + optind, argc - optind, &o);
    cli_planning_deinit(&o.view.planning);
    return code;
}
