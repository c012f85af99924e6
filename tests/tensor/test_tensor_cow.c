// SPDX-License-Identifier: MIT
//
// Copy-on-write seen from tensors: lazy clones, who sees whose writes, what is copied at once, guards.
#include <unistd.h>

#include "tests/tensor/tensor_test.h"

static tide_tensor *lazy(tide_tensor *t, const tide_tensor_spec *where, bool want_copied) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *out = NULL;
    bool copied = !want_copied;
    assert_tide_ok(tide_tensor_lazy_clone(t, where, &out, &copied, &err), &err);
    assert_true(copied == want_copied);
    return out;
}

static const int32_t *ints(const tide_tensor *t) { return tide_tensor_const_data(t); }
static const char *state_of(const tide_tensor *t) {
    return tide_block_state_name(tide_block_get_state(tide_tensor_storage(t)->block));
}

// ---- sharing ----

// PT-18: both become copy-on-write, no byte is copied, nothing more is reserved: at 1 KiB as at 1 GiB.
static void lazy_clone_copies_nothing_PT_18(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    uint64_t host_calls[2] = {0};
    static const int64_t sizes[2] = {1024, INT64_C(1) << 30};
    for (int i = 0; i < 2; i++) {
        const tide_tensor_spec spec = spec_of(&b, TIDE_U8, 1, &sizes[i]);
        tide_tensor *t = make(&spec); // never touched: the system gives no pages for it
        const tide_meter_kind before = bench_total(&b);
        const uint64_t n_copies = tide_block_n_copies();
        tide_host_stats h0, h1;
        tide_host_get_stats(&h0);
        tide_tensor *clone = lazy(t, NULL, false);
        tide_host_get_stats(&h1);
        host_calls[i] = h1.n_allocs - h0.n_allocs;
        assert_true(bench_n_allocs(&b) == before.n_allocs && bench_live_bytes(&b) == before.live_bytes);
        assert_true(tide_block_n_copies() == n_copies);
        assert_true(tide_tensor_is_cow(t) && tide_tensor_is_cow(clone));
        assert_ptr_equal(tide_tensor_const_data(clone), tide_tensor_const_data(t));
        tide_tensor_unref(t);
        tide_tensor_unref(clone);
    }
    assert_true(host_calls[0] == host_calls[1] && host_calls[0] <= 3); // object, block, what the two share
    bench_close(&b);
}

// PT-19, PT-20: three owners that write in turn make two copies; each keeps its own bytes; the last takes the old ones.
static void three_owners_PT_19_PT_20(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_tensor *t[3] = {make_counting(&b, TIDE_I32, 1, DIMS(100))};
    const void *old = tide_tensor_const_data(t[0]);
    assert_string_equal(state_of(t[0]), "normal");
    t[1] = lazy(t[0], NULL, false);
    t[2] = lazy(t[1], NULL, false);
    for (int i = 0; i < 3; i++) assert_string_equal(state_of(t[i]), "shared");
    const uint64_t before = tide_block_n_copies();
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) assert_int_equal(ints(t[k])[7], k < i ? -k - 1 : 7); // reading keeps sharing
        assert_true(tide_tensor_is_cow(t[i]));
        ((int32_t *)tide_tensor_data(t[i]))[7] = -i - 1;
        assert_string_equal(state_of(t[i]), "materialized");
        assert_false(tide_tensor_is_cow(t[i]));
    }
    assert_true(tide_block_n_copies() - before == 2);
    assert_ptr_equal(tide_tensor_const_data(t[2]), old);
    assert_true(bench_n_allocs(&b) == 3);
    for (int i = 0; i < 3; i++) {
        const void *data = tide_tensor_const_data(t[i]);
        assert_ptr_equal(tide_tensor_data(t[i]), data); // later accesses are ordinary
        assert_int_equal(ints(t[i])[7], -i - 1);
        assert_int_equal(ints(t[i])[99], 99);
        tide_tensor_unref(t[i]);
    }
    assert_true(tide_block_n_copies() - before == 2);
    bench_close(&b);
}

