// SPDX-License-Identifier: MIT
//
// Signals that the view lives on after: stop, continue, resize. They are let through only while it waits, so that none
// comes between looking and waiting. Those that end the program are terminal_guard's.
#include <pthread.h>
#include <string.h>

#include "tui/terminal_internal.h"

static volatile sig_atomic_t wants_stop, was_continued;

static struct sigaction before_stop, before_continue;
static sigset_t before_mask;

static void on_stop(int sig) {
    (void)sig;
    wants_stop = 1;
}

static void on_continue(int sig) {
    (void)sig;
    was_continued = 1;
}

void tide__terminal_catch_signals(tide_tui_terminal *t) {
    struct sigaction act;
    memset(&act, 0, sizeof act);
    sigemptyset(&act.sa_mask);
    wants_stop = was_continued = 0;
    sigaction(SIGTSTP, NULL, &before_stop);
    sigaction(SIGCONT, NULL, &before_continue);
    act.sa_handler = on_stop;
    if (before_stop.sa_handler != SIG_IGN) sigaction(SIGTSTP, &act, NULL); // shells without job control ignore it
    act.sa_handler = on_continue;
    sigaction(SIGCONT, &act, NULL);
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGTSTP);
    sigaddset(&held, SIGCONT);
    sigaddset(&held, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &held, &before_mask);
    t->waiting = before_mask;
    sigdelset(&t->waiting, SIGTSTP);
    sigdelset(&t->waiting, SIGCONT);
    sigdelset(&t->waiting, SIGWINCH);
}

void tide__terminal_drop_signals(void) {
    sigaction(SIGTSTP, &before_stop, NULL);
    sigaction(SIGCONT, &before_continue, NULL);
    pthread_sigmask(SIG_SETMASK, &before_mask, NULL);
}

unsigned tide__terminal_signals(void) {
    unsigned woke = 0;
    if (wants_stop) woke |= TIDE_TUI_WOKE_SUSPEND;
    if (was_continued) woke |= TIDE_TUI_WOKE_RESUME;
    wants_stop = was_continued = 0;
    return woke;
}

void tide__terminal_stop(void) {
    struct sigaction act, mine;
    sigset_t stop;
    memset(&act, 0, sizeof act);
    sigemptyset(&act.sa_mask);
    act.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &act, &mine);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    raise(SIGTSTP); // the process stops here, and goes on from here
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    sigaction(SIGTSTP, &mine, NULL);
}
