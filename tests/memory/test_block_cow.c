// SPDX-License-Identifier: MIT
//
// Copy-on-write: which block shares, copies or takes over its bytes, and that no block sees another one's bytes.
// Threads are in test_block_cow_threads.c.
#include <unistd.h>

#include "cow_test.h"

static void assert_state(const tide_block *b, const char *what, const char *want) {
    const char *got = tide_block_state_name(tide_block_get_state(b));
    print_message("    %-24s %s\n", what, got);
    assert_string_equal(got, want);
}

// ---- the calls ----

// PT-17: lazy clone, has-simple-pointer, is-CoW and materialise on plain, shared and foreign memory. PT-3: alias.
static void calls_on_each_kind_of_block(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *plain = make_block(a, "plain"), *foreign = NULL, *none = plain;
    char bytes[N_BYTES];
    assert_tide_ok(tide_block_borrow(bytes, N_BYTES, TIDE_CPU, TIDE_KIND_DEFAULT, NULL, NULL, NULL, &foreign, &err),
                   &err);

    // plain
    assert_true(tide_block_is_simple(plain));
    assert_false(tide_block_is_cow(plain));
    assert_tide_ok(tide_block_materialize(plain, &err), &err);
    assert_int_equal(m.n_allocs, 1);
    assert_state(plain, "plain, materialised", "normal"); // there was nothing to do
    assert_true(tide_block_is_alias(plain, plain));

    // foreign
    assert_false(tide_block_is_simple(foreign));
    assert_false(tide_block_is_cow(foreign));
    assert_tide_ok(tide_block_lazy_clone(foreign, 0, &none, &err), &err);
    assert_null(none);
    assert_false(tide_block_is_cow(foreign));
    assert_tide_ok(tide_block_materialize(foreign, &err), &err);
    assert_ptr_equal(tide_block_address(foreign), bytes);

    // shared
    tide_block *twin = lazy_clone(plain);
    assert_true(tide_block_is_cow(plain) && tide_block_is_cow(twin));
    assert_true(tide_block_is_simple(plain) && tide_block_is_simple(twin));
    assert_true(tide_block_is_alias(plain, twin) && tide_block_is_alias(twin, plain));
    assert_false(tide_block_is_alias(plain, foreign));
    assert_false(tide_block_is_alias(foreign, NULL));
    assert_ptr_equal(tide_block_address(plain), tide_block_address(twin));
    assert_int_equal(twin->id, plain->id);
    assert_string_equal(twin->tag, "plain");
    assert_int_equal(twin->refs, 1);
    assert_tide_ok(tide_block_materialize(twin, &err), &err);
    assert_false(tide_block_is_alias(plain, twin));
    assert_ptr_not_equal(tide_block_address(plain), tide_block_address(twin));
    assert_true(twin->id > plain->id && twin->mem.block_id == twin->id);
    assert_int_equal(m.asked.block_id, twin->id);
    assert_int_equal(m.asked.align_bytes, 256);
    assert_int_equal(m.asked.size_bytes, N_BYTES);
    assert_string_equal(m.asked_tag, "plain");
    tide_block_unref(plain);
    tide_block_unref(twin);
    tide_block_unref(foreign);
    assert_int_equal(m.n_releases, 2);
    tide_allocator_unref(a);
}

// PT-18: the original becomes copy-on-write too, both share one context, no byte is copied, whatever the size: the same
// two host allocations at 1 KiB and at 1 GiB, and the allocator's numbers stay as they are.
static void lazy_clone_costs_the_same_at_every_size(void **state) {
    (void)state;
    static const size_t sizes[] = {(size_t)1 << 10, (size_t)1 << 30};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    for (int i = 0; i < 2; i++) {
        tide_block *b = NULL;
        // Never touched: the system need not have the gigabyte.
        const tide_status st = tide_block_create(a, sizes[i], 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err);
        assert_tide_ok(st, &err);
        tide_host_stats before, after;
        const uint64_t copies = tide_block_n_copies();
        const tide_allocator_stats was = stats_of(a);
        tide_host_get_stats(&before);
        tide_block *twin = lazy_clone(b);
        tide_host_get_stats(&after);
        const tide_allocator_stats is = stats_of(a);
        assert_int_equal(after.n_allocs - before.n_allocs, 2); // the block's record and the context
        assert_true(after.live_bytes - before.live_bytes < 1024);
        assert_memory_equal(&is, &was, sizeof is);
        assert_true(tide_block_n_copies() == copies);
        assert_ptr_equal(b->cow, twin->cow);
        assert_true(tide_block_is_cow(b) && tide_block_is_cow(twin));
        tide_host_get_stats(&before);
        tide_block *third = lazy_clone(twin);
        tide_host_get_stats(&after);
        assert_int_equal(after.n_allocs - before.n_allocs, 1); // the context is there
        assert_ptr_equal(third->cow, b->cow);
        tide_block_unref(b);
        tide_block_unref(third);
        assert_true(stats_of(a).reserved_bytes == was.reserved_bytes);
        tide_block_unref(twin);
        assert_int_equal(stats_of(a).reserved_bytes, 0);
    }
    tide_allocator_unref(a);
}

