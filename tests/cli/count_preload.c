// SPDX-License-Identifier: MIT
//
// Preloaded by warm_runs.py and caller_memory.py: counts every call for memory that reaches the C library, from
// whatever library of the process, and prints the counts when the process ends: malloc, calloc, realloc, the aligned
// ones, mmap; and the largest number of bytes that one of them asked for, mappings of files aside.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes);

static atomic_ulong n_malloc, n_calloc, n_realloc, n_aligned, n_mmap, largest;

static void note(size_t bytes) {
    unsigned long seen = largest;
    while (bytes > seen && !atomic_compare_exchange_weak(&largest, &seen, bytes)) {
    }
}

void *malloc(size_t bytes) {
    n_malloc++;
    note(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    n_calloc++;
    note(n * bytes);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes) {
    n_realloc++;
    note(bytes);
    return __libc_realloc(p, bytes);
}

void *memalign(size_t align, size_t bytes) {
    n_aligned++;
    note(bytes);
    return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) {
    n_aligned++;
    note(bytes);
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes) {
    n_aligned++;
    note(bytes);
    void *const p = __libc_memalign(align, bytes);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    void *(*next)(void *, size_t, int, int, int, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    n_mmap++;
    if ((flags & MAP_ANONYMOUS) != 0) note(bytes);
    return next(at, bytes, protection, flags, fd, offset);
}

static __attribute__((destructor)) void print_counts(void) {
    char text[200];
    const int n =
        snprintf(text, sizeof text, "\ncounted malloc %lu calloc %lu realloc %lu aligned %lu mmap %lu largest %lu\n",
                 n_malloc, n_calloc, n_realloc, n_aligned, n_mmap, largest);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0) _exit(1);
}
