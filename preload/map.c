// SPDX-License-Identifier: MIT
//
// Memory that the program maps itself, without a file: mmap, munmap, mremap. What an allocator maps for its blocks is
// not told, for the blocks are. See preload.h.
//
// The collector keeps such memory as ranges, of which any part may go: a munmap is told as it is called, for files too.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"

enum { PAGE = 4096 };

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
    const int saved = errno;
    const preload_function function = access == PROT_NONE ? PRELOAD_RESERVE : PRELOAD_MMAP;
    if (result == MAP_FAILED && replaces)
        tell(TIDE_MEM_ALLOC, PRELOAD_MMAP, TIDE__BY_ADDRESS_RANGE_BACK, address, bytes);
    else if (result != MAP_FAILED && is_memory)
        tell(TIDE_MEM_ALLOC, function, TIDE__BY_ADDRESS_RANGE, result, bytes);
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
    if (result == 0 || !is_told) return result;
    const int saved = errno;
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
    const long result = syscall(SYS_mremap, address, bytes, new_bytes, flags, to);
    void *fresh = (void *)result; // NOLINT(performance-no-int-to-ptr)
    if (!is_told) return fresh;
    const int saved = errno;
    if (fresh == MAP_FAILED)
        tell(TIDE_MEM_ALLOC, PRELOAD_MREMAP, TIDE__BY_ADDRESS_RANGE_BACK, address, bytes);
    else
        tell(TIDE_MEM_ALLOC, PRELOAD_MREMAP, TIDE__BY_ADDRESS_RANGE_MOVED, fresh, new_bytes);
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
