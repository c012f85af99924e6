// SPDX-License-Identifier: MIT
//
// stream_caching's sizes: what a block takes, which piece it is cut from, what merges with what, alignment (rule 6).
#include "stream_caching_test.h"

static void finish(tide_allocator *a) {
    tide_allocator_unref(a);
    fake_teardown();
}

static tide_memory take_aligned(tide_allocator *a, size_t size_bytes, size_t align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = size_bytes, .align_bytes = align_bytes};
    tide_memory mem = {0};
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    assert_true((uintptr_t)mem.data % align_bytes == 0);
    assert_true(mem.reserved_bytes >= size_bytes);
    assert_sound(a);
    return mem;
}

static void rule_6_sizes_and_segments(void **state) {
    (void)state;
    static const struct {
        size_t size_bytes, block_bytes, segment_bytes;
    } rows[] = {
        {1, 512, 2 * MIB},
        {512, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {1 * MIB, 1 * MIB, 2 * MIB},
        {1 * MIB + 1, 1 * MIB + 512, 20 * MIB},
        {10 * MIB, 10 * MIB, 20 * MIB},
        {10 * MIB + 1, 10 * MIB + 512, 12 * MIB},
        {11 * MIB - 512, 11 * MIB - 512, 12 * MIB},
        {11 * MIB, 12 * MIB, 12 * MIB}, // a rest of up to 1 MiB is not cut off
        {64 * MIB, 64 * MIB, 64 * MIB},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_allocator *a = make_fake();
        const tide_memory mem = take_on(a, rows[i].size_bytes, 0);
        const tide_allocator_stats s = stats_of(a);
        if (mem.reserved_bytes != rows[i].block_bytes)
            fail_msg("%zu B take %zu, want %zu", rows[i].size_bytes, mem.reserved_bytes, rows[i].block_bytes);
        assert_true(s.reserved_bytes == rows[i].segment_bytes);
        assert_true(s.active_bytes == mem.reserved_bytes && s.cached_bytes == s.reserved_bytes - s.active_bytes);
        give_on(a, &mem, 0);
        assert_true(stats_of(a).largest_free_bytes == rows[i].segment_bytes);
        finish(a);
    }
}

static void rule_6_best_fit_lowest_address(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    // Holes of 4, 2, 3 and 2 KiB between blocks that stay.
    static const size_t sizes[] = {4, 1, 2, 1, 3, 1, 2, 1};
    tide_memory mem[8];
    for (size_t i = 0; i < 8; i++) mem[i] = take_on(a, sizes[i] * KIB, 0);
    for (size_t i = 0; i < 8; i += 2) give_on(a, &mem[i], 0);
    const tide_memory two = take_on(a, 2 * KIB, 0), three = take_on(a, 3 * KIB, 0), two_more = take_on(a, 1600, 0);
    assert_ptr_equal(two.data, mem[2].data);      // the lower one of the two that fit best
    assert_ptr_equal(three.data, mem[4].data);    // and not the one of 4 KiB before it
    assert_ptr_equal(two_more.data, mem[6].data); // 1600 are 2048
    const tide_memory one = take_on(a, 1 * KIB, 0);
    assert_ptr_equal(one.data, mem[0].data); // the one of 4 KiB is cut, before the long rest of the segment
    assert_true(stats_of(a).n_system == 1);
    finish(a);
}

static void rule_6_cut_and_merge(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const size_t segment = 2 * MIB;
    tide_memory mem[3];
    for (int i = 0; i < 3; i++) {
        mem[i] = take_on(a, 1000, 0);
        assert_ptr_equal(mem[i].data, at_offset(&mem[0], (size_t)i * KIB));
    }
    assert_true(stats_of(a).largest_free_bytes == segment - 3 * KIB);
    give_on(a, &mem[1], 0); // alone between two that are out
    assert_true(stats_of(a).largest_free_bytes == segment - 3 * KIB);
    give_on(a, &mem[2], 0); // joins both sides
    assert_true(stats_of(a).largest_free_bytes == segment - 1 * KIB);
    give_on(a, &mem[0], 0);
    assert_true(stats_of(a).largest_free_bytes == segment && stats_of(a).cached_bytes == segment);
    finish(a);
}

static void rule_6_a_pending_neighbour_does_not_merge(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory low = take_on(a, 1000, s), middle = take_on(a, 1000, s), high = take_on(a, MIB, s);
    use(a, &middle, t);
    give_on(a, &low, s);
    give_on(a, &middle, s);
    give_on(a, &high, s);
    assert_true(stats_of(a).cached_bytes == 2 * MIB - 1 * KIB);
    assert_true(stats_of(a).largest_free_bytes == 2 * MIB - 2 * KIB);
    fake_finish(t);
    const tide_memory all = take_on(a, 3000, s);
    assert_ptr_equal(all.data, low.data);
    give_on(a, &all, s);
    end_stream(s);
    end_stream(t);
    finish(a);
}

static void rule_6_a_large_rest_is_cut_above_one_mib(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_memory whole = take_on(a, 20 * MIB, 0);
    give_on(a, &whole, 0);
    const tide_memory kept = take_on(a, 19 * MIB, 0); // the rest is 1 MiB: kept
    assert_true(kept.reserved_bytes == 20 * MIB);
    give_on(a, &kept, 0);
    const tide_memory cut = take_on(a, 19 * MIB - 512, 0); // one step more: cut
    assert_true(cut.reserved_bytes == 19 * MIB - 512);
    assert_true(stats_of(a).largest_free_bytes == 1 * MIB + 512);
    give_on(a, &cut, 0);
    assert_true(stats_of(a).largest_free_bytes == 20 * MIB);
    finish(a);
}

static void rule_6_small_and_large_do_not_share(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_memory large = take_on(a, 2 * MIB, 0);
    give_on(a, &large, 0);
    const tide_memory small = take_on(a, 1000, 0); // 20 MiB lie idle, and must not be nibbled at
    assert_true(stats_of(a).reserved_bytes == 22 * MIB);
    give_on(a, &small, 0);
    finish(a);
}

static void alignment_is_honoured(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 700, 100 * KIB, 1 * MIB, 3 * MIB, 12 * MIB};
    tide_allocator *a = make_fake();
    tide_memory mem[6][13];
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 13; j++) mem[i][j] = take_aligned(a, sizes[i], (size_t)512 << j);
    }
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 13; j++) give_on(a, &mem[i][j], 0);
    }
    tide_allocator_trim(a);
    assert_true(stats_of(a).reserved_bytes == 0);
    // Beyond it is refused, in words.
    tide_error err = TIDE_ERROR_INIT;
    tide_memory none = {0};
    const tide_alloc_request req = {.size_bytes = 1, .align_bytes = 4 * MIB};
    assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "alignment 4194304");
    finish(a);
}

