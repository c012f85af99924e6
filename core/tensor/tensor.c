// SPDX-License-Identifier: MIT
//
// The tensor: creating, access to the bytes, binding to a storage, views, text. See tensor.h; tensor_layout.c has
// shapes and strides, tensor_copy.c what copies elements.
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/log.h"
#include "core/tensor/tensor_internal.h"

// ---- creating and releasing ----

bool tide__tensor_holds(const tide_tensor *t) {
    const tide__layout *l = &t->layout;
    if (!t->has_storage) return t->storage.block == NULL && t->offset_bytes == 0;
    if (!l->known || t->offset_bytes > t->storage.size_bytes) return false;
    if (l->contiguous && (l->reach_bytes != l->size_bytes || l->overlaps)) return false;
    return l->reach_bytes <= t->storage.size_bytes - t->offset_bytes;
}

tide_status tide__tensor_new(tide_dtype dtype, const tide__layout *layout, tide_storage *storage, size_t offset_bytes,
                             tide_device device, tide_tensor **out, tide_error *err) {
    tide_tensor *t = tide_host_calloc(1, sizeof *t);
    if (t == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a tensor object");
    t->refs = 1;
    t->dtype = dtype;
    t->layout = *layout;
    t->storage.device = device;
    if (storage != NULL) {
        t->storage = *storage;
        t->has_storage = true;
        t->offset_bytes = offset_bytes;
        *storage = (tide_storage){.device = t->storage.device};
    }
    TIDE_ASSERT(tide__tensor_holds(t));
    *out = t;
    return TIDE_OK;
}

tide_storage_spec tide__tensor_storage_spec(const tide_tensor_spec *spec) {
    return (tide_storage_spec){.device = spec->device,
                               .kind = spec->kind,
                               .align_bytes = spec->align_bytes,
                               .stream = spec->stream,
                               .registry = spec->registry,
                               .tag = spec->tag};
}

tide_status tide_tensor_create_unbound(tide_dtype dtype, const tide_shape *shape, tide_device device, tide_tensor **out,
                                       tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(dtype, shape, &layout, err));
    return tide__tensor_new(dtype, &layout, NULL, 0, device, out, err);
}

/// The chain of LT-14: byte count, allocator, storage, strides, object.
static tide_status create(const tide_tensor_spec *spec, tide_tensor **out, tide_error *err) {
    TIDE_TRY(tide_memory_kind_check(spec->kind, spec->device, err));
    size_t size_bytes;
    TIDE_TRY(tide_shape_bytes(&spec->shape, spec->dtype, &size_bytes, err));
    const tide_storage_spec where = tide__tensor_storage_spec(spec);
    tide_storage storage = {.device = spec->device};
    TIDE_TRY(tide_storage_create(&where, size_bytes, &storage, err));
    tide__layout layout;
    tide_status st = tide__layout_row_major(spec->dtype, &spec->shape, &layout, err);
    if (st == TIDE_OK) st = tide__tensor_new(spec->dtype, &layout, &storage, 0, spec->device, out, err);
    tide_storage_deinit(&storage); // empty when it was taken
    return st;
}

tide_status tide_tensor_create(const tide_tensor_spec *spec, tide_tensor **out, tide_error *err) {
    const tide_status st = create(spec, out, err);
    if (st != TIDE_OK && spec->tag != NULL) tide_error_prefix(err, "tensor '%s'", spec->tag);
    return st;
}

tide_status tide_tensor_create_on(const tide_storage *storage, size_t offset_bytes, tide_dtype dtype,
                                  const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(dtype, shape, &layout, err));
    TIDE_TRY(tide__layout_check_place(dtype, &layout, storage, offset_bytes, err));
    tide_storage own = tide_storage_ref(storage);
    const tide_status st = tide__tensor_new(dtype, &layout, &own, offset_bytes, own.device, out, err);
    tide_storage_deinit(&own);
    return st;
}

tide_status tide_tensor_borrow(void *data, size_t size_bytes, tide_dtype dtype, const tide_shape *shape,
                               tide_memory_kind kind, tide_tensor **out, tide_error *err) {
    tide_block *block = NULL;
    TIDE_TRY(tide_block_borrow(data, size_bytes, TIDE_CPU, kind, NULL, NULL, NULL, &block, err));
    tide_storage storage = tide_storage_of_block(block);
    tide_block_unref(block);
    const tide_status st = tide_tensor_create_on(&storage, 0, dtype, shape, out, err);
    tide_storage_deinit(&storage);
    return st;
}

