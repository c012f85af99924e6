// SPDX-License-Identifier: MIT
//
// tidemark merge: traces of several ranks, hosts or programs as one, on one clock.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/recording.h"
#include "cli/table.h"
#include "cli/trace_view.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/merge/merge.h"

static const char help[] =
    "  -o TRACE            the trace that is written; needed\n"
    "  --labels A,B,…      what each FILE is called; without it the names of the files\n"
    "  --align CLOCK       how they come to one clock:\n"
    "                        boot    they were recorded on one machine since it started\n"
    "                        wall    by the dates that their machines knew\n"
    "                        marks   so that marks of one name fall together (the median of their distances)\n"
    "                        begin   all begin at once\n"
    "                      without it the first of boot, wall and marks that they share; else they are refused\n"
    "  --offsets A,B,…     when each FILE begins, after the begin of the first: 0,3.2s,-12ms\n"
    "  --devices apart|same  whether devices of one name in two FILEs are two or one; without it two, unless\n"
    "                      all were recorded on one machine since it started\n"
    "  --force             replace a file at TRACE that is no trace\n"
    "  --json              what was merged, as JSON\n\n"
    "FILE is a trace, or another tool's recording (tidemark import). Each becomes a lane: its processes carry its\n"
    "label.\n"
    "Example: tidemark merge rank0.db rank1.db -o all.db\n";

