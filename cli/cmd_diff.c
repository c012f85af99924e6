// SPDX-License-Identifier: MIT
//
// tidemark diff: what changed between two plans, traces or models, or two moments of one, and by which operators and
// tensors.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diff_view.h"
#include "cli/table.h"
#include "cli/trace_view.h"
#include "cli/view.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"

enum { OPT_RUN = CLI_OPT_FIRST_OWN, OPT_WHOLE, OPT_AT, OPT_AND, OPT_ROWS, OPT_EXIT_CODE, OPT_LIVE };

static const char help[] = CLI_PLANNING_HELP
    "  --at MOMENT         of A (default: its peak): peak, begin, end, a step by its number or name; of a\n"
    "                      trace also 50%, 12.5ms, #EVENT, exec:12 (its peak), exec:12:conv1 or a mark\n"
    "  --and MOMENT        of B; with one FILE: compare these two moments of it\n"
    "  --live              compare only who is alive at the two moments (what is larger than a million\n"
    "                      items is compared so anyway)\n"
    "  --run N             run N of a trace (default: the last)\n"
    "  --whole             all of a trace, whatever its runs\n"
    "  --rows N            rows of each list (default 10, 0: all)\n"
    "  -o FILE             .txt, .md or .json: the ending says what is written\n"
    "  --json              print everything as JSON\n"
    "  --exit-code         exit 1 when anything differs\n\n"
    "The changes of the operators, and those of the kinds, sum to the change of what is held exactly.\n"
    "Example: tidemark diff before.onnx after.onnx\n"
    "         tidemark diff trace.db --at 10% --and 90%\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"at", required_argument, NULL, OPT_AT},
                                             {"and", required_argument, NULL, OPT_AND},
                                             {"live", no_argument, NULL, OPT_LIVE},
                                             {"run", required_argument, NULL, OPT_RUN},
                                             {"whole", no_argument, NULL, OPT_WHOLE},
                                             {"rows", required_argument, NULL, OPT_ROWS},
                                             {"output", required_argument, NULL, 'o'},
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {"exit-code", no_argument, NULL, OPT_EXIT_CODE},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_diff = {"diff", "[OPTION…] A [B]", "Say what changed between two of them, and why",
                                      help,   option_table,      CLI_OPERANDS_FILES,
                                      run};

typedef struct options {
    cli_view view;
    const char *at, *and_at, *out;
    size_t max_rows;
    bool live, json, exit_code;
} options;

// ---- moments ----

/// A moment of a plan: peak, begin, end, or a step by number or name.
static tide_status moment_of_plan(const tide_subject_facts *f, const char *text, tide_moment *out, tide_error *err) {
    char *end;
    *out = f->peak;
    if (strcmp(text, "peak") == 0) return TIDE_OK;
    *out = (tide_moment){.t = strcmp(text, "end") == 0 ? f->end - 1 : f->begin};
    if (strcmp(text, "begin") == 0 || strcmp(text, "end") == 0) return TIDE_OK;
    for (size_t i = 0; i < f->n_steps; i++) {
        if (strcmp(f->step_names[i], text) != 0) continue;
        out->t = f->step_begin[i];
        return TIDE_OK;
    }
    const long long step = strtoll(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && step >= f->begin && step < f->end) {
        out->t = step;
        return TIDE_OK;
    }
    TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is no moment of '%s': peak, begin, end, or a step", text, f->title);
    tide_error_note(err, "its steps are %" PRId64 " to %" PRId64 "%s", f->begin, f->end - 1,
                    f->n_steps > 0 ? ", or their names" : "");
    return err != NULL ? err->status : TIDE_ERR_INVALID;
}

static tide_status moment_of(tide_subject *s, const char *text, tide_moment *out, tide_error *err) {
    const tide_subject_facts *f = tide_subject_get_facts(s);
    if (text == NULL) {
        *out = f->peak;
        return TIDE_OK;
    }
    if (!f->is_trace) return moment_of_plan(f, text, out, err);
    cli_span span;
    cli_moment m;
    TIDE_TRY(cli_trace_span(tide_subject_trace(s), f->run_id, &span, err));
    TIDE_TRY(cli_moment_of(tide_subject_trace(s), &span, text, &m, err));
    *out = (tide_moment){.t = (int64_t)m.t_ns, .event = m.by_event ? m.event : 0};
    return TIDE_OK;
}

// ---- output ----

static tide_status write_out(const cli_diff_view *v, const char *path, tide_error *err) {
    const char *dot = strrchr(path, '.');
    tide_text text = {0};
    if (strcmp(dot, ".json") == 0)
        cli_diff_json(v, &text);
    else if (strcmp(dot, ".md") == 0)
        cli_diff_markdown(v, &text);
    else
        cli_diff_text(v, &text);
    const tide_status st = text.failed ? TIDE_NO_MEMORY(err, "for '%s'", path)
                                       : tide_write_file(path, tide_text_str(&text), text.len, err);
    tide_text_deinit(&text);
    return st;
}

