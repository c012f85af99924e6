// SPDX-License-Identifier: MIT
//
// The file of a feed: made, grown, mapped, named, locked. See feed_internal.h.
//
// Blocks are allocated and pages touched before anybody writes events there: a store to a mapped page for which there
// is no disk would kill the program with SIGBUS. Who else may write the file can still cut it short: see mapped_file.h.
// Only its owner may: what a program allocates is private, and only the drain reads a feed.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/text.h"
#include "profiler/feed/feed_internal.h"
#include "profiler/feed/process_stat.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

static tide_status io_error(const tide__feed *f, int e, tide_error *err) {
    const tide_status kind = e == ENOMEM ? TIDE_ERR_NOMEM : TIDE_ERR_WRITE;
    const tide_status st = TIDE_FAIL(err, kind, "cannot write '%s': %s", f->path, strerror(e));
    if (e == EFBIG) tide_error_note(err, "the file would pass the limit on the size of files (ulimit -f)");
    return st;
}

// ---- room ----

/// Blocks on disk for [at, at + bytes). Passing the limit on file sizes raises SIGXFSZ in this thread, whose default is
/// to end the program: it is held back and eaten, unless one was waiting before. @return 0 or an errno
static int allocate_blocks(int fd, uint64_t at, uint64_t bytes) {
    sigset_t xfsz, before, pending;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    sigemptyset(&pending);
    pthread_sigmask(SIG_BLOCK, &xfsz, &before);
    sigpending(&pending);
    int e;
    do e = posix_fallocate(fd, (off_t)at, (off_t)bytes);
    while (e == EINTR);
    if (e != 0 && sigismember(&pending, SIGXFSZ) == 0) {
        while (sigtimedwait(&xfsz, NULL, &(struct timespec){0}) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}

/// Make every page of it present and writable. @return 0 or an errno
static int touch_pages(void *data, uint64_t bytes) {
    const size_t skip = (uintptr_t)data % (size_t)sysconf(_SC_PAGESIZE);
    char *base = (char *)data - skip;
    if (madvise(base, bytes + skip, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno == EFAULT || errno == EHWPOISON) return ENOSPC; // the file system has no room after all
    if (errno != EINVAL) return errno;
    for (uint64_t at = 0; at < bytes; at += 4096)
        ((volatile char *)data)[at] = 0; // an older kernel; the blocks are new
    return 0;
}

/// Blocks, a map and pages for [at, at + bytes).
static int extend(tide__feed *f, uint64_t at, uint64_t bytes, void **out) {
    if (!tide__mapped_file_has_fd(&f->file, f->path)) return EBADF;
    int e = allocate_blocks(f->file.fd, at, bytes);
    if (e != 0) return e;
    *out = tide__mapped_file_map(&f->file, at, bytes);
    if (*out == NULL) return errno;
    e = touch_pages(*out, bytes);
    if (e != 0) tide__mapped_file_unmap(&f->file, *out);
    return e;
}

static tide_status check_n_chunks(const tide__feed *f, tide_error *err) {
    if (atomic_load_explicit(&f->head->n_chunks, memory_order_relaxed) < TIDE__FEED_MAX_CHUNKS) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "'%s' has %d chunks, more than threads or names should need", f->path,
                     TIDE__FEED_MAX_CHUNKS);
}

tide_status tide__feed_file_reserve(tide__feed *f, uint64_t bytes, uint64_t *at, tide_error *err) {
    if (atomic_load_explicit(&f->file.is_cut, memory_order_relaxed))
        return TIDE_FAIL(err, TIDE_ERR_IO, "%s", f->cut_words);
    TIDE_TRY(check_n_chunks(f, err));
    *at = f->file_bytes;
    f->file_bytes += bytes;
    return TIDE_OK;
}

tide_status tide__feed_file_make(tide__feed *f, uint64_t at, uint64_t bytes, void **out, tide_error *err) {
    const int e = extend(f, at, bytes, out);
    return e == 0 ? TIDE_OK : io_error(f, e, err);
}

void tide__feed_file_drop(tide__feed *f, uint64_t at, uint64_t bytes) {
    if (f->file_bytes != at + bytes) return; // others lie behind it: a hole stays
    f->file_bytes = at;
    if (!tide__mapped_file_has_fd(&f->file, f->path) || ftruncate(f->file.fd, (off_t)at) != 0)
        return; // what lies behind the last chunk means nothing
}

/// The table's n-th line, which may lie in a hole of the header as yet.
static int make_line(tide__feed *f, uint32_t n) {
    const uint64_t end = offsetof(tide__feed_header, chunks) + (n + UINT64_C(1)) * sizeof f->head->chunks[0];
    if (end <= f->header_bytes) return 0;
    int e = tide__mapped_file_has_fd(&f->file, f->path)
                ? allocate_blocks(f->file.fd, f->header_bytes, TIDE__FEED_FIXED_BYTES)
                : EBADF;
    if (e == 0) e = touch_pages((char *)f->head + f->header_bytes, TIDE__FEED_FIXED_BYTES);
    if (e == 0) f->header_bytes += TIDE__FEED_FIXED_BYTES;
    return e;
}

tide_status tide__feed_file_add(tide__feed *f, const tide__chunk_entry *entry, void *chunk, tide_error *err) {
    tide_status st = check_n_chunks(f, err); // others may have been added since
    const uint32_t n = atomic_load_explicit(&f->head->n_chunks, memory_order_relaxed);
    const int e = st == TIDE_OK ? make_line(f, n) : 0;
    if (e != 0) st = io_error(f, e, err);
    if (st != TIDE_OK) {
        tide__mapped_file_unmap(&f->file, chunk);
        return st;
    }
    f->head->chunks[n] = *entry;
    atomic_store_explicit(&f->head->n_chunks, n + 1, memory_order_release);
    return TIDE_OK;
}

// ---- whose ----

/// All else is zero: the file is new.
static void fill_header(tide__feed_header *h, const tide__feed_options *opt, uint64_t ring_slots) {
    h->magic = TIDE__FEED_MAGIC;
    h->version = TIDE__FEED_VERSION;
    h->header_bytes = TIDE__FEED_HEADER_BYTES;
    h->slot_bytes = sizeof(tide__slot);
    h->max_chunks = TIDE__FEED_MAX_CHUNKS;
    h->pid = (uint32_t)getpid();
    h->rank = opt->rank;
    h->begin_ns = (int64_t)tide_now_ns();
    h->wall_ns = tide__clock_wall_ns();
    h->has_ticks = tide__clock_has_ticks();
    h->ring_slots = (uint32_t)ring_slots;
    h->by_address = opt->by_address;
    h->is_late = opt->is_late;
    char process_state;
    if (!tide__process_stat("/proc/self/stat", &process_state, &h->start_ticks)) h->start_ticks = 0;
    tide__clock_boot_id(h->boot_id);
    struct stat st;
    if (stat("/proc/self/ns/pid", &st) == 0) h->pid_namespace = (uint64_t)st.st_ino;
    tide__clock_two_pairs(&h->first[0], &h->first[1]);
    h->last[0] = h->first[0];
    h->last[1] = h->first[1];
    atomic_store_explicit(&h->state, TIDE__FEED_OPEN, memory_order_relaxed);
}

// ---- made, named, gone ----

/// Goes with the process, however that ends. A file system without locks: the pid must do.
static void lock_file(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = TIDE__FEED_LOCK_PRODUCER, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &l) != 0) return;
}

