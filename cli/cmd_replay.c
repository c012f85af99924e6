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
#include "core/device/sim_device.h"
#include "core/memory/allocators/allocators.h"
#include "core/memory/allocators/pytorch.h"

enum { OPT_DEVICE = 3000, OPT_ALLOCATOR, OPT_STRATEGY, OPT_RUN, OPT_KIND, OPT_OF, OPT_CHECK, OPT_LIMIT, OPT_JSON };

static const char help[] =
    "  --device D          where: cpu (default), another that `tidemark devices` lists, or sim: simulated, addresses\n"
    "                      without memory (default for a memory snapshot of PyTorch, and with the allocator pytorch)\n"
    "  --allocator A,B,…   with which, one after the other; may be repeated (default: cpu,cpu_caching,stream_caching; "
    "of\n"
    "                      CUDA cuda,cuda_caching,cuda_async,cuda_vmm; of sim pytorch,cuda_caching,cuda_vmm);\n"
    "                      `tidemark allocators --device D` lists them\n"
    "                      pytorch, on sim, takes PyTorch's settings: pytorch:max_split_size=512MiB,\n"
    "                      roundup_power2_divisions=4,garbage_collection_threshold=0.8,expandable_segments\n"
    "                      as_recorded: those that the trace names, one for each process, device and kind\n"
    "  --strategy S        plan the same blocks too, as if all were known before: what the best placement needs\n"
    "                      (search, greedy_by_size, …; may be repeated)\n"
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
    "and not requested, at the first peak of what was requested; worst: when any block was given. Of a plan\n"
    "(--strategy) active is the lower bound.\n"
    "pytorch, of which each process, device and private pool has its own, begins with the segments that a snapshot\n"
    "tells of. It and as_recorded empty their caches when the program did, and say where they have not reserved what\n"
    "was recorded.\n"
    "Example: tidemark replay --limit 64MiB trace.db\n"
    "         tidemark replay --allocator pytorch,pytorch:expandable_segments --strategy search snapshot.pickle\n";

static const struct option option_table[] = {{"device", required_argument, NULL, OPT_DEVICE},
                                             {"allocator", required_argument, NULL, OPT_ALLOCATOR},
                                             {"strategy", required_argument, NULL, OPT_STRATEGY},
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

static int run(int argc, char **argv);
const cli_command cli_command_replay = {"replay", "[OPTION…] TRACE", "Replay a trace's blocks with other allocators",
                                        help,     option_table,      CLI_OPERANDS_FILES,
                                        run};

typedef struct options {
    const char *path;
    tide_device device;
    bool has_device;
    bool is_named;      // --allocator is given
    char **texts;       // [n_texts], owned: the names of --allocator
    const char **names; // [n_names], owned
    size_t n_texts, cap_texts, n_names, cap_names;
    const tide_strategy **strategies; // [n_strategies], owned
    size_t n_strategies, cap_strategies;
    int64_t run_id;
    uint32_t kinds;
    const char *of_device;
    bool check, json;
    uint64_t limit_bytes;
    cli_recording_options recording;
} options;

// ---- names of allocators ----

static bool is_pytorch(const char *name) { return strcmp(name, "pytorch") == 0 || strncmp(name, "pytorch:", 8) == 0; }

/// How much of `text` is the first name of the list: a comma behind options of pytorch may be followed by one more.
static size_t name_len(const char *text) {
    enum { PREFIX = sizeof "pytorch:" - 1 };
    const bool has_options = strncmp(text, "pytorch:", PREFIX) == 0;
    return has_options ? PREFIX + tide_pytorch_options_len(text + PREFIX) : strcspn(text, ",");
}

static tide_status take_names(options *o, const char *text, tide_error *err) {
    o->is_named = true;
    for (const char *at = text;; at++) {
        const size_t len = name_len(at);
        TIDE_TRY(TIDE_GROW(&o->texts, &o->cap_texts, o->n_texts + 1, err, "for --allocator"));
        TIDE_TRY(TIDE_GROW(&o->names, &o->cap_names, o->n_names + 1, err, "for --allocator"));
        char **copy = &o->texts[o->n_texts];
        *copy = NULL;
        TIDE_TRY(TIDE_NEW(copy, len + 1, err, "for --allocator"));
        memcpy(*copy, at, len);
        o->names[o->n_names++] = o->texts[o->n_texts++];
        at += len;
        if (*at == '\0') return TIDE_OK;
    }
}

static tide_status take_default_names(options *o, tide_error *err) {
    enum { MAX = 8 };
    TIDE_TRY(TIDE_GROW(&o->names, &o->cap_names, MAX, err, "for the names of allocators"));
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
        if (strcmp(o->names[i], CLI_REPLAY_AS_RECORDED) == 0) { // the trace says which: told when a block needs one
            o->names[n++] = o->names[i];
            continue;
        }
        const tide_status st = tide_allocator_create_on(o->device, o->names[i], &a, &err);
        tide_allocator_unref(a);
        if (st == TIDE_OK)
            o->names[n++] = o->names[i];
        else if (st == TIDE_ERR_INVALID)
            return cli_usage(&cli_command_replay, "--allocator: %s%s%s", err.msg, err.hint[0] != '\0' ? "; " : "",
                             err.hint);
        else if (st == TIDE_ERR_NOT_IMPLEMENTED && !o->is_named)
            fprintf(stderr, "note: left out: %s: %s\n", o->names[i], err.msg);
        else
            return cli_fail(&err);
    }
    o->n_names = n;
    return CLI_EXIT_OK;
}

