// SPDX-License-Identifier: MIT
//
// tidemark export: the lifetimes, plan or trace of any FILE in a form that others read.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/planning.h"
#include "cli/replay.h"
#include "core/base/output.h"
#include "reports/chrome_trace.h"
#include "reports/torch_export.h"

enum { OPT_TO = CLI_OPT_FIRST_OWN, OPT_WITH_OFFSETS, OPT_PREFIX, OPT_RUN, OPT_WHOLE };

static const char help[] = CLI_PLANNING_HELP
    "  --to FORM           needed; docs/interchange.md says what goes where:\n"
    "                        csv           lifetimes: ours, holds the whole problem\n"
    "                        json          lifetimes: everything\n"
    "                        minimalloc    lifetimes: MiniMalloc's own columns\n"
    "                        c-header      a plan's arenas and offsets as macros and a table, for firmware\n"
    "                        tflm          a plan's offsets as TensorFlow Lite Micro's metadata (binary: with -o)\n"
    "                        chrome-trace  a trace or plan for Perfetto and chrome://tracing (JSON)\n"
    "                        pytorch       a trace as a memory snapshot of PyTorch, for docs.pytorch.org/memory_viz\n"
    "                                      (binary: with -o)\n"
    "  --with-offsets      of lifetimes: add where a plan puts things: of a model one is made, a plan file or trace "
    "has\n"
    "                      its own\n"
    "  --prefix NAME       of c-header: what its names begin with (default: the model's name)\n"
    "  --run N             of chrome-trace, pytorch: run N of a trace (default: the last)\n"
    "  --whole             of chrome-trace, pytorch: all of a trace, whatever its runs\n"
    "  -o FILE             write to FILE (default: standard output)\n\n"
    "Example: tidemark export --to minimalloc -o lenet.csv sample_graphs/lenet5.json\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"to", required_argument, NULL, OPT_TO},
                                             {"with-offsets", no_argument, NULL, OPT_WITH_OFFSETS},
                                             {"prefix", required_argument, NULL, OPT_PREFIX},
                                             {"run", required_argument, NULL, OPT_RUN},
                                             {"whole", no_argument, NULL, OPT_WHOLE},
                                             {"output", required_argument, NULL, 'o'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_export = {"export",
                                        "[OPTION…] FILE --to FORM",
                                        "Write lifetimes, plans and traces for other tools",
                                        help,
                                        option_table,
                                        CLI_OPERANDS_FILES,
                                        run};

typedef struct options options;

/// What a form is made of: the lifetimes alone with `plan` NULL, or a plan.
typedef tide_status (*writer)(const options *o, const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                              tide_error *err);

typedef enum need { NEEDS_LIFETIMES, NEEDS_PLAN, NEEDS_TIMES, NEEDS_TRACE } need;

typedef struct form {
    const char *name;
    writer write; ///< NULL: written as it is made (chrome-trace, pytorch)
    need needs;
    bool is_binary;
} form;

struct options {
    cli_planning planning;
    const form *form; ///< NULL: --to was not given
    bool with_offsets, whole;
    uint64_t run_id; ///< 0: the one that is shown when none is asked for
    const char *prefix;
    const char *out;
};

// ---- forms ----

static tide_status to_csv(const options *o, const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                          tide_error *err) {
    (void)o;
    return tide_lifetimes_to_csv(lt, plan, out, err);
}

static tide_status to_json(const options *o, const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                           tide_error *err) {
    (void)o;
    return tide_lifetimes_to_json(lt, plan, out, err);
}

static tide_status to_minimalloc(const options *o, const tide_lifetimes *lt, const tide_memory_plan *plan,
                                 tide_text *out, tide_error *err) {
    (void)o;
    return tide_lifetimes_to_minimalloc(lt, plan, out, err);
}

static tide_status to_c_header(const options *o, const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                               tide_error *err) {
    (void)lt;
    return tide_plan_to_c_header(plan, o->prefix, out, err);
}

static tide_status to_tflm(const options *o, const tide_lifetimes *lt, const tide_memory_plan *plan, tide_text *out,
                           tide_error *err) {
    (void)o;
    (void)lt;
    return tide_plan_to_tflm(plan, out, err);
}

#define FORM_NAMES "csv, json, minimalloc, c-header, tflm, chrome-trace, pytorch"
static const form forms[] = {{"csv", to_csv, NEEDS_LIFETIMES, false},
                             {"json", to_json, NEEDS_LIFETIMES, false},
                             {"minimalloc", to_minimalloc, NEEDS_LIFETIMES, false},
                             {"c-header", to_c_header, NEEDS_PLAN, false},
                             {"tflm", to_tflm, NEEDS_PLAN, true},
                             {"chrome-trace", NULL, NEEDS_TIMES, false},
                             {"pytorch", NULL, NEEDS_TRACE, true}};

static bool has_times(const form *f) { return f->needs == NEEDS_TIMES || f->needs == NEEDS_TRACE; }

// ---- writing ----

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
    if (o->with_offsets || o->form->needs == NEEDS_PLAN) {
        st = cli_plan_of_input(in, &o->planning, &plan, err);
        if (st == TIDE_OK) tell_of_dynamic(&plan->lifetimes);
        if (st == TIDE_OK) st = o->form->write(o, &plan->lifetimes, plan, out, err);
    } else {
        st = cli_lifetimes_of_input(in, &o->planning, &lt, err);
        if (st == TIDE_OK) tell_of_dynamic(&lt);
        if (st == TIDE_OK) st = o->form->write(o, &lt, NULL, out, err);
    }
    tide_memory_plan_destroy(plan);
    tide_lifetimes_deinit(&lt);
    return st;
}