static char *path_of(const char *trace_path, unsigned n, const char *end) {
    tide_text t = {0};
    tide_text_addf(&t, "%s" TIDE__FEED_INFIX "%ld-%u%s", trace_path, (long)getpid(), n, end);
    if (!t.failed) return t.data;
    tide_text_deinit(&t);
    return NULL;
}

/// The first name that neither a feed nor one in the making has. f->path is the name in the making.
static tide_status make_file(tide__feed *f, const char *trace_path, tide_error *err) {
    for (unsigned n = 1;; n++) {
        char *path = path_of(trace_path, n, ""), *in_making = path_of(trace_path, n, ".new");
        const bool has_paths = path != NULL && in_making != NULL;
        const bool is_taken = has_paths && access(path, F_OK) == 0;
        const int e =
            has_paths && !is_taken ? tide__mapped_file_open(&f->file, in_making, O_RDWR | O_CREAT | O_EXCL, 0600) : 0;
        tide_host_free(path);
        if (!has_paths) {
            tide_host_free(in_making);
            return TIDE_NO_MEMORY(err, "for a feed beside '%s'", trace_path);
        }
        if (!is_taken && e == 0) {
            f->path = in_making;
            tide__mapped_file_move_up(&f->file);
            return TIDE_OK;
        }
        if (!is_taken && e != EEXIST) {
            const tide_status st = TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot create '%s': %s", in_making, strerror(e));
            tide_host_free(in_making);
            return st;
        }
        tide_host_free(in_making);
    }
}

