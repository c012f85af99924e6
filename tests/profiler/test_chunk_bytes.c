// SPDX-License-Identifier: MIT
//
// How many bytes an event takes in a chunk. The bounds are what was measured, and a little: a change of the format or
// of what it guesses that costs bytes is to be seen here.
#include "core/base/text.h"
#include "profiler/store/chunk.h"
#include "tests/profiler/event_fixture.h"

enum { N_CHUNKS = 8, PLACES = 8192, MAX_THREADS = 8 };

static tide__event in[TIDE__CHUNK_MAX_EVENTS], out[TIDE__CHUNK_MAX_EVENTS];
static uint8_t buffer[TIDE__CHUNK_MAX_BYTES];

static size_t encoded(void) {
    const size_t n_bytes = tide__chunk_encode(in, TIDE__CHUNK_MAX_EVENTS, buffer);
    size_t n;
    assert_true(tide__chunk_decode(buffer, n_bytes, out, &n));
    assert_int_equal(n, TIDE__CHUNK_MAX_EVENTS);
    for (size_t i = 0; i < n; i++) assert_event_equal(&out[i], &in[i]);
    return n_bytes;
}

/// A thread of the made-up program of bench/bench_recorder.h: places, taken and given up at random.
typedef struct thread {
    int64_t blocks[PLACES], bytes[PLACES], next_block;
} thread;

static void place_event(thread *t, int64_t number, tide_rng *rng, tide__event *e) {
    const size_t place = (size_t)tide_rng_below(rng, PLACES);
    e->op = TIDE_MEM_FREE_COMPLETED;
    if (t->blocks[place] == 0) {
        e->op = TIDE_MEM_ALLOC;
        const uint64_t top = UINT64_C(64) << tide_rng_below(rng, 14);
        t->bytes[place] = (int64_t)(top + tide_rng_below(rng, top));
        t->blocks[place] = (number + 1) * (INT64_C(1) << 40) + ++t->next_block;
    }
    e->block_id = t->blocks[place];
    if (e->op == TIDE_MEM_FREE_COMPLETED) t->blocks[place] = 0;
    e->requested_bytes = t->bytes[place];
    e->reserved_bytes = (t->bytes[place] + 63) / 64 * 64;
    e->address = (number + 1) * (INT64_C(1) << 40) + (int64_t)place * (1 << 20);
    e->kind = (uint8_t)(place % 4);
    e->tag_id = (int32_t)(1 + place % 64);
    e->thread = 1 + (int32_t)number;
}

/// Bytes per event when so many threads take turns, event by event.
static double bytes_of_threads(int n_threads) {
    static thread threads[MAX_THREADS];
    memset(threads, 0, sizeof threads);
    tide_rng rng = {.state = 11};
    int64_t t_ns = 1000000000, id = 0;
    size_t n_bytes = 0;
    const int n_before = 10 * n_threads; // chunks that fill the places
    for (int chunk = 0; chunk < n_before + N_CHUNKS; chunk++) {
        for (size_t i = 0; i < TIDE__CHUNK_MAX_EVENTS; i++) {
            const int64_t number = id % n_threads;
            t_ns += 30 + (int64_t)tide_rng_below(&rng, 60);
            in[i] = (tide__event){.id = ++id, .t_ns = t_ns, .device = 1, .allocator_id = 1, .scope_id = 1};
            place_event(&threads[number], number, &rng, &in[i]);
        }
        if (chunk >= n_before) n_bytes += encoded();
    }
    return (double)n_bytes / N_CHUNKS / TIDE__CHUNK_MAX_EVENTS;
}

static void expect_at_most(double bytes, double bound) {
    if (bytes > bound) fail_msg("an event takes %.3f bytes, not at most %.2f", bytes, bound);
    if (bytes < bound - 0.2) fail_msg("an event takes %.3f bytes: a bound of %.2f says nothing", bytes, bound);
}

