// SPDX-License-Identifier: MIT
//
// block_reader: blocks that lie in chunks, as rows of table block; and table all_blocks, which is both, for queries.
// Private to profiler/.
//
//     block         | r r r |
//     block_chunk            | c | c |     with event_chunk of the same number    all_blocks = rows, then chunks
#ifndef TIDE_PROFILER_STORE_BLOCK_READER_H
#define TIDE_PROFILER_STORE_BLOCK_READER_H

#include "profiler/store/rows.h"
#include "profiler/store/sql.h"

/// Whether blocks lie in chunks. TIDE_ERR_BAD_INPUT: there is something else of that name.
tide_status tide__blocks_are_packed(const tide__sql *s, bool *out, tide_error *err) TIDE_NODISCARD;

/// Which blocks are asked for.
typedef struct tide__block_question {
    int64_t first_alloc, last_alloc; ///< alloc events
    bool has_id;
    int64_t id;            ///< with has_id: this one
    bool only_never_freed; ///< others may be given too
} tide__block_question;
static inline tide__block_question tide__all_blocks(void) {
    return (tide__block_question){.first_alloc = INT64_MIN, .last_alloc = INT64_MAX};
}

typedef struct tide__block_reader tide__block_reader;
/// Of a file that has table block_chunk. `s` is borrowed until close. Chunks that were read last are kept.
tide_status tide__block_reader_open(const tide__sql *s, tide__block_reader **out, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__block_reader_close(tide__block_reader *r);
/// Ask; the next call of `next` begins with the first one. All of a chunk are given where one of it is asked for, but
/// of question by id.
tide_status tide__block_reader_ask(tide__block_reader *r, const tide__block_question *q,
                                   tide_error *err) TIDE_NODISCARD;
/// The next blocks, in the order of their allocs; *n 0 at the end. Borrowed until the next call. TIDE_ERR_BAD_INPUT:
/// chunks that no recorder wrote.
tide_status tide__block_reader_next(tide__block_reader *r, const tide__block_row **rows, size_t *n,
                                    tide_error *err) TIDE_NODISCARD;
/// Nothing is read any more: the hold on the file is given up.
void tide__block_reader_rest(tide__block_reader *r);

/// A virtual table for SQL: SELECT ... FROM all_blocks, with the columns of table block. Its bounds of id and
/// alloc_event and free_event IS NULL are used. What it needs of `s` it copies.
tide_status tide__block_table_register(const tide__sql *s, tide_error *err) TIDE_NODISCARD;

#endif
