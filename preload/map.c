// SPDX-License-Identifier: MIT
//
// Memory that the program maps itself, without a file: mmap, munmap, mremap, mprotect. What an allocator maps for its
// blocks is not told, for the blocks are. See preload.h.
//
// The collector keeps such memory as ranges, of which any part may go: a munmap is told as it is called, for files too.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"

enum { PAGE = 4096 };

_Atomic uint32_t preload_n_unmapped;

static void note_unmapped(void) { atomic_fetch_add_explicit(&preload_n_unmapped, 1, memory_order_relaxed); }

PRELOAD_EXPORT void *mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t at);

/// Whether what is mapped now is the program's own.
static inline bool is_program(void) {
    const preload_thread *self = &preload_self;
    return !self->is_at_work && !self->is_in_malloc && preload_has_real;
}

static uint64_t whole_pages(size_t bytes) { return ((uint64_t)bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1); }

static void tell(uint8_t op, preload_function function, uint8_t how, const void *address, size_t bytes) {
    const preload_event e = {.op = op,
                             .how = how,
                             .function = (uint8_t)function,
                             .address = (uintptr_t)address,
                             .bytes = whole_pages(bytes)};
    preload_put(&e);
}

/// What lay there is gone. The system's own tests come first: a call that it refuses changes nothing.
static bool may_unmap(const void *address, size_t bytes) {
    const uintptr_t begin = (uintptr_t)address;
    return begin % PAGE == 0 && bytes > 0 && bytes <= INT64_MAX && begin + whole_pages(bytes) > begin;
}

// ---- addresses without access ----
//
// What is mapped without access is no memory yet: a browser takes terabytes of it. What mprotect makes accessible of it
// is told then, and goes when it is made inaccessible again. An entry is claimed by its begin, and has one once its end
// is there: no lock, also in a signal handler.
//
//     mmap, no access   [ . . . . . . . . . . ]      nothing is told
//     mprotect          [ . . # # # # . . . . ]      alloc ####

enum { MAX_RESERVED = 4096, CLAIMED = 1 };
static struct {
    _Atomic uintptr_t begin, end; ///< begin 0: free
} reserved[MAX_RESERVED];
static _Atomic uint32_t n_reserved; ///< entries from here on were never used

static void reserve(uintptr_t begin, uintptr_t end) {
    for (uint32_t i = 0; i < MAX_RESERVED; i++) {
        uintptr_t is_free = 0;
        if (!atomic_compare_exchange_strong(&reserved[i].begin, &is_free, CLAIMED)) continue;
        atomic_store(&reserved[i].end, end);
        atomic_store(&reserved[i].begin, begin);
        uint32_t n = atomic_load(&n_reserved);
        while (n <= i && !atomic_compare_exchange_weak(&n_reserved, &n, i + 1)) {
        }
        return;
    }
    const preload_event e = {.op = TIDE_MEM_SNAPSHOT, .function = PRELOAD_TOO_MANY};
    preload_put(&e); // a mark: what is made accessible of this one is not seen
}

/// The part of entry `i` in [begin, end); false: there is none.
static bool reserved_part(uint32_t i, uintptr_t *begin, uintptr_t *end) {
    const uintptr_t from = atomic_load(&reserved[i].begin), to = atomic_load(&reserved[i].end);
    if (from <= CLAIMED || from != atomic_load(&reserved[i].begin)) return false;
    if (from > *begin) *begin = from;
    if (to < *end) *end = to;
    return *begin < *end;
}

static bool is_reserved(uintptr_t begin, uintptr_t end) {
    const uint32_t n = atomic_load(&n_reserved);
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t from = begin, to = end;
        if (reserved_part(i, &from, &to) && from == begin && to == end) return true;
    }
    return false;
}

/// These addresses are given back, or are something else now.
static void unreserve(uintptr_t begin, uintptr_t end) {
    const uint32_t n = atomic_load(&n_reserved);
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t from = begin, to = end;
        if (!reserved_part(i, &from, &to)) continue;
        const uintptr_t old_begin = atomic_load(&reserved[i].begin), old_end = atomic_load(&reserved[i].end);
        atomic_store(&reserved[i].begin, 0);
        if (old_begin < from) reserve(old_begin, from);
        if (to < old_end) reserve(to, old_end);
    }
}

/// Each part of it that was reserved.
static void tell_reserved(uint8_t op, uint8_t how, const void *address, size_t bytes) {
    const uint32_t n = atomic_load(&n_reserved);
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t begin = (uintptr_t)address, end = begin + whole_pages(bytes);
        if (!reserved_part(i, &begin, &end)) continue;
        const preload_event e = {
            .op = op, .how = how, .function = PRELOAD_MPROTECT, .address = begin, .bytes = end - begin};
        preload_put(&e);
    }
}

PRELOAD_EXPORT int mprotect(void *address, size_t bytes, int access) {
    const bool is_told = is_program() && atomic_load(&n_reserved) > 0 && may_unmap(address, bytes);
    if (is_told && access == PROT_NONE) tell_reserved(TIDE_MEM_FREE_COMPLETED, TIDE__BY_ADDRESS_RANGE, address, bytes);
    const int result = preload_has_real && preload_real.mprotect != NULL
                           ? preload_real.mprotect(address, bytes, access)
                           : (int)syscall(SYS_mprotect, address, bytes, access);
    if (access == PROT_NONE) note_unmapped();
    const int saved = errno;
    if (is_told && access != PROT_NONE && result == 0)
        tell_reserved(TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_RANGE, address, bytes);
    else if (is_told && access == PROT_NONE && result != 0)
        tell_reserved(TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_RANGE_BACK, address, bytes);
    errno = saved;
    return result;
}

