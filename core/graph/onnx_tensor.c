// SPDX-License-Identifier: MIT
//
// TensorProto to tensor: initialisers, Constant nodes, tensor attributes, and the .pb files of ONNX's test layout.
//
// Sizes that a file states are checked: the bytes must be there before memory for them is taken.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_alloc.h"
#include "core/base/pages.h"
#include "core/graph/import.h"
#include "core/graph/onnx_internal.h"
#include "core/tensor/dtype_foreign.h"

// ---- external data ----
//
// Weights in files beside the model. A model may name only files in its own folder or below: no
// absolute path, no "..", and no symbolic link that leads out.
//
// Keys: "location" (relative path), "offset" and "length" in bytes, optional (ONNX ExternalData.md).
//
// Where the model itself is mapped (tide_graph_from_onnx_mapped), so are its external weights. Elsewhere they are
// copied, so that nothing that happens to the file later can reach the graph, but from files that are too large for
// that: planning a model of many gigabytes must touch none of them. Replacing a mapped file by another does no harm;
// cutting it short while the graph lives ends the process (SIGBUS), as with every mapping.

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
            st = TIDE_FAIL(err, tide_status_of_errno(errno, TIDE_ERR_IO), "external data of '%s': cannot open '%s': %s",
                           label, path.data, strerror(errno));
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

/// The bytes must be in the file before memory for them is taken; with `dst` NULL that is only checked.
static tide_status read_external(const Onnx__TensorProto *t, const char *label, const char *path, size_t size_bytes,
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
};

static bool is_large_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && info.st_size >= MAP_FROM_FILE_BYTES;
}

/// External data as a read-only block over the file itself, one reference; NULL when it is to be read instead: small,
/// at an address its elements may not have, or not to be mapped. Checked before by read_external.
static tide_block *map_external(const Onnx__TensorProto *t, const char *label, const tide__onnx_bytes *from,
                                size_t size_bytes, size_t elem_bytes) {
    place p;
    if (size_bytes < TIDE__ONNX_MAP_FROM_BYTES || read_keys(t, label, &p, NULL) != TIDE_OK ||
        p.offset % elem_bytes != 0)
        return NULL;
    tide_text file = {0};
    tide_block *block = NULL;
    tide_status st = path_beside(from->path, label, p.location, &file, NULL);
    if (st == TIDE_OK && (from->file != NULL || is_large_file(file.data)))
        st = tide_block_map_file(file.data, p.offset, size_bytes, TIDE_KIND_HOST_PAGEABLE, &block, NULL);
    tide_text_deinit(&file);
    return st == TIDE_OK ? block : NULL;
}

/// The graph notes the file, so that a command that writes files can tell which are the model's.
static tide_status note_file(const Onnx__TensorProto *t, const char *label, const tide__onnx_bytes *from,
                             tide_error *err) {
    tide_graph *g = from->graph;
    place p;
    tide_text path = {0};
    TIDE_TRY(read_keys(t, label, &p, err));
    tide_status st = path_beside(from->path, label, p.location, &path, err);
    bool is_known = false;
    for (size_t i = 0; st == TIDE_OK && i < g->n_files && !is_known; i++)
        is_known = strcmp(g->files[i], path.data) == 0;
    if (st == TIDE_OK && !is_known) {
        char *file = tide_host_strdup(path.data);
        if (file != NULL && tide_host_grow(&g->files, &g->cap_files, g->n_files + 1, sizeof file) == TIDE_OK) {
            g->files[g->n_files++] = file;
        } else {
            tide_host_free(file);
            st = TIDE_NO_MEMORY(err, "for a path");
        }
    }
    tide_text_deinit(&path);
    return st;
}

// ---- tensors ----

tide_status tide__onnx_dtype(int32_t data_type, const char *label, tide_dtype *out, tide_error *err) {
    // tide_dtype has ONNX's own numbers.
    *out = tide_dtype_size((tide_dtype)data_type) > 0 ? (tide_dtype)data_type : TIDE_DTYPE_UNDEFINED;
    if (*out != TIDE_DTYPE_UNDEFINED) return TIDE_OK;
    const char *const foreign = tide_dtype_foreign_name(data_type);
    if (foreign != NULL)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "'%s' has the element type %s", label, foreign);
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "'%s' has the unknown element type %" PRId32, label, data_type);
}

