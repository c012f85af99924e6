// SPDX-License-Identifier: MIT
//
// Stream-ordered memory (cuda.h, "Stream Ordered Memory Allocator").
//
// Measured: a new pool takes nothing, its first allocation reserves 32 MiB, and it grows in steps of 32 MiB; addresses
// are multiples of 512; "used" counts bytes as asked for and falls with the call of cuMemFreeAsync; a wait of the host
// for a stream, event or context gives back whole unused steps above the release threshold, which is 0 at first.
//
// A block goes in this order (programming guide, "Physical page caching" and "Reuse policies"): to the stream that
// freed it, at once; to a stream that is known to follow the free by events; to one that asks after the free is done;
// then more memory of the device; and when there is none, to a stream that is made to wait for the free.
#include <stdio.h>

#include "tests/cuda/driver/sim_graph.h"
#include "tests/cuda/driver/sim_pool.h"

#define ALIGN 512U
#define STEP_BYTES (32 * SIM_MIB)
#define ROOM_BYTES (4096 * SIM_MIB) // addresses behind a chunk that it may grow into

uint64_t sim_pool_threshold(const sim_pool *pool) { return pool->threshold; }
uint64_t sim_pool_reserved(const sim_pool *pool) { return pool->reserved; }
uint64_t sim_pool_used(const sim_pool *pool) { return pool->used; }
sim_device *sim_pool_device(const sim_pool *pool) { return pool->device; }

uint64_t sim_pool_of_range(const sim_range *range) {
    return range->kind == TIDESIM_POOL_BLOCK ? (uint64_t)(uintptr_t)range->block->chunk->pool : 0;
}

sim_pool *sim_pool_new(sim_device *device, bool own) {
    sim_pool *pool = SIM_NEW(sim_pool);
    pool->device = device;
    pool->object.own = own;
    pool->reuse_events = pool->reuse_opportunistic = pool->reuse_dependencies = 1;
    sim_object_add(&pool->object, SIM_POOL);
    return pool;
}

// The ledger has an entry for each step, so that a chunk can grow and shrink.
static void tell_steps(const sim_chunk *chunk, uint64_t from, uint64_t to, void (*tell)(const sim_entry_info *)) {
    for (uint64_t at = from; at < to; at += STEP_BYTES) {
        const sim_entry_info entry = {.kind = TIDESIM_POOL,
                                      .device = chunk->pool->device,
                                      .address = chunk->address + at,
                                      .bytes = to - at < STEP_BYTES ? to - at : STEP_BYTES,
                                      .pool = chunk->pool,
                                      .quiet = true};
        tell(&entry);
    }
}

// Gives [chunk->address + from, its end) back to the device; nothing lies there.
static void give_back(sim_pool *pool, sim_chunk *chunk, uint64_t from) {
    const uint64_t bytes = chunk->bytes - from;
    tell_steps(chunk, from, chunk->bytes, sim_ledger_free);
    sim_unpoison(chunk->address + from, bytes);
    if (from > 0)
        sim_map_close(chunk->address + from, bytes);
    else
        sim_map_free(chunk->address, chunk->room);
    sim_give(pool->device, bytes);
    pool->reserved -= bytes;
    chunk->bytes = from;
}

static void chunk_free(sim_pool *pool, sim_chunk *chunk) {
    sim_chunk **link = &pool->chunks;
    while (*link != chunk) link = &(*link)->next;
    *link = chunk->next;
    give_back(pool, chunk, 0);
    sim_chunk_delete(chunk);
}

// Whole steps at the end of a chunk that is in use (measured: 128 MiB with 200 B in use fall to 32 MiB).
static void chunk_shrink(sim_pool *pool, sim_chunk *chunk, uint64_t keep) {
    const uint64_t may = pool->reserved > keep ? pool->reserved - keep : 0;
    uint64_t from = sim_round_up(chunk->bytes - sim_chunk_idle_tail(chunk), STEP_BYTES);
    while (from < chunk->bytes && chunk->bytes - from > may) from += STEP_BYTES;
    if (from >= chunk->bytes) return;
    sim_chunk_cut_tail(chunk, chunk->bytes - from);
    give_back(pool, chunk, from);
}

