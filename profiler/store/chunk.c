// SPDX-License-Identifier: MIT
//
// Events to bytes and back. See chunk.h for the layout.
//
// Which parts an event has, and how long they are, is as good as random: a branch on it is wrong every other time and
// costs more than the part. So there are none. Every part is written and read as eight bytes, the next one begins where
// the form says, and what is not there is masked out. Branches are left where one side is rare: a shape or a form that
// is met for the first time, a part that few events have.
#include <stddef.h>

#include "profiler/store/chunk.h"
#include "profiler/store/varint.h"

enum {
    FORMAT = 1,

    MAX_ADDRESS_SHIFT = 63,
    MAX_RESERVED_SHIFT = 62,
    /// A decoder may look that far ahead while it takes one event: what says how it is written, its parts, eight bytes
    /// behind the last.
    LOOK_AHEAD = TIDE__CHUNK_EVENT_BYTES,

    /// Shapes and forms have numbers from 1; 0 says that what follows defines the next one. Those that find no number
    /// any more are kept in the last place until the next one comes.
    MAX_SHAPES = 255,
    SHAPE_PLACES = MAX_SHAPES + 2,
    MAX_FORMS = 255,
    FORM_PLACES = MAX_FORMS + 2,

    /// Numbers of threads that differ by a multiple share what is remembered of them.
    THREADS = 64,

    /// What is found by a hash.
    SEEN_BITS = 12,
    SHAPE_BITS = 10,
    FORM_BITS = 10,

    /// Bits of a form.
    TIME_AT = 0,
    REFERENCE_AT = 4,
    REQUESTED_AT = 8,
    ADDRESS_AT = 12,
    TAG_AT = 16,
    RESERVED_AT = 20,
    SCOPE_AT = 24,
    FORM_HAS_BASE = 1 << 28,

    /// Bits of what a new shape has in another way than the event before.
    NEW_OP = 1,
    NEW_KIND = 2,
    NEW_DEVICE = 4,
    NEW_ALLOCATOR = 8,
    NEW_RUN = 16,
    NEW_THREAD = 32,
    NEW_STREAM = 64,
    NEW_UNUSED = 128,
};

static const tide__event none = {0};

/// What seldom differs from event to event, as it lies in an event.
typedef struct names {
    uint64_t stream, who, what; ///< `who` run and thread, `what` allocator, device, operation, kind
} names;

_Static_assert(offsetof(tide__event, thread) == offsetof(tide__event, run_id) + 4 &&
                   offsetof(tide__event, device) == offsetof(tide__event, allocator_id) + 4 &&
                   offsetof(tide__event, op) == offsetof(tide__event, allocator_id) + 6 &&
                   offsetof(tide__event, kind) == offsetof(tide__event, allocator_id) + 7,
               "names takes them in two pieces");

static inline names names_of(const tide__event *e) {
    names n = {.stream = (uint64_t)e->stream};
    memcpy(&n.who, &e->run_id, sizeof n.who);
    memcpy(&n.what, &e->allocator_id, sizeof n.what);
    return n;
}

/// Operations whose blocks are guessed apart.
enum { CLASS_ALLOC, CLASS_FREE, CLASS_OTHER, CLASSES };

static unsigned class_of(unsigned op) {
    if (op == TIDE_MEM_ALLOC) return CLASS_ALLOC;
    return op == TIDE_MEM_FREE_REQUESTED || op == TIDE_MEM_FREE_COMPLETED ? CLASS_FREE : CLASS_OTHER;
}

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

/// A shape, and what is remembered of it.
typedef struct shape {
    names names;
    const tide__event *last; ///< of this shape
    uint64_t *block;         ///< the last one named by this thread and class
    int32_t *scope;          ///< the last one of this thread
    uint64_t is_alloc;       ///< all bits or none
    uint16_t key_at;         ///< place in an event of what its base must have in common with it
} shape;

_Static_assert(sizeof(shape) <= 64, "a shift finds it");

typedef struct encoder {
    unsigned address_shift;
    uint64_t below_unit; ///< reserved bytes are mostly multiples of this + 1
    shape *found;        ///< by put_shape
    uint32_t n_shapes, n_forms;
    // From here on zero at first.
    uint64_t block[THREADS][CLASSES];
    int32_t scope[THREADS];
    uint8_t form_at[1 << FORM_BITS], shape_at[1 << SHAPE_BITS];
    uint16_t seen[2 << SEEN_BITS]; ///< index of the last event, by block, and behind these by address
    // Set when they get a number, but the first.
    uint32_t forms[FORM_PLACES];
    shape shapes[SHAPE_PLACES];
} encoder;

