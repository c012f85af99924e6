// SPDX-License-Identifier: MIT
//
// The ways in which kill_recorder ends programs that record. See kill_cases.h.
#include "tests/profiler/kill_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "profiler/collector.h"
#include "profiler/feed/reader.h"

// ---- processes ----

static void nap(uint64_t ns) {
    const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

enum { PATIENCE_MS = 120000 }; ///< a state that does not come

/// Take in children that ended; with the subreaper flag collectors of killed programs are ours too.
static void reap(kill_round *r) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != r->app) continue;
        r->app_gone = true;
        r->app_status = status;
    }
}

/// Until no child is left.
bool kill_wait_all(kill_round *r) {
    for (uint64_t i = 0; i < PATIENCE_MS; i++) {
        reap(r);
        if (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) return true;
        nap(1000000);
    }
    tide_text_addf(&r->why, "a process does not end\n");
    return false;
}

static pid_t start(kill_round *r, char *const *argv) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const int fd = open(r->stderr_path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (fd >= 0) dup2(fd, 2);
    // A third of the victims have a slow disk: they spend their time in the middle of a COMMIT, and are killed there.
    // So do all that are killed while they close.
    const char *slow = r->bursts || r->chunks ? "trace.db:SLOW:50000" : r->seed % 3 == 1 ? "-wal:SLOW:50000" : NULL;
    if (slow != NULL && (setenv("KILL_FAULT", slow, 1) != 0 || setenv("KILL_FAULT_DIR", r->dir, 1) != 0)) _exit(127);
    execv(argv[0], argv);
    _exit(127);
}

static pid_t start_victim(kill_round *r, uint64_t stream_seed, const char *shadow_path) {
    static const char *const forms[] = {"auto", "rows", "chunks"}, *const rings[] = {"65536", "1024", "8192"},
                             *const batches[] = {"32768", "0", "700"};
    char seed[24], n_events[24], arg[16][300];
    tide_rng how = {.state = r->seed};
    const char *const form = forms[tide_rng_below(&how, 3)], *const ring = rings[tide_rng_below(&how, 3)];
    snprintf(seed, sizeof seed, "%" PRIu64, stream_seed);
    snprintf(n_events, sizeof n_events, "%" PRIu64, r->n_events);
    const char *const words[] = {r->o->victim,
                                 "--trace",
                                 r->trace,
                                 "--shadow",
                                 shadow_path,
                                 "--drain",
                                 r->drain,
                                 "--form",
                                 r->chunks   ? forms[2]
                                 : r->bursts ? forms[0]
                                             : form,
                                 "--ring",
                                 r->bursts ? rings[1] : ring,
                                 "--batch",
                                 batches[tide_rng_below(&how, 3)],
                                 "--seed",
                                 seed};
    char *argv[20];
    size_t n = 0;
    for (; n < sizeof words / sizeof words[0]; n++) {
        snprintf(arg[n], sizeof arg[n], "%s", words[n]);
        argv[n] = arg[n];
    }
    char events_word[] = "--events", drop_word[] = "--drop", fork_word[] = "--fork";
    if (r->drops) argv[n++] = drop_word;
    if (r->forks) argv[n++] = fork_word;
    argv[n++] = events_word;
    argv[n++] = n_events;
    argv[n] = NULL;
    return start(r, argv);
}

static bool start_app(kill_round *r) {
    r->app = start_victim(r, r->seed, r->shadow_path);
    return r->app > 0;
}

/// Wait for a phase of the victim, and for its first event. False: it ended before.
static bool wait_phase(kill_round *r, uint32_t phase) {
    for (uint64_t i = 0; i < PATIENCE_MS * 5; i++) {
        uint64_t sent = 0;
        for (int t = 0; t < KILL_MAX_THREADS; t++) sent += atomic_load(&r->shadow->threads[t].n_events);
        if (atomic_load(&r->shadow->phase) >= phase && sent > 0) return true;
        reap(r);
        if (r->app_gone) break;
        nap(200000);
    }
    tide_text_addf(&r->why, "the victim did not come to phase %" PRIu32 "\n", phase);
    return false;
}

static pid_t collector_of(const kill_round *r) {
    char **paths = NULL;
    size_t n = 0;
    uint32_t pid = 0;
    if (tide__feed_list(r->trace, &paths, &n, NULL) != TIDE_OK) return 0;
    for (size_t i = 0; i < n; i++) {
        const int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && pread(fd, &pid, sizeof pid, offsetof(tide__feed_header, drain_pid)) != sizeof pid) pid = 0;
        if (fd >= 0) close(fd);
        tide_host_free(paths[i]);
    }
    tide_host_free(paths);
    return (pid_t)pid;
}

