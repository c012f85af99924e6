// SPDX-License-Identifier: MIT
//
// pytorch on the simulated device: each rule with figures worked out by hand, at its edges.
#include "core/device/sim_device.h"
#include "core/memory/allocators/pytorch.h"
#include "memory_test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static tide_device sim(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_device d;
    assert_tide_ok(tide_sim_device_open(&d, &err), &err);
    return d;
}

/// On a device of `total` bytes; 0: as much as is asked for.
static tide_allocator *make_of(const char *name, uint64_t total) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    tide_sim_device_set_bytes(total);
    assert_tide_ok(tide_allocator_create_on(sim(), name, &a, &err), &err);
    return a;
}
static tide_allocator *make(const char *name) { return make_of(name, 0); }

static tide_status try_take(tide_allocator *a, size_t bytes, tide_stream_id stream, tide_memory *out, tide_error *err) {
    static uint64_t last_id;
    const tide_alloc_request req = {.size_bytes = bytes, .stream = stream, .block_id = ++last_id, .tag = "block"};
    *out = (tide_memory){0};
    const tide_status st = tide_allocator_alloc(a, &req, out, err);
    assert_sound(a);
    return st;
}

static tide_memory get_on(tide_allocator *a, size_t bytes, tide_stream_id stream) {
    tide_error err = TIDE_ERROR_INIT;
    tide_memory mem;
    assert_tide_ok(try_take(a, bytes, stream, &mem, &err), &err);
    return mem;
}
static tide_memory get(tide_allocator *a, size_t bytes) { return get_on(a, bytes, 0); }

static void put(tide_allocator *a, const tide_memory *mem) {
    tide_allocator_release(a, mem, 0);
    assert_sound(a);
}

static uint64_t reserved(const tide_allocator *a) { return stats_of(a).reserved_bytes; }
static size_t apart(const tide_memory *a, const tide_memory *b) {
    return (size_t)((uintptr_t)b->data - (uintptr_t)a->data);
}

// ---- rules 1 and 2 ----