/// Signal handler: the recording is over, and why. What was mapped may be zeros by now, or be gone again.
static void on_cut(void *ctx) {
    tide__feed *f = ctx;
    memcpy(f->head->error, f->cut_words, sizeof f->cut_words);
    atomic_store_explicit(&f->head->drain, TIDE__DRAIN_FAILED, memory_order_release);
}

/// Blocks and pages of its first part alone: the rest of the table is a hole until it is needed.
static int make_header(tide__feed *f) {
    int e = allocate_blocks(f->file.fd, 0, TIDE__FEED_FIXED_BYTES);
    // The last part, too: no map is longer than the file.
    if (e == 0)
        e = allocate_blocks(f->file.fd, TIDE__FEED_HEADER_BYTES - TIDE__FEED_FIXED_BYTES, TIDE__FEED_FIXED_BYTES);
    if (e != 0) return e;
    f->head = tide__mapped_file_map(&f->file, 0, TIDE__FEED_HEADER_BYTES);
    if (f->head == NULL) return errno;
    f->header_bytes = TIDE__FEED_FIXED_BYTES;
    return touch_pages(f->head, f->header_bytes);
}

tide_status tide__feed_file_create(tide__feed *f, const tide__feed_options *opt, tide_error *err) {
    TIDE_TRY(make_file(f, opt->trace_path, err));
    lock_file(f->file.fd);
    f->file.on_cut = on_cut;
    f->file.ctx = f;
    snprintf(f->cut_words, sizeof f->cut_words, "the feed of '%s' was cut short by another program, or cannot be read",
             opt->trace_path);
    const int e = make_header(f);
    if (e != 0) return io_error(f, e, err);
    f->file_bytes = TIDE__FEED_HEADER_BYTES;
    fill_header(f->head, opt, f->ring_slots);
    f->has_ticks = f->head->has_ticks != 0;
    return TIDE_OK;
}

tide_status tide__feed_file_publish(tide__feed *f, tide_error *err) {
    char *path = tide_host_strndup(f->path, strlen(f->path) - strlen(".new"));
    if (path == NULL) return TIDE_NO_MEMORY(err, "for a feed");
    // A process of the same number in another container may make feeds of the same name here.
    int rc = renameat2(AT_FDCWD, f->path, AT_FDCWD, path, RENAME_NOREPLACE);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) rc = rename(f->path, path); // not on this file system
    if (rc != 0) {
        const int e = errno;
        tide_host_free(path);
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "cannot rename '%s': %s", f->path, strerror(e));
    }
    tide_host_free(f->path);
    f->path = path;
    return TIDE_OK;
}

void tide__feed_file_close(tide__feed *f, bool remove) {
    if (remove && f->path != NULL) unlink(f->path); // gone already: as wished
    tide__mapped_file_close(&f->file);
    tide_host_free(f->path);
}
