// SPDX-License-Identifier: MIT
//
// The table of live blocks from the inside, and the usual case of an event, to be inlined where events come one after
// the other: a block that nobody contradicts, of a series that is there already. Included by replay.c, which does all
// the rest, and by the drain's merge. See replay.h.
#ifndef TIDE_PROFILER_DRAIN_REPLAY_USUAL_H
#define TIDE_PROFILER_DRAIN_REPLAY_USUAL_H

#include "profiler/drain/replay.h"

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

/// A place for a block, which the caller fills in.
static inline tide__live_block *tide__replay_take_place(tide__replay *r, size_t series_i, int64_t block_id,
                                                        int64_t requested_bytes, int64_t reserved_bytes) {
    const size_t place = r->n_free > 0 ? r->free_places[--r->n_free] : r->n_blocks++;
    tide__live_entry *entry = &r->table[tide__replay_take_entry(r, block_id)];
    entry->block_id = block_id;
    entry->requested_bytes = requested_bytes;
    entry->reserved_bytes = reserved_bytes;
    entry->place = (uint32_t)place;
    entry->series = (uint32_t)series_i;
    r->is_live[place / 64] |= UINT64_C(1) << place % 64;
    return &r->blocks[place];
}

/// The place of an entry, and the entry.
static inline void tide__replay_give_place(tide__replay *r, size_t entry_i) {
    const size_t place = r->table[entry_i].place;
    tide__replay_give_entry(r, entry_i);
    r->is_live[place / 64] &= ~(UINT64_C(1) << place % 64);
    r->free_places[r->n_free++] = (uint32_t)place;
    // It is the next one to be filled.
    __builtin_prefetch(&r->blocks[place], 1);
    __builtin_prefetch((const char *)&r->blocks[place + 1] - 1, 1);
}

/// Whether there is room for one block more without asking for memory.
static inline bool tide__replay_has_room(const tide__replay *r) {
    return 4 * (r->n_live + r->n_gone + 1) <= 3 * r->n_table && (r->n_free > 0 || r->n_blocks < r->cap_blocks);
}

/// Whether it would be compacted with `n_live` live blocks: with fewer than 1 in 4 places taken; few free ones cost
/// nobody anything.
static inline bool tide__replay_is_sparse(const tide__replay *r, size_t n_live) {
    enum { ABOVE = 1024, SPARSE = 4 };
    return r->n_blocks > ABOVE && r->n_blocks > SPARSE * n_live;
}

// ---- sums ----

/// Far from passing 2^63 - 1, as mostly.
static inline bool tide__series_holds_easily(const tide__replay *r, const tide__series *s, int64_t requested,
                                             int64_t reserved) {
    const tide__series *all = &r->series[0];
    return ((uint64_t)(s->freed_bytes | s->live_bytes | all->live_bytes | all->live_reserved_bytes) |
            (uint64_t)(requested | reserved)) >>
               61 ==
           0;
}

static inline void tide__series_add(tide__replay *r, tide__series *s, int64_t requested, int64_t reserved) {
    s->live_bytes += requested;
    s->live_reserved_bytes += reserved;
    r->series[0].live_bytes += requested;
    r->series[0].live_reserved_bytes += reserved;
}

static inline void tide__series_take(tide__replay *r, tide__series *s, const tide__live_entry *entry) {
    s->live_bytes -= entry->requested_bytes;
    s->live_reserved_bytes -= entry->reserved_bytes;
    s->freed_bytes += entry->requested_bytes;
    s->n_frees++;
    r->series[0].live_bytes -= entry->requested_bytes;
    r->series[0].live_reserved_bytes -= entry->reserved_bytes;
}

#endif
