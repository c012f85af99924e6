// SPDX-License-Identifier: MIT
//
// torch_pool: the blocks of PyTorch's caching allocator, followed by address. A snapshot's events say what was asked
// for and where it was put, not what the block holds beyond it. That follows from the free block that lay there and
// from the rule by which the allocator splits one (c10/cuda/CUDACachingAllocator.cpp, should_split and round_size):
//
//     free    [ 20 MiB                        ]
//     alloc 3 MiB at its begin:  [ 3 MiB ][ 17 MiB, free ]      more than 1 MiB is left over: split
//     alloc 19.5 MiB:            [ 20 MiB                ]      the rest stays with the block
//
// Private to profiler/import.
#ifndef TIDE_PROFILER_IMPORT_TORCH_POOL_H
#define TIDE_PROFILER_IMPORT_TORCH_POOL_H

#include "core/base/map.h"
#include "profiler/import/torch_snapshot.h"

/// Addresses, in ranges that neither touch nor overlap. Zero-initialise.
typedef struct tide__torch_ranges {
    struct tide__torch_range {
        uint64_t first, behind;
    } * items; ///< [n], rising; owned
    size_t n, cap;
} tide__torch_ranges;
/// [first, behind) is in it. Costs a move of those behind it. @return TIDE_OK, TIDE_ERR_NOMEM
tide_status tide__torch_ranges_add(tide__torch_ranges *r, uint64_t first, uint64_t behind) TIDE_NODISCARD;
/// It no longer is. As above.
tide_status tide__torch_ranges_cut(tide__torch_ranges *r, uint64_t first, uint64_t behind) TIDE_NODISCARD;
/// The next part of [*first, behind) that is not in it: [*first, *end). False: all of it is.
bool tide__torch_ranges_gap(const tide__torch_ranges *r, uint64_t *first, uint64_t behind, uint64_t *end);
void tide__torch_ranges_deinit(tide__torch_ranges *r);

/// Zero-initialise with TIDE__TORCH_POOL.
typedef struct tide__torch_pool {
    const tide_pytorch_options *settings; ///< borrowed
    tide_map blocks;                      ///< by first byte + 1
    tide_map ends;                        ///< by the byte behind + 1
    uint64_t next_segment;
    uint64_t n_elsewhere; ///< blocks that were put where no free block began, as far as is known
} tide__torch_pool;
typedef struct tide__pool_block {
    uint64_t key, bytes, segment; ///< segment 0: of the expandable ones, which may grow together
    bool is_free;
} tide__pool_block;
typedef struct tide__pool_end {
    uint64_t key, begin; ///< begin: the key of the block
} tide__pool_end;
#define TIDE__TORCH_POOL(s)                                                                                            \
    { .settings = (s), .blocks = TIDE_MAP(tide__pool_block), .ends = TIDE_MAP(tide__pool_end), .next_segment = 1 }

/// The allocator took [address, address + bytes) from the driver. @return TIDE_OK, TIDE_ERR_NOMEM, as all here
tide_status tide__torch_pool_add(tide__torch_pool *p, uint64_t address, uint64_t bytes,
                                 bool is_expandable) TIDE_NODISCARD;
/// It gave the range back: free blocks in it go.
tide_status tide__torch_pool_remove(tide__torch_pool *p, uint64_t address, uint64_t bytes) TIDE_NODISCARD;
/// A block that is there already and holds `bytes`, in the free block that begins at `free_begin`.
tide_status tide__torch_pool_put(tide__torch_pool *p, uint64_t free_begin, uint64_t address,
                                 uint64_t bytes) TIDE_NODISCARD;
/// A block of `requested` bytes at `address`. *held: what it holds.
tide_status tide__torch_pool_alloc(tide__torch_pool *p, uint64_t address, uint64_t requested,
                                   uint64_t *held) TIDE_NODISCARD;
tide_status tide__torch_pool_free(tide__torch_pool *p, uint64_t address) TIDE_NODISCARD;
void tide__torch_pool_deinit(tide__torch_pool *p);

#endif
