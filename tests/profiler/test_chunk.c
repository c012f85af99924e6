// SPDX-License-Identifier: MIT
//
// Chunks of events: the decoder, and a second decoder written only from the description of the format, return the
// events that were encoded. Invalid bytes are refused, and no byte outside the chunk is read. Sizes of chunks:
// test_chunk_bytes.c.
#include "tests/profiler/chunk_fixture.h"

// ---- the description, word by word ----

enum { ALL_SHAPES = 255, ALL_FORMS = 255, ALL_THREADS = 64 };

/// The names of a shape in `names`, and its last event.
typedef struct described_shape {
    tide__event names;
    const tide__event *last;
} described_shape;

typedef struct described {
    reader r;
    size_t n_shapes, n_forms;
    described_shape shapes[1 + ALL_SHAPES], unnumbered;
    uint32_t forms[1 + ALL_FORMS];
    int64_t block[ALL_THREADS][3], scope[ALL_THREADS];
} described;

static uint64_t take_varint(reader *r) {
    uint64_t v = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(r, 1);
        v |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte >= 0x80);
    return v;
}

static described_shape *described_take_shape(described *d, const tide__event *before) {
    const size_t number = (size_t)take(&d->r, 1);
    if (number != 0) {
        assert_true(number <= d->n_shapes);
        return &d->shapes[number];
    }
    const uint64_t what = take(&d->r, 1);
    assert_true(what < 0x80);
    tide__event e = *before;
    if (what & 1) e.op = (uint8_t)take(&d->r, 1);
    if (what & 2) e.kind = (uint8_t)take(&d->r, 1);
    if (what & 4) e.device = (int16_t)take_varint(&d->r);
    if (what & 8) e.allocator_id = (int32_t)take_varint(&d->r);
    if (what & 16) e.run_id = (int32_t)take_varint(&d->r);
    if (what & 32) e.thread = (int32_t)take_varint(&d->r);
    if (what & 64) e.stream = (int64_t)take_varint(&d->r);
    described_shape *s = d->n_shapes < ALL_SHAPES ? &d->shapes[++d->n_shapes] : &d->unnumbered;
    *s = (described_shape){e, before};
    return s;
}

static uint32_t described_take_form(described *d) {
    const size_t number = (size_t)take(&d->r, 1);
    if (number != 0) {
        assert_true(number <= d->n_forms);
        return d->forms[number];
    }
    const uint32_t form = (uint32_t)take(&d->r, 4);
    assert_int_equal(form >> 29, 0);
    if (d->n_forms < ALL_FORMS) d->forms[++d->n_forms] = form;
    return form;
}

/// events[i], with those before it there. `a` and `r` are the shifts of the chunk.
static void described_event(described *d, tide__event *events, size_t i, unsigned a, unsigned r) {
    const tide__event zero = {0}, *before = i > 0 ? &events[i - 1] : &zero;
    described_shape *s = described_take_shape(d, before);
    const uint32_t form = described_take_form(d);
    uint64_t parts[7];
    for (unsigned k = 0; k < 7; k++) parts[k] = take(&d->r, form >> (4 * k) & 15);
    const bool has_base = form >> 28 & 1;
    if (has_base) assert_true(parts[1] >= 1 && parts[1] <= i);
    const tide__event base = has_base ? events[i - parts[1]] : *s->last;
    tide__event e = s->names;
    const unsigned class = e.op == TIDE_MEM_ALLOC                                               ? 0
                           : e.op == TIDE_MEM_FREE_REQUESTED || e.op == TIDE_MEM_FREE_COMPLETED ? 1
                                                                                                : 2;
    int64_t *const block = &d->block[e.thread % ALL_THREADS][class];
    int64_t *const scope = &d->scope[e.thread % ALL_THREADS];
    const int64_t guess = wrapped(*block, class == 0);
    e.id = events[0].id + (int64_t)i;
    e.t_ns = before->t_ns + (int64_t)parts[0];
    e.block_id = !has_base ? wrapped(guess, zigzag(parts[1])) : class == 0 ? guess : base.block_id;
    e.requested_bytes = parts[2] == 0 ? base.requested_bytes : (int64_t)(parts[2] - 1);
    e.address = wrapped(base.address, (int64_t)((uint64_t)zigzag(parts[3]) << a));
    e.tag_id = (int32_t)(base.tag_id + zigzag(parts[4]));
    e.reserved_bytes = wrapped(round_up(e.requested_bytes, r), zigzag(parts[5]));
    e.scope_id = (int32_t)(*scope + zigzag(parts[6]));
    *block = e.block_id;
    *scope = e.scope_id;
    events[i] = e;
    s->last = &events[i];
}

