// SPDX-License-Identifier: MIT
//
// The blocks of a process by address. See drain_address.h.
//
//     slot   ALLOC a n    -> table: a -> block 17, n bytes     event  alloc 17, n bytes
//     slot   FREE a       -> table: a -> gone                  event  free  17, n bytes
//
// A block has the number of the event that allocates it: there is no counter to keep. The table is made again of the
// live blocks that the file has, so a drain that takes over knows what the one before knew.
//
// Ranges of pages lie in an array, in the order of their addresses. Of a range any part may go; what is left of it is
// another block, or two:
//
//     before    |------- 5 -------|        munmap    |---|       events  free 5, alloc 8, alloc 9
//     after     |- 8 -|   |-- 9 --|
//
// Threads are in order by the times of their slots: a free is put in before its block can be another's, an alloc after
// it was. Where two clocks differ by less than that, an alloc of an address that is live waits for the free that
// another ring has just behind, and a free of one that is not live for the alloc.
#include "profiler/drain/drain_address.h"

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/drain/drain_slot.h"

// ---- one event of the file ----

static tide_status no_memory(const tide__drain *d, tide_error *err) {
    return TIDE_NO_MEMORY(err, "to keep the addresses of blocks for '%s'", d->path);
}

/// As `like`, but of that block; *block_id 0: a new one, which is told.
static tide_status emit(tide__drain *d, const tide__drain_feed *f, const tide__event *like, uint8_t op,
                        int64_t *block_id, uint64_t address, int64_t bytes, size_t *n, tide_error *err) {
    TIDE_ASSERT(d->n_events < TIDE__DRAIN_BUFFER_EVENTS && bytes >= 0);
    tide__event *e = &d->events[d->n_events];
    *e = *like;
    e->op = op;
    e->stream = 0;
    e->address = tide__drain_all_bits(address);
    e->requested_bytes = e->reserved_bytes = bytes;
    if (*block_id == 0) {
        if ((d->last_event + 1) >> TIDE__BLOCK_ID_BITS != 0)
            return TIDE_FAIL(err, TIDE_ERR_NO_SPACE, "cannot record into '%s': it has no more numbers for blocks",
                             d->path);
        *block_id = tide__drain_block_id(f, (uint64_t)d->last_event + 1);
    }
    e->block_id = *block_id;
    TIDE_TRY(tide__drain_take(d, f, err));
    ++*n;
    return TIDE_OK;
}

// ---- blocks ----

/// Where one is known to be: the older one ends, as it must have.
static tide_status end_older(tide__drain *d, tide__drain_feed *f, const tide__event *like,
                             const tide__address_block *older, size_t *n, tide_error *err) {
    tide__address_counts *c = &f->addresses->now;
    c->twice++;
    c->frees++;
    c->freed += older->bytes;
    int64_t block_id = older->block_id;
    const int64_t bytes = older->bytes;
    return emit(d, f, like, TIDE_MEM_FREE_COMPLETED, &block_id, older->address, bytes, n, err);
}

static tide_status alloc_block(tide__drain *d, tide__drain_feed *f, const tide__event *like, uint64_t address,
                               int64_t bytes, size_t *n, tide_error *err) {
    tide__drain_addresses *a = f->addresses;
    tide__address_block *known = tide_map_find(&a->blocks, address);
    if (known != NULL) TIDE_TRY(end_older(d, f, like, known, n, err));
    tide__address_block fresh = {.address = address, .bytes = bytes};
    TIDE_TRY(emit(d, f, like, TIDE_MEM_ALLOC, &fresh.block_id, address, bytes, n, err));
    if (known != NULL)
        *known = fresh;
    else if (!tide_map_put(&a->blocks, &fresh))
        return no_memory(d, err);
    return TIDE_OK;
}

