// SPDX-License-Identifier: MIT
//
// arena: the memory of the library itself. What it allocates must not come from the malloc that it watches: the program
// may be inside of that (a signal handler, fork), and blocks of ours among its own would change what it does.
//
// One range of addresses, of which only what is used costs memory. Sizes are powers of two; a free block goes on the
// list of its size and is used again:
//
//     | 16 bytes: size class, begin | block ... | 16 bytes | block ...        begin: of all that belongs to the block
//
// Seldom used (a feed is opened or grows), so one lock is enough; signals are held back meanwhile, for a handler that
// allocates would wait for its own thread.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"

enum { MIN_CLASS = 5, MAX_CLASS = 26, HEAD_BYTES = 16, SMALL_ROOM = 1 << 18 };

typedef struct head {
    uint64_t begin; ///< address of the room
    uint64_t size_class;
} head;
_Static_assert(sizeof(head) == HEAD_BYTES, "blocks stay at multiples of 16");

typedef struct room {
    struct room *next;
} room;

// None yet, and no block is its own: the heap of a program that is not position independent begins at some megabytes.
uintptr_t preload_arena_begin = (uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1);
static struct {
    atomic_flag lock;
    uintptr_t next, end;
    room *free_rooms[MAX_CLASS + 1];
    sigset_t held; // mask of the thread that has the lock
} arena = {.lock = ATOMIC_FLAG_INIT};
static _Alignas(64) char small_room[SMALL_ROOM]; // where the system gives no range

static void lock(void) {
    sigset_t all, before;
    if (!preload_self.holds_signals) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    while (atomic_flag_test_and_set_explicit(&arena.lock, memory_order_acquire)) sched_yield();
    if (!preload_self.holds_signals) arena.held = before;
}

static void unlock(void) {
    const sigset_t before = arena.held;
    atomic_flag_clear_explicit(&arena.lock, memory_order_release);
    if (!preload_self.holds_signals) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/// The system's call, for the function may be ours.
static void *map(size_t bytes) {
    const long at =
        syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    return at == -1 ? NULL : (void *)at; // NOLINT(performance-no-int-to-ptr)
}

/// With the lock. A limit on address space (ulimit -v) leaves the small room.
static void begin(void) {
    const char *base = map(PRELOAD_ARENA_BYTES);
    const size_t bytes = base != NULL ? PRELOAD_ARENA_BYTES : SMALL_ROOM;
    if (base == NULL) base = small_room;
    arena.next = (uintptr_t)base;
    arena.end = arena.next + bytes;
    preload_arena_begin = arena.next;
}

/// With the lock: 2^size_class bytes; NULL: none left.
static room *take_room(unsigned size_class) {
    room *r = arena.free_rooms[size_class];
    if (r != NULL) {
        arena.free_rooms[size_class] = r->next;
        return r;
    }
    if (arena.end == 0) begin();
    const size_t bytes = (size_t)1 << size_class;
    if (arena.end - arena.next < bytes) return NULL;
    r = (room *)arena.next; // NOLINT(performance-no-int-to-ptr)
    arena.next += bytes;
    return r;
}

void *preload_own_alloc(size_t bytes, size_t align) {
    if (align < HEAD_BYTES) align = HEAD_BYTES;
    const size_t most = (size_t)1 << MAX_CLASS, lost = align == HEAD_BYTES ? HEAD_BYTES : HEAD_BYTES + align;
    if (align >= most || bytes > most - lost) return NULL;
    unsigned size_class = MIN_CLASS;
    while ((size_t)1 << size_class < bytes + lost) size_class++;
    lock();
    room *r = take_room(size_class);
    unlock();
    if (r == NULL) return NULL;
    const uintptr_t block = ((uintptr_t)r + HEAD_BYTES + align - 1) & ~(align - 1);
    head *h = (head *)(block - HEAD_BYTES); // NOLINT(performance-no-int-to-ptr)
    *h = (head){.begin = (uintptr_t)r, .size_class = size_class};
    return h + 1;
}

static const head *head_of(const void *block) { return (const head *)block - 1; }

size_t preload_own_size(const void *block) {
    const head *h = head_of(block);
    return h->begin + ((size_t)1 << h->size_class) - (uintptr_t)block;
}

void preload_own_free(void *block) {
    if (block == NULL) return;
    const head h = *head_of(block);
    room *r = (room *)h.begin; // NOLINT(performance-no-int-to-ptr)
    lock();
    r->next = arena.free_rooms[h.size_class];
    arena.free_rooms[h.size_class] = r;
    unlock();
}

void *preload_own_realloc(void *block, size_t bytes) {
    if (block == NULL) return preload_own_alloc(bytes, 0);
    const size_t old = preload_own_size(block);
    if (bytes <= old) return block;
    void *fresh = preload_own_alloc(bytes, 0);
    if (fresh == NULL) return NULL;
    memcpy(fresh, block, old);
    preload_own_free(block);
    return fresh;
}

// ---- fork ----

void preload_own_prepare(void) { (void)!pthread_atfork(lock, unlock, unlock); }

// ---- what the archives of this library call (the linker's --wrap) ----

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void __wrap_free(void *block);
size_t __wrap_malloc_usable_size(void *block);

void *__wrap_malloc(size_t bytes) { return preload_own_alloc(bytes, 0); }

void *__wrap_calloc(size_t n, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total)) return NULL;
    void *block = preload_own_alloc(total, 0);
    if (block != NULL) memset(block, 0, total);
    return block;
}

void *__wrap_realloc(void *block, size_t bytes) { return preload_own_realloc(block, bytes); }

/// What the C library gave to this one may be the real malloc's.
void __wrap_free(void *block) {
    if (block == NULL || preload_is_own(block))
        preload_own_free(block);
    else if (preload_has_real)
        preload_real.free(block);
}

size_t __wrap_malloc_usable_size(void *block) { return block != NULL ? preload_own_size(block) : 0; }
