// SPDX-License-Identifier: MIT
//
// The arena: one backing call, a cursor, reset.
#include "memory_test.h"

// LT-28: one backing call over 1,000 steps, the block is freed once.
static void one_backing_call_over_1000_steps(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 100000, 64);
    tide_rng rng = {28};
    for (int step = 0; step < 1000; step++) {
        tide_memory mem[20];
        for (int i = 0; i < 20; i++) mem[i] = take(arena, 1 + (size_t)tide_rng_below(&rng, 4000), 0);
        for (int i = 0; i < 20; i++) give(arena, &mem[i]);
        assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    }
    assert_true(stats_of(cpu).n_system == 1 && stats_of(cpu).n_frees == 0);
    assert_true(stats_of(arena).n_system == 1 && stats_of(arena).n_allocs == 20000);
    tide_allocator_unref(arena);
    assert_true(stats_of(cpu).n_frees == 1 && stats_of(cpu).active_bytes == 0);
    tide_allocator_unref(cpu);
}

//  capacity 1024, alignment 64:   [ a: 100 ....][ b: 64 ][pad][ c at 256: 10 ..]| free
//                                 0            128      192   256             320
static void places_by_hand(void **state) {
    (void)state;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 1024, 64);
    const tide_memory a = take(arena, 100, 0), b = take(arena, 64, 8), c = take(arena, 10, 256);
    const uintptr_t base = (uintptr_t)a.data;
    assert_true(base % 64 == 0);
    assert_true((uintptr_t)b.data - base == 128);
    assert_true((uintptr_t)c.data % 256 == 0);
    assert_true((uintptr_t)c.data - base >= 192 && (uintptr_t)c.data - base < 192 + 256);
    const uintptr_t cursor = (uintptr_t)c.data - base + 64;
    tide_allocator_stats s = stats_of(arena);
    assert_true(s.requested_bytes == 174);
    assert_true(s.active_bytes == cursor);
    assert_true(a.reserved_bytes + b.reserved_bytes + c.reserved_bytes == cursor);
    assert_true(s.cached_bytes == 1024 - cursor && s.largest_free_bytes == 1024 - cursor);
    assert_true(s.reserved_bytes == 1024);
    give(arena, &c);
    give(arena, &a);
    give(arena, &b);
    s = stats_of(arena);
    assert_true(s.requested_bytes == 0 && s.active_bytes == cursor); // nothing comes back before reset
    assert_tide_status(tide_allocator_reset(arena, NULL), TIDE_OK);
    s = stats_of(arena);
    assert_true(s.active_bytes == 0 && s.largest_free_bytes == 1024);
    assert_true(s.peak_active_bytes == cursor); // the high-water mark stays
    const tide_memory again = take(arena, 1, 0);
    assert_ptr_equal(again.data, a.data); // rewound
    give(arena, &again);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

/// Spans are rounded up as a plan does it, so the high-water mark is the plan's sum.
static void high_water_is_the_sum_of_rounded_sizes(void **state) {
    (void)state;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 1 << 20, 256);
    tide_rng rng = {7};
    uint64_t want = 0;
    for (int i = 0; i < 100; i++) {
        const size_t size = 1 + (size_t)tide_rng_below(&rng, 3000);
        const tide_memory mem = take(arena, size, 256);
        want += (size + 255) / 256 * 256;
        assert_true((uintptr_t)mem.data % 256 == 0);
        give(arena, &mem);
    }
    assert_true(stats_of(arena).peak_active_bytes == want);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

