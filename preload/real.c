// SPDX-License-Identifier: MIT
//
// real: the functions behind ours: those of the next library that has them, be it the C library or an allocator that
// the program brings. See preload.h.
#include <dlfcn.h>
#include <string.h>

#include "preload/preload.h"

preload_real_functions preload_real;
bool preload_has_real;

void *preload_find(const char *name) { return dlsym(RTLD_NEXT, name); }

/// POSIX has it that a pointer to a function comes as void *.
static void find(const char *name, void *function) {
    void *address = preload_find(name);
    memcpy(function, &address, sizeof address);
}

bool preload_find_real(void) {
    preload_thread *self = &preload_self;
    if (preload_has_real) return true;
    if (self->is_at_work) return false;
    self->is_at_work = true; // dlsym may allocate
    preload_real_functions *r = &preload_real;
    find("malloc", &r->malloc);
    find("calloc", &r->calloc);
    find("realloc", &r->realloc);
    find("free", &r->free);
    find("posix_memalign", &r->posix_memalign);
    find("aligned_alloc", &r->aligned_alloc);
    find("memalign", &r->memalign);
    find("valloc", &r->valloc);
    find("pvalloc", &r->pvalloc);
    find("malloc_usable_size", &r->malloc_usable_size);
    find("mmap", &r->mmap);
    find("munmap", &r->munmap);
    find("mprotect", &r->mprotect);
    find("mremap", &r->mremap);
    find("execve", &r->execve);
    find("execv", &r->execv);
    find("execvp", &r->execvp);
    find("execvpe", &r->execvpe);
    find("fexecve", &r->fexecve);
    find("execveat", &r->execveat);
    preload_has_real = r->malloc != NULL && r->calloc != NULL && r->realloc != NULL && r->free != NULL;
    self->is_at_work = false;
    return preload_has_real;
}
