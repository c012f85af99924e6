// SPDX-License-Identifier: MIT
//
// shadow: counts the malloc of a program by itself, to hold a trace against. It is loaded beside the library that is
// tested ($LD_PRELOAD, behind it), so it is what that one's real functions are: the calls that it sees are those that
// the program makes and those of the loader's own, told apart by nothing.
//
// At the end of each process a line is added to the file that $SHADOW_FILE names:
//
//     pid allocs frees requested freed peak
//
// With $SHADOW_LOG each change is a record of that file too, in the order in which they happened in all processes: how
// many bytes come or go, the process, and what it is (below). Ends of processes are there as well: what a process says
// at its end or before exec, and what its parent hears of it.
//
// A small block that is freed is the next one that is given out, to whatever thread asks: the C library keeps it for
// the thread that freed it, where no order of two threads could ever be wrong.
//
// Sizes are kept in front of each block, so this is no table by address; a block that is aligned is found by a mark.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MARK UINT64_C(0x73686164006f7721)

EXPORT void *memalign(size_t align, size_t bytes);
EXPORT void *pvalloc(size_t bytes);

/// In front of each block; `base` is what the C library gave.
typedef struct head {
    uint64_t mark, bytes, generation;
    void *base;
    uint64_t is_plain, zero;
} head;

extern void *__libc_malloc(size_t bytes);
extern void __libc_free(void *block);

static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct { uint64_t allocs, frees, requested, freed, live, peak, strange; } counts;
static uint64_t generation = 1; // of the process: a child of fork counts its own blocks
static __thread int is_quiet;   // the counting itself

static void begin(void) {
    while (atomic_flag_test_and_set(&lock)) continue;
}
static void end(void) { atomic_flag_clear(&lock); }

// ---- the log ----

enum { CHANGES, ENDS, WAS_WAITED_FOR, EXECS, EXEC_FAILED };
typedef struct record {
    int64_t bytes;
    int32_t pid, what;
} record;

/// Whose memory it is: a child of vfork has ours. 0: not known yet.
static pid_t owner;
static pid_t self(void) { return owner != 0 ? owner : getpid(); }

