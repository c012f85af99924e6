// SPDX-License-Identifier: MIT
//
// Blocks and segments of one device without overlap. See torch_space.h.
#include "reports/torch_space.h"

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"

enum { ALIGN = 16 };                  // of made-up addresses
#define MAX_BYTES (UINT64_C(1) << 62) // of a block: more is refused by who reads it, and is no memory

static uint64_t end_of(tide_block_span s) { return s.begin + s.bytes; }

/// The span that holds `at`, or else the first behind it. False: there is none.
static bool span_from(const tide_block_tree *t, uint64_t at, tide_block_span *out) {
    if (tide_block_tree_before(t, (tide_block_span){.begin = at + 1}, out) && end_of(*out) > at) return true;
    return tide_block_tree_at_least(t, (tide_block_span){.begin = at + 1}, out);
}

// ---- segments ----

static tide_status add_segment(tide__torch_space *s, uint64_t begin, uint64_t end, uint64_t stream, bool is_own) {
    uint32_t id;
    if (begin >= end) return TIDE_OK;
    if (s->free_info != 0) {
        id = s->free_info - 1;
        s->free_info = s->infos[id].next_free;
    } else {
        if (s->n_infos >= UINT32_MAX - 1) return TIDE_ERR_NOMEM;
        TIDE_TRY(tide_host_grow(&s->infos, &s->cap_infos, s->n_infos + 1, sizeof *s->infos));
        id = (uint32_t)s->n_infos++;
    }
    s->infos[id] = (tide__torch_segment_info){.stream = stream, .is_own = is_own};
    return tide_block_tree_insert(&s->segments, (tide_block_span){begin, end - begin, id});
}

static void drop_segment(tide__torch_space *s, tide_block_span segment) {
    tide_block_tree_remove(&s->segments, segment);
    s->infos[segment.id].next_free = s->free_info;
    s->free_info = segment.id + 1;
}

static tide_status tell(tide__torch_space *s, bool comes, uint64_t begin, uint64_t end, uint64_t stream) {
    if (begin >= end) return TIDE_OK;
    return s->tell(s->ctx, comes, (tide_block_span){.begin = begin, .bytes = end - begin}, stream);
}

/// Whether an allocator may have such a range: not in the room of made-up addresses.
static bool is_place(uint64_t address, uint64_t bytes) {
    return address > 0 && bytes < TIDE__TORCH_ELSEWHERE && address < TIDE__TORCH_ELSEWHERE - bytes;
}

tide_status tide__torch_space_grow(tide__torch_space *s, uint64_t address, uint64_t bytes, uint64_t stream) {
    tide_block_span next;
    if (bytes == 0) return TIDE_OK;
    if (!is_place(address, bytes)) {
        s->n_passed++;
        return TIDE_OK;
    }
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
        const bool meets = span_from(&s->segments, at, &next) && next.begin < end;
        const uint64_t until = meets ? (next.begin > at ? next.begin : at) : end;
        if (meets) s->is_mapped = true; // it ends otherwise than it begins
        if (at < until) {
            TIDE_TRY(add_segment(s, at, until, stream, false));
            TIDE_TRY(tell(s, true, at, until, stream));
        }
        at = meets ? end_of(next) : end;
    }
    return TIDE_OK;
}

/// [x, y), which was part of one segment, goes; what live blocks have of it becomes theirs.
static tide_status give_back(tide__torch_space *s, uint64_t x, uint64_t y, uint64_t stream) {
    tide_block_span block;
    for (uint64_t at = x; at < y;) {
        const bool meets = span_from(&s->blocks, at, &block) && block.begin < y;
        const uint64_t until = meets ? (block.begin > at ? block.begin : at) : y;
        TIDE_TRY(tell(s, false, at, until, stream));
        at = until;
        if (!meets) break;
        const uint64_t behind = end_of(block) < y ? end_of(block) : y;
        TIDE_TRY(add_segment(s, at, behind, stream, true));
        s->items[block.id].is_own = true;
        s->is_mapped = true;
        at = behind;
    }
    return TIDE_OK;
}