static tide_status write_text(cli_input *in, const options *o, tide_error *err) {
    tide_text text = {0};
    tide_status st = make_text(in, o, &text, err);
    if (st == TIDE_OK) st = tide_write_file(o->out, text.data, text.len, err);
    tide_text_deinit(&text);
    return st;
}

// ---- a trace without runs: its blocks, in parts ----

typedef struct listing {
    tide_lifetimes_csv csv;
    tide_output *out;
    tide_text text;
} listing;

static tide_status list_part(void *ctx, int pass, const tide_lifetimes *part, tide_error *err) {
    listing *l = ctx;
    if (pass == 0) return tide_lifetimes_csv_note(&l->csv, part, err);
    l->text.len = 0;
    TIDE_TRY(tide_lifetimes_csv_add(&l->csv, part, &l->text, err));
    return tide_output_put(l->out, l->text.data, l->text.len, err);
}

static tide_status list_blocks(const char *path, tide_trace *trace, const options *o, tide_error *err) {
    cli_replay_source source = {.trace = trace, .path = path};
    listing l = {0};
    TIDE_TRY(cli_replay_source_open(&source, err));
    TIDE_TRY(tide_output_open(o->out, &l.out, err));
    tide_status st = cli_replay_lifetimes_in_parts(&source, o->planning.align_bytes, list_part, &l, err);
    tide_text_deinit(&l.text);
    if (st == TIDE_OK) return tide_output_end(l.out, err);
    tide_output_drop(l.out);
    return st;
}

/// *done: it had no runs, and its blocks are written.
static tide_status write_blocks(const cli_input *in, const options *o, bool *done, tide_error *err) {
    tide_trace *trace;
    tide_trace_info info;
    TIDE_TRY(cli_trace_open(in->path, &trace, err));
    tide_status st = tide_trace_get_info(trace, &info, err);
    *done = st == TIDE_OK && info.n_runs == 0;
    if (*done) st = list_blocks(in->path, trace, o, err);
    tide_trace_close(trace);
    return st;
}

static tide_status write_list(cli_input *in, const options *o, tide_error *err) {
    bool done = false;
    if (in->kind == CLI_INPUT_TRACE && o->form->write == to_csv && !o->with_offsets)
        TIDE_TRY(write_blocks(in, o, &done, err));
    return done ? TIDE_OK : write_text(in, o, err);
}

/// What the form does not hold as the trace has it.
static void tell_of_torch(const tide_torch_export_report *r) {
    if (r->n_moved > 0)
        fprintf(stderr,
                "note: %" PRIu64 " block%s at a made-up address (2^52 and above): the trace tells none, or another "
                "block lay there\n",
                r->n_moved, r->n_moved == 1 ? " is" : "s are");
    if (r->n_passed > 0)
        fprintf(stderr, "note: %" PRIu64 " segment%s no address below 2^52, and not in the file\n", r->n_passed,
                r->n_passed == 1 ? " has" : "s have");
    if (r->n_left_out > 0)
        fprintf(stderr, "note: %" PRIu64 " block%s larger than any memory, and not in the file\n", r->n_left_out,
                r->n_left_out == 1 ? " is" : "s are");
}

/// The file is there once all of it is.
static tide_status write_times(const options *o, tide_trace *trace, int64_t run_id, const tide_memory_plan *plan,
                               tide_error *err) {
    tide_output *out;
    tide_torch_export_report report = {0};
    TIDE_TRY(tide_output_open(o->out, &out, err));
    const tide_status st = o->form->needs == NEEDS_TRACE ? tide_torch_export(trace, run_id, out, &report, err)
                           : trace != NULL               ? tide_chrome_trace_of_trace(trace, run_id, out, err)
                                                         : tide_chrome_trace_of_plan(plan, out, err);
    if (st == TIDE_OK) tell_of_torch(&report);
    if (st == TIDE_OK) return tide_output_end(out, err);
    tide_output_drop(out);
    return st;
}

