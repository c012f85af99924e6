// SPDX-License-Identifier: MIT
//
// kill_recorder: kills programs that record (kill_victim), at random moments, and holds what is in the trace against
// what they had been told was recorded. Nothing may be missing.
//
//     kill_recorder --victim PROGRAM [--kills N] [--seed N] [--ms MIN MAX] [--keep] [CASE...]
//
// Cases, `kills` of each:
//     thread       the program, which drains in a thread, is killed; the next reader of the trace finishes it
//     process      the program is killed, its collector goes on and finishes
//     collector    the collector is killed; the program goes on and loses nothing
//     both         both are killed
//     recovery     the program is killed, and so is, twice, who opens the trace
//     closing      the program (draining in a thread) is killed while it closes
//     collected    program, collector or both, by turns, are killed while the program closes
//     expanding    the program that turns chunks of a finished trace into rows is killed
//     openers      the program is killed, and three open the trace at the same time
//     watched      a reader opens the trace again and again, before, at and after the kill of the program
//     starting     the program is killed before it records, then started again (restarting: with a collector)
//     attached     two programs record into one collector; one of them, both, or all three are killed
//     detached     two programs record into one collector, which is killed; the programs lose nothing
//     stopped      the collector is stopped for a while; no process is killed
//     forked       the program has a child that outlives it; it ends or is killed (forking: with a collector)
//     dropping     the program drops events when its rings are full, and is killed: what is missing is counted
// None named: thread and process.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "tests/profiler/kill_cases.h"

typedef struct sum {
    uint64_t n, n_failed, n_too_late, n_wanted, n_inside, n_half_done, n_events, n_ahead;
    double check_s, longest_s;
} sum;

// ---- one round ----

static bool make_room(kill_round *r) {
    const char *base = getenv("TMPDIR");
    snprintf(r->dir, sizeof r->dir, "%.200s/tide-kill-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(r->dir) == NULL) return false;
    snprintf(r->trace, sizeof r->trace, "%s/trace.db", r->dir);
    snprintf(r->shadow_path, sizeof r->shadow_path, "%s/shadow", r->dir);
    snprintf(r->stderr_path, sizeof r->stderr_path, "%s/stderr", r->dir);
    r->shadow = kill_map_shadow(r->shadow_path);
    return r->shadow != NULL;
}

static void print_file(const char *path) {
    char *data = NULL;
    size_t len = 0;
    if (tide_read_file(path, 0, &data, &len, NULL) == TIDE_OK) printf("%.*s", (int)len, data);
    tide_host_free(data);
}

/// A sanitizer's report from a program that was killed later is one all the same.
static bool is_reported(kill_round *r) {
    char *data = NULL;
    size_t len = 0;
    const bool is_there = tide_read_file(r->stderr_path, 0, &data, &len, NULL) == TIDE_OK &&
                          (strstr(data, "Sanitizer") != NULL || strstr(data, "runtime error") != NULL);
    if (is_there) tide_text_addf(&r->why, "a sanitizer has something to say\n");
    tide_host_free(data);
    return is_there;
}

static void clean_up(kill_round *r, bool keep) {
    if (r->shadow != NULL) munmap(r->shadow, sizeof *r->shadow);
    if (r->second != NULL) munmap(r->second, sizeof *r->second);
    if (keep) {
        printf("  kept: %s\n", r->dir);
    } else {
        char path[320];
        static const char *const names[] = {"trace.db", "trace.db-wal", "trace.db-shm", "trace.db-journal",
                                            "shadow",   "second",       "stderr"};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            snprintf(path, sizeof path, "%s/%s", r->dir, names[i]);
            unlink(path);
        }
        rmdir(r->dir);
    }
    tide_text_deinit(&r->why);
}

static bool check_round(kill_round *r, kill_found *found, sum *total) {
    kill_expect want = {.trace = r->trace, .n_over = r->n_over, .drops = r->drops, .state = TIDE_TRACE_COMPLETE};
    kill_expect_shadow(&want, r->shadow, r->seed, 2);
    if (r->second != NULL) kill_expect_shadow(&want, r->second, r->seed + 1, 2);
    if (r->second != NULL && !kill_find_processes(r, &want)) return false;
    const bool ok = kill_check_trace(&want, found, &r->why) && kill_check_folder(r->trace, &r->why);
    for (uint32_t t = 0; t < want.n_sources; t++) total->n_ahead += found->of_thread[t] > want.sources[t].n_events;
    return ok;
}

