// SPDX-License-Identifier: MIT
//
// run pool: see run_pool.h.
#include "planner/strategies/run_pool.h"

#include <string.h>

#include "core/base/host_alloc.h"

enum { FIRST_SLAB_BYTES = 1 << 16, LARGEST_SLAB_BYTES = 1 << 22 };

struct tide_run_slab {
    tide_run_slab *next;
    size_t bytes; // behind this head
};

static unsigned char *bytes_of(tide_run_slab *slab) { return (unsigned char *)(slab + 1); }

/// A slab with room for `bytes`: one that a reset has emptied, else a new one.
static bool open_slab(tide_run_pool *pool, size_t bytes) {
    // Emptied slabs follow the current one; one that is too small for this array is passed over until the next reset.
    while (pool->current != NULL && pool->current->next != NULL) {
        pool->current = pool->current->next;
        pool->used = 0;
        if (pool->current->bytes >= bytes) return true;
    }
    size_t room = pool->current == NULL ? FIRST_SLAB_BYTES : 2 * pool->current->bytes;
    if (room > LARGEST_SLAB_BYTES) room = LARGEST_SLAB_BYTES;
    if (room < bytes) room = bytes;
    tide_run_slab *slab = tide_host_alloc(sizeof *slab + room);
    if (slab == NULL) return false;
    *slab = (tide_run_slab){NULL, room};
    if (pool->current == NULL) {
        pool->slabs = slab;
    } else {
        pool->current->next = slab;
    }
    pool->current = slab;
    pool->used = 0;
    return true;
}

void *tide__run_pool_get(tide_run_pool *pool, unsigned size_class) {
    void *array = pool->free_lists[size_class];
    if (array != NULL) {
        memcpy(&pool->free_lists[size_class], array, sizeof array);
        return array;
    }
    const size_t bytes = (size_t)1 << size_class;
    if ((pool->current == NULL || pool->current->bytes - pool->used < bytes) && !open_slab(pool, bytes)) return NULL;
    array = bytes_of(pool->current) + pool->used;
    pool->used += bytes;
    return array;
}

void tide__run_pool_put(tide_run_pool *pool, void *array, unsigned size_class) {
    memcpy(array, &pool->free_lists[size_class], sizeof array);
    pool->free_lists[size_class] = array;
}

void tide__run_pool_reset(tide_run_pool *pool) {
    memset(pool->free_lists, 0, sizeof pool->free_lists);
    pool->current = pool->slabs;
    pool->used = 0;
}

void tide__run_pool_deinit(tide_run_pool *pool) {
    while (pool->slabs != NULL) {
        tide_run_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        tide_host_free(slab);
    }
    *pool = (tide_run_pool){0};
}
