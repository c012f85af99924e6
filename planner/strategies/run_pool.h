// SPDX-License-Identifier: MIT
//
// run pool: where the arrays of free_runs live: many small ones that grow by doubling and all go at once. Private to
// the planner.
//
//     slab   | 64 KiB … doubling | each array is cut from the newest slab
//     free   [64 B] -> [64 B] -> …      what a grown array left, by size, for the next one
//            [128 B] -> …
//
// Requested is what arrays ask for; active the same rounded up to a power of two; reserved the slabs. Reset gives all
// arrays back and keeps the slabs.
#ifndef TIDE_PLANNER_STRATEGIES_RUN_POOL_H
#define TIDE_PLANNER_STRATEGIES_RUN_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIDE_RUN_POOL_CLASSES = 40 };

typedef struct tide_run_slab tide_run_slab;

typedef struct tide_run_pool {
    tide_run_slab *slabs;   ///< all, the newest first; owned
    tide_run_slab *current; ///< the one that is cut from; those before it in the list are full
    size_t used;            ///< bytes cut from it
    void *free_lists[TIDE_RUN_POOL_CLASSES];
} tide_run_pool;

/// 2^class bytes, aligned to 16; class >= 4. NULL: no memory.
void *tide__run_pool_get(tide_run_pool *pool, unsigned size_class);
void tide__run_pool_put(tide_run_pool *pool, void *array, unsigned size_class);
/// All arrays are gone at once; their memory stays for the next ones.
void tide__run_pool_reset(tide_run_pool *pool);
void tide__run_pool_deinit(tide_run_pool *pool);

#endif