// Gives back what is idle while at least `keep` bytes stay reserved (cuda.h, cuMemPoolTrimTo).
bool sim_pool_trim(sim_pool *pool, uint64_t keep) {
    const uint64_t before = pool->reserved;
    for (sim_chunk *chunk = pool->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        sim_chunk_settle(chunk);
        if (pool->reserved >= keep && pool->reserved - keep >= chunk->bytes && sim_chunk_is_idle(chunk))
            chunk_free(pool, chunk);
        else
            chunk_shrink(pool, chunk, keep);
    }
    if (pool->reserved < before && !pool->dying) sim_hook_pool(TIDESIM_POOL_TRIMMED, pool, keep);
    return pool->reserved < before;
}

// Pools that were destroyed, while blocks of theirs are live or frees are to come.
static sim_pool *dying;

static bool is_gone(sim_pool *pool) {
    if (pool->n_live > 0) return false;
    sim_pool_trim(pool, 0);
    return pool->chunks == NULL;
}

static void pool_delete(sim_pool *pool) {
    sim_hook_pool(TIDESIM_POOL_DESTROYED, pool, 0);
    free(pool);
}

void sim_pool_destroy(sim_pool *pool) {
    sim_object_remove(&pool->object);
    pool->dying = true;
    if (is_gone(pool)) {
        pool_delete(pool);
        return;
    }
    pool->next_dying = dying;
    dying = pool;
}

static void reap(void) {
    for (sim_pool **link = &dying; *link != NULL;) {
        sim_pool *pool = *link;
        if (!is_gone(pool)) {
            link = &pool->next_dying;
            continue;
        }
        *link = pool->next_dying;
        pool_delete(pool);
    }
}

static void trim_one(sim_object *object, void *user) {
    sim_pool *pool = (sim_pool *)object;
    if (pool->chunks != NULL) sim_pool_trim(pool, pool->threshold);
}

void sim_pools_synchronised(void) {
    sim_objects_each(SIM_POOL, trim_one, NULL);
    reap();
}

static bool may_reserve(const sim_pool *pool, uint64_t bytes) {
    return pool->max_bytes == 0 || (pool->reserved <= pool->max_bytes && bytes <= pool->max_bytes - pool->reserved);
}

// Memory of the device at addresses that are reserved. False: there is none.
static bool take(const sim_pool *pool, uint64_t address, uint64_t bytes) {
    if (!may_reserve(pool, bytes) || !sim_take(pool->device, bytes)) return false;
    if (sim_map_open(address, bytes)) {
        sim_poison(address, bytes);
        return true;
    }
    sim_give(pool->device, bytes);
    return false;
}

static void count_reserved(sim_pool *pool, uint64_t bytes) {
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
}

static sim_chunk *reserve(sim_pool *pool, uint64_t bytes) {
    const uint64_t room = bytes + ROOM_BYTES, address = sim_map_reserve(room, sim.granularity, 0);
    if (address == 0) return NULL;
    if (!take(pool, address, bytes)) {
        sim_map_free(address, room);
        return NULL;
    }
    sim_chunk *chunk = sim_chunk_new(pool, address, bytes);
    chunk->room = room;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    count_reserved(pool, bytes);
    tell_steps(chunk, 0, bytes, sim_ledger_alloc);
    if (!pool->announced) sim_hook_pool(TIDESIM_POOL_CREATED, pool, 0);
    pool->announced = true;
    return chunk;
}

// A chunk whose end is free grows behind it (measured: 100 MiB beside 200 B in 32 MiB take 96 MiB more). NULL: none
// can.
static sim_block *extend(sim_pool *pool, uint64_t span) {
    for (sim_chunk *chunk = pool->chunks; chunk != NULL; chunk = chunk->next) {
        const uint64_t tail = sim_chunk_idle_tail(chunk);
        if (tail == 0 || tail >= span) continue;
        const uint64_t bytes = sim_round_up(span - tail, STEP_BYTES), was = chunk->bytes;
        if (was + bytes > chunk->room || !take(pool, chunk->address + was, bytes)) continue;
        chunk->bytes += bytes;
        count_reserved(pool, bytes);
        tell_steps(chunk, was, chunk->bytes, sim_ledger_alloc);
        return sim_chunk_add_tail(chunk, bytes);
    }
    return NULL;
}

