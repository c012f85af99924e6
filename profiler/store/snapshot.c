// SPDX-License-Identifier: MIT
//
// Live blocks to bytes and back. See snapshot.h for the layout.
#include "profiler/store/snapshot.h"

#include "core/base/host_alloc.h"
#include "profiler/store/chunk.h"
#include "profiler/store/varint.h"

enum {
    FORMAT = 1,
    HAS_FREE_REQUESTED = 1 << 0,
    HAS_REQUESTED = 1 << 1,
    HAS_RESERVED = 1 << 2,
    HAS_ADDRESS = 1 << 3,
    HAS_STREAM = 1 << 4,
    HAS_RUN = 1 << 5,
    HAS_THREAD = 1 << 6,
    HAS_SCOPE = 1 << 7,
    HAS_TAG = 1 << 8,
    HAS_ALLOCATOR = 1 << 9,
    HAS_DEVICE = 1 << 10,
    HAS_KIND = 1 << 11,
    HAS_ALL = (1 << 12) - 1,

    BLOCK_BYTES = 160, ///< a block takes less: head, 15 numbers of at most 10 bytes, slack
    BUFFER_BYTES = 16384,
    RADIX = 256,
    AHEAD = 8, ///< blocks
};

// ---- order ----

typedef struct entry {
    uint64_t block_id;
    const tide__live_block *block;
} entry;

/// Live blocks by number, into items[n_live]; `spare` is as large. Bytes that all numbers share are not looked at.
/// @return where they are: `items` or `spare`
static entry *sorted(const tide__replay *r, entry *items, entry *spare) {
    const tide__live_block *b;
    uint64_t any = 0, all = UINT64_MAX;
    size_t n = 0;
    for (size_t i = 0; (b = tide__replay_next(r, &i)) != NULL;) {
        items[n++] = (entry){(uint64_t)b->block_id, b};
        any |= (uint64_t)b->block_id;
        all &= (uint64_t)b->block_id;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (((any ^ all) >> shift & (RADIX - 1)) == 0) continue;
        size_t first[RADIX] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++) first[items[i].block_id >> shift & (RADIX - 1)]++;
        for (size_t i = 0; i < RADIX; i++) {
            const size_t count = first[i];
            first[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) spare[first[items[i].block_id >> shift & (RADIX - 1)]++] = items[i];
        entry *const other = items;
        items = spare;
        spare = other;
    }
    return items;
}

// ---- encode ----

static uint8_t *put_signed(uint8_t *p, int64_t to, int64_t from) {
    return tide__varint_put(p, tide__zigzag((uint64_t)to - (uint64_t)from));
}

static uint8_t *put_block(uint8_t *p, const tide__live_block *b, const tide__live_block *base, unsigned shift) {
    uint8_t *at = p;
    unsigned head = 0;
    p = tide__varint_put(p + 2, (uint64_t)b->block_id - (uint64_t)base->block_id);
    p = put_signed(p, b->alloc_event, base->alloc_event);
    p = put_signed(p, b->alloc_ns, base->alloc_ns);
    if (b->free_requested_ns != 0) head |= HAS_FREE_REQUESTED, p = put_signed(p, b->free_requested_ns, b->alloc_ns);
    if (b->requested_bytes != base->requested_bytes)
        head |= HAS_REQUESTED, p = tide__varint_put(p, (uint64_t)b->requested_bytes);
    if (b->reserved_bytes != b->requested_bytes)
        head |= HAS_RESERVED, p = put_signed(p, b->reserved_bytes, b->requested_bytes);
    if (b->address != base->address) {
        const uint64_t far = (uint64_t)b->address - (uint64_t)base->address;
        head |= HAS_ADDRESS, p = tide__varint_put(p, tide__zigzag((uint64_t)((int64_t)far >> shift)));
    }
    if (b->stream != base->stream) head |= HAS_STREAM, p = put_signed(p, b->stream, base->stream);
    if (b->run_id != base->run_id) head |= HAS_RUN, p = put_signed(p, b->run_id, base->run_id);
    if (b->thread != base->thread) head |= HAS_THREAD, p = put_signed(p, b->thread, base->thread);
    if (b->scope_id != base->scope_id) head |= HAS_SCOPE, p = put_signed(p, b->scope_id, base->scope_id);
    if (b->tag_id != base->tag_id) head |= HAS_TAG, p = put_signed(p, b->tag_id, base->tag_id);
    if (b->allocator_id != base->allocator_id)
        head |= HAS_ALLOCATOR, p = put_signed(p, b->allocator_id, base->allocator_id);
    if (b->device != base->device) head |= HAS_DEVICE, p = put_signed(p, b->device, base->device);
    if (b->kind != base->kind) head |= HAS_KIND, p = put_signed(p, b->kind, base->kind);
    at[0] = (uint8_t)head;
    at[1] = (uint8_t)(head >> 8);
    return p;
}