static void exact_fit_passes_and_one_byte_more_fails(void **state) {
    (void)state;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 1000, 256); // not a multiple of the alignment
    const tide_alloc_request more = {.size_bytes = 1001, .tag = "conv1"};
    tide_memory mem = {0};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide_allocator_alloc(arena, &more, &mem, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "conv1");
    assert_text_has(err.msg, "1001 B");
    assert_text_has(err.msg, "1000 B left of 1000");
    assert_true(stats_of(arena).active_bytes == 0 && stats_of(arena).n_failed == 1);
    const tide_memory all = take(arena, 1000, 0);
    memset(all.data, 0x5A, 1000);
    assert_true(stats_of(arena).active_bytes == 1000 && stats_of(arena).largest_free_bytes == 0);
    const tide_alloc_request one = {.size_bytes = 1};
    assert_tide_status(tide_allocator_alloc(arena, &one, &mem, &err), TIDE_ERR_NO_SPACE);
    assert_null(mem.data);
    assert_sound(arena);
    give(arena, &all);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

/// The conformance suite's arena has 160 MiB; here is one that meets a GiB, in one piece and in two.
static void a_gib_fits(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__)
    const size_t top = (size_t)64 << 20; // its shadow of a GiB costs seconds and shows nothing more
#else
    const size_t top = (size_t)1 << 30;
#endif
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, top, 4096);
    for (size_t n = 1; n <= 2; n++) {
        tide_memory mem[2];
        for (size_t i = 0; i < n; i++) {
            mem[i] = take(arena, top / n, 4096);
            assert_true((uintptr_t)mem[i].data % 4096 == 0);
            ((char *)mem[i].data)[0] = ((char *)mem[i].data)[top / n - 1] = (char)(i + 1);
        }
        const tide_alloc_request more = {.size_bytes = 1};
        tide_memory none = {0};
        assert_tide_status(tide_allocator_alloc(arena, &more, &none, &err), TIDE_ERR_NO_SPACE);
        const tide_allocator_stats s = stats_of(arena);
        assert_true(s.active_bytes == top && s.requested_bytes == top && s.largest_free_bytes == 0);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(((char *)mem[i].data)[top / n - 1], i + 1);
            give(arena, &mem[i]);
        }
        assert_tide_ok(tide_allocator_reset(arena, &err), &err);
        assert_sound(arena);
    }
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

