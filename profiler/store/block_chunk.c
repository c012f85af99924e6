// SPDX-License-Identifier: MIT
//
// Ends of blocks to bytes and back. See block_chunk.h for the layout.
#include <string.h>

#include "profiler/store/block_chunk.h"
#include "profiler/store/varint.h"

enum {
    FORMAT = 1,
    HEAD = TIDE__CHUNK_HEAD_BYTES,
    CHECKSUM_AT = 16,
    NEVER_FREED = 0,
    HAS_FLAGS = 1,
    IN_CHUNK = 2, ///< even numbers from here on
    BEHIND = 3,   ///< odd ones
    IS_SECOND = 1,
    HAS_REQUEST = 2,
    HAS_FREE = 4,
};

/// What ends behind the chunk are counted from: events and ns behind its last event.
typedef struct base {
    int64_t events, ns;
} base;

/// Events from the last one of the chunk to the one that freed the block; below 1: that lies in the chunk.
static int64_t behind(const tide__block_ends *b, const tide__block_end *e) {
    return e->distance - ((int64_t)b->n_events - 1 - e->at);
}

// ---- encode ----

static uint8_t *put_free(const tide__block_ends *b, const tide__block_end *e, base *from, uint8_t *p) {
    const int64_t events = behind(b, e);
    if (events < 1) return tide__varint_put(p, IN_CHUNK + 2 * (uint64_t)(e->distance - 1));
    p = tide__varint_put(p, BEHIND + 2 * tide__zigzag((uint64_t)events - (uint64_t)from->events));
    p = tide__varint_put(p, tide__zigzag((uint64_t)e->behind_ns - (uint64_t)from->ns));
    *from = (base){events, e->behind_ns};
    return p;
}

static uint8_t *put_end(const tide__block_ends *b, const tide__block_end *e, base *from, uint8_t *p) {
    if (e->is_second || e->requested_ns >= 0) {
        *p++ = HAS_FLAGS;
        *p++ = (uint8_t)((e->is_second ? IS_SECOND : 0) | (e->requested_ns >= 0 ? HAS_REQUEST : 0) |
                         (e->distance != 0 ? HAS_FREE : 0));
        if (e->requested_ns >= 0) p = tide__varint_put(p, (uint64_t)e->requested_ns);
    } else if (e->distance == 0) {
        *p++ = NEVER_FREED;
    }
    return e->distance != 0 ? put_free(b, e, from, p) : p;
}

size_t tide__block_chunk_encode(const tide__block_ends *b, uint8_t *out) {
    const size_t n_bits = (b->n_events + 7) / 8;
    memset(out, 0, HEAD + n_bits);
    out[0] = FORMAT;
    out[2] = (uint8_t)b->n_events;
    out[3] = (uint8_t)(b->n_events >> 8);
    tide__put_le32(out + 4, b->n);
    tide__put_le64(out + 8, (uint64_t)b->first_event);
    uint8_t *p = out + HEAD + n_bits;
    base from = {0};
    for (size_t i = 0; i < b->n; i++) {
        out[HEAD + b->items[i].at / 8] |= (uint8_t)(1u << b->items[i].at % 8);
        p = put_end(b, &b->items[i], &from, p);
    }
    const size_t n_bytes = (size_t)(p - out);
    tide__put_le32(out + CHECKSUM_AT, tide__chunk_checksum(out, n_bytes));
    return n_bytes;
}

// ---- decode ----

typedef struct input {
    const uint8_t *at, *end;
    bool bad;
} input;

static uint64_t take(input *in) {
    uint64_t v = 0;
    if (in->end - in->at >= TIDE__VARINT_BYTES) {
        in->at = tide__varint_get(in->at, &v, &in->bad);
        return v;
    }
    uint8_t last[TIDE__VARINT_BYTES] = {0}; // nothing behind the last byte may be looked at
    const size_t n = (size_t)(in->end - in->at);
    memcpy(last, in->at, n);
    const uint8_t *end = tide__varint_get(last, &v, &in->bad);
    in->bad = in->bad || (size_t)(end - last) > n;
    in->at = in->bad ? in->end : in->at + (end - last);
    return v;
}

static void take_free(input *in, uint64_t code, const tide__block_ends *b, base *from, tide__block_end *e) {
    const int64_t left = (int64_t)b->n_events - 1 - e->at; // events of the chunk behind its alloc
    if (code % 2 == 0) {
        in->bad = in->bad || code < IN_CHUNK || (code - IN_CHUNK) / 2 >= (uint64_t)left;
        if (in->bad) return;
        e->distance = (int64_t)((code - IN_CHUNK) / 2) + 1;
        return;
    }
    const uint64_t events = (uint64_t)from->events + tide__unzigzag((code - BEHIND) / 2);
    const uint64_t ns = (uint64_t)from->ns + tide__unzigzag(take(in));
    in->bad = in->bad || code < BEHIND || events < 1 || events > (uint64_t)TIDE__MAX_EVENT || ns > INT64_MAX;
    if (in->bad) return;
    *from = (base){(int64_t)events, (int64_t)ns};
    e->distance = left + from->events;
    e->behind_ns = from->ns;
}

