// SPDX-License-Identifier: MIT
//
// run --tui. See run_tui.h.
#include "cli/run_tui.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/tui_view.h"
#include "core/base/host_alloc.h"

enum { LOOK_EVERY_MS = 5, SIGNAL_EXIT = 128, CLEAN_TRIES = 400 };

// ---- where the trace goes ----

tide_status cli_run_tui_prepare(const char *path, cli_run_tui *out, tide_error *err) {
    *out = (cli_run_tui){.ready = -1};
    if (cli_tui_need_terminal(err) != TIDE_OK) {
        tide_error_hint(err, "run -o FILE records without a view; tidemark tui FILE --once prints one");
        return TIDE_ERR_INVALID;
    }
    if (path != NULL) {
        if (snprintf(out->path, sizeof out->path, "%s", path) < (int)sizeof out->path) return TIDE_OK;
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot record into '%s': the path is too long", path);
    }
    const char *base = getenv("TMPDIR");
    snprintf(out->folder, sizeof out->folder, "%.400s/tidemark-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
    if (mkdtemp(out->folder) == NULL) {
        const int why = errno;
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot make a folder '%s' for the trace: %s", out->folder, strerror(why));
        tide_error_hint(err, "-o FILE says where to record");
        out->folder[0] = '\0';
        return st;
    }
    snprintf(out->path, sizeof out->path, "%s/run.db", out->folder);
    return TIDE_OK;
}

static void pause_ms(int ms) {
    const struct timespec pause = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&pause, NULL);
}

/// Removes all files of the folder, which no other process uses. False: it cannot be opened.
static bool empty_folder(const char *folder) {
    DIR *dir = opendir(folder);
    if (dir == NULL) return false;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
    return true;
}

/// The collector of a run that was ended goes on for a moment, and may make another file yet.
static void clean_up(const cli_run_tui *t) {
    if (t->folder[0] == '\0') return;
    for (int i = 0; i < CLEAN_TRIES && empty_folder(t->folder) && rmdir(t->folder) != 0; i++) pause_ms(LOOK_EVERY_MS);
}

// ---- the run ----

typedef struct outputs {
    FILE *out, *err;
} outputs;

static void prepare_run(const outputs *o) {
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    dup2(fileno(o->out), STDOUT_FILENO);
    dup2(fileno(o->err), STDERR_FILENO);
}

static void copy_out(FILE *from, FILE *to) {
    char buf[8192];
    rewind(from);
    for (size_t n; (n = fread(buf, 1, sizeof buf, from)) > 0;) fwrite(buf, 1, n, to);
    fflush(to);
}

/// The exit code as a shell reports it.
static int exit_code_of(int status) {
    return WIFSIGNALED(status) ? SIGNAL_EXIT + WTERMSIG(status) : WEXITSTATUS(status);
}

// While child processes run, signals that would end this process are passed on to them, so that it can clean up
// after their end.
static volatile sig_atomic_t child; // process, or minus its group
static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_PASSED_ON = sizeof passed_on / sizeof passed_on[0] };

static void pass_on(int number) {
    if (child != 0) kill((pid_t)child, number);
}

static int wait_for(pid_t pid, pid_t to) {
    struct sigaction act = {.sa_handler = pass_on}, old[N_PASSED_ON];
    sigemptyset(&act.sa_mask);
    child = to;
    for (int i = 0; i < N_PASSED_ON; i++) sigaction(passed_on[i], &act, &old[i]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < N_PASSED_ON; i++) sigaction(passed_on[i], &old[i], NULL);
    child = 0;
    return status;
}

// ---- looking at it ----

/// Whether a run has begun in the trace. One that cannot be opened yet has not.
static bool has_run(const char *path) {
    tide_trace *trace = NULL;
    tide_trace_run *runs = NULL;
    size_t n = 0;
    if (tide_trace_open(path, &trace, NULL) != TIDE_OK) return false;
    if (tide_trace_runs(trace, &runs, &n, NULL) != TIDE_OK) n = 0;
    tide_trace_runs_free(runs);
    tide_trace_close(trace);
    return n > 0;
}

