// SPDX-License-Identifier: MIT
//
// tidemark run: run a model for real and see what it held, per memory kind.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/decode.h"
#include "cli/memory_report.h"
#include "cli/planning.h"
#include "cli/recording.h"
#include "cli/run_sizes.h"
#include "cli/run_tui.h"
#include "cli/session.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/device/plugin.h"

enum {
    OPT_PLAN = CLI_OPT_FIRST_OWN,
    OPT_NAIVE,
    OPT_PROFILE,
    OPT_CONTEXTS,
    OPT_DEVICE,
    OPT_LEAK_CHECK,
    OPT_FILL,
    OPT_ALLOCATOR,
    OPT_LIMIT,
    OPT_DECODE,
    OPT_PAGE_TOKENS,
    OPT_TUI,
    OPT_BUFFER_FILE,
};

static const char help[] = CLI_PLANNING_HELP
    "  --plan FILE         run with this plan (JSON of `tidemark plan -o`) instead of making one\n"
    "  --naive             no plan: every tensor is allocated when born and freed when dead\n"
    "  -n RUNS             runs per context (default 10)\n"
    "  --contexts N        contexts that run at the same time, one thread each (default 1)\n"
    "  --device D          cpu (default), the only one that operators run on\n"
    "  --allocator A       cpu (default) or another that `tidemark allocators` can name\n"
    "  --limit SIZE        all kinds together may hold so much; what does not fit is reported\n"
    "  --input-dir DIR     input_0.pb, input_1.pb … in ONNX's layout; also fixes open extents\n"
    "  --fill F            fresh memory is set to zero (default), none or poison\n"
    "  --buffer-file FILE  the contexts' buffers and outputs lie in FILE, mapped; made if it is not there\n"
    "  --leak-check        list every block still alive at the end; exit 1 when there is one\n"
    "  --decode N          FILE is one step of a decoder: run N of them over a paged KV cache\n"
    "  --profile NAME=MIN:OPT:MAX, or NAME=DIMS,DIMS,…  run at one size after the other, -n times each, by one plan\n"
    "                      for all of them and in one buffer; may be repeated\n"
    "  --page-tokens N     with --decode: tokens in one page of the cache (default 16)\n"
    "  --tui               look at it while it runs; the report follows when both are over\n"
    "  -o FILE             record a trace\n" CLI_RECORDER_HELP CLI_RECORDING_HELP
    "  --json              print numbers as JSON\n\n"
    "Example: tidemark run -n 100 -o lenet.db sample_graphs/lenet5.json\n";

