// SPDX-License-Identifier: MIT
//
// Chunks of blocks: what was encoded comes back, also by a decoder that is written from the description alone; bytes
// that are no chunk are refused, and nothing behind them is read.
#include "profiler/store/block_chunk.h"
#include "tests/profiler/chunk_fixture.h"

static tide__block_ends ends, back;
static uint8_t bytes[TIDE__BLOCK_CHUNK_MAX_BYTES];

/// Some length of a life, short ones often.
static int64_t some(tide_rng *rng) { return (int64_t)(tide_rng_u64(rng) >> (8 + tide_rng_u64(rng) % 56)); }

/// Lives of all kinds: some events of the chunk made blocks, which ended in it, behind it, or never.
static void make_ends(tide_rng *rng, uint32_t n_events, unsigned percent) {
    ends.first_event = 1 + some(rng) % (TIDE__MAX_EVENT / 2);
    ends.n_events = n_events;
    ends.n = 0;
    for (uint32_t at = 0; at < n_events; at++) {
        if (tide_rng_u64(rng) % 100 >= percent && !(at + 1 == n_events && ends.n == 0)) continue;
        tide__block_end *e = &ends.items[ends.n++];
        *e = (tide__block_end){.at = (uint16_t)at, .requested_ns = -1};
        const int64_t left = (int64_t)n_events - 1 - at;
        const uint64_t how = tide_rng_u64(rng) % 4;
        if (how == 0 && left > 0) e->distance = 1 + (int64_t)(tide_rng_u64(rng) % (uint64_t)left);
        if (how == 1) {
            e->distance = left + 1 + some(rng) % (TIDE__MAX_EVENT / 4);
            e->behind_ns = some(rng);
        }
        e->is_second = tide_rng_u64(rng) % 16 == 0;
        if (tide_rng_u64(rng) % 8 == 0) e->requested_ns = some(rng);
    }
}

static void assert_same_ends(const tide__block_ends *a, const tide__block_ends *b) {
    assert_int_equal(a->first_event, b->first_event);
    assert_int_equal(a->n_events, b->n_events);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const tide__block_end *x = &a->items[i], *y = &b->items[i];
        assert_int_equal(x->at, y->at);
        assert_int_equal(x->distance, y->distance);
        assert_int_equal(x->behind_ns, y->behind_ns);
        assert_int_equal(x->requested_ns, y->requested_ns);
        assert_int_equal(x->is_second, y->is_second);
    }
}

// ---- the description, word by word ----

static uint64_t described_varint(reader *r) {
    uint64_t v = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(r, 1);
        v |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte >= 0x80);
    return v;
}

/// *base and *base_ns count from the last event of the chunk.
static void described_free(reader *r, uint64_t code, const tide__block_ends *b, tide__block_end *e, int64_t *base,
                           int64_t *base_ns) {
    const int64_t left = (int64_t)b->n_events - 1 - e->at;
    if (code % 2 == 0) {
        e->distance = (int64_t)(code - 2) / 2 + 1;
        return;
    }
    *base += zigzag((code - 3) / 2);
    *base_ns += zigzag(described_varint(r));
    e->distance = left + *base;
    e->behind_ns = *base_ns;
}

static void described_decode(const uint8_t *data, size_t n_bytes, tide__block_ends *b) {
    reader r = {data};
    int64_t base = 0, base_ns = 0;
    assert_int_equal(take(&r, 1), 1);
    assert_int_equal(take(&r, 1), 0);
    b->n_events = (uint32_t)take(&r, 2);
    const size_t n = (size_t)take(&r, 4);
    b->first_event = (int64_t)take(&r, 8);
    assert_int_equal(take(&r, 4), described_checksum(data, n_bytes));
    const uint8_t *bits = r.p;
    r.p += (b->n_events + 7) / 8;
    b->n = 0;
    for (uint32_t at = 0; at < b->n_events; at++) {
        if ((bits[at / 8] >> at % 8 & 1) == 0) continue;
        tide__block_end *e = &b->items[b->n++];
        *e = (tide__block_end){.at = (uint16_t)at, .requested_ns = -1};
        uint64_t code = described_varint(&r);
        if (code == 0) continue;
        if (code == 1) {
            const uint64_t flags = take(&r, 1);
            e->is_second = (flags & 1) != 0;
            if (flags & 2) e->requested_ns = (int64_t)described_varint(&r);
            if ((flags & 4) == 0) continue;
            code = described_varint(&r);
        }
        described_free(&r, code, b, e, &base, &base_ns);
    }
    assert_int_equal(b->n, n);
    assert_ptr_equal(r.p, data + n_bytes);
}

static void test_what_was_encoded_comes_back(void **state) {
    (void)state;
    tide_rng rng = {.state = 5};
    static const uint32_t sizes[] = {1, 2, 7, 8, 9, 100, 4095, 4096};
    static const unsigned percents[] = {0, 3, 50, 100};
    for (int turn = 0; turn < tide_test_rounds(200, 20000); turn++) {
        make_ends(&rng, sizes[turn % 8], percents[turn / 8 % 4]);
        const size_t n_bytes = tide__block_chunk_encode(&ends, bytes);
        assert_true(n_bytes <= sizeof bytes);
        assert_true(tide__block_chunk_decode(bytes, n_bytes, &back));
        assert_same_ends(&ends, &back);
        memset(&back, 0x55, sizeof back);
        described_decode(bytes, n_bytes, &back);
        assert_same_ends(&ends, &back);
    }
}

