// SPDX-License-Identifier: MIT
//
// The parts of the last pass over a trace, shared by its files. Private to profiler/store/.
#ifndef TIDE_PROFILER_STORE_FINISH_TABLES_H
#define TIDE_PROFILER_STORE_FINISH_TABLES_H

#include "core/base/map.h"
#include "profiler/store/replay.h"
#include "profiler/store/rows.h"

// ---- blocks ----

/// Turns ended blocks into rows of table block, in the order of their allocs as far as a queue of bounded length
/// allows: a table that is written in order has full pages and takes half the time.
///
///     alloc --> [ ended | live | ended | ended | live ... ] --> batch of rows --> table block
///                 ^ oldest waits for its end               (a block that outlives the queue is written when it ends)
///
/// Blocks whose alloc lies in a chunk of events go into table block_chunk, see block_pack.h.
typedef struct tide__block_queue tide__block_queue;

typedef enum tide__blocks_into {
    TIDE__BLOCKS_INTO_ROWS,   ///< of table block
    TIDE__BLOCKS_INTO_MEMORY, ///< of temp.block
    TIDE__BLOCKS_INTO_CHUNKS, ///< those of chunks of events, into table block_chunk, which is there; others: rows
} tide__blocks_into;
tide_status tide__block_queue_create(const tide__sql *s, tide__blocks_into into, tide__block_queue **out,
                                     tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__block_queue_destroy(tide__block_queue *q);
/// What follows comes from the chunk of these events; n 0: from none.
tide_status tide__block_queue_events(tide__block_queue *q, const tide__event *events, size_t n,
                                     tide_error *err) TIDE_NODISCARD;
/// `e` has made a block live.
tide_status tide__block_queue_alloc(tide__block_queue *q, const tide__event *e, tide_error *err) TIDE_NODISCARD;
/// For tide__replay.on_gone, with the queue as its ctx.
void tide__block_queue_gone(void *queue, const tide__live_block *block, const tide__event *end);
/// Whether writing has failed since; `alloc` says so too.
tide_status tide__block_queue_status(tide__block_queue *q, tide_error *err) TIDE_NODISCARD;
/// Have what the end of the block with that alloc will look at brought near, some events ahead: first where it waits,
/// then its row there. Any number does.
void tide__block_queue_fetch_place(const tide__block_queue *q, int64_t alloc_event);
void tide__block_queue_fetch_row(const tide__block_queue *q, int64_t alloc_event);
/// What still lives in `r` and all that waits.
tide_status tide__block_queue_end(tide__block_queue *q, const tide__replay *r, tide_error *err) TIDE_NODISCARD;

typedef struct tide__block_sums {
    int64_t n, requested_bytes, freed_bytes; ///< of the rows; bytes stop at 2^63 - 1
    int64_t left_bytes;                      ///< the same: of those that ended with their process
} tide__block_sums;
tide__block_sums tide__block_queue_sums(const tide__block_queue *q);

// ---- steps ----

/// First execution of each operator step of each run: on the thread that began the run's first operator when it
/// executed the step at all.
typedef struct tide__steps {
    const tide__sql *sql;
    struct tide__step_scope *scopes; ///< [n_scopes] by number - 1, owned
    size_t n_scopes, cap_scopes;
    tide_map found;   ///< by run and step
    tide_map runs;    ///< by run: its first thread
    size_t max_found; ///< at that many, those of other runs are written
    bool in_memory;
    sqlite3_stmt *insert;
    int64_t n_scope_events;
} tide__steps;

tide_status tide__steps_init(tide__steps *t, const tide__sql *s, bool in_memory, tide_error *err) TIDE_NODISCARD;
void tide__steps_deinit(tide__steps *t);
/// `e` is a scope event.
tide_status tide__steps_add(tide__steps *t, const tide__event *e, tide_error *err) TIDE_NODISCARD;
/// Write all that were found.
tide_status tide__steps_end(tide__steps *t, tide_error *err) TIDE_NODISCARD;

#endif