/// dtype and shape of a TensorProto, with its claims checked. `label` names it in messages.
static tide_status tensor_type(const Onnx__TensorProto *t, const char *label, tide_dtype *dtype, tide_shape *shape,
                               size_t *size_bytes, tide_error *err) {
    TIDE_TRY(tide__onnx_dtype(t->has_data_type ? t->data_type : 0, label, dtype, err));
    if (t->segment != NULL) return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "tensor '%s' comes in segments", label);
    if (t->n_dims > TIDE_MAX_RANK)
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "tensor '%s' has %zu extents, %d are the most", label,
                         t->n_dims, TIDE_MAX_RANK);
    *shape = tide_shape_make((int32_t)t->n_dims, t->dims);
    const tide_status st = tide_shape_bytes(shape, *dtype, size_bytes, err);
    if (st == TIDE_OK) return TIDE_OK;
    tide_error_prefix(err, "tensor '%s'", label);
    return st == TIDE_ERR_NOMEM ? st : TIDE_ERR_BAD_INPUT;
}

// ---- content ----

/// The typed field that holds elements of `dtype` (onnx.proto, TensorProto) and how many are in it.
typedef struct typed_field {
    const void *data;
    size_t n;
    tide_dtype stored; // type of the field's elements
} typed_field;

static typed_field typed_field_of(const Onnx__TensorProto *t, tide_dtype dtype) {
    switch (dtype) {
    case TIDE_F32:
        return (typed_field){t->float_data, t->n_float_data, TIDE_F32};
    case TIDE_F64:
        return (typed_field){t->double_data, t->n_double_data, TIDE_F64};
    case TIDE_I64:
        return (typed_field){t->int64_data, t->n_int64_data, TIDE_I64};
    case TIDE_U32:
    case TIDE_U64:
        return (typed_field){t->uint64_data, t->n_uint64_data, TIDE_U64};
    default:
        return (typed_field){t->int32_data, t->n_int32_data, TIDE_I32};
    }
}

static bool is_external(const Onnx__TensorProto *t) {
    return t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/**
 * Check that the content is there: `size_bytes` of it, no more and no less.
 *
 * @return TIDE_ERR_BAD_INPUT, before anything of that size is allocated
 */
static tide_status tensor_check(const Onnx__TensorProto *t, const char *label, tide_dtype dtype,
                                const tide_shape *shape, size_t size_bytes, tide_error *err) {
    if (is_external(t)) return TIDE_OK; // the file is asked when it is read
    size_t there;
    if (t->has_raw_data) {
        there = tide__onnx_raw(t).len;
    } else {
        there = typed_field_of(t, dtype).n * tide_dtype_size(dtype);
    }
    if (there == size_bytes) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "tensor '%s' claims %s %s = %zu bytes, %zu bytes are there", label,
                     tide_dtype_name(dtype), tide_shape_format(shape, text, sizeof text), size_bytes, there);
}

/// Elements from int32_data or uint64_data, which are wider than the type they stand for.
static tide_status narrow(const typed_field *f, const char *label, tide_dtype dtype, void *dst, tide_error *err) {
    for (size_t i = 0; i < f->n; i++) {
        bool fits;
        if (f->stored == TIDE_U64) {
            const uint64_t v = ((const uint64_t *)f->data)[i];
            fits = v <= UINT32_MAX && tide__number_store_int(dst, dtype, i, (int64_t)v);
        } else {
            const int32_t v = ((const int32_t *)f->data)[i];
            if (dtype == TIDE_F16 || dtype == TIDE_BF16) {
                ((uint16_t *)dst)[i] = (uint16_t)v; // the bits of the number, in the low half
                fits = v >= INT16_MIN && v <= UINT16_MAX;
            } else {
                fits = tide__number_store_int(dst, dtype, i, v);
            }
        }
        if (!fits)
            return TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "element %zu of tensor '%s' is no %s", i, label,
                             tide_dtype_name(dtype));
    }
    return TIDE_OK;
}

/// A touched byte of a mapped file may bring a huge page with it: all around goes again too. Of a small file all may
/// stay: a call of the system for each of some hundred constants took longer than all the rest of a plan.
static void copy_from_file(const tide__onnx_bytes *from, const char *src, size_t size_bytes, void *dst) {
    enum { HUGE_BYTES = 2 << 20, SMALL_BYTES = 2 * HUGE_BYTES };
    if (from->len <= SMALL_BYTES) {
        memcpy(dst, src, size_bytes);
        return;
    }
    const size_t at = (size_t)(src - from->data), before = at < HUGE_BYTES ? at : HUGE_BYTES;
    const size_t behind = from->len - at - size_bytes;
    tide_copy_dropping(dst, src, size_bytes);
    tide_pages_drop(src - before, before + size_bytes + (behind < HUGE_BYTES ? behind : HUGE_BYTES));
}

