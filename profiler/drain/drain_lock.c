// SPDX-License-Identifier: MIT
//
// At most one drain per trace: a lock on "<trace>.drain", which ends with the process that holds it. The holder removes
// the file, so a lock counts only while the name still refers to the locked file.
//
//     byte 0   the drain
//     byte 1   who makes the trace, until its drain is at work: a reader that comes in between must not take it for one
//              that a killed program left
//
// SQLite's own locks do not serve: they are held for the length of a transaction.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "profiler/drain/drain_internal.h"

static char *lock_name(const char *trace_path) {
    tide_text name = {0};
    tide_text_addf(&name, "%s.drain", trace_path);
    if (!name.failed) return name.data;
    tide_text_deinit(&name);
    return NULL;
}

enum { BYTE_DRAIN, BYTE_MAKER };

static bool try_lock(int fd, int byte) {
    const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool is_still(int fd, const char *name) {
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && stat(name, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

static tide_status lock_file(const char *trace_path, int byte, tide__drain_lock_file *lock, tide_error *err) {
    for (int i = 0; i < 100; i++) {
        const int e = tide__mapped_file_open(&lock->file, lock->name, O_RDWR | O_CREAT, 0666);
        if (e != 0) return tide_output_failed("write", trace_path, e, err);
        if (!try_lock(lock->file.fd, byte)) {
            const int why = errno;
            if (why != EAGAIN && why != EACCES)
                return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot lock '%s': %s", trace_path, strerror(why));
            return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot write '%s': another process records into it", trace_path);
        }
        if (is_still(lock->file.fd, lock->name)) return TIDE_OK;
        tide__mapped_file_close(&lock->file); // its holder took the name away between our two calls
    }
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot lock '%s': others take and leave the lock all the time", trace_path);
}

static tide_status take(const char *trace_path, int byte, tide__drain_lock_file *lock, tide_error *err) {
    lock->file.fd = -1;
    lock->name = lock_name(trace_path);
    if (lock->name == NULL) return TIDE_NO_MEMORY(err, "to lock '%s'", trace_path);
    const tide_status st = lock_file(trace_path, byte, lock, err);
    if (st == TIDE_OK) return st;
    tide__mapped_file_close(&lock->file);
    tide_host_free(lock->name);
    lock->name = NULL;
    return st;
}

tide_status tide__drain_lock(const char *trace_path, tide__drain_lock_file *lock, tide_error *err) {
    return take(trace_path, BYTE_DRAIN, lock, err);
}

tide_status tide__drain_lock_making(const char *trace_path, tide__drain_lock_file *lock, tide_error *err) {
    TIDE_TRY(take(trace_path, BYTE_MAKER, lock, err));
    if (!tide__drain_is_locked(trace_path)) return TIDE_OK;
    tide__drain_made(lock);
    return TIDE_FAIL(err, TIDE_ERR_BUSY, "cannot record into '%s': another process records into it", trace_path);
}

static bool others_hold(int fd, int byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void tide__drain_unlock(tide__drain_lock_file *lock) {
    if (lock->name == NULL) return;
    // Who makes the trace anew takes the name away later.
    if (is_still(lock->file.fd, lock->name) && !others_hold(lock->file.fd, BYTE_MAKER)) unlink(lock->name);
    tide__mapped_file_close(&lock->file);
    tide_host_free(lock->name);
    lock->name = NULL;
}

void tide__drain_made(tide__drain_lock_file *lock) {
    if (lock->name == NULL) return;
    // The name belongs to the drain that is at work; where none came to be, nothing stays behind. With that lock, too:
    // a drain that began between a look and the removal would hold a lock that no other process can see.
    if (is_still(lock->file.fd, lock->name) && try_lock(lock->file.fd, BYTE_DRAIN)) unlink(lock->name);
    tide__mapped_file_close(&lock->file);
    tide_host_free(lock->name);
    lock->name = NULL;
}

bool tide__drain_has_lock(const char *trace_path) {
    char name[4096 + 8]; // asked at every opening of a trace: not worth an allocation
    const int n = snprintf(name, sizeof name, "%s.drain", trace_path);
    return n > 0 && (size_t)n < sizeof name && access(name, F_OK) == 0;
}

static bool is_locked(const char *trace_path, int n_bytes) {
    char *name = lock_name(trace_path);
    if (name == NULL) return false;
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    tide_host_free(name);
    if (fd < 0) return false;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = n_bytes};
    const bool is_locked = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return is_locked;
}

bool tide__drain_is_locked(const char *trace_path) { return is_locked(trace_path, BYTE_DRAIN + 1); }

bool tide__drain_is_in_use(const char *trace_path) { return is_locked(trace_path, BYTE_MAKER + 1); }

// ---- writing where files may not grow ----

void tide__hold_xfsz(tide__signal_hold *h) {
    sigset_t mine, before;
    sigemptyset(&mine);
    sigaddset(&mine, SIGXFSZ);
    h->was_blocked = pthread_sigmask(SIG_BLOCK, &mine, &before) != 0 || sigismember(&before, SIGXFSZ) == 1;
}

void tide__release_xfsz(const tide__signal_hold *h) {
    if (h->was_blocked) return;
    sigset_t mine, pending;
    sigemptyset(&mine);
    sigaddset(&mine, SIGXFSZ);
    // A write beyond the limit sends the signal to the thread that writes, so what waits here is ours.
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1) {
        const struct timespec now = {0};
        (void)sigtimedwait(&mine, NULL, &now);
    }
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
}
