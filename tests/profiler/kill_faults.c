// SPDX-License-Identifier: MIT
//
// System calls that fail on demand. See kill_faults.h. A program's own definition of a function of the C library is
// taken by the libraries it is linked to as well, so SQLite's writes come through here.
#include "tests/profiler/kill_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool is_on, is_slow;
    char which[64], dir[256], latch[300];
    int error;
    uint64_t after;
} fault;
static _Atomic uint64_t written, seen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint64_t kill_faults_seen(void) { return atomic_load(&seen); }

static int errno_of(const char *name) {
    static const struct {
        const char *name;
        int error;
    } all[] = {{"ENOSPC", ENOSPC}, {"EROFS", EROFS}, {"EIO", EIO}, {"EFBIG", EFBIG}, {"EDQUOT", EDQUOT}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0) return all[i].error;
    return EIO;
}

static void read_plan(void) {
    const char *plan = getenv("KILL_FAULT"), *dir = getenv("KILL_FAULT_DIR"), *latch = getenv("KILL_FAULT_LATCH");
    char name[16] = "";
    unsigned long long after = 0;
    const char *colon = plan != NULL ? strchr(plan, ':') : NULL;
    if (colon == NULL || dir == NULL || sscanf(colon, ":%15[A-Z]:%llu", name, &after) != 2) return;
    snprintf(fault.which, sizeof fault.which, "%.*s", (int)(colon - plan), plan);
    snprintf(fault.dir, sizeof fault.dir, "%s", dir);
    snprintf(fault.latch, sizeof fault.latch, "%s", latch != NULL ? latch : "");
    fault.is_slow = strcmp(name, "SLOW") == 0;
    fault.error = errno_of(name);
    fault.after = after;
    fault.is_on = true;
}

static bool is_latched(void) { return fault.latch[0] != '\0' && syscall(SYS_access, fault.latch, F_OK) == 0; }

/// Whether a call that takes `n_bytes` more of the disk is to fail.
static bool fails(const char *path, uint64_t n_bytes) {
    if (strncmp(path, fault.dir, strlen(fault.dir)) != 0) return false;
    const char *below = path + strlen(fault.dir);
    if (strstr(below, fault.which) == NULL) return false;
    if (fault.is_slow) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(fault.after % 1000000000u)}, NULL);
        return false;
    }
    if (!is_latched()) {
        if (atomic_fetch_add(&written, n_bytes) + n_bytes <= fault.after) return false;
        if (fault.latch[0] != '\0') {
            const long fd = syscall(SYS_openat, AT_FDCWD, fault.latch, O_CREAT | O_WRONLY, 0600);
            if (fd >= 0) syscall(SYS_close, fd);
        }
    }
    atomic_fetch_add(&seen, 1);
    return true;
}

static bool fd_fails(int fd, uint64_t n_bytes) {
    pthread_once(&once, read_plan);
    if (!fault.is_on) return false;
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long n = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (n <= 0) return false;
    path[n] = '\0';
    return fails(path, n_bytes);
}

// The C library's names, without its headers' attributes: the definitions below stand for them.
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    if (fd_fails(fd, n)) {
        errno = fault.error;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, n, at);
}
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { return pwrite(fd, data, n, at); }

ssize_t write(int fd, const void *data, size_t n) {
    if (fd > 2 && fd_fails(fd, n)) {
        errno = fault.error;
        return -1;
    }
    return syscall(SYS_write, fd, data, n);
}

/// A file is made longer for what is written next: no bytes of its own, but on a full disk it fails too.
int ftruncate(int fd, off_t size) {
    if (fd_fails(fd, 0) && fault.error != ENOSPC) {
        errno = fault.error;
        return -1;
    }
    return (int)syscall(SYS_ftruncate, fd, size);
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int fallocate(int fd, int mode, off_t at, off_t n) {
    if (fd_fails(fd, (uint64_t)n)) {
        errno = fault.error;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, at, n);
}
int fallocate64(int fd, int mode, off64_t at, off64_t n) { return fallocate(fd, mode, at, n); }

int posix_fallocate(int fd, off_t at, off_t n) { return fallocate(fd, 0, at, n) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t at, off64_t n) { return posix_fallocate(fd, at, n); }

int fdatasync(int fd) {
    if (fd_fails(fd, 0)) {
        errno = fault.error;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}
