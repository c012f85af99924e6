// SPDX-License-Identifier: MIT
//
// kill victim: a program that records, to be killed. Its threads send the events of kill_stream.h as fast as they can
// and note in a shared page, after each callback has returned, how many there were.
//
//     kill_victim --trace FILE --shadow FILE [--drain thread|process|attach] [--form auto|rows|chunks] [--threads N]
//                 [--events N] [--seed N] [--ring N] [--batch N] [--max-bytes N] [--drop] [--pace NS] [--fork]
//     kill_victim collect ...      the collector that it starts for itself
//
// --events 0 runs without end. --pace: each thread sends an event in so many ns. Exit 0: the program did its own
// work; the recording may have failed. --fork: the recording program forks a child, which sends events of its own
// and lives until no_more_programs is set in the shadow file. The trace must hold no event of that child.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/log.h"
#include "profiler/collector.h"
#include "tests/profiler/kill_stream.h"
#include "tidemark/record.h"

typedef struct victim {
    const char *trace, *shadow_path;
    tide_recorder_options opt;
    uint64_t n_events, seed, pace_ns;
    uint32_t n_threads;
    bool forks;
    kill_shadow *shadow;
    tide_observer obs;
} victim;

typedef struct victim_thread {
    victim *v;
    uint32_t index;
    pthread_t id;
    kill_stream stream;
    tide_scope scopes[KILL_DEPTH];
    char names[KILL_DEPTH][24];
    int depth;
    char tag[32]; // every text lies here when its event is sent
} victim_thread;

static void print_line(void *ctx, tide_log_level level, const char *line) {
    (void)ctx;
    fprintf(stderr, "victim: %s: %s\n", level == TIDE_LOG_ERROR ? "error" : "warning", line);
}

/// Events of `peer` were sent that this one follows from.
static void wait_for(const kill_shadow *shadow, uint32_t peer, uint64_t n) {
    while (atomic_load_explicit(&shadow->threads[peer].n_events, memory_order_acquire) < n) sched_yield();
}

static void send_scope(victim_thread *t, const kill_step *step) {
    if (step->op == KILL_SCOPE_LEAVE) {
        tide_scope_leave(&t->scopes[--t->depth], &t->v->obs);
        return;
    }
    snprintf(t->names[t->depth], sizeof t->names[0], "%s", step->scope.name);
    t->scopes[t->depth] =
        (tide_scope){.name = t->names[t->depth], .kind = step->scope.kind, .index = step->scope.index};
    tide_scope_enter(&t->scopes[t->depth++], &t->v->obs);
}

static void send(victim_thread *t, const kill_step *step) {
    if (step->op == KILL_SCOPE_ENTER || step->op == KILL_SCOPE_LEAVE) {
        send_scope(t, step);
        return;
    }
    memcpy(t->tag, step->tag, sizeof t->tag);
    const tide_memory_event event = {.op = step->op,
                                     .block_id = step->block.id,
                                     .device = kill_device(step->block.device),
                                     .kind = step->block.kind,
                                     .stream = step->block.stream,
                                     .requested_bytes = step->block.requested_bytes,
                                     .reserved_bytes = step->block.reserved_bytes,
                                     .address = step->block.address,
                                     .thread = tide_thread_id(),
                                     .allocator = step->allocator,
                                     .tag = t->tag[0] != '\0' ? t->tag : NULL,
                                     .scope = tide_scope_current()};
    t->v->obs.on_memory(t->v->obs.self, &event);
}

/// Until the moment of the next event, asleep; a sleep shorter than `MIN_NS` takes as long, so that some events come at
/// once.
static void rest_until(uint64_t ns) {
    enum { MIN_NS = 100000 };
    const uint64_t now = tide_now_ns();
    if (ns < now + MIN_NS) return;
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)((ns - now) / 1000000000), .tv_nsec = (long)((ns - now) % 1000000000)},
        NULL);
}

static void *work(void *arg) {
    victim_thread *t = arg;
    victim *v = t->v;
    kill_shadow_thread *mine = &v->shadow->threads[t->index];
    kill_step step;
    uint64_t next_ns = tide_now_ns();
    kill_stream_init(&t->stream, v->seed, t->index, v->n_threads);
    atomic_store(&mine->number, tide_thread_id());
    for (uint64_t i = 0; v->n_events == 0 || i < v->n_events; i++) {
        kill_stream_next(&t->stream, &step);
        if (step.wait_for > 0) wait_for(v->shadow, t->stream.peer, step.wait_for);
        send(t, &step);
        atomic_store_explicit(&mine->n_events, i + 1, memory_order_release);
        if (v->pace_ns > 0) rest_until(next_ns += v->pace_ns);
    }
    while (t->depth > 0) tide_scope_leave(&t->scopes[--t->depth], NULL);
    return NULL;
}

