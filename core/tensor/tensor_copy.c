// SPDX-License-Identifier: MIT
//
// Copies of tensors: now (clone, contiguous) or when one of the two is first written (lazy clone). See tensor.h.
#include <string.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/device/backend.h"
#include "core/tensor/tensor_internal.h"

// ---- bytes ----

static bool is_cpu(tide_device d) { return d.type == TIDE_DEVICE_CPU; }

/// Copy bytes from `src` to the start of `dst`, whatever their devices, after all work queued on the blocks' last
/// streams, and wait for it.
static tide_status fill_from(const tide_storage *dst, const tide_storage *src, size_t src_offset_bytes,
                             size_t size_bytes, tide_error *err) {
    TIDE_ASSERT(size_bytes <= dst->size_bytes && src_offset_bytes + size_bytes <= src->size_bytes);
    if (size_bytes == 0) return TIDE_OK;
    void *to;
    const void *base;
    TIDE_TRY(tide_storage_read(src, &base, err));
    TIDE_TRY(tide_storage_write(dst, &to, err));
    const void *from = (const char *)base + src_offset_bytes;
    tide_storage_wait(src);
    tide_storage_wait(dst);
    if (is_cpu(dst->device) && is_cpu(src->device)) {
        memcpy(to, from, size_bytes);
        return TIDE_OK;
    }
    // Both are idle now, so that the stream matters little: the new owner's where it is one of the devices that copy.
    const bool on_dst = is_cpu(src->device) || tide_device_equal(src->device, dst->device);
    return tide_device_transfer(dst->device, to, src->device, from, size_bytes, on_dst ? dst->block->last_stream : 0,
                                err);
}

// ---- memory ----

/// Fresh memory as the block of `t` was made: its allocator, kind, alignment, tag.
/// @return TIDE_ERR_INVALID when `t` has no block or no allocator gave it
static tide_status storage_like(const tide_tensor *t, size_t size_bytes, tide_storage *out, tide_error *err) {
    const tide_block *b = t->storage.block;
    if (b == NULL || b->owner == NULL)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "tensor '%s' has no allocator to take %zu B from",
                         b != NULL && b->tag != NULL ? b->tag : "?", size_bytes);
    const size_t align = b->align_bytes != 0 ? b->align_bytes : tide_memory_kind_alignment(b->kind, b->device);
    uint64_t rounded;
    if (!tide_align_up(size_bytes, align, &rounded))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu B rounded up to %zu do not fit into 64 bits", size_bytes, align);
    const tide_block_request req = {.owner = b->owner,
                                    .size_bytes = (size_t)rounded,
                                    .align_bytes = align,
                                    .kind = b->kind,
                                    .stream = b->last_stream,
                                    .tag = b->tag};
    tide_block *fresh = NULL;
    TIDE_TRY(tide_block_make(&req, &fresh, err));
    *out = tide_storage_of_block(fresh);
    tide_block_unref(fresh);
    return TIDE_OK;
}

/// Memory for a copy: by `where`, else as the block was made. Memory that no allocator gave has no such way; its copy
/// comes from the registry of the process, for the same device and kind.
static tide_status take_memory(const tide_tensor *t, const tide_tensor_spec *where, size_t size_bytes,
                               tide_storage *out, tide_error *err) {
    const tide_block *b = t->storage.block;
    if (where == NULL && size_bytes > 0 && b != NULL && b->owner != NULL) return storage_like(t, size_bytes, out, err);
    const tide_storage_spec spec = where != NULL ? tide__tensor_storage_spec(where)
                                                 : (tide_storage_spec){.device = t->storage.device,
                                                                       .kind = tide_tensor_kind(t),
                                                                       .tag = b != NULL ? b->tag : NULL};
    return tide_storage_create(&spec, size_bytes, out, err);
}

// ---- strided elements ----

/// Dimensions that are walked, outermost first: those of extent 1 left out, neighbours without a gap between made one.
typedef struct walk {
    int32_t rank;
    int64_t dims[TIDE_MAX_RANK];
    int64_t steps[TIDE_MAX_RANK]; // bytes
} walk;

static walk walk_of(const tide__layout *l, size_t elem_bytes) {
    walk w = {0};
    for (int32_t i = 0; i < l->shape.rank; i++) {
        if (l->shape.dims[i] == 1) continue;
        const int64_t step = l->strides[i] * (int64_t)elem_bytes;
        if (w.rank > 0 && w.steps[w.rank - 1] == step * l->shape.dims[i]) {
            w.dims[w.rank - 1] *= l->shape.dims[i];
            w.steps[w.rank - 1] = step;
            continue;
        }
        w.dims[w.rank] = l->shape.dims[i];
        w.steps[w.rank++] = step;
    }
    TIDE_ASSERT(w.rank <= l->shape.rank);
    if (w.rank == 0) w = (walk){.rank = 1, .dims = {1}, .steps = {(int64_t)elem_bytes}};
    return w;
}

