// SPDX-License-Identifier: MIT
//
// drain address: the blocks of a process whose events say addresses and nothing else (tide__by_address in
// profiler/feed/format.h): which block lives there, how large it is, what is left of a range of pages. See
// drain_address.c. Private to profiler/drain/.
#ifndef TIDE_PROFILER_DRAIN_DRAIN_ADDRESS_H
#define TIDE_PROFILER_DRAIN_DRAIN_ADDRESS_H

#include "core/base/map.h"
#include "profiler/drain/drain_internal.h"

// ---- the table: drain_address_table.c ----

typedef struct tide__address_block {
    uint64_t address; ///< the key
    int64_t block_id, bytes;
} tide__address_block;

typedef struct tide__address_range {
    uint64_t begin, end;
    int64_t block_id;
    int32_t tag_id, scope_id;
} tide__address_range;

/// What the file has more of than the producer counted: it knows no sizes of what it frees, and one range for each
/// call.
typedef struct tide__address_counts {
    int64_t allocs, frees, requested, freed;
    int64_t unknown; ///< frees of addresses where no block was known
    int64_t twice;   ///< allocs at addresses where one was
} tide__address_counts;

struct tide__drain_addresses {
    tide_map blocks;             ///< of block
    tide__address_range *ranges; ///< [n_ranges], owned
    size_t n_ranges, cap_ranges;
    tide__address_counts now, stored;
    bool is_stored;
};

/// The first range that ends behind `address`; n_ranges: none does.
size_t tide__drain_find_range(const tide__drain_addresses *a, uint64_t address);
/// Put one in its place by address, where nothing else is. False: no memory.
bool tide__drain_put_range(tide__drain_addresses *a, const tide__address_range *fresh) TIDE_NODISCARD;

/// For a feed by address: what the file has of its process, if anything (a drain before this one). Owned by the feed:
/// tide__drain_addresses_destroy. TIDE_ERR_NOMEM, or what reading the file says.
tide_status tide__drain_addresses_make(tide__drain *d, tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;
/// Takes NULL.
void tide__drain_addresses_destroy(tide__drain_addresses *a);

/// What the process counted itself of its kind of memory, as the events of the file have it.
void tide__drain_addresses_correct(const tide__drain_addresses *a, tide__ring_total *total);
/// Put into the file what a drain that takes over must know, and what was not known; inside a transaction.
tide_status tide__drain_addresses_write(tide__drain *d, tide__drain_feed *f, tide_error *err) TIDE_NODISCARD;
/// The transaction is in the file.
void tide__drain_addresses_written(tide__drain_feed *f);

// ---- events: drain_address.c ----

/// Whether the slot at the position of `r` is about an address: an alloc or a free without a block.
static inline bool tide__drain_is_by_address(const tide__drain_ring *r) {
    return r->feed->addresses != NULL && r->number == 0 &&
           (r->op == TIDE_MEM_ALLOC || r->op == TIDE_MEM_FREE_COMPLETED);
}
/**
 * Take the event at d->events[d->n_events], made of such a slot: as the events of blocks that it stands for, none, one
 * or several.
 *
 * @param n  in and out: events taken
 */
tide_status tide__drain_take_address(tide__drain *d, tide__drain_ring *r, size_t *n, tide_error *err) TIDE_NODISCARD;
/// The ring whose next slots must stand before that of `r`: two threads had one address after another, and their clocks
/// differ. NULL: none.
tide__drain_ring *tide__drain_address_cause(tide__drain *d, tide__drain_ring *r);

#endif
