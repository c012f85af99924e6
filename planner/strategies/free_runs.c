// SPDX-License-Identifier: MIT
//
// free runs: see free_runs.h.
#include "planner/strategies/free_runs.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"

// ---- the pool of arrays ----

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
    TIDE_ASSERT(size_class >= 4 && size_class < TIDE_RUN_POOL_CLASSES);
    const size_t bytes = (size_t)1 << size_class;
    if ((pool->current == NULL || pool->current->bytes - pool->used < bytes) && !open_slab(pool, bytes)) return NULL;
    array = bytes_of(pool->current) + pool->used;
    pool->used += bytes;
    TIDE_ASSERT(pool->used <= pool->current->bytes && (uintptr_t)array % 16 == 0);
    return array;
}

void tide__run_pool_put(tide_run_pool *pool, void *array, unsigned size_class) {
    TIDE_ASSERT(size_class >= 4 && size_class < TIDE_RUN_POOL_CLASSES && array != pool->free_lists[size_class]);
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

// ---- lists of runs ----

enum { FIRST_RUNS = 4, CHUNK_RUNS = 64, FIRST_CHUNKS = 4 };

static unsigned class_of(size_t bytes) {
    unsigned c = 4;
    while (((size_t)1 << c) < bytes) c++;
    return c;
}

static bool grow_runs(tide_run_chunk *chunk, tide_run_pool *pool) {
    const uint32_t cap = chunk->cap == 0 ? FIRST_RUNS : 2 * chunk->cap;
    tide_run *runs = tide__run_pool_get(pool, class_of(cap * sizeof *runs));
    if (runs == NULL) return false;
    if (chunk->n > 0) memcpy(runs, chunk->runs, chunk->n * sizeof *runs);
    if (chunk->cap > 0) tide__run_pool_put(pool, chunk->runs, class_of(chunk->cap * sizeof *runs));
    chunk->runs = runs;
    chunk->cap = cap;
    return true;
}

static void measure(tide_run_chunk *chunk) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < chunk->n; i++) {
        const uint64_t bytes = chunk->runs[i].hi - chunk->runs[i].lo;
        largest = bytes > largest ? bytes : largest;
    }
    chunk->largest = largest;
}

// ---- one chunk ----

/// The first run that ends above `byte`; chunk->n: none.
static uint32_t run_above(const tide_run_chunk *chunk, uint64_t byte) {
    uint32_t lo = 0, n = chunk->n;
    while (n > 0) {
        const uint32_t half = n / 2;
        const bool right = chunk->runs[lo + half].hi <= byte;
        lo = right ? lo + half + 1 : lo;
        n = right ? n - half - 1 : half;
    }
    return lo;
}

/// Whether runs are rising, not empty and apart, and the largest is known.
static bool runs_hold(const tide_run_chunk *chunk) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < chunk->n; i++) {
        const tide_run *run = &chunk->runs[i];
        if (run->lo >= run->hi || (i > 0 && run[-1].hi >= run->lo)) return false;
        if (run->hi - run->lo > largest) largest = run->hi - run->lo;
    }
    return largest == chunk->largest;
}

/// Take [lo, hi) from a chunk that has room for one more run.
static void take_in_chunk(tide_run_chunk *chunk, uint64_t lo, uint64_t hi, uint64_t min_bytes) {
    TIDE_ASSERT(chunk->n < chunk->cap || lo <= chunk->runs[0].lo || chunk->n == 0);
    const uint32_t first = run_above(chunk, lo);
    uint32_t end = first;
    while (end < chunk->n && chunk->runs[end].lo < hi) end++;
    if (first == end) return;
    const tide_run head = {chunk->runs[first].lo, lo}, tail = {hi, chunk->runs[end - 1].hi};
    tide_run keep[2];
    uint32_t n_keep = 0;
    if (head.lo < head.hi && head.hi - head.lo >= min_bytes) keep[n_keep++] = head;
    if (tail.lo < tail.hi && tail.hi - tail.lo >= min_bytes) keep[n_keep++] = tail;
    if (first + n_keep != end) {
        memmove(chunk->runs + first + n_keep, chunk->runs + end, (chunk->n - end) * sizeof *chunk->runs);
        chunk->n = chunk->n - (end - first) + n_keep;
    }
    TIDE_ASSERT(chunk->n <= chunk->cap && first + n_keep <= chunk->n);
    memcpy(chunk->runs + first, keep, n_keep * sizeof *keep);
    measure(chunk);
    TIDE_ASSERT_SLOW(runs_hold(chunk));
}

// ---- many chunks ----

static uint64_t end_of(const tide_run_chunk *chunk) { return chunk->runs[chunk->n - 1].hi; }

/// Cut chunk `k` in two halves; there is room for one more.
static bool split_chunk(tide_free_runs *list, uint32_t k, tide_run_pool *pool) {
    TIDE_ASSERT(k < list->n_chunks && list->n_chunks < list->cap_chunks && list->chunks[k].n == CHUNK_RUNS);
    tide_run_chunk right = {.cap = CHUNK_RUNS};
    right.runs = tide__run_pool_get(pool, class_of(CHUNK_RUNS * sizeof *right.runs));
    if (right.runs == NULL) return false;
    memmove(list->chunks + k + 1, list->chunks + k, (list->n_chunks - k) * sizeof *list->chunks);
    list->n_chunks++;
    tide_run_chunk *left = &list->chunks[k];
    right.n = left->n / 2;
    left->n -= right.n;
    memcpy(right.runs, left->runs + left->n, right.n * sizeof *right.runs);
    measure(left);
    measure(&right);
    list->chunks[k + 1] = right;
    TIDE_ASSERT(right.n > 0 && list->chunks[k].n > 0 && end_of(&list->chunks[k]) <= right.runs[0].lo);
    return true;
}

