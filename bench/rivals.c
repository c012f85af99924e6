// SPDX-License-Identifier: MIT
//
// The allocators of others. They are loaded by name and asked by the address of their functions, so that the malloc of
// this process, and with it our own `cpu` allocator, stays what it is.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

static const char tls_variable[] = "GLIBC_TUNABLES", tls_room[] = "glibc.rtld.optional_static_tls=32768";

void bench_make_room_for_rivals(char **argv) {
    if (getenv(tls_variable) != NULL) return;
    if (setenv(tls_variable, tls_room, 1) == 0) execv("/proc/self/exe", argv);
}

static void *symbol(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (address == NULL) fprintf(stderr, "bench: %s\n", dlerror());
    return address;
}

static void *mi_malloc_size_first(size_t align_bytes, size_t size_bytes);
static void *(*mi_malloc_aligned)(size_t size_bytes, size_t align_bytes);
static void *mi_malloc_size_first(size_t align_bytes, size_t size_bytes) {
    return mi_malloc_aligned(size_bytes, align_bytes);
}

static bool load(const char *file, const char *alloc_name, const char *free_name, void **alloc, void **release) {
    void *library =
        dlopen(file, RTLD_NOW | RTLD_LOCAL); // stays loaded to the end: its threads may still be cleaning up
    if (library == NULL) {
        fprintf(stderr, "bench: %s is left out: %s\n", file, dlerror());
        return false;
    }
    *alloc = symbol(library, alloc_name);
    *release = symbol(library, free_name);
    return *alloc != NULL && *release != NULL;
}

size_t bench_open_rivals(bench_contender *out) {
    size_t n = 0;
    void *alloc, *release;
    out[n++] = (bench_contender){.name = "glibc", .alloc = aligned_alloc, .free = free, .version = "aligned_alloc"};
    if (load("libmimalloc.so.2", "mi_malloc_aligned", "mi_free", &alloc, &release)) {
        memcpy(&mi_malloc_aligned, &alloc, sizeof alloc); // C has no cast from an object to a function pointer
        out[n] = (bench_contender){
            .name = "mimalloc", .alloc = mi_malloc_size_first, .version = "libmimalloc.so.2 mi_malloc_aligned"};
        memcpy(&out[n++].free, &release, sizeof release);
    }
    if (load("libjemalloc.so.2", "aligned_alloc", "free", &alloc, &release)) {
        out[n] = (bench_contender){.name = "jemalloc", .version = "libjemalloc.so.2 aligned_alloc"};
        memcpy(&out[n].alloc, &alloc, sizeof alloc);
        memcpy(&out[n++].free, &release, sizeof release);
    }
    return n;
}
