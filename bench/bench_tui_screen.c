// SPDX-License-Identifier: MIT
//
// What a key sends to a terminal: a pseudo-terminal whose other end is read and counted by a thread. While it is open
// it stands in for standard input and output, as the view's terminal wants them: nothing can be printed meanwhile.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "bench/bench_tui.h"
#include "tui/term/terminal.h"

enum { MARK = 0x16 }; ///< a byte that no frame holds: all that was written before it has been read

static struct {
    int reader, saved_in, saved_out;
    tide_tui_terminal *terminal;
    pthread_t thread;
    _Atomic uint64_t n_bytes, n_marks;
    FILE *copy; ///< of all that is sent, for looking at; NULL: none
} screen;

static void *count(void *arg) {
    (void)arg;
    char buf[4096];
    for (;;) {
        const ssize_t n = read(screen.reader, buf, sizeof buf);
        if (n <= 0) return NULL;
        uint64_t marks = 0;
        for (ssize_t i = 0; i < n; i++) marks += buf[i] == MARK;
        if (screen.copy != NULL) fwrite(buf, 1, (size_t)n, screen.copy);
        atomic_fetch_add(&screen.n_bytes, (uint64_t)n - marks);
        atomic_fetch_add(&screen.n_marks, marks);
    }
}

static void give_up(const char *what) {
    perror(what);
    exit(3);
}

static void open_pair(int width, int height) {
    const struct winsize size = {.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    screen.reader = posix_openpt(O_RDWR | O_NOCTTY);
    if (screen.reader < 0 || grantpt(screen.reader) != 0 || unlockpt(screen.reader) != 0) give_up("pseudo-terminal");
    const int other = open(ptsname(screen.reader), O_RDWR | O_NOCTTY);
    struct termios raw;
    if (other < 0 || tcgetattr(other, &raw) != 0) give_up("pseudo-terminal");
    cfmakeraw(&raw);
    if (tcsetattr(other, TCSANOW, &raw) != 0 || ioctl(other, TIOCSWINSZ, &size) != 0) give_up("pseudo-terminal");
    fflush(stdout);
    screen.saved_in = dup(STDIN_FILENO);
    screen.saved_out = dup(STDOUT_FILENO);
    if (dup2(other, STDIN_FILENO) < 0 || dup2(other, STDOUT_FILENO) < 0) give_up("standard output");
    close(other);
}

void bench_tui_screen_open(int width, int height) {
    tide_error err = TIDE_ERROR_INIT;
    const char *copy = getenv("TIDE_BENCH_SCREEN"); // what is sent goes into this file too
    setenv("TERM", "xterm-256color", 1);
    unsetenv("LINES");
    unsetenv("COLUMNS");
    open_pair(width, height);
    screen.copy = copy != NULL ? fopen(copy, "ab") : NULL;
    if (pthread_create(&screen.thread, NULL, count, NULL) != 0) give_up("thread");
    if (tide_tui_terminal_open(NULL, &screen.terminal, &err) == TIDE_OK) return;
    fprintf(stderr, "terminal: %s\n", err.msg);
    exit(3);
}

uint64_t bench_tui_screen_show(const tide_tui_grid *grid) {
    const uint64_t before = atomic_load(&screen.n_bytes), marks = atomic_load(&screen.n_marks);
    const char mark = MARK;
    tide_error err = TIDE_ERROR_INIT;
    if (tide_tui_terminal_show(screen.terminal, grid, false, &err) != TIDE_OK) give_up("frame");
    tide_tui_terminal_write(screen.terminal, &mark, 1);
    while (atomic_load(&screen.n_marks) == marks) usleep(50);
    return atomic_load(&screen.n_bytes) - before;
}

void bench_tui_screen_close(void) {
    tide_tui_terminal_close(screen.terminal);
    if (dup2(screen.saved_in, STDIN_FILENO) < 0 || dup2(screen.saved_out, STDOUT_FILENO) < 0)
        give_up("standard output");
    close(screen.saved_in);
    close(screen.saved_out); // the pair's other end is closed by now: reading it ends the thread
    pthread_join(screen.thread, NULL);
    close(screen.reader);
    if (screen.copy != NULL) fclose(screen.copy);
}
