// SPDX-License-Identifier: MIT
//
// Who makes blocks for a type of device (PT-23): a table with one entry per type, empty at first.
#include <pthread.h>

#include "core/memory/block.h"

typedef struct factory_row {
    tide_block_factory make; ///< NULL: tide_block_create
    void *self;
} factory_row;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards rows
static factory_row rows[TIDE_MAX_DEVICE_TYPES];

tide_status tide_block_set_factory(tide_device_type type, tide_block_factory factory, void *self, tide_error *err) {
    if ((int)type < 0 || (int)type >= TIDE_MAX_DEVICE_TYPES)
        return TIDE_FAIL(err, TIDE_ERR_INVALID, "device type %d is not one of 0 to %d", (int)type,
                         TIDE_MAX_DEVICE_TYPES - 1);
    pthread_mutex_lock(&lock);
    rows[type] = (factory_row){.make = factory, .self = self};
    pthread_mutex_unlock(&lock);
    return TIDE_OK;
}

static factory_row row_of(const tide_allocator *owner) {
    factory_row row = {0};
    const int type = owner != NULL ? (int)tide_allocator_device(owner).type : -1;
    if (type < 0 || type >= TIDE_MAX_DEVICE_TYPES) return row;
    pthread_mutex_lock(&lock);
    row = rows[type];
    pthread_mutex_unlock(&lock);
    return row;
}

tide_status tide_block_make(const tide_block_request *req, tide_block **out, tide_error *err) {
    const factory_row row = row_of(req->owner);
    if (row.make == NULL)
        return tide_block_create(req->owner, req->size_bytes, req->align_bytes, req->kind, req->stream, req->tag, out,
                                 err);
    tide_block *b = NULL;
    TIDE_TRY(row.make(row.self, req, &b, err));
    if (b == NULL || b->mem.requested_bytes < req->size_bytes) {
        char device[32];
        tide_block_unref(b);
        return TIDE_FAIL(err, TIDE_ERR_BACKEND, "the block factory of %s made no block of %zu B",
                         tide_device_format(tide_allocator_device(req->owner), device, sizeof device), req->size_bytes);
    }
    *out = b;
    return TIDE_OK;
}
