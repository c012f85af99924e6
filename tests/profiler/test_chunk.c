// SPDX-License-Identifier: MIT
//
// Chunks of events: what goes in comes out, by the decoder and by a second one that is written from the description
// alone; bytes that nobody wrote are refused without a look outside.
#include "profiler/store/chunk_internal.h"
#include "tests/profiler/event_fixture.h"

// ---- the description, word by word ----

typedef struct reader {
    const uint8_t *p;
} reader;

static uint64_t take(reader *r, unsigned n_bytes) {
    uint64_t v = 0;
    for (unsigned i = 0; i < n_bytes; i++) v |= (uint64_t)*r->p++ << (8 * i);
    return v;
}

static uint64_t take_part(reader *r, uint32_t head, unsigned at, unsigned bits) {
    static const unsigned wide[8] = {0, 1, 2, 3, 4, 5, 6, 8}, narrow[4] = {0, 1, 2, 4};
    return take(r, bits == 3 ? wide[head >> at & 7] : narrow[head >> at & 3]);
}

static int64_t zigzag(uint64_t v) { return v % 2 == 0 ? (int64_t)(v / 2) : -(int64_t)(v / 2) - 1; }

static int64_t wrapped(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static int64_t round_up(int64_t bytes, unsigned shift) {
    const uint64_t unit = UINT64_C(1) << shift;
    return (int64_t)(((uint64_t)bytes + unit - 1) / unit * unit);
}

static void described_others(reader *r, tide__event *e, const tide__event *base) {
    const uint32_t others = (uint32_t)take(r, 1);
    if (others & 1) e->kind = (uint8_t)take(r, 1);
    if (others & 2) e->device = (int16_t)take(r, 2);
    if (others & 4) e->run_id = (int32_t)take(r, 4);
    e->allocator_id = (int32_t)(base->allocator_id + zigzag(take_part(r, others, 3, 2)));
    e->stream = wrapped(base->stream, zigzag(take_part(r, others, 5, 3)));
}

/// chunk.h as code, without a thought for speed or bad bytes. @return number of events
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

static uint64_t described_mix(uint64_t h, uint64_t w) {
    const uint64_t x = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 32;
}

static uint32_t described_checksum(const uint8_t *bytes, size_t n_bytes) {
    reader r = {bytes};
    uint64_t a = described_mix(UINT64_C(0xcbf29ce484222325), take(&r, 8)), b = described_mix(n_bytes, take(&r, 8));
    for (size_t at = 20; at <= n_bytes; at += 16) {
        uint8_t group[16] = {0};
        for (size_t i = 0; i < 16 && at + i < n_bytes; i++) group[i] = bytes[at + i];
        r.p = group;
        a = described_mix(a, take(&r, 8));
        b = described_mix(b, take(&r, 8));
    }
    return (uint32_t)described_mix(a, b);
}

static uint32_t stored_checksum(const uint8_t *bytes) {
    reader r = {bytes + 16};
    return (uint32_t)take(&r, 4);
}

// ---- round trips ----

static tide__event in[TIDE__CHUNK_MAX_EVENTS], out[TIDE__CHUNK_MAX_EVENTS];
static uint8_t buffer[TIDE__CHUNK_MAX_BYTES], plain[TIDE__CHUNK_MAX_BYTES];

/// Encode in[n], decode it twice, from a piece of memory that ends with the chunk. @return bytes
static size_t check_round_trip(size_t n) {
    const size_t n_bytes = tide__chunk_encode(in, n, buffer);
    assert_true(n_bytes <= 64 + n * TIDE__CHUNK_EVENT_BYTES);
    // However this processor does it, the bytes are those that every one makes.
    assert_int_equal(tide__chunk_encode_by(false, in, n, plain), n_bytes);
    assert_memory_equal(plain, buffer, n_bytes);
    assert_int_equal(stored_checksum(buffer), described_checksum(buffer, n_bytes));
    uint8_t *tight = tide_host_alloc(n_bytes);
    assert_non_null(tight);
    memcpy(tight, buffer, n_bytes);
    memset(out, 0xa5, sizeof out);
    size_t n_out;
    assert_true(tide__chunk_decode(tight, n_bytes, out, &n_out));
    assert_int_equal(n_out, n);
    for (size_t i = 0; i < n; i++) assert_event_equal(&out[i], &in[i]);
    assert_int_equal(described_decode(tight, n_bytes, out), n);
    for (size_t i = 0; i < n; i++) assert_event_equal(&out[i], &in[i]);
    tide_host_free(tight);
    return n_bytes;
}

static void fill_from_program(program *p, size_t n) {
    for (size_t i = 0; i < n; i++) in[i] = program_next(p);
}

static void test_programs_come_back_as_they_were(void **state) {
    (void)state;
    static program p;
    const program all[] = {
        {.want_live = 100},
        {.want_live = 3000, .n_threads = 8, .n_kinds = 6, .n_devices = 3},
        {.scopes = 600, .n_runs = 2, .n_threads = 2},
        {.lies = 300, .discards = 5, .requests = true, .n_kinds = 3, .n_devices = 1000, .n_runs = 1},
    };
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        p = all[k];
        p.rng.state = k + 1;
        for (int turn = 0; turn < 8; turn++) {
            const size_t n = turn == 0 ? 1 : turn == 1 ? 2 : turn < 4 ? (size_t)turn * 37 : TIDE__CHUNK_MAX_EVENTS;
            fill_from_program(&p, n);
            check_round_trip(n);
        }
    }
}

