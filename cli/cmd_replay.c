// SPDX-License-Identifier: MIT
//
// tidemark replay: the blocks of a trace, asked for again of one real allocator after another.
#include <stdio.h>
#include <string.h>

#include "cli/input.h"
#include "cli/memory_report.h"
#include "cli/recording.h"
#include "cli/replay_report.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/device/plugin.h"
#include "core/memory/allocators/allocators.h"

enum { OPT_DEVICE = 3000, OPT_ALLOCATOR, OPT_RUN, OPT_KIND, OPT_OF, OPT_CHECK, OPT_LIMIT, OPT_JSON };

static const char help[] =
    "  --device D          where: cpu (default) or another that `tidemark devices` lists\n"
    "  --allocator A,B,…   with which, one after the other (default: cpu,cpu_caching,stream_caching; of CUDA\n"
    "                      cuda,cuda_caching,cuda_async,cuda_vmm); `tidemark allocators --device D` lists them\n"
    "  --run N             the blocks of run N and what was alive when it began (default: the whole trace)\n"
    "  --kind K            blocks of that kind alone; may be repeated\n"
    "  --of D              blocks that were on device D alone\n"
    "  --check             fill each block with a pattern, and look at it before it is freed: exit 1 if it changed\n"
    "  --limit SIZE        would it fit: so much may be reserved, once what is kept for reuse was given back; exit 6\n"
    "                      when an allocator cannot serve all\n"
    "  -o FILE             record each replay into a trace, a run for each allocator\n" CLI_RECORDER_HELP
        CLI_RECORDING_HELP "  --json              print numbers as JSON\n\n"
    "A block is held from its allocation to the end of its free, in the order of the trace. Of a planned run the\n"
    "buffer is a block, and the tensors that lie in it are none. Peaks are: requested (asked for), active (held by\n"
    "blocks, rounding included), reserved (taken from the system). Idle is reserved and not active, rounding active\n"
    "and not requested, at the first peak of what was requested; worst: when any block was given.\n"
    "Example: tidemark replay --limit 64MiB trace.db\n";

static int run(int argc, char **argv);
const cli_command cli_command_replay = {"replay", "[OPTION…] TRACE", "Replay a trace's blocks with other allocators",
                                        help, run};

typedef struct options {
    const char *path;
    tide_device device;
    char *list;         // owned: the names of --allocator, each ended by NUL; NULL: the usual ones
    const char **names; // [n_names], owned
    size_t n_names;
    int64_t run_id;
    uint32_t kinds;
    const char *of_device;
    bool check, json;
    uint64_t limit_bytes;
    cli_recording_options recording;
} options;

// ---- names of allocators ----

static tide_status take_names(options *o, const char *text, tide_error *err) {
    size_t n = 1;
    for (const char *c = text; *c != '\0'; c++) n += *c == ',';
    TIDE_TRY(TIDE_COPY_TEXT(&o->list, text, err, "for --allocator"));
    TIDE_TRY(TIDE_NEW(&o->names, n, err, "for --allocator"));
    for (char *at = o->list; at != NULL; o->n_names++) {
        o->names[o->n_names] = at;
        at = strchr(at, ',');
        if (at != NULL) *at++ = '\0';
    }
    return TIDE_OK;
}

static tide_status take_default_names(options *o, tide_error *err) {
    enum { MAX = 8 };
    TIDE_TRY(TIDE_NEW(&o->names, MAX, err, "for the names of allocators"));
    o->n_names = cli_replay_default_allocators(o->device, o->names, MAX);
    return TIDE_OK;
}

