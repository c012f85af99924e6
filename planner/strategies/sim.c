// SPDX-License-Identifier: MIT
//
// sim: see sim.h. No byte is touched: these are numbers.
#include "planner/strategies/sim.h"

#include "core/base/assert.h"
#include "core/base/block_tree.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies/timeline.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

// ---- the heap of best-fit allocators ----
//
// Segments are reserved once and never given back. They are cut into blocks that know their neighbours; free blocks are
// kept by size in one or more pools.
//
//     address   0                2 MiB                                  22 MiB = reserved
//     segment   [ 512 |free.....][ 3 MiB | free .......................]
//     blocks      <->   <->        <->     neighbours only within a segment
//
// Requested is what items ask for; active what blocks in use span, roundings included; cached the free blocks; reserved
// the sum of the segments, which is what a simulation's plan counts. Largest free is the last block of a pool's tree.

enum { MAX_POOLS = 2 };

typedef struct sim_block {
    uint64_t begin, bytes;
    uint32_t prev, next; ///< in the segment; 0: none
    uint32_t pool;
    bool in_use;
} sim_block;

typedef struct sim_heap {
    sim_block *blocks; ///< [cap], numbered from 1; owned
    size_t n_blocks, cap;
    uint32_t unused;                 ///< blocks without a place, chained by `next`
    tide_block_tree free[MAX_POOLS]; ///< by size, then address
    uint64_t reserved_bytes;
} sim_heap;

static void init_heap(sim_heap *heap) {
    *heap = (sim_heap){0};
    for (size_t p = 0; p < MAX_POOLS; p++) heap->free[p].by_size = true;
}

static void deinit_heap(sim_heap *heap) {
    for (size_t p = 0; p < MAX_POOLS; p++) tide_block_tree_deinit(&heap->free[p]);
    tide_host_free(heap->blocks);
    *heap = (sim_heap){0};
}

/// 0: no memory.
static uint32_t new_block(sim_heap *heap, sim_block block) {
    uint32_t i = heap->unused;
    if (i != 0) {
        heap->unused = heap->blocks[i].next;
    } else {
        const size_t need = heap->n_blocks == 0 ? 2 : heap->n_blocks + 1; // the first one stands for none
        if (need > UINT32_MAX || tide_host_grow(&heap->blocks, &heap->cap, need, sizeof *heap->blocks) != TIDE_OK)
            return 0;
        heap->n_blocks = need;
        i = (uint32_t)need - 1;
    }
    heap->blocks[i] = block;
    return i;
}

static void recycle(sim_heap *heap, uint32_t i) {
    heap->blocks[i].next = heap->unused;
    heap->unused = i;
}

static tide_block_span span_of(const sim_heap *heap, uint32_t i) {
    return (tide_block_span){heap->blocks[i].begin, heap->blocks[i].bytes, i};
}

static tide_status enter(sim_heap *heap, uint32_t i) {
    return tide_block_tree_insert(&heap->free[heap->blocks[i].pool], span_of(heap, i));
}

static void leave(sim_heap *heap, uint32_t i) {
    tide_block_tree_remove(&heap->free[heap->blocks[i].pool], span_of(heap, i));
}

/// The smallest free block of the pool with at least `bytes`, the lowest of equals; 0: none.
static uint32_t find_block(const sim_heap *heap, uint32_t pool, uint64_t bytes) {
    tide_block_span found;
    return tide_block_tree_at_least(&heap->free[pool], (tide_block_span){.bytes = bytes}, &found) ? found.id : 0;
}

/// Reserve one more segment; it is one free block of the pool.
static tide_status reserve_segment(sim_heap *heap, uint32_t pool, uint64_t bytes, uint32_t *out) {
    uint64_t end;
    if (!tide_add_u64(heap->reserved_bytes, bytes, &end) || end > INT64_MAX) return TIDE_ERR_OVERFLOW;
    *out = new_block(heap, (sim_block){.begin = heap->reserved_bytes, .bytes = bytes, .pool = pool});
    if (*out == 0) return TIDE_ERR_NOMEM;
    heap->reserved_bytes = end;
    return enter(heap, *out);
}

