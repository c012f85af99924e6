// SPDX-License-Identifier: MIT
//
// block_pack: blocks whose allocs lie in chunks of events, on their way into table block_chunk. Private to
// profiler/store/.
//
//     chunks of events in order --> [ 64 open ones: a block that ends finds its place ] --> block_chunk
//                                     a block that ends later: noted, and put in thousands at a time ---^
#ifndef TIDE_PROFILER_STORE_BLOCK_PACK_H
#define TIDE_PROFILER_STORE_BLOCK_PACK_H

#include "profiler/store/rows.h"
#include "profiler/store/sql.h"

typedef struct tide__block_pack tide__block_pack;

/// An empty table block_chunk, and a file that says that it has packed blocks; inside a transaction.
tide_status tide__block_pack_make_table(const tide__sql *s, tide_error *err) TIDE_NODISCARD;
/// A file all of whose chunks have become rows: the table stays, empty, for those that read it at this moment.
tide_status tide__block_pack_leave_table(const tide__sql *s, tide_error *err) TIDE_NODISCARD;

/// `s` is borrowed until destroy.
tide_status tide__block_pack_create(const tide__sql *s, tide__block_pack **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__block_pack_destroy(tide__block_pack *p);
/// What follows lies in the chunk of these events, which is behind all before it.
tide_status tide__block_pack_begin(tide__block_pack *p, const tide__event *events, size_t n,
                                   tide_error *err) TIDE_NODISCARD;
/// What follows lies in no chunk.
void tide__block_pack_leave(tide__block_pack *p);
/// `e` has made a block live. False: it lies in no chunk, and is not taken.
bool tide__block_pack_alloc(tide__block_pack *p, const tide__event *e);
/// The block is as `row` says, which has ended or lives on. False: it was not taken.
bool tide__block_pack_end(tide__block_pack *p, const tide__block_row *row);
/// Whether writing has failed since.
tide_status tide__block_pack_status(tide__block_pack *p, tide_error *err) TIDE_NODISCARD;
/// All that is left into the table.
tide_status tide__block_pack_finish(tide__block_pack *p, tide_error *err) TIDE_NODISCARD;

#endif