static uint64_t random_ns(kill_round *r, uint64_t min_us, uint64_t max_us) {
    return 1000 * (min_us + tide_rng_below(&r->rng, max_us - min_us + 1));
}
static void nap_before_kill(kill_round *r) { nap(random_ns(r, r->o->min_ms * 1000, r->o->max_ms * 1000)); }

static void kill_app(kill_round *r) {
    reap(r);
    r->too_late = r->app_gone || kill(r->app, SIGKILL) != 0;
}

static bool kill_collector(kill_round *r) {
    const pid_t pid = collector_of(r);
    if (pid <= 0 || pid == r->app || kill(pid, SIGKILL) != 0) {
        r->too_late = true;
        return false;
    }
    return true;
}

// ---- cases ----

static bool case_thread(kill_round *r) {
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    nap_before_kill(r);
    kill_app(r);
    return kill_wait_all(r);
}

static bool case_both(kill_round *r) {
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    nap_before_kill(r);
    const pid_t collector = collector_of(r);
    if (collector <= 0 || collector == r->app) {
        tide_text_addf(&r->why, "no collector is named in the feed\n");
        return false;
    }
    // one of the two goes first, a random moment before the other
    const bool app_first = tide_rng_below(&r->rng, 2) == 0;
    const uint64_t between = tide_rng_below(&r->rng, 3) == 0 ? random_ns(r, 0, 5000) : 0;
    kill(app_first ? r->app : collector, SIGKILL);
    if (between > 0) nap(between);
    kill(app_first ? collector : r->app, SIGKILL);
    // who was started in the place of the killed collector
    for (int i = 0; i < 20 && !app_first; i++) {
        const pid_t next = collector_of(r);
        if (next > 0 && next != collector && next != r->app) kill(next, SIGKILL);
    }
    return kill_wait_all(r);
}

/// The program ends by itself, unharmed.
static bool app_is_well(kill_round *r) {
    if (!kill_wait_all(r)) return false;
    if (!WIFEXITED(r->app_status) || WEXITSTATUS(r->app_status) != 0) {
        tide_text_addf(&r->why, "the program ended with %#x\n", (unsigned)r->app_status);
        return false;
    }
    if (atomic_load(&r->shadow->n_lost) != 0 || atomic_load(&r->shadow->n_refused) != 0) {
        tide_text_addf(&r->why, "lost or refused events\n");
        return false;
    }
    const uint32_t closed = atomic_load(&r->shadow->status);
    if (closed != TIDE_OK + 1) {
        tide_text_addf(&r->why, "its close failed: %s\n", tide_status_text((tide_status)(closed - 1)));
        return false;
    }
    return true;
}

static bool case_collector(kill_round *r) {
    r->n_events = 150000;
    r->n_over = 0;
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    nap(random_ns(r, 1000, 60000));
    kill_collector(r);
    return app_is_well(r);
}

/// The file is half written, or about to be: SQLite's journal would take it back. Before that its first bytes are 0.
static bool sees_journal(const kill_round *r) {
    char name[320], first = 0;
    snprintf(name, sizeof name, "%s-journal", r->trace);
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    const bool sees = fd >= 0 && pread(fd, &first, 1, 0) == 1 && first != 0;
    if (fd >= 0) close(fd);
    return sees;
}

/// A moment of the close, which goes on until `is_over`; by turns any, the one at which chunks begin to become rows,
/// and one soon after that.
static void wait_inside(kill_round *r, bool (*is_over)(kill_round *r)) {
    enum { ANY, AT_ONCE, SOON };
    r->wants_inside = true;
    const uint64_t when = r->seed / 3 % 3;
    while (when != ANY && !is_over(r) && !sees_journal(r)) nap(20000);
    if (when != AT_ONCE) nap(random_ns(r, 0, when == SOON ? 30000 : 50000));
    r->is_inside = !is_over(r);
    r->is_half_done = r->is_inside && sees_journal(r);
}

static bool has_closed(kill_round *r) {
    reap(r);
    return r->app_gone || atomic_load(&r->shadow->phase) == KILL_CLOSED;
}

static bool has_ended(kill_round *r) {
    reap(r);
    return r->app_gone;
}