enum { OPT_LABELS = 256, OPT_ALIGN, OPT_OFFSETS, OPT_DEVICES, OPT_FORCE, OPT_JSON };
static const struct option option_table[] = {{"output", required_argument, NULL, 'o'},
                                             {"labels", required_argument, NULL, OPT_LABELS},
                                             {"align", required_argument, NULL, OPT_ALIGN},
                                             {"offsets", required_argument, NULL, OPT_OFFSETS},
                                             {"devices", required_argument, NULL, OPT_DEVICES},
                                             {"force", no_argument, NULL, OPT_FORCE},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int run(int argc, char **argv);
const cli_command cli_command_merge = {
    "merge", "[OPTION…] FILE FILE… -o TRACE", "Make one trace of several", help, option_table, CLI_OPERANDS_FILES, run};

typedef struct options {
    const char *out, *labels, *offsets;
    tide_merge_options merge;
    bool has_clock, force, json;
} options;

/// The files of one merge, and what becomes of them.
typedef struct job {
    size_t n;
    tide_merge_input *in;   ///< [n], owned
    tide_merge_lane *lanes; ///< [n], owned
    char *labels;           ///< owned: the texts of in[].label
    tide_merge_clock used;
} job;

static void job_deinit(job *j) {
    tide_host_free(j->in);
    tide_host_free(j->lanes);
    tide_host_free(j->labels);
}

// ---- lists of options ----

/// The next of a list "A,B,C", ended where its comma was; NULL: no more.
static char *next_word(char **rest) {
    char *word = *rest;
    if (word == NULL) return NULL;
    char *comma = strchr(word, ',');
    *rest = comma != NULL ? comma + 1 : NULL;
    if (comma != NULL) *comma = '\0';
    return word;
}

static int wrong_count(const char *option, size_t n, size_t n_files) {
    return cli_usage(&cli_command_merge, "%s: %zu for %zu files; one for each is needed", option, n, n_files);
}

/// The file's name without its folder and what stands behind the first point: "rank0" of "out/rank0.db.zst".
static void short_name(const char *path, char *out) {
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    const char *point = strchr(base[0] != '\0' ? base + 1 : base, '.');
    const size_t n = point != NULL ? (size_t)(point - base) : strlen(base);
    memcpy(out, base, n);
    out[n] = '\0';
}

/// Names of the files; the whole paths where two names are the same. False: no memory.
static bool labels_of_files(job *j) {
    size_t bytes = 0;
    for (size_t i = 0; i < j->n; i++) bytes += strlen(j->in[i].path) + 1;
    j->labels = tide_host_alloc(bytes);
    tide_strmap seen = {0};
    bool good = j->labels != NULL, differ = true;
    char *at = j->labels;
    for (size_t i = 0; good && i < j->n; i++, at += strlen(at) + 1) {
        short_name(j->in[i].path, at);
        j->in[i].label = at;
        differ = differ && at[0] != '\0' && !tide_strmap_get(&seen, at, NULL);
        good = tide_strmap_put(&seen, at, i) == TIDE_OK;
    }
    for (size_t i = 0; good && !differ && i < j->n; i++) j->in[i].label = j->in[i].path;
    tide_strmap_deinit(&seen);
    return good;
}

/// Whether each file has a label of its own; false after a message.
static bool labels_differ(const job *j) {
    tide_strmap seen = {0};
    bool differ = true;
    for (size_t i = 0; differ && i < j->n; i++) {
        differ = !tide_strmap_get(&seen, j->in[i].label, NULL);
        if (!differ)
            cli_usage(&cli_command_merge, "'%s' needs a label of its own, not '%s': --labels A,B,…", j->in[i].path,
                      j->in[i].label);
        if (tide_strmap_put(&seen, j->in[i].label, i) != TIDE_OK) cli_option_no_memory("--labels");
    }
    tide_strmap_deinit(&seen);
    return differ;
}

/// CLI_EXIT_OK, or the exit code after a message.
static int set_labels(job *j, const char *list) {
    if (list == NULL) {
        if (!labels_of_files(j)) cli_option_no_memory("FILE");
        return labels_differ(j) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    }
    j->labels = tide_host_strdup(list);
    if (j->labels == NULL) cli_option_no_memory("--labels");
    size_t n = 0;
    char *rest = j->labels, *word;
    for (; (word = next_word(&rest)) != NULL; n++) {
        if (word[0] == '\0') return cli_usage(&cli_command_merge, "--labels: label %zu is empty", n + 1);
        if (n < j->n) j->in[n].label = word;
    }
    if (n != j->n) return wrong_count("--labels", n, j->n);
    return labels_differ(j) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

static int set_offsets(job *j, const char *list) {
    char *copy = tide_host_strdup(list), *rest = copy, *word;
    if (copy == NULL) cli_option_no_memory("--offsets");
    size_t n = 0;
    int code = CLI_EXIT_OK;
    for (; code == CLI_EXIT_OK && (word = next_word(&rest)) != NULL; n++) {
        uint64_t ns = 0;
        const bool is_minus = word[0] == '-';
        const char *text = word + (is_minus || word[0] == '+');
        if (strcmp(text, "0") != 0 && (!cli_duration(text, &ns) || ns > INT64_MAX / 4))
            code = cli_usage(&cli_command_merge, "--offsets: '%s' is no time: 0, 12.5ms, -3s", word);
        if (n < j->n) j->in[n].offset_ns = is_minus ? -(int64_t)ns : (int64_t)ns;
    }
    if (code == CLI_EXIT_OK && n != j->n) code = wrong_count("--offsets", n, j->n);
    tide_host_free(copy);
    return code;
}

// ---- what was merged ----

typedef struct lane_row {
    const char *label;
    uint64_t n_events, begins_ns, length_ns, apart_ns;
    const char *devices;
} lane_row;

static lane_row row_of(const job *j, size_t i) {
    const tide_merge_lane *l = &j->lanes[i];
    uint64_t first = UINT64_MAX; // the begin of the whole
    for (size_t k = 0; k < j->n; k++)
        if (j->lanes[k].n_events > 0 && j->lanes[k].begin_ns < first) first = j->lanes[k].begin_ns;
    return (lane_row){.label = j->in[i].label,
                      .n_events = l->n_events,
                      .begins_ns = l->n_events > 0 ? l->begin_ns - first : UINT64_MAX,
                      .length_ns = l->n_events > 0 ? l->end_ns - l->begin_ns : UINT64_MAX,
                      .apart_ns = j->used == TIDE_MERGE_MARKS && i > 0 ? l->apart_ns : UINT64_MAX,
                      .devices = l->devices};
}

static void print_lanes(const job *j) {
    static const tide_column columns[] = {
        {"label", "lane", TIDE_UNIT_TEXT, TIDE_AT(lane_row, label), .may_be_cut = true},
        {"events", "events", TIDE_UNIT_COUNT, TIDE_AT(lane_row, n_events)},
        {"begins_ns", "begins after", TIDE_UNIT_DURATION, TIDE_AT(lane_row, begins_ns)},
        {"length_ns", "length", TIDE_UNIT_DURATION, TIDE_AT(lane_row, length_ns)},
        {"marks_apart_ns", "marks apart", TIDE_UNIT_DURATION, TIDE_AT(lane_row, apart_ns)},
        {"devices", "devices", TIDE_UNIT_TEXT, TIDE_AT(lane_row, devices), .may_be_cut = true},
    };
    tide_error err = TIDE_ERROR_INIT;
    lane_row *rows;
    if (TIDE_NEW(&rows, j->n, &err, "for %zu lanes", j->n) != TIDE_OK) {
        cli_ran_out("the list of lanes");
        return;
    }
    for (size_t i = 0; i < j->n; i++) rows[i] = row_of(j, i);
    tide_table t = {.name = "lanes", TIDE_COLUMNS(columns), .n_rows = j->n, .rows = rows, .row_bytes = sizeof *rows};
    tide_table_hide_unknown(&t);
    cli_table_print(&t, "  ", stdout);
    tide_host_free(rows);
}

static const char *clock_words(tide_merge_clock used) {
    switch (used) {
    case TIDE_MERGE_BOOT:
        return "one machine's clock";
    case TIDE_MERGE_WALL:
        return "the dates that their machines knew";
    case TIDE_MERGE_MARKS:
        return "their marks";
    case TIDE_MERGE_BEGIN:
        return "their begins, which are put at one moment";
    default:
        return "the offsets that were given";
    }
}

static uint64_t events_of(const job *j) {
    uint64_t n = 0;
    for (size_t i = 0; i < j->n; i++) n += j->lanes[i].n_events;
    return n;
}

/// What of a lane is not as in its trace.
static void print_doubts(const job *j) {
    char name[256];
    for (size_t i = 0; i < j->n; i++) {
        if (j->lanes[i].n_dropped > 0)
            fprintf(stderr,
                    "note: '%s' does not have its first %" PRIu64
                    " events any more; what lived then begins at its own time, and peaks before are not known\n",
                    cli_clean(j->in[i].label, name, sizeof name), j->lanes[i].n_dropped);
        if (j->used == TIDE_MERGE_MARKS && i > 0 && j->lanes[i].n_marks == 1)
            fprintf(stderr, "note: '%s' shares one mark alone: how well it fits is not known\n",
                    cli_clean(j->in[i].label, name, sizeof name));
    }
    if (j->used == TIDE_MERGE_WALL)
        fputs("note: the clocks of two machines may differ by milliseconds and more; on one machine they do not\n",
              stderr);
}

static void print_job(const job *j, const char *out) {
    char name[256];
    printf("%s: %zu traces, %" PRIu64 " events, by %s\n", cli_clean(out, name, sizeof name), j->n, events_of(j),
           clock_words(j->used));
    print_lanes(j);
    fflush(stdout);
    print_doubts(j);
}

static int print_json(const job *j, const char *out) {
    tide_text text = {0};
    tide_json_out json = cli_document_begin("merge", &text);
    tide_json_text(&json, "trace", out);
    tide_json_text(&json, "clock", tide_merge_clock_name(j->used));
    tide_json_u64(&json, "events", events_of(j));
    tide_json_open(&json, "lanes", '[');
    for (size_t i = 0; i < j->n; i++) {
        const tide_merge_lane *l = &j->lanes[i];
        const lane_row row = row_of(j, i);
        tide_json_open(&json, NULL, '{');
        tide_json_text(&json, "label", j->in[i].label);
        tide_json_text(&json, "file", j->in[i].name);
        tide_json_u64(&json, "events", l->n_events);
        tide_json_u64(&json, "dropped_events", l->n_dropped);
        tide_json_i64(&json, "moved_ns", l->offset_ns);
        tide_json_u64_if(&json, "begins_ns", row.begins_ns != UINT64_MAX, row.begins_ns);
        tide_json_u64_if(&json, "length_ns", row.length_ns != UINT64_MAX, row.length_ns);
        tide_json_u64(&json, "processes", l->n_processes);
        tide_json_i64(&json, "first_process", l->first_process);
        tide_json_u64(&json, "marks", l->n_marks);
        tide_json_u64_if(&json, "marks_apart_ns", row.apart_ns != UINT64_MAX, row.apart_ns);
        tide_json_text(&json, "devices", l->devices);
        tide_json_close(&json, '}');
    }
    tide_json_close(&json, ']');
    cli_document_end(&json);
    return cli_document_print(&text);
}

// ---- the command ----

/// Other tools' files are made to traces first.
static tide_status find_traces(job *j, tide_error *err) {
    for (size_t i = 0; i < j->n; i++) {
        j->in[i].name = j->in[i].path;
        TIDE_TRY(cli_trace_path(j->in[i].path, &j->in[i].path, err));
    }
    return TIDE_OK;
}

static int check_files(const job *j, const options *o) {
    for (size_t i = 0; i < j->n; i++)
        if (cli_same_place(j->in[i].path, o->out))
            return cli_usage(&cli_command_merge, "-o: '%s' is an input; it would be replaced", o->out);
    return o->force || cli_may_replace(o->out) ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

/// All traces are open at once, and may be more than a process may open unless it asks for more.
static void allow_many_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); // where not, the trace that cannot be opened is named
}

static int merge(job *j, const options *o) {
    tide_error err = TIDE_ERROR_INIT;
    allow_many_files();
    int code = check_files(j, o);
    if (code == CLI_EXIT_OK) code = set_labels(j, o->labels);
    if (code == CLI_EXIT_OK && o->offsets != NULL) code = set_offsets(j, o->offsets);
    if (code != CLI_EXIT_OK) return code;
    tide_status st = find_traces(j, &err);
    if (st == TIDE_OK) st = tide_merge_traces(j->in, j->n, &o->merge, o->out, j->lanes, &j->used, &err);
    if (st != TIDE_OK) return cli_fail(&err);
    if (o->json) return print_json(j, o->out);
    print_job(j, o->out);
    return CLI_EXIT_OK;
}

static bool parse_clock(const char *text, tide_merge_clock *out) {
    for (int i = TIDE_MERGE_BOOT; i <= TIDE_MERGE_BEGIN; i++) {
        *out = (tide_merge_clock)i;
        if (strcmp(text, tide_merge_clock_name(*out)) == 0) return true;
    }
    cli_usage(&cli_command_merge, "--align: '%s' is none of boot, wall, marks, begin", text);
    return false;
}

static bool parse_devices(const char *text, tide_merge_options *o) {
    o->devices_apart = strcmp(text, "apart") == 0;
    o->devices_same = strcmp(text, "same") == 0;
    if (!o->devices_apart && !o->devices_same)
        cli_usage(&cli_command_merge, "--devices: '%s' is neither apart nor same", text);
    return o->devices_apart || o->devices_same;
}

static bool parse(int argc, char **argv, options *o, int *code) {
    for (int c; (c = cli_next_option(&cli_command_merge, argc, argv)) != -1;) {
        *code = c == 'h' ? CLI_EXIT_OK : CLI_EXIT_USAGE;
        if (c == 'h' || c == '?') return false;
        if (c == 'o') o->out = optarg;
        if (c == OPT_LABELS) o->labels = optarg;
        if (c == OPT_OFFSETS) o->offsets = optarg;
        if (c == OPT_ALIGN && !parse_clock(optarg, &o->merge.clock)) return false;
        if (c == OPT_DEVICES && !parse_devices(optarg, &o->merge)) return false;
        o->has_clock = o->has_clock || c == OPT_ALIGN;
        o->force = o->force || c == OPT_FORCE;
        o->json = o->json || c == OPT_JSON;
    }
    return true;
}

static int run(int argc, char **argv) {
    options o = {0};
    int code = CLI_EXIT_USAGE;
    if (!parse(argc, argv, &o, &code)) return code;
    if (argc - optind < 2) return cli_usage(&cli_command_merge, "at least two FILEs are needed");
    if (argc - optind > TIDE_MERGE_MAX_LANES)
        return cli_usage(&cli_command_merge, "at most %d FILEs", TIDE_MERGE_MAX_LANES);
    if (o.out == NULL) return cli_usage(&cli_command_merge, "-o TRACE is needed");
    if (o.has_clock && o.offsets != NULL)
        return cli_usage(&cli_command_merge, "--align and --offsets: one of them says when each begins");
    if (o.offsets != NULL) o.merge.clock = TIDE_MERGE_GIVEN;
    job j = {.n = (size_t)(argc - optind)};
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = TIDE_NEW(&j.in, j.n, &err, "for %zu files", j.n);
    if (st == TIDE_OK) st = TIDE_NEW(&j.lanes, j.n, &err, "for %zu files", j.n);
    for (size_t i = 0; st == TIDE_OK && i < j.n; i++) j.in[i].path = argv[optind + (int)i];
    code = st == TIDE_OK ? merge(&j, &o) : cli_fail(&err);
    job_deinit(&j);
    return code;
}
