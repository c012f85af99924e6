// SPDX-License-Identifier: MIT
//
// The trace of `run` and `compare`. See recording.h.
#include "cli/recording.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/clock.h"
#include "profiler/query.h"

// ---- options ----

static int pick(const char *text, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0) return (int)i;
    }
    return -1;
}

bool cli_parse_when(const char *text, cli_when *out) {
    static const char *const names[] = {[CLI_WHEN_AUTO] = "auto", [CLI_WHEN_ON] = "on", [CLI_WHEN_OFF] = "off"};
    const int found = pick(text, names, 3);
    if (found >= 0) *out = (cli_when)found;
    return found >= 0;
}

tide_status cli_library_path(const tide_module *m, char *path, size_t bytes, tide_error *err) {
    char found[4096];
    TIDE_TRY(tide_module_find(m, found, sizeof found, err));
    char *real = realpath(found, NULL);
    const bool fits = real != NULL && snprintf(path, bytes, "%s", real) < (int)bytes;
    free(real);
    return fits ? TIDE_OK : TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "%s is not there", found);
}

static int take_recorder(const cli_command *cmd, cli_recording_options *o) {
    static const char *const names[] = {"thread", "process"};
    const int found = pick(optarg, names, 2);
    o->of_trace = "--recorder";
    if (found < 0) {
        cli_usage(cmd, "--recorder: '%s' is none of process, thread", optarg);
        return -1;
    }
    o->recorder.drain = found == 0 ? TIDE_RECORD_THREAD : TIDE_RECORD_PROCESS;
    return 1;
}

static int take_form(const cli_command *cmd, cli_recording_options *o) {
    static const char *const names[] = {"auto", "rows", "chunks"};
    static const tide_record_form forms[] = {TIDE_RECORD_AUTO, TIDE_RECORD_ROWS, TIDE_RECORD_CHUNKS};
    const int found = pick(optarg, names, 3);
    o->of_trace = "--form";
    if (found < 0) {
        cli_usage(cmd, "--form: '%s' is none of auto, rows, chunks", optarg);
        return -1;
    }
    o->recorder.form = forms[found];
    return 1;
}

/// The value of --on-full, of the option or of the environment.
static bool parse_on_full(const cli_command *cmd, const char *where, const char *text, cli_recording_options *o) {
    static const char *const names[] = {"wait", "drop"};
    const int found = pick(text, names, 2);
    o->on_full = text;
    o->recorder.drop_when_full = found == 1;
    if (found >= 0) return true;
    cli_usage(cmd, "%s: '%s' is none of wait, drop", where, text);
    return false;
}

static bool parse_max_wait(const cli_command *cmd, const char *where, const char *text, cli_recording_options *o) {
    static const double most = 1e9;
    double seconds;
    if (!cli_parse_real(cmd, where, text, &seconds)) return false;
    if (seconds < 0.001 || seconds > most) {
        cli_usage(cmd, "%s: %s seconds are none of 0.001 to 1000000000", where, text);
        return false;
    }
    o->max_wait = text;
    o->recorder.max_wait_ns = (uint64_t)(seconds * 1e9);
    return true;
}

static bool parse_hold_back(const cli_command *cmd, const char *text, cli_recording_options *o) {
    static const double most = 86400;
    double seconds;
    if (!cli_parse_real(cmd, "--hold-back", text, &seconds)) return false;
    if (seconds < 0 || seconds > most) {
        cli_usage(cmd, "--hold-back: %s seconds are none of 0 to 86400", text);
        return false;
    }
    const unsigned ms = (unsigned)ceil(seconds * 1000);
    o->recorder.hold_back_ms = ms > 0 ? ms : TIDE_RECORD_NO_HOLD_BACK; // 0 stands for the default there
    return true;
}

enum {
    MIN_RING_EVENTS = 16,
    MAX_RING_EVENTS = 1 << 26, // 4 GiB
    MIN_TRACE_BYTES = 8 << 20, // some batches of detail, a snapshot, and what is never left out
};

static bool parse_ring(const cli_command *cmd, const char *where, const char *text, cli_recording_options *o) {
    uint64_t n;
    if (!cli_parse_count(cmd, where, text, MAX_RING_EVENTS, &n)) return false;
    if (n < MIN_RING_EVENTS) {
        cli_usage(cmd, "%s: at least %d events are needed", where, MIN_RING_EVENTS);
        return false;
    }
    o->recorder.ring_events = (size_t)n;
    return true;
}

