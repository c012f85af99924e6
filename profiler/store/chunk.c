// SPDX-License-Identifier: MIT
//
// Events to bytes and back. See chunk.h for the layout.
//
// Which parts an event has, and how long they are, is as good as random: a branch on it is wrong every other time and
// costs more than the part. So there are none. Every part is written and read as eight bytes, the next one begins where
// the head says, and what is not there is masked out.
#include "profiler/store/chunk_internal.h"

enum {
    FORMAT = 1,
    MAX_RESERVED_SHIFT = 62,

    OTHER_DEVICE = 2,
    OTHER_RUN = 4,
    OTHER_ALLOCATOR_AT = 3,
    OTHER_STREAM_AT = 5,

    /// A decoder may look that far ahead while it takes one event: heads, parts, eight bytes behind the last.
    LOOK_AHEAD = 96,
};

static const tide__event none[2] = {{.kind = 0}, {.kind = TIDE__NO_KIND}};

/// Lengths in three bits: 0 to 6 bytes, 8 bytes.
static unsigned wide_bytes(unsigned code) { return code + (code + 1) / 8; }
/// Lengths in two bits: 0, 1, 2, 4 bytes.
static unsigned narrow_bytes(unsigned code) { return (1u << code) / 2; }

static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

uint32_t tide__chunk_checksum(const uint8_t *bytes, size_t n_bytes) {
    // Two sums: a processor makes both in the time of one.
    uint64_t a = mix(UINT64_C(0xcbf29ce484222325), tide__get_le64(bytes));
    uint64_t b = mix(n_bytes, tide__get_le64(bytes + 8));
    size_t i = TIDE__CHUNK_HEAD_BYTES;
    for (; i + 16 <= n_bytes; i += 16) {
        a = mix(a, tide__get_le64(bytes + i));
        b = mix(b, tide__get_le64(bytes + i + 8));
    }
    uint8_t last[16] = {0};
    memcpy(last, bytes + i, n_bytes - i);
    return (uint32_t)mix(mix(a, tide__get_le64(last)), mix(b, tide__get_le64(last + 8)));
}

// ---- encode ----

static uint64_t difference(int64_t to, int64_t from) { return tide__zigzag((uint64_t)to - (uint64_t)from); }

/// Append `v` in as many bytes as it needs, none for 0, and note their number in the head.
static inline uint8_t *put_wide(uint8_t *p, uint32_t *head, unsigned at, uint64_t v) {
    // Bits of v, rounded up to bytes; 64 - clz(0) is not defined, 2 v + 1 has one bit more than v.
    const unsigned n = v >> 55 != 0 ? 7 : (70 - (unsigned)__builtin_clzll(2 * v + 1)) / 8, code = n;
    tide__put_le64(p, v);
    *head |= (uint32_t)code << at;
    return p + wide_bytes(code);
}

static inline uint8_t *put_narrow(uint8_t *p, uint32_t *head, unsigned at, uint64_t v) {
    const unsigned code = (unsigned)(v > 0) + (unsigned)(v > 0xff) + (unsigned)(v > 0xffff);
    tide__put_le64(p, v);
    *head |= (uint32_t)code << at;
    return p + narrow_bytes(code);
}

uint8_t *tide__chunk_put_others(uint8_t *p, const tide__event *e, const tide__event *base, const tide__event *before) {
    uint8_t *const at = p++;
    uint32_t mask = 0;
    if (e->kind != base->kind) {
        mask |= TIDE__CHUNK_OTHER_KIND;
        *p++ = e->kind;
    }
    if (e->device != base->device) {
        mask |= OTHER_DEVICE;
        *p++ = (uint8_t)e->device;
        *p++ = (uint8_t)(e->device >> 8);
    }
    if (e->run_id != before->run_id) {
        mask |= OTHER_RUN;
        tide__put_le32(p, (uint32_t)e->run_id);
        p += 4;
    }
    p = put_narrow(p, &mask, OTHER_ALLOCATOR_AT, difference(e->allocator_id, base->allocator_id));
    p = put_wide(p, &mask, OTHER_STREAM_AT, difference(e->stream, base->stream));
    *at = (uint8_t)mask;
    return p;
}

