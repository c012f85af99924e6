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

#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "core/base/map.h"
#include "profiler/drain/drain_slot.h"

typedef struct block {
    uint64_t address; ///< the key
    int64_t block_id, bytes;
} block;

typedef struct range {
    uint64_t begin, end;
    int64_t block_id;
    int32_t tag_id;
} range;

/// What the file has more of than the producer counted: it knows no sizes of what it frees, and one range for each
/// call.
typedef struct counts {
    int64_t allocs, frees, requested, freed;
    int64_t unknown; ///< frees of addresses where no block was known
    int64_t twice;   ///< allocs at addresses where one was
} counts;

struct tide__drain_addresses {
    tide_map blocks; ///< of block
    range *ranges;   ///< [n_ranges], owned
    size_t n_ranges, cap_ranges;
    counts now, stored;
    bool is_stored;
};

// ---- from the file ----

enum { KEY_BYTES = 48, TEXT_BYTES = 192 };

static void make_key(char key[KEY_BYTES], int64_t process_id) {
    snprintf(key, KEY_BYTES, "by_address.%" PRId64, process_id);
}

static tide_status read_counts(const tide__drain *d, int64_t process_id, counts *c, bool *is_there, tide_error *err) {
    const tide__sql *s = tide__store_sql(d->store);
    char key[KEY_BYTES];
    make_key(key, process_id);
    sqlite3_stmt *stmt;
    TIDE_TRY(tide__sql_prepare(s, "SELECT value FROM meta WHERE key = ?", &stmt, err));
    tide__sql_bind_text(stmt, 1, key);
    tide_status st = tide__sql_step(s, stmt, is_there, err);
    *c = (counts){0};
    // What cannot be read is as good as not there: these are differences, and the end compares the sums.
    if (st == TIDE_OK && *is_there)
        (void)!sscanf(tide__sql_text(stmt, 0),
                      "unknown=%" SCNd64 " twice=%" SCNd64 " allocs=%" SCNd64 " frees=%" SCNd64 " requested=%" SCNd64
                      " freed=%" SCNd64,
                      &c->unknown, &c->twice, &c->allocs, &c->frees, &c->requested, &c->freed);
    sqlite3_finalize(stmt);
    return st;
}

static bool put_range(tide__drain_addresses *a, const range *fresh);

static tide_status load_live(tide__drain *d, const tide__drain_feed *f, tide__drain_addresses *a) {
    int64_t ranges;
    TIDE_TRY(tide__names_text(&d->names, TIDE__BY_ADDRESS_RANGES, &ranges));
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(&d->replay, &i)) != NULL;) {
        if (b->block_id >> TIDE__BLOCK_ID_BITS != f->process_id - 1) continue;
        const block fresh = {(uint64_t)b->address, b->block_id, b->requested_bytes};
        const range pages = {fresh.address, fresh.address + (uint64_t)fresh.bytes, b->block_id, b->tag_id};
        const bool is_range = b->allocator_id == ranges;
        if (fresh.address == 0) continue;
        if (!(is_range ? put_range(a, &pages) : tide_map_put(&a->blocks, &fresh))) return TIDE_ERR_NOMEM;
    }
    return TIDE_OK;
}

tide_status tide__drain_addresses_make(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    tide__drain_addresses *a;
    TIDE_TRY(TIDE_NEW(&a, 1, err, "to record into '%s'", d->path));
    a->blocks = (tide_map)TIDE_MAP(block);
    f->addresses = a;
    TIDE_TRY(read_counts(d, f->process_id, &a->now, &a->is_stored, err));
    a->stored = a->now;
    if (!a->is_stored) return TIDE_OK;
    return load_live(d, f, a) == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
}

void tide__drain_addresses_destroy(tide__drain_addresses *a) {
    if (a == NULL) return;
    tide_map_deinit(&a->blocks);
    tide_host_free(a->ranges);
    tide_host_free(a);
}

// ---- into the file ----

static bool are_same(const counts *a, const counts *b) { return memcmp(a, b, sizeof *a) == 0; }

tide_status tide__drain_addresses_write(tide__drain *d, tide__drain_feed *f, tide_error *err) {
    const tide__drain_addresses *a = f->addresses;
    if (a == NULL || (a->is_stored && are_same(&a->now, &a->stored))) return TIDE_OK;
    char key[KEY_BYTES], text[TEXT_BYTES];
    make_key(key, f->process_id);
    snprintf(text, sizeof text,
             "unknown=%" PRId64 " twice=%" PRId64 " allocs=%" PRId64 " frees=%" PRId64 " requested=%" PRId64
             " freed=%" PRId64,
             a->now.unknown, a->now.twice, a->now.allocs, a->now.frees, a->now.requested, a->now.freed);
    return tide__store_put_meta(d->store, key, text, err);
}

void tide__drain_addresses_written(tide__drain_feed *f) {
    if (f->addresses == NULL) return;
    f->addresses->stored = f->addresses->now;
    f->addresses->is_stored = true;
}

