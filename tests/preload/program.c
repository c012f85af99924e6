// SPDX-License-Identifier: MIT
//
// program: does one thing with its memory, so that a test can say what the trace must hold. Usage: program WHAT [N]
//
// It prints with write(2) alone: stdio would allocate. What it allocates to be looked for has a size that nothing else
// has: 1000003 and following.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK = 1000003, PAGE = 4096 };

static void *volatile kept[4096];

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(9);
}

/// Each function once, in an order that tells which block is whose.
static void each_function(void) {
    kept[0] = malloc(MARK);
    kept[1] = calloc(1, MARK + 1);
    kept[2] = realloc(NULL, MARK + 2);
    kept[2] = realloc(kept[2], MARK + 3);
    kept[2] = reallocarray(kept[2], 2, (MARK + 5) / 2);
    void *block = NULL;
    if (posix_memalign(&block, 64, MARK + 5) != 0) _exit(9);
    kept[3] = block;
    kept[4] = aligned_alloc(4096, 250 * 4096);
    kept[5] = memalign(32, MARK + 7);
    kept[6] = valloc(MARK + 8);
    kept[7] = pvalloc(MARK + 9);
    for (int i = 0; i < 8; i++) free(kept[i]);
    errno = 77;
    free(malloc(10));
    if (errno != 77) say("errno changed\n");
    kept[8] = malloc(0);
    free(kept[8]);
    volatile size_t too_many = SIZE_MAX / 2;
    // What cannot be had: nothing changes, and it is told.
    kept[9] = malloc(MARK + 10);
    if (realloc(kept[9], SIZE_MAX / 4) != NULL || errno != ENOMEM) say("realloc gave what there is not\n");
    if (reallocarray(kept[9], too_many, 16) != NULL) say("reallocarray gave what there is not\n");
    free(kept[9]);
}

/// Addresses without access, more than there is memory; parts of them become memory and go again.
static void addresses(void) {
    const size_t all = (size_t)1 << 38;
    char *at = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(at + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE);
    at[5 * PAGE] = 1;
    mprotect(at + 5 * PAGE, PAGE, PROT_NONE); // 1 | 2
    munmap(at + 6 * PAGE, PAGE);              // 1 | 1
    mprotect(at + 100 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE);
    mmap(at + 100 * PAGE, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); // none of the 8
    if (mprotect(at + 6 * PAGE, PAGE, PROT_READ) == 0) say("mprotect took what is unmapped\n");
    kept[0] = at;
}

/// Pages: 16 of them, of which parts go, some move, and the rest stays.
static void pages(void) {
    char *at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(at + 2 * PAGE, 3 * PAGE); // 2 | 11
    munmap(at, PAGE);                // 1 | 11
    munmap(at + 15 * PAGE, PAGE);    // 1 | 10
    if (munmap(at + 1, PAGE) == 0) say("munmap took a crooked address\n");
    char *more = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    more = mremap(more, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);                                   // 64
    mmap(more + 8 * PAGE, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); // 8 | 8 | 48
    const int fd = open("/proc/self/exe", O_RDONLY);
    void *file = mmap(more, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0); // 7 | 8 | 48
    munmap(file, PAGE);
    close(fd);
    kept[0] = at;
    kept[1] = more;
}

// ---- threads that hand blocks on ----

static void *_Atomic handed[64];
static int n_rounds;

static void *hand_on(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    for (int i = 0; i < n_rounds; i++) {
        state = state * 1103515245u + 12345u;
        void *mine = malloc(16 + state % 7 * 16);
        free(atomic_exchange(&handed[state / 65536 % 64], mine));
    }
    return NULL;
}

static void threads(int n, int rounds) {
    n_rounds = rounds;
    pthread_t *t = calloc((size_t)n, sizeof *t);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (int i = 0; i < n; i++)
        if (pthread_create(&t[i], &small, hand_on, (void *)(uintptr_t)(i + 1)) != 0) say("no thread\n");
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 64; i++) free(handed[i]);
    free(t);
}