tide_tensor *tide_tensor_ref(tide_tensor *t) {
    const uint32_t before = __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
    TIDE_ASSERT(before > 0 && before < UINT32_MAX);
    return t;
}

void tide_tensor_unref(tide_tensor *t) {
    if (t == NULL) return;
    const uint32_t before = __atomic_fetch_sub(&t->refs, 1, __ATOMIC_ACQ_REL);
    TIDE_ASSERT(before > 0);
    if (before != 1) return;
    tide_storage_deinit(&t->storage);
    tide_host_free(t);
}

tide_tensor *tide_tensor_take(tide_tensor **t) {
    tide_tensor *taken = *t;
    *t = NULL;
    return taken;
}

// ---- facts ----

uint32_t tide_tensor_use_count(const tide_tensor *t) { return __atomic_load_n(&t->refs, __ATOMIC_RELAXED); }
tide_dtype tide_tensor_dtype(const tide_tensor *t) { return t->dtype; }
const tide_shape *tide_tensor_shape(const tide_tensor *t) { return &t->layout.shape; }
const int64_t *tide_tensor_strides(const tide_tensor *t) { return t->layout.strides; }
tide_device tide_tensor_device(const tide_tensor *t) { return t->storage.device; }
size_t tide_tensor_offset_bytes(const tide_tensor *t) { return t->offset_bytes; }
size_t tide_tensor_size_bytes(const tide_tensor *t) { return t->layout.size_bytes; }
size_t tide_tensor_capacity_bytes(const tide_tensor *t) { return t->storage.size_bytes - t->offset_bytes; }
bool tide_tensor_is_contiguous(const tide_tensor *t) { return t->layout.contiguous; }
bool tide_tensor_has_known_shape(const tide_tensor *t) { return t->layout.known; }
bool tide_tensor_is_bound(const tide_tensor *t) { return t->storage.block != NULL; }
const tide_storage *tide_tensor_storage(const tide_tensor *t) { return &t->storage; }

tide_memory_kind tide_tensor_kind(const tide_tensor *t) {
    return t->storage.block != NULL ? t->storage.block->kind : TIDE_KIND_DEFAULT;
}

/// The one place where bytes become elements.
int64_t tide_tensor_offset_elements(const tide_tensor *t) {
    return (int64_t)(t->offset_bytes / tide_dtype_size(t->dtype));
}

// ---- access ----

static bool has_bytes(const tide_tensor *t) { return t->layout.size_bytes > 0 && t->storage.block != NULL; }

tide_status tide_tensor_read(const tide_tensor *t, const void **out, tide_error *err) {
    *out = NULL;
    if (!has_bytes(t)) return TIDE_OK;
    TIDE_ASSERT(t->layout.reach_bytes <= t->storage.size_bytes - t->offset_bytes);
    const void *base;
    TIDE_TRY(tide_block_read(t->storage.block, &base, err));
    *out = (const char *)base + t->storage.offset_bytes + t->offset_bytes;
    return TIDE_OK;
}

static tide_status refuse_overlap(const tide_tensor *t, tide_error *err) {
    char text[192];
    const tide_status st =
        TIDE_FAIL(err, TIDE_ERR_INVALID, "a view of shape %s whose elements share bytes cannot be written",
                  tide_shape_format(&t->layout.shape, text, sizeof text));
    tide_error_hint(err, "write to a clone of it");
    return st;
}

tide_status tide_tensor_write(tide_tensor *t, void **out, tide_error *err) {
    *out = NULL;
    if (!has_bytes(t)) return TIDE_OK;
    if (t->layout.overlaps) return refuse_overlap(t, err);
    TIDE_ASSERT(t->layout.reach_bytes <= t->storage.size_bytes - t->offset_bytes);
    void *base;
    TIDE_TRY(tide_block_write(t->storage.block, &base, err));
    *out = (char *)base + t->storage.offset_bytes + t->offset_bytes;
    return TIDE_OK;
}

static void log_reason(const tide_tensor *t, const char *access, const tide_error *err) {
    const char *tag = t->storage.block->tag;
    tide_log(TIDE_LOG_ERROR, "tensor '%s' cannot be %s: %s", tag != NULL ? tag : "?", access, err->msg);
}