static void test_every_extreme_comes_back(void **state) {
    (void)state;
    tide_rng rng = {.state = 99};
    for (int turn = 0; turn < 60; turn++) {
        const size_t n = turn % 3 == 0 ? TIDE__CHUNK_MAX_EVENTS : 1 + (size_t)tide_rng_below(&rng, 40);
        int64_t t_ns = 0;
        const int64_t first = turn % 2 == 0 ? INT64_MAX - (int64_t)n : 1 + extreme(&rng, 62);
        for (size_t i = 0; i < n; i++) {
            in[i] = extreme_event(&rng);
            if (i > 0 && tide_rng_below(&rng, 4) == 0) in[i].block_id = in[tide_rng_below(&rng, i)].block_id;
            in[i].id = first + (int64_t)i;
            const int64_t room = INT64_MAX - t_ns, step = extreme(&rng, 63);
            t_ns += step <= room ? step : tide_rng_below(&rng, 2) == 0 ? 0 : room;
            in[i].t_ns = t_ns;
        }
        check_round_trip(n);
    }
}

static void test_alike_events_take_little_and_few_bytes_are_wasted(void **state) {
    (void)state;
    // The same block size over and over: a head, a byte of time, two of address, and one or two for the base.
    int64_t t = 0;
    for (size_t i = 0; i < TIDE__CHUNK_MAX_EVENTS; i++)
        in[i] = (tide__event){.op = i % 2 == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED,
                              .id = 1 + (int64_t)i,
                              .t_ns = t += 100,
                              .block_id = 1 + (int64_t)i / 2,
                              .device = 1,
                              .requested_bytes = 1000,
                              .reserved_bytes = 1024,
                              .address = 0x7f0000000000 + (int64_t)(i / 2 % 100) * 1024,
                              .thread = 1};
    assert_true(check_round_trip(TIDE__CHUNK_MAX_EVENTS) < 7 * TIDE__CHUNK_MAX_EVENTS);
    static program p = {.want_live = 2000, .n_kinds = 1};
    fill_from_program(&p, TIDE__CHUNK_MAX_EVENTS);
    assert_true(check_round_trip(TIDE__CHUNK_MAX_EVENTS) < 17 * TIDE__CHUNK_MAX_EVENTS);
}

// The layout of chunk.h, byte by byte: an alloc, the entering of a scope, the free of the block.
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
    const size_t n_bytes = check_round_trip(3);
    memset(buffer + 16, 0, 4);
    assert_int_equal(n_bytes, sizeof want);
    assert_memory_equal(buffer, want, sizeof want);
}

// ---- bytes that nobody wrote ----

/// Decode a copy whose end is the end of a piece of memory. What is taken for a chunk must at least be one.
static bool decode_tight(const uint8_t *bytes, size_t n_bytes) {
    uint8_t *tight = tide_host_alloc(n_bytes);
    assert_non_null(tight);
    if (n_bytes > 0) memcpy(tight, bytes, n_bytes);
    size_t n;
    const bool good = tide__chunk_decode(tight, n_bytes, out, &n);
    tide_host_free(tight);
    if (!good) {
        assert_int_equal(n, 0);
        return false;
    }
    assert_true(n > 0 && n <= TIDE__CHUNK_MAX_EVENTS);
    for (size_t i = 0; i < n; i++) {
        assert_true(tide__event_is_sane(&out[i]));
        if (i > 0) assert_true(out[i].id == out[i - 1].id + 1 && out[i].t_ns >= out[i - 1].t_ns);
    }
    return true;
}

static void put_checksum(uint8_t *bytes, size_t n_bytes) {
    const uint32_t sum = described_checksum(bytes, n_bytes);
    for (int i = 0; i < 4; i++) bytes[16 + i] = (uint8_t)(sum >> (8 * i));
}

