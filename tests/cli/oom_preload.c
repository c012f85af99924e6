// SPDX-License-Identifier: MIT
//
// A malloc that runs out, to be preloaded into the program under test: the TIDE_OOM_AT-th allocation fails (counted
// from 1, from the start of main on), with TIDE_OOM_FROM=1 all from that one on. With TIDE_OOM_COUNT=FILE nothing
// fails, and the number of allocations is appended to FILE, a line for each process.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_long n_calls, fail_at;
static atomic_bool started;
static bool fail_all;
static const char *count_file;

static bool fails(void) {
    if (!atomic_load_explicit(&started, memory_order_relaxed)) return false;
    const long i = atomic_fetch_add(&n_calls, 1) + 1;
    const long at = atomic_load(&fail_at);
    if (at == 0 || (fail_all ? i < at : i != at)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
void *memalign(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }
void *aligned_alloc(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }

int posix_memalign(void **out, size_t align, size_t n) {
    if (fails()) return ENOMEM;
    void *p = __libc_memalign(align, n);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    // A file that is mapped is no memory asked for.
    return fd < 0 && fails() ? MAP_FAILED : real(at, n, prot, flags, fd, offset);
}

static void write_count(void) {
    const int fd = open(count_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char line[32];
    const int len = snprintf(line, sizeof line, "%ld\n", atomic_load(&n_calls));
    if (fd < 0 || write(fd, line, (size_t)len) != len) _exit(99);
    close(fd);
}

static int (*real_main)(int, char **, char **);

static int our_main(int argc, char **argv, char **envp) {
    const char *at = getenv("TIDE_OOM_AT");
    fail_all = getenv("TIDE_OOM_FROM") != NULL;
    count_file = getenv("TIDE_OOM_COUNT");
    atomic_store(&fail_at, at != NULL ? strtol(at, NULL, 10) : 0);
    atomic_store(&started, true);
    if (count_file != NULL && atexit(write_count) != 0) return 99;
    return real_main(argc, argv, envp);
}

int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = start;
    return real(our_main, argc, argv, init, fini, rtld_fini, stack_end);
}