/// A request alone: what its block holds, and the segment that is taken for it.
static void sizes(void **state) {
    (void)state;
    static const struct {
        size_t asked, held, segment;
    } rows[] = {
        {1, 512, 2 * MIB},
        {511, 512, 2 * MIB},
        {512, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {MIB, MIB, 2 * MIB},                                    // the last of the small pool
        {MIB + 1, MIB + 512, 20 * MIB},                         // the first of the large one
        {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},             // the last that shares a segment
        {10 * MIB, 10 * MIB, 10 * MIB},                         // its own segment
        {10 * MIB + 1, 12 * MIB - (MIB + MIB - 512), 12 * MIB}, // 1 MiB and more is left over: cut off
        {11 * MIB, 12 * MIB, 12 * MIB},                         // just 1 MiB is left over: not cut off
        {11 * MIB - 512, 11 * MIB - 512, 12 * MIB},             // 512 B more than that: cut off
        {100 * GIB + 1, 100 * GIB + 512, 100 * GIB + 2 * MIB},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_allocator *a = make("pytorch");
        const tide_memory mem = get(a, rows[i].asked);
        assert_int_equal(mem.reserved_bytes, rows[i].held);
        assert_int_equal(reserved(a), rows[i].segment);
        assert_int_equal(stats_of(a).cached_bytes, rows[i].segment - rows[i].held);
        put(a, &mem);
        assert_int_equal(stats_of(a).cached_bytes, rows[i].segment);
        assert_int_equal(stats_of(a).largest_free_bytes, rows[i].segment); // merged again
        tide_allocator_trim(a);
        assert_int_equal(reserved(a), 0);
        tide_allocator_unref(a);
    }
}

static void what_cannot_be(void **state) {
    (void)state;
    tide_allocator *a = make("pytorch");
    tide_error err = TIDE_ERROR_INIT;
    tide_memory mem;
    assert_tide_status(try_take(a, 0, 0, &mem, &err), TIDE_ERR_INVALID);
    tide_error_clear(&err);
    assert_tide_status(try_take(a, SIZE_MAX, 0, &mem, &err), TIDE_ERR_NOMEM);
    tide_error_clear(&err);
    assert_tide_status(try_take(a, (size_t)1 << 62, 0, &mem, &err), TIDE_ERR_NOMEM); // no addresses left
    assert_int_equal(reserved(a), 0);
    tide_allocator_unref(a);
    a = make("pytorch:expandable_segments");
    tide_error_clear(&err);
    assert_tide_status(try_take(a, (size_t)1 << 50, 0, &mem, &err), TIDE_ERR_NOMEM); // more than a range has
    assert_int_equal(reserved(a), 0);
    tide_allocator_unref(a);
}

static uint64_t rounded(uint64_t bytes, uint32_t divisions) {
    tide_pytorch_options o = {0};
    for (size_t i = 0; i < TIDE_PYTORCH_ROUNDUPS; i++) o.roundup[i] = divisions;
    return tide_pytorch_round(&o, bytes);
}

static void divisions(void **state) {
    (void)state;
    // Four steps from 4096 to 8192 are 1024 apart; up to 4 times 512 B there are none.
    assert_int_equal(rounded(5000, 4), 5120);
    assert_int_equal(rounded(5120, 4), 5120);
    assert_int_equal(rounded(5121, 4), 6144);
    assert_int_equal(rounded(4096, 4), 4096);
    assert_int_equal(rounded(7169, 4), 8192);
    assert_int_equal(rounded(2048, 4), 2048);
    assert_int_equal(rounded(2049, 4), 2560);
    assert_int_equal(rounded(1537, 4), 2048);
    assert_int_equal(rounded(0, 4), 512);
    assert_int_equal(rounded(5000, 1), 5120);
    assert_int_equal(rounded(5121, 0), 5632);
    assert_int_equal(rounded(UINT64_MAX, 4), UINT64_MAX);
    tide_allocator *a = make("pytorch:roundup_power2_divisions=4");
    const tide_memory mem = get(a, 33 * MIB); // 32, 40, …
    assert_int_equal(mem.reserved_bytes, 40 * MIB);
    assert_int_equal(reserved(a), 40 * MIB);
    put(a, &mem);
    tide_allocator_unref(a);
}

// ---- rules 2, 4 and 5 ----

/// 2 MiB: |a 512|b 1024|c 512|rest|. What is freed serves the smallest request that fits, the lowest first.
static void best_fit(void **state) {
    (void)state;
    tide_allocator *a = make("pytorch");
    const tide_memory one = get(a, 512), hole = get(a, 1024), two = get(a, 512), small = get(a, 512),
                      last = get(a, 512);
    assert_int_equal(apart(&one, &hole), 512);
    assert_int_equal(apart(&one, &two), 1536);
    put(a, &hole);
    put(a, &small);
    const tide_memory again = get(a, 500); // 512 at 2048 fits better than 1024 at 512
    assert_int_equal(apart(&one, &again), 2048);
    const tide_memory next = get(a, 500); // now the lower half of the hole
    assert_int_equal(apart(&one, &next), 512);
    assert_int_equal(next.reserved_bytes, 512);
    const tide_memory half = get(a, 1); // and the other half
    assert_int_equal(apart(&one, &half), 1024);
    assert_int_equal(stats_of(a).n_system, 1);
    assert_int_equal(stats_of(a).n_hits, 7);
    const tide_memory *const all[] = {&one, &two, &last, &again, &next, &half};
    for (size_t i = 0; i < 6; i++) put(a, all[i]);
    assert_int_equal(stats_of(a).largest_free_bytes, 2 * MIB);
    tide_allocator_unref(a);
}

/// Of two holes of one size the lower one, whichever was freed first.
static void the_lowest_of_one_size(void **state) {
    (void)state;
    tide_allocator *a = make("pytorch");
    tide_memory m[5];
    for (int i = 0; i < 5; i++) m[i] = get(a, 2 * MIB);
    put(a, &m[3]);
    put(a, &m[1]);
    const tide_memory low = get(a, 2 * MIB);
    assert_ptr_equal(low.data, m[1].data);
    const tide_memory high = get(a, 2 * MIB);
    assert_ptr_equal(high.data, m[3].data);
    tide_allocator_trim(a); // a block lies in the segment: it stays
    assert_int_equal(reserved(a), 20 * MIB);
    const tide_memory *const all[] = {&m[0], &m[2], &m[4], &low, &high};
    for (size_t i = 0; i < 5; i++) put(a, all[i]);
    tide_allocator_unref(a);
}

/// In any order the neighbours merge: the middle last, first, and from both ends.
static void merges(void **state) {
    (void)state;
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        tide_allocator *a = make("pytorch");
        tide_memory m[3];
        for (int k = 0; k < 3; k++) m[k] = get(a, 4 * MIB);
        for (int k = 0; k < 3; k++) put(a, &m[orders[i][k]]);
        assert_int_equal(stats_of(a).largest_free_bytes, 20 * MIB);
        assert_int_equal(stats_of(a).cached_bytes, 20 * MIB);
        tide_allocator_unref(a);
    }
}