/// chunk.h as code.
static size_t described_decode(const uint8_t *bytes, size_t n_bytes, tide__event *events) {
    static described d;
    d = (described){.r = {bytes + 20}};
    const size_t n = (size_t)(bytes[4] | bytes[5] << 8);
    reader id = {bytes + 8};
    const int64_t first = (int64_t)take(&id, 8);
    assert_int_equal(bytes[0], 1);
    for (size_t i = 0; i < n; i++) {
        events[0].id = first;
        described_event(&d, events, i, bytes[1], bytes[2]);
    }
    assert_ptr_equal(d.r.p, bytes + n_bytes);
    return n;
}

// ---- round trips ----

static size_t check_round_trip(size_t n) { return check_round_trip_of(tide__chunk_encode, described_decode, n); }

static void test_programs_come_back_as_they_were(void **state) {
    (void)state;
    check_programs(tide__chunk_encode, described_decode);
}

static void test_every_extreme_comes_back(void **state) {
    (void)state;
    check_extremes(tide__chunk_encode, described_decode);
}

/// More shapes and forms than have numbers; threads that share what is remembered; shapes whose hashes are alike.
static void test_more_than_has_numbers_comes_back(void **state) {
    (void)state;
    tide_rng rng = {.state = 12};
    for (int turn = 0; turn < 12; turn++) {
        const uint64_t n_threads = turn % 2 == 0 ? 300 : 70, n_streams = turn < 6 ? 1 : 40;
        int64_t t_ns = 0;
        for (size_t i = 0; i < TIDE__CHUNK_MAX_EVENTS; i++) {
            const int64_t block = (int64_t)tide_rng_below(&rng, 900);
            in[i] = (tide__event){.op = (uint8_t)(1 + tide_rng_below(&rng, 3)),
                                  .id = 77 + (int64_t)i,
                                  .t_ns = t_ns += extreme(&rng, 1 + (unsigned)tide_rng_below(&rng, 40)),
                                  .block_id = block,
                                  .kind = (uint8_t)tide_rng_below(&rng, 4),
                                  .device = 1,
                                  .requested_bytes = extreme(&rng, 1 + (unsigned)tide_rng_below(&rng, 50)),
                                  .reserved_bytes = extreme(&rng, 1 + (unsigned)tide_rng_below(&rng, 50)),
                                  .address = extreme(&rng, 1 + (unsigned)tide_rng_below(&rng, 62)),
                                  .stream = (int64_t)(tide_rng_below(&rng, n_streams) << (turn * 4)),
                                  .thread = (int32_t)tide_rng_below(&rng, n_threads),
                                  .scope_id = (int32_t)tide_rng_below(&rng, 3)};
        }
        check_round_trip(TIDE__CHUNK_MAX_EVENTS);
    }
}

/// Block numbers of several processes, which are 2^48 apart, and of threads, 2^40.
static void test_blocks_of_several_processes_come_back(void **state) {
    (void)state;
    int64_t next[6] = {0}, freed[6] = {0};
    tide_rng rng = {.state = 8};
    for (size_t i = 0; i < TIDE__CHUNK_MAX_EVENTS; i++) {
        const int64_t who = (int64_t)tide_rng_below(&rng, 6);
        const bool frees = freed[who] < next[who] && tide_rng_below(&rng, 2) == 0;
        const int64_t block = frees ? ++freed[who] : ++next[who];
        in[i] = (tide__event){.op = frees ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_ALLOC,
                              .id = 1 + (int64_t)i,
                              .t_ns = 1000 * (int64_t)i,
                              .block_id = (who / 2 << TIDE__BLOCK_ID_BITS) + (who % 2 << 40) + block,
                              .device = 1,
                              .requested_bytes = 100 + block % 50,
                              .reserved_bytes = 512,
                              .address = (who << 45) + block % 64 * 512,
                              .thread = 1 + (int32_t)who};
    }
    // A head of two bytes, two bytes of time, two of how far back. Block numbers in full would take six or seven more.
    assert_true(check_round_trip(TIDE__CHUNK_MAX_EVENTS) < 7 * TIDE__CHUNK_MAX_EVENTS);
}