static bool start_and_close(kill_round *r) {
    r->n_events = 10000 + tide_rng_below(&r->rng, 20000);
    r->n_over = 0;
    r->bursts = true;
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    r->collector = collector_of(r);
    if (!wait_phase(r, KILL_CLOSES)) return false;
    wait_inside(r, has_closed);
    return true;
}

static bool case_closing(kill_round *r) {
    if (!start_and_close(r)) return false;
    kill_app(r);
    return kill_wait_all(r);
}

/// The program, its collector, or both: by turns.
static bool case_collected(kill_round *r) {
    enum { PROGRAM, COLLECTOR, BOTH };
    const uint64_t who = r->seed % 3;
    if (!start_and_close(r)) return false;
    if (who != PROGRAM && (r->collector <= 0 || kill(r->collector, SIGKILL) != 0)) r->too_late = true;
    if (who != COLLECTOR) kill_app(r);
    return who == COLLECTOR ? app_is_well(r) : kill_wait_all(r);
}

/// The harness itself, as a program that does something with the trace: "open", "expand".
static pid_t start_self(kill_round *r, const char *what) {
    char self[300], word[16], trace[300];
    snprintf(self, sizeof self, "%s", r->o->self);
    snprintf(word, sizeof word, "%s", what);
    snprintf(trace, sizeof trace, "%s", r->trace);
    char *argv[] = {self, word, trace, NULL};
    return start(r, argv);
}

static pid_t start_opener(kill_round *r) { return start_self(r, "open"); }

/// Chunks become rows by the user's own command, which is killed.
static bool case_expanding(kill_round *r) {
    r->n_events = 10000 + tide_rng_below(&r->rng, 20000);
    r->n_over = 0;
    r->chunks = true;
    if (!start_app(r) || !app_is_well(r)) return false;
    r->app = start_self(r, "expand");
    r->app_gone = false;
    if (r->app <= 0) return false;
    wait_inside(r, has_ended);
    kill_app(r);
    return kill_wait_all(r);
}

static bool case_recovery(kill_round *r) {
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    nap_before_kill(r);
    kill_app(r);
    if (!kill_wait_all(r)) return false;
    for (int i = 0; i < 2; i++) {
        const pid_t pid = start_opener(r);
        if (pid <= 0) return false;
        nap(random_ns(r, 1000, 80000));
        kill(pid, SIGKILL);
        if (!kill_wait_all(r)) return false;
    }
    return true;
}

/// Three open what was left behind at the same time: one finishes it, the others wait for it or say that they cannot.
static bool case_openers(kill_round *r) {
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    nap_before_kill(r);
    kill_app(r);
    const bool early = tide_rng_below(&r->rng, 2) == 0; // before the system has taken in what is left of the program
    if (!early && !kill_wait_all(r)) return false;
    for (int i = 0; i < 3; i++)
        if (start_opener(r) <= 0) return false;
    return kill_wait_all(r);
}

/// Look into the trace once. False: what is there cannot be read.
static bool look(kill_round *r, tide_trace_state *state) {
    tide_trace *t = NULL;
    tide_trace_info info;
    tide_error err = TIDE_ERROR_INIT;
    bool grew;
    tide_status st = tide_trace_open(r->trace, &t, &err);
    if (st == TIDE_OK) st = tide_trace_refresh(t, &grew, &err);
    if (st == TIDE_OK) st = tide_trace_get_info(t, &info, &err);
    *state = st == TIDE_OK ? info.state : TIDE_TRACE_RECORDING;
    tide_trace_close(t);
    if (st != TIDE_OK) tide_text_addf(&r->why, "looked at while it grows: %s [%s] %s\n", err.msg, err.where, err.note);
    return st == TIDE_OK;
}

/// A reader opens the trace again and again, also at the moment of the kill and while the collector finishes.
static bool case_watched(kill_round *r) {
    tide_trace_state state = TIDE_TRACE_RECORDING;
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    const uint64_t end = tide_now_ns() + random_ns(r, r->o->min_ms * 1000, r->o->max_ms * 1000);
    while (tide_now_ns() < end) {
        if (!look(r, &state)) return false;
        if (state != TIDE_TRACE_RECORDING) {
            tide_text_addf(&r->why, "state %d while it is recorded\n", (int)state);
            return false;
        }
    }
    kill_app(r);
    for (int i = 0; i < 2000 && state == TIDE_TRACE_RECORDING; i++)
        if (!look(r, &state)) return false;
    return kill_wait_all(r);
}