static void test_random_places_take_nine_bytes(void **state) {
    (void)state;
    expect_at_most(bytes_of_threads(1), 8.55);
}

static void test_threads_that_take_turns_cost_little(void **state) {
    (void)state;
    expect_at_most(bytes_of_threads(2), 8.9);
    expect_at_most(bytes_of_threads(4), 9.1);
    expect_at_most(bytes_of_threads(8), 9.25);
}

/// A model's step over and over: eight tensors, each freed three allocations later.
static void test_what_repeats_takes_five_bytes(void **state) {
    (void)state;
    static const int64_t bytes[8] = {4096, 1000, 65536, 512, 123456, 2048, 300, 7777};
    tide_rng rng = {.state = 3};
    int64_t t_ns = 0, n_allocs = 0, n_frees = 0;
    for (size_t i = 0; i < TIDE__CHUNK_MAX_EVENTS; i++) {
        const bool frees = n_allocs - n_frees == 4 || (n_allocs - n_frees == 3 && i % 2 == 0);
        const int64_t block = frees ? ++n_frees : ++n_allocs, which = block % 8;
        in[i] = (tide__event){.op = frees ? TIDE_MEM_FREE_COMPLETED : TIDE_MEM_ALLOC,
                              .id = 1 + (int64_t)i,
                              .t_ns = t_ns += 100 + (int64_t)tide_rng_below(&rng, 400),
                              .block_id = block,
                              .kind = (uint8_t)(which % 3),
                              .device = 1,
                              .requested_bytes = bytes[which],
                              .reserved_bytes = (bytes[which] + 511) / 512 * 512,
                              .address = 0x7f0000000000 + which * 262144,
                              .tag_id = 1 + (int32_t)which,
                              .thread = 1,
                              .allocator_id = 1,
                              .scope_id = 2};
    }
    expect_at_most((double)encoded() / TIDE__CHUNK_MAX_EVENTS, 4.7);
}

/// The same with a scope around each tensor's work, two streams, and a free that is asked for first.
static void test_scopes_and_streams_cost_little(void **state) {
    (void)state;
    tide_rng rng = {.state = 3};
    int64_t t_ns = 0;
    for (size_t i = 0; i < TIDE__CHUNK_MAX_EVENTS; i++) {
        const int64_t step = (int64_t)i / 5, which = step % 40;
        in[i] = (tide__event){.op = (uint8_t[]){TIDE__OP_SCOPE_ENTER, TIDE_MEM_ALLOC, TIDE_MEM_FREE_REQUESTED,
                                                TIDE_MEM_FREE_COMPLETED, TIDE__OP_SCOPE_LEAVE}[i % 5],
                              .id = 1 + (int64_t)i,
                              .t_ns = t_ns += 300 + (int64_t)tide_rng_below(&rng, 3000),
                              .kind = TIDE__NO_KIND,
                              .thread = 1,
                              .run_id = 1,
                              .scope_id = 10 + (int32_t)which};
        if (in[i].op >= TIDE__OP_SCOPE_ENTER) continue;
        in[i].block_id = 1 + step;
        in[i].kind = 1;
        in[i].device = 2;
        in[i].requested_bytes = 4 * (100 + which * which * 531);
        in[i].reserved_bytes = (in[i].requested_bytes + 511) / 512 * 512;
        in[i].address = 0x7f0000000000 + which * 1048576;
        in[i].stream = which % 2 == 0 ? 0x55d0c0ffee00 : 0;
        in[i].tag_id = 1 + (int32_t)which;
        in[i].allocator_id = 1;
    }
    expect_at_most((double)encoded() / TIDE__CHUNK_MAX_EVENTS, 5.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_random_places_take_nine_bytes),
        tide_unit_test(test_threads_that_take_turns_cost_little),
        tide_unit_test(test_what_repeats_takes_five_bytes),
        tide_unit_test(test_scopes_and_streams_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
