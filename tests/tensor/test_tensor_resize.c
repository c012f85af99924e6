// SPDX-License-Identifier: MIT
//
// Resize, binding of foreign memory, reset: what moves, what is zeroed, whom it leaves alone.
#include "tests/tensor/tensor_test.h"

static const unsigned char *bytes_of(const tide_tensor *t) { return tide_tensor_const_data(t); }

static void assert_bytes(const tide_tensor *t, size_t begin, size_t end, int (*want)(size_t)) {
    for (size_t i = begin; i < end; i++) {
        if (bytes_of(t)[i] != (unsigned char)want(i)) fail_msg("byte %zu is %d", i, bytes_of(t)[i]);
    }
}
static int counting(size_t i) { return (int)(i & 0xFF); }
static int zero(size_t i) {
    (void)i;
    return 0;
}

static void resize(tide_tensor *t, int64_t n, const tide_tensor_spec *where) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape shape = tide_shape_make(1, &n);
    assert_tide_ok(tide_tensor_resize(t, &shape, where, &err), &err);
    assert_true(tide_shape_equal(tide_tensor_shape(t), &shape));
    assert_true(tide_tensor_capacity_bytes(t) >= tide_tensor_size_bytes(t));
}

// ---- S28-11 ----

// S28-11, unique: within the capacity nothing moves, past it the old bytes come along; the tail is zero both times.
static void unique_storage_S28_11(void **state) {
    (void)state;
    bench b;
    bench_open_with(&b, true);
    tide_tensor *t = make_counting(&b, TIDE_U8, 1, DIMS(300)); // 512 B of room
    const void *data = tide_tensor_const_data(t);
    memset((unsigned char *)tide_tensor_data(t) + 300, 0xEE, 212); // what was there before
    resize(t, 512, NULL);
    assert_ptr_equal(tide_tensor_const_data(t), data);
    assert_bytes(t, 0, 300, counting);
    assert_bytes(t, 300, 512, zero);
    assert_true(bench_n_allocs(&b) == 1);
    resize(t, 513, NULL);
    assert_ptr_not_equal(tide_tensor_const_data(t), data);
    assert_bytes(t, 0, 300, counting);
    assert_bytes(t, 300, 513, zero);
    assert_int_equal(tide_tensor_capacity_bytes(t), 768);
    assert_true(bench_n_allocs(&b) == 2 && bench_live_bytes(&b) == 768); // the old block is gone
    const tide_block *block = tide_tensor_storage(t)->block;
    assert_int_equal(block->kind, TIDE_KIND_WORKSPACE); // as the old one was made
    assert_string_equal(block->tag, "t");
    resize(t, 10, NULL);
    resize(t, 0, NULL);
    assert_null(tide_tensor_const_data(t));
    assert_int_equal(tide_tensor_capacity_bytes(t), 768);
    assert_true(bench_n_allocs(&b) == 2);
    tide_tensor_unref(t);
    bench_close(&b);
}

// S28-11, shared: the others keep storage, address and bytes; also when there would be room, as it is not ours alone.
static void shared_storage_S28_11(void **state) {
    (void)state;
    bench b;
    bench_open_with(&b, true);
    tide_error err = TIDE_ERROR_INIT;
    tide_storage s = storage_of(&b, 512);
    const tide_shape half = tide_shape_make(1, DIMS(256));
    tide_tensor *low = NULL, *high = NULL;
    assert_tide_ok(tide_tensor_create_on(&s, 0, TIDE_U8, &half, &low, &err), &err);
    assert_tide_ok(tide_tensor_create_on(&s, 256, TIDE_U8, &half, &high, &err), &err);
    const void *high_data = tide_tensor_const_data(high);
    resize(low, 100, NULL); // nothing more is needed: still over the same storage
    assert_ptr_equal(tide_tensor_storage(low)->block, s.block);
    resize(low, 512, NULL); // would fit the capacity, and zero the other's bytes
    assert_ptr_not_equal(tide_tensor_storage(low)->block, s.block);
    assert_bytes(low, 0, 100, counting);
    assert_bytes(low, 100, 512, zero);
    assert_ptr_equal(tide_tensor_const_data(high), high_data);
    assert_ptr_equal(tide_tensor_storage(high)->block, s.block);
    assert_bytes(high, 0, 256, counting);
    for (int i = 0; i < 512; i++) assert_int_equal(((const unsigned char *)tide_storage_data(&s))[i], i & 0xFF);
    tide_storage_deinit(&s);
    resize(high, 256, NULL);
    resize(high, 300, NULL); // alone now, at offset 256 of 512: no room, fresh memory
    assert_int_equal(tide_tensor_offset_bytes(high), 0);
    assert_bytes(high, 0, 256, counting);
    assert_bytes(high, 256, 300, zero);
    tide_tensor_unref(low);
    tide_tensor_unref(high);
    bench_close(&b);
}

