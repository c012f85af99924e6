// SPDX-License-Identifier: MIT
//
// A file as memory of contexts. See buffer_file.h.
#include "cli/buffer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/output.h"
#include "core/base/text.h"

/// Where contexts lie that need nothing.
static char nothing[1];

// ---- the file ----

/// Whether `full` stands in the list of what is mapped, at the end of a line.
static bool is_in_list(const char *maps, const char *full) {
    const size_t n = strlen(full);
    for (const char *at = maps; (at = strstr(at, full)) != NULL; at += n) {
        if (at > maps && at[-1] == ' ' && (at[n] == '\n' || at[n] == '\0')) return true;
    }
    return false;
}

/// A file that this process has mapped already is refused: weights that are used where they lie. It is known by its
/// path, because the numbers of devices in the list are not those of stat on every file system. Where the system has no
/// such list nothing is refused.
static tide_status refuse_mapped(const char *path, tide_error *err) {
    char *maps = NULL, full[4096];
    size_t len;
    if (realpath(path, full) == NULL) return tide_output_failed("look at", path, errno, err);
    const tide_status st = tide_read_file("/proc/self/maps", 0, &maps, &len, err);
    if (st != TIDE_OK) return st == TIDE_ERR_NOMEM ? st : TIDE_OK;
    const bool found = is_in_list(maps, full);
    tide_host_free(maps);
    if (!found) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_WRITE, "buffer file '%s' is in use by this run: it would be overwritten", path);
}

static tide_status too_small(const char *path, const cli_buffer_file *f, tide_error *err) {
    char wanted[24];
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_NO_SPACE,
                  "buffer file '%s': %" PRIu64 " B (%s) are needed for %zu context%s, it has %" PRIu64 " B", path,
                  f->use.bytes, tide_format_bytes(f->use.bytes, wanted, sizeof wanted), f->use.n_contexts,
                  f->use.n_contexts == 1 ? "" : "s", f->use.file_bytes);
    tide_error_hint(err, "a file that is not there is made as large as needed; this one by: truncate -s %" PRIu64,
                    f->use.bytes);
    return st;
}

/// What is there already: is it ours to write?
static tide_status check_file(const char *path, cli_buffer_file *f, tide_error *err) {
    struct stat info;
    if (fstat(f->fd, &info) != 0) return tide_output_failed("look at", path, errno, err);
    if (!S_ISREG(info.st_mode))
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "buffer file '%s' is no plain file: it cannot be memory", path);
    TIDE_TRY(refuse_mapped(path, err));
    f->use.file_bytes = (uint64_t)info.st_size;
    return f->use.file_bytes < f->use.bytes ? too_small(path, f, err) : TIDE_OK;
}

/// Room on the disk, so that a full one is an error here and no signal later. Keeps what the file holds.
static tide_status reserve(const char *path, cli_buffer_file *f, tide_error *err) {
    if (f->use.bytes == 0) return TIDE_OK;
    int e = posix_fallocate(f->fd, 0, (off_t)f->use.bytes);
    if (e == EOPNOTSUPP || e == EINVAL || e == ENOSYS) // this file system cannot
        e = !f->use.created || ftruncate(f->fd, (off_t)f->use.bytes) == 0 ? 0 : errno;
    if (e != 0) return tide_output_failed("reserve the bytes of buffer file", path, e, err);
    if (f->use.created) f->use.file_bytes = f->use.bytes;
    return TIDE_OK;
}

static tide_status open_file(const char *path, cli_buffer_file *f, tide_error *err) {
    if (f->use.bytes > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "buffer file '%s' would pass 2^63 - 1 B", path);
    // O_NONBLOCK: a pipe must be refused, not waited for.
    f->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 && errno == ENOENT) {
        f->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        f->use.created = f->fd >= 0;
    }
    if (f->fd < 0) return tide_output_failed("open buffer file", path, errno, err);
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return TIDE_FAIL(err, TIDE_ERR_WRITE, "buffer file '%s' is in use by another run", path);
    if (!f->use.created) TIDE_TRY(check_file(path, f, err));
    return reserve(path, f, err);
}

// ---- the mapping ----

/// Addresses for `bytes` at a multiple of `align_bytes`, which is more than a page: the file is mapped over them.
static void *take_addresses(cli_buffer_file *f, size_t bytes, size_t align_bytes) {
    if (!tide_add_size(bytes, align_bytes, &f->mapping_bytes)) return MAP_FAILED;
    f->mapping = mmap(NULL, f->mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->mapping == MAP_FAILED) return MAP_FAILED;
    const size_t skip = (size_t)((~(uintptr_t)f->mapping + 1) & (align_bytes - 1));
    return mmap((char *)f->mapping + skip, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f->fd, 0);
}

static tide_status map_file(const char *path, size_t align_bytes, cli_buffer_file *f, tide_error *err) {
    f->memory = nothing;
    if (f->use.bytes == 0) return TIDE_OK;
    const size_t bytes = (size_t)f->use.bytes;
    void *at;
    if (align_bytes > (size_t)sysconf(_SC_PAGESIZE)) {
        at = take_addresses(f, bytes, align_bytes);
    } else {
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
        f->mapping = at;
        f->mapping_bytes = bytes;
    }
    if (f->mapping == MAP_FAILED) f->mapping = NULL;
    if (at == MAP_FAILED) return tide_output_failed("map buffer file", path, errno, err);
    TIDE_ASSERT((uintptr_t)at % align_bytes == 0);
    f->memory = at;
    return TIDE_OK;
}

static void give_back(cli_buffer_file *f) {
    if (f->mapping != NULL) munmap(f->mapping, f->mapping_bytes);
    if (f->fd >= 0) close(f->fd);
}

/// @param path  behind all links
static tide_status open_and_map(const char *path, const tide_context_need *need, size_t n_contexts,
                                cli_buffer_file *out, tide_error *err) {
    TIDE_ASSERT(n_contexts > 0);
    cli_buffer_file f = {.fd = -1, .use = {.context_bytes = need->bytes, .n_contexts = n_contexts}};
    uint64_t part;
    if (!tide_align_up(need->bytes, need->align_bytes, &part) || !tide_mul_u64(part, n_contexts, &f.use.bytes) ||
        f.use.bytes > SIZE_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "buffer file '%s': %zu contexts of %" PRIu64 " B pass 2^64 - 1 B",
                         path, n_contexts, need->bytes);
    f.part_bytes = (size_t)part;
    tide_status st = open_file(path, &f, err);
    if (st == TIDE_OK) st = map_file(path, need->align_bytes, &f, err);
    if (st != TIDE_OK) {
        if (f.use.created) (void)unlink(path);
        give_back(&f);
        *out = (cli_buffer_file){.use = f.use};
        return st;
    }
    *out = f;
    return TIDE_OK;
}

tide_status cli_buffer_file_open(const char *path, const tide_context_need *need, size_t n_contexts,
                                 cli_buffer_file *out, tide_error *err) {
    char *target = NULL;
    TIDE_TRY(tide_output_follow(path, &target, err));
    const tide_status st = open_and_map(target, need, n_contexts, out, err);
    tide_host_free(target);
    return st;
}

void *cli_buffer_file_part(const cli_buffer_file *f, size_t i) {
    TIDE_ASSERT(f->memory == NULL || i * f->part_bytes <= f->use.bytes);
    return f->memory != NULL ? f->memory + i * f->part_bytes : NULL;
}

void cli_buffer_file_close(cli_buffer_file *f) {
    if (f->memory == NULL) return;
    give_back(f);
    *f = (cli_buffer_file){0};
}