// PT-6: reading never copies, writing may: the counter says so.
static void reading_never_copies_PT_6(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_I32, 1, DIMS(10)), *clone = lazy(t, NULL, false);
    const uint64_t before = tide_block_n_copies();
    const void *data;
    for (int i = 0; i < 100; i++) {
        assert_tide_ok(tide_tensor_read(t, &data, &err), &err);
        assert_tide_ok(tide_tensor_read(clone, &data, &err), &err);
        assert_ptr_equal(tide_tensor_const_data(clone), data);
    }
    assert_true(tide_block_n_copies() == before);
    void *own;
    for (int i = 0; i < 100; i++) assert_tide_ok(tide_tensor_write(clone, &own, &err), &err);
    assert_ptr_not_equal(own, data);
    assert_true(tide_block_n_copies() == before + 1); // the first write only
    tide_tensor_unref(t);
    tide_tensor_unref(clone);
    bench_close(&b);
}

// PT-3: alias for a view and for a lazy clone; no more after a write; never for a clone.
static void aliases_PT_3(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_I32, 2, DIMS(4, 4)), *view = NULL, *clone = NULL;
    assert_int_equal(tide_storage_use_count(tide_tensor_storage(t)), 1);
    assert_true(tide_storage_is_unique(tide_tensor_storage(t)));
    assert_tide_ok(tide_tensor_slice(t, 0, 1, 2, 1, &view, &err), &err);
    assert_false(tide_storage_is_unique(tide_tensor_storage(t)));
    const tide_tensor_spec where = spec_of(&b, TIDE_I32, 0, NULL);
    assert_tide_ok(tide_tensor_clone(t, &where, &clone, &err), &err);
    tide_tensor *twin = lazy(t, NULL, false);
    assert_true(tide_tensor_is_alias(t, t) && tide_tensor_is_alias(t, view) && tide_tensor_is_alias(view, t));
    assert_true(tide_tensor_is_alias(t, twin) && tide_tensor_is_alias(view, twin));
    assert_false(tide_tensor_is_alias(t, clone));
    assert_non_null(tide_tensor_data(twin));
    assert_false(tide_tensor_is_alias(t, twin) || tide_tensor_is_alias(view, twin));
    assert_true(tide_tensor_is_alias(t, view));
    tide_tensor_reset(view);
    assert_false(tide_tensor_is_alias(t, view));
    tide_tensor_unref(t);
    tide_tensor_unref(view);
    tide_tensor_unref(clone);
    tide_tensor_unref(twin);
    bench_close(&b);
}

// A lazy clone of a view keeps shape, strides and offset. A tensor that is written leaves the shared block together
// with all its views.
static void lazy_clones_of_views(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_I32, 2, DIMS(4, 6)), *column = NULL;
    assert_tide_ok(tide_tensor_slice(t, 1, 2, 3, 1, &column, &err), &err);
    tide_tensor *twin = lazy(column, NULL, false);
    assert_true(tide_shape_equal(tide_tensor_shape(twin), tide_tensor_shape(column)));
    assert_int_equal(tide_tensor_strides(twin)[0], 6);
    assert_int_equal(tide_tensor_offset_bytes(twin), 8);
    assert_false(tide_tensor_is_contiguous(twin));
    ((int32_t *)tide_tensor_data(t))[2] = 222; // the base parts; its view sees the write, the clone does not
    assert_int_equal(ints(column)[0], 222);
    assert_int_equal(ints(twin)[0], 2);
    assert_int_equal(ints(twin)[6 * 3], 20);
    assert_true(tide_tensor_is_alias(t, column));
    ((int32_t *)tide_tensor_data(twin))[6] = 888;
    assert_int_equal(ints(column)[6], 8);
    tide_tensor_unref(t);
    tide_tensor_unref(column);
    tide_tensor_unref(twin);
    bench_close(&b);
}

