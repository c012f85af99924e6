// SPDX-License-Identifier: MIT
//
// free runs: which bytes of an endless buffer are free, as a sorted list of stretches that answers "the first place
// from here on for so many bytes" without looking at every stretch. Used by space. Private to the planner.
//
// A short list is one array. A long one is cut into chunks that know their largest run, so that whole chunks are
// passed over:
//
//     bytes   ###|  free  |####|free|##|   free …            # taken
//     runs       [lo    hi)    [lo hi)  [lo        infinity)
//
//     chunks  | 32 runs, largest 4 KiB | 61 runs, largest 1 MiB | … |
//
// Nothing is ever given back to a list: it only gets fewer bytes. Runs shorter than `min_bytes` are removed at once:
// no later request is so small.
#ifndef TIDE_PLANNER_STRATEGIES_FREE_RUNS_H
#define TIDE_PLANNER_STRATEGIES_FREE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- the pool of arrays: many small ones that grow by doubling and all go at once ----
//
//     slab   | 64 KiB … doubling | each array is cut from the newest slab
//     free   [64 B] -> [64 B] -> …      what a grown array left, by size, for the next one
//            [128 B] -> …
//
// Requested is what arrays ask for; active the same rounded up to a power of two; reserved the slabs. Reset gives all
// arrays back and keeps the slabs.

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

// ---- lists of runs ----

typedef struct tide_run {
    uint64_t lo, hi; ///< half-open
} tide_run;

typedef struct tide_run_chunk {
    tide_run *runs;   ///< [cap]
    uint32_t n, cap;  ///< n > 0
    uint64_t largest; ///< bytes of the largest run
} tide_run_chunk;

/// All zero: everything is free.
typedef struct tide_free_runs {
    tide_run_chunk one;     ///< the list while chunks is NULL; one.runs == NULL: everything is free
    tide_run_chunk *chunks; ///< [n_chunks]
    uint32_t n_chunks, cap_chunks;
} tide_free_runs;

/// Take [lo, hi). @return false: no memory, and the list is as it was
bool tide__free_runs_take(tide_free_runs *list, uint64_t lo, uint64_t hi, uint64_t min_bytes, tide_run_pool *pool);

/// A reader that only goes up. Its list must not change meanwhile.
typedef struct tide_run_cursor {
    const tide_run_chunk *chunk, *last_chunk;
    uint32_t i; ///< in the chunk
} tide_run_cursor;

static inline bool tide__free_runs_untouched(const tide_free_runs *list) {
    return list->chunks == NULL && list->one.runs == NULL;
}
/// At the first run; `list` is not untouched.
static inline tide_run_cursor tide__free_runs_first(const tide_free_runs *list) {
    const tide_run_chunk *first = list->chunks != NULL ? list->chunks : &list->one;
    return (tide_run_cursor){first, list->chunks != NULL ? first + list->n_chunks - 1 : first, 0};
}
/// The first free place for `bytes` at or above `from`; `from` must not go down from call to call. The end of the free
/// run goes to *run_end.
uint64_t tide__free_runs_next(tide_run_cursor *cursor, uint64_t from, uint64_t bytes, uint64_t *run_end);

#endif