/// Makes each of them once, so that a wrong name is told before the first replay; where none was named, those that the
/// device cannot have are left out, with a note. CLI_EXIT_OK: all that are left can be made.
static int try_names(options *o) {
    size_t n = 0;
    for (size_t i = 0; i < o->n_names; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        const tide_status st = tide_allocator_create_on(o->device, o->names[i], &a, &err);
        tide_allocator_unref(a);
        if (st == TIDE_OK)
            o->names[n++] = o->names[i];
        else if (st == TIDE_ERR_INVALID)
            return cli_usage(&cli_command_replay, "--allocator: %s%s%s", err.msg, err.hint[0] != '\0' ? "; " : "",
                             err.hint);
        else if (st == TIDE_ERR_NOT_IMPLEMENTED && o->list == NULL)
            fprintf(stderr, "note: left out: %s: %s\n", o->names[i], err.msg);
        else
            return cli_fail(&err);
    }
    o->n_names = n;
    return CLI_EXIT_OK;
}

// ---- replays ----

static tide_status replay_with(const options *o, const cli_replay_options *how, const char *name,
                               const cli_replay_source *source, cli_replay_result *out, tide_error *err) {
    tide_allocator *a = NULL;
    TIDE_TRY(tide_allocator_create_on(o->device, name, &a, err));
    const tide_status st = cli_replay_run(source, how, name, a, out, err);
    tide_allocator_unref(a);
    if (st != TIDE_OK) tide_error_prefix(err, "replay with '%s'", name);
    return st;
}

static tide_status replay_all(const options *o, cli_replay_report *r, tide_recorder *recorder, tide_error *record_error,
                              tide_error *err) {
    const cli_replay_options how = {.device = o->device,
                                    .check = o->check,
                                    .limit_bytes = o->limit_bytes,
                                    .recorder = recorder,
                                    .record_error = record_error};
    TIDE_TRY(TIDE_NEW(&r->results, o->n_names, err, "for the results of a replay"));
    TIDE_TRY(cli_replay_count(&r->source, &r->recorded, err));
    for (; r->n_results < o->n_names; r->n_results++)
        TIDE_TRY(replay_with(o, &how, o->names[r->n_results], &r->source, &r->results[r->n_results], err));
    return TIDE_OK;
}

/// A block with other contents is a fault of an allocator, and says more than that one did not fit.
static int verdict(const cli_replay_report *r) {
    int code = CLI_EXIT_OK;
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i].n_wrong_blocks > 0) return CLI_EXIT_CHECK_FAILED;
        if (r->results[i].n_failed > 0) code = CLI_EXIT_DOES_NOT_FIT;
    }
    return code;
}

static int show(const options *o, const cli_replay_report *r, const cli_recording *recording) {
    const int code = verdict(r);
    if (!o->json) {
        cli_replay_print(r);
        cli_recording_print(recording);
        return code;
    }
    tide_text text = {0};
    tide_json_out j = cli_document_begin("replay", &text);
    cli_replay_json(&j, r);
    cli_json_recording(&j, recording);
    cli_document_end(&j);
    const int printed = cli_document_print(&text);
    return printed != CLI_EXIT_OK ? printed : code;
}

static int replay_trace(const options *o, tide_trace *t) {
    cli_replay_report r = {
        .source = {.trace = t, .path = o->path, .run_id = o->run_id, .kinds = o->kinds, .of_device = o->of_device},
        .device = o->device,
        .limit_bytes = o->limit_bytes,
        .checked = o->check,
        .clock_ns = cli_replay_clock_ns()};
    cli_recording recording = {0};
    tide_error err = TIDE_ERROR_INIT, record_error = TIDE_ERROR_INIT;
    tide_status st = cli_replay_source_open(&r.source, &err);
    if (st == TIDE_OK) st = cli_recording_open(&o->recording, &recording, &err);
    r.is_recorded = recording.recorder != NULL;
    if (st == TIDE_OK) st = replay_all(o, &r, recording.recorder, &record_error, &err);
    cli_recording_end(&recording, st, &record_error);
    int code = st == TIDE_OK ? show(o, &r, &recording) : cli_fail(&err);
    if (recording.path != NULL) code = cli_recording_report(&recording, code);
    tide_host_free(r.results);
    return code;
}

// ---- options ----