// `where` that sharing cannot give is a copy at once; what it can give is shared.
static void lazy_clones_elsewhere(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_tensor *t = make_counting(&b, TIDE_I32, 1, DIMS(10));
    tide_tensor_spec where = spec_of(&b, TIDE_I32, 0, NULL);
    tide_tensor *twin = lazy(t, &where, false);
    tide_tensor_unref(twin);
    where.kind = TIDE_KIND_PERSISTENT;
    twin = lazy(t, &where, true);
    assert_int_equal(tide_tensor_kind(twin), TIDE_KIND_PERSISTENT);
    assert_int_equal(ints(twin)[9], 9);
    assert_false(tide_tensor_is_alias(t, twin));
    tide_tensor_unref(twin);
    where.kind = TIDE_KIND_WORKSPACE;
    where.align_bytes = (size_t)1 << 20;
    twin = lazy(t, &where, (uintptr_t)tide_tensor_const_data(t) % where.align_bytes != 0);
    assert_int_equal((uintptr_t)tide_tensor_const_data(twin) % where.align_bytes, 0);
    tide_tensor_unref(twin);
    tide_tensor_unref(t);
    // Without elements there is nothing to share or to copy.
    const tide_tensor_spec none = spec_of(&b, TIDE_I32, 2, DIMS(0, 3));
    t = make(&none);
    twin = lazy(t, NULL, false);
    assert_true(tide_shape_equal(tide_tensor_shape(twin), &none.shape));
    tide_tensor_unref(twin);
    tide_tensor_unref(t);
    bench_close(&b);
}

// ---- what is not simple ----

/// The clone was made now, has the same elements, and neither sees the other's writes.
static void assert_copied_out(tide_tensor *t, const tide_tensor_spec *where) {
    tide_tensor *twin = lazy(t, where, true);
    assert_false(tide_tensor_is_cow(t) || tide_tensor_is_cow(twin));
    assert_false(tide_tensor_is_alias(t, twin));
    const size_t n = tide_tensor_size_bytes(t);
    assert_memory_equal(tide_tensor_const_data(twin), tide_tensor_const_data(t), n);
    memset(tide_tensor_data(twin), 0x77, n);
    assert_int_equal(((const unsigned char *)tide_tensor_const_data(t))[1], 1);
    tide_tensor_unref(twin);
}

static void theirs_released(void *context) { ++*(int *)context; }