static void alignment_passes_by_what_lies_badly(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    const tide_memory wall = take_aligned(a, 512, 64 * KIB);
    const tide_memory hole = take_aligned(a, 128 * KIB, 512), other_wall = take_aligned(a, 64 * KIB, 512);
    assert_ptr_equal(hole.data, at_offset(&wall, 512)); // the front before the wall is shorter than both
    give_on(a, &hole, 0);
    const tide_memory moved = take_aligned(a, 128 * KIB, 64 * KIB); // as long as the hole, which begins badly
    assert_ptr_equal(moved.data, at_offset(&wall, 256 * KIB));
    const tide_memory inside = take_aligned(a, 64 * KIB, 64 * KIB); // with a front before it and a rest behind it
    assert_ptr_equal(inside.data, at_offset(&wall, 64 * KIB));
    give_on(a, &inside, 0);
    give_on(a, &moved, 0);
    give_on(a, &other_wall, 0);
    give_on(a, &wall, 0);
    assert_true(stats_of(a).largest_free_bytes == 2 * MIB);
    finish(a);
}

static void sizes_that_cannot_be(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 600, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX - 1};
    tide_allocator *a = make_fake();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_memory none = {0};
        const tide_alloc_request req = {.size_bytes = sizes[i], .align_bytes = 4096};
        assert_tide_status(tide_allocator_alloc(a, &req, &none, &err), TIDE_ERR_NOMEM);
        assert_null(none.data);
        assert_true(stats_of(a).n_failed == i + 1);
        assert_sound(a);
    }
    finish(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(rule_6_sizes_and_segments),
        tide_unit_test(rule_6_best_fit_lowest_address),
        tide_unit_test(rule_6_cut_and_merge),
        tide_unit_test(rule_6_a_pending_neighbour_does_not_merge),
        tide_unit_test(rule_6_a_large_rest_is_cut_above_one_mib),
        tide_unit_test(rule_6_small_and_large_do_not_share),
        tide_unit_test(alignment_is_honoured),
        tide_unit_test(alignment_passes_by_what_lies_badly),
        tide_unit_test(sizes_that_cannot_be),
    };
    return cmocka_run_group_tests_name("allocator stream_caching, sizes", tests, NULL, NULL);
}