/// A block that lives for a short time takes a byte; those that are freed in order far behind, three.
static void test_bytes_of_a_block(void **state) {
    (void)state;
    ends = (tide__block_ends){.first_event = 1, .n_events = 4096};
    for (uint16_t at = 0; at < 4095; at += 2)
        ends.items[ends.n++] = (tide__block_end){.at = at, .distance = 1, .requested_ns = -1};
    const size_t head = 20 + 512;
    assert_int_equal(tide__block_chunk_encode(&ends, bytes), head + ends.n);
    for (size_t i = 0; i < ends.n; i++) {
        ends.items[i].distance = 1000000 + (int64_t)i * 10;
        ends.items[i].behind_ns = 30000000000 + (int64_t)i * 1000;
    }
    assert_in_range(tide__block_chunk_encode(&ends, bytes), head + 3 * ends.n, head + 3 * ends.n + 8);
}

/// In a piece of memory that ends with the chunk: a sanitizer sees what is read behind it.
static bool decode_exactly(const uint8_t *data, size_t n_bytes) {
    uint8_t *copy = malloc(n_bytes + (n_bytes == 0));
    assert_true(copy != NULL);
    memcpy(copy, data, n_bytes);
    const bool good = tide__block_chunk_decode(copy, n_bytes, &back);
    free(copy);
    return good;
}

static void set_checksum(uint8_t *data, size_t n_bytes) {
    if (n_bytes >= TIDE__CHUNK_HEAD_BYTES) tide__put_le32(data + 16, tide__chunk_checksum(data, n_bytes));
}

static void test_bytes_that_are_no_chunk(void **state) {
    (void)state;
    tide_rng rng = {.state = 6};
    size_t n_good = 0, n_bad = 0;
    for (int turn = 0; turn < tide_test_rounds(3000, 300000); turn++) {
        make_ends(&rng, 1 + (uint32_t)(tide_rng_u64(&rng) % 200), 50);
        size_t n_bytes = tide__block_chunk_encode(&ends, bytes);
        if (turn % 4 == 0) { // shorter or longer
            const size_t other = tide_rng_u64(&rng) % (n_bytes + 9);
            if (other > n_bytes) memset(bytes + n_bytes, (int)(tide_rng_u64(&rng) & 255), other - n_bytes);
            n_bytes = other;
        } else {
            for (uint64_t k = 1 + tide_rng_u64(&rng) % 3; k > 0; k--)
                bytes[tide_rng_u64(&rng) % n_bytes] = (uint8_t)tide_rng_u64(&rng);
        }
        set_checksum(bytes, n_bytes); // so that what is behind it is looked at
        if (!decode_exactly(bytes, n_bytes)) {
            n_bad++;
            continue;
        }
        n_good++;
        ends = back;
        const size_t n_again = tide__block_chunk_encode(&ends, bytes);
        assert_true(tide__block_chunk_decode(bytes, n_again, &back));
        assert_same_ends(&ends, &back);
    }
    assert_true(n_good > 50 && n_bad > 500);
}

/// Rows come out only where the events are those of the chunk.
static void test_blocks_of_other_events(void **state) {
    (void)state;
    static tide__block_row rows[TIDE__CHUNK_MAX_EVENTS];
    tide__event events[4] = {
        {.id = 10, .t_ns = 100, .op = TIDE_MEM_ALLOC, .block_id = 7, .requested_bytes = 64, .device = 1},
        {.id = 11, .t_ns = 110, .op = TIDE_MEM_FREE_COMPLETED, .block_id = 7, .device = 1},
        {.id = 12, .t_ns = 120, .op = TIDE_MEM_ALLOC, .block_id = 8, .requested_bytes = 32, .device = 1},
        {.id = 13, .t_ns = 130, .op = TIDE_MEM_SNAPSHOT},
    };
    ends = (tide__block_ends){.first_event = 10, .n_events = 4, .n = 2};
    ends.items[0] = (tide__block_end){.at = 0, .distance = 1, .requested_ns = 5};
    ends.items[1] =
        (tide__block_end){.at = 2, .distance = 1000, .behind_ns = 70, .requested_ns = -1, .is_second = true};
    assert_true(tide__block_chunk_rows(&ends, events, 4, rows));
    assert_int_equal(rows[0].id, 7);
    assert_int_equal(rows[0].free_event, 11);
    assert_int_equal(rows[0].free_ns, 110);
    assert_int_equal(rows[0].free_requested_ns, 105);
    assert_int_equal(rows[1].id, -12);
    assert_int_equal(rows[1].free_event, 1012);
    assert_int_equal(rows[1].free_ns, 200);
    assert_int_equal(rows[1].requested_bytes, 32);
    assert_false(tide__block_chunk_rows(&ends, events, 3, rows));
    assert_false(tide__block_chunk_rows(&ends, events + 1, 4, rows)); // another first event: not looked at further
    events[1].op = TIDE_MEM_SNAPSHOT;                                 // it ends no block
    assert_false(tide__block_chunk_rows(&ends, events, 4, rows));
    events[1].op = TIDE_MEM_FREE_COMPLETED;
    events[2].op = TIDE_MEM_FREE_COMPLETED; // it makes none
    assert_false(tide__block_chunk_rows(&ends, events, 4, rows));
    events[2].op = TIDE_MEM_ALLOC;
    ends.items[1].behind_ns = INT64_MAX;
    assert_false(tide__block_chunk_rows(&ends, events, 4, rows));
    ends.items[1].behind_ns = 0;
    ends.items[0].requested_ns = INT64_MAX;
    assert_false(tide__block_chunk_rows(&ends, events, 4, rows));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_what_was_encoded_comes_back),
        tide_unit_test(test_bytes_of_a_block),
        tide_unit_test(test_bytes_that_are_no_chunk),
        tide_unit_test(test_blocks_of_other_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