/// Killed before it records, then started again: what the first one left behind is not in the way of the second.
static bool case_starting(kill_round *r) {
    if (!start_app(r)) return false;
    nap(random_ns(r, 0, 12000));
    kill_app(r);
    if (!kill_wait_all(r)) return false;
    struct stat st;
    if (stat(r->trace, &st) == 0 && tide_rng_below(&r->rng, 2) == 0) {
        tide_trace *t = NULL;
        tide_error err = TIDE_ERROR_INIT;
        if (tide_trace_open(r->trace, &t, &err) != TIDE_OK) {
            tide_text_addf(&r->why, "opened after a kill at the start: %s %s\n", err.msg, err.note);
            return false;
        }
        tide_trace_close(t);
    }
    memset(r->shadow, 0, sizeof *r->shadow);
    r->app_gone = false;
    r->n_events = 10000;
    r->n_over = 0;
    return start_app(r) && app_is_well(r);
}

/// A stopped collector still counts as alive: the program waits for it and does not replace it.
static bool case_stopped(kill_round *r) {
    r->n_events = 100000;
    r->n_over = 0;
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    const pid_t pid = collector_of(r);
    for (int i = 0; i < 3 && pid > 0 && pid != r->app && kill(pid, SIGSTOP) == 0; i++) {
        nap(random_ns(r, 1000, 150000));
        kill(pid, SIGCONT);
        nap(random_ns(r, 0, 20000));
    }
    if (!app_is_well(r)) return false;
    char *said = NULL;
    size_t len = 0;
    const bool ok = tide_read_file(r->stderr_path, 0, &said, &len, NULL) != TIDE_OK || len == 0;
    if (!ok) tide_text_addf(&r->why, "it was taken for gone\n");
    tide_host_free(said);
    return ok;
}

/// The program has a child that outlives it. Ends by itself or is killed: the trace is finished all the same.
static bool case_forked(kill_round *r) {
    const bool ends = tide_rng_below(&r->rng, 2) == 0;
    tide_trace_state state = TIDE_TRACE_RECORDING;
    r->forks = true;
    if (ends) r->n_events = 30000;
    if (!start_app(r) || !wait_phase(r, KILL_RECORDS)) return false;
    nap_before_kill(r);
    if (!ends) kill_app(r);
    for (int i = 0; i < 60000 && state == TIDE_TRACE_RECORDING; i++) {
        reap(r);
        if (r->app_gone && !look(r, &state)) return false;
        nap(1000000);
    }
    if (state == TIDE_TRACE_RECORDING) tide_text_addf(&r->why, "not finished while a child lives\n");
    atomic_store(&r->shadow->no_more_programs, 1);
    return kill_wait_all(r) && state != TIDE_TRACE_RECORDING;
}

static bool case_dropping(kill_round *r) {
    r->drops = true;
    return case_thread(r);
}

// ---- several programs, one collector ----

kill_shadow *kill_map_shadow(const char *path) {
    const int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(kill_shadow)) != 0) return NULL;
    void *p = mmap(NULL, sizeof(kill_shadow), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p != MAP_FAILED ? p : NULL;
}

static bool no_more_programs(void *ctx) { return atomic_load(&((kill_shadow *)ctx)->no_more_programs) != 0; }

/// The collector, in a child; back when it takes feeds.
static pid_t start_collector(kill_round *r) {
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        const tide_collector_options opt = {
            .path = r->trace, .create = true, .ready_fd = ends[1], .is_over = no_more_programs, .ctx = r->shadow};
        tide_error err = TIDE_ERROR_INIT;
        close(ends[0]);
        _exit(tide_collect(&opt, &err) == TIDE_OK ? 0 : 1);
    }
    close(ends[1]);
    const bool ready = pid > 0 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    return ready ? pid : -1;
}

/// A collector and two programs that record into it; the second one sends `n_second` events of each thread.
static bool start_attached(kill_round *r, uint64_t n_second, pid_t *collector) {
    char path[300];
    snprintf(path, sizeof path, "%.280s/second", r->dir);
    r->second = kill_map_shadow(path);
    *collector = start_collector(r);
    if (r->second == NULL || *collector < 0 || setenv(TIDE_COLLECTOR_ENV, r->trace, 1) != 0) return false;
    if (!start_app(r)) return false;
    r->n_events = n_second;
    r->second_app = start_victim(r, r->seed + 1, path);
    if (r->second_app <= 0 || !wait_phase(r, KILL_RECORDS)) return false;
    for (int i = 0; i < PATIENCE_MS && atomic_load(&r->second->phase) == KILL_STARTS; i++) nap(1000000);
    return true;
}