/// A small request never lies in a large segment, nor the other way round; nor one stream's in another's.
static void pools_and_streams(void **state) {
    (void)state;
    tide_allocator *a = make("pytorch");
    tide_memory mem = get(a, 2 * MIB);
    put(a, &mem);
    const tide_memory small = get(a, MIB);
    assert_int_equal(reserved(a), 22 * MIB);
    const tide_memory other = get_on(a, 2 * MIB, 7);
    assert_int_equal(reserved(a), 42 * MIB);
    tide_allocator_release(a, &other, 0); // back to the stream it was allocated on
    assert_sound(a);
    mem = get_on(a, 20 * MIB, 7);
    assert_int_equal(reserved(a), 42 * MIB);
    assert_ptr_equal(mem.data, other.data);
    put(a, &mem);
    put(a, &small);
    tide_allocator_trim(a);
    assert_int_equal(reserved(a), 0);
    tide_allocator_unref(a);
}

// ---- rules 3 and 7 ----

static void max_split_size(void **state) {
    (void)state;
    tide_allocator *a = make("pytorch:max_split_size=32MiB");
    tide_memory big = get(a, 61 * MIB); // 62 taken; above 32 nothing is cut off
    assert_int_equal(big.reserved_bytes, 62 * MIB);
    put(a, &big);
    const tide_memory small = get(a, 31 * MIB); // below 32: not from the 62; and 32 MiB are taken: 1 is not cut off
    assert_int_equal(small.reserved_bytes, 32 * MIB);
    assert_int_equal(reserved(a), 94 * MIB);
    const tide_memory low = get(a, 42 * MIB); // 62 is 20 more: too much
    assert_int_equal(reserved(a), 136 * MIB);
    big = get(a, 42 * MIB + 512); // 512 B less than 20 more: may be
    assert_int_equal(big.reserved_bytes, 62 * MIB);
    assert_int_equal(reserved(a), 136 * MIB);
    put(a, &big);
    put(a, &small);
    put(a, &low);
    tide_allocator_unref(a);
}

/// 200 MiB: what is free and large enough goes back first, and only if that is not enough all that is free.
static void out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_of("pytorch:max_split_size=32MiB", 200 * MIB);
    tide_memory small = get(a, 2 * MIB), m1 = get(a, 40 * MIB), m2 = get(a, 60 * MIB), mem;
    put(a, &small); // 20
    put(a, &m1);
    put(a, &m2);
    const tide_memory big = get(a, 82 * MIB); // 120 + 82 are too much; 60 is less than 82: 60 and then 40 go
    assert_int_equal(reserved(a), 102 * MIB);
    assert_int_equal(stats_of(a).cached_bytes, 20 * MIB);
    const tide_memory rest = get(a, 100 * MIB); // 202: nothing of 32 MiB is free; the 20 go too
    assert_int_equal(reserved(a), 182 * MIB);
    assert_tide_status(try_take(a, 30 * MIB, 0, &mem, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "30.00 MiB asked for, 182.00 MiB of 200.00 MiB are taken");
    assert_int_equal(stats_of(a).n_failed, 1);
    assert_int_equal(stats_of(a).headroom_bytes, 18 * MIB);
    put(a, &big);
    put(a, &rest);
    tide_allocator_unref(a);
    tide_sim_device_set_bytes(0);
}