static void count_release(void *context) { ++*(int *)context; }

// S28-11, bound to foreign memory: its room is used; more needs to be told where from; theirs is given back then.
static void bound_storage_S28_11_S28_14(void **state) {
    (void)state;
    bench b;
    bench_open_with(&b, true);
    tide_error err = TIDE_ERROR_INIT;
    _Alignas(64) unsigned char theirs[128];
    for (int i = 0; i < 128; i++) theirs[i] = (unsigned char)i;
    int n_released = 0;
    const tide_shape shape = tide_shape_make(1, DIMS(100));
    tide_tensor *t = NULL, *view = NULL;
    assert_tide_ok(tide_tensor_create_unbound(TIDE_U8, &shape, TIDE_CPU, &t, &err), &err);
    tide_data_ptr ptr = tide_data_ptr_make(theirs, &n_released, count_release, TIDE_CPU);
    // S28-14: storage, offset 0, device and strides are set; the pointers are equal.
    assert_tide_status(tide_tensor_bind_external(t, &ptr, 99, TIDE_KIND_DEFAULT, "theirs", &err), TIDE_ERR_INVALID);
    assert_ptr_equal(ptr.data, theirs); // not taken
    assert_tide_ok(tide_tensor_bind_external(t, &ptr, 128, TIDE_KIND_HOST_PAGEABLE, "theirs", &err), &err);
    assert_null(ptr.data);
    assert_ptr_equal(tide_tensor_const_data(t), theirs);
    assert_int_equal(tide_tensor_offset_bytes(t), 0);
    assert_int_equal(tide_tensor_capacity_bytes(t), 128);
    assert_int_equal(tide_tensor_kind(t), TIDE_KIND_HOST_PAGEABLE);
    assert_int_equal(tide_tensor_strides(t)[0], 1);
    resize(t, 128, NULL);
    assert_ptr_equal(tide_tensor_const_data(t), theirs);
    assert_int_equal(theirs[127], 0);
    const tide_shape more = tide_shape_make(1, DIMS(129));
    assert_tide_status(tide_tensor_resize(t, &more, NULL, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "theirs");
    assert_int_equal(tide_tensor_size_bytes(t), 128);
    assert_tide_ok(tide_tensor_slice(t, 0, 0, 50, 1, &view, &err), &err);
    const tide_tensor_spec where = spec_of(&b, TIDE_F32, 3, DIMS(9, 9, 9)); // type and shape in it are ignored
    resize(t, 129, &where);
    assert_int_equal(tide_tensor_dtype(t), TIDE_U8);
    assert_int_equal(tide_tensor_kind(t), TIDE_KIND_WORKSPACE);
    assert_bytes(t, 0, 100, counting);
    assert_bytes(t, 100, 129, zero);
    assert_int_equal(n_released, 0); // the view has it still
    assert_ptr_equal(tide_tensor_const_data(view), theirs);
    tide_tensor_unref(view);
    assert_int_equal(n_released, 1);
    // Bound again, over what it had: that is dropped.
    ptr = tide_data_ptr_make(theirs, &n_released, count_release, TIDE_CPU);
    assert_tide_status(tide_tensor_bind_external(t, &ptr, 128, TIDE_KIND_DEFAULT, NULL, &err), TIDE_ERR_INVALID);
    resize(t, 64, NULL);
    assert_tide_ok(tide_tensor_bind_external(t, &ptr, 128, TIDE_KIND_DEFAULT, NULL, &err), &err);
    assert_true(bench_live_bytes(&b) == 0);
    tide_tensor_reset(t);
    assert_int_equal(n_released, 2);
    assert_int_equal(tide_tensor_shape(t)->rank, 1);
    assert_int_equal(tide_tensor_shape(t)->dims[0], 0);
    assert_false(tide_tensor_is_bound(t));
    tide_tensor_unref(t);
    bench_close(&b);
}

// S28-14: binding sets the strides row-major, whatever they were; an address its elements may not have is refused.
static void binding_resets_the_layout(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_I32, 2, DIMS(3, 4)), *turned = NULL;
    tide_storage s = storage_of(&b, 256);
    assert_tide_ok(tide_tensor_permute(t, (int32_t[]){1, 0}, &turned, &err), &err);
    assert_false(tide_tensor_is_contiguous(turned));
    assert_tide_ok(tide_tensor_bind(turned, &s, 64, &err), &err);
    assert_true(tide_tensor_is_contiguous(turned));
    assert_int_equal(tide_tensor_strides(turned)[0], 3);
    assert_int_equal(tide_tensor_strides(turned)[1], 1);
    _Alignas(8) unsigned char theirs[64] = {0};
    tide_data_ptr odd = tide_data_ptr_bare(theirs + 1, TIDE_CPU);
    assert_tide_status(tide_tensor_bind_external(t, &odd, 48, TIDE_KIND_DEFAULT, NULL, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "int32");
    assert_int_equal(((const int32_t *)tide_tensor_const_data(t))[11], 11);
    tide_tensor_unref(t);
    tide_tensor_unref(turned);
    tide_storage_deinit(&s);
    bench_close(&b);
}

static void what_cannot_be_resized(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_U8, 2, DIMS(4, 4)), *column = NULL;
    assert_tide_ok(tide_tensor_slice(t, 1, 0, 1, 1, &column, &err), &err);
    const tide_shape two = tide_shape_make(1, DIMS(2)), huge = tide_shape_make(1, DIMS(INT64_MAX)),
                     wraps = tide_shape_make(2, DIMS(INT64_C(1) << 33, INT64_C(1) << 33));
    assert_tide_status(tide_tensor_resize(column, &two, NULL, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "strided");
    tide_tensor_unref(column);
    assert_tide_status(tide_tensor_resize(t, &wraps, NULL, &err), TIDE_ERR_OVERFLOW);
    assert_tide_status(tide_tensor_resize(t, &huge, NULL, &err), TIDE_ERR_NOMEM);
    assert_bytes(t, 0, 16, counting);
    assert_int_equal(tide_tensor_shape(t)->rank, 2);
    tide_tensor_unref(t);
    // Nothing there and nothing said.
    assert_tide_ok(tide_tensor_create_unbound(TIDE_U8, &two, TIDE_CPU, &t, &err), &err);
    assert_tide_status(tide_tensor_resize(t, &two, NULL, &err), TIDE_ERR_INVALID);
    const tide_tensor_spec where = spec_of(&b, TIDE_U8, 0, NULL);
    resize(t, 2, &where); // the shape stays and gets memory
    assert_bytes(t, 0, 2, zero);
    tide_tensor_unref(t);
    bench_close(&b);
}

// A shared copy-on-write block: growing in place parts first; the other keeps its bytes.
static void resize_of_a_lazy_clone(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_U8, 1, DIMS(200)), *twin = NULL;
    memset((unsigned char *)tide_tensor_data(t) + 200, 0xEE, 56);
    assert_tide_ok(tide_tensor_lazy_clone(t, NULL, &twin, NULL, &err), &err);
    const void *data = tide_tensor_const_data(t);
    resize(twin, 256, NULL);
    assert_bytes(twin, 0, 200, counting);
    assert_bytes(twin, 200, 256, zero);
    assert_ptr_equal(tide_tensor_const_data(t), data);
    assert_int_equal(((const unsigned char *)data)[200], 0xEE);
    tide_tensor_unref(t);
    tide_tensor_unref(twin);
    bench_close(&b);
}

