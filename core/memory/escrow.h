// SPDX-License-Identifier: MIT
//
// escrow: the exact peak of a sum whose parts are counted apart, by shards that seldom look at each other. Used by
// cpu_caching and by the meter.
//
//     peak          |#######################################|   = limit 0 + limit 1 + limit 2
//     limits        |### limit 0 ####|## limit 1 ##|limit 2 |
//     parts         |#########       |######       |###     |   each part below its limit: the sum is below the peak
//
// A shard that stays within its limit cannot raise the peak and looks at no other. One that would pass it locks all
// shards, adds its part all the same and settles: the peak rises if the true sum does, and what is left between sum and
// peak is shared out anew. So the peak is the largest sum that any moment saw, with the moments ordered by the locks.
//
// Source: O'Neil, "The Escrow Transactional Method", ACM TODS 11(4), 1986; there it is stock that must not run out.
#ifndef TIDE_CORE_MEMORY_ESCROW_H
#define TIDE_CORE_MEMORY_ESCROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A shard's part of a sum. What one shard adds another may take off: a part may be below zero, the sum is not.
typedef struct tide__part {
    int64_t now;
    int64_t limit; ///< now <= limit
} tide__part;

/// The part may grow by so much without a look at the others.
static inline bool tide__part_has_room(const tide__part *part, size_t bytes) {
    return (int64_t)((uint64_t)part->now + bytes) <= part->limit;
}

/// The sum of `n` parts that lie `stride_bytes` apart. All their shards are locked.
uint64_t tide__escrow_sum(const tide__part *first, size_t stride_bytes, unsigned n);
/// Raise *peak to the sum, and share out what it leaves: half to the part `own_i`, which came to its limit, the rest
/// among the others alike.
void tide__escrow_settle(tide__part *first, size_t stride_bytes, unsigned n, unsigned own_i, uint64_t *peak);
/// Forget the past: the peak becomes the sum.
void tide__escrow_reset(tide__part *first, size_t stride_bytes, unsigned n, uint64_t *peak);

#endif