static inline uint64_t choose(uint64_t mask, uint64_t yes, uint64_t no) { return no ^ ((yes ^ no) & mask); }

/// `v`, of which the compiler is not to know how it came about: what it concludes from that takes more than it saves.
static inline uint64_t opaque(uint64_t v) {
    __asm__("" : "+r"(v));
    return v;
}

/// All bits when `v` is 0, otherwise none. As arithmetic: compilers make branches of choices.
static inline uint64_t when_zero(uint64_t v) { return (uint64_t)0 - (opaque(v) == 0); }
static inline uint64_t unless_zero(uint64_t v) { return (uint64_t)0 - (opaque(v) != 0); }

static inline uint32_t zigzag_i32(int32_t to, int32_t from) { // both >= 0
    const int32_t d = to - from;
    return (uint32_t)d << 1 ^ (uint32_t)(d >> 31);
}

/// Bytes that `v` needs; 1 for 0. 63 ^ clz is one instruction, 63 - clz is three.
static inline uint32_t some_bytes_of(uint64_t v) { return ((uint32_t)__builtin_clzll(v | 1) ^ 63) / 8 + 1; }
/// 0 for 0.
static inline uint32_t bytes_of(uint64_t v) { return some_bytes_of(v) - (v == 0); }

/// Append `v` in as many bytes as it needs, and note their number in the form.
static inline uint8_t *put_part(uint8_t *p, uint32_t *form, unsigned at, uint64_t v, uint32_t n) {
    tide__put_le64(p, v);
    *form += n << at;
    return p + n;
}

/// Small numbers of what makes a shape lie side by side before they are multiplied.
static inline uint32_t shape_hash(const names *n) {
    const uint64_t who = n->who + 8 * n->stream;
    return (uint32_t)(((who << 8 | who >> 56) + n->what) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SHAPE_BITS));
}
static inline uint32_t form_hash(uint32_t form) { return form * UINT32_C(0x9e3779b1) >> (32 - FORM_BITS); }
static inline uint32_t seen_hash(uint64_t v) {
    return (uint32_t)(v * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SEEN_BITS));
}

static inline bool is_shape(const shape *s, const names *n) {
    return ((s->names.stream ^ n->stream) | (s->names.who ^ n->who) | (s->names.what ^ n->what)) == 0;
}

/// What of `e` is not as in the event before.
static uint8_t *put_names(uint8_t *p, const tide__event *e, const tide__event *before) {
    const struct {
        uint8_t bit;
        uint64_t now, then;
    } all[] = {
        {NEW_DEVICE, (uint64_t)e->device, (uint64_t)before->device},
        {NEW_ALLOCATOR, (uint64_t)e->allocator_id, (uint64_t)before->allocator_id},
        {NEW_RUN, (uint64_t)e->run_id, (uint64_t)before->run_id},
        {NEW_THREAD, (uint64_t)e->thread, (uint64_t)before->thread},
        {NEW_STREAM, (uint64_t)e->stream, (uint64_t)before->stream},
    };
    uint8_t *const at = p++;
    *at = 0;
    if (e->op != before->op) {
        *at |= NEW_OP;
        *p++ = e->op;
    }
    if (e->kind != before->kind) {
        *at |= NEW_KIND;
        *p++ = e->kind;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].now == all[i].then) continue;
        *at |= all[i].bit;
        p = tide__varint_put(p, all[i].now);
    }
    return p;
}

/// The long way to a shape: it is not where it is looked for first, or is new.
static __attribute__((noinline)) uint8_t *put_shape(encoder *c, uint8_t *p, const tide__event *e,
                                                    const tide__event *before) {
    const names n = names_of(e);
    uint32_t h = shape_hash(&n);
    for (; c->shape_at[h] != 0; h = (h + 1) % (1 << SHAPE_BITS)) {
        if (!is_shape(&c->shapes[c->shape_at[h]], &n)) continue;
        c->found = &c->shapes[c->shape_at[h]];
        *p++ = c->shape_at[h];
        return p;
    }
    shape *s = &c->shapes[SHAPE_PLACES - 1];
    if (c->n_shapes < MAX_SHAPES) {
        s = &c->shapes[++c->n_shapes];
        c->shape_at[h] = (uint8_t)c->n_shapes;
    }
    static const size_t key_at[CLASSES] = {
        [CLASS_ALLOC] = offsetof(tide__event, address),
        [CLASS_FREE] = offsetof(tide__event, block_id),
        [CLASS_OTHER] = offsetof(tide__event, id), // it has nothing in common with any
    };
    const unsigned class = class_of(e->op), thread = (unsigned)e->thread % THREADS;
    *s = (shape){.names = n,
                 .last = before,
                 .block = &c->block[thread][class],
                 .scope = &c->scope[thread],
                 .is_alloc = class == CLASS_ALLOC ? UINT64_MAX : 0,
                 .key_at = (uint16_t)key_at[class]};
    c->found = s;
    *p++ = 0;
    return put_names(p, e, before);
}

