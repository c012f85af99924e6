// SPDX-License-Identifier: MIT
//
// The functions of malloc, as the program calls them. See preload.h.
//
// A block of the arena is no block of the program's: it is never told, and comes back here to be freed. While this
// library is at work for itself all that is asked for in the thread is of that kind.
#include <errno.h>
#include <string.h>

#include "preload/preload.h"

// Not <stdlib.h> and <malloc.h>: what they say of these functions is for those who call them.
PRELOAD_EXPORT void *malloc(size_t bytes);
PRELOAD_EXPORT void *calloc(size_t n, size_t bytes);
PRELOAD_EXPORT void *realloc(void *block, size_t bytes);
PRELOAD_EXPORT void *reallocarray(void *block, size_t n, size_t bytes);
PRELOAD_EXPORT void free(void *block);
PRELOAD_EXPORT int posix_memalign(void **out, size_t align, size_t bytes);
PRELOAD_EXPORT void *aligned_alloc(size_t align, size_t bytes);
PRELOAD_EXPORT void *memalign(size_t align, size_t bytes);
PRELOAD_EXPORT void *valloc(size_t bytes);
PRELOAD_EXPORT void *pvalloc(size_t bytes);
PRELOAD_EXPORT size_t malloc_usable_size(void *block);

/// Whether the real functions may be called: they are found, and it is the program that calls.
static inline bool is_program(void) {
    return __builtin_expect(!preload_self.is_at_work, 1) &&
           (__builtin_expect(preload_has_real, 1) || preload_find_real());
}

// ---- told ----

static inline uint64_t at_most(size_t bytes) { return bytes > INT64_MAX ? (uint64_t)INT64_MAX : bytes; }

static inline void tell_alloc(const void *block, size_t bytes, preload_function function) {
    const preload_event e = {.op = block != NULL ? TIDE_MEM_ALLOC : TIDE_MEM_OOM,
                             .function = (uint8_t)function,
                             .address = (uintptr_t)block,
                             .bytes = at_most(bytes)};
    preload_self.told = block;
    preload_put(&e);
}

static inline void tell_free(const void *block, preload_function function) {
    const preload_event e = {.op = TIDE_MEM_FREE_COMPLETED, .function = (uint8_t)function, .address = (uintptr_t)block};
    preload_put(&e);
}

// ---- as the program calls them ----

void *malloc(size_t bytes) {
    if (!is_program()) return preload_own_alloc(bytes, 0);
    preload_self.is_in_malloc = true;
    void *block = preload_real.malloc(bytes);
    preload_self.is_in_malloc = false;
    tell_alloc(block, bytes, PRELOAD_MALLOC);
    return block;
}

void *calloc(size_t n, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total)) total = SIZE_MAX;
    if (!is_program()) {
        void *own = preload_own_alloc(total, 0);
        if (own != NULL) memset(own, 0, total);
        return own;
    }
    preload_self.is_in_malloc = true;
    void *block = preload_real.calloc(n, bytes);
    preload_self.is_in_malloc = false;
    tell_alloc(block, total, PRELOAD_CALLOC);
    return block;
}

void free(void *block) {
    if (block == NULL) return;
    if (preload_is_own(block)) {
        preload_own_free(block);
        return;
    }
    if (!preload_has_real && !preload_find_real()) return; // it is of no malloc that can be known here
    if (preload_self.deleting != block) tell_free(block, PRELOAD_FREE);
    const bool was_in_malloc = preload_self.is_in_malloc;
    preload_self.is_in_malloc = true;
    preload_real.free(block);
    preload_self.is_in_malloc = was_in_malloc;
}

/// A block of the arena that the program got from a library which asked on our behalf, or before the real functions
/// were known.
static void *move_out(void *block, size_t bytes) {
    if (!is_program()) return preload_own_realloc(block, bytes);
    void *fresh = malloc(bytes);
    if (fresh == NULL) return NULL;
    const size_t old = preload_own_size(block);
    memcpy(fresh, block, old < bytes ? old : bytes);
    preload_own_free(block);
    return fresh;
}

