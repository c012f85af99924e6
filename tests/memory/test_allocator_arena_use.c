// SPDX-License-Identifier: MIT
//
// The arena behind blocks and storages: what may be touched and when, and by several threads.
#include <sched.h>
#include <stdatomic.h>

#include "core/memory/poison.h"
#include "core/memory/storage.h"
#include "memory_test.h"
#include "survives.h"

// LT-37: a pointer that outlives its block or a reset is caught: AddressSanitizer traps, a debug build shows the
// pattern. Only what is handed out may be touched, to its last byte.
static void stale_use_is_caught(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 4096, 64);
    const tide_memory a = take(arena, 100, 0), b = take(arena, 1000, 0);
    unsigned char *const stale_a = a.data, *const stale_b = b.data;
    memset(a.data, 1, 100);
    memset(b.data, 2, 1000);
    assert_true(survives_reading(&stale_a[99]) && survives_reading(&stale_b[999]));
    if (tide_asan_active()) {
        assert_false(survives_reading(&stale_a[100]));  // the end of its span
        assert_false(survives_reading(&stale_b[1000])); // and bytes not yet given out
        assert_false(survives_reading(&stale_b[2000]));
    }
    give(arena, &a);
    assert_int_equal(survives_reading(stale_a), !tide_asan_active()); // before any reset
    assert_int_equal(stale_b[500], 2);
    give(arena, &b);
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    assert_int_equal(survives_reading(&stale_b[500]), !tide_asan_active());
#ifndef NDEBUG
    const tide_memory again = take(arena, 1100, 0);
    const unsigned char *bytes = again.data;
    assert_ptr_equal(bytes, stale_a);
    assert_int_equal(tide_poison_find(bytes, 1100), 1100); // what a stale pointer reads, and a new block begins with
    give(arena, &again);
#endif
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

/// The backing's memory goes back usable: its owner keeps a list in it and gives all of it out again.
static void the_backing_goes_back_as_it_came(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cache = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&cache, &err), &err);
    tide_allocator *arena = make_arena(cache, 4096, 64);
    const tide_memory mem = take(arena, 1000, 0);
    give(arena, &mem);
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    assert_tide_ok(tide_arena_reserve(arena, 5000, &err), &err);
    tide_memory next = take(cache, 4096, 64);
    memset(next.data, 3, 4096);
    give(cache, &next);
    tide_allocator_unref(arena);
    next = take(cache, 8192, 64);
    memset(next.data, 3, 8192);
    give(cache, &next);
    assert_sound(cache);
    tide_allocator_unref(cache);
}

// LT-37: all three ways a workspace can back tensors: blocks of an arena, memory that the caller keeps alive, and one
// large block cut into storages.
static void three_ways_to_back_a_workspace(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    tide_allocator *arena = make_arena(cpu, 4096, 256);
    // 1: a block without a free of its own
    tide_block *spanned = NULL;
    assert_tide_ok(tide_block_create(arena, 1000, 0, TIDE_KIND_WORKSPACE, 0, "act", &spanned, &err), &err);
    assert_ptr_equal(spanned->mem.context, tide_allocator_self(arena));
    assert_false(tide_block_is_simple(spanned)); // its address is not all there is to know: never lazily cloned
    // 2: borrowed, kept alive by the caller
    const tide_memory span = take(arena, 1000, 256);
    tide_block *borrowed = NULL;
    assert_tide_ok(
        tide_block_borrow(span.data, 1000, TIDE_CPU, TIDE_KIND_WORKSPACE, NULL, NULL, "act", &borrowed, &err), &err);
    assert_ptr_equal(tide_block_address(borrowed), span.data);
    // 3: one block cut into storages
    tide_storage whole = tide_storage_of_block(spanned), half = {0};
    assert_tide_ok(tide_storage_slice(&whole, 512, 488, &half, &err), &err);
    assert_ptr_equal(tide_storage_data(&half), (char *)tide_storage_data(&whole) + 512);
    tide_storage_deinit(&whole);
    tide_block_unref(spanned);
    assert_tide_status(tide_allocator_reset(arena, &err), TIDE_ERR_BUSY);
    tide_storage_deinit(&half);
    tide_block_unref(borrowed);
    give(arena, &span);
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
    assert_true(stats_of(cpu).n_system == 1);
    tide_allocator_unref(arena);
    tide_allocator_unref(cpu);
}

typedef struct crowd {
    tide_allocator *arena;
    _Atomic int n_spoiled;
    _Atomic uint64_t requested, spans; // of all that was ever given
} crowd;

static void *use_arena(void *arg) {
    crowd *c = arg;
    tide_rng rng = {tide_thread_id()};
    for (int i = 0; i < 3000; i++) {
        const tide_alloc_request req = {.size_bytes = 1 + (size_t)tide_rng_below(&rng, 200),
                                        .align_bytes = (size_t)1 << tide_rng_below(&rng, 9)};
        tide_memory mem = {0};
        if (tide_allocator_alloc(c->arena, &req, &mem, NULL) != TIDE_OK) abort();
        unsigned char *bytes = mem.data;
        memset(bytes, i, req.size_bytes);
        if ((uintptr_t)mem.data % req.align_bytes != 0) atomic_fetch_add(&c->n_spoiled, 1);
        sched_yield();
        for (size_t k = 0; k < req.size_bytes; k++) {
            if (bytes[k] != (unsigned char)i) atomic_fetch_add(&c->n_spoiled, 1);
        }
        atomic_fetch_add(&c->spans, mem.reserved_bytes);
        tide_allocator_release(c->arena, &mem, 0);
    }
    return NULL;
}

// LT-39: eight threads at one arena; the numbers are exact when they are through.
static void eight_threads_share_an_arena(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = make_cpu();
    crowd c = {.arena = make_arena(cpu, 8 * 3000 * 512, 64)};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_arena, &c), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    const tide_allocator_stats s = stats_of(c.arena);
    assert_true(c.n_spoiled == 0 && s.n_allocs == 24000 && s.n_frees == 24000 && s.requested_bytes == 0);
    assert_int_equal(s.active_bytes, c.spans); // spans tile the arena up to the cursor
    assert_int_equal(s.peak_active_bytes, c.spans);
    assert_sound(c.arena);
    assert_tide_ok(tide_allocator_reset(c.arena, &err), &err);
    tide_allocator_unref(c.arena);
    tide_allocator_unref(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(stale_use_is_caught),
        tide_unit_test(the_backing_goes_back_as_it_came),
        tide_unit_test(three_ways_to_back_a_workspace),
        tide_unit_test(eight_threads_share_an_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
