// SPDX-License-Identifier: MIT
//
// External data: weights in files beside the model. A model may name only files in its own folder or below: no
// absolute path, no "..", and no symbolic link that leads out.
//
// Keys: "location" (relative path), "offset" and "length" in bytes, optional (ONNX ExternalData.md).
//
// Weights are copied, so that nothing that happens to the file later can reach the graph. Files too large for that are
// mapped instead: planning a model of many gigabytes must touch none of them. Replacing such a file by another does no
// harm; cutting it short while the graph lives ends the process (SIGBUS), as with every mapping. A run moves its
// weights into Persistent memory while the program is built (tide_program_options.weights_registry).
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/graph/onnx_internal.h"

typedef struct place {
    const char *location; // borrowed from the message
    uint64_t offset;
    uint64_t length; // UINT64_MAX: to the end of the file
} place;

static bool parse_u64(const char *text, uint64_t *out) {
    if (text[0] < '0' || text[0] > '9') return false;
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    *out = v;
    return errno == 0 && *end == '\0';
}

static tide_status read_keys(const Onnx__TensorProto *t, const char *label, place *p, tide_error *err) {
    *p = (place){.length = UINT64_MAX};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = tide__onnx_str(t->external_data[i]->key);
        const char *value = tide__onnx_str(t->external_data[i]->value);
        bool good = true;
        if (strcmp(key, "location") == 0) p->location = value;
        if (strcmp(key, "offset") == 0) good = parse_u64(value, &p->offset);
        if (strcmp(key, "length") == 0) good = parse_u64(value, &p->length);
        if (!good)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "external data of '%s': %s '%s' is no number", label, key, value);
    }
    if (p->location == NULL || p->location[0] == '\0')
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "external data of '%s' names no file", label);
    return TIDE_OK;
}

static bool has_dotdot(const char *path) {
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return true;
    }
    return false;
}

/// True when `path` really lies below `folder`, links followed.
static bool lies_below(const char *folder, const char *path) {
    char *real_folder = realpath(folder, NULL); // from the C library, which gives no other choice
    char *real_path = realpath(path, NULL);
    bool below = false;
    if (real_folder != NULL && real_path != NULL) {
        const size_t n = strlen(real_folder);
        below =
            strncmp(real_path, real_folder, n) == 0 && (real_path[n] == '/' || (n > 0 && real_folder[n - 1] == '/'));
    }
    free(real_folder);
    free(real_path);
    return below;
}

/// Where the file is, once it is known to be allowed. @param path  out, also when this fails: the caller's to drop
static tide_status path_beside(const char *model, const char *label, const char *location, tide_text *path,
                               tide_error *err) {
    if (location[0] == '/' || has_dotdot(location))
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "external data of '%s' lies outside the model's folder: '%s'", label,
                         location);
    if (model == NULL || model[0] == '\0' || strcmp(model, "-") == 0) {
        const tide_status st =
            TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "external data of '%s' is in '%s', beside a model that is no file",
                      label, location);
        tide_error_hint(err, "give the model by its file name");
        return st;
    }
    const char *slash = strrchr(model, '/');
    tide_text folder = {0};
    tide_text_add_n(&folder, slash != NULL ? model : ".", slash != NULL ? (size_t)(slash - model) + 1 : 1);
    tide_text_addf(path, "%s/%s", tide_text_str(&folder), location);
    tide_status st = TIDE_OK;
    if (folder.failed || path->failed)
        st = TIDE_NO_MEMORY(err, "for a path");
    else if (access(path->data, F_OK) == 0 && !lies_below(folder.data, path->data))
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "external data of '%s' lies outside the model's folder: '%s' is a link",
                       label, location);
    tide_text_deinit(&folder);
    return st;
}

static tide_status open_beside(const char *model, const char *label, const char *location, int *fd, tide_error *err) {
    tide_text path = {0};
    tide_status st = path_beside(model, label, location, &path, err);
    if (st == TIDE_OK) {
        *fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a named pipe must not block: it is refused below
        if (*fd < 0)
            st = TIDE_FAIL(err, TIDE_ERR_IO, "external data of '%s': cannot open '%s': %s", label, path.data,
                           strerror(errno));
    }
    tide_text_deinit(&path);
    return st;
}

static tide_status read_at(int fd, const place *p, const char *label, size_t size_bytes, void *dst, tide_error *err) {
    size_t done = 0;
    while (done < size_bytes) {
        const ssize_t n = pread(fd, (char *)dst + done, size_bytes - done, (off_t)(p->offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return TIDE_FAIL(err, TIDE_ERR_IO, "external data of '%s': cannot read '%s': %s", label, p->location,
                             n < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)n;
    }
    return TIDE_OK;
}

/// The bytes must be in the file before memory for them is taken; `dst` NULL only asks.
tide_status tide__onnx_read_external(const Onnx__TensorProto *t, const char *label, const char *path, size_t size_bytes,
                                     void *dst, tide_error *err) {
    place p;
    TIDE_TRY(read_keys(t, label, &p, err));
    if (p.length != UINT64_MAX && p.length != size_bytes)
        return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "tensor '%s' needs %zu bytes, its external data has %" PRIu64, label,
                         size_bytes, p.length);
    int fd = -1;
    TIDE_TRY(open_beside(path, label, p.location, &fd, err));
    struct stat info;
    tide_status st = TIDE_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        st = TIDE_FAIL(err, TIDE_ERR_IO, "external data of '%s': '%s' is not a file", label, p.location);
    } else if (p.offset > (uint64_t)info.st_size || size_bytes > (uint64_t)info.st_size - p.offset) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT,
                       "tensor '%s' needs %zu bytes from byte %" PRIu64 " of '%s', which has %jd", label, size_bytes,
                       p.offset, p.location, (intmax_t)info.st_size);
    } else if (dst != NULL) {
        st = read_at(fd, &p, label, size_bytes, dst, err);
    }
    close(fd);
    return st;
}

enum {
    MAP_FROM_FILE_BYTES = 1 << 28, ///< of the file: what is smaller is read in a fraction of a second
    MAP_FROM_BYTES = 1 << 16, ///< of the tensor: a mapping takes whole pages, a process may have some 65,000 of them
};

static bool is_large_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && info.st_size >= MAP_FROM_FILE_BYTES;
}

tide_block *tide__onnx_map_external(const Onnx__TensorProto *t, const char *label, const char *path, size_t size_bytes,
                                    size_t elem_bytes) {
    place p;
    if (size_bytes < MAP_FROM_BYTES || read_keys(t, label, &p, NULL) != TIDE_OK || p.offset % elem_bytes != 0)
        return NULL;
    tide_text file = {0};
    tide_block *block = NULL;
    tide_status st = path_beside(path, label, p.location, &file, NULL);
    if (st == TIDE_OK && is_large_file(file.data))
        st = tide_block_map_file(file.data, p.offset, size_bytes, TIDE_KIND_HOST_PAGEABLE, &block, NULL);
    tide_text_deinit(&file);
    return st == TIDE_OK ? block : NULL;
}