static void *two_blocks(void *unused) {
    (void)unused;
    for (int i = 0; i < 3000; i++) free(malloc(MARK + 1));
    return malloc(MARK);
}

static void in_a_thread(void) {
    pthread_t t;
    void *block = NULL;
    if (pthread_create(&t, NULL, two_blocks, NULL) != 0) say("no thread\n");
    pthread_join(t, &block);
    free(block);
}

// ---- descriptors ----

/// All that it did not open is closed, and others come in their place: they must stay as they are.
static void close_all(void) {
    free(malloc(MARK + 2));
    syscall(SYS_close_range, 3, ~0U, 0);
    char name[64];
    for (int i = 3; i < 1000; i++) {
        snprintf(name, sizeof name, "here%d", i);
        const int fd = open(name, O_RDWR | O_CREAT, 0600);
        if (i == 3 && fd != 3) say("a descriptor stayed\n");
        if (fd >= 0 && write(fd, "x", 1) != 1) say("cannot write\n");
    }
    in_a_thread();
    for (int i = 3; i < 1000; i++) {
        snprintf(name, sizeof name, "here%d", i);
        const int fd = open(name, O_RDONLY);
        char text[8];
        if (fd >= 0 && (read(fd, text, sizeof text) != 1 || text[0] != 'x')) say("a file was written to\n");
        if (fd >= 0) close(fd);
        unlink(name);
    }
}

// ---- signals ----

static atomic_long by_handler, by_main;

static void on_signal(int number) {
    (void)number;
    for (int i = 0; i < 3; i++) {
        free(malloc(MARK + 1));
        atomic_fetch_add(&by_handler, 1);
    }
}

/// With an allocator that a handler may call.
static void signals(void) {
    signal(SIGALRM, on_signal);
    const struct itimerval often = {.it_interval = {0, 2000}, .it_value = {0, 2000}}, never = {0};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20000; i++) {
        free(malloc(MARK));
        atomic_fetch_add(&by_main, 1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    char text[64];
    snprintf(text, sizeof text, "%ld %ld\n", atomic_load(&by_main), atomic_load(&by_handler));
    say(text);
}

// ---- processes ----

static void many(int size, int n) {
    for (int i = 0; i < n; i++) free(malloc((size_t)size));
}

static int wait_for(pid_t pid) {
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
    return how;
}

static void forks(void) {
    kept[0] = malloc(MARK);
    const pid_t pid = fork();
    if (pid == 0) {
        free(kept[0]); // of before
        many(MARK + 1, 10);
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            many(MARK + 2, 5);
            _exit(0);
        }
        wait_for(grandchild);
        exit(0);
    }
    wait_for(pid);
    free(kept[0]);
    // One that no handler hears of.
    const long raw = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (raw == 0) {
        many(MARK + 3, 10);
        _exit(0);
    }
    wait_for((pid_t)raw);
    many(MARK + 4, 10);
}

static void execs(char *self) {
    many(MARK, 3);
    const pid_t pid = vfork();
    if (pid == 0) {
        execl(self, self, "many", "7", (char *)NULL);
        _exit(9);
    }
    wait_for(pid);
    many(MARK, 3);
    execl(self, self, "many", "8", (char *)NULL);
}

// ---- what children leave ----

/// Each ends before the next one begins.
static void leave_in_turn(int n, size_t bytes) {
    for (int i = 0; i < n; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            kept[0] = malloc(bytes);
            exit(0);
        }
        wait_for(pid);
    }
}

/// All are there before the first one ends. `then`, not 0: they end once there is a file "go" here (which "ready" asks
/// for), and behind them the parent takes so much.
static void leave_at_once(int n, size_t bytes, size_t then) {
    int up[2], down[2];
    char byte = 0;
    if (pipe(up) != 0 || pipe(down) != 0) _exit(9);
    for (int i = 0; i < n; i++) {
        if (fork() != 0) continue;
        kept[0] = malloc(bytes);
        close(down[1]);
        if (write(up[1], &byte, 1) != 1 || read(down[0], &byte, 1) != 0) _exit(9);
        exit(0);
    }
    for (int i = 0; i < n; i++)
        if (read(up[0], &byte, 1) != 1) _exit(9);
    if (then != 0) close(open("ready", O_CREAT | O_WRONLY, 0600));
    while (then != 0 && access("go", F_OK) != 0) usleep(10000);
    close(down[1]);
    for (int i = 0; i < n; i++) wait(NULL);
    if (then == 0) return;
    kept[0] = malloc(then);
    free(kept[0]);
}

