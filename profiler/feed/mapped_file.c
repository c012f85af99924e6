// SPDX-License-Identifier: MIT
//
// The list of mapped files, and what a forked child does with it. See mapped_file.h.
#include "profiler/feed/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock; // guards the list and what is in it; none is taken after it
    tide__mapped_file *first;
    pthread_once_t once;
    int error; // of asking to be told of forks
} files = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

// ---- fork ----

static void before_fork(void) { pthread_mutex_lock(&files.lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&files.lock); }

static void let_go(tide__mapped_file *m) {
    for (size_t i = 0; i < m->n_maps; i++) {
        const tide__file_map *map = &m->maps[i];
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        // Without room for another mapping: nobody looks there in a child, and it must not be the parent's file.
        if (mmap(map->base, map->bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
            munmap(map->base, map->bytes);
    }
    close(m->fd);
    m->fd = -1;
    m->is_child = true;
}

static void after_fork_in_child(void) {
    for (tide__mapped_file *m = files.first; m != NULL; m = m->next) {
        if (!m->is_child) let_go(m);
    }
    pthread_mutex_unlock(&files.lock);
}

static void ask_to_be_told(void) {
    files.error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int tide__mapped_file_prepare(void) {
    pthread_once(&files.once, ask_to_be_told);
    return files.error;
}

// ---- open, map, close ----

int tide__mapped_file_open(tide__mapped_file *m, const char *path, int flags) {
    m->fd = -1;
    const int e = tide__mapped_file_prepare();
    if (e != 0) return e;
    pthread_mutex_lock(&files.lock);
    m->fd = open(path, flags | O_CLOEXEC, 0666);
    const int open_error = m->fd >= 0 ? 0 : errno;
    if (m->fd >= 0) {
        m->is_child = false;
        m->is_writable = (flags & O_ACCMODE) == O_RDWR;
        m->n_maps = 0;
        m->next = files.first;
        files.first = m;
    }
    pthread_mutex_unlock(&files.lock);
    return open_error;
}

void *tide__mapped_file_map(tide__mapped_file *m, uint64_t at, uint64_t bytes) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = at % page;
    const int access = m->is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
    pthread_mutex_lock(&files.lock);
    void *base = mmap(NULL, bytes + skip, access, MAP_SHARED, m->fd, (off_t)(at - skip));
    const int e = errno;
    if (base != MAP_FAILED) m->maps[m->n_maps++] = (tide__file_map){.base = base, .bytes = bytes + skip};
    pthread_mutex_unlock(&files.lock);
    errno = e;
    return base != MAP_FAILED ? (char *)base + skip : NULL;
}

void tide__mapped_file_unmap(tide__mapped_file *m, const void *data) {
    pthread_mutex_lock(&files.lock);
    for (size_t i = 0; i < m->n_maps; i++) {
        const tide__file_map map = m->maps[i];
        if ((uintptr_t)data - (uintptr_t)map.base >= map.bytes) continue;
        munmap(map.base, map.bytes);
        m->maps[i] = m->maps[--m->n_maps];
        break;
    }
    pthread_mutex_unlock(&files.lock);
}

void tide__mapped_file_close(tide__mapped_file *m) {
    pthread_mutex_lock(&files.lock);
    tide__mapped_file **at = &files.first;
    while (*at != NULL && *at != m) at = &(*at)->next;
    if (*at == m) {
        *at = m->next;
        for (size_t i = 0; i < m->n_maps; i++) munmap(m->maps[i].base, m->maps[i].bytes);
        if (m->fd >= 0) close(m->fd);
        m->n_maps = 0;
        m->fd = -1;
    }
    pthread_mutex_unlock(&files.lock);
}
