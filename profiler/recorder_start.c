// SPDX-License-Identifier: MIT
//
// A collector process: started as "PROGRAM collect TRACE ...", it makes the trace and says through a pipe when it takes
// feeds, or why not. And this program as its own collector. See recorder_internal.h.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "profiler/collector.h"
#include "profiler/recorder_internal.h"

// ---- a collector process ----
//
// It keeps standard error, and no other file of ours.

enum { READY_FD = 3, PATIENCE_MS = 10000, MAX_ARGS = 20 };

typedef struct command {
    char form[16], max_bytes[24], batch_events[24], hold_back[24], ready_fd[8], parent[24];
    char *args[MAX_ARGS];
} command;

static const char *const forms[] = {
    [TIDE_RECORD_AUTO] = "auto", [TIDE_RECORD_ROWS] = "rows", [TIDE_RECORD_CHUNKS] = "chunks"};

static void add(command *c, size_t *n, const char *arg) { c->args[(*n)++] = (char *)(uintptr_t)arg; }

static void make_command(command *c, const tide_recorder *r, const char *program) {
    *c = (command){0};
    snprintf(c->form, sizeof c->form, "%s", forms[r->opt.form]);
    snprintf(c->max_bytes, sizeof c->max_bytes, "%" PRIu64, r->opt.max_bytes);
    snprintf(c->batch_events, sizeof c->batch_events, "%zu", r->opt.batch_events);
    snprintf(c->hold_back, sizeof c->hold_back, "%u", r->opt.hold_back_ms);
    snprintf(c->ready_fd, sizeof c->ready_fd, "%d", READY_FD);
    snprintf(c->parent, sizeof c->parent, "%ld", (long)getpid());
    const char *const args[] = {program,      "collect",        r->path,        "--ready-fd", c->ready_fd,
                                "--parent",   c->parent,        "--form",       c->form,      "--max-bytes",
                                c->max_bytes, "--batch-events", c->batch_events};
    size_t n = 0;
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) add(c, &n, args[i]);
    if (r->opt.hold_back_ms != 0) {
        add(c, &n, "--hold-back-ms");
        add(c, &n, c->hold_back);
    }
    if (r->opt.attached_late) add(c, &n, "--attached-late");
    if (r->opt.quiet) add(c, &n, "--quiet");
}

// ---- this program as its own collector ----

static atomic_bool has_hook;

/// Asked before anything is started.
static tide_status check_collector(const tide_recorder *r, tide_error *err) {
    if (r->opt.collector != NULL || atomic_load(&has_hook)) return TIDE_OK;
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID,
                  "cannot record into '%s': this program would be started again as its own collector, "
                  "and has not called tide_collector_hook",
                  r->path);
    tide_error_hint(err, "call it first in main, name the program tidemark as collector, or record with a thread");
    return st;
}

/// One option that make_command gives; false: it is none.
static bool take_option(tide_collector_options *o, const char *name, const char *value) {
    char *end = NULL;
    const unsigned long long n = strtoull(value, &end, 10);
    const bool is_number = value[0] >= '0' && value[0] <= '9' && *end == '\0';
    if (strcmp(name, "--form") == 0) {
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            if (strcmp(value, forms[i]) != 0) continue;
            o->form = (tide_record_form)i;
            return true;
        }
        return false;
    }
    if (strcmp(name, "--ready-fd") == 0)
        o->ready_fd = (int)n;
    else if (strcmp(name, "--parent") == 0)
        o->parent = (int)n, o->create = n != 0;
    else if (strcmp(name, "--max-bytes") == 0)
        o->max_bytes = n;
    else if (strcmp(name, "--batch-events") == 0)
        o->batch_events = (size_t)n;
    else if (strcmp(name, "--hold-back-ms") == 0)
        o->hold_back_ms = (unsigned)n;
    else
        return false;
    return is_number;
}

void tide_collector_hook(int argc, char **argv) {
    atomic_store(&has_hook, true);
    if (argc < 4 || strcmp(argv[1], "collect") != 0 || strcmp(argv[3], "--ready-fd") != 0) return;
    tide_collector_options o = {.path = argv[2], .ready_fd = -1};
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--attached-late") == 0) {
            o.attached_late = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            o.quiet = true;
        } else if (i + 1 == argc || !take_option(&o, argv[i], argv[i + 1])) {
            return; // the arguments of another program
        } else {
            i++;
        }
    }
    const tide__engine *engine;
    tide_error err = TIDE_ERROR_INIT;
    if (tide__engine_get(&engine, &err) != TIDE_OK) {
        fprintf(stderr, "tidemark: %s (%s)\n", err.msg, err.note);
        exit(1);
    }
    exit(engine->collect(&o, &err) == TIDE_OK ? 0 : 1); // pipe and feed say why to the process that started it
}

// ---- started ----