/// The largest go first, and no more than are needed; one that is large enough alone goes alone.
static void the_largest_first(void **state) {
    (void)state;
    tide_allocator *a = make_of("pytorch:max_split_size=32MiB", 200 * MIB);
    const tide_memory m1 = get(a, 40 * MIB), m2 = get(a, 60 * MIB), m3 = get(a, 90 * MIB);
    put(a, &m1);
    put(a, &m2);
    put(a, &m3);
    tide_memory mem = get(a, 112 * MIB); // 90 and 60
    assert_int_equal(reserved(a), 152 * MIB);
    put(a, &mem);
    tide_allocator_trim(a);
    const tide_memory m70 = get(a, 70 * MIB), m100 = get(a, 100 * MIB);
    put(a, &m70);
    put(a, &m100);
    mem = get(a, 50 * MIB); // both are 20 larger; 70 is the smallest that gives enough
    assert_int_equal(reserved(a), 150 * MIB);
    put(a, &mem);
    tide_allocator_unref(a);
    tide_sim_device_set_bytes(0);
}

/// Without a limit of cutting a segment with a block in it stays, one without goes.
static void out_of_memory_plain(void **state) {
    (void)state;
    tide_allocator *a = make_of("pytorch", 100 * MIB);
    tide_memory m1 = get(a, 40 * MIB), m2 = get(a, 30 * MIB), low = get(a, 2 * MIB);
    put(a, &m1);
    put(a, &m2);
    assert_int_equal(reserved(a), 90 * MIB);
    const tide_memory big = get(a, 80 * MIB); // both go
    assert_int_equal(reserved(a), 100 * MIB);
    put(a, &low);
    put(a, &big);
    tide_allocator_unref(a);
    tide_sim_device_set_bytes(0);
}

// ---- rule 6 ----

/// 100 MiB, threshold 0.5. Of the free segments those as old as their mean go; age is requests since they are free.
static void by_age(void **state) {
    (void)state;
    tide_allocator *a = make_of("pytorch:garbage_collection_threshold=0.5", 100 * MIB);
    const tide_memory m20 = get(a, 20 * MIB), m22 = get(a, 22 * MIB);
    put(a, &m20);
    put(a, &m22); // both free since request 2
    tide_memory mem = get(a, 12 * MIB);
    put(a, &mem); // of the 20: free since request 3
    assert_int_equal(reserved(a), 42 * MIB);
    const tide_memory third = get(a, 24 * MIB); // 42 are below 50: nothing goes
    assert_int_equal(reserved(a), 66 * MIB);
    const tide_memory fourth = get(a, 26 * MIB); // request 5, 16 too much; ages 2 and 3, mean 2.5: the 22 go
    assert_int_equal(reserved(a), 70 * MIB);
    assert_int_equal(stats_of(a).cached_bytes, 20 * MIB);
    put(a, &third);         // request 5
    mem = get(a, 30 * MIB); // request 6, 20 too much; ages 3 of the 20, 1 of the 24: the 20 go, just enough
    assert_int_equal(reserved(a), 80 * MIB);
    assert_int_equal(stats_of(a).cached_bytes, 24 * MIB);
    put(a, &mem);
    put(a, &fourth);
    tide_allocator_unref(a);
    // Without memory that ends there is no share of it.
    a = make("pytorch:garbage_collection_threshold=0.5");
    mem = get(a, 20 * MIB);
    put(a, &mem);
    mem = get(a, 80 * MIB);
    assert_int_equal(reserved(a), 100 * MIB);
    put(a, &mem);
    tide_allocator_unref(a);
    tide_sim_device_set_bytes(0);
}

// ---- rule 8 ----