static void put_blocks(const entry *items, size_t n, unsigned shift, tide_text *out) {
    static const tide__live_block zero;
    const tide__live_block *base = &zero;
    uint8_t buffer[BUFFER_BYTES];
    uint8_t *p = buffer;
    for (size_t i = 0; i < n; i++) {
        // By number they lie anywhere.
        const char *soon = (const char *)items[i + AHEAD < n ? i + AHEAD : i].block;
        __builtin_prefetch(soon);
        __builtin_prefetch(soon + sizeof(tide__live_block) - 1);
        p = put_block(p, items[i].block, base, shift);
        base = items[i].block;
        if (p - buffer <= BUFFER_BYTES - BLOCK_BYTES) continue;
        tide_text_add_n(out, (const char *)buffer, (size_t)(p - buffer));
        p = buffer;
    }
    tide_text_add_n(out, (const char *)buffer, (size_t)(p - buffer));
}

tide_status tide__snapshot_encode(const tide__replay *r, tide_text *out) {
    const size_t n = r->n_live, start = out->len;
    entry *items = n <= SIZE_MAX / (2 * sizeof *items) - 1 ? tide_host_alloc(2 * (n + 1) * sizeof *items) : NULL;
    if (items == NULL) return TIDE_ERR_NOMEM;
    const entry *order = sorted(r, items, items + n);
    uint64_t addresses = 0;
    for (size_t i = 0; i < n; i++) addresses |= (uint64_t)order[i].block->address;
    const unsigned shift = addresses != 0 ? (unsigned)__builtin_ctzll(addresses) : 0;
    uint8_t head[TIDE__CHUNK_HEAD_BYTES] = {FORMAT, (uint8_t)shift};
    tide__put_le64(head + 8, n);
    tide_text_add_n(out, (const char *)head, sizeof head);
    put_blocks(order, n, shift, out);
    tide_host_free(items);
    if (out->failed) return TIDE_ERR_NOMEM;
    uint8_t *bytes = (uint8_t *)out->data + start;
    tide__put_le32(bytes + 16, tide__chunk_checksum(bytes, out->len - start));
    return TIDE_OK;
}

// ---- decode ----

static const uint8_t *get_small(const uint8_t *p, int64_t from, int64_t max, int64_t *out, bool *bad) {
    uint64_t v;
    p = tide__varint_get(p, &v, bad);
    v = tide__unzigzag(v) + (uint64_t)from;
    *bad |= v > (uint64_t)max;
    *out = (int64_t)v;
    return p;
}

static const uint8_t *get_i32(const uint8_t *p, int32_t *value, bool *bad) {
    int64_t v;
    p = get_small(p, *value, INT32_MAX, &v, bad);
    *value = (int32_t)v;
    return p;
}