/// A free of an address that is not known is an event too, of a block that no other event tells of.
static tide_status free_block(tide__drain *d, tide__drain_ring *r, const tide__event *like, uint64_t address, size_t *n,
                              tide_error *err) {
    tide__drain_addresses *a = r->feed->addresses;
    tide__address_block *known = tide_map_find(&a->blocks, address);
    int64_t block_id = 0;
    r->went = (tide__drain_went){0};
    if (known == NULL) {
        a->now.unknown++;
        a->now.frees--;
        return emit(d, r->feed, like, TIDE_MEM_FREE_COMPLETED, &block_id, address, 0, n, err);
    }
    r->went = (tide__drain_went){.address = address, .bytes = known->bytes, .is_there = true};
    block_id = known->block_id;
    a->now.freed += known->bytes;
    tide_map_take(&a->blocks, known);
    return emit(d, r->feed, like, TIDE_MEM_FREE_COMPLETED, &block_id, address, r->went.bytes, n, err);
}

/// realloc found no room: the block that its free ended is there still, as a new one.
static tide_status bring_back(tide__drain *d, tide__drain_ring *r, const tide__event *like, uint64_t address, size_t *n,
                              tide_error *err) {
    tide__address_counts *c = &r->feed->addresses->now;
    const tide__drain_went went = r->went;
    r->went = (tide__drain_went){0};
    if (!went.is_there || went.address != address) {
        c->allocs--;
        return TIDE_OK;
    }
    c->requested += went.bytes;
    return alloc_block(d, r->feed, like, address, went.bytes, n, err);
}

// ---- ranges ----

static tide_status add_range(tide__drain *d, tide__drain_feed *f, const tide__event *like, uint64_t begin, uint64_t end,
                             size_t *n, tide_error *err) {
    tide__address_range fresh = {.begin = begin, .end = end, .tag_id = like->tag_id, .scope_id = like->scope_id};
    TIDE_TRY(emit(d, f, like, TIDE_MEM_ALLOC, &fresh.block_id, begin, (int64_t)(end - begin), n, err));
    return tide__drain_put_range(f->addresses, &fresh) ? TIDE_OK : no_memory(d, err);
}

/// A part of the range that stays, as a block of its own with the name and the call stack that it had.
static tide_status keep_part(tide__drain *d, tide__drain_feed *f, const tide__event *like,
                             const tide__address_range *of, uint64_t begin, uint64_t end, size_t *n, tide_error *err) {
    if (begin >= end) return TIDE_OK;
    tide__event part = *like;
    part.tag_id = of->tag_id;
    part.scope_id = of->scope_id;
    f->addresses->now.allocs++;
    f->addresses->now.requested += (int64_t)(end - begin);
    return add_range(d, f, &part, begin, end, n, err);
}

/// Whatever there is in [begin, end). *went: bytes of it.
static tide_status end_ranges(tide__drain *d, tide__drain_feed *f, const tide__event *like, uint64_t begin,
                              uint64_t end, int64_t *went, size_t *n, tide_error *err) {
    tide__drain_addresses *a = f->addresses;
    *went = 0;
    for (size_t i = tide__drain_find_range(a, begin); i < a->n_ranges && a->ranges[i].begin < end;
         i = tide__drain_find_range(a, begin)) {
        tide__address_range old = a->ranges[i];
        memmove(&a->ranges[i], &a->ranges[i + 1], (--a->n_ranges - i) * sizeof *a->ranges);
        a->now.frees++;
        a->now.freed += (int64_t)(old.end - old.begin);
        TIDE_TRY(emit(d, f, like, TIDE_MEM_FREE_COMPLETED, &old.block_id, old.begin, (int64_t)(old.end - old.begin), n,
                      err));
        const uint64_t from = old.begin > begin ? old.begin : begin, to = old.end < end ? old.end : end;
        *went += (int64_t)(to - from);
        TIDE_TRY(keep_part(d, f, like, &old, old.begin, from, n, err));
        TIDE_TRY(keep_part(d, f, like, &old, to, old.end, n, err));
    }
    return TIDE_OK;
}

static tide_status free_ranges(tide__drain *d, tide__drain_ring *r, const tide__event *like, uint64_t begin,
                               uint64_t end, size_t *n, tide_error *err) {
    tide__address_counts *c = &r->feed->addresses->now;
    c->frees--; // the producer's, of the whole call
    c->freed -= (int64_t)(end - begin);
    return end_ranges(d, r->feed, like, begin, end, &r->range_went, n, err);
}