/// Take free block `i`; with `bytes` below its size the rest becomes a free block behind it.
static tide_status take_block(sim_heap *heap, uint32_t i, uint64_t bytes) {
    TIDE_ASSERT(i < heap->n_blocks && !heap->blocks[i].in_use);
    leave(heap, i);
    heap->blocks[i].in_use = true;
    const sim_block whole = heap->blocks[i];
    TIDE_ASSERT(bytes <= whole.bytes);
    if (whole.bytes == bytes) return TIDE_OK;
    const uint32_t rest = new_block(heap, (sim_block){.begin = whole.begin + bytes,
                                                      .bytes = whole.bytes - bytes,
                                                      .prev = i,
                                                      .next = whole.next,
                                                      .pool = whole.pool});
    if (rest == 0) return TIDE_ERR_NOMEM;
    if (whole.next != 0) heap->blocks[whole.next].prev = rest;
    heap->blocks[i].next = rest;
    heap->blocks[i].bytes = bytes;
    return enter(heap, rest);
}

/// Block `b`, free and in no tree, becomes part of its neighbour `a` before it.
static void merge(sim_heap *heap, uint32_t a, uint32_t b) {
    TIDE_ASSERT(heap->blocks[a].begin + heap->blocks[a].bytes == heap->blocks[b].begin && !heap->blocks[b].in_use);
    TIDE_ASSERT(heap->blocks[a].next == b && heap->blocks[a].pool == heap->blocks[b].pool);
    heap->blocks[a].bytes += heap->blocks[b].bytes;
    heap->blocks[a].next = heap->blocks[b].next;
    if (heap->blocks[b].next != 0) heap->blocks[heap->blocks[b].next].prev = a;
    recycle(heap, b);
}

/// Give block `i` back; it merges with free neighbours of its segment.
static tide_status give_back(sim_heap *heap, uint32_t i) {
    TIDE_ASSERT(heap->blocks[i].in_use);
    heap->blocks[i].in_use = false;
    const uint32_t next = heap->blocks[i].next, prev = heap->blocks[i].prev;
    if (next != 0 && !heap->blocks[next].in_use) {
        leave(heap, next);
        merge(heap, i, next);
    }
    if (prev != 0 && !heap->blocks[prev].in_use) {
        leave(heap, prev);
        merge(heap, prev, i);
        i = prev;
    }
    return enter(heap, i);
}

/// Whether the blocks with a place add up to what is reserved.
static bool heap_holds(const sim_heap *heap) {
    uint64_t sum = 0;
    for (size_t i = 1; i < heap->n_blocks; i++) sum += heap->blocks[i].bytes;
    for (uint32_t i = heap->unused; i != 0; i = heap->blocks[i].next) sum -= heap->blocks[i].bytes;
    return sum == heap->reserved_bytes;
}

// ---- a run ----

typedef struct sim {
    const tide_problem *problem;
    const char *name; // of the strategy
    const tide_sim_rules *rules;
    tide_placement *out;
    sim_heap heap;
    uint32_t *block_of; // [problem->n]
    uint64_t state;     // of rules->segment_bytes
} sim;

static tide_status take(sim *s, const tide_item *item, uint32_t *block) {
    uint64_t bytes = item->size_bytes;
    if (item->align_bytes > s->rules->granule_bytes &&
        !tide_add_u64(bytes, item->align_bytes - s->rules->granule_bytes, &bytes))
        return TIDE_ERR_OVERFLOW;
    if (!tide_align_up(bytes, s->rules->granule_bytes, &bytes)) return TIDE_ERR_OVERFLOW;
    const uint32_t pool = s->rules->pool_of(bytes);
    *block = find_block(&s->heap, pool, bytes);
    if (*block == 0) {
        const uint64_t segment = s->rules->segment_bytes(bytes, &s->state);
        if (segment < bytes) return TIDE_ERR_OVERFLOW;
        TIDE_TRY(reserve_segment(&s->heap, pool, segment, block));
    }
    const uint64_t all = s->heap.blocks[*block].bytes;
    return take_block(&s->heap, *block, s->rules->splits(all, bytes, pool) ? bytes : all);
}