/// A child is killed, and some time later the parent takes as much as it had.
static void leave_killed(size_t bytes) {
    int up[2];
    char byte = 0;
    if (pipe(up) != 0) _exit(9);
    const pid_t pid = fork();
    if (pid == 0) {
        kept[0] = malloc(bytes);
        if (write(up[1], &byte, 1) == 1) pause();
        _exit(9);
    }
    if (read(up[0], &byte, 1) != 1) _exit(9);
    kill(pid, SIGKILL);
    wait_for(pid);
    usleep(300000);
    kept[0] = malloc(bytes);
    free(kept[0]);
}

static void ends(const char *how, int n) {
    many(MARK, n);
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "_exit") == 0) _exit(7);
    if (strcmp(how, "quick") == 0) quick_exit(7);
    if (strcmp(how, "crash") == 0) raise(SIGSEGV);
}

static void daemons(void) {
    if (fork() > 0) _exit(3);
    setsid();
    usleep(300000); // the command has ended, and nothing was allocated yet
    many(MARK, 5);
    usleep(200000);
    many(MARK, 5);
}

static void elsewhere(const char *what) {
    many(MARK, 5);
    if (strcmp(what, "chroot") == 0 && (chroot("/proc/self/fdinfo") != 0 || chdir("/") != 0)) say("no chroot\n");
    if (strcmp(what, "nobody") == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) say("no other user\n");
    many(MARK, 5);
    in_a_thread();
}

/// A library of C++, in a scope of its own.
static void plugin(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*work)(void) = NULL;
    void *address = library != NULL ? dlsym(library, "work") : NULL;
    if (address == NULL) _exit(8);
    memcpy(&work, &address, sizeof work);
    if (work() != 0 || dlerror() != NULL || dlclose(library) != 0) _exit(7);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    static const char *const ways[] = {"kill", "abort", "_exit", "quick", "crash"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(what, ways[i]) == 0) ends(what, n);
    if (strcmp(what, "each") == 0) each_function();
    if (strcmp(what, "dlerror") == 0 && dlerror() != NULL) say("an error of dlsym that is not ours\n");
    if (strcmp(what, "pages") == 0) pages();
    if (strcmp(what, "plugin") == 0) plugin(argv[2]);
    if (strcmp(what, "addresses") == 0) addresses();
    if (strcmp(what, "threads") == 0) threads(n, argc > 3 ? (int)strtol(argv[3], NULL, 10) : 100);
    if (strcmp(what, "close") == 0) close_all();
    if (strcmp(what, "signals") == 0) signals();
    if (strcmp(what, "fork") == 0) forks();
    if (strcmp(what, "exec") == 0) execs(argv[0]);
    if (strcmp(what, "many") == 0) many(MARK, n);
    if (strcmp(what, "daemon") == 0) daemons();
    if (argc > 5 && chdir(argv[5]) != 0) return 9;
    const size_t bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : MARK;
    if (strcmp(what, "keep") == 0) kept[0] = malloc((size_t)n);
    if (strcmp(what, "leave_in_turn") == 0) leave_in_turn(n, bytes);
    if (strcmp(what, "leave_at_once") == 0) leave_at_once(n, bytes, argc > 4 ? strtoul(argv[4], NULL, 10) : 0);
    if (strcmp(what, "leave_killed") == 0) leave_killed((size_t)n);
    if (strcmp(what, "chroot") == 0 || strcmp(what, "nobody") == 0) elsewhere(what);
    return 0;
}