static const uint8_t *get_rare(const uint8_t *p, unsigned head, tide__live_block *b, bool *bad) {
    int64_t v;
    if (head & HAS_RUN) p = get_i32(p, &b->run_id, bad);
    if (head & HAS_THREAD) p = get_i32(p, &b->thread, bad);
    if (head & HAS_SCOPE) p = get_i32(p, &b->scope_id, bad);
    if (head & HAS_TAG) p = get_i32(p, &b->tag_id, bad);
    if (head & HAS_ALLOCATOR) p = get_i32(p, &b->allocator_id, bad);
    if (head & HAS_DEVICE) {
        p = get_small(p, b->device, INT16_MAX, &v, bad);
        b->device = (int16_t)v;
    }
    if (head & HAS_KIND) {
        p = get_small(p, b->kind, UINT8_MAX, &v, bad);
        b->kind = (uint8_t)v;
    }
    return p;
}

/// *b holds the base. At least BLOCK_BYTES bytes may be read at `p`.
static const uint8_t *get_block(const uint8_t *p, unsigned shift, tide__live_block *b, bool *bad) {
    const unsigned head = p[0] | (unsigned)p[1] << 8;
    uint64_t v;
    *bad |= (head & ~(unsigned)HAS_ALL) != 0;
    p = tide__varint_get(p + 2, &v, bad);
    *bad |= v == 0 || v > (uint64_t)(INT64_MAX - b->block_id);
    b->block_id = (int64_t)((uint64_t)b->block_id + v);
    p = get_small(p, b->alloc_event, INT64_MAX, &b->alloc_event, bad);
    p = get_small(p, b->alloc_ns, INT64_MAX, &b->alloc_ns, bad);
    b->free_requested_ns = 0;
    if (head & HAS_FREE_REQUESTED) p = get_small(p, b->alloc_ns, INT64_MAX, &b->free_requested_ns, bad);
    if (head & HAS_REQUESTED) {
        p = tide__varint_get(p, &v, bad);
        b->requested_bytes = (int64_t)v;
    }
    b->reserved_bytes = b->requested_bytes;
    if (head & HAS_RESERVED) {
        p = tide__varint_get(p, &v, bad);
        b->reserved_bytes = (int64_t)((uint64_t)b->requested_bytes + tide__unzigzag(v));
    }
    if (head & HAS_ADDRESS) {
        p = tide__varint_get(p, &v, bad);
        b->address = (int64_t)((uint64_t)b->address + (tide__unzigzag(v) << shift));
    }
    if (head & HAS_STREAM) {
        p = tide__varint_get(p, &v, bad);
        b->stream = (int64_t)((uint64_t)b->stream + tide__unzigzag(v));
    }
    p = get_rare(p, head, b, bad);
    *bad |= b->alloc_event < 1;
    return p;
}

tide_status tide__snapshot_decode(const void *bytes, size_t n_bytes, tide__replay *r) {
    const uint8_t *p = bytes, *end = p + n_bytes;
    if (n_bytes < TIDE__CHUNK_HEAD_BYTES || p[0] != FORMAT || p[1] > 63 || tide__get_le32(p) >> 16 != 0 ||
        tide__get_le32(p + 4) != 0 || tide__get_le32(p + 16) != tide__chunk_checksum(p, n_bytes))
        return TIDE_ERR_BAD_INPUT;
    const unsigned shift = p[1];
    const uint64_t n = tide__get_le64(p + 8);
    p += TIDE__CHUNK_HEAD_BYTES;
    tide__live_block b = {0};
    uint8_t tail[2 * BLOCK_BYTES];
    bool in_tail = false, bad = false;
    for (uint64_t i = 0; i < n; i++) {
        if (!in_tail && end - p < BLOCK_BYTES) { // the last blocks are read from a copy with zeros behind them
            const size_t n_left = (size_t)(end - p);
            memset(tail, 0, sizeof tail);
            memcpy(tail, p, n_left);
            p = tail;
            end = tail + n_left;
            in_tail = true;
        }
        p = get_block(p, shift, &b, &bad);
        if (bad || p > end) return TIDE_ERR_BAD_INPUT;
        TIDE_TRY(tide__replay_put(r, &b));
    }
    return p == end ? TIDE_OK : TIDE_ERR_BAD_INPUT;
}