void *tide_tensor_data(tide_tensor *t) {
    tide_error err; // filled on failure only: clearing it would cost more than the rest of the call
    void *data;
    if (tide_tensor_write(t, &data, &err) != TIDE_OK) log_reason(t, "written", &err);
    return data;
}

const void *tide_tensor_const_data(const tide_tensor *t) {
    tide_error err;
    const void *data;
    if (tide_tensor_read(t, &data, &err) != TIDE_OK) log_reason(t, "read", &err);
    return data;
}

// ---- shape and element type, changed in place ----

static tide_status no_space(const tide_tensor *t, tide_dtype dtype, const tide__layout *want, tide_error *err) {
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "shape %s of %s needs %zu B, the tensor has room for %zu B",
                     tide_shape_format(&want->shape, text, sizeof text), tide_dtype_name(dtype), want->reach_bytes,
                     tide_tensor_capacity_bytes(t));
}

tide_status tide_tensor_set_shape(tide_tensor *t, const tide_shape *shape, tide_error *err) {
    tide__layout want;
    TIDE_TRY(tide__layout_row_major(t->dtype, shape, &want, err));
    if (t->has_storage) {
        if (want.known && want.reach_bytes > tide_tensor_capacity_bytes(t)) return no_space(t, t->dtype, &want, err);
        TIDE_TRY(tide__layout_check_place(t->dtype, &want, &t->storage, t->offset_bytes, err));
    }
    t->layout = want;
    TIDE_ASSERT(tide__tensor_holds(t));
    return TIDE_OK;
}

tide_status tide_tensor_set_dtype(tide_tensor *t, tide_dtype dtype, tide_error *err) {
    tide__layout want;
    // Strides are elements, so they stay as they are, contiguous or not.
    if (t->layout.known)
        TIDE_TRY(tide__layout_strided(dtype, &t->layout.shape, t->layout.strides, &want, err));
    else
        TIDE_TRY(tide__layout_row_major(dtype, &t->layout.shape, &want, err));
    if (t->has_storage) {
        if (want.reach_bytes > tide_tensor_capacity_bytes(t)) return no_space(t, dtype, &want, err);
        TIDE_TRY(tide__layout_check_place(dtype, &want, &t->storage, t->offset_bytes, err));
    }
    t->dtype = dtype;
    t->layout = want;
    TIDE_ASSERT(tide__tensor_holds(t));
    return TIDE_OK;
}

// ---- binding ----
//
// A tensor holds a slice of its own, so that binding one never moves another that used the same storage (S28-16).

/// Row-major over `fresh`, whose reference moves into the tensor.
static void settle(tide_tensor *t, tide_storage fresh, size_t offset_bytes, const tide__layout *layout) {
    tide_storage_deinit(&t->storage);
    t->storage = fresh;
    t->offset_bytes = offset_bytes;
    t->has_storage = true;
    t->layout = *layout;
    TIDE_ASSERT(tide__tensor_holds(t));
}

tide_status tide_tensor_bind(tide_tensor *t, const tide_storage *storage, size_t offset_bytes, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(t->dtype, &t->layout.shape, &layout, err));
    TIDE_TRY(tide__layout_check_place(t->dtype, &layout, storage, offset_bytes, err));
    // Referenced before the old one is dropped: both may be the same block.
    settle(t, tide_storage_ref(storage), offset_bytes, &layout);
    return TIDE_OK;
}

tide_status tide_tensor_bind_external(tide_tensor *t, tide_data_ptr *ptr, size_t size_bytes, tide_memory_kind kind,
                                      const char *tag, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(t->dtype, &t->layout.shape, &layout, err));
    TIDE_TRY(tide__layout_check_room(t->dtype, &layout, ptr->data, size_bytes, 0, err));
    tide_storage fresh = {.device = ptr->device};
    TIDE_TRY(tide_storage_adopt(ptr, size_bytes, kind, tag, &fresh, err));
    settle(t, fresh, 0, &layout);
    return TIDE_OK;
}

void tide_tensor_unbind(tide_tensor *t) {
    tide_storage_deinit(&t->storage);
    t->offset_bytes = 0;
    t->has_storage = false;
    // Strides over nothing mean nothing. A shape that was counted once can be counted again.
    tide__layout layout;
    if (tide__layout_row_major(t->dtype, &t->layout.shape, &layout, NULL) == TIDE_OK) t->layout = layout;
    TIDE_ASSERT(tide__tensor_holds(t));
}

