// SPDX-License-Identifier: MIT
//
// The list of mapped files, what a forked child does with it, and what is done where a file became shorter than its
// maps. See mapped_file.h.
#include "profiler/feed/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"

enum { LOCK_TRIES = 1000000 }; ///< of a signal handler

static struct {
    pthread_mutex_t lock; // guards the list and what is in it; none is taken after it
    tide__mapped_file *first;
    pthread_once_t once;
    int error; // of pthread_atfork
    bool hears_bus;
    struct sigaction before; // of SIGBUS; not changed once on_bus may be called
} files = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

// ---- the descriptor ----
//
// It is one of the recorded program's, which may close all that it did not open, and open others in their place. Maps
// live without it, and so does the lock: the system keeps what was opened for as long as it is mapped.

/// By fstat: no other file has its numbers while it is mapped.
static bool owns(const tide__mapped_file *m, int fd) {
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == m->dev && st.st_ino == m->ino;
}

static void close_own(tide__mapped_file *m) {
    if (owns(m, m->fd)) close(m->fd);
    m->fd = -1;
}

bool tide__mapped_file_has_fd(tide__mapped_file *m, const char *path) {
    if (owns(m, m->fd)) return true;
    const int fd = open(path, (m->is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (!owns(m, fd)) {
        if (fd >= 0) close(fd);
        return false;
    }
    m->fd = fd;
    tide__mapped_file_move_up(m);
    return true;
}

void tide__mapped_file_move_up(tide__mapped_file *m) {
    enum { HIGH = 900 }; // below the usual limit of 1024
    const int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, HIGH);
    if (fd < 0) return; // the limit is lower
    close(m->fd);
    m->fd = fd;
}

// ---- private zeros ----

/// Over [from, bytes) of a map; both at a page.
static bool put_zeros(const tide__file_map *map, size_t from) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    return mmap((char *)map->base + from, map->bytes - from, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

// ---- fork ----

static void before_fork(void) { pthread_mutex_lock(&files.lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&files.lock); }

static void let_go(tide__mapped_file *m) {
    for (size_t i = 0; i < m->n_maps; i++) {
        // Without room for another mapping: a child does not read there, and it must not be the parent's file.
        if (!put_zeros(&m->maps[i], 0)) munmap(m->maps[i].base, m->maps[i].bytes);
    }
    close_own(m);
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

// ---- a file that was cut short ----
//
// The signal comes of a store or a load to one of our maps, in a thread that holds no lock then: what is done here may
// take one. Of any other SIGBUS nothing is known but its address.

static const tide__file_map *map_of(const tide__mapped_file *m, uintptr_t address) {
    for (size_t i = 0; i < m->n_maps; i++) {
        if (address - (uintptr_t)m->maps[i].base < m->maps[i].bytes) return &m->maps[i];
    }
    return NULL;
}

/// Nothing of the file that is not there stays mapped; nor does the page of `address`, whatever is wrong with it.
static bool cut_off(const tide__mapped_file *m, const tide__file_map *hit, uintptr_t address) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat st;
    const uint64_t size = owns(m, m->fd) && fstat(m->fd, &st) == 0 ? (uint64_t)st.st_size : 0,
                   end = (size + page - 1) / page * page;
    bool is_done = true;
    for (size_t i = 0; i < m->n_maps; i++) {
        const tide__file_map *map = &m->maps[i];
        if (end < map->at + map->bytes) is_done = put_zeros(map, end > map->at ? end - map->at : 0) && is_done;
    }
    const uint64_t here = (address - (uintptr_t)hit->base) / page * page;
    const tide__file_map one = {.base = (char *)hit->base + here, .bytes = page};
    return is_done && put_zeros(&one, 0);
}

static bool lock_files(void) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (pthread_mutex_trylock(&files.lock) == 0) return true;
        sched_yield();
    }
    return false;
}

