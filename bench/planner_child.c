// SPDX-License-Identifier: MIT
//
// A bench's row in a process of its own. See planner_child.h.
#include "bench/planner_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

/// Wait for the child and read what it took. @return its wait status
static int wait_for(pid_t pid, uint64_t t0, bench_cost *cost) {
    struct rusage used;
    int status = -1;
    memset(&used, 0, sizeof used);
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR) continue;
    *cost = (bench_cost){.cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime),
                         .wall_s = (double)(tide_now_ns() - t0) / 1e9,
                         .rss_mb = (double)used.ru_maxrss / 1024.0};
    return status;
}

static void say(bench_answer *a, const char *text) {
    a->done = false;
    snprintf(a->text, sizeof a->text, "%s", text);
}

bench_answer bench_run_child(bench_work work, void *arg, unsigned limit_s, bench_cost *cost) {
    bench_answer answer = {0};
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) {
        say(&answer, "no pipe");
        return answer;
    }
    const uint64_t t0 = tide_now_ns();
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        alarm(limit_s);
        work(arg, &answer);
        const bool sent = write(ends[1], &answer, sizeof answer) == (ssize_t)sizeof answer;
        _exit(sent ? 0 : 1);
    }
    close(ends[1]);
    if (pid < 0) {
        say(&answer, "no process");
    } else {
        const bool got = read(ends[0], &answer, sizeof answer) == (ssize_t)sizeof answer;
        const int status = wait_for(pid, t0, cost);
        const bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        if (!got) say(&answer, late ? "too slow" : "died");
    }
    close(ends[0]);
    return answer;
}

int bench_run_program(char *const *argv, unsigned limit_s, bench_cost *cost) {
    fflush(stdout);
    const uint64_t t0 = tide_now_ns();
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR);
        if (null >= 0) {
            dup2(null, 1);
            dup2(null, 2);
        }
        alarm(limit_s);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0) return -1;
    const int status = wait_for(pid, t0, cost);
    return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}