void tide__drain_addresses_correct(const tide__drain_addresses *a, tide__ring_total *total) {
    const counts *c = &a->now;
    atomic_store_explicit(&total->n_allocs, total->n_allocs + (uint64_t)c->allocs, memory_order_relaxed);
    atomic_store_explicit(&total->n_frees, total->n_frees + (uint64_t)c->frees, memory_order_relaxed);
    atomic_store_explicit(&total->requested_bytes, total->requested_bytes + (uint64_t)c->requested,
                          memory_order_relaxed);
    atomic_store_explicit(&total->freed_bytes, total->freed_bytes + (uint64_t)c->freed, memory_order_relaxed);
}

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
static tide_status end_older(tide__drain *d, tide__drain_feed *f, const tide__event *like, const block *older,
                             size_t *n, tide_error *err) {
    counts *c = &f->addresses->now;
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
    block *known = tide_map_find(&a->blocks, address);
    if (known != NULL) TIDE_TRY(end_older(d, f, like, known, n, err));
    block fresh = {.address = address, .bytes = bytes};
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
    block *known = tide_map_find(&a->blocks, address);
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
    counts *c = &r->feed->addresses->now;
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

/// The first one that ends behind `address`.
static size_t find_range(const tide__drain_addresses *a, uint64_t address) {
    size_t lo = 0, hi = a->n_ranges;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a->ranges[mid].end <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/// In its place by address, where nothing else is. False: no memory.
static bool put_range(tide__drain_addresses *a, const range *fresh) {
    if (tide_host_grow(&a->ranges, &a->cap_ranges, a->n_ranges + 1, sizeof *a->ranges) != TIDE_OK) return false;
    const size_t i = find_range(a, fresh->begin);
    memmove(&a->ranges[i + 1], &a->ranges[i], (a->n_ranges - i) * sizeof *a->ranges);
    a->ranges[i] = *fresh;
    a->n_ranges++;
    return true;
}

static tide_status add_range(tide__drain *d, tide__drain_feed *f, const tide__event *like, uint64_t begin, uint64_t end,
                             size_t *n, tide_error *err) {
    range fresh = {.begin = begin, .end = end, .tag_id = like->tag_id};
    TIDE_TRY(emit(d, f, like, TIDE_MEM_ALLOC, &fresh.block_id, begin, (int64_t)(end - begin), n, err));
    return put_range(f->addresses, &fresh) ? TIDE_OK : no_memory(d, err);
}

/// A part of the range that stays, as a block of its own with the name that it had.
static tide_status keep_part(tide__drain *d, tide__drain_feed *f, const tide__event *like, const range *of,
                             uint64_t begin, uint64_t end, size_t *n, tide_error *err) {
    if (begin >= end) return TIDE_OK;
    tide__event part = *like;
    part.tag_id = of->tag_id;
    f->addresses->now.allocs++;
    f->addresses->now.requested += (int64_t)(end - begin);
    return add_range(d, f, &part, begin, end, n, err);
}

/// Whatever there is in [begin, end). *went: bytes of it.
static tide_status end_ranges(tide__drain *d, tide__drain_feed *f, const tide__event *like, uint64_t begin,
                              uint64_t end, int64_t *went, size_t *n, tide_error *err) {
    tide__drain_addresses *a = f->addresses;
    *went = 0;
    for (size_t i = find_range(a, begin); i < a->n_ranges && a->ranges[i].begin < end; i = find_range(a, begin)) {
        range old = a->ranges[i];
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
    counts *c = &r->feed->addresses->now;
    c->frees--; // the producer's, of the whole call
    c->freed -= (int64_t)(end - begin);
    return end_ranges(d, r->feed, like, begin, end, &r->range_went, n, err);
}

static tide_status alloc_range(tide__drain *d, tide__drain_ring *r, const tide__event *like, int how, uint64_t begin,
                               uint64_t end, size_t *n, tide_error *err) {
    counts *c = &r->feed->addresses->now;
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

/// Whether ring `r` has that operation on the block at `address` a little way ahead.
static bool comes_soon(tide__drain_ring *r, uint8_t op, uint64_t address, int64_t until_ns) {
    const uint64_t end = r->end - r->position > AHEAD_SLOTS ? r->position + AHEAD_SLOTS : r->end;
    for (uint64_t at = r->position; at < end; at++) {
        const volatile tide__slot *s = tide__drain_slot(r, at);
        if (s == NULL) return false;
        if (s->op == op && s->address == address && s->block_id == 0 && s->stream < TIDE__BY_ADDRESS_RANGE) return true;
        if (tide__drain_ns_of(r->feed, s->time, s->kind_flags) > (uint64_t)until_ns) return false;
    }
    return false;
}

tide__drain_ring *tide__drain_address_cause(tide__drain *d, tide__drain_ring *r) {
    const volatile tide__slot *s = tide__drain_place(r, r->position);
    const uint64_t address = s->address;
    if (s->stream >= TIDE__BY_ADDRESS_RANGE || address == 0) return NULL;
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
