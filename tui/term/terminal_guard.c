// SPDX-License-Identifier: MIT
//
// Signals while the screen is ours. Handlers call only what POSIX names async-signal-safe: write, tcsetattr, sigaction,
// raise, _exit. See terminal_guard.h.
#include "tui/term/terminal_guard.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/output.h"

static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
static const int crashing[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { N_ENDING = sizeof ending / sizeof ending[0], N_CRASHING = sizeof crashing / sizeof crashing[0] };

static struct {
    int fd;
    bool has_modes;
    struct termios modes;
    char reset[256];
    size_t reset_len;
    bool has_stack; ///< handlers run on `stack`: a crash may be one for want of stack
    stack_t stack_before;
    struct sigaction before_ending[N_ENDING], before_crashing[N_CRASHING];
} guard;

enum { STACK_BYTES = 65536 };
static char stack[STACK_BYTES];

static void restore_screen(void) {
    for (size_t at = 0; at < guard.reset_len;) {
        const ssize_t n = write(guard.fd, guard.reset + at, guard.reset_len - at);
        if (n <= 0) break;
        at += (size_t)n;
    }
    if (guard.has_modes) tcsetattr(guard.fd, TCSANOW, &guard.modes);
}

static void on_ending(int sig) {
    restore_screen();
    tide_output_remove_all();
    _exit(128 + sig);
}

static void on_crash(int sig) {
    restore_screen();
    for (int i = 0; i < N_CRASHING; i++) {
        if (crashing[i] == sig) sigaction(sig, &guard.before_crashing[i], NULL);
    }
    raise(sig); // delivered once this handler returns
}

void tide_tui_guard_prepare(int fd) {
    guard.fd = fd;
    guard.reset_len = 0;
    guard.has_modes = tcgetattr(fd, &guard.modes) == 0;
    for (int i = 0; i < N_ENDING; i++) sigaction(ending[i], NULL, &guard.before_ending[i]);
    for (int i = 0; i < N_CRASHING; i++) sigaction(crashing[i], NULL, &guard.before_crashing[i]);
}

void tide_tui_guard_add_reset(const char *control) {
    for (const char *p = control; p != NULL && *p != '\0'; p++) {
        if (p[0] == '$' && p[1] == '<') {
            const char *close = strchr(p, '>');
            if (close != NULL) {
                p = close;
                continue;
            }
        }
        if (guard.reset_len < sizeof guard.reset) guard.reset[guard.reset_len++] = *p;
    }
}

/// A sanitizer brings one of its own.
static void take_stack(void) {
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    guard.has_stack = sigaltstack(NULL, &guard.stack_before) == 0 && (guard.stack_before.ss_flags & SS_DISABLE) != 0 &&
                      sigaltstack(&own, NULL) == 0;
}

void tide_tui_guard_arm(void) {
    struct sigaction act = {0};
    sigemptyset(&act.sa_mask);
    take_stack();
    act.sa_flags = SA_ONSTACK;
    act.sa_handler = on_ending;
    for (int i = 0; i < N_ENDING; i++) {
        // Ignored stays ignored: nohup and background jobs.
        if (guard.before_ending[i].sa_handler != SIG_IGN) sigaction(ending[i], &act, NULL);
    }
    act.sa_handler = on_crash;
    for (int i = 0; i < N_CRASHING; i++) sigaction(crashing[i], &act, NULL);
}

void tide_tui_guard_disarm(void) {
    for (int i = 0; i < N_ENDING; i++) sigaction(ending[i], &guard.before_ending[i], NULL);
    for (int i = 0; i < N_CRASHING; i++) sigaction(crashing[i], &guard.before_crashing[i], NULL);
    if (guard.has_stack) sigaltstack(&guard.stack_before, NULL);
    guard.has_stack = false;
}
