// SPDX-License-Identifier: MIT
//
// torch_space: where the live blocks of one device lie, as PyTorch's viewer of snapshots wants it. It goes through the
// events backwards from the state at the end, and stops with an error at a block that lies in no segment, or at a
// segment that ends otherwise than it began. So here no two live blocks share a byte, each lies in a segment while it
// lives, and segments never overlap:
//
//     told segment    [ block | free | block   ]       the allocator said what it took
//     own segment              [ block ]                it did not: the block has one of its own, as long as it lives
//     elsewhere                         [ block ]       no address is told, or it is taken: a made-up one, also with
//                                                       a segment of its own
//
// Private to reports.
#ifndef TIDE_REPORTS_TORCH_SPACE_H
#define TIDE_REPORTS_TORCH_SPACE_H

#include "core/base/block_tree.h"
#include "core/base/map.h"

/// A live block.
typedef struct tide__torch_item {
    uint64_t block_id, address, requested, stream;
    uint64_t bytes; ///< that it holds, at least 1
    const char *name, *kind;
    uint32_t scope;
    bool is_own;     ///< parts of its segment are its own
    bool is_moved;   ///< its address is made up
    bool is_pending; ///< given up, and still in use
} tide__torch_item;

/// A segment comes or goes.
typedef tide_status (*tide__torch_segment_fn)(void *ctx, bool comes, tide_block_span range, uint64_t stream);

/// What is known of a segment beyond its range.
typedef struct tide__torch_segment_info {
    uint64_t stream;
    uint32_t next_free; ///< of those that are not used: + 1
    bool is_own;
} tide__torch_segment_info;

/// Zero-initialise with TIDE__TORCH_SPACE.
typedef struct tide__torch_space {
    tide__torch_item *items; ///< [n_items]; block_id 0: not used; owned
    size_t n_items, cap_items;
    uint32_t free_item; ///< + 1; chained by `scope`
    tide_map by_id;
    tide_block_tree blocks, segments; ///< live; numbers are those of `items` and `infos`
    tide_block_tree elsewhere;        ///< free made-up addresses
    tide__torch_segment_info *infos;  ///< [n_infos]
    size_t n_infos, cap_infos;
    uint32_t free_info; ///< + 1
    /// Out: segments ended in parts, or a block lay in several that touch: then they must be written as those of
    /// expandable segments, which the viewer joins and cuts.
    bool is_mapped;
    uint64_t n_moved;  ///< blocks that lie elsewhere
    uint64_t n_passed; ///< segments in the room of made-up addresses, which are no addresses of memory
    tide__torch_segment_fn tell;
    void *ctx;
} tide__torch_space;

struct tide__torch_id {
    uint64_t key;
    uint64_t item;
};
#define TIDE__TORCH_SPACE(fn, context)                                                                                 \
    { .by_id = {.entry_bytes = sizeof(struct tide__torch_id)}, .tell = (fn), .ctx = (context) }

/// The first made-up address: behind all that processors and devices have, and a number that a double holds.
#define TIDE__TORCH_ELSEWHERE (UINT64_C(1) << 52)

/// A block comes that is not there: its address is where it was put. *out stays valid until the next one comes.
/// TIDE_ERR_NOT_FOUND: it is larger than any memory, and was not taken; TIDE_ERR_NOMEM; what `tell` returns.
tide_status tide__torch_space_put(tide__torch_space *s, const tide__torch_item *block,
                                  tide__torch_item **out) TIDE_NODISCARD;
/// NULL: it is not there.
tide__torch_item *tide__torch_space_find(const tide__torch_space *s, uint64_t block_id);
/// It goes.
tide_status tide__torch_space_take(tide__torch_space *s, tide__torch_item *block) TIDE_NODISCARD;
/// The allocator took, or gave back, [address, address + bytes). What contradicts that is left as it is: parts that it
/// had already, and parts that live blocks lie in.
tide_status tide__torch_space_grow(tide__torch_space *s, uint64_t address, uint64_t bytes,
                                   uint64_t stream) TIDE_NODISCARD;
tide_status tide__torch_space_shrink(tide__torch_space *s, uint64_t address, uint64_t bytes) TIDE_NODISCARD;
void tide__torch_space_deinit(tide__torch_space *s);

#endif