static tide_status alloc_range(tide__drain *d, tide__drain_ring *r, const tide__event *like, int how, uint64_t begin,
                               uint64_t end, size_t *n, tide_error *err) {
    tide__address_counts *c = &r->feed->addresses->now;
    const int64_t bytes = (int64_t)(end - begin), went = r->range_went;
    if (how != TIDE__BY_ADDRESS_RANGE) {
        r->range_went = 0;
        const int64_t back = went == 0 ? 0 : how == TIDE__BY_ADDRESS_RANGE_BACK ? went : bytes;
        c->requested += back - bytes;
        c->allocs -= back == 0;
        if (back == 0) return TIDE_OK;
        end = begin + (uint64_t)back;
    }
    int64_t unused; // what was unmapped behind our back
    TIDE_TRY(end_ranges(d, r->feed, like, begin, end, &unused, n, err));
    return add_range(d, r->feed, like, begin, end, n, err);
}

// ---- a slot ----

tide_status tide__drain_take_address(tide__drain *d, tide__drain_ring *r, size_t *n, tide_error *err) {
    const tide__event like = d->events[d->n_events];
    const uint64_t address = (uint64_t)like.address, end = address + (uint64_t)like.requested_bytes;
    const bool is_alloc = like.op == TIDE_MEM_ALLOC;
    if (address == 0 || like.stream < 0 || like.stream > TIDE__BY_ADDRESS_RANGE_MOVED)
        return tide__drain_damage(d, r->feed, r, "a slot has no address", err);
    const int how = (int)like.stream;
    if (how >= TIDE__BY_ADDRESS_RANGE) {
        if (end <= address) return tide__drain_damage(d, r->feed, r, "a range has no end", err);
        return is_alloc ? alloc_range(d, r, &like, how, address, end, n, err)
                        : free_ranges(d, r, &like, address, end, n, err);
    }
    if (!is_alloc) return free_block(d, r, &like, address, n, err);
    if (how == TIDE__BY_ADDRESS_COMES_BACK) return bring_back(d, r, &like, address, n, err);
    return alloc_block(d, r->feed, &like, address, like.requested_bytes, n, err);
}

// ---- two threads, one address ----

enum { AHEAD_SLOTS = 4096 }; ///< of a ring, at most

static inline uint32_t how_of(const volatile tide__slot *s) { return (uint32_t)s->stream; }

/// Whether ring `r` has that operation on the block at `address` a little way ahead.
static bool comes_soon(tide__drain_ring *r, uint8_t op, uint64_t address, int64_t until_ns) {
    const uint64_t end = r->end - r->position > AHEAD_SLOTS ? r->position + AHEAD_SLOTS : r->end;
    for (uint64_t at = r->position; at < end; at++) {
        const volatile tide__slot *s = tide__drain_slot(r, at);
        if (s == NULL) return false;
        if (s->op == op && s->address == address && s->block_id == 0 && how_of(s) < TIDE__BY_ADDRESS_RANGE) return true;
        if (tide__drain_ns_of(r->feed, s->time, s->kind_flags) > (uint64_t)until_ns) return false;
    }
    return false;
}

tide__drain_ring *tide__drain_address_cause(tide__drain *d, tide__drain_ring *r) {
    const volatile tide__slot *s = tide__drain_place(r, r->position);
    const uint64_t address = s->address;
    if (how_of(s) >= TIDE__BY_ADDRESS_RANGE || address == 0) return NULL;
    const bool is_live = tide_map_find(&r->feed->addresses->blocks, address) != NULL;
    const bool is_alloc = r->op == TIDE_MEM_ALLOC;
    if (is_live != is_alloc) return NULL; // as it should be
    const uint8_t wanted = is_alloc ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_ALLOC;
    const int64_t until_ns = r->t_ns < INT64_MAX - TIDE__DRAIN_CLOCKS_NS ? r->t_ns + TIDE__DRAIN_CLOCKS_NS : INT64_MAX;
    for (size_t i = 0; i < d->n_active; i++) {
        tide__drain_ring *other = d->active[i];
        if (other != r && other->has_next && other->feed == r->feed && other->t_ns <= until_ns &&
            comes_soon(other, wanted, address, until_ns))
            return other;
    }
    return NULL;
}
