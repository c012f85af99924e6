// SPDX-License-Identifier: MIT
//
// buffer set: declared first, then made all at once. See buffer_set.h.
//
// One group of (device, kind) is one block. Every buffer's bytes are a multiple of its alignment and alignments are
// powers of two, so laying the strictest first needs no padding, and the block is exactly as large as the sum:
//
//     | align 4096: a  | align 256: b |  c       | align 64: d |
//     0                8192           8448       9472          9536
#include "core/tensor/buffer_set.h"

#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

enum { NO_BUFFER = -1 };

typedef struct item {
    tide_dtype dtype;
    tide_shape shape;
    int64_t buffer; // a view's buffer; NO_BUFFER: is one itself
    // of a buffer
    tide_device device;
    tide_memory_kind kind;
    size_t align_bytes;
    size_t size_bytes;
    uint64_t rounded_bytes;
    bool placed; // while preparing: its group has been laid out
    // of a view, from its buffer; of a buffer, from its group's block
    uint64_t offset_bytes;
    tide_tensor *tensor; // owned; NULL until prepared
} item;

struct tide_buffer_set {
    tide_registry *registry; // borrowed; NULL: the process's
    item *items;             // [n]
    size_t n, cap;
    uint64_t total_bytes;
    bool prepared;
};

// ---- declaring ----

tide_status tide_buffer_set_create(tide_registry *registry, tide_buffer_set **out, tide_error *err) {
    tide_buffer_set *s = tide_host_calloc(1, sizeof *s);
    if (s == NULL) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for a buffer set");
    s->registry = registry;
    *out = s;
    return TIDE_OK;
}

static void drop_tensors(tide_buffer_set *s) {
    for (size_t i = 0; i < s->n; i++) {
        tide_tensor_unref(s->items[i].tensor);
        s->items[i].tensor = NULL;
    }
}

void tide_buffer_set_destroy(tide_buffer_set *s) {
    if (s == NULL) return;
    drop_tensors(s);
    tide_host_free(s->items);
    tide_host_free(s);
}

static tide_status add(tide_buffer_set *s, const item *it, size_t *index, tide_error *err) {
    if (s->prepared) return TIDE_FAIL(err, TIDE_ERR_BUSY, "the buffer set is prepared: nothing can be added");
    if (tide_host_grow(&s->items, &s->cap, s->n + 1, sizeof *s->items) != TIDE_OK)
        return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no host memory for entry %zu of a buffer set", s->n);
    *index = s->n;
    s->items[s->n++] = *it;
    return TIDE_OK;
}

static tide_status check_buffer(const tide_tensor_spec *spec, item *it, tide_error *err) {
    TIDE_TRY(tide_memory_kind_check(spec->kind, spec->device, err));
    TIDE_TRY(tide_shape_bytes(&spec->shape, spec->dtype, &it->size_bytes, err));
    size_t align = spec->align_bytes != 0 ? spec->align_bytes : tide_memory_kind_alignment(spec->kind, spec->device);
    if (!tide_is_pow2(align)) return TIDE_FAIL(err, TIDE_ERR_INVALID, "alignment %zu is not a power of two", align);
    if (align < tide_dtype_size(spec->dtype)) align = tide_dtype_size(spec->dtype); // neighbours may end anywhere
    if (!tide_align_up(it->size_bytes, align, &it->rounded_bytes))
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%zu B rounded up to %zu do not fit into 64 bits", it->size_bytes,
                         align);
    it->align_bytes = align;
    return TIDE_OK;
}

tide_status tide_buffer_set_add_buffer(tide_buffer_set *s, const tide_tensor_spec *spec, size_t *index,
                                       tide_error *err) {
    item it = {
        .dtype = spec->dtype, .shape = spec->shape, .buffer = NO_BUFFER, .device = spec->device, .kind = spec->kind};
    uint64_t total = 0;
    tide_status st = check_buffer(spec, &it, err);
    if (st == TIDE_OK && !tide_add_u64(s->total_bytes, it.rounded_bytes, &total))
        st = TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "%" PRIu64 " B and %" PRIu64 " B more do not fit into 64 bits",
                       s->total_bytes, it.rounded_bytes);
    if (st == TIDE_OK) st = add(s, &it, index, err);
    if (st == TIDE_OK) s->total_bytes = total;
    if (st != TIDE_OK && spec->tag != NULL) tide_error_prefix(err, "buffer '%s'", spec->tag);
    return st;
}

tide_status tide_buffer_set_add_view(tide_buffer_set *s, size_t buffer, size_t offset_bytes, tide_dtype dtype,
                                     const tide_shape *shape, size_t *index, tide_error *err) {
    if (buffer >= s->n || s->items[buffer].buffer != NO_BUFFER)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "entry %zu of the buffer set is no buffer", buffer);
    const item *b = &s->items[buffer];
    size_t size_bytes;
    TIDE_TRY(tide_shape_bytes(shape, dtype, &size_bytes, err));
    if (offset_bytes > b->size_bytes || size_bytes > b->size_bytes - offset_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a view of %zu B does not fit at offset %zu of buffer %zu of %zu B",
                         size_bytes, offset_bytes, buffer, b->size_bytes);
    const size_t elem_bytes = tide_dtype_size(dtype);
    if (offset_bytes % elem_bytes != 0 || b->align_bytes % elem_bytes != 0)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "a view of %s at offset %zu of a buffer aligned to %zu B",
                         tide_dtype_name(dtype), offset_bytes, b->align_bytes);
    const item it = {.dtype = dtype, .shape = *shape, .buffer = (int64_t)buffer, .offset_bytes = offset_bytes};
    return add(s, &it, index, err);
}