/// A free and an alloc, both called realloc. The free is put in before the block can be another's; when there is no
/// room the block comes back.
static void *real_realloc(void *block, size_t bytes) {
    if (block != NULL) {
        const preload_event e = {.op = TIDE_MEM_FREE_COMPLETED,
                                 .function = PRELOAD_REALLOC,
                                 .how = TIDE__BY_ADDRESS_MAY_COME_BACK,
                                 .address = (uintptr_t)block};
        preload_put(&e);
    }
    preload_self.is_in_malloc = true;
    void *fresh = preload_real.realloc(block, bytes);
    preload_self.is_in_malloc = false;
    if (fresh != NULL || block == NULL) {
        tell_alloc(fresh, bytes, PRELOAD_REALLOC);
    } else if (bytes > 0) { // to 0 bytes: it is freed
        tell_alloc(NULL, bytes, PRELOAD_REALLOC);
        const preload_event e = {.op = TIDE_MEM_ALLOC,
                                 .function = PRELOAD_REALLOC,
                                 .how = TIDE__BY_ADDRESS_COMES_BACK,
                                 .address = (uintptr_t)block};
        preload_put(&e);
    }
    return fresh;
}

void *realloc(void *block, size_t bytes) {
    if (block != NULL && preload_is_own(block)) return move_out(block, bytes);
    if (!is_program()) {
        // Of the C library, on our behalf: a block that it had before.
        return preload_has_real ? preload_real.realloc(block, bytes) : preload_own_alloc(bytes, 0);
    }
    return real_realloc(block, bytes);
}

void *reallocarray(void *block, size_t n, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total)) {
        if (is_program()) tell_alloc(NULL, SIZE_MAX, PRELOAD_REALLOC);
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, total);
}

int posix_memalign(void **out, size_t align, size_t bytes) {
    if (!is_program()) {
        void *own = preload_own_alloc(bytes, align);
        if (own != NULL) *out = own;
        return own != NULL ? 0 : ENOMEM;
    }
    preload_self.is_in_malloc = true;
    const int error = preload_real.posix_memalign(out, align, bytes);
    preload_self.is_in_malloc = false;
    if (error != EINVAL) tell_alloc(error == 0 ? *out : NULL, bytes, PRELOAD_ALIGNED);
    return error;
}

/// One of the functions that return a block at a multiple of `align`.
static inline void *aligned(void *block, size_t bytes) {
    preload_self.is_in_malloc = false;
    if (block != NULL || errno != EINVAL) tell_alloc(block, bytes, PRELOAD_ALIGNED);
    return block;
}

void *aligned_alloc(size_t align, size_t bytes) {
    if (!is_program()) return preload_own_alloc(bytes, align);
    preload_self.is_in_malloc = true;
    return aligned(preload_real.aligned_alloc(align, bytes), bytes);
}

void *memalign(size_t align, size_t bytes) {
    if (!is_program()) return preload_own_alloc(bytes, align);
    preload_self.is_in_malloc = true;
    return aligned(preload_real.memalign(align, bytes), bytes);
}

enum { PAGE = 4096 };

void *valloc(size_t bytes) {
    if (!is_program()) return preload_own_alloc(bytes, PAGE);
    preload_self.is_in_malloc = true;
    return aligned(preload_real.valloc(bytes), bytes);
}

void *pvalloc(size_t bytes) {
    if (!is_program()) return preload_own_alloc((bytes + PAGE - 1) & ~(size_t)(PAGE - 1), PAGE);
    preload_self.is_in_malloc = true;
    return aligned(preload_real.pvalloc(bytes), bytes);
}

size_t malloc_usable_size(void *block) {
    if (block == NULL) return 0;
    if (preload_is_own(block)) return preload_own_size(block);
    return preload_has_real || preload_find_real() ? preload_real.malloc_usable_size(block) : 0;
}

void *(*preload_malloc_address(void))(size_t) { return malloc; }

void preload_program_free(void *block) { free(block); }