void tide_tensor_reset(tide_tensor *t) {
    t->layout.shape = (tide_shape){.rank = 1};
    tide_tensor_unbind(t);
}

// ---- views ----
//
// Other layouts of the same storage. Each is a tensor of its own; none copies a byte.
//
//     base   [3x4]     | 00 01 02 03 | 10 11 12 13 | 20 21 22 23 |
//     slice  rows 1-2                | 10 11 12 13 | 20 21 22 23 |     offset 4, strides [4,1]
//     slice  columns 0,2  00    02     10    12      20    22          offset 0, strides [4,2]
//     permute          [4x3]                                           offset 0, strides [1,4]

static tide_status make_view(const tide_tensor *t, const tide_shape *shape, const int64_t *strides, size_t offset_bytes,
                             tide_tensor **out, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_strided(t->dtype, shape, strides, &layout, err));
    TIDE_TRY(tide__layout_check_place(t->dtype, &layout, &t->storage, offset_bytes, err));
    tide_storage own = tide_storage_ref(&t->storage);
    const tide_status st = tide__tensor_new(t->dtype, &layout, &own, offset_bytes, own.device, out, err);
    tide_storage_deinit(&own);
    return st;
}

static tide_status need_storage(const tide_tensor *t, const char *verb, tide_error *err) {
    if (t->has_storage) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "a tensor of shape %s without a storage cannot be %s",
                     tide_shape_format(&t->layout.shape, text, sizeof text), verb);
}

static tide_status need_dim(const tide_tensor *t, int32_t dim, tide_error *err) {
    if (dim >= 0 && dim < t->layout.shape.rank) return TIDE_OK;
    char text[192];
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s has no dimension %" PRId32,
                     tide_shape_format(&t->layout.shape, text, sizeof text), dim);
}

tide_status tide_tensor_view(tide_tensor *t, const tide_shape *shape, tide_tensor **out, tide_error *err) {
    tide__layout layout;
    char from[192], to[192];
    TIDE_TRY(tide__layout_row_major(t->dtype, shape, &layout, err));
    if (!layout.known || !t->layout.known || layout.size_bytes != t->layout.size_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s cannot be viewed as %s: %s number of elements",
                         tide_shape_format(&t->layout.shape, from, sizeof from),
                         tide_shape_format(shape, to, sizeof to),
                         layout.known && t->layout.known ? "other" : "unknown");
    if (!t->layout.contiguous)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s with gaps cannot be viewed as %s",
                         tide_shape_format(&t->layout.shape, from, sizeof from),
                         tide_shape_format(shape, to, sizeof to));
    if (t->has_storage) return tide_tensor_create_on(&t->storage, t->offset_bytes, t->dtype, shape, out, err);
    return tide__tensor_new(t->dtype, &layout, NULL, 0, t->storage.device, out, err);
}

tide_status tide_tensor_slice(tide_tensor *t, int32_t dim, int64_t begin, int64_t end, int64_t step, tide_tensor **out,
                              tide_error *err) {
    TIDE_TRY(need_storage(t, "sliced", err));
    TIDE_TRY(need_dim(t, dim, err));
    tide_shape shape = t->layout.shape;
    if (begin < 0 || end < begin || end > shape.dims[dim] || step < 1) {
        char text[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID,
                         "elements %" PRId64 " to %" PRId64 " in steps of %" PRId64
                         " are no slice of dimension %" PRId32 " of shape %s",
                         begin, end, step, dim, tide_shape_format(&t->layout.shape, text, sizeof text));
    }
    int64_t strides[TIDE_MAX_RANK];
    for (int32_t i = 0; i < shape.rank; i++) strides[i] = t->layout.strides[i];
    shape.dims[dim] = end > begin ? 1 + (end - begin - 1) / step : 0;
    // A view without elements begins where its base does (its first element might lie behind the end) and its strides
    // mean nothing. Of others nothing overflows: with two elements or more, all that is counted lies inside the base.
    TIDE_ASSERT(shape.dims[dim] == 0 || begin + (shape.dims[dim] - 1) * step < end);
    const bool has_elements = t->layout.size_bytes > 0 && shape.dims[dim] > 0;
    if (has_elements && shape.dims[dim] > 1) strides[dim] *= step;
    const size_t skipped =
        has_elements ? (size_t)(begin * t->layout.strides[dim]) * tide_dtype_size(t->dtype) : (size_t)0;
    return make_view(t, &shape, strides, t->offset_bytes + skipped, out, err);
}