uint64_t tide_buffer_set_total_bytes(const tide_buffer_set *s) { return s->total_bytes; }

// ---- creating ----

static bool same_group(const item *a, const item *b) {
    return b->buffer == NO_BUFFER && a->kind == b->kind && tide_device_equal(a->device, b->device);
}

/// Offsets of all buffers of the first one's group, strictest alignment first, then in the order they were declared.
static void place_group(tide_buffer_set *s, size_t first, size_t *bytes, size_t *align) {
    size_t cursor = 0, strictest = 0;
    for (;;) {
        size_t next = SIZE_MAX;
        for (size_t i = first; i < s->n; i++) {
            if (s->items[i].placed || !same_group(&s->items[first], &s->items[i])) continue;
            if (next == SIZE_MAX || s->items[i].align_bytes > s->items[next].align_bytes) next = i;
        }
        if (next == SIZE_MAX) break;
        item *it = &s->items[next];
        TIDE_ASSERT(cursor % it->align_bytes == 0); // the strictest go first
        it->placed = true;
        it->offset_bytes = cursor;
        cursor += it->rounded_bytes; // the sum of all did not overflow when they were added
        if (strictest == 0) strictest = it->align_bytes;
    }
    *bytes = cursor;
    *align = strictest;
}

static tide_status take_block(tide_buffer_set *s, const item *first, size_t bytes, size_t align, tide_storage *out,
                              tide_error *err) {
    *out = (tide_storage){.device = first->device};
    if (bytes == 0) return TIDE_OK;
    tide_registry *registry = s->registry != NULL ? s->registry : tide_registry_default();
    if (registry == NULL) return TIDE_NO_MEMORY(err, "for the registry of the process");
    tide_allocator *owner = NULL;
    TIDE_TRY(tide_registry_acquire(registry, first->device, first->kind, &owner, err));
    const tide_block_request req = {
        .owner = owner, .size_bytes = bytes, .align_bytes = align, .kind = first->kind, .tag = "buffer set"};
    tide_block *block = NULL;
    const tide_status st = tide_block_make(&req, &block, err);
    tide_allocator_unref(owner);
    if (st != TIDE_OK) return st;
    *out = tide_storage_of_block(block);
    tide_block_unref(block);
    return TIDE_OK;
}

static tide_status make_buffer(item *it, const tide_storage *whole, tide_error *err) {
    tide_storage slice = {.device = it->device};
    if (it->size_bytes > 0)
        TIDE_TRY(tide_storage_slice(whole, (size_t)it->offset_bytes, (size_t)it->rounded_bytes, &slice, err));
    TIDE_ASSERT(slice.size_bytes == 0 || (uintptr_t)tide_storage_data(&slice) % it->align_bytes == 0);
    const tide_status st = tide_tensor_create_on(&slice, 0, it->dtype, &it->shape, &it->tensor, err);
    tide_storage_deinit(&slice);
    return st;
}

static tide_status make_group(tide_buffer_set *s, size_t first, tide_error *err) {
    size_t bytes, align;
    tide_storage whole;
    place_group(s, first, &bytes, &align);
    TIDE_TRY(take_block(s, &s->items[first], bytes, align, &whole, err));
    TIDE_ASSERT(bytes <= s->total_bytes && whole.size_bytes == bytes);
    tide_status st = TIDE_OK;
    for (size_t i = first; i < s->n && st == TIDE_OK; i++) {
        if (same_group(&s->items[first], &s->items[i])) st = make_buffer(&s->items[i], &whole, err);
    }
    tide_storage_deinit(&whole); // the tensors hold it now
    return st;
}

static tide_status make_view(tide_buffer_set *s, item *it, tide_error *err) {
    TIDE_ASSERT(it->buffer >= 0 && (size_t)it->buffer < s->n && s->items[it->buffer].tensor != NULL);
    const tide_tensor *buffer = s->items[it->buffer].tensor;
    return tide_tensor_create_on(tide_tensor_storage(buffer), (size_t)it->offset_bytes, it->dtype, &it->shape,
                                 &it->tensor, err);
}

tide_status tide_buffer_set_prepare(tide_buffer_set *s, tide_error *err) {
    if (s->prepared) return TIDE_OK;
    tide_status st = TIDE_OK;
    for (size_t i = 0; i < s->n; i++) s->items[i].placed = false;
    for (size_t i = 0; i < s->n && st == TIDE_OK; i++) {
        if (s->items[i].buffer == NO_BUFFER && !s->items[i].placed) st = make_group(s, i, err);
    }
    for (size_t i = 0; i < s->n && st == TIDE_OK; i++) {
        if (s->items[i].buffer != NO_BUFFER) st = make_view(s, &s->items[i], err);
    }
    s->prepared = st == TIDE_OK;
    if (s->prepared) return TIDE_OK;
    drop_tensors(s);
    tide_error_prefix(err, "buffer set of %" PRIu64 " B", s->total_bytes);
    return st;
}

tide_tensor *tide_buffer_set_tensor(const tide_buffer_set *s, size_t index) {
    return s->prepared && index < s->n ? s->items[index].tensor : NULL;
}