/// Waits until the run says that it records, and then for its first one. False: it has ended, with *status, before
/// there was anything to be seen.
static bool wait_for_trace(const char *path, int ready, pid_t pid, int *status, bool *has_ended) {
    char word;
    ssize_t n;
    while ((n = read(ready, &word, 1)) < 0 && errno == EINTR) {
    }
    const bool is_recorded = n == 1; // else the run closed it by ending
    for (;;) {
        if (is_recorded && has_run(path)) return true;
        if (*has_ended) return false;
        *has_ended = waitpid(pid, status, WNOHANG) == pid; // and look once more: a short run may have ended
        if (!*has_ended) pause_ms(LOOK_EVERY_MS);
    }
}

void cli_run_tui_ready(cli_run_tui *t) {
    if (t->ready < 0) return;
    while (write(t->ready, "r", 1) < 0 && errno == EINTR) {
    }
    close(t->ready);
    t->ready = -1;
}

static int view_trace(const cli_run_tui *t) {
    const cli_view view = {0};
    cli_tui_session s = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_text_add(&s.prefix, "tidemark tui");
    tide_status st = cli_tui_session_open(&view, t->path, NULL, t->capacity_bytes, &s, &err);
    const tide_tui_options opt = {.follow = true};
    if (st == TIDE_OK) st = tide_tui_run(&s.session, &opt, &err);
    cli_tui_session_close(&s);
    return st == TIDE_OK ? CLI_EXIT_OK : cli_fail(&err);
}

/// The view runs in a process of its own, so that its end, however it comes, leaves this one to wait for the run.
static int view_in_child(const cli_run_tui *t) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) return view_trace(t);
    if (pid > 0) return exit_code_of(wait_for(pid, pid));
    const int code = view_trace(t);
    fflush(NULL);
    _exit(code);
}

/// Whether the code of the view ends the run too: a signal to the view does, a view that failed does not.
static bool ends_the_run(int code) {
    for (int i = 0; i < N_PASSED_ON; i++) {
        if (code == SIGNAL_EXIT + passed_on[i]) return true;
    }
    return false;
}

static int watch(const cli_run_tui *t, int ready, pid_t pid, const outputs *o) {
    int status = 0, of_view = CLI_EXIT_OK;
    bool has_ended = false;
    if (wait_for_trace(t->path, ready, pid, &status, &has_ended)) of_view = view_in_child(t);
    if (!has_ended && ends_the_run(of_view)) kill(-pid, of_view - SIGNAL_EXIT);
    if (!has_ended) has_ended = waitpid(pid, &status, WNOHANG) == pid;
    if (!has_ended) {
        if (!ends_the_run(of_view))
            fputs("note: the run goes on; its report follows when it ends (Ctrl-C ends it)\n", stderr);
        status = wait_for(pid, -pid);
    }
    copy_out(o->out, stdout);
    copy_out(o->err, stderr);
    return of_view != CLI_EXIT_OK ? of_view : exit_code_of(status);
}

/// A process for the run, and a pipe over which it says that it records.
static tide_status start(cli_run_tui *t, const outputs *o, int *ready, pid_t *pid, tide_error *err) {
    int ends[2];
    if (o->out == NULL || o->err == NULL || pipe2(ends, O_CLOEXEC) != 0)
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot make a file for the output of the run: %s", strerror(errno));
    fflush(NULL);
    *pid = fork();
    if (*pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return TIDE_FAIL(err, TIDE_ERR_RUNTIME, "cannot start a process for the run: %s", strerror(errno));
    }
    t->is_child = *pid == 0;
    close(ends[t->is_child ? 0 : 1]);
    *(t->is_child ? &t->ready : ready) = ends[t->is_child ? 1 : 0];
    return TIDE_OK;
}

tide_status cli_run_tui_start(cli_run_tui *t, int *code, tide_error *err) {
    const outputs o = {tmpfile(), tmpfile()};
    pid_t pid = -1;
    int ready = -1;
    const tide_status st = start(t, &o, &ready, &pid, err);
    if (st == TIDE_OK && t->is_child) {
        prepare_run(&o);
    } else if (st == TIDE_OK) {
        setpgid(pid, pid); // both do it, so that it is done before either goes on
        *code = watch(t, ready, pid, &o);
        close(ready);
    }
    if (o.out != NULL) fclose(o.out);
    if (o.err != NULL) fclose(o.err);
    if (!t->is_child) clean_up(t);
    return st;
}