static const struct option option_table[] = {CLI_PLANNING_OPTIONS,
                                             {"plan", required_argument, NULL, OPT_PLAN},
                                             {"naive", no_argument, NULL, OPT_NAIVE},
                                             {"profile", required_argument, NULL, OPT_PROFILE},
                                             {"runs", required_argument, NULL, 'n'},
                                             {"contexts", required_argument, NULL, OPT_CONTEXTS},
                                             {"device", required_argument, NULL, OPT_DEVICE},
                                             {"allocator", required_argument, NULL, OPT_ALLOCATOR},
                                             {"limit", required_argument, NULL, OPT_LIMIT},
                                             {"decode", required_argument, NULL, OPT_DECODE},
                                             {"page-tokens", required_argument, NULL, OPT_PAGE_TOKENS},
                                             {"input-dir", required_argument, NULL, CLI_OPT_INPUT_DIR},
                                             {"fill", required_argument, NULL, OPT_FILL},
                                             {"buffer-file", required_argument, NULL, OPT_BUFFER_FILE},
                                             {"leak-check", no_argument, NULL, OPT_LEAK_CHECK},
                                             {"tui", no_argument, NULL, OPT_TUI},
                                             {"output", required_argument, NULL, 'o'},
                                             CLI_RECORDER_OPTION,
                                             CLI_RECORDING_OPTIONS,
                                             {"json", no_argument, NULL, CLI_OPT_JSON},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_run = {
    "run", "[OPTION…] FILE", "Run a model under instrumented allocators", help, option_table, CLI_OPERANDS_FILES, run};

typedef struct options {
    cli_planning planning;
    cli_session_spec spec;
    cli_session_options session;
    cli_recording_options recording;
    const char *plan_path;
    const char *plain_only; // an option that --decode has no use for
    uint64_t decode;        // steps; 0: plain runs
    uint64_t page_tokens;   // 0: the default
    bool naive, leak_check, json, tui;
    cli_run_tui *view; // the view of --tui; NULL: none
} options;

// ---- output ----

static void add_kinds(tide_json_out *j, const options *o, const cli_session_result *r) {
    char device[16];
    tide_json_open(j, "kinds", '[');
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_meter_kind *m = &r->kinds[k];
        if (m->peak_bytes == 0) continue;
        tide_json_open(j, NULL, '{');
        tide_json_text(j, "kind", tide_memory_kind_name((tide_memory_kind)k));
        tide_json_text(j, "device", tide_device_format(o->spec.device, device, sizeof device));
        tide_json_u64(j, "requested_bytes", m->requested_bytes);
        tide_json_u64(j, "peak_bytes", m->peak_bytes);
        tide_json_u64(j, "reserved_peak_bytes", m->reserved_peak_bytes);
        tide_json_u64(j, "allocations", m->n_allocs);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}

/// The results of a run, which outlive the model; leaks belong to the session.
typedef struct findings {
    char *model;    // owned
    char *strategy; // owned; NULL in naive mode
    cli_session_result result;
    cli_decode_result decode; // with --decode
    cli_sizes_result sizes;   // with --profile
    cli_leaks leaks;
    cli_recording recording;
    bool has_process; // of planned runs
    tide_process_need process;
    size_t n_dynamic;                     // tensors that are sized while running: not in `process`
    uint64_t load_peak_bytes, peak_bytes; // that the process had, by the kernel; 0: it does not say
} findings;

/// The most bytes of memory that this process has had (VmHWM); 0 where the system does not tell.
static uint64_t measured_peak(void) {
    char *text = NULL;
    size_t len;
    uint64_t kib = 0;
    if (tide_read_file("/proc/self/status", 0, &text, &len, NULL) != TIDE_OK) return 0;
    const char *line = strstr(text, "\nVmHWM:");
    if (line != NULL) kib = strtoull(line + strlen("\nVmHWM:"), NULL, 10);
    tide_host_free(text);
    return kib * 1024;
}

static void print_process(const findings *f) {
    char predicted[24], measured[24], load[24], loaded[24];
    printf("process, predicted: %s, %s while it was loaded",
           tide_format_bytes(f->process.peak_bytes, predicted, sizeof predicted),
           tide_format_bytes(f->process.load_bytes, load, sizeof load));
    if (f->n_dynamic > 0)
        printf(", and what %zu tensor%s that %s sized while running take%s", f->n_dynamic, f->n_dynamic == 1 ? "" : "s",
               f->n_dynamic == 1 ? "is" : "are", f->n_dynamic == 1 ? "s" : "");
    if (f->peak_bytes > 0)
        printf("; measured by the system: %s, %s", tide_format_bytes(f->peak_bytes, measured, sizeof measured),
               tide_format_bytes(f->load_peak_bytes, loaded, sizeof loaded));
    puts("");
}

static void add_buffer_file(tide_json_out *j, const char *path, const cli_buffer_use *use) {
    tide_json_open(j, "buffer_file", '{');
    tide_json_text(j, "path", path);
    tide_json_u64(j, "bytes", use->bytes);
    tide_json_u64(j, "file_bytes", use->file_bytes);
    tide_json_bool(j, "created", use->created);
    tide_json_u64(j, "contexts", use->n_contexts);
    tide_json_u64(j, "context_bytes", use->context_bytes);
    tide_json_close(j, '}');
}

static void print_buffer_file(const char *path, const cli_buffer_use *use) {
    char clean[256], bytes[24], file[24], each[24];
    printf("buffer file: %s of '%s' (%s%s), %zu context%s of %s\n", tide_format_bytes(use->bytes, bytes, sizeof bytes),
           cli_clean(path, clean, sizeof clean), tide_format_bytes(use->file_bytes, file, sizeof file),
           use->created ? ", made by this run" : "", use->n_contexts, use->n_contexts == 1 ? "" : "s",
           tide_format_bytes(use->context_bytes, each, sizeof each));
}

static int print_json(const options *o, const findings *f) {
    const cli_session_result *r = &f->result;
    tide_text text = {0};
    tide_json_out doc = cli_document_begin("run", &text), *const j = &doc;
    tide_json_text(j, "model", f->model);
    tide_json_text(j, "mode", o->naive ? "naive" : "planned");
    tide_json_text(j, "strategy", f->strategy);
    tide_json_u64(j, "runs", o->spec.runs);
    tide_json_u64(j, "contexts", o->spec.contexts);
    tide_json_open(j, "time_ns", '{');
    tide_json_u64(j, "median", r->time_median_ns);
    tide_json_u64(j, "min", r->time_min_ns);
    tide_json_u64(j, "max", r->time_max_ns);
    tide_json_close(j, '}');
    cli_json_recording(j, &f->recording);
    const uint64_t limit = o->session.limit_bytes;
    tide_json_u64_if(j, "limit_bytes", limit > 0, limit);
    add_kinds(j, o, r);
    tide_json_u64(j, "warm_allocations", r->warm_allocations);
    if (o->spec.buffer_file != NULL) add_buffer_file(j, o->spec.buffer_file, &r->buffer_file);
    if (f->has_process) {
        tide_process_need_json(j, &f->process);
        tide_json_u64_if(j, "measured_load_bytes", f->load_peak_bytes > 0, f->load_peak_bytes);
        tide_json_u64_if(j, "measured_peak_bytes", f->peak_bytes > 0, f->peak_bytes);
    }
    cli_bounded_json(j, "bounded", &r->bounded);
    if (o->decode > 0) cli_json_decode(j, "decode", &f->decode);
    if (f->sizes.n > 0) cli_json_sizes(j, "sizes", &f->sizes);
    cli_json_leaks(j, "leaks", &f->leaks);
    cli_json_own_memory(j, "own_memory");
    cli_document_end(j);
    return cli_document_print(&text);
}

static void print_text(const options *o, const findings *f) {
    const cli_session_result *r = &f->result;
    char model[256];
    printf("%s: %s%s%s, %zu run%s x %zu context%s, median %.3f ms\n\n", cli_clean(f->model, model, sizeof model),
           o->naive ? "naive" : "planned", o->naive ? "" : ", ", o->naive ? "" : f->strategy, o->spec.runs,
           o->spec.runs == 1 ? "" : "s", o->spec.contexts, o->spec.contexts == 1 ? "" : "s",
           (double)r->time_median_ns / 1e6);
    printf("%-13s %14s %14s %14s %12s\n", "kind", "peak", "reserved", "requested", "allocations");
    for (int k = 0; k < TIDE_N_KINDS; k++) {
        const tide_meter_kind *m = &r->kinds[k];
        if (m->peak_bytes == 0) continue;
        char a[24], b[24], c[24];
        printf("%-13s %14s %14s %14s %12" PRIu64 "\n", tide_memory_kind_name((tide_memory_kind)k),
               tide_format_bytes(m->peak_bytes, a, sizeof a), tide_format_bytes(m->reserved_peak_bytes, b, sizeof b),
               tide_format_bytes(m->requested_bytes, c, sizeof c), m->n_allocs);
    }
    char total[24];
    printf("%-13s %14s\n\n", "together", tide_format_bytes(r->total_peak_bytes, total, sizeof total));
    cli_bounded_print(&r->bounded);
    if (o->decode > 0) cli_decode_print(&f->decode);
    if (f->sizes.n > 0) cli_sizes_print(&f->sizes);
    printf("allocations in warm runs: %" PRIu64 " of the kinds above\n", r->warm_allocations);
    if (o->spec.buffer_file != NULL) print_buffer_file(o->spec.buffer_file, &r->buffer_file);
    if (f->has_process) print_process(f);
    cli_leaks_print(&f->leaks, stdout);
    if (o->leak_check && f->leaks.n_blocks == 0) puts("leaks: none");
    cli_recording_print(&f->recording);
}

// ---- work ----

static tide_status load(const char *path, options *o, cli_plans *plans, tide_error *err) {
    cli_input in;
    TIDE_TRY(cli_input_open(path, &in, err));
    tide_status st = cli_input_require_graph(&in, err);
    if (st == TIDE_OK)
        st = o->plan_path != NULL ? cli_plans_follow(&in, o->plan_path, &o->planning, plans, err)
                                  : cli_plans_make(&in, &o->planning, plans, err);
    cli_input_close(&in);
    return st;
}

static tide_status run_steps(options *o, cli_session *session, findings *f, tide_error *err) {
    o->spec.runs = (size_t)o->decode;
    const cli_decode_spec spec = {.run = &o->spec,
                                  .n_tokens = (size_t)o->decode,
                                  .page_tokens = o->page_tokens > 0 ? (size_t)o->page_tokens : CLI_DECODE_PAGE_TOKENS,
                                  .allocator = o->session.allocator};
    const tide_status st = cli_decode_run(session, &spec, &f->decode, err);
    f->result = f->decode.session;
    return st;
}

static tide_status run_sizes(const char *path, options *o, cli_session *session, findings *f, tide_error *err) {
    o->planning.weights_registry = cli_session_registry(session);
    o->planning.mapped = cli_session_mapped(session);
    o->spec.seed = o->planning.seed;
    const tide_status st = cli_sizes_run(session, path, &o->planning, &o->spec, &f->sizes, err);
    f->result = f->sizes.session;
    if (st != TIDE_OK) return st;
    f->model = tide_host_strdup(f->sizes.model);
    f->strategy = tide_host_strdup(f->sizes.strategy);
    return f->model != NULL && f->strategy != NULL ? TIDE_OK : TIDE_NO_MEMORY(err, "for the names of '%s'", path);
}

static tide_status run_in_session(const char *path, options *o, cli_session *session, findings *f, tide_error *err) {
    cli_plans plans = {0};
    if (o->planning.profile.n_points > 0) return run_sizes(path, o, session, f, err);
    o->planning.weights_registry = cli_session_registry(session);
    o->planning.mapped = cli_session_mapped(session);
    tide_status st = load(path, o, &plans, err);
    if (st == TIDE_OK) {
        f->load_peak_bytes = measured_peak();
        o->spec.program = plans.program;
        // A naive run carries the plan too: its lifetimes and lower bound belong to the trace.
        o->spec.plan = plans.plans[0];
        o->spec.mode = o->naive ? TIDE_RUN_NAIVE : TIDE_RUN_PLANNED;
        o->spec.source = path;
        o->spec.input_dir = o->planning.input_dir;
        o->spec.seed = o->planning.seed;
        st = o->decode > 0 ? run_steps(o, session, f, err) : cli_session_run(session, &o->spec, &f->result, err);
    }
    if (st == TIDE_OK) {
        f->model = tide_host_strdup(plans.program->graph->name);
        f->peak_bytes = measured_peak();
        f->has_process = !o->naive && o->decode == 0;
        f->n_dynamic = plans.program->n_dynamic;
        if (f->has_process) f->process = tide_process_need_of(plans.plans[0], (uint64_t)o->spec.contexts);
        if (!o->naive) f->strategy = tide_host_strdup(plans.plans[0]->strategy);
        if (f->model == NULL || (!o->naive && f->strategy == NULL))
            st = TIDE_NO_MEMORY(err, "for the names of '%s'", path);
    }
    cli_plans_deinit(&plans);
    return st;
}

/// The recorder outlives the session, which outlives the model.
static tide_status run_recorded(const char *path, options *o, cli_session **session, findings *f, tide_error *err) {
    TIDE_TRY(cli_recording_open(&o->recording, &f->recording, err));
    if (o->view != NULL) cli_run_tui_ready(o->view);
    o->session.recorder = f->recording.recorder;
    tide_status st = cli_session_open(&o->session, session, err);
    if (st == TIDE_OK) st = run_in_session(path, o, *session, f, err);
    cli_session_end(*session);
    cli_recording_end(&f->recording, st, *session != NULL ? cli_session_record_error(*session) : NULL);
    return st;
}

/// A buffer file that is too small does not fit, as a limit that is passed.
static int fail(const cli_session *session, const options *o, const findings *f, const tide_error *err) {
    const int code = cli_fail_in_session(session, o->json ? "run" : NULL, o->session.limit_bytes, err);
    const cli_buffer_use *use = &f->result.buffer_file;
    return err->status == TIDE_ERR_NO_SPACE && use->file_bytes < use->bytes ? CLI_EXIT_DOES_NOT_FIT : code;
}

static int run_file(const char *path, options *o) {
    if (cli_same_file(path, o->recording.path))
        return cli_usage(&cli_command_run, "-o: '%s' is the input; it would be replaced", o->recording.path);
    tide_error err = TIDE_ERROR_INIT;
    cli_session *session = NULL;
    findings f = {0};
    int code;
    if (run_recorded(path, o, &session, &f, &err) != TIDE_OK) {
        code = fail(session, o, &f, &err);
    } else {
        code = CLI_EXIT_OK;
        cli_session_get_leaks(session, &f.leaks);
        if (o->json)
            code = print_json(o, &f);
        else
            print_text(o, &f);
        if (o->leak_check && f.leaks.n_blocks > 0) code = CLI_EXIT_CHECK_FAILED;
    }
    code = cli_recording_report(&f.recording, code);
    cli_session_close(session);
    cli_session_result_deinit(&f.result);
    cli_decode_result_deinit(&f.decode);
    cli_sizes_result_deinit(&f.sizes);
    tide_host_free(f.model);
    tide_host_free(f.strategy);
    return code;
}

static int settle_and_run(const char *path, options *o) {
    return cli_recording_settle(&cli_command_run, &o->recording) ? run_file(path, o) : CLI_EXIT_USAGE;
}

/// --tui: the child process does what `run` does without it.
static int run_in_view(const char *path, options *o) {
    tide_error err = TIDE_ERROR_INIT;
    cli_run_tui view;
    if (cli_same_file(path, o->recording.path))
        return cli_usage(&cli_command_run, "-o: '%s' is the input; it would be replaced", o->recording.path);
    tide_status st = cli_run_tui_prepare(o->recording.path, &view, &err);
    if (st == TIDE_ERR_INVALID) {
        cli_print_error(&err);
        return CLI_EXIT_USAGE;
    }
    view.capacity_bytes = o->session.limit_bytes;
    int code = CLI_EXIT_OK;
    if (st == TIDE_OK) st = cli_run_tui_start(&view, &code, &err);
    if (st != TIDE_OK) return cli_fail(&err);
    if (!view.is_child) return code;
    o->recording.is_temporary = view.folder[0] != '\0';
    o->recording.path = view.path;
    o->view = &view;
    return settle_and_run(path, o);
}

/// One option of `run` itself. @return CLI_EXIT_OK or CLI_EXIT_USAGE
static int take_option(void *ctx, int c) {
    options *o = ctx;
    const cli_command *cmd = &cli_command_run;
    tide_error err = TIDE_ERROR_INIT;
    uint64_t n;
    switch (c) {
    case OPT_PLAN:
        o->plan_path = optarg;
        return CLI_EXIT_OK;
    case OPT_NAIVE:
        o->naive = true;
        return CLI_EXIT_OK;
    case 'n':
    case OPT_CONTEXTS:
        if (!cli_parse_count(cmd, c == 'n' ? "-n" : "--contexts", optarg, c == 'n' ? 100000000 : 1024, &n))
            return CLI_EXIT_USAGE;
        if (n == 0) return cli_usage(cmd, "%s: at least 1 is needed", c == 'n' ? "-n" : "--contexts");
        *(c == 'n' ? &o->spec.runs : &o->spec.contexts) = (size_t)n;
        o->plain_only = c == 'n' ? "-n" : "--contexts";
        return CLI_EXIT_OK;
    case OPT_DECODE:
    case OPT_PAGE_TOKENS:
        if (!cli_parse_count(cmd, c == OPT_DECODE ? "--decode" : "--page-tokens", optarg, 1000000, &n))
            return CLI_EXIT_USAGE;
        if (n == 0) return cli_usage(cmd, "%s: at least 1 is needed", c == OPT_DECODE ? "--decode" : "--page-tokens");
        *(c == OPT_DECODE ? &o->decode : &o->page_tokens) = n;
        return CLI_EXIT_OK;
    case OPT_PROFILE:
        return cli_profile_add(cmd, &o->planning.profile, optarg) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_DEVICE:
        if (tide_device_parse(optarg, &o->spec.device, &err) != TIDE_OK) return cli_usage(cmd, "--device: %s", err.msg);
        return CLI_EXIT_OK;
    case OPT_ALLOCATOR:
        if (!cli_parse_allocator(cmd, optarg)) return CLI_EXIT_USAGE;
        o->session.allocator = optarg;
        return CLI_EXIT_OK;
    case OPT_LIMIT:
        return cli_parse_limit(cmd, optarg, &o->session.limit_bytes) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    case OPT_FILL:
        if (!cli_parse_fill(cmd, optarg, &o->spec.fill)) return CLI_EXIT_USAGE;
        return CLI_EXIT_OK;
    case CLI_OPT_INPUT_DIR:
        o->planning.input_dir = optarg;
        o->plain_only = "--input-dir";
        return CLI_EXIT_OK;
    case OPT_BUFFER_FILE:
        o->spec.buffer_file = optarg;
        o->plain_only = "--buffer-file";
        return CLI_EXIT_OK;
    case OPT_LEAK_CHECK:
        o->leak_check = true;
        return CLI_EXIT_OK;
    case OPT_TUI:
        o->tui = true;
        return CLI_EXIT_OK;
    case 'o':
        o->recording.path = optarg;
        return CLI_EXIT_OK;
    case CLI_OPT_JSON:
        o->json = true;
        return CLI_EXIT_OK;
    default:
        return cli_recording_option(cmd, &o->recording, c) > 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    }
}

/// What goes together. @return CLI_GO_ON, CLI_EXIT_USAGE
static int check_options(const options *o) {
    const cli_command *cmd = &cli_command_run;
    if (o->naive && (o->plan_path != NULL || o->planning.strategy != NULL))
        return cli_usage(cmd, "--naive runs without a plan: leave --plan and --strategy out");
    if (o->planning.profile.n_points > 0 &&
        (o->naive || o->plan_path != NULL || o->decode > 0 || o->spec.contexts > 1 || o->spec.buffer_file != NULL ||
         o->planning.input_dir != NULL))
        return cli_usage(cmd,
                         "--profile plans and runs in one context and feeds itself: leave --naive, --plan, --decode, "
                         "--contexts, --input-dir and --buffer-file out");
    if (o->decode > 0 && o->plain_only != NULL)
        return cli_usage(cmd, "--decode N runs N steps in one context and feeds itself: leave %s out", o->plain_only);
    if (o->decode == 0 && o->page_tokens > 0) return cli_usage(cmd, "--page-tokens is of use with --decode only");
    if (o->spec.buffer_file == NULL) return CLI_GO_ON;
    if (o->naive)
        return cli_usage(cmd,
                         "--buffer-file is as large as the plan says, and --naive runs without one: leave one out");
    if (o->session.limit_bytes > 0)
        return cli_usage(cmd, "--limit counts what is allocated, and --buffer-file is not: leave one of them out");
    return CLI_GO_ON;
}

/// --buffer-file is written from its first byte on: it must be no file that the run reads or makes.
static int check_buffer_file(const char *model, const options *o) {
    const cli_command *cmd = &cli_command_run;
    const char *const file = o->spec.buffer_file;
    if (file[0] == '\0' || strcmp(file, "-") == 0) return cli_usage(cmd, "--buffer-file: '%s' is no file", file);
    if (cli_same_file(model, file))
        return cli_usage(cmd, "--buffer-file: '%s' is the input; it would be overwritten", file);
    if (cli_same_file(o->plan_path, file))
        return cli_usage(cmd, "--buffer-file: '%s' is the plan; it would be overwritten", file);
    static const char *const of_trace[] = {"", "-wal", "-shm", "-journal"}; // SQLite's own files lie beside it
    for (size_t i = 0; o->recording.path != NULL && i < sizeof of_trace / sizeof of_trace[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", o->recording.path, of_trace[i]);
        if (cli_same_place(path, file))
            return cli_usage(cmd, "--buffer-file: '%s' is the trace of -o; it needs a file of its own", file);
    }
    for (int i = 0; o->planning.input_dir != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/input_%d.pb", o->planning.input_dir, i);
        if (access(path, F_OK) != 0) break;
        if (cli_same_file(path, file))
            return cli_usage(cmd, "--buffer-file: '%s' is an input of --input-dir; it would be overwritten", file);
    }
    return CLI_GO_ON;
}

/// Operators run on the CPU alone: any other device is refused, with what is missing when it is not there either.
static int check_device(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    char name[32];
    if (device.type == TIDE_DEVICE_CPU) return CLI_GO_ON;
    if (tide_device_load(device, &err) == TIDE_OK) {
        TIDE_FAIL(&err, TIDE_ERR_NOT_IMPLEMENTED, "operators do not run on %s yet",
                  tide_device_format(device, name, sizeof name));
        tide_error_note(&err, "the device is there, and its memory can be used: by allocators, and to replay what was "
                              "recorded");
        tide_error_hint(&err, "run on the CPU: --device cpu");
    }
    return cli_fail(&err);
}

static int run(int argc, char **argv) {
    options o = {.spec = {.runs = 10, .contexts = 1, .device = TIDE_CPU},
                 .session = {.allocator = "cpu"},
                 .recording = {.recorder = {.drain = TIDE_RECORD_PROCESS, .rank = -1}}};
    int code = cli_parse_options(&cli_command_run, argc, argv, &o.planning, take_option, &o);
    if (code == CLI_GO_ON) code = check_options(&o);
    if (code == CLI_GO_ON && o.spec.buffer_file != NULL) code = check_buffer_file(argv[optind], &o);
    if (code == CLI_GO_ON) code = check_device(o.spec.device);
    if (code == CLI_GO_ON) code = o.tui ? run_in_view(argv[optind], &o) : settle_and_run(argv[optind], &o);
    cli_planning_deinit(&o.planning);
    return code;
}