static tide_status born(void *self, uint32_t item_i, tide_error *err) {
    sim *s = self;
    const tide_item *item = &s->problem->items[item_i];
    const tide_status st = take(s, item, &s->block_of[item_i]);
    if (st != TIDE_OK)
        return TIDE_FAIL(err, st,
                         st == TIDE_ERR_NOMEM ? "no memory to simulate %s over %zu tensors"
                                              : "%s would reserve more than 2^63 - 1 bytes for %zu tensors",
                         s->name, s->problem->n);
    const uint64_t begin = s->heap.blocks[s->block_of[item_i]].begin;
    s->out->offsets[item_i] = (begin + item->align_bytes - 1) & ~(item->align_bytes - 1);
    TIDE_ASSERT(s->out->offsets[item_i] + item->size_bytes <= begin + s->heap.blocks[s->block_of[item_i]].bytes);
    return TIDE_OK;
}

static tide_status died(void *self, uint32_t item_i, tide_error *err) {
    sim *s = self;
    TIDE_ASSERT(s->heap.blocks[s->block_of[item_i]].begin <= s->out->offsets[item_i]);
    if (give_back(&s->heap, s->block_of[item_i]) == TIDE_OK) return TIDE_OK;
    return TIDE_NO_MEMORY(err, "to simulate %s over %zu tensors", s->name, s->problem->n);
}

tide_status tide__sim_heap(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                           tide_placement *out, tide_error *err) {
    (void)opt;
    TIDE_TRY(tide__refuse_fixed(problem, self->name, err));
    sim s = {.problem = problem, .name = self->name, .rules = self->rule, .out = out};
    init_heap(&s.heap);
    tide_status st = TIDE_NEW(&s.block_of, problem->n, err, "to simulate %s over %zu tensors", s.name, problem->n);
    if (st == TIDE_OK) st = tide__timeline_walk(problem, TIDE_ORDER_GIVEN, born, died, &s, err);
    out->bytes = s.heap.reserved_bytes;
    TIDE_ASSERT(st != TIDE_OK || heap_holds(&s.heap));
    tide_host_free(s.block_of);
    deinit_heap(&s.heap);
    return st;
}

// ---- sim:caching ----
//
// What PyTorch's caching allocator for CUDA would reserve on the same births and deaths, run once with an
// empty cache.
//
//     request, rounded up to 512 B     pool    segment asked of the device       a found block is split
//     up to 1 MiB                      small   2 MiB                             when 512 B or more are left
//     above, below 10 MiB              large   20 MiB                            when more than 1 MiB is left
//     10 MiB and more                  large   the request, up to 2 MiB          the same
//
// Best fit within the pool, the lowest address of equals; free neighbours of a segment merge; segments are kept.
//
// Source: pytorch c10/cuda/CUDACachingAllocator.cpp (2.x): kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge, should_split, get_allocation_size; defaults, that is no max_split_size, no expandable
// segments, one stream, and a device that never says no.

enum { SMALL, LARGE };

static uint32_t caching_pool(uint64_t bytes) { return bytes <= MIB ? SMALL : LARGE; }

static bool caching_splits(uint64_t block_bytes, uint64_t bytes, uint32_t pool) {
    TIDE_ASSERT(block_bytes >= bytes);
    const uint64_t rest = block_bytes - bytes;
    return pool == SMALL ? rest >= 512 : rest > MIB;
}