static void expandable(void **state) {
    (void)state;
    tide_allocator *a = make("pytorch:expandable_segments");
    tide_memory first = get(a, 30 * MIB); // two pages of 20
    assert_int_equal(first.reserved_bytes, 30 * MIB);
    assert_int_equal(reserved(a), 40 * MIB);
    const tide_memory second = get(a, 35 * MIB); // 10 are free; 25 more: two pages
    assert_int_equal(apart(&first, &second), 30 * MIB);
    assert_int_equal(reserved(a), 80 * MIB);
    put(a, &first);
    first = get(a, 30 * MIB - 512); // 512 B are cut off here
    assert_int_equal(first.reserved_bytes, 30 * MIB - 512);
    assert_int_equal(reserved(a), 80 * MIB);
    const tide_memory small = get(a, 5); // a range of its own, a page of 2
    assert_int_equal(reserved(a), 82 * MIB);
    put(a, &first);
    tide_allocator_trim(a); // 0 … 30: the first page goes; 30 … 65 keeps pages 2 to 4; of the last 15 none is whole
    assert_int_equal(reserved(a), 62 * MIB);
    first = get(a, 25 * MIB); // the lowest place: a page before the 10 that are free at 20
    assert_int_equal(apart(&first, &second), 30 * MIB);
    assert_int_equal(reserved(a), 82 * MIB);
    const tide_memory third = get(a, 26 * MIB); // the 15 at the end and a page behind them
    assert_int_equal(apart(&second, &third), 35 * MIB);
    assert_int_equal(reserved(a), 102 * MIB);
    put(a, &second);
    put(a, &first);
    put(a, &third);
    put(a, &small);
    assert_int_equal(stats_of(a).cached_bytes, 102 * MIB);
    tide_allocator_trim(a);
    assert_int_equal(reserved(a), 0);
    tide_allocator_unref(a);
}

/// A page that is not to be had changes nothing, and a limit frees what can be freed first.
static void expandable_out_of_memory(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_of("pytorch:expandable_segments", 100 * MIB);
    const tide_memory small = get(a, 3);
    tide_memory big = get(a, 50 * MIB), mem;
    assert_int_equal(reserved(a), 62 * MIB);
    assert_tide_status(try_take(a, 30 * MIB, 7, &mem, &err), TIDE_ERR_NOMEM); // two pages: 102
    assert_int_equal(reserved(a), 62 * MIB);
    put(a, &big);
    mem = get_on(a, 30 * MIB, 7); // the three pages of stream 0 go
    assert_int_equal(reserved(a), 42 * MIB);
    put(a, &mem);
    put(a, &small);
    big = get(a, 90 * MIB); // five pages, all of it
    assert_int_equal(reserved(a), 100 * MIB);
    put(a, &big);
    tide_allocator_unref(a);
    tide_sim_device_set_bytes(0);
}

// ---- what was there before ----

static void adopted(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make("pytorch");
    char *const base = (char *)(uintptr_t)0x7f0000000000;
    assert_tide_ok(tide_pytorch_adopt(a, base, 20 * MIB, 0, &err), &err);
    assert_tide_ok(tide_pytorch_adopt(a, base + 20 * MIB, 2 * MIB, 0, &err), &err);
    assert_tide_status(tide_pytorch_adopt(a, base, 20 * MIB, 0, &err), TIDE_ERR_INVALID);
    assert_int_equal(reserved(a), 22 * MIB);
    tide_pytorch_place_next(a, base + 4 * MIB, 6 * MIB);
    const tide_memory held = get(a, 5 * MIB); // not at the begin, and more than it asks for
    assert_ptr_equal(held.data, base + 4 * MIB);
    assert_int_equal(held.reserved_bytes, 6 * MIB);
    tide_pytorch_place_next(a, base + 5 * MIB, MIB); // taken: like any other, the best fit is the 4 before it
    const tide_memory next = get(a, 3 * MIB);
    assert_ptr_equal(next.data, base);
    const tide_memory small = get(a, 512); // 2 MiB are of the small pool
    assert_ptr_equal(small.data, base + 20 * MIB);
    assert_int_equal(reserved(a), 22 * MIB);
    put(a, &held);
    put(a, &next);
    put(a, &small);
    tide_allocator_trim(a);
    assert_int_equal(reserved(a), 0);
    tide_allocator_unref(a);
}

