// SPDX-License-Identifier: MIT
//
// Blocks of a stream-ordered pool: what lies in its chunks, who freed it, and who may have it next.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_BLOCKS_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_BLOCKS_H

#include "tests/cuda/driver/sim.h"

/// A free that a block waits for: a moment of a stream.
typedef struct sim_freed_by {
    uint64_t stream_id, seq;
    sim_point *point;
} sim_freed_by;

/// Part of a chunk. Neighbours cover the chunk without a gap.
struct sim_block {
    sim_block *prev, *next; ///< in the chunk, by address
    struct sim_chunk *chunk;
    uint64_t address, span;
    bool is_free, settled; ///< settled: the host waited after the frees were done
    size_t n_freed_by;     ///< one per stream at most
    sim_freed_by *freed_by;
};

typedef struct sim_chunk {
    struct sim_chunk *next;
    sim_pool *pool;
    uint64_t address, bytes;
    uint64_t room; ///< addresses that are reserved for it: it can grow so far
    sim_block *first;
} sim_chunk;

/// Who may have a block besides the stream that freed it, and any that asks after the host waited for the free: a set.
typedef enum sim_reuse {
    SIM_REUSE_SAME_STREAM = 0,
    SIM_REUSE_EVENTS = 1,        ///< a stream that is known to come after the free
    SIM_REUSE_OPPORTUNISTIC = 2, ///< any, when the free is done by now
    SIM_REUSE_ANY = 4            ///< any: it is made to wait
} sim_reuse;

sim_chunk *sim_chunk_new(sim_pool *pool, uint64_t address, uint64_t bytes);
/// Forgets chunk and blocks; the memory is the caller's.
void sim_chunk_delete(sim_chunk *chunk);
/// One free block, whose frees are done.
bool sim_chunk_is_idle(const sim_chunk *chunk);
/// Marks what is done, and merges.
void sim_chunk_settle(sim_chunk *chunk);
/// Bytes at the end of a chunk that are free and whose frees are done; 0: none.
uint64_t sim_chunk_idle_tail(const sim_chunk *chunk);
/// `bytes` more behind its end, which is an idle tail: one free block with it, which is returned.
sim_block *sim_chunk_add_tail(sim_chunk *chunk, uint64_t bytes);
/// `bytes` less, all of the idle tail, which is larger or another block's neighbour.
void sim_chunk_cut_tail(sim_chunk *chunk, uint64_t bytes);
bool sim_block_may(const sim_block *block, const sim_stream *stream, unsigned reuse);
/// Cuts `span` bytes off a free block and takes them into use; the rest stays free and remembers its frees.
void sim_block_take(sim_block *block, uint64_t span);
void sim_block_give(sim_block *block, const sim_stream *stream, sim_point *point);
void sim_block_forget_frees(sim_block *block);

#endif