// PT-17, PT-21: mapped, arena, foreign and fixed memory takes the fallback; the content is right.
static void fallbacks_PT_17_PT_21(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape shape = tide_shape_make(1, DIMS(200));
    const tide_tensor_spec where = spec_of(&b, TIDE_U8, 0, NULL);
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)i;
    tide_tensor *t = NULL;

    char path[] = "/tmp/tide-cow-XXXXXX"; // a mapping
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    close(fd);
    tide_block *block = NULL;
    assert_tide_ok(tide_block_map_file(path, 0, 0, TIDE_KIND_PERSISTENT, &block, &err), &err);
    unlink(path);
    tide_storage s = tide_storage_of_block(block);
    tide_block_unref(block);
    assert_tide_ok(tide_tensor_create_on(&s, 0, TIDE_U8, &shape, &t, &err), &err);
    tide_storage_deinit(&s);
    assert_copied_out(t, &where);
    void *unused;
    assert_tide_status(tide_tensor_write(t, &unused, &err), TIDE_ERR_BUSY); // a mapping is read-only
    tide_tensor_unref(t);

    tide_allocator *arena = NULL; // an arena
    tide_registry *registry = NULL;
    assert_tide_ok(tide_arena_create(b.a, 4096, 0, &arena, &err), &err);
    assert_tide_ok(tide_registry_create(&registry, &err), &err);
    assert_tide_ok(tide_registry_add(registry, TIDE_KIND_WORKSPACE, arena, 0, &err), &err);
    tide_tensor_spec inside = spec_of(&b, TIDE_U8, 1, DIMS(200));
    inside.registry = registry;
    t = make(&inside);
    memcpy(tide_tensor_data(t), bytes, 200);
    assert_copied_out(t, &where);
    tide_tensor_unref(t);
    tide_registry_destroy(registry);
    tide_allocator_unref(arena);

    int n_released = 0; // a foreign buffer with an owner of its own
    tide_data_ptr theirs = tide_data_ptr_make(bytes, &n_released, theirs_released, TIDE_CPU);
    assert_tide_ok(tide_tensor_create_unbound(TIDE_U8, &shape, TIDE_CPU, &t, &err), &err);
    assert_tide_ok(tide_tensor_bind_external(t, &theirs, sizeof bytes, TIDE_KIND_DEFAULT, "theirs", &err), &err);
    assert_copied_out(t, &where);
    assert_copied_out(t, NULL); // no allocator gave it: from the registry of the process
    tide_tensor_unref(t);
    assert_int_equal(n_released, 1);

    t = make_counting(&b, TIDE_U8, 1, DIMS(200)); // its address is fixed
    assert_tide_ok(tide_block_fix(tide_tensor_storage(t)->block, &err), &err);
    assert_copied_out(t, NULL);
    tide_tensor_unref(t);

    t = make_counting(&b, TIDE_U8, 1, DIMS(200)); // and one that is simple
    tide_tensor *twin = lazy(t, NULL, false);
    assert_tide_ok(tide_block_materialize(tide_tensor_storage(twin)->block, &err), &err);
    assert_false(tide_tensor_is_cow(twin) || tide_tensor_is_alias(t, twin));
    tide_tensor_unref(twin);
    tide_tensor_unref(t);
    bench_close(&b);
}

// planned slices of one buffer: a chain of reshape and slice stays over its slot, a lazy clone copies out of it
// and keeps its content when the slot is used again.
static void planned_slices_X_6(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_storage buffer = storage_of(&b, 4096), slot;
    assert_tide_ok(tide_block_fix(buffer.block, &err), &err);
    assert_tide_ok(tide_storage_slice(&buffer, 1024, 1024, &slot, &err), &err);
    const tide_shape shape = tide_shape_make(2, DIMS(16, 16)), cube = tide_shape_make(3, DIMS(4, 4, 16));
    tide_tensor *planned = NULL, *reshaped = NULL, *sliced = NULL, *next = NULL;
    assert_tide_ok(tide_tensor_create_on(&slot, 0, TIDE_I32, &shape, &planned, &err), &err);
    for (int i = 0; i < 256; i++) ((int32_t *)tide_tensor_data(planned))[i] = i;
    assert_tide_ok(tide_tensor_view(planned, &cube, &reshaped, &err), &err);
    assert_tide_ok(tide_tensor_slice(reshaped, 0, 1, 2, 1, &sliced, &err), &err);
    assert_ptr_equal(tide_tensor_data(sliced), (char *)tide_storage_data(&buffer) + 1024 + 64 * 4);
    assert_int_equal(tide_tensor_capacity_bytes(sliced), 1024 - 256); // the slot's end, not the buffer's

    const tide_tensor_spec where = spec_of(&b, TIDE_I32, 0, NULL);
    tide_tensor *kept = lazy(sliced, &where, true), *whole = lazy(planned, NULL, true);
    assert_ptr_not_equal(tide_tensor_storage(kept)->block, buffer.block);
    assert_ptr_not_equal(tide_tensor_storage(whole)->block, buffer.block);
    assert_false(tide_tensor_is_cow(planned));
    // The slot belongs to the next tensor now.
    assert_tide_ok(tide_tensor_create_on(&slot, 0, TIDE_I32, &shape, &next, &err), &err);
    memset(tide_tensor_data(next), 0xFF, 1024);
    for (int i = 0; i < 64; i++) assert_int_equal(ints(kept)[i], 64 + i);
    for (int i = 0; i < 256; i++) assert_int_equal(ints(whole)[i], i);
    assert_int_equal(ints(sliced)[0], -1);
    tide_tensor *all[] = {planned, reshaped, sliced, next, kept, whole};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tide_tensor_unref(all[i]);
    tide_storage_deinit(&slot);
    tide_storage_deinit(&buffer);
    bench_close(&b);
}