/// Write the content to `dst`.
static tide_status tensor_fill(const Onnx__TensorProto *t, const char *label, const tide__onnx_bytes *from,
                               tide_dtype dtype, size_t size_bytes, void *dst, tide_error *err) {
    if (size_bytes == 0) return TIDE_OK;
    if (is_external(t)) return read_external(t, label, from->path, size_bytes, dst, err);
    const typed_field f = typed_field_of(t, dtype);
    if (t->has_raw_data) {
        const char *src = from->data + tide__onnx_raw(t).offset;
        TIDE_ASSERT(tide__onnx_raw(t).len == size_bytes && tide__onnx_raw(t).offset <= from->len - size_bytes);
        if (from->file != NULL)
            copy_from_file(from, src, size_bytes, dst);
        else
            memcpy(dst, src, size_bytes);
    } else if (f.stored == dtype) {
        memcpy(dst, f.data, size_bytes);
    } else {
        return narrow(&f, label, dtype, dst, err);
    }
    return TIDE_OK;
}

// ---- a constant ----

/// Take the list of numbers out of the message when they already are the tensor's; NULL when they are not.
static void *detach_bytes(Onnx__TensorProto *t, tide_dtype dtype) {
    if (is_external(t) || t->has_raw_data) return NULL;
    void *bytes = NULL;
#define DETACH(field)                                                                                                  \
    bytes = t->field;                                                                                                  \
    t->field = NULL;                                                                                                   \
    t->n_##field = 0
    switch (dtype) {
    case TIDE_F32:
        DETACH(float_data);
        break;
    case TIDE_F64:
        DETACH(double_data);
        break;
    case TIDE_I64:
        DETACH(int64_data);
        break;
    case TIDE_U64:
        DETACH(uint64_data);
        break;
    case TIDE_I32:
        DETACH(int32_data);
        break;
    default:
        break;
    }
#undef DETACH
    return bytes;
}

/// A tensor over the whole of `block`, whose reference is taken (also when this fails).
static tide_status over_block(tide_block *block, tide_dtype dtype, const tide_shape *shape, tide_tensor **out,
                              tide_error *err) {
    tide_storage storage = tide_storage_of_block(block);
    const tide_status st = tide_tensor_create_on(&storage, 0, dtype, shape, out, err);
    tide_storage_deinit(&storage);
    tide_block_unref(block);
    return st;
}

/// A tensor around `bytes` of host memory, which are freed with its last reference (also when this fails).
static tide_status adopt_bytes(void *bytes, size_t size_bytes, const char *label, tide_dtype dtype,
                               const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide_block *block = NULL;
    const tide_status st = tide_block_borrow(bytes, size_bytes, TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, tide_host_free,
                                             bytes, label, &block, err);
    if (st == TIDE_OK) return over_block(block, dtype, shape, out, err);
    tide_host_free(bytes);
    return st;
}

/// Whether the content can stay in the file: at an address that its elements may have, and worth a page of its own.
static bool stays_in_file(const Onnx__TensorProto *t, const tide__onnx_bytes *from, size_t size_bytes,
                          size_t elem_bytes) {
    return from->file != NULL && size_bytes >= TIDE__ONNX_MAP_FROM_BYTES &&
           ((uintptr_t)from->data + tide__onnx_raw(t).offset) % elem_bytes == 0;
}

/// A tensor over a part of the file.
static tide_status over_file(const Onnx__TensorProto *t, const tide__onnx_bytes *from, tide_dtype dtype,
                             const tide_shape *shape, size_t size_bytes, tide_tensor **out, tide_error *err) {
    tide_storage whole = tide_storage_of_block(from->file), part;
    tide_status st = tide_storage_slice(&whole, tide__onnx_raw(t).offset, size_bytes, &part, err);
    tide_storage_deinit(&whole);
    TIDE_TRY(st);
    st = tide_tensor_create_on(&part, 0, dtype, shape, out, err);
    tide_storage_deinit(&part);
    return st;
}

