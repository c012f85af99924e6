// SPDX-License-Identifier: MIT
//
// live_blocks: the blocks a recorder has seen allocated and not yet seen gone. It is how a free without an alloc is
// noticed, and what the file's sums are held against at close. Private to profiler/.
//
// Open addressing with linear probing; taking an entry out shifts its followers back, so that there are no tombstones
// and the table stays as small as the live set:
//
//     home of b: 2      [ . ][ . ][ a ][ b ][ c ][ . ]   take a ->   [ . ][ . ][ b ][ c ][ . ][ . ]
#ifndef TIDE_PROFILER_LIVE_BLOCKS_H
#define TIDE_PROFILER_LIVE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct tide__live_block {
    uint64_t id; ///< 0: free slot
    int64_t requested_bytes;
    uint16_t device; ///< id in table device
    uint8_t kind;
    bool free_requested; ///< waits for free_completed
} tide__live_block;

/// Zero-initialise.
typedef struct tide__live_blocks {
    tide__live_block *slots; ///< [cap], owned
    size_t cap;              ///< 0 or a power of two
    size_t n;
} tide__live_blocks;

/// NULL when there is no such block; valid until the next put or take.
tide__live_block *tide__live_blocks_find(const tide__live_blocks *m, uint64_t id);
/// Put a block that is not in the map; id > 0. @return TIDE_OK, TIDE_ERR_NOMEM (map unchanged)
tide_status tide__live_blocks_put(tide__live_blocks *m, const tide__live_block *block) TIDE_NODISCARD;
/// Take out an entry that find returned.
void tide__live_blocks_take(tide__live_blocks *m, tide__live_block *entry);
void tide__live_blocks_deinit(tide__live_blocks *m);

#endif