static void trim_for(sim_object *object, void *user) {
    sim_pool *pool = (sim_pool *)object;
    if (pool->device == user) sim_pool_trim(pool, 0);
}

// Steps of 32 MiB; where the device has no whole step, its granularity (GUESS), after idle chunks of all its pools were
// given back (GUESS).
static sim_block *grow(sim_pool *pool, uint64_t span) {
    if (span > (uint64_t)1 << 46) return NULL;
    sim_block *block = extend(pool, span);
    if (block != NULL) return block;
    const uint64_t steps = sim_round_up(span, STEP_BYTES), least = sim_round_up(span, sim.granularity);
    sim_chunk *chunk = reserve(pool, steps);
    if (chunk == NULL) chunk = reserve(pool, least);
    if (chunk != NULL) return chunk->first;
    sim_objects_each(SIM_POOL, trim_for, pool->device);
    reap();
    chunk = reserve(pool, steps);
    if (chunk == NULL) chunk = reserve(pool, least);
    return chunk != NULL ? chunk->first : NULL;
}

// Best fit among the free blocks that `reuse` allows.
static sim_block *find(sim_pool *pool, const sim_stream *stream, uint64_t span, unsigned reuse) {
    sim_block *best = NULL;
    for (const sim_chunk *chunk = pool->chunks; chunk != NULL; chunk = chunk->next)
        for (sim_block *block = chunk->first; block != NULL; block = block->next)
            if (block->is_free && block->span >= span && (best == NULL || block->span < best->span) &&
                sim_block_may(block, stream, reuse))
                best = block;
    return best;
}

static sim_block *find_by_policy(sim_pool *pool, const sim_stream *stream, uint64_t span) {
    unsigned may = SIM_REUSE_SAME_STREAM;
    sim_block *block = find(pool, stream, span, may);
    if (pool->reuse_events) may |= SIM_REUSE_EVENTS;
    if (block == NULL) block = find(pool, stream, span, may);
    if (pool->reuse_opportunistic) may |= SIM_REUSE_OPPORTUNISTIC;
    if (block == NULL) block = find(pool, stream, span, may);
    if (block != NULL) return block;
    block = grow(pool, span);
    if (block != NULL) return block;
    for (sim_chunk *full = pool->chunks; full != NULL; full = full->next) sim_chunk_settle(full);
    if (pool->reuse_dependencies) may |= SIM_REUSE_ANY;
    return find(pool, stream, span, may);
}

static sim_entry_info block_entry(const sim_range *range, const sim_pool *pool, const sim_stream *stream) {
    return (sim_entry_info){.kind = TIDESIM_POOL_BLOCK,
                            .device = range->device,
                            .address = range->address,
                            .bytes = range->bytes,
                            .ctx = stream != NULL ? stream->ctx : NULL,
                            .stream = stream,
                            .pool = pool,
                            .is_async = stream != NULL};
}

// The stream opens the block for use, after the frees that it waits for.
static void open_block(sim_call *call, sim_stream *stream, sim_block *block, uint64_t bytes) {
    sim_point **deps = sim_new((block->n_freed_by + 1) * sizeof *deps);
    size_t n = 0;
    for (size_t i = 0; i < block->n_freed_by; i++) {
        if (block->freed_by[i].stream_id == stream->id) continue;
        deps[n++] = block->freed_by[i].point;
        sim_clock_join(&stream->clock, block->freed_by[i].stream_id, block->freed_by[i].seq);
    }
    const sim_work open = {.sort = SIM_WORK_OPEN, .dst = block->address, .bytes = bytes};
    (void)sim_submit_after(call, stream, open, deps, n, NULL);
    free(deps);
    sim_block_forget_frees(block);
}

