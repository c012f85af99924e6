// SPDX-License-Identifier: MIT
//
// What the files of the block share. Included inside core/memory only.
//
//     block.c          making and dropping          block_access.c   guards: reading and writing
//     block_cow.c      lazy clones and their end    block_factory.c  who makes blocks for a device type
#ifndef TIDE_CORE_MEMORY_BLOCK_INTERNAL_H
#define TIDE_CORE_MEMORY_BLOCK_INTERNAL_H

#include "core/memory/block.h"

/// In `flags` while a thread changes whose memory the block has: a lock of its own, that plain access sees as a reason
/// to take the long way.
#define TIDE__BLOCK_LOCKED 0x80000000u

/// A fresh id of an allocation.
uint64_t tide__block_next_id(void);
/// A block with one reference and a copy of `tag`, without id and memory; NULL: no host memory.
tide_block *tide__block_new(tide_device device, tide_memory_kind kind, const char *tag);
/// What errors call a block: its tag, or "(no name)".
static inline const char *tide__block_name(const tide_block *b) { return b->tag != NULL ? b->tag : "(no name)"; }

/// A dying block gives up its part in the memory of lazy clones; the last one gives the memory back to the owner.
void tide__cow_leave(tide_block *b);
/// The writes of this thread must not copy (tide_parallel_enter).
bool tide__in_parallel(void);

#endif