static tide_status write_trace(const cli_input *in, const options *o, tide_error *err) {
    tide_trace *trace;
    int64_t run_id = (int64_t)o->run_id;
    TIDE_TRY(cli_trace_open(in->path, &trace, err));
    tide_status st = o->whole || run_id != 0 ? TIDE_OK : tide_trace_shown_run(trace, &run_id, err);
    if (st == TIDE_OK) st = write_times(o, trace, run_id, NULL, err);
    tide_trace_close(trace);
    return st;
}

static tide_status write_plan(cli_input *in, const options *o, tide_error *err) {
    tide_memory_plan *plan;
    if (o->form->needs == NEEDS_TRACE) {
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "--to %s: '%s' is %s, and only a trace has events",
                                         o->form->name, in->path, cli_input_name(in));
        tide_error_hint(err, "--to chrome-trace shows plans; tidemark run -o TRACE records");
        return st;
    }
    TIDE_TRY(cli_plan_of_input(in, &o->planning, &plan, err));
    tell_of_dynamic(&plan->lifetimes);
    const tide_status st = write_times(o, NULL, 0, plan, err);
    tide_memory_plan_destroy(plan);
    return st;
}

static int export_file(const char *path, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_input in;
    if (cli_same_file(path, o->out))
        return cli_usage(&cli_command_export, "-o: '%s' is the input; it would be replaced", o->out);
    if (cli_input_open(path, &in, &err) != TIDE_OK) return cli_fail(&err);
    if (in.kind != CLI_INPUT_TRACE && (o->run_id != 0 || o->whole)) {
        const char *kind = cli_input_name(&in);
        cli_input_close(&in);
        return cli_usage(&cli_command_export, "--run, --whole: '%s' is %s, and only a trace has runs", path, kind);
    }
    const tide_status st = !has_times(o->form)          ? write_list(&in, o, &err)
                           : in.kind == CLI_INPUT_TRACE ? write_trace(&in, o, &err)
                                                        : write_plan(&in, o, &err);
    cli_input_close(&in);
    return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
}

// ---- options ----

static int take_form(options *o, const char *name) {
    o->form = NULL;
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
        if (strcmp(name, forms[k].name) == 0) o->form = &forms[k];
    }
    if (o->form != NULL) return CLI_EXIT_OK;
    return cli_usage(&cli_command_export, "--to: '%s' is none of " FORM_NAMES, name);
}

static int take_option(void *ctx, int c) {
    options *o = ctx;
    switch (c) {
    case OPT_TO:
        return take_form(o, optarg);
    case OPT_WITH_OFFSETS:
        o->with_offsets = true;
        return CLI_EXIT_OK;
    case OPT_PREFIX:
        o->prefix = optarg;
        if (tide_c_prefix_is_good(optarg)) return CLI_EXIT_OK;
        return cli_usage(&cli_command_export,
                         "--prefix: '%s' does not begin an identifier of C and C++ (a letter, then letters, digits and "
                         "single '_', none at the end)",
                         optarg);
    case OPT_RUN:
        if (!cli_parse_count(&cli_command_export, "--run", optarg, INT64_MAX, &o->run_id)) return CLI_EXIT_USAGE;
        return o->run_id > 0 ? CLI_EXIT_OK : cli_usage(&cli_command_export, "--run: runs count from 1");
    case OPT_WHOLE:
        o->whole = true;
        return CLI_EXIT_OK;
    case 'o':
        o->out = optarg;
        return CLI_EXIT_OK;
    default:
        return CLI_EXIT_USAGE;
    }
}

/// Options that mean nothing to the form are an error: they would be passed over in silence.
static int check(const options *o) {
    const cli_command *cmd = &cli_command_export;
    if (o->form == NULL) return cli_usage(cmd, "--to FORM is needed: " FORM_NAMES);
    if (o->prefix != NULL && o->form->write != to_c_header) return cli_usage(cmd, "--prefix: only c-header has names");
    if ((o->run_id != 0 || o->whole) && !has_times(o->form))
        return cli_usage(cmd, "--run, --whole: only chrome-trace and pytorch show times");
    if (o->run_id != 0 && o->whole) return cli_usage(cmd, "--run and --whole exclude each other");
    if (o->form->is_binary && strcmp(o->out, "-") == 0 && isatty(STDOUT_FILENO))
        return cli_usage(cmd, "--to %s is binary, and standard output is a terminal: -o FILE", o->form->name);
    return CLI_GO_ON;
}

static int run(int argc, char **argv) {
    options o = {.planning.takes_blocks = true, .out = "-"};
    int code = cli_parse_options(&cli_command_export, argc, argv, &o.planning, take_option, &o);
    if (code == CLI_GO_ON) code = check(&o);
    if (code == CLI_GO_ON) code = export_file(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
