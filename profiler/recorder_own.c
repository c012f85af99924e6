// SPDX-License-Identifier: MIT
//
// What a program tells of memory of its own, by block or by address. See "telling of memory of your own" in
// tidemark/record.h.
//
// A free says an address and nothing else; the trace wants the block's number and bytes. So live blocks are kept by
// address, in parts with a lock each: two threads meet only where their addresses fall into one part.
//
//     alloc   address -> part -> entry put in    -> event
//     free    address -> part -> entry taken out -> event
#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/recorder_internal.h"

enum { PART_BITS = 6, N_PARTS = 1 << PART_BITS };

typedef struct entry {
    uint64_t address; ///< the key
    uint64_t block_id, bytes;
    tide_memory_kind kind;
} entry;

typedef struct part {
    pthread_mutex_t lock;
    tide_map live;  ///< of entry
    char apart[64]; ///< the next lock lies in another line of the cache
} part;

struct tide__own_blocks {
    part parts[N_PARTS];
};

tide_status tide__own_blocks_create(tide__own_blocks **out, tide_error *err) {
    TIDE_TRY(TIDE_NEW(out, 1, err, "for the blocks of the program"));
    for (size_t i = 0; i < N_PARTS; i++) {
        pthread_mutex_init(&(*out)->parts[i].lock, NULL);
        (*out)->parts[i].live = (tide_map)TIDE_MAP(entry);
    }
    return TIDE_OK;
}

void tide__own_blocks_destroy(tide__own_blocks *blocks) {
    if (blocks == NULL) return;
    for (size_t i = 0; i < N_PARTS; i++) {
        pthread_mutex_destroy(&blocks->parts[i].lock);
        tide_map_deinit(&blocks->parts[i].live);
    }
    tide_host_free(blocks);
}

/// Addresses are multiples of 16 and often of a page: all their bits count (Fibonacci hashing).
static part *part_of(tide__own_blocks *blocks, uint64_t address) {
    return &blocks->parts[(address * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - PART_BITS)];
}

// ---- by address ----

/// Put in, under a new number, or under that of the block which is there already: an allocation of a number that is
/// live is what the trace knows as a problem. False: no memory for it.
static bool keep(tide__own_blocks *blocks, entry *fresh) {
    part *p = part_of(blocks, fresh->address);
    pthread_mutex_lock(&p->lock);
    entry *old = tide_map_find(&p->live, fresh->address);
    bool is_kept = true;
    if (old != NULL) {
        fresh->block_id = old->block_id;
        *old = *fresh;
    } else {
        fresh->block_id = tide_block_new_id();
        is_kept = tide_map_put(&p->live, fresh);
    }
    pthread_mutex_unlock(&p->lock);
    TIDE_ASSERT(fresh->block_id != 0);
    return is_kept;
}

/// Take it out into *e; false: no block lives there.
static bool let_go(tide__own_blocks *blocks, uint64_t address, entry *e) {
    part *p = part_of(blocks, address);
    pthread_mutex_lock(&p->lock);
    entry *found = tide_map_find(&p->live, address);
    const bool is_there = found != NULL;
    if (is_there) {
        *e = *found;
        TIDE_ASSERT(e->address == address && e->block_id != 0);
        tide_map_take(&p->live, found);
    }
    pthread_mutex_unlock(&p->lock);
    return is_there;
}

static void tell(tide_recorder *r, tide_memory_op op, const entry *e, const char *tag) {
    const tide_memory_event event = {.op = op,
                                     .block_id = e->block_id,
                                     .device = TIDE_CPU,
                                     .kind = e->kind,
                                     .requested_bytes = e->bytes,
                                     .reserved_bytes = e->bytes,
                                     .address = e->address,
                                     .thread = tide_thread_id(),
                                     .allocator = "program",
                                     .tag = tag,
                                     .scope = tide_scope_current()};
    tide__feed_memory(r->feed, &event);
}

/// In a child of fork a lock may be held for ever, by a thread that is not there.
static bool hears(const tide_recorder *r) { return r != NULL && !tide__feed_is_child(r->feed); }

void tide_recorder_alloc(tide_recorder *r, tide_memory_kind kind, const void *address, uint64_t bytes,
                         const char *tag) {
    if (!hears(r) || address == NULL) return;
    entry e = {.address = (uintptr_t)address, .bytes = bytes, .kind = kind};
    if (keep(r->own, &e))
        tell(r, TIDE_MEM_ALLOC, &e, tag);
    else
        tide__feed_refuse(r->feed, TIDE_ERR_NOMEM, "no memory to keep the address of a block");
}

void tide_recorder_free(tide_recorder *r, const void *address) {
    if (!hears(r) || address == NULL) return;
    entry e = {.address = (uintptr_t)address};
    // One that is not there: a new number, of which the trace knows no allocation.
    if (!let_go(r->own, e.address, &e)) e.block_id = tide_block_new_id();
    tell(r, TIDE_MEM_FREE_COMPLETED, &e, NULL);
}

// ---- by block ----

void tide_recorder_tell(tide_recorder *r, tide_memory_op op, tide_memory_event *e) {
    if (!hears(r)) return;
    e->op = op;
    e->t_ns = 0;
    e->thread = tide_thread_id();
    e->scope = tide_scope_current();
    if (op == TIDE_MEM_ALLOC || op == TIDE_MEM_SEGMENT_ALLOC) e->block_id = tide_block_new_id();
    if (e->reserved_bytes == 0) e->reserved_bytes = e->requested_bytes;
    tide__feed_memory(r->feed, e);
}
