// SPDX-License-Identifier: MIT
//
// sim heap: see sim_heap.h.
#include "planner/strategies/sim_heap.h"

#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "planner/strategies/fixed.h"

void tide__sim_heap_init(tide_sim_heap *heap) {
    *heap = (tide_sim_heap){0};
    for (size_t p = 0; p < TIDE_SIM_MAX_POOLS; p++) heap->free[p].by_size = true;
}

void tide__sim_heap_deinit(tide_sim_heap *heap) {
    for (size_t p = 0; p < TIDE_SIM_MAX_POOLS; p++) tide__block_tree_deinit(&heap->free[p]);
    tide_host_free(heap->blocks);
    *heap = (tide_sim_heap){0};
}

/// 0: no memory.
static uint32_t new_block(tide_sim_heap *heap, tide_sim_block block) {
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

static void drop_block(tide_sim_heap *heap, uint32_t i) {
    heap->blocks[i].next = heap->unused;
    heap->unused = i;
}

static tide_block_span span_of(const tide_sim_heap *heap, uint32_t i) {
    return (tide_block_span){heap->blocks[i].begin, heap->blocks[i].bytes, i};
}

static tide_status enter(tide_sim_heap *heap, uint32_t i) {
    return tide__block_tree_insert(&heap->free[heap->blocks[i].pool], span_of(heap, i));
}

static void leave(tide_sim_heap *heap, uint32_t i) {
    tide__block_tree_remove(&heap->free[heap->blocks[i].pool], span_of(heap, i));
}

uint32_t tide__sim_heap_find(const tide_sim_heap *heap, uint32_t pool, uint64_t bytes) {
    tide_block_span found;
    return tide__block_tree_at_least(&heap->free[pool], (tide_block_span){.bytes = bytes}, &found) ? found.id : 0;
}

tide_status tide__sim_heap_reserve(tide_sim_heap *heap, uint32_t pool, uint64_t bytes, uint32_t *out) {
    uint64_t end;
    if (!tide_add_u64(heap->reserved_bytes, bytes, &end) || end > INT64_MAX) return TIDE_ERR_OVERFLOW;
    *out = new_block(heap, (tide_sim_block){.begin = heap->reserved_bytes, .bytes = bytes, .pool = pool});
    if (*out == 0) return TIDE_ERR_NOMEM;
    heap->reserved_bytes = end;
    return enter(heap, *out);
}

tide_status tide__sim_heap_take(tide_sim_heap *heap, uint32_t i, uint64_t bytes) {
    leave(heap, i);
    heap->blocks[i].in_use = true;
    const tide_sim_block whole = heap->blocks[i];
    if (whole.bytes == bytes) return TIDE_OK;
    const uint32_t rest = new_block(heap, (tide_sim_block){.begin = whole.begin + bytes,
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
static void merge(tide_sim_heap *heap, uint32_t a, uint32_t b) {
    heap->blocks[a].bytes += heap->blocks[b].bytes;
    heap->blocks[a].next = heap->blocks[b].next;
    if (heap->blocks[b].next != 0) heap->blocks[heap->blocks[b].next].prev = a;
    drop_block(heap, b);
}

tide_status tide__sim_heap_give_back(tide_sim_heap *heap, uint32_t i) {
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

// ---- a run ----

typedef struct sim {
    const tide_problem *problem;
    const tide_sim_rules *rules;
    tide_placement *out;
    tide_sim_heap heap;
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
    *block = tide__sim_heap_find(&s->heap, pool, bytes);
    if (*block == 0) {
        const uint64_t segment = s->rules->segment_bytes(bytes, &s->state);
        if (segment < bytes) return TIDE_ERR_OVERFLOW;
        TIDE_TRY(tide__sim_heap_reserve(&s->heap, pool, segment, block));
    }
    const uint64_t all = s->heap.blocks[*block].bytes;
    return tide__sim_heap_take(&s->heap, *block, s->rules->splits(all, bytes, pool) ? bytes : all);
}

static tide_status born(void *self, uint32_t item_i, tide_error *err) {
    sim *s = self;
    const tide_item *item = &s->problem->items[item_i];
    const tide_status st = take(s, item, &s->block_of[item_i]);
    if (st != TIDE_OK)
        return TIDE_FAIL(err, st,
                         st == TIDE_ERR_NOMEM ? "no memory to simulate %s over %zu tensors"
                                              : "%s would reserve more than 2^63 - 1 bytes for %zu tensors",
                         s->rules->name, s->problem->n);
    const uint64_t begin = s->heap.blocks[s->block_of[item_i]].begin;
    s->out->offsets[item_i] = (begin + item->align_bytes - 1) & ~(item->align_bytes - 1);
    return TIDE_OK;
}

static tide_status died(void *self, uint32_t item_i, tide_error *err) {
    sim *s = self;
    if (tide__sim_heap_give_back(&s->heap, s->block_of[item_i]) == TIDE_OK) return TIDE_OK;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to simulate %s over %zu tensors", s->rules->name, s->problem->n);
}

tide_status tide__sim_run(const tide_problem *problem, const tide_sim_rules *rules, tide_placement *out,
                          tide_error *err) {
    TIDE_TRY(tide__refuse_fixed(problem, rules->name, err));
    sim s = {.problem = problem, .rules = rules, .out = out};
    tide__sim_heap_init(&s.heap);
    s.block_of = tide_host_calloc(problem->n, sizeof *s.block_of);
    const tide_status st =
        s.block_of == NULL
            ? TIDE_FAIL(err, TIDE_ERR_NOMEM, "no memory to simulate %s over %zu tensors", rules->name, problem->n)
            : tide__timeline_walk(problem, TIDE_ORDER_GIVEN, born, died, &s, err);
    out->bytes = s.heap.reserved_bytes;
    tide_host_free(s.block_of);
    tide__sim_heap_deinit(&s.heap);
    return st;
}
