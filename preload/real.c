// SPDX-License-Identifier: MIT
//
// real: the functions behind ours: those of the next library that has them, be it the C library or an allocator that
// the program brings. See preload.h.
#include <dlfcn.h>
#include <link.h>
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

// ---- in any library ----

typedef struct search {
    const char *name, *staying;
    uint32_t hash;
    void *function;
    bool stays;
} search;

static uint32_t gnu_hash(const char *name) {
    uint32_t h = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) h = h * 33 + *c;
    return h;
}

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hashes; ///< DT_GNU_HASH
} tables;

/// False: it has none, or they are not where the loader has put them (the system's own page).
static bool find_tables(const struct dl_phdr_info *library, tables *t) {
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(library->dlpi_addr +
                                        library->dlpi_phdr[i].p_vaddr); // NOLINT(performance-no-int-to-ptr)
    *t = (tables){0};
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_un.d_ptr < library->dlpi_addr) continue;
        const void *at = (const void *)entry->d_un.d_ptr; // NOLINT(performance-no-int-to-ptr)
        if (entry->d_tag == DT_SYMTAB) t->symbols = at;
        if (entry->d_tag == DT_STRTAB) t->strings = at;
        if (entry->d_tag == DT_GNU_HASH) t->hashes = at;
    }
    return t->symbols != NULL && t->strings != NULL && t->hashes != NULL;
}

/// The symbol that a library defines by that name; NULL: it does not.
static const ElfW(Sym) * find_symbol(const tables *t, const char *name, uint32_t hash) {
    const uint32_t n_buckets = t->hashes[0], first = t->hashes[1], n_words = t->hashes[2];
    const uint32_t *buckets = t->hashes + 4 + n_words * (sizeof(ElfW(Addr)) / sizeof *buckets);
    const uint32_t *chain = buckets + n_buckets;
    uint32_t i = n_buckets > 0 ? buckets[hash % n_buckets] : 0;
    if (i < first) return NULL;
    for (;; i++) {
        const uint32_t found = chain[i - first];
        const ElfW(Sym) *symbol = &t->symbols[i];
        if ((found | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            strcmp(t->strings + symbol->st_name, name) == 0)
            return symbol;
        if ((found & 1) != 0) return NULL;
    }
}

static bool is_ours(const struct dl_phdr_info *library) {
    const uintptr_t mine = (uintptr_t)&preload_real - library->dlpi_addr;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && mine - part->p_vaddr < part->p_memsz) return true;
    }
    return false;
}

static int look_into(struct dl_phdr_info *library, size_t bytes, void *ctx) {
    search *s = ctx;
    tables t;
    (void)bytes;
    if (is_ours(library) || !find_tables(library, &t)) return 0;
    const ElfW(Sym) *symbol = find_symbol(&t, s->name, s->hash);
    if (symbol == NULL) return 0;
    s->function = (void *)(library->dlpi_addr + symbol->st_value); // NOLINT(performance-no-int-to-ptr)
    s->stays = strstr(library->dlpi_name, s->staying) != NULL;
    return 1;
}

void *preload_find_loaded(const char *name, const char *staying, bool *stays) {
    search s = {.name = name, .staying = staying, .hash = gnu_hash(name)};
    dl_iterate_phdr(look_into, &s);
    *stays = s.stays;
    return s.function;
}