int cli_recording_option(const cli_command *cmd, cli_recording_options *o, int c) {
    switch (c) {
    case CLI_OPT_RECORDER:
        return take_recorder(cmd, o);
    case CLI_OPT_FORM:
        return take_form(cmd, o);
    case CLI_OPT_RING_EVENTS:
        o->of_ring = "--ring-events";
        return parse_ring(cmd, "--ring-events", optarg, o) ? 1 : -1;
    case CLI_OPT_ON_FULL:
        o->of_ring = "--on-full";
        return parse_on_full(cmd, "--on-full", optarg, o) ? 1 : -1;
    case CLI_OPT_MAX_WAIT:
        o->of_ring = "--max-wait";
        return parse_max_wait(cmd, "--max-wait", optarg, o) ? 1 : -1;
    case CLI_OPT_MAX_TRACE:
        o->of_trace = "--max-trace";
        if (!cli_parse_size(cmd, "--max-trace", optarg, &o->recorder.max_bytes)) return -1;
        if (o->recorder.max_bytes >= MIN_TRACE_BYTES) return 1;
        cli_usage(cmd, "--max-trace: at least 8MiB are needed");
        return -1;
    case CLI_OPT_HOLD_BACK:
        o->of_trace = "--hold-back";
        return parse_hold_back(cmd, optarg, o) ? 1 : -1;
    case CLI_OPT_FORCE:
        o->of_trace = "--force";
        o->force = true;
        return 1;
    default:
        return 0;
    }
}