static void reset_is_refused_while_memory_is_out(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 4096, 64);
    const tide_memory a = take(arena, 10, 0), b = take(arena, 10, 0);
    assert_tide_status(tide_allocator_reset(arena, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "2 blocks");
    give(arena, &a);
    assert_tide_status(tide_allocator_reset(arena, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "1 block");
    assert_true(stats_of(arena).active_bytes == 128);
    give(arena, &b);
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

static void wrong_arguments_and_a_backing_that_fails(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = NULL;
    assert_tide_status(tide_arena_create(cpu, 100, 65, &arena, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_arena_create(cpu, SIZE_MAX, 64, &arena, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "arena");
    assert_null(arena);
    // An arena inside an arena: the inner one's backing is a span of the outer one.
    tide_allocator *outer = make_arena(cpu, 10000, 256);
    assert_tide_status(tide_arena_create(outer, 10001, 64, &arena, &err), TIDE_ERR_NO_SPACE);
    tide_allocator *inner = make_arena(outer, 5000, 64);
    tide_allocator_unref(outer); // kept alive by the inner one
    const tide_memory mem = take(inner, 5000, 0);
    memset(mem.data, 1, 5000);
    give(inner, &mem);
    tide_allocator_unref(inner);
    assert_true(stats_of(cpu).active_bytes == 0);
    tide_allocator_unref(cpu);
}

/// LT-37: blocks, and so tensors, may live in an arena; they all lie in its one block.
static void blocks_live_inside_the_one_block(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 64 << 10, 256);
    tide_block *blocks[10];
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < 10; i++) {
        assert_tide_ok(tide_block_create(arena, 3000, 0, TIDE_KIND_WORKSPACE, 0, "act", &blocks[i], &err), &err);
        const uintptr_t at = (uintptr_t)blocks[i]->mem.data;
        if (at < low) low = at;
        if (at + 3000 > high) high = at + 3000;
    }
    assert_true(high - low <= 64 << 10);
    assert_true(stats_of(cpu).n_allocs == 1);
    tide_allocator_unref(arena);
    for (int i = 0; i < 10; i++) tide_block_unref(blocks[i]);
    assert_true(stats_of(cpu).n_frees == 1);
    tide_allocator_unref(cpu);
}

// LT-28: nothing is taken before reserve; a reserve that has enough does nothing; a larger one gives the old block
// back.
static void reserve_makes_room(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 0, 64);
    tide_memory mem = {0};
    const tide_alloc_request req = {.size_bytes = 1, .tag = "conv1"};
    assert_true(stats_of(cpu).n_system == 0 && stats_of(arena).reserved_bytes == 0);
    assert_tide_status(tide_allocator_alloc(arena, &req, &mem, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "0 B left of 0");
    assert_sound(arena);

    assert_tide_ok(tide_arena_reserve(arena, 1000, &err), &err);
    assert_tide_ok(tide_arena_reserve(arena, 1000, &err), &err);
    assert_tide_ok(tide_arena_reserve(arena, 10, &err), &err);
    assert_true(stats_of(cpu).n_system == 1 && stats_of(arena).n_system == 1);
    assert_true(stats_of(arena).largest_free_bytes == 1000 && stats_of(arena).headroom_bytes == 0);
    mem = take(arena, 1000, 0);
    memset(mem.data, 1, 1000);
    assert_tide_status(tide_arena_reserve(arena, 2000, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "1 blocks are out");
    assert_tide_ok(tide_arena_reserve(arena, 500, &err), &err); // it has that much already, in use or not
    give(arena, &mem);
    assert_tide_status(tide_arena_reserve(arena, 2000, &err), TIDE_ERR_BUSY); // a cursor in mid-air
    assert_text_has(err.msg, "cursor is at 1000 of 1000");
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    assert_tide_ok(tide_arena_reserve(arena, 2000, &err), &err);
    assert_true(stats_of(cpu).n_system == 2 && stats_of(cpu).n_frees == 1);
    assert_true(stats_of(arena).n_system == 2 && stats_of(arena).reserved_bytes == 2048 - 2048 % 64);
    assert_true(stats_of(arena).peak_active_bytes == 1000); // the mark survives
    mem = take(arena, 2000, 0);
    memset(mem.data, 2, 2000);
    give(arena, &mem);
    assert_sound(arena);

    // A backing that fails leaves the arena as it was.
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    assert_tide_status(tide_arena_reserve(arena, SIZE_MAX, &err), TIDE_ERR_NOMEM);
    assert_true(stats_of(arena).largest_free_bytes == 2000);
    assert_tide_status(tide_arena_reserve(cpu, 10, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "no arena");
    assert_sound(arena);
    tide_allocator_unref(arena);
    assert_true(stats_of(cpu).active_bytes == 0);
    tide_allocator_unref(cpu);
}

static void host_memory_may_end(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu(), *arena = NULL;
    int n = 0;
    for (;; n++) {
        tide_host_fail_after(n);
        const tide_status st = tide_arena_create(cpu, 1000, 64, &arena, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_true(stats_of(cpu).active_bytes == 0);
    }
    assert_true(n >= 3); // state, block, object
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

static void props_are_right(void **state) {
    (void)state;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 4096, 128);
    tide_allocator_props p;
    tide_allocator_get_props(arena, &p);
    assert_true(p.align_bytes == 128 && p.needs_reset && !p.keeps_freed);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(one_backing_call_over_1000_steps),
        tide_unit_test(places_by_hand),
        tide_unit_test(high_water_is_the_sum_of_rounded_sizes),
        tide_unit_test(exact_fit_passes_and_one_byte_more_fails),
        tide_unit_test(a_gib_fits),
        tide_unit_test(reset_is_refused_while_memory_is_out),
        tide_unit_test(wrong_arguments_and_a_backing_that_fails),
        tide_unit_test(blocks_live_inside_the_one_block),
        tide_unit_test(reserve_makes_room),
        tide_unit_test(host_memory_may_end),
        tide_unit_test(props_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