static uint64_t caching_segment(uint64_t bytes, uint64_t *state) {
    (void)state;
    if (bytes <= MIB) return 2 * MIB;
    if (bytes < 10 * MIB) return 20 * MIB;
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

const tide_sim_rules tide__sim_caching = {512, caching_pool, caching_splits, caching_segment};

// ---- sim:bfc ----
//
// What TensorFlow's best-fit-with-coalescing allocator would reserve on the same births and deaths when it may
// grow without limit.
//
// Requests are rounded up to 256 B. Free chunks lie in 21 bins by powers of two from 256 B on, each in order of size,
// then address; the bins are searched upwards from the request's. That is the smallest chunk that fits, whichever bin
// it is in, so one tree stands for all bins here. A chunk of twice the request or more, or with 128 MiB or more to
// spare, is split. When none fits a region is added: of 2 MiB at first, doubled with every region, and doubled at once
// until the request fits. Free neighbours of a region merge; regions are kept.
//
// Source: tensorflow/core/common_runtime/bfc_allocator.{h,cc} (2.x): kMinAllocationSize, FindChunkPtr, Extend; defaults
// with allow_growth, no fragmentation_fraction and a device that never says no.

static uint32_t bfc_pool(uint64_t bytes) {
    (void)bytes;
    return 0;
}

static bool bfc_splits(uint64_t block_bytes, uint64_t bytes, uint32_t pool) {
    (void)pool;
    TIDE_ASSERT(block_bytes >= bytes);
    return block_bytes - bytes >= bytes || block_bytes - bytes >= 128 * MIB;
}

/// `state` is the size of the next region.
static uint64_t bfc_segment(uint64_t bytes, uint64_t *state) {
    if (*state == 0) *state = 2 * MIB;
    bool increased = false;
    for (; *state < bytes; increased = true) {
        if (*state > UINT64_MAX / 2) return 0;
        *state *= 2;
    }
    TIDE_ASSERT(*state >= bytes && (*state & (*state - 1)) == 0);
    const uint64_t region = *state;
    if (!increased && *state <= UINT64_MAX / 2) *state *= 2;
    return region;
}

const tide_sim_rules tide__sim_bfc = {256, bfc_pool, bfc_splits, bfc_segment};

// ---- sim:arena ----
//
// What a bump allocator would reserve on the same births and deaths: each request goes to the top, nothing
// is given back alone, and the top falls to the bottom when nothing is alive any more.
//
//     |[a][b][c..][d]          | reserved: the highest top
//                    ^ top
//
// Requested and active are what items ask for, with the padding of their alignments; cached is what lies below the top
// and is dead; largest free is what lies above the top.
//
// Source: region allocation, Hanson 1990, "Fast allocation and deallocation of memory based on object lifetimes".

typedef struct arena {
    const tide_problem *problem;
    tide_placement *out;
    uint64_t top;
    size_t n_alive;
} arena;

static tide_status arena_born(void *self, uint32_t item_i, tide_error *err) {
    arena *a = self;
    const tide_item *item = &a->problem->items[item_i];
    uint64_t *at = &a->out->offsets[item_i];
    if (!tide_align_up(a->top, item->align_bytes, at) || !tide_add_u64(*at, item->size_bytes, &a->top) ||
        a->top > INT64_MAX)
        return TIDE_FAIL(err, TIDE_ERR_OVERFLOW, "sim:arena would reserve more than 2^63 - 1 bytes for %zu tensors",
                         a->problem->n);
    if (a->top > a->out->bytes) a->out->bytes = a->top;
    a->n_alive++;
    return TIDE_OK;
}

static tide_status arena_died(void *self, uint32_t item_i, tide_error *err) {
    (void)item_i;
    (void)err;
    arena *a = self;
    TIDE_ASSERT(a->n_alive > 0);
    if (--a->n_alive == 0) a->top = 0;
    return TIDE_OK;
}

tide_status tide__sim_arena(const tide_strategy *self, const tide_problem *problem, const tide_strategy_options *opt,
                            tide_placement *out, tide_error *err) {
    (void)opt;
    TIDE_TRY(tide__refuse_fixed(problem, self->name, err));
    arena a = {.problem = problem, .out = out};
    out->bytes = 0;
    return tide__timeline_walk(problem, TIDE_ORDER_GIVEN, arena_born, arena_died, &a, err);
}