bool cli_may_replace(const char *path) {
    unsigned char head[TIDE_TRACE_HEAD_BYTES] = {0};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return true;
    FILE *f = fopen(path, "rb");
    const size_t n = f != NULL ? fread(head, 1, sizeof head, f) : 0;
    if (f != NULL) fclose(f);
    if (tide_trace_recognise(head, n)) return true;
    tide_error err = TIDE_ERROR_INIT;
    TIDE_FAIL(&err, TIDE_ERR_EXISTS, "'%s' is there and is no tidemark trace: it would be lost", path);
    tide_error_hint(&err, "name another file; --force replaces it");
    cli_print_error(&err);
    return false;
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool cli_recording_settle(const cli_command *cmd, cli_recording_options *o) {
    const char *above = environment(TIDE_COLLECTOR_ENV);
    if (o->path != NULL) {
        o->above = above; // the events go where the user says, to one trace and not to two
        return o->force || cli_may_replace(o->path);
    }
    const char *idle = o->of_trace != NULL ? o->of_trace : above == NULL ? o->of_ring : NULL;
    if (idle != NULL) {
        cli_usage(cmd, "%s is about a trace: -o says where it goes", idle);
        return false;
    }
    if (above == NULL) return true;
    o->recorder.drain = TIDE_RECORD_ATTACH;
    o->path = above;
    const char *ring = environment(TIDE_RING_EVENTS_ENV), *on_full = environment(TIDE_ON_FULL_ENV);
    if (ring != NULL && o->recorder.ring_events == 0 && !parse_ring(cmd, TIDE_RING_EVENTS_ENV, ring, o)) return false;
    if (on_full != NULL && o->on_full == NULL && !parse_on_full(cmd, TIDE_ON_FULL_ENV, on_full, o)) return false;
    const char *max_wait = environment(TIDE_MAX_WAIT_ENV);
    return max_wait == NULL || o->max_wait != NULL || parse_max_wait(cmd, TIDE_MAX_WAIT_ENV, max_wait, o);
}

// ---- begin and end ----

/// Blocks signals that end the process until the collector works: between the creation of the trace and the start
/// of its collector they would leave files that are never finished or removed.
static tide_status open_recorder(const cli_recording_options *o, tide_recorder **out, tide_error *err) {
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2};
    sigset_t waits, before;
    sigemptyset(&waits);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) sigaddset(&waits, ending[i]);
    pthread_sigmask(SIG_BLOCK, &waits, &before);
    const tide_status st = tide_recorder_open(o->path, &o->recorder, out, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

tide_status cli_recording_open(const cli_recording_options *o, cli_recording *out, tide_error *err) {
    tide__clock_check_cores();
    *out = (cli_recording){0};
    if (o->path == NULL) return TIDE_OK;
    const tide_status st = open_recorder(o, &out->recorder, err);
    // A trace that another recorder writes is a wrong name on the command line, no fault of ours.
    if (st == TIDE_ERR_BUSY && err != NULL) err->status = TIDE_ERR_EXISTS;
    if (st != TIDE_OK) return st == TIDE_ERR_BUSY ? TIDE_ERR_EXISTS : st;
    out->path = o->path;
    out->above = o->above;
    out->is_temporary = o->is_temporary;
    out->attached = o->recorder.drain == TIDE_RECORD_ATTACH;
    return TIDE_OK;
}

static void close_recorder(cli_recording *r, const tide_error *earlier) {
    tide_recorder_get_stats(r->recorder, &r->stats);
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_recorder_close(r->recorder, &err);
    r->recorder = NULL;
    if (st != TIDE_OK)
        r->err = err; // the first that happened
    else if (earlier != NULL && earlier->status != TIDE_OK)
        r->err = *earlier;
}

void cli_recording_end(cli_recording *r, tide_status st, const tide_error *earlier) {
    if (r->recorder == NULL) return;
    // A trace that other processes record into is kept.
    if (st == TIDE_OK || r->attached || st == TIDE_ERR_NOMEM || st == TIDE_ERR_NO_SPACE) {
        r->of_failure = st != TIDE_OK;
        close_recorder(r, earlier);
        return;
    }
    tide_recorder_abandon(r->recorder);
    *r = (cli_recording){0};
}

// ---- messages ----

void cli_json_recording(tide_json_out *j, const cli_recording *r) {
    tide_json_text(j, "trace", r->is_temporary ? NULL : r->path);
    if (r->path == NULL) {
        tide_json_null(j, "recorder");
        return;
    }
    const bool failed = r->err.status != TIDE_OK;
    tide_json_open(j, "recorder", '{');
    tide_json_text(j, "state", failed ? "cut short" : r->attached ? "attached" : "complete");
    tide_json_text(j, "reason", failed ? r->err.msg : NULL);
    tide_json_u64(j, "events", r->stats.n_events);
    tide_json_u64(j, "lost", r->stats.n_lost);
    tide_json_u64(j, "refused", r->stats.n_refused);
    tide_json_u64(j, "blocked_ns", r->stats.blocked_ns);
    tide_json_u64(j, "feed_bytes", r->stats.feed_bytes);
    tide_json_text(j, "not_in", r->above);
    tide_json_close(j, '}');
}

void cli_recording_print(const cli_recording *r) {
    if (r->path == NULL || r->is_temporary) return;
    char path[4096];
    printf("trace: %s%s\n", cli_clean(r->path, path, sizeof path), r->err.status != TIDE_OK ? " (cut short)" : "");
}

int cli_recording_report(const cli_recording *r, int code) {
    if (r->path == NULL) return code;
    char path[4096];
    if (r->of_failure && !r->is_temporary)
        fprintf(stderr, "note: recorded until then: %s\n", cli_clean(r->path, path, sizeof path));
    if (r->above != NULL)
        fprintf(stderr,
                "note: -o has taken the events of this run; the trace of tidemark record around it has none of "
                "them: %s\n",
                cli_clean(r->above, path, sizeof path));
    // Events after the end of the recording were not dropped by full rings, and its end was reported when it
    // happened.
    if (r->stats.n_lost > 0 && r->err.status == TIDE_OK)
        fprintf(stderr,
                "warning: %" PRIu64 " of %" PRIu64
                " events were dropped on full rings; --ring-events gives more room\n",
                r->stats.n_lost, r->stats.n_events);
    if (r->stats.n_refused > 0)
        fprintf(stderr, "warning: %" PRIu64 " event%s refused; the error says why the first one was\n",
                r->stats.n_refused, r->stats.n_refused == 1 ? " was" : "s were");
    if (r->err.status == TIDE_OK) return code;
    return cli_fail(&r->err) == CLI_EXIT_DOES_NOT_FIT ? CLI_EXIT_DOES_NOT_FIT : CLI_EXIT_OUTPUT;
}
