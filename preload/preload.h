// SPDX-License-Identifier: MIT
//
// What the files of libtidemark-preload.so share: a library that the loader puts before every other one of a foreign
// program ($LD_PRELOAD, set by `tidemark record`), and that tells of each block of its memory by address.
//
//     malloc.c    the functions of malloc, as the program calls them
//     map.c       mmap, munmap, mremap, mprotect of memory without a file
//     new.c       operators new and delete of an allocator that has its own
//     real.c      the functions behind ours
//     events.c    an event into the feed; what waits: before the feed is there, and inside of ourselves
//     process.c   life of the process: begin, fork, end; whether it is recorded at all
//     exec.c      the functions of exec
//     open.c      the one way in: a feed. All that this library knows of traces
//     scopes.c    what the program is at by its own words: functions that a Python program calls (python/)
//     stacks.c    who called: a number for each call stack, and the libraries that its calls lie in
//     unwind.c, unwind_rule.c  from call to call
//     arena.c     memory of our own
//
//     program: free(p) -> malloc.c: is it ours? -> events.c: FREE p -> ring      (before the block can be another's)
//                                               -> real free
//     program: malloc(n) -> real malloc -> p -> events.c: ALLOC p n -> ring
//
// A free goes into the ring before the real one, an alloc after it: so of two threads that had one address, the times
// say who had it first. Which block a free ends, and how large it was, the collector finds (profiler/drain/).
//
// Nothing here takes memory of the program's, or a lock while an event is put in; errno stays as it was.
#ifndef TIDE_PRELOAD_PRELOAD_H
#define TIDE_PRELOAD_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/status.h"
#include "profiler/feed/feed.h"

#define PRELOAD_EXPORT __attribute__((visibility("default")))

// ---- events.c ----

/// What a block is called in the trace: the function that made it.
#define PRELOAD_FUNCTION_MAP(XX)                                                                                       \
    XX(MALLOC, "malloc")                                                                                               \
    XX(CALLOC, "calloc")                                                                                               \
    XX(REALLOC, "realloc")                                                                                             \
    XX(ALIGNED, "aligned_alloc")                                                                                       \
    XX(FREE, "free")                                                                                                   \
    XX(NEW, "operator new")                                                                                            \
    XX(DELETE, "operator delete")                                                                                      \
    XX(MMAP, "mmap")                                                                                                   \
    XX(MPROTECT, "mprotect")                                                                                           \
    XX(MUNMAP, "munmap")                                                                                               \
    XX(MREMAP, "mremap")                                                                                               \
    XX(TOO_MANY, "more addresses were reserved than can be kept")
typedef enum preload_function {
#define XX(name, text) PRELOAD_##name,
    PRELOAD_FUNCTION_MAP(XX)
#undef XX
} preload_function;

/// A tide_memory_op of `bytes` at `address`; how: TIDE__BY_ADDRESS_...
typedef struct preload_event {
    uint64_t address, bytes;
    uint64_t t_ns; ///< 0: now
    uint8_t op, how, function;
    uint32_t stack; ///< of one that waits: its call stack, see stacks.c; 0: none
} preload_event;

enum { PRELOAD_MAX_WAITING = 100, PRELOAD_KNOWN_PAGES = 16 };

/// Pages that the thread may read, for unwind.c.
typedef struct preload_pages {
    uint64_t known[PRELOAD_KNOWN_PAGES]; ///< number of the page, 0: none
    uint32_t n_unmapped;                 ///< as long as this is preload_n_unmapped
} preload_pages;

/// Of each thread. All zero at its begin.
typedef struct preload_thread {
    bool is_inside;     ///< an event is being put in: what a signal handler does now waits
    bool is_at_work;    ///< of the library's own: what is allocated now is ours
    bool holds_signals; ///< no handler runs in it now
    bool is_in_malloc;  ///< the real one: what it maps is not the program's
    bool has_dropped;   ///< more came meanwhile than can wait
    uint8_t n_waiting;
    const void *told;     ///< the last block that was told as allocated
    const void *deleting; ///< told as freed; an operator delete may call free
    preload_event waiting[PRELOAD_MAX_WAITING];
    preload_pages pages;
} preload_thread;
extern _Thread_local preload_thread preload_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// Put it in, or have it wait. Any thread, also in a signal handler. Keeps errno.
void preload_put(const preload_event *e);

/// The thread enters or leaves a scope; a named moment; a fact (profiler/feed/registration.h). Not before there is a
/// feed, and not in a signal handler. Keep errno.
void preload_put_scope(const tide_scope *scope, bool enter);
void preload_put_mark(const char *name);
void preload_put_fact(const void *bytes, size_t n);

/// What waits before there is a feed. With preload_lock_early held:
void preload_flush_early(void);
void preload_lock_early(void);
void preload_unlock_early(void);
/// Forget it. In a child of fork: its memory is the parent's.
void preload_drop_early(void);

// ---- scopes.c ----