static bool take_kind(options *o, const char *text) {
    tide_memory_kind kind;
    const bool known = cli_replay_kind_of(text, &kind);
    if (known)
        o->kinds |= 1u << kind;
    else
        cli_usage(&cli_command_replay, "--kind: '%s' is no kind; `tidemark allocators` lists them", text);
    return known;
}

/// One option. False after the message was printed.
static bool take(options *o, int c) {
    const cli_command *cmd = &cli_command_replay;
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n;
    switch (c) {
    case OPT_DEVICE:
        if (tide_device_parse(optarg, &o->device, &err) == TIDE_OK) return true;
        cli_usage(cmd, "--device: %s", err.msg);
        return false;
    case OPT_ALLOCATOR:
        if (o->list != NULL) {
            cli_usage(cmd, "--allocator is given twice; several names are one list: --allocator cpu,cpu_caching");
            return false;
        }
        if (take_names(o, optarg, &err) != TIDE_OK) cli_option_no_memory("--allocator");
        return true;
    case OPT_RUN:
        if (!cli_parse_count(cmd, "--run", optarg, INT64_MAX, &n)) return false;
        o->run_id = (int64_t)n;
        if (n > 0) return true;
        cli_usage(cmd, "--run: runs are counted from 1; without it the whole trace is replayed");
        return false;
    case OPT_KIND:
        return take_kind(o, optarg);
    case OPT_OF:
        o->of_device = optarg;
        return true;
    case OPT_LIMIT:
        return cli_parse_limit(cmd, optarg, &o->limit_bytes);
    case OPT_CHECK:
        return o->check = true;
    case OPT_JSON:
        return o->json = true;
    case 'o':
        o->recording.path = optarg;
        return true;
    default:
        return cli_recording_option(cmd, &o->recording, c) > 0;
    }
}

static int settle_and_run(options *o) {
    tide_error err = TIDE_ERROR_INIT;
    if (cli_same_place(o->path, o->recording.path))
        return cli_usage(&cli_command_replay, "-o: '%s' is the input; it would be replaced", o->path);
    if (tide_device_load(o->device, &err) != TIDE_OK) return cli_fail(&err);
    if (o->list == NULL && take_default_names(o, &err) != TIDE_OK) return cli_fail(&err);
    const int code = try_names(o);
    if (code != CLI_EXIT_OK) return code;
    tide_trace *t = NULL;
    if (cli_trace_open(o->path, &t, &err) != TIDE_OK) return cli_fail(&err);
    const int done = cli_recording_settle(&cli_command_replay, &o->recording) ? replay_trace(o, t) : CLI_EXIT_USAGE;
    tide_trace_close(t);
    return done;
}

static int run(int argc, char **argv) {
    static const struct option table[] = {{"device", required_argument, NULL, OPT_DEVICE},
                                          {"allocator", required_argument, NULL, OPT_ALLOCATOR},
                                          {"run", required_argument, NULL, OPT_RUN},
                                          {"kind", required_argument, NULL, OPT_KIND},
                                          {"of", required_argument, NULL, OPT_OF},
                                          {"check", no_argument, NULL, OPT_CHECK},
                                          {"limit", required_argument, NULL, OPT_LIMIT},
                                          {"output", required_argument, NULL, 'o'},
                                          CLI_RECORDER_OPTION,
                                          CLI_RECORDING_OPTIONS,
                                          {"json", no_argument, NULL, OPT_JSON},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    options o = {.recording = {.recorder = {.drain = TIDE_RECORD_PROCESS, .rank = -1}}};
    int c, code = -1;
    while (code < 0 && (c = cli_next_option(&cli_command_replay, argc, argv, table)) != -1) {
        if (c == 'h')
            code = CLI_EXIT_OK;
        else if (!take(&o, c))
            code = CLI_EXIT_USAGE;
    }
    if (code < 0 && optind + 1 != argc)
        code = cli_usage(&cli_command_replay, "one TRACE is needed, %d given", argc - optind);
    if (code < 0) {
        o.path = argv[optind];
        code = settle_and_run(&o);
    }
    tide_host_free(o.list);
    tide_host_free(o.names);
    return code;
}