// ---- S28-6 ----

// S28-6: random sequences of resize and set_shape keep capacity >= bytes, and the content a plain array says.
static void random_sequences_S28_6(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    enum { MOST = 3000 };
    static unsigned char want[MOST];
    tide_rng rng = {28};
    int n_moved = 0, n_in_place = 0, n_refused = 0;
    for (int round = 0; round < 60; round++) {
        int64_t n = 1 + (int64_t)tide_rng_below(&rng, 100);
        tide_tensor *t = make_counting(&b, TIDE_U8, 1, &n), *other = NULL;
        for (int64_t i = 0; i < n; i++) want[i] = (unsigned char)i;
        for (int step = 0; step < 60; step++) {
            tide_error err = TIDE_ERROR_INIT;
            const int64_t next = (int64_t)tide_rng_below(&rng, 2) == 0 ? (int64_t)tide_rng_below(&rng, MOST)
                                                                       : (int64_t)tide_rng_below(&rng, 300);
            const tide_shape shape = tide_shape_make(1, &next);
            const void *before = tide_tensor_storage(t)->block;
            const size_t room = tide_tensor_capacity_bytes(t);
            if (tide_rng_below(&rng, 3) == 0) {
                const tide_status st = tide_tensor_set_shape(t, &shape, &err);
                assert_int_equal(st, (size_t)next <= room ? TIDE_OK : TIDE_ERR_NO_SPACE);
                assert_ptr_equal(tide_tensor_storage(t)->block, before);
                n_refused += st != TIDE_OK;
                if (st != TIDE_OK) continue;
                // What came into view has no meaning yet: the test gives it one.
                for (int64_t i = n; i < next; i++)
                    ((unsigned char *)tide_tensor_data(t))[i] = want[i] = (unsigned char)(i * 7 + step);
            } else {
                const bool shared = tide_rng_below(&rng, 8) == 0;
                if (shared) assert_tide_ok(tide_tensor_slice(t, 0, 0, n, 1, &other, &err), &err);
                resize(t, next, NULL);
                for (int64_t i = n; i < next; i++) want[i] = 0;
                const bool moved = tide_tensor_storage(t)->block != before;
                assert_true(moved == (next > n && (shared || (size_t)next > room)));
                n_moved += moved;
                n_in_place += !moved;
                if (shared && n > 0)
                    assert_memory_equal(tide_tensor_const_data(other), want, (size_t)(next < n ? next : n));
                tide_tensor_unref(other);
                other = NULL;
            }
            n = next;
            assert_true(tide_tensor_capacity_bytes(t) >= tide_tensor_size_bytes(t));
            if (n > 0) assert_memory_equal(tide_tensor_const_data(t), want, (size_t)n);
        }
        tide_tensor_unref(t);
    }
    assert_true(n_moved > 100 && n_in_place > 500 && n_refused > 100);
    bench_close(&b);
}

// S28-11, S28-15: an empty tensor may stand at any byte; the elements that a resize gives it may not.
static void empty_tensor_at_an_odd_byte_S28_15(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    bench b;
    bench_open(&b);
    tide_storage s = storage_of(&b, 256);
    const tide_shape none = tide_shape_make(1, DIMS(0));
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_create_on(&s, 1, TIDE_F32, &none, &t, &err), &err);
    tide_storage_deinit(&s); // the only reference: the tensor may grow into the capacity
    resize(t, 4, NULL);
    const void *data = tide_tensor_const_data(t);
    assert_int_equal((uintptr_t)data % sizeof(float), 0);
    for (size_t i = 0; i < 4; i++) assert_int_equal(element_at(data, 4, i), 0);
    tide_tensor_unref(t);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(unique_storage_S28_11),       tide_unit_test(shared_storage_S28_11),
        tide_unit_test(bound_storage_S28_11_S28_14), tide_unit_test(binding_resets_the_layout),
        tide_unit_test(what_cannot_be_resized),      tide_unit_test(resize_of_a_lazy_clone),
        tide_unit_test(random_sequences_S28_6),      tide_unit_test(empty_tensor_at_an_odd_byte_S28_15),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