/// Whether the address is of a file of ours, and can be touched again.
static bool repair(uintptr_t address) {
    if (!lock_files()) return false;
    tide__mapped_file *m = files.first;
    const tide__file_map *map = NULL;
    while (m != NULL && (map = map_of(m, address)) == NULL) m = m->next;
    const bool is_repaired = map != NULL && !m->is_child && cut_off(m, map, address);
    void (*notify)(void *ctx) = is_repaired ? m->on_cut : NULL;
    void *ctx = is_repaired ? m->ctx : NULL;
    if (is_repaired) atomic_store(&m->is_cut, true);
    pthread_mutex_unlock(&files.lock);
    if (notify != NULL) notify(ctx); // its own stores may come here again
    return is_repaired;
}

/// As if we had not been there.
static void pass_on(int number, siginfo_t *info, void *context) {
    const struct sigaction *a = &files.before;
    const bool has_handler = (a->sa_flags & SA_SIGINFO) != 0 || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
    const bool was_sent = info->si_code <= 0; // by kill(2): it does not come again when we return
    if (!has_handler) {
        if (was_sent && a->sa_handler == SIG_IGN) return;
        signal(SIGBUS, SIG_DFL);
        if (was_sent) raise(SIGBUS);
        return;
    }
    sigset_t bus;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    if ((a->sa_flags & SA_NODEFER) == 0) pthread_sigmask(SIG_BLOCK, &bus, NULL); // the system takes it back
    if ((a->sa_flags & SA_SIGINFO) != 0) {
        a->sa_sigaction(number, info, context);
    } else {
        a->sa_handler(number);
    }
}

static void on_bus(int number, siginfo_t *info, void *context) {
    const int saved_errno = errno;
    const bool is_repaired = info->si_code > 0 && repair((uintptr_t)info->si_addr);
    errno = saved_errno;
    if (!is_repaired) pass_on(number, info, context);
}

/// With the lock. Failing, there is nothing that could be done about it.
static void hear_bus(void) {
    if (files.hears_bus || sigaction(SIGBUS, NULL, &files.before) != 0) return;
    struct sigaction a = {.sa_sigaction = on_bus, .sa_mask = files.before.sa_mask};
    a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | (files.before.sa_flags & SA_RESTART);
    files.hears_bus = sigaction(SIGBUS, &a, NULL) == 0;
}

/// With the lock. A handler that was set since may call ours: then it stays.
static void hear_bus_no_more(void) {
    struct sigaction now;
    if (!files.hears_bus || sigaction(SIGBUS, NULL, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_bus) return;
    files.hears_bus = sigaction(SIGBUS, &files.before, NULL) != 0;
}

// ---- open, map, close ----

int tide__mapped_file_open(tide__mapped_file *m, const char *path, int flags, mode_t mode) {
    m->fd = -1;
    const int e = tide__mapped_file_prepare();
    if (e != 0) return e;
    pthread_mutex_lock(&files.lock);
    m->fd = open(path, flags | O_CLOEXEC, mode);
    const int open_error = m->fd >= 0 ? 0 : errno;
    struct stat st;
    if (m->fd >= 0) {
        const bool is_known = fstat(m->fd, &st) == 0;
        m->dev = is_known ? st.st_dev : 0;
        m->ino = is_known ? st.st_ino : 0;
        m->is_child = false;
        m->is_writable = (flags & O_ACCMODE) == O_RDWR;
        atomic_store_explicit(&m->is_cut, false, memory_order_relaxed);
        m->maps = NULL;
        m->n_maps = m->cap_maps = 0;
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
    void *base = MAP_FAILED;
    int e = ENOMEM;
    if (tide_host_grow(&m->maps, &m->cap_maps, m->n_maps + 1, sizeof *m->maps) == TIDE_OK) {
        base = mmap(NULL, bytes + skip, access, MAP_SHARED, m->fd, (off_t)(at - skip));
        e = errno;
    }
    if (base != MAP_FAILED) {
        m->maps[m->n_maps++] = (tide__file_map){.base = base, .at = at - skip, .bytes = bytes + skip};
        hear_bus();
    }
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
        close_own(m);
        tide_host_free(m->maps);
        m->maps = NULL;
        m->n_maps = m->cap_maps = 0;
        if (files.first == NULL) hear_bus_no_more();
    }
    pthread_mutex_unlock(&files.lock);
}
