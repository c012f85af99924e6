// SPDX-License-Identifier: MIT
//
// block tree: free blocks of an address space in order of their address or of their size, for what acts as allocators
// do: the next one, the one before, the smallest that is large enough, the lowest that is, the largest; each in
// O(log n).
//
// A treap (Seidel & Aragon 1996): a search tree by key that is a heap by priority. Priorities are drawn from a seeded
// generator, so the shape is the same in every run. Each node knows the largest block below it:
//
//                  [4096, +512) largest 2048
//                 /                         \            the lowest block of 1024 bytes lies on the right,
//     [0, +256) largest 256        [8192, +2048) 2048    for the left has none so large
#ifndef TIDE_CORE_BASE_BLOCK_TREE_H
#define TIDE_CORE_BASE_BLOCK_TREE_H

#include "core/base/status.h"
#include "core/base/text.h"

typedef struct tide_block_span {
    uint64_t begin, bytes;
    uint32_t id; ///< the caller's; takes no part in the order
} tide_block_span;

typedef struct tide_block_node {
    tide_block_span block;
    uint64_t largest;
    uint32_t left, right, priority;
} tide_block_node;

/// All zero but by_size: empty.
typedef struct tide_block_tree {
    bool by_size;           ///< order: bytes, then begin; else begin alone
    tide_block_node *nodes; ///< [cap], numbered from 1; 0 is none; owned
    size_t n_nodes, cap;
    uint32_t root, free_node; ///< unused nodes are chained by `left`
    tide_rng rng;
} tide_block_tree;

void tide_block_tree_deinit(tide_block_tree *t);
/// @return TIDE_ERR_NOMEM
tide_status tide_block_tree_insert(tide_block_tree *t, tide_block_span block) TIDE_NODISCARD;
/// `block` is in the tree.
void tide_block_tree_remove(tide_block_tree *t, tide_block_span block);
/// The first block that is not before `key`: at or above an address, or of at least so many bytes. false: none.
bool tide_block_tree_at_least(const tide_block_tree *t, tide_block_span key, tide_block_span *out);
/// The last block before `key`. false: none.
bool tide_block_tree_before(const tide_block_tree *t, tide_block_span key, tide_block_span *out);
/// In a tree by address the lowest block with an aligned place for `bytes`. false: none. Where alignments differ it may
/// have to look at blocks that are large enough but lie badly.
bool tide_block_tree_lowest_fit(const tide_block_tree *t, uint64_t bytes, uint64_t align, tide_block_span *out);
/// Bytes of the largest block; 0: the tree is empty.
uint64_t tide_block_tree_largest(const tide_block_tree *t);

// In a tree by address whose blocks never touch: what is free.

/// [begin, +bytes) is free from now on: one block with those that it touches; their `id` is that of `span`. No part of
/// it is in the tree, and bytes > 0. @return TIDE_ERR_NOMEM
tide_status tide_block_tree_give(tide_block_tree *t, tide_block_span span) TIDE_NODISCARD;
/// [begin, +bytes), bytes > 0, is free no more; what is left of its block stays. @return TIDE_ERR_NOT_FOUND: no block
/// holds all of it, and nothing was changed; TIDE_ERR_NOMEM
tide_status tide_block_tree_take(tide_block_tree *t, tide_block_span span) TIDE_NODISCARD;

#endif
