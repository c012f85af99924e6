// SPDX-License-Identifier: MIT
//
// ledger: what is live, by address. A *block* is memory that the driver gave; it has one key for each way in which the
// program names it: an address, the handle of an array, the handle of physical memory and every address where that is
// mapped.
//
//     keys (hash table)                         blocks
//     address 7f2a00000000, 2 MiB  ------->  [ cuMemAlloc, 2 MiB, cuda:0, context … ]
//     handle  55d0c0           ---.
//     address 302000000, 20 MiB  ----+-->  [ cuMemMap, 20 MiB, 1 handle, 2 mappings ]
//     address 304000000, 20 MiB  ----
//
// Memory comes from the system by pages: the callbacks of CUPTI, which come here, may run inside of a malloc of the
// recorded program. All functions are called with the lock of the recorder held (recorder.h).
#ifndef TIDE_CUDA_CUPTI_LEDGER_H
#define TIDE_CUDA_CUPTI_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tide__cupti_space {
    TIDE__CUPTI_ADDRESS,
    TIDE__CUPTI_PHYSICAL, ///< CUmemGenericAllocationHandle
    TIDE__CUPTI_ARRAY,    ///< CUarray, CUmipmappedArray
    TIDE__CUPTI_GRAPH,    ///< memory of graphs: by a number of our own
} tide__cupti_space;

typedef struct tide__cupti_block {
    uint64_t id;     ///< its number in the trace now; 0: in no trace (tidemark's own)
    uint64_t serial; ///< never changes and is never given again; `id` changes when the block is announced again
    uint64_t address, bytes;
    uint64_t since_ns; ///< when it was announced first
    uint64_t key;      ///< its name, where it has just one
    uint64_t stream;
    const char *allocator, *tag; ///< static texts
    const void *context;         ///< CUcontext that it goes with; NULL: none
    int32_t device;              ///< -1: of the host
    uint32_t freeing;            ///< correlation id of the free that has begun; 0: none
    uint32_t n_handles, n_maps;  ///< physical memory
    uint32_t next_free;          ///< of the ledger
    uint8_t kind;                ///< tide_memory_kind
    uint8_t space;               ///< of `key`
    bool is_used;                ///< of the ledger
    bool is_own;                 ///< asked for by tidemark's allocators
    bool goes_last;              ///< with the last context of its device
    bool is_pooled;              ///< but not unless that is the primary one: blocks of pools
} tide__cupti_block;

/// One name of a block.
typedef struct tide__cupti_key {
    uint64_t key, bytes;
    uint32_t block; ///< number of it + 1; 0: the entry is free
    uint32_t space;
} tide__cupti_key;

typedef struct tide__cupti_ledger {
    tide__cupti_key *keys; ///< [n_slots], a power of two
    size_t n_slots, n_keys;
    tide__cupti_block *blocks; ///< [n_blocks]
    size_t n_blocks, cap_blocks;
    uint32_t first_free; ///< number + 1
    uint64_t n_serials;
} tide__cupti_ledger;

/// Gives all memory back; the ledger is empty then, as an all-zero one is.
void tide__cupti_ledger_clear(tide__cupti_ledger *l);
/// A block without a name, all zero but for `serial`. NULL: no memory. Valid until the next call of this function.
tide__cupti_block *tide__cupti_ledger_new(tide__cupti_ledger *l);
/// Forgets the block; its names have been taken away.
void tide__cupti_ledger_drop(tide__cupti_ledger *l, tide__cupti_block *b);
/// A name that is free. False: no memory.
bool tide__cupti_ledger_bind(tide__cupti_ledger *l, tide__cupti_space space, uint64_t key, uint64_t bytes,
                             const tide__cupti_block *b);
/// Takes the name away; nothing where there is none.
void tide__cupti_ledger_unbind(tide__cupti_ledger *l, tide__cupti_space space, uint64_t key);
/// NULL: none has this name. `bytes` (optional): as they were bound.
tide__cupti_block *tide__cupti_ledger_find(const tide__cupti_ledger *l, tide__cupti_space space, uint64_t key,
                                           uint64_t *bytes);
/// The lowest address of a block in [begin, end), with its bytes; NULL: none. Looks at all names where nothing is bound
/// at `begin` itself.
tide__cupti_block *tide__cupti_ledger_first_in(const tide__cupti_ledger *l, uint64_t begin, uint64_t end,
                                               uint64_t *address, uint64_t *bytes);
/// Block after block: *at counts on from 0. NULL: no more. The one that came last may be dropped.
tide__cupti_block *tide__cupti_ledger_next(const tide__cupti_ledger *l, size_t *at);

/// Pages of the system, zero; grown to at least `want` items of `item_bytes`, twice as large each time. False: none.
bool tide__cupti_pages_grow(void **pages, size_t *cap, size_t want, size_t item_bytes);
void tide__cupti_pages_free(void *pages, size_t cap, size_t item_bytes);

#endif