// ---- names ----

static void options(void **state) {
    (void)state;
    tide_pytorch_options o;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_pytorch_options_parse("max_split_size=512MiB,roundup_power2_divisions=4,"
                                              "garbage_collection_threshold=0.8,expandable_segments",
                                              &o, &err),
                   &err);
    assert_true(o.max_split_bytes == 512 * MIB && o.roundup[0] == 4 && o.roundup[15] == 4 && o.gc_threshold == 0.8);
    assert_true(o.expandable_segments);
    assert_tide_ok(tide_pytorch_options_parse("", &o, &err), &err);
    assert_true(o.max_split_bytes == 0 && o.roundup[0] == 0 && o.roundup[15] == 0 && o.gc_threshold == 0 &&
                !o.expandable_segments);
    static const char *const wrong[] = {"max_split_size",
                                        "max_split_size=20MiB",
                                        "max_split_size=x",
                                        "roundup_power2_divisions=3",
                                        "roundup_power2_divisions=0",
                                        "roundup_power2_divisions=-4",
                                        "roundup_power2_divisions=[]",
                                        "roundup_power2_divisions=[256:3]",
                                        "roundup_power2_divisions=[255:4]",
                                        "roundup_power2_divisions=[256:4",
                                        "roundup_power2_divisions=[256:4,]",
                                        "roundup_power2_divisions=[256:4]x",
                                        "roundup_power2_divisions=[256]",
                                        "roundup_power2_divisions=[-256:4]",
                                        "roundup_power2_divisions=[256:131072]",
                                        "garbage_collection_threshold=1",
                                        "garbage_collection_threshold=0",
                                        "garbage_collection_threshold=nan",
                                        "expandable_segments=1",
                                        "expandable_segments,",
                                        ",",
                                        "split=3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_error_clear(&err);
        assert_tide_status(tide_pytorch_options_parse(wrong[i], &o, &err), TIDE_ERR_INVALID);
        assert_text_has(err.hint, "max_split_size=512MiB");
    }
    assert_int_equal(tide_pytorch_options_len("max_split_size=1,cpu"), 16);
    assert_int_equal(tide_pytorch_options_len("roundup_power2_divisions=[1:2,>:4],expandable_segments,cpu"), 54);
    assert_int_equal(tide_pytorch_options_len("roundup_power2_divisions=[1:2,>:4"), 33);
    assert_int_equal(tide_pytorch_options_len("nothing,cpu"), 7);
    assert_int_equal(tide_pytorch_options_len(",expandable_segments"), 20);
    assert_int_equal(tide_pytorch_options_len(""), 0);
    tide_allocator *a = NULL;
    tide_error_clear(&err);
    assert_tide_status(tide_allocator_create_on(TIDE_CPU, "pytorch", &a, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.hint, "--device sim");
    tide_error_clear(&err);
    assert_tide_status(tide_allocator_create_on(sim(), "pytorchx", &a, &err), TIDE_ERR_INVALID);
    const char *name;
    for (size_t i = 0; (name = tide_allocator_name_on(sim(), i)) != NULL; i++) {
        a = make(name);
        const tide_memory mem = get(a, 3 * MIB);
        put(a, &mem);
        tide_allocator_unref(a);
    }
}

