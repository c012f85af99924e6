// SPDX-License-Identifier: MIT
//
// Data pointers: bare ones, ones with a release, closures and file mappings. See data_ptr.h.
#include "core/memory/data_ptr.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

tide_data_ptr tide_data_ptr_bare(void *data, tide_device device) {
    return (tide_data_ptr){.data = data, .device = device};
}

tide_data_ptr tide_data_ptr_make(void *data, void *context, tide_release_fn release, tide_device device) {
    return (tide_data_ptr){.data = data, .context = context, .release = release, .device = device};
}

tide_data_ptr tide_data_ptr_take(tide_data_ptr *p) {
    const tide_data_ptr taken = *p;
    *p = (tide_data_ptr){.device = taken.device};
    return taken;
}

void tide_data_ptr_reset(tide_data_ptr *p) {
    // Emptied first: a release that reads *p again finds it empty.
    const tide_data_ptr gone = tide_data_ptr_take(p);
    if (gone.release != NULL) gone.release(gone.context);
}

// ---- closures ----

/// | fn | data | copy of the argument ... |
typedef struct closure {
    tide_release_closure fn;
    void *data;
    _Alignas(max_align_t) unsigned char arg[];
} closure;

static void run_closure(void *context) {
    closure *c = context;
    c->fn(c->data, c->arg);
    tide_host_free(c);
}

tide_status tide_data_ptr_with_closure(void *data, tide_device device, tide_release_closure fn, const void *arg,
                                       size_t arg_bytes, tide_data_ptr *out, tide_error *err) {
    size_t total;
    if (fn == NULL) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a release closure without a function");
    closure *c = tide_add_size(sizeof *c, arg_bytes, &total) ? tide_host_alloc(total) : NULL;
    if (c == NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a release closure with %zu B of argument", arg_bytes);
    c->fn = fn;
    c->data = data;
    if (arg_bytes > 0) memcpy(c->arg, arg, arg_bytes);
    *out = tide_data_ptr_make(data, c, run_closure, device);
    return TIDE_OK;
}

// ---- file mappings ----
//
//     file     |  page  |  page  |  page  |
//     mapping           |<-- size_bytes ----->|    begins at a page, as mmap wants it
//     data                  |<- asked for --->|

typedef struct mapping {
    void *base;
    size_t size_bytes;
} mapping;

static void unmap(void *context) {
    mapping *m = context;
    munmap(m->base, m->size_bytes);
    tide_host_free(m);
}

bool tide_data_ptr_is_read_only(const tide_data_ptr *p) { return p->release == unmap; }

/// How many bytes of the open file are asked for: TIDE_ERR_INVALID when they are not there.
static tide_status check_range(int fd, const char *path, uint64_t offset_bytes, size_t *size_bytes, tide_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return TIDE_FAIL(err, TIDE_ERR_IO, "'%s' cannot be looked at: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return TIDE_FAIL(err, TIDE_ERR_IO, "'%s' is no plain file, it cannot be mapped", path);
    const uint64_t file_bytes = (uint64_t)info.st_size;
    if (file_bytes == 0) return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s' is empty, there is nothing to map", path);
    // By subtraction: offset + size might wrap around. Nothing at all is refused too: mmap knows no mapping of 0 bytes.
    if (offset_bytes >= file_bytes || *size_bytes > file_bytes - offset_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s': %zu B at %" PRIu64 " are outside the file of %" PRIu64 " B",
                         path, *size_bytes, offset_bytes, file_bytes);
    if (*size_bytes == 0) {
        if (file_bytes - offset_bytes > SIZE_MAX)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "'%s': %" PRIu64 " B do not fit into the address space", path,
                             file_bytes - offset_bytes);
        *size_bytes = (size_t)(file_bytes - offset_bytes);
    }
    return TIDE_OK;
}

static tide_status map_range(int fd, const char *path, uint64_t offset_bytes, size_t size_bytes, tide_data_ptr *out,
                             tide_error *err) {
    const size_t skip = (size_t)(offset_bytes % (uint64_t)sysconf(_SC_PAGESIZE));
    mapping *m = tide_host_alloc(sizeof *m);
    if (m == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for the mapping of '%s'", path);
    errno = ENOMEM; // what mmap would say of more than the address space
    m->base = tide_add_size(size_bytes, skip, &m->size_bytes)
                  ? mmap(NULL, m->size_bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset_bytes - skip))
                  : MAP_FAILED;
    if (m->base == MAP_FAILED) {
        const tide_status st = TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO),
                                         "%zu B of '%s' cannot be mapped: %s", size_bytes, path, strerror(errno));
        tide_host_free(m);
        return st;
    }
    TIDE_ASSERT(skip <= m->size_bytes && m->size_bytes - skip == size_bytes);
    *out = tide_data_ptr_make((char *)m->base + skip, m, unmap, TIDE_CPU);
    return TIDE_OK;
}

tide_status tide_data_ptr_map_file(const char *path, uint64_t offset_bytes, size_t size_bytes, tide_data_ptr *out,
                                   size_t *mapped_bytes, tide_error *err) {
    // O_NONBLOCK: a pipe without a writer must be refused, not waited for.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO), "'%s' cannot be opened: %s", path,
                         strerror(errno));
    tide_status st = check_range(fd, path, offset_bytes, &size_bytes, err);
    if (st == TIDE_OK) st = map_range(fd, path, offset_bytes, size_bytes, out, err);
    close(fd); // the mapping keeps the file
    if (st == TIDE_OK && mapped_bytes != NULL) *mapped_bytes = size_bytes;
    return st;
}