static void take_end(input *in, const tide__block_ends *b, base *from, tide__block_end *e) {
    uint64_t code = take(in);
    if (code == NEVER_FREED) return;
    if (code == HAS_FLAGS) {
        const unsigned flags = in->at < in->end ? *in->at++ : 0;
        // What needs no flags has none: a block is written in one way only.
        in->bad = in->bad || flags > (IS_SECOND | HAS_REQUEST | HAS_FREE) || (flags & (IS_SECOND | HAS_REQUEST)) == 0;
        e->is_second = (flags & IS_SECOND) != 0;
        if ((flags & HAS_REQUEST) != 0) {
            const uint64_t ns = take(in);
            in->bad = in->bad || ns > INT64_MAX;
            e->requested_ns = (int64_t)ns;
        }
        if ((flags & HAS_FREE) == 0) return;
        code = take(in);
    }
    take_free(in, code, b, from, e);
}

bool tide__block_chunk_decode(const uint8_t *bytes, size_t n_bytes, tide__block_ends *out) {
    if (n_bytes < HEAD || n_bytes > TIDE__BLOCK_CHUNK_MAX_BYTES || bytes[0] != FORMAT || bytes[1] != 0) return false;
    if (tide__get_le32(bytes + CHECKSUM_AT) != tide__chunk_checksum(bytes, n_bytes)) return false;
    out->n_events = bytes[2] | (uint32_t)bytes[3] << 8;
    const uint32_t n = tide__get_le32(bytes + 4);
    const uint64_t first = tide__get_le64(bytes + 8);
    const size_t n_bits = (out->n_events + 7) / 8;
    if (out->n_events < 1 || out->n_events > TIDE__CHUNK_MAX_EVENTS || n < 1 || n > out->n_events || first < 1 ||
        first > TIDE__MAX_EVENT || n_bytes < HEAD + n_bits)
        return false;
    out->first_event = (int64_t)first;
    out->n = 0;
    input in = {.at = bytes + HEAD + n_bits, .end = bytes + n_bytes};
    base from = {0};
    for (uint32_t i = 0; i < n_bits * 8; i++) {
        if ((bytes[HEAD + i / 8] >> i % 8 & 1) == 0) continue;
        if (i >= out->n_events || out->n == n) return false;
        tide__block_end *e = &out->items[out->n++];
        *e = (tide__block_end){.at = (uint16_t)i, .requested_ns = -1};
        take_end(&in, out, &from, e);
        if (in.bad) return false;
    }
    return out->n == n && in.at == in.end;
}

// ---- rows ----

/// Events that end a block.
static bool can_end(const tide__event *e) {
    return e->op == TIDE_MEM_FREE_COMPLETED || e->op == TIDE_MEM_POOL_DISCARD || e->op == TIDE_MEM_ALLOC;
}

static bool row_of(const tide__block_ends *b, const tide__block_end *end, const tide__event *events,
                   tide__block_row *row) {
    const tide__event *e = &events[end->at], *last = &events[b->n_events - 1];
    if (e->op != TIDE_MEM_ALLOC || e->block_id == 0 || end->distance > TIDE__MAX_EVENT - e->id) return false;
    *row = (tide__block_row){.id = end->is_second ? -e->id : e->block_id,
                             .run_id = e->run_id,
                             .alloc_event = e->id,
                             .alloc_ns = e->t_ns,
                             .requested_bytes = e->requested_bytes,
                             .reserved_bytes = e->reserved_bytes,
                             .address = e->address,
                             .stream = e->stream,
                             .thread = e->thread,
                             .scope_id = e->scope_id,
                             .tag_id = e->tag_id,
                             .allocator_id = e->allocator_id,
                             .device = e->device,
                             .kind = e->kind};
    if (end->requested_ns >= 0) {
        if (end->requested_ns > INT64_MAX - e->t_ns) return false;
        row->free_requested_ns = e->t_ns + end->requested_ns;
    }
    if (end->distance == 0) return true;
    row->free_event = e->id + end->distance;
    if (behind(b, end) >= 1) {
        if (end->behind_ns > INT64_MAX - last->t_ns) return false;
        row->free_ns = last->t_ns + end->behind_ns;
        return true;
    }
    row->free_ns = e[end->distance].t_ns;
    return can_end(&e[end->distance]);
}

bool tide__block_chunk_rows(const tide__block_ends *b, const tide__event *events, size_t n_events,
                            tide__block_row *rows) {
    if (n_events != b->n_events || events[0].id != b->first_event) return false;
    for (size_t i = 0; i < b->n; i++)
        if (!row_of(b, &b->items[i], events, &rows[i])) return false;
    return true;
}