/// A list by size is read as PyTorch reads it: the first entry counts below it too, ">" above the last one.
static void roundup_by_size(void **state) {
    (void)state;
    tide_pytorch_options o;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_pytorch_options_parse("roundup_power2_divisions=[2:1,4:4,16:2,>:8]", &o, &err), &err);
    static const uint32_t want[TIDE_PYTORCH_ROUNDUPS] = {1, 1, 4, 0, 2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    assert_memory_equal(o.roundup, want, sizeof want);
    const size_t beyond = 5 * MIB + 1; // of 4 MiB and more four steps: of 1 MiB
    assert_int_equal(tide_pytorch_round(&o, beyond), 6 * MIB);
    assert_int_equal(tide_pytorch_round(&o, 9 * MIB + 1), 9 * MIB + 512); // no entry: none
    assert_int_equal(tide_pytorch_round(&o, 17 * MIB), 24 * MIB);
    assert_int_equal(tide_pytorch_round(&o, 40 * MIB + 1), 44 * MIB);
    assert_int_equal(tide_pytorch_round(&o, (UINT64_C(1) << 40) + 1), (UINT64_C(1) << 40) + (UINT64_C(1) << 37));
    assert_tide_ok(tide_pytorch_options_parse("roundup_power2_divisions=[65536:2]", &o, &err), &err);
    assert_true(o.roundup[0] == 2 && o.roundup[15] == 2);
}

/// Options as text are read as the same options.
static void options_as_text(void **state) {
    (void)state;
    static const char *const all[] = {"",
                                      "expandable_segments",
                                      "max_split_size=536870912,roundup_power2_divisions=4,expandable_segments",
                                      "roundup_power2_divisions=[1:0,2:4,4:4,>:0]",
                                      "roundup_power2_divisions=[256:1,512:2,>:8]",
                                      "garbage_collection_threshold=0.1"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tide_pytorch_options a, b;
        tide_error err = TIDE_ERROR_INIT;
        tide_text text = {0};
        assert_tide_ok(tide_pytorch_options_parse(all[i], &a, &err), &err);
        tide_pytorch_options_text(&a, &text);
        assert_tide_ok(tide_pytorch_options_parse(tide_text_str(&text), &b, &err), &err);
        assert_memory_equal(a.roundup, b.roundup, sizeof a.roundup);
        assert_true(a.max_split_bytes == b.max_split_bytes && a.gc_threshold == b.gc_threshold &&
                    a.expandable_segments == b.expandable_segments);
        if (i < 3 || i == 4) assert_string_equal(tide_text_str(&text), all[i]);
        tide_text_deinit(&text);
    }
}

/// Many requests of many sizes on several streams, freed in another order; the walk over all chunks holds after each.
static void many(void **state) {
    (void)state;
    static const char *const all[] = {"pytorch", "pytorch:expandable_segments", "pytorch:max_split_size=24MiB",
                                      "pytorch:roundup_power2_divisions=8,garbage_collection_threshold=0.3"};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        tide_allocator *a = make_of(all[k], 400 * MIB);
        tide_memory live[64] = {0};
        uint64_t x = 1;
        for (int i = 0; i < 4000; i++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            tide_memory *m = &live[x >> 58];
            if (m->data != NULL) {
                put(a, m);
                m->data = NULL;
            } else if (try_take(a, (size_t)((x >> 20 & 0xFFFF) + 1) << (x >> 40 & 7) << (x >> 50 & 3), x >> 56 & 1, m,
                                NULL) != TIDE_OK) {
                m->data = NULL;
            }
            if (i % 500 == 0) tide_allocator_trim(a);
        }
        for (int i = 0; i < 64; i++)
            if (live[i].data != NULL) put(a, &live[i]);
        tide_allocator_trim(a);
        assert_int_equal(reserved(a), 0);
        tide_allocator_unref(a);
    }
    tide_sim_device_set_bytes(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(sizes),
        tide_unit_test(what_cannot_be),
        tide_unit_test(divisions),
        tide_unit_test(best_fit),
        tide_unit_test(the_lowest_of_one_size),
        tide_unit_test(merges),
        tide_unit_test(pools_and_streams),
        tide_unit_test(max_split_size),
        tide_unit_test(out_of_memory),
        tide_unit_test(the_largest_first),
        tide_unit_test(out_of_memory_plain),
        tide_unit_test(by_age),
        tide_unit_test(expandable),
        tide_unit_test(expandable_out_of_memory),
        tide_unit_test(adopted),
        tide_unit_test(options),
        tide_unit_test(roundup_by_size),
        tide_unit_test(options_as_text),
        tide_unit_test(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
