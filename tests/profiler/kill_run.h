// SPDX-License-Identifier: MIT
//
// kill run: a victim (kill_victim.c) started from a test, with faults and limits of its own, and what became of it.
#ifndef TIDE_TESTS_KILL_RUN_H
#define TIDE_TESTS_KILL_RUN_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/profiler/kill_check.h"
#include "tests/profiler/trace_fixture.h"

enum { KILL_MAX_ARGS = 32 };

typedef struct kill_run {
    tmp_dir out;   ///< shadow and stderr, never touched by faults
    char dir[256]; ///< of the trace
    char trace[300];
    kill_shadow *shadow;
    char stderr_path[300], shadow_path[300];
    const char *args[KILL_MAX_ARGS];
    size_t n_args;
    char fault[64];                     ///< KILL_FAULT; "": none
    uint64_t max_file_bytes;            ///< RLIMIT_FSIZE; 0: none
    void (*before)(struct kill_run *r); ///< in the child, before the victim begins
    pid_t pid;
    int status;
    uint64_t seed;
    uint32_t n_threads;
} kill_run;

static inline void kill_run_arg(kill_run *r, const char *name, const char *value) {
    assert_true(r->n_args + 3 < KILL_MAX_ARGS);
    r->args[r->n_args++] = name;
    if (value != NULL) r->args[r->n_args++] = value;
}

/// Folders and the shared page; two threads, seed 1.
static inline void kill_run_init(kill_run *r, const char *drain) {
    *r = (kill_run){.seed = 1, .n_threads = 2};
    tmp_dir_make(&r->out);
    snprintf(r->dir, sizeof r->dir, "%.240s/traces", r->out.path);
    assert_int_equal(mkdir(r->dir, 0700), 0);
    snprintf(r->trace, sizeof r->trace, "%s/trace.db", r->dir);
    snprintf(r->shadow_path, sizeof r->shadow_path, "%s/shadow", r->out.path);
    snprintf(r->stderr_path, sizeof r->stderr_path, "%s/stderr", r->out.path);
    const int fd = open(r->shadow_path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(kill_shadow)), 0);
    void *p = mmap(NULL, sizeof(kill_shadow), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(p != MAP_FAILED);
    r->shadow = p;
    const char *victim = getenv("KILL_VICTIM");
    assert_non_null(victim);
    r->args[r->n_args++] = victim;
    kill_run_arg(r, "--drain", drain);
    kill_run_arg(r, "--seed", "1");
}

static inline void kill_run_start(kill_run *r) {
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // its collector, when the victim has gone
    kill_run_arg(r, "--trace", r->trace);
    kill_run_arg(r, "--shadow", r->shadow_path);
    char *argv[KILL_MAX_ARGS + 1] = {NULL};
    for (size_t i = 0; i < r->n_args; i++) assert_non_null(argv[i] = tide_host_strdup(r->args[i]));
    fflush(stdout);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        char latch[300];
        const int fd = open(r->stderr_path, O_CREAT | O_WRONLY | O_APPEND, 0600);
        if (fd < 0 || dup2(fd, 2) < 0) _exit(126);
        snprintf(latch, sizeof latch, "%.280s/full", r->out.path);
        if (r->fault[0] != '\0' &&
            (setenv("KILL_FAULT", r->fault, 1) != 0 || setenv("KILL_FAULT_DIR", r->dir, 1) != 0 ||
             setenv("KILL_FAULT_LATCH", latch, 1) != 0))
            _exit(126);
        const struct rlimit limit = {r->max_file_bytes, r->max_file_bytes};
        if (r->before != NULL) r->before(r);
        if (r->max_file_bytes > 0 && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
        execv(argv[0], argv);
        _exit(127);
    }
    for (size_t i = 0; i < r->n_args; i++) tide_host_free(argv[i]);
}

static inline void kill_run_nap(uint64_t ns) {
    const struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&t, NULL);
}

static inline uint64_t kill_run_sent(const kill_run *r) {
    uint64_t n = 0;
    for (uint32_t t = 0; t < r->n_threads; t++) n += atomic_load(&r->shadow->threads[t].n_events);
    return n;
}

/// Until the victim and all that it started have ended; `each` is called now and then.
static inline void kill_run_wait(kill_run *r, void (*each)(kill_run *r)) {
    const uint64_t end = tide_now_ns() + UINT64_C(180000000000);
    for (;;) {
        int status;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == ECHILD) return;
        if (pid == r->pid) r->status = status;
        if (pid > 0) continue;
        if (each != NULL) each(r);
        if (tide_now_ns() > end) {
            kill(r->pid, SIGKILL);
            fail_msg("the program or its collector does not end");
        }
        kill_run_nap(1000000);
    }
}

/// What was printed; owned by the caller (tide_host_free).
static inline char *kill_run_stderr(const kill_run *r, size_t *n_lines) {
    char *data = NULL;
    size_t len = 0;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_read_file(r->stderr_path, 0, &data, &len, &err), &err);
    *n_lines = 0;
    for (size_t i = 0; i < len; i++) *n_lines += data[i] == '\n';
    return data;
}

static inline kill_expect kill_run_expect(const kill_run *r, tide_trace_state state) {
    kill_expect want = {.trace = r->trace, .state = state};
    kill_expect_shadow(&want, r->shadow, r->seed, r->n_threads);
    return want;
}

static inline void kill_run_remove_folder(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char name[600];
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') remove(name);
    }
    closedir(dir);
    rmdir(path);
}

static inline void kill_run_deinit(kill_run *r) {
    munmap(r->shadow, sizeof *r->shadow);
    kill_run_remove_folder(r->dir);
    tmp_dir_remove(&r->out);
}

#endif
