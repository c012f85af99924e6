// SPDX-License-Identifier: MIT
//
// What the tests of both formats of chunks share: reading bytes one by one, the checksum by its description, decoding
// from a piece of memory that ends with the chunk, and chunks that are changed at random.
#ifndef TIDE_TESTS_PROFILER_CHUNK_FIXTURE_H
#define TIDE_TESTS_PROFILER_CHUNK_FIXTURE_H

#include "profiler/store/chunk.h"
#include "profiler/store/varint.h"
#include "tests/profiler/event_fixture.h"

typedef struct reader {
    const uint8_t *p;
} reader;

static inline uint64_t take(reader *r, unsigned n_bytes) {
    uint64_t v = 0;
    for (unsigned i = 0; i < n_bytes; i++) v |= (uint64_t)*r->p++ << (8 * i);
    return v;
}

static inline int64_t zigzag(uint64_t v) { return v % 2 == 0 ? (int64_t)(v / 2) : -(int64_t)(v / 2) - 1; }

static inline int64_t wrapped(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static inline int64_t round_up(int64_t bytes, unsigned shift) {
    const uint64_t unit = UINT64_C(1) << shift;
    return (int64_t)(((uint64_t)bytes + unit - 1) / unit * unit);
}

static inline uint64_t described_mix(uint64_t h, uint64_t w) {
    const uint64_t x = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 32;
}

static inline uint32_t described_checksum(const uint8_t *bytes, size_t n_bytes) {
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

static inline uint32_t stored_checksum(const uint8_t *bytes) {
    reader r = {bytes + 16};
    return (uint32_t)take(&r, 4);
}

// ---- chunks ----

static tide__event in[TIDE__CHUNK_MAX_EVENTS], out[TIDE__CHUNK_MAX_EVENTS];
static uint8_t buffer[TIDE__CHUNK_MAX_BYTES];

typedef size_t encode_function(const tide__event *events, size_t n, uint8_t *bytes);
/// A decoder written from the description, slow and without checks of the bytes. @return number of events
typedef size_t describe_function(const uint8_t *bytes, size_t n_bytes, tide__event *events);

/// Encode in[n], decode it, and once more by the description. @return bytes
static inline size_t check_round_trip_of(encode_function *encode, describe_function *describe, size_t n) {
    const size_t n_bytes = encode(in, n, buffer);
    assert_true(n_bytes <= 64 + n * TIDE__CHUNK_EVENT_BYTES);
    assert_int_equal(stored_checksum(buffer), described_checksum(buffer, n_bytes));
    uint8_t *tight = tide_host_alloc(n_bytes);
    assert_non_null(tight);
    memcpy(tight, buffer, n_bytes);
    memset(out, 0xa5, sizeof out);
    size_t n_out;
    assert_true(tide__chunk_decode(tight, n_bytes, out, &n_out));
    assert_int_equal(n_out, n);
    for (size_t i = 0; i < n; i++) assert_event_equal(&out[i], &in[i]);
    memset(out, 0xa5, sizeof out);
    assert_int_equal(describe(tight, n_bytes, out), n);
    for (size_t i = 0; i < n; i++) assert_event_equal(&out[i], &in[i]);
    tide_host_free(tight);
    return n_bytes;
}

static inline void fill_from_program(program *p, size_t n) {
    for (size_t i = 0; i < n; i++) in[i] = program_next(p);
}

static inline void check_programs(encode_function *encode, describe_function *describe) {
    static program p;
    const program all[] = {
        {.want_live = 100},
        {.want_live = 3000, .n_threads = 8, .n_kinds = 6, .n_devices = 3},
        {.scopes = 600, .n_runs = 2, .n_threads = 2},
        {.lies = 300, .discards = 5, .requests = true, .n_kinds = 3, .n_devices = 1000, .n_runs = 1},
        {.want_live = 500, .n_threads = 200, .n_kinds = 2, .scopes = 50, .requests = true},
    };
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        p = all[k];
        p.rng.state = k + 1;
        for (int turn = 0; turn < 8; turn++) {
            const size_t n = turn == 0 ? 1 : turn == 1 ? 2 : turn < 4 ? (size_t)turn * 37 : TIDE__CHUNK_MAX_EVENTS;
            fill_from_program(&p, n);
            check_round_trip_of(encode, describe, n);
        }
    }
}

static inline void check_extremes(encode_function *encode, describe_function *describe) {
    tide_rng rng = {.state = 99};
    for (int turn = 0; turn < 60; turn++) {
        const size_t n = turn % 3 == 0 ? TIDE__CHUNK_MAX_EVENTS : 1 + (size_t)tide_rng_below(&rng, 40);
        int64_t t_ns = 0;
        const int64_t first = turn % 2 == 0 ? INT64_MAX - (int64_t)n : 1 + extreme(&rng, 62);
        for (size_t i = 0; i < n; i++) {
            in[i] = extreme_event(&rng);
            const tide__event *other = &in[i > 0 ? tide_rng_below(&rng, i) : 0];
            if (i > 0 && tide_rng_below(&rng, 4) == 0) in[i].block_id = other->block_id;
            if (in[i].op == TIDE_MEM_DEVICE_USAGE) in[i].block_id = 0;
            if (i > 0 && tide_rng_below(&rng, 4) == 0) in[i].address = other->address;
            in[i].id = first + (int64_t)i;
            const int64_t room = INT64_MAX - t_ns, step = extreme(&rng, 63);
            t_ns += step <= room ? step : tide_rng_below(&rng, 2) == 0 ? 0 : room;
            in[i].t_ns = t_ns;
        }
        check_round_trip_of(encode, describe, n);
    }
}

// ---- invalid bytes ----

/// Decode a copy that ends where its memory block ends. Bytes that the decoder accepts must form a valid chunk.
static inline bool decode_tight(const uint8_t *bytes, size_t n_bytes) {
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

static inline void put_checksum(uint8_t *bytes, size_t n_bytes) {
    const uint32_t sum = described_checksum(bytes, n_bytes);
    for (int i = 0; i < 4; i++) bytes[16 + i] = (uint8_t)(sum >> (8 * i));
}

/// Every bit of a small chunk is turned, every end of it cut off.
static inline void check_flipped_bits(encode_function *encode) {
    static program p = {.scopes = 100};
    fill_from_program(&p, 60);
    const size_t n_bytes = encode(in, 60, buffer);
    for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
        buffer[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(decode_tight(buffer, n_bytes));
        buffer[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t n = 0; n < n_bytes; n++) assert_false(decode_tight(buffer, n));
    assert_true(decode_tight(buffer, n_bytes));
}

static inline size_t change_some(tide_rng *rng, uint8_t *bytes, size_t len) {
    for (uint64_t k = tide_rng_below(rng, 4); k + 1 > 0; k--) {
        const size_t at = (size_t)tide_rng_below(rng, len);
        switch (tide_rng_below(rng, 4)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << tide_rng_below(rng, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)tide_rng_u64(rng);
            break;
        case 2:
            bytes[at] = tide_rng_below(rng, 2) == 0 ? 0xff : 0;
            break;
        default:
            if (len > 21) len -= (size_t)tide_rng_below(rng, 2);
            break;
        }
    }
    return len;
}

/// With a checksum that fits, so that the decoder itself is asked. TIDE_FUZZ_ROUNDS in the environment asks longer.
static inline void check_forged(encode_function *encode, size_t most_events) {
    const char *more = getenv("TIDE_FUZZ_ROUNDS");
    const size_t rounds = more != NULL ? strtoull(more, NULL, 10) : 60000;
    tide_rng rng = {.state = 4};
    static program p = {.scopes = 200, .lies = 20, .n_threads = 3, .n_kinds = 3};
    static uint8_t forged[TIDE__CHUNK_MAX_BYTES];
    size_t n_bytes = 0, n_taken = 0;
    for (size_t round = 0; round < rounds; round++) {
        if (round % 64 == 0) {
            const size_t n = 1 + (size_t)tide_rng_below(&rng, round % 4096 == 0 ? most_events : 30);
            if (round % 256 == 0) {
                for (size_t i = 0; i < n; i++) {
                    in[i] = extreme_event(&rng);
                    in[i].id = 1 + (int64_t)i;
                    in[i].t_ns = (int64_t)i;
                }
            } else {
                fill_from_program(&p, n);
            }
            n_bytes = encode(in, n, buffer);
        }
        memcpy(forged, buffer, n_bytes);
        const size_t len = change_some(&rng, forged, n_bytes);
        put_checksum(forged, len);
        n_taken += decode_tight(forged, len);
    }
    assert_true(n_taken > 0 && n_taken < rounds); // some changes make another chunk, most make none
}

typedef struct one_byte {
    size_t at;
    uint8_t value;
} one_byte;

/// One thing wrong at a time in a chunk [n_bytes], which is good as it is.
static inline void check_wrong(const uint8_t *bytes, size_t n_bytes, const one_byte *wrong, size_t n_wrong) {
    uint8_t forged[256];
    assert_true(n_bytes < sizeof forged);
    assert_true(decode_tight(bytes, n_bytes));
    for (size_t i = 0; i < n_wrong; i++) {
        memcpy(forged, bytes, n_bytes);
        assert_true(forged[wrong[i].at] != wrong[i].value);
        forged[wrong[i].at] = wrong[i].value;
        put_checksum(forged, n_bytes);
        if (decode_tight(forged, n_bytes)) fail_msg("byte %zu = %d is taken", wrong[i].at, wrong[i].value);
    }
    memcpy(forged, bytes, n_bytes);
    forged[n_bytes] = 0; // a byte too many
    put_checksum(forged, n_bytes + 1);
    assert_false(decode_tight(forged, n_bytes + 1));
    memset(forged + 8, 0, 8); // id 0
    put_checksum(forged, n_bytes);
    assert_false(decode_tight(forged, n_bytes));
}

#endif
