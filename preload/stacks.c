// SPDX-License-Identifier: MIT
//
// Numbers of call stacks. See stacks.h.
//
// A library that is loaded where another one was has other functions at the same addresses. So a stack is known by its
// calls and by a generation, which is another one as soon as a library that was seen is gone. The loader itself tells
// when to look: it takes and gives back memory for what it loads.
#include "preload/stacks.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/feed/feed_frames.h"

enum { TABLE_BITS = 20, N_PROBES = 8, MAX_MODULES = 4096, MAX_BUILD_ID = 64, EARLY_BYTES = 4 << 20 };

// ---- whether ----

enum { NOT_KNOWN = -1 };
_Atomic int preload_stack_depth = NOT_KNOWN;

/// Two words that are believed only together: of the hash, the number, and more of the hash.
typedef struct entry {
    _Atomic uint64_t first; ///< hash ^ second
    _Atomic uint64_t second;
} entry;
static entry *table; ///< [1 << TABLE_BITS], of which only what is used costs memory

static void *map(size_t bytes) {
    const long at =
        syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    return at == -1 ? NULL : (void *)at; // NOLINT(performance-no-int-to-ptr)
}

/// The environment is there a little later than the first events.
int preload_find_stack_depth(void) {
    static atomic_flag is_found = ATOMIC_FLAG_INIT;
    if (environ == NULL || atomic_flag_test_and_set(&is_found)) return 0;
    const int saved = errno;
    const char *text = getenv(TIDE_STACKS_ENV);
    long n = text != NULL ? strtol(text, NULL, 10) : 0;
    if (n < 0 || n > TIDE_MAX_STACK_DEPTH) n = 0;
    if (n > 0) {
        preload_unwind_begin();
        table = map(sizeof(entry) << TABLE_BITS); // without it no stack has room, which is counted
    }
    atomic_store_explicit(&preload_stack_depth, (int)n, memory_order_release);
    errno = saved;
    return (int)n;
}

// ---- what there was no room for ----

static _Atomic uint64_t n_lost_early;

static void count_lost(void) {
    if (preload_get_state() == PRELOAD_ON)
        atomic_fetch_add_explicit(&tide__feed_head(preload_feed)->n_stacks_lost, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&n_lost_early, 1, memory_order_relaxed);
}

static void count_cut(const preload_stack *s) {
    if (__builtin_expect(s->is_cut, 0))
        atomic_fetch_add_explicit(&tide__feed_head(preload_feed)->n_stacks_cut, 1, memory_order_relaxed);
}

// ---- libraries ----

typedef struct known {
    preload_module module;
    uint64_t build_hash;
    uint32_t number; ///< in the log
} known;

static struct {
    atomic_flag lock; ///< for all below, and adding to the table
    sigset_t held;    ///< mask of the thread that has it
    known known[MAX_MODULES];
    size_t n;
    _Atomic uint32_t generation;
    _Atomic bool may_differ; ///< the loader was at work since they were looked at
} modules = {.lock = ATOMIC_FLAG_INIT};

/// Signals are held back meanwhile: a handler that leaves by a jump would leave it taken.
static void lock(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (atomic_flag_test_and_set_explicit(&modules.lock, memory_order_acquire)) sched_yield();
    modules.held = before;
}

