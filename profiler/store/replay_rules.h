// SPDX-License-Identifier: MIT
//
// What an event does to memory: the rules, to be inlined. replay.c applies them to every event and knows all rare
// cases; the drain applies them to many usual events in a row (drain_usual.c). The table of live blocks is described in
// replay.h.
#ifndef TIDE_PROFILER_STORE_REPLAY_RULES_H
#define TIDE_PROFILER_STORE_REPLAY_RULES_H

#include <string.h>

#include "profiler/store/replay.h"

// ---- the table ----

/// Entry of that block; SIZE_MAX: it is not live. There is a table.
static inline size_t tide__replay_entry_of(const tide__replay *r, int64_t block_id) {
    const uint64_t hash = tide__replay_hash(block_id);
    const uint8_t tag = tide__replay_tag(r, hash);
    size_t group = tide__replay_group(r, hash);
    for (;;) {
        const uint8_t *tags = &r->tags[group];
        for (unsigned left = tide__group_match(tags, tag); left != 0; left &= left - 1) {
            const size_t i = group + (unsigned)__builtin_ctz(left);
            if (__builtin_expect(r->table[i].block_id == block_id, 1)) return i;
        }
        if (__builtin_expect(tide__group_match(tags, TIDE__TAG_NEVER) != 0, 1)) return SIZE_MAX;
        group = (group + TIDE__GROUP) & (r->n_table - 1);
    }
}

/// The first entry that is free for that block, with its tag set. There is one.
static inline size_t tide__replay_take_entry(tide__replay *r, int64_t block_id) {
    const uint64_t hash = tide__replay_hash(block_id);
    size_t group = tide__replay_group(r, hash);
    for (;; group = (group + TIDE__GROUP) & (r->n_table - 1)) {
        const uint8_t *tags = &r->tags[group];
        unsigned left = tide__group_match(tags, TIDE__TAG_NEVER);
        if (__builtin_expect(r->n_gone != 0, 0)) {
            const unsigned gone = tide__group_match(tags, TIDE__TAG_GONE);
            r->n_gone -= gone != 0;
            left = gone != 0 ? gone : left;
        }
        if (__builtin_expect(left == 0, 0)) continue;
        const size_t i = group + (unsigned)__builtin_ctz(left);
        r->tags[i] = tide__replay_tag(r, hash);
        r->n_live++;
        return i;
    }
}

/// A search ends at a group with an entry that was never taken; where there is none, others may lie behind it.
static inline void tide__replay_give_entry(tide__replay *r, size_t i) {
    const bool was_full = tide__group_match(&r->tags[i & ~(size_t)(TIDE__GROUP - 1)], TIDE__TAG_NEVER) == 0;
    r->tags[i] = was_full ? TIDE__TAG_GONE : TIDE__TAG_NEVER;
    r->n_gone += was_full;
    r->n_live--;
}

static inline bool tide__replay_is_live_at(const tide__replay *r, size_t place) {
    return r->is_live[place / 64] >> place % 64 & 1;
}

/// Whether the blocks are to be compacted: fewer than 1 in 4 places are taken, and there are many.
static inline bool tide__replay_is_sparse(const tide__replay *r, size_t n_live) {
    enum { ABOVE = 1024, SPARSE = 4 };
    return r->n_blocks > ABOVE && r->n_blocks > SPARSE * n_live;
}

// ---- sums ----

/// Far from passing 2^63 - 1, as mostly.
static inline bool tide__series_holds_easily(const tide__replay *r, const tide__series *s, int64_t requested,
                                             int64_t reserved) {
    const tide__series *all = &r->series[0];
    return ((uint64_t)(s->freed_bytes | s->left_bytes | s->live_bytes | all->live_bytes | all->live_reserved_bytes) |
            (uint64_t)(requested | reserved)) >>
               61 ==
           0;
}

// ---- rules ----