// PT-19: three owners write in turn: two copies; the last one keeps the memory. Each sees its own bytes only.
static void three_owners_make_two_copies(void **state) {
    (void)state;
    // In every order in which three can write.
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int o = 0; o < 6; o++) {
        static mock m;
        tide_allocator *a = make_mock(&m, TIDE_CPU);
        tide_block *owners[3];
        owners[0] = make_block(a, NULL);
        fill_block(owners[0], 7);
        owners[1] = lazy_clone(owners[0]);
        owners[2] = lazy_clone(owners[1]);
        const void *const old = tide_block_address(owners[0]);
        const uint64_t copies = tide_block_n_copies(), old_id = owners[0]->id;
        for (int i = 0; i < 3; i++) {
            for (int k = i; k < 3; k++) assert_filled(owners[orders[o][k]], 7);
            fill_block(owners[orders[o][i]], 10 + i);
            for (int k = 0; k <= i; k++) assert_filled(owners[orders[o][k]], 10 + k);
        }
        assert_true(tide_block_n_copies() - copies == 2);
        assert_int_equal(m.n_allocs, 3);
        assert_ptr_equal(tide_block_address(owners[orders[o][2]]), old); // taken, not copied
        assert_true(owners[orders[o][2]]->id == old_id);
        for (int i = 0; i < 3; i++) tide_block_unref(owners[i]);
        assert_int_equal(m.n_releases, 3);
        tide_allocator_unref(a);
        assert_string_equal(m.order, "aaarrrd");
    }
}

// PT-20: normal -> shared -> materialised, later accesses ordinary, and round again.
static void states_follow_each_other(void **state) {
    (void)state;
    static mock m;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = make_block(a, NULL);
    assert_state(b, "made", "normal");
    fill_block(b, 1);
    assert_state(b, "written", "normal");
    tide_block *twin = lazy_clone(b);
    assert_state(b, "lazily cloned", "shared");
    assert_state(twin, "the clone", "shared");
    assert_filled(twin, 1);
    assert_state(twin, "the clone, read", "shared");
    fill_block(twin, 2);
    assert_state(twin, "the clone, written", "materialized");
    assert_state(b, "the original", "shared");
    fill_block(b, 3);
    assert_state(b, "the original, written", "materialized");
    assert_int_equal(b->flags, 0);
    assert_null(b->cow);
    const uint64_t copies = tide_block_n_copies();
    fill_block(b, 4);
    fill_block(twin, 5);
    assert_true(tide_block_n_copies() == copies);
    tide_block *again = lazy_clone(b);
    assert_state(b, "cloned again", "shared");
    tide_block_unref(again);
    tide_block_unref(b);
    tide_block_unref(twin);
    tide_allocator_unref(a);
}

// ---- the end of the memory ----

// The last owner gives the memory back, once, under its own tag: the first block is gone by then, and so is its text.
static void last_owner_releases_once(void **state) {
    (void)state;
    static mock m;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    char tag[8] = "first";
    tide_block *b = make_block(a, tag);
    fill_block(b, 1);
    const uint64_t id = b->id;
    tide_block *second = lazy_clone(b), *third = lazy_clone(second);
    void *const data = m.given;
    tide_allocator_unref(a);
    tide_block_unref(b);
    tide_block_unref(third);
    assert_string_equal(m.order, "a");
    assert_filled(second, 1);
    tide_block_unref(second);
    assert_string_equal(m.order, "ard");
    assert_ptr_equal(m.released.data, data);
    assert_true(m.released.block_id == id);
    assert_string_equal(m.released_tag, "first");
}

