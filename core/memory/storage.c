// SPDX-License-Identifier: MIT
//
// storage: a slice of a block, by value. See block.h.
//
//     block    |<------------------ requested_bytes ------------------>|
//     storage      |<- offset_bytes ->|<------ size_bytes ------>|
//     tensor                              |<- offset + shape ->|
#include "core/memory/block.h"

tide_storage tide_storage_of_block(tide_block *b) {
    return (tide_storage){.block = tide_block_ref(b), .size_bytes = b->mem.requested_bytes, .device = b->device};
}

tide_status tide_storage_slice(const tide_storage *base, size_t offset_bytes, size_t size_bytes, tide_storage *out,
                               tide_error *err) {
    // Compared by subtraction: offset + size might wrap around.
    if (offset_bytes > base->size_bytes || size_bytes > base->size_bytes - offset_bytes)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "slice of %zu B at %zu is outside its storage of %zu B%s%s", size_bytes,
                         offset_bytes, base->size_bytes, base->block != NULL && base->block->tag != NULL ? " in " : "",
                         base->block != NULL && base->block->tag != NULL ? base->block->tag : "");
    tide_storage slice = tide_storage_ref(base);
    slice.offset_bytes += offset_bytes;
    slice.size_bytes = size_bytes;
    *out = slice;
    return TIDE_OK;
}

tide_storage tide_storage_ref(const tide_storage *s) {
    if (s->block != NULL) tide_block_ref(s->block);
    return *s;
}

void tide_storage_deinit(tide_storage *s) {
    tide_block_unref(s->block);
    *s = (tide_storage){.device = s->device};
}

void *tide_storage_data(const tide_storage *s) {
    if (s->block == NULL || s->block->mem.data == NULL) return NULL;
    return (char *)s->block->mem.data + s->offset_bytes;
}