// ---- mmap ----

static void *real_mmap(void *address, size_t bytes, int access, int flags, int fd, off_t at) {
    if (preload_has_real && preload_real.mmap != NULL) return preload_real.mmap(address, bytes, access, flags, fd, at);
    const long result = syscall(SYS_mmap, address, bytes, access, flags, fd, at);
    return (void *)result; // NOLINT(performance-no-int-to-ptr)
}

static void *mapped(void *address, size_t bytes, int access, int flags, int fd, off_t at) {
    if (!is_program()) return real_mmap(address, bytes, access, flags, fd, at);
    const bool replaces = (flags & MAP_FIXED) != 0 && may_unmap(address, bytes),
               is_memory = (flags & MAP_ANONYMOUS) != 0;
    if (replaces) tell(TIDE_MEM_FREE_COMPLETED, PRELOAD_MMAP, TIDE__BY_ADDRESS_RANGE, address, bytes);
    void *result = real_mmap(address, bytes, access, flags, fd, at);
    if (replaces) note_unmapped();
    const int saved = errno;
    const uintptr_t begin = (uintptr_t)result, end = begin + whole_pages(bytes);
    if (result == MAP_FAILED && replaces)
        tell(TIDE_MEM_ALLOC, PRELOAD_MMAP, TIDE__BY_ADDRESS_RANGE_BACK, address, bytes);
    else if (result != MAP_FAILED && is_memory && access != PROT_NONE)
        tell(TIDE_MEM_ALLOC, PRELOAD_MMAP, TIDE__BY_ADDRESS_RANGE, result, bytes);
    else if (result != MAP_FAILED && is_memory && !is_reserved(begin, end))
        reserve(begin, end);
    else if (result != MAP_FAILED && !is_memory && replaces)
        unreserve(begin, end); // a file lies there
    errno = saved;
    return result;
}

PRELOAD_EXPORT void *mmap(void *address, size_t bytes, int access, int flags, int fd, off_t at) {
    return mapped(address, bytes, access, flags, fd, at);
}

void *mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t at) {
    return mapped(address, bytes, access, flags, fd, at);
}

// ---- munmap ----

PRELOAD_EXPORT int munmap(void *address, size_t bytes) {
    const bool is_told = is_program() && may_unmap(address, bytes);
    if (is_told) tell(TIDE_MEM_FREE_COMPLETED, PRELOAD_MUNMAP, TIDE__BY_ADDRESS_RANGE, address, bytes);
    const int result = preload_has_real && preload_real.munmap != NULL ? preload_real.munmap(address, bytes)
                                                                       : (int)syscall(SYS_munmap, address, bytes);
    note_unmapped();
    if (!is_told) return result;
    const int saved = errno;
    if (result == 0)
        unreserve((uintptr_t)address, (uintptr_t)address + whole_pages(bytes));
    else
        tell(TIDE_MEM_ALLOC, PRELOAD_MUNMAP, TIDE__BY_ADDRESS_RANGE_BACK, address, bytes);
    errno = saved;
    return result;
}

// ---- mremap ----

/// What moves is told as a part that goes and a range that comes, of as much memory as went: a file's part stays one.
PRELOAD_EXPORT void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
    va_end(more);
    const bool is_told = is_program() && may_unmap(address, bytes) && new_bytes > 0 && new_bytes <= INT64_MAX;
    if (is_told && (flags & MREMAP_FIXED) != 0 && may_unmap(to, new_bytes))
        tell(TIDE_MEM_FREE_COMPLETED, PRELOAD_MREMAP, TIDE__BY_ADDRESS_RANGE, to, new_bytes);
    if (is_told) tell(TIDE_MEM_FREE_COMPLETED, PRELOAD_MREMAP, TIDE__BY_ADDRESS_RANGE, address, bytes);
    void *fresh = preload_has_real && preload_real.mremap != NULL
                      ? preload_real.mremap(address, bytes, new_bytes, flags, to)
                      : (void *)syscall(SYS_mremap, address, bytes, new_bytes, flags, to); // NOLINT
    note_unmapped();
    if (!is_told) return fresh;
    const int saved = errno;
    const uintptr_t old_begin = (uintptr_t)address, new_begin = (uintptr_t)fresh;
    if (fresh == MAP_FAILED) {
        tell(TIDE_MEM_ALLOC, PRELOAD_MREMAP, TIDE__BY_ADDRESS_RANGE_BACK, address, bytes);
    } else {
        tell(TIDE_MEM_ALLOC, PRELOAD_MREMAP, TIDE__BY_ADDRESS_RANGE_MOVED, fresh, new_bytes);
        const bool was_reserved = is_reserved(old_begin, old_begin + whole_pages(bytes));
        unreserve(old_begin, old_begin + whole_pages(bytes));
        if (was_reserved) reserve(new_begin, new_begin + whole_pages(new_bytes));
    }
    errno = saved;
    return fresh;
}

// ---- what the archives of this library call (the linker's --wrap) ----

void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int fd, off_t at);
int __wrap_munmap(void *address, size_t bytes);

void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int fd, off_t at) {
    const long result = syscall(SYS_mmap, address, bytes, access, flags, fd, at);
    return (void *)result; // NOLINT(performance-no-int-to-ptr)
}

int __wrap_munmap(void *address, size_t bytes) { return (int)syscall(SYS_munmap, address, bytes); }