/// The long way to a form: it is not where it is looked for first, or is new. `at` is where its number belongs, the
/// parts are there up to p.
static __attribute__((noinline)) uint8_t *put_form(encoder *c, uint8_t *at, uint8_t *p, uint32_t form) {
    uint32_t h = form_hash(form);
    for (; c->form_at[h] != 0; h = (h + 1) % (1 << FORM_BITS)) {
        if (c->forms[c->form_at[h]] != form) continue;
        *at = c->form_at[h];
        return p;
    }
    if (c->n_forms < MAX_FORMS) {
        c->forms[++c->n_forms] = form;
        c->form_at[h] = (uint8_t)c->n_forms;
    }
    memmove(at + 5, at + 1, (size_t)(p - at - 1));
    at[0] = 0;
    tide__put_le32(at + 1, form);
    return p + 4;
}

static inline uint64_t number_at(const tide__event *e, size_t at) {
    uint64_t v;
    memcpy(&v, (const char *)e + at, sizeof v);
    return v;
}

/// `before` is none of the chunk for i = 0, otherwise events[i - 1].
static inline __attribute__((always_inline)) uint8_t *put_event(encoder *c, uint8_t *p, const tide__event *events,
                                                                size_t i, const tide__event *before) {
    const tide__event *e = &events[i];
    const names n = names_of(e);
    const uint32_t number = c->shape_at[shape_hash(&n)];
    shape *s = &c->shapes[number];
    *p = (uint8_t)number;
    uint8_t *at = p + 1;
    if (__builtin_expect(!is_shape(s, &n), 0)) {
        at = put_shape(c, p, e, before);
        s = c->found;
    }
    uint32_t form = 0;
    const uint64_t dt = (uint64_t)e->t_ns - (uint64_t)before->t_ns;
    p = put_part(at + 1, &form, TIME_AT, dt, some_bytes_of(dt));

    // An earlier event of the same block or, for an alloc, at the same address. An empty place holds 0,
    // which is as good as any: whether that event has the same block is looked at anyway.
    const uint64_t block = (uint64_t)e->block_id, address = (uint64_t)e->address;
    const uint64_t by_block = seen_hash(block), by_address = (1 << SEEN_BITS) + seen_hash(address);
    const size_t found = c->seen[choose(s->is_alloc, by_address, by_block)];
    c->seen[by_block] = c->seen[by_address] = (uint16_t)i;
    const uint64_t far = block - (*s->block - s->is_alloc); // of an alloc the next block is guessed
    *s->block = block;
    const uint64_t differs = (number_at(e, s->key_at) ^ number_at(&events[found], s->key_at)) | (far & s->is_alloc);
    const uint64_t has_base = i > 0 ? when_zero(differs) : 0;
    const tide__event *base =
        (const tide__event *)(uintptr_t)choose(has_base, (uintptr_t)&events[found], (uintptr_t)s->last);
    s->last = e;
    const uint64_t reference = opaque(choose(has_base, i - found, tide__zigzag(far)));
    p = put_part(p, &form, REFERENCE_AT, reference, bytes_of(reference));

    const uint64_t requested = (uint64_t)e->requested_bytes;
    const uint64_t resized = (requested + 1) & unless_zero(requested ^ (uint64_t)base->requested_bytes);
    p = put_part(p, &form, REQUESTED_AT, resized, bytes_of(resized));
    const int64_t distance = (int64_t)(address - (uint64_t)base->address) >> c->address_shift;
    const uint64_t moved = opaque(tide__zigzag((uint64_t)distance));
    p = put_part(p, &form, ADDRESS_AT, moved, bytes_of(moved));
    const uint32_t tag = zigzag_i32(e->tag_id, base->tag_id);
    p = put_part(p, &form, TAG_AT, tag, bytes_of(tag));
    form += (uint32_t)has_base & FORM_HAS_BASE;
    const uint64_t reserved = (uint64_t)e->reserved_bytes - ((requested + c->below_unit) & ~c->below_unit);
    if (__builtin_expect((reserved | (uint32_t)(e->scope_id ^ *s->scope)) != 0, 0)) {
        const uint64_t more = tide__zigzag(reserved);
        const uint32_t scope = zigzag_i32(e->scope_id, *s->scope);
        p = put_part(p, &form, RESERVED_AT, more, bytes_of(more));
        p = put_part(p, &form, SCOPE_AT, scope, bytes_of(scope));
        *s->scope = e->scope_id;
    }
    const uint32_t known = c->form_at[form_hash(form)];
    *at = (uint8_t)known;
    return __builtin_expect(c->forms[known] != form, 0) ? put_form(c, at, p, form) : p;
}

