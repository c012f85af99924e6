// SPDX-License-Identifier: MIT
//
// paged: pages and slabs by hand, and a check() that finds what is broken. What it shares with every allocator is in
// test_allocator_conformance.c. White box: includes the source.
#include "core/memory/allocators/paged.c"

#include "core/base/assert.h"
#include "core/device/backend.h"
#include "memory_test.h"
#include "tests/device/fake_device.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

enum { PAGE = 4096, PER_SLAB = 4 };

static tide_allocator *make_paged(tide_allocator *backing) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_paged_create(backing, PAGE, PER_SLAB, &a, &err), &err);
    return a;
}

static tide_allocator *make_cpu_paged(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    tide_allocator *a = make_paged(cpu);
    tide_allocator_unref(cpu);
    return a;
}

/// Four pages lie side by side in the first slab, the fifth begins a second one; all numbers by hand.
static void pages_are_cut_from_slabs(void **state) { // LT-16, LT-39
    (void)state;
    tide_allocator *a = make_cpu_paged();
    tide_memory mem[5];
    for (int i = 0; i < 5; i++) mem[i] = take(a, 1000, 0);
    for (int i = 1; i < 4; i++) assert_ptr_equal(mem[i].data, (char *)mem[0].data + i * PAGE);
    for (int i = 0; i < 5; i++) {
        assert_true((uintptr_t)mem[i].data % PAGE == 0);
        assert_true(mem[i].reserved_bytes == PAGE);
    }
    tide_allocator_stats s = stats_of(a);
    assert_true(s.requested_bytes == 5000);
    assert_true(s.active_bytes == 5 * PAGE); // waste: 5 * 3096
    assert_true(s.cached_bytes == 3 * PAGE && s.largest_free_bytes == PAGE);
    assert_true(s.reserved_bytes == 8 * PAGE);
    assert_true(s.n_system == 2 && s.n_hits == 3);
    assert_sound(a);
    // Any free page serves next, whichever slab it is of.
    give(a, &mem[1]);
    const tide_memory again = take(a, 4096, 4096);
    assert_ptr_equal(again.data, mem[1].data);
    assert_true(stats_of(a).n_system == 2);
    mem[1] = again;
    for (int i = 0; i < 5; i++) give(a, &mem[i]);
    s = stats_of(a);
    assert_true(s.active_bytes == 0 && s.cached_bytes == 8 * PAGE && s.peak_active_bytes == 5 * PAGE);
    assert_sound(a);
    tide_allocator_unref(a);
}

/// A slab with one page in use stays, the others go.
static void trim_gives_free_slabs_back(void **state) {
    (void)state;
    tide_allocator *a = make_cpu_paged();
    tide_memory mem[3 * PER_SLAB];
    for (int i = 0; i < 3 * PER_SLAB; i++) mem[i] = take(a, PAGE, 0);
    for (int i = 0; i < 3 * PER_SLAB; i++) {
        if (i != PER_SLAB + 2) give(a, &mem[i]);
    }
    tide_allocator_trim(a);
    const tide_allocator_stats s = stats_of(a);
    assert_true(s.reserved_bytes == PER_SLAB * PAGE && s.cached_bytes == (PER_SLAB - 1) * PAGE);
    assert_sound(a);
    memset(mem[PER_SLAB + 2].data, 1, PAGE);
    give(a, &mem[PER_SLAB + 2]);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 0);
    tide_allocator_unref(a);
}