// ---- guards ----

// PT-8 through tensors: refused access is NULL with the reason in the log, or a status.
static void guards_reach_tensors(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_I32, 1, DIMS(4)), *clone = NULL;
    tide_block *block = tide_tensor_storage(t)->block;
    last_line line = {0};
    tide_log_set(keep_line, &line, TIDE_LOG_WARN);
    tide_block_set_guard(block, TIDE_BLOCK_FAIL_WRITE, 0);
    assert_null(tide_tensor_data(t));
    assert_text_has(line.text, "'t' cannot be written");
    assert_non_null(tide_tensor_const_data(t));
    const tide_shape more = tide_shape_make(1, DIMS(64));
    assert_tide_status(tide_tensor_resize(t, &more, NULL, &err), TIDE_ERR_BUSY); // the tail cannot be zeroed
    assert_int_equal(tide_tensor_size_bytes(t), 16);
    tide_block_set_guard(block, TIDE_BLOCK_FAIL_ACCESS, TIDE_BLOCK_FAIL_WRITE);
    assert_null(tide_tensor_const_data(t));
    assert_text_has(line.text, "'t' cannot be read");
    assert_int_equal(line.n, 2);
    const tide_tensor_spec where = spec_of(&b, TIDE_I32, 0, NULL);
    assert_tide_status(tide_tensor_clone(t, &where, &clone, &err), TIDE_ERR_BUSY);
    assert_tide_status(tide_tensor_lazy_clone(t, NULL, &clone, NULL, &err), TIDE_ERR_BUSY);
    assert_null(clone);
    assert_true(bench_n_allocs(&b) == 2 && bench_total(&b).live_bytes == 256); // the copy that came to nothing is back
    tide_block_set_guard(block, TIDE_BLOCK_WARN_WRITE, TIDE_BLOCK_FAIL_ACCESS);
    assert_non_null(tide_tensor_data(t));
    assert_non_null(tide_tensor_data(t));
    assert_int_equal(line.n, 3);
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    tide_tensor_unref(t);
    bench_close(&b);
}

// A write inside a parallel loop that would copy is refused; data is NULL then, and the tensor is as it was (PT-22).
static void no_copy_in_parallel_loops(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_tensor *t = make_counting(&b, TIDE_I32, 1, DIMS(4)), *twin = lazy(t, NULL, false);
    tide_parallel_enter();
    void *data;
    assert_tide_status(tide_tensor_write(t, &data, NULL), TIDE_ERR_BUSY);
    assert_null(data);
    tide_parallel_leave();
    assert_true(tide_tensor_is_cow(t) && tide_tensor_is_alias(t, twin));
    assert_non_null(tide_tensor_data(t));
    tide_tensor_unref(t);
    tide_tensor_unref(twin);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(lazy_clone_copies_nothing_PT_18),
        tide_unit_test(three_owners_PT_19_PT_20),
        tide_unit_test(reading_never_copies_PT_6),
        tide_unit_test(aliases_PT_3),
        tide_unit_test(lazy_clones_of_views),
        tide_unit_test(lazy_clones_elsewhere),
        tide_unit_test(fallbacks_PT_17_PT_21),
        tide_unit_test(planned_slices_X_6),
        tide_unit_test(guards_reach_tensors),
        tide_unit_test(no_copy_in_parallel_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
