// SPDX-License-Identifier: MIT
//
// Blocks of a stream-ordered pool: see the header.
#include "tests/cuda/driver/sim_blocks.h"

sim_chunk *sim_chunk_new(sim_pool *pool, uint64_t address, uint64_t bytes) {
    sim_chunk *chunk = SIM_NEW(sim_chunk);
    chunk->pool = pool;
    chunk->address = address;
    chunk->bytes = bytes;
    chunk->first = SIM_NEW(sim_block);
    *chunk->first = (sim_block){.chunk = chunk, .address = address, .span = bytes, .is_free = true, .settled = true};
    return chunk;
}

void sim_block_forget_frees(sim_block *block) {
    for (size_t i = 0; i < block->n_freed_by; i++) sim_point_unref(block->freed_by[i].point);
    free(block->freed_by);
    block->freed_by = NULL;
    block->n_freed_by = 0;
}

void sim_chunk_delete(sim_chunk *chunk) {
    for (sim_block *block = chunk->first, *next; block != NULL; block = next) {
        next = block->next;
        sim_block_forget_frees(block);
        free(block);
    }
    free(chunk);
}

static bool looks_done(const sim_block *block) {
    for (size_t i = 0; i < block->n_freed_by; i++)
        if (!sim_point_looks_done(block->freed_by[i].point)) return false;
    return true;
}

bool sim_chunk_is_idle(const sim_chunk *chunk) {
    return chunk->first->is_free && chunk->first->next == NULL && looks_done(chunk->first);
}

// Of two frees in one stream the later one counts.
static void remember(sim_block *block, sim_freed_by by) {
    for (size_t i = 0; i < block->n_freed_by; i++) {
        sim_freed_by *known = &block->freed_by[i];
        if (known->stream_id != by.stream_id) continue;
        if (known->seq < by.seq) {
            sim_point_unref(known->point);
            *known = (sim_freed_by){by.stream_id, by.seq, sim_point_ref(by.point)};
        }
        return;
    }
    block->freed_by = realloc(block->freed_by, (block->n_freed_by + 1) * sizeof by);
    if (block->freed_by == NULL) abort();
    block->freed_by[block->n_freed_by++] = (sim_freed_by){by.stream_id, by.seq, sim_point_ref(by.point)};
}

static void merge_next(sim_block *block) {
    sim_block *next = block->next;
    for (size_t i = 0; i < next->n_freed_by; i++) remember(block, next->freed_by[i]);
    block->span += next->span;
    block->settled = block->settled && next->settled;
    block->next = next->next;
    if (next->next != NULL) next->next->prev = block;
    sim_block_forget_frees(next);
    free(next);
}

void sim_chunk_settle(sim_chunk *chunk) {
    for (sim_block *block = chunk->first; block != NULL; block = block->next) {
        if (!block->is_free || !looks_done(block)) continue;
        block->settled = true;
        while (block->next != NULL && block->next->is_free && looks_done(block->next)) {
            block->next->settled = true;
            merge_next(block);
        }
    }
}

static sim_block *last_of(const sim_chunk *chunk) {
    sim_block *block = chunk->first;
    while (block->next != NULL) block = block->next;
    return block;
}

uint64_t sim_chunk_idle_tail(const sim_chunk *chunk) {
    const sim_block *last = last_of(chunk);
    return last->is_free && looks_done(last) ? last->span : 0;
}

sim_block *sim_chunk_add_tail(sim_chunk *chunk, uint64_t bytes) {
    sim_block *last = last_of(chunk);
    last->span += bytes;
    return last;
}

void sim_chunk_cut_tail(sim_chunk *chunk, uint64_t bytes) {
    sim_block *last = last_of(chunk);
    last->span -= bytes;
    if (last->span > 0 || last->prev == NULL) return;
    last->prev->next = NULL;
    sim_block_forget_frees(last);
    free(last);
}

bool sim_block_may(const sim_block *block, const sim_stream *stream, unsigned reuse) {
    if (block->settled || reuse & SIM_REUSE_ANY) return true;
    for (size_t i = 0; i < block->n_freed_by; i++) {
        const sim_freed_by *by = &block->freed_by[i];
        if (by->stream_id == stream->id) continue;
        if (reuse & SIM_REUSE_EVENTS && sim_clock_has(&stream->clock, by->stream_id, by->seq)) continue;
        if (reuse & SIM_REUSE_OPPORTUNISTIC && sim_point_looks_done(by->point)) continue;
        return false;
    }
    return true;
}

void sim_block_take(sim_block *block, uint64_t span) {
    if (block->span > span) {
        sim_block *rest = SIM_NEW(sim_block);
        *rest = (sim_block){.prev = block,
                            .next = block->next,
                            .chunk = block->chunk,
                            .address = block->address + span,
                            .span = block->span - span,
                            .is_free = true,
                            .settled = block->settled};
        for (size_t i = 0; i < block->n_freed_by; i++) remember(rest, block->freed_by[i]);
        if (block->next != NULL) block->next->prev = rest;
        block->next = rest;
        block->span = span;
    }
    block->is_free = block->settled = false;
}

static bool of_one_stream(const sim_block *a, const sim_block *b) {
    if (a->settled && b->settled) return true;
    return a->n_freed_by == 1 && b->n_freed_by == 1 && a->freed_by[0].stream_id == b->freed_by[0].stream_id;
}

// Neighbours that the same stream freed become one block at once: the stream may have it as one.
void sim_block_give(sim_block *block, const sim_stream *stream, sim_point *point) {
    block->is_free = true;
    block->settled = stream == NULL;
    if (stream != NULL) remember(block, (sim_freed_by){stream->id, stream->seq, point});
    if (block->next != NULL && block->next->is_free && of_one_stream(block, block->next)) merge_next(block);
    if (block->prev != NULL && block->prev->is_free && of_one_stream(block->prev, block)) merge_next(block->prev);
}