static bool reserve_chunks(tide_free_runs *list, uint32_t need, tide_run_pool *pool) {
    if (need <= list->cap_chunks) return true;
    const uint32_t cap = list->cap_chunks == 0 ? FIRST_CHUNKS : 2 * list->cap_chunks;
    const size_t old_bytes = list->cap_chunks * sizeof *list->chunks;
    tide_run_chunk *chunks = tide__run_pool_get(pool, class_of(cap * sizeof *chunks));
    if (chunks == NULL) return false;
    if (list->chunks != NULL) {
        memcpy(chunks, list->chunks, list->n_chunks * sizeof *chunks);
        tide__run_pool_put(pool, list->chunks, class_of(old_bytes));
    }
    list->chunks = chunks;
    list->cap_chunks = cap;
    return true;
}

/// From one array to chunks.
static bool start_chunks(tide_free_runs *list, tide_run_pool *pool) {
    if (!reserve_chunks(list, 2, pool)) return false;
    TIDE_ASSERT(list->one.n == list->one.cap && list->one.cap == CHUNK_RUNS);
    list->chunks[0] = list->one;
    list->n_chunks = 1;
    list->one = (tide_run_chunk){0};
    return true;
}

static uint32_t chunk_above(const tide_free_runs *list, uint64_t byte) {
    uint32_t lo = 0, hi = list->n_chunks;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (end_of(&list->chunks[mid]) <= byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool take_in_chunks(tide_free_runs *list, uint64_t lo, uint64_t hi, uint64_t min_bytes, tide_run_pool *pool) {
    uint32_t k = chunk_above(list, lo);
    if (k < list->n_chunks && list->chunks[k].n == list->chunks[k].cap) {
        if (!reserve_chunks(list, list->n_chunks + 1, pool) || !split_chunk(list, k, pool)) return false;
        k = chunk_above(list, lo);
    }
    // Only the first chunk may need room for one more: in those behind it the beginning of some run is taken.
    const uint32_t first = k;
    for (; k < list->n_chunks && list->chunks[k].runs[0].lo < hi; k++)
        take_in_chunk(&list->chunks[k], lo, hi, min_bytes);
    uint32_t n_left = first;
    for (uint32_t j = first; j < k; j++) {
        if (list->chunks[j].n > 0) {
            const tide_run_chunk kept = list->chunks[j];
            list->chunks[n_left++] = kept;
        } else {
            tide__run_pool_put(pool, list->chunks[j].runs, class_of(list->chunks[j].cap * sizeof(tide_run)));
        }
    }
    if (n_left < k) {
        memmove(list->chunks + n_left, list->chunks + k, (list->n_chunks - k) * sizeof *list->chunks);
        list->n_chunks -= k - n_left;
    }
    TIDE_ASSERT(list->n_chunks > 0 && list->chunks[list->n_chunks - 1].runs != NULL);
    return true;
}

bool tide__free_runs_take(tide_free_runs *list, uint64_t lo, uint64_t hi, uint64_t min_bytes, tide_run_pool *pool) {
    TIDE_ASSERT(lo < hi && min_bytes > 0);
    if (tide__free_runs_untouched(list)) {
        if (!grow_runs(&list->one, pool)) return false;
        list->one.runs[0] = (tide_run){0, UINT64_MAX};
        list->one.n = 1;
    }
    if (list->chunks == NULL && list->one.n == list->one.cap) {
        if (list->one.cap < CHUNK_RUNS ? !grow_runs(&list->one, pool) : !start_chunks(list, pool)) return false;
    }
    if (list->chunks != NULL) return take_in_chunks(list, lo, hi, min_bytes, pool);
    take_in_chunk(&list->one, lo, hi, min_bytes);
    return true;
}

// ---- reading ----

uint64_t tide__free_runs_next(tide_run_cursor *cursor, uint64_t from, uint64_t bytes, uint64_t *run_end) {
    TIDE_ASSERT(bytes > 0 && cursor->chunk <= cursor->last_chunk);
    for (;;) {
        const tide_run_chunk *chunk = cursor->chunk;
        if (chunk->largest >= bytes && end_of(chunk) > from) {
            for (uint32_t i = cursor->i; i < chunk->n; i++) {
                const tide_run *run = &chunk->runs[i];
                const uint64_t at = run->lo > from ? run->lo : from;
                if (run->hi <= at || run->hi - at < bytes) continue;
                cursor->i = i;
                *run_end = run->hi;
                return at;
            }
        }
        if (chunk == cursor->last_chunk) break;
        cursor->chunk++;
        cursor->i = 0;
    }
    *run_end = UINT64_MAX; // the last run never ends: only an offset near 2^64 comes here
    return UINT64_MAX;
}