static int print_answer(const cli_diff_view *v, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_text text = {0};
    int code = CLI_EXIT_OK;
    if (o->out != NULL && write_out(v, o->out, &err) != TIDE_OK) return cli_fail(&err);
    if (o->json) {
        cli_diff_json(v, &text);
        code = cli_document_print(&text);
    } else if (o->out == NULL) {
        cli_diff_text(v, &text);
        fputs(tide_text_str(&text), stdout);
        if (text.failed) cli_cut(stdout);
        tide_text_deinit(&text);
    }
    if (code != CLI_EXIT_OK) return code;
    return o->exit_code && cli_diff_differs(v->diff) ? CLI_EXIT_CHECK_FAILED : CLI_EXIT_OK;
}

// ---- work ----

static bool is_large(tide_subject *s) { return tide_subject_get_facts(s)->n_items > TIDE_COMPARE_MAX_ITEMS; }

static tide_status load(tide_subject *a, tide_subject *b, bool live, tide_error *err) {
    if (live) return TIDE_OK;
    TIDE_TRY(tide_subject_load(a, NULL, err));
    return a == b ? TIDE_OK : tide_subject_load(b, NULL, err);
}

static int diff_subjects(tide_subject *a, tide_subject *b, char **files, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_diff diff;
    const bool live = o->live || is_large(a) || is_large(b);
    cli_diff_view v = {.a = {.path = files[0], .facts = tide_subject_get_facts(a), .asked = o->at},
                       .b = {.path = files[a == b ? 0 : 1], .facts = tide_subject_get_facts(b), .asked = o->and_at},
                       .one_subject = a == b,
                       .diff = &diff,
                       .max_rows = o->max_rows};
    tide_status st = moment_of(a, o->at, &v.a.at, &err);
    if (st == TIDE_OK) st = moment_of(b, o->and_at, &v.b.at, &err);
    if (st == TIDE_ERR_INVALID) {
        cli_print_error(&err);
        return CLI_EXIT_USAGE;
    }
    if (st == TIDE_OK) st = load(a, b, live, &err);
    if (st == TIDE_OK) st = tide_compare(a, &v.a.at, b, &v.b.at, live, NULL, &diff, &err);
    if (st != TIDE_OK) return cli_fail(&err);
    const int code = print_answer(&v, o);
    tide_diff_deinit(&diff);
    return code;
}

static int diff_files(char **files, int n_files, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_subject a = {0}, b = {0};
    if (n_files == 1 && o->at == NULL && o->and_at == NULL)
        return cli_usage(&cli_command_diff, "two FILEs are needed, or one and --at and --and");
    for (int i = 0; i < n_files; i++)
        if (cli_same_file(files[i], o->out))
            return cli_usage(&cli_command_diff, "-o: '%s' is an input; it would be replaced", o->out);
    int code = CLI_EXIT_OK;
    if (cli_subject_open(files[0], &o->view, &a, &err) != TIDE_OK ||
        (n_files > 1 && cli_subject_open(files[1], &o->view, &b, &err) != TIDE_OK))
        code = cli_fail(&err);
    else
        code = diff_subjects(a.subject, n_files > 1 ? b.subject : a.subject, files, o);
    cli_subject_close(&b);
    cli_subject_close(&a);
    return code;
}

// ---- options ----

static bool is_output(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcmp(dot, ".txt") == 0 || strcmp(dot, ".md") == 0 || strcmp(dot, ".json") == 0);
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    const cli_command *cmd = &cli_command_diff;
    uint64_t n;
    switch (c) {
    case 'o':
        o->out = optarg;
        if (is_output(optarg)) return CLI_EXIT_OK;
        return cli_usage(
            cmd, "-o: '%s' ends in none of .txt, .md, .json (a page of two is made by: tidemark report A B)", optarg);
    case OPT_RUN:
        return cli_parse_count(cmd, "--run", optarg, INT64_MAX, &o->view.run_id) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_WHOLE:
        o->view.whole = true;
        return CLI_EXIT_OK;
    case OPT_AT:
        o->at = optarg;
        return CLI_EXIT_OK;
    case OPT_AND:
        o->and_at = optarg;
        return CLI_EXIT_OK;
    case OPT_ROWS:
        if (!cli_parse_count(cmd, "--rows", optarg, 100000000, &n)) return CLI_EXIT_USAGE;
        o->max_rows = (size_t)n;
        return CLI_EXIT_OK;
    case OPT_LIVE:
        o->live = true;
        return CLI_EXIT_OK;
    case OPT_EXIT_CODE:
        o->exit_code = true;
        return CLI_EXIT_OK;
    case CLI_OPT_JSON:
        o->json = true;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

static int run(int argc, char **argv) {
    options o = {.view.is_one_look = true, .max_rows = 10};
    int code = cli_parse_files(&cli_command_diff, argc, argv, &o.view.planning, 2, take_option, &o);
    if (code == CLI_GO_ON) code = diff_files(argv + optind, argc - optind, &o);
    cli_planning_deinit(&o.view.planning);
    return code;
}