tide_status tide_tensor_permute(tide_tensor *t, const int32_t *order, tide_tensor **out, tide_error *err) {
    TIDE_TRY(need_storage(t, "permuted", err));
    tide_shape shape = {.rank = t->layout.shape.rank};
    int64_t strides[TIDE_MAX_RANK] = {0};
    uint32_t seen = 0;
    for (int32_t i = 0; i < shape.rank; i++) {
        TIDE_TRY(need_dim(t, order[i], err));
        if ((seen >> order[i] & 1) != 0)
            return TIDE_FAIL(err, TIDE_ERR_INVALID, "dimension %" PRId32 " stands twice in an order of dimensions",
                             order[i]);
        seen |= UINT32_C(1) << order[i];
        shape.dims[i] = t->layout.shape.dims[order[i]];
        strides[i] = t->layout.strides[order[i]];
    }
    TIDE_ASSERT(seen == (UINT64_C(1) << shape.rank) - 1);
    return make_view(t, &shape, strides, t->offset_bytes, out, err);
}

tide_status tide_tensor_expand(tide_tensor *t, const tide_shape *shape, tide_tensor **out, tide_error *err) {
    TIDE_TRY(need_storage(t, "expanded", err));
    const tide_shape *from = &t->layout.shape;
    const int32_t added = shape->rank - from->rank; // new outermost dimensions, all repeated
    int64_t strides[TIDE_MAX_RANK] = {0};
    bool agree = added >= 0 && shape->rank <= TIDE_MAX_RANK;
    for (int32_t i = 0; agree && i < from->rank; i++) {
        const int64_t have = from->dims[i], want = shape->dims[i + added];
        if (have == want)
            strides[i + added] = t->layout.strides[i];
        else
            agree = have == 1;
    }
    if (!agree) {
        char a[192], b[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "shape %s cannot be expanded to %s",
                         tide_shape_format(from, a, sizeof a), tide_shape_format(shape, b, sizeof b));
    }
    return make_view(t, shape, strides, t->offset_bytes, out, err);
}

tide_status tide_tensor_as_strided(tide_tensor *t, const tide_shape *shape, const int64_t *strides,
                                   int64_t offset_elements, tide_tensor **out, tide_error *err) {
    TIDE_TRY(need_storage(t, "seen with other strides", err));
    int64_t offset_bytes;
    if (offset_elements < 0 || !tide_mul_i64(offset_elements, (int64_t)tide_dtype_size(t->dtype), &offset_bytes))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "offset of %" PRId64 " elements of %s", offset_elements,
                         tide_dtype_name(t->dtype));
    return make_view(t, shape, strides, (size_t)offset_bytes, out, err);
}

// ---- text, for debugging (S28-1) ----

static void add_strides(const tide_tensor *t, tide_text *out) {
    tide_text_add(out, "[");
    for (int32_t i = 0; i < t->layout.shape.rank; i++)
        tide_text_addf(out, "%s%" PRId64, i > 0 ? "," : "", t->layout.strides[i]);
    tide_text_add(out, "]");
}

static const char *form(const tide__layout *l) {
    if (!l->known) return "shape not known yet";
    if (l->contiguous) return "contiguous";
    return l->overlaps ? "strided, elements share bytes" : "strided";
}

void tide_tensor_describe(const tide_tensor *t, tide_text *out) {
    char shape[192], device[32];
    tide_text_addf(out, "tensor %s %s strides ", tide_dtype_name(t->dtype),
                   tide_shape_format(&t->layout.shape, shape, sizeof shape));
    add_strides(t, out);
    tide_text_addf(
        out, " offset %zu B, size %zu B of capacity %zu B, alignment %zu B, %s, %s, references %" PRIu32 "\n",
        t->offset_bytes, t->layout.size_bytes, tide_tensor_capacity_bytes(t),
        t->storage.block != NULL ? t->storage.block->align_bytes : (size_t)0,
        tide_device_format(t->storage.device, device, sizeof device), form(&t->layout), tide_tensor_use_count(t));
    if (t->has_storage)
        tide_storage_describe(&t->storage, out);
    else
        tide_text_addf(out, "no storage, device %s", device);
    if (out->len > 0 && out->data[out->len - 1] != '\n') tide_text_add(out, "\n");
}