tide_status tide__torch_space_shrink(tide__torch_space *s, uint64_t address, uint64_t bytes) {
    tide_block_span segment;
    if (bytes == 0 || !is_place(address, bytes)) return TIDE_OK;
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end && span_from(&s->segments, at, &segment) && segment.begin < end;) {
        const uint64_t x = segment.begin > address ? segment.begin : address;
        const uint64_t y = end_of(segment) < end ? end_of(segment) : end;
        const tide__torch_segment_info info = s->infos[segment.id];
        at = y;
        if (info.is_own) continue;
        if (x > segment.begin || y < end_of(segment)) s->is_mapped = true;
        drop_segment(s, segment);
        TIDE_TRY(add_segment(s, segment.begin, x, info.stream, false));
        TIDE_TRY(add_segment(s, y, end_of(segment), info.stream, false));
        TIDE_TRY(give_back(s, x, y, info.stream));
    }
    return TIDE_OK;
}

// ---- places ----

/// Whether [begin, +bytes) is free for a block: no live block has part of it, and it lies in what allocators told, in
/// one piece (*is_own false), or outside of all segments.
static bool is_free(tide__torch_space *s, uint64_t begin, uint64_t bytes, bool *is_own) {
    tide_block_span next;
    const uint64_t end = begin + bytes;
    if (!is_place(begin, bytes) || (span_from(&s->blocks, begin, &next) && next.begin < end)) return false;
    *is_own = !span_from(&s->segments, begin, &next) || next.begin >= end;
    if (*is_own) return true;
    if (next.begin > begin || s->infos[next.id].is_own) return false;
    const uint64_t stream = s->infos[next.id].stream;
    bool goes_on = false;
    for (uint64_t at = end_of(next); at < end; at = end_of(next), goes_on = true) {
        if (!span_from(&s->segments, at, &next) || next.begin != at || s->infos[next.id].is_own ||
            s->infos[next.id].stream != stream)
            return false;
    }
    if (goes_on) s->is_mapped = true; // the viewer has to join what it lies in
    return true;
}

/// A made-up address. TIDE_ERR_NOT_FOUND: there is no room for so much.
static tide_status place_elsewhere(tide__torch_space *s, tide__torch_item *b) {
    tide_block_span free;
    uint64_t room;
    if (b->bytes > MAX_BYTES || !tide_align_up(b->bytes, ALIGN, &room)) return TIDE_ERR_NOT_FOUND;
    if (s->elsewhere.root == 0 && s->n_moved == 0)
        TIDE_TRY(tide_block_tree_give(&s->elsewhere, (tide_block_span){.begin = TIDE__TORCH_ELSEWHERE,
                                                                       .bytes = MAX_BYTES - TIDE__TORCH_ELSEWHERE}));
    if (!tide_block_tree_lowest_fit(&s->elsewhere, room, ALIGN, &free)) return TIDE_ERR_NOT_FOUND;
    b->address = free.begin;
    b->is_own = b->is_moved = true;
    s->n_moved++;
    return tide_block_tree_take(&s->elsewhere, (tide_block_span){.begin = free.begin, .bytes = room});
}

/// Where it lies: with all that it holds, or with what was asked for alone, or elsewhere.
static tide_status place(tide__torch_space *s, tide__torch_item *b) {
    const uint64_t held = b->bytes, asked = b->requested > 0 ? b->requested : 1;
    b->is_moved = false;
    if (is_free(s, b->address, held, &b->is_own)) return TIDE_OK;
    b->bytes = asked;
    if (asked < held && is_free(s, b->address, asked, &b->is_own)) return TIDE_OK;
    b->bytes = held;
    return place_elsewhere(s, b);
}

// ---- blocks ----

