// SPDX-License-Identifier: MIT
//
// tidemark trace: what a trace holds, which blocks were live at a moment, what changed; and its repair.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/planning.h"
#include "cli/recording.h"
#include "cli/symbols.h"
#include "cli/table.h"
#include "cli/trace_view.h"

enum {
    OPT_CHECK = CLI_OPT_FIRST_OWN,
    OPT_RECOVER,
    OPT_EXPAND,
    OPT_SYMBOLS,
    OPT_FORCE,
    OPT_SQL,
    OPT_AT,
    OPT_AND,
    OPT_LANES,
    OPT_COMPARE,
    OPT_BY,
    OPT_SORT,
    OPT_RUN,
    OPT_WHOLE,
    OPT_ROWS,
    OPT_JSON,
};

static const char help[] =
    "Without one of these: state, events, processes, runs, what was lost, peak, bytes by kind.\n"
    "  --at TIME           who was live then, block by block, the largest first\n"
    "  --at A --and B      what changed between two moments\n"
    "  --compare OTHER     what OTHER holds more or less, at the peak of each (or --at TIME)\n"
    "  --by KEY            in groups: kind, device, scope, name, allocator, size, age, thread, run, process; by call "
    "stack,\n"
    "                      where the trace has one: module, function, file, library, stack, category\n"
    "                      (changes are by name unless this says otherwise)\n"
    "                      these but stack and category say too what each holds with all that it called\n"
    "  --sort ORDER        own: what each allocated itself (default); callees: with all that it called\n"
    "  --run N             the peak, shares of the time and kinds are those of run N (default: the last run,\n"
    "                      as report and tui show it; the whole trace where several processes recorded)\n"
    "  --whole             those of the whole trace, whatever its runs\n"
    "  --lanes             processes side by side (ranks, traces that were merged): which one differs from the "
    "others,\n"
    "                      when, and by what it holds\n"
    "  --sql QUERY         one SELECT, read-only; tab separated\n"
    "  --rows N            so many lines at most, 0 for all (default 30; all with --sql and --json)\n"
    "  --check             look at everything: exit 0 whole, 1 events are missing or contradict, 3 damaged\n"
    "  --recover -o OUT    copy what can be read of a damaged trace into a new one\n"
    "  --force             with -o: OUT is replaced also when it is no trace\n"
    "  --expand            turn chunks into rows, which every SQLite shell reads; in place\n"
    "  --symbols           find names for call stacks of native code that have none (record --no-symbols, or debug\n"
    "                      information that came later); in place\n"
    "  --json              print numbers as JSON\n\n"
    "TIME: begin, end, peak, 50% (of the run), 12.5ms (from the begin of the trace), #17 (after event 17)\n"
    "exec:12 (the peak of the run's 13th execution; exec:12:begin, :end, :7 or :conv1: where that step begins)\n"
    "or the name of a mark, as warm: the runs' first turns are over.\n"
    "leaked (what was never freed) or temporary (all blocks that their thread freed at once, before it\n"
    "allocated or freed anything else)\n"
    "In place of a plan's buffer stand the tensors that lie in it, and what of it none uses.\n"
    "Example: tidemark trace lenet.db --at peak --by kind\n";