static CUresult alloc_from(sim_call *call, CUdeviceptr *dptr, uint64_t bytes, sim_pool *pool, CUstream handle) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, handle, &why);
    if (stream == NULL) return why;
    if (dptr == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != NULL) return sim_graph_alloc(stream, dptr, bytes);
    if (stream->is_legacy && sim_capture_blocks_legacy(stream->ctx))
        return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (bytes > (uint64_t)1 << 46) return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes == 0) { // measured: it succeeds, and keeps nothing of the pool alive; that the pointer is NULL is a GUESS
        *dptr = 0;
        return CUDA_SUCCESS;
    }
    const uint64_t span = sim_round_up(bytes, ALIGN);
    sim_block *block = find_by_policy(pool, stream, span);
    if (block == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    sim_block_take(block, span);
    open_block(call, stream, block, bytes);
    sim_range *range = SIM_NEW(sim_range);
    *range = (sim_range){.kind = TIDESIM_POOL_BLOCK,
                         .address = block->address,
                         .bytes = bytes,
                         .span = span,
                         .device = pool->device,
                         .block = block,
                         .readable = true,
                         .writable = true};
    sim_range_add(range);
    pool->n_live++;
    pool->used += bytes;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    const sim_entry_info entry = block_entry(range, pool, stream);
    sim_ledger_alloc(&entry);
    *dptr = range->address;
    return CUDA_SUCCESS;
}

SIM_ENTRY_PT(cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
             (dptr, bytesize, hStream)) {
    return alloc_from(call, dptr, bytesize, call->ctx->device->pool, hStream);
}

SIM_ENTRY_PT(cuMemAllocFromPoolAsync, _ptsz,
             (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool handle, CUstream hStream),
             (dptr, bytesize, handle, hStream)) {
    sim_pool *pool = sim_object_of(handle, SIM_POOL);
    return pool == NULL ? CUDA_ERROR_INVALID_VALUE : alloc_from(call, dptr, bytesize, pool, hStream);
}

// `stream` NULL: outside of streams, when all work is done.
static void free_block(sim_call *call, sim_range *range, sim_stream *stream) {
    sim_block *block = range->block;
    sim_pool *pool = block->chunk->pool;
    pool->used -= range->bytes;
    pool->n_live--;
    sim_entry_info entry = block_entry(range, pool, stream);
    sim_range_remove(range);
    sim_ledger_free(&entry);
    if (stream == NULL) {
        sim_poison(block->address, block->span);
        sim_block_give(block, NULL, NULL);
    } else {
        sim_point *point = NULL;
        (void)sim_submit(call, stream, (sim_work){.sort = SIM_WORK_CLOSE, .dst = block->address, .bytes = block->span},
                         &point);
        sim_block_give(block, stream, point);
        sim_point_unref(point);
    }
    free(range);
}

void sim_pool_free_now(sim_range *range) {
    if (range->kind == TIDESIM_GRAPH)
        sim_graph_free_now(range);
    else
        free_block(NULL, range, NULL);
}

SIM_ENTRY_PT(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream)) {
    CUresult why;
    sim_stream *stream = sim_stream_of(call, hStream, &why);
    if (stream == NULL) return why;
    if (dptr == 0) return CUDA_SUCCESS; // GUESS: as for cuMemFree
    sim_range *range = sim_range_at(dptr);
    const bool is_block = range != NULL && range->address == dptr && !range->released;
    if (is_block && range->kind == TIDESIM_GRAPH) return sim_graph_free(call, stream, range);
    if (!is_block || range->kind != TIDESIM_POOL_BLOCK) {
        sim_misused("cuMemFreeAsync(%#llx): no live block of a pool begins there", (unsigned long long)dptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    // cuda.h, cuMemFreeAsync: in a capture only memory of a graph can be freed.
    if (stream->capture != NULL) return sim_capture_break(stream, CUDA_ERROR_INVALID_VALUE);
    if (stream->is_legacy && sim_capture_blocks_legacy(stream->ctx))
        return sim_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    free_block(call, range, stream);
    return CUDA_SUCCESS;
}

static bool drop_block(sim_range *range, void *user) {
    if (range->kind != TIDESIM_POOL_BLOCK || range->block->chunk->pool->device != user) return true;
    sim_pool *pool = range->block->chunk->pool;
    sim_entry_info entry = block_entry(range, pool, NULL);
    entry.quiet = true;
    pool->used -= range->bytes;
    pool->n_live--;
    sim_range_remove(range);
    sim_ledger_free(&entry);
    sim_poison(range->block->address, range->block->span);
    sim_block_give(range->block, NULL, NULL);
    free(range);
    return true;
}

// cuda.h, cuDevicePrimaryCtxReset: everything of the device in this process goes.
void sim_pools_of_device_free(sim_device *device) {
    sim_ranges_each(drop_block, device);
    sim_objects_each(SIM_POOL, trim_for, device);
    reap();
}