static unsigned trailing_zeros(uint64_t bits) { return bits != 0 ? (unsigned)__builtin_ctzll(bits) : 0; }

size_t tide__chunk_encode(const tide__event *events, size_t n, uint8_t *out) {
    uint64_t addresses = 0, reserved = 0;
#pragma GCC unroll 4
    for (size_t i = 0; i < n; i++) {
        addresses |= (uint64_t)events[i].address;
        reserved |= (uint64_t)events[i].reserved_bytes;
    }
    const unsigned reserved_shift = trailing_zeros(reserved);
    encoder c;
    memset(&c, 0, offsetof(encoder, forms));
    c.address_shift = trailing_zeros(addresses);
    c.below_unit = (UINT64_C(1) << reserved_shift) - 1;
    c.forms[0] = UINT32_MAX; // what no event has
    c.shapes[0].names = (names){.what = UINT64_MAX};
    uint8_t *p = put_event(&c, out + TIDE__CHUNK_HEAD_BYTES, events, 0, &none);
    for (size_t i = 1; i < n; i++) p = put_event(&c, p, events, i, &events[i - 1]);
    const uint8_t head[8] = {FORMAT,     (uint8_t)c.address_shift, (uint8_t)reserved_shift, 0,
                             (uint8_t)n, (uint8_t)(n >> 8)};
    memcpy(out, head, sizeof head);
    tide__put_le64(out + 8, (uint64_t)events[0].id);
    const size_t n_bytes = (size_t)(p - out);
    tide__put_le32(out + 16, tide__chunk_checksum(out, n_bytes));
    return n_bytes;
}

// ---- decode ----

/// The head of a chunk.
typedef struct chunk_head {
    unsigned address_shift, reserved_shift;
    size_t n_events;
    int64_t first_id;
} chunk_head;

static inline uint64_t rounded_up(uint64_t bytes, unsigned shift) {
    const uint64_t mask = (UINT64_C(1) << shift) - 1;
    return (bytes + mask) & ~mask;
}

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

/// The bytes of a chunk behind its head. What lies within LOOK_AHEAD bytes of its end is read from a copy
/// with zeros behind it, so that an event may be taken without a look at where the chunk ends.
typedef struct chunk_bytes {
    const uint8_t *at, *end;
    uint8_t tail[2 * LOOK_AHEAD];
    bool in_tail;
} chunk_bytes;

static inline void look_ahead(chunk_bytes *b) {
    if (b->in_tail || b->end - b->at >= LOOK_AHEAD) return;
    const size_t n_left = (size_t)(b->end - b->at);
    memset(b->tail, 0, sizeof b->tail);
    memcpy(b->tail, b->at, n_left);
    b->at = b->tail;
    b->end = b->tail + n_left;
    b->in_tail = true;
}

/// Where the parts of an event lie behind its form.
typedef struct form {
    uint64_t mask[5]; ///< of time, reference, requested, address, tag
    uint8_t at[5];
    uint8_t n_bytes; ///< of these five
    bool has_base;
    uint8_t n_reserved, n_scope;
} form;

typedef struct known_shape {
    names names;
    const tide__event *last;
    uint64_t *block;
    uint64_t *scope;
    bool is_alloc, is_usage, is_size;
} known_shape;

typedef struct decoder {
    unsigned address_shift, reserved_shift;
    uint32_t n_shapes, n_forms;
    bool bad;
    // From here on zero at first.
    uint64_t block[THREADS][CLASSES];
    uint64_t scope[THREADS];
    // Not set before they have a number.
    form forms[FORM_PLACES];
    known_shape shapes[SHAPE_PLACES];
} decoder;