/// `back`: how far back the base is; 0: the event before of the same class.
static inline uint8_t *put_event(tide__chunk_encoder *c, uint8_t *p, const tide__event *e, size_t back) {
    const tide__event *before = c->before, *base = back != 0 ? e - back : c->of_class[tide__chunk_class(e->op)];
    const uint64_t block = tide__chunk_predicted(e->op, back != 0, base, c->last_alloc);
    const uint64_t requested = (uint64_t)e->requested_bytes;
    uint8_t *const at = p;
    uint32_t head = e->op;
    p = put_narrow(p + 4, &head, TIDE__CHUNK_BASE_AT, back);
    p = put_wide(p, &head, TIDE__CHUNK_TIME_AT, (uint64_t)e->t_ns - (uint64_t)before->t_ns);
    p = put_wide(p, &head, TIDE__CHUNK_BLOCK_AT, tide__zigzag((uint64_t)e->block_id - block));
    const bool resized = e->requested_bytes != base->requested_bytes;
    const unsigned empty = resized & (requested == 0); // 0 takes a byte: without one it is that of the base
    p = put_wide(p, &head, TIDE__CHUNK_REQUESTED_AT, resized ? requested : 0) + empty;
    head |= (uint32_t)empty << TIDE__CHUNK_REQUESTED_AT;
    p = put_wide(p, &head, TIDE__CHUNK_RESERVED_AT,
                 tide__zigzag((uint64_t)e->reserved_bytes - tide__chunk_rounded_up(requested, c->reserved_shift)));
    const int64_t far = (int64_t)((uint64_t)e->address - (uint64_t)base->address);
    p = put_wide(p, &head, TIDE__CHUNK_ADDRESS_AT, tide__zigzag((uint64_t)(far >> c->address_shift)));
    const bool names = (e->tag_id != base->tag_id) | (e->scope_id != before->scope_id) | (e->thread != before->thread);
    const bool seldom = (e->device != base->device) | (e->stream != base->stream) |
                        (e->allocator_id != base->allocator_id) | (e->run_id != before->run_id);
    if (names) {
        p = put_narrow(p, &head, TIDE__CHUNK_TAG_AT, difference(e->tag_id, base->tag_id));
        p = put_narrow(p, &head, TIDE__CHUNK_SCOPE_AT, difference(e->scope_id, before->scope_id));
        p = put_narrow(p, &head, TIDE__CHUNK_THREAD_AT, difference(e->thread, before->thread));
    }
    if (seldom) {
        head |= TIDE__CHUNK_HAS_OTHERS;
        p = tide__chunk_put_others(p, e, base, before);
    } else {
        const unsigned other_kind = e->kind != base->kind;
        p[0] = TIDE__CHUNK_OTHER_KIND;
        p[1] = e->kind;
        p += 2 * other_kind;
        head |= other_kind * TIDE__CHUNK_HAS_OTHERS;
    }
    tide__put_le32(at, head);
    c->last_alloc = e->op == TIDE_MEM_ALLOC ? (uint64_t)e->block_id : c->last_alloc;
    c->before = c->of_class[tide__chunk_class(e->op)] = e;
    return p;
}

static unsigned trailing_zeros(uint64_t bits) { return bits != 0 ? (unsigned)__builtin_ctzll(bits) : 0; }

uint8_t *tide__chunk_put_plain(tide__chunk_encoder *c, uint8_t *p, const tide__event *events, size_t n) {
    uint16_t seen[1 << TIDE__CHUNK_SEEN_BITS] = {0}; // index + 1 of the last event of a block
    for (size_t i = 0; i < n; i++) p = put_event(c, p, &events[i], tide__chunk_back(events, i, seen));
    return p;
}

size_t tide__chunk_encode_by(bool wide, const tide__event *events, size_t n, uint8_t *out) {
    uint64_t addresses = 0, reserved = 0;
    for (size_t i = 0; i < n; i++) {
        addresses |= (uint64_t)events[i].address;
        reserved |= (uint64_t)events[i].reserved_bytes;
    }
    tide__chunk_encoder c = {.before = &none[0],
                             .of_class = {&none[0], &none[1]},
                             .address_shift = trailing_zeros(addresses),
                             .reserved_shift = trailing_zeros(reserved)};
    uint8_t *const first = out + TIDE__CHUNK_HEAD_BYTES;
    const uint8_t *end =
        wide ? tide__chunk_put_wide(&c, first, events, n) : tide__chunk_put_plain(&c, first, events, n);
    const uint8_t head[8] = {FORMAT,     (uint8_t)c.address_shift, (uint8_t)c.reserved_shift, 0,
                             (uint8_t)n, (uint8_t)(n >> 8)};
    memcpy(out, head, sizeof head);
    tide__put_le64(out + 8, (uint64_t)events[0].id);
    const size_t n_bytes = (size_t)(end - out);
    tide__put_le32(out + 16, tide__chunk_checksum(out, n_bytes));
    return n_bytes;
}

size_t tide__chunk_encode(const tide__event *events, size_t n, uint8_t *out) {
    return tide__chunk_encode_by(tide__chunk_can_wide(), events, n, out);
}

// ---- decode ----

typedef struct decoder {
    uint64_t last_alloc;
    unsigned address_shift, reserved_shift;
    bool bad;
    int32_t run_id, scope_id, thread; ///< of the event before
    uint64_t t_ns;
    const tide__event *of_class[2];
} decoder;

/// By number of bytes.
static const uint64_t byte_mask[9] = {0,
                                      UINT64_C(0xff),
                                      UINT64_C(0xffff),
                                      UINT64_C(0xffffff),
                                      UINT64_C(0xffffffff),
                                      UINT64_C(0xffffffffff),
                                      UINT64_C(0xffffffffffff),
                                      UINT64_C(0xffffffffffffff),
                                      UINT64_MAX};