/// One run of the innermost dimension. The sizes are spelled out so that each becomes one move.
static void gather_run(char *dst, const char *src, int64_t n, int64_t step, size_t elem_bytes) {
    if (step == (int64_t)elem_bytes) {
        memcpy(dst, src, (size_t)n * elem_bytes);
        return;
    }
#define RUN(bytes)                                                                                                     \
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * (bytes), src + i * step, (bytes))
    switch (elem_bytes) {
    case 1:
        RUN(1);
        break;
    case 2:
        RUN(2);
        break;
    case 4:
        RUN(4);
        break;
    default:
        RUN(8);
        break;
    }
#undef RUN
}

/// The elements in row-major order, side by side.
static void gather(const tide_tensor *t, const char *src, char *dst) {
    const size_t elem_bytes = tide_dtype_size(t->dtype);
    const walk w = walk_of(&t->layout, elem_bytes);
    const int32_t inner = w.rank - 1;
    const size_t run_bytes = (size_t)w.dims[inner] * elem_bytes;
    TIDE_ASSERT(run_bytes > 0 && t->layout.size_bytes % run_bytes == 0);
    int64_t at[TIDE_MAX_RANK] = {0};
    for (size_t done = 0; done < t->layout.size_bytes; done += run_bytes) {
        gather_run(dst + done, src, w.dims[inner], w.steps[inner], elem_bytes);
        for (int32_t i = inner; i-- > 0;) { // one on, as an odometer
            src += w.steps[i];
            if (++at[i] < w.dims[i]) break;
            src -= at[i] * w.steps[i];
            at[i] = 0;
        }
    }
}

static tide_status gather_into(const tide_storage *dst, const tide_tensor *t, tide_error *err) {
    TIDE_ASSERT(!t->layout.contiguous && dst->size_bytes >= t->layout.size_bytes);
    const void *from;
    void *to;
    TIDE_TRY(tide_tensor_read(t, &from, err));
    TIDE_TRY(tide_storage_write(dst, &to, err));
    tide_storage_wait(&t->storage);
    tide_storage_wait(dst);
    gather(t, from, to);
    return TIDE_OK;
}

// ---- clone ----

static tide_status check_clone(const tide_tensor *t, tide_device to, tide_error *err) {
    if (!t->layout.known || (t->layout.size_bytes > 0 && t->storage.block == NULL))
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a tensor without a storage has nothing to clone");
    if (!t->layout.contiguous && !is_cpu(t->storage.device))
        return TIDE_FAIL(err, TIDE_ERR_NOT_IMPLEMENTED, "strided elements can be copied on the CPU only");
    TIDE_TRY(tide_device_require(t->storage.device, err));
    return tide_device_require(to, err);
}

/// Contiguous elements, or strided ones from CPU to CPU.
static tide_status clone_to(const tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out, tide_error *err) {
    tide__layout layout;
    TIDE_TRY(tide__layout_row_major(t->dtype, &t->layout.shape, &layout, err));
    tide_storage storage = {.device = where != NULL ? where->device : t->storage.device};
    TIDE_TRY(take_memory(t, where, layout.size_bytes, &storage, err));
    tide_status st = TIDE_OK;
    if (!t->layout.contiguous)
        st = gather_into(&storage, t, err);
    else
        st = fill_from(&storage, &t->storage, t->offset_bytes, layout.size_bytes, err);
    if (st == TIDE_OK) st = tide__tensor_new(t->dtype, &layout, &storage, 0, storage.device, out, err);
    tide_storage_deinit(&storage);
    return st;
}

tide_status tide_tensor_clone(const tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out, tide_error *err) {
    const tide_device to = where != NULL ? where->device : t->storage.device;
    TIDE_TRY(check_clone(t, to, err));
    if (t->layout.contiguous || is_cpu(to)) return clone_to(t, where, out, err);
    // Laid side by side here first: a device copies runs of bytes.
    tide_tensor *flat = NULL;
    TIDE_TRY(clone_to(t, NULL, &flat, err));
    const tide_status st = clone_to(flat, where, out, err);
    tide_tensor_unref(flat);
    return st;
}

tide_status tide_tensor_contiguous(tide_tensor *t, tide_tensor **out, tide_error *err) {
    if (!t->layout.contiguous) return tide_tensor_clone(t, NULL, out, err);
    *out = tide_tensor_ref(t);
    return TIDE_OK;
}

// ---- lazy clone ----

/// Whether sharing gives what `where` asks for.
static bool can_share(const tide_tensor *t, const tide_tensor_spec *where) {
    const tide_block *b = t->storage.block;
    if (b == NULL) return false;
    if (where == NULL) return true;
    if (!tide_device_equal(where->device, b->device) || where->kind != b->kind) return false;
    return where->align_bytes == 0 || (uintptr_t)tide_block_address(b) % where->align_bytes == 0;
}