tide_status tide__onnx_tensor_take(Onnx__TensorProto *t, const char *label, const tide__onnx_bytes *from,
                                   tide_tensor **out, tide_error *err) {
    tide_dtype dtype;
    tide_shape shape;
    size_t size_bytes;
    TIDE_TRY(tensor_type(t, label, &dtype, &shape, &size_bytes, err));
    TIDE_TRY(tensor_check(t, label, dtype, &shape, size_bytes, err));
    void *bytes = size_bytes > 0 && !from->is_read_again ? detach_bytes(t, dtype) : NULL;
    if (bytes != NULL) return adopt_bytes(bytes, size_bytes, label, dtype, &shape, out, err);
    if (is_external(t) && size_bytes > 0) {
        TIDE_TRY(read_external(t, label, from->path, size_bytes, NULL, err)); // is it there?
        if (from->graph != NULL) TIDE_TRY(note_file(t, label, from, err));
        tide_block *mapped = map_external(t, label, from, size_bytes, tide_dtype_size(dtype));
        if (mapped != NULL) return over_block(mapped, dtype, &shape, out, err);
    } else if (t->has_raw_data && stays_in_file(t, from, size_bytes, tide_dtype_size(dtype))) {
        return over_file(t, from, dtype, &shape, size_bytes, out, err);
    }
    if (from->contents != NULL && size_bytes > from->contents->one_bytes)
        return tide_tensor_create_unbound(dtype, &shape, TIDE_CPU, out, err);
    tide_tensor *made = NULL;
    TIDE_TRY(tide__constant_create(dtype, &shape, label, &made, err));
    const tide_status st = tensor_fill(t, label, from, dtype, size_bytes, tide_tensor_data(made), err);
    if (st == TIDE_OK) {
        *out = made;
    } else {
        tide_tensor_unref(made);
    }
    return st;
}

// ---- a file with one tensor ----

static tide_status tensor_from_proto(const Onnx__TensorProto *t, const tide__onnx_bytes *from, tide_registry *registry,
                                     tide_memory_kind kind, tide_tensor **out, tide_error *err) {
    const char *label = t->name != NULL && t->name[0] != '\0' ? t->name : tide__path_leaf(from->path);
    tide_tensor_spec spec = {.device = TIDE_CPU, .kind = kind, .registry = registry, .tag = label};
    size_t size_bytes;
    TIDE_TRY(tensor_type(t, label, &spec.dtype, &spec.shape, &size_bytes, err));
    TIDE_TRY(tensor_check(t, label, spec.dtype, &spec.shape, size_bytes, err));
    if (is_external(t) && size_bytes > 0) TIDE_TRY(read_external(t, label, from->path, size_bytes, NULL, err));
    tide_tensor *made = NULL;
    TIDE_TRY(tide_tensor_create(&spec, &made, err));
    const tide_status st = tensor_fill(t, label, from, spec.dtype, size_bytes, tide_tensor_data(made), err);
    if (st == TIDE_OK) {
        *out = made;
    } else {
        tide_tensor_unref(made);
    }
    return st;
}

tide_status tide_tensor_from_pb_file(const char *path, tide_registry *registry, tide_memory_kind kind,
                                     tide_tensor **out, char **name, tide_error *err) {
    char *data = NULL;
    size_t len = 0;
    TIDE_TRY(tide_read_file(path, 0, &data, &len, err));
    const tide__onnx_bytes from = {.data = data, .len = len, .path = path};
    ProtobufCMessage *message = NULL;
    tide_status st;
    if (len == 0) {
        st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "not an ONNX tensor: the file is empty");
    } else {
        st = tide__onnx_unpack(&onnx__tensor_proto__descriptor, &from, 0, &message, err);
    }
    char *copy = NULL;
    if (st == TIDE_OK && name != NULL) {
        copy = tide_host_strdup(tide__onnx_str(((Onnx__TensorProto *)message)->name));
        if (copy == NULL) st = TIDE_NO_MEMORY(err, "for a tensor's name");
    }
    if (st == TIDE_OK) st = tensor_from_proto((Onnx__TensorProto *)message, &from, registry, kind, out, err);
    if (st == TIDE_OK && name != NULL) {
        *name = copy;
    } else {
        tide_host_free(copy);
    }
    if (st != TIDE_OK && err != NULL && err->where[0] == '\0') tide_error_where(err, "%s", path);
    tide__onnx_free(message);
    tide_host_free(data);
    return st;
}
