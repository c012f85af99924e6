// SPDX-License-Identifier: MIT
//
// peak_of COMMAND…: runs it, and prints on the last line of standard error the most bytes of memory that it had, as the
// kernel counts them (VmHWM). The process that starts it is this small one: what a large one has would count for its
// child. Ends as the command does.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2) return fputs("usage: peak_of COMMAND...\n", stderr), 2;
    const pid_t pid = fork();
    if (pid < 0) return perror("fork"), 125;
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) != pid) return perror("wait4"), 125;
    fprintf(stderr, "\n%lld\n", (long long)usage.ru_maxrss * 1024);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