static inline uint64_t get_wide(const uint8_t **p, uint32_t head, unsigned at) {
    const unsigned n = wide_bytes(head >> at & 7);
    const uint64_t v = tide__get_le64(*p) & byte_mask[n];
    *p += n;
    return v;
}

static inline uint64_t get_narrow(const uint8_t **p, uint32_t head, unsigned at) {
    const unsigned n = narrow_bytes(head >> at & 3);
    const uint64_t v = tide__get_le64(*p) & byte_mask[n];
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
    if (mask & TIDE__CHUNK_OTHER_KIND) e->kind = *p++;
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

/// Event `i` of `events`, those before it are there. At least LOOK_AHEAD bytes may be read at `p`.
static inline const uint8_t *get_event(decoder *c, const uint8_t *p, tide__event *events, size_t i) {
    tide__event *e = &events[i];
    const uint32_t head = tide__get_le32(p);
    const unsigned op = head & 31;
    p += 4;
    uint64_t back = get_narrow(&p, head, TIDE__CHUNK_BASE_AT);
    const bool has_base = back != 0;
    c->bad |= head >> TIDE__CHUNK_UNUSED_AT != 0 || back > i;
    if (back > i) back = 0;
    const tide__event *base = has_base ? e - back : c->of_class[tide__chunk_class(op)];
    // Field by field: the base is often the event that was written just now, field by field.
    const uint64_t dt = get_wide(&p, head, TIDE__CHUNK_TIME_AT);
    const uint64_t block = tide__chunk_predicted(op, has_base, base, c->last_alloc) +
                           tide__unzigzag(get_wide(&p, head, TIDE__CHUNK_BLOCK_AT));
    uint64_t requested = get_wide(&p, head, TIDE__CHUNK_REQUESTED_AT);
    requested = (head >> TIDE__CHUNK_REQUESTED_AT & 7) != 0 ? requested : (uint64_t)base->requested_bytes;
    const uint64_t reserved = tide__chunk_rounded_up(requested, c->reserved_shift) +
                              tide__unzigzag(get_wide(&p, head, TIDE__CHUNK_RESERVED_AT));
    const uint64_t far = tide__unzigzag(get_wide(&p, head, TIDE__CHUNK_ADDRESS_AT));
    e->address = (int64_t)((uint64_t)base->address + (far << c->address_shift));
    e->tag_id = base->tag_id;
    e->stream = base->stream;
    e->allocator_id = base->allocator_id;
    e->device = base->device;
    e->kind = base->kind;
    if (head >> TIDE__CHUNK_TAG_AT != 0) {
        e->tag_id = sum_i32(base->tag_id, get_narrow(&p, head, TIDE__CHUNK_TAG_AT));
        c->scope_id = sum_i32(c->scope_id, get_narrow(&p, head, TIDE__CHUNK_SCOPE_AT));
        c->thread = sum_i32(c->thread, get_narrow(&p, head, TIDE__CHUNK_THREAD_AT));
    }
    if (head & TIDE__CHUNK_HAS_OTHERS) p = get_others(c, p, e);
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
    c->of_class[tide__chunk_class(op)] = e;
    return p;
}

static bool get_head(const uint8_t *bytes, size_t n_bytes, decoder *c, size_t *n, uint64_t *first) {
    if (n_bytes < TIDE__CHUNK_HEAD_BYTES || n_bytes > TIDE__CHUNK_MAX_BYTES) return false;
    *n = tide__get_le32(bytes + 4);
    *first = tide__get_le64(bytes + 8);
    *c = (decoder){.address_shift = bytes[1], .reserved_shift = bytes[2], .of_class = {&none[0], &none[1]}};
    return bytes[0] == FORMAT && c->address_shift < 64 && c->reserved_shift <= MAX_RESERVED_SHIFT && bytes[3] == 0 &&
           *n > 0 && *n <= TIDE__CHUNK_MAX_EVENTS && *first > 0 && *first <= INT64_MAX - *n &&
           tide__get_le32(bytes + 16) == tide__chunk_checksum(bytes, n_bytes);
}

bool tide__chunk_decode(const uint8_t *bytes, size_t n_bytes, tide__event *events, size_t *n) {
    decoder c;
    size_t n_events;
    uint64_t first;
    *n = 0;
    if (!get_head(bytes, n_bytes, &c, &n_events, &first)) return false;
    const uint8_t *p = bytes + TIDE__CHUNK_HEAD_BYTES, *end = bytes + n_bytes;
    uint8_t tail[2 * LOOK_AHEAD];
    bool in_tail = false;
    events[0].id = (int64_t)first;
    for (size_t i = 0; i < n_events; i++) {
        if (!in_tail && end - p < LOOK_AHEAD) { // the last events are read from a copy with zeros behind them
            const size_t n_left = (size_t)(end - p);
            memset(tail, 0, sizeof tail);
            memcpy(tail, p, n_left);
            p = tail;
            end = tail + n_left;
            in_tail = true;
        }
        p = get_event(&c, p, events, i);
        if (c.bad || p > end) return false;
    }
    if (p != end) return false;
    *n = n_events;
    return true;
}