/// Scopes of a thread that lie in each other; of more the outer ones count.
enum { PRELOAD_MAX_SCOPES = 256 };
/// Of each thread. All zero at its begin.
typedef struct preload_scopes {
    tide_scope *stack; ///< [PRELOAD_MAX_SCOPES] the outermost first; NULL: it has entered none yet
    uint32_t n;        ///< entered, more of them than lie in the stack, maybe
    uint64_t n_entered;
} preload_scopes;
extern _Thread_local preload_scopes preload_scopes_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
/// The innermost scope of the thread; NULL: it is in none.
static inline const tide_scope *preload_scope_now(void) {
    const preload_scopes *s = &preload_scopes_self;
    if (__builtin_expect(s->n == 0, 1)) return NULL;
    return &s->stack[(s->n < PRELOAD_MAX_SCOPES ? s->n : PRELOAD_MAX_SCOPES) - 1];
}
/// In a child of fork: its thread begins outside all scopes.
void preload_scopes_forget(void);

// ---- process.c ----

typedef enum preload_state {
    PRELOAD_FORKED = 0, ///< as the system has it in a child that no fork(3) made: it is not recorded
    PRELOAD_EARLY,      ///< events wait for the feed
    PRELOAD_CHILD,      ///< the same, of a child of fork: the first event opens one
    PRELOAD_ON,
    PRELOAD_OFF,
} preload_state;
/// In a page that a forked child finds empty.
extern _Atomic uint32_t *preload_state_at __attribute__((visibility("hidden")));
static inline preload_state preload_get_state(void) {
    return (preload_state)atomic_load_explicit(preload_state_at, memory_order_acquire);
}
/// In state PRELOAD_ON only.
extern tide__feed *preload_feed __attribute__((visibility("hidden")));
/// The first event of a forked child.
void preload_begin_child(void);
/// The process ends now, as it wished to.
void preload_mark_end(void);
/// Another program takes the place of this one (exec); false: it did not come to that.
void preload_mark_replaced(bool is_replaced);

// ---- open.c ----

/// A feed for this process. `is_late`: it has memory that is told nowhere (a child of fork). `off`, not NULL: only tell
/// the collector why the process is not recorded; *out is NULL then. TIDE_ERR_NOT_FOUND: no collector.
tide_status preload_open(bool is_late, const char *off, tide__feed **out, tide_error *err) TIDE_NODISCARD;

// ---- malloc.c ----

/// Where this library's own malloc is.
void *(*preload_malloc_address(void))(size_t bytes);
/// Its free. In other files of this library the name means the arena's.
void preload_program_free(void *block);

/// A descriptor whose lock says that a child of fork may make a feed yet, as long as any process has it open; -1: there
/// is none to be had.
int preload_claim(const tide__feed *feed);
/// Whether it is that still: a program may close what it did not open.
bool preload_holds_claim(const tide__feed *feed, int fd);

// ---- real.c ----

typedef struct preload_real_functions {
    void *(*malloc)(size_t bytes);
    void *(*calloc)(size_t n, size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void (*free)(void *block);
    int (*posix_memalign)(void **out, size_t align, size_t bytes);
    void *(*aligned_alloc)(size_t align, size_t bytes);
    void *(*memalign)(size_t align, size_t bytes);
    void *(*valloc)(size_t bytes);
    void *(*pvalloc)(size_t bytes);
    size_t (*malloc_usable_size)(void *block);
    void *(*mmap)(void *address, size_t bytes, int access, int flags, int fd, off_t at);
    int (*munmap)(void *address, size_t bytes);
    int (*mprotect)(void *address, size_t bytes, int access);
    void *(*mremap)(void *address, size_t bytes, size_t new_bytes, int flags, ...);
    int (*execve)(const char *path, char *const argv[], char *const envp[]);
    int (*execv)(const char *path, char *const argv[]);
    int (*execvp)(const char *file, char *const argv[]);
    int (*execvpe)(const char *file, char *const argv[], char *const envp[]);
    int (*fexecve)(int fd, char *const argv[], char *const envp[]);
    int (*execveat)(int fd, const char *path, char *const argv[], char *const envp[], int flags);
} preload_real_functions;
extern preload_real_functions preload_real __attribute__((visibility("hidden")));
extern bool preload_has_real __attribute__((visibility("hidden")));
/// Find them; false while they are being found: what is asked for now is of the finding itself.
bool preload_find_real(void);
/// The function of that name behind ours; NULL: there is none.
void *preload_find(const char *name);
/// The function of that name in any library that is loaded, in whatever scope, but this one; the first that was loaded
/// counts. *stays: it lies in the library whose file is called so, which is never unloaded. NULL: there is none. It
/// changes nothing of the loader's: dlopen of what is being opened would run constructors before their turn.
void *preload_find_loaded(const char *name, const char *staying, bool *stays);

// ---- map.c ----

/// How often the program took pages away, or the access to them.
extern _Atomic uint32_t preload_n_unmapped __attribute__((visibility("hidden")));

// ---- arena.c ----

/// Room for this library's own blocks, and for those that the C library asks for on its behalf.
extern uintptr_t preload_arena_begin __attribute__((visibility("hidden")));
enum { PRELOAD_ARENA_BYTES = 128 << 20 };
/// Whether a block is one of the arena's. One comparison: every free asks.
static inline bool preload_is_own(const void *block) {
    return (uintptr_t)block - preload_arena_begin < PRELOAD_ARENA_BYTES;
}
/// As malloc, at a multiple of `align` (a power of two; at least 16 is given). NULL: no room.
void *preload_own_alloc(size_t bytes, size_t align);
size_t preload_own_size(const void *block);
void preload_own_free(void *block);
void *preload_own_realloc(void *block, size_t bytes);
/// Have forks wait until no thread is inside. Before any other part asks to be told of forks.
void preload_own_prepare(void);

#endif