static void test_every_flipped_bit_is_found(void **state) {
    (void)state;
    static program p = {.scopes = 100};
    fill_from_program(&p, 60);
    const size_t n_bytes = tide__chunk_encode(in, 60, buffer);
    for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
        buffer[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(decode_tight(buffer, n_bytes));
        buffer[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t n = 0; n < n_bytes; n++) assert_false(decode_tight(buffer, n));
    assert_true(decode_tight(buffer, n_bytes));
}

/// With a checksum that fits, so that the decoder itself is asked. TIDE_FUZZ_ROUNDS in the environment asks longer.
static void test_forged_bytes_do_no_harm(void **state) {
    (void)state;
    const char *more = getenv("TIDE_FUZZ_ROUNDS");
    const size_t rounds = more != NULL ? strtoull(more, NULL, 10) : 60000;
    tide_rng rng = {.state = 4};
    static program p = {.scopes = 200, .lies = 20, .n_threads = 3, .n_kinds = 3};
    static uint8_t forged[TIDE__CHUNK_MAX_BYTES];
    size_t n_bytes = 0, n_taken = 0;
    for (size_t round = 0; round < rounds; round++) {
        if (round % 64 == 0) {
            const size_t n = 1 + (size_t)tide_rng_below(&rng, round % 4096 == 0 ? 4096 : 30);
            if (round % 256 == 0) {
                for (size_t i = 0; i < n; i++) {
                    in[i] = extreme_event(&rng);
                    in[i].id = 1 + (int64_t)i;
                    in[i].t_ns = (int64_t)i;
                }
            } else {
                fill_from_program(&p, n);
            }
            n_bytes = tide__chunk_encode(in, n, buffer);
        }
        size_t len = n_bytes;
        memcpy(forged, buffer, len);
        for (uint64_t k = tide_rng_below(&rng, 4); k + 1 > 0; k--) {
            const size_t at = (size_t)tide_rng_below(&rng, len);
            switch (tide_rng_below(&rng, 4)) {
            case 0:
                forged[at] ^= (uint8_t)(1u << tide_rng_below(&rng, 8));
                break;
            case 1:
                forged[at] = (uint8_t)tide_rng_u64(&rng);
                break;
            case 2:
                forged[at] = tide_rng_below(&rng, 2) == 0 ? 0xff : 0;
                break;
            default:
                if (len > 21) len -= (size_t)tide_rng_below(&rng, 2);
                break;
            }
        }
        put_checksum(forged, len);
        n_taken += decode_tight(forged, len);
    }
    assert_true(n_taken > 0 && n_taken < rounds); // some changes make another chunk, most make none
}

/// One thing wrong at a time in a chunk of one event.
static void test_what_no_event_can_be_is_refused(void **state) {
    (void)state;
    in[0] = (tide__event){.op = TIDE_MEM_ALLOC, .id = 5, .t_ns = 9, .block_id = 1, .device = 1, .thread = 1};
    const size_t n_bytes = tide__chunk_encode(in, 1, buffer);
    assert_true(decode_tight(buffer, n_bytes));
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {{0, 2}, {1, 64},    {2, 63},    {3, 1},         {4, 0},          {4, 2},          {5, 17},
                 {7, 1}, {15, 0x80}, {20, 0x20}, {20, 9 | 0x20}, {20, 15 | 0x20}, {20, 19 | 0x20}, {23, 0x28}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t forged[64];
        memcpy(forged, buffer, n_bytes);
        forged[wrong[i].at] = wrong[i].value;
        put_checksum(forged, n_bytes);
        if (decode_tight(forged, n_bytes)) fail_msg("byte %zu = %d is taken", wrong[i].at, wrong[i].value);
    }
    in[1] = in[0]; // a second event 2^62 ns later, and then five before
    in[1].id = 6;
    in[1].t_ns += INT64_C(1) << 62;
    uint8_t two[128];
    const size_t n_two = tide__chunk_encode(in, 2, buffer), at = n_bytes + 4 + 1;
    memcpy(two, buffer, n_two);
    assert_int_equal(two[at + 7], 0x40);
    memset(two + at, 0xff, 8);
    two[at] = 0xfb;
    put_checksum(two, n_two);
    assert_false(decode_tight(two, n_two));
    tide__chunk_encode(in, 1, buffer);
    uint8_t longer[65];
    memcpy(longer, buffer, n_bytes);
    longer[n_bytes] = 0;
    put_checksum(longer, n_bytes + 1);
    assert_false(decode_tight(longer, n_bytes + 1));
    memset(longer + 8, 0, 8); // id 0
    put_checksum(longer, n_bytes);
    assert_false(decode_tight(longer, n_bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_programs_come_back_as_they_were),
        tide_unit_test(test_every_extreme_comes_back),
        tide_unit_test(test_alike_events_take_little_and_few_bytes_are_wasted),
        tide_unit_test(test_the_bytes_are_those_of_the_description),
        tide_unit_test(test_every_flipped_bit_is_found),
        tide_unit_test(test_forged_bytes_do_no_harm),
        tide_unit_test(test_what_no_event_can_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
