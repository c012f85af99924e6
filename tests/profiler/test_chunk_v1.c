// SPDX-License-Identifier: MIT
//
// Chunks of format 1, which traces of version 3 hold: what was written then is read now, by the decoder and by a second
// one that is written from the description alone; bytes that nobody wrote are refused without a look outside.
#include "tests/profiler/chunk_fixture.h"
#include "tests/profiler/chunk_v1_encode.h"

// ---- the description, word by word ----

static uint64_t take_part(reader *r, uint32_t head, unsigned at, unsigned bits) {
    static const unsigned wide[8] = {0, 1, 2, 3, 4, 5, 6, 8}, narrow[4] = {0, 1, 2, 4};
    return take(r, bits == 3 ? wide[head >> at & 7] : narrow[head >> at & 3]);
}

static void described_others(reader *r, tide__event *e, const tide__event *base) {
    const uint32_t others = (uint32_t)take(r, 1);
    if (others & 1) e->kind = (uint8_t)take(r, 1);
    if (others & 2) e->device = (int16_t)take(r, 2);
    if (others & 4) e->run_id = (int32_t)take(r, 4);
    e->allocator_id = (int32_t)(base->allocator_id + zigzag(take_part(r, others, 3, 2)));
    e->stream = wrapped(base->stream, zigzag(take_part(r, others, 5, 3)));
}

/// chunk_v1.h as code, without a thought for speed or bad bytes. @return number of events
static size_t described_decode(const uint8_t *bytes, size_t n_bytes, tide__event *events) {
    reader r = {bytes + 20};
    const unsigned a = bytes[1], reserved_shift = bytes[2];
    const size_t n = (size_t)(bytes[4] | bytes[5] << 8);
    const tide__event zero = {0}, zero_scope = {.kind = TIDE__NO_KIND};
    int64_t last_alloc = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t head = (uint32_t)take(&r, 4);
        const unsigned op = head & 31;
        assert_int_equal(head >> 29, 0);
        const tide__event *before = i > 0 ? &events[i - 1] : &zero, *base = op >= 16 ? &zero_scope : &zero;
        for (size_t j = i; j-- > 0;) {
            if ((events[j].op >= 16) != (op >= 16)) continue;
            base = &events[j];
            break;
        }
        const uint64_t back = take_part(&r, head, 6, 2);
        if (back != 0) base = &events[i - back];
        tide__event e = *base;
        e.op = (uint8_t)op;
        e.t_ns = before->t_ns + (int64_t)take_part(&r, head, 8, 3);
        int64_t predicted = base->block_id;
        if (back == 0 && op == TIDE_MEM_ALLOC) predicted = wrapped(last_alloc, 1);
        if (back == 0 && (op == TIDE_MEM_FREE_REQUESTED || op == TIDE_MEM_FREE_COMPLETED)) predicted = last_alloc;
        e.block_id = wrapped(predicted, zigzag(take_part(&r, head, 11, 3)));
        const uint64_t requested = take_part(&r, head, 14, 3);
        if (head >> 14 & 7) e.requested_bytes = (int64_t)requested;
        e.reserved_bytes = wrapped(round_up(e.requested_bytes, reserved_shift), zigzag(take_part(&r, head, 17, 3)));
        e.address = wrapped(base->address, (int64_t)((uint64_t)zigzag(take_part(&r, head, 20, 3)) << a));
        e.tag_id = (int32_t)(base->tag_id + zigzag(take_part(&r, head, 23, 2)));
        e.scope_id = (int32_t)(before->scope_id + zigzag(take_part(&r, head, 25, 2)));
        e.thread = (int32_t)(before->thread + zigzag(take_part(&r, head, 27, 2)));
        e.run_id = before->run_id;
        if (head >> 5 & 1) described_others(&r, &e, base);
        reader id = {bytes + 8};
        e.id = (int64_t)take(&id, 8) + (int64_t)i;
        if (op == TIDE_MEM_ALLOC) last_alloc = e.block_id;
        events[i] = e;
    }
    assert_ptr_equal(r.p, bytes + n_bytes);
    return n;
}

