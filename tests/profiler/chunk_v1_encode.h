// SPDX-License-Identifier: MIT
//
// Writes chunks of format 1, as tidemark did while traces were of version 3: plainly, by the description in
// profiler/store/chunk_v1.h.
#ifndef TIDE_TESTS_PROFILER_CHUNK_V1_ENCODE_H
#define TIDE_TESTS_PROFILER_CHUNK_V1_ENCODE_H

#include "profiler/store/chunk_internal.h"

static inline uint64_t v1_difference(int64_t to, int64_t from) { return tide__zigzag((uint64_t)to - (uint64_t)from); }

/// Append `v` in 0 to 6 or 8 bytes, or in 0, 1, 2 or 4, and note how many in `head`.
static inline uint8_t *v1_put(uint8_t *p, uint32_t *head, unsigned at, unsigned bits, uint64_t v) {
    static const unsigned wide[8] = {0, 1, 2, 3, 4, 5, 6, 8}, narrow[4] = {0, 1, 2, 4};
    const unsigned *lengths = bits == 3 ? wide : narrow;
    unsigned code = 0;
    while (lengths[code] < 8 && v >> (8 * lengths[code]) != 0) code++;
    *head |= (uint32_t)code << at;
    for (unsigned i = 0; i < lengths[code]; i++) *p++ = (uint8_t)(v >> (8 * i));
    return p;
}

static inline uint8_t *v1_put_others(uint8_t *p, const tide__event *e, const tide__event *base,
                                     const tide__event *before) {
    uint8_t *const at = p++;
    uint32_t mask = 0;
    if (e->kind != base->kind) {
        mask |= 1;
        *p++ = e->kind;
    }
    if (e->device != base->device) {
        mask |= 2;
        *p++ = (uint8_t)e->device;
        *p++ = (uint8_t)(e->device >> 8);
    }
    if (e->run_id != before->run_id) {
        mask |= 4;
        tide__put_le32(p, (uint32_t)e->run_id);
        p += 4;
    }
    p = v1_put(p, &mask, 3, 2, v1_difference(e->allocator_id, base->allocator_id));
    p = v1_put(p, &mask, 5, 3, v1_difference(e->stream, base->stream));
    *at = (uint8_t)mask;
    return p;
}

/// events[i] behind those before it. `a` and `r` are the shifts of the chunk.
static inline uint8_t *v1_put_event(uint8_t *p, const tide__event *events, size_t i, unsigned a, unsigned r) {
    static const tide__event none[2] = {{.kind = 0}, {.kind = TIDE__NO_KIND}};
    const tide__event *e = &events[i], *before = i > 0 ? e - 1 : &none[0];
    const tide__event *base = &none[e->op >= 16];
    int64_t last_alloc = 0;
    size_t back = 0;
    for (size_t j = 0; j < i; j++) {
        if ((events[j].op >= 16) == (e->op >= 16)) base = &events[j];
        if (events[j].op == TIDE_MEM_ALLOC) last_alloc = events[j].block_id;
        if (e->block_id != 0 && events[j].block_id == e->block_id) back = i - j;
    }
    if (back != 0) base = e - back;
    int64_t predicted = base->block_id;
    if (back == 0 && e->op == TIDE_MEM_ALLOC) predicted = (int64_t)((uint64_t)last_alloc + 1);
    if (back == 0 && (e->op == TIDE_MEM_FREE_REQUESTED || e->op == TIDE_MEM_FREE_COMPLETED)) predicted = last_alloc;
    uint8_t *const at = p;
    uint32_t head = e->op;
    p = v1_put(p + 4, &head, 6, 2, back);
    p = v1_put(p, &head, 8, 3, (uint64_t)e->t_ns - (uint64_t)before->t_ns);
    p = v1_put(p, &head, 11, 3, v1_difference(e->block_id, predicted));
    const uint64_t requested = (uint64_t)e->requested_bytes;
    if (e->requested_bytes != base->requested_bytes && requested == 0) {
        head |= 1 << 14; // 0 takes a byte: without one it is that of the base
        *p++ = 0;
    } else {
        p = v1_put(p, &head, 14, 3, e->requested_bytes != base->requested_bytes ? requested : 0);
    }
    p = v1_put(p, &head, 17, 3, tide__zigzag((uint64_t)e->reserved_bytes - tide__chunk_rounded_up(requested, r)));
    const int64_t far = (int64_t)((uint64_t)e->address - (uint64_t)base->address);
    p = v1_put(p, &head, 20, 3, tide__zigzag((uint64_t)(far >> a)));
    p = v1_put(p, &head, 23, 2, v1_difference(e->tag_id, base->tag_id));
    p = v1_put(p, &head, 25, 2, v1_difference(e->scope_id, before->scope_id));
    p = v1_put(p, &head, 27, 2, v1_difference(e->thread, before->thread));
    if (e->kind != base->kind || e->device != base->device || e->run_id != before->run_id ||
        e->allocator_id != base->allocator_id || e->stream != base->stream) {
        head |= 1 << 5;
        p = v1_put_others(p, e, base, before);
    }
    tide__put_le32(at, head);
    return p;
}

/// As tide__chunk_encode, in format 1. Takes n^2 steps.
static inline size_t v1_encode(const tide__event *events, size_t n, uint8_t *bytes) {
    uint64_t addresses = 0, reserved = 0;
    for (size_t i = 0; i < n; i++) {
        addresses |= (uint64_t)events[i].address;
        reserved |= (uint64_t)events[i].reserved_bytes;
    }
    const unsigned a = addresses != 0 ? (unsigned)__builtin_ctzll(addresses) : 0;
    const unsigned r = reserved != 0 ? (unsigned)__builtin_ctzll(reserved) : 0;
    uint8_t *p = bytes + TIDE__CHUNK_HEAD_BYTES;
    for (size_t i = 0; i < n; i++) p = v1_put_event(p, events, i, a, r);
    const uint8_t head[8] = {1, (uint8_t)a, (uint8_t)r, 0, (uint8_t)n, (uint8_t)(n >> 8)};
    memcpy(bytes, head, sizeof head);
    tide__put_le64(bytes + 8, (uint64_t)events[0].id);
    const size_t n_bytes = (size_t)(p - bytes);
    tide__put_le32(bytes + 16, tide__chunk_checksum(bytes, n_bytes));
    return n_bytes;
}

#endif