// The layout of chunk.h, byte by byte: an alloc, the entering of a scope, the free of the block, an alloc in its place.
static void test_the_bytes_are_those_of_the_description(void **state) {
    (void)state;
    in[0] = (tide__event){.op = TIDE_MEM_ALLOC,
                          .id = 513,
                          .t_ns = 1000,
                          .block_id = 7,
                          .kind = 2,
                          .device = 1,
                          .requested_bytes = 1000,
                          .reserved_bytes = 1024,
                          .address = 0x12000,
                          .stream = 300,
                          .thread = 1,
                          .allocator_id = 4};
    in[1] = (tide__event){
        .op = TIDE__OP_SCOPE_ENTER, .id = 514, .t_ns = 1005, .kind = TIDE__NO_KIND, .scope_id = 3, .thread = 1};
    in[2] = in[0];
    in[2].op = TIDE_MEM_FREE_COMPLETED;
    in[2].id = 515;
    in[2].t_ns = 1300;
    in[2].scope_id = 3;
    in[3] = in[0];
    in[3].id = 516;
    in[3].t_ns = 1301;
    in[3].block_id = 8;
    in[3].tag_id = 5;
    in[3].scope_id = 3;
    in[4] = in[3];
    in[4].op = TIDE_MEM_FREE_COMPLETED;
    in[4].id = 517;
    in[4].t_ns = 1601;
    const uint8_t want[] = {1, 13, 10, 0, 5, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0, // head; the checksum is looked at apart
                            // alloc: new shape (op 1, kind 2, device 1, allocator 4, thread 1, stream 300), new form
                            // (time 2 bytes, reference 1, requested 2, address 1)
                            0, 0x6f, 1, 2, 1, 4, 1, 0xac, 0x02, 0, 0x12, 0x12, 0, 0, 0xe8, 0x03, 12, 0xe9, 0x03, 18,
                            // scope_enter: new shape (op 16, kind 255, device, allocator and stream 0), new form (time
                            // and address take a byte, requested takes one, scope another)
                            0, 0x4f, 16, 255, 0, 0, 0, 0, 0x01, 0x11, 0, 1, 5, 1, 17, 6,
                            // free_completed: new shape, new form (time 2, reference 1: two back)
                            0, 0x4f, 3, 2, 1, 4, 0xac, 0x02, 0, 0x12, 0, 0, 0x10, 0x27, 0x01, 2,
                            // alloc: shape 1, new form (time 1, reference 1: one back, tag 1)
                            1, 0, 0x11, 0, 1, 0x10, 1, 1, 10,
                            // free_completed: shape 3, form 3
                            3, 3, 0x2c, 0x01, 1};
    const size_t n_bytes = check_round_trip(5);
    memset(buffer + 16, 0, 4);
    assert_int_equal(n_bytes, sizeof want);
    assert_memory_equal(buffer, want, sizeof want);
}

// ---- invalid bytes ----

static void test_every_flipped_bit_is_found(void **state) {
    (void)state;
    check_flipped_bits(tide__chunk_encode);
}

static void test_forged_bytes_do_no_harm(void **state) {
    (void)state;
    check_forged(tide__chunk_encode, TIDE__CHUNK_MAX_EVENTS);
}