static uint64_t get_varint(decoder *c, const uint8_t **p, uint64_t max) {
    uint64_t v;
    *p = tide__varint_get(*p, &v, &c->bad);
    if (v > max) c->bad = true;
    return v > max ? 0 : v;
}

/// A new shape: what is not said is that of the event before.
static __attribute__((noinline)) const uint8_t *get_names(decoder *c, const uint8_t *p, const tide__event *before,
                                                          uint32_t *number) {
    // Everything else of it is as an event may be.
    tide__event e = {.id = 1,
                     .stream = before->stream,
                     .run_id = before->run_id,
                     .thread = before->thread,
                     .allocator_id = before->allocator_id,
                     .device = before->device,
                     .op = before->op,
                     .kind = before->kind};
    const uint32_t mask = *p++;
    if (mask & NEW_OP) e.op = *p++;
    if (mask & NEW_KIND) e.kind = *p++;
    if (mask & NEW_DEVICE) e.device = (int16_t)get_varint(c, &p, INT16_MAX);
    if (mask & NEW_ALLOCATOR) e.allocator_id = (int32_t)get_varint(c, &p, INT32_MAX);
    if (mask & NEW_RUN) e.run_id = (int32_t)get_varint(c, &p, INT32_MAX);
    if (mask & NEW_THREAD) e.thread = (int32_t)get_varint(c, &p, INT32_MAX);
    if (mask & NEW_STREAM) e.stream = (int64_t)get_varint(c, &p, UINT64_MAX);
    c->bad |= (mask & NEW_UNUSED) != 0 || !tide__event_is_sane(&e);
    *number = c->n_shapes < MAX_SHAPES ? ++c->n_shapes : SHAPE_PLACES - 1;
    const unsigned thread = (unsigned)e.thread % THREADS;
    c->shapes[*number] = (known_shape){.names = names_of(&e),
                                       .last = before,
                                       .block = &c->block[thread][class_of(e.op)],
                                       .scope = &c->scope[thread],
                                       .is_alloc = e.op == TIDE_MEM_ALLOC,
                                       .is_usage = e.op == TIDE_MEM_DEVICE_USAGE,
                                       .is_size = e.op == TIDE_MEM_SIZED};
    return p;
}

static __attribute__((noinline)) const uint8_t *get_form(decoder *c, const uint8_t *p, uint32_t *number) {
    const uint32_t bits = tide__get_le32(p);
    *number = c->n_forms < MAX_FORMS ? ++c->n_forms : FORM_PLACES - 1;
    form *f = &c->forms[*number];
    *f = (form){.has_base = (bits & FORM_HAS_BASE) != 0};
    c->bad |= bits >> 29 != 0;
    for (unsigned i = 0; i < 7; i++) {
        const unsigned n = bits >> (4 * i) & 15;
        c->bad |= n > 8;
        if (n > 8) return p;
        if (i == 5) {
            f->n_reserved = (uint8_t)n;
        } else if (i == 6) {
            f->n_scope = (uint8_t)n;
        } else {
            f->at[i] = f->n_bytes;
            f->mask[i] = byte_mask[n];
            f->n_bytes = (uint8_t)(f->n_bytes + n);
        }
    }
    return p + 4;
}

static inline uint64_t get_part(const uint8_t *p, const form *f, unsigned i) {
    return tide__get_le64(p + f->at[i]) & f->mask[i];
}