static void sizes_are_checked(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_status(tide_paged_create(cpu, 0, 4, &a, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_paged_create(cpu, 1000, 4, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "1000");
    assert_text_has(err.msg, "256");
    assert_tide_status(tide_paged_create(cpu, 4096, 0, &a, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_paged_create(cpu, 4096, UINT32_MAX, &a, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_paged_create(cpu, (size_t)1 << 60, 1 << 20, &a, &err), TIDE_ERR_OVERFLOW);
    assert_null(a);
    tide_allocator_unref(cpu);

    a = make_cpu_paged();
    const tide_alloc_request wide = {.size_bytes = PAGE + 1, .tag = "wide"};
    tide_memory mem = {0};
    assert_tide_status(tide_allocator_alloc(a, &wide, &mem, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "'wide' needs 4097 B, a page has 4096 B");
    const tide_alloc_request strict = {.size_bytes = 1, .align_bytes = 2 * PAGE};
    assert_tide_status(tide_allocator_alloc(a, &strict, &mem, &err), TIDE_ERR_INVALID);
    assert_true(stats_of(a).n_system == 0);
    tide_allocator_unref(a);
}

/// 3 * 256 bytes: the largest power of two in it is 256, and that is what its pages have.
static void alignment_is_the_pages_own(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_paged_create(cpu, 768, 8, &a, &err), &err);
    tide_allocator_props p;
    tide_allocator_get_props(a, &p);
    assert_true(p.align_bytes == 256 && p.max_align_bytes == 256 && p.max_bytes == 768 && p.keeps_freed);
    tide_memory mem[8];
    for (int i = 0; i < 8; i++) {
        mem[i] = take(a, 700, 256);
        assert_true((uintptr_t)mem[i].data % 256 == 0);
    }
    for (int i = 0; i < 8; i++) give(a, &mem[i]);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
}

/// The backing refuses a second slab: the numbers are said, nothing is changed, and free pages still serve.
static void the_backing_has_no_more(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *cpu = NULL, *limit = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_limit_create(cpu, PER_SLAB * PAGE + 100, &limit, &err), &err);
    tide_allocator *a = make_paged(limit);
    assert_true(stats_of(a).headroom_bytes == PER_SLAB * PAGE);
    tide_memory mem[PER_SLAB];
    for (int i = 0; i < PER_SLAB; i++) mem[i] = take(a, PAGE, 0);
    assert_true(stats_of(a).headroom_bytes == 0 && stats_of(limit).headroom_bytes == 100); // no slab in 100
    const tide_allocator_stats before = stats_of(a);
    const tide_alloc_request req = {.size_bytes = PAGE, .tag = "kv page"};
    tide_memory none = {0};
    assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "kv page");
    assert_text_has(err.msg, "100 B left");
    tide_allocator_stats after = stats_of(a);
    assert_true(after.n_failed == 1);
    after.n_failed = 0;
    assert_memory_equal(&after, &before, sizeof after);
    assert_sound(a);
    give(a, &mem[3]);
    mem[3] = take(a, PAGE, 0);
    for (int i = 0; i < PER_SLAB; i++) give(a, &mem[i]);
    tide_allocator_unref(a);
    tide_allocator_unref(limit);
    tide_allocator_unref(cpu);
}

/// Nothing is written into pages: they may be of a device whose addresses the host cannot follow.
static void pages_of_a_device(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device device = fake_at(1);
    tide_allocator *backing = NULL;
    assert_tide_ok(tide_device_allocator_create(device, &backing, &err), &err);
    tide_allocator *a = make_paged(backing);
    assert_true(tide_device_equal(tide_allocator_device(a), device));
    tide_memory mem[6];
    for (int i = 0; i < 6; i++) mem[i] = take(a, 500, 0);
    for (int i = 0; i < 6; i++) give(a, &mem[i]);
    assert_sound(a);
    assert_int_equal(fake.n_live_blocks, 2);
    tide_allocator_trim(a);
    assert_int_equal(fake.n_live_blocks, 0);
    tide_allocator_unref(a);
    tide_allocator_unref(backing);
    fake_teardown();
}

static void wait_for_the_flag(void *arg) {
    while (!atomic_load((atomic_bool *)arg)) sched_yield();
}

/// A slab that goes back takes the streams that used its pages with it: its backing does not give it out before.
static void a_slab_remembers_its_streams(void **state) { // LT-35
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *backing = NULL;
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &backing, &err), &err);
    tide_allocator *a = make_paged(backing);
    tide_stream_id stream = 0;
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    atomic_bool go = false;
    const tide_memory mem = take(a, PAGE, 0);
    assert_tide_ok(tide_device_call(TIDE_CPU, stream, wait_for_the_flag, &go, &err), &err);
    assert_tide_ok(tide_device_fill(TIDE_CPU, stream, mem.data, 1, PAGE, &err), &err);
    tide_allocator_record_use(a, &mem, stream);
    give(a, &mem);
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 0);
    assert_true(stats_of(backing).n_pending == 1);
    atomic_store(&go, true);
    assert_tide_ok(tide_stream_sync(TIDE_CPU, stream, &err), &err);
    tide_allocator_trim(backing);
    assert_true(stats_of(backing).n_pending == 0 && stats_of(backing).reserved_bytes == 0);
    tide_stream_destroy(TIDE_CPU, stream);
    tide_allocator_unref(a);
    tide_allocator_unref(backing);
}

