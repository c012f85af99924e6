// SPDX-License-Identifier: MIT
//
// calls: allocates from a tree of calls that it knows itself, and prints what each function took: its own bytes, and
// those of all that it called. Usage: calls WHAT [ARG...]
//
// Every function notes that it is entered and left on a stack of its own; a block counts for the innermost function,
// and once for each function that it lies in. Nothing is freed, so the trace's end holds all of it.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define FAR __attribute__((noinline, noclone))
#define NEAR static inline __attribute__((always_inline))

static const char *const names[] = {"leaf",           "middle",    "twice",  "down",      "near_inner",
                                    "near_outer",     "with_near", "wide",   "on_signal", "in_thread",
                                    "on_other_stack", "call_back", "at_once"};
enum {
    LEAF,
    MIDDLE,
    TWICE,
    DOWN,
    NEAR_INNER,
    NEAR_OUTER,
    WITH_NEAR,
    WIDE,
    ON_SIGNAL,
    IN_THREAD,
    ON_OTHER_STACK,
    CALL_BACK,
    AT_ONCE,
    N
};

static atomic_ulong own[N], with[N];
static _Thread_local int entered[512], n_entered;

/// In the function that is innermost.
static void calls_take(size_t bytes) {
    own[entered[n_entered - 1]] += bytes;
    unsigned seen = 0;
    for (int i = 0; i < n_entered; i++) {
        if ((seen >> entered[i] & 1) == 0) with[entered[i]] += bytes;
        seen |= 1u << entered[i];
    }
}
#define ENTER(what) entered[n_entered++] = (what)
#define LEAVE() n_entered--
/// A call of malloc from the function that it stands in. What is behind the call keeps it from becoming a jump.
#define TAKE(bytes)                                                                                                    \
    do {                                                                                                               \
        calls_take(bytes);                                                                                             \
        void *block_ = malloc(bytes);                                                                                  \
        __asm__ volatile("" : : "r"(block_) : "memory");                                                               \
    } while (0)
#define STAY() __asm__ volatile("" : : : "memory")

FAR void leaf(size_t n) {
    ENTER(LEAF);
    TAKE(n);
    LEAVE();
}

FAR void middle(size_t n) {
    ENTER(MIDDLE);
    leaf(n + 1);
    TAKE(n);
    leaf(n + 2);
    LEAVE();
}

/// Calls itself: it lies in itself, which counts once.
FAR void twice(int n) {
    ENTER(TWICE);
    TAKE(100);
    if (n > 0) twice(n - 1);
    middle(1000);
    LEAVE();
}

FAR void down(int n) {
    ENTER(DOWN);
    if (n > 0)
        down(n - 1);
    else
        TAKE(777);
    LEAVE();
    STAY();
}

NEAR void near_inner(size_t n) {
    ENTER(NEAR_INNER);
    TAKE(n);
    LEAVE();
}

NEAR void near_outer(size_t n) {
    ENTER(NEAR_OUTER);
    near_inner(n);
    leaf(n + 5);
    near_inner(n + 1);
    LEAVE();
}

FAR void with_near(size_t n) {
    ENTER(WITH_NEAR);
    near_outer(n);
    TAKE(3);
    LEAVE();
}

/// Its frame is aligned to 64 bytes, so that the compiler counts it from the frame pointer.
FAR void wide(size_t n) {
    _Alignas(64) char room[256];
    char *const variable = __builtin_alloca(n);
    ENTER(WIDE);
    __asm__ volatile("" : : "r"(room), "r"(variable) : "memory");
    TAKE(n);
    leaf(n);
    LEAVE();
}

static void tree(void) {
    for (int i = 0; i < 50; i++) {
        twice(3);
        with_near((size_t)i * 10 + 1);
        wide((size_t)i * 16 + 33);
        middle(5);
    }
    down(5);
}

// ---- where else code runs ----

static void on_signal(int number) {
    (void)number;
    const int before = n_entered;
    ENTER(ON_SIGNAL);
    TAKE(50000);
    leaf(60000);
    n_entered = before;
}

/// On a stack of its own, in the middle of others.
static void signals(void) {
    const stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, NULL);
    ENTER(MIDDLE); // as below
    LEAVE();
    raise(SIGUSR1);
    tree();
    raise(SIGUSR1);
}

static void *in_thread(void *unused) {
    ENTER(IN_THREAD);
    TAKE(11);
    twice(2);
    middle(7);
    LEAVE();
    return unused;
}

static void threads(int n) {
    pthread_attr_t small;
    pthread_t *t = calloc((size_t)n, sizeof *t);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32 << 10);
    for (int i = 0; i < n; i++)
        if (pthread_create(&t[i], &small, in_thread, NULL) != 0) _exit(9);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
}

static ucontext_t home, away;

static void on_other_stack(void) {
    ENTER(ON_OTHER_STACK);
    twice(1);
    LEAVE();
    STAY();
}