static void run_round(const kill_options *o, size_t which, uint64_t seed, sum *total) {
    kill_round r = {
        .o = o, .name = kill_cases[which].name, .drain = kill_cases[which].drain, .seed = seed, .n_over = 1};
    kill_found found = {0};
    r.rng.state = seed * 7919 + which;
    bool ok = make_room(&r);
    ok = ok && kill_cases[which].run(&r);
    if (!ok && r.app > 0 && !r.app_gone) kill(r.app, SIGKILL);
    if (!ok) kill_wait_all(&r);
    const char *step = "run";
    if (ok) {
        step = "check";
        ok = check_round(&r, &found, total) && !is_reported(&r);
    }
    total->n++;
    total->n_too_late += r.too_late;
    total->n_wanted += r.wants_inside;
    total->n_inside += r.is_inside;
    total->n_half_done += r.is_half_done;
    total->n_events += found.n_events;
    total->check_s += found.check_s;
    if (found.check_s > total->longest_s) total->longest_s = found.check_s;
    if (!ok) {
        total->n_failed++;
        printf("FAILED (%s): %s, seed %" PRIu64 "\n%s", step, r.name, seed, tide_text_str(&r.why));
        print_file(r.stderr_path);
    }
    clean_up(&r, !ok || o->keep);
    fflush(stdout);
}

// ---- the program ----

static int open_only(const char *path) {
    tide_trace *t = NULL;
    if (tide_trace_open(path, &t, NULL) != TIDE_OK) return 1;
    tide_trace_close(t);
    return 0;
}

static int expand_only(const char *path) { return tide_trace_expand(path, NULL) == TIDE_OK ? 0 : 1; }

static int usage(void) {
    fputs("usage: kill_recorder --victim PROGRAM [--kills N] [--seed N] [--ms MIN MAX] [--keep] [CASE...]\n", stderr);
    return 2;
}

static bool take_options(int argc, char **argv, kill_options *o, bool *wanted) {
    for (int i = 1; i < argc; i++) {
        const int left = argc - i - 1;
        size_t c = 0;
        while (c < kill_n_cases && strcmp(argv[i], kill_cases[c].name) != 0) c++;
        if (c < kill_n_cases) {
            wanted[c] = true;
        } else if (strcmp(argv[i], "--keep") == 0) {
            o->keep = true;
        } else if (strcmp(argv[i], "--victim") == 0 && left > 0) {
            o->victim = argv[++i];
        } else if (strcmp(argv[i], "--kills") == 0 && left > 0) {
            o->kills = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0 && left > 0) {
            o->seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--ms") == 0 && left > 1) {
            o->min_ms = strtoull(argv[++i], NULL, 10);
            o->max_ms = strtoull(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return o->victim != NULL && o->kills > 0 && o->max_ms >= o->min_ms;
}

int main(int argc, char **argv) {
    kill_options o = {.self = argv[0], .kills = 10, .seed = 1, .min_ms = 5, .max_ms = 300};
    bool wanted[32] = {false}, some = false;
    uint64_t n_failed = 0;
    if (argc == 3 && strcmp(argv[1], "open") == 0) return open_only(argv[2]);
    if (argc == 3 && strcmp(argv[1], "expand") == 0) return expand_only(argv[2]);
    if (!take_options(argc, argv, &o, wanted)) return usage();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t c = 0; c < kill_n_cases; c++) some = some || wanted[c];
    printf("%-10s %6s %7s %9s %8s %9s %12s %8s %14s\n", "case", "kills", "failed", "too late", "in close", "half done",
           "events", "ahead", "check s (max)");
    for (size_t c = 0; c < kill_n_cases; c++) {
        if (some ? !wanted[c] : c >= 2) continue;
        sum total = {0};
        for (uint64_t k = 0; k < o.kills; k++) run_round(&o, c, o.seed + k, &total);
        printf("%-10s %6" PRIu64 " %7" PRIu64 " %9" PRIu64 " %8" PRIu64 " %9" PRIu64 " %12" PRIu64 " %8" PRIu64
               " %7.2f (%.2f)\n",
               kill_cases[c].name, total.n, total.n_failed, total.n_too_late, total.n_inside, total.n_half_done,
               total.n_events, total.n_ahead, total.check_s / (double)total.n, total.longest_s);
        // A third of them come as soon as the file is seen half written.
        if (total.n_wanted > 0 && total.n_inside * 4 < total.n) {
            printf("FAILED: %s: most kills came too late for the close\n", kill_cases[c].name);
            n_failed++;
        }
        fflush(stdout);
        n_failed += total.n_failed;
    }
    return n_failed == 0 ? 0 : 1;
}