static void test_what_no_event_can_be_is_refused(void **state) {
    (void)state;
    in[0] = (tide__event){.op = TIDE_MEM_ALLOC, .id = 5, .t_ns = 9, .block_id = 1, .device = 1, .thread = 1};
    // shape 0, what, op 1, device 1, thread 1; form 0, four bytes; time
    const size_t n_bytes = tide__chunk_encode(in, 1, buffer);
    assert_int_equal(n_bytes, 31);
    static const one_byte wrong[] = {
        {0, 2},                                       // a format of tomorrow
        {0, 0},     {1, 64},    {2, 63},    {3, 1},   // shifts too far
        {4, 0},     {4, 2},     {5, 17},    {7, 1},   // other numbers of events
        {15, 0x80},                                   // an id below 0
        {20, 1},    {20, 255},                        // undefined shapes
        {21, 0xa5},                                   // more than a shape has
        {22, 0},    {22, 11},   {22, 15},   {22, 20}, // operations that are none
        {22, 255},  {23, 0},    {23, 0x80},           // an alloc without a device, a number that does not end
        {25, 1},    {25, 255},                        // undefined forms
        {26, 9},    {26, 0x91},                       // nine bytes of time, of a reference
        {29, 0x10},                                   // a base before the first event
        {29, 0x20}, {29, 0x80},                       // bits of a form that are none
    };
    check_wrong(buffer, n_bytes, wrong, sizeof wrong / sizeof wrong[0]);
}

/// Numbers that pass their ends: each in the second event, which is otherwise like the first.
static void test_sums_that_leave_their_range_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *what;
        uint32_t form;
        uint64_t part; // of eight bytes
        bool good;
    } all[] = {
        {"time", 0x8, (UINT64_C(1) << 62) - 1, true},
        {"time beyond 2^63 - 1", 0x8, INT64_MAX - 8, false},
        {"time that runs back", 0x8, UINT64_MAX - 4, false},
        {"a block", 0x80, 4, true},
        {"a block below 0", 0x80, 7, false},
        {"a block beyond 2^63 - 1", 0x80, UINT64_MAX - 1, false},
        {"a base that is there", 0x80 | 1 << 28, 1, true},
        {"a base two back", 0x80 | 1 << 28, 2, false},
        {"a base that is itself", 0x80 | 1 << 28, 0, false},
        {"a base far ahead", 0x80 | 1 << 28, UINT64_MAX, false},
        {"requested", 0x800, UINT64_C(1) << 63, true},
        {"requested beyond 2^63 - 1", 0x800, (UINT64_C(1) << 63) + 1, false},
        {"an address", 0x8000, UINT64_MAX, true},
        {"a tag", 0x80000, 2 * (uint64_t)INT32_MAX, true},
        {"a tag beyond 2^31 - 1", 0x80000, 2 * ((uint64_t)INT32_MAX + 1), false},
        {"a tag below 0", 0x80000, 1, false},
        {"a tag far beyond", 0x80000, UINT64_MAX - 1, false},
        {"reserved", 0x800000, UINT64_MAX - 1, true},
        {"reserved below 0", 0x800000, 1, false},
        {"a scope", 0x8000000, 2 * (uint64_t)INT32_MAX, true},
        {"a scope beyond 2^31 - 1", 0x8000000, 2 * ((uint64_t)INT32_MAX + 1), false},
        {"a scope below 0", 0x8000000, 1, false},
        {"a scope far below", 0x8000000, UINT64_MAX, false},
    };
    in[0] = (tide__event){.op = TIDE_MEM_ALLOC, .id = 5, .t_ns = 9, .block_id = 1, .device = 1, .thread = 1};
    const size_t n_one = tide__chunk_encode(in, 1, buffer);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        uint8_t two[128];
        memcpy(two, buffer, n_one);
        two[4] = 2;
        two[n_one] = 1;     // shape
        two[n_one + 1] = 0; // form
        tide__put_le32(two + n_one + 2, all[i].form);
        tide__put_le64(two + n_one + 6, all[i].part);
        put_checksum(two, n_one + 14);
        if (decode_tight(two, n_one + 14) != all[i].good)
            fail_msg("%s is %s", all[i].what, all[i].good ? "refused" : "taken");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_programs_come_back_as_they_were),
        tide_unit_test(test_every_extreme_comes_back),
        tide_unit_test(test_more_than_has_numbers_comes_back),
        tide_unit_test(test_blocks_of_several_processes_come_back),
        tide_unit_test(test_the_bytes_are_those_of_the_description),
        tide_unit_test(test_every_flipped_bit_is_found),
        tide_unit_test(test_forged_bytes_do_no_harm),
        tide_unit_test(test_what_no_event_can_be_is_refused),
        tide_unit_test(test_sums_that_leave_their_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