static void other_stack(void) {
    getcontext(&away);
    away.uc_stack.ss_sp = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    away.uc_stack.ss_size = 1 << 16;
    away.uc_link = &home;
    makecontext(&away, on_other_stack, 0);
    swapcontext(&home, &away);
    munmap(away.uc_stack.ss_sp, 1 << 16);
    tree();
}

// ---- code that is made while it runs ----

FAR void call_back(void) {
    ENTER(CALL_BACK);
    TAKE(123456);
    leaf(10);
    LEAVE();
    STAY();
}

/// It has a frame pointer; it has none, and the register is 0; or it has an address where nothing is; or one behind
/// which lies an address of code, to which nothing returns.
static void made_code(const char *how) {
    static const unsigned char chain[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}; // push, mov, call, pop, ret
    static const unsigned char none[] = {0x55, 0x31, 0xed, 0xff, 0xd7, 0x5d, 0xc3};        // push, xor, call, pop, ret
    static const unsigned char wild[] = {0x55, 0x48, 0xbd, 0xf8, 0xef, 0xff, 0xff, 0xff,   // push, mov 7fffffffeff8,
                                         0x7f, 0,    0,    0xff, 0xd7, 0x5d, 0xc3};        // call, pop, ret
    static const unsigned char astray[] = {
        0x55, 0x48, 0x8d, 0x47, 0x04, 0x50, 0x6a, 0x00, 0x48, 0x89, // push, lea, push, push
        0xe5, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};      // mov, call, add, pop, ret
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, none, sizeof none);
    if (strcmp(how, "made") == 0) memcpy(code, chain, sizeof chain);
    if (strcmp(how, "wild") == 0) memcpy(code, wild, sizeof wild);
    if (strcmp(how, "astray") == 0) memcpy(code, astray, sizeof astray);
    void (*run)(void (*)(void));
    memcpy(&run, &code, sizeof run);
    run(call_back);
    STAY();
}

// ---- libraries that come and go ----

/// Each in the place of the one before, if the loader does so.
static void libraries(int n, char **paths) {
    uintptr_t last = 0;
    int n_same = 0;
    for (int i = 0; i < n; i++) {
        void *library = dlopen(paths[i], RTLD_NOW);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            _exit(9);
        }
        void *at = dlsym(library, "grab");
        void (*grab)(size_t);
        memcpy(&grab, &at, sizeof grab);
        grab(1000 * ((size_t)i % 2 + 1));
        n_same += (uintptr_t)at == last;
        last = (uintptr_t)at;
        dlclose(library);
    }
    printf("same %d 0\n", n_same);
}

static atomic_int is_over;

static void *come_and_go(void *path) {
    while (!is_over) {
        void *library = dlopen(path, RTLD_NOW);
        if (library == NULL) _exit(9);
        dlclose(library);
    }
    return NULL;
}

static void beside_loading(char *path) {
    pthread_t t;
    if (pthread_create(&t, NULL, come_and_go, path) != 0) _exit(9);
    for (int i = 0; i < 100; i++) threads(4);
    is_over = 1;
    pthread_join(t, NULL);
}

/// A block that is freed at once, and others that are not: what is told are those that are.
FAR void at_once(size_t n) {
    ENTER(AT_ONCE);
    void *first = malloc(n + 1), *second = malloc(n + 2);
    __asm__ volatile("" : : "r"(first), "r"(second) : "memory");
    free(first); // another block came between
    calls_take(n);
    void *block = malloc(n);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
    free(second);
    LEAVE();
}

static void *all_at_once(void *unused) {
    for (size_t i = 1; i <= 500; i++) at_once(i);
    return unused;
}

static void temporary(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, all_at_once, NULL) != 0) _exit(9);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

static void child(void) {
    tree();
    const pid_t pid = fork();
    if (pid == 0) {
        memset(own, 0, sizeof own); // what it tells is its own
        memset(with, 0, sizeof with);
        twice(2);
        with_near(9);
        return;
    }
    waitpid(pid, NULL, 0);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "tree") == 0) tree();
    if (strcmp(what, "signals") == 0) signals();
    if (strcmp(what, "threads") == 0) threads(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 4);
    if (strcmp(what, "other") == 0) other_stack();
    if (strcmp(what, "made") == 0 || strcmp(what, "broken") == 0) made_code(what);
    if (strcmp(what, "wild") == 0 || strcmp(what, "astray") == 0) made_code(what);
    if (strcmp(what, "deep") == 0) down(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100);
    if (strcmp(what, "libraries") == 0) libraries(argc - 2, argv + 2);
    if (strcmp(what, "loading") == 0) beside_loading(argv[2]);
    if (strcmp(what, "temporary") == 0) temporary();
    if (strcmp(what, "fork") == 0) child();
    for (int i = 0; i < N; i++)
        if (with[i] > 0) printf("%s %lu %lu\n", names[i], own[i], with[i]);
    fflush(stdout);
    if (strcmp(what, "fork") == 0) _exit(0);
    return 0;
}