/// The arrays of a replay, to be held in local variables: a compiler need not load them again after every store.
typedef struct tide__replay_arrays {
    tide__live_entry *table;
    uint8_t *tags;
    tide__live_block *blocks;
    uint64_t *is_live;
    uint32_t *free_places;
    tide__series *series;
} tide__replay_arrays;

static inline tide__replay_arrays tide__replay_arrays_of(const tide__replay *r) {
    return (tide__replay_arrays){r->table, r->tags, r->blocks, r->is_live, r->free_places, r->series};
}

/// A block becomes live in entry `entry_i`, whose tag is set. There is a free place. @return where it lies
static inline tide__live_block *tide__replay_add_block(tide__replay *r, const tide__replay_arrays *a, size_t entry_i,
                                                       size_t series_i, int64_t block_id, int64_t requested,
                                                       int64_t reserved) {
    const size_t place = r->n_free > 0 ? a->free_places[--r->n_free] : r->n_blocks++;
    tide__live_entry *entry = &a->table[entry_i];
    entry->block_id = block_id;
    entry->requested_bytes = requested;
    entry->reserved_bytes = reserved;
    entry->place = (uint32_t)place;
    entry->series = (uint32_t)series_i;
    a->is_live[place / 64] |= UINT64_C(1) << place % 64;
    tide__series *s = &a->series[series_i], *all = &a->series[0];
    s->live_bytes += requested;
    s->live_reserved_bytes += reserved;
    all->live_bytes += requested;
    all->live_reserved_bytes += reserved;
    return &a->blocks[place];
}

/// Alloc: the block of `e` becomes live in entry `entry_i`, as above; the sums hold it.
static inline void tide__replay_rule_alloc(tide__replay *r, const tide__replay_arrays *a, size_t entry_i,
                                           size_t series_i, const tide__event *e) {
    const int64_t requested = e->requested_bytes;
    tide__live_block *b = tide__replay_add_block(r, a, entry_i, series_i, e->block_id, requested, e->reserved_bytes);
    // Number and time were stored a moment ago: to read both at once would wait until that is done.
    b->alloc_event = e->id;
    b->alloc_ns = e->t_ns;
    memcpy(&b->block_id, &e->block_id, sizeof *e - offsetof(tide__event, block_id));
    b->zero = 0;
    b->free_requested_ns = 0;
    tide__series *s = &a->series[series_i];
    s->n_allocs++;
    s->requested_bytes += requested;
    s->last_event = a->series[0].last_event = e->id;
}

/// End of a live block: its sums, its entry and its place. @return its series
static inline size_t tide__replay_rule_end(tide__replay *r, const tide__replay_arrays *a, size_t entry_i,
                                           const tide__event *e) {
    const tide__live_entry *entry = &a->table[entry_i];
    const size_t series_i = entry->series, place = entry->place;
    tide__series *s = &a->series[series_i], *all = &a->series[0];
    s->live_bytes -= entry->requested_bytes;
    s->live_reserved_bytes -= entry->reserved_bytes;
    s->freed_bytes += entry->requested_bytes;
    s->n_frees++;
    all->live_bytes -= entry->requested_bytes;
    all->live_reserved_bytes -= entry->reserved_bytes;
    s->last_event = all->last_event = e->id;
    tide__replay_give_entry(r, entry_i);
    a->is_live[place / 64] &= ~(UINT64_C(1) << place % 64);
    a->free_places[r->n_free++] = (uint32_t)place;
    // It is the next one to be filled.
    __builtin_prefetch(&a->blocks[place], 1);
    __builtin_prefetch((const char *)&a->blocks[place + 1] - 1, 1);
    return series_i;
}

/// Request to free a live block. False: it was requested before.
static inline bool tide__replay_rule_request(const tide__replay_arrays *a, size_t entry_i, const tide__event *e) {
    tide__live_block *b = &a->blocks[a->table[entry_i].place];
    if (b->free_requested_ns != 0) return false;
    b->free_requested_ns = e->t_ns;
    return true;
}

#endif