static void unlock(void) {
    const sigset_t before = modules.held;
    atomic_flag_clear_explicit(&modules.lock, memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

typedef struct build_id {
    size_t n;
    uint8_t bytes[MAX_BUILD_ID];
} build_id;

/// Among the notes at [at, end).
static void find_build_id(const uint8_t *at, const uint8_t *end, build_id *out) {
    static const char owner[4] = "GNU";
    while ((size_t)(end - at) > sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        at += sizeof note;
        if (name > (size_t)(end - at) || bytes > (size_t)(end - at) - name) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof owner && memcmp(at, owner, sizeof owner) == 0 &&
            note.n_descsz <= MAX_BUILD_ID) {
            out->n = note.n_descsz;
            memcpy(out->bytes, at + name, out->n);
            return;
        }
        at += name + bytes;
    }
}

static bool has_header(uint64_t at) {
    return at != 0 && preload_can_read(at) && memcmp((const void *)at, ELFMAG, SELFMAG) == 0; // NOLINT
}

/// Where the file's own header is mapped; 0: it is not found. Of a file with holes the module may be one part of it.
static uint64_t header_of(const preload_module *m) {
    enum { HEADER = sizeof(ElfW(Ehdr)) };
    if (has_header(m->begin)) return m->begin;
    if (m->name[0] != '\0') return has_header(m->bias) ? m->bias : 0;
    const uint64_t headers = getauxval(AT_PHDR); // of the program, behind its header
    return headers > HEADER && has_header(headers - HEADER) ? headers - HEADER : 0;
}

static bool can_read_all(uint64_t begin, uint64_t bytes) {
    enum { PAGE = 4096, MOST = 16 * PAGE };
    if (bytes == 0 || bytes > MOST) return false;
    for (uint64_t at = begin; at < begin + bytes; at += PAGE)
        if (!preload_can_read(at)) return false;
    return preload_can_read(begin + bytes - 1);
}

/// By what the loader has mapped, not by the file, which may be another one by now. None: n is 0.
static void build_id_of(const preload_module *m, build_id *out) {
    out->n = 0;
    const uint64_t at = header_of(m);
    ElfW(Ehdr) head;
    if (at == 0 || !can_read_all(at, sizeof head)) return;
    memcpy(&head, (const void *)at, sizeof head); // NOLINT(performance-no-int-to-ptr)
    if (head.e_phentsize != sizeof(ElfW(Phdr)) ||
        !can_read_all(at + head.e_phoff, (uint64_t)head.e_phnum * sizeof(ElfW(Phdr))))
        return;
    for (size_t i = 0; i < head.e_phnum && out->n == 0; i++) {
        ElfW(Phdr) part;
        memcpy(&part, (const void *)(at + head.e_phoff + i * sizeof part), sizeof part); // NOLINT
        const uint64_t begin = m->bias + part.p_vaddr;
        if (part.p_type != PT_NOTE || !can_read_all(begin, part.p_filesz)) continue;
        find_build_id((const uint8_t *)begin, (const uint8_t *)(begin + part.p_filesz), out); // NOLINT
    }
}

static uint64_t hash_of(const build_id *id) {
    uint64_t h = id->n;
    for (size_t i = 0; i < id->n; i++) h = (h ^ id->bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

/// Its path, from the root.
static void path_of(const preload_module *m, char *path, size_t bytes) {
    ssize_t n = 0;
    if (m->name[0] == '\0') {
        n = readlink("/proc/self/exe", path, bytes - 1);
    } else if (m->name[0] != '/' && strchr(m->name, '/') != NULL && getcwd(path, bytes) != NULL) {
        n = (ssize_t)strlen(path);
        if ((size_t)n + 2 < bytes) path[n++] = '/';
    }
    if (n < 0) n = 0;
    path[n] = '\0';
    const size_t more = strlen(m->name), room = bytes - (size_t)n - 1;
    memcpy(path + n, m->name, more < room ? more : room);
    path[(size_t)n + (more < room ? more : room)] = '\0';
}

/// "c4f1... /usr/bin/sort", or "- PATH" where it has no build id. 0: refused.
static uint32_t log_module(const preload_module *m, const build_id *id) {
    enum { ROOM = 4096 };
    static char text[2 * MAX_BUILD_ID + 2 + ROOM]; // with the lock
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; i < id->n; i++) {
        text[n++] = digits[id->bytes[i] >> 4];
        text[n++] = digits[id->bytes[i] & 15];
    }
    if (n == 0) text[n++] = '-';
    text[n++] = ' ';
    path_of(m, text + n, ROOM);
    return tide__feed_module(preload_feed, text);
}

/// With the lock. *address: as the file has it. 0: it is in none that is known.
static uint32_t module_of(uint64_t call, uint64_t *address) {
    for (size_t i = 0; i < modules.n; i++) {
        const known *k = &modules.known[i];
        if (call < k->module.begin || call >= k->module.end) continue;
        *address = call - k->module.bias;
        return k->number;
    }
    known k = {0};
    build_id id;
    if (modules.n == MAX_MODULES || !preload_module_of(call, &k.module)) return 0;
    build_id_of(&k.module, &id);
    k.build_hash = hash_of(&id);
    k.number = log_module(&k.module, &id);
    if (k.number == 0) return 0;
    modules.known[modules.n++] = k;
    *address = call - k.module.bias;
    return k.number;
}

static bool is_there_still(const known *k) {
    preload_module now;
    build_id id;
    if (!preload_module_of(k->module.begin, &now) || now.begin != k->module.begin || now.end != k->module.end ||
        now.map != k->module.map || now.bias != k->module.bias)
        return false;
    build_id_of(&now, &id);
    return hash_of(&id) == k->build_hash;
}

/// Forget libraries that are gone, and with them all stacks.
static void look_at_modules(void) {
    lock();
    atomic_store_explicit(&modules.may_differ, false, memory_order_seq_cst);
    bool any = false;
    for (size_t i = 0; i < modules.n; i++) {
        if (is_there_still(&modules.known[i])) continue;
        modules.known[i--] = modules.known[--modules.n];
        any = true;
    }
    if (any) {
        atomic_fetch_add_explicit(&modules.generation, 1, memory_order_relaxed);
        preload_unwind_forget();
    }
    unlock();
}

static inline void see_caller(uint64_t caller) {
    if (__builtin_expect(preload_is_loader(caller), 0))
        atomic_store_explicit(&modules.may_differ, true, memory_order_seq_cst);
}

void preload_stack_see_free(void) { see_caller(preload_unwind_caller()); }

void preload_stack_forget(void) {
    atomic_flag_clear(&modules.lock); // another thread may have had it, which is not here
    modules.n = 0;
    atomic_fetch_add_explicit(&modules.generation, 1, memory_order_relaxed);
    atomic_store_explicit(&n_lost_early, 0, memory_order_relaxed);
}

// ---- stacks ----

void preload_stack_take(bool is_inside, preload_stack *out) {
    if (__builtin_expect(atomic_load_explicit(&modules.may_differ, memory_order_relaxed), 0) && !is_inside)
        look_at_modules();
    const int depth = atomic_load_explicit(&preload_stack_depth, memory_order_relaxed);
    preload_unwind(depth > 0 ? (uint32_t)depth : 0, out);
    if (out->n > 0) see_caller(out->calls[0]);
}

typedef struct hash {
    uint64_t a, b;
} hash;

static inline hash hash_of_stack(const preload_stack *s) {
    const uint64_t what = (uint64_t)atomic_load_explicit(&modules.generation, memory_order_relaxed) << 32 |
                          (uint64_t)s->n << 2 | (uint64_t)s->is_deeper << 1 | s->is_cut;
    hash h = {what * UINT64_C(0x9E3779B97F4A7C15), ~what};
    for (uint32_t i = 0; i < s->n; i++) {
        h.a = (h.a ^ s->calls[i]) * UINT64_C(0x9E3779B97F4A7C15);
        h.a ^= h.a >> 32;
        h.b = (h.b << 23 | h.b >> 41) + s->calls[i] * UINT64_C(0xD6E8FEB86659FD93);
    }
    h.b ^= h.b >> 29;
    h.b *= UINT64_C(0xBF58476D1CE4E5B9);
    return h;
}

enum { NUMBER_BITS = 32 };

/// 0: it is not known.
static inline uint32_t find(hash h) {
    if (__builtin_expect(table == NULL, 0)) return 0;
    for (unsigned i = 0; i < N_PROBES; i++) {
        const entry *e = &table[(h.a + i) & (((size_t)1 << TABLE_BITS) - 1)];
        const uint64_t second = atomic_load_explicit(&e->second, memory_order_acquire);
        if (second == 0) return 0;
        if ((atomic_load_explicit(&e->first, memory_order_relaxed) ^ second) == h.a &&
            second >> NUMBER_BITS == h.b >> NUMBER_BITS)
            return (uint32_t)second;
    }
    return 0;
}

/// With the lock. False: there is no room.
static bool put(hash h, uint32_t number) {
    if (table == NULL) return false;
    const uint64_t second = h.b >> NUMBER_BITS << NUMBER_BITS | number;
    for (unsigned i = 0; i < N_PROBES; i++) {
        entry *e = &table[(h.a + i) & (((size_t)1 << TABLE_BITS) - 1)];
        if (atomic_load_explicit(&e->second, memory_order_relaxed) != 0) continue;
        atomic_store_explicit(&e->first, h.a ^ second, memory_order_relaxed);
        atomic_store_explicit(&e->second, second, memory_order_release);
        return true;
    }
    return false;
}

/// With the lock: its frames into the log, the outermost first. 0: there is no room.
static uint32_t log_frames(const preload_stack *s) {
    uint32_t number = 0;
    if (s->is_deeper || s->is_cut) {
        const uint64_t what = s->is_deeper ? TIDE__FRAME_DEEPER : TIDE__FRAME_CUT;
        number = tide__feed_frame(preload_feed, 0, 0, what);
        if (number == 0) return 0;
    }
    for (uint32_t i = s->n; i-- > 0;) {
        uint64_t address = TIDE__FRAME_UNKNOWN;
        const uint32_t module = module_of(s->calls[i], &address);
        number = tide__feed_frame(preload_feed, number, module, address);
        if (number == 0) return 0;
    }
    return number;
}

static __attribute__((noinline)) uint32_t add(const preload_stack *s, hash h) {
    const int saved = errno;
    uint32_t number = 0;
    lock();
    const uint64_t early = atomic_exchange_explicit(&n_lost_early, 0, memory_order_relaxed);
    if (early > 0)
        atomic_fetch_add_explicit(&tide__feed_head(preload_feed)->n_stacks_lost, early, memory_order_relaxed);
    number = find(h); // by another thread meanwhile
    if (number == 0 && (number = log_frames(s)) != 0 && !put(h, number)) number = 0;
    unlock();
    errno = saved;
    return number;
}

uint32_t preload_stack_number(const preload_stack *s, bool is_inside) {
    const hash h = hash_of_stack(s);
    count_cut(s);
    if (__builtin_expect(s->n == 0, 0)) return 0;
    // What the loader has changed since is looked at by who may.
    const bool may_be_old = is_inside && atomic_load_explicit(&modules.may_differ, memory_order_relaxed);
    uint32_t number = may_be_old ? 0 : find(h);
    if (__builtin_expect(number == 0, 0)) {
        if (!is_inside) number = add(s, h);
        if (number == 0) count_lost();
    }
    return number;
}

// ---- before there is a feed ----

static struct {
    char *room;
    size_t used;
} early;

uint32_t preload_stack_keep(const preload_stack *s) {
    if (early.room == NULL) early.room = map(EARLY_BYTES);
    const size_t bytes = offsetof(preload_stack, calls) + s->n * sizeof s->calls[0];
    if (early.room == NULL || early.used + sizeof *s > EARLY_BYTES) {
        count_lost();
        return 0;
    }
    const uint32_t number = (uint32_t)(early.used / sizeof(uint64_t)) + 1;
    memcpy(early.room + early.used, s, bytes);
    early.used += (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    return number;
}

const preload_stack *preload_stack_kept(uint32_t number) {
    return number != 0 ? (const preload_stack *)(early.room + (size_t)(number - 1) * sizeof(uint64_t)) : NULL;
}

void preload_stack_drop_kept(void) {
    if (early.room != NULL) syscall(SYS_munmap, early.room, (size_t)EARLY_BYTES);
    early.room = NULL;
    early.used = 0;
}