static tide_status new_item(tide__torch_space *s, uint32_t *out) {
    if (s->free_item != 0) {
        *out = s->free_item - 1;
        s->free_item = s->items[*out].scope;
        return TIDE_OK;
    }
    if (s->n_items >= UINT32_MAX - 1) return TIDE_ERR_NOMEM;
    TIDE_TRY(tide_host_grow(&s->items, &s->cap_items, s->n_items + 1, sizeof *s->items));
    *out = (uint32_t)s->n_items++;
    s->items[*out] = (tide__torch_item){0};
    return TIDE_OK;
}

tide_status tide__torch_space_put(tide__torch_space *s, const tide__torch_item *block, tide__torch_item **out) {
    uint32_t id;
    tide__torch_item b = *block;
    TIDE_ASSERT(b.block_id > 0 && tide__torch_space_find(s, b.block_id) == NULL);
    if (b.bytes < b.requested) b.bytes = b.requested;
    if (b.bytes == 0) b.bytes = 1;
    TIDE_TRY(place(s, &b));
    TIDE_TRY(new_item(s, &id));
    s->items[id] = b;
    const struct tide__torch_id entry = {.key = b.block_id, .item = id};
    if (!tide_map_put(&s->by_id, &entry)) return TIDE_ERR_NOMEM;
    TIDE_TRY(tide_block_tree_insert(&s->blocks, (tide_block_span){b.address, b.bytes, id}));
    if (b.is_own) {
        TIDE_TRY(add_segment(s, b.address, b.address + b.bytes, b.stream, true));
        TIDE_TRY(tell(s, true, b.address, b.address + b.bytes, b.stream));
    }
    *out = &s->items[id];
    return TIDE_OK;
}

tide__torch_item *tide__torch_space_find(const tide__torch_space *s, uint64_t block_id) {
    const struct tide__torch_id *entry = block_id != 0 ? tide_map_find(&s->by_id, block_id) : NULL;
    return entry != NULL ? &s->items[entry->item] : NULL;
}

/// The segments that were the block's own.
static tide_status drop_own(tide__torch_space *s, const tide__torch_item *b) {
    tide_block_span segment;
    const uint64_t end = b->address + b->bytes;
    for (uint64_t at = b->address; at < end && span_from(&s->segments, at, &segment) && segment.begin < end;) {
        const tide__torch_segment_info info = s->infos[segment.id];
        at = end_of(segment);
        if (!info.is_own) continue;
        TIDE_ASSERT(segment.begin >= b->address && at <= end); // no other block has part of it
        drop_segment(s, segment);
        TIDE_TRY(tell(s, false, segment.begin, at, info.stream));
    }
    return TIDE_OK;
}

tide_status tide__torch_space_take(tide__torch_space *s, tide__torch_item *block) {
    const tide__torch_item b = *block;
    const uint32_t id = (uint32_t)(block - s->items);
    uint64_t room;
    TIDE_ASSERT(b.block_id > 0 && id < s->n_items);
    tide_map_take(&s->by_id, tide_map_find(&s->by_id, b.block_id));
    tide_block_tree_remove(&s->blocks, (tide_block_span){b.address, b.bytes, id});
    s->items[id] = (tide__torch_item){.scope = s->free_item};
    s->free_item = id + 1;
    if (b.is_moved && tide_align_up(b.bytes, ALIGN, &room))
        TIDE_TRY(tide_block_tree_give(&s->elsewhere, (tide_block_span){.begin = b.address, .bytes = room}));
    return b.is_own ? drop_own(s, &b) : TIDE_OK;
}

void tide__torch_space_deinit(tide__torch_space *s) {
    tide_host_free(s->items);
    tide_host_free(s->infos);
    tide_map_deinit(&s->by_id);
    tide_block_tree_deinit(&s->blocks);
    tide_block_tree_deinit(&s->segments);
    tide_block_tree_deinit(&s->elsewhere);
}