// ---- replays ----

static tide_status replay_all(const options *o, cli_replay_report *r, tide_recorder *recorder, tide_error *record_error,
                              tide_error *err) {
    if (tide_sim_device_is(o->device)) tide_sim_device_set_bytes(o->limit_bytes);
    cli_replay_options how = {.device = o->device,
                              .check = o->check,
                              .limit_bytes = o->limit_bytes,
                              .recorder = recorder,
                              .record_error = record_error};
    TIDE_TRY(TIDE_NEW(&r->results, o->n_names, err, "for the results of a replay"));
    if (o->n_names == 0) TIDE_TRY(cli_replay_count(&r->source, &r->recorded, err));
    for (; r->n_results < o->n_names; r->n_results++) {
        how.count = r->n_results == 0 ? &r->recorded : NULL; // in one pass with the first replay
        TIDE_TRY(cli_replay_with(&r->source, &how, o->names[r->n_results], &r->results[r->n_results], err));
    }
    TIDE_TRY(TIDE_NEW(&r->plans, o->n_strategies + 1, err, "for the plans of a replay"));
    for (; r->n_plans < o->n_strategies; r->n_plans++)
        TIDE_TRY(cli_replay_plan_make(&r->source, o->strategies[r->n_plans], &r->plans[r->n_plans], err));
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
    tide_host_free(r.plans);
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

static bool take_strategy(options *o, const char *name) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_strategy *strategy;
    if (tide_strategy_find(name, &strategy, &err) != TIDE_OK) {
        cli_usage(&cli_command_replay, "--strategy: %s%s%s", err.msg, err.hint[0] != '\0' ? "; " : "", err.hint);
        return false;
    }
    if (TIDE_GROW(&o->strategies, &o->cap_strategies, o->n_strategies + 1, &err, "for --strategy") != TIDE_OK)
        cli_option_no_memory("--strategy");
    o->strategies[o->n_strategies++] = strategy;
    return true;
}

/// One option. False after the message was printed.
static bool take(options *o, int c) {
    const cli_command *cmd = &cli_command_replay;
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n;
    switch (c) {
    case OPT_DEVICE:
        o->has_device = true;
        if (tide_sim_device_parse(optarg, &o->device, &err) == TIDE_OK) return true;
        cli_usage(cmd, "--device: %s", err.msg);
        return false;
    case OPT_ALLOCATOR:
        if (take_names(o, optarg, &err) != TIDE_OK) cli_option_no_memory("--allocator");
        return true;
    case OPT_STRATEGY:
        return take_strategy(o, optarg);
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

/// Blocks that lay on a device of another machine are asked for where no memory is needed.
static tide_status settle_device(options *o, tide_trace *t, tide_error *err) {
    char format[32] = "";
    bool is_simulated = false;
    bool follows_trace = !o->is_named; // nothing that is named says where
    for (size_t i = 0; i < o->n_names && !o->has_device; i++) {
        is_simulated = is_simulated || is_pytorch(o->names[i]);
        follows_trace = follows_trace || strcmp(o->names[i], CLI_REPLAY_AS_RECORDED) == 0;
    }
    if (!o->has_device && follows_trace &&
        tide_trace_meta(t, "imported_format", format, sizeof format, NULL) == TIDE_OK)
        is_simulated = is_simulated || format[0] != '\0';
    if (is_simulated) TIDE_TRY(tide_sim_device_open(&o->device, err));
    TIDE_TRY(tide_device_load(o->device, err));
    return o->is_named ? TIDE_OK : take_default_names(o, err);
}

static int replay_opened(options *o, tide_trace *t) {
    tide_error err = TIDE_ERROR_INIT;
    if (settle_device(o, t, &err) != TIDE_OK) return cli_fail(&err);
    const int code = try_names(o);
    if (code != CLI_EXIT_OK) return code;
    return cli_recording_settle(&cli_command_replay, &o->recording) ? replay_trace(o, t) : CLI_EXIT_USAGE;
}

static int settle_and_run(options *o) {
    tide_error err = TIDE_ERROR_INIT;
    if (cli_same_place(o->path, o->recording.path))
        return cli_usage(&cli_command_replay, "-o: '%s' is the input; it would be replaced", o->path);
    tide_trace *t = NULL;
    if (cli_trace_open(o->path, &t, &err) != TIDE_OK) return cli_fail(&err);
    const int done = replay_opened(o, t);
    tide_trace_close(t);
    return done;
}

static int run(int argc, char **argv) {
    options o = {.recording = {.recorder = {.drain = TIDE_RECORD_PROCESS, .rank = -1}}};
    int c, code = -1;
    while (code < 0 && (c = cli_next_option(&cli_command_replay, argc, argv)) != -1) {
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
    for (size_t i = 0; i < o.n_texts; i++) tide_host_free(o.texts[i]);
    tide_host_free(o.texts);
    tide_host_free(o.names);
    tide_host_free(o.strategies);
    return code;
}