/// A child with all that its parent has, the recorder too.
static void fork_child(const victim *v) {
    while (atomic_load(&v->shadow->threads[0].n_events) < 1000) sched_yield();
    if (fork() != 0) return;
    const tide_memory_event event = {
        .op = TIDE_MEM_ALLOC, .block_id = 77, .requested_bytes = 1, .thread = 1, .allocator = "child", .tag = "child"};
    for (int i = 0; i < 1000; i++) v->obs.on_memory(v->obs.self, &event);
    while (atomic_load(&v->shadow->no_more_programs) == 0) usleep(1000);
    _exit(0);
}

static bool run_threads(victim *v) {
    static victim_thread threads[KILL_MAX_THREADS];
    uint32_t n = 0;
    for (; n < v->n_threads; n++) {
        threads[n] = (victim_thread){.v = v, .index = n};
        if (pthread_create(&threads[n].id, NULL, work, &threads[n]) != 0) break;
    }
    if (v->forks && n > 0) fork_child(v);
    for (uint32_t i = 0; i < n; i++) pthread_join(threads[i].id, NULL);
    return n == v->n_threads;
}

static kill_shadow *map_shadow(const char *path) {
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return NULL;
    void *p = mmap(NULL, sizeof(kill_shadow), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p != MAP_FAILED ? p : NULL;
}

static int record(victim *v) {
    tide_error err = TIDE_ERROR_INIT;
    tide_recorder *rec = NULL;
    v->shadow = map_shadow(v->shadow_path);
    if (v->shadow == NULL) return 3;
    const tide_status st = tide_recorder_open(v->trace, &v->opt, &rec, &err);
    if (st != TIDE_OK) {
        // as the program's own command would say it: recording was asked for and cannot begin
        fprintf(stderr, "victim: error: %s (%s)\n", err.msg, err.note);
        atomic_store(&v->shadow->status, (uint32_t)st + 1);
        return 4;
    }
    v->obs = tide_recorder_observer(rec);
    atomic_store(&v->shadow->phase, KILL_RECORDS);
    const bool done = run_threads(v);
    tide_recorder_stats stats;
    tide_recorder_get_stats(rec, &stats);
    atomic_store(&v->shadow->n_lost, stats.n_lost);
    atomic_store(&v->shadow->n_refused, stats.n_refused);
    atomic_store(&v->shadow->blocked_ns, stats.blocked_ns);
    atomic_store(&v->shadow->phase, KILL_CLOSES);
    const tide_status closed = tide_recorder_close(rec, &err);
    atomic_store(&v->shadow->status, (uint32_t)closed + 1);
    atomic_store(&v->shadow->phase, KILL_CLOSED);
    return done ? 0 : 5;
}

// ---- the command line ----

static bool take_word(const char *value, const char *const *words, int n, int *out) {
    for (int i = 0; i < n; i++) {
        if (strcmp(value, words[i]) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static bool take_option(victim *v, const char *name, const char *value) {
    static const char *const drains[] = {"thread", "process", "attach"}, *const forms[] = {"auto", "rows", "chunks"};
    int word = 0;
    const unsigned long long n = strtoull(value, NULL, 10);
    if (strcmp(name, "--trace") == 0) {
        v->trace = value;
    } else if (strcmp(name, "--shadow") == 0) {
        v->shadow_path = value;
    } else if (strcmp(name, "--drain") == 0) {
        if (!take_word(value, drains, 3, &word)) return false;
        v->opt.drain = (tide_record_drain)word;
    } else if (strcmp(name, "--form") == 0) {
        if (!take_word(value, forms, 3, &word)) return false;
        v->opt.form = (tide_record_form)word;
    } else if (strcmp(name, "--threads") == 0) {
        v->n_threads = n >= 1 && n <= KILL_MAX_THREADS ? (uint32_t)n : 1;
    } else if (strcmp(name, "--events") == 0) {
        v->n_events = n;
    } else if (strcmp(name, "--seed") == 0) {
        v->seed = n;
    } else if (strcmp(name, "--ring") == 0) {
        v->opt.ring_events = n;
    } else if (strcmp(name, "--batch") == 0) {
        v->opt.batch_events = n;
    } else if (strcmp(name, "--max-bytes") == 0) {
        v->opt.max_bytes = n;
    } else if (strcmp(name, "--pace") == 0) {
        v->pace_ns = n;
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    victim v = {.n_threads = 2};
    tide_log_set(print_line, NULL, TIDE_LOG_WARN);
    tide_collector_hook(argc, argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--drop") == 0)
            v.opt.drop_when_full = true;
        else if (strcmp(argv[i], "--fork") == 0)
            v.forks = true;
        else if (i + 1 >= argc || !take_option(&v, argv[i], argv[i + 1]))
            return 2;
        else
            i++;
    }
    return v.trace != NULL && v.shadow_path != NULL ? record(&v) : 2;
}