static void note(int what, long pid, int64_t bytes) {
    static int fd = -1, is_tried;
    if (!is_tried) {
        const char *path = getenv("SHADOW_LOG");
        is_tried = 1;
        if (path != NULL) fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    if (fd < 0) return;
    const int saved = errno;
    const record r = {bytes, (int32_t)pid, what};
    if (write(fd, &r, sizeof r) != sizeof r) abort();
    errno = saved;
}

// ---- small blocks that were freed ----

enum { CLASS_BYTES = 32, N_CLASSES = 16, N_KEPT = 64 };
static struct {
    void *bases[N_KEPT];
    int n;
} freed[N_CLASSES];

/// Room for a block of that many bytes at no particular place.
static size_t room_for(size_t bytes) { return (bytes + CLASS_BYTES) / CLASS_BYTES * CLASS_BYTES + 2 * sizeof(head); }

/// NULL: there is none.
static void *take_freed(size_t bytes) {
    const size_t c = bytes / CLASS_BYTES;
    if (c >= N_CLASSES) return NULL;
    begin();
    void *base = freed[c].n > 0 ? freed[c].bases[--freed[c].n] : NULL;
    end();
    return base;
}

/// False: the C library has it back.
static int keep_freed(void *base, size_t bytes) {
    const size_t c = bytes / CLASS_BYTES;
    if (c >= N_CLASSES) return 0;
    begin();
    const int has_room = freed[c].n < N_KEPT;
    if (has_room) freed[c].bases[freed[c].n++] = base;
    end();
    return has_room;
}

static void *give(size_t align, size_t bytes) {
    if (bytes > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    const int is_plain = align <= sizeof(head);
    if (is_plain) align = sizeof(head);
    char *base = is_plain ? take_freed(bytes) : NULL;
    if (base == NULL) base = __libc_malloc(is_plain ? room_for(bytes) : bytes + align + sizeof(head));
    if (base == NULL) return NULL;
    char *block = (char *)(((uintptr_t)base + sizeof(head) + align - 1) / align * align);
    head *h = (head *)(void *)(block - sizeof(head));
    begin();
    *h = (head){MARK, bytes, generation, base, (uint64_t)is_plain, 0};
    counts.allocs++;
    counts.requested += bytes;
    counts.live += bytes;
    if (counts.live > counts.peak) counts.peak = counts.live;
    note(CHANGES, self(), (int64_t)bytes);
    end();
    return block;
}

static void take(void *block) {
    head *h = (head *)block - 1;
    if (h->mark != MARK) {
        counts.strange++;
        return;
    }
    h->mark = 0;
    begin();
    if (h->generation == generation) {
        counts.frees++;
        counts.freed += h->bytes;
        counts.live -= h->bytes;
        note(CHANGES, self(), -(int64_t)h->bytes);
    }
    end();
    if (!h->is_plain || !keep_freed(h->base, h->bytes)) __libc_free(h->base);
}

EXPORT void *malloc(size_t bytes) { return give(0, bytes); }
EXPORT void *calloc(size_t n, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total)) total = SIZE_MAX;
    void *block = give(0, total);
    if (block != NULL) {
        volatile char *at = block;
        for (size_t i = 0; i < total; i++) at[i] = 0;
    }
    return block;
}
EXPORT void free(void *block) {
    if (block != NULL) take(block);
}
EXPORT void *realloc(void *block, size_t bytes) {
    if (block == NULL) return give(0, bytes);
    if (bytes == 0) {
        take(block);
        return NULL;
    }
    const head *h = (const head *)block - 1;
    // As the C library does it: the old one is gone when the new one is counted.
    if (bytes > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    begin();
    const int is_ours = h->generation == generation;
    const uint64_t old = h->bytes;
    if (is_ours) {
        counts.frees++;
        counts.freed += old;
        counts.live -= old;
        note(CHANGES, self(), -(int64_t)old);
    }
    end();
    void *fresh = give(0, bytes);
    if (fresh == NULL) { // it stays, as a new one
        begin();
        if (is_ours) {
            counts.allocs++;
            counts.requested += old;
            counts.live += old;
            note(CHANGES, self(), (int64_t)old);
        }
        end();
        return NULL;
    }
    memcpy(fresh, block, old < bytes ? old : bytes);
    ((head *)block - 1)->mark = 0;
    __libc_free(h->base);
    return fresh;
}
EXPORT int posix_memalign(void **out, size_t align, size_t bytes) {
    if (align % sizeof(void *) != 0 || (align & (align - 1)) != 0) return EINVAL;
    *out = give(align, bytes);
    return *out != NULL ? 0 : ENOMEM;
}
EXPORT void *aligned_alloc(size_t align, size_t bytes) { return give(align, bytes); }
EXPORT void *memalign(size_t align, size_t bytes) { return give(align, bytes); }
EXPORT void *valloc(size_t bytes) { return give(4096, bytes); }
EXPORT void *pvalloc(size_t bytes) { return give(4096, bytes); }
EXPORT size_t malloc_usable_size(void *block) { return block != NULL ? ((const head *)block - 1)->bytes : 0; }

// ---- said ----

static void child(void) {
    memset(&counts, 0, sizeof counts);
    generation++;
    memset(freed, 0, sizeof freed);
    owner = getpid();
    atomic_flag_clear(&lock);
}

__attribute__((constructor)) static void at_begin(void) {
    owner = getpid();
    pthread_atfork(begin, end, child);
}

static void say(void) {
    const char *path = getenv("SHADOW_FILE");
    char line[256];
    if (path == NULL || is_quiet++) return;
    const int n = snprintf(line, sizeof line, "%ld %lu %lu %lu %lu %lu %lu\n", (long)getpid(), counts.allocs,
                           counts.frees, counts.requested, counts.freed, counts.peak, counts.strange);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, line, (size_t)n) == n) close(fd);
}

__attribute__((destructor)) static void at_end(void) {
    say();
    note(ENDS, getpid(), 0);
}

// ---- ends of processes ----

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

#define REPLACE(name, ...)                                                                                             \
    __typeof__(name) *real;                                                                                            \
    void *address = next(#name);                                                                                       \
    memcpy(&real, &address, sizeof real);                                                                              \
    const int is_ours = getpid() == owner;                                                                             \
    if (is_ours) note(EXECS, owner, 0);                                                                                \
    const int result = real(__VA_ARGS__);                                                                              \
    if (is_ours) note(EXEC_FAILED, owner, 0);                                                                          \
    return result

EXPORT int execve(const char *path, char *const argv[], char *const envp[]) { REPLACE(execve, path, argv, envp); }
EXPORT int execv(const char *path, char *const argv[]) { REPLACE(execv, path, argv); }
EXPORT int execvp(const char *file, char *const argv[]) { REPLACE(execvp, file, argv); }

static pid_t heard(pid_t pid, const int *how) {
    if (pid > 0 && (how == NULL || WIFEXITED(*how) || WIFSIGNALED(*how))) note(WAS_WAITED_FOR, pid, 0);
    return pid;
}

EXPORT pid_t waitpid(pid_t pid, int *how, int options) {
    pid_t (*real)(pid_t, int *, int);
    void *address = next("waitpid");
    memcpy(&real, &address, sizeof real);
    return heard(real(pid, how, options), how);
}
EXPORT pid_t wait3(int *how, int options, struct rusage *usage) {
    pid_t (*real)(int *, int, struct rusage *);
    void *address = next("wait3");
    memcpy(&real, &address, sizeof real);
    return heard(real(how, options, usage), how);
}
EXPORT pid_t wait4(pid_t pid, int *how, int options, struct rusage *usage) {
    pid_t (*real)(pid_t, int *, int, struct rusage *);
    void *address = next("wait4");
    memcpy(&real, &address, sizeof real);
    return heard(real(pid, how, options, usage), how);
}