/// The collector of two programs is killed alone, at any moment until both have closed: they go on, each as long as it
/// has something to say, and the last one finishes.
static bool case_detached(kill_round *r) {
    pid_t collector;
    r->n_over = 0;
    r->n_events = 20000 + tide_rng_below(&r->rng, 60000);
    if (!start_attached(r, 20000 + tide_rng_below(&r->rng, 60000), &collector)) return false;
    nap(random_ns(r, 0, 150000));
    r->too_late = atomic_load(&r->shadow->phase) == KILL_CLOSED && atomic_load(&r->second->phase) == KILL_CLOSED;
    kill(collector, SIGKILL);
    if (!app_is_well(r)) return false;
    if (atomic_load(&r->second->n_lost) == 0 && atomic_load(&r->second->status) == TIDE_OK + 1) return true;
    tide_text_addf(&r->why, "the second program lost events\n");
    return false;
}

static bool case_attached(kill_round *r) {
    pid_t collector;
    const uint64_t who = tide_rng_below(&r->rng, 3);
    if (!start_attached(r, who == 0 ? 60000 : 0, &collector)) return false; // of 0: the second one ends by itself
    nap_before_kill(r);
    if (who == 2) kill(collector, SIGKILL);
    kill_app(r);
    if (who != 0) kill(r->second_app, SIGKILL);
    atomic_store(&r->shadow->no_more_programs, 1);
    return kill_wait_all(r);
}

static bool numbers_of(kill_round *r, sqlite3 *db, pid_t pid, kill_source *sources) {
    static const char query[] = "SELECT p.id, t.id FROM process p LEFT JOIN thread t ON t.process_id = p.id AND "
                                "t.number = ?2 WHERE p.pid = ?1";
    sqlite3_stmt *stmt = NULL;
    bool ok = sqlite3_prepare_v2(db, query, -1, &stmt, NULL) == SQLITE_OK;
    for (int t = 0; t < 2 && ok; t++) {
        sqlite3_bind_int64(stmt, 1, pid);
        sqlite3_bind_int64(stmt, 2, (sqlite3_int64)sources[t].number);
        ok = sqlite3_step(stmt) == SQLITE_ROW;
        if (ok) sources[t].block_base = (uint64_t)(sqlite3_column_int64(stmt, 0) - 1) << 48;
        if (ok) sources[t].number = (uint64_t)sqlite3_column_int64(stmt, 1);
        sqlite3_reset(stmt);
    }
    if (!ok) tide_text_addf(&r->why, "process %ld is not in the trace: %s\n", (long)pid, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    return ok;
}

bool kill_find_processes(kill_round *r, kill_expect *want) {
    sqlite3 *db = NULL;
    tide_trace *t = NULL;
    tide_error err = TIDE_ERROR_INIT;
    if (tide_trace_open(r->trace, &t, &err) != TIDE_OK) { // finishes what is left to be finished
        tide_text_addf(&r->why, "open: %s %s\n", err.msg, err.note);
        return false;
    }
    tide_trace_close(t);
    const bool ok = sqlite3_open_v2(r->trace, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                    numbers_of(r, db, r->app, &want->sources[0]) && numbers_of(r, db, r->second_app, &want->sources[2]);
    sqlite3_close(db);
    return ok;
}

const kill_case kill_cases[] = {{"thread", "thread", case_thread},        {"process", "process", case_thread},
                                {"collector", "process", case_collector}, {"both", "process", case_both},
                                {"recovery", "thread", case_recovery},    {"closing", "thread", case_closing},
                                {"collected", "process", case_collected}, {"openers", "thread", case_openers},
                                {"watched", "process", case_watched},     {"starting", "thread", case_starting},
                                {"restarting", "process", case_starting}, {"dropping", "thread", case_dropping},
                                {"stopped", "process", case_stopped},     {"forked", "thread", case_forked},
                                {"forking", "process", case_forked},      {"attached", "attach", case_attached},
                                {"detached", "attach", case_detached},    {"expanding", "thread", case_expanding}};
const size_t kill_n_cases = sizeof kill_cases / sizeof kill_cases[0];