/// Free pages and the unused ends of others are off limits under AddressSanitizer.
static void stale_pages_are_off_limits(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    tide_allocator *a = make_cpu_paged();
    const tide_memory one = take(a, 1000, 0), two = take(a, PAGE, 0);
    assert_null(__asan_region_is_poisoned(one.data, 1000));
    assert_null(__asan_region_is_poisoned(two.data, PAGE));
    assert_true(__asan_address_is_poisoned((char *)one.data + 1000));
    assert_true(__asan_address_is_poisoned((char *)two.data + PAGE)); // the third page is free
    give(a, &two);
    assert_true(__asan_address_is_poisoned(two.data));
    give(a, &one);
    tide_allocator_unref(a);
#else
    assert_false(tide_asan_active());
#endif
}

/// check() finds each kind of damage and is content again when it is undone.
static void check_finds_damage(void **state) {
    (void)state;
    tide_allocator *a = make_cpu_paged();
    const tide_memory one = take(a, 100, 0), two = take(a, 100, 0);
    paged_state *p = tide_allocator_self(a);
    slab *s = p->slabs;
    assert_sound(a);
#define FINDS(damage, undo, words)                                                                                     \
    do {                                                                                                               \
        tide_error err = TIDE_ERROR_INIT;                                                                              \
        damage;                                                                                                        \
        assert_tide_status(tide_allocator_check(a, &err), TIDE_ERR_RUNTIME);                                           \
        assert_text_has(err.msg, words);                                                                               \
        undo;                                                                                                          \
        assert_sound(a);                                                                                               \
    } while (0)
    FINDS(s->n_free++, s->n_free--, "it counts 3 free");
    FINDS(s->pages[2].next_free = 2, s->pages[2].next_free = 3, "5 free of 4");
    FINDS(s->pages[3].next_free = 0, s->pages[3].next_free = NO_PAGE, "free and in use");
    FINDS(s->first_free = 77, s->first_free = 2, "free and in use");
    FINDS(s->pages[0].requested_bytes = 99, s->pages[0].requested_bytes = 100, "the pages say");
    FINDS(p->stats.active_bytes -= PAGE, p->stats.active_bytes += PAGE, "the pages say");
    FINDS(p->stats.reserved_bytes += 1, p->stats.reserved_bytes -= 1, "the pages say");
    FINDS(p->n_free--, p->n_free++, "the pages say");
    FINDS(p->open = NULL, p->open = s, "the list of them");
    FINDS(p->stats.peak_active_bytes = 0, p->stats.peak_active_bytes = 2 * PAGE, "peak");
#undef FINDS
    give(a, &one);
    give(a, &two);
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(pages_are_cut_from_slabs),
        tide_unit_test(trim_gives_free_slabs_back),
        tide_unit_test(sizes_are_checked),
        tide_unit_test(alignment_is_the_pages_own),
        tide_unit_test(the_backing_has_no_more),
        tide_unit_test(pages_of_a_device),
        tide_unit_test(a_slab_remembers_its_streams),
        tide_unit_test(stale_pages_are_off_limits),
        tide_unit_test(check_finds_damage),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
