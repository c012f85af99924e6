// SPDX-License-Identifier: MIT
//
// tidemark import: another tool's recording as a trace; and the same for every command that is given one as FILE.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/recording.h"
#include "cli/table.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "profiler/import/import.h"

static const char help[] =
    "  -o TRACE            the trace that is written; needed\n"
    "  --force             replace a file at TRACE that is no trace\n"
    "  --json              what was read, as JSON\n\n"
    "Read are memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot, pickle protocols 2 to 5; nothing in one "
    "is\n"
    "imported or called; and the proposed form of SQLite), exports of Nsight Systems (SQLite, with\n"
    "--cuda-memory-usage=true), recordings of heaptrack, captures of memray, logs of RMM's logging adaptor (CSV) and\n"
    "logs with what TensorFlow Lite Micro's recording interpreter prints, also packed by zstd, gzip or lz4 (but for\n"
    "SQLite). Commands that look at traces take such a file itself.\n"
    "Example: tidemark import snapshot.pickle -o snapshot.db\n";

enum { OPT_FORCE = 256, OPT_JSON };
static const struct option option_table[] = {{"output", required_argument, NULL, 'o'},
                                             {"force", no_argument, NULL, OPT_FORCE},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_import = {"import",
                                        "[OPTION…] FILE -o TRACE",
                                        "Make a trace of another tool's recording",
                                        help,
                                        option_table,
                                        CLI_OPERANDS_FILES,
                                        run};

// ---- what was read ----

static void print_bytes_before(const tide_import_report *r, FILE *to) {
    char bytes[24];
    if (r->n_blocks_before > 0)
        fprintf(to, ", %" PRIu64 " block%s (%s) from before recording", r->n_blocks_before,
                r->n_blocks_before == 1 ? "" : "s", tide_format_bytes(r->bytes_before, bytes, sizeof bytes));
}

/// What of the file could not be taken as it stands.
static void print_doubts(const tide_import_report *r) {
    if (r->is_cut) fputs("note: the file ends in the middle: what stands before is in the trace\n", stderr);
    if (r->n_unknown > 0)
        fprintf(stderr, "note: %" PRIu64 " events of kinds that are not known were left out\n", r->n_unknown);
    if (r->n_without_time > 0)
        fprintf(stderr, "note: %" PRIu64 " events tell no time: each stands 1 us behind the one before it\n",
                r->n_without_time);
    if (r->n_unknown_frees > 0)
        fprintf(stderr, "note: %" PRIu64 " frees of blocks whose allocation is not in the file were left out\n",
                r->n_unknown_frees);
    if (r->n_left_out > 0)
        fprintf(stderr,
                "note: %" PRIu64 " kernels, copies and fills of devices were left out: a trace has no place for them\n",
                r->n_left_out);
    if (r->n_native_frames > 0)
        fprintf(stderr, "note: %" PRIu64 " frames of native code were left out: call stacks have those of Python\n",
                r->n_native_frames);
    if (r->n_objects > 0)
        fprintf(stderr, "note: %" PRIu64 " begins and ends of Python's objects were left out: they are no blocks\n",
                r->n_objects);
    if (r->has_sums)
        fputs(
            "note: the file has sums in the place of events: a block is all that a call stack held, at the peak or at "
            "the end\n",
            stderr);
    if (r->n_contradictions > 0)
        fprintf(stderr, "note: events and the state at the end contradict each other %" PRIu64 " times\n",
                r->n_contradictions);
    if (r->n_inexact > 0)
        fprintf(stderr,
                "note: of %" PRIu64 " blocks it is not known exactly what they hold beyond what was asked for\n",
                r->n_inexact);
}

static void print_report(const char *path, const tide_import_report *r, FILE *to) {
    char name[256];
    fprintf(to, "%s: %s, %" PRIu64 " events, %" PRIu64 " block%s", cli_clean(path, name, sizeof name),
            tide_import_format_name(r->format), r->n_events, r->n_blocks, r->n_blocks == 1 ? "" : "s");
    print_bytes_before(r, to);
    fputc('\n', to);
    fflush(to);
    print_doubts(r);
}

static int print_json(const char *path, const char *out, const tide_import_report *r) {
    tide_text text = {0};
    tide_json_out j = cli_document_begin("import", &text);
    tide_json_text(&j, "file", path);
    tide_json_text(&j, "format", tide_import_format_name(r->format));
    tide_json_text(&j, "trace", out);
    tide_json_u64(&j, "events", r->n_events);
    tide_json_u64(&j, "blocks", r->n_blocks);
    tide_json_u64(&j, "blocks_before", r->n_blocks_before);
    tide_json_u64(&j, "bytes_before", r->bytes_before);
    tide_json_u64(&j, "unknown_events", r->n_unknown);
    tide_json_u64(&j, "events_without_time", r->n_without_time);
    tide_json_u64(&j, "unknown_frees", r->n_unknown_frees);
    tide_json_u64(&j, "device_work", r->n_left_out);
    tide_json_u64(&j, "native_frames", r->n_native_frames);
    tide_json_u64(&j, "python_objects", r->n_objects);
    tide_json_u64(&j, "contradictions", r->n_contradictions);
    tide_json_u64(&j, "inexact_blocks", r->n_inexact);
    tide_json_bool(&j, "sums", r->has_sums);
    tide_json_bool(&j, "cut", r->is_cut);
    cli_document_end(&j);
    return cli_document_print(&text);
}

// ---- FILE of other commands ----

/// Made once in a process, removed at its end; a child of fork has no part in them.
static pid_t maker;
static struct made {
    char *path, *trace;
    tide_output *folder;
    struct made *next;
} * all_made;

static void remove_made(void) {
    while (all_made != NULL && getpid() == maker) {
        struct made *m = all_made;
        all_made = m->next;
        tide_output_drop(m->folder);
        tide_host_free(m->path);
        tide_host_free(m->trace);
        tide_host_free(m);
    }
}

/// A folder that is ours alone, and the trace in it, under the file's own name.
static tide_status folder_for(const char *path, struct made *m, tide_error *err) {
    const char *folder = getenv("TMPDIR"), *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    tide_text name = {0};
    tide_text_addf(&name, "%s/tidemark-%ld.trace", folder != NULL && folder[0] != '\0' ? folder : "/tmp",
                   (long)getpid()); // a name for messages: what lies there is a folder with the trace in it
    tide_status st = name.failed ? TIDE_NO_MEMORY(err, "to read '%s'", path)
                                 : tide_output_begin(tide_text_str(&name), &m->folder, err);
    if (st == TIDE_OK) {
        const char *made = tide_output_file(m->folder);
        name.len = 0;
        tide_text_addf(&name, "%.*s/%s", (int)(strrchr(made, '/') - made), made, base);
        st = name.failed ? TIDE_NO_MEMORY(err, "to read '%s'", path)
                         : TIDE_COPY_TEXT(&m->trace, tide_text_str(&name), err, "to read '%s'", path);
    }
    tide_text_deinit(&name);
    return st;
}

static tide_status make_trace(const char *path, struct made *m, tide_error *err) {
    tide_import_report report;
    TIDE_TRY(TIDE_COPY_TEXT(&m->path, path, err, "to read '%s'", path));
    tide_status st = folder_for(path, m, err);
    if (st == TIDE_OK) st = tide_import_file(path, m->trace, &report, err);
    if (st == TIDE_ERR_WRITE) tide_error_hint(err, "TMPDIR says where the trace of '%s' is made", path);
    if (st != TIDE_OK) return st;
    fputs("note: ", stderr);
    print_report(path, &report, stderr);
    return TIDE_OK;
}

tide_status cli_trace_path(const char *path, const char **out, tide_error *err) {
    *out = path;
    if (strcmp(path, "-") == 0 || tide_import_look(path) == TIDE_IMPORT_UNKNOWN) return TIDE_OK;
    for (struct made *m = all_made; m != NULL; m = m->next) {
        *out = m->trace;
        if (strcmp(m->path, path) == 0) return TIDE_OK;
    }
    struct made *m;
    TIDE_TRY(TIDE_NEW(&m, 1, err, "to read '%s'", path));
    if (all_made == NULL && atexit(remove_made) == 0) maker = getpid();
    m->next = all_made;
    all_made = m;
    const tide_status st = make_trace(path, m, err);
    if (st == TIDE_OK) *out = m->trace;
    return st; // what was made is removed at the end
}

// ---- the command ----

static int import(const char *path, const char *out, bool force, bool json) {
    tide_error err = TIDE_ERROR_INIT;
    tide_import_report report;
    if (cli_same_place(path, out))
        return cli_usage(&cli_command_import, "-o: '%s' is the input; it would be replaced", out);
    if (!force && !cli_may_replace(out)) return CLI_EXIT_USAGE;
    if (tide_import_file(path, out, &report, &err) != TIDE_OK) return cli_fail(&err);
    if (json) return print_json(path, out, &report);
    print_report(path, &report, stdout);
    return CLI_EXIT_OK;
}

static int run(int argc, char **argv) {
    const char *out = NULL;
    bool force = false, json = false;
    for (int c; (c = cli_next_option(&cli_command_import, argc, argv)) != -1;) {
        if (c == 'h') return CLI_EXIT_OK;
        if (c == '?') return CLI_EXIT_USAGE;
        if (c == 'o') out = optarg;
        force = force || c == OPT_FORCE;
        json = json || c == OPT_JSON;
    }
    if (argc - optind != 1) return cli_usage(&cli_command_import, "one FILE is needed");
    if (out == NULL) return cli_usage(&cli_command_import, "-o TRACE is needed");
    return import(argv[optind], out, force, json);
}