// The others are gone: the next write takes the memory as it is.
static void sole_owner_writes_without_a_copy(void **state) {
    (void)state;
    static mock m;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = make_block(a, NULL), *twin = lazy_clone(b);
    tide_block_unref(b);
    m.fail_after = 0; // no copy could be made
    fill_block(twin, 3);
    assert_int_equal(m.n_allocs, 1);
    assert_filled(twin, 3);
    assert_false(tide_block_is_cow(twin));
    tide_block_unref(twin);
    tide_allocator_unref(a);
}

// ---- what cannot be shared ----

// What a caller does when there is no lazy clone.
static tide_block *deep_copy(tide_allocator *a, const tide_block *b) {
    tide_error err = TIDE_ERROR_INIT;
    tide_block *copy = NULL;
    const void *from = NULL;
    void *to = NULL;
    assert_tide_ok(
        tide_block_create(a, b->mem.requested_bytes, b->align_bytes, b->kind, b->last_stream, b->tag, &copy, &err),
        &err);
    assert_tide_ok(tide_block_read(b, &from, &err), &err);
    assert_tide_ok(tide_block_write(copy, &to, &err), &err);
    memcpy(to, from, b->mem.requested_bytes);
    return copy;
}

// PT-21: context and data differ (mapping, arena span, foreign buffer), or the address is fixed: a lazy clone is
// refused without any change; the caller's copy has the right bytes.
static void not_simple_falls_back_to_a_copy(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    char path[] = "/tmp/tide_cow_XXXXXX", bytes[N_BYTES], context;
    memset(bytes, 5, sizeof bytes);
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    tide_allocator *cpu = NULL, *arena = NULL, *strange = make_mock(&m, TIDE_CPU);
    m.has_context = true;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_arena_create(cpu, 4096, 0, &arena, &err), &err);
    tide_block *blocks[5] = {NULL};
    assert_tide_ok(tide_block_map_file(path, 0, 0, TIDE_KIND_DEFAULT, &blocks[0], &err), &err);
    unlink(path);
    assert_tide_ok(
        tide_block_borrow(bytes, N_BYTES, TIDE_CPU, TIDE_KIND_DEFAULT, NULL, &context, NULL, &blocks[1], &err), &err);
    blocks[2] = make_block(arena, NULL);
    blocks[3] = make_block(strange, NULL);
    blocks[4] = make_block(cpu, NULL);
    assert_tide_ok(tide_block_fix(blocks[4], &err), &err);
    for (int i = 0; i < 5; i++) {
        if (i >= 2) fill_block(blocks[i], 5);
        tide_block *twin = blocks[i];
        assert_false(tide_block_is_simple(blocks[i]));
        assert_tide_ok(tide_block_lazy_clone(blocks[i], 0, &twin, &err), &err);
        assert_null(twin);
        assert_false(tide_block_is_cow(blocks[i]));
        twin = deep_copy(cpu, blocks[i]);
        assert_filled(twin, 5);
        fill_block(twin, 6);
        assert_filled(blocks[i], 5);
        tide_block_unref(twin);
        tide_block_unref(blocks[i]);
    }
    tide_allocator_unref(arena);
    tide_allocator_unref(strange);
    tide_allocator_unref(cpu);
}

// A holder of the address calls tide_block_fix; it is refused while a write could move the block.
static void fixed_blocks_stay_where_they_are(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = make_block(a, "held"), *twin = lazy_clone(b);
    assert_tide_status(tide_block_fix(b, &err), TIDE_ERR_BUSY);
    assert_text_has(err.msg, "'held'");
    assert_false(b->fixed);
    tide_block_unref(twin);
    const void *const address = tide_block_address(b);
    assert_tide_ok(tide_block_fix(b, &err), &err);
    fill_block(b, 1);
    assert_ptr_equal(tide_block_address(b), address);
    assert_tide_ok(tide_block_fix(b, &err), &err);
    tide_block_unref(b);
    tide_allocator_unref(a);
}

// ---- failures ----

