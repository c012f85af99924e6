// SPDX-License-Identifier: MIT
//
// Reads chunks of format 1, which traces of version 3 hold. See chunk_v1.h for the layout. Nobody writes them any more.
#include "profiler/store/chunk_v1.h"

enum {
    HAS_OTHERS = 1 << 5,
    BASE_AT = 6,
    TIME_AT = 8,
    BLOCK_AT = 11,
    REQUESTED_AT = 14,
    RESERVED_AT = 17,
    ADDRESS_AT = 20,
    TAG_AT = 23,
    SCOPE_AT = 25,
    THREAD_AT = 27,
    UNUSED_AT = 29,

    OTHER_KIND = 1,
    OTHER_DEVICE = 2,
    OTHER_RUN = 4,
    OTHER_ALLOCATOR_AT = 3,
    OTHER_STREAM_AT = 5,
};

static const tide__event none[2] = {{.kind = 0}, {.kind = TIDE__NO_KIND}};

typedef struct decoder {
    uint64_t last_alloc;
    unsigned address_shift, reserved_shift;
    bool bad;
    int32_t run_id, scope_id, thread; ///< of the event before
    uint64_t t_ns;
    const tide__event *of_class[2]; ///< the event before of each class
} decoder;

static size_t class_of(unsigned op) { return op >= TIDE__OP_SCOPE_ENTER; }

/// What the block number is counted from; `last_alloc` is the block of the last alloc in the chunk.
static uint64_t predicted(unsigned op, bool has_base, const tide__event *base, uint64_t last_alloc) {
    const uint32_t by_alloc = 1u << TIDE_MEM_ALLOC | 1u << TIDE_MEM_FREE_REQUESTED | 1u << TIDE_MEM_FREE_COMPLETED;
    const bool of_base = has_base || (by_alloc >> op & 1) == 0;
    return of_base ? (uint64_t)base->block_id : last_alloc + (op == TIDE_MEM_ALLOC);
}

/// Lengths in three bits: 0 to 6 bytes, 8 bytes.
static inline uint64_t get_wide(const uint8_t **p, uint32_t head, unsigned at) {
    const unsigned code = head >> at & 7, n = code + (code + 1) / 8;
    const uint64_t v = tide__get_le64(*p) & tide__chunk_byte_mask[n];
    *p += n;
    return v;
}

/// Lengths in two bits: 0, 1, 2, 4 bytes.
static inline uint64_t get_narrow(const uint8_t **p, uint32_t head, unsigned at) {
    const unsigned n = (1u << (head >> at & 3)) / 2;
    const uint64_t v = tide__get_le64(*p) & tide__chunk_byte_mask[n];
    *p += n;
    return v;
}

/// A number below 2^31 and a zigzag difference of at most four bytes: negative when it passes 2^31 - 1 or 0.
static inline int32_t sum_i32(int32_t from, uint64_t zigzag) {
    return (int32_t)((uint32_t)from + (uint32_t)tide__unzigzag(zigzag));
}

/// What seldom changes. *e holds the base.
static const uint8_t *get_others(decoder *c, const uint8_t *p, tide__event *e) {
    const uint32_t mask = *p++;
    if (mask & OTHER_KIND) e->kind = *p++;
    if (mask & OTHER_DEVICE) {
        e->device = (int16_t)(p[0] | p[1] << 8);
        p += 2;
    }
    if (mask & OTHER_RUN) {
        c->run_id = (int32_t)tide__get_le32(p);
        p += 4;
    }
    e->allocator_id = sum_i32(e->allocator_id, get_narrow(&p, mask, OTHER_ALLOCATOR_AT));
    e->stream = (int64_t)((uint64_t)e->stream + tide__unzigzag(get_wide(&p, mask, OTHER_STREAM_AT)));
    return p;
}

/// Event `i` of `events`, those before it are there. At least TIDE__CHUNK_LOOK_AHEAD bytes may be read at `p`.
static inline const uint8_t *get_event(decoder *c, const uint8_t *p, tide__event *events, size_t i) {
    tide__event *e = &events[i];
    const uint32_t head = tide__get_le32(p);
    const unsigned op = head & 31;
    p += 4;
    uint64_t back = get_narrow(&p, head, BASE_AT);
    const bool has_base = back != 0;
    c->bad |= head >> UNUSED_AT != 0 || back > i;
    if (back > i) back = 0;
    const tide__event *base = has_base ? e - back : c->of_class[class_of(op)];
    // Field by field: the base is often the event that was written just now, field by field.
    const uint64_t dt = get_wide(&p, head, TIME_AT);
    const uint64_t block = predicted(op, has_base, base, c->last_alloc) + tide__unzigzag(get_wide(&p, head, BLOCK_AT));
    uint64_t requested = get_wide(&p, head, REQUESTED_AT);
    requested = (head >> REQUESTED_AT & 7) != 0 ? requested : (uint64_t)base->requested_bytes;
    const uint64_t reserved =
        tide__chunk_rounded_up(requested, c->reserved_shift) + tide__unzigzag(get_wide(&p, head, RESERVED_AT));
    const uint64_t far = tide__unzigzag(get_wide(&p, head, ADDRESS_AT));
    e->address = (int64_t)((uint64_t)base->address + (far << c->address_shift));
    e->tag_id = base->tag_id;
    e->stream = base->stream;
    e->allocator_id = base->allocator_id;
    e->device = base->device;
    e->kind = base->kind;
    if (head >> TAG_AT != 0) {
        e->tag_id = sum_i32(base->tag_id, get_narrow(&p, head, TAG_AT));
        c->scope_id = sum_i32(c->scope_id, get_narrow(&p, head, SCOPE_AT));
        c->thread = sum_i32(c->thread, get_narrow(&p, head, THREAD_AT));
    }
    if (head & HAS_OTHERS) p = get_others(c, p, e);
    c->bad |= dt > INT64_MAX; // so a sum that passes 2^63 - 1 is negative
    c->t_ns += dt;
    e->id = events[0].id + (int64_t)i;
    e->t_ns = (int64_t)c->t_ns;
    e->block_id = (int64_t)block;
    e->requested_bytes = (int64_t)requested;
    e->reserved_bytes = (int64_t)reserved;
    e->run_id = c->run_id;
    e->thread = c->thread;
    e->scope_id = c->scope_id;
    e->op = (uint8_t)op;
    c->last_alloc = op == TIDE_MEM_ALLOC ? block : c->last_alloc;
    c->bad |= !tide__event_is_sane(e);
    c->of_class[class_of(op)] = e;
    return p;
}

bool tide__chunk_v1_decode(const tide__chunk_head *head, const uint8_t *bytes, size_t n_bytes, tide__event *events) {
    decoder c = {
        .address_shift = head->address_shift, .reserved_shift = head->reserved_shift, .of_class = {&none[0], &none[1]}};
    tide__chunk_bytes b = {.at = bytes + TIDE__CHUNK_HEAD_BYTES, .end = bytes + n_bytes};
    events[0].id = head->first_id;
    for (size_t i = 0; i < head->n_events; i++) {
        tide__chunk_bytes_look(&b);
        b.at = get_event(&c, b.at, events, i);
        if (c.bad || b.at > b.end) return false;
    }
    return b.at == b.end;
}