// ---- tests ----

static void test_programs_come_back_as_they_were(void **state) {
    (void)state;
    check_programs(v1_encode, described_decode);
}

static void test_every_extreme_comes_back(void **state) {
    (void)state;
    check_extremes(v1_encode, described_decode);
}

// The layout of chunk_v1.h, byte by byte: an alloc, the entering of a scope, the free of the block.
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
                          .thread = 1};
    in[1] = (tide__event){
        .op = TIDE__OP_SCOPE_ENTER, .id = 514, .t_ns = 1005, .kind = TIDE__NO_KIND, .scope_id = 3, .thread = 1};
    in[2] = in[0];
    in[2].op = TIDE_MEM_FREE_COMPLETED;
    in[2].id = 515;
    in[2].t_ns = 1300;
    in[2].scope_id = 3;
    const uint8_t want[] = {1, 13, 10, 0, 3, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0, // head; the checksum is looked at apart
                            // alloc: op 1, others, time 2 bytes, block 1, requested 2, address 1, thread 1
                            0x21, 0x8a, 0x10, 0x08, 0xe8, 0x03, 12, 0xe8, 0x03, 18, 2, 0x03, 2, 1, 0,
                            // scope_enter: op 16, time 1 byte, reserved none, scope 1
                            0x10, 0x01, 0x00, 0x02, 5, 6,
                            // free_completed: op 3, base 1 byte, time 2
                            0x43, 0x02, 0x00, 0x00, 2, 0x27, 0x01};
    const size_t n_bytes = check_round_trip_of(v1_encode, described_decode, 3);
    memset(buffer + 16, 0, 4);
    assert_int_equal(n_bytes, sizeof want);
    assert_memory_equal(buffer, want, sizeof want);
}

static void test_every_flipped_bit_is_found(void **state) {
    (void)state;
    check_flipped_bits(v1_encode);
}

static void test_forged_bytes_do_no_harm(void **state) {
    (void)state;
    check_forged(v1_encode, 400);
}

static void test_what_no_event_can_be_is_refused(void **state) {
    (void)state;
    in[0] = (tide__event){.op = TIDE_MEM_ALLOC, .id = 5, .t_ns = 9, .block_id = 1, .device = 1, .thread = 1};
    const size_t n_bytes = v1_encode(in, 1, buffer);
    static const one_byte wrong[] = {{0, 3},     {0, 0},         {1, 64},         {2, 63},         {3, 1},
                                     {4, 0},     {4, 2},         {5, 17},         {7, 1},          {15, 0x80},
                                     {20, 0x20}, {20, 9 | 0x20}, {20, 15 | 0x20}, {20, 19 | 0x20}, {23, 0x28}};
    check_wrong(buffer, n_bytes, wrong, sizeof wrong / sizeof wrong[0]);
    in[1] = in[0]; // a second event 2^62 ns later, and then five before
    in[1].id = 6;
    in[1].t_ns += INT64_C(1) << 62;
    uint8_t two[128];
    const size_t n_two = v1_encode(in, 2, buffer), at = n_bytes + 4 + 1;
    memcpy(two, buffer, n_two);
    assert_int_equal(two[at + 7], 0x40);
    memset(two + at, 0xff, 8);
    two[at] = 0xfb;
    put_checksum(two, n_two);
    assert_false(decode_tight(two, n_two));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_programs_come_back_as_they_were),
        tide_unit_test(test_every_extreme_comes_back),
        tide_unit_test(test_the_bytes_are_those_of_the_description),
        tide_unit_test(test_every_flipped_bit_is_found),
        tide_unit_test(test_forged_bytes_do_no_harm),
        tide_unit_test(test_what_no_event_can_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