// No host memory, or none from the allocator: the right status each time, blocks as they were, nothing leaks.
static void failures_change_nothing(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = make_block(a, "big"), *twin = NULL;
    fill_block(b, 1);
    int n_failed = 0;
    for (;; n_failed++) {
        tide_host_fail_after(n_failed);
        const tide_status st = tide_block_lazy_clone(b, 0, &twin, &err);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        assert_null(twin);
        assert_int_equal(b->flags, 0);
        assert_null(b->cow);
        assert_filled(b, 1);
    }
    tide_host_fail_after(-1);
    assert_int_equal(n_failed, 2);

    void *w = NULL;
    const void *const data = tide_block_address(b);
    for (int i = 0; i < 3; i++) {
        m.fail_after = 0;
        const uint64_t copies = tide_block_n_copies(), id = twin->id;
        assert_tide_status(tide_block_write(twin, &w, &err), TIDE_ERR_NOMEM);
        assert_null(w);
        assert_text_has(err.msg, "'big'");
        assert_text_has(err.msg, "mock has no 100 B");
        assert_true(tide_block_n_copies() == copies && twin->id == id);
        assert_state(twin, "after a failed copy", "shared");
        assert_true(tide_block_is_alias(b, twin));
        assert_ptr_equal(tide_block_address(twin), data);
    }
    fill_block(twin, 2); // now there is memory
    assert_filled(b, 1);
    assert_filled(twin, 2);
    tide_block_unref(b);
    tide_block_unref(twin);
    tide_allocator_unref(a);
    assert_int_equal(m.n_allocs, m.n_releases);
}

// ---- devices ----

// PT-22: on a device a lazy clone is made on the block's own stream; its copy is the device's, on that stream, and is
// there when the write returns.
static void device_clones_keep_to_one_stream(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device fake1 = fake_at(1);
    tide_stream_id first, second;
    assert_tide_ok(tide_stream_create(fake1, &first, &err), &err);
    assert_tide_ok(tide_stream_create(fake1, &second, &err), &err);
    tide_allocator *a = make_mock(&m, fake1);
    tide_block *b = NULL, *twin = NULL;
    assert_tide_ok(tide_block_create(a, N_BYTES, 0, TIDE_KIND_DEFAULT, first, "w", &b, &err), &err);
    void *p = NULL;
    assert_tide_ok(tide_block_write(b, &p, &err), &err);
    assert_tide_ok(tide_device_fill(fake1, first, p, 9, N_BYTES, &err), &err);
    assert_tide_status(tide_block_lazy_clone(b, second, &twin, &err), TIDE_ERR_INVALID);
    assert_null(twin);
    assert_false(tide_block_is_cow(b));
    char word[32];
    snprintf(word, sizeof word, "stream %" PRIu64, second);
    assert_text_has(err.msg, word);
    snprintf(word, sizeof word, "stream %" PRIu64, first);
    assert_text_has(err.msg, word);
    tide_block_record_use(b, second); // work moved there: that is its stream now
    assert_tide_status(tide_block_lazy_clone(b, first, &twin, &err), TIDE_ERR_INVALID);
    assert_tide_ok(tide_block_lazy_clone(b, second, &twin, &err), &err);
    assert_int_equal(fake.n_copies[TIDE_COPY_WITHIN_DEVICE], 0);

    // A copy that the device refuses leaves the clone shared, and its fresh memory goes back.
    fake_fail(FAKE_COPY, 0, -1);
    assert_tide_status(tide_block_write(twin, &p, &err), TIDE_ERR_BACKEND);
    assert_state(twin, "after a failed copy", "shared");
    assert_int_equal(m.n_releases, 1);
    fake_fail(FAKE_COPY, 0, 0);
    assert_tide_ok(tide_block_write(twin, &p, &err), &err);
    assert_int_equal(fake.n_copies[TIDE_COPY_WITHIN_DEVICE], 1);
    assert_int_equal(fake.copy_stream, second);
    assert_int_equal(fake_calls(FAKE_STREAM_SYNC), 1);
    assert_int_equal(m.asked.stream, second);
    unsigned char want[N_BYTES];
    memset(want, 9, sizeof want);
    assert_memory_equal(fake_peek(1, p, N_BYTES), want, N_BYTES);
    assert_tide_ok(tide_device_fill(fake1, second, p, 1, N_BYTES, &err), &err);
    assert_memory_equal(fake_peek(1, tide_block_address(b), N_BYTES), want, N_BYTES);
    tide_block_unref(b);
    tide_block_unref(twin);
    tide_allocator_unref(a);
    tide_stream_destroy(fake1, first);
    tide_stream_destroy(fake1, second);
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(calls_on_each_kind_of_block),     tide_unit_test(lazy_clone_costs_the_same_at_every_size),
        tide_unit_test(three_owners_make_two_copies),    tide_unit_test(states_follow_each_other),
        tide_unit_test(last_owner_releases_once),        tide_unit_test(sole_owner_writes_without_a_copy),
        tide_unit_test(not_simple_falls_back_to_a_copy), tide_unit_test(fixed_blocks_stay_where_they_are),
        tide_unit_test(failures_change_nothing),         tide_unit_test(device_clones_keep_to_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
