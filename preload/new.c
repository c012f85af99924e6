// SPDX-License-Identifier: MIT
//
// Operators new and delete of an allocator that brings its own (jemalloc, tcmalloc): they do not call malloc. Those of
// the C++ library do: then each of these only hands on, and the malloc behind is what is told. See preload.h.
//
// An exception for want of memory passes through here: this file is compiled so that it may.
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preload/preload.h"

typedef void *(*new_function)(size_t a, size_t b, const void *c);
typedef void (*delete_function)(void *block, size_t a, size_t b);

/// The operator behind ours.
typedef struct real_operator {
    const char *name;
    _Atomic(void *) function; ///< NULL: not looked for yet
    _Atomic bool is_told;     ///< it is of what brings malloc, so it does not call ours
} real_operator;

/// Whether two functions lie in one library.
static bool are_neighbours(void *a, void *b) {
    Dl_info x, y;
    return dladdr(a, &x) != 0 && dladdr(b, &y) != 0 && x.dli_fbase == y.dli_fbase;
}

/// The operator behind ours; NULL: there is none. A C program may open a plug-in that brings the C++ library, in a
/// scope of its own, where no library that lies behind ours is.
static void *find(real_operator *o) {
    void *function = atomic_load_explicit(&o->function, memory_order_acquire);
    if (__builtin_expect(function != NULL, 1)) return function;
    preload_thread *self = &preload_self;
    const int saved = errno;
    const bool was_at_work = self->is_at_work;
    bool stays = true;
    self->is_at_work = true; // dlsym may allocate
    function = preload_find(o->name);
    if (function == NULL) {
        (void)dlerror(); // it is no error of the program's
        function = preload_find_loaded(o->name, "libstdc++.so", &stays);
    }
    void *real_malloc;
    memcpy(&real_malloc, &preload_real.malloc, sizeof real_malloc);
    atomic_store_explicit(&o->is_told, function != NULL && are_neighbours(function, real_malloc), memory_order_relaxed);
    if (stays) atomic_store_explicit(&o->function, function, memory_order_release);
    self->is_at_work = was_at_work;
    errno = saved;
    return function;
}

static void leave_malloc(const bool *unused) {
    (void)unused;
    preload_self.is_in_malloc = false;
}

/// It may throw.
static void *call_real(new_function real, size_t bytes, size_t b, const void *c) {
    __attribute__((cleanup(leave_malloc))) const bool unused = true;
    (void)unused;
    preload_self.is_in_malloc = true;
    return real(bytes, b, c);
}

/// Code that was made while the program ran calls it, say, and no library has it: as the C++ library would, short of
/// the exception.
static void *make_without(const real_operator *o, size_t bytes, size_t align) {
    const size_t n = bytes > 0 ? bytes : 1;
    void *block = strstr(o->name, "align_val_t") == NULL ? preload_malloc_address()(n)
                                                         : aligned_alloc(align, (n + align - 1) & ~(align - 1));
    if (block == NULL && strstr(o->name, "nothrow") == NULL) abort();
    return block;
}

static void *make(real_operator *o, size_t bytes, size_t b, const void *c) {
    if (!preload_has_real) (void)!preload_find_real();
    void *function = find(o);
    new_function real;
    if (__builtin_expect(function == NULL, 0)) return make_without(o, bytes, b);
    memcpy(&real, &function, sizeof real);
    if (!atomic_load_explicit(&o->is_told, memory_order_relaxed)) return real(bytes, b, c);
    preload_self.told = NULL;
    void *block = call_real(real, bytes, b, c);
    if (block != NULL && preload_self.told == block) return block; // it has called a function of malloc's
    const preload_event e = {.op = block != NULL ? TIDE_MEM_ALLOC : TIDE_MEM_OOM,
                             .function = PRELOAD_NEW,
                             .address = (uintptr_t)block,
                             .bytes = bytes > INT64_MAX ? (uint64_t)INT64_MAX : bytes};
    preload_put(&e);
    return block;
}

static void destroy(real_operator *o, void *block, size_t a, size_t b) {
    if (block == NULL) return;
    if (!preload_has_real) (void)!preload_find_real();
    void *function = find(o);
    delete_function real;
    if (__builtin_expect(function == NULL, 0)) {
        preload_program_free(block);
        return;
    }
    memcpy(&real, &function, sizeof real);
    if (atomic_load_explicit(&o->is_told, memory_order_relaxed)) {
        const preload_event e = {
            .op = TIDE_MEM_FREE_COMPLETED, .function = PRELOAD_DELETE, .address = (uintptr_t)block};
        preload_put(&e);
        preload_self.deleting = block;
    }
    real(block, a, b);
    preload_self.deleting = NULL;
}

// Their names, as the C++ ABI for 64 bits has them: w a size, v a block, m a size that is told, St11align_val_t an
// alignment, RKSt9nothrow_t one that does not throw. What a form does not have is handed on all the same, and not read.
#define NEW_MAP(XX)                                                                                                    \
    XX(_Znwm)                                                                                                          \
    XX(_Znam)                                                                                                          \
    XX(_ZnwmRKSt9nothrow_t)                                                                                            \
    XX(_ZnamRKSt9nothrow_t)                                                                                            \
    XX(_ZnwmSt11align_val_t)                                                                                           \
    XX(_ZnamSt11align_val_t)                                                                                           \
    XX(_ZnwmSt11align_val_tRKSt9nothrow_t)                                                                             \
    XX(_ZnamSt11align_val_tRKSt9nothrow_t)
#define DELETE_MAP(XX)                                                                                                 \
    XX(_ZdlPv)                                                                                                         \
    XX(_ZdaPv)                                                                                                         \
    XX(_ZdlPvm)                                                                                                        \
    XX(_ZdaPvm)                                                                                                        \
    XX(_ZdlPvRKSt9nothrow_t)                                                                                           \
    XX(_ZdaPvRKSt9nothrow_t)                                                                                           \
    XX(_ZdlPvSt11align_val_t)                                                                                          \
    XX(_ZdaPvSt11align_val_t)                                                                                          \
    XX(_ZdlPvmSt11align_val_t)                                                                                         \
    XX(_ZdaPvmSt11align_val_t)                                                                                         \
    XX(_ZdlPvSt11align_val_tRKSt9nothrow_t)                                                                            \
    XX(_ZdaPvSt11align_val_tRKSt9nothrow_t)

#define XX(symbol)                                                                                                     \
    PRELOAD_EXPORT void *symbol(size_t bytes, size_t b, const void *c);                                                \
    void *symbol(size_t bytes, size_t b, const void *c) {                                                              \
        static real_operator o = {.name = #symbol};                                                                    \
        return make(&o, bytes, b, c);                                                                                  \
    }
NEW_MAP(XX)
#undef XX
#define XX(symbol)                                                                                                     \
    PRELOAD_EXPORT void symbol(void *block, size_t a, size_t b);                                                       \
    void symbol(void *block, size_t a, size_t b) {                                                                     \
        static real_operator o = {.name = #symbol};                                                                    \
        destroy(&o, block, a, b);                                                                                      \
    }
DELETE_MAP(XX)
#undef XX