static const struct option option_table[] = {{"check", no_argument, NULL, OPT_CHECK},
                                             {"recover", no_argument, NULL, OPT_RECOVER},
                                             {"expand", no_argument, NULL, OPT_EXPAND},
                                             {"symbols", no_argument, NULL, OPT_SYMBOLS},
                                             {"sql", required_argument, NULL, OPT_SQL},
                                             {"at", required_argument, NULL, OPT_AT},
                                             {"and", required_argument, NULL, OPT_AND},
                                             {"lanes", no_argument, NULL, OPT_LANES},
                                             {"compare", required_argument, NULL, OPT_COMPARE},
                                             {"by", required_argument, NULL, OPT_BY},
                                             {"sort", required_argument, NULL, OPT_SORT},
                                             {"run", required_argument, NULL, OPT_RUN},
                                             {"whole", no_argument, NULL, OPT_WHOLE},
                                             {"rows", required_argument, NULL, OPT_ROWS},
                                             {"output", required_argument, NULL, 'o'},
                                             {"force", no_argument, NULL, OPT_FORCE},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_trace = {
    "trace", "[OPTION…] FILE", "What a trace holds, at any moment of it", help, option_table, CLI_OPERANDS_FILES, run};

typedef struct options {
    cli_trace_options view;
    const char *query, *out;
    const char *action; // --check, --recover, --expand, --symbols, --sql, --compare or --and; NULL: facts or --at
    int action_code;    // its number
    bool rows_given, sort_given;
    bool force;
} options;

// ---- files out of files ----

static int recover(const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    uint64_t lost = 0;
    if (tide_trace_recover(o->view.path, o->out, &lost, &err) != TIDE_OK) return cli_fail(&err);
    tide_trace *t = NULL;
    tide_trace_info info;
    if (cli_trace_open(o->out, &t, &err) != TIDE_OK) return cli_fail(&err);
    const bool good = tide_trace_get_info(t, &info, &err) == TIDE_OK;
    tide_trace_close(t);
    if (!good) return cli_fail(&err);
    if (o->view.json) {
        tide_text text = {0};
        tide_json_out j = cli_document_begin("trace_recover", &text);
        tide_json_text(&j, "file", o->out);
        tide_json_u64(&j, "events", info.n_events);
        tide_json_u64(&j, "lost", lost);
        cli_document_end(&j);
        return cli_document_print(&text);
    }
    char path[4096];
    printf("%s: %" PRIu64 " event%s, %" PRIu64 " could not be read\n", cli_clean(o->out, path, sizeof path),
           info.n_events, info.n_events == 1 ? "" : "s", lost);
    return CLI_EXIT_OK;
}

static int expand(const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_log_notes(true); // it may have to finish the trace
    if (tide_trace_expand(o->view.path, &err) != TIDE_OK) return cli_fail(&err);
    tide_trace *t = NULL;
    tide_trace_info info;
    if (cli_trace_open(o->view.path, &t, &err) != TIDE_OK) return cli_fail(&err);
    const bool good = tide_trace_get_info(t, &info, &err) == TIDE_OK;
    tide_trace_close(t);
    if (!good) return cli_fail(&err);
    if (o->view.json) {
        tide_text text = {0};
        tide_json_out j = cli_document_begin("trace_expand", &text);
        tide_json_text(&j, "file", o->view.path);
        tide_json_u64(&j, "rows", info.n_rows);
        tide_json_u64(&j, "chunks", info.n_chunks);
        cli_document_end(&j);
        return cli_document_print(&text);
    }
    char path[4096];
    printf("%s: %" PRIu64 " rows, no chunks\n", cli_clean(o->view.path, path, sizeof path), info.n_rows);
    return CLI_EXIT_OK;
}

static int name_frames(const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_symbols_report r;
    cli_log_notes(true); // it may have to finish the trace
    if (cli_symbols_name(o->view.path, &r, &err) != TIDE_OK) return cli_fail(&err);
    if (o->view.json) {
        tide_text text = {0};
        tide_json_out j = cli_document_begin("trace_symbols", &text);
        tide_json_text(&j, "file", o->view.path);
        tide_json_u64(&j, "frames", r.n_frames);
        tide_json_u64(&j, "named", r.n_named);
        tide_json_u64(&j, "files", r.n_files);
        tide_json_u64(&j, "refused", r.n_refused);
        cli_document_end(&j);
        return cli_document_print(&text);
    }
    char path[4096];
    cli_symbols_print(&r);
    printf("%s: %" PRIu64 " of %" PRIu64 " frames named\n", cli_clean(o->view.path, path, sizeof path), r.n_named,
           r.n_frames);
    return CLI_EXIT_OK;
}

// ---- options ----

/// Notes one of the actions that exclude each other. False after the message was printed.
static bool take_action(options *o, const char *name, int code) {
    if (o->action != NULL && strcmp(o->action, name) != 0) {
        cli_usage(&cli_command_trace, "%s and %s: one at a time", o->action, name);
        return false;
    }
    o->action = name;
    o->action_code = code;
    return true;
}

/// What excludes each other; NULL: the option is none of these.
static const char *action_name(int c) {
    switch (c) {
    case OPT_CHECK:
        return "--check";
    case OPT_RECOVER:
        return "--recover";
    case OPT_EXPAND:
        return "--expand";
    case OPT_SYMBOLS:
        return "--symbols";
    case OPT_SQL:
        return "--sql";
    default:
        return c == OPT_LANES ? "--lanes" : NULL;
    }
}

/// One option. False after the message was printed.
static bool take(options *o, int c) {
    const cli_command *cmd = &cli_command_trace;
    uint64_t n;
    if (c == OPT_SQL) o->query = optarg;
    if (action_name(c) != NULL) return take_action(o, action_name(c), c);
    switch (c) {
    case OPT_COMPARE:
        o->view.other = optarg;
        return true;
    case OPT_AT:
        o->view.at = optarg;
        return true;
    case OPT_AND:
        o->view.and_at = optarg;
        return true;
    case OPT_BY:
        o->view.grouped = true;
        if (cli_group_by_of(optarg, &o->view.by)) return true;
        cli_usage(
            cmd,
            "--by: '%s' is none of kind, device, scope, name, allocator, size, age, thread, run, process, module, "
            "function, file, library, stack, category",
            optarg);
        return false;
    case OPT_SORT:
        o->sort_given = true;
        o->view.by_callees = strcmp(optarg, "callees") == 0;
        if (o->view.by_callees || strcmp(optarg, "own") == 0) return true;
        cli_usage(cmd, "--sort: '%s' is none of own, callees", optarg);
        return false;
    case OPT_RUN:
        if (!cli_parse_count(cmd, "--run", optarg, INT64_MAX, &n)) return false;
        o->view.run_id = (int64_t)n;
        return true;
    case OPT_WHOLE:
        o->view.run_id = 0;
        return true;
    case OPT_ROWS:
        o->rows_given = true;
        return cli_parse_count(cmd, "--rows", optarg, UINT32_MAX, &o->view.max_rows);
    case 'o':
        o->out = optarg;
        return true;
    case OPT_FORCE:
        o->force = true;
        return true;
    case OPT_JSON:
        o->view.json = true;
        return true;
    default:
        return false; // getopt's own message
    }
}

/// Whether the options make sense together; CLI_EXIT_OK or CLI_EXIT_USAGE.
static int settle(options *o) {
    const cli_command *cmd = &cli_command_trace;
    cli_trace_options *v = &o->view;
    const bool copies = o->action_code == OPT_RECOVER;
    const char *idle = v->at != NULL       ? "--at"
                       : v->and_at != NULL ? "--and"
                       : v->other != NULL  ? "--compare"
                       : v->grouped        ? "--by"
                                           : NULL;
    if (o->action != NULL && idle != NULL) return cli_usage(cmd, "%s and %s: one at a time", o->action, idle);
    if (copies && o->out == NULL)
        return cli_usage(cmd, "%s: -o OUT is needed: where to write the new trace", o->action);
    if (!copies && o->out != NULL) return cli_usage(cmd, "-o is of use with --recover");
    if (v->and_at != NULL && v->at == NULL) return cli_usage(cmd, "--and B: --at A is needed too");
    if (v->grouped && v->at == NULL && v->other == NULL) return cli_usage(cmd, "--by is of use with --at or --compare");
    const bool is_one_moment = v->at != NULL && v->and_at == NULL && v->other == NULL;
    if (o->sort_given && !(is_one_moment && v->grouped && tide_group_by_has_callees(v->by)))
        return cli_usage(cmd, "--sort is of use with --at A --by module, function, file or library");
    if (copies && cli_same_file(v->path, o->out))
        return cli_usage(cmd, "-o: '%s' is the input; it would be replaced", o->out);
    if (o->force && !copies) return cli_usage(cmd, "--force is of use with --recover");
    if (copies && !o->force && !cli_may_replace(o->out)) return CLI_EXIT_USAGE;
    if (!v->grouped && (v->other != NULL || v->and_at != NULL)) v->by = TIDE_BY_NAME;
    if (!o->rows_given) v->max_rows = v->json || o->action_code == OPT_SQL ? 0 : 30;
    return CLI_EXIT_OK;
}

static int show(const options *o) {
    if (o->action_code == OPT_RECOVER) return recover(o);
    if (o->action_code == OPT_EXPAND) return expand(o);
    if (o->action_code == OPT_SYMBOLS) return name_frames(o);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    if (cli_trace_open(o->view.path, &t, &err) != TIDE_OK) return cli_fail(&err);
    int code;
    if (o->action_code == OPT_CHECK)
        code = cli_trace_check(t, &o->view);
    else if (o->action_code == OPT_LANES)
        code = cli_trace_lanes(t, &o->view);
    else if (o->action_code == OPT_SQL)
        code = cli_trace_answer(t, &o->view, o->query);
    else if (o->view.other != NULL || o->view.and_at != NULL)
        code = cli_trace_changes(t, &o->view);
    else
        code = o->view.at != NULL ? cli_trace_live(t, &o->view) : cli_trace_facts(t, &o->view);
    tide_trace_close(t);
    return code;
}

static int run(int argc, char **argv) {
    options o = {.view.run_id = -1};
    int c;
    while ((c = cli_next_option(&cli_command_trace, argc, argv)) != -1) {
        if (c == 'h') return CLI_EXIT_OK;
        if (!take(&o, c)) return CLI_EXIT_USAGE;
    }
    if (optind + 1 != argc) return cli_usage(&cli_command_trace, "one FILE is needed, %d given", argc - optind);
    o.view.path = argv[optind];
    const int code = settle(&o);
    return code == CLI_EXIT_OK ? show(&o) : code;
}
