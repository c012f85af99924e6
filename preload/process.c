// SPDX-License-Identifier: MIT
//
// Life of the recorded process: whether it is recorded, when that begins, what a fork does to it, its end.
//
//     loaded    EARLY: events wait
//     begin     (constructor) feed -> what waits is put in -> ON        or OFF, with the reason in the trace
//     fork      the page of the state is empty in the child: FORKED; fork(3) tells us, and makes it CHILD
//     CHILD     the first event opens a feed of its own: one that only calls exec costs nothing
//     end       the feed is marked; destructors of libraries go on to put events in
//
// A killed process does not mark anything, and loses nothing either: its feed is a mapped file.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/stacks.h"
#include "profiler/collector.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 // Linux 4.14
#endif

static _Atomic uint32_t state_of_loading = PRELOAD_EARLY;
_Atomic uint32_t *preload_state_at = &state_of_loading;
tide__feed *preload_feed;
static pid_t owner;    // of the feed
static int claim = -1; // a lock on the parent's feed (below); in a child of fork until it has a feed

static void set_state(preload_state state) {
    atomic_store_explicit(preload_state_at, (uint32_t)state, memory_order_release);
}

/// A page that a child finds empty, however it was made.
static bool make_state_page(void) {
    enum { PAGE = 4096 };
    const long at = syscall(SYS_mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    if (at == -1) return false;
    void *page = (void *)at; // NOLINT(performance-no-int-to-ptr)
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        syscall(SYS_munmap, page, PAGE);
        return false;
    }
    _Atomic uint32_t *state = page;
    atomic_store_explicit(state, PRELOAD_EARLY, memory_order_relaxed);
    preload_state_at = state;
    return true;
}

// ---- signals ----

/// While the library works at length: a handler that leaves by a jump would leave our locks taken.
static void hold_signals(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    // Those of a fault are of our own making, if any.
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, before);
    preload_self.holds_signals = preload_self.is_at_work = true;
}

static void release_signals(const sigset_t *before) {
    preload_self.holds_signals = preload_self.is_at_work = false;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

// ---- whether ----

/// Tidemark's own program records itself.
static bool is_tidemark(void) {
    const char *self = getenv(TIDE_SELF_ENV);
    struct stat info;
    char mine[64];
    if (self == NULL || stat("/proc/self/exe", &info) != 0) return false;
    snprintf(mine, sizeof mine, "%llx:%llx", (unsigned long long)info.st_dev, (unsigned long long)info.st_ino);
    return strcmp(self, mine) == 0;
}

/// By name: to look for a function that is not there would leave an error for the program's own dlerror.
static int is_recorder(struct dl_phdr_info *library, size_t bytes, void *unused) {
    static const char wanted[] = "libtidemark-record.so";
    const char *slash = strrchr(library->dlpi_name, '/');
    (void)bytes, (void)unused;
    return strncmp(slash != NULL ? slash + 1 : library->dlpi_name, wanted, sizeof wanted - 1) == 0;
}

/// Its memory is its own to tell of, and it is in the trace by that.
static bool tells_itself(void) {
    const char *mode = getenv(TIDE_MALLOC_ENV);
    return (mode == NULL || strcmp(mode, "on") != 0) && dl_iterate_phdr(is_recorder, NULL) != 0;
}

/// Why the process is not recorded; NULL: it is.
static const char *reason_against(void) {
    void *first = dlsym(RTLD_DEFAULT, "malloc"), *mine;
    void *(*const own)(size_t) = preload_malloc_address();
    memcpy(&mine, &own, sizeof mine);
    if (first != mine) return "the program brings a malloc of its own, or another library took its place first";
    return NULL;
}

// ---- begin ----

/// With the lock on what waits.
static void begin(bool is_late, const char *off) {
    tide_error err = TIDE_ERROR_INIT;
    tide__feed *feed = NULL;
    if (preload_open(is_late, off, &feed, &err) != TIDE_OK || feed == NULL) {
        set_state(PRELOAD_OFF);
        preload_drop_early();
        return;
    }
    preload_feed = feed;
    owner = getpid();
    preload_flush_early();
    set_state(PRELOAD_ON);
}

void preload_begin_child(void) {
    sigset_t before;
    hold_signals(&before);
    preload_lock_early();
    if (preload_get_state() == PRELOAD_CHILD) {
        tide__feed *parents = preload_feed;
        const int parents_claim = claim;
        begin(true, NULL);
        if (parents_claim >= 0 && preload_holds_claim(parents, parents_claim)) close(parents_claim);
        claim = -1;
        tide__feed_destroy(parents, false); // only what it took of memory here
    }
    preload_unlock_early();
    release_signals(&before);
}

// ---- fork ----
//
// A child makes its feed at its first event. Until then it holds a lock on its parent's, which the parent took for it:
// so the collector does not end before, though the parent and the command may.

static void let_go_of_claim(void) {
    if (claim >= 0 && preload_feed != NULL && preload_holds_claim(preload_feed, claim)) close(claim);
    claim = -1;
}

static void before_fork(void) {
    preload_lock_early();
    if (preload_get_state() == PRELOAD_ON) claim = preload_claim(preload_feed);
}

static void after_fork_in_parent(void) {
    if (preload_get_state() == PRELOAD_ON) let_go_of_claim();
    preload_unlock_early();
}

static void after_fork_in_child(void) {
    const bool is_recorded = preload_feed != NULL;
    preload_drop_early();
    preload_stack_forget();
    preload_scopes_forget();
    preload_self.n_waiting = 0;
    set_state(is_recorded ? PRELOAD_CHILD : PRELOAD_OFF);
    preload_unlock_early();
}

__attribute__((constructor(101))) static void at_begin(void) {
    const int saved = errno;
    const char *trace = getenv(TIDE_COLLECTOR_ENV), *mode = getenv(TIDE_MALLOC_ENV);
    const bool is_wanted = trace != NULL && trace[0] != '\0' && mode != NULL && strcmp(mode, "off") != 0;
    if (!preload_find_real() || !is_wanted || is_tidemark() || !make_state_page()) {
        set_state(PRELOAD_OFF);
        errno = saved;
        return;
    }
    sigset_t before;
    hold_signals(&before);
    preload_own_prepare();
    preload_lock_early();
    if (tells_itself()) {
        set_state(PRELOAD_OFF);
        preload_drop_early();
    } else {
        begin(false, reason_against());
    }
    preload_unlock_early();
    // After those of the feed, which shall come first in a child.
    if (preload_get_state() == PRELOAD_ON)
        (void)!pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    release_signals(&before);
    errno = saved;
}

// ---- end ----

void preload_mark_end(void) {
    // A child of vfork has our memory, and is not us.
    if (preload_get_state() != PRELOAD_ON || getpid() != owner) return;
    tide__feed_say_ending(preload_feed, TIDE__FEED_ENDS);
}

void preload_mark_replaced(bool is_replaced) {
    if (preload_get_state() != PRELOAD_ON || getpid() != owner) return;
    tide__feed_say_ending(preload_feed, is_replaced ? TIDE__FEED_IS_REPLACED : TIDE__FEED_GOES_ON);
}

__attribute__((destructor)) static void at_end(void) { preload_mark_end(); }

PRELOAD_EXPORT _Noreturn void _exit(int code);
PRELOAD_EXPORT _Noreturn void _Exit(int code);

_Noreturn void _exit(int code) {
    preload_mark_end();
    for (;;) syscall(SYS_exit_group, code);
}

_Noreturn void _Exit(int code) { _exit(code); }