static int file_actions(posix_spawn_file_actions_t *a, int ready_fd) {
    int rc = posix_spawn_file_actions_init(a);
    if (rc != 0) return rc;
    if (rc == 0) rc = posix_spawn_file_actions_adddup2(a, ready_fd, READY_FD);
    if (rc == 0) rc = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0) rc = posix_spawn_file_actions_addopen(a, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // A pipe that the program was given must not stay open in a process that it does not know of.
    if (rc == 0) rc = posix_spawn_file_actions_addclosefrom_np(a, READY_FD + 1);
#endif
    if (rc != 0) posix_spawn_file_actions_destroy(a);
    return rc;
}

/// What ends the recorded program from the keyboard must not end the collector before it: blocked until it can say so
/// itself (tide_collect).
static int attributes(posix_spawnattr_t *attr) {
    int rc = posix_spawnattr_init(attr);
    if (rc != 0) return rc;
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    rc = posix_spawnattr_setsigmask(attr, &held);
    if (rc == 0) rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
    if (rc != 0) posix_spawnattr_destroy(attr);
    return rc;
}

static int spawn(const tide_recorder *r, int ready_fd, pid_t *pid) {
    const char *program = r->opt.collector != NULL ? r->opt.collector : "/proc/self/exe";
    command c;
    make_command(&c, r, program);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc = file_actions(&actions, ready_fd);
    if (rc != 0) return rc;
    rc = attributes(&attr);
    if (rc == 0) {
        rc = posix_spawn(pid, program, &actions, &attr, c.args, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/// What the collector said before it closed its end, or before a byte 1: *n bytes of `text`. False: it takes too long.
static bool read_answer(int fd, char *text, size_t cap, size_t *n) {
    const uint64_t since = tide_now_ns();
    for (*n = 0;;) {
        const uint64_t ms = (tide_now_ns() - since) / 1000000;
        if (ms >= PATIENCE_MS) return false;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, PATIENCE_MS - (int)ms);
        if (ready < 0 && errno != EINTR) return true;
        if (ready <= 0) continue;
        const ssize_t got = read(fd, text + *n, cap - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        *n += (size_t)got;
        if (text[0] == 1 || *n == cap) return true;
    }
}

static const char *next_part(const char *part, const char *end) {
    const char *zero = part < end ? memchr(part, '\0', (size_t)(end - part)) : NULL;
    return zero != NULL && zero + 1 < end ? zero + 1 : end;
}

/// It said why it cannot collect; `text` ends with a zero. It knows the trace by another name than the user.
static tide_status refused(const tide_recorder *r, const char *path, const char *text, size_t n, tide_error *err) {
    const char *end = text + n, *msg = text + 2, *name = strstr(msg, r->path);
    const char *where = next_part(msg, end), *note = next_part(where, end), *hint = next_part(note, end);
    const tide_status why = text[1] != 0 ? (tide_status)text[1] : TIDE_ERR_RUNTIME;
    const tide_status st = name != NULL
                               ? TIDE_FAIL(err, why, "%.*s%s%s", (int)(name - msg), msg, path, name + strlen(r->path))
                               : TIDE_FAIL(err, why, "%s", msg);
    if (where[0] != '\0') tide_error_where(err, "%s", where);
    if (note[0] != '\0') tide_error_note(err, "%s", note);
    if (hint[0] != '\0') tide_error_hint(err, "%s", hint);
    return st;
}

static tide_status not_ready(const tide_recorder *r, pid_t pid, bool late, tide_error *err) {
    int how = 0;
    if (late) kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
    const tide_status st = TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot record into '%s': the collector %s", r->path,
                                     late ? "did not begin in time" : "ended before it began");
    if (!late && WIFEXITED(how)) tide_error_note(err, "it ended with status %d", WEXITSTATUS(how));
    if (!late && WIFSIGNALED(how)) tide_error_note(err, "signal %d ended it", WTERMSIG(how));
    return st;
}

static tide_status check_start(const tide_recorder *r, const char *path, tide_error *err) {
    TIDE_TRY(check_collector(r, err));
    if (path[0] == '\0' || strcmp(path, "-") == 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': a trace is not a stream", path);
        tide_error_hint(err, "name a file, for example trace.db");
        return st;
    }
    if ((unsigned)r->opt.form > TIDE_RECORD_CHUNKS)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': no such form of a trace", path);
    return TIDE_OK;
}

tide_status tide__collector_start(const tide_recorder *r, const char *path, pid_t *pid, tide_error *err) {
    TIDE_TRY(check_start(r, path, err));
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot start a collector for '%s': %s", r->path, strerror(errno));
    const int rc = spawn(r, fds[1], pid);
    close(fds[1]);
    if (rc != 0) {
        close(fds[0]);
        *pid = 0;
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot start the collector '%s' for '%s': %s",
                         r->opt.collector != NULL ? r->opt.collector : "/proc/self/exe", r->path, strerror(rc));
    }
    char text[2 + sizeof(tide_error) + 1];
    size_t n;
    const bool late = !read_answer(fds[0], text, sizeof text - 1, &n);
    close(fds[0]);
    if (n > 0 && text[0] == 1) return TIDE_OK;
    text[n] = '\0';
    tide_status st = not_ready(r, *pid, late, err);
    if (n > 2 && text[0] == 2) st = refused(r, path, text, n, err);
    *pid = 0;
    return st;
}