static tide_stream_id stream_of(const tide_tensor *t, const tide_tensor_spec *where) {
    if (where == NULL) return t->storage.block->last_stream;
    if (where->stream != TIDE_STREAM_CURRENT) return where->stream;
    tide_registry *registry = where->registry != NULL ? where->registry : tide_registry_default();
    return registry != NULL ? tide_registry_current_stream(registry, t->storage.device) : 0;
}

tide_status tide_tensor_lazy_clone(tide_tensor *t, const tide_tensor_spec *where, tide_tensor **out, bool *copied,
                                   tide_error *err) {
    bool cloned = false;
    tide_tensor *twin = NULL;
    if (can_share(t, where)) {
        // The object first: marking the original comes last, so that a failure leaves nothing behind.
        TIDE_TRY(tide__tensor_new(t->dtype, &t->layout, NULL, 0, t->storage.device, &twin, err));
        const tide_status st = tide_storage_lazy_clone(&t->storage, stream_of(t, where), &twin->storage, &cloned, err);
        if (st != TIDE_OK || !cloned) tide_tensor_unref(twin);
        if (st != TIDE_OK) return st;
    }
    if (!cloned) {
        TIDE_TRY(tide_tensor_clone(t, where, out, err));
    } else {
        twin->offset_bytes = t->offset_bytes;
        twin->has_storage = true;
        TIDE_ASSERT(tide__tensor_holds(twin) && tide_tensor_is_alias(t, twin));
        *out = twin;
    }
    if (copied != NULL) *copied = !cloned && t->layout.size_bytes > 0;
    return TIDE_OK;
}

bool tide_tensor_is_cow(const tide_tensor *t) {
    return t->storage.block != NULL && tide_block_is_cow(t->storage.block);
}

bool tide_tensor_is_alias(const tide_tensor *a, const tide_tensor *b) {
    return tide_storage_is_alias(&a->storage, &b->storage);
}

// ---- resize ----
//
// A shape that may need more memory than there is:
//
//     need                         the block is not shared        shared with others
//     no more than the old bytes   shape only                     shape only
//     up to the capacity           shape, new tail zeroed         fresh memory: the rest belongs to the others
//     more                         fresh memory                   fresh memory
//
// A tensor of no elements may stand at any byte: where its first element may not, it takes fresh memory too.

/// Fresh memory with the old bytes and zeros behind them.
static tide_status take_fresh(const tide_tensor *t, const tide_tensor_spec *where, size_t have_bytes, size_t want_bytes,
                              tide_storage *out, tide_error *err) {
    tide_storage fresh = {.device = t->storage.device};
    if (where != NULL) {
        const tide_storage_spec spec = tide__tensor_storage_spec(where);
        TIDE_TRY(tide_storage_create(&spec, want_bytes, &fresh, err));
    } else {
        TIDE_TRY(storage_like(t, want_bytes, &fresh, err));
    }
    TIDE_ASSERT(have_bytes <= fresh.size_bytes && want_bytes <= fresh.size_bytes);
    tide_status st = fill_from(&fresh, &t->storage, t->offset_bytes, have_bytes, err);
    if (st == TIDE_OK) st = tide_storage_zero(&fresh, have_bytes, fresh.size_bytes - have_bytes, err);
    if (st != TIDE_OK) {
        tide_storage_deinit(&fresh);
        return st;
    }
    *out = fresh;
    return TIDE_OK;
}

tide_status tide_tensor_resize(tide_tensor *t, const tide_shape *shape, const tide_tensor_spec *where,
                               tide_error *err) {
    size_t want_bytes;
    tide__layout want;
    TIDE_TRY(tide_shape_bytes(shape, t->dtype, &want_bytes, err)); // refuses unknown extents
    TIDE_TRY(tide__layout_row_major(t->dtype, shape, &want, err));
    if (t->layout.known && !t->layout.contiguous) {
        char text[192];
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a strided view of shape %s cannot be resized",
                         tide_shape_format(&t->layout.shape, text, sizeof text));
    }
    const size_t have_bytes = tide_tensor_is_bound(t) ? t->layout.size_bytes : 0;
    if (want_bytes > have_bytes) {
        if (tide_storage_is_unique(&t->storage) &&
            tide__layout_check_place(t->dtype, &want, &t->storage, t->offset_bytes, NULL) == TIDE_OK) {
            TIDE_TRY(tide_storage_zero(&t->storage, t->offset_bytes + have_bytes, want_bytes - have_bytes, err));
        } else {
            tide_storage fresh;
            TIDE_TRY(take_fresh(t, where, have_bytes, want_bytes, &fresh, err));
            tide_storage_deinit(&t->storage);
            t->storage = fresh;
            t->offset_bytes = 0;
            t->has_storage = true;
        }
    }
    t->layout = want;
    return TIDE_OK;
}