/// Event `i` of `events`, those before it are there. At least LOOK_AHEAD bytes may be read at `p`.
static inline const uint8_t *get_event(decoder *c, const uint8_t *p, tide__event *events, size_t i) {
    tide__event *e = &events[i];
    const tide__event *before = i > 0 ? e - 1 : &none;
    uint32_t number = *p++;
    if (__builtin_expect(number == 0, 0)) {
        p = get_names(c, p, before, &number);
    } else if (__builtin_expect(number > c->n_shapes, 0)) {
        c->bad = true;
        return p;
    }
    known_shape *s = &c->shapes[number];
    number = *p++;
    if (__builtin_expect(number == 0, 0)) {
        p = get_form(c, p, &number);
    } else if (__builtin_expect(number > c->n_forms, 0)) {
        c->bad = true;
        return p;
    }
    if (__builtin_expect(c->bad, 0)) return p;
    const form *f = &c->forms[number];

    const uint64_t dt = get_part(p, f, 0), reference = get_part(p, f, 1);
    const bool has_base = f->has_base;
    const bool is_known = reference - 1 < i;
    const bool is_wrong = has_base & !is_known;
    const tide__event *base = (has_base & is_known) ? e - reference : s->last;
    const uint64_t guess = *s->block + s->is_alloc;
    const uint64_t from = (has_base & !s->is_alloc) ? (uint64_t)base->block_id : guess;
    const uint64_t block = from + (has_base ? 0 : tide__unzigzag(reference));
    *s->block = block;
    s->last = e;
    const uint64_t stored = get_part(p, f, 2);
    const uint64_t requested = stored != 0 ? stored - 1 : (uint64_t)base->requested_bytes;
    uint64_t reserved = rounded_up(requested, c->reserved_shift);
    const uint64_t address = (uint64_t)base->address + (tide__unzigzag(get_part(p, f, 3)) << c->address_shift);
    const uint64_t tag = (uint64_t)base->tag_id + tide__unzigzag(get_part(p, f, 4));
    p += f->n_bytes;
    if (__builtin_expect((f->n_reserved | f->n_scope) != 0, 0)) {
        reserved += tide__unzigzag(tide__get_le64(p) & byte_mask[f->n_reserved]);
        p += f->n_reserved;
        *s->scope += tide__unzigzag(tide__get_le64(p) & byte_mask[f->n_scope]);
        p += f->n_scope;
    }
    const uint64_t t_ns = (uint64_t)before->t_ns + dt;
    const uint64_t low = tag | *s->scope;
    c->bad = is_wrong | ((int64_t)(dt | t_ns | block | requested | reserved | low) < 0) | (low > INT32_MAX) |
             (s->is_usage & (block != 0)) | ((s->is_usage | s->is_size) & (requested > reserved));
    e->id = events[0].id + (int64_t)i;
    e->t_ns = (int64_t)t_ns;
    e->block_id = (int64_t)block;
    e->requested_bytes = (int64_t)requested;
    e->reserved_bytes = (int64_t)reserved;
    e->address = (int64_t)address;
    e->stream = (int64_t)s->names.stream;
    memcpy(&e->run_id, &s->names.who, sizeof s->names.who);
    e->scope_id = (int32_t)*s->scope;
    e->tag_id = (int32_t)tag;
    memcpy(&e->allocator_id, &s->names.what, sizeof s->names.what);
    return p;
}

static bool get_head(const uint8_t *bytes, size_t n_bytes, chunk_head *h) {
    if (n_bytes < TIDE__CHUNK_HEAD_BYTES || n_bytes > TIDE__CHUNK_MAX_BYTES) return false;
    const uint64_t first = tide__get_le64(bytes + 8);
    *h = (chunk_head){.address_shift = bytes[1],
                      .reserved_shift = bytes[2],
                      .n_events = tide__get_le32(bytes + 4),
                      .first_id = (int64_t)first};
    return bytes[0] == FORMAT && h->address_shift <= MAX_ADDRESS_SHIFT && h->reserved_shift <= MAX_RESERVED_SHIFT &&
           bytes[3] == 0 && h->n_events > 0 && h->n_events <= TIDE__CHUNK_MAX_EVENTS && first > 0 &&
           first <= INT64_MAX - h->n_events && tide__get_le32(bytes + 16) == tide__chunk_checksum(bytes, n_bytes);
}

static bool decode(const chunk_head *head, const uint8_t *bytes, size_t n_bytes, tide__event *events) {
    decoder c;
    memset(&c, 0, offsetof(decoder, forms));
    c.address_shift = head->address_shift;
    c.reserved_shift = head->reserved_shift;
    chunk_bytes b = {.at = bytes + TIDE__CHUNK_HEAD_BYTES, .end = bytes + n_bytes};
    events[0].id = head->first_id;
    for (size_t i = 0; i < head->n_events; i++) {
        look_ahead(&b);
        b.at = get_event(&c, b.at, events, i);
        if (c.bad || b.at > b.end) return false;
    }
    return b.at == b.end;
}

bool tide__chunk_decode(const uint8_t *bytes, size_t n_bytes, tide__event *events, size_t *n) {
    chunk_head head;
    *n = 0;
    if (!get_head(bytes, n_bytes, &head)) return false;
    if (!decode(&head, bytes, n_bytes, events)) return false;
    *n = head.n_events;
    return true;
}
